//! A simulated node: the real engine and the real store, on a disk that crashes.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use mesh::{
    Config, DeferredCommit, Effect, Engine, Hearing, Identity, Input, Turn,
    api::{
        agenda::Retention,
        batch::{Change, StoredInbox},
        budget::Budgets,
        command::Refused,
    },
    name::{
        id::{LocalRef, LogId, LogIx, NodeId, RoomId},
        identity::{Epoch, LinkSecret},
        number::Number,
        time::Now,
    },
    order::pulse::{Beat, Pulse, Rhythm},
    wire::{kinds, message::Message, run::Verified},
};
use store::{
    CommitError, Reader, Store,
    testing::{self, CrashingBackend, Unsynced},
};

use super::{promises::Entry, signing::Signing};

/// Inputs that wait for a node that is paused; any on top are lost, as a full queue loses them.
const INBOX_MAX: usize = 20_000;

/// A node while it runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) engine: Engine,
    store: Store,
    pub(super) reader: Reader,
    pub(super) inbox: VecDeque<Input>,
    unsaid: DeferredCommit,
    hearing: Hearing,
    pub(super) pulse: Option<Pulse>,
    /// Since it first had something to say.
    pub(super) rhythm: Option<Rhythm>,
    logs: BTreeMap<(RoomId, LogIx), LogId>,
    /// The moments, by the engine's clock, of the acts that are not durable yet: a commit may come later, with that of another
    /// turn.
    unsaid_at: BTreeMap<(RoomId, LocalRef), Duration>,
    /// The same of the last commit.
    taken: BTreeMap<(RoomId, LocalRef), Duration>,
}

impl Running {
    fn take_turn(&mut self, at: Duration) -> Turn {
        let turn = self.engine.take_turn();
        for change in &turn.batch {
            if let Change::Entry { room, at: place, entry } = change
                && kinds::is_act(entry.facts.kind)
            {
                self.unsaid_at.insert((*room, *place), at);
            }
        }
        turn
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    identity: Identity,
    config: Config,
    disk: CrashingBackend,
    /// Counts starts: effects of an earlier life are lost.
    pub(super) life: u64,
    pub(super) running: Option<Running>,
    /// How far its wall clock is off.
    pub(super) wall_offset_ms: i64,
    /// The whole process stands still until then: no beacons either.
    pub(super) paused_until: Duration,
    /// A commit takes until then: nothing is handled meanwhile, so that effects keep their order.
    pub(super) busy_until: Duration,
    /// Commits are made durable before something happens to the disk, and not each by itself.
    syncs_later: bool,
    /// The disk is going to fail.
    doomed: bool,
    /// The disk is gone for ever.
    lost: bool,
    /// The disk stands still until then, but beacons go on.
    pub(super) stalled_until: Duration,
    /// A turn for which there was no room on the disk.
    held: Option<Held>,
    /// A copy of its disk.
    backup: Option<Vec<u8>>,
    /// It went on from an earlier copy.
    restored: bool,
}

/// A turn that is not written, as the daemon keeps it (`node/src/full.rs`).
#[derive(Debug)]
struct Held {
    turn: Turn,
    at: Now,
    pulse: Option<Pulse>,
    /// Peers that came and went meanwhile.
    later: Vec<Input>,
}

/// While the disk is full, it is tried again so often.
const RETRY: Duration = Duration::from_secs(1);

/// The wall clock at the beginning of all worlds. Unix milliseconds.
const EPOCH_MS: u64 = 1_800_000_000_000;

impl Node {
    /// If it signs as real nodes do, each of its commits is durable by itself.
    pub(super) fn new(signing: Signing, seed: &[u8; 32], config: Config, disk_seed: u64) -> Node {
        let identity = signing.identity(seed);
        Node {
            id: identity.node_id(),
            identity,
            config,
            disk: CrashingBackend::new(disk_seed),
            life: 0,
            running: None,
            wall_offset_ms: 0,
            busy_until: Duration::ZERO,
            syncs_later: signing == Signing::Simulated,
            doomed: false,
            lost: false,
            paused_until: Duration::ZERO,
            stalled_until: Duration::ZERO,
            held: None,
            backup: None,
            restored: false,
        }
    }

