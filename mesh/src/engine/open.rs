//! Starting: from what the store has, or from nothing.

use super::{
    Engine,
    known::{Known, reach::Reach},
    retention::Pruning,
    tasks,
};
use crate::{
    api::batch::{NodeRecord, Summary},
    engine::{config::Config, happened::Fact},
    limits::{BUCKETS, LANES_PER_NODE_MAX, PROOFS_MAX, TICK},
    name::{
        id::{LogId, RoomId},
        identity::Identity,
        number::{LANES, Number},
        time::Now,
    },
    order::pulse::{Pulse, Spread},
    room::Room,
    wire::{
        entry::{Body, NodeAdmitted},
        message::Message,
    },
};

impl Engine {
    /// An engine that goes on where the store's summary ends. Its first turn tells clients of all
    /// rooms and marks the node as running.
    #[must_use]
    pub fn open(identity: Identity, config: Config, stored: Summary, now: Now) -> Engine {
        let mut node = stored.node.clone().unwrap_or_else(|| new_node(&config));
        // Counts upwards whatever the wall clock does, and is above that of a lost past if it can.
        node.boot = (node.boot + 1).max(now.wall_ms / 1_000);
        let boot = node.boot;
        let mut engine = Engine {
            pruning: Pruning::new(now, config.retention_min),
            known: Known::new(identity, config, node, now),
            unshared: Default::default(),
            pulse: Pulse { boot, ..Pulse::default() },
            spread: Spread::default(),
            calls: Default::default(),
            leaders: Default::default(),
            claims: Default::default(),
            roams: Default::default(),
            next_registration: 0,
            turns: Default::default(),
            crowds: Default::default(),
            voting: Default::default(),
            buckets: [0; BUCKETS],
            digests: Default::default(),
            digest: super::turn::fold(&[0; BUCKETS]),
            about: Default::default(),
            renewal: super::secret::Renewal::new(now.mono),
            roster_asked: None,
            compared: Default::default(),
            rosters_behind: Default::default(),
            in_step: 0,
            proofs: Vec::new(),
            held: Vec::new(),
            roster_kept: super::agents::RosterKept::none(now.mono),
            private: Default::default(),
            barriers: Default::default(),
            typing_nonce: 0,
            stopping: None,
            taken: Default::default(),
            next_tick: now.mono + TICK,
            last_called: now.mono,
        };
        engine.restore(stored);
        engine.redraw_lane();
        engine.shut_out_all_parted();
        engine.ask_for_secret_without_the_expelled();
        engine
    }

    /// Who is shut out, and what shows others why.
    fn restore_forks(&mut self, stored: &Summary) {
        self.known.cx.forked = stored.forked.iter().copied().collect();
        let proofs = stored.proofs.iter().take(PROOFS_MAX);
        self.proofs.extend(proofs.map(|(it, run)| Message::Fork(*it, Box::new(run.clone()))));
    }

    fn restore(&mut self, stored: Summary) {
        self.restore_forks(&stored);
        self.restore_parted(&stored);
        self.restore_rooms(stored.rooms);
        self.restore_following();
        self.refold_acts(stored.acts);
        self.voting.restore_votes(&mut self.known, stored.notes);
        tasks::note_tasks(&mut self.known);
        self.leaders.note_leaders(&mut self.known);
        self.fold_lost();
        self.restore_directory(stored.directory);
        self.ensure_permanent_rooms();
        self.restore_agents();
        self.known.tell_of_all_rooms();
    }

    fn restore_rooms(&mut self, rooms: Vec<crate::api::batch::StoredRoom>) {
        for mut stored in rooms {
            let (id, dedups) = (stored.room, std::mem::take(&mut stored.dedups));
            let mine = LogId { author: self.known.cx.me, incarnation: 0 };
            let mut room = Room::restore(&mut self.known.cx, stored, mine);
            for author in self.known.cx.forked.clone() {
                room.shut_out(&mut self.known.cx, author);
            }
            for node in self.known.cx.parted.nodes().collect::<Vec<_>>() {
                room.part_with(&mut self.known.cx, node);
            }
            for (dedup, at, wall_ms, number) in dedups {
                room.sequencing.sent.insert(dedup, at, wall_ms);
                if let Some(number) = number {
                    room.sequencing.sent.delivered(at, number);
                }
            }
            if room.record.local {
                self.known.rosters.local_rooms.insert(id);
            }
            if room.record.ephemeral {
                self.known.ephemeral.insert(id);
            }
            self.known.rooms.insert(id, room);
        }
    }

