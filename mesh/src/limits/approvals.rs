//! Bounds of approvals.

use std::time::Duration;

/// The thing that an agent wants to do: a command with its arguments.
pub const APPROVAL_TEXT_BYTES_MAX: usize = 4_096;
/// Why somebody decided so.
pub const APPROVAL_REASON_BYTES_MAX: usize = 2_048;
/// Agents that may decide, if the one that asks names them.
pub const APPROVERS_MAX: usize = 32;
/// The shortest time in which somebody has to decide: one exchange with a person's program.
pub const APPROVAL_FOR_MIN: Duration = Duration::from_secs(1);
/// The time that somebody has to decide, if the agent does not say.
pub const APPROVAL_FOR: Duration = Duration::from_secs(2 * 60);
/// The longest: an agent that waits for a week is forgotten.
pub const APPROVAL_FOR_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Approvals of a room that wait for somebody: more than people look through. A node asks for no more.
pub const APPROVALS_OPEN_MAX: usize = 256;
/// Approvals of a room that are remembered, those that are decided included: 8 MiB if each text is as long as it may be. The
/// oldest of those that are decided, or too late, go first. Those that hold for always go last.
pub const APPROVALS_KEPT_MAX: usize = 2_048;
/// Approvals of a room that hold for always.
pub const APPROVAL_RULES_MAX: usize = 1_000;
/// Those of one node that want to decide about one approval: people try again, and a node is not to fill the memory.
pub const APPROVAL_ASKS_PER_LOG_MAX: usize = 16;
/// Those of all nodes.
pub const APPROVAL_ASKS_MAX: usize = 256;
/// As of things that one agent does: asks of a room that wait for its sequencer.
pub const APPROVAL_ASKS_OPEN_MAX: usize = 1_024;
/// How long a room is looked at in each tick for proofs of who asked and who decided. Later ones are found when something else
/// happens there, or somebody lists what waits.
pub const APPROVAL_PROOF_WITHIN: Duration = Duration::from_secs(60);
/// How long the asking node waits before it says again that nobody has decided in time.
pub const APPROVAL_AGAIN_AFTER_MS: u64 = 10_000;
/// Approvals whose time is up that are closed in one tick.
pub const APPROVALS_ENDED_AT_ONCE: usize = 64;
/// Approvals in one list.
pub const APPROVALS_LISTED_MAX: usize = 1_000;
