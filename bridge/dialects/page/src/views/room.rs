//! A room as a conversation, with who is in it, its votes and its tasks; and a form for a word of one's own.

use std::{collections::BTreeMap, sync::Arc};

use bridge::{
    read::Visitor,
    seam::{
        call::{DescribeRoom, From, History, ListDirect, ListTasks, ListVotes, Look},
        event::Message,
    },
};
use maud::{Markup, html};
use mesh::{
    api::{
        agenda::{TaskView, VoteView},
        command::{RoomInfo, RoomView, Speech},
    },
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::TaskStatus,
};

use super::{
    Problem, layout, plain,
    rooms::{marks, name},
};
use crate::{
    limits::{CHARS_SHOWN, MESSAGES_SHOWN},
    shared::Shared,
    signing::Person,
    times,
};

/// Votes of a room that are shown: the newest.
const VOTES_SHOWN: u64 = 20;
/// Tasks of each state that are shown.
const TASKS_SHOWN: usize = 50;

/// The moment before which messages are asked for: `before=MS`.
pub(crate) fn before(query: Option<&str>) -> Option<u64> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == "before").find_map(|(_, ms)| ms.parse().ok())
}

/// The one who reads a room for a person: direct rooms are read by their agents alone, and the holder of a key can be each of its.
pub(crate) async fn reader(
    shared: &Shared,
    person: &Person,
    room: RoomId,
) -> Result<Visitor, Problem> {
    let direct = shared.desk.ask(&person.holder, ListDirect).await?;
    let of_key = |view: &RoomView| {
        let mut sides = view.sides.as_ref()?.iter();
        let own = sides.find(|(_, key)| *key == person.holder.key())?;
        Some(own.0.clone())
    };
    let side = direct.iter().find(|view| view.room == room).and_then(of_key);
    Ok(person.holder.clone().named(side))
}

/// Messages that are read at once, the oldest first; and what the operator does not want to be handed over is left out.
pub(crate) async fn messages(
    shared: &Shared,
    reader: &Visitor,
    call: History,
) -> Result<Vec<Message>, Problem> {
    let room = call.room;
    let mut messages = shared.desk.ask(reader, call).await?.messages;
    let facts = shared.desk.ask(reader, Look(room)).await?;
    messages.retain(|message| facts.withheld(&message.said.agent).is_none());
    Ok(messages)
}

pub(crate) async fn page(
    shared: &Shared,
    person: &Arc<Person>,
    room: RoomId,
    before_ms: Option<u64>,
) -> Result<Markup, Problem> {
    let reader = reader(shared, person, room).await?;
    let info = shared.desk.ask(&reader, DescribeRoom(room)).await.map_err(|_| Problem::NotFound)?;
    let call = History { room, from: From::Newest, limit: MESSAGES_SHOWN, before_ms };
    let messages = messages(shared, &reader, call).await?;
    let votes = shared.desk.ask(&reader, ListVotes { room, limit: VOTES_SHOWN }).await?;
    let tasks = shared.desk.ask(&reader, ListTasks { room, status: None }).await?;
    let id = room.to_uuid();
    let last = messages.last().map_or(0, |message| message.number.0);
    // Of an older page nothing is to come.
    let live = before_ms.is_none().then(|| format!("/ui/rooms/{id}/live?after={last}"));
    let may_say = info.room.sides.is_none() && !info.room.closed && !info.room.encrypted;
    let title = name(&info.room);
    Ok(layout(
        person,
        &title,
        &html! {
            (heading(&info))
            div.columns {
                section.said aria-label="Messages" {
                    @if let Some(first) = messages.first().filter(|_| messages.len() as u64 >= MESSAGES_SHOWN) {
                        p { a href=(format!("/ui/rooms/{id}?before={}", first.wall_ms)) { "Older messages" } }
                    }
                    @if before_ms.is_some() { p { a href=(format!("/ui/rooms/{id}")) { "Back to the newest" } } }
                    div #said role="log" data-append=[live] {
                        @if messages.is_empty() { p.quiet.none { "Nothing was said here yet." } }
                        (all(&messages))
                    }
                    span #end {}
                    @if may_say { (form(person, &id)) }
                    @else if info.room.encrypted { p.quiet { "This room takes end-to-end encrypted messages alone: write with " code { "clawmesh send" } "." } }
                    @else if info.room.sides.is_some() { p.quiet { "In a direct room its two agents write." } }
                }
                aside { (members(&info)) (board(&tasks)) (polls(&votes)) }
            }
        },
    ))
}

fn heading(info: &RoomInfo) -> Markup {
    html! {
        h1 { (plain(&name(&info.room))) @for word in marks(&info.room) { " " span.tag { (word) } } }
        @if let Some(text) = info.room.description.as_deref().filter(|text| !text.is_empty()) { p.quiet { (plain(text)) } }
    }
}

fn form(person: &Person, id: &str) -> Markup {
    html! {
        form.say method="post" action=(format!("/ui/rooms/{id}/say")) {
            input type="hidden" name="form" value=(person.form);
            label { "Say something as " (plain(&person.name)) textarea name="text" rows="3" required {} }
            button.main { "Send" }
        }
    }
}

