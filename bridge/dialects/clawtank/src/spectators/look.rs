//! Whether a room is open to those who look on, and how it is when they come.

use std::sync::{Arc, Mutex};

use bridge::{read::Visitor, seam::call::ListTasks, secret::Secret, shown::Eyes};
use mesh::{
    api::{
        agenda::TaskView,
        command::{AgentView, RoomInfo},
    },
    name::id::RoomId,
    records::details::RoomState,
    wire::tasks::TaskStatus,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::shown::status;
use crate::{
    connect::Member,
    envelope::Told,
    limits::{CENSUS_FOR, LOOKS_MAX, MEMBERS_SHOWN_MAX, SPECTATORS_DEFAULT_MAX},
    names,
    newest::{Newest, lock},
    problem::Problem,
    rooms::{self, Set},
    shared::Shared,
    state::Context,
    style::{Style, shown},
};

/// Why somebody does not look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// There is no such room, or it is not for him.
    NotFound,
    Denied(&'static str),
    Full,
    /// The node cannot say now.
    Busy,
}

/// After so long a place may be free.
const FULL_RETRY_MS: u64 = 30_000;
/// After so long the node may be less busy.
const BUSY_RETRY_MS: u64 = 5_000;

impl Turned {
    pub(crate) fn told(self) -> Told {
        let (code, message, retry_after) = match self {
            Turned::NotFound => ("ROOM_NOT_FOUND", "no such room", 0),
            Turned::Denied(why) => ("ACCESS_DENIED", why, 0),
            Turned::Full => ("CAPACITY_EXCEEDED", "as many look on as may", FULL_RETRY_MS),
            Turned::Busy => ("CAPACITY_EXCEEDED", "the node is busy", BUSY_RETRY_MS),
        };
        let data = json!({
            "code": code, "message": message, "retry_after": retry_after,
            "permanent": retry_after == 0,
        });
        Told::fresh("spectator.error", data)
    }
}

/// What the hosts of a room have said of those who look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) limit: u64,
    pub(crate) announces: bool,
    pub(crate) chat: Chat,
}

/// Who hears what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chat {
    Everybody,
    Themselves,
    Nobody,
}

impl Rules {
    /// Those of a room that is open.
    pub(super) fn of(set: &Set) -> Result<Rules, Turned> {
        let setting = |name: &str| set.setting(name);
        if setting("spectators_allowed") == Some(json!(false)) {
            return Err(Turned::Denied("this room is not for those who look on"));
        }
        match set.state() {
            RoomState::Lobby => return Err(Turned::Denied("the room has not begun")),
            RoomState::Active | RoomState::Paused | RoomState::Archived => {}
        }
        let chat = setting("spectator_chat");
        Ok(Rules {
            limit: setting("spectator_limit")
                .and_then(|limit| limit.as_u64())
                .unwrap_or(SPECTATORS_DEFAULT_MAX),
            announces: setting("announce_spectator_joins") == Some(json!(true)),
            chat: match chat.as_ref().and_then(Value::as_str) {
                Some("isolated") => Chat::Themselves,
                Some("off") => Chat::Nobody,
                Some(_) | None => Chat::Everybody,
            },
        })
    }
}

/// A room, as it is found.
pub(crate) struct Look {
    pub(crate) info: RoomInfo,
    pub(crate) rules: Rules,
    set: Set,
    /// Open, in progress, completed.
    tasks: [usize; 3],
}

type Found = Result<Arc<Look>, Turned>;

/// Rooms that strangers have looked for, in their own words, as they were a moment ago. One look for all that ask at once.
pub(super) struct Looks(Mutex<Newest<String, Arc<Known>>>);

/// What one look came to, and when.
type Known = tokio::sync::Mutex<Option<(Instant, Found)>>;

impl Looks {
    pub(super) fn new() -> Looks {
        Looks(Mutex::new(Newest::new(LOOKS_MAX)))
    }
}

