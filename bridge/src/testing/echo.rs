//! A tiny dialect: events are echoed as one JSON object each. It proves that the seam is one.
//!
//! A client says `{"type": "echo", "attach": ID}` first (with `"reconnect": false` it takes nobody's place), then `{"join": ROOM}` or `{"say": TEXT, "room": ROOM}`, where
//! ROOM is the lobby if it is left out. It hears `{"attached": ID, "missed": N}`, `{"joined": ROOM}`, `{"said": NUMBER}`
//! or `{"refused": WHY}`, and events. Of thoughts it is not told. With `"numbered": true` in
//! its `attach` events have their number in this connection as `n`, a mention rings besides, and messages of the agent
//! `deaf_to` are left out. It is not spoken on Unix
//! sockets. `PUT /echo/TEXT` answers with the text. With
//! `POST /echo/AGENT/TEXT` an agent without a connection says it.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{post, put},
};
use bytes::Bytes;
use mesh::{api::command::Speech, name::id::RoomId};
use serde_json::{Value, json};

use super::{KEY, lobby};
use crate::{
    Transport,
    delivery::ending::Ending,
    dialect::{Conversation, Dialect, First, Heard, Manners, Site},
    read::Desk,
    seam::{
        call::{Attach, Identity, Join, Say},
        event::{Event, Frames, Message, Recipient, Voice},
        refusal::Refusal,
    },
    secret::Secret,
    session::{ask::Ask, pace::Pace, seat::Seat},
};

/// Its largest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 1_000;

/// See the module.
#[derive(Debug)]
pub struct Echo {
    plain: Arc<EchoVoice>,
    numbered: Arc<EchoVoice>,
    pace: Option<Pace>,
}

/// How it echoes events.
#[derive(Debug, Default)]
pub struct EchoVoice {
    /// For clients that have their events numbered.
    numbered: bool,
}

struct Chat {
    numbered: Arc<EchoVoice>,
    pace: Option<Pace>,
    /// Events that the client was told of with a number.
    told: u64,
    /// The agent that the client does not want to hear.
    deaf_to: Option<String>,
}

/// Short frames, and little patience.
const MANNERS: Manners = Manners {
    frame_bytes_max: FRAME_BYTES_MAX,
    attach_within: Duration::from_secs(2),
    silence: Duration::from_secs(60),
    heartbeat: Duration::from_secs(60),
    pace: None,
    too_large: Ending::TooLarge,
    not_text: Ending::NotText,
};

impl Default for Echo {
    fn default() -> Echo {
        let voice = |numbered| Arc::new(EchoVoice { numbered });
        Echo { plain: voice(false), numbered: voice(true), pace: None }
    }
}

impl Echo {
    /// Hears its clients at this pace.
    pub fn at(pace: Pace) -> Echo {
        Echo { pace: Some(pace), ..Echo::default() }
    }
}

impl Dialect for Echo {
    fn speaks(&self, transport: Transport, first: &First) -> bool {
        transport != Transport::Unix && first.kind.as_deref() == Some("echo")
    }

    fn begin(&self) -> Box<dyn Conversation> {
        let (numbered, pace) = (self.numbered.clone(), self.pace);
        Box::new(Chat { numbered, pace, told: 0, deaf_to: None })
    }

    fn manners(&self) -> Manners {
        MANNERS
    }

    fn voice(&self) -> Arc<dyn Voice> {
        self.plain.clone()
    }

