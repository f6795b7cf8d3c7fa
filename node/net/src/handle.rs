//! The owner's handle.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::address::{Address, PeerAddress};
use crate::book::Book;
use crate::echo::{self, NoEcho};
use crate::identity::{NodeId, peer_of};
use crate::inbox::{Inbox, Ticket, inbox};
use crate::keys::{Doorkeeper, InvitationId, Keys};
use crate::limits::{
    COMMANDS_MAX, DRAIN_TIMEOUT, FAULT_CHARS_MAX, GOSSIP_BYTES_MAX, PUBLISH_BYTES_MAX,
    PUBLISH_ITEMS_MAX, TOPICS_MAX, VERDICTS_MAX,
};
use crate::link::ControlHandle;
use crate::listening::{self, Listening};
use crate::machine::Here;
use crate::orders::{Command, Orders, Publish, Reason, Shared, Verdict};
use crate::outbox::{QueueLength, SendError};
use crate::settings::{Secret, Settings, StartError};
use crate::task::Task;
use crate::trouble::NoLink;
use crate::twins::Twins;

/// The network, from the outside. Cheap to clone; no call waits, except [`Net::shutdown`]. The
/// network stops when all clones are dropped, or its [`Inbox`].
#[derive(Clone, Debug)]
pub struct Net {
    me: NodeId,
    topics: u16,
    shared: Arc<Shared>,
    publish: mpsc::Sender<Publish>,
    publish_bytes: Arc<Semaphore>,
    verdicts: mpsc::Sender<(Ticket, Verdict)>,
    commands: mpsc::Sender<Command>,
}

/// Why a payload was not queued for gossip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The network does not take payloads as fast as they come.
    #[error("the gossip queue is full")]
    Full,
    /// Larger content travels as frames.
    #[error("the payload is larger than {GOSSIP_BYTES_MAX} bytes")]
    TooLarge,
    /// Not below the number of topics in the settings.
    #[error("there is no topic {0}")]
    NoSuchTopic(u16),
}

/// One peer, or one configured address at which nobody has answered yet.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// `None` until somebody answered.
    pub node: Option<NodeId>,
    /// Where it is known to be.
    pub addresses: Vec<Address>,
    /// Between `Up` and `Down`.
    pub connected: bool,
    /// The member that carries the link, if there is no direct one.
    pub through: Option<NodeId>,
    /// For how long it has been connected.
    pub up_for: Option<Duration>,
    /// Round trip of the last ping.
    pub rtt: Option<Duration>,
    /// The frames that wait to be sent to it.
    pub outbound: QueueLength,
    /// Bad things within the current window.
    pub strikes: u32,
    /// All of them since the start.
    pub strikes_ever: u64,
    /// The last of them.
    pub fault: Option<String>,
    /// Time left during which it is refused.
    pub refused_for: Option<Duration>,
    /// Two nodes were seen to run with its identity within the last minute.
    pub runs_twice: bool,
    /// Why it is not connected, or not directly; the last one.
    pub last_error: Option<NoLink>,
    /// Time until it is dialled again; `None` when connected, being dialled, or not to be dialled.
    pub next_dial: Option<Duration>,
}

/// Starts the network on the current tokio runtime. It listens when this returns:
/// [`Net::listening`].
///
/// # Errors
/// An address that cannot be bound is named.
pub async fn start(settings: Settings) -> Result<(Net, Inbox), StartError> {
    if settings.topics > TOPICS_MAX {
        return Err(StartError::Topics(settings.topics));
    }
    let (publish_sender, publish) = mpsc::channel(PUBLISH_ITEMS_MAX);
    let (verdict_sender, verdicts) = mpsc::channel(VERDICTS_MAX);
    let (command_sender, commands) = mpsc::channel(COMMANDS_MAX);
    let (inbox_sender, inbox) = inbox();
    let keys = Keys::new(settings.pre_shared_key.clone(), settings.former_keys.clone());
    let keys = Arc::new(keys);
    let mut start = [0; 8];
    getrandom::fill(&mut start).map_err(|error| StartError::Setup(error.to_string()))?;
    let twins = Arc::new(Twins::new(u64::from_be_bytes(start)));
    let here = Here::default();
    let (mut swarm, me) = listening::swarm(&settings, keys.clone(), twins.clone(), &here)?;
    let (listeners, bound) =
        listening::listen(&mut swarm, &settings.listen, &settings.web.listen).await?;
    let mut book = Book::new(me, settings.discovery);
    for peer in settings.peers {
        book.configure(peer, Instant::now());
    }
    let mut control = swarm.behaviour().frames.new_control();
    let echoes = control.accept(echo::PROTOCOL);
    let echoes = echoes.map_err(|error| StartError::Setup(error.to_string()))?;
    tokio::spawn(echo::serve(echoes));
    let with = (twins, ControlHandle(control));
    let shared = Arc::new(Shared::new(book, keys, with, (bound, settings.announce)));
    let net = Net {
        me,
        topics: settings.topics,
        shared: shared.clone(),
        publish: publish_sender,
        publish_bytes: Arc::new(Semaphore::new(PUBLISH_BYTES_MAX)),
        verdicts: verdict_sender,
        commands: command_sender,
    };
    let announced = (settings.discovery, Listening { listeners, here });
    let task = Task::new(swarm, shared, inbox_sender, announced, settings.topics)?;
    tokio::spawn(task.run(Orders { publish, verdicts, commands }));
    Ok((net, inbox))
}

