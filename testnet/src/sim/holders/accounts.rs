//! Accounts: some node claims them, and their records are written, edited and deleted at any node. Some of them end.
//!
//! *records*: as of `profiles`; and a node that has heard of the end of an account keeps nothing more that is the account's, or
//! about it.

use std::{collections::BTreeSet, sync::Arc};

use mesh::{
    api::{
        account::{AccountRefused, RecordWrite, RecordWrites},
        batch::Change,
        command::{Command, Refused},
    },
    name::{account::Label, id::KeyPrint, key::KeySecret},
    records::{
        collection::Collection,
        finder::{
            Correspondence, Envelope, Form, JOBS, Job, MAILS, MARKS, Mark, PROFILES, Pricing,
            Profile, REVIEWS, Review, SEEN, Seen,
        },
    },
    wire::record::{RecordKey, Space, Stamp},
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
    promises::{Broken, broken},
};

/// The first one never ends.
const ACCOUNTS: usize = 4;
/// Jobs of each.
const JOBS_EACH: u64 = 4;

/// An account of the world.
#[derive(Debug)]
pub(super) struct Account {
    secret: Arc<KeySecret>,
    /// Nodes that have said that they claimed it.
    pub(super) claimed: BTreeSet<usize>,
    /// Somebody has asked for its end.
    ending: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Accounts(Vec<Account>);

impl Default for Accounts {
    fn default() -> Accounts {
        let account = |nth| Account {
            secret: Arc::new(keys::secret(&format!("account {nth}"))),
            claimed: BTreeSet::new(),
            ending: false,
        };
        Accounts((0..ACCOUNTS).map(account).collect())
    }
}

impl Accounts {
    pub(super) fn get(&self, print: KeyPrint) -> Option<&Account> {
        self.0.iter().find(|account| account.secret.print() == print)
    }

    /// Whether a record may be gone, with the account that owns it or another one.
    pub(super) fn may_be_gone(&self, name: &Name) -> bool {
        let owner = name.2.owner.and_then(|owner| self.get(owner));
        let ends = self.0.iter().any(|account| account.ending);
        let goes = owner.is_some_and(|owner| owner.ending) && name.1 != PROFILES.number;
        let about_others = [REVIEWS.number, MAILS.number, MARKS.number];
        goes || (ends && about_others.contains(&name.1))
    }
}

impl Holders {
    /// Somebody who has an account's key does something at some node.
    pub(super) fn act_for_account(&mut self, cluster: &mut Cluster) {
        let node = cluster.dice.index(cluster.nodes.len());
        if cluster.nodes[node].running.is_none() {
            return;
        }
        let i = cluster.dice.index(ACCOUNTS);
        let account = &self.accounts.0[i];
        let secret = Arc::clone(&account.secret);
        // Now and then at two nodes: on two sides of a split nobody knows.
        if account.claimed.is_empty() || cluster.dice.chance(5) {
            let labels = vec![Label([u8::try_from(i % 2).unwrap_or_default(); 16])];
            let command = Command::ClaimAccount { account: secret, labels };
            return self.calls.ask(cluster, node, Asked::Claim(i), command);
        }
        let ends = i > 0 && cluster.dice.chance(3);
        let writes = if ends { vec![end(&secret)] } else { self.some_writes(cluster, i) };
        self.accounts.0[i].ending |= ends;
        let said = RecordsSaid { account: secret.print(), writes: writes.clone() };
        let command = Command::WriteRecords(Box::new(RecordWrites {
            account: secret,
            writes,
            above: Stamp::default(),
        }));
        self.calls.ask(cluster, node, Asked::Records(said), command);
    }

    fn some_writes(&self, cluster: &mut Cluster, i: usize) -> Vec<RecordWrite> {
        let own = &self.accounts.0[i].secret;
        let nonce = cluster.dice.within(0, JOBS_EACH - 1);
        let text = cluster.dice.draw().to_string();
        let (id, body) = job(own, nonce, &text);
        let job = RecordWrite::new(JOBS.number, id, Some(body));
        match cluster.dice.within(0, 13) {
            0 | 1 => vec![profile(own, &text)],
            2..=4 => vec![job],
            5 => vec![RecordWrite { body: None, ..job }],
            6 => vec![seen(own, cluster)],
            7 => vec![job, seen(own, cluster)],
            10..=12 => {
                let other = cluster.dice.index(ACCOUNTS);
                vec![mail(cluster, own, &self.accounts.0[other].secret, &text)]
            }
            13 => self.marks(cluster, i),
            _ => {
                let other = cluster.dice.index(ACCOUNTS);
                let other = &self.accounts.0[other].secret;
                let review = review(own, other, (nonce, text));
                let body = review.body.filter(|_| cluster.dice.chance(80));
                vec![RecordWrite { body, ..review }]
            }
        }
    }

