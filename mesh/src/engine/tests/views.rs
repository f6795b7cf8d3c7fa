//! What clients and operators are shown: rooms and their names, whose they are, and what others have of them.

use super::{
    rooms::{make, new},
    world::{STEP, World},
    *,
};
use crate::{
    api::command::RoomView,
    presence::ephemeral::ephemeral_id,
    wire::roster::{EphemeralRoom, RoomFacts},
};

const OTHER_KEY: KeyPrint = KeyPrint([2; 16]);

impl Node {
    fn listed(&mut self, key: KeyPrint, parent: Option<RoomId>) -> Vec<RoomView> {
        let Ok(Outcome::Rooms(rooms)) = self.ask(Command::ListRooms { by: key.into(), parent })
        else {
            panic!("anybody may")
        };
        rooms
    }

    fn info(&mut self, key: KeyPrint, room: RoomId) -> crate::api::command::RoomInfo {
        match self.ask(Command::RoomInfo { by: key.into(), room }) {
            Ok(Outcome::RoomInfo(info)) => info,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn whose_a_room_is_is_shown_to_who_holds_its_key() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let made = node.ask(Command::CreateRoom { caller, room: new("plan", false) });
    let Ok(Outcome::Room(view)) = made else { panic!("{made:?}") };
    assert_eq!(view.owner, Some(KEY));
    for (key, owner) in [(KEY, Some(KEY)), (OTHER_KEY, None)] {
        let listed = node.listed(key, None);
        let shown = listed.iter().find(|it| it.room == view.room).expect("it is public");
        assert_eq!(shown.owner, owner);
        assert_eq!(node.info(key, view.room).room.owner, owner);
    }
}

#[test]
fn rooms_are_listed_all_or_those_below_one() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let parent = make(&mut node, &caller, new("parent", false)).expect("it is new");
    let below = NewRoom { parent: Some(parent), ..new("below", false) };
    let below = make(&mut node, &caller, below).expect("it is new");
    let own = NewRoom { parent: Some(parent), public: false, ..new("own", false) };
    let own = make(&mut node, &caller, own).expect("it is new");
    let ids = |rooms: Vec<RoomView>| rooms.into_iter().map(|it| it.room).collect::<Vec<_>>();
    let lobby = node.lobby();
    assert_eq!(ids(node.listed(KEY, None)), [below, lobby, own, parent], "by name");
    assert_eq!(ids(node.listed(KEY, Some(parent))), [below, own]);
    assert_eq!(ids(node.listed(OTHER_KEY, Some(parent))), [below]);
    assert_eq!(ids(node.info(OTHER_KEY, parent).sub_rooms), [below]);
    let mut subs = ids(node.info(KEY, parent).sub_rooms);
    subs.sort();
    let mut both = [below, own];
    both.sort();
    assert_eq!(subs, both);
    let none = Command::ListRooms { by: OTHER_KEY.into(), parent: Some(own) };
    assert_eq!(node.ask(none).err(), Some(Refused::NotYours));
}

#[test]
fn who_leads_is_shown_with_the_room() {
    let mut world = World::new(2);
    let (room, caller) = (world.lobby(), world.callers[0].clone());
    assert!(world.nodes[1].info(KEY, room).leader.is_none());
    world.ask(0, Command::ElectLeader { caller, room }).expect("none runs");
    world.pass(STEP * 25);
    let leaders = [0, 1].map(|n| world.nodes[n].info(KEY, room).leader);
    assert!(leaders[0].is_some());
    assert_eq!(leaders[0], leaders[1]);
}

/// A room of memory as node 8 tells of it.
fn theirs(
    node: &Node,
    nth: u64,
    (name, public, created_ms): (&str, bool, u64),
) -> (RoomId, RosterChange) {
    let home = LogId { author: identity(8).node_id(), incarnation: 1 << 20 | nth };
    let id = ephemeral_id(node.secret.mesh_id(), home, false);
    // Of other keys, too.
    let owner = match (public, nth % 2) {
        (true, 1) => KEY,
        (true, _) => OTHER_KEY,
        (false, _) => KeyPrint([3; 16]),
    };
    let facts = RoomFacts::Open(RoomCreated { public, owner, ..public_room(id, name) });
    (id, RosterChange::Room(id, EphemeralRoom { facts, home, created_ms }))
}

#[test]
fn of_two_rooms_of_memory_of_one_name_the_earlier_has_it() {
    let made_ms = |node: &Node| node.now.wall_ms;
    for later in [true, false] {
        let mut node = Node::new(1);
        let caller = node.joins("me");
        let mine = make(&mut node, &caller, new("plan", true)).expect("it is new");
        let created_ms = if later { made_ms(&node) + 5_000 } else { made_ms(&node) - 5_000 };
        let (same, one) = theirs(&node, if later { 1 } else { 4 }, ("plan", true, created_ms));
        let (other, two) = theirs(&node, 2, ("another", true, 1));
        let (private, three) = theirs(&node, 3, ("plan", false, 1));
        node.heard_saying(8, vec![one, two, three]);
        let name = |room| node.engine.known.view(room).expect("it is there").name.to_string();
        assert_eq!([name(other), name(private)], ["another", "plan"], "nobody sees both");
        let (first, second) = if later { (mine, same) } else { (same, mine) };
        assert_eq!(name(first), "plan");
        let other = name(second);
        assert!(other.starts_with("plan (") && other.ends_with(')'), "{other}");
    }
    // Made at one time: the lower id, at all nodes alike.
    let mut node = Node::new(1);
    let (one, a) = theirs(&node, 1, ("plan", true, 5));
    let (two, b) = theirs(&node, 2, ("plan", true, 5));
    node.heard_saying(8, vec![a, b]);
    let name = |room| node.engine.known.view(room).expect("it is there").name.to_string();
    assert_eq!([name(one.min(two)) == "plan", name(one.max(two)) == "plan"], [true, false]);
}

#[test]
fn a_room_of_memory_gives_way_to_one_that_lasts() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let (plan, one) = theirs(&node, 1, ("plan", true, 5));
    let (other, two) = theirs(&node, 2, ("another", true, 5));
    make(&mut node, &caller, new("plan", false)).expect("it is new");
    node.heard_saying(8, vec![one, two]);
    let name = |room| node.engine.known.view(room).expect("it is there").name.to_string();
    assert!(name(plan).starts_with("plan ("));
    assert_eq!(name(other), "another");
}

