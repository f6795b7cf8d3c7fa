//! Every bound of the core, with its reason. Everything that a peer or a client can grow is bounded here.

mod accounts;
mod approvals;
mod carry;
mod closing;
mod files;
mod given;
mod members;
mod once;
mod presence;
mod requests;
mod schedules;
mod search;
mod stopped;
mod streams;
mod tasks;
mod threads;
mod waits;
pub use accounts::*;
pub use approvals::*;
pub use carry::*;
pub use closing::*;
pub use files::*;
pub use given::*;
pub use members::*;
pub use once::*;
pub use presence::*;
pub use requests::*;
pub use schedules::*;
pub use search::*;
use std::time::Duration;
pub use stopped::*;
pub use streams::*;
pub use tasks::*;
pub use threads::*;
pub use waits::*;

// Entries and runs.

/// Content of one message: the largest that any tier of keys may be allowed.
pub const CONTENT_BYTES_MAX: usize = 262_144;
/// An entry's body: content, and a quarter as much again for metadata of clients.
pub const BODY_BYTES_MAX: usize = CONTENT_BYTES_MAX + 65_536;
/// A sealed body is so much longer: by its nonce, and by the tag that says that it is whole.
pub const SEAL_BYTES: usize = 12 + 16;
/// A body before it is sealed: the same in every room, sealed or not.
pub const PLAIN_BODY_BYTES_MAX: usize = BODY_BYTES_MAX - SEAL_BYTES;
/// Bodies up to this travel inside their run; larger ones on their own, by place and hash.
pub const BODY_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Entries under one seal: a receiver has to hold them all before it can check any.
pub const RUN_ENTRIES_MAX: usize = 256;
/// Encoded bytes of one run, so that it fits a gossip payload with room to spare.
pub const RUN_BYTES_MAX: usize = 32 * 1024;
/// No log gets this long: leaves room to add to any log seq that is read.
pub(crate) const LOG_SEQ_MAX: u64 = u64::MAX >> 3;
/// How far one entry's clock may be above its predecessor's: a jump further is not an accident.
pub const CLOCK_STEP_MAX: u64 = 1 << 20;
/// The highest clock a log may begin with. A newcomer to a long room starts where the room is, so the step limit
/// cannot apply to a first entry; this leaves 2^23 such leaps before 63 bits end.
pub const CLOCK_START_MAX: u64 = 1 << 40;
/// Logs in one room: 50 nodes, each expelled and replaced some 80 times over.
pub const LOGS_PER_ROOM_MAX: usize = 4_096;
/// Runs of one room that wait for entries before them. When full the newest is dropped and fetched again, so that the
/// wait always ends at its old end.
pub const PENDING_RUNS_PER_ROOM_MAX: usize = 256;
/// Bytes of pending runs, their large bodies included, over all rooms.
pub const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A run that has waited for so long is dropped: the entry that it waits for may never come.
pub const PENDING_FOR: Duration = Duration::from_secs(60);
/// Bodies of undelivered entries that are kept in memory, so that delivery needs no read. Beyond this the reader goes
/// to the store.
pub const WARM_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Content bytes of all ephemeral rooms together at one node: they are memory.
pub const EPHEMERAL_BYTES_MAX: usize = 128 * 1024 * 1024;

// Messages between nodes.

/// One gossip payload (measured: frames near gossipsub's own limit stall the connection).
pub const GOSSIP_BYTES_MAX: usize = 48 * 1024;
/// One frame on a direct stream: bounds the memory that one peer's message takes. The largest is the text of a mail.
pub const FRAME_BYTES_MAX: usize = 1_280 * 1024;
/// Buckets that rooms are hashed into, for digests and for gossip topics: a frame of digests has one number for each.
pub const BUCKETS: usize = 64;
/// Rooms named in one digest message: some 300 KiB.
pub const DIGEST_ROOMS_MAX: usize = 8_192;
/// Spans named in one message: more are asked for with the next one.
pub const SPANS_MAX: usize = 512;
/// Bytes of runs in answer to one `Want`: a frame with room for one more run and its bodies.
pub const WANT_REPLY_BYTES: usize = 512 * 1024;
/// A want that has not been answered is sent again, to the next peer.
pub const WANT_TIMEOUT: Duration = Duration::from_secs(1);
/// Entries named in one `Ask`: some 200 KiB if each is a span of its own.
pub const ASK_ENTRIES_MAX: usize = 4_096;
/// Bytes of a program's version, as a node tells it: for people, on one line.
pub const VERSION_BYTES_MAX: usize = 40;
/// Proofs of forks that are kept to be told to others: a run each, so some 2 MiB.
pub const PROOFS_MAX: usize = 64;
/// A turn without effects waits for so long until it is committed with another: a few commits' time, so that a peer
/// that causes only such turns costs a hundred commits a second at most.
pub const COMMIT_DEFERRED_FOR: Duration = Duration::from_millis(10);
/// Rows that wait so, beside those of the last turn.
pub const COMMIT_DEFERRED_ROWS_MAX: usize = 256;

// Order: numbers, eras, sequencers.

