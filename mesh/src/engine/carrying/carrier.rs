//! This node as a carrier: it keeps what others hand over, durably before it says so, until each node that it is for has said that
//! it has it.
//!
//! Each node that hands something over has rooms, and a share, of its own: nobody can drop, or say that somebody has, what another
//! one has handed over; but a node that something is for, of itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    api::{batch::Change, boundary::Effect},
    engine::known::Known,
    limits::{
        CARRIED_AT_ONCE_MAX, CARRIED_FOR, CARRIED_HEADS_MAX, CARRIED_LOGS_MAX, CARRIED_MAX,
        CARRIED_NODES_MAX, CARRIED_OVERHEAD_BYTES, CARRY_ASKED_AGAIN, CARRY_OFFERS_MAX,
        CARRY_SHARES_MIN,
    },
    name::{
        id::{LogId, NodeId, RoomId},
        time::in_ms,
    },
    wire::{
        carry::{Awaited, Carriage, CarriedAt, CarriedHead, Carrying, Load, Parcel},
        cbor::encode,
        message::{ApartBody, Head, Message},
        run::Verified,
        seal::Token,
    },
};

/// A node for which a room is carried.
#[derive(Debug)]
struct Waiting {
    pass: Token,
    /// It has all up to here: it, or the node that asked, has said so.
    heads: BTreeMap<LogId, u64>,
    /// When it was told last that there is something for it, or given some.
    told: Option<Duration>,
    /// It was told, and has not answered.
    offered: bool,
}

impl Waiting {
    fn has(&self, log: LogId, upto: u64) -> bool {
        self.heads.get(&log).is_some_and(|head| *head >= upto)
    }
}

/// A room that is carried for one node.
#[derive(Debug, Default)]
struct Room {
    nodes: BTreeMap<NodeId, Waiting>,
    asked_ms: u64,
    /// By log, and the entry after which it goes on.
    things: BTreeMap<(LogId, u64), CarriedHead>,
    /// Logs of which there is something.
    logs: usize,
}

impl Room {
    fn of_log(&self, log: LogId) -> impl Iterator<Item = (u64, &CarriedHead)> {
        let things = self.things.range((log, 0)..=(log, u64::MAX));
        things.map(|((_, after), head)| (*after, head))
    }

    fn has_any(&self, log: LogId) -> bool {
        self.of_log(log).next().is_some()
    }

    fn put(&mut self, place: (LogId, u64), head: CarriedHead) {
        let is_new = !self.has_any(place.0);
        self.logs += usize::from(is_new);
        self.things.insert(place, head);
    }

    fn take(&mut self, place: (LogId, u64)) -> Option<CarriedHead> {
        let head = self.things.remove(&place)?;
        let is_gone = !self.has_any(place.0);
        self.logs -= usize::from(is_gone);
        Some(head)
    }

    /// Whether a thing, or a later state of the same record, is here.
    fn has(&self, (log, after): (LogId, u64), upto: u64) -> bool {
        if is_of_record(log) {
            return self.of_log(log).any(|(_, head)| head.upto >= upto);
        }
        self.things.get(&(log, after)).is_some_and(|head| head.upto >= upto)
    }

    /// Up to here each log is held, or not needed.
    fn covered(&self) -> BTreeMap<LogId, u64> {
        let logs: BTreeSet<LogId> = self.things.keys().map(|(log, _)| *log).collect();
        let known = self.nodes.values().flat_map(|waiting| waiting.heads.keys().copied());
        let mut covered: BTreeMap<LogId, u64> = BTreeMap::new();
        for log in logs.into_iter().chain(known) {
            if covered.contains_key(&log) {
                continue;
            }
            let had =
                self.nodes.values().map(|waiting| waiting.heads.get(&log).copied().unwrap_or(0));
            let mut upto = had.min().unwrap_or(0);
            for (after, head) in self.of_log(log) {
                // Of a record one state is as good as any before it.
                if after <= upto || is_of_record(log) {
                    upto = upto.max(head.upto);
                }
            }
            covered.insert(log, upto);
        }
        covered.retain(|_, upto| *upto > 0);
        covered
    }

    fn is_needed(&self, log: LogId, upto: u64) -> bool {
        self.nodes.values().any(|waiting| !waiting.has(log, upto))
    }

    /// Those that a node has not said to have.
    fn rest_for(&self, node: NodeId) -> impl Iterator<Item = (LogId, u64)> + '_ {
        let waiting = self.nodes.get(&node);
        let things = self.things.iter().filter(move |((log, _), head)| {
            waiting.is_some_and(|waiting| !waiting.has(*log, head.upto))
        });
        things.map(|(place, _)| *place)
    }

    fn record(&self) -> Carriage {
        let nodes = self.nodes.iter().map(|(node, waiting)| Awaited {
            node: *node,
            pass: waiting.pass,
            heads: waiting.heads.iter().map(|(log, seq)| Head { log: *log, seq: *seq }).collect(),
        });
        Carriage { nodes: nodes.collect(), asked_ms: self.asked_ms }
    }
}

