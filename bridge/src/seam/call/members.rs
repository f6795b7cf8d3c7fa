//! Calls about the members of rooms that are on record.

use mesh::{
    api::command::{self, Command, MemberAct},
    name::id::{AgentId, RoomId},
};

use super::to_mesh::{Row, ToMesh};
use crate::{
    seam::refusal::{Bound, Refusal},
    session::party::Party,
};

/// Put an agent on the list of a room that the caller's key has made, or take it off. Views of rooms have the list
/// ([`RoomView::on_record`](mesh::api::command::RoomView::on_record)).
#[derive(Clone, Debug)]
pub struct SetMember {
    /// The room.
    pub room: RoomId,
    /// The agent that it is about.
    pub agent: AgentId,
    /// The change.
    pub act: MemberAct,
}

impl ToMesh for SetMember {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let (caller, signer) = (party.caller()?.clone(), party.signer().cloned());
        let SetMember { room, agent, act } = self;
        let set = command::MemberSet { caller, signer, room, agent, act };
        Ok(Command::SetMember(Box::new(set)))
    }
}
