use super::{naming::Named, *};
use crate::{
    limits::AGENT_ID_BYTES_MAX,
    name::{id::LocalRef, number::Era},
    wire::{
        entry::{Facts, NodeAdmitted},
        signatures::{
            SignedLog,
            testing::{PRINTS, claimed, minted},
        },
    },
};

const MESH: MeshId = MeshId([9; 16]);
const DIRECTORY: RoomId = RoomId([7; 16]);

fn log(author: u8) -> LogId {
    LogId { author: NodeId([author; 32]), incarnation: 0 }
}

fn fact(author: u8, seq: u64, body: Body) -> Fact {
    let facts = Facts { clock: seq, wall_ms: 0, kind: 33, visible: true };
    let at = LocalRef { log: u32::from(author), seq };
    Fact { room: DIRECTORY, at, log: log(author), facts, body }
}

/// A public room called "plan", by the first entry of this author's log.
fn plan(author: u8) -> Fact {
    let room = room_id(MESH, DIRECTORY, log(author), 1);
    let created = RoomCreated {
        room,
        name: "plan".to_owned(),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KeyPrint([author; 16]),
        created_by: "agent".into(),
        imported: None,
    };
    fact(author, 1, Body::RoomCreated(created))
}

fn id(author: u8) -> RoomId {
    room_id(MESH, DIRECTORY, log(author), 1)
}

#[test]
fn of_two_rooms_of_one_name_the_lower_number_keeps_it_in_whatever_order_they_come() {
    let other = Era::new(1, 5).expect("an era");
    let cases = [
        (Number(4), Number(9), Named::Void),
        (Number(4), other.number(1), Named::Name("plan (02020202)".into())),
    ];
    for (first, second, loser) in cases {
        for swap in [false, true] {
            let mut directory = Directory::default();
            let mut facts = vec![(plan(1), first), (plan(2), second)];
            if swap {
                facts.reverse();
            }
            for (fact, number) in facts {
                directory.learn(MESH, fact, &[number]);
            }
            assert_eq!(directory.name(id(1)), Named::Name("plan".into()), "{first:?}");
            assert_eq!(directory.name(id(2)), loser, "{second:?}");
        }
    }
}

/// The creator of the second room was told, by the other side of a split, that it is made. Later it
/// gets a number of the first one's side, too.
#[test]
fn a_room_that_one_era_numbered_first_is_never_void() {
    let other = Era::new(1, 5).expect("an era");
    let called = Named::Name("plan (02020202)".into());
    let numbers = [other.number(3), Number(9), other.number(8)];
    for turn in 0..numbers.len() {
        let mut directory = Directory::default();
        let mut numbers = numbers;
        numbers.rotate_left(turn);
        let (known, later) = numbers.split_at(turn);
        directory.learn(MESH, plan(1), &[Number(4), other.number(5)]);
        directory.learn(MESH, plan(2), known);
        let fact = plan(2);
        for number in later {
            directory.renumber((fact.room, fact.at), *number);
        }
        assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
        assert_eq!(directory.name(id(2)), called, "{turn}");
    }
}

/// Seed 30296 of the simulation: a room was void when its node made another one of the name, and got a number then
/// that made it valid.
#[test]
fn rooms_that_give_way_have_names_of_their_own_also_if_one_node_made_them() {
    let eras = [1, 2, 3].map(|c| Era::new(c, 5).expect("an era"));
    let again = |author: u8| {
        let mut it = plan(author);
        it.at.seq = 2;
        if let Body::RoomCreated(created) = &mut it.body {
            created.room = room_id(MESH, DIRECTORY, log(author), 2);
        }
        it
    };
    let mut directory = Directory::default();
    let facts = [plan(1), plan(2), again(2), plan(3), again(1)];
    let numbers = [Number(4), eras[0].number(1), eras[1].number(1), eras[2].number(1)];
    for (fact, number) in facts.into_iter().zip(numbers.into_iter().chain([eras[2].number(9)])) {
        directory.learn(MESH, fact, &[number]);
    }
    let ids = [(1, 1), (2, 1), (2, 2), (3, 1)];
    let names = ids.map(|(author, seq)| {
        let id = room_id(MESH, DIRECTORY, log(author), seq);
        match directory.name(id) {
            Named::Name(name) => name.to_string(),
            Named::Void | Named::NotYet => panic!("it was the first of its era"),
        }
    });
    assert_eq!(names, ["plan", "plan (02020202)", "plan (02020202 2)", "plan (03030303)"]);
}

