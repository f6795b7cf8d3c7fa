//! All that requests share.

use std::sync::Arc;

use bridge::read::Desk;
use tokio::sync::Semaphore;

use crate::{limits::LIVE_MAX, signing::Signing};

/// See the module.
pub(crate) struct Shared {
    pub(crate) desk: Desk,
    pub(crate) signing: Signing,
    /// Pages that may be open and live.
    pub(crate) live: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(desk: Desk) -> Shared {
        Shared { desk, signing: Signing::default(), live: Arc::new(Semaphore::new(LIVE_MAX)) }
    }
}
