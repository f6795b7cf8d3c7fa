//! `clawmesh export`.

use std::path::PathBuf;

use client::client::Client;
use protocol::object::Message;
use protocol::request::{ListRooms, RoomTip};

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};
use crate::pages::messages_up_to;
use crate::{pick, progress};

/// Write a room's messages as a document: all of them, oldest first.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Room id, or exact name
    pub room: String,
    /// The kind of document
    #[arg(long, value_enum, default_value_t = Format::Md)]
    pub format: Format,
    /// Thinking pulses, too
    #[arg(long)]
    pub include_thinking: bool,
    /// Write to this file, made anew, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The form of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Markdown: a heading for each message.
    Md,
    /// One message as JSON on each line.
    Json,
    /// Lines as of `history`.
    Txt,
}

pub(crate) async fn run(mut cx: Context, args: Export) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, &args.room).await?;
    let tip = client.call(RoomTip { room_id: room_id.clone() }).await?.seq;
    cx.output.redirect(args.output.as_deref())?;
    let format = if cx.output.is_json() { Format::Json } else { args.format };
    if format == Format::Md {
        cx.output.line(&format!("# Room: {}", name(&client, &room_id).await?))?;
    }
    // A document on the terminal shows by itself how far it is.
    let progress =
        if cx.output.is_for_people() { progress::none() } else { progress::messages(&cx.output) };
    let read = messages_up_to(tip, &client, &room_id, |message| {
        progress.inc(1);
        let is_wanted = args.include_thinking || !pick::is_thinking(&message);
        if is_wanted { write(&cx, format, &message) } else { Ok(()) }
    });
    read.await?;
    progress.finish_and_clear();
    Ok(Outcome::Done)
}

fn write(cx: &Context, format: Format, message: &Message) -> Result<(), Failure> {
    match format {
        Format::Json => cx.output.object(message)?,
        Format::Txt => cx.output.line(&format::message(&cx.output, message))?,
        Format::Md => {
            let (who, when) =
                (format::name(&message.agent_name), format::clock(&message.timestamp));
            cx.output.line(&format!(
                "\n### {who} · seq {} · {when}\n\n{}",
                message.seq, message.content
            ))?;
        }
    }
    Ok(())
}

async fn name(client: &Client, room_id: &str) -> Result<String, Failure> {
    let rooms = client.call(ListRooms { parent_id: None }).await?.rooms;
    let room = rooms.into_iter().find(|room| room.room_id == room_id);
    Ok(format::name(&room.map_or_else(|| room_id.to_owned(), |room| room.name)))
}
