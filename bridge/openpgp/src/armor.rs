//! The armor around packets: base64 between two lines. `pgp` has a reader, too, but it does not compare checksums, and
//! it stops after the first of several blocks.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Kinds of blocks, as their lines name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Keys,
    SecretKeys,
    Message,
    Signature,
}

impl Block {
    fn name(self) -> &'static str {
        match self {
            Block::Keys => "PGP PUBLIC KEY BLOCK",
            Block::SecretKeys => "PGP PRIVATE KEY BLOCK",
            Block::Message => "PGP MESSAGE",
            Block::Signature => "PGP SIGNATURE",
        }
    }
}

/// A block whose end, blank line, base64 or checksum is not as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Whether a text has a block of this kind.
pub(crate) fn has(text: &str, block: Block) -> bool {
    let begin = format!("-----BEGIN {}-----", block.name());
    text.lines().any(|line| line.trim_end() == begin)
}

/// The bytes of all blocks of this kind, one after the other. What is around blocks, and between them, is passed over.
pub(crate) fn read_all(text: &str, block: Block) -> Result<Vec<u8>, Damaged> {
    let begin = format!("-----BEGIN {}-----", block.name());
    let mut lines = text.lines().map(str::trim_end);
    let mut found = Vec::new();
    while lines.by_ref().any(|line| line == begin) {
        read_block(&mut lines, block, &mut found)?;
    }
    Ok(found)
}

/// The bytes of a text that is one block, with nothing before it but white space.
pub(crate) fn read_one(text: &str, block: Block) -> Result<Vec<u8>, Damaged> {
    let mut lines = text.trim_start().lines().map(str::trim_end);
    if lines.next() != Some(format!("-----BEGIN {}-----", block.name()).as_str()) {
        return Err(Damaged);
    }
    let mut found = Vec::new();
    read_block(&mut lines, block, &mut found)?;
    if lines.any(|line| !line.is_empty()) {
        return Err(Damaged);
    }
    Ok(found)
}

fn read_block<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    block: Block,
    found: &mut Vec<u8>,
) -> Result<(), Damaged> {
    let end = format!("-----END {}-----", block.name());
    // Headers, to the first empty line. A header without one would otherwise be taken for base64.
    for line in lines.by_ref() {
        if line.is_empty() {
            break;
        }
        if !line.contains(':') {
            return Err(Damaged);
        }
    }
    let mut base64 = String::new();
    let mut checksum = None;
    for line in lines.by_ref() {
        if line == end {
            let bytes = STANDARD.decode(&base64).map_err(|_| Damaged)?;
            if checksum.is_some_and(|told| told != checksum_of(&bytes)) {
                return Err(Damaged);
            }
            found.extend_from_slice(&bytes);
            return Ok(());
        }
        if checksum.is_some() && !line.is_empty() {
            return Err(Damaged);
        }
        match line.strip_prefix('=') {
            Some(told) if told.len() == 4 => {
                checksum = Some(STANDARD.decode(told).map_err(|_| Damaged)?);
            }
            _ => base64.push_str(line),
        }
    }
    Err(Damaged)
}

/// A block with the checksum that older readers want.
pub(crate) fn write(block: Block, bytes: &[u8]) -> String {
    let name = block.name();
    let base64 = STANDARD.encode(bytes);
    let mut text = String::with_capacity(base64.len() + base64.len() / 32 + 128);
    text.push_str(&format!("-----BEGIN {name}-----\n\n"));
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        // All of it is ASCII.
        let (line, left) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = left;
    }
    text.push_str(&format!("={}\n", STANDARD.encode(checksum_of(bytes))));
    text.push_str(&format!("-----END {name}-----\n"));
    text
}

/// CRC-24 of RFC 9580, §6.1.1.
fn checksum_of(bytes: &[u8]) -> Vec<u8> {
    let mut crc: u32 = 0xB7_04CE;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= 0x186_4CFB;
            }
        }
    }
    crc.to_be_bytes()[1..].to_vec()
}
