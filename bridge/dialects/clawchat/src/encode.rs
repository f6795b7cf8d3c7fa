//! From the mesh's views to wire types: the one place where the two meet.

use bridge::seam::{
    answer::{SubscriptionStatus as CoreSubscriptionStatus, SubscriptionView},
    event,
};
use jiff::Timestamp;
use mesh::{
    Proof,
    api::command::{AgentView, Fresh, RoomView, Speech},
    name::id::{AgentId, KeyPrint, MessageId, RoomId},
    records::{
        details::Details,
        files::{FileView, ReplacedFile},
    },
    wire::{
        conversation::Conversation,
        roster::{Presence, Status as CoreStatus},
    },
};
use protocol::{
    object::{
        self, Agent, ConversationNote, File, Member, MeshNote, Message, Room, RoomNote,
        SessionKind, SessionNote, Subscription, SubscriptionStatus, Visibility,
    },
    value::{Metadata, Progress, Status},
};

mod agenda;
mod roster;
mod tasks;

pub(crate) use agenda::*;
pub(crate) use roster::*;
pub(crate) use tasks::*;

/// The lobby's id on the wire.
const LOBBY: &str = "lobby";

/// A room's id as clients know it.
pub(crate) fn room_text(lobby: RoomId, room: RoomId) -> String {
    if room == lobby { String::from(LOBBY) } else { room.to_uuid() }
}

/// And back; `None` if it is no id of a room.
pub(crate) fn room_id(lobby: RoomId, text: &str) -> Option<RoomId> {
    if text == LOBBY { Some(lobby) } else { RoomId::from_uuid(text) }
}

/// RFC 3339 in UTC, to the millisecond. Times that no calendar has (a peer may write any) become the last one.
pub fn timestamp(unix_ms: u64) -> String {
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

pub(crate) fn agent_ids(agents: &[AgentId]) -> Vec<String> {
    agents.iter().map(|agent| agent.to_string()).collect()
}

/// The one that is shown a room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewer {
    /// Its key, if it is told which one owns the room.
    pub(crate) key: Option<KeyPrint>,
    /// Its agent, if it is told of the other one in a direct room.
    pub(crate) agent: Option<AgentId>,
}

/// A room, as this one sees it.
pub(crate) fn room(lobby: RoomId, view: &RoomView, to: &Viewer) -> Room {
    let owner = view.owner.filter(|owner| to.key == Some(*owner) && *owner != KeyPrint::OPEN);
    let peer = view.sides.as_ref().zip(to.agent.as_ref());
    let session = peer.map(|(sides, agent)| SessionNote {
        kind: if view.task { SessionKind::Task } else { SessionKind::Direct },
        peer: sides.peer_of(agent).to_string(),
    });
    let shared = view.shared.is_some();
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
        mesh: (session.is_some() || shared).then(|| RoomNote {
            session,
            shared,
            ..RoomNote::default()
        }),
    }
}

/// The same, with the keys that have it if it is shared, and with the agents on its list.
pub(crate) fn with_lists(room: Room, view: &RoomView) -> Room {
    let keys = view.shared.iter().flat_map(|keys| keys.iter()).map(|key| key.to_string());
    let members = view.on_record.iter().map(|member| Member {
        agent_id: member.agent.to_string(),
        role: member.role.name().to_owned(),
        since: timestamp(member.since_ms),
        left: member.left,
    });
    let note = room.mesh.unwrap_or_default();
    let note = RoomNote { keys: keys.collect(), members: members.collect(), ..note };
    Room { mesh: Some(note).filter(|note| *note != RoomNote::default()), ..room }
}

/// The same, with the details that its key has set.
pub(crate) fn detailed(room: Room, details: &Details) -> Room {
    let Details { title, description, state, settings } = details.clone();
    let state = state.map(|state| String::from(state.name()));
    // A node whose client wrote anything else is to blame, and it is not shown.
    let sound = |(name, json): (String, String)| Some((name, Metadata::parse(&json).ok()?));
    let settings = settings.into_iter().filter_map(sound).collect();
    let note = RoomNote { title, state, settings, ..room.mesh.unwrap_or_default() };
    let description = match description {
        Some(text) => Some(text).filter(|text| !text.is_empty()),
        None => room.description,
    };
    Room { description, mesh: Some(note).filter(|note| *note != RoomNote::default()), ..room }
}

pub(crate) fn file(view: &FileView) -> File {
    let FileView { path, media, by, length, at_ms } = view.clone();
    let updated_at = timestamp(at_ms);
    File { path, size: length.into(), media_type: media, by, updated_at }
}

pub(crate) fn replaced_file(replaced: &ReplacedFile) -> object::ReplacedFile {
    let ReplacedFile { view, nth, until_ms, stamp: _ } = replaced;
    let File { path, size, media_type, by, updated_at } = file(view);
    object::ReplacedFile {
        path: format!("{path}.{nth}"),
        of: path,
        size,
        media_type,
        by,
        updated_at,
        kept_until: timestamp(*until_ms),
    }
}

