//! Secrets: the mesh's, and a node's own key.

use std::{collections::BTreeMap, fmt};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use minicbor::{Decode, Encode};
use sha2::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

use crate::{
    limits::{EXPELLED_NAMED_MAX, FORMER_SECRETS_MAX},
    name::id::{MeshId, NodeId, sha256},
};

/// The essence of a mesh, which lets nodes into it: its name, the node that founded it, and the secret of
/// its connections, which may change. All of it is in every ticket.
#[derive(Clone)]
pub struct MeshSecret {
    mesh: MeshId,
    founder: NodeId,
    link: LinkSecret,
    /// Those before, the newest first.
    former: Vec<LinkSecret>,
}

impl MeshSecret {
    /// A mesh that begins with this secret, founded by `founder`: the home sequencer of lobby and directory.
    #[must_use]
    pub fn new(secret: [u8; 32], founder: NodeId) -> MeshSecret {
        let link = LinkSecret::new(0, secret);
        let mut mesh = [0; 16];
        link.derive(founder, b"clawmesh mesh id", &mut mesh);
        MeshSecret { mesh: MeshId(mesh), founder, link, former: Vec::new() }
    }

    /// A mesh that is called `mesh`, whose connections have the secret `link` now.
    #[must_use]
    pub fn renewed(mesh: MeshId, founder: NodeId, link: LinkSecret) -> MeshSecret {
        MeshSecret { mesh, founder, link, former: Vec::new() }
    }

    /// Another secret, if it is a later one than this. The last few before it are kept. Number 0 is that of
    /// the beginning and never another one: the mesh's name comes from it.
    pub fn renew(&mut self, link: LinkSecret) {
        if link.number > 0 && link.epoch() > self.link.epoch() {
            let before = std::mem::replace(&mut self.link, link);
            self.former.insert(0, before);
            self.former.truncate(FORMER_SECRETS_MAX);
        }
    }

    /// Secrets before this one, to be kept too. The newest first.
    pub fn keep_former(&mut self, former: Vec<LinkSecret>) {
        self.former = former;
        self.former.truncate(FORMER_SECRETS_MAX);
    }

    /// The secret of its connections.
    #[must_use]
    pub fn link(&self) -> &LinkSecret {
        &self.link
    }

    /// The last few secrets before it, the newest first.
    #[must_use]
    pub fn former(&self) -> &[LinkSecret] {
        &self.former
    }

    /// The node that founded the mesh.
    #[must_use]
    pub fn founder(&self) -> NodeId {
        self.founder
    }

    /// The public name of the mesh: tells meshes apart, reveals nothing of the secret.
    #[must_use]
    pub fn mesh_id(&self) -> MeshId {
        self.mesh
    }

    /// The pre-shared key of its connections.
    #[must_use]
    pub fn pre_shared_key(&self) -> Zeroizing<[u8; 32]> {
        self.link.pre_shared_key(self.founder)
    }
}

impl fmt::Debug for MeshSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeshSecret({})", self.mesh_id())
    }
}

/// One of the secrets that a mesh's connections have, one after the other.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct LinkSecret {
    #[n(0)]
    number: u64,
    #[cbor(n(1), with = "minicbor::bytes")]
    bytes: [u8; 32],
    #[n(2)]
    without: Vec<NodeId>,
}

/// Which secret: of two the higher one is to be used, whichever came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Epoch {
    /// Counts them, from 0.
    #[n(0)]
    pub number: u64,
    /// Tells those of one number apart, and reveals nothing of them.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub print: [u8; 16],
}

impl LinkSecret {
    /// The `number`th of a mesh, from 0.
    #[must_use]
    pub fn new(number: u64, bytes: [u8; 32]) -> LinkSecret {
        LinkSecret { number, bytes, without: Vec::new() }
    }

