//! Rooms as they come to be known here.

use std::collections::BTreeSet;

use super::Known;
use crate::{
    api::{batch::RoomRecord, command::Refused},
    directory::keys::Directories,
    engine::reach::Reach,
    limits::UNREAD_ROOMS_MAX,
    name::{
        group::{Group, Shared},
        id::{AgentId, KeyPrint, LogId, NodeId, RoomId},
    },
    order::liveness::incarnation,
    presence::rosters::{Admitted, Seating},
    room::Room,
    wire::{
        message::Message,
        roster::AgentRecord,
        seal::{Seal, directory},
    },
};

/// The home log of an ephemeral room. It is this node's to write only in the moment in which it makes the
/// room: one that was forgotten and comes back gets a new log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// This node makes the room now.
    Made(LogId),
    /// A node lists the room.
    Heard(LogId),
}

impl Home {
    fn log(self) -> LogId {
        match self {
            Home::Made(log) | Home::Heard(log) => log,
        }
    }
}

impl Known {
    /// A permanent room's state, made if it is not there.
    pub(crate) fn ensure_room(&mut self, id: RoomId, home: LogId, reach: Reach) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let local = reach == Reach::Node;
        let seal = self.seal_for(id, reach);
        let imported =
            self.directory.room(id).is_some_and(|created| created.created.imported.is_some());
        let record = RoomRecord { local, seal, imported, ..RoomRecord::new(self.cx.mesh, home) };
        let mine = LogId { author: self.cx.me, incarnation: 0 };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        if let Reach::Followers(group) = reach {
            self.note_sealed(id, group);
        }
        if local {
            self.rosters.local_rooms.insert(id);
            self.unknown.remove(&id);
        } else {
            self.ask_who_spoke_of(id);
        }
    }

    /// An ephemeral room's state, made if it is not there.
    pub(crate) fn ensure_ephemeral_room(&mut self, id: RoomId, home: Home, reach: Reach) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let claims = self.node.ephemeral_claims.iter();
        let floor = claims.filter(|(room, _)| *room == id).map(|(_, era)| *era).max();
        let (local, seal) = (reach == Reach::Node, self.seal_for(id, reach));
        let new = RoomRecord::new(self.cx.mesh, home.log());
        let record = RoomRecord { ephemeral: true, floor, local, seal, ..new };
        let mine = match home {
            Home::Made(log) => log,
            Home::Heard(_) => self.next_ephemeral_log(),
        };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        self.ephemeral.insert(id);
        match reach {
            Reach::Mesh => {}
            Reach::Node => drop(self.rosters.local_rooms.insert(id)),
            Reach::Followers(group) => self.note_sealed(id, group),
        }
        self.ask_who_spoke_of(id);
    }

    /// A room is private to the followers of this group: to agents of its keys, or the two of a direct room that is listed.
    pub(crate) fn note_sealed(&mut self, id: RoomId, group: Group) {
        let admitted = match group {
            Group::Key(key) => Admitted::Key(key),
            Group::Pair(_) => {
                let direct = self.directory.direct.get(id);
                direct.map_or(Admitted::Nobody, |room| Admitted::Sides(room.sides.clone()))
            }
            Group::Shared(shared) => Admitted::Keys(self.shared_keys(shared)),
        };
        let keys = match &admitted {
            Admitted::Nobody | Admitted::Key(_) => None,
            Admitted::Keys(keys) => Some(keys.clone()),
            Admitted::Sides(sides) => Some(sides.iter().map(|(_, key)| key).collect()),
        };
        if let Some(keys) = keys {
            self.directory.note_keys_of(id, keys);
        }
        self.rosters.set_sealed(id, group, admitted);
    }

    /// Agents here that may not have a seat in a private room any more have none.
    pub(crate) fn unseat_others(&mut self, room: RoomId) {
        let node = self.cx.me;
        let out = |(agent, record): &(&AgentId, &AgentRecord)| {
            let seat = Seating { agent, node, key: record.key };
            record.rooms.contains_key(&room) && !self.rosters.may_sit(room, &seat)
        };
        let agents = self.rosters.own_agents().filter(out);
        let agents: Vec<_> = agents.map(|(id, record)| (id.clone(), record.clone())).collect();
        for (agent, mut record) in agents {
            record.rooms.remove(&room);
            self.rosters.put(self.cx.now, agent, record);
        }
    }

    /// The keys that have a shared room now.
    pub(crate) fn shared_keys(&self, shared: Shared) -> BTreeSet<KeyPrint> {
        self.directory.shared.keys_of(shared, &*self.directory.keys())
    }

    /// Whether a key is one of a group's.
    pub(crate) fn is_in(&self, group: Group, key: KeyPrint) -> bool {
        group.has(key)
            || matches!(group, Group::Shared(shared) if self.shared_keys(shared).contains(&key))
    }

    /// Whether a key is one of a group's, or was: it owns records there.
    pub(crate) fn was_in(&self, group: Group, key: KeyPrint) -> bool {
        let key = self.directory.current(key);
        let for_good = group.keys().any(|own| self.directory.current(own) == key);
        for_good
            || matches!(group, Group::Shared(shared)
                if self.directory.shared.was_given(shared, key, &*self.directory.keys()))
    }

    /// The keys of a group, as they are called now.
    pub(crate) fn keys_of(&self, group: Group) -> BTreeSet<KeyPrint> {
        if let Group::Shared(shared) = group {
            return self.shared_keys(shared);
        }
        group.keys().map(|key| self.directory.current(key)).collect()
    }

    /// A log of this node's own that nobody has ever seen anything of.
    pub(crate) fn next_ephemeral_log(&mut self) -> LogId {
        self.incarnations += 1;
        let incarnation = incarnation(self.cx.boot, self.incarnations);
        LogId { author: self.cx.me, incarnation }
    }

    /// This node was not stopped cleanly and hears nobody: its eras may have another sequencer by now.
    /// It opens eras of its own where numbers are needed (rule 5).
    pub(crate) fn close_own_eras(&mut self) {
        for room in self.rooms.values_mut() {
            if !room.replica.record.local && room.order.numbering.sequencer() == room.replica.mine {
                let current = room.order.numbering.current();
                room.replica.edit_record().floor = Some(current);
                self.cx.to_advance.insert(room.replica.id);
            }
        }
    }

    /// A member of this node keeps the room alive, whether others leave it or not.
    pub(crate) fn list_if_ephemeral(&mut self, room: RoomId) {
        if !self.rosters.lists_itself(room)
            && let Some(announcement) = self.rosters.announced(room).cloned()
        {
            self.rosters.list(room, Some(announcement));
        }
    }

    // Rooms that peers spoke of too early.

    /// A peer speaks of a room that is not known here: as soon as it is, that peer is asked.
    pub(crate) fn note_unknown(&mut self, room: RoomId, from: NodeId) {
        const UNKNOWN_ROOMS_MAX: usize = 1_024;
        if self.cx.is_relay() {
            return;
        }
        if self.unknown.len() >= UNKNOWN_ROOMS_MAX && !self.unknown.contains_key(&room) {
            // Rooms that will never be known here must not stay in the way of those that will.
            self.unknown.pop_first();
        }
        self.unknown.insert(room, from);
    }

    pub(crate) fn ask_who_spoke_of(&mut self, room: RoomId) {
        if let Some(peer) = self.unknown.remove(&room) {
            let heads =
                self.rooms.get(&room).map(|room| room.replica.logs.heads()).unwrap_or_default();
            self.cx.send(peer, Message::Have { room, heads, answer: true });
        }
    }
    /// A room was listed that another node made. If its key is new here it has a history that is not: clients see
    /// it when that has come.
    pub(crate) fn note_unread(&mut self, id: RoomId) {
        let new = |group: &Group| self.unread.new.contains_key(group);
        let Some(group) = self.sealed_for(id).filter(new) else { return };
        // Where nobody can be asked it came by gossip: it is new.
        if self.unread.rooms.len() < UNREAD_ROOMS_MAX
            && let Some(room) = self.rooms.get_mut(&id)
            && !room.replica.peers(&self.cx).is_empty()
        {
            room.replica.ask_all(&mut self.cx);
            self.unread.rooms.insert(id, group);
        }
    }

    /// Whether clients do not see a room yet, for its history would seem to be empty.
    pub(crate) fn is_unread(&self, room: RoomId) -> bool {
        self.unread.rooms.contains_key(&room)
    }

    // Reach.

    /// Whether the private rooms of a key span the mesh: it was minted for all of it.
    pub(crate) fn spans(&self, key: KeyPrint) -> bool {
        self.directory.keys().is_minted(key, Directories::Mesh)
    }

    /// Where a room that an agent of this key makes is listed, and so who has it.
    pub(crate) fn directory_for(&self, key: KeyPrint, public: bool) -> Result<RoomId, Refused> {
        if public {
            return Ok(RoomId::directory(self.cx.mesh));
        }
        match self.cx.followers.directory(Group::Key(key)) {
            Some(room) => Ok(room),
            None if self.spans(key) && !self.own_keys.contains(&key) => {
                let full = "this node follows the private rooms of as many keys as it may: make the \
                            room public, or at another node";
                Err(Refused::Full(full.to_owned()))
            }
            None => Ok(self.cx.private_directory),
        }
    }

    /// The nodes that have the rooms of a directory.
    pub(crate) fn reach_of(&self, directory: RoomId) -> Reach {
        if directory == self.cx.private_directory {
            return Reach::Node;
        }
        let seal = self.rooms.get(&directory).and_then(|room| room.replica.record.seal.as_ref());
        seal.map_or(Reach::Mesh, |seal| Reach::Followers(seal.group))
    }

    /// The seal of a room that is to be made.
    pub(crate) fn seal_for(&self, id: RoomId, reach: Reach) -> Option<Seal> {
        let Reach::Followers(group) = reach else { return None };
        let opener = self.cx.followers.opener(group)?;
        Some(if id == directory(self.cx.mesh, opener) {
            Seal::of_directory(self.cx.mesh, group, opener)
        } else {
            Seal::of_room(group, opener, id)
        })
    }

    /// The group whose room it is, if only its followers have it.
    pub(crate) fn sealed_for(&self, room: RoomId) -> Option<Group> {
        Some(self.rooms.get(&room)?.replica.record.seal.as_ref()?.group)
    }

    /// Whether clients may see the rooms of this group: not once its key is revoked, or both keys of a pair. Their
    /// entries stay.
    fn is_served(&self, group: Group) -> bool {
        let keys = self.directory.keys();
        match group {
            Group::Key(key) => {
                let key = keys.current(key);
                self.own_keys.contains(&key) || keys.tier(key).is_some()
            }
            Group::Pair(_) => group.keys().any(|key| !keys.is_revoked(keys.current(key))),
            Group::Shared(shared) => !self.shared_keys(shared).is_empty(),
        }
    }

    /// Whether clients may not see a room though it is here.
    pub(crate) fn is_withdrawn(&self, room: RoomId) -> bool {
        self.sealed_for(room).is_some_and(|group| !self.is_served(group))
    }

    /// The nodes that have a room, as far as is known here; this one among them.
    pub(crate) fn nodes_with(&self, room: RoomId) -> BTreeSet<NodeId> {
        let mut nodes = BTreeSet::from([self.cx.me]);
        let Some(record) = self.rooms.get(&room).map(|room| &room.replica.record) else {
            return nodes;
        };
        if record.local {
            return nodes;
        }
        match self.cx.followers.have(record.seal.as_ref()) {
            Some(followers) => nodes.extend(followers),
            None => nodes.extend(self.cx.lanes.keys()),
        }
        nodes.retain(|node| !self.cx.parted.has(*node) && !self.cx.relays.contains(node));
        nodes
    }

    pub(crate) fn is_memory(&self, room: RoomId) -> bool {
        self.rooms.get(&room).is_some_and(|room| room.replica.record.ephemeral)
    }
}
