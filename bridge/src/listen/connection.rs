//! One connection: its session, its timers, its writer. One task for all of it.

use std::{
    collections::VecDeque,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use mesh::{
    api::command::Caller,
    name::{id::RoomId, number::Number},
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    http::metrics::Metrics,
    transport::{Gone, Ration, Sink, Source},
};
use crate::{
    backend::{self, Mesh, ReadError},
    config::Config,
    counters::Transport,
    delivery::{
        ending::Ending,
        hub::Hub,
        link::{Life, Link},
        outbox::{Frame, Lag, Work},
        reread,
    },
    dialect::{Conversation, Dialects, Manners},
    limits,
    read::{Desk, Reader},
    seam::event::{Event, Rendered},
    session::{
        inbox::Inbox,
        pace::Paced,
        reading::Reading,
        rules::Rules,
        seat::{Seat, Step},
    },
    webhooks::Webhooks,
};

/// The parts that all connections share.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) mesh: Arc<dyn Mesh>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) dialects: Dialects,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) reader: Reader,
    pub(crate) desk: Desk,
    /// For clients that send much.
    pub(crate) ration: Arc<Ration>,
    /// The page at `/metrics`, if there is one.
    pub(crate) metrics: OnceLock<Metrics>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    pub(crate) transport: Transport,
    /// See [`Seat::client`].
    pub(crate) client: Option<IpAddr>,
}

impl From {
    /// Of a client whose network nobody asks for.
    pub(crate) fn by(transport: Transport) -> From {
        From { transport, client: None }
    }
}

