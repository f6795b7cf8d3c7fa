//! A peer without manners, to test others with: it has the mesh's secret and a key, speaks libp2p,
//! and keeps no rule.
//!
//! It sends all that it is told to send, whatever [`crate::limits`] say; it checks nothing and answers
//! no frame. It is the same stack otherwise, so that whoever it meets takes it for a node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::swarm::SwarmEvent;
use libp2p::{Stream, Swarm};
use libp2p_stream::{Control, IncomingStreams};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::address::{Address, PeerAddress, address_in, multiaddr_of};
use crate::announcement::{self, Record};
use crate::behaviour::{self, Behaviour, VERSION};
use crate::circuit;
use crate::frames::{self, LENGTH_BYTES, Tag, take_frame};
use crate::identity::{NodeId, node_of, peer_of};
use crate::keys::Keys;
use crate::link::{PROTOCOL, Role};
use crate::machine::Here;
use crate::settings::{Settings, StartError};
use crate::twins::Twins;

/// How long whatever it meets may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts to connect: not so often that the connecting is the attack.
const AGAIN: Duration = Duration::from_millis(500);
/// Orders that it has not carried out yet: more waits, so that a flood is as fast as the stack is.
const ORDERS_MAX: usize = 256;

/// See the module. It ends when it is dropped.
#[derive(Debug)]
pub struct Rogue {
    me: NodeId,
    control: Opening,
    orders: mpsc::Sender<Order>,
    met: watch::Receiver<Vec<NodeId>>,
    bound: watch::Receiver<Option<SocketAddr>>,
}

/// [`Control`] has no `Debug`.
#[derive(Clone)]
struct Opening(Control);

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening")
    }
}

#[derive(Debug)]
enum Order {
    Gossip(u16, Bytes),
    Flap(u16),
}

/// A frame stream, bytes as they are.
pub struct RawStream(Stream);

impl std::fmt::Debug for RawStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawStream")
    }
}

impl RawStream {
    /// Writes these bytes.
    ///
    /// # Errors
    /// The other side has closed it.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}

/// A frame with this tag and payload, as it is on the wire; the payload may be as long as it likes.
#[must_use]
pub fn frame(tag: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + 1 + payload.len());
    let length = u32::try_from(payload.len() + 1).unwrap_or(u32::MAX);
    bytes.extend(length.to_be_bytes());
    bytes.push(tag);
    bytes.extend(payload);
    bytes
}

/// Reads a frame stream whole and cut into pieces: both give the same. Announcements in it are
/// read, too.
///
/// # Panics
/// When they differ, or an announcement is not what it is when it is written and read again: that is what fuzzing looks
/// for.
pub fn read_frames(bytes: &[u8]) {
    let read = |step: usize| {
        let (mut buffer, mut got) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            loop {
                match take_frame(&mut buffer) {
                    Ok(Some(frame)) => got.push(frame),
                    Ok(None) => break,
                    Err(error) => return (got, Some(error)),
                }
            }
        }
        (got, None)
    };
    let whole = read(bytes.len().max(1));
    // From which piece on a header is judged differs, and what it says does not.
    assert_eq!(read(7), whole);
    assert_eq!(read(1), whole);
    for (tag, payload) in whole.0 {
        if tag == Tag::Announcement
            && let Ok(records) = announcement::decode(payload)
        {
            let again = announcement::decode(announcement::encode(&records));
            assert_eq!(again.as_ref(), Ok(&records));
        }
    }
}

