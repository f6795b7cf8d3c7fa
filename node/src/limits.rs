//! Every bound of the daemon, with its reason.

use std::time::Duration;

/// Nodes that were removed longer ago are no warning to a node that hears of it now, in milliseconds: an hour, longer than a
/// restart takes, or a disturbance of the network.
pub const REMOVAL_NEWS_MS: u64 = 60 * 60 * 1_000;
/// Inputs handled in one turn: as many as gather during one commit, with room to spare.
pub const INPUTS_PER_TURN: usize = 1_024;
/// And no more of them once a turn has taken this long: a client that asks for little is not to
/// wait for one that asks for much.
pub const TURN_WITHIN: Duration = Duration::from_millis(10);
/// Inputs taken at once, between two looks at that.
pub const INPUTS_AT_ONCE: usize = 64;
/// Effects of a turn after which the clients that they concern are woken: of hundreds the first are not to wait for the last, and of a
/// few each client is to be woken once.
pub const EFFECTS_PER_WAKE: usize = 256;
/// While the disk is full, the turn that waits is tried again so often: room is made by people.
pub const DISK_FULL_RETRY: Duration = Duration::from_secs(1);
/// Effects and rows that wait for room on the disk, besides those of the turn that found it full:
/// agents that come and go make some each. With more nobody new is let in.
pub const DISK_FULL_WAITING_MAX: usize = 65_536;
/// When nothing was written for so long the store is settled: a burst has ended, and a client that
/// writes a few messages a second does not pay for it while waiting for an `ok`.
pub const SETTLE_AFTER: Duration = Duration::from_millis(200);
/// Commands that wait for the engine. At 50,000 a second some 150 ms; more are refused.
pub const COMMANDS_MAX: usize = 8_192;
/// Bytes that these carry.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Verified messages of peers that wait for the engine. When full gossip is dropped. Frames of a
/// peer are not read any more while too many of that peer, or of all, wait: the network sees to
/// that.
pub const PEER_INPUTS_MAX: usize = 4_096;
/// Bytes of these, as they came.
pub const PEER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A frame that may be a beacon: 64 bytes of a signature, 32 of a node, four numbers and framing. A
/// longer one is not looked into before its turn.
pub const BEACON_BYTES_MAX: usize = 192;
/// Threads that check signatures: one is not enough for a node that catches up, more would take the
/// processor from the engine.
pub const VERIFIERS: usize = 2;
/// Questions of one peer that are heard: in a second, for long.
pub const QUESTIONS_PER_SECOND_MAX: u32 = 2_000;
/// And at once: a node that meets one with very many rooms asks for each of them.
pub const QUESTIONS_BURST_MAX: u32 = 16_384;
/// Beyond, each this many count as a strike; the peer asks again.
pub const QUESTIONS_PER_STRIKE: u32 = 2_048;
/// Answers from the store, and frames that have to wait behind them. When full they are dropped,
/// and asked for again.
pub const ANSWERS_MAX: usize = 1_024;
/// Of these, for one peer.
pub const ANSWERS_PER_PEER_MAX: usize = 512;
/// Bytes of the frames among these.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Addresses of peers kept over a restart: several for each node of a large mesh.
pub const REMEMBERED_MAX: usize = 256;
/// They are written at most this often: soon, for a node that is killed just after its start is to find its peers again, though
/// their ports and its own are others by then.
pub const REMEMBER_EVERY: Duration = Duration::from_millis(100);
/// News of addresses on their way to the file; lost ones come again with the next connection.
pub const REMEMBER_QUEUE: usize = 256;
/// Addresses in one ticket: it has to fit a line of a terminal or two.
pub const TICKET_ADDRESSES_MAX: usize = 4;
/// A ticket's text: a longer one is none.
pub const TICKET_TEXT_MAX: usize = 4_096;
/// One address in a ticket: the longest host name, and a port.
pub const ADDRESS_BYTES_MAX: usize = 255;

/// Nodes that may join by one invitation: more than a mesh has.
pub const INVITATION_USES_MAX: u32 = 1_024;
/// The shortest time in which an invitation expires.
pub const INVITATION_LASTS_MIN: Duration = Duration::from_secs(1);
/// The longest.
pub const INVITATION_LASTS_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A node's name, in bytes: it is part of room names.
pub const NODE_NAME_BYTES_MAX: usize = 64;
/// The shortest `--takeover-after`: two beacons may be lost of a node that has it, too. Others send
/// fewer while all is calm ([`mesh::order::pulse`]).
pub const TAKEOVER_AFTER_MIN: Duration = Duration::from_millis(700);
/// The longest. Past the roster's lease nobody would be sure who is there.
pub const TAKEOVER_AFTER_MAX: Duration = Duration::from_secs(600);

