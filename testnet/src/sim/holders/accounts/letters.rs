//! Mail between accounts: its recipient reads it.
//!
//! *mail*: a mail whose sender was answered is on the disk of the node that answered, text and all, over crashes. In the end its
//! recipient opens subject and text, as they were written, at every node that promises are kept to, if one of these has the text.
//! Unless one of its two accounts has ended.

use std::collections::BTreeMap;

use mesh::{
    name::key::KeySecret,
    records::finder::{Correspondence, Mail},
};
use store::followed;

use super::Accounts;
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    holders::{Holders, profiles::Name},
    promises::{Broken, broken},
    world::World,
};

/// What one account writes to another one.
#[derive(Clone, Debug)]
pub(in crate::sim::holders) struct Letter {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) subject: String,
    pub(super) text: String,
}

impl Letter {
    /// What two accounts share, as the first one has it.
    pub(super) fn between(
        &self,
        cluster: &Cluster,
        own: &KeySecret,
        other: &KeySecret,
    ) -> Correspondence {
        let mailbox = own.mailbox().expect("the keys of worlds are long enough");
        let both = Correspondence::of(cluster.secret.mesh_id(), mailbox, &other.halves().mailbox);
        both.expect("nobody's mailbox is a point that all share")
    }
}

/// Letters whose senders were answered, and the nodes that did.
pub(super) type Letters = BTreeMap<Name, (Letter, usize)>;

/// What the recipient of a letter finds at a node.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Neither the letter nor a word of it.
    Nothing,
    /// Its subject. Its text is somewhere else.
    Listed,
    /// All of it.
    Read,
    /// Something else than was written.
    Other,
}

impl Accounts {
    /// A letter at a node, opened with the key of its recipient.
    fn read(&self, cluster: &Cluster, node: usize, (name, letter): (&Name, &Letter)) -> Found {
        let Some(running) = &cluster.nodes[node].running else { return Found::Nothing };
        let [from, to] = [letter.from, letter.to].map(|of| &self.all[of].secret);
        let (mesh, place) = (cluster.secret.mesh_id(), (name.1, name.2.id, from.print()));
        let found = followed::record(&running.reader, mesh, place).expect("a sound store reads");
        let Some(body) = found.and_then(|record| record.body) else { return Found::Nothing };
        let both = letter.between(cluster, to, from);
        let envelope = Mail::decode(&body).and_then(|mail| both.open(from.print(), &mail));
        if envelope.is_none_or(|envelope| envelope.subject != letter.subject) {
            return Found::Other;
        }
        let text = followed::content(&running.reader, mesh, place).expect("a sound store reads");
        let Some(text) = text else { return Found::Listed };
        let ends = (from.print(), to.print());
        let opened = both.open_text(ends, name.2.id, &text);
        if opened.as_ref() == Some(&letter.text) { Found::Read } else { Found::Other }
    }

    /// Letters between accounts that nobody has asked to end, of senders that some node has claimed that promises are kept to: of what
    /// one that is out has claimed, nothing is kept.
    fn standing(&self, cluster: &Cluster) -> Vec<(&Name, &Letter, usize)> {
        let stands = |letter: &Letter| {
            let ends = [letter.from, letter.to].iter().any(|of| self.all[*of].ending);
            let mut claimed = self.all[letter.from].claimed.iter();
            !ends && claimed.any(|node| !cluster.is_exempt(*node))
        };
        let all = self.letters.iter().map(|(name, (letter, by))| (name, letter, *by));
        all.filter(|(_, letter, _)| stands(letter)).collect()
    }
}

impl Holders {
    /// *mail*, at a node that starts again: those that it has answered for are there.
    pub(in crate::sim) fn letters_are_there(
        &self,
        cluster: &mut Cluster,
        node: usize,
    ) -> Result<(), Broken> {
        if cluster.is_exempt(node) {
            return Ok(());
        }
        let accounts = &self.accounts;
        for (name, letter, by) in accounts.standing(cluster) {
            if by != node {
                continue;
            }
            match accounts.read(cluster, node, (name, letter)) {
                Found::Read => cluster.coverage.count(Happening::LetterKept),
                found @ (Found::Nothing | Found::Listed | Found::Other) => {
                    let what = format!("node{node} has taken {letter:?}, and starts: {found:?}");
                    return broken("mail", what);
                }
            }
        }
        Ok(())
    }
}

/// *mail*, in the end.
pub(in crate::sim::holders) fn are_read(world: &mut World) -> Result<(), Broken> {
    let World { holders, cluster, .. } = world;
    let nodes = (0..cluster.nodes.len()).filter(|node| !cluster.is_exempt(*node));
    let nodes: Vec<usize> = nodes.filter(|node| cluster.nodes[*node].running.is_some()).collect();
    let accounts = &holders.accounts;
    for (name, letter, by) in accounts.standing(cluster) {
        let found = |node: &usize| (*node, accounts.read(cluster, *node, (name, letter)));
        let found: Vec<(usize, Found)> = nodes.iter().map(found).collect();
        // The only copy may be at a node that is out, or lost with its disk.
        let there = found.iter().any(|(_, found)| *found == Found::Read);
        let must = there || nodes.contains(&by);
        let is_kept = |(_, found): &(usize, Found)| {
            *found == Found::Read || (!must && *found != Found::Other)
        };
        if !found.iter().all(is_kept) {
            return broken("mail", format!("{letter:?} of node{by}, at each node: {found:?}"));
        }
        for _ in found.iter().filter(|(_, found)| *found == Found::Read) {
            cluster.coverage.count(Happening::LetterRead);
        }
    }
    Ok(())
}
