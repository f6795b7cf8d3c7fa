//! Entries, of which logs are made: a header that is hashed, and a body that says something.
//!
//! Bodies are open: a node keeps and passes on kinds that it does not know, and numbers those that
//! their header calls visible.

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    limits::{AGENT_ID_BYTES_MAX, LOG_SEQ_MAX},
    name::{
        agent::{Belongs, belongs},
        group::{Side, TaskSeed},
        id::{AgentId, EntryRef, Hash, KeyPrint, LogId, MeshId, MessageId, NodeId, RoomId, sha256},
        identity::Judge,
        number::Era,
    },
    wire::{
        account::AccountClaimed,
        acts::{ElectionAct, KeyAct, TaskAct, VoteAct},
        approval::ApprovalAct,
        cbor::{encode, text, texts},
        conversation::Conversation,
        delivery::DeliveryAct,
        once::OnceAct,
        signatures::KeySignature,
    },
};

/// The version that every header carries.
pub const VERSION: u8 = 1;

/// The part that is hashed, chained and (once per run) signed. Never sent: receivers build it from
/// the run.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
pub(crate) struct Header {
    #[n(0)]
    pub(crate) version: u8,
    #[n(1)]
    pub(crate) mesh: MeshId,
    #[n(2)]
    pub(crate) room: RoomId,
    #[n(3)]
    pub(crate) log: LogId,
    /// From 1, without gaps.
    #[n(4)]
    pub(crate) seq: u64,
    /// Hash of the log's previous header; zeros before the first.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub(crate) backlink: Hash,
    #[n(6)]
    pub(crate) facts: Facts,
    #[cbor(n(7), with = "minicbor::bytes")]
    pub(crate) body_hash: Hash,
    #[n(8)]
    pub(crate) body_len: u64,
}

impl Header {
    pub(crate) fn hash(&self) -> Hash {
        sha256(&[b"clawmesh entry", &encode(self)])
    }
}

/// A header without the entry's place and without the hash of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Facts {
    /// Lamport clock of the room: above everything its author had seen there.
    #[n(0)]
    pub clock: u64,
    /// When it was written, by its author's clock. Informational. Unix milliseconds.
    #[n(1)]
    pub wall_ms: u64,
    /// The kind of body that follows: see [`crate::wire::kinds`].
    #[n(2)]
    pub kind: u8,
    /// Whether it takes numbers.
    #[n(3)]
    pub visible: bool,
}

/// An entry as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stored {
    /// Clock, wall time, kind, visibility.
    #[n(0)]
    pub facts: Facts,
    /// The encoded [`Body`]; empty if it was dropped.
    #[n(1)]
    pub body: ByteVec,
    /// Hash of the header before it: only on the first entry of a run.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub backlink: Option<Hash>,
    /// The run's seal ([`crate::wire::run::Certificate`]): only on the last entry of a run.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub seal: Option<[u8; 64]>,
    /// The rest of a body that was dropped because it was old.
    #[n(4)]
    pub gone: Option<Gone>,
}

/// The facts of a body that is no longer kept, as far as a header needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Gone {
    /// Its SHA-256.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    /// Its length in bytes.
    #[n(1)]
    pub len: u64,
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Said {
    /// The agent that said it.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// Their name at the time.
    #[n(1)]
    pub name: String,
    /// The text, as it was given.
    #[n(2)]
    pub content: String,
    /// The message this answers.
    #[n(3)]
    pub reply_to: Option<String>,
    /// Agents to be told.
    #[cbor(n(4), with = "texts")]
    pub mentions: Vec<AgentId>,
    /// The sender's own metadata, as JSON text.
    #[n(5)]
    pub metadata: Option<String>,
    /// Names a repeated send (hash of key, agent and the client's own id).
    #[n(6)]
    pub dedup: Option<DedupId>,
    /// Join stamp of the member whose turn it is after this; only in [`Body::Chat`].
    #[n(7)]
    pub turn: Option<u64>,
    /// The id that it was given elsewhere ([`crate::api::import`]). By the founder alone.
    #[n(8)]
    pub id: Option<MessageId>,
    /// The key that the agent has shown at the author's node. `None`: that checks no keys, or was brought from elsewhere.
    #[n(9)]
    pub key: Option<KeyPrint>,
    /// Its place in a conversation, if it has one.
    #[n(10)]
    pub conversation: Option<Conversation>,
}

/// A leader's decision: a message, and the election that made its author the leader.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Decision {
    /// The decision.
    #[n(0)]
    pub said: Said,
    /// The [`crate::wire::acts::ElectionStarted`] of the election. Log seq 0: it was held elsewhere
    /// ([`crate::api::import`]).
    #[n(1)]
    pub election: EntryRef,
}

impl Decision {
    /// Of a leader that was elected elsewhere.
    pub(crate) fn is_imported(&self) -> bool {
        self.election.seq == 0
    }
}

