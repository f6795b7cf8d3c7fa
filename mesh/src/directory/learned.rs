//! The place of a fact in a directory, and the change that it has made.

use super::standing::Standing;
use crate::name::id::{AgentId, EntryRef, KeyPrint, LocalRef, NodeId, RoomId};

/// An entry of a directory: which directory, and where in it.
pub(crate) type Source = (RoomId, LocalRef);

/// A change that a fact made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// None that anybody would notice.
    Nothing,
    /// There is a new room; or names of rooms may have changed.
    Rooms(Vec<RoomId>),
    /// There is a new direct room.
    Direct(RoomId),
    /// A direct room takes nothing more.
    Closed(RoomId),
    /// A node has a lane.
    Lane(NodeId),
    /// The owner of this agent id may have changed.
    Agent(AgentId),
    /// A key is known, or another node answers for it.
    Key(KeyPrint),
    /// An account is known, or another node answers for it.
    Account(KeyPrint),
    /// A key is not valid any more, for ever.
    Revoked(KeyPrint),
    /// All that was this key's own belongs to another one.
    Replaced(KeyPrint),
    /// A key has expired.
    Expired(KeyPrint),
}

/// A part of a log that does not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Void {
    pub(super) directory: RoomId,
    pub(super) from: EntryRef,
}

impl Void {
    pub(super) fn covers(self, source: Source, standing: Standing) -> bool {
        let of_log = source.0 == self.directory && standing.log == self.from.log;
        of_log && standing.seq >= self.from.seq
    }
}
