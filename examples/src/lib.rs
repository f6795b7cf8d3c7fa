//! Where the agents of the examples attach, and how they come together.
//!
//! Without variables they attach to the node of this machine, as `clawmeshd up` starts it. `CLAWMESH_TCP`
//! names others (`HOST:PORT`, several separated by commas: agents are spread over them), `CLAWMESH_KEY` the
//! API key.

use std::{collections::BTreeSet, env, fs};

use anyhow::{Context, Result};
use client::{
    address::Address,
    client::Client,
    events::Events,
    options::{Authorities, Options, Policy},
    secrets::Secrets,
};
use protocol::{
    event::Event as Pushed,
    request::{CreateRoom, JoinRoom, ListAgents},
    value::{ApiKey, RegisterOptions},
};

/// An agent and its events.
#[derive(Debug)]
pub struct Member {
    /// The connection for its calls.
    pub client: Client,
    events: Events,
}

/// Agents of these names.
///
/// # Errors
/// No node, or no key.
pub async fn agents<const N: usize>(names: [&str; N]) -> Result<[Member; N]> {
    let home = etcetera::home_dir()?.join(".clawchat");
    let addresses: Vec<Address> = match env::var("CLAWMESH_TCP") {
        Ok(list) => list.split(',').map(Address::tcp).collect::<Result<_, _>>()?,
        Err(_) => vec![Address::Unix(home.join("clawchat.sock"))],
    };
    let key = match env::var("CLAWMESH_KEY") {
        Ok(key) => key,
        Err(_) => fs::read_to_string(home.join("auth.key")).context("no key: start a node")?,
    };
    let mut members = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let (client, events) = Client::connect(Options {
            addresses: vec![addresses[i % addresses.len()].clone()],
            authorities: Authorities::System,
            key: ApiKey::new(key.trim()),
            name: name.to_owned(),
            agent_id: None,
            mesh: RegisterOptions::default(),
            capabilities: Vec::new(),
            secrets: Secrets::default(),
            policy: Policy::default(),
        })
        .await?;
        members.push(Member { client, events });
    }
    members.try_into().map_err(|_| anyhow::anyhow!("as many agents as names"))
}

/// A public room that is gone when everybody has left, with all of them in it.
///
/// # Errors
/// The node refuses.
pub async fn gather(name: &str, members: &mut [Member]) -> Result<String> {
    let room = CreateRoom {
        name: name.to_owned(),
        description: None,
        parent_id: None,
        ephemeral: true,
        public: true,
        encrypted: false,
        mesh: None,
    };
    let room_id = members[0].client.call(room).await?.room_id;
    for member in members.iter_mut() {
        // Other nodes hear of it in a moment.
        let made =
            |event: &Pushed| matches!(event, Pushed::RoomCreated(room) if room.room_id == room_id);
        member.until(made).await?;
        member.client.call(JoinRoom { room_id: room_id.clone() }).await?;
    }
    let everybody: BTreeSet<String> =
        members.iter().map(|member| member.client.agent_id().to_owned()).collect();
    for member in members {
        loop {
            let ask = ListAgents { room_id: Some(room_id.clone()) };
            let agents = member.client.call(ask).await?.agents;
            let there = agents.into_iter().map(|agent| agent.agent_id).collect();
            if everybody.is_subset(&there) {
                break;
            }
            member.until(|event| matches!(event, Pushed::AgentJoined(_))).await?;
        }
    }
    Ok(room_id)
}

impl Member {
    /// The agent's name.
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// The next event that is wanted; those before it are passed over.
    ///
    /// # Errors
    /// The connection is gone for good.
    pub async fn until(&mut self, wanted: impl Fn(&Pushed) -> bool) -> Result<Pushed> {
        loop {
            let event = self.events.next().await.context("the connection is gone")?;
            if let Some(event) = event.pushed().filter(&wanted) {
                return Ok(event);
            }
        }
    }
}
