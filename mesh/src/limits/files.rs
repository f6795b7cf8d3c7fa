//! Bounds of the files of rooms, and of the keys that write them.

use std::time::Duration;

/// A file. Sealed it is 28 bytes longer; a message has one at least.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// Its path.
pub const FILE_PATH_BYTES_MAX: usize = 512;
/// Its media type.
pub const MEDIA_TYPE_BYTES_MAX: usize = 128;
/// Files of one room up to which its clients are not refused.
pub const FILES_PER_ROOM_MAX: usize = 1_000;
/// All files of one room, as they are written. Bytes.
pub const ROOM_FILES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// All files of one key in one space, as they are written. Bytes.
pub const KEY_FILES_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Records of files of one key, deletions included, up to which its clients are not refused. A set keeps ten ninths of this,
/// and so of a key that others sign for 556 MiB at most.
pub const FILE_RECORDS_PER_KEY_MAX: usize = 2_000;
/// The same of all keys that one node minted: of a member that makes up keys, and fills them with the largest files, 2.2 GiB
/// of others' disks.
pub const FILE_RECORDS_PER_NODE_MAX: usize = 8_000;

/// A state that another one of its key replaces is kept for so long.
pub const REPLACED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// States of one record that are kept, and listed.
pub const REPLACED_STATES_MAX: usize = 16;
/// Those whose time is over go so often, while there may be any.
pub const REPLACED_ENDS_EVERY: Duration = Duration::from_secs(60 * 60);

/// Keys that a room's maker names: as many as have a shared room.
pub const WRITERS_PER_ROOM_MAX: usize = 64;
/// Records of such keys, of one key that makes rooms, up to which its clients are not refused, deletions included: two of 360
/// rooms. A set keeps ten ninths of this. Each is in memory, with up to 1.2 KiB.
pub const WRITERS_RECORDS_PER_KEY_MAX: usize = 720;
/// The same of all keys that one node minted: 3.6 MiB of memory at every node.
pub const WRITERS_RECORDS_PER_NODE_MAX: usize = 2_880;
