//! One worker for each subscription: it delivers message after message, one at a time, in the order
//! of their numbers.
//!
//! The delivery log is its queue. It holds no message while it waits: after a pause it reads again
//! from its cursor.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use mesh::{
    api::command::Outcome,
    name::{id::MessageId, number::Number},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

use super::{
    book::{Book, Duty, Kept, Subscription},
    post::{Delivery, Post, Shown},
    record::After,
    sign::signature,
};
use crate::{
    backend::{Mesh, ReadError, Row},
    delivery::hub::Hub,
    limits::{WEBHOOK_PAUSE, WEBHOOK_ROWS_MAX},
    seam::event::{Message, Voice},
};

/// The parts that all workers share.
pub(super) struct Workshop {
    pub(super) hub: Arc<Hub>,
    pub(super) mesh: Arc<dyn Mesh>,
    pub(super) book: Arc<Book>,
    pub(super) post: Box<dyn Post>,
    /// Messages are posted in it.
    pub(super) voice: Arc<dyn Voice>,
    /// For deliveries on their way. Waiters get their turn in order.
    pub(super) slots: Semaphore,
    /// For reads on a blocking thread.
    pub(super) reads: Semaphore,
}

/// See the module.
pub(super) struct Worker {
    pub(super) shop: Arc<Workshop>,
    pub(super) hook: Arc<Subscription>,
}

/// The work after a cursor.
enum Next {
    Nothing,
    /// All up to here is not to be delivered.
    Skip(Number),
    Send(Box<Letter>),
}

/// A message on its way.
struct Letter {
    number: Number,
    message: MessageId,
    body: Bytes,
}

impl Worker {
    /// Until the subscription has ended.
    pub(super) async fn run(&self) {
        let mut rows = 1;
        loop {
            if self.hook.keep_at().is_some_and(|at| at <= Instant::now()) {
                self.keep().await;
            }
            match self.duty() {
                Duty::End => break,
                Duty::Rest(until) => self.rest(until).await,
                Duty::Deliver(_) => rows = self.deliver(rows).await,
            }
        }
        self.shop.book.remove(&self.hook);
        if let Some(forgotten) = self.hook.forget(&*self.shop.mesh) {
            // If the store did not take it, the next start finds out again that it is over.
            drop(forgotten.await);
        }
        tracing::info!(subscription = self.hook.id, "a webhook has ended");
    }

    /// Has the cursor written, if it has moved.
    pub(super) async fn keep(&self) {
        if let Some(kept) = self.hook.keep(&*self.shop.mesh)
            && !is_kept(kept).await
        {
            self.hook.not_kept();
        }
    }

    fn duty(&self) -> Duty {
        let facts = self.shop.hub.facts(self.hook.room);
        let duty = self.hook.duty(facts.map(|facts| facts.readable_by(self.hook.owner, None)));
        match duty {
            Duty::Deliver(_) if self.shop.book.is_off() => Duty::Rest(self.hook.keep_at()),
            duty @ (Duty::Deliver(_) | Duty::Rest(_) | Duty::End) => duty,
        }
    }

    /// Until it is woken, or it is so late.
    async fn rest(&self, until: Option<Instant>) {
        let woken = self.hook.wake.notified();
        match until {
            Some(until) => tokio::select! { () = woken => {}, () = sleep_until(until) => {} },
            None => woken.await,
        }
    }

    /// Looks for the next message and delivers it. How many rows to read next time.
    async fn deliver(&self, rows: usize) -> usize {
        // Nobody closes it.
        let Ok(slot) = self.shop.slots.acquire().await else { return rows };
        // It may have waited long for its turn.
        let Duty::Deliver(after) = self.duty() else { return rows };
        match self.next(after, rows).await {
            Ok(Next::Send(letter)) => {
                self.post(&letter).await;
                1
            }
            Ok(Next::Skip(upto)) => {
                self.hook.advance(upto);
                (rows * 2).min(WEBHOOK_ROWS_MAX)
            }
            Ok(Next::Nothing) => {
                drop(slot);
                self.rest(self.hook.keep_at()).await;
                1
            }
            Err(error) => {
                drop(slot);
                tracing::error!(
                    event = "webhook_waits",
                    error = &error as &dyn std::error::Error,
                    subscription = self.hook.id,
                    "a webhook waits"
                );
                self.rest(Some(Instant::now() + WEBHOOK_PAUSE)).await;
                1
            }
        }
    }