/// Looks for a room, in the name of a key if there is one.
pub(super) async fn look(
    shared: &Arc<Shared>,
    (text, key): (&str, Option<&Secret>),
    style: Style,
) -> Result<(Visitor, Arc<Look>), Turned> {
    if !shared.settings.spectators {
        return Err(Turned::Denied("this node has nobody look on"));
    }
    if let Some(key) = key {
        let visitor = shared.desk.holder(key.clone()).await;
        let visitor = visitor.map_err(|_| Turned::Denied("the key is not valid here"))?;
        return Ok((visitor.clone(), found(shared, text, (visitor, style)).await?));
    }
    if !shared.desk.config().strangers_read {
        return Err(Turned::Denied("show a key: authorization: Bearer KEY"));
    }
    let visitor = Visitor::stranger();
    let known = lock(&shared.spectators.looks.0).at(&text.to_owned(), Arc::default).clone();
    let mut known = known.lock().await;
    if let Some((at, found)) = &*known
        && at.elapsed() < CENSUS_FOR
    {
        return found.clone().map(|look| (visitor, look));
    }
    let found = found(shared, text, (visitor.clone(), style)).await;
    *known = Some((Instant::now(), found.clone()));
    found.map(|look| (visitor, look))
}

async fn found(shared: &Arc<Shared>, text: &str, (visitor, style): (Visitor, Style)) -> Found {
    let member = Member::nobody(visitor, style, Instant::now().into_std());
    let cx = Context::of_reader(shared, member);
    let room = rooms::named(&cx, text).await.map_err(|problem| turned(&problem))?;
    let info = rooms::look(&cx, room).await.map_err(|problem| turned(&problem))?;
    // The room of two is nobody else's.
    if info.room.sides.is_some() {
        return Err(Turned::NotFound);
    }
    let set = rooms::set(&cx, room).await.map_err(|problem| turned(&problem))?;
    let rules = Rules::of(&set)?;
    let tasks = cx.read(ListTasks { room, status: None }).await;
    let tasks = counted(&tasks.map_err(|problem| turned(&problem))?);
    Ok(Arc::new(Look { info, rules, set, tasks }))
}

fn turned(problem: &Problem) -> Turned {
    use crate::problem::Code;
    match problem.code {
        Code::ServerError | Code::NetworkError | Code::RateLimitExceeded => Turned::Busy,
        Code::AuthenticationFailed
        | Code::AuthorizationDenied
        | Code::ValidationFailed
        | Code::ResourceNotFound
        | Code::ResourceConflict => Turned::NotFound,
    }
}

/// What the hosts of a room say now.
pub(super) async fn again(
    shared: &Arc<Shared>,
    room: RoomId,
    (visitor, style): (Visitor, Style),
) -> Result<Rules, Turned> {
    if !shared.settings.spectators {
        return Err(Turned::Denied("this node has nobody look on"));
    }
    let cx = Context::of_reader(shared, Member::nobody(visitor, style, Instant::now().into_std()));
    Rules::of(&rooms::set(&cx, room).await.map_err(|problem| turned(&problem))?)
}

fn counted(tasks: &[TaskView]) -> [usize; 3] {
    let mut counts = [0; 3];
    for task in tasks {
        let place = match task.status {
            TaskStatus::Pending => 0,
            TaskStatus::InProgress | TaskStatus::Blocked | TaskStatus::InReview => 1,
            TaskStatus::Completed => 2,
            TaskStatus::Cancelled | TaskStatus::Failed => continue,
        };
        counts[place] += 1;
    }
    counts
}

impl Look {
    /// The first frame of one who has got a place.
    pub(super) fn welcome(&self, style: Style, id: &str, spectators: usize) -> Told {
        let row = rooms::row(style, &self.info.room, &self.set, spectators);
        let is_agent = |member: &&AgentView| names::user_of(&member.agent).is_none();
        let agents = self.info.agents.iter().filter(is_agent).take(MEMBERS_SHOWN_MAX);
        let agent = |member: &AgentView| json!({"name": Eyes::Strangers.text(&shown(&member.name)), "status": status(member.presence.status)});
        let text = |name: &str| Eyes::Strangers.text(row[name].as_str().unwrap_or_default());
        let [open, in_progress, completed] = self.tasks;
        let data = json!({
            "room_info": {
                "room_id": row["room_id"],
                "name": text("name"),
                "description": text("description"),
                "visibility": row["visibility"],
                "state": row["state"],
                "encrypted": row["encrypted"],
                "spectator_chat": row["settings"]["spectator_chat"],
            },
            "current_state": {
                "member_count": self.info.agents.len(),
                "agents": agents.map(agent).collect::<Vec<Value>>(),
                "tasks": {"open": open, "in_progress": in_progress, "completed": completed},
                "spectator_count": spectators,
            },
            "spectator_id": id,
        });
        Told::fresh("spectator.welcome", data).with("room_id", row["room_id"].clone())
    }
}
