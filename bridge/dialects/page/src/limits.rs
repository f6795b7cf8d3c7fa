//! Every bound of the page, with its reason.

use std::time::Duration;

/// People who are signed in at this node: of more the one who signed in first has to do so again. Some 300 bytes each.
pub const SIGNED_IN_MAX: usize = 1_024;
/// The same of one key: of more the one of that key who signed in first. More than people share a key, and a small part of all.
pub const SIGNED_IN_PER_KEY_MAX: usize = 64;
/// The same of one network: people behind one address are many, and do not push out those of others.
pub const SIGNED_IN_PER_NETWORK_MAX: usize = 256;
/// A person is signed in for so long.
pub const SIGNED_IN_FOR: Duration = Duration::from_secs(12 * 3_600);
/// Links that sign somebody in, and were not opened yet: only holders of keys make them.
pub const LINKS_MAX: usize = 64;
/// The same of one key.
pub const LINKS_PER_KEY_MAX: usize = 16;
/// Such a link is good for so long, and once.
pub const LINK_GOOD_FOR: Duration = Duration::from_secs(60);
/// Attempts to sign in from one network in a minute: a key is not guessed, and a mistyped one is typed again.
pub const ATTEMPTS_PER_MINUTE: u32 = 20;
/// Networks whose attempts are counted. Of more the oldest is forgotten.
pub const NETWORKS_COUNTED_MAX: usize = 4_096;
/// A form that a person sends. Bytes: the longest message, written as a form has it, and the rest.
pub const FORM_BYTES_MAX: usize = 256 * 1024;
/// A person's name, in bytes: it becomes part of an agent's id.
pub const PERSON_BYTES_MAX: usize = 64;
/// Messages of a room that are shown at once.
pub const MESSAGES_SHOWN: u64 = 100;
/// Rooms of a list: the liveliest.
pub const ROOMS_SHOWN: usize = 500;
/// Agents of a list: the first by id.
pub const AGENTS_SHOWN: usize = 500;
/// Characters of a message that are shown; of a longer one the rest is left out, and said so.
pub const CHARS_SHOWN: usize = 20_000;
/// Messages of a search that are shown at once.
pub const FOUND_SHOWN: usize = 50;
/// Characters of one of these: the room has the rest.
pub const FOUND_CHARS_SHOWN: usize = 600;
/// Rows of the table of figures: of more samples some are left out.
pub const TABLE_ROWS_SHOWN: usize = 60;
/// Pages that are open and live at this node.
pub const LIVE_MAX: usize = 256;
/// The same of one person.
pub const LIVE_PER_PERSON_MAX: usize = 16;
/// The same of all people of one key: others are to have theirs.
pub const LIVE_PER_KEY_MAX: usize = 64;
/// How often it is looked what has changed of what tells nobody.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A live page that says nothing for so long is told that it is alive, and its key is looked at again.
pub const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// A person who has acted stays attached for so long after the last act or the last look at a page: as long as agents without a
/// connection may. A browser without script shows nothing more than that.
pub const PERSON_STAYS: Duration = Duration::from_secs(600);
/// Agents that wait for others, in the list of them: the longest first.
pub const WAITS_SHOWN: usize = 60;
/// Lines of the picture of them: of more nothing would be seen.
pub const WAIT_LINES_DRAWN: usize = 24;
/// Rooms of a list of which leader and turn are looked up: those in which somebody is, the liveliest first.
pub const ROOMS_DESCRIBED: usize = 20;
/// Rooms of which it is remembered how far a person has read: some 40 bytes each.
pub const ROOMS_READ_MAX: usize = 500;
/// A list of rooms is drawn again so soon after something was said in one.
pub const SOON: Duration = Duration::from_millis(100);
/// Votes of a room that are shown: the newest.
pub const VOTES_SHOWN: u64 = 20;
/// Tasks of each state that are shown: the newest.
pub const TASKS_SHOWN: usize = 50;
/// Approvals that are shown, of a room and of all: the first that wait.
pub const APPROVALS_SHOWN: usize = 20;
/// Challenges that stand at a claim, and capabilities and outcomes of an envelope.
pub const CARD_ROWS_SHOWN: usize = 20;
/// Characters of a field of an envelope that are shown.
pub const CARD_CHARS_SHOWN: usize = 4_000;
