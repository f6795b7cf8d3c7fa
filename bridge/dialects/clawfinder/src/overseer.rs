//! The operator of a node and its index: accounts that are hidden here. Other nodes show them as before.

use std::{collections::BTreeSet, sync::Arc};

use mesh::name::id::KeyPrint;

use crate::{
    hidden::Hidden,
    index::Account,
    registry::{Opened, Registry},
    requests::Requests,
    settings::Signup,
};

/// See the module. It outlives no restart: the node keeps what it says.
#[derive(Clone)]
pub struct Overseer {
    pub(crate) registry: Opened,
    pub(crate) hidden: Arc<Hidden>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) signup: Signup,
}

/// An account, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overseen {
    /// Its key.
    pub account: KeyPrint,
    /// The fingerprint of its certificate: 40 digits. Empty if this node does not know it any more.
    pub id: String,
    /// The username under which it shows. Empty likewise.
    pub username: String,
}

impl std::fmt::Debug for Overseer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overseer").field("hidden", &self.hidden).finish_non_exhaustive()
    }
}

impl Overseer {
    /// Clients that may register.
    #[must_use]
    pub fn signup(&self) -> Signup {
        self.signup
    }

    /// The counts of requests.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The account that a client would mean by an id, a username or a UUID, hidden or not. `None`: there is none here (yet).
    pub async fn find(&self, named: &str) -> Option<Overseen> {
        let registry = self.current().await?;
        let index = registry.index();
        let account = index.resolve(named)?;
        Some(overseen(account, index.shown_name(account)))
    }

    /// Accounts that are hidden, by key.
    pub async fn hidden(&self) -> Vec<Overseen> {
        let all = self.hidden.all();
        let Some(registry) = self.current().await else {
            return all.into_iter().map(unknown).collect();
        };
        let index = registry.index();
        let shown = |print: KeyPrint| match index.account(print) {
            Some(account) => overseen(account, index.shown_name(account)),
            None => unknown(print),
        };
        all.into_iter().map(shown).collect()
    }

    /// These accounts, and no others, are hidden from now on.
    pub fn hide(&self, all: BTreeSet<KeyPrint>) {
        self.hidden.replace(all);
    }

    /// The index as it is now; `None`: the node is starting.
    async fn current(&self) -> Option<Arc<Registry>> {
        let registry = self.registry.get()?.clone();
        if let Err(problem) = registry.refresh().await {
            tracing::debug!(why = problem.text(), "the index was not brought up to the store");
        }
        Some(registry)
    }
}

fn overseen(account: &Account, username: String) -> Overseen {
    Overseen { account: account.print, id: account.id.to_string(), username }
}

fn unknown(account: KeyPrint) -> Overseen {
    Overseen { account, id: String::new(), username: String::new() }
}
