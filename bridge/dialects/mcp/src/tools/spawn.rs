//! Handing a task over to another agent: a room of its own, a task in it, and a message that waits for the result.

use std::{cmp::Reverse, collections::BTreeSet, time::Duration};

use bridge::{
    seam::call::{AssignTask, From, History, ListTasks, OpenDirect, Say},
    tokens::Visibility,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskView},
        command::{RoomView, SaidOk},
    },
    name::{
        group::TaskSeed,
        id::{AgentId, MessageId},
        number::Number,
    },
    wire::acts::TaskStatus,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::send::{self, Ending, Request, Target, refuse_wrong_targets};
use crate::{
    arguments::Arguments,
    asking::Asking,
    limits::{
        CHILDREN_LOOKED_AT_MAX, CHILDREN_MAX, IDEMPOTENCY_CHARS_MAX, LABEL_CHARS_MAX, PAGE_MIN,
        SEARCH_CHARS_MAX, TITLE_CHARS_MAX,
    },
    outcome::{No, Outcome, object},
    reach::{Reachable, everybody},
    sessions::Session,
};

/// The capability of agents that take tasks of others.
const OFFERS: &str = "spawn";

/// A task that one agent has given to another, in a room of its own.
pub(super) struct Child {
    pub(super) room: RoomView,
    pub(super) task: TaskView,
}

impl Child {
    /// Whether an agent that was given it has begun it.
    fn is_begun_by(&self, agent: &AgentId) -> bool {
        let task = &self.task;
        let is_given = task.assignee.as_ref() == Some(agent) && task.created_by != *agent;
        is_given && task.status == TaskStatus::InProgress
    }

    fn goes_on(&self) -> bool {
        !has_ended(&self.task)
    }
}

/// Whether a task is over.
pub(super) fn has_ended(task: &TaskView) -> bool {
    matches!(task.status, TaskStatus::Completed | TaskStatus::Blocked)
}

/// Tasks in rooms of their own, the newest first: those that the agent has given, and those that it was given.
pub(super) async fn children(asking: &Asking) -> Result<Vec<Child>, No> {
    let mut rooms = asking.rooms().await?;
    rooms.retain(|room| room.task);
    rooms.sort_by_key(|room| Reverse(room.created_ms));
    let mut children = Vec::new();
    for room in rooms.into_iter().take(CHILDREN_LOOKED_AT_MAX) {
        let tasks = asking.read(ListTasks { room: room.room, status: None }).await?;
        children.extend(tasks.into_iter().next().map(|task| Child { room, task }));
    }
    Ok(children)
}

/// The agents to which the agent has given tasks.
pub(crate) async fn workers(asking: &Asking) -> Result<BTreeSet<AgentId>, No> {
    let mut own = children(asking).await?;
    own.retain(|child| child.task.created_by == asking.agent);
    Ok(own.into_iter().filter_map(|child| child.task.assignee).collect())
}

/// Tasks that it was given, has begun, and has not ended.
pub(super) async fn begun(asking: &Asking) -> Result<Vec<MessageId>, No> {
    let children = children(asking).await?;
    Ok(children
        .iter()
        .filter(|child| child.is_begun_by(&asking.agent))
        .map(|child| child.task.task)
        .collect())
}

pub(super) async fn spawn(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    refuse_wrong_targets(arguments)?;
    let text = arguments.required("task", usize::MAX)?;
    let label = arguments.filled("label", LABEL_CHARS_MAX)?;
    let capability = arguments.filled("capability", SEARCH_CHARS_MAX)?;
    let named = arguments.filled("agentId", crate::limits::KEY_CHARS_MAX)?;
    if asking.grant.visibility < Visibility::Spawned {
        // It would not see what comes of it.
        return Err(asking.not_visible("subagent"));
    }
    let wait = arguments.wait(0)?;
    let idempotency = arguments.filled("idempotencyKey", IDEMPOTENCY_CHARS_MAX)?;
    let seed = seed(asking, idempotency.as_deref());
    let children = children(asking).await?;
    let is_own = |child: &&Child| child.task.created_by == asking.agent;
    if idempotency.is_none() {
        may_have_one_more(asking, &children)?;
    }
    let worker = match named {
        Some(named) => match asking.agent_of(named.trim()).await? {
            Session::Agent(agent) => agent,
            Session::Main | Session::Room(_) | Session::Thread(..) => {
                return Err(No::argument("agentId", "must be another agent"));
            }
        },
        None => {
            let wanted = capability.as_deref().unwrap_or(OFFERS);
            let own: Vec<&Child> = children.iter().filter(is_own).collect();
            offering(asking, wanted, &own, seed).await?
        }
    };
    // Nothing is given by a call that could not wait.
    let held = if wait == Duration::ZERO { None } else { Some(asking.wait()?) };
    let room = asking.act(OpenDirect { agent: worker.clone(), task: Some(seed) }).await?;
    let target = Target::of_task(asking, room, worker.clone());
    let given = match given(asking, &target).await? {
        Some((given, said)) if said == text => (given, true),
        Some(_) => return Err(No::error("idempotencyKey was used for another task")),
        None => {
            if idempotency.is_some() {
                may_have_one_more(asking, &children)?;
            }
            (give(asking, &target, &text, label.as_deref()).await?, false)
        }
    };
    let ((message, number), is_repeat) = given;
    let mut fields = object(json!({
        "childSessionKey": target.key,
        "sessionKey": target.key,
        "runId": message.to_uuid(),
        "worker": worker,
    }));
    if is_repeat {
        fields.insert("duplicate".to_owned(), json!(true));
    }
    if wait == Duration::ZERO {
        let note = "the result comes to your inbox; do not wait in a loop";
        fields.extend(object(json!({
            "status": "accepted", "delivery": send::pending(), "note": note,
        })));
        return Ok(fields);
    }
    let request = Request { message, number };
    let ending = Ending { wait, fields };
    let ended = send::wait_for_answer(asking, &target, request, ending).await;
    drop(held);
    ended
}

