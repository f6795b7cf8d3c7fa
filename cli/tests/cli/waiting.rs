//! `wait`, `history --follow` and `monitor`: commands that scripts and people leave running.

use serde_json::{Value, json};

use crate::support::World;

fn seqs(text: &str) -> Vec<u64> {
    let seq = |line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap();
    text.lines().map(seq).collect()
}

#[test]
fn exit_codes_say_how_a_wait_ended() {
    let world = World::of(1);
    world.room("war-room");
    let wait = |args: &[&str]| world.call(0, "ada", &[&["wait", "war-room"], args].concat()).run();
    let ran = wait(&["--timeout", "1"]);
    assert!(ran.stderr.contains("no message within 1 s"), "{ran:?}");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    let ran = wait(&["--loop", "--timeout", "1", "--idle-timeout", "2", "--heartbeat-secs", "1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("--since-seq 0") && ran.stderr.contains("wait: alive"), "{ran:?}");

    world.ok(0, "bob", &["send", "war-room", "one"]);
    world.ok(0, "ada", &["send", "war-room", "my own"]);
    world.ok(0, "bob", &["thinking", "war-room", "hm"]);
    world.ok(0, "eve", &["send", "war-room", "two", "--kind", "verdict"]);
    world.ok(0, "bob", &["send", "war-room", "bye", "--end"]);
    let ran = wait(&["--since-seq", "0"]);
    assert_eq!((ran.code, seqs(&ran.stdout)), (0, vec![1]));
    let ran = wait(&["--since-seq", "1", "--show-thinking"]);
    assert_eq!((ran.code, seqs(&ran.stdout)), (0, vec![4]));
    assert!(ran.stderr.contains("wait: thinking bob: hm"), "{ran:?}");
    let ran = wait(&["--since-seq", "4", "--text"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.trim_end().ends_with("#5 bob: bye"), "{ran:?}");
    let ran = wait(&["--since-seq", "0", "--drain"]);
    assert_eq!((ran.code, seqs(&ran.stdout)), (3, vec![1, 4, 5]));
    assert!(ran.stderr.contains("drained through seq 5"), "{ran:?}");
    for (pick, expect) in
        [(["--only-from", "eve"], 4), (["--not-from", "bob"], 4), (["--only-kind", "verdict"], 4)]
    {
        let ran = wait(&[&pick[..], &["--since-seq", "0"]].concat());
        assert_eq!((ran.code, seqs(&ran.stdout)), (0, vec![expect]), "{pick:?}");
    }
    let ran = wait(&["--since-seq", "0", "--follow"]);
    assert_eq!((ran.code, seqs(&ran.stdout)), (3, vec![1, 4, 5]));
    let path = world.home().join("out.json").display().to_string();
    let ran = wait(&["--since-seq", "0", "-o", &path]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(seqs(&std::fs::read_to_string(path).unwrap()), [1]);
}

#[test]
fn the_cursor_file_makes_the_same_command_go_on() {
    let world = World::of(1);
    world.room("war-room");
    let file = world.home().join("cursor");
    let path = file.display().to_string();
    let args = ["wait", "war-room", "--loop", "--cursor-file", &path, "--since-seq", "tip"];
    let wait = |more: &[&str]| world.call(0, "ada", &[&args[..], more].concat()).run();
    world.ok(0, "bob", &["send", "war-room", "before"]);
    let ran = wait(&["--idle-timeout", "1"]);
    assert_eq!((ran.code, std::fs::read_to_string(&file).unwrap().trim()), (2, "1"));
    for text in ["one", "two", "three"] {
        world.ok(0, "bob", &["send", "war-room", text]);
    }
    let first = wait(&[]);
    assert_eq!((first.code, seqs(&first.stdout)), (0, vec![2]));
    let rest = wait(&["--drain"]);
    assert_eq!((rest.code, seqs(&rest.stdout)), (0, vec![3, 4]));
    // One's own message moves the cursor, and wakes nobody.
    world.ok(0, "ada", &["send", "war-room", "mine"]);
    assert_eq!(wait(&["--idle-timeout", "2"]).code, 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), "5");
    world.file("cursor", "five");
    assert!(wait(&[]).failed().contains("delete it"));
}

#[test]
fn a_wait_goes_on_at_the_next_node() {
    let mut world = World::of(2);
    let room = world.room("war-room");
    let tcp = format!("{},{}", world.mesh.nodes[0].tcp(), world.mesh.nodes[1].tcp());
    let follow = ["--tcp", &tcp, "wait", "war-room", "--follow", "--since-seq", "0"];
    let mut waiting = world.call(0, "ada", &follow).spawn();
    let mut history =
        world.call(0, "ada", &["--tcp", &tcp, "history", "war-room", "--follow", "--json"]).spawn();
    let mut guest = world.agent(1, "guest");
    let join = json!({ "room_id": room });
    world.runtime.block_on(guest.call("join_room", join)).unwrap();
    let mut say = |text: &str| {
        let message = json!({ "room_id": room, "content": text });
        world.runtime.block_on(guest.call("send_message", message)).unwrap();
    };
    for text in ["one", "two"] {
        say(text);
    }
    let content = |line: String| -> String {
        let message: Value = serde_json::from_str(&line).unwrap();
        message["content"].as_str().unwrap().to_owned()
    };
    let handle = world.runtime.handle().clone();
    for text in ["one", "two"] {
        assert_eq!(content(waiting.line(&handle)), text);
        assert_eq!(content(history.line(&handle)), text);
    }
    world.runtime.block_on(world.mesh.nodes[0].kill9()).unwrap();
    let mut say = |text: &str| {
        let message = json!({ "room_id": room, "content": text });
        world.runtime.block_on(guest.call("send_message", message)).unwrap();
    };
    for text in ["three", "four"] {
        say(text);
    }
    for text in ["three", "four"] {
        assert_eq!(content(waiting.line(&handle)), text);
        assert_eq!(content(history.line(&handle)), text);
    }
}

#[test]
fn a_wait_that_loops_waits_for_the_node_too() {
    let mut world = World::of(1);
    world.room("war-room");
    world.runtime.block_on(world.mesh.nodes[0].kill9()).unwrap();
    let once = world.call(0, "ada", &["wait", "war-room"]).run();
    assert!(once.failed().contains("clawmeshd up"));
    let mut waiting =
        world.call(0, "ada", &["wait", "war-room", "--loop", "--since-seq", "0"]).spawn();
    let handle = world.runtime.handle().clone();
    assert!(waiting.note(&handle).contains("trying again"));
    world.runtime.block_on(world.mesh.nodes[0].restart()).unwrap();
    world.ok(0, "bob", &["send", "war-room", "back"]);
    assert_eq!(seqs(&waiting.line(&handle)).len(), 1);
    assert_eq!(waiting.end(&handle), 0);
}

#[test]
fn a_monitor_tells_what_happens() {
    let world = World::of(1);
    world.room("war-room");
    let mut all = world.call(0, "eve", &["monitor"]).spawn();
    let mut frames = world.call(0, "eva", &["monitor", "--room", "war-room", "--json"]).spawn();
    let handle = world.runtime.handle().clone();
    world.until("both watch", || {
        let agents = world.ok(0, "ada", &["agents", "--room", "war-room"]);
        agents.lines().filter(|line| line.starts_with("ev")).count() == 2
    });
    world.ok(0, "ada", &["send", "war-room", "hello"]);
    world.ok(0, "ada", &["rooms", "create", "beta", "--public"]);
    all.until(&handle, |line| line.ends_with("ada joined"));
    all.until(&handle, |line| line.ends_with("#1 ada: hello"));
    all.until(&handle, |line| line.starts_with("room beta ("));
    frames.until(&handle, |line| {
        let frame: Value = serde_json::from_str(line).unwrap();
        frame["type"] == "message_received" && frame["payload"]["content"] == "hello"
    });
}
