//! Writing acts for agents.

use super::{
    Engine,
    rooms::{NO_MEMORY, NOT_WRITABLE},
};
use crate::{
    acts::{ElectionAct, TaskAct, VoteAct},
    command::{Caller, Refused},
    entry::Body,
    id::{At, RoomId},
    limits::{ACTS_BYTES_MAX, EPHEMERAL_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    room::Room,
};

impl Engine {
    /// Whether the caller may do something in a room that is for its members alone.
    pub(super) fn may_act(&self, caller: &Caller, room: RoomId) -> Result<(), Refused> {
        let record = self.caller(caller)?;
        self.may_read(caller.key, room)?;
        self.may_write(room)?;
        if record.rooms.contains_key(&room) { Ok(()) } else { Err(Refused::NotMember) }
    }

    /// Writes an agent's act into this node's log of a room: none that this node itself would not fold.
    pub(super) fn write_act(&mut self, id: RoomId, body: &Body) -> Result<At, Refused> {
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::Full("the room has too many members for this".to_owned()));
        }
        if begins_something(body) && self.acts_bytes() + len > ACTS_BYTES_MAX {
            let full = "this node has all the votes, elections and tasks that it can hold";
            return Err(Refused::Full(full.to_owned()));
        }
        let room = self.rooms.get_mut(&id).ok_or(Refused::NoRoom)?;
        room.fits(&self.cx, body)?;
        if room.record.ephemeral && self.cx.ephemeral_bytes + len > EPHEMERAL_BYTES_MAX {
            return Err(Refused::Full(NO_MEMORY.to_owned()));
        }
        if !room.is_writable(&self.cx) {
            return Err(Refused::Full(NOT_WRITABLE.to_owned()));
        }
        room.append(&mut self.cx, body).ok_or(Refused::Closed)
    }

    /// Memory that the acts of all rooms take.
    fn acts_bytes(&self) -> usize {
        self.rooms.values().map(Room::acts_bytes).sum()
    }
}

/// Whether it takes memory for good. What belongs to something that has begun is always taken.
fn begins_something(body: &Body) -> bool {
    matches!(
        body,
        Body::Vote(VoteAct::Opened(_))
            | Body::Election(ElectionAct::Started(_))
            | Body::Task(TaskAct::Assigned(_))
    )
}
