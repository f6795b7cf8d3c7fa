//! Every bound of the bridge, with its reason. Everything that a client can grow is bounded here; its frames
//! are bounded by its dialect, too, and the mesh's memory by [`mesh::limits`].

use std::{ops::RangeInclusive, time::Duration};

use crate::session::rates::Rate;

/// The longest frame of a client in bytes, the newline of a line included, in any dialect: a connection may have to hold
/// one. Dialects may allow less.
pub const FRAME_BYTES_MAX: usize = 1_048_576;
/// Connections of all transports together. Some 12 KiB each when idle, so 240 MiB when full.
pub const CONNECTIONS_MAX: usize = 20_000;

/// Message and event frames that wait for one reader. Enough for a burst of a busy room; messages that do
/// not fit are read again from the delivery log.
pub const QUEUE_FRAMES_MAX: usize = 1_024;
/// Bytes of these. A thousand slow readers hold 256 MiB at most, shared frames counted each time.
pub const QUEUE_BYTES_MAX: usize = 256 * 1024;
/// Events without a number (turn, typing, presence, rooms, mentions) that wait behind a full queue;
/// past this the oldest is dropped: of such events the newest is the one that counts.
pub const SPILL_FRAMES_MAX: usize = 256;
/// Bytes of these.
pub const SPILL_BYTES_MAX: usize = 128 * 1024;
/// Members here that are told at once whose turn it is: with so many each event has some 5 KB.
pub const CROWD_TOLD_UP_TO: usize = 128;
/// How often more of a larger room are told: a message need not wait for longer than it takes to tell some.
pub const CROWD_TOLD_EVERY: Duration = Duration::from_millis(20);
/// Bytes of this that are queued at a time, for all such rooms together: 50 MB a second at most. One of 1,000
/// members has heard it in 0.8 s.
pub const CROWD_TOLD_BYTES: usize = 1024 * 1024;
/// Frames that leave in one write: a socket buffer's worth.
pub const WRITE_BYTES: usize = 64 * 1024;
/// Writes after which a room that lags is served although the queue is never empty.
pub const WRITES_PER_CATCH_UP: u32 = 8;

/// Rows of one page of a catch-up: amortises the read, and is not felt by others.
pub const CATCH_UP_ROWS_MAX: usize = 128;
/// Rows of the first page; the size of a page decides the rows of the next.
pub const CATCH_UP_ROWS_FIRST: usize = 16;
/// Bytes that a page of a catch-up should come to.
pub const CATCH_UP_BYTES: usize = 128 * 1024;
/// Pages that are read at once, over all connections: bounds the memory that pages take.
pub const READS_AT_ONCE: usize = 8;
/// Messages in a page of a search that names no limit.
pub const SEARCH_PAGE_DEFAULT: usize = 20;

/// Calls of one connection without an answer; more are not read from the socket until one ends.
pub const CALLS_IN_FLIGHT_MAX: usize = 64;
/// Contents these may hold together.
pub const CALL_BYTES_MAX: usize = 1024 * 1024;
/// Frames of all clients together that have shown no key and are heard at a [`Pace`](crate::session::pace::Pace), without the first
/// [`STRANGER_FRAMES_UNCOUNTED`] of each: those who show their key as they should do not wait for others. Some 0.2 ms each.
pub const PACE_OF_STRANGERS: Rate = Rate { burst: 64, per_minute: 200 * 60 };
/// See [`PACE_OF_STRANGERS`].
pub const STRANGER_FRAMES_UNCOUNTED: u32 = 4;
/// Keys whose frames are counted; of more the one that said nothing for longest is forgotten.
pub const KEYS_PACED_MAX: usize = 4_096;
/// Replies that a client has not taken yet; past this nothing more is read from it.
pub const REPLY_BYTES_MAX: usize = 256 * 1024;

