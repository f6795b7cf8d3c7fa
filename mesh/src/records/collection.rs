//! Collections: kinds of records, declared as data.

use std::fmt;

use crate::{
    limits::SEAL_BYTES,
    name::{id::MeshId, identity::Judge},
    wire::record::{CollectionNumber, Record, RecordId, Space},
};

/// Keys that may write a record of a collection, in the eyes of the set that keeps it. Whether it *shows* is another question,
/// which the feature answers when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Each key has records of its own; nobody else can write them.
    Owner,
    /// All who take part write the same records.
    Participants,
}

/// The one that counts, of several records of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The latest one, be it a deletion.
    Latest,
    /// The latest one. There are no deletions: the id is a hash of everything that is said, so all of one key say the same.
    Add,
    /// The first one, for ever. There are no deletions.
    End,
}

/// A kind of records.
pub struct Collection {
    /// As it is written and sent. Never used for another kind.
    pub number: CollectionNumber,
    /// For people.
    pub name: &'static str,
    /// Spaces that have such records.
    pub(super) place: Place,
    /// Keys that write one.
    pub writer: Writer,
    /// The one of a key that counts.
    pub merge: Merge,
    /// The largest content, before it is sealed. Bytes.
    pub body_bytes_max: usize,
    /// The most bytes that travel apart from a record, before they are sealed. Zero: none do.
    pub apart_bytes_max: usize,
    /// The engine needs the contents themselves, which are small, and not the heads alone.
    pub in_memory: bool,
    /// Records of one owner in one space, deletions included, up to which clients are not refused.
    pub owner_max: usize,
    /// The same of all owners for whom one node answers: it minted their keys. For [`Writer::Participants`]: of the space.
    pub node_max: usize,
    /// The id that a content names, if the content has this collection's form.
    pub(super) names: fn(&[u8]) -> Option<RecordId>,
}

/// Spaces that a collection is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The set of all nodes.
    Mesh,
    /// Every space: records of a room are where the room is.
    Rooms,
}

impl Collection {
    /// Whether a space has such records.
    #[must_use]
    pub fn is_in(&self, space: Space) -> bool {
        match (self.place, space) {
            (Place::Mesh | Place::Rooms, Space::Mesh)
            | (Place::Rooms, Space::Followers(_) | Space::Node) => true,
            (Place::Mesh, Space::Followers(_) | Space::Node) => false,
        }
    }

    /// Whether a record of this id may have this content. That of a deletion is gone, and with it the name. Of a sealed one no
    /// more is known without the key than its length: one that says something else shows nowhere.
    #[must_use]
    pub fn fits(&self, space: Space, id: RecordId, body: Option<&[u8]>) -> bool {
        let Some(body) = body else { return self.merge == Merge::Latest };
        match space {
            Space::Followers(_) => body.len() <= self.body_bytes_max + SEAL_BYTES,
            Space::Mesh | Space::Node => {
                body.len() <= self.body_bytes_max && (self.names)(body) == Some(id)
            }
        }
    }

    /// Whether bytes apart are as many as they may be. Those of a deletion are gone.
    fn fits_apart(&self, space: Space, record: &Record) -> bool {
        let sealed = if let Space::Followers(_) = space { SEAL_BYTES } else { 0 };
        let may = |length: u32| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            self.apart_bytes_max > 0 && length <= self.apart_bytes_max + sealed
        };
        record.apart.is_none_or(|apart| record.body.is_some() && may(apart.length))
    }

    /// Records of one owner that a set keeps. More than a client may write: two sides of a split, each within the bound,
    /// lose nothing when they meet, but for what they wrote at the bound.
    #[must_use]
    pub fn owner_kept(&self) -> usize {
        kept(self.owner_max)
    }

    /// The same of [`Collection::node_max`].
    #[must_use]
    pub fn node_kept(&self) -> usize {
        kept(self.node_max)
    }
}

/// Whether a record is its owner's word in this mesh, and has the form of its collection if that is known here. Whether the owner
/// may have one in its space says the directory.
#[must_use]
pub fn is_sound(record: &Record, judge: &dyn Judge, mesh: MeshId) -> bool {
    let Record { space, id, .. } = *record;
    let fits = Collection::of(record.collection).is_none_or(|collection| {
        let fits = collection.fits(space, id, record.content());
        collection.is_in(space) && fits && collection.fits_apart(space, record)
    });
    fits && record.is_signed(judge, mesh)
}

/// Whether a peer may send it: nobody passes on one that is not sound, or of a node alone.
#[must_use]
pub fn may_be_sent(record: &Record, judge: &dyn Judge, mesh: MeshId) -> bool {
    record.space != Space::Node && is_sound(record, judge, mesh)
}

/// Ten ninths.
fn kept(max: usize) -> usize {
    max.saturating_mul(10).div_ceil(9)
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collection({} {})", self.number.0, self.name)
    }
}
