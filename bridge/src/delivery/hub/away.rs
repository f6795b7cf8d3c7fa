//! Agents that were attached here until a moment ago, and the notices that they get if they come back.
//!
//! Messages are read from the delivery log then; kept are only notices, which are nowhere else. An
//! agent that comes back at another node gets messages, which have numbers, and no notices.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use mesh::{
    limits::RECONNECT_WITHIN,
    name::id::{AgentId, KeyPrint, RoomId},
};

use crate::{
    delivery::{link::Me, notice::Notice},
    limits,
    seam::{answer::RoomFacts, event::Voice},
};

#[derive(Debug, Default)]
pub(super) struct Away {
    agents: HashMap<AgentId, Absent>,
    /// Leavers by time, the oldest first.
    order: VecDeque<(Instant, AgentId)>,
    /// Of all notices as frames, shared ones counted each time.
    bytes: usize,
}

#[derive(Debug)]
struct Absent {
    key: KeyPrint,
    since: Instant,
    /// As it spoke last. It may come back in another dialect: notices are only weighed in this one.
    voice: Arc<dyn Voice>,
    /// The rooms it was in. `None`: it is back, and has yet to be told.
    rooms: Option<HashSet<RoomId>>,
    notices: VecDeque<Kept>,
}

/// A notice and the bytes that it is counted with.
#[derive(Debug)]
struct Kept {
    notice: Notice,
    bytes: usize,
}

/// An agent whose connection is gone.
#[derive(Debug)]
pub(super) struct Leaver<'a> {
    pub(super) me: &'a Me,
    pub(super) voice: Arc<dyn Voice>,
    pub(super) rooms: Vec<RoomId>,
    /// Notices that had not been written.
    pub(super) unwritten: Vec<Notice>,
}

impl Away {
    /// An agent's connection is gone.
    pub(super) fn left(&mut self, leaver: Leaver<'_>) {
        self.left_at(leaver, Instant::now());
    }

    fn left_at(&mut self, leaver: Leaver<'_>, now: Instant) {
        let Leaver { me, voice, rooms, unwritten } = leaver;
        // Gone again before it was told.
        let mut missed = self.take_at(&me.agent, now);
        missed.extend(unwritten);
        if self.agents.len() >= limits::AWAY_AGENTS_MAX {
            self.forget_oldest();
        }
        let rooms = Some(rooms.into_iter().collect());
        let absent = Absent { key: me.key, since: now, voice, rooms, notices: VecDeque::new() };
        self.agents.insert(me.agent.clone(), absent);
        self.order.push_back((now, me.agent.clone()));
        for notice in missed {
            self.push(&me.agent, notice);
        }
    }

    /// The agent has another connection. It is to be told of missed events (`resumes`), or nothing.
    pub(super) fn is_back(&mut self, me: &Me, resumes: bool) {
        match self.agents.get_mut(&me.agent) {
            Some(absent) if resumes && absent.key == me.key => absent.rooms = None,
            Some(_) => self.forget(&me.agent),
            None => {}
        }
    }

    /// Notices that the agent missed.
    pub(super) fn take(&mut self, agent: &AgentId) -> Vec<Notice> {
        self.take_at(agent, Instant::now())
    }

    fn take_at(&mut self, agent: &AgentId, now: Instant) -> Vec<Notice> {
        self.expire(now);
        let notices = self.agents.get_mut(agent).map(|absent| std::mem::take(&mut absent.notices));
        let notices: Vec<Kept> = notices.into_iter().flatten().collect();
        self.bytes -= notices.iter().map(|kept| kept.bytes).sum::<usize>();
        self.forget(agent);
        notices.into_iter().map(|kept| kept.notice).collect()
    }

    /// Whether any agent that is away was in the room.
    pub(super) fn has_members(&self, room: RoomId) -> bool {
        self.agents.values().any(|absent| absent.was_in(room))
    }

    /// Whether a mention is to be kept for an agent: it is away, may read the room, and was not in it
    /// (then it reads the message, and that it is mentioned).
    pub(super) fn wants_mention(&self, agent: &AgentId, room: RoomId, facts: &RoomFacts) -> bool {
        self.agents.get(agent).is_some_and(|absent| {
            absent.rooms.is_some()
                && !absent.was_in(room)
                && facts.readable_by(absent.key, Some(agent))
        })
    }

    /// Keeps a notice for all agents that were in its room.
    pub(super) fn tell_members(&mut self, notice: &Notice) {
        let members = self.agents.iter().filter(|(_, absent)| absent.was_in(notice.room));
        let members: Vec<AgentId> = members.map(|(agent, _)| agent.clone()).collect();
        for agent in members {
            self.push(&agent, notice.clone());
        }
    }

