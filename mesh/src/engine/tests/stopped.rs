//! Agents that operators, or their own keys, stop.

use super::{
    pairs::signer,
    world::{STEP, World},
    *,
};
use crate::{
    api::command::{StopAgents, Stops},
    records::profile::ProfileUpdate,
    wire::roster::Presence,
};

const OPERATORS: KeyPrint = PRINTS[1];
const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];

fn stop(key: KeyPrint, agent: Option<&str>, by: Option<&str>) -> Command {
    let (agent, by) = (agent.map(Into::into), by.map(str::to_owned));
    Command::StopAgents(Box::new(StopAgents { key, signer: signer(key), agent, by }))
}

fn stopped(by: &str, all: bool) -> Refused {
    Refused::Stopped { by: by.to_owned(), all }
}

/// Three nodes: two were started with the operator's key.
fn world() -> World {
    let mut world = World::new(3);
    for n in 0..2 {
        world.nodes[n].engine.known.config.operators = [OPERATORS].into();
    }
    world.link();
    world
}

impl World {
    fn speaks(&mut self, n: usize, by: &Caller) -> Option<Refused> {
        let lobby = self.lobby();
        self.says(n, by, lobby, "x").err()
    }

    fn stops(&mut self, n: usize, key: KeyPrint) -> Stops {
        match self.ask(n, Command::ListStops { key }) {
            Ok(Outcome::Stops(stops)) => *stops,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_stopped_agent_sends_nothing_until_it_is_let_go_at_any_node_of_the_operator() {
    let mut world = world();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    for (n, by) in [(0, &ann), (1, &bob)] {
        let lobby = world.lobby();
        world.ask(n, Command::Join { caller: by.clone(), room: lobby }).expect("it is public");
    }
    world.pass(STEP * 5);
    // At another node than the agent's.
    world.ask(1, stop(OPERATORS, Some("ann"), Some("ada"))).expect("an operator");
    world.pass(STEP * 5);
    assert_eq!(world.speaks(0, &ann), Some(stopped("ada", false)));
    assert_eq!(world.speaks(1, &bob), None, "others go on");
    let lobby = world.lobby();
    let direct =
        Command::OpenDirect { caller: ann.clone(), signer: None, agent: "bob".into(), task: None };
    assert_eq!(world.ask(0, direct).err(), Some(stopped("ada", false)));
    let elect = Command::ElectLeader { caller: ann.clone(), room: lobby };
    assert_eq!(world.ask(0, elect).err(), Some(stopped("ada", false)));
    shows_nothing_of_itself(&mut world, &ann);
    world.ask(0, Command::Leave { caller: ann.clone(), room: lobby }).expect("it may go");
    world.ask(0, Command::Join { caller: ann.clone(), room: lobby }).expect("and read");
    let shown = world.stops(0, OPERATORS);
    assert!(shown.is_operator && shown.stops.len() == 1, "{shown:?}");
    assert_eq!(shown.stops[0].agent.as_deref(), Some("ann"));
    assert!(!world.stops(0, ANNS).is_operator);
    world.restart_reading(0);
    world.nodes[0].engine.known.config.operators = [OPERATORS].into();
    let ann = world.come(0, "ann", ANNS);
    let may = |world: &World| world.nodes[0].engine.known.lets(ann.key, &ann.agent);
    assert_eq!(may(&world), Err(stopped("ada", false)), "after a start, too");
    world.ask(1, stop(OPERATORS, Some("ann"), None)).expect("it is let go");
    world.pass(STEP * 5);
    assert_eq!(may(&world), Ok(()));
}

/// Others neither see nor find anything new of it. It may take back, though.
fn shows_nothing_of_itself(world: &mut World, ann: &Caller) {
    let lobby = world.lobby();
    let typing = |typing| Command::SetTyping { caller: ann.clone(), room: lobby, typing };
    let presence = |presence| Command::SetPresence { caller: ann.clone(), presence };
    let update = Box::new(ProfileUpdate::default());
    let profile = Command::SetProfile { caller: ann.clone(), signer: signer(ANNS), update };
    let detail = Presence { detail: Some("buy my things".into()), ..Presence::default() };
    let mail = Command::MaySend { key: ANNS, agent: ann.agent.clone() };
    for act in [typing(true), presence(detail), profile, mail] {
        assert_eq!(world.ask(0, act).err(), Some(stopped("ada", false)));
    }
    for back in [typing(false), presence(Presence::default())] {
        world.ask(0, back).expect("it takes back");
    }
}

#[test]
fn a_key_that_no_agent_has_shown_stops_agents_and_all_nodes_can_check_it() {
    let mut world = world();
    let fresh = PRINTS[4];
    for node in &mut world.nodes {
        node.engine.known.config.operators = [fresh].into();
    }
    let ann = world.come(1, "ann", ANNS);
    let lobby = world.lobby();
    world.ask(1, Command::Join { caller: ann.clone(), room: lobby }).expect("it is public");
    let foreign =
        StopAgents { key: fresh, signer: signer(BOBS), agent: None, by: Some("eve".into()) };
    assert!(world.ask(0, Command::StopAgents(Box::new(foreign))).is_err());
    assert!(!world.nodes[0].engine.known.directory.is_vouched(NodeId([1; 32]), fresh));
    world.ask(0, stop(fresh, None, Some("ada"))).expect("nobody had to show it before");
    world.pass(STEP * 5);
    assert_eq!(world.speaks(1, &ann), Some(stopped("ada", true)));
}

#[test]
fn stops_of_a_key_count_on_for_its_successor_until_that_says_something_else() {
    let mut world = world();
    let new = PRINTS[4];
    let ann = world.come(0, "ann", ANNS);
    let lobby = world.lobby();
    world.ask(0, Command::Join { caller: ann.clone(), room: lobby }).expect("it is public");
    world.nodes[0].mints(OPERATORS);
    world.ask(0, stop(OPERATORS, Some("ann"), Some("ada"))).expect("an operator");
    world.nodes[0].mints(new);
    world.nodes[0].replaces(OPERATORS, new).expect("it is there");
    world.pass(STEP * 10);
    for n in 0..2 {
        let lets = world.nodes[n].engine.known.lets(ANNS, &ann.agent);
        assert_eq!(lets, Err(stopped("ada", false)), "node {n}");
        let shown = world.stops(n, new);
        assert!(shown.is_operator && shown.stops.len() == 1, "{shown:?}");
        assert_eq!(shown.stops[0].key, new, "it is the successor's to let go");
    }
    world.ask(0, stop(new, Some("ann"), None)).expect("it is let go");
    // As a thief of the old key says it at a node of his own.
    world.ask(1, stop(OPERATORS, Some("ann"), None)).expect("it is the key's record");
    world.ask(1, stop(OPERATORS, Some("ann"), Some("eve"))).expect("it is the key's record");
    world.pass(STEP * 10);
    for n in 0..2 {
        assert_eq!(world.nodes[n].engine.known.lets(ANNS, &ann.agent), Ok(()), "node {n}");
        assert!(world.stops(n, new).stops.is_empty());
    }
    world.ask(1, stop(new, Some("ann"), Some("bob"))).expect("the successor");
    world.pass(STEP * 5);
    assert_eq!(world.speaks(0, &ann), Some(stopped("bob", false)));
}

#[test]
fn all_agents_are_stopped_where_the_operator_is_one_and_its_own_people_are_not() {
    let mut world = world();
    let ann = world.come(0, "ann", ANNS);
    let person = format!("u-{}-ada", &OPERATORS.to_string()[..16]);
    let person = world.come(0, &person, OPERATORS);
    let bot = world.come(1, "bot", OPERATORS);
    let carl = world.come(2, "carl", BOBS);
    world.pass(STEP * 5);
    for (n, by) in [(0, &ann), (0, &person), (1, &bot), (2, &carl)] {
        let lobby = world.lobby();
        world.ask(n, Command::Join { caller: by.clone(), room: lobby }).expect("it is public");
    }
    world.ask(0, stop(OPERATORS, None, Some("ada"))).expect("an operator");
    world.pass(STEP * 5);
    assert_eq!(world.speaks(0, &ann), Some(stopped("ada", true)));
    assert_eq!(world.speaks(1, &bot), Some(stopped("ada", true)));
    assert_eq!(world.speaks(0, &person), None, "somebody has to say why");
    assert_eq!(world.speaks(2, &carl), None, "a node that does not go by this operator");
    world.ask(1, stop(OPERATORS, None, None)).expect("all are let go");
    world.pass(STEP * 5);
    assert_eq!(world.speaks(0, &ann), None);
    assert_eq!(world.speaks(1, &bot), None);
}

#[test]
fn a_key_that_is_no_operators_stops_its_own_agents_and_no_others() {
    let mut world = world();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    for (n, by) in [(0, &ann), (1, &bob)] {
        let lobby = world.lobby();
        world.ask(n, Command::Join { caller: by.clone(), room: lobby }).expect("it is public");
    }
    for agent in [None, Some("ann"), Some("bob")] {
        world.ask(1, stop(BOBS, agent, Some("bob's person"))).expect("it is a word of its own");
    }
    world.pass(STEP * 5);
    assert_eq!(world.speaks(0, &ann), None);
    assert_eq!(world.speaks(1, &bob), Some(stopped("bob's person", false)));
    assert!(world.stops(0, OPERATORS).stops.is_empty(), "it counts for nobody there");
    let long = "x".repeat(crate::limits::STOPPER_BYTES_MAX + 1);
    assert!(world.ask(1, stop(BOBS, None, Some(&long))).is_err());
}

#[test]
fn a_stopped_agent_writes_no_files_of_rooms() {
    let mut world = world();
    let ann = world.come(0, "ann", ANNS);
    let lobby = world.lobby();
    world.ask(0, Command::Join { caller: ann.clone(), room: lobby }).expect("it is public");
    let room = NewRoom {
        name: "anns".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: true,
        encrypted: false,
    };
    let made = world.ask(0, Command::CreateRoom { caller: ann.clone(), room });
    let Ok(Outcome::Room(made)) = made else { panic!("{made:?}") };
    let writes = || files::put(&ann, made.room, files::file("a.txt", b"words"));
    world.ask(0, writes()).expect("nobody has stopped it");
    world.ask(0, stop(OPERATORS, Some("ann"), Some("ada"))).expect("an operator");
    for act in [writes(), files::remove(&ann, made.room, "a.txt")] {
        assert_eq!(world.ask(0, act).err(), Some(stopped("ada", false)));
    }
    let mut of_key = files::put(&ann, made.room, files::file("b.txt", b"words"));
    let Command::ChangeFile(change) = &mut of_key else { panic!("{of_key:?}") };
    change.agent = None;
    world.ask(0, of_key).expect("the holder of the key is not stopped");
    world.ask(0, stop(OPERATORS, Some("ann"), None)).expect("it is let go");
    world.ask(0, writes()).expect("as before");
}
