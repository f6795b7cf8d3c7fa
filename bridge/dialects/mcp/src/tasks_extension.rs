//! The extension for tasks: a call that waits is answered with a handle, and its end is asked for later.
//!
//! A task is a row that the node keeps. What waits for its end is memory: after a restart it begins again when the host, which
//! alone has the key, asks for the task. It ends once: its end is kept before anybody is told of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use bridge::ids;
use mesh::name::id::KeyPrint;
use rmcp::{
    ErrorData,
    model::{CallToolResponse, CreateTaskResult, DetailedTask, Task, TaskPayload, TaskStatus},
};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{OnceCell, watch},
    task::AbortHandle,
    time::sleep,
};

use crate::{
    asking::{Asking, Name},
    limits::{
        TASK_KEEP_RETRY, TASK_KEPT_FOR, TASK_POLL_EVERY, TASK_WAIT_MAX, TASKS_MAX,
        TASKS_PER_AGENT_MAX, TASKS_PER_KEY_MAX,
    },
    outcome::{No, NoAgent, error_of, object, result},
    tools::{
        Row,
        later::{self, Begun, Given},
    },
};

/// Names of kept rows begin so; the task's id follows.
const NAMES: &[u8] = b"mcp-task/";

/// All tasks of the node.
#[derive(Default)]
pub(crate) struct Tasks {
    read: OnceCell<()>,
    /// By id.
    known: Mutex<BTreeMap<String, Known>>,
}

/// A task, without its end.
struct Known {
    of: Name,
    tool: Row,
    /// What it needs to go on.
    kept: Value,
    created_ms: u64,
    updated_ms: u64,
    state: watch::Sender<State>,
    /// What waits for its end, if something does.
    waiting: Option<AbortHandle>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Working,
    /// It has ended, or is cancelled, and that is not kept yet.
    Ending,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Working | State::Ending => "working",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    fn named(name: &str) -> Option<State> {
        let all = [State::Working, State::Completed, State::Failed, State::Cancelled];
        all.into_iter().find(|state| state.name() == name)
    }

    fn has_ended(self) -> bool {
        match self {
            State::Working | State::Ending => false,
            State::Completed | State::Failed | State::Cancelled => true,
        }
    }

    fn status(self) -> TaskStatus {
        match self {
            State::Working | State::Ending => TaskStatus::Working,
            State::Completed => TaskStatus::Completed,
            State::Failed => TaskStatus::Failed,
            State::Cancelled => TaskStatus::Cancelled,
        }
    }
}

impl Known {
    fn state(&self) -> State {
        *self.state.borrow()
    }

    fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.created_ms.saturating_add(millis(TASK_KEPT_FOR))
    }

    fn task(&self, id: &str) -> Task {
        Task::new(id, self.state().status(), time(self.created_ms), time(self.updated_ms))
            .with_ttl_ms(millis(TASK_KEPT_FOR))
            .with_poll_interval_ms(millis(TASK_POLL_EVERY))
    }

    /// As it is kept, in a state, with its end.
    fn row(&self, state: State, ended: Value) -> Vec<u8> {
        let (agent, key) = &self.of;
        json!({
            "agent": agent, "key": key.0, "tool": self.tool.name(), "kept": self.kept,
            "created": self.created_ms, "updated": self.updated_ms, "state": state.name(), "ended": ended,
        })
        .to_string()
        .into_bytes()
    }

    fn of_row(bytes: &[u8]) -> Option<Known> {
        let row: Value = serde_json::from_slice(bytes).ok()?;
        let key: [u8; 16] = serde_json::from_value(row["key"].clone()).ok()?;
        Some(Known {
            of: (row["agent"].as_str()?.into(), KeyPrint(key)),
            tool: Row::named(row["tool"].as_str()?)?,
            kept: row["kept"].clone(),
            created_ms: row["created"].as_u64()?,
            updated_ms: row["updated"].as_u64()?,
            state: watch::Sender::new(State::named(row["state"].as_str()?)?),
            waiting: None,
        })
    }
}

impl Tasks {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads those that were kept, once.
    async fn read(&self, asking: &Asking) -> Result<(), No> {
        let desk = &asking.shared.desk;
        let read = self.read.get_or_try_init(async || {
            for (name, bytes) in desk.kept(NAMES.to_vec()).await? {
                let id = name.strip_prefix(NAMES).and_then(|id| std::str::from_utf8(id).ok());
                let known = Known::of_row(&bytes).filter(|known| !known.is_over(now_ms()));
                match id.zip(known) {
                    Some((id, known)) => drop(self.known().insert(id.to_owned(), known)),
                    None => desk.keep(name, None).await?,
                }
            }
            Ok::<(), No>(())
        });
        read.await.copied()
    }

