//! One vote: its ballots and closes as they are written, the ones that count, and the notes that only this
//! node has.

mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::rules::{bytes, longest_ms, nonce};
use crate::{
    api::batch::{ToldResult, VoteNote},
    fold::act::{Folded, Revision, Spoken, Written},
    limits::{VOTE_BALLOTS_EACH_MAX, VOTE_CLOSES_MAX, VOTE_SHOW_WITHIN, VOTE_SHOWN_AT_ONCE_MAX},
    name::{
        id::{
            AgentId, EntryRef, Hash, KeyPrint, LocalRef, LogId, MessageId, NodeId, Position, RoomId,
        },
        identity::Identity,
    },
    wire::acts::{BallotCast, BallotsShown, Shown, VoteClosed, VoteImported, VoteOpened},
};

/// One sealed ballot.
#[derive(Clone, Debug)]
struct Ballot {
    clock: u64,
    agent: AgentId,
    key: Option<KeyPrint>,
    commitment: Hash,
    open: Option<Open>,
}

/// The choice of a ballot that was opened.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Index of an option.
    choice: usize,
    /// Log seq of the entry that shows it.
    by: u64,
}

/// An agent that may vote, and the ballots in its name.
#[derive(Clone, Debug)]
struct Voter {
    /// Their place among those who may vote.
    nth: usize,
    name: String,
    ballots: BTreeSet<Position>,
}

/// No more ballots.
#[derive(Clone, Debug)]
struct Close {
    /// When it was written, by its author's clock. Unix milliseconds.
    wall_ms: u64,
    /// The ballots of this vote that it names.
    ballots: BTreeSet<EntryRef>,
}

/// Notes on a vote that only this node has.
#[derive(Clone, Debug, Default)]
struct Here {
    /// The choices of this node's agents, by the log seq of their ballots, until they are opened.
    choices: BTreeMap<u64, u32>,
    told: Option<ToldResult>,
    /// Since when it counts as closed here.
    closed: Option<Duration>,
    /// All closes are void by which it was: it has a result again when there is another one.
    void: bool,
    /// The ballots named by the close that was told, if that is void: not kept over a restart.
    had: Option<BTreeSet<EntryRef>>,
    /// Since when it should have been closed.
    due: Option<Duration>,
    /// The notes differ from those in the store.
    dirty: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Vote {
    at: LocalRef,
    place: EntryRef,
    /// The id that it was brought with.
    foreign: Option<MessageId>,
    title: Arc<str>,
    description: Option<Arc<str>>,
    options: Arc<[String]>,
    created_by: AgentId,
    created_ms: u64,
    closes_ms: Option<u64>,
    voters: BTreeMap<AgentId, Voter>,
    /// How many of them have cast a ballot that is theirs.
    cast: usize,
    ballots: BTreeMap<EntryRef, Ballot>,
    /// Ballots that are not proven to be their voters', as far as is known here.
    unproven: BTreeSet<EntryRef>,
    /// Whether one has come since ballots were judged.
    has_fresh: bool,
    /// As it was then.
    revision: Revision,
    /// Each log's first close.
    closes: BTreeMap<Position, Close>,
    /// It ended elsewhere.
    imported: Option<Ended>,
    here: Here,
    bytes: usize,
}

/// How an imported vote ended.
#[derive(Clone, Debug)]
struct Ended {
    eligible: usize,
    tally: Vec<u64>,
}

/// Folding.
impl Vote {
    pub(super) fn new(written: &Written, opened: VoteOpened) -> Vote {
        let bytes = bytes(&opened);
        let mut voters = BTreeMap::new();
        for (nth, named) in opened.eligible.into_iter().enumerate() {
            let voter = Voter { nth, name: named.name, ballots: BTreeSet::new() };
            voters.entry(named.agent).or_insert(voter);
        }
        Vote {
            at: written.at,
            place: written.place,
            foreign: None,
            title: opened.title.into(),
            description: opened.description.map(Arc::from),
            options: opened.options.into(),
            created_by: opened.created_by,
            created_ms: written.facts.wall_ms,
            closes_ms: opened.closes_ms,
            voters,
            cast: 0,
            ballots: BTreeMap::new(),
            unproven: BTreeSet::new(),
            has_fresh: false,
            revision: Revision::default(),
            closes: BTreeMap::new(),
            imported: None,
            here: Here::default(),
            bytes,
        }
    }

