//! Every bound of the core, with its reason. What a peer or a client can grow is bounded here.

use std::time::Duration;

/// Content of one message. The largest that any key may be allowed (spec §8, `pro`).
pub const CONTENT_BYTES_MAX: usize = 262_144;
/// An entry's body: content, plus as much again as a client's metadata may reasonably take.
pub const BODY_BYTES_MAX: usize = CONTENT_BYTES_MAX + 65_536;
/// Bodies up to this travel inside their run; larger ones on their own, by place and hash.
pub const BODY_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Entries under one seal: what a receiver must hold before it can check anything.
pub const RUN_ENTRIES_MAX: usize = 256;
/// Encoded bytes of one run, so that it fits a gossip payload with room to spare.
pub const RUN_BYTES_MAX: usize = 32 * 1024;
/// One gossip payload (measured: frames near gossipsub's own limit stall the connection).
pub const GOSSIP_BYTES_MAX: usize = 48 * 1024;
/// One frame on a direct stream.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// How far one entry's clock may be above its predecessor's: a jump further is not an accident.
pub const CLOCK_STEP_MAX: u64 = 1 << 20;
/// The highest clock a log may begin with. A newcomer to a long room starts where the room is, so
/// the step limit cannot apply to a first entry; this leaves 2^23 such leaps before 63 bits end.
pub const CLOCK_START_MAX: u64 = 1 << 40;
/// Logs in one room: 50 nodes, each expelled and replaced some 80 times over.
pub const LOGS_PER_ROOM_MAX: usize = 4_096;
/// Runs of one room that wait for what comes before them. When full the newest is dropped and
/// fetched again, so that the wait always ends at its old end.
pub const PENDING_RUNS_PER_ROOM_MAX: usize = 256;
/// Bytes of pending runs, their large bodies included, over all rooms.
pub const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bodies of undelivered entries kept in memory so that delivery needs no read; past this the
/// reader goes to the store.
pub const WARM_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Items in one `Ordered` entry: small enough that its body is always inline.
pub const ORDERED_ITEMS_MAX: usize = 256;
/// Lanes of one node: it draws again only when two are equal.
pub const LANES_PER_NODE_MAX: usize = 16;
/// Roaming clients that wait for an era at once.
pub const ROAMING_MAX: usize = 1_024;
/// Messages that wait for the lobby of a mesh that this node has just joined.
pub const HELD_MAX: usize = 1_024;
/// Proofs of forks that are kept to be told to others.
pub const PROOFS_MAX: usize = 64;
/// A whole roster in one message: a frame with room for its envelope.
pub const ROSTER_BYTES_MAX: usize = FRAME_BYTES_MAX - 64 * 1024;
/// A roster that is kept over a restart; a larger one is not worth writing every second.
pub const ROSTER_KEPT_BYTES_MAX: usize = 256 * 1024;
/// How often a changed roster is written to the store.
pub const ROSTER_KEPT_EVERY: Duration = Duration::from_secs(1);
/// A run that has waited for so long is dropped: what it waits for may never come.
pub const PENDING_FOR: Duration = Duration::from_secs(60);
/// Eras named in one cut.
pub const CUT_ERAS_MAX: usize = 512;
/// Rooms this mesh may have, private ones of this node included. 10,000 rooms cost some 40 MiB.
pub const ROOMS_MAX: usize = 100_000;
/// Ephemeral rooms alive at once: their contents are memory.
pub const EPHEMERAL_ROOMS_MAX: usize = 1_024;
/// Of these, made at one node: so that the agents of one cannot leave none for the others.
pub const EPHEMERAL_ROOMS_PER_NODE_MAX: usize = 256;
/// Content bytes of all ephemeral rooms together at one node.
pub const EPHEMERAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Members of one room, over all nodes.
pub const MEMBERS_PER_ROOM_MAX: usize = 10_000;
/// Agents attached to one node.
pub const AGENTS_PER_NODE_MAX: usize = 10_000;
/// Rooms one agent is in.
pub const ROOMS_PER_AGENT_MAX: usize = 1_000;
/// Nodes whose rosters are kept.
pub const NODES_MAX: usize = 1_024;
/// An agent's id.
pub const AGENT_ID_BYTES_MAX: usize = 128;
/// An agent's or a room's name.
pub const NAME_BYTES_MAX: usize = 256;
/// A room's description, an agent's status detail.
pub const DESCRIPTION_BYTES_MAX: usize = 4_096;
/// Capabilities of one agent, and bytes of each.
pub const CAPABILITIES_MAX: usize = 64;
/// Mentions in one message.
pub const MENTIONS_MAX: usize = 256;
/// A client's dedup id.
pub const DEDUP_ID_BYTES_MAX: usize = 128;
/// Dedup ids remembered, the newest kept.
pub const DEDUP_IDS_MAX: usize = 65_536;
/// Rooms named in one digest message.
pub const DIGEST_ROOMS_MAX: usize = 8_192;
/// Spans named in one message.
pub const SPANS_MAX: usize = 512;
/// Runs sent in answer to one `Want`, in bytes: a frame with room for one more run and its bodies.
pub const WANT_REPLY_BYTES: usize = 512 * 1024;
/// Entries named in one `Ask`.
pub const ASK_ENTRIES_MAX: usize = 4_096;
/// Buckets that rooms are hashed into, for digests and for gossip topics.
pub const BUCKETS: usize = 64;

