//! Sealing: entries in the private rooms of a group ([`crate::name::group`]) can be read by the nodes to which one of
//! its keys was presented, and by nobody else. A function of its arguments;
//! `engine/private.rs` knows the followers of rooms. Protected things, and things that are not:
//! `docs/decisions/private-rooms.md`.

use std::fmt;

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit,
    aead::{Aead, Payload},
};
use minicbor::{Decode, Encode};
use sha2::Sha256;
use zeroize::Zeroize;

use crate::name::{
    group::Group,
    id::{Hash, LogId, MeshId, NodeId, RoomId, RoomKey},
    key::Mailbox,
};

/// Bytes of a nonce, before what it seals.
const NONCE_BYTES: usize = 12;

/// Where a body stands: it opens nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealContext {
    /// The room.
    pub room: RoomId,
    /// The log.
    pub log: LogId,
    /// The log seq.
    pub seq: u64,
    /// The kind that its header says it has.
    pub kind: u8,
}

impl SealContext {
    fn bytes(&self) -> Vec<u8> {
        let (incarnation, seq) = (self.log.incarnation.to_be_bytes(), self.seq.to_be_bytes());
        [&self.room.0[..], &self.log.author.0, &incarnation, &seq, &[self.kind]].concat()
    }
}

/// The key that seals and opens the bodies of one room. Secret; kept with the room's record.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Seal {
    /// The group whose room it is.
    #[n(0)]
    pub group: Group,
    #[cbor(n(1), with = "minicbor::bytes")]
    body: [u8; 32],
    #[cbor(n(2), with = "minicbor::bytes")]
    nonce: [u8; 32],
    /// Of the group's sealed directory only: the secret that opens all its rooms.
    #[n(3)]
    pub opener: Option<RoomKey>,
    /// Of the sealed directory of one key only: the secret of its mailbox, so that pairs that others begin with the key
    /// are followed after a restart, too.
    #[n(4)]
    pub mailbox: Option<Mailbox>,
}

impl Seal {
    /// Of a room of this group.
    #[must_use]
    pub fn of_room(group: Group, opener: &RoomKey, room: RoomId) -> Seal {
        let derive = |label: &[u8]| opener.derive(&[label, &room.0].concat());
        let (body, nonce) = (derive(b"clawmesh sealed body"), derive(b"clawmesh sealed nonce"));
        Seal { group, body, nonce, opener: None, mailbox: None }
    }

    /// Of the room that lists the rooms of this group, [`directory`].
    #[must_use]
    pub fn of_directory(mesh: MeshId, group: Group, opener: &RoomKey) -> Seal {
        let mut seal = Seal::of_room(group, opener, directory(mesh, opener));
        seal.opener = Some(opener.clone());
        seal
    }

    /// Seals a body. The nonce follows from the key, the spot and the body: a node that comes back
    /// with an old disk and writes something else in the same place does not use one twice.
    #[must_use]
    pub fn seal(&self, spot: &SealContext, body: &[u8]) -> Vec<u8> {
        seal_with(&self.body, &self.nonce, &spot.bytes(), body)
    }

    /// Opens what [`Seal::seal`] made. `None`: it was sealed by somebody without the key, or for
    /// another place, or changed.
    #[must_use]
    pub fn open(&self, spot: &SealContext, sealed: &[u8]) -> Option<Vec<u8>> {
        open_with(&self.body, &spot.bytes(), sealed)
    }

    /// The keys that seal, and name, the records of this room.
    #[must_use]
    pub fn of_records(&self) -> RecordSeal {
        RecordSeal {
            body: mac(&self.body, &[b"clawmesh record body"]),
            nonce: mac(&self.nonce, &[b"clawmesh record nonce"]),
            name: mac(&self.nonce, &[b"clawmesh record name"]),
        }
    }
}

impl Seal {
    /// The keys that seal pieces of answers in this room.
    #[must_use]
    pub fn of_pieces(&self) -> PieceSeal {
        PieceSeal {
            body: mac(&self.body, &[b"clawmesh piece body"]),
            nonce: mac(&self.nonce, &[b"clawmesh piece nonce"]),
        }
    }
}

