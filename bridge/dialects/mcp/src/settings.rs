//! Decisions of the operator.

use std::time::Duration;

use mesh::name::id::RoomId;

use crate::{groups::Groups, limits};

/// Decisions of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The lobby of the mesh.
    pub lobby: RoomId,
    /// The tools of a host that asks for none by name.
    pub groups: Groups,
    /// An agent stays attached for so long after its last call.
    pub idle_detach: Duration,
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(lobby: RoomId) -> Settings {
        Settings { lobby, groups: Groups::ASSUMED, idle_detach: limits::IDLE_DETACH }
    }
}
