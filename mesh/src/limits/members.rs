//! Bounds of members of rooms on record, of agents that are retired, and of files of agents.

/// Members on record of one room, up to which its clients are not refused. More than a client can be told of in one answer
/// with ease, and as many as have seats.
pub const MEMBERS_ON_RECORD_MAX: usize = 1_000;
/// Words about members by one key, removals included, up to which its clients are not refused: of two rooms that are full, and
/// of a hundred of ordinary size. Each is in memory at every node that has the room, with some 500 bytes.
pub const MEMBER_RECORDS_PER_KEY_MAX: usize = 2_400;
/// The same of all keys that one node minted: 3.6 MiB of memory.
pub const MEMBER_RECORDS_PER_NODE_MAX: usize = 7_200;
/// Rooms of other keys in which an agent is given a seat because it is on their lists: half of [`ROOMS_PER_AGENT_MAX`]. Others put it
/// there as often as they like, and it keeps places for rooms that it joins.
///
/// [`ROOMS_PER_AGENT_MAX`]: crate::limits::ROOMS_PER_AGENT_MAX
pub const ENLISTED_BY_OTHERS_MAX: usize = 500;
/// Agents that one key retires, up to which its clients are not refused: ten times as many as a node has room for. Each is in
/// memory at every node, with some 300 bytes.
pub const RETIRED_RECORDS_PER_KEY_MAX: usize = 4_500;
/// The same of all keys that one node minted: 5.2 MiB of memory.
pub const RETIRED_RECORDS_PER_NODE_MAX: usize = 18_000;
/// A file of an agent, before it is sealed. Bytes.
pub const AGENT_FILE_BYTES_MAX: usize = 64 * 1024;
/// The name of one. Bytes.
pub const AGENT_FILE_NAME_BYTES_MAX: usize = 64;
/// Files of agents of one key, deletions included, up to which its clients are not refused: nine of three hundred agents, or
/// 170 MiB.
pub const AGENT_FILE_RECORDS_PER_KEY_MAX: usize = 2_700;
/// The same of all keys that one node minted.
pub const AGENT_FILE_RECORDS_PER_NODE_MAX: usize = 10_800;
