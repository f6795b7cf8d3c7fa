//! Pages: the node's state, public rooms to read, and keys (spec §8); a client, and how to use it.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bridge::{
    dialect::{Intrusion, Site},
    read::{Desk, Visitor},
    seam::{
        call::{From, History, ListAgents, ListRooms, Numbered},
        event,
        refusal::Refusal,
    },
    secret::Secret,
    session::ask::Ask,
    shown::{Eyes, is_room_only},
};
use mesh::name::number::Number;
use protocol::{
    code::Code,
    object::{Agent, Message, Room},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    codes::{NO_FILE, Problem},
    encode,
    limits::HTTP_HISTORY_ROWS,
    rooms::{self, details_of},
    voice::Voice,
};

mod files;
mod keys;
mod pages;

/// The header that a client shows its key in.
const KEY_HEADER: &str = "x-clawchat-key";

#[derive(Clone)]
struct Web {
    desk: Desk,
    voice: Arc<Voice>,
}

pub(crate) fn site(desk: Desk, voice: Arc<Voice>) -> Site {
    let router = Router::new()
        .route("/api/status", get(status))
        .route("/api/rooms", get(rooms))
        .route("/api/agents", get(agents))
        .route("/api/keys", post(keys::make))
        .route("/api/rooms/{room}/history", get(history))
        .route("/api/rooms/{room}/messages/{seq}", get(message))
        .route("/api/rooms/{room}/files", get(files::list))
        .route(
            "/api/rooms/{room}/files/{*path}",
            get(files::get).put(files::put).delete(files::delete),
        )
        .with_state(Web { desk: desk.clone(), voice })
        .merge(pages::router(desk));
    Site {
        router,
        paths: &["/api/", "/clawmesh.py", "/skill.md"],
        methods: &["GET", "POST", "PUT", "DELETE"],
        // The others show a key, which a page that was pointed here does not have.
        checks_names: |_, method| method != Method::POST,
        headers: &[keys::ADMIN_HEADER, KEY_HEADER, "authorization", files::AGENT_HEADER],
        refuse: |why| Failed::from(why).into_response(),
    }
}

/// A problem as clients over HTTP get it.
struct Failed {
    status: StatusCode,
    problem: Problem,
    retry_after_secs: Option<u64>,
}

impl Failed {
    fn new(status: StatusCode, code: Code, message: &str) -> Failed {
        Failed { status, problem: Problem::new(code, message), retry_after_secs: None }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            code: Code,
            message: String,
        }
        let Problem { code, message, .. } = self.problem;
        let mut response = (self.status, Json(Body { code, message })).into_response();
        if let Some(secs) = self.retry_after_secs {
            response.headers_mut().insert(header::RETRY_AFTER, secs.into());
        }
        response
    }
}

impl std::convert::From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        let is_missing = problem.code == Code::RoomNotFound || problem.message == NO_FILE;
        let status = if is_missing {
            StatusCode::NOT_FOUND
        } else if problem.code == Code::AccessDenied {
            StatusCode::FORBIDDEN
        } else if problem.code == Code::InvalidPayload {
            StatusCode::BAD_REQUEST
        } else if problem.code == Code::Unauthorized {
            StatusCode::UNAUTHORIZED
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Failed { status, problem, retry_after_secs: None }
    }
}

impl std::convert::From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        if let Refusal::TooManyKeys { wait } = refusal {
            return Failed {
                status: StatusCode::TOO_MANY_REQUESTS,
                retry_after_secs: Some(wait.as_secs() + 1),
                ..Failed::from(Problem::from(refusal))
            };
        }
        Failed::from(Problem::from(refusal))
    }
}

impl std::convert::From<Intrusion> for Failed {
    fn from(why: Intrusion) -> Failed {
        let text = match why {
            Intrusion::Origin => {
                "web pages of this origin may not connect; allow it in the node's settings"
            }
            Intrusion::Name => {
                "this node does not answer under that name; ask under its address, or let its operator add the name"
            }
        };
        Failed::new(StatusCode::FORBIDDEN, Code::AccessDenied, text)
    }
}

impl Web {
    /// The holder of the valid key that a request shows.
    async fn holder(&self, headers: &HeaderMap) -> Result<Visitor, Failed> {
        let missing = || {
            let text = "show a key in the header X-ClawChat-Key, or as Authorization: Bearer KEY";
            Problem::new(Code::Unauthorized, text)
        };
        Ok(self.desk.holder(Secret::new(shown(headers).ok_or_else(missing)?)).await?)
    }

