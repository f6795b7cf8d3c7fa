//! Agents whose connections end and that stay, and agents with several connections.

use std::sync::Arc;

use serde_json::{Value, json};

use bridge::testing::{Fake, KEY, keyed};

use crate::local::Local;

const LINGER: u64 = 120;

/// A connection of the agent whose id is drawn from these digits.
fn drawn(fake: &Arc<Fake>, digits: &str) -> (Local, Value) {
    let mut it = Local::fresh(fake, keyed());
    let mesh = json!({"draw": digits, "linger_secs": LINGER});
    let payload = json!({"key": KEY, "name": "n", "reconnect": true, "mesh": mesh});
    let welcome = it.call("register", payload);
    (it, welcome)
}

const ME: &str = "0102030405ff";

fn join(it: &mut Local) {
    it.call("join_room", json!({"room_id": "lobby"}));
}

fn say(it: &mut Local, content: &str) {
    it.call("send_message", json!({"room_id": "lobby", "content": content}));
}

fn members(it: &mut Local) -> Vec<(String, bool)> {
    let mut info = it.call("room_info", json!({"room_id": "lobby"}));
    let Value::Array(agents) = info["agents"].take() else { panic!("a list") };
    let member = |agent: &Value| {
        (agent["agent_id"].as_str().unwrap().into(), agent["mesh"]["lingers"] == true)
    };
    agents.iter().map(member).collect()
}

#[test]
fn a_wish_beyond_its_bound_is_refused_and_named() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, keyed());
    let payload = json!({"key": KEY, "name": "n", "mesh": {"linger_secs": 601}});
    let reply = it.ask("register", payload);
    let text = reply["payload"]["message"].as_str().unwrap();
    assert_eq!(reply["payload"]["code"], "invalid_payload");
    assert!(text.contains("linger_secs") && text.contains("600"), "{text}");
    it.call("register", json!({"key": KEY, "name": "n", "mesh": {"linger_secs": 600}}));
}

#[test]
fn the_same_drawn_id_is_had_again_and_never_claimed() {
    let (fake, _) = Fake::new();
    let (a, first) = drawn(&fake, ME);
    let id = first["agent_id"].as_str().unwrap().to_owned();
    assert_eq!((&id[..14], &id[14..15]), ("01020304-05ff-", "8"));
    a.hang_up();
    let (_b, again) = drawn(&fake, ME);
    assert_eq!(again["agent_id"], *id);
    let (_c, other) = drawn(&fake, "0102030405fe");
    assert_ne!(other["agent_id"], *id);
}

#[test]
fn seat_vote_lead_and_presence_outlive_a_connection() {
    let (fake, _) = Fake::new();
    let mut other = Local::agent(&fake, "other");
    join(&mut other);
    let (mut a, welcome) = drawn(&fake, ME);
    join(&mut a);
    a.call("set_presence", json!({"status": "working"}));
    let vote = json!({"room_id": "lobby", "title": "t", "options": ["x", "y"]});
    let vote = a.call("create_vote", vote)["vote_id"].clone();
    a.call("cast_vote", json!({"vote_id": vote, "option_index": 0}));
    other.kinds();
    a.hang_up();
    assert!(other.kinds().is_empty(), "nobody sees it leave");
    let me = welcome["agent_id"].as_str().unwrap();
    assert_eq!(members(&mut other), [("other".into(), false), (me.into(), true)]);
    assert_eq!(fake.hub().agents(), 1, "connected is who has a connection");
    say(&mut other, "meanwhile");
    let (mut a, welcome) = drawn(&fake, ME);
    assert_eq!(welcome["rooms"], json!(["lobby"]));
    assert_eq!(a.event("message_received").unwrap()["content"], "meanwhile");
    say(&mut a, "without joining");
    assert_eq!(a.code("cast_vote", json!({"vote_id": vote, "option_index": 1})), "already_voted");
    assert!(!other.kinds().contains(&"agent_joined".into()), "nor come");
    let agents = other.call("list_agents", json!({"room_id": "lobby"}));
    assert_eq!(agents["agents"][1]["status"], "working");
}