    async fn next(&self, after: Number, limit: usize) -> Result<Next, ReadError> {
        let rows = self.page(after, limit).await?;
        let Some(last) = rows.last().map(|row| row.number) else { return Ok(Next::Nothing) };
        let wanted = rows.into_iter().find_map(|row| self.wanted(row));
        Ok(wanted.map_or(Next::Skip(last), |letter| Next::Send(Box::new(letter))))
    }

    async fn page(&self, after: Number, limit: usize) -> Result<Vec<Row>, ReadError> {
        let (hub, room) = (self.shop.hub.clone(), self.hook.room);
        if limit == 1 {
            return hub.reads().page_since(room, after, limit);
        }
        let permit = self.shop.reads.acquire().await.map_err(ReadError::new)?;
        let read = move || hub.reads().page_since(room, after, limit);
        let rows = tokio::task::spawn_blocking(read).await.map_err(ReadError::new)?;
        drop(permit);
        rows
    }

    /// A message as it is posted, if it is there and to be delivered.
    fn wanted(&self, row: Row) -> Option<Letter> {
        if row.is_kept_from(None) {
            return None;
        }
        let message = Message::read(self.hook.room, row)?;
        if !self.hook.filter.wants(&message, &*self.shop.voice) {
            return None;
        }
        let body = self.shop.voice.letter(&self.hook.id, &message)?;
        Some(Letter { number: message.number, message: message.message, body })
    }

    async fn post(&self, letter: &Letter) {
        let posted = self.shop.post.post(self.delivery(letter));
        let mut posted = pin!(posted);
        let posted = loop {
            tokio::select! {
                posted = &mut posted => break posted,
                () = self.hook.wake.notified() => {
                    if !self.hook.is_live() {
                        return;
                    }
                }
            }
        };
        let counters = self.shop.hub.counters();
        let Err(error) = posted else {
            counters.webhooks_delivered.fetch_add(1, Relaxed);
            return self.hook.advance(letter.number);
        };
        let (subscription, host) = (&self.hook.id, self.hook.target.host().to_string());
        match self.hook.fail(unix(Duration::as_millis)) {
            After::Retry(pause) => {
                counters.webhooks_retried.fetch_add(1, Relaxed);
                tracing::debug!(subscription, host, ?pause, "a delivery failed: {error}");
            }
            After::Failed => {
                counters.webhooks_failed.fetch_add(1, Relaxed);
                tracing::warn!(
                    event = "webhook_failed",
                    subscription,
                    host,
                    "a webhook has failed and rests until `enable_subscription`: {error}"
                );
            }
        }
        // At once: a restart is to go on with this try, not with the first one.
        self.keep().await;
    }

    fn delivery(&self, letter: &Letter) -> Delivery {
        // The same at each try, also after a restart, and of no other delivery.
        let id = format!("{}_{}", self.hook.id, letter.message.to_uuid());
        let timestamp = unix(|since| u128::from(since.as_secs()));
        let signature = signature(self.hook.secret.expose(), &id, timestamp, &letter.body);
        let (owner, target) = (self.hook.owner, self.hook.target.clone());
        let shown = Shown::Signature { id, timestamp, signature };
        Delivery { owner, target, shown, body: letter.body.clone() }
    }
}

/// Whether the store has it.
pub(super) async fn is_kept(kept: Kept) -> bool {
    matches!(kept.await, Ok(Ok(Outcome::Done)))
}

/// The time since 1970, in some unit.
pub(super) fn unix(unit: impl Fn(&Duration) -> u128) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unit(&since)).unwrap_or(u64::MAX)
}
