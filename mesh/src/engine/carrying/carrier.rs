//! This node as a carrier: it keeps what others hand over, durably before it says so, until each node that it is for has said that
//! it has it.
//!
//! Each node that hands something over has rooms, and a share, of its own: nobody can drop, or say that somebody has, what another
//! one has handed over; but a node that something is for, of itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use crate::{
    api::{batch::Change, boundary::Effect},
    engine::known::Known,
    limits::{
        CARRIED_AT_ONCE_MAX, CARRIED_FOR, CARRIED_HEAD_BYTES, CARRIED_HEADS_MAX,
        CARRIED_LOAD_BYTES_MAX, CARRIED_LOGS_MAX, CARRIED_MAX, CARRIED_NODE_BYTES,
        CARRIED_NODES_MAX, CARRIED_OVERHEAD_BYTES, CARRIED_ROOMS_MAX, CARRY_ASKED_AGAIN,
        CARRY_FILES_PART, CARRY_OFFERS_MAX, CARRY_SHARES_MIN, WANT_REPLY_BYTES,
    },
    name::{
        id::{LogId, NodeId, RoomId},
        time::in_ms,
    },
    wire::{
        carry::{
            Awaited, Carriage, CarriedAt, CarriedHead, Carrying, Load, Parcel, bytes_log,
            is_of_bytes, is_state,
        },
        cbor::encode,
        message::{ApartBody, Head, Message},
        run::Verified,
        seal::Token,
    },
};

/// A node for which a room is carried.
#[derive(Clone, Debug)]
struct Waiting {
    pass: Token,
    /// It has all up to here: it, or the node that asked, has said so.
    heads: BTreeMap<LogId, u64>,
    /// When it was told last that there is something for it, or given some.
    told: Option<Duration>,
    /// It was told, and has not answered.
    offered: bool,
    /// The last thing that it was given: it may be unable to take some, and is to get those behind them all the same.
    given: Option<(LogId, u64)>,
}

impl Waiting {
    fn new(pass: Token, heads: BTreeMap<LogId, u64>) -> Waiting {
        Waiting { pass, heads, told: None, offered: false, given: None }
    }

    fn has(&self, log: LogId, upto: u64) -> bool {
        self.heads.get(&log).is_some_and(|head| *head >= upto)
    }
}

/// A room that is carried for one node.
#[derive(Clone, Debug, Default)]
struct Room {
    nodes: BTreeMap<NodeId, Waiting>,
    asked_ms: u64,
    /// By log, and the entry after which it goes on.
    things: BTreeMap<(LogId, u64), CarriedHead>,
    /// Logs of which there is something.
    logs: usize,
    /// It counts as so many bytes, beside its things.
    counted: u64,
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

    /// The places of things of which one at this place is the later state: the same with less in it; of a record, or its bytes, those
    /// before it, and of a record the bytes of those, too.
    fn replaced_by(&self, log: LogId, after: u64) -> Vec<(LogId, u64)> {
        let first = if is_state(log) { 0 } else { after };
        let own = self.things.range((log, first)..=(log, after));
        let bytes = bytes_log(log);
        let is_record = is_state(log) && !is_of_bytes(log);
        let bytes = self.things.range((bytes, 0)..(bytes, if is_record { after } else { 0 }));
        own.chain(bytes).map(|(place, _)| *place).collect()
    }

    fn take(&mut self, place: (LogId, u64)) -> Option<CarriedHead> {
        let head = self.things.remove(&place)?;
        let is_gone = !self.has_any(place.0);
        self.logs -= usize::from(is_gone);
        Some(head)
    }

