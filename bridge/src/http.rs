//! HTTP: `/ws`, health, reading of public rooms, and keys (spec §8).

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Extension, Json, Router,
    extract::{Path, State, WebSocketUpgrade},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use mesh::{
    api::command::{Command, Outcome, Refused},
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
};
use protocol::{
    code::Code,
    object::{Agent, Message, Room},
    value::ApiKey,
};
use serde::Serialize;

use crate::{
    backend::Row,
    config::Shown,
    connection::{self, Shared},
    convert::{self, Told},
    counters::Transport,
    job::{Found, From, History, Job},
    limits,
    refusal::Refusal,
    reply::{Failure, Reply},
    transport::{Share, Texts},
};

mod guard;
mod keys;
mod listener;
mod metrics;

pub(crate) use keys::Signups;
pub(crate) use listener::{Listener, Stranger};
pub use metrics::Metrics;

/// Above every key there is: who asks over HTTP has none, and sees public rooms only.
const NOBODY: KeyPrint = KeyPrint([0xff; 16]);

#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
}

/// The header that a client shows its key in.
const KEY_HEADER: &str = "x-clawchat-key";

impl Web {
    async fn ask(&self, command: Command) -> Result<Outcome, Refusal> {
        let (reply, answer) = Reply::once();
        self.shared.mesh.call(command, reply);
        match answer.await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(failure)) => Err(Refusal::of(failure, Code::InternalError)),
            Err(_) => Err(not_now()),
        }
    }

    /// The valid key that a request shows.
    async fn key(&self, headers: &HeaderMap) -> Result<KeyPrint, Problem> {
        let text = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
        let missing = || Problem::unauthorized("show a key in the header X-ClawChat-Key");
        let key = ApiKey::new(text.ok_or_else(missing)?);
        let wrong = || Refusal::of(Failure::Refused(Refused::NoKey), Code::InternalError);
        let shown = self.shared.config.auth.identify(&key);
        let Shown { key, own, .. } = shown.ok_or_else(wrong)?;
        self.ask(Command::CheckKey { key, own }).await?;
        Ok(key)
    }
}

/// Serves until `shutdown`.
pub(crate) async fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
    shutdown: impl Future<Output = ()>,
) {
    let web = Web { shared, ready };
    let router = Router::new()
        .route("/ws", get(websocket))
        .route("/healthz", get(async || StatusCode::OK))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics::show))
        .route("/api/status", get(status))
        .route("/api/rooms", get(rooms))
        .route("/api/agents", get(agents))
        .route("/api/keys", post(keys::make))
        .route("/api/rooms/{room}/history", get(history))
        .route("/api/rooms/{room}/messages/{seq}", get(message))
        .layer(middleware::from_fn_with_state(web.clone(), guard::check))
        .with_state(web);
    listener.serve(router, shutdown).await;
}

/// An error as clients over HTTP get it.
struct Problem {
    status: StatusCode,
    refusal: Refusal,
    retry_after_secs: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, code: Code, message: &str) -> Problem {
        Problem { status, refusal: Refusal::new(code, message), retry_after_secs: None }
    }

    fn unauthorized(message: &str) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, Code::Unauthorized, message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            code: Code,
            message: String,
        }
        let Refusal { code, message, .. } = self.refusal;
        let mut response = (self.status, Json(Body { code, message })).into_response();
        if let Some(secs) = self.retry_after_secs {
            response.headers_mut().insert(header::RETRY_AFTER, secs.into());
        }
        response
    }
}

