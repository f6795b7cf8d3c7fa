//! Events that need a look at the mesh: members that come and go, rooms that are opened and closed.

use bridge::seam::{
    call::{GetProfile, ListTasks},
    event::{Event, Message},
};
use bytes::Bytes;
use mesh::{
    api::{agenda::TaskView, command::AgentView},
    name::id::{AgentId, RoomId},
};
use serde_json::{Value, json};

use crate::{
    agents::model_of, approvals, envelope::Told, git, limits::GRACE_SECS, names, problem::Problem,
    rooms, said::Saying, state::Context, style::shown, times,
};

/// The frames of an event. None, if the room cannot be looked at any more: nobody misses an event of it.
pub(crate) async fn told(cx: &Context, event: Event) -> Vec<Bytes> {
    let told = if let Event::Joined { room, agent, name, reconnected } = event {
        joined(cx, room, (&agent, &name), reconnected).await
    } else if let Event::Left { room, agent } = event {
        left(cx, room, &agent).await
    } else if let Event::RoomOpened { room, .. } = event {
        let set = rooms::set(cx, room.room).await;
        set.map(|set| Some(rooms::opened(cx.style(), "room.created", &room, &set)))
    } else if let Event::Said(message) = event {
        return said(cx, &message).await;
    } else if let Event::ApprovalDecided(view) | Event::MayOrMayNot(view) = event {
        Ok(Some(approvals::decided(cx, &view).await))
    } else if let Event::RoomClosed { room } = event {
        let payload = json!({"room_id": cx.style().room(room)});
        Ok(Some(rooms::answer("extension.room_closed", rooms::NAMESPACE, payload)))
    } else {
        Ok(None)
    };
    match told {
        Ok(told) => told.into_iter().map(|told| cx.frame(told)).collect(),
        Err(problem) => {
            tracing::debug!(why = %problem.message, "a client is not told of an event");
            Vec::new()
        }
    }
}

/// What the same agent has said over another connection; and what a message has brought up.
async fn said(cx: &Context, message: &Message) -> Vec<Bytes> {
    let direct = cx.shared.desk.is_direct(message.room);
    let hears = cx.state().rooms.contains(&message.room);
    let own = cx.agent().is_ok_and(|agent| **agent == *message.said.agent);
    let mut told = Vec::new();
    let metadata = message.said.metadata.as_deref();
    if hears && approvals::is_decision(metadata) {
        // One that is so is told by its own event.
        if approvals::checked(cx, message).await.is_none() {
            told.push(Saying::of(message, direct).told(cx.style()));
        }
    } else if own && (direct || hears) {
        told.push(Saying::of(message, direct).told(cx.style()));
    }
    if hears && git::may_be_commit(metadata) {
        told.extend(git::warnings(cx, message.room, message.message).await);
    }
    told.into_iter().map(|told| cx.frame(told)).collect()
}

async fn joined(
    cx: &Context,
    room: RoomId,
    (agent, name): (&AgentId, &str),
    again: bool,
) -> Result<Option<Told>, Problem> {
    if names::user_of(agent).is_some() {
        return Ok(person(cx, room, (agent, Some(name)), true));
    }
    let me = cx.me()?;
    let members = cx.shared.census(&me, room).await?;
    let member = members.iter().find(|member| member.agent == *agent);
    let profile = cx.shared.desk.ask(&me, GetProfile(agent.clone())).await?.profile;
    let message = if again { format!("{name} is back.") } else { format!("{name} joined.") };
    let capabilities = member.map_or(&[][..], |member| &member.capabilities);
    let data = json!({
        "room_id": cx.style().room(room),
        "agent": {
            "agent_id": &**agent,
            "display_name": shown(name),
            "model_info": model_of(&profile),
            "owner": cx.style().owner(member.and_then(key_of)),
            "capabilities": capabilities,
        },
        "room_state": rooms::state_of(cx, room, &members),
        "introduction": {"auto_generated": true, "message": message},
    });
    let told = Told::fresh("room.agent_joined", data);
    Ok(Some(told.with("room_id", cx.style().room(room))))
}

fn key_of(member: &AgentView) -> Option<mesh::name::id::KeyPrint> {
    member.key.checked()
}

async fn left(cx: &Context, room: RoomId, agent: &AgentId) -> Result<Option<Told>, Problem> {
    if names::user_of(agent).is_some() {
        return Ok(person(cx, room, (agent, None), false));
    }
    let me = cx.me()?;
    let members = cx.shared.census(&me, room).await?;
    // A look of a moment ago may still have it.
    let rest: Vec<AgentView> =
        members.iter().filter(|member| member.agent != *agent).cloned().collect();
    let tasks = cx.shared.desk.ask(&me, ListTasks { room, status: None }).await?;
    let is_held =
        |task: &&TaskView| task.assignee.as_ref() == Some(agent) && !task.status.is_terminal();
    let held: Vec<String> =
        tasks.iter().filter(is_held).map(|task| cx.style().task(task)).collect();
    let data = json!({
        "room_id": cx.style().room(room),
        "agent": {"agent_id": &**agent, "display_name": shown(agent)},
        "leave_reason": "connection_lost",
        "leave_details": {
            "graceful": false,
            "last_activity": times::text(times::now_ms()),
            "tasks_in_progress": held,
        },
        "impact": {
            "tasks_affected": held.len(),
            "reassignment_needed": !held.is_empty(),
            "grace_period_seconds": GRACE_SECS,
        },
        "room_state": rooms::state_of(cx, room, &rest),
    });
    let told = Told::fresh("room.agent_left", data);
    Ok(Some(told.with("room_id", cx.style().room(room))))
}

/// A person comes or goes: the dialect has a type for agents alone.
fn person(
    cx: &Context,
    room: RoomId,
    (agent, name): (&AgentId, Option<&str>),
    joined: bool,
) -> Option<Told> {
    if !cx.state().namespaces.contains(rooms::NAMESPACE) {
        return None;
    }
    let user = cx.style().user(agent, name);
    let payload: Value = json!({
        "room_id": cx.style().room(room),
        "user_id": user["user_id"],
        "display_name": user["display_name"],
        "joined": joined,
    });
    let told = rooms::answer("extension.room_member", rooms::NAMESPACE, payload);
    Some(told.with("room_id", cx.style().room(room)))
}
