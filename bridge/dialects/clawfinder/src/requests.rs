//! How many requests there were, for operators.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// See the module. Since the start of the node.
#[derive(Debug)]
pub struct Requests {
    by_status: Mutex<BTreeMap<u16, u64>>,
    refused_steps: AtomicU64,
}

impl Default for Requests {
    /// Of the usual answer there was none yet: a count is seen from its beginning.
    fn default() -> Requests {
        Requests { by_status: Mutex::new([(200, 0)].into()), refused_steps: AtomicU64::new(0) }
    }
}

impl Requests {
    /// By the status of the answer.
    #[must_use]
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        self.by_status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Steps of negotiations that were not allowed.
    #[must_use]
    pub fn refused_steps(&self) -> u64 {
        self.refused_steps.load(Relaxed)
    }

    pub(crate) fn answered(&self, status: u16) {
        let mut by_status = self.by_status.lock().unwrap_or_else(PoisonError::into_inner);
        *by_status.entry(status).or_default() += 1;
    }

    pub(crate) fn step_refused(&self) {
        self.refused_steps.fetch_add(1, Relaxed);
    }
}
