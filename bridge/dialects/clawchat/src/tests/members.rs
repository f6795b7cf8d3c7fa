//! Members of rooms on record, and agents that are retired, as ClawChat's clients see them.

use bridge::testing::keyed;
use serde_json::json;

use super::{
    direct::three,
    keys::{FREE, PRO},
};
use crate::local::Local;

#[test]
fn an_agent_that_is_put_on_the_list_of_a_room_is_in_it_and_hears_what_is_said() {
    let (_fake, [mut ann, mut bob, mut eve]) = three();
    let room = ann.call("create_room", json!({"name": "hall", "public": true}));
    let id = json!({"room_id": room["room_id"]});
    let member = |agent: &str| json!({"room_id": room["room_id"], "agent_id": agent});
    ann.call("join_room", id.clone());
    ann.kinds();
    bob.kinds();
    assert_eq!(ann.call("add_member", member("bob")), json!({}));
    assert_eq!(ann.event("agent_joined").unwrap()["agent"]["agent_id"], "bob");
    let mut lead = member("eve");
    lead["role"] = json!("lead");
    ann.call("add_member", lead.clone());
    let info = bob.call("room_info", id.clone());
    let members = info["room"]["mesh"]["members"].as_array().unwrap();
    let shown: Vec<_> =
        members.iter().map(|it| (it["agent_id"].as_str(), it["role"].as_str())).collect();
    assert_eq!(shown, [(Some("bob"), Some("member")), (Some("eve"), Some("lead"))]);
    let listed = bob.call("list_rooms", json!({}));
    let hall = listed["rooms"].as_array().unwrap().iter().find(|it| it["name"] == "hall").unwrap();
    assert_eq!(hall.get("mesh"), None, "lists are not among others");
    let said = ann.call("send_message", json!({"room_id": room["room_id"], "content": "hello"}));
    assert_eq!(bob.event("message_received").unwrap(), said);
    eve.kinds();
    // Only its key says who is on the list, and only of agents that there are.
    assert_eq!(bob.code("add_member", member("eve")), "access_denied");
    assert_eq!(ann.code("add_member", member("nobody")), "invalid_payload");
    lead["role"] = json!("boss");
    assert_eq!(ann.code("add_member", lead), "invalid_payload");
    // Who leaves is on it all the same.
    eve.call("leave_room", id.clone());
    let info = ann.call("room_info", id.clone());
    assert_eq!(info["room"]["mesh"]["members"][1]["left"], true);
    ann.kinds();
    ann.call("remove_member", member("bob"));
    assert_eq!(ann.event("agent_left").unwrap()["agent_id"], "bob");
    bob.kinds();
    ann.call("send_message", json!({"room_id": room["room_id"], "content": "alone"}));
    assert!(bob.kinds().is_empty(), "he hears nothing of it");
    assert_eq!(ann.code("remove_member", member("bob")), "invalid_payload");
    bob.call("join_room", id);
}

#[test]
fn nobody_registers_under_the_id_of_a_retired_agent() {
    let (fake, [mut ann, mut bob, _]) = three();
    let bobs = json!({"agent_id": "bob"});
    assert_eq!(ann.code("retire_agent", bobs), "invalid_payload", "it is another key's");
    let eve = json!({"agent_id": "eve"});
    assert_eq!(bob.call("retire_agent", eve), json!({}));
    for key in [FREE, PRO] {
        let mut other = Local::fresh(&fake, keyed());
        let register = json!({"key": key, "name": "eve", "agent_id": "eve", "reconnect": true});
        let refused = other.ask("register", register)["payload"].clone();
        assert_eq!(refused["code"], "agent_id_taken");
        assert!(refused["message"].as_str().unwrap().contains("retired"), "{refused}");
    }
}
