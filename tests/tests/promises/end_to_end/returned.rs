//! An agent whose node was killed comes back at another one, under the id that is its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testnet::{
    process::{Auth, Mesh},
    wire::{Agent, text},
};

use super::{Said, agent, all_listed, expect, join, new_room, on, say};

/// The id that the agent claims.
const ID: &str = "the same as ever";
/// How long it may stay away (spec §2).
const BACK_WITHIN: Duration = Duration::from_secs(120);
/// Said while it is away.
const MISSED: usize = 12;

/// When the agent comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    /// Before anybody has noticed that its node is gone.
    AtOnce,
    /// When all have seen it leave.
    Later,
}

#[test]
fn an_agent_of_a_killed_node_comes_back_at_another_with_its_rooms_and_what_it_missed() {
    on(3, Auth::Key, async |mesh| comes_back(mesh, Back::Later).await);
}

#[test]
fn an_agent_of_a_killed_node_may_come_back_before_it_is_missed() {
    on(3, Auth::Key, async |mesh| comes_back(mesh, Back::AtOnce).await);
}

async fn returning(mesh: &Mesh, node: usize) -> Result<(Agent, Value)> {
    let key = mesh.key().unwrap_or_default();
    let mut agent = Agent::connect(mesh.nodes[node].tcp(), "returning").await?;
    let wish = json!({ "key": key, "name": "returning", "agent_id": ID, "reconnect": true });
    let welcome = agent.call("register", wish).await?;
    agent.id = text(&welcome, "agent_id");
    Ok((agent, welcome))
}

async fn comes_back(mesh: &mut Mesh, back: Back) -> Result<()> {
    let (traveller, welcome) = returning(mesh, 0).await?;
    ensure!(welcome["reconnected"].is_null(), "it was nowhere before: {welcome}");
    let mut all = vec![traveller, agent(mesh, 1, "one").await?, agent(mesh, 2, "two").await?];
    // Of two rooms the node that dies numbers one, another node the other.
    let rooms = [
        new_room(&mut all[0], "of the dead").await?,
        new_room(&mut all[2], "of the living").await?,
    ];
    let mut seen = Vec::new();
    for room in &rooms {
        for agent in &mut all {
            join(agent, room).await?;
        }
        all_listed(room, &mut all).await?;
        let said = say(&mut all[1], room, "before").await?;
        expect(&mut all[0], "message_received", json!({ "room_id": room, "seq": said.seq }))
            .await?;
        seen.push(said);
    }
    let killed = Instant::now();
    mesh.nodes[0].kill9().await?;
    all.remove(0);
    if back == Back::Later {
        for room in &rooms {
            for agent in &mut all {
                expect(agent, "agent_left", json!({ "room_id": room, "agent_id": ID })).await?;
            }
        }
    }
    let mut missed = Vec::new();
    for (i, room) in rooms.iter().enumerate() {
        for n in 0..MISSED {
            // At both nodes, so that it has to have come to the one where it is missed.
            missed.push((i, say(&mut all[n % 2], room, &format!("missed {n}")).await?));
        }
    }
    let (mut traveller, welcome) = returning(mesh, 1).await?;
    ensure!(killed.elapsed() < BACK_WITHIN, "this machine is too slow for this test");
    has_its_rooms(&welcome, &rooms)?;
    got_what_it_missed(&mut traveller, &rooms, (&seen, &missed)).await?;
    is_itself(mesh, &rooms, (traveller, all)).await
}

fn has_its_rooms(welcome: &Value, rooms: &[String]) -> Result<()> {
    ensure!(welcome["agent_id"] == ID && welcome["reconnected"] == true, "{welcome}");
    let mut given: Vec<&str> =
        welcome["rooms"].as_array().context("rooms")?.iter().filter_map(Value::as_str).collect();
    let mut expected: Vec<&str> = rooms.iter().map(String::as_str).collect();
    given.sort_unstable();
    expected.sort_unstable();
    ensure!(given == expected, "{given:?} are not its rooms {expected:?}");
    Ok(())
}

/// All messages of its absence, in order, once; and of earlier messages at most those that it saw a moment
/// before its node died, which nobody else may have heard of.
async fn got_what_it_missed(
    traveller: &mut Agent,
    rooms: &[String],
    (seen, missed): (&[Said], &[(usize, Said)]),
) -> Result<()> {
    for (i, room) in rooms.iter().enumerate() {
        let missed: Vec<&Said> =
            missed.iter().filter(|(at, _)| *at == i).map(|(_, message)| message).collect();
        let last = missed[missed.len() - 1];
        let mut got = Vec::new();
        while got.last() != Some(last) {
            let next = expect(traveller, "message_received", json!({ "room_id": room })).await?;
            got.push(Said::of(&next.body));
        }
        got.retain(|message| !seen.contains(message));
        ensure!(got.iter().eq(missed.iter().copied()), "{got:?} is not {missed:?}");
    }
    Ok(())
}

/// It speaks and is spoken to, is there once on all nodes, also when the one that died is back.
async fn is_itself(
    mesh: &mut Mesh,
    rooms: &[String],
    (traveller, others): (Agent, Vec<Agent>),
) -> Result<()> {
    mesh.nodes[0].restart().await?;
    mesh.know_each_other().await?;
    let mut all = vec![traveller];
    all.extend(others);
    all.push(agent(mesh, 0, "at the one that died").await?);
    for room in rooms {
        join(&mut all[3], room).await?;
        all_listed(room, &mut all).await?;
        for speaker in [0, 3] {
            let said = say(&mut all[speaker], room, "hello again").await?;
            let as_seen = json!({ "room_id": room, "seq": said.seq });
            for (_, hearer) in all.iter_mut().enumerate().filter(|(at, _)| *at != speaker) {
                expect(hearer, "message_received", as_seen.clone()).await?;
            }
        }
    }
    Ok(())
}
