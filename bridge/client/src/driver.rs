//! The task that owns the connection: makes it, keeps it alive, makes it again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use protocol::event::Event as Pushed;
use protocol::frame::{ServerFrame, encode_request};
use protocol::reply::{ErrorBody, Registered};
use protocol::request::{self, Request};
use protocol::value::RegisterOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::address::Address;
use crate::error::{Broken, ConnectError};
use crate::events::{Event, Queue};
use crate::limits::{CALLS_OPEN_MAX, FRAMES_QUEUED_MAX};
use crate::options::{Options, is_drawn};
use crate::transport::{self, Reader, Writer};

/// A call on its way to the node.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) line: String,
    pub(crate) membership: Option<Membership>,
    pub(crate) answer: oneshot::Sender<ServerFrame>,
}

/// The change of a successful call to the rooms to join again.
#[derive(Debug)]
pub(crate) enum Membership {
    Joined(String),
    Left(String),
}

impl Membership {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        if let Request::JoinRoom(join) = request {
            Some(Self::Joined(join.room_id.clone()))
        } else if let Request::LeaveRoom(leave) = request {
            Some(Self::Left(leave.room_id.clone()))
        } else {
            None
        }
    }
}

/// A registered connection. Dropping it ends it, after the writer has written its frames.
pub(crate) struct Link {
    reader: Reader,
    outbox: mpsc::Sender<String>,
}

pub(crate) struct Driver {
    options: Options,
    orders: mpsc::Receiver<Order>,
    queue: Arc<Queue>,
    /// Index of the address that is tried first.
    address: usize,
    /// Set once the node has told it, so that reconnects keep the identity.
    agent_id: Option<String>,
    rooms: BTreeSet<String>,
}

enum End {
    /// The last `Client` is gone.
    Unused,
    Broken(Broken),
}

impl Driver {
    pub(crate) fn new(options: Options, orders: mpsc::Receiver<Order>, queue: Arc<Queue>) -> Self {
        let agent_id = options.agent_id.clone();
        Self { options, orders, queue, address: 0, agent_id, rooms: BTreeSet::new() }
    }

    /// One round over the addresses: the link and the agent's id.
    pub(crate) async fn connect(&mut self) -> Result<(Link, String), ConnectError> {
        let (link, registered) = self.round().await?;
        Ok((link, registered.agent_id))
    }

    /// Serves the link and its successors until nobody holds a `Client`, or no node takes it back.
    pub(crate) async fn run(mut self, mut link: Link) {
        let mut attempt = 0_u32;
        let last = loop {
            let since = Instant::now();
            match self.serve(link).await {
                End::Unused => break None,
                End::Broken(broken) => {
                    self.queue.push(Event::Disconnected { reason: broken.to_string() }, 0);
                }
            }
            // Two clients of one identity throw each other out: pauses must grow then, too.
            if since.elapsed() > self.options.policy.retry_max {
                attempt = 0;
            }
            match self.reconnect(&mut attempt).await {
                Ok(Some((next, rooms_lost))) => {
                    self.queue.push(Event::Reconnected { rooms_lost }, 0);
                    link = next;
                }
                Ok(None) => break None,
                Err(error) => break Some(Event::Closed { reason: error.to_string() }),
            }
        };
        self.queue.close(last);
    }

