//! Messages between nodes. CBOR; [`Message::decode`] bounds and checks, [`Message::verify`] checks
//! signatures, and only then does an engine see it.

mod halves;
pub mod traits;

use minicbor::{Decode, Encode, bytes::ByteVec};
use thiserror::Error;

use crate::{
    limits::FRAME_BYTES_MAX,
    name::{
        digest::Digest,
        id::{LogId, MeshId, NodeId, RoomId},
        identity::{Epoch, Identity, Judge, LinkSecret, Strict},
        number::{Era, Number},
    },
    records::collection::may_be_sent,
    wire::{
        carry::{Carrying, Parcel, Whole},
        cbor::encode,
        comparing::Comparing,
        contents::{Content, SentContents, WantedContents},
        copies::{AgentState, Copied},
        entry::Parted,
        piece::SentPiece,
        record::Record,
        replaced::{ReplacedState, SentReplaced, WantedReplaced},
        roster::RosterNews,
        run::{BadRun, Certificate, Run, Verified},
        seal::Token,
    },
};

/// Entries `after + 1` … `upto` of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Span {
    /// The log.
    #[n(0)]
    pub log: LogId,
    /// Exclusive.
    #[n(1)]
    pub after: u64,
    /// Inclusive.
    #[n(2)]
    pub upto: u64,
}

/// A body that was too large for its run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ApartBody {
    /// Its log.
    #[n(0)]
    pub log: LogId,
    /// Its entry.
    #[n(1)]
    pub seq: u64,
    /// The encoded body.
    #[n(2)]
    pub body: ByteVec,
}

/// One log's head in a [`Message::Have`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Head {
    /// The log.
    #[n(0)]
    pub log: LogId,
    /// The log seq of its newest entry held.
    #[n(1)]
    pub seq: u64,
}

/// The heads that a node has of a room.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Heads {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// One head for each log.
    #[n(1)]
    pub heads: Vec<Head>,
}

/// A room's digest: equal at two nodes when their frontiers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoomDigest {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// Over its frontier.
    #[n(1)]
    pub digest: Digest,
}

/// Private rooms of a key, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Followed {
    /// The sender's, of the key.
    #[n(0)]
    pub token: Token,
    /// Over the digests of these rooms.
    #[n(1)]
    pub digest: Digest,
    /// Over the records of these rooms: the beginning of the digest.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub records: [u8; 16],
}

/// A sign of life, signed, relayed by any path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Beacon {
    /// Whose.
    #[n(0)]
    pub node: NodeId,
    /// Which start of it.
    #[n(1)]
    pub boot: u64,
    /// Rises with every beacon of a boot.
    #[n(2)]
    pub tick: u64,
    /// The version of its roster.
    #[n(3)]
    pub roster: u64,
    /// Over the digests of all its rooms.
    #[n(4)]
    pub digest: Digest,
    /// Over its records, those of all nodes: the beginning of the digest.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub records: [u8; 16],
    /// The time by its clock: Unix milliseconds. Nothing is decided by it; its peers' operators learn whose clock is wrong.
    #[n(6)]
    pub wall_ms: u64,
}

/// A member's word that a node is removed from the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Notice {
    /// The member that says so now, and signs.
    #[n(0)]
    pub by: NodeId,
    /// The removed node.
    #[n(1)]
    pub node: NodeId,
    /// The word of the directory.
    #[n(2)]
    pub parted: Parted,
}

/// The newest secret of the mesh's connections, as a member gives it to another. Signed, so that nobody
/// else can have said it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Handed {
    /// The member that gives it.
    #[n(0)]
    pub by: NodeId,
    /// The secret.
    #[n(1)]
    pub secret: LinkSecret,
}

/// The word of a node about itself.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct About {
    /// The node.
    #[n(0)]
    pub node: NodeId,
    /// Which secret of the mesh's connections it has.
    #[n(1)]
    pub epoch: Epoch,
    /// Of its program, for people; at most [`crate::limits::VERSION_BYTES_MAX`].
    #[n(2)]
    pub version: String,
}

