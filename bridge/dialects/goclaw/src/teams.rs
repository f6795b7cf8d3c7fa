//! Teams and their tasks: rooms, and tasks of rooms.

use bridge::seam::call::{
    AssignTask, ChangeTask, CreateRoom, DescribeRoom, ListRooms, ListTasks, ReadDetails, Say,
    SetRoom,
};
use mesh::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        command::{NewRoom, RoomInfo, RoomView},
    },
    name::id::{MessageId, RoomId},
    records::details::{Details, DetailsUpdate, RoomState},
    wire::acts::TaskStatus,
};
use serde_json::{Value, json};

use crate::{
    agents::is_online,
    caller::Caller,
    names::{self, uuid_of},
    outcome::{Code, No, Outcome},
    params::{ASSIGNEE, CONTENT, MEMBER, Names, Params, SUBJECT, TASK, TEAM, THIS_TEAM},
    times,
};

impl Caller {
    /// Rooms that are shown as teams.
    async fn teams(&self) -> Result<Vec<RoomView>, No> {
        let mut rooms = self.read(ListRooms { parent: None }).await?;
        rooms.retain(|room| room.sides.is_none());
        Ok(rooms)
    }

    /// The team that a text means: by its id, `lobby`, or its exact name.
    pub(crate) async fn team(&self, params: &Params, names: &Names) -> Result<RoomView, No> {
        let text = params.required(names)?;
        let missing = || No::not_found(format!("team not found: {text}"));
        let rooms = self.teams().await?;
        let id = if text == "lobby" { Some(self.shared.lobby) } else { RoomId::from_uuid(&text) };
        if let Some(room) = rooms.iter().find(|room| Some(room.room) == id) {
            return Ok(room.clone());
        }
        let named: Vec<&RoomView> = rooms.iter().filter(|room| *room.name == *text).collect();
        match *named {
            [] => Err(missing()),
            [one] => Ok(one.clone()),
            [..] => {
                let ids: Vec<String> =
                    named.iter().take(5).map(|room| room.room.to_uuid()).collect();
                Err(No::invalid(format!(
                    "several teams are called {text}: use one of {}",
                    ids.join(", ")
                )))
            }
        }
    }

    async fn details(&self, rooms: Vec<RoomId>) -> Result<Vec<Details>, No> {
        self.read(ReadDetails { rooms, settings: true }).await
    }

    /// The id of the mesh.
    pub(crate) fn tenant(&self) -> String {
        MessageId(self.shared.desk.config().here.mesh.0).to_uuid()
    }

    fn team_row(&self, room: &RoomView, details: &Details) -> Value {
        let mut settings: serde_json::Map<String, Value> = details
            .settings
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), serde_json::from_str(value).ok()?)))
            .collect();
        let visibility = if room.public { "public" } else { "private" };
        settings.insert("visibility".to_owned(), json!(visibility));
        let lead = room.created_by.as_deref().unwrap_or_default();
        let lead_uuid = if lead.is_empty() { String::new() } else { uuid_of(lead) };
        json!({
            "id": room.room.to_uuid(),
            "name": details.title.as_deref().unwrap_or(&room.name),
            "description": details.description.as_deref().or(room.description.as_deref()).unwrap_or_default(),
            "status": if is_archived(details) { "archived" } else { "active" },
            "lead_agent_id": lead_uuid,
            "lead_agent_key": lead,
            "lead_display_name": lead,
            "settings": settings,
            "created_by": lead,
            "created_at": times::text(room.created_ms),
            "updated_at": times::text(room.last_activity_ms.unwrap_or(room.created_ms)),
            "member_count": room.members,
            "tenant_id": self.tenant(),
            "mesh": {"encrypted": room.encrypted, "ephemeral": room.ephemeral, "shared": room.shared.is_some()},
        })
    }
}

