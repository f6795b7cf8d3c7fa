//! Things that the founder of a mesh brings from elsewhere into its rooms, before anybody else is
//! there: rooms under their ids, messages under their numbers, votes that had ended, tasks.
//!
//! They are written in forms of their own where ordinary ones cannot say them (an id that is not ours, a
//! number out of turn, a leader that no election here made), and those count only in the founder's own log,
//! in the lobby and in rooms that the founder brought: nobody else can use them
//! (`docs/decisions/import.md`). Messages, votes and tasks keep the ids that clients know them by; each
//! node has an index of those of messages ([`crate::api::batch::Change::Called`]).

use crate::{
    api::{agenda::NewKey, batch::RoomRecord},
    name::id::{AgentId, EntryRef, KeyPrint, LogId, MessageId, RoomId, RoomKey},
    wire::{
        acts::{TaskAssigned, TaskStatus, VoteImported},
        entry::Said,
        signatures::KeySignature,
    },
};

/// One thing that is brought: see [`crate::Engine::import`].
#[derive(Clone, Debug)]
pub enum Import {
    /// A key, minted for the mesh; and the secret that opens its private rooms, if it has any.
    Key(NewKey, Option<RoomKey>),
    /// A stable agent id, and the key whose it is; `None`: of nodes that check no keys.
    Agent(AgentId, Option<KeySignature>),
    /// The lobby's purpose, and when it was made (Unix milliseconds).
    Lobby(Option<String>, u64),
    /// A room.
    Room(ImportedRoom),
    /// Some messages of a room, by their numbers, and the number that comes after them.
    Messages(ImportedMessages),
    /// A vote that had ended: where, when it was opened (Unix milliseconds), and the vote.
    Vote(RoomId, u64, VoteImported),
    /// A task.
    Task(ImportedTask),
}

/// A room that was elsewhere.
#[derive(Clone, Debug)]
pub struct ImportedRoom {
    /// Its id there: a UUID of another version than 8, which ids of this mesh have.
    pub room: RoomId,
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The room it is under.
    pub parent: Option<RoomId>,
    /// Seen by every key; otherwise by `owner` alone.
    pub public: bool,
    /// Only end-to-end encrypted content is taken.
    pub encrypted: bool,
    /// The key that it is of. A private one of a key that was minted here spans the nodes that follow
    /// the key, any other stays on this node.
    pub owner: KeyPrint,
    /// The agent that made it.
    pub created_by: AgentId,
    /// Unix milliseconds.
    pub created_ms: u64,
}

/// Messages of one room that follow each other.
#[derive(Clone, Debug)]
pub struct ImportedMessages {
    /// Where.
    pub room: RoomId,
    /// By number, ascending.
    pub messages: Vec<ImportedMessage>,
    /// The number that the room gives next: above that of the last one. Those that no message has name
    /// nothing.
    pub next: u64,
}

/// A message that was said elsewhere.
#[derive(Clone, Debug)]
pub struct ImportedMessage {
    /// Its id there: a UUID of another version than 8. `None`: it had none such, and gets one of ours.
    pub id: Option<MessageId>,
    /// Its number.
    pub number: u64,
    /// When it was said. Unix milliseconds.
    pub wall_ms: u64,
    /// How it was meant.
    pub speech: crate::api::command::Speech,
    /// The agent that said it.
    pub agent: AgentId,
    /// Their name at the time.
    pub name: String,
    /// The text.
    pub content: String,
    /// The id of the message it answers.
    pub reply_to: Option<String>,
    /// Agents that were told.
    pub mentions: Vec<AgentId>,
    /// JSON text.
    pub metadata: Option<String>,
}

/// A task that was made elsewhere.
#[derive(Clone, Debug)]
pub struct ImportedTask {
    /// Where.
    pub room: RoomId,
    /// As it was made, with the agent that it is assigned to now.
    pub task: TaskAssigned,
    /// When it was made. Unix milliseconds.
    pub created_ms: u64,
    /// How far it is.
    pub status: TaskStatus,
    /// The last note.
    pub note: Option<String>,
    /// When it was last updated, if it was. Unix milliseconds.
    pub updated_ms: Option<u64>,
}

/// Whether an id can be that of a room that was brought: those of our own are of version 8, so that
/// neither can be taken for the other.
#[must_use]
pub fn is_foreign_id(room: RoomId) -> bool {
    crate::name::id::is_foreign(room.0)
}

/// Whether this log of a room may bring things from elsewhere: the founder's, in the lobby and in rooms
/// that it brought. A function of the directory's logs, so the same at every node.
#[must_use]
pub fn may_bring(record: &RoomRecord, room: RoomId, log: LogId) -> bool {
    let brought = record.imported || room == RoomId::lobby(record.mesh);
    brought && log == record.home
}

/// The id of a message as clients see it: the one that it was given elsewhere, if it was brought, or else
/// the one that names its entry.
#[must_use]
pub fn message_id(
    record: &RoomRecord,
    room: RoomId,
    place: EntryRef,
    said: Option<&Said>,
) -> MessageId {
    let EntryRef { log, seq } = place;
    let brought = said.and_then(|said| said.id).filter(|id| id.is_foreign());
    let brought = brought.filter(|_| may_bring(record, room, log));
    brought.unwrap_or_else(|| MessageId::new(room, log, seq))
}
