//! Carrying: what a node that follows a sealed room, a member that does not, and another follower that is never there at the same time
//! say to each other (`docs/decisions/carrying.md`).

use std::fmt;

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    name::id::{LogId, NodeId, RoomId, sha256},
    wire::{
        message::{ApartBody, Head},
        record::{Apart, Record, RecordKey},
        run::Run,
        seal::Token,
    },
};

/// A node for which something is carried.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Awaited {
    /// The node.
    #[n(0)]
    pub node: NodeId,
    /// It shows this node that a follower has asked the carrier: see [`Token::carries`].
    #[n(1)]
    pub pass: Token,
    /// What it is known to have of the room.
    #[n(2)]
    pub heads: Vec<Head>,
}

/// A word about things that are carried. Over the link of the node that says it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Carrying {
    /// To a member that does not have the room: carry it for these nodes. Without any: no more. Answered by `Holds`.
    #[n(0)]
    Please {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// The nodes that are to get it.
        #[n(1)]
        nodes: Vec<Awaited>,
    },
    /// The answer, and after each thing that was handed over: it is durable at the sender of this.
    #[n(1)]
    Holds {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// Up to here all of the named nodes have each log, or the sender of this holds it for them.
        #[n(1)]
        heads: Vec<Head>,
        /// It takes no more at present.
        #[n(2)]
        full: bool,
    },
    /// To such a node: the sender of this carries these rooms for it.
    #[n(2)]
    Offers(#[n(0)] Vec<(RoomId, Token)>),
    /// The answer: so far the sender is there. Given again whenever it has more.
    #[n(3)]
    Has {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// One head for each log.
        #[n(1)]
        heads: Vec<Head>,
    },
}

impl Carrying {
    /// Its longest list.
    pub(super) fn length(&self) -> (usize, usize) {
        use crate::limits::{
            CARRIED_HEADS_MAX, CARRIED_NODES_MAX, CARRY_OFFERS_MAX, LOGS_PER_ROOM_MAX,
        };
        match self {
            Carrying::Please { nodes, .. } => {
                let heads: usize = nodes.iter().map(|node| node.heads.len()).sum();
                if nodes.len() > CARRIED_NODES_MAX {
                    (nodes.len(), CARRIED_NODES_MAX)
                } else {
                    (heads, CARRIED_HEADS_MAX)
                }
            }
            Carrying::Holds { heads, .. } | Carrying::Has { heads, .. } => {
                (heads.len(), 2 * LOGS_PER_ROOM_MAX)
            }
            Carrying::Offers(rooms) => (rooms.len(), CARRY_OFFERS_MAX),
        }
    }
}

/// Things of one room that are carried: handed over, or given on.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Parcel<R = Run> {
    /// The node that has handed them over. `None`: the sender does so now.
    #[n(0)]
    pub of: Option<NodeId>,
    /// The room.
    #[n(1)]
    pub room: RoomId,
    /// Whole runs, each log's in order.
    #[n(2)]
    pub runs: Vec<R>,
    /// Their bodies that are apart.
    #[n(3)]
    pub bodies: Vec<ApartBody>,
    /// Records of the group, where the room is its sealed directory.
    #[n(4)]
    pub records: Vec<Record>,
    /// The same of bytes that travel apart from records.
    #[n(5)]
    pub contents: Vec<Whole>,
}

/// A record, and its bytes that travel apart: with it, so that nobody takes or keeps any that its owner has not signed.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Whole {
    /// The record.
    #[n(0)]
    pub record: Record,
    /// Its bytes, as they are written and sent.
    #[n(1)]
    pub bytes: ByteVec,
}

impl Whole {
    /// Whether the bytes are those that the record says. Costly: done off the engine's thread.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.record.apart.is_some_and(|apart| apart == Apart::of(&self.bytes))
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Whole({:?}, {} bytes)", self.record.id, self.bytes.len())
    }
}

impl<R> Parcel<R> {
    /// Its longest list.
    pub(super) fn length(&self) -> usize {
        let records = self.records.len().max(self.contents.len());
        self.runs.len().max(self.bodies.len()).max(records)
    }
}

