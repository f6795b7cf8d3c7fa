//! Starting: from what the store has, or from nothing.

use super::{
    Config, Engine,
    private::Reach,
    retention::{Pruning, in_ms},
};
use crate::{
    api::{
        batch::{NodeRecord, RoomRecord, Summary},
        status::Faults,
    },
    directory::Directory,
    engine::context::{Context, Fact},
    limits::{BUCKETS, LANES_PER_NODE_MAX, PROOFS_MAX, TICK},
    name::{
        id::{LogId, NodeId, RoomId},
        identity::Identity,
        number::{LANES, Number},
        time::Now,
    },
    order::{
        liveness::{Liveness, incarnation},
        pulse::{Pulse, Spread},
    },
    presence::{followers::Followers, rosters::Rosters},
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
        let me = identity.node_id();
        let mut node = stored.node.clone().unwrap_or_else(|| new_node(&config));
        let clean = node.clean;
        // Counts upwards whatever the wall clock does, and is above that of a lost past if it can.
        node.boot = (node.boot + 1).max(now.wall_ms / 1_000);
        node.clean = false;
        let boot = node.boot;
        let mut engine = Engine {
            identity,
            cx: context(&config, (me, node.private_of), boot, now),
            live: Liveness::new(me, config.takeover_after, now.mono, !clean),
            rosters: Rosters::new(me, config.mesh, boot),
            directory: Directory::new(Some(config.founder)),
            rooms: Default::default(),
            ephemeral: Default::default(),
            busy: Default::default(),
            unshared: Default::default(),
            node,
            node_dirty: true,
            pulse: Pulse { boot, ..Pulse::default() },
            spread: Spread::default(),
            waiters: Default::default(),
            unsettled: Default::default(),
            led: Default::default(),
            tasks: Default::default(),
            claiming: Default::default(),
            roams: Default::default(),
            registrations: Default::default(),
            own_keys: Default::default(),
            next_registration: 0,
            turns: Default::default(),
            crowds: Default::default(),
            told: Default::default(),
            votes: Default::default(),
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
            started: now.mono,
            pruning: Pruning::new(now, config.retention_min),
            roster_kept: super::agents::RosterKept::none(now.mono),
            unknown: Default::default(),
            private: Default::default(),
            barriers: Default::default(),
            incarnations: 0,
            typing_nonce: 0,
            stopping: None,
            next_tick: now.mono + TICK,
            last_called: now.mono,
            config,
        };
        engine.restore(stored);
        engine.redraw_lane();
        engine.shut_out_all_parted();
        engine.ask_for_secret_without_the_expelled();
        engine
    }

    /// Who is shut out, and what shows others why.
    fn restore_forks(&mut self, stored: &Summary) {
        self.cx.forked = stored.forked.iter().copied().collect();
        let proofs = stored.proofs.iter().take(PROOFS_MAX);
        self.proofs.extend(proofs.map(|(it, run)| Message::Fork(*it, Box::new(run.clone()))));
    }

    fn restore(&mut self, stored: Summary) {
        self.restore_forks(&stored);
        self.restore_parted(&stored);
        self.restore_rooms(stored.rooms);
        self.restore_following();
        self.refold_acts(stored.acts);
        self.restore_votes(stored.notes);
        self.note_tasks();
        self.note_leaders();
        self.fold_lost();
        self.restore_directory(stored.directory);
        self.ensure_permanent_rooms();
        self.restore_agents();
        self.tell_of_all_rooms();
    }

    fn restore_rooms(&mut self, rooms: Vec<crate::api::batch::StoredRoom>) {
        for mut stored in rooms {
            let (id, dedups) = (stored.room, std::mem::take(&mut stored.dedups));
            let mine = LogId { author: self.cx.me, incarnation: 0 };
            let mut room = Room::restore(&mut self.cx, stored, mine);
            for author in self.cx.forked.clone() {
                room.shut_out(&mut self.cx, author);
            }
            for node in self.cx.parted.nodes().collect::<Vec<_>>() {
                room.remove(&mut self.cx, node);
            }
            for (dedup, at, wall_ms, number) in dedups {
                room.order.sent.insert(dedup, at, wall_ms);
                if let Some(number) = number {
                    room.order.sent.delivered(at, number);
                }
            }
            if room.replica.record.local {
                self.rosters.local_rooms.insert(id);
            }
            if room.replica.record.ephemeral {
                self.ephemeral.insert(id);
            }
            self.rooms.insert(id, room);
        }
    }

    fn restore_directory(
        &mut self,
        entries: Vec<(RoomId, crate::name::id::LocalRef, crate::wire::entry::Stored, Vec<Number>)>,
    ) {
        for (room, at, entry, numbers) in entries {
            let Some(known) = self.rooms.get(&room) else { continue };
            let log = known.replica.logs.get(at.log);
            if log.fork.is_some_and(|fork| at.seq >= fork) {
                continue;
            }
            let body = known.replica.body_of(at, &entry);
            let fact = Fact { room, at, log: log.id, facts: entry.facts, body };
            self.learn(fact, &numbers);
        }
    }

    /// Lobby and directory are there from the first start on, and so is the private directory.
    fn ensure_permanent_rooms(&mut self) {
        let (mesh, founder) = (self.cx.mesh, self.config.founder);
        let private_of = self.node.private_of.unwrap_or(self.cx.me);
        let rooms = [
            (RoomId::directory(mesh), founder, Reach::Mesh),
            (RoomId::lobby(mesh), founder, Reach::Mesh),
            (self.cx.private_directory, private_of, Reach::Node),
        ];
        for (id, home, reach) in rooms {
            let home = LogId { author: home, incarnation: 0 };
            self.ensure_room(id, home, reach);
        }
    }

    /// A permanent room's state, made if it is not there.
    pub(super) fn ensure_room(&mut self, id: RoomId, home: LogId, reach: Reach) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let local = reach == Reach::Node;
        let seal = self.seal_for(id, reach);
        let imported = self.directory.room(id).is_some_and(|it| it.created.imported.is_some());
        let record = RoomRecord { local, seal, imported, ..new_record(self.cx.mesh, home) };
        let mine = LogId { author: self.cx.me, incarnation: 0 };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        if let Reach::Followers(owner) = reach {
            self.rosters.set_sealed(id, owner);
        }
        if local {
            self.rosters.local_rooms.insert(id);
            self.unknown.remove(&id);
        } else {
            self.ask_who_spoke_of(id);
        }
    }

    /// An ephemeral room's state, made if it is not there. `home` is this node's to write only in
    /// the moment in which it creates the room: one that was forgotten and comes back gets a new log.
    pub(super) fn ensure_ephemeral_room(
        &mut self,
        id: RoomId,
        (home, reach): (LogId, Reach),
        created_now: bool,
    ) {
        if self.rooms.contains_key(&id) {
            return;
        }
        let claims = self.node.ephemeral_claims.iter();
        let floor = claims.filter(|(room, _)| *room == id).map(|(_, era)| *era).max();
        let (local, seal) = (reach == Reach::Node, self.seal_for(id, reach));
        let new = new_record(self.cx.mesh, home);
        let record = RoomRecord { ephemeral: true, floor, local, seal, ..new };
        let mine = if created_now { home } else { self.next_ephemeral_log() };
        let room = Room::new(&mut self.cx, id, record, mine);
        self.rooms.insert(id, room);
        self.ephemeral.insert(id);
        match reach {
            Reach::Mesh => {}
            Reach::Node => drop(self.rosters.local_rooms.insert(id)),
            Reach::Followers(owner) => self.rosters.set_sealed(id, owner),
        }
        self.ask_who_spoke_of(id);
    }

    /// A log of this node's own that nobody has ever seen anything of.
    pub(super) fn next_ephemeral_log(&mut self) -> LogId {
        self.incarnations += 1;
        let incarnation = incarnation(self.cx.boot, self.incarnations);
        LogId { author: self.cx.me, incarnation }
    }

    /// Draws this node's lane: at admission, and again if an earlier entry has the same.
    pub(super) fn redraw_lane(&mut self) {
        let drawn = self.directory.nodes.lanes.get(&self.cx.me).map_or(0, Vec::len);
        let clashes = self.directory.nodes.lane_clashes(self.cx.me);
        // Who has no part claims no eras.
        if self.cx.out || self.cx.my_lane.is_some() && (!clashes || drawn >= LANES_PER_NODE_MAX) {
            return;
        }
        let taken: std::collections::BTreeSet<u32> =
            self.directory.nodes.lanes.values().flatten().map(|(_, lane)| *lane).collect();
        let mut draw = self.config.seed;
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
        self.config.seed = draw;
        let body = Body::NodeAdmitted(NodeAdmitted { lane, name: self.config.name.clone() });
        let directory = RoomId::directory(self.cx.mesh);
        if let Some(room) = self.rooms.get_mut(&directory)
            && room.append(&mut self.cx, &body).is_some()
        {
            // Known at once: the clash test must not see the old one again before the turn ends.
            self.fold_facts();
        }
    }

    /// This node was not stopped cleanly and hears nobody: what it sequenced, somebody else may
    /// sequence by now. It opens eras of its own where numbers are needed (rule 5).
    pub(super) fn close_own_eras(&mut self) {
        for room in self.rooms.values_mut() {
            if !room.replica.record.local && room.order.numbering.sequencer() == room.replica.mine {
                let current = room.order.numbering.current();
                room.replica.edit_record().floor = Some(current);
                self.cx.active.insert(room.replica.id);
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

fn new_record(mesh: crate::name::id::MeshId, home: LogId) -> RoomRecord {
    RoomRecord {
        mesh,
        home,
        tip: Number::ZERO,
        delivered: 0,
        last_activity_ms: None,
        spoke: None,
        floor: None,
        ephemeral: false,
        local: false,
        seal: None,
        imported: false,
    }
}

fn context(
    config: &Config,
    (me, private_of): (NodeId, Option<NodeId>),
    boot: u64,
    now: Now,
) -> Context {
    Context {
        now,
        me,
        mesh: config.mesh,
        private_directory: RoomId::private_directory(config.mesh, private_of.unwrap_or(me)),
        boot,
        era_capacity: config.era_capacity,
        retention_min_ms: in_ms(config.retention_min),
        lanes: Default::default(),
        my_lane: None,
        up: Default::default(),
        forked: Default::default(),
        forked_for: Default::default(),
        parted: Default::default(),
        out: false,
        followers: Followers::new(config.mesh, me),
        warm_bytes: 0,
        pending_bytes: 0,
        ephemeral_bytes: 0,
        faults: Faults::default(),
        blamed: Default::default(),
        noise: Default::default(),
        batch: Vec::new(),
        effects: Vec::new(),
        facts: Vec::new(),
        lost: Vec::new(),
        renumbered: Vec::new(),
        arrived: Vec::new(),
        proofs: Vec::new(),
        ephemeral_claims: Vec::new(),
        handed_to_me: Vec::new(),
        active: Default::default(),
    }
}

#[cfg(test)]
impl Context {
    /// Of a node that has no engine, alone in a mesh.
    pub(crate) fn alone(me: NodeId) -> Context {
        let config = Config::new(crate::name::id::MeshId([1; 16]), me);
        let now = Now { mono: std::time::Duration::ZERO, wall_ms: 1_000, wall_us: 1_000_000 };
        let mut cx = context(&config, (me, None), 1, now);
        cx.lanes.insert(me, [1].into());
        cx.my_lane = Some(1);
        cx
    }
}
