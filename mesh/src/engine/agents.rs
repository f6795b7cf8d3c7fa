//! Agents: registering, reconnecting, joining, leaving.

use super::{keys, known::Known, roster_sync::RosterSync};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    api::{
        agenda::Standing,
        boundary::Effect,
        command::{Attach, Attached, Caller, Outcome, Reader, Refused, Registration, Unfiled},
        event::{AgentEvent, RoomEvent},
    },
    directory::Source,
    limits::{
        AGENTS_PER_NODE_MAX, DIRECT_ROOMS_LEFT_MAX, DIRECT_ROOMS_SEATED_MAX,
        ENLISTED_BY_OTHERS_MAX, MEMBERS_PER_ROOM_MAX, ROOMS_PER_AGENT_MAX,
        ROSTER_KEPT_AT_ONCE_BYTES_MAX, ROSTER_KEPT_BYTES_MAX, ROSTER_KEPT_EVERY,
    },
    name::{
        agent::{Belongs, is_person},
        id::{AgentId, KeyPrint, RoomId},
        identity::Strict,
        key::ShortKey,
        number::Number,
    },
    wire::{
        entry::{AgentClaimed, Body, Said},
        roster::{AgentRecord, Presence, RosterChange, Seat, What},
    },
};

/// The roster as it was last written down.
#[derive(Clone, Copy, Debug, Default)]
struct RosterKept {
    at: Duration,
    version: u64,
    bytes: usize,
    /// Agents have come, or have taken or left seats, since.
    moved: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    kept: RosterKept,
    /// Registrations since the start.
    registered: u64,
    /// Typing events since the start.
    typing_nonce: u64,
    /// Direct rooms that agents left by themselves, and in which nothing was said to them since: at most
    /// [`DIRECT_ROOMS_LEFT_MAX`].
    left: BTreeSet<(AgentId, RoomId)>,
}

impl Agents {
    pub(super) fn new(started: Duration) -> Agents {
        let kept = RosterKept { at: started, ..RosterKept::default() };
        Agents { kept, registered: 0, typing_nonce: 0, left: BTreeSet::new() }
    }

    // Registering.

    pub(super) fn register(
        &mut self,
        known: &mut Known,
        attach: Attach,
        standing: Standing,
    ) -> Attached {
        let now = known.cx.now;
        let me = known.cx.me;
        let earlier =
            known.rosters.latest(&attach.agent).map(|(node, record)| (node, record.clone()));
        let earlier = earlier.filter(|(_, record)| {
            let comes_back = attach.reconnect || record.lingers;
            comes_back && known.directory.current(record.key) == attach.key
        });
        let lingered = earlier.as_ref().filter(|(_, record)| record.lingers);
        let presence = lingered.map(|(_, record)| record.presence.clone()).unwrap_or_default();
        let was_here =
            earlier.as_ref().is_some_and(|(node, record)| *node == me && record.gone.is_none());
        let restored = earlier.as_ref().map(|(_, record)| {
            let by = Reader { key: attach.key, agent: Some(attach.agent.clone()) };
            restore_seats(known, &by, record, was_here && !record.lingers)
        });
        let by = Reader { key: attach.key, agent: Some(attach.agent.clone()) };
        let mut rooms = restored.clone().unwrap_or_default();
        let addressed = self.addressed(known, &by, &rooms);
        for (room, seen) in &addressed {
            let guest = is_person(&attach.agent);
            rooms.insert(*room, Seat { joined: known.rosters.stamp(now), seen: *seen, guest });
        }
        let record = AgentRecord {
            name: attach.name.into(),
            key: attach.key,
            capabilities: attach.capabilities,
            registered: known.rosters.stamp(now),
            connected_ms: now.wall_ms,
            last_active_ms: now.wall_ms,
            presence,
            rooms,
            reconnected: restored.is_some(),
            gone: None,
            lingers: false,
            hosted: false,
        };
        for room in record.rooms.keys() {
            known.list_if_ephemeral(*room);
        }
        self.kept.moved = true;
        self.registered += 1;
        let registration = Registration(self.registered);
        let displaced = known.registrations.insert(attach.agent.clone(), registration);
        known.rosters.put(now, attach.agent, record);
        let seats = |seats_kept: BTreeMap<RoomId, Seat>| {
            seats_kept.into_iter().map(|(room, seat)| (room, seat.seen)).collect()
        };
        Attached {
            registration,
            restored: restored.map(seats),
            addressed,
            displaced: displaced.filter(|_| was_here),
            connected_ms: now.wall_ms,
            standing,
        }
    }

