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