    /// One that is over, and of which everybody was told.
    pub(super) fn imported(written: &Written, imported: VoteImported) -> Vote {
        let VoteImported { title, description, options, created_by, closes_ms, .. } = imported;
        let eligible = Vec::new();
        let opened = VoteOpened { title, description, options, eligible, created_by, closes_ms };
        let mut vote = Vote::new(written, opened);
        let eligible = usize::try_from(imported.eligible).unwrap_or(usize::MAX);
        vote.foreign = imported.id;
        vote.imported = Some(Ended { eligible, tally: imported.tally });
        vote.here.closed = Some(Duration::ZERO);
        vote.here.told = Some(ToldResult { close: None, missing: Vec::new() });
        vote
    }

    pub(super) fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    pub(super) fn fold_cast(&mut self, position: Position, ballot: BallotCast) -> Folded {
        let Position { clock, place } = position;
        let Some(voter) = self.voters.get_mut(&ballot.agent) else { return Folded::Void };
        if voter.ballots.iter().any(|other| other.place.log == place.log) {
            return Folded::Void;
        }
        voter.ballots.insert(position);
        let BallotCast { agent, commitment, key, .. } = ballot;
        // The lowest by position, so that it is the same ones everywhere.
        let over = voter.ballots.len() > VOTE_BALLOTS_EACH_MAX;
        let over = over.then(|| voter.ballots.pop_last()).flatten();
        let ballot = Ballot { clock, agent, key, commitment, open: None };
        self.ballots.insert(place, ballot);
        self.unproven.insert(place);
        self.has_fresh = true;
        if let Some(last) = over {
            self.ballots.remove(&last.place);
            self.unproven.remove(&last.place);
            self.count_cast();
            return Folded::Overflow;
        }
        Folded::Taken
    }

    pub(super) fn fold_closed(&mut self, written: &Written, close: &VoteClosed) -> Folded {
        let (position, wall_ms) = (written.position(), written.facts.wall_ms);
        if self.closes.keys().any(|other| other.place.log == position.place.log) {
            return Folded::Void;
        }
        // All that it names is here: an entry that is no ballot of this vote now will never be one.
        let named = close.ballots.iter().filter_map(|(log, seq)| {
            let log = *close.logs.get(usize::try_from(*log).ok()?)?;
            Some(EntryRef { log, seq: *seq })
        });
        let ballots: BTreeSet<EntryRef> =
            named.filter(|place| self.ballots.contains_key(place)).collect();
        let sound = ballots.len() == close.ballots.len();
        self.closes.insert(position, Close { wall_ms, ballots });
        if self.closes.len() > VOTE_CLOSES_MAX {
            let counts = self.counting().map(|(position, _)| *position);
            let last =
                self.closes.keys().rev().find(|position| Some(**position) != counts).copied();
            last.map(|last| self.closes.remove(&last));
        }
        if sound { Folded::Taken } else { Folded::Void }
    }

    pub(super) fn fold_shown(&mut self, written: &Written, shown: &BallotsShown) -> Folded {
        let wrong = shown.ballots.iter().filter(|one| !self.open(written, one)).count();
        if wrong == 0 { Folded::Taken } else { Folded::Void }
    }

    fn open(&mut self, written: &Written, shown: &Shown) -> bool {
        let by = written.place;
        let place = EntryRef { log: by.log, seq: shown.seq };
        let Some(ballot) = self.ballots.get_mut(&place).filter(|_| shown.seq < by.seq) else {
            return false;
        };
        let expected = BallotCast::commitment(
            written.room,
            self.place,
            &ballot.agent,
            shown.choice,
            &shown.nonce,
        );
        let choice = usize::try_from(shown.choice).ok().filter(|nth| *nth < self.options.len());
        let Some(choice) = choice.filter(|_| ballot.commitment == expected) else { return false };
        ballot.open.get_or_insert(Open { choice, by: by.seq });
        true
    }

