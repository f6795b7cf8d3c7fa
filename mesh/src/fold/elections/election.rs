//! One election: its acts, and the leader that they elect.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    fold::act::{Folded, Written},
    limits::{
        AGENT_ID_BYTES_MAX, ELECTION_CANDIDATES_MAX, ELECTION_DEAD_AFTER, ELECTION_FRESH_FOR,
        ELECTION_GRACE, ELECTION_WINDOW, NAME_BYTES_MAX,
    },
    name::{
        id::{AgentId, EntryRef, Hash, LogId, NodeId, Position, RoomId, sha256},
        identity::Identity,
    },
    replica::log::first_8,
    wire::acts::{Candidate, ElectionStarted},
};

/// A node's nonce. It follows from the node's key, so it need not be kept.
pub(crate) fn nonce(identity: &Identity, room: RoomId, election: EntryRef) -> [u8; 32] {
    identity.secret(b"clawmesh election nonce", &[&room.0, &bytes(election)])
}

/// The commitment of a node: nobody else can copy it, and it is good in no other election.
pub(crate) fn commitment(room: RoomId, election: EntryRef, node: NodeId, nonce: &[u8; 32]) -> Hash {
    sha256(&[b"clawmesh election commitment", &room.0, &bytes(election), &node.0, nonce])
}

fn bytes(place: EntryRef) -> Vec<u8> {
    let (incarnation, seq) = (place.log.incarnation.to_be_bytes(), place.seq.to_be_bytes());
    [&place.log.author.0[..], &incarnation, &seq].concat()
}

/// How an election stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'e> {
    /// Nobody knows yet.
    Open,
    /// Nobody stood.
    Nobody,
    /// This one is elected.
    Leader(&'e Candidate),
}

/// A commitment, or several of one node: the lowest counts.
#[derive(Clone, Copy, Debug)]
struct Commitment {
    position: Position,
    hash: Hash,
}

/// An opening that was accepted.
#[derive(Clone, Copy, Debug)]
struct Opening {
    seq: u64,
    nonce: [u8; 32],
}

/// Nodes that drop out, as one node says.
#[derive(Clone, Debug)]
struct Drops {
    position: Position,
    nodes: BTreeSet<NodeId>,
}

/// One `Closed`, and the acts that follow it.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    position: Position,
    /// The nodes whose commitments count.
    named: BTreeMap<NodeId, Hash>,
    declined: BTreeSet<AgentId>,
    openings: BTreeMap<LogId, Opening>,
    /// The first in each log.
    drops: BTreeMap<LogId, Drops>,
    /// When it came.
    pub(crate) seen: Duration,
}

impl Closing {
    pub(crate) fn place(&self) -> EntryRef {
        self.position.place
    }

    pub(crate) fn author(&self) -> NodeId {
        self.position.place.log.author
    }

    /// Nodes that are to open, and have not.
    pub(crate) fn missing(&self) -> Vec<NodeId> {
        self.named.keys().filter(|node| !self.has_opened(**node)).copied().collect()
    }

    fn has_opened(&self, node: NodeId) -> bool {
        self.opening(node).is_some()
    }

    /// The opening of a node: the same nonce in each of its logs, or it would not match its commitment.
    fn opening(&self, node: NodeId) -> Option<&Opening> {
        of(&self.openings, node).next().map(|(_, opening)| opening)
    }

    /// Whether this node is to open here, and nobody has said that it came too late.
    pub(crate) fn waits_for(&self, node: NodeId) -> bool {
        let dropped = self.drops.values().any(|drops| drops.nodes.contains(&node));
        self.named.contains_key(&node) && !self.has_opened(node) && !dropped
    }

    /// The nodes that drop out: as the close's author says first of all; or else none, if all have opened;
    /// or else as the lowest by position says. `None`: it is not known yet.
    fn dropped(&self, unheard: &BTreeSet<NodeId>) -> Option<BTreeSet<NodeId>> {
        let own = of(&self.drops, self.author())
            .map(|(_, drops)| drops)
            .min_by_key(|drops| drops.position);
        if let Some(own) = own {
            return Some(own.nodes.clone());
        }
        if self.missing().iter().all(|node| unheard.contains(node)) {
            return Some(BTreeSet::new());
        }
        let lowest = self.drops_but_of(unheard).min_by_key(|drops| drops.position);
        lowest.map(|drops| drops.nodes.clone())
    }

