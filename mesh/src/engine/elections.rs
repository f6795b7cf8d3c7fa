//! Elections: starting them, declining, committing to nonces and opening them, clearing leaders.
//!
//! When to do what is decided here, from what this node sees of others and of the time; what it then
//! comes to is a function of the logs (`crate::fold::elections`).

use std::{sync::Arc, time::Duration};

use super::Engine;
use crate::{
    api::{
        agenda::{LeaderGone, LeaderView},
        command::{Caller, Outcome, Refused},
        event::RoomEvent,
    },
    fold::elections::{Closing, Election, commitment, nonce},
    limits::{
        ELECTION_CANDIDATES_MAX, ELECTION_GRACE, ELECTION_PATIENCE, ELECTION_RANK_STEP,
        ELECTION_WINDOW, ROSTER_LEASE,
    },
    name::id::{EntryRef, NodeId, RoomId},
    order::liveness::{Gone, Verdict},
    room::Room,
    wire::{
        acts::{Candidate, ElectionAct, ElectionStarted},
        entry::Body,
        message::Message,
    },
};

/// What clients ask.
impl Engine {
    pub(super) fn elect_leader(&mut self, caller: &Caller, id: RoomId) -> Result<Outcome, Refused> {
        self.may_act(caller, id)?;
        let room = self.rooms.get(&id).ok_or(Refused::NoRoom)?;
        if room.folds.elections.running(self.cx.now.mono).is_some() {
            return Err(Refused::ElectionRuns);
        }
        let candidates = self.candidates(id);
        if candidates.len() > ELECTION_CANDIDATES_MAX {
            let full = format!("a room of more than {ELECTION_CANDIDATES_MAX} cannot elect");
            return Err(Refused::Full(full));
        }
        let agents = candidates.iter().map(|it| Arc::clone(&it.agent)).collect();
        let (term, started_by) = (room.folds.elections.next_term(), caller.agent.clone());
        let started = ElectionStarted { term, candidates, started_by };
        self.write_act(id, &Body::Election(ElectionAct::Started(started)))?;
        Ok(Outcome::Candidates(agents))
    }

    fn candidates(&self, room: RoomId) -> Vec<Candidate> {
        let members = self.rosters.members(room).iter();
        let candidate = members.filter_map(|it| {
            let (_, record) = self.rosters.record(&it.agent)?;
            let name = record.name.to_string();
            Some(Candidate { agent: it.agent.clone(), name, node: it.node })
        });
        candidate.collect()
    }

    pub(super) fn decline(&mut self, caller: &Caller, id: RoomId) -> Result<Outcome, Refused> {
        self.may_act(caller, id)?;
        let (now, me) = (self.cx.now.mono, self.cx.me);
        let running = self.rooms.get(&id).and_then(|room| room.folds.elections.running(now));
        let running = running.filter(|it| it.is_open(now)).ok_or(Refused::NoElection)?;
        let election = running.place();
        // Whoever joined since does not stand; nor does who has declined.
        if running.standing_at(me).any(|it| it.agent == caller.agent) {
            let agent = caller.agent.clone();
            self.write_act(id, &Body::Election(ElectionAct::Declined { election, agent }))?;
        }
        Ok(Outcome::Done)
    }
}

/// Whose decisions count.
impl Engine {
    pub(super) fn leader(&self, room: RoomId) -> Option<LeaderView> {
        let leader = self.rooms.get(&room)?.folds.elections.leader(self.cx.now.mono)?;
        let Candidate { agent, node, .. } = leader.candidate;
        Some(LeaderView { agent: agent.clone(), node: *node, term: leader.term })
    }

    /// The election by which this agent, attached here, leads the room.
    pub(super) fn led_by(&self, room: RoomId, agent: &str) -> Option<EntryRef> {
        let leader = self.rooms.get(&room)?.folds.elections.leader(self.cx.now.mono)?;
        let leads = *leader.candidate.agent == *agent && leader.candidate.node == self.cx.me;
        leads.then_some(leader.election)
    }
}

/// What becomes due, or possible.
impl Engine {
    /// Goes on with the elections of a room as far as is possible now.
    pub(super) fn settle_elections(&mut self, id: RoomId) {
        let now = self.cx.now.mono;
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let waiting = room.folds.elections.is_waiting();
        if !room.folds.elections.take_changed() && !waiting {
            return;
        }
        if waiting {
            self.carry_on(id);
        }
        self.announce_election(id);
        self.tell_leader(id);
        if let Some(room) = self.rooms.get_mut(&id) {
            room.folds.elections.rest(now);
        }
    }

