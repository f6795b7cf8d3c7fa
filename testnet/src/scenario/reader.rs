//! A reader of a node's whole history in the end.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    history::{Row, author, seat},
    speaker::row,
};
use crate::wire::{Agent, WireError};

/// Messages of a page of history.
pub(super) const PAGE: usize = 500;

/// Pages through a node's history, over one connection: to a cursor that another one brings, which may be
/// from any node, a node repeats what it cannot know to be seen.
pub(super) struct Reader {
    pub(super) agent: Agent,
    pub(super) rows: Vec<Row>,
    /// Those that every node has to have.
    pub(super) honest: usize,
    /// Nodes that came back with an old disk: a newcomer takes none of their messages.
    pub(super) spoilt: BTreeSet<usize>,
}

impl Reader {
    /// All that there is after what it has.
    pub(super) async fn read_on(&mut self) -> Result<(), WireError> {
        loop {
            let since = self.rows.last().map_or(0, |last| last.number);
            let page = json!({ "room_id": "lobby", "since_seq": since, "limit": PAGE });
            let page = self.agent.call("get_history", page).await?;
            let page = page["messages"].as_array().cloned().unwrap_or_default();
            if page.is_empty() {
                return Ok(());
            }
            let from = self.rows.len();
            self.rows.extend(page.iter().map(row));
            let honest = |row: &&Row| !self.spoilt.contains(&seat(author(&row.content)));
            self.honest += self.rows[from..].iter().filter(honest).count();
        }
    }
}
