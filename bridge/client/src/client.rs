//! The handle through which a program calls a node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::frame::{ServerFrame, encode_request};
use protocol::limits::LINE_BYTES_MAX;
use protocol::reply::{Answer, ErrorBody, Reason};
use protocol::request::{Command, Repeat, Request, Speech};
use protocol::value::{DedupId, SendOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::driver::{Driver, Membership, Order};
use crate::error::{CallError, ConnectError};
use crate::events::Events;
use crate::limits::ORDERS_QUEUED_MAX;
use crate::options::Options;
use crate::secrets::Secrets;

/// A registered agent. Clones share the connection, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct Client {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    agent_id: String,
    name: String,
    call_timeout: std::time::Duration,
    calls: AtomicU64,
    secrets: Secrets,
}

impl Client {
    /// Connects to the first address that answers and registers there. Each address is tried once;
    /// only a connection that stood is made again without being asked.
    ///
    /// # Errors
    /// [`ConnectError`] of the last address tried.
    pub async fn connect(options: Options) -> Result<(Self, Events), ConnectError> {
        let call_timeout = options.policy.call_timeout;
        let (name, secrets) = (options.name.clone(), options.secrets.clone());
        let (events, queue) = Events::new();
        let (orders, taken) = mpsc::channel(ORDERS_QUEUED_MAX);
        let mut driver = Driver::new(options, taken, queue);
        let (link, agent_id) = driver.connect().await?;
        tokio::spawn(driver.run(link));
        let shared = Shared { agent_id, name, call_timeout, calls: AtomicU64::new(0), secrets };
        Ok((Self { orders, shared: Arc::new(shared) }, events))
    }

    /// The agent's id: the one it chose, or the one the node drew.
    pub fn agent_id(&self) -> &str {
        &self.shared.agent_id
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The secrets that encrypt content; rooms may get theirs at any time.
    pub fn secrets(&self) -> &Secrets {
        &self.shared.secrets
    }

    /// Asks the node and waits for the answer, across reconnects.
    ///
    /// A call whose connection is lost before the answer is repeated on the next one if that does
    /// no harm. `send_message`, `thinking` and `decision` are: they get a dedup id unless they have one, so
    /// that a mesh node stores them once. The client joins again the rooms that
    /// were joined through here and not left. Where a secret applies, content is encrypted before it is sent, once for
    /// all repeats, and the messages of the answer are decrypted.
    ///
    /// # Errors
    /// [`CallError::Refused`] is the node's answer; of the others only [`CallError::TooLarge`],
    /// [`CallError::TooLong`], [`CallError::Closed`] and [`CallError::NoRandomness`] say that nothing
    /// was done.
    pub async fn call<C>(&self, command: C) -> Result<C::Reply, CallError>
    where
        C: Command,
    {
        let request = self.prepare(command.into())?;
        let deadline = Instant::now() + self.shared.call_timeout;
        loop {
            let outcome = match timeout_at(deadline, self.once(&request)).await {
                Ok(outcome) => outcome,
                Err(_) => return Err(CallError::TimedOut),
            };
            match outcome {
                Ok(frame) => return self.read(&frame),
                Err(CallError::Lost) if repeats_without_harm(&request) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives content a dedup id, and encrypts it.
    fn prepare(&self, mut request: Request) -> Result<Request, CallError> {
        if let Some(Speech { content, options }) = request.speech() {
            let options = options.get_or_insert_with(SendOptions::default);
            if options.dedup.is_none() {
                options.dedup = Some(fresh_dedup_id()?);
            }
            self.shared.secrets.seal(content)?;
        }
        Ok(request)
    }

    /// The answer to a command, decrypted.
    fn read<A: Answer>(&self, frame: &ServerFrame) -> Result<A, CallError> {
        match frame.answer::<A>()? {
            Ok(mut answer) => {
                for message in answer.messages() {
                    self.shared.secrets.open_in_place(message.content_mut());
                }
                Ok(answer)
            }
            // As good as a connection that broke before the answer.
            Err(ErrorBody { mesh: Some(note), .. }) if note.reason == Reason::Unknown => {
                Err(CallError::Lost)
            }
            Err(ErrorBody { code, message, .. }) => Err(CallError::Refused { code, message }),
        }
    }

    async fn once(&self, request: &Request) -> Result<ServerFrame, CallError> {
        let id = format!("c{}", self.shared.calls.fetch_add(1, Ordering::Relaxed));
        let line = encode_request(request, Some(&id), None);
        if line.len() > LINE_BYTES_MAX {
            return Err(CallError::TooLarge { bytes: line.len(), max: LINE_BYTES_MAX });
        }
        let (answer, answered) = oneshot::channel();
        let order = Order { id, line, membership: Membership::of(request), answer };
        self.orders.send(order).await.map_err(|_| CallError::Closed)?;
        answered.await.map_err(|_| CallError::Lost)
    }
}

/// Whether a second execution changes nothing; every request that says something has a dedup id.
fn repeats_without_harm(request: &Request) -> bool {
    match request.repeat() {
        Repeat::Harmless | Repeat::Deduplicated => true,
        Repeat::Harmful => false,
    }
}

fn fresh_dedup_id() -> Result<DedupId, CallError> {
    let random = (getrandom::u64(), getrandom::u64());
    let (Ok(high), Ok(low)) = random else { return Err(CallError::NoRandomness) };
    Ok(DedupId::new(format!("{high:016x}{low:016x}")).expect("32 digits are short enough"))
}
