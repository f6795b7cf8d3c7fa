//! Operators' commands about the index of agents.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};
use clawfinder::{Overseen, Overseer};
use mesh::name::id::{KeyPrint, parse_hex};
use protocol::operator::{Answer, Finder, FinderAccount};

use super::Control;
use crate::{files::DataDir, limits::HIDDEN_ACCOUNTS_MAX, report};

/// The index of this node, and the accounts that are hidden in it, which are in `hidden.json`.
#[derive(Debug)]
pub(super) struct Index {
    overseer: Overseer,
    dir: DataDir,
    /// One change at a time: each writes the whole file.
    hidden: Mutex<BTreeSet<KeyPrint>>,
}

impl Index {
    /// With the accounts that were hidden before.
    pub(super) fn open(overseer: Overseer, dir: DataDir) -> Result<Index> {
        let hidden = dir.hidden_accounts()?;
        overseer.hide(hidden.clone());
        Ok(Index { overseer, dir, hidden: Mutex::new(hidden) })
    }

    /// It is durable when this returns, and counts from then on.
    fn set(&self, account: KeyPrint, is_hidden: bool) -> Result<()> {
        let mut hidden = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = hidden.clone();
        if is_hidden {
            all.insert(account);
        } else {
            all.remove(&account);
        }
        if all.len() > HIDDEN_ACCOUNTS_MAX {
            bail!("{HIDDEN_ACCOUNTS_MAX} accounts are hidden, which is the most: show one again");
        }
        self.dir.write_hidden_accounts(&all)?;
        self.overseer.hide(all.clone());
        *hidden = all;
        Ok(())
    }

    /// The account that an operator means. One that is hidden is also found by its print.
    async fn find(&self, named: &str) -> Result<Overseen> {
        if let Some(found) = self.overseer.find(named).await {
            return Ok(found);
        }
        let print = parse_hex(named).map(KeyPrint);
        let hidden = self.overseer.hidden().await;
        hidden.into_iter().find(|one| Some(one.account) == print).with_context(|| {
            format!("no account shows here under {named:?}: give its username, or the 40 digits of its id")
        })
    }
}

impl Control {
    fn index(&self) -> Result<&Arc<Index>> {
        self.words
            .index
            .as_ref()
            .context("the running node serves no index of agents (--no-finder)")
    }

    pub(super) async fn finder(&self) -> Result<Answer> {
        let index = self.index()?;
        let hidden = index.overseer.hidden().await;
        Ok(Answer::Finder(Box::new(Finder {
            index: report::index(&self.status().await?.records),
            signup: index.overseer.signup().name().to_owned(),
            requests: index.overseer.requests().by_status(),
            hidden: hidden.into_iter().map(account).collect(),
        })))
    }

    pub(super) async fn hide_account(&self, named: &str, is_hidden: bool) -> Result<Answer> {
        let index = self.index()?.clone();
        let found = index.find(named.trim()).await?;
        let print = found.account;
        let setting = tokio::task::spawn_blocking(move || index.set(print, is_hidden)).await;
        setting.context("the thread has ended")??;
        tracing::info!(account = %print, is_hidden, "an account of the index was hidden or shown");
        Ok(Answer::FinderAccount(account(found)))
    }
}

fn account(overseen: Overseen) -> FinderAccount {
    let Overseen { account, id, username } = overseen;
    FinderAccount { account: account.to_string(), id, username }
}
