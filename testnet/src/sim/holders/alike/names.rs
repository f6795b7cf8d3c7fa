//! *one name*, in the end: see `accounts::names`.

use std::collections::BTreeMap;

use mesh::{
    api::command::{Command, Outcome},
    name::{id::KeyPrint, number::Number},
};

use super::super::{
    accounts::{
        Account,
        names::{NAMES, label, username, wanted},
    },
    answers,
};
use crate::sim::{
    coverage::Happening,
    promises::{Broken, broken},
    world::World,
};

/// *one name*, at all nodes that promises are kept to.
pub(super) fn converge(world: &mut World) -> Result<(), Broken> {
    (0..NAMES).try_for_each(|name| has_one_holder(world, name))
}

fn has_one_holder(world: &mut World, name: u8) -> Result<(), Broken> {
    let accounts = &world.holders.accounts;
    if accounts.all.iter().all(|account| account.name != Some(name)) {
        return Ok(());
    }
    let cluster = &world.cluster;
    let nodes = (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node));
    let nodes: Vec<usize> = nodes.filter(|node| cluster.nodes[*node].running.is_some()).collect();
    let ask = |node: &usize| (*node, Command::ListClaims(label(name)));
    let orders = answers::of_each(world, nodes.iter().map(ask).collect())?;
    let mut said: Option<(usize, Vec<KeyPrint>)> = None;
    for (node, order) in nodes.into_iter().zip(orders) {
        let Ok(Outcome::Claims(order)) = order else {
            return broken("one name", format!("node{node} does not say who claimed: {order:?}"));
        };
        let wanted = wanted(&world.cluster, node);
        let wants = |account: &KeyPrint| wanted.get(account) == Some(&Some(username(name)));
        let order = order.iter().map(|claim| claim.account);
        let order: Vec<KeyPrint> = order.filter(|it| wants(it) && counts(world, *it)).collect();
        if let Some((other, before)) = said.as_ref().filter(|(_, before)| *before != order) {
            let what = format!("of {name}: node{other} says {before:?}, node{node} {order:?}");
            return broken("one name", what);
        }
        said = Some((node, order));
    }
    let Some((_, order)) = said else { return Ok(()) };
    came_first(world, name, &order)?;
    nobody_lost_it(world, name, &order)
}

/// Whether a node that promises are kept to has said that it claimed the account, and no other one: of others some may have heard more.
fn counts(world: &World, account: KeyPrint) -> bool {
    let Some(account) = world.holders.accounts.get(account) else { return false };
    !account.claimed.is_empty() && account.claimed.iter().all(|it| !world.cluster.is_exempt(*it))
}

/// The claim with the lowest of all numbers that anybody knows counts, where none of them was taken back.
fn came_first(world: &World, name: u8, order: &[KeyPrint]) -> Result<(), Broken> {
    if !world.cluster.exempt.is_empty() || world.cluster.plan.parting.is_some() {
        return Ok(());
    }
    let mut first: BTreeMap<KeyPrint, Number> = BTreeMap::new();
    for (number, entry) in world.promises.all_names(world.cluster.directory()) {
        let Some((account, labels)) = world.holders.accounts.claims.get(&entry) else { continue };
        if labels.contains(&label(name)) && order.contains(account) {
            let lowest = first.entry(*account).or_insert(number);
            *lowest = number.min(*lowest);
        }
    }
    let mut all: Vec<(Number, KeyPrint)> = first.into_iter().map(|(it, n)| (n, it)).collect();
    all.sort_unstable();
    let expected: Vec<KeyPrint> = all.iter().map(|(_, account)| *account).collect();
    if expected != order {
        let what = format!("{name} was claimed by {all:?}, and nodes say {order:?}");
        return broken("one name", what);
    }
    Ok(())
}

fn nobody_lost_it(world: &mut World, name: u8, order: &[KeyPrint]) -> Result<(), Broken> {
    let cluster = &mut world.cluster;
    let has_it =
        |account: &&Account| account.named && account.name == Some(name) && !account.ending;
    let told = world.holders.accounts.all.iter().filter(has_it);
    for account in told.map(|account| account.secret.print()) {
        if order.first() == Some(&account) {
            cluster.coverage.count(Happening::NameKept);
        } else if order.contains(&account) {
            let nothing_fails = cluster.plan.is_undisturbed() && cluster.is_honest();
            if nothing_fails && cluster.plan.gossip {
                let what = format!("{account} was told that it has {name}, and lost it: {order:?}");
                return broken("one name", what);
            }
            cluster.coverage.count(Happening::NameLost);
        }
    }
    Ok(())
}
