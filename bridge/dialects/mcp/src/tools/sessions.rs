//! The sessions of an agent: its own, those with other agents, and the rooms that it is in.

use std::{cmp::Reverse, collections::BTreeMap, time::SystemTime};

use bridge::{
    policy::{Action, Mark},
    seam::{
        call::{From, History, ListAgents},
        event::Message,
    },
    tokens::Visibility,
};
use mesh::{
    api::{
        agenda::TaskView,
        command::{RoomView, Speech},
    },
    name::id::{AgentId, RoomId},
};
use serde_json::{Value, json};

use super::{inbox::Mail, rooms::Page, spawn};
use crate::{
    arguments::Arguments,
    asking::Asking,
    children::{children, has_ended},
    encode::Reader,
    keys,
    limits::{
        KEY_CHARS_MAX, ROWS_MAX, SEARCH_CHARS_MAX, SESSION_ROWS_BYTES, SESSION_ROWS_MAX,
        UNREAD_COUNTED_MAX,
    },
    outcome::{No, Outcome},
};

/// The kinds that a session can have.
const KINDS: [&str; 6] = ["main", "group", "cron", "hook", "node", "other"];

/// One session. Its room may not be there yet: the agent's own always is.
struct Session {
    key: String,
    room: Option<RoomView>,
    updated_ms: u64,
    /// Of the room of a task: it.
    task: Option<TaskView>,
}

impl Session {
    fn of(asking: &Asking, room: RoomView) -> Session {
        let updated_ms = room.last_activity_ms.unwrap_or(room.created_ms);
        Session { key: asking.names().key(&room), room: Some(room), updated_ms, task: None }
    }

    fn peer(&self, asking: &Asking) -> Option<&AgentId> {
        let sides = self.room.as_ref()?.sides.as_ref()?;
        Some(sides.peer_of(&asking.agent)).filter(|peer| **peer != asking.agent)
    }

    fn is_own(&self) -> bool {
        self.key == keys::MAIN
    }

    /// Its kind and the kind of its chat.
    fn kind(&self, asking: &Asking) -> (&'static str, &'static str) {
        match &self.room {
            _ if self.is_own() => ("main", "self"),
            Some(room) if room.task => ("other", "task"),
            Some(_) if self.peer(asking).is_some() => ("main", "direct"),
            Some(room) if room.public => ("group", "channel"),
            Some(_) | None => ("group", "group"),
        }
    }

    /// What the operator of this node has said of it.
    fn mark(&self, asking: &Asking) -> Mark {
        let Some(room) = &self.room else { return Mark::default() };
        let session = asking.names().place(room).session(&asking.agent);
        asking.shared.desk.config().policies.marks.get(&asking.agent, &session)
    }

    fn is_archived(&self, asking: &Asking) -> bool {
        let is_over = self.task.as_ref().is_some_and(has_ended);
        let is_closed = self.room.as_ref().is_some_and(|room| room.closed);
        !self.is_own() && (is_over || is_closed || self.mark(asking).archived)
    }

    fn name(&self, asking: &Asking) -> String {
        match (&self.room, self.peer(asking)) {
            (Some(room), _) if room.task => room.name.to_string(),
            (_, Some(peer)) => peer.to_string(),
            (Some(room), None) if !self.is_own() => room.name.to_string(),
            (Some(_) | None, None) => keys::MAIN.to_owned(),
        }
    }
}

pub(super) async fn list(asking: &Asking, arguments: &mut Arguments) -> Outcome {
    let kinds = arguments.texts("kinds")?;
    let limit = arguments.integer("limit", 1, ROWS_MAX)?.unwrap_or(100);
    let offset = arguments.integer("offset", 0, u64::MAX)?.unwrap_or(0);
    let minutes = arguments.integer("activeMinutes", 1, u64::MAX)?;
    let newest = arguments.integer("messageLimit", 0, SESSION_ROWS_MAX)?.unwrap_or(0);
    let search = arguments.filled("search", SEARCH_CHARS_MAX)?.map(|text| text.to_lowercase());
    let with = arguments.filled("agentId", KEY_CHARS_MAX)?;
    let archived = arguments.flag("archived")?.unwrap_or(false);
    let (known, unknown): (Vec<String>, Vec<String>) =
        kinds.into_iter().partition(|kind| KINDS.contains(&&**kind));
    let unread = unread(asking).await?;
    let mut sessions = sessions(asking).await?;
    let since_ms = minutes.map(|minutes| now_ms().saturating_sub(minutes.saturating_mul(60_000)));
    sessions.retain(|session| {
        let name = session.name(asking).to_lowercase();
        let is_found = |text: &String| session.key.contains(text) || name.contains(text);
        let is_with = |agent: &String| {
            let agent = agent.trim();
            session.peer(asking).is_some_and(|peer| **peer == *agent)
                || session.key == format!("agent:{}:main", agent.to_lowercase())
        };
        session.is_archived(asking) == archived
            && (known.is_empty() || known.iter().any(|kind| kind == session.kind(asking).0))
            && search.as_ref().is_none_or(is_found)
            && with.as_ref().is_none_or(is_with)
            && since_ms.is_none_or(|since| session.is_own() || session.updated_ms >= since)
    });
    sessions.sort_by(|one, other| {
        (Reverse(one.updated_ms), &one.key).cmp(&(Reverse(other.updated_ms), &other.key))
    });
    let page = Page::of(sessions.len(), offset, limit);
    let mut rows = Vec::new();
    let reader = asking.reader_of([]).await?;
    for session in page.cut(&sessions) {
        let mut row = row(asking, session, &unread).await?;
        if newest > 0 {
            row["messages"] = messages(asking, &reader, session, newest).await?;
        }
        rows.push(row);
    }
    let mut fields = page.fields("sessions", rows);
    fields.insert("limitApplied".to_owned(), json!(limit));
    fields.insert("visibility".to_owned(), json!(asking.grant.visibility.name()));
    unknown.into_iter().for_each(|kind| arguments.ignores(kind));
    Ok(fields)
}

