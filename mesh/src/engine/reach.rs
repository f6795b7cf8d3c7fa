//! Reach: the nodes that have a room.

use crate::{
    name::{
        group::{Group, Pair},
        id::KeyPrint,
    },
    wire::entry::{Body, DirectOpened, RoomCreated},
};

/// The nodes that have a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All nodes.
    Mesh,
    /// This node.
    Node,
    /// The nodes that follow this group.
    Followers(Group),
}

impl Reach {
    /// Whether a directory of this reach may say this.
    pub(super) fn may_list(self, body: &Body) -> bool {
        match self {
            Reach::Mesh | Reach::Node => {
                !matches!(body, Body::DirectOpened(_) | Body::DirectClosed(_))
            }
            // Lanes, agents and keys are everybody's business: entries that only some know of would part
            // them.
            Reach::Followers(Group::Key(owner)) => {
                matches!(body, Body::RoomCreated(created) if belongs_to(created, owner))
            }
            Reach::Followers(Group::Pair(pair)) => {
                matches!(body, Body::DirectOpened(opened) if is_between(opened, pair))
                    || matches!(body, Body::DirectClosed(_))
            }
            // Records list the room: what is signed by its maker alone.
            Reach::Followers(Group::Shared(_)) => false,
        }
    }
}

fn is_between(opened: &DirectOpened, pair: Pair) -> bool {
    let DirectOpened { by, with, task: _ } = opened;
    Pair::of(by.halves.print(), with.halves.print()) == pair && opened.fits()
}

pub(super) fn belongs_to(created: &RoomCreated, owner: KeyPrint) -> bool {
    !created.public && created.owner == owner
}
