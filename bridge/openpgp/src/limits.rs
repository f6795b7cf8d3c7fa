//! Every bound of what strangers can give, with its reason.

/// Longest text with certificates, in bytes: the client sends its whole keyring, some hundred certificates.
pub const KEYRING_BYTES_MAX: usize = 256 * 1024;

/// Longest certificate as it is kept, in bytes. One of the client's has 500, one of RSA with ten years of signatures 10,000.
pub const CERTIFICATE_BYTES_MAX: usize = 16 * 1024;

/// User ids of a certificate. Each of them costs verifications.
pub const USER_IDS_MAX: usize = 64;

/// Subkeys of a certificate. Each of them costs verifications.
pub const SUBKEYS_MAX: usize = 32;

/// Signatures of a certificate that say to be its own, and so are verified: more than there is room for in a certificate
/// that is kept. One by P-521 takes a millisecond.
pub const OWN_SIGNATURES_MAX: usize = 192;

/// Packets of a whole keyring, in [`KEYRING_BYTES_MAX`]: each takes some 100 bytes of memory while it is read.
pub const KEYRING_PACKETS_MAX: usize = 8192;

/// Longest armored message, in bytes: the longest plain text, if it cannot be compressed, with its keys.
pub const MESSAGE_BYTES_MAX: usize = 6 * 1024 * 1024;

/// Longest plain text of a message, in bytes, however it was compressed.
pub const PLAIN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much longer than its plain text may be what is around it: signatures, and the headers of packets.
pub const AROUND_PLAIN_BYTES_MAX: usize = 64 * 1024;

/// Layers of a message: encryption is one, each compression is one.
pub const NESTING_MAX: usize = 4;

/// Packets at one layer of a message.
pub const MESSAGE_PACKETS_MAX: usize = 64;

/// Keys that a message is encrypted to. Each that names nobody costs its reader a decryption.
pub const RECIPIENTS_MAX: usize = 32;

/// Longest armored detached signature, in bytes: one by RSA of 8192 bits, with a generous comment.
pub const SIGNATURE_BYTES_MAX: usize = 16 * 1024;

/// Longest user id of a certificate that is made here, in bytes: a name of 256 characters and a username.
pub const USER_ID_BYTES_MAX: usize = 1280;

/// The least bits of an RSA key.
pub const RSA_BITS_MIN: usize = 2048;

/// How far ahead the clock of who signed may be, in seconds.
pub const CLOCK_AHEAD_SECONDS_MAX: u64 = 3600;
