//! The bytes of a journal: its header, and its records. A page of the journal is a block.
//!
//! All integers are little endian. The header is in one sector. A record is a head (what it is of, then the indexes of its
//! blocks, filled up with zeros to a whole block) and then those blocks.

use std::{collections::BTreeMap, io};

use redb::StorageBackend;
use twox_hash::XxHash3_128;

/// Bytes of a page: what is written and found again as one piece.
pub(super) const BLOCK_BYTES: usize = 4_096;
/// The same, as a distance in a file.
pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;
/// Where the first record is: the header is before it.
pub(super) const FIRST: u64 = BLOCK;

const HEADER_MAGIC: &[u8; 16] = b"clawmesh journal";
const RECORD_MAGIC: &[u8; 8] = b"commit/1";
const VERSION: u64 = 1;
/// Integers of the header besides its checksum, after the magic.
const HEADER_FIELDS: usize = 4;
/// Bytes of a record's head before the indexes: magic, generation, number, length of the database, blocks, checksum.
const RECORD_HEAD: usize = 8 + 4 * 8 + 16;

/// A page.
pub(super) type Block = Box<[u8; BLOCK_BYTES]>;
/// Pages by their index: their offset in the database, in blocks.
pub(super) type Blocks = BTreeMap<u64, Block>;

/// A page of zeros.
pub(super) fn blank() -> Block {
    Box::new([0; BLOCK_BYTES])
}

/// What the beginning of the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the file before the database: the header, and room for records. Whole blocks.
    pub(super) region: u64,
    /// Up to there it was written once, so that nothing but bytes changes when it is written again.
    pub(super) ready: u64,
    /// Records of another one do not count.
    pub(super) generation: u64,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing in it yet.
    Blank,
    Ours(Header),
    /// Something else.
    Foreign,
}

/// Looks, without writing. A file of zeros that is no longer than `room` counts as blank: its making was interrupted.
///
/// # Errors
///
/// Those of the file, and [`io::ErrorKind::InvalidData`] of a header that is damaged or of a later version.
pub(super) fn look(file: &dyn StorageBackend, room: u64) -> io::Result<Found> {
    let len = file.len()?;
    let mut bytes = vec![0; BLOCK_BYTES.min(usize::try_from(len).unwrap_or(usize::MAX))];
    file.read(0, &mut bytes)?;
    if len <= room && bytes.iter().all(|byte| *byte == 0) {
        return Ok(Found::Blank);
    }
    let Some((magic, rest)) = bytes.split_first_chunk::<16>() else { return Ok(Found::Foreign) };
    if magic != HEADER_MAGIC {
        return Ok(Found::Foreign);
    }
    let damaged =
        || io::Error::new(io::ErrorKind::InvalidData, "the header of its journal is damaged");
    let mut fields = Fields(rest);
    let mut next = || fields.take().ok_or_else(damaged);
    let (version, region, ready, generation) = (next()?, next()?, next()?, next()?);
    let checksum = u128::from(next()?) | u128::from(next()?) << 64;
    if checksum != XxHash3_128::oneshot(&bytes[..16 + HEADER_FIELDS * 8]) {
        return Err(damaged());
    }
    if version != VERSION {
        let why = format!("its journal is of version {version}, this program knows {VERSION}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let is_sound = region % BLOCK == 0 && region > FIRST && len >= region;
    is_sound.then_some(Found::Ours(Header { region, ready, generation })).ok_or_else(damaged)
}

impl Header {
    /// One block.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = HEADER_MAGIC.to_vec();
        for field in [VERSION, self.region, self.ready, self.generation] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(XxHash3_128::oneshot(&bytes).to_le_bytes());
        bytes.resize(BLOCK_BYTES, 0);
        bytes
    }
}

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) generation: u64,
    /// The first of a generation is 1.
    pub(super) seq: u64,
    /// Bytes of the database after it.
    pub(super) len: u64,
}

/// Bytes of a record of so many blocks.
pub(super) fn record_bytes(blocks: usize) -> u64 {
    head_bytes(blocks) as u64 + blocks as u64 * BLOCK
}

fn head_bytes(blocks: usize) -> usize {
    (RECORD_HEAD + blocks * 8).next_multiple_of(BLOCK_BYTES)
}

/// A record.
pub(super) fn encode(stamp: &Stamp, blocks: &Blocks) -> Vec<u8> {
    let head = head_bytes(blocks.len());
    let mut bytes = Vec::with_capacity(head + blocks.len() * BLOCK_BYTES);
    bytes.extend(RECORD_MAGIC);
    for field in [stamp.generation, stamp.seq, stamp.len, blocks.len() as u64] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([0; 16]);
    bytes.extend(blocks.keys().flat_map(|index| index.to_le_bytes()));
    bytes.resize(head, 0);
    blocks.values().for_each(|block| bytes.extend_from_slice(&block[..]));
    let checksum = XxHash3_128::oneshot(&bytes);
    bytes[RECORD_HEAD - 16..RECORD_HEAD].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The record at `at`, in a journal that ends at `end`, if there is a whole one, and its bytes.
///
/// # Errors
///
/// Those of the file.
pub(super) fn decode(
    file: &dyn StorageBackend,
    at: u64,
    end: u64,
) -> io::Result<Option<(Stamp, Blocks, u64)>> {
    if at.checked_add(BLOCK).is_none_or(|first| first > end) {
        return Ok(None);
    }
    let mut bytes = vec![0; BLOCK_BYTES];
    file.read(at, &mut bytes)?;
    let Some((magic, rest)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
    let mut fields = Fields(rest);
    let mut next = || fields.take().unwrap_or(u64::MAX);
    let stamp = Stamp { generation: next(), seq: next(), len: next() };
    let count = next();
    let room = (end - at) / BLOCK;
    let Some(count) = usize::try_from(count).ok().filter(|_| magic == RECORD_MAGIC && count < room)
    else {
        return Ok(None);
    };
    let whole = record_bytes(count);
    if whole > end - at {
        return Ok(None);
    }
    bytes.resize(head_bytes(count) + count * BLOCK_BYTES, 0);
    let (_, more) = bytes.split_at_mut(BLOCK_BYTES);
    file.read(at + BLOCK, more)?;
    let checksum = bytes[RECORD_HEAD - 16..RECORD_HEAD].to_vec();
    bytes[RECORD_HEAD - 16..RECORD_HEAD].fill(0);
    if checksum != XxHash3_128::oneshot(&bytes).to_le_bytes() {
        return Ok(None);
    }
    let (head, pages) = bytes.split_at(head_bytes(count));
    let mut indexes = Fields(&head[RECORD_HEAD..]);
    let mut blocks = Blocks::new();
    for page in pages.chunks_exact(BLOCK_BYTES) {
        let mut block = blank();
        block.copy_from_slice(page);
        let Some(index) = indexes.take() else { return Ok(None) };
        blocks.insert(index, block);
    }
    Ok(Some((stamp, blocks, whole)))
}

/// Integers, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }
}
