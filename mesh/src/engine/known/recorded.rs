//! Records that have changed in a turn, for clients ([`crate::records::news`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Known,
    members::{Subject, subject},
};
use crate::{
    api::{
        boundary::Effect,
        event::{AgentEvent, RoomEvent},
    },
    name::id::{AgentId, RoomId},
    records::{
        news::{AgentNote, OF_ROOMS, RoomNote, is_of_profile},
        profile,
    },
    wire::record::Record,
};

/// See the module. What has changed is of one turn, and no more than its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Rooms that clients were told of, by the beginnings of the names of their records.
    of: BTreeMap<Subject, RoomId>,
    rooms: BTreeMap<RoomId, BTreeSet<RoomNote>>,
    agents: BTreeMap<AgentId, BTreeSet<AgentNote>>,
}

impl Known {
    /// Clients are told of a room from now on: what is said of it is told, too.
    pub(super) fn note_place_of_records(&mut self, room: RoomId) {
        let place = self.rooms.get(&room).and_then(|it| it.replica.record.place_of_records(room));
        if let Some(at) = place {
            let subjects = OF_ROOMS.map(|collection| ((at.space, at.subject(collection)), room));
            self.recorded.of.extend(subjects);
        }
    }

    /// A record is kept, in this state, and was not at the start of the turn.
    pub(crate) fn note_record(&mut self, record: &Record) {
        if OF_ROOMS.contains(&record.collection) {
            self.note_of_room(record);
        } else if is_of_profile(record.collection) {
            self.note_of_agent(record);
        }
    }

    fn note_of_room(&mut self, record: &Record) {
        let named = subject(record.space, record.id);
        let Some(room) = self.recorded.of.get(&named).copied() else { return };
        // Anybody may write some of a public room: they show nowhere.
        if !self.directory.proofs().keys_of_room(room).contains(&record.owner()) {
            return;
        }
        let place = self.rooms.get(&room).and_then(|it| it.replica.record.place_of_records(room));
        if let Some(note) = place.and_then(|at| RoomNote::of(&at, record)) {
            self.recorded.rooms.entry(room).or_default().insert(note);
        }
    }

    fn note_of_agent(&mut self, record: &Record) {
        let (owner, proofs) = (record.owner(), self.directory.proofs());
        let noted = match record.content() {
            Some(_) => profile::note_of(record).filter(|(agent, _)| proofs.owns(owner, agent)),
            // It names nobody.
            None => proofs.find_claimed(owner, |agent| {
                Some((agent.clone(), profile::note_of_deleted(agent, record)?))
            }),
        };
        if let Some((agent, note)) = noted {
            self.recorded.agents.entry(agent).or_default().insert(note);
        }
    }

    /// At the end of a turn.
    pub(crate) fn tell_of_records(&mut self) {
        for (room, notes) in std::mem::take(&mut self.recorded.rooms) {
            let notes: Arc<[RoomNote]> = notes.into_iter().collect();
            self.cx.notify(room, RoomEvent::Recorded(notes));
        }
        for (agent, notes) in std::mem::take(&mut self.recorded.agents) {
            let notes: Arc<[AgentNote]> = notes.into_iter().collect();
            self.cx.effects.push(Effect::Tell(AgentEvent::Recorded { agent, notes }));
        }
    }
}
