//! One person over several commands: the same agent, without `--agent-id`, by copy and paste.

use serde_json::{Value, json};
use testnet::wire::text;

use crate::support::World;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

/// Ids of a room's members, and whether each is without a connection.
fn members(world: &World, room_id: &str) -> Vec<(String, String, bool)> {
    let mut reader = world.agent(0, "reader");
    let ask = json!({"room_id": room_id});
    let list = world.runtime.block_on(reader.call("list_agents", ask)).unwrap();
    let agents = list["agents"].as_array().unwrap().iter();
    let member = |agent: &Value| {
        (text(agent, "name"), text(agent, "agent_id"), agent["mesh"]["lingers"] == true)
    };
    agents.map(member).collect()
}

#[test]
fn votes_elections_and_presence_are_those_of_a_person_and_not_of_a_command() {
    let world = World::of(1);
    let room = world.room("council");
    let create = ["vote", "create", "council", "tea?", "--options", "yes", "no", "--json"];
    let vote = text(&json(&world.ok(0, "ada", &create)), "vote_id");
    let late = world.call(0, "eve", &["vote", "cast", &vote, "yes"]).run().failed();
    assert!(late.contains("--agent-id") && late.contains("vote create"), "{late}");
    let cast = world.ok(0, "ada", &["vote", "cast", &vote, "yes"]);
    assert!(cast.contains("1 of 1"), "{cast}");

    let elected = json(&world.ok(0, "ada", &["election", "start", "council", "--json"]));
    let found = members(&world, &room);
    let me = text(&elected, "leader_id");
    assert_eq!(found, [("ada".to_owned(), me.clone(), true)], "one member, that led and voted");
    world.ok(0, "eve", &["send", "council", "and I?"]);
    let other = world.call(0, "eve", &["election", "decide", "council", "no"]).run().failed();
    assert!(other.contains("not_leader") && other.contains("election start"), "{other}");
    let outside = world.call(0, "joe", &["election", "decide", "council", "no"]).run().failed();
    assert!(outside.contains("not_in_room") && outside.contains("clawmesh send"), "{outside}");
    world.ok(0, "ada", &["election", "decide", "council", "tea it is"]);

    world.ok(0, "ada", &["presence", "working", "--detail", "tea"]);
    world.ok(0, "ada", &["rooms", "list"]);
    let agents = world.ok(0, "eve", &["agents"]);
    let ada = agents.lines().find(|line| line.starts_with("ada ")).expect("she is listed");
    assert!(ada.contains("away, working: tea"), "{ada}");
    let status = json(&world.ok(0, "eve", &["status", "--json"]));
    assert_eq!(status["agents"], 1, "connected is only who asks: {status}");
}

#[test]
fn a_wait_and_a_send_beside_it_are_one_member_that_does_not_wake_itself() {
    let world = World::of(1);
    let room = world.room("council");
    let runtime = world.runtime.handle();
    let mut waits = world.call(0, "ada", &["wait", "council", "--follow"]).spawn();
    world.until("she waits", || members(&world, &room).len() == 1);
    world.ok(0, "ada", &["send", "council", "my own"]);
    let found = members(&world, &room);
    assert!(found.len() == 1 && !found[0].2, "one agent, connected: {found:?}");
    world.ok(0, "bob", &["send", "council", "another's"]);
    let heard = json(&waits.line(runtime));
    assert_eq!((&heard["content"], &heard["seq"]), (&json!("another's"), &json!(2)));
    drop(waits);
    world.until("both are away", || members(&world, &room).iter().all(|member| member.2));
}

#[test]
fn who_has_the_same_name_and_is_another_wakes_a_wait() {
    let world = World::of(1);
    let room = world.room("council");
    let mut other = world.agent(0, "ada");
    let runtime = world.runtime.handle();
    world.runtime.block_on(other.call("join_room", json!({"room_id": room}))).unwrap();
    let mut waits = world.call(0, "ada", &["wait", "council", "--follow"]).spawn();
    world.until("she waits", || members(&world, &room).len() == 2);
    let said = json!({"room_id": room, "content": "not you"});
    world.runtime.block_on(other.call("send_message", said)).unwrap();
    assert_eq!(json(&waits.line(runtime))["content"], "not you");
}

#[test]
fn names_make_persons_and_without_one_the_terminal_session_does() {
    let world = World::of(1);
    let room = world.room("council");
    let key = world.mesh.key().unwrap().to_owned();
    let socket = world.mesh.nodes[0].ready().socket.as_ref().unwrap().display().to_string();
    let nameless = |text: &str| {
        let call = world.bare(&["--socket", &socket, "--key", &key, "send", "council", text]);
        call.run().ok();
    };
    nameless("one");
    nameless("two");
    world.ok(0, "ada", &["send", "council", "three"]);
    let found = members(&world, &room);
    let names: Vec<&str> = found.iter().map(|member| member.0.as_str()).collect();
    assert_eq!(names, ["cli", "ada"]);
    assert_ne!(found[0].1, found[1].1);
    // No claim was written: none of them takes a place of the mesh for ever.
    let version = |id: &str| id.as_bytes()[14];
    assert!(found.iter().all(|(_, id, _)| version(id) == b'8'), "{found:?}");
}
