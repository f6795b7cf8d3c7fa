//! What is not known here, and may be known elsewhere.

use std::sync::{Arc, atomic::Ordering};

use mesh::{api::command::Command, name::id::MessageId};
use serde_json::{Value, json};

use bridge::testing::Fake;

use crate::local::Local;

/// Two agents of a node.
fn node() -> (Arc<Fake>, Local, Local) {
    let (fake, _) = Fake::new();
    let (a, b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    (fake, a, b)
}

fn make(it: &mut Local) -> String {
    it.post("create_room", json!({"name": "r", "public": true}))
}

/// The id that a node's next room will have: all are the same node.
fn next_room() -> Value {
    let (_fake, mut a, _b) = node();
    let id = make(&mut a);
    a.reply(&id).unwrap()["payload"]["room_id"].clone()
}

#[test]
fn a_room_that_is_not_known_is_looked_for_and_then_the_request_is_answered() {
    let (room, (fake, mut a, mut b)) = (next_room(), node());
    fake.knobs.stalls.store(true, Ordering::Relaxed);
    let joined = b.post("join_room", json!({"room_id": room}));
    assert!(b.reply(&joined).is_none(), "it is looked for");
    assert!(!b.line.takes_requests(), "what comes next is not done before it");
    make(&mut a);
    fake.flow();
    assert_eq!(b.reply(&joined).unwrap()["type"], "ok");
    assert!(b.line.takes_requests());
    b.call("send_message", json!({"room_id": room, "content": "here"}));
}

#[test]
fn a_room_that_nobody_has_is_refused_when_it_was_looked_for_once() {
    let (room, (_fake, _, mut b)) = (next_room(), node());
    for kind in ["join_room", "get_history", "room_info", "list_votes", "list_agents"] {
        assert_eq!(b.code(kind, json!({"room_id": room})), "room_not_found", "{kind}");
    }
    let sent = json!({"room_id": room, "content": "x".repeat(1_000)});
    assert_eq!(b.code("send_message", sent), "room_not_found");
    assert_eq!(b.code("join_room", json!({"room_id": "no id"})), "room_not_found");
    assert!(b.line.takes_requests() && !b.line.awaits_answers());
}

#[test]
fn a_node_that_takes_no_questions_refuses_what_it_does_not_know() {
    let (room, (fake, _, mut b)) = (next_room(), node());
    fake.knobs.full.store(true, Ordering::Relaxed);
    assert_eq!(b.code("join_room", json!({"room_id": room})), "room_not_found");
}

#[test]
fn a_message_that_is_not_known_is_looked_for_once() {
    let (fake, mut a, _b) = node();
    let id = MessageId([0x84; 16]);
    fake.knobs.stalls.store(true, Ordering::Relaxed);
    let asked = a.post("get_history", json!({"room_id": "lobby", "since": id.to_uuid()}));
    assert!(a.reply(&asked).is_none(), "it is looked for");
    assert!(a.line.takes_requests(), "nothing that is done depends on it");
    fake.flow();
    assert!(a.reply(&asked).is_some());
    let seek = json!({"room_id": "lobby", "since": id.to_uuid()});
    *fake.knobs.script.lock().unwrap() = Some(Ok(mesh::api::command::Outcome::Done));
    a.ask("get_history", seek);
    let asked = fake.knobs.scripted.lock().unwrap().take();
    assert!(
        matches!(&asked, Some(Command::Seek { message: Some(it), .. }) if *it == id),
        "{asked:?}"
    );
}

#[test]
fn what_comes_after_a_vote_is_not_done_before_it() {
    let (fake, mut a, _b) = node();
    a.call("join_room", json!({"room_id": "lobby"}));
    fake.knobs.stalls.store(true, Ordering::Relaxed);
    for (kind, payload) in [
        ("create_vote", json!({"room_id": "lobby", "title": "t", "options": ["y", "n"]})),
        ("elect_leader", json!({"room_id": "lobby"})),
    ] {
        fake.knobs.stalls.store(true, Ordering::Relaxed);
        let begun = a.post(kind, payload);
        assert!(!a.line.takes_requests(), "{kind}");
        fake.flow();
        assert_eq!(a.reply(&begun).unwrap()["type"], "ok", "{kind}");
        assert!(a.line.takes_requests(), "{kind}");
    }
}
