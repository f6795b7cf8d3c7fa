//! Commands of local clients, their outcomes, and refusals.

mod access;
mod drawn;
mod inbox;
mod owned;
mod receipts;
mod refused;
mod rooms;
mod schedules;
mod sender;
mod streams;
pub mod traits;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use crate::{
    api::{
        account::{AccountClaim, AccountView, RecordWrites},
        agenda::{
            ElectionView, GivenAct, KeyView, LeaderView, NewKey, NewSuccessor, NewTask, NewVote,
            Standing, TaskRecord, TaskUpdate, TaskView, VoteView,
        },
        approval::{ApprovalView, DecideApproval, DecidedNow, NewApproval},
        budget::Conversing,
        once::{Once, OnceAnswered},
        policy::Withheld,
        proof::Proof,
    },
    name::{
        account::Label,
        group::{Sides, TaskSeed},
        id::{AgentId, EntryRef, KeyPrint, LocalRef, MessageId, NodeId, RoomId, RoomKey},
        key::{KeySecret, Mailbox},
        number::Number,
    },
    records::{members::Member, profile::ProfileUpdate},
    wire::{
        acts::{KeyTerms, TaskStatus},
        conversation::Conversation,
        entry::{DedupId, Parting},
        record::Stamp,
        roster::Presence,
        signatures::KeySignature,
    },
};

pub use access::Access;
pub use drawn::Drawn;
pub use inbox::{Inbox, InboxAct, Unfiled};
pub use owned::{
    AgentFileChange, Inherited, OwnedProfile, Retire, SignAnew, StopAgents, StopView, Stops,
};
pub use receipts::{AgentReceipt, MessageReceipts, StoredAt};
pub use refused::{Apart, Refused};
pub use rooms::{
    FileAct, FileChange, GatherReplaced, LeaveOnRecord, MemberAct, MemberSet, RoomSet, Share,
    ShareAct,
};
pub use schedules::{ScheduleAct, ScheduleChange};
pub use streams::NewPiece;

/// Matches a reply to its command. Chosen by the driver, unique while unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One registration of an agent at this node; a newer one of the same id makes an older one stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Registration(pub u64);

/// The agent that asks: it is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The agent.
    pub agent: AgentId,
    /// Its key.
    pub key: KeyPrint,
    /// From [`Outcome::Attached`]. Commands of a registration that was taken over are refused with
    /// [`Refused::Superseded`].
    pub registration: Registration,
}

/// The one that reads: an agent, or a holder of a key that is no agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its key.
    pub key: KeyPrint,
    /// The agent. Direct rooms are read by their agents alone.
    pub agent: Option<AgentId>,
}

impl From<KeyPrint> for Reader {
    /// The holder of the key.
    fn from(key: KeyPrint) -> Reader {
        Reader { key, agent: None }
    }
}

impl Caller {
    /// As one that reads.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { key: self.key, agent: Some(self.agent.clone()) }
    }
}

