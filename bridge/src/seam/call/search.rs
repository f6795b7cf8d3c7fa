//! Searches over what the node has.

use mesh::api::search::{Pattern, Spot, Wanted};

use super::Call;
use crate::{limits::SEARCH_PAGE_DEFAULT, seam::event::Message};

/// Find messages that the caller may read: those with all these words, the newest first.
///
/// Never found are texts that are encrypted end to end, and rooms that this node has not.
#[derive(Clone, Debug)]
pub struct Search(pub Wanted);

impl Search {
    /// Everything that a pattern is met by.
    #[must_use]
    pub fn of(pattern: Pattern) -> Search {
        Search(Wanted { pattern, limit: SEARCH_PAGE_DEFAULT, ..Wanted::default() })
    }
}

/// A page of messages that were found, the newest first.
#[derive(Debug)]
pub struct FoundPage {
    /// The messages.
    pub messages: Vec<Message>,
    /// There may be more behind this one ([`Wanted::after`]). A page may be short, or empty, and have one.
    pub next: Option<Spot>,
    /// Something that was delivered a while ago cannot be found yet: the node has just started, or there was much at once.
    pub behind: bool,
}

impl Call for Search {
    type Answer = FoundPage;
}
