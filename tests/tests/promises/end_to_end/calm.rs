//! Nobody fails: one order, one number, everything that agents do is seen at the other nodes.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use testnet::{
    process::{Auth, Mesh},
    wire::{Agent, Event, text},
};
use tokio::task::JoinSet;

use super::{
    SOON, Said, agent, all_listed, expect, histories, is_dense, join, listed,
    load::{Load, beside},
    names_resolve, new_room, on, say,
};

/// With their bytes 17 MB: more than a socket and a node's queue for one client hold.
const SLOW_READER_MESSAGES: usize = 2_400;
/// Of each of them.
const SLOW_READER_BYTES: usize = 7 * 1024;
/// Messages of one writer on the way at once.
const SLOW_READER_BATCH: usize = 20;

/// How often a node may take too long to stop.
const STOP_TRIES: usize = 3;

#[test]
fn writers_at_all_nodes_are_in_one_dense_order_for_everybody() {
    on(3, Auth::Key, async |mesh| {
        let room = new_room(&mut agent(mesh, 1, "founder").await?, "all at once").await?;
        let load = Load::start(mesh, &room, &[0, 1, 2], 3).await?;
        load.more(&[0, 1, 2], 120).await?;
        let writers = load.stop(&[]).await?;
        let acknowledged: Vec<Said> =
            writers.iter().flat_map(|writer| writer.acknowledged.clone()).collect();
        let same = histories(mesh, &room, &acknowledged);
        let (mut writers, histories) = beside(writers, same).await?;
        for history in &histories {
            is_dense(history)?;
            ensure!(*history == histories[0], "nodes disagree on the order");
        }
        ensure!(histories[0].len() == acknowledged.len(), "a message that nobody sent");
        for said in &acknowledged {
            ensure!(histories[0].contains(said), "{said:?} was answered under another number");
        }
        for writer in &mut writers {
            for seen in writer.saw_all(&room, &histories[0]).await? {
                ensure!(histories[0].contains(&seen), "{seen:?} was pushed under another number");
            }
        }
        names_resolve(mesh, &room, &histories[0]).await
    });
}

#[test]
fn what_an_agent_does_is_seen_at_the_other_nodes() {
    on(3, Auth::Key, async |mesh| {
        let mut agents = Vec::new();
        for node in 0..3 {
            agents.push(agent(mesh, node, &format!("agent {node}")).await?);
        }
        let room = new_room(&mut agents[0], "company").await?;
        for agent in &mut agents[1..] {
            expect(agent, "room_created", json!({ "room_id": room, "name": "company" })).await?;
        }
        for (i, agent) in agents.iter_mut().enumerate() {
            join(agent, &room).await?;
            listed(agent, &room, i + 1).await?;
        }
        let ids: Vec<String> = agents.iter().map(|agent| agent.id.clone()).collect();
        all_listed(&room, &mut agents).await?;
        for agent in &mut agents {
            let info = agent.call("room_info", json!({ "room_id": room })).await?;
            ensure!(info["turn_order"] == json!(ids), "{}: {info}", agent.name);
            ensure!(info["current_turn_holder"] == json!(ids[0]), "{}: {info}", agent.name);
        }
        expect(&mut agents[0], "agent_joined", json!({ "room_id": room })).await?;
        do_things(&room, &ids, &mut agents).await?;
        leave(&room, &ids, agents).await
    });
}

/// Presence, typing, a message, a mention, the turn.
async fn do_things(room: &str, ids: &[String], agents: &mut [Agent]) -> Result<()> {
    let presence = json!({ "status": "working", "status_detail": "a proof", "progress": 40 });
    agents[2].call("set_presence", presence.clone()).await?;
    agents[2].call("set_typing", json!({ "room_id": room })).await?;
    for agent in &mut agents[..2] {
        let seen = expect(agent, "presence_update", json!({ "agent_id": ids[2] })).await?;
        ensure!(Event { kind: String::new(), ..seen.clone() }.is("", &presence), "{seen:?}");
        let typing = json!({ "room_id": room, "agent_id": ids[2], "typing": true });
        expect(agent, "typing_indicator", typing).await?;
    }
    let message = json!({ "room_id": room, "content": "look", "mentions": [ids[1]] });
    let sent = agents[0].call("send_message", message).await?;
    for agent in &mut agents[1..] {
        let got = expect(agent, "message_received", json!({ "room_id": room })).await?;
        ensure!(got.body == sent, "{got:?} is not {sent}");
    }
    let mention = expect(&mut agents[1], "mention", json!({ "room_id": room })).await?;
    ensure!(mention.body["message"]["message_id"] == sent["message_id"], "{mention:?}");
    for agent in agents {
        let turn = json!({
            "room_id": room, "current_turn_holder": ids[1], "turn_order": ids,
            "reason": "message_sent",
        });
        expect(agent, "turn_changed", turn).await?;
    }
    Ok(())
}

/// One leaves, one is cut off.
async fn leave(room: &str, ids: &[String], mut agents: Vec<Agent>) -> Result<()> {
    agents[1].call("leave_room", json!({ "room_id": room })).await?;
    for i in [0, 2] {
        let left = json!({ "room_id": room, "agent_id": ids[1] });
        expect(&mut agents[i], "agent_left", left).await?;
    }
    agents.truncate(2);
    let left = json!({ "room_id": room, "agent_id": ids[2] });
    expect(&mut agents[0], "agent_left", left).await?;
    let info = agents[0].call("room_info", json!({ "room_id": room })).await?;
    ensure!(info["turn_order"] == json!([ids[0]]), "{info}");
    Ok(())
}

