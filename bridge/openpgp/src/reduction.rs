//! A certificate's packets, reduced to those that are its own, and what they say.

use pgp::{
    crypto::hash::HashAlgorithm,
    packet::{
        PublicKey, PublicSubkey, Signature, SignatureType, SignatureVersion, Subpacket,
        SubpacketData, UserId,
    },
    types::{KeyDetails, Tag},
};

use crate::{
    Problem,
    keys::{KeyState, Statement, Uses, uses_of},
    limits,
    packets::{self, Packet, tag},
};

/// What is left of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reduced {
    pub(crate) bytes: Vec<u8>,
    pub(crate) primary: PublicKey,
    pub(crate) primary_state: KeyState,
    pub(crate) subkeys: Vec<(PublicSubkey, KeyState)>,
    /// Whether there was a signature by a weak hash that could not be verified: then that is why something is missing.
    pub(crate) weak: bool,
}

/// A key or a user id, and the signatures that follow it.
struct Part<'a> {
    packet: &'a Packet<'a>,
    signatures: Vec<&'a Packet<'a>>,
}

/// Reduces the packets of one certificate, the first of which is its primary key.
pub(crate) fn reduce(packets: &[Packet<'_>]) -> Result<Reduced, Problem> {
    let parts = parts(packets);
    let (first, rest) = parts.split_first().ok_or(Problem::NoKey)?;
    let (primary, uses) = primary(first.packet)?;
    bound(rest, tag::USER_ID, "user ids", limits::USER_IDS_MAX)?;
    bound(rest, tag::SUBKEY, "subkeys", limits::SUBKEYS_MAX)?;
    let mut reducer = Reducer {
        own: Own { primary: &primary, tried: 0, weak: false },
        bytes: Vec::new(),
        state: KeyState::of(&primary),
        subkeys: Vec::new(),
        users: 0,
        uses,
    };
    reducer.primary(first)?;
    for part in rest.iter().filter(|it| it.packet.tag == tag::USER_ID) {
        reducer.user_id(part)?;
    }
    for part in rest.iter().filter(|it| it.packet.tag == tag::SUBKEY) {
        reducer.subkey(part)?;
    }
    let Reducer { own, bytes, state, subkeys, users, .. } = reducer;
    let weak = own.weak;
    if users == 0 {
        return Err(if weak { Problem::WeakHash } else { Problem::NoUserId });
    }
    if bytes.len() > limits::CERTIFICATE_BYTES_MAX {
        return Err(Problem::TooLong { what: "a certificate", max: limits::CERTIFICATE_BYTES_MAX });
    }
    Ok(Reduced { bytes, primary, primary_state: state, subkeys, weak })
}

/// Signatures belong to the key or user id before them. Those behind anything else, an image say, are dropped with it.
fn parts<'a>(packets: &'a [Packet<'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for packet in packets {
        match (packet.tag, parts.last_mut()) {
            (tag::SIGNATURE, Some(part)) => part.signatures.push(packet),
            (tag::SIGNATURE | tag::MARKER | tag::PADDING, _) => {}
            _ => parts.push(Part { packet, signatures: Vec::new() }),
        }
    }
    parts
}

fn bound(parts: &[Part<'_>], tag: u8, what: &'static str, max: usize) -> Result<(), Problem> {
    let count = parts.iter().filter(|it| it.packet.tag == tag).count();
    if count > max { Err(Problem::TooMany { what, max }) } else { Ok(()) }
}

fn primary(packet: &Packet<'_>) -> Result<(PublicKey, Uses), Problem> {
    match packet.body.first() {
        Some(4) => {}
        Some(version) => return Err(Problem::Version(*version)),
        None => return Err(Problem::Damaged),
    }
    if packet.body.len() > limits::CERTIFICATE_BYTES_MAX {
        return Err(Problem::TooLong { what: "a certificate", max: limits::CERTIFICATE_BYTES_MAX });
    }
    let header = packets::header(Tag::PublicKey, &packet.body);
    let key = PublicKey::try_from_reader(header, &packet.body[..]).map_err(|_| Problem::Damaged)?;
    let uses = uses_of(&key)?;
    // Any of these algorithms may be there for subkeys. The primary key must be one that certifies.
    if uses.signs { Ok((key, uses)) } else { Err(Problem::NoSigningKey) }
}

/// Tells which signatures are the certificate's own.
struct Own<'k> {
    primary: &'k PublicKey,
    tried: usize,
    weak: bool,
}

impl Own<'_> {
    /// The signatures behind a part that are by the primary key and right. One by a weak hash that is right refuses the
    /// certificate: the next reader would trust it.
    fn of<'p>(
        &mut self,
        part: &Part<'p>,
        verify: impl Fn(&Signature) -> bool,
    ) -> Result<Vec<(&'p Packet<'p>, Signature)>, Problem> {
        let mut own: Vec<(&Packet<'_>, Signature)> = Vec::new();
        for packet in &part.signatures {
            if own.iter().any(|(kept, _)| kept.body == packet.body) {
                continue;
            }
            let Some(signature) = read_signature(packet) else { continue };
            if !is_by(&signature, self.primary) {
                continue;
            }
            self.tried += 1;
            if self.tried > limits::OWN_SIGNATURES_MAX {
                return Err(Problem::TooMany {
                    what: "signatures",
                    max: limits::OWN_SIGNATURES_MAX,
                });
            }
            let right = verify(&signature);
            if is_weak(&signature) {
                if right {
                    return Err(Problem::WeakHash);
                }
                self.weak = true;
            } else if right {
                own.push((packet, signature));
            }
        }
        Ok(own)
    }
}