    /// Rounds with pauses until one succeeds; `None` if nobody wants it any more.
    async fn reconnect(
        &mut self,
        attempt: &mut u32,
    ) -> Result<Option<(Link, Vec<String>)>, ConnectError> {
        loop {
            // Without randomness all clients pause alike: a pity, not a failure.
            let random = getrandom::u32().unwrap_or(u32::MAX);
            sleep(self.options.policy.pause(*attempt, random)).await;
            *attempt = attempt.saturating_add(1);
            if self.orders.is_closed() {
                return Ok(None);
            }
            match self.round().await {
                Ok((mut link, registered)) => {
                    let back = registered.resumed.map(|resumed| resumed.rooms).unwrap_or_default();
                    if let Ok(lost) = self.rejoin(&mut link, &back).await {
                        return Ok(Some((link, lost)));
                    }
                }
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Tries each address once. Fails for good only if all of them refuse for good.
    async fn round(&mut self) -> Result<(Link, Registered), ConnectError> {
        let count = self.options.addresses.len();
        let mut failure = ConnectError::NoAddress;
        for _ in 0..count {
            let Some(address) = self.options.addresses.get(self.address).cloned() else { break };
            match self.open(&address).await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    let known = matches!(failure, ConnectError::NoAddress);
                    if known || error.is_passing() || !failure.is_passing() {
                        failure = error;
                    }
                }
            }
            self.address = (self.address + 1) % count;
        }
        Err(failure)
    }

    async fn open(&mut self, address: &Address) -> Result<(Link, Registered), ConnectError> {
        let patience = self.options.policy.connect_timeout;
        let timed_out = || ConnectError::TimedOut { address: address.clone() };
        let (reader, writer) =
            timeout(patience, transport::connect(address, &self.options.authorities))
                .await
                .map_err(|_| timed_out())?
                .map_err(|broken| unreachable(address, broken))?;
        let (outbox, frames) = mpsc::channel(FRAMES_QUEUED_MAX);
        tokio::spawn(write(writer, frames));
        let mut link = Link { reader, outbox };
        let registered = self
            .exchange(&mut link, &self.registration())
            .await
            .and_then(|frame| Ok(frame.answer::<Registered>()?))
            .map_err(|source| ConnectError::Broken { address: address.clone(), source })?;
        match registered {
            Ok(registered) => {
                self.agent_id = Some(registered.agent_id.clone());
                Ok((link, registered))
            }
            Err(ErrorBody { code, message, .. }) => {
                Err(ConnectError::Refused { address: address.clone(), code, message })
            }
        }
    }

    fn registration(&self) -> Request {
        let mesh =
            Some(self.options.mesh.clone()).filter(|wishes| *wishes != RegisterOptions::default());
        // A node that draws the id does so again, also if it is another one with another key. One that took no notice of the
        // wish is asked for the id that it gave.
        let draws = self.options.agent_id.is_none() && self.options.mesh.draw.is_some();
        let agent_id = self.agent_id.clone().filter(|id| !(draws && is_drawn(id)));
        Request::Register(request::Register {
            key: self.options.key.clone(),
            name: self.options.name.clone(),
            reconnect: agent_id.is_some(),
            agent_id,
            capabilities: self.options.capabilities.clone(),
            protocol_version: protocol::limits::PROTOCOL_VERSION,
            mesh,
        })
    }

    /// Joins the rooms that the node has not restored by itself. Returns those that are closed to the agent.
    async fn rejoin(&mut self, link: &mut Link, back: &[String]) -> Result<Vec<String>, Broken> {
        let mut lost = Vec::new();
        for room_id in self.rooms.clone() {
            if back.contains(&room_id) {
                continue;
            }
            let join = Request::JoinRoom(request::JoinRoom { room_id: room_id.clone() });
            let frame = self.exchange(link, &join).await?;
            if frame.is_refusal() {
                self.rooms.remove(&room_id);
                lost.push(room_id);
            }
        }
        Ok(lost)
    }

    /// Asks on a link that nobody else uses yet, and waits for the answer.
    async fn exchange(&self, link: &mut Link, request: &Request) -> Result<ServerFrame, Broken> {
        let line = encode_request(request, Some("link"), None);
        let asked = async {
            link.outbox.send(line).await.map_err(|_| Broken::Closed)?;
            loop {
                let line = link.reader.next().await?;
                let frame = ServerFrame::parse(&line)?;
                if frame.reply_to.as_deref() == Some("link") {
                    return Ok(frame);
                }
                self.on_event(&frame, line.len(), &link.outbox);
            }
        };
        let patience = self.options.policy.connect_timeout;
        timeout(patience, asked).await.unwrap_or(Err(Broken::Silent))
    }

    /// Carries orders out and answers back until the link breaks.
    async fn serve(&mut self, mut link: Link) -> End {
        let mut open = Calls::default();
        let mut heard = Instant::now();
        let mut probed = false;
        loop {
            open.forget_the_abandoned();
            let policy = &self.options.policy;
            let patience = if probed { policy.dead_after } else { policy.probe_after };
            let has_room = open.0.len() < CALLS_OPEN_MAX;
            tokio::select! {
                line = link.reader.next() => {
                    heard = Instant::now();
                    probed = false;
                    let took = line.and_then(|line| self.on_line(&line, &mut open, &link.outbox));
                    if let Err(broken) = took {
                        return End::Broken(broken);
                    }
                }
                next = next_order(&mut self.orders, &link.outbox), if has_room => match next {
                    Next::Order(permit, order) => {
                        // The caller may have stopped waiting: do not act behind its back.
                        if !order.answer.is_closed() {
                            permit.send(order.line);
                            open.0.insert(order.id, (order.membership, order.answer));
                        }
                    }
                    Next::Unused => return End::Unused,
                    Next::WriterGone => return End::Broken(Broken::Closed),
                },
                () = sleep_until(heard + patience) => {
                    if probed {
                        return End::Broken(Broken::Silent);
                    }
                    probed = true;
                    let ping = encode_request(&Request::Ping(request::Ping {}), None, None);
                    // A full outbox has bytes under way that will be answered as well.
                    let _ = link.outbox.try_send(ping);
                }
            }
        }
    }

    fn on_line(
        &mut self,
        line: &str,
        open: &mut Calls,
        outbox: &mpsc::Sender<String>,
    ) -> Result<(), Broken> {
        let frame = ServerFrame::parse(line)?;
        let Some(id) = frame.reply_to.as_deref() else {
            self.on_event(&frame, line.len(), outbox);
            return Ok(());
        };
        // The answer to a call that was given up is nobody's.
        if let Some((membership, answer)) = open.0.remove(id) {
            if !frame.is_refusal() {
                self.note(membership);
            }
            // The caller may just have stopped waiting.
            let _ = answer.send(frame);
        }
        Ok(())
    }

    fn note(&mut self, membership: Option<Membership>) {
        match membership {
            Some(Membership::Joined(room_id)) => {
                self.rooms.insert(room_id);
            }
            Some(Membership::Left(room_id)) => {
                self.rooms.remove(&room_id);
            }
            None => {}
        }
    }

    fn on_event(&self, frame: &ServerFrame, bytes: usize, outbox: &mpsc::Sender<String>) {
        match frame.event() {
            Ok(Some(Pushed::Ping(_))) => {
                let pong = Request::Pong(request::Pong {});
                // A full outbox has bytes under way, and any byte tells the node that we live.
                let _ = outbox.try_send(encode_request(&pong, None, frame.id.as_deref()));
            }
            Ok(Some(mut event)) => {
                if let Some(content) = event.content_mut() {
                    self.options.secrets.open_in_place(content);
                }
                self.queue.push(Event::Pushed(event), bytes);
            }
            // Types of later versions, errors about nothing we asked, pongs to our probes.
            Ok(None) => {}
            // Reconnecting would not make it readable; a reader that pages sees its effect.
            Err(_) => self.queue.push(Event::Missed { count: 1 }, bytes),
        }
    }
}

/// Calls that are not answered yet, by request id.
#[derive(Default)]
struct Calls(HashMap<String, (Option<Membership>, oneshot::Sender<ServerFrame>)>);

impl Calls {
    fn forget_the_abandoned(&mut self) {
        if self.0.len() >= CALLS_OPEN_MAX {
            self.0.retain(|_, (_, answer)| !answer.is_closed());
        }
    }
}

enum Next<'a> {
    Order(mpsc::Permit<'a, String>, Order),
    Unused,
    WriterGone,
}

/// Takes an order only when the writer has room for it. Cancel-safe.
async fn next_order<'a>(
    orders: &mut mpsc::Receiver<Order>,
    outbox: &'a mpsc::Sender<String>,
) -> Next<'a> {
    let Ok(permit) = outbox.reserve().await else { return Next::WriterGone };
    match orders.recv().await {
        Some(order) => Next::Order(permit, order),
        None => Next::Unused,
    }
}

fn unreachable(address: &Address, broken: Broken) -> ConnectError {
    let address = address.clone();
    if let Broken::Socket(source) = broken {
        return ConnectError::Unreachable { address, source };
    }
    ConnectError::Broken { address, source: broken }
}

/// Writes frames until the link is dropped or the socket fails, which closes the outbox.
async fn write(mut writer: Writer, mut frames: mpsc::Receiver<String>) {
    let mut batch = Vec::new();
    while frames.recv_many(&mut batch, FRAMES_QUEUED_MAX).await > 0 {
        // The reader sees why; here it only matters that the outbox closes.
        if writer.write(std::mem::take(&mut batch)).await.is_err() {
            return;
        }
    }
}
