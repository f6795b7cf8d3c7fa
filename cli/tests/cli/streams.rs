//! Answers that are read as they are written.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::running::Running;
use crate::support::World;

/// `send --stream`, whose standard input the test writes.
struct Sender {
    child: std::process::Child,
}

impl Sender {
    fn start(world: &World, name: &str, args: &[&str]) -> Sender {
        let args = [&["send", "--stream", "war-room"], args].concat();
        let mut command = world.call(0, name, &args).command().into_std();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Sender { child: command.spawn().unwrap() }
    }

    fn writes(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Its input ends. What it printed.
    fn ends(self) -> String {
        let ran = self.child.wait_with_output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }
}

/// Reads a room as it is written, at a node; it is a member by now.
fn follows(world: &World, node: usize, name: &str, room: &str) -> Running {
    let follow = ["history", "war-room", "--follow"];
    let following = world.call(node, name, &follow).spawn();
    let mut agent = world.agent(node, "looks");
    world.until("it is a member", || {
        let members = agent.call("list_agents", json!({"room_id": room}));
        let members = world.runtime.block_on(members).unwrap();
        members["agents"].as_array().unwrap().iter().any(|member| member["name"] == name)
    });
    following
}

fn shown(line: &str) -> &str {
    line.strip_prefix('[').map_or(line, |_| &line[11..])
}

#[test]
fn a_text_is_shown_as_it_comes_and_once() {
    let world = World::of(1);
    let room = world.room("war-room");
    let asked = world.ok(0, "eve", &["send", "war-room", "go", "--json"]);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let id = asked["message_id"].as_str().unwrap();
    let mut following = follows(&world, 0, "eve", &room);
    let handle = world.runtime.handle().clone();
    assert_eq!(shown(&following.line(&handle)), "#1 eve: go");
    let mut sender = Sender::start(&world, "ada", &["--reply-to", id, "--json"]);
    sender.writes("one\n");
    assert_eq!(following.line(&handle), "  ada … one", "before the text has ended");
    assert_eq!(world.history(0, &room).len(), 1, "and nothing is stored yet");
    sender.writes("two\n");
    let sent: Value = serde_json::from_str(&sender.ends()).unwrap();
    assert_eq!((&sent["content"], &sent["reply_to_message"]), (&json!("one\ntwo"), &json!(id)));
    let mut rest = Vec::new();
    while !rest.last().is_some_and(|line: &String| line.contains("#2 ")) {
        rest.push(following.line(&handle));
    }
    let text = rest.join("\n");
    assert_eq!(text.matches("two").count(), 1, "{text}");
    assert_eq!(shown(rest.last().unwrap()), "#2 ada: (as above)");
    let history = world.history(0, &room);
    assert_eq!(history.last().unwrap()["content"], "one\ntwo");
    // Scripts get messages alone.
    let page = world.ok(0, "eve", &["history", "war-room"]);
    assert_eq!(page.lines().last(), Some("  two"));
}

#[test]
fn at_another_node_it_is_shown_as_soon_as_that_node_is_known_to_wait() {
    let world = World::of(2);
    let room = world.room("war-room");
    let mut following = follows(&world, 1, "eve", &room);
    let handle = world.runtime.handle().clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let mut sender = Sender::start(&world, "ada", &[]);
    let writes = std::thread::spawn(move || {
        let mut ticks = 0;
        // Until somebody has seen one: what was sent before is lost, but for the message.
        while stopped.try_recv().is_err() {
            ticks += 1;
            sender.writes("tick\n");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        sender.ends();
        ticks
    });
    let first = following.line(&handle);
    assert!(first.starts_with("  ada … tick"), "{first}");
    assert!(world.history(1, &room).is_empty(), "it is not sent yet");
    stop.send(()).unwrap();
    let ticks = writes.join().unwrap();
    world.until("the message is there", || !world.history(1, &room).is_empty());
    let content = world.history(1, &room)[0]["content"].clone();
    assert_eq!(content, vec!["tick"; ticks].join("\n"));
    following.until(&handle, |line| line.contains("#1 "));
}
