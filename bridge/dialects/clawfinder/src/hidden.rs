//! Accounts that the operator hides at this node.

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
};

use mesh::name::id::KeyPrint;

/// Accounts that do not show at this node, and whose keys open nothing here.
#[derive(Debug, Default)]
pub(crate) struct Hidden(RwLock<BTreeSet<KeyPrint>>);

impl Hidden {
    pub(crate) fn contains(&self, account: KeyPrint) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&account)
    }

    pub(crate) fn all(&self) -> BTreeSet<KeyPrint> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, all: BTreeSet<KeyPrint>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }
}