    fn drops_but_of(&self, unheard: &BTreeSet<NodeId>) -> impl Iterator<Item = &Drops> {
        let drops = self.drops.iter().filter(|(log, _)| !unheard.contains(&log.author));
        drops.map(|(_, drops)| drops)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    position: Position,
    term: u64,
    pub(super) candidates: Arc<[Candidate]>,
    started_by: AgentId,
    /// The first in each log.
    commitments: BTreeMap<LogId, Commitment>,
    /// The first in each log.
    declined: BTreeMap<(AgentId, LogId), u64>,
    /// The first in each log.
    closings: BTreeMap<LogId, Closing>,
    /// The first in each log.
    cleared: BTreeMap<LogId, u64>,
    /// Nodes that forked a log. Others may hold more of theirs, or less: so none of it counts.
    pub(super) unheard: Arc<BTreeSet<NodeId>>,
    /// When it came, if it was news then.
    seen: Option<Duration>,
    /// It came in time for members to be told that it begins.
    in_time: bool,
    /// Members were told that it begins.
    pub(crate) announced: bool,
    /// It was here before this start of the node.
    pub(super) restored: bool,
}

impl Election {
    /// `None`: no honest node starts one like this.
    pub(super) fn new(written: &Written, started: ElectionStarted) -> Option<Election> {
        let good = |candidate: &Candidate| {
            (1..=AGENT_ID_BYTES_MAX).contains(&candidate.agent.len())
                && candidate.name.len() <= NAME_BYTES_MAX
        };
        let agents: BTreeSet<&AgentId> =
            started.candidates.iter().map(|candidate| &candidate.agent).collect();
        let sane = (1..=ELECTION_CANDIDATES_MAX).contains(&started.candidates.len())
            && agents.len() == started.candidates.len()
            && started.started_by.len() <= AGENT_ID_BYTES_MAX
            && started.candidates.iter().all(good)
            && started.term > 0;
        // How old it is when it comes, by the wall clocks.
        let age = Duration::from_millis(written.facts.wall_ms.abs_diff(written.now.wall_ms));
        sane.then(|| Election {
            position: written.position(),
            term: started.term,
            candidates: started.candidates.into(),
            started_by: started.started_by,
            commitments: BTreeMap::new(),
            declined: BTreeMap::new(),
            closings: BTreeMap::new(),
            cleared: BTreeMap::new(),
            unheard: Arc::default(),
            seen: (age < ELECTION_FRESH_FOR).then_some(written.now.mono),
            in_time: age < ELECTION_WINDOW + ELECTION_GRACE,
            announced: false,
            restored: false,
        })
    }

    // Taking in acts.

    pub(super) fn fold_commitment(&mut self, position: Position, hash: Hash) -> Folded {
        let log = position.place.log;
        if !self.hosts(log.author) {
            return Folded::Void;
        }
        self.commitments.entry(log).or_insert(Commitment { position, hash });
        Folded::Taken
    }

    pub(super) fn fold_declined(&mut self, place: EntryRef, agent: AgentId) -> Folded {
        if self.node_of(&agent) != Some(place.log.author) {
            return Folded::Void;
        }
        self.declined.entry((agent, place.log)).or_insert(place.seq);
        Folded::Taken
    }