#[test]
fn a_room_that_every_era_numbered_later_is_void() {
    let other = Era::new(1, 5).expect("an era");
    let mut directory = Directory::default();
    directory.learn(MESH, plan(1), &[Number(4), other.number(2)]);
    directory.learn(MESH, plan(2), &[Number(5), other.number(3)]);
    assert_eq!(directory.name(id(2)), Named::Void);
}

#[test]
fn a_room_has_no_name_before_it_has_a_number() {
    let mut directory = Directory::default();
    directory.learn(MESH, plan(1), &[]);
    assert_eq!(directory.name(id(1)), Named::NotYet);
    assert!(directory.is_taken("plan", KeyPrint([5; 16])), "nobody else may ask for it");
    let fact = plan(1);
    directory.renumber((fact.room, fact.at), Number(3));
    assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
}

#[test]
fn nobody_can_create_a_room_under_an_id_that_is_not_theirs() {
    let mut directory = Directory::default();
    let mut stolen = plan(2);
    if let Body::RoomCreated(created) = &mut stolen.body {
        created.room = id(1);
    }
    assert_eq!(directory.learn(MESH, stolen, &[Number(1)]), Learned::Nothing);
    assert!(directory.room(id(1)).is_none());
}

#[test]
fn an_agent_id_belongs_to_the_claim_with_the_lowest_number() {
    let claim = |author, key| {
        let body = claimed(MESH, "me", PRINTS[key]);
        fact(author, 1, Body::AgentClaimed(body))
    };
    let mut directory = Directory::default();
    directory.learn(MESH, claim(1, 1), &[]);
    assert_eq!(directory.owner("me"), Some((PRINTS[1], false)));
    directory.learn(MESH, claim(2, 2), &[Number(7)]);
    assert_eq!(directory.owner("me"), Some((PRINTS[2], true)));
    directory.renumber((DIRECTORY, LocalRef { log: 1, seq: 1 }), Number(6));
    assert_eq!(directory.owner("me"), Some((PRINTS[1], true)));
    assert_eq!(directory.claimed_by(NodeId([1; 32]), PRINTS[1]), 1);
    directory.forget(MESH, DIRECTORY, EntryRef { log: log(1), seq: 1 });
    assert_eq!(directory.claimed_by(NodeId([1; 32]), PRINTS[1]), 0);
    assert_eq!(directory.owner("me"), Some((PRINTS[2], true)));
}

#[test]
fn of_two_equal_lanes_the_later_one_has_to_be_drawn_again() {
    let admitted = |author, seq| {
        let body = NodeAdmitted { lane: 5, name: String::new(), relay: None };
        fact(author, seq, Body::NodeAdmitted(body))
    };
    let mut directory = Directory::default();
    directory.learn(MESH, admitted(1, 1), &[]);
    directory.learn(MESH, admitted(2, 2), &[]);
    assert!(!directory.nodes.lane_clashes(NodeId([1; 32])));
    assert!(directory.nodes.lane_clashes(NodeId([2; 32])));
}

/// A room of this author, as it is made in the directory that all have.
fn made(author: u8, change: impl FnOnce(&mut RoomCreated)) -> Fact {
    let mut fact = plan(author);
    let Body::RoomCreated(created) = &mut fact.body else { panic!("it is") };
    change(created);
    fact
}

#[test]
fn ids_of_rooms_are_uuids_of_a_form_that_no_server_gave() {
    let ids: Vec<RoomId> = (0..64).map(|seq| room_id(MESH, DIRECTORY, log(1), seq)).collect();
    assert!(ids.iter().all(|id| id.0[6] >> 4 == 8 && id.0[8] >> 6 == 2));
    assert!(ids.iter().all(|id| !is_foreign_id(*id)));
    for (byte, varies) in [(6, 12), (8, 32)] {
        let all: BTreeSet<u8> = ids.iter().map(|id| id.0[byte]).collect();
        assert!(all.len() > varies, "byte {byte} is of the hash: {all:?}");
    }
}

