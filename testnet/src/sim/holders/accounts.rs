//! Accounts: some node claims them, and their records are written, edited and deleted at any node. Some of them end.
//!
//! *records*: as of `profiles`; and a node that has heard of the end of an account keeps nothing more that is the account's, or
//! about it.

mod drafts;
pub(super) mod letters;
pub(in crate::sim) mod names;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mesh::{
    api::{
        account::{AccountRefused, RecordWrite, RecordWrites},
        batch::Change,
        command::{Command, Refused},
    },
    name::{account::Label, id::KeyPrint, key::KeySecret},
    records::{
        collection::Collection,
        finder::{JOBS, MAILS, MARKS, Mark, PROFILES, Profile, REVIEWS},
    },
    wire::record::{RecordKey, Space, Stamp},
};

use self::{
    letters::{Letter, Letters},
    names::Registering,
};
use super::{
    Holders,
    asked::{Asked, RecordsSaid},
    profiles::Name,
};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    keys,
    promises::{Broken, Entry, broken},
};

/// The first one never ends.
const ACCOUNTS: usize = 9;
/// Jobs of each.
const JOBS_EACH: u64 = 4;

/// An account of the world.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) secret: Arc<KeySecret>,
    /// Nodes that have said that they claimed it.
    pub(super) claimed: BTreeSet<usize>,
    /// The username that it wants: claimed by some node, or about to be.
    pub(super) name: Option<u8>,
    registering: Option<Registering>,
    /// A node has answered that the username is its own.
    pub(super) named: bool,
    /// Somebody has asked for its end.
    pub(super) ending: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) all: Vec<Account>,
    letters: Letters,
    /// Claims, wherever they are written.
    pub(super) claims: BTreeMap<Entry, (KeyPrint, Vec<Label>)>,
    /// Accounts that a record that somebody was answered for is about, besides its owner.
    about: BTreeMap<Name, BTreeSet<KeyPrint>>,
}

impl Default for Accounts {
    fn default() -> Accounts {
        let account = |nth| Account {
            secret: Arc::new(keys::secret(&format!("account {nth}"))),
            claimed: BTreeSet::new(),
            name: None,
            registering: None,
            named: false,
            ending: false,
        };
        let all = (0..ACCOUNTS).map(account).collect();
        Accounts { all, letters: Letters::new(), claims: BTreeMap::new(), about: BTreeMap::new() }
    }
}

impl Accounts {
    pub(super) fn get(&self, print: KeyPrint) -> Option<&Account> {
        self.all.iter().find(|account| account.secret.print() == print)
    }

    /// Whether a record may be gone, with the account that owns it or another one.
    pub(super) fn may_be_gone(&self, name: &Name) -> bool {
        let ends = |print: &KeyPrint| self.get(*print).is_some_and(|account| account.ending);
        let goes = name.2.owner.filter(|_| name.1 != PROFILES.number);
        goes.iter().chain(self.about.get(name).into_iter().flatten()).any(ends)
    }

    /// Clients of a node that is down get no answers.
    pub(super) fn node_down(&mut self, node: usize) {
        for account in &mut self.all {
            account.registering = account.registering.filter(|it| it.node != node);
        }
    }
}

impl Holders {
    /// Somebody who has an account's key does something at some node.
    pub(in crate::sim) fn act_for_account(&mut self, cluster: &mut Cluster) {
        self.go_on_registering(cluster);
        let node = cluster.dice.index(cluster.nodes.len());
        if cluster.nodes[node].running.is_none() {
            return;
        }
        let i = cluster.dice.index(ACCOUNTS);
        let account = &self.accounts.all[i];
        if account.name.is_none() {
            return self.register_account(cluster, i, node);
        }
        // Now and then at two nodes: on two sides of a split nobody knows.
        if account.claimed.is_empty() || cluster.dice.chance(5) {
            return self.claim_account(cluster, i, node);
        }
        let (writes, letter) = if i > 0 && cluster.dice.chance(3) {
            (vec![drafts::end(&account.secret)], None)
        } else {
            self.some_writes(cluster, (i, node))
        };
        self.write_for_account(cluster, (i, node), writes, letter);
    }

