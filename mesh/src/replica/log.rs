//! The logs of a room: their heads, and how received runs continue them.

use std::collections::{BTreeMap, BTreeSet};

use super::frontier::{Counted, Frontier};
use crate::{
    api::batch::{LogRecord, RoomRecord},
    limits::{CLOCK_START_MAX, CLOCK_STEP_MAX, LOGS_PER_ROOM_MAX},
    name::{
        digest::Digest,
        id::{Hash, LogId, LogIx, NodeId, RoomId},
    },
    wire::{
        message::Head,
        run::{Certificate, Verified},
    },
};

/// A log's head, and whether the store has it.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) record: LogRecord,
    /// The record differs from the one in the store.
    pub(crate) dirty: bool,
}

/// How a run continues its log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Nothing in it is new.
    Old,
    /// Its entries from this index on are next.
    Next(usize),
    /// Something before it is missing.
    Gap,
    /// It and this seal cannot both be of an honest author.
    Fork(Certificate),
    /// It cannot be a continuation of anything.
    Bad,
}

/// All logs of a room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    /// Whether an author may have several: those of a room that is memory only. Anywhere else it would
    /// be a way to say two things without a fork.
    several: bool,
    list: Vec<Log>,
    by_id: BTreeMap<LogId, LogIx>,
    /// Whether logs go on past the place from which on they do not count: those of the directory.
    whole: bool,
    /// Over all heads, but for those of `shut_out`. Equal at two nodes when their frontiers are.
    frontier: Frontier,
    /// Authors of whom nothing more is taken: nodes that have more and less of them would differ for ever.
    shut_out: BTreeSet<NodeId>,
}

impl Logs {
    /// None yet, of a room like this.
    pub(crate) fn of(room: &RoomRecord, whole: bool) -> Logs {
        Logs { several: room.ephemeral, whole, ..Logs::default() }
    }

    pub(crate) fn restore(room: &RoomRecord, whole: bool, records: Vec<LogRecord>) -> Logs {
        let mut logs = Logs::of(room, whole);
        for record in records {
            logs.push(record, false);
        }
        logs
    }

    fn push(&mut self, record: LogRecord, dirty: bool) -> LogIx {
        let ix = LogIx::try_from(self.list.len()).expect("at most LOGS_PER_ROOM_MAX");
        self.by_id.insert(record.id, ix);
        self.frontier.change(record.id.author);
        if self.list.is_empty() {
            // In most rooms one node writes; a list that grows by itself begins with room for four.
            self.list.reserve_exact(1);
        }
        self.list.push(Log { record, dirty });
        ix
    }

    pub(crate) fn ix(&self, id: LogId) -> Option<LogIx> {
        self.by_id.get(&id).copied()
    }

    /// Whether the room can have this log.
    pub(crate) fn can_have(&self, id: LogId) -> bool {
        self.several || id.incarnation == 0
    }

    /// The index of a log, new or not; `None` when the room cannot have it, or has too many.
    pub(crate) fn ensure(&mut self, id: LogId) -> Option<LogIx> {
        if let Some(ix) = self.ix(id) {
            return Some(ix);
        }
        if !self.can_have(id) {
            return None;
        }
        let new = LogRecord {
            id,
            head: 0,
            hash: [0; 32],
            clock: 0,
            settled: 0,
            fork: None,
            seal: [0; 64],
        };
        (self.list.len() < LOGS_PER_ROOM_MAX).then(|| self.push(new, true))
    }

    pub(crate) fn get(&self, ix: LogIx) -> &LogRecord {
        &self.list[ix as usize].record
    }

    /// The record, to be changed: counts as dirty from now on. The head is moved by
    /// [`Logs::advance`] only.
    pub(crate) fn edit(&mut self, ix: LogIx) -> &mut LogRecord {
        let log = &mut self.list[ix as usize];
        log.dirty = true;
        &mut log.record
    }

    /// The log now ends with entry `seq`.
    pub(crate) fn advance(&mut self, ix: LogIx, seq: u64, clock: u64) {
        let record = self.edit(ix);
        record.head = seq;
        record.clock = clock;
        self.frontier.change(self.id(ix).author);
    }

    /// Nothing of the log counts from `seq` on. `false`: that was known.
    pub(crate) fn cut(&mut self, ix: LogIx, seq: u64) -> bool {
        if self.get(ix).fork.is_some_and(|known| known <= seq) {
            return false;
        }
        self.edit(ix).fork = Some(seq);
        self.frontier.change(self.id(ix).author);
        true
    }

    pub(crate) fn id(&self, ix: LogIx) -> LogId {
        self.get(ix).id
    }

