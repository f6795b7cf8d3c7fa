//! A node that comes back with an old disk and goes on where it was then: its logs fork.

use std::time::Duration;

use mesh::{
    api::command::{Command, Outcome},
    name::id::NodeId,
};

use store::{Store, testing::CrashingBackend};

use super::probing::{ask, others_go_on, run};
use crate::sim::{plan::Plan, votes, world::World};

const FORKED: usize = 1;

fn plan() -> Plan {
    let (faults_end, act_every) = (Duration::from_secs(30), Duration::from_millis(20));
    Plan { faults_end, act_every, ..Plan::quiet(4) }
}

/// The nodes that have forked, as a node says.
fn forked(world: &mut World, node: usize) -> Vec<NodeId> {
    let Outcome::Status(status) = ask(world, node, Command::Status) else { panic!("it says") };
    status.forked
}

/// As many entries of its own logs as the node that is to fork has on this disk.
fn own_entries(world: &World, image: Vec<u8>) -> u64 {
    let (me, mesh) = (world.cluster.nodes[FORKED].id, world.cluster.secret.mesh_id());
    let store = Store::on(CrashingBackend::of(image, 0)).expect("a copy opens");
    let rooms = store.summary(me, Some(mesh)).expect("it is sound").rooms;
    let own = rooms.iter().flat_map(|room| &room.logs).filter(|log| log.id.author == me);
    own.map(|log| log.head).sum()
}

/// Writes, copies the disk, writes on, and comes back with the copy, alone at first.
fn world_with_a_fork(seed: u64) -> World {
    let mut world = World::new(seed, plan(), false).expect("it starts");
    run(&mut world, 4).expect("calm");
    let old = world.cluster.nodes[FORKED].image();
    let was = own_entries(&world, old.clone());
    // Its agents may be away for some seconds: then there would be one history.
    for _ in 0..10 {
        run(&mut world, 4).expect("calm");
        let now = world.cluster.nodes[FORKED].image();
        if own_entries(&world, now) > was {
            break;
        }
    }
    world.cluster.isolate(FORKED);
    world.replace_disk(FORKED, old);
    // It hears nobody, so it goes on writing where its old disk ends: a second history.
    run(&mut world, 6).expect("names and rising are about other nodes");
    world.calm_down().expect("all start");
    run(&mut world, 10).expect("others keep every promise");
    world
}

#[test]
fn a_fork_is_found_and_told_by_everybody_and_stops_nobody_else() {
    for seed in 0..4 {
        let mut world = world_with_a_fork(seed);
        let author = world.cluster.nodes[FORKED].id;
        for node in (0..4).filter(|node| *node != FORKED) {
            assert_eq!(forked(&mut world, node), vec![author], "seed {seed}, node{node}");
        }
        let others = others_go_on(&mut world, author, 6);
        for other in &others.nodes {
            let mine: Vec<_> = world.promises.seen(*other, others.lobby).into_iter().collect();
            let theirs: Vec<_> = others.seen.iter().copied().collect();
            let honest = |entries: Vec<crate::sim::promises::Entry>| {
                entries.into_iter().filter(|entry| entry.0.author != author).collect::<Vec<_>>()
            };
            assert_eq!(honest(mine), honest(theirs), "seed {seed}");
        }
        votes::end::others_say_the_same(&mut world, Some(FORKED))
            .unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
        for other in &others.nodes {
            let i = world.cluster.index(*other).expect("it is one of them");
            let running = world.cluster.nodes[i].running.as_ref().expect("it runs");
            let evidence = running.reader.evidence().expect("a sound store reads");
            assert!(!evidence.is_empty(), "seed {seed}: node{i} keeps no evidence");
            assert!(evidence.iter().all(|(seal, _)| seal.log.author == author));
        }
    }
}
