//! Searches, as the store of a node is asked for them.

use std::fmt;

use mesh::{api::search::Spot, name::id::RoomId};

use crate::backend::Row;

/// The one who searches: what it may see.
#[derive(Clone, Copy)]
pub struct Searcher<'s> {
    /// Whether it may read a room.
    pub may: &'s dyn Fn(RoomId) -> bool,
    /// Whether it is shown a message of such a room.
    pub shows: &'s dyn Fn(RoomId, &Row) -> bool,
}

impl fmt::Debug for Searcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Searcher")
    }
}

/// A page of messages that were found, the newest first.
#[derive(Clone, Debug, Default)]
pub struct FoundRows {
    /// The messages and their rooms.
    pub rows: Vec<(RoomId, Row)>,
    /// There may be more behind this one: a page may be short, or empty, and have one.
    pub next: Option<Spot>,
    /// Something that was delivered a while ago cannot be found yet.
    pub behind: bool,
}