/// Items in one `Ordered` entry: small enough that its body is inline, unless it names entries of some 190 logs or
/// more.
pub const ORDERED_ITEMS_MAX: usize = 256;
/// Eras named in one cut: those that changed since the cut before.
pub const CUT_ERAS_MAX: usize = 512;
/// Entries that one claim of an era names as seen: for each era of its cut, and for the one that it follows, the
/// entry that gave its numbers and the entry that gave it away.
pub const CLAIM_SEEN_MAX: usize = 2 * (CUT_ERAS_MAX + 1);
/// Handovers of an era that are kept with it: written whenever it gives numbers, so few.
pub const HANDOVERS_PER_ERA_MAX: usize = 16;
/// Lanes of one node: it draws again only when two are equal.
pub const LANES_PER_NODE_MAX: usize = 16;
/// A sequencer counts as gone when it has not been heard for this long (`--takeover-after`).
pub const TAKEOVER_AFTER: Duration = Duration::from_millis(1_500);
/// How much later the next-ranked follower claims: so that one claims alone, as a rule.
pub const TAKEOVER_RANK_STEP: Duration = Duration::from_millis(300);
/// How long a claimer waits for a veto.
pub const VETO_WAIT: Duration = Duration::from_millis(200);
/// At most one claim per this time, node and room.
pub const CLAIM_EVERY: Duration = Duration::from_secs(1);
/// How long the sequencer of an era lets a claim of a task lie that was made in an earlier era: its answer may be on
/// the way.
pub const CLAIM_SETTLE: Duration = Duration::from_secs(1);
/// When an author first asks for a number for its entry; doubles up to [`ASK_EVERY_MAX`].
pub const ASK_AFTER: Duration = Duration::from_millis(500);
/// The longest time between two asks for the same entry.
pub const ASK_EVERY_MAX: Duration = Duration::from_secs(2);
/// An author's node claims when its entry has had no number for this long, whatever its rank.
pub const NUMBER_WITHIN: Duration = Duration::from_secs(3);
/// Any node asks for a number for an entry that has had none for this long.
pub const FORLORN_AFTER: Duration = Duration::from_secs(6);
/// How long content that nobody has is waited for before its number is left as a hole.
pub const HOLE_AFTER: Duration = Duration::from_secs(10);
/// The same where all members are connected and have said that they have no such body any more: none can come back
/// with it.
pub const GONE_AFTER: Duration = Duration::from_secs(1);
/// The same when a peer that is connected does not answer at all.
pub const HOLE_AFTER_SILENCE: Duration = Duration::from_secs(30);

// Liveness.

/// How often the engine looks for work that has become due: the grain of all times here.
pub const TICK: Duration = Duration::from_millis(100);
/// How often a node says that it lives.
pub const BEACON_EVERY: Duration = Duration::from_millis(300);
/// While all living nodes are connected and heard, and nothing has changed, every so many beacons one is sent.
pub const SAID_WHILE_CALM: u64 = 2;
/// And of those that could be, one of so many is gossiped: more often than [`TAKEOVER_AFTER`], so that a node that is
/// not heard directly is not taken for dead.
pub const GOSSIPED_WHILE_CALM: u64 = 4;
/// While the beacons of all living nodes show that they are calm, too, one of so many.
pub const GOSSIPED_WHILE_STILL: u64 = 16;
/// A node that has said two beacons in a row is not calm for so long.
pub const RESTLESS_FOR: Duration = Duration::from_secs(3);
/// A node that was not heard directly for so long may not hear this node either: a beacon is missing.
pub const HEARD_DIRECTLY_WITHIN: Duration = Duration::from_secs(1);
/// A node that was not called for this long was itself paused.
pub const PAUSED_AFTER: Duration = Duration::from_secs(1);
/// A node that was not stopped cleanly and hears nobody for this long opens a new era.
pub const ALONE_AFTER: Duration = Duration::from_secs(2);

// Records.

/// Content of one record: within a gossip payload, and a frame has many.
pub const RECORD_BODY_BYTES_MAX: usize = 8 * 1024;
/// Kinds of records in one space: each has a digest in one message.
pub const RECORD_COLLECTIONS_MAX: usize = 64;
/// Parts of a set that are compared one by one: 40 KiB of digests at most, and of 16,000 records each part has some 16.
pub const RECORD_BUCKETS: u16 = 1_024;
/// Records in one message, small ones: [`WANT_REPLY_BYTES`] of deletions are some 2,500.
pub const RECORDS_IN_MESSAGE_MAX: usize = 2_048;
/// A message of at least twice as many can be verified on two threads: to start the second one takes as long as two signatures.
pub const RECORDS_IN_HALF_MIN: usize = 16;
/// Heads in one message: some 100 KiB.
pub const RECORD_HEADS_MAX: usize = 1_024;
/// Messages of heads in answer to one comparison: the next one brings the rest.
pub const RECORD_PAGES_MAX: usize = 4;
/// A bucket with few heads, or none, counts as so many: all buckets of a node that has no records fill all its messages, each
/// of which is answered by [`RECORDS_GIVEN_MAX`] records.
pub const RECORD_BUCKET_COUNTS: usize = RECORD_PAGES_MAX;
/// Where fewer buckets differ each counts as more, and at most as so many: sixteen are told in one message.
pub const RECORD_BUCKET_COUNTS_MAX: usize = 64;
/// Records that are sent to one peer in answer to one message of heads, or to one question for records.
pub const RECORDS_GIVEN_MAX: usize = RECORD_HEADS_MAX;
/// How long a peer's records may differ before they are looked into: news under way explain it first.
pub const RECORDS_COMPARE_EVERY: Duration = Duration::from_secs(1);
/// A peer whose records differ as they did before, and this node's as well, is compared with less and less often: one of
/// the two may have to wait for news of a key, or for its clock.
pub const RECORDS_COMPARE_EVERY_MAX: Duration = Duration::from_secs(8);
/// New records in one message from which on its sender is taken for one that has many more: gossip of one client's changes is
/// mostly less, and an answer that was cut at [`WANT_REPLY_BYTES`] is at least 64 of the largest. Such a peer is compared with
/// again when the round is over: some 4,000 small records come in one.
pub const RECORDS_GO_ON_FROM: usize = 32;
/// A round is over, too, when nothing has come for so long: a peer that has nothing for a part does not answer.
pub const RECORDS_GO_ON_AFTER: Duration = Duration::from_millis(500);
/// How far a record's stamp may be ahead of this node's clock. One that is further ahead is not taken now, and is asked for again.
pub const RECORD_AHEAD_MAX: Duration = Duration::from_secs(24 * 3_600);

// Details of rooms.

/// A room's title.
pub const ROOM_TITLE_BYTES_MAX: usize = 256;
/// Settings of one room up to which its clients are not refused.
pub const ROOM_SETTINGS_MAX: usize = 16;
/// The name of a setting.
pub const SETTING_NAME_BYTES_MAX: usize = 64;
/// Its value, as JSON.
pub const SETTING_BYTES_MAX: usize = 4_096;
/// Titles, descriptions and states of one key's rooms, deletions included, up to which its clients are not refused: three of
/// twelve hundred rooms. See [`PROFILE_RECORDS_PER_KEY_MAX`].
pub const DETAIL_RECORDS_PER_KEY_MAX: usize = 3_600;
/// The same of all keys that one node minted: of a member that makes up keys some 7 MiB of memory and 60 MiB of disk.
pub const DETAIL_RECORDS_PER_NODE_MAX: usize = 14_400;
/// The same of settings.
pub const SETTING_RECORDS_PER_KEY_MAX: usize = 3_600;
/// The same of settings.
pub const SETTING_RECORDS_PER_NODE_MAX: usize = 14_400;