    /// The time by its clocks.
    pub(super) fn now(&self, now: Duration) -> Now {
        let elapsed = i64::try_from(now.as_millis()).expect("a world is short");
        let wall = i64::try_from(EPOCH_MS).expect("fits") + elapsed + self.wall_offset_ms;
        let wall_ms = u64::try_from(wall).expect("after 1970");
        let wall_us = wall_ms * 1_000 + u64::from(now.subsec_micros() % 1_000);
        Now { mono: now, wall_ms, wall_us }
    }

    /// Starts it on what its disk has.
    pub(super) fn start(&mut self, now: Duration) {
        self.life += 1;
        let mut store = Store::on(self.disk.clone()).expect("what was synced opens");
        testing::put_off_syncs(&mut store, self.syncs_later).expect("nothing is to be synced");
        let at = self.now(now);
        store.set_wall_ms(at.wall_ms);
        let summary = store.summary(self.id, Some(self.config.mesh)).expect("a sound store reads");
        let mut logs = BTreeMap::new();
        for room in &summary.rooms {
            for (ix, log) in (0..).zip(&room.logs) {
                logs.insert((room.room, ix), log.id);
            }
        }
        let engine = Engine::open(self.identity.clone(), self.config.clone(), summary, at);
        self.running = Some(Running {
            engine,
            reader: store.reader(),
            store,
            inbox: VecDeque::new(),
            unsaid: DeferredCommit::default(),
            hearing: Hearing::default(),
            pulse: None,
            rhythm: None,
            logs,
            unsaid_at: BTreeMap::new(),
            taken: BTreeMap::new(),
        });
    }

    /// The store's delivery logs, by room.
    pub(super) fn deliveries(&self) -> Vec<(RoomId, Vec<(Number, Entry)>)> {
        let Some(running) = &self.running else { return Vec::new() };
        let reader = &running.reader;
        let rooms = reader.rooms().expect("a sound store reads");
        let page = |room| {
            let mut rows = Vec::new();
            let mut after = Number::ZERO;
            loop {
                let page = reader.page_since(room, after, 1_000).expect("a sound store reads");
                let Some(last) = page.last() else { return rows };
                after = last.number;
                rows.extend(page.iter().map(|row| (row.number, (row.log, row.at.seq))));
            }
        };
        rooms.into_iter().map(|(room, _)| (room, page(room))).collect()
    }

    /// The inboxes that its store has.
    pub(super) fn inboxes(&self) -> Vec<StoredInbox> {
        let Some(running) = &self.running else { return Vec::new() };
        let summary = running.store.summary(self.id, Some(self.config.mesh));
        summary.expect("a sound store reads").inboxes
    }

    pub(super) fn budgets(&self) -> &Budgets {
        &self.config.budgets
    }

    /// The power fails.
    pub(super) fn crash(&mut self, unsynced: Unsynced) {
        if !self.doomed {
            self.sync();
        }
        self.doomed = false;
        self.held = None;
        self.running = None;
        self.life += 1;
        self.disk = self.disk.crash(unsynced);
    }

