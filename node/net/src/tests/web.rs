//! Links over WebSocket: as good as TCP, and closed to what is no node.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_tungstenite::tungstenite::Message;

use super::circuits::{meet, through};
use super::guests::Echo;
use super::*;
use futures::SinkExt as _;

/// Signed by nobody whom anybody knows.
fn tls() -> TlsAcceptor {
    let chain = include_bytes!("../../../../bridge/src/webhooks/testdata/cert.pem");
    let key = include_bytes!("../../../../bridge/src/webhooks/testdata/key.pem");
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A port that nobody has, for a moment.
fn free() -> SocketAddr {
    let at = SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    std::net::TcpListener::bind(at).unwrap().local_addr().unwrap()
}

/// A node that takes links over WebSocket alone, and where.
pub(super) async fn web(name: u8, tls: Option<TlsAcceptor>) -> (Node, SocketAddr) {
    loop {
        let at = free();
        let web = Web { listen: vec![at], tls: tls.clone() };
        let wanted = Settings { listen: Vec::new(), web, ..settings(name, &[]) };
        // Another test may have taken the port.
        if let Ok((net, inbox)) = start(wanted).await {
            return (Node { net, inbox, seen: VecDeque::new() }, at);
        }
    }
}

/// A node that nobody can dial, with these seeds.
fn joins(name: u8, at: &[String]) -> Settings {
    let peers: Vec<PeerAddress> = at.iter().map(|at| at.parse().unwrap()).collect();
    Settings { listen: Vec::new(), ..settings(name, &peers) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_over_websocket_is_one_like_any_other() {
    for (scheme, tls) in [("ws", None), ("wss", Some(tls()))] {
        let (mut server, at) = web(1, tls).await;
        assert!(server.net.listening().is_empty(), "nobody is told of it but by a name");
        let mut client = run(joins(2, &[format!("{scheme}://{at}")])).await;
        let (here, there) = (client.net.node(), server.net.node());
        tokio::join!(client.up(there), server.up(here));
        let large = Bytes::from(vec![7; FRAME_BYTES_MAX]);
        for _ in 0..5 {
            client.net.send(&there, large.clone()).unwrap();
            assert_eq!(server.frame(here).await, large);
            server.net.send(&here, large.clone()).unwrap();
            assert_eq!(client.frame(there).await, large);
        }
        gossip_flows(&mut client, &mut server).await;
        client.net.ping(there).await.unwrap();
        let peers = client.net.peers();
        let peer = peers.iter().find(|peer| peer.node == Some(there)).unwrap();
        assert_eq!(peer.addresses[0].to_string(), format!("{scheme}://{at}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_looked_up_and_said_to_the_server() {
    let (mut server, at) = web(1, Some(tls())).await;
    let mut client = run(joins(2, &[format!("wss://localhost:{}", at.port())])).await;
    let (here, there) = (client.net.node(), server.net.node());
    tokio::join!(client.up(there), server.up(here));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_reach_a_relay_over_websocket_alone_talk_through_it() {
    let (relay, at) = web(1, Some(tls())).await;
    let mut a = run(joins(2, &[format!("wss://{at}")])).await;
    let mut b = run(joins(3, &[format!("wss://{at}")])).await;
    let (id_a, id_b) = (a.net.node(), b.net.node());
    assert_eq!(meet(&mut a, &mut b).await, relay.net.node());
    assert_eq!(through(&b, id_a), Some(relay.net.node()));
    a.net.send(&id_b, Bytes::from_static(b"by the web")).unwrap();
    assert_eq!(b.frame(id_a).await, "by the web");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announced_address_of_the_web_is_dialled_where_the_other_is_not_reached() {
    let (first, at) = web(1, None).await;
    drop(first);
    let closed = free();
    let announce = vec![closed.to_string().parse().unwrap(), format!("ws://{at}").parse().unwrap()];
    let web = Web { listen: vec![at], tls: None };
    let own = Settings { listen: Vec::new(), announce, web, ..settings(1, &[]) };
    let middle = run(settings(4, &[])).await;
    let known = Settings { peers: vec![middle.named()], ..own };
    let mut server = loop {
        // The port is free again in a moment.
        match start(known.clone()).await {
            Ok((net, inbox)) => break Node { net, inbox, seen: VecDeque::new() },
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let mut client = run(joins(2, &[middle.at().to_string()])).await;
    let there = server.net.node();
    client.up(there).await;
    server.up(client.net.node()).await;
    let is_direct = |it: &Node| {
        let peers = it.net.peers();
        peers
            .iter()
            .any(|peer| peer.node == Some(there) && peer.connected && peer.through.is_none())
    };
    client.until("it is reached directly", is_direct).await;
}

/// What an HTTP client hears that asks for this.
async fn heard(at: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(at).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = timeout(DEADLINE, socket.read_to_string(&mut text)).await;
    read.expect("it is hung up on").unwrap_or_default();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_no_node_is_hung_up_on_and_honest_ones_are_unharmed() {
    let (mut server, at) = web(1, None).await;
    let upgrade = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    let elsewhere = heard(at, &upgrade("/other")).await;
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
    let plain = heard(at, "GET /clawmesh HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(!plain.contains(" 101 "), "{plain}");
    assert_eq!(heard(at, "").await, "", "who says nothing is hung up on");
    // A header without end, and messages that are none of a link.
    let endless = format!("GET {WEB_PATH} HTTP/1.1\r\nX: {}", "x".repeat(1 << 20));
    assert!(!heard(at, &endless).await.contains(" 101 "));
    let messages = [
        Message::Text("hello".into()),
        Message::Binary(vec![0; crate::limits::WEB_MESSAGE_BYTES_MAX + 1].into()),
    ];
    for message in messages {
        let socket = TcpStream::connect(at).await.unwrap();
        let url = format!("ws://{at}{WEB_PATH}");
        let (mut web, _) = tokio_tungstenite::client_async(url, socket).await.unwrap();
        // It may be hung up on before all of it was taken.
        let _ = web.send(message).await;
        let end = async {
            while let Some(Ok(message)) = web.next().await {
                if message.is_close() {
                    break;
                }
            }
        };
        timeout(DEADLINE, end).await.expect("it is hung up on");
    }
    let mut client = run(joins(2, &[format!("ws://{at}")])).await;
    let (here, there) = (client.net.node(), server.net.node());
    tokio::join!(client.up(there), server.up(here));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_answered_over_websocket() {
    for (scheme, tls) in [("ws", None), ("wss", Some(tls()))] {
        let (mut server, at) = web(1, tls).await;
        let there: PeerAddress = format!("{scheme}://{at}").parse().unwrap();
        let there = PeerAddress { node: Some(server.net.node()), ..there };
        let (guest, invitation) = (Secret::from([9; 32]), Secret::from([77; 32]));
        let ask = async || ask_admission(&guest, &invitation, std::slice::from_ref(&there)).await;
        let unknown = ask().await;
        assert!(matches!(unknown, Err(AdmissionError::Unknown(_))), "{unknown:?}");
        server.net.invite(vec![([2; 8], invitation.clone())]);
        server.net.keep_door(Arc::new(Echo));
        let node = crate::listening::swarm(&settings(9, &[]), keys(), twins(), &here()).unwrap().1;
        assert_eq!(ask().await.unwrap(), [[2; 8].as_slice(), &node].concat());
        assert!(server.quiet().await.is_empty(), "the mesh hears nothing of it");
    }
    // Where no node is, it is told in the words of TCP.
    let nobody: PeerAddress = format!("ws://{}", free()).parse().unwrap();
    let (guest, invitation) = (Secret::from([9; 32]), Secret::from([77; 32]));
    match ask_admission(&guest, &invitation, &[nobody]).await {
        Err(AdmissionError::Unreachable(why)) => assert!(why.text.contains("refused"), "{why}"),
        other => panic!("{other:?}"),
    }
}
