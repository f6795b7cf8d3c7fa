//! Webhooks (spec §11): messages of a room, posted to a URL.
//!
//! A subscription lives at the node where it was made, and sees what is delivered there, from whatever
//! node it comes. The delivery log is its queue, a number its cursor: after a crash it goes on from the
//! number that was kept last, so a receiver may get a message twice (with the same `webhook-id`), and
//! never misses one. It ends when it is deleted, when its ephemeral room is destroyed, and when its key
//! is no longer valid.
//!
//! In reading order: `record` (what is kept, failures, filters), `book` (all subscriptions), `worker` (one
//! for each), `post` (one delivery) with `target`, `address`, `turns` and `sign`; `brought` (from a ClawChat server).

mod address;
mod book;
mod brought;
mod post;
mod record;
mod sign;
mod target;
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
    name::{id::KeyPrint, number::Number},
};
use protocol::{
    code::Code,
    object::SubscriptionStatus,
    reply::{Enabled, Reply as Frame, Subscriptions, Unsubscribed},
    request::{EnableSubscription, ListSubscriptions, Subscribe, Unsubscribe},
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

pub(crate) use book::Book;
use book::{Full, Subscription};
pub use brought::BroughtWebhook;
use post::{Post, Poster};
use record::{Filter, New, Policy, Record};
use target::Target;
use worker::{Worker, Workshop, is_kept, unix};

use crate::{
    backend::{Mesh, ReadError},
    hub::Hub,
    ids, limits,
    refusal::Refusal,
    reply::{Failure, Reply},
};

/// What a client asks of its subscriptions.
#[derive(Debug)]
pub(crate) enum Ask {
    Subscribe(Subscribe),
    Unsubscribe(Unsubscribe),
    List(ListSubscriptions),
    Enable(EnableSubscription),
}

/// What it gets.
pub(crate) type Answered = Result<Frame, Refusal>;

/// An answer on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answered> + Send>>;

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
    /// Without subscriptions so far: see [`Webhooks::open`]. `allow_private`: also to addresses that are
    /// not public.
    pub(crate) fn new(hub: Arc<Hub>, mesh: Arc<dyn Mesh>, allow_private: bool) -> Arc<Webhooks> {
        Webhooks::with(hub, mesh, Box::new(Poster::new(allow_private)), Policy::default())
    }

    fn with(
        hub: Arc<Hub>,
        mesh: Arc<dyn Mesh>,
        post: Box<dyn Post>,
        policy: Policy,
    ) -> Arc<Webhooks> {
        let shop = Workshop {
            book: hub.book().clone(),
            hub,
            mesh,
            post,
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
            let it = Arc::new(Subscription::new(record, target, self.policy, now_ms));
            if self.shop.book.add(it.clone()).is_err() {
                tracing::warn!(
                    event = "webhook_rests",
                    subscription = it.id,
                    "a webhook rests: there are too many"
                );
                continue;
            }
            it.live();
        }
        self.check_owners(own).await;
        for it in self.shop.book.all() {
            self.start(it);
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

    /// What can be said at once is found out before this returns.
    pub(crate) fn ask(self: &Arc<Webhooks>, key: KeyPrint, ask: Ask) -> Answering {
        let this = self.clone();
        let answered = match ask {
            Ask::Subscribe(it) => match self.asked_for(key, it) {
                Ok((record, target, ephemeral)) => {
                    return Box::pin(
                        async move { this.subscribe(record, target, ephemeral).await },
                    );
                }
                Err(refusal) => Err(refusal),
            },
            Ask::Unsubscribe(it) => {
                return Box::pin(async move { this.unsubscribe(key, &it.subscription_id).await });
            }
            Ask::Enable(it) => {
                return Box::pin(async move { this.enable(key, it.subscription_id).await });
            }
            Ask::List(it) => self.list(key, &it),
        };
        Box::pin(std::future::ready(answered))
    }

    fn asked_for(&self, key: KeyPrint, it: Subscribe) -> Result<(Record, Target, bool), Refusal> {
        let (room, facts) = self.shop.hub.readable(&it.room_id, key)?;
        let invalid = |text: String| Err(Refusal::invalid(text));
        let target = match Target::parse(&it.webhook_url) {
            Ok(target) => target,
            Err(bad) => return invalid(format!("`webhook_url` must {bad}")),
        };
        let secret_bytes = it.secret.expose().len();
        if !(1..=limits::WEBHOOK_SECRET_BYTES_MAX).contains(&secret_bytes) {
            let max = limits::WEBHOOK_SECRET_BYTES_MAX;
            return invalid(format!("`secret` must have 1 to {max} bytes"));
        }
        let kinds = it.kinds.filter(|kinds| !kinds.is_empty());
        let kinds_len = kinds.as_ref().map_or(0, Vec::len);
        let longest = kinds.iter().flatten().map(String::len).max().unwrap_or(0);
        if kinds_len > limits::WEBHOOK_KINDS_MAX || longest > limits::WEBHOOK_KIND_BYTES_MAX {
            let (most, bytes) = (limits::WEBHOOK_KINDS_MAX, limits::WEBHOOK_KIND_BYTES_MAX);
            return invalid(format!(
                "`kinds` must be at most {most}, each of at most {bytes} bytes"
            ));
        }
        for (field, name) in [("only_from", &it.only_from), ("not_from", &it.not_from)] {
            let max = mesh::limits::NAME_BYTES_MAX;
            if name.as_ref().is_some_and(|name| name.len() > max) {
                return invalid(format!("`{field}` must have at most {max} bytes"));
            }
        }
        let since = match it.since_seq {
            Some(number) => Number(number.min(limits::NUMBERS_END - 1)),
            None => self.shop.hub.reads().tip(room)?,
        };
        let filter = Filter {
            kinds,
            only_from: it.only_from,
            not_from: it.not_from,
            exclude_thinking: it.exclude_thinking,
        };
        let record = Record::new(New {
            id: ids::subscription(),
            owner: key,
            room,
            url: it.webhook_url,
            secret: it.secret,
            filter,
            since,
            now_ms: unix(Duration::as_millis),
        });
        Ok((record, target, facts.ephemeral))
    }

    async fn subscribe(&self, record: Record, target: Target, ephemeral: bool) -> Answered {
        // Before a name is looked up for a key that may have no more; and once more, when that is done.
        self.shop.book.may_add(record.owner()).map_err(too_many)?;
        if let Err(error) = self.shop.post.check(record.owner(), &target).await {
            return Err(Refusal::invalid(format!("`webhook_url` cannot be used: {error}")));
        }
        let it = Subscription::new(record, target, self.policy, unix(Duration::as_millis));
        let it = Arc::new(if ephemeral { it.ephemeral() } else { it });
        self.shop.book.add(it.clone()).map_err(too_many)?;
        if !ephemeral && !is_kept(it.make(&*self.shop.mesh)).await {
            self.shop.book.remove(&it);
            return Err(overloaded());
        }
        it.live();
        let view = it.view(self.shop.hub.lobby());
        self.start(it);
        Ok(Frame::Subscription(Box::new(view)))
    }

    async fn unsubscribe(&self, key: KeyPrint, id: &str) -> Answered {
        let it = self.shop.book.get(id, key).ok_or_else(not_yours)?;
        let gone = it.delete(&*self.shop.mesh).ok_or_else(not_yours)?;
        if !is_kept(gone).await {
            it.live();
            return Err(overloaded());
        }
        it.end();
        self.shop.book.remove(&it);
        Ok(Frame::Unsubscribed(Unsubscribed { deleted: true }))
    }

    async fn enable(&self, key: KeyPrint, subscription_id: String) -> Answered {
        let it = self.shop.book.get(&subscription_id, key).ok_or_else(not_yours)?;
        if let Some(kept) = it.enable(&*self.shop.mesh)
            && !is_kept(kept).await
        {
            it.not_kept();
            return Err(overloaded());
        }
        let status = SubscriptionStatus::Active;
        Ok(Frame::Enabled(Enabled { subscription_id, status }))
    }

    fn list(&self, key: KeyPrint, it: &ListSubscriptions) -> Answered {
        let room = it.room_id.as_deref().map(|room| self.shop.hub.readable(room, key));
        let room = room.transpose()?.map(|(room, _)| room);
        let subscriptions = self.shop.book.list(key, room, self.shop.hub.lobby());
        Ok(Frame::Subscriptions(Subscriptions { subscriptions }))
    }

    fn start(&self, it: Arc<Subscription>) {
        let worker = Worker { shop: self.shop.clone(), it };
        let mut stop = self.stop.subscribe();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended.
        while workers.try_join_next().is_some() {}
        workers.spawn(async move {
            tokio::select! {
                () = worker.run() => return,
                // An error: whoever could say so is gone, which is as good.
                _ = stop.wait_for(|stop| *stop) => {}
            }
            worker.keep().await;
        });
    }
}

fn not_yours() -> Refusal {
    Refusal::new(Code::AccessDenied, "this key has no such subscription at this node")
}

fn overloaded() -> Refusal {
    Refusal::new(Code::InternalError, "the node is overloaded; try again")
}

fn too_many(full: Full) -> Refusal {
    match full {
        Full::Key => Refusal::invalid(format!(
            "this key has {} subscriptions here, which is the most: delete one",
            limits::WEBHOOKS_PER_KEY_MAX
        )),
        Full::Node => Refusal::new(
            Code::InternalError,
            "the node has as many subscriptions as it takes; use another node",
        ),
    }
}

#[cfg(test)]
mod tests;
