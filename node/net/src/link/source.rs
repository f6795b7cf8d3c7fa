//! The streams of a link: opened by one side and accepted by the other, one for each session, and
//! more when a session goes on over a better connection.

use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::swarm::ConnectionId;
use libp2p::{PeerId, Stream};
use libp2p_stream::Control;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::exchange::Next;
use super::{Broken, Connection, LinkEvent, PROTOCOL, Role};
use crate::frames::Opening;
use crate::identity::NodeId;
use crate::limits::{MOVE_AGAIN_AFTER, OPEN_TIMEOUT};

/// Opens or accepts streams.
pub(super) struct Source {
    role: Role,
    peer: PeerId,
    control: Control,
    arrivals: mpsc::Receiver<Stream>,
    /// A stream that ended the session before, and belongs to the next.
    arrived: Option<Stream>,
}

impl Source {
    pub(super) fn new(
        role: Role,
        peer: PeerId,
        control: Control,
        arrivals: mpsc::Receiver<Stream>,
    ) -> Source {
        Source { role, peer, control, arrivals, arrived: None }
    }

    pub(super) fn is_acceptor(&self) -> bool {
        self.role == Role::Acceptor
    }

    /// A stream for a new session, which both sides have in their hands.
    pub(super) async fn next(&mut self) -> Result<Stream, Broken> {
        match self.role {
            Role::Opener => match self.arrived.take() {
                Some(stream) => Ok(stream),
                None => self.open(Opening::Anew).await.map(|(stream, _)| stream),
            },
            Role::Acceptor => self.accept().await,
        }
    }

    /// A stream, and what the acceptor takes it for.
    async fn open(&mut self, opening: Opening) -> Result<(Stream, Opening), Broken> {
        let opened = async {
            let mut stream = self.control.open_stream(self.peer, PROTOCOL).await?;
            stream.write_all(&[opening.byte()]).await?;
            stream.flush().await?;
            // libp2p-stream drops streams that arrive faster than they are fetched; the byte says
            // that it did not.
            let mut answer = [0];
            stream.read_exact(&mut answer).await?;
            let answer = Opening::from_byte(answer[0]).ok_or(Broken::Garbled)?;
            Ok((stream, answer))
        };
        timeout(OPEN_TIMEOUT, opened).await.unwrap_or(Err(Broken::TimedOut))
    }

    async fn accept(&mut self) -> Result<Stream, Broken> {
        let mut stream = match self.arrived.take() {
            Some(stream) => stream,
            None => self.arrival().await?.0,
        };
        // If the opener gave up and began anew, only its last stream is alive.
        while !self.arrivals.is_empty() {
            stream = self.arrival().await?.0;
        }
        answer(&mut stream, Opening::Anew).await?;
        Ok(stream)
    }

    /// The stream that the opener has opened last, and what for.
    async fn arrival(&mut self) -> Result<(Stream, Opening), Broken> {
        let mut stream = self.arrivals.recv().await.ok_or(Broken::Stopped)?;
        loop {
            let mut opening = [0];
            let said = tokio::select! {
                said = timeout(OPEN_TIMEOUT, stream.read_exact(&mut opening)) => said,
                newer = self.arrivals.recv() => {
                    stream = newer.ok_or(Broken::Stopped)?;
                    continue;
                }
            };
            match (said, Opening::from_byte(opening[0])) {
                (Ok(Ok(())), Some(opening)) => return Ok((stream, opening)),
                // It is none, and the opener opens another.
                (Ok(Ok(())), None) | (Ok(Err(_)) | Err(_), _) => {
                    stream = self.arrivals.recv().await.ok_or(Broken::Stopped)?;
                }
            }
        }
    }

    /// Has a session that is open go on over better connections, as they come, and tells each time
    /// when nothing is left in the one before. Ends when the session has to.
    pub(super) async fn moves(
        &mut self,
        mut next: Next<Stream>,
        connection: &mut watch::Receiver<Connection>,
        mut over: Option<ConnectionId>,
        (node, events): (NodeId, &mpsc::Sender<(NodeId, LinkEvent)>),
    ) -> Broken {
        loop {
            let gone_on = match self.role {
                Role::Opener => self.move_on(&mut next, connection, &mut over).await,
                Role::Acceptor => self.follow(&mut next).await,
            };
            match gone_on {
                Err(why) => return why,
                Ok(()) if self.role == Role::Opener => {
                    if events.send((node, LinkEvent::Moved)).await.is_err() {
                        return Broken::Stopped;
                    }
                }
                Ok(()) => {}
            }
        }
    }

    /// The opener's part.
    async fn move_on(
        &mut self,
        next: &mut Next<Stream>,
        connection: &mut watch::Receiver<Connection>,
        over: &mut Option<ConnectionId>,
    ) -> Result<(), Broken> {
        let (stream, answer) = loop {
            let better = connection
                .wait_for(|connection| connection.now().is_some_and(|now| Some(now) != *over));
            let better = better.await.map_err(|_| Broken::Stopped)?.now();
            match self.open(Opening::GoesOn).await {
                Ok(opened) => {
                    *over = better;
                    break opened;
                }
                Err(Broken::Stopped) => return Err(Broken::Stopped),
                // Nothing has moved: the session is whole, over the connection that it has.
                Err(_) => sleep(MOVE_AGAIN_AFTER).await,
            }
        };
        match answer {
            Opening::GoesOn => {}
            Opening::Anew => {
                self.arrived = Some(stream);
                return Err(Broken::Replaced);
            }
        }
        let (to_read, to_write) = stream.split();
        next.to_read.send(to_read).await.map_err(|_| Broken::Stopped)?;
        next.to_write.send(to_write).await.map_err(|_| Broken::Stopped)?;
        next.ended.recv().await.ok_or(Broken::Stopped)
    }

    /// The acceptor's part: it ends what it says on the stream before when it has read that to its
    /// end.
    async fn follow(&mut self, next: &mut Next<Stream>) -> Result<(), Broken> {
        let (mut stream, opening) = self.arrival().await?;
        if opening == Opening::Anew {
            self.arrived = Some(stream);
            return Err(Broken::Replaced);
        }
        answer(&mut stream, Opening::GoesOn).await?;
        let (to_read, to_write) = stream.split();
        next.to_read.send(to_read).await.map_err(|_| Broken::Stopped)?;
        tokio::select! {
            ended = next.ended.recv() => ended.ok_or(Broken::Stopped)?,
            // The opener has given up on all of it, or keeps no rule.
            arrival = self.arrival() => {
                self.arrived = Some(arrival?.0);
                return Err(Broken::Replaced);
            }
        }
        next.to_write.send(to_write).await.map_err(|_| Broken::Stopped)
    }
}

/// The acceptor's byte.
async fn answer(stream: &mut Stream, opening: Opening) -> Result<(), Broken> {
    let answered = async {
        stream.write_all(&[opening.byte()]).await?;
        stream.flush().await
    };
    timeout(OPEN_TIMEOUT, answered).await.map_err(|_| Broken::TimedOut)?.map_err(Broken::Io)
}
