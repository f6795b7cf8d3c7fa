//! Answers to calls, and the one table that reads them out of the core's outcomes.

use mesh::{
    api::{
        account::{AccountClaim, AccountView},
        agenda::{KeyView, Standing, TaskRecord, TaskView, VoteView},
        approval::{ApprovalView, DecidedNow},
        command::{
            Access, AgentView, Attached, Inbox, MessageReceipts, Outcome, Roamed, RoomInfo,
            RoomView, SaidOk, Stops, StoredAt,
        },
        delivery::Ended,
        once::OnceAnswered,
        policy::{Withheld, withheld},
        status::MemberStatus,
        waits::WaitView,
    },
    name::{
        id::{AgentId, KeyPrint, NodeId, RoomId},
        number::Number,
    },
    wire::{acts::KeyTerms, record::Stamp},
};

use std::sync::Arc;

use mesh::records::{members::Member, profile::Profile};
use serde::{Deserialize, Serialize};

use crate::{
    reply::Failure,
    seam::{
        event::Message,
        refusal::{Bound, Refusal},
    },
};

pub use crate::backend::{FoundAgentFile, FoundFile, FoundReplaced, InboxItems, InboxPlace};

/// An agent is attached.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// Its id.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// Of an agent that comes back: its rooms, and how many events follow of those that it missed.
    pub resumed: Option<Resumed>,
}

/// An agent that comes back.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The rooms that it is in again.
    pub rooms: Vec<RoomId>,
    /// Events that follow the answer: it missed them.
    pub missed: usize,
}

/// A page of history.
#[derive(Debug)]
pub struct Page {
    /// Of which room.
    pub room: RoomId,
    /// Rising by number. Those whose content is no longer kept are left out.
    pub messages: Vec<Message>,
    /// Nothing can be said of the cursor yet: the page is empty, and does not mean that it is the end.
    pub behind: bool,
}

/// A part of an inbox.
#[derive(Debug, Default)]
pub struct InboxPage {
    /// Messages with their places, in the order in which they came. Those that are no longer kept, or that the agent may not
    /// read any more, are left out.
    pub items: Vec<Item>,
    /// The place up to which it was read.
    pub upto: u64,
    /// So many items are behind it.
    pub left: usize,
}

/// An item of an inbox.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its place.
    pub place: u64,
    /// The message; of a notice the agent's own request.
    pub message: Message,
    /// What the agent is told of its request.
    pub ended: Option<Ended>,
}

/// The fate of a message, as nodes say that were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipts {
    /// Nodes that hold it durably.
    pub stored: Vec<StoredAt>,
    /// As many have the room.
    pub of: usize,
    /// Nodes that did not answer.
    pub unknown: Vec<NodeId>,
    /// Agents that are known to have it, by id. Of others nothing is known.
    pub agents: Vec<Reached>,
}

/// An agent that has a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The agent.
    pub agent: AgentId,
    /// How that is known.
    pub how: How,
    /// The node that says so; of an answer its author's.
    pub node: NodeId,
    /// When, by that node's clock. Unix milliseconds.
    pub at_ms: u64,
}

/// How it is known that an agent has a message. Each says more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It was given to the agent.
    Delivered,
    /// The agent says so.
    Confirmed,
    /// The agent has answered it.
    Answered,
}

/// The profile of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProfile {
    /// The agent's id.
    pub agent: AgentId,
    /// The name that it registered with, if it is attached to some node and its profile names none.
    pub registered: Option<Arc<str>>,
    /// Its profile, in its own words.
    pub profile: Profile,
    /// Its key has retired it: nobody attaches under its id again.
    pub retired: bool,
}

/// A ballot is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// So many are.
    pub cast: usize,
    /// Of so many.
    pub eligible: usize,
}

/// Properties of a room that decide who may read it, and how it is spoken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomFacts {
    /// Its name.
    pub name: Arc<str>,
    /// Those who may know of it.
    pub access: Access,
    /// Only end-to-end encrypted content.
    pub encrypted: bool,
    /// Memory only.
    pub ephemeral: bool,
    /// A direct room for a task that one of its two agents gave to the other.
    pub task: bool,
    /// See [`RoomView::on_record`](mesh::api::command::RoomView::on_record).
    pub on_record: Arc<[Member]>,
    /// See [`RoomView::withheld`](mesh::api::command::RoomView::withheld).
    pub withheld: [Option<Withheld>; 2],
}

impl RoomFacts {
    /// Why this node does not hand over what an agent says here, if it does not.
    #[must_use]
    pub fn withheld(&self, author: &str) -> Option<Withheld> {
        withheld(self.access.sides.as_ref()?, &self.withheld, author)
    }

    /// Whether this agent may read it; without one, the holder of the key.
    #[must_use]
    pub fn readable_by(&self, key: KeyPrint, agent: Option<&str>) -> bool {
        self.access.includes(key, agent)
    }