/// A request of a local client.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Command {
    /// An agent registers. → [`Outcome::Attached`]
    Attach(Attach),
    /// Its connection is gone, unless it has a newer one. `seen`: the last number written to it per room. → [`Outcome::Done`]
    Detach { caller: Caller, seen: Vec<(RoomId, Number)> },
    /// Its connection is gone, and until it is detached it keeps its seats, its lead, its ballots and its presence. The next
    /// registration of the id with its key goes on with them, whatever that asks for. `hosted`: meanwhile it acts by requests.
    /// → [`Outcome::Done`]
    Linger { caller: Caller, seen: Vec<(RoomId, Number)>, hosted: bool },
    /// Until it registers anew, the agent writes in rooms that it may read, without a seat: it moves no turn. → [`Outcome::Done`]
    StandOutside { caller: Caller },
    /// → [`Outcome::Room`]
    CreateRoom { caller: Caller, room: NewRoom },
    /// The direct room of the caller and another agent, made if there is none; with a seed, the one for a task. `signer`: signs
    /// and opens for the caller's key; `None` on a node that checks none. → [`Outcome::Room`]
    OpenDirect {
        caller: Caller,
        signer: Option<Arc<KeySecret>>,
        agent: AgentId,
        task: Option<TaskSeed>,
    },
    /// A room that its maker shares with other keys. `signer`: as above. → [`Outcome::Room`]
    CreateShared { caller: Caller, signer: Option<Arc<KeySecret>>, room: NewRoom },
    /// A shared room is given to the key of an agent, or taken from it. → [`Outcome::Done`]
    Share(Box<Share>),
    /// Joining twice does nothing; a guest is none any more. → [`Outcome::Joined`]
    Join { caller: Caller, room: RoomId },
    /// A guest hears and writes as all members do; no turn passes to it, and it is neither asked to vote nor to lead: for
    /// clients that know no such things. A member that joins so is a guest from then on. → [`Outcome::Joined`]
    JoinAsGuest { caller: Caller, room: RoomId },
    /// → [`Outcome::Done`]
    Leave { caller: Caller, room: RoomId },
    /// → [`Outcome::Said`], when it is durable, numbered and delivered here.
    Say { caller: Caller, say: Say },
    /// The inbox of the caller. → [`Outcome::Inbox`], when what was asked for is durable.
    Inbox { caller: Caller, act: InboxAct },
    /// These messages, of a direct room, were handed to an agent of this node. → [`Outcome::Done`]
    Handed { agent: AgentId, room: RoomId, requests: Vec<EntryRef> },
    /// → [`Outcome::Done`]
    SetTyping { caller: Caller, room: RoomId, typing: bool },
    /// A piece of an answer that the agent is writing, for those that wait for it now. → [`Outcome::Done`]
    Stream { caller: Caller, piece: Box<NewPiece> },
    /// For a while somebody here waits for pieces of answers in these rooms. → [`Outcome::Done`]
    AwaitPieces { rooms: Vec<RoomId> },
    /// → [`Outcome::Done`]
    SetPresence { caller: Caller, presence: Presence },
    /// Rooms that it may see, under `parent` if given. → [`Outcome::Rooms`]
    ListRooms { by: Reader, parent: Option<RoomId> },
    /// Agents of the key (no room), or members of a room in join order. → [`Outcome::Agents`]
    ListAgents { by: Reader, room: Option<RoomId> },
    /// The rooms in which the agent has a seat. → [`Outcome::Seats`]
    ListSeats { caller: Caller },
    /// The names that nodes have given themselves, one for each, in their order. → [`Outcome::NodeNames`]
    NameNodes { nodes: Vec<NodeId> },
    /// → [`Outcome::RoomInfo`]
    RoomInfo { by: Reader, room: RoomId },
    /// → [`Outcome::Vote`]
    CreateVote { caller: Caller, vote: NewVote },
    /// The ballot is sealed. → [`Outcome::Cast`]
    CastVote { caller: Caller, vote: MessageId, option: u64 },
    /// In the agent's rooms a vote is looked for that is not known here. → [`Outcome::Vote`]
    GetVote { by: Reader, vote: MessageId },
    /// What other nodes say became of a message that is here: `at` its place, `number` its number. → [`Outcome::Receipts`],
    /// after [`crate::limits::INQUIRY_FOR`] at most.
    Receipts { by: Reader, room: RoomId, at: LocalRef, number: Number },
    /// Records of a key are written anew by its successor, after [`Command::ReplaceKey`]. → [`Outcome::SignedAnew`], when they are
    /// durable.
    SignAnew(Box<SignAnew>),
    /// Other nodes are asked for states of files that newer ones have replaced: the store has those that they tell of. →
    /// [`Outcome::Done`], when all connected ones have answered, and after [`crate::limits::INQUIRY_FOR`] at the latest.
    GatherReplaced(Box<GatherReplaced>),
    /// The newest first. → [`Outcome::Votes`]
    ListVotes { by: Reader, room: RoomId, limit: usize },
    /// → [`Outcome::Candidates`]
    ElectLeader { caller: Caller, room: RoomId },
    /// → [`Outcome::Done`]
    Decline { caller: Caller, room: RoomId },
    /// → [`Outcome::Task`]
    AssignTask { caller: Caller, task: NewTask },
    /// → [`Outcome::Task`], when it is applied.
    UpdateTask { caller: Caller, update: TaskUpdate },
    /// In the room of a task that the agent has given. → [`Outcome::Done`], when it is durable.
    Given { caller: Caller, room: RoomId, act: GivenAct },
    /// → [`Outcome::Once`], when the answer has come, and of one that grants is durable.
    Once(Box<Once>),
    /// → [`Outcome::Approval`], when it is durable.
    RequestApproval(Box<NewApproval>),
    /// → [`Outcome::Decided`], when the answer has come.
    DecideApproval(Box<DecideApproval>),
    /// Those of all rooms that it may read, or of one: that are open, or hold for always. → [`Outcome::Approvals`]
    ListApprovals { by: Reader, room: Option<RoomId> },
    /// Agents that wait for others, in the rooms that it may read. → [`Outcome::Waits`]
    ListWaits { by: Reader },
    /// → [`Outcome::Approval`]
    ReadApproval { by: Reader, room: RoomId, approval: MessageId },
    /// The oldest first. → [`Outcome::Tasks`]
    ListTasks { by: Reader, room: RoomId, status: Option<TaskStatus> },
    /// → [`Outcome::TaskRecord`]
    ReadTask { by: Reader, room: RoomId, task: MessageId },
    /// Of one that has ended, by the agent that made it or the key that made its room. → [`Outcome::Done`]
    DeleteTask { caller: Caller, task: MessageId },
    /// An operator makes a key valid. → [`Outcome::Done`], when it is durable.
    MintKey(NewKey),
    /// The same for a stranger: while there are places that are not kept for operators.
    SignUp(NewKey),
    /// It is no longer valid, for ever; connections of its agents are closed. → [`Outcome::Done`]
    RevokeKey { key: KeyPrint },
    /// All that is a key's own belongs to another one from now on, and the first is no longer valid.
    /// → [`Outcome::Done`], when it is durable.
    ReplaceKey(Box<NewSuccessor>),
    /// Minted keys. → [`Outcome::Keys`]
    ListKeys,
    /// The kind of a key; refused with [`Refused::NoKey`] if it is nothing here. → [`Outcome::Key`]
    CheckKey { key: KeyPrint, own: bool },
    /// The profile of the agent is to say this: fields that are not named stay as they are. `signer`: signs for its key;
    /// `None` on a node that checks none. → [`Outcome::Done`], when it is durable.
    SetProfile { caller: Caller, signer: Option<Arc<KeySecret>>, update: Box<ProfileUpdate> },
    /// The same, of an agent that need not be there, by the key that owns its id. → [`Outcome::Done`], when it is durable.
    SetProfileOf(Box<OwnedProfile>),
    /// The details of a room that the caller's key has made are to be these: those that are not named stay as they are.
    /// → [`Outcome::Done`], when it is durable.
    SetRoom(Box<RoomSet>),
    /// An agent is put on the list of a room that the caller's key has made, and has a seat there when it is attached; or it is
    /// taken off, and has none. → [`Outcome::Done`], when it is durable.
    SetMember(Box<MemberSet>),
    /// As [`Command::Leave`], and a member on record says for its key that it has left by itself. → [`Outcome::Done`]
    LeaveOnRecord(Box<LeaveOnRecord>),
    /// Nobody attaches under this id again, in the whole mesh. By the key that owns it. → [`Outcome::Done`], when it is durable.
    RetireAgent(Box<Retire>),
    /// An agent sends nothing until it is let go, or all agents do: those of the key, and of an operator's key those of all nodes
    /// that go by it. → [`Outcome::Done`], when it is durable.
    StopAgents(Box<StopAgents>),
    /// Agents that are stopped, as far as it counts here or the key says so. → [`Outcome::Stops`]
    ListStops { key: KeyPrint },
    /// Whether an agent of a key may send something in a place that the core does not know, such as mail of an account of its
    /// own: refused with [`Refused::Stopped`] if it is stopped. → [`Outcome::Done`]
    MaySend { key: KeyPrint, agent: AgentId },
    /// A file of an agent is written or deleted, by the key that owns its id. → [`Outcome::Done`], when it is durable.
    ChangeAgentFile(Box<AgentFileChange>),
    /// The room in whose place a key's own records are: they are where its private rooms are. → [`Outcome::Place`]
    PlaceOfKey { key: KeyPrint },
    /// A file of a room that the key has made is written or deleted. → [`Outcome::Done`], when record and content are durable.
    ChangeFile(Box<FileChange>),
    /// A job of a key's schedule is written or deleted, or a run of one is noted. → [`Outcome::Done`], when it is durable.
    ChangeSchedule(Box<ScheduleChange>),
    /// An account, which signs for itself, is to be known, and claims labels. → [`Outcome::Done`], when the claim has a number
    /// and is durable.
    ClaimAccount { account: Arc<KeySecret>, labels: Vec<Label> },
    /// An account writes records, all of them or none. → [`Outcome::Stamps`], in their order, when they are durable.
    WriteRecords(Box<RecordWrites>),
    /// An account's key was shown to this node, which keeps the account's mail from now on. → [`Outcome::Done`]
    PresentAccount(Arc<KeySecret>),
    /// An account. One that is not known here is asked of connected nodes. → [`Outcome::Account`]
    FindAccount(KeyPrint),
    /// The accounts that claim a label, in the order in which they count. → [`Outcome::Claims`]
    ListClaims(Label),
    /// Agents of any key that offer something: this, or with `None` anything; at most so many. → [`Outcome::Agents`]
    ListOffering { capability: Option<String>, limit: usize },
    /// Agents of any key, attached to any node: at most so many, the first by id. → [`Outcome::Agents`]
    ListAttached { limit: usize },
    /// The direct rooms of all agents of a key. Its holder may read them: it can be each of these agents. → [`Outcome::Rooms`]
    ListDirect { key: KeyPrint },
    /// The terms on which a key was minted. → [`Outcome::Terms`]
    KeyTerms { key: KeyPrint },
    /// Whether a key may have an agent id: refused with [`Refused::AgentTaken`] if it is another one's. → [`Outcome::Done`]
    CheckAgent { agent: AgentId, key: KeyPrint },
    /// All agents of this node, of every key, for its operator. → [`Outcome::Attendance`]
    Attendance,
    /// An agent that is attached to any node, or was a moment ago: the one, or none. → [`Outcome::Agents`]
    FindAgent { agent: AgentId },
    /// Something of the node's own that the core does not look into (webhook subscriptions): kept, or
    /// with `None` forgotten. → [`Outcome::Done`], when it is durable.
    Keep { name: Vec<u8>, value: Option<Opaque> },
    /// A client came from another node with a cursor that this node cannot serve from as it is (numbering.md,
    /// Roaming). `entries`: those that it is not proven to have seen and that have no number above the cursor, each
    /// with the number under which it was delivered here, if it was. They get one, in a new era if need be, where
    /// nobody else can be expected to give it. → [`Outcome::Roamed`], after a second at most.
    Roam { room: RoomId, cursor: Number, entries: Vec<(LocalRef, Option<Number>)> },
    /// The client names a room, or a message in it, that is not known here: connected nodes are asked.
    /// → [`Outcome::Done`], when it is here or none of them has it.
    Seek { caller: Caller, room: RoomId, message: Option<MessageId> },
    /// An operator asks. → [`Outcome::Status`]
    Status,
    /// How much there is to fetch. Asked all the time, so it looks at rooms in which something waits
    /// and at no others. → [`Outcome::Behind`]
    Behind,
    /// Everybody who was ever admitted to the mesh. → [`Outcome::Members`]
    Members,
    /// An operator says that another node has no part in the mesh any more. `force`: although others are
    /// known to have more of its entries. → [`Outcome::Done`], when it is durable.
    Part { node: NodeId, why: Parting, force: bool },
    /// The mesh's connections get another secret, `drawn` from the system's randomness. `force`: although
    /// members are away. → [`Outcome::Done`], when it is durable.
    RotateSecret { drawn: Drawn, force: bool },
    /// This node leaves the mesh for good. `force`: although something of its own would be lost.
    /// → [`Outcome::LeftMesh`], and then [`crate::Effect::Stopped`]
    LeaveMesh { force: bool },
    /// Hand over, then say [`crate::Effect::Stopped`]. Everything after it is refused. → nothing
    Stop,
}

