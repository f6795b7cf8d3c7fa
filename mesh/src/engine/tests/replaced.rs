//! States that records have replaced: what is kept, and what others are asked for.

use std::collections::BTreeMap;

use super::{
    files::{file, put, remove},
    world::World,
    *,
};
use crate::{
    api::{
        batch::ReplacedChange,
        command::{GatherReplaced, Reader},
    },
    limits::{INQUIRY_FOR, REPLACED_ENDS_EVERY, REPLACED_FOR},
    records::files as of_files,
    wire::{
        record::{Record, RecordKey, Space, Stamp},
        replaced::{ReplacedState, SentReplaced, WantedReplaced},
    },
};

/// A state, and its bytes if they are here.
type States = BTreeMap<(RecordKey, Stamp), (Record, Option<Vec<u8>>)>;

impl Node {
    /// The states that its store keeps, as the changes say.
    fn replaced(&self) -> States {
        let mut records: BTreeMap<(Space, RecordKey), Record> = BTreeMap::new();
        let mut contents: BTreeMap<(Space, RecordKey), Vec<u8>> = BTreeMap::new();
        let mut kept = States::new();
        for row in &self.rows {
            match row {
                Change::Replaced { space, key, change: ReplacedChange::Keep { .. }, .. } => {
                    let record = records[&(*space, *key)].clone();
                    let bytes = contents.get(&(*space, *key)).cloned();
                    kept.insert((*key, record.stamp), (record, bytes));
                }
                Change::Replaced {
                    key,
                    change: ReplacedChange::Heard { record, bytes, .. },
                    ..
                } => {
                    let state = kept.entry((*key, record.stamp));
                    let (_, held) = state.or_insert_with(|| (Record::clone(record), None));
                    *held = held.take().or_else(|| bytes.clone());
                }
                Change::Replaced { key, change: ReplacedChange::Drop, .. } => {
                    kept.retain(|(of, _), _| of != key);
                }
                Change::Record { space, key, record: Some(record), .. } => {
                    records.insert((*space, *key), Record::clone(record));
                }
                Change::Content { space, key, bytes: Some(bytes), .. } => {
                    contents.insert((*space, *key), bytes.to_vec());
                }
                Change::Content { space, key, bytes: None, .. } => {
                    contents.remove(&(*space, *key));
                }
                _ => {}
            }
        }
        kept
    }

    /// As its store answers a peer.
    pub(super) fn tells_replaced(&self, wanted: &WantedReplaced) -> SentReplaced {
        let states = self.replaced().into_values().filter(|(record, _)| {
            record.id.0.starts_with(wanted.ids.beginning())
                && wanted.stamp.is_none_or(|stamp| stamp == record.stamp)
        });
        let states = states.map(|(record, bytes)| {
            let bytes = bytes.filter(|_| wanted.stamp.is_some()).map(Into::into);
            ReplacedState { record, bytes, left_ms: u64::MAX }
        });
        SentReplaced { nonce: wanted.nonce, states: states.collect() }
    }
}

fn gather(caller: &Caller, room: RoomId, file: Option<(&str, Option<Stamp>)>) -> Command {
    let by = Reader { key: caller.key, agent: Some(caller.agent.clone()) };
    let file = file.map(|(path, stamp)| (path.to_owned(), stamp));
    Command::GatherReplaced(Box::new(GatherReplaced { by, room, file }))
}

impl World {
    /// All have answered.
    fn gathers(&mut self, n: usize, command: Command) {
        let call = self.begin(n, command);
        self.carry();
        assert!(matches!(self.reply(n, call), Some(Ok(Outcome::Done))));
    }

    /// Time passes in which nothing happens.
    fn jump(&mut self, time: Duration) {
        for node in &mut self.nodes {
            node.now.mono += time;
            node.now.wall_ms += u64::try_from(time.as_millis()).unwrap();
            node.now.wall_us += u64::try_from(time.as_micros()).unwrap();
            node.give(Input::Timeout);
        }
    }
}

