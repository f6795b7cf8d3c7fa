//! One connection: its session, its timers, its writer. One task, whatever goes on.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, OnceLock},
};

use mesh::{api::command::Command, name::number::Number};
use protocol::event::{Event, Heartbeat};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    backend::{Mesh, ReadError},
    config::Config,
    counters::Transport,
    dialect::Dialect,
    http::{Metrics, Signups},
    hub::Hub,
    job::{Found, Job},
    limits,
    link::{Ending, Life, Link},
    meter::Meter,
    outbox::{Lag, Page, Work},
    reply::{Failure, Given, Hook, Reply, Ticket},
    session::{Session, Step, Steps},
    transport::{Gone, Ration, Sink, Source},
    webhooks::Webhooks,
};

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) mesh: Arc<dyn Mesh>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) signups: Signups,
    pub(crate) webhooks: Arc<Webhooks>,
    /// See [`limits::READS_AT_ONCE`].
    pub(crate) reads: Semaphore,
    /// For those who send much.
    pub(crate) ration: Arc<Ration>,
    /// What `/metrics` shows, if it shows anything.
    pub(crate) metrics: OnceLock<Metrics>,
}

/// Serves a connection until it ends, and detaches its agent.
pub(crate) async fn serve<R: Source, W: Sink>(
    shared: Arc<Shared>,
    transport: Transport,
    (source, sink): (R, W),
) {
    let _open = shared.hub.counters().open(transport);
    let link = shared.hub.connect();
    let session = Session::new(shared.config.clone(), shared.hub.clone(), shared.meter.clone());
    let now = Instant::now();
    let mut connection = Connection {
        shared: shared.clone(),
        link: link.clone(),
        session,
        source,
        dialect: None,
        opened: now,
        beat: now,
        unread_until: now,
    };
    {
        let mut writing = pin!(write(&shared, &link, sink));
        tokio::select! {
            // What is answered now goes out with the events of the same turn.
            biased;
            ending = connection.read() => {
                link.drain(ending);
                // A reader too slow for its last frames does not keep the connection.
                drop(timeout(limits::FLUSH_WITHIN, &mut writing).await);
            }
            () = &mut writing => {}
        }
    }
    connection.end().await;
}

struct Connection<R> {
    shared: Arc<Shared>,
    link: Arc<Link>,
    session: Session,
    source: R,
    /// What its first frame was in.
    dialect: Option<Dialect>,
    opened: Instant,
    /// When the last heartbeat was sent.
    beat: Instant,
    /// Until then nothing was read, for the client's replies were not taken.
    unread_until: Instant,
}

impl<R: Source> Connection<R> {
    /// Until the connection is to end.
    async fn read(&mut self) -> Ending {
        let mut timer = pin!(sleep_until(self.due()));
        loop {
            self.take_answers().await;
            if self.link.life() != Life::Open {
                return self.link.ending();
            }
            if !self.session.is_fresh() {
                self.source.trust();
            }
            let reads = self.session.takes_requests() && self.link.takes_replies();
            if !reads {
                self.unread_until = Instant::now();
            }
            tokio::select! {
                received = self.source.next(), if reads => match received {
                    Ok(frame) => {
                        let dialect = *self.dialect.get_or_insert_with(|| Dialect::of(frame));
                        let request = dialect.parse(frame);
                        let steps = self.session.on_request(Instant::now().into_std(), request);
                        self.perform(steps).await;
                    }
                    Err(gone) => {
                        tracing::debug!(error = &gone as &dyn std::error::Error, "a client left");
                        return match gone {
                            Gone::HungUp => {
                                drop(timeout(limits::FLUSH_WITHIN, self.finish()).await);
                                Ending::Done
                            }
                            Gone::TooLong | Gone::NotText | Gone::Broken(_) => Ending::BadFrame,
                        };
                    }
                },
                () = self.link.session_woken() => {}
                () = &mut timer => {
                    if !self.tick(reads) {
                        return Ending::Silent;
                    }
                    timer.as_mut().reset(self.due());
                }
            }
        }
    }

    /// A client that has said its last may still listen: what it asked for is answered.
    async fn finish(&mut self) {
        while self.session.awaits_answers() && self.link.life() == Life::Open {
            self.link.session_woken().await;
            self.take_answers().await;
        }
    }

    async fn take_answers(&mut self) {
        while let Some((ticket, answer)) = self.link.take_answer() {
            let steps = self.session.on_answer(ticket, answer);
            self.perform(steps).await;
        }
    }

    /// When the next of the timers may have run out.
    fn due(&self) -> Instant {
        let timeouts = &self.shared.config.timeouts;
        let silent = self.heard() + timeouts.silence;
        let due = silent.min(self.beat + timeouts.heartbeat);
        if self.session.is_fresh() { due.min(self.opened + timeouts.register) } else { due }
    }

    fn heard(&self) -> Instant {
        self.source.heard().max(self.unread_until)
    }

    /// Looks at the timers. `false`: the connection is to end.
    fn tick(&mut self, reads: bool) -> bool {
        let timeouts = &self.shared.config.timeouts;
        let now = Instant::now();
        if self.session.is_fresh() && now >= self.opened + timeouts.register {
            return false;
        }
        if reads && now >= self.heard() + timeouts.silence {
            return false;
        }
        if now >= self.beat + timeouts.heartbeat {
            self.beat = now;
            let ping = self.shared.hub.encode(&Event::Ping(Heartbeat { heartbeat: true }));
            self.link.event(ping);
        }
        true
    }

