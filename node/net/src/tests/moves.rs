//! A node that listens elsewhere is found there, and taken for the same.

use super::*;

pub(super) fn here() -> crate::machine::Here {
    crate::machine::Here::default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_listens_elsewhere_is_found_there() {
    let (mut a, mut b) = (run(settings(1, &[])).await, run(settings(2, &[])).await);
    let (id_a, id_b) = (a.net.node(), b.net.node());
    assert!(a.net.add_peers(vec![b.named()]));
    tokio::join!(a.up(id_b), b.up(id_a));
    let before = b.net.listening();
    assert!(b.net.listen(vec!["127.0.0.2:0".parse().unwrap()]));
    b.until("it listens elsewhere alone", |b| {
        let now = b.net.listening();
        now.len() == 1 && !before.contains(&now[0])
    })
    .await;
    let now = b.named();
    let knows = |it: &Node, at: &PeerAddress| {
        let peers = it.net.peers();
        peers.iter().any(|peer| peer.node == at.node && peer.addresses.contains(&at.address))
    };
    a.until("it hears of it", |a| knows(a, &now)).await;
    // The same again changes nothing; an address that is not this machine's is left out.
    let listening = b.net.listening();
    let nowhere: SocketAddr = "192.0.2.1:9".parse().unwrap();
    assert!(b.net.listen(vec!["127.0.0.2:0".parse().unwrap(), nowhere]));
    let mut c = run(settings(3, std::slice::from_ref(&now))).await;
    c.up(id_b).await;
    assert_eq!(b.net.listening(), listening);
    a.net.send(&id_b, Bytes::from_static(b"the link was not touched")).unwrap();
    assert_eq!(b.frame(id_a).await, "the link was not touched");
}

#[tokio::test]
async fn all_interfaces_are_listed_and_handles_dropped_stop_the_network() {
    let everywhere = vec!["0.0.0.0:0".parse().unwrap()];
    let node = run(Settings { listen: everywhere, ..settings(1, &[]) }).await;
    let listening = node.net.listening();
    assert!(!listening.is_empty());
    assert!(listening.iter().all(|at| !at.ip().is_unspecified() && at.port() > 0));
    let Node { net, mut inbox, .. } = node;
    drop(net);
    let end = timeout(DEADLINE, async { while inbox.recv().await.is_some() {} });
    end.await.expect("the inbox ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_trip_is_measured_with_one_that_is_there_and_with_nobody_else() {
    let mut a = run(settings(1, &[])).await;
    let mut b = run(settings(2, &[a.named()])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    assert!(matches!(a.net.ping(id_b).await, Err(NoEcho::NotConnected)));
    tokio::join!(a.up(id_b), b.up(id_a));
    // More than may be at once, one after the other.
    for _ in 0..20 {
        a.net.ping(id_b).await.unwrap();
    }
    b.net.shutdown().await;
    a.down(id_b).await;
    assert!(a.net.ping(id_b).await.is_err());
}
