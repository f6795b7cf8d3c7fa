//! `clawmesh monitor`.

use client::client::Client;
use client::events::Event;
use protocol::event::{Event as Pushed, RoomDestroyed};
use protocol::object::Message;
use protocol::request::{JoinRoom, ListRooms};
use serde_json::json;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Watch everything that happens: messages, thinking, joins, leaves, rooms, votes, tasks, turns
///
/// It joins every room that the key may see (or the one of --room), for only members are told. With --json:
/// the events as the node pushed them, one on each line.
#[derive(Debug, clap::Args)]
pub struct Monitor {
    /// Only this room (id, or exact name)
    #[arg(long, value_name = "ROOM")]
    pub room: Option<String>,
}

pub(crate) async fn run(cx: &Context, args: Monitor) -> Result<Outcome, Failure> {
    let (client, mut events) = cx.connect_patiently(None).await?;
    let only = cx.some_room(&client, args.room.as_deref()).await?;
    match &only {
        Some(room) => join(&client, room).await?,
        None => {
            for room in client.call(ListRooms { parent_id: None }).await?.rooms {
                join(&client, &room.room_id).await?;
            }
        }
    }
    while let Some(event) = events.next().await {
        match event {
            Event::Pushed(pushed) => {
                if let (Pushed::RoomCreated(room), None) = (&pushed, &only) {
                    join(&client, &room.room_id).await?;
                }
                show(cx, &pushed)?;
                if let Pushed::RoomDestroyed(RoomDestroyed { room_id }) = pushed
                    && only == Some(room_id)
                {
                    return Err(Failure::RoomGone);
                }
            }
            Event::Disconnected { reason } => note(cx, &format!("connection lost: {reason}"))?,
            Event::Reconnected { .. } => note(cx, "connected again")?,
            Event::Missed { count } => note(cx, &format!("{count} events were missed"))?,
            Event::Closed { reason } => note(cx, &format!("disconnected for good: {reason}"))?,
        }
    }
    Err(Failure::Disconnected)
}

fn note(cx: &Context, text: &str) -> Result<(), Failure> {
    Ok(cx.output.note(&format!("monitor: {text}"))?)
}

async fn join(client: &Client, room: &str) -> Result<(), Failure> {
    // A room may end between being told and being joined.
    match client.call(JoinRoom { room_id: room.to_owned() }).await {
        Ok(_) | Err(client::error::CallError::Refused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An event, as a line or as JSON.
pub(crate) fn show(cx: &Context, event: &Pushed) -> Result<(), Failure> {
    cx.output.show(&json!({ "type": event.type_name(), "payload": event }), || {
        line(cx, event).into_iter().collect()
    })
}

/// An event as a line; `None` for what is no news.
fn line(cx: &Context, event: &Pushed) -> Option<String> {
    let said = |what: &str, it: &Message| {
        format!("{}{what}{}", place(&it.room_id), format::message(&cx.output, it))
    };
    let name = |it: &str| format::name(it);
    Some(match event {
        Pushed::MessageReceived(it) => said("", it),
        Pushed::Thinking(it) => said("thinking ", it),
        Pushed::Mention(it) => said("mention ", &it.message),
        Pushed::AgentJoined(it) => {
            let back = if it.reconnected { " (back)" } else { "" };
            format!("{}{} joined{back}", place(&it.room_id), name(&it.agent.name))
        }
        Pushed::AgentLeft(it) => format!("{}{} left", place(&it.room_id), name(&it.agent_id)),
        Pushed::RoomCreated(it) => {
            format!("room {} ({}) created: {}", name(&it.name), it.room_id, format::traits(it))
        }
        Pushed::RoomDestroyed(it) => format!("{}room destroyed", place(&it.room_id)),
        Pushed::TypingIndicator(it) => {
            let does = if it.typing { "is typing" } else { "stopped typing" };
            format!("{}{} {does}", place(&it.room_id), name(&it.agent_name))
        }
        Pushed::PresenceUpdate(it) => {
            let detail = it.status_detail.as_deref().map(|it| format!(": {}", name(it)));
            let progress = it.progress.map(|it| format!(" {} %", it.percent()));
            let (progress, detail) = (progress.unwrap_or_default(), detail.unwrap_or_default());
            format!("{} is {}{progress}{detail}", name(&it.agent_name), it.status.as_str())
        }
        Pushed::TurnChanged(it) => {
            let holder = it.current_turn_holder.as_deref().map_or("nobody".to_owned(), name);
            format!("{}turn: {holder}", place(&it.room_id))
        }
        Pushed::VoteCreated(_)
        | Pushed::VoteResult(_)
        | Pushed::ElectionStarted(_)
        | Pushed::LeaderElected(_)
        | Pushed::LeaderCleared(_)
        | Pushed::DecisionMade(_)
        | Pushed::TaskAssigned(_)
        | Pushed::TaskUpdated(_)
        | Pushed::Ping(_) => return agenda(event),
    })
}

/// Votes, elections, decisions and tasks.
fn agenda(event: &Pushed) -> Option<String> {
    let name = |it: &str| format::name(it);
    Some(match event {
        Pushed::VoteCreated(it) => {
            let options = it.options.iter().map(|it| name(it)).collect::<Vec<_>>().join(" | ");
            let title = name(&it.title);
            format!("{}vote {title} ({}): {options}", place(&it.room_id), it.vote_id)
        }
        Pushed::VoteResult(it) => {
            let tally = it.tally.iter().map(|it| format::tallied(it).trim().to_owned());
            let tally = tally.collect::<Vec<_>>().join(", ");
            let mesh = it.mesh.as_ref().and_then(format::vote_note).unwrap_or_default();
            format!("{}result of {}: {tally}{mesh}", place(&it.room_id), name(&it.title))
        }
        Pushed::ElectionStarted(it) => {
            let count = format::counted(it.candidates.len() as u64, "candidate");
            format!(
                "{}election of {count}; decline within {} s",
                place(&it.room_id),
                it.opt_out_seconds
            )
        }
        Pushed::LeaderElected(it) => {
            format!(
                "{}leader: {} ({})",
                place(&it.room_id),
                name(&it.leader_name),
                name(&it.leader_id)
            )
        }
        Pushed::LeaderCleared(it) => {
            format!("{}no leader: {}", place(&it.room_id), name(&it.reason))
        }
        Pushed::DecisionMade(it) => {
            let content = format::printable(&it.content, "\n  ");
            format!("{}decision of {}: {content}", place(&it.room_id), name(&it.leader_name))
        }
        Pushed::TaskAssigned(it) => {
            let assignee = it.assignee.as_deref().map_or("nobody".to_owned(), name);
            format!(
                "{}task {} ({}) for {assignee}",
                place(&it.room_id),
                name(&it.title),
                it.task_id
            )
        }
        Pushed::TaskUpdated(it) => {
            let status = format::task_status(it.status);
            format!("{}task {} ({}) is {status}", place(&it.room_id), name(&it.title), it.task_id)
        }
        Pushed::MessageReceived(_)
        | Pushed::Thinking(_)
        | Pushed::Mention(_)
        | Pushed::AgentJoined(_)
        | Pushed::AgentLeft(_)
        | Pushed::RoomCreated(_)
        | Pushed::RoomDestroyed(_)
        | Pushed::TypingIndicator(_)
        | Pushed::PresenceUpdate(_)
        | Pushed::TurnChanged(_)
        | Pushed::Ping(_) => return None,
    })
}

/// Which room: long ids by their beginning, to leave room for what happened.
fn place(room_id: &str) -> String {
    format!("{} ", format::name(&room_id.chars().take(8).collect::<String>()))
}
