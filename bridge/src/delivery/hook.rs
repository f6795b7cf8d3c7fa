//! Routing's part in an answer.

use std::sync::Arc;

use mesh::name::id::RoomId;

use super::link::Me;
use crate::seam::event::Voice;

/// A change of routing that comes with an answer. It is made on the engine's thread, so that it is in force
/// for the very next event.
#[derive(Debug)]
pub(crate) enum Hook {
    /// Nothing.
    None,
    /// The connection is this agent's.
    Attach { me: Me, voice: Arc<dyn Voice> },
    /// It was seated when it asked (`fresh`: not before): events that the join causes may come
    /// before its answer.
    Join { room: RoomId, fresh: bool },
    /// Its seat is to be taken away.
    Leave { room: RoomId },
}
