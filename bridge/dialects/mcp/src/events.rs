//! The extension for events: a host is told that something has come, by asking (`events/poll`), on a stream (`events/stream`), or by a post
//! to it (`events/subscribe`, see `event_hooks`).
//!
//! An event names what has come and of whom, and has no text of it: hosts trust what they are told so, and read the rest with a tool.
//! Nothing is queued: an event is a row of the inbox or of the room behind a cursor, so that none is lost where nobody listens.

use std::{future::Future, time::Duration};

use bridge::{read::Watch, tokens::Scope};
use mesh::api::command::RoomView;
use rmcp::{ErrorData, model::ErrorCode};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{
    asking::Asking,
    limits::{
        BUSY, CURSOR_CHARS_MAX, EVENT_HEARTBEAT_EVERY, EVENT_POLL_EVERY, EVENTS_AT_ONCE_MAX,
        KEY_CHARS_MAX, LISTS_FRESH_MS, LOOK_EVERY,
    },
    occurrence::{Occurrence, Occurrences},
    outcome::{No, error_of},
    tasks_kept::{millis, time},
    tools,
};

/// The name of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/events";

/// Methods of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    List,
    Poll,
    Stream,
    Subscribe,
    Unsubscribe,
}

impl Method {
    /// `None`: a method of somebody else.
    pub(crate) fn named(name: &str) -> Option<Method> {
        Some(match name {
            "events/list" => Method::List,
            "events/poll" => Method::Poll,
            "events/stream" => Method::Stream,
            "events/subscribe" => Method::Subscribe,
            "events/unsubscribe" => Method::Unsubscribe,
            _ => return None,
        })
    }
}

/// That of which is told.
pub(crate) struct Source {
    what: What,
    /// As it was asked for.
    arguments: Value,
}

enum What {
    Inbox,
    Room { room: Box<RoomView>, named: String },
}

impl Source {
    /// What a request names, if the agent may hear of it.
    pub(crate) async fn open(asking: &Asking, params: &Value) -> Result<Source, No> {
        asking.may(Scope::History)?;
        let arguments = &params["arguments"];
        let what = match params["name"].as_str() {
            Some("inbox") => What::Inbox,
            Some("room") => {
                let named = arguments["room"].as_str();
                let named = named.filter(|key| key.chars().count() <= KEY_CHARS_MAX);
                let named = named.ok_or_else(|| No::argument("room", "must be a room's key"))?;
                let session = asking.resolve(named).await?;
                let room = asking.room_of(&session).await?;
                let room = room.ok_or_else(|| No::error("nothing was said in this session yet"))?;
                asking.inside(&room, named).await?;
                What::Room { room: Box::new(room), named: named.to_owned() }
            }
            Some(_) | None => {
                return Err(No::argument("name", "must be inbox or room: events/list shows them"));
            }
        };
        let arguments = match &what {
            What::Inbox => json!({}),
            What::Room { room, .. } => json!({"room": asking.names().key(room)}),
        };
        Ok(Source { what, arguments })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.what {
            What::Inbox => "inbox",
            What::Room { .. } => "room",
        }
    }

    /// In one form, however the room was named.
    pub(crate) fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// News from now on: what has come before is read with [`Source::after`].
    pub(crate) async fn watch(&self, asking: &Asking) -> Result<Watch, No> {
        let desk = &asking.shared.desk;
        Ok(match &self.what {
            What::Inbox => desk.watch_inbox(&asking.attached().await?)?,
            What::Room { room, .. } => desk.watch(&asking.reader, room.room)?,
        })
    }

    /// What came after a cursor. Without one: nothing, and the cursor of now.
    pub(crate) async fn after(
        &self,
        asking: &Asking,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Occurrences, No> {
        match &self.what {
            What::Inbox => tools::inbox_events(asking, cursor, limit).await,
            What::Room { room, named } => {
                // It may have been left meanwhile.
                asking.inside(room, named).await?;
                tools::room_events(asking, room, cursor, limit).await
            }
        }
    }

    /// An event as hosts read it.
    pub(crate) fn event(&self, occurrence: &Occurrence) -> Map<String, Value> {
        let Occurrence { id, at_ms, data, cursor } = occurrence;
        crate::outcome::object(json!({
            "eventId": id,
            "name": self.name(),
            "timestamp": time(*at_ms),
            "data": data,
            "cursor": cursor,
        }))
    }
}

/// The cursor that a request gives.
pub(crate) fn cursor(params: &Value) -> Result<Option<&str>, No> {
    let wrong = || No::argument("cursor", "must be the cursor of an earlier answer, or null");
    match &params["cursor"] {
        Value::Null => Ok(None),
        Value::String(cursor) if cursor.len() <= CURSOR_CHARS_MAX => Ok(Some(cursor)),
        Value::String(_)
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => Err(wrong()),
    }
}

/// What can be heard of.
pub(crate) fn list(asking: &Asking) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let item = text("direct, reply, task, spawn_result, delivery or mention");
    let from = text("the session of its sender, such as agent:bob:main");
    let is_true = json!({"type": "boolean"});
    let payload = |more: Value| {
        let mut properties = json!({
            "messageId": text("read it with sessions_history"),
            "sessionKey": text("where it was said"),
            "from": from,
            "verified": is_true,
        });
        for (name, schema) in crate::outcome::object(more) {
            properties[name] = schema;
        }
        json!({"type": "object", "properties": properties})
    };
    let of = |name: &str, description: &str, input: Value, payload: Value| {
        json!({
            "name": name,
            "description": description,
            "delivery": ["poll", "push", "webhook"],
            "inputSchema": input,
            "payloadSchema": payload,
        })
    };
    let room = json!({"room": text("the key of a room or session that you are in")});
    let all = [
        of(
            "inbox",
            "Something came for you: inbox_wait gives it.",
            json!({"type": "object", "properties": {}}),
            payload(json!({"item": item})),
        ),
        of(
            "room",
            "Somebody else said something in a room: sessions_history gives it.",
            json!({"type": "object", "properties": room, "required": ["room"]}),
            payload(json!({"seq": {"type": "integer"}})),
        ),
    ];
    // One that may read nothing hears of nothing.
    let events = if asking.may(Scope::History).is_ok() { json!(all) } else { json!([]) };
    complete(json!({"events": events, "ttlMs": LISTS_FRESH_MS, "cacheScope": "private"}))
}

