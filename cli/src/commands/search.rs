//! `clawmesh search`.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use protocol::limits::SEARCH_LIMIT_DEFAULT;
use protocol::object::Message;
use protocol::request;

use crate::context::Context;
use crate::format;
use crate::outcome::{Failure, Outcome};

/// Messages of one answer.
const PAGE: u64 = 100;

/// Find messages of all rooms that your key sees, the newest first.
///
/// All words must be there. "some words" in quotes must stand so, and wor* begins a word. Texts that are encrypted end to end are not
/// found.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Words, in quotes for the shell: 'deploy "went wrong" fail*'
    #[arg(required_unless_present_any = ["room", "from"], default_value = "", hide_default_value = true)]
    pub text: String,
    /// Only in this room: its id, or exact name
    #[arg(long)]
    pub room: Option<String>,
    /// Only messages of an agent of this id, or of exactly this name
    #[arg(long, value_name = "AGENT")]
    pub from: Option<String>,
    /// Only messages since then: 30m, 2h or 7d ago, a date, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Only messages before then
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub before: Option<Timestamp>,
    /// How many messages at most
    #[arg(long, value_name = "N", default_value_t = SEARCH_LIMIT_DEFAULT)]
    pub limit: u64,
}

/// A moment, as people say it.
fn time(text: &str) -> Result<Timestamp, &'static str> {
    const FORM: &str =
        "give 30m, 2h or 7d, a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z";
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        return date.to_zoned(TimeZone::UTC).map(|day| day.timestamp()).map_err(|_| FORM);
    }
    let unit = text.chars().last().ok_or(FORM)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 24 * 3_600,
        'w' => 7 * 24 * 3_600,
        _ => return Err(FORM),
    };
    let count: u32 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| FORM)?;
    Timestamp::now()
        .checked_sub(SignedDuration::from_secs(i64::from(count) * seconds))
        .map_err(|_| FORM)
}

pub(crate) async fn run(cx: &Context, args: Search) -> Result<Outcome, Failure> {
    let client = cx.client().await?;
    let room_id = cx.some_room(&client, args.room.as_deref()).await?;
    let mut names = HashMap::new();
    if !cx.output.is_json() {
        let rooms = client.call(request::ListRooms { parent_id: None }).await?.rooms;
        names.extend(rooms.into_iter().map(|room| (room.room_id, room.name)));
    }
    let mut ask = request::Search {
        text: args.text,
        room_id,
        from: args.from,
        since: args.since.map(|time| time.to_string()),
        before: args.before.map(|time| time.to_string()),
        after: None,
        limit: 0,
    };
    let (mut shown, mut behind) = (0, false);
    while shown < args.limit {
        ask.limit = (args.limit - shown).min(PAGE);
        let found = client.call(ask.clone()).await?;
        behind |= found.behind;
        for message in &found.messages {
            shown += 1;
            cx.output.show(message, || vec![line(cx, &names, message)])?;
        }
        ask.after = found.next;
        if ask.after.is_none() {
            break;
        }
    }
    if shown == 0 {
        cx.output.note_empty("nothing found")?;
    }
    if behind {
        cx.output
            .note("clawmesh: the node is still reading its messages: some are not found yet")?;
    }
    Ok(Outcome::Done)
}

/// A message and its day and room, for messages of many rooms stand among each other.
fn line(cx: &Context, names: &HashMap<String, String>, message: &Message) -> String {
    let day = message.timestamp.split('T').next().unwrap_or_default();
    let room = names.get(&message.room_id).unwrap_or(&message.room_id);
    format!("{day} {} {}", format::name(room), format::message(&cx.output, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_as_people_say_it() {
        let at = |text: &str| time(text).unwrap().to_string();
        assert_eq!(at("2026-01-31"), "2026-01-31T00:00:00Z");
        assert_eq!(at("2026-01-31T12:00:00+02:00"), "2026-01-31T10:00:00Z");
        let then = time("2h").unwrap();
        let ago = Timestamp::now().duration_since(then).as_secs();
        assert!((7_200..7_300).contains(&ago), "{ago}");
        for bad in ["", "h", "2", "2y", "yesterday", "-1h", "2é"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
