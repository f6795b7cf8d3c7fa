//! The rows that a turn makes durable, and the rows that a store gives back at the next start.
//!
//! A store keeps these rows and nothing of its own invention: the core needs no more to go on after
//! a restart.

use std::{borrow::Cow, fmt, sync::Arc};

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{
    api::{
        command::{Opaque, Unfiled},
        delivery::{Notice, RequestRecord},
    },
    limits::HANDOVERS_PER_ERA_MAX,
    name::{
        id::{
            AgentId, EntryRef, Hash, KeyPrint, LocalRef, LogId, LogIx, MeshId, MessageId, NodeId,
            RoomId,
        },
        number::{Era, Number},
    },
    records::place::RoomPlace,
    wire::{
        carry::{Carriage, CarriedAt, CarriedHead, Load, Owed},
        cbor::text,
        cover::Cover,
        entry::{Body, DedupId, Parted, Stored},
        record::{Apart, CollectionNumber, Record, RecordHead, RecordKey, Space},
        run::{Certificate, Run},
        seal::{Seal, SealContext},
    },
};

/// The fate of a number at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Fate {
    /// Given to the entry; the entry was not delivered under it here (not yet, or under another).
    #[n(0)]
    Assigned,
    /// The entry was delivered under it here: it is in the delivery log.
    #[n(1)]
    Delivered,
    /// Passed over, because nobody had the content: never taken for seen.
    #[n(2)]
    Hole,
}

/// A room, as far as it is not in its logs and eras.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoomRecord {
    /// The mesh it belongs to. Rooms of another mesh than the node's are kept, readable, and closed.
    #[n(0)]
    pub mesh: MeshId,
    /// The log whose author issues the home era's first numbers.
    #[n(1)]
    pub home: LogId,
    /// Highest number delivered here.
    #[n(2)]
    pub tip: Number,
    /// How many messages were delivered here.
    #[n(3)]
    pub delivered: u64,
    /// Unix milliseconds of the newest delivered message.
    #[n(4)]
    pub last_activity_ms: Option<u64>,
    /// The last chat message by position (not by number, which may differ between nodes after a
    /// split): decides whose turn it is.
    #[n(5)]
    pub spoke: Option<Spoke>,
    /// This node issues only from eras above this one: those that it opened in an earlier life are
    /// closed.
    #[n(6)]
    pub floor: Option<Era>,
    /// Contents are memory only.
    #[n(7)]
    pub ephemeral: bool,
    /// Known to this node alone.
    #[n(8)]
    pub local: bool,
    /// The seal of its bodies, of a private room that spans the mesh.
    #[n(9)]
    pub seal: Option<Seal>,
    /// The founder of the mesh brought it from elsewhere: see [`crate::api::import`].
    #[cbor(n(10), default)]
    pub imported: bool,
    /// Of a direct room: the number of the newest message of each of its two agents, in the order of their ids.
    #[cbor(n(11), default)]
    pub said: [Number; 2],
    /// Of a direct room: whether each of its two agents has said something, at a node that was shown its key.
    #[cbor(n(12), default)]
    pub began: [bool; 2],
}

impl RoomRecord {
    /// Where the room's records are. `None`: it ends with its members, and records would not.
    #[must_use]
    pub fn place_of_records(&self, room: RoomId) -> Option<RoomPlace> {
        if self.ephemeral {
            return None;
        }
        let (space, cover) = match &self.seal {
            Some(seal) => {
                (Space::Followers(seal.group), Cover::Sealed(Box::new(seal.of_records())))
            }
            None if self.local => (Space::Node, Cover::Open),
            None => (Space::Mesh, Cover::Open),
        };
        Some(RoomPlace { room, space, cover })
    }

    /// An open room of the mesh in which nothing was said yet.
    #[must_use]
    pub fn new(mesh: MeshId, home: LogId) -> RoomRecord {
        RoomRecord {
            mesh,
            home,
            tip: Number::ZERO,
            delivered: 0,
            last_activity_ms: None,
            spoke: None,
            floor: None,
            ephemeral: false,
            local: false,
            seal: None,
            imported: false,
            said: [Number::ZERO; 2],
            began: [false; 2],
        }
    }

