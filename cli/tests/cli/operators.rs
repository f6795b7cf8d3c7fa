//! `mesh` and `doctor`: for operators of a node.

use serde_json::{Value, json};

use crate::support::World;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

#[test]
fn a_node_shows_its_mesh_and_what_a_number_means() {
    let world = World::of(2);
    let room = world.room("war-room");
    let sent = parsed(&world.ok(1, "ada", &["send", "war-room", "hello", "--json"]));
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let mesh = |args: &[&str]| world.ok(0, "ada", &[&["mesh", "--data-dir", &dir], args].concat());
    world.until("the message is there", || {
        world.ok(0, "ada", &["rooms", "tip", "war-room"]) == "1\n"
    });
    let (here, there) = (world.mesh.nodes[0].ready(), world.mesh.nodes[1].ready());
    let status = mesh(&["status"]);
    assert!(status.contains(&here.name) && status.contains("1 connected"), "{status}");
    let peers = mesh(&["peers"]);
    assert!(peers.contains(&there.name) && peers.contains("up"), "{peers}");
    assert!(mesh(&["rooms"]).contains(&room));
    let trace = |args: &[&str]| {
        let (room, n) = (args[0], args[1]);
        world.ok(0, "ada", &[&["trace", room, n, "--data-dir", &dir], &args[2..]].concat())
    };
    let life = parsed(&trace(&["war-room", "1", "--json"]));
    assert_eq!(
        (&life["message"]["content"], &life["receipts"]["of"]),
        (&sent["content"], &json!(2))
    );
    let held = life["receipts"]["stored"].as_array().unwrap();
    assert_eq!(held.len(), 2, "{life}");
    let entry = &life["entry"];
    assert_eq!(entry["message"]["message_id"], sent["message_id"]);
    assert_eq!(entry["message"]["node_id"], there.node_id.as_str(), "who signed it");
    assert_eq!(entry["message"]["numbers"], json!([1]));
    assert_eq!(entry["message"]["elsewhere"], true);
    let text = trace(&["war-room", "1"]);
    assert!(text.contains(&there.name) && text.contains("home era"), "{text}");
    assert!(text.contains("held    durably by 2 of 2 nodes"), "{text}");
    let own = parsed(&world.ok(0, "bob", &["send", "lobby", "mine", "--json"]));
    let own = own["seq"].to_string();
    world.until("the other node is known to have it", || {
        parsed(&trace(&["lobby", &own, "--json"]))["entry"]["message"]["elsewhere"] == true
    });
    let unknown = trace(&["war-room", "1.0.7"]);
    assert!(unknown.contains("era 1") && unknown.contains("none that this node"), "{unknown}");
    assert!(unknown.contains("held    not known"), "{unknown}");
    // An answer, and a node that is gone.
    let id = sent["message_id"].as_str().unwrap();
    world.ok(0, "bob", &["send", "war-room", "yes", "--reply-to", id]);
    let answered = trace(&["war-room", "1"]);
    assert!(answered.contains("answer  ") && answered.contains("it has answered"), "{answered}");
    assert_eq!(parsed(&mesh(&["status", "--json"]))["node_id"], here.node_id.as_str());
}

#[test]
fn a_directory_names_the_node_wherever_it_stands() {
    let world = World::of(2);
    let dirs = [0, 1].map(|n| world.mesh.nodes[n].ready().data_dir.display().to_string());
    for (dir, other) in [(&dirs[0], 1), (&dirs[1], 0)] {
        // Nothing else says where the node is, and which key it takes.
        let well = world.bare(&["doctor", "--data-dir", dir]).run().ok();
        assert!(well.contains("ok   attach "), "{well}");
        let id = &world.mesh.nodes[other].ready().node_id[..8];
        for line in [["mesh", "peers", "--data-dir", dir], ["mesh", "--data-dir", dir, "peers"]] {
            let peers = world.bare(&line).run().ok();
            assert!(peers.contains(id), "{peers}");
        }
    }
}

