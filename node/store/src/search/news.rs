//! What the writer of the store tells the index: which rooms have something new. With nobody who follows it costs nothing.

use std::{
    collections::BTreeSet,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mesh::{
    api::batch::{Change, Fate},
    name::id::RoomId,
};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct News {
    followed: AtomicBool,
    state: Mutex<State>,
    came: Condvar,
}

/// Since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Rooms in which something was delivered: at most as many as there are.
    pub(crate) rooms: BTreeSet<RoomId>,
    /// Bodies that were written before this time were dropped.
    pub(crate) pruned_before: Option<u64>,
    /// Ephemeral rooms are gone.
    pub(crate) dropped: bool,
    /// How often something was committed.
    pub(crate) commits: u64,
    /// The follower waits.
    waits: bool,
}

impl State {
    fn is_something(&self) -> bool {
        !self.rooms.is_empty() || self.pruned_before.is_some() || self.dropped
    }
}

impl News {
    /// From now on somebody takes it.
    pub(crate) fn follow(&self) {
        self.followed.store(true, Ordering::Relaxed);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch is durable.
    pub(crate) fn committed(&self, batch: &[Change]) {
        if !self.followed.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.locked();
        state.commits += 1;
        let mut last = None;
        for change in batch {
            if let Change::Number { room, fate: Fate::Delivered, .. } = change {
                if last != Some(*room) {
                    last = Some(*room);
                    state.rooms.insert(*room);
                }
            } else if let Change::Prune { before_ms, .. } = change {
                state.pruned_before = state.pruned_before.max(Some(*before_ms));
            } else if let Change::Drop { .. } = change {
                state.dropped = true;
            }
        }
        if state.waits && state.is_something() {
            state.waits = false;
            self.came.notify_one();
        }
    }

    /// All that has come, and how often something was committed since.
    pub(crate) fn take(&self) -> State {
        std::mem::take(&mut *self.locked())
    }

    /// Waits until something comes, somebody stirs, or this time has passed.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut state = self.locked();
        if !state.is_something() {
            state.waits = true;
            drop(
                self.came
                    .wait_timeout_while(state, at_most, |state| state.waits)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
    }

    /// Ends a wait.
    pub(crate) fn stir(&self) {
        self.locked().waits = false;
        self.came.notify_one();
    }
}
