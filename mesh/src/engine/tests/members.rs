//! Members of rooms on record: their seats, wherever they attach.

use super::{
    pairs::signer,
    records::MINTED,
    room_records::new_room,
    world::{STEP, World},
    *,
};
use crate::{
    api::{
        command::{LeaveOnRecord, MemberAct, MemberSet, RoomView},
        event::AgentEvent,
    },
    limits::{ENLISTED_BY_OTHERS_MAX, RECORDS_COMPARE_EVERY},
    records::members::{self, Role, Word},
    wire::record::Space,
};

const ANNS: KeyPrint = PRINTS[2];
const BOBS: KeyPrint = PRINTS[3];
const EVES: KeyPrint = PRINTS[4];

fn setting(caller: &Caller, room: RoomId, agent: &str, act: MemberAct) -> Command {
    let (caller, signer, agent) = (caller.clone(), signer(caller.key), agent.into());
    Command::SetMember(Box::new(MemberSet { caller, signer, room, agent, act }))
}

fn put(caller: &Caller, room: RoomId, agent: &str) -> Command {
    setting(caller, room, agent, MemberAct::Put(Role::Member))
}

fn remove(caller: &Caller, room: RoomId, agent: &str) -> Command {
    setting(caller, room, agent, MemberAct::Remove)
}

impl World {
    fn as_told(&self, n: usize, room: RoomId) -> &RoomView {
        &self.nodes[n].engine.known.told[&room]
    }

    /// The members on record, as a node shows them.
    fn list(&self, n: usize, room: RoomId) -> Vec<(String, Role)> {
        let list = self.as_told(n, room).on_record.iter();
        list.map(|member| (member.agent.to_string(), member.role)).collect()
    }

    /// Agents with a seat in a room, as a node sees them.
    fn sitting(&self, n: usize, room: RoomId) -> Vec<String> {
        let members = self.nodes[n].engine.known.members_of(room);
        let mut names: Vec<_> = members.iter().map(|agent| agent.agent.to_string()).collect();
        names.sort_unstable();
        names
    }

    fn departs(&mut self, n: usize, caller: &Caller) {
        let detach = Command::Detach { caller: caller.clone(), seen: Vec::new() };
        self.ask(n, detach).expect("it is attached");
        self.pass(STEP * 5);
    }

    fn leaves(&mut self, n: usize, caller: &Caller, room: RoomId) {
        let (caller, signer) = (caller.clone(), signer(caller.key));
        let leave = LeaveOnRecord { caller, signer, room };
        self.ask(n, Command::LeaveOnRecord(Box::new(leave))).expect("it has a seat");
        self.pass(STEP * 5);
    }
}

/// Ann at the first node has made a public room; Bob, of another key, is at the second one.
fn ann_and_bob() -> (World, Caller, Caller, RoomId) {
    let mut world = World::new(3);
    world.link();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    let room = world.makes(0, &ann, new_room("hall", true, false));
    world.pass(STEP * 5);
    (world, ann, bob, room)
}

#[test]
fn a_member_has_a_seat_when_it_is_named_and_wherever_it_attaches_later() {
    let (mut world, ann, bob, room) = ann_and_bob();
    world.ask(0, put(&ann, room, "bob")).expect("her room");
    world.pass(STEP * 5);
    for n in 0..3 {
        assert_eq!(world.list(n, room), [("bob".to_owned(), Role::Member)]);
        assert_eq!(world.sitting(n, room), ["bob"]);
    }
    let enlisted = |event: &AgentEvent| match event {
        AgentEvent::Enlisted { agent, room, announce } => {
            Some((agent.to_string(), room.room, *announce))
        }
        _ => None,
    };
    let told: Vec<_> = world.tells[1].iter().filter_map(enlisted).collect();
    assert_eq!(told, [("bob".to_owned(), room, false)]);
    // It goes, and comes back at another node as if it were new.
    world.departs(1, &bob);
    world.pass(STEP * 5);
    assert!(world.sitting(0, room).is_empty());
    world.come(2, "bob", BOBS);
    world.pass(STEP * 5);
    assert_eq!(world.sitting(0, room), ["bob"]);
    let told: Vec<_> = world.tells[2].iter().filter_map(enlisted).collect();
    assert_eq!(told, [("bob".to_owned(), room, true)], "it is told of the room");
}