/// Seed 30296 of the simulation.
#[test]
fn rooms_of_memory_that_one_node_made_have_names_of_their_own() {
    for lasting in [false, true] {
        let mut node = Node::new(1);
        let caller = node.joins("me");
        if lasting {
            make(&mut node, &caller, new("plan", false)).expect("it is new");
        }
        let made: Vec<_> = (1..=3).map(|nth| theirs(&node, nth, ("plan", true, 5 + nth))).collect();
        node.heard_saying(8, made.iter().map(|(_, it)| it.clone()).collect());
        let names = made
            .iter()
            .map(|(room, _)| node.engine.known.view(*room).expect("it is there").name.to_string());
        let names: Vec<String> = names.collect();
        let of_its = identity(8).node_id().short();
        let [one, two, three] = [of_its.clone(), format!("{of_its} 2"), format!("{of_its} 3")]
            .map(|it| format!("plan ({it})"));
        let expected = if lasting { [one, two, three] } else { ["plan".to_owned(), one, two] };
        assert_eq!(names, expected);
    }
}

/// Seed 43542 of the simulation: who does not see the other one would call it otherwise.
#[test]
fn a_room_that_all_see_never_gives_way_to_one_that_some_see() {
    let mut node = Node::new(1);
    let (shared, mut one) = theirs(&node, 1, ("plan", true, 9));
    let (private, two) = theirs(&node, 2, ("plan", false, 1));
    let RosterChange::Room(_, EphemeralRoom { facts: RoomFacts::Open(facts), .. }) = &mut one
    else {
        panic!("it is open")
    };
    facts.owner = KeyPrint([3; 16]);
    node.heard_saying(8, vec![one, two]);
    let name = |room| node.engine.known.view(room).expect("it is there").name.to_string();
    assert_eq!(name(shared), "plan");
    assert_eq!(name(private), format!("plan ({})", identity(8).node_id().short()));
}