/// An agent's registration.
#[derive(Clone, Debug)]
pub struct Attach {
    /// Given by the client (stable), or made by the bridge.
    pub agent: AgentId,
    /// Whether the client gave the id: then it is claimed for its key.
    pub stable: bool,
    /// The client may take the id over, and gets its rooms back.
    pub reconnect: bool,
    /// Its key.
    pub key: KeyPrint,
    /// The key is the node's own, or the node checks none: otherwise it has to be a minted one.
    pub own: bool,
    /// The secret that opens the key's private rooms.
    pub opener: Option<RoomKey>,
    /// The secret that opens its mailbox, and with it the direct rooms of its agents. `None`: the key is too short for
    /// them, or the node checks none.
    pub mailbox: Option<Mailbox>,
    /// The key's word that a stable id is to be its own ([`KeySignature::of_claim`]): used if nobody has claimed the id.
    pub claim: Option<Box<KeySignature>>,
    /// The key's word that it was shown at this node ([`KeySignature::of_voucher`]): written once, so that others can see in whose name
    /// the node speaks.
    pub shown: Option<Box<KeySignature>>,
    /// Its name.
    pub name: String,
    /// Its capabilities, in its own words.
    pub capabilities: Vec<String>,
}

/// A room to be made.
#[derive(Clone, Debug)]
pub struct NewRoom {
    /// Its name, not empty.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The room it is under.
    pub parent: Option<RoomId>,
    /// Contents never touch a disk; it ends with its last member.
    pub ephemeral: bool,
    /// Visible to every key.
    pub public: bool,
    /// Only end-to-end encrypted content.
    pub encrypted: bool,
}