    pub(crate) fn head_of(&self, id: LogId) -> u64 {
        self.ix(id).map_or(0, |ix| self.get(ix).head)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LogIx, &LogRecord)> {
        (0..).zip(self.list.iter().map(|log| &log.record))
    }

    /// Whether logs go on past the place from which on they do not count.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Over the entries that count, so that nodes that hold more than others do not compare for ever. Hashes what has
    /// changed since it was read last.
    pub(crate) fn digest(&mut self) -> Digest {
        let Logs { list, by_id, shut_out, frontier, whole, .. } = self;
        let counted = |ix: &LogIx| {
            let record = &list[*ix as usize].record;
            let upto = record.fork.filter(|_| !*whole).map_or(u64::MAX, |seq| seq - 1);
            let seq = record.head.min(upto);
            let counts = seq > 0 && !shut_out.contains(&record.id.author);
            counts.then_some(Counted { log: record.id, seq })
        };
        frontier.digest(|first| by_id.range(first..).filter_map(|(_, ix)| counted(ix)))
    }

    /// Nothing more is taken from this author.
    pub(crate) fn shut_out(&mut self, author: NodeId) {
        self.shut_out.insert(author);
        self.frontier.change(author);
    }

    pub(crate) fn has_shut_out(&self, author: NodeId) -> bool {
        self.shut_out.contains(&author)
    }

    /// How far each log goes that is still followed.
    pub(crate) fn heads(&self) -> Vec<Head> {
        self.iter()
            .filter(|(_, log)| log.head > 0 && !self.shut_out.contains(&log.id.author))
            .map(|(_, log)| Head { log: log.id, seq: log.head })
            .collect()
    }

    /// Whether some log that is still followed goes further than these say.
    pub(crate) fn are_ahead_of(&self, heads: &[Head]) -> bool {
        let theirs: BTreeMap<LogId, u64> = heads.iter().map(|head| (head.log, head.seq)).collect();
        self.heads().iter().any(|head| theirs.get(&head.log).is_none_or(|seq| *seq < head.seq))
    }

    /// The records that the store does not have yet; it has them from now on.
    pub(crate) fn take_dirty(&mut self) -> Vec<(LogIx, LogRecord)> {
        let mut out = Vec::new();
        for (ix, log) in (0..).zip(&mut self.list) {
            if std::mem::take(&mut log.dirty) {
                out.push((ix, log.record.clone()));
            }
        }
        out
    }

    /// How `run` continues its log here. `unsealed`: newest entries of this log that have no hash yet (own
    /// drafts of this turn): runs that reach into them wait for their seal.
    pub(crate) fn continuation(
        &self,
        room: RoomId,
        run: &Verified,
        unsealed: bool,
    ) -> Continuation {
        if !self.can_have(run.run().log) {
            return Continuation::Bad;
        }
        let (head, hash, clock, seal) =
            self.ix(run.run().log).map_or((0, [0; 32], 0, [0; 64]), |ix| {
                let log = self.get(ix);
                (log.head, log.hash, log.clock, log.seal)
            });
        let (first, last) = (run.run().first, run.run().last());
        if last < head || unsealed {
            return if last <= head { Continuation::Old } else { Continuation::Gap };
        }
        let Some(theirs) = run.hash_at(head) else { return Continuation::Gap };
        if theirs != hash {
            return if head == 0 {
                Continuation::Bad
            } else {
                Continuation::Fork(Certificate { room, log: run.run().log, seq: head, hash, seal })
            };
        }
        if last == head {
            return Continuation::Old;
        }
        let skip = usize::try_from(head + 1 - first).expect("within the run");
        if clocks_step(clock, head == 0, run, skip) {
            Continuation::Next(skip)
        } else {
            Continuation::Bad
        }
    }
}

/// Whether the clocks of the entries from `skip` on rise in allowed steps.
fn clocks_step(before: u64, first_of_log: bool, run: &Verified, skip: usize) -> bool {
    let mut before = before;
    let mut ceiling =
        if first_of_log { CLOCK_START_MAX } else { before.saturating_add(CLOCK_STEP_MAX) };
    for entry in &run.run().entries[skip..] {
        let clock = entry.facts.clock;
        if clock <= before || clock > ceiling {
            return false;
        }
        before = clock;
        ceiling = clock.saturating_add(CLOCK_STEP_MAX);
    }
    true
}

