//! The elections of a room: a fold over [`ElectionAct`]s that does not depend on the order in which
//! logs are read (`docs/decisions/elections.md`).
//!
//! The state is a function of the logs:
//!
//! - Of each log the first commitment, close, opening and dropping of its kind. An author has several
//!   logs in rooms that are memory only: of these the lowest by position.
//! - A close elects when all nodes that it names have opened, but for those that were dropped.
//! - Of several closes of one election the one in which most nodes took part to the end counts, or else
//!   the starter's, or else the lowest by position.
//! - The leader is that of the concluded election with the highest term, and of one term the lowest
//!   position, unless it was cleared.
//! - Of a node that forked a log nothing counts but that it stood: others may hold more of its entries, or
//!   less.

mod election;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub(crate) use election::{Closing, Election, Outcome, commitment, nonce};

use super::act::{Fold, Folded, Void, Written};
use crate::{
    api::{boundary::Alarm, command::Refused},
    limits::{ELECTIONS_BYTES_PER_LOG_MAX, ELECTIONS_COUNTED_FOR, ELECTIONS_PER_AGENT_MAX},
    name::id::{AgentId, EntryRef, LogId, NodeId, Position},
    wire::{
        acts::{Candidate, ElectionAct, ElectionStarted},
        entry::Decision,
    },
};

/// An election by its term and position: the last one is the one that counts, if it is concluded.
type Rank = (u64, Reverse<Position>);

/// The leader of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader<'e> {
    /// By which election.
    pub(crate) election: EntryRef,
    pub(crate) term: u64,
    pub(crate) candidate: &'e Candidate,
}

/// The last news that members got: the election that counts, and its leader, unless that one was cleared.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Told {
    pub(crate) concluded: Option<EntryRef>,
    pub(crate) leader: Option<AgentId>,
}

/// Members have to be told something else than they were.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) before: Told,
    pub(crate) now: Told,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Elections {
    all: BTreeMap<EntryRef, Election>,
    ranked: BTreeMap<Rank, EntryRef>,
    /// Elections by their closes.
    closed: BTreeMap<EntryRef, EntryRef>,
    /// Bytes of elections, by the log that started them.
    bytes: BTreeMap<LogId, usize>,
    /// Nodes that are out: they forked a log, or parted.
    unheard: Arc<BTreeSet<NodeId>>,
    /// Elections that this node may have to do something in.
    running: BTreeSet<EntryRef>,
    /// Elections whose outcome may change by time alone: there are closes that do not count yet.
    disputed: BTreeSet<EntryRef>,
    /// Something was folded since this was last asked.
    changed: bool,
    told: Told,
}

impl Fold for Elections {
    type Act = ElectionAct;
    type News = News;

    /// One more election may be started if it would count, and if its agent does not use up the memory
    /// that is there for all.
    fn admits(&self, by: LogId, act: &ElectionAct, now: Duration) -> Result<(), Refused> {
        let ElectionAct::Started(new) = act else { return Ok(()) };
        let recent = self
            .of(by)
            .rev()
            .take_while(|election| election.is_younger(now, ELECTIONS_COUNTED_FOR));
        let own = recent.filter(|other| *other.started_by() == new.started_by);
        if own.count() >= ELECTIONS_PER_AGENT_MAX {
            return Err(Refused::Full("you began too many elections: wait an hour".to_owned()));
        }
        let bytes = self.bytes.get(&by).copied().unwrap_or(0);
        if bytes + self.cost(by, &new.candidates) > ELECTIONS_BYTES_PER_LOG_MAX {
            let full = "too many elections of this node in this room: use another room or node";
            return Err(Refused::Full(full.to_owned()));
        }
        Ok(())
    }

    fn apply(&mut self, written: Written, act: ElectionAct, alarms: &mut Vec<Alarm>) -> Folded {
        self.changed = true;
        self.fold(&written, act, alarms).unwrap_or(Folded::Taken)
    }

    fn retract(&mut self, void: Void) {
        match void {
            Void::From(EntryRef { log, seq }) => self.forget_log(log, seq),
            Void::Author(node) | Void::Member(node) => self.expel(node),
        }
    }

    /// At most one: the last state counts.
    fn take_news(&mut self, now: Duration) -> Vec<News> {
        let now = self.to_tell(now);
        if now == self.told {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.told, now.clone());
        vec![News { before, now }]
    }

    fn is_waiting(&self) -> bool {
        !self.running.is_empty() || !self.disputed.is_empty()
    }

    fn bytes(&self) -> usize {
        self.bytes.values().sum()
    }
}

impl Elections {
    /// `unheard`: nodes that forked a log, or have no part in the mesh any more.
    pub(crate) fn new(unheard: BTreeSet<NodeId>) -> Elections {
        Elections {
            all: BTreeMap::new(),
            ranked: BTreeMap::new(),
            closed: BTreeMap::new(),
            bytes: BTreeMap::new(),
            unheard: unheard.into(),
            running: BTreeSet::new(),
            disputed: BTreeSet::new(),
            changed: false,
            told: Told::default(),
        }
    }

