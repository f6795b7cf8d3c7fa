//! Tools for agent hosts: a host starts the program, and agents of two nodes talk through it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::stub::{Person, Post};
use crate::support::{Call, SOON, World};

/// A host that has started the program and talks with it.
struct Host {
    child: Child,
    stdin: ChildStdin,
    said: Receiver<Value>,
}

impl Host {
    fn of(mut command: std::process::Command) -> Host {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                drop(sender.send(serde_json::from_str(&line).expect("nothing but MCP")));
            }
        });
        Host { child, stdin, said }
    }

    fn says(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn hears(&self) -> Value {
        self.said.recv_timeout(SOON).expect("it is told")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/events": {}}},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The program at a node, as an agent.
fn mcp<'w>(world: &'w World, node: usize, agent: &str, args: &[&str]) -> Call<'w> {
    let dir = world.mesh.nodes[node].ready().data_dir.display().to_string();
    let args = [&["mcp", "--data-dir", &dir, "--agent-id", agent], args].concat();
    world.call(node, agent, &args)
}

fn tool(id: u64, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// The answers to lines, by id.
fn asked(world: &World, node: usize, agent: &str, lines: &[Value]) -> Vec<Value> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let said = mcp(world, node, agent, &["--tools", "all"]).stdin(&text).run().ok();
    let mut answers: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("nothing but MCP")).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

fn result(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

#[test]
fn hosts_at_two_nodes_talk_in_a_room() {
    let world = World::of(2);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let answers = asked(&world, 0, "ada", &lines);
    assert_eq!(answers.len(), 2, "a notification has no answer: {answers:?}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[1]["result"]["tools"].as_array().map(Vec::len), Some(19));
    for (node, agent) in [(0, "ada"), (1, "bob")] {
        let joined = asked(&world, node, agent, &[tool(1, "room_join", json!({"room": "lobby"}))]);
        assert_eq!(result(&joined[0])["status"], "ok", "{joined:?}");
    }
    let said = json!({"room": "lobby", "message": "over here", "mentions": ["bob"]});
    let said = asked(&world, 0, "ada", &[tool(1, "room_send", said)]);
    assert_eq!(result(&said[0])["status"], "ok", "{said:?}");
    world.until("bob reads it", || {
        let wait = json!({"room": "lobby", "afterSeq": 0, "timeoutSeconds": 1});
        let heard = asked(&world, 1, "bob", &[tool(1, "room_wait", wait)]);
        let message = &result(&heard[0])["messages"][0];
        message["content"] == "over here" && message["from"]["agentId"] == "ada"
    });
    // A client of another kind sees the same room, and the host in it.
    let history = world.ok(1, "cy", &["history", "lobby"]);
    assert!(history.contains("over here"), "{history}");
}

#[test]
fn without_a_node_a_tool_says_so_and_the_program_goes_on() {
    let world = World::of(1);
    let nowhere = ["--url", "ws://127.0.0.1:9", "mcp", "--key", "none"];
    let lines =
        [tool(1, "rooms_list", json!({})), json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let said =
        world.bare(&nowhere).stdin(&format!("{text}{}\njunk\n", "x".repeat(1_100_000))).run().ok();
    let answers: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("nothing but MCP")).collect();
    let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    let begins = |text: &Value| text.as_str().is_some_and(|it| it.starts_with("no node can be"));
    assert!(begins(&result(of(json!(1)))["error"]), "{said}");
    assert!(begins(&of(json!(2))["error"]["message"]), "{said}");
    let unread = answers.iter().filter(|answer| answer["id"].is_null());
    let codes: Vec<&Value> = unread.map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(
        codes,
        [&json!(-32_600), &json!(-32_700)],
        "it goes on after a line that is too long"
    );
}

#[test]
fn a_host_is_told_what_to_enter_and_no_key_is_in_it() {
    let world = World::of(1);
    let key = world.mesh.key().unwrap().to_owned();
    let hosts = [
        ["claude-code", "claude", "codex", "openclaw"],
        ["opencode", "gemini", "copilot", "cursor"],
    ];
    for host in hosts.into_iter().flatten().chain(["json"]) {
        for http in [&[][..], &["--http"]] {
            let said = mcp(&world, 0, "ada", &[&["config", host], http].concat()).run().ok();
            assert!(!said.contains(&key), "{said}");
            let wanted = if http.is_empty() { "--agent-id" } else { "/mcp/ada" };
            assert!(said.contains(wanted), "{said}");
        }
    }
}

#[test]
fn people_ask_agents_at_another_node_and_read_what_came() {
    let world = World::of(2);
    let at = |node: usize, agent: &str, args: &[&str]| {
        let dir = world.mesh.nodes[node].ready().data_dir.display().to_string();
        let agent = ["--agent-id", agent];
        let (command, rest) = args.split_first().expect("a command");
        let args = [&agent[..], &[*command, "--data-dir", &dir], rest].concat();
        world.call(node, agent[1], &args).run()
    };
    // It has an inbox from now on, and all nodes know its id.
    world.until("bob is known", || {
        at(1, "bob", &["inbox"]);
        let sent =
            at(0, "ada", &["sessions", "send", "agent:bob:main", "how many?", "--wait", "0"]);
        sent.code == 0
    });
    world.until("it has come", || at(1, "bob", &["inbox"]).stdout.contains("how many?"));
    let shown = at(1, "bob", &["inbox", "--json"]).ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let (id, key) = (&shown["messages"][0]["id"], &shown["messages"][0]["sessionKey"]);
    assert_eq!(key, "agent:ada:main");
    let answer =
        ["sessions", "send", "agent:ada:main", "seven", "--reply-to", id.as_str().unwrap()];
    assert_eq!(at(1, "bob", &answer).code, 0);
    let waited = at(0, "ada", &["inbox", "--wait", "--idle-timeout", "30"]);
    assert!(waited.code == 0 && waited.stdout.contains("seven"), "{waited:?}");
    assert!(at(0, "ada", &["sessions", "history", "agent:bob:main"]).ok().contains("how many?"));
    let task = ["sessions", "spawn", "count the sheep", "--agent", "bob", "--label", "sheep"];
    assert_eq!(at(0, "ada", &task).code, 0);
    world.until("the task has come", || at(1, "bob", &["inbox"]).stdout.contains("the sheep"));
    at(1, "bob", &["inbox", "--ack"]).ok();
    assert!(!at(1, "bob", &["inbox"]).ok().contains("how many?"), "it is confirmed");
}

const INBOX: &str = "clawmesh://inbox";

/// Somebody writes to `ada`. The same text again would be the same message.
fn write_to_ada(world: &World, text: &str) {
    let message = json!({"agentId": "ada", "message": text, "timeoutSeconds": 0});
    let sent = asked(world, 0, "bob", &[tool(1, "sessions_send", message)]);
    assert_eq!(result(&sent[0])["status"], "accepted", "{sent:?}");
}

#[test]
fn a_host_that_starts_the_program_hears_of_news_and_of_events() {
    let world = World::of(1);
    let mut host = Host::of(mcp(&world, 0, "ada", &[]).command().into_std());
    let wanted = json!({"notifications": {"resourceSubscriptions": [INBOX, "clawmesh://you"]}});
    host.says(&modern(7, "subscriptions/listen", wanted));
    let first = host.hears();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    let heard = &first["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(heard, &json!([INBOX]));
    write_to_ada(&world, "text 1");
    let told = host.hears();
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["uri"], INBOX);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    host.says(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 7}}));
    host.says(&modern(8, "events/stream", json!({"name": "inbox"})));
    let active = host.hears();
    assert_eq!(active["method"], "notifications/events/active", "{active}");
    write_to_ada(&world, "text 2");
    let event = host.hears();
    assert_eq!(event["method"], "notifications/events/event", "{event}");
    assert_eq!(event["params"]["data"]["from"], "agent:bob:main");
    // It goes on all the same.
    host.says(&modern(9, "tools/list", json!({})));
    assert_eq!(host.hears()["id"], 9);
}

