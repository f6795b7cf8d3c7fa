//! Schedules: what the jobs of a key are, and having them fired when they are due, at one of the key's nodes.
//!
//! Jobs and runs are records of a room that a key has with itself, so they are where its private rooms are: on the nodes to which
//! the key was presented, and those of a node's own key on that node alone. Of these nodes the one that holds the key's lease
//! fires (`book`: who looks when; `keeper`: looks). A slot's message is said as the job's owner, in its direct room with the
//! agent (`firing`), under an id that is the same at each node, and after a crash. Keys that have jobs are kept at this node: it fires them after
//! a start, before anybody has connected (`docs/decisions/cron.md`).
//!
//! A dialect asks at the [`Desk`], and judges who may ask.

mod book;
mod fields;
mod firing;
mod job;
mod keeper;
pub(crate) mod news;
pub mod plan;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod worlds;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use mesh::{
    api::command::ScheduleAct,
    name::{
        id::{AgentId, JobId, KeyPrint, MessageId, NodeId, RoomId},
        number::Number,
    },
    records::schedules::WantedRuns,
};
use tokio::{
    sync::{Mutex as Turn, Notify, Semaphore, broadcast},
    time::Instant,
};

use self::book::{Book, Entry, Now};
pub use self::{
    book::Last,
    job::{Deliver, Job, Run, Status, Target},
    text::parse,
};
use crate::{
    ids,
    limits::{FIRED_WAITING_MAX, SCHEDULE_RUNS_MAX, SCHEDULED_KEYS_MAX},
    read::Desk,
    seam::{
        call::ChangeJob,
        refusal::{Bound, Refusal},
    },
    secret::Secret,
};

pub(crate) use keeper::run;

/// Names of kept rows begin so; the print of the key follows, and its text is the row.
const PREFIX: &[u8] = b"schedule/";

/// The agent of a key whose direct room with itself has the key's schedule. Nobody else can claim ids that begin so.
fn scheduler(key: KeyPrint) -> AgentId {
    let print = key.to_string();
    format!("mcp-{}{SCHEDULER}", &print[..16]).as_str().into()
}

/// The end of its id: no user's principal has such a one.
const SCHEDULER: &str = "-~cron";

/// Whether an agent is the scheduler of a key: nobody talks to it.
#[must_use]
pub fn is_scheduler(agent: &str) -> bool {
    agent.starts_with("mcp-") && agent.ends_with(SCHEDULER)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    book::millis(since)
}

/// What is looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The room of a key, of which there are records.
    Find,
    /// The lease of a key.
    Renew,
    /// A job.
    Job(JobId),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Schedules {
    all: Mutex<All>,
    /// Something may be due earlier than it was.
    stir: Notify,
    told: broadcast::Sender<Arc<Fired>>,
    asked: broadcast::Sender<Arc<Asked>>,
    running: Arc<Semaphore>,
    /// Changes of clients, one after the other: names are of one job each.
    turn: Turn<()>,
    /// Jobs are read and taken in one after the other: a state that was read before another one is not taken in after it.
    reading: Turn<()>,
}

#[derive(Debug, Default)]
struct All {
    /// The operator has switched them off: nothing is fired.
    off: bool,
    books: BTreeMap<KeyPrint, Book>,
    timers: BTreeSet<(u64, KeyPrint, Timer)>,
}

/// Something has become of a job, at one of the key's nodes.
#[derive(Clone, Debug)]
pub struct Fired {
    /// The key.
    pub key: KeyPrint,
    /// The job, as it was then.
    pub job: Job,
    /// The run.
    pub run: Run,
    /// It has just begun; else it is over.
    pub begins: bool,
}

/// An agent was asked at this node, for a job. The answer is waited for here.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The key.
    pub key: Secret,
    /// The job.
    pub job: Job,
    /// The agent.
    pub agent: AgentId,
    /// The session in which it was asked.
    pub session: String,
    /// The direct room of the job's owner and the agent.
    pub room: RoomId,
    /// The request, and its number there.
    pub request: (MessageId, Number),
}

/// A job, and how far it is.
#[derive(Clone, Debug)]
pub struct JobState {
    /// It.
    pub job: Job,
    /// Its next slot. Unix milliseconds.
    pub next_ms: Option<u64>,
    /// Its last run.
    pub last: Option<Last>,
}

/// Why a schedule is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// There is no such job.
    NoJob,
    /// Another job of the key has the name.
    NameTaken,
    /// The node checks no keys, so nothing is a key's own.
    NoKeys,
    /// The operator of the node has switched jobs off.
    SwitchedOff,
    /// The node or the mesh says no.
    Refused(Refusal),
}