/// Messages in one page of history.
pub const HISTORY_ROWS_MAX: usize = 1_000;
/// Missed frames that are replayed to an agent that comes back (spec §2).
pub const MISSED_MAX: usize = 200;
/// Agents that left within two minutes and for whom notices are kept; of more, the oldest go without.
pub const AWAY_AGENTS_MAX: usize = 1_024;
/// Bytes of all these notices, shared frames counted each time.
pub const AWAY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// An agent stays at most so long after its connection has ended: a script that pauses for longer begins anew.
pub const LINGER_MAX: Duration = Duration::from_secs(600);
/// Agents of one key that linger at once: beyond, the one that has lingered longest is let go. More than there are people and
/// scripts at one key, and too few to fill a room with.
pub const LINGERING_PER_KEY_MAX: usize = 64;
/// And of all keys together: a timer and a place in the roster each.
pub const LINGERING_MAX: usize = 1_024;
/// Connections that one agent has at a node: far more than commands that anybody runs at once.
pub const CONNECTIONS_PER_AGENT_MAX: usize = 64;
/// Rooms of which a connection remembers with which cursor its client came from elsewhere: 24 bytes each. A client that comes to more
/// misses in the others, at worst, messages that are heard of late (`docs/numbering.md`, Roaming, 4).
pub const CAME_ROOMS_MAX: usize = 1_024;
/// How often a page that waits for a number to be passed is read again, and the pause between: 5 s,
/// in which the era's numbers come in or its sequencer is replaced. Then it is given as it is.
pub const LATER_TRIES_MAX: u8 = 50;
/// The same of an inbox in which something is from a room that is not shown yet: its history comes within a tick or two of
/// the engine. From one that has ended it is passed over then.
pub const UNREAD_TRIES_MAX: u8 = 20;
/// See [`LATER_TRIES_MAX`].
pub const LATER_RETRY: Duration = Duration::from_millis(100);
/// Keys whose messages are counted: as many as there can be agents. Some 3 MB.
pub const METERED_KEYS_MAX: usize = mesh::limits::AGENTS_PER_NODE_MAX;
/// Bytes that a message's body needs besides its texts.
pub const BODY_OVERHEAD_BYTES: usize = 1_024;
/// Votes in one list.
pub const VOTES_MAX: usize = 100;
/// A key. Longer ones are not hashed before they are refused.
pub const KEY_BYTES_MAX: usize = 1_024;

/// The size that a connection's read buffer begins with, and shrinks to.
pub const READ_BYTES_MIN: usize = 1_024;
/// Of one connection so much is read before others have their turn. Parsing it takes less than a millisecond, and
/// a line of 1 MiB a few: of sixteen that send such lines without end nobody notices more.
pub const READ_BYTES_PER_TURN: usize = 256 * 1_024;
/// A connection that uses that up within this time sends more than 2.5 MB a second, which agents that talk do not: such
/// connections share the following allowance.
pub const READ_TURN_WITHIN: Duration = Duration::from_millis(100);
/// The allowance of all of them together: 125 MB a second, more than the messages of it could be stored, and a third of a
/// core's time to read.
pub const READ_TIME_PER_BYTE: Duration = Duration::from_nanos(8);
/// So much of it that nobody took is there to be taken: timers are a millisecond late, or a few.
pub const READ_SLACK: Duration = Duration::from_millis(10);
/// The read buffer of a connection that says much; a larger one is given back when it is empty.
pub const READ_BYTES_KEPT: usize = 8 * 1_024;

