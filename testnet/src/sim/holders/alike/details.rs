//! *forged*: in the end nothing shows of a room that no agent of the room's key wanted to have set, and all nodes that have the room
//! show the same.

use std::collections::BTreeSet;

use mesh::{
    name::id::RoomId,
    records::{details::Details, place::RoomPlace, writers::Writers},
};
use store::{Reader, records};

use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// A room as a node shows it.
struct Shown {
    at: RoomPlace,
    details: Details,
    writers: Writers,
}

/// The details of a room as a node shows them. `None`: it does not have the room.
fn shown(world: &World, reader: &Reader, node: usize, room: RoomId) -> Option<Shown> {
    let cluster = &world.cluster;
    let at = records::place(reader, room).expect("a sound store reads")?;
    let proofs = cluster.nodes[node].running.as_ref()?.engine.proofs();
    let mesh = cluster.secret.mesh_id();
    let details = records::details(reader, mesh, &[room], |room| proofs.keys_of_room(room), true);
    let details = details.expect("a sound store reads").remove(0);
    Some(Shown { at, details, writers: proofs.writers_of_room(room) })
}

/// *forged*, at all nodes that promises are kept to.
pub(super) fn converge(world: &World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    for made in world.holders.made.iter().filter(|made| !made.ephemeral) {
        let mut first: Option<(usize, (Details, Writers))> = None;
        for node in (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node)) {
            let Some(running) = &cluster.nodes[node].running else { continue };
            let Some(Shown { at, details, writers }) =
                shown(world, &running.reader, node, made.room)
            else {
                continue;
            };
            let known = world.holders.texts.get(&made.room);
            if let Some(text) = forged(&details, known) {
                let what =
                    format!("node{node} shows {text:?} of {:?}, which nobody has said", at.room);
                return broken("forged", what);
            }
            let details = (details, writers);
            match &first {
                Some((other, before))
                    if *before != details && is_the_same_everywhere(world, made.key) =>
                {
                    let what = format!(
                        "of {:?} node{other} shows {before:?}, node{node} {details:?}",
                        made.room
                    );
                    return broken("forged", what);
                }
                Some(_) => {}
                None => first = Some((node, details)),
            }
        }
    }
    Ok(())
}

/// A text that shows, and that nobody has said.
fn forged<'d>(details: &'d Details, known: Option<&BTreeSet<String>>) -> Option<&'d String> {
    let texts = [&details.title, &details.description].into_iter().flatten();
    let mut all = texts.chain(details.settings.iter().map(|(_, value)| value));
    all.find(|text| known.is_none_or(|known| !known.contains(*text)))
}

/// Of a key that only nodes that are not judged have told of others may know, or not.
pub(in crate::sim::holders) fn is_the_same_everywhere(world: &World, key: usize) -> bool {
    let counts = |node: &usize| !world.cluster.is_exempt(*node);
    let key = &world.holders.keys[key];
    key.minted.iter().any(counts)
        && key.revoked.iter().all(counts)
        && world.cluster.plan.parting.is_none()
}