impl Net {
    /// Our own node id.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.me
    }

    /// The addresses really bound; an unspecified one is resolved to those of the interfaces.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        self.shared.listening().clone()
    }

    /// Where others reach this node: what the settings name and where it listens, those that lead
    /// farthest first. Those of one link are left out.
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        let mut own = self.shared.own_addresses();
        own.retain(|address| !address.is_link_local());
        own
    }

    /// Listens at these addresses instead of those of the settings or of the last call. Those that
    /// cannot be bound are left out. `false`: too many calls at once, try again.
    pub fn listen(&self, addresses: Vec<SocketAddr>) -> bool {
        self.commands.try_send(Command::Listen(addresses)).is_ok()
    }

    /// Changes each time when this machine is in another network, or has slept.
    #[must_use]
    pub fn moves(&self) -> watch::Receiver<u64> {
        self.shared.moved.subscribe()
    }

    /// Whether a peer has said within the last minute that another node runs with our identity.
    #[must_use]
    pub fn runs_twice(&self) -> bool {
        self.shared.twins.runs_twice_here(Instant::now())
    }

    /// Queues a payload for all nodes. Ok promises nothing: gossip is lossy, nobody may listen, and
    /// a payload that went through the same topic within a minute is not sent again.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish(&self, topic: u16, payload: Bytes) -> Result<(), PublishError> {
        if topic >= self.topics {
            return Err(PublishError::NoSuchTopic(topic));
        }
        if payload.len() > GOSSIP_BYTES_MAX {
            return Err(PublishError::TooLarge);
        }
        let bytes = u32::try_from(payload.len()).map_err(|_| PublishError::TooLarge)?;
        let share = self.publish_bytes.clone().try_acquire_many_owned(bytes);
        let share = share.map_err(|_| PublishError::Full)?;
        let publish = Publish { topic, payload, _share: share };
        self.publish.try_send(publish).map_err(|_| PublishError::Full)
    }

    /// Queues a frame for one node that is up. Frames to a node arrive in order, until its `Down`.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&self, to: &NodeId, frame: Bytes) -> Result<(), SendError> {
        self.shared.outboxes.get(to).ok_or(SendError::NotConnected)?.push(frame)
    }

    /// Whether all frames for a node that is up are written: the next one does not wait for others.
    #[must_use]
    pub fn has_sent(&self, to: &NodeId) -> bool {
        self.shared.outboxes.get(to).is_some_and(|outbox| outbox.is_drained())
    }

    /// Decides about a gossip message.
    pub fn verdict(&self, ticket: Ticket, verdict: Verdict) {
        // A lost verdict is an `Ignore`: the message is not relayed, and anti-entropy brings it.
        let _ = self.verdicts.try_send((ticket, verdict));
    }

    /// How long it takes to a node that is up and back.
    ///
    /// # Errors
    /// See [`NoEcho`].
    pub async fn ping(&self, node: NodeId) -> Result<Duration, NoEcho> {
        // The book hears of it a moment after the application.
        let is_up = self.shared.outboxes.get(&node).is_some_and(|outbox| outbox.is_open());
        let peer = peer_of(&node).filter(|_| is_up).ok_or(NoEcho::NotConnected)?;
        echo::measure(self.shared.control.0.clone(), peer).await
    }

    /// Adds peers to dial, as those in the settings. `false`: too many calls at once, try again.
    pub fn add_peers(&self, peers: Vec<PeerAddress>) -> bool {
        self.commands.try_send(Command::AddPeers(peers)).is_ok()
    }

    /// Counts a misdeed against a peer; after too many it is disconnected and refused for a while.
    /// `what` it did is for operators, and cut after [`FAULT_CHARS_MAX`].
    pub fn penalise(&self, node: NodeId, reason: Reason, what: &str) {
        let what = what.chars().take(FAULT_CHARS_MAX).collect();
        // Lost only in a flood of them, and then others arrive.
        let _ = self.commands.try_send(Command::Penalise(node, reason, what));
    }

    /// From here on connections are made with this key; of those that are there the ones to nodes
    /// that are not known ([`Net::know`]) are closed. `former`: the keys before, the newest first.
    pub fn renew_keys(&self, newest: Secret, former: Vec<Secret>) {
        self.shared.keys.renew(newest, former);
        self.shared.changed.notify_one();
    }

    /// From here on this node may connect with a key of before, too.
    pub fn know(&self, node: NodeId) {
        self.shared.keys.know(node);
    }

    /// Sets the doorkeeper that answers guests with an invitation.
    pub fn keep_door(&self, doorkeeper: Arc<dyn Doorkeeper>) {
        self.shared.keys.keep_door(doorkeeper);
    }

    /// From here on these are the invitations, each with its key: the first
    /// [`crate::limits::INVITATIONS_MAX`].
    pub fn invite(&self, invitations: Vec<(InvitationId, Secret)>) {
        self.shared.keys.invite(invitations);
    }

    /// From here on this node is neither dialled nor spoken of, and its connections are closed as
    /// soon as its queued frames are written. If it connects again it is let in now and then: the
    /// owner says again that it is not wanted.
    pub fn shut_out(&self, node: NodeId) {
        // Not by a command, which may be lost: the task finds it here.
        self.shared.book().shut_out(node, Instant::now() + DRAIN_TIMEOUT);
        self.shared.changed.notify_one();
    }

    /// Everyone known, connected ones first.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        let now = Instant::now();
        let book = self.shared.book();
        let left = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
        let mut peers: Vec<PeerStatus> = book
            .peers()
            .map(|(node, peer)| PeerStatus {
                node: Some(*node),
                addresses: peer.addresses().cloned().collect(),
                connected: peer.up_since.is_some(),
                through: peer.relay().filter(|_| peer.up_since.is_some()),
                up_for: peer.up_since.map(|since| now.saturating_duration_since(since)),
                rtt: peer.rtt,
                outbound: self.shared.outboxes.get(node).map(|o| o.length()).unwrap_or_default(),
                strikes: peer.strikes(),
                strikes_ever: peer.strikes_ever(),
                fault: peer.fault.clone(),
                refused_for: left(peer.refused_until()).filter(|left| !left.is_zero()),
                runs_twice: self.shared.twins.run_twice(node, now),
                last_error: peer.last_error.clone(),
                next_dial: left(peer.redial.next)
                    .filter(|_| !peer.is_connected() && !peer.redial.under_way),
            })
            .collect();
        peers.extend(book.nameless_seeds().map(|seed| PeerStatus {
            node: None,
            addresses: vec![seed.address.clone()],
            connected: false,
            through: None,
            up_for: None,
            rtt: None,
            outbound: QueueLength::default(),
            strikes: 0,
            strikes_ever: 0,
            fault: None,
            refused_for: None,
            runs_twice: false,
            last_error: seed.last_error.clone(),
            next_dial: left(seed.redial.next).filter(|_| !seed.redial.under_way),
        }));
        drop(book);
        peers.sort_by_key(|peer| (!peer.connected, peer.node.is_none(), peer.node));
        peers
    }

    /// Writes what is queued (for at most half a second), then stops. The inbox ends after it;
    /// other handles are dead.
    pub async fn shutdown(self) {
        let (stopped, stop) = oneshot::channel();
        if self.commands.send(Command::Shutdown(stopped)).await.is_ok() {
            // An error means that the task was gone before, which is as good.
            let _ = stop.await;
        }
    }
}
