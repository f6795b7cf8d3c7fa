//! Every bound of this dialect, with its reason. Those of what the mesh keeps are the core's (`mesh::records::finder`).

use std::time::Duration;

/// Bytes of the body of a request. A whole keyring of a client may come as a certificate.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Bytes of a body that is too large that are read and thrown away before the answer: a client that is still writing would
/// not read it.
pub const DRAINED_BYTES_MAX: usize = 8 << 20;
/// A body of somebody who shows no valid key is complete within this time.
pub const STRANGERS_BODY_WITHIN: Duration = Duration::from_secs(10);
/// And one of an account.
pub const BODY_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a reason phrase: it has to fit one line of a terminal or two, and every proxy's buffer.
pub const REASON_BYTES_MAX: usize = 200;
/// Characters of a name, and of a job's title.
pub const NAME_CHARS_MAX: usize = 256;
/// See [`NAME_CHARS_MAX`].
pub const TITLE_CHARS_MAX: usize = NAME_CHARS_MAX;
/// Characters of a handle: an address of e-mail has no more than 254.
pub const HANDLE_CHARS_MAX: usize = 256;
/// Characters of a price.
pub const PRICE_CHARS_MAX: usize = 64;
/// Characters of a review.
pub const REVIEW_CHARS_MAX: usize = 4_000;
/// Jobs of an account at a time, deleted ones left out: a page shows them all.
pub const JOBS_AT_ONCE_MAX: usize = 100;
/// Milliseconds for which a certificate that was replaced is shown: mail that was signed with it is kept no longer.
pub const FORMER_FOR_MS: u64 = 90 * 24 * 3_600 * 1_000;
/// Levels of the JSON of a job's metadata.
pub const METADATA_DEPTH_MAX: usize = 32;

/// Rows of a page, unless a client asks for fewer: the client reads the first page alone.
pub const PAGE_ROWS_MAX: usize = 100;
/// Characters of a search.
pub const SEARCH_CHARS_MAX: usize = 1_000;
/// Terms of a search: each of them may be looked for in all jobs.
pub const SEARCH_TERMS_MAX: usize = 32;
/// Bytes of texts of jobs that are kept in memory for searches: some 100,000 jobs of a usual length. Those of jobs beyond it are
/// read from the disk by each search.
pub const SEARCH_BYTES_KEPT: usize = 128 << 20;
/// Records that are read at once, to bring the index up to the store.
pub const RECORDS_AT_ONCE: usize = 512;

/// An account that is not known here may be new elsewhere: its records are on their way.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked for meanwhile.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Accounts that are registered at this node from loopback: a program that runs wild fills no mesh in a day.
pub const REGISTRATIONS_NEAR_PER_DAY: usize = 1_000;
/// And from another address, in an hour.
pub const REGISTRATIONS_PER_HOUR: usize = 10;
/// And from all other addresses together, in a day.
pub const REGISTRATIONS_PER_DAY: usize = 1_000;
/// Writes of an account at this node.
pub const WRITES_PER_MINUTE: usize = 120;
/// Requests of an account at this node.
pub const REQUESTS_PER_MINUTE: usize = 1_200;
/// Requests without a key from an address that is not loopback.
pub const STRANGERS_REQUESTS_PER_MINUTE: usize = 600;
/// Accounts and addresses that are counted at a time. More are refused until a minute is over: they could only be counted
/// together.
pub const COUNTED_MAX: usize = 100_000;

