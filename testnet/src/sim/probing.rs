//! A world that a test leads step by step.

use std::time::Duration;

use mesh::{
    Input,
    api::command::{Command, Outcome},
};

use super::{promises::Broken, world::World};

/// Lets so many seconds pass.
pub(super) fn run(world: &mut World, seconds: u64) -> Result<(), Broken> {
    let until = world.now + Duration::from_secs(seconds);
    world.run_until(until)
}

/// What a node answers.
pub(super) fn ask(world: &mut World, node: usize, command: Command) -> Outcome {
    let call = world.call();
    world.probe = Some((call, None));
    world.give(node, Input::Command { call, command });
    run(world, 1).expect("no promise is touched");
    match world.probe.take() {
        Some((_, Some(Ok(outcome)))) => outcome,
        other => panic!("node{node} did not say: {other:?}"),
    }
}
