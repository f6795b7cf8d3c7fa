//! Everything that is written into logs or sent between nodes, and how it is sealed and signed.

pub mod account;
pub mod acts;
pub mod approval;
pub(crate) mod cbor;
pub mod comparing;
pub mod contents;
pub mod conversation;
pub mod copies;
pub mod cover;
pub mod delivery;
pub mod entry;
pub mod given;
pub mod kinds;
pub mod message;
pub mod once;
pub mod piece;
pub mod record;
pub mod replaced;
pub mod roster;
pub mod run;
pub mod seal;
pub mod signatures;
pub mod tasks;