    /// Whether a thing, or a later state of the same record, is here.
    fn has(&self, (log, after): (LogId, u64), upto: u64) -> bool {
        if is_state(log) {
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
                if after <= upto || is_state(log) {
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

    /// Whether there is anything that a node has not said to have.
    fn has_more_for(&self, waiting: &Waiting) -> bool {
        self.things.iter().any(|((log, _), head)| !waiting.has(*log, head.upto))
    }

    /// The next such things, as many as fit into one message: they go on behind the last ones, and begin anew at the end.
    fn next_for(&self, waiting: &Waiting) -> Vec<(LogId, u64)> {
        let from = waiting.given.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.things.range((from, Bound::Unbounded));
        let before = waiting.given.map(|given| self.things.range(..=given));
        let things = behind.chain(before.into_iter().flatten());
        let lacking = things.filter(|((log, _), head)| !waiting.has(*log, head.upto));
        let (mut next, mut bytes) = (Vec::new(), 0);
        for (place, head) in lacking.take(CARRIED_AT_ONCE_MAX) {
            bytes += head.bytes;
            if bytes > WANT_REPLY_BYTES as u64 && !next.is_empty() {
                break;
            }
            next.push(*place);
        }
        next
    }

    /// In memory and in its row: with the heads that its nodes are going to say of what is held.
    fn cost(&self) -> u64 {
        let logs: BTreeSet<LogId> = self.things.keys().map(|(log, _)| *log).collect();
        let heads = |waiting: &Waiting| {
            let coming = logs.iter().filter(|log| !waiting.heads.contains_key(log));
            waiting.heads.len() + coming.count()
        };
        let heads = self.nodes.values().map(heads).sum::<usize>().min(CARRIED_HEADS_MAX);
        CARRIED_OVERHEAD_BYTES
            + self.nodes.len() as u64 * CARRIED_NODE_BYTES
            + heads as u64 * CARRIED_HEAD_BYTES
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
    rooms: usize,
}

/// See the module.
#[derive(Clone, Debug)]
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
                (awaited.node, Waiting::new(awaited.pass, heads))
            };
            let nodes = carriage.nodes.into_iter().map(waiting).collect();
            let made = Room { nodes, asked_ms: carriage.asked_ms, ..Room::default() };
            self.rooms.insert((room, of), made);
            self.used.entry(of).or_default().rooms += 1;
        }
        for (at, head) in carried {
            if let Some(room) = self.rooms.get_mut(&(at.room, at.of)) {
                room.put((at.log, at.after), head);
                let used = self.used.entry(at.of).or_default();
                used.bytes += head.bytes + CARRIED_OVERHEAD_BYTES;
                used.things += 1;
            }
        }
        for (room, of) in self.rooms.keys().copied().collect::<Vec<_>>() {
            self.count(room, of);
        }
    }

    /// Counts a room anew, beside its things.
    fn count(&mut self, room: RoomId, of: NodeId) {
        let Some(carried) = self.rooms.get_mut(&(room, of)) else { return };
        let cost = carried.cost();
        let before = std::mem::replace(&mut carried.counted, cost);
        let used = self.used.entry(of).or_default();
        used.bytes = used.bytes.saturating_sub(before) + cost;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.used.values().map(|used| used.bytes).sum()
    }

    /// Whether there is room for so much more of a node, within its fair share, or within this part of it.
    fn has_room(&self, known: &Known, of: NodeId, (bytes, part): (u64, u64)) -> bool {
        let members = known.directory.nodes.names.keys();
        let members = members.filter(|node| !known.cx.parted.has(**node)).count() as u64;
        let shares = members.max(CARRY_SHARES_MIN);
        let used = self.used.get(&of).copied().unwrap_or_default();
        let all = self.used.values().map(|used| used.things).sum::<u64>();
        used.bytes + bytes <= self.max / shares / part
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
        if !self.ask_for(known, from, (room, nodes)) {
            let (heads, full) = (Vec::new(), true);
            return known.cx.send(from, Message::Carrying(Carrying::Holds { room, heads, full }));
        }
        self.answer(known, room, from, false);
    }

