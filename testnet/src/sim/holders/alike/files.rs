//! *contents*: in the end every node that keeps a file's record has its content, the one that was written with it, and shows no file
//! that no agent of the room's key has written.

use store::records;

use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// *contents*, at all nodes that promises are kept to.
pub(super) fn converge(world: &World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    let mesh = cluster.secret.mesh_id();
    for made in world.holders.made.iter().filter(|made| !made.ephemeral) {
        let known = world.holders.texts.get(&made.room);
        for node in (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node)) {
            let Some(running) = &cluster.nodes[node].running else { continue };
            let proofs = running.engine.proofs();
            let list = records::files(&running.reader, mesh, made.room, &proofs);
            for view in list.expect("a sound store reads") {
                let file = (made.room, view.path.as_str());
                let found = records::file(&running.reader, mesh, file, &proofs);
                let bytes = found.expect("a sound store reads").and_then(|(_, bytes)| bytes);
                let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                let Some(text) = text else {
                    // The only copy may be at a node that is out, or lost with its disk.
                    if cluster.exempt.is_empty() && cluster.plan.parting.is_none() {
                        let what = format!("node{node} lacks the content of {view:?}");
                        return broken("contents", what);
                    }
                    continue;
                };
                if known.is_none_or(|known| !known.contains(&text)) {
                    let what = format!("node{node} shows what nobody has written: {view:?}");
                    return broken("forged", what);
                }
            }
        }
    }
    Ok(())
}
