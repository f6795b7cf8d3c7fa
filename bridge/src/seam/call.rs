//! Calls: one struct for each thing that a client can ask of a node, and how each is put to the mesh.

use mesh::{
    api::{
        agenda::{NewTask, NewVote, TaskUpdate, TaskView, VoteView},
        budget::Conversing,
        command::{
            self, AgentView, Command, Durable, Encryption, Inbox, NewRoom, RoomInfo, RoomView,
            SaidOk, ShareAct, Speech,
        },
        rules::check_references,
    },
    limits::{CONTENT_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::{
        group::TaskSeed,
        id::{AgentId, MessageId, NodeId, RoomId},
        number::Number,
    },
    records::{
        details::{Details, DetailsUpdate},
        files::FileView,
        profile::ProfileUpdate,
    },
    wire::{acts::TaskStatus, entry::DedupId, roster::Presence},
};

use crate::{
    backend::{FoundFile, InboxItems},
    config::Quota,
    delivery::hook::Hook,
    limits::{self, BODY_OVERHEAD_BYTES},
    seam::{
        answer::{
            AgentProfile, Answer, Cast, Filter, InboxPage, Page, Receipts, RoomFacts,
            SubscriptionView, Welcome,
        },
        event::Message,
        refusal::{Bound, Refusal},
    },
    secret::Secret,
    session::party::Party,
};

mod attach;
mod files;
mod inbox;

pub use attach::{Attach, Identity};
pub use files::{GetFile, ListFiles, PutFile, RemoveFile};
pub use inbox::{ConfirmInbox, LookIntoInbox, OpenInbox, ReadInbox, TakeFromInbox};

/// A call: a question with the type of its answer.
pub trait Call: Send + 'static {
    /// The answer to a client that is not refused.
    type Answer: Send + 'static;
}

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
    Leave => ();
    Say => SaidOk;
    OpenInbox => Box<Inbox>;
    ReadInbox => InboxPage;
    LookIntoInbox => InboxItems;
    ConfirmInbox => Box<Inbox>;
    TakeFromInbox => Box<Inbox>;
    OneMessage => Option<Message>;
    History => Page;
    GetReceipts => Option<Receipts>;
    Confirm => ();
    Numbered => Option<Message>;
    Tip => Number;
    ListRooms => Vec<RoomView>;
    ListAgents => Vec<AgentView>;
    FindAgent => Vec<AgentView>;
    ListSeats => Vec<RoomId>;
    NameNodes => Vec<Option<String>>;
    DescribeRoom => RoomInfo;
    ReadDetails => Vec<Details>;
    SetRoom => ();
    ListFiles => Vec<FileView>;
    GetFile => Option<FoundFile>;
    PutFile => ();
    RemoveFile => ();
    SetTyping => ();
    SetPresence => ();
    SetProfile => ();
    GetProfile => AgentProfile;
    CreateVote => Box<VoteView>;
    CastVote => Cast;
    GetVote => Box<VoteView>;
    ListVotes => Vec<VoteView>;
    ElectLeader => Vec<AgentId>;
    DeclineElection => ();
    AssignTask => Box<TaskView>;
    ChangeTask => Box<TaskView>;
    ListTasks => Vec<TaskView>;
    Subscribe => SubscriptionView;
    Unsubscribe => ();
    EnableSubscription => ();
    ListSubscriptions => Vec<SubscriptionView>;
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
}

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

/// The subscriptions of the agent's key at this node, the oldest first.
#[derive(Clone, Copy, Debug)]
pub struct ListSubscriptions {
    /// Only those of this room.
    pub room: Option<RoomId>,
}

/// How a call is put to the mesh: [`Rules`](crate::session::rules::Rules) judge all calls by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The kind of thing that it wants more of.
    pub(crate) bound: Bound,
    /// Whether it counts as a message does: it is written for all nodes.
    pub(crate) counts: bool,
    /// Whether a key that may only read may not have it done.
    pub(crate) acts: bool,
}

impl Row {
    /// It changes nothing for others, but that they see who is there.
    const fn free(bound: Bound) -> Row {
        Row { bound, counts: false, acts: false }
    }

    const fn act(bound: Bound) -> Row {
        Row { bound, counts: false, acts: true }
    }

    const fn counted(bound: Bound) -> Row {
        Row { bound, counts: true, acts: true }
    }
}

/// A call that the mesh answers.
pub(crate) trait ToMesh: Call<Answer: Answer> {
    const ROW: Row = Row::free(Bound::Node);

    /// The room that it names: known here, and to be read by the caller.
    fn room(&self) -> Option<RoomId> {
        None
    }

    /// Whether its fields keep to their bounds.
    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(())
    }

    /// Its part in routing.
    fn hook(&self) -> Hook {
        Hook::None
    }

    /// The command for the mesh. Of a party that is no agent only such as need none.
    fn command(self, party: &Party) -> Result<Command, Refusal>;
}

impl CreateRoom {
    /// Whether name and description are sound: for dialects that say so before anything of the parent.
    ///
    /// # Errors
    /// The refusal names the field.
    pub fn fields(&self) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }
}

impl ToMesh for CreateRoom {
    const ROW: Row = Row::act(Bound::Rooms);

    fn room(&self) -> Option<RoomId> {
        self.0.parent
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        self.fields()
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CreateRoom { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for CreateShared {
    // All nodes hear of it.
    const ROW: Row = Row::counted(Bound::Rooms);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::CreateShared { caller, signer, room: self.0 })
    }
}

impl ToMesh for ShareRoom {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let ShareRoom { room, agent, act } = self;
        Ok(Command::Share(Box::new(command::Share { caller, signer, room, agent, act })))
    }
}

