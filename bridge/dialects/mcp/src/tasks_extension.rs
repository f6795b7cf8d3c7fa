//! The extension for tasks: a call that waits is answered with a handle, and its end is asked for later.
//!
//! A task is a row that the node keeps. What waits for its end is memory: after a restart it begins again when the host, which
//! alone has the key, asks for the task. It ends once: its end is kept before anybody is told of it.

use std::time::Duration;

use bridge::ids;
use rmcp::{
    ErrorData,
    model::{CallToolResponse, CreateTaskResult, DetailedTask, TaskPayload},
};
use serde_json::{Map, Value, json};
use tokio::{sync::watch, task::AbortHandle, time::sleep};

use crate::{
    asking::Asking,
    limits::{TASK_KEEP_RETRY, TASK_WAIT_MAX},
    outcome::{No, NoAgent, error_of, object, result},
    rows::Row,
    tasks_kept::{Known, State, millis, name, now_ms},
    tools::later::{self, Begun, Given},
};

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
    let tool = tool.name().to_owned();
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
    // A row of another version may name a tool that there is not.
    let Some(tool) = Row::named(&task.tool) else { return };
    let kept = task.kept.clone();
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