    /// The bytes of a body that a store keeps, as they were before they were sealed, if they were. `None`: they
    /// do not open, so they say nothing ([`Body::Unknown`]).
    #[must_use]
    pub fn open<'b>(&self, spot: &SealContext, bytes: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        match &self.seal {
            None => Some(Cow::Borrowed(bytes)),
            Some(seal) => seal.open(spot, bytes).map(Cow::Owned),
        }
    }

    /// A body that a store keeps.
    #[must_use]
    pub fn body(&self, spot: &SealContext, bytes: &[u8]) -> Body {
        self.open(spot, bytes).map_or(Body::Unknown, |bytes| Body::decode(spot.kind, &bytes))
    }
}

/// A chat message, as far as the turn is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Spoke {
    /// Its clock.
    #[n(0)]
    pub clock: u64,
    /// Its log.
    #[n(1)]
    pub log: LogId,
    /// Join stamp of the member whose turn it is after it.
    #[n(2)]
    pub turn: Option<u64>,
}

/// A log's head at this node.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LogRecord {
    /// Whose log.
    #[n(0)]
    pub id: LogId,
    /// Log seq of the newest entry held; 0 when none is. Always the end of a run.
    #[n(1)]
    pub head: u64,
    /// Hash of its header; zeros when none is held.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub hash: Hash,
    /// Its clock.
    #[n(3)]
    pub clock: u64,
    /// Every visible entry up to here has been delivered: a restart looks only above.
    #[n(4)]
    pub settled: u64,
    /// The place where the log was found forked, if it was: nothing from there on counts.
    #[n(5)]
    pub fork: Option<u64>,
    /// The seal of its newest entry.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub seal: [u8; 64],
}

/// An era at this node.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EraRecord {
    /// The log whose author issues from it now.
    #[n(0)]
    pub sequencer: LogId,
    /// Its items 1 … `known` are known.
    #[n(1)]
    pub known: u64,
    /// Its items 1 … `done` are delivered, passed over, or left as holes.
    #[n(2)]
    pub done: u64,
    /// How far other eras have to be done before this one is entered.
    #[n(3)]
    pub cut: Vec<crate::wire::entry::Reached>,
    /// The entries that gave it away (`HandedOver`), the last [`HANDOVERS_PER_ERA_MAX`]: answers that its sequencer of
    /// that time gave before each count.
    #[cbor(n(5), default)]
    pub former: Vec<EntryRef>,
    /// How many of items 1 … `done` name nothing.
    #[cbor(n(6), default)]
    pub empty: u64,
    /// In a directory: the last entries that gave numbers of it, in the order of these.
    #[cbor(n(7), default)]
    pub given: Vec<Gave>,
    /// In a directory: from this item on none counts, because a removed node gave it where its log is cut.
    #[n(8)]
    pub lost: Option<u64>,
}

/// An entry that gave numbers of an era, or gave the era away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Gave {
    /// The entry's log.
    #[n(0)]
    pub log: LogIx,
    /// Its place there.
    #[n(1)]
    pub seq: u64,
    /// The first item that it gave, or that its successor gives.
    #[n(2)]
    pub first: u64,
}

impl EraRecord {
    /// Of an era of which only the sequencer and the cut are known.
    #[must_use]
    pub fn new(sequencer: LogId, cut: Vec<crate::wire::entry::Reached>) -> EraRecord {
        let (former, given) = (Vec::new(), Vec::new());
        EraRecord { sequencer, known: 0, done: 0, cut, former, empty: 0, given, lost: None }
    }

    /// The handover by which its sequencer issues from it, if that did not claim it.
    #[must_use]
    pub fn by(&self) -> Option<EntryRef> {
        self.former.last().copied()
    }

    /// Whether this author is its sequencer, by this handover.
    pub(crate) fn is_issued_by(&self, log: LogId, by: Option<EntryRef>) -> bool {
        self.sequencer == log && self.by() == by
    }

    /// `at` gives it away.
    pub(crate) fn hand_over(&mut self, at: EntryRef, to: LogId) {
        if self.former.len() >= HANDOVERS_PER_ERA_MAX {
            self.former.remove(0);
        }
        self.former.push(at);
        self.sequencer = to;
    }

    /// Whether its sequencer at that time was the author of the entry at this place, by this handover. Sequencers
    /// before the handovers that are kept gave the era away later.
    pub(crate) fn was_issued(&self, at: EntryRef, by: Option<EntryRef>) -> bool {
        let is_full = self.former.len() >= HANDOVERS_PER_ERA_MAX;
        let since = match by {
            None if !is_full => Some(0),
            None => None,
            Some(by) => {
                self.former.iter().position(|handover| *handover == by).map(|place| place + 1)
            }
        };
        let Some(since) = since else {
            return is_full
                && self.former.iter().any(|former| former.log == at.log && at.seq < former.seq);
        };
        match self.former.get(since) {
            Some(until) => until.log == at.log && at.seq < until.seq,
            None => self.sequencer == at.log,
        }
    }
}