#[test]
fn a_ping_says_the_way_and_its_time_or_that_nobody_answers() {
    let world = World::of(2);
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let ready = world.mesh.nodes[1].ready();
    let ping = |node: &str, more: &[&str]| {
        world.bare(&[&["ping", node, "--data-dir", &dir, "-n", "2"], more].concat()).run()
    };
    let said = ping(&ready.name, &[]).ok();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 3 && lines[..2].iter().all(|it| it.ends_with("ms, directly")), "{said}");
    assert!(lines[2].starts_with("2 sent, 2 answered, 0 lost; "), "{said}");
    let all = parsed(&ping(&ready.node_id[..8], &["--json"]).ok());
    assert_eq!((&all["node_id"], &all["received"]), (&json!(ready.node_id), &json!(2)));
    assert!(all["min_ms"].as_f64().unwrap() <= all["max_ms"].as_f64().unwrap());
    let unknown = ping("nobody", &[]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let own = ping(&world.mesh.nodes[0].ready().name, &[]);
    assert!(own.code == 1 && own.stderr.contains("this node itself"), "{own:?}");
}

#[test]
fn the_operator_of_a_node_sees_the_agents_of_every_key() {
    let world = World::of(1);
    world.room("council");
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let node = testnet::binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let minted =
        std::process::Command::new(node).args(["keys", "mint", "--data-dir", &dir]).output();
    let minted = String::from_utf8(minted.unwrap().stdout).unwrap();
    let key = minted.lines().next().expect("it prints the key").trim().to_owned();
    world.ok(0, "ada", &["send", "council", "I am here"]);
    world.ok(0, "eve", &["--key", &key, "send", "council", "and I"]);
    let own = world.ok(0, "ada", &["agents"]);
    assert!(own.contains("ada") && !own.contains("eve"), "of one's own key: {own}");
    let all = parsed(&world.bare(&["agents", "--all", "--data-dir", &dir, "--json"]).run().ok());
    let of = |name: &str| {
        let all = all.as_array().unwrap().iter();
        let found = all.clone().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {all:?}")).clone()
    };
    for name in ["ada", "eve"] {
        assert_eq!(
            (&of(name)["rooms"], &of(name)["mesh"]["lingers"]),
            (&json!(["council"]), &json!(true))
        );
        assert_eq!(of(name)["per_minute"], 1);
    }
    assert_ne!(of("ada")["mesh"]["key"], of("eve")["mesh"]["key"]);
    let table = world.bare(&["agents", "--all", "--data-dir", &dir]).run().ok();
    assert!(
        table.lines().any(|line| line.starts_with("eve") && line.contains("council")),
        "{table}"
    );
    let doctor = world.bare(&["doctor", "--data-dir", &dir]).run().ok();
    let line = doctor.lines().find(|line| line.starts_with("ok   agents")).expect("they are named");
    assert!(line.contains("of 2 keys") && line.contains("eve (away, idle; council)"), "{line}");
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let mut world = World::of(1);
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let doctor = |world: &World, args: &[&str]| {
        world.call(0, "ada", &[&["doctor", "--data-dir", &dir], args].concat()).run()
    };
    world.ok(0, "ada", &["send", "lobby", "hello"]);
    let alone = world.ok(0, "ada", &["trace", "lobby", "1", "--data-dir", &dir]);
    assert!(alone.contains("no other node is known to have it"), "{alone}");
    let well = doctor(&world, &[]).ok();
    for part in ["node", "key", "attach", "clock", "peers", "rooms", "disk"] {
        let line = format!("ok   {part:<7}");
        assert!(well.contains(&line), "no {part}: {well}");
    }
    let open = world.file("open.key", "a key that the node does not know");
    let open = open.display().to_string();
    let ill = doctor(&world, &["--key-file", &open, "--json"]);
    assert_eq!(ill.code, 1);
    let checks = parsed(&ill.stdout);
    let of = |what: &str| {
        let check = checks.as_array().unwrap().iter().find(|check| check["what"] == what);
        check.unwrap_or_else(|| panic!("no {what}: {checks}")).clone()
    };
    assert_eq!(of("key")["state"], "bad", "others can read the file");
    assert!(of("key")["do"].as_str().unwrap().contains("chmod 600"));
    assert_eq!(of("attach")["state"], "bad");
    world.runtime.block_on(world.mesh.nodes[0].kill9()).unwrap();
    let dead = doctor(&world, &[]);
    assert_eq!(dead.code, 1);
    assert!(dead.stdout.contains("clawmeshd up"), "{dead:?}");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let world = World::of(1);
    for shell in ["bash", "zsh", "fish"] {
        let text = world.ok(0, "ada", &["completions", shell]);
        for word in ["idle-timeout", "calibration", "if-assignee", "doctor"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    let directory = world.home().join("man");
    world.ok(0, "ada", &["man", &directory.display().to_string()]);
    for page in ["clawmesh", "clawmesh-wait", "clawmesh-lantern-fuse", "clawmesh-trace"] {
        let text = std::fs::read_to_string(directory.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH OPTIONS"), "{page}: {text}");
    }
    let wait = std::fs::read_to_string(directory.join("clawmesh-wait.1")).unwrap();
    assert!(wait.contains("cursor\\-file"), "{wait}");
}

#[test]
fn an_operator_denies_a_session_and_archives_it_over_a_restart() {
    let mut world = World::of(1);
    let dir = world.mesh.nodes[0].ready().data_dir.clone();
    let at = dir.display().to_string();
    let sessions = |world: &World, args: &[&str]| {
        let line = [&["sessions", "--data-dir", &at, "--agent-id", "ada"], args].concat();
        world.call(0, "ada", &line).run()
    };
    let send = |world: &World, to: &str| {
        parsed(&sessions(world, &["send", to, "hello", "--wait", "0", "--json"]).stdout)
    };
    assert_eq!(send(&world, "lobby")["status"], "accepted");
    let set = sessions(&world, &["policy", "lobby", "deny"]).ok();
    assert_eq!(set, "mesh:channel:lobby of ada: no agent of this node may send there\n");
    let denied = send(&world, "lobby");
    assert_eq!(
        (&denied["status"], &denied["rule"]),
        (&json!("forbidden"), &json!("send_policy.override"))
    );
    let set = sessions(&world, &["archive", "lobby", "--json"]).ok();
    assert_eq!(
        parsed(&set),
        json!({"session": "mesh:channel:lobby", "agentId": "ada", "archived": true})
    );
    for unknown in ["nowhere", "main"] {
        let ran = sessions(&world, &["policy", unknown, "deny"]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("session"), "{ran:?}");
    }

    world.runtime.block_on(world.mesh.nodes[0].kill9()).unwrap();
    world.runtime.block_on(world.mesh.nodes[0].restart()).unwrap();
    assert_eq!(send(&world, "lobby")["rule"], "send_policy.override", "it is durable");
    let listed = parsed(&sessions(&world, &["list", "--json"]).ok());
    assert!(!listed.to_string().contains("mesh:channel:lobby"), "{listed}");
    let mode = std::os::unix::fs::MetadataExt::mode(
        &std::fs::metadata(dir.join("sessions.json")).unwrap(),
    );
    assert_eq!(mode & 0o777, 0o600);
    sessions(&world, &["policy", "lobby", "inherit"]).ok();
    sessions(&world, &["archive", "lobby", "--undo"]).ok();
    assert_eq!(send(&world, "lobby")["status"], "accepted");
    let kept = std::fs::read_to_string(dir.join("sessions.json")).unwrap();
    assert_eq!(kept.trim(), "[]", "a mark that says nothing is none");
}
