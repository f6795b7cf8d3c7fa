//! What is in the index, as it shows at this node: accounts, jobs and reviews that are kept in memory as far as they have
//! to be found. Texts and certificates stay in the store.
//!
//! Records say what each account wrote. Whether an account *shows* follows from all of them and from the directory
//! (`docs/decisions/clawfinder.md`): of several accounts with one id one shows, and of several with one username one has it.

mod letters;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

pub(crate) use self::letters::{Letter, Letters};
use mesh::{
    api::account::RecordView,
    name::{
        account::Label,
        id::{KeyPrint, MeshId, NodeId},
        key::KeyHalves,
    },
    records::finder::{JOBS, Job, PROFILES, Profile, REVIEWS, Review, SEEN, Seen},
    wire::record::{RecordId, Stamp},
};
use openpgp::{Certificate, Fingerprint};

use crate::{
    claims::Claims,
    hidden::Hidden,
    proof,
    usernames::{folded, is_reserved, problem},
};

/// An account that has a profile.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) print: KeyPrint,
    /// The id of its profile's record, which stays.
    pub(crate) uuid: RecordId,
    /// The fingerprint of its certificate.
    pub(crate) id: Fingerprint,
    /// Of certificates that it had before.
    pub(crate) former: Vec<Fingerprint>,
    /// As it was given.
    pub(crate) username: String,
    pub(crate) name: String,
    pub(crate) registered: Stamp,
    pub(crate) updated: Stamp,
    /// Its certificate has signed that this is its account.
    pub(crate) is_proven: bool,
    /// A node made its PGP key, which its API key opens.
    pub(crate) is_hosted: bool,
    /// The node that puts its mail into rooms of an agent.
    pub(crate) host: Option<NodeId>,
    /// Its public halves: mail for it is sealed to one, and its word is checked with the other.
    pub(crate) halves: KeyHalves,
}

/// A job, without what a list does not need.
#[derive(Clone, Debug)]
pub(crate) struct JobRow {
    pub(crate) id: RecordId,
    pub(crate) owner: KeyPrint,
    pub(crate) created: Stamp,
    pub(crate) updated: Stamp,
    pub(crate) title: String,
    pub(crate) is_active: bool,
    /// All that a search looks at, folded. `None`: there was no room for it, and it stays in the store.
    pub(crate) texts: Option<Arc<str>>,
}

/// A review, without its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReviewRow {
    pub(crate) id: RecordId,
    pub(crate) reviewer: KeyPrint,
    pub(crate) reviewee: KeyPrint,
    pub(crate) job: RecordId,
    /// The account whose job it is, as the reviewer says.
    offered_by: KeyPrint,
    pub(crate) created: Stamp,
    pub(crate) updated: Stamp,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Index {
    accounts: HashMap<KeyPrint, Account>,
    /// Accounts that were deleted.
    deleted: HashSet<KeyPrint>,
    by_name: HashMap<String, BTreeSet<KeyPrint>>,
    by_id: HashMap<Fingerprint, BTreeSet<KeyPrint>>,
    by_former: HashMap<Fingerprint, BTreeSet<KeyPrint>>,
    by_uuid: HashMap<[u8; 16], KeyPrint>,
    jobs: BTreeMap<RecordId, JobRow>,
    /// Bytes of texts of jobs that may be kept here, and that are.
    texts_max: usize,
    texts_kept: usize,
    /// Jobs that were deleted, and whose they were.
    gone_jobs: BTreeMap<RecordId, KeyPrint>,
    reviews: BTreeMap<RecordId, ReviewRow>,
    seen: HashMap<KeyPrint, u64>,
    pub(crate) letters: Letters,
    /// What the directory says of accounts that want the same id or username as another one.
    pub(crate) claims: Claims,
    /// By the operator of this node.
    hidden: Arc<Hidden>,
}

impl Index {
    pub(crate) fn new(mesh: MeshId, texts_max: usize, hidden: Arc<Hidden>) -> Index {
        Index {
            accounts: HashMap::new(),
            deleted: HashSet::new(),
            by_name: HashMap::new(),
            by_id: HashMap::new(),
            by_former: HashMap::new(),
            by_uuid: HashMap::new(),
            jobs: BTreeMap::new(),
            texts_max,
            texts_kept: 0,
            gone_jobs: BTreeMap::new(),
            reviews: BTreeMap::new(),
            seen: HashMap::new(),
            letters: Letters::default(),
            claims: Claims::new(mesh),
            hidden,
        }
    }

