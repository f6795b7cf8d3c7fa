//! `clawmesh history`.

use std::collections::VecDeque;
use std::path::PathBuf;

use client::client::Client;
use client::events::Event;
use client::limits::PAGE_MESSAGES;
use client::messages::{Item, Messages, Start};
use protocol::event::Event as Pushed;
use protocol::limits::HISTORY_LIMIT_DEFAULT;
use protocol::object::Message;
use protocol::request::{GetHistory, RoomTip};
use protocol::value::STREAM;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::pick::Pick;
use crate::seq::Seq;

mod live;

use live::After;

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
    pub since_seq: Option<Seq>,
    /// Only messages of this kind; repeatable. Of those that --limit gives
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
    /// Go on with new messages as they come, until interrupted: over restarts, and at the next node
    #[arg(long)]
    pub follow: bool,
    /// Write to this file, made anew, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub(crate) async fn run(mut cx: Context, args: History) -> Result<Outcome, Failure> {
    cx.output.redirect(args.output.as_deref())?;
    let is_live = args.follow && cx.output.is_live() && args.kind.is_empty();
    if is_live {
        cx.ask_for(STREAM);
    }
    let (client, events) = if args.follow {
        let (client, events) = cx.connect_patiently(None).await?;
        (client, Some(events))
    } else {
        (cx.client().await?, None)
    };
    let room_id = cx.room(&client, &args.room).await?;
    // Asked before the page: a message that comes in between is on the page, or after it.
    let tip = match &events {
        Some(_) => client.call(RoomTip { room_id: room_id.clone() }).await?.seq,
        None => 0,
    };
    let pick = Pick { only_kind: args.kind, ..Pick::default() };
    let ask = GetHistory {
        room_id: room_id.clone(),
        limit: args.limit,
        before: None,
        since: args.since,
        since_seq: args.since_seq.map(|seq| seq.0),
    };
    let page = page(&cx, &client, &pick, ask).await?;
    if page.is_none() {
        cx.output.note_empty("no messages")?;
    }
    let Some(events) = events else { return Ok(Outcome::Done) };
    let from = page.or(args.since_seq.map(|seq| seq.0));
    let start = Start::After(from.unwrap_or(tip));
    let mut messages = Messages::open(client, events, room_id, start).await?;
    follow(&cx, &pick, &mut messages).await
}

/// The longest page that a node gives. More are read page by page.
const PAGE_MAX: u64 = 1_000;
/// Numbers below it are of the home era, and without gaps as long as nothing fails.
const HOME_ERA_END: u64 = 1 << 35;

/// Shows a page, of any length. The number of its last message.
pub(super) async fn page(
    cx: &Context,
    client: &Client,
    pick: &Pick,
    ask: GetHistory,
) -> Result<Option<u64>, Failure> {
    if ask.limit > PAGE_MAX {
        return pages(cx, client, pick, ask).await;
    }
    let page = client.call(ask).await?;
    for message in &page.messages {
        show(cx, pick, message)?;
    }
    Ok(page.messages.last().map(|message| message.seq))
}

/// Shows more than a page: the oldest after a cursor as they come, or the newest when all are there.
async fn pages(
    cx: &Context,
    client: &Client,
    pick: &Pick,
    mut ask: GetHistory,
) -> Result<Option<u64>, Failure> {
    let limit = usize::try_from(ask.limit).unwrap_or(usize::MAX);
    let newest = ask.since.is_none() && ask.since_seq.is_none();
    if newest {
        let tip = client.call(RoomTip { room_id: ask.room_id.clone() }).await?.seq;
        ask.since_seq = Some(if tip < HOME_ERA_END { tip.saturating_sub(ask.limit) } else { 0 });
    }
    let (mut kept, mut count, mut last) = (VecDeque::new(), 0, None);
    while count < limit || newest {
        ask.limit = PAGE_MESSAGES;
        let page = client.call(ask.clone()).await?.messages;
        let Some(end) = page.last().map(|message| message.seq) else { break };
        (ask.since, ask.since_seq) = (None, Some(end));
        for message in page {
            if newest {
                kept.push_back(message);
                kept.drain(..kept.len().saturating_sub(limit));
            } else if count < limit {
                last = Some(message.seq);
                show(cx, pick, &message)?;
            }
            count += 1;
        }
    }
    for message in kept {
        last = Some(message.seq);
        show(cx, pick, &message)?;
    }
    Ok(last)
}

/// Shows messages as they come, until interrupted.
pub(super) async fn follow(
    cx: &Context,
    pick: &Pick,
    messages: &mut Messages,
) -> Result<Outcome, Failure> {
    let room_id = messages.room_id().to_owned();
    let mut live = live::Live::default();
    loop {
        match messages.next().await? {
            Item::Message(message) => match live.message(&message) {
                After::Whole(end) => {
                    cx.output.part(end)?;
                    show(cx, pick, &message)?;
                }
                After::Above(rest) => {
                    cx.output.part(&rest)?;
                    cx.output.line(&format::message_above(&cx.output, &message))?;
                }
            },
            // They come to those who have asked for them.
            Item::Event(Event::Pushed(Pushed::Stream(piece))) if piece.room_id == room_id => {
                cx.output.part(&live.piece(&piece))?;
            }
            Item::Event(_) => {}
        }
    }
}

fn show(cx: &Context, pick: &Pick, message: &Message) -> Result<(), Failure> {
    if pick.takes(message) {
        cx.output.show(message, || vec![format::message(&cx.output, message)])?;
    }
    Ok(())
}