/// The keys that seal the pieces of answers in one room, made of its [`Seal`]. Secret; never stored.
pub struct PieceSeal {
    body: [u8; 32],
    nonce: [u8; 32],
}

impl PieceSeal {
    /// As [`Seal::seal`].
    pub(super) fn seal(&self, spot: &[u8], body: &[u8]) -> Vec<u8> {
        seal_with(&self.body, &self.nonce, spot, body)
    }

    /// As [`Seal::open`].
    pub(super) fn open(&self, spot: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        open_with(&self.body, spot, sealed)
    }
}

impl fmt::Debug for PieceSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PieceSeal")
    }
}

impl Drop for PieceSeal {
    fn drop(&mut self) {
        self.body.zeroize();
        self.nonce.zeroize();
    }
}

/// The keys that seal and name the records of one room, made of its [`Seal`]. Secret; never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordSeal {
    body: [u8; 32],
    nonce: [u8; 32],
    name: [u8; 32],
}

impl RecordSeal {
    /// A name that only holders of the key can tell from another. Parts are of lengths that all know, but for the last.
    pub(super) fn name(&self, parts: &[&[u8]]) -> Hash {
        mac(&self.name, parts)
    }

    /// As [`Seal::seal`].
    pub(super) fn seal(&self, spot: &[u8], body: &[u8]) -> Vec<u8> {
        seal_with(&self.body, &self.nonce, spot, body)
    }

    /// As [`Seal::open`].
    pub(super) fn open(&self, spot: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        open_with(&self.body, spot, sealed)
    }
}

impl fmt::Debug for RecordSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordSeal")
    }
}

impl Drop for RecordSeal {
    fn drop(&mut self) {
        self.body.zeroize();
        self.nonce.zeroize();
        self.name.zeroize();
    }
}

/// The nonce follows from the key, the spot and the body.
fn seal_with(key: &[u8; 32], nonce_key: &[u8; 32], spot: &[u8], body: &[u8]) -> Vec<u8> {
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&mac(nonce_key, &[spot, body])[..NONCE_BYTES]);
    let sealed = ChaCha20Poly1305::new(key.into())
        .encrypt(&nonce.into(), Payload { msg: body, aad: spot })
        .expect("a body is far below the cipher's 256 GiB");
    [&nonce[..], &sealed].concat()
}

fn open_with(key: &[u8; 32], spot: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload { msg: sealed, aad: spot };
    ChaCha20Poly1305::new(key.into()).decrypt(&(*nonce).into(), payload).ok()
}

/// HMAC: HKDF extracts with it, with a salt for a key.
fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hash {
    let mut mac = hkdf::HkdfExtract::<Sha256>::new(Some(key));
    parts.iter().for_each(|part| mac.input_ikm(part));
    mac.finalize().0.into()
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal(of {})", self.group)
    }
}

impl Drop for Seal {
    fn drop(&mut self) {
        self.body.zeroize();
        self.nonce.zeroize();
    }
}

/// The secrets that open what was private to a key, for its successor: the two keys alone derive the secret that seals them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Inheritance {
    /// It opens the key's private rooms.
    #[n(0)]
    pub opener: RoomKey,
    /// It opens the direct rooms of the key's agents.
    #[n(1)]
    pub mailbox: Mailbox,
}

impl Inheritance {
    /// Seals them to the mailbox of the successor. `None`: that is a point with which everybody shares the same secret.
    #[must_use]
    pub fn seal(&self, mesh: MeshId, successor: &[u8; 32]) -> Option<Vec<u8>> {
        let between = Between::of(mesh, &self.mailbox, successor, SUCCESSOR)?;
        Some(between.seal(&[], &crate::wire::cbor::encode(self)))
    }

    /// Opens them, with the successor's own mailbox and the public one of the key. `None`: they are not for it.
    #[must_use]
    pub fn open(mesh: MeshId, own: &Mailbox, key: &[u8; 32], sealed: &[u8]) -> Option<Inheritance> {
        let between = Between::of(mesh, own, key, SUCCESSOR)?;
        minicbor::decode(&between.open(&[], sealed)?).ok()
    }
}