    /// See [`Index::take`].
    pub(crate) fn take_all(&mut self, records: &[RecordView], document: proof::Document) {
        for record in records {
            self.take(record, document);
        }
    }

    /// A record is there, or has another state. One that has not the form of its collection is none.
    pub(crate) fn take(&mut self, record: &RecordView, document: proof::Document) {
        let (number, body) = (record.collection, record.body.as_deref());
        if number == PROFILES.number {
            self.take_profile(record, document);
        } else if number == JOBS.number {
            self.take_job(record);
        } else if number == REVIEWS.number {
            self.take_review(record);
        } else if self.letters.take(record) {
            // It is of mail.
        } else if number == SEEN.number
            && let Some(seen) = body.and_then(Seen::decode)
        {
            let at = self.seen.entry(record.owner).or_default();
            *at = seen.wall_ms.max(*at);
        }
    }

    fn take_profile(&mut self, record: &RecordView, document: proof::Document) {
        self.forget_account(record.owner);
        let Some((body, halves)) = record.body.as_deref().zip(record.halves) else {
            // One that is gone without a word was pushed out by others: nobody knows its account any more.
            if !record.is_gone() {
                self.deleted.insert(record.owner);
            }
            let own = self.jobs.values().filter(|job| job.owner == record.owner);
            let own: Vec<RecordId> = own.map(|job| job.id).collect();
            own.into_iter().for_each(|job| self.forget_job(job));
            self.gone_jobs.retain(|_, owner| *owner != record.owner);
            self.reviews
                .retain(|_, row| row.reviewer != record.owner && row.reviewee != record.owner);
            self.seen.remove(&record.owner);
            return;
        };
        // Other nodes take what their clients say as they like: this one judges it again.
        let is_sound = |profile: &Profile| {
            let may_have = problem(&profile.username).is_none() && !is_reserved(&profile.username);
            may_have && !profile.name.chars().any(char::is_control)
        };
        let Some(profile) = Profile::decode(body).filter(is_sound) else { return };
        let Ok(certificate) = Certificate::from_bytes(&profile.certificate) else { return };
        let former = profile.former.iter();
        let former = former.filter_map(|former| Certificate::from_bytes(&former.certificate).ok());
        let account = Account {
            print: record.owner,
            uuid: record.id,
            id: certificate.fingerprint(),
            former: former.map(|certificate| certificate.fingerprint()).collect(),
            is_proven: proof::is_given(&certificate, &profile, document, &halves.signer),
            is_hosted: profile.vault.is_some(),
            host: profile.host,
            halves,
            username: profile.username,
            name: profile.name,
            registered: not_after(profile.registered, record),
            updated: record.stamp,
        };
        self.by_name.entry(folded(&account.username)).or_default().insert(account.print);
        self.by_id.entry(account.id).or_default().insert(account.print);
        for id in &account.former {
            self.by_former.entry(*id).or_default().insert(account.print);
        }
        self.by_uuid.insert(record.id.0, account.print);
        self.accounts.insert(account.print, account);
    }

    fn forget_account(&mut self, print: KeyPrint) {
        let Some(account) = self.accounts.remove(&print) else { return };
        leave(&mut self.by_name, &folded(&account.username), print);
        leave(&mut self.by_id, &account.id, print);
        for id in &account.former {
            leave(&mut self.by_former, id, print);
        }
        self.by_uuid.remove(&account.uuid.0);
    }

    fn forget_job(&mut self, id: RecordId) {
        let texts = self.jobs.remove(&id).and_then(|job| job.texts);
        self.texts_kept -= texts.map_or(0, |texts| texts.len());
    }

    fn take_job(&mut self, record: &RecordView) {
        self.forget_job(record.id);
        let Some(body) = record.body.as_deref() else {
            if !record.is_gone() {
                self.gone_jobs.insert(record.id, record.owner);
            }
            return;
        };
        let Some(job) = Job::decode(body) else { return };
        let texts = texts(&job);
        let has_room = self.texts_kept + texts.len() <= self.texts_max;
        let texts: Option<Arc<str>> = has_room.then(|| texts.into());
        self.texts_kept += texts.as_ref().map_or(0, |texts| texts.len());
        let row = JobRow {
            id: record.id,
            owner: record.owner,
            created: not_after(job.created, record),
            updated: record.stamp,
            texts,
            title: job.title,
            is_active: job.active,
        };
        self.jobs.insert(record.id, row);
    }