/// Which kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Moves the turn.
    Chat,
    /// Does not.
    Thinking,
    /// The leader's alone. Does not either.
    Decision,
}

/// How a client sealed the content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Nodes can read it.
    None,
    /// From client to client: nodes cannot read it.
    EndToEnd,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Say {
    /// Where.
    pub room: RoomId,
    /// Of which kind.
    pub speech: Speech,
    /// The text.
    pub content: String,
    /// How the client sealed the text. The core does not look into it: the caller says so.
    pub encryption: Encryption,
    /// The message it answers, as the client named it.
    pub reply_to: Option<String>,
    /// Agents to be told.
    pub mentions: Vec<AgentId>,
    /// JSON text.
    pub metadata: Option<String>,
    /// Set when the client may repeat this.
    pub dedup: Option<DedupId>,
    /// Set when several nodes are to hold it before the command is answered. Not in ephemeral rooms.
    pub durable: Option<Durable>,
    /// Set when it takes part in a conversation, whose budgets hold then ([`crate::api::budget`]). In a box: few do.
    pub conversing: Option<Box<Conversing>>,
}

/// How many nodes are to hold a message durably before its send is answered, and how long that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durable {
    /// So many nodes, this one included: 1 to the number of nodes that have the room.
    pub copies: usize,
    /// From the moment at which the message has its number; at most [`crate::limits::COPIES_WITHIN_MAX`] counts. Then the
    /// command is answered with the copies that there are.
    pub within: Duration,
}

