//! Ids of ephemeral rooms.

use crate::name::id::{LogId, MeshId, RoomId, sha256};

/// The id of the ephemeral room whose home is this log. A sealed one has another than an open one would
/// have: nobody can announce the one as the other, and be told what is meant for the one.
pub(crate) fn ephemeral_id(mesh: MeshId, home: LogId, sealed: bool) -> RoomId {
    let label: &[u8] =
        if sealed { b"clawmesh sealed ephemeral room" } else { b"clawmesh ephemeral room" };
    let hash = sha256(&[label, &mesh.0, &home.author.0, &home.incarnation.to_be_bytes()]);
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    RoomId(id)
}
