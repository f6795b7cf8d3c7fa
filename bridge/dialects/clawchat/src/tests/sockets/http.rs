//! What is served over HTTP, and to whom.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::http::StatusCode;
use mesh::{
    api::command::{Command, Outcome, Refused},
    name::id::{KeyPrint, RoomId},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{self, client::IntoClientRequest};

use super::{Answer, Node, PATIENCE};
use bridge::{
    Bridge, Config, Tls,
    config::{AdminSecret, Quota, Signup},
    dialect::Dialect,
    limits,
    testing::{Fake, KEY, echo::Echo, keyed, lobby},
};

use crate::ClawChat;

const HERE: (&str, &str) = ("host", "127.0.0.1:80");

#[tokio::test]
async fn a_web_page_connects_only_from_an_allowed_origin() {
    let mut config = keyed();
    config.origins.push("https://good.example".into());
    let node = Node::start(config).await;
    let connect = async |origin: &str| {
        let mut request = format!("ws://{}/ws", node.http).into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        tokio_tungstenite::connect_async(request).await
    };
    assert!(connect("https://good.example").await.is_ok());
    for bad in ["https://evil.example", "null", "https://good.example.evil.example"] {
        let Err(tungstenite::Error::Http(answer)) = connect(bad).await else {
            panic!("{bad} was let in")
        };
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
    node.stop().await;
}

#[tokio::test]
async fn pages_of_allowed_origins_and_no_others_may_ask() {
    let mut config = keyed();
    config.origins.push("https://good.example".into());
    let node = Node::start(config).await;
    let (good, evil) = (("origin", "https://good.example"), ("origin", "https://evil.example"));
    for (method, path) in [("GET", "/api/status"), ("POST", "/api/keys"), ("OPTIONS", "/api/rooms")]
    {
        for headers in [&[HERE, evil][..], &[HERE, ("origin", "null")], &[HERE, good, evil]] {
            let answer = node.http(method, path, headers, "").await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path} {headers:?}");
            assert!(!answer.head.contains("access-control"), "{answer:?}");
        }
    }
    let answer = node.http("GET", "/api/status", &[HERE, good], "").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.has("access-control-allow-origin: https://good.example"), "{answer:?}");
    assert!(answer.has("vary: origin"), "{answer:?}");
    let preflight = [HERE, good, ("access-control-request-method", "GET")];
    let answer = node.http("OPTIONS", "/api/agents", &preflight, "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert!(answer.has("access-control-allow-origin: https://good.example"), "{answer:?}");
    assert!(answer.head.contains("x-clawchat-key"), "{answer:?}");
    node.stop().await;
}

#[tokio::test]
async fn a_name_that_was_pointed_at_the_node_gets_nothing_to_read() {
    let mut config = keyed();
    config.hosts.push("node.lan".into());
    let node = Node::start(config).await;
    let ask =
        async |path: &str, host: &str| node.http("GET", path, &[("host", host)], "").await.status;
    for path in ["/api/status", "/api/rooms", "/api/rooms/lobby/history", "/api/agents"] {
        assert_eq!(ask(path, "evil.example").await, StatusCode::FORBIDDEN, "{path}");
        assert_ne!(ask(path, "node.lan:9230").await, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(ask("/api/status", "[::1]:9230").await, StatusCode::OK);
    assert_eq!(ask("http://evil.example/api/status", "localhost").await, StatusCode::FORBIDDEN);
    assert_eq!(ask("/healthz", "probe").await, StatusCode::OK);
    node.stop().await;
}

/// A node with pages of two dialects.
async fn of_two_dialects(config: Config) -> Node {
    Node::speaking(config, vec![Arc::new(Echo::default()), Arc::new(ClawChat::new(lobby()))]).await
}

#[tokio::test]
async fn a_path_is_answered_by_the_dialect_that_owns_it() {
    let node = of_two_dialects(keyed()).await;
    let refused = json!({"refused": "nothing here"});
    assert_eq!(node.get("/echo/a/b/c").await, (StatusCode::NOT_FOUND, refused));
    assert_eq!(node.http("PUT", "/echo/7", &[HERE], "").await.body, json!(7));
    assert_eq!(node.http("POST", "/echo/7", &[HERE], "").await.status.as_u16(), 405);
    for unowned in ["/api/nothing", "/nothing", "/echo"] {
        assert_eq!(node.get(unowned).await, (StatusCode::NOT_FOUND, Value::Null), "{unowned}");
    }
    assert_eq!(node.get("/api/status").await.0, StatusCode::OK);
    assert_eq!(node.get("/healthz").await.0, StatusCode::OK);
    node.stop().await;
}

#[tokio::test]
async fn a_preflight_and_a_refusal_are_those_of_the_dialect_that_owns_the_path() {
    let mut config = keyed();
    config.origins.push("https://good.example".into());
    let node = of_two_dialects(config).await;
    let preflight =
        [HERE, ("origin", "https://good.example"), ("access-control-request-method", "GET")];
    let clawchat = (
        "get, post, put, delete",
        "content-type, x-clawchat-admin, x-clawchat-key, authorization, x-clawmesh-agent",
    );
    let echo = ("post, put", "content-type, x-echo");
    for (path, (methods, headers)) in
        [("/echo/7", echo), ("/api/rooms", clawchat), ("/ws", clawchat), ("/nothing", clawchat)]
    {
        let answer = node.http("OPTIONS", path, &preflight, "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert!(answer.has(&format!("access-control-allow-methods: {methods}")), "{answer:?}");
        assert!(answer.has(&format!("access-control-allow-headers: {headers}")), "{answer:?}");
    }
    let evil = ("host", "evil.example");
    for (headers, why) in [(&[HERE, ("origin", "null")][..], "Origin"), (&[evil][..], "Name")] {
        let answer = node.http("PUT", "/echo/7", headers, "").await;
        assert_eq!((answer.status, &answer.body["refused"]), (StatusCode::FORBIDDEN, &json!(why)));
        let answer = node.http("GET", "/api/status", headers, "").await;
        assert_eq!(answer.body["code"], "access_denied");
    }
    assert_eq!(node.http("GET", "/metrics", &[evil], "").await.status, StatusCode::FORBIDDEN);
    assert_eq!(node.get("/metrics").await.0, StatusCode::NOT_FOUND, "it has none");
    node.stop().await;
}

#[tokio::test]
async fn an_agent_without_a_connection_speaks_as_others_do() {
    let mut config = keyed();
    config.quotas.own = Quota { messages_per_minute: Some(2), content_bytes_max: 4 };
    let node = of_two_dialects(config).await;
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    let visit = async |path: &str| node.http("POST", &format!("/echo/{path}"), &[HERE], "").await;
    assert_eq!(visit("v/hey").await.body, json!(1));
    assert_eq!(a.event("agent_joined").await["payload"]["agent"]["agent_id"], "v");
    let heard = a.event("message_received").await["payload"].take();
    assert_eq!((&heard["agent_id"], &heard["content"]), (&json!("v"), &json!("hey")));
    a.event("agent_left").await;
    node.until("it is detached", |node| node.fake.attached() == 1).await;
    let refused = async |path: &str| visit(path).await.body["refused"].take();
    assert_eq!(refused("v/hello").await, "ContentTooLarge { max: 4 }");
    assert_eq!(refused("-/hey").await, "NotAttached", "a key has no name to speak under");
    assert_eq!(refused("a/hey").await, "Mesh(AgentTaken(\"a\"))", "it takes nobody's place");
    a.call("send_message", json!({"room_id": "lobby", "content": "ho"})).await;
    node.until("it is detached", |node| node.fake.attached() == 1).await;
    assert_eq!(refused("v/hey").await, "TooFast { per_minute: 2 }", "counted with the other's");
    node.until("it is detached", |node| node.fake.attached() == 1).await;
    // A client that hangs up while its agent is attached leaves none behind.
    node.fake.knobs.stalls.store(true, Ordering::Relaxed);
    let mut io = TcpStream::connect(node.http).await.unwrap();
    io.write_all(b"POST /echo/w/x HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    node.until("it is attached", |node| node.fake.attached() == 2).await;
    drop(io);
    tokio::time::sleep(Duration::from_millis(50)).await;
    node.fake.flow();
    node.until("it is detached", |node| node.fake.attached() == 1).await;
    node.stop().await;
}

#[tokio::test]
async fn two_dialects_with_the_same_paths_are_not_served() {
    let (fake, hub) = Fake::new();
    let dialects: Vec<Arc<dyn Dialect>> =
        vec![Arc::new(Echo::default()), Arc::new(Echo::default())];
    let bridge = Bridge::new(keyed(), hub, fake, dialects);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = bridge.serve_http(listener, std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "two dialects have pages under /echo/");
}

#[tokio::test]
async fn http_shows_health_status_and_public_rooms() {
    let node = Node::start(keyed()).await;
    assert_eq!(node.get("/healthz").await.0, StatusCode::OK);
    assert_eq!(node.get("/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
    node.bridge.set_ready(true);
    assert_eq!(node.get("/readyz").await.0, StatusCode::OK);
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    let sent = a.call("send_message", json!({"room_id": "lobby", "content": "x"})).await;
    let private = a.call("create_room", json!({"name": "p"})).await["room_id"].clone();
    let private = private.as_str().unwrap();
    let status = json!({"status": "ok", "agents_connected": 1, "rooms": 2});
    assert_eq!(node.get("/api/status").await, (StatusCode::OK, status));
    let (_, rooms) = node.get("/api/rooms").await;
    assert_eq!(rooms["rooms"].as_array().unwrap().len(), 1);
    let (_, page) = node.get("/api/rooms/lobby/history").await;
    assert_eq!(page["messages"], json!([sent]));
    assert_eq!(node.get("/api/rooms/lobby/messages/1").await, (StatusCode::OK, sent));
    let nowhere = RoomId([77; 16]);
    for (path, status) in [
        ("lobby/messages/2".into(), StatusCode::NOT_FOUND),
        ("lobby/messages/x".into(), StatusCode::BAD_REQUEST),
        ("nonsense/history".into(), StatusCode::NOT_FOUND),
        (format!("{nowhere}/messages/1"), StatusCode::NOT_FOUND),
        (format!("{private}/history"), StatusCode::FORBIDDEN),
        (format!("{private}/messages/1"), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(node.get(&format!("/api/rooms/{path}")).await.0, status, "{path}");
    }
    node.stop().await;
}

#[tokio::test]
async fn strangers_see_no_print_of_a_key_no_address_of_a_commit_and_nothing_that_stays_in_its_room()
{
    let node = Node::start(keyed()).await;
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    let print = "0123456789abcdef";
    let person = format!("u-{print}-ada");
    let git = json!({"commit_info": {"author": {"name": "n", "email": "n@example.org"}}});
    let say = async |a: &mut super::Client<TcpStream>, content: &str, metadata: Value| {
        let payload = json!({"room_id": "lobby", "content": content, "metadata": metadata});
        a.call("send_message", payload).await
    };
    let all = [
        say(&mut a, &format!("so, @{person}"), json!({"kind": "chat", "for": person})).await,
        say(&mut a, "a commit", json!({"kind": "git.commit", "git": git})).await,
        say(&mut a, "among us", json!({"visibility": "room_only"})).await,
    ];
    a.call("create_room", json!({"name": "p", "public": true, "description": person})).await;
    let history = "/api/rooms/lobby/history";
    let (_, page) = node.get(history).await;
    let messages = page["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{page}");
    assert_eq!(messages[0]["content"], "so, @ada");
    assert_eq!(messages[0]["metadata"]["for"], "ada");
    let author = |message: &Value| message["metadata"]["git"]["commit_info"]["author"].clone();
    assert_eq!(author(&messages[1]), json!({"name": "n"}));
    let (_, rooms) = node.get("/api/rooms").await;
    assert!(rooms.to_string().contains("ada") && !rooms.to_string().contains(print), "{rooms}");
    for (seq, message) in (1..).zip(&all) {
        let path = format!("/api/rooms/lobby/messages/{seq}");
        let (status, shown) = node.get(&path).await;
        assert_eq!(status == StatusCode::OK, seq < 3, "{shown}");
        assert!(!shown.to_string().contains(print) && author(&shown).get("email").is_none());
        let own = node.http("GET", &path, &[HERE, ("x-clawchat-key", KEY)], "").await;
        assert_eq!((own.status, &own.body), (StatusCode::OK, message));
    }
    let own = node.http("GET", history, &[HERE, ("x-clawchat-key", KEY)], "").await;
    assert_eq!(own.body["messages"], json!(all));
    node.stop().await;
}

#[tokio::test]
async fn agents_are_shown_to_their_key() {
    let node = Node::start(keyed()).await;
    let _a = node.agent("a").await;
    let ask = async |key: &str| {
        node.http("GET", "/api/agents", &[HERE, ("x-clawchat-key", key)], "").await
    };
    let answer = ask(KEY).await;
    assert_eq!(
        (answer.status, &answer.body["agents"][0]["agent_id"]),
        (StatusCode::OK, &json!("a"))
    );
    let unauthorized = (StatusCode::UNAUTHORIZED, &json!("unauthorized"));
    let long = "k".repeat(limits::KEY_BYTES_MAX + 1);
    for wrong in ["nope", "", &long] {
        let answer = ask(wrong).await;
        assert_eq!((answer.status, &answer.body["code"]), unauthorized, "{wrong}");
    }
    let answer = node.http("GET", "/api/agents", &[HERE], "").await;
    assert_eq!((answer.status, &answer.body["code"]), unauthorized);
    node.stop().await;
}

#[tokio::test]
async fn where_strangers_do_not_read_a_key_is_shown_in_one_of_two_ways() {
    let node = Node::start(Config { strangers_read: false, ..keyed() }).await;
    let mut a = node.agent("a").await;
    a.join_lobby().await;
    a.call("send_message", json!({"room_id": "lobby", "content": "x"})).await;
    let bearer = format!("Bearer {KEY}");
    for (path, found) in [
        ("/api/rooms", StatusCode::OK),
        ("/api/rooms/lobby/history", StatusCode::OK),
        ("/api/rooms/lobby/messages/1", StatusCode::OK),
        ("/api/rooms/nonsense/history", StatusCode::NOT_FOUND),
    ] {
        let ask = async |shown: &[(&str, &str)]| {
            node.http("GET", path, &[&[HERE], shown].concat(), "").await
        };
        for none in [&[][..], &[("x-clawchat-key", "nope")], &[("authorization", "Bearer nope")]] {
            let answer = ask(none).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}: {answer:?}");
            assert_eq!(answer.body["code"], "unauthorized");
        }
        for shown in [("x-clawchat-key", KEY), ("authorization", &bearer)] {
            assert_eq!(ask(&[shown]).await.status, found, "{path}");
        }
    }
    // This is about rooms alone.
    for open in ["/healthz", "/readyz", "/api/status"] {
        assert_ne!(node.get(open).await.0, StatusCode::UNAUTHORIZED, "{open}");
    }
    node.stop().await;
}

fn signup(signup: Signup) -> Config {
    Config { signup, ..keyed() }
}

async fn mint(node: &Node, headers: &[(&str, &str)], body: &str) -> Answer {
    node.http("POST", "/api/keys", headers, body).await
}

#[tokio::test]
async fn a_key_is_made_and_is_valid_at_once() {
    let node = Node::start(signup(Signup::Open)).await;
    let answer = mint(&node, &[], r#"{"label":"ours","more":1}"#).await;
    assert_eq!((answer.status, &answer.body["tier"]), (StatusCode::CREATED, &json!("free")));
    assert!(answer.has("cache-control: no-store"), "{answer:?}");
    let key = answer.body["api_key"].as_str().unwrap();
    assert_eq!(key.len(), 64);
    let Ok(Outcome::Keys(keys)) = node.fake.does(Command::ListKeys) else { panic!("no keys") };
    assert_eq!((keys[0].key, keys[0].terms.label.as_deref()), (KeyPrint::of(key), Some("ours")));
    let answer = node.http("GET", "/api/agents", &[HERE, ("x-clawchat-key", key)], "").await;
    assert_eq!((answer.status, answer.body), (StatusCode::OK, json!({"agents": []})));
    let mut client = node.tcp().await;
    client.call("register", json!({"key": key, "name": "n"})).await;
    for body in ["", " ", "{}", r#"{"label":null}"#] {
        assert_eq!(mint(&node, &[], body).await.status, StatusCode::CREATED);
    }
    node.stop().await;
}

#[tokio::test]
async fn who_may_have_no_key_is_told_why() {
    let node = Node::start(keyed()).await;
    assert_eq!(node.http("POST", "/api/keys", &[], "").await.status, StatusCode::FORBIDDEN);
    node.stop().await;
    let node = Node::start(signup(Signup::Admin(AdminSecret::new("s3cret")))).await;
    for headers in [&[][..], &[("x-clawchat-admin", "")], &[("x-clawchat-admin", "s3cre")]] {
        let answer = mint(&node, headers, "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{headers:?}");
    }
    let shown = [("x-clawchat-admin", "s3cret")];
    for _ in 0..=limits::SIGNUPS_PER_HOUR_MAX {
        assert_eq!(mint(&node, &shown, "").await.status, StatusCode::CREATED);
    }
    let full = Refused::Full("no more keys".into());
    *node.fake.knobs.script.lock().unwrap() = Some(Err(full));
    assert_eq!(mint(&node, &shown, "").await.status, StatusCode::INTERNAL_SERVER_ERROR);
    for bad in ["x", "[]", r#"{"label":1}"#, r#"{"label":"\u0007"}"#] {
        let answer = node.http("POST", "/api/keys", &shown, bad).await;
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_payload"))
        );
    }
    let large = format!(r#"{{"label":"{}"}}"#, "x".repeat(crate::limits::HTTP_BODY_BYTES_MAX));
    let answer = node.http("POST", "/api/keys", &shown, &large).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    node.stop().await;
}

#[tokio::test]
async fn an_address_has_its_keys_and_no_more() {
    let mut config = signup(Signup::Open);
    config.trusted_proxies.push("127.0.0.1".parse().unwrap());
    let node = Node::start(config).await;
    let ask = async |from: &str| mint(&node, &[("x-forwarded-for", from)], "").await;
    for _ in 0..limits::SIGNUPS_PER_HOUR_MAX {
        assert_eq!(ask("9.9.9.9, 1.2.3.4").await.status, StatusCode::CREATED);
    }
    let answer = ask("8.8.8.8, 1.2.3.4").await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.head.contains("retry-after: "), "{answer:?}");
    assert_eq!(ask("1.2.3.5").await.status, StatusCode::CREATED);
    node.stop().await;
    let node = Node::start(signup(Signup::Open)).await;
    for nth in 0..=limits::SIGNUPS_PER_HOUR_MAX {
        let from = format!("1.2.3.{nth}");
        let answer = mint(&node, &[("x-forwarded-for", &from)], "").await;
        let too_many = nth == limits::SIGNUPS_PER_HOUR_MAX;
        let expect = if too_many { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::CREATED };
        assert_eq!(answer.status, expect, "nobody who is not trusted is believed");
    }
    node.stop().await;
}

#[tokio::test]
async fn connections_that_ask_for_nothing_in_time_are_closed() {
    let mut config = signup(Signup::Open);
    // Those that ask for something are served within, also on a machine that stands still.
    config.http_request_within = Duration::from_secs(2);
    let node = Node::start(config).await;
    let unfinished = "POST /api/keys HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{";
    for (sent, status) in [
        ("", ""),
        ("GET /healthz HTTP/1.1\r\nho", ""),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 200 "),
        ("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\nGET /", "HTTP/1.1 200 "),
        (unfinished, "HTTP/1.1 408 "),
    ] {
        let mut io = TcpStream::connect(node.http).await.unwrap();
        io.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, io.read_to_string(&mut answer)).await.expect(sent).unwrap();
        assert!(answer.starts_with(status), "{sent:?}: {answer}");
        assert_eq!(answer.is_empty(), status.is_empty(), "{sent:?}: {answer}");
    }
    node.stop().await;
}

#[tokio::test]
async fn so_many_connections_that_are_no_websockets_and_no_more() {
    let mut config = keyed();
    config.http_connections_max = 1;
    let node = Node::start(config).await;
    let connect = || tokio_tungstenite::connect_async(format!("ws://{}/ws", node.http));
    let first = connect().await.expect("it is one until it is a WebSocket");
    // The task that served it as plain HTTP ends in its own time.
    let second = async {
        loop {
            match connect().await {
                Ok(second) => break second,
                Err(tungstenite::Error::Http(answer)) => assert_eq!(answer.status(), 503),
                Err(error) => panic!("{error}"),
            }
        }
    };
    let second = timeout(PATIENCE, second).await.expect("WebSockets do not count");
    let kept = async {
        loop {
            let mut io = TcpStream::connect(node.http).await.unwrap();
            let mut status = [0; 12];
            // Who is turned away may find the connection reset.
            if io.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.is_ok()
                && io.read_exact(&mut status).await.is_ok()
                && status == *b"HTTP/1.1 200"
            {
                break io;
            }
        }
    };
    let kept = timeout(PATIENCE, kept).await.expect("there is room for one");
    let mut late = TcpStream::connect(node.http).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, late.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop((kept, first, second));
    node.stop().await;
}

#[tokio::test]
async fn a_request_that_is_never_finished_does_not_keep_the_node() {
    let node = Node::start(keyed()).await;
    let mut io = TcpStream::connect(node.http).await.unwrap();
    io.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    node.get("/healthz").await;
    node.stop().await;
}

#[tokio::test]
async fn a_model_that_knows_the_address_gets_a_page_and_a_client_without_a_key() {
    let mut config = keyed();
    config.strangers_read = false;
    config.trusted_proxies.push("127.0.0.1".parse().unwrap());
    config.hosts.push("node.lan".into());
    let node = Node::start(config).await;
    let get =
        async |path: &str, headers: &[(&str, &str)]| node.http("GET", path, headers, "").await;
    let skill = get("/skill.md", &[("host", "127.0.0.1:4711")]).await;
    assert_eq!(skill.status, StatusCode::OK);
    assert!(skill.has("content-type: text/markdown; charset=utf-8"), "{skill:?}");
    assert!(skill.text.contains("`ws://127.0.0.1:4711/ws`"), "{}", skill.text);
    assert!(skill.text.contains("You need a key."), "{}", skill.text);
    for left in ["{ws}", "{http}", "{key}"] {
        assert!(!skill.text.contains(left), "{left} is left");
    }
    // A proxy of the operator's speaks TLS with the client.
    let proxied = get("/skill.md", &[("host", "node.lan"), ("x-forwarded-proto", "https")]).await;
    assert!(proxied.text.contains("`wss://node.lan/ws`"), "{}", proxied.text);
    assert!(proxied.text.contains("https://node.lan/clawmesh.py"), "{}", proxied.text);
    let client = get("/clawmesh.py", &[HERE]).await;
    assert_eq!(client.status, StatusCode::OK);
    assert_eq!(client.text, include_str!("../../../../../../examples/python/clawmesh.py"));
    // A page that was pointed here is told no address of its own making.
    let elsewhere = get("/skill.md", &[("host", "evil.example")]).await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    assert!(!elsewhere.text.contains("ws://"), "{elsewhere:?}");
    assert_eq!(get("/skill.mdx", &[HERE]).await.status, StatusCode::NOT_FOUND);
    node.stop().await;
}

/// Valid from 2000 to 2100.
const CERTIFICATE: &[u8] = include_bytes!("../../../../../src/webhooks/testdata/cert.pem");
const CERTIFICATE_KEY: &[u8] = include_bytes!("../../../../../src/webhooks/testdata/key.pem");

#[tokio::test]
async fn who_does_not_shake_hands_is_not_waited_for() {
    let mut config = keyed();
    config.http_tls = Some(Tls::from_pem(CERTIFICATE, CERTIFICATE_KEY).unwrap());
    config.tls_handshake_within = Duration::from_secs(2);
    // No other clock ends them.
    config.http_request_within = PATIENCE * 10;
    config.http_connections_max = 2;
    let node = Node::start(config).await;
    let silent = || async { TcpStream::connect(node.http).await.unwrap() };
    let end = async |mut io: TcpStream| {
        let mut left = Vec::new();
        // A reset is an end, too.
        drop(timeout(PATIENCE, io.read_to_end(&mut left)).await.expect("it ends"));
        left
    };
    let (first, second) = (silent().await, silent().await);
    node.until("both are taken", |node| node.bridge.taken() == 2).await;
    // More of them than may be are not even kept for that time; nor are they answered in the clear.
    assert!(end(silent().await).await.is_empty());
    assert!(end(first).await.is_empty() && end(second).await.is_empty());
    node.until("none is left", |node| node.bridge.taken() == 0).await;
    // Who speaks HTTP in the clear learns nothing.
    let mut plain = silent().await;
    plain.write_all(b"GET /api/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let answer = end(plain).await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    node.stop().await;
}
