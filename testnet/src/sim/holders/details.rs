//! Details of rooms, which agents with the key that made them set: records that are where the room is.
//!
//! *records*: as of `profiles`. *sealed*: those of a private room are nowhere but where its key was presented, and nothing of them
//! is in the clear. *forged*: nothing shows that no agent of the room's key wanted to have set, and all nodes that have the room
//! show the same.

use std::{collections::BTreeSet, sync::Arc};

use mesh::{
    api::command::{Command, RoomSet},
    name::id::{KeyPrint, RoomId},
    records::{
        details::{Details, DetailsUpdate, RoomState},
        place::RoomPlace,
    },
    wire::record::{RecordKey, Space},
};
use store::{
    Reader,
    records::{self, find},
};

use super::{Asked, Holders, MARK, profiles::shelf};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    dice::Dice,
    parts::Seated,
    promises::{Broken, broken},
    world::World,
};

/// A change that an agent has asked for.
#[derive(Clone, Debug)]
pub(super) struct Said {
    room: RoomId,
    key: KeyPrint,
    update: DetailsUpdate,
}

impl Holders {
    /// An agent sets something of a room that its key has made.
    pub(super) fn set_room(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let key = self.holders[i].key;
        let made = self.made.iter().filter(|made| made.key == key && !made.ephemeral);
        let made: Vec<(RoomId, bool)> = made.map(|made| (made.room, made.public)).collect();
        if made.is_empty() {
            return;
        }
        let (room, public) = *cluster.dice.pick(&made);
        let update = update(&mut cluster.dice, if public { "for all" } else { MARK });
        self.texts.entry(room).or_default().extend(texts(&update));
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let said = Said { room, key: by.caller.key, update: update.clone() };
        let set = RoomSet { caller: by.caller, room, signer, update };
        let command = Command::SetRoom(Box::new(set));
        self.calls.ask(cluster, by.node, Asked::Details(said), command);
    }

    /// A node has done it: that is on its disk.
    pub(super) fn details_are_set(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        said: &Said,
    ) -> Result<(), Broken> {
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        let place = records::place(&running.reader, said.room).expect("a sound store reads");
        let Some(at) = place else {
            return broken("records", format!("node{node} has set something of no room: {said:?}"));
        };
        let is_private = at.space != Space::Mesh;
        cluster.coverage.count(if is_private { Happening::DenSet } else { Happening::RoomSet });
        for draft in said.update.drafts(&at) {
            let shelf = shelf(cluster, at.space, draft.collection);
            let own = |record: &mesh::wire::record::Record| record.owner() == said.key;
            let found = find(&running.reader, &shelf, &draft.id.0, own);
            let found = found.expect("a sound store reads");
            let [record] = found.as_slice() else {
                return broken("records", format!("node{node} has set nothing of {said:?}"));
            };
            let key = RecordKey { id: record.id, owner: Some(said.key) };
            let name = (at.space, draft.collection, key);
            self.profiles.was_answered(name, (record.stamp, node));
        }
        Ok(())
    }
}

fn update(dice: &mut Dice, mark: &str) -> DetailsUpdate {
    let mut text = |chance| {
        let text = format!("{:.8} {mark}", dice.draw().to_string());
        (dice.chance(chance), dice.chance(80).then_some(text))
    };
    let [title, description] = [60, 30].map(&mut text).map(|(some, text)| some.then_some(text));
    let settings = (0..4).filter_map(|n| {
        let (some, text) = text(20);
        some.then(|| (format!("s{n}"), text))
    });
    let settings = settings.collect();
    let state = dice.chance(30).then(|| Some(*dice.pick(&RoomState::ALL)));
    DetailsUpdate { title, description, state, settings }
}

fn texts(update: &DetailsUpdate) -> impl Iterator<Item = String> {
    let details = [&update.title, &update.description].into_iter().flatten().flatten();
    let settings = update.settings.iter().filter_map(|(_, value)| value.as_ref());
    details.chain(settings).cloned()
}

/// The details of a room as a node shows them. `None`: it does not have the room.
fn shown(
    world: &World,
    reader: &Reader,
    node: usize,
    room: RoomId,
) -> Option<(RoomPlace, Details)> {
    let cluster = &world.cluster;
    let at = records::place(reader, room).expect("a sound store reads")?;
    let proofs = cluster.nodes[node].running.as_ref()?.engine.proofs();
    let mesh = cluster.secret.mesh_id();
    let details = records::details(reader, mesh, &[room], |room| proofs.key_of_room(room), true);
    Some((at, details.expect("a sound store reads").remove(0)))
}

/// *forged*, at all nodes that promises are kept to.
pub(super) fn converge(world: &World) -> Result<(), Broken> {
    let cluster = &world.cluster;
    for made in world.holders.made.iter().filter(|made| !made.ephemeral) {
        let mut first: Option<(usize, Details)> = None;
        for node in (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node)) {
            let Some(running) = &cluster.nodes[node].running else { continue };
            let Some((at, details)) = shown(world, &running.reader, node, made.room) else {
                continue;
            };
            let known = world.holders.texts.get(&made.room);
            if let Some(text) = forged(&details, known) {
                let what =
                    format!("node{node} shows {text:?} of {:?}, which nobody has said", at.room);
                return broken("forged", what);
            }
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
fn is_the_same_everywhere(world: &World, key: usize) -> bool {
    let counts = |node: &usize| !world.cluster.is_exempt(*node);
    let key = &world.holders.keys[key];
    key.minted.iter().any(counts)
        && key.revoked.iter().all(counts)
        && world.cluster.plan.parting.is_none()
}
