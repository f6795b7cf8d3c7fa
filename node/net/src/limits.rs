//! Every bound and every clock of this crate, with its reason. Nothing a peer or the owner can grow
//! is unbounded; anything that does not fit is refused or dropped, never queued.
//!
//! Worst case in memory: [`INBOX_BYTES_MAX`] + [`PUBLISH_BYTES_MAX`] + per connected peer
//! [`OUTBOX_BYTES_MAX`], two frames in the hands of its link, and 1,024 payloads in its gossip
//! queue (they wait there for at most 5 s); and gossipsub's memory of `GOSSIP_HISTORY` heartbeats
//! of a second, to give messages again: messages passed on, 80 MiB at most (`RELAY_BURST_MAX`, and
//! the allowance earned meanwhile), and this node's own messages.

use std::time::Duration;

/// Largest direct frame, in bytes: a 1 MiB content plus the envelope the owner puts around it.
pub const FRAME_BYTES_MAX: usize = 1_280 * 1024 + 64 * 1024;
/// Largest gossip payload, in bytes. gossipsub compares its whole read buffer with its transmit
/// limit, so that payloads must stay far below it (`GOSSIP_TRANSMIT_MAX`) or a burst stalls the
/// connection for good.
pub const GOSSIP_BYTES_MAX: usize = 48 * 1024;
/// `max_transmit_size` and `max_control_message_size` of gossipsub, in bytes.
pub(crate) const GOSSIP_TRANSMIT_MAX: usize = 1024 * 1024;
/// Gossip messages queued per peer inside gossipsub (its default of 5,000 would be 240 MiB).
pub(crate) const GOSSIP_QUEUE_MAX: usize = 1024;
/// Most topics. All subscriptions travel in one message, and a peer's are kept in a set.
pub const TOPICS_MAX: u16 = 1024;
/// Topics that a peer may begin or cease to listen to while it is connected: twice as many as there
/// may be. Nodes say once what they listen to. [`TOPICS_PER_STRIKE`] more are a strike.
pub(crate) const TOPICS_CHANGED_MAX: u32 = 2 * TOPICS_MAX as u32;
/// See [`TOPICS_CHANGED_MAX`].
pub(crate) const TOPICS_PER_STRIKE: u32 = 256;

/// Direct frames waiting for one peer; the next one is refused with `Full`.
pub const OUTBOX_FRAMES_MAX: usize = 1024;
/// Bytes of direct frames waiting for one peer.
pub const OUTBOX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Queued frames are written together until they make this many bytes: one write, one packet run.
pub(crate) const COALESCE_BYTES: usize = 64 * 1024;
/// Bytes asked for in one read of a peer's stream.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// Things the owner has not taken from the inbox yet.
pub const INBOX_ITEMS_MAX: usize = 4096;
/// Bytes of frames and gossip in the inbox. Larger than one frame by far, so that peers do not take
/// turns.
pub const INBOX_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Frames of one peer that the owner may have and not be done with; more are not read from the
/// peer.
pub(crate) const PEER_FRAMES_MAX: usize = 256;
/// A longer frame counts as several: 8 MiB of one peer at most.
pub(crate) const PEER_FRAME_BYTES: usize = 32 * 1024;
/// The same of gossip that one peer passes on; more is dropped. Bursts of a busy mesh fit.
pub(crate) const PEER_GOSSIP_MAX: usize = 1024;
/// See [`PEER_FRAME_BYTES`].
pub(crate) const PEER_GOSSIP_BYTES: usize = 8 * 1024;
/// Gossip that one peer may pass on in a second, for long; and at once. One payload counts as one
/// for each [`PEER_GOSSIP_BYTES`] begun. In a mesh of fifty nodes some hundred come by each peer; a
/// node writes one message a turn and room.
pub(crate) const GOSSIP_PER_SECOND_MAX: u32 = 4_000;
/// See [`GOSSIP_PER_SECOND_MAX`].
pub(crate) const GOSSIP_BURST_MAX: u32 = 40_000;
/// Gossip of all others together that this node passes on in a second, for long; and at once. Half
/// of the allowance of a peer, and less: the rest is for this node's own gossip. A message that is
/// not passed on is still heard here.
pub(crate) const RELAY_PER_SECOND_MAX: u32 = GOSSIP_PER_SECOND_MAX / 2;
/// See [`RELAY_PER_SECOND_MAX`].
pub(crate) const RELAY_BURST_MAX: u32 = GOSSIP_BURST_MAX / 4;
/// A longer payload counts as several.
pub(crate) const RELAY_UNIT_BYTES: usize = 4 * 1024;
/// Heartbeats for which gossipsub remembers what went by: neighbours that have missed it ask within
/// three.
pub(crate) const GOSSIP_HISTORY: usize = 5;
/// A frame that has begun has to be there within this: the largest one over a link of 40 KiB a
/// second.
pub(crate) const FRAME_WITHIN: Duration = Duration::from_secs(30);
/// Slots of the inbox that gossip may not take: a flood of gossip must not delay frames, Up and
/// Down.
pub(crate) const INBOX_RESERVED_ITEMS: usize = 1024;