/// Names one send of one client, however often it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct DedupId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl DedupId {
    /// From a client's own id, within its key and agent.
    #[must_use]
    pub fn new(key: KeyPrint, agent: &str, id: &str) -> DedupId {
        let len = (agent.len() as u64).to_be_bytes();
        let hash = sha256(&[b"clawmesh dedup", &key.0, &len, agent.as_bytes(), id.as_bytes()]);
        let mut out = [0; 16];
        out.copy_from_slice(&hash[..16]);
        DedupId(out)
    }
}

/// One run of items in an [`Ordered`]: entries `from`, `from + 1`, … of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Items {
    /// Index into [`Ordered::logs`]. Beyond them: these numbers name nothing.
    #[n(0)]
    pub log: u32,
    /// Log seq of the first.
    #[n(1)]
    pub from: u64,
    /// How many.
    #[n(2)]
    pub count: u32,
}

/// Numbers given by an era's sequencer: `first`, `first + 1`, … to the items in their order.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Ordered {
    /// The era.
    #[n(0)]
    pub era: Era,
    /// Number in the era of the first item, from 1.
    #[n(1)]
    pub first: u64,
    /// The logs that items are from.
    #[n(2)]
    pub logs: Vec<LogId>,
    /// The entries.
    #[n(3)]
    pub items: Vec<Items>,
    /// The [`HandedOver`] that gave its author the era; `None`: it claimed it, or the room is its home.
    #[n(4)]
    pub by: Option<EntryRef>,
}

impl Ordered {
    /// How many numbers it gives.
    pub(crate) fn count(&self) -> u64 {
        self.items.iter().map(|items| u64::from(items.count)).sum()
    }

    /// Whether its era has these numbers, and logs may have these entries.
    pub(crate) fn fits(&self) -> bool {
        self.first.checked_add(self.count()).is_some_and(|end| end <= self.era.capacity() + 1)
            && self.items.iter().all(|items| (1..=LOG_SEQ_MAX).contains(&items.from))
    }
}

/// How far in an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Reached {
    /// The era.
    #[n(0)]
    pub era: Era,
    /// Its numbers 1 … `n`.
    #[n(1)]
    pub n: u64,
}

/// In the sealed directory of a pair: two agents of its keys have a direct room, or one for a task, whose id follows from
/// them ([`crate::name::group::direct_room`]). Either side says so, or both across a split: it is one room.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DirectOpened {
    /// The agent that opens it.
    #[n(0)]
    pub by: Side,
    /// The other one; or the same.
    #[n(1)]
    pub with: Side,
    /// It is for a task that one gives to the other.
    #[n(2)]
    pub task: Option<TaskSeed>,
}

/// In the sealed directory of a pair: a direct room takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DirectClosed {
    /// The room.
    #[n(0)]
    pub room: RoomId,
    /// An entry that lists it.
    #[n(1)]
    pub opened: EntryRef,
    /// It is as if it were not there any more, and bodies in it are dropped.
    #[n(2)]
    pub drops: bool,
}

impl DirectOpened {
    /// Whether these can be ids of agents.
    pub(crate) fn fits(&self) -> bool {
        let fits = |side: &Side| (1..=AGENT_ID_BYTES_MAX).contains(&side.agent.len());
        fits(&self.by) && fits(&self.with)
    }
}

/// Its author opens an era in its own lane.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EraClaimed {
    /// The new era.
    #[n(0)]
    pub era: Era,
    /// The highest era its author knew: one `c` below.
    #[n(1)]
    pub after: Era,
    /// How far the author had got in each era that changed since the cuts before.
    #[n(2)]
    pub cut: Vec<Reached>,
    /// Entries that show that there is such an era and that others got so far: one of each log that
    /// did.
    #[cbor(n(3), default)]
    pub seen: Vec<EntryRef>,
}

/// Its author stops issuing in an era and leaves it to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HandedOver {
    /// The era.
    #[n(0)]
    pub era: Era,
    /// The successor's first number.
    #[n(1)]
    pub next: u64,
    /// The successor's log.
    #[n(2)]
    pub to: LogId,
    /// As of [`Ordered`].
    #[n(3)]
    pub by: Option<EntryRef>,
}

/// In the directory: a node and the lane it may claim eras in.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeAdmitted {
    /// Below [`crate::name::number::LANES`].
    #[n(0)]
    pub lane: u32,
    /// The name its operator gave it.
    #[n(1)]
    pub name: String,
    /// Whether it is a relay: it keeps this directory and no other room. The first entry of a node counts.
    #[n(2)]
    pub relay: Option<bool>,
}

impl NodeAdmitted {
    /// Of a node that keeps rooms.
    #[must_use]
    pub fn of(lane: u32, name: String) -> NodeAdmitted {
        NodeAdmitted { lane, name, relay: None }
    }
}

