//! How content is encrypted end to end (spec §10): the key of one room, and blobs.
//!
//! Key = HKDF-SHA256 of the shared secret, without salt, with `clawchat-e2e-v1:` and the room's id as
//! info. Blob = `clw1:` and unpadded standard base64 of nonce (12 bytes) ‖ ChaCha20-Poly1305
//! ciphertext and tag. Every holder of the secret can read and write: a blob says nothing of its author.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use chacha20poly1305::aead::Aead;
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The beginning of encrypted content.
pub const MARK: &str = "clw1:";

const INFO: &str = "clawchat-e2e-v1:";
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// A blob cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBlob {
    /// It does not begin with the mark.
    #[error("the content is not encrypted: it does not begin with {MARK}")]
    NotABlob,
    /// The text after the mark is not base64 as the dialect writes it.
    #[error("the encrypted content is damaged: it is not unpadded base64")]
    NotBase64,
    /// Nonce and tag do not fit.
    #[error("the encrypted content is damaged: it is too short")]
    TooShort,
    /// The tag does not match.
    #[error(
        "the content does not open: it was changed, is of another room, or was encrypted with another room key"
    )]
    DoesNotOpen,
    /// The encrypted bytes are no text.
    #[error("the encrypted content is not UTF-8 text")]
    NotText,
}

/// The text is too long to be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the content is too long to be encrypted")]
pub struct TooLong;

/// The key that encrypts and decrypts the content of one room.
pub struct RoomKey(ChaCha20Poly1305);

impl std::fmt::Debug for RoomKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RoomKey(hidden)")
    }
}

