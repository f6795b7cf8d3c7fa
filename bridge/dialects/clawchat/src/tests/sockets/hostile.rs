//! Clients that mean harm, or do not know what they do: each costs itself its connection, and nobody else anything.

use super::*;

/// After a node has taken a WebSocket: bytes as they are.
struct Raw(TcpStream);

impl Raw {
    /// Shakes hands; `more` comes in the same packet as the request.
    async fn open(node: &Node, more: &[u8]) -> Raw {
        let mut io = TcpStream::connect(node.http).await.unwrap();
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
            node.http
        );
        io.write_all(&[request.as_bytes(), more].concat()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(PATIENCE, io.read_u8()).await.unwrap().unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        Raw(io)
    }

    async fn send(&mut self, bytes: &[u8]) {
        // The node may have closed it already.
        drop(self.0.write_all(bytes).await);
    }

    /// What comes until the node closes it: it has to.
    async fn rest(&mut self) -> Vec<u8> {
        let (mut all, mut some) = (Vec::new(), [0; 4096]);
        loop {
            match timeout(PATIENCE, self.0.read(&mut some)).await.expect("it is closed") {
                Ok(0) | Err(_) => return all,
                Ok(read) => all.extend(&some[..read]),
            }
        }
    }

    /// The first byte and the payload of the next frame.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let (first, length) = (self.0.read_u8().await?, self.0.read_u8().await?);
            let length = match length {
                126 => usize::from(self.0.read_u16().await?),
                127 => panic!("it is not that large"),
                length => usize::from(length),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await?;
            std::io::Result::Ok((first, payload))
        };
        timeout(PATIENCE, read).await.unwrap().unwrap()
    }
}

/// A frame as clients send it, masked with zeros.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

const PING: &[u8] = br#"{"type":"ping","id":"1"}"#;

