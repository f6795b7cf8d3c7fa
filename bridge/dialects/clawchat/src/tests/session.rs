use std::sync::{Arc, atomic::Ordering};

use mesh::{
    api::{
        command::{Outcome, SaidOk, Say},
        event::RoomEvent,
    },
    name::{
        id::MessageId,
        number::{Era, Number},
    },
};
use serde_json::{Value, json};

use bridge::{
    backend::{Reads as _, Roam},
    config::{Auth, Config},
    limits,
    testing::{Fake, KEY, OTHER_KEY, chat, here, keyed, lobby},
};

use crate::local::{Local, room};

fn pair() -> (Arc<Fake>, Local, Local, Value) {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let room = a.call("create_room", json!({"name": "r", "public": true}));
    let room = room["room_id"].clone();
    a.call("join_room", json!({"room_id": room}));
    b.call("join_room", json!({"room_id": room}));
    a.kinds();
    b.kinds();
    (fake, a, b, room)
}

#[test]
fn what_has_hung_up_holds_on_to_nothing() {
    let (fake, mut a, b, room) = pair();
    a.call("send_message", json!({"room_id": room, "content": "bye"}));
    let hub = Arc::downgrade(&fake.hub());
    a.hang_up();
    b.hang_up();
    fake.part();
    assert!(hub.upgrade().is_none(), "a connection that is over holds on to the hub");
    assert_eq!(Arc::strong_count(&fake), 1, "and on to its node");
}

#[test]
fn before_it_registers_a_client_may_only_ping() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, keyed());
    assert_eq!(it.ask("ping", json!({}))["type"], "pong");
    for kind in ["list_rooms", "list_agents"] {
        assert_eq!(it.code(kind, json!({})), "not_registered");
    }
    assert_eq!(it.code("join_room", json!({"room_id": "lobby"})), "not_registered");
    for bad in [json!({}), json!({"room_id": 1, "content": []})] {
        assert_eq!(it.code("send_message", bad), "not_registered", "whatever the payload");
    }
    it.line("junk");
    assert_eq!(it.event("error").unwrap()["code"], "invalid_payload");
    assert_eq!(it.code("no_such_command", json!({})), "invalid_payload");
    assert_eq!(it.code("register", json!({"key": KEY})), "invalid_payload");
    assert!(it.is_open());
}

#[test]
fn registration_checks_version_then_key_then_the_rest() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, keyed());
    let wrong = json!({"key": "nope", "name": "", "protocol_version": 2});
    assert_eq!(it.code("register", wrong), "unsupported_protocol");
    assert!(!it.is_open());
    let mut it = Local::fresh(&fake, keyed());
    assert_eq!(it.code("register", json!({"key": "nope", "name": ""})), "unauthorized");
    assert!(!it.is_open());

    let mut it = Local::fresh(&fake, keyed());
    let long = |len| "x".repeat(len);
    for (bad, field) in [
        (json!({"key": KEY, "name": " "}), "name"),
        (json!({"key": KEY, "name": long(257)}), "name"),
        (json!({"key": KEY, "name": "n", "agent_id": ""}), "agent_id"),
        (json!({"key": KEY, "name": "n", "agent_id": long(129)}), "agent_id"),
        (json!({"key": KEY, "name": "n", "capabilities": [long(257)]}), "capabilities"),
    ] {
        let reply = it.ask("register", bad);
        assert_eq!(reply["payload"]["code"], "invalid_payload");
        assert!(reply["payload"]["message"].as_str().unwrap().contains(field), "{reply}");
    }
    assert!(it.is_open());
    let reply = it.call("register", json!({"key": KEY, "name": "n"}));
    assert_eq!(reply["name"], "n");
    assert_eq!(reply["protocol_version"], 1);
    assert_eq!(reply["agent_id"].as_str().unwrap().len(), 36);
    assert!(reply.get("reconnected").is_none());
    assert_eq!(it.code("register", json!({"key": KEY, "name": "n"})), "invalid_payload");
}

#[test]
fn without_keys_everybody_may_register() {
    let (fake, _) = Fake::new();
    let mut it = Local::fresh(&fake, Config::new(Auth::Open, here()));
    it.call("register", json!({"key": "anything", "name": "n"}));
}

#[test]
fn a_taken_id_keeps_the_connection_and_a_reconnection_takes_it_over() {
    let (fake, a, mut b, room) = pair();
    let mut late = Local::fresh(&fake, keyed());
    let taken = json!({"key": KEY, "name": "a", "agent_id": "a"});
    assert_eq!(late.code("register", taken), "agent_id_taken");
    assert!(late.is_open());
    let welcome = late.register("a");
    assert_eq!(welcome["payload"]["reconnected"], true);
    assert_eq!(welcome["payload"]["rooms"], json!([room]));
    assert!(!a.is_open(), "the old connection is closed");
    a.hang_up();
    assert!(b.kinds().is_empty(), "nobody sees a leave or a join");
    late.call("send_message", json!({"room_id": room, "content": "x"}));
    assert_eq!(b.event("message_received").unwrap()["agent_id"], "a");
}

