//! The examples, run by three agents at three nodes, as a reader would run them.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use testnet::{
    binary,
    process::{Auth, Mesh, Plan, Terminal},
};
use tokio::runtime::Runtime;

use crate::end_to_end::machine;

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
