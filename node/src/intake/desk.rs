//! Jobs wait here for a thread that checks them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use mesh::name::id::NodeId;

use crate::fair::Fair;

/// Peers take turns; of one peer one thing is in somebody's hands at a time.
#[derive(Debug)]
pub(super) struct Desk<T> {
    state: Mutex<Jobs<T>>,
    work: Condvar,
}

#[derive(Debug)]
struct Jobs<T> {
    jobs: Fair<T>,
    closed: bool,
}

impl<T> Default for Desk<T> {
    fn default() -> Desk<T> {
        let state = Jobs { jobs: Fair::default(), closed: false };
        Desk { state: Mutex::new(state), work: Condvar::new() }
    }
}

impl<T> Desk<T> {
    pub(super) fn put(&self, peer: NodeId, job: T) {
        self.locked().jobs.push(peer, job);
        self.work.notify_one();
    }

    /// Waits for the next job. `None`: it is closed.
    pub(super) fn next(&self) -> Option<(NodeId, T)> {
        let idle = |state: &mut Jobs<T>| !state.jobs.has_next() && !state.closed;
        let mut state =
            self.work.wait_while(self.locked(), idle).unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.jobs.next() }
    }

    /// The job of this peer is done: its next one may be taken.
    pub(super) fn done(&self, peer: NodeId) {
        self.locked().jobs.served(peer);
        self.work.notify_one();
    }

    /// Waiting jobs are dropped.
    pub(super) fn close(&self) {
        let mut state = self.locked();
        state.closed = true;
        let lost = std::mem::take(&mut state.jobs);
        drop(state);
        drop(lost);
        self.work.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.locked().closed
    }

    fn locked(&self) -> MutexGuard<'_, Jobs<T>> {
        // Nothing that is done under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
