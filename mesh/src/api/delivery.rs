//! The fate of a request, as its room's readers see it, and the requests of a node that wait.

use minicbor::{Decode, Encode};

use crate::{
    name::id::{AgentId, LocalRef, NodeId, RoomId},
    wire::{cbor::text, delivery::Reason},
};

/// How far a request has come, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is at a node of the agent that is asked.
    Arrived,
    /// It was given up, or refused.
    Failed,
    /// It was handed to the agent. It may have been given up before, across a split.
    Delivered,
}

/// The fate of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// How far it has come.
    pub stage: Stage,
    /// The node that says so.
    pub node: NodeId,
    /// When, by that node's clock. Unix milliseconds.
    pub at_ms: u64,
    /// Why it has failed.
    pub reason: Option<Reason>,
}

impl Delivery {
    /// Whether it was given up by the node of its author before it was handed over: the agent that is asked is not to get it.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.stage == Stage::Failed && self.reason.as_ref().is_some_and(Reason::is_of_author)
    }
}

/// A request of an agent of this node that was not handed over yet.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RequestRecord {
    /// Its room.
    #[n(0)]
    pub room: RoomId,
    /// Where it is.
    #[n(1)]
    pub at: LocalRef,
    /// Its author.
    #[cbor(n(2), with = "text")]
    pub by: AgentId,
    /// The agent that is asked.
    #[cbor(n(3), with = "text")]
    pub to: AgentId,
    /// When it was written. Unix milliseconds.
    #[n(4)]
    pub wall_ms: u64,
    /// The length of its body.
    #[n(5)]
    pub bytes: u64,
}

/// Something that an agent is told of a request of its own, once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Notice {
    /// Where the request is.
    #[n(0)]
    pub at: LocalRef,
    /// What is told.
    #[n(1)]
    pub ended: Ended,
}

/// See [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Ended {
    /// It was given up, or refused.
    #[n(0)]
    Failed,
    /// And was handed over all the same.
    #[n(1)]
    Delivered,
}
