//! Elections: starting them, declining, committing to nonces and opening them, clearing leaders.
//!
//! When to do something is decided here, from the state of other nodes and the time; its effect is a
//! function of the logs (`crate::fold::elections`).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::known::Known;
use crate::{
    api::{
        agenda::{ElectionView, LeaderGone, LeaderView},
        command::{Caller, Outcome, Refused},
        event::RoomEvent,
    },
    fold::{
        act::Fold as _,
        elections::{Closing, Election, News, commitment, nonce},
    },
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

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaders {
    /// Rooms that have a leader.
    led: BTreeSet<RoomId>,
}

/// Acts that become due, or possible.
impl Leaders {
    /// Goes on with the elections of a room as far as is possible now.
    pub(super) fn settle_elections(&mut self, known: &mut Known, id: RoomId) {
        let now = known.cx.now.mono;
        let Some(room) = known.rooms.get_mut(&id) else { return };
        let waiting = room.folds.elections.is_waiting();
        if !room.folds.elections.take_changed() && !waiting {
            return;
        }
        if waiting {
            carry_on(known, id);
        }
        announce_election(known, id);
        self.tell_leader(known, id);
        if let Some(room) = known.rooms.get_mut(&id) {
            room.folds.elections.rest(now);
        }
    }

    // Telling members.

    fn tell_leader(&mut self, known: &mut Known, id: RoomId) {
        let now = known.cx.now.mono;
        let Some(room) = known.rooms.get_mut(&id) else { return };
        let Some(News { before, now: to_tell }) = room.folds.elections.take_news(now).pop() else {
            return;
        };
        let concluded = room.folds.elections.concluded(now);
        let (announced, nobody) = concluded.map_or((false, false), |(announcement, leader)| {
            (announcement.announced, leader.is_none())
        });
        let another = before.concluded != to_tell.concluded;
        let leader = room.folds.elections.leader(now).map(|leader| leader.candidate.clone());
        let gone = match (&before.leader, &leader) {
            // A new election that members saw beginning simply ends the old leader's time.
            (Some(_), Some(_)) => (!(another && announced)).then_some(LeaderGone::Superseded),
            (Some(_), None) if another && nobody => Some(LeaderGone::AllDeclined),
            (Some(_), None) => Some(LeaderGone::Left),
            (None, None) if another && nobody && announced => Some(LeaderGone::AllDeclined),
            (None, _) => None,
        };
        if let Some(why) = gone {
            known.cx.notify(id, RoomEvent::LeaderCleared { why });
        }
        match leader {
            Some(candidate) => {
                self.led.insert(id);
                let (agent, name) = (candidate.agent, candidate.name.into());
                known.cx.notify(id, RoomEvent::LeaderElected { agent, name });
            }
            None => {
                self.led.remove(&id);
            }
        }
    }

    /// After a start: notes the leaders of all rooms. Nobody is told.
    pub(super) fn note_leaders(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        for room in known.rooms.values_mut() {
            room.folds.elections.note_restored();
            drop(room.folds.elections.take_news(now));
            if room.folds.elections.told_leader().is_some() {
                self.led.insert(room.replica.id);
            }
        }
    }

    /// The room has ended.
    pub(super) fn forget(&mut self, room: RoomId) {
        self.led.remove(&room);
    }

    // Leaders that are gone.

    /// Steps of elections that have become due with time, without an entry.
    pub(super) fn go_on_electing(&mut self, known: &mut Known) {
        for id in self.led.clone() {
            clear_leader_if_gone(known, id);
        }
    }
}

fn candidates(known: &Known, room: RoomId) -> Vec<Candidate> {
    let members = known.rosters.regulars(room);
    let candidate = members.filter_map(|member| {
        let (_, record) = known.rosters.record(&member.agent)?;
        let name = record.name.to_string();
        Some(Candidate { agent: member.agent.clone(), name, node: member.node })
    });
    candidate.collect()
}

pub(super) fn elect_leader(
    known: &mut Known,
    caller: &Caller,
    id: RoomId,
) -> Result<Outcome, Refused> {
    known.may_act(caller, id)?;
    let room = known.rooms.get(&id).ok_or(Refused::NoRoom)?;
    if room.folds.elections.running(known.cx.now.mono).is_some() {
        return Err(Refused::ElectionRuns);
    }
    let candidates = candidates(known, id);
    if candidates.is_empty() {
        return Err(Refused::GuestsAlone);
    }
    if candidates.len() > ELECTION_CANDIDATES_MAX {
        let full = format!("a room of more than {ELECTION_CANDIDATES_MAX} cannot elect");
        return Err(Refused::Full(full));
    }
    let agents = candidates.iter().map(|candidate| Arc::clone(&candidate.agent)).collect();
    let (term, started_by) = (room.folds.elections.next_term(), caller.agent.clone());
    let started = ElectionStarted { term, candidates, started_by };
    known.write_act(id, &Body::Election(ElectionAct::Started(started)))?;
    Ok(Outcome::Candidates(agents))
}

pub(super) fn decline(known: &mut Known, caller: &Caller, id: RoomId) -> Result<Outcome, Refused> {
    known.may_act(caller, id)?;
    let (now, me) = (known.cx.now.mono, known.cx.me);
    let running = known.rooms.get(&id).and_then(|room| room.folds.elections.running(now));
    let running = running.filter(|election| election.is_open(now)).ok_or(Refused::NoElection)?;
    let election = running.place();
    // An agent that joined since does not stand; nor does one that has declined.
    if running.standing_at(me).any(|candidate| candidate.agent == caller.agent) {
        let agent = caller.agent.clone();
        known.write_act(id, &Body::Election(ElectionAct::Declined { election, agent }))?;
    }
    Ok(Outcome::Done)
}

pub(super) fn leader(known: &Known, room: RoomId) -> Option<LeaderView> {
    let leader = known.rooms.get(&room)?.folds.elections.leader(known.cx.now.mono)?;
    let Candidate { agent, node, .. } = leader.candidate;
    Some(LeaderView { agent: agent.clone(), node: *node, term: leader.term })
}

/// The election that runs in a room, for people.
pub(super) fn running(known: &Known, room: RoomId) -> Option<ElectionView> {
    let now = known.cx.now.mono;
    let election = known.rooms.get(&room)?.folds.elections.running(now)?;
    let named = |candidate: &Candidate| (candidate.agent.clone(), candidate.name.clone());
    let stands = |candidate: &&Candidate| !election.has_declined(&candidate.agent);
    let (standing, declined): (Vec<&Candidate>, Vec<&Candidate>) =
        election.candidates().iter().partition(stands);
    Some(ElectionView {
        started_by: election.started_by().clone(),
        standing: standing.into_iter().map(named).collect(),
        declined: declined.into_iter().map(named).collect(),
        is_open: election.is_open(now),
    })
}

/// The election by which this agent, attached here, leads the room.
pub(super) fn led_by(known: &Known, room: RoomId, agent: &str) -> Option<EntryRef> {
    let leader = known.rooms.get(&room)?.folds.elections.leader(known.cx.now.mono)?;
    let leads = *leader.candidate.agent == *agent && leader.candidate.node == known.cx.me;
    leads.then_some(leader.election)
}

fn is_member_here(known: &Known, agent: &str, room: RoomId) -> bool {
    known.rosters.own(agent).is_some_and(|record| record.rooms.contains_key(&room))
}

/// This node's candidates that are not there any more decline; for the others it commits.
fn stand(known: &Known, room: &Room, running: &Election, acts: &mut Vec<ElectionAct>) {
    let (election, me) = (running.place(), known.cx.me);
    for candidate in running.standing_at(me) {
        if !is_member_here(known, &candidate.agent, room.replica.id) {
            let agent = candidate.agent.clone();
            acts.push(ElectionAct::Declined { election, agent });
        }
    }
    if running.hosts(me) && !running.has_committed(me) {
        let nonce = nonce(&known.identity, room.replica.id, election);
        let commitment = commitment(room.replica.id, election, me, &nonce);
        acts.push(ElectionAct::Committed { election, commitment });
    }
}

/// How long this node leaves to `node` what that should have done.
fn patience(known: &Known, room: &Room, node: NodeId) -> Duration {
    let now = known.cx.now.mono;
    let silent = known.live.silent_for(now, node) >= known.config.takeover_after;
    let gone = silent || room.replica.is_out(&known.cx, node);
    let rank = known.live.rank(now, room.replica.eligible(&known.cx), node);
    ELECTION_RANK_STEP * rank + if gone { Duration::ZERO } else { ELECTION_PATIENCE }
}

fn close(known: &Known, room: &Room, election: &Election) -> Option<ElectionAct> {
    let now = known.cx.now.mono;
    let age = election.runs_for(now)?;
    let due = if election.starter() == known.cx.me {
        // Too late if others have done it meanwhile: they have opened their nonces.
        let late = election.is_closed() && age >= ELECTION_WINDOW + ELECTION_GRACE;
        !election.has_closed(known.cx.me) && !late && age >= ELECTION_WINDOW
    } else {
        let wait = ELECTION_WINDOW + ELECTION_GRACE + patience(known, room, election.starter());
        !election.is_closed() && age >= wait
    };
    due.then(|| {
        let (commitments, declined) = election.close();
        ElectionAct::Closed { election: election.place(), commitments, declined }
    })
}

/// Says who has not opened in time.
fn drop_out(
    known: &Known,
    room: &Room,
    election: &Election,
    closing: &Closing,
) -> Option<ElectionAct> {
    let (by, age) = (closing.author(), known.cx.now.mono.saturating_sub(closing.seen));
    let wait = if by == known.cx.me {
        ELECTION_GRACE
    } else {
        ELECTION_GRACE * 2 + patience(known, room, by)
    };
    let nodes = closing.missing();
    let due = age >= wait && !election.has_drops(closing) && !nodes.is_empty();
    due.then(|| ElectionAct::Dropped { closed: closing.place(), nodes })
}

fn open_nonce(known: &Known, room: &Room, running: &Election) -> Option<ElectionAct> {
    let (election, me) = (running.place(), known.cx.me);
    running.runs_for(known.cx.now.mono)?;
    let closing = running.to_open(known.cx.now.mono)?;
    if running.has_opened(me) || !closing.waits_for(me) {
        return None;
    }
    let nonce = nonce(&known.identity, room.replica.id, election);
    Some(ElectionAct::Shown { closed: closing.place(), nonce })
}

fn steps(known: &Known, room: &Room) -> Vec<ElectionAct> {
    let now = known.cx.now.mono;
    let mut acts = Vec::new();
    if let Some(running) = room.folds.elections.running(now) {
        if !running.is_closed() {
            stand(known, room, running, &mut acts);
        }
        acts.extend(close(known, room, running));
        acts.extend(
            running.to_open(now).and_then(|closing| drop_out(known, room, running, closing)),
        );
    }
    acts.extend(
        room.folds.elections.all_running().filter_map(|election| open_nonce(known, room, election)),
    );
    acts
}

/// Writes what this node has to say in a running election.
fn carry_on(known: &mut Known, id: RoomId) {
    let Some(room) = known.rooms.get(&id) else { return };
    if !room.is_writable(&known.cx) {
        return;
    }
    let acts = steps(known, room);
    if let Some(room) = known.rooms.get_mut(&id) {
        for act in acts {
            room.append(&mut known.cx, &Body::Election(act));
        }
    }
}

fn announce_election(known: &mut Known, id: RoomId) {
    let now = known.cx.now.mono;
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let running = room.folds.elections.running(now).filter(|running| running.is_to_be_announced());
    let Some(place) = running.map(Election::place) else { return };
    if let Some(election) = room.folds.elections.edit(place) {
        election.announced = true;
        let candidates =
            election.candidates().iter().map(|candidate| candidate.agent.clone()).collect();
        let by = election.started_by().clone();
        known.cx.notify(id, RoomEvent::ElectionStarted { candidates, by });
    }
}

/// Whether a node is silent for so long that its agents are gone, and this node is the one to say so.
fn is_gone_for_good(known: &mut Known, id: RoomId, node: NodeId) -> bool {
    let now = known.cx.now.mono;
    let silent = known.live.silent_for(now, node);
    if silent < ROSTER_LEASE {
        return false;
    }
    let Some(room) = known.rooms.get(&id) else { return false };
    let heirs = room.replica.eligible(&known.cx);
    let gone = Gone { node, since: now - (silent - ROSTER_LEASE), anew: false };
    match known.live.verdict(now, heirs, gone) {
        Verdict::Gone => true,
        Verdict::Wait => false,
        Verdict::AskPeers => {
            for peer in known.live.probe(now, node) {
                known.cx.send(peer, Message::Probe { node });
            }
            false
        }
    }
}

fn clear_leader(known: &mut Known, id: RoomId, election: EntryRef) {
    let now = known.cx.now.mono;
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let leads = room.folds.elections.leader(now).is_some_and(|leader| leader.election == election);
    if leads && room.is_writable(&known.cx) {
        room.append(&mut known.cx, &Body::Election(ElectionAct::Cleared { election }));
    }
}

/// A leader that left, or is attached nowhere any more, is one no longer. Its node says so; and if
/// that is silent, another one does.
pub(super) fn clear_leader_if_gone(known: &mut Known, id: RoomId) {
    let Some(room) = known.rooms.get(&id) else { return };
    let Some(leader) = room.folds.elections.told_leader() else { return };
    let (election, candidate) = (leader.election, leader.candidate);
    let gone = if candidate.node == known.cx.me {
        // It may have declined when that could no longer count.
        let declined =
            room.folds.elections.get(election).is_some_and(|e| e.has_declined(&candidate.agent));
        declined || !is_member_here(known, &candidate.agent, id)
    } else {
        let (agent, node) = (candidate.agent.clone(), candidate.node);
        let seated = known.rosters.record(&agent);
        seated.is_none_or(|(at, record)| at != node || !record.rooms.contains_key(&id))
            && is_gone_for_good(known, id, node)
    };
    if gone {
        clear_leader(known, id, election);
    }
}
