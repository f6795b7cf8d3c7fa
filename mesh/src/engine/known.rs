//! The state that every part of the engine reads: rooms, rosters, the directory, other nodes, and the
//! turn under construction.

mod access;
mod members;
mod recorded;
pub(super) mod rooms;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub(super) use access::NO_MEMORY;
pub(super) use members::OnRecord;
use recorded::Recorded;

use crate::{
    api::config::Config,
    api::{
        batch::NodeRecord,
        command::{Registration, RoomView},
    },
    directory::Directory,
    name::{
        group::Group,
        id::{AgentId, EntryRef, KeyPrint, MessageId, NodeId, RoomId},
        identity::Identity,
        time::Now,
    },
    order::liveness::Liveness,
    presence::rosters::Rosters,
    records::stopped::StoppedAgents,
    room::Room,
    turn::context::Context,
    wire::record::{RecordId, Space},
};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) identity: Identity,
    pub(super) config: Config,
    pub(super) cx: Context,
    pub(super) live: Liveness,
    pub(super) rosters: Rosters,
    pub(super) directory: Directory,
    pub(super) rooms: BTreeMap<RoomId, Room>,
    /// Those of them that are ephemeral: few, so that nothing has to look for them among all.
    pub(super) ephemeral: BTreeSet<RoomId>,
    /// Rooms in which something waits: looked at on every tick.
    pub(super) busy: BTreeSet<RoomId>,
    /// The node's own row, and whether it has changed in this turn.
    pub(super) node: NodeRecord,
    pub(super) node_changed: bool,
    /// Rooms that clients were told of, as they were told.
    pub(super) told: BTreeMap<RoomId, RoomView>,
    /// Records by which keys have closed rooms, by their places and names: whichever rooms those are.
    pub(super) closings: BTreeSet<(Space, RecordId, KeyPrint)>,
    /// Members of rooms that are on record.
    pub(super) on_record: OnRecord,
    /// Records that have changed in this turn.
    recorded: Recorded,
    /// Agents that keys say are stopped.
    pub(super) stopped: StoppedAgents,
    /// Agents of which is said that they are retired, or whose ids have another owner, until their connections are looked after.
    pub(super) doubted: BTreeSet<AgentId>,
    /// The registration that counts of each agent here.
    pub(super) registrations: BTreeMap<AgentId, Registration>,
    /// Agents of this node that write without seats, as they were registered when they said so.
    pub(super) outside: BTreeMap<AgentId, Registration>,
    /// Keys that the driver said are the node's own: no limits, and no revocation, of minted ones.
    pub(super) own_keys: BTreeSet<KeyPrint>,
    /// Keys that have another successor than before, until that is looked after.
    pub(super) replaced: BTreeSet<KeyPrint>,
    /// The votes and tasks of all rooms.
    pub(super) index: Index,
    pub(super) unread: Unread,
    /// Rooms that peers spoke of before they were known here, and the peer that did last.
    pub(super) unknown: BTreeMap<RoomId, NodeId>,
    /// Logs of ephemeral rooms that this node began since its start.
    incarnations: u64,
    pub(super) started: Duration,
    /// The node is about to stop: it begins nothing more.
    pub(super) stopping: bool,
}

/// Where the entry of an id is.
pub(super) type Places = BTreeMap<MessageId, (RoomId, EntryRef)>;

/// The places of votes and of tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub(super) votes: Places,
    pub(super) tasks: Places,
}

/// Rooms of groups that are followed here since a short while ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    /// The groups, and when.
    pub(super) new: BTreeMap<Group, Duration>,
    /// Listed rooms whose history is not here yet.
    pub(super) rooms: BTreeMap<RoomId, Group>,
}

impl Known {
    /// Nothing but the node itself: `node` is its row, as of this start.
    pub(super) fn new(identity: Identity, config: Config, node: NodeRecord, now: Now) -> Known {
        let me = identity.node_id();
        let unclean = !node.clean;
        Known {
            cx: Context::new(&config, me, &node, now),
            live: Liveness::new(me, config.takeover_after, now.mono, unclean)
                .linked_up_to(config.linked_max),
            rosters: Rosters::new(me, config.mesh, node.boot),
            directory: Directory::new(Some(config.founder)),
            identity,
            config,
            rooms: BTreeMap::new(),
            ephemeral: BTreeSet::new(),
            busy: BTreeSet::new(),
            node: NodeRecord { clean: false, ..node },
            node_changed: true,
            told: BTreeMap::new(),
            closings: BTreeSet::new(),
            stopped: StoppedAgents::default(),
            on_record: OnRecord::default(),
            recorded: Recorded::default(),
            doubted: BTreeSet::new(),
            registrations: BTreeMap::new(),
            outside: BTreeMap::new(),
            own_keys: BTreeSet::new(),
            replaced: BTreeSet::new(),
            index: Index::default(),
            unread: Unread::default(),
            unknown: BTreeMap::new(),
            incarnations: 0,
            started: now.mono,
            stopping: false,
        }
    }

    /// Entries that wait may go on: looked at in this turn.
    pub(super) fn stir_busy(&mut self) {
        self.cx.to_advance.extend(self.busy.iter().copied());
    }

    /// The node's own row: it is written at the end of the turn.
    pub(super) fn change_node(&mut self) -> &mut NodeRecord {
        self.node_changed = true;
        &mut self.node
    }
}