/// The fate of a cursor that is of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roamed {
    /// Read again, and give what there is: nothing more is numbered for it.
    Ready,
    /// Its era has become known: read again as if nothing had been asked.
    Heard,
    /// Nothing can be said of it yet: this node has not met the others since its start, or may not open an era now. Ask
    /// again.
    Behind,
    /// It counts as the tip: it is no number, or too far ahead, or the room takes nothing more.
    Never,
}

/// A command's good end.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum Outcome {
    /// Nothing to tell.
    Done,
    /// Registered.
    Attached(Attached),
    /// A room was made.
    Room(RoomView),
    /// Joined; `false` if the agent was there already.
    Joined(bool),
    /// Sent.
    Said(SaidOk),
    /// An inbox, as it is now.
    Inbox(Box<Inbox>),
    /// Rooms, by name.
    Rooms(Vec<RoomView>),
    /// Agents.
    Agents(Vec<AgentView>),
    /// Rooms in which an agent has a seat, by id.
    Seats(Vec<RoomId>),
    /// Names of nodes. `None`: the node has none, or is not known.
    NodeNames(Vec<Option<String>>),
    /// By when they were attached.
    Attendance(Vec<Attendee>),
    /// All about a room.
    RoomInfo(RoomInfo),
    /// A vote.
    Vote(Box<VoteView>),
    /// Votes, the newest first.
    Votes(Vec<VoteView>),
    /// A ballot is in: so many are, of so many.
    Cast { cast: usize, eligible: usize },
    /// An election has begun, among these.
    Candidates(Vec<AgentId>),
    /// A task.
    Task(Box<TaskView>),
    /// Tasks, the oldest first.
    Tasks(Vec<TaskView>),
    /// The answer to one that asks for something that at most one is to have.
    Once(Box<OnceAnswered>),
    /// An approval.
    Approval(Box<ApprovalView>),
    /// The end of an attempt to decide.
    Decided(Box<DecidedNow>),
    /// Approvals, the oldest first.
    Approvals(Vec<ApprovalView>),
    /// Agents that are stopped.
    Stops(Box<Stops>),
    /// All that is remembered of a task.
    TaskRecord(Box<TaskRecord>),
    /// The fate of a message.
    Receipts(Box<MessageReceipts>),
    /// So many records are the successor's word now, and so many are not: there is no room for them, or the clock is behind them.
    /// Those that it had written itself are neither.
    SignedAnew { signed: usize, left: usize },
    /// The stamps of records that were written, in their order.
    Stamps(Vec<Stamp>),
    /// An account, if it is known.
    Account(Option<Box<AccountView>>),
    /// Accounts that claim a label, in the order in which they count.
    Claims(Vec<AccountClaim>),
    /// The longest first.
    Waits(Vec<crate::api::waits::WaitView>),
    /// Minted keys.
    Keys(Vec<KeyView>),
    /// The kind of a key.
    Key(Standing),
    /// The terms of a key that was minted and is valid; `None` of others.
    Terms(Option<Box<KeyTerms>>),
    /// A room, for its place.
    Place(RoomId),
    /// The fate of a roaming client's cursor.
    Roamed(Roamed),
    /// For an operator.
    Status(crate::api::status::Status),
    /// Entries that connected peers are known to have and this node has not, over all rooms.
    Behind(u64),
    /// Members, by when they were admitted.
    Members(Vec<crate::api::status::MemberStatus>),
    /// This node has left. `heard`: another member has said that it knows.
    LeftMesh { heard: bool },
}

