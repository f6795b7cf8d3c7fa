//! `sessions.*`: the conversations of a user, as a list.

use std::{cmp::Reverse, sync::Arc};

use bridge::seam::call::{ListRooms, ReadDetails};
use mesh::{api::command::RoomView, name::id::RoomId, records::profile::Field};
use serde_json::{Map, Value, json};

use crate::{
    caller::Caller,
    chat::{Found, fitting, no_session, room_rows, session_key, thread_rows},
    facts::Facts,
    limits::{
        LABEL_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_ENTRY_BYTES_MAX, MODEL_BYTES_MAX,
        PREVIEW_ROWS, SESSION_ROOMS_MAX,
    },
    names::{Session, channel, room_session},
    outcome::{No, Outcome},
    params::{AGENT, KEY, Params, is_required},
    threads::{Direct, Thread},
    times,
};

/// A session with its facts.
struct Listed {
    direct: Direct,
    thread: Thread,
    facts: Facts,
}

impl Listed {
    /// Messages that are read.
    fn count(&self) -> usize {
        self.thread.numbers.iter().filter(|number| **number > self.facts.epoch).count()
    }

    fn is_hidden(&self) -> bool {
        self.facts.hidden && self.count() == 0
    }

    fn row(&self, name: &str, provider: &str) -> Value {
        let Listed { direct, thread, facts } = self;
        let user = thread.user.clone().unwrap_or_default();
        let (input, output) = thread.tokens();
        json!({
            "key": thread.key,
            "session_key": thread.key,
            "label": facts.label.clone().unwrap_or_default(),
            "model": facts.model.clone().unwrap_or_default(),
            "metadata": facts.metadata,
            "created": times::text(thread.first_ms),
            "updated": times::text(thread.last_ms),
            "messageCount": self.count(),
            "userID": user,
            "user_id": user,
            "channel": channel(&thread.key),
            "agent_id": &*direct.agent,
            "agentName": name,
            "provider": provider,
            "inputTokens": input,
            "input_tokens": input,
            "outputTokens": output,
            "output_tokens": output,
        })
    }
}

impl Caller {
    /// The sessions that it may see, the newest first.
    async fn sessions(&self) -> Result<Vec<Listed>, No> {
        let mut listed = Vec::new();
        for direct in self.direct_rooms().await?.into_iter().take(SESSION_ROOMS_MAX) {
            let mut of_room = self.facts_of_room(&direct).await?;
            for thread in self.threads(&direct).await?.iter() {
                let facts = of_room.remove(&thread.key).unwrap_or_default();
                let session = Listed { direct: direct.clone(), thread: thread.clone(), facts };
                if !session.is_hidden() {
                    listed.push(session);
                }
            }
        }
        listed.sort_by_key(|session| Reverse(session.thread.last_ms));
        Ok(listed)
    }

    /// How many there are.
    pub(crate) async fn session_count(&self) -> Result<usize, No> {
        Ok(self.sessions().await?.len())
    }
}

pub(crate) async fn list(caller: &Caller, params: &Params) -> Outcome {
    let (limit, offset) = (params.limit(20, 200)?, params.offset()?);
    let wanted = params.filled(&["channel"])?;
    let page = |all: usize| {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(all);
        begin..begin.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(all)
    };
    if wanted.as_deref() == Some("room") {
        let rooms = rooms(caller).await?;
        let rows = rooms.get(page(rooms.len())).unwrap_or_default().iter().map(room_row);
        let rows: Vec<Value> = rows.collect();
        return Ok(
            json!({"sessions": rows, "total": rooms.len(), "limit": limit, "offset": offset}),
        );
    }
    let agent = match params.filled(AGENT)? {
        Some(named) => Some(caller.agent(&named).await?.agent),
        None => None,
    };
    let mut sessions = caller.sessions().await?;
    sessions.retain(|session| {
        agent.as_ref().is_none_or(|agent| session.direct.agent == *agent)
            && wanted.as_ref().is_none_or(|wanted| channel(&session.thread.key) == wanted)
    });
    let mut rows = Vec::new();
    for session in sessions.get(page(sessions.len())).unwrap_or_default() {
        let known = caller.known(&session.direct.agent).await?;
        let name = known.as_ref().map_or(&*session.direct.agent, |known| known.name());
        let provider = known.as_ref().and_then(|known| known.field(Field::Provider));
        rows.push(session.row(name, provider.unwrap_or_default()));
    }
    Ok(json!({"sessions": rows, "total": sessions.len(), "limit": limit, "offset": offset}))
}

/// Rooms that the key may read, the liveliest first.
async fn rooms(caller: &Caller) -> Result<Vec<RoomView>, No> {
    let mut rooms = caller.read(ListRooms { parent: None }).await?;
    rooms.retain(|room| room.sides.is_none());
    rooms.sort_by_key(|room| Reverse(room.last_activity_ms));
    Ok(rooms)
}

