//! The subscriptions of this node: their rooms, and how far each is.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use mesh::{
    api::command::{Command, Opaque},
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{
    record::{After, Policy, Record},
    target::Target,
};
use crate::{
    backend::Mesh,
    limits::{WEBHOOKS_MAX, WEBHOOKS_PER_KEY_MAX},
    reply::{Ended, Reply},
    seam::answer::{Filter, SubscriptionView},
    secret::Secret,
};

/// See the module. The engine's thread rings it; it never waits.
#[derive(Debug, Default)]
pub(crate) struct Book {
    shelves: RwLock<Shelves>,
    /// The operator has switched them off: nothing is delivered, and their cursors stay.
    is_off: AtomicBool,
}

#[derive(Debug, Default)]
struct Shelves {
    by_id: BTreeMap<String, Arc<Subscription>>,
    by_room: HashMap<RoomId, Vec<Arc<Subscription>>>,
}

impl Shelves {
    fn may_add(&self, owner: KeyPrint) -> Result<(), Full> {
        if self.by_id.len() >= WEBHOOKS_MAX {
            return Err(Full::Node);
        }
        let same = |other: &&Arc<Subscription>| other.owner == owner;
        let count = self.by_id.values().filter(same).count();
        if count >= WEBHOOKS_PER_KEY_MAX { Err(Full::Key) } else { Ok(()) }
    }
}

/// Which bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Key,
    Node,
}

impl Book {
    /// Switches all of them on or off.
    pub(crate) fn switch(&self, on: bool) {
        self.is_off.store(!on, Ordering::Relaxed);
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.by_id.values().for_each(|hook| hook.wake.notify_one());
    }

    pub(super) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    /// Something was delivered in a room, or the room is there now.
    pub(crate) fn ring(&self, room: RoomId) {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.by_room.get(&room).into_iter().flatten().for_each(|hook| hook.wake.notify_one());
    }

    /// A room has ended.
    pub(crate) fn destroyed(&self, room: RoomId) {
        self.end(|hook| hook.room == room);
    }

    /// A key is no longer valid.
    pub(crate) fn revoked(&self, key: KeyPrint) {
        self.end(|hook| hook.owner == key);
    }

    fn end(&self, which: impl Fn(&Subscription) -> bool) {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.by_id.values().filter(|hook| which(hook)).for_each(|hook| hook.end());
    }

    /// Whether a key may have one more now.
    pub(super) fn may_add(&self, owner: KeyPrint) -> Result<(), Full> {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).may_add(owner)
    }

    /// Checks the bounds and adds it, in one step.
    pub(super) fn add(&self, hook: Arc<Subscription>) -> Result<(), Full> {
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        shelves.may_add(hook.owner)?;
        shelves.by_room.entry(hook.room).or_default().push(hook.clone());
        shelves.by_id.insert(hook.id.clone(), hook);
        Ok(())
    }

    pub(super) fn remove(&self, hook: &Subscription) {
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        shelves.by_id.remove(&hook.id);
        if let Some(others) = shelves.by_room.get_mut(&hook.room) {
            others.retain(|other| other.id != hook.id);
            if others.is_empty() {
                shelves.by_room.remove(&hook.room);
            }
        }
    }

    /// A subscription of the key.
    pub(super) fn get(&self, id: &str, key: KeyPrint) -> Option<Arc<Subscription>> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.by_id.get(id).filter(|hook| hook.owner == key && hook.is_live()).cloned()
    }

    /// All of the key, the oldest first.
    pub(super) fn list(&self, key: KeyPrint, room: Option<RoomId>) -> Vec<SubscriptionView> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let all = shelves.by_id.values().filter(|hook| hook.owner == key && hook.is_live());
        let all = all.filter(|hook| room.is_none_or(|room| hook.room == room));
        let mut views: Vec<_> = all.map(|hook| hook.view()).collect();
        views.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        views
    }

    pub(super) fn all(&self) -> Vec<Arc<Subscription>> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.by_id.values().cloned().collect()
    }

    /// Whose subscriptions there are.
    pub(super) fn owners(&self) -> Vec<KeyPrint> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let mut owners: Vec<KeyPrint> = shelves.by_id.values().map(|hook| hook.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

/// One subscription. Its worker moves it; everybody else may change its mind.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) owner: KeyPrint,
    pub(super) room: RoomId,
    pub(super) target: Target,
    pub(super) secret: Secret,
    pub(super) filter: Filter,
    /// Of an ephemeral room: never written, and gone with it.
    pub(super) ephemeral: bool,
    pub(super) wake: Notify,
    policy: Policy,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    record: Record,
    stage: Stage,
    /// After a failure.
    retry_at: Option<Instant>,
    /// Since when the store does not have it as it is.
    unkept: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is being written for the first time.
    Making,
    Live,
    /// It is being deleted.
    Deleting,
    Over,
}

/// The next step of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Nothing any more.
    End,
    /// Nothing until it is woken, or it is so late.
    Rest(Option<Instant>),
    /// To look for the next message after this number.
    Deliver(Number),
}

/// Where the store's word that it is kept comes.
pub(super) type Kept = oneshot::Receiver<Ended>;

