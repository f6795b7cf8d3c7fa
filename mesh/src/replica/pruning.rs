//! Bodies that are kept nowhere any more, because they are old: the headers are here, so chains and numbers
//! hold, and the numbers are delivered as nothing.

use super::{Replica, pending::Needs};
use crate::{limits::STAMP_AHEAD_MS_MAX, name::id::NodeId, turn::context::Context};

/// The bodies that are needed here.
pub(crate) fn needs(replica: &Replica, cx: &Context) -> Needs {
    if !may_lose_bodies(replica) {
        return Needs { from_ms: 0, certain_ms: 0, ahead_ms: u64::MAX };
    }
    let before = |ms: u64| cx.now.wall_ms.saturating_sub(ms);
    Needs {
        from_ms: replica.keep_ms.map_or(0, before),
        certain_ms: before(cx.retention_min_ms),
        ahead_ms: cx.now.wall_ms.saturating_add(STAMP_AHEAD_MS_MAX),
    }
}

/// Whether bodies of a room may ever be dropped: not of directories, which are folded from them,
/// and not of ephemeral rooms, which end by themselves.
pub(crate) fn may_lose_bodies(replica: &Replica) -> bool {
    !replica.is_directory && !replica.record.ephemeral
}

/// Whether all members of the mesh are connected, and it is known which of them have this room. Not where the
/// directory does not name even the connected ones: it may lack more.
pub(crate) fn are_all_connected(replica: &Replica, cx: &Context) -> bool {
    let keeps = |node: &&NodeId| !cx.relays.contains(*node);
    let members = cx.lanes.keys().filter(|node| **node != cx.me && !cx.parted.has(**node));
    let sealed = replica.record.seal.is_some();
    let known = |node: &NodeId| !sealed || cx.followers.is_rostered(*node);
    members.filter(keeps).eq(cx.up.iter().filter(keeps)) && cx.up.iter().filter(keeps).all(known)
}
