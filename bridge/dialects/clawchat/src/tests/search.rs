//! Searches: what an agent finds is what it may read.

use serde_json::{Value, json};

use super::direct::three;
use crate::local::Local;
use bridge::testing::Fake;

fn contents(found: &Value) -> Vec<&str> {
    let messages = found["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

fn say(agent: &mut Local, room: &Value, content: &str) {
    agent.call("send_message", json!({"room_id": room, "content": content}));
}

#[test]
fn messages_are_found_page_by_page_the_newest_first() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "ada");
    let lobby = json!("lobby");
    a.call("join_room", json!({"room_id": lobby}));
    for text in ["the build failed", "all is well", "a second build failed", "Build 3 failed: why"]
    {
        say(&mut a, &lobby, text);
    }
    let first = a.call("search", json!({"text": "failed build", "limit": 2}));
    assert_eq!(contents(&first), ["Build 3 failed: why", "a second build failed"]);
    let next = json!({"text": "failed build", "limit": 2, "after": first["next"]});
    let second = a.call("search", next);
    assert_eq!(contents(&second), ["the build failed"]);
    assert_eq!((second.get("next"), second.get("behind")), (None, None));
    let phrase = a.call("search", json!({"text": "\"second build\"", "room_id": "lobby"}));
    assert_eq!(contents(&phrase), ["a second build failed"]);
    assert_eq!(
        contents(&a.call("search", json!({"from": "ada", "text": "wel*"}))),
        ["all is well"]
    );
    assert_eq!(contents(&a.call("search", json!({"from": "bob"}))), [""; 0]);
    let old = json!({"text": "build", "before": "2001-01-01T00:00:00Z"});
    assert_eq!(contents(&a.call("search", old)), [""; 0]);
    for bad in [
        json!({}),
        json!({"text": "!"}),
        json!({"text": "x", "limit": 0}),
        json!({"text": "x", "since": "now"}),
        json!({"text": "x", "after": "there"}),
        json!({"text": "x".repeat(2_000)}),
    ] {
        assert_eq!(a.code("search", bad.clone()), "invalid_payload", "{bad}");
    }
    assert_eq!(a.code("search", json!({"text": "x", "room_id": "nowhere"})), "room_not_found");
}

#[test]
fn rooms_of_others_are_not_searched() {
    let (_fake, [mut ann, mut bob, mut eve]) = three();
    let direct = ann.call("create_room", json!({"name": "dm:bob"}))["room_id"].clone();
    say(&mut ann, &direct, "secret between two");
    let private = json!({"name": "own", "public": false});
    let private = ann.call("create_room", private)["room_id"].clone();
    ann.call("join_room", json!({"room_id": private}));
    say(&mut ann, &private, "secret of a key");
    let all = json!({"text": "secret"});
    assert_eq!(
        contents(&ann.call("search", all.clone())),
        ["secret of a key", "secret between two"]
    );
    assert_eq!(contents(&bob.call("search", all.clone())), ["secret between two"]);
    // Eve has Bob's key, and is not Bob.
    assert_eq!(contents(&eve.call("search", all)), [""; 0]);
    for room in [direct, private] {
        let there = json!({"text": "secret", "room_id": room});
        assert_eq!(eve.code("search", there), "access_denied");
    }
}

#[test]
fn encrypted_texts_are_not_found() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "ada");
    let room = json!({"name": "sealed", "encrypted": true});
    let room = a.call("create_room", room)["room_id"].clone();
    a.call("join_room", json!({"room_id": room}));
    say(&mut a, &room, "clw1:AAAA");
    assert_eq!(contents(&a.call("search", json!({"text": "clw1"}))), [""; 0]);
    assert_eq!(contents(&a.call("search", json!({"room_id": room}))), [""; 0]);
}
