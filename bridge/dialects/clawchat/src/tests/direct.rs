//! Direct rooms: two agents of two keys, as ClawChat's clients see them.

use std::sync::Arc;

use mesh::wire::acts::Tier;
use serde_json::{Value, json};

use bridge::{
    config::{Auth, Config, NodeKey},
    testing::{Fake, here, keyed},
};

use super::keys::{FREE, PRO, mint};
use crate::local::Local;

pub(super) fn registered(fake: &Arc<Fake>, key: &str, agent: &str) -> Local {
    let mut client = Local::fresh(fake, keyed());
    client.call("register", json!({"key": key, "name": agent, "agent_id": agent}));
    client
}

/// Ann, Bob, and Eve, who has Bob's key.
pub(super) fn three() -> (Arc<Fake>, [Local; 3]) {
    let (fake, _) = Fake::new();
    mint(&fake, FREE, Tier::Low);
    mint(&fake, PRO, Tier::High);
    let all = [(FREE, "ann"), (PRO, "bob"), (PRO, "eve")];
    let mut clients = all.map(|(key, agent)| registered(&fake, key, agent));
    clients.iter_mut().for_each(|client| drop(client.kinds()));
    (fake, clients)
}

fn session(peer: &str) -> Value {
    json!({"session": {"kind": "direct", "peer": peer}})
}

#[test]
fn a_direct_room_is_made_or_found_by_naming_the_other_agent() {
    let (_fake, [mut ann, mut bob, mut eve]) = three();
    let room = ann.call("create_room", json!({"name": "dm:bob"}));
    assert_eq!((&room["name"], &room["mesh"]), (&json!("dm:ann:bob"), &session("bob")));
    assert_eq!((&room["visibility"], &room["created_by"]), (&json!("private"), &json!("ann")));
    assert_eq!(room.get("owner_key"), None, "it is no key's own");
    // Each is told of the other.
    assert_eq!(ann.event("room_created").unwrap()["mesh"], session("bob"));
    let told = bob.event("room_created").unwrap();
    assert_eq!((&told["room_id"], &told["mesh"]), (&room["room_id"], &session("ann")));
    let found = bob.call("create_room", json!({"name": "dm:ann"}));
    assert_eq!((&found["room_id"], &found["mesh"]), (&room["room_id"], &session("ann")));
    let listed = bob.call("list_rooms", json!({}));
    let direct = listed["rooms"].as_array().unwrap().iter();
    let direct: Vec<&Value> = direct.filter(|room| room.get("mesh").is_some()).collect();
    assert_eq!(direct, [&found]);

    let id = json!({"room_id": room["room_id"]});
    for kind in ["room_info", "get_history", "room_tip", "join_room", "leave_room", "list_votes"] {
        assert_eq!(eve.code(kind, id.clone()), "access_denied", "{kind}");
    }
    assert!(eve.kinds().is_empty(), "and she hears nothing of it");
}

#[test]
fn nobody_joins_a_direct_room_to_talk_there() {
    let (fake, [mut ann, mut bob, mut eve]) = three();
    let room = ann.call("create_room", json!({"name": "dm:bob"}))["room_id"].clone();
    bob.kinds();
    let text = |text: &str| json!({"room_id": room, "content": text, "mentions": ["eve"]});
    let sent = ann.call("send_message", text("hello"));
    assert_eq!(bob.event("message_received").unwrap(), sent);
    let answer = bob.call("send_message", text("and to you"));
    assert_eq!(ann.event("message_received").unwrap(), answer);
    assert_eq!(eve.kinds(), Vec::<String>::new(), "who is mentioned may not read it");
    let page = ann.call("get_history", json!({"room_id": room}));
    assert_eq!(page["messages"], json!([sent, answer]));
    // It waits for one who is away, though he has never been there with this registration.
    bob.hang_up();
    let third = ann.call("send_message", text("are you there?"));
    let mut bob = registered(&fake, PRO, "bob");
    assert_eq!(bob.event("message_received").unwrap(), third);
    bob.call("send_message", text("now I am"));
    assert_eq!(ann.event("message_received").unwrap()["content"], "now I am");
}

#[test]
fn who_cannot_be_written_to_and_what_no_room_is_called() {
    let (fake, [mut ann, ..]) = three();
    assert_eq!(ann.code("create_room", json!({"name": "dm:nobody"})), "invalid_payload");
    // A node whose key others could guess, and one that checks none.
    let short = Config::new(Auth::Key(NodeKey::new("short")), here());
    for (config, key) in [(short, "short"), (Config::new(Auth::Open, here()), "any")] {
        let mut client = Local::fresh(&fake, config);
        client.call("register", json!({"key": key, "name": "short"}));
        assert_eq!(client.code("create_room", json!({"name": "dm:ann"})), "access_denied", "{key}");
    }
    for bad in [
        json!({"name": "dm:bob", "public": true}),
        json!({"name": "dm:bob", "description": "d"}),
        json!({"name": "dm:"}),
        json!({"name": "task:1"}),
        json!({"name": "finder:1", "public": true}),
    ] {
        assert_eq!(ann.code("create_room", bad.clone()), "invalid_payload", "{bad}");
    }
}

#[test]
fn who_asks_for_receipts_hears_that_a_request_was_handed_over() {
    let (fake, [mut ann, mut bob, _]) = three();
    let mut other = Local::fresh(&fake, keyed());
    let wish = json!({"key": FREE, "name": "ann", "agent_id": "ann", "reconnect": true, "mesh": {"events": ["receipt"]}});
    let room = ann.call("create_room", json!({"name": "dm:bob"}))["room_id"].clone();
    other.call("register", wish);
    other.kinds();
    let asks = json!({"room_id": room, "content": "how far?"});
    let said = other.call("send_message", asks);
    bob.call("get_history", json!({"room_id": room}));
    let told = other.event("receipt").expect("she has asked for it");
    assert_eq!((&told["room_id"], &told["message_id"]), (&room, &said["message_id"]));
    assert_eq!((&told["state"], &told["agent_id"]), (&json!("delivered"), &json!("bob")));
    assert!(told["at"].is_string() && told["node"].is_string(), "{told}");
    assert!(!bob.kinds().contains(&"receipt".to_owned()), "and he has not");
}
