//! Over real sockets, with a mesh in memory.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::http::StatusCode;
use futures::{SinkExt, StreamExt};
use mesh::name::number::Number;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;

use bridge::{
    Bridge, Config,
    dialect::{Dialect, Manners},
    limits,
    testing::{
        Fake, KEY, chat,
        echo::{self, Echo},
        keyed, lobby,
    },
};

use protocol::limits::LINE_BYTES_MAX;

use crate::{ClawChat, MANNERS};

mod files;
mod hostile;
mod http;
mod lingering;

/// Nothing in these tests takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

struct Node {
    fake: Arc<Fake>,
    bridge: Bridge,
    tcp: std::net::SocketAddr,
    http: std::net::SocketAddr,
    unix: PathBuf,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
}

impl Node {
    async fn start(config: Config) -> Node {
        Node::speaking(config, vec![Arc::new(ClawChat::new(lobby()))]).await
    }

    /// Whose clients are treated so.
    async fn patient(manners: Manners) -> Node {
        let clawchat = ClawChat::new(lobby()).with_manners(manners);
        Node::speaking(keyed(), vec![Arc::new(clawchat)]).await
    }

    async fn speaking(config: Config, dialects: Vec<Arc<dyn Dialect>>) -> Node {
        static SOCKETS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let (fake, hub) = Fake::new();
        let bridge = Bridge::new(config, hub, fake.clone(), dialects);
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nth = SOCKETS.fetch_add(1, Ordering::Relaxed);
        let unix =
            std::env::temp_dir().join(format!("bridge-test-{}-{nth}.sock", std::process::id()));
        drop(std::fs::remove_file(&unix));
        let socket = UnixListener::bind(&unix).unwrap();
        let (tcp_address, http_address) = (tcp.local_addr().unwrap(), http.local_addr().unwrap());
        let (stop, stopped) = watch::channel(false);
        let until = |mut stopped: watch::Receiver<bool>| async move {
            drop(stopped.wait_for(|stop| *stop).await);
        };
        let [one, two, three] = [stopped.clone(), stopped.clone(), stopped].map(until);
        let [a, b, c] = [bridge.clone(), bridge.clone(), bridge.clone()];
        let serving = vec![
            tokio::spawn(async move { a.serve_tcp(tcp, one).await }),
            tokio::spawn(async move { b.serve_unix(socket, two).await }),
            tokio::spawn(async move { c.serve_http(http, three).await.unwrap() }),
        ];
        Node { fake, bridge, tcp: tcp_address, http: http_address, unix, stop, serving }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        for serving in self.serving {
            timeout(PATIENCE, serving).await.expect("stops").unwrap();
        }
        drop(std::fs::remove_file(&self.unix));
    }

    async fn tcp(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.tcp).await.unwrap())
    }

    async fn agent(&self, name: &str) -> Client<TcpStream> {
        let mut client = self.tcp().await;
        client.register(name).await;
        client
    }

    async fn until(&self, what: &str, holds: impl Fn(&Node) -> bool) {
        let wait = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
    }

    /// Somebody without a connection says something in the lobby.
    fn say(&self, content: &str) {
        self.fake.tell(lobby(), "z", chat(lobby(), content));
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let answer = self.http("GET", path, &[("host", "localhost")], "").await;
        (answer.status, answer.body)
    }

    async fn http(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut io = TcpStream::connect(self.http).await.unwrap();
        let len = body.len();
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {len}\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        io.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, io.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
            text: body.to_owned(),
        }
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    /// Status line and headers, in lower case.
    head: String,
    body: Value,
    text: String,
}

impl Answer {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

struct Client<S> {
    io: BufReader<S>,
    /// Lines that were read while waiting for others.
    lines: Vec<Value>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    fn new(io: S) -> Client<S> {
        Client { io: BufReader::with_capacity(64 * 1024, io), lines: Vec::new() }
    }

    async fn raw(&mut self, bytes: &[u8]) {
        // The node may have closed the connection half-way.
        drop(self.io.get_mut().write_all(bytes).await);
    }

    async fn post(&mut self, id: &str, kind: &str, payload: Value) {
        let mut line = json!({"id": id, "type": kind, "payload": payload}).to_string();
        line.push('\n');
        self.raw(line.as_bytes()).await;
    }