/// A number whose entry is not held: known before its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NumberRange {
    /// The entry's highest number.
    #[n(0)]
    pub best: Number,
    /// Its lowest.
    #[n(1)]
    pub canonical: Number,
}

/// A change of the states that a record has replaced.
#[derive(Clone, Debug)]
pub enum ReplacedChange {
    /// The state that the record has before the next change of it is kept, with its bytes that travel apart.
    Keep {
        /// Up to then. Unix milliseconds.
        until_ms: u64,
    },
    /// A state of which another node has told.
    Heard {
        /// The state.
        record: Box<Record>,
        /// Its bytes that travel apart, if the node has sent them.
        bytes: Option<Vec<u8>>,
        /// Up to then. Unix milliseconds.
        until_ms: u64,
    },
    /// None is kept any more.
    Drop,
}

/// One row to write. Rows of a batch are applied in order, all of them or none.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Change {
    /// Create or replace a room's record.
    Room { room: RoomId, record: RoomRecord },
    /// Forget an ephemeral room and everything in it.
    Drop { room: RoomId },
    /// Create or replace a log's head.
    Log { room: RoomId, log: LogIx, record: LogRecord },
    /// A new entry. Never replaced.
    Entry { room: RoomId, at: LocalRef, entry: Arc<Stored> },
    /// Create or replace an era.
    Era { room: RoomId, era: Era, record: EraRecord },
    /// The fate of a number. A later row for the same number replaces an earlier one.
    Number { room: RoomId, number: Number, at: LocalRef, fate: Fate },
    /// Remember (or with `None` forget) what is known of an entry that is not held.
    NumberRange { room: RoomId, at: LocalRef, numbers: Option<NumberRange> },
    /// A repeated send is to be recognised.
    Dedup { room: RoomId, id: DedupId, at: LocalRef, wall_ms: u64 },
    /// A message has an id that it was given elsewhere. Of two of one id in a room the first counts.
    Called { room: RoomId, id: MessageId, at: LocalRef },
    /// This node's own notes on a vote (with `None`: none any more).
    Note { room: RoomId, vote: LocalRef, note: Option<VoteNote> },
    /// Create or replace a record of a mesh, or (`None`) forget it.
    Record {
        mesh: MeshId,
        space: Space,
        collection: CollectionNumber,
        key: RecordKey,
        record: Option<Arc<Record>>,
    },
    /// Keep bytes that travel apart from a record, or (`None`) drop them.
    Content {
        mesh: MeshId,
        space: Space,
        collection: CollectionNumber,
        key: RecordKey,
        bytes: Option<Arc<ByteVec>>,
    },
    /// What becomes of the states that a record has replaced.
    Replaced {
        mesh: MeshId,
        space: Space,
        collection: CollectionNumber,
        key: RecordKey,
        change: ReplacedChange,
    },
    /// States that records have replaced, and that were to be kept until then or earlier, go. Unix milliseconds.
    ReplacedEnd { now_ms: u64 },
    /// Another node has the bytes of this record, too, as it says. Forgotten when they are dropped here.
    Copied { mesh: MeshId, space: Space, collection: CollectionNumber, key: RecordKey },
    /// Create or replace an agent's inbox.
    Inbox(InboxRecord),
    /// Forget one, with all its items.
    NoInbox { agent: AgentId },
    /// Put an item into an inbox, or (`None`) drop it.
    InboxItem { agent: AgentId, place: u64, item: Option<InboxItem> },
    /// A request of an agent of this node waits, or (`None`) does no more.
    Request { message: MessageId, record: Option<RequestRecord> },
    /// A room is carried for a node (with `None`: not any more).
    Carriage { of: NodeId, room: RoomId, carriage: Option<Carriage> },
    /// A thing is carried (with `None`: not any more).
    Load { at: CarriedAt, since_ms: u64, load: Option<Arc<Load>> },
    /// What this node owes another one of a room (with `None`: nothing that has to be remembered).
    Owed { room: RoomId, node: NodeId, owed: Option<Owed> },
    /// Something of the node's own (with `None`: forget it). See [`crate::api::command::Command::Keep`].
    Keep { name: Vec<u8>, value: Option<Opaque> },
    /// Drop the bodies of some of the oldest delivered entries of a permanent room, in the order in which
    /// they were delivered, as far as they were written before `before_ms`: headers and numbers stay.
    /// How many, the store decides.
    Prune { room: RoomId, before_ms: u64 },
    /// A certificate and a run that together prove a log forked. The lowest place counts.
    Evidence { certificate: Certificate, run: Box<Run> },
    /// The node's own state.
    Node(NodeRecord),
}