/// Tokens of a node: each is a row of a file that is read at the start, and written whole with each change.
pub const TOKENS_MAX: usize = 1_000;
/// Operators' commands served at once.
pub const CONTROL_CLIENTS_MAX: usize = 8;
/// A request on the control socket.
pub const CONTROL_REQUEST_BYTES_MAX: u64 = 4_096;
/// An answer there: the status of a mesh with very many rooms.
pub const CONTROL_ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long an operator's command may take.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often who waits for something long is told how far it is: well within [`CONTROL_TIMEOUT`].
pub const CONTROL_PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Rooms shown by `clawmeshd status` without `--json`.
pub const STATUS_ROOMS_SHOWN: usize = 40;
/// Nodes that it blames for their entries.
pub const STATUS_BLAMED_SHOWN: usize = 8;
/// And from how much on: a node that loses a race for an era or a task has written a little of it,
/// too.
pub const STATUS_BLAMED_FROM: u64 = 16;

/// The engine is asked for `/metrics` at most this often: with 100,000 rooms that is work.
pub const METRICS_STATUS_EVERY: Duration = Duration::from_secs(2);
/// How long that may take; without its answer the page has less on it. Prometheus waits 10 s.
pub const METRICS_STATUS_WITHIN: Duration = Duration::from_secs(2);

/// A file that holds a ticket, with white space around it.
pub const TICKET_FILE_BYTES_MAX: u64 = 16 * 1024;

/// Clocks that differ by more are told to operators: agents compare timestamps, and nodes order by them
/// what is said at the same time.
pub const CLOCK_DIFFERS_MS: u64 = 2_000;
/// Beacons of a peer of which the one that was on its way for the shortest time counts: two to five seconds of
/// them.
pub const CLOCK_SAMPLES: usize = 8;
/// Fewer say nothing yet: one may be late.
pub const CLOCK_SAMPLES_MIN: usize = 3;
/// How often it is looked at for the log.
pub const CLOCKS_LOOKED_AT_EVERY: Duration = Duration::from_secs(2);
/// A peer that was not heard for so long has no clock that is known.
pub const CLOCK_STALE_AFTER: Duration = Duration::from_secs(30);
/// Peers whose clocks are known: more than can be connected at once.
pub const CLOCKS_MAX: usize = 1_024;

/// Looking up the name in a ticket, to find the address of this machine that faces it.
pub const FACING_LOOKUP_WITHIN: Duration = Duration::from_secs(2);

/// Looks for that address after this machine has got others: routes and names come later, within a few seconds.
pub const FACING_LOOKS: u32 = 10;

/// See [`FACING_LOOKS`].
pub const FACING_LOOKED_AT_EVERY: Duration = Duration::from_millis(500);

/// How long a start waits for the outcome of its joining before it says that there is none yet: two
/// dials of `HANDSHAKE_TIMEOUT` of `net` would be more than a person waits for.
pub const JOIN_WAITED_FOR: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
pub const JOIN_LOOKED_AT_EVERY: Duration = Duration::from_millis(50);

/// How long the handover may take when the node is stopped: two steps of
/// [`mesh::limits::HANDOVER_STEP`], and their turns. With [`LEAVE_WITHIN`] under 3 s.
pub const HAND_OVER_WITHIN: Duration = Duration::from_millis(2_200);
/// How long clients and network may take to write what is queued, after that.
pub const LEAVE_WITHIN: Duration = Duration::from_millis(600);
/// The longest time of the setting `session.pair`: an operator's typing error is to be seen.
pub const PAIR_TIME_MAX: Duration = Duration::from_secs(3_600);
/// Accounts that an operator can hide in the index of agents: some 400 KiB of `hidden.json`, which each change writes anew.
pub const HIDDEN_ACCOUNTS_MAX: usize = 10_000;
/// A text in a line of the log that is shown over the wire.
pub const LOG_TEXT_BYTES_MAX: usize = 4_096;
/// Settings that were changed over the wire: names and values of all that can be.
pub const CHANGED_SETTINGS_BYTES_MAX: usize = 64 * 1024;

/// Messages are gathered for so long before they are put into the index of words: a search finds them a moment later.
pub const INDEX_GATHER: Duration = Duration::from_millis(200);
/// While something is committed, the index rests so many times as long as it worked: one part in twenty of a core.
pub const INDEX_BUSY_SHARE: u32 = 19;
/// Searches say that they are behind when the index has had something to do for so long.
pub const INDEX_BEHIND: Duration = Duration::from_secs(5);
/// How often words of dropped messages are taken out of the index.
pub const INDEX_SWEEP_EVERY: Duration = Duration::from_secs(60);
/// After an error of its file the index is made anew so much later: the disk may be full.
pub const INDEX_AGAIN: Duration = Duration::from_secs(60);

/// Records that the successor of a key signs anew in one turn: some milliseconds of signatures. Of files each brings up to 256 KiB.
pub(crate) const SIGNED_ANEW_AT_ONCE: usize = 32;