const SUCCESSOR: &[u8] = b"clawmesh successor";

/// What one key seals for another one: nobody but the two can open it, and either can have made it. Secret; never stored.
pub struct Between {
    body: [u8; 32],
    nonce: [u8; 32],
}

impl Between {
    /// Of a mailbox and the public half of the other one, for one use. `None`: that is a point with which everybody shares
    /// the same secret.
    #[must_use]
    pub fn of(mesh: MeshId, own: &Mailbox, other: &[u8; 32], label: &[u8]) -> Option<Between> {
        let pair = own.pair_secret(mesh, other)?;
        let key = |part: &[u8]| pair.derive(&[label, part].concat());
        Some(Between { body: key(b" body"), nonce: key(b" nonce") })
    }

    /// Seals something, which opens with the same `spot` alone.
    #[must_use]
    pub fn seal(&self, spot: &[u8], body: &[u8]) -> Vec<u8> {
        seal_with(&self.body, &self.nonce, spot, body)
    }

    /// Opens it. `None`: it is none of theirs, or was changed.
    #[must_use]
    pub fn open(&self, spot: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        open_with(&self.body, spot, sealed)
    }
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Between")
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.body.zeroize();
        self.nonce.zeroize();
    }
}

/// The home of the home era of every sealed directory: no node. The first author there opens an era of
/// its own. A node that the mesh's directory named as its home could not be relied on: it need not
/// follow the key, and followers before a fork or a second minting would take another one.
pub(crate) const NOBODY: NodeId = NodeId([0; 32]);

/// The room that lists the private rooms of a group. Nobody without its secret can tell it from another.
#[must_use]
pub fn directory(mesh: MeshId, opener: &RoomKey) -> RoomId {
    RoomId(first_16(opener.derive(&[b"clawmesh sealed directory", &mesh.0[..]].concat())))
}

/// A proof of a node that it follows the rooms of a group: another for each node, of no use to
/// anybody else, and without meaning to nodes that do not have the group's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct Token(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl Token {
    /// `node`'s, for the group that `opener` is of.
    #[must_use]
    pub fn of(mesh: MeshId, opener: &RoomKey, node: NodeId) -> Token {
        let label = [b"clawmesh follows", &mesh.0[..], &node.0].concat();
        Token(first_16(opener.derive(&label)))
    }

    /// By which `carrier` shows `node` that a follower of the group has asked it to carry: of no use to others, either.
    #[must_use]
    pub fn carries(mesh: MeshId, opener: &RoomKey, carrier: NodeId, node: NodeId) -> Token {
        let label = [b"clawmesh carries", &mesh.0[..], &carrier.0, &node.0].concat();
        Token(first_16(opener.derive(&label)))
    }
}

