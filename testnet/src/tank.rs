//! A client of ClawTank that repairs nothing: one envelope for each text message over a WebSocket. Nothing is read unless
//! somebody waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result, bail};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        client::IntoClientRequest as _,
        http::{HeaderValue, header::AUTHORIZATION},
        protocol::Message,
    },
};

/// The time of all frames: nodes look at no more than its form.
pub(crate) const AT: &str = "2026-02-17T21:03:00.123Z";

/// A connection.
pub(crate) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// An id in the form of 26 digits.
pub(crate) fn ulid(number: u128) -> String {
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digit = |place: u32| char::from(digits[(number >> (5 * (25 - place)) & 31) as usize]);
    (0..26).map(digit).collect()
}

/// An id that nothing else of this process has.
pub(crate) fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ulid(u128::from(NEXT.fetch_add(1, Relaxed)) << 48 | u128::from(std::process::id()))
}

/// Somebody whom no node believes.
pub(crate) fn somebody() -> Value {
    json!({ "user_id": ulid(1), "display_name": "x", "type": "human" })
}

pub(crate) fn envelope(id: &str, kind: &str, data: &Value) -> Value {
    json!({ "id": id, "type": kind, "timestamp": AT, "data": data })
}

impl Client {
    /// A connection to `/ws` that has said nothing.
    pub(crate) async fn open(address: &str) -> Result<Client> {
        let (socket, _) = connect_async(format!("ws://{address}/ws")).await?;
        Ok(Client { socket })
    }

    /// One that looks at a room, with a key if there is one, and has been let in or turned away: the frame says it.
    pub(crate) async fn spectator(
        address: &str,
        room: &str,
        key: Option<&str>,
    ) -> Result<(Client, Value)> {
        let mut request = format!("ws://{address}/spectate/{room}").into_client_request()?;
        if let Some(key) = key {
            let shown = HeaderValue::from_str(&format!("Bearer {key}"))?;
            request.headers_mut().insert(AUTHORIZATION, shown);
        }
        let (socket, _) = connect_async(request).await?;
        let mut client = Client { socket };
        let first = client.next().await?;
        Ok((client, first))
    }

    /// A person, or the connection of an agent, in a room.
    pub(crate) async fn member(
        address: &str,
        (kind, name): (&str, &str),
        key: Option<&str>,
        room: &str,
    ) -> Result<Client> {
        let mut client = Client::open(address).await?;
        let request = json!({
            "client_type": kind, "auth_token": key, "room_id": room,
            "client_info": { "name": name, "version": "1.0.0", "capabilities": [] },
        });
        client.gets("connection.request", &request).await?;
        Ok(client)
    }

    /// An agent in a room.
    pub(crate) async fn agent(
        address: &str,
        name: &str,
        key: Option<&str>,
        room: &str,
    ) -> Result<Client> {
        let mut client = Client::member(address, ("agent", name), key, room).await?;
        client.gets("agent.register", &introduction(name)).await?;
        Ok(client)
    }

    /// Any text.
    pub(crate) async fn send(&mut self, text: String) -> Result<()> {
        Ok(self.socket.send(Message::text(text)).await?)
    }

    /// Says something. Returns the id of the frame.
    pub(crate) async fn say(&mut self, kind: &str, data: &Value) -> Result<String> {
        let id = fresh();
        self.send(envelope(&id, kind, data).to_string()).await?;
        Ok(id)
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Result<Value> {
        loop {
            let message = self.socket.next().await.context("the node hangs up")??;
            match message {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(_) => bail!("the node closes the connection"),
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        }
    }

    /// The answer to a frame, which is an error or not; others are passed over.
    pub(crate) async fn ask(&mut self, kind: &str, data: &Value) -> Result<Value> {
        let id = self.say(kind, data).await?;
        loop {
            let frame = self.next().await?;
            if frame["metadata"]["correlation_id"] == *id {
                return Ok(frame);
            }
        }
    }

    /// The same, of which the answer is no error: its data.
    pub(crate) async fn gets(&mut self, kind: &str, data: &Value) -> Result<Value> {
        let mut answer = self.ask(kind, data).await?;
        if answer["type"] == "error" {
            bail!("{kind} is answered {answer}");
        }
        Ok(answer["data"].take())
    }

    /// The next frame of a kind; others are passed over.
    pub(crate) async fn hears(&mut self, kind: &str) -> Result<Value> {
        loop {
            let frame = self.next().await?;
            if frame["type"] == kind {
                return Ok(frame);
            }
        }
    }

    /// Reads until the node hangs up, and counts frames.
    pub(crate) async fn counts(&mut self, frames: &AtomicU64) -> Result<()> {
        while let Some(message) = self.socket.next().await {
            if message?.is_text() {
                frames.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }
}

/// The data of `agent.register`.
pub(crate) fn introduction(name: &str) -> Value {
    json!({
        "agent_name": name, "agent_id": name, "agent_capabilities": ["testing"],
        "model_info": { "provider": "p", "model_name": "m" },
        "owner_info": { "user_id": ulid(1), "display_name": "x" },
    })
}

/// The data of `chat.human_message`.
pub(crate) fn words(message: &str, room: &str, text: &str) -> Value {
    json!({
        "message_id": message, "room_id": room, "visibility": "public",
        "content": { "text": text }, "author": somebody(),
    })
}

/// The data of `task.created`.
pub(crate) fn task(id: &str, room: &str) -> Value {
    json!({
        "task_id": id, "room_id": room, "title": "do it", "description": "", "priority": "high",
        "status": "open", "creator": somebody(), "context": { "tags": ["cli"] },
    })
}