    /// Direct rooms, the newest ones, in which something waits for an agent that comes, beyond those in which it has a seat:
    /// the other one has written since this one did, and this one has not left since.
    fn addressed(
        &self,
        known: &Known,
        by: &Reader,
        seats: &BTreeMap<RoomId, Seat>,
    ) -> Vec<(RoomId, Number)> {
        let Some(agent) = &by.agent else { return Vec::new() };
        let waits = |id: RoomId| {
            let said = self.waits_after(known, by, id).filter(|_| !seats.contains_key(&id))?;
            Some((known.rooms.get(&id)?.tip(), id, said))
        };
        // Those of keys that were replaced are its own by now.
        let line = known.directory.keys().line(by.key);
        let direct = &known.directory.direct;
        let rooms = line.into_iter().flat_map(|key| direct.of_agent(agent, key));
        let mut rooms: Vec<_> = rooms.filter_map(waits).collect();
        rooms.sort_unstable_by_key(|(tip, id, _)| (std::cmp::Reverse(*tip), *id));
        let places = ROOMS_PER_AGENT_MAX.saturating_sub(seats.len());
        rooms.truncate(DIRECT_ROOMS_SEATED_MAX.min(places));
        rooms.into_iter().map(|(_, id, said)| (id, said)).collect()
    }

    /// Whether something waits for an agent in a direct room: the number after which it does.
    fn waits_after(&self, known: &Known, by: &Reader, room: RoomId) -> Option<Number> {
        let agent = by.agent.as_ref()?;
        let direct =
            known.directory.direct.get(room).filter(|direct| known.is_given(direct, agent))?;
        let own = direct.sides.place_of(agent, |key| known.directory.current(key) == by.key)?;
        let record = &known.rooms.get(&room)?.replica.record;
        let (said, heard) = (record.said[own], record.said[1 - own]);
        let has_left = self.left.contains(&(agent.clone(), room));
        (heard > said && !has_left && known.may_read(by, room).is_ok()).then_some(said)
    }

    // Over a restart.

    /// Writes the roster down when it has changed: at once, with the turn that says so, as long as it is
    /// small; else now and then. Newer changes are lost with the node, and with them an agent or a seat,
    /// but no message.
    pub(super) fn keep_roster(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        let kept = self.kept;
        let version = known.rosters.version(known.cx.me).1;
        let at_once = kept.moved && kept.bytes <= ROSTER_KEPT_AT_ONCE_BYTES_MAX;
        let due = at_once || now >= kept.at + ROSTER_KEPT_EVERY || known.stopping;
        if version == kept.version || !due {
            return;
        }
        let bytes = crate::wire::cbor::encode(&known.rosters.own_permanent_seats());
        self.kept = RosterKept { at: now, version, bytes: bytes.len(), moved: false };
        if bytes.len() <= ROSTER_KEPT_BYTES_MAX {
            known.change_node().roster = Some(bytes.into());
        }
    }

    // In rooms.