/// What came after a cursor, at once.
pub(crate) async fn poll(asking: &Asking, params: &Value) -> Result<Value, No> {
    let source = Source::open(asking, params).await?;
    let most = params["maxEvents"].as_u64().and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(EVENTS_AT_ONCE_MAX).clamp(1, EVENTS_AT_ONCE_MAX);
    let found = source.after(asking, cursor(params)?, most).await?;
    let events: Vec<_> = found.events.iter().map(|one| source.event(one)).collect();
    Ok(complete(json!({
        "events": events,
        "cursor": found.cursor,
        "truncated": found.truncated,
        "hasMore": found.more,
        "nextPollMs": if found.more { 0 } else { millis(EVENT_POLL_EVERY) },
    })))
}

/// Tells of events as they come: `tell` is given the end of a notification's name, and its params, and says whether anybody listens.
/// Ends when nobody does, or the agent may not hear any more.
pub(crate) async fn stream<F, T>(asking: &Asking, params: &Value, tell: F) -> Result<Value, No>
where
    F: Fn(&'static str, Value) -> T,
    T: Future<Output = bool>,
{
    let _stream = asking.stream()?;
    let source = Source::open(asking, params).await?;
    let mut watch = source.watch(asking).await?;
    let mut cursor = cursor(params)?.map(str::to_owned);
    let mut began = false;
    loop {
        let found = match source.after(asking, cursor.as_deref(), EVENTS_AT_ONCE_MAX).await {
            Ok(found) => found,
            // Before it began it is the answer.
            Err(no) if !began => return Err(no),
            Err(no) => return Ok(terminated(no, &tell).await),
        };
        if (!began || found.truncated)
            && !tell("active", json!({"cursor": found.cursor, "truncated": found.truncated})).await
        {
            return Ok(complete(json!({})));
        }
        began = true;
        for event in &found.events {
            if !tell("event", Value::Object(source.event(event))).await {
                return Ok(complete(json!({})));
            }
        }
        if !found.more
            && let Err(no) = quiet(asking, &mut watch, &found.cursor, &tell).await
        {
            return Ok(terminated(no, &tell).await);
        }
        cursor = Some(found.cursor);
    }
}

/// Until there is news: a host hears now and then that the stream is alive, and how far it has come.
async fn quiet<F, T>(asking: &Asking, watch: &mut Watch, cursor: &str, tell: &F) -> Result<(), No>
where
    F: Fn(&'static str, Value) -> T,
    T: Future<Output = bool>,
{
    let look = (asking.shared.settings.idle_detach / 2).min(LOOK_EVERY);
    let mut beat = Instant::now() + EVENT_HEARTBEAT_EVERY;
    loop {
        let came = timeout_at(beat.min(Instant::now() + look), watch.news()).await.is_ok();
        asking.goes_on().await?;
        if came {
            return Ok(());
        }
        if Instant::now() >= beat {
            tell("heartbeat", json!({"cursor": cursor})).await;
            beat = Instant::now() + EVENT_HEARTBEAT_EVERY;
        }
    }
}

async fn terminated<F, T>(no: No, tell: &F) -> Value
where
    F: Fn(&'static str, Value) -> T,
    T: Future<Output = bool>,
{
    let error = error(no);
    tell("terminated", json!({"error": {"code": error.code.0, "message": error.message}})).await;
    complete(json!({}))
}

/// A no, as the protocol has it.
pub(crate) fn error(no: No) -> ErrorData {
    match no {
        No::Agent { text, why } => error_of(text, why),
        No::Argument { text, field } => {
            ErrorData::invalid_params(text, Some(json!({"field": field})))
        }
        No::Forbidden { text, rule, .. } => {
            ErrorData::invalid_params(text, Some(json!({"rule": rule})))
        }
        No::Error { text, more } if more.contains_key("retryAfterMs") => {
            ErrorData::new(ErrorCode(BUSY), text, Some(Value::Object(more)))
        }
        No::Error { text, .. } => ErrorData::invalid_params(text, None),
    }
}

pub(crate) fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result
}

/// How long until something is tried again, after it failed so often.
pub(crate) fn pause(failures: u32, first: Duration, most: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(most)
}
