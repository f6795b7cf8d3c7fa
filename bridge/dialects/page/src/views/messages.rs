//! Messages: who has said them, what they answer, and their text.

use std::collections::BTreeMap;

use bridge::seam::event::Message;
use lantern::heard::Heard;
use maud::{Markup, html};
use mesh::{
    api::command::Speech,
    name::id::{AgentId, MessageId},
};

use super::{
    cards::{self, Claims},
    id, plain,
};
use crate::{limits::CHARS_SHOWN, times};

/// Characters of a message of which there is only to be said which one it is.
const EXCERPT_CHARS: usize = 80;

/// The page that messages are shown on.
pub(crate) struct Talk<'a> {
    /// The room's id, as paths have it.
    pub(crate) room: &'a str,
    /// The person may answer.
    pub(crate) answers: bool,
}

/// Messages, each with what it answers if that is among them.
pub(crate) fn all(talk: &Talk<'_>, messages: &[Message]) -> Markup {
    let names: BTreeMap<MessageId, &str> =
        messages.iter().map(|message| (message.message, &*message.said.name)).collect();
    let heard: Vec<Option<Heard>> = messages.iter().map(heard).collect();
    let claims = Claims::of(messages.iter().zip(&heard));
    html! {
        @for (message, heard) in messages.iter().zip(&heard) {
            (one(talk, message, &names, heard.as_ref().map(|heard| (heard, &claims))))
        }
    }
}

/// The envelope in a message: LANTERN's are chat.
pub(super) fn heard(message: &Message) -> Option<Heard> {
    (message.speech == Speech::Chat).then(|| Heard::read(&message.said.content)).flatten()
}

/// A message alone.
pub(super) fn alone(talk: &Talk<'_>, message: &Message) -> Markup {
    all(talk, std::slice::from_ref(message))
}

fn one(
    talk: &Talk<'_>,
    message: &Message,
    names: &BTreeMap<MessageId, &str>,
    card: Option<(&Heard, &Claims<'_>)>,
) -> Markup {
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
                @if *said.name != *said.agent { " " span.quiet { (id(&said.agent)) } }
                @if message.proof.verified { " " span.tag.good title="The key that owns the author's id was shown at its node" { "verified" } }
                @if message.proof.key_revoked { " " span.tag.bad { "key revoked" } }
                @if message.speech == Speech::Decision { " " span.tag { "decision" } }
                @if said.conversation.is_some_and(|place| place.expects_reply) { " " span.tag { "asks" } }
                " " (times::moment(message.wall_ms)) " "
                (links(talk, message))
            }
            @if let Some(answered) = answers {
                p.quiet { "answers " @match names.get(&answered) { Some(name) => (plain(name)), None => "an earlier message" } }
            }
            @if let Some((heard, claims)) = card { (cards::card(message, heard, claims)) }
            @else if message.speech == Speech::Thinking { details { summary { "thinking" } (body(&said.content)) } }
            @else { (body(&said.content)) }
            @if !said.mentions.is_empty() { p.quiet { "to " (list(&said.mentions)) } }
        }
    }
}

/// Its place, its life, and a way to answer it.
fn links(talk: &Talk<'_>, message: &Message) -> Markup {
    let (number, id) = (message.number.0, message.message.to_uuid());
    html! {
        span.links {
            a.number href=(format!("#n{number}")) { "#" (number) }
            " " a.number href=(format!("/ui/rooms/{}/trace/{id}", talk.room)) { "trace" }
            @if talk.answers { " " a.number href=(format!("/ui/rooms/{}?answer={id}#end", talk.room)) { "answer" } }
        }
    }
}

fn list(agents: &[AgentId]) -> Markup {
    html! { @for (nth, agent) in agents.iter().enumerate() { @if nth > 0 { ", " } (id(agent)) } }
}

/// The beginning of a text, in one line.
pub(super) fn excerpt(content: &str) -> Markup {
    let line: String = content.chars().take(EXCERPT_CHARS).collect();
    let line = line.replace(['\n', '\t'], " ");
    html! { (plain(&line)) @if line.len() < content.len() { "…" } }
}

fn body(content: &str) -> Markup {
    let shown: String = content.chars().take(CHARS_SHOWN).collect();
    html! {
        div.body { (plain(&shown)) }
        @if shown.len() < content.len() { p.quiet { "This message is longer: the rest is left out here." } }
    }
}
