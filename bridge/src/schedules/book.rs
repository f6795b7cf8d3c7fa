//! All that a node knows of the schedule of one key, and what follows from it. Nothing here waits, or reads a clock.

use std::collections::BTreeMap;

use mesh::{
    limits::RUNS_PER_JOB_AND_NODE,
    name::id::{JobId, KeyPrint, MessageId, NodeId, RoomId},
    wire::record::RecordId,
};
use tokio::time::Instant;

use super::{
    job::{Job, Run, Status},
    plan::DueSlots,
};
use crate::{
    limits::{
        SCHEDULE_AGAIN, SCHEDULE_DEFERS, SCHEDULE_GRACE, SCHEDULE_KEEP, SCHEDULE_LEAD,
        SCHEDULE_LEASE,
    },
    secret::Secret,
};

/// Nodes of a key that ask for its lease after each other.
const RANKS: u64 = 4;

/// A moment, by the clock on the wall and by the one that is never set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) ms: u64,
    pub(super) mono: Instant,
}

/// A run that is open, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) slot: String,
    pub(super) at_ms: u64,
    /// It was read, and dialects were told of it.
    pub(super) told: bool,
}

/// The last run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last {
    /// When it began. Unix milliseconds.
    pub at_ms: u64,
    /// What became of it.
    pub status: Status,
    /// Why it came to nothing.
    pub error: Option<String>,
}

/// A job, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) job: Job,
    pub(super) record: RecordId,
    /// The newest slot that somebody has seen to.
    pub(super) seen_ms: u64,
    pub(super) last: Option<Last>,
    pub(super) open: BTreeMap<(NodeId, u16), Open>,
    /// The place of this node's newest run, and when that was.
    newest: Option<(u64, u16)>,
    /// Until then what other nodes have fired may not be known.
    pub(super) settles_ms: u64,
    /// When it is looked at next.
    pub(super) wake_ms: Option<u64>,
    /// Another node has seen to a slot of it.
    of_others: bool,
}

impl Entry {
    pub(super) fn new(job: Job, record: RecordId, settles_ms: u64) -> Entry {
        Entry {
            job,
            record,
            seen_ms: 0,
            last: None,
            open: BTreeMap::new(),
            newest: None,
            settles_ms,
            wake_ms: None,
            of_others: false,
        }
    }

    /// Somebody has seen to a slot. Whether it was not known yet that this run has begun.
    pub(super) fn note(&mut self, run: &Run, me: NodeId) -> bool {
        let place = (run.node, run.place);
        self.of_others |= run.node != me;
        self.seen_ms = self.seen_ms.max(run.slot_ms().unwrap_or(0));
        if run.node == me && self.newest.is_none_or(|(at_ms, _)| at_ms <= run.at_ms) {
            self.newest = Some((run.at_ms, run.place));
        }
        let open = Open { slot: run.slot.clone(), at_ms: run.at_ms, told: true };
        let was_open = self.open.get(&place) == Some(&open);
        if run.status == Status::Running {
            self.open.insert(place, open);
        } else {
            self.open.remove(&place);
        }
        if run.status.fired() && self.last.as_ref().is_none_or(|last| last.at_ms <= run.at_ms) {
            let (status, error) = (run.status, run.error.clone());
            self.last = Some(Last { at_ms: run.at_ms, status, error });
        }
        !was_open
    }

    /// This node begins a run. Nobody was told yet.
    pub(super) fn begins(&mut self, run: &Run) {
        let open = Open { slot: run.slot.clone(), at_ms: run.at_ms, told: false };
        self.open.insert((run.node, run.place), open);
    }

    /// A place for the next run of this node: that of its oldest.
    pub(super) fn take_place(&mut self, now_ms: u64) -> u16 {
        let place = self.newest.map_or(0, |(_, place)| (place + 1) % RUNS_PER_JOB_AND_NODE);
        // A clock that was set back does not have the next one take the same place.
        let at_ms = self.newest.map_or(0, |(at_ms, _)| at_ms).max(now_ms);
        self.newest = Some((at_ms, place));
        place
    }