/// An agent is registered. From now on events for it are emitted.
#[derive(Clone, Debug)]
pub struct Attached {
    /// To be given with each later command.
    pub registration: Registration,
    /// Rooms restored, each with the last number it is known to have seen. `None`: not a
    /// reconnection (the client is told nothing of rooms).
    pub restored: Option<Vec<(RoomId, Number)>>,
    /// Direct rooms in which the other agent has written since this one did, each with the number of its own last
    /// message: it has a seat there now, and later messages are to be given to it.
    pub addressed: Vec<(RoomId, Number)>,
    /// A connection at this node that held the id until now and is to be closed.
    pub displaced: Option<Registration>,
    /// When it was registered. Unix milliseconds.
    pub connected_ms: u64,
    /// The kind of its key.
    pub standing: Standing,
}

/// A message is durable, numbered and delivered at this node.
#[derive(Clone, Debug)]
pub struct SaidOk {
    /// Its id.
    pub message: MessageId,
    /// Its number here.
    pub number: Number,
    /// `None`: an earlier send that was repeated. This is its message, to be read for the rest.
    pub fresh: Option<Fresh>,
    /// How many nodes have said that they hold it durably, this one included, if the command asked. Never more than did.
    pub copies: Option<usize>,
}

/// All that a message which was written just now says beyond its command.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// When it was written. Unix milliseconds.
    pub wall_ms: u64,
    /// The author's name with it.
    pub name: String,
    /// Whether it is its author's, as others will judge it, too.
    pub proof: Proof,
    /// Its place in a conversation, if it has one.
    pub conversation: Option<Conversation>,
}