/// The queue of a connection that ends may take this long to leave.
pub const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// A detach that the mesh had no room for is repeated after this.
pub const DETACH_RETRY: Duration = Duration::from_millis(100);
/// And this often at most: by then the node is not coming back.
pub const DETACH_TRIES_MAX: usize = 100;
/// A listener that cannot accept (no file descriptors left) tries again after this.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Connections over HTTP that are no WebSockets, or none yet: strangers'. So many of them leave room for
/// agents, over other transports too.
pub const HTTP_CONNECTIONS_MAX: usize = 4_096;
/// The head of a request, and the bytes that are read or written of a connection at once.
pub const HTTP_HEAD_BYTES_MAX: usize = 64 * 1024;
/// The head of a request, since the connection began or the last answer was given, and then its body.
pub const HTTP_REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// A handshake of TLS, since the connection began. Handshakes are as many as [`HTTP_CONNECTIONS_MAX`].
pub const TLS_HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Operators are told of a certificate that ends within this time: some renew by hand.
pub const CERTIFICATE_ENDS_SOON: Duration = Duration::from_secs(14 * DAY_SECS);
/// Seconds.
pub const DAY_SECS: u64 = 86_400;
/// An HTTP connection that sends nothing, and takes nothing, for this long is closed in any case; between two
/// requests, [`HTTP_REQUEST_WITHIN`] is the limit. WebSockets have a shorter limit
/// of their own, which knows when the silence is ours.
pub const HTTP_SILENT_FOR_MAX: Duration = Duration::from_secs(600);
/// Keys made for one address in any hour, where everybody may (spec §8).
pub const SIGNUPS_PER_HOUR_MAX: usize = 10;
/// And for all addresses together, in any day: keys are kept for ever, by all nodes. A stranger with many
/// addresses needs two months to use up those that [`mesh::limits::KEYS_MAX`] leaves to visitors.
pub const SIGNUPS_PER_DAY_MAX: usize = 1_000;
/// Bytes that a WebSocket reads at once.
pub const WEBSOCKET_READ_BYTES: usize = 4 * 1_024;

/// A line of a client that is no agent yet. A stranger is not to fill the memory: a request to be attached, with all it
/// may carry, fits, and 20,000 connections of strangers hold 1.3 GB at worst; twice that if all are WebSockets, and for
/// no longer than dialects let them be strangers ([`Manners::attach_within`](crate::dialect::Manners::attach_within)).
pub const STRANGER_LINE_BYTES_MAX: usize = 64 * 1024;
/// All that a WebSocket says before its client has shown a key: the same and as much for pings and frames.
pub const STRANGER_WEBSOCKET_BYTES_MAX: usize = 2 * STRANGER_LINE_BYTES_MAX;

/// Numbers are below this (spec §1).
pub const NUMBERS_END: u64 = 1 << 53;

