//! Certificates: the public keys of an agent, as they are kept.

use std::fmt;

use pgp::{
    packet::{PublicSubkey, Signature},
    types::KeyDetails,
};

use crate::{
    Fingerprint, KeyId, Problem,
    armor::{self, Block},
    keys::{KeyState, Lapse, Uses},
    limits,
    packets::{self, Broken, Lengths, Packet, tag},
    reduction::{self, Reduced},
};

/// Which certificate of a keyring is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<'a> {
    /// The first of all.
    First,
    /// The first with a user id whose e-mail has this username as its local part, in any case; else the first with a user
    /// id of this name; else the first of all.
    Of {
        /// The username.
        username: &'a str,
        /// The name.
        name: &'a str,
    },
}

/// A certificate of version 4, reduced: its primary key, user ids, subkeys, its own signatures and revocations.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate(Reduced);

impl Certificate {
    /// Takes one out of a keyring in armor, reduces it, and judges whether mail can be exchanged with it at this time.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not one that all can use now.
    pub fn choose(armored: &str, wish: &Wish<'_>, now: u64) -> Result<Certificate, Problem> {
        if armored.len() > limits::KEYRING_BYTES_MAX {
            return Err(Problem::TooLong { what: "a keyring", max: limits::KEYRING_BYTES_MAX });
        }
        if armor::has(armored, Block::SecretKeys) {
            return Err(Problem::SecretKey);
        }
        let bytes = armor::read_all(armored, Block::Keys).map_err(|_| Problem::Damaged)?;
        if bytes.is_empty() {
            return Err(Problem::NoKey);
        }
        let packets = split(&bytes, limits::KEYRING_PACKETS_MAX)?;
        let ring = certificates(&packets)?;
        let chosen = ring.iter().find(|it| is_wanted(it, wish, Match::Email));
        let chosen = chosen.or_else(|| ring.iter().find(|it| is_wanted(it, wish, Match::Name)));
        let chosen = chosen.or_else(|| ring.first()).ok_or(Problem::NoKey)?;
        let certificate = Certificate(reduction::reduce(chosen)?);
        certificate.judge(now)?;
        Ok(certificate)
    }

    /// Reads one as [`Certificate::to_bytes`] wrote it. It may come from a node that lies: all of it is verified again, and
    /// what [`Certificate::choose`] would leave out must not be there. That its time is over is no reason to refuse it.
    ///
    /// # Errors
    ///
    /// If it is not exactly one reduced certificate.
    pub fn from_bytes(bytes: &[u8]) -> Result<Certificate, Problem> {
        if bytes.len() > limits::CERTIFICATE_BYTES_MAX {
            return Err(Problem::TooLong {
                what: "a certificate",
                max: limits::CERTIFICATE_BYTES_MAX,
            });
        }
        let packets = split(bytes, limits::KEYRING_PACKETS_MAX)?;
        let ring = certificates(&packets)?;
        let [only] = ring.as_slice() else { return Err(Problem::Damaged) };
        let certificate = Certificate(reduction::reduce(only)?);
        if certificate.0.bytes == bytes { Ok(certificate) } else { Err(Problem::Damaged) }
    }

