//! A world that a test leads step by step.

use std::time::Duration;

use mesh::api::command::{Command, Outcome};

use crate::sim::{promises::Broken, world::World};

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
