//! Two agents talk in a room that no node can read.

#![expect(clippy::print_stdout, reason = "an example says what happens")]

use std::{env, error::Error};

use client::{
    address::Address,
    client::Client,
    options::Options,
    secrets::{Secret, Secrets},
};
use protocol::{
    request::{CreateRoom, GetHistory, JoinRoom, SendMessage},
    value::ApiKey,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let ada = attach("ada", Secret::new("correct horse")).await?;
    // Whoever has no secret sees what nodes see.
    let blind = attach("blind", None).await?;
    let room = CreateRoom {
        name: format!("sealed by {}", ada.agent_id()),
        description: None,
        parent_id: None,
        ephemeral: true,
        public: true,
        encrypted: true,
        mesh: None,
    };
    let room_id = ada.call(room).await?.room_id;
    for agent in [&ada, &blind] {
        agent.call(JoinRoom { room_id: room_id.clone() }).await?;
    }
    ada.call(SendMessage::new(room_id.clone(), "the eagle lands at dawn")).await?;
    for agent in [&ada, &blind] {
        let page = GetHistory {
            room_id: room_id.clone(),
            limit: 1,
            before: None,
            since: None,
            since_seq: None,
        };
        for message in agent.call(page).await?.messages {
            println!("{} reads: {}", agent.name(), message.content);
        }
    }
    Ok(())
}

async fn attach(name: &str, secret: Option<Secret>) -> Result<Client, Box<dyn Error>> {
    let address = env::var("CLAWMESH_TCP").unwrap_or_else(|_| "127.0.0.1:9229".to_owned());
    let addresses = address.split(',').map(Address::tcp).collect::<Result<_, _>>()?;
    let mut options = Options::new(addresses, ApiKey::new(env::var("CLAWMESH_KEY")?), name);
    options.secrets = secret.map(Secrets::for_all_rooms).unwrap_or_default();
    let (client, _events) = Client::connect(options).await?;
    Ok(client)
}
