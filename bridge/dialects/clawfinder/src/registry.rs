//! The index of this node: kept up to the store, asked, and written to.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::Method;
use bridge::{
    read::{Desk, Visitor},
    seam::{
        call::{
            ClaimAccount, FindAccount, FollowRecords, GetRecord, ListClaims, PresentAccount,
            WriteRecords,
        },
        refusal::Refusal,
    },
};
use mesh::{
    api::account::{Mark, RecordView, RecordWrite},
    name::{account::Label, id::KeyPrint, key::KeySecret},
    records::finder::{DELIVERED, JOBS, MAILS, MARKS, PROFILES, Profile, REVIEWS, SEEN, Seen},
    wire::record::{CollectionNumber, RecordId, Stamp},
};
use tokio::time::sleep;

use crate::{
    caller::Caller,
    hidden::Hidden,
    index::{Account, Index, Letter},
    limits::{
        KNOWN_WITHIN, LOOK_EVERY, MAILS_PER_MINUTE, PRESENTED_FOR, RECORDS_AT_ONCE,
        REQUESTS_PER_MINUTE, STRANGERS_REQUESTS_PER_MINUTE, WRITES_PER_MINUTE,
    },
    mail::opened::Readers,
    problem::{Answer, Problem},
    proof::Document,
    rates::{Origin, PerMinute, Registrations},
    requests::Requests,
    rooms::Hosting,
    secret,
    settings::Settings,
    shapes::{Agent, Named},
    stops::Agents,
};

/// See the module.
pub(crate) struct Registry {
    pub(crate) desk: Desk,
    pub(crate) settings: Settings,
    pub(crate) document: Document,
    visitor: Visitor,
    index: RwLock<Index>,
    /// One request at a time brings the index on.
    progress: tokio::sync::Mutex<Progress>,
    /// Grows when the index has changed.
    changes: AtomicU64,
    /// The last request of each account at this node, in milliseconds since 1970.
    seen: Mutex<HashMap<KeyPrint, u64>>,
    /// One account at a time is registered here: of two that want the same name one would lose it at once.
    pub(crate) registering: tokio::sync::Mutex<()>,
    /// One change at a time is made here: of two that read the same record the second would undo the first.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) registrations: Registrations,
    pub(crate) counts: Arc<Requests>,
    hidden: Arc<Hidden>,
    /// Accounts of agents whose mail this node puts into rooms.
    pub(crate) hosting: Arc<Hosting>,
    /// Agents whose accounts were used here.
    pub(crate) agents: Agents,
    /// Envelopes of mail that accounts have opened.
    pub(crate) readers: Readers,
    /// Accounts whose keys were shown here, as this node has noted it.
    presented: Mutex<HashMap<KeyPrint, Instant>>,
    pub(crate) mails: PerMinute<KeyPrint>,
    writes: PerMinute<KeyPrint>,
    requests: PerMinute<KeyPrint>,
    strangers: PerMinute<IpAddr>,
}

/// From when the node is there.
pub(crate) type Opened = Arc<OnceLock<Arc<Registry>>>;

/// How far the index is.
#[derive(Default)]
struct Progress {
    mark: Mark,
    /// When the order of claims was last asked for.
    ranked: Option<Instant>,
}

/// Orders of claims change when a split heals: they are asked for again after so long, where somebody wants what another has.
const RANKED_FOR: Duration = Duration::from_secs(1);

const COLLECTIONS: [CollectionNumber; 7] = [
    PROFILES.number,
    JOBS.number,
    REVIEWS.number,
    SEEN.number,
    MAILS.number,
    MARKS.number,
    DELIVERED.number,
];

impl Registry {
    pub(crate) fn new(
        desk: Desk,
        settings: Settings,
        counts: Arc<Requests>,
        hidden: Arc<Hidden>,
    ) -> Registry {
        let index = Index::new(settings.mesh, settings.search_bytes, hidden.clone());
        Registry {
            desk,
            document: Document { mesh: settings.mesh },
            visitor: Visitor::stranger(),
            index: RwLock::new(index),
            hidden,
            progress: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            registering: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            registrations: Registrations::default(),
            counts,
            hosting: Arc::default(),
            agents: Agents::default(),
            changes: AtomicU64::default(),
            readers: Readers::default(),
            presented: Mutex::default(),
            mails: PerMinute::new(MAILS_PER_MINUTE),
            writes: PerMinute::new(WRITES_PER_MINUTE),
            requests: PerMinute::new(REQUESTS_PER_MINUTE),
            strangers: PerMinute::new(STRANGERS_REQUESTS_PER_MINUTE),
            settings,
        }
    }

