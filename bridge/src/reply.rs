//! The way back of a call's end.

use std::{
    fmt,
    time::{Duration, Instant},
};

use mesh::api::command::{Outcome, Refused};
use tokio::sync::oneshot;

/// How a call ended.
pub(crate) type Ended = Result<Outcome, Failure>;

/// Why a call came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The mesh says no.
    Refused(Refused),
    /// The mesh has not taken it: its queue was full.
    Unanswered,
    /// The mesh took it and said nothing: the node stops, and nobody knows whether it is done.
    Unknown,
}

/// Where the answer to a [`crate::Mesh::call`] goes.
pub struct Reply {
    to: Option<Box<dyn FnOnce(Ended) + Send>>,
    taken: bool,
    since: Instant,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Reply {
    /// `to` is called once, on the thread that answers, and never blocks.
    pub(crate) fn new(to: impl FnOnce(Ended) + Send + 'static) -> Reply {
        Reply { to: Some(Box::new(to)), taken: false, since: Instant::now() }
    }

    pub(crate) fn once() -> (Reply, oneshot::Receiver<Ended>) {
        let (sender, receiver) = oneshot::channel();
        // An error: nobody waits any more, for the connection has ended.
        (Reply::new(|ended| drop(sender.send(ended))), receiver)
    }

    /// The mesh has begun with it. If it is dropped from now on, the client is told that nobody knows whether it was
    /// done; before, that the node is too busy.
    pub fn take(&mut self) {
        self.taken = true;
    }

    /// How long the asker has waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    /// Hands the answer over. Never blocks. To be called on the thread that calls
    /// [`Hub::notify`](crate::Hub::notify), in the order of the effects.
    pub fn send(mut self, result: Result<Outcome, Refused>) {
        self.finish(result.map_err(Failure::Refused));
    }

    fn finish(&mut self, ended: Ended) {
        if let Some(to) = self.to.take() {
            to(ended);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.finish(Err(if self.taken { Failure::Unknown } else { Failure::Unanswered }));
    }
}