    /// Whether there is room for a room with these nodes.
    fn ask_for(
        &mut self,
        known: &mut Known,
        from: NodeId,
        (room, nodes): (RoomId, Vec<Awaited>),
    ) -> bool {
        let before = self.rooms.get(&(room, from));
        let is_new = before.is_none();
        let known_of = |node: &NodeId| before.and_then(|before| before.nodes.get(node));
        // Those that it goes on with keep their heads: of a node that is named twice the last counts.
        let named: BTreeSet<NodeId> = nodes.iter().map(|awaited| awaited.node).collect();
        let kept: usize = named.iter().filter_map(known_of).map(|it| it.heads.len()).sum();
        let mut heads_left = CARRIED_HEADS_MAX.saturating_sub(kept);
        let mut asked = BTreeMap::new();
        for awaited in nodes {
            let new = || Waiting::new(awaited.pass, BTreeMap::new());
            let mut waiting = known_of(&awaited.node).cloned().unwrap_or_else(new);
            waiting.pass = awaited.pass;
            // What the node itself has said counts on.
            let had = waiting.heads.len();
            raise(&mut waiting.heads, &awaited.heads, had + heads_left);
            heads_left -= waiting.heads.len() - had;
            asked.insert(awaited.node, waiting);
        }
        let used = self.used.get(&from).copied().unwrap_or_default();
        if is_new && used.rooms >= CARRIED_ROOMS_MAX {
            return false;
        }
        let mut carried = self.rooms.remove(&(room, from)).unwrap_or_default();
        let before = std::mem::replace(&mut carried.nodes, asked);
        let grown = carried.cost().saturating_sub(carried.counted);
        if grown > 0 && !self.has_room(known, from, (grown, 1)) {
            carried.nodes = before;
            if !is_new {
                self.rooms.insert((room, from), carried);
            }
            return false;
        }
        let now = known.cx.now.wall_ms;
        let is_stale = now.saturating_sub(carried.asked_ms) >= in_ms(CARRIED_FOR) / 7;
        let has_changed = is_new || is_stale || said(&before) != said(&carried.nodes);
        if has_changed {
            carried.asked_ms = now;
        }
        self.rooms.insert((room, from), carried);
        self.used.entry(from).or_default().rooms += usize::from(is_new);
        self.settle(known, (room, from), has_changed);
        true
    }

