//! Reach: the nodes that have a room.

use crate::{
    name::id::KeyPrint,
    wire::entry::{Body, RoomCreated},
};

/// The nodes that have a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All nodes.
    Mesh,
    /// This node.
    Node,
    /// The nodes that follow this key.
    Followers(KeyPrint),
}

impl Reach {
    /// Whether a directory of this reach may say this.
    pub(super) fn may_list(self, body: &Body) -> bool {
        match self {
            Reach::Mesh | Reach::Node => true,
            // Lanes, agents and keys are everybody's business: entries that only some know of would part
            // them.
            Reach::Followers(owner) => {
                matches!(body, Body::RoomCreated(created) if belongs_to(created, owner))
            }
        }
    }
}

pub(super) fn belongs_to(created: &RoomCreated, owner: KeyPrint) -> bool {
    !created.public && created.owner == owner
}
