//! Messages: what can be seen of one without a key, and what is inside.

use std::{borrow::Cow, io::Read};

use pgp::{
    composed::PlainSessionKey,
    packet::{CompressedData, PublicKeyEncryptedSessionKey, Signature, SymEncryptedProtectedData},
    types::{Seipdv1ReadMode, Tag},
};
use zeroize::Zeroizing;

use crate::{
    Certificate, KeyId, Problem,
    armor::{self, Block},
    certificate::Checked,
    limits,
    packets::{self, Broken, Lengths, Packet, tag},
    reduction,
};

/// What was in a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    /// The text, byte for byte.
    pub text: Vec<u8>,
    /// Whether its sender signed it.
    pub signature: Signed,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opened({} bytes, {:?})", self.text.len(), self.signature)
    }
}

/// Whether a message's sender signed it. Of several signatures, the best counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signed {
    /// By a key of one of the sender's certificates that could sign at the time it gives.
    Good,
    /// By such a key, as it says; it is not right, or the key could not sign then.
    Bad,
    /// By keys of others.
    UnknownKey,
    /// There is none.
    Missing,
}

/// The keys that an armored message is encrypted to: [`KeyId::ANONYMOUS`] for those that it does not name.
///
/// # Errors
///
/// If it is no well-formed armor of such a message.
pub fn recipients_of(armored: &str) -> Result<Vec<KeyId>, Problem> {
    let bytes = dearmor(armored)?;
    let envelope = Envelope::read(&bytes)?;
    Ok(envelope.keys.iter().map(|(id, _)| *id).collect())
}

pub(crate) fn dearmor(armored: &str) -> Result<Vec<u8>, Problem> {
    if armored.len() > limits::MESSAGE_BYTES_MAX {
        return Err(Problem::TooLong { what: "a message", max: limits::MESSAGE_BYTES_MAX });
    }
    armor::read_one(armored, Block::Message).map_err(|_| Problem::NotAMessage)
}

/// A message as it is seen from outside.
pub(crate) struct Envelope<'b> {
    /// Session keys, each for one recipient.
    pub(crate) keys: Vec<(KeyId, Cow<'b, [u8]>)>,
    data: Packet<'b>,
}

impl<'b> Envelope<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> Result<Envelope<'b>, Problem> {
        let max = limits::MESSAGE_PACKETS_MAX;
        let packets =
            packets::split(bytes, Lengths::Any, max + 1).map_err(|broken| match broken {
                Broken::Form => Problem::NotAMessage,
                Broken::Many => Problem::TooMany { what: "packets before the data", max },
            })?;
        let mut keys = Vec::new();
        let mut data = None;
        for packet in packets {
            match packet.tag {
                tag::MARKER | tag::PADDING => {}
                _ if data.is_some() => return Err(Problem::NotAMessage),
                tag::SESSION_KEY => {
                    keys.extend(recipient(&packet.body).map(|id| (id, packet.body)))
                }
                tag::PASSWORD_SESSION_KEY => {}
                tag::ENCRYPTED | tag::PROTECTED | tag::GNUPG_PROTECTED => data = Some(packet),
                _ => return Err(Problem::NotAMessage),
            }
        }
        if keys.len() > limits::RECIPIENTS_MAX {
            return Err(Problem::TooMany { what: "recipients", max: limits::RECIPIENTS_MAX });
        }
        match data {
            Some(data) if !keys.is_empty() && !data.body.is_empty() => Ok(Envelope { keys, data }),
            Some(_) | None => Err(Problem::NotAMessage),
        }
    }

    /// What was encrypted, if this is the session key.
    pub(crate) fn decrypt(&self, key: &PlainSessionKey) -> Result<Zeroizing<Vec<u8>>, Problem> {
        // Version 1, which is what our certificates ask for. The packet of version 2 and gpg's own have other session keys.
        if self.data.tag != tag::PROTECTED || self.data.body.first() != Some(&1) {
            return Err(Problem::OtherCipher);
        }
        let PlainSessionKey::V3_4 { sym_alg, key } = key else { return Err(Problem::OtherCipher) };
        if key.len() != sym_alg.key_size() || key.is_empty() {
            return Err(Problem::DamagedMessage);
        }
        let body = &self.data.body;
        let header = packets::header(Tag::SymEncryptedProtectedData, body);
        let packet = SymEncryptedProtectedData::try_from_reader(header, &body[..]);
        let packet = packet.map_err(|_| Problem::DamagedMessage)?;
        // Nothing of it is looked at before its checksum is known to be right.
        let mode = Seipdv1ReadMode::CheckFirst { max_message_size: limits::MESSAGE_BYTES_MAX };
        let plain = packet.decrypt(key.as_ref(), Some(*sym_alg), mode);
        plain.map(Zeroizing::new).map_err(|_| Problem::DamagedMessage)
    }
}

/// For whom a session key is. Those of other versions than 3 are of other forms of data, and passed over.
fn recipient(body: &[u8]) -> Option<KeyId> {
    let (3, id) = (*body.first()?, body.get(1..9)?) else { return None };
    // The algorithm, and something encrypted with it.
    (body.len() > 10).then_some(())?;
    id.try_into().ok().map(KeyId)
}

