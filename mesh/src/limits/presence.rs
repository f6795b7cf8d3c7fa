//! Bounds of signs of life in a large mesh (`docs/decisions/presence.md`).

use std::time::Duration;

/// Living nodes, this one included, up to which all are linked and hear each other directly: the links that a node makes
/// (`FULL_MESH_PEERS` of the network), and itself. In a larger mesh life is known by hearsay.
pub const LINKED_MAX: usize = 51;
/// In a larger mesh a node gossips a beacon every so many [`crate::limits::BEACON_EVERY`] for each four nodes, so that all
/// together gossip some 13 a second, whatever their number.
pub const NODES_PER_GOSSIPED_TICK: usize = 4;
/// Links that a node tells every [`crate::limits::BEACON_EVERY`] who lives: so each of 50 is told every 5 s, and each
/// node is told ten times a second.
pub const HEARSAY_LINKS: usize = 3;
/// Beacons of one count of hearsay: those of a calm node, which leaves every other one out.
pub const TICKS_PER_COUNT: u64 = 2;
/// Counts go round: 1 to 15; 0 says that nothing was heard. Four bits for each node: half a kilobyte for 1,000.
pub const COUNTS: u64 = 15;
/// Counts that are taken for later ones than one's own; all others are older. So news may be 3.6 s late; and news that are
/// taken for later wrongly must be 5.4 s old, which nobody tells ([`HEARSAY_FRESH`]).
pub const COUNTS_AHEAD_MAX: u64 = 6;
/// What was news for longer than this is not told on: three counts of a node that lives.
pub const HEARSAY_FRESH: Duration = Duration::from_millis(1_800);
/// How far ahead of its time a node may be said to be: beacons of a node come every 300 ms and no more often, so a liar
/// cannot say now all that will be true for long. Beacons.
pub const HEARSAY_TICKS_AHEAD_MAX: u64 = 8;
/// Hearsay counts for two times the time between two beacons that a node gossips, and so long: one of them may be lost.
pub const HEARSAY_SLACK: Duration = Duration::from_secs(5);
/// A sequencer that lives by hearsay alone is called when an entry has waited so long for a number: many round trips.
pub const CALL_AFTER: Duration = Duration::from_millis(300);
/// A node that was called, and does not answer, is called again after so long.
pub const CALL_AGAIN: Duration = Duration::from_secs(3);
/// A node that is called gossips all of its beacons for so long: five, of which four may be lost.
pub const CALL_ANSWERED_FOR: Duration = Duration::from_millis(1_500);
/// A link with fewer links than this is told so often by each, and not in turns alone: of few who tell it in turns it would hear
/// too seldom.
pub const FEW_LINKS: u16 = 12;
/// See [`FEW_LINKS`]: twice, and once more, within the time that a node lives without a sign.
pub const FEW_TOLD_EVERY: Duration = Duration::from_millis(1_200);
/// One link is asked no more often, so that one that has always something to say does not take the place of others.
pub const LINK_ASKED_EVERY: Duration = Duration::from_millis(1_200);
/// Nodes of which one question wants to know: their beacons, some 200 bytes each, are checked by the one that asks, in
/// 5 ms.
pub const LIVES_ASKED_MAX: usize = 128;
