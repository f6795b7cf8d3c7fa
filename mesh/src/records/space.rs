//! All sets of one space.

use std::collections::BTreeMap;

use super::{
    collection::Collection,
    digest,
    set::{Offer, Set},
};
use crate::{
    name::id::{KeyPrint, NodeId},
    wire::record::{CollectionNumber, RecordKey, Root, Space},
};

/// The beginning of a digest, as beacons have it.
pub type Brief = [u8; 16];

/// See the module.
#[derive(Clone, Debug)]
pub struct Sets {
    sets: BTreeMap<CollectionNumber, Set>,
    /// Over all sets; `None`: something may have changed.
    digest: Option<Brief>,
}

impl Sets {
    /// Empty ones, of all collections that the space has.
    #[must_use]
    pub fn new(space: Space) -> Sets {
        let sets = Collection::all_in(space).map(|kind| (kind.number, Set::new(kind)));
        Sets { sets: sets.collect(), digest: None }
    }

    /// The set of a collection, if the space has it.
    #[must_use]
    pub fn get(&self, collection: CollectionNumber) -> Option<&Set> {
        self.sets.get(&collection)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Set> {
        self.sets.values()
    }

    /// To be changed, or to be compared.
    pub fn get_mut(&mut self, collection: CollectionNumber) -> Option<&mut Set> {
        self.digest = None;
        self.sets.get_mut(&collection)
    }

    /// See [`Set::offer`]. `None`: the space has no such collection.
    pub fn offer(
        &mut self,
        collection: CollectionNumber,
        offer: Offer,
    ) -> Option<super::set::Fate> {
        self.get_mut(collection).map(|set| set.offer(offer))
    }

    /// See [`Set::answered_by`]. `answers`: the node that answers for the owner's records of a kind.
    pub fn answered_by(
        &mut self,
        owner: KeyPrint,
        answers: impl Fn(&'static Collection) -> Option<NodeId>,
    ) -> Vec<(CollectionNumber, RecordKey)> {
        self.digest = None;
        let sets = self.sets.iter_mut();
        let gone = sets.flat_map(|(number, set)| {
            let answers = answers(set.collection());
            set.answered_by(owner, answers).into_iter().map(|key| (*number, key))
        });
        gone.collect()
    }

    /// The digests of all sets.
    pub fn roots(&mut self) -> Vec<Root> {
        let root = |(number, set): (&CollectionNumber, &mut Set)| Root {
            collection: *number,
            digest: set.root(),
        };
        self.sets.iter_mut().map(root).collect()
    }

    /// The beginning of the digest over all sets; nothing but zeros if they are empty.
    pub fn digest(&mut self) -> Brief {
        if let Some(digest) = self.digest {
            return digest;
        }
        let mut brief = Brief::default();
        if self.sets.values().any(|set| !set.is_empty()) {
            let roots: Vec<_> =
                self.roots().into_iter().map(|root| (root.collection.0, root.digest)).collect();
            brief.copy_from_slice(&digest::of_roots(&roots)[..16]);
        }
        self.digest = Some(brief);
        brief
    }
}
