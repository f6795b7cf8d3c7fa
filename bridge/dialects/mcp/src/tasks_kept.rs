//! Tasks of hosts, as the node keeps them: a row for each, and in memory what waits for its end.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use mesh::name::id::KeyPrint;
use rmcp::{
    ErrorData,
    model::{Task, TaskStatus},
};
use serde_json::{Value, json};
use tokio::{
    sync::{OnceCell, watch},
    task::AbortHandle,
};

use crate::{
    asking::{Asking, Name},
    limits::{TASK_KEPT_FOR, TASK_POLL_EVERY, TASKS_MAX, TASKS_PER_AGENT_MAX, TASKS_PER_KEY_MAX},
    outcome::No,
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
pub(crate) struct Known {
    pub(crate) of: Name,
    /// The tool's name.
    pub(crate) tool: String,
    /// What it needs to go on.
    pub(crate) kept: Value,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) state: watch::Sender<State>,
    /// What waits for its end, if something does.
    pub(crate) waiting: Option<AbortHandle>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    /// It has ended, or is cancelled, and that is not kept yet.
    Ending,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Working | State::Ending => "working",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    pub(crate) fn named(name: &str) -> Option<State> {
        let all = [State::Working, State::Completed, State::Failed, State::Cancelled];
        all.into_iter().find(|state| state.name() == name)
    }

    pub(crate) fn has_ended(self) -> bool {
        match self {
            State::Working | State::Ending => false,
            State::Completed | State::Failed | State::Cancelled => true,
        }
    }

    pub(crate) fn status(self) -> TaskStatus {
        match self {
            State::Working | State::Ending => TaskStatus::Working,
            State::Completed => TaskStatus::Completed,
            State::Failed => TaskStatus::Failed,
            State::Cancelled => TaskStatus::Cancelled,
        }
    }
}

impl Known {
    pub(crate) fn state(&self) -> State {
        *self.state.borrow()
    }

    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.created_ms.saturating_add(millis(TASK_KEPT_FOR))
    }

    pub(crate) fn task(&self, id: &str) -> Task {
        Task::new(id, self.state().status(), time(self.created_ms), time(self.updated_ms))
            .with_ttl_ms(millis(TASK_KEPT_FOR))
            .with_poll_interval_ms(millis(TASK_POLL_EVERY))
    }

    /// As it is kept, in a state, with its end.
    pub(crate) fn row(&self, state: State, ended: Value) -> Vec<u8> {
        let (agent, key) = &self.of;
        json!({
            "agent": agent, "key": key.0, "tool": self.tool, "kept": self.kept,
            "created": self.created_ms, "updated": self.updated_ms, "state": state.name(), "ended": ended,
        })
        .to_string()
        .into_bytes()
    }

    pub(crate) fn of_row(bytes: &[u8]) -> Option<Known> {
        let row: Value = serde_json::from_slice(bytes).ok()?;
        let key: [u8; 16] = serde_json::from_value(row["key"].clone()).ok()?;
        Some(Known {
            of: (row["agent"].as_str()?.into(), KeyPrint(key)),
            tool: row["tool"].as_str()?.to_owned(),
            kept: row["kept"].clone(),
            created_ms: row["created"].as_u64()?,
            updated_ms: row["updated"].as_u64()?,
            state: watch::Sender::new(State::named(row["state"].as_str()?)?),
            waiting: None,
        })
    }
}

impl Tasks {
    pub(crate) fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads those that were kept, once.
    pub(crate) async fn read(&self, asking: &Asking) -> Result<(), No> {
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
    pub(crate) fn makes_room(&self, of: &Name) -> Result<Vec<String>, No> {
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
    pub(crate) fn find<T>(
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
    pub(crate) fn change(&self, id: &str, from: State, to: State) -> bool {
        let mut known = self.known();
        let found = known.get_mut(id).filter(|known| known.state() == from);
        found.is_some_and(|known| {
            known.updated_ms = now_ms();
            known.state.send_replace(to);
            true
        })
    }
}

pub(crate) fn name(id: &str) -> Vec<u8> {
    [NAMES, id.as_bytes()].concat()
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// As ISO 8601 has it.
pub(crate) fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}
