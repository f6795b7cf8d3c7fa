//! Promises of the crate, over real sockets on loopback.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::Trouble::OldSecret;
use crate::limits::{FRAME_BYTES_MAX, GOSSIP_BYTES_MAX, OUTBOX_BYTES_MAX, STRIKES_MAX};
use crate::*;

mod becoming_direct;
mod circuits;
mod guests;
mod liars;
mod moves;
mod paces;
mod troubles;
mod twins;
mod web;
use moves::here;
use troubles::{trouble, twins};

/// Generous: several test runs share two cores. Nothing waits for it to pass.
const DEADLINE: Duration = Duration::from_secs(90);
/// How long is looked before something is believed not to happen.
const QUIET: Duration = Duration::from_millis(700);

/// The topic on which [`gossip_flows`] tries.
const FLOWS: u16 = 63;

const SECRET: [u8; 32] = [42; 32];

/// A node, and what it received but nobody asked for yet.
struct Node {
    net: Net,
    inbox: Inbox,
    seen: VecDeque<Incoming>,
}

fn settings(name: u8, peers: &[PeerAddress]) -> Settings {
    Settings {
        secret_key: [name; 32].into(),
        pre_shared_key: SECRET.into(),
        former_keys: Vec::new(),
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        announce: Vec::new(),
        peers: peers.to_vec(),
        topics: 64,
        listens_to: None,
        web: Web::default(),
        discovery: Discovery::FullMesh,
        relaying: Relaying::Members,
        relay_rate: limits::RELAY_BYTES_PER_SECOND,
        lie: Default::default(),
    }
}

fn keys() -> Arc<crate::keys::Keys> {
    Arc::new(crate::keys::Keys::new(SECRET.into(), Vec::new()))
}

async fn run(settings: Settings) -> Node {
    let (net, inbox) = start(settings).await.unwrap();
    Node { net, inbox, seen: VecDeque::new() }
}

impl Node {
    /// Address without id, as in a ticket's shortest form.
    fn at(&self) -> PeerAddress {
        self.net.listening()[0].to_string().parse().unwrap()
    }

    fn named(&self) -> PeerAddress {
        PeerAddress { node: Some(self.net.node()), ..self.at() }
    }