#[test]
fn clients_are_told_of_a_room_once_and_again_when_it_is_called_otherwise() {
    let opened = |node: &mut Node, room| {
        let told = std::mem::take(&mut node.effects).into_iter().filter_map(|it| match it {
            Effect::Notify { room: of, event: RoomEvent::Opened { view, announce } } => {
                (of == room).then_some((view.name.to_string(), announce))
            }
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let mut node = Node::new(2);
    let directory = RoomId::directory(node.secret.mesh_id());
    let [low, high] = [5, 6].map(|seed| {
        let log = asking::log(seed);
        let room = crate::directory::room_id(node.secret.mesh_id(), directory, log, 1);
        let body = Body::RoomCreated(public_room(room, "plan"));
        (room, log_of(&node, directory, seed, &[body]))
    });
    node.hear(&low.1);
    let mut founder = world::Liar::new(1);
    let mut number = |node: &mut Node, first, log| {
        let ordered = asking::ordered(crate::name::number::Era::HOME, first, &[(log, 1, 1)]);
        let (_, run) = founder.write_in(node, directory, &ordered);
        node.hear(&run);
    };
    assert_eq!(opened(&mut node, low.0), []);
    number(&mut node, 1, low.1.log);
    assert_eq!(opened(&mut node, low.0), [("plan".to_owned(), true)]);
    let caller = node.joins("me");
    let join = Command::Join { caller: caller.clone(), room: low.0 };
    node.ask(join).expect("public");
    node.begin_say(&caller);
    node.hear(&high.1);
    number(&mut node, 2, high.1.log);
    assert_eq!(opened(&mut node, low.0), [], "whatever is said");
    let mut again = Node::open(2, disk::stored(&node.rows), node.now);
    let told = opened(&mut again, low.0);
    assert_eq!((told.len(), &*told[0].0), (1, "plan"), "clients know of nothing yet");
}

#[test]
fn a_room_that_has_to_give_up_its_name_is_told_again_and_not_as_a_new_one() {
    let mut node = Node::new(1);
    let caller = node.joins("me");
    let (room, announced) = theirs(&node, 1, ("plan", true, 5));
    node.heard_saying(8, vec![announced]);
    make(&mut node, &caller, new("other", false)).expect("it is new");
    node.effects.clear();
    // A room that lasts takes the name; the next news of the other one tell that.
    let created = crate::directory::room_id(
        node.secret.mesh_id(),
        RoomId::directory(node.secret.mesh_id()),
        asking::log(6),
        1,
    );
    let body = Body::RoomCreated(public_room(created, "plan"));
    let run = log_of(&node, RoomId::directory(node.secret.mesh_id()), 6, &[body]);
    node.hear(&run);
    node.effects.clear();
    node.engine.known.tell_of_room(room, true);
    node.turn();
    let told = node.effects.iter().filter_map(|it| match it {
        Effect::Notify { event: RoomEvent::Opened { view, announce }, .. } => {
            Some((view.name.starts_with("plan ("), *announce))
        }
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(true, false)]);
}

#[test]
fn an_operator_sees_the_other_nodes_and_what_of_each_room_they_lack() {
    let mut world = World::new(2);
    let other = world.nodes[1].engine.known.cx.me;
    let Ok(Outcome::Status(status)) = world.ask(0, Command::Status) else { panic!("it says") };
    assert_eq!(status.nodes.iter().map(|it| it.node).collect::<Vec<_>>(), [other]);
    let mut node = Node::new(1);
    let (caller, lobby) = (node.joins("me"), node.lobby());
    let own = NewRoom { public: false, ..new("own", false) };
    let own = make(&mut node, &caller, own).expect("it is new");
    for room in [own, lobby] {
        node.ask(Command::Join { caller: caller.clone(), room }).expect("it may");
        node.say(&caller, room).expect("a member");
    }
    let unsent = |node: &mut Node| {
        let Ok(Outcome::Status(status)) = node.ask(Command::Status) else { panic!("it says") };
        [lobby, own].map(|room| {
            let it = status.rooms.iter().find(|it| it.room == room).expect("it is there");
            (it.sent > 0, it.unsent > 0)
        })
    };
    assert_eq!(unsent(&mut node), [(false, false); 2], "there is nobody who could have it");
    node.engine.known.live.admit(other);
    assert_eq!(unsent(&mut node), [(false, true), (false, false)]);
}
