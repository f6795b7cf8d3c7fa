//! Secrets: the mesh's, and a node's own key.

use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::id::{MeshId, NodeId};

/// What makes a mesh: 32 secret bytes and the node that founded it. Both are in every ticket.
#[derive(Clone)]
pub struct MeshSecret {
    secret: Zeroizing<[u8; 32]>,
    founder: NodeId,
}

impl MeshSecret {
    /// A mesh of this secret, founded by `founder`: the home sequencer of lobby and directory.
    #[must_use]
    pub fn new(secret: [u8; 32], founder: NodeId) -> MeshSecret {
        MeshSecret { secret: Zeroizing::new(secret), founder }
    }

    /// The secret bytes themselves, for tickets and the file they are kept in.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Who founded the mesh.
    #[must_use]
    pub fn founder(&self) -> NodeId {
        self.founder
    }

    /// The public name of the mesh: tells meshes apart, reveals nothing of the secret.
    #[must_use]
    pub fn mesh_id(&self) -> MeshId {
        let mut id = [0; 16];
        self.derive(b"clawmesh mesh id", &mut id);
        MeshId(id)
    }

    /// The pre-shared key of its connections.
    #[must_use]
    pub fn pre_shared_key(&self) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        self.derive(b"clawmesh pre-shared key", key.as_mut());
        key
    }

    fn derive(&self, label: &[u8], out: &mut [u8]) {
        hkdf::Hkdf::<Sha256>::new(Some(&self.founder.0), self.secret.as_ref())
            .expand(label, out)
            .expect("at most 32 bytes are asked for, HKDF gives 8160");
    }
}

impl fmt::Debug for MeshSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeshSecret({})", self.mesh_id())
    }
}

/// A node's signing key. The public half is its [`NodeId`].
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
}

impl Identity {
    /// The identity whose ed25519 seed this is.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Identity {
        Identity { key: SigningKey::from_bytes(seed) }
    }

    /// The public key.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        NodeId(self.key.verifying_key().to_bytes())
    }

    /// 32 bytes that only this node can know, always the same for the same parts: nonces that need
    /// not be kept.
    #[must_use]
    pub fn secret(&self, label: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut out = [0; 32];
        let seed = Zeroizing::new(self.key.to_bytes());
        let info = [&[label], parts].concat();
        hkdf::Hkdf::<Sha256>::new(None, seed.as_ref())
            .expand_multi_info(&info, &mut out)
            .expect("32 bytes are within HKDF's 8160");
        out
    }

    /// Signs `message`.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.node_id())
    }
}

/// Whether `signature` is `node`'s over `message`, judged strictly (no malleable forms).
#[must_use]
pub fn verify(node: NodeId, message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(&node.0)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}
