//! Threads, state and scores of a room: from its whole history, read page by page.

use std::collections::BTreeMap;

use client::client::Client;
use protocol::object::Message;
use protocol::request::RoomTip;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::format;
use crate::lantern::journal::{Fate, Journal, Spark, TooMuch};
use crate::lantern::record::{Keep, Participant};
use crate::lantern::thread::Thread;
use crate::limits::THREAD_BYTES_MAX;
use crate::outcome::{Failure, Outcome};
use crate::pages::messages_up_to;
use crate::progress;
use crate::seq::Seq;
use crate::table;
use ::lantern::heard::Heard;

/// Reads the whole history of a room. In an encrypted room it needs the room key.
#[derive(Debug, clap::Args)]
pub struct WholeRoom {
    /// Room id, or exact name
    pub room: String,
}

/// Show every message of a thread, in order.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Room id, or exact name
    pub room: String,
    /// The thread: a number of the message that opened it
    #[arg(value_name = "SEQ")]
    pub thread: Seq,
}

/// As JSON.
#[derive(Serialize)]
struct Threads {
    participants: Vec<Participant>,
    threads: Vec<Thread>,
    sparks: Vec<Spark>,
    refraction_due: bool,
}

pub(crate) async fn threads(cx: &Context, args: &WholeRoom) -> Result<Outcome, Failure> {
    let (_, _, journal) = journal(cx, &args.room, Keep::Outline).await?;
    let found = Threads {
        participants: journal.participants().cloned().collect(),
        threads: journal.threads(),
        sparks: journal.sparks(),
        refraction_due: journal.is_refraction_due(),
    };
    cx.output.show(&found, || tables(cx, &found))?;
    if found.threads.is_empty() {
        cx.output.note("clawmesh: no threads yet: `clawmesh lantern assert` opens one")?;
    }
    if found.refraction_due {
        let fuses = "every third FUSE of a room leads to one that looks back at what was agreed";
        cx.output.note(&format!("clawmesh: the next FUSE is REFRACTION-due: {fuses}"))?;
    }
    Ok(Outcome::Done)
}

fn tables(cx: &Context, found: &Threads) -> Vec<String> {
    let seq = |seq| format::seq(&cx.output, seq);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let participants = found.participants.iter().map(|agent| {
        let abilities: Vec<&str> =
            agent.capabilities.iter().map(|capability| &*capability.name).collect();
        let (role, model, provider) =
            (text(&agent.role), text(&agent.model), text(&agent.provider));
        vec![agent.agent_name.clone(), role, model, provider, abilities.join(", ")]
    });
    let threads = found.threads.iter().map(|thread| {
        let (state, count) = (thread.state.word().to_owned(), thread.messages.to_string());
        vec![seq(thread.thread), state, count, text(&thread.opened_by), thread.headline.clone()]
    });
    let sparks = found.sparks.iter().map(|spark| {
        let fate = match &spark.fate {
            Fate::Open => "open".to_owned(),
            Fate::Harvested { by, becomes } => {
                format!("harvested by {} {}", seq(*by), text(becomes))
            }
            Fate::Buried { by, reason } => format!("buried by {} {}", seq(*by), text(reason)),
        };
        vec![seq(spark.seq), spark.from.clone(), spark.seed.clone(), fate]
    });
    let parts = [
        table::lines(
            &cx.output,
            &["agent", "role", "model", "provider", "capabilities"],
            participants.collect(),
        ),
        table::lines(
            &cx.output,
            &["thread", "state", "messages", "by", "headline"],
            threads.collect(),
        ),
        table::lines(&cx.output, &["spark", "by", "seed", "state"], sparks.collect()),
    ];
    let parts: Vec<Vec<String>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(&String::new())
}

/// As JSON.
#[derive(Serialize)]
struct Shown {
    seq: u64,
    message_id: String,
    timestamp: String,
    agent_id: String,
    agent_name: String,
    envelope: Value,
}

