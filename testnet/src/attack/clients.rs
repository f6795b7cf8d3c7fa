//! Enemies at the agents' doors of the first node.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{envelopes, kind::Enemy, onlookers, people, scene::Scene};
use crate::{
    sim::dice::Dice,
    wire::{Agent, text},
};

/// The longest that one connection is busied with.
const ONE_WITHIN: Duration = Duration::from_secs(2);
/// At once, of those who do something.
const AT_ONCE: usize = 16;
/// Bytes of a message to agents that do not read.
const CONTENT_BYTES: usize = 2_048;
/// How often they are talked to.
const TALK_EVERY: Duration = Duration::from_millis(2);

/// Until the scene is over.
pub(super) async fn perform(enemy: Enemy, scene: Scene) -> Result<String> {
    match enemy {
        Enemy::Idle => idle(scene).await,
        Enemy::Flood => flood(scene).await,
        Enemy::Slow => slow(scene).await,
        Enemy::Large => large(scene).await,
        Enemy::Websocket => websocket(scene).await,
        Enemy::Goclaw => people::speak(scene).await,
        Enemy::Stream => people::stream(scene).await,
        Enemy::Clawtank => envelopes::speak(scene).await,
        Enemy::Spectators => onlookers::look_on(scene).await,
    }
}

/// Connections that never say a word. Those that are closed are opened again.
async fn idle(scene: Scene) -> Result<String> {
    let mut held = Vec::new();
    let mut opened = 0_u64;
    while !scene.is_over() {
        if held.len() < scene.many {
            match timeout(ONE_WITHIN, TcpStream::connect(&scene.tcp)).await {
                Ok(Ok(socket)) => {
                    opened += 1;
                    held.push(socket);
                }
                Ok(Err(_)) | Err(_) => sleep(Duration::from_millis(5)).await,
            }
        } else {
            held.retain(|socket: &TcpStream| !matches!(socket.try_read(&mut [0; 64]), Ok(0)));
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(format!("{opened} connections, {} at once", held.len()))
}

/// Connections that are opened, asked something, and dropped, as fast as it goes.
async fn flood(scene: Scene) -> Result<String> {
    let mut doing = JoinSet::new();
    for _ in 0..AT_ONCE {
        let scene = scene.clone();
        doing.spawn(async move {
            let mut opened = 0_u64;
            while !scene.is_over() {
                if let Ok(Ok(mut socket)) =
                    timeout(ONE_WITHIN, TcpStream::connect(&scene.tcp)).await
                {
                    opened += 1;
                    // The node may be quicker to close it.
                    drop(socket.write_all(b"{\"id\":\"1\",\"type\":\"ping\"}\n").await);
                }
            }
            opened
        });
    }
    let opened: u64 = doing.join_all().await.into_iter().sum();
    Ok(format!("{opened} connections"))
}

/// Agents in one room that read nothing, and one that talks to them.
async fn slow(scene: Scene) -> Result<String> {
    let key = scene.key.as_deref();
    let mut speaker = Agent::attach(&scene.tcp, key, "talks to the deaf").await?;
    let name = format!("room of {}", speaker.id);
    let room = speaker.call("create_room", json!({ "name": name, "public": true })).await?;
    let room = text(&room, "room_id");
    speaker.call("join_room", json!({ "room_id": room })).await?;
    let mut coming = JoinSet::new();
    for some in 0..AT_ONCE {
        let (scene, room) = (scene.clone(), room.clone());
        coming.spawn(async move { deaf(&scene, &room, some).await });
    }
    let deaf: Vec<Agent> = coming.join_all().await.into_iter().flatten().collect();
    let (mut said, mut refused) = (0_u64, 0_u64);
    let content = "x".repeat(CONTENT_BYTES);
    while !scene.is_over() {
        let payload = json!({ "room_id": room, "content": content });
        match speaker.call("send_message", payload).await {
            Ok(_) => said += 1,
            Err(error) if error.code().is_some() => refused += 1,
            Err(error) => return Err(error.into()),
        }
        sleep(TALK_EVERY).await;
    }
    Ok(format!("{} who do not read, {said} messages to each, {refused} refused", deaf.len()))
}

/// One of [`AT_ONCE`] shares of these agents.
async fn deaf(scene: &Scene, room: &str, share: usize) -> Vec<Agent> {
    let mut deaf = Vec::new();
    for _ in (share..scene.many).step_by(AT_ONCE) {
        let Ok(mut agent) = Agent::attach(&scene.tcp, scene.key.as_deref(), "deaf").await else {
            break;
        };
        // An agent that may not join is as deaf.
        if scene.is_over() || agent.call("join_room", json!({ "room_id": room })).await.is_err() {
            break;
        }
        deaf.push(agent);
    }
    deaf
}

/// Lines as long as there may be, and longer, one after the other.
async fn large(scene: Scene) -> Result<String> {
    let mut doing = JoinSet::new();
    for index in 0..AT_ONCE {
        let scene = scene.clone();
        doing.spawn(async move {
            let mut bytes = 0_u64;
            while !scene.is_over() {
                // A connection that is closed over it is opened again.
                let one = timeout(ONE_WITHIN, large_lines(&scene, index % 2 == 0, &mut bytes));
                drop(one.await);
            }
            bytes
        });
    }
    let bytes: u64 = doing.join_all().await.into_iter().sum();
    Ok(format!("{} MiB of lines", bytes >> 20))
}

async fn large_lines(scene: &Scene, registers: bool, bytes: &mut u64) -> Result<()> {
    let mut socket = TcpStream::connect(&scene.tcp).await?;
    if registers {
        let key = scene.key.as_deref().unwrap_or_default();
        let register = json!({ "type": "register", "payload": { "key": key, "name": "large" } });
        socket.write_all(format!("{register}\n").as_bytes()).await?;
        let mut welcome = [0; 4096];
        anyhow::ensure!(socket.read(&mut welcome).await? > 0, "not let in");
    }
    let content = "y".repeat(1024 * 1024 - 300);
    let line = json!({
        "id": "1", "type": "send_message", "payload": { "room_id": "lobby", "content": content },
    });
    let line = format!("{line}\n");
    loop {
        socket.write_all(line.as_bytes()).await?;
        *bytes += line.len() as u64;
    }
}

/// HTTP and WebSocket as nobody speaks it, and then whether the node still does.
async fn websocket(scene: Scene) -> Result<String> {
    let mut dice = Dice::new(11);
    let mut done = 0_u64;
    while !scene.is_over() {
        let oddity = dice.index(ODDITIES);
        // The node closes it or answers, and in time.
        drop(timeout(ONE_WITHIN, odd(&scene, oddity)).await);
        done += 1;
    }
    let mut socket = TcpStream::connect(&scene.http).await?;
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", scene.http);
    socket.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    timeout(ONE_WITHIN, socket.read_to_string(&mut answer)).await.context("no answer")??;
    anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "HTTP is broken: {answer}");
    Ok(format!("{done} oddities"))
}

const ODDITIES: usize = 10;

async fn odd(scene: &Scene, oddity: usize) -> Result<()> {
    let mut socket = TcpStream::connect(&scene.http).await?;
    let plain: Option<Vec<u8>> = match oddity {
        0 => Some([vec![0x16, 3, 1, 2, 0], vec![7; 512]].concat()),
        1 => Some([b"GET /".to_vec(), vec![b'a'; 200_000], b" HTTP/1.1\r\n\r\n".to_vec()].concat()),
        2 => Some(b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /status HTTP/1.1\r\n\r\n".to_vec()),
        _ => None,
    };
    if let Some(plain) = plain {
        socket.write_all(&plain).await?;
        return drain(&mut socket).await;
    }
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        scene.http
    );
    socket.write_all(upgrade.as_bytes()).await?;
    let mut head = [0; 1024];
    anyhow::ensure!(socket.read(&mut head).await? > 0, "no answer");
    match oddity {
        // Unmasked text, a reserved bit, text that is not UTF-8, a length of 2^63.
        3 => socket.write_all(&[0x81, 2, b'{', b'}']).await?,
        4 => socket.write_all(&frame(0xc1, b"{}")).await?,
        5 => socket.write_all(&frame(0x81, &[0xff, 0xfe])).await?,
        6 => socket.write_all(&[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]).await?,
        // Pings without end.
        7 => {
            let ping = frame(0x89, &[1; 125]).repeat(64);
            for _ in 0..500 {
                socket.write_all(&ping).await?;
            }
        }
        // Fragments of one message, pings between, and no end.
        8 => {
            socket.write_all(&frame(0x01, b"{\"type\":\"")).await?;
            for _ in 0..20_000 {
                socket.write_all(&frame(0x00, &[b'a'; 64])).await?;
                socket.write_all(&frame(0x89, b"")).await?;
            }
        }
        // The end in the middle of a frame.
        _ => socket.write_all(&frame(0x81, &[b'b'; 60])[..20]).await?,
    }
    drain(&mut socket).await
}

async fn drain(socket: &mut TcpStream) -> Result<()> {
    socket.shutdown().await?;
    let mut bytes = [0; 4096];
    while socket.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// A masked frame of up to 125 bytes; the mask is zero.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len().min(125)).unwrap_or(125);
    [&[first, 0x80 | length, 0, 0, 0, 0], &payload[..usize::from(length)]].concat()
}
