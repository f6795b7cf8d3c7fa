//! The promises of the end about records: see `profiles`.

use std::collections::BTreeMap;

use super::profiles::{Name, State, all_of};
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// *records*, at all nodes that promises are kept to, and at one that went on from an earlier copy of its disk.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    let mut all = Vec::new();
    let keeps = |node: &usize| !cluster.is_exempt(*node) || cluster.nodes[*node].is_restored();
    for node in (0..cluster.nodes.len()).filter(keeps) {
        let Some(running) = &cluster.nodes[node].running else { continue };
        all.push((
            node,
            all_of(cluster, &running.reader),
            running.pulse.map(|pulse| pulse.records),
        ));
    }
    let Some((first, records, digest)) = all.first() else { return Ok(()) };
    for (node, others, other) in &all[1..] {
        if let Some(name) = differing(records, others).find(|name| is_known(world, name)) {
            let states = [records, others].map(|of| of.get(name));
            let what = format!("node{first} and node{node} differ in {name:?}: {states:?}");
            return broken("records", what);
        }
        if records == others && other != digest {
            return broken("records", format!("node{first} and node{node} differ in memory alone"));
        }
    }
    let counts = |node: usize| cluster.nodes[node].running.is_some() && !cluster.is_exempt(node);
    let all_count = (0..cluster.nodes.len()).all(counts) && cluster.plan.parting.is_none();
    for (name, (stamp, by)) in &world.holders.profiles.answered {
        // The only copy may be at a node that is out, or lost with its disk. And where all logs are cut that minted a key, nothing
        // is kept of it, until it is known again.
        let stays = || {
            let owner = name.1.owner.and_then(|owner| world.holders.key(owner));
            counts(*by) && owner.is_some_and(|key| key.minted.iter().any(|node| counts(*node)))
        };
        let lost = records.get(name).is_none_or(|(kept, _)| kept < stamp);
        if lost && (all_count || stays()) {
            return broken("records", format!("somebody was answered for {name:?}, which is gone"));
        }
    }
    Ok(())
}

fn differing<'a>(
    one: &'a BTreeMap<Name, State>,
    other: &'a BTreeMap<Name, State>,
) -> impl Iterator<Item = &'a Name> {
    one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name))
}

/// Whether a node that promises are kept to says of the owner that there is such a key. Of what a node said that forked its log
/// others hold more, or less, and so of its keys.
fn is_known(world: &World, name: &Name) -> bool {
    let cluster = &world.cluster;
    let Some(owner) = name.1.owner else { return true };
    let counts = |node: usize| !cluster.is_exempt(node);
    let minted = world.holders.key(owner);
    let is_minted = minted.is_some_and(|key| key.minted.iter().any(|node| counts(*node)));
    let mut shown = cluster.shown.iter().filter(|(_, key)| *key == owner);
    is_minted || shown.any(|(node, _)| cluster.index(*node).is_some_and(counts))
}
