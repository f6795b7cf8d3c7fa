//! Reading inboxes and messages as a bridge does for an agent that comes and asks.

use mesh::{
    api::command::Unfiled,
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
    wire::kinds::THINKING,
};
use store::{Reader, Row};

/// Messages of others from before an inbox was made, the oldest first.
pub(super) fn waiting(
    reader: &Reader,
    agent: &AgentId,
    unfiled: Option<&[Unfiled]>,
) -> Vec<(RoomId, Number)> {
    let mut found = Vec::new();
    for Unfiled { room, upto } in unfiled.into_iter().flatten() {
        let rows = rows_after(reader, *room, Number::ZERO).into_iter();
        // Nothing that was only thought is in an inbox.
        let rows = rows.filter(|row| row.number <= *upto && row.facts.kind != THINKING);
        let rows = rows.filter(|row| row.said.as_ref().is_some_and(|said| said.agent != *agent));
        found.extend(rows.map(|row| (row.facts.wall_ms, *room, row.number)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, room, number)| (room, number)).collect()
}

/// All messages of a room above a number.
pub(super) fn rows_after(reader: &Reader, room: RoomId, after: Number) -> Vec<Row> {
    let (mut rows, mut after) = (Vec::new(), after);
    loop {
        let page = reader.page_since(room, after, 1_000).expect("a sound store reads");
        let Some(last) = page.last() else { return rows };
        after = last.number;
        rows.extend(page);
    }
}
