//! Programs of people that speak GoClaw badly, and agents whose answers never end, at the doors of the first node.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinSet, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async, tungstenite::protocol::Message,
};

use super::scene::Scene;
use crate::{
    sim::dice::Dice,
    wire::{Agent, text},
};

/// Programs at once.
const PROGRAMS: usize = 64;
/// The longest that one connection is busied with.
const ONE_WITHIN: Duration = Duration::from_secs(2);
/// Requests of one connection whose answers are not read.
const REQUESTS: usize = 2_000;
/// Agents that stream at once.
const STREAMING: usize = 16;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// 64 programs that do what none should, and then whether the node still answers one that does as it should.
pub(super) async fn speak(scene: Scene) -> Result<String> {
    let mut doing = JoinSet::new();
    for nth in 0..PROGRAMS {
        let scene = scene.clone();
        doing.spawn(async move {
            let (mut dice, mut done) = (Dice::new(nth as u64 + 1), 0_u64);
            while !scene.is_over() {
                let oddity = dice.index(ODDITIES);
                // The node closes it or answers, and in time.
                drop(timeout(ONE_WITHIN, odd(&scene, oddity, &mut dice)).await);
                done += 1;
            }
            done
        });
    }
    let done: u64 = doing.join_all().await.into_iter().sum();
    let mut honest = connected(&scene).await?;
    let health = timeout(ONE_WITHIN, ask(&mut honest, "health", json!({}))).await;
    let health = health.context("no answer")??;
    anyhow::ensure!(health["ok"] == true, "it is answered {health}");
    Ok(format!("{done} connections of {PROGRAMS} programs"))
}

const ODDITIES: usize = 8;

async fn odd(scene: &Scene, oddity: usize, dice: &mut Dice) -> Result<()> {
    if oddity < 3 {
        let (mut socket, _) = connect_async(format!("ws://{}/ws", scene.http)).await?;
        return stranger(&mut socket, oddity, dice).await;
    }
    let mut socket = connected(scene).await?;
    match oddity {
        // Codes that are guessed.
        3 => {
            for _ in 0..REQUESTS {
                let params = json!({ "code": code(dice) });
                send(&mut socket, "device.pair.approve", &params).await?;
            }
        }
        // Methods without end, whose answers are not read: of those that read most.
        4 => {
            let methods =
                ["agents.list", "sessions.list", "teams.list", "usage.get", "delegations.list"];
            for nth in 0..REQUESTS {
                let method = methods[nth % methods.len()];
                send(&mut socket, method, &json!({ "limit": 1_000 })).await?;
            }
        }
        // Requests to agents that are not there, and methods that are none.
        5 => {
            for nth in 0..REQUESTS {
                send(
                    &mut socket,
                    "chat.send",
                    &json!({ "agentId": nth.to_string(), "message": "x" }),
                )
                .await?;
                send(&mut socket, &format!("none.{nth}"), &json!({})).await?;
            }
        }
        // As large as there may be, and larger.
        6 => {
            let long = "y".repeat(512 * 1024 - 200);
            send(&mut socket, "chat.inject", &json!({ "sessionKey": "x", "message": long }))
                .await?;
            send(&mut socket, "send", &json!({ "message": long.repeat(2) })).await?;
        }
        // Sessions whose keys nest and lie.
        _ => {
            for nth in 0..REQUESTS {
                let key = format!("agent:%3A%25{nth}:{}", ":".repeat(nth % 200));
                send(&mut socket, "chat.history", &json!({ "sessionKey": key })).await?;
            }
        }
    }
    drain(&mut socket).await
}

/// One that is not connected: it asks for codes, polls, and sends frames that are none.
async fn stranger(socket: &mut Socket, oddity: usize, dice: &mut Dice) -> Result<()> {
    for nth in 0..REQUESTS {
        match oddity {
            0 => {
                let device =
                    json!({ "senderId": format!("d{nth}-{}", dice.index(1_000)), "channel": "ws" });
                send(socket, "device.pair.request", &device).await?;
            }
            1 => {
                send(socket, "browser.pairing.status", &json!({ "sender_id": code(dice) })).await?
            }
            _ => {
                // The first one says which dialect it is.
                let bad = if nth == 0 { r#"{"type":"req"}"# } else { "[[[[[[[[" };
                socket.send(Message::text(bad.repeat(1 + nth % 3))).await?;
            }
        }
    }
    drain(socket).await
}

/// A code, guessed.
fn code(dice: &mut Dice) -> String {
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    (0..8).map(|_| char::from(letters[dice.index(letters.len())])).collect()
}

async fn connected(scene: &Scene) -> Result<Socket> {
    let (mut socket, _) = connect_async(format!("ws://{}/ws", scene.http)).await?;
    let params = json!({ "token": scene.key, "user_id": "attacker", "protocol": 3 });
    ask(&mut socket, "connect", params).await?;
    Ok(socket)
}

async fn send(socket: &mut Socket, method: &str, params: &Value) -> Result<()> {
    let frame = json!({ "type": "req", "id": "1", "method": method, "params": params });
    Ok(socket.send(Message::text(frame.to_string())).await?)
}

async fn ask(socket: &mut Socket, method: &str, params: Value) -> Result<Value> {
    send(socket, method, &params).await?;
    loop {
        let message = socket.next().await.context("it hangs up")??;
        let Message::Text(text) = message else { continue };
        let frame: Value = serde_json::from_str(&text)?;
        if frame["type"] == "res" {
            return Ok(frame);
        }
    }
}

/// Reads until the node hangs up, or nobody waits any longer.
async fn drain(socket: &mut Socket) -> Result<()> {
    while let Some(message) = socket.next().await {
        message?;
    }
    Ok(())
}

/// Agents whose answers never end, in a room of many, as fast as it goes.
pub(super) async fn stream(scene: Scene) -> Result<String> {
    let mut doing = JoinSet::new();
    for nth in 0..STREAMING {
        let scene = scene.clone();
        doing.spawn(async move { streams(&scene, nth).await });
    }
    let (mut taken, mut refused) = (0_u64, 0_u64);
    for one in doing.join_all().await {
        let (ok, no) = one?;
        (taken, refused) = (taken + ok, refused + no);
    }
    Ok(format!("{taken} pieces of {STREAMING} agents, {refused} refused"))
}

async fn streams(scene: &Scene, nth: usize) -> Result<(u64, u64)> {
    let name = format!("streams {nth}");
    let mut agent = Agent::attach(&scene.tcp, scene.key.as_deref(), &name).await?;
    let room = json!({ "name": format!("room of {}", agent.id), "public": true });
    let room = text(&agent.call("create_room", room).await?, "room_id");
    agent.call("join_room", json!({ "room_id": room })).await?;
    let (mut taken, mut refused, mut piece) = (0_u64, 0_u64, 0_u64);
    let content = "z".repeat(4_000);
    while !scene.is_over() {
        piece += 1;
        // A stream of its own now and then: not only one is to be remembered.
        let stream = format!("s{}", piece / 50);
        let payload =
            json!({ "room_id": room, "stream_id": stream, "kind": "chunk", "content": content });
        match agent.call("stream", payload).await {
            Ok(_) => taken += 1,
            Err(error) if error.code().is_some() => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((taken, refused))
}
