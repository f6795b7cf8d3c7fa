//! Usernames: an account registers under one as nodes register their clients' accounts. Nobody that is known at the node wants it; the
//! claim has its number; and all that claimed it before have ended, want another one, or show no profile within a second. One that
//! comes too late never has it: its client makes another account.
//!
//! *one name*: in the end all nodes say of each username that the same account has it: of those that want it, and have not ended,
//! the one whose claim has the lowest number. Where nothing fails nobody is told that a username is his, and loses it.

use std::{collections::BTreeMap, time::Duration};

use mesh::{
    api::{account::AccountClaim, command::Command},
    name::{account::Label, id::KeyPrint},
    records::finder::{PROFILES, Profile},
    wire::record::{Record, Space},
};
use store::records::find;

use super::drafts;
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    holders::{Holders, asked::Asked, profiles::shelf},
};

/// Few, so that many want one.
pub(in crate::sim) const NAMES: u8 = 3;
/// Accounts that claimed a name before are waited for so long.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// An account on its way to a username.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registering {
    pub(super) node: usize,
    /// When its claim had its number.
    claimed: Option<Duration>,
    /// The node was asked for the order of claims, and has not answered.
    asked: bool,
}

pub(in crate::sim) fn username(name: u8) -> String {
    format!("name{name}")
}

pub(in crate::sim::holders) fn label(name: u8) -> Label {
    Label([name; 16])
}

/// The accounts on the disk of a node, and the username that each wants. `None`: it has ended.
pub(in crate::sim::holders) fn wanted(
    cluster: &Cluster,
    node: usize,
) -> BTreeMap<KeyPrint, Option<String>> {
    let Some(running) = &cluster.nodes[node].running else { return BTreeMap::new() };
    let shelf = shelf(cluster, Space::Mesh, PROFILES.number);
    let all = find(&running.reader, &shelf, &[], |_| true).expect("a sound store reads");
    let username = |record: &Record| {
        let profile = record.content().and_then(Profile::decode);
        profile.map(|profile| profile.username)
    };
    all.iter().map(|record| (record.owner(), username(record))).collect()
}

impl Holders {
    pub(super) fn register_account(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        let name = cluster.dice.byte() % NAMES;
        let taken = Some(username(name));
        if wanted(cluster, node).values().any(|wanted| *wanted == taken) {
            return cluster.coverage.count(Happening::NameTaken);
        }
        let account = &mut self.accounts.all[i];
        account.name = Some(name);
        account.registering = Some(Registering { node, claimed: None, asked: false });
        self.claim_account(cluster, i, node);
    }

    /// Under the username that it wants.
    pub(super) fn claim_account(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        let account = &self.accounts.all[i];
        let labels = account.name.map(label).into_iter().collect();
        let command = Command::ClaimAccount { account: account.secret.clone(), labels };
        self.calls.ask(cluster, node, Asked::Claim(i), command);
    }

    /// The claim of an account that registers has its number.
    pub(super) fn name_is_claimed(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        let now = cluster.now();
        let registering = &mut self.accounts.all[i].registering;
        if let Some(registering) = registering.as_mut().filter(|it| it.node == node) {
            registering.claimed.get_or_insert(now);
        }
        self.go_on_registering(cluster);
    }

    /// Those that have claimed their names look who came before them.
    pub(in crate::sim::holders) fn go_on_registering(&mut self, cluster: &mut Cluster) {
        for i in 0..self.accounts.all.len() {
            let account = &mut self.accounts.all[i];
            let Some((registering, name)) = account.registering.as_mut().zip(account.name) else {
                continue;
            };
            if registering.asked || registering.claimed.is_none() {
                continue;
            }
            registering.asked = true;
            let node = registering.node;
            self.calls.ask(cluster, node, Asked::Order(i), Command::ListClaims(label(name)));
        }
    }

    /// A node says in which order a name was claimed.
    pub(in crate::sim::holders) fn order_is_known(
        &mut self,
        cluster: &mut Cluster,
        (i, node): (usize, usize),
        order: &[AccountClaim],
    ) {
        let account = &mut self.accounts.all[i];
        let own = account.secret.print();
        let Some((registering, name)) = account.registering.as_mut().zip(account.name) else {
            return;
        };
        registering.asked = false;
        let began = registering.claimed.unwrap_or_default();
        let wanted = wanted(cluster, node);
        let before = order.iter().map(|claim| claim.account).take_while(|print| *print != own);
        let before: Vec<_> = before.map(|print| wanted.get(&print)).collect();
        if before.contains(&Some(&Some(username(name)))) {
            account.registering = None;
            return cluster.coverage.count(Happening::NameTaken);
        }
        if before.contains(&None) && cluster.now() < began + KNOWN_WITHIN {
            return;
        }
        account.registering = None;
        let writes = vec![drafts::profile(&account.secret, name, "new")];
        self.write_for_account(cluster, (i, node), writes, None);
    }

    /// An account that registers gets no answer any more.
    pub(in crate::sim::holders) fn stop_registering(&mut self, i: usize) {
        self.accounts.all[i].registering = None;
    }
}