#[test]
fn rooms_that_cannot_see_each_other_have_one_name_and_others_do_not() {
    let cases = [
        // Public, of one key, and the name of the later one.
        ([true, true], false, Named::Void),
        ([false, false], true, Named::Void),
        ([false, false], false, Named::Name("plan".into())),
        ([false, true], false, Named::Name("plan".into())),
    ];
    for (public, alike, second) in cases {
        let mut directory = Directory::default();
        for (author, number) in [(1, Number(4)), (2, Number(9))] {
            let fact = made(author, |it| {
                it.public = public[usize::from(author - 1)];
                it.owner = KeyPrint([if alike { 7 } else { author }; 16]);
            });
            directory.learn(MESH, fact, &[number]);
        }
        assert_eq!(directory.name(id(1)), Named::Name("plan".into()), "{public:?} {alike}");
        assert_eq!(directory.name(id(2)), second, "{public:?} {alike}");
    }
}

#[test]
fn a_name_is_its_first_ones_before_the_second_has_a_number() {
    let mut directory = Directory::default();
    directory.learn(MESH, plan(1), &[Number(4)]);
    directory.learn(MESH, plan(2), &[]);
    assert_eq!(directory.name(id(1)), Named::Name("plan".into()));
    assert_eq!(directory.name(id(2)), Named::NotYet);
    assert_eq!(directory.room_count(), 2);
}

#[test]
fn a_room_is_called_and_described_as_it_may_be_or_is_none() {
    let taken = |change: &dyn Fn(&mut RoomCreated)| {
        let mut directory = Directory::default();
        directory.learn(MESH, made(1, change), &[Number(1)]) != Learned::Nothing
    };
    assert!(taken(&|it| it.name = "x".repeat(NAME_BYTES_MAX)));
    assert!(!taken(&|it| it.name = "x".repeat(NAME_BYTES_MAX + 1)));
    assert!(!taken(&|it| it.name = String::new()) && !taken(&|it| it.name = "lobby".into()));
    assert!(taken(&|it| it.description = Some("x".repeat(DESCRIPTION_BYTES_MAX))));
    assert!(!taken(&|it| it.description = Some("x".repeat(DESCRIPTION_BYTES_MAX + 1))));
}

#[test]
fn agent_ids_are_as_long_as_they_may_be() {
    let mut directory = Directory::default();
    let claim = |agent: &str| claimed(MESH, agent, PRINTS[1]);
    for (seq, len) in [(1, AGENT_ID_BYTES_MAX), (2, AGENT_ID_BYTES_MAX + 1)] {
        let body = Body::AgentClaimed(claim(&"x".repeat(len)));
        let learned = directory.learn(MESH, fact(1, seq, body), &[Number(seq)]);
        assert_eq!(learned == Learned::Nothing, len > AGENT_ID_BYTES_MAX);
    }
}

#[test]
fn nodes_are_called_by_their_names_or_ids_and_have_their_newest_lanes() {
    let mut directory = Directory::default();
    let node = |author: u8| log(author).author;
    let long = "é".repeat(NAME_BYTES_MAX);
    for (author, seq, lane, name) in
        [(1, 1, 5, "one"), (1, 2, 6, "one"), (2, 1, 7, ""), (3, 1, 8, &*long)]
    {
        let it = NodeAdmitted { lane, name: name.to_owned(), relay: None };
        let learned = directory.learn(MESH, fact(author, seq, Body::NodeAdmitted(it)), &[]);
        assert_eq!(learned, Learned::Lane(node(author)));
    }
    assert_eq!(directory.node_name(node(1)), "one");
    assert_eq!(directory.node_name(node(2)), node(2).short());
    assert_eq!(directory.node_name(node(4)), node(4).short());
    assert_eq!(directory.node_name(node(3)).chars().count(), NAME_BYTES_MAX / 4);
    let lanes = [1, 2, 3, 4].map(|author| directory.nodes.lane_of(node(author)));
    assert_eq!(lanes, [Some(6), Some(7), Some(8), None]);
    let all = [(5, node(1)), (6, node(1)), (7, node(2)), (8, node(3))];
    assert!(directory.nodes.lanes().eq(all));
}

