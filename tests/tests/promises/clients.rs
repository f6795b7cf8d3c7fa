//! Packages for agents in other languages, and the agents with which the protocol's page begins, against real nodes.
//! Where a language is missing its tests are skipped, by name.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use client::sealing::RoomKey;
use protocol::code::Code;
use serde_json::{Value, json};
use testnet::{
    process::{Auth, Mesh},
    wire::{Agent, text},
};
use tokio::time::{sleep, timeout};

use crate::end_to_end::{SOON, on};

/// The languages of the page, the programs that run them, and a file of each.
const LANGUAGES: [(&str, &str, &str); 3] =
    [("python", "python3", "ada.py"), ("javascript", "node", "bob.mjs"), ("bash", "bash", "cy.sh")];
/// Fewer tests than these are not all.
const PYTHON_TESTS: usize = 20;
const TYPESCRIPT_TESTS: usize = 20;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(top().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn page() -> String {
    read("docs/protocol/clawchat.md")
}

/// Whether a program runs with these arguments.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// For a reader of the log: what was left out, and why. Tests have no result of their own for this.
#[expect(clippy::print_stderr, reason = "the log of the tests says what was left out")]
fn skipped(name: &str, why: &str) {
    eprintln!("skipped: {name}: {why}");
}

/// An agent of the page, which is killed when it is dropped.
struct Written {
    child: Child,
    _dir: tempfile::TempDir,
}

impl Written {
    fn start(
        page: &str,
        (language, program, file): (&str, &str, &str),
        tcp: &str,
        key: &str,
    ) -> Written {
        let fence = format!("```{language}\n");
        let blocks = page.split(&fence).skip(1).filter_map(|rest| rest.split_once("```"));
        let code = blocks.map(|(code, _)| code).next().expect("the page has an agent in it");
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 20, "{language}: {lines} lines");
        let dir = tempfile::tempdir().expect("there is room");
        fs::write(dir.path().join(file), code).expect("there is room");
        let mut command = Command::new(program);
        command.arg(file).current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("CLAWMESH_TCP", tcp).env("CLAWMESH_KEY", key);
        Written { child: command.spawn().expect("it can be run"), _dir: dir }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn languages() -> Vec<(&'static str, &'static str, &'static str)> {
    let is_here = |language: &(&str, &str, &str)| {
        let here = runs(language.1, &["--version"]);
        if !here {
            skipped(&format!("the agent in {}", language.0), &format!("no {} here", language.1));
        }
        here
    };
    LANGUAGES.into_iter().filter(is_here).collect()
}

#[test]
fn the_agents_on_the_protocols_page_answer_at_a_node() {
    let (page, languages) = (page(), languages());
    on(1, Auth::Key, async |mesh| {
        let (tcp, key) = (mesh.nodes[0].tcp(), mesh.key().context("a key")?);
        let mut asks = Agent::attach(tcp, Some(key), "asks").await?;
        asks.call("join_room", json!({ "room_id": "lobby" })).await?;
        let agents: Vec<Written> =
            languages.iter().map(|language| Written::start(&page, *language, tcp, key)).collect();
        for _ in &agents {
            asks.event("an agent joins", SOON, |event| event.kind == "agent_joined").await?;
        }
        let asked = json!({ "room_id": "lobby", "content": "who is here?" });
        let asked = text(&asks.call("send_message", asked).await?, "message_id");
        let mut answers = BTreeSet::new();
        for _ in &agents {
            let answer = asks.event("an answer", SOON, |event| event.kind == "message_received");
            let answer = answer.await?.body;
            ensure!(answer["reply_to_message"] == *asked, "{answer}");
            answers.insert(text(&answer, "content"));
        }
        let expected = languages
            .iter()
            .map(|(_, _, file)| format!("{} is", file.split('.').next().unwrap_or_default()));
        ensure!(answers == expected.collect(), "{answers:?}");
        Ok(())
    });
}

#[test]
fn the_agents_on_the_protocols_page_answer_heartbeats() {
    let page = page();
    for language in languages() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has one").to_string();
        let _agent = Written::start(&page, language, &address, "a key");
        let (stream, _) = listener.accept().expect("it connects");
        stream.set_read_timeout(Some(SOON)).expect("it can be told");
        let mut io = BufReader::new(stream);
        let ping = json!({"id": "beat", "type": "ping", "payload": {"heartbeat": true}});
        io.get_mut().write_all(format!("{ping}\n").as_bytes()).expect("it reads");
        let kinds = ["register", "join_room", "pong"];
        for kind in kinds {
            let mut line = String::new();
            io.read_line(&mut line).expect("it writes");
            let frame: Value = serde_json::from_str(&line).expect("a frame is JSON");
            assert_eq!(frame["type"], *kind, "{}: {frame}", language.0);
            assert!(kind != "pong" || frame["reply_to"] == "beat", "{}: {frame}", language.0);
        }
    }
}

/// The output of a package's tests at two nodes.
async fn at_nodes(mesh: &Mesh, program: &str, arguments: &[&str], folder: &str) -> Result<String> {
    let [first, second] = &mesh.nodes[..] else { anyhow::bail!("two nodes") };
    let socket = first.ready().socket.clone().context("a socket")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).current_dir(top().join(folder)).kill_on_drop(true);
    command.env("CLAWMESH_TCP", format!("{},{}", first.tcp(), second.tcp()));
    command.env("CLAWMESH_WS", format!("ws://{}/ws", first.http()));
    command.env("CLAWMESH_SOCKET", socket).env("CLAWMESH_KEY", mesh.key().context("a key")?);
    command.env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1");
    let Output { status, stdout, stderr } = command.output().await?;
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{status}\n{out}{err}");
    Ok(format!("{out}{err}"))
}

