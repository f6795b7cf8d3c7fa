//! Sets that were chosen so that a weaker digest than ours, an XOR of eight bytes for each member, cannot tell them apart:
//! of 65 such members some can always be left out without a trace.

use super::{world::World, *};
use crate::{
    api::import::{Import, ImportedRoom},
    name::id::sha256,
    replica::log::first_8,
};

/// More than eight bytes have bits.
const MEMBERS: u8 = 65;

/// Some of these, whose XOR is nothing.
fn without_trace(parts: &[u64]) -> Vec<usize> {
    // Gauss: for each highest bit a sum of parts that has it, and the parts in it.
    let mut with: std::collections::BTreeMap<u32, (u64, u128)> = Default::default();
    for (n, part) in parts.iter().enumerate() {
        let (mut left, mut of) = (*part, 1_u128 << n);
        while left != 0 {
            let Some((sum, parts)) = with.get(&left.leading_zeros()) else {
                with.insert(left.leading_zeros(), (left, of));
                break;
            };
            (left, of) = (left ^ sum, of ^ parts);
        }
        if left == 0 {
            return (0..parts.len()).filter(|n| of >> n & 1 == 1).collect();
        }
    }
    panic!("65 numbers of 64 bits are never independent")
}

/// The log of a member that nobody has heard of: one entry, of which no client hears, so that nobody numbers it.
fn hidden(node: &Node, room: RoomId, seed: u8) -> Run {
    let author = identity(seed);
    let facts = Facts { clock: 1, wall_ms: 0, kind: 99, visible: false };
    let entries = vec![RunEntry { facts, body: Carried::Here(vec![0x80].into()) }];
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(node.secret.mesh_id(), &author).run().clone()
}

/// As the XOR of a room's logs had it.
fn part_of_log(log: LogId) -> u64 {
    first_8(sha256(&[&log.author.0, &log.incarnation.to_be_bytes(), &1_u64.to_be_bytes()]))
}

/// One of two nodes hears of these logs, by gossip that the other one missed. Both have all soon after.
fn meet(world: &mut World, runs: Vec<Run>) {
    let [one, other] = [1, 2];
    assert_eq!(world.nodes[one].digest(), world.nodes[other].digest(), "they had the same");
    for run in &runs {
        world.nodes[one].hear(run);
    }
    let has = |world: &World, n: usize, run: &Run| {
        world.nodes[n].engine.known.rooms[&run.room].replica.logs.head_of(run.log) == 1
    };
    assert!(runs.iter().all(|run| has(world, one, run) && !has(world, other, run)));
    assert_ne!(world.nodes[one].digest(), world.nodes[other].digest());
    world.said.push(Message::Runs(runs.clone()));
    world.pass(Duration::from_secs(3));
    assert!(runs.iter().all(|run| has(world, other, run)), "it was asked for and came");
    assert_eq!(world.nodes[one].digest(), world.nodes[other].digest());
}

#[test]
fn logs_of_a_room_that_an_xor_would_not_miss_come_to_those_who_lack_them() {
    let mut world = World::new(3);
    world.link();
    world.pass(Duration::from_secs(3));
    let lobby = world.lobby();
    let runs: Vec<Run> =
        (100..100 + MEMBERS).map(|seed| hidden(&world.nodes[0], lobby, seed)).collect();
    let parts: Vec<u64> = runs.iter().map(|run| part_of_log(run.log)).collect();
    let some: Vec<Run> = without_trace(&parts).into_iter().map(|n| runs[n].clone()).collect();
    assert_eq!(some.iter().fold(0, |all, run| all ^ part_of_log(run.log)), 0);
    meet(&mut world, some);
}

/// Their ids were chosen so that all are in one bucket: those of rooms that come from elsewhere can be.
#[test]
fn rooms_that_an_xor_would_take_for_alike_come_to_be_alike() {
    let mut world = World::new(3);
    world.link();
    let rooms: Vec<RoomId> = (0..MEMBERS).map(brought).collect();
    for room in &rooms {
        let node = &mut world.nodes[0];
        node.engine.import(node.now, Import::Room(made_elsewhere(*room))).expect("it is new");
        node.turn();
        world.carry();
    }
    world.pass(Duration::from_secs(3));
    let runs: Vec<Run> = rooms.iter().map(|room| hidden(&world.nodes[0], *room, 100)).collect();
    // What an XOR over rooms changes by, when a room's own digest goes from nothing to that of this log.
    let part = |run: &Run| {
        let of = |digest: u64| first_8(sha256(&[&run.room.0, &digest.to_be_bytes()]));
        let [before, after] =
            [own_logs(&world, run.room), own_logs(&world, run.room) ^ part_of_log(run.log)];
        of(before) ^ of(after)
    };
    let parts: Vec<u64> = runs.iter().map(part).collect();
    let some: Vec<Run> = without_trace(&parts).into_iter().map(|n| runs[n].clone()).collect();
    assert_eq!(some.iter().fold(0, |all, run| all ^ part(run)), 0);
    meet(&mut world, some);
}

/// The XOR over the logs that a room has anyway.
fn own_logs(world: &World, room: RoomId) -> u64 {
    let logs = world.nodes[1].engine.known.rooms[&room].replica.logs.heads();
    logs.iter().fold(0, |all, head| {
        let (author, incarnation) = (&head.log.author.0, head.log.incarnation.to_be_bytes());
        all ^ first_8(sha256(&[author, &incarnation, &head.seq.to_be_bytes()]))
    })
}

/// An id as other servers make them: version 4.
fn brought(n: u8) -> RoomId {
    RoomId([n, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16])
}

fn made_elsewhere(room: RoomId) -> ImportedRoom {
    ImportedRoom {
        room,
        name: format!("room {}", room.0[0]),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KEY,
        created_by: "ann".into(),
        created_ms: 1_600_000_000_000,
    }
}