#[tokio::test]
async fn what_is_no_websocket_frame_ends_its_connection_and_nothing_else() {
    let node = Node::start(keyed()).await;
    let mut other = node.agent("other").await;
    other.join_lobby().await;
    let oddities: [(&str, Vec<u8>); 9] = [
        ("not masked", [&[0x81, 24][..], PING].concat()),
        ("a reserved bit, as of compression", masked(0xc1, PING)),
        ("an opcode that there is not", masked(0x83, PING)),
        ("text that is not UTF-8", masked(0x81, &[0xff, 0xfe])),
        ("a message of 2^63 bytes", vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("a message just over the limit", {
            let length = (LINE_BYTES_MAX as u64 + 2).to_be_bytes();
            [&[0x81, 0xff][..], &length, &[0; 4]].concat()
        }),
        ("a continuation of nothing", masked(0x80, PING)),
        ("a ping in pieces", masked(0x09, b"a")),
        ("HTTP where frames are", b"GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in oddities {
        let mut raw = Raw::open(&node, b"").await;
        raw.send(&bytes).await;
        let rest = raw.rest().await;
        assert!(!rest.starts_with(b"HTTP"), "{what}: {}", String::from_utf8_lossy(&rest));
        other.call("ping", json!({})).await;
    }
    // A frame, a message, or a connection that ends in the middle.
    let middle = [&masked(0x81, PING)[..9], &masked(0x01, PING)[..], b""];
    for bytes in middle {
        let mut raw = Raw::open(&node, b"").await;
        raw.send(bytes).await;
        raw.0.shutdown().await.unwrap();
        raw.rest().await;
    }
    let open = |node: &Node| node.bridge.counters().connections(bridge::Transport::WebSocket).0;
    node.until("no connection is left over", |node| open(node) == 0).await;
    other.call("send_message", json!({"room_id": "lobby", "content": "still here"})).await;
    node.stop().await;
}

#[tokio::test]
async fn pieces_with_pings_between_are_one_message() {
    let node = Node::start(keyed()).await;
    // The first frame comes with the handshake: it is not HTTP any more.
    let mut raw = Raw::open(&node, &masked(0x01, &PING[..8])).await;
    raw.send(&masked(0x89, b"between")).await;
    raw.send(&masked(0x00, &PING[8..20])).await;
    raw.send(&masked(0x00, b"")).await;
    raw.send(&masked(0x80, &PING[20..])).await;
    let (first, payload) = raw.frame().await;
    assert_eq!((first, &payload[..]), (0x8a, &b"between"[..]));
    let (first, payload) = raw.frame().await;
    let pong: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!((first, &pong["type"], &pong["reply_to"]), (0x81, &json!("pong"), &json!("1")));
    // A close is answered, and that is all.
    raw.send(&masked(0x88, &1_000_u16.to_be_bytes())).await;
    let (first, _) = raw.frame().await;
    assert_eq!(first, 0x88);
    assert!(raw.rest().await.is_empty());
    node.stop().await;
}

#[tokio::test]
async fn who_sends_pings_and_takes_no_pongs_keeps_nobody_waiting() {
    let node = Node::start(keyed()).await;
    let mut other = node.agent("other").await;
    let mut flooding = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::open(&node, b"").await;
        flooding.push(tokio::spawn(async move {
            let pings = masked(0x89, &[7; 125]).repeat(512);
            // Until the node does not read on, or has closed it.
            while let Ok(Ok(())) =
                timeout(Duration::from_millis(300), raw.0.write_all(&pings)).await
            {}
        }));
        other.call("ping", json!({})).await;
    }
    for flood in flooding {
        other.call("ping", json!({})).await;
        flood.abort();
        drop(flood.await);
    }
    other.join_lobby().await;
    other.call("send_message", json!({"room_id": "lobby", "content": "still here"})).await;
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_http_ends_its_connection_and_nothing_else() {
    let node = Node::start(keyed()).await;
    let mut other = node.agent("other").await;
    let long = [b"GET /".to_vec(), vec![b'a'; 2 * limits::HTTP_HEAD_BYTES_MAX]].concat();
    let oddities: [(&str, Vec<u8>); 5] = [
        ("TLS", [vec![0x16, 3, 1, 2, 0], vec![7; 512]].concat()),
        ("a line of our own protocol", b"{\"type\":\"ping\"}\n".to_vec()),
        ("a head without end", long),
        ("two lengths", b"POST /api/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!".to_vec()),
        (
            "an upgrade with a body behind which another request hides",
            b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/status HTTP/1.1\r\n\r\n"
                .to_vec(),
        ),
    ];
    for (what, bytes) in oddities {
        let mut io = TcpStream::connect(node.http).await.unwrap();
        drop(io.write_all(&bytes).await);
        drop(io.shutdown().await);
        let rest = Raw(io).rest().await;
        let text = String::from_utf8_lossy(&rest);
        let answers = text.matches("HTTP/1.1 ").count();
        let good = text.contains("HTTP/1.1 200") || text.contains("HTTP/1.1 101");
        assert!(answers <= 1 && !good, "{what}: {text}");
        other.call("ping", json!({})).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn lines_of_a_megabyte_in_a_row_are_answered_or_end_their_connection() {
    const LINES: usize = 6;
    let node = Node::start(keyed()).await;
    let mut other = node.agent("other").await;
    other.join_lobby().await;
    // Whoever has registered is told each time what is wrong with it, or that it is taken.
    let mut large = node.agent("large").await;
    large.join_lobby().await;
    let content = "y".repeat(LINE_BYTES_MAX - 200);
    for _ in 0..LINES {
        large.post("1", "send_message", json!({"room_id": "lobby", "content": content})).await;
        let reply = large.find(|line| line["reply_to"] == "1").await;
        assert!(reply["type"] == "ok" || reply["payload"]["code"].is_string(), "{reply}");
        other.call("ping", json!({})).await;
    }
    // Whoever has not is not read to the end.
    for _ in 0..LINES {
        let mut stranger = node.tcp().await;
        let line = [vec![b'z'; LINE_BYTES_MAX - 1], vec![b'\n']].concat();
        drop(stranger.io.get_mut().write_all(&line).await);
        // It may be told why before.
        Raw(stranger.io.into_inner()).rest().await;
        other.call("ping", json!({})).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn connections_beyond_what_there_may_be_do_not_keep_agents_from_their_work() {
    const MAX: usize = 40;
    let mut config = keyed();
    config.connections_max = MAX;
    let node = Node::start(config).await;
    let mut agent = node.agent("agent").await;
    agent.join_lobby().await;
    // Half of them say half a line; none says a whole one.
    let mut held = Vec::new();
    for nth in 0..3 * MAX {
        let mut io = UnixStream::connect(&node.unix).await.unwrap();
        if nth % 2 == 0 {
            drop(io.write_all(b"{\"type\":").await);
        }
        held.push(io);
    }
    node.until("some are turned away", |node| {
        node.bridge.counters().turned_away() >= 2 * MAX as u64 - MAX as u64 / 2
    })
    .await;
    for nth in 0..10 {
        let content = format!("message {nth}");
        agent.call("send_message", json!({"room_id": "lobby", "content": content})).await;
    }
    // As soon as they are gone, whoever comes is let in.
    drop(held);
    let open = |node: &Node| node.bridge.counters().connections(bridge::Transport::Unix).0;
    node.until("they are gone", |node| open(node) == 0).await;
    let mut late = node.agent("late").await;
    late.join_lobby().await;
    node.stop().await;
}
