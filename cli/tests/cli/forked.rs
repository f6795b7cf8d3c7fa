//! A node that has signed two histories, because a copy of its files was used: everybody is told, and nobody waits for it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::World;

/// The answer to a request of an agent that registers for it.
fn asked(tcp: &str, key: &str, kind: &str, payload: &Value) -> Value {
    let mut io = BufReader::new(TcpStream::connect(tcp).unwrap());
    let register = json!({"key": key, "name": "ada"});
    for (id, kind, payload) in [("1", "register", &register), ("2", kind, payload)] {
        let frame = json!({"id": id, "type": kind, "payload": payload});
        io.get_mut().write_all(format!("{frame}\n").as_bytes()).unwrap();
    }
    loop {
        let mut line = String::new();
        assert!(io.read_line(&mut line).unwrap() > 0, "it answers");
        let frame: Value = serde_json::from_str(&line).unwrap();
        if frame["reply_to"] == "2" {
            return frame;
        }
    }
}

fn copied(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_node_that_has_forked_says_so_wherever_somebody_looks() {
    let mut world = World::of(2);
    let key = world.mesh.key().unwrap().to_owned();
    let dir = world.mesh.nodes[1].ready().data_dir.clone();
    let (tcp, id) =
        (world.mesh.nodes[1].tcp().to_owned(), world.mesh.nodes[1].ready().node_id.clone());
    let World { mesh, runtime, .. } = &mut world;
    let kept = dir.with_file_name("kept");
    // An old copy of its files, and then an entry of which only the other node knows.
    runtime.block_on(mesh.nodes[1].stop()).unwrap();
    copied(&dir, &kept);
    runtime.block_on(mesh.nodes[1].restart()).unwrap();
    let room = |name: &str| json!({"name": name, "public": true});
    assert_eq!(asked(&tcp, &key, "create_room", &room("one"))["type"], "ok");
    world.until("the other node has it", || {
        world.call(0, "host", &["rooms", "tip", "one"]).run().code == 0
    });
    // Back to the copy, which goes on from there while nobody can tell it better.
    let World { mesh, runtime, .. } = &mut world;
    for node in [1, 0] {
        runtime.block_on(mesh.nodes[node].stop()).unwrap();
    }
    std::fs::remove_dir_all(&dir).unwrap();
    copied(&kept, &dir);
    runtime.block_on(mesh.nodes[1].restart()).unwrap();
    assert_eq!(asked(&tcp, &key, "create_room", &room("two"))["type"], "ok");
    runtime.block_on(mesh.nodes[0].restart()).unwrap();
    for node in 0..2 {
        world.until("both know", || {
            let status = world.runtime.block_on(world.mesh.nodes[node].status()).unwrap();
            status["forked"] == json!([id])
        });
    }
    everywhere(&world, &tcp, &key, &id);
    // Also from its next start on.
    let World { mesh, runtime, .. } = &mut world;
    runtime.block_on(mesh.nodes[1].restart()).unwrap();
    everywhere(&world, &tcp, &key, &id);
    let World { mesh, runtime, .. } = &mut world;
    let mut again = Command::new(testnet::binary::fresh().unwrap());
    runtime.block_on(mesh.nodes[1].stop()).unwrap();
    let banner = banner(again.arg("up").env_clear(), &dir);
    assert!(
        banner.contains("can be read")
            && banner.contains("OUT: this node has signed two histories"),
        "{banner}"
    );
}

/// In status, by the doctor, and in refusals.
fn everywhere(world: &World, tcp: &str, key: &str, id: &str) {
    let (other, forked) = (&world.mesh.nodes[0], &world.mesh.nodes[1]);
    let text = |node| world.runtime.block_on(testnet::process::Daemon::status_text(node)).unwrap();
    assert!(text(forked).contains("\nOUT: this node has signed two histories"), "{}", text(forked));
    assert!(text(other).contains(&format!("FORKED: node {id}")), "{}", text(other));
    let refused = asked(tcp, key, "create_room", &json!({"name": "three", "public": true}));
    let payload = &refused["payload"];
    assert_eq!(
        (&payload["code"], &payload["mesh"]["reason"]),
        (&json!("access_denied"), &json!("forked"))
    );
    assert!(payload["message"].as_str().unwrap().contains("use another node"), "{refused}");
    let doctor = |node: usize| {
        let dir = world.mesh.nodes[node].ready().data_dir.display().to_string();
        let ran = world.bare(&["doctor", "--data-dir", &dir]).run();
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.stdout
    };
    assert!(doctor(1).contains("BAD  mesh    this node has signed two histories"), "{}", doctor(1));
    assert!(doctor(0).contains(&format!("node {id} has signed two histories")), "{}", doctor(0));
}

/// All that a start says to people until it is ready.
fn banner(up: &mut Command, dir: &Path) -> String {
    let free = "127.0.0.1:0";
    up.arg("--data-dir").arg(dir).args(["--no-auth", "--no-socket", "--tcp", free]);
    up.args(["--http", free, "--listen", free]).stdout(std::process::Stdio::piped());
    let mut child = up.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("OUT: ") && lines.read_line(&mut text).unwrap() > 0 {
        if text.contains("Add a node: ") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    text
}