/// Of an agent that works on a task of another one, or has given as many as it may, none is taken.
fn may_have_one_more(asking: &Asking, children: &[Child]) -> Result<(), No> {
    let begun = children.iter().find(|child| child.is_begun_by(&asking.agent));
    if let Some(child) = begun {
        let task = child.task.task.to_uuid();
        let text =
            format!("sessions_spawn is not allowed from sub-agent sessions: complete {task} first");
        return Err(No::forbidden("depth", text));
    }
    let own = children.iter().filter(|child| child.task.created_by == asking.agent);
    let active = own.filter(|child| child.goes_on()).count();
    if active >= CHILDREN_MAX {
        let text = format!("you have {active} active spawned tasks, which is the limit");
        return Err(No::forbidden("max_children", text));
    }
    Ok(())
}

/// The same for the same name of a task, so that a repeated call finds the room of the first one.
fn seed(asking: &Asking, name: Option<&str>) -> TaskSeed {
    let Some(name) = name else { return TaskSeed(bridge::ids::random()) };
    let parts = [b"clawmesh task".as_slice(), &[0], asking.agent.as_bytes(), &[0], name.as_bytes()];
    let hash = Sha256::digest(parts.concat());
    let mut seed = [0; 16];
    seed.copy_from_slice(&hash[..16]);
    TaskSeed(seed)
}

/// Of agents that are there and offer it, the one with the fewest tasks of this agent; of several one at this node, and of
/// several of those any.
async fn offering(
    asking: &Asking,
    capability: &str,
    own: &[&Child],
    seed: TaskSeed,
) -> Result<AgentId, No> {
    let here = asking.shared.desk.config().here.node;
    let busy = |agent: &AgentId| {
        own.iter()
            .filter(|child| child.goes_on() && child.task.assignee.as_ref() == Some(agent))
            .count()
    };
    let drawn = |agent: &AgentId| {
        let hash = Sha256::digest([&seed.0, agent.as_bytes()].concat());
        hash.to_vec()
    };
    let may = &asking.shared.desk.config().policies.agent_to_agent;
    let offers = |other: &Reachable| {
        let view = other.view.as_ref().filter(|_| may.allows(&asking.agent, &other.agent))?;
        let offers = view.capabilities.iter().any(|own| own == capability);
        offers.then(|| (busy(&other.agent), view.node != here, drawn(&other.agent)))
    };
    // Also of those that it is not shown: one that may hand tasks over has to find somebody who takes them.
    let all = everybody(asking, Some(capability)).await?;
    let best = all.iter().filter_map(|other| Some((offers(other)?, &other.agent))).min();
    let best = best.map(|(_, agent)| agent.clone());
    best.ok_or_else(|| No::error(format!("no agent offers {capability:?}")))
}

/// The message of a task that was given before, in a room that a repeated call has found.
async fn given(
    asking: &Asking,
    target: &Target,
) -> Result<Option<((MessageId, Number), String)>, No> {
    let (room, from) = (target.room.room, From::Number(0));
    let call = History { room, from, limit: PAGE_MIN, before_ms: None };
    let page = asking.read(call).await?.messages;
    let first = page.into_iter().find(|message| {
        let begins = message.said.conversation.is_some_and(|place| place.turn == 0);
        begins && message.said.agent == asking.agent
    });
    Ok(first.map(|first| ((first.message, first.number), first.said.content.clone())))
}

async fn give(
    asking: &Asking,
    target: &Target,
    text: &str,
    label: Option<&str>,
) -> Result<(MessageId, Number), No> {
    let title: String = match label {
        Some(label) => label.to_owned(),
        None => text.chars().take(TITLE_CHARS_MAX).collect(),
    };
    let (room, worker) = (target.room.room, target.peer.clone());
    let tasks = asking.read(ListTasks { room, status: None }).await?;
    let task = match tasks.into_iter().next() {
        Some(task) => task.task,
        None => {
            let new = NewTask { room, title, description: None, assignee: worker.clone() };
            asking.act(AssignTask(new)).await?.task
        }
    };
    let metadata = json!({"kind": "task", "expects_reply": true, "task_id": task.to_uuid()});
    let say = Say {
        mentions: worker.iter().map(|worker| worker.to_string()).collect(),
        metadata: Some(metadata.to_string()),
        expects_reply: Some(true),
        counted: true,
        by_tool: true,
        ..Say::chat(room, text.to_owned())
    };
    let SaidOk { message, number, .. } = asking.act(say).await?;
    Ok((message, number))
}

/// What the result of a task says of it, beside the result itself.
pub(super) async fn ended(
    asking: &Asking,
    room: &RoomView,
    result: &bridge::seam::event::Message,
) -> Result<Value, No> {
    let tasks = asking.read(ListTasks { room: room.room, status: None }).await?;
    let run = result.said.conversation.and_then(|place| place.answers);
    let mut ended = json!({
        "status": if send::failure(result).is_some() { "error" } else { "ok" },
        "childSessionKey": asking.names().key(room),
        "runId": run.map(|run| run.to_uuid()),
        "worker": result.said.agent,
    });
    if let Some(task) = tasks.first() {
        ended["label"] = json!(task.title);
        ended["taskId"] = json!(task.task.to_uuid());
        ended["runtimeMs"] = json!(result.wall_ms.saturating_sub(task.created_ms));
    }
    Ok(ended)
}