#[test]
fn who_is_taken_off_the_list_has_no_seat_and_may_join_again() {
    let (mut world, ann, bob, room) = ann_and_bob();
    world.ask(0, put(&ann, room, "bob")).expect("her room");
    world.ask(0, put(&ann, room, "ann")).expect("her room");
    world.pass(STEP * 5);
    assert_eq!(world.sitting(2, room), ["ann", "bob"]);
    world.ask(0, remove(&ann, room, "bob")).expect("it is on the list");
    world.pass(STEP * 5);
    for n in 0..3 {
        assert_eq!(world.list(n, room), [("ann".to_owned(), Role::Member)]);
        assert_eq!(world.sitting(n, room), ["ann"]);
    }
    let unseated = |event: &AgentEvent| matches!(event, AgentEvent::Unseated { .. });
    assert_eq!(world.tells[1].iter().filter(|event| unseated(event)).count(), 1);
    let again = world.ask(0, remove(&ann, room, "bob"));
    assert_eq!(again.err(), Some(Refused::NoAgent("bob".into())));
    let join = Command::Join { caller: bob, room };
    assert!(matches!(world.ask(1, join), Ok(Outcome::Joined(true))), "it is not banned");
    world.pass(STEP * 5);
    assert_eq!(world.sitting(0, room), ["ann", "bob"]);
    world.restart_reading(0);
    assert_eq!(world.list(0, room), [("ann".to_owned(), Role::Member)], "after a start, too");
}

#[test]
fn a_seat_is_not_kept_for_one_who_was_taken_off_the_list_while_it_was_away() {
    let (mut world, ann, bob, room) = ann_and_bob();
    world.ask(0, put(&ann, room, "bob")).expect("her room");
    world.pass(STEP * 5);
    world.departs(1, &bob);
    world.ask(0, remove(&ann, room, "bob")).expect("it is on the list");
    world.pass(STEP * 5);
    let attach = Attach { stable: true, ..registers("bob", (BOBS, true)) };
    let call = world.begin(1, Command::Attach(attach));
    world.pass(STEP * 20);
    let reply = world.reply(1, call);
    let Some(Ok(Outcome::Attached(attached))) = reply else { panic!("{reply:?}") };
    assert_eq!(attached.restored, Some(Vec::new()));
    assert!(world.sitting(1, room).is_empty());
}

#[test]
fn a_member_that_has_left_by_itself_is_left_alone_until_it_is_named_again() {
    let (mut world, ann, bob, room) = ann_and_bob();
    world.ask(0, put(&ann, room, "bob")).expect("her room");
    world.pass(STEP * 5);
    world.leaves(1, &bob, room);
    assert!(world.as_told(0, room).on_record[0].left, "all nodes know");
    world.departs(1, &bob);
    world.come(2, "bob", BOBS);
    world.pass(STEP * 5);
    assert!(world.sitting(0, room).is_empty());
    assert_eq!(world.list(0, room), [("bob".to_owned(), Role::Member)], "it is on the list");
    world.ask(0, put(&ann, room, "bob")).expect("her room");
    world.pass(STEP * 5);
    assert_eq!(world.sitting(0, room), ["bob"]);
    // Of its own key, too.
    world.ask(0, setting(&ann, room, "ann", MemberAct::Put(Role::Lead))).expect("her room");
    world.pass(STEP * 5);
    world.leaves(0, &ann, room);
    let list = world.as_told(2, room).on_record.to_vec();
    assert_eq!((list[0].role, list[0].left), (Role::Lead, true));
}

