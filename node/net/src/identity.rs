//! Node ids and libp2p peer ids are two spellings of one ed25519 public key.

use libp2p::PeerId;
use libp2p::identity::{PublicKey, ed25519};

/// An ed25519 public key: the name of a node in the mesh.
pub type NodeId = [u8; 32];

/// A peer id of an ed25519 key is the key itself: multihash "identity" (0x00) of 36 bytes (0x24),
/// which are the protobuf `{1: Ed25519 (1), 2: 32 bytes}` (libp2p specs, peer-ids).
const ED25519_PREFIX: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

/// `None` for peer ids that do not contain an ed25519 key.
pub(crate) fn node_of(peer: &PeerId) -> Option<NodeId> {
    let bytes = peer.to_bytes();
    let key = bytes.strip_prefix(&ED25519_PREFIX)?;
    NodeId::try_from(key).ok()
}

/// `None` for bytes that are not a point of the curve: nobody can own such an id.
pub(crate) fn peer_of(node: &NodeId) -> Option<PeerId> {
    let key = ed25519::PublicKey::try_from_bytes(node).ok()?;
    Some(PublicKey::from(key).to_peer_id())
}

/// All of it, as people and announcements write it.
pub(crate) fn in_hex(node: &NodeId) -> String {
    node.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first bytes in hex, for logs.
pub(crate) fn short(node: &NodeId) -> String {
    node.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use libp2p::identity::Keypair;

    use super::*;

    #[test]
    fn ids_convert_both_ways() {
        let keypair = Keypair::ed25519_from_bytes([7; 32]).unwrap();
        let peer = keypair.public().to_peer_id();
        let node = node_of(&peer).unwrap();
        assert_eq!(node, keypair.try_into_ed25519().unwrap().public().to_bytes());
        assert_eq!(peer_of(&node), Some(peer));
    }

    #[test]
    fn other_keys_are_no_nodes() {
        assert_eq!(node_of(&PeerId::random()), None);
        // About half of all bytes are no point of the curve.
        assert!((0..=255).any(|byte| peer_of(&[byte; 32]).is_none()));
    }
}
