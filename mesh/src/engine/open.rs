//! Starting: from the rows of the store, or from nothing.

use super::{
    Engine,
    agents::{self, Agents},
    approvals::Approvals,
    barrier::Barriers,
    beacons::Beacons,
    carrying::Carrying,
    deliveries,
    digests::Digests,
    directories,
    elections::Leaders,
    forks::Forks,
    given::Given,
    handover::Handovers,
    hearsay::Hearsay,
    inboxes::Inboxes,
    inquiries::Inquiries,
    known::Known,
    membership,
    once::{self, Onces},
    pairs::Pairs,
    private::{self, Private},
    reach::Reach,
    receipts::Receipts,
    records::Records,
    refold,
    retention::Pruning,
    roaming::Roams,
    roster_sync::RosterSync,
    secret::Renewal,
    speaking::Speaking,
    streams::Streams,
    tasks::{self, Claims},
    turn_token::Turns,
    unvouched::Unvouched,
    votes::Voting,
    waiters::Waiters,
};
use crate::{
    api::batch::{NodeRecord, Summary},
    api::config::Config,
    limits::{LANES_PER_NODE_MAX, TICK},
    name::{
        id::{LogId, RoomId},
        identity::Identity,
        number::{LANES, Number},
        time::Now,
    },
    room::Room,
    turn::happened::Fact,
    wire::entry::{Body, NodeAdmitted},
};

impl Engine {
    /// An engine that goes on where the store's summary ends. Its first turn tells clients of all
    /// rooms and marks the node as running.
    #[must_use]
    pub fn open(identity: Identity, config: Config, stored: Summary, now: Now) -> Engine {
        let mut node = stored.node.clone().unwrap_or_else(|| NodeRecord::new(config.mesh));
        // Counts upwards whatever the wall clock does, and is above that of a lost past if it can.
        node.boot = (node.boot + 1).max(now.wall_ms / 1_000);
        let boot = node.boot;
        let pruning = Pruning::new(now, config.retention_min);
        let carry = config.carry;
        let known = Known::new(identity, config, node, now);
        let mut engine = Engine {
            pruning,
            speaking: Speaking::new(&known),
            known,
            waiters: Waiters::default(),
            agents: Agents::new(now.mono),
            inboxes: Inboxes::default(),
            turns: Turns::default(),
            voting: Voting::default(),
            leaders: Leaders::default(),
            claims: Claims::default(),
            onces: Onces::default(),
            approvals: Approvals::default(),
            given: Given::default(),
            roams: Roams::default(),
            private: Private::default(),
            barriers: Barriers::default(),
            roster_sync: RosterSync::default(),
            digests: Digests::new(),
            forks: Forks::default(),
            renewal: Renewal::new(now.mono),
            beacons: Beacons::new(boot),
            hearsay: Hearsay::default(),
            handovers: Handovers::default(),
            unvouched: Unvouched::default(),
            receipts: Receipts::default(),
            inquiries: Inquiries::default(),
            streams: Streams::default(),
            pairs: Pairs::default(),
            records: Records::new(carry),
            carrying: Carrying::new(carry / 2),
            next_tick: now.mono + TICK,
            last_called: now.mono,
        };
        engine.restore(stored);
        engine.redraw_lane();
        membership::shut_out_all_parted(&mut engine.known);
        engine.renewal.ask_for_secret_without_the_expelled(&mut engine.known);
        engine
    }

    fn restore(&mut self, mut stored: Summary) {
        self.carrying.restore(&mut stored);
        let owed = std::mem::take(&mut stored.owed);
        self.inboxes.restore(&mut self.known, std::mem::take(&mut stored.inboxes));
        self.known.cx.forked = stored.forked.iter().copied().collect();
        self.forks.restore(&stored.proofs);
        membership::restore_parted(&mut self.known, &stored);
        restore_rooms(&mut self.known, stored.rooms);
        private::restore_following(&mut self.known);
        refold::refold_acts(&mut self.known, stored.acts);
        self.voting.restore_votes(&mut self.known, stored.notes);
        tasks::note_tasks(&mut self.known);
        once::drop_news(&mut self.known);
        deliveries::drop_news(&mut self.known);
        self.leaders.note_leaders(&mut self.known);
        directories::fold_lost(&mut self.known);
        self.restore_directory(stored.directory);
        self.known.settle_successors();
        self.speaking.deliveries.restore(&mut self.known, stored.requests);
        self.records.restore(&mut self.known, stored.records);
        self.pairs.restore(&self.known);
        ensure_permanent_rooms(&mut self.known);
        self.carrying.restore_owed(&mut self.known, owed);
        agents::restore_agents(&mut self.known);
        self.given.note_all(&self.known, &self.inboxes);
        self.approvals.note_all(&mut self.known);
        self.known.tell_of_all_rooms();
    }