    fn take_review(&mut self, record: &RecordView) {
        let Some(review) = record.body.as_deref().and_then(Review::decode) else {
            self.reviews.remove(&record.id);
            return;
        };
        let row = ReviewRow {
            id: record.id,
            reviewer: record.owner,
            reviewee: review.reviewee,
            job: review.job,
            offered_by: review.offered_by,
            created: not_after(review.created, record),
            updated: record.stamp,
        };
        // Void: of oneself, or of a job of neither.
        let is_sound = row.reviewer != row.reviewee
            && (1..=5).contains(&review.stars)
            && [row.reviewer, row.reviewee].contains(&review.offered_by);
        if is_sound {
            self.reviews.insert(record.id, row);
        } else {
            self.reviews.remove(&record.id);
        }
    }

    /// Whether the account was deleted.
    pub(crate) fn is_deleted(&self, print: KeyPrint) -> bool {
        self.deleted.contains(&print)
    }

    /// An account, be it displaced.
    pub(crate) fn account(&self, print: KeyPrint) -> Option<&Account> {
        self.accounts.get(&print)
    }

    /// An account that shows.
    pub(crate) fn live(&self, print: KeyPrint) -> Option<&Account> {
        self.accounts.get(&print).filter(|account| self.holder(account.id) == Some(print))
    }

    /// The account that has an id, of those whose certificate it is: a proven one before one that is not, of proven ones
    /// the later one, of others the one whose claim of this id counts first.
    pub(crate) fn holder(&self, id: Fingerprint) -> Option<KeyPrint> {
        let all = self.by_id.get(&id)?;
        let all = all.iter().filter_map(|print| self.accounts.get(print));
        let best = all.min_by_key(|account| {
            let registered = if account.is_proven { !account.registered.0 } else { 0 };
            (!account.is_proven, registered, self.claims.of_id(account.print, id), account.print)
        });
        best.map(|account| account.print)
    }

    /// The account that has a username, of those that want it: the one whose claim counts first.
    pub(crate) fn named(&self, username: &str) -> Option<KeyPrint> {
        let folded = folded(username);
        let wanting = self.by_name.get(&folded);
        let wanting = wanting.into_iter().flatten().filter_map(|print| self.live(*print));
        let best = wanting
            .min_by_key(|account| (self.claims.of_name(account.print, &folded), account.print));
        // Or one that lost the name it wants, and is shown under a longer one.
        best.map(|account| account.print).or_else(|| self.renamed(&folded))
    }

    fn renamed(&self, folded_name: &str) -> Option<KeyPrint> {
        let cut = folded_name.rfind('-')?;
        let wanting = self.by_name.get(folded_name.get(..cut)?)?;
        wanting.iter().copied().find(|print| {
            self.live(*print)
                .is_some_and(|account| folded(&self.shown_name(account)) == folded_name)
        })
    }

    /// The username under which an account shows.
    pub(crate) fn shown_name(&self, account: &Account) -> String {
        let wanted = folded(&account.username);
        let wanting = self.by_name.get(&wanted).into_iter().flatten();
        let wanting = wanting.filter_map(|print| self.live(*print));
        let best =
            wanting.min_by_key(|other| (self.claims.of_name(other.print, &wanted), other.print));
        if best.is_none_or(|best| best.print == account.print) {
            return account.username.clone();
        }
        let id = account.id.to_string().to_lowercase();
        let name =
            |digits: usize| format!("{}-{}", account.username, id.get(..digits).unwrap_or(&id));
        // An id has 40 digits, and nobody has another one's.
        let free = (8..=id.len()).map(name).find(|name| !self.by_name.contains_key(&folded(name)));
        free.unwrap_or_else(|| name(id.len()))
    }

    /// Whether nobody that shows has a username, or wants it.
    pub(crate) fn is_free(&self, username: &str) -> bool {
        self.named(username).is_none()
    }

    /// An account that shows, and that the operator has not hidden.
    pub(crate) fn visible(&self, print: KeyPrint) -> Option<&Account> {
        self.live(print).filter(|account| !self.hidden.contains(account.print))
    }