    /// Agents that may not read a room any more are not told of it: `told` that it is gone, instead.
    pub(super) fn shut_out(&mut self, room: RoomId, facts: &RoomFacts, told: &Notice) {
        let mut out = Vec::new();
        for (agent, absent) in &mut self.agents {
            let Some(rooms) = &mut absent.rooms else { continue };
            if facts.readable_by(absent.key, Some(agent)) || !rooms.remove(&room) {
                continue;
            }
            let of_room = |kept: &&Kept| kept.notice.room == room;
            let gone = absent.notices.iter().filter(of_room).map(|kept| kept.bytes);
            self.bytes -= gone.sum::<usize>();
            absent.notices.retain(|kept| kept.notice.room != room);
            out.push(agent.clone());
        }
        for agent in out {
            self.push(&agent, told.clone());
        }
    }

    pub(super) fn push(&mut self, agent: &AgentId, notice: Notice) {
        let Some(absent) = self.agents.get_mut(agent) else { return };
        let bytes = notice.told.frames(&absent.voice).bytes();
        self.bytes += bytes;
        absent.notices.push_back(Kept { notice, bytes });
        if absent.notices.len() > limits::MISSED_MAX {
            let oldest = absent.notices.pop_front();
            self.bytes -= oldest.map_or(0, |kept| kept.bytes);
        }
        while self.bytes > limits::AWAY_BYTES_MAX && !self.agents.is_empty() {
            self.forget_oldest();
        }
    }

    /// Nobody comes back that late.
    fn expire(&mut self, now: Instant) {
        while let Some((since, _)) = self.order.front()
            && now.saturating_duration_since(*since) > RECONNECT_WITHIN
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((since, agent)) = self.order.pop_front()
            && self.agents.get(&agent).is_some_and(|absent| absent.since == since)
        {
            self.drop_notices(&agent);
        }
    }

    fn forget(&mut self, agent: &AgentId) {
        if self.drop_notices(agent) {
            self.order.retain(|(_, other)| other != agent);
        }
    }

    fn drop_notices(&mut self, agent: &AgentId) -> bool {
        let Some(absent) = self.agents.remove(agent) else { return false };
        self.bytes -= absent.notices.iter().map(|kept| kept.bytes).sum::<usize>();
        true
    }
}

impl Absent {
    fn was_in(&self, room: RoomId) -> bool {
        self.rooms.as_ref().is_some_and(|rooms| rooms.contains(&room))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mesh::name::number::Number;

    use super::*;
    use crate::{
        seam::event::Told,
        testing::plain::{Plain, presence},
    };

    const ROOM: RoomId = RoomId([1; 16]);

    fn me(agent: &str) -> Me {
        Me { agent: agent.into(), key: KeyPrint([1; 16]), stable: false }
    }

    fn notice(bytes: usize) -> Notice {
        let told = Arc::new(Told::new(presence(bytes)));
        Notice { room: ROOM, after: Number::ZERO, wall_ms: 0, told }
    }

    fn leaver<'a>(me: &'a Me, unwritten: Vec<Notice>) -> Leaver<'a> {
        Leaver { me, voice: Plain::voice(), rooms: vec![ROOM], unwritten }
    }

    fn holds(away: &Away) -> (usize, usize, usize) {
        (away.agents.len(), away.order.len(), away.bytes)
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut away = Away::default();
        for nth in 0..=limits::AWAY_AGENTS_MAX {
            away.left(leaver(&me(&nth.to_string()), vec![notice(1)]));
        }
        assert_eq!(holds(&away).0, limits::AWAY_AGENTS_MAX);
        assert_eq!(away.take(&"0".into()).len(), 0, "the oldest is forgotten");
        for nth in 0..limits::MISSED_MAX + 50 {
            away.push(&"1".into(), notice(nth));
        }
        let missed = away.take(&"1".into());
        assert_eq!(
            (missed.len(), missed[0].told.frames(&Plain::voice()).bytes()),
            (limits::MISSED_MAX, 50)
        );
        away.left(leaver(&me("1"), Vec::new()));
        while holds(&away).0 > 1 {
            away.tell_members(&notice(1_000_000));
            assert!(away.bytes <= limits::AWAY_BYTES_MAX);
        }
        away.take(&"1".into());
        assert_eq!(holds(&away), (0, 0, 0));
    }

    #[test]
    fn who_stays_away_is_forgotten() {
        let mut away = Away::default();
        let start = Instant::now();
        away.left_at(leaver(&me("a"), vec![notice(1)]), start);
        away.left_at(leaver(&me("b"), vec![notice(1)]), start);
        away.left_at(leaver(&me("a"), vec![notice(1)]), start + Duration::from_secs(60));
        away.expire(start + RECONNECT_WITHIN + Duration::from_secs(1));
        assert_eq!(holds(&away), (1, 1, 2), "a left again meanwhile, and was not told");
        away.is_back(&me("a"), true);
        assert!(!away.has_members(ROOM));
        away.tell_members(&notice(1));
        let late = start + Duration::from_secs(70);
        assert_eq!(away.take_at(&"a".into(), late).len(), 2, "what is told now it hears itself");
        away.left(leaver(&me("a"), vec![notice(1)]));
        away.is_back(&Me { key: KeyPrint([2; 16]), ..me("a") }, true);
        assert_eq!(holds(&away), (0, 0, 0), "it is not for another key");
    }
}