impl Rogue {
    /// Starts one on the current tokio runtime. It connects to `victims`, again and again, and
    /// listens to as many topics as the settings say, be they more than there may be.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(settings: &Settings, victims: Vec<SocketAddr>) -> Result<Rogue, StartError> {
        Rogue::launch(settings, victims, |_| {})
    }

    /// One that listens where the settings say, gives places to all, and opens circuits over which
    /// nothing comes.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_relay(settings: &Settings) -> Result<Rogue, StartError> {
        Rogue::launch(settings, Vec::new(), |swarm| {
            let me = *swarm.local_peer_id();
            swarm.behaviour_mut().carrier = circuit::carrier_of(me, 1);
            for address in &settings.listen {
                // One that cannot be bound is missed by the test.
                drop(swarm.listen_on(multiaddr_of(*address)));
            }
        })
    }

    /// An honest one, whose places last as long as this.
    #[cfg(test)]
    pub(crate) fn start_brief(
        settings: &Settings,
        places_last: Duration,
    ) -> Result<Rogue, StartError> {
        Rogue::launch(settings, Vec::new(), |swarm| {
            let me = *swarm.local_peer_id();
            swarm.behaviour_mut().carrier = circuit::brief_carrier(me, places_last);
            for address in &settings.listen {
                drop(swarm.listen_on(multiaddr_of(*address)));
            }
        })
    }

    fn launch(
        settings: &Settings,
        victims: Vec<SocketAddr>,
        spoil: impl FnOnce(&mut Swarm<Behaviour>),
    ) -> Result<Rogue, StartError> {
        let keys = Keys::new(settings.pre_shared_key.clone(), settings.former_keys.clone());
        let mut swarm = behaviour::swarm(
            settings,
            Arc::new(keys),
            Arc::new(Twins::new(0)),
            &Here::default(),
            VERSION,
        )?;
        spoil(&mut swarm);
        // Another relay in it has not heard of it yet, and would give no places.
        let peer = *swarm.local_peer_id();
        swarm.add_external_address(circuit::own_address(&peer));
        let me = node_of(swarm.local_peer_id())
            .ok_or_else(|| StartError::Setup("our key is not an ed25519 key".to_owned()))?;
        let control = swarm.behaviour().frames.new_control();
        let (orders, ordered) = mpsc::channel(ORDERS_MAX);
        let (meets, met) = watch::channel(Vec::new());
        let (binds, bound) = watch::channel(None);
        let run = Run { swarm, victims, ordered, meets, binds };
        tokio::spawn(run.run());
        Ok(Rogue { me, control: Opening(control), orders, met, bound })
    }

    /// Where it is, as soon as it listens.
    pub async fn at(&self) -> Option<PeerAddress> {
        let mut bound = self.bound.clone();
        let at = *bound.wait_for(Option::is_some).await.ok()?;
        let address = Address::try_from(at?).ok()?;
        Some(PeerAddress { node: Some(self.me), address })
    }

    /// A frame with an announcement: it is connected to all of these.
    #[must_use]
    pub fn announcement(&self, knows: &[NodeId]) -> Vec<u8> {
        let of =
            |node: &NodeId| Record { node: *node, addresses: Vec::new(), relays: vec![self.me] };
        let records: Vec<Record> = [self.me].iter().chain(knows).map(of).collect();
        frame(Tag::Announcement as u8, &announcement::encode(&records))
    }

    /// The nodes that are connected now.
    #[must_use]
    pub fn met(&self) -> Vec<NodeId> {
        self.met.borrow().clone()
    }

    /// Publishes a payload of any length, in a topic of the mesh; waits while the stack is busy.
    pub async fn gossip(&self, topic: u16, payload: Bytes) {
        // It runs as long as this is there.
        let _ = self.orders.send(Order::Gossip(topic, payload)).await;
    }

    /// Says that it does not listen to a topic any more, and that it does again.
    pub async fn flap(&self, topic: u16) {
        // As above.
        let _ = self.orders.send(Order::Flap(topic)).await;
    }

    /// A stream to this node, which takes it for its link's. If the node is the one that opens, the
    /// next that it opens.
    ///
    /// # Errors
    /// It is not connected, does not answer, or has another opened at the same time.
    pub async fn stream(&self, to: NodeId) -> io::Result<RawStream> {
        let patient = timeout(PATIENCE, self.open(to)).await;
        patient.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn open(&self, to: NodeId) -> io::Result<RawStream> {
        let mut control = self.control.0.clone();
        if Role::of(&self.me, &to) == Role::Acceptor {
            let mut streams: IncomingStreams =
                control.accept(PROTOCOL).map_err(io::Error::other)?;
            while let Some((peer, mut stream)) = streams.next().await {
                if node_of(&peer) == Some(to) {
                    stream.read_exact(&mut [0]).await?;
                    stream.write_all(&[frames::Opening::Anew.byte()]).await?;
                    stream.flush().await?;
                    return Ok(RawStream(stream));
                }
            }
            return Err(io::ErrorKind::NotConnected.into());
        }
        let peer = peer_of(&to).ok_or(io::ErrorKind::NotFound)?;
        let mut stream = control.open_stream(peer, PROTOCOL).await.map_err(io::Error::other)?;
        stream.write_all(&[frames::Opening::Anew.byte()]).await?;
        stream.flush().await?;
        stream.read_exact(&mut [0]).await?;
        Ok(RawStream(stream))
    }
}

struct Run {
    swarm: Swarm<Behaviour>,
    victims: Vec<SocketAddr>,
    ordered: mpsc::Receiver<Order>,
    meets: watch::Sender<Vec<NodeId>>,
    binds: watch::Sender<Option<SocketAddr>>,
}

impl Run {
    async fn run(mut self) {
        let mut again = tokio::time::interval(AGAIN);
        loop {
            tokio::select! {
                event = self.swarm.select_next_some() => self.on_event(&event),
                order = self.ordered.recv() => match order {
                    Some(order) => self.obey(order),
                    None => return,
                },
                _ = again.tick() => self.dial(),
            }
        }
    }

    fn on_event<T>(&mut self, event: &SwarmEvent<T>) {
        if let SwarmEvent::ConnectionEstablished { .. } | SwarmEvent::ConnectionClosed { .. } =
            event
        {
            let met = self.swarm.connected_peers().filter_map(node_of).collect();
            self.meets.send_replace(met);
        }
        if let SwarmEvent::NewListenAddr { address, .. } = event {
            let at = address_in(address).and_then(|address| address.socket());
            self.binds.send_if_modified(|bound| {
                let first = bound.is_none() && at.is_some();
                *bound = bound.or(at);
                first
            });
        }
    }

    /// Everybody, as long as there are fewer connections than victims.
    fn dial(&mut self) {
        if self.swarm.connected_peers().count() < self.victims.len() {
            for victim in &self.victims {
                // Refused or connected already: the next attempt is soon.
                let _ = self.swarm.dial(multiaddr_of(*victim));
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let gossip = &mut self.swarm.behaviour_mut().gossip;
        // Nobody listens, or the queues are full: then it is lost, as with anybody's gossip.
        match order {
            Order::Gossip(topic, payload) => {
                drop(gossip.publish(behaviour::topic(topic), payload));
            }
            Order::Flap(topic) => {
                let topic = behaviour::topic(topic);
                gossip.unsubscribe(&topic);
                drop(gossip.subscribe(&topic));
            }
        }
    }
}
