//! Rooms: found, joined, read, made.

use std::time::Duration;

use bridge::seam::{
    call::{
        CreateRoom, CreateShared, DescribeRoom, FindAgent, From, History, ListRooms, ListTasks,
        ReadDetails, SetRoom, ShareRoom,
    },
    event::Message,
};
use bytes::Bytes;
use mesh::{
    api::{
        agenda::TaskView,
        command::{AgentView, NewRoom, RoomInfo, RoomView, ShareAct},
    },
    name::id::RoomId,
    records::details::{Details, DetailsUpdate, RoomState},
};
use serde_json::{Map, Value, json};

use crate::{
    approvals,
    connect::Right,
    envelope::{Request, Told},
    fields::At,
    limits::{
        PAGE_MAX, REPLAYED_MAX, ROOMS_LISTED_MAX, ROOMS_PER_HOUR, SPECTATORS_DEFAULT_MAX,
        TASKS_LISTED_MAX,
    },
    names,
    problem::Problem,
    said::Saying,
    shared::{Rate, counts},
    state::Context,
    style::{Style, shown},
    tasks::news,
};

/// Settings of a room that bind nobody but this dialect, or nobody at all, by their names, and those that they have without
/// a word of its hosts.
const MEMBERS_MAX: u64 = 20;
const SETTINGS: [&str; 8] = [
    "max_members",
    "require_approval",
    "spectators_allowed",
    "spectator_limit",
    "announce_spectator_joins",
    "spectator_chat",
    "git_integration_enabled",
    "claim_strategy",
];
/// With which the names of these settings begin among those of a room.
const OWN: &str = "clawtank.";

/// A room as its key has set it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    details: Details,
}

impl Set {
    pub(crate) fn setting(&self, name: &str) -> Option<Value> {
        let own = format!("{OWN}{name}");
        let json = self.details.settings.iter().find(|(known, _)| *known == own);
        json.and_then(|(_, json)| serde_json::from_str(json).ok())
    }

    pub(crate) fn state(&self) -> RoomState {
        self.details.state.unwrap_or(RoomState::Active)
    }

    /// Hosts give tasks to agents; nobody takes one.
    pub(crate) fn host_assigns(&self) -> bool {
        self.setting("claim_strategy") == Some(json!("host_assigns"))
    }

    /// Tasks that agents have done are looked at first.
    pub(crate) fn requires_approval(&self) -> bool {
        self.setting("require_approval") == Some(json!(true))
    }

    /// Records of repositories are taken.
    pub(crate) fn takes_git(&self) -> bool {
        self.setting("git_integration_enabled") != Some(json!(false))
    }

    pub(crate) fn members_max(&self) -> u64 {
        self.setting("max_members").and_then(|max| max.as_u64()).unwrap_or(u64::MAX)
    }

    /// All settings, as clients read them.
    fn shown(&self, public: bool) -> Value {
        let mut all = json!({
            "max_members": MEMBERS_MAX,
            "require_approval": false,
            "spectators_allowed": public,
            "spectator_limit": SPECTATORS_DEFAULT_MAX,
            "announce_spectator_joins": false,
            "spectator_chat": "visible",
            "git_integration_enabled": true,
            "claim_strategy": "first_claim",
        });
        for name in SETTINGS {
            if let Some(value) = self.setting(name) {
                all[name] = value;
            }
        }
        all
    }
}

/// What the key of a room has set.
pub(crate) async fn set(cx: &Context, room: RoomId) -> Result<Set, Problem> {
    let details = cx.read(ReadDetails { rooms: vec![room], settings: true }).await?;
    Ok(Set { details: details.into_iter().next().unwrap_or_default() })
}

/// Archived rooms take nothing more.
pub(crate) fn takes(set: &Set) -> Result<(), Problem> {
    match set.state() {
        RoomState::Archived => Err(Problem::conflict("the room is archived", "room_archived")),
        RoomState::Lobby | RoomState::Active | RoomState::Paused => Ok(()),
    }
}

/// The room that a client names: by an id in any form, or by its name.
pub(crate) async fn named(cx: &Context, text: &str) -> Result<RoomId, Problem> {
    if let Some(room) = cx.style().room_named(text) {
        return Ok(room);
    }
    let rooms = cx.shared.desk.ask(&cx.member.holder, ListRooms { parent: None }).await?;
    let room = rooms.iter().find(|room| *room.name == *text).map(|room| room.room);
    room.ok_or_else(|| Problem::missing("no such room"))
}

/// The room of a frame that may leave it out: the one that is meant then is the connection's only one.
pub(crate) async fn meant(cx: &Context, request: &Request) -> Result<RoomId, Problem> {
    let (beside, inside) = (request.metadata().get("room_id"), request.data().get("room_id"));
    let at = if beside.is_there() { beside } else { inside };
    if let Some(text) = at.text(256)? {
        return named(cx, text).await;
    }
    match *cx.rooms() {
        [room] => Ok(room),
        _ => Err(Problem::field("metadata.room_id", "room_id").instead("name the room")),
    }
}

