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
    /// Tasks that agents give to others.
    pub spawning: Spawning,
    /// The end of a send whose answer does not come in time.
    pub soft_timeout: SoftTimeout,
}

/// The status of a send whose answer does not come in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SoftTimeout {
    /// `timeout`.
    #[default]
    Timeout,
    /// `accepted`: for hosts whose models take a time-out for a failure, and send again.
    Accepted,
}

/// Bounds of tasks that agents give to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawning {
    /// Tasks of one agent that go on.
    pub children: usize,
    /// Tasks that lead to each other; 0: none may be given.
    pub depth: u32,
    /// An agent that was chosen begins within this time, or another one is asked.
    pub begin_within: Duration,
}

impl Default for Spawning {
    fn default() -> Spawning {
        Spawning {
            children: limits::CHILDREN_MAX,
            depth: limits::DEPTH_MAX,
            begin_within: limits::BEGIN_WITHIN,
        }
    }
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new(lobby: RoomId) -> Settings {
        Settings {
            lobby,
            groups: Groups::ASSUMED,
            idle_detach: limits::IDLE_DETACH,
            soft_timeout: SoftTimeout::Timeout,
            spawning: Spawning::default(),
        }
    }
}
