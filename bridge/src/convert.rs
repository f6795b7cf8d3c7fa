//! From what the core says to what the wire says: the one place where the two meet.

use jiff::Timestamp;
use mesh::{
    command::{AgentView, Presence, RoomView, Status as CoreStatus},
    entry::{Facts, Said},
    event::{Delivered, TurnReason as CoreReason},
    id::{KeyPrint, MessageId, RoomId},
    number::Number,
};
use protocol::{
    event::{Event, TurnReason},
    object::{Agent, MeshNote, Message, Room, Visibility},
    value::{Metadata, Progress, Status},
};

use crate::backend::Row;

/// What clients call the lobby.
const LOBBY: &str = "lobby";
/// [`Facts::kind`] of [`mesh::entry::Body::Chat`].
const CHAT: u8 = 1;
/// [`Facts::kind`] of [`mesh::entry::Body::Thinking`].
const THINKING: u8 = 2;
/// What tells a thinking pulse in history (spec §3).
const THINKING_METADATA: &str = r#"{"type":"thinking"}"#;

/// A room's id as clients know it.
pub(crate) fn room_text(lobby: RoomId, room: RoomId) -> String {
    if room == lobby { String::from(LOBBY) } else { room.to_uuid() }
}

/// And back; `None` if it is no id of a room.
pub(crate) fn room_id(lobby: RoomId, text: &str) -> Option<RoomId> {
    if text == LOBBY { Some(lobby) } else { RoomId::from_uuid(text) }
}

/// RFC 3339 in UTC, to the millisecond. Times that no calendar has (a peer may write any) become the last one.
pub(crate) fn timestamp(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// The first whole millisecond that is not before an RFC 3339 time.
pub(crate) fn unix_ms(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    let whole = time.as_nanosecond().div_euclid(1_000_000);
    let rest = time.as_nanosecond().rem_euclid(1_000_000);
    Some(u64::try_from(whole + i128::from(rest > 0)).unwrap_or(0))
}

/// A room, as a caller with `key` sees it.
pub(crate) fn room(lobby: RoomId, view: &RoomView, key: Option<KeyPrint>) -> Room {
    let owner = view.owner.filter(|owner| key == Some(*owner) && *owner != KeyPrint::OPEN);
    Room {
        room_id: room_text(lobby, view.room),
        name: view.name.to_string(),
        description: view.description.as_deref().map(String::from),
        parent_id: view.parent.map(|parent| room_text(lobby, parent)),
        ephemeral: view.ephemeral,
        created_at: timestamp(view.created_ms),
        created_by: view.created_by.as_deref().map(String::from),
        visibility: if view.public { Visibility::Public } else { Visibility::Private },
        owner_key: owner.map(|owner| owner.to_string()),
        last_activity: view.last_activity_ms.map(timestamp),
        member_count: Some(view.members as u64),
        encrypted: view.encrypted,
        mesh: None,
    }
}

pub(crate) fn agent(view: &AgentView) -> Agent {
    Agent {
        agent_id: view.agent.to_string(),
        name: view.name.to_string(),
        capabilities: view.capabilities.clone(),
        connected_at: timestamp(view.connected_ms),
        last_active: timestamp(view.last_active_ms),
        status: status(view.presence.status),
        status_detail: view.presence.detail.clone(),
        progress: progress(&view.presence),
        mesh: Some(MeshNote { node: Some(view.node.to_string()), ..MeshNote::default() }),
    }
}

pub(crate) fn status(status: CoreStatus) -> Status {
    match status {
        CoreStatus::Idle => Status::Idle,
        CoreStatus::Waiting => Status::Waiting,
        CoreStatus::Working => Status::Working,
        CoreStatus::Thinking => Status::Thinking,
    }
}

pub(crate) fn core_status(status: Status) -> CoreStatus {
    match status {
        Status::Idle => CoreStatus::Idle,
        Status::Waiting => CoreStatus::Waiting,
        Status::Working => CoreStatus::Working,
        Status::Thinking => CoreStatus::Thinking,
    }
}

pub(crate) fn progress(presence: &Presence) -> Option<Progress> {
    presence.progress.and_then(|percent| Progress::new(u64::from(percent)))
}

pub(crate) fn turn_reason(reason: CoreReason) -> TurnReason {
    match reason {
        CoreReason::Joined => TurnReason::Joined,
        CoreReason::Left => TurnReason::Left,
        CoreReason::Disconnected => TurnReason::Disconnected,
        CoreReason::MessageSent => TurnReason::MessageSent,
    }
}

/// A message as it is pushed.
pub(crate) fn message_event(facts: &Facts, message: Box<Message>) -> Event {
    if facts.kind == THINKING { Event::Thinking(message) } else { Event::MessageReceived(message) }
}

/// What a thinking pulse carries as its metadata.
pub(crate) fn thinking_metadata() -> Option<Metadata> {
    Metadata::parse(THINKING_METADATA).ok()
}

/// A delivered message and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) number: Number,
    pub(crate) canonical: Number,
    pub(crate) message: MessageId,
    pub(crate) facts: Facts,
    pub(crate) said: &'a Said,
}

impl<'a> Told<'a> {
    pub(crate) fn of_event(event: &Delivered, said: &'a Said) -> Told<'a> {
        Told {
            number: event.number,
            canonical: event.canonical.unwrap_or(event.number),
            message: event.message,
            facts: event.facts,
            said,
        }
    }

    /// `None` if the content is not there.
    pub(crate) fn of_row(row: &'a Row) -> Option<Told<'a>> {
        Some(Told {
            number: row.number,
            canonical: row.canonical,
            message: row.message,
            facts: row.facts,
            said: row.said.as_ref()?,
        })
    }

    /// `None` if it is of a kind that this version does not know.
    pub(crate) fn into_message(self, room_id: String) -> Option<Message> {
        let metadata = match self.facts.kind {
            CHAT => self.said.metadata.as_deref().and_then(|json| Metadata::parse(json).ok()),
            THINKING => thinking_metadata(),
            _ => return None,
        };
        Some(Message {
            message_id: self.message.to_uuid(),
            room_id,
            agent_id: self.said.agent.to_string(),
            agent_name: self.said.name.clone(),
            content: self.said.content.clone(),
            reply_to_message: self.said.reply_to.clone(),
            metadata,
            timestamp: timestamp(self.facts.wall_ms),
            seq: self.number.0,
            mesh: (self.canonical != self.number).then(|| MeshNote {
                canonical_seq: Some(self.canonical.0),
                late: Some(true),
                ..MeshNote::default()
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_and_come_back() {
        assert_eq!(timestamp(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert!(timestamp(u64::MAX).starts_with("9999-"));
        assert_eq!(unix_ms("2023-11-14T22:13:20.123Z"), Some(1_700_000_000_123));
        assert_eq!(unix_ms("2023-11-14T23:13:20.1230001+01:00"), Some(1_700_000_000_124));
        assert_eq!(unix_ms("1960-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ms("yesterday"), None);
    }

    #[test]
    fn the_lobby_has_a_name_of_its_own() {
        let lobby = RoomId([7; 16]);
        assert_eq!(room_text(lobby, lobby), "lobby");
        assert_eq!(room_id(lobby, "lobby"), Some(lobby));
        let other = RoomId([8; 16]);
        assert_eq!(room_id(lobby, &room_text(lobby, other)), Some(other));
        assert_eq!(room_id(lobby, "no-such-room"), None);
    }
}