    /// `None`: the election is not known, or not any more.
    fn fold(
        &mut self,
        written: &Written,
        act: ElectionAct,
        alarms: &mut Vec<Alarm>,
    ) -> Option<Folded> {
        let (position, place) = (written.position(), written.place);
        match act {
            ElectionAct::Started(started) => return Some(self.fold_started(written, started)),
            ElectionAct::Committed { election, commitment } => {
                return Some(self.all.get_mut(&election)?.fold_commitment(position, commitment));
            }
            ElectionAct::Declined { election, agent } => {
                return Some(self.all.get_mut(&election)?.fold_declined(place, agent));
            }
            ElectionAct::Closed { election, commitments, declined } => {
                let known = self.all.get_mut(&election)?;
                if known.fold_closed(position, &commitments, &declined, written.now.mono) {
                    self.closed.insert(place, election);
                    self.disputed.insert(election);
                }
            }
            ElectionAct::Shown { closed, nonce } => {
                return Some(self.closed_by(closed)?.fold_shown(written, closed, nonce));
            }
            ElectionAct::Dropped { closed, nodes } => {
                let opened = self.closed_by(closed)?.fold_dropped(position, closed, nodes);
                let (room, by) = (written.room, place.log.author);
                alarms.extend(opened.into_iter().map(|node| Alarm::DroppedThoughOpen {
                    room,
                    by,
                    node,
                }));
            }
            ElectionAct::Cleared { election } => self.all.get_mut(&election)?.fold_cleared(place),
        }
        Some(Folded::Taken)
    }

    /// The election that this close closes.
    fn closed_by(&mut self, closed: EntryRef) -> Option<&mut Election> {
        self.all.get_mut(self.closed.get(&closed)?)
    }

    fn fold_started(&mut self, written: &Written, started: ElectionStarted) -> Folded {
        let Some(mut election) = Election::new(written, started) else { return Folded::Void };
        election.unheard = Arc::clone(&self.unheard);
        // By log, so that it is the same ones everywhere.
        let (place, log) = (written.place, written.place.log);
        let cost = self.cost(log, election.candidates());
        if let Some(again) = self.same_again(log, election.candidates()) {
            election.candidates = again;
        }
        let bytes = self.bytes.entry(log).or_default();
        *bytes += cost;
        if *bytes > ELECTIONS_BYTES_PER_LOG_MAX {
            return Folded::Void;
        }
        if election.is_running() {
            self.running.insert(place);
        }
        self.ranked.insert(election.rank(), place);
        self.all.insert(place, election);
        Folded::Taken
    }

    /// Nothing of this log counts from `seq` on.
    fn forget_log(&mut self, log: LogId, seq: u64) {
        let gone = EntryRef { log, seq }..=EntryRef { log, seq: u64::MAX };
        let gone: Vec<EntryRef> = self.all.range(gone).map(|(place, _)| *place).collect();
        for place in gone {
            if let Some(election) = self.all.remove(&place) {
                self.ranked.remove(&election.rank());
                self.running.remove(&place);
                self.disputed.remove(&place);
            }
        }
        self.closed.retain(|place, _| place.log != log || place.seq < seq);
        self.all.values_mut().for_each(|election| election.forget_log(log, seq));
        self.changed = true;
    }

    /// This node forked a log somewhere, or has parted: it and its agents are out.
    fn expel(&mut self, node: NodeId) {
        Arc::make_mut(&mut self.unheard).insert(node);
        self.all.values_mut().for_each(|election| election.unheard = Arc::clone(&self.unheard));
        self.changed = true;
    }

    /// Whether others may know elections, or closes of them, that this node will never hear of.
    pub(crate) fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    // The outcome.

    pub(crate) fn get(&self, election: EntryRef) -> Option<&Election> {
        self.all.get(&election)
    }

    pub(crate) fn edit(&mut self, election: EntryRef) -> Option<&mut Election> {
        self.all.get_mut(&election)
    }

    /// The election that counts, and how it ended.
    pub(crate) fn concluded(&self, now: Duration) -> Option<(&Election, Option<&Candidate>)> {
        let ranked = self.ranked.values().rev().filter_map(|place| self.all.get(place));
        let mut concluded = ranked.filter_map(|election| match election.outcome(now) {
            Outcome::Open => None,
            Outcome::Nobody => Some((election, None)),
            Outcome::Leader(leader) => Some((election, Some(leader))),
        });
        concluded.next()
    }

    /// All that is known so far was here before this start.
    pub(crate) fn note_restored(&mut self) {
        self.all.values_mut().for_each(|election| election.restored = true);
    }