impl RoomKey {
    /// The key of a room under a shared secret.
    pub fn derive(secret: &str, room_id: &str) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let info: [&[u8]; 2] = [INFO.as_bytes(), room_id.as_bytes()];
        Hkdf::<Sha256>::new(None, secret.as_bytes())
            .expand_multi_info(&info, key.as_mut())
            .expect("HKDF-SHA256 gives up to 8,160 bytes");
        Self(ChaCha20Poly1305::new(&Key::from(*key)))
    }

    /// The text as a blob. The nonce must not have been used with this key before: 12 random bytes.
    ///
    /// # Errors
    /// [`TooLong`] for texts of many gigabytes.
    pub fn seal(&self, nonce: [u8; NONCE_BYTES], text: &str) -> Result<String, TooLong> {
        let sealed = self.0.encrypt(&Nonce::from(nonce), text.as_bytes()).map_err(|_| TooLong)?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        let mut blob = String::from(MARK);
        STANDARD_NO_PAD.encode_string(bytes, &mut blob);
        Ok(blob)
    }

    /// The text of a blob.
    ///
    /// # Errors
    /// [`BadBlob`]; no blob makes it panic.
    pub fn open(&self, blob: &str) -> Result<String, BadBlob> {
        let digits = blob.strip_prefix(MARK).ok_or(BadBlob::NotABlob)?;
        let bytes = STANDARD_NO_PAD.decode(digits).map_err(|_| BadBlob::NotBase64)?;
        let (nonce, sealed) = bytes.split_first_chunk().ok_or(BadBlob::TooShort)?;
        if sealed.len() < TAG_BYTES {
            return Err(BadBlob::TooShort);
        }
        let text = self.0.decrypt(&Nonce::from(*nonce), sealed);
        String::from_utf8(text.map_err(|_| BadBlob::DoesNotOpen)?).map_err(|_| BadBlob::NotText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: &str = "0190a1b2-c3d4-8e5f-9a6b-7c8d9e0f1a2b";

    /// Secret, room, nonce, text, blob. Made with Python's `cryptography` 48.0.0:
    ///
    /// ```python
    /// def blob(secret, room, nonce, text):
    ///     info = b"clawchat-e2e-v1:" + room.encode()
    ///     key = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret.encode())
    ///     sealed = nonce + ChaCha20Poly1305(key).encrypt(nonce, text.encode(), None)
    ///     return "clw1:" + base64.b64encode(sealed).decode().rstrip("=")
    ///
    /// blob("correct horse", "lobby", bytes(12), "")
    /// blob("correct horse", "lobby", bytes(range(12)), "the eagle lands at dawn")
    /// blob("a" * 64, ROOM, bytes(range(244, 256)), "ünïcödé 🦞\nsecond line")
    /// blob("pässwörd", ROOM, b"\xff" * 12, "x" * 100)
    /// ```
    fn vectors() -> [(String, &'static str, [u8; 12], String, &'static str); 4] {
        [
            (
                "correct horse".into(),
                "lobby",
                [0; 12],
                String::new(),
                "clw1:AAAAAAAAAAAAAAAAPLXUt7GPSm+5TvCbqgPtUw",
            ),
            (
                "correct horse".into(),
                "lobby",
                std::array::from_fn(|i| i as u8),
                "the eagle lands at dawn".into(),
                "clw1:AAECAwQFBgcICQoLDOofEdnRsiNh3aJCijR2raVfrwHHPtWjftQex44Q8cdUbYFU4+LN",
            ),
            (
                "a".repeat(64),
                ROOM,
                std::array::from_fn(|i| 244 + i as u8),
                "ünïcödé 🦞\nsecond line".into(),
                "clw1:9PX29/j5+vv8/f7/eZ6ViRJ5/UZSa1pqWa6z3SwqqJpqASlLZ/BxAwThsQRP+PV706LyMYiqaZI",
            ),
            (
                "pässwörd".into(),
                ROOM,
                [255; 12],
                "x".repeat(100),
                "clw1:////////////////nhCqoLs2A4WMr1U6BSCyauZTBsYui7bpsSh531dACxC5KTw8VOtotUFthv8b\
                 /OPTaVIHuzaD978g4hafNl2K5h2RkiBxMwbn5/iwWzkt6uA8ItDTey175TK7c/JrIkNPud/pYr5c/dHg\
                 HEWPTDFuXRz/jFo",
            ),
        ]
    }

    #[test]
    fn blobs_are_those_of_the_python_package() {
        for (secret, room, nonce, text, blob) in vectors() {
            let key = RoomKey::derive(&secret, room);
            assert_eq!(key.seal(nonce, &text).unwrap(), blob, "{text}");
            assert_eq!(key.open(blob).unwrap(), text);
        }
    }

    #[test]
    fn a_key_opens_one_room_of_one_secret() {
        let blob = RoomKey::derive("s", "r").seal([7; 12], "text").unwrap();
        for (secret, room) in [("t", "r"), ("s", "q"), ("s", ""), ("", "r")] {
            assert_eq!(RoomKey::derive(secret, room).open(&blob), Err(BadBlob::DoesNotOpen));
        }
    }

    #[test]
    fn what_is_no_blob_is_refused_and_says_why() {
        let key = RoomKey::derive("s", "r");
        let check = |blob: &str, expect| assert_eq!(key.open(blob), Err(expect), "{blob}");
        check("", BadBlob::NotABlob);
        check("plain text", BadBlob::NotABlob);
        check("CLW1:AAAA", BadBlob::NotABlob);
        check("clw1:", BadBlob::TooShort);
        check("clw1:AAAA", BadBlob::TooShort);
        // A nonce, and one byte less than a tag.
        check(&format!("clw1:{}", STANDARD_NO_PAD.encode([0; 27])), BadBlob::TooShort);
        check(&format!("clw1:{}", STANDARD_NO_PAD.encode([0; 28])), BadBlob::DoesNotOpen);
        check("clw1:A", BadBlob::NotBase64);
        check("clw1:AAA*", BadBlob::NotBase64);
        check("clw1:AA==", BadBlob::NotBase64);
        check("clw1: AAAA", BadBlob::NotBase64);
        check("clw1:ÄÄÄÄ", BadBlob::NotBase64);
    }

    #[test]
    fn no_bit_of_a_blob_can_be_changed() {
        let key = RoomKey::derive("s", "r");
        let blob = key.seal([7; 12], "text").unwrap();
        let bytes = STANDARD_NO_PAD.decode(&blob[MARK.len()..]).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let changed = format!("{MARK}{}", STANDARD_NO_PAD.encode(bytes));
            assert_eq!(key.open(&changed), Err(BadBlob::DoesNotOpen), "bit {bit}");
        }
    }

    #[test]
    fn what_is_no_text_is_not_given_out() {
        let key = RoomKey::derive("s", "r");
        let sealed = key.0.encrypt(&Nonce::from([0; 12]), &b"\xff\xfe"[..]).unwrap();
        let blob = format!("{MARK}{}", STANDARD_NO_PAD.encode([vec![0; 12], sealed].concat()));
        assert_eq!(key.open(&blob), Err(BadBlob::NotText));
    }
}
