//! Frames of one session, both ways, over one stream after the other.

use std::io;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::io::{ReadHalf, WriteHalf};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::{Broken, LinkEvent};
use crate::announcement;
use crate::frames::{self, FrameError, Tag};
use crate::identity::NodeId;
use crate::inbox::{Allowance, InboxSender};
use crate::limits::{
    ANNOUNCEMENT_WINDOW, ANNOUNCEMENTS_MAX, COALESCE_BYTES, FRAME_WITHIN, READ_BYTES,
};
use crate::outbox::Outbox;

/// The streams that a session goes on with, one after the other, and when one has come to its end.
pub(super) struct Next<S> {
    pub(super) to_read: mpsc::Sender<ReadHalf<S>>,
    pub(super) to_write: mpsc::Sender<WriteHalf<S>>,
    /// The stream before has been read to its end.
    pub(super) ended: mpsc::Receiver<()>,
}

/// The other ends of [`Next`].
pub(super) struct After<S> {
    to_read: mpsc::Receiver<ReadHalf<S>>,
    to_write: mpsc::Receiver<WriteHalf<S>>,
    ends: mpsc::Sender<()>,
}

pub(super) fn next<S>() -> (Next<S>, After<S>) {
    let (to_read, read_next) = mpsc::channel(1);
    let (to_write, write_next) = mpsc::channel(1);
    let (ends, ended) = mpsc::channel(1);
    let after = After { to_read: read_next, to_write: write_next, ends };
    (Next { to_read, to_write, ended }, after)
}

/// Both directions of a session, until one of them breaks; over `stream`, and the streams after it.
pub(super) async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    reader: Reader<'_>,
    outbox: &Outbox,
    announcement: &mut watch::Receiver<Bytes>,
    after: After<S>,
) -> Broken {
    let (incoming, outgoing) = stream.split();
    tokio::select! {
        why = reader.run(incoming, after.to_read, after.ends) => why,
        why = write(outgoing, outbox, announcement, after.to_write) => why,
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut stream: W,
    outbox: &Outbox,
    announcement: &mut watch::Receiver<Bytes>,
    mut next: mpsc::Receiver<W>,
) -> Broken {
    loop {
        let (tag, payloads) = tokio::select! {
            Some(other) = next.recv() => {
                let last = write_frames(&mut stream, Tag::Moved, vec![Bytes::new()]).await;
                if let Err(error) = last {
                    return Broken::Io(error);
                }
                stream = other;
                continue;
            }
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
pub(super) struct Reader<'a> {
    node: NodeId,
    inbox: &'a InboxSender,
    frames: &'a Allowance,
    events: &'a mpsc::Sender<(NodeId, LinkEvent)>,
    announcements: u32,
    announcements_since: Instant,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        node: NodeId,
        inbox: &'a InboxSender,
        frames: &'a Allowance,
        events: &'a mpsc::Sender<(NodeId, LinkEvent)>,
    ) -> Reader<'a> {
        let announcements_since = Instant::now();
        Reader { node, inbox, frames, events, announcements: 0, announcements_since }
    }

    async fn run<R: AsyncRead + Unpin>(
        mut self,
        mut stream: R,
        mut next: mpsc::Receiver<R>,
        ends: mpsc::Sender<()>,
    ) -> Broken {
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
                    Ok(Some((Tag::Moved, _))) => {
                        if !buffer.is_empty() {
                            return Broken::Frame(FrameError::AfterTheLast);
                        }
                        // Both sides have it in their hands before one says this.
                        match timeout(FRAME_WITHIN, next.recv()).await {
                            Ok(Some(other)) => stream = other,
                            Ok(None) => return Broken::Stopped,
                            Err(_) => return Broken::Slow,
                        }
                        // Nobody waits for it if the session ends.
                        let _ = ends.send(()).await;
                    }
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
            // It is not given here.
            Tag::Moved => Ok(()),
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
