//! What goes otherwise than with a node that is well.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize},
    mpsc,
};

use mesh::{
    api::command::Command,
    name::{
        id::{LocalRef, RoomId},
        number::Number,
    },
};

use tokio::sync::oneshot;

use super::Ended;
use crate::{Reply, backend::Roam};

/// A place where a reader waits.
pub struct Gate {
    /// Told when it is there.
    pub came: oneshot::Sender<()>,
    /// It goes on when it hears from here.
    pub opens: mpsc::Receiver<()>,
}

/// What goes otherwise than with a node that is well.
#[derive(Default)]
pub struct Knobs {
    /// The next read of one job goes through it, when it has read.
    pub gate: Mutex<Option<Gate>>,
    /// Commands are taken, and nothing comes of them: the engine has ended.
    pub ends: AtomicBool,
    /// Commands are not taken.
    pub full: AtomicBool,
    /// The delivery log goes on from no cursor, as after a split.
    pub split: AtomicBool,
    /// Nothing can be read.
    pub broken: AtomicBool,
    /// How often nothing could be read.
    pub failed_reads: AtomicUsize,
    /// Answers are kept back while this is set.
    pub stalls: AtomicBool,
    pub(super) stalled: Mutex<Vec<(Reply, Ended)>>,
    /// What a cursor above every number finds, before and after it was claimed for.
    pub roam: Mutex<Option<Roam>>,
    pub roamed: Mutex<Vec<(RoomId, Number)>>,
    /// Numbers that were passed over, and of what.
    pub passed_over: Mutex<Vec<(Number, LocalRef)>>,
    /// Whether [`Command::Roam`] makes a cursor one that can be served.
    pub claims: AtomicBool,
    /// So often it says before that it cannot tell yet.
    pub behind: AtomicUsize,
    /// Somebody speaks while the mesh is asked to claim.
    pub speaks_while_claiming: AtomicBool,
    /// Messages are announced without their content.
    pub cold: AtomicBool,
    /// What the next command is answered, whatever it is; and what it was.
    pub script: Mutex<Option<Ended>>,
    pub scripted: Mutex<Option<Command>>,
}
