//! `clawmesh dm`.

use std::time::Duration;

use client::client::Client;
use client::messages::{Item, Messages, Start};
use protocol::limits::HISTORY_LIMIT_DEFAULT;
use protocol::request::{CreateRoom, GetHistory, RoomTip, SendMessage};
use tokio::time::{Instant, timeout_at};

use crate::args::seconds;
use crate::commands::history;
use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::pick::{self, Pick};

/// Write to one agent, or read what the two of you have written
///
/// The room of the two of you is private: only your two agents list and read it, and only nodes that were shown one of
/// your keys hold it. It is made by the first of you who names the other.
#[derive(Debug, clap::Args)]
pub struct Dm {
    /// Id of the other agent
    pub agent: String,
    /// The text; without one, the messages of the two of you are shown
    pub text: Option<String>,
    /// Id of the message it answers
    #[arg(long, value_name = "MESSAGE_ID", requires = "text")]
    pub reply_to: Option<String>,
    /// Wait for the next message of the other agent, and print it as JSON; exits 1 when --timeout passes, 3 when it ends
    /// the conversation
    #[arg(long, conflicts_with = "follow")]
    pub wait: bool,
    /// Seconds to wait
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, requires = "wait")]
    pub timeout: Duration,
    /// Go on with new messages as they come, until interrupted
    #[arg(long)]
    pub follow: bool,
    /// How many messages to show at most: the newest
    #[arg(long, value_name = "N", default_value_t = HISTORY_LIMIT_DEFAULT, conflicts_with = "text")]
    pub limit: u64,
}

pub(crate) async fn run(cx: Context, args: Dm) -> Result<Outcome, Failure> {
    let (client, events) = if args.wait || args.follow {
        let (client, events) = cx.connect().await?;
        (client, Some(events))
    } else {
        (cx.client().await?, None)
    };
    let room_id = open(&client, &args.agent).await?;
    let pick = Pick::default();
    let seen = match args.text {
        Some(text) => {
            let reply_to = args.reply_to;
            Some(send(&cx, &client, Text { room_id: room_id.clone(), text, reply_to }).await?)
        }
        None if args.wait => None,
        None => {
            let (limit, room_id) = (args.limit, room_id.clone());
            let ask = GetHistory { room_id, limit, before: None, since: None, since_seq: None };
            history::page(&cx, &client, &pick, ask).await?
        }
    };
    let Some(events) = events else { return Ok(Outcome::Done) };
    let seen = match seen {
        Some(seen) => seen,
        None => client.call(RoomTip { room_id: room_id.clone() }).await?.seq,
    };
    let mut messages = Messages::open(client, events, room_id, Start::After(seen)).await?;
    if args.follow {
        return history::follow(&cx, &pick, &mut messages).await;
    }
    wait(&cx, &args.agent, args.timeout, &mut messages).await
}

/// The room of the two agents, made if there is none.
async fn open(client: &Client, agent: &str) -> Result<String, Failure> {
    let room = CreateRoom {
        name: format!("dm:{agent}"),
        description: None,
        parent_id: None,
        ephemeral: false,
        public: false,
        encrypted: false,
        mesh: None,
    };
    Ok(client.call(room).await?.room_id)
}

/// Words for the other agent.
struct Text {
    room_id: String,
    text: String,
    reply_to: Option<String>,
}

/// Says something. Its number.
async fn send(cx: &Context, client: &Client, text: Text) -> Result<u64, Failure> {
    let Text { room_id, text, reply_to } = text;
    let message = SendMessage {
        room_id,
        content: text,
        reply_to,
        mentions: Vec::new(),
        metadata: None,
        mesh: None,
    };
    let sent = client.call(message).await?;
    cx.output.show(&sent, || vec![format::message(&cx.output, &sent)])?;
    Ok(sent.seq)
}

/// Prints the next message of the other agent.
async fn wait(
    cx: &Context,
    agent: &str,
    within: Duration,
    messages: &mut Messages,
) -> Result<Outcome, Failure> {
    let until = Instant::now() + within;
    loop {
        let Ok(next) = timeout_at(until, messages.next()).await else {
            return Err(Failure::TimedOut { after: within });
        };
        match next? {
            Item::Message(message) if message.agent_id == agent && !pick::is_thinking(&message) => {
                cx.output.object(&*message)?;
                let ended = pick::ends(&message);
                return Ok(if ended { Outcome::Ended } else { Outcome::Done });
            }
            Item::Message(_) | Item::Event(_) => {}
        }
    }
}
