//! Events in rooms, as local members are told of them.

use std::sync::Arc;

use crate::{
    api::{
        agenda::{LeaderGone, TaskChange, TaskView, VoteResult, VoteView},
        approval::ApprovalView,
        command::{Access, AgentView, Registration, RoomView},
        delivery::Delivery,
        once::OnceLost,
    },
    name::{
        id::{AgentId, KeyPrint, LocalRef, LogId, MessageId, RoomId},
        number::Number,
    },
    records::{
        news::{AgentNote, RoomNote},
        schedules::ScheduleNews,
    },
    wire::{
        entry::{Facts, Said},
        piece::Piece,
    },
};

/// A message was delivered here. In rising order of `number` within a room.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Its number here.
    pub number: Number,
    /// Its lowest number anywhere, if that is another: it came late.
    pub canonical: Option<Number>,
    /// Where it is.
    pub at: LocalRef,
    /// Whose log it is in.
    pub log: LogId,
    /// Its id.
    pub message: MessageId,
    /// Clock, wall time, kind.
    pub facts: Facts,
    /// The words. `None`: no longer in memory, read it from the store at `at`.
    pub said: Option<Arc<Said>>,
}

/// Why the turn changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnReason {
    /// Somebody joined.
    Joined,
    /// Somebody left.
    Left,
    /// Somebody disconnected, or their node did.
    Disconnected,
    /// Somebody spoke.
    MessageSent,
}

/// An event in a room.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum RoomEvent {
    /// A chat message, a thinking pulse: to all members but its author. A decision: to all members.
    Message(Delivered),
    /// Another number of a message that was delivered here before, in order with those of other messages: to members
    /// who have come since, with a cursor that proves the message seen and may not (`docs/store.md`).
    PassedOver { number: Number, log: LogId, at: LocalRef },
    /// To all members but the agent itself.
    Joined { agent: AgentId, name: Arc<str>, reconnected: bool },
    /// To all members but the agent itself.
    Left { agent: AgentId },
    /// To all members.
    Turn { holder: Option<AgentId>, order: Arc<[AgentId]>, reason: TurnReason },
    /// To all members but the agent itself.
    Typing { agent: AgentId, name: Arc<str>, typing: bool },
    /// To all members but the agent itself.
    Presence(Arc<AgentView>),
    /// A room that was not there, or was not this, until now. `announce`: to be told to every
    /// connected agent that may see it.
    Opened { view: RoomView, announce: bool },
    /// To all members.
    VoteOpened(Arc<VoteView>),
    /// Once for each vote. To all members.
    VoteEnded(Arc<VoteResult>),
    /// To all members.
    ElectionStarted { candidates: Arc<[AgentId]>, by: AgentId },
    /// To all members.
    LeaderElected { agent: AgentId, name: Arc<str> },
    /// To all members.
    LeaderCleared { why: LeaderGone },
    /// To all members.
    TaskAssigned(Arc<TaskView>),
    /// To all members.
    TaskUpdated(Arc<TaskView>, Arc<TaskChange>),
    /// It was deleted. Members hear nothing of it: it is not listed any more.
    TaskDeleted { view: Arc<TaskView>, by: AgentId },
    /// An agent of this node was granted something that another one has now. To that agent.
    OnceLost(Arc<OnceLost>),
    /// An agent asks whether it may do something. To those who may decide.
    ApprovalAsked(Arc<ApprovalView>),
    /// It is decided; or another decision stands now, after a split. To those who were told of it, and to the agent.
    ApprovalDecided(Arc<ApprovalView>),
    /// Something has become of a request, in a direct room. To members that have asked for such news.
    Delivery { request: MessageId, to: AgentId, now: Delivery },
    /// A piece of an answer that an agent is writing. To those that have asked for such news.
    Piece { name: Arc<str>, piece: Arc<Piece> },
    /// Records say something else of the room than before. To those who look after rooms without a seat.
    Recorded(Arc<[RoomNote]>),
    /// An ephemeral room ended. To every connected agent that could see it.
    Destroyed { access: Access },
}

/// For one agent attached here, or all of one key.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named for what they are; each variant says the rest")]
pub enum AgentEvent {
    /// This registration was taken over by a newer one, here or at another node: close it. Its
    /// clean-up must not touch the newer one.
    Displaced { agent: AgentId, registration: Registration },
    /// Something came into the inbox of an agent.
    Mail { agent: AgentId },
    /// Records say something else of an agent than before, attached or not. To those who look after agents.
    Recorded { agent: AgentId, notes: Arc<[AgentNote]> },
    /// A job or a run of a key's schedule was written: here, or by another node.
    Scheduled(ScheduleNews),
    /// The key is no longer valid: close every connection of it.
    KeyInvalid { key: KeyPrint },
    /// A seat in a direct room that it did not ask for. `missed`: messages above this number were delivered before
    /// clients saw the room, and are to be given to it first.
    Seated { agent: AgentId, room: RoomId, missed: Option<Number> },
    /// A seat in a room on whose list it is. `announce`: it has just been attached, and is told of the room first.
    Enlisted { agent: AgentId, room: Box<RoomView>, announce: bool },
    /// It has a seat there no more: the room's key has taken it off the list.
    Unseated { agent: AgentId, room: RoomId },
}
