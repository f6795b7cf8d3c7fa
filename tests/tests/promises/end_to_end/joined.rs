//! A node with a past of its own joins a mesh.

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testnet::{
    process::{Auth, Daemon, Mesh},
    wire::{Agent, text},
};

use super::{Said, agent, history, join, new_room, on, say, until};

/// Messages in the lobby of the lone node: more than the mesh has.
const OLD_LOBBY: u64 = 5;

#[test]
fn a_node_that_was_alone_joins_and_keeps_what_it_had() {
    on(2, Auth::Key, async |mesh| {
        let mut member = agent(mesh, 0, "member").await?;
        let room = new_room(&mut member, "of the mesh").await?;
        join(&mut member, &room).await?;
        join(&mut member, "lobby").await?;
        let mut before = vec![];
        for i in 0..3 {
            before.push(say(&mut member, &room, &format!("before {i}")).await?);
        }
        say(&mut member, "lobby", "hello").await?;

        let mut lone = mesh.add("hermit", None).await?;
        let own_ticket = lone.ready().ticket.clone();
        let (mine, kept) = live_alone(mesh, &lone).await?;
        let ticket = mesh.nodes[0].ready().ticket.clone();
        lone.restart_joining(&ticket).await?;
        ensure!(lone.ready().mesh_id == mesh.nodes[0].ready().mesh_id, "another mesh");
        mesh.nodes.push(lone);
        mesh.know_each_other().await?;

        let mut hermit = agent(mesh, 2, "hermit").await?;
        archive_is_readable(&mut hermit, &mine, &kept).await?;
        until("the mesh's history is here", async || match history(&mut hermit, &room).await {
            Ok(here) => Ok(here == before),
            Err(_) => Ok(false),
        })
        .await?;
        join(&mut hermit, "lobby").await?;
        let here = say(&mut hermit, "lobby", "hello from a hermit").await?;
        ensure!(here.seq > OLD_LOBBY, "{here:?} is not above the cursors of the old lobby");
        let event = member
            .event("the hermit", super::SOON, |frame| {
                frame.is("message_received", &json!({"seq": here.seq}))
            })
            .await?;
        ensure!(Said::of(&event.body) == here, "{event:?}");
        other_tickets_are_refused(mesh, &own_ticket).await
    });
}

/// An agent of the node has a cursor in the lobby from before, and sees nothing below it.
#[test]
fn what_a_joining_node_says_at_once_is_above_its_clients_cursors() {
    on(2, Auth::Key, async |mesh| {
        say_in_lobby(mesh).await?;
        let mut lone = mesh.add("hermit", None).await?;
        live_alone(mesh, &lone).await?;
        let ticket = mesh.nodes[0].ready().ticket.clone();
        lone.restart_joining(&ticket).await?;
        mesh.nodes.push(lone);
        let mut eager = agent(mesh, 2, "eager").await?;
        join(&mut eager, "lobby").await?;
        let at_once = say(&mut eager, "lobby", "still here").await?;
        ensure!(at_once.seq > OLD_LOBBY, "{at_once:?} is below the cursors of the old lobby");
        Ok(())
    });
}

async fn say_in_lobby(mesh: &Mesh) -> Result<()> {
    let mut member = agent(mesh, 0, "member").await?;
    join(&mut member, "lobby").await?;
    say(&mut member, "lobby", "hello").await.map(drop)
}

/// A room and a lobby with messages.
async fn live_alone(mesh: &Mesh, lone: &Daemon) -> Result<(String, Vec<Said>)> {
    let mut agent = Agent::attach(lone.tcp(), mesh.key(), "hermit").await?;
    let mine = new_room(&mut agent, "of the hermit").await?;
    join(&mut agent, &mine).await?;
    join(&mut agent, "lobby").await?;
    for i in 0..OLD_LOBBY {
        say(&mut agent, "lobby", &format!("alone {i}")).await?;
    }
    let mut kept = vec![];
    for i in 0..3 {
        kept.push(say(&mut agent, &mine, &format!("mine {i}")).await?);
    }
    Ok((mine, kept))
}

async fn archive_is_readable(hermit: &mut Agent, mine: &str, kept: &[Said]) -> Result<()> {
    let rooms = hermit.call("list_rooms", json!({})).await?;
    let rooms = rooms["rooms"].as_array().cloned().unwrap_or_default();
    let id = |name: &str| {
        let room = rooms.iter().find(|room| room["name"] == json!(name));
        room.map(|room| text(room, "room_id"))
    };
    ensure!(id("of the hermit (hermit)").as_deref() == Some(mine), "{rooms:?} without the old one");
    ensure!(history(hermit, mine).await? == kept, "the old room has changed");
    let Some(lobby) = id("lobby (hermit)") else { bail!("{rooms:?} without the old lobby") };
    ensure!(lobby != "lobby", "the old lobby has the new one's id");
    let old: Vec<String> =
        history(hermit, &lobby).await?.into_iter().map(|message| message.content).collect();
    let expected: Vec<String> = (0..OLD_LOBBY).map(|i| format!("alone {i}")).collect();
    ensure!(old == expected, "{old:?}");
    Ok(())
}

/// By nodes that have had a peer, and then they go on in their own mesh.
async fn other_tickets_are_refused(mesh: &mut Mesh, ticket: &str) -> Result<()> {
    for node in [1, 2] {
        let Err(error) = mesh.nodes[node].restart_joining(ticket).await else {
            bail!("node {node} took a ticket of another mesh");
        };
        ensure!(error.to_string().contains("use another --data-dir"), "{error}");
    }
    Ok(())
}
