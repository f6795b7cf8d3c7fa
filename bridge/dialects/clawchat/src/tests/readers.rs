//! Agents that stay at this node, and what they get after others have had a room numbered again.

use std::sync::{Arc, atomic::Ordering};

use mesh::name::{
    id::RoomId,
    number::{Era, Number},
};
use serde_json::{Value, json};

use bridge::{
    backend::{Reads as _, Roam},
    testing::{Fake, keyed},
};

use crate::local::{Local, room};

fn era(c: u32) -> Era {
    Era::new(c, 7).unwrap()
}

/// Somebody at another node has all of a room numbered again.
fn number_again(fake: &Fake, room: RoomId, needs_claim: bool) {
    let mut rows = fake.page_since(room, Number::ZERO, 10).unwrap();
    for (n, row) in (1..).zip(&mut rows) {
        row.number = era(9).number(n);
    }
    let unproven = rows.iter().map(|row| (row.at, Some(Number(1)))).collect();
    *fake.knobs.roam.lock().unwrap() =
        Some(Roam { rows, more: false, later: false, unproven, needs_claim });
    // No cursor is served without looking.
    fake.knobs.split.store(true, Ordering::Relaxed);
}

/// A room in which two messages were said in an era that is not the first, and two agents that are there.
fn after_a_split() -> (Arc<Fake>, Local, Local, Value) {
    let (fake, _) = Fake::new();
    let (mut stays, mut says) = (Local::agent(&fake, "stays"), Local::agent(&fake, "says"));
    let name = says.call("create_room", json!({"name": "r", "public": true}))["room_id"].clone();
    for it in [&mut stays, &mut says] {
        it.call("join_room", json!({"room_id": name}));
    }
    for content in ["x", "y"] {
        says.call("send_message", json!({"room_id": name, "content": content}));
    }
    let mut rows = fake.rows.write().unwrap();
    for (n, row) in (1..).zip(rows.get_mut(&room(&json!({"room_id": name}))).unwrap()) {
        row.number = era(1).number(n);
    }
    drop(rows);
    for it in [&mut stays, &mut says] {
        it.kinds();
    }
    (fake, stays, says, name)
}

fn page(it: &mut Local, room: &Value, since: Number) -> Vec<u64> {
    let page = it.call("get_history", json!({"room_id": room, "since_seq": since.0}));
    let messages = page["messages"].as_array().unwrap().iter();
    messages.map(|it| it["seq"].as_u64().unwrap()).collect()
}

#[test]
fn who_stays_gets_nothing_again_however_often_others_have_it_numbered() {
    let (fake, mut stays, mut says, name) = after_a_split();
    let read = page(&mut stays, &name, Number::ZERO);
    assert_eq!(read, [era(1).number(1).0, era(1).number(2).0]);
    number_again(&fake, room(&json!({"room_id": name})), false);
    stays.hang_up();
    let mut stays = Local::agent(&fake, "stays");
    assert!(page(&mut stays, &name, era(1).number(2)).is_empty(), "it got that here");
    assert_eq!(page(&mut says, &name, era(1).number(2)).len(), 2, "this one was never given it");
}

#[test]
fn who_stays_is_known_after_a_restart() {
    let (fake, mut stays, _says, name) = after_a_split();
    let first = json!({"room_id": name, "since_seq": 0, "limit": 1});
    assert_eq!(stays.call("get_history", first)["messages"].as_array().unwrap().len(), 1);
    fake.keep_readers();
    // What is given after that is not written before the power fails.
    assert_eq!(page(&mut stays, &name, era(1).number(1)), [era(1).number(2).0]);
    stays.hang_up();
    assert_eq!(fake.reload_readers(), 1, "of one reader");
    number_again(&fake, room(&json!({"room_id": name})), false);
    let mut stays = Local::fresh(&fake, keyed());
    stays.register("stays");
    assert!(page(&mut stays, &name, era(1).number(2)).is_empty());
}

/// A cursor of an era that is not known yet: standard clients bear an empty page, and ask again.
#[test]
fn a_cursor_that_cannot_be_judged_yet_gets_an_empty_page_that_says_so() {
    let (fake, mut stays, _says, name) = after_a_split();
    number_again(&fake, room(&json!({"room_id": name})), true);
    fake.knobs.behind.store(1, Ordering::Relaxed);
    fake.knobs.speaks_while_claiming.store(true, Ordering::Relaxed);
    fake.knobs.claims.store(true, Ordering::Relaxed);
    // It may take an empty page for the end, and listen: what it has not seen comes live.
    let id = room(&json!({"room_id": name}));
    let mut unseen = fake.page_since(id, Number::ZERO, 1).unwrap();
    unseen[0].number = era(9).number(1);
    fake.rows.write().unwrap().get_mut(&id).unwrap().append(&mut unseen);
    stays.written.clear();
    let cursor = era(5).number(3).0;
    let page = stays.call("get_history", json!({"room_id": name, "since_seq": cursor}));
    assert_eq!((&page["messages"], &page["mesh"]), (&json!([]), &json!({"behind": true})));
    stays.settle();
    let of_the_room = ["history_result", "message_received"];
    stays.written.retain(|kind| of_the_room.contains(&kind.as_str()));
    assert_eq!(stays.written[0], "history_result", "live messages wait for it");
    assert_eq!(stays.written.len(), 2, "and come then");
    let page = stays.call("get_history", json!({"room_id": name, "since_seq": cursor}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    assert!(page.get("mesh").is_none());
}
