//! Tokens: made, shown to the node by a host, revoked, and kept over a restart.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    harness::{Daemon, ask, clawmeshd, temp, up_keyed},
    metrics::scrape,
};

fn keyed(dir: &Path, more: &[&str]) -> Daemon {
    let key = dir.join("auth.key");
    up_keyed(&dir.join("data"), &[&["--key-file", key.to_str().unwrap()], more].concat())
}

fn run(node: &Daemon, arguments: &[&str]) -> String {
    let place = ["--data-dir", node.text("data_dir")];
    let output = ask(&[arguments, &place].concat());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn refusal(node: &Daemon, arguments: &[&str]) -> String {
    let place = ["--data-dir", node.text("data_dir")];
    let output = clawmeshd(&[arguments, &place].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn list(node: &Daemon) -> Vec<Value> {
    serde_json::from_str(&run(node, &["tokens", "list", "--json"])).unwrap()
}

/// The status of one tool's call, and its answer.
pub(crate) fn invoke(node: &Daemon, token: &str, body: &Value) -> (u16, Value) {
    let at = node.text("http").trim_start_matches("http://");
    let body = body.to_string();
    let mut socket = TcpStream::connect(at).unwrap();
    let request = format!(
        "POST /tools/invoke HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn me(node: &Daemon, token: &str) -> Result<Value, u16> {
    let (status, answer) = invoke(node, token, &json!({"tool": "agents_list"}));
    if status == 200 { Ok(answer["result"]["details"]["me"].clone()) } else { Err(status) }
}

/// Whether any file under `dir` has these bytes.
fn is_written(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_written(&path, bytes);
        }
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|at| at == bytes)
    })
}