    /// A visible account by anything that names it.
    pub(crate) fn find(&self, named: &str) -> Option<&Account> {
        self.resolve(named).and_then(|account| self.visible(account.print))
    }

    /// An account that shows, by anything that names it.
    pub(crate) fn resolve(&self, named: &str) -> Option<&Account> {
        let print = if let Ok(id) = named.parse::<Fingerprint>() {
            self.holder(id).or_else(|| {
                let all = self.by_former.get(&id)?.iter().filter_map(|print| self.live(*print));
                all.max_by_key(|account| (account.updated, account.print))
                    .map(|account| account.print)
            })
        } else if let Some(uuid) = crate::usernames::uuid(named) {
            self.by_uuid.get(&uuid).copied()
        } else {
            self.named(named)
        };
        self.live(print?)
    }

    /// A job of a visible account.
    pub(crate) fn job(&self, id: RecordId) -> Option<&JobRow> {
        self.jobs.get(&id).filter(|job| self.visible(job.owner).is_some())
    }

    /// All of them.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobRow> {
        self.jobs.values().filter(|job| self.visible(job.owner).is_some())
    }

    /// How many jobs an account has.
    pub(crate) fn count_jobs(&self, of: KeyPrint) -> usize {
        self.jobs.values().filter(|job| job.owner == of).count()
    }

    /// The owner of a job, deleted or not, and its title.
    pub(crate) fn job_owner(&self, id: RecordId) -> Option<(KeyPrint, &str)> {
        let there = self.jobs.get(&id).map(|job| (job.owner, &*job.title));
        there.or_else(|| self.gone_jobs.get(&id).map(|owner| (*owner, "")))
    }

    /// A review between visible accounts.
    pub(crate) fn review(&self, id: RecordId) -> Option<&ReviewRow> {
        self.reviews.get(&id).filter(|row| self.shows(row))
    }

    /// All of them.
    pub(crate) fn reviews(&self) -> impl Iterator<Item = &ReviewRow> {
        self.reviews.values().filter(|row| self.shows(row))
    }

    fn shows(&self, row: &ReviewRow) -> bool {
        // One of a job that is somebody else's is void.
        let offered_by = self.job_owner(row.job).map_or(row.offered_by, |(owner, _)| owner);
        offered_by == row.offered_by
            && self.visible(row.reviewer).is_some()
            && self.visible(row.reviewee).is_some()
    }

    /// The last request of an account, as records say. Milliseconds.
    pub(crate) fn seen(&self, print: KeyPrint) -> Option<u64> {
        self.seen.get(&print).copied()
    }

    /// Labels that more than one account wants.
    pub(crate) fn contested(&self) -> Vec<Label> {
        let names = self.by_name.iter().filter(|(_, all)| all.len() > 1);
        let names = names.map(|(name, _)| self.claims.label_of_name(name));
        let ids = self.by_id.iter().filter(|(_, all)| all.len() > 1);
        names.chain(ids.map(|(id, _)| self.claims.label_of_id(*id))).collect()
    }
}

fn leave<K: Eq + std::hash::Hash>(
    map: &mut HashMap<K, BTreeSet<KeyPrint>>,
    key: &K,
    print: KeyPrint,
) {
    if let Some(set) = map.get_mut(key) {
        set.remove(&print);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// A time that a record names. It is no later than the record, whose own time the mesh has judged: else a list would begin with it
/// for ever.
fn not_after(time: Stamp, record: &RecordView) -> Stamp {
    time.min(record.stamp)
}

/// All that a search looks at in a job, folded: its texts, and keys and texts of its metadata.
pub(crate) fn texts(job: &Job) -> String {
    let mut all = [job.title.as_str(), &job.description].join("\n");
    if let Ok(metadata) = serde_json::from_str::<serde_json::Value>(&job.metadata) {
        add(&metadata, &mut all);
    }
    all.to_lowercase()
}

fn add(value: &serde_json::Value, to: &mut String) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            to.push('\n');
            to.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|item| add(item, to)),
        Value::Object(items) => items.iter().for_each(|(name, item)| {
            to.push('\n');
            to.push_str(name);
            add(item, to);
        }),
        Value::Number(number) => {
            to.push('\n');
            to.push_str(&number.to_string());
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests;
