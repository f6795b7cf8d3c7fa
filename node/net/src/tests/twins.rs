//! Two nodes with one identity.

use super::*;

/// The one that is told and the one that tells know it while both run, whichever of the two is which.
#[tokio::test(flavor = "multi_thread")]
async fn twins_are_named_at_both_and_at_their_peer() {
    let mut peer = run(settings(1, &[])).await;
    let mut a = run(settings(2, &[peer.named()])).await;
    peer.up(a.net.node()).await;
    a.up(peer.net.node()).await;
    let named = |it: &Node| it.net.peers().iter().any(|peer| peer.runs_twice);
    assert!(!named(&peer) && !a.net.runs_twice(), "there is one");
    let mut b = run(settings(2, &[peer.named()])).await;
    peer.until("it knows of both", named).await;
    a.until("the first knows", |a| a.net.runs_twice()).await;
    b.until("the second knows", |b| b.net.runs_twice()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_again_is_no_twin() {
    let mut peer = run(settings(1, &[])).await;
    for _ in 0..3 {
        let mut a = run(settings(2, &[peer.named()])).await;
        peer.up(a.net.node()).await;
        a.up(peer.net.node()).await;
        assert!(!a.net.runs_twice());
        a.net.shutdown().await;
        peer.down(crate::listening::swarm(&settings(2, &[]), keys(), twins(), &here()).unwrap().1)
            .await;
    }
    assert!(peer.net.peers().iter().all(|peer| !peer.runs_twice));
}
