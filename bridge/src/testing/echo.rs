//! A tiny dialect: events are echoed as one JSON object each. It proves that the seam is one.
//!
//! A client says `{"type": "echo", "attach": ID}` first, then `{"join": ROOM}` or `{"say": TEXT, "room": ROOM}`, where
//! ROOM is the lobby if it is left out. It hears `{"attached": ID, "missed": N}`, `{"joined": ROOM}`, `{"said": NUMBER}`
//! or `{"refused": WHY}`, and events. Of thoughts it is not told. It is not spoken on Unix
//! sockets. `PUT /echo/TEXT` answers with the text.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::put,
};
use bytes::Bytes;
use mesh::{
    api::command::{Encryption, Speech},
    name::id::RoomId,
};
use serde_json::{Value, json};

use super::lobby;
use crate::{
    Transport,
    delivery::ending::Ending,
    dialect::{Conversation, Dialect, First, Heard, Manners, Site},
    read::Desk,
    seam::{
        call::{Attach, Join, Say},
        event::{Event, Message, Voice},
        refusal::Refusal,
    },
    secret::Secret,
    session::{ask::Ask, seat::Seat},
};

/// Its largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 1_000;

/// See the module.
#[derive(Debug)]
pub struct Echo(Arc<EchoVoice>);

/// How it echoes events.
#[derive(Debug)]
pub struct EchoVoice;

struct Chat;

/// Short frames, and little patience.
const MANNERS: Manners = Manners {
    frame_bytes_max: FRAME_BYTES_MAX,
    attach_within: Duration::from_secs(2),
    silence: Duration::from_secs(60),
    heartbeat: Duration::from_secs(60),
    too_large: Ending::TooLarge,
    not_text: Ending::NotText,
};

impl Default for Echo {
    fn default() -> Echo {
        Echo(Arc::new(EchoVoice))
    }
}

impl Dialect for Echo {
    fn speaks(&self, transport: Transport, first: &First) -> bool {
        transport != Transport::Unix && first.kind.as_deref() == Some("echo")
    }

    fn begin(&self) -> Box<dyn Conversation> {
        Box::new(Chat)
    }

    fn manners(&self) -> Manners {
        MANNERS
    }

    fn voice(&self) -> Arc<dyn Voice> {
        self.0.clone()
    }

    fn site(&self, _: &Desk) -> Option<Site> {
        let nothing = || answer(StatusCode::NOT_FOUND, &json!({"refused": "nothing here"}));
        Some(Site {
            router: Router::new()
                .route("/echo/{text}", put(async |Path(text): Path<String>| text))
                .fallback(async move || nothing()),
            paths: &["/echo/"],
            methods: &["GET", "PUT"],
            checks_names: |_| true,
            headers: &["x-echo"],
            refuse: |why| answer(StatusCode::FORBIDDEN, &json!({"refused": format!("{why:?}")})),
        })
    }
}

impl Conversation for Chat {
    fn hear(&mut self, seat: &mut Seat, frame: Heard<'_>) {
        let Heard::Text(text) = frame else { return seat.close(Ending::NotText) };
        let Ok(said) = serde_json::from_str::<Value>(text) else { return refuse(seat, &"no JSON") };
        let text = |name: &str| said[name].as_str().map(String::from);
        let room = text("room").and_then(|room| RoomId::from_uuid(&room)).unwrap_or(lobby());
        if let Some(agent) = text("attach") {
            let attach = Attach {
                key: Secret::new("key"),
                name: agent.clone(),
                agent: Some(agent),
                capabilities: Vec::new(),
                reconnect: true,
            };
            ask(seat, attach, |welcome| {
                let missed = welcome.resumed.map(|resumed| resumed.missed);
                json!({"attached": *welcome.agent, "missed": missed})
            });
        } else if said.get("join").is_some() {
            ask(seat, Join(room), move |()| json!({"joined": room.to_uuid()}));
        } else if let Some(content) = text("say") {
            let say = Say {
                room,
                speech: Speech::Chat,
                content,
                encryption: Encryption::None,
                reply_to: None,
                mentions: Vec::new(),
                metadata: None,
                dedup: None,
            };
            ask(seat, say, |said| json!({"said": said.number.0}));
        } else {
            refuse(seat, &"not understood");
        }
    }

    fn manners(&self) -> Manners {
        MANNERS
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, Json(body)).into_response()
}

fn ask<C: Ask>(seat: &mut Seat, call: C, reply: impl FnOnce(C::Answer) -> Value + Send + 'static) {
    seat.ask(call, move |seat, answer: Result<C::Answer, Refusal>| match answer {
        Ok(answer) => seat.reply(line(&reply(answer))),
        Err(refusal) => refuse(seat, &refusal),
    });
}

fn refuse(seat: &mut Seat, why: &dyn std::fmt::Debug) {
    seat.reply(line(&json!({"refused": format!("{why:?}")})));
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

impl Voice for EchoVoice {
    fn frame(&self, event: &Event) -> Option<Bytes> {
        let value = if let Event::Said(message) = event {
            if message.speech == Speech::Thinking {
                return None;
            }
            json!({"event": "said", "message": told(message)})
        } else if let Event::Mentioned(message) = event {
            json!({"event": "mentioned", "message": told(message)})
        } else if let Event::VoteOpened(vote) = event {
            json!({"event": "vote", "title": *vote.title})
        } else if let Event::Joined { agent, .. } = event {
            json!({"event": "joined", "agent": **agent})
        } else {
            return None;
        };
        Some(line(&value))
    }

    fn letter(&self, subscription: &str, message: &Message) -> Option<Bytes> {
        Some(line(&json!({"subscription": subscription, "message": told(message)})))
    }
}

fn told(message: &Message) -> Value {
    let (agent, node) = (&*message.said.agent, message.by.to_string());
    json!({"agent": agent, "node": node, "content": message.said.content, "seq": message.number.0})
}
