//! `clawmesh history`.

use client::messages::{Item, Messages, Start};
use protocol::limits::HISTORY_LIMIT_DEFAULT;
use protocol::request::GetHistory;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Read the messages of a room.
#[derive(Debug, clap::Args)]
pub struct History {
    /// Room id, or exact name
    pub room: String,
    /// How many messages at most: the newest, or with --since and --since-seq the oldest after it
    #[arg(long, value_name = "N", default_value_t = HISTORY_LIMIT_DEFAULT)]
    pub limit: u64,
    /// Only messages after the one with this id
    #[arg(long, value_name = "MESSAGE_ID", conflicts_with = "since_seq")]
    pub since: Option<String>,
    /// Only messages numbered above this
    #[arg(long, value_name = "SEQ")]
    pub since_seq: Option<u64>,
    /// Go on with new messages as they come, until interrupted
    #[arg(long)]
    pub follow: bool,
}

pub(crate) async fn run(cx: &Context, args: History) -> Result<Outcome, Failure> {
    let (client, events) = cx.connect().await?;
    let room_id = cx.room(&client, &args.room).await?;
    let ask = GetHistory {
        room_id: room_id.clone(),
        limit: args.limit,
        before: None,
        since: args.since,
        since_seq: args.since_seq,
    };
    let page = client.call(ask).await?;
    for message in &page.messages {
        cx.output.line(&format::message(message))?;
    }
    if !args.follow {
        return Ok(Outcome::Done);
    }
    let start = match (page.messages.last(), args.since_seq) {
        (Some(message), _) => Start::After(message.seq),
        (None, Some(seq)) => Start::After(seq),
        (None, None) => Start::Tip,
    };
    let mut messages = Messages::open(client, events, room_id, start).await?;
    loop {
        match messages.next().await? {
            Item::Message(message) => cx.output.line(&format::message(&message))?,
            Item::Event(_) => {}
        }
    }
}
