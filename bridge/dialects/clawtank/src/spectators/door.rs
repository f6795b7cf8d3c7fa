//! `/spectate/ROOM`: a WebSocket for one who looks on, with a key or without.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    extract::{
        ConnectInfo, Path, RawQuery, State, WebSocketUpgrade,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket},
    },
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bridge::{delivery::ending::Ending, dialect::Site, read::Peer, secret::Secret};
use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    look::Turned,
    stage::{self, Cast},
    talk::{self, Answer, Spectator, Wish},
};
use crate::{
    envelope::{Bad, Request},
    http::{refuse, shown},
    limits::{
        KEY_LOOK_EVERY, MESSAGE_BYTES_MAX, PACE, PING_EVERY, SILENT_FOR_MAX, SPECTATOR_WRITE_BYTES,
        SPECTATOR_WRITES_WITHIN,
    },
    shared::Shared,
    style::Style,
};

type Opened = Arc<OnceLock<Arc<Shared>>>;

#[derive(Clone)]
struct Door {
    shared: Opened,
    style: Style,
}

const PATH: &str = "/spectate/";

pub(crate) fn site(shared: Opened, style: Style) -> Site {
    let router = Router::new()
        .route("/spectate/{room}", get(comes))
        .fallback(async || StatusCode::NOT_FOUND)
        .with_state(Door { shared, style });
    Site {
        router,
        paths: &[PATH],
        methods: &["GET"],
        checks_names: |_, _| true,
        headers: &["authorization"],
        refuse,
    }
}

async fn comes(
    State(Door { shared, style }): State<Door>,
    Path(room): Path<String>,
    (ConnectInfo(peer), RawQuery(query)): (ConnectInfo<Peer>, RawQuery),
    headers: HeaderMap,
    ws: WebSocketUpgrade,
) -> Response {
    let Some(shared) = shared.get().cloned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let asked = query.as_deref().and_then(key_of);
    let key = shown(&headers).or(asked).map(|key| Secret::new(&key));
    let from = Some(shared.desk.network(peer, &headers));
    let wish = Wish { room, key, name: None, style, from };
    ws.max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .write_buffer_size(SPECTATOR_WRITE_BYTES)
        .on_upgrade(async move |socket| looks_on(&shared, wish, socket).await)
}

/// `auth` of a query.
fn key_of(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, text) = pairs.find(|(name, _)| *name == "auth")?;
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

async fn looks_on(shared: &Arc<Shared>, wish: Wish, mut socket: WebSocket) {
    let (style, form) = (wish.style, wish.style.form);
    let ending = match talk::admit(shared, wish).await {
        Ok((spectator, welcome)) => {
            // From before the first frame, so that nothing is missed.
            let casts = spectator.place.stage.watch(form);
            match write(&mut socket, welcome).await {
                Some(ending) => ending,
                None => watches(&mut socket, &spectator, casts).await,
            }
        }
        Err(turned) => {
            let frame = style.frame(turned.told());
            write(&mut socket, frame).await.unwrap_or(Ending::Refused)
        }
    };
    end(socket, ending).await;
}

async fn end(mut socket: WebSocket, ending: Ending) {
    let reason = ending.text().into();
    let close = Message::Close(Some(CloseFrame { code: ending.code(), reason }));
    // One that has hung up needs no word.
    drop(timeout(SPECTATOR_WRITES_WITHIN, socket.send(close)).await);
}

/// Writes a frame. The end of the connection, if it is not taken.
async fn write(socket: &mut WebSocket, frame: Bytes) -> Option<Ending> {
    let Ok(text) = Utf8Bytes::try_from(frame) else { return Some(Ending::Failed) };
    send(socket, Message::Text(text)).await
}

async fn send(socket: &mut WebSocket, message: Message) -> Option<Ending> {
    match timeout(SPECTATOR_WRITES_WITHIN, socket.send(message)).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some(Ending::Done),
        Err(_) => Some(Ending::Silent),
    }
}