    /// As it is kept in a record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.bytes.clone()
    }

    /// In armor, as `gpg --import` takes it.
    #[must_use]
    pub fn armored(&self) -> String {
        armor::write(Block::Keys, &self.0.bytes)
    }

    /// The fingerprint of its primary key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = [0; 20];
        let given = self.0.primary.fingerprint();
        // Version 4, as [`reduction`] has seen to: 20 bytes.
        if given.as_bytes().len() == bytes.len() {
            bytes.copy_from_slice(given.as_bytes());
        }
        Fingerprint(bytes)
    }

    /// The ids of its keys that messages can be encrypted to, whether their time is over or not; none that is revoked.
    #[must_use]
    pub fn recipients(&self) -> Vec<KeyId> {
        if self.0.primary_state.revoked {
            return Vec::new();
        }
        let encrypts = |state: &&KeyState| state.ever().is_some_and(|uses| uses.encrypts);
        self.states().filter(encrypts).map(|state| state.id).collect()
    }

    /// Whether mail can be exchanged with it at this time, as [`Certificate::choose`] judges.
    ///
    /// # Errors
    ///
    /// If it is expired or revoked, or no key of it signs or encrypts.
    pub fn judge(&self, now: u64) -> Result<(), Problem> {
        let missing = |problem| if self.0.weak { Problem::WeakHash } else { problem };
        match self.0.primary_state.at(now) {
            Ok(_) => {}
            Err(Lapse::Revoked) => return Err(Problem::Revoked),
            Err(Lapse::Expired(at)) => return Err(Problem::Expired(at)),
            Err(Lapse::NotYet(at)) => return Err(Problem::NotYet(at)),
            Err(Lapse::Unbound) => return Err(missing(Problem::NoUserId)),
        }
        if self.find(now, |uses| uses.signs).is_none() {
            let expired = self.expired(now, |uses| uses.signs).map(Problem::SigningExpired);
            return Err(expired.unwrap_or_else(|| missing(Problem::NoSigningKey)));
        }
        if self.find(now, |uses| uses.encrypts).is_none() {
            let expired = self.expired(now, |uses| uses.encrypts).map(Problem::EncryptionExpired);
            return Err(expired.unwrap_or_else(|| missing(Problem::NoEncryptionKey)));
        }
        Ok(())
    }

    /// Verifies a detached signature, in armor, over a document, by a key of this certificate that signs at this time.
    ///
    /// # Errors
    ///
    /// If it is none, is by another key, or is not over this document.
    pub fn verify(&self, signature: &str, document: &[u8], now: u64) -> Result<(), Problem> {
        if signature.len() > limits::SIGNATURE_BYTES_MAX {
            return Err(Problem::TooLong { what: "a signature", max: limits::SIGNATURE_BYTES_MAX });
        }
        let bytes =
            armor::read_one(signature, Block::Signature).map_err(|_| Problem::NotASignature)?;
        let packets = packets::split(&bytes, Lengths::Known, limits::MESSAGE_PACKETS_MAX);
        let packets = packets.map_err(|_| Problem::NotASignature)?;
        let mut worst = Problem::NotASignature;
        for packet in packets.iter().filter(|it| it.tag == tag::SIGNATURE) {
            let Some(signature) = reduction::read_signature(packet) else { continue };
            match self.check(&signature, document, now) {
                Checked::Good => return Ok(()),
                Checked::Bad(problem) => worst = problem,
                Checked::Other(signer) => {
                    worst = Problem::OtherSigner { signer, certificate: self.fingerprint() };
                }
            }
        }
        Err(worst)
    }

    /// Whether a signature is over a document, and by a key of this certificate that signs at this time.
    pub(crate) fn check(&self, signature: &Signature, document: &[u8], now: u64) -> Checked {
        use pgp::packet::SignatureType::{Binary, Text};
        if !matches!(signature.typ(), Some(Binary | Text)) {
            return Checked::Bad(Problem::NotASignature);
        }
        let mut found = None;
        if reduction::is_by(signature, &self.0.primary) {
            let right = signature.verify(&self.0.primary, document).is_ok();
            found = Some((&self.0.primary_state, right));
        }
        for (key, state) in &self.0.subkeys {
            if found.is_none_or(|(_, right)| !right) && reduction::is_by(signature, key) {
                found = Some((state, signature.verify(key, document).is_ok()));
            }
        }
        let Some((state, right)) = found else {
            let mut signer = KeyId::ANONYMOUS;
            if let Some(id) = signature.issuer_key_id().first() {
                signer.0.copy_from_slice(id.as_ref());
            }
            return Checked::Other(signer);
        };
        if reduction::is_weak(signature) {
            return Checked::Bad(Problem::WeakHash);
        }
        if !right {
            return Checked::Bad(Problem::BadSignature);
        }
        match self.usable(state, now) {
            Ok(uses) if uses.signs => Checked::Good,
            Ok(_) | Err(Lapse::Unbound) => Checked::Bad(Problem::NoSigningKey),
            Err(Lapse::Revoked) => Checked::Bad(Problem::Revoked),
            Err(Lapse::Expired(at)) => Checked::Bad(Problem::SigningExpired(at)),
            Err(Lapse::NotYet(at)) => Checked::Bad(Problem::NotYet(at)),
        }
    }

    /// The newest subkey that encrypts at this time.
    pub(crate) fn encryption_subkey(&self, now: u64) -> Option<&PublicSubkey> {
        let encrypts = |state| self.usable(state, now).is_ok_and(|uses| uses.encrypts);
        let usable = self.0.subkeys.iter().filter(|(_, state)| encrypts(state));
        usable.max_by_key(|(_, state)| state.created).map(|(key, _)| key)
    }

    /// The primary key, if it encrypts at this time.
    pub(crate) fn encryption_primary(&self, now: u64) -> Option<&pgp::packet::PublicKey> {
        let uses = self.0.primary_state.at(now).ok()?;
        uses.encrypts.then_some(&self.0.primary)
    }

    /// What a key of it can do at this time: nothing, if the primary key can do nothing.
    fn usable(&self, state: &KeyState, now: u64) -> Result<Uses, Lapse> {
        self.0.primary_state.at(now)?;
        state.at(now)
    }

    fn states(&self) -> impl Iterator<Item = &KeyState> {
        std::iter::once(&self.0.primary_state).chain(self.0.subkeys.iter().map(|(_, state)| state))
    }

    fn find(&self, now: u64, wanted: impl Fn(Uses) -> bool) -> Option<&KeyState> {
        self.states().find(|state| state.at(now).is_ok_and(&wanted))
    }

    /// When the last of its keys that could do this expired.
    fn expired(&self, now: u64, wanted: impl Fn(Uses) -> bool) -> Option<u64> {
        let could = self.states().filter(|state| state.ever().is_some_and(&wanted));
        let over = could.filter_map(|state| match state.at(now) {
            Err(Lapse::Expired(at)) => Some(at),
            Ok(_) | Err(Lapse::Revoked | Lapse::NotYet(_) | Lapse::Unbound) => None,
        });
        over.max()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({}, {} bytes)", self.fingerprint(), self.0.bytes.len())
    }
}