/// Gossip payloads accepted by `publish` and not yet handed to gossipsub.
pub const PUBLISH_ITEMS_MAX: usize = 1024;
/// Bytes of those payloads.
pub const PUBLISH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Verdicts on the way to the swarm: more than the inbox can hold tickets.
pub(crate) const VERDICTS_MAX: usize = 2 * INBOX_ITEMS_MAX;
/// Rare calls (`add_peers`, `penalise`) on the way to the swarm.
pub(crate) const COMMANDS_MAX: usize = 256;
/// Events of links for the swarm task, which never waits for them.
pub(crate) const LINK_EVENTS_MAX: usize = 1024;
/// Incoming frame streams accepted and not yet given to their links.
pub(crate) const STREAMS_MAX: usize = 256;
/// Incoming streams one link has not looked at; a peer that opens more is refused the rest.
pub(crate) const LINK_STREAMS_MAX: usize = 4;

/// Peers known at all, connected or not.
pub const PEERS_MAX: usize = 1024;
/// Of these, nodes that are known only because one peer speaks of them: twice what it announces at
/// once. With more the one that could be reached least makes room.
pub(crate) const HEARSAY_PER_PEER_MAX: usize = 2 * ANNOUNCED_PEERS_MAX;
/// Addresses kept per peer.
pub const PEER_ADDRESSES_MAX: usize = 8;
/// Configured addresses without a node id.
pub const SEEDS_MAX: usize = 256;
/// Learned peers are dialled until this many are connected: a full mesh up to here.
pub const FULL_MESH_PEERS: usize = 50;
/// Peers in one announcement; a full mesh and some.
pub(crate) const ANNOUNCED_PEERS_MAX: usize = 128;
/// Largest announcement, in bytes: all peers with all addresses and relays at 100 bytes each.
pub(crate) const ANNOUNCEMENT_BYTES_MAX: usize = 256 * 1024;
/// Announcements read per peer and [`ANNOUNCEMENT_WINDOW`]; more are skipped.
pub(crate) const ANNOUNCEMENTS_MAX: u32 = 64;
/// See [`ANNOUNCEMENTS_MAX`].
pub(crate) const ANNOUNCEMENT_WINDOW: Duration = Duration::from_secs(10);
/// Longest host name (RFC 1035).
pub(crate) const HOST_BYTES_MAX: usize = 253;
/// Learned addresses waiting for room in the inbox; the oldest is dropped, the owner hears of it
/// next time.
pub(crate) const LEARNED_MAX: usize = 1024;

