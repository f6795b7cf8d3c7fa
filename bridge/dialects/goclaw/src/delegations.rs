//! `delegations.*`: what agents have asked of each other. Read from the rooms that the caller may read: requests in direct rooms,
//! tasks that agents hand over in rooms of their own, and tasks of teams that one agent made and another one has.

use std::{cmp::Reverse, collections::BTreeMap};

use bridge::seam::{
    call::{From, History, ListDirect, Look},
    event::{Event, Message},
};
use mesh::{
    api::{
        agenda::{TaskField, TaskView},
        command::{RoomView, Speech},
        delivery::Stage,
    },
    name::id::{AgentId, MessageId},
    wire::tasks::TaskStatus,
};
use serde_json::{Value, json};

use crate::{
    caller::Caller,
    limits::{
        DELEGATION_RESULT_CHARS_LISTED, DELEGATION_RESULT_CHARS_MAX, DELEGATIONS_MAX,
        ROOM_MESSAGES_MAX, SESSION_ROOMS_MAX, TEAMS_LOOKED_AT_MAX,
    },
    names::{is_principal, user_of, uuid_of},
    outcome::{No, Outcome},
    params::{Params, TEAM},
    tasks,
    threads::{answered, metadata},
    times,
};

/// How a delegation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl State {
    const ALL: [State; 4] = [State::Running, State::Completed, State::Failed, State::Cancelled];

    const fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

/// Something that one agent has asked of another.
#[derive(Debug)]
struct Delegation {
    /// The request, or the task.
    id: MessageId,
    from: AgentId,
    to: AgentId,
    task: String,
    mode: &'static str,
    /// The team of a task.
    team: Option<String>,
    state: State,
    begun_ms: u64,
    ended_ms: Option<u64>,
    result: Option<String>,
    error: Option<String>,
}

impl Delegation {
    fn ends(&mut self, state: State, at_ms: u64) {
        self.state = state;
        self.ended_ms = Some(at_ms);
    }

    fn user(&self) -> Option<&str> {
        user_of(&self.to)
    }

    fn row(&self, result_chars: usize) -> Value {
        let ended_ms = self.ended_ms.unwrap_or_else(times::now_ms);
        let mut row = json!({
            "id": self.id.to_uuid(),
            "created_at": times::text(self.begun_ms),
            "source_agent_id": uuid_of(&self.from),
            "source_agent_key": &*self.from,
            "target_agent_id": uuid_of(&self.to),
            "target_agent_key": &*self.to,
            "task": self.task,
            "mode": self.mode,
            "status": self.state.name(),
            "iterations": 0,
            "duration_ms": ended_ms.saturating_sub(self.begun_ms),
        });
        if let Some(ended_ms) = self.ended_ms {
            row["completed_at"] = times::text(ended_ms);
        }
        let cut = |text: &String| text.chars().take(result_chars).collect::<String>();
        let task = self.team.as_ref().map(|_| self.id.to_uuid());
        let texts = [
            ("team_id", self.team.clone()),
            ("team_task_id", task),
            ("user_id", self.user().map(str::to_owned)),
            ("result", self.result.as_ref().map(cut)),
            ("error", self.error.clone()),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                row[name] = json!(value);
            }
        }
        row
    }
}

/// The requests of a direct room that an agent has made of the other one.
fn asked_in(view: &RoomView, messages: &[Message]) -> Vec<Delegation> {
    let Some(sides) = &view.sides else { return Vec::new() };
    let mut found: BTreeMap<MessageId, Delegation> = BTreeMap::new();
    for message in messages {
        let (author, told) = (&message.said.agent, metadata(message));
        let is_control = matches!(told["kind"].as_str(), Some("cancel" | "timeout"));
        if let Some(asked) = answered(message).and_then(|asked| found.get_mut(&asked))
            && asked.state == State::Running
        {
            if is_control && *author == asked.from {
                asked.ends(State::Cancelled, message.wall_ms);
            } else if *author == asked.to {
                let failure = told["error"].as_str().map(str::to_owned);
                let state = if failure.is_some() { State::Failed } else { State::Completed };
                asked.ends(state, message.wall_ms);
                asked.result = failure.is_none().then(|| message.said.content.clone());
                asked.error = failure;
            }
        }
        let place = message.said.conversation;
        // An answer that asks something back goes on with the same conversation.
        let asks = place.is_some_and(|place| place.expects_reply && place.answers.is_none());
        if !asks || is_principal(author) {
            continue;
        }
        let mut made = Delegation {
            id: message.message,
            from: author.clone(),
            to: sides.peer_of(author).clone(),
            task: message.said.content.clone(),
            mode: if view.task { "task" } else { "sync" },
            team: None,
            state: State::Running,
            begun_ms: message.wall_ms,
            ended_ms: None,
            result: None,
            error: None,
        };
        if let Some(fate) = message.fate.as_ref().filter(|fate| fate.stage == Stage::Failed) {
            made.ends(State::Failed, message.wall_ms);
            made.error = Some(fate.reason.as_ref().map(|reason| reason.text()).unwrap_or_default());
        }
        found.insert(message.message, made);
    }
    found.into_values().collect()
}