#[test]
fn a_planned_restart_leaves_the_numbers_dense() {
    on(3, Auth::Key, async |mesh| {
        let room = new_room(&mut agent(mesh, 0, "founder").await?, "planned").await?;
        let load = Load::start(mesh, &room, &[1, 2], 2).await?;
        load.more(&[1, 2], 40).await?;
        stop_soon(mesh, 0).await?;
        load.more(&[1, 2], 40).await?;
        mesh.nodes[0].restart().await?;
        mesh.know_each_other().await?;
        let mut back = agent(mesh, 0, "back").await?;
        join(&mut back, &room).await?;
        let again = say(&mut back, &room, "back again").await?;
        load.more(&[1, 2], 40).await?;
        let writers = load.stop(&[]).await?;
        let mut told: Vec<Said> =
            writers.iter().flat_map(|writer| writer.acknowledged.clone()).collect();
        told.push(again);
        let (mut writers, histories) = beside(writers, histories(mesh, &room, &told)).await?;
        for history in &histories {
            is_dense(history).context("the room left its home era")?;
        }
        for writer in &mut writers {
            told.extend(writer.saw_all(&room, &histories[0]).await?);
        }
        names_resolve(mesh, &room, &told).await
    });
}

/// Within 3 s, as is promised. A machine that stood still meanwhile is not the node's fault: it is
/// started and stopped again.
async fn stop_soon(mesh: &mut Mesh, node: usize) -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..STOP_TRIES {
        let stopped = mesh.nodes[node].stop().await?;
        ensure!(stopped.status.code() == Some(0), "{stopped:?}");
        if stopped.took < Duration::from_secs(3) {
            return Ok(());
        }
        took.push(stopped.took);
        mesh.nodes[node].restart().await?;
        mesh.know_each_other().await?;
    }
    bail!("it takes {took:?} to stop")
}

#[test]
fn a_message_of_256_kib_reaches_all_nodes() {
    on(3, Auth::Open, async |mesh| {
        let mut agents = Vec::new();
        for node in 0..3 {
            agents.push(agent(mesh, node, &format!("agent {node}")).await?);
        }
        let room = new_room(&mut agents[0], "large").await?;
        for agent in &mut agents {
            join(agent, &room).await?;
        }
        let content: String = ('a'..='z').cycle().take(256 * 1024).collect();
        for (i, sender) in [0_usize, 2].into_iter().enumerate() {
            let said = say(&mut agents[sender], &room, &content).await?;
            ensure!(said.seq == i as u64 + 1, "{}", said.seq);
            for (at, agent) in agents.iter_mut().enumerate().filter(|(at, _)| *at != sender) {
                let got = expect(agent, "message_received", json!({ "seq": said.seq })).await?;
                ensure!(text(&got.body, "content") == content, "cut off at node {at}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_slow_reader_gets_everything_and_holds_nobody_up() {
    on(3, Auth::Key, async |mesh| {
        let mut writers = [agent(mesh, 0, "first").await?, agent(mesh, 2, "second").await?];
        let room = new_room(&mut writers[0], "full").await?;
        let mut slow = agent(mesh, 1, "slow").await?;
        let mut quick = agent(mesh, 1, "quick").await?;
        for agent in writers.iter_mut().chain([&mut slow, &mut quick]) {
            join(agent, &room).await?;
        }
        let mut writing = JoinSet::new();
        for writer in writers {
            writing.spawn(write_much(writer, room.clone()));
        }
        let all = read_to_the_end(&mut quick).await?;
        writing.join_all().await.into_iter().collect::<Result<()>>()?;
        // Whether they are dense is another test's business: here the machine is meant to be busy.
        ensure!(read_to_the_end(&mut slow).await? == all, "the two readers saw different numbers");
        ensure!(Said::among(&slow.drain().await?, &room).is_empty(), "repeats");
        Ok(())
    });
}

async fn write_much(mut writer: Agent, room: String) -> Result<()> {
    let content = "x".repeat(SLOW_READER_BYTES);
    for _ in 0..SLOW_READER_MESSAGES / 2 / SLOW_READER_BATCH {
        let mut asked = Vec::new();
        for _ in 0..SLOW_READER_BATCH {
            let payload = json!({ "room_id": room, "content": content });
            asked.push(writer.send("send_message", payload).await?);
        }
        for id in asked {
            writer.reply(&id).await?;
        }
    }
    Ok(())
}

/// Reads all there is, which must come in rising order; returns the numbers.
async fn read_to_the_end(reader: &mut Agent) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    while numbers.len() < SLOW_READER_MESSAGES {
        let message = reader.event("message", SOON, |frame| frame.kind == "message_received").await;
        let message = message.with_context(|| {
            format!("{} of {SLOW_READER_MESSAGES} to {}", numbers.len(), reader.name)
        })?;
        let said = Said::of(&message.body);
        ensure!(said.content.len() == SLOW_READER_BYTES, "{} is cut off", said.seq);
        ensure!(numbers.last().is_none_or(|last| *last < said.seq), "{} comes late", said.seq);
        numbers.push(said.seq);
    }
    Ok(numbers)
}
