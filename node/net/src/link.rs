//! The link to one peer: a task that keeps one frame stream open while there is a connection, and
//! tells the owner `Up` and `Down`.
//!
//! A session is one stream, used in both directions, which the node with the lower id opens (with a
//! stream of each side's own, the two sides can restart each other for ever, each closing the half
//! that the other has just opened). It is up when the other side has accepted it. When it ends, it
//! ends for both, and both owners see a `Down` and a new `Up`. The task may wait for the owner's
//! inbox (that is the back pressure); the swarm task never does.
//!
//! A session goes on over another stream when there is a better connection (`link/source.rs`): the
//! owners see nothing of it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use libp2p::swarm::ConnectionId;
use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{Control, OpenStreamError};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::announcement::{Malformed, Record};
use crate::backoff::Backoff;
use crate::frames::FrameError;
use crate::identity::NodeId;
use crate::inbox::{Allowance, InboxSender, Incoming};
use crate::limits::{
    FRAME_WITHIN, LINK_STREAMS_MAX, PEER_FRAME_BYTES, PEER_FRAMES_MAX, PEER_GOSSIP_BYTES,
    PEER_GOSSIP_MAX, REOPEN_MAX, REOPEN_MIN,
};
use crate::outbox::Outbox;

mod exchange;
mod source;

use exchange::{Reader, exchange};
use source::Source;

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/clawmesh/frames/4");

const REOPEN: Backoff = Backoff { min: REOPEN_MIN, max: REOPEN_MAX };

/// Which side of a link we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Opener,
    Acceptor,
}

impl Role {
    pub(crate) fn of(me: &NodeId, peer: &NodeId) -> Role {
        if me < peer { Role::Opener } else { Role::Acceptor }
    }
}

/// Is there a connection to open streams on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Yes.
    Open {
        /// Another one here means that those before it are dead, and streams over them have ended.
        since: ConnectionId,
        /// Another one here means that a better one is there: streams are to go on over it.
        now: ConnectionId,
    },
    Gone,
}

impl Connection {
    /// Since this one, everything goes over it.
    pub(crate) fn over(connection: ConnectionId) -> Connection {
        Connection::Open { since: connection, now: connection }
    }

    fn is_open(&self) -> bool {
        self.since().is_some()
    }

    fn since(&self) -> Option<ConnectionId> {
        match self {
            Connection::Open { since, .. } => Some(*since),
            Connection::Gone => None,
        }
    }

    fn now(&self) -> Option<ConnectionId> {
        match self {
            Connection::Open { now, .. } => Some(*now),
            Connection::Gone => None,
        }
    }
}

/// The swarm task's end of a link. Dropping it ends the link, after its `Down`.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: watch::Sender<Connection>,
    /// The announcement for the peer; only the latest matters.
    pub(crate) announcement: watch::Sender<Bytes>,
    /// Streams the peer opened; only for an acceptor.
    pub(crate) streams: mpsc::Sender<Stream>,
    pub(crate) outbox: Arc<Outbox>,
    /// How much gossip that the peer passed on the owner may have at once.
    pub(crate) gossip: Allowance,
}

/// An event of a link for the swarm task.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    Up,
    Down,
    /// Nothing is said over the connection before any more, and all that was has been read.
    Moved,
    /// The peer's announcement.
    Announced(Vec<Record>),
    /// The streams could not be opened or broke.
    Failed(String),
    /// The peer broke the protocol.
    Violated(String),
    /// The peer did what a broken network can look like, too.
    Dubious(String),
}

/// The tools of a link.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) node: NodeId,
    pub(crate) peer: PeerId,
    pub(crate) role: Role,
    pub(crate) control: ControlHandle,
    pub(crate) inbox: InboxSender,
    pub(crate) events: mpsc::Sender<(NodeId, LinkEvent)>,
}

/// [`Control`] has no `Debug`.
pub(crate) struct ControlHandle(pub(crate) Control);

impl std::fmt::Debug for ControlHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Control")
    }
}

/// Starts the task of a link.
pub(crate) fn spawn(ends: Ends) -> Link {
    let (connection, connection_seen) = watch::channel(Connection::Gone);
    let (announcement, announcement_seen) = watch::channel(Bytes::new());
    let (streams, arrivals) = mpsc::channel(LINK_STREAMS_MAX);
    let outbox = Arc::new(Outbox::default());
    let task = LinkTask {
        node: ends.node,
        source: Source::new(ends.role, ends.peer, ends.control.0, arrivals),
        connection: connection_seen,
        announcement: announcement_seen,
        outbox: outbox.clone(),
        inbox: ends.inbox,
        // One for all sessions: a peer that connects anew has not more of it.
        frames: Allowance::new(PEER_FRAMES_MAX, PEER_FRAME_BYTES),
        events: ends.events,
    };
    tokio::spawn(task.run());
    let gossip = Allowance::new(PEER_GOSSIP_MAX, PEER_GOSSIP_BYTES);
    Link { connection, announcement, streams, outbox, gossip }
}

