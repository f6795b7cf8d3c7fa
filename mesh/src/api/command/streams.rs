//! Pieces of answers, as agents write them.

use crate::{
    api::rules::{Broken, Field, Rule, at_most, holds, within},
    limits::{PIECE_BYTES_MAX, REPLY_TO_BYTES_MAX, STREAM_ID_BYTES_MAX, TOOL_NAME_BYTES_MAX},
    name::id::{AgentId, RoomId},
    wire::piece::{Piece, PieceKind},
};

/// A piece of an answer.
#[derive(Clone, Debug)]
pub struct NewPiece {
    /// Where the answer is going to be.
    pub room: RoomId,
    /// The agent's own name of the stream.
    pub stream: String,
    /// The message that is answered, as the client names it.
    pub reply_to: Option<String>,
    /// The kind of the piece.
    pub kind: PieceKind,
    /// The text.
    pub content: Option<String>,
    /// The name of a tool.
    pub tool: Option<String>,
    /// JSON text: what the tool is given.
    pub input: Option<String>,
    /// JSON text: what it gave.
    pub result: Option<String>,
}

impl NewPiece {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        within(Field::Stream, &self.stream, STREAM_ID_BYTES_MAX)?;
        at_most(Field::ReplyTo, self.reply_to.as_deref(), REPLY_TO_BYTES_MAX)?;
        at_most(Field::Tool, self.tool.as_deref(), TOOL_NAME_BYTES_MAX)?;
        holds(self.bytes() <= PIECE_BYTES_MAX, Field::Piece, Rule::AtMost(PIECE_BYTES_MAX))
    }

    /// Bytes of its contents.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = [&self.content, &self.tool, &self.input, &self.result];
        parts.into_iter().flatten().map(String::len).sum()
    }

    /// As it is sent.
    pub(crate) fn of(self, agent: AgentId) -> Piece {
        let NewPiece { room: _, stream, reply_to, kind, content, tool, input, result } = self;
        Piece { agent, stream, reply_to, kind, content, tool, input, result }
    }
}