/// A task of a team that one agent made and another one has.
fn given(task: &TaskView) -> Option<Delegation> {
    let to = task.assignee.as_ref().filter(|to| **to != task.created_by)?;
    if is_principal(to) || is_principal(&task.created_by) {
        return None;
    }
    let state = match task.status {
        TaskStatus::Completed => State::Completed,
        TaskStatus::Failed => State::Failed,
        TaskStatus::Cancelled => State::Cancelled,
        TaskStatus::Pending
        | TaskStatus::InProgress
        | TaskStatus::Blocked
        | TaskStatus::InReview => State::Running,
    };
    let is_over = state != State::Running;
    Some(Delegation {
        id: task.task,
        from: task.created_by.clone(),
        to: to.clone(),
        task: task.title.to_string(),
        mode: "task",
        team: Some(task.room.to_uuid()),
        state,
        begun_ms: task.created_ms,
        ended_ms: task.updated_ms.filter(|_| is_over),
        result: task.result.as_deref().map(tasks::plain),
        error: None,
    })
}

/// The event of a task that one agent has given another, or that is over, and the delegation.
pub(crate) fn event(event: &Event) -> Option<(&'static str, Value)> {
    let (task, begins, ends) = if let Event::TaskMade(task) = event {
        (task, true, false)
    } else if let Event::TaskChanged(task, change) = event {
        (task, change.fields.contains(&TaskField::Assignee), change.was.is_some())
    } else {
        return None;
    };
    let given = given(task)?;
    let name = match given.state {
        State::Running if begins => "delegation.started",
        State::Completed if ends => "delegation.completed",
        State::Failed if ends => "delegation.failed",
        State::Cancelled if ends => "delegation.cancelled",
        State::Running | State::Completed | State::Failed | State::Cancelled => return None,
    };
    Some((name, given.row(DELEGATION_RESULT_CHARS_LISTED)))
}

impl Caller {
    /// All that are seen, the newest first.
    async fn delegations(&self) -> Result<Vec<Delegation>, No> {
        let mut all = Vec::new();
        let mut rooms = self.read(ListDirect).await?;
        rooms.sort_by_key(|view| Reverse(view.last_activity_ms));
        let own = |view: &RoomView| {
            let key = self.print();
            let sides = view.sides.as_ref()?;
            let may_be = |agent: &AgentId| self.is_admin() || *agent == self.principal;
            let mut of_key = sides.iter().filter(|(agent, of)| *of == key && may_be(agent));
            of_key.next().map(|(agent, _)| agent.clone())
        };
        let seen = rooms.iter().filter_map(|view| Some((view, own(view)?)));
        for (view, side) in seen.take(SESSION_ROOMS_MAX) {
            all.extend(asked_in(view, &self.said_in(view, &side).await?));
        }
        for team in self.teams().await?.into_iter().take(TEAMS_LOOKED_AT_MAX) {
            let tasks = tasks::tasks_of(self, team.room).await?;
            all.extend(tasks.iter().filter_map(given));
        }
        all.sort_by_key(|delegation| Reverse((delegation.begun_ms, delegation.id)));
        all.truncate(DELEGATIONS_MAX);
        Ok(all)
    }

    /// The newest messages of a direct room, as one of its sides reads them.
    async fn said_in(&self, view: &RoomView, side: &AgentId) -> Result<Vec<Message>, No> {
        let slot = self.shared.reading.acquire().await;
        let call = History {
            room: view.room,
            from: From::Newest,
            limit: ROOM_MESSAGES_MAX,
            before_ms: None,
        };
        let mut messages = self.read_as(side, call).await?.messages;
        drop(slot);
        let facts = self.read_as(side, Look(view.room)).await?;
        messages.retain(|message| {
            message.speech != Speech::Thinking && facts.withheld(&message.said.agent).is_none()
        });
        Ok(messages)
    }
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let (limit, offset) = (params.limit(20, DELEGATIONS_MAX as u64)?, params.offset()?);
    let (from, to) = (params.filled(&["source_agent_id"])?, params.filled(&["target_agent_id"])?);
    let (team, user) = (params.filled(TEAM)?, params.filled(&["user_id"])?);
    let status = params.filled(&["status"])?;
    if status.as_ref().is_some_and(|it| State::ALL.iter().all(|state| state.name() != it)) {
        let names = State::ALL.map(State::name).join(", ");
        return Err(No::invalid(format!("status must be one of {names}")));
    }
    let is = |wanted: &Option<String>, agent: &AgentId| {
        wanted.as_ref().is_none_or(|wanted| **agent == **wanted || uuid_of(agent) == *wanted)
    };
    let mut all = caller.delegations().await?;
    all.retain(|one| {
        is(&from, &one.from)
            && is(&to, &one.to)
            && team.as_ref().is_none_or(|team| one.team.as_ref() == Some(team))
            && user.as_ref().is_none_or(|user| one.user() == Some(user))
            && status.as_ref().is_none_or(|status| one.state.name() == status)
    });
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let taken = usize::try_from(limit).unwrap_or(usize::MAX);
    let page = all.iter().skip(skipped).take(taken);
    let rows: Vec<Value> = page.map(|one| one.row(DELEGATION_RESULT_CHARS_LISTED)).collect();
    Ok(json!({"records": rows, "total": all.len()}))
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let named = params.required(&["id"])?;
    let all = caller.delegations().await?;
    let found = all.iter().find(|one| one.id.to_uuid() == named);
    let found = found.ok_or_else(|| No::not_found(format!("delegation not found: {named}")))?;
    Ok(found.row(DELEGATION_RESULT_CHARS_MAX))
}