/// All about a room that the client may read, whether it is an agent by now or not.
pub(crate) async fn look(cx: &Context, room: RoomId) -> Result<RoomInfo, Problem> {
    cx.read(DescribeRoom(room)).await
}

/// Whether the client's key has made the room.
pub(crate) fn hosts(cx: &Context, room: &RoomView) -> bool {
    room.owner == Some(cx.member.holder.key())
}

/// Whether there is a place for one more.
pub(crate) async fn has_place(cx: &Context, info: &RoomInfo) -> Result<(), Problem> {
    let set = set(cx, info.room.room).await?;
    takes(&set)?;
    let is_in = |agent: &AgentView| cx.member.agent.get() == Some(&agent.agent);
    let members = u64::try_from(info.agents.len()).unwrap_or(u64::MAX);
    if members >= set.members_max() && !info.agents.iter().any(is_in) {
        return Err(Problem::conflict("the room has as many members as it takes", "room_full"));
    }
    Ok(())
}

/// The members of a room, as an agent is told of them.
pub(crate) fn members(style: Style, info: &RoomInfo) -> Vec<Value> {
    let row = |member: &AgentView| {
        let mut row = style.user(&member.agent, Some(&member.name));
        let hosts = info.room.owner == Some(member.key);
        row["role"] = json!(if hosts { "host" } else { "participant" });
        if names::user_of(&member.agent).is_none() {
            row["agent_id"] = json!(&*member.agent);
        }
        row
    };
    info.agents.iter().map(row).collect()
}

/// A room as an agent is told of it that has come.
pub(crate) async fn context(cx: &Context, room: RoomId) -> Result<Value, Problem> {
    let (info, set) = (look(cx, room).await?, set(cx, room).await?);
    let mut context = json!({
        "room_id": cx.style().room(room),
        "room_name": shown(&info.room.name),
        "room_settings": settings(&info.room, &set),
        "current_members": members(cx.style(), &info),
    });
    if let Some(project) = set.setting("project_info") {
        context["project_info"] = project;
    }
    Ok(context)
}

fn settings(room: &RoomView, set: &Set) -> Value {
    let mut settings = set.shown(room.public);
    settings["visibility"] = json!(visibility(room));
    settings
}

fn visibility(room: &RoomView) -> &'static str {
    if room.public { "public" } else { "private" }
}

/// A room, as it is now.
pub(crate) fn row_of(cx: &Context, room: &RoomView, set: &Set) -> Value {
    row(cx.style(), room, set, cx.shared.spectators.count(room.room))
}

/// A room, as `room.created` has it.
pub(crate) fn row(style: Style, room: &RoomView, set: &Set, spectators: usize) -> Value {
    let creator = match &room.created_by {
        Some(agent) => style.user(agent, None),
        None => json!({
            "user_id": style.form.id("user", [0; 16]), "display_name": "mesh", "type": "system",
        }),
    };
    let details = &set.details;
    let description = details.description.as_deref().or(room.description.as_deref());
    let mut row = json!({
        "room_id": style.room(room.room),
        "name": &*room.name,
        "description": description.unwrap_or_default(),
        "visibility": visibility(room),
        "creator": creator,
        "settings": settings(room, set),
        "state": set.state().name(),
        "encrypted": room.encrypted,
        "member_count": room.members,
        "spectator_count": spectators,
    });
    for name in ["project_info", "git"] {
        if let Some(value) = set.setting(name) {
            row[name] = value;
        }
    }
    row
}

/// The event of a new room. `kind`: it, or the one of a room that was changed.
pub(crate) fn opened(style: Style, kind: &'static str, room: &RoomView, set: &Set) -> Told {
    let data = json!({
        "room": row(style, room, set, 0),
        "initial_state": {
            "member_count": room.members, "spectator_count": 0, "task_count": 0, "active_tasks": 0,
        },
    });
    let id = names::event_id(&[kind.as_bytes(), &room.room.0]);
    Told::of(id, kind, room.created_ms, data).with("room_id", style.room(room.room))
}

/// The answer of an extension.
pub(crate) fn answer(kind: &'static str, namespace: &str, payload: Value) -> Told {
    let data = json!({"extension_version": "1.0.0", "namespace": namespace, "payload": payload});
    Told::fresh(kind, data)
}

/// The namespace of these messages.
pub(crate) const NAMESPACE: &str = "clawmesh.room";

pub(crate) async fn list(cx: &Context) -> Result<Told, Problem> {
    let rooms = rows(cx).await?;
    Ok(answer("extension.room_list", NAMESPACE, json!({"rooms": rooms})))
}