/// Whether the team is of the caller's key.
pub(crate) fn owned(caller: &Caller, room: &RoomView) -> Result<(), No> {
    if room.owner == Some(caller.print()) {
        return Ok(());
    }
    Err(No::unauthorized("permission denied: not the owner of this team"))
}

/// Tells administrators who may see the team.
fn tell(caller: &Caller, event: &str, room: &RoomView, payload: &Value) {
    let (print, public) = (caller.print(), room.public);
    caller
        .shared
        .tell(event, payload, |client| client.is_admin() && (public || client.print() == print));
}

/// Settings as they are kept, each by itself; visibility is the room's, and not among them.
fn kept_settings(params: &Params) -> Result<Vec<(String, Option<String>)>, No> {
    let Some(settings) = params.object(&["settings"])? else { return Ok(Vec::new()) };
    let kept = settings.iter().filter(|(name, _)| *name != "visibility");
    let kept = kept.map(|(name, value)| {
        let value = (!value.is_null()).then(|| value.to_string());
        (name.clone(), value)
    });
    Ok(kept.collect())
}

pub(crate) async fn create(caller: &Caller, params: &Params) -> Outcome {
    let name = params.required(&["name"])?;
    for names in [&["members", "agent_ids", "agentIds"][..], &["lead"]] {
        if params
            .get(names)
            .is_some_and(|given| given.as_array().is_none_or(|list| !list.is_empty()))
        {
            let text = "members of teams are not kept yet: make the team without, and let its agents join the room";
            return Err(No::new(Code::NotImplemented, text));
        }
    }
    let settings = kept_settings(params)?;
    let visibility = params.object(&["settings"])?.and_then(|settings| settings.get("visibility"));
    let public = visibility.is_some_and(|visibility| visibility == "public");
    let description = params.filled(&["description"])?;
    let new =
        NewRoom { name, description, parent: None, ephemeral: false, public, encrypted: false };
    let who = caller.speaker();
    let room = caller.act(&who, CreateRoom(new)).await?;
    if !settings.is_empty() {
        let update = DetailsUpdate { settings, ..DetailsUpdate::default() };
        caller.act(&who, SetRoom { room: room.room, update }).await?;
    }
    let details = caller.details(vec![room.room]).await?.into_iter().next().unwrap_or_default();
    let team = caller.team_row(&room, &details);
    let told = json!({"team_id": team["id"], "team_name": team["name"], "lead_agent_key": team["lead_agent_key"]});
    tell(caller, "team.created", &room, &told);
    Ok(json!({"id": team["id"], "team": team}))
}

pub(crate) async fn update(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, THIS_TEAM).await?;
    owned(caller, &room)?;
    let (name, description) = (params.filled(&["name"])?, params.text(&["description"])?);
    if let Some(name) = &name {
        let others = caller.teams().await?;
        if others.iter().any(|other| *other.name == **name && other.room != room.room) {
            return Err(No::new(
                Code::AlreadyExists,
                format!("a team named {name} exists already"),
            ));
        }
    }
    let update = DetailsUpdate {
        title: name.clone().map(Some),
        description: description.map(|text| Some(text).filter(|text| !text.is_empty())),
        state: None,
        settings: kept_settings(params)?,
        ..DetailsUpdate::default()
    };
    let names = [("name", update.title.is_some()), ("description", update.description.is_some())];
    let names =
        names.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name.to_owned());
    let changes: Vec<String> =
        names.chain(update.settings.iter().map(|(name, _)| format!("settings.{name}"))).collect();
    if changes.is_empty() {
        return Err(No::invalid("name, description or settings is required"));
    }
    caller.act(&caller.speaker(), SetRoom { room: room.room, update }).await?;
    let shown = name.unwrap_or_else(|| room.name.to_string());
    let told = json!({"team_id": room.room.to_uuid(), "team_name": shown, "changes": changes});
    tell(caller, "team.updated", &room, &told);
    Ok(json!({"ok": true}))
}

