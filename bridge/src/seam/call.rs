//! Calls: one struct for each thing that a client can ask of a node. `commands` has how each is put to the mesh.

use std::collections::BTreeSet;

use bytes::Bytes;
use mesh::{
    api::{
        account::{AccountClaim, AccountView, ContentState, RecordNews, RecordPage, RecordView},
        agenda::{GivenAct, NewTask, NewVote, TaskUpdate, TaskView, VoteView},
        approval::{ApprovalView, DecidedNow},
        budget::Conversing,
        command::{
            AgentView, Durable, Encryption, Inbox, NewPiece, NewRoom, RoomInfo, RoomView, SaidOk,
            ShareAct, Speech, Stops,
        },
        once::OnceAnswered,
        status::MemberStatus,
    },
    name::{
        group::TaskSeed,
        id::{AgentId, KeyPrint, MessageId, NodeId, RoomId},
        number::Number,
    },
    records::{
        agent_files::AgentFile,
        details::{Details, DetailsUpdate},
        files::{FileView, ReplacedFile},
        profile::ProfileUpdate,
        threads::ThreadFact,
    },
    wire::{
        acts::{KeyTerms, TaskStatus},
        record::Stamp,
        roster::Presence,
    },
};

use crate::{
    backend::{FoundAgentFile, FoundFile, FoundReplaced, InboxItems},
    seam::{
        answer::{
            AgentProfile, Cast, Filter, InboxPage, Page, Receipts, RoomFacts, SubscriptionView,
            Welcome,
        },
        event::Message,
    },
    secret::Secret,
};

mod accounts;
mod approvals;
mod attach;
mod commands;
mod files;
mod inbox;
mod members;
mod once;
mod owned;
mod schedules;
mod search;
mod tasks;
mod to_mesh;
mod waits;
mod writers;

pub use crate::records::{FollowRecords, GetContent, GetRecord, ListRecords, LocateContents};
pub use accounts::{ClaimAccount, FindAccount, ListClaims, PresentAccount, WriteRecords};
pub use approvals::{Decide, ListApprovals, ReadApproval, RequestApproval, Requested};
pub(crate) use approvals::{Deciding, Want};
pub use attach::{Attach, Identity};
pub use files::{GetFile, GetReplaced, ListFiles, ListReplaced, PutFile, RemoveFile};
pub use members::SetMember;
pub use once::AskOnce;
pub use owned::{GetAgentFile, ListAgentFiles, ListStops, PutAgentFile, RetireAgent, StopAgents};
pub(crate) use schedules::{ChangeJob, NoteRun};
pub use search::{FoundPage, Search};
pub use tasks::{DeleteTask, ReadTask};
pub use to_mesh::Call;
pub(crate) use to_mesh::{Sends, ToMesh};
pub use waits::ListWaits;

pub use inbox::{ConfirmInbox, HandOver, LookIntoInbox, OpenInbox, ReadInbox, TakeFromInbox};

macro_rules! calls {
    ($( $name:ty => $answer:ty; )*) => {
        $( impl Call for $name { type Answer = $answer; } )*
    };
}

