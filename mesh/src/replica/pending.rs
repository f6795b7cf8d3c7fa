//! Runs that wait: for the entries before them, for their bodies, for entries that they build on.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use crate::{
    limits::{
        GONE_AFTER, HOLE_AFTER, HOLE_AFTER_SILENCE, PENDING_BYTES_MAX, PENDING_FOR,
        PENDING_RUNS_PER_ROOM_MAX, WANT_TIMEOUT,
    },
    name::id::{LogId, NodeId, sha256},
    turn::context::Context,
    wire::{
        entry::Gone,
        message::Head,
        run::{Carried, Run, Verified},
    },
};

/// A run by its log and first log seq.
pub(crate) type Key = (LogId, u64);

/// One run that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) run: Verified,
    /// Bodies that came apart from it.
    pub(crate) bodies: BTreeMap<u64, Vec<u8>>,
    /// Some do: most runs come whole, and nobody is asked for anything of them.
    apart: bool,
    /// The peer that sent the run: it has the bodies, but for those that are gone.
    pub(crate) from: NodeId,
    since: Duration,
    asking: Option<Asking>,
    /// The peer that was asked last, and when.
    last_asked: Option<(NodeId, Duration)>,
    /// The peers that were asked since all of them were.
    asked: BTreeSet<NodeId>,
    /// The peers that have said that they do not have the missing bodies.
    without: BTreeSet<NodeId>,
    bytes: usize,
}

/// A question that is out.
#[derive(Clone, Debug)]
struct Asking {
    peer: NodeId,
    at: Duration,
    /// Places of which the peer has not said anything.
    open: BTreeSet<u64>,
    /// Some of the missing bodies are gone.
    gone: bool,
}

/// The bodies that a room needs, by the stamps of their entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Older entries may go without: the room would drop their bodies. Unix milliseconds.
    pub(crate) from_ms: u64,
    /// Older entries may go without once it is certain that nobody has the body.
    pub(crate) certain_ms: u64,
    /// A stamp after this says nothing of when the entry was written: the same.
    pub(crate) ahead_ms: u64,
}

impl Needs {
    /// Whether an honest node may have dropped a body with this stamp.
    fn may_be_gone(self, wall_ms: u64) -> bool {
        wall_ms < self.certain_ms || wall_ms > self.ahead_ms
    }
}

impl Waiting {
    fn new(run: Verified, from: NodeId, since: Duration) -> Waiting {
        let bytes = run.run().size();
        let apart = run.run().entries.iter().any(|entry| !matches!(entry.body, Carried::Here(_)));
        Waiting {
            run,
            bodies: BTreeMap::new(),
            apart,
            from,
            since,
            asking: None,
            last_asked: None,
            asked: BTreeSet::new(),
            without: BTreeSet::from([from]),
            bytes,
        }
    }

