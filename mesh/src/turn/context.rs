//! The surroundings of a room during a turn: the time, the node itself, lanes, other nodes, and the
//! turn under construction.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::config::Config,
    api::{
        batch::{Change, NodeRecord},
        boundary::{Alarm, Effect},
        command::{CallId, Outcome, Refused},
        event::RoomEvent,
        status::Faults,
    },
    directory::removals::Removals,
    limits::BLAMED_MAX,
    name::{
        group::Group,
        id::{AgentId, MeshId, NodeId, RoomId},
        number::{Era, Number},
        time::{Now, in_ms},
    },
    presence::followers::Followers,
    turn::{
        happened::{Events, Happened, Step},
        noise::Noise,
    },
    wire::{
        entry::{Facts, Stored},
        message::Message,
        run::{Run, Verified},
        seal::Seal,
    },
};

/// Bytes that all rooms together hold in memory; each kind has its limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Bodies of entries that wait for their delivery.
    pub(crate) warm: usize,
    /// Pending runs.
    pub(crate) pending: usize,
    /// Contents of ephemeral rooms.
    pub(crate) ephemeral: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) now: Now,
    pub(crate) me: NodeId,
    pub(crate) mesh: MeshId,
    /// Where this node's own keys and private rooms are listed.
    pub(crate) private_directory: RoomId,
    pub(crate) boot: u64,
    /// The numbers of an era that may be used: less than its capacity only in simulations.
    pub(crate) era_capacity: Option<u64>,
    /// Younger entries are never taken without their bodies. Milliseconds.
    pub(crate) retention_min_ms: u64,
    /// Every lane that a node entered in the directory.
    pub(crate) lanes: BTreeMap<NodeId, BTreeSet<u32>>,
    /// The newest of this node's own.
    pub(crate) my_lane: Option<u32>,
    /// Nodes that keep the directory and no other room, as it says; this one, if it is such.
    pub(crate) relays: BTreeSet<NodeId>,
    /// Connected peers.
    pub(crate) up: BTreeSet<NodeId>,
    /// Authors from whom nothing more is accepted.
    pub(crate) forked: BTreeSet<NodeId>,
    /// The same, in private rooms of these groups alone: nodes without their secret cannot know of it.
    pub(crate) forked_for: BTreeMap<Group, BTreeSet<NodeId>>,
    /// Nodes that have no part any more, and how far their logs count.
    pub(crate) parted: Removals,
    /// This node itself has none: it writes nothing more.
    pub(crate) out: bool,
    /// The nodes that follow each group.
    pub(crate) followers: Followers,
    /// Agents that have an inbox here: they are told of mentions in rooms, seated or not.
    pub(crate) addressees: BTreeSet<AgentId>,
    pub(crate) memory: Memory,
    pub(crate) faults: Faults,
    /// The same by author: at most [`BLAMED_MAX`].
    pub(crate) blamed: BTreeMap<NodeId, Faults>,
    pub(crate) noise: Noise,

    pub(crate) batch: Vec<Change>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) events: Events,
    /// Of directories: numbers from which on none of their eras counts, that did until now.
    pub(crate) lost: Vec<(RoomId, Number)>,
    /// Rooms in which something may have become possible or due.
    pub(crate) to_advance: BTreeSet<RoomId>,
}

impl Context {
    /// Of a node that has no engine, alone in a mesh.
    #[cfg(test)]
    pub(crate) fn alone(me: NodeId) -> Context {
        let config = Config::new(crate::name::id::MeshId([1; 16]), me);
        let now = Now { mono: std::time::Duration::ZERO, wall_ms: 1_000, wall_us: 1_000_000 };
        let node = NodeRecord { boot: 1, ..NodeRecord::new(config.mesh) };
        let mut cx = Context::new(&config, me, &node, now);
        cx.lanes.insert(me, [1].into());
        cx.my_lane = Some(1);
        cx
    }

