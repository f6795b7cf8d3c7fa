//! Ids of frames.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

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
        uuid(id)
    }
}

fn random() -> [u8; 8] {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("a system without randomness cannot run a node");
    bytes
}

fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 8 << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text
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
