//! Signatures of API keys in entries: a key that is minted, that is shown at a node, or that claims an agent id says so itself.
//! A member that was not shown a key can say none of this for it, whatever it writes and however early its clock
//! (`docs/decisions/keys.md`). Receivers check it with the run: [`crate::wire::run::BadRun::Unsigned`].

use minicbor::{Decode, Encode};

use crate::name::{
    id::{KeyPrint, MeshId, NodeId},
    identity::Judge,
    key::{KeyHalves, KeySecret, ShortKey},
};

/// The log that a signature is for: the same words in another one are not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedLog {
    /// The mesh.
    pub mesh: MeshId,
    /// The node that writes the log.
    pub node: NodeId,
}

/// A key's signature, with the halves by which others check it. What is signed depends on the entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeySignature {
    /// The key.
    #[n(0)]
    pub halves: KeyHalves,
    /// Its signature.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub signature: [u8; 64],
}

impl KeySignature {
    /// Of a voucher: the key was shown at the node of this log.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn of_voucher(key: &KeySecret, log: &SignedLog) -> Result<KeySignature, ShortKey> {
        KeySignature::over(key, &voucher_text(log, key.print()))
    }

    /// Of a claim: the agent id is to be the key's own in this mesh.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn of_claim(key: &KeySecret, mesh: MeshId, agent: &str) -> Result<KeySignature, ShortKey> {
        KeySignature::over(key, &claim_text(mesh, key.print(), agent))
    }

    pub(super) fn over(key: &KeySecret, text: &[u8]) -> Result<KeySignature, ShortKey> {
        Ok(KeySignature { halves: key.halves(), signature: key.sign(text)? })
    }

    /// The key, by its fingerprint.
    #[must_use]
    pub fn key(&self) -> KeyPrint {
        self.halves.print()
    }

    /// Whether it is the key's word that it was shown at the node of this log.
    #[must_use]
    pub fn is_voucher(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        self.is_over(judge, &voucher_text(log, self.key()))
    }

    /// Whether it is the key's claim of this agent id in this mesh.
    #[must_use]
    pub fn is_claim(&self, judge: &dyn Judge, mesh: MeshId, agent: &str) -> bool {
        self.is_over(judge, &claim_text(mesh, self.key(), agent))
    }

    pub(super) fn is_over(&self, judge: &dyn Judge, text: &[u8]) -> bool {
        judge.holds_key(&self.halves.signer, text, &self.signature)
    }
}

// A text that a key signs has its fingerprint, which is of both halves: else anybody could take a signature to a key of the
// same signer and another mailbox.

fn voucher_text(log: &SignedLog, key: KeyPrint) -> Vec<u8> {
    [b"clawmesh shown".as_slice(), &log.mesh.0, &log.node.0, &key.0].concat()
}

fn claim_text(mesh: MeshId, key: KeyPrint, agent: &str) -> Vec<u8> {
    [b"clawmesh claim".as_slice(), &mesh.0, &key.0, agent.as_bytes()].concat()
}

/// Keys whose secrets tests know.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::LazyLock;

    use super::*;
    use crate::wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        entry::AgentClaimed,
    };

    /// Their prints.
    pub(crate) const PRINTS: [KeyPrint; 10] = [
        KeyPrint(0x3a101be9b3155c59f4ef027d4eb3078c_u128.to_be_bytes()),
        KeyPrint(0x64247c7f473d826f15ec51c2a16230dc_u128.to_be_bytes()),
        KeyPrint(0xfcc6f5cb1cbcface7e5f59808abdc45c_u128.to_be_bytes()),
        KeyPrint(0x84d0b40216494bbd003fbd1203e200c9_u128.to_be_bytes()),
        KeyPrint(0xcb197c3e884a84180b025486306e809f_u128.to_be_bytes()),
        KeyPrint(0xa86cec663500931634dd24f7fdc327b8_u128.to_be_bytes()),
        KeyPrint(0xe28b60c9298d4e2c376feb620459c5a7_u128.to_be_bytes()),
        KeyPrint(0xdec4d1ed561b14bb7ba827eb5ba76b15_u128.to_be_bytes()),
        KeyPrint(0x34a988466c228e5ce4457291dff2824c_u128.to_be_bytes()),
        KeyPrint(0xf1a772ce9e6009e2421e390b0b50c1bc_u128.to_be_bytes()),
    ];

    static SECRETS: LazyLock<Vec<KeySecret>> =
        LazyLock::new(|| (0..PRINTS.len()).map(|n| KeySecret::of(&format!("{n:0>32}"))).collect());

    /// The secret of one of them.
    pub(crate) fn secret(key: KeyPrint) -> Option<&'static KeySecret> {
        SECRETS.iter().find(|secret| secret.print() == key)
    }

    /// As an agent's client has it signed, if the key is one of them.
    pub(crate) fn claimed(mesh: MeshId, agent: &str, key: KeyPrint) -> AgentClaimed {
        let sign = |secret| KeySignature::of_claim(secret, mesh, agent).expect("it is long enough");
        AgentClaimed { agent: agent.into(), by: secret(key).map(sign) }
    }

    /// As it is shown at a node, if it is one of them.
    pub(crate) fn shown(log: &SignedLog, key: KeyPrint) -> Option<KeySignature> {
        secret(key).map(|secret| KeySignature::of_voucher(secret, log).expect("it is long enough"))
    }

    /// As it is minted at a node.
    pub(crate) fn minted(log: &SignedLog, key: KeyPrint, tier: Tier) -> KeyMinted {
        let secret = secret(key).expect("it is one of these");
        KeyMinted::sign(secret, log, KeyTerms::of(tier)).expect("it is long enough")
    }

    #[test]
    fn the_prints_are_those_of_the_secrets() {
        assert!(PRINTS.iter().zip(&*SECRETS).all(|(print, secret)| *print == secret.print()));
    }
}
