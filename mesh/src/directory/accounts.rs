//! Accounts, and the labels that they claim. A fold that does not depend on the order in which entries of several logs came;
//! of one log the first ones count.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    learned::{Learned, Source, Void},
    standing::{Firsts, Numbered, Standing},
};
use crate::{
    api::account::{AccountClaim, AccountView, ClaimView},
    limits::{ACCOUNT_CLAIMS_MAX, ACCOUNTS_KEPT, ACCOUNTS_PER_NODE_MAX},
    name::{
        account::Label,
        id::{KeyPrint, NodeId},
        key::KeyHalves,
        number::Number,
    },
    wire::account::AccountClaimed,
};

#[derive(Clone, Debug)]
struct Claim {
    labels: Vec<Label>,
    standing: Standing,
    firsts: Firsts,
    source: Source,
    wall_ms: u64,
}

impl Claim {
    fn view(&self) -> ClaimView {
        let number = match self.standing.numbered {
            Numbered::Counting(number) | Numbered::Lost(number) => Some(number),
            Numbered::Not => None,
        };
        let (labels, node) = (self.labels.clone(), self.standing.log.author);
        ClaimView { labels, number, node, wall_ms: self.wall_ms }
    }
}

#[derive(Clone, Debug)]
struct Account {
    halves: KeyHalves,
    /// In the order in which they count.
    claims: Vec<Claim>,
}

impl Account {
    fn claims_by(&self, node: NodeId) -> usize {
        self.claims.iter().filter(|claim| claim.standing.log.author == node).count()
    }

    fn sort(&mut self) {
        self.claims.sort_by_key(|claim| claim.standing);
    }
}

/// Where a claim stands in the directory: its entry, its numbers, and when it was written.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) source: Source,
    pub(super) standing: Standing,
    pub(super) firsts: Firsts,
    pub(super) wall_ms: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    known: BTreeMap<KeyPrint, Account>,
    by_source: BTreeMap<Source, KeyPrint>,
    by_label: BTreeSet<(Label, KeyPrint)>,
    /// How many accounts each node has claimed.
    counts: BTreeMap<NodeId, usize>,
    /// Those that have ended, as their records say.
    ended: BTreeSet<KeyPrint>,
}

impl Accounts {
    /// Takes a claim in, if there is room for it.
    pub(super) fn learn(&mut self, claim: AccountClaimed, entered: Entered) -> Learned {
        let (account, node) = (claim.account(), entered.standing.log.author);
        let is_known = self.by_source.contains_key(&entered.source);
        if is_known || !claim.may_count() || !self.has_room_for(account, node) {
            return Learned::Nothing;
        }
        let AccountClaimed { by, labels } = claim;
        let Entered { source, standing, firsts, wall_ms } = entered;
        self.by_source.insert(source, account);
        self.by_label.extend(labels.iter().map(|label| (*label, account)));
        let known = self.known.entry(account);
        let known = known.or_insert_with(|| Account { halves: by.halves, claims: Vec::new() });
        if known.claims_by(node) == 0 {
            *self.counts.entry(node).or_default() += 1;
        }
        known.claims.push(Claim { labels, standing, firsts, source, wall_ms });
        known.sort();
        Learned::Account(account)
    }

    /// A claim got a number. Whether it is one.
    pub(super) fn renumber(&mut self, source: Source, number: Number, counts: bool) -> bool {
        let account = self.by_source.get(&source);
        let Some(account) = account.and_then(|account| self.known.get_mut(account)) else {
            return false;
        };
        for claim in account.claims.iter_mut().filter(|claim| claim.source == source) {
            claim.firsts.add(number, counts);
            claim.standing.numbered = claim.firsts.numbered();
        }
        account.sort();
        true
    }

    /// Numbers that did count until now do not.
    pub(super) fn lose(&mut self, lost: impl Fn(Source, Number) -> bool) {
        for account in self.known.values_mut() {
            for claim in &mut account.claims {
                let source = claim.source;
                claim.firsts.lose(|number| lost(source, number));
                claim.standing.numbered = claim.firsts.numbered();
            }
            account.sort();
        }
    }

