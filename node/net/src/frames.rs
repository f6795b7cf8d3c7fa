//! The format of a frame stream, without any I/O.
//!
//! `/clawmesh/frames/4`, opened by the node with the lower id, which sends one byte, an
//! [`Opening`]; the acceptor answers with another one: the stream has reached a link and was not
//! dropped on the way. Then both sides send frames, each a length (u32, big endian, of the tag and
//! the payload), one tag byte and the payload.
//!
//! A link goes from one connection to another by a second stream that goes on from the first: when
//! the acceptor has answered, the opener ends what it says on the first with the tag `Moved`, and
//! says the rest on the second. The acceptor does so when it has read that. So each side reads the
//! first to its end, and then the second: nothing is lost, and nothing comes twice. When the opener
//! has read the end, there is nothing left in the first.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::{ANNOUNCEMENT_BYTES_MAX, FRAME_BYTES_MAX};

/// The first byte of a stream's opener, and of its acceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// What was said before over another stream has ended.
    Anew,
    /// It goes on from the stream before, which is read to its end first.
    GoesOn,
}

impl Opening {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Opening::Anew => 1,
            Opening::GoesOn => 2,
        }
    }

    /// `None`: no byte of ours.
    pub(crate) fn from_byte(byte: u8) -> Option<Opening> {
        match byte {
            1 => Some(Opening::Anew),
            2 => Some(Opening::GoesOn),
            _ => None,
        }
    }
}

/// The content of a frame: the owner's bytes, or our announcement (`announcement.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    User,
    Announcement,
    /// The last one: the rest is on another stream.
    Moved,
}

/// A peer that sends this is faulty or hostile; the stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes exceeds the limit")]
    TooLong(usize),
    #[error("a frame without a tag")]
    Empty,
    #[error("a frame with the unknown tag {0}")]
    UnknownTag(u8),
    #[error("bytes after the last frame of a stream")]
    AfterTheLast,
}

pub(crate) const LENGTH_BYTES: usize = 4;
const HEADER_BYTES: usize = LENGTH_BYTES + 1;

impl Tag {
    fn byte(self) -> u8 {
        match self {
            Tag::User => 0,
            Tag::Announcement => 1,
            Tag::Moved => 2,
        }
    }

    fn from_byte(byte: u8) -> Result<Tag, FrameError> {
        match byte {
            0 => Ok(Tag::User),
            1 => Ok(Tag::Announcement),
            2 => Ok(Tag::Moved),
            other => Err(FrameError::UnknownTag(other)),
        }
    }

    fn bytes_max(self) -> usize {
        match self {
            Tag::User => FRAME_BYTES_MAX,
            Tag::Announcement => ANNOUNCEMENT_BYTES_MAX,
            Tag::Moved => 0,
        }
    }
}

/// Appends length and tag; the payload must follow. Payloads were measured when they were queued.
pub(crate) fn put_header(buffer: &mut BytesMut, tag: Tag, payload_bytes: usize) {
    let length = u32::try_from(payload_bytes + 1).expect("payloads are at most a few MiB");
    buffer.put_u32(length);
    buffer.put_u8(tag.byte());
}

/// Takes the next whole frame off the front of `buffer`; `None` if more must be read first. The
/// payload is a copy, so that a small frame does not keep a whole read buffer alive.
pub(crate) fn take_frame(buffer: &mut BytesMut) -> Result<Option<(Tag, Bytes)>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    // The length is judged before the rest arrives: nobody makes us buffer what we would refuse.
    let length = u32::from_be_bytes(*prefix) as usize;
    if length == 0 {
        return Err(FrameError::Empty);
    }
    if length > FRAME_BYTES_MAX + 1 {
        return Err(FrameError::TooLong(length - 1));
    }
    let Some(tag) = buffer.get(LENGTH_BYTES) else { return Ok(None) };
    let tag = Tag::from_byte(*tag)?;
    if length - 1 > tag.bytes_max() {
        return Err(FrameError::TooLong(length - 1));
    }
    if buffer.len() < LENGTH_BYTES + length {
        return Ok(None);
    }
    buffer.advance(HEADER_BYTES);
    let payload = Bytes::copy_from_slice(&buffer[..length - 1]);
    buffer.advance(length - 1);
    Ok(Some((tag, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let payloads: Vec<Vec<u8>> = vec![vec![], vec![1], vec![2; 300], vec![3; FRAME_BYTES_MAX]];
        let mut wire = BytesMut::new();
        for payload in &payloads {
            put_header(&mut wire, Tag::User, payload.len());
            wire.extend_from_slice(payload);
        }
        for step in [1_000_003, 4_099, 70_000] {
            let (mut buffer, mut got) = (BytesMut::new(), Vec::new());
            for piece in wire.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some((tag, payload)) = take_frame(&mut buffer).unwrap() {
                    assert_eq!(tag, Tag::User);
                    got.push(payload.to_vec());
                }
            }
            assert_eq!(got, payloads);
            assert!(buffer.is_empty());
        }
    }

    fn check(bytes: &[u8], expect: Result<Option<(Tag, Bytes)>, FrameError>) {
        assert_eq!(take_frame(&mut BytesMut::from(bytes)), expect);
    }

    #[test]
    fn bad_frames_are_refused_by_their_header() {
        check(&[0, 0, 0], Ok(None));
        check(&[0, 0, 0, 0], Err(FrameError::Empty));
        check(&[0, 0, 0, 1, 9], Err(FrameError::UnknownTag(9)));
        check(&[0xff; 4], Err(FrameError::TooLong(u32::MAX as usize - 1)));
        check(&[0, 0x15, 0, 2], Err(FrameError::TooLong(FRAME_BYTES_MAX + 1)));
        check(&[0, 0x15, 0, 1, 0], Ok(None));
        check(&[0, 0x10, 0, 0, 1], Err(FrameError::TooLong((1 << 20) - 1)));
    }
}
