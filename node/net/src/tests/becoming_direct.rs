//! A link that is relayed becomes direct: its owners see nothing of it, and miss nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::copy_bidirectional;
use tokio::task::JoinSet;

use super::circuits::{hidden, meet, through};
use super::web::web;
use super::*;

/// A door before a node, which is opened and closed.
struct Door {
    at: SocketAddr,
    open: Arc<AtomicBool>,
    /// All that went through it is cut.
    cut: tokio::sync::mpsc::Sender<()>,
}

impl Door {
    async fn before(node: SocketAddr) -> Door {
        let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let open = Arc::new(AtomicBool::new(false));
        let (cut, mut cuts) = tokio::sync::mpsc::channel(1);
        let is_open = open.clone();
        tokio::spawn(async move {
            let mut through = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((mut dialled, _)) = listener.accept() => {
                        if is_open.load(Ordering::Relaxed) {
                            through.spawn(async move {
                                let mut there = TcpStream::connect(node).await.unwrap();
                                // It ends with one of the two.
                                let _ = copy_bidirectional(&mut dialled, &mut there).await;
                            });
                        }
                    }
                    cut = cuts.recv() => match cut {
                        Some(()) => through.abort_all(),
                        None => return,
                    },
                }
            }
        });
        Door { at, open, cut }
    }

    async fn shut(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.cut.send(()).await.unwrap();
    }
}

/// The frames of one direction: each is longer than a read, and has its number.
#[derive(Default)]
struct Flow {
    sent: u32,
    /// The last one that came, and how many since the last `Up`.
    came: u32,
    since_up: u32,
    ups: u32,
    downs: u32,
}

impl Flow {
    fn send(&mut self, from: &Node, to: &NodeId) {
        let waiting = from.net.peers().iter().find(|it| it.node == Some(*to)).map(|it| it.outbound);
        for _ in waiting.map_or(0, |it| it.frames)..32 {
            self.sent += u32::from(from.net.send(to, numbered(self.sent + 1, 20_000)).is_ok());
        }
    }

    /// Takes all that is there: without gaps within a session, and never twice.
    fn take(&mut self, at: &mut Node, from: NodeId) {
        while let Some(next) = at.seen.pop_front().or_else(|| at.inbox.try_recv()) {
            match next {
                Incoming::Up(node) if node == from => {
                    self.ups += 1;
                    self.since_up = 0;
                }
                Incoming::Down(node) if node == from => self.downs += 1,
                Incoming::Frame { from: node, payload, .. } if node == from => {
                    let came = number(&payload);
                    let first = self.since_up == 0;
                    assert!(came == self.came + 1 || (first && came > self.came), "{came}");
                    self.came = came;
                    self.since_up += 1;
                }
                Incoming::Up(_)
                | Incoming::Down(_)
                | Incoming::Frame { .. }
                | Incoming::Gossip { .. }
                | Incoming::Learned(_) => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_goes_over_to_a_direct_connection_under_load_and_nobody_notices() {
    const MOVES: u32 = 3;
    let relay = run(settings(1, &[])).await;
    // Each of the two opens the stream in one half of the runs.
    for (dials, dialled) in [(2, 3), (3, 2)] {
        let (server, at) = web(dialled, None).await;
        drop(server);
        let peers = vec![relay.named()];
        let taken =
            Settings { web: Web { listen: vec![at], tls: None }, peers, ..hidden(dialled, &[]) };
        let mut b = run(taken).await;
        let mut a = run(hidden(dials, &[&relay])).await;
        let (id_a, id_b) = (a.net.node(), b.net.node());
        let door = Door::before(at).await;
        meet(&mut a, &mut b).await;
        let there: PeerAddress = format!("ws://{}", door.at).parse().unwrap();
        assert!(a.net.add_peers(vec![PeerAddress { node: Some(id_b), ..there }]));
        let (mut to_b, mut to_a) =
            (Flow { ups: 1, ..Flow::default() }, Flow { ups: 1, ..Flow::default() });
        let until = Instant::now() + DEADLINE;
        for moves in 1..=MOVES {
            // Over a circuit, then directly, with frames under way all the time.
            for direct in [false, true] {
                door.open.store(direct, Ordering::Relaxed);
                let (mut sent, mut settled) = ((0, 0), false);
                loop {
                    assert!(Instant::now() < until, "{direct} {:?}", a.net.peers());
                    to_b.send(&a, &id_b);
                    to_a.send(&b, &id_a);
                    to_b.take(&mut b, id_a);
                    to_a.take(&mut a, id_b);
                    let is_so = |at: &Node, peer| {
                        let peers = at.net.peers();
                        let up =
                            peers.iter().any(|it| it.node == Some(peer) && it.up_for.is_some());
                        up && through(at, peer).is_none() == direct
                    };
                    if !settled && is_so(&a, id_b) && is_so(&b, id_a) {
                        (sent, settled) = ((to_b.sent, to_a.sent), true);
                    }
                    if settled && to_b.came > sent.0 + 20 && to_a.came > sent.1 + 20 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                assert_eq!((to_b.ups, to_a.ups), (moves, moves), "up once for each cut");
                assert_eq!(
                    (to_b.downs, to_a.downs),
                    (moves - 1, moves - 1),
                    "down with each cut alone"
                );
            }
            door.shut().await;
            for (at, flow, from) in [(&mut a, &mut to_a, id_b), (&mut b, &mut to_b, id_a)] {
                while flow.downs < moves {
                    assert!(Instant::now() < until, "it is noticed");
                    flow.take(at, from);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        a.net.shutdown().await;
        b.net.shutdown().await;
    }
}