// Contents that travel apart.

/// Contents in one question to a peer: four messages of the largest at once, or all small ones.
pub const CONTENTS_ASKED_MAX: usize = 64;
/// A content that did not come is asked for again, from another peer, after so long. As long after all have said that they lack it.
pub const CONTENT_ASKED_AGAIN: Duration = Duration::from_secs(5);
/// How many times that wait doubles, while nobody has it: to 80 s. A member can sign many contents of which there are no bytes.
/// A peer that comes is asked at once.
pub const CONTENT_WAIT_DOUBLES: u32 = 4;

// Profiles of agents.

/// Records of one key's profiles up to which its clients are not refused, deletions included: six fields of six hundred agents.
/// A set keeps ten ninths of this. Each takes some 70 bytes of memory.
pub const PROFILE_RECORDS_PER_KEY_MAX: usize = 3_600;
/// The same of all keys that one node minted: a member that makes up keys takes 1.1 MiB of others' memory, and 72 MiB of
/// their disks.
pub const PROFILE_RECORDS_PER_NODE_MAX: usize = 14_400;
/// Pairs that one key can say it is half of: as many as a node follows, with room for the other half to say some.
pub const PAIR_RECORDS_PER_KEY_MAX: usize = 3_600;
/// The same of all keys for which one node answers.
pub const PAIR_RECORDS_PER_NODE_MAX: usize = 14_400;
/// The same of cards.
pub const CARD_RECORDS_PER_KEY_MAX: usize = 3_600;
/// The same of cards. Larger: 130 MiB of disk.
pub const CARD_RECORDS_PER_NODE_MAX: usize = 14_400;
/// Cards of one agent.
pub const CARDS_PER_AGENT_MAX: usize = 64;
/// Text of a card.
pub const CARD_TEXT_BYTES_MAX: usize = 2_048;
/// Tags of a card.
pub const CARD_TAGS_MAX: usize = 16;
/// Each of them, and a card's visibility.
pub const CARD_TAG_BYTES_MAX: usize = 64;
/// An agent's sign: an emoji of several code points.
pub const EMOJI_BYTES_MAX: usize = 16;
/// The address of an agent's picture.
pub const AVATAR_BYTES_MAX: usize = 1_024;
/// The provider of an agent's model, and the model.
pub const MODEL_BYTES_MAX: usize = 128;

// Rooms and clients.

