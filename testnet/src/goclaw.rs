//! A client of GoClaw that repairs nothing: the program of a person. Nothing is read unless somebody waits.

use anyhow::{Context, Result, bail, ensure};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Duration, Instant, sleep},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async, tungstenite::protocol::Message,
};

/// An agent is known at another node within this time.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A program of a person, connected.
pub(crate) struct Program {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    asked: u64,
}

impl Program {
    /// The program of a user. Without a protocol it is not told of agents that come and go.
    pub(crate) async fn at(address: &str, key: &str, user: &str) -> Result<Program> {
        let (socket, _) = connect_async(format!("ws://{address}/ws")).await?;
        let mut program = Program { socket, asked: 0 };
        program.ask("connect", &json!({ "token": key, "user_id": user })).await?;
        Ok(program)
    }

    /// The answer to a request; events on the way are read and dropped.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked.to_string();
        let frame = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.socket.send(Message::text(frame.to_string())).await?;
        loop {
            let mut frame = self.frame().await?;
            if frame["type"] != "res" || frame["id"] != *id {
                continue;
            }
            if frame["ok"] != true {
                bail!("{method} is answered {frame}");
            }
            return Ok(frame["payload"].take());
        }
    }

    /// The next event of this name that is so; others are read and dropped.
    pub(crate) async fn hears(
        &mut self,
        event: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        loop {
            let mut frame = self.frame().await?;
            if frame["event"] == event && is(&frame["payload"]) {
                return Ok(frame["payload"].take());
            }
        }
    }

    async fn frame(&mut self) -> Result<Value> {
        loop {
            let message = self.socket.next().await.context("the node hangs up")??;
            if let Message::Text(text) = message {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }

    /// Until its node has heard of an agent that has come to another one.
    pub(crate) async fn knows(&mut self, agent: &str) -> Result<()> {
        let until = Instant::now() + KNOWN_WITHIN;
        loop {
            let known = self.ask("agents.list", &json!({})).await?;
            let rows = known["agents"].as_array().context("agents")?;
            if rows.iter().any(|row| row["id"] == *agent && row["online"] == true) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "nobody hears of {agent}: {known}");
            sleep(LOOK_EVERY).await;
        }
    }
}