#[test]
fn the_other_side_of_a_split_is_fetched_back_by_those_who_never_had_it() {
    for public in [true, false] {
        let mut world = World::new(3);
        let callers = world.presents(&[0, 1]);
        let hall = super::room_records::new_room("hall", public, false);
        let room = world.makes(0, &callers[0], hall);
        world.ask(0, put(&callers[0], room, file("plan", b"first"))).expect("its key");
        world.groups = vec![0, 1, 0];
        world.ask(0, put(&callers[0], room, file("plan", b"of one side"))).expect("its key");
        world.nodes[1].now.wall_us += 1_000_000;
        world.nodes[1].now.wall_ms += 1_000;
        world.ask(1, put(&callers[1], room, file("plan", b"of the other"))).expect("its key");
        world.held.clear();
        world.groups = vec![0; 3];
        for _ in 0..200 {
            world.pass(super::world::STEP);
            if world.nodes[0].bytes(room, "plan").as_deref() == Some(b"of the other") {
                break;
            }
        }
        for n in [0, 1] {
            let bytes = world.nodes[n].bytes(room, "plan");
            assert_eq!(bytes.as_deref(), Some(&b"of the other"[..]), "node{n}, {public}");
        }
        let count = |world: &World, n: usize| world.nodes[n].replaced().len();
        assert_eq!((count(&world, 0), count(&world, 1)), (2, 1), "{public}");
        world.gathers(1, gather(&callers[1], room, None));
        assert_eq!(count(&world, 1), 2, "by their names");
        let heard = world.nodes[1].replaced().into_values().find(|(_, bytes)| bytes.is_none());
        let (record, _) = heard.expect("the state that it never had");
        let asked = gather(&callers[1], room, Some(("plan", Some(record.stamp))));
        world.gathers(1, asked);
        let key = RecordKey { id: record.id, owner: Some(record.owner()) };
        let (_, bytes) = world.nodes[1].replaced().remove(&(key, record.stamp)).expect("kept");
        let at = world.nodes[1].place(room);
        let name = of_files::apart_name(record.id, record.owner());
        let bytes = bytes.and_then(|bytes| at.cover.read_apart(&name, bytes));
        assert_eq!(bytes.as_deref(), Some(&b"of one side"[..]), "{public}");
        // A node without the key of a private room is asked nothing, and tells nothing.
        let told = world.told_to.iter().any(|(to, bytes)| {
            *to == 2 && matches!(Message::decode(bytes), Ok(Message::WantReplaced(_)))
        });
        assert_eq!(told, public);
        // Deleted is gone.
        world.ask(0, remove(&callers[0], room, "plan")).expect("it is there");
        for n in 0..3 {
            assert_eq!(count(&world, n), 0, "node{n}, {public}");
        }
    }
}

#[test]
fn nobody_is_waited_for_longer_than_a_second_and_nothing_else_is_taken() {
    let mut world = World::new(2);
    let callers = world.presents(&[0, 1]);
    let hall = super::room_records::new_room("hall", true, false);
    let room = world.makes(0, &callers[0], hall);
    for text in [b"one".as_slice(), b"two", b"three"] {
        world.ask(0, put(&callers[0], room, file("plan", text))).expect("its key");
    }
    let mut now = world.nodes[0].records().into_iter();
    let now = now.find(|record| record.collection == of_files::COLLECTION.number).expect("a file");
    world.groups = vec![0, 1];
    let call = world.begin(0, gather(&callers[0], room, Some(("plan", None))));
    world.carry();
    assert!(world.reply(0, call).is_none(), "it waits for the other");
    let nonce = match &world.held[..] {
        [.., (_, _, message)] => match message {
            Message::WantReplaced(wanted) => wanted.nonce,
            other => panic!("{other:?}"),
        },
        [] => panic!("nothing was asked"),
    };
    let (from, kept) = (world.nodes[1].engine.known.cx.me, world.nodes[0].replaced().len());
    let node = &mut world.nodes[0];
    let says = |nonce: u64, record: Record| {
        let state = ReplacedState { record, bytes: None, left_ms: u64::MAX };
        let message = Message::Replaced(SentReplaced { nonce, states: vec![state] });
        message.verify(node.secret.mesh_id())
    };
    let current = says(nonce, now.clone()).expect("its owner has signed it");
    let of_another = says(nonce + 1, now.clone()).expect("its owner has signed it");
    let forged = Record { stamp: Stamp(now.stamp.0 - 1), ..now };
    assert!(says(nonce, forged).is_err(), "a strike");
    node.give(Input::Message { from, message: of_another });
    assert!(node.reply(call).is_none(), "that is the answer to another question");
    node.give(Input::Message { from, message: current });
    assert!(matches!(node.reply(call), Some(Ok(Outcome::Done))));
    assert_eq!(node.replaced().len(), kept, "the state that shows has been replaced by none");
    let lobby = world.lobby();
    world.ask(0, gather(&callers[0], lobby, None)).expect("it has no files");
    let call = world.begin(0, gather(&callers[0], room, None));
    world.pass(INQUIRY_FOR + super::world::STEP);
    assert!(matches!(world.reply(0, call), Some(Ok(Outcome::Done))), "by its time");
}

#[test]
fn the_store_is_told_when_their_time_is_over() {
    let mut world = World::new(1);
    let callers = world.presents(&[0]);
    let hall = super::room_records::new_room("hall", true, false);
    let room = world.makes(0, &callers[0], hall);
    world.jump(REPLACED_FOR + REPLACED_ENDS_EVERY * 3);
    let ends = |world: &World| {
        let is_end = |row: &&Change| matches!(row, Change::ReplacedEnd { .. });
        world.nodes[0].rows.iter().filter(is_end).count()
    };
    let before = ends(&world);
    world.jump(REPLACED_ENDS_EVERY * 3);
    assert_eq!(ends(&world), before, "a node that replaces nothing writes nothing");
    for text in [b"one", b"two"] {
        world.ask(0, put(&callers[0], room, file("plan", text))).expect("its key");
    }
    for _ in 0..25 {
        world.jump(REPLACED_ENDS_EVERY);
    }
    assert!(ends(&world) > before);
    let last = world.nodes[0].rows.iter().rev().find_map(|row| match row {
        Change::ReplacedEnd { now_ms } => Some(*now_ms),
        _ => None,
    });
    let until = world.nodes[0].rows.iter().find_map(|row| match row {
        Change::Replaced { change: ReplacedChange::Keep { until_ms }, .. } => Some(*until_ms),
        _ => None,
    });
    assert!(last >= until && until.is_some(), "{last:?} {until:?}");
}
