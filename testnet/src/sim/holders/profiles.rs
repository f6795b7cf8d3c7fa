//! Profiles that agents with minted keys write: records that all nodes have.
//!
//! *records*: an answer says that a change is on the disk of the node that gave it. The state that a node
//! keeps of a record is never replaced by an older one, so nothing deleted comes back. Each is the word of the key that owns
//! it. In the end all nodes keep the same records, and of none an older state than the latest one that was answered. This holds
//! for a node that went on from an earlier copy of its disk, too, and it brings back nothing at others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mesh::{
    api::{batch::Change, command::Command},
    name::{id::Hash, identity::Strict},
    records::{
        collection::Collection,
        profile::{self, Card, Field, ProfileUpdate},
    },
    wire::record::{CollectionNumber, Record, RecordKey, Space, Stamp},
};
use store::{
    Reader,
    records::{Shelf, find},
};

use super::{
    Holders,
    asked::{Asked, ProfileSaid},
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    dice::Dice,
    parts::Seated,
    promises::{Broken, broken},
};

/// A record.
pub(super) type Name = (Space, CollectionNumber, RecordKey);

/// Which state of it.
pub(super) type State = (Stamp, Hash);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    /// The last state that each node has written.
    kept: BTreeMap<(usize, Name), State>,
    /// States from before a node went on from an earlier copy of its disk, of records of which it has an earlier state now.
    outdated: BTreeMap<(usize, Name), State>,
    /// The latest state that somebody was answered for, and the node that answered.
    pub(super) answered: BTreeMap<Name, (Stamp, usize)>,
}

impl Holders {
    /// An agent says something of itself, or that something is so no more.
    pub(super) fn set_profile(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let update = update(&mut cluster.dice);
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let agent = Arc::clone(&by.caller.agent);
        let said = ProfileSaid { agent, key: by.caller.key, update: update.clone() };
        let asked = Asked::Profile(said);
        let command = Command::SetProfile { caller: by.caller, signer, update: Box::new(update) };
        self.calls.ask(cluster, by.node, asked, command);
    }

    /// A node has done it: that is on its disk.
    pub(super) fn profile_is_set(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        said: &ProfileSaid,
    ) -> Result<(), Broken> {
        let ProfileSaid { agent, key, update } = said;
        cluster.coverage.count(Happening::Profile);
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        let mut there = 0;
        for (collection, first) in profile::places(agent) {
            let shelf = shelf(cluster, Space::Mesh, collection);
            let own = |record: &Record| record.owner() == *key;
            for record in find(&running.reader, &shelf, &first, own).expect("a sound store reads") {
                there += 1;
                let key = RecordKey { id: record.id, owner: Some(*key) };
                let name = (Space::Mesh, collection, key);
                self.profiles.was_answered(name, (record.stamp, node));
            }
        }
        let asked = update.fields.len() + update.cards.as_ref().map_or(0, Vec::len);
        if there < asked.min(1) {
            return broken("records", format!("node{node} has set nothing of {update:?}"));
        }
        Ok(())
    }

    /// A node goes on from an earlier copy of its disk: its records may be in older states than before, or missing.
    pub(crate) fn records_are_restored(&mut self, cluster: &Cluster, node: usize) {
        let Some(running) = &cluster.nodes[node].running else { return };
        let now = all_of(cluster, &running.reader, &spaces_of(&running.reader));
        let had = self.profiles.kept.extract_if(.., |(at, _), _| *at == node);
        let newer = had.filter(|((_, name), had)| now.get(name).is_none_or(|now| now < had));
        self.profiles.outdated.extend(newer);
        self.profiles.kept.extend(now.into_iter().map(|(name, state)| ((node, name), state)));
    }

