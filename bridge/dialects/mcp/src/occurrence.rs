//! Events of the extension for events, as tools find them.

use serde_json::Value;

/// An event.
pub(crate) struct Occurrence {
    pub(crate) id: String,
    pub(crate) at_ms: u64,
    pub(crate) data: Value,
    /// All up to it was told.
    pub(crate) cursor: String,
}

/// Some events, the oldest first.
pub(crate) struct Occurrences {
    pub(crate) events: Vec<Occurrence>,
    pub(crate) cursor: String,
    /// Something before them may have been skipped: it is not kept any more.
    pub(crate) truncated: bool,
    pub(crate) more: bool,
}
