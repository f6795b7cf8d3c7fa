//! Ephemeral rooms: they live as long as a node lists them.

use super::{
    known::{Known, rooms::Home},
    reach::{Reach, belongs_to},
};
use crate::{
    limits::{EPHEMERAL_EMPTY_FOR, EPHEMERAL_ROOMS_MAX},
    name::{
        group::Group,
        id::{LogId, RoomId},
        time::in_ms,
    },
    presence::rosters::bounds::facts_fit,
    room::Room,
    wire::{
        entry::{Body, RoomCreated},
        roster::RoomFacts,
        seal::SealContext,
    },
};

/// The last member here may have left: for this node the room need not live on then. Whether it is listed no more.
pub(super) fn unlist_if_empty(known: &mut Known, room: RoomId) -> bool {
    let me = known.cx.me;
    let empty = known.rosters.lists_itself(room)
        && known.rosters.members(room).iter().all(|member| member.node != me);
    if empty {
        known.rosters.list(room, None);
    }
    empty
}

/// Rooms that were made here and that nobody has joined for long.
pub(super) fn empty_for_long(known: &Known) -> Vec<RoomId> {
    let now = known.cx.now.wall_ms;
    let is_old = |room: &RoomId| {
        let made = known.rosters.ephemeral(*room).map_or(now, |ephemeral| ephemeral.created_ms);
        now > made.saturating_add(in_ms(EPHEMERAL_EMPTY_FOR))
            && known.rosters.members(*room).is_empty()
    };
    known.ephemeral.iter().copied().filter(is_old).collect()
}

/// A node lists the room.
pub(super) fn lives(known: &mut Known, id: RoomId) {
    open_announcement(known, id);
    let Some(ephemeral) = known.rosters.ephemeral(id) else { return };
    let sealed =
        matches!(known.rosters.announced(id), Some(ephemeral) if ephemeral.facts.is_sealed());
    let reach =
        if sealed { Reach::Followers(Group::Key(ephemeral.facts.owner)) } else { Reach::Mesh };
    let home = ephemeral.home;
    let others = known.ephemeral.iter().filter(|other| **other != id);
    if others.count() >= EPHEMERAL_ROOMS_MAX {
        known.cx.faults.overflow += 1;
        return;
    }
    known.ensure_ephemeral_room(id, Home::Heard(home), reach);
    known.tell_of_room(id, true);
}

/// The announcement of an ephemeral room that this node makes.
pub(super) fn announce_facts(
    known: &Known,
    home: LogId,
    facts: RoomCreated,
    reach: Reach,
) -> RoomFacts {
    let (room, owner) = (facts.room, facts.owner);
    match known.seal_for(room, reach) {
        None => RoomFacts::Open(facts),
        Some(seal) => {
            let body = Body::RoomCreated(facts);
            let spot = SealContext { room, log: home, seq: 0, kind: body.kind() };
            RoomFacts::Sealed { owner, sealed: seal.seal(&spot, &body.encode()).into() }
        }
    }
}

/// Opens what is announced of an ephemeral room, if it can be opened here.
pub(super) fn open_announcement(known: &mut Known, id: RoomId) {
    for announcement in known.rosters.unopened(id) {
        let RoomFacts::Sealed { owner, sealed } = &announcement.facts else { continue };
        let Some(seal) = known.seal_for(id, Reach::Followers(Group::Key(*owner))) else { continue };
        let kind = crate::wire::kinds::ROOM_CREATED;
        let spot = SealContext { room: id, log: announcement.home, seq: 0, kind };
        let body = seal.open(&spot, sealed).map(|bytes| Body::decode(kind, &bytes));
        let Some(Body::RoomCreated(facts)) = body else { continue };
        if facts.room == id && belongs_to(&facts, *owner) && facts_fit(&facts) {
            return known.rosters.open_room(id, facts);
        }
    }
}

/// A room has ended. Its state is no longer here; `None`: it is not ephemeral, or not known.
pub(super) fn end(known: &mut Known, id: RoomId) -> Option<Room> {
    if !known.rooms.get(&id)?.replica.record.ephemeral {
        return None;
    }
    let mut room = known.rooms.remove(&id)?;
    known.ephemeral.remove(&id);
    known.busy.remove(&id);
    room.replica.pending.clear(&mut known.cx);
    known.cx.memory.ephemeral -= room.replica.bytes;
    for entry in room.order.numbering.undelivered.values() {
        known.cx.memory.warm -= entry.body_bytes;
    }
    Some(room)
}