    /// Places from entry index `skip` on whose bodies have not come and are needed; whether they are gone
    /// for the peer that sent the run.
    pub(crate) fn lacks(
        &self,
        skip: usize,
        needs: Needs,
    ) -> impl Iterator<Item = (u64, bool)> + '_ {
        let entries = (self.run.run().first..).zip(&self.run.run().entries).skip(skip);
        entries.filter_map(move |(seq, entry)| {
            let gone = match &entry.body {
                Carried::Here(_) => return None,
                Carried::Apart { .. } => false,
                Carried::Gone(_) if entry.facts.wall_ms < needs.from_ms => return None,
                Carried::Gone(_) => true,
            };
            (!self.bodies.contains_key(&seq)).then_some((seq, gone))
        })
    }

    /// Whether no bodies are missing from entry index `skip` on but those that nobody has (`nobody`), and
    /// those old enough that nobody need have them.
    pub(crate) fn is_complete(&self, skip: usize, needs: Needs, nobody: impl Fn() -> bool) -> bool {
        let needs_not = |seq: u64| {
            let entry = usize::try_from(seq - self.run.run().first).ok();
            let entry = entry.and_then(|i| self.run.run().entries.get(i));
            entry.is_some_and(|entry| needs.may_be_gone(entry.facts.wall_ms))
        };
        self.lacks(skip, needs).all(|(seq, gone)| gone && needs_not(seq) && nobody())
    }

    /// The peer that was asked has answered for this place: with a body, or without.
    fn answered(&mut self, from: NodeId, seq: u64) {
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.peer == from) {
            asking.open.remove(&seq);
            if asking.open.is_empty() {
                self.asking = None;
                self.without.insert(from);
            }
        }
    }

    /// Whether the body of this place was to come apart from the run, and is old.
    fn may_be_dropped(&self, seq: u64, needs: Needs) -> bool {
        let i = seq.checked_sub(self.run.run().first).and_then(|i| usize::try_from(i).ok());
        let entry = i.and_then(|i| self.run.run().entries.get(i));
        let apart = entry.filter(|entry| matches!(entry.body, Carried::Apart { .. }));
        apart.is_some_and(|entry| needs.may_be_gone(entry.facts.wall_ms))
    }

    /// Keeps a body if it belongs in this place.
    fn add_body(&mut self, seq: u64, body: Vec<u8>) {
        let Some(i) = seq.checked_sub(self.run.run().first) else { return };
        let entry = usize::try_from(i).ok().and_then(|i| self.run.run().entries.get(i));
        let (hash, len) = match entry.map(|entry| &entry.body) {
            Some(Carried::Apart { hash, len } | Carried::Gone(Gone { hash, len })) => (hash, *len),
            Some(Carried::Here(_)) | None => return,
        };
        if len == body.len() as u64 && sha256(&[&body]) == *hash {
            self.bytes += body.len();
            if let Some(old) = self.bodies.insert(seq, body) {
                self.bytes -= old.len();
            }
        }
    }

    /// Another copy of the run has bodies that are gone in this one.
    fn fill_from(&mut self, other: &Run) {
        for (seq, entry) in (other.first..).zip(&other.entries) {
            if let Carried::Here(body) = &entry.body {
                self.add_body(seq, body.to_vec());
            }
        }
    }

    /// Whom to ask for bodies: of those who are connected and may have them one who was not asked.
    fn next_to_ask(&mut self, peers: &BTreeSet<NodeId>) -> Option<NodeId> {
        let author = self.run.run().log.author;
        let may_have: Vec<NodeId> = peers.difference(&self.without).copied().collect();
        if may_have.iter().all(|node| self.asked.contains(node)) {
            self.asked.clear();
        }
        let mut next = may_have.into_iter().filter(|node| !self.asked.contains(node));
        next.clone().find(|node| *node == author).or_else(|| next.next())
    }
}

