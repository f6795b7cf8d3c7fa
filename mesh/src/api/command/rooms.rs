//! Changes of what belongs to a room, and is no message: its details, its files, and the keys that have it; and what
//! follows from a view of it.

use std::sync::Arc;

use super::{Access, Caller, Encryption, Reader, RoomView};
use crate::{
    api::policy::{Withheld, withheld},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        key::KeySecret,
    },
    records::{details::DetailsUpdate, files::NewFile, members::Role},
    wire::record::Stamp,
};

/// The details that a room is to have.
#[derive(Clone, Debug)]
pub struct RoomSet {
    /// The agent that asks.
    pub caller: Caller,
    /// The room.
    pub room: RoomId,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The change.
    pub update: DetailsUpdate,
}

/// A change of the keys that have a shared room, by the key that made it.
#[derive(Clone, Debug)]
pub struct Share {
    /// The agent that asks.
    pub caller: Caller,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The room.
    pub room: RoomId,
    /// An agent of the key.
    pub agent: AgentId,
    /// The change.
    pub act: ShareAct,
}

/// See [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareAct {
    /// The key has the room from now on, with all that was said in it.
    Give,
    /// Its agents are out of it, for ever.
    Take,
}

/// A change of the members of a room that are on record, by the key that made it.
#[derive(Clone, Debug)]
pub struct MemberSet {
    /// The agent that asks.
    pub caller: Caller,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The room.
    pub room: RoomId,
    /// The agent that it is about.
    pub agent: AgentId,
    /// The change.
    pub act: MemberAct,
}

/// See [`MemberSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberAct {
    /// It is on record with this role: a second lead takes the place of the first. A shared room is given to its key.
    Put(Role),
    /// It is not, and has no seat. A shared room is taken from its key, unless another member is of that key.
    Remove,
}

/// An agent leaves a room, and says so on record.
#[derive(Clone, Debug)]
pub struct LeaveOnRecord {
    /// The agent.
    pub caller: Caller,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The room.
    pub room: RoomId,
}

/// A change of a room's file, by the holder of a key, not necessarily an agent that is attached.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The room.
    pub room: RoomId,
    /// The key.
    pub key: KeyPrint,
    /// The agent in whose name it is written: one of the key's.
    pub agent: Option<AgentId>,
    /// As in [`Command::SetProfile`](super::Command::SetProfile).
    pub signer: Option<Arc<KeySecret>>,
    /// The change.
    pub act: FileAct,
}

/// See [`Command::GatherReplaced`](super::Command::GatherReplaced).
#[derive(Clone, Debug)]
pub struct GatherReplaced {
    /// The key and the agent that ask.
    pub by: Reader,
    /// The room.
    pub room: RoomId,
    /// The path of one file; with a stamp this one state of it, and its bytes. `None`: all files, without bytes.
    pub file: Option<(String, Option<Stamp>)>,
}

/// See [`FileChange`].
#[derive(Clone, Debug)]
pub enum FileAct {
    /// A file is to be this.
    Put(NewFile, Encryption),
    /// The file of this path is deleted.
    Remove(String),
}

impl RoomView {
    /// Why this node does not hand over what an agent says here, if it does not.
    #[must_use]
    pub fn withheld(&self, author: &str) -> Option<Withheld> {
        withheld(self.sides.as_ref()?, &self.withheld, author)
    }

    /// Those who may know of it.
    #[must_use]
    pub fn access(&self) -> Access {
        let RoomView { public, owner, sealed, .. } = *self;
        Access { public, owner, sealed, sides: self.sides.clone(), shared: self.shared.clone() }
    }
}
