//! Pieces of answers that are being written: how they travel between nodes. They are nowhere stored, and a lost one is
//! lost: the message that follows has the whole (`docs/decisions/streams.md`).

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    limits::{
        PIECE_BODY_BYTES_MAX, PIECE_BYTES_MAX, REPLY_TO_BYTES_MAX, STREAM_ID_BYTES_MAX,
        TOOL_NAME_BYTES_MAX,
    },
    name::id::{AgentId, NodeId, RoomId},
    wire::{cbor::encode, seal::Seal},
};

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum PieceKind {
    /// More of the text.
    #[n(0)]
    Chunk,
    /// The agent uses a tool.
    #[n(1)]
    ToolCall,
    /// And has its result.
    #[n(2)]
    ToolResult,
    /// A word about the work.
    #[n(3)]
    Activity,
}

/// A piece of an answer that an agent writes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Piece {
    /// The agent.
    #[cbor(n(0), with = "crate::wire::cbor::text")]
    pub agent: AgentId,
    /// The agent's own name of the stream.
    #[n(1)]
    pub stream: String,
    /// The message that is answered, as the client named it.
    #[n(2)]
    pub reply_to: Option<String>,
    /// Its kind.
    #[n(3)]
    pub kind: PieceKind,
    /// The text.
    #[n(4)]
    pub content: Option<String>,
    /// The name of the tool.
    #[n(5)]
    pub tool: Option<String>,
    /// JSON text: what the tool is given.
    #[n(6)]
    pub input: Option<String>,
    /// JSON text: what it gave.
    #[n(7)]
    pub result: Option<String>,
}

impl Piece {
    /// Bytes of its contents.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = [&self.content, &self.tool, &self.input, &self.result];
        parts.into_iter().flatten().map(String::len).sum()
    }

    /// Whether it is within the bounds that hold for all: another node's is not shown otherwise.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let short = |text: &Option<String>, max| text.as_ref().is_none_or(|text| text.len() <= max);
        (1..=STREAM_ID_BYTES_MAX).contains(&self.stream.len())
            && short(&self.reply_to, REPLY_TO_BYTES_MAX)
            && short(&self.tool, TOOL_NAME_BYTES_MAX)
            && self.bytes() <= PIECE_BYTES_MAX
    }
}

/// The place of a piece: sealed, it opens in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceSpot {
    /// The room.
    pub room: RoomId,
    /// The node that sends it.
    pub node: NodeId,
    /// Which start of that node.
    pub boot: u64,
    /// The stream, of all of this start.
    pub run: u64,
    /// The piece, of all of this start: it rises, also from one stream to another.
    pub piece: u64,
}

impl PieceSpot {
    fn bytes(&self) -> Vec<u8> {
        // Longer than the place of an entry, and so never one.
        let numbers = [self.boot, self.run, self.piece].map(u64::to_be_bytes).concat();
        [&b"clawmesh piece"[..], &self.room.0, &self.node.0, &numbers].concat()
    }
}

/// A piece as it is sent to one peer.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SentPiece {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// See [`PieceSpot`].
    #[n(1)]
    pub boot: u64,
    /// See [`PieceSpot`].
    #[n(2)]
    pub run: u64,
    /// See [`PieceSpot`].
    #[n(3)]
    pub piece: u64,
    /// The [`Piece`], sealed where the room is.
    #[n(4)]
    pub body: ByteVec,
}

impl SentPiece {
    /// As it is sent from a node. `seal`: of the room, if it is sealed.
    #[must_use]
    pub fn new(spot: PieceSpot, seal: Option<&Seal>, piece: &Piece) -> SentPiece {
        let plain = encode(piece);
        let body = seal.map(|seal| seal.of_pieces().seal(&spot.bytes(), &plain)).unwrap_or(plain);
        let PieceSpot { room, node: _, boot, run, piece } = spot;
        SentPiece { room, boot, run, piece, body: body.into() }
    }

    /// Its place, as sent by `node`.
    #[must_use]
    pub fn spot(&self, node: NodeId) -> PieceSpot {
        let SentPiece { room, boot, run, piece, .. } = *self;
        PieceSpot { room, node, boot, run, piece }
    }

    /// The piece in it. `None`: it cannot be read, or is beyond its bounds.
    #[must_use]
    pub fn open(&self, node: NodeId, seal: Option<&Seal>) -> Option<Piece> {
        if self.body.len() > PIECE_BODY_BYTES_MAX {
            return None;
        }
        let opened = match seal {
            Some(seal) => Some(seal.of_pieces().open(&self.spot(node).bytes(), &self.body)?),
            None => None,
        };
        let plain = opened.as_deref().unwrap_or(&self.body);
        minicbor::decode(plain).ok().filter(Piece::is_sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{
        group::Group,
        id::{KeyPrint, RoomKey},
    };

    fn piece() -> Piece {
        Piece {
            agent: "a".into(),
            stream: "s".to_owned(),
            reply_to: None,
            kind: PieceKind::Chunk,
            content: Some("for few eyes".to_owned()),
            tool: None,
            input: None,
            result: None,
        }
    }

    fn seal(key: &str) -> Seal {
        Seal::of_room(Group::Key(KeyPrint::of(key)), &RoomKey::of(key), RoomId([1; 16]))
    }

    const SPOT: PieceSpot =
        PieceSpot { room: RoomId([1; 16]), node: NodeId([2; 32]), boot: 3, run: 4, piece: 5 };

    #[test]
    fn a_sealed_piece_opens_with_its_key_and_in_its_place_alone() {
        let (one, two) = (seal("one"), seal("two"));
        let sent = SentPiece::new(SPOT, Some(&one), &piece());
        assert!(!sent.body.windows(3).any(|bytes| bytes == b"few"));
        assert_eq!(sent.open(SPOT.node, Some(&one)), Some(piece()));
        assert_eq!(sent.open(SPOT.node, Some(&two)), None, "another key");
        assert_eq!(sent.open(SPOT.node, None), None, "no key");
        assert_eq!(sent.open(NodeId([9; 32]), Some(&one)), None, "another node");
        let elsewhere = [
            SentPiece { room: RoomId([9; 16]), ..sent.clone() },
            SentPiece { boot: 9, ..sent.clone() },
            SentPiece { run: 9, ..sent.clone() },
            SentPiece { piece: 9, ..sent.clone() },
        ];
        for sent in elsewhere {
            assert_eq!(sent.open(SPOT.node, Some(&one)), None, "{sent:?}");
        }
    }

    #[test]
    fn a_piece_beyond_its_bounds_is_none() {
        let large = |len| Piece { content: Some("x".repeat(len)), ..piece() };
        let read = |piece: &Piece| SentPiece::new(SPOT, None, piece).open(SPOT.node, None);
        assert_eq!(read(&piece()), Some(piece()));
        assert!(read(&large(PIECE_BYTES_MAX)).is_some());
        assert_eq!(read(&large(PIECE_BYTES_MAX + 1)), None);
        assert_eq!(read(&Piece { stream: String::new(), ..piece() }), None);
        assert_eq!(read(&Piece { stream: "s".repeat(129), ..piece() }), None);
        let largest = Piece {
            agent: "a".repeat(128).into(),
            stream: "s".repeat(STREAM_ID_BYTES_MAX),
            reply_to: Some("r".repeat(REPLY_TO_BYTES_MAX)),
            ..large(PIECE_BYTES_MAX)
        };
        let sealed = SentPiece::new(SPOT, Some(&seal("one")), &largest);
        assert!(sealed.body.len() <= PIECE_BODY_BYTES_MAX, "{}", sealed.body.len());
    }
}