/// Connections per peer: one dialled by each side, and one more for a peer that came back before
/// its dead connection was noticed.
pub(crate) const CONNECTIONS_PER_PEER_MAX: u32 = 3;
/// Relays at which a node keeps a place, so that others reach it through them: two, so that one may
/// go.
pub(crate) const PLACES: usize = 2;
/// Places in all: more than [`PLACES`] only at relays that know nodes which no other of them knows.
pub(crate) const PLACES_MAX: usize = 4;
/// Relays that one peer names for itself: its places, and some.
pub(crate) const PEER_RELAYS_MAX: usize = 2 * PLACES_MAX;
/// Members that are remembered for saying that one peer is reached through them: as many as are
/// connected.
pub(crate) const CARRIERS_MAX: usize = FULL_MESH_PEERS;
/// Relays of one peer of which it is remembered that they have had their turn: all that may be named.
pub(crate) const TRIED_MAX: usize = CARRIERS_MAX + PEER_RELAYS_MAX;
/// A place that was refused or lost is not asked for again before this.
pub(crate) const PLACE_AGAIN: Duration = Duration::from_secs(2);
/// Places that this node gives to others.
pub(crate) const RESERVED_MAX: usize = 256;
/// Of these, of one peer: one for each of its connections.
pub(crate) const RESERVED_PER_PEER_MAX: usize = CONNECTIONS_PER_PEER_MAX as usize;
/// A place is asked for anew before this has passed.
pub(crate) const RESERVATION_LASTS: Duration = Duration::from_secs(3600);
/// Circuits that this node carries at once: a full mesh of nodes of which half can reach nobody
/// directly has some 300.
pub(crate) const CIRCUITS_MAX: usize = 512;
/// Of these, of one peer, from it and to it: to all of a full mesh, twice, as both ends dial.
pub(crate) const CIRCUITS_PER_PEER_MAX: usize = 2 * FULL_MESH_PEERS;
/// A circuit ends after this: made anew, it is as a connection that was lost.
pub(crate) const CIRCUIT_LASTS: Duration = Duration::from_secs(30 * 24 * 3600);
/// Circuits and places that one peer may ask for at once.
pub(crate) const CIRCUIT_BURST: u32 = 128;
/// One more after this.
pub(crate) const CIRCUIT_REFILL: Duration = Duration::from_secs(1);
/// Bytes of all circuits together that a node carries in a second, unless it is told otherwise: two
/// thirds of a line of 100 Mbit/s. The rest is for its own links.
pub const RELAY_BYTES_PER_SECOND: u64 = 8 * 1024 * 1024;
/// Time without bytes of circuits that is made up for: an alarm of the system is late by a few
/// milliseconds, and must not make them slower.
pub(crate) const PACE_BURST: Duration = Duration::from_millis(100);
/// Until a relay has opened a circuit: its stream to us, and one to the other end.
pub(crate) const CIRCUIT_TIMEOUT: Duration = Duration::from_secs(3);
/// First wait before a peer that is reached through a relay is dialled directly again; doubles up to
/// [`DIRECT_MAX`].
pub(crate) const DIRECT_MIN: Duration = Duration::from_secs(1);
/// See [`DIRECT_MIN`]. The relayed link is good enough meanwhile.
pub(crate) const DIRECT_MAX: Duration = Duration::from_secs(60);
/// A circuit beside a direct connection is closed when the link has gone over to that, and at the
/// latest after this: the frames that are under way then are lost, like over any lost connection.
pub(crate) const MOVE_WITHIN: Duration = Duration::from_secs(10);
/// Inbound connections, each of pending and established.
pub(crate) const INBOUND_MAX: u32 = 128;
/// Connections in total.
pub(crate) const CONNECTIONS_MAX: u32 = 512;
/// Dials under way at once.
pub(crate) const DIALS_MAX: usize = 32;
/// Substreams per connection: gossip, ping, identify and frames need about ten.
pub(crate) const SUBSTREAMS_MAX: usize = 64;
/// New connections one address may make at once, refilled by [`INBOUND_REFILL`]. Not for loopback.
pub(crate) const INBOUND_BURST: u32 = 32;
/// One connection more per this time and address.
pub(crate) const INBOUND_REFILL: Duration = Duration::from_millis(500);
/// Addresses whose connection rate is remembered.
pub(crate) const INBOUND_ADDRESSES_MAX: usize = 4096;