/// Webhook subscriptions of one key at this node. Fewer than [`WEBHOOK_POSTS_AT_ONCE`], so that the slow
/// receivers of one key leave room for those of others.
pub const WEBHOOKS_PER_KEY_MAX: usize = 100;
/// Webhook subscriptions at this node: each is a task and some kilobytes.
pub const WEBHOOKS_MAX: usize = 1_000;
/// Deliveries on their way at once: a socket and a message each. Past it they take turns, one message
/// of each subscription at a time.
pub const WEBHOOK_POSTS_AT_ONCE: usize = 128;
/// How long after each failure a delivery is tried again (spec §11). The failure that has no pause
/// left ends it.
pub const WEBHOOK_RETRY_AFTER: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(16),
    Duration::from_secs(64),
    Duration::from_secs(256),
];
/// The same for a notice, which somebody waits for.
pub const NOTICE_RETRY_AFTER: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];
/// A cursor that has moved is written after this: as much may be delivered again after a crash.
pub const WEBHOOK_KEEP_AFTER: Duration = Duration::from_secs(1);
/// When the node stops, cursors may take this long to be written: it has 3 s for everything.
pub const WEBHOOK_CLOSE_WITHIN: Duration = Duration::from_millis(150);
/// A webhook's work that the node had no room for, or could not read, is tried again after this.
pub const WEBHOOK_PAUSE: Duration = Duration::from_secs(1);
/// Rows read at once where a filter leaves little; otherwise one, for a message may be large.
pub const WEBHOOK_ROWS_MAX: usize = 64;
/// Such reads at once, over all subscriptions.
pub const WEBHOOK_READS_AT_ONCE: usize = 4;
/// Longer ones are seldom taken by servers.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
/// The secret of a host's callback, in bytes, as Standard Webhooks wants it.
pub const CALLBACK_SECRET_BYTES: RangeInclusive<usize> = 24..=64;
/// A webhook's secret.
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 1_024;
/// Kinds that one filter names, and the longest of them.
pub const WEBHOOK_KINDS_MAX: usize = 64;
/// See [`WEBHOOK_KINDS_MAX`].
pub const WEBHOOK_KIND_BYTES_MAX: usize = 128;
/// Look-ups of host names for deliveries at once: each holds a thread, for as long as the system likes,
/// even if nobody waits for it any more.
pub const WEBHOOK_LOOKUPS_AT_ONCE: usize = 32;
/// Of these, for subscriptions of one key.
pub const WEBHOOK_LOOKUPS_PER_KEY: usize = 4;
/// Look-ups for subscribers: one of each key at once, and none takes a delivery's turn.
pub const WEBHOOK_CHECKS_AT_ONCE: usize = 8;
/// Addresses of one host that are tried.
pub const WEBHOOK_ADDRESSES_MAX: usize = 4;
/// Looking a host up for a subscriber, and connecting to one address.
pub const WEBHOOK_CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A whole delivery, answer included.
pub const WEBHOOK_POST_WITHIN: Duration = Duration::from_secs(15);
/// The head of an answer.
pub const WEBHOOK_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes that are read of an answer's body, and for how long, out of politeness.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 16 * 1024;
/// See [`WEBHOOK_ANSWER_BYTES_MAX`].
pub const WEBHOOK_ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Readers whose progress is known: an agent in a room each, some 200 bytes in memory and on the
/// disk. Those that were not heard of for the longest time are forgotten: they may get messages again.
pub const READERS_MAX: usize = 16_384;
/// Agents of which it is known what they were given, each in one room: some 1 KiB in memory. Those of which nothing was
/// heard for the longest time are forgotten.
pub const GIVEN_AGENTS_MAX: usize = 16_384;
/// The newest messages of a room of which it is known that an agent was given them.
pub const GIVEN_NUMBERS_MAX: usize = 32;
/// Messages of direct rooms that are written and not certain to have come yet: of more nobody hears that they came, until they are
/// answered.
pub const GIVEN_DUE_MAX: usize = 16_384;
/// A message counts as given when the connection to which it was written has stayed open for so long.
pub const GIVEN_AFTER: Duration = Duration::from_secs(5);
/// Messages after one that are searched for answers to it: a page.
pub const ANSWERS_SEARCHED_MAX: usize = 1_000;
/// Pieces of answers that wait for a reader without a seat: a few seconds of one agent's.
pub const PIECES_WAITING_MAX: usize = 256;
/// How often changes of it are written.
pub const READERS_KEPT_EVERY: Duration = Duration::from_secs(1);
/// And how many at once: in some commits together.
pub const READERS_KEPT_AT_ONCE: usize = 512;
/// When the node stops, it may take this long: it has 3 s for everything.
pub const READERS_CLOSE_WITHIN: Duration = Duration::from_millis(300);
/// How often a client whose cursor cannot be judged yet is asked for again before its live messages go on: a second each.
pub const BEHIND_TRIES_MAX: u8 = 6;
/// The newest messages of a direct room, thoughts included, in which requests without an answer are looked for: more than an
/// agent may have open.
pub const REQUESTS_LOOKED_AT_MAX: usize = 128;
/// An agent is told of an item after so long: a call of its own may be returning it.
pub const WAKE_AFTER: Duration = Duration::from_secs(1);
/// Items that are counted for one notice; of more only how many.
pub const WAKE_ROWS_MAX: usize = 500;
/// Agents that a notice names.
pub const WAKE_NAMED_MAX: usize = 5;
/// A notice that is not taken is posted again after these pauses.
pub const WAKE_POSTS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::ZERO,
];
/// The body that a host is posted, before its places are filled: the operator's own words, of which a host wants a few.
pub const WAKE_BODY_BYTES_MAX: usize = 16 * 1024;
/// Notices of which nothing comes, one after the other; then there is silence until the agent fetches something.
pub const WAKE_REPEATS_MAX: usize = 10;
/// The newest messages of one direct room among which an inbox gets those of the other agent when it is made.
pub const FILED_PER_ROOM_MAX: usize = 200;
/// Older ones are not filed: an agent that comes to another node has seen them, or does without.
pub const FILED_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Items that an agent confirms at once, the oldest of them, among which results of tasks are looked for: one read each. A page
/// of a host has at most 50.
pub const CONFIRMED_LOOKED_AT_MAX: usize = 1_024;
/// Items of an inbox among which those of one room are looked for.
pub const UNSEEN_LOOKED_AT_MAX: usize = 1_000;
/// Marks that the operator sets on single sessions: one file, which is written anew with each of them.
pub const SESSION_MARKS_MAX: usize = 10_000;
/// Rules about sending: all are tried with each message.
pub const SEND_RULES_MAX: usize = 256;
/// Patterns of agents that may write to each other: the same.
pub const AGENT_PATTERNS_MAX: usize = 256;
/// Conversations that are to be announced, of all agents of a node: a task that waits, and a row, for each.
pub const ANNOUNCEMENTS_MAX: usize = 1_000;
/// The same of one agent: another one that asks much does not take all of them.
pub const ANNOUNCEMENTS_PER_AGENT_MAX: usize = 100;
/// Conversations that were announced, or were not to be: some 200 bytes each. Of one that is forgotten, and goes on, the
/// outcome may be said again.
pub const ANNOUNCED_KEPT_MAX: usize = 10_000;
/// So long an agent has to say what is to be announced; and so long it is waited for that comes back to say it.
pub const ANNOUNCE_WITHIN: Duration = Duration::from_secs(600);
/// How often it is looked whether the agent is there, in whose name something is to be said.
pub const ANNOUNCE_LOOK_EVERY: Duration = Duration::from_secs(5);
/// After something went wrong it is tried again, after these pauses: the pace of two agents rests for a minute.
pub const ANNOUNCE_RETRIES: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(300),
];
/// The newest messages of a room among which those of a conversation, or of its announcement, are looked for: a conversation
/// has at most 201 turns.
pub const ANNOUNCE_LOOKED_AT_MAX: usize = 512;
/// Each text that the agent is shown: three of them, and the rest, are one message of a key of any kind.
pub const ANNOUNCE_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Agents for which the operator names a room to announce in: a file that is read once.
pub const ANNOUNCE_ROOMS_MAX: usize = 1_000;
/// News of rooms that a dialect without seats has not heard yet: of a few thousand messages, and of some hundred tasks that
/// change at once.
pub const OVERHEARD_MAX: usize = 4_096;
/// Records of profiles that are read at once where all are looked through.
pub const DESCRIBED_ROWS: usize = 500;
/// So often: some milliseconds in all. A profile has few records, so they are those of a thousand agents.
pub const DESCRIBED_PAGES_MAX: usize = 12;
/// Changed profiles of which a dialect has not heard yet: some hundred agents that come to a mesh at once.
pub const DESCRIBED_MAX: usize = 1_024;
/// Events of one room that a dialect has not heard yet which listens for those who look on: a second of a very busy room.
pub const LOOKED_ON_MAX: usize = 1_024;

