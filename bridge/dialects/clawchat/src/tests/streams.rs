//! Answers as they are written.

use std::sync::Arc;

use bridge::testing::{Fake, KEY, keyed};
use serde_json::{Value, json};

use crate::local::Local;

fn registered(fake: &Arc<Fake>, name: &str, events: &[&str]) -> Local {
    let mut client = Local::fresh(fake, keyed());
    let wish = json!({"key": KEY, "name": name, "agent_id": name, "mesh": {"events": events}});
    client.call("register", wish);
    client.call("join_room", json!({"room_id": "lobby"}));
    client.kinds();
    client
}

fn chunk(text: &str) -> Value {
    json!({"room_id": "lobby", "stream_id": "s", "kind": "chunk", "content": text})
}

#[test]
fn who_asks_for_streams_hears_pieces_in_their_order_and_nobody_else_does() {
    let (fake, _) = Fake::new();
    let mut ann = registered(&fake, "ann", &["stream"]);
    let mut bob = registered(&fake, "bob", &["stream"]);
    let mut standard = registered(&fake, "eve", &[]);
    bob.kinds();
    ann.kinds();
    for text in ["one", " two", " three"] {
        assert_eq!(ann.call("stream", chunk(text)), json!({}));
    }
    let call = json!({
        "room_id": "lobby", "stream_id": "s", "kind": "tool_call", "reply_to": "m", "tool": "grep",
        "input": {"for": ["x"]},
    });
    ann.call("stream", call);
    for text in ["one", " two", " three"] {
        let told = bob.event("stream").expect("it came");
        let expected = json!({
            "room_id": "lobby", "agent_id": "ann", "agent_name": "ann", "stream_id": "s", "kind": "chunk", "content": text,
        });
        assert_eq!(told, expected);
    }
    let told = bob.event("stream").expect("it came");
    assert_eq!((&told["tool"], &told["input"]), (&json!("grep"), &json!({"for": ["x"]})));
    assert_eq!((&told["kind"], &told["reply_to"]), (&json!("tool_call"), &json!("m")));
    assert!(!standard.kinds().contains(&"stream".to_owned()), "she has not asked");
    assert!(!ann.kinds().contains(&"stream".to_owned()), "they are her own");
    // Nothing of it is kept.
    let history = standard.call("get_history", json!({"room_id": "lobby"}));
    assert_eq!(history["messages"], json!([]));
}

#[test]
fn a_piece_that_cannot_be_streamed_is_refused_with_the_field_and_the_bound() {
    let (fake, _) = Fake::new();
    let mut ann = registered(&fake, "ann", &[]);
    let large = "x".repeat(16 * 1024 + 1);
    for (bad, field, bound) in [
        (json!({"room_id": "lobby", "kind": "chunk"}), "stream_id", "is missing"),
        (json!({"room_id": "lobby", "stream_id": "s", "kind": "song"}), "kind", "one of chunk"),
        (json!({"room_id": "lobby", "stream_id": "", "kind": "chunk"}), "stream_id", "1 to 128"),
        (chunk(&large), "content", "16384 bytes"),
        (
            json!({"room_id": "lobby", "stream_id": "s", "kind": "tool_call", "tool": "x".repeat(257)}),
            "tool",
            "256 bytes",
        ),
        (
            json!({"room_id": "lobby", "stream_id": "s", "kind": "chunk", "reply_to": "x".repeat(129)}),
            "reply_to",
            "128 bytes",
        ),
    ] {
        let reply = ann.ask("stream", bad);
        let text = reply["payload"]["message"].to_string();
        assert_eq!(reply["payload"]["code"], "invalid_payload", "{reply}");
        assert!(text.contains(field) && text.contains(bound), "{field}: {text}");
    }
    let nowhere = json!({
        "room_id": "7d444840-9dc0-11d1-b245-5ffdce74fad2", "stream_id": "s", "kind": "chunk",
    });
    assert_eq!(ann.code("stream", nowhere), "room_not_found");
    ann.call("leave_room", json!({"room_id": "lobby"}));
    assert_eq!(ann.code("stream", chunk("x")), "not_in_room");
    let secret = json!({"name": "secret", "encrypted": true});
    let room = ann.call("create_room", secret)["room_id"].clone();
    ann.call("join_room", json!({"room_id": room}));
    let plain = json!({"room_id": room, "stream_id": "s", "kind": "chunk", "content": "x"});
    assert_eq!(ann.code("stream", plain), "plaintext_in_encrypted_room");
}