#[test]
fn a_token_opens_its_node_until_it_is_revoked_also_after_a_restart() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let own = run(&node, &["tokens", "mint", "--agent", "ada", "--sandboxed", "--expires", "30d"]);
    assert!(own.starts_with("cmt_") && own.len() == 47, "the token alone: {own}");
    let key_text = run(&node, &["keys", "mint", "--tier", "pro"]);
    let key = dir.path().join("minted.key");
    fs::write(&key, format!("{key_text}\n")).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let file = ["--key-file", key.to_str().unwrap()];
    let terms = [
        "tokens",
        "mint",
        "--agent",
        "bob",
        "--name",
        "Bob",
        "--scopes",
        "list,send",
        "--tools",
        "sessions",
    ];
    let minted = run(&node, &[&terms[..], &file].concat());
    for (token, agent, kind, scopes, sees) in
        [(&own, "ada", "own", 8, "spawned"), (&minted, "bob", "minted", 2, "joined")]
    {
        let me = me(&node, token).unwrap();
        assert_eq!((&me["agentId"], &me["keyKind"]), (&json!(agent), &json!(kind)), "{me}");
        assert_eq!(me["scopes"].as_array().unwrap().len(), scopes);
        assert_eq!(me["visibility"], sees);
    }
    let noted = json!({"tool": "sessions_send", "args": {"sessionKey": "main", "message": "a note", "timeoutSeconds": 0}});
    assert_eq!(invoke(&node, &minted, &noted).1["result"]["details"]["status"], "accepted");
    let page = scrape(&node);
    assert_eq!(page["clawmesh_tool_calls_total{tool=\"sessions_send\",end=\"accepted\"}"], 1.0);
    assert_eq!(page["clawmesh_tool_calls_total{tool=\"agents_list\",end=\"ok\"}"], 2.0);
    assert_eq!(page["clawmesh_tool_waits"], 0.0);
    let status = run(&node, &["status"]);
    assert!(status.contains("Agents of hosts: 1, calls that wait: 0"), "{status}");
    let listed = list(&node);
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["agent"], &listed[0]["sandboxed"]), (&json!("ada"), &json!(true)));
    assert_eq!(
        (&listed[1]["scopes"], &listed[1]["state"]),
        (&json!(["list", "send"]), &json!("valid"))
    );
    let table = run(&node, &["tokens", "list"]);
    assert!(table.contains("spawned") || table.contains("joined (sandbox)"), "{table}");
    for text in [&own, &minted] {
        assert!(!table.contains(&text[..20]) && !format!("{listed:?}").contains(&text[..20]));
        assert!(!is_written(dir.path(), text.as_bytes()), "a token's text is kept");
    }
    fs::remove_file(&key).unwrap();
    assert!(!is_written(dir.path(), key_text.as_bytes()), "the text of a key is kept");
    let mode = fs::metadata(dir.path().join("data/tokens.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    drop(node);
    let node = keyed(dir.path(), &[]);
    assert_eq!(me(&node, &minted).unwrap()["agentId"], "bob", "it is there after a restart");
    let id = listed[1]["id"].as_str().unwrap();
    run(&node, &["tokens", "revoke", &id[..8]]);
    assert_eq!(me(&node, &minted), Err(401));
    assert_eq!(list(&node).len(), 1);
    drop(node);
    let node = keyed(dir.path(), &[]);
    assert_eq!(me(&node, &minted), Err(401));
    assert!(me(&node, &own).is_ok());
    run(&node, &["key", "rotate", "--yes"]);
    assert_eq!(me(&node, &own), Err(401), "its key is not the node's any more");
    assert_eq!(list(&node)[0]["state"], "key_invalid");
}

#[test]
fn a_token_of_a_revoked_key_opens_nothing_and_what_cannot_be_made_is_said() {
    let dir = temp();
    let node = keyed(dir.path(), &[]);
    let key = dir.path().join("minted.key");
    fs::write(&key, run(&node, &["keys", "mint"])).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let file = key.to_str().unwrap();
    let token = run(&node, &["tokens", "mint", "--agent", "bob", "--key-file", file]);
    assert!(me(&node, &token).is_ok());
    for (arguments, expect) in [
        (&["tokens", "mint", "--agent", "bob"][..], "\"bob\" is taken"),
        (&["tokens", "mint", "--agent", ""], "1 to 128 bytes"),
        (&["tokens", "mint", "--agent", "x", "--scopes", "root"], "\"root\" is no scope"),
        (&["tokens", "mint", "--agent", "x", "--tools", "spoons"], "no group \"spoons\""),
        (&["tokens", "mint", "--agent", "x", "--visibility", "none"], "--visibility"),
        (&["tokens", "revoke", "abcdef"], "no token \"abcdef\""),
    ] {
        let text = refusal(&node, arguments);
        assert!(text.contains(expect), "{arguments:?}: {text}");
    }
    let keys: Vec<Value> = serde_json::from_str(&run(&node, &["keys", "list", "--json"])).unwrap();
    run(&node, &["keys", "revoke", keys[0]["fingerprint"].as_str().unwrap()]);
    assert_eq!(me(&node, &token), Err(401));
    assert_eq!(list(&node)[0]["state"], "key_invalid");
    let text = refusal(&node, &["tokens", "mint", "--agent", "eve", "--key-file", file]);
    assert!(text.contains("cannot be presented"), "{text}");
}

/// How agents are told, as `clawmesh agents --mesh` asks for it.
fn mails(node: &Daemon) -> Vec<Value> {
    let socket = Path::new(node.text("data_dir")).join("control.sock");
    let mut control = UnixStream::connect(socket).unwrap();
    control.write_all(b"\"mail\"\n").unwrap();
    let mut text = String::new();
    control.read_to_string(&mut text).unwrap();
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(answer["mail"].take()).unwrap()
}

#[test]
fn an_operator_sees_how_agents_are_told_and_how_far_each_has_got() {
    let dir = temp();
    let config = dir.path().join("clawmesh.toml");
    let wake = "[[wake]]\nagent = \"eve\"\nurl = \"http://127.0.0.1:9/wake\"\n";
    fs::write(&config, wake).unwrap();
    let node = keyed(dir.path(), &["--config", config.to_str().unwrap()]);
    let key = run(&node, &["key", "show"]);
    let call = |agent: &str, tool: &str, args: Value| {
        let body = json!({"tool": tool, "agentId": agent, "args": args});
        let (status, mut answer) = invoke(&node, &key, &body);
        assert_eq!(status, 200, "{answer}");
        answer["result"]["details"].take()
    };
    let of = |agent: &str| {
        let all = mails(&node);
        all.into_iter().find(|mail| mail["agent_id"] == agent).expect("it is shown")
    };
    assert_eq!((&of("eve")["woken"], &of("eve")["here"]), (&json!("post"), &json!("away")));
    let now = json!({"timeoutSeconds": 0});
    for agent in ["ada", "bob"] {
        call(agent, "inbox_wait", now.clone());
    }
    call(
        "bob",
        "sessions_send",
        json!({"agentId": "ada", "message": "hello", "timeoutSeconds": 0}),
    );
    let mail = of("ada");
    assert_eq!((&mail["unread"], &mail["here"]), (&json!(1), &json!("by_requests")), "{mail}");
    assert_eq!((&mail["woken"], &mail["told_at"]), (&json!("not"), &Value::Null));
    call("ada", "inbox_notice", now.clone());
    let mail = of("ada");
    assert_eq!((&mail["woken"], &mail["unread"]), (&json!("hook"), &json!(1)));
    assert!(
        mail["told_at"].is_string() && mail["fetched_at"].is_null(),
        "told is not fetched: {mail}"
    );
    let read = call("ada", "inbox_wait", now.clone());
    let mail = of("ada");
    assert!(mail["fetched_at"].is_string() && mail["confirmed_at"].is_null(), "{mail}");
    call("ada", "inbox_wait", json!({"timeoutSeconds": 0, "cursor": read["cursor"]}));
    let mail = of("ada");
    assert!(mail["confirmed_at"].is_string(), "{mail}");
    assert_eq!(mail["unread"], 0);
}
