//! Turns: the member of a room whose turn it is, and telling members of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::known::Known;
use crate::{
    api::event::{RoomEvent, TurnReason},
    limits::{CROWD_TOLD_EVERY, TURNS_TOLD_UP_TO},
    name::id::{AgentId, RoomId},
    presence::rosters::Member,
};

/// A room with so many members that they are not told of every turn.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    /// When they were.
    told: Duration,
    /// There was a message since.
    owed: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// The holders that members were last told of.
    told: BTreeMap<RoomId, Option<AgentId>>,
    crowds: BTreeMap<RoomId, Crowd>,
}

impl Turns {
    /// The room has ended.
    pub(super) fn forget(&mut self, room: RoomId) {
        self.told.remove(&room);
        self.crowds.remove(&room);
    }

    /// Tells members whose turn it is, if that changed or (`always`) in any case.
    pub(super) fn tell(
        &mut self,
        known: &mut Known,
        room: RoomId,
        reason: TurnReason,
        always: bool,
    ) {
        let holder = holder(known, room);
        let before = match &holder {
            Some(_) => self.told.insert(room, holder.clone()),
            None => self.told.remove(&room),
        };
        if always && !self.may_tell_crowd(known, room) {
            return;
        }
        if always || before.flatten() != holder {
            let members = known.rosters.regulars(room);
            let order: Arc<[_]> = members.map(|member| member.agent.clone()).collect();
            known.cx.notify(room, RoomEvent::Turn { holder, order, reason });
        }
    }

    /// Whether all of a room's members are to be told now; else they will be, before long.
    fn may_tell_crowd(&mut self, known: &mut Known, room: RoomId) -> bool {
        if known.rosters.members(room).len() <= TURNS_TOLD_UP_TO {
            return true;
        }
        let now = known.cx.now.mono;
        match self.crowds.get_mut(&room) {
            Some(crowd) if now < crowd.told + CROWD_TOLD_EVERY => {
                crowd.owed = true;
                false
            }
            Some(_) | None => {
                self.crowds.insert(room, Crowd { told: now, owed: false });
                true
            }
        }
    }

    /// Tells crowds what they were not told at once.
    pub(super) fn tell_crowds(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        let due = self.crowds.extract_if(.., |_, crowd| now >= crowd.told + CROWD_TOLD_EVERY);
        for (room, crowd) in due.collect::<Vec<_>>() {
            if crowd.owed {
                self.tell(known, room, TurnReason::MessageSent, true);
            }
        }
    }
}

/// Whose turn it is: a function of the roster and of the last message by position, which names its
/// successor by join stamp. Is that one gone, or was nothing said, it is the first's in join order. It is never a guest's.
pub(super) fn holder(known: &Known, room: RoomId) -> Option<AgentId> {
    let members: Vec<&Member> = known.rosters.regulars(room).collect();
    let turn = known.rooms.get(&room).and_then(|room| room.replica.record.spoke?.turn);
    let next =
        members.iter().find(|member| Some(member.joined) == turn).or_else(|| members.first());
    next.map(|member| member.agent.clone())
}

/// The join stamp of the member after `agent`, round robin: the next holder of the turn. After words from outside, and of
/// guests, it is the one that it is.
pub(super) fn next(known: &Known, room: RoomId, agent: &AgentId) -> Option<u64> {
    let members: Vec<&Member> = known.rosters.regulars(room).collect();
    let Some(place) = members.iter().position(|member| member.agent == *agent) else {
        let holder = holder(known, room)?;
        return members.iter().find(|member| member.agent == holder).map(|member| member.joined);
    };
    members.get((place + 1) % members.len()).map(|member| member.joined)
}