    fn restore_directory(
        &mut self,
        entries: Vec<(RoomId, crate::name::id::LocalRef, crate::wire::entry::Stored, Vec<Number>)>,
    ) {
        for (room, at, entry, numbers) in entries {
            let Some(known) = self.known.rooms.get(&room) else { continue };
            let log = known.replica.logs.get(at.log);
            if log.fork.is_some_and(|fork| at.seq >= fork) {
                continue;
            }
            let body = known.replica.body_of(at, &entry);
            let fact = Fact { room, at, log: log.id, facts: entry.facts, body };
            self.learn(fact, &numbers);
        }
    }

    /// Draws this node's lane: at admission, and again if an earlier entry has the same.
    pub(super) fn redraw_lane(&mut self) {
        let drawn = self.known.directory.nodes.lanes.get(&self.known.cx.me).map_or(0, Vec::len);
        let clashes = self.known.directory.nodes.lane_clashes(self.known.cx.me);
        // A node that has no part claims no eras.
        if self.known.cx.out
            || self.known.cx.my_lane.is_some() && (!clashes || drawn >= LANES_PER_NODE_MAX)
        {
            return;
        }
        let taken: std::collections::BTreeSet<u32> =
            self.known.directory.nodes.lanes.values().flatten().map(|(_, lane)| *lane).collect();
        let mut draw = self.known.config.seed;
        let mut lane = 0;
        // One of many lanes is free at the first draw; a node that entered them all cannot keep others
        // drawing for ever.
        for _ in 0..DRAWS_MAX {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9_7f4a_7c15);
            lane = u32::try_from(draw >> 40).unwrap_or_default() % LANES;
            if !taken.contains(&lane) {
                break;
            }
        }
        self.known.config.seed = draw;
        let name = self.known.config.name.clone();
        let relay = self.known.cx.is_relay().then_some(true);
        let body = Body::NodeAdmitted(NodeAdmitted { lane, name, relay });
        let directory = RoomId::directory(self.known.cx.mesh);
        if let Some(room) = self.known.rooms.get_mut(&directory)
            && room.append(&mut self.known.cx, &body).is_some()
        {
            // Known at once: the clash test must not see the old one again before the turn ends.
            self.fold_facts();
        }
    }
}

fn restore_rooms(known: &mut Known, rooms: Vec<crate::api::batch::StoredRoom>) {
    for mut stored in rooms {
        let (id, dedups) = (stored.room, std::mem::take(&mut stored.dedups));
        let mine = LogId { author: known.cx.me, incarnation: 0 };
        let mut room = Room::restore(&mut known.cx, stored, mine);
        for author in known.cx.forked.clone() {
            room.shut_out(&mut known.cx, author);
        }
        for node in known.cx.parted.nodes().collect::<Vec<_>>() {
            room.remove(&mut known.cx, node);
        }
        for (dedup, at, wall_ms, number) in dedups {
            room.order.sent.insert(dedup, at, wall_ms);
            if let Some(number) = number {
                room.order.sent.delivered(at, number);
            }
        }
        if room.replica.record.local {
            known.rosters.local_rooms.insert(id);
        }
        if room.replica.record.ephemeral {
            known.ephemeral.insert(id);
        }
        known.rooms.insert(id, room);
    }
}

/// Directory and lobby are there from the first start on, and so is the private directory.
fn ensure_permanent_rooms(known: &mut Known) {
    let (mesh, founder) = (known.cx.mesh, known.config.founder);
    let private_of = known.node.private_of.unwrap_or(known.cx.me);
    let rooms = [
        (RoomId::directory(mesh), founder, Reach::Mesh),
        (RoomId::lobby(mesh), founder, Reach::Mesh),
        (known.cx.private_directory, private_of, Reach::Node),
    ];
    // A relay has the first of them alone.
    let count = if known.cx.is_relay() { 1 } else { rooms.len() };
    for (id, home, reach) in rooms.into_iter().take(count) {
        let home = LogId { author: home, incarnation: 0 };
        known.ensure_room(id, home, reach);
    }
}

/// Lanes tried before any is taken.
const DRAWS_MAX: usize = 64;