impl From<Refusal> for NotChanged {
    fn from(refusal: Refusal) -> NotChanged {
        NotChanged::Refused(refusal)
    }
}

impl Schedules {
    pub(crate) fn new() -> Schedules {
        Schedules {
            all: Mutex::default(),
            stir: Notify::new(),
            told: broadcast::channel(FIRED_WAITING_MAX).0,
            asked: broadcast::channel(FIRED_WAITING_MAX).0,
            running: Arc::new(Semaphore::new(SCHEDULE_RUNS_MAX)),
            turn: Turn::default(),
            reading: Turn::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    /// Has something looked at then, and not before.
    fn set_timer(&mut self, at_ms: u64, key: KeyPrint, timer: Timer) {
        self.timers.insert((at_ms, key, timer));
    }

    /// Looks when each job of a key is to be looked at.
    fn wind(&mut self, key: KeyPrint, me: NodeId) {
        let jobs: Vec<JobId> = self
            .books
            .get(&key)
            .into_iter()
            .flat_map(|book| book.entries.keys().copied())
            .collect();
        for job in jobs {
            self.wind_job(key, job, me);
        }
    }

    /// The same, of one job. A job that is due is looked at at once.
    fn wind_job(&mut self, key: KeyPrint, job: JobId, me: NodeId) {
        let now = now();
        let Some(book) = self.books.get_mut(&key) else { return };
        let entry = book.entries.get(&job).filter(|_| !self.off);
        let turn = entry.map(|entry| {
            let rank = book::rank_of(me, key);
            book.turn(entry, (me, rank), now)
        });
        let wake_ms = match turn {
            None | Some(book::Turn::Later(None)) => None,
            Some(book::Turn::Later(Some(at_ms))) => Some(at_ms),
            Some(book::Turn::AskLease | book::Turn::Fire) => Some(now.ms),
        };
        self.set_wake(key, job, wake_ms);
    }

    fn set_wake(&mut self, key: KeyPrint, job: JobId, wake_ms: Option<u64>) {
        let entry = self.books.get_mut(&key).and_then(|book| book.entries.get_mut(&job));
        let Some(entry) = entry else { return };
        if let Some(before) = std::mem::replace(&mut entry.wake_ms, wake_ms) {
            self.timers.remove(&(before, key, Timer::Job(job)));
        }
        self.timers.extend(wake_ms.map(|at_ms| (at_ms, key, Timer::Job(job))));
    }

    /// Nothing is fired any more, or all that is due is looked at again.
    fn switch(&mut self, off: bool, me: NodeId) {
        self.off = off;
        let keys: Vec<KeyPrint> = self.books.keys().copied().collect();
        for key in keys {
            self.wind(key, me);
        }
    }

    fn remove_job(&mut self, key: KeyPrint, job: JobId) {
        self.set_wake(key, job, None);
        if let Some(book) = self.books.get_mut(&key) {
            book.remove(job);
        }
    }

    fn remove_key(&mut self, key: KeyPrint) {
        self.books.remove(&key);
        self.timers.retain(|(_, of, _)| *of != key);
    }
}

fn now() -> Now {
    Now { ms: now_ms(), mono: Instant::now() }
}

fn state_of(entry: &Entry) -> JobState {
    JobState { job: entry.job.clone(), next_ms: entry.next_ms(), last: entry.last.clone() }
}

/// A new job's id.
#[must_use]
pub fn new_job() -> JobId {
    let mut id = ids::random::<16>();
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    JobId(id)
}

#[expect(clippy::missing_errors_doc, reason = "errors are documented at their types")]
impl Desk {
    /// A key was presented here: this node sees to its jobs from now on, if it has any.
    pub fn schedule_for(&self, key: Secret) {
        let desk = self.clone();
        drop(tokio::spawn(async move { keeper::open(&desk, key, false).await }));
    }

    /// The jobs of a key, as far as this node has them.
    #[must_use]
    pub fn jobs(&self, key: KeyPrint) -> Vec<JobState> {
        let all = self.schedules().lock();
        let book = all.books.get(&key);
        book.into_iter().flat_map(|book| book.entries.values().map(state_of)).collect()
    }

    /// The runs of a job, the newest first.
    pub async fn runs(&self, key: KeyPrint, job: JobId) -> Result<Vec<Run>, Refusal> {
        let Some(room) = self.schedules().lock().books.get(&key).and_then(|book| book.room) else {
            return Ok(Vec::new());
        };
        let views = self.reading(move |reads| reads.runs(room, WantedRuns::Of(job))).await?;
        let mut runs: Vec<Run> = views.iter().filter_map(Run::of).collect();
        runs.sort_by(|one, other| {
            (other.at_ms, other.place, other.node).cmp(&(one.at_ms, one.place, one.node))
        });
        Ok(runs)
    }

    /// A job is to be this. Answered when it is durable. `is_new`: it was not there before.
    pub async fn put_job(
        &self,
        key: &Secret,
        job: Job,
        is_new: bool,
    ) -> Result<JobState, NotChanged> {
        let schedules = self.schedules().clone();
        let turn = schedules.turn.lock().await;
        let (print, room) = self.schedule_room(key).await?;
        {
            let all = schedules.lock();
            let entries = all.books.get(&print).map(|book| &book.entries);
            let mut others = entries.into_iter().flat_map(|entries| entries.values());
            if !is_new && !entries.is_some_and(|entries| entries.contains_key(&job.id)) {
                return Err(NotChanged::NoJob);
            }
            if others.any(|entry| entry.job.name == job.name && entry.job.id != job.id) {
                return Err(NotChanged::NameTaken);
            }
        }
        let holder = self.holder(key.clone()).await?;
        let act = ScheduleAct::Put(job.id, job.text());
        self.ask(&holder, ChangeJob { room, act }).await?;
        let state = keeper::has_put(self, print, room, job.id).await?;
        keeper::see_to_row(self, print).await;
        drop(turn);
        state.ok_or(NotChanged::NoJob)
    }

    /// A job is deleted, for ever.
    pub async fn delete_job(&self, key: &Secret, job: JobId) -> Result<(), NotChanged> {
        let schedules = self.schedules().clone();
        let turn = schedules.turn.lock().await;
        let (print, room) = self.schedule_room(key).await?;
        let is_there =
            schedules.lock().books.get(&print).is_some_and(|book| book.entries.contains_key(&job));
        if !is_there {
            return Err(NotChanged::NoJob);
        }
        let holder = self.holder(key.clone()).await?;
        self.ask(&holder, ChangeJob { room, act: ScheduleAct::Remove(job) }).await?;
        {
            // The keeper may have read it before, and not taken it in yet.
            let _reading = schedules.reading.lock().await;
            schedules.lock().remove_job(print, job);
        }
        keeper::see_to_row(self, print).await;
        drop(turn);
        Ok(())
    }

    /// A job is fired now, at this node. Its slot.
    pub fn fire_job(&self, key: KeyPrint, job: JobId) -> Result<String, NotChanged> {
        if !self.fires_jobs() {
            return Err(NotChanged::SwitchedOff);
        }
        let slot = new_job().to_string();
        let begun = keeper::fire(self, (key, job), slot.clone(), true);
        if begun { Ok(slot) } else { Err(NotChanged::NoJob) }
    }

    /// Whether this node fires jobs: its operator may have switched that off.
    #[must_use]
    pub fn fires_jobs(&self) -> bool {
        !self.hub().scheduled.is_off()
    }

    /// Hears what becomes of jobs, at all nodes of their keys, from now on.
    #[must_use]
    pub fn hear_jobs(&self) -> broadcast::Receiver<Arc<Fired>> {
        self.schedules().told.subscribe()
    }

    /// Hears of agents that are asked at this node for jobs, from now on.
    #[must_use]
    pub fn hear_asked(&self) -> broadcast::Receiver<Arc<Asked>> {
        self.schedules().asked.subscribe()
    }

    /// The room of a key's schedule, made if there is none.
    async fn schedule_room(&self, key: &Secret) -> Result<(KeyPrint, RoomId), NotChanged> {
        let print = self.holder(key.clone()).await?;
        if print.signer().is_none() {
            return Err(NotChanged::NoKeys);
        }
        let print = print.key();
        keeper::open(self, key.clone(), true).await?;
        let books = self.schedules().lock();
        match books.books.get(&print) {
            Some(Book { room: Some(room), .. }) => Ok((print, *room)),
            Some(_) => Err(NotChanged::Refused(Refusal::Overloaded)),
            None => {
                let text = format!("this node sees to the jobs of {SCHEDULED_KEYS_MAX} keys");
                Err(NotChanged::Refused(Refusal::Full { bound: Bound::Node, text }))
            }
        }
    }
}