#[test]
fn who_left_the_room_before_has_no_seat_and_who_does_not_ask_does_not_linger() {
    let (fake, _) = Fake::new();
    let mut other = Local::agent(&fake, "other");
    join(&mut other);
    let (mut a, _) = drawn(&fake, ME);
    join(&mut a);
    a.call("leave_room", json!({"room_id": "lobby"}));
    a.hang_up();
    assert_eq!(members(&mut other).len(), 1);
    let mut b = Local::agent(&fake, "b");
    join(&mut b);
    b.hang_up();
    assert_eq!(members(&mut other).len(), 1);
}

#[test]
fn ones_own_lingering_is_never_in_the_way() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, keyed());
    let mesh = json!({"linger_secs": LINGER});
    let payload = json!({"key": KEY, "name": "n", "agent_id": "me", "mesh": mesh});
    it.call("register", payload.clone());
    join(&mut it);
    it.hang_up();
    let mut it = Local::fresh(&fake, keyed());
    let welcome = it.call("register", payload);
    assert_eq!((&welcome["agent_id"], &welcome["rooms"]), (&json!("me"), &json!(["lobby"])));
}

#[test]
fn several_connections_are_one_agent_until_the_last_one_ends() {
    let (fake, _) = Fake::new();
    let mut other = Local::agent(&fake, "other");
    join(&mut other);
    let (mut waits, first) = drawn(&fake, ME);
    join(&mut waits);
    other.kinds();
    let (mut sends, second) = drawn(&fake, ME);
    assert_eq!(first["agent_id"], second["agent_id"]);
    assert!(waits.is_open(), "nobody is thrown out");
    join(&mut sends);
    say(&mut sends, "mine");
    say(&mut other, "theirs");
    for it in [&mut waits, &mut sends] {
        assert_eq!(it.event("message_received").unwrap()["content"], "theirs", "and not one's own");
    }
    assert_eq!(members(&mut other).len(), 2);
    assert_eq!(fake.hub().agents(), 2);
    waits.hang_up();
    say(&mut sends, "still here");
    assert!(!members(&mut other)[1].1, "it has a connection");
    // What one leaves the other has left.
    let (mut third, _) = drawn(&fake, ME);
    third.call("leave_room", json!({"room_id": "lobby"}));
    sends.kinds();
    say(&mut other, "alone");
    assert!(sends.event("message_received").is_none());
    join(&mut third);
    third.hang_up();
    sends.hang_up();
    let me = first["agent_id"].as_str().unwrap();
    assert_eq!(members(&mut other)[1], (me.into(), true));
}

#[test]
fn another_key_and_an_ordinary_registration_are_not_one_more_connection() {
    let (fake, _) = Fake::new();
    let (a, first) = drawn(&fake, ME);
    let mut it = Local::fresh(&fake, keyed());
    let payload = json!({"key": KEY, "name": "n", "agent_id": first["agent_id"]});
    assert_eq!(it.code("register", payload.clone()), "agent_id_taken");
    let mut payload = payload;
    payload["reconnect"] = json!(true);
    it.call("register", payload);
    assert!(!a.is_open(), "taken over, as ever");
}

#[test]
fn an_agent_has_so_many_connections_and_no_more() {
    let (fake, _) = Fake::new();
    let mut all: Vec<Local> = Vec::new();
    for _ in 0..bridge::limits::CONNECTIONS_PER_AGENT_MAX {
        all.push(drawn(&fake, ME).0);
    }
    let mut it = Local::fresh(&fake, keyed());
    let payload = json!({"key": KEY, "name": "n", "reconnect": true, "mesh": {"draw": ME}});
    assert_eq!(it.code("register", payload), "rate_limit_agents");
    assert!(all.iter().all(Local::is_open));
}
