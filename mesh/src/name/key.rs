//! API keys as principals. The text of a key gives secrets, these give public halves, and the halves give
//! the print by which the mesh knows the key: so who sees the halves can check the print, and who sees a
//! signature can check the halves (`docs/decisions/keys.md`).

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey};
use minicbor::{Decode, Encode};
use sha2::Sha256;
use thiserror::Error;
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{
    limits::KEY_TEXT_CHARS_MIN,
    name::id::{KeyPrint, MeshId, RoomKey, sha256},
};

/// The public halves of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeyHalves {
    /// Of ed25519: it says whether a signature is the key's.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub signer: [u8; 32],
    /// Of X25519: others can seal to it.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub mailbox: [u8; 32],
}

impl KeyHalves {
    /// The print of the key with these halves, and of no other.
    #[must_use]
    pub fn print(&self) -> KeyPrint {
        let hash = sha256(&[b"clawmesh key", &self.signer, &self.mailbox]);
        let mut print = [0; 16];
        print.copy_from_slice(&hash[..16]);
        KeyPrint(print)
    }
}

impl KeyPrint {
    /// The fingerprint of an API key's text. It costs work on the curve: see [`KeySecret::of`].
    #[must_use]
    pub fn of(api_key: &str) -> KeyPrint {
        KeySecret::of(api_key).print()
    }
}

/// The text of a key is so short that others could guess it by its public halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the key has fewer than {KEY_TEXT_CHARS_MIN} characters: the mesh is shown public halves of it, by which others \
     could guess it. Use a longer one"
)]
pub struct ShortKey;

/// The secret of a key's mailbox: with the mailbox of another key it gives the secret that the two share. Secret,
/// and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Mailbox(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]);