fn room_row(room: &RoomView) -> Value {
    let key = room_session(room.room);
    json!({
        "key": key,
        "session_key": key,
        "label": &*room.name,
        "model": "",
        "metadata": {},
        "created": times::text(room.created_ms),
        "updated": times::text(room.last_activity_ms.unwrap_or(room.created_ms)),
        "messageCount": room.tip.0,
        "userID": "",
        "user_id": "",
        "channel": "room",
        "agent_id": "",
        "agentName": "",
        "provider": "",
        "inputTokens": 0, "input_tokens": 0, "outputTokens": 0, "output_tokens": 0,
    })
}

/// A session that is there.
enum Meant {
    Thread(Direct, String),
    Room(RoomId),
}

async fn meant(caller: &Caller, params: &Params) -> Result<Meant, No> {
    let key = session_key(params, KEY)?.ok_or_else(|| is_required(KEY))?;
    match Session::parse(&key) {
        Some(Session::Room(room)) => {
            let is_there = rooms(caller).await?.iter().any(|view| view.room == room);
            if is_there { Ok(Meant::Room(room)) } else { Err(no_session(&key)) }
        }
        Some(Session::Thread { agent, .. }) => match caller.find(&agent, &key).await? {
            Found::Thread(direct) => Ok(Meant::Thread(direct, key)),
            Found::New => Err(no_session(&key)),
            Found::Others => {
                Err(No::unauthorized("permission denied: the session is another user's"))
            }
        },
        None => Err(no_session(&key)),
    }
}

pub(crate) async fn preview(caller: &Caller, params: &Params) -> Outcome {
    let (key, rows, summary) = match meant(caller, params).await? {
        Meant::Thread(direct, key) => {
            let rows = thread_rows(caller, &direct, &key).await?;
            let facts = caller.facts(&direct, &key).await?;
            (key, rows, facts.label.unwrap_or_default())
        }
        Meant::Room(room) => {
            let rows = room_rows(caller, room, PREVIEW_ROWS as u64).await?;
            let details = caller.read(ReadDetails { rooms: vec![room], settings: false }).await?;
            let details = details.into_iter().next().unwrap_or_default();
            let summary = details.description.unwrap_or_default();
            (room_session(room), rows, summary)
        }
    };
    let (messages, _) = fitting(rows, PREVIEW_ROWS);
    Ok(json!({"key": key, "messages": messages, "summary": summary}))
}

/// A thread, for methods that rooms have not.
async fn thread(caller: &Caller, params: &Params, no: &str) -> Result<(Direct, String), No> {
    match meant(caller, params).await? {
        Meant::Thread(direct, key) => Ok((direct, key)),
        Meant::Room(_) => Err(No::invalid(no)),
    }
}

/// A text of at most so many bytes; an empty one is none.
fn short(params: &Params, name: &'static str, max: usize) -> Result<Option<Option<String>>, No> {
    let Some(text) = params.text(&[name])? else { return Ok(None) };
    if text.len() > max {
        return Err(No::invalid(format!("{name} must have at most {max} bytes")));
    }
    Ok(Some(Some(text).filter(|text| !text.is_empty())))
}

pub(crate) async fn patch(caller: &Arc<Caller>, params: &Params) -> Outcome {
    let label = short(params, "label", LABEL_BYTES_MAX)?;
    let model = short(params, "model", MODEL_BYTES_MAX)?;
    let metadata: Option<Map<String, Value>> = params.object(&["metadata"])?.cloned();
    if let Some(metadata) = &metadata {
        let long = |(name, value): (&String, &Value)| {
            name.len() + value.to_string().len() > METADATA_ENTRY_BYTES_MAX
        };
        if metadata.len() > METADATA_ENTRIES_MAX || metadata.iter().any(long) {
            return Err(No::invalid(format!(
                "metadata has at most {METADATA_ENTRIES_MAX} entries of {METADATA_ENTRY_BYTES_MAX} bytes each"
            )));
        }
    }
    let (direct, key) = thread(caller, params, "a room has no label: it has a name").await?;
    let speaker = caller.speaker_of(&direct).await?;
    caller
        .change_facts((&direct, &key), &speaker, |facts| {
            if let Some(label) = label {
                facts.label = label;
            }
            if let Some(model) = model {
                facts.model = model;
            }
            if let Some(metadata) = metadata {
                facts.metadata = metadata;
            }
        })
        .await?;
    Ok(json!({"ok": true, "key": key}))
}

/// Forgets all that was said so far: agents keep it. `hidden`: the session is not listed any more, either.
async fn begin_anew(caller: &Caller, params: &Params, hidden: bool) -> Outcome {
    let (direct, key) = thread(caller, params, "use teams.delete").await?;
    let threads = caller.threads(&direct).await?;
    let of_thread = threads.iter().find(|thread| thread.key == key);
    let newest = of_thread.and_then(|thread| thread.numbers.last().copied()).unwrap_or(0);
    let speaker = caller.speaker_of(&direct).await?;
    caller
        .change_facts((&direct, &key), &speaker, |facts| {
            facts.epoch = facts.epoch.max(newest);
            facts.hidden = hidden;
        })
        .await?;
    Ok(json!({"ok": true}))
}

pub(crate) async fn reset(caller: &Caller, params: &Params) -> Outcome {
    begin_anew(caller, params, false).await
}

pub(crate) async fn delete(caller: &Caller, params: &Params) -> Outcome {
    begin_anew(caller, params, true).await
}