struct Reducer<'k> {
    own: Own<'k>,
    bytes: Vec<u8>,
    state: KeyState,
    subkeys: Vec<(PublicSubkey, KeyState)>,
    users: usize,
    uses: Uses,
}

impl Reducer<'_> {
    fn keep(&mut self, packet: &Packet<'_>, signatures: &[(&Packet<'_>, Signature)]) {
        packets::write(&mut self.bytes, packet.tag, &packet.body);
        for (signature, _) in signatures {
            packets::write(&mut self.bytes, signature.tag, &signature.body);
        }
    }

    fn primary(&mut self, part: &Part<'_>) -> Result<(), Problem> {
        let primary = self.own.primary;
        let own = self.own.of(part, |it| it.verify_key(primary).is_ok())?;
        for (_, signature) in &own {
            match signature.typ() {
                Some(SignatureType::KeyRevocation) => self.state.revoked = true,
                _ => self.state.statements.extend(Statement::of(signature, primary, self.uses)),
            }
        }
        self.keep(part.packet, &own);
        Ok(())
    }

    fn user_id(&mut self, part: &Part<'_>) -> Result<(), Problem> {
        let body = &part.packet.body;
        let header = packets::header(Tag::UserId, body);
        let Ok(user) = UserId::try_from_reader(header, &body[..]) else { return Ok(()) };
        let primary = self.own.primary;
        let right = |it: &Signature| it.verify_certification(primary, Tag::UserId, &user).is_ok();
        let own = self.own.of(part, right)?;
        let is_revocation = |it: &Signature| it.typ() == Some(SignatureType::CertRevocation);
        if own.iter().all(|(_, it)| is_revocation(it)) {
            return Ok(());
        }
        // A user id that was taken back says nothing of the key. One that was given again later, does.
        let made = |it: &Signature| it.created().map_or(0, |time| time.as_secs());
        let revoked = own.iter().filter(|(_, it)| is_revocation(it)).map(|(_, it)| made(it)).max();
        for (_, signature) in own.iter().filter(|(_, it)| !is_revocation(it)) {
            if revoked.is_none_or(|revoked| made(signature) > revoked) {
                self.users += 1;
                self.state.statements.extend(Statement::of(signature, primary, self.uses));
            }
        }
        self.keep(part.packet, &own);
        Ok(())
    }

    /// A subkey of an algorithm that is not taken is left out: then nobody encrypts to it.
    fn subkey(&mut self, part: &Part<'_>) -> Result<(), Problem> {
        let body = &part.packet.body;
        if body.first() != Some(&4) || body.len() > limits::CERTIFICATE_BYTES_MAX {
            return Ok(());
        }
        let header = packets::header(Tag::PublicSubkey, body);
        let Ok(key) = PublicSubkey::try_from_reader(header, &body[..]) else { return Ok(()) };
        let Ok(uses) = uses_of(&key) else { return Ok(()) };
        let primary = self.own.primary;
        let own = self.own.of(part, |it| it.verify_subkey_binding(primary, &key).is_ok())?;
        let mut state = KeyState::of(&key);
        let mut kept = Vec::new();
        for (packet, signature) in own {
            if signature.typ() == Some(SignatureType::SubkeyRevocation) {
                state.revoked = true;
            } else if !signature.key_flags().sign() || self.signs_back(&signature, &key) {
                state.statements.extend(Statement::of(&signature, &key, uses));
            } else {
                continue;
            }
            kept.push((packet, signature));
        }
        if !state.statements.is_empty() {
            self.keep(part.packet, &kept);
            self.subkeys.push((key, state));
        }
        Ok(())
    }

    /// Whether a subkey that signs says itself that it belongs to this primary key: else anybody could take it for his.
    fn signs_back(&mut self, binding: &Signature, key: &PublicSubkey) -> bool {
        let Some(back) = binding.embedded_signature() else { return false };
        if is_weak(back) {
            self.own.weak = true;
            return false;
        }
        back.version() == SignatureVersion::V4
            && back.verify_primary_key_binding(key, self.own.primary).is_ok()
    }
}

/// A signature of version 4 all of which is understood.
pub(crate) fn read_signature(packet: &Packet<'_>) -> Option<Signature> {
    if packet.body.first() != Some(&4) || packet.body.len() > limits::CERTIFICATE_BYTES_MAX {
        return None;
    }
    let header = packets::header(Tag::Signature, &packet.body);
    let signature = Signature::try_from_reader(header, &packet.body[..]).ok()?;
    let understood = !signature.config()?.hashed_subpackets().any(is_beyond_us);
    understood.then_some(signature)
}

/// A statement that must be understood, says its signer, and is not.
fn is_beyond_us(it: &Subpacket) -> bool {
    it.is_critical
        && matches!(
            it.data,
            SubpacketData::Notation(_) | SubpacketData::Experimental(..) | SubpacketData::Other(..)
        )
}

/// Whether a signature says that it is by this key, or does not say by which.
pub(crate) fn is_by(signature: &Signature, key: &impl KeyDetails) -> bool {
    let (ids, fingerprints) = (signature.issuer_key_id(), signature.issuer_fingerprint());
    let says_nothing = ids.is_empty() && fingerprints.is_empty();
    says_nothing
        || ids.iter().any(|id| **id == key.legacy_key_id())
        || fingerprints.iter().any(|fingerprint| **fingerprint == key.fingerprint())
}

/// Hashes in which others can be put under a signature.
pub(crate) fn is_weak(signature: &Signature) -> bool {
    matches!(
        signature.hash_alg(),
        Some(
            HashAlgorithm::Md5
                | HashAlgorithm::Sha1
                | HashAlgorithm::Ripemd160
                | HashAlgorithm::None
        )
    )
}
