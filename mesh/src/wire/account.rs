//! Accounts in the directory: see [`crate::name::account`].

use minicbor::{Decode, Encode};

use super::{
    cbor::encode,
    signatures::{KeySignature, SignedLog},
};
use crate::{
    limits::ACCOUNT_LABELS_MAX,
    name::{
        account::Label,
        id::KeyPrint,
        identity::Judge,
        key::{KeySecret, ShortKey},
    },
};

/// An account is known from now on, and claims these labels. Signed by the account itself, for this log: nobody claims for a
/// key that it was not shown.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AccountClaimed {
    /// The account, and its signature over the mesh, the node in whose log it stands, and the labels.
    #[n(0)]
    pub by: KeySignature,
    /// At most [`ACCOUNT_LABELS_MAX`].
    #[n(1)]
    pub labels: Vec<Label>,
}

impl AccountClaimed {
    /// A claim by this node's log, signed.
    ///
    /// # Errors
    ///
    /// The account's text is too short for its halves to be shown.
    pub fn sign(
        account: &KeySecret,
        log: &SignedLog,
        labels: Vec<Label>,
    ) -> Result<AccountClaimed, ShortKey> {
        let by = KeySignature::over(account, &text(log, account.print(), &labels))?;
        Ok(AccountClaimed { by, labels })
    }

    /// The account.
    #[must_use]
    pub fn account(&self) -> KeyPrint {
        self.by.key()
    }

    /// Whether the account has signed it, for this log.
    #[must_use]
    pub fn is_signed_by_its_account(&self, judge: &dyn Judge, log: &SignedLog) -> bool {
        self.by.is_over(judge, &text(log, self.account(), &self.labels))
    }

    /// Whether it has no more labels than it may.
    #[must_use]
    pub fn may_count(&self) -> bool {
        self.labels.len() <= ACCOUNT_LABELS_MAX
    }
}

fn text(log: &SignedLog, account: KeyPrint, labels: &Vec<Label>) -> Vec<u8> {
    let labels = encode(labels);
    [b"clawmesh account".as_slice(), &log.mesh.0, &log.node.0, &account.0, &labels].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{
        id::{MeshId, NodeId},
        identity::Strict,
    };

    #[test]
    fn a_claim_is_signed_over_all_that_it_says() {
        let account = KeySecret::of(&"a".repeat(43));
        let log = SignedLog { mesh: MeshId([1; 16]), node: NodeId([2; 32]) };
        let claim = AccountClaimed::sign(&account, &log, vec![Label([3; 16]), Label([4; 16])]);
        let claim = claim.expect("it is long enough");
        let is_signed =
            |claim: &AccountClaimed, log: SignedLog| claim.is_signed_by_its_account(&Strict, &log);
        assert!(is_signed(&claim, log) && claim.account() == account.print());
        assert!(!is_signed(&claim, SignedLog { mesh: MeshId([9; 16]), ..log }));
        assert!(!is_signed(&claim, SignedLog { node: NodeId([9; 32]), ..log }));
        let fewer = AccountClaimed { labels: vec![Label([3; 16])], ..claim.clone() };
        assert!(!is_signed(&fewer, log));
        let other = KeySecret::of(&"b".repeat(43));
        let by = KeySignature { halves: other.halves(), ..claim.by.clone() };
        assert!(!is_signed(&AccountClaimed { by, ..claim.clone() }, log));
        let bytes = encode(&claim);
        assert_eq!(minicbor::decode::<AccountClaimed>(&bytes).expect("it can be read"), claim);
        let short = AccountClaimed::sign(&KeySecret::of("short"), &log, Vec::new());
        assert!(short.is_err());
    }
}