fn is_archived(details: &Details) -> bool {
    details.state == Some(RoomState::Archived)
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let with_archived = params.flag(&["includeArchived"])?.unwrap_or(false);
    let rooms = caller.teams().await?;
    let details = caller.details(rooms.iter().map(|room| room.room).collect()).await?;
    let shown =
        rooms.iter().zip(&details).filter(|(_, details)| with_archived || !is_archived(details));
    let teams: Vec<Value> = shown.map(|(room, details)| caller.team_row(room, details)).collect();
    Ok(json!({"count": teams.len(), "teams": teams}))
}

pub(crate) async fn get(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, THIS_TEAM).await?;
    let RoomInfo { room, agents, leader, .. } = caller.read(DescribeRoom(room.room)).await?;
    let details = caller.details(vec![room.room]).await?.into_iter().next().unwrap_or_default();
    let id = room.room.to_uuid();
    let lead = room.created_by.as_deref();
    let members = agents.iter().map(|view| {
        let role = if Some(&*view.agent) == lead { "lead" } else { "member" };
        json!({
            "team_id": id,
            "agent_id": uuid_of(&view.agent),
            "agent_key": &*view.agent,
            "display_name": &*view.name,
            "role": role,
            "joined_at": times::text(view.connected_ms),
            "online": is_online(view),
            "seated": true,
        })
    });
    let members: Vec<Value> = members.collect();
    let mut team = caller.team_row(&room, &details);
    if let Some(leader) = leader {
        team["mesh"]["leader"] = json!(&*leader.agent);
    }
    Ok(json!({"team": team, "members": members, "id": id}))
}

/// The state of a task, in this dialect's words.
fn status_of(task: &TaskView) -> &'static str {
    match task.status {
        TaskStatus::Pending if task.assignee.is_none() => "pending",
        TaskStatus::Pending | TaskStatus::InProgress => "in_progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Blocked => "blocked",
    }
}

/// `n`: its place among the tasks of the room that are known here.
fn task_row(task: &TaskView, n: usize) -> Value {
    let id = task.task.to_uuid();
    let owner = task.assignee.as_deref().unwrap_or_default();
    let owner_uuid = if owner.is_empty() { String::new() } else { uuid_of(owner) };
    let short = id.get(..4).unwrap_or_default();
    let user = if names::is_principal(&task.created_by) { &*task.created_by } else { "" };
    let mut row = json!({
        "id": id,
        "team_id": task.room.to_uuid(),
        "subject": &*task.title,
        "description": task.description.as_deref().unwrap_or_default(),
        "status": status_of(task),
        "owner_agent_id": owner_uuid,
        "owner_agent_key": owner,
        "priority": 1,
        "task_number": n,
        "identifier": format!("T-{n}-{short}"),
        "progress_percent": 0,
        "progress_step": "",
        "result": "",
        "blocked_by": [],
        "created_by_agent_id": uuid_of(&task.created_by),
        "user_id": user,
        "channel": "",
        "chat_id": "",
        "task_type": "general",
        "metadata": {},
        "comment_count": usize::from(task.note.is_some()),
        "attachment_count": 0,
        "created_at": times::text(task.created_ms),
        "updated_at": times::text(task.updated_ms.unwrap_or(task.created_ms)),
        "note": task.note.as_deref().unwrap_or_default(),
    });
    if !task.contested.is_empty() {
        row["mesh"] = json!({"contested": task.contested});
    }
    row
}

/// Names that other versions have for a state.
const ALIASES: [(&str, &str); 4] = [
    ("open", "active"),
    ("assigned", "in_progress"),
    ("approved", "completed"),
    ("rejected", "cancelled"),
];
const STATES: [&str; 9] = [
    "all",
    "active",
    "pending",
    "in_progress",
    "blocked",
    "in_review",
    "completed",
    "cancelled",
    "failed",
];