/// How often a node says that it lives.
pub const BEACON_EVERY: Duration = Duration::from_millis(300);
/// How often the engine looks at what has become due: the grain of all the times below.
pub const TICK: Duration = Duration::from_millis(100);
/// A sequencer counts as gone when it has not been heard for this long (`--takeover-after`).
pub const TAKEOVER_AFTER: Duration = Duration::from_millis(1_500);
/// How much later the next-ranked follower claims.
pub const TAKEOVER_RANK_STEP: Duration = Duration::from_millis(300);
/// How long a claimer waits for a veto.
pub const VETO_WAIT: Duration = Duration::from_millis(200);
/// At most one claim per this time, node and room.
pub const CLAIM_EVERY: Duration = Duration::from_secs(1);
/// When an author first asks for a number for its entry; doubles up to [`ASK_EVERY_MAX`].
pub const ASK_AFTER: Duration = Duration::from_millis(500);
/// The longest time between two asks for the same entry.
pub const ASK_EVERY_MAX: Duration = Duration::from_secs(2);
/// An author's node claims when its entry has had no number for this long, whatever its rank.
pub const NUMBER_WITHIN: Duration = Duration::from_secs(3);
/// Any node asks for a number for an entry that has had none for this long.
pub const FORLORN_AFTER: Duration = Duration::from_secs(6);
/// A node that was not called for this long was itself paused.
pub const PAUSED_AFTER: Duration = Duration::from_secs(1);
/// A node that was not stopped cleanly and hears nobody for this long opens a new era.
pub const ALONE_AFTER: Duration = Duration::from_secs(2);
/// How long content that nobody has is waited for before its number is left as a hole.
pub const HOLE_AFTER: Duration = Duration::from_secs(10);
/// And how long when a peer that is connected does not answer at all.
pub const HOLE_AFTER_SILENCE: Duration = Duration::from_secs(30);
/// A want that has not been answered is sent again, to the next peer.
pub const WANT_TIMEOUT: Duration = Duration::from_secs(1);
/// A node not heard for this long takes its agents with it.
pub const ROSTER_LEASE: Duration = Duration::from_secs(3);
/// How long a vanished agent's record is kept, so that it can reconnect anywhere (spec §2).
pub const RECONNECT_WITHIN: Duration = Duration::from_secs(120);
/// How long an ephemeral room that nobody has joined yet may stay empty.
pub const EPHEMERAL_EMPTY_FOR: Duration = Duration::from_secs(600);
/// How long a dedup id is remembered.
pub const DEDUP_FOR: Duration = Duration::from_secs(600);
/// Each step of a handover must be answered within this.
pub const HANDOVER_STEP: Duration = Duration::from_secs(1);
/// How far ahead a roaming client's cursor may be of the eras this node knows, in `c`.
pub const ROAM_ERAS_AHEAD_MAX: u32 = 1_024;
/// At most one era is claimed for roaming clients per room in this time.
pub const ROAM_CLAIM_EVERY: Duration = Duration::from_secs(10);
/// How far ahead of our own a peer's roster stamp may be; a clock further off is not followed.
pub const STAMP_AHEAD_MAX: Duration = Duration::from_secs(24 * 3_600);