    pub(super) fn join(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        room: RoomId,
        as_guest: bool,
    ) -> Result<Outcome, Refused> {
        let mut record = known.caller(caller)?;
        known.may_read(&caller.reader(), room)?;
        known.may_write(room)?;
        let guest = as_guest;
        if let Some(seat) = record.rooms.get_mut(&room) {
            if seat.guest != guest {
                seat.guest = guest;
                self.kept.moved = true;
                put(known, caller, record);
            }
            return Ok(Outcome::Joined(false));
        }
        if known.rosters.members(room).len() >= MEMBERS_PER_ROOM_MAX {
            return Err(Refused::Full(format!("the room has {MEMBERS_PER_ROOM_MAX} members")));
        }
        if record.rooms.len() >= ROOMS_PER_AGENT_MAX {
            return Err(Refused::Full(format!("an agent may be in {ROOMS_PER_AGENT_MAX} rooms")));
        }
        let seen = known.rooms.get(&room).map_or(Number::ZERO, |room| room.tip());
        let seat = Seat { joined: known.rosters.stamp(known.cx.now), seen, guest };
        record.rooms.insert(room, seat);
        known.list_if_ephemeral(room);
        self.kept.moved = true;
        self.left.remove(&(caller.agent.clone(), room));
        put(known, caller, record);
        Ok(Outcome::Joined(true))
    }

    /// An agent writes: into a direct room of its own from a seat, which it takes now if it has none.
    pub(super) fn sit_to_write(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        room: RoomId,
    ) -> Result<(), Refused> {
        let may = known.may_read(&caller.reader(), room).is_ok();
        if !may || known.directory.direct.get(room).is_none() {
            return Ok(());
        }
        // Of a seat that it has nothing is changed.
        let own = known.rosters.own(&caller.agent);
        let seat = own.and_then(|record| record.rooms.get(&room));
        let as_guest = seat.is_some_and(|seat| seat.guest);
        if matches!(self.join(known, caller, room, as_guest)?, Outcome::Joined(true)) {
            tell_seated(known, &caller.agent, room, None);
        }
        Ok(())
    }

    /// A message of this agent was delivered in a room: if it is a direct one, those of its two agents that are attached
    /// here have a seat from now on, so that they hear it.
    pub(super) fn note_said(
        &mut self,
        known: &mut Known,
        room: RoomId,
        said: &Said,
        number: Number,
    ) {
        let Some(direct) = known.directory.direct.get(room) else { return };
        let sides = direct.sides.clone();
        let given =
            sides.each().map(|(agent, _)| said.agent == *agent || known.is_given(direct, agent));
        let by = said.key.and_then(|key| {
            let key = known.directory.current(key);
            sides.place_of(&said.agent, |side| known.directory.current(side) == key)
        });
        if let (Some(place), Some(room)) = (by, known.rooms.get_mut(&room)) {
            room.replica.edit_record().said[place] = number;
        }
        let seen = Number(number.0.saturating_sub(1));
        for (side, _) in sides.iter().zip(given).filter(|(_, given)| *given) {
            self.left.remove(&(side.0.clone(), room));
            // Else it has one when clients see the room: see `note_shown`.
            if !known.is_unread(room)
                && self.seat(known, (side.0, side.1, room), seen, said.agent == *side.0)
            {
                tell_seated(known, side.0, room, None);
            }
        }
    }

    /// Clients see a room from now on. If it is a direct one, and something that was said before waits for an agent that
    /// is attached here, that one has a seat, and hears it.
    pub(super) fn note_shown(&mut self, known: &mut Known, room: RoomId) {
        let Some(direct) = known.directory.direct.get(room) else { return };
        for (agent, key) in direct.sides.clone().iter() {
            let by = Reader { key: known.directory.current(key), agent: Some(agent.clone()) };
            if let Some(after) = self.waits_after(known, &by, room)
                && self.seat(known, (agent, key, room), after, false)
            {
                tell_seated(known, agent, room, Some(after));
            }
        }
    }