/// The tasks of a team, each with its number.
async fn tasks_of(caller: &Caller, room: RoomId) -> Result<Vec<(usize, TaskView)>, No> {
    let tasks = caller.read(ListTasks { room, status: None }).await?;
    Ok(tasks.into_iter().enumerate().map(|(nth, task)| (nth + 1, task)).collect())
}

pub(crate) async fn tasks(caller: &Caller, params: &Params) -> Outcome {
    let limit = params.limit(200, 1_000)?;
    let wanted = params.filled(&["status"])?.unwrap_or_else(|| "all".to_owned());
    let alias = ALIASES.iter().find(|(name, _)| *name == wanted).map(|(_, of)| *of);
    let wanted = alias.map_or(wanted, str::to_owned);
    if !STATES.contains(&&*wanted) {
        return Err(No::invalid(format!("status must be one of {}", STATES.join(", "))));
    }
    let room = caller.team(params, TEAM).await?;
    // Tasks have no origin yet: of a channel there are none.
    let has_origin =
        params.filled(&["channel"])?.is_some() || params.filled(&["chatId", "chat_id"])?.is_some();
    let tasks = tasks_of(caller, room.room).await?;
    let is_wanted = |task: &TaskView| match &*wanted {
        "all" => true,
        "active" => task.status != TaskStatus::Completed,
        state => status_of(task) == state,
    };
    let shown = tasks.iter().rev().filter(|(_, task)| !has_origin && is_wanted(task));
    let taken = usize::try_from(limit).unwrap_or(usize::MAX);
    let rows: Vec<Value> = shown.take(taken).map(|(n, task)| task_row(task, *n)).collect();
    Ok(json!({"count": rows.len(), "tasks": rows}))
}

/// A task of a team, by its id.
async fn task_in(caller: &Caller, room: RoomId, params: &Params) -> Result<(usize, TaskView), No> {
    let named = params.required(TASK)?;
    let missing = || No::not_found(format!("task not found: {named}"));
    let id = MessageId::from_uuid(&named).ok_or_else(missing)?;
    let found = tasks_of(caller, room).await?.into_iter().find(|(_, task)| task.task == id);
    found.ok_or_else(missing)
}

/// Says in a room that a task is an agent's, so that the agent hears of it.
async fn say_assigned(caller: &Caller, room: RoomId, task: &TaskView, n: usize) -> Result<(), No> {
    let Some(agent) = &task.assignee else { return Ok(()) };
    let id = task.task.to_uuid();
    let metadata = json!({
        "kind": "task_assigned", "task_id": id, "expects_reply": false, "from": caller.user,
    });
    let say = Say {
        mentions: vec![agent.to_string()],
        metadata: Some(metadata.to_string()),
        expects_reply: Some(false),
        ..Say::chat(room, format!("[Assigned task #{n} ({id})]: {}", task.title))
    };
    caller.act(&caller.speaker(), say).await.map(drop)
}

/// Tells administrators who may see the team of something that happened to a task here.
fn tell_task(
    caller: &Caller,
    room: &RoomView,
    what: &str,
    (n, task): (usize, &TaskView),
    more: Value,
) {
    let mut told = json!({
        "team_id": room.room.to_uuid(), "task_id": task.task.to_uuid(), "task_number": n,
        "subject": &*task.title, "status": status_of(task), "timestamp": times::text(times::now_ms()),
        "user_id": caller.user, "actor_type": "human", "actor_id": &*caller.principal,
    });
    if let Some(owner) = &task.assignee {
        told["owner_agent_key"] = json!(&**owner);
    }
    if let (Some(told), Value::Object(more)) = (told.as_object_mut(), more) {
        told.extend(more);
    }
    tell(caller, &format!("team.task.{what}"), room, &told);
}

const SUBJECT_CHARS_MAX: usize = 500;
const DESCRIPTION_CHARS_MAX: usize = 10_000;