/// An agent, as clients see it.
#[must_use]
pub fn agent(view: &AgentView) -> Agent {
    Agent {
        agent_id: view.agent.to_string(),
        name: view.name.to_string(),
        capabilities: view.capabilities.clone(),
        connected_at: timestamp(view.connected_ms),
        last_active: timestamp(view.last_active_ms),
        status: status(view.presence.status),
        status_detail: view.presence.detail.clone(),
        progress: progress(&view.presence),
        mesh: Some(MeshNote {
            lingers: view.lingers.then_some(true),
            guest: view.guest.then_some(true),
            via: view.hosted.then(|| "mcp".to_owned()),
            node: Some(view.node.to_string()),
            verified: view.verified.then_some(true),
            key: view.key.checked().map(|key| key.to_string()),
            ..MeshNote::default()
        }),
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

/// A message's metadata as clients see it (spec §3): thoughts and decisions can be told by it.
pub(crate) fn metadata(speech: Speech, agent: &str, own: Option<&Metadata>) -> Option<Metadata> {
    match speech {
        Speech::Chat => own.cloned(),
        Speech::Thinking => Some(Metadata::of_texts(&[("type", "thinking")], None)),
        Speech::Decision => {
            Some(Metadata::of_texts(&[("type", "decision"), ("decided_by", agent)], own))
        }
    }
}

/// The same of a delivered message. What another node let through and is not sound is not shown.
pub(crate) fn shown_metadata(message: &event::Message) -> Option<Metadata> {
    let said = &message.said;
    let own = said.metadata.as_deref().and_then(|json| Metadata::parse(json).ok());
    metadata(message.speech, &said.agent, own.as_ref())
}

/// A delivered message, with all that is known of it.
pub(crate) fn message(lobby: RoomId, message: &event::Message) -> Message {
    let said = &message.said;
    Message {
        message_id: message.message.to_uuid(),
        room_id: room_text(lobby, message.room),
        agent_id: said.agent.to_string(),
        agent_name: said.name.clone(),
        content: said.content.clone(),
        reply_to_message: said.reply_to.clone(),
        metadata: shown_metadata(message),
        timestamp: timestamp(message.wall_ms),
        seq: message.number.0,
        mesh: note(message),
    }
}

/// Of a message with one number, as nearly all are, only what is proven.
fn note(message: &event::Message) -> Option<MeshNote> {
    let is_late = message.canonical != message.number;
    let note = MeshNote {
        canonical_seq: is_late.then_some(message.canonical.0),
        late: is_late.then_some(true),
        numbers: message.numbers.iter().map(|number| number.0).collect(),
        session: message.said.conversation.map(|place| place_of(message.message, &place)),
        ..proven(message.proof).unwrap_or_default()
    };
    (note != MeshNote::default()).then_some(note)
}

/// The note of a message that was written just now.
pub(crate) fn fresh(message: MessageId, fresh: &Fresh) -> Option<MeshNote> {
    let session = fresh.conversation.map(|place| place_of(message, &place));
    let note = MeshNote { session, ..proven(fresh.proof).unwrap_or_default() };
    (note != MeshNote::default()).then_some(note)
}

fn place_of(message: MessageId, place: &Conversation) -> ConversationNote {
    ConversationNote {
        conversation: place.id(message).to_uuid(),
        turn: place.turn,
        max_turns: place.max_turns,
        hops: place.hops,
        expects_reply: place.expects_reply,
        answers: place.answers.map(|answered| answered.to_uuid()),
    }
}

/// The proof of a message's author; `None`: there is none.
pub(crate) fn proven(proof: Proof) -> Option<MeshNote> {
    (proof != Proof::default()).then(|| MeshNote {
        verified: proof.verified.then_some(true),
        key_revoked: proof.key_revoked.then_some(true),
        ..MeshNote::default()
    })
}

/// A note, with the nodes that hold the message durably, if the send asked for them.
pub(crate) fn with_copies(note: Option<MeshNote>, copies: Option<usize>) -> Option<MeshNote> {
    match copies {
        Some(copies) => Some(MeshNote { durable: Some(copies as u64), ..note.unwrap_or_default() }),
        None => note,
    }
}

pub(crate) fn subscription(lobby: RoomId, view: SubscriptionView) -> Subscription {
    Subscription {
        subscription_id: view.id,
        room_id: room_text(lobby, view.room),
        webhook_url: view.url,
        kinds: view.filter.kinds,
        only_from: view.filter.only_from,
        not_from: view.filter.not_from,
        exclude_thinking: view.filter.exclude_thinking,
        since_seq: view.since.0,
        last_delivered_seq: view.delivered.0,
        status: match view.status {
            CoreSubscriptionStatus::Active => SubscriptionStatus::Active,
            CoreSubscriptionStatus::Failed => SubscriptionStatus::Failed,
            CoreSubscriptionStatus::Disabled => SubscriptionStatus::Disabled,
        },
        failure_count: view.failures,
        created_at: timestamp(view.created_ms),
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