    /// The recipient of a mail says that it is read, or is not.
    fn marks(&self, cluster: &mut Cluster, i: usize) -> Vec<RecordWrite> {
        let own = self.accounts.0[i].secret.print();
        let all = self.profiles.answered.keys().filter(|name| name.1 == MAILS.number);
        let mails: Vec<RecordKey> = all.map(|name| name.2).collect();
        if mails.is_empty() {
            return vec![seen(&self.accounts.0[i].secret, cluster)];
        }
        let RecordKey { id: mail, owner } = *cluster.dice.pick(&mails);
        let mark = Mark { mail, from: owner.unwrap_or(own), is_read: cluster.dice.chance(50) };
        vec![RecordWrite::new(MARKS.number, mark.id(own), Some(mark.encode()))]
    }

    pub(super) fn account_is_claimed(&mut self, cluster: &mut Cluster, i: usize, node: usize) {
        cluster.coverage.count(Happening::AccountClaimed);
        self.accounts.0[i].claimed.insert(node);
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
            let place = (*collection, *id, said.account);
            let found = store::followed::record(&running.reader, mesh, place);
            let found = found.expect("a sound store reads");
            let name = (Space::Mesh, *collection, RecordKey { id: *id, owner: Some(said.account) });
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

fn profile(own: &KeySecret, text: &str) -> RecordWrite {
    let profile = Profile {
        username: "somebody".to_owned(),
        name: text.to_owned(),
        certificate: vec![7; 40],
        former: Vec::new(),
        payment: Vec::new(),
        contact: Vec::new(),
        registered: Stamp::at(1),
        mailbox: own.halves().mailbox,
        proof: None,
        vault: None,
        host: None,
    };
    let (collection, id) = (PROFILES.number, Profile::id(own.print()));
    RecordWrite::new(collection, id, Some(profile.encode()))
}

fn end(own: &KeySecret) -> RecordWrite {
    RecordWrite::new(PROFILES.number, Profile::id(own.print()), None)
}

fn job(own: &KeySecret, nonce: u64, text: &str) -> (mesh::wire::record::RecordId, Vec<u8>) {
    let mut drawn = [0; 16];
    drawn[..8].copy_from_slice(&nonce.to_be_bytes());
    let job = Job {
        nonce: drawn,
        title: text.to_owned(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Negotiable,
        active: true,
        metadata: "{}".to_owned(),
        created: Stamp::at(1),
    };
    (job.id(own.print()), job.encode())
}

fn mail(cluster: &mut Cluster, own: &KeySecret, other: &KeySecret, text: &str) -> RecordWrite {
    let mesh = cluster.secret.mesh_id();
    let mailbox = own.mailbox().expect("the keys of worlds are long enough");
    let both = Correspondence::of(mesh, mailbox, &other.halves().mailbox);
    let both = both.expect("nobody's mailbox is a point that all share");
    let (ends, mut nonce) = ((own.print(), other.print()), [0; 16]);
    nonce[..8].copy_from_slice(&cluster.dice.draw().to_be_bytes());
    let mail = both.seal(ends, nonce, &Envelope::new(String::new(), Form::Pgp, ([1; 20], [2; 20])));
    let id = mail.id(own.print());
    let apart = Some(both.seal_text(ends, id, text));
    RecordWrite { apart, ..RecordWrite::new(MAILS.number, id, Some(mail.encode())) }
}

fn review(own: &KeySecret, other: &KeySecret, (nonce, text): (u64, String)) -> RecordWrite {
    let (about, _) = job(other, nonce, "");
    let review = Review {
        job: about,
        offered_by: other.print(),
        title: String::new(),
        reviewee: other.print(),
        stars: 3,
        text,
        created: Stamp::at(1),
        receipt: None,
    };
    let id = review.id(own.print());
    RecordWrite::new(REVIEWS.number, id, Some(review.encode()))
}

fn seen(own: &KeySecret, cluster: &mut Cluster) -> RecordWrite {
    let seen = Seen { wall_ms: cluster.dice.within(0, 1_000_000) };
    let (collection, id) = (SEEN.number, Seen::id(own.print()));
    RecordWrite::new(collection, id, Some(seen.encode()))
}