/// Lines of the node's log that are kept for those who begin to watch it.
pub const LOG_LINES_KEPT: usize = 100;
/// Lines that wait for one who watches; of more the oldest are missed.
pub const LOG_LINES_WAITING_MAX: usize = 256;

/// A schedule as a client writes it, or the name of a zone: longer ones say nothing more.
pub const SCHEDULE_TEXT_BYTES_MAX: usize = 256;
/// After this nobody fires a slot of a job any more that comes again: it is missed.
pub const SLOT_LATE_MAX: Duration = Duration::from_secs(600);
/// The same of a job that is due once.
pub const SLOT_ONCE_LATE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Keys whose jobs this node sees to: so many are in memory, with up to 1,000 jobs each.
pub const SCHEDULED_KEYS_MAX: usize = 1_000;
/// News of jobs and runs that are not read yet. Of a key of which more came all is read again.
pub const SCHEDULE_NEWS_MAX: usize = 10_000;
/// Told events of jobs that a dialect has not read: of a few hundred jobs that fire at once.
pub const FIRED_WAITING_MAX: usize = 1_024;
/// The node that holds a key's lease fires its jobs. Renewed at half of it.
pub const SCHEDULE_LEASE: Duration = Duration::from_secs(30);
/// The lease is asked for so long before a slot: two round trips, and a sequencer that is replaced.
pub const SCHEDULE_LEAD: Duration = Duration::from_secs(4);
/// It is renewed while a job is due within this; else it runs out, and a job that is due once a day costs a few entries a day.
pub const SCHEDULE_KEEP: Duration = Duration::from_secs(60);
/// Another node asks for it if nobody has fired a slot for so long.
pub const SCHEDULE_GRACE: Duration = Duration::from_secs(5);
/// After a lease was refused it is asked for again. And nodes in the next rank wait for longer by two fifths of this.
pub const SCHEDULE_AGAIN: Duration = Duration::from_secs(5);
/// One node says no for so long: it leaves the first word to the one that holds the lease.
pub const SCHEDULE_DEFERS: Duration = Duration::from_secs(60);
/// After a start, and after a job has come from another node: what others have fired comes with it, and a little later.
pub const SCHEDULE_SETTLES: Duration = Duration::from_secs(10);
/// Clocks are looked at again after this, if nothing is due before: they may have been set.
pub const SCHEDULE_NAP: Duration = Duration::from_secs(5);
/// An answer about a lease that does not come within this is none.
pub const SCHEDULE_ASKS_WITHIN: Duration = Duration::from_secs(15);
/// Runs of jobs that this node waits for at once; more are errors.
pub const SCHEDULE_RUNS_MAX: usize = 2_000;
/// How long a run may take, if the operator says nothing else.
pub const SCHEDULE_RUN_LIMIT: Duration = Duration::from_secs(600);
/// Error and summary of a run. Bytes.
pub const RUN_TEXT_BYTES_MAX: usize = 512;
/// The newest messages of a room among which the request of a run is looked for.
pub const RUN_LOOKED_AT_MAX: u64 = 200;
/// The scheduler's agent stays for so long after its last act: longer than a lease is not renewed.
pub const SCHEDULER_STAYS: Duration = Duration::from_secs(40);

