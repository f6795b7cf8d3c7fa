//! Nodes that cannot dial each other meet through a third one, and lose nothing by it.

use super::*;

/// A node at which nobody can knock.
pub(super) fn hidden(name: u8, relays: &[&Node]) -> Settings {
    let peers: Vec<PeerAddress> = relays.iter().map(|relay| relay.named()).collect();
    Settings { listen: Vec::new(), ..settings(name, &peers) }
}

pub(super) fn through(node: &Node, peer: NodeId) -> Option<NodeId> {
    let peers = node.net.peers();
    let peer = peers.iter().find(|it| it.node == Some(peer))?;
    peer.through.filter(|_| peer.connected)
}

/// Both are up for each other, through a relay, and the relay's id.
pub(super) async fn meet(a: &mut Node, b: &mut Node) -> NodeId {
    let (to_a, to_b) = (a.net.node(), b.net.node());
    tokio::join!(a.up(to_b), b.up(to_a));
    let relayed = |it: &Node, peer| through(it, peer).is_some();
    a.until("it is reached through a relay", |it| relayed(it, to_b)).await;
    b.until("it is reached through a relay", |it| relayed(it, to_a)).await;
    through(a, to_b).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_cannot_be_dialled_talk_through_a_third() {
    let relay = run(settings(1, &[])).await;
    let mut a = run(hidden(2, &[&relay])).await;
    let mut b = run(hidden(3, &[&relay])).await;
    let (id_a, id_b, id_relay) = (a.net.node(), b.net.node(), relay.net.node());
    assert_eq!(meet(&mut a, &mut b).await, id_relay);
    assert_eq!(through(&b, id_a), Some(id_relay));
    assert_eq!(through(&a, id_relay), None, "the relay itself is reached directly");
    a.net.ping(id_b).await.unwrap();
    b.net.ping(id_relay).await.unwrap();
    // More than libp2p lets a circuit carry by default, both ways, and gossip.
    let large = Bytes::from(vec![7; FRAME_BYTES_MAX]);
    a.net.send(&id_b, large.clone()).unwrap();
    assert_eq!(b.frame(id_a).await, large);
    b.net.send(&id_a, large.clone()).unwrap();
    assert_eq!(a.frame(id_b).await, large);
    gossip_flows(&mut a, &mut b).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_relay_goes_another_one_carries() {
    let first = run(settings(1, &[])).await;
    let second = run(settings(4, &[first.named()])).await;
    let mut a = run(hidden(2, &[&first, &second])).await;
    let mut b = run(hidden(3, &[&first, &second])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    let carrier = meet(&mut a, &mut b).await;
    let (gone, stays) = if carrier == first.net.node() { (first, second) } else { (second, first) };
    gone.net.shutdown().await;
    a.until("it goes through the other", |it| through(it, id_b) == Some(stays.net.node())).await;
    b.until("it goes through the other", |it| through(it, id_a) == Some(stays.net.node())).await;
    a.net.send(&id_b, Bytes::from_static(b"still here")).unwrap();
    assert_eq!(b.frame(id_a).await, "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_carries_nothing_keeps_them_apart() {
    let relay = Settings { relaying: Relaying::Off, ..settings(1, &[]) };
    let mut relay = run(relay).await;
    let mut a = run(hidden(2, &[&relay])).await;
    let mut b = run(hidden(3, &[&relay])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    tokio::join!(a.up(relay.net.node()), b.up(relay.net.node()));
    relay.up(id_a).await;
    relay.up(id_b).await;
    tokio::time::sleep(QUIET).await;
    assert!(a.net.peers().iter().all(|peer| peer.node != Some(id_b)), "{:?}", a.net.peers());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_carries_nothing_keeps_nobody_apart_while_another_carries() {
    let rogue = testing::Rogue::start_relay(&settings(9, &[])).unwrap();
    let named = rogue.at().await.unwrap();
    // It is named by both operators, is there first, and says that it knows both.
    let joins = |name: u8| Settings { peers: vec![named.clone()], ..hidden(name, &[]) };
    let (mut a, mut b) = (run(joins(2)).await, run(joins(3)).await);
    let (id_a, id_b) = (a.net.node(), b.net.node());
    let mut said = Vec::new();
    for (to, other) in [(id_a, id_b), (id_b, id_a)] {
        while !rogue.met().contains(&to) {
            tokio::task::yield_now().await;
        }
        let mut stream = rogue.stream(to).await.unwrap();
        stream.write(&rogue.announcement(&[other])).await.unwrap();
        said.push(stream);
    }
    let tried = |it: &Node, node: NodeId| {
        let peers = it.net.peers();
        peers.iter().any(|peer| peer.node == Some(node) && peer.last_error.is_some())
    };
    a.until("it has tried in vain", |it| tried(it, id_b)).await;
    b.until("it has tried in vain", |it| tried(it, id_a)).await;
    let honest = run(settings(1, &[])).await;
    assert!(a.net.add_peers(vec![honest.named()]) && b.net.add_peers(vec![honest.named()]));
    assert_eq!(meet(&mut a, &mut b).await, honest.net.node());
    a.net.send(&id_b, Bytes::from_static(b"by the other")).unwrap();
    assert_eq!(b.frame(id_a).await, "by the other");
    drop(said);
}

/// 100 MiB go through one as well (by hand: `CIRCUIT_MIB=100`); libp2p's own would have ended after
/// 128 KiB.
#[tokio::test(flavor = "multi_thread")]
async fn a_circuit_lives_through_many_bytes() {
    let mib = std::env::var("CIRCUIT_MIB").map_or(8, |text| text.parse().unwrap());
    let relay = run(Settings { relay_rate: 0, ..settings(1, &[]) }).await;
    let mut a = run(hidden(2, &[&relay])).await;
    let mut b = run(hidden(3, &[&relay])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    meet(&mut a, &mut b).await;
    let (mut sent, frames) = (0, mib);
    for expected in 0..frames {
        while sent < frames && sent < expected + 4 {
            a.net.send(&id_b, numbered(sent, 1024 * 1024)).unwrap();
            sent += 1;
        }
        assert_eq!(number(&b.frame(id_a).await), expected);
    }
    assert_eq!(through(&b, id_a), Some(relay.net.node()));
    assert!(a.seen.iter().chain(&b.seen).all(|it| !matches!(it, Incoming::Down(_))), "one circuit");
}
