//! The SQLite file of a ClawChat server (0.3), read into plain values.
//!
//! Not a writer, and not a judge: `node` decides which rows can be brought into a mesh. Its one
//! contract: the file is never written to, nothing is made beside it, and all that one
//! [`ServerFile`] gives is of one moment, also if the server goes on writing.
//!
//! In reading order: opening ([`ServerFile`], `source`), tables and columns (`layout`), single
//! values (`cell`), rows ([`Room`] and the others), and a number that tells two files apart
//! ([`Digest`]).

mod cell;
mod digest;
mod layout;
mod open;
mod rows;
mod source;

pub use digest::{Digest, id_from};
pub use open::{OpenError, ReadError, ServerFile};
pub use rows::{
    BadRow, Identity, Key, Kind, LOBBY, Message, Room, Sequence, Status, Subscription, Task, Vote,
};

#[cfg(test)]
mod tests;
