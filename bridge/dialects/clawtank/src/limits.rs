//! Every bound of the dialect, with its reason.

use std::time::Duration;

use bridge::session::{pace::Pace, rates::Rate};

/// A message of a client (spec §1).
pub(crate) const MESSAGE_BYTES_MAX: usize = 65_536;
/// One that is larger than this ends the connection: until then the client is told.
pub(crate) const MESSAGE_BYTES_END: usize = 2 * MESSAGE_BYTES_MAX;
/// A client says who it is in this time, as in all dialects.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// An agent that was let in registers in this time: it is a stranger to the mesh until then.
pub(crate) const REGISTER_WITHIN: Duration = Duration::from_secs(600);
/// A connection of which no byte comes for so long is over (spec §1).
pub(crate) const SILENT_FOR_MAX: Duration = Duration::from_secs(90);
/// The time between two pings.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
/// The time between two looks whether the key of a client that is no agent yet is valid.
pub(crate) const KEY_LOOK_EVERY: Duration = Duration::from_secs(15);

/// Frames are heard at this pace. One connection: ten times as fast as all that one may do in a minute (spec §12). A key: a frame costs
/// some 0.4 ms with all that follows from it, for most ask the mesh, and many are written; so a tenth of a core, and 1,000 people who
/// say something every four seconds. One that has shown no key: it says what it understands, connects, and shows signs of life if
/// it looks on.
pub(crate) const PACE: Pace = Pace {
    own: Rate { burst: 64, per_minute: 50 * 60 },
    of_key: Rate { burst: 128, per_minute: 250 * 60 },
    of_stranger: Rate { burst: 8, per_minute: 10 * 60 },
};

/// Bad frames in [`BAD_FRAMES_WITHIN`] that end a connection (spec §12).
pub(crate) const BAD_FRAMES_MAX: u32 = 16;
/// See [`BAD_FRAMES_MAX`].
pub(crate) const BAD_FRAMES_WITHIN: Duration = Duration::from_secs(10);

/// The id of a frame, and what answers refer to: an id with a few prefixes, or a word of the client.
pub(crate) const ID_BYTES_MAX: usize = 128;
/// Rooms of one connection (spec §3).
pub(crate) const ROOMS_MAX: usize = 16;
/// Events of a room that a newcomer is given (spec §3).
pub(crate) const REPLAYED_MAX: u64 = 50;
/// Events of a page of `extension.room_history` (spec §8).
pub(crate) const PAGE_MAX: u64 = 200;
/// Rooms of one list.
pub(crate) const ROOMS_LISTED_MAX: usize = 200;
/// Bytes of a record of a repository (spec §6).
pub(crate) const GIT_BYTES_MAX: usize = 32 * 1024;
/// Bytes of what an agent says of a thing that is to be approved.
pub(crate) const APPROVAL_DETAILS_BYTES_MAX: usize = 16 * 1024;
/// The time in which it can be decided, if its agent does not say (spec §9).
pub(crate) const APPROVAL_FOR: Duration = Duration::from_secs(2 * 3_600);
/// A message that asks may be told of before its approval is here: so often it is looked for.
pub(crate) const APPROVAL_LOOKS: u32 = 10;
/// The time between two looks.
pub(crate) const APPROVAL_LOOK_AFTER: Duration = Duration::from_millis(100);
/// Characters of the thing in the line of its message.
pub(crate) const COMMAND_SHOWN_CHARS_MAX: usize = 200;
/// Messages that are looked at for records: a page, as large as the bridge reads them.
pub(crate) const GIT_ROWS_MAX: u64 = 1_000;
/// Rooms whose commits are remembered: those of the others are read again. Less than 60 MB when all are full.
pub(crate) const GIT_ROOMS_MAX: usize = 32;
/// Commits of a room that are remembered.
pub(crate) const COMMITS_KEPT_MAX: usize = 400;
/// Commits of a repository that a new one is compared with (spec §6).
pub(crate) const COMMITS_COMPARED_MAX: usize = 200;
/// They are not older than this (spec §6).
pub(crate) const COMMITS_WITHIN_MS: u64 = 24 * 3_600 * 1_000;
/// Files of a commit that are compared: the first ones by name. 16 bytes each.
pub(crate) const FILES_COMPARED_MAX: usize = 256;
/// Requests to merge of a room whose branch is remembered.
pub(crate) const PULLS_KEPT_MAX: usize = 256;
/// Warnings of a room that are remembered, so that none is told twice.
pub(crate) const WARNINGS_KEPT_MAX: usize = 2_048;
/// Warnings that one commit brings: more say nothing new.
pub(crate) const WARNINGS_OF_COMMIT_MAX: usize = 8;
/// Commits of a room whose warnings are remembered, until all its clients are told.
pub(crate) const WARNED_COMMITS_MAX: usize = 64;
/// Extensions and features that a client may name: more than anybody has.
pub(crate) const EXTENSIONS_MAX: usize = 64;