    fn write_for_account(
        &mut self,
        cluster: &mut Cluster,
        (i, node): (usize, usize),
        writes: Vec<RecordWrite>,
        letter: Option<Letter>,
    ) {
        let account = &mut self.accounts.all[i];
        let ends =
            |write: &RecordWrite| write.collection == PROFILES.number && write.body.is_none();
        account.ending |= writes.iter().any(ends);
        let secret = account.secret.clone();
        let said = RecordsSaid { account: secret.print(), writes: writes.clone(), letter };
        let command = Command::WriteRecords(Box::new(RecordWrites {
            account: secret,
            writes,
            above: Stamp::default(),
        }));
        self.calls.ask(cluster, node, Asked::Records(said), command);
    }

    fn some_writes(
        &self,
        cluster: &mut Cluster,
        (i, node): (usize, usize),
    ) -> (Vec<RecordWrite>, Option<Letter>) {
        let own = &self.accounts.all[i].secret;
        let nonce = cluster.dice.within(0, JOBS_EACH - 1);
        let text = cluster.dice.draw().to_string();
        let (id, body) = drafts::job(own, nonce, &text);
        let job = RecordWrite::new(JOBS.number, id, Some(body));
        let writes = match cluster.dice.within(0, 14) {
            0 | 1 => self.some_profile(cluster, (i, node), &text),
            2 | 3 => vec![job],
            4 => vec![RecordWrite { body: None, ..job }],
            5 => vec![drafts::seen(own, cluster)],
            6 => vec![job, drafts::seen(own, cluster)],
            7..=11 => return self.letter(cluster, i, text),
            12 => self.marks(cluster, i),
            _ => {
                let other = cluster.dice.index(ACCOUNTS);
                let other = &self.accounts.all[other].secret;
                let review = drafts::review(own, other, (nonce, text));
                let body = review.body.filter(|_| cluster.dice.chance(80));
                vec![RecordWrite { body, ..review }]
            }
        };
        (writes, None)
    }

    /// The profile that a node has, with another text.
    fn some_profile(
        &self,
        cluster: &mut Cluster,
        (i, node): (usize, usize),
        text: &str,
    ) -> Vec<RecordWrite> {
        let account = &self.accounts.all[i];
        let own = &account.secret;
        let there = names::wanted(cluster, node).remove(&own.print()).flatten();
        match account.name.filter(|_| there.is_some()) {
            Some(name) => vec![drafts::profile(own, name, text)],
            None => vec![drafts::seen(own, cluster)],
        }
    }

    fn letter(
        &self,
        cluster: &mut Cluster,
        from: usize,
        text: String,
    ) -> (Vec<RecordWrite>, Option<Letter>) {
        let to = cluster.dice.index(ACCOUNTS);
        let letter = Letter { from, to, subject: format!("about {text}"), text };
        let [own, other] = [from, to].map(|of| &self.accounts.all[of].secret);
        (vec![drafts::mail(cluster, (own, other), &letter)], Some(letter))
    }

    /// The recipient of a mail says that it is read, or is not.
    fn marks(&self, cluster: &mut Cluster, i: usize) -> Vec<RecordWrite> {
        let secret = &self.accounts.all[i].secret;
        let own = secret.print();
        let all = self.profiles.answered.keys().filter(|name| name.1 == MAILS.number);
        let mails: Vec<RecordKey> = all.map(|name| name.2).collect();
        if mails.is_empty() {
            return vec![drafts::seen(secret, cluster)];
        }
        let RecordKey { id: mail, owner } = *cluster.dice.pick(&mails);
        let mark = Mark { mail, from: owner.unwrap_or(own), is_read: cluster.dice.chance(50) };
        vec![RecordWrite::new(MARKS.number, mark.id(own), Some(mark.encode()))]
    }