/// Rooms this mesh may have, private ones of this node included. 10,000 rooms cost some 40 MiB.
pub const ROOMS_MAX: usize = 100_000;
/// Direct rooms that one node knows, of all pairs that it follows. They are not listed where [`ROOMS_MAX`] counts.
pub const DIRECT_ROOMS_MAX: usize = 100_000;
/// Direct rooms in which an agent that registers is seated because something waits for it there: the newest ones.
pub const DIRECT_ROOMS_SEATED_MAX: usize = 200;
/// Direct rooms that agents left by themselves, as far as a node remembers.
pub const DIRECT_ROOMS_LEFT_MAX: usize = 4_096;
/// Direct rooms of one pair of keys: a key that others were shown must not fill the node of the other key.
pub const DIRECT_ROOMS_PER_PAIR_MAX: usize = 16_384;
/// Ephemeral rooms alive at once: their contents are memory.
pub const EPHEMERAL_ROOMS_MAX: usize = 1_024;
/// Of these, made at one node: so that the agents of one node leave some for the others.
pub const EPHEMERAL_ROOMS_PER_NODE_MAX: usize = 256;
/// How long an ephemeral room that nobody has joined yet may stay empty.
pub const EPHEMERAL_EMPTY_FOR: Duration = Duration::from_secs(600);
/// The announcement of a private ephemeral room, sealed: name, description, ids and some to spare.
pub const SEALED_FACTS_BYTES_MAX: usize = NAME_BYTES_MAX + DESCRIPTION_BYTES_MAX + 1_024;
/// Nodes whose rosters are kept: more than any mesh is meant to have.
pub const NODES_MAX: usize = 1_024;
/// Agents attached to one node.
pub const AGENTS_PER_NODE_MAX: usize = 10_000;
/// Members of one room, over all nodes.
pub const MEMBERS_PER_ROOM_MAX: usize = 10_000;
/// Rooms one agent is in.
pub const ROOMS_PER_AGENT_MAX: usize = 1_000;
/// An agent's id: it is in every message of the agent.
pub const AGENT_ID_BYTES_MAX: usize = 128;
/// An agent's or a room's name: it is in every list.
pub const NAME_BYTES_MAX: usize = 256;
/// A room's description, an agent's status detail.
pub const DESCRIPTION_BYTES_MAX: usize = 4_096;
/// Capabilities of one agent.
pub const CAPABILITIES_MAX: usize = 64;
/// Bytes of a capability.
pub const CAPABILITY_BYTES_MAX: usize = 256;
/// Inboxes of agents at one node.
pub const INBOXES_MAX: usize = 10_000;
/// Of these, of agents of one key: the one that was used longest ago goes, so that a key does not take the places of others.
pub const INBOXES_PER_KEY_MAX: usize = 1_000;
/// Items of one inbox, the newest kept: some 50 bytes of the disk each.
pub const INBOX_ITEMS_MAX: u64 = 10_000;
/// Older messages that an inbox gets when it is made.
pub const INBOX_FILED_MAX: usize = 1_000;
/// Messages of others that count for an agent's next conversation ([`crate::api::budget`]): the newest ones.
pub const HANDED_PER_AGENT_MAX: usize = 64;
/// A message that was handed to an agent counts for so long for the conversations that it begins: a stranger that hands it one
/// at the end of a long chain must not keep it from beginning any for longer.
pub const HANDED_COUNTS_FOR: Duration = Duration::from_secs(300);
/// Agents, and direct rooms, whose budgets a node remembers. Beyond them those are forgotten of which nothing counts any more,
/// and then some of the others: they count anew.
pub const BUDGETS_KEPT_MAX: usize = 10_000;
/// Mentions in one message.
pub const MENTIONS_MAX: usize = 256;
/// The id of a message that a message answers, as its author wrote it.
pub const REPLY_TO_BYTES_MAX: usize = 128;
/// A client's dedup id.
pub const DEDUP_ID_BYTES_MAX: usize = 128;
/// Dedup ids remembered, the newest kept.
pub const DEDUP_IDS_MAX: usize = 65_536;
/// How long a dedup id is remembered: so long clients may repeat a send.
pub const DEDUP_FOR: Duration = Duration::from_secs(600);
/// How long a send waits for the copies that it asked for, unless it says otherwise: some hundred round trips.
pub const COPIES_WITHIN: Duration = Duration::from_secs(2);
/// The longest that a send may wait for copies: less than clients wait for an answer. They may ask again.
pub const COPIES_WITHIN_MAX: Duration = Duration::from_secs(20);
/// Messages that wait for copies at one node. A further one is answered as soon as it has its number, with the copies
/// that are known by then.
pub const COPIES_WANTED_MAX: usize = 4_096;
/// Messages named in one question for copies, or in its answer: some 40 KiB.
pub const COPIES_NAMED_MAX: usize = 512;
/// A peer that has not said that it holds a message is asked again so often: the question, the answer or the entry may
/// have been lost.
pub const COPIES_ASKED_EVERY: Duration = Duration::from_millis(500);
/// Messages that one peer asks for and that are not here yet. The peer asks again for those on top.
pub const COPIES_AWAITED_PER_PEER_MAX: usize = 512;
/// For how long such a question is kept. It is asked again before that, as long as anybody waits.
pub const COPIES_AWAITED_FOR: Duration = Duration::from_secs(2);
/// Messages that wait for the lobby of a mesh that this node has just joined.
pub const HELD_MAX: usize = 1_024;
/// The most members that are told after every message whose turn it is. All of them are named each time, to each of
/// them, so this grows with their square: in larger rooms they are told now and then, and of the last turn always.
pub const TURNS_TOLD_UP_TO: usize = 128;
/// How often members of larger rooms are told.
pub const CROWD_TOLD_EVERY: Duration = Duration::from_secs(1);
/// A whole roster in one message: a frame with room for its envelope.
pub const ROSTER_BYTES_MAX: usize = 960 * 1024;
/// Changes of one node's roster that came before those they follow: as many as can be under way by several ways at
/// once. Dropped ones are asked for, after a beacon.
pub const ROSTER_CHANGES_EARLY_MAX: usize = 16;
/// A roster that is kept over a restart; a larger one is not worth writing every second.
pub const ROSTER_KEPT_BYTES_MAX: usize = 256 * 1024;
/// A roster up to this is written with each change when agents come and go or take seats: those of a hundred agents.
/// A larger one, and other changes of agents, are written only every so often.
pub const ROSTER_KEPT_AT_ONCE_BYTES_MAX: usize = 16 * 1024;
/// How often a changed roster is written to the store.
pub const ROSTER_KEPT_EVERY: Duration = Duration::from_secs(1);
/// Roster news that a node keeps to say them again to a peer that lacks the last few: a peer that lacks more gets the
/// whole.
pub const ROSTER_NEWS_KEPT: usize = 64;
/// Bytes of these.
pub const ROSTER_NEWS_KEPT_BYTES: usize = 64 * 1024;
/// A node not heard for this long takes its agents with it.
pub const ROSTER_LEASE: Duration = Duration::from_secs(3);
/// How long a vanished agent's record is kept, so that it can reconnect anywhere.
pub const RECONNECT_WITHIN: Duration = Duration::from_secs(120);
/// How far ahead of our own a peer's roster stamp may be; a clock further off is not followed.
pub const STAMP_AHEAD_MAX: Duration = Duration::from_secs(24 * 3_600);

// Agent ids, keys and private rooms.