    /// Whether every key may.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.access.public
    }
}

/// A subscription to a room's messages, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionView {
    /// Its id at this node.
    pub id: String,
    /// The room.
    pub room: RoomId,
    /// Where messages are posted.
    pub url: String,
    /// Which messages.
    pub filter: Filter,
    /// Only messages above this number.
    pub since: Number,
    /// All up to this number were delivered, or were not to be.
    pub delivered: Number,
    /// Whether messages are posted.
    pub status: SubscriptionStatus,
    /// Failures of the delivery that is being tried.
    pub failures: u64,
    /// Unix milliseconds.
    pub created_ms: u64,
}

/// Which messages are posted: all of these must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Only those whose `metadata.kind` is one of these.
    pub kinds: Option<Vec<String>>,
    /// Only those of agents of this name.
    pub only_from: Option<String>,
    /// None of agents of this name.
    pub not_from: Option<String>,
    /// No thinking pulses.
    pub exclude_thinking: bool,
}

/// Whether a subscription's messages are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionStatus {
    /// They are.
    Active,
    /// One could not be delivered: none until it is enabled again.
    Failed,
    /// Switched off.
    Disabled,
}

/// A good end of a call, as the core tells of it.
pub(crate) trait Answer: Sized {
    /// `None`: it is the end of another command.
    fn of(outcome: Outcome) -> Option<Self>;
}

/// Each row: an answer, and the outcome that it is read from.
macro_rules! answers {
    ($( $type:ty: $outcome:pat => $answer:expr; )*) => {
        $(
            impl Answer for $type {
                fn of(outcome: Outcome) -> Option<Self> {
                    if let $outcome = outcome { Some($answer) } else { None }
                }
            }
        )*
    };
}

answers! {
    (): Outcome::Done | Outcome::Joined(_) => ();
    Attached: Outcome::Attached(attached) => attached;
    RoomView: Outcome::Room(room) => room;
    SaidOk: Outcome::Said(said) => said;
    Box<Inbox>: Outcome::Inbox(inbox) => inbox;
    Vec<RoomView>: Outcome::Rooms(rooms) => rooms;
    Vec<AgentView>: Outcome::Agents(agents) => agents;
    Vec<RoomId>: Outcome::Seats(rooms) => rooms;
    Vec<Option<String>>: Outcome::NodeNames(names) => names;
    RoomInfo: Outcome::RoomInfo(room) => room;
    Box<VoteView>: Outcome::Vote(vote) => vote;
    Vec<VoteView>: Outcome::Votes(votes) => votes;
    Vec<Stamp>: Outcome::Stamps(stamps) => stamps;
    Option<Box<AccountView>>: Outcome::Account(account) => account;
    Vec<AccountClaim>: Outcome::Claims(claims) => claims;
    Cast: Outcome::Cast { cast, eligible } => Cast { cast, eligible };
    Vec<AgentId>: Outcome::Candidates(agents) => agents;
    Box<TaskView>: Outcome::Task(task) => task;
    Vec<TaskView>: Outcome::Tasks(tasks) => tasks;
    Box<TaskRecord>: Outcome::TaskRecord(record) => record;
    Vec<MemberStatus>: Outcome::Members(members) => members;
    Standing: Outcome::Key(standing) => standing;
    Vec<KeyView>: Outcome::Keys(keys) => keys;
    Option<Box<KeyTerms>>: Outcome::Terms(terms) => terms;
    RoomId: Outcome::Place(room) => room;
    Roamed: Outcome::Roamed(roamed) => roamed;
    Box<OnceAnswered>: Outcome::Once(answered) => answered;
    Box<ApprovalView>: Outcome::Approval(approval) => approval;
    Box<DecidedNow>: Outcome::Decided(decided) => decided;
    Box<Stops>: Outcome::Stops(stops) => stops;
    Vec<ApprovalView>: Outcome::Approvals(approvals) => approvals;
    Vec<WaitView>: Outcome::Waits(waits) => waits;
    Box<MessageReceipts>: Outcome::Receipts(receipts) => receipts;
}

/// The end of a call, as its answer. `bound`: the kind of thing that the call wants more of.
pub(crate) fn read<A: Answer>(ended: Result<Outcome, Failure>, bound: Bound) -> Result<A, Refusal> {
    match ended {
        // The core has one type for all outcomes, and its dispatcher ends each command with the one that the command's
        // documentation names. The command was made here, beside its answer: no client and no peer has a say in either.
        Ok(outcome) => Ok(A::of(outcome)
            .unwrap_or_else(|| unreachable!("the core ends each command with its own outcome"))),
        Err(Failure::Refused(refused)) => Err(Refusal::of(refused, bound)),
        Err(Failure::Unanswered) => Err(Refusal::Overloaded),
        Err(Failure::Unknown) => Err(Refusal::Unknown),
    }
}
