//! Two agents meet in a room, talk, and read their history.

#![expect(clippy::print_stdout, reason = "an example says what happens")]

use anyhow::{Result, bail};
use examples::{Member, agents, gather};
use protocol::{
    event::Event,
    object::Message,
    request::{GetHistory, SendMessage},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut members = agents(["ada", "bob"]).await?;
    let room = gather("a quiet place", &mut members).await?;
    let [ada, bob] = &mut members;

    say(ada, &room, "hello, who is there?", None).await?;
    let heard = hear(bob).await?;
    say(bob, &room, "bob is", Some(heard.message_id)).await?;
    hear(ada).await?;

    println!("and this is what was said:");
    let page = GetHistory { room_id: room, limit: 50, before: None, since: None, since_seq: None };
    for message in bob.client.call(page).await?.messages {
        println!("  #{} {}: {}", message.seq, message.agent_name, message.content);
    }
    Ok(())
}

async fn say(who: &Member, room: &str, text: &str, reply_to: Option<String>) -> Result<()> {
    let message = SendMessage {
        room_id: room.to_owned(),
        content: text.to_owned(),
        reply_to,
        mentions: Vec::new(),
        metadata: None,
        mesh: None,
    };
    who.client.call(message).await?;
    Ok(())
}

async fn hear(who: &mut Member) -> Result<Message> {
    let Event::MessageReceived(message) =
        who.until(|event| matches!(event, Event::MessageReceived(_))).await?
    else {
        bail!("another event than asked for")
    };
    println!("{} hears #{} {}: {}", who.name(), message.seq, message.agent_name, message.content);
    Ok(*message)
}