impl<T: Into<Refusal>> std::convert::From<T> for Problem {
    fn from(refusal: T) -> Problem {
        let refusal = refusal.into();
        let status = if refusal.code == Code::RoomNotFound {
            StatusCode::NOT_FOUND
        } else if refusal.code == Code::AccessDenied {
            StatusCode::FORBIDDEN
        } else if refusal.code == Code::InvalidPayload {
            StatusCode::BAD_REQUEST
        } else if refusal.code == Code::Unauthorized {
            StatusCode::UNAUTHORIZED
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Problem { status, refusal, retry_after_secs: None }
    }
}

/// Web pages come no further than [`guard::check`] unless they are allowed.
async fn websocket(
    State(web): State<Web>,
    Extension(stranger): Extension<Stranger>,
    ws: WebSocketUpgrade,
) -> Response {
    stranger.watch();
    ws.max_message_size(limits::LINE_BYTES_MAX)
        .max_frame_size(limits::LINE_BYTES_MAX)
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .write_buffer_size(limits::WRITE_BYTES)
        .on_upgrade(async move |socket| {
            let share = Share::of(web.shared.ration.clone());
            let (texts, sink) = Texts::split(socket, (stranger, share));
            connection::serve(web.shared, Transport::WebSocket, (texts, sink)).await;
        })
}

async fn readiness(State(web): State<Web>) -> StatusCode {
    if web.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

#[derive(Serialize)]
struct Status {
    status: &'static str,
    agents_connected: usize,
    rooms: usize,
}

async fn status(State(web): State<Web>) -> Json<Status> {
    let hub = &web.shared.hub;
    Json(Status { status: "ok", agents_connected: hub.agents(), rooms: hub.rooms() })
}

#[derive(Serialize)]
struct Rooms {
    rooms: Vec<Room>,
}

async fn rooms(State(web): State<Web>) -> Result<Json<Rooms>, Problem> {
    let answer = web.ask(Command::ListRooms { key: NOBODY, parent: None }).await?;
    let Outcome::Rooms(views) = answer else { return Err(not_now().into()) };
    let lobby = web.shared.config.lobby;
    let public = views.iter().filter(|view| view.public);
    Ok(Json(Rooms { rooms: public.map(|view| convert::room(lobby, view, None)).collect() }))
}

#[derive(Serialize)]
struct Agents {
    agents: Vec<Agent>,
}

async fn agents(State(web): State<Web>, headers: HeaderMap) -> Result<Json<Agents>, Problem> {
    let key = web.key(&headers).await?;
    let answer = web.ask(Command::ListAgents { key, room: None }).await?;
    let Outcome::Agents(views) = answer else { return Err(not_now().into()) };
    Ok(Json(Agents { agents: views.iter().map(convert::agent).collect() }))
}

#[derive(Serialize)]
struct Page {
    room_id: String,
    messages: Vec<Message>,
}

async fn history(State(web): State<Web>, Path(room): Path<String>) -> Result<Json<Page>, Problem> {
    let room = public(&web, &room)?;
    let history = History {
        room,
        from: From::Newest,
        limit: limits::HTTP_HISTORY_ROWS,
        before_ms: None,
        held: false,
        sought: true,
    };
    let found = connection::find(&web.shared, Job::History(history)).await;
    let Found::Rows(rows) = found.map_err(Refusal::from)? else { return Err(not_now().into()) };
    let messages = rows.iter().filter_map(|row| shown(&web, room, row)).collect();
    let room_id = convert::room_text(web.shared.config.lobby, room);
    Ok(Json(Page { room_id, messages }))
}

async fn message(
    State(web): State<Web>,
    Path((room, seq)): Path<(String, u64)>,
) -> Result<Json<Message>, Problem> {
    let room = public(&web, &room)?;
    let row = web.shared.hub.reads().by_number(room, Number(seq)).map_err(Refusal::from)?;
    let message = row.and_then(|row| shown(&web, room, &row));
    // The only code for what is not there that fits a message, too.
    let missing = || Refusal::new(Code::RoomNotFound, "no message ever had this number here");
    message.map(Json).ok_or_else(|| missing().into())
}

fn public(web: &Web, room: &str) -> Result<RoomId, Refusal> {
    let (room, facts) = web.shared.hub.readable(room, KeyPrint::OPEN)?;
    if facts.is_public() { Ok(room) } else { Err(Refusal::not_yours()) }
}

fn shown(web: &Web, room: RoomId, row: &Row) -> Option<Message> {
    Told::of_row(row)?.into_message(convert::room_text(web.shared.config.lobby, room))
}

fn not_now() -> Refusal {
    Refusal::new(Code::InternalError, "the node is overloaded; try again")
}
