//! The bytes of circuits: a node carries so many a second for all others together, and no more.
//!
//! Who sends through a circuit pays for it: after each read from one of its streams that peer waits
//! until the line of all peers has come to the end of its bytes. A peer has one place in that line
//! at a time, whatever the number of its circuits: so they share by turns, and one that sends
//! little waits for one read of each other peer at most. What waits is not read, and stays with its
//! sender: yamux gives no more window. Streams of this node's own links are not in it.
//!
//! libp2p's relay has a bound of bytes, too: it ends the circuit.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncWrite};
use libp2p::PeerId;
use libp2p::StreamProtocol;
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::relay::{HOP_PROTOCOL_NAME, STOP_PROTOCOL_NAME};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::limits::PACE_BURST;

/// The line of all peers.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes a second; 0 is without a bound.
    rate: u64,
    /// When all that was read so far is paid for.
    paid_at: Mutex<Instant>,
    /// As many as there are connections, and some that have ended.
    places: Mutex<HashMap<PeerId, Weak<Semaphore>>>,
    #[cfg(test)]
    lies: Lies,
}

/// One peer's place in the line.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pace: Arc<Pace>,
    /// Held by the one of its streams that waits in the line.
    turn: Arc<Semaphore>,
}

impl Pace {
    pub(crate) fn new(rate: u64) -> Pace {
        Pace {
            rate,
            paid_at: Mutex::new(Instant::now()),
            places: Mutex::default(),
            #[cfg(test)]
            lies: Lies::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn lying(self, lies: Lies) -> Pace {
        Pace { lies, ..self }
    }

    /// The place of a peer: the same for all of its connections.
    pub(crate) fn place(self: &Arc<Pace>, peer: PeerId) -> Place {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| place.strong_count() > 0);
        let known = places.get(&peer).and_then(Weak::upgrade);
        let turn = known.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
        places.insert(peer, Arc::downgrade(&turn));
        Place { pace: self.clone(), turn }
    }

    /// Goes to the end of the line with these bytes: when they are paid for.
    fn line_up(&self, bytes: usize, now: Instant) -> Instant {
        let costs = bytes as u128 * 1_000_000_000 / u128::from(self.rate.max(1));
        let costs = Duration::from_nanos(u64::try_from(costs).unwrap_or(u64::MAX));
        let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = now.checked_sub(PACE_BURST).unwrap_or(now);
        *paid_at = (*paid_at).max(saved) + costs;
        *paid_at
    }
}

impl Place {
    /// Pays for bytes that were read. `None`: done.
    fn pay(&self, bytes: usize) -> Option<BoxFuture<'static, ()>> {
        if self.pace.rate == 0 || bytes == 0 {
            return None;
        }
        let Ok(turn) = self.turn.clone().try_acquire_owned() else {
            let Place { pace, turn } = self.clone();
            return Some(Box::pin(async move {
                // It is never closed.
                let Ok(turn) = turn.acquire_owned().await else { return };
                wait(pace.line_up(bytes, Instant::now()), turn).await;
            }));
        };
        let now = Instant::now();
        let paid_at = self.pace.line_up(bytes, now);
        (paid_at > now).then(|| Box::pin(wait(paid_at, turn)) as BoxFuture<'static, ()>)
    }
}

async fn wait(until: Instant, turn: OwnedSemaphorePermit) {
    sleep_until(until).await;
    drop(turn);
}

/// What the relay of a test does to the bytes that it carries.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lie {
    #[default]
    None,
    /// One bit of each read is another.
    Changes,
    /// The second half of each read comes before the first.
    Reorders,
    /// The first half of each read comes twice.
    Repeats,
    /// All comes much later.
    Delays,
}

/// A lie that is told from some moment on.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Lies(pub(crate) Arc<Mutex<Lie>>);

#[cfg(test)]
impl Lies {
    /// `Some`: nothing is heard before.
    fn tell(&self, read: &mut [u8]) -> Option<BoxFuture<'static, ()>> {
        let half = read.len() / 2;
        match *self.0.lock().unwrap() {
            Lie::None => {}
            Lie::Changes => read.iter_mut().take(1).for_each(|byte| *byte ^= 1),
            Lie::Reorders => read.rotate_left(half),
            Lie::Repeats => read.copy_within(..half, half),
            Lie::Delays => return Some(Box::pin(tokio::time::sleep(Duration::from_secs(60)))),
        }
        None
    }
}