    /// Whether it is the first in its log, which is the one that is known.
    pub(super) fn fold_closed(
        &mut self,
        position: Position,
        commitments: &[EntryRef],
        declined: &[EntryRef],
        seen: Duration,
    ) -> bool {
        if self.closings.contains_key(&position.place.log) {
            return false;
        }
        let commitments: BTreeSet<&EntryRef> = commitments.iter().collect();
        let declined: BTreeSet<&EntryRef> = declined.iter().collect();
        let named = self
            .commitments
            .values()
            .filter(|commitment| commitments.contains(&commitment.position.place));
        let refused = self.declined().filter(|(_, at)| declined.contains(at));
        let closing = Closing {
            position,
            named: lowest(named)
                .into_iter()
                .map(|(node, commitment)| (node, commitment.hash))
                .collect(),
            declined: refused.map(|(agent, _)| agent.clone()).collect(),
            openings: BTreeMap::new(),
            drops: BTreeMap::new(),
            seen,
        };
        self.closings.insert(position.place.log, closing);
        true
    }

    fn declined(&self) -> impl Iterator<Item = (&AgentId, EntryRef)> {
        self.declined.iter().map(|((agent, log), seq)| (agent, EntryRef { log: *log, seq: *seq }))
    }

    pub(super) fn fold_shown(
        &mut self,
        written: &Written,
        closed: EntryRef,
        nonce: [u8; 32],
    ) -> Folded {
        let place = written.place;
        let (node, election) = (place.log.author, self.position.place);
        let Some(closing) = self.closing_mut(closed) else { return Folded::Taken };
        let opens = commitment(written.room, election, node, &nonce);
        if closing.named.get(&node) != Some(&opens) {
            return Folded::Void;
        }
        closing.openings.entry(place.log).or_insert(Opening { seq: place.seq, nonce });
        Folded::Taken
    }

    /// Returns those of the nodes whose opening was here.
    pub(super) fn fold_dropped(
        &mut self,
        position: Position,
        closed: EntryRef,
        nodes: Vec<NodeId>,
    ) -> Vec<NodeId> {
        let Some(closing) = self.closing_mut(closed) else { return Vec::new() };
        let nodes: BTreeSet<NodeId> =
            nodes.into_iter().filter(|node| closing.named.contains_key(node)).collect();
        let opened = nodes.iter().copied().filter(|node| closing.has_opened(*node));
        let opened: Vec<NodeId> = opened.collect();
        if !nodes.is_empty() {
            let drops = Drops { position, nodes };
            closing.drops.entry(position.place.log).or_insert(drops);
        }
        opened
    }

    pub(super) fn fold_cleared(&mut self, place: EntryRef) {
        self.cleared.entry(place.log).or_insert(place.seq);
    }

    fn closing_mut(&mut self, closed: EntryRef) -> Option<&mut Closing> {
        self.closings.get_mut(&closed.log).filter(|closing| closing.place() == closed)
    }

    /// Nothing of this log counts from `seq` on.
    pub(super) fn forget_log(&mut self, log: LogId, seq: u64) {
        let counts = |of: &LogId, at: u64| *of != log || at < seq;
        self.commitments.retain(|of, commitment| counts(of, commitment.position.place.seq));
        self.declined.retain(|(_, of), at| counts(of, *at));
        self.closings.retain(|of, closing| counts(of, closing.place().seq));
        for closing in self.closings.values_mut() {
            closing.openings.retain(|of, opening| counts(of, opening.seq));
            closing.drops.retain(|of, drops| counts(of, drops.position.place.seq));
        }
        self.cleared.retain(|of, at| counts(of, *at));
    }

    // The outcome.

    pub(crate) fn place(&self) -> EntryRef {
        self.position.place
    }

    pub(crate) fn starter(&self) -> NodeId {
        self.position.place.log.author
    }

    pub(crate) fn started_by(&self) -> &AgentId {
        &self.started_by
    }

    /// Of two of one term the lower by position comes first.
    pub(crate) fn rank(&self) -> (u64, Reverse<Position>) {
        (self.term, Reverse(self.position))
    }

    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Whether this node has candidates.
    pub(crate) fn hosts(&self, node: NodeId) -> bool {
        self.candidates.iter().any(|candidate| candidate.node == node)
    }

    fn node_of(&self, agent: &str) -> Option<NodeId> {
        self.candidates
            .iter()
            .find(|candidate| *candidate.agent == *agent)
            .map(|candidate| candidate.node)
    }

