//! The past of rooms: messages as they are in the delivery log, and acts of tasks.

use std::collections::BTreeMap;

use mesh::{
    api::batch::{Change, RoomRecord},
    chronicle::Position,
    name::id::{EntryRef, LogId, LogIx, RoomId},
    wire::{entry::Body, seal::SealContext},
};

use crate::backend::{Happened, Past, Row};

/// See the module.
#[derive(Default)]
pub(super) struct Acts {
    rooms: BTreeMap<RoomId, RoomRecord>,
    logs: BTreeMap<(RoomId, LogIx), LogId>,
    all: Vec<(RoomId, Past)>,
}

impl Acts {
    pub(super) fn note(&mut self, change: &Change) {
        if let Change::Room { room, record } = change {
            self.rooms.insert(*room, record.clone());
        }
        if let Change::Log { room, log, record } = change {
            self.logs.insert((*room, *log), record.id);
        }
    }

    /// When rooms and logs are known.
    pub(super) fn note_entry(&mut self, change: &Change) {
        let Change::Entry { room, at, entry } = change else { return };
        let (Some(log), Some(record)) = (self.logs.get(&(*room, at.log)), self.rooms.get(room))
        else {
            return;
        };
        let place = EntryRef { log: *log, seq: at.seq };
        let spot = SealContext { room: *room, log: *log, seq: at.seq, kind: entry.facts.kind };
        if let Body::Task(act) = record.body(&spot, &entry.body) {
            let at = Position { clock: entry.facts.clock, place };
            self.all.push((*room, Past { at, what: Happened::Task(entry.facts, act) }));
        }
    }

    pub(super) fn with(
        &self,
        room: RoomId,
        rows: &[Row],
        (after, limit): (Option<Position>, usize),
    ) -> Vec<Past> {
        let said = rows.iter().map(|row| {
            let place = EntryRef { log: row.log, seq: row.at.seq };
            let at = Position { clock: row.facts.clock, place };
            Past { at, what: Happened::Said(row.clone()) }
        });
        let acts = self.all.iter().filter(|(of, _)| *of == room).map(|(_, past)| past.clone());
        let mut all: Vec<Past> = said.chain(acts).collect();
        all.sort_by_key(|past| past.at);
        all.retain(|past| after.is_none_or(|after| past.at > after));
        all.truncate(limit);
        all
    }
}