    /// Gives an agent of a direct room a seat there if it is attached here and has none. Returns whether it did.
    fn seat(
        &mut self,
        known: &mut Known,
        (agent, key, room): (&AgentId, KeyPrint, RoomId),
        seen: Number,
        writes: bool,
    ) -> bool {
        let is_own = |of| known.directory.current(of) == known.directory.current(key);
        let own = known.rosters.own(agent).filter(|record| is_own(record.key));
        // Others write to it as often as they like: rooms that it joins have places that these do not take.
        let direct = |record: &AgentRecord| {
            let rooms = record.rooms.keys();
            rooms.filter(|id| known.directory.direct.get(**id).is_some()).count()
        };
        let has_place = |record: &&AgentRecord| {
            let full = record.rooms.len() >= ROOMS_PER_AGENT_MAX;
            !full && (direct(record) < DIRECT_ROOMS_SEATED_MAX || writes)
        };
        let Some(mut record) = own.filter(has_place).cloned() else { return false };
        if record.rooms.contains_key(&room) {
            return false;
        }
        let (joined, guest) = (known.rosters.stamp(known.cx.now), is_person(agent));
        record.rooms.insert(room, Seat { joined, seen, guest });
        self.kept.moved = true;
        known.rosters.put(known.cx.now, agent.clone(), record);
        true
    }

    // On record.

    /// Gives a member on record a seat if it is attached here and has none. People have none: they stand outside.
    pub(super) fn enlist(
        &mut self,
        known: &mut Known,
        (agent, key): (&AgentId, KeyPrint),
        room: RoomId,
        announce: bool,
    ) {
        let key = known.directory.current(key);
        let own = known.rosters.own(agent);
        let Some(mut record) = own.filter(|own| known.directory.current(own.key) == key).cloned()
        else {
            return;
        };
        let by = Reader { key, agent: Some(agent.clone()) };
        let stands_outside = is_person(agent)
            || known
                .outside
                .get(agent)
                .is_some_and(|is| known.registrations.get(agent) == Some(is));
        let by_others = |room: RoomId| known.maker_of(room).is_some_and(|maker| maker != key);
        let of_others = || record.rooms.keys().filter(|room| by_others(**room)).count();
        let is_full = record.rooms.len() >= ROOMS_PER_AGENT_MAX
            || by_others(room) && of_others() >= ENLISTED_BY_OTHERS_MAX
            || known.rosters.members(room).len() >= MEMBERS_PER_ROOM_MAX;
        let may = known.may_read(&by, room).and_then(|()| known.may_write(room)).is_ok();
        if stands_outside || is_full || !may || record.rooms.contains_key(&room) {
            return;
        }
        let Some(view) = known.told.get(&room).cloned() else { return };
        let seen = known.rooms.get(&room).map_or(Number::ZERO, |room| room.tip());
        let seat = Seat { joined: known.rosters.stamp(known.cx.now), seen, guest: false };
        record.rooms.insert(room, seat);
        self.kept.moved = true;
        known.rosters.put(known.cx.now, agent.clone(), record);
        let view = Box::new(known.for_key(view, key));
        let event = AgentEvent::Enlisted { agent: agent.clone(), room: view, announce };
        known.cx.effects.push(Effect::Tell(event));
    }

    /// The room's key has taken an agent off the list: a seat from before that is void. It may join again where others may.
    pub(super) fn unseat_removed(&mut self, known: &mut Known, agent: &AgentId, room: RoomId) {
        let Some(mut record) = known.rosters.own(agent).cloned() else { return };
        let Some(seat) = record.rooms.get(&room) else { return };
        if !known.was_removed_after(agent, room, seat.joined) {
            return;
        }
        record.rooms.remove(&room);
        self.kept.moved = true;
        known.rosters.put(known.cx.now, agent.clone(), record);
        let event = AgentEvent::Unseated { agent: agent.clone(), room };
        known.cx.effects.push(Effect::Tell(event));
    }

    /// A retired agent is not attached here any more.
    pub(super) fn end_retired(&mut self, known: &mut Known, agent: &AgentId) {
        let Some(record) = known.rosters.own(agent).cloned() else { return };
        if let Some(registration) = known.registrations.get(agent).copied() {
            let event = AgentEvent::Displaced { agent: agent.clone(), registration };
            known.cx.effects.push(Effect::Tell(event));
        }
        self.kept.moved = true;
        let_go(known, agent, record);
    }