    /// Writes what this node has to say in a running election.
    fn carry_on(&mut self, id: RoomId) {
        let Some(room) = self.rooms.get(&id) else { return };
        if !room.is_writable(&self.cx) {
            return;
        }
        let acts = self.steps(room);
        if let Some(room) = self.rooms.get_mut(&id) {
            for act in acts {
                room.append(&mut self.cx, &Body::Election(act));
            }
        }
    }

    fn steps(&self, room: &Room) -> Vec<ElectionAct> {
        let now = self.cx.now.mono;
        let mut acts = Vec::new();
        if let Some(it) = room.folds.elections.running(now) {
            if !it.is_closed() {
                self.stand(room, it, &mut acts);
            }
            acts.extend(self.close(room, it));
            acts.extend(it.to_open(now).and_then(|closing| self.drop_out(room, it, closing)));
        }
        acts.extend(room.folds.elections.all_running().filter_map(|it| self.open_nonce(room, it)));
        acts
    }

    /// This node's candidates that are not there any more decline; for the others it commits.
    fn stand(&self, room: &Room, it: &Election, acts: &mut Vec<ElectionAct>) {
        let (election, me) = (it.place(), self.cx.me);
        for candidate in it.standing_at(me) {
            if !self.is_member_here(&candidate.agent, room.replica.id) {
                let agent = candidate.agent.clone();
                acts.push(ElectionAct::Declined { election, agent });
            }
        }
        if it.hosts(me) && !it.has_committed(me) {
            let nonce = nonce(&self.identity, room.replica.id, election);
            let commitment = commitment(room.replica.id, election, me, &nonce);
            acts.push(ElectionAct::Committed { election, commitment });
        }
    }

    fn is_member_here(&self, agent: &str, room: RoomId) -> bool {
        self.rosters.own(agent).is_some_and(|it| it.rooms.contains_key(&room))
    }

    fn close(&self, room: &Room, it: &Election) -> Option<ElectionAct> {
        let now = self.cx.now.mono;
        let age = it.runs_for(now)?;
        let due = if it.starter() == self.cx.me {
            // Too late if others have done it meanwhile: they have opened their nonces.
            let late = it.is_closed() && age >= ELECTION_WINDOW + ELECTION_GRACE;
            !it.has_closed(self.cx.me) && !late && age >= ELECTION_WINDOW
        } else {
            let wait = ELECTION_WINDOW + ELECTION_GRACE + self.patience(room, it.starter());
            !it.is_closed() && age >= wait
        };
        due.then(|| {
            let (commitments, declined) = it.close();
            ElectionAct::Closed { election: it.place(), commitments, declined }
        })
    }

    /// Says who has not opened in time.
    fn drop_out(&self, room: &Room, it: &Election, closing: &Closing) -> Option<ElectionAct> {
        let (by, age) = (closing.author(), self.cx.now.mono.saturating_sub(closing.seen));
        let wait = if by == self.cx.me {
            ELECTION_GRACE
        } else {
            ELECTION_GRACE * 2 + self.patience(room, by)
        };
        let nodes = closing.missing();
        let due = age >= wait && !it.has_drops(closing) && !nodes.is_empty();
        due.then(|| ElectionAct::Dropped { closed: closing.place(), nodes })
    }

    /// How long this node leaves to `node` what that should have done.
    fn patience(&self, room: &Room, node: NodeId) -> Duration {
        let now = self.cx.now.mono;
        let silent = self.live.silent_for(now, node) >= self.config.takeover_after;
        let gone = silent || room.replica.is_out(&self.cx, node);
        let rank = self.live.rank(now, room.replica.eligible(&self.cx), node);
        ELECTION_RANK_STEP * rank + if gone { Duration::ZERO } else { ELECTION_PATIENCE }
    }

    fn open_nonce(&self, room: &Room, it: &Election) -> Option<ElectionAct> {
        let (election, me) = (it.place(), self.cx.me);
        it.runs_for(self.cx.now.mono)?;
        let closing = it.to_open(self.cx.now.mono)?;
        if it.has_opened(me) || !closing.waits_for(me) {
            return None;
        }
        let nonce = nonce(&self.identity, room.replica.id, election);
        Some(ElectionAct::Shown { closed: closing.place(), nonce })
    }

    // Telling members.