/// The streams of one connection, of which those that are circuits keep the pace.
pub(crate) struct Paced<M> {
    streams: M,
    place: Place,
}

impl<M> Paced<M> {
    pub(crate) fn new(streams: M, place: Place) -> Paced<M> {
        Paced { streams, place }
    }
}

impl<M: StreamMuxer + Unpin> StreamMuxer for Paced<M>
where
    M::Substream: Unpin,
{
    type Substream = PacedStream<M::Substream>;
    type Error = M::Error;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, M::Error>> {
        let stream = ready!(Pin::new(&mut self.streams).poll_inbound(cx))?;
        // The other end asks for a circuit on it, and sends over it what it has to say.
        Poll::Ready(Ok(PacedStream::new(stream, HOP_PROTOCOL_NAME, &self.place)))
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, M::Error>> {
        let stream = ready!(Pin::new(&mut self.streams).poll_outbound(cx))?;
        Poll::Ready(Ok(PacedStream::new(stream, STOP_PROTOCOL_NAME, &self.place)))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        Pin::new(&mut self.streams).poll_close(cx)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StreamMuxerEvent, M::Error>> {
        Pin::new(&mut self.streams).poll(cx)
    }
}

/// What a stream is used for.
#[derive(Debug)]
enum Use {
    /// Not known yet.
    Unknown(Negotiated),
    Circuit(Place),
    Other,
}

/// One stream.
pub(crate) struct PacedStream<S> {
    stream: S,
    is: Use,
    paying: Option<BoxFuture<'static, ()>>,
}

impl<S> PacedStream<S> {
    fn new(stream: S, circuit: StreamProtocol, place: &Place) -> PacedStream<S> {
        let is = Use::Unknown(Negotiated::new(circuit, place.clone()));
        PacedStream { stream, is, paying: None }
    }
}

/// The protocol of a stream, found in what this node itself writes on it: whatever the other end
/// says before, its circuit begins when we have named the protocol.
#[derive(Debug)]
struct Negotiated {
    circuit: StreamProtocol,
    place: Place,
    /// The beginning of the message that is being written: its length, and as much of it as a name
    /// has.
    message: Vec<u8>,
    /// Bytes of it that are still to come, and are not looked at.
    skipped: usize,
}

/// The messages of multistream-select that choose nothing: its own name, and "not that one".
const CHOOSES_NOTHING: [&[u8]; 2] = [b"/multistream/1.0.0\n", b"na\n"];

impl Negotiated {
    fn new(circuit: StreamProtocol, place: Place) -> Negotiated {
        Negotiated { circuit, place, message: Vec::new(), skipped: 0 }
    }

    /// Reads on what was written. `Some`: whether the stream is a circuit.
    fn wrote(&mut self, bytes: &[u8]) -> Option<bool> {
        for byte in bytes {
            if self.skipped > 0 {
                self.skipped -= 1;
                continue;
            }
            self.message.push(*byte);
            let (length, header) = match *self.message {
                [low] if low < 0x80 => (usize::from(low), 1),
                [_] => continue,
                [low, ..] if low < 0x80 => (usize::from(low), 1),
                [low, high, ..] => (usize::from(low & 0x7f) | usize::from(high) << 7, 2),
                [] => continue,
            };
            let named = &self.message[header..];
            // A list of all protocols, which somebody may ask for, is no choice. It begins with a
            // length, and none of ours is that of a slash.
            if !named.is_empty() && !named.starts_with(b"/") && !named.starts_with(b"n") {
                self.skipped = length - named.len();
                self.message.clear();
            } else if named.len() == length {
                let named = named.strip_suffix(b"\n").unwrap_or_default();
                let chooses =
                    !CHOOSES_NOTHING.iter().any(|it| it.strip_suffix(b"\n") == Some(named));
                if chooses {
                    return Some(named == self.circuit.as_ref().as_bytes());
                }
                self.message.clear();
            }
        }
        None
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(paying) = &mut this.paying {
            ready!(paying.as_mut().poll(cx));
            this.paying = None;
        }
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        if let Use::Circuit(place) = &this.is {
            this.paying = place.pay(read);
            #[cfg(test)]
            if let Some(silence) = place.pace.lies.tell(&mut buffer[..read]) {
                this.paying = Some(silence);
            }
        }
        Poll::Ready(Ok(read))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let wrote = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        if let Use::Unknown(negotiated) = &mut this.is {
            match negotiated.wrote(&bytes[..wrote]) {
                Some(true) => this.is = Use::Circuit(negotiated.place.clone()),
                Some(false) => this.is = Use::Other,
                None => {}
            }
        }
        Poll::Ready(Ok(wrote))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Arc::new(Pace::new(1)).place(PeerId::random())
    }

    #[test]
    fn what_a_stream_is_for_is_read_in_what_this_node_writes() {
        let message = |text: &str| {
            let mut message = match u8::try_from(text.len()) {
                Ok(length) if length < 0x80 => vec![length],
                _ => vec![(text.len() & 0x7f) as u8 | 0x80, (text.len() >> 7) as u8],
            };
            message.extend_from_slice(text.as_bytes());
            message
        };
        let (hello, no) = (message("/multistream/1.0.0\n"), message("na\n"));
        let hop = message(&format!("{HOP_PROTOCOL_NAME}\n"));
        let other = message("/clawmesh/echo/1\n");
        // All that is spoken here, as it is told to one who asks for it.
        let list =
            message(&format!("{}{}\n", "\x2e/a/circuit/relay\n".repeat(20), hop.escape_ascii()));
        let cases: [(Vec<&[u8]>, Option<bool>); 6] = [
            (vec![&hello, &hop], Some(true)),
            (vec![&hello, &no, &no, &list, &no, &hop, &other], Some(true)),
            (vec![&hello, &other, &hop], Some(false)),
            (vec![&hello, &no], None),
            (vec![&hop[..10]], None),
            (vec![b"\x00"], Some(false)),
        ];
        for (said, is) in cases {
            let said = said.concat();
            for step in [1, 3, said.len()] {
                let mut read = Negotiated::new(HOP_PROTOCOL_NAME, place());
                let found = said.chunks(step).find_map(|bytes| read.wrote(bytes));
                assert_eq!(found, is, "{} by {step}", said.escape_ascii());
            }
        }
    }

    #[test]
    fn the_line_moves_on_at_the_pace_and_saves_little_of_it() {
        let pace = Pace::new(1_000_000);
        let now = Instant::now() + Duration::from_secs(1);
        let second = |of: u32| Duration::from_secs(1) / of;
        assert_eq!(pace.line_up(100_000, now), now - PACE_BURST + second(10));
        assert_eq!(pace.line_up(500_000, now), now + second(2));
        assert_eq!(pace.line_up(250_000, now), now + second(2) + second(4));
        let later = now + Duration::from_secs(100);
        assert_eq!(pace.line_up(200_000, later), later - PACE_BURST + second(5));
    }

    #[tokio::test]
    async fn a_peer_has_one_place_for_all_that_it_sends() {
        let pace = Arc::new(Pace::new(1));
        let (a, b) = (PeerId::random(), PeerId::random());
        let (first, again, other) = (pace.place(a), pace.place(a), pace.place(b));
        let _waits = first.pay(1_000).expect("it has to wait");
        let before = *pace.paid_at.lock().unwrap();
        let _behind_it = again.pay(1_000).expect("its own turn is not over");
        assert_eq!(*pace.paid_at.lock().unwrap(), before, "it is not in the line");
        let _beside_it = other.pay(1_000).expect("it has to wait");
        assert!(*pace.paid_at.lock().unwrap() > before);
        drop((first, again, other));
        assert!(Arc::new(Pace::new(0)).place(a).pay(usize::MAX).is_none());
        pace.place(b);
        assert_eq!(pace.places.lock().unwrap().len(), 2, "those that wait, and no more");
    }
}
