//! Names of things: meshes, nodes, rooms, agents, logs and places in them.

use std::{fmt, sync::Arc};

use minicbor::{Decode, Encode};
use sha2::{Digest, Sha256};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// SHA-256 of the parts, one after the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

fn first_16(hash: Hash) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&hash[..16]);
    out
}

/// Lower-case hex, two digits a byte.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Parses exactly `N` bytes of hex, either case.
#[must_use]
pub fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(out)
}

/// A mesh: everything that shares one secret and one founder. Derived by [`crate::MeshSecret`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct MeshId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// A node: its ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct NodeId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// A room: a hash of where its creation is written, so that nobody can claim another's; but for the
/// two that every mesh has, [`RoomId::lobby`] and [`RoomId::directory`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RoomId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl RoomId {
    /// The permanent public room of a mesh.
    #[must_use]
    pub fn lobby(mesh: MeshId) -> RoomId {
        RoomId(first_16(sha256(&[b"clawmesh lobby", &mesh.0])))
    }

    /// The room that every node follows: rooms, lanes and stable agent ids are claimed in it.
    #[must_use]
    pub fn directory(mesh: MeshId) -> RoomId {
        RoomId(first_16(sha256(&[b"clawmesh directory", &mesh.0])))
    }

    /// The directory of one node's private rooms.
    #[must_use]
    pub fn private_directory(mesh: MeshId, node: NodeId) -> RoomId {
        RoomId(first_16(sha256(&[b"clawmesh private directory", &mesh.0, &node.0])))
    }

    /// As UUID text, the form that clients see (the lobby has a name of its own there).
    #[must_use]
    pub fn to_uuid(self) -> String {
        uuid_text(self.0)
    }

    /// Parses UUID text.
    #[must_use]
    pub fn from_uuid(text: &str) -> Option<RoomId> {
        parse_uuid(text).map(RoomId)
    }
}

/// An agent's id as clients know it: 1 to [`crate::limits::AGENT_ID_BYTES_MAX`] bytes.
pub type AgentId = Arc<str>;

/// Fingerprint of an API key: a hash of its public halves ([`crate::name::key`]). It says who owns what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct KeyPrint(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl KeyPrint {
    /// The fingerprint of everybody on a node that checks no keys.
    pub const OPEN: KeyPrint = KeyPrint([0; 16]);

    /// The key, if it is one: [`KeyPrint::OPEN`] is everybody's, and says nothing about anybody.
    #[must_use]
    pub fn checked(self) -> Option<KeyPrint> {
        (self != KeyPrint::OPEN).then_some(self)
    }
}

/// The secret that opens the private rooms of a [group](crate::name::group::Group): of an API key (HKDF, with a label
/// of its own) or of a pair of keys. A node keeps it over restarts, the API key itself it does not. Secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct RoomKey(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]);

impl RoomKey {
    /// Of an API key's text.
    #[must_use]
    pub fn of(api_key: &str) -> RoomKey {
        let mut out = [0; 32];
        hkdf::Hkdf::<Sha256>::new(None, api_key.as_bytes())
            .expand(b"clawmesh private rooms", &mut out)
            .expect("32 bytes are within HKDF's 8160");
        RoomKey(out)
    }

    /// One that was derived elsewhere.
    pub(crate) fn from_secret(secret: &[u8; 32]) -> RoomKey {
        RoomKey(*secret)
    }

    /// A key for one purpose.
    #[must_use]
    pub fn derive(&self, label: &[u8]) -> [u8; 32] {
        let mut out = [0; 32];
        hkdf::Hkdf::<Sha256>::new(None, &self.0)
            .expand(label, &mut out)
            .expect("32 bytes are within HKDF's 8160");
        out
    }
}

impl fmt::Debug for RoomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomKey(…)")
    }
}

impl Drop for RoomKey {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// Which log of a room: its author and, in ephemeral rooms, which of the author's starts.
///
/// A node that lost an ephemeral log (it never touched a disk) must not write over what others
/// remember of it: it draws a new incarnation. In permanent rooms the incarnation is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct LogId {
    /// The node that signs the log.
    #[n(0)]
    pub author: NodeId,
    /// 0 in permanent rooms; in ephemeral ones which start of the node, and which log of that start.
    #[n(1)]
    pub incarnation: u64,
}

/// Index of a log in its room at this node: dense, from 0, in the order of first sight.
pub type LogIx = u32;

/// A place in a room at this node: a log and a log seq (from 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct LocalRef {
    /// Which log.
    #[n(0)]
    pub log: LogIx,
    /// Which entry of it, from 1.
    #[n(1)]
    pub seq: u64,
}

/// An entry of a room, named alike at every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct EntryRef {
    /// Its log.
    #[n(0)]
    pub log: LogId,
    /// Its log seq.
    #[n(1)]
    pub seq: u64,
}

impl EntryRef {
    /// Not above any other.
    pub(crate) const LOWEST: EntryRef =
        EntryRef { log: LogId { author: NodeId([0; 32]), incarnation: 0 }, seq: 0 };
    /// Not below any other.
    pub(crate) const HIGHEST: EntryRef =
        EntryRef { log: LogId { author: NodeId([255; 32]), incarnation: u64::MAX }, seq: u64::MAX };
}

