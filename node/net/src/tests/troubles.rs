//! Each way in which a dial fails has a kind and words of its own.

use tokio::io::AsyncReadExt as _;

use super::*;

pub(super) fn twins() -> Arc<crate::twins::Twins> {
    Arc::new(crate::twins::Twins::new(0))
}

pub(super) fn trouble(peer: &PeerStatus) -> Option<Trouble> {
    peer.last_error.as_ref().map(|error| error.trouble)
}

/// The trouble of a node with the one that it dials there, and the words for it.
async fn dialling(at: &str) -> NoLink {
    let mut node = run(settings(2, &[at.parse().unwrap()])).await;
    let said = |it: &Node| it.net.peers()[0].last_error.clone();
    node.until("it says why not", |it| said(it).is_some()).await;
    let said = said(&node).unwrap();
    assert!(!said.text.contains('\n'), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_fail_is_told_in_its_own_words() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = closed.local_addr().unwrap().to_string();
    drop(closed);
    let refused = dialling(&at).await;
    assert_eq!(refused.trouble, Trouble::ConnectionRefused, "{refused}");
    assert!(refused.text.contains(&at) && refused.text.contains("refused"), "{refused}");
    let named = format!("{}@{at}", "01".repeat(32));
    assert_eq!(dialling(&named).await.trouble, Trouble::ConnectionRefused, "whoever is expected");
    let nowhere = dialling("no-such-host.invalid:1").await;
    assert_eq!(nowhere.trouble, Trouble::NameNotFound, "{nowhere}");
    assert!(nowhere.text.contains("no-such-host.invalid:1"), "{nowhere}");
    // This one takes connections and closes them.
    let closing = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = closing.local_addr().unwrap().to_string();
    tokio::spawn(async move { while closing.accept().await.is_ok() {} });
    assert_eq!(dialling(&at).await.trouble, Trouble::HungUp);
    // And this one has a language of its own.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = other.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = other.accept().await {
            use tokio::io::AsyncWriteExt as _;
            let _ = socket.write_all(&[b'x'; 100]).await;
            let _ = socket.read(&mut [0; 100]).await;
        }
    });
    let stranger = dialling(&at).await;
    assert_eq!(stranger.trouble, Trouble::WrongSecret, "{stranger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_at_the_address_is_told_as_such() {
    let a = run(settings(1, &[])).await;
    let expected = crate::listening::swarm(&settings(9, &[]), keys(), twins(), &here()).unwrap().1;
    let at = PeerAddress { node: Some(expected), ..a.at() };
    let other = dialling(&at.to_string()).await;
    assert_eq!(other.trouble, Trouble::OtherNode, "{other}");
}

#[test]
fn the_kind_of_several_addresses_is_of_the_one_that_came_furthest() {
    assert!(Trouble::ConnectionRefused > Trouble::TimedOut);
    assert!(Trouble::OldSecret > Trouble::WrongSecret);
    assert!(Trouble::WrongSecret > Trouble::ConnectionRefused);
}