pub(crate) async fn show(cx: &Context, args: &Show) -> Result<Outcome, Failure> {
    let wanted = args.thread.0;
    // Twice: only when all numbers are known it is known which messages belong to the thread, and all
    // messages of a long room are not to be held for that.
    let (client, room_id, journal) = journal(cx, &args.room, Keep::Outline).await?;
    let members = journal.messages_of(wanted);
    if members.is_empty() {
        let within = journal.thread_with(wanted);
        return Err(Failure::NoThread { thread: wanted, within, room: args.room.clone() });
    }
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    history(&client, &room_id, |message| {
        let at = journal.numbers().lowest(message.seq);
        if members.contains(&at) && !found.contains_key(&at) {
            bytes += message.content.len();
            found.insert(at, message);
        }
        if bytes > THREAD_BYTES_MAX { Err(TooMuch.into()) } else { Ok(()) }
    })
    .await?;
    for message in found.into_values() {
        let envelope = serde_json::from_str(&message.content)?;
        let lines = lines(cx, &message);
        let shown = Shown {
            seq: message.seq,
            message_id: message.message_id,
            timestamp: message.timestamp,
            agent_id: message.agent_id,
            agent_name: message.agent_name,
            envelope,
        };
        cx.output.show(&shown, || lines)?;
    }
    Ok(Outcome::Done)
}

/// `[HH:MM:SS] #SEQ NAME VERB`, and below it what is said.
fn lines(cx: &Context, message: &Message) -> Vec<String> {
    let Some(Heard::Said(said)) = Heard::read(&message.content) else { return Vec::new() };
    let mut who = cx.output.strong(&format::name(&said.from));
    if said.from != message.agent_name {
        // Anybody can write any name into an envelope.
        who += &format!(" (sent by {})", format::name(&message.agent_name));
    }
    let (time, seq) = (format::clock(&message.timestamp), format::seq(&cx.output, message.seq));
    let mut lines = vec![format!("[{time}] #{seq} {who} {}", said.verb.word())];
    if let Some(intent) = &said.intent {
        lines.push(format!("  intent: {}", format::printable(intent, "\n    ")));
    }
    for (name, value) in said.body() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (name, value) = (format::name(name), format::printable(&value, "\n    "));
        lines.push(format!("  {name}: {value}"));
    }
    lines
}

pub(crate) async fn state(cx: &Context, args: &WholeRoom) -> Result<Outcome, Failure> {
    let (_, _, journal) = journal(cx, &args.room, Keep::Deltas).await?;
    let deltas = journal.shared_state();
    for delta in &deltas {
        cx.output.show(delta, || {
            let (seq, thread) =
                (format::seq(&cx.output, delta.seq), format::seq(&cx.output, delta.thread));
            let text = format::printable(delta.delta.get(), "\n  ");
            vec![format!("#{seq} thread {thread} {}: {text}", format::name(&delta.from))]
        })?;
    }
    if deltas.is_empty() {
        cx.output.note(
            "clawmesh: nothing was committed yet: `clawmesh lantern fuse --state-delta` does",
        )?;
    }
    Ok(Outcome::Done)
}

pub(crate) async fn calibration(cx: &Context, args: &WholeRoom) -> Result<Outcome, Failure> {
    let (_, _, journal) = journal(cx, &args.room, Keep::Outline).await?;
    let scores = journal.calibration();
    if cx.output.is_json() {
        for score in &scores {
            cx.output.object(score)?;
        }
    } else {
        let row = |score: &crate::lantern::calibration::Score| {
            vec![score.agent.clone(), format!("{:.4}", score.mean_loss), score.claims.to_string()]
        };
        let rows = scores.iter().map(row).collect();
        for line in table::lines(&cx.output, &["agent", "mean loss", "claims"], rows) {
            cx.output.line(&line)?;
        }
    }
    if scores.is_empty() {
        cx.output.note(
            "clawmesh: nothing to score yet: it takes a fused thread, first resolved on tool, artifact or human, with --outcome for a claim that has a confidence",
        )?;
    }
    Ok(Outcome::Done)
}

async fn journal(
    cx: &Context,
    room: &str,
    keep: Keep,
) -> Result<(Client, String, Journal), Failure> {
    let client = cx.client().await?;
    let room_id = cx.room(&client, room).await?;
    let mut journal = Journal::new(keep);
    let progress = progress::messages(&cx.output);
    let read = history(&client, &room_id, |message| {
        progress.inc(1);
        Ok(journal.add(&message)?)
    });
    read.await?;
    progress.finish_and_clear();
    if journal.closed() > 0 {
        let count = format::counted(journal.closed() as u64, "LANTERN message");
        cx.output.note(&format!(
            "clawmesh: {count} of the room cannot be read without its room key: give --room-key"
        ))?;
    }
    Ok((client, room_id, journal))
}

/// Gives every message of a room up to its tip, oldest first. After a split some may come twice, under
/// different numbers.
async fn history(
    client: &Client,
    room_id: &str,
    take: impl FnMut(Message) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let tip = client.call(RoomTip { room_id: room_id.to_owned() }).await?.seq;
    messages_up_to(tip, client, room_id, take).await
}
