//! A world that a test leads step by step.

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::command::{Command, Outcome},
    name::id::{NodeId, RoomId},
};

use crate::sim::{
    promises::{Broken, Entry},
    world::World,
};

/// Lets so many seconds pass.
pub(super) fn run(world: &mut World, seconds: u64) -> Result<(), Broken> {
    world.go_on(Duration::from_secs(seconds))
}

/// A node's answer.
pub(super) fn ask(world: &mut World, node: usize, command: Command) -> Outcome {
    let call = world.probes.ask(&mut world.cluster, node, command);
    run(world, 1).expect("no promise is touched");
    match world.probes.take(call) {
        Some(Ok(outcome)) => outcome,
        other => panic!("node{node} did not say: {other:?}"),
    }
}

/// The nodes that go on without one of them.
pub(super) struct Others {
    pub(super) nodes: Vec<NodeId>,
    pub(super) lobby: RoomId,
    /// All that the first of them has delivered in the lobby.
    pub(super) seen: BTreeSet<Entry>,
}

/// The nodes but `absent` speak in the lobby: at least so many new messages are delivered by all of them, under one number.
pub(super) fn others_go_on(world: &mut World, absent: NodeId, messages: usize) -> Others {
    world.cluster.quiet = true;
    run(world, 2).expect("others keep every promise");
    let lobby = world.cluster.lobby();
    let nodes = world.cluster.nodes.iter().map(|node| node.id);
    let nodes: Vec<NodeId> = nodes.filter(|id| *id != absent).collect();
    let before = world.promises.seen(nodes[0], lobby);
    world.agents.everybody_joins(&mut world.cluster);
    run(world, 1).expect("others keep every promise");
    world.agents.everybody_speaks(&mut world.cluster);
    run(world, 10).expect("others keep every promise");
    let seen = world.promises.seen(nodes[0], lobby);
    assert!(seen.len() >= before.len() + messages, "{} to {}", before.len(), seen.len());
    let fresh = |entry: &Entry| entry.0.author != absent && !before.contains(entry);
    world.promises.agree(&nodes, lobby, fresh).unwrap_or_else(|broken| panic!("{broken:?}"));
    Others { nodes, lobby, seen }
}