#[test]
fn of_many_rooms_the_newest_missed_messages_are_replayed() {
    let (fake, mut a, _b, name) = pair();
    a.call("join_room", json!({"room_id": "lobby"}));
    a.hang_up();
    let room = room(&json!({"room_id": name}));
    for _ in 0..150 {
        fake.tell(lobby(), "z", chat(lobby(), "x"));
        fake.tell(room, "z", chat(room, "x"));
    }
    let mut a = Local::fresh(&fake, keyed());
    assert_eq!(a.register("a")["payload"]["missed_messages"], limits::MISSED_MAX);
    let mut seqs = std::collections::BTreeMap::<String, Vec<u64>>::new();
    while let Some(message) = a.event("message_received") {
        let room = message["room_id"].as_str().unwrap().into();
        seqs.entry(room).or_default().push(message["seq"].as_u64().unwrap());
    }
    assert!(seqs.values().all(|seqs| *seqs == (51..=150).collect::<Vec<_>>()), "{seqs:?}");
}

#[test]
fn a_member_that_catches_up_does_not_get_its_own_messages() {
    let (fake, mut a, _b, name) = pair();
    let room = room(&json!({"room_id": name}));
    for _ in 0..1_000 {
        fake.tell(room, "a", chat(room, "mine"));
        fake.tell(room, "z", Say { mentions: vec!["a".into()], ..chat(room, "theirs") });
    }
    let (mut messages, mut mentions) = (0, 0);
    while let Some(mut event) = {
        a.settle();
        a.events.pop_front()
    } {
        match event["type"].as_str() {
            Some("message_received") => {
                messages += 1;
                assert_eq!(event["payload"]["seq"], 2 * messages);
            }
            Some("mention") => mentions += 1,
            Some("agent_joined" | "turn_changed") => {}
            _ => panic!("{}", event["type"].take()),
        }
    }
    assert_eq!(messages, 1_000);
    // Each turn that was announced may have pushed one out.
    assert!(mentions >= limits::SPILL_FRAMES_MAX / 2, "{mentions}");
}

#[test]
fn a_takeover_goes_on_where_the_old_connection_was_written_to() {
    let (fake, mut a, _b, name) = pair();
    let room = room(&json!({"room_id": name}));
    fake.tell(room, "z", chat(room, "written"));
    assert_eq!(a.event("message_received").unwrap()["seq"], 1);
    fake.tell(room, "z", chat(room, "queued"));
    fake.tell(room, "z", chat(room, "queued"));
    let mut late = Local::fresh(&fake, keyed());
    assert_eq!(late.register("a")["payload"]["missed_messages"], 2);
    fake.tell(room, "z", chat(room, "live"));
    for seq in 2..=4 {
        assert_eq!(late.event("message_received").unwrap()["seq"], seq);
    }
    assert!(late.event("message_received").is_none());
}

#[test]
fn an_agent_that_comes_back_gets_what_it_missed_and_then_goes_on_live() {
    let (fake, mut a, mut b, room) = pair();
    b.call("send_message", json!({"room_id": room, "content": "before"}));
    assert_eq!(a.event("message_received").unwrap()["seq"], 1);
    a.hang_up();
    assert_eq!(b.event("agent_left").unwrap()["agent_id"], "a");
    for i in 0..250 {
        b.call("send_message", json!({"room_id": room, "content": i.to_string()}));
    }
    let mut a = Local::fresh(&fake, keyed());
    let welcome = a.register("a");
    assert_eq!(welcome["payload"]["missed_messages"], 200);
    assert_eq!(b.event("agent_joined").unwrap()["reconnected"], true);
    b.call("send_message", json!({"room_id": room, "content": "live"}));
    let mut seqs = Vec::new();
    while let Some(message) = a.event("message_received") {
        seqs.push(message["seq"].as_u64().unwrap());
    }
    assert_eq!(seqs, (52..=252).collect::<Vec<_>>());
}

#[test]
fn a_displaced_connection_ends_and_its_end_touches_nobody() {
    let (fake, a, mut b, _) = pair();
    fake.displace("a");
    assert!(!a.is_open());
    assert_eq!(a.fake.hub().agents(), 1);
    assert!(b.kinds().is_empty());
}