/// What comes next at a connection.
enum Next {
    Cast(Cast),
    Heard(Option<Message>),
    Timer,
}

async fn watches(
    socket: &mut WebSocket,
    spectator: &Spectator,
    mut casts: tokio::sync::broadcast::Receiver<Cast>,
) -> Ending {
    let mut timers = Timers::new();
    let mut paced = spectator.paced();
    loop {
        // Not silent as long as nothing of it is heard.
        let listens = timers.hears_from <= Instant::now();
        let next = tokio::select! {
            cast = stage::next(&mut casts) => Next::Cast(cast),
            message = socket.recv(), if listens => Next::Heard(message.and_then(Result::ok)),
            () = sleep_until(timers.due()) => Next::Timer,
        };
        let ended = match next {
            Next::Cast(Cast::Frame(_, Some(but))) if but == spectator.id() => None,
            Next::Cast(Cast::Frame(frame, _)) => {
                spectator.waits_for_its_turn().await;
                send(socket, Message::Text(frame)).await
            }
            Next::Cast(Cast::End(Some(frame))) => {
                send(socket, Message::Text(frame)).await.or(Some(Ending::Refused))
            }
            Next::Cast(Cast::End(None)) => Some(Ending::GoingAway),
            Next::Heard(message) => {
                let now = Instant::now();
                timers.hears_from = now + paced.wait(PACE, spectator.key(), now.into_std());
                hear(socket, spectator, message).await
            }
            Next::Timer => timers.ring(socket, spectator).await,
        };
        if let Some(ending) = ended {
            return ending;
        }
    }
}

async fn hear(
    socket: &mut WebSocket,
    spectator: &Spectator,
    message: Option<Message>,
) -> Option<Ending> {
    let text = match message {
        Some(Message::Text(text)) => text,
        Some(Message::Ping(_) | Message::Pong(_)) => return None,
        Some(Message::Binary(_)) => return Some(Ending::NotText),
        Some(Message::Close(_)) | None => return Some(Ending::Done),
    };
    let Answer { frames, ending } = match Request::parse(&text) {
        Ok(request) => spectator.hears(&request),
        Err(Bad { related, problem }) => {
            let frames = vec![spectator.style.error(&problem, &related)];
            Answer { frames, ending: spectator.errs() }
        }
    };
    for frame in frames {
        if let Some(ending) = write(socket, frame).await {
            return Some(ending);
        }
    }
    ending
}

/// When something is to be done, or the connection ends.
struct Timers {
    /// Its next frame is heard from then on.
    hears_from: Instant,
    ping: Instant,
    look: Instant,
}

impl Timers {
    fn new() -> Timers {
        let now = Instant::now();
        Timers { hears_from: now, ping: now + PING_EVERY, look: now + KEY_LOOK_EVERY }
    }

    fn due(&self) -> Instant {
        let due = self.ping.min(self.look).min(self.hears_from + SILENT_FOR_MAX);
        if self.hears_from > Instant::now() { due.min(self.hears_from) } else { due }
    }

    async fn ring(&mut self, socket: &mut WebSocket, spectator: &Spectator) -> Option<Ending> {
        let now = Instant::now();
        let later = |every: Duration| now + every;
        if now >= self.hears_from + SILENT_FOR_MAX {
            return Some(Ending::Silent);
        }
        if now >= self.look {
            self.look = later(KEY_LOOK_EVERY);
            if !spectator.may_look().await {
                let frame = spectator.style.frame(Turned::NotFound.told());
                return write(socket, frame).await.or(Some(Ending::Revoked));
            }
        }
        if now >= self.ping {
            self.ping = later(PING_EVERY);
            return send(socket, Message::Ping(Bytes::new())).await;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_out_of_a_query() {
        assert_eq!(key_of("a=b&auth=x%2by+z"), Some("x+y z".to_owned()));
        for none in ["", "auth", "a=auth", "auth=%", "auth=%zz", "auth=%ff"] {
            assert_eq!(key_of(none), None, "{none}");
        }
    }
}