    /// The entries at these places do not count.
    pub(super) fn cut(&mut self, void: impl Fn(&EntryRef) -> bool) {
        self.ballots.retain(|place, _| !void(place));
        for (place, ballot) in &mut self.ballots {
            let by = ballot.open.map(|open| EntryRef { log: place.log, seq: open.by });
            if by.is_some_and(|by| void(&by)) {
                ballot.open = None;
            }
        }
        for voter in self.voters.values_mut() {
            voter.ballots.retain(|position| !void(&position.place));
        }
        self.unproven.retain(|place| !void(place));
        self.count_cast();
        let told = self.here.told.as_ref().and_then(|told| told.close);
        let mut gone = self.closes.extract_if(.., |position, _| void(&position.place));
        let had =
            gone.find(|(position, _)| Some(position.place) == told).map(|(_, close)| close.ballots);
        gone.for_each(drop);
        self.here.had = had.or(self.here.had.take());
        self.here.void |= self.is_closed() && !self.has_close();
    }
}

/// Ballots that are their voters'.
impl Vote {
    /// Looks again at ballots that are not proven to be their voters', if there is any news; and at all of them if something that was
    /// proven may not be any more. `proves`: whether an act counts as its agent's, at this revision.
    pub(crate) fn judge(&mut self, revision: Revision, proves: impl Fn(&Spoken<'_>) -> bool) {
        let before = std::mem::replace(&mut self.revision, revision);
        if revision.withdrawals != before.withdrawals {
            self.unproven = self.ballots.keys().copied().collect();
            self.cast = 0;
        }
        // Made-up ballots are never proven: they are not to cost anything at every tick.
        if !std::mem::take(&mut self.has_fresh) && revision == before {
            return;
        }
        let proves = |place: &EntryRef| {
            self.ballots.get(place).is_some_and(|ballot| {
                let (node, key, agent) = (place.log.author, ballot.key, &ballot.agent);
                proves(&Spoken { node, key, agent })
            })
        };
        let proven: Vec<EntryRef> = self.unproven.iter().copied().filter(proves).collect();
        for place in proven {
            let ballot = self.ballots.get(&place);
            let is_first = ballot.is_some_and(|ballot| !self.has_voted(&ballot.agent));
            self.cast += usize::from(is_first);
            self.unproven.remove(&place);
        }
    }

    fn count_cast(&mut self) {
        self.cast = self.voters.values().filter(|voter| self.has_cast(voter)).count();
    }

    fn has_cast(&self, voter: &Voter) -> bool {
        voter.ballots.iter().any(|position| self.ballot(&position.place).is_some())
    }

    /// The ballot at this place, if it is its voter's.
    fn ballot(&self, place: &EntryRef) -> Option<&Ballot> {
        self.ballots.get(place).filter(|_| !self.unproven.contains(place))
    }
}

/// Ballots that count.
impl Vote {
    /// The close that counts, of those that are here.
    fn counting(&self) -> Option<(&Position, &Close)> {
        let own =
            self.closes.iter().find(|(position, _)| position.place.log.author == self.opener());
        own.or_else(|| self.closes.first_key_value())
    }

    /// The ballots that count, as far as the closes that are here say.
    fn counted(&self) -> impl Iterator<Item = (EntryRef, &Ballot)> {
        let named = self.counting().map(|(_, close)| &close.ballots);
        let mut lowest: BTreeMap<&AgentId, Position> = BTreeMap::new();
        for place in named.into_iter().flatten() {
            let Some(ballot) = self.ballot(place) else { continue };
            let position = Position { clock: ballot.clock, place: *place };
            let known = lowest.entry(&ballot.agent).or_insert(position);
            *known = position.min(*known);
        }
        let places = lowest.into_values().map(|position| position.place);
        places.filter_map(|place| Some((place, self.ballots.get(&place)?)))
    }