/// The part of a node in all that is carried.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    things: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Carrier {
    max: u64,
    /// By room, and the node that has asked.
    rooms: BTreeMap<(RoomId, NodeId), Room>,
    used: BTreeMap<NodeId, Used>,
}

impl Carrier {
    pub(super) fn new(max: u64) -> Carrier {
        Carrier { max, rooms: BTreeMap::new(), used: BTreeMap::new() }
    }

    pub(super) fn restore(
        &mut self,
        carriages: Vec<(NodeId, RoomId, Carriage)>,
        carried: Vec<(CarriedAt, CarriedHead)>,
    ) {
        for (of, room, carriage) in carriages {
            let waiting = |awaited: Awaited| {
                let heads = awaited.heads.iter().map(|head| (head.log, head.seq)).collect();
                (awaited.node, Waiting { pass: awaited.pass, heads, told: None, offered: false })
            };
            let nodes = carriage.nodes.into_iter().map(waiting).collect();
            let made = Room { nodes, asked_ms: carriage.asked_ms, ..Room::default() };
            self.rooms.insert((room, of), made);
            self.used.entry(of).or_default().bytes += CARRIED_OVERHEAD_BYTES;
        }
        for (at, head) in carried {
            if let Some(room) = self.rooms.get_mut(&(at.room, at.of)) {
                room.put((at.log, at.after), head);
                let used = self.used.entry(at.of).or_default();
                used.bytes += head.bytes + CARRIED_OVERHEAD_BYTES;
                used.things += 1;
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.used.values().map(|used| used.bytes).sum()
    }

    /// Whether there is room for so much more of a node, within its fair share.
    fn has_room(&self, known: &Known, of: NodeId, bytes: u64) -> bool {
        let members = known.directory.nodes.names.keys();
        let members = members.filter(|node| !known.cx.parted.has(**node)).count() as u64;
        let shares = members.max(CARRY_SHARES_MIN);
        let used = self.used.get(&of).copied().unwrap_or_default();
        let all = self.used.values().map(|used| used.things).sum::<u64>();
        let bytes = bytes + CARRIED_OVERHEAD_BYTES;
        used.bytes + bytes <= self.max / shares
            && self.bytes() + bytes <= self.max
            && used.things < CARRIED_MAX / shares
            && all < CARRIED_MAX
    }

    // Nodes that hand something over.

    /// A node asks that a room be carried.
    pub(super) fn on_please(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (room, mut nodes): (RoomId, Vec<Awaited>),
    ) {
        let me = known.cx.me;
        nodes.retain(|awaited| awaited.node != me && awaited.node != from);
        nodes.truncate(CARRIED_NODES_MAX);
        if nodes.is_empty() {
            return self.drop_room(known, room, from);
        }
        let is_new = !self.rooms.contains_key(&(room, from));
        if is_new && !self.has_room(known, from, 0) {
            let (heads, full) = (Vec::new(), true);
            return known.cx.send(from, Message::Carrying(Carrying::Holds { room, heads, full }));
        }
        if is_new {
            self.used.entry(from).or_default().bytes += CARRIED_OVERHEAD_BYTES;
        }
        let carried = self.rooms.entry((room, from)).or_default();
        carried.asked_ms = known.cx.now.wall_ms;
        let mut before = std::mem::take(&mut carried.nodes);
        for awaited in nodes {
            let mut waiting = before.remove(&awaited.node).unwrap_or_else(|| Waiting {
                pass: awaited.pass,
                heads: BTreeMap::new(),
                told: None,
                offered: false,
            });
            waiting.pass = awaited.pass;
            // What the node itself has said counts on.
            raise(&mut waiting.heads, &awaited.heads, CARRIED_HEADS_MAX);
            carried.nodes.insert(awaited.node, waiting);
        }
        self.settle(known, room, from);
        self.answer(known, room, from, false);
    }

    /// Things that all have go; and the room's row is written.
    fn settle(&mut self, known: &mut Known, room: RoomId, of: NodeId) {
        let Some(carried) = self.rooms.get(&(room, of)) else { return };
        let carriage = Some(carried.record());
        let had = carried.things.iter();
        let had = had.filter(|((log, _), head)| !carried.is_needed(*log, head.upto));
        let had: Vec<(LogId, u64)> = had.map(|(place, _)| *place).collect();
        for place in had {
            self.drop_thing(known, (room, of), place);
        }
        known.cx.change(Change::Carriage { of, room, carriage });
    }

    fn drop_thing(&mut self, known: &mut Known, (room, of): (RoomId, NodeId), place: (LogId, u64)) {
        let Some(carried) = self.rooms.get_mut(&(room, of)) else { return };
        let Some(head) = carried.take(place) else { return };
        let used = self.used.entry(of).or_default();
        used.bytes = used.bytes.saturating_sub(head.bytes + CARRIED_OVERHEAD_BYTES);
        used.things = used.things.saturating_sub(1);
        let (log, after) = place;
        let at = CarriedAt { of, room, log, after };
        known.cx.change(Change::Load { at, since_ms: head.since_ms, load: None });
    }

    fn drop_room(&mut self, known: &mut Known, room: RoomId, of: NodeId) {
        let Some(carried) = self.rooms.get(&(room, of)) else { return };
        for place in carried.things.keys().copied().collect::<Vec<_>>() {
            self.drop_thing(known, (room, of), place);
        }
        self.rooms.remove(&(room, of));
        let used = self.used.entry(of).or_default();
        used.bytes = used.bytes.saturating_sub(CARRIED_OVERHEAD_BYTES);
        if used.bytes == 0 {
            self.used.remove(&of);
        }
        known.cx.change(Change::Carriage { of, room, carriage: None });
    }

    /// Says what is held, with the turn that makes it durable.
    fn answer(&self, known: &mut Known, room: RoomId, of: NodeId, full: bool) {
        let Some(carried) = self.rooms.get(&(room, of)) else { return };
        let heads = carried.covered().into_iter().map(|(log, seq)| Head { log, seq }).collect();
        known.cx.send(of, Message::Carrying(Carrying::Holds { room, heads, full }));
    }

    /// A node hands something over.
    pub(super) fn on_parcel(&mut self, known: &mut Known, from: NodeId, parcel: Parcel<Verified>) {
        let Parcel { of: _, room, runs, mut bodies, records } = parcel;
        if !self.rooms.contains_key(&(room, from)) {
            // It was too long ago, and is asked for anew.
            let (heads, full) = (Vec::new(), true);
            return known.cx.send(from, Message::Carrying(Carrying::Holds { room, heads, full }));
        }
        let mut full = false;
        let runs = runs.iter().map(Verified::run).filter(|run| run.room == room);
        let mut loads: Vec<Load> = Vec::new();
        for run in runs {
            let is_of = |body: &ApartBody| {
                body.log == run.log && (run.first..=run.last()).contains(&body.seq)
            };
            let (own, rest) = bodies.into_iter().partition(is_of);
            bodies = rest;
            loads.push(Load::Run(run.clone(), own));
        }
        loads.extend(records.into_iter().map(Load::Record));
        if loads.is_empty() {
            // An answer has all of the room's heads: nothing is none worth.
            return;
        }
        for load in loads {
            full |= !self.keep(known, (room, from), load);
        }
        self.answer(known, room, from, full);
    }

    /// Whether there was room for it, if it is needed.
    fn keep(&mut self, known: &mut Known, (room, of): (RoomId, NodeId), load: Load) -> bool {
        let (log, after, upto) = load.place();
        let Some(carried) = self.rooms.get(&(room, of)) else { return true };
        if carried.has((log, after), upto) || !carried.is_needed(log, upto) {
            return true;
        }
        let is_new = !carried.has_any(log);
        let bytes = encode(&load).len() as u64;
        if is_new && carried.logs >= CARRIED_LOGS_MAX || !self.has_room(known, of, bytes) {
            return false;
        }
        // It replaces the same with less in it, and a state of a record those before it.
        let first = if is_of_record(log) { 0 } else { after };
        let replaced: Vec<(LogId, u64)> =
            carried.things.range((log, first)..=(log, after)).map(|(place, _)| *place).collect();
        for place in replaced {
            self.drop_thing(known, (room, of), place);
        }
        let since_ms = known.cx.now.wall_ms;
        if let Some(carried) = self.rooms.get_mut(&(room, of)) {
            carried.put((log, after), CarriedHead { upto, bytes, since_ms });
            carried.nodes.values_mut().for_each(|waiting| waiting.told = None);
        }
        let used = self.used.entry(of).or_default();
        used.bytes += bytes + CARRIED_OVERHEAD_BYTES;
        used.things += 1;
        let at = CarriedAt { of, room, log, after };
        known.cx.change(Change::Load { at, since_ms, load: Some(Arc::new(load)) });
        true
    }

    // Nodes that it is for.

    pub(super) fn on_peer_up(&mut self, peer: NodeId) {
        let waiting = self.rooms.values_mut().filter_map(|room| room.nodes.get_mut(&peer));
        waiting.for_each(|waiting| waiting.told = None);
    }

    /// At every tick: tells nodes that are there that there is something for them.
    pub(super) fn offer(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        let mut offers: BTreeMap<NodeId, BTreeMap<RoomId, Token>> = BTreeMap::new();
        for ((room, _), carried) in &mut self.rooms {
            let due: Vec<NodeId> = carried
                .nodes
                .iter()
                .filter(|(node, waiting)| {
                    let is_due = waiting.told.is_none_or(|at| now >= at + CARRY_ASKED_AGAIN);
                    is_due && known.cx.up.contains(*node)
                })
                .map(|(node, _)| *node)
                .filter(|node| carried.rest_for(*node).next().is_some())
                .collect();
            for node in due {
                let of_node = offers.entry(node).or_default();
                if let Some(waiting) = carried.nodes.get_mut(&node)
                    && of_node.len() < CARRY_OFFERS_MAX
                {
                    (waiting.told, waiting.offered) = (Some(now), true);
                    of_node.insert(*room, waiting.pass);
                }
            }
        }
        for (node, rooms) in offers {
            let rooms = rooms.into_iter().collect();
            known.cx.send(node, Message::Carrying(Carrying::Offers(rooms)));
        }
    }

    /// A node says how far it is with a room: of itself alone.
    pub(super) fn on_has(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (room, heads): (RoomId, &[Head]),
    ) {
        let (now, all) = (known.cx.now.mono, (room, NodeId([0; 32]))..=(room, NodeId([255; 32])));
        let of_room = self.rooms.range(all);
        let of_room = of_room.filter(|(_, carried)| carried.nodes.contains_key(&from));
        let of: Vec<NodeId> = of_room.map(|((_, of), _)| *of).collect();
        for of in of {
            let Some(carried) = self.rooms.get_mut(&(room, of)) else { continue };
            let others: usize = carried.nodes.values().map(|waiting| waiting.heads.len()).sum();
            let Some(waiting) = carried.nodes.get_mut(&from) else { continue };
            let room_for = CARRIED_HEADS_MAX.saturating_sub(others) + waiting.heads.len();
            let has_moved = raise(&mut waiting.heads, heads, room_for);
            // Given once for each offer, and whenever it has moved on: else it lacks something else first.
            let is_due = std::mem::take(&mut waiting.offered) || has_moved;
            if has_moved {
                self.settle(known, room, of);
            }
            let Some(carried) = self.rooms.get_mut(&(room, of)) else { continue };
            let at: Vec<CarriedAt> = carried
                .rest_for(from)
                .take(CARRIED_AT_ONCE_MAX)
                .map(|(log, after)| CarriedAt { of, room, log, after })
                .collect();
            let Some(waiting) = carried.nodes.get_mut(&from) else { continue };
            if is_due && !at.is_empty() {
                waiting.told = Some(now);
                known.cx.effects.push(Effect::GiveOn { to: from, at });
            }
        }
    }

    // Time.

    /// What nobody has come for in time goes.
    pub(super) fn expire(&mut self, known: &mut Known) {
        let since = known.cx.now.wall_ms.saturating_sub(in_ms(CARRIED_FOR));
        let mut old = Vec::new();
        for ((room, of), carried) in &self.rooms {
            let things = carried.things.iter().filter(|(_, head)| head.since_ms < since);
            old.extend(things.map(|(place, _)| ((*room, *of), *place)));
        }
        for (at, place) in old {
            self.drop_thing(known, at, place);
        }
        let is_old = |room: &Room| room.things.is_empty() && room.asked_ms < since;
        let rooms = self.rooms.iter().filter(|(_, carried)| is_old(carried));
        for (room, of) in rooms.map(|(at, _)| *at).collect::<Vec<_>>() {
            self.drop_room(known, room, of);
        }
    }
}

/// Whether it is a record, and no log of a room: see `log_of_record`.
fn is_of_record(log: LogId) -> bool {
    log.incarnation == u64::MAX
}

/// Takes these heads in where they are higher, at most so many. Whether any was.
fn raise(heads: &mut BTreeMap<LogId, u64>, said: &[Head], max: usize) -> bool {
    let mut any = false;
    for head in said {
        let has_room = heads.len() < max;
        match heads.get_mut(&head.log) {
            Some(known) if head.seq > *known => {
                *known = head.seq;
                any = true;
            }
            Some(_) => {}
            None if has_room && head.seq > 0 => {
                heads.insert(head.log, head.seq);
                any = true;
            }
            None => {}
        }
    }
    any
}
