//! The keys of a hosted account, which a node holds for an agent that has none.

use std::fmt;

use pgp::{
    composed::PlainSessionKey,
    crypto::public_key::PublicKeyAlgorithm,
    packet::{SecretKey, SecretSubkey},
    ser::Serialize,
    types::{DecryptionKey, EskType, KeyDetails, Password, SecretParams, Tag},
};
use zeroize::Zeroizing;

use crate::{
    Certificate, KeyId, Opened, Problem,
    armor::{self, Block},
    chance::Chance,
    keys::KeyState,
    limits, making,
    message::{self, Envelope, Inside},
    packets::{self, Lengths, Packet, tag},
};

/// A certificate with its secret keys. They are wiped from memory when they are dropped, and shown by no `Debug`.
pub struct SecretCertificate {
    certificate: Certificate,
    primary: SecretKey,
    subkeys: Vec<SecretSubkey>,
    bytes: Zeroizing<Vec<u8>>,
}

impl SecretCertificate {
    /// Makes one that signs and encrypts and does not expire, for this user id (`NAME <E-MAIL>`).
    ///
    /// # Errors
    ///
    /// If the user id is too long.
    pub fn generate(
        user_id: &str,
        now: u64,
        rng: &mut dyn FnMut(&mut [u8]),
    ) -> Result<SecretCertificate, Problem> {
        let bytes = making::keys(user_id, now, &mut Chance(rng))?;
        SecretCertificate::from_bytes(&bytes)
    }

    /// Reads one as [`SecretCertificate::to_bytes`] wrote it. No other algorithms than those of
    /// [`SecretCertificate::generate`] are read: the secret side of RSA leaks through its timing here.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<SecretCertificate, Problem> {
        if bytes.len() > limits::CERTIFICATE_BYTES_MAX {
            return Err(Problem::TooLong {
                what: "a certificate",
                max: limits::CERTIFICATE_BYTES_MAX,
            });
        }
        let split = packets::split(bytes, Lengths::Known, limits::MESSAGE_PACKETS_MAX);
        let split = split.map_err(|_| Problem::Damaged)?;
        let mut public = Vec::new();
        let mut primary = None;
        let mut subkeys = Vec::new();
        for packet in &split {
            match packet.tag {
                tag::SECRET_KEY if primary.is_none() => {
                    let key = read_primary(packet)?;
                    let body = key.public_key().to_bytes().map_err(|_| Problem::Damaged)?;
                    packets::write(&mut public, tag::KEY, &body);
                    primary = Some(key);
                }
                tag::SECRET_SUBKEY => {
                    let key = read_subkey(packet)?;
                    let body = key.public_key().to_bytes().map_err(|_| Problem::Damaged)?;
                    packets::write(&mut public, tag::SUBKEY, &body);
                    subkeys.push(key);
                }
                tag::USER_ID | tag::SIGNATURE => {
                    packets::write(&mut public, packet.tag, &packet.body)
                }
                _ => return Err(Problem::Damaged),
            }
        }
        let primary = primary.ok_or(Problem::Damaged)?;
        let certificate = Certificate::from_bytes(&public)?;
        let bytes = Zeroizing::new(bytes.to_vec());
        Ok(SecretCertificate { certificate, primary, subkeys, bytes })
    }

    /// All of it, unencrypted: for a vault.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.bytes.clone()
    }

    /// Its public side.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// A detached signature over a document, in armor.
    ///
    /// # Errors
    ///
    /// If `pgp` cannot.
    pub fn sign_detached(&self, document: &[u8], now: u64) -> Result<String, Problem> {
        let bytes = making::sign(&self.primary, document, now)?;
        Ok(armor::write(Block::Signature, &bytes))
    }

    /// A text as a message in armor, signed, compressed, and encrypted to the newest key of each of these certificates: the
    /// recipient's, and its own ([`SecretCertificate::certificate`]) if the sender is to read it again.
    ///
    /// # Errors
    ///
    /// If one of them cannot be encrypted to at this time, or the text is too long.
    pub fn seal(
        &self,
        to: &[&Certificate],
        text: &[u8],
        now: u64,
        rng: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, Problem> {
        let bytes = making::seal(&self.primary, to, text, now, &mut Chance(rng))?;
        Ok(armor::write(Block::Message, &bytes))
    }

    /// Opens a message in armor, and says whether a key of one of these certificates signed it: the current and former ones
    /// of its sender.
    ///
    /// # Errors
    ///
    /// If it is not for these keys, is damaged, or exceeds a bound.
    pub fn open(&self, armored: &str, signers: &[Certificate]) -> Result<Opened, Problem> {
        Ok(Inside::read(&self.decrypt(armored)?)?.judge(signers))
    }

    /// What was encrypted, if it was encrypted to one of these keys.
    pub(crate) fn decrypt(&self, armored: &str) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let bytes = message::dearmor(armored)?;
        let envelope = Envelope::read(&bytes)?;
        let mut problem = Problem::NotForUs(self.certificate.fingerprint());
        for key in &self.subkeys {
            let id = KeyState::of(key).id;
            let ours = |to: &KeyId| *to == id || to.is_anonymous();
            for (to, body) in envelope.keys.iter().filter(|(to, _)| ours(to)) {
                let plain = session_key(key, body).ok_or(Problem::DamagedMessage);
                match plain.and_then(|session| envelope.decrypt(&session)) {
                    Ok(plain) => return Ok(plain),
                    // One that names nobody may be for somebody else.
                    Err(Problem::DamagedMessage) if to.is_anonymous() => {}
                    Err(other) => problem = other,
                }
            }
        }
        Err(problem)
    }
}

impl fmt::Debug for SecretCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretCertificate({}, hidden)", self.certificate.fingerprint())
    }
}

fn session_key(key: &SecretSubkey, body: &[u8]) -> Option<PlainSessionKey> {
    let packet = message::session_key(body)?;
    if packet.algorithm().ok()? != key.algorithm() {
        return None;
    }
    key.decrypt(&Password::empty(), packet.values().ok()?, EskType::V3_4).ok()?.ok()
}

fn read_primary(packet: &Packet<'_>) -> Result<SecretKey, Problem> {
    let header = packets::header(Tag::SecretKey, &packet.body);
    let key = SecretKey::try_from_reader(header, &packet.body[..]).map_err(|_| Problem::Damaged)?;
    match (key.secret_params(), key.algorithm()) {
        (SecretParams::Plain(_), PublicKeyAlgorithm::EdDSALegacy) => Ok(key),
        (SecretParams::Plain(_) | SecretParams::Encrypted(_), _) => Err(Problem::Damaged),
    }
}

fn read_subkey(packet: &Packet<'_>) -> Result<SecretSubkey, Problem> {
    let header = packets::header(Tag::SecretSubkey, &packet.body);
    let key =
        SecretSubkey::try_from_reader(header, &packet.body[..]).map_err(|_| Problem::Damaged)?;
    match (key.secret_params(), key.algorithm()) {
        (SecretParams::Plain(_), PublicKeyAlgorithm::ECDH) => Ok(key),
        (SecretParams::Plain(_) | SecretParams::Encrypted(_), _) => Err(Problem::Damaged),
    }
}