#[test]
fn rooms_are_created_listed_and_described() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let made = a.call(
        "create_room",
        json!({"name": "n", "description": "d", "public": true, "parent_id": "lobby"}),
    );
    assert_eq!(made["visibility"], "public");
    assert_eq!(made["parent_id"], "lobby");
    assert_eq!(made["owner_key"].as_str().unwrap().len(), 32);
    for it in [&mut a, &mut b] {
        assert_eq!(it.event("room_created").unwrap()["room_id"], made["room_id"]);
    }
    assert_eq!(a.code("create_room", json!({"name": "n"})), "room_name_taken");
    for (bad, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(257)}), "name"),
        (json!({"name": "m", "description": "x".repeat(4097)}), "description"),
        (json!({"name": 7}), "name"),
        (json!({"name": " ", "parent_id": "nowhere"}), "name"),
    ] {
        let reply = a.ask("create_room", bad);
        assert_eq!(reply["payload"]["code"], "invalid_payload");
        assert!(reply["payload"]["message"].as_str().unwrap().contains(field), "{reply}");
    }
    let orphan = json!({"name": "m", "parent_id": "nowhere"});
    assert_eq!(a.code("create_room", orphan), "room_not_found");
    let rooms = b.call("list_rooms", json!({"parent_id": "lobby"}));
    assert_eq!(rooms["rooms"][0]["room_id"], made["room_id"]);
    assert_eq!(b.code("list_rooms", json!({"parent_id": "nowhere"})), "room_not_found");
    let info = b.ask("room_info", json!({"room_id": "lobby"}));
    assert_eq!(info["type"], "room_info_result");
    assert_eq!(info["payload"]["sub_rooms"][0]["name"], "n");
    assert_eq!(info["payload"]["current_turn_holder"], Value::Null);
    assert_eq!(info["payload"]["room"]["member_count"], 0);
}

#[test]
fn a_private_room_is_for_its_key_alone() {
    let (fake, _) = Fake::new();
    let other = || Config::new(Auth::Key(bridge::config::NodeKey::new(OTHER_KEY)), here());
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::fresh(&fake, other()));
    b.call("register", json!({"key": OTHER_KEY, "name": "b"}));
    let room = a.call("create_room", json!({"name": "p"}))["room_id"].clone();
    assert!(b.event("room_created").is_none());
    for kind in ["join_room", "leave_room", "get_history", "room_tip", "room_info", "list_agents"] {
        assert_eq!(b.code(kind, json!({"room_id": room})), "access_denied", "{kind}");
    }
    for kind in ["send_message", "thinking"] {
        let payload = json!({"room_id": room, "content": "x"});
        assert_eq!(b.code(kind, payload), "access_denied", "{kind}");
    }
    assert_eq!(b.code("set_typing", json!({"room_id": room})), "access_denied");
    assert_eq!(b.code("create_room", json!({"name": "c", "parent_id": room})), "access_denied");
    assert_eq!(b.call("list_rooms", json!({}))["rooms"].as_array().unwrap().len(), 1);
    assert_eq!(b.call("list_agents", json!({}))["agents"].as_array().unwrap().len(), 1);
}

#[test]
fn members_see_joins_leaves_and_turns_and_others_do_not() {
    let (fake, mut a, mut b, room) = pair();
    let mut c = Local::agent(&fake, "c");
    let info = a.call("room_info", json!({"room_id": room}));
    assert_eq!(info["turn_order"], json!(["a", "b"]));
    assert_eq!(info["current_turn_holder"], "a");
    c.call("join_room", json!({"room_id": room}));
    assert_eq!(a.event("agent_joined").unwrap()["agent"]["agent_id"], "c");
    c.call("join_room", json!({"room_id": room}));
    assert!(a.kinds().is_empty(), "a second join is nothing");
    a.call("leave_room", json!({"room_id": room}));
    assert_eq!(b.event("agent_left").unwrap()["agent_id"], "a");
    let turn = b.event("turn_changed").unwrap();
    assert_eq!((&turn["current_turn_holder"], &turn["reason"]), (&json!("b"), &json!("left")));
    assert_eq!(a.code("leave_room", json!({"room_id": room})), "not_in_room");
    let payload = json!({"room_id": room, "content": "x"});
    assert_eq!(a.code("send_message", payload.clone()), "not_in_room");
    a.kinds();
    b.call("send_message", payload);
    assert!(a.kinds().is_empty());
    assert_eq!(c.event("turn_changed").unwrap()["reason"], "left");
    assert_eq!(c.event("turn_changed").unwrap()["reason"], "message_sent");
    assert_eq!(a.code("join_room", json!({"room_id": "nowhere"})), "room_not_found");
}