#[test]
fn a_host_with_a_handshake_subscribes_to_resources() {
    let world = World::of(1);
    let mut host = Host::of(mcp(&world, 0, "ada", &[]).command().into_std());
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    host.says(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    assert_eq!(host.hears()["result"]["capabilities"]["resources"]["subscribe"], true);
    let of = |id: u64, method: &str, uri: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": format!("resources/{method}"),
            "params": {"uri": uri}})
    };
    host.says(&of(2, "subscribe", "clawmesh://you"));
    let none = host.hears();
    assert_eq!((&none["id"], &none["error"]["code"]), (&json!(2), &json!(-32_002)), "{none}");
    host.says(&of(3, "subscribe", INBOX));
    assert_eq!(host.hears(), json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    write_to_ada(&world, "text 3");
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": {"uri": INBOX}});
    assert_eq!(host.hears(), updated);
    host.says(&of(4, "unsubscribe", INBOX));
    assert_eq!(host.hears(), json!({"jsonrpc": "2.0", "id": 4, "result": {}}));
    write_to_ada(&world, "text 4");
    host.says(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}));
    assert_eq!(host.hears()["id"], 5, "it hears of nothing");
}

#[test]
fn a_session_of_codex_is_woken_with_its_queue_once_it_is_known() {
    let (person, post) = (Person::new(), Arc::new(Post::default()));
    let node = post.node();
    let bin = person.home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let told = person.home.path().join("told");
    // What it was given, a line each.
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{0}.new'\nmv '{0}.new' '{0}'\n",
        told.display()
    );
    std::fs::write(bin.join("codex"), script).unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join("codex"), all).unwrap();
    let at = |args: &[&str]| {
        let args = [&["--url", &*node.url, "--key", "k", "--agent-id", "ada"], args].concat();
        let mut command = person.command(person.home.path(), &args);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command
    };
    let host = Host::of(at(&["mcp", "--queue", "codex"]));
    post.come("a secret");
    let hook = |said: Value| {
        let mut command = at(&["inbox", "--hook=codex"]);
        let mut hook = command.stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(said.to_string().as_bytes()).unwrap();
        crate::stub::finish(hook).ok()
    };
    // What is no id of a session is no argument of a program.
    hook(json!({"hook_event_name": "PreToolUse", "session_id": "--help"}));
    let thread = "01a21917-42c1-7ab1-89bc-0ed8f07e60f9";
    assert!(!told.exists(), "no session is known");
    // An event of which a hook tells nothing.
    assert_eq!(hook(json!({"hook_event_name": "PreToolUse", "session_id": thread})), "");
    let until = std::time::Instant::now() + SOON;
    while !told.exists() {
        assert!(std::time::Instant::now() < until, "the session is woken");
        std::thread::yield_now();
    }
    let text = std::fs::read_to_string(&told).unwrap();
    let notice = "1 unread mesh message from bob: call inbox_wait.";
    assert_eq!(text, format!("queue\n--thread\n{thread}\n--message\n{notice}\n"));
    drop(host);
}
