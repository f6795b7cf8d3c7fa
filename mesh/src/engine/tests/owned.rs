//! Agents that their keys retire, and files of agents.

use super::{
    pairs::signer,
    records::MINTED,
    world::{STEP, World},
    *,
};
use crate::{
    api::{
        command::{AgentFileChange, Retire},
        event::AgentEvent,
    },
    limits::AGENT_FILE_BYTES_MAX,
    name::group::Group,
    records::{agent_files, retired},
    wire::record::{RecordKey, Space},
};

const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];

fn retire(key: KeyPrint, agent: &str) -> Command {
    let retire = Retire { key, agent: agent.into(), signer: signer(key) };
    Command::RetireAgent(Box::new(retire))
}

fn file(key: KeyPrint, agent: &str, name: &str, bytes: Option<&[u8]>) -> Command {
    let (agent, signer) = (agent.into(), signer(key));
    let (name, bytes) = (name.to_owned(), bytes.map(<[u8]>::to_vec));
    Command::ChangeAgentFile(Box::new(AgentFileChange { key, agent, signer, name, bytes }))
}

impl World {
    /// The answer to an agent that wants to attach under an id of its own.
    fn comes(&mut self, n: usize, agent: &str, key: KeyPrint) -> Result<Outcome, Refused> {
        let attach = Attach { stable: true, ..registers(agent, (key, true)) };
        let call = self.begin(n, Command::Attach(attach));
        self.pass(STEP * 20);
        self.reply(n, call).expect("it is answered")
    }
}

impl Node {
    fn is_retired(&self, agent: &str) -> bool {
        self.engine.proofs().is_retired(agent)
    }

    /// A file of an agent, as it shows in the place of a key.
    fn file_of(&mut self, key: KeyPrint, agent: &str, name: &str) -> Option<Vec<u8>> {
        let Ok(Outcome::Place(room)) = self.ask(Command::PlaceOfKey { key }) else { return None };
        let at = self.engine.known.rooms.get(&room)?.replica.record.place_of_records(room)?;
        let id = agent_files::id(&at, agent, name);
        let record = self.records().into_iter().find(|record| record.id == id)?;
        let view = agent_files::read(&at, agent, &record)?;
        let place = (at.space, RecordKey { id, owner: Some(key) });
        let bytes = self.contents().get(&place).cloned();
        let bytes = bytes.and_then(|of| at.cover.read_apart(&agent_files::apart_name(id, key), of));
        bytes.or_else(|| (view.length == 0).then(Vec::new))
    }
}

#[test]
fn nobody_attaches_under_a_retired_id_again_at_any_node() {
    let mut world = World::new(3);
    world.link();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    world.pass(STEP * 5);
    // At another node than the agent's own.
    world.ask(1, retire(BOBS, "ann")).expect_err("it is another key's");
    world.ask(2, retire(ANNS, "ann")).expect("its key");
    world.pass(STEP * 5);
    let displaced = world.tells[0].iter().any(|event| {
        matches!(event, AgentEvent::Displaced { agent, registration }
            if (agent, registration) == (&ann.agent, &ann.registration))
    });
    assert!(displaced, "its connection ends");
    for n in 0..3 {
        assert!(world.nodes[n].engine.known.rosters.record("ann").is_none(), "at node {n}");
        for key in [ANNS, BOBS] {
            let refused = world.comes(n, "ann", key).expect_err("for ever");
            assert_eq!(refused, Refused::AgentRetired("ann".into()));
        }
    }
    let check = Command::CheckAgent { agent: "ann".into(), key: ANNS };
    assert_eq!(world.ask(0, check).err(), Some(Refused::AgentRetired("ann".into())));
    world.ask(0, retire(ANNS, "ann")).expect("once more does nothing");
    world.restart_reading(0);
    let refused = world.comes(0, "ann", ANNS).expect_err("after a start, too");
    assert_eq!(refused, Refused::AgentRetired("ann".into()));
    assert!(world.nodes[1].engine.known.caller(&bob).is_ok(), "others stay");
}

#[test]
fn another_key_retires_nobody_whatever_it_signs() {
    let mut world = World::new(2);
    world.link();
    let ann = world.come(0, "ann", ANNS);
    world.come(1, "bob", BOBS);
    world.pass(STEP * 5);
    let mesh = world.nodes[0].secret.mesh_id();
    let (by, stamp) = (signer(BOBS).expect("of these tests"), world.nodes[0].now_stamp());
    let lie = retired::draft(&"ann".into()).sign(&by, mesh, stamp).expect("long enough");
    for n in 0..2 {
        world.nodes[n].hear_record(lie.clone());
    }
    world.pass(STEP * 5);
    for n in 0..2 {
        assert!(world.nodes[n].records().contains(&lie), "it is kept");
        assert!(!world.nodes[n].is_retired("ann"));
    }
    assert!(world.nodes[0].engine.known.caller(&ann).is_ok());
}