#[test]
fn a_message_is_answered_pushed_and_kept_with_all_it_carries() {
    let (_, mut a, mut b, room) = pair();
    let sent = a.call(
        "send_message",
        json!({"room_id": room, "content": "hé\n", "metadata": {"kind": "fyi"}, "reply_to": "q",
               "mentions": ["b", "b", "nobody"]}),
    );
    assert_eq!(sent["seq"], 1);
    assert_eq!(sent["metadata"], json!({"kind": "fyi"}));
    assert_eq!(sent["reply_to_message"], "q");
    assert_eq!(b.event("message_received").unwrap(), sent);
    assert_eq!(b.event("mention").unwrap()["message"], sent);
    assert_eq!(b.kinds(), ["turn_changed"]);
    assert_eq!(a.kinds(), ["turn_changed"], "no echo for the sender");
    let page = a.call("get_history", json!({"room_id": room}));
    assert_eq!(page["messages"], json!([sent]));
    let plain = a.call("send_message", json!({"room_id": room, "content": "x"}));
    assert_eq!(plain["metadata"], Value::Null);
    let thought = a.call("thinking", json!({"room_id": room, "content": "hm"}));
    assert_eq!(thought["metadata"], json!({"type": "thinking"}));
    assert_eq!(b.event("thinking").unwrap(), thought);
    assert!(b.kinds().is_empty(), "a thought moves no turn");
    let page = b.call("get_history", json!({"room_id": room, "since_seq": 2}));
    assert_eq!(page["messages"], json!([thought]));
}

#[test]
fn a_mention_reaches_who_may_read_the_room_and_nobody_else() {
    let (fake, mut a, mut b, room) = pair();
    b.call("leave_room", json!({"room_id": room}));
    b.kinds();
    let text = json!({"room_id": room, "content": "come", "mentions": ["b"]});
    let sent = a.call("send_message", text);
    assert_eq!(b.event("mention").unwrap()["message"], sent);
    let other = Config::new(Auth::Key(bridge::config::NodeKey::new(OTHER_KEY)), here());
    let mut c = Local::fresh(&fake, other);
    c.call("register", json!({"key": OTHER_KEY, "name": "c", "agent_id": "c"}));
    let private = a.call("create_room", json!({"name": "p"}))["room_id"].clone();
    a.call("join_room", json!({"room_id": private}));
    a.call("send_message", json!({"room_id": private, "content": "x", "mentions": ["c", "b"]}));
    assert!(c.event("mention").is_none());
    assert!(b.event("mention").is_some());
}

#[test]
fn what_is_too_large_or_malformed_is_named() {
    let (_, mut a, _b, room) = pair();
    let text = |len| json!({"room_id": room, "content": "x".repeat(len)});
    a.call("send_message", text(65_536));
    assert_eq!(a.code("send_message", text(65_537)), "message_too_large");
    assert_eq!(a.code("thinking", text(65_537)), "message_too_large");
    let metadata = json!({"room_id": room, "content": "x", "metadata": "y".repeat(330_000)});
    assert_eq!(a.code("send_message", metadata), "message_too_large");
    for bad in [
        json!({"room_id": room}),
        json!({"room_id": room, "content": 1}),
        json!({"room_id": room, "content": "x", "mentions": "b"}),
        json!({"room_id": room, "content": "x", "mentions": vec!["b"; 257]}),
        json!({"room_id": room, "content": "x", "reply_to": "z".repeat(129)}),
        json!({"room_id": room, "content": "x", "mesh": {"dedup": ""}}),
        json!({"room_id": room, "content": "x", "mesh": {"durable": 0}}),
        json!({"room_id": room, "content": "x", "mesh": {"durable": 1, "durable_wait_ms": 20_001}}),
        json!({"room_id": room, "content": "x", "mesh": {"durable": 2}}),
    ] {
        assert_eq!(a.code("send_message", bad), "invalid_payload");
    }
    assert_eq!(a.code("set_presence", json!({"status": "asleep"})), "invalid_payload");
    let long = json!({"status": "idle", "status_detail": "x".repeat(4097)});
    assert_eq!(a.code("set_presence", long), "invalid_payload");
    assert_eq!(a.code("cast_vote", json!({"vote_id": "x"})), "invalid_payload");
}

#[test]
fn an_encrypted_room_takes_only_blobs() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "a");
    let room = a.call("create_room", json!({"name": "e", "public": true, "encrypted": true}));
    let room = room["room_id"].clone();
    a.call("join_room", json!({"room_id": room}));
    for kind in ["send_message", "thinking"] {
        let code = a.code(kind, json!({"room_id": room, "content": "plain"}));
        assert_eq!(code, "plaintext_in_encrypted_room");
        a.call(kind, json!({"room_id": room, "content": "clw1:AAAA"}));
    }
}

