//! Where agents are connected: each at one connection, or at several that share it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use mesh::{
    api::command::{Caller, Registration},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        number::Number,
    },
};
use tokio::sync::oneshot;

use super::{Ending, Hub, Life, Link, Me, Moment};
use crate::{limits::CONNECTIONS_PER_AGENT_MAX, seam::event::Voice, session::party::Party};

/// Where an agent is connected.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) registration: Registration,
    /// Not empty.
    pub(super) links: Vec<Arc<Link>>,
    /// The agent, as it asks.
    party: Option<Arc<Party>>,
    /// Whether further connections may be the same.
    shares: bool,
    /// The last numbers that connections had been given which have ended since.
    seen: BTreeMap<RoomId, Number>,
}

/// A connection of an agent to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its number since the node's start.
    pub id: u64,
    /// The agent.
    pub agent: AgentId,
    /// Its dialect, for people.
    pub dialect: Option<&'static str>,
    /// The address of its client, if it has one.
    pub address: Option<IpAddr>,
    /// When it began. Unix milliseconds.
    pub since_ms: u64,
}

/// A connection of an agent that may be connected here already.
#[derive(Debug)]
pub(crate) enum Beside {
    /// It is not, or does not share.
    Alone,
    /// It has as many connections as it may.
    Full,
    /// The connection is one more of this agent.
    Seated(Arc<Party>),
}

impl Place {
    pub(super) fn new(registration: Registration, link: &Arc<Link>) -> Place {
        Place {
            registration,
            links: vec![link.clone()],
            party: None,
            shares: false,
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn has(&self, link: &Link) -> bool {
        self.links.iter().any(|other| other.id == link.id)
    }

    /// How far the agent has been told of each room: by the connection that is furthest.
    pub(super) fn resume_points(&self) -> HashMap<RoomId, Number> {
        let mut points = HashMap::new();
        for (room, number) in self.links.iter().flat_map(|link| link.resume_points()) {
            let point = points.entry(room).or_insert(number);
            *point = number.max(*point);
        }
        points
    }

    /// See [`Link::came_with`].
    pub(super) fn came_with(&self, room: RoomId) -> Number {
        self.links.iter().map(|link| link.came_with(room)).max().unwrap_or(Number::ZERO)
    }

    fn note(&mut self, seen: Vec<(RoomId, Number)>) {
        for (room, number) in seen {
            let noted = self.seen.entry(room).or_insert(number);
            *noted = number.max(*noted);
        }
    }
}

impl Hub {
    /// The dialect of an agent that is connected here, for people.
    pub(crate) fn speaks(&self, agent: &AgentId) -> Option<&'static str> {
        let state = self.read();
        let place = state.agents.get(agent)?;
        place.links.iter().find_map(|link| link.voice()?.dialect())
    }

    /// The first connections of agents that are connected here, by the order in which they came: of this key, or of all.
    pub(crate) fn connections(&self, key: Option<KeyPrint>, limit: usize) -> Vec<Connected> {
        let state = self.read();
        let links = state
            .registered()
            .filter(|(me, link)| key.is_none_or(|key| me.key == key) && link.life() == Life::Open);
        let connected = links.map(|(me, link)| Connected {
            id: link.id.0,
            agent: me.agent.clone(),
            dialect: link.voice().and_then(|voice| voice.dialect()),
            address: link.client,
            since_ms: link.since_ms,
        });
        let mut all: Vec<Connected> = connected.collect();
        all.sort_unstable_by_key(|link| link.id);
        all.truncate(limit);
        all
    }

    /// A connection is one more of an agent that is connected here and shares, if it is.
    pub(crate) fn sits_beside(&self, link: &Arc<Link>, me: Me, voice: Arc<dyn Voice>) -> Beside {
        let mut state = self.write();
        let Some(place) = state.agents.get_mut(&me.agent) else { return Beside::Alone };
        let shared = place.party.clone().filter(|party| place.shares && party.key() == me.key);
        let Some(party) = shared else { return Beside::Alone };
        // Connections that are about to end are of a key that is valid no more, or were replaced: the mesh says which.
        if !place.links.iter().any(|link| link.life() == Life::Open) {
            return Beside::Alone;
        }
        if place.links.len() >= CONNECTIONS_PER_AGENT_MAX {
            return Beside::Full;
        }
        link.register(me, voice);
        place.links.push(link.clone());
        Beside::Seated(party)
    }

    /// The agent of a connection is known. `shares`: further connections may be the same.
    pub(crate) fn knows(&self, party: &Arc<Party>, shares: bool) {
        let Ok(caller) = party.caller() else { return };
        let mut state = self.write();
        let place = state.agents.get_mut(&caller.agent);
        if let Some(place) = place.filter(|place| place.registration == caller.registration) {
            place.party = Some(party.clone());
            place.shares = shares;
        }
    }

    /// An agent that is connected here with this key, as it asks.
    pub(crate) fn connected(&self, agent: &AgentId, key: KeyPrint) -> Option<Arc<Party>> {
        let state = self.read();
        let place = state.agents.get(agent)?;
        let party = place.party.as_ref().filter(|party| party.key() == key)?;
        // As in `sits_beside`.
        place.links.iter().any(|link| link.life() == Life::Open).then(|| party.clone())
    }

    /// A connection has ended. Returns the last number that its agent was given in each room, unless that has other
    /// connections here.
    pub(crate) fn disconnect(&self, link: &Link) -> Option<Vec<(RoomId, Number)>> {
        link.end(Ending::Done);
        if let Some(me) = link.me() {
            self.given.ended(&me.agent, link.id, Moment::now());
        }
        let mut state = self.write();
        self.note_live(&state, link);
        state.links.remove(&link.id);
        state.unseat_everywhere(link);
        let agent = link.me().map(|me| me.agent.clone());
        let place = agent.as_ref().and_then(|agent| state.agents.get_mut(agent));
        let Some(place) = place.filter(|place| place.has(link)) else { return Some(link.seen()) };
        place.links.retain(|other| other.id != link.id);
        place.note(link.seen());
        if !place.links.is_empty() {
            return None;
        }
        let place = agent.and_then(|agent| state.agents.remove(&agent));
        let seen = place.map(|place| place.seen).unwrap_or_default();
        let rooms: BTreeSet<RoomId> =
            link.rooms().into_iter().chain(seen.keys().copied()).collect();
        self.leaves(link, rooms.into_iter().collect());
        Some(seen.into_iter().collect())
    }

    /// An agent has left a room: all its connections have.
    pub(super) fn left(&self, link: &Link, room: RoomId) {
        let state = self.read();
        let place = link.me().and_then(|me| state.agents.get(&me.agent));
        let links = place.map(|place| place.links.clone()).unwrap_or_default();
        drop(state);
        self.unseat(link, room);
        links.iter().for_each(|link| self.unseat(link, room));
    }

    /// An agent stays without a connection. See [`super::lingering::Lingering::begin`].
    pub(crate) fn lingers(&self, caller: &Caller) -> oneshot::Receiver<()> {
        self.lingering().begin(caller)
    }

    /// It does, and has just acted: others have lingered longer. `false`: it does not.
    pub(crate) fn lingers_on(&self, caller: &Caller) -> bool {
        self.lingering().goes_on(caller)
    }

    /// Its time is over.
    pub(crate) fn lingers_no_longer(&self, caller: &Caller) {
        self.lingering().is_over(caller);
    }
}
