//! Collections: kinds of records, declared as data.

use std::{fmt, time::Duration};

use crate::{
    limits::SEAL_BYTES,
    name::{
        id::{KeyPrint, MeshId},
        identity::Judge,
    },
    wire::record::{CollectionNumber, Record, RecordId, RecordKey, Space, Stamp},
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
    /// The latest one, and a deletion is later than all else: what was deleted never comes back. The stamp of a deletion
    /// says so ([`Stamp::for_ever`](crate::wire::record::Stamp::for_ever)), so heads alone tell which one counts.
    Final,
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
    /// The principals that may own one.
    pub owners: Owners,
    /// The one of a key that counts.
    pub merge: Merge,
    /// The largest content, before it is sealed. Bytes.
    pub body_bytes_max: usize,
    /// The most bytes that travel apart from a record, before they are sealed. Zero: none do.
    pub apart_bytes_max: usize,
    /// The engine needs the contents themselves, which are small, and not the heads alone.
    pub in_memory: bool,
    /// A state that another one of its key replaces is kept for a while ([`crate::limits::REPLACED_FOR`]), beside the set: so that
    /// the other side of a split can be fetched back. Deletions drop them.
    pub keeps_replaced: bool,
    /// A successor of the owner signs it anew when the owner is replaced. Else it counts on without that, or is the owner's alone.
    pub inherited: bool,
    /// Records of one owner in one space, deletions included, up to which clients are not refused.
    pub owner_max: usize,
    /// The same of all owners for whom one node answers: it minted their keys. For [`Writer::Participants`]: of the space.
    pub node_max: usize,
    /// The id that a content names as one of this owner, if the content has this collection's form.
    pub(super) names: fn(&[u8], KeyPrint) -> Option<RecordId>,
}

/// The principals that own records of a collection.
#[derive(Clone, Copy, Debug)]
pub enum Owners {
    /// API keys that the directory knows.
    Keys,
    /// Accounts that the directory knows, whose records belong together.
    Accounts(Family),
}

/// The account that a content is about, if it is about one.
pub type About = fn(&[u8]) -> Option<KeyPrint>;

/// How the records of accounts belong together.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// A deletion of one ends its owner for ever: no other record of that account is kept, nor one that is about it.
    pub founds: bool,
    /// Each account has one record of this id alone.
    pub only: Option<fn(KeyPrint) -> RecordId>,
    /// The account that a content is about.
    pub about: Option<About>,
    /// Records of all accounts up to which clients are not refused.
    pub all_max: usize,
    /// A record is kept for so long from its stamp, to the end of a day. `None`: for ever.
    pub kept: Option<Duration>,
}

/// Spaces that a collection is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The set of all nodes.
    Mesh,
    /// Every space: records of a room are where the room is.
    Rooms,
    /// One node alone.
    Node,
}

impl Collection {
    /// Whether a space has such records.
    #[must_use]
    pub fn is_in(&self, space: Space) -> bool {
        match (self.place, space) {
            (Place::Mesh | Place::Rooms, Space::Mesh)
            | (Place::Rooms, Space::Followers(_) | Space::Node)
            | (Place::Node, Space::Node) => true,
            (Place::Mesh, Space::Followers(_) | Space::Node)
            | (Place::Node, Space::Mesh | Space::Followers(_)) => false,
        }
    }

    /// The space of its records that are of no room.
    #[must_use]
    pub fn home(&self) -> Space {
        match self.place {
            Place::Mesh | Place::Rooms => Space::Mesh,
            Place::Node => Space::Node,
        }
    }

    /// When a record of this stamp goes by itself: at the end of a day, so that nodes drop it together. `None`: never. So are
    /// deletions that are final.
    #[must_use]
    pub fn ends(&self, stamp: Stamp) -> Option<Stamp> {
        let kept = self.family()?.kept.filter(|_| !stamp.is_for_ever())?;
        let kept_us = u64::try_from(kept.as_micros()).unwrap_or(u64::MAX);
        let end_us = (stamp.wall_ms().saturating_mul(1_000)).saturating_add(kept_us);
        Some(Stamp::at(end_us.checked_next_multiple_of(DAY_US)?))
    }

    /// The id that a content names as one of this owner. `None`: it has not this collection's form.
    #[must_use]
    pub fn id_of(&self, content: &[u8], owner: KeyPrint) -> Option<RecordId> {
        (self.names)(content, owner)
    }

    /// The key of one of its records.
    #[must_use]
    pub fn key(&self, id: RecordId, owner: KeyPrint) -> RecordKey {
        let owner = match self.writer {
            Writer::Owner => Some(owner),
            Writer::Participants => None,
        };
        RecordKey { id, owner }
    }

    /// How its records belong together, if they are of accounts.
    #[must_use]
    pub fn family(&self) -> Option<&Family> {
        match &self.owners {
            Owners::Keys => None,
            Owners::Accounts(family) => Some(family),
        }
    }

    /// Whether the deletion of one of its records ends the owner.
    #[must_use]
    pub fn founds(&self) -> bool {
        self.family().is_some_and(|family| family.founds)
    }

    /// The account that a content is about.
    #[must_use]
    pub fn about(&self, body: Option<&[u8]>) -> Option<KeyPrint> {
        (self.family()?.about?)(body?)
    }

    /// Whether a record of this id and owner may have this content. That of a deletion is gone, and with it the name. Of a sealed one no
    /// more is known without the key than its length: one that says something else shows nowhere.
    #[must_use]
    pub fn fits(
        &self,
        space: Space,
        (id, owner): (RecordId, KeyPrint),
        body: Option<&[u8]>,
    ) -> bool {
        let Some(body) = body else {
            let only = self.family().and_then(|family| family.only);
            let deletes = matches!(self.merge, Merge::Latest | Merge::Final);
            return deletes && only.is_none_or(|only| only(owner) == id);
        };
        match space {
            Space::Followers(_) => body.len() <= self.body_bytes_max + SEAL_BYTES,
            Space::Mesh | Space::Node => {
                body.len() <= self.body_bytes_max && (self.names)(body, owner) == Some(id)
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

    /// Whether the stamp of a record says what it has to: where deletions are final, that it is one; elsewhere nothing.
    #[must_use]
    pub fn is_stamped(&self, stamp: Stamp, deleted: bool) -> bool {
        self.merge != Merge::Final || stamp.is_for_ever() == deleted
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
        let fits = collection.fits(space, (id, record.owner()), record.content());
        let stamped = collection.is_stamped(record.stamp, record.body.is_none());
        collection.is_in(space) && fits && stamped && collection.fits_apart(space, record)
    });
    fits && record.is_signed(judge, mesh)
}

/// Whether a peer may send it: nobody passes on one that is not sound, or of a node alone.
#[must_use]
pub fn may_be_sent(record: &Record, judge: &dyn Judge, mesh: MeshId) -> bool {
    record.space != Space::Node && is_sound(record, judge, mesh)
}

/// Microseconds of a day.
const DAY_US: u64 = 24 * 3_600 * 1_000_000;

/// Ten ninths.
fn kept(max: usize) -> usize {
    max.saturating_mul(10).div_ceil(9)
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collection({} {})", self.number.0, self.name)
    }
}
