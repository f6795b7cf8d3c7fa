//! Drivers for fuzzing, and for tests with mutated input: each gives one input to all that reads such. Not built but with the
//! feature `fuzzing`.

use std::sync::OnceLock;

use crate::{
    Certificate, SecretCertificate, Wish,
    armor::{self, Block},
    message::Inside,
    recipients_of,
};

/// 2026-11-27, a day after the fixtures were made.
const NOW: u64 = 1_795_737_600;

/// A keyring of gpg: three certificates of three algorithms, one with a signature by another and a picture.
pub const KEYRING: &str = include_str!("tests/fixtures/keyring.asc");
/// A message of gpg to two recipients, and a third that it does not name.
pub const MESSAGE: &str = include_str!("tests/fixtures/message.asc");
/// A detached signature of gpg over `a document` and a line end, by a subkey of Alice Bot in [`KEYRING`].
pub const SIGNATURE: &str = include_str!("tests/fixtures/signature.asc");

/// A hosted account, the same in each process.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn reader() -> &'static SecretCertificate {
    static READER: OnceLock<SecretCertificate> = OnceLock::new();
    READER.get_or_init(generate)
}

fn generate() -> SecretCertificate {
    let mut next = 0_u8;
    let mut random = |bytes: &mut [u8]| {
        for byte in bytes {
            next = next.wrapping_mul(29).wrapping_add(71);
            *byte = next;
        }
    };
    SecretCertificate::generate("Reader <reader@clawfinder.invalid>", NOW, &mut random)
        .expect("keys can be made")
}

/// Packets of keys: the keyring, without its armor.
///
/// # Panics
/// If a fixture is damaged.
#[must_use]
pub fn packets(armored: &str) -> Vec<u8> {
    [Block::Keys, Block::Message]
        .into_iter()
        .find_map(|block| armor::read_all(armored, block).ok().filter(|bytes| !bytes.is_empty()))
        .expect("a fixture can be read")
}

/// A keyring, as a client may give it. What is taken must be read again as it was kept.
///
/// # Panics
/// If it is not: fuzzing looks for that.
pub fn keyring(text: &str) -> bool {
    let mut taken = false;
    let of = Wish::Of { username: "alice-bot", name: "Bob" };
    for wish in [Wish::First, of, Wish::Of { username: "", name: "Carol" }] {
        let Ok(certificate) = Certificate::choose(text, &wish, NOW) else { continue };
        taken = true;
        let kept = certificate.to_bytes();
        assert_eq!(Certificate::from_bytes(&kept).as_ref(), Ok(&certificate));
        let again = Certificate::choose(&certificate.armored(), &Wish::First, NOW);
        assert_eq!(again.as_ref(), Ok(&certificate));
        assert!(!certificate.recipients().is_empty(), "it encrypts");
        // Whether it can be encrypted to or not, an answer comes.
        let mut zeros = |bytes: &mut [u8]| bytes.fill(7);
        drop(reader().seal(&[&certificate], b"x", NOW, &mut zeros));
        drop(certificate.verify(SIGNATURE, b"a document\n", NOW));
    }
    taken
}

/// Packets of keys: in armor, and as another node may have them in a record.
///
/// # Panics
/// See [`keyring`].
pub fn certificate(bytes: &[u8]) -> bool {
    if let Ok(certificate) = Certificate::from_bytes(bytes) {
        assert_eq!(certificate.to_bytes(), bytes);
    }
    drop(SecretCertificate::from_bytes(bytes));
    keyring(&armor::write(Block::Keys, bytes))
}

/// A signature, as a client may give it.
pub fn signature(text: &str, document: &[u8]) -> bool {
    let wish = Wish::Of { username: "alice-bot", name: "" };
    let signer = Certificate::choose(KEYRING, &wish, NOW);
    signer.is_ok_and(|signer| signer.verify(text, document, NOW).is_ok())
}

/// A message, as it may come.
pub fn message(reader: &SecretCertificate, text: &str) -> bool {
    drop(recipients_of(text));
    reader.open(text, std::slice::from_ref(reader.certificate())).is_ok()
}

/// Packets of a message, in armor.
pub fn sealed(reader: &SecretCertificate, bytes: &[u8]) -> bool {
    message(reader, &armor::write(Block::Message, bytes))
}

/// What was encrypted: who can encrypt to somebody can put anything there.
pub fn inside(reader: &SecretCertificate, bytes: &[u8]) -> bool {
    let signers = std::slice::from_ref(reader.certificate());
    Inside::read(bytes).map(|inside| inside.judge(signers)).is_ok()
}

/// What fuzzing begins with: the target, a name, the byte by which the target knows what it is given, and that.
///
/// # Panics
/// If something cannot be sealed.
#[must_use]
pub fn seeds() -> Vec<(&'static str, &'static str, u8, Vec<u8>)> {
    let reader = reader();
    let mut zeros = |bytes: &mut [u8]| bytes.fill(7);
    let sealed = reader.seal(&[reader.certificate()], b"a text", NOW, &mut zeros);
    let sealed = sealed.expect("it can be sealed");
    let inside = reader.decrypt(&sealed).expect("it is for them").to_vec();
    let (keys, message) = ("pgp_certificate", "pgp_message");
    vec![
        (keys, "keyring", b'k', KEYRING.into()),
        (keys, "signature", b's', SIGNATURE.into()),
        (keys, "packets", b'p', packets(KEYRING)),
        (keys, "hosted", b'p', reader.certificate().to_bytes()),
        (message, "gpg", b'm', MESSAGE.into()),
        (message, "ours", b'm', sealed.clone().into_bytes()),
        (message, "packets", b'p', packets(&sealed)),
        (message, "inside", b'i', inside),
    ]
}
