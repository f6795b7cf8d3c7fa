//! Frames that are no use: a client that goes on with them has to go.

use std::time::Instant;

use crate::limits::{BAD_FRAMES_MAX, BAD_FRAMES_WITHIN};

/// Bad frames of a short time.
pub(crate) struct BadFrames {
    since: Instant,
    count: u32,
}

impl Default for BadFrames {
    fn default() -> BadFrames {
        BadFrames { since: Instant::now(), count: 0 }
    }
}

impl BadFrames {
    /// One more. `true`: it is one too many.
    pub(crate) fn one_more(&mut self) -> bool {
        if self.since.elapsed() > BAD_FRAMES_WITHIN {
            *self = BadFrames::default();
        }
        self.count += 1;
        self.count >= BAD_FRAMES_MAX
    }
}
