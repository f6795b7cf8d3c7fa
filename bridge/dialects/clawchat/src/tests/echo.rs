//! Two dialects at one node: ClawChat, and one that echoes events as one JSON object each.

use std::sync::Arc;

use bridge::{
    Bridge,
    dialect::Dialect,
    limits,
    testing::{Connection, Fake, chat, echo::Echo, keyed, lobby, node},
};
use mesh::api::command::Say;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{ClawChat, local::Local};

/// A client of the other dialect.
struct Echoed(Connection);

impl Echoed {
    fn new(fake: &Arc<Fake>) -> Echoed {
        Echoed(Connection::new(fake, keyed(), &Echo::default()))
    }

    /// Says something, and hears all that comes then.
    fn say(&mut self, frame: &Value) -> Vec<Value> {
        self.0.say(&frame.to_string());
        self.hear()
    }

    fn hear(&mut self) -> Vec<Value> {
        self.0.settle();
        let frames = self.0.frames.drain(..);
        frames.map(|frame| serde_json::from_slice(&frame).unwrap()).collect()
    }
}

fn said(agent: &str, content: &str, seq: u64) -> Value {
    json!({"event": "said", "message": message(agent, content, seq)})
}

fn message(agent: &str, content: &str, seq: u64) -> Value {
    json!({"agent": agent, "node": node().to_string(), "content": content, "seq": seq})
}

#[test]
fn clients_of_two_dialects_hear_each_other() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "a");
    a.call("join_room", json!({"room_id": "lobby"}));
    let mut b = Echoed::new(&fake);
    assert_eq!(b.say(&json!({"say": "too early"})), [json!({"refused": "NotAttached"})]);
    assert_eq!(b.say(&json!({"attach": "b"})), [json!({"attached": "b", "missed": null})]);
    assert_eq!(b.say(&json!({"join": true})), [json!({"joined": lobby().to_uuid()})]);
    assert_eq!(a.event("agent_joined").unwrap()["agent"]["agent_id"], "b");
    assert_eq!(b.say(&json!({"say": "hello"})), [json!({"said": 1})]);
    let heard = a.event("message_received").unwrap();
    assert_eq!((&heard["agent_id"], &heard["content"]), (&json!("b"), &json!("hello")));
    let sent = json!({"room_id": "lobby", "content": "good day", "mentions": ["b"]});
    a.call("send_message", sent);
    let mention = json!({"event": "mentioned", "message": message("a", "good day", 2)});
    assert_eq!(b.hear(), [said("a", "good day", 2), mention]);
    // Of thoughts and turns the other dialect has no frames: what comes then comes all the same.
    a.call("thinking", json!({"room_id": "lobby", "content": "hm"}));
    a.call("send_message", json!({"room_id": "lobby", "content": "still here"}));
    assert_eq!(b.hear(), [said("a", "still here", 4)]);
}

#[test]
fn an_agent_comes_back_in_another_dialect_and_gets_what_it_missed() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    for agent in [&mut a, &mut b] {
        agent.call("join_room", json!({"room_id": "lobby"}));
    }
    let vote = |title: &str| json!({"room_id": "lobby", "title": title, "options": ["y", "n"]});
    b.hang_up();
    a.call("send_message", json!({"room_id": "lobby", "content": "one"}));
    a.call("create_vote", vote("here or there"));
    a.call("send_message", json!({"room_id": "lobby", "content": "two"}));
    let mut b = Echoed::new(&fake);
    let back = [
        json!({"attached": "b", "missed": 3}),
        said("a", "one", 1),
        json!({"event": "vote", "title": "here or there"}),
        said("a", "two", 2),
    ];
    assert_eq!(b.say(&json!({"attach": "b"})), back);
    // And the other way round; what was written to nobody is kept as well.
    b.0.cut();
    a.call("create_vote", vote("and back"));
    b.0.hang_up();
    a.call("send_message", json!({"room_id": "lobby", "content": "three"}));
    let mut b = Local::fresh(&fake, keyed());
    assert_eq!(b.register("b")["payload"]["missed_messages"], 2);
    assert_eq!(b.kinds(), ["vote_created", "message_received"]);
}