    fn restore_directory(
        &mut self,
        entries: Vec<(RoomId, crate::name::id::LocalRef, crate::wire::entry::Stored, Vec<Number>)>,
    ) {
        for (room, at, entry, numbers) in entries {
            let Some(known) = self.known.rooms.get(&room) else { continue };
            let log = known.logs.get(at.log);
            if log.fork.is_some_and(|fork| at.seq >= fork) {
                continue;
            }
            let body = known.body_of(at, &entry);
            let fact = Fact { room, at, log: log.id, facts: entry.facts, body };
            self.learn(fact, &numbers);
        }
    }

    /// Lobby and directory are there from the first start on, and so is the private directory.
    fn ensure_permanent_rooms(&mut self) {
        let (mesh, founder) = (self.known.cx.mesh, self.known.config.founder);
        let private_of = self.known.node.private_of.unwrap_or(self.known.cx.me);
        let rooms = [
            (RoomId::directory(mesh), founder, Reach::Mesh),
            (RoomId::lobby(mesh), founder, Reach::Mesh),
            (self.known.cx.private_directory, private_of, Reach::Node),
        ];
        for (id, home, reach) in rooms {
            let home = LogId { author: home, incarnation: 0 };
            self.known.ensure_room(id, home, reach);
        }
    }

    /// Draws this node's lane: at admission, and again if an earlier entry has the same.
    pub(super) fn redraw_lane(&mut self) {
        let drawn = self.known.directory.lanes.get(&self.known.cx.me).map_or(0, Vec::len);
        let clashes = self.known.directory.lane_clashes(self.known.cx.me);
        // Who has no part claims no eras.
        if self.known.cx.out
            || self.known.cx.my_lane.is_some() && (!clashes || drawn >= LANES_PER_NODE_MAX)
        {
            return;
        }
        let taken: std::collections::BTreeSet<u32> =
            self.known.directory.lanes.values().flatten().map(|(_, lane)| *lane).collect();
        let mut draw = self.known.config.seed;
        let mut lane = 0;
        // One of many lanes is free at the first draw; whoever entered them all cannot keep others
        // drawing for ever.
        for _ in 0..DRAWS_MAX {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9_7f4a_7c15);
            lane = u32::try_from(draw >> 40).unwrap_or_default() % LANES;
            if !taken.contains(&lane) {
                break;
            }
        }
        self.known.config.seed = draw;
        let body = Body::NodeAdmitted(NodeAdmitted { lane, name: self.known.config.name.clone() });
        let directory = RoomId::directory(self.known.cx.mesh);
        if let Some(room) = self.known.rooms.get_mut(&directory)
            && room.append(&mut self.known.cx, &body).is_some()
        {
            // Known at once: the clash test must not see the old one again before the turn ends.
            self.fold_facts();
        }
    }

    /// This node was not stopped cleanly and hears nobody: what it sequenced, somebody else may
    /// sequence by now. It opens eras of its own where numbers are needed (rule 5).
    pub(super) fn close_own_eras(&mut self) {
        for room in self.known.rooms.values_mut() {
            if !room.record.local && room.numbering.sequencer() == room.mine {
                let current = room.numbering.current();
                room.edit_record().floor = Some(current);
                self.known.cx.active.insert(room.id);
            }
        }
    }
}

/// Lanes tried before any is taken.
const DRAWS_MAX: usize = 64;

fn new_node(config: &Config) -> NodeRecord {
    NodeRecord {
        mesh: config.mesh,
        boot: 0,
        clean: true,
        had_peer: false,
        lobby_floor: Number::ZERO,
        ephemeral_claims: Vec::new(),
        roster: None,
        private_of: None,
        parted: None,
    }
}