/// Characters of a chat message (spec §7).
pub(crate) const TEXT_CHARS_MAX: usize = 4_000;
/// Characters of the HTML that is made of it, as the schema has it: of more there is none.
pub(crate) const HTML_CHARS_MAX: usize = 8_000;
/// Characters of a name that is shown.
pub(crate) const NAME_CHARS_MAX: usize = 100;
/// Bytes of an agent's id, as the schema has it.
pub(crate) const AGENT_ID_CHARS_MAX: usize = 100;
/// Characters of an agent's name, as the schema has it.
pub(crate) const AGENT_NAME_CHARS_MAX: usize = 50;
/// Attachments of a message (spec §7).
pub(crate) const ATTACHMENTS_MAX: usize = 10;
/// Mentions of a message, as the core has it.
pub(crate) const MENTIONS_MAX: usize = mesh::limits::MENTIONS_MAX;

/// Characters of a task's title (schema).
pub(crate) const TITLE_CHARS_MAX: usize = 200;
/// Characters of a task's description (schema).
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Characters of a line of requirements (schema), in bytes for the mesh.
pub(crate) const LINE_CHARS_MAX: usize = 500;
/// Blockers of one report: each is a comment, and a write.
pub(crate) const BLOCKERS_MAX: usize = 8;
/// Questions of a claim: the same.
pub(crate) const QUESTIONS_MAX: usize = 8;
/// Tasks that an agent holds at once (spec §15).
pub(crate) const TASKS_HELD_MAX: usize = 5;
/// Other tasks that a claimer is shown who did not get one (spec §5).
pub(crate) const ALTERNATIVES_MAX: usize = 3;
/// Tasks of one list: the newest.
pub(crate) const TASKS_LISTED_MAX: usize = 1_000;

/// Messages of an agent or person in a minute (spec §12), and so on.
pub(crate) const CHAT_PER_MINUTE: u32 = 60;
/// Of all at this node in one room.
pub(crate) const ROOM_CHAT_PER_MINUTE: u32 = 300;
/// See [`CHAT_PER_MINUTE`].
pub(crate) const GIT_PER_MINUTE: u32 = 10;
/// See [`CHAT_PER_MINUTE`].
pub(crate) const APPROVALS_PER_MINUTE: u32 = 20;
/// See [`CHAT_PER_MINUTE`].
pub(crate) const STATUS_PER_MINUTE: u32 = 20;
/// See [`CHAT_PER_MINUTE`].
pub(crate) const CLAIMS_PER_MINUTE: u32 = 60;
/// See [`CHAT_PER_MINUTE`].
pub(crate) const TASKS_PER_MINUTE: u32 = 20;
/// See [`CHAT_PER_MINUTE`]. More are not answered.
pub(crate) const HEARTBEATS_PER_MINUTE: u32 = 6;
/// All that asks and writes nothing: lists, pages, joins.
pub(crate) const ASKS_PER_MINUTE: u32 = 60;
/// Rooms that one person or agent makes in an hour.
pub(crate) const ROOMS_PER_HOUR: u32 = 5;
/// Buckets of all these, of all clients: 64 bytes each.
pub(crate) const BUCKETS_MAX: usize = 65_536;