/// Of these, handshakes under way from one address: others are not to wait for a dialler that is
/// silent. Not for loopback.
pub(crate) const PENDING_PER_ADDRESS_MAX: usize = 8;
/// Showing a key, which comes first: a round trip.
pub(crate) const MEET_TIMEOUT: Duration = Duration::from_secs(2);

/// Invitations whose keys the door knows: each is tried for a connection that has no key of the
/// mesh.
pub const INVITATIONS_MAX: usize = 64;
/// The answer to a guest: a ticket, or why not.
pub const ADMISSION_BYTES_MAX: usize = 8 * 1024;
/// Read at once of the first bytes: the beginning of a negotiation is some 30 bytes.
pub(crate) const PRIVATE_FIRST_BYTES: usize = 256;
/// Bytes encrypted and not yet written, per connection.
pub(crate) const PRIVATE_BYTES: usize = 16 * 1024;
/// TCP, pre-shared key, noise and yamux together.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Of these, TCP: a first attempt and a second one after a second. Later ones of the system would
/// come too seldom after a cut has been mended.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of one message over WebSocket, as it is written: a copy of them is made.
pub(crate) const WEB_WRITE_BYTES: usize = 64 * 1024;
/// Bytes of one that is taken. Proxies may put several together.
pub(crate) const WEB_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that are read at once: kept for each connection.
pub(crate) const WEB_READ_BYTES: usize = 16 * 1024;
/// Starts of one node that are told apart: more than run at once.
pub(crate) const STARTS_MAX: usize = 4;
/// Signs of life of an older start that show that it runs beside the newer one. Of one the answer may have been
/// under way.
pub(crate) const TWIN_SIGNS: u32 = 2;
/// For so long two nodes with one identity are named after they were last seen to run both: longer than it takes until
/// they dial again.
pub(crate) const TWIN_FOR: Duration = Duration::from_secs(60);
/// How often they are told, which costs them their connections.
pub(crate) const TWIN_SAID_EVERY: Duration = Duration::from_secs(30);
/// Looking up a host name.
pub(crate) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Opening the frame stream of a link.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// A session that could not go on over a better connection tries again after so long.
pub(crate) const MOVE_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// A round trip that was asked for: what takes longer is lost.
pub const ECHO_WITHIN: Duration = Duration::from_secs(4);
/// Streams of one peer on which its round trips are answered at once: one, and one that is about to end.
pub(crate) const ECHOES_PER_PEER_MAX: usize = 2;
/// A ping each this long.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long libp2p waits for an answer; longer than [`DEAD_AFTER`], which decides.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection without an answered ping, or with a write that waits, for this long is dead. Ours
/// to measure, because libp2p's ping forgives one failure and then negotiates a new stream: 23 s in
/// all. Two answers may be late. After a cut that is mended TCP sends again only after as long as
/// the cut has lasted, or so: by then it is sooner to dial anew.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(7);
/// A connection that was there when its other end dialled anew is dead if it has not answered a
/// ping by then, which takes a [`PING_INTERVAL`] and a round trip.
pub(crate) const DOUBTED_FOR: Duration = Duration::from_millis(3_500);
/// A connection that has answered no ping for so long could not carry anything: two were lost.
pub(crate) const SILENT_FOR: Duration = Duration::from_secs(5);
/// If our own clock was stopped for this long (suspended, or no CPU), nobody is judged for it.
pub(crate) const OWN_PAUSE: Duration = Duration::from_secs(2);
/// libp2p closes idle connections; ours live until they break.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The system has named the addresses that this machine has at the start.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// Addresses of this machine that come and go are gathered for so long before everything is dialled
/// anew: a network comes with several.
pub(crate) const MOVE_DELAY: Duration = Duration::from_millis(250);
/// First wait before a dial is repeated; doubles up to [`REDIAL_MAX`].
pub(crate) const REDIAL_MIN: Duration = Duration::from_millis(200);
/// See [`REDIAL_MIN`].
pub(crate) const REDIAL_MAX: Duration = Duration::from_secs(15);
/// The longest wait while this machine seems to have no network: it is back within 5 s of having one.
pub(crate) const OFFLINE_MAX: Duration = Duration::from_secs(2);
/// The longest wait while a link to the peer was lost not long ago ([`LOST_RECENTLY`]): a split is
/// over within 5 s of its mending, the handshake of some six round trips included.
pub(crate) const REDIAL_LOST_MAX: Duration = Duration::from_secs(1);
/// See [`REDIAL_LOST_MAX`]: a peer that is away for longer need not be back as fast.
pub(crate) const LOST_RECENTLY: Duration = Duration::from_secs(15 * 60);
/// Times that a peer may open its frame stream within [`STRIKES_WINDOW`]; each one more is a
/// strike. The opener waits longer each time (see [`REOPEN_MIN`]): a correct node comes to some
/// twenty.
pub(crate) const STREAMS_PER_WINDOW_MAX: u32 = 64;
/// First wait before broken streams of a living connection are opened again; doubles up to
/// [`REOPEN_MAX`].
pub(crate) const REOPEN_MIN: Duration = Duration::from_millis(20);
/// See [`REOPEN_MIN`].
pub(crate) const REOPEN_MAX: Duration = Duration::from_secs(5);
/// How often the swarm task looks at its clocks while something is due or under way: the grain of
/// times shorter than seconds.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// And while nothing is: only silence is looked for then, which takes seconds ([`OWN_PAUSE`],
/// [`DEAD_AFTER`]).
pub(crate) const TICK_CALM: Duration = Duration::from_millis(500);
/// Changes to our announcement are gathered for this long: a mesh that starts changes it all the
/// time.
pub(crate) const ANNOUNCE_DELAY: Duration = Duration::from_millis(200);
/// An announcement that was lost or refused is made again.
pub(crate) const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(60);
/// A peer that is up, answers, and is subscribed to nothing for this long, or cannot be sent gossip
/// for this long, is connected anew: gossipsub disables itself on a connection after five failed
/// substreams, silently.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(10);
/// Gossip that cannot be sent is reported each second; a longer silence means that it recovered.
pub(crate) const SLOW_GAP: Duration = Duration::from_secs(3);
/// How long gossip may wait in a peer's queue.
pub(crate) const GOSSIP_QUEUE_TIME: Duration = Duration::from_secs(5);
/// How long a node that is out and comes again is connected, to be told so. It may do without: it
/// need not open its frame stream.
pub(crate) const OUT_TOLD_WITHIN: Duration = Duration::from_secs(2);
/// How long a node that is shut out is not let in again, to be told so again.
pub(crate) const SHUT_OUT_FOR: Duration = Duration::from_secs(30);
/// How long `shutdown`, and the end of a shut-out node's connections, waits for queued frames to be
/// written.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Strikes within [`STRIKES_WINDOW`] that make a peer refused.
pub const STRIKES_MAX: u32 = 8;
/// See [`STRIKES_MAX`].
pub const STRIKES_WINDOW: Duration = Duration::from_secs(60);
/// The text of a peer's fault that is kept, in characters: a line for its operator.
pub const FAULT_CHARS_MAX: usize = 160;
/// First time of refusal; doubles with each up to [`REFUSAL_MAX`].
pub const REFUSAL_MIN: Duration = Duration::from_secs(10);
/// See [`REFUSAL_MIN`].
pub const REFUSAL_MAX: Duration = Duration::from_secs(600);

/// Nodes of other versions of which it is remembered that it was said: as many as connections, or
/// so. Of more it is said again.
pub const STRANGERS_MAX: usize = 256;
