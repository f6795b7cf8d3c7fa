//! The answers of nodes about keys and rooms, asked in the end.

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::command::{AgentView, Command, Outcome, Refused},
    name::{
        group::Group,
        id::{AgentId, KeyPrint},
    },
};

use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

pub(super) type Answer = Result<Outcome, Refused>;

/// The answers of nodes to these, all asked at once.
pub(super) fn of_each(
    world: &mut World,
    asks: Vec<(usize, Command)>,
) -> Result<Vec<Answer>, Broken> {
    let World { probes, cluster, .. } = world;
    let calls = asks.into_iter().map(|(node, command)| probes.ask(cluster, node, command));
    let calls: Vec<_> = calls.collect();
    for _ in 0..1_000 {
        if calls.iter().all(|call| world.probes.is_answered(*call)) {
            break;
        }
        world.go_on(Duration::from_millis(5))?;
    }
    match calls.iter().map(|call| world.probes.take(*call)).collect() {
        Some(answers) => Ok(answers),
        None => broken("replies", "a node does not answer in the end".to_owned()),
    }
}

/// Each node's answer to one question.
pub(super) fn of_all(world: &mut World, command: &Command) -> Result<Vec<Answer>, Broken> {
    let nodes = 0..world.cluster.nodes.len();
    of_each(world, nodes.map(|node| (node, command.clone())).collect())
}

/// An agent of a minted key registers at every node.
pub(super) fn of_all_to_its_registration(
    world: &mut World,
    holder: usize,
) -> Result<Vec<Answer>, Broken> {
    let nodes = 0..world.cluster.nodes.len();
    of_each(world, nodes.map(|node| (node, registration(world, holder, node))).collect())
}

/// It takes over whatever is connected under its id, and brings no secret of its key's rooms.
pub(super) fn registration(world: &World, holder: usize, node: usize) -> Command {
    let at = world.cluster.log_of(node);
    Command::Attach(world.holders.attach_of(holder, &at, true, None))
}

pub(super) fn is_valid(world: &World, key: usize) -> bool {
    world.holders.valid.contains(&world.holders.keys[key].print)
}

pub(super) fn follows(world: &World, node: usize, key: KeyPrint) -> bool {
    world.cluster.rooms.follows(world.cluster.nodes[node].id, Group::Key(key))
}

/// Members in order, each there once.
pub(super) fn once_each(node: usize, agents: &[AgentView]) -> Result<Vec<(AgentId, u64)>, Broken> {
    let mut ids = BTreeSet::new();
    if let Some(twice) = agents.iter().find(|agent| !ids.insert(&agent.agent)) {
        return broken("ids", format!("{} sits twice at node{node}", twice.agent));
    }
    Ok(agents.iter().map(|agent| (agent.agent.clone(), agent.connected_ms)).collect())
}