/// The rooms that the client may see, but for those of two agents.
pub(crate) async fn rows(cx: &Context) -> Result<Vec<Value>, Problem> {
    let mut rooms = cx.shared.desk.ask(&cx.member.holder, ListRooms { parent: None }).await?;
    rooms.retain(|room| room.sides.is_none());
    rooms.truncate(ROOMS_LISTED_MAX);
    let ids = rooms.iter().map(|room| room.room).collect();
    let details = ReadDetails { rooms: ids, settings: true };
    let details = cx.shared.desk.ask(&cx.member.holder, details).await?;
    let sets = details.into_iter().map(|details| Set { details });
    let rows = rooms.iter().zip(sets).map(|(room, set)| row_of(cx, room, &set));
    Ok(rows.collect())
}

/// Makes a room, with the settings that are named.
pub(crate) async fn create(cx: &Context, config: &At<'_>) -> Result<Told, Problem> {
    let (room, set) = make(cx, config).await?;
    Ok(opened(cx.style(), "room.created", &room, &set))
}

/// The same, with what it has been set to.
pub(crate) async fn make(cx: &Context, config: &At<'_>) -> Result<(RoomView, Set), Problem> {
    cx.member.rights.may(Right::CreateRoom, false)?;
    let agent = cx.agent()?.clone();
    config.clone().required()?.object()?;
    let name = config.get("name").words(256)?.to_owned();
    let description = config.get("description").text(4_096)?.map(str::to_owned);
    let public = config.get("visibility").one_of(&["public", "private"])? != Some("private");
    let update = update(config)?;
    let hour = Duration::from_secs(3_600);
    cx.shared.take(&agent, Rate { of: "rooms", count: ROOMS_PER_HOUR, within: hour })?;
    let new =
        NewRoom { name, description, parent: None, ephemeral: false, public, encrypted: false };
    let room = if public {
        cx.ask(CreateRoom(new)).await?
    } else {
        cx.ask(CreateShared(NewRoom { public: false, ..new })).await?
    };
    if update != DetailsUpdate::default() {
        cx.ask(SetRoom { room: room.room, update }).await?;
    }
    let set = set(cx, room.room).await?;
    Ok((room, set))
}

/// Changes a room of the client's key.
pub(crate) async fn change(cx: &Context, room: RoomId, payload: &At<'_>) -> Result<Told, Problem> {
    let row = changed(cx, room, payload).await?;
    Ok(answer("extension.room_updated", NAMESPACE, json!({"room": row})))
}

/// The same: the room as it is then.
pub(crate) async fn changed(
    cx: &Context,
    room: RoomId,
    payload: &At<'_>,
) -> Result<Value, Problem> {
    let mut update = update(payload)?;
    if let Some(text) = payload.get("description").text(4_096)? {
        update.description = Some(Some(text.to_owned()));
    }
    let states = ["lobby", "active", "paused", "archived"];
    if let Some(state) = payload.get("state").one_of(&states)? {
        update.state = Some(RoomState::of(state));
    }
    if update == DetailsUpdate::default() {
        return Err(payload.bad("changes nothing"));
    }
    cx.ask(SetRoom { room, update }).await?;
    let (info, set) = (look(cx, room).await?, set(cx, room).await?);
    Ok(row_of(cx, &info.room, &set))
}

/// Gives a private room to the key of an agent: it, and others of that key, may join from then on.
pub(crate) async fn invite(cx: &Context, payload: &At<'_>) -> Result<Told, Problem> {
    cx.member.rights.may(Right::CreateRoom, false)?;
    let room = named(cx, payload.get("room_id").words(256)?).await?;
    let at = payload.get("agent_id");
    let found = cx.ask(FindAgent(at.words(256)?.into())).await?;
    let found = found.into_iter().next().ok_or_else(|| at.bad("no such agent is there"))?;
    let agent = found.agent;
    cx.ask(ShareRoom { room, agent: agent.clone(), act: ShareAct::Give }).await?;
    let payload = json!({"room_id": cx.style().room(room), "agent_id": &*agent});
    Ok(answer("extension.room_invite", NAMESPACE, payload))
}

/// Closes a room of the client's key, for ever.
pub(crate) async fn close(cx: &Context, room: RoomId) -> Result<Told, Problem> {
    end(cx, room).await?;
    let payload = json!({"room_id": cx.style().room(room)});
    Ok(answer("extension.room_closed", NAMESPACE, payload))
}

/// The same.
pub(crate) async fn end(cx: &Context, room: RoomId) -> Result<(), Problem> {
    cx.ask(SetRoom { room, update: DetailsUpdate { closes: true, ..DetailsUpdate::default() } })
        .await
}