#[test]
fn members_have_seats_once_a_split_heals_and_all_nodes_show_one_lead() {
    let (mut world, ann, _, room) = ann_and_bob();
    let bea = world.come(2, "bea", ANNS);
    world.pass(STEP * 5);
    world.groups = vec![0, 1, 1];
    let lead = |caller: &Caller, agent| setting(caller, room, agent, MemberAct::Put(Role::Lead));
    world.ask(0, lead(&ann, "bob")).expect("her room");
    world.ask(0, put(&ann, room, "bea")).expect("her room");
    world.nodes[2].now.wall_us += 1_000_000;
    world.ask(2, lead(&bea, "ann")).expect("of her key");
    world.held.clear();
    assert_eq!(world.list(0, room)[1], ("bob".to_owned(), Role::Lead));
    assert!(world.sitting(1, room).is_empty());
    world.groups = vec![0; 3];
    world.pass(RECORDS_COMPARE_EVERY * 3);
    let expect = [("ann", Role::Lead), ("bea", Role::Member), ("bob", Role::Member)];
    let expect = expect.map(|(agent, role)| (agent.to_owned(), role));
    for n in 0..3 {
        assert_eq!(world.list(n, room), expect, "at node {n}");
        assert_eq!(world.sitting(n, room), ["ann", "bea", "bob"]);
    }
}

#[test]
fn nobody_but_the_key_that_made_a_room_says_who_is_on_its_list() {
    let (mut world, ann, bob, room) = ann_and_bob();
    assert_eq!(world.ask(1, put(&bob, room, "bob")).err(), Some(Refused::NotYours));
    let lobby = world.lobby();
    assert_eq!(world.ask(0, put(&ann, lobby, "bob")).err(), Some(Refused::NotYours));
    let nobody = world.ask(0, put(&ann, room, "nobody"));
    assert_eq!(nobody.err(), Some(Refused::NoAgent("nobody".into())));
    world.ask(0, put(&ann, room, "ann")).expect("her room");
    world.pass(STEP * 5);
    // What another key signs all the same is kept, and counts for nothing.
    let at = world.nodes[0].engine.known.rooms[&room].replica.record.place_of_records(room);
    let at = at.expect("it is permanent");
    let by = signer(BOBS).expect("it is one of these tests");
    let mesh = world.nodes[0].secret.mesh_id();
    let stamp = world.nodes[0].now_stamp();
    let sign = |draft: crate::wire::record::Draft| draft.sign(&by, mesh, stamp).expect("long");
    let word = |agent: &str, key, left| Word { agent: agent.into(), key, role: Role::Lead, left };
    let lies = [
        sign(members::draft(&at, &word("bob", BOBS, false))),
        sign(members::draft(&at, &word("ann", ANNS, true))),
    ];
    for n in 0..3 {
        world.nodes[n].hear_records(&lies);
    }
    world.pass(STEP * 5);
    for n in 0..3 {
        assert!(world.nodes[n].records().contains(&lies[0]));
        assert_eq!(world.list(n, room), [("ann".to_owned(), Role::Member)]);
        assert!(!world.as_told(n, room).on_record[0].left);
        assert_eq!(world.sitting(n, room), ["ann"]);
    }
}

#[test]
fn the_word_of_a_key_that_was_replaced_names_nobody() {
    let mut world = World::new(2);
    let callers = world.presents(&[0]);
    let room = world.makes(0, &callers[0], new_room("hall", true, false));
    world.ask(0, put(&callers[0], room, "holder0")).expect("its room");
    world.pass(STEP * 10);
    assert_eq!(world.list(1, room).len(), 1);
    world.nodes[0].mints(PRINTS[3]);
    world.nodes[0].replaces(MINTED, PRINTS[3]).expect("it is there");
    world.pass(STEP * 10);
    assert!(world.list(1, room).is_empty());
}