    /// Those that are over, and as many that have ended as one more needs. An error: none of them has.
    fn makes_room(&self, of: &Name) -> Result<Vec<String>, No> {
        let mut known = self.known();
        let now_ms = now_ms();
        let mut gone: Vec<String> = Vec::new();
        gone.extend(known.extract_if(.., |_, known| known.is_over(now_ms)).map(|(id, known)| {
            known.waiting.inspect(AbortHandle::abort);
            id
        }));
        let of_agent = |known: &Known| known.of == *of;
        let of_key = |known: &Known| known.of.1 == of.1;
        let all = |_: &Known| true;
        let bounds = [
            (TASKS_PER_AGENT_MAX, &of_agent as &dyn Fn(&Known) -> bool),
            (TASKS_PER_KEY_MAX, &of_key),
            (TASKS_MAX, &all),
        ];
        for (max, counts) in bounds {
            if known.values().filter(|known| counts(known)).count() < max {
                continue;
            }
            let ended =
                known.iter().filter(|(_, known)| counts(known) && known.state().has_ended());
            let oldest = ended.min_by_key(|(_, known)| known.updated_ms).map(|(id, _)| id.clone());
            let oldest = oldest.ok_or_else(|| No::error("too many tasks go on; cancel one"))?;
            known.remove(&oldest);
            gone.push(oldest);
        }
        Ok(gone)
    }

    /// How a task of this agent is. A task of another one is as one that is not there.
    fn find<T>(
        &self,
        asking: &Asking,
        id: &str,
        look: impl FnOnce(&mut Known) -> T,
    ) -> Result<T, ErrorData> {
        let mut known = self.known();
        let of = asking.id();
        let found = known.get_mut(id).filter(|known| known.of == of && !known.is_over(now_ms()));
        found.map(look).ok_or_else(|| ErrorData::invalid_params("there is no such task", None))
    }

    /// The state changes, if it was this one.
    fn change(&self, id: &str, from: State, to: State) -> bool {
        let mut known = self.known();
        let found = known.get_mut(id).filter(|known| known.state() == from);
        found.is_some_and(|known| {
            known.updated_ms = now_ms();
            known.state.send_replace(to);
            true
        })
    }
}

/// Answers a call that may last with a task, unless it ends at once.
pub(crate) async fn begin(
    asking: &Asking,
    tool: Row,
    given: Map<String, Value>,
) -> Result<CallToolResponse, ErrorData> {
    let tasks = &asking.shared.tasks;
    tasks.read(asking).await.map_err(|no| refused(asking, no))?;
    let gone = match tasks.makes_room(&asking.id()) {
        Ok(gone) => gone,
        Err(no) => {
            let fields = no.fields().map_err(|(text, why)| error_of(text, why))?;
            return Ok(result(fields, false).into());
        }
    };
    for id in gone {
        asking
            .shared
            .desk
            .keep(name(&id), None)
            .await
            .map_err(|why| refused(asking, why.into()))?;
    }
    let patient = asking.patient(TASK_WAIT_MAX);
    let kept = match later::begin(&patient, tool, given).await {
        Ok(Begun::Over(fields, is_wrong)) => return Ok(result(fields, is_wrong).into()),
        Ok(Begun::Waits(kept)) => kept,
        Err((text, why)) => return Err(failed(asking, text, why)),
    };
    let (id, now_ms) = (ids::uuid(ids::random(), 4), now_ms());
    let state = watch::Sender::new(State::Working);
    let (of, waiting) = (asking.id(), None);
    let known = Known { of, tool, kept, created_ms: now_ms, updated_ms: now_ms, state, waiting };
    let task = known.task(&id);
    let row = known.row(State::Working, Value::Null);
    asking
        .shared
        .desk
        .keep(name(&id), Some(row))
        .await
        .map_err(|why| refused(asking, why.into()))?;
    tasks.known().insert(id.clone(), known);
    goes_on(asking, &id);
    Ok(CreateTaskResult::new(task).into())
}

/// Something waits for the end of a task from now on, if it has none and nothing does.
fn goes_on(asking: &Asking, id: &str) {
    let mut known = asking.shared.tasks.known();
    let Some(task) = known.get_mut(id) else { return };
    let waits = task.waiting.as_ref().is_some_and(|waiting| !waiting.is_finished());
    if task.state() != State::Working || waits {
        return;
    }
    let over_ms = task.created_ms.saturating_add(millis(TASK_WAIT_MAX));
    let left = Duration::from_millis(over_ms.saturating_sub(now_ms()));
    let (patient, id) = (asking.patient(left), id.to_owned());
    let (tool, kept) = (task.tool, task.kept.clone());
    let waiting = tokio::spawn(async move {
        let given = later::go_on(&patient, tool, &kept).await;
        // Cancelled meanwhile: what was found stays where it is.
        if patient.shared.tasks.change(&id, State::Working, State::Ending) {
            // Begun is finished: nobody ends this one.
            tokio::spawn(async move { ends(&patient, &id, given).await });
        }
    });
    task.waiting = Some(waiting.abort_handle());
}

