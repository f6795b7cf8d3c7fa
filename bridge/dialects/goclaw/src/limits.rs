//! Every bound of the dialect, with its reason. The specification's numbers stand in §2, §3, §7 and §15 of it.

use std::{ops::RangeInclusive, time::Duration};

use bridge::session::{pace::Pace, rates::Rate};

/// A message of a client, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// The same before it is connected: a stranger is not to fill the memory.
pub const STRANGER_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// A client says something in this time, or answers a ping.
pub const SILENT_FOR_MAX: Duration = Duration::from_secs(60);
/// The time between two pings.
pub const PING_EVERY: Duration = Duration::from_secs(30);
/// A client is connected in this time.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The same while its pairing waits for an administrator, who has to read the code.
pub const PAIR_WITHIN: Duration = Duration::from_secs(600);
/// Events that wait for one client. Of more the newest are dropped, and counted.
pub const EVENTS_WAITING_MAX: usize = 256;
/// Bytes that leave in one go: a socket buffer's worth.
pub const WRITE_BYTES: usize = 64 * 1024;
/// Bytes of frames that wait for one client. With more, its next requests are not begun: it does not take its answers.
pub const WAITING_BYTES_MAX: usize = 256 * 1024;
/// Requests of one connection that are worked on at once: each may have an answer of [`HISTORY_BYTES_MAX`]. Those that wait for an
/// agent are not among them.
pub const REQUESTS_AT_ONCE: usize = 4;
/// Attempts to connect that may fail on one connection.
pub const FAILED_CONNECTS_MAX: u32 = 3;
/// Bad frames within [`BAD_FRAMES_WITHIN`].
pub const BAD_FRAMES_MAX: u32 = 16;
/// See [`BAD_FRAMES_MAX`].
pub const BAD_FRAMES_WITHIN: Duration = Duration::from_secs(10);
/// The id of a request.
pub const ID_BYTES_MAX: usize = 128;
/// A task's subject, in characters.
pub const SUBJECT_CHARS_MAX: usize = 500;
/// Its description, in characters: the mesh bounds it in bytes, too.
pub const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// Changes of teams and sessions that are still to be read before they are told: each is some reads. Of more the newest are not told.
pub const RECORDS_WAITING_MAX: usize = 256;
/// Connections that `health` lists.
pub const CLIENTS_LISTED_MAX: usize = 1_000;
/// Tasks that one request deletes: each is a write.
pub const DELETED_AT_ONCE_MAX: usize = 200;
/// Delegations that are listed: of more the newest.
pub const DELEGATIONS_MAX: usize = 1_000;
/// The result of one in a list, in characters.
pub const DELEGATION_RESULT_CHARS_LISTED: usize = 500;
/// The same of one that is asked for.
pub const DELEGATION_RESULT_CHARS_MAX: usize = 8_000;
/// Teams whose tasks are looked at for one answer.
pub const TEAMS_LOOKED_AT_MAX: usize = 200;
/// Its frames are heard at this pace. One connection: as many at once as may be under way, and more than a program asks that waits for
/// its answers. A key: a frame costs some 0.2 ms with all that follows from it, so a tenth of a core. One that is not connected: it asks
/// for a code, and how its pairing is.
pub(crate) const PACE: Pace = Pace {
    own: Rate { burst: 64, per_minute: 250 * 60 },
    of_key: Rate { burst: 128, per_minute: 500 * 60 },
    of_stranger: Rate { burst: 8, per_minute: 10 * 60 },
};
/// A key that was found valid is not asked for again for so long, unless a key has ended at this node meanwhile: of each frame the
/// engine would be asked.
pub(crate) const KEY_VALID_FOR: Duration = Duration::from_secs(1);
/// A user's id.
pub const USER_BYTES_MAX: usize = 128;
/// Reads of one connection in a minute.
pub const READS_PER_MINUTE: u32 = 600;
/// How often it is looked whether the key of a connection is valid: it may be revoked at any node.
pub const KEY_LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keys that are presented here for their users; of more the rooms come when a user writes.
pub const KEYS_PRESENTED_MAX: usize = 16_384;
/// A principal stays attached for so long after it has written something. Nothing needs it for longer: it reads without.
pub const PRINCIPAL_STAYS: Duration = Duration::from_secs(30);
/// How often it is looked which agents have come and gone: the event is told no more often. Once for all clients.
pub const PRESENCE_EVERY: Duration = Duration::from_secs(1);
/// Agents in one list.
pub const AGENTS_MAX: usize = 1_000;
/// Agents whose profiles are read for one list: one read each.
pub const PROFILES_READ_MAX: usize = 256;
/// Ids that a refusal names.
pub const AMBIGUOUS_MAX: usize = 5;
/// The key of a session.
pub const SESSION_BYTES_MAX: usize = 256;

