//! A call, and how the mesh is asked it.

use mesh::{
    api::command::Command,
    name::id::{AgentId, RoomId},
};

use crate::{
    config::Quota,
    delivery::hook::Hook,
    seam::{
        answer::{Answer, RoomFacts},
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

/// A call: a question with the type of its answer.
pub trait Call: Send + 'static {
    /// The answer to a client that is not refused.
    type Answer: Send + 'static;
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
    pub(super) const fn free(bound: Bound) -> Row {
        Row { bound, counts: false, acts: false }
    }

    pub(super) const fn act(bound: Bound) -> Row {
        Row { bound, counts: false, acts: true }
    }

    /// It counts, and a key that may only read may do it, if it may decide.
    pub(super) const fn decides(bound: Bound) -> Row {
        Row { bound, counts: true, acts: false }
    }

    pub(super) const fn counted(bound: Bound) -> Row {
        Row { bound, counts: true, acts: true }
    }
}

/// A call that sends something.
#[derive(Clone, Debug)]
pub(crate) enum Sends {
    /// To another agent, with which there may be no room yet.
    ToAgent {
        /// It.
        agent: AgentId,
        /// In a room for a task.
        task: bool,
    },
    /// Into a room.
    InRoom {
        /// It.
        room: RoomId,
        /// See [`Say::by_tool`](crate::seam::call::Say::by_tool).
        by_tool: bool,
    },
}

/// A call that the mesh answers.
pub(crate) trait ToMesh: Call<Answer: Answer> {
    const ROW: Row = Row::free(Bound::Node);

    /// The room that it names: known here, and to be read by the caller.
    fn room(&self) -> Option<RoomId> {
        None
    }

    /// What it sends to other agents, if it does.
    fn sends(&self) -> Option<Sends> {
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
