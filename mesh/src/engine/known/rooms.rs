//! Rooms as they come to be known here.

use super::{Known, reach::Reach};
use crate::{
    api::batch::RoomRecord,
    name::{
        id::{LogId, MeshId, NodeId, RoomId},
        number::Number,
    },
    order::liveness::incarnation,
    room::Room,
    wire::message::Message,
};

impl Known {
    /// A permanent room's state, made if it is not there.
    pub(in crate::engine) fn ensure_room(&mut self, id: RoomId, home: LogId, reach: Reach) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let local = reach == Reach::Node;
        let seal = self.seal_for(id, reach);
        let imported = self.directory.room(id).is_some_and(|it| it.created.imported.is_some());
        let record = RoomRecord { local, seal, imported, ..new_record(self.cx.mesh, home) };
        let mine = LogId { author: self.cx.me, incarnation: 0 };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        if let Reach::Followers(owner) = reach {
            self.rosters.set_sealed(id, owner);
        }
        if local {
            self.rosters.local_rooms.insert(id);
            self.unknown.remove(&id);
        } else {
            self.ask_who_spoke_of(id);
        }
    }

    /// An ephemeral room's state, made if it is not there. `home` is this node's to write only in
    /// the moment in which it creates the room: one that was forgotten and comes back gets a new log.
    pub(in crate::engine) fn ensure_ephemeral_room(
        &mut self,
        id: RoomId,
        (home, reach): (LogId, Reach),
        created_now: bool,
    ) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let claims = self.node.ephemeral_claims.iter();
        let floor = claims.filter(|(room, _)| *room == id).map(|(_, era)| *era).max();
        let (local, seal) = (reach == Reach::Node, self.seal_for(id, reach));
        let new = new_record(self.cx.mesh, home);
        let record = RoomRecord { ephemeral: true, floor, local, seal, ..new };
        let mine = if created_now { home } else { self.next_ephemeral_log() };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        self.ephemeral.insert(id);
        match reach {
            Reach::Mesh => {}
            Reach::Node => drop(self.rosters.local_rooms.insert(id)),
            Reach::Followers(owner) => self.rosters.set_sealed(id, owner),
        }
        self.ask_who_spoke_of(id);
    }

    /// A log of this node's own that nobody has ever seen anything of.
    pub(in crate::engine) fn next_ephemeral_log(&mut self) -> LogId {
        self.incarnations += 1;
        let incarnation = incarnation(self.cx.boot, self.incarnations);
        LogId { author: self.cx.me, incarnation }
    }

    /// This node was not stopped cleanly and hears nobody: what it sequenced, somebody else may
    /// sequence by now. It opens eras of its own where numbers are needed (rule 5).
    pub(in crate::engine) fn close_own_eras(&mut self) {
        for room in self.rooms.values_mut() {
            if !room.record.local && room.numbering.sequencer() == room.mine {
                let current = room.numbering.current();
                room.edit_record().floor = Some(current);
                self.cx.active.insert(room.id);
            }
        }
    }

    /// A member of this node keeps the room alive, whoever else leaves it.
    pub(in crate::engine) fn list_if_ephemeral(&mut self, room: RoomId) {
        if !self.rosters.lists_itself(room)
            && let Some(it) = self.rosters.announced(room).cloned()
        {
            self.rosters.list(room, Some(it));
        }
    }

    // Rooms that peers spoke of too early.

    /// A peer speaks of a room that is not known here: as soon as it is, that peer is asked.
    pub(in crate::engine) fn note_unknown(&mut self, room: RoomId, from: NodeId) {
        const UNKNOWN_ROOMS_MAX: usize = 1_024;
        if self.unknown.len() >= UNKNOWN_ROOMS_MAX && !self.unknown.contains_key(&room) {
            // Rooms that will never be known here must not stay in the way of those that will.
            self.unknown.pop_first();
        }
        self.unknown.insert(room, from);
    }

    pub(in crate::engine) fn ask_who_spoke_of(&mut self, room: RoomId) {
        if let Some(peer) = self.unknown.remove(&room) {
            let heads = self.rooms.get(&room).map(|it| it.logs.heads()).unwrap_or_default();
            self.cx.send(peer, Message::Have { room, heads, answer: true });
        }
    }
    /// A room was listed that another node made. If its key is new here it has a history that is not: clients see
    /// it when that has come.
    pub(in crate::engine) fn note_unread(&mut self, id: RoomId) {
        let Some(key) = self.sealed_for(id).filter(|key| self.unread.new.contains_key(key)) else {
            return;
        };
        // Where nobody can be asked it came by gossip: it is new.
        if let Some(room) = self.rooms.get_mut(&id)
            && !room.peers(&self.cx).is_empty()
        {
            room.ask_all(&mut self.cx);
            self.unread.rooms.insert(id, key);
        }
    }

    /// Whether clients do not see a room yet, for its history would seem to be empty.
    pub(in crate::engine) fn is_unread(&self, room: RoomId) -> bool {
        self.unread.rooms.contains_key(&room)
    }
}

fn new_record(mesh: MeshId, home: LogId) -> RoomRecord {
    RoomRecord {
        mesh,
        home,
        tip: Number::ZERO,
        delivered: 0,
        last_activity_ms: None,
        spoke: None,
        floor: None,
        ephemeral: false,
        local: false,
        seal: None,
        imported: false,
    }
}
