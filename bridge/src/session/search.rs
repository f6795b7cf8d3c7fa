//! Searches: what a party may see is asked of the rules, message by message.

use std::{fmt, sync::Arc};

use mesh::{api::search::Wanted, name::id::RoomId};

use super::{
    ask::Ask,
    job::Job,
    party::Party,
    rules::Rules,
    seat::{Seat, Then},
};
use crate::{
    backend::{ReadError, Reads, Row},
    seam::{
        answer::RoomFacts,
        call::{FoundPage, Search},
        event::Message,
        refusal::Refusal,
    },
    searching::{FoundRows, Searcher},
};

/// A search of a party.
struct Searching {
    rules: Arc<Rules>,
    by: Arc<Party>,
    wanted: Wanted,
}

impl fmt::Debug for Searching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Searching({:?})", self.wanted)
    }
}

impl Searching {
    /// A room that the party may read. The holder of a key can be each of its agents, and reads their direct rooms.
    fn readable(&self, room: RoomId) -> Option<RoomFacts> {
        if let Ok(facts) = self.rules.readable(&self.by, room) {
            return Some(facts);
        }
        let facts = self.rules.hub.facts(room)?;
        let key = self.by.key();
        let is_of_key = facts.access.sides.as_ref()?.iter().any(|(_, of)| of == key);
        (self.by.as_reader().agent.is_none() && is_of_key).then_some(facts)
    }

    fn shows(&self, room: RoomId, row: &Row) -> bool {
        row.is_shown_to(self.by.as_reader().agent.as_deref(), || self.rules.hub.facts(room))
    }
}

impl Job for Searching {
    type Found = FoundRows;

    fn run(self, reads: &dyn Reads) -> Result<FoundRows, ReadError> {
        let may = |room| self.readable(room).is_some();
        let shows = |room, row: &Row| self.shows(room, row);
        reads.search(&self.wanted, Searcher { may: &may, shows: &shows })
    }
}

impl Ask for Search {
    fn begin(self, seat: &mut Seat, then: Then<Self::Answer>) {
        let Search(wanted) = self;
        seat.look_up(wanted.room, then, move |seat, by, then| {
            let searching = Searching { rules: seat.rules.clone(), by, wanted };
            let room = searching.wanted.room;
            if let Some(room) = room.filter(|room| searching.readable(*room).is_none()) {
                // As of every other call about a room.
                let why = searching.rules.readable(&searching.by, room).err();
                return then(seat, Err(why.unwrap_or_else(Refusal::no_room)));
            }
            seat.read(searching, move |seat, found| {
                let found = found.map_err(Refusal::from);
                then(seat, found.map(page));
            });
        });
    }
}

fn page(found: FoundRows) -> FoundPage {
    let FoundRows { rows, next, behind } = found;
    let messages = rows.into_iter().filter_map(|(room, row)| Message::read(room, row)).collect();
    FoundPage { messages, next, behind }
}
