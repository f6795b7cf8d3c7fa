//! Subscriptions of hosts that are posted to, as a node has them while it runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bridge::read::Callback;
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use super::{Asking, Name};

/// All subscriptions of the node, by id.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<BTreeMap<String, Hook>>);

/// A subscription.
pub(crate) struct Hook {
    pub(crate) of: Name,
    pub(crate) posting: AbortHandle,
    pub(crate) renewed: watch::Sender<Renewed>,
    /// How far it was posted, and how that goes.
    pub(crate) state: Arc<Mutex<State>>,
}

/// That which a host says anew each time.
#[derive(Clone)]
pub(crate) struct Renewed {
    /// Its key may be shown by another token.
    pub(crate) asking: Asking,
    pub(crate) to: Callback,
    pub(crate) until: Instant,
}

/// How far it was posted.
pub(crate) struct State {
    pub(crate) cursor: String,
    /// Of the last try, if it failed.
    pub(crate) error: Option<String>,
}

impl Hooks {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Hook>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, hook| !hook.posting.is_finished());
        all
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.posting.abort();
    }
}
