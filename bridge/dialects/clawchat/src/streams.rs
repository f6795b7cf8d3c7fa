//! Streams: answers as they are written (spec §3).

use bridge::{seam::call::Stream, session::seat::Seat};
use mesh::{
    api::command::NewPiece,
    wire::piece::{self, Piece},
};
use protocol::{
    event,
    reply::{Empty, Reply as Frame},
    request,
    value::{Metadata, PieceKind},
};

use crate::conversation::Turn;

impl Turn {
    pub(crate) fn stream(self, seat: &mut Seat, piece: request::Stream) {
        let request::Stream { room_id, stream_id, reply_to, kind, content, tool, input, result } =
            piece;
        self.at(seat, &room_id, move |turn, seat, room| {
            let piece = NewPiece {
                room,
                stream: stream_id,
                reply_to,
                kind: to_mesh(kind),
                content,
                tool,
                input: input.map(|json| json.get().to_owned()),
                result: result.map(|json| json.get().to_owned()),
            };
            turn.ask(seat, Stream(piece), |_, ()| Frame::Streamed(Empty {}));
        });
    }
}

/// A piece, for clients that have asked for them.
pub(crate) fn written(room_id: String, name: &str, piece: &Piece) -> event::Piece {
    // Another node may pass on what is no JSON.
    let json = |text: &Option<String>| text.as_deref().and_then(|text| Metadata::parse(text).ok());
    event::Piece {
        room_id,
        agent_id: piece.agent.to_string(),
        agent_name: name.to_owned(),
        stream_id: piece.stream.clone(),
        reply_to: piece.reply_to.clone(),
        kind: of_mesh(piece.kind),
        content: piece.content.clone(),
        tool: piece.tool.clone(),
        input: json(&piece.input),
        result: json(&piece.result),
    }
}

fn to_mesh(kind: PieceKind) -> piece::PieceKind {
    match kind {
        PieceKind::Chunk => piece::PieceKind::Chunk,
        PieceKind::ToolCall => piece::PieceKind::ToolCall,
        PieceKind::ToolResult => piece::PieceKind::ToolResult,
        PieceKind::Activity => piece::PieceKind::Activity,
    }
}

fn of_mesh(kind: piece::PieceKind) -> PieceKind {
    match kind {
        piece::PieceKind::Chunk => PieceKind::Chunk,
        piece::PieceKind::ToolCall => PieceKind::ToolCall,
        piece::PieceKind::ToolResult => PieceKind::ToolResult,
        piece::PieceKind::Activity => PieceKind::Activity,
    }
}