/// The first eight bytes of a hash, for draws and ranks; too few for a digest of content that members choose.
pub(crate) fn first_8(hash: Hash) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{
            id::{MeshId, NodeId},
            identity::Identity,
        },
        wire::{
            entry::Facts,
            run::{Carried, Run, RunEntry},
        },
    };

    const MESH: MeshId = MeshId([1; 16]);
    const ROOM: RoomId = RoomId([2; 16]);

    /// A sealed run of one author: entries from `first` on with these clocks.
    fn run(first: u64, backlink: Hash, clocks: &[u64]) -> Verified {
        let identity = Identity::from_seed(&[5; 32]);
        let entry = |clock: &u64| RunEntry {
            facts: Facts { clock: *clock, wall_ms: 0, kind: 1, visible: true },
            body: Carried::Here(vec![0].into()),
        };
        let log = LogId { author: identity.node_id(), incarnation: 0 };
        let entries = clocks.iter().map(entry).collect();
        let run = Run { room: ROOM, log, first, backlink, entries, seal: [0; 64] };
        run.seal(MESH, &identity)
    }

    fn accept(logs: &mut Logs, run: &Verified) {
        let ix = logs.ensure(run.run().log).expect("there is room");
        logs.advance(
            ix,
            run.run().last(),
            run.run().entries.last().expect("not empty").facts.clock,
        );
        let seal = run.certificate();
        let record = logs.edit(ix);
        (record.hash, record.seal) = (seal.hash, seal.seal);
    }

    #[test]
    fn a_run_is_next_old_ahead_or_a_fork() {
        let mut logs = Logs::default();
        let first = run(1, [0; 32], &[1, 2]);
        assert_eq!(logs.continuation(ROOM, &first, false), Continuation::Next(0));
        accept(&mut logs, &first);
        let head = first.certificate().hash;
        assert_eq!(logs.continuation(ROOM, &first, false), Continuation::Old);
        assert_eq!(logs.continuation(ROOM, &run(3, head, &[3]), false), Continuation::Next(0));
        assert_eq!(logs.continuation(ROOM, &run(4, head, &[4]), false), Continuation::Gap);
        // What ends before the head is old, whatever it says; what was not sealed yet cannot be told apart.
        assert_eq!(logs.continuation(ROOM, &run(1, [0; 32], &[1]), false), Continuation::Old);
        assert_eq!(logs.continuation(ROOM, &first, true), Continuation::Old);
        assert_eq!(logs.continuation(ROOM, &run(3, head, &[3]), true), Continuation::Gap);
        // The same beginning under a later seal: only the rest is new.
        assert_eq!(
            logs.continuation(ROOM, &run(1, [0; 32], &[1, 2, 3]), false),
            Continuation::Next(2)
        );
        // Another history: both are signed, so both cannot be of an honest author.
        let other = run(1, [0; 32], &[1, 9]);
        let Continuation::Fork(seal) = logs.continuation(ROOM, &other, false) else {
            panic!("a fork")
        };
        assert_eq!((seal.seq, seal.hash), (2, head));
        assert!(seal.verify() && other.hash_at(2).is_some_and(|hash| hash != head));
        assert!(matches!(
            logs.continuation(ROOM, &run(3, [7; 32], &[3]), false),
            Continuation::Fork(_)
        ));
        assert_eq!(
            Logs::default().continuation(ROOM, &run(1, [7; 32], &[1]), false),
            Continuation::Bad
        );
    }

    #[test]
    fn clocks_rise_and_do_not_leap() {
        let mut logs = Logs::default();
        let first = run(1, [0; 32], &[CLOCK_START_MAX]);
        assert_eq!(
            logs.continuation(ROOM, &first, false),
            Continuation::Next(0),
            "a newcomer to a long room"
        );
        assert_eq!(
            logs.continuation(ROOM, &run(1, [0; 32], &[CLOCK_START_MAX + 1]), false),
            Continuation::Bad
        );
        let first = run(1, [0; 32], &[5]);
        accept(&mut logs, &first);
        let head = first.certificate().hash;
        assert_eq!(logs.continuation(ROOM, &run(2, head, &[5]), false), Continuation::Bad);
        assert_eq!(
            logs.continuation(ROOM, &run(2, head, &[5 + CLOCK_STEP_MAX]), false),
            Continuation::Next(0)
        );
        assert_eq!(
            logs.continuation(ROOM, &run(2, head, &[6 + CLOCK_STEP_MAX]), false),
            Continuation::Bad
        );
    }

    #[test]
    fn digests_are_equal_when_frontiers_are_whatever_the_order() {
        let id = |author: u8| LogId { author: NodeId([author; 32]), incarnation: 0 };
        let (mut a, mut b) = (Logs::default(), Logs::default());
        for author in [1, 2] {
            let ix = a.ensure(id(author)).expect("there is room");
            a.advance(ix, 7, 7);
        }
        for author in [3, 2, 1] {
            let ix = b.ensure(id(author)).expect("there is room");
            if author != 3 {
                b.advance(ix, 3, 3);
                b.advance(ix, 7, 7);
            }
        }
        assert_eq!(a.digest(), b.digest(), "a log that is empty makes no difference");
        let ix = b.ensure(id(3)).expect("there is room");
        b.advance(ix, 1, 1);
        assert_ne!(a.digest(), b.digest());
        assert!(b.cut(ix, 1) && !b.cut(ix, 1) && !b.cut(ix, 2));
        assert_eq!(a.digest(), b.digest(), "what does not count makes none");
        b.advance(ix, 2, 2);
        assert_eq!(a.digest(), b.digest());
    }

    /// One author's log in a room where each may have several.
    fn log(author: u8, incarnation: u64) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation }
    }

    /// Such a room, with these logs up to these heads.
    fn several(heads: &[(LogId, u64)]) -> Logs {
        let mut logs = Logs { several: true, ..Logs::default() };
        for (id, seq) in heads {
            let ix = logs.ensure(*id).expect("there is room");
            if *seq > 0 {
                logs.advance(ix, *seq, *seq);
            }
        }
        logs
    }

    #[test]
    fn who_is_shut_out_makes_no_difference_any_more_whatever_is_had_of_it() {
        let others = [(log(1, 0), 7), (log(2, 0), 3)];
        let mut without = several(&others);
        let mut with = several(&[others[0], (log(9, 1), 5), (log(9, 2), 6), others[1]]);
        assert_ne!(with.digest(), without.digest());
        with.shut_out(NodeId([9; 32]));
        with.shut_out(NodeId([9; 32]));
        assert!(with.has_shut_out(NodeId([9; 32])) && !with.has_shut_out(NodeId([1; 32])));
        assert_eq!(with.digest(), without.digest());
        assert_eq!(with.heads(), without.heads());
        let ix = with.ix(log(9, 2)).expect("it is there");
        with.advance(ix, 8, 8);
        assert_eq!(with.digest(), without.digest(), "nor what came of it since");
        assert!(!with.are_ahead_of(&without.heads()));
    }

    #[test]
    fn logs_are_ahead_of_heads_that_say_less_or_nothing_of_one_of_them() {
        let logs = several(&[(log(1, 0), 7), (log(2, 0), 3), (log(3, 0), 0)]);
        let head = |log, seq| Head { log, seq };
        assert_eq!(logs.heads(), [head(log(1, 0), 7), head(log(2, 0), 3)], "an empty one is none");
        let ahead = |one, two| logs.are_ahead_of(&[head(log(1, 0), one), head(log(2, 0), two)]);
        assert!(ahead(6, 3) && ahead(9, 2) && logs.are_ahead_of(&[head(log(1, 0), 7)]));
        assert!(!ahead(7, 3) && !ahead(8, 9));
    }

    #[test]
    fn logs_that_are_read_again_say_the_same_of_themselves() {
        let mut logs = several(&[(log(1, 0), 7), (log(2, 0), 3), (log(3, 0), 5)]);
        let mut again = Logs { several: true, ..Logs::default() };
        for (_, record) in logs.iter() {
            again.push(record.clone(), false);
        }
        assert_eq!((again.digest(), again.heads()), (logs.digest(), logs.heads()));
        assert!(again.take_dirty().is_empty(), "the store has them");
    }

    /// However often the digest was read while they grew, and whatever was cut and shut out meanwhile.
    #[test]
    fn many_logs_have_the_digest_of_the_same_logs_in_another_order() {
        let author = |n: u8| LogId { author: NodeId([n.wrapping_mul(37); 32]), incarnation: 0 };
        let mut logs = several(&[]);
        for round in 1..=5 {
            for n in (0..200).filter(|n| n % round == 0) {
                let ix = logs.ensure(author(n)).expect("there is room");
                logs.advance(ix, u64::from(round) * 10, 1);
                logs.digest();
            }
        }
        let cut = logs.ix(author(8)).expect("it is there");
        logs.cut(cut, 4);
        logs.digest();
        let cut = logs.ix(author(12)).expect("it is there");
        logs.cut(cut, 1);
        logs.shut_out(author(16).author);
        let mut again = Logs { several: true, ..Logs::default() };
        let mut records: Vec<LogRecord> = logs.iter().map(|(_, log)| log.clone()).collect();
        records.reverse();
        for record in records {
            again.push(record, false);
        }
        assert_ne!(again.digest(), logs.digest(), "of one nothing is taken there");
        again.shut_out(author(16).author);
        assert_eq!(again.digest(), logs.digest());
    }

    #[test]
    fn a_room_has_so_many_logs_and_no_more() {
        let mut logs = several(&[]);
        let ids = (0..).map(|incarnation| log(1, incarnation));
        assert!(ids.take(LOGS_PER_ROOM_MAX).all(|id| logs.ensure(id).is_some()));
        assert_eq!(logs.ensure(log(2, 0)), None);
        assert_eq!(logs.ensure(log(1, 5)), Some(5), "those that are there go on");
    }
}