impl ToMesh for OpenDirect {
    // All nodes hear of the first room of two keys.
    const ROW: Row = Row::counted(Bound::Rooms);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::OpenDirect { caller, signer, agent: self.agent, task: self.task })
    }
}

impl ToMesh for Join {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn hook(&self) -> Hook {
        Hook::Join { room: self.0, fresh: false }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Join { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for Leave {
    const ROW: Row = Row::free(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn hook(&self) -> Hook {
        Hook::Leave { room: self.0 }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Leave { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for Placed {
    const ROW: Row = Row::counted(Bound::Messages);

    fn room(&self) -> Option<RoomId> {
        Some(self.say.room)
    }

    fn check(&self, facts: Option<RoomFacts>, quota: Quota) -> Result<(), Refusal> {
        let Say { content, encryption, mentions, reply_to, metadata, .. } = &self.say;
        if facts.is_some_and(|facts| facts.encrypted) && *encryption == Encryption::None {
            return Err(Refusal::Mesh(command::Refused::Plaintext));
        }
        let max = quota.content_bytes_max.min(CONTENT_BYTES_MAX);
        if content.len() > max {
            return Err(Refusal::ContentTooLarge { max });
        }
        check_references(mentions, reply_to.as_deref())?;
        let metadata = metadata.as_ref().map_or(0, String::len);
        let mentions: usize = mentions.iter().map(|id| id.len() + 4).sum();
        let body = content.len() + metadata + mentions + BODY_OVERHEAD_BYTES;
        if body > PLAIN_BODY_BYTES_MAX { Err(Refusal::MetadataTooLarge) } else { Ok(()) }
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let caller = party.caller()?.clone();
        let Placed { say, conversing } = self;
        let Say { room, speech, content, encryption, reply_to, metadata, durable, .. } = say;
        let (mut mentions, dedup) = (say.mentions, say.dedup);
        mentions.sort_unstable();
        mentions.dedup();
        let dedup = dedup.map(|id| DedupId::new(caller.key, &caller.agent, &id));
        let mentions = mentions.into_iter().map(AgentId::from).collect();
        let say = command::Say {
            room,
            speech,
            content,
            encryption,
            reply_to,
            mentions,
            metadata,
            dedup,
            durable,
            conversing: conversing.map(Box::new),
        };
        Ok(Command::Say { caller, say })
    }
}

impl ToMesh for ListRooms {
    fn room(&self) -> Option<RoomId> {
        self.parent
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListRooms { by: party.as_reader(), parent: self.parent })
    }
}

impl ToMesh for ListAgents {
    fn room(&self) -> Option<RoomId> {
        self.room
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListAgents { by: party.as_reader(), room: self.room })
    }
}

impl ToMesh for FindAgent {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::FindAgent { agent: self.0 })
    }
}

impl ToMesh for ListSeats {
    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListSeats { caller: party.caller()?.clone() })
    }
}

impl ToMesh for NameNodes {
    fn command(self, _: &Party) -> Result<Command, Refusal> {
        Ok(Command::NameNodes { nodes: self.0 })
    }
}

impl ToMesh for DescribeRoom {
    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::RoomInfo { by: party.as_reader(), room: self.0 })
    }
}

impl ToMesh for SetRoom {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.update.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let SetRoom { room, update } = self;
        Ok(Command::SetRoom(Box::new(command::RoomSet { caller, room, signer, update })))
    }
}

impl ToMesh for SetTyping {
    const ROW: Row = Row::act(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::SetTyping {
            caller: party.caller()?.clone(),
            room: self.room,
            typing: self.typing,
        })
    }
}

impl ToMesh for SetPresence {
    const ROW: Row = Row::act(Bound::Node);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::SetPresence { caller: party.caller()?.clone(), presence: self.0 })
    }
}

impl ToMesh for SetProfile {
    const ROW: Row = Row::counted(Bound::Profile);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        Ok(Command::SetProfile { caller, signer, update: Box::new(self.0) })
    }
}

impl ToMesh for CreateVote {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CreateVote { caller: party.caller()?.clone(), vote: self.0 })
    }
}

impl ToMesh for CastVote {
    const ROW: Row = Row::counted(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::CastVote {
            caller: party.caller()?.clone(),
            vote: self.vote,
            option: self.option,
        })
    }
}

impl ToMesh for GetVote {
    const ROW: Row = Row::free(Bound::Room);

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::GetVote { by: party.as_reader(), vote: self.0 })
    }
}

impl ToMesh for ListVotes {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX).min(limits::VOTES_MAX);
        Ok(Command::ListVotes { by: party.as_reader(), room: self.room, limit })
    }
}

impl ToMesh for ElectLeader {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ElectLeader { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for DeclineElection {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::Decline { caller: party.caller()?.clone(), room: self.0 })
    }
}

impl ToMesh for AssignTask {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::AssignTask { caller: party.caller()?.clone(), task: self.0 })
    }
}

impl ToMesh for Changed {
    const ROW: Row = Row::counted(Bound::Room);

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(self.0.check()?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::UpdateTask { caller: party.caller()?.clone(), update: self.0 })
    }
}

impl ToMesh for ListTasks {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListTasks { by: party.as_reader(), room: self.room, status: self.status })
    }
}
