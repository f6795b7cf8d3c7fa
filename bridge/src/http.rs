//! HTTP: `/ws`, health, and reading of public rooms.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    Json, Router,
    extract::{Path, State, WebSocketUpgrade},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use mesh::{
    command::{Command, Outcome},
    id::{KeyPrint, RoomId},
    number::Number,
};
use protocol::{
    code::Code,
    limits::LINE_BYTES_MAX,
    object::{Message, Room},
};
use serde::Serialize;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};

use crate::{
    backend::Row,
    connection::{self, Shared},
    convert::{self, Told},
    job::{Found, From, History, Job},
    limits,
    refusal::Refusal,
    reply::Reply,
    transport::Texts,
};

/// Above every key there is: who asks over HTTP has none, and sees public rooms only.
const NOBODY: KeyPrint = KeyPrint([0xff; 16]);

#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
}

/// Serves until `shutdown`.
pub(crate) async fn serve(
    listener: Listener,
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route("/ws", get(websocket))
        .route("/healthz", get(async || StatusCode::OK))
        .route("/readyz", get(readiness))
        .route("/api/status", get(status))
        .route("/api/rooms", get(rooms))
        .route("/api/rooms/{room}/history", get(history))
        .route("/api/rooms/{room}/messages/{seq}", get(message))
        .with_state(Web { shared, ready });
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

/// An error as clients over HTTP get it.
struct Problem(Refusal);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            code: Code,
            message: String,
        }
        let Problem(Refusal { code, message }) = self;
        let status = if code == Code::RoomNotFound {
            StatusCode::NOT_FOUND
        } else if code == Code::AccessDenied {
            StatusCode::FORBIDDEN
        } else if code == Code::InvalidPayload {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        (status, Json(Body { code, message })).into_response()
    }
}

impl<T: Into<Refusal>> std::convert::From<T> for Problem {
    fn from(refusal: T) -> Problem {
        Problem(refusal.into())
    }
}

async fn websocket(State(web): State<Web>, headers: HeaderMap, ws: WebSocketUpgrade) -> Response {
    let allowed = &web.shared.config.origins;
    let strange = |origin: &header::HeaderValue| {
        !allowed.iter().any(|allowed| origin.as_bytes() == allowed.as_bytes())
    };
    if headers.get_all(header::ORIGIN).iter().any(strange) {
        let text = "web pages of this origin may not connect; allow it in the node's settings";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    ws.max_message_size(LINE_BYTES_MAX)
        .max_frame_size(LINE_BYTES_MAX)
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .write_buffer_size(limits::WRITE_BYTES)
        .on_upgrade(async move |socket| {
            let (texts, sink) = Texts::split(socket);
            connection::serve(web.shared, texts, sink).await;
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
    let (reply, answer) = Reply::once();
    web.shared.mesh.call(Command::ListRooms { key: NOBODY, parent: None }, reply);
    let answer = answer.await.map_err(|_| not_now())?;
    let Ok(Outcome::Rooms(views)) = answer else { return Err(not_now().into()) };
    let lobby = web.shared.config.lobby;
    let public = views.iter().filter(|view| view.public);
    Ok(Json(Rooms { rooms: public.map(|view| convert::room(lobby, view, None)).collect() }))
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
    if facts.public { Ok(room) } else { Err(Refusal::not_yours()) }
}

fn shown(web: &Web, room: RoomId, row: &Row) -> Option<Message> {
    Told::of_row(row)?.into_message(convert::room_text(web.shared.config.lobby, room))
}

fn not_now() -> Refusal {
    Refusal::new(Code::InternalError, "the node is overloaded; try again")
}

/// Takes connections as long as there are permits; each holds one until it ends, as a WebSocket too.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    connections: Arc<Semaphore>,
}

impl Listener {
    pub(crate) fn new(listener: TcpListener, connections: Arc<Semaphore>) -> Listener {
        Listener { listener, connections }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        loop {
            match (self.listener.accept().await, self.connections.clone().try_acquire_owned()) {
                (Ok((io, from)), Ok(permit)) => {
                    // Without it frames wait for acknowledgements; it works all the same.
                    drop(io.set_nodelay(true));
                    let silence = Box::pin(sleep(limits::HTTP_SILENT_FOR_MAX));
                    return (Guarded { io, silence, _permit: permit }, from);
                }
                (Ok((io, _)), Err(_)) => {
                    // A fresh socket has room for it; one that has not is dropped without it.
                    drop(io.try_write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    sleep(limits::ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing comes for too long.
#[derive(Debug)]
pub(crate) struct Guarded {
    io: TcpStream,
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_read(cx, into) {
            Poll::Ready(read) => {
                let due = Instant::now() + limits::HTTP_SILENT_FOR_MAX;
                self.silence.as_mut().reset(due);
                Poll::Ready(read)
            }
            Poll::Pending => {
                self.silence.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
