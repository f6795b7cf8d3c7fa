//! Things that at most one agent does.

use mesh::{
    api::{
        command::Command,
        once::{Once, OnceWant, check_once},
    },
    name::id::RoomId,
};

use super::to_mesh::{Row, Sends, ToMesh};
use crate::{
    config::Quota,
    seam::{
        answer::RoomFacts,
        refusal::{Bound, Refusal},
    },
    session::party::Party,
};

/// Something that at most one agent is to have: the agent asks for it, keeps it, or gives it back.
#[derive(Clone, Debug)]
pub struct AskOnce {
    /// In this room.
    pub room: RoomId,
    /// The thing.
    pub subject: String,
    /// What it wants of it.
    pub want: OnceWant,
}

impl ToMesh for AskOnce {
    const ROW: Row = Row::counted(Bound::Room);

    fn room(&self) -> Option<RoomId> {
        Some(self.room)
    }

    fn sends(&self) -> Option<Sends> {
        Some(Sends::InRoom { room: self.room, by_tool: false })
    }

    fn check(&self, _: Option<RoomFacts>, _: Quota) -> Result<(), Refusal> {
        Ok(check_once(&self.subject, self.want)?)
    }

    fn command(self, party: &Party) -> Result<Command, Refusal> {
        let AskOnce { room, subject, want } = self;
        let caller = party.caller()?.clone();
        Ok(Command::Once(Box::new(Once { caller, room, subject, want })))
    }
}