/// One thing that is carried, as a store has it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Load {
    /// A run, with those of its bodies that travel apart.
    #[n(0)]
    Run(#[n(0)] Run, #[n(1)] Vec<ApartBody>),
    /// A record.
    #[n(1)]
    Record(#[n(0)] Record),
    /// A record with its bytes apart.
    #[n(2)]
    Whole(#[n(0)] Whole),
}

impl Load {
    /// The entries that it brings: of a log, after one and up to another.
    #[must_use]
    pub fn place(&self) -> (LogId, u64, u64) {
        match self {
            Load::Run(run, _) => (run.log, run.first.saturating_sub(1), run.last()),
            Load::Record(record) => {
                (log_of_record(record), record.stamp.0.saturating_sub(1), record.stamp.0)
            }
            Load::Whole(Whole { record, .. }) => {
                let stamp = record.stamp.0;
                (log_of_bytes(record), stamp.saturating_sub(1), stamp)
            }
        }
    }
}

fn log_of_record(record: &Record) -> LogId {
    let key = RecordKey { id: record.id, owner: Some(record.owner()) };
    record_log(record.collection.0, key)
}

fn log_of_bytes(record: &Record) -> LogId {
    bytes_log(log_of_record(record))
}

/// The log as which a record is carried: its head is the record's stamp. No log of a room is called so.
#[must_use]
pub fn record_log(collection: u16, key: RecordKey) -> LogId {
    let owner = key.owner.map_or([0; 16], |owner| owner.0);
    let parts: [&[u8]; 4] =
        [b"clawmesh carried record", &collection.to_be_bytes(), &key.id.0, &owner];
    LogId { author: NodeId(sha256(&parts)), incarnation: OF_RECORD }
}

/// The log as which the bytes apart of the record of such a log are carried: its head is the record's stamp, too.
#[must_use]
pub fn bytes_log(of_record: LogId) -> LogId {
    LogId { incarnation: OF_BYTES, ..of_record }
}

/// Incarnations of such logs: no node comes to so many.
const OF_RECORD: u64 = u64::MAX;
const OF_BYTES: u64 = u64::MAX - 1;

/// Whether something is carried as a state, of which a later one takes the place: a record, or its bytes.
#[must_use]
pub fn is_state(log: LogId) -> bool {
    log.incarnation == OF_RECORD || is_of_bytes(log)
}

/// Whether it is the bytes of a record.
#[must_use]
pub fn is_of_bytes(log: LogId) -> bool {
    log.incarnation == OF_BYTES
}

/// What a carrier keeps of one room of one node, beside the things themselves.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Carriage {
    /// The nodes that are to get it, with what they have as far as they, or the node that asked, have said.
    #[n(0)]
    pub nodes: Vec<Awaited>,
    /// When it was asked for last. Unix milliseconds, by the carrier's clock.
    #[n(1)]
    pub asked_ms: u64,
}

/// The place of one carried thing: which node has handed it over, of which room, and after which entry of which log it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CarriedAt {
    /// The node.
    pub of: NodeId,
    /// The room.
    pub room: RoomId,
    /// The log.
    pub log: LogId,
    /// The entry.
    pub after: u64,
}

/// The outline of one carried thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CarriedHead {
    /// Its last entry.
    #[n(0)]
    pub upto: u64,
    /// Its length.
    #[n(1)]
    pub bytes: u64,
    /// When it came. Unix milliseconds, by the carrier's clock.
    #[n(2)]
    pub since_ms: u64,
}

/// What this node owes another one of a room that both follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Owed {
    /// Of the group's sealed directory: the other node was in step with all of the group's rooms, at some time.
    #[n(0)]
    pub met: bool,
    /// It has at least this, and not all of what is here. `None`: it has all.
    #[n(1)]
    pub heads: Option<Vec<Head>>,
    /// Of the group's sealed directory: records with this stamp or a later one may be news to it.
    #[n(2)]
    pub records: Option<u64>,
}
