//! Approvals: an agent asks people whether it may do something, and they decide.

use mesh::{
    api::{
        approval::{
            ApprovalTerms, ApprovalView, Choice, DecideApproval, DecidedNow, NewApproval,
            check_reason,
        },
        command::{Command, SaidOk},
    },
    name::id::{MessageId, RoomId},
};

use super::{
    Say,
    to_mesh::{Row, Sends, ToMesh},
};
use crate::{
    config::Quota,
    seam::{
        answer::RoomFacts,
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

/// An agent says what it wants to do, and asks whether it may. The message is the approval: its id names both.
#[derive(Clone, Debug)]
pub struct RequestApproval {
    /// The message.
    pub say: Say,
    /// The thing, by whom it may be decided, and until when.
    pub terms: ApprovalTerms,
}

/// See [`RequestApproval`].
#[derive(Clone, Debug)]
pub struct Requested {
    /// The message.
    pub said: SaidOk,
    /// The approval.
    pub approval: Box<ApprovalView>,
}

/// Somebody decides about what an agent wants to do. The agent is told, and a message in the room says so.
#[derive(Clone, Debug)]
pub struct Decide {
    /// In this room.
    pub room: RoomId,
    /// The message of the approval.
    pub approval: MessageId,
    /// The decision.
    pub choice: Choice,
    /// Why.
    pub reason: Option<String>,
}

/// The approvals of rooms that the caller may read: those that nobody has decided about, and those that hold for always.
#[derive(Clone, Copy, Debug)]
pub struct ListApprovals {
    /// Of this room. `None`: of all.
    pub room: Option<RoomId>,
}

/// One approval, decided or not.
#[derive(Clone, Copy, Debug)]
pub struct ReadApproval {
    /// In this room.
    pub room: RoomId,
    /// Its message.
    pub approval: MessageId,
}

/// The second step of [`RequestApproval`]: the message is there.
pub(crate) struct Want {
    pub(crate) room: RoomId,
    pub(crate) message: MessageId,
    pub(crate) terms: ApprovalTerms,
}

impl super::Call for Want {
    type Answer = Box<ApprovalView>;
}

impl ToMesh for Want {
    // Its message was counted.
    const ROW: Row = Row::act(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let Want { room, message, terms } = self;
        let caller = party.caller()?.clone();
        Ok(Command::RequestApproval(Box::new(NewApproval { caller, room, message, terms })))
    }
}

/// The first step of [`Decide`].
pub(crate) struct Deciding(pub(crate) Decide);

impl super::Call for Deciding {
    type Answer = Box<DecidedNow>;
}

impl ToMesh for Deciding {
    const ROW: Row = Row::decides(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.0.room)
    }

    fn sends(&self) -> Option<Sends> {
        Some(Sends::InRoom { room: self.0.room, by_tool: false })
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(check_reason(self.0.reason.as_deref())?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        if !party.standing().may_approve() {
            return Err(Refusal::ReadsOnly);
        }
        let Decide { room, approval, choice, reason } = self.0;
        let caller = party.caller()?.clone();
        let decide = DecideApproval { caller, room, approval, choice, reason };
        Ok(Command::DecideApproval(Box::new(decide)))
    }
}

impl ToMesh for ListApprovals {
    fn room(&self) -> Option<RoomId> {
        self.room
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        Ok(Command::ListApprovals { by: party.as_reader(), room: self.room })
    }
}

impl ToMesh for ReadApproval {
    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let ReadApproval { room, approval } = self;
        Ok(Command::ReadApproval { by: party.as_reader(), room, approval })
    }
}
