//! The agenda of a room as clients ask for and see it: votes, elections, tasks. And keys.

mod tasks;

use std::{sync::Arc, time::Duration};

use crate::{
    name::id::{AgentId, KeyPrint, MessageId, NodeId, RoomId},
    wire::{
        acts::{KeyMinted, KeyReplaced, KeyTerms, Tier},
        signatures::KeySignature,
    },
};

pub use tasks::{
    GivenAct, NewTask, TaskChange, TaskComment, TaskField, TaskMarks, TaskRecord, TaskUpdate,
    TaskView, TaskWrite,
};

// Votes.

/// A vote to be opened.
#[derive(Clone, Debug)]
pub struct NewVote {
    /// Where.
    pub room: RoomId,
    /// The question.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// At least two.
    pub options: Vec<String>,
    /// Closes after so many seconds, even if votes are missing.
    pub duration_secs: Option<u64>,
}

/// A vote, as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteView {
    /// Its id: that of the entry which opened it.
    pub vote: MessageId,
    /// Where.
    pub room: RoomId,
    /// The question.
    pub title: Arc<str>,
    /// More about it.
    pub description: Option<Arc<str>>,
    /// The options.
    pub options: Arc<[String]>,
    /// The agent that opened it.
    pub created_by: AgentId,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// Unix milliseconds.
    pub closes_ms: Option<u64>,
    /// Ballots so far; once closed, those that count.
    pub cast: usize,
    /// How many may vote.
    pub eligible: usize,
    /// Votes by option, once it is closed.
    pub tally: Option<Vec<u64>>,
    /// Its result is known: its ballots are open, or were waited for in vain. Never without a tally.
    pub closed: bool,
    /// Notes that only a mesh has.
    pub notes: VoteNotes,
}

/// Differences of a vote that only a mesh has. All zero in calm weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VoteNotes {
    /// It takes no more ballots, and its result is still being gathered.
    pub closing: bool,
    /// Ballots that count and that their nodes have not opened: missing from the tally.
    pub unopened: usize,
    /// Ballots that were cast and reached the node that closed the vote too late: they do not count.
    pub late: usize,
    /// Ballots of the tally that were opened after the result had been pushed here.
    pub corrected: usize,
}

/// How a vote ended. Pushed once.
#[derive(Clone, Debug)]
pub struct VoteResult {
    /// The vote, closed, with its tally.
    pub vote: VoteView,
    /// All ballots: agent, name, index of the option.
    pub ballots: Vec<(AgentId, String, u32)>,
}

// Elections.

/// The leader of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderView {
    /// Its id.
    pub agent: AgentId,
    /// Where it was attached when it was elected: its decisions are good from there.
    pub node: NodeId,
    /// Of its election: of two elections the one of the higher term counts.
    pub term: u64,
}

/// An election that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionView {
    /// The agent that began it.
    pub started_by: AgentId,
    /// Those among whom a leader is drawn: id and name.
    pub standing: Vec<(AgentId, String)>,
    /// Those that do not stand.
    pub declined: Vec<(AgentId, String)>,
    /// It can be declined still.
    pub is_open: bool,
}

/// Why a room has no leader any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderGone {
    /// It left the room, disconnected, or its node died.
    Left,
    /// Nobody stood.
    AllDeclined,
    /// An election of a higher term was held on the other side of a split.
    Superseded,
}

// Keys.

/// A key to be made valid. The key itself, and its secrets, stay where it was made up.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// As it will stand in this node's log: signed for that ([`KeyMinted::sign`]).
    pub minted: Box<KeyMinted>,
    /// Valid on this node alone.
    pub local: bool,
}

/// A key to be replaced by another one. The keys themselves, and their secrets, stay where they were shown.
#[derive(Clone, Debug)]
pub struct NewSuccessor {
    /// As it will stand in this node's log: signed for that by both ([`KeyReplaced::sign`]).
    pub replaced: Box<KeyReplaced>,
    /// The replaced key's voucher for this node, if it should be missing: a key that nobody minted is replaced by a node
    /// that was shown it.
    pub shown: Box<KeySignature>,
}

/// A minted key, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    /// Its fingerprint.
    pub key: KeyPrint,
    /// Its terms.
    pub terms: KeyTerms,
    /// Where it was minted.
    pub node: NodeId,
    /// Unix milliseconds.
    pub minted_ms: u64,
    /// Revoked: no longer valid.
    pub revoked: bool,
    /// The key that has replaced it, which makes it invalid, too.
    pub successor: Option<KeyPrint>,
    /// Valid on this node alone.
    pub local: bool,
}

/// Limits of the agents of one key at one node. `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeyLimits {
    /// Agents connected at once.
    pub agents: Option<usize>,
    /// Rooms created here that are still there.
    pub rooms: Option<usize>,
}

/// Limits of keys, by their tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The node's own key.
    pub own: KeyLimits,
    /// [`Tier::Low`].
    pub low: KeyLimits,
    /// [`Tier::High`].
    pub high: KeyLimits,
}

impl Default for Tiers {
    /// Of a node whose operator sets none.
    fn default() -> Tiers {
        Tiers {
            own: KeyLimits::default(),
            low: KeyLimits { agents: Some(20), rooms: Some(50) },
            high: KeyLimits { agents: Some(200), rooms: Some(500) },
        }
    }
}

/// For how long bodies of messages are kept at this node. `None`: for ever. Less than
/// [`crate::limits::RETENTION_MIN`] counts as that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// In the lobby, and in rooms of the node's own key and of keys that were never minted.
    pub own: Option<Duration>,
    /// In rooms of keys of [`Tier::Low`].
    pub low: Option<Duration>,
    /// In rooms of keys of [`Tier::High`].
    pub high: Option<Duration>,
}

impl Default for Retention {
    /// Of a node whose operator sets none.
    fn default() -> Retention {
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Retention { own: None, low: Some(14 * DAY), high: Some(90 * DAY) }
    }
}

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The node's own; or the node checks no keys.
    Own,
    /// A minted one.
    Minted {
        /// Its limits.
        tier: Tier,
        /// Its agents may do more than read.
        writes: bool,
        /// They may decide about approvals.
        approves: bool,
    },
}

impl Standing {
    /// Whether agents of such a key may do more than read.
    #[must_use]
    pub fn may_write(self) -> bool {
        match self {
            Standing::Own => true,
            Standing::Minted { writes, .. } => writes,
        }
    }

    /// Whether they may decide about approvals.
    #[must_use]
    pub fn may_approve(self) -> bool {
        match self {
            Standing::Own => true,
            Standing::Minted { approves, .. } => approves,
        }
    }
}