    /// Does what the session wants, and what it wants then.
    async fn perform(&mut self, steps: Steps) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Reply(bytes) => self.link.reply(bytes),
                Step::Replay { message, bytes } => self.link.replay(message, bytes),
                Step::Call { ticket, command, hook } => self.call(ticket, command, hook),
                Step::Webhooks { ticket, key, ask } => {
                    let answering = self.shared.webhooks.ask(key, ask);
                    let link = self.link.clone();
                    // Begun is finished, also if the connection ends meanwhile.
                    tokio::spawn(async move {
                        link.answer(ticket, Given::Webhooks(answering.await));
                    });
                }
                Step::Read { ticket, job } => {
                    let found = find(&self.shared, job).await;
                    for step in self.session.on_found(ticket, found).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Came(room, cursor) => self.link.came(room, cursor),
                Step::Paged(room, upto) => self.link.paged(room, upto),
                Step::Hold(room) => self.link.hold(room),
                Step::GoOnFrom(room, cursor) => {
                    let tip = self.shared.hub.tip(room);
                    self.link.go_on_from(room, (cursor, tip));
                }
                Step::Release(room, seen) => self.link.release(room, seen),
                Step::Open => self.link.open(),
                Step::Close(ending) => self.link.drain(ending),
            }
        }
    }

    fn call(&self, ticket: Ticket, command: Command, hook: Hook) {
        let hub = &self.shared.hub;
        let hook = match hook {
            // Seated now: no event that follows the join may be missed.
            Hook::Join { room, .. } => Hook::Join { room, fresh: hub.seat(&self.link, room) },
            Hook::None | Hook::Attach { .. } | Hook::Leave { .. } => hook,
        };
        let reply = Reply::to_link(hub.clone(), self.link.clone(), ticket, hook);
        self.shared.mesh.call(command, reply);
    }

    /// Takes the agent out of the mesh, unless a newer connection has it.
    async fn end(mut self) {
        self.link.end(Ending::Done);
        // An agent that is being attached has to be detached, too.
        while self.session.is_attaching() {
            for (ticket, answer) in self.link.take_answers() {
                // Nobody is left to be told.
                drop(self.session.on_answer(ticket, answer));
            }
            if self.session.is_attaching() {
                self.link.session_woken().await;
            }
        }
        self.shared.hub.disconnect(&self.link);
        let Some(caller) = self.session.caller() else { return };
        let seen = self.link.seen();
        for _ in 0..limits::DETACH_TRIES_MAX {
            let (reply, answer) = Reply::once();
            let detach = Command::Detach { caller: caller.clone(), seen: seen.clone() };
            self.shared.mesh.call(detach, reply);
            match answer.await {
                Ok(Ok(_) | Err(Failure::Refused(_))) => return,
                Ok(Err(Failure::Unanswered | Failure::Unknown)) | Err(_) => {
                    sleep(limits::DETACH_RETRY).await
                }
            }
        }
        tracing::warn!(
            event = "agent_not_detached",
            "an agent could not be detached: the node does not take commands"
        );
    }
}

/// Reads, on a blocking thread where it may take long.
pub(crate) async fn find(shared: &Arc<Shared>, job: Job) -> Result<Found, ReadError> {
    if job.waits() {
        sleep(limits::LATER_RETRY).await;
    }
    if let Some(found) = job.run_at_once(&**shared.hub.reads())? {
        return Ok(found);
    }
    let hub = shared.hub.clone();
    blocking(shared, move || job.run(&**hub.reads())).await
}

async fn blocking<T: Send + 'static>(
    shared: &Shared,
    read: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    let permit = shared.reads.acquire().await.map_err(ReadError::new)?;
    let found = tokio::task::spawn_blocking(read).await.map_err(ReadError::new)?;
    drop(permit);
    found
}

/// Writes what is queued, until the connection ends.
async fn write<W: Sink>(shared: &Arc<Shared>, link: &Arc<Link>, mut sink: W) {
    let mut batch = Vec::new();
    while let Some(work) = link.next(&mut batch) {
        match work {
            Work::Wait => {
                batch = Vec::new();
                if link.takes_entered() {
                    shared.hub.readers().hurry();
                }
                link.writer_woken().await;
            }
            Work::Write => {
                if sink.write(&batch).await.is_err() {
                    link.give_back(&batch);
                    link.end(Ending::Done);
                    return;
                }
            }
            Work::CatchUp(lag) => {
                if !catch_up(shared, link, lag).await {
                    link.drain(Ending::Failed);
                }
            }
        }
    }
    sink.close(link.ending()).await;
}

/// Reads a page of a room that lags. `false`: the store cannot be read.
async fn catch_up(shared: &Arc<Shared>, link: &Arc<Link>, lag: Lag) -> bool {
    let (hub, reader, room) = (shared.hub.clone(), link.clone(), lag.room);
    match blocking(shared, move || hub.page(&reader, lag)).await {
        Ok(page) => {
            if !link.caught_up(room, page) {
                tracing::warn!(event = "announced_missing", %room, "the delivery log lacks what was announced");
            }
            true
        }
        Err(error) => {
            tracing::error!(
                event = "reader_given_up",
                error = &error as &dyn std::error::Error,
                "a reader is given up"
            );
            false
        }
    }
}

impl Hub {
    /// Reads and encodes a page of the delivery log for one member.
    pub(crate) fn page(&self, link: &Link, lag: Lag) -> Result<Page, ReadError> {
        let Lag { room, after, came, upto, rows } = lag;
        let me = link.me();
        let rows = self.reads().page_of_arrival(room, after, came, rows)?;
        let last = rows.last().map(|row| row.number);
        let frames = rows.iter().filter_map(|row| self.encode_row(me, room, row)).collect();
        Ok(Page { after, upto, last, judged: came > Number::ZERO, frames })
    }
}