struct LinkTask {
    node: NodeId,
    source: Source,
    connection: watch::Receiver<Connection>,
    announcement: watch::Receiver<Bytes>,
    outbox: Arc<Outbox>,
    inbox: InboxSender,
    frames: Allowance,
    events: mpsc::Sender<(NodeId, LinkEvent)>,
}

/// The network or the owner is gone: the link ends.
struct Over;

/// Why a session ended or never began.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the connection is gone")]
    Disconnected,
    #[error("the peer opened its stream anew")]
    Replaced,
    #[error("the peer closed its stream")]
    Closed,
    #[error("the frame stream broke: {0}")]
    Io(#[from] io::Error),
    #[error("open a frame stream: {0}")]
    Open(#[from] OpenStreamError),
    #[error("open a frame stream: the peer does not answer")]
    TimedOut,
    #[error("open a frame stream: the peer's answer is none")]
    Garbled,
    #[error("a frame that has begun is not there after {FRAME_WITHIN:?}")]
    Slow,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Announcement(#[from] Malformed),
    #[error("the network has stopped")]
    Stopped,
}

impl LinkTask {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            let Ok(over) =
                self.connection.wait_for(Connection::is_open).await.map(|connection| *connection)
            else {
                return;
            };
            let began = Instant::now();
            match self.session(over).await {
                Ok(Reached::Opening) => failures += 1,
                // A session that breaks at once is no success either.
                Ok(Reached::Up) if began.elapsed() < REOPEN_MAX => failures += 1,
                Ok(Reached::Up) => failures = 1,
                Err(Over) => return,
            }
            if self.source.is_acceptor() {
                // The opener is the one who waits.
                continue;
            }
            tokio::select! {
                () = sleep(REOPEN.after(failures)) => {}
                other = self.connection.wait_for(|connection| connection.since() != over.since()) => {
                    if other.is_err() {
                        return;
                    }
                    failures = 0;
                }
            }
        }
    }

    /// One stream, from opening to breaking.
    async fn session(&mut self, over: Connection) -> Result<Reached, Over> {
        let opened = tokio::select! {
            opened = self.source.next() => opened,
            () = disconnected(&mut self.connection, over) => Err(Broken::Disconnected),
        };
        let stream = match opened {
            Ok(stream) => stream,
            Err(why) => {
                self.report(why).await?;
                return Ok(Reached::Opening);
            }
        };
        self.outbox.open();
        self.tell(LinkEvent::Up).await?;
        self.inbox.put(Incoming::Up(self.node)).await.map_err(|_| Over)?;
        let why = self.exchange(stream, over).await;
        self.outbox.close();
        self.tell(LinkEvent::Down).await?;
        self.inbox.put(Incoming::Down(self.node)).await.map_err(|_| Over)?;
        self.report(why).await?;
        Ok(Reached::Up)
    }

    /// Both directions at once, until one of them ends.
    async fn exchange(&mut self, stream: Stream, over: Connection) -> Broken {
        let reader = Reader::new(self.node, &self.inbox, &self.frames, &self.events);
        let mut better = self.connection.clone();
        let (next, after) = exchange::next();
        let teller = (self.node, &self.events);
        let exchanged = exchange(stream, reader, &self.outbox, &mut self.announcement, after);
        tokio::select! {
            why = exchanged => why,
            why = self.source.moves(next, &mut better, over.now(), teller) => why,
            () = disconnected(&mut self.connection, over) => Broken::Disconnected,
        }
    }

    async fn report(&mut self, why: Broken) -> Result<(), Over> {
        let text = why.to_string();
        match why {
            Broken::Disconnected | Broken::Replaced => Ok(()),
            Broken::Closed | Broken::Io(_) | Broken::Open(_) | Broken::TimedOut => {
                self.tell(LinkEvent::Failed(text)).await
            }
            Broken::Slow => self.tell(LinkEvent::Dubious(text)).await,
            Broken::Frame(_) | Broken::Announcement(_) | Broken::Garbled => {
                self.tell(LinkEvent::Violated(text)).await
            }
            Broken::Stopped => Err(Over),
        }
    }

    async fn tell(&mut self, event: LinkEvent) -> Result<(), Over> {
        self.events.send((self.node, event)).await.map_err(|_| Over)
    }
}

/// How far a session came.
enum Reached {
    Opening,
    Up,
}

/// Also when the swarm task has dropped the link.
async fn disconnected(connection: &mut watch::Receiver<Connection>, from: Connection) {
    // An error means that the link was dropped, which ends the session as well; `run` sees it next.
    let _ = connection.wait_for(|connection| connection.since() != from.since()).await;
}