    pub(super) fn account_is_claimed(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        cluster.coverage.count(Happening::AccountClaimed);
        self.accounts.all[i].claimed.insert(node);
        self.name_is_claimed(cluster, i, node);
    }

    /// A node has written them: that is on its disk.
    pub(super) fn records_are_written(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        (said, stamps): (&RecordsSaid, &[Stamp]),
    ) -> Result<(), Broken> {
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        if stamps.len() != said.writes.len() {
            return broken("records", format!("node{node}: {stamps:?} of {said:?}"));
        }
        let mesh = cluster.secret.mesh_id();
        for (write, stamp) in said.writes.iter().zip(stamps) {
            let RecordWrite { collection, id, body, .. } = write;
            let name = self.was_said(node, said, write);
            let place = (*collection, *id, said.account);
            let found = store::followed::record(&running.reader, mesh, place);
            let found = found.expect("a sound store reads");
            if found.is_none_or(|found| found.stamp < *stamp) && !self.accounts.may_be_gone(&name) {
                return broken("records", format!("node{node} has written nothing of {said:?}"));
            }
            let content = store::followed::content(&running.reader, mesh, place);
            let content = content.expect("a sound store reads");
            if write.apart.is_some() && content != write.apart && !self.accounts.may_be_gone(&name)
            {
                return broken("contents", format!("node{node} has not kept a text of {said:?}"));
            }
            let happened = match body {
                Some(_) if *collection == MAILS.number => Happening::LetterSent,
                Some(_) if *collection == REVIEWS.number => Happening::Reviewed,
                Some(_) => Happening::Listed,
                None if *collection == PROFILES.number => Happening::AccountEnded,
                None => Happening::Unlisted,
            };
            self.profiles.was_answered(name, (*stamp, node));
            cluster.coverage.count(happened);
        }
        Ok(())
    }

    /// Notes what an account was answered for. Its name.
    fn was_said(&mut self, node: usize, said: &RecordsSaid, write: &RecordWrite) -> Name {
        let RecordWrite { collection, id, body, .. } = write;
        let name = (Space::Mesh, *collection, RecordKey { id: *id, owner: Some(said.account) });
        let about = Collection::of(*collection).and_then(|kind| kind.about(body.as_deref()));
        self.accounts.about.entry(name).or_default().extend(about);
        if let Some(letter) = &said.letter {
            self.accounts.letters.insert(name, (letter.clone(), node));
        }
        let mut accounts = self.accounts.all.iter_mut();
        if *collection == PROFILES.number
            && body.is_some()
            && let Some(account) = accounts.find(|account| account.secret.print() == said.account)
        {
            account.named = true;
        }
        name
    }

    /// *records*: a node keeps a record of an account.
    pub(super) fn may_be_kept(&self, node: usize, change: &Change) -> Result<(), Broken> {
        let Change::Record { collection, key, record: Some(record), .. } = change else {
            return Ok(());
        };
        let Some(kind) = Collection::of(*collection).filter(|kind| kind.family().is_some()) else {
            return Ok(());
        };
        let about = kind.about(record.content());
        let owner = key.owner.filter(|_| !kind.founds());
        for account in owner.into_iter().chain(about) {
            let key = RecordKey { id: Profile::id(account), owner: Some(account) };
            if self.profiles.has_deleted(node, (Space::Mesh, PROFILES.number, key)) {
                let what = format!("node{node} keeps {record:?} of an account that has ended");
                return broken("records", what);
            }
        }
        Ok(())
    }
}

pub(super) fn may_be_refused_to_account(refused: &Refused) -> bool {
    let Refused::Account(why) = refused else {
        return matches!(refused, Refused::Closed | Refused::Stopping);
    };
    match why {
        // The claim is not known here yet, or an end is; or clocks are wrong.
        AccountRefused::Unknown
        | AccountRefused::Ended
        | AccountRefused::Deleted
        | AccountRefused::Behind => true,
        AccountRefused::Full(_)
        | AccountRefused::Form
        | AccountRefused::TooManyBytes(_)
        | AccountRefused::TooMuch => false,
    }
}