/// The number behind a word.
fn number(said: &str, word: &str) -> Option<usize> {
    let (_, rest) = said.split_once(word)?;
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_python_package_keeps_its_promises_at_two_nodes() {
    if !runs("python3", &["-c", "import sys; assert sys.version_info >= (3, 9)"]) {
        return skipped("the Python package", "no python3 from 3.9 on here");
    }
    on(2, Auth::Key, async |mesh| {
        let said = at_nodes(
            mesh,
            "python3",
            &["-m", "unittest", "discover", "-s", "tests"],
            "clients/python",
        );
        let said = said.await?;
        let ran = number(&said, "Ran ").context("a number of tests")?;
        ensure!(ran >= PYTHON_TESTS, "{said}");
        if let Some(left_out) = number(&said, "skipped=") {
            skipped(&format!("{left_out} tests of the Python package"), "no `cryptography` here");
        }
        Ok(())
    });
}

#[test]
fn the_typescript_package_keeps_its_promises_at_two_nodes() {
    let name = "the TypeScript package";
    if !runs("node", &["--experimental-websocket", "-e", "0"]) {
        return skipped(name, "no node from 20.10 on here");
    }
    let folder = top().join("clients/typescript");
    let compiler = folder.join("node_modules/typescript/bin/tsc");
    if !compiler.exists() {
        return skipped(name, "its compiler is not there: npm ci in clients/typescript");
    }
    let mut built = Command::new("node");
    built.arg(compiler).args(["-p", "tsconfig.json"]).current_dir(&folder);
    let Output { status, stdout, .. } = built.output().expect("it can be run");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
    on(2, Auth::Key, async |mesh| {
        let files = ["tests/parts.test.mjs", "tests/nodes.test.mjs"];
        let arguments = [&["--experimental-websocket", "--test"], &files[..]].concat();
        let said = at_nodes(mesh, "node", &arguments, "clients/typescript").await?;
        let (passed, left_out) = (number(&said, "# pass "), number(&said, "# skipped "));
        ensure!(passed >= Some(TYPESCRIPT_TESTS) && left_out == Some(0), "{said}");
        Ok(())
    });
}

/// An example of the Rust client, as cargo has built it for this run of the tests.
fn example(name: &str, tcp: &str, key: &str) -> Command {
    let program = env::current_exe().expect("a test is a program");
    let folder = program.parent().and_then(Path::parent).expect("target/PROFILE/deps/promises");
    let mut command = Command::new(folder.join("examples").join(name));
    command.env("CLAWMESH_TCP", tcp).env("CLAWMESH_KEY", key).stdin(Stdio::null());
    command
}

/// The example that answers, which is killed when it is dropped.
struct Answering(Child);

impl Drop for Answering {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a file that another program writes.
async fn until_there(file: &Path) -> Result<()> {
    let written = async {
        while !file.exists() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, written).await.with_context(|| format!("{} is not written", file.display()))
}

#[test]
fn the_rust_clients_examples_answer_and_seal_at_a_node() {
    // Whoever runs this test alone gets them built here.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--package", "client", "--examples"]).current_dir(top());
    assert!(build.status().expect("cargo is there").success(), "the examples are not built");
    let dir = tempfile::tempdir().expect("there is room");
    on(1, Auth::Key, async |mesh| {
        let (tcp, key) = (mesh.nodes[0].tcp(), mesh.key().context("a key")?);
        let wishes = json!({ "mesh": { "events": ["stream"] } });
        let mut asks = Agent::attach_as(tcp, Some(key), "asks", wishes).await?;
        asks.call("join_room", json!({ "room_id": "lobby" })).await?;
        let mut answering = example("answering", tcp, key);
        answering.env("CLAWMESH_CURSOR", dir.path().join("lobby.cursor"));
        let asked = json!({ "room_id": "lobby", "content": "who is here?" });
        let first = Answering(answering.spawn()?);
        asks.event("it joins", SOON, |event| event.kind == "agent_joined").await?;
        // It has joined before it knows where the room ends. With its cursor written, nothing is missed.
        until_there(&dir.path().join("lobby.cursor")).await?;
        asks.call("send_message", asked.clone()).await?;
        for word in ["rust ", "is"] {
            let piece = json!({ "agent_id": "rust-1", "kind": "chunk", "content": word });
            asks.event("a piece", SOON, |event| event.is("stream", &piece)).await?;
        }
        let answer = json!({ "agent_id": "rust-1", "content": "rust is" });
        let answered = |event: &testnet::wire::Event| event.is("message_received", &answer);
        asks.event("the answer", SOON, answered).await?;
        drop(first);
        // Nobody is there. It answers when it is back.
        let asked = text(&asks.call("send_message", asked).await?, "message_id");
        let _second = Answering(answering.spawn()?);
        let late = asks.event("the late answer", SOON, |event| {
            answered(event) && event.body["reply_to_message"] == *asked
        });
        late.await?;
        let sealed = example("sealed", tcp, key).output()?;
        let said = String::from_utf8_lossy(&sealed.stdout);
        ensure!(said.contains("ada reads: the eagle lands at dawn\n"), "{said}");
        ensure!(said.contains("blind reads: clw1:"), "{said}");
        Ok(())
    });
}

#[test]
fn all_clients_seal_alike() {
    let vectors: Value = serde_json::from_str(&read("clients/sealing-vectors.json")).expect("JSON");
    let vectors = vectors.as_array().expect("a list");
    assert!(vectors.len() >= 4);
    for vector in vectors {
        let key = RoomKey::derive(&text(vector, "secret"), &text(vector, "room_id"));
        let digits = text(vector, "nonce");
        let nonce: [u8; 12] = std::array::from_fn(|at| {
            u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits")
        });
        let blob = key.seal(nonce, &text(vector, "text")).expect("it is short");
        assert_eq!(blob, text(vector, "blob"));
    }
}

#[test]
fn the_page_has_every_code_command_and_event() {
    let page = page();
    let codes = page.split("## 12. Error codes").nth(1).expect("a section of codes");
    let rows = codes.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let listed: BTreeSet<&str> = rows
        .flat_map(|(first, _)| first.split('`').step_by(2))
        .filter(|name| name.len() > 2)
        .collect();
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, known, "codes of the table");
    let rows = |source: &str, end: &str| -> Vec<String> {
        let lines = source.lines().filter(|line| line.contains(end));
        let names = lines.filter_map(|line| line.split_once("= \"")?.1.split_once('"'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let commands = rows(&read("bridge/protocol/src/request.rs"), "\" -> ");
    let events = rows(&read("bridge/protocol/src/event.rs"), "\", ");
    assert!(commands.len() > 40 && events.len() > 15, "{commands:?} {events:?}");
    for name in commands.iter().chain(&events) {
        assert!(page.contains(&format!("`{name}`")), "the page has no `{name}`");
    }
}