/// A room as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomView {
    /// Its id.
    pub room: RoomId,
    /// Its name in this mesh now.
    pub name: Arc<str>,
    /// Its purpose.
    pub description: Option<Arc<str>>,
    /// The room it is under.
    pub parent: Option<RoomId>,
    /// Memory only.
    pub ephemeral: bool,
    /// Visible to every key.
    pub public: bool,
    /// Only end-to-end encrypted content.
    pub encrypted: bool,
    /// The key that made it; `None` for the lobby.
    pub owner: Option<KeyPrint>,
    /// Its bodies are sealed for that key.
    pub sealed: bool,
    /// The agent that made it.
    pub created_by: Option<AgentId>,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// Unix milliseconds of the newest message.
    pub last_activity_ms: Option<u64>,
    /// Agents in it, on all nodes.
    pub members: usize,
    /// Highest number delivered here.
    pub tip: Number,
    /// Of a direct room: its two agents.
    pub sides: Option<Sides>,
    /// A direct room for a task that one of the two gave to the other.
    pub task: bool,
    /// It takes nothing more.
    pub closed: bool,
    /// Of a shared room: the keys that have it.
    pub shared: Option<Arc<BTreeSet<KeyPrint>>>,
    /// Its members on record, by agent: whether they have a seat now is another question.
    pub on_record: Arc<[Member]>,
    /// Of a direct room, for each of its two agents: why this node does not hand over to the other one what that one says.
    pub withheld: [Option<Withheld>; 2],
}

/// Bytes that the daemon keeps for itself. There are secrets in them: they are not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Opaque(pub Vec<u8>);

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opaque({} bytes)", self.0.len())
    }
}

/// An agent as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// Its id.
    pub agent: AgentId,
    /// Its name.
    pub name: Arc<str>,
    /// The node it is attached to.
    pub node: NodeId,
    /// The key that it showed there, as that node says.
    pub key: KeyPrint,
    /// Whether the key itself says so, and owns the agent's id: [`Proof::verified`].
    pub verified: bool,
    /// Its capabilities, in its own words.
    pub capabilities: Vec<String>,
    /// Unix milliseconds.
    pub connected_ms: u64,
    /// Unix milliseconds.
    pub last_active_ms: u64,
    /// Its presence.
    pub presence: Presence,
    /// It has no connection at present: [`Command::Linger`].
    pub lingers: bool,
    /// It acts by requests instead, as hosts of models do.
    pub hosted: bool,
    /// Of a member of a room: it is a guest there.
    pub guest: bool,
}

/// An agent as the operator of its node sees it.
#[derive(Clone, Debug)]
pub struct Attendee {
    /// The agent.
    pub view: AgentView,
    /// Names of the rooms it is in; ids of those whose names this node cannot read.
    pub rooms: Vec<String>,
}

/// All about a room.
#[derive(Clone, Debug)]
pub struct RoomInfo {
    /// The room.
    pub room: RoomView,
    /// Members in join order.
    pub agents: Vec<AgentView>,
    /// Rooms under it that the caller may see.
    pub sub_rooms: Vec<RoomView>,
    /// Whose turn it is.
    pub turn: Option<AgentId>,
    /// Its leader.
    pub leader: Option<LeaderView>,
    /// The election that runs.
    pub election: Option<ElectionView>,
}

#[cfg(test)]
mod tests;