#[test]
fn a_repeated_send_is_answered_with_the_first() {
    let (_, mut a, mut b, room) = pair();
    let text = |text: &str| json!({"room_id": room, "content": text, "mesh": {"dedup": "d"}});
    let first = a.call("send_message", text("one"));
    assert_eq!(a.call("send_message", text("two")), first);
    assert_eq!(b.event("message_received").unwrap(), first);
    assert!(b.event("message_received").is_none());
}

#[test]
fn a_send_that_wants_copies_is_told_how_many_there_are() {
    let (fake, mut a, mut b, room) = pair();
    let text = |durable| json!({"room_id": room, "content": "x", "mesh": {"durable": durable, "dedup": "d"}});
    let first = a.call("send_message", text(1));
    assert_eq!(first["mesh"]["durable"], 1);
    assert_eq!(
        b.event("message_received").unwrap()["mesh"]["durable"],
        Value::Null,
        "it is the sender's"
    );
    // This node alone has the room, whatever was said before.
    let reply = a.ask("send_message", text(2));
    assert_eq!(reply["payload"]["code"], "invalid_payload");
    let message = reply["payload"]["message"].as_str().unwrap();
    assert_eq!(message, "`durable` must be at most 1: 1 node has the room");
    let again = a.call("send_message", text(1));
    assert_eq!(
        (&again["message_id"], &again["mesh"]["durable"]),
        (&first["message_id"], &json!(1))
    );
    let fleeting = json!({"name": "e", "public": true, "ephemeral": true});
    let fleeting = a.call("create_room", fleeting)["room_id"].clone();
    a.call("join_room", json!({"room_id": fleeting}));
    let say = json!({"room_id": fleeting, "content": "x", "mesh": {"durable": 1}});
    assert_eq!(a.code("send_message", say), "invalid_payload");
    let message = first["message_id"].as_str().and_then(MessageId::from_uuid).unwrap();
    let said = SaidOk { message, number: Number(1), fresh: None, copies: Some(3) };
    *fake.knobs.script.lock().unwrap() = Some(Ok(Outcome::Said(said)));
    assert_eq!(a.call("send_message", text(1))["mesh"]["durable"], 3);
}

