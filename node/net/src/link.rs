//! The link to one peer: a task that keeps one frame stream open while there is a connection, and
//! tells the owner `Up` and `Down`.
//!
//! A session is one stream, used in both directions, which the node with the lower id opens (with a
//! stream of each side's own, the two sides can restart each other for ever, each closing the half
//! that the other has just opened). It is up when the other side has accepted it. When it ends, it
//! ends for both, and both owners see a `Down` and a new `Up`. The task may wait for the owner's
//! inbox (that is the back pressure); the swarm task never does.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::swarm::ConnectionId;
use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{Control, OpenStreamError};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::announcement::{self, Malformed, Record};
use crate::backoff::Backoff;
use crate::frames::{self, ACCEPTED, FrameError, Tag};
use crate::identity::NodeId;
use crate::inbox::{Allowance, InboxSender, Incoming};
use crate::limits::{
    ANNOUNCEMENT_WINDOW, ANNOUNCEMENTS_MAX, COALESCE_BYTES, FRAME_WITHIN, LINK_STREAMS_MAX,
    OPEN_TIMEOUT, PEER_FRAME_BYTES, PEER_FRAMES_MAX, PEER_GOSSIP_BYTES, PEER_GOSSIP_MAX,
    READ_BYTES, REOPEN_MAX, REOPEN_MIN,
};
use crate::outbox::Outbox;

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/clawmesh/frames/3");

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
    /// Yes: since this one. Another one here means that those before it are dead, and streams over
    /// them have ended.
    Open(ConnectionId),
    Gone,
}

