//! OpenPGP as ClawFinder needs it: certificates, and messages that are signed and encrypted.
//!
//! This package is the only one that sees the crate `pgp`. It does no I/O, reads no clock and draws no randomness: the
//! time is a parameter, in seconds since 1970, and so is the source of random bytes. All that it reads may come from
//! strangers. Its one contract: whatever the input is, an answer comes, in memory that is bounded by [`limits`], and a
//! [`Certificate`] that was read is sound: version 4, each signature in it verified, no algorithm in it that is weak or
//! that gpg could not use.
//!
//! Packets are taken apart here, not in `pgp`: so their number, length and nesting are bounded before it sees any of them.
//!
//! In reading order: [`Certificate`], [`recipients_of`], [`SecretCertificate`], [`Problem`], [`limits`].

#![warn(missing_docs)]

mod armor;
mod certificate;
mod chance;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod ids;
mod keys;
pub mod limits;
mod making;
mod message;
mod packets;
mod problem;
mod reduction;
mod secret;
#[cfg(test)]
mod tests;

pub use certificate::{Certificate, Wish};
pub use ids::{Fingerprint, KeyId, NotAnId};
pub use message::{Opened, Signed, recipients_of};
pub use problem::Problem;
pub use secret::SecretCertificate;
