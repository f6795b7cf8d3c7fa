//! Fingerprints and key ids, and how they are written.

use std::{fmt, str::FromStr};

/// The fingerprint of a certificate of version 4: 40 hex digits, upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 20]);

/// The last half of a key's fingerprint, by which messages name their keys: 16 hex digits, upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

/// A text that is no fingerprint or key id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not as many hex digits as it must be")]
pub struct NotAnId;

impl KeyId {
    /// The id that messages give for a recipient that they do not name.
    pub const ANONYMOUS: KeyId = KeyId([0; 8]);

    /// Whether no key is named.
    #[must_use]
    pub fn is_anonymous(self) -> bool {
        self == KeyId::ANONYMOUS
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Fingerprint {
    type Err = NotAnId;

    /// Hex digits of any case, and nothing else.
    fn from_str(text: &str) -> Result<Fingerprint, NotAnId> {
        read_hex(text).map(Fingerprint)
    }
}

impl FromStr for KeyId {
    type Err = NotAnId;

    /// Hex digits of any case, and nothing else.
    fn from_str(text: &str) -> Result<KeyId, NotAnId> {
        read_hex(text).map(KeyId)
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
}

fn read_hex<const N: usize>(text: &str) -> Result<[u8; N], NotAnId> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return Err(NotAnId);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let mut value = 0;
        for digit in pair {
            value = value * 16 + char::from(*digit).to_digit(16).ok_or(NotAnId)?;
        }
        *byte = u8::try_from(value).map_err(|_| NotAnId)?;
    }
    Ok(bytes)
}