impl Connection {
    fn is_open(&self) -> bool {
        matches!(self, Connection::Open(_))
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
        source: Source {
            role: ends.role,
            peer: ends.peer,
            control: ends.control.0,
            arrivals,
            arrived: None,
        },
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
            if self.source.role == Role::Acceptor {
                // The opener is the one who waits.
                continue;
            }
            tokio::select! {
                () = sleep(REOPEN.after(failures)) => {}
                other = self.connection.wait_for(|connection| *connection != over) => {
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
        let (incoming, outgoing) = stream.split();
        let reader = Reader::new(self.node, &self.inbox, &self.frames, &self.events);
        tokio::select! {
            why = reader.run(incoming) => why,
            why = write(outgoing, &self.outbox, &mut self.announcement) => why,
            why = self.source.replaced() => why,
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
            Broken::Frame(_) | Broken::Announcement(_) => {
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
    let _ = connection.wait_for(|connection| *connection != from).await;
}

/// Opens or accepts streams.
struct Source {
    role: Role,
    peer: PeerId,
    control: Control,
    arrivals: mpsc::Receiver<Stream>,
    /// A stream that ended the session before, and belongs to the next.
    arrived: Option<Stream>,
}

impl Source {
    /// A stream that both sides have in their hands.
    async fn next(&mut self) -> Result<Stream, Broken> {
        match self.role {
            Role::Opener => {
                timeout(OPEN_TIMEOUT, self.open()).await.unwrap_or(Err(Broken::TimedOut))
            }
            Role::Acceptor => self.accept().await,
        }
    }

    async fn open(&mut self) -> Result<Stream, Broken> {
        let mut stream = self.control.open_stream(self.peer, PROTOCOL).await?;
        let mut answer = [0];
        // libp2p-stream drops streams that arrive faster than they are fetched; the byte says that
        // it did not.
        stream.read_exact(&mut answer).await?;
        Ok(stream)
    }

    async fn accept(&mut self) -> Result<Stream, Broken> {
        let mut stream = match self.arrived.take() {
            Some(stream) => stream,
            None => self.arrivals.recv().await.ok_or(Broken::Stopped)?,
        };
        // If the opener gave up and began anew, only its last stream is alive.
        while let Ok(newer) = self.arrivals.try_recv() {
            stream = newer;
        }
        stream.write_all(&[ACCEPTED]).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// Resolves when the opener opens another stream: it has given up the one before.
    async fn replaced(&mut self) -> Broken {
        match (self.role, self.arrivals.recv().await) {
            (Role::Acceptor, Some(stream)) => {
                self.arrived = Some(stream);
                Broken::Replaced
            }
            // The swarm task gives no streams to an opener.
            (Role::Opener, Some(_)) => Broken::Replaced,
            (Role::Acceptor | Role::Opener, None) => Broken::Stopped,
        }
    }
}

async fn write(
    mut stream: impl AsyncWrite + Unpin,
    outbox: &Outbox,
    announcement: &mut watch::Receiver<Bytes>,
) -> Broken {
    loop {
        let (tag, payloads) = tokio::select! {
            payloads = outbox.take() => (Tag::User, payloads),
            changed = announcement.changed() => {
                if changed.is_err() {
                    return Broken::Stopped;
                }
                (Tag::Announcement, vec![announcement.borrow_and_update().clone()])
            }
        };
        if let Err(error) = write_frames(&mut stream, tag, payloads).await {
            return Broken::Io(error);
        }
    }
}

/// Small frames go out in one write; large ones are not copied for it.
async fn write_frames(
    stream: &mut (impl AsyncWrite + Unpin),
    tag: Tag,
    payloads: Vec<Bytes>,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    for payload in payloads {
        frames::put_header(&mut buffer, tag, payload.len());
        if payload.len() < COALESCE_BYTES {
            buffer.extend_from_slice(&payload);
        } else {
            stream.write_all(&buffer).await?;
            buffer.clear();
            stream.write_all(&payload).await?;
        }
    }
    stream.write_all(&buffer).await?;
    stream.flush().await
}

/// Reads the peer's stream into the inbox.
struct Reader<'a> {
    node: NodeId,
    inbox: &'a InboxSender,
    frames: &'a Allowance,
    events: &'a mpsc::Sender<(NodeId, LinkEvent)>,
    announcements: u32,
    announcements_since: Instant,
}

impl<'a> Reader<'a> {
    fn new(
        node: NodeId,
        inbox: &'a InboxSender,
        frames: &'a Allowance,
        events: &'a mpsc::Sender<(NodeId, LinkEvent)>,
    ) -> Reader<'a> {
        let announcements_since = Instant::now();
        Reader { node, inbox, frames, events, announcements: 0, announcements_since }
    }

    async fn run(mut self, mut stream: impl AsyncRead + Unpin) -> Broken {
        let mut buffer = BytesMut::new();
        let mut whole = Box::pin(sleep(FRAME_WITHIN));
        loop {
            let filled = buffer.len();
            if filled == 0 {
                // Given back: a large frame was in it.
                buffer = BytesMut::new();
            }
            buffer.resize(filled + READ_BYTES, 0);
            let read = tokio::select! {
                read = stream.read(&mut buffer[filled..]) => read,
                () = &mut whole, if filled > 0 => return Broken::Slow,
            };
            let read = match read {
                Ok(0) => return Broken::Closed,
                Ok(read) => read,
                Err(error) => return Broken::Io(error),
            };
            buffer.truncate(filled + read);
            if filled == 0 {
                whole.as_mut().reset(tokio::time::Instant::now() + FRAME_WITHIN);
            }
            loop {
                match frames::take_frame(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some((tag, payload))) => {
                        if let Err(why) = self.take(tag, payload).await {
                            return why;
                        }
                        // The time that we took is not the peer's.
                        whole.as_mut().reset(tokio::time::Instant::now() + FRAME_WITHIN);
                    }
                    Err(error) => return Broken::Frame(error),
                }
            }
        }
    }

    async fn take(&mut self, tag: Tag, payload: Bytes) -> Result<(), Broken> {
        match tag {
            Tag::User => self
                .inbox
                .put_frame(self.node, payload, self.frames)
                .await
                .map_err(|_| Broken::Stopped),
            Tag::Announcement => {
                if self.announcements_since.elapsed() > ANNOUNCEMENT_WINDOW {
                    self.announcements_since = Instant::now();
                    self.announcements = 0;
                }
                self.announcements += 1;
                if self.announcements > ANNOUNCEMENTS_MAX {
                    return Ok(());
                }
                let event = LinkEvent::Announced(announcement::decode(payload)?);
                self.events.send((self.node, event)).await.map_err(|_| Broken::Stopped)
            }
        }
    }
}