    /// Things that all have go. The room's row is written if there were any, or it has changed otherwise.
    fn settle(&mut self, known: &mut Known, (room, of): (RoomId, NodeId), has_changed: bool) {
        let Some(carried) = self.rooms.get(&(room, of)) else { return };
        let carriage = carried.record();
        let had = carried.things.iter();
        let had = had.filter(|((log, _), head)| !carried.is_needed(*log, head.upto));
        let had: Vec<(LogId, u64)> = had.map(|(place, _)| *place).collect();
        if has_changed || !had.is_empty() {
            known.cx.change(Change::Carriage { of, room, carriage: Some(carriage) });
        }
        for place in had {
            self.drop_thing(known, (room, of), place);
        }
        self.count(room, of);
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
        let counted = self.rooms.remove(&(room, of)).map_or(0, |carried| carried.counted);
        let used = self.used.entry(of).or_default();
        used.bytes = used.bytes.saturating_sub(counted);
        used.rooms = used.rooms.saturating_sub(1);
        if used.rooms == 0 {
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
        let Parcel { of: _, room, runs, mut bodies, records, contents } = parcel;
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
        loads.extend(contents.into_iter().map(Load::Whole));
        if loads.is_empty() {
            // An answer has all of the room's heads: nothing is none worth.
            return;
        }
        for load in loads {
            full |= !self.keep(known, (room, from), load);
        }
        self.count(room, from);
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
        let bytes = encode(&load).len();
        if bytes > CARRIED_LOAD_BYTES_MAX {
            return false;
        }
        let bytes = bytes as u64;
        let replaced = carried.replaced_by(log, after);
        let freed = |place| carried.things.get(place).map_or(0, |head: &CarriedHead| head.bytes);
        let freed: u64 = replaced.iter().map(|place| freed(place) + CARRIED_OVERHEAD_BYTES).sum();
        // Its nodes are going to say heads of a new log.
        let heads = if is_new { carried.nodes.len() as u64 * CARRIED_HEAD_BYTES } else { 0 };
        let costs = bytes + CARRIED_OVERHEAD_BYTES + heads;
        // Files never take the room of what is said.
        let part = if is_of_bytes(log) { CARRY_FILES_PART } else { 1 };
        if is_new && carried.logs >= CARRIED_LOGS_MAX
            || !self.has_room(known, of, (costs.saturating_sub(freed), part))
        {
            return false;
        }
        for place in replaced {
            self.drop_thing(known, (room, of), place);
        }
        let since_ms = known.cx.now.wall_ms;
        if let Some(carried) = self.rooms.get_mut(&(room, of)) {
            carried.put((log, after), CarriedHead { upto, bytes, since_ms });
            carried.counted += heads;
            carried.nodes.values_mut().for_each(|waiting| waiting.told = None);
        }
        let used = self.used.entry(of).or_default();
        used.bytes += costs;
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
                    is_due && known.cx.up.contains(*node) && carried.has_more_for(waiting)
                })
                .map(|(node, _)| *node)
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
        let of_room = self.rooms.range((room, NodeId([0; 32]))..=(room, NodeId([255; 32])));
        let of_room = of_room.filter(|(_, carried)| carried.nodes.contains_key(&from));
        let of: Vec<NodeId> = of_room.map(|((_, of), _)| *of).collect();
        for of in of {
            let Some(carried) = self.rooms.get_mut(&(room, of)) else { continue };
            let all: usize = carried.nodes.values().map(|waiting| waiting.heads.len()).sum();
            let Some(mut waiting) = carried.nodes.remove(&from) else { continue };
            let room_for = CARRIED_HEADS_MAX.saturating_sub(all) + waiting.heads.len();
            // Of a log of which nothing is held the head is no news yet, and is not counted.
            let news = heads
                .iter()
                .filter(|head| waiting.heads.contains_key(&head.log) || carried.has_any(head.log));
            let news: Vec<Head> = news.copied().collect();
            let has_moved = raise(&mut waiting.heads, &news, room_for);
            // Given once for each offer, and whenever it has moved on: else it lacks something else first.
            let is_due = std::mem::take(&mut waiting.offered) || has_moved;
            carried.nodes.insert(from, waiting);
            if has_moved {
                self.settle(known, (room, of), false);
            }
            if is_due {
                self.give_on(known, from, (room, of));
            }
        }
    }

    /// The next things for a node.
    fn give_on(&mut self, known: &mut Known, to: NodeId, (room, of): (RoomId, NodeId)) {
        let Some(carried) = self.rooms.get_mut(&(room, of)) else { return };
        let next = carried.nodes.get(&to).map(|waiting| carried.next_for(waiting));
        let Some((next, waiting)) = next.zip(carried.nodes.get_mut(&to)) else { return };
        if next.is_empty() {
            return;
        }
        (waiting.told, waiting.given) = (Some(known.cx.now.mono), next.last().copied());
        let at = next.into_iter().map(|(log, after)| CarriedAt { of, room, log, after });
        known.cx.effects.push(Effect::GiveOn { to, at: at.collect() });
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
        let rooms: BTreeSet<(RoomId, NodeId)> = old.iter().map(|(at, _)| *at).collect();
        for (at, place) in old {
            self.drop_thing(known, at, place);
        }
        for (room, of) in rooms {
            self.count(room, of);
        }
        let is_old = |room: &Room| room.things.is_empty() && room.asked_ms < since;
        let rooms = self.rooms.iter().filter(|(_, carried)| is_old(carried));
        for (room, of) in rooms.map(|(at, _)| *at).collect::<Vec<_>>() {
            self.drop_room(known, room, of);
        }
    }
}

/// What is stored of these nodes.
fn said(nodes: &BTreeMap<NodeId, Waiting>) -> impl PartialEq + '_ {
    nodes.iter().map(|(node, it)| (*node, it.pass, &it.heads)).collect::<Vec<_>>()
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
