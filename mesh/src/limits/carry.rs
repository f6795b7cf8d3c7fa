//! Bounds of carrying for nodes that are never up together (`docs/decisions/carrying.md`).

use std::time::Duration;

use super::{FILE_BYTES_MAX, FRAME_BYTES_MAX, LOGS_PER_ROOM_MAX};

/// For how long something is carried, by the carrier's clock: a holiday, and no archive.
pub const CARRIED_FOR: Duration = Duration::from_hours(7 * 24);
/// Members that a node asks to carry at a time: with two, one that lies or breaks loses nothing.
pub const CARRIERS: usize = 2;
/// A node looks so often what it has to hand over.
pub const CARRY_EVERY: Duration = Duration::from_secs(1);
/// A carrier that does not answer is asked again after so long; so is a node that was offered something.
pub const CARRY_ASKED_AGAIN: Duration = Duration::from_secs(5);
/// All rooms are looked at so often: a node may have been shown a key meanwhile, or a carrier have room again.
pub const CARRY_RECHECKED: Duration = Duration::from_secs(60);
/// A debt to a connected node is stored, when all rooms are looked at, if it is as old: most are paid within two seconds.
pub const OWED_STORED_AFTER: Duration = Duration::from_secs(10);
/// Rooms that a node looks at in one go, of those that have changed.
pub const CARRY_ROOMS_AT_ONCE: usize = 256;
/// Nodes for which one room of one node is carried: those with the keys of a room are few.
pub const CARRIED_NODES_MAX: usize = 64;
/// Heads that a carrier remembers of one room of one node, of all nodes together: 64 nodes with 64 logs.
pub const CARRIED_HEADS_MAX: usize = 4_096;
/// Logs of which a carrier has something of one room of one node: with those of the heads they fit into the word by which it says so.
pub const CARRIED_LOGS_MAX: usize = 2 * LOGS_PER_ROOM_MAX - CARRIED_HEADS_MAX;
/// Rooms that a carrier offers in one message.
pub const CARRY_OFFERS_MAX: usize = 256;
/// Things in one message of what is carried: each is a run or a record.
pub const CARRIED_AT_ONCE_MAX: usize = 512;
/// Each thing that is carried, and each room, counts as so many bytes more: for its rows and its head in memory.
pub const CARRIED_OVERHEAD_BYTES: u64 = 512;
/// Each head of a node that something is for counts as so many.
pub const CARRIED_HEAD_BYTES: u64 = 64;
/// Each such node, beside its heads, as so many.
pub const CARRIED_NODE_BYTES: u64 = 128;
/// Rooms that one node has others carry: each is looked at once a second.
pub const CARRIED_ROOMS_MAX: usize = 4_096;
/// Members among whom the room for rooms is divided at the least: of few members each still leaves some to those who come.
pub const CARRY_SHARES_MIN: u64 = 4;
/// Bytes of files are taken up to this part of a member's share, all that it has carried counted: the rest is for what is said.
pub const CARRY_FILES_PART: u64 = 2;
/// Bytes of a file in one message of what is carried, sealed: with room for a seal.
pub const CARRIED_BYTES_MAX: usize = FILE_BYTES_MAX + 1_024;
/// A thing that is carried, encoded: it is given on in a message with more around it than the one in which it came.
pub const CARRIED_LOAD_BYTES_MAX: usize = FRAME_BYTES_MAX - 4 * 1_024;
/// Times in [`CARRY_RECHECKED`] that a carrier is handed files, though it had no room for the last: of half a MiB each.
pub const CARRY_FILES_TRIED: u32 = 8;
/// Things that one node carries: some 200 bytes of memory each.
pub const CARRIED_MAX: u64 = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_page() {
        assert_eq!(CARRIED_FOR, Duration::from_secs(7 * 24 * 3_600));
        assert_eq!((CARRIERS, CARRIED_NODES_MAX, CARRIED_HEADS_MAX), (2, 64, 4_096));
    }
}
