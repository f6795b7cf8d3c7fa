//! Direct rooms: two minted keys at two nodes, and a third node that has neither.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    harness::{Agent, Daemon, ask, temp, until, up_keyed},
    metrics::scrape,
};

pub(crate) fn keyed(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

pub(crate) fn mint(node: &Daemon) -> String {
    let output = ask(&["keys", "mint", "--data-dir", node.text("data_dir")]);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An agent, as soon as its key is known at the node.
fn come(node: &Daemon, key: &str, agent: &str) -> Agent {
    let mut come = None;
    until("the key is known", || {
        let mut client = Agent::connect(node.text("tcp"));
        let register = json!({"key": key, "name": agent, "agent_id": agent, "reconnect": true});
        let registered = client.call("register", register).is_ok();
        come = Some(client).filter(|_| registered);
        registered
    });
    come.unwrap()
}

fn contents(agent: &mut Agent, room: &Value) -> Vec<String> {
    let page = agent.call("get_history", json!({"room_id": room, "since_seq": 0, "limit": 500}));
    let messages = page.unwrap()["messages"].clone();
    let messages = messages.as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Whether any file under `dir` has these bytes.
fn is_written(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_written(&path, bytes);
        }
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn two_agents_of_two_keys_at_two_nodes_talk_and_a_third_node_keeps_nothing_of_it() {
    let dirs = [temp(), temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let join = ["--join", first.text("ticket")];
    let [second, third] = [1, 2].map(|n| keyed(dirs[n].path(), &join));
    second.until_connected();
    third.until_connected();
    let keys = [mint(&first), mint(&first)];
    let mut ann = come(&first, &keys[0], "ann");
    let mut bob = come(&second, &keys[1], "bob");

    let mut room = Value::Null;
    until("Bob is known where Ann is", || {
        match ann.call("create_room", json!({"name": "dm:bob"})) {
            Ok(made) => {
                room = made["room_id"].clone();
                true
            }
            Err(_) => false,
        }
    });
    let say = |text: &str| json!({"room_id": room, "content": text});
    let secret = "a sentence that only the two of them read";
    ann.call("send_message", say(secret)).unwrap();
    until("Bob has it", || {
        let found = bob.call("create_room", json!({"name": "dm:ann"}));
        found.is_ok_and(|found| found["room_id"] == room) && contents(&mut bob, &room) == [secret]
    });
    bob.call("send_message", say("and an answer")).unwrap();
    until("Ann has the answer", || contents(&mut ann, &room) == [secret, "and an answer"]);
    // Another agent of Bob's key does not read it.
    let mut eve = come(&second, &keys[1], "eve");
    let refused = eve.call("get_history", json!({"room_id": room}));
    assert_eq!(refused.unwrap_err(), "access_denied");

    // A room that Ann shares with Bob's key.
    let shared = json!({"name": "our plans", "mesh": {"shared": true}});
    let plans = ann.call("create_room", shared).unwrap()["room_id"].clone();
    ann.call("share_room", json!({"room_id": plans, "agent_id": "bob"})).unwrap();
    ann.call("join_room", json!({"room_id": plans})).unwrap();
    let (plan, step) = ("a plan that only two keys read", "and a step of it");
    ann.call("send_message", json!({"room_id": plans, "content": plan})).unwrap();
    until("Bob can join", || bob.call("join_room", json!({"room_id": plans})).is_ok());
    bob.call("send_message", json!({"room_id": plans, "content": step})).unwrap();
    until("both have the plan", || contents(&mut ann, &plans) == [plan, step]);
    assert_eq!(contents(&mut eve, &plans), [plan, step], "she has Bob's key");

    // The third node has heard of all that was said since, and has nothing of it.
    let mut stranger =
        Agent::register(third.text("tcp"), third_key(dirs[2].path()).as_str()).unwrap();
    let last = ann.say("in the lobby");
    until("the third node is up to date", || stranger.lobby().iter().any(|(seq, _)| *seq == last));
    for node in [first, second, third] {
        node.stop();
    }
    let written = |n: usize, bytes: &[u8]| is_written(&dirs[n].path().join("data"), bytes);
    assert!(written(0, b"in the lobby") && written(2, b"in the lobby"), "what is for all is found");
    for bytes in
        [secret.as_bytes(), b"and an answer", b"dm:ann:bob", room.as_str().unwrap().as_bytes()]
    {
        assert!(!written(2, bytes), "{}", String::from_utf8_lossy(bytes));
    }
    for bytes in [plan, step, "our plans", plans.as_str().unwrap()].map(str::as_bytes) {
        assert!(!written(2, bytes), "{}", String::from_utf8_lossy(bytes));
    }
    let id: Vec<u8> = hex(&room.as_str().unwrap().replace('-', ""));
    assert!(written(0, &id) && written(1, &id), "it is kept where one of the keys was shown");
    for key in &keys {
        for n in 0..3 {
            assert!(!written(n, key.as_bytes()), "no node keeps a key");
        }
    }
}

/// Ann's and Bob's nodes are laptops that are never up together; the first node is up always, and is killed on the way.
#[test]
fn two_laptops_that_meet_only_through_a_third_node_have_what_the_other_wrote() {
    let dirs = [temp(), temp(), temp()];
    let first = keyed(dirs[0].path(), &[]);
    let join = ["--join", first.text("ticket")];
    let [anns, bobs] = [1, 2].map(|n| keyed(dirs[n].path(), &join));
    anns.until_connected();
    bobs.until_connected();
    let keys = [mint(&first), mint(&first)];
    let mut ann = come(&anns, &keys[0], "ann");
    let mut bob = come(&bobs, &keys[1], "bob");
    let mut room = Value::Null;
    until("Bob is known where Ann is", || {
        let made = ann.call("create_room", json!({"name": "dm:bob"}));
        made.is_ok_and(|made| {
            room = made["room_id"].clone();
            true
        })
    });
    let say = |text: &str| json!({"room_id": room, "content": text});
    ann.call("send_message", say("together")).unwrap();
    until("Bob has it", || {
        let found = bob.call("create_room", json!({"name": "dm:ann"}));
        found.is_ok() && contents(&mut bob, &room) == ["together"]
    });
    let metric = |node: &Daemon, name: &str| scrape(node).get(name).copied().unwrap_or(-1.0);
    until("Ann's node owes nothing", || metric(&anns, "clawmesh_owed_rooms") == 0.0);
    bobs.stop();
    let secret = "a sentence that waits for somebody";
    ann.call("send_message", say(secret)).unwrap();
    until("the first node carries it", || metric(&first, "clawmesh_carried_bytes") > 1_000.0);
    anns.stop();
    first.kill();
    let first = keyed(dirs[0].path(), &[]);
    assert!(metric(&first, "clawmesh_carried_bytes") > 1_000.0, "it has said so");
    let bobs = keyed(dirs[2].path(), &["--join", first.text("ticket")]);
    let mut bob = come(&bobs, &keys[1], "bob");
    until("Bob has it", || contents(&mut bob, &room) == ["together", secret]);
    bob.call("send_message", say("and an answer")).unwrap();
    for node in [first, bobs] {
        node.stop();
    }
    let written = |n: usize| is_written(&dirs[n].path().join("data"), secret.as_bytes());
    assert!(!written(0), "nor could it read it");
}

fn third_key(dir: &Path) -> String {
    fs::read_to_string(dir.join("auth.key")).unwrap().trim().to_owned()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
