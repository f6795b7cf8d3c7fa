//! `clawmesh monitor`.

use client::client::Client;
use client::events::Event;
use protocol::event::{
    AgentJoined, DecisionMade, ElectionStarted, Event as Pushed, OnceLost, OnceWhy, PresenceUpdate,
    Receipt, ReceiptState, RoomDestroyed, TypingIndicator, VoteResult,
};
use protocol::object::{Message, Room, Task, Vote};
use protocol::request::{JoinRoom, ListRooms};
use serde_json::json;

use crate::commands::approvals;
use crate::context::Context;
use crate::format::{self, name};
use crate::outcome::{Failure, Outcome};
use crate::pick;

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
                // The agent may have a seat elsewhere from an earlier command.
                if only.as_ref().is_none_or(|only| is_of(&pushed, only)) {
                    show(cx, &pushed)?;
                }
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

/// Whether an event is of a room, or of none.
fn is_of(event: &Pushed, room: &str) -> bool {
    let payload = json!(event);
    payload["room_id"].as_str().is_none_or(|of| of == room)
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

/// An event as a line; `None` for the node's heartbeat, which is no news.
fn line(cx: &Context, event: &Pushed) -> Option<String> {
    let (room_id, text) = match event {
        Pushed::MessageReceived(message) => (&message.room_id, said(cx, "", message)),
        Pushed::Thinking(message) => (&message.room_id, said(cx, "thinking ", message)),
        Pushed::Mention(mention) => {
            (&mention.message.room_id, said(cx, "mention ", &mention.message))
        }
        Pushed::AgentJoined(joined) => (&joined.room_id, agent_joined(joined)),
        Pushed::AgentLeft(left) => (&left.room_id, format!("{} left", name(&left.agent_id))),
        Pushed::RoomCreated(room) => return Some(room_created(room)),
        Pushed::RoomDestroyed(room) => (&room.room_id, "room destroyed".to_owned()),
        Pushed::TypingIndicator(typing) => (&typing.room_id, typing_indicator(typing)),
        Pushed::PresenceUpdate(presence) => return Some(presence_update(presence)),
        Pushed::TurnChanged(turn) => {
            (&turn.room_id, format!("turn: {}", or_nobody(&turn.current_turn_holder)))
        }
        Pushed::VoteCreated(vote) => (&vote.room_id, vote_created(vote)),
        Pushed::VoteResult(result) => (&result.room_id, vote_result(result)),
        Pushed::ElectionStarted(election) => (&election.room_id, election_started(election)),
        Pushed::LeaderElected(leader) => {
            let (leader_name, id) = (name(&leader.leader_name), name(&leader.leader_id));
            (&leader.room_id, format!("leader: {leader_name} ({id})"))
        }
        Pushed::LeaderCleared(cleared) => {
            (&cleared.room_id, format!("no leader: {}", name(&cleared.reason)))
        }
        Pushed::DecisionMade(decision) => (&decision.room_id, decision_made(decision)),
        Pushed::TaskAssigned(task) => (&task.room_id, task_assigned(task)),
        Pushed::TaskUpdated(task) => (&task.room_id, task_updated(task)),
        Pushed::Receipt(receipt) => (&receipt.room_id, receipt_of(receipt)),
        Pushed::OnceLost(lost) => (&lost.room_id, once_lost(lost)),
        Pushed::ApprovalDecided(approval) => {
            (&approval.room_id, format!("approval: {}", approvals::decision_of(approval)))
        }
        // It is not asked for: the message follows.
        Pushed::Stream(_) | Pushed::Ping(_) => return None,
    };
    Some(format!("{} {text}", place(room_id)))
}

fn said(cx: &Context, kind: &str, message: &Message) -> String {
    // People see it beside the name.
    let kind = if cx.output.is_for_people() && pick::is_thinking(message) { "" } else { kind };
    format!("{kind}{}", format::message(&cx.output, message))
}

fn agent_joined(joined: &AgentJoined) -> String {
    let back = if joined.reconnected { " (back)" } else { "" };
    format!("{} joined{back}", name(&joined.agent.name))
}

fn room_created(room: &Room) -> String {
    format!("room {} ({}) created: {}", name(&room.name), room.room_id, format::traits(room))
}

fn typing_indicator(typing: &TypingIndicator) -> String {
    let does = if typing.typing { "is typing" } else { "stopped typing" };
    format!("{} {does}", name(&typing.agent_name))
}

fn presence_update(presence: &PresenceUpdate) -> String {
    let mut text = format!("{} is {}", name(&presence.agent_name), presence.status.as_str());
    if let Some(progress) = presence.progress {
        text += &format!(" {} %", progress.percent());
    }
    if let Some(detail) = &presence.status_detail {
        text += &format!(": {}", name(detail));
    }
    text
}

fn receipt_of(receipt: &Receipt) -> String {
    let state = match receipt.state {
        ReceiptState::Arrived => "arrived at a node of",
        ReceiptState::Delivered => "was handed to",
        ReceiptState::Failed => "was not handed to",
    };
    let why = receipt.reason.as_ref().map(|why| format!(" ({})", name(why))).unwrap_or_default();
    format!("message {} {state} {}{why}", receipt.message_id, name(&receipt.agent_id))
}

fn once_lost(lost: &OnceLost) -> String {
    let why = match lost.why {
        OnceWhy::Lapsed => "its lease had run out",
        OnceWhy::Split => "another one was granted it earlier, on the other side of a split",
    };
    let holder = or_nobody(&lost.agent_id);
    format!("{} is no longer yours: {why}; {holder} has it", name(&lost.subject))
}

fn vote_created(vote: &Vote) -> String {
    let options: Vec<String> = vote.options.iter().map(|option| name(option)).collect();
    format!("vote {} ({}): {}", name(&vote.title), vote.vote_id, options.join(" | "))
}

fn vote_result(result: &VoteResult) -> String {
    let tally = result.tally.iter().map(|count| format::tallied(count).trim().to_owned());
    let tally = tally.collect::<Vec<_>>().join(", ");
    let mesh = result.mesh.as_ref().and_then(format::vote_note).unwrap_or_default();
    format!("result of {}: {tally}{mesh}", name(&result.title))
}

fn election_started(election: &ElectionStarted) -> String {
    let count = format::counted(election.candidates.len() as u64, "candidate");
    format!("election of {count}; decline within {} s", election.opt_out_seconds)
}

fn decision_made(decision: &DecisionMade) -> String {
    let content = format::printable(&decision.content, "\n  ");
    format!("decision of {}: {content}", name(&decision.leader_name))
}

fn task_assigned(task: &Task) -> String {
    format!("task {} ({}) for {}", name(&task.title), task.task_id, or_nobody(&task.assignee))
}

fn task_updated(task: &Task) -> String {
    let status = format::task_state(task);
    format!("task {} ({}) is {status}", name(&task.title), task.task_id)
}

fn or_nobody(agent: &Option<String>) -> String {
    agent.as_deref().map_or("nobody".to_owned(), name)
}

/// A room at the beginning of a line: of a long id the first characters, so that the news has room.
fn place(room_id: &str) -> String {
    name(&room_id.chars().take(8).collect::<String>())
}