/// Messages of one room that are looked at: the newest. One page of the bridge.
pub const ROOM_MESSAGES_MAX: u64 = 1_000;
/// The newest messages of a room among which runs are looked for that are open. Of a run that is behind more of them the next words
/// are a request of their own.
pub const RUN_MESSAGES_MAX: u64 = 256;
/// Rooms that are read at once for all clients together: one may have 64 MiB of texts.
pub const ROOMS_READ_AT_ONCE: usize = 4;
/// Direct rooms that are looked at for one list of sessions: the liveliest.
pub const SESSION_ROOMS_MAX: usize = 200;
/// Rooms whose sessions are remembered between two lists: some 20 KiB each.
pub const ROOMS_REMEMBERED_MAX: usize = 512;
/// Bytes of messages in one answer; of more the oldest are left out, and the answer says so.
pub const HISTORY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Characters of a message in the event that tells of it.
pub const PREVIEW_CHARS: usize = 200;
/// Messages of a preview.
pub const PREVIEW_ROWS: usize = 20;
/// See `records.md`, session.facts.
pub const LABEL_BYTES_MAX: usize = 256;
/// See [`LABEL_BYTES_MAX`].
pub const MODEL_BYTES_MAX: usize = 128;
/// Entries of a session's metadata, and bytes of each.
pub const METADATA_ENTRIES_MAX: usize = 50;
/// See [`METADATA_ENTRIES_MAX`].
pub const METADATA_ENTRY_BYTES_MAX: usize = 512;
/// The label of words that are injected, in characters.
pub const INJECT_LABEL_CHARS_MAX: usize = 100;

/// Runs that wait here for their end: a task and some kilobytes each.
pub const RUNS_MAX: usize = 10_000;
/// The same of one key, so that one does not take all.
pub const RUNS_PER_KEY_MAX: usize = 1_000;
/// How long a request may wait for its answer.
pub const WAIT_MS: RangeInclusive<u64> = 1_000..=600_000;
/// Media of a request: at most so many.
pub const MEDIA_MAX: usize = 32;
/// Bytes of all of them together.
pub const MEDIA_BYTES_MAX: usize = 8 * 1024;
/// Events of tools that wait until a client is answered, and tools whose last use is remembered.
pub const TOOL_EVENTS_MAX: usize = 64;
/// Characters of a request that the event of its beginning has.
pub const STARTED_CHARS: usize = 200;
/// A burst of writes of one principal.
pub const WRITES_BURST: u32 = 5;
/// Principals whose writes are counted; of more the one that was counted longest ago is forgotten.
pub const PRINCIPALS_COUNTED_MAX: usize = 10_000;
/// How often an agent is looked at that somebody waits for.
pub const AGENT_LOOK_EVERY: Duration = Duration::from_millis(500);
/// A run is looked at again after this, also if nothing was heard.
pub const RUN_LOOK_EVERY: Duration = Duration::from_secs(5);

/// Agents that one connection serves.
pub const SERVED_PER_CLIENT_MAX: usize = 64;
/// Requests of an agent that its host was told of and that are remembered: of older ones it is as if they were over.
pub const SERVED_RUNS_MAX: usize = 1_024;
/// Messages of an agent that are read at once for its host.
pub const SERVED_AT_ONCE: usize = 16;
/// An agent that another connection served is let go in this time.
pub const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(2);

/// Pairings that wait, of all addresses.
pub const PENDING_MAX: usize = 64;
/// Of one address.
pub const PENDING_PER_ADDRESS_MAX: usize = 3;
/// Requests of one address in an hour.
pub const REQUESTS_PER_HOUR_MAX: usize = 10;
/// Addresses whose requests are counted.
pub const ADDRESSES_COUNTED_MAX: usize = 4_096;
/// A pairing waits for so long.
pub const PENDING_FOR: Duration = Duration::from_secs(3_600);
/// Devices that are paired with this node.
pub const PAIRED_MAX: usize = 1_000;
/// A device asks so often how its pairing is.
pub const POLL_EVERY: Duration = Duration::from_secs(1);
/// Codes that are no pairing's, of one connection: nobody tries more by hand.
pub const WRONG_CODES_MAX: u32 = 16;
/// The name that a device gives itself.
pub const SENDER_BYTES_MAX: usize = 128;

/// Agents that a team is made with.
pub const TEAM_MEMBERS_AT_ONCE_MAX: usize = 100;
/// Users that are known of one team.
pub const KNOWN_USERS_MAX: usize = 100;
/// Messages of a team that are looked through for them.
pub const KNOWN_USERS_MESSAGES: u64 = 200;
/// Tasks of a team whose events are read, those that were changed last: each is a question to the mesh.
pub const TEAM_EVENT_TASKS_MAX: usize = 50;
/// Rows of usage in one answer.
pub const USAGE_ROWS_MAX: u64 = 1_000;
/// The name of a webhook, for people.
pub const INSTANCE_NAME_BYTES_MAX: usize = 128;
/// An agent's id that is made of its name.
pub const SLUG_BYTES_MAX: usize = 64;
/// The body of a request over HTTP: as long as a message over a socket.
pub const BODY_BYTES_MAX: usize = 512 * 1024;
/// A part of a path, or a value of a query, when it is decoded.
pub const PATH_PART_BYTES_MAX: usize = 1_024;

/// Settings in JSON5: all of them have some KiB.
pub(crate) const CONFIG_BYTES_MAX: usize = 64 * 1024;
/// Brackets in brackets there: names have three parts.
pub(crate) const CONFIG_DEPTH_MAX: usize = 32;
/// Approvals in one list: each is read with its message.
pub(crate) const APPROVALS_SHOWN_MAX: usize = 200;
