//! Dialling one thing: when next, and how long to wait after a failure.

use std::time::Instant;

use crate::backoff::Backoff;
use crate::limits::{
    DIRECT_MAX, DIRECT_MIN, LOST_RECENTLY, REDIAL_LOST_MAX, REDIAL_MAX, REDIAL_MIN,
};

const REDIAL: Backoff = Backoff { min: REDIAL_MIN, max: REDIAL_MAX };
const DIRECT: Backoff = Backoff { min: DIRECT_MIN, max: DIRECT_MAX };
const REDIAL_LOST: Backoff = Backoff { min: REDIAL_MIN, max: REDIAL_LOST_MAX };

/// When a peer or a seed is dialled next, and how often that has failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Redial {
    pub(crate) failures: u32,
    pub(crate) under_way: bool,
    pub(crate) next: Option<Instant>,
    /// When there was last a link.
    pub(super) lost: Option<Instant>,
}

impl Redial {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.under_way && self.next.is_none_or(|next| next <= now)
    }

    /// When it is due; `None` while it is under way.
    pub(super) fn at(&self, now: Instant) -> Option<Instant> {
        (!self.under_way).then(|| self.next.unwrap_or(now))
    }

    /// Of a peer that is reached in another way meanwhile: there is time.
    pub(super) fn fail_calmly(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.under_way = false;
        self.next = Some(now + DIRECT.after(self.failures));
    }

    pub(super) fn fail(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.under_way = false;
        let lost = self.lost.is_some_and(|at| now.saturating_duration_since(at) < LOST_RECENTLY);
        let policy = if lost { REDIAL_LOST } else { REDIAL };
        self.next = Some(now + policy.after(self.failures));
    }
}