impl Mailbox {
    /// Its public half.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        x25519(self.0, X25519_BASEPOINT_BYTES)
    }

    /// The secret of the pair of this key and another one, in the place of a key's [`RoomKey`]: the other one derives
    /// the same. It costs work on the curve. `None`: the other mailbox is a point with which everybody shares the same.
    #[must_use]
    pub fn pair_secret(&self, mesh: MeshId, other: &[u8; 32]) -> Option<RoomKey> {
        let shared = Zeroizing::new(x25519(self.0, *other));
        if *shared == [0; 32] {
            return None;
        }
        let mut both = [self.public(), *other];
        both.sort_unstable();
        let info = [b"clawmesh pair".as_slice(), &mesh.0, &both[0], &both[1]].concat();
        let mut secret = Zeroizing::new([0; 32]);
        hkdf::Hkdf::<Sha256>::new(None, shared.as_slice())
            .expand(&info, secret.as_mut())
            .expect("32 bytes are within HKDF's 8160");
        Some(RoomKey::from_secret(&secret))
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox(…)")
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The secrets of an API key that sign and that open its mailbox. Secret, and wiped when it is dropped.
pub struct KeySecret {
    signer: SigningKey,
    mailbox: Mailbox,
    halves: KeyHalves,
    is_short: bool,
}

impl KeySecret {
    /// Of an API key's text. It multiplies twice on the curve: a tenth of a millisecond, so not a thing for each
    /// message.
    #[must_use]
    pub fn of(api_key: &str) -> KeySecret {
        let signer = SigningKey::from_bytes(&derive(api_key, b"clawmesh signer"));
        let mailbox = Mailbox(*derive(api_key, b"clawmesh mailbox"));
        let halves =
            KeyHalves { signer: signer.verifying_key().to_bytes(), mailbox: mailbox.public() };
        let is_short = api_key.chars().count() < KEY_TEXT_CHARS_MIN;
        KeySecret { signer, mailbox, halves, is_short }
    }

    /// Its public halves. They are for others only if [`KeySecret::check`] says so.
    #[must_use]
    pub fn halves(&self) -> KeyHalves {
        self.halves
    }

    /// Its print.
    #[must_use]
    pub fn print(&self) -> KeyPrint {
        self.halves.print()
    }

    /// Whether others may be shown its halves.
    ///
    /// # Errors
    ///
    /// Its text is too short for that.
    pub fn check(&self) -> Result<(), ShortKey> {
        if self.is_short { Err(ShortKey) } else { Ok(()) }
    }

    /// The secret of its mailbox.
    ///
    /// # Errors
    ///
    /// Its text is too short: others are not shown the public half, so nobody shares a secret with it.
    pub fn mailbox(&self) -> Result<&Mailbox, ShortKey> {
        self.check().map(|()| &self.mailbox)
    }

    /// A secret for one use, which is named by the label: nobody has it but those who were shown the key's text. It
    /// follows from what signs, which no node keeps, and not from the mailbox, which nodes keep where the key was shown.
    ///
    /// # Errors
    ///
    /// The key's text is too short: what is made of the secret could be guessed as the text could.
    pub fn derive(&self, label: &[u8]) -> Result<Zeroizing<[u8; 32]>, ShortKey> {
        self.check()?;
        Ok(expand(Zeroizing::new(self.signer.to_bytes()).as_slice(), label))
    }

    /// Signs `message`. A signature goes together with the halves.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<[u8; 64], ShortKey> {
        self.check()?;
        Ok(self.signer.sign(message).to_bytes())
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

fn derive(api_key: &str, label: &[u8]) -> Zeroizing<[u8; 32]> {
    expand(api_key.as_bytes(), label)
}

fn expand(secret: &[u8], label: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    hkdf::Hkdf::<Sha256>::new(None, secret)
        .expand(label, out.as_mut())
        .expect("32 bytes are within HKDF's 8160");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::identity::{Judge as _, Strict};

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_keys_secrets_and_its_print_are_what_other_programs_derive_from_its_text() {
        let halves = KeySecret::of(TEXT).halves();
        let signer = SigningKey::from_bytes(&derive(TEXT, b"clawmesh signer"));
        assert_eq!(halves.signer, signer.verifying_key().to_bytes());
        let mailbox = x25519_dalek::x25519(
            *derive(TEXT, b"clawmesh mailbox"),
            x25519_dalek::X25519_BASEPOINT_BYTES,
        );
        assert_eq!(halves.mailbox, mailbox);
        assert_ne!(halves.signer, halves.mailbox);
        assert_eq!(KeyPrint::of(TEXT), halves.print());
        assert_eq!(KeyPrint::of(TEXT).to_string(), "ca0f357e7e5f13ad0c6464225ec61964");
        for other in ["", "0123456789abcdef0123456789abcdeF"] {
            assert_ne!(KeyPrint::of(other), halves.print(), "{other}");
        }
        let swapped = KeyHalves { signer: halves.mailbox, mailbox: halves.signer };
        assert_ne!(swapped.print(), halves.print());
    }

    #[test]
    fn a_key_signs_with_its_signer_and_a_short_one_does_not() {
        let key = KeySecret::of(TEXT);
        let signature = key.sign(b"text").expect("it is long enough");
        assert!(Strict.holds_key(&key.halves().signer, b"text", &signature));
        assert!(!Strict.holds_key(&key.halves().signer, b"test", &signature));
        assert!(!Strict.holds_key(&KeySecret::of("other").halves().signer, b"text", &signature));
        let short = &TEXT[..KEY_TEXT_CHARS_MIN - 1];
        assert_eq!(KeySecret::of(short).sign(b"text"), Err(ShortKey));
        assert_eq!(KeySecret::of(&"é".repeat(31)).check(), Err(ShortKey), "characters, not bytes");
        assert_eq!(KeySecret::of(&"é".repeat(32)).check(), Ok(()));
    }

    /// HMAC, written out.
    fn hmac(key: &[u8; 32], text: &[u8]) -> [u8; 32] {
        let pad = |byte: u8| {
            let mut block = [byte; 64];
            block.iter_mut().zip(key).for_each(|(out, key)| *out ^= key);
            block
        };
        sha256(&[&pad(0x5c), &sha256(&[&pad(0x36), text])])
    }

    #[test]
    fn secrets_for_other_uses_follow_from_what_signs_and_a_short_key_has_none() {
        let key = KeySecret::of(TEXT);
        let secret = key.derive(b"a use").expect("it is long enough");
        let signer = derive(TEXT, b"clawmesh signer");
        let by_hand = hmac(&hmac(&[0; 32], signer.as_slice()), b"a use\x01");
        assert_eq!(*secret, by_hand);
        assert_ne!(key.derive(b"another use").expect("likewise"), secret);
        assert_ne!(secret, signer);
        assert_eq!(KeySecret::of("short").derive(b"a use").err(), Some(ShortKey));
    }

    /// The secret of a pair by hand: RFC 7748 and RFC 5869.
    fn pair_by_hand(own: &str, other: &str, mesh: MeshId) -> [u8; 32] {
        let mailbox = |text| x25519_dalek::StaticSecret::from(*derive(text, b"clawmesh mailbox"));
        let public = |text| x25519_dalek::PublicKey::from(&mailbox(text)).to_bytes();
        let shared = mailbox(own).diffie_hellman(&public(other).into());
        let mut both = [public(own), public(other)];
        both.sort_unstable();
        let info = [b"clawmesh pair".as_slice(), &mesh.0, &both[0], &both[1], &[1]].concat();
        hmac(&hmac(&[0; 32], shared.as_bytes()), &info)
    }

    #[test]
    fn two_keys_derive_one_secret_each_by_itself_and_no_third_key_does() {
        let (mesh, other_text) = (MeshId([1; 16]), "fedcba9876543210fedcba9876543210");
        let [key, other, third] = [TEXT, other_text, &"3".repeat(32)].map(KeySecret::of);
        let secret = |own: &KeySecret, of: &KeySecret| {
            own.mailbox().expect("it is long enough").pair_secret(mesh, &of.halves().mailbox)
        };
        let pair = secret(&key, &other).expect("there is one");
        assert!(secret(&other, &key) == Some(pair.clone()));
        let by_hand = Zeroizing::new(pair_by_hand(TEXT, other_text, mesh));
        assert!(pair == RoomKey::from_secret(&by_hand));
        for another in [secret(&key, &third), secret(&third, &other), secret(&key, &key)] {
            assert!(another.is_some_and(|another| another != pair));
        }
        let own = key.mailbox().expect("it is long enough");
        let elsewhere = own.pair_secret(MeshId([2; 16]), &other.halves().mailbox);
        assert!(elsewhere.is_some_and(|elsewhere| elsewhere != pair));
    }

    #[test]
    fn nobody_shares_a_secret_with_a_point_of_small_order_or_with_a_short_key() {
        let key = KeySecret::of(TEXT);
        let own = key.mailbox().expect("it is long enough");
        let mut one = [0; 32];
        one[0] = 1;
        for point in [[0; 32], one] {
            assert!(own.pair_secret(MeshId([1; 16]), &point).is_none());
        }
        assert_eq!(KeySecret::of("short").mailbox().err(), Some(ShortKey));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", KeySecret::of(TEXT)), "KeySecret(…)");
        let key = KeySecret::of(TEXT);
        assert_eq!(format!("{:?}", key.mailbox()), "Ok(Mailbox(…))");
    }
}