    /// The index as it is.
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the index up to the store: what was answered to anybody before is in it.
    pub(crate) async fn refresh(&self) -> Answer<()> {
        let mut progress = self.progress.lock().await;
        let mut fresh: Option<Index> = None;
        let mut is_new = false;
        loop {
            let (collections, after) = (COLLECTIONS.to_vec(), progress.mark);
            let follow = FollowRecords { collections, after, limit: RECORDS_AT_ONCE };
            let news = self.desk.ask(&self.visitor, follow).await?;
            if news.anew {
                let Settings { mesh, search_bytes, .. } = self.settings;
                fresh = Some(Index::new(mesh, search_bytes, self.hidden.clone()));
            }
            is_new |= news.anew || !news.records.is_empty();
            match &mut fresh {
                Some(fresh) => fresh.take_all(&news.records, self.document),
                None if news.records.is_empty() => {}
                None => {
                    let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                    index.take_all(&news.records, self.document);
                }
            }
            progress.mark = news.mark;
            if !news.more {
                break;
            }
        }
        if let Some(fresh) = fresh {
            *self.index.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        let is_old = progress.ranked.is_none_or(|ranked| ranked.elapsed() >= RANKED_FOR);
        if is_new {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        if is_new || is_old {
            self.rank().await?;
            progress.ranked = Some(Instant::now());
        }
        Ok(())
    }

    /// Another number when the index has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Asks for the order of claims, where somebody wants what another has.
    async fn rank(&self) -> Answer<()> {
        let labels = self.index().contested();
        let mut orders = HashMap::new();
        for label in labels {
            let order = self.claims(label).await?;
            orders.insert(label, order);
        }
        self.index.write().unwrap_or_else(PoisonError::into_inner).claims.set(orders);
        Ok(())
    }

    /// Accounts that claimed a label, as their claims count.
    pub(crate) async fn claims(&self, label: Label) -> Answer<Vec<KeyPrint>> {
        let claims = self.desk.ask(&self.visitor, ListClaims(label)).await?;
        Ok(claims.into_iter().map(|claim| claim.account).collect())
    }

    /// The account whose key was shown. One that is not known here may be new elsewhere: it is waited for.
    pub(crate) async fn caller(&self, shown: &str, origin: Origin) -> Answer<Caller> {
        const UNKNOWN: &str = "no agent here has this key; if it is new elsewhere, try again";
        if !secret::is_key(shown) {
            return Err(Problem::no_account(UNKNOWN));
        }
        let secret = Arc::new(KeySecret::of(shown));
        let print = secret.print();
        if self.standing(print).is_none() {
            // Keys that somebody makes up are not to have all nodes asked without end.
            self.count_stranger(origin)?;
            // Others are asked, for a second at most. Its profile comes with the next comparison of records.
            let found = self.desk.ask(&self.visitor, FindAccount(print)).await?;
            let began = Instant::now();
            while found.is_some()
                && self.standing(print).is_none()
                && began.elapsed() < KNOWN_WITHIN
            {
                sleep(LOOK_EVERY).await;
                self.refresh().await?;
            }
        }
        self.standing(print).unwrap_or_else(|| Err(Problem::no_account(UNKNOWN)))?;
        let caller = Caller { print, secret };
        self.present(&caller).await;
        Ok(caller)
    }

    /// Has the node keep the mail of an account whose key is shown to it.
    async fn present(&self, caller: &Caller) {
        let now = Instant::now();
        let is_noted = |noted: &Instant| now.duration_since(*noted) < PRESENTED_FOR;
        if self.presented().get(&caller.print).is_some_and(is_noted) {
            return;
        }
        match self.desk.ask(&self.visitor, PresentAccount(caller.secret.clone())).await {
            Ok(()) => {
                let mut presented = self.presented();
                presented.retain(|_, noted| is_noted(noted));
                presented.insert(caller.print, now);
            }
            // It can read all the same, and its next request says it again.
            Err(refusal) => {
                tracing::debug!(account = %caller.print, ?refusal, "an account was not noted");
            }
        }
    }

    fn presented(&self) -> std::sync::MutexGuard<'_, HashMap<KeyPrint, Instant>> {
        self.presented.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody who shows no key of ClawChat: accounts are opened by their own.
    pub(crate) fn visitor(&self) -> &Visitor {
        &self.visitor
    }

    /// Mail of an account that went before it was read, with the account that it was for. Told once.
    pub(crate) fn take_orphans(&self, of: KeyPrint) -> Vec<Letter> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let mut letters = std::mem::take(&mut index.letters);
        let orphans = letters.take_orphans(of, |to| index.is_deleted(to));
        index.letters = letters;
        orphans
    }

    /// Whether an account may act. `None`: nobody here knows it.
    pub(crate) fn standing(&self, print: KeyPrint) -> Option<Answer<()>> {
        let index = self.index();
        if self.hidden.contains(print) {
            return Some(Err(Problem::forbidden(
                "the operator of this node has hidden this account here; use another node",
            )));
        }
        if index.live(print).is_some() {
            return Some(Ok(()));
        }
        if index.is_deleted(print) {
            return Some(Err(Problem::no_account("the account of this key was deleted")));
        }
        let displaced = index.account(print)?;
        let text = format!(
            "another account has the PGP key {} now; register with another key, or recover it",
            displaced.id
        );
        Some(Err(Problem::no_account(&text)))
    }

    /// Counts a request.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn count(
        &self,
        caller: Option<&Caller>,
        origin: Origin,
        method: &Method,
    ) -> Answer<()> {
        let Some(caller) = caller else { return self.count_stranger(origin) };
        let now = Instant::now();
        let requests = self.requests.take(caller.print, now);
        requests.map_err(|wait| too_often(REQUESTS_PER_MINUTE, "requests", wait))?;
        if *method == Method::GET {
            return Ok(());
        }
        let writes = self.writes.take(caller.print, now);
        writes.map_err(|wait| too_often(WRITES_PER_MINUTE, "writes", wait))
    }

