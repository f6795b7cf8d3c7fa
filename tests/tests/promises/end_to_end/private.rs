//! A private room of a minted key: on the nodes where the key was presented, and on no other.
//!
//! Connections between nodes are encrypted anyway, so bytes on the wire would prove nothing: the simulation
//! (`testnet/src/sim/private.rs`) checks that a node without the key is sent nothing readable. These tests
//! check the node's disk and its answers.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use testnet::{
    process::{Auth, Mesh},
    wire::{Agent, get, post, text},
};

use super::{agent, all_listed, expect, join, new_room, on_with, say, until};

/// In everything that members of the private room say and write.
const SECRET: &str = "xq7-private-marker-vz3";
/// In a public room, where a search finds it.
const OPEN: &str = "xq7-public-marker-vz3";
/// More than travels inside its entry.
const LARGE_BYTES: usize = 20_000;

#[test]
fn a_private_room_is_on_no_node_to_which_its_key_was_not_presented() {
    on_with(&["--signup", "open"], 3, Auth::Key, async |mesh| {
        let minted = post(mesh.nodes[0].http(), "/api/keys", &json!({})).await?;
        let key = text(&minted.1, "api_key");
        let mut members = vec![owner(mesh, 0, &key).await?, owner(mesh, 1, &key).await?];
        let mut outsider = agent(mesh, 2, "outsider").await?;
        let rooms = live_in_private(&mut members).await?;
        speak_openly(mesh, &mut outsider).await?;

        let ids: Vec<&str> = rooms.iter().map(String::as_str).collect();
        learns_nothing(mesh, &mut outsider, &ids).await?;
        drop(outsider);
        let stopped = mesh.nodes[2].stop().await?;
        ensure!(stopped.status.code() == Some(0), "{stopped:?}");
        let dir = mesh.dir().join("node3");
        ensure!(has_bytes(&dir, OPEN.as_bytes())?, "a search finds not even what is public");
        for secret in [SECRET, &key].into_iter().chain(ids.iter().copied()) {
            ensure!(!has_bytes(&dir, secret.as_bytes())?, "{secret} is on the outsider's disk");
        }
        mesh.nodes[2].restart().await?;
        mesh.know_each_other().await?;
        let mut outsider = agent(mesh, 2, "outsider").await?;
        learns_nothing(mesh, &mut outsider, &ids).await?;

        // The key is presented there, and all of it is there.
        let mut late = owner(mesh, 2, &key).await?;
        for room in &rooms {
            has_all(&mut late, &mut members[0], room).await?;
        }
        join(&mut late, &rooms[0]).await?;
        members.push(late);
        all_listed(&rooms[0], &mut members).await?;
        let said = say(&mut members[2], &rooms[0], "here as well").await?;
        let seen = expect(&mut members[0], "message_received", json!({ "seq": said.seq })).await?;
        ensure!(text(&seen.body, "content") == "here as well", "{seen:?}");
        // And is still nobody else's.
        for room in &rooms {
            refuses(&mut outsider, room, "access_denied").await?;
        }
        ensure!(!shows(&mut outsider, mesh, 2, SECRET).await?, "the room is shown to another key");
        Ok(())
    });
}

/// An agent of the minted key, which may not be known there at once.
async fn owner(mesh: &Mesh, node: usize, key: &str) -> Result<Agent> {
    let name = format!("{SECRET} agent {node}");
    let mut owner = None;
    until("the minted key is known", async || {
        match Agent::attach(mesh.nodes[node].tcp(), Some(key), &name).await {
            Ok(found) => owner = Some(found),
            Err(error) if error.code() == Some("unauthorized") => {}
            Err(error) => return Err(error.into()),
        }
        Ok(owner.is_some())
    })
    .await?;
    owner.context("it is attached")
}

/// Everything that can be said, written and decided in a private room, in one that lies in it, and in an
/// ephemeral one. Their ids.
async fn live_in_private(members: &mut [Agent]) -> Result<Vec<String>> {
    let room =
        json!({ "name": format!("{SECRET} room"), "description": format!("{SECRET} what for") });
    let room = text(&members[0].call("create_room", room).await?, "room_id");
    let inner = json!({ "name": format!("{SECRET} inner"), "parent_id": room });
    let inner = text(&members[0].call("create_room", inner).await?, "room_id");
    let brief = json!({ "name": format!("{SECRET} brief"), "ephemeral": true });
    let brief = text(&members[0].call("create_room", brief).await?, "room_id");
    let rooms = vec![room, inner, brief];
    for room in &rooms {
        for member in members.iter_mut() {
            join(member, room).await?;
        }
        all_listed(room, members).await?;
        for (i, member) in members.iter_mut().enumerate() {
            say(member, room, &format!("{SECRET} said by {i}")).await?;
            let thought = json!({ "room_id": room, "content": format!("{SECRET} thought by {i}") });
            member.call("thinking", thought).await?;
        }
        let large = format!("{SECRET} large {}", "x".repeat(LARGE_BYTES));
        let meta = json!({ "room_id": room, "content": large, "metadata": { "of": SECRET } });
        members[1].call("send_message", meta).await?;
        act_in(room, members).await?;
    }
    Ok(rooms)
}

