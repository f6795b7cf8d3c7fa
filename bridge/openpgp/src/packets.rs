//! Packets as they lie one after the other: what each is, and its body. What is in the body is for others.

use std::borrow::Cow;

use pgp::{packet::PacketHeader, types::Tag};

/// Tags of packets, as numbers.
pub(crate) mod tag {
    pub(crate) const SESSION_KEY: u8 = 1;
    pub(crate) const SIGNATURE: u8 = 2;
    pub(crate) const PASSWORD_SESSION_KEY: u8 = 3;
    pub(crate) const ONE_PASS: u8 = 4;
    pub(crate) const SECRET_KEY: u8 = 5;
    pub(crate) const KEY: u8 = 6;
    pub(crate) const SECRET_SUBKEY: u8 = 7;
    pub(crate) const COMPRESSED: u8 = 8;
    pub(crate) const ENCRYPTED: u8 = 9;
    pub(crate) const MARKER: u8 = 10;
    pub(crate) const LITERAL: u8 = 11;
    pub(crate) const USER_ID: u8 = 13;
    pub(crate) const SUBKEY: u8 = 14;
    pub(crate) const PROTECTED: u8 = 18;
    pub(crate) const GNUPG_PROTECTED: u8 = 20;
    pub(crate) const PADDING: u8 = 21;
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) tag: u8,
    /// Borrowed, unless it came in parts.
    pub(crate) body: Cow<'a, [u8]>,
}

/// Why bytes are no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// They end within a packet, or a header is none.
    Form,
    /// There are more packets than may be.
    Many,
}

/// Which lengths a body may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// Known before it begins: keys and what belongs to them.
    Known,
    /// Also in parts, or up to the end: data.
    Any,
}

/// Takes packets apart.
pub(crate) fn split(bytes: &[u8], lengths: Lengths, max: usize) -> Result<Vec<Packet<'_>>, Broken> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        if found.len() == max {
            return Err(Broken::Many);
        }
        let header = take(&mut rest, 1)?[0];
        let packet = match header >> 6 {
            0b11 => new_packet(header, &mut rest, lengths)?,
            0b10 => old_packet(header, &mut rest, lengths)?,
            _ => return Err(Broken::Form),
        };
        if packet.tag == 0 {
            return Err(Broken::Form);
        }
        found.push(packet);
    }
    Ok(found)
}

fn old_packet<'a>(header: u8, rest: &mut &'a [u8], lengths: Lengths) -> Result<Packet<'a>, Broken> {
    let length = match header & 0b11 {
        0 => number(take(rest, 1)?),
        1 => number(take(rest, 2)?),
        2 => number(take(rest, 4)?),
        _ if lengths == Lengths::Any => rest.len(),
        _ => return Err(Broken::Form),
    };
    Ok(Packet { tag: (header >> 2) & 0b1111, body: Cow::Borrowed(take(rest, length)?) })
}

fn new_packet<'a>(header: u8, rest: &mut &'a [u8], lengths: Lengths) -> Result<Packet<'a>, Broken> {
    let tag = header & 0b11_1111;
    let (mut length, mut is_part) = new_length(rest)?;
    if !is_part {
        return Ok(Packet { tag, body: Cow::Borrowed(take(rest, length)?) });
    }
    if lengths == Lengths::Known {
        return Err(Broken::Form);
    }
    let mut body = Vec::new();
    loop {
        body.extend_from_slice(take(rest, length)?);
        if !is_part {
            return Ok(Packet { tag, body: Cow::Owned(body) });
        }
        (length, is_part) = new_length(rest)?;
    }
}

/// A length of the new form, and whether more parts follow.
fn new_length(rest: &mut &[u8]) -> Result<(usize, bool), Broken> {
    let first = usize::from(take(rest, 1)?[0]);
    Ok(match first {
        0..=191 => (first, false),
        192..=223 => ((first - 192) * 256 + number(take(rest, 1)?) + 192, false),
        224..=254 => (1 << (first & 0b1_1111), true),
        _ => (number(take(rest, 4)?), false),
    })
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |value, byte| value * 256 + usize::from(*byte))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Broken> {
    let (taken, left) = rest.split_at_checked(length).ok_or(Broken::Form)?;
    *rest = left;
    Ok(taken)
}

/// Writes a packet in the one form that is kept: the new one, its length in as few bytes as it takes.
pub(crate) fn write(into: &mut Vec<u8>, tag: u8, body: &[u8]) {
    into.push(0b1100_0000 | tag);
    let length = body.len();
    // Both casts keep all bits: the ranges say so.
    if length < 192 {
        into.push(length.to_be_bytes()[size_of::<usize>() - 1]);
    } else if length < 8384 {
        let [high, low] = u16::try_from(length - 192).unwrap_or(0).to_be_bytes();
        into.extend_from_slice(&[high + 192, low]);
    } else {
        into.push(255);
        into.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
    into.extend_from_slice(body);
}

/// The header of a packet of this length, for `pgp`'s readers.
pub(crate) fn header(tag: Tag, body: &[u8]) -> PacketHeader {
    PacketHeader::new_fixed(tag, u32::try_from(body.len()).unwrap_or(u32::MAX))
}
