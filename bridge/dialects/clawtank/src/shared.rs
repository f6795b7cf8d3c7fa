//! All that the connections of a node share.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bridge::{
    read::{Desk, Visitor},
    seam::{call::ListAgents, event::Event, refusal::Refusal},
};
use mesh::{
    api::command::AgentView,
    name::id::{AgentId, MessageId, RoomId},
};
use tokio::sync::mpsc;

use crate::{
    git,
    grace::Grace,
    limits::{
        ALIASES_MAX, BUCKETS_MAX, CENSUS_FOR, CENSUSES_MAX, REPEATERS_MAX, REPEATS_MAX,
        REPEATS_WITHIN,
    },
    newest::{Newest, lock},
    problem::Problem,
    settings::Settings,
    spectators::Spectators,
};

/// See the module.
pub(crate) struct Shared {
    pub(crate) desk: Desk,
    pub(crate) settings: Settings,
    pub(crate) grace: Arc<Grace>,
    pub(crate) git: git::Watch,
    rates: Mutex<Newest<(AgentId, &'static str), Instant>>,
    repeats: Mutex<Newest<AgentId, Frames>>,
    aliases: Mutex<Newest<(RoomId, MessageId), Place>>,
    censuses: Mutex<Newest<RoomId, Arc<Counted>>>,
    /// Connections of the same agent, by their ids. Each has a place among those of the bridge.
    connections: Mutex<HashMap<AgentId, Vec<Connected>>>,
    pub(crate) spectators: Arc<Spectators>,
}

/// The way to a connection, for events that the mesh does not tell it.
pub(crate) type News = mpsc::Sender<Event>;

/// A connection, and the way of events to it.
type Connected = ([u8; 16], News);

/// Frames of an agent, by their ids.
type Frames = Newest<String, (Instant, Done)>;

/// The members of a room at some moment.
type Counted = tokio::sync::Mutex<Option<(Instant, Arc<Vec<AgentView>>)>>;

/// What a frame of a client has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is worked on.
    Nothing,
    /// It said this.
    Message(RoomId, MessageId),
    /// It decided about this approval.
    Decided(RoomId, MessageId),
    /// It made or changed this task, and is confirmed in this way.
    Task(RoomId, MessageId, Confirmed),
}

/// How a change of a task is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    Created,
    Claimed,
    Status,
    Completed,
}

/// Where a message is that a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) room: RoomId,
    pub(crate) message: MessageId,
}

/// A rate: so many in so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Its name, for people and as a part of the bucket's.
    pub(crate) of: &'static str,
    pub(crate) count: u32,
    pub(crate) within: Duration,
}

impl Rate {
    pub(crate) const fn per_minute(of: &'static str, count: u32) -> Rate {
        Rate { of, count, within: Duration::from_secs(60) }
    }
}

impl Shared {
    pub(crate) fn new(desk: Desk, settings: Settings, grace: Duration) -> Shared {
        Shared {
            desk,
            settings,
            grace: Arc::new(Grace::new(grace)),
            git: git::Watch::new(),
            rates: Mutex::new(Newest::new(BUCKETS_MAX)),
            repeats: Mutex::new(Newest::new(REPEATERS_MAX)),
            aliases: Mutex::new(Newest::new(ALIASES_MAX)),
            censuses: Mutex::new(Newest::new(CENSUSES_MAX)),
            connections: Mutex::default(),
            spectators: Spectators::new(),
        }
    }

    /// An agent has one more connection.
    pub(crate) fn connects(&self, agent: &AgentId, connection: [u8; 16], news: News) {
        self.grace.comes(agent);
        lock(&self.connections).entry(agent.clone()).or_default().push((connection, news));
    }

    /// A connection of an agent has ended.
    pub(crate) fn disconnects(&self, agent: &AgentId, connection: [u8; 16]) {
        let mut connections = lock(&self.connections);
        let Some(own) = connections.get_mut(agent) else { return };
        own.retain(|(id, _)| *id != connection);
        if own.is_empty() {
            connections.remove(agent);
            self.grace.goes(agent, &self.desk);
        }
    }

    /// Other connections of the agent of this one: the mesh tells nobody of what he has said himself.
    pub(crate) fn others(&self, agent: &AgentId, connection: [u8; 16]) -> Vec<News> {
        let connections = lock(&self.connections);
        let own = connections.get(agent).map_or(&[][..], Vec::as_slice);
        own.iter().filter(|(id, _)| *id != connection).map(|(_, news)| news.clone()).collect()
    }