    fn site(&self, desk: &Desk) -> Option<Site> {
        let nothing = || answer(StatusCode::NOT_FOUND, &json!({"refused": "nothing here"}));
        Some(Site {
            router: Router::new()
                .route("/echo/{text}", put(async |Path(text): Path<String>| text))
                .route("/echo/{agent}/{text}", post(visit))
                .with_state(desk.clone())
                .fallback(async move || nothing()),
            paths: &["/echo/"],
            methods: &["POST", "PUT"],
            checks_names: |_, _| true,
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
            if said["numbered"] == true {
                seat.speak(self.numbered.clone());
                self.deaf_to = text("deaf_to");
            }
            let call = Attach { reconnect: said["reconnect"] != false, ..attach(agent) };
            ask(seat, call, |welcome| {
                let missed = welcome.resumed.map(|resumed| resumed.missed);
                json!({"attached": *welcome.agent, "missed": missed})
            });
        } else if said.get("join").is_some() {
            ask(seat, Join(room), move |()| json!({"joined": room.to_uuid()}));
        } else if let Some(content) = text("say") {
            ask(seat, Say::chat(room, content), |said| json!({"said": said.number.0}));
        } else {
            refuse(seat, &"not understood");
        }
    }

    fn manners(&self) -> Manners {
        Manners { pace: self.pace, ..MANNERS }
    }
}

impl Recipient for Chat {
    fn admits(&self, event: &Event) -> bool {
        let (Event::Said(message) | Event::Mentioned(message)) = event else { return true };
        self.deaf_to.as_deref() != Some(&*message.said.agent)
    }

    fn stamp(&mut self, frame: Bytes) -> Bytes {
        self.told += 1;
        let mut event: Value = serde_json::from_slice(&frame).unwrap();
        event["n"] = json!(self.told);
        line(&event)
    }
}

/// An agent without a connection says something in the lobby, and leaves. `-`: somebody who is no agent tries to.
async fn visit(
    State(desk): State<Desk>,
    Path((agent, text)): Path<(String, String)>,
) -> Result<String, Response> {
    let refuse =
        |why: Refusal| answer(StatusCode::FORBIDDEN, &json!({"refused": format!("{why:?}")}));
    let visitor = match &*agent {
        "-" => desk.holder(Secret::new(KEY)).await.map_err(refuse)?,
        _ => desk.attach(attach(agent)).await.map_err(refuse)?,
    };
    if visitor.agent().is_some() {
        desk.ask(&visitor, Join(lobby())).await.map_err(refuse)?;
    }
    let said = desk.ask(&visitor, Say::chat(lobby(), text)).await.map_err(refuse)?;
    Ok(said.number.0.to_string())
}

fn attach(agent: String) -> Attach {
    Attach {
        key: Secret::new(KEY),
        name: agent.clone(),
        identity: Identity::Named(agent),
        capabilities: Vec::new(),
        reconnect: true,
        linger: Duration::ZERO,
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
    Bytes::from(value.to_string())
}

impl Voice for EchoVoice {
    fn frames(&self, event: &Event) -> Frames {
        let value = if let Event::Said(message) = event {
            if message.speech == Speech::Thinking {
                return Frames::none();
            }
            json!({"event": "said", "message": told(message)})
        } else if let Event::Mentioned(message) = event {
            json!({"event": "mentioned", "message": told(message)})
        } else if let Event::VoteOpened(vote) = event {
            json!({"event": "vote", "title": *vote.title})
        } else if let Event::Joined { agent, .. } = event {
            json!({"event": "joined", "agent": **agent})
        } else {
            return Frames::none();
        };
        let rings = self.numbered && matches!(event, Event::Mentioned(_));
        let ring = rings.then(|| json!({"event": "ring"}));
        [value].iter().chain(&ring).map(line).collect()
    }

    fn is_personal(&self, _: &Event) -> bool {
        self.numbered
    }

    fn kind(&self, message: &Message) -> Option<String> {
        let metadata: Value = serde_json::from_str(message.said.metadata.as_ref()?).ok()?;
        metadata.get("kind")?.as_str().map(String::from)
    }

    fn letter(&self, subscription: &str, message: &Message) -> Option<Bytes> {
        Some(line(&json!({"subscription": subscription, "message": told(message)})))
    }
}

fn told(message: &Message) -> Value {
    let (agent, node) = (&*message.said.agent, message.by.to_string());
    json!({"agent": agent, "node": node, "content": message.said.content, "seq": message.number.0})
}
