//! `serve` and `auth`: the node's program, by the names that ClawChat has for its commands.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use testnet::binary;
use tokio::process::Command;
use tokio::runtime::Runtime;

use crate::running::Running;
use crate::support::World;

/// `clawmesh` with an environment of its own.
fn clawmesh(program: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", home).kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

#[test]
fn serve_and_auth_are_the_nodes_commands() {
    binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let (runtime, home) = (Runtime::new().unwrap(), TempDir::new().unwrap());
    let _inside = runtime.enter();
    let here = Path::new(env!("CARGO_BIN_EXE_clawmesh"));
    let line = |args: &[&str]| {
        let mut running = Running::start(clawmesh(here, home.path(), args));
        let line = running.line(runtime.handle());
        (line, running)
    };
    let free = "127.0.0.1:0";
    // `--socket`, `--tcp` and `--json` are options of `clawmesh`, too: here they are the node's.
    let socket = home.path().join("there.sock").display().to_string();
    let (ready, _node) = line(&[
        "serve", "--socket", &socket, "--tcp", free, "--http", free, "--listen", free, "--json",
    ]);
    let ready: Value = serde_json::from_str(&ready).unwrap_or_else(|_| panic!("{ready}"));
    assert_eq!(ready["socket"], socket.as_str());
    let (old, _) = line(&["auth", "show-key"]);
    let rotated = Running::start(clawmesh(here, home.path(), &["auth", "rotate-key", "--yes"]));
    assert_eq!(rotated.end(runtime.handle()), 0);
    let (new, _) = line(&["auth", "show-key"]);
    assert!(!old.is_empty() && !new.is_empty() && old != new, "{old:?} {new:?}");
}

#[test]
fn without_the_nodes_program_the_error_says_so() {
    let (runtime, home) = (Runtime::new().unwrap(), TempDir::new().unwrap());
    let here = Path::new(env!("CARGO_BIN_EXE_clawmesh"));
    // A place without `clawmeshd`, on the same disk.
    let alone = tempfile::tempdir_in(here.parent().unwrap()).unwrap();
    let program = alone.path().join("clawmesh");
    std::fs::hard_link(here, &program).unwrap();
    let failed = |args: &[&str]| {
        let mut command = clawmesh(&program, home.path(), args);
        command.env("PATH", OsStr::new("/nowhere"));
        let output = runtime.block_on(async { command.output().await }).unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(failed(&["serve"]).contains("clawmeshd"), "{}", failed(&["serve"]));
    let first = failed(&["--socket", "s", "serve"]);
    assert!(first.contains("write them first"), "{first}");
}

#[test]
fn a_second_agent_joins_by_the_text_that_was_pasted_into_it() {
    let world = World::of(1);
    let data_dir = world.mesh.nodes[0].ready().data_dir.display().to_string();
    let keyed = ["--label", "second", "--expires", "1h", "--data-dir", &data_dir];
    let invited = world.bare(&[&["invite-agent", "lobby"], &keyed[..]].concat()).run();
    assert_eq!(invited.code, 0, "{invited:?}");
    let lines = invited.stdout.lines().filter_map(|line| line.strip_prefix("    "));
    let commands: Vec<&str> = lines.collect();
    let key = commands.iter().find_map(|line| line.strip_prefix("export CLAWMESH_KEY=")).unwrap();
    // Nobody else gets it, and the operator can tell it by its name.
    assert!(!invited.stderr.contains(key) && !world.mesh.nodes[0].log().contains(key));
    let program = Path::new(env!("CARGO_BIN_EXE_clawmesh"));
    let listed = std::process::Command::new(program.with_file_name("clawmeshd"))
        .args(["keys", "list", "--json", "--data-dir", &data_dir])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["label"], "second");
    assert!(listed[0]["expires_at"].is_string(), "{listed}");

    // The commands of the text, but for the one that waits for somebody, and the client that another test gets from a node.
    let has_python = std::process::Command::new("python3").arg("--version").output().is_ok();
    let script: String = commands
        .iter()
        .take_while(|line| has_python || !line.starts_with("python3"))
        .filter(|line| !line.starts_with("clawmesh wait"))
        .map(|line| format!("{line}\n"))
        .collect();
    world.file("clawmesh.py", include_str!("../../../examples/python/clawmesh.py"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let shell = std::process::Command::new("sh")
        .args(["-ec", &script])
        .current_dir(world.home())
        .env_clear()
        .envs([("PATH", path.as_str()), ("HOME", world.home().to_str().unwrap())])
        .output()
        .unwrap();
    assert!(shell.status.success(), "{script}\n{shell:?}");
    let said = world.ok(0, "host", &["history", "lobby"]);
    let expected = if has_python { 2 } else { 1 };
    assert_eq!(said.matches("choose-a-name: hello, I am here").count(), expected, "{said}");
    // A room that is not there gets no key.
    let unknown = world.bare(&["invite-agent", "nowhere", "--data-dir", &data_dir]).run().failed();
    assert!(unknown.contains("no room"), "{unknown}");
}
