//! Answers that are being written, shown as they come: the text once, however many pieces it had.

use std::collections::BTreeMap;

use protocol::event::Piece;
use protocol::object::Message;
use protocol::value::PieceKind;

use crate::format;
use crate::limits::{LIVE_BYTES_MAX, LIVE_STREAMS_MAX};

/// An agent's stream.
type Name = (String, String);

#[derive(Debug, Default)]
struct Shown {
    reply_to: Option<String>,
    text: String,
}

/// The streams that have been shown, and whose message has not come.
#[derive(Debug, Default)]
pub(super) struct Live {
    streams: BTreeMap<Name, Shown>,
    /// The stream whose line is open.
    open: Option<Name>,
}

/// A message, as it is to be shown after the pieces.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// As any other. First comes this: a line may be open.
    Whole(&'static str),
    /// Its text stands above already. First comes this: the rest of it, and the end of the line.
    Above(String),
}

impl Live {
    /// What a piece adds to the screen.
    pub(super) fn piece(&mut self, piece: &Piece) -> String {
        let name = (piece.agent_id.clone(), piece.stream_id.clone());
        let is_text = piece.kind == PieceKind::Chunk;
        let Some(text) = words(piece) else { return String::new() };
        let mut out = String::new();
        let known = self.streams.contains_key(&name);
        if !known && self.streams.len() >= LIVE_STREAMS_MAX {
            self.streams.pop_first();
        }
        if !is_text || self.open.as_ref() != Some(&name) {
            out.push_str(self.close());
        }
        let shown = self.streams.entry(name.clone()).or_default();
        shown.reply_to.clone_from(&piece.reply_to);
        let who = format::name(&piece.agent_name);
        if !is_text {
            out.push_str(&format!("  {who} … ({})\n", format::printable(&text, " ")));
            return out;
        }
        if shown.text.len() + text.len() <= LIVE_BYTES_MAX {
            shown.text.push_str(&text);
        } else {
            // It is no beginning of the message any more, which is shown whole.
            shown.text = String::from("\0");
        }
        if self.open.as_ref() != Some(&name) {
            out.push_str(&format!("  {who} … "));
            self.open = Some(name);
        }
        out.push_str(&format::printable(&text, "\n  "));
        out
    }

    /// A message comes: of the agent that streamed it, or another one.
    pub(super) fn message(&mut self, message: &Message) -> After {
        let found = self.streams.iter().find(|((agent, _), shown)| {
            let said = shown.text.trim_end_matches('\n');
            let answers = shown.reply_to.is_none() || shown.reply_to == message.reply_to_message;
            *agent == message.agent_id && answers && !said.is_empty()
        });
        let Some(name) = found.map(|(name, _)| name.clone()) else {
            return After::Whole(self.close());
        };
        let was_open = self.open.as_ref() == Some(&name);
        let end = self.close();
        let shown = self.streams.remove(&name).unwrap_or_default();
        // The newline that ends a text is no part of its message.
        if message.content == shown.text.trim_end_matches('\n') {
            return After::Above(end.to_owned());
        }
        match message.content.strip_prefix(&shown.text) {
            Some(rest) if was_open => {
                After::Above(format!("{}\n", format::printable(rest, "\n  ")))
            }
            Some(_) | None => After::Whole(end),
        }
    }

    /// Ends the line that is open.
    fn close(&mut self) -> &'static str {
        if self.open.take().is_some() { "\n" } else { "" }
    }
}

/// The words of a piece.
fn words(piece: &Piece) -> Option<String> {
    let tool = piece.tool.as_deref().unwrap_or("tool");
    match piece.kind {
        PieceKind::Chunk => piece.content.clone().filter(|text| !text.is_empty()),
        PieceKind::ToolCall => Some(format!("uses {tool}")),
        PieceKind::ToolResult => Some(format!("has the result of {tool}")),
        PieceKind::Activity => {
            Some(piece.content.clone().or_else(|| piece.tool.clone()).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(stream: &str, kind: PieceKind, text: &str) -> Piece {
        Piece {
            room_id: "r".to_owned(),
            agent_id: "bob".to_owned(),
            agent_name: "bob".to_owned(),
            stream_id: stream.to_owned(),
            reply_to: None,
            kind,
            content: Some(text.to_owned()),
            tool: Some("grep".to_owned()),
            input: None,
            result: None,
        }
    }

    fn message(agent: &str, content: &str) -> Message {
        let json = serde_json::json!({
            "message_id": "m", "room_id": "r", "agent_id": agent, "agent_name": agent, "content": content,
            "timestamp": "2026-01-01T00:00:00Z", "seq": 1,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_text_that_came_in_pieces_is_shown_once() {
        let mut live = Live::default();
        assert_eq!(live.piece(&piece("s", PieceKind::Chunk, "one\n")), "  bob … one\n  ");
        assert_eq!(live.piece(&piece("s", PieceKind::Chunk, "two")), "two");
        assert_eq!(live.message(&message("bob", "one\ntwo")), After::Above("\n".to_owned()));
        assert_eq!(live.message(&message("bob", "next")), After::Whole(""));
        live.piece(&piece("s", PieceKind::Chunk, "one"));
        let rest = live.message(&message("bob", "one more"));
        assert_eq!(rest, After::Above(" more\n".to_owned()), "the last piece was lost");
        live.piece(&piece("s", PieceKind::Chunk, "one\n"));
        let rest = live.message(&message("bob", "one\ntwo"));
        assert_eq!(rest, After::Above("two\n".to_owned()), "it ended at once");
        live.piece(&piece("s", PieceKind::Chunk, "two"));
        assert_eq!(live.message(&message("bob", "one two")), After::Whole("\n"), "the first was");
        assert!(live.streams.is_empty() && live.open.is_none());
    }

    #[test]
    fn others_in_between_begin_lines_of_their_own() {
        let mut live = Live::default();
        live.piece(&piece("s", PieceKind::Chunk, "one"));
        assert_eq!(live.message(&message("ann", "hello")), After::Whole("\n"));
        assert_eq!(live.piece(&piece("s", PieceKind::Chunk, " two")), "  bob …  two");
        assert_eq!(live.piece(&piece("s", PieceKind::ToolCall, "")), "\n  bob … (uses grep)\n");
        assert_eq!(live.message(&message("bob", "one two")), After::Above(String::new()));
        for nth in 0..2 * LIVE_STREAMS_MAX {
            live.piece(&piece(&nth.to_string(), PieceKind::Chunk, "x"));
        }
        assert_eq!(live.streams.len(), LIVE_STREAMS_MAX);
    }
}