    /// The next line; `None` at the end.
    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.io.read_line(&mut line)).await.expect("a line comes");
        (read.ok()? > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn find(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.lines.iter().position(&what) {
            return self.lines.remove(place);
        }
        loop {
            let line = self.line().await.expect("the connection is open");
            if what(&line) {
                return line;
            }
            self.lines.push(line);
        }
    }

    async fn event(&mut self, kind: &str) -> Value {
        self.find(|line| line["type"] == kind && line.get("reply_to").is_none()).await
    }

    async fn call(&mut self, kind: &str, payload: Value) -> Value {
        self.post(kind, kind, payload).await;
        let mut reply = self.find(|line| line["reply_to"] == kind).await;
        assert_ne!(reply["type"], "error", "{reply}");
        reply["payload"].take()
    }

    async fn register(&mut self, name: &str) {
        let payload = json!({"key": KEY, "name": name, "agent_id": name, "reconnect": true});
        self.call("register", payload).await;
    }

    async fn join_lobby(&mut self) {
        self.call("join_room", json!({"room_id": "lobby"})).await;
    }

    async fn is_closed(&mut self) -> bool {
        while let Some(line) = self.line().await {
            assert_eq!(line["type"], "ping", "{line}");
        }
        true
    }
}

async fn talk<A, B>(a: &mut Client<A>, b: &mut Client<B>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    a.join_lobby().await;
    b.join_lobby().await;
    let sent = a.call("send_message", json!({"room_id": "lobby", "content": "hi"})).await;
    assert_eq!(b.event("message_received").await["payload"], sent);
}

#[tokio::test]
async fn agents_talk_over_tcp_and_unix_sockets() {
    let node = Node::start(keyed()).await;
    let mut a = node.agent("a").await;
    let mut b = Client::new(UnixStream::connect(&node.unix).await.unwrap());
    b.register("b").await;
    talk(&mut a, &mut b).await;
    drop(b);
    assert_eq!(a.event("agent_left").await["payload"]["agent_id"], "b");
    node.until("b is gone", |node| node.bridge.agents() == 1).await;
    node.stop().await;
    assert!(a.find(|_| true).await.is_object(), "what was queued was written");
}

#[tokio::test]
async fn who_is_there_takes_turns_with_a_crowd_that_comes() {
    const CROWD: usize = 40;
    let node = Node::start(keyed()).await;
    for at in [node.tcp, node.http] {
        let before = node.bridge.taken();
        // Nothing else runs on this thread meanwhile: they all wait to be taken.
        let connect = |_| std::net::TcpStream::connect(at).unwrap();
        let crowd: Vec<std::net::TcpStream> = (0..CROWD).map(connect).collect();
        let turns = async {
            let mut taken = before;
            while taken < before + CROWD {
                tokio::task::yield_now().await;
                let now = node.bridge.taken();
                assert!(now <= taken + 1, "{} at once at {at}", now - taken);
                taken = now;
            }
        };
        timeout(PATIENCE, turns).await.unwrap();
        drop(crowd);
        node.until("they are gone", |node| node.bridge.taken() == before).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_worked_off_in_order() {
    let node = Node::start(keyed()).await;
    let mut a = node.tcp().await;
    let mut lines = Vec::new();
    for (id, kind, payload) in [
        ("1", "register", json!({"key": KEY, "name": "a"})),
        ("2", "join_room", json!({"room_id": "lobby"})),
        ("3", "send_message", json!({"room_id": "lobby", "content": "x"})),
        ("4", "get_history", json!({"room_id": "lobby"})),
    ] {
        lines.extend(json!({"id": id, "type": kind, "payload": payload}).to_string().bytes());
        lines.push(b'\n');
    }
    a.raw(&lines).await;
    let reply = a.find(|line| line["reply_to"] == "4").await;
    assert_eq!(reply["payload"]["messages"][0]["content"], "x");
    node.stop().await;
}

#[tokio::test]
async fn what_breaks_the_framing_ends_one_connection_only() {
    let node = Node::start(keyed()).await;
    let mut b = node.agent("b").await;
    let mut long = vec![b'x'; LINE_BYTES_MAX];
    long.push(b'\n');
    for bad in [&long[..], b"\xff\xfe\n"] {
        let mut a = node.agent("a").await;
        a.raw(bad).await;
        assert!(a.is_closed().await);
    }
    b.call("ping", json!({})).await;
    node.stop().await;
}

#[tokio::test]
async fn a_slow_reader_gets_everything_later_and_holds_up_nobody() {
    const MESSAGES: u64 = 20_000;
    let node = Node::start(keyed()).await;
    let mut slow = node.agent("slow").await;
    let mut quick = node.agent("quick").await;
    slow.join_lobby().await;
    quick.join_lobby().await;
    let text = "x".repeat(500);
    let seqs = async |client: &mut Client<TcpStream>, expect: std::ops::RangeInclusive<u64>| {
        for seq in expect {
            assert_eq!(client.event("message_received").await["payload"]["seq"], seq);
            client.lines.retain(|line| line["type"] == "message_received");
        }
    };
    for chunk in 0..MESSAGES / 100 {
        for _ in 0..100 {
            node.say(&text);
        }
        let (frames, bytes) = node.bridge.held();
        let max = limits::QUEUE_FRAMES_MAX + limits::SPILL_FRAMES_MAX;
        assert!(frames <= 2 * max, "{frames}");
        assert!(bytes <= 2 * (limits::QUEUE_BYTES_MAX + limits::SPILL_BYTES_MAX), "{bytes}");
        seqs(&mut quick, chunk * 100 + 1..=chunk * 100 + 100).await;
    }
    seqs(&mut slow, 1..=MESSAGES).await;
    node.say("live");
    seqs(&mut slow, MESSAGES + 1..=MESSAGES + 1).await;
    assert!(slow.lines.iter().all(|line| line["type"] != "message_received"), "none twice");
    node.stop().await;
}

#[tokio::test]
async fn who_takes_no_replies_is_not_read_and_not_forgotten() {
    let node = Node::start(keyed()).await;
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    for _ in 0..500 {
        node.say(&"x".repeat(1_000));
    }
    // Some 30 MB of replies, more than sockets hold; the requests fit.
    const ASKS: usize = 60;
    for _ in 0..ASKS {
        a.post("h", "get_history", json!({"room_id": "lobby", "limit": 500})).await;
    }
    let mut replies = 0;
    while replies < ASKS {
        let (_, bytes) = node.bridge.held();
        assert!(bytes <= limits::REPLY_BYTES_MAX + 2_000_000, "{bytes}");
        replies += usize::from(a.line().await.unwrap()["type"] == "history_result");
    }
    node.stop().await;
}

#[tokio::test]
async fn answers_become_replies_no_faster_than_they_are_taken() {
    let node = Node::start(keyed()).await;
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    let task = json!({"room_id": "lobby", "title": "t", "description": "x".repeat(4_000)});
    for _ in 0..100 {
        a.call("assign_task", task.clone()).await;
    }
    // Some 25 MB of replies, more than sockets hold; and the answers come all at once.
    node.fake.knobs.stalls.store(true, Ordering::Relaxed);
    for nth in 0..limits::CALLS_IN_FLIGHT_MAX {
        a.post(&nth.to_string(), "list_tasks", json!({"room_id": "lobby"})).await;
    }
    let all = limits::CALLS_IN_FLIGHT_MAX;
    node.until("all were asked", |node| node.fake.stalled() == all).await;
    node.fake.flow();
    let mut replies = 0;
    while replies < limits::CALLS_IN_FLIGHT_MAX {
        let (_, bytes) = node.bridge.held();
        assert!(bytes <= limits::REPLY_BYTES_MAX + 1_000_000, "{bytes}");
        replies += usize::from(a.line().await.unwrap()["type"] == "task_list");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_connection_that_does_not_register_is_closed() {
    // Long enough for the one that does register on a machine that stands still for a moment.
    let node = Node::patient(Manners { attach_within: Duration::from_secs(2), ..MANNERS }).await;
    let mut registered = node.agent("a").await;
    assert!(node.tcp().await.is_closed().await);
    registered.call("ping", json!({})).await;
    node.stop().await;
}

#[tokio::test]
async fn heartbeats_come_and_silence_is_the_end() {
    let heartbeat = Duration::from_millis(30);
    // The lively one must not be late on a machine that stands still for a moment.
    let silence = Duration::from_secs(2);
    let node = Node::patient(Manners { heartbeat, silence, ..MANNERS }).await;
    let (mut lively, mut silent) = (node.agent("lively").await, node.agent("silent").await);
    let ended = tokio::spawn(async move { silent.is_closed().await });
    while !ended.is_finished() {
        let ping = lively.event("ping").await;
        assert_eq!(ping["payload"], json!({"heartbeat": true}));
        let pong = json!({"type": "pong", "reply_to": ping["id"], "payload": {}});
        lively.raw(format!("{pong}\n").as_bytes()).await;
    }
    assert!(ended.await.unwrap());
    lively.call("ping", json!({})).await;
    node.until("silent is gone", |node| node.bridge.agents() == 1).await;
    node.stop().await;
}

#[tokio::test]
async fn a_refused_registration_is_answered_before_the_end() {
    let node = Node::start(keyed()).await;
    for (payload, code) in [
        (json!({"key": "wrong", "name": "x"}), "unauthorized"),
        (json!({"key": KEY, "name": "x", "protocol_version": 9}), "unsupported_protocol"),
    ] {
        let mut a = node.tcp().await;
        a.post("r", "register", payload).await;
        assert_eq!(a.find(|_| true).await["payload"]["code"], code);
        assert!(a.is_closed().await);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_newer_connection_of_the_agent_closes_the_older() {
    let node = Node::start(keyed()).await;
    let mut old = node.agent("a").await;
    old.join_lobby().await;
    let mut new = node.agent("a").await;
    while old.line().await.is_some() {}
    drop(old);
    new.call("send_message", json!({"room_id": "lobby", "content": "still here"})).await;
    assert_eq!(node.fake.members(lobby()), ["a"]);
    node.stop().await;
}

#[tokio::test]
async fn more_connections_than_allowed_are_told_so() {
    let mut config = keyed();
    config.connections_max = 1;
    let node = Node::start(config).await;
    let a = node.agent("a").await;
    let mut b = node.tcp().await;
    assert_eq!(b.find(|_| true).await["payload"]["code"], "internal_error");
    assert!(b.is_closed().await);
    let mut web = TcpStream::connect(node.http).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, web.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(a);
    node.until("a is gone", |node| node.bridge.agents() == 0).await;
    node.stop().await;
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

async fn websocket(node: &Node) -> Socket {
    tokio_tungstenite::connect_async(format!("ws://{}/ws", node.http)).await.unwrap().0
}

async fn heard(socket: &mut Socket) -> Value {
    let message = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    let text = message.into_text().unwrap();
    assert!(!text.ends_with('\n'));
    serde_json::from_str(&text).unwrap()
}

/// The code it is closed with; what comes before is dropped.
async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        match timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Close(frame) => return frame.expect("it says why").code.into(),
            Message::Text(_)
            | Message::Binary(_)
            | Message::Ping(_)
            | Message::Pong(_)
            | Message::Frame(_) => {}
        }
    }
}

#[tokio::test]
async fn a_websocket_speaks_the_same() {
    let node = Node::start(keyed()).await;
    let mut b = node.agent("b").await;
    b.join_lobby().await;
    let mut a = websocket(&node).await;
    for (line, kind) in [
        ("{\"type\":\"ping\",\"id\":\"1\"}\n", "pong"),
        (
            r#"{"type":"register","id":"2","payload":{"key":"the own key of the node, in tests","name":"a"}}"#,
            "ok",
        ),
        (r#"{"type":"join_room","id":"3","payload":{"room_id":"lobby"}}"#, "ok"),
        ("junk", "error"),
    ] {
        a.send(Message::text(line)).await.unwrap();
        assert_eq!(heard(&mut a).await["type"], kind);
    }
    a.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(heard(&mut a).await["type"], "error");
    let long = "x".repeat(60_000);
    b.call("send_message", json!({"room_id": "lobby", "content": long})).await;
    assert_eq!(heard(&mut a).await["payload"]["content"], long);
    a.send(Message::text("x".repeat(LINE_BYTES_MAX + 1))).await.unwrap();
    assert_eq!(close_code(&mut a).await, 1008, "a frame that is too large");
    drop(a);
    let mut stranger = websocket(&node).await;
    let wrong = r#"{"type":"register","payload":{"key":"wrong","name":"a"}}"#;
    stranger.send(Message::text(wrong)).await.unwrap();
    assert_eq!(heard(&mut stranger).await["payload"]["code"], "unauthorized");
    assert_eq!(close_code(&mut stranger).await, 1008);
    assert_eq!(b.event("agent_joined").await["payload"]["agent"]["name"], "a");
    b.event("agent_left").await;
    let mut c = websocket(&node).await;
    c.send(Message::text(r#"{"type":"ping"}"#)).await.unwrap();
    heard(&mut c).await;
    node.stop().await;
    assert_eq!(close_code(&mut c).await, 1001, "a node that stops says so");
}

#[tokio::test]
async fn a_dialect_has_its_own_manners_on_its_own_transports() {
    let node =
        Node::speaking(keyed(), vec![Arc::new(Echo::default()), Arc::new(ClawChat::new(lobby()))]);
    let node = node.await;
    let attach = r#"{"type":"echo","attach":"e"}"#;
    let ping = r#"{"type":"ping"}"#;
    let mut e = websocket(&node).await;
    e.send(Message::text(attach)).await.unwrap();
    assert_eq!(heard(&mut e).await["attached"], "e");
    e.send(Message::text(" ".repeat(echo::FRAME_BYTES_MAX))).await.unwrap();
    assert_eq!(heard(&mut e).await["refused"], r#""no JSON""#);
    e.send(Message::text(" ".repeat(echo::FRAME_BYTES_MAX + 1))).await.unwrap();
    assert_eq!(close_code(&mut e).await, 1009);
    let mut e = websocket(&node).await;
    e.send(Message::text(r#"{"type":"echo"}"#)).await.unwrap();
    e.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(close_code(&mut e).await, 1003);
    // It is less patient with strangers than the other one.
    let (mut e, mut c) = (websocket(&node).await, websocket(&node).await);
    c.send(Message::text(ping)).await.unwrap();
    e.send(Message::text(r#"{"type":"echo"}"#)).await.unwrap();
    assert_eq!(close_code(&mut e).await, 1008);
    c.send(Message::text(ping)).await.unwrap();
    assert_eq!(
        [heard(&mut c).await["type"].take(), heard(&mut c).await["type"].take()],
        ["pong"; 2]
    );
    // On a Unix socket it is not spoken.
    let mut unix = Client::new(UnixStream::connect(&node.unix).await.unwrap());
    unix.raw(format!("{attach}\n").as_bytes()).await;
    assert_eq!(unix.line().await.unwrap()["payload"]["code"], "invalid_payload");
    node.stop().await;
}

/// A message that is never whole is held until it is: of strangers only so much.
#[tokio::test]
async fn a_websocket_that_has_shown_no_key_does_not_make_a_node_hold_much() {
    let node = Node::start(keyed()).await;
    let large = "x".repeat(limits::STRANGER_WEBSOCKET_BYTES_MAX);
    let mut stranger = websocket(&node).await;
    // It may be cut while it is still sending.
    drop(stranger.send(Message::text(large.clone())).await);
    let answered = async {
        while let Some(Ok(message)) = stranger.next().await {
            if let Message::Text(text) = message {
                return Some(text);
            }
        }
        None
    };
    assert_eq!(timeout(PATIENCE, answered).await.unwrap(), None);
    let mut a = websocket(&node).await;
    let register =
        r#"{"type":"register","payload":{"key":"the own key of the node, in tests","name":"a"}}"#;
    a.send(Message::text(register)).await.unwrap();
    assert_eq!(heard(&mut a).await["type"], "ok");
    for _ in 0..3 {
        a.send(Message::text(large.clone())).await.unwrap();
        assert_eq!(heard(&mut a).await["type"], "error", "it is read, and is no request");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_agent_that_leaves_while_it_is_attached_does_not_stay() {
    let node = Node::start(keyed()).await;
    for nth in 0..50 {
        let mut a = node.tcp().await;
        let payload = json!({"key": KEY, "name": "a", "agent_id": format!("a{nth}")});
        a.post("r", "register", payload).await;
    }
    node.until("all are gone", |node| node.bridge.agents() == 0).await;
    node.until("all are detached", |node| node.fake.attached() == 0).await;
    assert_eq!(node.fake.say(lobby(), "z", "x"), Number(1));
    node.stop().await;
}

#[tokio::test]
async fn an_agent_whose_connection_ends_while_it_is_being_attached_is_detached() {
    let node = Node::start(keyed()).await;
    node.fake.knobs.stalls.store(true, Ordering::Relaxed);
    let mut a = node.tcp().await;
    a.post("r", "register", json!({"key": KEY, "name": "a"})).await;
    node.until("it is attached", |node| node.fake.attached() == 1).await;
    node.stop.send_replace(true);
    assert!(a.is_closed().await);
    node.fake.flow();
    node.until("it is detached", |node| node.fake.attached() == 0).await;
    node.stop().await;
}

/// Not a test: `cargo test -p clawchat serve_for_ten_minutes -- --ignored`.
#[tokio::test]
#[ignore = "serves the fake for a client by hand"]
async fn serve_for_ten_minutes() {
    let node = Node::start(keyed()).await;
    println!("TCP {} HTTP {} UNIX {}", node.tcp, node.http, node.unix.display());
    tokio::time::sleep(Duration::from_secs(600)).await;
    node.stop().await;
}
