//! *proven*: a message shows as verified only where its author's node was shown its key; and those of agents whose ids nobody
//! else wants do, at every node, once all have everything, and in calm weather live.

use mesh::{
    api::event::Delivered,
    name::{
        id::{NodeId, RoomId},
        number::Number,
    },
};
use store::Row;

use super::{
    cluster::Cluster,
    holders::Holders,
    network::Weather,
    promises::{Broken, broken},
    world::World,
};

/// The first half of it: nothing shows as verified that somebody made up. At any time.
pub(super) fn nothing_forged_shows(world: &World) -> Result<(), Broken> {
    each_row(&world.cluster, |node, room, row, verified| {
        if !verified || was_shown(world, row) {
            return Ok(());
        }
        let what =
            format!("node{node} shows {:?} {} of {room} as its author's", row.log, row.at.seq);
        broken("proven", what)
    })
}

/// Both, at the end of a world in which nobody lies.
pub(super) fn all_that_can_be_is_proven(world: &World) -> Result<(), Broken> {
    nothing_forged_shows(world)?;
    each_row(&world.cluster, |node, room, row, verified| {
        if verified || !must_show(world, row) {
            return Ok(());
        }
        let what = format!("node{node} cannot prove {:?} {} of {room}", row.log, row.at.seq);
        broken("proven", what)
    })
}

/// In calm weather it shows so live, too: when members of a room are told of a message, its voucher is there. Not in worlds
/// without gossip: message and voucher come there when their rooms are compared, one after the other, and the message waits
/// for a tenth of a second only.
pub(super) fn shows_live(
    cluster: &Cluster,
    holders: &Holders,
    node: usize,
    message: &Delivered,
) -> Result<(), Broken> {
    let calm = cluster.plan.is_undisturbed() && cluster.network.weather == Weather::CALM;
    let calm = calm && cluster.network.gossip;
    let said = message.said.as_ref().filter(|_| calm && cluster.exempt.is_empty());
    let (Some(said), Some(running)) = (said, &cluster.nodes[node].running) else { return Ok(()) };
    let must = said.key.is_some_and(|key| holders.is_undisputed(&said.agent, key));
    if !must || running.engine.proofs().of(message.log.author, said).verified {
        return Ok(());
    }
    broken(
        "proven",
        format!("node{node} tells of {:?} {} without proof", message.log, message.at.seq),
    )
}

/// The author's node was shown the key of the message; or the liar made the key up.
fn was_shown(world: &World, row: &Row) -> bool {
    let Some(key) = row.said.as_ref().and_then(|said| said.key) else { return false };
    let liars = world.liar.as_ref().is_some_and(|liar| liar.owns(key));
    liars || world.cluster.shown.contains(&(row.log.author, key))
}

/// Its agent showed a key that is valid, and nobody else wants its id.
fn must_show(world: &World, row: &Row) -> bool {
    let Some(said) = &row.said else { return false };
    said.key.is_some_and(|key| world.holders.is_undisputed(&said.agent, key))
}

fn each_row(
    cluster: &Cluster,
    mut look: impl FnMut(usize, RoomId, &Row, bool) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let judged = |id: &NodeId| !cluster.exempt.contains(id);
    let nodes = cluster.nodes.iter().enumerate().filter(|(_, node)| judged(&node.id));
    for (node, running) in nodes.filter_map(|(i, node)| Some((i, node.running.as_ref()?))) {
        let proofs = running.engine.proofs();
        for (room, _) in running.reader.rooms()? {
            let mut after = Number::ZERO;
            loop {
                let page = running.reader.page_since(room, after, 1_000)?;
                let Some(last) = page.last() else { break };
                after = last.number;
                for row in &page {
                    let said = row.said.as_ref();
                    let verified =
                        said.is_some_and(|said| proofs.of(row.log.author, said).verified);
                    look(node, room, row, verified)?;
                }
            }
        }
    }
    Ok(())
}