/// The place of an entry in the order of all entries of its room: the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Lamport.
    pub clock: u64,
    /// Breaks ties.
    pub place: EntryRef,
}

/// A message's id on the wire: a UUID (version 8) that encodes where the entry is, so that finding
/// it needs no index. 60 bits name the log within its room, 62 bits are the log seq.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct MessageId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// A job of a schedule: an id that was drawn, shown as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct JobId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl JobId {
    /// From a UUID, hyphens and all.
    #[must_use]
    pub fn from_uuid(text: &str) -> Option<JobId> {
        parse_uuid(text).map(JobId)
    }
}

impl MessageId {
    /// The id of entry `seq` of a log.
    #[must_use]
    pub fn new(room: RoomId, log: LogId, seq: u64) -> MessageId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&Self::tag(room, log));
        id[8..].copy_from_slice(&(seq & (u64::MAX >> 2) | 1 << 63).to_be_bytes());
        MessageId(id)
    }

    /// Which entry of `log` this names, or `None` if it names an entry of another log.
    #[must_use]
    pub fn seq_in(self, room: RoomId, log: LogId) -> Option<u64> {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[8..]);
        (self.0[..8] == Self::tag(room, log)).then(|| u64::from_be_bytes(low) & (u64::MAX >> 2))
    }

    /// Whether it may have been drawn elsewhere: it names no entry of any log then, since ids of entries are of
    /// version 8.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        is_foreign(self.0)
    }

    fn tag(room: RoomId, log: LogId) -> [u8; 8] {
        let hash = sha256(&[
            b"clawmesh message id",
            &room.0,
            &log.author.0,
            &log.incarnation.to_be_bytes(),
        ]);
        let mut tag = [0; 8];
        tag.copy_from_slice(&hash[..8]);
        tag[6] = tag[6] & 0x0f | 0x80; // UUID version 8: "custom" (RFC 9562, section 5.8)
        tag
    }

    /// As UUID text.
    #[must_use]
    pub fn to_uuid(self) -> String {
        uuid_text(self.0)
    }

    /// Parses UUID text.
    #[must_use]
    pub fn from_uuid(text: &str) -> Option<MessageId> {
        parse_uuid(text).map(MessageId)
    }
}

/// Whether it is a UUID of a version that ids of this mesh do not have.
pub(crate) fn is_foreign(id: [u8; 16]) -> bool {
    let (version, variant) = (id[6] >> 4, id[8] >> 6);
    (1..=7).contains(&version) && variant == 0b10
}

/// These bytes as the text of a UUID, lower case. By table: each message has its own two or three times.
#[must_use]
pub fn uuid_text(bytes: [u8; 16]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut out = String::with_capacity(36);
    for (i, byte) in bytes.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0x0f)]));
    }
    out
}

pub(crate) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let groups = [8, 13, 18, 23];
    if text.len() != 36 || !text.is_ascii() || groups.iter().any(|&i| text.as_bytes()[i] != b'-') {
        return None;
    }
    parse_hex(&text.replace('-', ""))
}

macro_rules! shown_as {
    ($type:ident, $self:ident, $f:ident, $show:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $self = self;
                $show
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

shown_as!(MeshId, id, f, write_hex(f, &id.0));
shown_as!(NodeId, id, f, write_hex(f, &id.0));
shown_as!(KeyPrint, id, f, write_hex(f, &id.0));
shown_as!(RoomId, id, f, f.write_str(&id.to_uuid()));
shown_as!(MessageId, id, f, f.write_str(&id.to_uuid()));
shown_as!(JobId, id, f, f.write_str(&MessageId(id.0).to_uuid()));
shown_as!(LogId, id, f, write!(f, "{}/{:x}", id.author, id.incarnation));

impl NodeId {
    /// The first eight hex digits: enough for people to tell nodes apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }

    /// The first eight bytes, as a number: it orders nodes as their ids do.
    #[must_use]
    pub fn beginning(&self) -> u64 {
        self.0.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_is_a_uuid_that_leads_back_to_its_entry() {
        let (room, log) = (RoomId([7; 16]), LogId { author: NodeId([9; 32]), incarnation: 3 });
        let id = MessageId::new(room, log, 123_456_789);
        let text = id.to_uuid();
        assert_eq!(text.as_bytes()[14], b'8', "version");
        assert!(b"89ab".contains(&text.as_bytes()[19]), "variant");
        assert_eq!(MessageId::from_uuid(&text), Some(id));
        assert_eq!(id.seq_in(room, log), Some(123_456_789));
        assert_eq!(id.seq_in(RoomId([8; 16]), log), None);
        assert_eq!(id.seq_in(room, LogId { incarnation: 4, ..log }), None);
    }

    #[test]
    fn uuid_text_is_read_strictly() {
        let id = RoomId([0xab; 16]);
        assert_eq!(RoomId::from_uuid(&id.to_uuid()), Some(id));
        for bad in [
            "",
            "lobby",
            "abababab-abab-abab-abab-abababababa",
            "ababababxabab-abab-abab-abababababab",
        ] {
            assert_eq!(RoomId::from_uuid(bad), None, "{bad}");
        }
    }
}