/// In the directory: a node is removed from the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeParted {
    /// Which.
    #[n(0)]
    pub node: NodeId,
    /// Why.
    #[n(1)]
    pub why: Parting,
    /// How far its logs count, by room, ascending. In a room that all nodes have and that is not
    /// named here nothing of it counts.
    #[n(2)]
    pub cut: Vec<Kept>,
}

/// Why a node is removed, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Parting {
    /// Another node shut it out.
    #[n(0)]
    Expelled,
    /// It left by itself.
    #[n(1)]
    Left,
    /// Another node said that it is gone for good.
    #[n(2)]
    Retired,
}

/// How a node was removed from the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Parted {
    /// Why.
    #[n(0)]
    pub why: Parting,
    /// The node that said so.
    #[n(1)]
    pub by: NodeId,
    /// When, by that node's clock. Unix milliseconds.
    #[n(2)]
    pub wall_ms: u64,
}

/// How far a log counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Kept {
    /// Of this room.
    #[n(0)]
    pub room: RoomId,
    /// Its last entry that does.
    #[n(1)]
    pub seq: u64,
}

/// In the directory: a room. Its author's node is the room's home sequencer.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoomCreated {
    /// Its id.
    #[n(0)]
    pub room: RoomId,
    /// The name asked for.
    #[n(1)]
    pub name: String,
    /// Its purpose.
    #[n(2)]
    pub description: Option<String>,
    /// The room it is under.
    #[n(3)]
    pub parent: Option<RoomId>,
    /// Seen by every key; otherwise by `owner` alone.
    #[n(4)]
    pub public: bool,
    /// Only end-to-end encrypted content is taken.
    #[n(5)]
    pub encrypted: bool,
    /// The key that made it.
    #[n(6)]
    pub owner: KeyPrint,
    /// The agent that made it.
    #[cbor(n(7), with = "text")]
    pub created_by: AgentId,
    /// It was brought from elsewhere, and has the id that it had there. By the founder alone.
    #[n(8)]
    pub imported: Option<Imported>,
}

/// A room as it was elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Imported {
    /// When it was made there. Unix milliseconds.
    #[n(0)]
    pub created_ms: u64,
}

/// In the directory: a stable agent id and the key that claims it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AgentClaimed {
    /// The id.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// The key, and its signature over the mesh and the id. `None`: [`KeyPrint::OPEN`], which is everybody's on nodes that
    /// check no keys.
    #[n(1)]
    pub by: Option<KeySignature>,
}

impl AgentClaimed {
    /// The key, by its fingerprint.
    #[must_use]
    pub fn key(&self) -> KeyPrint {
        self.by.as_ref().map_or(KeyPrint::OPEN, KeySignature::key)
    }

    /// Whether the key has signed it. [`KeyPrint::OPEN`] is everybody's, and signs nothing.
    #[must_use]
    pub fn is_signed_by_its_key(&self, judge: &dyn Judge, mesh: MeshId) -> bool {
        self.by.as_ref().is_none_or(|by| by.is_claim(judge, mesh, &self.agent))
    }

    /// Whether the key can claim this id: a drawn one needs no claim of its key, and others' claims of it are void, as
    /// those of an id that says whose it is.
    #[must_use]
    pub fn may_count(&self) -> bool {
        matches!(belongs(&self.agent, self.key()), Belongs::FirstClaim | Belongs::IfClaimed)
    }
}

/// The content of an entry. The table of its kinds is [`crate::wire::kinds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A chat message. Visible.
    Chat(Said),
    /// A thinking pulse. Visible.
    Thinking(Said),
    /// A leader's decision. Visible, if its author was the leader.
    Decision(Decision),
    /// Numbers, by a sequencer.
    Ordered(Ordered),
    /// An era, by its new sequencer.
    EraClaimed(EraClaimed),
    /// An era, by its old sequencer.
    HandedOver(HandedOver),
    /// Directory.
    NodeAdmitted(NodeAdmitted),
    /// Directory. Visible.
    RoomCreated(RoomCreated),
    /// Directory. Visible.
    AgentClaimed(AgentClaimed),
    /// Directory.
    Key(KeyAct),
    /// Directory.
    Parted(NodeParted),
    /// Sealed directory of a pair.
    DirectOpened(DirectOpened),
    /// Sealed directory of a pair.
    DirectClosed(DirectClosed),
    /// Directory. Visible.
    AccountClaimed(AccountClaimed),
    /// A step of a vote.
    Vote(VoteAct),
    /// A step of an election.
    Election(ElectionAct),
    /// A step of a task.
    Task(TaskAct),
    /// The fate of a request.
    Delivery(DeliveryAct),
    /// Something that at most one agent does, a step of it.
    Once(OnceAct),
    /// An agent asks people whether it may do something, a step of it.
    Approval(ApprovalAct),
    /// A kind of a later version, or a body that cannot be read: kept, passed on, without effect.
    Unknown,
}
