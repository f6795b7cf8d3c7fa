//! Signatures of API keys in entries: a key that is minted, that is shown at a node, or that claims an agent id says so itself. A member
//! that was not shown a key can say neither for it, whatever it writes and however early its clock
//! (`docs/decisions/keys.md`). Receivers check it with the run: [`crate::wire::run::BadRun::Unsigned`].

use minicbor::Encode;

use crate::{
    name::{
        id::{KeyPrint, MeshId, NodeId},
        identity::Judge,
        key::{KeySecret, ShortKey},
    },
    wire::{
        acts::{KeyMinted, KeyShown, Tier},
        cbor::encode,
        entry::{AgentClaimed, Claimant},
    },
};

/// The log that a signature is for: the same words in another one are not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedLog {
    /// The mesh.
    pub mesh: MeshId,
    /// The node that writes the log.
    pub node: NodeId,
}

/// All of a [`KeyMinted`] but its signature, in the same form.
#[derive(Encode)]
struct MintedText<'m> {
    #[cbor(n(0), with = "minicbor::bytes")]
    signer: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    mailbox: [u8; 32],
    #[n(2)]
    tier: Tier,
    #[n(3)]
    label: Option<&'m str>,
}

impl KeyMinted {
    /// A key that becomes valid by this node's log, signed.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn sign(
        key: &KeySecret,
        log: &SignedLog,
        tier: Tier,
        label: Option<String>,
    ) -> Result<KeyMinted, ShortKey> {
        let halves = key.halves();
        let (signer, mailbox) = (halves.signer, halves.mailbox);
        let mut minted = KeyMinted { signer, mailbox, tier, label, signature: [0; 64] };
        minted.signature = key.sign(&minted.text(log))?;
        Ok(minted)
    }

    fn text(&self, log: &SignedLog) -> Vec<u8> {
        let KeyMinted { signer, mailbox, tier, label, signature: _ } = self;
        let (signer, mailbox, tier) = (*signer, *mailbox, *tier);
        let rest = encode(&MintedText { signer, mailbox, tier, label: label.as_deref() });
        [b"clawmesh key".as_slice(), &log.mesh.0, &log.node.0, &rest].concat()
    }

    /// Whether the key has signed it, for this log.
    #[must_use]
    pub fn is_signed_by_its_key(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        judge.holds_key(&self.signer, &self.text(log), &self.signature)
    }
}

impl KeyShown {
    /// A key says that it was shown at the node of this log, signed.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn sign(key: &KeySecret, log: &SignedLog) -> Result<KeyShown, ShortKey> {
        let halves = key.halves();
        let signature = key.sign(&shown_text(log, key.print()))?;
        Ok(KeyShown { signer: halves.signer, mailbox: halves.mailbox, signature })
    }

    /// Whether the key has signed it, for this log.
    #[must_use]
    pub fn is_signed_by_its_key(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        judge.holds_key(&self.signer, &shown_text(log, self.key()), &self.signature)
    }
}

/// With the fingerprint, so that nobody takes the signature to a key of the same signer and another mailbox.
fn shown_text(log: &SignedLog, key: KeyPrint) -> Vec<u8> {
    [b"clawmesh shown".as_slice(), &log.mesh.0, &log.node.0, &key.0].concat()
}

impl Claimant {
    /// A key's claim of an agent id in a mesh, signed.
    ///
    /// # Errors
    ///
    /// Its text is too short for its halves to be shown.
    pub fn sign(key: &KeySecret, mesh: MeshId, agent: &str) -> Result<Claimant, ShortKey> {
        let halves = key.halves();
        let signature = key.sign(&claim_text(mesh, key.print(), agent))?;
        Ok(Claimant { signer: halves.signer, mailbox: halves.mailbox, signature })
    }
}

impl AgentClaimed {
    /// Whether the key has signed it. [`crate::name::id::KeyPrint::OPEN`] is everybody's, and signs nothing.
    #[must_use]
    pub fn is_signed_by_its_key(&self, judge: &dyn Judge, mesh: MeshId) -> bool {
        let Some(by) = &self.by else { return true };
        judge.holds_key(&by.signer, &claim_text(mesh, self.key(), &self.agent), &by.signature)
    }
}

/// With the fingerprint, as of [`shown_text`].
fn claim_text(mesh: MeshId, key: KeyPrint, agent: &str) -> Vec<u8> {
    [b"clawmesh claim".as_slice(), &mesh.0, &key.0, agent.as_bytes()].concat()
}

/// Keys whose secrets tests know.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::LazyLock;

    use super::*;

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
        let sign = |secret| Claimant::sign(secret, mesh, agent).expect("it is long enough");
        AgentClaimed { agent: agent.into(), by: secret(key).map(sign) }
    }

    /// As it is shown at a node, if it is one of them.
    pub(crate) fn shown(log: &SignedLog, key: KeyPrint) -> Option<KeyShown> {
        secret(key).map(|secret| KeyShown::sign(secret, log).expect("it is long enough"))
    }

    /// As it is minted at a node.
    pub(crate) fn minted(log: &SignedLog, key: KeyPrint, tier: Tier) -> KeyMinted {
        let secret = secret(key).expect("it is one of these");
        KeyMinted::sign(secret, log, tier, None).expect("it is long enough")
    }

    #[test]
    fn the_prints_are_those_of_the_secrets() {
        assert!(PRINTS.iter().zip(&*SECRETS).all(|(print, secret)| *print == secret.print()));
    }
}