/// An agent's inbox at this node ([`crate::api::command::Command::Inbox`]).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct InboxRecord {
    /// Whose it is.
    #[cbor(n(0), with = "text")]
    pub agent: AgentId,
    /// Its key.
    #[n(1)]
    pub key: KeyPrint,
    /// When it was made. Unix milliseconds.
    #[n(2)]
    pub since_ms: u64,
    /// The agent has everything up to this item.
    #[n(3)]
    pub mark: u64,
    /// Older messages that are still to be filed: those that there were when it was made. `None`: that was done.
    #[n(4)]
    pub unfiled: Option<Vec<Unfiled>>,
    /// When the agent used it last, to the hour. Unix milliseconds.
    #[n(5)]
    pub used_ms: u64,
}

/// A message in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct InboxItem {
    /// Its room.
    #[n(0)]
    pub room: RoomId,
    /// Its number here. [`Number::ZERO`]: it is about a request of the agent's own (a notice), or about the task of the room, which
    /// has ended without an answer.
    #[n(1)]
    pub number: Number,
    /// It tells of a request of the agent's own, in that room.
    #[n(2)]
    pub notice: Option<Notice>,
}

impl InboxItem {
    /// One that was taken out: its place stays used, and nothing is there.
    pub const TAKEN_OUT: InboxItem =
        InboxItem { room: RoomId([0; 16]), number: Number::ZERO, notice: None };

    /// Whether it was taken out.
    #[must_use]
    pub fn is_taken_out(&self) -> bool {
        *self == InboxItem::TAKEN_OUT
    }
}

/// An inbox that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInbox {
    /// The inbox.
    pub record: InboxRecord,
    /// The place of its newest item; 0: it has none.
    pub newest: u64,
}

/// This node's own notes on a vote.
#[derive(Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct VoteNote {
    /// Ballots of this node's agents, until they are opened: log seq of the ballot in the node's own
    /// log, and the choice.
    #[n(0)]
    pub choices: Vec<(u64, u32)>,
    /// Set once local members have been told the result.
    #[n(1)]
    pub told: Option<ToldResult>,
}

impl fmt::Debug for VoteNote {
    /// A choice is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { choices, told } = self;
        f.debug_struct("VoteNote").field("choices", &choices.len()).field("told", told).finish()
    }
}

/// The result of a vote, as local members were told it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ToldResult {
    /// The close that counted then.
    #[n(0)]
    pub close: Option<EntryRef>,
    /// Ballots that it names and that were not open.
    #[n(1)]
    pub missing: Vec<EntryRef>,
}

/// The node's own state.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeRecord {
    /// The mesh the node is in.
    #[n(0)]
    pub mesh: MeshId,
    /// Counts the node's starts upwards (and never falls behind the wall clock in seconds).
    #[n(1)]
    pub boot: u64,
    /// Whether it was stopped in good order.
    #[n(2)]
    pub clean: bool,
    /// Whether it ever had a peer in this mesh.
    #[n(3)]
    pub had_peer: bool,
    /// The lobby's tip in the mesh this node was in before, if its clients may hold cursors there.
    #[n(4)]
    pub lobby_floor: Number,
    /// Incarnations of ephemeral rooms: the highest era claimed there, so that none is used twice.
    #[n(5)]
    pub ephemeral_claims: Vec<(RoomId, Era)>,
    /// The node's own agents and their seats when it was last written, encoded: agents that were
    /// attached when the node died can come back to it.
    #[n(6)]
    pub roster: Option<ByteVec>,
    /// Whose private directory this node keeps: that of the identity it had before it was restored from a
    /// backup. `None`: its own.
    #[n(7)]
    pub private_of: Option<NodeId>,
    /// How the node was removed from the mesh, if it was.
    #[n(8)]
    pub parted: Option<Parted>,
}

