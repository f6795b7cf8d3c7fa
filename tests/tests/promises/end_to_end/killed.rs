//! kill -9, at one node and at all, under load.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testnet::{
    binary, kills,
    process::{Auth, Mesh, Plan, Terminal},
};
use tokio::runtime::Runtime;

use super::{
    SOON, Said, agent, all_listed, histories, join, listed,
    load::{Load, Writer, beside},
    machine, names_resolve, new_room, on, say,
};

/// The room's numbers come from the node that dies.
#[test]
fn killing_the_sequencer_under_load_loses_nothing() {
    on(3, Auth::Key, async |mesh| kill_under_load(mesh, 0).await);
}

#[test]
fn killing_a_follower_under_load_loses_nothing() {
    on(3, Auth::Key, async |mesh| kill_under_load(mesh, 1).await);
}

/// The room is made at node 0, which numbers it.
async fn kill_under_load(mesh: &mut Mesh, victim: usize) -> Result<()> {
    let room = new_room(&mut agent(mesh, 0, "founder").await?, "survivors").await?;
    let others: Vec<usize> = (0..3).filter(|node| *node != victim).collect();
    let load = Load::start(mesh, &room, &[0, 1, 2], 2).await?;
    load.more(&[0, 1, 2], 60).await?;
    mesh.nodes[victim].kill9().await?;
    load.more(&others, 60).await?;
    mesh.nodes[victim].restart().await?;
    let after = Load::start(mesh, &room, &[victim], 2).await?;
    after.more(&[victim], 60).await?;
    load.more(&others, 60).await?;
    let (stayed, came) = (load.stop(&[victim]).await?, after.stop(&[]).await?);
    let mut told: Vec<Said> = acknowledged(&stayed).chain(acknowledged(&came)).collect();
    let all = beside(came, histories(mesh, &room, &told));
    let (mut stayed, (came, histories)) = beside(stayed, all).await?;
    let before = stayed.len();
    stayed.retain(|writer| writer.broken.is_none());
    ensure!(stayed.len() < before, "nobody was cut off");
    for writer in &mut stayed {
        told.extend(writer.saw_all(&room, &histories[0]).await?);
    }
    for mut writer in came {
        let seen = Said::among(&writer.agent.drain().await?, &room);
        super::rises(&seen)?;
        told.extend(seen);
    }
    told.extend(histories.into_iter().flatten());
    names_resolve(mesh, &room, &told).await
}

fn acknowledged(writers: &[Writer]) -> impl Iterator<Item = Said> {
    writers.iter().flat_map(|writer| writer.acknowledged.iter().cloned())
}

#[test]
fn killing_all_at_once_loses_nothing_that_was_acknowledged() {
    on(3, Auth::Key, async |mesh| {
        let room = new_room(&mut agent(mesh, 0, "founder").await?, "blackout").await?;
        let load = Load::start(mesh, &room, &[0, 1, 2], 2).await?;
        load.more(&[0, 1, 2], 60).await?;
        for node in &mut mesh.nodes {
            node.kill9().await?;
        }
        let writers = load.stop(&[0, 1, 2]).await?;
        for node in &mut mesh.nodes {
            node.restart().await?;
        }
        mesh.know_each_other().await?;
        let mut told: Vec<Said> = acknowledged(&writers).collect();
        for node in 0..3 {
            let mut agent = agent(mesh, node, "survivor").await?;
            join(&mut agent, &room).await?;
            told.push(say(&mut agent, &room, "we are back").await?);
        }
        let histories = histories(mesh, &room, &told).await?;
        told.extend(histories.into_iter().flatten());
        names_resolve(mesh, &room, &told).await
    });
}

/// How often a killed node's agents may be seen to leave too late, on a machine that stands still.
const LATE_TRIES: usize = 4;

#[test]
fn the_agents_of_a_killed_node_are_seen_to_leave_within_5_seconds() {
    on(3, Auth::Key, async |mesh| {
        let mut took = Vec::new();
        for nth in 0..LATE_TRIES {
            took.push(time_to_mourn(mesh, &format!("mourners {nth}")).await?);
            if took[nth] < Duration::from_secs(5) {
                return Ok(());
            }
            mesh.nodes[2].restart().await?;
            mesh.know_each_other().await?;
        }
        bail!("they are seen to leave after {took:?}")
    });
}

/// From the death of node 2 until the agents of both others have seen all that follows from it.
async fn time_to_mourn(mesh: &mut Mesh, name: &str) -> Result<Duration> {
    let mut agents = Vec::new();
    for node in 0..3 {
        agents.push(agent(mesh, node, &format!("agent {node}")).await?);
    }
    let room = new_room(&mut agents[2], name).await?;
    // The victim's agent joins first: the turn is its.
    for (there, i) in [2, 0, 1].into_iter().enumerate() {
        join(&mut agents[i], &room).await?;
        let next = &mut agents[(i + 1) % 3];
        listed(next, &room, there + 1).await?;
    }
    all_listed(&room, &mut agents).await?;
    let lost = agents[2].id.clone();
    let killed = Instant::now();
    mesh.nodes[2].kill9().await?;
    for agent in &mut agents[..2] {
        let left = json!({ "room_id": room, "agent_id": lost });
        agent.event("agent_left", SOON, |frame| frame.is("agent_left", &left)).await?;
        let turn = json!({ "room_id": room, "reason": "disconnected" });
        let turn =
            agent.event("turn_changed", SOON, |frame| frame.is("turn_changed", &turn)).await?;
        ensure!(turn.body["current_turn_holder"] != json!(lost), "{turn:?}");
    }
    let took = killed.elapsed();
    for agent in &mut agents[..2] {
        let listed = agent.call("list_agents", json!({ "room_id": room })).await?;
        ensure!(listed["agents"].as_array().map(Vec::len) == Some(2), "{listed}");
    }
    Ok(took)
}

#[test]
fn what_agents_of_hosts_give_and_ask_has_its_result_whichever_node_is_killed() {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let (auth, terminal) = (Auth::Key, Terminal::Shared);
    let plan = Plan { binary, nodes: 2, auth, keep: None, flags: Vec::new(), terminal };
    let runtime = Runtime::new().expect("the system gives threads");
    let played = runtime.block_on(kills::hosts::play(plan, (3, 7), |_| {}));
    let tally = played.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(tally.answered > 0 && tally.woken > 0, "{tally:?}");
}

#[test]
fn nothing_that_two_nodes_hold_is_lost_with_the_disk_of_one() {
    on(3, Auth::Key, async |mesh| {
        let tally = kills::play(mesh, (3, 7), |_| {}).await?;
        ensure!(tally.kept > 0, "no message was held twice: {tally:?}");
        Ok(())
    });
}
