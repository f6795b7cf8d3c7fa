//! A copied data directory that runs beside the original.

use std::process::Command;

use crate::harness::{Daemon, temp, until, up};
use crate::members::{command, state};

fn says(node: &Daemon, part: &str) -> bool {
    String::from_utf8(command(node, &["status"]).stdout).unwrap().contains(part)
}

#[test]
fn a_copy_that_runs_beside_its_original_is_named_at_both_and_at_their_peer() {
    let dirs = [temp(), temp()];
    let first = up(dirs[0].path(), &["--name", "first"]);
    let second = up(dirs[1].path(), &["--name", "second", "--join", first.text("ticket")]);
    let id = second.text("node_id").to_owned();
    until("they are connected", || state(&first, &id) == "connected");
    second.stop();
    let copied = temp();
    let copy = copied.path().join("copy");
    let from = dirs[1].path();
    assert!(Command::new("cp").arg("-r").args([from, copy.as_path()]).status().unwrap().success());
    let second = up(from, &[]);
    until("the original is back", || state(&first, &id) == "connected");
    assert!(!says(&first, "TWIN"), "a start is no twin");
    let copy = up(&copy, &[]);
    assert_eq!(copy.text("node_id"), id);
    until("their peer names them", || says(&first, "TWIN: two nodes run with its identity"));
    for node in [&second, &copy] {
        until("both know", || says(node, "TWIN: another node runs with this one's identity"));
        assert_eq!(node.status()["runs_twice"], true);
    }
}
