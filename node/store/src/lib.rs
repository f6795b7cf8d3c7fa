//! The store of a node: redb behind one commit per turn, and snapshots to read from.
//!
//! It decides nothing: rows come from the core ([`mesh::api::batch::Change`]) and go back to it
//! ([`mesh::api::batch::Summary`]). Its one contract: [`Store::commit`] writes a whole batch or
//! nothing of it, durably when it returns. A [`Reader`] never waits for the writer.
//!
//! In reading order: [`Store`] (open, commit, summary), [`Reader`] (history, spans, roaming,
//! copies), [`records`], [`replaced`], [`owned`], [`inherited`] and [`followed`] over `databases`, [`check`] (every row of a stopped one), [`search`] (an index of words, in a file of its own), [`error`]s, [`limits`], and
//! [`testing`] (a disk that crashes). The file, byte by byte: `docs/store.md`.

#![warn(missing_docs)]

mod apply;
pub mod carried;
pub mod check;
mod chronicle;
pub mod copies;
mod copy;
mod databases;
pub mod error;
pub mod followed;
mod held;
mod inboxes;
pub mod inherited;
mod journal;
pub mod limits;
pub mod owned;
mod panics;
mod plan;
mod prune;
mod reader;
pub mod records;
pub mod replaced;
mod requests;
mod roam;
mod row;
mod schema;
pub mod search;
mod spans;
mod store;
mod summary;
pub mod testing;
mod view;

pub use chronicle::{Happened, Past};
pub use copy::{CopyError, Progress};
pub use error::{CommitError, OpenError, ReadError};
pub use inboxes::InboxPage;
pub use reader::{Kept, Reader};
pub use roam::{Cursor, Roam};
pub use row::Row;
pub use spans::Spans;
pub use store::{FILE_NAME, Store};
