//! Lists and reports, for clients and operators.

use super::{elections, known::Known, membership, turn_token};
use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::{
        command::{AgentView, Attendee, Caller, Outcome, Reader, Refused, RoomInfo, RoomView},
        status::{NodeStatus, RecordStatus, RoomStatus, Status},
    },
    name::id::{AgentId, KeyPrint, NodeId, RoomId},
};

pub(super) fn list_rooms(
    known: &Known,
    by: &Reader,
    parent: Option<RoomId>,
) -> Result<Outcome, Refused> {
    if let Some(parent) = parent {
        known.may_read(by, parent)?;
    }
    let mut rooms: Vec<RoomView> = known
        .visible(by)
        .filter(|view| parent.is_none() || view.parent == parent)
        .map(|view| known.for_key(view, by.key))
        .collect();
    rooms.sort_by(|a, b| (&a.name, a.room).cmp(&(&b.name, b.room)));
    Ok(Outcome::Rooms(rooms))
}

pub(super) fn list_agents(
    known: &Known,
    by: &Reader,
    room: Option<RoomId>,
) -> Result<Outcome, Refused> {
    let Some(room) = room else {
        let all = known.rosters.agents().filter(|agent| {
            known.rosters.record(agent).is_some_and(|(_, record)| record.key == by.key)
        });
        let mut agents: Vec<AgentView> = all.filter_map(|agent| known.agent(agent)).collect();
        agents.sort_by(|a, b| (a.connected_ms, &a.agent).cmp(&(b.connected_ms, &b.agent)));
        return Ok(Outcome::Agents(agents));
    };
    known.may_read(by, room)?;
    Ok(Outcome::Agents(known.members_of(room)))
}

/// The rooms in which an agent has a seat.
pub(super) fn list_seats(known: &Known, caller: &Caller) -> Result<Outcome, Refused> {
    let record = known.caller(caller)?;
    Ok(Outcome::Seats(record.rooms.keys().copied().collect()))
}

/// The names of nodes, as they gave them to themselves.
pub(super) fn name_nodes(known: &Known, nodes: &[NodeId]) -> Outcome {
    let names = nodes.iter().map(|node| known.directory.nodes.names.get(node).cloned());
    Outcome::NodeNames(names.collect())
}

/// All agents of this node, for its operator.
pub(super) fn attendance(known: &Known) -> Vec<Attendee> {
    let name = |room: &RoomId| {
        known.told.get(room).map_or_else(|| room.to_uuid(), |view| view.name.to_string())
    };
    let all = known.rosters.own_agents().filter_map(|(agent, record)| {
        let rooms = record.rooms.keys().map(name).collect();
        Some(Attendee { view: known.agent(agent)?, rooms })
    });
    let mut all: Vec<Attendee> = all.collect();
    all.sort_by(|a, b| {
        (a.view.connected_ms, &a.view.agent).cmp(&(b.view.connected_ms, &b.view.agent))
    });
    all
}

/// How many agents are connected to each node: those that linger are not.
fn connected(known: &Known) -> BTreeMap<NodeId, usize> {
    let mut counts = BTreeMap::new();
    for agent in known.rosters.agents() {
        if let Some((node, record)) = known.rosters.record(agent)
            && !record.lingers
        {
            *counts.entry(node).or_default() += 1;
        }
    }
    counts
}

/// An agent that is in a roster: attached to a node, or gone a moment ago.
pub(super) fn find_agent(known: &Known, agent: &AgentId) -> Outcome {
    Outcome::Agents(known.agent(agent).into_iter().collect())
}

/// Agents that offer something, the first of them by id: of any key, as everybody who is in a room with them sees them.
pub(super) fn list_offering(known: &Known, capability: Option<&str>, limit: usize) -> Outcome {
    let offers = |agent: &&AgentId| {
        known.rosters.record(agent).is_some_and(|(_, record)| {
            let offered = &record.capabilities;
            capability.map_or(!offered.is_empty(), |wanted| offered.iter().any(|own| own == wanted))
        })
    };
    let mut agents: Vec<&AgentId> = known.rosters.agents().filter(offers).collect();
    agents.sort_unstable();
    agents.truncate(limit);
    Outcome::Agents(agents.into_iter().filter_map(|agent| known.agent(agent)).collect())
}

/// Agents of any key, the first by id.
pub(super) fn list_attached(known: &Known, limit: usize) -> Outcome {
    let mut agents: Vec<&AgentId> = known.rosters.agents().collect();
    agents.sort_unstable();
    agents.truncate(limit);
    Outcome::Agents(agents.into_iter().filter_map(|agent| known.agent(agent)).collect())
}

