//! What an agent gets that was away for a moment.

use std::time::Duration;

use serde_json::{Value, json};

use bridge::testing::{Fake, keyed, lobby};

use crate::local::Local;

/// The frames that come, as far as they are told once or numbered: `type` and number, or text.
fn told(it: &mut Local) -> Vec<String> {
    it.settle();
    let told = it.events.drain(..).filter_map(|event| {
        let payload = &event["payload"];
        let kind = event["type"].as_str()?;
        match kind {
            "message_received" => Some(format!("{kind} {}", payload["seq"])),
            "mention" => Some(format!("{kind} {}", payload["message"]["content"])),
            "agent_joined" | "agent_left" | "turn_changed" | "room_created" => None,
            other => Some(other.into()),
        }
    });
    told.collect()
}

fn say(it: &mut Local, more: Value) {
    let mut payload = json!({"room_id": "lobby", "content": "x"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    it.call("send_message", payload);
}

fn vote(it: &mut Local) -> Value {
    let payload = json!({"room_id": "lobby", "title": "t", "options": ["x", "y"]});
    it.call("create_vote", payload)["vote_id"].clone()
}

#[test]
fn who_was_away_is_told_of_votes_between_the_messages() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": "lobby"}));
    }
    say(&mut a, json!({}));
    assert_eq!(told(&mut b), ["message_received 1"]);
    b.hang_up();
    say(&mut a, json!({}));
    let id = vote(&mut a);
    say(&mut a, json!({"mentions": ["b"], "content": "come back"}));
    a.call("cast_vote", json!({"vote_id": id, "option_index": 0}));
    fake.pass(Duration::from_secs(5));
    let mut b = Local::fresh(&fake, keyed());
    let welcome = b.register("b");
    let expect = [
        "message_received 2",
        "vote_created",
        "message_received 3",
        "mention \"come back\"",
        "vote_result",
    ];
    assert_eq!(welcome["payload"]["missed_messages"], expect.len());
    assert_eq!(told(&mut b), expect);
    say(&mut a, json!({}));
    vote(&mut a);
    assert_eq!(told(&mut b), ["message_received 4", "vote_created"], "and then live");
    b.hang_up();
    let mut b = Local::fresh(&fake, keyed());
    assert_eq!(b.register("b")["payload"]["missed_messages"], 0, "nothing twice");
}

#[test]
fn notices_that_were_not_written_are_for_the_next_connection() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": "lobby"}));
    }
    vote(&mut a);
    let mut second = Local::fresh(&fake, keyed());
    second.register("b");
    assert_eq!(told(&mut second), ["vote_created"]);
    vote(&mut a);
    second.line.cut();
    vote(&mut a);
    second.hang_up();
    vote(&mut a);
    let mut third = Local::fresh(&fake, keyed());
    assert_eq!(third.register("b")["payload"]["missed_messages"], 3);
    assert_eq!(told(&mut third), ["vote_created"; 3]);
}

#[test]
fn a_mention_from_outside_waits_for_who_may_read_it() {
    let (fake, _) = Fake::new();
    let mut a = Local::agent(&fake, "a");
    a.call("join_room", json!({"room_id": "lobby"}));
    let b = Local::agent(&fake, "b");
    b.hang_up();
    say(&mut a, json!({"mentions": ["b"], "content": "come"}));
    vote(&mut a);
    let mut b = Local::fresh(&fake, keyed());
    assert_eq!(b.register("b")["payload"]["missed_messages"], 1, "it was not in the room");
    assert_eq!(told(&mut b), ["mention \"come\""]);
}

#[test]
fn of_what_was_missed_the_newest_is_told() {
    let (fake, _) = Fake::new();
    let (mut a, mut b) = (Local::agent(&fake, "a"), Local::agent(&fake, "b"));
    for it in [&mut a, &mut b] {
        it.call("join_room", json!({"room_id": "lobby"}));
    }
    fake.say(lobby(), "z", "seen");
    told(&mut b);
    b.hang_up();
    vote(&mut a);
    for _ in 0..199 {
        fake.say(lobby(), "z", "x");
    }
    vote(&mut a);
    let mut b = Local::fresh(&fake, keyed());
    assert_eq!(b.register("b")["payload"]["missed_messages"], 200);
    let told = told(&mut b);
    assert_eq!(
        (&*told[0], &*told[198], &*told[199]),
        ("message_received 2", "message_received 200", "vote_created",)
    );
}
