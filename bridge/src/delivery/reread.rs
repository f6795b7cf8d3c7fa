//! Messages that are read again from the delivery log, as one reader gets them.

use std::sync::Arc;

use mesh::name::id::RoomId;

use super::{
    hub::Hub,
    link::{Link, Me},
    outbox::{Lag, Numbered, Page},
};
use crate::{
    backend::{ReadError, Row},
    seam::{
        answer::RoomFacts,
        event::{Event, Message, Rendered, Voice},
    },
};

/// A message and its mention of the reader, if it mentions the reader. Nothing if it is the reader's own, can no longer
/// be shown, or is not shown in this voice.
pub(crate) fn frames(
    me: &Me,
    voice: &Arc<dyn Voice>,
    room: RoomId,
    row: Row,
) -> (Option<Rendered>, Option<Rendered>) {
    if row.is_kept_from(Some(&me.agent)) {
        return (None, None);
    }
    let Some(message) = Message::read(room, row) else { return (None, None) };
    if message.said.agent == me.agent && !message.reaches_its_author() {
        return (None, None);
    }
    let mentioned = message.said.mentions.contains(&me.agent);
    let mention = mentioned.then(|| Event::Mentioned(message.clone()));
    let mention = mention.and_then(|mention| Rendered::new(mention, voice));
    (Rendered::new(Event::Said(message), voice), mention)
}

/// Whether a message is handed over here.
pub(crate) fn is_given(facts: Option<&RoomFacts>, row: &Row) -> bool {
    let author = row.said.as_ref().map(|said| &said.agent);
    let withheld = facts.zip(author).and_then(|(facts, author)| facts.withheld(author));
    withheld.is_none()
}

/// Reads a page of the delivery log for one member, and writes it in the member's voice.
pub(crate) fn page(hub: &Hub, link: &Link, lag: Lag) -> Result<Page, ReadError> {
    let Lag { room, after, came, upto, rows } = lag;
    let rows = hub.reads().page_of_arrival(room, after, came, rows)?;
    let last = rows.last().map(|row| row.number);
    let mut messages = Vec::with_capacity(rows.len());
    if let (Some(me), Some(voice)) = (link.me(), link.voice()) {
        let facts = hub.facts(room);
        for row in rows.into_iter().filter(|row| is_given(facts.as_ref(), row)) {
            let number = row.number;
            if let (Some(frame), mention) = frames(me, voice, room, row) {
                messages.push(Numbered { number, frame, mention });
            }
        }
    }
    let judged = came > mesh::name::number::Number::ZERO;
    Ok(Page { after, upto, last, judged, frames: messages })
}