calls! {
    Attach => Welcome;
    Look => RoomFacts;
    CreateRoom => RoomView;
    CreateShared => RoomView;
    OpenDirect => RoomView;
    ShareRoom => ();
    Join => ();
    JoinAsGuest => ();
    Leave => ();
    Say => SaidOk;
    MaySend => ();
    OpenInbox => Box<Inbox>;
    ReadInbox => InboxPage;
    LookIntoInbox => InboxItems;
    ConfirmInbox => Box<Inbox>;
    TakeFromInbox => Box<Inbox>;
    HandOver => ();
    OneMessage => Option<Message>;
    History => Page;
    GetReceipts => Option<Receipts>;
    Confirm => ();
    Numbered => Option<Message>;
    Tip => Number;
    ListRooms => Vec<RoomView>;
    ListAgents => Vec<AgentView>;
    FindAgent => Vec<AgentView>;
    ListOffering => Vec<AgentView>;
    StandOutside => ();
    ListAttached => Vec<AgentView>;
    ListDirect => Vec<RoomView>;
    ListNodes => Vec<MemberStatus>;
    DescribeKey => Option<Box<KeyTerms>>;
    MayBe => ();
    NotStopped => ();
    ListSeats => Vec<RoomId>;
    NameNodes => Vec<Option<String>>;
    DescribeRoom => RoomInfo;
    ReadDetails => Vec<Details>;
    ReadThreads => Vec<ThreadFact>;
    SetRoom => ();
    SetMember => ();
    RetireAgent => ();
    StopAgents => ();
    ListStops => Box<Stops>;
    PutAgentFile => ();
    ListAgentFiles => Vec<AgentFile>;
    GetAgentFile => Option<FoundAgentFile>;
    ListFiles => Vec<FileView>;
    GetFile => Option<FoundFile>;
    ListReplaced => Vec<ReplacedFile>;
    GetReplaced => Option<FoundReplaced>;
    PutFile => ();
    RemoveFile => ();
    SetTyping => ();
    Stream => ();
    SetPresence => ();
    SetProfile => ();
    SetProfileOf => ();
    GetProfile => AgentProfile;
    CreateVote => Box<VoteView>;
    CastVote => Cast;
    GetVote => Box<VoteView>;
    ListVotes => Vec<VoteView>;
    ElectLeader => Vec<AgentId>;
    DeclineElection => ();
    AssignTask => Box<TaskView>;
    ChangeTask => Box<TaskView>;
    OnGiven => ();
    AskOnce => Box<OnceAnswered>;
    RequestApproval => Requested;
    Decide => Box<DecidedNow>;
    ListApprovals => Vec<ApprovalView>;
    ReadApproval => Box<ApprovalView>;
    ListTasks => Vec<TaskView>;
    Subscribe => SubscriptionView;
    Unsubscribe => ();
    EnableSubscription => ();
    ListSubscriptions => Vec<SubscriptionView>;
    PostNotice => ();
    ClaimAccount => ();
    WriteRecords => Vec<Stamp>;
    PresentAccount => ();
    FindAccount => Option<Box<AccountView>>;
    ListClaims => Vec<AccountClaim>;
    FollowRecords => RecordNews;
    GetRecord => Option<RecordView>;
    ListDescribed => BTreeSet<AgentId>;
    ListRecords => RecordPage;
    GetContent => Option<Vec<u8>>;
    LocateContents => Vec<ContentState>;
}

/// Look at a room that the agent may read: for dialects that refuse something else only then.
#[derive(Clone, Copy, Debug)]
pub struct Look(pub RoomId);

/// Make a room. Its maker does not join it.
#[derive(Clone, Debug)]
pub struct CreateRoom(pub NewRoom);

/// Make a room that can be shared with agents of other keys, and that nobody else sees.
#[derive(Clone, Debug)]
pub struct CreateShared(pub NewRoom);

/// Give a shared room to the key of an agent, or take it from that key.
#[derive(Clone, Debug)]
pub struct ShareRoom {
    /// The room.
    pub room: RoomId,
    /// An agent of the key.
    pub agent: AgentId,
    /// The change.
    pub act: ShareAct,
}

/// The direct room of the agent and another one, made if there is none. Nobody joins it: both have seats as soon as one
/// writes.
#[derive(Clone, Debug)]
pub struct OpenDirect {
    /// The other agent; or the same.
    pub agent: AgentId,
    /// A room of its own, for a task that the agent gives to the other one.
    pub task: Option<TaskSeed>,
}

impl OpenDirect {
    /// The one direct room with an agent.
    pub fn with(agent: impl Into<AgentId>) -> OpenDirect {
        OpenDirect { agent: agent.into(), task: None }
    }
}