    /// Takes one of those that somebody has.
    pub(crate) fn take(&self, of: &AgentId, rate: Rate) -> Result<(), Problem> {
        let now = Instant::now();
        let mut rates = lock(&self.rates);
        // From then on all are free.
        let full_at = rates.at(&(of.clone(), rate.of), || now);
        taken(full_at, rate, now).map_err(|wait| {
            let Rate { of, count, within } = rate;
            let time = if within.as_secs() == 60 { "minute" } else { "hour" };
            Problem::too_fast(format!("over {count} {of} a {time}"), wait)
        })
    }

    /// The same of all in a room.
    pub(crate) fn take_in(&self, room: RoomId, rate: Rate) -> Result<(), Problem> {
        self.take(&room.to_uuid().as_str().into(), rate)
    }

    /// What a frame of this id has come to, if the agent has sent it before. Else it is noted.
    pub(crate) fn begin(&self, agent: &AgentId, id: &str) -> Option<Done> {
        let now = Instant::now();
        let mut repeats = lock(&self.repeats);
        let own = repeats.at(agent, || Newest::new(REPEATS_MAX));
        let known = own.get(id).filter(|(at, _)| now.duration_since(*at) < REPEATS_WITHIN);
        if let Some((_, done)) = known {
            return Some(*done);
        }
        own.put(&id.to_owned(), (now, Done::Nothing));
        None
    }

    /// It has come to this.
    pub(crate) fn done(&self, agent: &AgentId, id: &str, done: Done) {
        let mut repeats = lock(&self.repeats);
        let own = repeats.at(agent, || Newest::new(REPEATS_MAX));
        if let Some((_, was)) = own.get_mut(id) {
            *was = done;
        }
    }

    /// If it has come to nothing, it may be sent again.
    pub(crate) fn forget(&self, agent: &AgentId, id: &str) {
        let mut repeats = lock(&self.repeats);
        let own = repeats.at(agent, || Newest::new(REPEATS_MAX));
        if own.get(id).is_none_or(|(_, done)| *done != Done::Nothing) {
            return;
        }
        own.remove(id);
    }

    /// In this room clients call a message, or a task, so, that is there. `false`: they call something else so.
    pub(crate) fn alias(&self, room: RoomId, alias: MessageId, place: Place) -> bool {
        let mut aliases = lock(&self.aliases);
        match aliases.get(&(room, alias)) {
            Some(known) => *known == place,
            None => {
                aliases.put(&(room, alias), place);
                true
            }
        }
    }

    /// The thing that clients call so.
    pub(crate) fn aliased(&self, room: RoomId, alias: MessageId) -> Option<Place> {
        lock(&self.aliases).get(&(room, alias)).copied()
    }

    /// The members of a room, as they were a moment ago at the most. One look for all that ask at once.
    pub(crate) async fn census(
        &self,
        visitor: &Visitor,
        room: RoomId,
    ) -> Result<Arc<Vec<AgentView>>, Refusal> {
        let counted = lock(&self.censuses).at(&room, Arc::default).clone();
        let mut counted = counted.lock().await;
        if let Some((at, members)) = &*counted
            && at.elapsed() < CENSUS_FOR
        {
            return Ok(members.clone());
        }
        let members = Arc::new(self.desk.ask(visitor, ListAgents { room: Some(room) }).await?);
        *counted = Some((Instant::now(), members.clone()));
        Ok(members)
    }
}

fn taken(full_at: &mut Instant, rate: Rate, now: Instant) -> Result<(), Duration> {
    let each = rate.within / rate.count.max(1);
    let next = (*full_at).max(now) + each;
    match (next - now).checked_sub(each * rate.count).filter(|wait| !wait.is_zero()) {
        Some(wait) => Err(wait),
        None => {
            *full_at = next;
            Ok(())
        }
    }
}

/// How many of the members are people, and how many agents.
pub(crate) fn counts(members: &[AgentView]) -> (usize, usize) {
    let names: HashSet<&AgentId> = members.iter().map(|member| &member.agent).collect();
    let people = names.iter().filter(|agent| crate::names::user_of(agent).is_some()).count();
    (people, names.len() - people)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_beyond_a_rate_waits() {
        let (rate, now) = (Rate::per_minute("x", 60), Instant::now());
        let mut full_at = now;
        for _ in 0..60 {
            assert_eq!(taken(&mut full_at, rate, now), Ok(()));
        }
        assert_eq!(taken(&mut full_at, rate, now), Err(Duration::from_secs(1)));
        assert_eq!(taken(&mut full_at, rate, now + Duration::from_secs(1)), Ok(()));
    }
}