impl NodeRecord {
    /// Of a node that has never started.
    #[must_use]
    pub fn new(mesh: MeshId) -> NodeRecord {
        NodeRecord {
            mesh,
            boot: 0,
            clean: true,
            had_peer: false,
            lobby_floor: Number::ZERO,
            ephemeral_claims: Vec::new(),
            roster: None,
            private_of: None,
            parted: None,
        }
    }

    /// The node's state after a restore from a backup, in which it goes on under a new identity: `before`
    /// is the one that it had. Its entries are another's from now on, and its private rooms stay its own.
    #[must_use]
    pub fn under_new_identity(self, before: NodeId) -> NodeRecord {
        NodeRecord {
            // It was not stopped after that, in any case.
            clean: false,
            ephemeral_claims: Vec::new(),
            roster: None,
            private_of: self.private_of.or(Some(before)),
            // That was said of the one before.
            parted: None,
            ..self
        }
    }
}

/// An entry that a restarted engine has still to deliver.
#[derive(Clone, Debug)]
pub struct Unsettled {
    /// Where it is.
    pub at: LocalRef,
    /// The entry, its body included.
    pub entry: Stored,
    /// Its numbers here, if it has any: highest and lowest.
    pub numbers: Option<NumberRange>,
}

/// Everything of one room that an engine starts from.
#[derive(Clone, Debug)]
pub struct StoredRoom {
    /// Which room.
    pub room: RoomId,
    /// Its record.
    pub record: RoomRecord,
    /// Its logs, by index.
    pub logs: Vec<LogRecord>,
    /// Its eras, ascending.
    pub eras: Vec<(Era, EraRecord)>,
    /// For each era the numbers above `done`, ascending, with their entries.
    pub waiting: Vec<(Number, LocalRef)>,
    /// Visible entries above each log's `settled` that are not in the delivery log.
    pub unsettled: Vec<Unsettled>,
    /// Numbers known before their content.
    pub foretold: Vec<(LocalRef, NumberRange)>,
    /// Recent sends that may be repeated: id, entry, wall time, the number it was delivered under.
    pub dedups: Vec<(DedupId, LocalRef, u64, Option<Number>)>,
}

/// Everything an engine starts from.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// `None` on the very first start.
    pub node: Option<NodeRecord>,
    /// Rooms of the node's present mesh. Rooms of an earlier mesh stay in the store.
    pub rooms: Vec<StoredRoom>,
    /// The control and claim entries of the directories, in the order of their logs, each with all of
    /// its numbers: folded anew.
    pub directory: Vec<(RoomId, LocalRef, Stored, Vec<Number>)>,
    /// Authors found forked.
    pub forked: Vec<NodeId>,
    /// Proofs of these forks, of rooms of the present mesh: for members that were away. At most
    /// [`crate::limits::PROOFS_MAX`].
    pub proofs: Vec<(Certificate, Run)>,
    /// The acts ([`crate::wire::kinds::is_act`]) of all rooms, each log's in order: folded anew.
    pub acts: Vec<(RoomId, LocalRef, Stored)>,
    /// This node's own notes on votes.
    pub notes: Vec<(RoomId, LocalRef, VoteNote)>,
    /// The heads of all records of the present mesh.
    pub records: Vec<StoredRecord>,
    /// All inboxes.
    pub inboxes: Vec<StoredInbox>,
    /// Requests of this node's agents that nobody was given yet.
    pub requests: Vec<RequestRecord>,
    /// Rooms that are carried: of which node, and which.
    pub carriages: Vec<(NodeId, RoomId, Carriage)>,
    /// The outlines of all things that are carried.
    pub carried: Vec<(CarriedAt, CarriedHead)>,
    /// What this node owes others.
    pub owed: Vec<(RoomId, NodeId, Owed)>,
}

impl Summary {
    /// Whether a node was admitted to the present mesh as a relay. `None`: it was not admitted.
    #[must_use]
    pub fn is_relay(&self, node: NodeId) -> Option<bool> {
        let directory = RoomId::directory(self.node.as_ref()?.mesh);
        let logs = &self.rooms.iter().find(|room| room.room == directory)?.logs;
        let is_own = |at: &LocalRef| {
            let log = usize::try_from(at.log).ok().and_then(|ix| logs.get(ix));
            log.is_some_and(|log| log.id.author == node)
        };
        let own = self.directory.iter().filter(|(room, at, ..)| *room == directory && is_own(at));
        let admissions = own.filter_map(|(_, at, entry, _)| {
            let body = Body::decode(entry.facts.kind, &entry.body);
            if let Body::NodeAdmitted(admitted) = body {
                Some((at.seq, admitted.relay))
            } else {
                None
            }
        });
        let (_, relay) = admissions.min_by_key(|(seq, _)| *seq)?;
        Some(relay == Some(true))
    }
}