/// Become a member. Joining twice does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Join(pub RoomId);

/// Become a member that no turn passes to, and that is neither asked to vote nor to lead: for clients that know no such things.
#[derive(Clone, Copy, Debug)]
pub struct JoinAsGuest(pub RoomId);

/// Be a member no longer.
#[derive(Clone, Copy, Debug)]
pub struct Leave(pub RoomId);

/// Say something to the members of a room.
#[derive(Clone, Debug)]
pub struct Say {
    /// Where.
    pub room: RoomId,
    /// Of which kind.
    pub speech: Speech,
    /// The text.
    pub content: String,
    /// How the client sealed the text: its dialect says so.
    pub encryption: Encryption,
    /// The message it answers, as the client named it.
    pub reply_to: Option<String>,
    /// Ids of agents to be told.
    pub mentions: Vec<String>,
    /// Sound JSON on one line, not `null`.
    pub metadata: Option<String>,
    /// The client's own id of this message, if it may repeat it.
    pub dedup: Option<String>,
    /// How many nodes are to hold it durably before the answer, if the client says so.
    pub durable: Option<Durable>,
    /// Whether its author waits for an answer, if the client says so. Of a message in a direct room that says nothing: unless
    /// it is an answer itself.
    pub expects_reply: Option<bool>,
    /// Whether it counts among the open requests of its author, if it expects an answer. Where people talk without saying
    /// whether they expect one it does not: they would run into that budget.
    pub counted: bool,
    /// The tool of a model says it: the operator's rules about sending hold for it in rooms of many, too, and not in those of
    /// two agents alone.
    pub by_tool: bool,
    /// Of a request in the direct room of two agents: its author wants the outcome to be announced.
    pub announce: bool,
}

/// Whether the operator lets the agent send into a room: for callers that would do something else before.
#[derive(Clone, Copy, Debug)]
pub struct MaySend {
    /// The room.
    pub room: RoomId,
    /// See [`Say::by_tool`].
    pub by_tool: bool,
}

impl Say {
    /// A message with nothing but a text.
    pub fn chat(room: RoomId, content: String) -> Say {
        Say {
            room,
            speech: Speech::Chat,
            content,
            encryption: Encryption::None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
            durable: None,
            expects_reply: None,
            counted: false,
            by_tool: false,
            announce: false,
        }
    }
}

/// A piece of an answer that the agent is writing, for those that wait for it now. The answer itself is said when it is
/// whole.
#[derive(Clone, Debug)]
pub struct Stream(pub NewPiece);

/// A message with its place in a conversation.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) say: Say,
    pub(crate) conversing: Option<Conversing>,
}

impl Call for Placed {
    type Answer = SaidOk;
}

/// A message, by its id: the first of a repeated send, say. `None`: it is not here, or no longer kept.
#[derive(Clone, Copy, Debug)]
pub struct OneMessage {
    /// Where.
    pub room: RoomId,
    /// Which.
    pub message: MessageId,
}

/// The fate of a message. `None`: it is not here, or no longer kept.
#[derive(Clone, Copy, Debug)]
pub struct GetReceipts {
    /// Where.
    pub room: RoomId,
    /// Which.
    pub message: MessageId,
}

/// The agent has all messages of a room up to a number.
#[derive(Clone, Copy, Debug)]
pub struct Confirm {
    /// Where.
    pub room: RoomId,
    /// Up to which.
    pub upto: Number,
}

/// The message that was ever given this number in a room. `None`: none was here, or it is no longer kept.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// Where.
    pub room: RoomId,
    /// The number.
    pub number: Number,
}

/// A page of messages, the oldest first.
#[derive(Clone, Debug)]
pub struct History {
    /// Of which room.
    pub room: RoomId,
    /// Where the page begins.
    pub from: From,
    /// At most so many.
    pub limit: u64,
    /// Only messages written before this time. Unix milliseconds.
    pub before_ms: Option<u64>,
}