/// Keeps the end of a task, and tells of it then.
async fn ends(asking: &Asking, id: &str, given: Given) {
    let (state, ended) = match &given.ended {
        Ok((fields, is_wrong)) => {
            (State::Completed, json!({"fields": fields, "isWrong": is_wrong}))
        }
        Err((text, why)) => {
            let error = error_of(text.clone(), *why);
            (State::Failed, json!({"error": {"code": error.code.0, "message": error.message}}))
        }
    };
    keeps_end(asking, id, state, ended).await;
    given.settle(asking).await;
}

async fn keeps_end(asking: &Asking, id: &str, state: State, ended: Value) {
    let tasks = &asking.shared.tasks;
    loop {
        let row = tasks.known().get(id).map(|known| known.row(state, ended.clone()));
        // It is over: nobody asks for it any more.
        let Some(row) = row else { return };
        if asking.shared.desk.keep(name(id), Some(row)).await.is_ok() {
            break;
        }
        sleep(TASK_KEEP_RETRY).await;
    }
    tasks.change(id, State::Ending, state);
}

/// How a task is, and its end.
pub(crate) async fn get(asking: &Asking, id: &str) -> Result<DetailedTask, ErrorData> {
    let tasks = &asking.shared.tasks;
    tasks.read(asking).await.map_err(|no| refused(asking, no))?;
    let (state, task) = tasks.find(asking, id, |known| (known.state(), known.task(id)))?;
    // The host is there.
    asking.shared.desk.attached(&asking.agent, asking.reader.key());
    let payload = match state {
        State::Working => {
            goes_on(asking, id);
            TaskPayload::Working
        }
        State::Ending => TaskPayload::Working,
        State::Cancelled => TaskPayload::Cancelled,
        State::Completed | State::Failed => {
            let kept = asking.shared.desk.kept(name(id)).await;
            let kept = kept.map_err(|why| refused(asking, why.into()))?;
            let row = kept.first().and_then(|(_, row)| serde_json::from_slice(row).ok());
            payload(row.unwrap_or_default())?
        }
    };
    Ok(DetailedTask::new(task, payload))
}

fn payload(mut row: Value) -> Result<TaskPayload, ErrorData> {
    let mut ended = row["ended"].take();
    if ended["error"].is_object() {
        return Ok(TaskPayload::Failed { error: object(ended["error"].take()) });
    }
    let is_wrong = ended["isWrong"] == true;
    let result = serde_json::to_value(result(object(ended["fields"].take()), is_wrong));
    let result = result.map_err(|_| ErrorData::internal_error("the end cannot be read", None))?;
    Ok(TaskPayload::Completed { result: object(result) })
}

/// Nothing is asked of a host during a task, so there is nothing that it could tell one.
pub(crate) async fn update(asking: &Asking, id: &str) -> Result<(), ErrorData> {
    asking.shared.tasks.read(asking).await.map_err(|no| refused(asking, no))?;
    asking.shared.tasks.find(asking, id, |_| ())
}

/// Ends a task that has not ended. What it waited for stays unread.
pub(crate) async fn cancel(asking: &Asking, id: &str) -> Result<(), ErrorData> {
    update(asking, id).await?;
    let tasks = &asking.shared.tasks;
    if !tasks.change(id, State::Working, State::Ending) {
        return Ok(());
    }
    tasks.find(asking, id, |known| drop(known.waiting.take().inspect(AbortHandle::abort)))?;
    let (asking, id) = (asking.clone(), id.to_owned());
    let keeping = tokio::spawn(async move {
        keeps_end(&asking, &id, State::Cancelled, Value::Null).await;
    });
    keeping.await.map_err(|_| ErrorData::internal_error("the node is stopping", None))
}

/// Ends when a task has ended.
pub(crate) async fn until_ended(asking: &Asking, id: &str) -> Result<(), ErrorData> {
    update(asking, id).await?;
    let mut state = asking.shared.tasks.find(asking, id, |known| known.state.subscribe())?;
    // An error: it is over.
    drop(state.wait_for(|state| state.has_ended()).await);
    Ok(())
}

fn failed(asking: &Asking, text: String, why: NoAgent) -> ErrorData {
    // The first one stays: there is one call in a request.
    asking.status.set(crate::server::status_of(why)).ok();
    error_of(text, why)
}

fn refused(asking: &Asking, no: No) -> ErrorData {
    match no {
        No::Agent { text, why } => failed(asking, text, why),
        no @ (No::Argument { .. } | No::Forbidden { .. } | No::Error { .. }) => {
            ErrorData::internal_error(no.text(), None)
        }
    }
}

fn name(id: &str) -> Vec<u8> {
    [NAMES, id.as_bytes()].concat()
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// As ISO 8601 has it.
fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}
