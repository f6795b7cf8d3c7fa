//! `clawmesh once`: a command that runs at no more than one of many nodes.

use crate::support::{Call, World};

/// Says where it is, and ends with 7 when the file is there.
const WAITS: &str = "echo ran; while [ ! -e done ]; do sleep 0.05; done; exit 7";

fn once<'w>(world: &'w World, node: usize, flags: &[&str], script: &str) -> Call<'w> {
    let start = [&["once", "room", "deploy"], flags].concat();
    let args = [&start[..], &["--", "/bin/sh", "-c", script]].concat();
    world.call(node, "same name", &args).env("PATH", "/usr/bin:/bin")
}

#[test]
fn of_all_that_ask_at_all_nodes_one_runs_it() {
    let world = World::of(3);
    world.room("room");
    let script = "echo $CLAWMESH_ONCE_GRANT >> ran; exit 7";
    let runs: Vec<_> = (0..6).map(|n| once(&world, n % 3, &[], script).spawn()).collect();
    let handle = world.runtime.handle();
    let mut codes: Vec<i32> = runs.into_iter().map(|run| run.end(handle)).collect();
    codes.sort_unstable();
    assert_eq!(codes, [4, 4, 4, 4, 4, 7]);
    let ran = std::fs::read_to_string(world.home().join("ran")).unwrap();
    assert_eq!(ran.lines().count(), 1, "{ran}");
    // Also when it is over; and the grant is said to programs.
    let late = once(&world, 1, &["--json"], script).run();
    assert_eq!(late.code, 4);
    assert!(late.stderr.contains("has deploy"), "{late:?}");
    let said: serde_json::Value = serde_json::from_str(&late.stdout).unwrap();
    assert_eq!((&said["granted"], said["grant_id"].as_str()), (&false.into(), Some(ran.trim())));
}

#[test]
fn a_lease_is_kept_while_the_command_runs_and_is_free_when_its_program_dies() {
    let world = World::of(2);
    world.room("room");
    let handle = world.runtime.handle();
    let mut holder = once(&world, 0, &["--lease", "2"], WAITS).spawn();
    assert_eq!(holder.line(handle), "ran");
    // Longer than the lease: each try is a round trip and a process.
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 5 {
        let refused = once(&world, 1, &["--lease", "2"], "exit 0").run();
        assert_eq!(refused.code, 4, "{refused:?}");
    }
    // Killed, it renews no more.
    drop(holder);
    world.until("the lease has run out", || {
        once(&world, 1, &["--lease", "2"], "exit 0").run().code == 0
    });
    world.file("done", "");
}

#[test]
fn what_is_given_back_is_free_at_once_and_so_is_what_could_not_run() {
    let world = World::of(1);
    world.room("room");
    world.file("done", "");
    for _ in 0..2 {
        assert_eq!(once(&world, 0, &["--release"], WAITS).run().code, 7);
    }
    let missing = ["once", "room", "deploy", "--", "/no/such/program"];
    let failed = world.call(0, "ada", &missing).run().failed();
    assert!(failed.contains("cannot run /no/such/program"), "{failed}");
    let killed = once(&world, 0, &[], "kill -TERM $$").run();
    assert_eq!(killed.code, 128 + 15, "{killed:?}");
    assert_eq!(once(&world, 0, &[], "exit 0").run().code, 4, "it had run");
    let long = "x".repeat(129);
    let refused = world.call(0, "ada", &["once", "room", &long, "--", "true"]).run().failed();
    assert!(refused.contains("`subject` must have 1 to 128 bytes"), "{refused}");
}