/// Serves a connection until it ends, and detaches its agent.
pub(crate) async fn serve<R: Source, W: Sink>(shared: Arc<Shared>, from: From, source: R, sink: W) {
    let From { transport, client } = from;
    let _open = shared.hub.counters().open(transport);
    let link = shared.hub.connect(client);
    // Until it has said something.
    let voice = shared.dialects.last().voice();
    let now = Instant::now();
    let conversation = Mutex::default();
    let mut connection = Connection {
        shared: shared.clone(),
        transport,
        link: link.clone(),
        inbox: Arc::default(),
        seat: Seat::new(shared.rules.clone(), voice).of(client),
        source,
        conversation: &conversation,
        opened: now,
        beat: now,
        unread_until: now,
        paced: shared.rules.paced(now.into_std()),
        heard_from: now,
        later: JoinSet::new(),
    };
    {
        let mut writing = pin!(write(&shared, &link, &conversation, sink));
        tokio::select! {
            // Answers of this moment go out with the events of the same turn.
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

/// The conversation of a connection, from its first frame on. Reader and writer are one task, and hold it for no longer than
/// a frame takes.
type Talk = Mutex<Option<Box<dyn Conversation>>>;

struct Connection<'a, R> {
    shared: Arc<Shared>,
    transport: Transport,
    link: Arc<Link>,
    inbox: Arc<Inbox>,
    seat: Seat,
    source: R,
    conversation: &'a Talk,
    opened: Instant,
    /// When the last heartbeat was sent.
    beat: Instant,
    /// Until then nothing was read, for the client's replies were not taken.
    unread_until: Instant,
    paced: Paced,
    /// Its next frame is heard from then on.
    heard_from: Instant,
    /// Work of the session that takes its time: it ends with the connection.
    later: JoinSet<()>,
}

impl<R: Source> Connection<'_, R> {
    /// Until the connection is to end.
    async fn read(&mut self) -> Ending {
        let mut timer = pin!(sleep_until(self.due()));
        loop {
            self.take_answers().await;
            if self.link.life() != Life::Open {
                return self.link.ending();
            }
            if !self.seat.is_fresh() {
                self.source.trust(self.manners().frame_bytes_max);
            }
            let reads = self.reads();
            if !reads {
                self.unread_until = Instant::now();
            }
            tokio::select! {
                received = self.source.next(), if reads => match received {
                    Ok(frame) => {
                        self.seat.begin(Instant::now().into_std(), frame.bytes());
                        let begins = {
                            let mut talk = locked(self.conversation);
                            let begins = talk.is_none();
                            let conversation = talk.get_or_insert_with(|| {
                                let dialect = self.shared.dialects.of(self.transport, frame);
                                self.seat.speak(dialect.voice());
                                dialect.begin()
                            });
                            conversation.hear(&mut self.seat, frame);
                            begins
                        };
                        self.perform().await;
                        // Its dialect may be less patient than the last one.
                        if self.keep_pace() || begins {
                            timer.as_mut().reset(self.due());
                        }
                    }
                    Err(gone) => {
                        tracing::debug!(error = &gone as &dyn std::error::Error, "a client left");
                        return match gone {
                            Gone::HungUp => {
                                drop(timeout(limits::FLUSH_WITHIN, self.finish()).await);
                                Ending::Done
                            }
                            Gone::TooLong => self.manners().too_large,
                            Gone::NotText => self.manners().not_text,
                            Gone::Broken(_) => Ending::BadFrame,
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
            if !reads {
                // Until now: what it said meanwhile is still to be read.
                self.unread_until = Instant::now();
            }
        }
    }

    /// Whether its next frame may come.
    fn reads(&self) -> bool {
        let is_its_turn = self.heard_from <= Instant::now();
        is_its_turn && self.seat.takes_requests() && self.link.takes_replies()
    }

    /// Counts the frame that was heard. Whether the next one is heard later.
    fn keep_pace(&mut self) -> bool {
        let Some(pace) = self.manners().pace else { return false };
        let now = Instant::now();
        let wait = self.paced.wait(pace, self.seat.shown(), now.into_std());
        self.heard_from = now + wait;
        !wait.is_zero()
    }

    /// A client that has said its last may still listen: its calls are answered.
    async fn finish(&mut self) {
        while self.seat.awaits_answers() && self.link.life() == Life::Open {
            self.link.session_woken().await;
            self.take_answers().await;
        }
    }

    async fn take_answers(&mut self) {
        // None while the client does not take its replies: an answer is smaller than the reply that it becomes.
        while self.link.takes_replies()
            && let Some(resume) = self.inbox.take()
        {
            resume(&mut self.seat);
            self.perform().await;
        }
    }

    /// How its client is treated.
    fn manners(&self) -> Manners {
        match &*locked(self.conversation) {
            Some(conversation) => conversation.manners(),
            None => self.shared.dialects.last().manners(),
        }
    }

    /// When the next of the timers may have run out.
    fn due(&self) -> Instant {
        let manners = self.manners();
        let silent = self.heard() + manners.silence;
        let mut due = silent.min(self.beat + manners.heartbeat);
        if self.heard_from > Instant::now() {
            due = due.min(self.heard_from);
        }
        if self.seat.is_fresh() { due.min(self.opened + manners.attach_within) } else { due }
    }

    fn heard(&self) -> Instant {
        self.source.heard().max(self.unread_until)
    }

    /// Looks at the timers. `false`: the connection is to end.
    fn tick(&mut self, reads: bool) -> bool {
        let manners = self.manners();
        let now = Instant::now();
        if self.seat.is_fresh() && now >= self.opened + manners.attach_within {
            return false;
        }
        if reads && now >= self.heard() + manners.silence {
            return false;
        }
        if now >= self.beat + manners.heartbeat {
            self.beat = now;
            if let Some(rendered) = Rendered::new(Event::Heartbeat, self.seat.voice()) {
                self.link.event(rendered);
            }
        }
        true
    }

    /// Does the session's steps, and those that follow from them.
    async fn perform(&mut self) {
        let mut steps = VecDeque::from(self.seat.take_steps());
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Reply(bytes) => self.link.reply(bytes),
                Step::Replay { message, rendered } => self.link.replay(message, rendered),
                Step::Call { command, hook, then } => {
                    let reply = self.inbox.reply(&self.shared.hub, &self.link, hook, then);
                    self.shared.mesh.call(command, reply);
                }
                Step::Beside { me, voice, then } => {
                    then(&mut self.seat, self.shared.hub.sits_beside(&self.link, me, voice));
                    for step in self.seat.take_steps().into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Webhooks(ask) => {
                    let answering = ask(&self.shared.webhooks);
                    let (inbox, link) = (self.inbox.clone(), self.link.clone());
                    // Begun is finished, also if the connection ends meanwhile.
                    tokio::spawn(async move {
                        inbox.put(answering.await);
                        link.wake_session();
                    });
                }
                Step::Later(later) => {
                    let (inbox, link) = (self.inbox.clone(), self.link.clone());
                    while self.later.try_join_next().is_some() {}
                    self.later.spawn(async move {
                        inbox.put(later.await);
                        link.wake_session();
                    });
                }
                Step::Read(reading) => {
                    self.read_for_session(reading).await;
                    for step in self.seat.take_steps().into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Came(room, cursor) => self.link.came(room, cursor),
                Step::Paged(room, upto) => self.link.paged(room, upto),
                Step::PageEnd(room, numbers) => self.link.page_end(room, numbers),
                Step::Hold(room) => self.link.hold(room),
                Step::GoOnFrom(room, cursor) => {
                    let tip = self.shared.hub.tip(room);
                    self.link.go_on_from(room, cursor, tip);
                }
                Step::Release(room, seen) => self.link.release(room, seen),
                Step::HearPieces => self.link.hear_pieces(),
                Step::Open => self.link.open(),
                Step::Close(ending) => self.link.drain(ending),
            }
        }
    }

    /// Reads, on a blocking thread where it may take long.
    async fn read_for_session(&mut self, mut reading: Box<dyn Reading>) {
        if reading.waits() {
            sleep(limits::LATER_RETRY).await;
        }
        if reading.at_once(&**self.shared.hub.reads()) {
            return reading.go_on(&mut self.seat);
        }
        let read = self.shared.reader.blocking(move |reads| {
            reading.run(reads);
            Ok(reading)
        });
        match read.await {
            Ok(reading) => reading.go_on(&mut self.seat),
            Err(error) => self.give_up(&error),
        }
    }

    /// A read was cut off, and with it the way to go on.
    fn give_up(&self, error: &ReadError) {
        tracing::error!(
            event = "reader_given_up",
            error = error as &dyn std::error::Error,
            "a client is given up"
        );
        self.link.drain(Ending::Failed);
    }

    /// Takes the agent out of the mesh, unless a newer connection has it.
    async fn end(mut self) {
        self.link.end(Ending::Done);
        // An agent that is being attached has to be detached, too.
        while self.seat.is_attaching() {
            while let Some(resume) = self.inbox.take() {
                resume(&mut self.seat);
                // Nobody is left to be told.
                drop(self.seat.take_steps());
            }
            if self.seat.is_attaching() {
                self.link.session_woken().await;
            }
        }
        // Other connections of the agent stay, and with them the agent.
        let Some(seen) = self.shared.hub.disconnect(&self.link) else { return };
        let Some(caller) = self.seat.caller() else { return };
        match self.seat.linger.filter(|_| self.link.ending().lets_linger()) {
            Some(time) => linger(&self.shared, caller, seen, time).await,
            None => backend::detach(&*self.shared.mesh, caller, &seen).await,
        }
    }
}

/// The agent stays for a while. Its connection counts no longer, so that a task of its own waits for the end of that.
async fn linger(
    shared: &Arc<Shared>,
    caller: &Caller,
    seen: Vec<(RoomId, Number)>,
    time: Duration,
) {
    // Before the mesh knows: the agent may be back at once.
    let mut over = shared.hub.lingers(caller);
    backend::linger(&*shared.mesh, caller, &seen).await;
    let (shared, caller) = (shared.clone(), caller.clone());
    tokio::spawn(async move {
        let let_go = match timeout(time, &mut over).await {
            Ok(ended) => ended.is_ok(),
            Err(_) => true,
        };
        // Else it is back.
        if let_go {
            shared.hub.lingers_no_longer(&caller);
            backend::detach(&*shared.mesh, &caller, &[]).await;
        }
    });
}

fn locked(talk: &Talk) -> MutexGuard<'_, Option<Box<dyn Conversation>>> {
    // A panic while it was held ends the process in the daemon; tests may go on.
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes queued frames until the connection ends.
async fn write<W: Sink>(shared: &Arc<Shared>, link: &Arc<Link>, talk: &Talk, mut sink: W) {
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
                personalize(talk, &mut batch);
                if sink.write(&batch).await.is_err() {
                    link.give_back(&batch);
                    link.end(Ending::Done);
                    return;
                }
                shared.hub.wrote(link, &batch);
            }
            Work::CatchUp(lag) => {
                if !catch_up(shared, link, lag).await {
                    link.drain(Ending::Failed);
                }
            }
        }
    }
    let ending = link.ending();
    let farewell = locked(talk).as_mut().and_then(|conversation| conversation.farewell(ending));
    if let Some(frame) = farewell {
        // A client that has gone does not hear it.
        drop(sink.write(&[Frame::reply(frame)]).await);
    }
    sink.close(ending).await;
}

/// Events leave as the client's conversation has them, where it has a say.
fn personalize(talk: &Talk, batch: &mut [Frame]) {
    if batch.iter().any(Frame::is_personal)
        && let Some(conversation) = &mut *locked(talk)
    {
        batch.iter_mut().for_each(|frame| frame.personalize(&mut **conversation));
    }
}

/// Reads a page of a room that lags. `false`: the store cannot be read.
async fn catch_up(shared: &Arc<Shared>, link: &Arc<Link>, lag: Lag) -> bool {
    let (hub, reader, room) = (shared.hub.clone(), link.clone(), lag.room);
    match shared.reader.blocking(move |_| reread::page(&hub, &reader, lag)).await {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

    use super::*;
    use crate::{
        listen::{
            serve::Bridge,
            transport::{LineSink, Lines, Share},
        },
        session::{pace::Pace, rates::Rate},
        testing::{Fake, echo::Echo, keyed},
    };

    /// A client of a node, by lines.
    fn client(bridge: &Bridge) -> DuplexStream {
        let (io, other) = duplex(64 * 1024);
        let (read, write) = tokio::io::split(io);
        let lines = Lines::new(read, Share::of(Arc::default()));
        tokio::spawn(serve(bridge.shared(), From::by(Transport::Tcp), lines, LineSink(write)));
        other
    }

    /// The time until all frames of a client are answered, each by one line.
    async fn until_answered(client: &mut DuplexStream, frames: &[String]) -> Duration {
        let began = Instant::now();
        client.write_all(frames.concat().as_bytes()).await.unwrap();
        let mut lines = BufReader::new(client).lines();
        for frame in frames {
            let line = lines.next_line().await.unwrap().expect(frame);
            assert!(!line.contains("event"), "{line}");
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn frames_beyond_the_pace_are_heard_later_and_none_is_lost() {
        let (fake, hub) = Fake::new();
        let minutely = |burst| Rate { burst, per_minute: 1 };
        let pace = Pace { own: minutely(4), of_key: minutely(6), of_stranger: minutely(1) };
        let bridge = Bridge::new(keyed(), hub, fake, vec![Arc::new(Echo::at(pace))]);
        let attach = |who: &str| format!("{{\"type\":\"echo\",\"attach\":\"{who}\"}}\n");
        let minute = Duration::from_secs(60);
        let some = |who: &str, more: usize| {
            let more = std::iter::repeat_n("{}\n".to_owned(), more);
            std::iter::once(attach(who)).chain(more).collect::<Vec<_>>()
        };
        // A pause is as long as a client may be silent, which this one is not.
        let mut one = client(&bridge);
        let took = until_answered(&mut one, &some("one", 6)).await;
        assert!(took >= minute * 2 && took < minute * 3, "{took:?}");
        // Another connection of the key has what the key has left.
        let mut two = client(&bridge);
        let took = until_answered(&mut two, &some("two", 4)).await;
        assert!(took >= minute && took < minute * 4, "{took:?}");
        // One without a key: the first frame of it is heard.
        let mut stranger = client(&bridge);
        let frames = vec!["{\"type\":\"echo\"}\n".to_owned()];
        assert!(until_answered(&mut stranger, &frames).await < minute);
    }

    #[tokio::test]
    async fn an_idle_connection_is_small() {
        let (fake, hub) = Fake::new();
        let bridge = Bridge::new(keyed(), hub, fake, vec![Arc::new(Echo::default())]);
        let (io, _other) = duplex(64);
        let (read, write) = tokio::io::split(io);
        let lines = Lines::new(read, Share::of(Arc::default()));
        let task = serve(bridge.shared(), From::by(Transport::Tcp), lines, LineSink(write));
        let size = size_of_val(&task);
        assert!(size + limits::READ_BYTES_MIN <= 8 * 1024, "{size}");
    }
}