    /// The next slot, if it is fired at all.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let Job { plan, from_ms, enabled, .. } = &self.job;
        plan.next(*from_ms, self.seen_ms.max(*from_ms)).filter(|_| *enabled)
    }

    pub(super) fn due(&self, now_ms: u64) -> DueSlots {
        if !self.job.enabled {
            return DueSlots::default();
        }
        self.job.plan.due(self.job.from_ms, self.seen_ms, now_ms)
    }
}

/// What is to be done about a job now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is looked at again then. `None`: it is never due.
    Later(Option<u64>),
    /// This node has to have the lease first.
    AskLease,
    /// This node sees to what is due.
    Fire,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) key: Secret,
    /// It is the node's own. As a rule no other node has it, but nodes of one user of a machine may have one key for all of them.
    pub(super) own: bool,
    pub(super) room: Option<RoomId>,
    pub(super) entries: BTreeMap<JobId, Entry>,
    pub(super) by_record: BTreeMap<RecordId, JobId>,
    /// This node fires the jobs: until then nobody else has the lease.
    pub(super) lease: Option<Instant>,
    /// The grant of the lease that this node had last.
    pub(super) grant: Option<MessageId>,
    pub(super) asking: bool,
    ask_from_ms: u64,
    defers_until_ms: u64,
    /// The key is on the disk.
    pub(super) is_kept: bool,
    pub(super) tries: u32,
}

impl Book {
    pub(super) fn new(key: Secret, own: bool, is_kept: bool) -> Book {
        Book {
            key,
            own,
            room: None,
            entries: BTreeMap::new(),
            by_record: BTreeMap::new(),
            lease: None,
            grant: None,
            asking: false,
            ask_from_ms: 0,
            defers_until_ms: 0,
            is_kept,
            tries: 0,
        }
    }

    /// Whether this node has the lease at a time to come.
    fn holds_at(&self, at_ms: u64, now: Now) -> bool {
        let left = self.lease.map_or(0, |until| millis(until.duration_since(now.mono)));
        left > 0 && at_ms < now.ms.saturating_add(left)
    }

    /// Whether no other node sees to a job, as far as is known: it is fired without the lease.
    fn is_alone(&self, entry: &Entry, me: NodeId) -> bool {
        self.own && entry.job.home == me && !entry.of_others
    }

    /// When a job is to be looked at.
    fn wake_of(&self, entry: &Entry, me: (NodeId, u64), now: Now) -> Option<u64> {
        let slot_ms = entry.next_ms()?;
        if self.is_alone(entry, me.0) {
            return Some(slot_ms);
        }
        if self.holds_at(slot_ms.max(now.ms), now) {
            return Some(slot_ms.max(entry.settles_ms));
        }
        let (me, rank) = me;
        let at_ms = if entry.job.home == me && now.ms >= self.defers_until_ms {
            slot_ms.saturating_sub(millis(SCHEDULE_LEAD))
        } else {
            slot_ms + millis(SCHEDULE_GRACE) + rank
        };
        Some(at_ms.max(entry.settles_ms).max(self.ask_from_ms))
    }

    /// What is to be done about a job. `rank`: other nodes of the key wait for longer, or less long.
    pub(super) fn turn(&self, entry: &Entry, me: (NodeId, u64), now: Now) -> Turn {
        let Some(wake_ms) = self.wake_of(entry, me, now) else { return Turn::Later(None) };
        if wake_ms > now.ms {
            Turn::Later(Some(wake_ms))
        } else if self.is_alone(entry, me.0) || self.holds_at(now.ms, now) {
            // It may have been asked for before the slot.
            match entry.next_ms() {
                Some(slot_ms) if slot_ms > now.ms => Turn::Later(Some(slot_ms)),
                Some(_) | None => Turn::Fire,
            }
        } else {
            Turn::AskLease
        }
    }

    /// The lease is to be asked for anew, while jobs are due soon.
    pub(super) fn renews(&self, now: Now) -> bool {
        let soon_ms = now.ms.saturating_add(millis(SCHEDULE_KEEP));
        self.holds_at(now.ms, now)
            && self.entries.values().any(|entry| entry.next_ms().is_some_and(|next| next < soon_ms))
    }