/// A node's rooms for a successor, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Post {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// The era in question.
    #[n(1)]
    pub era: Era,
    /// In an answer: the successor's log in that room.
    #[n(2)]
    pub log: LogId,
}

/// Something signed by the node it is about, so that anybody may pass it on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Signed<T> {
    /// The signed value.
    #[n(0)]
    pub value: T,
    /// By the node of the value.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub signature: [u8; 64],
}

/// How far a node is by its beacons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Life {
    /// The beginning of its id.
    #[n(0)]
    pub name: u64,
    /// Its start.
    #[n(1)]
    pub boot: u64,
    /// The last tick of it that the sender has heard of.
    #[n(2)]
    pub tick: u64,
}

/// A message between nodes.
#[derive(Clone, Debug, Encode, Decode)]
pub enum Message<R = Run> {
    /// New entries, as they are written. By gossip, or to one node.
    #[n(0)]
    Runs(#[n(0)] Vec<R>),
    /// Entries asked for by `Want`, with the bodies that are apart. `last`: nothing more comes.
    #[n(1)]
    Spans {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// Whole runs, each log's in order.
        #[n(1)]
        runs: Vec<R>,
        /// Their bodies that are apart.
        #[n(2)]
        bodies: Vec<ApartBody>,
        /// The answer ends here.
        #[n(3)]
        last: bool,
    },
    /// Bodies apart, of runs that came without. Answered by `Spans` without runs.
    #[n(2)]
    WantBodies {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// Places, one entry each.
        #[n(1)]
        at: Vec<Head>,
    },
    /// Entries that the sender lacks. Answered by `Spans`.
    #[n(3)]
    Want {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// The spans that are wanted.
        #[n(1)]
        spans: Vec<Span>,
    },
    /// The sender's frontier. `answer`: the receiver's is asked for.
    #[n(4)]
    Have {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// One head for each log.
        #[n(1)]
        heads: Vec<Head>,
        /// Tell yours.
        #[n(2)]
        answer: bool,
    },
    /// Digests of the sender's rooms, folded into [`crate::limits::BUCKETS`].
    #[n(5)]
    Buckets(#[n(0)] Vec<Digest>),
    /// Digests of the sender's rooms in the buckets that differed. Those of the receiver that are
    /// not named are unknown to the sender.
    #[n(6)]
    Digests(#[n(0)] Vec<RoomDigest>),
    /// A sign of life.
    #[n(7)]
    Beacon(#[n(0)] Signed<Beacon>),
    /// News of a node's agents.
    #[n(8)]
    Roster(#[n(0)] Box<Signed<RosterNews>>),
    /// The whole roster of `node` is wanted, if newer than (boot, version).
    #[n(9)]
    WantRoster {
        /// Whose.
        #[n(0)]
        node: NodeId,
        /// Known boot.
        #[n(1)]
        boot: u64,
        /// Known version.
        #[n(2)]
        version: u64,
        /// By gossip: makes it another question than one that was asked before, by whomever. Gossip carries
        /// nothing twice within a minute.
        #[n(3)]
        nonce: Option<u64>,
    },
    /// To a sequencer: these cannot be delivered here any more, or have no number.
    #[n(10)]
    Ask {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// The era the asker takes for current.
        #[n(1)]
        era: Era,
        /// The asker's tip.
        #[n(2)]
        tip: Number,
        /// The entries.
        #[n(3)]
        spans: Vec<Span>,
    },
    /// Has `node` been heard?
    #[n(11)]
    Probe {
        /// Whose beacon.
        #[n(0)]
        node: NodeId,
    },
    /// It was, so many milliseconds ago; `None`: never.
    #[n(12)]
    Sighting {
        /// Whose beacon.
        #[n(0)]
        node: NodeId,
        /// How old the last one is.
        #[n(1)]
        age_ms: Option<u64>,
    },
    /// The sender stops: will the receiver sequence these?
    #[n(13)]
    Offer(#[n(0)] Vec<Post>),
    /// It will.
    #[n(14)]
    Accept(#[n(0)] Vec<Post>),
    /// It has the `HandedOver` of these, durably.
    #[n(15)]
    Taken(#[n(0)] Vec<Post>),
    /// A certificate and a run that gives its place another hash: the author forked its log.
    #[n(16)]
    Fork(#[n(0)] Certificate, #[n(1)] Box<R>),
    /// To a removed node, which may not know of it.
    #[n(18)]
    Parted(#[n(0)] Signed<Notice>),
    /// To a member, over a link that only it can read: the newest secret of the mesh's connections.
    #[n(19)]
    Secret(#[n(0)] Signed<Handed>),
    /// The sender's word about itself: to each peer, at first and when it changes.
    #[n(20)]
    About(#[n(0)] Signed<About>),
    /// To a peer that follows the same keys: so far the sender is with their private rooms. Answered by
    /// `Digests` of those that differ.
    #[n(17)]
    Follows(#[n(0)] Vec<Followed>),
    /// To a peer: what do you have? Of these rooms, and of your agents, as far as the sender lacks it.
    /// Answered at once by roster news that the sender lacks, and then by `Frontier`.
    #[n(21)]
    AskFrontier {
        /// Comes back with the answer.
        #[n(0)]
        nonce: u64,
        /// Known boot of the receiver.
        #[n(1)]
        boot: u64,
        /// Known version of its roster.
        #[n(2)]
        version: u64,
        /// Rooms that both have, with the sender's digests.
        #[n(3)]
        rooms: Vec<RoomDigest>,
    },
    /// The answer.
    #[n(22)]
    Frontier {
        /// From the question.
        #[n(0)]
        nonce: u64,
        /// Of the sender's roster.
        #[n(1)]
        boot: u64,
        /// Of the sender's roster.
        #[n(2)]
        version: u64,
        /// Of the rooms named those that differ.
        #[n(3)]
        rooms: Vec<Heads>,
    },
    /// To a peer: say so as soon as you hold these messages of a room durably, each with the entry that
    /// numbers it. Answered by `Copies`; messages that do not come soon are forgotten, and asked for again.
    #[n(23)]
    AskCopies {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// The messages.
        #[n(1)]
        copies: Vec<Copied>,
    },
    /// The sender holds these messages durably: the whole body of each, and the entry that numbers it.
    #[n(24)]
    Copies {
        /// The room.
        #[n(0)]
        room: RoomId,
        /// The messages, each with its mark as it was asked for.
        #[n(1)]
        copies: Vec<Copied>,
    },
    /// To a peer: what do you know of this message? Answered at once by `Receipt`.
    #[n(25)]
    AskReceipt {
        /// Comes back with the answer.
        #[n(0)]
        nonce: u64,
        /// The room.
        #[n(1)]
        room: RoomId,
        /// The message.
        #[n(2)]
        copied: Copied,
    },
    /// The answer.
    #[n(26)]
    Receipt {
        /// From the question.
        #[n(0)]
        nonce: u64,
        /// The sender holds it durably, as in `Copies`.
        #[n(1)]
        held: bool,
        /// Agents that got it at the sender.
        #[n(2)]
        agents: Vec<AgentState>,
    },
    /// To a peer that has these rooms: somebody at the sender wants to see, for a while, answers there as they are
    /// written.
    #[n(28)]
    Awaits(#[n(0)] Vec<RoomId>),
    /// To a peer that has said so: a piece of one.
    #[n(29)]
    Piece(#[n(0)] SentPiece),
    /// Records: new ones by gossip, or those that a peer lacks.
    #[n(30)]
    Records(#[n(0)] Vec<Record>),
    /// A step of comparing which records two nodes have.
    #[n(31)]
    Comparing(#[n(0)] Comparing),
    /// To a peer that has the records: bytes of theirs that travel apart. Answered by `Contents`.
    #[n(32)]
    WantContents(#[n(0)] WantedContents),
    /// The answer.
    #[n(33)]
    Contents(#[n(0)] SentContents),
    /// To a peer that has sent these contents: the sender of this has them durably now.
    #[n(34)]
    HaveContents(#[n(0)] WantedContents),
    /// A word about entries that members carry for nodes that are never up together.
    #[n(35)]
    Carrying(#[n(0)] Carrying),
    /// Such entries, on their way to a carrier or from it.
    #[n(36)]
    Parcel(#[n(0)] Parcel<R>),
    /// To a peer that has the records: states that these have replaced. Answered by `Replaced`.
    #[n(37)]
    WantReplaced(#[n(0)] WantedReplaced),
    /// The answer.
    #[n(38)]
    Replaced(#[n(0)] SentReplaced),
    /// To a node that may not live any more: it gossips its beacons for a while.
    #[n(41)]
    Call {
        /// Whose beacons are wanted.
        #[n(0)]
        node: NodeId,
        /// Of what the caller has heard of it: those who miss a node after the same beacon call it with one message, and another one
        /// after each answer. Gossip carries nothing twice within a minute.
        #[n(1)]
        nonce: u64,
    },
    /// To a link, in a mesh in which not all are linked: the sender has news of these nodes.
    #[n(42)]
    Lives {
        /// The digest of the list of all nodes, in the order of their ids.
        #[n(0)]
        roll: u64,
        /// Of each node of the list the count of its beacons, in four bits; 0: no news.
        #[cbor(n(1), with = "minicbor::bytes")]
        counts: Vec<u8>,
        /// The same of single nodes, for one that has asked.
        #[n(2)]
        named: Vec<Life>,
        /// How many links the sender has: one with few is told more often by each.
        #[n(3)]
        links: u16,
    },
    /// To a link that has said so: these nodes were not heard of here, or not for long. Answered by their last beacons, and by
    /// `Lives`. The beginnings of their ids; none: of all, and without beacons.
    #[n(43)]
    WantLives(#[n(0)] Vec<u64>),
}

/// Why a message was refused.
#[derive(Debug, Error)]
pub enum BadMessage {
    /// Longer than a frame.
    #[error("message of {0} bytes")]
    Bytes(usize),
    /// Not CBOR of this protocol.
    #[error("message cannot be read: {0}")]
    Form(minicbor::decode::Error),
    /// Of a kind, or with something of a kind, that only a later version knows. Nobody is to blame.
    #[error("message of a later version")]
    Newer,
    /// A list longer than allowed.
    #[error("message lists {0} things")]
    Length(usize),
    /// A run in it.
    #[error(transparent)]
    Run(#[from] BadRun),
    /// A signature.
    #[error("signature does not verify")]
    Signature,
    /// A record that its owner has not signed, or that has not the form of its collection.
    #[error("record is not its owner's, or not of its collection's form")]
    Record,
}

impl Message<Run> {
    /// Reads a message, without checking signatures.
    ///
    /// # Errors
    ///
    /// See [`BadMessage`].
    pub fn decode(bytes: &[u8]) -> Result<Message<Run>, BadMessage> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(BadMessage::Bytes(bytes.len()));
        }
        let message: Message<Run> = minicbor::decode(bytes).map_err(|error| {
            if error.is_unknown_variant() { BadMessage::Newer } else { BadMessage::Form(error) }
        })?;
        message.check_lengths()?;
        Ok(message)
    }

    /// Checks every seal and signature in it. The costly half: do it off the engine's thread.
    ///
    /// # Errors
    ///
    /// See [`BadMessage`]: the sender is at fault.
    pub fn verify(self, mesh: MeshId) -> Result<Message<Verified>, BadMessage> {
        self.verify_by(&Strict, mesh)
    }

    /// The same for a connection that is certainly `from`'s: a node's own beacon needs no signature there.
    /// Beacons come all the time.
    ///
    /// # Errors
    ///
    /// See [`BadMessage`]: the sender is at fault.
    pub fn verify_from(self, from: NodeId, mesh: MeshId) -> Result<Message<Verified>, BadMessage> {
        if let Message::Beacon(beacon) = &self
            && beacon.value.node == from
        {
            return Ok(Message::Beacon(beacon.clone()));
        }
        self.verify(mesh)
    }

    /// The same, with somebody else to judge signatures: in simulated worlds.
    ///
    /// # Errors
    ///
    /// See [`BadMessage`].
    #[expect(clippy::too_many_lines, reason = "a table: one row for each message")]
    pub fn verify_by(
        self,
        judge: &dyn Judge,
        mesh: MeshId,
    ) -> Result<Message<Verified>, BadMessage> {
        let check = |runs: Vec<Run>| -> Result<Vec<Verified>, BadRun> {
            runs.into_iter().map(|run| run.verify_by(judge, mesh)).collect()
        };
        Ok(match self {
            Message::Runs(runs) => Message::Runs(check(runs)?),
            Message::Spans { room, runs, bodies, last } => {
                Message::Spans { room, runs: check(runs)?, bodies, last }
            }
            Message::Fork(certificate, run) => {
                if !certificate.verify_by(judge) {
                    return Err(BadMessage::Signature);
                }
                Message::Fork(certificate, Box::new(run.verify_by(judge, mesh)?))
            }
            Message::Call { node, nonce } => Message::Call { node, nonce },
            Message::Lives { roll, counts, named, links } => {
                Message::Lives { roll, counts, named, links }
            }
            Message::WantLives(nodes) => Message::WantLives(nodes),
            Message::Beacon(beacon) => {
                let node = beacon.value.node;
                Message::Beacon(beacon.checked(judge, mesh, node)?)
            }
            Message::Roster(news) => {
                let node = news.value.node;
                Message::Roster(Box::new(news.checked(judge, mesh, node)?))
            }
            Message::Parted(notice) => {
                let by = notice.value.by;
                Message::Parted(notice.checked(judge, mesh, by)?)
            }
            Message::Secret(handed) => {
                let by = handed.value.by;
                Message::Secret(handed.checked(judge, mesh, by)?)
            }
            Message::About(about) => {
                let node = about.value.node;
                Message::About(about.checked(judge, mesh, node)?)
            }
            Message::Records(records) => Message::Records(sound(records, judge, mesh)?),
            Message::Comparing(comparing) => Message::Comparing(comparing),
            Message::WantContents(wanted) => Message::WantContents(wanted),
            Message::HaveContents(have) => Message::HaveContents(have),
            Message::Carrying(carrying) => Message::Carrying(carrying),
            Message::Parcel(Parcel { of, room, runs, bodies, records, contents }) => {
                let (runs, records) = (check(runs)?, sound(records, judge, mesh)?);
                let contents = sound_wholes(contents, judge, mesh)?;
                Message::Parcel(Parcel { of, room, runs, bodies, records, contents })
            }
            Message::Contents(sent) => Message::Contents(whole(sent)?),
            Message::WantReplaced(wanted) => Message::WantReplaced(wanted),
            Message::Replaced(sent) => Message::Replaced(sound_states(sent, judge, mesh)?),
            Message::WantBodies { room, at } => Message::WantBodies { room, at },
            Message::Want { room, spans } => Message::Want { room, spans },
            Message::Have { room, heads, answer } => Message::Have { room, heads, answer },
            Message::Buckets(buckets) => Message::Buckets(buckets),
            Message::Digests(rooms) => Message::Digests(rooms),
            Message::Follows(keys) => Message::Follows(keys),
            Message::WantRoster { node, boot, version, nonce } => {
                Message::WantRoster { node, boot, version, nonce }
            }
            Message::Ask { room, era, tip, spans } => Message::Ask { room, era, tip, spans },
            Message::Probe { node } => Message::Probe { node },
            Message::Sighting { node, age_ms } => Message::Sighting { node, age_ms },
            Message::Offer(posts) => Message::Offer(posts),
            Message::Accept(posts) => Message::Accept(posts),
            Message::Taken(posts) => Message::Taken(posts),
            Message::AskFrontier { nonce, boot, version, rooms } => {
                Message::AskFrontier { nonce, boot, version, rooms }
            }
            Message::Frontier { nonce, boot, version, rooms } => {
                Message::Frontier { nonce, boot, version, rooms }
            }
            Message::AskCopies { room, copies } => Message::AskCopies { room, copies },
            Message::Copies { room, copies } => Message::Copies { room, copies },
            Message::AskReceipt { nonce, room, copied } => {
                Message::AskReceipt { nonce, room, copied }
            }
            Message::Receipt { nonce, held, agents } => Message::Receipt { nonce, held, agents },
            Message::Awaits(rooms) => Message::Awaits(rooms),
            Message::Piece(piece) => Message::Piece(piece),
        })
    }

    /// As sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

/// Passes on records that are all their owners' word.
fn sound(records: Vec<Record>, judge: &dyn Judge, mesh: MeshId) -> Result<Vec<Record>, BadMessage> {
    let all = records.iter().all(|record| may_be_sent(record, judge, mesh));
    if all { Ok(records) } else { Err(BadMessage::Record) }
}

/// Passes on states that are all their owners' word, with bytes that are theirs.
fn sound_states(
    sent: SentReplaced,
    judge: &dyn Judge,
    mesh: MeshId,
) -> Result<SentReplaced, BadMessage> {
    let is_sound =
        |state: &ReplacedState| may_be_sent(&state.record, judge, mesh) && state.is_whole();
    if sent.states.iter().all(is_sound) { Ok(sent) } else { Err(BadMessage::Record) }
}

/// The same of records with their bytes.
fn sound_wholes(
    wholes: Vec<Whole>,
    judge: &dyn Judge,
    mesh: MeshId,
) -> Result<Vec<Whole>, BadMessage> {
    let is_sound = |whole: &Whole| may_be_sent(&whole.record, judge, mesh) && whole.is_whole();
    if wholes.iter().all(is_sound) { Ok(wholes) } else { Err(BadMessage::Record) }
}

/// Passes on contents that have the hashes which stand beside them.
fn whole(sent: SentContents) -> Result<SentContents, BadMessage> {
    if sent.contents.iter().all(Content::is_whole) { Ok(sent) } else { Err(BadMessage::Record) }
}

fn signed_text<T: Encode<()>>(mesh: MeshId, value: &T) -> Vec<u8> {
    [b"clawmesh says".as_slice(), &mesh.0, &encode(value)].concat()
}

impl<T: Encode<()>> Signed<T> {
    /// Signs `value` as `identity`, within `mesh`.
    #[must_use]
    pub fn new(mesh: MeshId, identity: &Identity, value: T) -> Signed<T> {
        let signature = identity.sign(&signed_text(mesh, &value));
        Signed { value, signature }
    }

    /// For a peer that knows by its link that this comes from the node of the value, and for nobody else.
    #[must_use]
    pub fn unsigned(value: T) -> Signed<T> {
        Signed { value, signature: [0; 64] }
    }

    /// Passes on a value that this node signed within this mesh.
    fn checked(self, judge: &dyn Judge, mesh: MeshId, node: NodeId) -> Result<Self, BadMessage> {
        let good = judge.holds(node, &signed_text(mesh, &self.value), &self.signature);
        if good { Ok(self) } else { Err(BadMessage::Signature) }
    }
}

#[cfg(test)]
mod tests;
