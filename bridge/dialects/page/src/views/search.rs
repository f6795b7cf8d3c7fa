//! Searches over what the node has: a form, and the messages that are found, the newest first.

use std::{collections::BTreeMap, sync::Arc};

use bridge::seam::{
    call::{FoundPage, ListDirect, ListRooms, Search},
    event::Message,
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use maud::{Markup, html};
use mesh::{
    api::search::{Pattern, Spot, Wanted},
    name::id::RoomId,
};

use super::{Problem, cards, layout, messages, plain, rooms::name};
use crate::{
    forms::Fields,
    limits::{FOUND_CHARS_SHOWN, FOUND_SHOWN},
    shared::Shared,
    signing::Person,
    times,
};

/// What a person asks for, as it stands in the form.
#[derive(Default)]
struct Asked {
    text: String,
    room: String,
    from: String,
    since: String,
    before: String,
    after: Option<Spot>,
}

impl Asked {
    fn read(query: Option<&str>) -> Asked {
        let fields = query.and_then(|query| Fields::read(query.as_bytes()));
        let get = |name: &str| {
            let value = fields.as_ref().and_then(|fields| fields.get(name));
            value.unwrap_or_default().trim().to_owned()
        };
        Asked {
            text: get("text"),
            room: get("room"),
            from: get("from"),
            since: get("since"),
            before: get("before"),
            after: Spot::from_text(&get("after")),
        }
    }

    fn is_nothing(&self) -> bool {
        self.text.is_empty() && self.room.is_empty() && self.from.is_empty()
    }

    /// The query of the page that goes on from a message.
    fn going_on(&self, next: Spot) -> String {
        let fields = [
            ("text", &self.text),
            ("room", &self.room),
            ("from", &self.from),
            ("since", &self.since),
            ("before", &self.before),
            ("after", &next.to_text()),
        ];
        let fields = fields.iter().filter(|(_, value)| !value.is_empty());
        fields
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect::<Vec<_>>()
            .join("&")
    }
}

/// As a query has it.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

/// The beginning of a day. `None`: it is no date.
fn day(text: &str) -> Option<u64> {
    let date: Date = text.parse().ok()?;
    let at: Timestamp = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
    u64::try_from(at.as_millisecond()).ok()
}

pub(crate) async fn page(
    shared: &Shared,
    person: &Arc<Person>,
    query: Option<&str>,
) -> Result<Markup, Problem> {
    let asked = Asked::read(query);
    let rooms = rooms(shared, person).await?;
    let found = if asked.is_nothing() { None } else { Some(found(shared, person, &asked).await?) };
    Ok(layout(
        person,
        "Search",
        &html! {
            h1 { "Search" }
            (form(&asked, &rooms))
            @match found {
                None => p.quiet { "All words must be there; " code { "\"some words\"" } " in quotes must stand so, and " code { "wor*" } " begins a word. Texts that are encrypted end to end are not found." },
                Some(Err(why)) => p.problem role="alert" { "The search " (why) "." },
                Some(Ok(found)) => (results(&asked, &found, &rooms)),
            }
        },
    ))
}

/// The names of the rooms that the person sees.
async fn rooms(shared: &Shared, person: &Person) -> Result<BTreeMap<RoomId, String>, Problem> {
    let mut rooms = shared.desk.ask(&person.holder, ListRooms { parent: None }).await?;
    rooms.extend(shared.desk.ask(&person.holder, ListDirect).await?);
    Ok(rooms.iter().map(|room| (room.room, name(room))).collect())
}

/// The page that is asked for, or why that is no search.
async fn found(
    shared: &Shared,
    person: &Person,
    asked: &Asked,
) -> Result<Result<FoundPage, String>, Problem> {
    let pattern = match Pattern::parse(&asked.text) {
        Ok(pattern) => pattern,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let wanted = Wanted {
        pattern,
        room: RoomId::from_uuid(&asked.room),
        from: Some(asked.from.clone()).filter(|from| !from.is_empty()),
        since_ms: day(&asked.since),
        before_ms: day(&asked.before),
        after: asked.after,
        limit: FOUND_SHOWN,
    };
    Ok(Ok(shared.desk.ask(&person.holder, Search(wanted)).await?))
}

fn form(asked: &Asked, rooms: &BTreeMap<RoomId, String>) -> Markup {
    let mut by_name: Vec<(&str, String)> =
        rooms.iter().map(|(room, name)| (&**name, room.to_uuid())).collect();
    by_name.sort_unstable();
    html! {
        form.search method="get" action="/ui/search" role="search" {
            label { "Words" input type="search" name="text" value=(asked.text) maxlength="1024" autofocus; }
            label { "Room"
                select name="room" {
                    option value="" { "any" }
                    @for (name, id) in &by_name { option value=(id) selected[*id == asked.room] { (plain(name)) } }
                }
            }
            label { "Agent" input name="from" value=(asked.from) placeholder="id or name"; }
            label { "Since" input type="date" name="since" value=(asked.since); }
            label { "Before" input type="date" name="before" value=(asked.before); }
            button.main { "Search" }
        }
    }
}

fn results(asked: &Asked, found: &FoundPage, rooms: &BTreeMap<RoomId, String>) -> Markup {
    html! {
        @if found.behind { p.quiet role="status" { "The node is still reading its messages: some are not found yet." } }
        @if found.messages.is_empty() {
            p role="status" { @if found.next.is_some() { "Nothing was found so far." } @else { "Nothing was found." } }
        }
        section aria-label="Messages" { @for message in &found.messages { (one(message, rooms)) } }
        @if let Some(next) = found.next { p { a rel="next" href=(format!("/ui/search?{}", asked.going_on(next))) { "Older messages" } } }
    }
}

fn one(message: &Message, rooms: &BTreeMap<RoomId, String>) -> Markup {
    let said = &message.said;
    let id = message.room.to_uuid();
    // The page of the room that ends with it.
    let upto = message.wall_ms.saturating_add(1);
    let number = message.number.0;
    let shown: String = said.content.chars().take(FOUND_CHARS_SHOWN).collect();
    let room = rooms.get(&message.room).map_or(id.as_str(), String::as_str);
    html! {
        article.message {
            p.by {
                strong { (plain(&said.name)) }
                @if *said.name != *said.agent { " " span.quiet { (super::id(&said.agent)) } }
                " in " a href=(format!("/ui/rooms/{id}?before={upto}#n{number}")) { (plain(room)) }
                " " (times::moment(message.wall_ms)) " " span.number { "#" (number) }
            }
            @match messages::heard(message) {
                Some(heard) => (cards::alone(message, &heard)),
                None => div.body { (plain(&shown)) @if shown.len() < said.content.len() { "…" } },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_read_out_of_a_query_and_goes_on() {
        let asked =
            Asked::read(Some("text=a+%22b+c%22&room=&from=x%26y&since=2026-01-31&after=junk"));
        assert_eq!((&*asked.text, &*asked.from), ("a \"b c\"", "x&y"));
        assert!(asked.after.is_none() && !asked.is_nothing());
        assert!(Asked::read(None).is_nothing() && Asked::read(Some("text=%zz")).is_nothing());
        assert_eq!((day("1970-01-02"), day("soon"), day("")), (Some(86_400_000), None, None));
        let next = asked.going_on(Spot {
            wall_ms: 1,
            room: RoomId([7; 16]),
            number: mesh::name::number::Number(3),
        });
        let again = Asked::read(Some(&next));
        assert_eq!(
            (&again.text, &again.from, &again.since),
            (&asked.text, &asked.from, &asked.since)
        );
        assert!(again.after.is_some());
    }
}