/// Events as one client gets them, next to another one that shares what was written for all.
#[test]
fn a_client_has_its_events_numbered_and_not_all_of_them() {
    let (fake, _) = Fake::new();
    let (mut plain, mut numbered) = (Echoed::new(&fake), Echoed::new(&fake));
    plain.say(&json!({"attach": "p"}));
    let attach = json!({"attach": "n", "numbered": true, "deaf_to": "bore"});
    assert_eq!(numbered.say(&attach), [json!({"attached": "n", "missed": null})]);
    for agent in [&mut plain, &mut numbered] {
        agent.say(&json!({"join": true}));
    }
    fake.say(lobby(), "a", "one");
    fake.say(lobby(), "bore", "two");
    let call = Say { mentions: vec!["n".into()], ..chat(lobby(), "three") };
    fake.tell(lobby(), "a", call);
    let with = |n: u64, mut event: Value| {
        event["n"] = json!(n);
        event
    };
    let mention = json!({"event": "mentioned", "message": message("a", "three", 3)});
    let joined = |agent: &str| json!({"event": "joined", "agent": agent});
    let expect = [
        with(1, joined("a")),
        with(2, said("a", "one", 1)),
        with(3, joined("bore")),
        with(4, said("a", "three", 3)),
        with(5, mention),
        with(6, json!({"event": "ring"})),
    ];
    assert_eq!(numbered.hear(), expect);
    let expect = [joined("n"), joined("a"), said("a", "one", 1), joined("bore")];
    let more = [said("bore", "two", 2), said("a", "three", 3)];
    assert_eq!(plain.hear(), [&expect[..], &more].concat());
    // Replies are no events.
    assert_eq!(numbered.say(&json!({"say": "x"})), [json!({"said": 4})]);
    // What it left out it has seen: it does not come when it is back. Numbers begin anew.
    fake.say(lobby(), "bore", "still there?");
    assert!(numbered.hear().is_empty());
    numbered.0.hang_up();
    fake.say(lobby(), "a", "gone?");
    let mut numbered = Echoed::new(&fake);
    let back = [json!({"attached": "n", "missed": 1}), with(1, said("a", "gone?", 6))];
    assert_eq!(numbered.say(&attach), back);
}

#[test]
fn a_slow_client_has_its_events_numbered_without_a_gap() {
    let (fake, _) = Fake::new();
    let mut slow = Echoed::new(&fake);
    slow.say(&json!({"attach": "slow", "numbered": true, "deaf_to": "bore"}));
    slow.say(&json!({"join": true}));
    let all = 3 * limits::QUEUE_FRAMES_MAX;
    for nth in 0..all {
        fake.say(lobby(), if nth % 3 == 0 { "bore" } else { "a" }, "x");
    }
    let heard = slow.hear();
    let numbers: Vec<u64> = heard.iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=heard.len() as u64).collect::<Vec<_>>());
    let seqs: Vec<u64> =
        heard.iter().filter_map(|event| event["message"]["seq"].as_u64()).collect();
    let expect: Vec<u64> = (1..=all as u64).filter(|seq| seq % 3 != 1).collect();
    assert_eq!(seqs, expect, "each message once, in order, but those that it left out");
}

/// The same over a socket, where reader and writer of a connection share the conversation.
#[tokio::test]
async fn events_over_a_socket_are_numbered_too() {
    let (fake, hub) = Fake::new();
    let dialects: Vec<Arc<dyn Dialect>> =
        vec![Arc::new(Echo::default()), Arc::new(ClawChat::new(lobby()))];
    let bridge = Bridge::new(keyed(), hub, fake.clone(), dialects);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        bridge.serve_tcp(listener, std::future::pending()).await;
    });
    let mut io = BufReader::new(TcpStream::connect(at).await.unwrap());
    let mut line = String::new();
    for say in [
        json!({"type": "echo", "attach": "slow", "numbered": true, "deaf_to": "bore"}),
        json!({"join": true}),
    ] {
        io.write_all(format!("{say}\n").as_bytes()).await.unwrap();
        line.clear();
        io.read_line(&mut line).await.unwrap();
    }
    let text = "x".repeat(10_000);
    for nth in 0..1_000 {
        fake.say(lobby(), if nth % 2 == 0 { "bore" } else { "a" }, &text);
    }
    let mut last = 0;
    for n in 1.. {
        line.clear();
        io.read_line(&mut line).await.unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["n"], n);
        if let Some(seq) = event["message"]["seq"].as_u64() {
            assert_eq!(seq, last + 2);
            last = seq;
        }
        if last == 1_000 {
            break;
        }
    }
    serving.abort();
}

#[tokio::test]
async fn the_first_frame_decides_the_dialect() {
    let (fake, hub) = Fake::new();
    let bridge = Bridge::new(
        keyed(),
        hub,
        fake,
        vec![Arc::new(Echo::default()), Arc::new(ClawChat::new(lobby()))],
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        bridge.serve_tcp(listener, std::future::pending()).await;
    });
    for (first, answer) in [
        (r#"{"type": "echo", "attach": "e"}"#, r#"{"attached":"e","missed":null}"#),
        (r#"{"type": "ping"}"#, r#""type":"pong""#),
        (r#"["echo"]"#, r#""code":"invalid_payload""#),
        ("junk", r#""code":"invalid_payload""#),
    ] {
        let mut io = BufReader::new(TcpStream::connect(at).await.unwrap());
        io.write_all(format!("{first}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        io.read_line(&mut line).await.unwrap();
        assert!(line.contains(answer), "{first} is answered {line}");
    }
    serving.abort();
}
