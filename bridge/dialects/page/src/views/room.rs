//! A room as a conversation, and forms for words of one's own; beside it, its members, votes and tasks.

use std::sync::Arc;

use bridge::{
    read::Visitor,
    seam::{
        call::{From, History, ListDirect, Look, OneMessage},
        event::Message,
    },
};
use maud::{Markup, html};
use mesh::{
    api::command::{RoomInfo, RoomView},
    name::{
        id::{AgentId, MessageId, RoomId},
        number::Number,
    },
};

use super::{
    Problem, layout,
    messages::{self, Talk},
    plain,
    rooms::{marks, name},
    side,
};
use crate::{forms::decoded, limits::MESSAGES_SHOWN, shared::Shared, signing::Person};

/// The part of a room that is asked for, by the query of its page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Only messages below this number: `before=N`.
    before: Option<Number>,
    /// The message that the person is about to answer: `answer=ID`.
    answer: Option<MessageId>,
}

impl Wanted {
    pub(crate) fn of(query: Option<&str>) -> Wanted {
        let mut wanted = Wanted::default();
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        for (name, value) in pairs.filter_map(|pair| pair.split_once('=')) {
            match name {
                "before" => {
                    wanted.before = wanted.before.or_else(|| value.parse().ok().map(Number))
                }
                "answer" => {
                    wanted.answer = MessageId::from_uuid(&decoded(value).unwrap_or_default())
                }
                _ => {}
            }
        }
        wanted
    }
}

/// The one who reads a room for a person: direct rooms are read by their agents alone, and the holder of a key can be each of its.
pub(crate) async fn reader(
    shared: &Shared,
    person: &Person,
    room: RoomId,
) -> Result<Visitor, Problem> {
    let direct = shared.desk.ask(&person.holder, ListDirect).await?;
    let me = person.agent();
    // The person's own agent, if it is one of the two.
    let of_key = |view: &RoomView| -> Option<AgentId> {
        let sides = view.sides.as_ref()?.iter();
        let own = sides.filter(|(_, key)| *key == person.holder.key());
        own.min_by_key(|(agent, _)| **agent != me).map(|(agent, _)| agent.clone())
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

/// Whether a person may write into a room: of a direct one its two agents may.
pub(crate) fn may_say(person: &Person, room: &RoomView) -> bool {
    let me = person.agent();
    let is_side =
        room.sides.as_ref().is_none_or(|sides| sides.iter().any(|(agent, _)| *agent == me));
    is_side && !room.closed && !room.encrypted && person.holder.standing().may_write()
}

/// The message that the person is about to answer, if there is one.
async fn answered(
    shared: &Shared,
    reader: &Visitor,
    room: RoomId,
    wanted: &Wanted,
) -> Option<Message> {
    let message = wanted.answer?;
    let found = shared.desk.ask(reader, OneMessage { room, message }).await.ok()??;
    let facts = shared.desk.ask(reader, Look(room)).await.ok()?;
    facts.withheld(&found.said.agent).is_none().then_some(found)
}

pub(crate) async fn page(
    shared: &Shared,
    person: &Arc<Person>,
    room: RoomId,
    wanted: &Wanted,
) -> Result<Markup, Problem> {
    shared.stays(person);
    let reader = reader(shared, person, room).await?;
    let side = side::Side::read(shared, &reader, room).await?;
    let info = &side.info;
    let before = wanted.before;
    let from = before.map_or(From::Newest, From::Below);
    let call = History { room, from, limit: MESSAGES_SHOWN, before_ms: None };
    let messages = messages(shared, &reader, call).await?;
    let answered = answered(shared, &reader, room, wanted).await;
    let id = room.to_uuid();
    let last = messages.last().map_or(0, |message| message.number.0);
    if before.is_none() {
        person.reading.reads(room, info.room.tip);
    }
    // Of an older page nothing is to come.
    let live = before.is_none().then(|| format!("/ui/rooms/{id}/live?after={last}"));
    let talk = Talk { room: &id, answers: may_say(person, &info.room) };
    Ok(layout(
        person,
        &name(&info.room),
        &html! {
            (heading(info))
            div.columns data-room=[live] {
                section.said aria-label="Messages" {
                    @if let Some(first) = messages.first().filter(|_| messages.len() as u64 >= MESSAGES_SHOWN) {
                        p { a href=(format!("/ui/rooms/{id}?before={}", first.number.0)) { "Older messages" } }
                    }
                    @if before.is_some() { p { a href=(format!("/ui/rooms/{id}")) { "Back to the newest" } } }
                    div #said role="log" {
                        @if messages.is_empty() { p.quiet.none { "Nothing was said here yet." } }
                        (messages::all(&talk, &messages))
                    }
                    span #end {}
                    (writing(person, info, &id, answered.as_ref()))
                }
                aside {
                    div #side aria-live="off" { (side.markup(person)) }
                    @if side.may_act(person) { (side::new_vote(person, &id)) (side::new_task(person, info)) }
                }
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

/// The form for a word of one's own, or why there is none.
fn writing(person: &Person, info: &RoomInfo, id: &str, answered: Option<&Message>) -> Markup {
    let room = &info.room;
    html! {
        @if may_say(person, room) { (form(person, id, answered)) }
        @else if room.encrypted { p.quiet { "This room takes end-to-end encrypted messages alone: write with " code { "clawmesh send" } "." } }
        @else if room.closed { p.quiet { "This room takes nothing more." } }
        @else if room.sides.is_some() { p.quiet { "In a direct room its two agents write. To write to one of them yourself, go to " a href="/ui/agents" { "agents" } "." } }
        @else { p.quiet { "Your key may only read." } }
    }
}

fn form(person: &Person, id: &str, answered: Option<&Message>) -> Markup {
    html! {
        form.say method="post" action=(format!("/ui/rooms/{id}/say")) {
            input type="hidden" name="form" value=(person.form);
            @if let Some(message) = answered {
                input type="hidden" name="answers" value=(message.message.to_uuid());
                p.quiet {
                    "Answers " (plain(&message.said.name)) ": " (messages::excerpt(&message.said.content)) " "
                    a href=(format!("/ui/rooms/{id}#end")) { "Answer nothing" }
                }
            }
            label { "Say something as " (plain(&person.name)) textarea name="text" rows="3" required autofocus[answered.is_some()] {} }
            button.main { "Send" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_read_out_of_a_query() {
        assert_eq!(Wanted::of(Some("x=1&before=17&before=9")).before, Some(Number(17)));
        assert_eq!(Wanted::of(Some("before=&answer=x")), Wanted::default());
        assert_eq!(Wanted::of(None), Wanted::default());
        let id = "00000000-0000-8000-8000-000000000001";
        assert!(Wanted::of(Some(&format!("answer={id}"))).answer.is_some());
    }
}
