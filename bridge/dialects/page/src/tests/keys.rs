//! Keys of others than the node.

use mesh::{
    api::{agenda::NewKey, command::Command},
    name::{id::KeyPrint, key::KeySecret},
    wire::acts::{KeyMinted, KeyTerms, Tier},
};

use super::*;

impl Node {
    pub(super) fn mint(&self, key: &str, scopes: &[Scope]) {
        let scopes = Some(scopes.iter().copied().collect());
        let terms = KeyTerms { scopes, ..KeyTerms::of(Tier::High) };
        let minted = KeyMinted::sign(&KeySecret::of(key), &here(), terms).unwrap();
        let new = NewKey { minted: Box::new(minted), local: false };
        self.fake.does(Command::MintKey(new)).unwrap();
    }

    pub(super) fn revoke(&self, key: &str) {
        self.fake.does(Command::RevokeKey { key: KeyPrint::of(key) }).unwrap();
    }
}