impl Subscription {
    /// Being made: it does nothing before [`Subscription::live`].
    pub(super) fn new(record: Record, target: Target, policy: Policy, now_ms: u64) -> Subscription {
        let retry_at = record.wait(&policy, now_ms).map(|wait| Instant::now() + wait);
        Subscription {
            id: record.id.clone(),
            owner: record.owner(),
            room: record.room(),
            target,
            secret: record.secret.clone(),
            filter: record.filter.clone(),
            ephemeral: false,
            wake: Notify::new(),
            policy,
            state: Mutex::new(State { record, stage: Stage::Making, retry_at, unkept: None }),
        }
    }

    /// Of an ephemeral room.
    pub(super) fn ephemeral(self) -> Subscription {
        Subscription { ephemeral: true, ..self }
    }

    pub(super) fn view(&self) -> SubscriptionView {
        self.locked().record.view()
    }

    pub(super) fn is_live(&self) -> bool {
        self.locked().stage == Stage::Live
    }

    /// Whether it is delivered to: it has not failed too often.
    pub(super) fn is_active(&self) -> bool {
        self.locked().record.is_active()
    }

    /// It is durable, or is not to be. Unless it has ended meanwhile.
    pub(super) fn live(&self) {
        let mut state = self.locked();
        if state.stage == Stage::Making || state.stage == Stage::Deleting {
            state.stage = Stage::Live;
        }
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn end(&self) {
        self.locked().stage = Stage::Over;
        self.wake.notify_one();
    }

    /// `access`: whether its owner may read the room; `None`: there is no such room now.
    pub(super) fn duty(&self, access: Option<bool>) -> Duty {
        let mut state = self.locked();
        match state.stage {
            Stage::Over => return Duty::End,
            Stage::Making | Stage::Deleting => return Duty::Rest(None),
            Stage::Live => {}
        }
        let keep_at = state.unkept.map(|since| since + self.policy.keep_after);
        match access {
            Some(true) => {}
            Some(false) => state.stage = Stage::Over,
            // An ephemeral room does not come back under its subscribers.
            None if self.ephemeral => state.stage = Stage::Over,
            None => return Duty::Rest(keep_at),
        }
        if state.stage == Stage::Over {
            return Duty::End;
        }
        if !state.record.is_active() {
            return Duty::Rest(keep_at);
        }
        match state.retry_at.filter(|at| *at > Instant::now()) {
            Some(at) => Duty::Rest(Some(keep_at.map_or(at, |keep_at| keep_at.min(at)))),
            None => Duty::Deliver(state.record.cursor()),
        }
    }

    /// When the store is to be told.
    pub(super) fn keep_at(&self) -> Option<Instant> {
        self.locked().unkept.map(|since| since + self.policy.keep_after)
    }

    pub(super) fn advance(&self, upto: Number) {
        let mut state = self.locked();
        state.record.advance(upto);
        state.retry_at = None;
        state.unkept.get_or_insert_with(Instant::now);
    }

    pub(super) fn fail(&self, now_ms: u64) -> After {
        let mut state = self.locked();
        let after = state.record.fail(&self.policy, now_ms);
        state.retry_at = match after {
            After::Retry(pause) => Some(Instant::now() + pause),
            After::Failed => None,
        };
        state.unkept.get_or_insert_with(Instant::now);
        after
    }

    /// It goes on from where it stopped. `None`: the store is not to have it.
    pub(super) fn enable(&self, mesh: &dyn Mesh) -> Option<Kept> {
        let mut state = self.locked();
        state.record.enable();
        state.retry_at = None;
        state.unkept = None;
        let kept = state.keep(mesh, self.ephemeral);
        drop(state);
        self.wake.notify_one();
        kept
    }

    /// Has it written for the first time.
    pub(super) fn make(&self, mesh: &dyn Mesh) -> Kept {
        let state = self.locked();
        keep(mesh, &state.record, Some(state.record.encode()))
    }

    /// Has it written as it is now. `None`: the store has it so already, or is not to have it.
    pub(super) fn keep(&self, mesh: &dyn Mesh) -> Option<Kept> {
        // Asked under the lock: the last value that is asked for is the one that is kept.
        let mut state = self.locked();
        state.unkept.take()?;
        state.keep(mesh, self.ephemeral)
    }

    /// The store did not take it.
    pub(super) fn not_kept(&self) {
        self.locked().unkept.get_or_insert_with(Instant::now);
    }

    /// Has it deleted; nothing is delivered from now on. `None`: somebody else does, or has.
    pub(super) fn delete(&self, mesh: &dyn Mesh) -> Option<Kept> {
        let mut state = self.locked();
        if state.stage != Stage::Live {
            return None;
        }
        state.stage = Stage::Deleting;
        let kept = keep(mesh, &state.record, None);
        drop(state);
        self.wake.notify_one();
        Some(kept)
    }

    /// Has the store forget one that is over.
    pub(super) fn forget(&self, mesh: &dyn Mesh) -> Option<Kept> {
        (!self.ephemeral).then(|| keep(mesh, &self.locked().record, None))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&self, mesh: &dyn Mesh, ephemeral: bool) -> Option<Kept> {
        let kept = self.stage == Stage::Live && !ephemeral;
        kept.then(|| keep(mesh, &self.record, Some(self.record.encode())))
    }
}

fn keep(mesh: &dyn Mesh, record: &Record, value: Option<Vec<u8>>) -> Kept {
    let (reply, kept) = Reply::once();
    let value = value.map(Opaque);
    mesh.call(Command::Keep { name: record.name(), value }, reply);
    kept
}
