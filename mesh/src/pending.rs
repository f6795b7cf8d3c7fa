//! Runs that wait: for the entries before them, for their bodies, for what they build on.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    context::Context,
    id::{LogId, NodeId, sha256},
    limits::{PENDING_BYTES_MAX, PENDING_FOR, PENDING_RUNS_PER_ROOM_MAX, WANT_TIMEOUT},
    message::Head,
    run::{Carried, Verified},
};

/// A run by its log and first log seq.
pub(crate) type Key = (LogId, u64);

/// One run that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) run: Verified,
    /// Bodies apart that have come.
    pub(crate) bodies: BTreeMap<u64, Vec<u8>>,
    /// Who sent the run: they have its bodies.
    pub(crate) from: NodeId,
    since: Duration,
    /// When its bodies were last asked for.
    asked: Option<Duration>,
    bytes: usize,
}

impl Waiting {
    /// Places from entry index `skip` on whose bodies have not come.
    pub(crate) fn lacks(&self, skip: usize) -> impl Iterator<Item = u64> + '_ {
        let entries = (self.run.run().first..).zip(&self.run.run().entries).skip(skip);
        entries
            .filter(|(seq, entry)| {
                matches!(entry.body, Carried::Apart { .. }) && !self.bodies.contains_key(seq)
            })
            .map(|(seq, _)| seq)
    }
}

/// See the module. Bounded by [`PENDING_RUNS_PER_ROOM_MAX`] and [`PENDING_BYTES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Pending {
    runs: BTreeMap<Key, Waiting>,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.runs.keys().copied().collect()
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Waiting> {
        self.runs.get(&key)
    }

    pub(crate) fn take(&mut self, cx: &mut Context, key: Key) -> Option<Waiting> {
        let waiting = self.runs.remove(&key)?;
        cx.pending_bytes -= waiting.bytes;
        Some(waiting)
    }

    /// Keeps a run that cannot be accepted yet. When there is no room it is dropped, and fetched
    /// again later: the oldest end of what waits is what can be accepted next.
    pub(crate) fn keep(&mut self, cx: &mut Context, run: Verified, from: NodeId) {
        let full = self.runs.len() >= PENDING_RUNS_PER_ROOM_MAX
            || cx.pending_bytes + run.run().size() > PENDING_BYTES_MAX;
        if full {
            cx.faults.overflow += 1;
        } else {
            self.insert(cx, run, from);
        }
    }

    /// Keeps a run that is next in its log, whatever else has to go for it.
    pub(crate) fn keep_next(&mut self, cx: &mut Context, run: Verified, from: NodeId) {
        while self.runs.len() >= PENDING_RUNS_PER_ROOM_MAX
            || (cx.pending_bytes > PENDING_BYTES_MAX && !self.runs.is_empty())
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
        // Of two runs that begin alike the longer one says more; bodies that came stay.
        if let Some(known) = self.runs.get(&key)
            && known.run.run().last() >= run.run().last()
        {
            return;
        }
        let old = self.take(cx, key);
        let bodies = old.map(|it| it.bodies).unwrap_or_default();
        let bytes = run.run().size() + bodies.values().map(Vec::len).sum::<usize>();
        cx.pending_bytes += bytes;
        let since = cx.now.mono;
        self.runs.insert(key, Waiting { run, bodies, from, since, asked: None, bytes });
    }

    /// Forgets what has waited for too long.
    pub(crate) fn expire(&mut self, cx: &mut Context) {
        let old = |it: &Waiting| cx.now.mono >= it.since + PENDING_FOR;
        let gone: Vec<Key> =
            self.runs.iter().filter(|(_, it)| old(it)).map(|(key, _)| *key).collect();
        for key in gone {
            self.take(cx, key);
        }
    }

    /// A body apart has come. Kept if a run waits for just this one.
    pub(crate) fn add_body(&mut self, cx: &mut Context, log: LogId, seq: u64, body: Vec<u8>) {
        let Some((_, waiting)) = self.runs.range_mut((log, 0)..=(log, seq)).next_back() else {
            return;
        };
        let Some(i) = seq.checked_sub(waiting.run.run().first) else { return };
        let entry = usize::try_from(i).ok().and_then(|i| waiting.run.run().entries.get(i));
        let Some(Carried::Apart { hash, len }) = entry.map(|it| &it.body) else { return };
        if *len == body.len() as u64 && sha256(&[&body]) == *hash {
            cx.pending_bytes += body.len();
            waiting.bytes += body.len();
            if let Some(old) = waiting.bodies.insert(seq, body) {
                cx.pending_bytes -= old.len();
                waiting.bytes -= old.len();
            }
        }
    }

    /// Bodies to be asked for now, by whom to ask: their author or the sender of their run first, after
    /// that `another`, who has the entry.
    pub(crate) fn bodies_to_ask(
        &mut self,
        (now, up): (Duration, &BTreeSet<NodeId>),
        another: impl Fn(Head) -> Option<NodeId>,
    ) -> BTreeMap<NodeId, Vec<Head>> {
        let mut out: BTreeMap<NodeId, Vec<Head>> = BTreeMap::new();
        for waiting in self.runs.values_mut() {
            if waiting.asked.is_some_and(|at| now < at + WANT_TIMEOUT) {
                continue;
            }
            let log = waiting.run.run().log;
            let lacks: Vec<Head> = waiting.lacks(0).map(|seq| Head { log, seq }).collect();
            let Some(last) = lacks.last() else { continue };
            // The author has them for certain; whoever relayed its run may wait for them, too.
            let first_time = waiting.asked.is_none();
            let author = Some(log.author).filter(|it| up.contains(it));
            let other = if first_time { author } else { another(*last).or(author) };
            out.entry(other.unwrap_or(waiting.from)).or_default().extend(lacks);
            waiting.asked = Some(now);
        }
        out
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