    /// Nothing counts that a log says, from an entry on.
    pub(super) fn forget(&mut self, void: Void) {
        let node = void.from.log.author;
        for (print, account) in &mut self.known {
            let before = account.claims_by(node);
            let gone =
                account.claims.extract_if(.., |claim| void.covers(claim.source, claim.standing));
            let gone: Vec<Claim> = gone.collect();
            if before > 0 && account.claims_by(node) == 0 {
                self.counts.entry(node).and_modify(|count| *count -= 1);
            }
            for claim in gone {
                self.by_source.remove(&claim.source);
                for label in claim.labels {
                    let is_claimed = |claim: &Claim| claim.labels.contains(&label);
                    if !account.claims.iter().any(is_claimed) {
                        self.by_label.remove(&(label, *print));
                    }
                }
            }
        }
        self.known.retain(|_, account| !account.claims.is_empty());
    }

    /// Whether one more claim of this account by this node would count.
    pub(crate) fn has_room_for(&self, account: KeyPrint, node: NodeId) -> bool {
        let known = self.known.get(&account);
        match known.map_or(0, |known| known.claims_by(node)) {
            0 => {
                let has_place = known.is_some() || self.known.len() < ACCOUNTS_KEPT;
                has_place && self.claimed_by(node) < ACCOUNTS_PER_NODE_MAX
            }
            claims => claims < ACCOUNT_CLAIMS_MAX,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// How many a node has claimed.
    pub(crate) fn claimed_by(&self, node: NodeId) -> usize {
        self.counts.get(&node).copied().unwrap_or(0)
    }

    /// Whether an account is known.
    pub(crate) fn is_known(&self, account: KeyPrint) -> bool {
        self.known.contains_key(&account)
    }

    /// The node that answers for an account as the owner of records: the one that claimed it first, by position.
    pub(crate) fn answers(&self, account: KeyPrint) -> Option<NodeId> {
        let claims = &self.known.get(&account)?.claims;
        let first = claims.iter().min_by_key(|claim| (claim.standing.clock, claim.standing.log));
        first.map(|claim| claim.standing.log.author)
    }

    /// The claim of just these labels by a node, and whether it has a number.
    pub(crate) fn same_claim(
        &self,
        account: KeyPrint,
        labels: &[Label],
        node: NodeId,
    ) -> Option<(Source, bool)> {
        let claims = &self.known.get(&account)?.claims;
        let is_same = |claim: &&Claim| claim.standing.log.author == node && claim.labels == labels;
        let same = claims.iter().find(is_same)?;
        Some((same.source, same.standing.is_numbered()))
    }

    /// An account, for those who ask.
    pub(crate) fn view(&self, account: KeyPrint) -> Option<AccountView> {
        let known = self.known.get(&account)?;
        let claims = known.claims.iter().map(Claim::view).collect();
        let ended = self.has_ended(account);
        Some(AccountView { account, halves: known.halves, claims, ended })
    }

    /// The accounts that claim a label, in the order in which they count.
    pub(crate) fn of_label(&self, label: Label) -> Vec<AccountClaim> {
        let all = (label, KeyPrint([0; 16]))..=(label, KeyPrint([u8::MAX; 16]));
        let first = |(_, account): &(Label, KeyPrint)| {
            let claims = &self.known.get(account)?.claims;
            let claim = claims.iter().find(|claim| claim.labels.contains(&label))?;
            Some((claim.standing, *account, claim))
        };
        let mut claims: Vec<_> = self.by_label.range(all).filter_map(first).collect();
        claims.sort_by_key(|(standing, account, _)| (*standing, *account));
        let claim =
            |(_, account, claim): (_, _, &Claim)| AccountClaim { account, claim: claim.view() };
        claims.into_iter().map(claim).collect()
    }

    /// Its records say that it has ended, or (after the directory has forgotten it) nothing of that any more.
    pub(crate) fn set_ended(&mut self, account: KeyPrint, ended: bool) {
        if ended {
            self.ended.insert(account);
        } else {
            self.ended.remove(&account);
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self, account: KeyPrint) -> bool {
        self.ended.contains(&account)
    }
}

#[cfg(test)]
mod tests;