/// A vote with all its ballots, a task, a decision.
async fn act_in(room: &str, members: &mut [Agent]) -> Result<()> {
    let of_room = json!({ "room_id": room });
    let vote = json!({
        "room_id": room, "title": format!("{SECRET} title"), "description": format!("{SECRET} why"),
        "options": [format!("{SECRET} yes"), format!("{SECRET} no")],
    });
    members[0].call("create_vote", vote).await?;
    let opened = expect(&mut members[1], "vote_created", of_room.clone()).await?;
    for member in members.iter_mut() {
        let ballot = json!({ "vote_id": opened.body["vote_id"], "option_index": 1 });
        member.call("cast_vote", ballot).await?;
    }
    let task = json!({
        "room_id": room, "title": format!("{SECRET} task"), "description": format!("{SECRET} details"),
    });
    members[0].call("assign_task", task).await?;
    let assigned = expect(&mut members[1], "task_assigned", of_room.clone()).await?;
    let note = json!({ "task_id": assigned.body["task_id"], "note": format!("{SECRET} note") });
    members[1].call("update_task", note).await?;
    members[0].call("elect_leader", of_room.clone()).await?;
    for member in members.iter_mut() {
        expect(member, "vote_result", of_room.clone()).await?;
        expect(member, "task_updated", of_room.clone()).await?;
        let elected = expect(member, "leader_elected", of_room.clone()).await?;
        if elected.body["leader_id"] == json!(member.id) {
            let decision = json!({ "room_id": room, "content": format!("{SECRET} decided") });
            member.call("decision", decision).await?;
        }
    }
    for member in members {
        expect(member, "decision_made", of_room.clone()).await?;
    }
    Ok(())
}

/// A public room in which agents of the two others speak, and the outsider hears it: their earlier
/// entries have passed by then.
async fn speak_openly(mesh: &Mesh, outsider: &mut Agent) -> Result<()> {
    let room = new_room(outsider, "open to all").await?;
    join(outsider, &room).await?;
    for node in [0, 1] {
        let mut speaker = agent(mesh, node, "speaker").await?;
        join(&mut speaker, &room).await?;
        let said = say(&mut speaker, &room, &format!("{OPEN} by {node}")).await?;
        expect(outsider, "message_received", json!({ "seq": said.seq })).await?;
    }
    Ok(())
}

/// The outsider's node does not know the rooms, in any of its answers.
async fn learns_nothing(mesh: &Mesh, outsider: &mut Agent, rooms: &[&str]) -> Result<()> {
    for room in rooms {
        refuses(outsider, room, "room_not_found").await?;
        ensure!(!shows(outsider, mesh, 2, room).await?, "{room} is shown");
        for path in ["history", "messages/1"] {
            let answer = get(mesh.nodes[2].http(), &format!("/api/rooms/{room}/{path}")).await?;
            ensure!(answer.0 == 404, "{path} of {room}: {answer:?}");
        }
    }
    ensure!(!shows(outsider, mesh, 2, SECRET).await?, "what is private is shown");
    // Nor do the nodes that have them tell another key.
    for node in [0, 1] {
        let mut other = agent(mesh, node, "other").await?;
        for room in rooms {
            refuses(&mut other, room, "access_denied").await?;
        }
        ensure!(!shows(&mut other, mesh, node, SECRET).await?, "node {node} shows it");
    }
    Ok(())
}

async fn refuses(agent: &mut Agent, room: &str, code: &str) -> Result<()> {
    let kinds = [
        "join_room",
        "room_info",
        "get_history",
        "room_tip",
        "list_agents",
        "list_votes",
        "list_tasks",
        "elect_leader",
        "decline_election",
        "set_typing",
    ];
    for kind in kinds {
        match agent.call(kind, json!({ "room_id": room })).await {
            Err(error) if error.code() == Some(code) => {}
            other => bail!("{kind} of {room} at {}: {other:?}, not {code}", agent.name),
        }
    }
    Ok(())
}

/// Whether any list, any event so far, or HTTP has this text.
async fn shows(agent: &mut Agent, mesh: &Mesh, node: usize, secret: &str) -> Result<bool> {
    let mut all: Vec<Value> = Vec::new();
    for kind in ["list_rooms", "list_agents", "list_subscriptions"] {
        all.push(agent.call(kind, json!({})).await?);
    }
    for path in ["/api/rooms", "/api/status"] {
        all.push(get(mesh.nodes[node].http(), path).await?.1);
    }
    // Kept for the tests that wait for them.
    all.extend(agent.events().map(|event| event.body.clone()));
    Ok(all.iter().any(|message| message.to_string().contains(secret)))
}

/// Waits until two agents see the same of a room.
async fn has_all(late: &mut Agent, owner: &mut Agent, room: &str) -> Result<()> {
    let mut differs = String::new();
    let same = until("a node that was given the key has everything", async || {
        differs.clear();
        for kind in ["room_info", "get_history", "list_votes", "list_tasks"] {
            let mut seen = [Value::Null, Value::Null];
            for (agent, seen) in [&mut *late, &mut *owner].into_iter().zip(&mut seen) {
                let asked = json!({ "room_id": room, "since_seq": 0, "limit": 100 });
                *seen = match agent.call(kind, asked).await {
                    Ok(answer) => without_mesh(answer),
                    Err(error) if error.code() == Some("room_not_found") => Value::Null,
                    Err(error) => return Err(error.into()),
                };
            }
            if seen[0] != seen[1] || !seen[0].to_string().contains(SECRET) {
                differs = format!("{kind}: {} and {}", seen[0], seen[1]);
            }
        }
        Ok(differs.is_empty())
    });
    same.await.with_context(|| differs.clone())
}

/// Nodes may add notes about the mesh.
fn without_mesh(value: Value) -> Value {
    match value {
        Value::Object(all) => {
            let kept = all.into_iter().filter(|(name, _)| name != "mesh");
            Value::Object(kept.map(|(name, value)| (name, without_mesh(value))).collect())
        }
        Value::Array(all) => all.into_iter().map(without_mesh).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// Whether any file below has these bytes.
fn has_bytes(dir: &Path, bytes: &[u8]) -> Result<bool> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            has_bytes(&path, bytes)?
        } else {
            fs::read(&path)?.windows(bytes.len()).any(|window| window == bytes)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
