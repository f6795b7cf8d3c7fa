//! A digest tells two files apart. It covers every row that is read, in any order.

use sha2::{Digest as _, Sha256};

use rusqlite::types::ValueRef;

/// The rows of a file as one number: the same for a copy, another for a file that has grown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Digest {
    folded: [u8; 32],
    rows: u64,
}

impl Digest {
    /// One row more, of a table.
    pub(crate) fn add<'r>(&mut self, table: &str, cells: impl Iterator<Item = ValueRef<'r>>) {
        let mut hasher = Sha256::new();
        let mut put = |tag: u8, bytes: &[u8]| {
            hasher.update([tag]);
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        put(0, table.as_bytes());
        for cell in cells {
            match cell {
                ValueRef::Null => put(1, &[]),
                ValueRef::Integer(number) => put(2, &number.to_be_bytes()),
                ValueRef::Real(number) => put(3, &number.to_be_bytes()),
                ValueRef::Text(text) => put(4, text),
                ValueRef::Blob(bytes) => put(5, bytes),
            }
        }
        // Exclusive or: rows have no order of their own.
        for (sum, byte) in self.folded.iter_mut().zip(hasher.finalize()) {
            *sum ^= byte;
        }
        self.rows += 1;
    }

    /// As text: hex digits, and how many rows.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}-{}", hex(&self.folded), self.rows)
    }

    /// How many rows were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// A UUID that follows from an id that is none (in the form of version 5), the same each time.
#[must_use]
pub fn id_from(text: &str) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    groups.join("-")
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text
}
