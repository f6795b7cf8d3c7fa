//! A node carries for others at a pace, in which they share by turns; its own links are not in it.

use super::circuits::{hidden, through};
use super::*;

/// Bytes that the relay of this test carries in a second.
const RATE: u64 = 1024 * 1024;
const FRAME: usize = 64 * 1024;
/// Frames that are counted.
const COUNTED: usize = 64;

/// Up to the bound of the outbox, again and again.
fn flood(from: &Node, to: &NodeId) {
    while from.net.send(to, vec![0; FRAME].into()).is_ok() {}
}

/// Frames that have come from this node since.
fn came(at: &mut Node, from: NodeId) -> usize {
    while let Some(more) = at.inbox.try_recv() {
        at.seen.push_back(more);
    }
    let before = at.seen.len();
    at.seen.retain(|it| !matches!(it, Incoming::Frame { from: sender, .. } if *sender == from));
    before - at.seen.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_share_by_sender_and_the_relay_is_heard_meanwhile() {
    let mut relay = run(Settings { relay_rate: RATE, ..settings(1, &[]) }).await;
    let mut nodes = Vec::new();
    for name in 2..8 {
        nodes.push(run(hidden(name, &[&relay])).await);
    }
    let ids: Vec<NodeId> = nodes.iter().map(|node| node.net.node()).collect();
    // One floods three others, and one a single one.
    let floods = [(0, 1), (0, 2), (0, 3), (4, 5)];
    for (from, to) in floods {
        for (at, other) in [(from, to), (to, from)] {
            nodes[at].up(ids[other]).await;
        }
        let relayed = |it: &Node| through(it, ids[to]).is_some();
        nodes[from].until("it is reached through the relay", relayed).await;
    }
    let (began, mut counts) = (Instant::now(), [0; 4]);
    for round in 0.. {
        for (flow, (from, to)) in floods.into_iter().enumerate() {
            flood(&nodes[from], &ids[to]);
            counts[flow] += came(&mut nodes[to], ids[from]);
        }
        let all: usize = counts.iter().sum();
        if all >= COUNTED {
            break;
        }
        if round % 16 == 0 {
            relay.net.ping(ids[0]).await.unwrap();
            relay.net.send(&ids[0], Bytes::from_static(b"heard")).unwrap();
            assert_eq!(nodes[0].frame(relay.net.node()).await, "heard");
            nodes[4].net.send(&relay.net.node(), Bytes::from_static(b"heard, too")).unwrap();
            assert_eq!(relay.frame(ids[4]).await, "heard, too");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let all: usize = counts.iter().sum();
    let slowest = Duration::from_secs_f64((all * FRAME) as f64 / RATE as f64);
    assert!(began.elapsed() + limits::PACE_BURST >= slowest, "{counts:?}: faster than the pace");
    // Half of it; a quarter if each circuit had its turn.
    assert!(counts[3] * 8 >= all * 3, "{counts:?}");
}
