//! The form of roster changes that a node takes from another.

use crate::{
    limits::{
        AGENT_ID_BYTES_MAX, CAPABILITIES_MAX, DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX,
        ROOMS_PER_AGENT_MAX, SEALED_FACTS_BYTES_MAX,
    },
    name::id::{AgentId, MeshId, RoomId},
    presence::ephemeral::ephemeral_id,
    wire::{
        entry::RoomCreated,
        roster::{AgentRecord, EphemeralRoom, RoomFacts, RosterChange},
    },
};

/// Whether name and description are of a length that this node would give them.
pub(crate) fn facts_fit(facts: &RoomCreated) -> bool {
    facts.name.len() <= NAME_BYTES_MAX && fits_description(facts.description.as_ref())
}

pub(super) fn within_limits(mesh: MeshId, change: &RosterChange) -> bool {
    match change {
        RosterChange::Agent(agent, record) => is_id(agent) && record_fits(record),
        RosterChange::NoAgent(agent) => is_id(agent),
        RosterChange::Room(room, ephemeral) => room_fits(mesh, *room, ephemeral),
        RosterChange::NoRoom(_) | RosterChange::Follows(_) => true,
    }
}

fn is_id(agent: &AgentId) -> bool {
    (1..=AGENT_ID_BYTES_MAX).contains(&agent.len())
}

fn record_fits(record: &AgentRecord) -> bool {
    record.name.len() <= NAME_BYTES_MAX
        && record.capabilities.len() <= CAPABILITIES_MAX
        && record.capabilities.iter().all(|capability| capability.len() <= NAME_BYTES_MAX)
        && record.rooms.len() <= ROOMS_PER_AGENT_MAX
        && record.presence.progress.is_none_or(|percent| percent <= 100)
        && fits_description(record.presence.detail.as_ref())
}

fn room_fits(mesh: MeshId, room: RoomId, ephemeral: &EphemeralRoom) -> bool {
    let facts = match &ephemeral.facts {
        RoomFacts::Open(facts) => facts.room == room && facts_fit(facts),
        RoomFacts::Sealed { sealed, .. } => sealed.len() <= SEALED_FACTS_BYTES_MAX,
    };
    // The id follows from the log that is its home: nobody passes one room off as another.
    let id = ephemeral_id(mesh, ephemeral.home, ephemeral.facts.is_sealed());
    facts && ephemeral.home.incarnation != 0 && room == id
}

fn fits_description(text: Option<&String>) -> bool {
    text.is_none_or(|text| text.len() <= DESCRIPTION_BYTES_MAX)
}