/// See the module. Bounded by [`PENDING_RUNS_PER_ROOM_MAX`] and [`PENDING_BYTES_MAX`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    runs: BTreeMap<Key, Waiting>,
    /// Since when, and until when, some body was gone that is needed here.
    lacking: Option<(Duration, Duration)>,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Of each log what does not begin behind a gap: the rest need not be looked at.
    pub(crate) fn next_in_logs(&self, head_of: impl Fn(LogId) -> u64) -> Vec<Key> {
        let (mut next, mut from) = (Vec::new(), Bound::Unbounded);
        while let Some(((log, _), _)) = self.runs.range((from, Bound::Unbounded)).next() {
            let reachable = (*log, 0)..=(*log, head_of(*log).saturating_add(1));
            next.extend(self.runs.range(reachable).map(|(key, _)| *key));
            from = Bound::Excluded((*log, u64::MAX));
        }
        next
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.runs.keys().copied().collect()
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Waiting> {
        self.runs.get(&key)
    }

    pub(crate) fn take(&mut self, cx: &mut Context, key: Key) -> Option<Waiting> {
        let waiting = self.runs.remove(&key)?;
        cx.memory.pending -= waiting.bytes;
        Some(waiting)
    }

    /// Keeps a run that cannot be accepted yet. When there is no room it is dropped, and fetched again
    /// later: the oldest runs are the ones that can be accepted next.
    pub(crate) fn keep(&mut self, cx: &mut Context, run: Verified, from: NodeId) {
        let full = self.runs.len() >= PENDING_RUNS_PER_ROOM_MAX
            || cx.memory.pending + run.run().size() > PENDING_BYTES_MAX;
        if full {
            cx.faults.overflow += 1;
        } else {
            self.insert(cx, run, from);
        }
    }

    /// Keeps a run that is next in its log; others may have to go for it.
    pub(crate) fn keep_next(&mut self, cx: &mut Context, run: Verified, from: NodeId) {
        while self.runs.len() >= PENDING_RUNS_PER_ROOM_MAX
            || (cx.memory.pending > PENDING_BYTES_MAX && !self.runs.is_empty())
        {
            let Some((key, _)) = self.runs.iter().max_by_key(|((_, first), _)| *first) else {
                break;
            };
            let key = *key;
            cx.faults.overflow += 1;
            self.take(cx, key);
        }
        self.insert(cx, run, from);
    }

    fn insert(&mut self, cx: &mut Context, run: Verified, from: NodeId) {
        let key = (run.run().log, run.run().first);
        let old = self.take(cx, key);
        // Of two runs that begin alike the shorter one is as its author sealed it: a peer that has several
        // can join them under the last seal, and then the entries between them would be waited for. Bodies
        // that came stay; the rest is asked for.
        let waiting = match old {
            Some(mut old) if old.run.run().last() <= run.run().last() => {
                old.fill_from(run.run());
                old
            }
            old => {
                let mut waiting = Waiting::new(run, from, cx.now.mono);
                if let Some(old) = old {
                    waiting.fill_from(old.run.run());
                    for (seq, body) in old.bodies {
                        waiting.add_body(seq, body);
                    }
                }
                waiting
            }
        };
        cx.memory.pending += waiting.bytes;
        self.runs.insert(key, waiting);
    }

    /// Takes out what has waited for too long.
    pub(crate) fn expire(&mut self, cx: &mut Context) -> Vec<Waiting> {
        let old = |run: &Waiting| cx.now.mono >= run.since + PENDING_FOR;
        let expired: Vec<Key> =
            self.runs.iter().filter(|(_, run)| old(run)).map(|(key, _)| *key).collect();
        expired.into_iter().filter_map(|key| self.take(cx, key)).collect()
    }

    /// A body has come, or (empty) word that `from` does not have it. Kept if a run waits for just this
    /// one.
    pub(crate) fn add_body(&mut self, cx: &mut Context, from: NodeId, entry: Head, body: Vec<u8>) {
        let Some((_, waiting)) = self.run_with(entry) else { return };
        cx.memory.pending -= waiting.bytes;
        waiting.add_body(entry.seq, body);
        waiting.answered(from, entry.seq);
        cx.memory.pending += waiting.bytes;
    }

    /// Word that `from` does not have a body. If it is the author, which has dropped the body since it sent
    /// the run, the run is forgotten: as it is sent now, it says so. `false`: it is not.
    pub(crate) fn forget_if_dropped(
        &mut self,
        cx: &mut Context,
        from: NodeId,
        entry: Head,
        needs: Needs,
    ) -> bool {
        let Some((key, waiting)) = self.run_with(entry) else { return false };
        let dropped = from == entry.log.author && waiting.may_be_dropped(entry.seq, needs);
        dropped && self.take(cx, key).is_some()
    }

    /// The run in which an entry waits, if it does.
    fn run_with(&mut self, entry: Head) -> Option<(Key, &mut Waiting)> {
        let Head { log, seq } = entry;
        self.runs.range_mut((log, 0)..=(log, seq)).next_back().map(|(key, run)| (*key, run))
    }

    /// Bodies to be asked for now, by the peer to ask: one of `peers`, which are connected and have the
    /// room. Bodies apart: their author or the sender of their run first, after that `another`, which has
    /// the entry. For bodies that are gone: everybody in turn.
    pub(crate) fn bodies_to_ask(
        &mut self,
        now: Duration,
        peers: &BTreeSet<NodeId>,
        needs: Needs,
        another: impl Fn(Head) -> Option<NodeId>,
    ) -> BTreeMap<NodeId, Vec<Head>> {
        let mut out: BTreeMap<NodeId, Vec<Head>> = BTreeMap::new();
        let mut any_gone = false;
        for waiting in self.runs.values_mut().filter(|run| run.apart) {
            if let Some(asking) =
                waiting.asking.as_ref().filter(|asking| now < asking.at + WANT_TIMEOUT)
            {
                any_gone |= asking.gone;
                continue;
            }
            let lacks: Vec<(u64, bool)> = waiting.lacks(0, needs).collect();
            let Some((last, _)) = lacks.last() else { continue };
            let gone = lacks.iter().any(|(_, gone)| *gone);
            let all_gone = lacks.iter().all(|(_, gone)| *gone);
            any_gone |= gone;
            let log = waiting.run.run().log;
            let peer = if all_gone {
                let Some(peer) = waiting.next_to_ask(peers) else { continue };
                peer
            } else {
                // The author has them for certain; a peer that relayed its run may wait for them, too.
                let first_time = waiting.asked.is_empty();
                let author = Some(log.author).filter(|node| peers.contains(node));
                let head = Head { log, seq: *last };
                let from = Some(waiting.from).filter(|node| peers.contains(node));
                let first = if first_time { author } else { another(head).or(author) };
                let Some(peer) = first.or(from).or_else(|| another(head)) else { continue };
                peer
            };
            // A peer that says at once that it has nothing would be asked again at once, for ever.
            if waiting.last_asked.is_some_and(|(last, at)| last == peer && now < at + WANT_TIMEOUT)
            {
                continue;
            }
            waiting.last_asked = Some((peer, now));
            waiting.asked.insert(peer);
            let open = lacks.iter().map(|(seq, _)| *seq).collect();
            waiting.asking = Some(Asking { peer, at: now, open, gone });
            let heads = lacks.iter().map(|(seq, _)| Head { log, seq: *seq });
            out.entry(peer).or_default().extend(heads);
        }
        self.note_lacking(now, any_gone);
        out
    }

    fn note_lacking(&mut self, now: Duration, lacking: bool) {
        match &mut self.lacking {
            // The next missing bodies have been missing as long: one wait is enough for all of them.
            Some((_, until)) if lacking => *until = now,
            Some((_, until)) if now >= *until + HOLE_AFTER => self.lacking = None,
            Some(_) => {}
            None => self.lacking = lacking.then_some((now, now)),
        }
    }

    /// Whether it is certain that no reachable node has the missing bodies of this run: all `peers`, which
    /// are connected and have the room, have said so, and there was time for others to come back, if there
    /// are any (`others`).
    pub(crate) fn nobody_has(
        &self,
        now: Duration,
        peers: &BTreeSet<NodeId>,
        others: bool,
        waiting: &Waiting,
    ) -> bool {
        let wait = if others { HOLE_AFTER } else { GONE_AFTER };
        let long = self.lacking.is_some_and(|(since, _)| now >= since + wait);
        let all = !peers.is_empty() && peers.is_subset(&waiting.without);
        (long && all) || now >= waiting.since + HOLE_AFTER_SILENCE
    }

    /// The log seq up to which runs of this log wait without a gap above `head`.
    pub(crate) fn reaches(&self, log: LogId, head: u64) -> u64 {
        let mut end = head;
        for ((_, first), waiting) in self.runs.range((log, 0)..=(log, u64::MAX)) {
            if *first <= end + 1 {
                end = end.max(waiting.run.run().last());
            }
        }
        end
    }

    pub(crate) fn forget_author(&mut self, cx: &mut Context, author: NodeId) {
        for key in self.keys() {
            if key.0.author == author {
                self.take(cx, key);
            }
        }
    }

    pub(crate) fn clear(&mut self, cx: &mut Context) {
        for key in self.keys() {
            self.take(cx, key);
        }
    }
}