    pub(super) fn leave(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        room: RoomId,
    ) -> Result<Outcome, Refused> {
        let mut record = known.caller(caller)?;
        known.may_read(&caller.reader(), room)?;
        if record.rooms.remove(&room).is_none() {
            return Err(Refused::NotMember);
        }
        self.kept.moved = true;
        if known.directory.direct.get(room).is_some() {
            if self.left.len() >= DIRECT_ROOMS_LEFT_MAX {
                self.left.pop_first();
            }
            self.left.insert((caller.agent.clone(), room));
        }
        put(known, caller, record);
        Ok(Outcome::Done)
    }

    pub(super) fn set_typing(
        &mut self,
        known: &mut Known,
        roster_sync: &mut RosterSync,
        caller: &Caller,
        typing: Typing,
    ) -> Result<Outcome, Refused> {
        let Typing { room, typing } = typing;
        let record = known.caller(caller)?;
        known.may_read(&caller.reader(), room)?;
        if !record.rooms.contains_key(&room) {
            return Err(Refused::NotMember);
        }
        let agent = caller.agent.clone();
        known
            .cx
            .notify(room, RoomEvent::Typing { agent: agent.clone(), name: record.name, typing });
        if !known.rosters.local_rooms.contains(&room) {
            self.typing_nonce += 1;
            let what = What::Typing { agent, room, typing, nonce: self.typing_nonce };
            roster_sync.tell(known, what);
        }
        Ok(Outcome::Done)
    }
}