/// A frame that is sent again within this time is the same one (spec §2).
pub(crate) const REPEATS_WITHIN: Duration = Duration::from_secs(600);
/// Frames of an agent or person that are remembered for this: as many as it sends in a few minutes; a chat message the mesh knows by its id, too.
pub(crate) const REPEATS_MAX: usize = 512;
/// Agents and people whose frames are remembered: those that came last. 40 MB when all are full.
pub(crate) const REPEATERS_MAX: usize = 512;
/// Ids that clients chose for messages, and messages that were said in another room than they are shown in: the newest.
pub(crate) const ALIASES_MAX: usize = 10_000;
/// Writes of this connection whose event is awaited, and not told a second time.
pub(crate) const AWAITED_MAX: usize = 64;
/// And for so long.
pub(crate) const AWAITED_FOR: Duration = Duration::from_secs(30);
/// Requests of which a connection was told, and that it may write pieces of an answer to: the newest.
pub(crate) const REQUESTS_MAX: usize = 256;
/// Joins and leaves that wait for a look at their room; of more, the newest are not told, as of all presence.
pub(crate) const NEWS_MAX: usize = 256;
/// Rooms whose members are remembered for a moment.
pub(crate) const CENSUSES_MAX: usize = 1_024;
/// For so long: of many that come at once each is not counted anew.
pub(crate) const CENSUS_FOR: Duration = Duration::from_secs(1);
/// An agent that comes again in this time keeps its tasks (spec §4).
pub(crate) const GRACE_SECS: u64 = 300;
/// Agents whose claims are remembered for this: as many as may be attached to a node. A few hundred bytes each.
pub(crate) const WATCHED_AGENTS_MAX: usize = mesh::limits::AGENTS_PER_NODE_MAX;
/// Claims of one agent, the newest: more than it may hold, for some have ended.
pub(crate) const WATCHED_TASKS_MAX: usize = 32;

/// Those who look on at a node (spec §10): a socket, a task and some 20 KiB each.
pub(crate) const SPECTATORS_HERE_MAX: usize = 2_000;
/// The same of those without a key, of one network that is not this machine: one stranger does not take the places of all.
pub(crate) const SPECTATORS_OF_NETWORK_MAX: usize = 200;
/// And in one room whose hosts say nothing of it.
pub(crate) const SPECTATORS_DEFAULT_MAX: u64 = 1_000;
/// Rooms of which it is known how many looked at them today: more than can be looked at now.
pub(crate) const WATCHED_ROOMS_MAX: usize = 10_000;
/// Rooms that strangers look for, in their words, as they were a moment ago.
pub(crate) const LOOKS_MAX: usize = 1_024;
/// Agents that one who comes is shown.
pub(crate) const MEMBERS_SHOWN_MAX: usize = 100;
/// The time in which events are gathered for one frame (spec §10).
pub(crate) const ACTIVITY_EVERY: Duration = Duration::from_millis(500);
/// And how many there are in it; of more, the oldest are left out.
pub(crate) const ACTIVITY_EVENTS_MAX: usize = 100;
/// And how many bytes they have: a frame has no more than [`MESSAGE_BYTES_MAX`].
pub(crate) const ACTIVITY_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1_024;
/// Frames of a room that one who looks has not taken yet: some seconds; of more, the oldest are left out. Shared by all.
pub(crate) const STAGE_FRAMES_MAX: usize = 16;
/// A room that more look at than this is shown to them one after the other: writing to all at once would make its members wait.
pub(crate) const TURNS_FROM: usize = 100;
/// The time in which all have had their turn. The next frame comes in twice that ([`ACTIVITY_EVERY`]).
pub(crate) const TURNS_WITHIN: Duration = Duration::from_millis(250);
/// How often the settings of a room are looked at again for those who look on.
pub(crate) const LOOKED_AT_AGAIN: Duration = Duration::from_secs(10);
/// Agents whose names and states a room's stage remembers: of more it begins anew.
pub(crate) const SEEN_AGENTS_MAX: usize = 4_096;
/// Characters of the name of one who looks on (spec §10).
pub(crate) const SPECTATOR_NAME_CHARS_MAX: usize = 50;
/// And of what one says.
pub(crate) const SPECTATOR_CHAT_CHARS_MAX: usize = 500;
/// And how often, in a minute.
pub(crate) const SPECTATOR_CHAT_PER_MINUTE: u32 = 10;
/// And all of a room at this node: one who comes again and again is another one each time.
pub(crate) const SPECTATOR_ROOM_CHAT_PER_MINUTE: u32 = 120;
/// A frame that is not taken for so long ends the connection.
pub(crate) const SPECTATOR_WRITES_WITHIN: Duration = Duration::from_secs(30);
/// Bytes that are gathered for one write.
pub(crate) const SPECTATOR_WRITE_BYTES: usize = 4 * 1_024;
