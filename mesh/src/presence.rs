//! Agents and their rooms: rosters of all nodes, and followers of private rooms.

pub(crate) mod ephemeral;
pub(crate) mod followers;
pub(crate) mod rosters;