pub(crate) async fn create_task(caller: &Caller, params: &Params) -> Outcome {
    let (title, description) = (params.required(SUBJECT)?, params.filled(&["description"])?);
    let chars = |text: &str| text.chars().count();
    if chars(&title) > SUBJECT_CHARS_MAX {
        return Err(No::invalid(format!(
            "subject must have at most {SUBJECT_CHARS_MAX} characters"
        )));
    }
    if description.as_deref().is_some_and(|text| chars(text) > DESCRIPTION_CHARS_MAX) {
        let text = format!("description must have at most {DESCRIPTION_CHARS_MAX} characters");
        return Err(No::invalid(text));
    }
    let room = caller.team(params, TEAM).await?;
    // Nothing is made for an agent that nobody knows.
    let assignee = match params.filled(ASSIGNEE)? {
        Some(named) => Some(caller.agent(&named).await?.agent),
        None => None,
    };
    let new = NewTask { room: room.room, title, description, assignee };
    let task = caller.act(&caller.speaker(), AssignTask(new)).await?;
    let tasks = tasks_of(caller, room.room).await?;
    let n = tasks.iter().find(|(_, of)| of.task == task.task).map_or(tasks.len(), |(n, _)| *n);
    tell_task(caller, &room, "created", (n, &task), json!({}));
    if task.assignee.is_some() {
        say_assigned(caller, room.room, &task, n).await?;
        tell_task(caller, &room, "assigned", (n, &task), json!({}));
    }
    Ok(json!({"task": task_row(&task, n), "id": task.task.to_uuid()}))
}

pub(crate) async fn assign(caller: &Caller, params: &Params) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let (n, task) = task_in(caller, room.room, params).await?;
    let agent = caller.agent(&params.required(MEMBER)?).await?.agent;
    if let Some(holder) = &task.assignee {
        return Err(No::invalid(format!("task is held by {holder}")));
    }
    if task.status != TaskStatus::Pending {
        return Err(No::invalid("task is not pending"));
    }
    let update = TaskUpdate {
        task: task.task,
        status: None,
        assignee: Some(agent),
        note: None,
        // Of several at the same moment one gets it.
        if_assignee: Some(None),
    };
    let task = caller.act(&caller.speaker(), ChangeTask(update)).await?;
    say_assigned(caller, room.room, &task, n).await?;
    tell_task(caller, &room, "assigned", (n, &task), json!({}));
    Ok(json!({"ok": true, "task": task_row(&task, n)}))
}

/// A comment is the task's note: it keeps the newest one.
pub(crate) async fn comment(caller: &Caller, params: &Params) -> Outcome {
    let text = params.required(CONTENT)?;
    let room = caller.team(params, TEAM).await?;
    let (n, task) = task_in(caller, room.room, params).await?;
    let (task, note) = (task.task, Some(text.clone()));
    let update = TaskUpdate { task, status: None, assignee: None, note, if_assignee: None };
    let task = caller.act(&caller.speaker(), ChangeTask(update)).await?;
    tell_task(caller, &room, "commented", (n, &task), json!({"comment_text": text}));
    Ok(json!({"ok": true, "id": format!("{}-note", task.task.to_uuid())}))
}

/// `light`: the task alone.
pub(crate) async fn task(caller: &Caller, params: &Params, light: bool) -> Outcome {
    let room = caller.team(params, TEAM).await?;
    let (n, task) = task_in(caller, room.room, params).await?;
    let row = task_row(&task, n);
    if light {
        return Ok(json!({"task": row}));
    }
    // A task keeps its newest note, and not by whom it is.
    let comments = task.note.iter().map(|note| {
        json!({
            "id": format!("{}-note", task.task.to_uuid()), "task_id": task.task.to_uuid(), "content": &**note,
            "comment_type": "note", "created_at": times::text(task.updated_ms.unwrap_or(task.created_ms)),
        })
    });
    Ok(json!({
        "task": row, "id": task.task.to_uuid(), "comments": comments.collect::<Vec<Value>>(),
        "events": [], "attachments": [],
    }))
}
