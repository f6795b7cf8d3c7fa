//! Clients that speak ClawTank badly: envelopes that nest, and ids and aliases that collide.

use std::{sync::atomic::AtomicU64, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::scene::Scene;
use crate::{
    sim::dice::Dice,
    tank::{AT, Client, envelope, introduction, task, ulid, words},
};

/// Programs at once.
const PROGRAMS: usize = 64;
/// The longest that one connection is busied with.
const ONE_WITHIN: Duration = Duration::from_secs(2);
/// Frames of one connection whose answers are not read.
const FRAMES: usize = 2_000;
/// As deep as JSON may nest in most readers.
const DEEP: usize = 120;
/// Ids that all programs use for everything.
const COLLIDING: usize = 16;
/// A room that all have.
const ROOM: &str = "lobby";
/// As large as a frame may be, and so large that it ends the connection.
const LARGE: [usize; 2] = [65_536, 131_073];

/// 64 programs that do what none should, and then whether the node still hears one that does as it should.
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
    let honest = async {
        let who = ("human", "honest");
        let mut client = Client::member(&scene.http, who, scene.key.as_deref(), ROOM).await?;
        let beat = client.gets("connection.heartbeat", &json!({})).await?;
        ensure!(beat["status"] == "active", "it is told {beat}");
        anyhow::Ok(())
    };
    timeout(ONE_WITHIN * 5, honest).await.context("no answer")??;
    Ok(format!("{done} connections of {PROGRAMS} programs"))
}

const ODDITIES: usize = 11;

async fn odd(scene: &Scene, oddity: usize, dice: &mut Dice) -> Result<()> {
    let mut client = match oddity {
        0..3 => Client::open(&scene.http).await?,
        // Another person each time, so that no rate of one person is all that holds.
        _ => {
            let name = format!("attacker {}", dice.index(1_000));
            Client::member(&scene.http, ("human", &name), scene.key.as_deref(), ROOM).await?
        }
    };
    match oddity {
        0..3 => stranger(&mut client, oddity).await?,
        3 | 4 => nests(&mut client, oddity == 3).await?,
        5 | 6 => collides(&mut client, oddity == 5, dice).await?,
        7 => {
            drop(client);
            client = Client::open(&scene.http).await?;
            takes_over(&mut client, scene, dice).await?;
        }
        8 => asks(&mut client).await?,
        9 => records(&mut client, dice).await?,
        _ => large(&mut client).await?,
    }
    client.counts(&AtomicU64::default()).await
}

/// A value in many others.
fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":["#.repeat(depth / 2), "]}".repeat(depth / 2))
}

