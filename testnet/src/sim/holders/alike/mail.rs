//! *contents*, of mail: in the end every node has the text of each mail that it has, if some node has it. Nodes of worlds have room
//! to carry them all.

use mesh::{
    records::finder::MAILS,
    wire::record::{RecordId, Space},
};
use store::{followed, records::find};

use super::super::profiles::shelf;
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// *contents*, at all nodes that promises are kept to.
pub(super) fn converge(world: &World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    let shelf = shelf(cluster, Space::Mesh, MAILS.number);
    for node in (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node)) {
        let Some(running) = &cluster.nodes[node].running else { continue };
        let mails = find(&running.reader, &shelf, &[], |_| true).expect("a sound store reads");
        let keys: Vec<(RecordId, _)> = mails.iter().map(|mail| (mail.id, mail.owner())).collect();
        let states = followed::content_states(&running.reader, shelf.mesh, MAILS.number, &keys);
        for ((id, owner), state) in keys.iter().zip(states.expect("a sound store reads")) {
            // The only copy may be at a node that is out, or lost with its disk.
            let all_are_there = cluster.exempt.is_empty() && cluster.plan.parting.is_none();
            if !state.held && (all_are_there || others_have(world, node, (*id, *owner))) {
                return broken("contents", format!("node{node} lacks the text of mail {id:?}"));
            }
            if state.copied && !state.held {
                return broken("contents", format!("node{node} has a copy of nothing: {id:?}"));
            }
        }
    }
    Ok(())
}

/// Whether another node that promises are kept to has the text.
fn others_have(world: &World, node: usize, key: (RecordId, mesh::name::id::KeyPrint)) -> bool {
    let cluster = &world.cluster;
    let others = (0..cluster.nodes.len()).filter(|other| *other != node);
    let others = others.filter(|other| !cluster.is_exempt(*other));
    let mut running = others.filter_map(|other| cluster.nodes[other].running.as_ref());
    running.any(|running| {
        let place = (MAILS.number, key.0, key.1);
        let found = followed::content(&running.reader, cluster.secret.mesh_id(), place);
        found.expect("a sound store reads").is_some()
    })
}
