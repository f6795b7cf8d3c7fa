//! Ids that the bridge makes.

use std::fmt::Write as _;

use mesh::name::id::uuid_text;

/// The text of a new key: 256 random bits.
pub(crate) fn key() -> String {
    random::<32>().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

/// An id for a subscription: a UUID of version 4.
pub(crate) fn subscription() -> String {
    uuid(random(), 4)
}

/// Bytes from the system that nobody can guess.
///
/// # Panics
/// Without the system's randomness, which a node cannot run without.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("a system without randomness cannot run a node");
    bytes
}

/// The text of these bytes as a UUID of this version (RFC 9562): six of their bits give way to version and variant.
#[must_use]
pub fn uuid(mut bytes: [u8; 16], version: u8) -> String {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid_text(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        assert_ne!(key(), key());
        assert_eq!(key().len(), 64);
        assert_eq!(subscription().as_bytes()[14], b'4');
        assert!(b"89ab".contains(&subscription().as_bytes()[19]));
    }
}