#[test]
fn a_retired_agent_goes_when_a_split_heals() {
    let mut world = World::new(2);
    world.link();
    world.come(0, "ann", ANNS);
    world.come(1, "bea", ANNS);
    world.pass(STEP * 5);
    world.groups = vec![0, 1];
    world.ask(1, retire(ANNS, "ann")).expect("its key");
    world.held.clear();
    assert!(world.nodes[0].engine.known.rosters.record("ann").is_some());
    world.groups = vec![0, 0];
    world.pass(crate::limits::RECORDS_COMPARE_EVERY * 3);
    for node in &world.nodes {
        assert!(node.is_retired("ann"));
        assert!(node.engine.known.rosters.record("ann").is_none());
    }
}

#[test]
fn files_of_an_agent_are_with_its_key_and_with_nobody_else() {
    let mut world = World::new(3);
    let callers = world.presents(&[0, 1]);
    let own = Attach { stable: true, own: false, ..registers("ann", (MINTED, false)) };
    let call = world.begin(0, Command::Attach(own));
    world.pass(STEP * 20);
    world.reply(0, call).expect("it is answered").expect("it is free");
    let text = "for few eyes ".repeat(1_000);
    world.ask(0, file(MINTED, "ann", "SOUL.md", Some(text.as_bytes()))).expect("its key");
    world.pass(STEP * 20);
    for n in [0, 1] {
        let found = world.nodes[n].file_of(MINTED, "ann", "SOUL.md");
        assert_eq!(found.as_deref(), Some(text.as_bytes()), "at node {n}");
    }
    assert_eq!(world.nodes[2].records(), []);
    let space = Space::Followers(Group::Key(MINTED));
    let collection = agent_files::COLLECTION.number;
    let rows = world.nodes[1].records();
    let of_files = rows.iter().find(|row| row.collection == collection).expect("it is there");
    assert_eq!(of_files.space, space);
    let has_text = |bytes: &[u8]| bytes.windows(8).any(|part| part == b"few eyes");
    assert!(!world.told_to.iter().any(|(_, bytes)| has_text(bytes)), "sealed on its way");
    // Of an id that is not the key's own, and too much.
    world.ask(0, file(MINTED, "bob", "SOUL.md", Some(b"x"))).expect_err("nobody's");
    let large = vec![0; AGENT_FILE_BYTES_MAX + 1];
    let large = world.ask(0, file(MINTED, "ann", "SOUL.md", Some(&large)));
    assert!(matches!(large, Err(Refused::Field(_))), "{large:?}");
    world.ask(1, file(MINTED, "ann", "SOUL.md", Some(b""))).expect("its key");
    world.pass(STEP * 20);
    assert_eq!(world.nodes[0].file_of(MINTED, "ann", "SOUL.md").as_deref(), Some(&b""[..]));
    world.ask(0, file(MINTED, "ann", "SOUL.md", None)).expect("its key");
    world.pass(STEP * 20);
    assert_eq!(world.nodes[1].file_of(MINTED, "ann", "SOUL.md"), None);
    world.ask(0, retire(MINTED, "ann")).expect("its key");
    let late = world.ask(0, file(MINTED, "ann", "SOUL.md", Some(b"x")));
    assert_eq!(late.err(), Some(Refused::AgentRetired("ann".into())));
    drop(callers);
}

#[test]
fn files_of_agents_of_a_nodes_own_key_stay_there() {
    let mut world = World::new(2);
    world.link();
    world.come(0, "ann", ANNS);
    world.pass(STEP * 5);
    world.ask(0, file(ANNS, "ann", "USER.md", Some(b"text"))).expect("its key");
    world.pass(STEP * 20);
    assert_eq!(world.nodes[0].file_of(ANNS, "ann", "USER.md").as_deref(), Some(&b"text"[..]));
    let of_files =
        |record: &crate::wire::record::Record| record.collection == agent_files::COLLECTION.number;
    assert!(!world.nodes[1].records().iter().any(of_files));
    world.restart_reading(0);
    assert_eq!(world.nodes[0].file_of(ANNS, "ann", "USER.md").as_deref(), Some(&b"text"[..]));
}
