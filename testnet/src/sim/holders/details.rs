//! Details of rooms, which agents with the key that made them set: records that are where the room is.
//!
//! *records*: as of `profiles`. *sealed*: those of a private room are nowhere but where its key was presented, and nothing of them
//! is in the clear. *forged*: `alike::details`.

use std::sync::Arc;

use mesh::{
    api::command::{Command, RoomSet},
    name::id::{KeyPrint, RoomId},
    records::{
        details::{DetailsUpdate, RoomState},
        writers::WritersUpdate,
    },
    wire::record::{RecordKey, Space},
};
use store::records::{self, find};

use super::{
    Holders, MARK,
    asked::{Asked, DetailsSaid},
    profiles::shelf,
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    dice::Dice,
    parts::Seated,
    promises::{Broken, broken},
};

impl Holders {
    /// A lasting room that the key of an agent has made, and whether it is public.
    pub(super) fn own_room(&self, cluster: &mut Cluster, i: usize) -> Option<(RoomId, bool)> {
        let key = self.holders[i].key;
        let made = self.made.iter().filter(|made| made.key == key && !made.ephemeral);
        let made: Vec<(RoomId, bool)> = made.map(|made| (made.room, made.public)).collect();
        (!made.is_empty()).then(|| *cluster.dice.pick(&made))
    }

    /// A lasting room that all read: as a rule one whose files this key may write, as its node knows.
    pub(super) fn public_room(
        &self,
        cluster: &mut Cluster,
        (node, key): (usize, KeyPrint),
    ) -> Option<(RoomId, bool)> {
        let any = cluster.dice.chance(20);
        let proofs = cluster.nodes[node].running.as_ref()?.engine.proofs();
        let is_open = |room| proofs.file_keys(room, [key]).contains(&key);
        let made = self.made.iter().filter(|made| made.public && !made.ephemeral);
        let made = made.filter(|made| any || is_open(made.room));
        let made: Vec<(RoomId, bool)> = made.map(|made| (made.room, true)).collect();
        (!made.is_empty()).then(|| *cluster.dice.pick(&made))
    }

    /// An agent sets something of a room that its key has made.
    pub(super) fn set_room(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let Some((room, public)) = self.own_room(cluster, i) else { return };
        let mut update = update(&mut cluster.dice, if public { "for all" } else { MARK });
        if public {
            update.writers = self.writers(&mut cluster.dice);
        }
        self.texts.entry(room).or_default().extend(texts(&update));
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let said = DetailsSaid { room, key: by.caller.key, update: update.clone() };
        let set = RoomSet { caller: by.caller, room, signer, update };
        let command = Command::SetRoom(Box::new(set));
        self.calls.ask(cluster, by.node, Asked::Details(said), command);
    }

    /// Keys that are to write the files of a room, beside its own.
    fn writers(&self, dice: &mut Dice) -> WritersUpdate {
        let mut some = || dice.chance(50);
        let named = self.keys.iter().filter(|_| some()).map(|key| key.print).collect();
        let named = Some(named).filter(|_| dice.chance(80));
        let (named, anyone) =
            (dice.chance(50).then_some(named), dice.chance(40).then(|| dice.chance(70)));
        WritersUpdate { named, anyone }
    }

    /// A node has done it: that is on its disk.
    pub(super) fn details_are_set(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        said: &DetailsSaid,
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
    DetailsUpdate { title, description, state, settings, ..DetailsUpdate::default() }
}

fn texts(update: &DetailsUpdate) -> impl Iterator<Item = String> {
    let details = [&update.title, &update.description].into_iter().flatten().flatten();
    let settings = update.settings.iter().filter_map(|(_, value)| value.as_ref());
    details.chain(settings).cloned()
}
