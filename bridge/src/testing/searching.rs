//! A search without an index: every message is looked at.

use mesh::api::search::{Spot, Wanted};

use super::Fake;
use crate::{
    backend::ReadError,
    searching::{FoundRows, Searcher},
};

/// The messages that are wanted, the newest first.
pub(super) fn found(
    fake: &Fake,
    wanted: &Wanted,
    by: Searcher<'_>,
) -> Result<FoundRows, ReadError> {
    let rooms: Vec<_> = fake.rows.read().unwrap().keys().copied().collect();
    let mut found = Vec::new();
    for room in rooms {
        if !(by.may)(room) || wanted.room.is_some_and(|of| of != room) {
            continue;
        }
        for row in fake.all(room)? {
            let spot = Spot { wall_ms: row.facts.wall_ms, room, number: row.number };
            let Some(said) = &row.said else { continue };
            let is_from = |from: &String| *said.agent == **from || said.name == *from;
            let is_meant = wanted.is_within(spot)
                && wanted.from.as_ref().is_none_or(is_from)
                && wanted.pattern.is_met_by(&said.content);
            if is_meant && (by.shows)(room, &row) {
                found.push((spot, row));
            }
        }
    }
    found.sort_by_key(|(spot, _)| std::cmp::Reverse(*spot));
    let more = found.len() > wanted.limit;
    found.truncate(wanted.limit);
    let next = found.last().filter(|_| more).map(|(spot, _)| *spot);
    let rows = found.into_iter().map(|(spot, row)| (spot.room, row)).collect();
    Ok(FoundRows { rows, next, behind: false })
}