    /// Whom this closing elects, if those drop out. `None`: somebody has still to open.
    fn elect(&self, closing: &Closing, dropped: &BTreeSet<NodeId>) -> Option<Option<&Candidate>> {
        let stays = |node: &NodeId| closing.named.contains_key(node) && !dropped.contains(node);
        let standing: Vec<&Candidate> = self
            .candidates
            .iter()
            .filter(|candidate| {
                stays(&candidate.node) && !closing.declined.contains(&candidate.agent)
            })
            .collect();
        if standing.is_empty() {
            return Some(None);
        }
        let mut nonces = Vec::new();
        for node in closing.named.keys().filter(|node| stays(node)) {
            nonces.push(closing.opening(*node)?.nonce);
        }
        let drawn = sha256(&[
            b"clawmesh election draw",
            &bytes(self.position.place),
            nonces.concat().as_slice(),
        ]);
        let among = u64::try_from(standing.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(first_8(drawn) % among).unwrap_or(0);
        Some(standing.get(index).copied())
    }

    /// Closings of nodes that forked no log.
    pub(super) fn closings(&self) -> impl Iterator<Item = &Closing> {
        self.closings.values().filter(|closing| !self.unheard.contains(&closing.author()))
    }

    /// Whether this closing counts. While the election runs the starter's own does, and others' only when
    /// that should have come: so nobody gains anything by closing early. How long it had run before a start
    /// is not known any more; closes of others counted by then.
    fn counts(&self, closing: &Closing, now: Duration) -> bool {
        let Some(age) = self.runs_for(now) else { return true };
        let late = self.restored || age >= ELECTION_WINDOW + ELECTION_GRACE;
        closing.author() == self.starter() || (late && !self.has_closed(self.starter()))
    }

    /// Whether there are closings that will count only when it is over.
    pub(super) fn is_disputed(&self, now: Duration) -> bool {
        self.closings().any(|closing| !self.counts(closing, now))
    }

    /// The outcome: of the closings that elect somebody, or nobody, the one in which most nodes took part
    /// to the end, then the starter's own, then the lowest by position. Nodes that forked a log are out.
    pub(crate) fn outcome(&self, now: Duration) -> Outcome<'_> {
        let unheard = &self.unheard;
        let closings =
            self.closings().filter(|closing| !self.is_void() && self.counts(closing, now));
        let results = closings.filter_map(|closing| {
            // Where nobody stands there is nothing to wait for.
            let nobody = || (self.elect(closing, unheard) == Some(None)).then(BTreeSet::new);
            let dropped = closing.dropped(unheard).or_else(nobody)?;
            let out: BTreeSet<NodeId> = dropped.union(unheard).copied().collect();
            let took_part = closing.named.keys().filter(|node| !out.contains(node)).count();
            let own = closing.author() == self.starter();
            Some(((took_part, own, Reverse(closing.position)), self.elect(closing, &out)?))
        });
        match results.max_by_key(|(rank, _)| *rank) {
            None => Outcome::Open,
            Some((_, None)) => Outcome::Nobody,
            Some((_, Some(leader))) => Outcome::Leader(leader),
        }
    }

    /// Whether somebody could take this agent of this node for the elected leader, with any other acts
    /// known: once true it stays true, so that all nodes judge decisions alike.
    pub(crate) fn may_have_elected(&self, agent: &str, node: NodeId) -> bool {
        self.closings.values().any(|closing| {
            let none = BTreeSet::new();
            let dropped = closing.drops.values().map(|drops| &drops.nodes).chain([&none]);
            let mut elected = dropped.filter_map(|dropped| self.elect(closing, dropped)).flatten();
            elected.any(|candidate| candidate.node == node && *candidate.agent == *agent)
        })
    }

    /// Whether its starter forked a log, so that others may not know of it.
    pub(crate) fn is_void(&self) -> bool {
        self.unheard.contains(&self.starter())
    }

    pub(crate) fn is_candidate(&self, agent: &str, node: NodeId) -> bool {
        self.node_of(agent) == Some(node)
    }

