//! LANTERN's envelopes as cards: the claim, how sure its author is, what would disprove it, and who has challenged it. Whatever
//! stands in an envelope is its author's word.

use std::collections::BTreeMap;

use bridge::seam::event::Message;
use lantern::{
    heard::{Heard, Introduction, Said},
    verb::Verb,
};
use maud::{Markup, html};

use super::plain;
use crate::limits::{CARD_CHARS_SHOWN, CARD_ROWS_SHOWN};

/// Challenges among the messages of a page, by the number of the message that each is against.
pub(super) struct Claims<'a>(BTreeMap<u64, Vec<(&'a Message, &'a Said)>>);

impl<'a> Claims<'a> {
    pub(super) fn of(
        messages: impl Iterator<Item = (&'a Message, &'a Option<Heard>)>,
    ) -> Claims<'a> {
        let mut claims: BTreeMap<u64, Vec<(&Message, &Said)>> = BTreeMap::new();
        for (message, heard) in messages {
            if let Some(Heard::Said(said)) = heard
                && said.verb == Verb::Challenge
                && let Some(target) = said.number("target_seq")
            {
                claims.entry(target).or_default().push((message, said));
            }
        }
        Claims(claims)
    }

    /// Those against a message, under whichever of its numbers.
    fn against(&self, message: &Message) -> Vec<&(&'a Message, &'a Said)> {
        let mut numbers: Vec<u64> = message.numbers.iter().map(|number| number.0).collect();
        numbers.extend([message.number.0, message.canonical.0]);
        numbers.sort_unstable();
        numbers.dedup();
        numbers.iter().filter_map(|number| self.0.get(number)).flatten().collect()
    }
}

/// The card of an envelope among the messages of its room.
pub(super) fn card(message: &Message, heard: &Heard, claims: &Claims<'_>) -> Markup {
    shown(message, heard, &Around::Room(claims))
}

/// The card of an envelope by itself: who has challenged it is not looked for, and numbers lead nowhere.
pub(super) fn alone(message: &Message, heard: &Heard) -> Markup {
    shown(message, heard, &Around::Nothing)
}

/// What is around a card on its page.
enum Around<'a> {
    /// Messages of its room, and the challenges among them.
    Room(&'a Claims<'a>),
    /// Messages of any rooms.
    Nothing,
}

impl Around<'_> {
    /// A message of the room, by its number.
    fn place(&self, number: u64) -> Markup {
        match self {
            Around::Room(_) => html! { a href=(format!("#n{number}")) { "#" (number) } },
            Around::Nothing => html! { span.number { "#" (number) } },
        }
    }

    fn challenges(&self, message: &Message) -> Markup {
        match self {
            Around::Room(claims) => challenges(&claims.against(message)),
            Around::Nothing => html! {},
        }
    }
}

fn shown(message: &Message, heard: &Heard, around: &Around<'_>) -> Markup {
    match heard {
        Heard::Hello(hello) => introduction(hello),
        Heard::Said(said) => statement(message, said, around),
    }
}

/// A field's text, cut where it is too long.
fn text(text: &str) -> Markup {
    let shown: String = text.chars().take(CARD_CHARS_SHOWN).collect();
    html! { span.body { (plain(&shown)) } @if shown.len() < text.len() { "…" } }
}

fn introduction(hello: &Introduction) -> Markup {
    let about = [("Made by", &hello.provider), ("Model", &hello.model), ("Part", &hello.role)];
    html! {
        div.card {
            p { span.tag.verb { (Verb::Hello.word()) } " " strong { (text(&hello.agent_name)) } " introduces itself" }
            dl {
                @for (name, value) in about { @if let Some(value) = value { dt { (name) } dd { (text(value)) } } }
                @for can in hello.capabilities.iter().take(CARD_ROWS_SHOWN) {
                    dt { "Can" } dd { (text(&can.name)) @if let Some(by) = &can.falsifiable_by { " – disproved by " (text(by)) } }
                }
            }
            p.quiet { "Nobody vouches for this." }
        }
    }
}

/// The field of a verb that is its statement.
fn main_field(verb: Verb) -> &'static str {
    match verb {
        Verb::Hello => "agent_name",
        Verb::Probe => "question",
        Verb::Assert => "claim",
        Verb::Challenge => "counter_claim",
        Verb::Resolve => "observation",
        Verb::Fuse => "synthesis",
        Verb::Sync => "state_hash",
        Verb::Spark => "seed",
        Verb::Harvest => "becomes",
        Verb::Bury => "reason",
    }
}

/// Further texts of a body, whatever its verb is.
const TEXTS: [(&str, &str); 5] = [
    ("falsifiable_by", "Disproved by"),
    ("test", "Test"),
    ("basis", "Rests on"),
    ("why_now", "Why now"),
    ("smallest_test", "Smallest test"),
];

fn statement(message: &Message, said: &Said, around: &Around<'_>) -> Markup {
    let against = said.number("target_seq").or_else(|| said.number("spark_seq"));
    html! {
        div class=(format!("card {}", said.verb.word().to_lowercase())) {
            p {
                span.tag.verb { (said.verb.word()) }
                @if let Some(thread) = said.thread { " in thread " (around.place(thread)) }
                @if let Some(number) = against { " on " (around.place(number)) }
                @if said.from != message.said.name { " " span.quiet { "signed " (text(&said.from)) } }
            }
            @if let Some(main) = said.text(main_field(said.verb)) { p.claim { (text(main)) } }
            dl {
                @if let Some(sure) = confidence(said) { dt { "Confidence" } dd { (sure) } }
                @for (field, name) in TEXTS { @if let Some(value) = said.text(field) { dt { (name) } dd { (text(value)) } } }
                @if let Some(intent) = &said.intent { dt { "Intent" } dd { (text(intent)) } }
                @for (number, held) in said.outcomes().into_iter().take(CARD_ROWS_SHOWN) {
                    dt { "Outcome" } dd { (around.place(number)) @if held { " held" } @else { " did not hold" } }
                }
                @if let Some(delta) = said.delta() { dt { "Shared state" } dd { (text(&delta.to_string())) } }
            }
            (around.challenges(message))
        }
    }
}

fn challenges(against: &[&(&Message, &Said)]) -> Markup {
    html! {
        @if !against.is_empty() {
            p.quiet { "Challenged" }
            ul.plain {
                @for (message, said) in against.iter().take(CARD_ROWS_SHOWN) {
                    li {
                        a href=(format!("#n{}", message.number.0)) { "#" (message.number.0) } " " (text(&said.from)) ": "
                        (text(said.text("counter_claim").unwrap_or_default()))
                        @if let Some(sure) = confidence(said) { " " (sure) }
                    }
                }
            }
        }
    }
}

/// How sure an author is. An envelope can say anything: only what lies between none and all is shown as a part.
fn confidence(said: &Said) -> Option<Markup> {
    let sure = said.confidence().filter(|sure| (0.0..=1.0).contains(sure))?;
    let percent = format!("{:.0}", sure * 100.0);
    Some(html! { meter min="0" max="100" value=(percent) { (percent) " %" } " " (percent) " %" })
}