    /// The same, drawn so that these do not get it: nodes that had been expelled. The first
    /// [`EXPELLED_NAMED_MAX`] of them are named.
    #[must_use]
    pub fn leaving_out(mut self, without: impl IntoIterator<Item = NodeId>) -> LinkSecret {
        self.without = without.into_iter().take(EXPELLED_NAMED_MAX).collect();
        self
    }

    /// Nodes that had been expelled when it was drawn.
    #[must_use]
    pub fn without(&self) -> &[NodeId] {
        &self.without
    }

    /// The secret bytes themselves, for tickets and the file they are kept in.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Which one it is.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        let mut print = [0; 16];
        self.derive(NodeId([0; 32]), b"clawmesh secret print", &mut print);
        Epoch { number: self.number, print }
    }

    /// The pre-shared key of the connections of a mesh with this founder.
    #[must_use]
    pub fn pre_shared_key(&self, founder: NodeId) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        self.derive(founder, b"clawmesh pre-shared key", key.as_mut());
        key
    }

    fn derive(&self, founder: NodeId, label: &[u8], out: &mut [u8]) {
        hkdf::Hkdf::<Sha256>::new(Some(&founder.0), &self.bytes)
            .expand(label, out)
            .expect("at most 32 bytes are asked for, HKDF gives 8160");
    }
}

impl Drop for LinkSecret {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkSecret({})", self.number)
    }
}

/// A node's signing key. The public half is its [`NodeId`].
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
    /// Its seed in a simulated world: see [`Simulated`].
    simulated: Option<[u8; 32]>,
}

impl Identity {
    /// The identity whose ed25519 seed this is.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Identity {
        Identity { key: SigningKey::from_bytes(seed), simulated: None }
    }

    /// The same node in a simulated world. No node believes what it signs: only [`Simulated`] does, which
    /// has to have been given its seed.
    #[must_use]
    pub fn simulated(seed: &[u8; 32]) -> Identity {
        Identity { simulated: Some(*seed), ..Identity::from_seed(seed) }
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
        match &self.simulated {
            None => self.key.sign(message).to_bytes(),
            Some(seed) => tag(seed, message),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.node_id())
    }
}

/// A judge of signatures.
pub trait Judge: fmt::Debug {
    /// Whether `signature` is `node`'s over `message`.
    fn holds(&self, node: NodeId, message: &[u8], signature: &[u8; 64]) -> bool;

    /// Whether `signature` is over `message`, by the API key with this public half. Those are few, so a simulated world
    /// judges them as every node does.
    fn holds_key(&self, signer: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        holds_strictly(signer, message, signature)
    }
}

/// As every node judges: ed25519, strictly (no malleable forms).
#[derive(Clone, Copy, Debug)]
pub struct Strict;

impl Judge for Strict {
    fn holds(&self, node: NodeId, message: &[u8], signature: &[u8; 64]) -> bool {
        holds_strictly(&node.0, message, signature)
    }
}

fn holds_strictly(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// As a simulated world judges what [`Identity::simulated`] signs: half of its time would go into
/// ed25519. Without its seed nobody can sign as a node, here as there.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    seeds: BTreeMap<NodeId, [u8; 32]>,
}

impl Simulated {
    /// Of the nodes with these seeds; signatures of others never hold.
    #[must_use]
    pub fn new(seeds: impl IntoIterator<Item = [u8; 32]>) -> Simulated {
        let by_node = |seed| (Identity::from_seed(&seed).node_id(), seed);
        Simulated { seeds: seeds.into_iter().map(by_node).collect() }
    }
}

impl Judge for Simulated {
    fn holds(&self, node: NodeId, message: &[u8], signature: &[u8; 64]) -> bool {
        self.seeds.get(&node).is_some_and(|seed| tag(seed, message) == *signature)
    }
}