    /// The leader of the room.
    pub(crate) fn leader(&self, now: Duration) -> Option<Leader<'_>> {
        let (election, leader) = self.concluded(now)?;
        let candidate = leader?;
        let (place, term) = (election.place(), election.rank().0);
        (!election.is_cleared()).then_some(Leader { election: place, term, candidate })
    }

    /// The leader, as members were told: known without working it out.
    pub(crate) fn told_leader(&self) -> Option<Leader<'_>> {
        let (election, agent) = (self.told.concluded?, self.told.leader.as_ref()?);
        let known = self.all.get(&election)?;
        let candidate = known.candidates().iter().find(|candidate| candidate.agent == *agent)?;
        Some(Leader { election, term: known.rank().0, candidate })
    }

    /// Whether something was folded since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The state that members should have been told.
    fn to_tell(&self, now: Duration) -> Told {
        let concluded = self.concluded(now).map(|(election, _)| election.place());
        Told { concluded, leader: self.leader(now).map(|leader| leader.candidate.agent.clone()) }
    }

    /// The term of a new election.
    pub(crate) fn next_term(&self) -> u64 {
        self.ranked.last_key_value().map_or(1, |((term, _), _)| term.saturating_add(1))
    }

    /// Whether this term may begin: it follows one that is known. So terms do not leap to where no
    /// other can follow.
    pub(crate) fn follows(&self, term: u64) -> bool {
        term <= self.next_term()
    }

    /// The elections of one log, the oldest first.
    fn of(&self, log: LogId) -> impl DoubleEndedIterator<Item = &Election> {
        let all = EntryRef { log, seq: 0 }..=EntryRef { log, seq: u64::MAX };
        self.all.range(all).map(|(_, election)| election)
    }

    /// The candidates of this log's last election, if they are these.
    fn same_again(&self, log: LogId, candidates: &[Candidate]) -> Option<Arc<[Candidate]>> {
        let last = self.of(log).next_back().map(|list| &list.candidates);
        last.filter(|list| list[..] == *candidates).cloned()
    }

    /// The bytes that one more election of this log counts for: the same on every machine.
    fn cost(&self, log: LogId, candidates: &[Candidate]) -> usize {
        let again = self.same_again(log, candidates).is_some();
        let list = if again { 0 } else { candidates.iter().map(list_bytes).sum::<usize>() };
        let nodes: BTreeSet<NodeId> = candidates.iter().map(|candidate| candidate.node).collect();
        256 + 128 * nodes.len() + list
    }

    // Decisions.

    /// Whether all is here that a decision of this log is judged by. Its author had it, so others get
    /// it, unless it was of a node that is out.
    pub(crate) fn can_judge(&self, by: NodeId, decision: &Decision) -> bool {
        let elected =
            |election: &Election, agent| election.may_have_elected(agent, by) || self.has_unheard();
        self.all
            .get(&decision.election)
            .is_none_or(|election| elected(election, &decision.said.agent))
    }

    /// Whether a decision at this place is a leader's. Any node may close an election, so one that is out
    /// may have closed it where others have more of its log, or less: the decision's author is believed
    /// then, as far as its agent stood.
    pub(crate) fn allows(&self, at: EntryRef, decision: &Decision) -> bool {
        let by = at.log.author;
        let Some(election) = self.all.get(&decision.election) else {
            return self.unheard.contains(&decision.election.log.author);
        };
        let elected = election.may_have_elected(&decision.said.agent, by)
            || (self.has_unheard() && election.is_candidate(&decision.said.agent, by));
        elected && !election.is_cleared_in(at.log, at.seq)
    }

    // Acts that are due.

    /// The election that is to be carried on: of several the highest by term, then the lowest by position.
    /// Others end by themselves.
    pub(crate) fn running(&self, now: Duration) -> Option<&Election> {
        let running = self.running.iter().filter_map(|place| self.all.get(place));
        let alive = running.filter(|election| election.runs_for(now).is_some());
        let open =
            alive.filter(|election| !election.is_void() && election.outcome(now) == Outcome::Open);
        open.max_by_key(|election| election.rank())
    }

    /// All elections that this node may have to open its nonce in.
    pub(crate) fn all_running(&self) -> impl Iterator<Item = &Election> {
        let running = self.running.iter().filter_map(|place| self.all.get(place));
        running.filter(|election| !election.is_void())
    }

    /// Forgets about carrying on what is over.
    pub(crate) fn rest(&mut self, now: Duration) {
        let all = &self.all;
        self.running.retain(|place| {
            all.get(place).is_some_and(|election| {
                election.runs_for(now).is_some() && election.outcome(now) == Outcome::Open
            })
        });
        self.disputed
            .retain(|place| all.get(place).is_some_and(|election| election.is_disputed(now)));
    }
}

/// The bytes of a candidate in a list.
fn list_bytes(candidate: &Candidate) -> usize {
    64 + candidate.agent.len() + candidate.name.len()
}

#[cfg(test)]
mod tests;
