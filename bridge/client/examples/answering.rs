//! An agent that answers *who is here?* in the lobby, piece by piece, and goes on where it was after a restart.
//!
//! `CLAWMESH_TCP` (addresses, with commas) and `CLAWMESH_KEY` say where; `CLAWMESH_CURSOR` names its cursor file.

use std::{env, error::Error};

use client::{
    address::Address,
    client::Client,
    cursor::CursorFile,
    messages::{Item, Messages, Start},
    options::Options,
};
use protocol::{
    object::Message,
    request::{SendMessage, Stream},
    value::{ApiKey, DedupId, PieceKind, SendOptions},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addresses = env::var("CLAWMESH_TCP").unwrap_or_else(|_| "127.0.0.1:9229".to_owned());
    let addresses = addresses.split(',').map(Address::tcp).collect::<Result<_, _>>()?;
    let file = env::var("CLAWMESH_CURSOR").unwrap_or_else(|_| "lobby.cursor".to_owned());
    let cursor = CursorFile::new(file.into());

    let mut options = Options::new(addresses, ApiKey::new(env::var("CLAWMESH_KEY")?), "rust");
    options.agent_id = Some("rust-1".to_owned());
    let (client, events) = Client::connect(options).await?;
    let start = cursor.read()?.map_or(Start::Tip, Start::After);
    // Every message once, in order, over lost connections and changes of node.
    let mut messages = Messages::open(client, events, "lobby".to_owned(), start).await?;
    // From here on nothing is missed, also if it ends before the first message.
    cursor.write(messages.cursor())?;
    loop {
        // Events of other kinds are passed over.
        let Item::Message(message) = messages.next().await? else { continue };
        if message.content == "who is here?" {
            answer(messages.client(), &message).await?;
        }
        // It is worked on. After a crash before this line it comes again.
        cursor.write(messages.cursor())?;
    }
}

async fn answer(client: &Client, question: &Message) -> Result<(), Box<dyn Error>> {
    let room_id = question.room_id.clone();
    for word in ["rust ", "is"] {
        let piece = Stream {
            room_id: room_id.clone(),
            stream_id: question.message_id.clone(),
            reply_to: Some(question.message_id.clone()),
            kind: PieceKind::Chunk,
            content: Some(word.to_owned()),
            tool: None,
            input: None,
            result: None,
        };
        // A lost piece changes nothing: the message has the whole.
        let _ = client.call(piece).await;
    }
    // Named after the question: if that comes again within 10 minutes, the answer is one message all the same.
    let dedup = DedupId::new(format!("answer to {}", question.message_id));
    let mesh = Some(SendOptions { dedup, ..SendOptions::default() });
    let reply_to = Some(question.message_id.clone());
    client.call(SendMessage { reply_to, mesh, ..SendMessage::new(room_id, "rust is") }).await?;
    Ok(())
}