    /// The first thing that matches, now or later; the rest is kept in order.
    async fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&Incoming) -> Option<T>) -> T {
        for (index, incoming) in self.seen.iter().enumerate() {
            if let Some(found) = pick(incoming) {
                self.seen.remove(index);
                return found;
            }
        }
        let found = timeout(DEADLINE, async {
            loop {
                let incoming = self.inbox.recv().await.expect("the network runs");
                if let Some(found) = pick(&incoming) {
                    return found;
                }
                self.seen.push_back(incoming);
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("{what}: {:?} {:?}", self.seen, self.net.peers()),
        }
    }

    async fn up(&mut self, node: NodeId) {
        self.wait("up", |it| matches!(it, Incoming::Up(up) if *up == node).then_some(())).await;
    }

    async fn down(&mut self, node: NodeId) {
        self.wait("down", |it| matches!(it, Incoming::Down(d) if *d == node).then_some(())).await;
    }

    async fn frame(&mut self, sender: NodeId) -> Bytes {
        self.wait("frame", |it| {
            let Incoming::Frame { from, payload, .. } = it else { return None };
            (*from == sender).then(|| payload.clone())
        })
        .await
    }

    /// The next gossip, but what [`gossip_flows`] sends: some of that may be late.
    async fn gossip(&mut self) -> (u16, Bytes, Ticket) {
        self.gossip_in(|topic| topic != FLOWS).await
    }

    async fn gossip_in(&mut self, wanted: impl Fn(u16) -> bool) -> (u16, Bytes, Ticket) {
        let node = self.net.node();
        self.wait("gossip", |it| {
            let Incoming::Gossip { topic, payload, ticket, .. } = it else { return None };
            if !wanted(*topic) {
                return None;
            }
            // Tickets cannot be cloned by the owner; the test takes a copy out of the queue.
            let (message, source) = (ticket.message.clone(), ticket.source);
            assert_ne!(ticket.node, node);
            Some((
                *topic,
                payload.clone(),
                Ticket { message, source, node: ticket.node, bytes: ticket.bytes },
            ))
        })
        .await
    }

    /// Everything that comes in while nothing should.
    async fn quiet(&mut self) -> Vec<Incoming> {
        let until = Instant::now() + QUIET;
        let mut seen: Vec<Incoming> = self.seen.drain(..).collect();
        while let Ok(Some(incoming)) = tokio::time::timeout_at(until, self.inbox.recv()).await {
            seen.push(incoming);
        }
        seen.retain(|it| !matches!(it, Incoming::Gossip { topic: FLOWS, .. }));
        seen
    }

    async fn until(&mut self, what: &str, mut is: impl FnMut(&Node) -> bool) {
        let until = Instant::now() + DEADLINE;
        while !is(self) {
            assert!(Instant::now() < until, "{what}: {:?}", self.net.peers());
            let more = timeout(Duration::from_millis(20), self.inbox.recv()).await;
            self.seen.extend(more.ok().flatten());
        }
    }
}

/// Waits until gossip flows, which starts a moment after Up: sends until it arrives. What else came
/// meanwhile.
async fn gossip_flows(from: &mut Node, to: &mut Node) -> Vec<Incoming> {
    let until = Instant::now() + DEADLINE;
    for attempt in 0..u64::MAX {
        assert!(Instant::now() < until, "no gossip: {:?}", from.net.peers());
        from.net.publish(FLOWS, attempt.to_be_bytes().to_vec().into()).unwrap();
        let arrived =
            timeout(Duration::from_millis(100), to.gossip_in(|topic| topic == FLOWS)).await;
        if let Ok((_, _, ticket)) = arrived {
            to.net.verdict(ticket, Verdict::Ignore);
            break;
        }
    }
    to.quiet().await
}

async fn pair() -> (Node, Node) {
    let mut a = run(settings(1, &[])).await;
    let mut b = run(settings(2, &[a.at()])).await;
    a.up(b.net.node()).await;
    b.up(a.net.node()).await;
    (a, b)
}

fn numbered(number: u32, length: usize) -> Bytes {
    let mut payload = vec![0; length.max(4)];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload.into()
}

fn number(payload: &Bytes) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_flow_both_ways_in_order_from_the_moment_of_up() {
    let (mut a, mut b) = pair().await;
    let (a_id, b_id) = (a.net.node(), b.net.node());
    for i in 0..500 {
        a.net.send(&b_id, numbered(i, 300)).unwrap();
        b.net.send(&a_id, numbered(i, (i as usize * 37) % 9000)).unwrap();
    }
    for i in 0..500 {
        assert_eq!(number(&b.frame(a_id).await), i);
        assert_eq!(number(&a.frame(b_id).await), i);
    }
    assert_eq!(a.net.send(&[9; 32], Bytes::new()), Err(SendError::NotConnected));
    let status = a.net.peers();
    assert!(status.len() == 1 && status[0].connected && status[0].node == Some(b_id));
    a.net.shutdown().await;
    b.down(a_id).await;
    assert_eq!(b.net.send(&a_id, Bytes::new()), Err(SendError::NotConnected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_frame_passes_and_a_larger_one_is_refused() {
    let (a, mut b) = pair().await;
    let frame = Bytes::from((0..FRAME_BYTES_MAX).map(|i| i as u8).collect::<Vec<u8>>());
    a.net.send(&b.net.node(), frame.clone()).unwrap();
    assert!(b.frame(a.net.node()).await == frame);
    let larger = Bytes::from(vec![0; FRAME_BYTES_MAX + 1]);
    assert_eq!(a.net.send(&b.net.node(), larger), Err(SendError::TooLarge));
    let payload = Bytes::from(vec![0; GOSSIP_BYTES_MAX + 1]);
    assert_eq!(a.net.publish(0, payload), Err(PublishError::TooLarge));
    assert_eq!(a.net.publish(64, Bytes::new()), Err(PublishError::NoSuchTopic(64)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gossip_is_relayed_after_accept_and_not_before() {
    let chain = |name, peers: &[PeerAddress]| Settings {
        discovery: Discovery::Configured,
        ..settings(name, peers)
    };
    let mut a = run(chain(1, &[])).await;
    let mut b = run(chain(2, &[a.at()])).await;
    let mut c = run(chain(3, &[b.at()])).await;
    b.up(a.net.node()).await;
    b.up(c.net.node()).await;
    gossip_flows(&mut a, &mut b).await;
    gossip_flows(&mut c, &mut b).await;
    gossip_flows(&mut b, &mut c).await;
    let mut tickets = Vec::new();
    for verdict in [Verdict::Accept, Verdict::Ignore, Verdict::Reject] {
        a.net.publish(5, format!("{verdict:?}").into()).unwrap();
        let (topic, payload, ticket) = b.gossip().await;
        assert_eq!((topic, &payload[..]), (5, format!("{verdict:?}").as_bytes()));
        tickets.push((ticket, verdict));
    }
    let early = c.quiet().await;
    assert!(early.is_empty(), "relayed before the verdict: {early:?}");
    for (ticket, verdict) in tickets {
        b.net.verdict(ticket, verdict);
    }
    let (_, payload, _) = c.gossip().await;
    assert_eq!(&payload[..], b"Accept");
    let rest = c.quiet().await;
    assert!(rest.is_empty(), "relayed though not accepted: {rest:?}");
    assert!(c.net.peers().len() == 1, "nobody else was announced");
    b.until("one strike", |b| b.net.peers().iter().map(|peer| peer.strikes).sum::<u32>() == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_secret_never_comes_up_and_says_why() {
    let mut a = run(settings(1, &[])).await;
    let stranger = Settings { pre_shared_key: [7; 32].into(), ..settings(2, &[a.at(), a.named()]) };
    let mut b = run(stranger).await;
    b.until("an error is shown", |b| {
        let peers = b.net.peers();
        peers.len() == 2 && peers.iter().all(|peer| trouble(peer) == Some(Trouble::WrongSecret))
    })
    .await;
    assert!(b.quiet().await.is_empty());
    assert!(a.quiet().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_one_node_meets_all() {
    let mut b = run(settings(2, &[])).await;
    let mut others = Vec::new();
    for name in [1, 3, 4] {
        others.push(run(settings(name, &[b.at()])).await);
    }
    let ids: Vec<NodeId> = others.iter().map(|node| node.net.node()).collect();
    for node in &mut others {
        let me = node.net.node();
        node.up(b.net.node()).await;
        for id in ids.iter().filter(|id| **id != me) {
            node.up(*id).await;
        }
    }
    let first = others[0].named();
    others[1]
        .wait("learned", |it| {
            let Incoming::Learned(learned) = it else { return None };
            (*learned == first).then_some(())
        })
        .await;
    // Nobody is met twice, and nobody meets himself.
    for node in others.iter_mut().chain([&mut b]) {
        let ups = node.quiet().await;
        let twice = ups.iter().filter(|it| matches!(it, Incoming::Down(_))).count();
        assert_eq!(twice, 0, "{ups:?}");
        assert_eq!(node.net.peers().len(), 3, "{:?}", node.net.peers());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_is_dialled_again() {
    let mut a = run(settings(1, &[])).await;
    let at: SocketAddr = a.net.listening()[0];
    // By name: looked up at each dial.
    let seed: PeerAddress = format!("localhost:{}", at.port()).parse().unwrap();
    let mut b = run(settings(2, &[seed])).await;
    b.up(a.net.node()).await;
    a.up(b.net.node()).await;
    let (a_id, b_id) = (a.net.node(), b.net.node());
    a.net.shutdown().await;
    b.down(a_id).await;
    let back = Settings { listen: vec![at], ..settings(1, &[]) };
    let mut a = run(back).await;
    b.up(a_id).await;
    a.up(b_id).await;
    b.net.send(&a_id, Bytes::from_static(b"again")).unwrap();
    assert_eq!(&a.frame(b_id).await[..], b"again");
    // Another identity at the same address is accepted too: the seed named nobody.
    a.net.shutdown().await;
    b.down(a_id).await;
    let other = run(Settings { listen: vec![at], ..settings(9, &[]) }).await;
    b.up(other.net.node()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_fills_its_own_queue_only() {
    let mut a = run(settings(1, &[])).await;
    let mut slow = run(settings(2, &[a.at()])).await;
    let mut quick = run(settings(3, &[a.at()])).await;
    let (a_id, slow_id, quick_id) = (a.net.node(), slow.net.node(), quick.net.node());
    a.up(slow_id).await;
    a.up(quick_id).await;
    slow.up(a_id).await;
    quick.up(a_id).await;
    // `slow` does not look into its inbox: first that fills, then the stream, then our queue.
    let mut sent = 0;
    let until = Instant::now() + DEADLINE;
    let mut full_since: Option<Instant> = None;
    while full_since.is_none_or(|since| since.elapsed() < QUIET) {
        assert!(Instant::now() < until, "the queue never fills: {sent}");
        match a.net.send(&slow_id, numbered(sent, 128 * 1024)) {
            Ok(()) => (sent, full_since) = (sent + 1, None),
            Err(SendError::Full) => {
                full_since.get_or_insert_with(Instant::now);
                tokio::task::yield_now().await;
            }
            Err(other) => panic!("{other}"),
        }
    }
    let waiting = a.net.peers().into_iter().find(|peer| peer.node == Some(slow_id)).unwrap();
    assert!(waiting.outbound.bytes > OUTBOX_BYTES_MAX / 2);
    for i in 0..100 {
        a.net.send(&quick_id, numbered(i, 1000)).unwrap();
    }
    for i in 0..100 {
        assert_eq!(number(&quick.frame(a_id).await), i);
    }
    // Nothing of what was accepted is lost once it reads.
    for i in 0..sent {
        assert_eq!(number(&slow.frame(a_id).await), i);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_of_large_gossip_do_not_stall() {
    let (mut a, mut b) = pair().await;
    gossip_flows(&mut a, &mut b).await;
    let (mut received, mut next) = (0, 0);
    // Payloads near gossipsub's transmit limit stall a connection for good; ours keep their
    // distance. Some of a burst may wait too long on a busy machine, and are dropped: then there is
    // another burst.
    let until = Instant::now() + DEADLINE;
    while received < 200 {
        assert!(Instant::now() < until, "stalled after {received} of {next}: {:?}", b.net.peers());
        let burst = next + 200 - received;
        while next < burst && a.net.publish(1, numbered(next, GOSSIP_BYTES_MAX)).is_ok() {
            next += 1;
        }
        while let Ok((_, payload, ticket)) = timeout(3 * QUIET, b.gossip()).await {
            assert_eq!(payload.len(), GOSSIP_BYTES_MAX);
            b.net.verdict(ticket, Verdict::Accept);
            received += 1;
            if received == 200 {
                break;
            }
        }
    }
    while timeout(3 * QUIET, b.gossip()).await.is_ok() {}
    a.net.publish(2, Bytes::from_static(b"after")).unwrap();
    assert_eq!(&b.gossip().await.1[..], b"after");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialling_each_other_at_once_ends_in_one_up() {
    let mut a = run(settings(1, &[])).await;
    let mut b = run(settings(2, &[])).await;
    let (a_id, b_id) = (a.net.node(), b.net.node());
    assert!(a.net.add_peers(vec![b.named(), b.at()]));
    assert!(b.net.add_peers(vec![a.named(), a.at()]));
    a.up(b_id).await;
    b.up(a_id).await;
    let (rest_a, rest_b) = (a.quiet().await, b.quiet().await);
    // If the second connection comes late, it is another one: the first is down before it is up.
    let ends_up = |seen: &[Incoming]| {
        let changes = seen.iter().filter(|it| matches!(it, Incoming::Up(_) | Incoming::Down(_)));
        let changes: Vec<_> = changes.collect();
        let in_turn = |pair: &[&Incoming]| matches!(pair, [Incoming::Down(_), Incoming::Up(_)]);
        changes.chunks(2).all(in_turn)
    };
    assert!(ends_up(&rest_a) && ends_up(&rest_b), "{rest_a:?} {rest_b:?}");
    a.net.send(&b_id, Bytes::from_static(b"hello")).unwrap();
    assert_eq!(&b.frame(a_id).await[..], b"hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_with_too_many_strikes_is_refused_for_a_while() {
    let (mut a, mut b) = pair().await;
    let (a_id, b_id) = (a.net.node(), b.net.node());
    for _ in 0..STRIKES_MAX - 1 {
        a.net.penalise(b_id, Reason::Invalid, "a test");
    }
    a.until("strikes are counted", |a| a.net.peers()[0].strikes == STRIKES_MAX - 1).await;
    assert!(a.net.peers()[0].connected);
    a.net.penalise(b_id, Reason::Invalid, "a test");
    a.down(b_id).await;
    b.down(a_id).await;
    assert!(a.quiet().await.iter().all(|it| !matches!(it, Incoming::Up(_))));
    assert!(a.net.peers()[0].refused_for.is_some());
}

/// A peer with the mesh secret and without manners: opens the frame stream and writes these bytes.
async fn rogue(victim: &Node, bytes: Vec<u8>) -> NodeId {
    use futures::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut swarm, id) = (0..=u8::MAX)
        .map(|name| {
            crate::listening::swarm(&settings(name, &[]), keys(), twins(), &here()).unwrap()
        })
        // The lower id opens the stream.
        .find(|(_, id)| *id < victim.net.node())
        .unwrap();
    let peer = crate::identity::peer_of(&victim.net.node()).unwrap();
    let mut control = swarm.behaviour().frames.new_control();
    swarm.dial(crate::address::multiaddr_of(victim.net.listening()[0])).unwrap();
    let (connected, connection) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut connected = Some(connected);
        loop {
            let event = swarm.select_next_some().await;
            if matches!(event, libp2p::swarm::SwarmEvent::ConnectionEstablished { .. }) {
                connected.take().map(|connected| connected.send(()));
            }
        }
    });
    connection.await.unwrap();
    let mut stream = control.open_stream(peer, crate::link::PROTOCOL).await.unwrap();
    let mut answer = [0];
    stream.write_all(&[1]).await.unwrap();
    stream.flush().await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    // The victim may close it while we write.
    let _ = stream.write_all(&bytes).await;
    let _ = stream.flush().await;
    let _ = stream.read(&mut answer).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_the_protocol_is_refused() {
    let oversized = ((FRAME_BYTES_MAX + 2) as u32).to_be_bytes().to_vec();
    let malformed = vec![0, 0, 0, 3, 1, 7, 7];
    let unknown = vec![0, 0, 0, 1, 77];
    // It goes on over another stream, and says more on this one.
    let more = vec![0, 0, 0, 1, 2, 0];
    for bytes in [oversized, malformed, unknown, more] {
        let mut victim = run(settings(200, &[])).await;
        let frame = [&[0, 0, 0, 3, 0][..], b"ok"].concat();
        let id = rogue(&victim, [frame, bytes].concat()).await;
        victim.up(id).await;
        assert_eq!(&victim.frame(id).await[..], b"ok");
        victim.down(id).await;
        victim.until("refused", |it| it.net.peers()[0].refused_for.is_some()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_changes_its_topics_without_end_is_refused_be_they_the_meshs_or_not() {
    for topic in [0, 99] {
        let victim = run(settings(200, &[])).await;
        let door = victim.net.listening()[0];
        let hundred = Settings { topics: 100, ..settings(201, &[]) };
        let rogue = crate::testing::Rogue::start(&hundred, vec![door]).unwrap();
        let refused = async {
            while victim.net.peers().first().is_none_or(|it| it.refused_for.is_none()) {
                rogue.flap(topic).await;
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, refused).await.expect("it is refused");
        let fault = victim.net.peers()[0].fault.clone().unwrap_or_default();
        assert!(fault.contains("topics"), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_another_version_is_told_apart_and_nobody_is_to_blame() {
    let mut victim = run(settings(200, &[])).await;
    // On either side of the id: who opens the stream must not matter.
    for opens in [true, false] {
        let is_wanted = |id: &NodeId| (*id < victim.net.node()) == opens;
        let (name, _) = (0..=u8::MAX)
            .map(|name| {
                (
                    name,
                    crate::listening::swarm(&settings(name, &[]), keys(), twins(), &here())
                        .unwrap()
                        .1,
                )
            })
            .find(|(name, id)| *name != 200 && is_wanted(id))
            .unwrap();
        let mut other =
            crate::behaviour::swarm(&settings(name, &[]), keys(), twins(), &here(), "clawmesh/9")
                .unwrap();
        let id = crate::identity::node_of(other.local_peer_id()).unwrap();
        other.dial(crate::address::multiaddr_of(victim.net.listening()[0])).unwrap();
        let driven = tokio::spawn(async move {
            loop {
                other.select_next_some().await;
            }
        });
        let of = |victim: &Node| victim.net.peers().into_iter().find(|it| it.node == Some(id));
        victim
            .until("it is said", |it| {
                let said =
                    of(it).and_then(|it| it.last_error).map(|it| it.text).unwrap_or_default();
                said.contains("`clawmesh/9`") && said.contains("must be updated")
            })
            .await;
        let peer = of(&victim).unwrap();
        assert!(!peer.connected && peer.strikes == 0 && peer.refused_for.is_none(), "{peer:?}");
        driven.abort();
    }
}

/// How many of a hundred frames that are queued when the sender is shut down arrive.
async fn arrive_after_shutdown() -> u32 {
    let (a, mut b) = pair().await;
    for i in 0..100 {
        a.net.send(&b.net.node(), numbered(i, 1_000)).unwrap();
    }
    let a_id = a.net.node();
    a.net.shutdown().await;
    let mut arrived = 0;
    loop {
        let next = b.wait("a frame, or the end", |it| match it {
            Incoming::Frame { from, payload, .. } if *from == a_id => Some(Some(number(payload))),
            Incoming::Down(node) if *node == a_id => Some(None),
            Incoming::Frame { .. }
            | Incoming::Gossip { .. }
            | Incoming::Up(_)
            | Incoming::Down(_)
            | Incoming::Learned(_) => None,
        });
        let Some(number) = next.await else { return arrived };
        assert_eq!(number, arrived);
        arrived += 1;
    }
}

/// There is half a second for it. On a machine that stands still for so long it may be too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_at_shutdown_still_arrives() {
    let mut arrived = Vec::new();
    for _ in 0..5 {
        arrived.push(arrive_after_shutdown().await);
        if arrived.last() == Some(&100) {
            return;
        }
    }
    panic!("of 100 frames there arrive {arrived:?}");
}

/// Passes bytes on, until it is told to hold them back (with both connections left open: a cut
/// cable).
async fn cable(to: SocketAddr, cut: tokio::sync::watch::Receiver<bool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let Ok(far) = TcpStream::connect(to).await else { continue };
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(near_in, far_out, cut.clone()));
            tokio::spawn(carry(far_in, near_out, cut.clone()));
        }
    });
    at
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut cut: tokio::sync::watch::Receiver<bool>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut buffer = vec![0; 65536];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if cut.wait_for(|cut| !*cut).await.is_err() || read == 0 {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_cable_is_noticed_and_a_mended_one_too() {
    let configured = |name, peers: &[PeerAddress]| Settings {
        discovery: Discovery::Configured,
        ..settings(name, peers)
    };
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    let mut a = run(configured(1, &[])).await;
    let through = cable(a.net.listening()[0], is_cut).await;
    let mut b = run(configured(2, &[through.to_string().parse().unwrap()])).await;
    a.up(b.net.node()).await;
    b.up(a.net.node()).await;
    gossip_flows(&mut a, &mut b).await;
    cut.send_replace(true);
    // With more under way than the sockets hold: closing a connection must not wait for it to be
    // written.
    while b.net.send(&a.net.node(), numbered(0, 100_000)).is_ok() {}
    b.down(a.net.node()).await;
    a.down(b.net.node()).await;
    cut.send_replace(false);
    b.up(a.net.node()).await;
    a.up(b.net.node()).await;
    gossip_flows(&mut a, &mut b).await;
    gossip_flows(&mut b, &mut a).await;
}

/// The machine of a node crashes and is back before anybody has noticed: the other end of its old
/// connection still takes that for alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_back_before_it_was_missed_hears_and_is_heard_at_once() {
    let configured = |name, peers: &[PeerAddress]| Settings {
        discovery: Discovery::Configured,
        ..settings(name, peers)
    };
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    let mut a = run(configured(1, &[])).await;
    let through = cable(a.net.listening()[0], is_cut).await;
    let mut b = run(configured(2, &[through.to_string().parse().unwrap()])).await;
    a.up(b.net.node()).await;
    b.up(a.net.node()).await;
    gossip_flows(&mut a, &mut b).await;
    cut.send_replace(true);
    drop(b);
    let mut b = run(configured(2, &[a.at()])).await;
    let (a_id, b_id) = (a.net.node(), b.net.node());
    b.up(a_id).await;
    a.down(b_id).await;
    a.up(b_id).await;
    let mut seen = gossip_flows(&mut a, &mut b).await;
    seen.extend(gossip_flows(&mut b, &mut a).await);
    // Nobody had to be connected anew for it.
    let anew = |it: &Incoming| matches!(it, Incoming::Up(_) | Incoming::Down(_));
    assert!(!seen.iter().any(anew), "{seen:?}");
    for peers in [a.net.peers(), b.net.peers()] {
        assert_eq!(peers[0].strikes_ever, 0, "{peers:?}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let a = run(settings(1, &[])).await;
    let taken = a.net.listening()[0];
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let used = other.local_addr().unwrap();
    let refused = start(Settings { listen: vec![used], ..settings(2, &[]) }).await;
    match refused {
        Err(StartError::Listen { address, .. }) => assert_eq!(address, used),
        other => panic!("{other:?}"),
    }
    assert_ne!(taken, used);
}

const NEW: [u8; 32] = [43; 32];

/// Sends and hears a frame: the link is a link.
async fn link_works(a: &mut Node, b: &mut Node) {
    a.net.send(&b.net.node(), Bytes::from_static(b"hello")).unwrap();
    assert_eq!(&*b.frame(a.net.node()).await, b"hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_keeps_members_connected_and_closes_the_door_to_strangers() {
    let mut a = run(settings(1, &[])).await;
    let mut b = run(settings(2, &[a.named()])).await;
    let mut stranger = run(settings(3, &[a.named()])).await;
    a.up(b.net.node()).await;
    a.up(stranger.net.node()).await;
    b.up(stranger.net.node()).await;
    for (here, there) in [(&a, &b), (&b, &a)] {
        here.net.know(there.net.node());
    }
    for node in [&a, &b] {
        node.net.renew_keys(NEW.into(), vec![SECRET.into()]);
    }
    a.down(stranger.net.node()).await;
    b.down(stranger.net.node()).await;
    link_works(&mut a, &mut b).await;
    // It still has the old key, and is told what that is worth at its dials.
    stranger.down(a.net.node()).await;
    let told = |it: &Node| it.net.peers().iter().all(|it| trouble(it) == Some(OldSecret));
    stranger.until("it is refused, and told why", told).await;
    let up = |it: &Incoming| matches!(it, Incoming::Up(_));
    assert!(!a.quiet().await.iter().any(up));
    // Until it becomes a member, by whatever way, or has the new key.
    a.net.know(stranger.net.node());
    a.up(stranger.net.node()).await;
    stranger.net.renew_keys(NEW.into(), Vec::new());
    b.up(stranger.net.node()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_were_away_while_the_key_changed_meet_whoever_dials() {
    // One has changed twice, the other has not: it dials with what it has.
    let mut a = run(Settings {
        pre_shared_key: NEW.into(),
        former_keys: vec![[50; 32].into(), SECRET.into()],
        ..settings(1, &[])
    })
    .await;
    let mut b = run(settings(2, &[a.named()])).await;
    assert!(b.quiet().await.is_empty(), "nobody knows it");
    a.net.know(b.net.node());
    a.up(b.net.node()).await;
    b.up(a.net.node()).await;
    // Both sides of a split have changed: who dials finds the key that both had.
    let mut c = run(Settings {
        pre_shared_key: [60; 32].into(),
        former_keys: vec![[61; 32].into(), SECRET.into()],
        ..settings(3, &[])
    })
    .await;
    a.net.know(c.net.node());
    c.net.know(a.net.node());
    assert!(a.net.add_peers(vec![c.named()]));
    a.up(c.net.node()).await;
    c.up(a.net.node()).await;
    link_works(&mut a, &mut c).await;
}
