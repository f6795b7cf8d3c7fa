//! Hosts are set up beside what their users have written, and as before after it: acceptance 5 of waking.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::stub::{Person, Stub, finish, result};
use crate::support::{Ran, World};

/// A node that takes every key.
fn node() -> Stub {
    let me = json!({"agentId": "agent-1", "node": {"id": "9f3a", "name": "beta"}});
    Stub::start(move |asked| {
        let details = json!({"me": me, "count": 0, "agents": []});
        if asked.body["method"] == "tools/list" {
            return (
                200,
                json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"tools": [{}, {}]}}),
            );
        }
        if asked.body["method"] == "tools/call" {
            let result = json!({"content": [], "structuredContent": details});
            return (200, json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}));
        }
        result(details)
    })
}

/// Hosts, and the file of each in which its server of tools stands.
const HOSTS: [(&str, &str); 7] = [
    ("claude", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("openclaw", ".openclaw/openclaw.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("gemini", ".gemini/settings.json"),
    ("copilot", ".copilot/mcp-config.json"),
    ("cursor", ".cursor/mcp.json"),
];

struct User {
    person: Person,
    node: Stub,
}

impl User {
    fn new() -> User {
        User { person: Person::new(), node: node() }
    }

    fn home(&self) -> &Path {
        self.person.home.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.person.run(&[&["--url", self.node.url.as_str()], args].concat())
    }

    /// All files but the records and backups, with their texts.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.home().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                if path.ends_with(".local") {
                    continue;
                }
                if path.is_dir() {
                    found.push((path.clone(), String::new()));
                    folders.push(path);
                } else {
                    found.push((path.clone(), fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn a_home_with_nothing_in_it_is_so_again() {
    let user = User::new();
    for (host, file) in HOSTS {
        let before = user.files();
        let shown = user.run(&["attach", host, "--print"]).ok();
        assert!(shown.contains("(a new file)") && shown.contains("+ "), "{shown}");
        assert_eq!(user.files(), before, "--print writes nothing");
        let shown = user.run(&["attach", host, "--yes"]).ok();
        assert!(shown.contains("tried: 2 tools, agent agent-1 at node beta"), "{shown}");
        let mode = fs::metadata(user.file(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
        let attached = user.files();
        let again = user.run(&["attach", host, "--yes"]).ok();
        assert!(again.contains("nothing changed"), "{again}");
        assert_eq!(user.files(), attached);
        let list: Value =
            serde_json::from_str(&user.run(&["attach", "--list", "--json"]).ok()).unwrap();
        let rows = list["hosts"].as_array().unwrap();
        let row = rows.iter().find(|row| row["host"] == host).unwrap();
        let is_named = row["attached"]
            .as_array()
            .unwrap()
            .iter()
            .any(|path| path.as_str().unwrap().ends_with(file));
        assert!(is_named, "{list}");
        user.run(&["detach", host, "--yes"]).ok();
        assert_eq!(user.files(), before, "{host}");
        let none = user.run(&["detach", host, "--yes"]).ok();
        assert!(none.contains("is not attached"), "{none}");
    }
}

/// Configuration of users in odd shapes.
const JSON: [&str; 12] = [
    "{}",
    "{ }\n",
    "{\n}\n",
    "{\n  \"theirs\": 1.50\n}",
    "{\n\t\"theirs\": {\"deep\": [1, 2]},\n\t\"mcpServers\": {}\n}\n",
    "{\r\n    \"theirs\": 1,\r\n    \"more\": \"ü\"\r\n}\r\n",
    "{\"theirs\":1,\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"mcp\":{\"other\":{}}}",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [] }\n    ]\n  }\n}\n",
    "{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  },\n  \"mcp\": {\n    \"servers\": {\n    }\n  }\n}\n\n\n",
    "",
    " \n",
    "{ \"theirs\": \"// no comment {\" }",
];

const RELAXED: [&str; 4] = [
    "// theirs\n{\n  // more\n  \"theirs\": 1, // and more\n}\n",
    "{ // theirs\n  mcp: { 'other': {}, /* x */ },\n}",
    "/* theirs */ {\"theirs\": [1,],}",
    "// nothing yet\n",
];

const TOML: [&str; 8] = [
    "",
    "# theirs",
    "model = \"x\"\n",
    "model = \"x\"",
    "model = \"x\"\r\n\r\n[mcp_servers.other] # theirs\r\ncommand = \"y\"\r\n",
    "\t[projects.\"/p\"]\n\ttrust_level = \"trusted\"\n\n\n",
    "[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"mine\" }]\n",
    "text = '''\n[mcp_servers.mesh]\n'''\n",
];

fn shapes(host: &str) -> Vec<&'static str> {
    match host {
        "codex" => TOML.to_vec(),
        "claude" | "copilot" | "cursor" => JSON.to_vec(),
        _ => JSON.iter().chain(&RELAXED).copied().collect(),
    }
}

#[test]
fn what_a_user_has_written_is_there_and_is_alone_again_to_the_byte() {
    let user = User::new();
    user.run(&["attach", "claude", "--yes"]).ok();
    user.run(&["detach", "claude", "--yes"]).ok();
    for (host, file) in HOSTS {
        for shape in shapes(host) {
            user.write(file, shape);
            if host == "claude" {
                user.write(".claude/settings.json", shape);
            }
            let before = user.files();
            let shown = user.run(&["attach", host, "--yes"]).ok();
            assert!(shown.contains("its backup is "), "{shown}");
            let text = user.read(file);
            assert!(text.contains("mesh") && text.contains("mcp"), "{text}");
            let theirs = shape.lines().filter(|line| line.trim().starts_with("\"theirs\": 1"));
            for line in theirs {
                assert!(text.lines().any(|other| other == line), "{shape}\n---\n{text}");
            }
            assert!(user.run(&["attach", host, "--yes"]).ok().contains("nothing changed"));
            assert_eq!(user.read(file), text);
            user.run(&["detach", host, "--yes"]).ok();
            assert_eq!(user.files(), before, "{host}: {shape}");
        }
    }
    let backups = user.file(".local/state/clawmesh/attach/backup");
    let backups: Vec<_> = fs::read_dir(backups).unwrap().flatten().collect();
    assert_eq!(backups.len(), 8, "one of each file, made once");
    for backup in backups {
        assert_eq!(backup.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_a_user_writes_meanwhile_stays() {
    let user = User::new();
    for (host, file) in HOSTS {
        let (before, from, to) = if host == "codex" {
            ("first = 1\nmodel = \"x\"\n", "first = 1", "first = 2\nsecond = 3")
        } else {
            ("{\n  \"first\": 1\n}\n", "\"first\": 1", "\"first\": 2,\n  \"second\": 3")
        };
        user.write(file, before);
        user.run(&["attach", host, "--yes"]).ok();
        user.write(file, &user.read(file).replace(from, to));
        user.run(&["detach", host, "--yes"]).ok();
        assert_eq!(user.read(file), before.replace(from, to), "{host}");
    }
    // Claude Code prints its file anew whenever it runs.
    user.write(".claude.json", "{\"theirs\": 1}");
    user.run(&["attach", "claude", "--yes"]).ok();
    let mut value: Value = serde_json::from_str(&user.read(".claude.json")).unwrap();
    value["later"] = json!(2);
    value["mcpServers"]["other"] = json!({"command": "x"});
    user.write(".claude.json", &value.to_string());
    assert!(user.run(&["attach", "claude", "--yes"]).ok().contains("nothing changed"));
    user.run(&["detach", "claude", "--yes"]).ok();
    let left: Value = serde_json::from_str(&user.read(".claude.json")).unwrap();
    let expected = json!({"theirs": 1, "later": 2, "mcpServers": {"other": {"command": "x"}}});
    assert_eq!(left, expected);
}

#[test]
fn other_arguments_take_the_place_of_those_before() {
    let user = User::new();
    user.write(".codex/config.toml", "model = \"x\"\n");
    user.write(".claude.json", "{\n  \"theirs\": 1\n}\n");
    let before = user.files();
    for host in ["codex", "claude"] {
        for agent in ["ada", "bob l"] {
            user.run(&["attach", host, "--yes", "--agent-id", agent, "--name", "A"]).ok();
        }
    }
    let (toml, json) = (user.read(".codex/config.toml"), user.read(".claude.json"));
    for text in [&toml, &json, &user.read(".claude/settings.json")] {
        assert!(text.contains("bob l") && !text.contains("ada"), "{text}");
    }
    assert!(toml.contains("inbox '--hook=codex' --agent-id 'bob l' --name A"), "{toml}");
    assert!(
        toml.contains(r#","--queue","codex"]"#) && toml.contains(r#"["CODEX_HOME","#),
        "{toml}"
    );
    user.run(&["detach", "codex", "--yes"]).ok();
    user.run(&["detach", "claude", "--yes"]).ok();
    assert_eq!(user.files(), before);
}

#[test]
fn links_are_followed_and_broken_files_left_alone() {
    let user = User::new();
    user.write("dotfiles/openclaw.json5", "{ // theirs\n}\n");
    fs::create_dir(user.file(".openclaw")).unwrap();
    let link = user.file(".openclaw/openclaw.json");
    symlink("../dotfiles/openclaw.json5", &link).unwrap();
    let shown = user.run(&["attach", "openclaw", "--yes"]).ok();
    assert!(shown.contains("openclaw.json -> ") && shown.contains("dotfiles/openclaw.json5 ("));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(user.read("dotfiles/openclaw.json5").starts_with("{ // theirs\n  \"mcp\""));
    user.run(&["detach", "openclaw", "--yes"]).ok();
    assert_eq!(user.read("dotfiles/openclaw.json5"), "{ // theirs\n}\n");
    // A link to nothing, and a home by another name.
    fs::remove_file(user.file("dotfiles/openclaw.json5")).unwrap();
    user.run(&["attach", "openclaw", "--yes"]).ok();
    assert!(user.read("dotfiles/openclaw.json5").contains("mesh"));
    user.run(&["detach", "openclaw", "--yes"]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && !link.exists());
    fs::remove_file(&link).unwrap();
    let other = tempfile::tempdir().unwrap();
    let home = other.path().join("home");
    symlink(user.home(), &home).unwrap();
    for agent in ["ada", "bob"] {
        let url = user.node.url.as_str();
        let args = ["--url", url, "--agent-id", agent, "attach", "codex", "--yes"];
        let mut command = user.person.command(user.home(), &args);
        finish(command.env("HOME", &home).spawn().unwrap()).ok();
    }
    assert!(user.read(".codex/config.toml").contains("bob"));
    user.run(&["detach", "codex", "--yes"]).ok();
    assert!(!user.file(".codex").exists());
    for (host, file, text, part) in [
        ("claude", ".claude.json", "{\"a\": 1,}", "no JSON"),
        ("claude", ".claude.json", "[]", "outermost value"),
        ("claude", ".claude.json", "{\"mcpServers\": {\"mesh\": {}}}", "another mcpServers.mesh"),
        ("codex", ".codex/config.toml", "a = \"x\n", "malformed"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n", "cannot be put at its end"),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.mesh]\ncommand = \"x\"\n",
            "mcp_servers.mesh",
        ),
        ("openclaw", ".openclaw/openclaw.json", "{", "malformed: a key"),
        ("opencode", ".config/opencode/opencode.json", "{mcp: 1}", "mcp is not of"),
        ("opencode", ".config/opencode/skills/clawmesh/SKILL.md", "mine", "another file"),
    ] {
        user.write(file, text);
        let before = user.files();
        let said = user.run(&["attach", host, "--yes"]).failed();
        assert!(said.contains(part) && said.contains(file), "{said}");
        assert_eq!(user.files(), before);
        fs::remove_file(user.file(file)).unwrap();
    }
}

#[test]
fn nothing_is_written_without_a_word_a_node_or_with_a_key() {
    let user = User::new();
    let before = user.files();
    let said = user.run(&["attach", "claude"]);
    assert!(said.code == 1 && said.stderr.contains("--yes"), "{said:?}");
    let said = user.run(&["attach", "claude", "--yes", "--key", "s3cret"]).failed();
    assert!(said.contains("--key-file") && !said.contains("s3cret"), "{said}");
    let said = user.person.run(&["attach", "claude", "--yes"]).failed();
    assert!(said.contains("clawmeshd up"), "{said}");
    let refuses = Stub::start(|_| (401, json!({"error": {"type": "unauthorized"}})));
    let said = user.person.run(&["--url", &refuses.url, "attach", "codex", "--yes"]).failed();
    assert!(said.contains("does not take this key"), "{said}");
    assert_eq!(user.files(), before);
    assert!(user.person.run(&["attach"]).code == 1);
    let printed = user.run(&["attach", "shell", "--agent-id", "ada"]).ok();
    assert!(
        printed.starts_with("while ") && printed.contains(" inbox --wait --ack --agent-id ada "),
        "{printed}"
    );
    user.run(&["attach", "claude", "--yes"]).ok();
    let said = user.run(&["detach", "claude"]);
    assert!(said.code == 1 && said.stderr.contains("--yes"), "{said:?}");
}

#[test]
fn a_project_is_set_up_for_itself() {
    let user = User::new();
    user.write("p/.mcp.json", "{\n  \"mcpServers\": {\n    \"other\": {}\n  }\n}\n");
    user.write("p/opencode.jsonc", "{\n  // theirs\n}\n");
    let before = user.files();
    let project = user.file("p").display().to_string();
    for host in ["claude", "codex", "opencode", "gemini", "cursor"] {
        user.run(&["attach", host, "--yes", "--project", &project]).ok();
        let outside = user.files().into_iter().filter(|(path, _)| !path.starts_with(&project));
        assert_eq!(outside.count(), 0, "{host} has its files in the project");
    }
    assert!(user.read("p/.claude/settings.local.json").contains("$CLAUDE_PROJECT_DIR"));
    let asked = user.node.asked();
    let (of_project, of_home): (Vec<_>, Vec<_>) =
        asked.iter().partition(|asked| asked.head.starts_with("POST /mcp "));
    let draws = |all: &[&crate::stub::Asked]| -> Vec<String> {
        all.iter().filter_map(|asked| asked.header("x-clawmesh-draw")).map(str::to_owned).collect()
    };
    let (of_project, of_home) = (draws(&of_project), draws(&of_home));
    assert!(of_project.iter().all(|draw| *draw == of_project[0] && *draw != of_home[0]));
    let said = user.run(&["attach", "openclaw", "--yes", "--project", &project]).failed();
    assert!(said.contains("leave --project out"), "{said}");
    user.write("q/x", "");
    let other = user.file("q").display().to_string();
    let none = user.run(&["detach", "claude", "--yes", "--project", &other]).ok();
    assert!(none.contains("is not attached"), "{none}");
    fs::remove_dir_all(user.file("q")).unwrap();
    user.run(&["attach", "claude", "--yes"]).ok();
    let list: Value =
        serde_json::from_str(&user.run(&["attach", "--list", "--json"]).ok()).unwrap();
    let row = |host: &str| {
        let rows = list["hosts"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["host"] == host).unwrap();
        (row["forUser"].clone(), row["projects"].clone(), row["woken"].is_string())
    };
    assert_eq!(row("claude"), (json!(true), json!([project]), true));
    assert_eq!(row("gemini"), (json!(false), json!([project]), true));
    assert_eq!(row("copilot"), (json!(false), json!([]), true));
    let shown = user.run(&["attach", "--list"]).ok();
    let line = |host: &str| shown.lines().find(|line| line.starts_with(host)).unwrap();
    assert!(line("claude").contains(&format!("for you, in {project}")), "{shown}");
    assert!(!line("gemini").contains("for you"), "{shown}");
    for host in ["claude", "codex", "opencode", "gemini", "cursor"] {
        user.run(&["detach", host, "--yes"]).ok();
    }
    assert_eq!(user.files(), before);
}

#[test]
fn a_hook_waits_only_where_the_host_is_known_to_go_on_beside_it() {
    let user = User::new();
    for (version, waits) in [("2.1.10", false), ("2.1.332", true), ("none", false)] {
        let claude = user.file("bin/claude");
        user.write("bin/claude", &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
        let args = ["--url", &user.node.url, "attach", "claude", "--yes"];
        let mut command = user.person.command(user.home(), &args);
        let said = finish(command.env("PATH", user.file("bin")).spawn().unwrap()).ok();
        let settings: Value = serde_json::from_str(&user.read(".claude/settings.json")).unwrap();
        let stop = &settings["hooks"]["Stop"];
        assert_eq!(stop.as_array().unwrap().len(), 1, "{settings}");
        assert_eq!(stop[0]["hooks"][1]["asyncRewake"] == true, waits, "{version}: {said}");
        assert_eq!(said.contains("begins a turn"), waits, "{said}");
    }
}

#[test]
fn a_node_of_this_machine_is_found_by_its_directory_with_its_key() {
    let world = World::of(1);
    let person = Person::new();
    let dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let key = world.mesh.key().unwrap().to_owned();
    let (_, key_file) = world.mesh.key.as_ref().unwrap();
    let key_file = key_file.display().to_string();
    let flags = ["--data-dir", &dir, "--key-file", &key_file, "--agent-id", "ada"];
    let ran = person.run(&[&["attach", "claude", "--yes"], &flags[..]].concat()).ok();
    assert!(ran.contains(" tools, agent ada at node "), "{ran}");
    let text = fs::read_to_string(person.home.path().join(".claude.json")).unwrap();
    assert!(!text.contains(&key) && text.contains(&key_file), "{text}");
    // The hook that was written, as the host runs it.
    let settings = fs::read_to_string(person.home.path().join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let line = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", line]).env_clear().env("HOME", person.home.path());
    shell.env("CLAUDE_PROJECT_DIR", person.home.path()).stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    assert_eq!(finish(shell.spawn().unwrap()).ok(), "");
}