#[test]
fn keys_of_the_part_of_a_log_that_does_not_count_are_none_in_its_directory_alone() {
    let print = PRINTS[8];
    let signed = SignedLog { mesh: MESH, node: log(1).author };
    let minted = minted(&signed, print, crate::wire::acts::Tier::Low);
    let mesh = RoomId::directory(MESH);
    for (room, other) in [(mesh, DIRECTORY), (DIRECTORY, mesh)] {
        let mut directory = Directory::default();
        let body = Body::Key(crate::wire::acts::KeyAct::Minted(minted.clone()));
        directory.learn(MESH, Fact { room, ..fact(1, 3, body) }, &[]);
        directory.forget(MESH, other, EntryRef { log: log(1), seq: 1 });
        assert!(directory.keys().knows(print));
        directory.forget(MESH, room, EntryRef { log: log(1), seq: 3 });
        assert!(!directory.keys().knows(print));
    }
}

/// A number of an era that another node had.
const LOST: Number = Number(9);

/// Two rooms of two sides: one numbered the first alone, the other one numbered both. The numbers come in any order, and
/// that one does not count.
#[test]
fn a_number_of_who_is_out_decides_nothing_where_one_counts() {
    let other = Era::new(1, 5).expect("an era");
    for order in 0..6 {
        let mut directory = Directory::default();
        directory.learn(MESH, plan(1), &[other.number(1)]);
        directory.learn(MESH, plan(2), &[]);
        let source = (DIRECTORY, LocalRef { log: 2, seq: 1 });
        let named = |directory: &Directory| [1, 2].map(|author| directory.name(id(author)));
        let without_lead = |directory: &Directory, author| {
            let room = directory.room(id(author)).expect("it is there");
            directory.has_lost_its_lead(room)
        };
        let mut steps = vec![LOST, other.number(4)];
        if order % 2 == 1 {
            steps.reverse();
        }
        for step in 0..3 {
            if step == order / 2 {
                directory.lose(&[(DIRECTORY, LOST), (RoomId([8; 16]), other.number(1))]);
            } else if let Some(number) = steps.pop() {
                directory.renumber(source, number);
            }
        }
        let plain = Named::Name("plan".into());
        assert_eq!(named(&directory), [plain.clone(), Named::Void], "{order}");
        // Its creator was told that it is made: its node numbers it once more, before all others.
        assert!(without_lead(&directory, 2) && !without_lead(&directory, 1), "{order}");
        assert_eq!(directory.lost_a_number(log(2).author), [id(2)], "{order}");
        assert_eq!(directory.lost_a_number(log(1).author), [], "{order}");
        directory.renumber(source, Era::new(2, 7).expect("an era").number(1));
        let apart = Named::Name("plan (02020202)".into());
        assert_eq!(named(&directory), [plain, apart], "{order}");
        assert!(!without_lead(&directory, 2), "{order}");
    }
}

#[test]
fn a_number_of_who_is_out_is_better_than_none_and_what_it_gave_before_counts() {
    let mut directory = Directory::default();
    for (author, number) in [(1, Number(4)), (2, Number(9)), (4, Number(10))] {
        directory.learn(MESH, plan(author), &[number]);
    }
    let plain = Named::Name("plan".into());
    for (from, lead) in [(11, None), (10, None), (9, None), (9, None), (4, Some(1)), (10, Some(1))]
    {
        directory.lose(&[(DIRECTORY, Number(from))]);
        let names = [1, 2, 4].map(|author| directory.name(id(author)));
        assert_eq!(names, [plain.clone(), Named::Void, Named::Void], "{from}");
        // The creator of one of the others was told that it is none.
        let without = |it: &u8| directory.has_lost_its_lead(&directory.rooms[&id(*it)]);
        assert_eq!([1, 2, 4].into_iter().find(without), lead, "{from}");
    }
}