    /// The machine is gone, with all that was written.
    pub(super) fn lose(&mut self) {
        self.crash(Unsynced::Dropped);
        self.disk = CrashingBackend::new(0);
        self.lost = true;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether its disk has a message: the whole body, unless that was old enough to be dropped, and the number.
    pub(super) fn holds(&self, room: RoomId, (log, seq): Entry, number: Number) -> bool {
        let read = |reader: &Reader| {
            let row = reader.by_number(room, number).expect("a sound store reads");
            let row = row.filter(|row| (row.log, row.at.seq) == (log, seq));
            row.is_some_and(|row| row.said.is_some() || self.config.retention.own.is_some())
        };
        match &self.running {
            Some(running) => read(&running.reader),
            None if self.lost || self.life == 0 => false,
            None => {
                let disk = CrashingBackend::of(self.disk.image(), 0);
                read(&Store::on(disk).expect("what was synced opens").reader())
            }
        }
    }

    /// The process ends; everything that was written stays.
    pub(super) fn exit(&mut self) {
        // Its writes are synced, so that a disk that was going to fail may as well do so now.
        self.crash(Unsynced::Dropped);
    }

    /// The power will fail after so many more operations of its disk.
    pub(super) fn doom(&mut self, operations: u64) {
        if let Some(running) = &mut self.running {
            self.doomed = true;
            testing::put_off_syncs(&mut running.store, false).expect("there is room");
            self.disk.fail_after(operations);
        }
    }

    /// Everything that it has committed is on its disk.
    fn sync(&mut self) {
        if let Some(running) = &mut self.running {
            testing::sync(&mut running.store).expect("there was room when it was committed");
        }
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.doomed
    }

    /// The directory names it.
    pub(super) fn know(&mut self, node: NodeId) {
        if let Some(running) = &mut self.running {
            running.hearing.know(node);
        }
    }

    /// It writes much without effect, the engine found.
    pub(super) fn note_noisy(&mut self, author: Option<NodeId>, now: Duration) {
        if let Some(running) = &mut self.running {
            running.hearing.note(author, now);
        }
    }

    /// Whether it is handed to the engine at all.
    pub(super) fn hears(&mut self, input: &Input, now: Duration) -> bool {
        match (input, &mut self.running) {
            (
                Input::Message { from, message: Message::Runs(runs) }
                | Input::Gossip { from, message: Message::Runs(runs) },
                Some(running),
            ) => running.hearing.hears(*from, runs.iter().map(Verified::run), now),
            _ => true,
        }
    }

    pub(super) fn push(&mut self, input: Input) {
        if let Some(running) = &mut self.running
            && running.inbox.len() < INBOX_MAX
        {
            running.inbox.push_back(input);
        }
    }

    /// Handles everything that waits and commits what that comes to, if anybody hears of it or it has waited for long.
    ///
    /// # Errors
    ///
    /// The disk failed and the node is down: as it was doomed to, or for a reason of the store's.
    pub(super) fn turn(&mut self, now: Duration) -> Result<Turn, Option<CommitError>> {
        if self.held.is_some() {
            return self.try_again();
        }
        let at = self.now(now);
        let Some(running) = &mut self.running else { return Err(None) };
        while let Some(input) = running.inbox.pop_front() {
            running.engine.handle(at, input);
        }
        if now >= running.engine.deadline() {
            running.engine.handle(at, Input::Timeout);
        }
        let next = running.take_turn(at.mono);
        let Some(turn) = running.unsaid.add(next, now) else { return Ok(Turn::default()) };
        running.store.set_wall_ms(at.wall_ms);
        match running.store.commit(&turn.batch) {
            Ok(()) => Ok(self.written(turn)),
            Err(CommitError::Full) => {
                // Nothing is to become due.
                let still = running.engine.deadline().saturating_sub(Duration::from_nanos(1));
                let at = Now { mono: at.mono.min(still), ..at };
                let pulse = running.pulse.take();
                self.held = Some(Held { turn, at, pulse, later: Vec::new() });
                Ok(Turn::default())
            }
            Err(error) => {
                let expected = self.doomed;
                self.crash(Unsynced::Torn);
                Err(Some(error).filter(|_| !expected))
            }
        }
    }

    /// A turn that could not be written is tried again; if there is still no room for it, mere questions are answered.
    fn try_again(&mut self) -> Result<Turn, Option<CommitError>> {
        let Some(running) = &mut self.running else { return Err(None) };
        let Some(mut held) = self.held.take() else { return Ok(Turn::default()) };
        let mut said = Vec::new();
        while let Some(input) = running.inbox.pop_front() {
            match input {
                Input::Command { call, command } if running.engine.answers_unwritten(&command) => {
                    running.engine.handle(held.at, Input::Command { call, command });
                    let Turn { batch, effects } = running.take_turn(held.at.mono);
                    held.turn.batch.extend(batch);
                    let answers = |effect: &Effect| matches!(effect, Effect::Reply { call: to, .. } if *to == call);
                    let (now, then): (Vec<_>, Vec<_>) = effects.into_iter().partition(answers);
                    said.extend(now);
                    held.turn.effects.extend(then);
                }
                Input::Command { call, .. } => {
                    said.push(Effect::Reply { call, result: Err(Refused::DiskFull) });
                }
                Input::PeerUp(_) | Input::PeerDown(_) => held.later.push(input),
                // They say it again.
                Input::Message { .. } | Input::Gossip { .. } | Input::Timeout => {}
            }
        }
        match running.store.commit(&held.turn.batch) {
            Ok(()) => {
                running.pulse = held.pulse;
                running.inbox.extend(held.later);
                let mut turn = self.written(held.turn);
                turn.effects.splice(0..0, said);
                Ok(turn)
            }
            Err(CommitError::Full) => {
                self.held = Some(held);
                Ok(Turn { batch: Vec::new(), effects: said })
            }
            Err(error) => {
                let expected = self.doomed;
                self.crash(Unsynced::Torn);
                Err(Some(error).filter(|_| !expected))
            }
        }
    }

    /// Something waits for room on its disk.
    pub(super) fn is_full(&self) -> bool {
        self.held.is_some()
    }

    /// There is no room on its disk from now on, or there is again.
    pub(super) fn fill(&mut self, full: bool) {
        if let Some(running) = &mut self.running
            && !self.doomed
        {
            let later = self.syncs_later && !full;
            testing::put_off_syncs(&mut running.store, later).expect("there is room");
        }
        self.disk.fill_after(full.then_some(0));
    }

    /// The secret of its connections from now on, as the daemon writes it into a file of its own.
    pub(super) fn keep_secret(&mut self, secret: LinkSecret) {
        self.config.secret = secret;
    }

    /// Which secret its connections have.
    pub(super) fn secret(&self) -> Epoch {
        self.config.secret.epoch()
    }

    /// When it has something to do by itself.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let running = self.running.as_ref()?;
        if self.held.is_some() {
            return Some(now + RETRY);
        }
        let deadline = running.engine.deadline();
        Some(running.unsaid.due().map_or(deadline, |due| due.min(deadline)))
    }