    pub(crate) fn new(config: &Config, me: NodeId, node: &NodeRecord, now: Now) -> Context {
        let private_of = node.private_of.unwrap_or(me);
        Context {
            now,
            me,
            mesh: config.mesh,
            private_directory: RoomId::private_directory(config.mesh, private_of),
            boot: node.boot,
            era_capacity: config.era_capacity,
            retention_min_ms: in_ms(config.retention_min),
            lanes: BTreeMap::new(),
            my_lane: None,
            relays: config.relay.then_some(me).into_iter().collect(),
            up: BTreeSet::new(),
            forked: BTreeSet::new(),
            forked_for: BTreeMap::new(),
            parted: Removals::default(),
            out: false,
            followers: Followers::new(config.mesh, me),
            addressees: BTreeSet::new(),
            memory: Memory::default(),
            faults: Faults::default(),
            blamed: BTreeMap::new(),
            noise: Noise::default(),
            batch: Vec::new(),
            effects: Vec::new(),
            events: Events::default(),
            lost: Vec::new(),
            to_advance: BTreeSet::new(),
        }
    }

    /// Whether this node keeps the directory of the mesh and no other room.
    pub(crate) fn is_relay(&self) -> bool {
        self.relays.contains(&self.me)
    }

    /// Reports an event: the engine acts on it before the turn ends.
    pub(crate) fn happens(&mut self, happened: Happened) {
        self.events.push(happened);
    }

    pub(crate) fn take_events(&mut self, step: Step) -> Vec<Happened> {
        self.events.take(step)
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.batch.push(change);
    }

    pub(crate) fn send(&mut self, to: NodeId, message: Message) {
        self.effects.push(Effect::Send { to, message });
    }

    pub(crate) fn broadcast(&mut self, room: Option<RoomId>, message: Message) {
        debug_assert!(message.may_be_gossiped(), "nobody would take it: {message:?}");
        self.effects.push(Effect::Broadcast { room, message });
    }

    pub(crate) fn reply(&mut self, call: CallId, result: Result<Outcome, Refused>) {
        self.effects.push(Effect::Reply { call, result });
    }

    pub(crate) fn notify(&mut self, room: RoomId, event: RoomEvent) {
        self.effects.push(Effect::Notify { room, event });
    }

    pub(crate) fn alarm(&mut self, alarm: Alarm) {
        self.effects.push(Effect::Alarm(alarm));
    }

    /// Counts something against its author: it is signed, so nobody else can have made it up.
    pub(crate) fn blame(&mut self, author: NodeId, count: fn(&mut Faults) -> &mut u64) {
        *count(&mut self.faults) += 1;
        if self.blamed.len() >= BLAMED_MAX && !self.blamed.contains_key(&author) {
            // Authors can be made up: those that did most are shown.
            let least =
                self.blamed.iter().min_by_key(|(_, faults)| faults.total()).map(|(node, _)| *node);
            least.and_then(|node| self.blamed.remove(&node));
        }
        *count(self.blamed.entry(author).or_default()) += 1;
        let known = Some(author).filter(|node| self.lanes.contains_key(node));
        if author != self.me && self.noise.add(known, self.now.mono) {
            self.effects.push(Effect::Noisy(known));
        }
    }

    /// The lane this node claims eras in, once it has one.
    pub(crate) fn lane(&self) -> Option<u32> {
        self.my_lane
    }

    /// Authors from whom nothing more is accepted in a room with this seal. A room's folds have them
    /// from here: when it is made, and whenever one more is shut out of it.
    pub(crate) fn forked_in(&self, seal: Option<&Seal>) -> impl Iterator<Item = NodeId> + '_ {
        let here = seal.and_then(|seal| self.forked_for.get(&seal.group));
        self.forked.iter().chain(here.into_iter().flatten()).copied()
    }

    /// Authors of whom nothing counts in the elections of such a room: others may know more of their
    /// entries, or less.
    pub(crate) fn unheard_in(&self, seal: Option<&Seal>) -> BTreeSet<NodeId> {
        self.forked_in(seal).chain(self.parted.nodes()).collect()
    }

    /// How many numbers of `era` may be given.
    pub(crate) fn capacity(&self, era: Era) -> u64 {
        self.era_capacity.map_or(era.capacity(), |less| less.min(era.capacity()))
    }
}

/// An entry as the store keeps it, before its run's ends are known.
pub(crate) fn stored(facts: Facts, body: &[u8]) -> Stored {
    Stored { facts, body: body.to_vec().into(), backlink: None, seal: None, gone: None }
}

/// The form in which a verified run is sent.
pub(crate) fn sent(run: &Verified) -> Run {
    run.run().clone()
}