fn may_attach(known: &Known, attach: &Attach) -> Result<(), Refused> {
    let agent = &attach.agent;
    attach.check()?;
    if known.rosters.count_at(known.cx.me) >= AGENTS_PER_NODE_MAX {
        return Err(Refused::Full("too many agents are attached to this node".to_owned()));
    }
    if known.directory.proofs().is_retired(agent) {
        return Err(Refused::AgentRetired(agent.clone()));
    }
    let owner = known.directory.owner(agent).map(|(key, _)| key);
    let is_anothers = match known.directory.belongs(agent, attach.key) {
        Belongs::Another => true,
        Belongs::Drawn => false,
        Belongs::FirstClaim | Belongs::IfClaimed => {
            attach.stable && owner.is_some_and(|key| key != attach.key)
        }
    };
    if is_anothers {
        return Err(Refused::AgentTaken(agent.clone()));
    }
    let connected = known.rosters.record(agent);
    match connected {
        Some((_, record))
            if !(attach.reconnect || record.lingers)
                || known.directory.current(record.key) != attach.key =>
        {
            Err(Refused::AgentTaken(agent.clone()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a key may have an agent id: one that nobody has claimed is anybody's.
pub(super) fn may_be(known: &Known, agent: &AgentId, key: KeyPrint) -> Result<(), Refused> {
    let is_anothers = match known.directory.belongs(agent, key) {
        Belongs::Another => true,
        Belongs::Drawn => false,
        Belongs::FirstClaim | Belongs::IfClaimed => {
            known.directory.owner(agent).is_some_and(|(owner, _)| owner != key)
        }
    };
    if is_anothers {
        Err(Refused::AgentTaken(agent.clone()))
    } else if known.directory.proofs().is_retired(agent) {
        Err(Refused::AgentRetired(agent.clone()))
    } else {
        Ok(())
    }
}

/// Agents that were attached when the node last wrote its roster: gone, and free to come back.
pub(super) fn restore_agents(known: &mut Known) {
    // It stays until another one is written: the next crash may come before that.
    let Some(kept) = known.node.roster.clone() else { return };
    let agents = minicbor::decode::<Vec<RosterChange>>(&kept).unwrap_or_default();
    for change in agents {
        if let RosterChange::Agent(agent, mut record) = change {
            record.gone = Some(known.rosters.stamp(known.cx.now));
            record.lingers = false;
            known.rosters.put(known.cx.now, agent, record);
        }
    }
}

/// The seats of an earlier registration, in the rooms that are still there. A connection that is
/// taken over here was told of everything up to the tip.
fn restore_seats(
    known: &Known,
    by: &Reader,
    record: &AgentRecord,
    taken_over: bool,
) -> BTreeMap<RoomId, Seat> {
    let is_kept = |(room, seat): &(&RoomId, &Seat)| {
        let agent = by.agent.as_deref().unwrap_or_default();
        known.may_read(by, **room).is_ok() && !known.was_removed_after(agent, **room, seat.joined)
    };
    let seats = record.rooms.iter().filter(is_kept);
    seats
        .map(|(room, seat)| {
            let tip = known.rooms.get(room).map_or(Number::ZERO, |room| room.tip());
            (*room, Seat { seen: if taken_over { tip } else { seat.seen }, ..*seat })
        })
        .collect()
}

/// The node has given an agent a seat that it has not asked for: before anything is told that happens there.
/// Direct rooms of an agent in which the other one has said something, the newest ones.
pub(super) fn written_to(known: &Known, by: &Reader) -> Vec<Unfiled> {
    let Some(agent) = &by.agent else { return Vec::new() };
    let direct = &known.directory.direct;
    let heard = |room: RoomId| {
        let direct = direct.get(room).filter(|direct| known.is_given(direct, agent))?;
        let own = direct.sides.place_of(agent, |key| known.directory.current(key) == by.key)?;
        let state = known.rooms.get(&room)?;
        let is_there = state.replica.record.said[1 - own] > Number::ZERO;
        let may = is_there && known.may_read(by, room).is_ok();
        may.then(|| Unfiled { room, upto: state.tip() })
    };
    let line = known.directory.keys().line(by.key);
    let rooms = line.into_iter().flat_map(|key| direct.of_agent(agent, key));
    let mut rooms: Vec<Unfiled> = rooms.filter_map(heard).collect();
    rooms.sort_unstable_by_key(|unfiled| (std::cmp::Reverse(unfiled.upto), unfiled.room));
    rooms.truncate(DIRECT_ROOMS_SEATED_MAX);
    rooms
}

fn tell_seated(known: &mut Known, agent: &AgentId, room: RoomId, missed: Option<Number>) {
    let event = AgentEvent::Seated { agent: agent.clone(), room, missed };
    known.cx.effects.push(Effect::Tell(event));
}

fn put(known: &mut Known, caller: &Caller, mut record: AgentRecord) {
    record.last_active_ms = known.cx.now.wall_ms;
    known.rosters.put(known.cx.now, caller.agent.clone(), record);
}

pub(super) fn set_presence(
    known: &mut Known,
    caller: &Caller,
    presence: Presence,
) -> Result<Outcome, Refused> {
    let mut record = known.caller(caller)?;
    presence.check()?;
    record.presence = presence;
    put(known, caller, record);
    Ok(Outcome::Done)
}

/// An agent begins to type in a room, or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typing {
    pub(super) room: RoomId,
    pub(super) typing: bool,
}

/// Whether an agent may register, and the standing of its key.
pub(super) fn admit(known: &mut Known, attach: &Attach) -> Result<Standing, Refused> {
    if attach.own {
        known.own_keys.insert(attach.key);
    }
    let standing = known.standing(attach.key, attach.own)?;
    keys::may_have_agent(known, attach)?;
    may_attach(known, attach)?;
    Ok(standing)
}

/// Whether the id must be claimed for its key first: it is to be stable, its form does not say whose it is, and nobody
/// has claimed it.
pub(super) fn must_claim(known: &Known, attach: &Attach) -> bool {
    let is_drawn = known.directory.belongs(&attach.agent, attach.key) == Belongs::Drawn;
    attach.stable && !is_drawn && known.directory.owner(&attach.agent).is_none()
}

/// Claims a stable id. The registration goes on when the claim has its number.
pub(super) fn claim_id(known: &mut Known, attach: &Attach) -> Result<Source, Refused> {
    let claim = AgentClaimed { agent: attach.agent.clone(), by: attach.claim.as_deref().cloned() };
    // Others would refuse another one, and everything that this node writes after it.
    if claim.key() != attach.key || !claim.is_signed_by_its_key(&Strict, known.cx.mesh) {
        return Err(Refused::Impossible(ShortKey.to_string()));
    }
    // A registration that waits for a claim goes on when that has its number, and would claim again what nobody owns then.
    if !claim.may_count() {
        return Err(Refused::AgentTaken(attach.agent.clone()));
    }
    if !known.directory.has_room_for(&claim) {
        let full = "the mesh has no room for more stable agent ids";
        return Err(Refused::Full(full.to_owned()));
    }
    keys::may_claim(known, attach.key)?;
    let directory = RoomId::directory(known.cx.mesh);
    let room = known.rooms.get_mut(&directory).ok_or(Refused::Closed)?;
    if !room.is_writable(&known.cx) {
        return Err(known.not_writable(directory));
    }
    let at = room.append(&mut known.cx, &Body::AgentClaimed(claim)).ok_or(Refused::Closed)?;
    Ok((directory, at))
}

/// A connection ends in good order: its agent's record, with the numbers that it has seen.
pub(super) fn leaving(
    known: &Known,
    caller: &Caller,
    seen: &[(RoomId, Number)],
) -> Result<AgentRecord, Refused> {
    let mut record = known.caller(caller)?;
    for (room, number) in seen {
        if let Some(seat) = record.rooms.get_mut(room) {
            seat.seen = *number;
        }
    }
    Ok(record)
}

/// A connection ends, and its agent stays until it is detached. Of a stale registration nothing does.
pub(super) fn linger(
    known: &mut Known,
    caller: &Caller,
    seen: &[(RoomId, Number)],
    hosted: bool,
) -> Result<Outcome, Refused> {
    if let Ok(mut record) = leaving(known, caller, seen) {
        record.lingers = true;
        record.hosted = hosted;
        known.rosters.put(known.cx.now, caller.agent.clone(), record);
    }
    Ok(Outcome::Done)
}

/// The agent writes without seats.
pub(super) fn stand_outside(known: &mut Known, caller: &Caller) -> Result<Outcome, Refused> {
    known.caller(caller)?;
    // Those that have gone, or registered anew, have a seat where they write.
    let registrations = &known.registrations;
    known.outside.retain(|agent, registered| registrations.get(agent) == Some(registered));
    known.outside.insert(caller.agent.clone(), caller.registration);
    Ok(Outcome::Done)
}

/// An agent of this node is gone, and may come back.
pub(super) fn let_go(known: &mut Known, agent: &AgentId, mut record: AgentRecord) {
    known.registrations.remove(agent);
    record.lingers = false;
    record.gone = Some(known.rosters.stamp(known.cx.now));
    known.rosters.put(known.cx.now, agent.clone(), record);
}

/// All of this node's agents are gone: it stops.
pub(super) fn let_all_go(known: &mut Known) {
    let agents: Vec<(AgentId, AgentRecord)> =
        known.rosters.own_agents().map(|(agent, record)| (agent.clone(), record.clone())).collect();
    for (agent, mut record) in agents {
        record.lingers = false;
        record.gone = Some(known.rosters.stamp(known.cx.now));
        known.rosters.put(known.cx.now, agent, record);
    }
    known.registrations.clear();
}

/// Tells the rooms of an agent how it is.
pub(super) fn tell_presence(known: &mut Known, agent: &AgentId) {
    let Some(view) = known.agent(agent) else { return };
    let view = Arc::new(view);
    let rooms: Vec<RoomId> = known
        .rosters
        .record(agent)
        .map(|(_, record)| record.rooms.keys().copied().collect())
        .unwrap_or_default();
    for room in rooms {
        known.cx.notify(room, RoomEvent::Presence(Arc::clone(&view)));
    }
}