    /// Public rooms are read by everybody, or where the node's operator wants it so by holders of a valid key. Asked first,
    /// so that nobody else learns which rooms there are.
    async fn may_read(&self, headers: &HeaderMap) -> Result<Eyes, Failed> {
        match self.holder(headers).await {
            Ok(_) => Ok(Eyes::Members),
            Err(_) if self.desk.config().strangers_read => Ok(Eyes::Strangers),
            Err(failed) => Err(failed),
        }
    }

    /// Asks for somebody who has shown no key. A key opens no private room here.
    async fn ask<C: Ask>(&self, call: C) -> Result<C::Answer, Failed> {
        Ok(self.desk.ask(&Visitor::stranger(), call).await?)
    }
}

/// The key that a request shows, in one of the two ways.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, key) = text("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    };
    text(KEY_HEADER).or_else(bearer)
}

#[derive(Serialize)]
struct Status {
    status: &'static str,
    agents_connected: usize,
    rooms: usize,
}

async fn status(State(web): State<Web>) -> Json<Status> {
    let (agents_connected, rooms) = (web.desk.agents_here(), web.desk.rooms_here());
    Json(Status { status: "ok", agents_connected, rooms })
}

#[derive(Serialize)]
struct Rooms {
    rooms: Vec<Room>,
}

async fn rooms(State(web): State<Web>, headers: HeaderMap) -> Result<Response, Failed> {
    let eyes = web.may_read(&headers).await?;
    let rooms = web.ask(ListRooms { parent: None }).await?;
    let details = web.ask(details_of(&rooms)).await?;
    let rooms = rooms::shown(&web.voice, &rooms, &details, &encode::Viewer::default());
    Ok(seen(eyes, Rooms { rooms }))
}

#[derive(Serialize)]
struct Agents {
    agents: Vec<Agent>,
}

async fn agents(State(web): State<Web>, headers: HeaderMap) -> Result<Json<Agents>, Failed> {
    let holder = web.holder(&headers).await?;
    let agents = web.desk.ask(&holder, ListAgents { room: None }).await?;
    Ok(Json(Agents { agents: agents.iter().map(encode::agent).collect() }))
}

#[derive(Serialize)]
struct Page {
    room_id: String,
    messages: Vec<Message>,
}

async fn history(
    State(web): State<Web>,
    headers: HeaderMap,
    Path(room): Path<String>,
) -> Result<Response, Failed> {
    let eyes = web.may_read(&headers).await?;
    let room = web.voice.room(&room)?;
    let limit = HTTP_HISTORY_ROWS;
    let page = web.ask(History { room, from: From::Newest, limit, before_ms: None }).await?;
    let messages = page.messages.iter().filter(|message| is_for(eyes, message));
    let messages = messages.map(|message| encode::message(web.voice.lobby(), message)).collect();
    Ok(seen(eyes, Page { room_id: web.voice.name(room), messages }))
}

async fn message(
    State(web): State<Web>,
    headers: HeaderMap,
    Path((room, seq)): Path<(String, u64)>,
) -> Result<Response, Failed> {
    let eyes = web.may_read(&headers).await?;
    let room = web.voice.room(&room)?;
    let message = web.ask(Numbered { room, number: Number(seq) }).await?;
    // The only code for a thing that is not there which fits a message, too.
    let missing = || Problem::new(Code::RoomNotFound, "no message ever had this number here");
    let message = message.filter(|message| is_for(eyes, message)).ok_or_else(missing)?;
    Ok(seen(eyes, encode::message(web.voice.lobby(), &message)))
}

/// Whether one who looks is shown a message: not if its author keeps it in the room.
fn is_for(eyes: Eyes, message: &event::Message) -> bool {
    match eyes {
        Eyes::Members => true,
        Eyes::Strangers => !is_room_only(message.said.metadata.as_deref()),
    }
}

/// A page, as one who looks is shown it: without a key, without prints of keys, and without addresses in records.
fn seen(eyes: Eyes, page: impl Serialize) -> Response {
    if eyes == Eyes::Members {
        return Json(page).into_response();
    }
    let Ok(mut page) = serde_json::to_value(page) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let messages = page.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        records(eyes, message);
    }
    records(eyes, &mut page);
    eyes.reads(&mut page);
    Json(page).into_response()
}

/// The record in the metadata of a message.
fn records(eyes: Eyes, message: &mut Value) {
    if let Some(record) = message.pointer_mut("/metadata/git") {
        eyes.reads_record(record);
    }
}