/// The stand-in for a signature in a simulated world.
fn tag(seed: &[u8; 32], message: &[u8]) -> [u8; 64] {
    let half = sha256(&[b"clawmesh simulated", seed, message]);
    let mut tag = [0; 64];
    tag[..32].copy_from_slice(&half);
    tag[32..].copy_from_slice(&half);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUNDER: NodeId = NodeId([3; 32]);

    #[test]
    fn a_mesh_keeps_its_name_and_the_first_key_when_its_secret_changes() {
        let mut mesh = MeshSecret::new([0xa5; 32], FOUNDER);
        let (name, key) = (mesh.mesh_id(), mesh.pre_shared_key());
        // As tickets and nodes of the first version have it.
        assert_eq!(name.to_string(), "e616de541564d68a58a9add4a258d5db");
        mesh.renew(LinkSecret::new(1, [7; 32]));
        assert_eq!(mesh.mesh_id(), name);
        assert_ne!(*mesh.pre_shared_key(), *key);
        assert_eq!(mesh.former()[0].pre_shared_key(FOUNDER), key);
        mesh.renew(LinkSecret::new(1, [7; 32]));
        assert_eq!(mesh.former().len(), 1, "the same one again takes no place of another");
        for number in 2..10 {
            mesh.renew(LinkSecret::new(number, [7; 32]));
        }
        assert_eq!(mesh.former().len(), FORMER_SECRETS_MAX);
        assert_eq!(mesh.former()[0].epoch().number, 8);
    }

    #[test]
    fn the_first_secret_is_the_founding_one_and_no_other() {
        let mut mesh = MeshSecret::new([0xa5; 32], FOUNDER);
        let first = mesh.link().epoch();
        // Whatever its print.
        for byte in 0..=255 {
            mesh.renew(LinkSecret::new(0, [byte; 32]));
        }
        assert_eq!((mesh.link().epoch(), mesh.former().len()), (first, 0));
    }

    #[test]
    fn what_is_signed_in_a_simulated_world_holds_there_alone() {
        let (seed, other) = ([5; 32], [6; 32]);
        let (real, simulated) = (Identity::from_seed(&seed), Identity::simulated(&seed));
        assert_eq!(real.node_id(), simulated.node_id());
        let world = Simulated::new([seed]);
        let holds = |judge: &dyn Judge, by: &Identity, signature: &[u8; 64]| {
            judge.holds(by.node_id(), b"text", signature)
        };
        let signature = simulated.sign(b"text");
        assert!(holds(&world, &simulated, &signature));
        assert!(!holds(&Strict, &simulated, &signature), "no node believes it");
        assert!(holds(&Strict, &real, &real.sign(b"text")));
        assert!(!holds(&world, &real, &real.sign(b"text")));
        // Forged: over another text, in any bit, by who has another seed, or none that is known here.
        assert!(!world.holds(simulated.node_id(), b"test", &signature));
        for byte in 0..64 {
            let mut forged = signature;
            forged[byte] ^= 1;
            assert!(!holds(&world, &simulated, &forged));
        }
        let stranger = Identity::simulated(&other);
        assert!(!holds(&world, &simulated, &stranger.sign(b"text")));
        assert!(!holds(&world, &stranger, &stranger.sign(b"text")));
    }

    #[test]
    fn of_two_secrets_the_same_one_counts_whichever_came_first() {
        let secrets = [LinkSecret::new(1, [1; 32]), LinkSecret::new(1, [2; 32])];
        let both = [[0, 1], [1, 0]].map(|order| {
            let mut mesh = MeshSecret::new([0xa5; 32], FOUNDER);
            order.into_iter().for_each(|i: usize| mesh.renew(secrets[i].clone()));
            mesh.link().epoch()
        });
        assert_eq!(both[0], both[1]);
        let mut mesh = MeshSecret::new([0xa5; 32], FOUNDER);
        mesh.renew(LinkSecret::new(2, [1; 32]));
        mesh.renew(LinkSecret::new(1, [2; 32]));
        assert_eq!(mesh.link().epoch().number, 2, "an older one is none");
        assert!(!format!("{:?} {mesh:?}", mesh.link()).contains("1, 1"));
    }
}
