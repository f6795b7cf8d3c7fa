//! API keys as principals. The text of a key gives secrets, these give public halves, and the halves give
//! the print by which the mesh knows the key: so who sees the halves can check the print, and who sees a
//! signature can check the halves (`docs/decisions/keys.md`).

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey};
use minicbor::{Decode, Encode};
use sha2::Sha256;
use thiserror::Error;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::{
    limits::KEY_TEXT_CHARS_MIN,
    name::id::{KeyPrint, sha256},
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

/// The part of an API key that signs. Secret, and wiped when it is dropped. The secret of its mailbox is not in it, as
/// nothing is sealed to keys yet.
pub struct KeySecret {
    signer: SigningKey,
    halves: KeyHalves,
    is_short: bool,
}

impl KeySecret {
    /// Of an API key's text. It multiplies twice on the curve: a tenth of a millisecond, so not a thing for each
    /// message.
    #[must_use]
    pub fn of(api_key: &str) -> KeySecret {
        let signer = SigningKey::from_bytes(&derive(api_key, b"clawmesh signer"));
        let mailbox = StaticSecret::from(*derive(api_key, b"clawmesh mailbox"));
        let halves = KeyHalves {
            signer: signer.verifying_key().to_bytes(),
            mailbox: PublicKey::from(&mailbox).to_bytes(),
        };
        let is_short = api_key.chars().count() < KEY_TEXT_CHARS_MIN;
        KeySecret { signer, halves, is_short }
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
    let mut out = Zeroizing::new([0; 32]);
    hkdf::Hkdf::<Sha256>::new(None, api_key.as_bytes())
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

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", KeySecret::of(TEXT)), "KeySecret(…)");
    }
}
