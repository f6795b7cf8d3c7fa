//! The index of agents at a node, as its operator sees it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Index;

/// The index, and how it is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finder {
    /// Its records, and mail.
    pub index: Index,
    /// Clients that may register: `local`, `open` or `off`.
    pub signup: String,
    /// Requests since the start of the node, by the status of their answer.
    pub requests: BTreeMap<u16, u64>,
    /// Accounts that are hidden at this node.
    pub hidden: Vec<FinderAccount>,
}

/// An account of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinderAccount {
    /// The print of its key: 32 hex digits.
    pub account: String,
    /// The fingerprint of its PGP key: 40 hex digits. Empty if the node does not know the account any more.
    pub id: String,
    /// Its username. Empty likewise.
    pub username: String,
}
