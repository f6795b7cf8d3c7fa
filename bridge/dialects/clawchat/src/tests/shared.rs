//! Shared rooms: of two keys, as ClawChat's clients see them.

use serde_json::{Value, json};

use super::direct::three;

fn plans() -> Value {
    json!({"name": "plans", "description": "of two keys", "mesh": {"shared": true}})
}

#[test]
fn a_shared_room_is_of_its_makers_key_and_of_those_that_it_is_given_to() {
    let (_fake, [mut ann, mut bob, mut eve]) = three();
    let room = ann.call("create_room", plans());
    assert_eq!((&room["name"], &room["mesh"]), (&json!("plans"), &json!({"shared": true})));
    assert_eq!(room["visibility"], "private");
    let id = json!({"room_id": room["room_id"]});
    let with_bob = json!({"room_id": room["room_id"], "agent_id": "bob"});
    assert!(bob.kinds().is_empty(), "nobody else is told of it");
    for kind in ["room_info", "get_history", "join_room"] {
        assert_eq!(bob.code(kind, id.clone()), "access_denied", "{kind}");
    }

    assert_eq!(ann.call("share_room", with_bob.clone()), json!({}));
    // All agents of the key are told.
    for told in [&mut bob, &mut eve] {
        let opened = told.event("room_created").unwrap();
        assert_eq!((&opened["room_id"], &opened["mesh"]), (&room["room_id"], &room["mesh"]));
    }
    bob.call("join_room", id.clone());
    ann.call("join_room", id.clone());
    let info = bob.call("room_info", id.clone());
    assert_eq!(info["room"]["mesh"]["keys"].as_array().unwrap().len(), 2);
    assert_eq!(info["room"].get("owner_key"), None, "it is not his");
    ann.kinds();
    let said = bob.call("send_message", json!({"room_id": room["room_id"], "content": "hello"}));
    assert_eq!(ann.event("message_received").unwrap(), said);
    assert_eq!(eve.call("get_history", id.clone())["messages"], json!([said]));

    assert_eq!(bob.code("share_room", with_bob.clone()), "access_denied", "it is not his");
    assert_eq!(bob.code("unshare_room", with_bob.clone()), "access_denied");
    eve.kinds();
    bob.kinds();
    ann.call("unshare_room", with_bob.clone());
    for told in [&mut bob, &mut eve] {
        assert_eq!(told.event("room_destroyed").unwrap()["room_id"], room["room_id"]);
        assert_eq!(told.code("get_history", id.clone()), "access_denied");
    }
    assert_eq!(ann.event("agent_left").unwrap()["agent_id"], "bob");
    ann.call("send_message", json!({"room_id": room["room_id"], "content": "alone"}));
    assert!(bob.kinds().is_empty(), "he hears nothing of it");
    let again = ann.code("share_room", with_bob.clone());
    assert_eq!(again, "invalid_payload", "who is out stays out");
}

#[test]
fn a_shared_room_is_nothing_else_and_other_rooms_are_not_shared() {
    let (_fake, [mut ann, ..]) = three();
    let plain = ann.call("create_room", json!({"name": "mine"}));
    let share = json!({"room_id": plain["room_id"], "agent_id": "bob"});
    let refused = ann.ask("share_room", share.clone())["payload"].clone();
    assert_eq!(refused["code"], "invalid_payload");
    assert_eq!(refused["message"], "only shared rooms can be shared; make one with --shared");
    assert_eq!(ann.code("unshare_room", share), "invalid_payload");
    for wrong in [
        json!({"name": "x", "public": true, "mesh": {"shared": true}}),
        json!({"name": "x", "ephemeral": true, "mesh": {"shared": true}}),
        json!({"name": "x", "parent_id": "lobby", "mesh": {"shared": true}}),
        json!({"name": "x", "description": "d".repeat(513), "mesh": {"shared": true}}),
        json!({"name": "x", "mesh": {"shared": 1}}),
        json!({"name": "dm:bob", "mesh": {"shared": true}}),
    ] {
        assert_eq!(ann.code("create_room", wrong.clone()), "invalid_payload", "{wrong}");
    }
    let room = ann.call("create_room", plans());
    assert_eq!(ann.code("create_room", plans()), "room_name_taken");
    let nobody = json!({"room_id": room["room_id"], "agent_id": "nobody"});
    assert_eq!(ann.code("share_room", nobody), "invalid_payload");
    let own = json!({"room_id": room["room_id"], "agent_id": "ann"});
    assert_eq!(ann.code("unshare_room", own), "invalid_payload");
}
