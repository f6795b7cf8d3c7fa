//! Reach: the nodes that have a room.

use super::Known;
use crate::{
    api::command::Refused,
    name::id::{KeyPrint, RoomId},
    wire::{
        entry::{Body, RoomCreated},
        seal::{Seal, directory},
    },
};

/// The nodes that have a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Reach {
    /// All nodes.
    Mesh,
    /// This node.
    Node,
    /// The nodes that follow this key.
    Followers(KeyPrint),
}

impl Known {
    /// Whether the private rooms of a key span the mesh: it was minted for all of it.
    pub(in crate::engine) fn spans(&self, key: KeyPrint) -> bool {
        self.directory.keys.is_minted(key, false)
    }

    /// Where a room that an agent of this key makes is listed, and so who has it.
    pub(in crate::engine) fn directory_for(
        &self,
        key: KeyPrint,
        public: bool,
    ) -> Result<RoomId, Refused> {
        if public {
            return Ok(RoomId::directory(self.cx.mesh));
        }
        match self.cx.followers.directory(key) {
            Some(room) => Ok(room),
            None if self.spans(key) && !self.own_keys.contains(&key) => {
                let full = "this node follows the private rooms of as many keys as it may: make the \
                            room public, or at another node";
                Err(Refused::Full(full.to_owned()))
            }
            None => Ok(self.cx.private_directory),
        }
    }

    /// Who has the rooms that a directory lists.
    pub(in crate::engine) fn reach_of(&self, directory: RoomId) -> Reach {
        if directory == self.cx.private_directory {
            return Reach::Node;
        }
        let seal = self.rooms.get(&directory).and_then(|room| room.record.seal.as_ref());
        seal.map_or(Reach::Mesh, |seal| Reach::Followers(seal.owner))
    }

    /// What seals a room that is to be made.
    pub(in crate::engine) fn seal_for(&self, id: RoomId, reach: Reach) -> Option<Seal> {
        let Reach::Followers(owner) = reach else { return None };
        let opener = self.cx.followers.opener(owner)?;
        Some(if id == directory(self.cx.mesh, opener) {
            Seal::of_directory(self.cx.mesh, owner, opener)
        } else {
            Seal::of_room(owner, opener, id)
        })
    }

    /// Whose room it is, if only those who follow that key have it.
    pub(in crate::engine) fn sealed_for(&self, room: RoomId) -> Option<KeyPrint> {
        Some(self.rooms.get(&room)?.record.seal.as_ref()?.owner)
    }

    /// Whether clients may see the rooms of this key: not once it is revoked. What was written there
    /// stays.
    fn is_served(&self, key: KeyPrint) -> bool {
        self.own_keys.contains(&key) || self.directory.keys.tier(key).is_some()
    }

    /// Whether clients may not see a room though it is here.
    pub(in crate::engine) fn is_withdrawn(&self, room: RoomId) -> bool {
        self.sealed_for(room).is_some_and(|owner| !self.is_served(owner))
    }

    pub(in crate::engine) fn is_memory(&self, room: RoomId) -> bool {
        self.rooms.get(&room).is_some_and(|it| it.record.ephemeral)
    }
}

impl Reach {
    /// Whether a directory of this reach may say this.
    pub(in crate::engine) fn may_list(self, body: &Body) -> bool {
        match self {
            Reach::Mesh | Reach::Node => true,
            // Lanes, agents and keys are everybody's business: what only some know of would part them.
            Reach::Followers(owner) => {
                matches!(body, Body::RoomCreated(created) if belongs_to(created, owner))
            }
        }
    }
}

pub(in crate::engine) fn belongs_to(created: &RoomCreated, owner: KeyPrint) -> bool {
    !created.public && created.owner == owner
}