    /// Another one may have the lease: the answer, of what was asked at `asked`.
    pub(super) fn answered(&mut self, granted: Option<MessageId>, asked: Instant, now: Now) {
        self.asking = false;
        match granted {
            Some(grant) => {
                self.grant = Some(grant);
                self.lease = Some(asked + SCHEDULE_LEASE);
                self.defers_until_ms = 0;
            }
            None => {
                (self.lease, self.grant) = (None, None);
                self.defers_until_ms = now.ms + millis(SCHEDULE_DEFERS);
                self.ask_from_ms = now.ms + millis(SCHEDULE_AGAIN);
            }
        }
    }

    /// Nobody has answered. What this node holds it holds until its time is over.
    pub(super) fn unanswered(&mut self, now: Now) {
        self.asking = false;
        self.ask_from_ms = now.ms + millis(SCHEDULE_AGAIN);
    }

    pub(super) fn put(&mut self, entry: Entry) {
        self.by_record.insert(entry.record, entry.job.id);
        self.entries.insert(entry.job.id, entry);
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Some(entry) = self.entries.remove(&job) {
            self.by_record.remove(&entry.record);
        }
    }
}

/// So long this node waits behind others, of nodes of one key that see that nobody fires. Two may wait as long, and both ask:
/// one is granted it.
pub(super) fn rank_of(me: NodeId, key: KeyPrint) -> u64 {
    let place =
        me.0.iter().chain(&key.0).fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    place % RANKS * millis(SCHEDULE_AGAIN) * 2 / 5
}

pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::schedules::{job::tests::job, plan::Plan};

    const HOME: NodeId = NodeId([3; 32]);
    const OTHER: NodeId = NodeId([9; 32]);
    const MINUTE: u64 = 60_000;

    fn entry() -> Entry {
        let job = Job { from_ms: 0, ..job(Plan::every(MINUTE).unwrap()) };
        Entry::new(job, RecordId([1; 16]), 0)
    }

    fn run(slot: u64, node: NodeId, status: Status) -> Run {
        Run {
            job: JobId([1; 16]),
            node,
            place: 0,
            slot: slot.to_string(),
            at_ms: slot,
            status,
            error: None,
            summary: None,
            took_ms: None,
            tokens: None,
        }
    }

    fn book(own: bool) -> Book {
        Book::new(Secret::new("k"), own, false)
    }

    #[tokio::test]
    async fn the_home_asks_before_a_slot_and_others_when_nobody_has_fired_it() {
        let (book, entry, mono) = (book(false), entry(), Instant::now());
        let turn = |me, rank, ms| book.turn(&entry, (me, rank), Now { ms, mono });
        assert_eq!(turn(HOME, 0, 10), Turn::Later(Some(56_000)));
        assert_eq!(turn(HOME, 0, 56_000), Turn::AskLease);
        assert_eq!(turn(OTHER, 2_000, 56_000), Turn::Later(Some(67_000)));
        assert_eq!(turn(OTHER, 2_000, 67_000), Turn::AskLease);
        // It has heard of the run.
        let mut heard = entry.clone();
        assert!(heard.note(&run(MINUTE, HOME, Status::Running), OTHER));
        let later = book.turn(&heard, (OTHER, 2_000), Now { ms: 67_000, mono });
        assert_eq!(later, Turn::Later(Some(2 * MINUTE + 7_000)));
    }

    #[tokio::test]
    async fn who_holds_the_lease_fires_until_its_time_is_over() {
        let (mut book, entry, mono) = (book(false), entry(), Instant::now());
        book.answered(Some(MessageId([1; 16])), mono, Now { ms: 56_000, mono });
        let turn = |book: &Book, ms, after| {
            let now = Now { ms, mono: mono + Duration::from_millis(after) };
            book.turn(&entry, (OTHER, 0), now)
        };
        assert_eq!(turn(&book, 56_000, 0), Turn::Later(Some(MINUTE)));
        assert_eq!(turn(&book, MINUTE, 4_000), Turn::Fire);
        let over = turn(&book, MINUTE + 26_000, 30_000);
        assert_eq!(over, Turn::AskLease, "nobody knows who has it now");
        book.put(entry.clone());
        assert!(book.renews(Now { ms: 56_000, mono }));
        assert!(!book.renews(Now { ms: 56_000, mono: mono + SCHEDULE_LEASE }));
        // Another node has it: this one, the home too, waits whether that one fires.
        let now = Now { ms: 56_000, mono };
        book.answered(None, mono, now);
        assert_eq!(book.turn(&entry, (HOME, 0), now), Turn::Later(Some(65_000)));
        let later = Now { ms: 56_000 + millis(SCHEDULE_DEFERS), mono };
        assert_eq!(book.turn(&entry, (HOME, 0), later), Turn::AskLease);
    }

    #[tokio::test]
    async fn a_job_that_is_due_tomorrow_needs_no_lease_and_one_that_is_seen_to_here_alone() {
        let (mut book, mono) = (book(true), Instant::now());
        let now = Now { ms: MINUTE, mono };
        assert_eq!(book.turn(&entry(), (HOME, 0), now), Turn::Fire);
        // Another node has the same key for its own.
        let later = Turn::Later(Some(MINUTE + millis(SCHEDULE_GRACE)));
        assert_eq!(book.turn(&entry(), (OTHER, 0), now), later);
        let mut shared = entry();
        shared.note(&run(0, OTHER, Status::Done), HOME);
        assert_eq!(book.turn(&shared, (HOME, 0), now), Turn::AskLease);
        book.own = false;
        book.answered(Some(MessageId([1; 16])), mono, now);
        let daily = Job { from_ms: 0, ..job(Plan::every(86_400_000).unwrap()) };
        book.put(Entry::new(daily, RecordId([1; 16]), 0));
        assert!(!book.renews(now), "it runs out");
    }

    #[test]
    fn no_slot_is_due_twice_also_if_the_clock_is_set_back() {
        let mut entry = entry();
        assert_eq!(entry.due(5 * MINUTE).fires, Some(5 * MINUTE));
        entry.note(&run(5 * MINUTE, OTHER, Status::Done), HOME);
        assert_eq!(entry.due(5 * MINUTE + 1), DueSlots::default());
        assert_eq!(entry.due(2 * MINUTE), DueSlots::default());
        assert_eq!(entry.next_ms(), Some(6 * MINUTE));
        entry.job.enabled = false;
        assert_eq!((entry.next_ms(), entry.due(9 * MINUTE)), (None, DueSlots::default()));
    }

    #[test]
    fn runs_take_the_places_of_the_oldest() {
        let mut entry = entry();
        let places: Vec<u16> = (0..201).map(|n| entry.take_place(n)).collect();
        assert_eq!((places[0], places[199], places[200]), (0, 199, 0));
        // Also after a start, and with a clock that was set back.
        let mut again = super::tests::entry();
        again.note(&Run { place: 7, ..run(9 * MINUTE, HOME, Status::Done) }, HOME);
        again.note(&Run { place: 6, ..run(8 * MINUTE, HOME, Status::Done) }, HOME);
        again.note(&Run { place: 3, ..run(10 * MINUTE, OTHER, Status::Done) }, HOME);
        assert_eq!([again.take_place(5), again.take_place(5)], [8, 9]);
    }

    #[test]
    fn the_last_run_is_the_latest_that_was_fired_and_open_ones_are_known() {
        let mut entry = entry();
        assert!(entry.note(&run(MINUTE, HOME, Status::Running), HOME));
        assert!(!entry.note(&run(MINUTE, HOME, Status::Running), HOME), "it is known");
        assert_eq!(entry.open.len(), 1);
        assert!(!entry.note(&run(MINUTE, HOME, Status::Done), HOME));
        assert!(entry.open.is_empty());
        entry.note(&Run { place: 1, ..run(2 * MINUTE, HOME, Status::Missed) }, HOME);
        assert_eq!(entry.last.as_ref().map(|last| last.status), Some(Status::Done));
        assert_eq!(entry.seen_ms, 2 * MINUTE);
    }
}