    /// Ballots that the close names and that are not their voters', as far as is known here.
    fn named_in_vain(&self) -> impl Iterator<Item = EntryRef> {
        let named = self.counting().map(|(_, close)| &close.ballots);
        named.into_iter().flatten().copied().filter(|place| self.unproven.contains(place))
    }

    pub(crate) fn place(&self) -> EntryRef {
        self.place
    }

    pub(crate) fn at(&self) -> LocalRef {
        self.at
    }

    pub(crate) fn id(&self, room: RoomId) -> MessageId {
        self.foreign.unwrap_or_else(|| MessageId::new(room, self.place.log, self.place.seq))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The agent that wanted it.
    pub(crate) fn created_by(&self) -> &AgentId {
        &self.created_by
    }

    /// The node that opened it, and closes it.
    pub(crate) fn opener(&self) -> NodeId {
        self.place.log.author
    }

    /// Whether a close of any node is here.
    pub(crate) fn has_close(&self) -> bool {
        self.is_imported() || !self.closes.is_empty()
    }

    #[cfg(test)]
    pub(super) fn forget_had(&mut self) {
        self.here.had = None;
    }

    #[cfg(test)]
    pub(crate) fn is_closed_by(&self, node: NodeId) -> bool {
        self.closes.keys().any(|position| position.place.log.author == node)
    }

    /// Whether its opener has closed it: which nobody can overrule.
    pub(crate) fn has_opener_close(&self) -> bool {
        self.closes.keys().any(|position| position.place.log.author == self.opener())
    }

    /// Whether everybody who may has voted.
    pub(crate) fn is_complete(&self) -> bool {
        self.cast == self.voters.len()
    }

    pub(crate) fn created_ms(&self) -> u64 {
        self.created_ms
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.closes_ms.is_some()
    }

    /// Whether its deadline has passed; without one it is closed in the end all the same.
    pub(crate) fn is_overdue(&self, wall_ms: u64) -> bool {
        wall_ms >= self.closes_ms.unwrap_or(self.created_ms.saturating_add(longest_ms()))
    }

    pub(crate) fn may_vote(&self, agent: &AgentId) -> bool {
        self.voters.contains_key(agent)
    }

    pub(crate) fn has_voted(&self, agent: &AgentId) -> bool {
        self.voters.get(agent).is_some_and(|voter| self.has_cast(voter))
    }

    /// Those who may vote, and have not.
    pub(crate) fn yet_to_vote(&self) -> impl Iterator<Item = &AgentId> {
        self.voters.iter().filter(|(_, voter)| !self.has_cast(voter)).map(|(agent, _)| agent)
    }

    pub(crate) fn options(&self) -> usize {
        self.options.len()
    }

    /// How many have voted, and may.
    pub(crate) fn turnout(&self) -> (usize, usize) {
        (self.cast, self.voters.len())
    }

    /// The close that this node would write now: of each agent the lowest ballot by position that is its own, and whose key is
    /// `good`.
    pub(crate) fn close(&self, good: impl Fn(KeyPrint) -> bool) -> VoteClosed {
        let mut logs: Vec<LogId> = Vec::new();
        let mut ballots = Vec::new();
        let counts = |position: &&Position| {
            self.ballot(&position.place).is_some_and(|ballot| ballot.key.is_none_or(&good))
        };
        for position in self.voters.values().filter_map(|voter| voter.ballots.iter().find(counts)) {
            let log = logs.iter().position(|log| *log == position.place.log).unwrap_or_else(|| {
                logs.push(position.place.log);
                logs.len() - 1
            });
            ballots.push((u32::try_from(log).unwrap_or(u32::MAX), position.place.seq));
        }
        VoteClosed { vote: self.place, logs, ballots }
    }
}

/// Notes of this node.
impl Vote {
    pub(super) fn restore(&mut self, note: VoteNote) {
        self.here.choices = note.choices.into_iter().collect();
        self.here.closed = note.told.is_some().then_some(Duration::ZERO);
        self.here.told = note.told;
    }