    /// A node writes a record.
    pub(super) fn record_is_stored(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        change: &Change,
    ) -> Result<(), Broken> {
        let Change::Record { mesh, space, collection, key, record } = change else {
            return Ok(());
        };
        let name = (*space, *collection, *key);
        if let Space::Followers(group) = space
            && !self.keys_of(*group).iter().any(|key| self.was_given(cluster, node, *key))
        {
            let what =
                format!("node{node} has records of a key that it was never given: {change:?}");
            return broken("sealed", what);
        }
        let Some(record) = record else {
            self.profiles.kept.remove(&(node, name));
            return Ok(());
        };
        if !record.is_signed(&Strict, *mesh) {
            return broken("records", format!("node{node} keeps what nobody signed: {record:?}"));
        }
        self.may_be_kept(node, change)?;
        let head = record.head(*mesh);
        let state = (head.stamp, head.hash);
        if self.profiles.outdated.get(&(node, name)).is_some_and(|newer| state >= *newer) {
            self.profiles.outdated.remove(&(node, name));
            cluster.coverage.count(Happening::Outdated);
        }
        let before = self.profiles.kept.insert((node, name), state);
        if record.body.is_none() {
            cluster.coverage.count(Happening::Deletion);
        }
        if before.is_some() {
            cluster.coverage.count(Happening::Replaced);
        }
        match before.filter(|before| *before >= state) {
            Some(_) if !cluster.is_exempt(node) || cluster.nodes[node].is_restored() => {
                broken("records", format!("node{node} goes back to an earlier {record:?}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The spaces that a node keeps records of: the mesh, and those of the keys that it follows.
pub(super) fn spaces_of(reader: &Reader) -> BTreeSet<Space> {
    let rooms = reader.rooms().expect("a sound store reads");
    let seals = rooms.into_iter().filter_map(|(_, record)| record.seal);
    let followed = seals.filter(|seal| seal.opener.is_some());
    followed.map(|seal| Space::Followers(seal.group)).chain([Space::Mesh]).collect()
}

/// Every record of these spaces on a node's disk, and its state.
pub(super) fn all_of(
    cluster: &Cluster,
    reader: &Reader,
    spaces: &BTreeSet<Space>,
) -> BTreeMap<Name, State> {
    let mut all = BTreeMap::new();
    for space in spaces {
        for collection in Collection::all_in(*space).map(|kind| kind.number) {
            let shelf = shelf(cluster, *space, collection);
            for record in find(reader, &shelf, &[], |_| true).expect("a sound store reads") {
                let head = record.head(shelf.mesh);
                let key = RecordKey { id: head.id, owner: Some(head.owner) };
                all.insert((*space, collection, key), (head.stamp, head.hash));
            }
        }
    }
    all
}

fn update(dice: &mut Dice) -> ProfileUpdate {
    let mut update = ProfileUpdate::default();
    for _ in 0..dice.within(1, 3) {
        let field = *dice.pick(&Field::ALL);
        let text = dice.chance(70).then(|| format!("{:.8}", dice.draw().to_string()));
        update.fields.push((field, text));
    }
    if dice.chance(30) {
        let card = |n: u64| Card {
            name: format!("card {n}"),
            text: "x".repeat(usize::try_from(n * 500).unwrap_or_default()),
            tags: Vec::new(),
            visibility: None,
        };
        update.cards = Some((0..4).filter(|_| dice.chance(50)).map(card).collect());
    }
    update
}

impl Profiles {
    /// Whether a node keeps the deletion of a record, which is final.
    pub(super) fn has_deleted(&self, node: usize, name: Name) -> bool {
        self.kept.get(&(node, name)).is_some_and(|(stamp, _)| stamp.is_for_ever())
    }

    /// Somebody was answered for a record, by this node, which has this state of it.
    pub(super) fn was_answered(&mut self, name: Name, state: (Stamp, usize)) {
        let answered = self.answered.entry(name).or_insert(state);
        *answered = state.max(*answered);
    }
}

pub(super) fn shelf(cluster: &Cluster, space: Space, collection: CollectionNumber) -> Shelf {
    Shelf { mesh: cluster.secret.mesh_id(), space, collection }
}