    /// Counts a request of somebody who is no account here.
    fn count_stranger(&self, origin: Origin) -> Answer<()> {
        let Origin::Far(address) = origin else { return Ok(()) };
        let taken = self.strangers.take(address, Instant::now());
        let what = "requests without a key that is known here";
        taken.map_err(|wait| too_often(STRANGERS_REQUESTS_PER_MINUTE, what, wait))
    }

    /// An account has asked.
    pub(crate) async fn saw(&self, caller: &Caller) {
        let now = now_ms();
        let known = {
            let index = self.index();
            if index.account(caller.print).is_none() {
                return;
            }
            index.seen(caller.print)
        };
        self.seen().insert(caller.print, now);
        let every = u64::try_from(self.settings.seen_every.as_millis()).unwrap_or(u64::MAX);
        if known.is_some_and(|known| now.saturating_sub(known) < every) {
            return;
        }
        let body = Some(Seen { wall_ms: now }.encode());
        let id = Seen::id(caller.print);
        // An error: the account has gone meanwhile, or the node is busy; its next request says it.
        if let Err(refusal) = self.write(caller, SEEN.number, id, body).await {
            tracing::debug!(account = %caller.print, ?refusal, "a time of last use was not written");
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashMap<KeyPrint, u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an account known to the mesh.
    pub(crate) async fn claim(&self, claim: ClaimAccount) -> Answer<()> {
        Ok(self.desk.ask(&self.visitor, claim).await?)
    }

    /// Writes one record of an account. When it is answered it is durable, and in the index with the next refresh.
    pub(crate) async fn write(
        &self,
        caller: &Caller,
        collection: CollectionNumber,
        id: RecordId,
        body: Option<Vec<u8>>,
    ) -> Result<(), Refusal> {
        let writes = vec![RecordWrite::new(collection, id, body)];
        let write =
            WriteRecords { account: caller.secret.clone(), writes, above: Stamp::default() };
        self.desk.ask(&self.visitor, write).await.map(drop)
    }

    /// Records, as they are now. One that is not there is left out.
    pub(crate) async fn records(
        &self,
        collection: CollectionNumber,
        keys: Vec<(RecordId, KeyPrint)>,
    ) -> Answer<Vec<RecordView>> {
        let mut found = Vec::with_capacity(keys.len());
        for (id, owner) in keys {
            found.extend(self.desk.ask(&self.visitor, GetRecord { collection, id, owner }).await?);
        }
        Ok(found)
    }

    /// An account with its profile.
    pub(crate) async fn agent(&self, print: KeyPrint) -> Answer<Option<Agent>> {
        Ok(self.agents([print]).await?.remove(&print))
    }

    /// Accounts that show, with their profiles.
    pub(crate) async fn agents(
        &self,
        prints: impl IntoIterator<Item = KeyPrint>,
    ) -> Answer<HashMap<KeyPrint, Agent>> {
        let mut found: HashMap<KeyPrint, (Account, String)> = HashMap::new();
        {
            let index = self.index();
            for account in prints.into_iter().filter_map(|print| index.live(print)) {
                let named = || (account.clone(), index.shown_name(account));
                found.entry(account.print).or_insert_with(named);
            }
        }
        let keys = found.values().map(|(account, _)| (account.uuid, account.print)).collect();
        let records = self.records(PROFILES.number, keys).await?;
        let agents = records.into_iter().filter_map(|record| {
            let profile = Profile::decode(record.body.as_deref()?)?;
            let (account, shown_name) = found.remove(&record.owner)?;
            let seen_ms = self.last_seen(account.print);
            Some((account.print, Agent { account, shown_name, seen_ms, profile }))
        });
        Ok(agents.collect())
    }

    /// The last request of an account that this node knows of.
    fn last_seen(&self, print: KeyPrint) -> Option<u64> {
        self.seen().get(&print).copied().max(self.index().seen(print))
    }

    /// An account as reviews name it.
    pub(crate) fn named(&self, print: KeyPrint) -> Option<Named> {
        let index = self.index();
        let account = index.live(print)?;
        Some(Named {
            id: account.id.to_string(),
            name: account.name.clone(),
            username: index.shown_name(account),
        })
    }
}

fn too_often(most: usize, what: &str, wait: u64) -> Box<Problem> {
    Problem::too_often(&format!("at most {most} {what} a minute; try again in {wait} s"), wait)
}

/// Microseconds since 1970, by this machine's clock.
pub(crate) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

fn now_ms() -> u64 {
    now_us() / 1_000
}