async fn row(
    asking: &Asking,
    session: &Session,
    unread: &BTreeMap<RoomId, usize>,
) -> Result<Value, No> {
    let (kind, chat) = session.kind(asking);
    let provider = if session.is_own() { "internal" } else { "mesh" };
    let room = session.room.as_ref();
    let waiting = if session.is_own() {
        unread.values().sum()
    } else {
        room.and_then(|room| unread.get(&room.room)).copied().unwrap_or(0)
    };
    let mut row = json!({
        "key": session.key,
        "kind": kind,
        "chatType": chat,
        "provider": provider,
        "channel": provider,
        "displayName": session.name(asking),
        "updatedAt": session.updated_ms,
        "unread": waiting,
        "lastProvider": provider,
        "lastChannel": provider,
    });
    if let Some(room) = room {
        row["sessionId"] = json!(asking.names().id(room.room));
        if room.encrypted {
            row["encrypted"] = json!(true);
        }
    }
    match session.mark(asking).sending.filter(|_| !session.is_own()) {
        Some(Action::Allow) => row["sendPolicy"] = json!("allow"),
        Some(Action::Deny) => row["sendPolicy"] = json!("deny"),
        None => {}
    }
    if session.is_archived(asking) {
        row["archived"] = json!(true);
    }
    if let Some(task) = &session.task {
        row["label"] = json!(task.title);
        row["taskId"] = json!(task.task.to_uuid());
        row["status"] = json!(spawn::ended::status_of(task));
        if task.created_by != asking.agent {
            row["spawnedBy"] = json!(keys::of_agent(&task.created_by));
        }
    }
    if let (Some(peer), Some(room)) = (session.peer(asking), room) {
        row["agentId"] = json!(peer);
        let members = asking.read(ListAgents { room: Some(room.room) }).await?;
        let there = members.iter().find(|view| view.agent == *peer);
        row["presence"] =
            json!(there.map_or("away", |view| { if view.lingers { "idle" } else { "online" } }));
        if let Some(view) = there {
            row["verified"] = json!(view.verified);
            let reader = asking.reader_of([view.node]).await?;
            row["node"] = reader.node(view.node);
        }
    }
    Ok(row)
}

async fn messages(
    asking: &Asking,
    reader: &Reader<'_>,
    session: &Session,
    newest: u64,
) -> Result<Value, No> {
    let Some(room) = &session.room else { return Ok(json!([])) };
    // Thoughts are not shown, and there may be some between the messages.
    let limit = newest.saturating_mul(4);
    let call = History { room: room.room, from: From::Newest, limit, before_ms: None };
    let page = asking.read(call).await?.messages;
    let chat = page.iter().filter(|message| message.speech == Speech::Chat);
    let chat: Vec<&Message> = chat.collect();
    let shown = usize::try_from(newest).unwrap_or(usize::MAX);
    let newest = chat.iter().rev().take(shown).map(|message| reader.message(room, message).0);
    let mut left = SESSION_ROWS_BYTES;
    // As many as fit beside those of other sessions.
    let fits = |row: &Value| {
        let bytes = row.to_string().len();
        left = left.saturating_sub(bytes);
        left > 0
    };
    let mut rows: Vec<Value> = newest.take_while(fits).collect();
    rows.reverse();
    Ok(rows.into())
}

/// All sessions: the agent's own, those with others, and the rooms that it is in.
async fn sessions(asking: &Asking) -> Result<Vec<Session>, No> {
    let (seats, rooms) = (asking.seats().await?, asking.rooms().await?);
    let is_all = asking.grant.visibility == Visibility::All;
    let is_one = |room: &RoomView| {
        asking.may_see(room) && (is_all || room.sides.is_some() || seats.contains(&room.room))
    };
    let rooms = rooms.into_iter().filter(is_one);
    let mut sessions: Vec<Session> = rooms.map(|room| Session::of(asking, room)).collect();
    if !sessions.iter().any(Session::is_own) {
        let (key, room, task) = (keys::MAIN.to_owned(), None, None);
        sessions.push(Session { key, room, updated_ms: 0, task });
    }
    // Keys may have changed: the liveliest is the one that is meant.
    sessions.sort_by_key(|session| Reverse(session.updated_ms));
    if sessions.iter().any(|session| session.room.as_ref().is_some_and(|room| room.task)) {
        let all = children(asking).await?.into_iter();
        let mut tasks: BTreeMap<RoomId, TaskView> =
            all.map(|child| (child.room.room, child.task)).collect();
        for session in &mut sessions {
            session.task = session.room.as_ref().and_then(|room| tasks.remove(&room.room));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    sessions.retain(|session| seen.insert(session.key.clone()));
    Ok(sessions)
}

/// Items that wait in the inbox, by room: of the oldest ones.
pub(super) async fn unread(asking: &Asking) -> Result<BTreeMap<RoomId, usize>, No> {
    let mut unread = BTreeMap::new();
    let Some(mail) = Mail::if_attached(asking).await? else { return Ok(unread) };
    for item in mail.places(UNREAD_COUNTED_MAX).await?.items {
        if item.notice.is_none() {
            *unread.entry(item.room).or_default() += 1;
        }
    }
    Ok(unread)
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
