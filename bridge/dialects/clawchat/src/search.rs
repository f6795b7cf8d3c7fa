//! Searches over what the node has.

use bridge::{seam::call::Search, session::seat::Seat};
use mesh::api::search::{Pattern, Spot, Wanted};
use protocol::{
    reply::{Reply as Frame, SearchResult},
    request,
};

use crate::{codes::Problem, conversation::Turn, encode};

impl Turn {
    pub(crate) fn search(self, seat: &mut Seat, search: request::Search) {
        let wanted = match wanted(&search) {
            Ok(wanted) => wanted,
            Err(why) => return self.refuse(seat, Problem::invalid(why)),
        };
        self.at_any(seat, search.room_id.as_deref(), |turn, seat, room| {
            turn.ask(seat, Search(Wanted { room, ..wanted }), |voice, found| {
                let messages = found.messages.iter();
                Frame::Found(SearchResult {
                    messages: messages
                        .map(|message| encode::message(voice.lobby(), message))
                        .collect(),
                    next: found.next.map(Spot::to_text),
                    behind: found.behind,
                })
            });
        });
    }
}

fn wanted(search: &request::Search) -> Result<Wanted, String> {
    let pattern = Pattern::parse(&search.text).map_err(|why| format!("`text` {why}"))?;
    let time = |field: &str, text: &Option<String>| {
        let parse = |text: &String| {
            encode::unix_ms(text).ok_or_else(|| {
                format!("`{field}` must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
            })
        };
        text.as_ref().map(parse).transpose()
    };
    let after = search.after.as_deref().map(|text| {
        Spot::from_text(text).ok_or_else(|| "`after` must be the `next` of an answer".to_owned())
    });
    let wanted = Wanted {
        pattern,
        room: None,
        from: search.from.clone(),
        since_ms: time("since", &search.since)?,
        before_ms: time("before", &search.before)?,
        after: after.transpose()?,
        limit: usize::try_from(search.limit).unwrap_or(usize::MAX),
    };
    if wanted.limit == 0 {
        return Err("`limit` must be at least 1".to_owned());
    }
    let says_something =
        !wanted.pattern.is_empty() || search.room_id.is_some() || wanted.from.is_some();
    if says_something {
        Ok(wanted)
    } else {
        Err("`text`, `room_id` or `from` must be there".to_owned())
    }
}
