//! Webhooks (spec §11): messages of a room, posted to a URL.
//!
//! A subscription lives at the node where it was made, and sees the messages that are delivered there, from
//! any node. The delivery log is its queue, a number its cursor: after a crash it goes on from the
//! number that was kept last, so a receiver may get a message twice (with the same `webhook-id`), and
//! never misses one. It ends when it is deleted, when its ephemeral room is destroyed, and when its key
//! is no longer valid.
//!
//! In reading order: `record` (the kept form, failures, filters), `book` (all subscriptions), `worker` (one
//! for each), `post` (one delivery) with `target`, `address`, `turns` and `sign`; `notice` (posts that are no messages); `brought`
//! (from a ClawChat server).

mod address;
pub(crate) mod book;
pub mod brought;
mod notice;
pub(crate) mod post;
mod record;
pub(crate) mod sign;
pub(crate) mod target;
mod turns;
mod worker;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mesh::{
    api::command::{Command, Refused},
    name::{
        id::{KeyPrint, RoomId},
        number::Number,
    },
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use book::{Full, Subscription};
use post::{Post, Poster};
use record::{New, Policy, Record};
use target::Target;
use worker::{Worker, Workshop, is_kept, unix};

use crate::{
    backend::{Mesh, ReadError},
    delivery::hub::Hub,
    ids, limits,
    reply::{Failure, Reply},
    seam::{
        answer::SubscriptionView,
        call::Subscribe,
        event::Voice,
        refusal::{Refusal, Rule, WebhookField, WebhookRule},
    },
};

/// An answer on its way.
type Answering<A> = Pin<Box<dyn Future<Output = Result<A, Refusal>> + Send>>;

/// A subscription that has been asked for and is sound.
struct Sound {
    record: Record,
    target: Target,
    ephemeral: bool,
}

/// See the module.
pub(crate) struct Webhooks {
    shop: Arc<Workshop>,
    policy: Policy,
    workers: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhooks")
    }
}

impl Webhooks {
    /// Without subscriptions so far: see [`Webhooks::open`]. `voice`: messages are posted as it writes them.
    /// `allow_private`: also to addresses that are not public.
    pub(crate) fn new(
        hub: Arc<Hub>,
        mesh: Arc<dyn Mesh>,
        voice: Arc<dyn Voice>,
        allow_private: bool,
    ) -> Arc<Webhooks> {
        Webhooks::with(hub, mesh, voice, Box::new(Poster::new(allow_private)), Policy::default())
    }

    fn with(
        hub: Arc<Hub>,
        mesh: Arc<dyn Mesh>,
        voice: Arc<dyn Voice>,
        post: Box<dyn Post>,
        policy: Policy,
    ) -> Arc<Webhooks> {
        let shop = Workshop {
            book: hub.book().clone(),
            hub,
            mesh,
            post,
            voice,
            slots: Semaphore::new(limits::WEBHOOK_POSTS_AT_ONCE),
            reads: Semaphore::new(limits::WEBHOOK_READS_AT_ONCE),
        };
        Arc::new(Webhooks {
            shop: Arc::new(shop),
            policy,
            workers: Mutex::default(),
            stop: watch::Sender::new(false),
        })
    }

    /// Goes on with the subscriptions of earlier starts. To be called once, when the engine has told of
    /// its rooms. `own`: whether a key is valid here without being minted.
    pub(crate) async fn open(&self, own: impl Fn(KeyPrint) -> bool) -> Result<(), ReadError> {
        let now_ms = unix(Duration::as_millis);
        for (name, value) in self.shop.hub.reads().kept(record::NAMES)? {
            let record = Record::decode(&value).filter(|record| record.name() == name);
            let Some(record) = record else {
                tracing::warn!(
                    event = "webhook_unreadable",
                    "a webhook subscription in the store is damaged, or of a later version"
                );
                continue;
            };
            let Ok(target) = Target::parse(&record.url) else { continue };
            let hook = Arc::new(Subscription::new(record, target, self.policy, now_ms));
            if self.shop.book.add(hook.clone()).is_err() {
                tracing::warn!(
                    event = "webhook_rests",
                    subscription = hook.id,
                    "a webhook rests: there are too many"
                );
                continue;
            }
            hook.live();
        }
        self.check_owners(own).await;
        for hook in self.shop.book.all() {
            self.start(hook);
        }
        Ok(())
    }

    /// Ends the subscriptions of keys that are no longer valid.
    pub(crate) async fn check_owners(&self, own: impl Fn(KeyPrint) -> bool) {
        for key in self.shop.book.owners() {
            let (reply, answer) = Reply::once();
            self.shop.mesh.call(Command::CheckKey { key, own: own(key) }, reply);
            if let Ok(Err(Failure::Refused(Refused::NoKey))) = answer.await {
                tracing::warn!(
                    event = "webhooks_ended",
                    "webhooks end: the key that made them is not valid here any more"
                );
                self.shop.book.revoked(key);
            }
        }
    }