/// Stable agent ids that are owned by keys: for ever, so some 200 bytes each.
pub const AGENT_IDS_MAX: usize = 100_000;
/// Of these, those that a key with a limit may claim at one node, for each agent that it may have connected there.
/// Ids are never given back: one key must not use up those of all.
pub const AGENT_IDS_PER_AGENT: usize = 10;
/// API keys that the directory names, revoked ones included: each costs some 200 bytes, for ever.
pub const KEYS_MAX: usize = 65_536;
/// The last of these, which operators alone may mint: strangers who sign up leave them.
pub const KEYS_FOR_OPERATORS: usize = 4_096;
/// Vouchers of one node that count: keys that were shown at it, for ever, 50 bytes each. Messages of further keys show as not
/// verified.
pub const VOUCHERS_PER_NODE_MAX: usize = 16_384;
/// Vouchers of all nodes that count: a member that makes keys up must not fill others' memory.
pub const VOUCHERS_MAX: usize = 262_144;
/// How long local clients are not told of a message, and of what follows it in its room, for its author's voucher may be on its
/// way: as long as a round trip between any two places, and a little more.
pub const VOUCHER_WITHIN: Duration = Duration::from_millis(100);
/// Events in all rooms that wait so, 64 MiB of content at the very most; with more of them nothing waits.
pub const VOUCHER_WAITS_MAX: usize = 256;
/// After a voucher of a node has not come, none of it is waited for: a member that makes up keys delays a room by
/// [`VOUCHER_WITHIN`] once in this time, and not with each message.
pub const VOUCHERS_IN_VAIN_FOR: Duration = Duration::from_secs(60);
/// Nodes that are remembered so. A member with more identities than this could delay rooms more often.
pub const VOUCHERS_IN_VAIN_MAX: usize = 4_096;
/// A key and those whose belongings have come to it, one after the other: all are tried when an agent id says by its form
/// whose it is.
pub const KEY_LINE_MAX: usize = 64;
/// Secrets of a key that was replaced, sealed to its successor: 96 bytes, and room for a later form.
pub const INHERITANCE_BYTES_MAX: usize = 256;
/// An operator's name for a key.
pub const KEY_LABEL_BYTES_MAX: usize = 128;
/// The person or program that a key is for.
pub const KEY_OWNER_BYTES_MAX: usize = 128;
/// Characters of a key's text, before its public halves are shown to others: who has these can try texts, as many as
/// they like, on machines of their own.
pub const KEY_TEXT_CHARS_MIN: usize = 32;
/// Keys whose private rooms one node follows: its tokens of them are told to all.
pub const KEYS_FOLLOWED_MAX: usize = 1_024;
/// Pairs of keys whose direct rooms a node follows. More than keys: one key can be half of many.
pub const PAIRS_FOLLOWED_MAX: usize = 4_096;
/// Shared rooms that a node follows.
pub const SHARED_FOLLOWED_MAX: usize = 1_024;
/// Shared rooms of one key. Others can give a node's agents rooms that they have not asked for: no more than these.
pub const SHARED_PER_KEY_MAX: usize = 128;
/// Keys that have a shared room, its maker's among them; those that were taken out count.
pub const SHARED_KEYS_MAX: usize = 64;
/// The purpose of a shared room, when it is made: each of its keys has a sealed copy, and all nodes keep these in memory.
pub const SHARED_DESCRIPTION_BYTES_MAX: usize = 512;
/// Records of one key that give the secrets of its shared rooms to keys; those that take keys out are counted apart.
pub const ROOM_KEYS_PER_KEY_MAX: usize = 1_600;
/// The same of all keys for which one node answers: some 8 MB at the most.
pub const ROOM_KEYS_PER_NODE_MAX: usize = 6_400;
/// Mailboxes of keys that a node holds: those of the keys that it follows, and of keys of its own.
pub const MAILBOXES_MAX: usize = 2 * KEYS_FOLLOWED_MAX;
/// Groups that a node follows, of all kinds: their tokens are in its roster.
pub const GROUPS_FOLLOWED_MAX: usize = KEYS_FOLLOWED_MAX + PAIRS_FOLLOWED_MAX + SHARED_FOLLOWED_MAX;
/// Listed rooms of new groups that clients do not see before their history is here: they are looked at in every turn.
/// Others are shown at once, and their history comes.
pub const UNREAD_ROOMS_MAX: usize = 1_024;
/// How often nodes that follow a key compare their heads of its private rooms.
pub const FOLLOWERS_COMPARE_EVERY: Duration = Duration::from_secs(2);
/// How long a registration waits for the private rooms of a key that is new to this node.
pub const PRESENTED_WITHIN: Duration = Duration::from_secs(1);
/// Registrations that wait for these at once; more go on without.
pub const PRESENTING_MAX: usize = 1_024;
/// For how long the rooms of such a key are shown only when their history is here: a room that is listed later is
/// new.
pub const KEY_NEW_FOR: Duration = Duration::from_secs(10);

// Names of rooms.

/// Eras of which is known when each numbered a room, so that all nodes give it one name: the lowest. An honest mesh
/// numbers an entry twice at most for each side of a split that had it.
pub const NAME_ERAS_MAX: usize = 64;
/// Entries of one era of a directory of which is known which numbers they gave, so that these do not count when a log
/// is cut: the last ones, some 8 bytes each, written with each of them.
pub const GIVEN_PER_ERA_MAX: usize = 256;

// Members of the mesh, and the secret of its connections.

/// Logs that one removal names, that of the directory first: a body of some 200 KiB. A node that wrote in more rooms
/// leaves or is retired only by force; an expelled one loses its entries in the others.
pub const PARTED_LOGS_MAX: usize = 8_192;
/// And those of all removals: some 80 bytes each, for ever.
pub const PARTED_LOGS_KEPT: usize = 262_144;
/// How long a node that leaves waits for a member to say that it has its last entry.
pub const LEAVE_HEARD_WITHIN: Duration = Duration::from_secs(2);
/// Secrets of its connections that a node keeps besides the newest: with these it meets members that were away while
/// the secret changed.
pub const FORMER_SECRETS_MAX: usize = 4;
/// Nodes that a secret names as left out: 8 KiB with each. In a mesh that expelled more, the directory alone leaves
/// out the others.
pub const EXPELLED_NAMED_MAX: usize = 256;
/// How often peers are told which secret a node has: makes good for messages that were dropped on the way.
pub const ABOUT_EVERY: Duration = Duration::from_secs(60);
/// Secrets of others that a node takes within [`SECRETS_TAKEN_WITHIN`]: each is written to the disk before anything
/// else is done, and passed on to all. At once no more than are kept, so that a member that was away just now has one
/// of these. The highest is offered again with [`ABOUT_EVERY`].
pub const SECRETS_TAKEN_MAX: usize = FORMER_SECRETS_MAX;
/// See [`SECRETS_TAKEN_MAX`].
pub const SECRETS_TAKEN_WITHIN: Duration = Duration::from_secs(240);
/// How long nodes that a secret leaves out are not given it, though the directory knows nothing of it: the entry that
/// expels them may be on its way.
pub(crate) const SECRET_HELD_BACK_FOR: Duration = Duration::from_secs(10);

// Peers that write without effect.

/// Authors of whom entries without effect are counted.
pub const BLAMED_MAX: usize = 256;
/// So many entries without effect of one author are noise: a node that loses races for eras writes a few.
pub const NOISE_FROM: u32 = 32;
/// If they come within this time.
pub const NOISE_WITHIN: Duration = Duration::from_secs(10);
/// So long less is heard of it, then.
pub const NOISE_LASTS: Duration = Duration::from_secs(10);
/// One of its pushed messages in so long is heard from each peer that has it: twenty a second, enough for a node at
/// which people or agents talk.
pub const NOISE_HEARD_EVERY: Duration = Duration::from_millis(50);
/// From so many peers: a node has fewer connections.
pub const NOISY_HEARD_OF_MAX: usize = 128;

// Starting and stopping.

/// How long a node that stops waits for the numbers of messages whose senders it has not answered yet: three round
/// trips of 150 ms one way. The daemon gives it 2 s for everything.
pub const ANSWERED_WHILE_STOPPING: Duration = Duration::from_millis(900);
/// Each step of a handover must be answered within this.
pub const HANDOVER_STEP: Duration = Duration::from_secs(1);
/// The successor may not know yet a room that a node made just before it stops: a refused offer is made again every
/// [`TICK`] for so long. No longer: a refusal for another reason keeps nobody from stopping.
pub const OFFERED_AGAIN_FOR: Duration = Duration::from_millis(500);

