//! Things that are carried for others, and what is owed.

use std::sync::Arc;

use mesh::{
    api::batch::Change,
    name::id::{LogId, NodeId},
    wire::{
        carry::{Awaited, Carriage, CarriedAt, Load, Owed},
        message::{Head, Message},
        run::Run,
        seal::Token,
    },
};
use store::{Store, carried};

use crate::rows::*;

const OF: NodeId = NodeId([7; 32]);
const FOR: NodeId = NodeId([8; 32]);

fn log() -> LogId {
    LogId { author: NodeId([9; 32]), incarnation: 0 }
}

fn load(first: u64) -> (CarriedAt, Load) {
    let (backlink, seal) = ([3; 32], [4; 64]);
    let entry = mesh::wire::run::RunEntry {
        facts: mesh::wire::entry::Facts { clock: first, wall_ms: 5, kind: 1, visible: true },
        body: mesh::wire::run::Carried::Here(vec![6; 20].into()),
    };
    let entries = vec![entry.clone(), entry];
    let run = Run { room: ROOM, log: log(), first, backlink, entries, seal };
    let at = CarriedAt { of: OF, room: ROOM, log: log(), after: first - 1 };
    (at, Load::Run(run, Vec::new()))
}

fn carries(first: u64) -> Change {
    let (at, load) = load(first);
    Change::Load { at, since_ms: 77, load: Some(Arc::new(load)) }
}

fn carriage() -> Carriage {
    let heads = vec![Head { log: log(), seq: 3 }];
    let awaited = Awaited { node: FOR, pass: Token([5; 16]), heads };
    Carriage { nodes: vec![awaited], asked_ms: 66 }
}

#[test]
fn what_is_carried_is_there_after_a_start_and_given_on_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let heads = Some(vec![Head { log: log(), seq: 1 }]);
    let owed = Owed { met: false, heads, records: Some(4) };
    let row = Change::Owed { room: ROOM, node: FOR, owed: Some(owed.clone()) };
    let carriage = carriage();
    let asked = Change::Carriage { of: OF, room: ROOM, carriage: Some(carriage.clone()) };
    store.commit(&[asked, carries(1), carries(3), row]).unwrap();
    drop(store);
    let mut store = Store::open(dir.path()).unwrap();
    let summary = store.summary(NodeId([1; 32]), Some(MESH)).unwrap();
    assert_eq!(summary.carriages, [(OF, ROOM, carriage)]);
    assert_eq!(summary.owed, [(ROOM, FOR, owed)]);
    let heads: Vec<(u64, u64, u64)> =
        summary.carried.iter().map(|(at, head)| (at.after, head.upto, head.since_ms)).collect();
    assert_eq!(heads, [(0, 2, 77), (2, 4, 77)]);
    let both = [load(1).0, load(3).0];
    let given = carried::give_on(&store.reader(), &both).unwrap();
    let Some(Message::Parcel(parcel)) = given else { panic!("{given:?}") };
    assert_eq!((parcel.of, parcel.room, parcel.runs.len()), (Some(OF), ROOM, 2));
    assert_eq!(Load::Run(parcel.runs[1].clone(), Vec::new()), load(3).1);
    // One that was dropped is given no more.
    let none = Change::Load { at: both[0], since_ms: 77, load: None };
    let paid = Change::Owed { room: ROOM, node: FOR, owed: None };
    store.commit(&[none, paid]).unwrap();
    let given = carried::give_on(&store.reader(), &both).unwrap();
    let Some(Message::Parcel(parcel)) = given else { panic!("{given:?}") };
    assert_eq!(parcel.runs.len(), 1);
    let summary = store.summary(NodeId([1; 32]), Some(MESH)).unwrap();
    assert_eq!((summary.carried.len(), summary.owed.len()), (1, 0));
}