    /// Stops delivering, and has the cursors written.
    pub(crate) async fn close(&self) {
        self.stop.send_replace(true);
        let mut workers =
            std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while workers.join_next().await.is_some() {} };
        if timeout(limits::WEBHOOK_CLOSE_WITHIN, all).await.is_err() {
            tracing::warn!(
                event = "cursors_not_written",
                "cursors of webhooks were not written: some messages will come again"
            );
        }
    }

    /// Refused at once if it is not sound.
    pub(crate) fn subscribe(
        self: &Arc<Webhooks>,
        key: KeyPrint,
        call: Subscribe,
    ) -> Answering<SubscriptionView> {
        let this = self.clone();
        match self.judge(key, call) {
            Ok(sound) => Box::pin(async move { this.make(sound).await }),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }

    fn judge(&self, key: KeyPrint, call: Subscribe) -> Result<Sound, Refusal> {
        let Subscribe { room, url, secret, mut filter, since } = call;
        let facts = self.shop.hub.readable(room, key, None)?;
        let breaks = |field, rule| Err(Refusal::Webhook(field, WebhookRule::Text(rule)));
        let target = Target::parse(&url)
            .map_err(|bad| Refusal::Webhook(WebhookField::Url, WebhookRule::Url(bad)))?;
        let max = limits::WEBHOOK_SECRET_BYTES_MAX;
        if !(1..=max).contains(&secret.expose().len()) {
            return breaks(WebhookField::Secret, Rule::Within(max));
        }
        filter.kinds = filter.kinds.filter(|kinds| !kinds.is_empty());
        let (count, bytes) = (limits::WEBHOOK_KINDS_MAX, limits::WEBHOOK_KIND_BYTES_MAX);
        let kinds = filter.kinds.as_deref().unwrap_or_default();
        if kinds.len() > count || kinds.iter().any(|kind| kind.len() > bytes) {
            return breaks(WebhookField::Kinds, Rule::Entries { count, bytes });
        }
        let names = [
            (WebhookField::OnlyFrom, &filter.only_from),
            (WebhookField::NotFrom, &filter.not_from),
        ];
        let max = mesh::limits::NAME_BYTES_MAX;
        for (field, name) in names {
            if name.as_ref().is_some_and(|name| name.len() > max) {
                return breaks(field, Rule::AtMost(max));
            }
        }
        let since = match since {
            Some(number) => Number(number.min(limits::NUMBERS_END - 1)),
            None => self.shop.hub.reads().tip(room)?,
        };
        let (id, now_ms) = (ids::subscription(), unix(Duration::as_millis));
        let record = Record::new(New { id, owner: key, room, url, secret, filter, since, now_ms });
        Ok(Sound { record, target, ephemeral: facts.ephemeral })
    }

    async fn make(&self, sound: Sound) -> Result<SubscriptionView, Refusal> {
        let Sound { record, target, ephemeral } = sound;
        // Before a name is looked up for a key that may have no more; and once more, when that is done.
        self.shop.book.may_add(record.owner()).map_err(too_many)?;
        if let Err(error) = self.shop.post.check(record.owner(), &target).await {
            let rule = WebhookRule::Reachable(error.to_string());
            return Err(Refusal::Webhook(WebhookField::Url, rule));
        }
        let hook = Subscription::new(record, target, self.policy, unix(Duration::as_millis));
        let hook = Arc::new(if ephemeral { hook.ephemeral() } else { hook });
        self.shop.book.add(hook.clone()).map_err(too_many)?;
        if !ephemeral && !is_kept(hook.make(&*self.shop.mesh)).await {
            self.shop.book.remove(&hook);
            return Err(Refusal::Overloaded);
        }
        hook.live();
        let view = hook.view();
        self.start(hook);
        Ok(view)
    }

    pub(crate) fn unsubscribe(self: &Arc<Webhooks>, key: KeyPrint, id: String) -> Answering<()> {
        let this = self.clone();
        Box::pin(async move {
            let hook = this.shop.book.get(&id, key).ok_or(Refusal::NoSubscription)?;
            let gone = hook.delete(&*this.shop.mesh).ok_or(Refusal::NoSubscription)?;
            if !is_kept(gone).await {
                hook.live();
                return Err(Refusal::Overloaded);
            }
            hook.end();
            this.shop.book.remove(&hook);
            Ok(())
        })
    }

    pub(crate) fn enable(self: &Arc<Webhooks>, key: KeyPrint, id: String) -> Answering<()> {
        let this = self.clone();
        Box::pin(async move {
            let hook = this.shop.book.get(&id, key).ok_or(Refusal::NoSubscription)?;
            if let Some(kept) = hook.enable(&*this.shop.mesh)
                && !is_kept(kept).await
            {
                hook.not_kept();
                return Err(Refusal::Overloaded);
            }
            Ok(())
        })
    }

    pub(crate) fn list(
        self: &Arc<Webhooks>,
        key: KeyPrint,
        room: Option<RoomId>,
    ) -> Answering<Vec<SubscriptionView>> {
        let readable = room.map(|room| self.shop.hub.readable(room, key, None)).transpose();
        let listed = readable.map(|_| self.shop.book.list(key, room));
        Box::pin(std::future::ready(listed))
    }

    fn start(&self, hook: Arc<Subscription>) {
        let worker = Worker { shop: self.shop.clone(), hook };
        let mut stop = self.stop.subscribe();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended.
        while workers.try_join_next().is_some() {}
        workers.spawn(async move {
            tokio::select! {
                () = worker.run() => return,
                // An error: the sender is gone, which is as good.
                _ = stop.wait_for(|stop| *stop) => {}
            }
            worker.keep().await;
        });
    }
}

/// Now, for a signature.
pub(crate) fn unix_seconds() -> u64 {
    unix(|time| u128::from(time.as_secs()))
}

fn too_many(full: Full) -> Refusal {
    match full {
        Full::Key => Refusal::KeySubscriptionsFull { max: limits::WEBHOOKS_PER_KEY_MAX },
        Full::Node => Refusal::SubscriptionsFull,
    }
}

#[cfg(test)]
mod tests;