// Old bodies.

/// No body is dropped, and none that was is taken for lost, that is younger than this by the node's own clock:
/// entries under way must get to everybody first.
pub const RETENTION_MIN: Duration = Duration::from_secs(3_600);
/// How far an entry's stamp may be ahead of this node's clock and still say when it was written. The body of one that
/// is further ahead goes with the next old one, or it would be kept for ever.
pub const STAMP_AHEAD_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// A node drops nothing old before it has been up for this long: its clock may still be set, and it may not yet know
/// which keys there are.
pub const PRUNE_FIRST_AFTER: Duration = Duration::from_secs(600);
/// How often some room's oldest bodies are dropped. One room at a time: a store drops at most some hundred bodies
/// then, so that no commit takes long.
pub const PRUNE_EVERY: Duration = Duration::from_millis(250);
/// How far the wall clock may move against the monotonic one since the start before nothing old is dropped any more:
/// only a clock that is right can tell the age of a body.
pub const CLOCK_JUMP_MAX: Duration = Duration::from_secs(24 * 3_600);

// Barriers: questions to peers before a node says no (`docs/decisions/barrier.md`).

/// How long a barrier waits at least for peers and for entries that they named: a connection that lost a packet has
/// sent it again by then.
pub const BARRIER_WITHIN: Duration = Duration::from_millis(250);
/// And so many round trips, if that is more: to ask, to fetch, to fetch entries that those refer to, and one to
/// spare.
pub const BARRIER_ROUND_TRIPS: u32 = 4;
/// But no longer: a client waits.
pub const BARRIER_WITHIN_MAX: Duration = Duration::from_secs(1);
/// At most one barrier begins in this time, however fast peers answer: questions are a quarter of those that a peer
/// may ask at all.
pub const BARRIER_EVERY: Duration = Duration::from_millis(2);
/// A peer that was silent for a whole barrier is not asked for so long, unless it is heard to answer.
pub const BARRIER_LEFT_OUT_FOR: Duration = Duration::from_secs(10);
/// A peer that was asked nothing for so long is asked an empty question: its round trip is to be known when a client
/// waits.
pub const BARRIER_MEASURED_EVERY: Duration = Duration::from_secs(3);
/// Barriers that one command waits for: one shows that there is a room, the next brings its contents; and one more,
/// if the first showed another node that has it. All together take no longer than [`BARRIER_WITHIN_MAX`].
pub const BARRIER_ROUNDS_MAX: u8 = 3;
/// Commands that wait for a barrier at once. Commands that begin a vote or an election are refused when they are so
/// many.
pub const BARRIER_WAITING_MAX: usize = 1_024;
/// As many of these may be looking for something that is not known here; more are refused at once.
pub const BARRIER_SEEKING_MAX: usize = 768;
/// And as many may come from clients that are no agents yet.
pub const BARRIER_STRANGERS_MAX: usize = 128;
/// Rooms that one question names: all private rooms of a key, as a rule.
pub const BARRIER_ROOMS_MAX: usize = 1_024;
/// Heads in one answer: some 750 KiB. The room that would be beyond is left out, and those after it.
pub const BARRIER_HEADS_MAX: usize = 16_384;
/// Answers that one peer gets within one [`TICK`]: twice as many as an honest one asks for.
pub const BARRIER_ANSWERS_PER_TICK: u32 = 100;
/// Rooms of an agent, the last that it joined, in which an id is looked for that is not known here.
pub const ID_ROOMS_MAX: usize = 64;
/// Logs whose places an id is compared with: each comparison is a hash.
pub const ID_LOGS_MAX: usize = 1_024;

// Clients from other nodes (`docs/numbering.md`, Roaming).

/// Roaming clients that wait for an era at once.
pub const ROAMING_MAX: usize = 1_024;
/// Stretches of a delivery log that are remembered of one reader: one for each place to which it came from another
/// node, or jumped. A reader may be told again about forgotten ones.
pub const SERVED_STRETCHES_MAX: usize = 8;
/// How far ahead a roaming client's cursor may be of the eras this node knows, in `c`.
pub const ROAM_ERAS_AHEAD_MAX: u32 = 1_024;
/// At most one era is claimed for roaming clients per room in this time.
pub const ROAM_CLAIM_EVERY: Duration = CLAIM_EVERY;
/// How long a roaming client waits until peers were asked for the claim of its cursor's era, or until it is its turn
/// to have one claimed. Then it is told to come again.
pub const ROAM_ASK_FOR: Duration = Duration::from_secs(1);
/// Meanwhile peers are asked so often for their heads of the room.
pub const ROAM_ASK_EVERY: Duration = Duration::from_millis(250);
/// For so long after its start a node that has not met all members again does not judge cursors that it does not
/// know.
pub const ROAM_START_FOR: Duration = Duration::from_secs(5);
/// How long a node waits before it enters an era, for other numbers of entries that it gives later than the era's cut says
/// (`docs/numbering.md`, rule 4): [`ASK_AFTER`], a question, and a takeover of [`NUMBER_WITHIN`] if nobody answers.
pub const ENTER_WITHIN: Duration = Duration::from_secs(5);
/// Eras that a node opens in a room for roaming clients within [`ROAM_ERAS_WITHIN`]: enough for one cursor that is as
/// far ahead as one may be, and so few that clients which make cursors up need five days to use up a room's 262,143.
pub const ROAM_ERAS_MAX: u32 = 2 * ROAM_ERAS_AHEAD_MAX;
/// See [`ROAM_ERAS_MAX`].
pub const ROAM_ERAS_WITHIN: Duration = Duration::from_secs(3_600);
/// Entries that are delivered below the cursor of a client from an era that is not known here, and are to get a
/// number above it: at least one era can be opened for them all.
pub const ROAM_BELOW_MAX: usize = 4_096;

// Votes, elections and tasks.

