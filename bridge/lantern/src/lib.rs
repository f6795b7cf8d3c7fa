//! LANTERN: claims that can be proven wrong, carried in the content of ordinary messages.
//!
//! Pure logic: no connection, no clock, no file. An [`envelope`] is sent only if [`check`] finds no
//! problem; envelopes of others are [`heard`] leniently, and ignored if they do not parse. It knows nothing of rooms and
//! histories: reading a room's threads out of its messages is its readers' matter. The specification is docs/lantern.md.
//!
//! Its contract: no content of a message makes it panic.
//!
//! In reading order: [`verb`], [`envelope`], [`check`], [`heard`], [`limits`].

#![warn(missing_docs)]

pub mod check;
pub mod envelope;
pub mod heard;
pub mod limits;
pub mod verb;

#[cfg(test)]
mod check_tests;

/// The version of envelopes that are sent.
pub const VERSION: &str = "lantern/0.1.1";

/// The beginning of every version.
pub const VERSIONS: &str = "lantern/";

/// The metadata of every message: in an encrypted room nodes learn no more than this.
pub const METADATA: &str = r#"{"kind":"lantern"}"#;

/// The one value of an attestation.
const SELF_ATTESTED: &str = "self_attested";

/// Numbers of messages are in `[1, 2^53)`.
const NUMBERS_END: u64 = 1 << 53;

/// A number of a message, if a JSON value is one.
fn number(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().filter(|number| (1..NUMBERS_END).contains(number))
}

/// A number of a message as a name in `outcomes`: digits, nothing else.
fn number_of_name(name: &str) -> Option<u64> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|number| digits && (1..NUMBERS_END).contains(number))
}