/// The direct rooms of all agents of a key.
pub(super) fn list_direct(known: &Known, key: KeyPrint) -> Outcome {
    let is_of_key = |view: &&RoomView| {
        view.sides.as_ref().is_some_and(|sides| sides.iter().any(|(_, of)| of == key))
    };
    let ids = known.told.values().filter(is_of_key).map(|view| view.room);
    let views = ids.filter_map(|id| known.view(id).or_else(|| known.told.get(&id).cloned()));
    let mut rooms: Vec<RoomView> = views.map(|view| known.for_key(view, key)).collect();
    rooms.sort_by_key(|view| view.room);
    Outcome::Rooms(rooms)
}

pub(super) fn room_info(known: &Known, by: &Reader, room: RoomId) -> Result<Outcome, Refused> {
    known.may_read(by, room)?;
    let view = known.view(room).or_else(|| known.told.get(&room).cloned());
    let view = known.for_key(view.ok_or(Refused::NoRoom)?, by.key);
    let sub_rooms = known
        .visible(by)
        .filter(|view| view.parent == Some(room))
        .map(|view| known.for_key(view, by.key))
        .collect();
    let turn = turn_token::holder(known, room);
    let agents = known.members_of(room);
    let leader = elections::leader(known, room);
    let election = elections::running(known, room);
    Ok(Outcome::RoomInfo(RoomInfo { room: view, agents, sub_rooms, turn, leader, election }))
}

/// The state of this node, for its operator.
pub(super) fn status(known: &Known, records: RecordStatus) -> Status {
    let now = known.cx.now.mono;
    let connected = connected(known);
    let heard = known.live.heard().map(|(node, _)| node).chain(known.live.others.iter().copied());
    let mut nodes: Vec<_> = heard.collect();
    nodes.sort_unstable();
    nodes.dedup();
    let nodes = nodes.into_iter().filter(|node| *node != known.cx.me).map(|node| {
        let heard = known.live.last(node).map(|heard| now.saturating_sub(heard.sign()).as_millis());
        NodeStatus {
            node,
            name: known.directory.nodes.names.get(&node).cloned(),
            relay: known.cx.relays.contains(&node),
            connected: known.live.up.contains(&node),
            alive: known.live.is_alive(now, node),
            heard_ms_ago: heard.and_then(|age| u64::try_from(age).ok()),
            agents: connected.get(&node).copied().unwrap_or_default(),
        }
    });
    Status {
        node: known.cx.me,
        mesh: known.cx.mesh,
        relay: known.cx.is_relay(),
        nodes: nodes.collect(),
        rooms: known.rooms.values().filter_map(|room| room_status(known, room)).collect(),
        agents: connected.get(&known.cx.me).copied().unwrap_or_default(),
        agents_mesh: connected.values().sum(),
        faults: known.cx.faults,
        blamed: known.cx.blamed.iter().map(|(node, faults)| (*node, *faults)).collect(),
        forked: forked(known),
        parted: membership::farewell(known),
        lanes: known.directory.nodes.lanes().collect(),
        records,
    }
}

/// A room that lacks what a peer has is one in which something waits.
pub(super) fn behind(known: &Known) -> u64 {
    let rooms = known.busy.iter().filter_map(|id| known.rooms.get(id));
    let listed = rooms.filter(|room| known.told.contains_key(&room.replica.id));
    listed.map(|room| room.replica.entries_behind(&known.cx)).fold(0, u64::saturating_add)
}

/// Authors that forked a log, in any room.
fn forked(known: &Known) -> Vec<NodeId> {
    let all = known.cx.forked.iter().chain(known.cx.forked_for.values().flatten());
    let mut all: BTreeSet<NodeId> = all.copied().collect();
    for room in known.rooms.values() {
        let forked = room.replica.logs.iter().filter(|(_, log)| log.fork.is_some());
        let authors = forked.map(|(_, log)| log.id.author);
        all.extend(authors.filter(|node| room.replica.has_forked_in_memory(*node)));
    }
    all.into_iter().collect()
}

fn room_status(known: &Known, room: &crate::room::Room) -> Option<RoomStatus> {
    let view = known.told.get(&room.replica.id)?;
    let nobody = known.live.keepers().next().is_none() || room.replica.record.local;
    let only = known.cx.followers.have(room.replica.record.seal.as_ref());
    let alone = nobody || only.is_some_and(|only| only.len() <= 1);
    Some(RoomStatus {
        room: room.replica.id,
        name: view.name.to_string(),
        public: view.public,
        era: room.order.numbering.current(),
        sequencer: room.order.numbering.sequencer().author,
        tip: room.tip(),
        undelivered: room.order.numbering.undelivered.len(),
        behind: room.replica.entries_behind(&known.cx),
        sent: if alone {
            0
        } else {
            room.replica.logs.head_of(room.replica.mine).saturating_sub(room.replica.unsent())
        },
        unsent: if alone { 0 } else { room.replica.unsent() },
        holes: room.order.holes,
    })
}