/// Memory of all rooms' votes, elections and tasks at which agents of this node write no more of them. Acts of other
/// nodes' agents are taken all the same: each node asks this of its own.
pub const ACTS_BYTES_MAX: usize = 512 * 1024 * 1024;
/// A vote's title.
pub const VOTE_TITLE_BYTES_MAX: usize = 1_024;
/// Options of a vote: a reader can still compare them.
pub const VOTE_OPTIONS_MAX: usize = 64;
/// Each of them.
pub const VOTE_OPTION_BYTES_MAX: usize = 256;
/// Votes that one agent may have open in a room at once: so that it leaves some for the others.
pub const VOTES_OPEN_PER_AGENT_MAX: usize = 16;
/// Votes that agents of one node may have open in a room at once. Generous: a vote in which somebody never casts
/// stays open for [`VOTE_FOR_MAX`].
pub const VOTES_OPEN_PER_LOG_MAX: usize = 256;
/// Votes of one author that are known in a room: the newest. Older ones are forgotten, the same ones on every node;
/// their author opens none over one that is not over.
pub const VOTES_PER_LOG_MAX: usize = 1_024;
/// Memory that these take: most of it is the agents that may vote.
pub const VOTES_BYTES_PER_LOG_MAX: usize = 16 * 1024 * 1024;
/// And those of all authors in a room. Honest nodes stay far below: a vote that does not fit any more is unknown to
/// this node for good, as if a part of the room were missing.
pub const VOTES_BYTES_PER_ROOM_MAX: usize = 64 * 1024 * 1024;
/// Ballots in the name of one agent, each in another log: one for each side of a split, and then some. With the two
/// bounds above it bounds all ballots that are known.
pub const VOTE_BALLOTS_EACH_MAX: usize = 16;
/// Closes of one vote that are known: the lowest by position, and its author's.
pub const VOTE_CLOSES_MAX: usize = 16;
/// Ballots opened by one entry: small enough that its body is always inline.
pub const VOTE_SHOWN_AT_ONCE_MAX: usize = 128;
/// How long a vote may be open; one without a deadline is closed then.
pub const VOTE_FOR_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long after the deadline the node that opened a vote takes in ballots that are on their way.
pub const VOTE_COLLECT: Duration = Duration::from_secs(1);
/// How long it does so while a node that lived not long ago is away, or has just come back: a split that heals before
/// the deadline is noticed within a second, a link of 150 ms one way needs two more, and the ballots of the other
/// side [`VOTE_REUNITE`].
pub const VOTE_COLLECT_APART: Duration = Duration::from_secs(5);
/// How long after a node was heard again its ballots are on their way: the two compare their logs, and fetch the
/// missing entries.
pub const VOTE_REUNITE: Duration = Duration::from_secs(2);
/// A node that is silent for longer is not waited for: links to it are not tried every second any more, either.
pub const VOTE_AWAY_FOR: Duration = Duration::from_secs(15 * 60);
/// A node that has just started, or was paused, hears others for so long before it closes a vote of its own whose
/// deadline has passed: ballots were cast while it was away.
pub const VOTE_LISTEN: Duration = Duration::from_secs(3);
/// How long others leave a vote that should be closed to the node that opened it, though that is silent. Longer than
/// its own wait.
pub const VOTE_CLOSE_GRACE: Duration = Duration::from_secs(7);
/// How much later the next-ranked node closes it.
pub const VOTE_CLOSE_RANK_STEP: Duration = Duration::from_secs(1);
/// How long the ballots that count are waited for before the result is told without them.
pub const VOTE_SHOW_WITHIN: Duration = Duration::from_secs(10);
/// A result that is older is no news to a node that joined, or was away: it can be asked for.
pub const VOTE_NEWS_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Candidates of one election. A room with more members holds none.
pub const ELECTION_CANDIDATES_MAX: usize = 1_000;
/// Elections of one room that one node started: some 10,000 of ten candidates, or 25,000 of any number if they are
/// always the same. All of them are kept, because decisions are judged by them.
pub const ELECTIONS_BYTES_PER_LOG_MAX: usize = 16 * 1024 * 1024;
/// Elections of one room that one agent starts within [`ELECTIONS_COUNTED_FOR`]: so that it leaves some for the
/// others.
pub const ELECTIONS_PER_AGENT_MAX: usize = 100;
/// See [`ELECTIONS_PER_AGENT_MAX`].
pub const ELECTIONS_COUNTED_FOR: Duration = Duration::from_secs(3_600);
/// How long candidates of an election may decline.
pub const ELECTION_WINDOW: Duration = Duration::from_secs(2);
/// How long nodes have for their next step in an election, once it is due.
pub const ELECTION_GRACE: Duration = Duration::from_secs(1);
/// How much longer others leave a step to a node that lives.
pub const ELECTION_PATIENCE: Duration = Duration::from_secs(3);
/// How much later the next-ranked node does a step that another one should have done.
pub const ELECTION_RANK_STEP: Duration = Duration::from_millis(300);
/// An election that has no result after so long is over: another one may begin.
pub const ELECTION_DEAD_AFTER: Duration = Duration::from_secs(15);
/// An election that is older when it comes is history: nobody does anything in it. Clocks of nodes may differ by as
/// much.
pub const ELECTION_FRESH_FOR: Duration = Duration::from_secs(60);
/// A task's title.
pub const TASK_TITLE_BYTES_MAX: usize = 1_024;
/// The note of an update of a task.
pub const TASK_NOTE_BYTES_MAX: usize = 4_096;
/// Acts that one update of a task replaces: fields are seldom set in more than two places at once.
pub const TASK_OVER_MAX: usize = 64;
/// Tasks of one room that one node made; the oldest are forgotten for new ones.
pub const TASKS_PER_LOG_MAX: usize = 4_096;
/// Memory of one room's tasks: those of some nodes that all use up their share.
pub const TASKS_BYTES_PER_ROOM_MAX: usize = 128 * 1024 * 1024;
/// Tasks in one answer, the newest; and their bytes, so that a client can read it as one frame.
pub const TASKS_LISTED_MAX: usize = 1_000;
/// See [`TASKS_LISTED_MAX`].
pub const TASKS_LISTED_BYTES_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn are_as_said(limits: &[(&str, usize, usize)]) {
        for (what, limit, said) in limits {
            assert_eq!(limit, said, "{what}");
        }
    }

    /// `docs/protocol/mesh.md`: what is beyond these is refused, so versions may not differ here.
    #[test]
    fn what_nodes_take_from_each_other_is_as_the_protocol_says() {
        are_as_said(&[
            ("content of a message", CONTENT_BYTES_MAX, 262_144),
            ("body of an entry", BODY_BYTES_MAX, 327_680),
            ("body before it is sealed", PLAIN_BODY_BYTES_MAX, 327_652),
            ("body within its run", BODY_INLINE_BYTES_MAX, 8_192),
            ("entries of a run", RUN_ENTRIES_MAX, 256),
            ("bodies of a run", RUN_BYTES_MAX, 32_768),
            ("gossip payload", GOSSIP_BYTES_MAX, 49_152),
            ("message", FRAME_BYTES_MAX, 1_310_720),
            ("answer to a Want", WANT_REPLY_BYTES, 524_288),
            ("runs, spans or bodies that a message names", SPANS_MAX, 512),
            ("rooms of one Digests", DIGEST_ROOMS_MAX, 8_192),
            ("spans of one Ask", ASK_ENTRIES_MAX, 4_096),
            ("logs in a room", LOGS_PER_ROOM_MAX, 4_096),
            ("rooms", ROOMS_MAX, 100_000),
            ("pending runs of a room", PENDING_RUNS_PER_ROOM_MAX, 256),
            ("pending bytes", PENDING_BYTES_MAX, 67_108_864),
            ("logs that one removal names", PARTED_LOGS_MAX, 8_192),
            ("logs that all removals name", PARTED_LOGS_KEPT, 262_144),
            ("items of one Ordered", ORDERED_ITEMS_MAX, 256),
            ("eras of one cut", CUT_ERAS_MAX, 512),
            ("entries that one claim names as seen", CLAIM_SEEN_MAX, 1_026),
            ("handovers of one era", HANDOVERS_PER_ERA_MAX, 16),
            ("lanes of one node", LANES_PER_NODE_MAX, 16),
            ("nodes", NODES_MAX, 1_024),
            ("agents of a node", AGENTS_PER_NODE_MAX, 10_000),
            ("rooms of an agent", ROOMS_PER_AGENT_MAX, 1_000),
            ("agent id", AGENT_ID_BYTES_MAX, 128),
            ("name", NAME_BYTES_MAX, 256),
            ("description", DESCRIPTION_BYTES_MAX, 4_096),
            ("ephemeral rooms", EPHEMERAL_ROOMS_MAX, 1_024),
            ("ephemeral rooms made at one node", EPHEMERAL_ROOMS_PER_NODE_MAX, 256),
            ("their contents", EPHEMERAL_BYTES_MAX, 134_217_728),
            ("what is said of a sealed one", SEALED_FACTS_BYTES_MAX, 5_376),
            ("keys whose rooms a node follows", KEYS_FOLLOWED_MAX, 1_024),
            ("pairs whose rooms a node follows", PAIRS_FOLLOWED_MAX, 4_096),
            ("shared rooms that a node follows", SHARED_FOLLOWED_MAX, 1_024),
            ("what a program calls itself", VERSION_BYTES_MAX, 40),
            ("buckets", BUCKETS, 64),
            ("rooms of one AskFrontier", BARRIER_ROOMS_MAX, 1_024),
            ("heads of one Frontier", BARRIER_HEADS_MAX, 16_384),
            ("content of a record", RECORD_BODY_BYTES_MAX, 8_192),
            ("records of one message", RECORDS_IN_MESSAGE_MAX, 2_048),
            ("heads of one message", RECORD_HEADS_MAX, 1_024),
            ("buckets of records", RECORD_BUCKETS.into(), 1_024),
        ]);
        assert_eq!((CLOCK_STEP_MAX, CLOCK_START_MAX), (1_048_576, 1_099_511_627_776));
        assert_eq!(LOG_SEQ_MAX, 2_305_843_009_213_693_951, "below 2^61");
        assert_eq!((STAMP_AHEAD_MAX, RECORD_AHEAD_MAX), (DAY, DAY));
    }

    /// `docs/decisions`, by page.
    #[test]
    fn what_is_kept_and_told_is_what_was_decided() {
        are_as_said(&[
            ("votes.md: votes of an author", VOTES_PER_LOG_MAX, 1_024),
            ("votes.md: memory of these", VOTES_BYTES_PER_LOG_MAX, 16_777_216),
            ("votes.md: those that are open", VOTES_OPEN_PER_LOG_MAX, 256),
            ("votes.md: those of one agent", VOTES_OPEN_PER_AGENT_MAX, 16),
            ("votes.md: ballots of an agent", VOTE_BALLOTS_EACH_MAX, 16),
            ("tasks.md: tasks of a log", TASKS_PER_LOG_MAX, 4_096),
            ("tasks.md: writes that were replaced", TASK_WRITES_KEPT, 16),
            ("tasks.md: memory of these", TASK_REPLACED_BYTES_MAX, 8_192),
            ("clients.md: tasks in an answer", TASKS_LISTED_MAX, 1_000),
            ("clients.md: bytes of these", TASKS_LISTED_BYTES_MAX, 1_048_576),
            ("elections.md: memory of a node's", ELECTIONS_BYTES_PER_LOG_MAX, 16_777_216),
            ("membership.md: entries that gave numbers", GIVEN_PER_ERA_MAX, 256),
        ]);
        assert_eq!(u128::from(STAMP_AHEAD_MS_MAX), DAY.as_millis(), "retention.md: no age");
        assert_eq!(CLOCK_JUMP_MAX, DAY, "retention.md: nothing is dropped");
        assert_eq!((VOTE_FOR_MAX, VOTE_NEWS_FOR), (DAY * 30, DAY), "votes.md");
    }

    #[test]
    fn what_is_bounded_has_room_for_what_it_is_made_of() {
        let acts =
            TASKS_BYTES_PER_ROOM_MAX + VOTES_BYTES_PER_ROOM_MAX + ELECTIONS_BYTES_PER_LOG_MAX;
        for (what, part, whole) in [
            ("a roster in its envelope is a message", ROSTER_BYTES_MAX + 1_024, FRAME_BYTES_MAX),
            ("one room's acts do not use up what is there for all", acts, ACTS_BYTES_MAX),
            ("some large messages are delivered unread", 8 * BODY_BYTES_MAX, WARM_BODY_BYTES_MAX),
        ] {
            assert!(part <= whole, "{what}: {part} of {whole}");
        }
    }
}