/// Settings that a client names.
fn update(config: &At<'_>) -> Result<DetailsUpdate, Problem> {
    let at = config.get("settings");
    at.object()?;
    let mut settings = Vec::new();
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.push((format!("{OWN}{name}"), Some(value.to_string())));
        }
    };
    for name in [
        "require_approval",
        "spectators_allowed",
        "announce_spectator_joins",
        "git_integration_enabled",
    ] {
        keep(name, at.get(name).flag()?.map(|flag| json!(flag)));
    }
    keep("max_members", at.get("max_members").whole(10_000)?.map(|max| json!(max)));
    keep("spectator_limit", at.get("spectator_limit").whole(1_000_000)?.map(|max| json!(max)));
    let chat = at.get("spectator_chat").one_of(&["visible", "isolated", "off"])?;
    keep("spectator_chat", chat.map(|word| json!(word)));
    let claims = at.get("claim_strategy").one_of(&["first_claim", "host_assigns"])?;
    keep("claim_strategy", claims.map(|word| json!(word)));
    for name in ["project_info", "git"] {
        let value: Option<&Map<String, Value>> = config.get(name).object()?;
        keep(name, value.map(|value| json!(value)));
    }
    Ok(DetailsUpdate { settings, ..DetailsUpdate::default() })
}

/// Messages and tasks of a room, by the time at which they were written.
async fn events(
    cx: &Context,
    room: RoomId,
    (limit, before_ms): (u64, Option<u64>),
) -> Result<(Vec<(u64, Told)>, bool), Problem> {
    let page = History { room, from: From::Newest, limit: limit + 1, before_ms };
    let page = cx.read(page).await?;
    let direct = cx.shared.desk.is_direct(room);
    let style = cx.style();
    // Who shows no key is nobody of the room.
    let is_shown =
        |message: &&Message| cx.member.shows_key || !Saying::of(message, direct).is_for_members();
    let more_said = page.messages.len() as u64 > limit;
    let mut all: Vec<(u64, Told)> = Vec::with_capacity(page.messages.len());
    for message in page.messages.iter().filter(is_shown) {
        approvals::note(&cx.shared, message);
        let decision = approvals::checked(cx, message).await;
        let told = decision.unwrap_or_else(|| Saying::of(message, direct).told(style));
        all.push((message.wall_ms, told));
    }
    let tasks: Vec<TaskView> = cx.read(ListTasks { room, status: None }).await?;
    let newest = tasks.iter().rev().take(TASKS_LISTED_MAX);
    let earlier = newest.filter(|task| before_ms.is_none_or(|before| task.created_ms < before));
    let made = |task: &TaskView| {
        let told = news::created(style, task).with("room_id", style.room(room));
        (task.created_ms, told)
    };
    all.extend(earlier.map(made));
    all.sort_by_key(|(at_ms, _)| *at_ms);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = more_said || all.len() > limit;
    all.drain(..all.len().saturating_sub(limit));
    Ok((all, more))
}

/// The newest events of a room, for somebody who has just come.
pub(crate) async fn replay(cx: &Context, room: RoomId) -> Result<Vec<Bytes>, Problem> {
    let (events, _) = events(cx, room, (REPLAYED_MAX, None)).await?;
    Ok(events.into_iter().map(|(_, told)| cx.frame(told.with("replayed", true))).collect())
}

/// A page of events, the oldest first.
pub(crate) async fn history(cx: &Context, payload: &At<'_>) -> Result<Told, Problem> {
    let room = named(cx, payload.get("room_id").words(256)?).await?;
    Ok(answer("extension.room_history", NAMESPACE, page(cx, room, payload).await?))
}

/// The same, of a room, with `before` and `limit`.
pub(crate) async fn page(cx: &Context, room: RoomId, wish: &At<'_>) -> Result<Value, Problem> {
    let limit = wish.get("limit").whole(PAGE_MAX)?.unwrap_or(REPLAYED_MAX).max(1);
    let before = wish.get("before").time()?;
    let (events, more) = events(cx, room, (limit, before)).await?;
    let Style { form, eyes, .. } = cx.style();
    let frame = |(_, told): (u64, Told)| {
        let mut frame: Value = serde_json::from_slice(&told.frame(form)).unwrap_or_default();
        eyes.reads_record(&mut frame["data"]);
        frame
    };
    let events: Vec<Value> = events.into_iter().map(frame).collect();
    Ok(json!({"events": events, "more": more}))
}

/// How many are in a room, as its events say.
pub(crate) fn state_of(cx: &Context, room: RoomId, members: &[AgentView]) -> Value {
    let (humans, agents) = counts(members);
    json!({
        "total_members": humans + agents,
        "human_members": humans,
        "agent_members": agents,
        "spectator_count": cx.shared.spectators.count(room),
    })
}
