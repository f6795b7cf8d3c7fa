//! Why something was refused, in words that say what to do.

use jiff::Timestamp;

use crate::{Fingerprint, KeyId, limits};

/// Why a certificate, a signature or a message was refused. Its text stands behind the name of the field (`pgp_key: `),
/// and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No block of armor that holds keys.
    #[error("no armored public key; give what `clawfinder gpg export-public` prints")]
    NoKey,
    /// The armor or the packets are damaged.
    #[error("the PGP text is damaged; export it anew")]
    Damaged,
    /// A secret key where a public one belongs.
    #[error(
        "this is a secret key: tell it nobody; give what `clawfinder gpg export-public` prints"
    )]
    SecretKey,
    /// Longer than may be.
    #[error("{what} of at most {max} bytes is taken{}", if *.what == "a certificate" { "; export it with --export-options export-minimal" } else { "" })]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// How many bytes it may have.
        max: usize,
    },
    /// More of something than may be.
    #[error("at most {max} {what} are taken")]
    TooMany {
        /// What is too many.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// A key of a version that not all clients can use.
    #[error("a key of version {0}, and only version 4 is taken; run clawfinder gpg init")]
    Version(u8),
    /// An algorithm that not all clients can use, or that is weak.
    #[error(
        "{0} is no algorithm that is taken; make a key with Ed25519, ECDSA on a NIST curve or RSA: run clawfinder gpg init"
    )]
    Algorithm(String),
    /// RSA that is too short.
    #[error("RSA of {0} bits, and at least {min} are needed; run clawfinder gpg init", min = limits::RSA_BITS_MIN)]
    ShortRsa(usize),
    /// A signature of its own by SHA-1, MD5 or RIPEMD-160.
    #[error(
        "it is signed with a broken hash such as SHA-1; sign it anew with --cert-digest-algo SHA512 and export it with --export-options export-minimal, or run clawfinder gpg init"
    )]
    WeakHash,
    /// Nothing of it is signed by its primary key.
    #[error(
        "no user id that the key has signed itself; export it anew, or run clawfinder gpg init"
    )]
    NoUserId,
    /// No key that signs.
    #[error("no key that signs; run clawfinder gpg init")]
    NoSigningKey,
    /// No key that encrypts.
    #[error("no encryption subkey; run clawfinder gpg init")]
    NoEncryptionKey,
    /// The certificate is over.
    #[error("expired on {}; extend it with gpg --quick-set-expire and give it anew", date(*.0))]
    Expired(u64),
    /// All keys that encrypt are over.
    #[error("its encryption subkey expired on {}; extend it with gpg --quick-set-expire and give it anew", date(*.0))]
    EncryptionExpired(u64),
    /// All keys that sign are over.
    #[error("its signing subkey expired on {}; extend it with gpg --quick-set-expire and give it anew", date(*.0))]
    SigningExpired(u64),
    /// It was revoked by its own key.
    #[error("revoked by its owner; run clawfinder gpg init in a new directory")]
    Revoked,
    /// It will be valid only later, by the clock here.
    #[error("made at a time that is still to come, {} (UTC); set the clock right", date(*.0))]
    NotYet(u64),
    /// No armored signature.
    #[error("not a detached, armored PGP signature; make it with gpg --armor --detach-sign")]
    NotASignature,
    /// A signature by a key that is none of this certificate.
    #[error(
        "signed by {signer}, which is no signing key of {certificate}; sign with gpg --local-user {certificate}"
    )]
    OtherSigner {
        /// The key that signed, as the signature says.
        signer: KeyId,
        /// The certificate that should have.
        certificate: Fingerprint,
    },
    /// A signature that is not over this document.
    #[error(
        "the signature is not over this text, or was damaged; sign exactly the text that was asked for"
    )]
    BadSignature,
    /// No armored message, or nothing encrypted in it.
    #[error("not a PGP message")]
    NotAMessage,
    /// Encrypted to others.
    #[error("not encrypted to this key; encrypt it to {0}")]
    NotForUs(Fingerprint),
    /// Encrypted in a way that is not read here.
    #[error(
        "encrypted in a form that cannot be read here; use gpg without --rfc2440, or a newer key of the recipient"
    )]
    OtherCipher,
    /// It was changed on its way, or made wrongly.
    #[error("the message is damaged; ask for it anew")]
    DamagedMessage,
    /// One thing in another in another.
    #[error("more than {} layers in a message", limits::NESTING_MAX)]
    TooDeep,
    /// `pgp` could not make something that should always be possible.
    #[error("could not be made: {0}")]
    NotMade(String),
}

/// The day of a time, in UTC.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "a far day".to_owned(), |time| time.strftime("%F").to_string())
}
