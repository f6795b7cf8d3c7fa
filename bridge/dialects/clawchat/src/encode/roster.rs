//! Members of rooms, and their doings, as events.

use mesh::{
    api::{command::AgentView, event::TurnReason as CoreReason},
    name::id::AgentId,
};
use protocol::event::{
    AgentJoined, AgentName, Event, PresenceUpdate, TurnChanged, TurnReason, TypingIndicator,
};

use super::{agent_ids, progress, status};

pub(crate) fn joined(room_id: String, agent: &AgentId, name: &str, reconnected: bool) -> Event {
    let agent = AgentName { agent_id: agent.to_string(), name: String::from(name) };
    Event::AgentJoined(AgentJoined { room_id, agent, reconnected })
}

pub(crate) fn typing(room_id: String, agent: &AgentId, name: &str, typing: bool) -> Event {
    let (agent_id, agent_name) = (agent.to_string(), String::from(name));
    Event::TypingIndicator(TypingIndicator { room_id, agent_id, agent_name, typing })
}

pub(crate) fn turn(
    room_id: String,
    holder: Option<&AgentId>,
    order: &[AgentId],
    reason: CoreReason,
) -> Event {
    Event::TurnChanged(TurnChanged {
        room_id,
        current_turn_holder: holder.map(|agent| agent.to_string()),
        turn_order: agent_ids(order),
        reason: match reason {
            CoreReason::Joined => TurnReason::Joined,
            CoreReason::Left => TurnReason::Left,
            CoreReason::Disconnected => TurnReason::Disconnected,
            CoreReason::MessageSent => TurnReason::MessageSent,
        },
    })
}

pub(crate) fn presence(view: &AgentView) -> Event {
    Event::PresenceUpdate(PresenceUpdate {
        agent_id: view.agent.to_string(),
        agent_name: view.name.to_string(),
        status: status(view.presence.status),
        status_detail: view.presence.detail.clone(),
        progress: progress(&view.presence),
    })
}