    pub(crate) fn is_cleared(&self) -> bool {
        self.cleared.keys().any(|log| !self.unheard.contains(&log.author))
    }

    /// Whether this log clears the election before `seq`.
    pub(crate) fn is_cleared_in(&self, log: LogId, seq: u64) -> bool {
        self.cleared.get(&log).is_some_and(|at| *at < seq)
    }

    // Acts that are due.

    /// How long it is since it came; `None` if it is nobody's business any more.
    pub(crate) fn runs_for(&self, now: Duration) -> Option<Duration> {
        let age = now.saturating_sub(self.seen?);
        (age < ELECTION_DEAD_AFTER).then_some(age)
    }

    /// Whether candidates may still decline.
    pub(crate) fn is_open(&self, now: Duration) -> bool {
        self.runs_for(now).is_some_and(|age| age < ELECTION_WINDOW) && !self.is_closed()
    }

    /// Whether members are to be told that it begins.
    pub(crate) fn is_to_be_announced(&self) -> bool {
        self.in_time && !self.announced && !self.is_closed()
    }

    /// Whether it came as news, and within this time.
    pub(super) fn is_younger(&self, now: Duration, time: Duration) -> bool {
        self.seen.is_some_and(|at| now.saturating_sub(at) < time)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.seen.is_some()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closings().next().is_some()
    }

    pub(crate) fn has_closed(&self, node: NodeId) -> bool {
        of(&self.closings, node).next().is_some()
    }

    pub(crate) fn has_committed(&self, node: NodeId) -> bool {
        of(&self.commitments, node).next().is_some()
    }

    pub(crate) fn has_declined(&self, agent: &AgentId) -> bool {
        let first = LogId { author: NodeId([0; 32]), incarnation: 0 };
        let next = self.declined.range((agent.clone(), first)..).next();
        next.is_some_and(|((declined, _), _)| declined == agent)
    }

    /// This node's candidates that have not declined.
    pub(crate) fn standing_at(&self, node: NodeId) -> impl Iterator<Item = &Candidate> {
        let own = self.candidates.iter().filter(move |candidate| candidate.node == node);
        own.filter(|candidate| !self.has_declined(&candidate.agent))
    }

    /// Commitments and refusals, as a `Closed` names them.
    pub(crate) fn close(&self) -> (Vec<EntryRef>, Vec<EntryRef>) {
        let commitments = lowest(self.commitments.values()).into_values();
        let commitments = commitments.map(|commitment| commitment.position.place).collect();
        (commitments, self.declined().map(|(_, place)| place).collect())
    }

    /// The closing that nodes open for now: nobody sees a nonce while there is time to commit.
    pub(crate) fn to_open(&self, now: Duration) -> Option<&Closing> {
        let counting = self.closings().filter(|closing| self.counts(closing, now));
        counting.min_by_key(|closing| closing.position)
    }

    /// Whether somebody has said who drops out of this closing.
    pub(crate) fn has_drops(&self, closing: &Closing) -> bool {
        closing.drops_but_of(&self.unheard).next().is_some()
    }

    /// Whether this node has opened: it does so once.
    pub(crate) fn has_opened(&self, node: NodeId) -> bool {
        self.closings.values().any(|closing| closing.has_opened(node))
    }
}

/// The entries of a map for an author's logs.
fn of<T>(logs: &BTreeMap<LogId, T>, author: NodeId) -> impl Iterator<Item = (&LogId, &T)> {
    let log = |incarnation| LogId { author, incarnation };
    logs.range(log(0)..=log(u64::MAX))
}

/// Of each node the lowest by position.
fn lowest<'c>(all: impl Iterator<Item = &'c Commitment>) -> BTreeMap<NodeId, &'c Commitment> {
    let mut lowest: BTreeMap<NodeId, &Commitment> = BTreeMap::new();
    for commitment in all {
        let known = lowest.entry(commitment.position.place.log.author).or_insert(commitment);
        if commitment.position < known.position {
            *known = commitment;
        }
    }
    lowest
}
