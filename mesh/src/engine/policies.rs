//! Policies of this node ([`crate::api::policy`]): which messages of direct rooms it does not hand over.
//!
//! They are judged by what is known now, when a message comes and whenever it is read again. An agent that writes to another
//! one takes its messages from then on: so a room's record says which of its two agents have written, at a node that
//! was shown their key.

use super::known::Known;
use crate::{
    api::{
        event::Delivered,
        policy::{Inbound, TakesNone, Withheld, withheld},
    },
    directory::direct::DirectRoom,
    name::{
        group::{Side, direct_room},
        id::{AgentId, KeyPrint, NodeId, RoomId},
    },
};

/// An agent, and its key.
type Named<'a> = (&'a AgentId, KeyPrint);

impl Known {
    /// Of a direct room, for each of its two agents: why what that one says is not handed over to the other one.
    pub(super) fn withheld_of(&self, direct: &DirectRoom) -> [Option<Withheld>; 2] {
        let [one, other] = direct.sides.each();
        [self.withholds(direct, one, other), self.withholds(direct, other, one)]
    }

    /// Why a message of another node is not handed over to agents of this one. Of its own agents' messages to each other that
    /// is said before they are written ([`Known::takes_none`]), and no inbox takes them ([`Known::is_given`]).
    pub(super) fn withheld(&self, room: RoomId, entry: &Delivered) -> Option<Withheld> {
        let direct = self.directory.direct.get(room)?;
        if entry.log.author == self.cx.me {
            return None;
        }
        let author = &entry.said.as_ref()?.agent;
        withheld(&direct.sides, &self.withheld_of(direct), author)
    }

    /// Whether an agent of a direct room is handed over what the other one says.
    pub(super) fn is_given(&self, direct: &DirectRoom, to: &AgentId) -> bool {
        withheld(&direct.sides, &self.withheld_of(direct), direct.sides.peer_of(to)).is_none()
    }

    /// An agent that is attached here takes no messages of the other one of the room.
    pub(super) fn takes_none(&self, room: RoomId, from: &AgentId) -> Option<TakesNone> {
        let direct = self.directory.direct.get(room)?;
        let agent = direct.sides.peer_of(from);
        let is_here = self.rosters.own(agent).is_some();
        let refused = is_here && !self.is_given(direct, agent);
        refused.then(|| TakesNone { agent: agent.clone(), from: from.clone() })
    }

    /// The same, before the two have a room.
    pub(super) fn takes_none_of(&self, from: &Side, to: &Side) -> Option<TakesNone> {
        let id = direct_room(self.cx.mesh, from, to, None);
        if self.directory.direct.get(id).is_some() {
            return self.takes_none(id, &from.agent);
        }
        let [from, to] =
            [from, to].map(|side| (&side.agent, self.directory.current(side.halves.print())));
        let is_teller = self.config.policies.teller.as_ref() == Some(from.0);
        let is_here = self.rosters.own(to.0).is_some();
        let refuses = is_here && !is_teller && !self.takes_strangers(from, to);
        refuses.then(|| TakesNone { agent: to.0.clone(), from: from.0.clone() })
    }

    fn withholds(&self, direct: &DirectRoom, from: Named<'_>, to: Named<'_>) -> Option<Withheld> {
        if self.config.policies.teller.as_ref().is_some_and(|own| own == from.0 || own == to.0) {
            return None;
        }
        if !self.config.policies.agent_to_agent.allows(from.0, to.0) {
            return Some(Withheld::AgentToAgent);
        }
        let [now_from, now_to] =
            [from, to].map(|(agent, key)| (agent, self.directory.current(key)));
        let takes = self.takes_strangers(now_from, now_to)
            || self.config.policies.inbound == Inbound::Known
                && (self.has_begun(direct, to) || self.has_begun_direct(from, to));
        (!takes).then_some(Withheld::Inbound)
    }

    /// Whether an agent takes messages of one to which it has not written.
    fn takes_strangers(&self, from: Named<'_>, to: Named<'_>) -> bool {
        let same = from.1 == to.1;
        match self.config.policies.inbound {
            Inbound::Mesh => true,
            Inbound::Known => same || self.share_a_room(from.1, to.1),
            Inbound::Key => same,
        }
    }

    /// Whether two keys have a private room together.
    fn share_a_room(&self, one: KeyPrint, other: KeyPrint) -> bool {
        let shared = &self.directory.shared;
        let mut groups = shared.groups_of(one);
        groups.any(|group| {
            let keys = self.shared_keys(group);
            keys.contains(&one) && keys.contains(&other)
        })
    }

    /// Whether an agent has written in a direct room, or has opened it.
    fn has_begun(&self, direct: &DirectRoom, agent: Named<'_>) -> bool {
        let place = direct.sides.place_of(agent.0, |key| key == agent.1);
        let record = self.rooms.get(&direct.id).map(|room| &room.replica.record);
        let has_written = place.zip(record).is_some_and(|(place, record)| record.began[place]);
        let mut openers = direct.openers(agent.0);
        has_written || openers.any(|node| self.is_proven(node, agent.1, agent.0))
    }

    /// The same of the direct room of the two: the room of a task is the requester's.
    fn has_begun_direct(&self, from: Named<'_>, to: Named<'_>) -> bool {
        let side = |(agent, key): Named<'_>| {
            Some(Side { agent: agent.clone(), halves: self.directory.halves(key)? })
        };
        let Some((from, of_to)) = side(from).zip(side(to)) else { return false };
        let id = direct_room(self.cx.mesh, &from, &of_to, None);
        self.directory.direct.get(id).is_some_and(|direct| self.has_begun(direct, to))
    }

    fn is_proven(&self, node: NodeId, key: KeyPrint, agent: &AgentId) -> bool {
        node == self.cx.me || self.directory.proofs().of_agent(node, key, agent).verified
    }

    /// A message was delivered: its author takes messages of the other agent from now on.
    pub(super) fn note_begun(&mut self, room: RoomId, entry: &Delivered) {
        let Some(direct) = self.directory.direct.get(room) else { return };
        let said = entry.said.as_ref().and_then(|said| Some((&said.agent, said.key?)));
        let Some((agent, key)) = said else { return };
        let current = |key| self.directory.current(key);
        let place = direct.sides.place_of(agent, |side| current(side) == current(key));
        let Some(place) = place.filter(|_| self.is_proven(entry.log.author, key, agent)) else {
            return;
        };
        let Some(state) = self.rooms.get_mut(&room) else { return };
        if !state.replica.record.began[place] {
            state.replica.edit_record().began[place] = true;
        }
        if self.config.policies.inbound == Inbound::Known {
            self.tell_of_room(room, false);
        }
    }
}