fn members(info: &RoomInfo) -> Markup {
    html! {
        h2 { "Members" }
        @if info.agents.is_empty() { p.quiet { "Nobody is in it." } }
        ul.plain {
            @for agent in &info.agents {
                li {
                    (plain(&agent.name))
                    @if info.leader.as_ref().is_some_and(|leader| leader.agent == agent.agent) { " " span.tag { "leader" } }
                    @if info.turn.as_ref() == Some(&agent.agent) { " " span.tag { "turn" } }
                    @if let Some(detail) = &agent.presence.detail { br; span.quiet { (plain(detail)) } }
                }
            }
        }
    }
}

fn board(tasks: &[TaskView]) -> Markup {
    let columns = [
        ("Open", [TaskStatus::Pending, TaskStatus::Pending]),
        ("At work", [TaskStatus::InProgress, TaskStatus::InReview]),
        ("Stuck", [TaskStatus::Blocked, TaskStatus::Failed]),
        ("Over", [TaskStatus::Completed, TaskStatus::Cancelled]),
    ];
    html! {
        @if !tasks.is_empty() { h2 { "Tasks" } }
        @for (title, states) in columns {
            @let of_column: Vec<&TaskView> = tasks.iter().rev().filter(|task| states.contains(&task.status)).collect();
            @if !of_column.is_empty() {
                details open[title != "Over"] {
                    summary { (title) " (" (of_column.len()) ")" }
                    ul.plain {
                        @for task in of_column.iter().take(TASKS_SHOWN) {
                            li {
                                (plain(&task.title)) " " span.quiet { (task.identifier()) }
                                @if let Some(agent) = &task.assignee { br; span.quiet { "held by " (plain(agent)) } }
                                @if let Some(at) = &task.progress { br; progress max="100" value=(at.percent) { (at.percent) " %" } " " span.quiet { (plain(&at.step)) } }
                            }
                        }
                        @if of_column.len() > TASKS_SHOWN { li.quiet { "The newest " (TASKS_SHOWN) " are shown." } }
                    }
                }
            }
        }
    }
}

fn polls(votes: &[VoteView]) -> Markup {
    html! {
        @if !votes.is_empty() { h2 { "Votes" } }
        @for vote in votes.iter().rev() {
            div.vote {
                strong { (plain(&vote.title)) }
                @match &vote.tally {
                    Some(tally) => ol {
                        @for (option, count) in vote.options.iter().zip(tally) { li { (plain(option)) ": " (count) } }
                    },
                    None => ol { @for option in vote.options.iter() { li { (plain(option)) } } },
                }
                span.quiet {
                    @if vote.closed { "closed; " (vote.cast) " of " (vote.eligible) " voted" }
                    @else if vote.notes.closing { "being counted" }
                    @else { "open; " (vote.cast) " of " (vote.eligible) " voted" @if let Some(ms) = vote.closes_ms { ", until " (times::moment(ms)) } }
                }
            }
        }
    }
}

/// Messages, each with what it answers if that is among them.
pub(crate) fn all(messages: &[Message]) -> Markup {
    let names: BTreeMap<MessageId, &str> =
        messages.iter().map(|message| (message.message, &*message.said.name)).collect();
    html! { @for message in messages { (one(message, &names)) } }
}

fn one(message: &Message, names: &BTreeMap<MessageId, &str>) -> Markup {
    let said = &message.said;
    let by_node = said.conversation.and_then(|place| place.answers);
    let answers = by_node.or_else(|| said.reply_to.as_deref().and_then(MessageId::from_uuid));
    let kind = match message.speech {
        Speech::Chat => "message",
        Speech::Thinking => "message thinking",
        Speech::Decision => "message decision",
    };
    html! {
        article class=(kind) id=(format!("n{}", message.number.0)) {
            p.by {
                strong { (plain(&said.name)) }
                @if *said.name != *said.agent { " " span.quiet { (plain(&said.agent)) } }
                @if message.proof.verified { " " span.tag.good title="The key that owns the author's id was shown at its node" { "verified" } }
                @if message.proof.key_revoked { " " span.tag.bad { "key revoked" } }
                @if message.speech == Speech::Decision { " " span.tag { "decision" } }
                " " (times::moment(message.wall_ms)) " "
                a.number href=(format!("#n{}", message.number.0)) { "#" (message.number.0) }
            }
            @if let Some(answered) = answers {
                p.quiet { "answers " @match names.get(&answered) { Some(name) => (plain(name)), None => "an earlier message" } }
            }
            @if message.speech == Speech::Thinking { details { summary { "thinking" } (body(&said.content)) } }
            @else { (body(&said.content)) }
            @if !said.mentions.is_empty() { p.quiet { "to " (list(&said.mentions)) } }
        }
    }
}

fn list(agents: &[AgentId]) -> Markup {
    html! { @for (nth, agent) in agents.iter().enumerate() { @if nth > 0 { ", " } (plain(agent)) } }
}

fn body(content: &str) -> Markup {
    let shown: String = content.chars().take(CHARS_SHOWN).collect();
    html! {
        div.body { (plain(&shown)) }
        @if shown.len() < content.len() { p.quiet { "This message is longer: the rest is left out here." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_out_of_a_query() {
        assert_eq!(before(Some("x=1&before=17&before=9")), Some(17));
        assert_eq!(before(Some("before=")), None);
        assert_eq!(before(None), None);
    }
}
