//! The promises of the end about records: see `profiles`.

pub(super) mod details;
mod files;
mod mail;
mod names;

use std::collections::{BTreeMap, BTreeSet};

use mesh::wire::record::Space;

use super::{
    accounts::letters,
    members,
    profiles::{Name, State, all_of, spaces_of},
};
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// The records on the disk of a node.
struct OfNode {
    node: usize,
    /// Those of the mesh, and of the keys that it follows.
    spaces: BTreeSet<Space>,
    records: BTreeMap<Name, State>,
    /// Of the mesh's, in memory.
    digest: Option<[u8; 16]>,
}

/// *records*, at all nodes that promises are kept to, and at one that went on from an earlier copy of its disk.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    let mut all = Vec::new();
    let keeps = |node: &usize| !cluster.is_exempt(*node) || cluster.nodes[*node].is_restored();
    for node in (0..cluster.nodes.len()).filter(keeps) {
        let Some(running) = &cluster.nodes[node].running else { continue };
        let digest = running.pulse.map(|pulse| pulse.records);
        let spaces = spaces_of(&running.reader);
        let records = all_of(cluster, &running.reader, &spaces);
        all.push(OfNode { node, spaces, records, digest });
    }
    let spaces: BTreeSet<Space> = all.iter().flat_map(|one| &one.spaces).copied().collect();
    for space in spaces {
        let having: Vec<&OfNode> = all.iter().filter(|one| one.spaces.contains(&space)).collect();
        having.windows(2).try_for_each(|pair| are_alike(world, space, pair[0], pair[1]))?;
    }
    nothing_is_lost(world, &all)?;
    details::converge(world)?;
    members::converge(world)?;
    files::converge(world)?;
    mail::converge(world)?;
    letters::are_read(world)?;
    names::converge(world)
}

fn are_alike(world: &World, space: Space, one: &OfNode, other: &OfNode) -> Result<(), Broken> {
    let (node, with) = (one.node, other.node);
    let differing = differing(&one.records, &other.records).filter(|name| name.0 == space);
    let differing: Vec<&Name> = differing.collect();
    if let Some(name) = differing.iter().find(|name| is_known(world, name)) {
        let states = [&one.records, &other.records].map(|of| of.get(*name));
        let what = format!("node{node} and node{with} differ in {name:?}: {states:?}");
        return broken("records", what);
    }
    if space == Space::Mesh && differing.is_empty() && one.digest != other.digest {
        return broken("records", format!("node{node} and node{with} differ in memory alone"));
    }
    Ok(())
}

fn nothing_is_lost(world: &World, all: &[OfNode]) -> Result<(), Broken> {
    let cluster = &world.cluster;
    let counts = |node: usize| cluster.nodes[node].running.is_some() && !cluster.is_exempt(node);
    let all_count = (0..cluster.nodes.len()).all(counts) && cluster.plan.parting.is_none();
    for (name, (stamp, by)) in &world.holders.profiles.answered {
        // The only copy may be at a node that is out, or lost with its disk. And where all logs are cut that minted a key, nothing
        // is kept of it, until it is known again.
        let stays = || {
            let account = name.2.owner.and_then(|owner| world.holders.accounts.get(owner));
            if let Some(account) = account {
                return counts(*by) && account.claimed.iter().any(|node| counts(*node));
            }
            let owner = name.2.owner.and_then(|owner| world.holders.key(owner));
            counts(*by) && owner.is_some_and(|key| key.minted.iter().any(|node| counts(*node)))
        };
        let records = all.iter().find(|one| one.spaces.contains(&name.0)).map(|one| &one.records);
        let kept = records.and_then(|records| records.get(name));
        let lost = kept.is_none_or(|(kept, _)| kept < stamp);
        if lost && (all_count || stays()) && !world.holders.accounts.may_be_gone(name) {
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
/// others hold more, or less, and so of its keys: a key that it alone minted may have been refused by others, and then they have no
/// voucher of it.
fn is_known(world: &World, name: &Name) -> bool {
    let cluster = &world.cluster;
    let Some(owner) = name.2.owner else { return true };
    let counts = |node: usize| !cluster.is_exempt(node);
    if let Some(account) = world.holders.accounts.get(owner) {
        return account.claimed.iter().any(|node| counts(*node));
    }
    let minted = world.holders.key(owner);
    if let Some(key) = minted.filter(|key| !key.minted.is_empty()) {
        return key.minted.iter().any(|node| counts(*node));
    }
    let mut shown = cluster.shown.iter().filter(|(_, key)| *key == owner);
    shown.any(|(node, _)| cluster.index(*node).is_some_and(counts))
}