/// Bytes of the body of a request that sends mail: its text, written as JSON.
pub const SEND_BODY_BYTES_MAX: usize = 1_280 << 10;
/// Mails of an account in a minute at this node.
pub const MAILS_PER_MINUTE: usize = 60;
/// Mails of an account in a day.
pub const MAILS_PER_DAY: usize = 1_000;
/// Mails in a mailbox up to which more are taken.
pub const MAILBOX_MAX: usize = 2_000;
/// Bytes of the texts in a mailbox.
pub const MAILBOX_BYTES_MAX: u64 = 64 << 20;
/// Mails in a mailbox that one sender may have there unread: nobody fills another one's mailbox alone.
pub const UNREAD_OF_ONE_SENDER_MAX: usize = 200;
/// Sessions of an account that are not over.
pub const SESSIONS_OPEN_MAX: usize = 500;
/// A text that is not here is waited for so long: it is asked of connected nodes.
pub const TEXT_WITHIN: Duration = Duration::from_millis(1_500);
/// Mail that went before it was read, of which senders are still to be told.
pub const ORPHANS_MAX: usize = 4_096;
/// Accounts whose opened subjects are kept in memory: the last that asked.
pub const READERS_MAX: usize = 1_024;
/// And for so long after their last request.
pub const READERS_FOR: Duration = Duration::from_secs(600);
/// A session is stale when nobody has written for so long. Milliseconds.
pub const STALE_AFTER_MS: u64 = 30 * 24 * 3_600 * 1_000;
/// An account is noted as presented here at most so often.
pub const PRESENTED_FOR: Duration = Duration::from_secs(3_600);
/// Mails that an account has got, the newest, in which its sessions are looked for: four full mailboxes. Others could send it more
/// by way of nodes that lie.
pub const SESSION_MAILS_MAX: usize = 4 * MAILBOX_MAX;

/// Rows of a page that a tool gives: a model reads them all.
pub const TOOL_PAGE_ROWS: usize = 20;
/// Bytes of a tool's result, as JSON, without the text of a mail. Hosts take 64 KiB.
pub const TOOL_RESULT_BYTES_MAX: usize = 36 << 10;
/// Bytes of a piece of a mail's text, as JSON: with the rest it fits into a result.
pub const TOOL_PIECE_BYTES_MAX: usize = 24 << 10;
/// Characters of a text in a tool's result; of a row's text where there are many; and of texts that would not fit otherwise.
pub const TOOL_TEXT_CHARS: [usize; 3] = [4_000, 500, 60];
/// Accounts that an agent may have had: each that it deleted costs two multiplications on a curve with each call.
pub const LINKED_MAX: u64 = 256;

/// Accounts of agents that a node is host of: it looks at each when somebody writes, and keeps a key of each.
pub const HOSTED_MAX: usize = 1_000;
/// Rooms of such an account, one for each correspondent.
pub const ROOMS_MAX: usize = 512;
/// Names that are tried for a room.
pub const ROOM_NAMES_TRIED: usize = 9;
/// Hosts look so often whether mail has come from other nodes: it costs a number that is read in memory.
pub const ROOMS_LOOK_EVERY: Duration = Duration::from_millis(250);
/// What could not be done now is tried again after this.
pub const ROOMS_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Others are asked at most so often whether the agent has got its mail: it is a question to all nodes of the room.
pub const RECEIPTS_ASKED_EVERY: Duration = Duration::from_secs(15);
/// The one who writes mail into a room stays attached for so long: it counts among the agents of its key.
pub const SPEAKER_STAYS: Duration = Duration::from_secs(5);
/// Messages of a room that are read at once, and pages of them after a start.
pub const ROOM_PAGE: u64 = 100;
/// See [`ROOM_PAGE`].
pub const ROOM_PAGES_MAX: usize = 100;
/// What is older, and was not sent or shown in a room while its host was down, is not any more. Milliseconds.
pub const ROOM_NEWS_FOR_MS: u64 = 7 * 24 * 3_600 * 1_000;
/// Bytes of a mail's text in a room: with the rest of the message it is below what a message may have.
pub const ROOM_TEXT_BYTES_MAX: usize = 192 << 10;
/// And of what is said there of a negotiation.
pub const ROOM_METADATA_BYTES_MAX: usize = 16 << 10;
/// Accounts of which it is remembered whose agent's they are: some 100 bytes each. Of one that is forgotten its agent's stop is known
/// again with its next call of a tool.
pub(crate) const AGENTS_NOTED_MAX: usize = 10_000;