/// A record that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Where it is.
    pub space: Space,
    /// Its kind.
    pub collection: CollectionNumber,
    /// Its head.
    pub head: RecordHead,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// The account that it is about ([`Collection::about`](crate::records::collection::Collection::about)).
    pub about: Option<KeyPrint>,
    /// Its bytes apart, if it has any.
    pub apart: Option<Apart>,
    /// These are in the store, too.
    pub held: bool,
    /// And another node has them, as it has said.
    pub copied: bool,
    /// The record itself, of collections whose contents the engine keeps
    /// ([`Collection::in_memory`](crate::records::collection::Collection::in_memory)).
    pub whole: Option<Box<Record>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_choices_nor_secrets_are_shown() {
        let note = VoteNote { choices: vec![(4, 77)], told: None };
        let kept = Change::Keep { name: b"a".to_vec(), value: Some(Opaque(b"MM".to_vec())) };
        for shown in [format!("{note:?}"), format!("{kept:?}")] {
            assert!(!shown.contains("77"), "as a number, or as the bytes of MM: {shown}");
        }
    }

    /// An era goes from its first sequencer to the second, back, and on to a third.
    #[test]
    fn what_was_issued_was_by_the_handover_that_was_the_last_one_then() {
        let log = |byte| LogId { author: NodeId([byte; 32]), incarnation: 0 };
        let place = |byte, seq| EntryRef { log: log(byte), seq };
        let mut era = EraRecord::new(log(1), Vec::new());
        for (at, to) in [(place(1, 5), 2), (place(2, 3), 1), (place(1, 9), 3)] {
            era.hand_over(at, log(to));
        }
        let [first, second, third] = [place(1, 5), place(2, 3), place(1, 9)].map(Some);
        let good = [
            (place(1, 4), None),
            (place(2, 2), first),
            (place(1, 8), second),
            (place(3, 1), third),
        ];
        let bad = [
            (place(1, 6), None),
            (place(2, 2), None),
            (place(2, 4), first),
            (place(1, 8), first),
            (place(1, 8), third),
            (place(3, 1), second),
            (place(2, 2), Some(place(4, 1))),
        ];
        assert!(good.iter().all(|(at, by)| era.was_issued(*at, *by)));
        assert!(!bad.iter().any(|(at, by)| era.was_issued(*at, *by)));
        assert!(era.is_issued_by(log(3), third) && !era.is_issued_by(log(3), second));
        // When there were more than are kept, whoever gave it away later than that may have had it.
        for seq in 10..10 + HANDOVERS_PER_ERA_MAX as u64 {
            era.hand_over(place(3, seq), log(3));
        }
        assert_eq!(era.former.len(), HANDOVERS_PER_ERA_MAX);
        assert!(era.was_issued(place(3, 1), third) && !era.was_issued(place(3, 30), third));
        assert!(!era.was_issued(place(2, 2), first));
    }

    #[test]
    fn who_goes_on_under_a_new_identity_keeps_its_private_rooms_and_nothing_that_was_the_formers() {
        let [first, former, by] = [1, 2, 3].map(|byte| NodeId([byte; 32]));
        let kept = NodeRecord {
            mesh: MeshId([7; 16]),
            boot: 5,
            clean: true,
            had_peer: true,
            lobby_floor: Number(9),
            ephemeral_claims: vec![(RoomId([8; 16]), Era::HOME)],
            roster: Some(vec![1].into()),
            private_of: None,
            parted: Some(Parted { why: crate::wire::entry::Parting::Left, by, wall_ms: 5 }),
        };
        let anew = NodeRecord {
            clean: false,
            ephemeral_claims: Vec::new(),
            roster: None,
            private_of: Some(former),
            parted: None,
            ..kept.clone()
        };
        assert_eq!(kept.clone().under_new_identity(former), anew);
        let again = NodeRecord { private_of: Some(first), ..kept };
        assert_eq!(again.under_new_identity(former).private_of, Some(first), "whose they were");
    }
}
