//! Every bound of the dialect, with its reason.

use std::time::Duration;

/// A request over HTTP, in bytes: a message of the largest size and its JSON around it.
pub const BODY_BYTES_MAX: usize = 1_048_576;
/// The JSON of a result, in bytes: a model reads it.
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// The rows of a result, in bytes: some are left for what stands around them.
pub const RESULT_ROWS_BYTES: usize = RESULT_BYTES_MAX - 8 * 1024;
/// The metadata of a message, in bytes; larger ones are left out.
pub const METADATA_BYTES_MAX: usize = 4 * 1024;
/// Names of arguments that a tool does not know, which a result repeats, and characters of each.
pub const IGNORED_MAX: usize = 20;
/// See [`IGNORED_MAX`].
pub const IGNORED_CHARS_MAX: usize = 64;
/// One text in a result, in characters; more is cut.
pub const TEXT_CHARS_MAX: usize = 4_000;
/// The longest wait: hosts give a call up at 60 s.
pub const WAIT_SECS_MAX: u64 = 50;
/// How often a client that wants to know is told that its call is still under way.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// How often a wait looks whether its key is still valid.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Waits of one agent at once.
pub const WAITS_PER_AGENT_MAX: usize = 8;
/// Of all agents of one key: others have places, too.
pub const WAITS_PER_KEY_MAX: usize = 256;
/// And of all agents at this node: a task and a watch each.
pub const WAITS_MAX: usize = 1_024;
/// The longest wait of a task: an agent that has nothing by then asks again.
pub const TASK_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The end of a task can be asked for so long after it began.
pub const TASK_KEPT_FOR: Duration = Duration::from_secs(25 * 3_600);
/// How often a host should ask how a task is.
pub const TASK_POLL_EVERY: Duration = Duration::from_secs(5);
/// How often a task looks whether its key is still valid: there are many, and they last.
pub const TASK_LOOK_EVERY: Duration = Duration::from_secs(60);
/// Tasks of one agent, those that have ended included: the oldest of those goes first.
pub const TASKS_PER_AGENT_MAX: usize = 16;
/// Of all agents of one key.
pub const TASKS_PER_KEY_MAX: usize = 256;
/// And of all agents at this node: a row of at most a result each, and a watch of those that wait.
pub const TASKS_MAX: usize = 1_024;
/// What a task keeps of the arguments of its call, as JSON, in bytes; of a longer one none is made.
pub const TASK_ARGUMENTS_BYTES_MAX: usize = 4 * 1_024;
/// An end that cannot be kept, for the disk is full, say, is tried again after this.
pub const TASK_KEEP_RETRY: Duration = Duration::from_secs(5);
/// Calls of one agent that have no answer yet.
pub const CALLS_PER_AGENT_MAX: usize = 64;
/// The same of all agents of one key.
pub const CALLS_PER_KEY_MAX: usize = 512;
/// A name of a room or a session, in characters.
pub const KEY_CHARS_MAX: usize = 512;
/// A question in a prompt, in characters: a model reads it.
pub const QUESTION_CHARS_MAX: usize = 16 * 1_024;
/// A text that is searched for, in characters.
pub const SEARCH_CHARS_MAX: usize = 256;
/// Keys that a result suggests for one that is not there.
pub const SUGGESTIONS_MAX: usize = 3;
/// Keys that a result names for one that is ambiguous.
pub const AMBIGUOUS_MAX: usize = 5;
/// Messages in one page of history, and as far as offsets reach: a page of the bridge.
pub const HISTORY_MAX: u64 = 1_000;
/// Messages that are read at once, at least.
pub const PAGE_MIN: u64 = 64;
/// Pages that are read for one result, where most messages are not shown: the next call goes on.
pub const PAGES_MAX: usize = 20;
/// A piece of one text that is read whole, in bytes.
pub const PIECE_BYTES_MAX: usize = 48 * 1024;
/// The text of an answer in the result of a send, in bytes.
pub const REPLY_BYTES_MAX: usize = 32 * 1024;
/// Messages of one thread.
pub const THREAD_MAX: usize = 500;
/// The newest messages of each session in a list of sessions.
pub const SESSION_ROWS_MAX: u64 = 20;
/// Items of an inbox that are given at once.
pub const INBOX_ROWS_MAX: u64 = 50;
/// Items of an inbox that are counted by session: a page that is read in some milliseconds.
pub const UNREAD_COUNTED_MAX: usize = 500;
/// Items among which an answer is looked for that a call has given: as many as may come while it waits.
pub const TAKEN_LOOKED_AT_MAX: usize = 1_000;
/// A wait that has something gives it after so long, with the rest of some that came together.
pub const GATHER_FOR: Duration = Duration::from_millis(200);
/// A cursor, in characters.
pub const CURSOR_CHARS_MAX: usize = 128;
/// Items that are looked at for the names in a notice.
pub const NOTICE_ROWS: usize = 20;
/// Messages of one session in a list of sessions, in bytes of JSON.
pub const SESSION_ROWS_BYTES: usize = 16 * 1024;
/// Sends with a name of the client's own that are remembered, of all agents; the oldest go first.
pub const NAMED_SENDS_MAX: usize = 10_000;
/// For so long.
pub const NAMED_SENDS_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Agents that a notice names.
pub const NAMED_IN_NOTICE_MAX: usize = 5;
/// A client's own name for a send, in characters.
pub const IDEMPOTENCY_CHARS_MAX: usize = 128;
/// Tasks that an agent has given to others and that go on.
pub const CHILDREN_MAX: usize = 5;
/// Tasks that lead to each other: an agent that works on one gives none.
pub const DEPTH_MAX: u32 = 1;
/// An agent that was chosen for a task has so long to begin.
pub const BEGIN_WITHIN: Duration = Duration::from_secs(60);
/// Agents that are asked one after the other to do one task.
pub const WORKERS_ASKED_MAX: usize = 5;
/// Tasks of an agent that has come back for which it is seen to that somebody begins: more than it may have at a time.
pub const ASKED_AGAIN_MAX: usize = 64;
/// How long after a failure it is tried again to ask another agent, and how often: an hour. Then the next act after a detachment does.
pub const REPLACE_RETRY: Duration = Duration::from_secs(5);
/// See [`REPLACE_RETRY`].
pub const REPLACE_RETRIES: usize = 720;
/// The longest time of a task, in seconds: 30 days.
pub const RUN_SECS_MAX: u64 = 30 * 24 * 3_600;
/// Tasks in rooms of their own that are looked at, the newest ones: one question each.
pub const CHILDREN_LOOKED_AT_MAX: usize = 200;
/// A label of a task, in characters.
pub const LABEL_CHARS_MAX: usize = 128;
/// The title of a task without a label: so much of its text, in characters.
pub const TITLE_CHARS_MAX: usize = 80;
/// The newest messages of a session among which the same request is looked for.
pub const REPEATS_LOOKED_AT: u64 = 64;
/// The same request is the same send for so long after its answer.
pub const SAME_AFTER_ANSWER: Duration = Duration::from_secs(60);
/// Messages that a wait gives.
pub const WAIT_ROWS_MAX: u64 = 50;
/// Rows of other lists.
pub const ROWS_MAX: u64 = 200;
/// Rooms whose members `agents_list` shows, the liveliest first.
pub const AGENTS_ROOMS_MAX: usize = 200;
/// Agents that offer something and share no room with the caller, in `agents_list`: five of its longest pages.
pub const AGENTS_OFFERING_MAX: usize = 1_000;
/// The note of a task, in bytes, as the mesh has it.
pub const NOTE_BYTES_MAX: usize = mesh::limits::TASK_NOTE_BYTES_MAX;
/// An agent is attached for so long after its last call.
pub const IDLE_DETACH: Duration = Duration::from_secs(600);
/// Rooms that are remembered of an agent that was detached, to give it its seats back: 16 bytes each.
pub const ROOMS_REMEMBERED_MAX: usize = 1_000;
/// Agents of which rooms are remembered; the one that was silent longest goes first.
pub const AGENTS_REMEMBERED_MAX: usize = 10_000;
/// Sessions that are listed as resources.
pub const SESSIONS_AS_RESOURCES_MAX: usize = 20;
/// Items of an inbox that is read as a resource.
pub const INBOX_PEEKED_MAX: usize = 20;
/// Resources that one stream is told of: a watch and a task each.
pub const LISTENED_MAX: usize = 16;
/// Streams of one agent.
pub const STREAMS_PER_AGENT_MAX: usize = 4;
/// Streams of all agents at this node; of one key, its calls without an answer are the bound.
pub const STREAMS_MAX: usize = 1_024;
/// Events in one answer, or read at once.
pub const EVENTS_AT_ONCE_MAX: usize = 50;
/// How soon a host that asks for events should ask again when there were none.
pub const EVENT_POLL_EVERY: Duration = Duration::from_secs(5);
/// How often a stream of events says that it is alive.
pub const EVENT_HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// A subscription by posts lasts so long if its host does not say, and at least and at most so long: a host that is gone is
/// posted to no longer.
pub const HOOK_TTL_DEFAULT: Duration = Duration::from_secs(15 * 60);
/// See [`HOOK_TTL_DEFAULT`].
pub const HOOK_TTL_MIN: Duration = Duration::from_secs(1);
/// See [`HOOK_TTL_DEFAULT`].
pub const HOOK_TTL_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Subscriptions by posts of one agent, of one key, and of all agents at this node: a task and a watch each.
pub const HOOKS_PER_AGENT_MAX: usize = 16;
/// See [`HOOKS_PER_AGENT_MAX`].
pub const HOOKS_PER_KEY_MAX: usize = 100;
/// See [`HOOKS_PER_AGENT_MAX`].
pub const HOOKS_MAX: usize = 1_000;
/// A post that was not taken is tried again after this, then after twice as long, and so on.
pub const HOOK_RETRY_FIRST: Duration = Duration::from_secs(1);
/// At most so long.
pub const HOOK_RETRY_MAX: Duration = Duration::from_secs(300);
/// Between two notifications of one resource.
pub const UPDATED_EVERY: Duration = Duration::from_secs(1);
/// The URI of a resource, in bytes: a key of the longest kind, percent-encoded.
pub const URI_BYTES_MAX: usize = 4_096;
/// The error of a request that is one too many, as the protocol has no code of its own for it.
pub const BUSY: i32 = -32_000;
/// Calls without an answer of one connection: as many as of an agent over HTTP.
pub const CALLS_PER_CONNECTION_MAX: usize = CALLS_PER_AGENT_MAX;
/// Frames between a connection and the library: so many are read ahead, or written late.
pub const FRAMES_AHEAD: usize = 16;
/// A connection shows its key within this time: as ClawChat has it.
pub const ATTACH_WITHIN: Duration = Duration::from_secs(10);
/// A connection ends when its client has said nothing for so long. One that listens has nothing to say; one that is gone is
/// found when it is told something.
pub const SILENT_FOR_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long a host may keep lists that do not change while its key may do the same, in milliseconds.
pub const LISTS_FRESH_MS: u64 = 300_000;
