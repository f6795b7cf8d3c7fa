//! Making rooms.

use super::{
    ephemeral, keys,
    known::{Known, rooms::Home},
    reach::Reach,
};
use crate::{
    api::command::{Caller, NewRoom, Refused},
    directory::{Source, room_id},
    limits::{EPHEMERAL_ROOMS_MAX, EPHEMERAL_ROOMS_PER_NODE_MAX, ROOMS_MAX},
    name::id::RoomId,
    presence::ephemeral::ephemeral_id,
    wire::{
        entry::{Body, RoomCreated},
        roster::EphemeralRoom,
    },
};

/// A room that was made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Created {
    /// It is listed by its entry in a directory, and has its name when that entry has a number.
    Listed(Source),
    /// It is listed in this node's roster.
    Ephemeral(RoomId),
}

pub(super) fn create(
    known: &mut Known,
    caller: &Caller,
    room: NewRoom,
) -> Result<Created, Refused> {
    may_create(known, caller, &room)?;
    if room.ephemeral {
        return create_ephemeral(known, caller, room).map(Created::Ephemeral);
    }
    let directory = known.directory_for(caller.key, room.public)?;
    let list = known.rooms.get_mut(&directory).ok_or(Refused::NoRoom)?;
    if !list.is_writable(&known.cx) {
        return Err(known.not_writable(directory));
    }
    let seq = list.replica.logs.head_of(list.replica.mine) + 1;
    let id = room_id(known.cx.mesh, directory, list.replica.mine, seq);
    let body = Body::RoomCreated(created(caller, room, id));
    let at = list.append(&mut known.cx, &body).ok_or(Refused::Closed)?;
    Ok(Created::Listed((directory, at)))
}

pub(super) fn may_create(known: &Known, caller: &Caller, room: &NewRoom) -> Result<(), Refused> {
    known.caller(caller)?;
    room.check()?;
    if let Some(parent) = room.parent {
        known.may_read(&caller.reader(), parent)?;
        known.may_write(parent)?;
    }
    let ephemeral = known.ephemeral.iter().filter_map(|id| known.told.get(id));
    let taken = room.name == "lobby"
        || known.directory.is_taken(&room.name, caller.key)
        || known.directory.shared.is_named(&room.name, caller.key, &*known.directory.keys())
        || ephemeral.clone().any(|view| {
            *view.name == *room.name && (view.public || view.owner == Some(caller.key))
        });
    if taken {
        return Err(Refused::NameTaken(room.name.clone()));
    }
    keys::may_have_room(known, caller.key)?;
    if known.directory.room_count() >= ROOMS_MAX {
        return Err(Refused::Full(format!("the mesh has {ROOMS_MAX} rooms")));
    }
    let all = ephemeral.count();
    let own = known
        .rosters
        .ephemeral_rooms()
        .filter(|ephemeral| ephemeral.home.author == known.cx.me)
        .count();
    if room.ephemeral && (all >= EPHEMERAL_ROOMS_MAX || own >= EPHEMERAL_ROOMS_PER_NODE_MAX) {
        return Err(Refused::Full("too many ephemeral rooms are alive".to_owned()));
    }
    Ok(())
}

fn create_ephemeral(known: &mut Known, caller: &Caller, room: NewRoom) -> Result<RoomId, Refused> {
    let home = known.next_ephemeral_log();
    let reach = known.reach_of(known.directory_for(caller.key, room.public)?);
    let id = ephemeral_id(known.cx.mesh, home, matches!(reach, Reach::Followers(_)));
    known.ensure_ephemeral_room(id, Home::Made(home), reach);
    let facts = ephemeral::announce_facts(known, home, created(caller, room, id), reach);
    let listed = EphemeralRoom { facts, home, created_ms: known.cx.now.wall_ms };
    known.rosters.list(id, Some(listed));
    Ok(id)
}

fn created(caller: &Caller, room: NewRoom, id: RoomId) -> RoomCreated {
    RoomCreated {
        room: id,
        name: room.name,
        description: room.description,
        parent: room.parent,
        public: room.public,
        encrypted: room.encrypted,
        owner: caller.key,
        created_by: caller.agent.clone(),
        imported: None,
    }
}
