//! Ids of frames.

use std::sync::atomic::{AtomicU64, Ordering};

use bridge::ids::{random, uuid};

/// Ids of frames: unique, cheap, and not to be guessed from outside. UUIDs of version 8.
#[derive(Debug)]
pub(crate) struct FrameIds {
    start: [u8; 8],
    next: AtomicU64,
}

impl FrameIds {
    pub(crate) fn new() -> FrameIds {
        FrameIds { start: random(), next: AtomicU64::new(0) }
    }

    pub(crate) fn fresh(&self) -> String {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.start);
        id[8..].copy_from_slice(&next.to_be_bytes());
        uuid(id, 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        let ids = FrameIds::new();
        let (a, b) = (ids.fresh(), ids.fresh());
        assert_ne!(a, b);
        assert_eq!((a.len(), a.as_bytes()[14]), (36, b'8'));
        assert!(b"89ab".contains(&a.as_bytes()[19]));
    }
}
