//! The pieces of an answer, as the clients of its run are told of them.

use mesh::{
    limits::CONTENT_BYTES_MAX,
    name::id::MessageId,
    wire::piece::{Piece, PieceKind},
};
use serde_json::{Value, json};

use crate::limits::TOOL_EVENTS_MAX;

/// An event of a run: its type, its payload in an envelope, and the one under its own name, if it has one.
pub(crate) type RunEvent = (&'static str, Value, Option<Value>);

/// All that was streamed of one answer.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    /// `None`: it got longer than any message.
    text: Option<String>,
    /// Whether there was any.
    began: bool,
    /// Tools so far: their names, each with the number of its last use.
    uses: u64,
    tools: Vec<(String, u64)>,
    /// Events of tools for a client that is answered first.
    kept: Vec<RunEvent>,
}

impl Streamed {
    /// The event of a piece, if it has one.
    pub(crate) fn event(&mut self, piece: &Piece) -> Option<RunEvent> {
        let both = |name, payload: Value| (name, payload.clone(), Some(payload));
        match piece.kind {
            PieceKind::Chunk => {
                let content = piece.content.as_ref().filter(|text| !text.is_empty())?;
                self.push(content);
                Some(both("chunk", json!({"content": content})))
            }
            PieceKind::ToolCall => {
                let (name, arguments) = (tool(piece), value(piece.input.as_deref()));
                self.uses += 1;
                self.tools.retain(|(known, _)| *known != name);
                self.tools.push((name.clone(), self.uses));
                if self.tools.len() > TOOL_EVENTS_MAX {
                    self.tools.remove(0);
                }
                let call = json!({
                    "id": format!("call-{}", self.uses), "name": name, "arguments": arguments,
                    "toolName": name, "toolInput": arguments,
                });
                Some(both("tool.call", call))
            }
            PieceKind::ToolResult => {
                let (name, result) = (tool(piece), value(piece.result.as_deref()));
                let used = self.tools.iter().find(|(known, _)| *known == name);
                let id = used.map_or(self.uses, |(_, id)| *id);
                let result = json!({
                    "id": format!("call-{id}"), "name": name, "toolName": name,
                    "is_error": result["is_error"] == true, "result": result,
                    "arguments": value(piece.input.as_deref()),
                });
                Some(both("tool.result", result))
            }
            PieceKind::Activity => {
                let phase = piece.content.as_deref().unwrap_or("working");
                let mut activity = json!({"phase": phase, "iteration": 0});
                if let Some(tool) = &piece.tool {
                    activity["tool"] = json!(tool);
                }
                Some(("activity", activity, None))
            }
        }
    }

    fn push(&mut self, content: &str) {
        let before = if self.began { self.text.take() } else { Some(String::new()) };
        self.began = true;
        let fits = before.filter(|text| text.len() + content.len() <= CONTENT_BYTES_MAX);
        self.text = fits.map(|text| text + content);
    }

    /// An event of a tool waits until the client is answered: of too many the first ones.
    pub(crate) fn keep(&mut self, event: RunEvent) {
        let is_of_tool = event.0.starts_with("tool.");
        if is_of_tool && self.kept.len() < TOOL_EVENTS_MAX {
            self.kept.push(event);
        }
    }

    /// Those that wait.
    pub(crate) fn take_kept(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.kept)
    }

    /// The part of the answer that was not streamed: all of it if nothing was, and none if something else was.
    pub(crate) fn rest<'a>(&self, whole: &'a str) -> Option<&'a str> {
        let rest = if self.began { whole.strip_prefix(self.text.as_deref()?)? } else { whole };
        (!rest.is_empty()).then_some(rest)
    }
}

/// Whether a piece is of this run. One that names none is of the only one that its agent has been asked there.
pub(crate) fn is_of(piece: &Piece, run: MessageId, is_only: bool) -> bool {
    match &piece.reply_to {
        Some(answers) => MessageId::from_uuid(answers) == Some(run),
        None => is_only,
    }
}

fn tool(piece: &Piece) -> String {
    piece.tool.clone().unwrap_or_else(|| "tool".to_owned())
}

fn value(json: Option<&str>) -> Value {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(kind: PieceKind, text: &str) -> Piece {
        Piece {
            agent: "a".into(),
            stream: "s".to_owned(),
            reply_to: None,
            kind,
            content: Some(text.to_owned()),
            tool: Some("grep".to_owned()),
            input: Some(r#"{"for":"x"}"#.to_owned()),
            result: Some(r#"{"is_error":true}"#.to_owned()),
        }
    }

    #[test]
    fn the_last_chunk_is_the_part_that_was_not_streamed() {
        let mut streamed = Streamed::default();
        assert_eq!(streamed.rest("one two"), Some("one two"), "nothing was streamed");
        streamed.event(&piece(PieceKind::Chunk, "one"));
        assert_eq!(streamed.rest("one two"), Some(" two"));
        assert_eq!(streamed.rest("one"), None);
        assert_eq!(streamed.rest("two"), None, "a piece was lost, or the agent thought better");
        streamed.event(&piece(PieceKind::Chunk, &"x".repeat(CONTENT_BYTES_MAX)));
        streamed.event(&piece(PieceKind::Chunk, "y"));
        assert_eq!(streamed.rest("y"), None, "more than any message has");
    }

    #[test]
    fn a_result_has_the_id_of_its_call_and_so_many_events_are_kept() {
        let mut streamed = Streamed::default();
        let (name, call, flat) = streamed.event(&piece(PieceKind::ToolCall, "")).unwrap();
        assert_eq!((name, flat.as_ref()), ("tool.call", Some(&call)));
        assert_eq!((&call["toolInput"]["for"], &call["id"]), (&json!("x"), &json!("call-1")));
        let other = Piece { tool: Some("ls".to_owned()), ..piece(PieceKind::ToolCall, "") };
        assert_eq!(streamed.event(&other).unwrap().1["id"], "call-2");
        let (_, result, _) = streamed.event(&piece(PieceKind::ToolResult, "")).unwrap();
        assert_eq!((&result["id"], &result["is_error"]), (&json!("call-1"), &json!(true)));
        for _ in 0..2 * TOOL_EVENTS_MAX {
            let event = streamed.event(&other).unwrap();
            streamed.keep(event);
        }
        let chunk = streamed.event(&piece(PieceKind::Chunk, "x")).unwrap();
        streamed.keep(chunk);
        assert_eq!(streamed.take_kept().len(), TOOL_EVENTS_MAX);
    }
}