#[test]
fn a_private_room_has_members_of_its_key_and_nobody_else_hears_of_them() {
    let mut world = World::new(3);
    let callers = world.presents(&[0, 1]);
    world.come(2, "eve", EVES);
    let room = world.makes(0, &callers[0], new_room("den", false, false));
    world.ask(0, put(&callers[0], room, "holder1")).expect_err("its id is nobody's own");
    let eves = world.ask(0, put(&callers[0], room, "eve"));
    assert!(matches!(eves, Err(Refused::Impossible(_))), "{eves:?}");
    world.ask(0, put(&callers[0], room, "holder0")).expect("its own");
    world.pass(STEP * 10);
    assert_eq!(world.sitting(1, room), ["holder0"]);
    assert_eq!(world.list(1, room), [("holder0".to_owned(), Role::Member)]);
    let told = |records: Vec<crate::wire::record::Record>| {
        records.iter().any(|record| record.collection == members::COLLECTION.number)
    };
    assert!(told(world.nodes[1].records()) && !told(world.nodes[2].records()));
    let sealed = world.nodes[0].records().into_iter().find(|record| {
        record.collection == members::COLLECTION.number && record.space != Space::Mesh
    });
    let content = sealed.expect("it is there").content().expect("it is set").to_vec();
    assert!(!content.windows(6).any(|part| part == b"holder"), "and it is sealed");
}

#[test]
fn a_shared_room_is_given_to_members_and_taken_from_keys_that_no_member_is_of() {
    let mut world = World::new(3);
    world.link();
    let ann = world.come(0, "ann", ANNS);
    let bob = world.come(1, "bob", BOBS);
    world.come(1, "ben", BOBS);
    world.pass(STEP * 5);
    let making = Command::CreateShared {
        caller: ann.clone(),
        signer: signer(ANNS),
        room: new_room("plans", false, false),
    };
    let made = world.ask(0, making).expect("she may");
    let Outcome::Room(RoomView { room, .. }) = made else { panic!("{made:?}") };
    for agent in ["bob", "ben"] {
        world.ask(0, put(&ann, room, agent)).expect("her room");
    }
    world.pass(STEP * 20);
    assert_eq!(world.sitting(1, room), ["ben", "bob"]);
    assert_eq!(world.list(1, room).len(), 2);
    world.ask(0, remove(&ann, room, "bob")).expect("it is on the list");
    world.pass(STEP * 20);
    assert_eq!(world.sitting(1, room), ["ben"]);
    assert_eq!(world.as_told(0, room).shared.as_deref(), Some(&[ANNS, BOBS].into()));
    world.ask(0, remove(&ann, room, "ben")).expect("it is on the list");
    world.pass(STEP * 20);
    assert_eq!(world.as_told(0, room).shared.as_deref(), Some(&[ANNS].into()));
    let by = bob.reader();
    assert_eq!(world.nodes[1].engine.known.may_read(&by, room), Err(Refused::NotYours));
}

#[test]
fn people_are_on_the_list_and_have_no_seats() {
    let mut world = World::new(1);
    let person = format!("u-{:.16}-ada", ANNS.to_string());
    let ann = world.come(0, "ann", ANNS);
    world.come(0, &person, ANNS);
    let room = world.makes(0, &ann, new_room("hall", true, false));
    world.ask(0, put(&ann, room, &person)).expect("her room");
    world.pass(STEP * 5);
    assert_eq!(world.list(0, room), [(person, Role::Member)]);
    assert!(world.sitting(0, room).is_empty());
}

#[test]
fn others_give_an_agent_seats_only_up_to_a_bound() {
    let (mut world, ann, bob, _) = ann_and_bob();
    let calls: Vec<_> = (0..=ENLISTED_BY_OTHERS_MAX)
        .map(|n| {
            let room = new_room(&format!("hall {n}"), true, false);
            world.begin(0, Command::CreateRoom { caller: ann.clone(), room })
        })
        .collect();
    world.pass(STEP * 40);
    for call in calls {
        let reply = world.reply(0, call);
        let Some(Ok(Outcome::Room(view))) = reply else { panic!("{reply:?}") };
        let call = world.begin(0, put(&ann, view.room, "bob"));
        assert!(matches!(world.reply(0, call), Some(Ok(_))), "her room");
    }
    world.pass(STEP * 10);
    let record = world.nodes[1].engine.known.rosters.own("bob").expect("he is there");
    assert_eq!(record.rooms.len(), ENLISTED_BY_OTHERS_MAX);
    let room = world.makes(1, &bob, new_room("own", true, false));
    let join = Command::Join { caller: bob, room };
    assert!(matches!(world.ask(1, join), Ok(Outcome::Joined(true))), "he has places of his own");
}
