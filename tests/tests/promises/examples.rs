//! The examples, run by three agents at three nodes, as a reader would run them.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, ensure};
use client::sealing::RoomKey;
use serde_json::{Value, json};
use testnet::{
    binary,
    process::{Auth, Mesh, Plan, Terminal},
    wire::{Agent, text},
};
use tokio::runtime::Runtime;

use crate::end_to_end::{SOON, machine, on};

const EXAMPLES: [&str; 4] = ["simple_chat", "voting", "leader_election", "build_together"];

/// One of its agents has two seconds in which it may decline. On a machine that stands still meanwhile it is
/// run again.
const HURRIED: &str = "leader_election";
const HURRIED_TRIES: usize = 4;

/// A mesh of three, on which `command` is run for each example.
fn run_all(command: impl Fn(&str) -> Command) {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let (auth, terminal) = (Auth::Key, Terminal::Shared);
    let plan = Plan { binary, nodes: 3, auth, keep: None, flags: Vec::new(), terminal };
    let runtime = Runtime::new().expect("the system gives threads");
    let mesh = runtime.block_on(Mesh::up(plan)).unwrap_or_else(|error| panic!("{error}"));
    let nodes: Vec<&str> = mesh.nodes.iter().map(|node| node.tcp()).collect();
    for example in EXAMPLES {
        let run = || {
            let mut command = command(example);
            command.env("CLAWMESH_TCP", nodes.join(","));
            command.env("CLAWMESH_KEY", mesh.key().expect("the mesh has one"));
            command.output().expect("it can be run")
        };
        let mut output = run();
        let tries = if example == HURRIED { HURRIED_TRIES } else { 1 };
        for _ in 1..tries {
            if !output.status.success() {
                output = run();
            }
        }
        let Output { status, stdout, stderr } = output;
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{example}: {status}\n{out}{err}");
        assert!(out.lines().count() >= 4, "{example} says what happens:\n{out}");
    }
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_rust_examples_run_on_three_nodes() {
    // Cargo builds the examples of all packages before it runs a test of the workspace; whoever runs this
    // test alone gets them built here.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--locked", "--package", "examples", "--examples"])
        .current_dir(top())
        .status()
        .expect("cargo is there");
    assert!(built.success(), "the examples are not built");
    let deps = env::current_exe().expect("a test is a program");
    let folder = deps.parent().and_then(Path::parent).expect("target/PROFILE/deps/promises");
    run_all(|example| Command::new(folder.join("examples").join(example)));
}

#[test]
fn the_python_examples_run_on_three_nodes() {
    if Command::new("python3").arg("--version").output().is_err() {
        // The tests need no Python; `.ci/run` sees to it that there is one.
        eprintln!("skipped: there is no python3 here");
        return;
    }
    run_all(|example| {
        let mut command = Command::new("python3");
        command.arg(top().join("examples/python").join(format!("{example}.py")));
        command
    });
}

/// A page of a node, over HTTP.
fn page(at: &str, path: &str) -> String {
    let mut io = TcpStream::connect(at).expect("the node serves HTTP");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    io.write_all(request.as_bytes()).expect("it can be asked");
    let mut answer = String::new();
    io.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

/// All examples of a page in one language, one after the other.
fn written_in(language: &str, page: &str) -> String {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

/// Writes the frames of the page, each after the answer to the one before. None is refused.
fn all_are_answered(frames: &str, tcp: &str) {
    assert!(frames.lines().count() >= 5, "{frames}");
    let mut agent = BufReader::new(TcpStream::connect(tcp).expect("it listens"));
    for frame in frames.lines() {
        agent.get_mut().write_all(format!("{frame}\n").as_bytes()).expect("it can be told");
        let sent: Value = serde_json::from_str(frame).expect("an example is JSON");
        let mut answer = Value::Null;
        while answer["reply_to"] != sent["id"] {
            let mut line = String::new();
            agent.read_line(&mut line).expect("it answers");
            answer = serde_json::from_str(&line).expect("an answer is JSON");
        }
        assert_ne!(answer["type"], "error", "{frame}\n{answer}");
    }
}

#[test]
fn the_page_for_models_works_at_the_node_that_serves_it() {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let (auth, terminal) = (Auth::Key, Terminal::Shared);
    let plan = Plan { binary, nodes: 1, auth, keep: None, flags: Vec::new(), terminal };
    let runtime = Runtime::new().expect("the system gives threads");
    let mesh = runtime.block_on(Mesh::up(plan)).unwrap_or_else(|error| panic!("{error}"));
    let (http, key) = (mesh.nodes[0].ready().http.as_ref(), mesh.key().expect("it has one"));
    let http = http.expect("it serves HTTP");
    let skill = page(http, "/skill.md");
    if Command::new("python3").arg("--version").output().is_ok() {
        let dir = tempfile::tempdir().expect("there is room");
        let client = page(http, "/clawmesh.py");
        fs::write(dir.path().join("clawmesh.py"), client).expect("there is room");
        let script = written_in("python", &skill);
        let mut python = Command::new("python3");
        python.args(["-c", &script]).current_dir(dir.path()).env("CLAWMESH_KEY", key);
        let Output { status, stdout, stderr } = python.output().expect("it can be run");
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success() && out.contains("option_text"), "{script}\n{out}{err}");
    } else {
        eprintln!("skipped: there is no python3 here");
    }
    let frames = written_in("jsonl", &skill).replace("\"KEY\"", &format!("\"{key}\""));
    all_are_answered(&frames, mesh.nodes[0].tcp());
}

/// Sends one text with a room key, prints what it reads with it, and what it reads without.
const SEALED: &str = r#"
import os, sys
from clawmesh import Agent
room, where = sys.argv[1:]
with Agent(os.environ["CLAWMESH_KEY"], "py", tcp=where, room_key="for all rooms") as agent:
    agent.join_room(room)
    agent.set_room_secret(room, "correct horse")
    print([it["content"] for it in agent.get_history(room)])
    print(agent.send_message(room, "ünïcödé 🦞")["content"])
    print(agent.wait_for_event("message_received")["content"])
with Agent(os.environ["CLAWMESH_KEY"], "blind", tcp=where) as agent:
    print(all(it["content"].startswith("clw1:") for it in agent.get_history(room)))
sys.modules["cryptography.hazmat.primitives.ciphers.aead"] = None
try:
    Agent(os.environ["CLAWMESH_KEY"], "bare", tcp=where, room_key="s")
except ImportError as error:
    print(error)
"#;

#[test]
fn the_python_client_reads_what_others_have_encrypted_and_they_what_it_has() {
    let imports = Command::new("python3").args(["-c", "import cryptography"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        // The tests need no package; `.ci/run` sees to it that there is one.
        eprintln!("skipped: there is no python3 with `cryptography` here");
        return;
    }
    on(1, Auth::Key, async |mesh| {
        let (tcp, key) = (mesh.nodes[0].tcp(), mesh.key());
        let mut agent = Agent::attach(tcp, key, "rust").await?;
        let room = json!({"name": "sealed", "public": true, "encrypted": true});
        let room = agent.call("create_room", room).await?["room_id"].take();
        let room = room.as_str().context("a room has an id")?;
        agent.call("join_room", json!({"room_id": room})).await?;
        let room_key = RoomKey::derive("correct horse", room);
        let others = RoomKey::derive("for all rooms", room);
        for (key, text) in [(&room_key, "read me"), (&others, "not with this key")] {
            let content = key.seal([7; 12], text)?;
            agent.call("send_message", json!({"room_id": room, "content": content})).await?;
        }
        let mut python = tokio::process::Command::new("python3");
        python.args(["-c", SEALED, room, tcp]).current_dir(top().join("examples/python"));
        python.env("CLAWMESH_KEY", key.unwrap_or_default()).kill_on_drop(true);
        python.stdout(Stdio::piped()).stderr(Stdio::piped());
        let python = python.spawn()?;
        let heard = agent.event("a message", SOON, |it| it.kind == "message_received").await?;
        let heard = text(&heard.body, "content");
        ensure!(heard.starts_with("clw1:"), "the node sees a blob: {heard}");
        ensure!(room_key.open(&heard)? == "ünïcödé 🦞", "{heard}");
        let content = room_key.seal([8; 12], "read me, too")?;
        agent.call("send_message", json!({"room_id": room, "content": content})).await?;
        let output = python.wait_with_output().await?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        let left = others.seal([7; 12], "not with this key")?;
        let expect = format!(
            "['read me', '{left}']\nünïcödé 🦞\nread me, too\nTrue\n\
             room keys need a package: pip install cryptography\n"
        );
        ensure!(out == expect, "{out}\n{err}");
        Ok(())
    });
}