    fn announce_election(&mut self, id: RoomId) {
        let now = self.cx.now.mono;
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let running = room.folds.elections.running(now).filter(|it| it.is_to_be_announced());
        let Some(place) = running.map(Election::place) else { return };
        if let Some(it) = room.folds.elections.edit(place) {
            it.announced = true;
            let candidates = it.candidates().iter().map(|it| it.agent.clone()).collect();
            let by = it.started_by().clone();
            self.cx.notify(id, RoomEvent::ElectionStarted { candidates, by });
        }
    }

    fn tell_leader(&mut self, id: RoomId) {
        let now = self.cx.now.mono;
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let to_tell = room.folds.elections.to_tell(now);
        let before = std::mem::replace(&mut room.folds.elections.told, to_tell.clone());
        if before == to_tell {
            return;
        }
        let concluded = room.folds.elections.concluded(now);
        let (announced, nobody) =
            concluded.map_or((false, false), |(it, leader)| (it.announced, leader.is_none()));
        let another = before.concluded != to_tell.concluded;
        let leader = room.folds.elections.leader(now).map(|it| it.candidate.clone());
        let gone = match (&before.leader, &leader) {
            // A new election that members saw beginning simply ends the old leader's time.
            (Some(_), Some(_)) => (!(another && announced)).then_some(LeaderGone::Superseded),
            (Some(_), None) if another && nobody => Some(LeaderGone::AllDeclined),
            (Some(_), None) => Some(LeaderGone::Left),
            (None, None) if another && nobody && announced => Some(LeaderGone::AllDeclined),
            (None, _) => None,
        };
        if let Some(why) = gone {
            self.cx.notify(id, RoomEvent::LeaderCleared { why });
        }
        match leader {
            Some(it) => {
                self.led.insert(id);
                let (agent, name) = (it.agent, it.name.into());
                self.cx.notify(id, RoomEvent::LeaderElected { agent, name });
            }
            None => {
                self.led.remove(&id);
            }
        }
    }

    /// After a start: who leads which room. Nobody is told.
    pub(super) fn note_leaders(&mut self) {
        let now = self.cx.now.mono;
        for room in self.rooms.values_mut() {
            room.folds.elections.note_restored();
            room.folds.elections.told = room.folds.elections.to_tell(now);
            if room.folds.elections.told.leader.is_some() {
                self.led.insert(room.replica.id);
            }
        }
    }

    // Leaders that are gone.

    /// What has become due in elections that no entry brings about.
    pub(super) fn go_on_electing(&mut self) {
        for id in self.led.clone() {
            self.clear_leader_if_gone(id);
        }
    }

    /// A leader that left, or is attached nowhere any more, is one no longer. Its node says so; and if
    /// that is silent, another one does.
    pub(super) fn clear_leader_if_gone(&mut self, id: RoomId) {
        let Some(room) = self.rooms.get(&id) else { return };
        let Some(leader) = room.folds.elections.told_leader() else { return };
        let (election, it) = (leader.election, leader.candidate);
        let gone = if it.node == self.cx.me {
            // It may have declined when that could no longer count.
            let declined =
                room.folds.elections.get(election).is_some_and(|e| e.has_declined(&it.agent));
            declined || !self.is_member_here(&it.agent, id)
        } else {
            let (agent, node) = (it.agent.clone(), it.node);
            let seated = self.rosters.record(&agent);
            seated.is_none_or(|(at, record)| at != node || !record.rooms.contains_key(&id))
                && self.is_gone_for_good(id, node)
        };
        if gone {
            self.clear_leader(id, election);
        }
    }

    /// Whether a node is silent for so long that its agents are gone, and this node is the one to say so.
    fn is_gone_for_good(&mut self, id: RoomId, node: NodeId) -> bool {
        let now = self.cx.now.mono;
        let silent = self.live.silent_for(now, node);
        if silent < ROSTER_LEASE {
            return false;
        }
        let Some(room) = self.rooms.get(&id) else { return false };
        let heirs = room.replica.eligible(&self.cx);
        let gone = Gone { node, since: now - (silent - ROSTER_LEASE), anew: false };
        match self.live.verdict(now, heirs, gone) {
            Verdict::Gone => true,
            Verdict::Wait => false,
            Verdict::AskPeers => {
                for peer in self.live.probe(now, node) {
                    self.cx.send(peer, Message::Probe { node });
                }
                false
            }
        }
    }

    fn clear_leader(&mut self, id: RoomId, election: EntryRef) {
        let now = self.cx.now.mono;
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let leads = room.folds.elections.leader(now).is_some_and(|it| it.election == election);
        if leads && room.is_writable(&self.cx) {
            room.append(&mut self.cx, &Body::Election(ElectionAct::Cleared { election }));
        }
    }
}