fn first_16(bytes: [u8; 32]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&bytes[..16]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::id::KeyPrint;
    use crate::name::key::KeySecret;

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);
    const LOG: LogId = LogId { author: NodeId([3; 32]), incarnation: 0 };
    const SPOT: SealContext = SealContext { room: ROOM, log: LOG, seq: 7, kind: 1 };

    fn group(api_key: &str) -> Group {
        Group::Key(KeyPrint::of(api_key))
    }

    fn seal(api_key: &str) -> Seal {
        Seal::of_room(group(api_key), &RoomKey::of(api_key), ROOM)
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_and_in_its_place_alone() {
        let sealed = seal("one").seal(&SPOT, b"hello");
        assert_eq!(sealed.len(), 5 + crate::limits::SEAL_BYTES);
        assert!(!sealed.windows(5).any(|bytes| bytes == b"hello"));
        assert_eq!(seal("one").open(&SPOT, &sealed).as_deref(), Some(&b"hello"[..]));
        assert_eq!(seal("two").open(&SPOT, &sealed), None, "another key");
        let elsewhere = [
            SealContext { room: RoomId([9; 16]), ..SPOT },
            SealContext { log: LogId { author: NodeId([9; 32]), ..LOG }, ..SPOT },
            SealContext { log: LogId { incarnation: 1, ..LOG }, ..SPOT },
            SealContext { seq: 8, ..SPOT },
            SealContext { kind: 2, ..SPOT },
        ];
        for spot in elsewhere {
            assert_eq!(seal("one").open(&spot, &sealed), None, "{spot:?}");
        }
        let other_room = Seal::of_room(group("one"), &RoomKey::of("one"), RoomId([9; 16]));
        assert_eq!(other_room.open(&SPOT, &sealed), None, "the key of another room");
    }

    #[test]
    fn nothing_that_was_changed_opens() {
        let seal = seal("one");
        let sealed = seal.seal(&SPOT, b"hello");
        for i in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[i] ^= 1;
            assert_eq!(seal.open(&SPOT, &bad), None, "byte {i}");
            assert_eq!(seal.open(&SPOT, &sealed[..i]), None, "cut at {i}");
        }
    }

    #[test]
    fn a_nonce_is_not_used_for_two_bodies_or_two_places() {
        let seal = seal("one");
        let nonce = |spot: &SealContext, body: &[u8]| seal.seal(spot, body)[..NONCE_BYTES].to_vec();
        let nonces = [
            nonce(&SPOT, b"one history"),
            nonce(&SPOT, b"another one"),
            nonce(&SealContext { seq: 8, ..SPOT }, b"one history"),
        ];
        assert_eq!(nonces[0], nonce(&SPOT, b"one history"), "it is drawn from nowhere");
        assert!(nonces[0] != nonces[1] && nonces[0] != nonces[2] && nonces[1] != nonces[2]);
    }

    #[test]
    fn tokens_and_directories_are_of_one_node_one_mesh_one_key() {
        let (one, two) = (RoomKey::of("one"), RoomKey::of("two"));
        let token = Token::of(MESH, &one, NodeId([3; 32]));
        assert_ne!(token, Token::of(MESH, &one, NodeId([4; 32])));
        assert_ne!(token, Token::of(MESH, &two, NodeId([3; 32])));
        assert_ne!(token, Token::of(MeshId([2; 16]), &one, NodeId([3; 32])));
        assert_ne!(directory(MESH, &one), directory(MESH, &two));
        assert_ne!(directory(MESH, &one), directory(MeshId([2; 16]), &one));
    }

    #[test]
    fn secrets_of_a_key_are_opened_by_its_successor_alone() {
        let [old, new, other] = ["old", "new", "other"].map(|text| {
            let secret = KeySecret::of(&text.repeat(16));
            (secret.halves().mailbox, secret.mailbox().expect("it is long enough").clone())
        });
        let secrets = Inheritance { opener: RoomKey::of("old"), mailbox: old.1.clone() };
        let sealed = secrets.seal(MESH, &new.0).expect("it is a mailbox");
        assert!(sealed.len() <= crate::limits::INHERITANCE_BYTES_MAX, "{}", sealed.len());
        let open = |mesh, own: &Mailbox, key: &[u8; 32]| Inheritance::open(mesh, own, key, &sealed);
        assert_eq!(open(MESH, &new.1, &old.0).as_ref(), Some(&secrets));
        assert_eq!(open(MESH, &other.1, &old.0), None, "another key");
        assert_eq!(open(MESH, &new.1, &other.0), None, "of another key");
        assert_eq!(open(MeshId([2; 16]), &new.1, &old.0), None, "of another mesh");
        assert_eq!(secrets.seal(MESH, &[0; 32]), None);
        assert!(Inheritance::open(MESH, &new.1, &old.0, &sealed[1..]).is_none());
    }

    #[test]
    fn a_seal_is_kept_with_its_record_and_not_printed() {
        let opener = RoomKey::of("one");
        let seal = Seal::of_directory(MESH, group("one"), &opener);
        let bytes = minicbor::to_vec(&seal).expect("a Vec takes everything");
        assert_eq!(minicbor::decode::<Seal>(&bytes).expect("it is one"), seal);
        assert_eq!(format!("{seal:?}"), format!("Seal(of {})", KeyPrint::of("one")));
    }
}
