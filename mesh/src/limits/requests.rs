//! Bounds of requests of agents, and of the fate of them.

use std::time::Duration;

/// A request without an answer is open for so long.
pub const REQUEST_OPEN_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Requests of one agent that a node remembers as open: more than any budget.
pub const REQUESTS_PER_AGENT_MAX: usize = 1_024;
/// The name of a rule by which a node refuses requests.
pub const RULE_BYTES_MAX: usize = 64;
/// For how long requests are kept for an agent that is away.
pub const REQUEST_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// An operator sets no less: an agent that is busy for a moment is to get its messages.
pub const REQUEST_TTL_MIN: Duration = Duration::from_secs(60);
/// And no more: bodies of free keys' rooms are kept for as long.
pub const REQUEST_TTL_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Requests of one agent that nobody was given yet.
pub const UNDELIVERED_PER_AGENT_MAX: usize = 1_000;
/// And their bodies.
pub const UNDELIVERED_BYTES_PER_AGENT_MAX: u64 = 16 * 1024 * 1024;
/// Those of all agents of a node: some 300 bytes of memory each.
pub const UNDELIVERED_MAX: usize = 100_000;
/// Requests of one author in a room of which it is known the fate of them: the newest, the same ones at every node. Of older
/// ones nothing is said any more.
pub const DELIVERIES_PER_LOG_MAX: usize = 256;
/// Words of nodes on one request: those of some nodes of the agent that is asked, and of the one of its author.
pub const DELIVERY_WORDS_MAX: usize = 16;
/// How long a node waits before it says that a request is here: most are handed over at once, and that says more.
pub const ARRIVED_AFTER: Duration = Duration::from_secs(1);
/// How much longer one waits where the agent is not: another one may say so.
pub const ARRIVED_AWAY_AFTER: Duration = Duration::from_secs(2);
/// And how much longer the next of those: so that not all nodes of a key say the same.
pub const ARRIVED_STEP: Duration = Duration::from_secs(1);
/// Requests of which that is still to be said. Of more it is not: others may, or the agent is given them.
pub const ARRIVALS_MAX: usize = 10_000;
/// A node that has just started hears from others what was handed over meanwhile, before it gives up requests.
pub const GIVE_UP_AFTER_START: Duration = Duration::from_secs(10);
/// How long it waits for entries that it knows others to have.
pub const GIVE_UP_BEHIND_AFTER: Duration = Duration::from_secs(60);
/// Requests that are given up, or handed over, at once: no turn takes long.
pub const REQUESTS_AT_ONCE_MAX: usize = 1_000;
/// How long nodes are asked about the fate of a message. One that does not answer by then is unknown.
pub const INQUIRY_FOR: Duration = Duration::from_secs(1);
/// Inquiries that run at once at one node. A further one asks nobody.
pub const INQUIRIES_MAX: usize = 256;
/// Questions of one peer within a tick that are answered: each looks at all connections in a room.
pub const INQUIRIES_ANSWERED_PER_TICK: u32 = 10;
/// Agents that one node names for one message: some 40 KiB, if their ids are as long as they may be.
pub const RECEIPT_AGENTS_MAX: usize = 256;