    fn written(&mut self, turn: Turn) -> Turn {
        let Some(running) = &mut self.running else { return turn };
        running.taken = std::mem::take(&mut running.unsaid_at);
        for change in &turn.batch {
            if let Change::Log { room, log, record } = change {
                running.logs.insert((*room, *log), record.id);
            }
        }
        for effect in &turn.effects {
            if let Effect::Pulse(pulse) = effect {
                running.pulse = Some(*pulse);
            }
        }
        turn
    }

    /// Its next sign of life, if it has anything to say.
    pub(super) fn beat(&mut self) -> Option<Beat> {
        let running = self.running.as_mut()?;
        let pulse = running.pulse?;
        running.rhythm.get_or_insert_default().beat(self.id, pulse, 0)
    }

    /// Its disk is copied, if it runs and the disk is sound.
    pub(super) fn back_up(&mut self) {
        if self.running.is_some() && !self.doomed && self.held.is_none() {
            self.backup = Some(self.image());
        }
    }

    pub(super) fn take_backup(&mut self) -> Option<Vec<u8>> {
        self.backup.take()
    }

    pub(super) fn is_restored(&self) -> bool {
        self.restored
    }

    /// An image of its disk now.
    pub(super) fn image(&mut self) -> Vec<u8> {
        self.sync();
        self.disk.image()
    }

    pub(super) fn log(&self, room: RoomId, log: LogIx) -> Option<LogId> {
        self.running.as_ref()?.logs.get(&(room, log)).copied()
    }

    /// When its engine took an act in that its last commit made durable.
    pub(super) fn taken(&self, room: RoomId, at: LocalRef) -> Option<Duration> {
        self.running.as_ref()?.taken.get(&(room, at)).copied()
    }

    pub(super) fn keeps(&self) -> Retention {
        self.config.retention
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn is_idle_until(&self) -> Duration {
        self.paused_until.max(self.stalled_until).max(self.busy_until)
    }

    /// Its disk is replaced by an old copy, as from a backup.
    pub(super) fn restore(&mut self, image: Vec<u8>) {
        self.exit();
        self.restored = true;
        self.disk = CrashingBackend::of(image, 0);
    }
}