pub(crate) fn session_key(body: &[u8]) -> Option<PublicKeyEncryptedSessionKey> {
    let header = packets::header(Tag::PublicKeyEncryptedSessionKey, body);
    PublicKeyEncryptedSessionKey::try_from_reader(header, body).ok()
}

/// A text within all that is around it, and its signatures.
pub(crate) struct Inside {
    document: Zeroizing<Vec<u8>>,
    is_text: bool,
    signatures: Vec<Signature>,
    /// Signatures that are in a form that is not read here.
    unread: bool,
}

impl Inside {
    /// Unwraps what was decrypted. The whole of it is read before anything is believed.
    pub(crate) fn read(decrypted: &[u8]) -> Result<Inside, Problem> {
        let mut layer = Cow::Borrowed(decrypted);
        let mut inside = Inside {
            document: Zeroizing::default(),
            is_text: false,
            signatures: Vec::new(),
            unread: false,
        };
        // The encryption was the first.
        for _ in 1..limits::NESTING_MAX {
            let compressed = match inside.layer(&layer)? {
                Some(compressed) => compressed,
                None => return Ok(inside),
            };
            layer = Cow::Owned(compressed);
        }
        match inside.layer(&layer)? {
            Some(_) => Err(Problem::TooDeep),
            None => Ok(inside),
        }
    }

    /// Reads one layer: its signatures, and its one packet of data. If that is compressed, what is in it is returned.
    fn layer(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Problem> {
        let max = limits::MESSAGE_PACKETS_MAX;
        let packets = packets::split(bytes, Lengths::Any, max).map_err(|broken| match broken {
            Broken::Form => Problem::DamagedMessage,
            Broken::Many => Problem::TooMany { what: "packets", max },
        })?;
        let mut data = None;
        for packet in packets {
            match packet.tag {
                // What it announces, the signature at the end says again.
                tag::MARKER | tag::PADDING | tag::ONE_PASS => {}
                tag::SIGNATURE => match reduction::read_signature(&packet) {
                    Some(signature) => self.signatures.push(signature),
                    None => self.unread = true,
                },
                // More than one, and nobody knows which of them is signed.
                tag::LITERAL | tag::COMPRESSED if data.is_none() => data = Some(packet),
                _ => return Err(Problem::DamagedMessage),
            }
        }
        let data = data.ok_or(Problem::DamagedMessage)?;
        if data.tag == tag::COMPRESSED {
            return decompress(&data.body).map(Some);
        }
        let (is_text, text) = literal(&data.body).ok_or(Problem::DamagedMessage)?;
        if text.len() > limits::PLAIN_BYTES_MAX {
            return Err(Problem::TooLong { what: "a text", max: limits::PLAIN_BYTES_MAX });
        }
        self.is_text = is_text;
        self.document = Zeroizing::new(text.to_vec());
        Ok(None)
    }

    /// The text, and whether one of these certificates signed it.
    pub(crate) fn judge(&self, signers: &[Certificate]) -> Opened {
        let mut best = if self.unread { Signed::UnknownKey } else { Signed::Missing };
        for signature in &self.signatures {
            // A key that is over now was not when it signed.
            let made = signature.created().map_or(0, |time| u64::from(time.as_secs()));
            let of_one =
                signers.iter().map(|signer| match signer.check(signature, &self.document, made) {
                    Checked::Good => Signed::Good,
                    Checked::Bad(_) => Signed::Bad,
                    Checked::Other(_) => Signed::UnknownKey,
                });
            best = best.min(of_one.min().unwrap_or(Signed::UnknownKey));
        }
        // Texts travel with the line ends of the net.
        let text = if self.is_text {
            without_carriage_returns(&self.document)
        } else {
            self.document.to_vec()
        };
        Opened { text, signature: best }
    }
}

fn without_carriage_returns(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if *byte != b'\r' || text.get(at + 1) != Some(&b'\n') {
            lines.push(*byte);
        }
    }
    lines
}

/// Whether it has lines, and what there is of it. Its name and time are of no use.
fn literal(body: &[u8]) -> Option<(bool, &[u8])> {
    let (mode, rest) = body.split_first()?;
    let (length, rest) = rest.split_first()?;
    let rest = rest.get(usize::from(*length)..)?;
    Some((matches!(mode, b't' | b'u'), rest.get(4..)?))
}

/// What is in a packet of compressed data, up to the bound of a text and what is around it.
pub(crate) fn decompress(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let header = packets::header(Tag::CompressedData, body);
    let packet =
        CompressedData::try_from_reader(header, body).map_err(|_| Problem::DamagedMessage)?;
    let max = limits::PLAIN_BYTES_MAX + limits::AROUND_PLAIN_BYTES_MAX;
    let reader = packet.decompress().map_err(|_| Problem::OtherCipher)?;
    let mut bytes = Vec::new();
    let one_too_many = u64::try_from(max + 1).unwrap_or(u64::MAX);
    let read = reader.take(one_too_many).read_to_end(&mut bytes);
    if bytes.len() > max {
        return Err(Problem::TooLong { what: "a text", max: limits::PLAIN_BYTES_MAX });
    }
    read.map_err(|_| Problem::DamagedMessage)?;
    Ok(bytes)
}