/// Things of a room's past that are read at once for its replay: of the longest messages 13 MB.
pub const REPLAY_ROWS: usize = 200;
/// Bytes of one part of a replay, and one event more: a client reads it as one frame.
pub const REPLAY_PAGE_BYTES: usize = 256 * 1024;
/// Those who took part in a room, as its replay names them; of more, the first.
pub const REPLAY_PARTICIPANTS_MAX: usize = 10_000;
/// Replays that are played at once at a node: each reads the room twice, and holds its tasks.
pub const REPLAYS_AT_ONCE: usize = 8;
/// And of one key more wait for their turn: one is played at a time.
pub const REPLAYS_OF_KEY_WAITING_MAX: usize = 4;
/// For so long at most: a client is told before it gives up.
pub const REPLAY_WAITS_FOR: Duration = Duration::from_secs(30);
/// Replays that a key begins in a minute: each goes through its room twice. Parts of one that is gone on with do not count.
pub const REPLAYS_PER_MINUTE: u32 = 30;
/// The same of all who show no key.
pub const REPLAYS_OF_STRANGERS_PER_MINUTE: u32 = 60;
/// The same as [`REPLAYS_AT_ONCE`] of those who show no key: they hold nobody else up.
pub const REPLAYS_OF_STRANGERS: usize = 4;
/// And of one network that is not this machine: others find a place.
pub const REPLAYS_OF_NETWORK: usize = 1;
/// And how many of one network are begun in a minute: half of those of all.
pub const REPLAYS_OF_NETWORK_PER_MINUTE: Rate = Rate { burst: 30, per_minute: 30 };
/// Networks whose replays are counted; of more the one that was counted longest ago is forgotten.
pub const REPLAY_NETWORKS_MAX: usize = 4_096;
/// A chunk of a file that nobody takes for so long ends it: a client that stands still keeps no place.
pub const REPLAY_TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// Replays that were begun in parts, and may be gone on with: of more, the oldest is played again from its beginning.
pub const REPLAYS_KEPT_MAX: usize = 8;
/// And of one key: those of others stay.
pub const REPLAYS_OF_KEY_KEPT_MAX: usize = 2;
/// And for so long.
pub const REPLAYS_KEPT_FOR: Duration = Duration::from_secs(60);