/// One that is not connected.
async fn stranger(client: &mut Client, oddity: usize) -> Result<()> {
    for nth in 0..FRAMES {
        let frame = match oddity {
            // Keys that are guessed, in a frame that is right in all else.
            0 => envelope(
                &ulid(nth as u128),
                "connection.request",
                &json!({
                    "client_type": "human", "auth_token": format!("guess {nth}"),
                    "client_info": { "name": "x", "version": "1.0.0", "capabilities": [] },
                }),
            )
            .to_string(),
            1 => json!({
                "type": "connection.capabilities",
                "data": { "supported_extensions": vec!["clawmesh.room@1.0.0"; 1 + nth % 100] },
            })
            .to_string(),
            _ => format!(r#"{{"type":"connection.request","data":{}"#, nested(DEEP * 100)),
        };
        client.send(frame).await?;
    }
    Ok(())
}

/// Frames that nest: in fields that are kept, in those that are left out, and deeper than may be.
async fn nests(client: &mut Client, is_sound: bool) -> Result<()> {
    let depth = if is_sound { DEEP } else { DEEP * 100 };
    for nth in 0..FRAMES {
        let id = ulid(nth as u128);
        let nested = nested(depth);
        let frame = if nth % 2 == 0 {
            format!(
                r#"{{"id":"{id}","type":"chat.human_message","timestamp":"{AT}","data":{{"message_id":"{id}","room_id":"{ROOM}","content":{{"text":"x","more":{nested}}},"context":{nested}}},"metadata":{nested}}}"#
            )
        } else {
            format!(
                r#"{{"id":"{id}","type":"connection.heartbeat","timestamp":"{AT}","data":{nested},"metadata":{{"correlation_id":{nested}}}}}"#
            )
        };
        client.send(frame).await?;
    }
    Ok(())
}

/// Things that are called as others are: messages and tasks of all programs have the same few ids, and so have the frames, or each has its own.
async fn collides(client: &mut Client, by_frame: bool, dice: &mut Dice) -> Result<()> {
    for nth in 0..FRAMES {
        let name = ulid(dice.index(COLLIDING) as u128);
        let frame = if by_frame { name.clone() } else { ulid(dice.draw().into()) };
        let (kind, data) = match nth % 5 {
            0 => {
                let mut data = words(&name, ROOM, "which one?");
                data["thread_info"] = json!({ "reply_to": name });
                ("chat.human_message", data)
            }
            1 => ("task.created", task(&name, ROOM)),
            2 => ("task.claim", json!({ "task_id": name, "agent_id": "nobody" })),
            3 => {
                ("task.status", json!({ "task_id": name, "agent_id": "nobody", "status": "open" }))
            }
            // The id of something else: of the room.
            _ => ("chat.human_message", words(&ulid(0), ROOM, "the lobby?")),
        };
        client.send(envelope(&frame, kind, &data).to_string()).await?;
    }
    Ok(())
}

/// An agent that others are, too: each takes it from the one before, claims and goes on.
async fn takes_over(client: &mut Client, scene: &Scene, dice: &mut Dice) -> Result<()> {
    let request = json!({
        "client_type": "agent", "auth_token": scene.key, "room_id": ROOM,
        "client_info": { "name": "x", "version": "1.0.0", "capabilities": [] },
    });
    client.gets("connection.request", &request).await?;
    let name = format!("wanted{}", dice.index(2));
    for _ in 0..FRAMES {
        client.say("agent.register", &introduction(&name)).await?;
        let claim = json!({ "task_id": ulid(dice.index(COLLIDING) as u128), "agent_id": name });
        client.say("task.claim", &claim).await?;
    }
    Ok(())
}

/// Lists and pages without end, whose answers are not read.
async fn asks(client: &mut Client) -> Result<()> {
    let asked = |namespace: &str, payload: Value| json!({ "namespace": namespace, "extension_version": "1.0.0", "payload": payload });
    for nth in 0..FRAMES {
        let (kind, data) = match nth % 3 {
            0 => {
                let page = json!({ "room_id": ROOM, "limit": 200 });
                ("extension.room_history", asked("clawmesh.room", page))
            }
            1 => ("extension.room_list", asked("clawmesh.room", json!({}))),
            _ => {
                let list = json!({ "room_id": ROOM });
                ("extension.task_list", asked("clawmesh.task", list))
            }
        };
        client.say(kind, &data).await?;
    }
    Ok(())
}

/// Records of repositories with as many files as there may be, of the same few commits.
async fn records(client: &mut Client, dice: &mut Dice) -> Result<()> {
    let files: Vec<String> = (0..1_500).map(|nth| format!("src/file{nth}.rs")).collect();
    for _ in 0..FRAMES {
        let branch = format!("branch{}", dice.index(COLLIDING));
        let data = json!({
            "room_id": ROOM,
            "repository": { "name": "x", "url": "https://example.org/x", "provider": "github" },
            "commit_info": {
                "sha": format!("{:040x}", dice.index(COLLIDING)), "message": "m", "branch": branch,
                "author": { "name": "x", "email": "x@example.org" }, "timestamp": AT,
                "parent_shas": [],
            },
            "changes": {
                "files_added": files, "files_modified": [], "files_deleted": [],
                "stats": { "additions": 1, "deletions": 1, "total_changes": 2 },
            },
            "context": { "agent_id": "attacker", "commit_type": "feature" },
        });
        client.say("git.commit", &data).await?;
    }
    Ok(())
}

/// As large as a frame may be, and larger.
async fn large(client: &mut Client) -> Result<()> {
    for nth in 0..FRAMES {
        let bytes = if nth + 1 < FRAMES { LARGE[0] } else { LARGE[1] };
        let id = ulid(nth as u128);
        let around = words(&id, ROOM, "").to_string().len() + 200;
        let text = "y".repeat(bytes - around);
        client.say("chat.human_message", &words(&id, ROOM, &text)).await?;
    }
    Ok(())
}