#[test]
fn what_became_of_a_message_is_told_as_far_as_anybody_has_said() {
    let (_, mut a, mut b, room) = pair();
    let first = a.call("send_message", json!({"room_id": room, "content": "x"}));
    let id = first["message_id"].clone();
    let ask = json!({"room_id": room, "message_id": id});
    let receipts = a.call("get_receipts", ask.clone());
    assert_eq!(receipts["stored"].as_array().map(Vec::len), Some(1), "{receipts}");
    assert_eq!((&receipts["of"], &receipts["unknown"]), (&json!(1), &json!([])));
    // It has only just been written to the other one.
    assert_eq!(receipts["agents"], json!([]));
    assert_eq!(
        b.call("ack", json!({"room_id": room, "seq": 1})),
        json!({"room_id": room, "seq": 1})
    );
    let states = |a: &mut Local| {
        let agents = a.call("get_receipts", ask.clone())["agents"].take();
        let agents = agents.as_array().unwrap().iter();
        agents.map(|it| format!("{} {}", it["agent_id"], it["state"])).collect::<Vec<_>>()
    };
    assert_eq!(states(&mut a), [r#""b" "confirmed""#]);
    b.call("send_message", json!({"room_id": room, "content": "y", "reply_to": id}));
    assert_eq!(states(&mut a), [r#""b" "answered""#]);
    assert_eq!(b.code("ack", json!({"room_id": room, "seq": 3})), "invalid_payload");
    for message_id in ["x", "7288f8f5-dade-8721-8786-5948f0680371"] {
        let ask = json!({"room_id": room, "message_id": message_id});
        assert_eq!(a.code("get_receipts", ask), "invalid_payload");
    }
    let elsewhere = json!({"room_id": "7288f8f5-dade-8721-8786-5948f0680371", "message_id": id});
    assert_eq!(a.code("get_receipts", elsewhere), "room_not_found");
}

#[test]
fn history_is_windowed() {
    let (_, mut a, _b, room) = pair();
    let sent: Vec<Value> = (0..10)
        .map(|i| a.call("send_message", json!({"room_id": room, "content": i.to_string()})))
        .collect();
    let mut page = |window: Value| {
        let mut payload = json!({"room_id": room});
        payload.as_object_mut().unwrap().extend(window.as_object().unwrap().clone());
        let reply = a.ask("get_history", payload);
        assert_eq!(reply["type"], "history_result", "{reply}");
        let messages = reply["payload"]["messages"].as_array().unwrap().clone();
        messages.iter().map(|it| it["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(page(json!({})), (1..=10).collect::<Vec<_>>());
    assert_eq!(page(json!({"limit": 3})), [8, 9, 10]);
    assert_eq!(page(json!({"limit": 0})), [0; 0]);
    assert_eq!(page(json!({"limit": 0, "since_seq": 2})), [0; 0]);
    assert_eq!(page(json!({"limit": 3, "since_seq": 2})), [3, 4, 5]);
    assert_eq!(page(json!({"since_seq": 0, "limit": 2})), [1, 2]);
    assert_eq!(page(json!({"since_seq": 10})), [0; 0]);
    assert_eq!(page(json!({"since_seq": 1_u64 << 53})), [0; 0]);
    assert_eq!(page(json!({"since": sent[6]["message_id"]})), [8, 9, 10]);
    // Nobody knows such a message: what comes after it is nothing.
    assert_eq!(page(json!({"since": "nonsense"})), [0; 0]);
    assert_eq!(page(json!({"since": "00000000-0000-8000-8000-000000000000"})), [0; 0]);
    assert_eq!(page(json!({"before": sent[2]["timestamp"]})), [1, 2]);
    assert_eq!(page(json!({"before": sent[4]["timestamp"], "since_seq": 2})), [3, 4]);
    assert_eq!(a.call("room_tip", json!({"room_id": room}))["seq"], 10);
    assert_eq!(a.call("room_tip", json!({"room_id": "lobby"}))["seq"], 0);
    for bad in [
        json!({"room_id": room, "before": "yesterday"}),
        json!({"room_id": room, "since_seq": -1}),
        json!({"room_id": room, "limit": "many"}),
    ] {
        assert_eq!(a.code("get_history", bad), "invalid_payload");
    }
    assert_eq!(a.code("get_history", json!({"room_id": "nowhere"})), "room_not_found");
    assert_eq!(a.code("room_tip", json!({"room_id": "nowhere"})), "room_not_found");
}

#[test]
fn no_live_message_passes_a_page_that_is_claimed_for() {
    let (fake, mut a, mut b, name) = pair();
    b.call("send_message", json!({"room_id": name, "content": "x"}));
    foreign(&fake, room(&json!({"room_id": name})), true);
    fake.knobs.claims.store(true, Ordering::Relaxed);
    fake.knobs.speaks_while_claiming.store(true, Ordering::Relaxed);
    a.kinds();
    a.written.clear();
    a.call("get_history", json!({"room_id": name, "since_seq": 5_000}));
    assert_eq!(a.event("message_received").unwrap()["content"], "meanwhile");
    let of_the_page = ["history_result", "message_received"];
    a.written.retain(|kind| of_the_page.contains(&kind.as_str()));
    assert_eq!(a.written, of_the_page);
}

/// The rows that a cursor from elsewhere is to get.
fn foreign(fake: &Fake, room: mesh::name::id::RoomId, needs_claim: bool) {
    let mut rows = fake.page_since(room, Number::ZERO, 10).unwrap();
    for row in &mut rows {
        row.numbers = vec![row.number, Number(row.number.0 + 5_000)];
        row.number = Number(row.number.0 + 5_000);
    }
    let unproven = rows.iter().map(|row| (row.at, None)).collect();
    *fake.knobs.roam.lock().unwrap() =
        Some(Roam { rows, more: false, later: true, unproven, needs_claim });
}

#[test]
fn who_reads_on_where_he_has_read_to_the_end_gets_nothing_again() {
    let (fake, mut a, mut b, name) = pair();
    b.call("send_message", json!({"room_id": name, "content": "x"}));
    foreign(&fake, room(&json!({"room_id": name})), false);
    let page = |a: &mut Local, since: u64| {
        let page = a.call("get_history", json!({"room_id": name, "since_seq": since}));
        page["messages"].as_array().unwrap().len()
    };
    assert_eq!(page(&mut a, 0), 1);
    fake.knobs.split.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(page(&mut a, 1), 0, "the cursor is of this connection's own page");
    }
    assert_eq!(page(&mut b, 1), 1, "where this one is from nobody knows");
}

/// Seed 20725 of the simulation. Another node had numbered it for the client, which came here before that was heard of.
#[test]
fn who_came_with_a_cursor_from_elsewhere_gets_what_is_passed_over_since() {
    let (fake, mut a, mut b, name) = pair();
    let room = room(&json!({"room_id": name}));
    b.call("send_message", json!({"room_id": name, "content": "x"}));
    let (cursor, number) = (era(1).number(5), era(2).number(5));
    a.call("get_history", json!({"room_id": name, "since_seq": cursor.0}));
    let row = fake.page_since(room, Number::ZERO, 1).unwrap().remove(0);
    fake.knobs.passed_over.lock().unwrap().push((number, row.at));
    for it in [&mut a, &mut b] {
        it.kinds();
        it.fake.hub().notify(room, RoomEvent::PassedOver { number, log: row.log, at: row.at });
        it.settle();
    }
    let again = a.event("message_received").expect("it may not have seen it");
    assert_eq!((again["content"].as_str(), again["seq"].as_u64()), (Some("x"), Some(number.0)));
    assert_eq!(b.event("message_received"), None, "it has been here all along");
}

#[test]
fn who_came_with_a_cursor_from_elsewhere_reads_what_is_passed_over_since() {
    let (fake, mut a, mut b, name) = pair();
    let room = room(&json!({"room_id": name}));
    for content in ["x", "y"] {
        b.call("send_message", json!({"room_id": name, "content": content}));
    }
    let [came, second, number] = [(1, 4), (1, 5), (2, 1)].map(|(c, n)| era(c).number(n));
    let first = fake.page_since(room, Number::ZERO, 1).unwrap().remove(0);
    fake.rows.write().unwrap().get_mut(&room).unwrap()[1].number = second;
    let page = |it: &mut Local, since: Number| -> Vec<u64> {
        let page = it.call("get_history", json!({"room_id": name, "since_seq": since.0}));
        let messages = page["messages"].as_array().unwrap().iter();
        messages.map(|it| it["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(page(&mut a, came), [second.0]);
    assert_eq!(page(&mut b, Number::ZERO), [1, second.0]);
    fake.knobs.passed_over.lock().unwrap().push((number, first.at));
    assert!(page(&mut b, second).is_empty(), "it has read it here");
    assert_eq!(page(&mut a, second), [number.0]);
}

fn era(c: u32) -> Era {
    Era::new(c, 7).unwrap()
}

#[test]
fn a_cursor_from_elsewhere_is_served_above_it() {
    let (fake, mut a, mut b, room_name) = pair();
    let room = room(&json!({"room_id": room_name}));
    b.call("send_message", json!({"room_id": room_name, "content": "x"}));
    foreign(&fake, room, true);
    fake.knobs.claims.store(true, Ordering::Relaxed);
    let page = a.call("get_history", json!({"room_id": room_name, "since_seq": 5_000}));
    assert_eq!(*fake.knobs.roamed.lock().unwrap(), [(room, Number(5_000))]);
    assert_eq!(page["messages"][0]["seq"], 5_001);
    assert_eq!(
        page["messages"][0]["mesh"],
        json!({"canonical_seq": 1, "late": true, "numbers": [1, 5_001], "verified": true})
    );
    // The hold has ended.
    a.kinds();
    b.call("send_message", json!({"room_id": room_name, "content": "y"}));
    assert_eq!(a.event("message_received").unwrap()["content"], "y");
}

#[test]
fn a_cursor_that_the_mesh_does_not_know_counts_as_the_tip() {
    let (fake, mut a, mut b, name) = pair();
    b.call("send_message", json!({"room_id": name, "content": "x"}));
    foreign(&fake, room(&json!({"room_id": name})), true);
    let page = a.call("get_history", json!({"room_id": name, "since_seq": 5_000}));
    assert_eq!(page["messages"], json!([]));
    a.kinds();
    b.call("send_message", json!({"room_id": name, "content": "y"}));
    assert_eq!(a.event("message_received").unwrap()["content"], "y");
}

#[test]
fn an_agent_that_comes_from_another_node_gets_what_it_has_not_seen_there() {
    let (fake, mut a, mut b, name) = pair();
    let room = room(&json!({"room_id": name}));
    for content in ["x", "y"] {
        b.call("send_message", json!({"room_id": name, "content": content}));
    }
    a.kinds();
    // What the roster says it saw elsewhere is above everything here.
    a.line.cut();
    fake.detach("a", vec![(room, Number(5_000))]);
    foreign(&fake, room, true);
    fake.knobs.claims.store(true, Ordering::Relaxed);
    let mut a = Local::fresh(&fake, keyed());
    let welcome = a.register("a");
    assert_eq!(welcome["payload"]["missed_messages"], 2);
    assert_eq!(*fake.knobs.roamed.lock().unwrap(), [(room, Number(5_000))]);
    assert_eq!(a.event("message_received").unwrap()["seq"], 5_001);
    assert_eq!(a.event("message_received").unwrap()["seq"], 5_002);
}

#[test]
fn presence_and_typing_reach_the_others_once() {
    let (_, mut a, mut b, room) = pair();
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": "lobby"}));
    }
    a.kinds();
    b.kinds();
    let status = a.call("set_presence", json!({"status": "working", "progress": 57}));
    assert_eq!(status, json!({"status": "working"}));
    let update = b.event("presence_update").unwrap();
    assert_eq!((&update["progress"], &update["status_detail"]), (&json!(57), &Value::Null));
    assert!(b.kinds().is_empty(), "once, although they share two rooms");
    let agents = b.call("list_agents", json!({"room_id": room}));
    assert_eq!(agents["agents"][0]["status"], "working");
    a.call("set_typing", json!({"room_id": room}));
    assert_eq!(b.event("typing_indicator").unwrap()["typing"], true);
    assert!(a.kinds().is_empty());
    b.call("leave_room", json!({"room_id": room}));
    assert_eq!(b.code("set_typing", json!({"room_id": room})), "not_in_room");
}

#[test]
fn an_ephemeral_room_ends_for_everybody() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    let room = a.call("create_room", json!({"name": "e", "public": true, "ephemeral": true}));
    a.call("join_room", json!({"room_id": room["room_id"]}));
    a.call("leave_room", json!({"room_id": room["room_id"]}));
    assert_eq!(b.event("room_destroyed").unwrap()["room_id"], room["room_id"]);
    assert_eq!(b.code("join_room", json!({"room_id": room["room_id"]})), "room_not_found");
}

#[test]
fn a_send_that_waits_for_its_number_holds_up_nobody() {
    let (fake, mut a, _b, room) = pair();
    fake.knobs.stalls.store(true, Ordering::Relaxed);
    let text = json!({"room_id": room, "content": "x"});
    let sends: Vec<String> = (0..limits::CALLS_IN_FLIGHT_MAX)
        .map(|_| {
            assert!(a.line.takes_requests());
            a.post("send_message", text.clone())
        })
        .collect();
    assert!(!a.line.takes_requests(), "no more is read");
    assert_eq!(a.ask("ping", json!({}))["type"], "pong");
    assert!(a.reply(&sends[0]).is_none());
    fake.flow();
    for (i, id) in sends.iter().enumerate() {
        assert_eq!(a.reply(id).unwrap()["payload"]["seq"], i + 1, "in the order they were sent");
    }
    assert!(a.line.takes_requests());
}

#[test]
fn large_sends_in_flight_are_bounded_by_their_bytes() {
    let (fake, mut a, _b, room) = pair();
    fake.knobs.stalls.store(true, Ordering::Relaxed);
    let text = json!({"room_id": room, "content": "x".repeat(65_536)});
    let mut sends = 0;
    while a.line.takes_requests() {
        a.post("send_message", text.clone());
        sends += 1;
    }
    assert_eq!(sends, limits::CALL_BYTES_MAX / (2 * 65_536));
}

#[test]
fn a_node_that_cannot_says_so() {
    let (fake, mut a, mut b, room) = pair();
    fake.knobs.full.store(true, Ordering::Relaxed);
    let text = json!({"room_id": room, "content": "x"});
    assert_eq!(a.code("send_message", text), "internal_error");
    assert_eq!(b.code("join_room", json!({"room_id": "lobby"})), "internal_error");
    fake.knobs.full.store(false, Ordering::Relaxed);
    fake.tell(lobby(), "z", chat(lobby(), "to members only"));
    assert!(b.event("message_received").is_none(), "the seat was given back");
    fake.knobs.broken.store(true, Ordering::Relaxed);
    assert_eq!(a.code("get_history", json!({"room_id": room})), "internal_error");
    a.hang_up();
    let mut a = Local::fresh(&fake, keyed());
    assert_eq!(a.register("a")["payload"]["code"], "internal_error");
    assert!(!a.is_open(), "it is not told that it missed nothing");
}

#[test]
fn content_that_is_no_longer_in_memory_is_read() {
    let (fake, mut a, mut b, room) = pair();
    fake.knobs.cold.store(true, Ordering::Relaxed);
    a.call("send_message", json!({"room_id": room, "content": "x"}));
    assert_eq!(b.event("message_received").unwrap()["content"], "x");
}

/// The mesh has taken it, and the node ends: it may have been stored, and spread.
#[test]
fn what_a_node_that_ends_does_not_answer_is_unknown() {
    let (fake, mut a, _b, room) = pair();
    fake.knobs.ends.store(true, Ordering::Relaxed);
    let reply = a.ask("send_message", json!({"room_id": room, "content": "x"}));
    assert_eq!(
        (&reply["type"], &reply["payload"]["code"]),
        (&json!("error"), &json!("internal_error"))
    );
    assert_eq!(reply["payload"]["mesh"], json!({"reason": "unknown"}));
}
