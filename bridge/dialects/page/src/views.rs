//! The pages, as they are written. Everything that comes from elsewhere is escaped by the templates; what would still change the
//! order of a line, or hide a part of it, is shown as a mark.

pub(crate) mod agents;
mod cards;
pub(crate) mod figures;
pub(crate) mod mesh;
pub(crate) mod messages;
pub(crate) mod room;
pub(crate) mod rooms;
pub(crate) mod search;
pub(crate) mod side;
pub(crate) mod trace;
mod waits;

use std::borrow::Cow;

use ::mesh::api::agenda::Standing;
use bridge::{dialect::Intrusion, seam::refusal::Refusal};
use maud::{DOCTYPE, Markup, html};

use crate::signing::Person;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Problem {
    NotFound,
    Intrusion(Intrusion),
    /// A form that is not of this person's pages.
    Form,
    /// The mesh says no: why.
    Refused(String),
    /// As many pages are live as there may be.
    Busy,
}

impl Problem {
    pub(crate) fn of(refusal: &Refusal) -> Problem {
        Problem::Refused(why(refusal))
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        Problem::of(&refusal)
    }
}

/// A refusal, for people.
pub(crate) fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Mesh(refused) => format!("{refused}."),
        Refusal::ReadsOnly => "This key may only read.".to_owned(),
        Refusal::Denied(denied) => format!("{denied}."),
        Refusal::ContentTooLarge { max } => format!("A message has at most {max} bytes."),
        Refusal::TooFast { per_minute } => format!("More than {per_minute} messages a minute: wait a little."),
        Refusal::TooManyReplays { per_minute } => format!("More than {per_minute} replays a minute: wait a little."),
        Refusal::Overloaded => "The node is overloaded: try again.".to_owned(),
        Refusal::Unknown => "The node is stopping, and it is not known whether this was done: look before you do it again.".to_owned(),
        Refusal::Field(broken) => format!("{:?} {}.", broken.field, broken.rule),
        Refusal::MetadataTooLarge => "The message and what goes with it are too large.".to_owned(),
        Refusal::NoAgent => "There is no such agent.".to_owned(),
        Refusal::NotKept => "The message is no longer kept.".to_owned(),
        Refusal::Full { text, .. } => format!("{text}."),
        Refusal::NotAttached | Refusal::AttachedAlready => {
            "Another connection has just taken this place: try again.".to_owned()
        }
        Refusal::Unreadable(_) => "The node cannot read its store: its log says why.".to_owned(),
        // Of calls that no page makes.
        Refusal::NotThere { .. }
        | Refusal::Webhook(..)
        | Refusal::NoSubscription
        | Refusal::KeySubscriptionsFull { .. }
        | Refusal::SubscriptionsFull
        | Refusal::TooManyKeys { .. }
        | Refusal::NoSignup => "This could not be done.".to_owned(),
        Refusal::NotOperator => "Only the node's own key sees this.".to_owned(),
    }
}

/// A text of somebody else: signs that turn a line round or are not seen are shown as a mark.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect())
}

/// Control characters but for line breaks and tabs; those that change the direction of a text, and those without a width.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

/// Digits of a long id that are shown.
const ID_DIGITS: usize = 8;

/// The beginning of an id that was drawn.
fn drawn(agent: &str) -> Option<&str> {
    let is_drawn = agent.len() == 36 && agent.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    agent.get(..ID_DIGITS).filter(|_| is_drawn)
}

/// An agent's id, for people: one that was drawn by its beginning.
pub(crate) fn id(agent: &str) -> Markup {
    match drawn(agent) {
        Some(beginning) => html! { span title=(agent) { (beginning) "…" } },
        None => html! { (plain(agent)) },
    }
}

/// A page around its content.
pub(crate) fn layout(person: &Person, title: &str, content: &Markup) -> Markup {
    let mut places = vec![("/", "Mesh"), ("/ui/rooms", "Rooms"), ("/ui/agents", "Agents")];
    places.push(("/ui/search", "Search"));
    if person.holder.standing() == Standing::Own {
        places.push(("/ui/figures", "Figures"));
    }
    let bar = html! {
        nav aria-label="Views" {
            @for (path, name) in places {
                a href=(path) aria-current=[(name == title).then_some("page")] { (name) }
            }
        }
        form.who method="post" action="/ui/leave" {
            input type="hidden" name="form" value=(person.form);
            span { (plain(&person.name)) }
            button { "Sign out" }
        }
    };
    document(title, Some(&bar), content)
}

/// A whole document. `bar`: beside the name of the program.
fn document(title: &str, bar: Option<&Markup>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (plain(title)) " · clawmesh" }
                link rel="stylesheet" href="/assets/page.css";
                script src="/assets/page.js" defer {}
            }
            body {
                header { a.brand href="/" { "clawmesh" } @if let Some(bar) = bar { (bar) } }
                main { (content) }
            }
        }
    }
}

/// The page at which people sign in.
pub(crate) fn door(is_open: bool, why: Option<&str>) -> Markup {
    document(
        "Sign in",
        None,
        &html! {
            section.door {
                h1 { "Sign in to this node" }
                @if let Some(why) = why { p.problem role="alert" { (plain(why)) } }
                @if is_open {
                    p { "This node checks no keys." }
                } @else {
                    p { "On the machine of the node " code { "clawmesh open" } " opens this page without a key to type. Elsewhere, show a key: "
                        code { "clawmeshd key show" } " prints the node's own." }
                }
                form method="post" action="/ui/enter" {
                    @if !is_open {
                        label { "Key" input name="key" type="password" autocomplete="current-password" required autofocus; }
                    }
                    label { "Your name" input name="name" autocomplete="nickname" placeholder="operator" maxlength="64"; }
                    button.main { "Sign in" }
                }
                p.quiet { "You see what your key sees. What you write is written by an agent of that key." }
            }
        },
    )
}

/// After a link has signed somebody in: it leads to the first page.
pub(crate) fn welcome() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; meta http-equiv="refresh" content="0;url=/"; title { "clawmesh" } link rel="stylesheet" href="/assets/page.css"; }
            body { main { section.door { p { "Signed in. " a href="/" { "To the mesh" } } } } }
        }
    }
}

/// Why there is no page, as one.
pub(crate) fn problem(problem: &Problem) -> Markup {
    let (title, text) = match problem {
        Problem::NotFound => {
            ("Not found", "There is no such page here, or your key does not see it.")
        }
        Problem::Intrusion(Intrusion::Origin) => (
            "Not allowed",
            "Another web page has asked: this node answers its own pages, and those of --http-origin.",
        ),
        Problem::Intrusion(Intrusion::Name) => (
            "Not allowed",
            "This node does not answer under that name: use its address, or start it with --http-host NAME.",
        ),
        Problem::Form => (
            "Not done",
            "The form is not of a page that you have open, or is too large. Open the page anew, and try again.",
        ),
        Problem::Refused(why) => ("Not done", &**why),
        Problem::Busy => ("Busy", "As many pages are open and live as this node takes."),
    };
    document(
        title,
        None,
        &html! {
            section.door { h1 { (title) } p role="alert" { (plain(text)) } p { a href="/" { "To the mesh" } } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_hide_or_turn_text_are_shown_as_marks() {
        assert_eq!(plain("a\nb\tc é"), "a\nb\tc é");
        for bad in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{1b}', '\u{7}', '\u{feff}'] {
            assert_eq!(plain(&format!("x{bad}y")), "x\u{fffd}y", "{bad:?}");
        }
    }
}