/// What became of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    Good,
    /// By a key of the certificate, as it says, and not right.
    Bad(Problem),
    /// By this key, which is none of the certificate.
    Other(KeyId),
}

fn split(bytes: &[u8], max: usize) -> Result<Vec<Packet<'_>>, Problem> {
    packets::split(bytes, Lengths::Known, max).map_err(|broken| match broken {
        Broken::Form => Problem::Damaged,
        Broken::Many => Problem::TooMany { what: "packets", max },
    })
}

/// The packets of each certificate: one begins with each primary key.
fn certificates<'p, 'b>(packets: &'p [Packet<'b>]) -> Result<Vec<&'p [Packet<'b>]>, Problem> {
    if packets.iter().any(|it| matches!(it.tag, tag::SECRET_KEY | tag::SECRET_SUBKEY)) {
        return Err(Problem::SecretKey);
    }
    let found: Vec<_> = packets.chunk_by(|_, next| next.tag != tag::KEY).collect();
    match found.first() {
        Some([first, ..]) if first.tag == tag::KEY => Ok(found),
        _ => Err(Problem::NoKey),
    }
}

/// By what a certificate is recognised.
#[derive(Clone, Copy)]
enum Match {
    Email,
    Name,
}

fn is_wanted(packets: &[Packet<'_>], wish: &Wish<'_>, by: Match) -> bool {
    let Wish::Of { username, name } = wish else { return false };
    packets.iter().filter(|it| it.tag == tag::USER_ID).any(|packet| {
        let user = String::from_utf8_lossy(&packet.body);
        let (its_name, email) = parse_user_id(&user);
        match by {
            Match::Email => email
                .rsplit_once('@')
                .is_some_and(|(local, _)| local.to_lowercase() == username.to_lowercase()),
            Match::Name => its_name == *name || without_comment(its_name) == *name,
        }
    })
}

/// Name, comment included, and e-mail of `Name (comment) <e-mail>`; either may be missing.
fn parse_user_id(user: &str) -> (&str, &str) {
    let user = user.trim();
    match user.rsplit_once('<') {
        Some((before, email)) if email.ends_with('>') => {
            (before.trim(), email.trim_end_matches('>'))
        }
        _ if user.contains('@') && !user.contains(' ') => ("", user),
        _ => (user, ""),
    }
}

fn without_comment(name: &str) -> &str {
    match name.rsplit_once('(') {
        Some((first, comment)) if comment.ends_with(')') => first.trim(),
        _ => name,
    }
}
