//! The answers of all nodes in the end: one question, asked of all at once.

use std::{collections::BTreeMap, time::Duration};

use mesh::api::command::Command;

use super::{cluster::Cluster, parts::Matter, promises::Broken, world::World};

/// How long nodes take to answer what they know.
const ANSWERED_WITHIN: Duration = Duration::from_millis(20);

/// A matter in its world.
pub(super) trait Told: Matter<Asked: Clone> {
    fn of(world: &mut World) -> (&mut Self, &mut Cluster);
}

/// Every running node's answer to a question, if it has any.
pub(super) fn ask_all<M: Told>(
    world: &mut World,
    asked: &M::Asked,
    command: &Command,
) -> Result<BTreeMap<usize, M::View>, Broken> {
    let (matter, cluster) = M::of(world);
    matter.desk_mut().views.clear();
    for node in 0..cluster.nodes.len() {
        if cluster.nodes[node].running.is_some() {
            matter.desk_mut().calls.ask(cluster, node, asked.clone(), command.clone());
        }
    }
    world.go_on(ANSWERED_WITHIN)?;
    let (matter, _) = M::of(world);
    Ok(std::mem::take(&mut matter.desk_mut().views))
}

/// The first node that says something else than the first of all, and both of their answers.
pub(super) fn dissent<'a, V, K: PartialEq>(
    mut views: impl Iterator<Item = (usize, &'a V)>,
    key: impl Fn(&V) -> K,
) -> Option<(usize, &'a V, &'a V)> {
    let (_, first) = views.next()?;
    let (node, other) = views.find(|(_, view)| key(view) != key(first))?;
    Some((node, other, first))
}