/// Where a page of history begins.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// The newest.
    Newest,
    /// The newest below a number that this node has given: the page before one that begins with it.
    Below(Number),
    /// The oldest above a number that the client has from this node or another one.
    Number(u64),
    /// The oldest after a message.
    Message(MessageId),
}

/// The highest number in a room.
#[derive(Clone, Copy, Debug)]
pub struct Tip(pub RoomId);

/// The rooms that the agent's key may see, or the parts of a room.
#[derive(Clone, Copy, Debug)]
pub struct ListRooms {
    /// Only the parts of this room.
    pub parent: Option<RoomId>,
}

/// The agents of the agent's key, or the members of a room.
#[derive(Clone, Copy, Debug)]
pub struct ListAgents {
    /// Only the members of this room.
    pub room: Option<RoomId>,
}

/// Look for an agent that is attached to some node, or was a moment ago: the one, or none.
#[derive(Clone, Debug)]
pub struct FindAgent(pub AgentId);

/// Agents of any key that offer something, at most so many.
#[derive(Clone, Debug)]
pub struct ListOffering {
    /// This. `None`: anything.
    pub capability: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// From now on, as long as it is attached, the agent writes messages and tasks in rooms that it may read without being in them.
/// It moves no turn there, and is no member.
#[derive(Clone, Copy, Debug)]
pub struct StandOutside;

/// Agents of any key, attached to any node: at most so many, the first by id.
#[derive(Clone, Copy, Debug)]
pub struct ListAttached {
    /// At most so many.
    pub limit: usize,
}

/// The direct rooms of all agents of the caller's key: its holder can be each of them.
#[derive(Clone, Copy, Debug)]
pub struct ListDirect;

/// All nodes that were ever admitted to the mesh, and whether they are there.
#[derive(Clone, Copy, Debug)]
pub struct ListNodes;

/// Agents that have a profile as their keys say, attached or not: profiles are for everybody. Of very many some.
#[derive(Clone, Copy, Debug)]
pub struct ListDescribed {
    /// At most so many.
    pub limit: usize,
}

/// The terms on which the caller's key was minted. `None`: it was not.
#[derive(Clone, Copy, Debug)]
pub struct DescribeKey;

/// Whether the key may have this agent id: it is not another one's.
#[derive(Clone, Debug)]
pub struct MayBe(pub AgentId);

/// Whether nobody has stopped an agent: it may send something elsewhere than in rooms, too.
#[derive(Clone, Debug)]
pub struct NotStopped {
    /// The agent, and its key. `None`: the caller.
    pub of: Option<(KeyPrint, AgentId)>,
}

/// The rooms that the agent is in, by id.
#[derive(Clone, Copy, Debug)]
pub struct ListSeats;

/// The names that nodes have given themselves: one answer for each, in their order. `None`: it has none, or is not known.
#[derive(Clone, Debug)]
pub struct NameNodes(pub Vec<NodeId>);

/// All about a room.
#[derive(Clone, Copy, Debug)]
pub struct DescribeRoom(pub RoomId);

/// The details that the keys of rooms have set: one answer for each room, in their order. Of a room that the caller may not
/// read, or that is not there, there are none.
#[derive(Clone, Debug)]
pub struct ReadDetails {
    /// The rooms.
    pub rooms: Vec<RoomId>,
    /// With their settings.
    pub settings: bool,
}

/// The facts of a room's threads, as the caller's key has written them ([`SetRoom`]).
#[derive(Clone, Copy, Debug)]
pub struct ReadThreads(pub RoomId);

/// Change the details of a room that the agent's key has made.
#[derive(Clone, Debug)]
pub struct SetRoom {
    /// The room.
    pub room: RoomId,
    /// The change.
    pub update: DetailsUpdate,
}

/// Tell others that one is typing, or not any more.
#[derive(Clone, Copy, Debug)]
pub struct SetTyping {
    /// Where.
    pub room: RoomId,
    /// Whether one is.
    pub typing: bool,
}

/// Tell others of one's doings.
#[derive(Clone, Debug)]
pub struct SetPresence(pub Presence);

/// Change one's profile.
#[derive(Clone, Debug)]
pub struct SetProfile(pub ProfileUpdate);

/// Change the profile of an agent whose id is the caller's key's own. It need not be there.
#[derive(Clone, Debug)]
pub struct SetProfileOf {
    /// The agent.
    pub agent: AgentId,
    /// The change.
    pub update: ProfileUpdate,
}

/// The profile of an agent.
#[derive(Clone, Debug)]
pub struct GetProfile(pub AgentId);

/// Open a sealed vote.
#[derive(Clone, Debug)]
pub struct CreateVote(pub NewVote);

/// Cast one's ballot.
#[derive(Clone, Copy, Debug)]
pub struct CastVote {
    /// Of which vote.
    pub vote: MessageId,
    /// Which option, from 0.
    pub option: u64,
}

/// A vote as it is now.
#[derive(Clone, Copy, Debug)]
pub struct GetVote(pub MessageId);

/// The votes of a room, the newest first.
#[derive(Clone, Copy, Debug)]
pub struct ListVotes {
    /// Of which room.
    pub room: RoomId,
    /// At most so many.
    pub limit: u64,
}

/// Have a leader drawn.
#[derive(Clone, Copy, Debug)]
pub struct ElectLeader(pub RoomId);

/// Do not stand in the election that runs.
#[derive(Clone, Copy, Debug)]
pub struct DeclineElection(pub RoomId);

/// Make a task.
#[derive(Clone, Debug)]
pub struct AssignTask(pub NewTask);

/// Change a task. In the room of a task that one agent gave to another, its end is an answer: the note is said to the agent that waits.
#[derive(Clone, Debug)]
pub struct ChangeTask(pub TaskUpdate);

/// The change alone.
#[derive(Debug)]
pub(crate) struct Changed(pub(crate) TaskUpdate);

impl Call for Changed {
    type Answer = Box<TaskView>;
}

/// An act in the room of a task that the agent has given to another one.
#[derive(Clone, Debug)]
pub struct OnGiven {
    /// The room.
    pub room: RoomId,
    /// The act.
    pub act: GivenAct,
}

/// The tasks of a room, the oldest first.
#[derive(Clone, Copy, Debug)]
pub struct ListTasks {
    /// Of which room.
    pub room: RoomId,
    /// Only those that are so far.
    pub status: Option<TaskStatus>,
}

/// Have the messages of a room posted to a URL.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// Of which room.
    pub room: RoomId,
    /// Where to.
    pub url: String,
    /// The secret that signs them.
    pub secret: Secret,
    /// Which messages.
    pub filter: Filter,
    /// Only messages above this number; `None`: those to come.
    pub since: Option<u64>,
}

/// Have nothing more posted.
#[derive(Clone, Debug)]
pub struct Unsubscribe {
    /// The subscription's id.
    pub id: String,
}

/// Go on with a subscription that failed.
#[derive(Clone, Debug)]
pub struct EnableSubscription {
    /// The subscription's id.
    pub id: String,
}

/// Post something to the URL of a subscription of the agent's key at this node, signed as its messages are, and said in no room.
/// Answered when the receiver has taken it. It may come twice, with the same id.
#[derive(Clone, Debug)]
pub struct PostNotice {
    /// The subscription's id.
    pub subscription: String,
    /// The same at each try, and of nothing else that is posted there.
    pub id: String,
    /// The body, JSON.
    pub body: Bytes,
}

/// The subscriptions of the agent's key at this node, the oldest first.
#[derive(Clone, Copy, Debug)]
pub struct ListSubscriptions {
    /// Only those of this room.
    pub room: Option<RoomId>,
}