    /// The notes that have to be kept over a restart, if they have changed.
    pub(crate) fn take_note(&mut self) -> Option<Option<VoteNote>> {
        if !std::mem::take(&mut self.here.dirty) {
            return None;
        }
        let choices: Vec<(u64, u32)> =
            self.here.choices.iter().map(|(seq, choice)| (*seq, *choice)).collect();
        let told = self.here.told.clone();
        Some((!choices.is_empty() || told.is_some()).then_some(VoteNote { choices, told }))
    }

    /// The ballot at `seq` of this node's log is for this option.
    pub(crate) fn choose(&mut self, seq: u64, choice: u32) {
        self.here.choices.insert(seq, choice);
        self.here.dirty = true;
    }

    /// Takes what is to be shown of the ballots in this node's log, and forgets choices that will
    /// never count.
    pub(crate) fn show_own(
        &mut self,
        identity: &Identity,
        room: RoomId,
        log: LogId,
    ) -> Vec<BallotsShown> {
        let own = self.counted().filter(|(place, _)| place.log == log);
        let shown = own.filter_map(|(place, ballot)| {
            let choice = *self.here.choices.get(&place.seq)?;
            let nonce = nonce(identity, room, self.place, &ballot.agent);
            Some(Shown { seq: place.seq, choice, nonce })
        });
        let shown: Vec<Shown> = shown.collect();
        self.here.dirty |= !shown.is_empty() || self.has_opener_close();
        for one in &shown {
            self.here.choices.remove(&one.seq);
        }
        // A close of another node may yet be overruled by one that names others.
        if self.has_opener_close() {
            self.here.choices.clear();
        }
        let vote = self.place;
        let parts = shown.chunks(VOTE_SHOWN_AT_ONCE_MAX);
        parts.map(|part| BallotsShown { vote, ballots: part.to_vec() }).collect()
    }

    pub(crate) fn has_choices(&self) -> bool {
        !self.here.choices.is_empty()
    }

    /// Whether it counts as closed here: no ballots are taken any more, and those that count are
    /// opened. Once it is, it stays so until a restart.
    pub(crate) fn is_closed(&self) -> bool {
        self.here.closed.is_some()
    }

    pub(crate) fn mark_closed(&mut self, now: Duration) {
        if std::mem::take(&mut self.here.void) {
            self.here.closed = Some(now);
        }
        self.here.closed.get_or_insert(now);
    }

    pub(crate) fn closed_for(&self, now: Duration) -> Option<Duration> {
        self.here.closed.map(|since| now.saturating_sub(since))
    }

    /// For how long a close has been due without a break.
    pub(crate) fn due_for(&mut self, now: Duration, due: bool) -> Option<Duration> {
        self.here.due = self.here.due.or(Some(now)).filter(|_| due);
        self.here.due.map(|since| now.saturating_sub(since))
    }

    /// Whether the result may be seen: all its ballots are open, or were waited for for long enough.
    pub(crate) fn has_result(&self, now: Duration) -> bool {
        let open = || {
            self.named_in_vain().next().is_none()
                && self.counted().all(|(_, ballot)| ballot.open.is_some())
        };
        let closed_for = self.closed_for(now);
        let shown = |since| self.is_told() || since >= VOTE_SHOW_WITHIN || open();
        self.has_close() && closed_for.is_some_and(shown)
    }

    pub(crate) fn is_told(&self) -> bool {
        self.here.told.is_some()
    }

    /// Local members are told the result now.
    pub(crate) fn mark_told(&mut self) {
        let missing = self.counted().filter(|(_, ballot)| ballot.open.is_none());
        let missing = missing.map(|(place, _)| place).chain(self.named_in_vain()).collect();
        let close = self.counting().map(|(position, _)| position.place);
        self.here.told = Some(ToldResult { close, missing });
        self.here.dirty = true;
    }

    /// When the close that counts was written, by its author's clock. Unix milliseconds.
    pub(crate) fn ended_ms(&self) -> Option<u64> {
        self.counting().map(|(_, close)| close.wall_ms)
    }
}
