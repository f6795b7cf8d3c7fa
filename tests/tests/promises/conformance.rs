//! The lines of nodes on the wire, word for word: the transcripts beside this file.
//!
//! Each is played on one node, and again with its agents spread over the nodes of a mesh: a client
//! cannot tell which it is attached to. Transcripts share the nodes; each makes rooms of its own.
//! `CONFORMANCE_ONLY=votes` plays those whose names contain that. In reading order: [`script`] (how a transcript is written), [`pattern`] (JSON with blanks),
//! [`connection`], [`play`], [`coverage`] (no row of the protocol without one).

mod connection;
mod coverage;
mod pattern;
mod play;
mod script;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use testnet::{
    binary,
    process::{Auth, Mesh, Plan, Terminal},
    wire::{Agent, get_text, post, text},
};
use tokio::{
    runtime::Runtime,
    sync::Semaphore,
    task::JoinSet,
    time::{self, Instant},
};

use crate::end_to_end::part_of_the_machine;
use pattern::Bindings;
use play::{Ground, Play};
use script::Script;

/// Transcripts at a time: most of their time they wait for a disk or for a window of seconds.
const PLAYED_AT_ONCE: usize = 8;
/// No transcript may use another one's key if it looks at all agents of a key, or at its limits. A node
/// mints ten an hour.
const KEYS_MINTED: usize = 9;
/// How long a minted key may take to be known everywhere, and how often that is looked at.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a transcript that is held against a clock may be too late for it.
const HURRIED_TRIES: usize = 4;
/// The variable that names those to be played.
const ONLY: &str = "CONFORMANCE_ONLY";

#[test]
fn every_row_of_the_protocol_has_a_transcript() {
    let gaps = coverage::gaps(&scripts());
    assert!(gaps.is_empty(), "no transcript has {}", gaps.join("\n or "));
}

#[test]
fn transcripts_hold_on_one_node() {
    play_all(1);
}

#[test]
fn transcripts_hold_on_a_mesh_of_three() {
    play_all(3);
}

fn play_all(nodes: usize) {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut scripts = scripts();
    scripts.retain(|script| script.name.contains(&only));
    // A client alone on a mesh is on one node.
    scripts.retain(|script| nodes == 1 || script.connections() > 1);
    scripts.sort_by_key(|script| !script.is_slow());
    let count = scripts.len();
    let _part = part_of_the_machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let (auth, terminal) = (Auth::Key, Terminal::Shared);
    let flags = ["--signup", "open"].map(str::to_owned).to_vec();
    let plan = Plan { binary, nodes, auth, keep: None, flags, terminal };
    let runtime = Runtime::new().expect("the system gives threads");
    let failures = runtime.block_on(async {
        let mesh = Mesh::up(plan).await.unwrap_or_else(|error| panic!("{error}"));
        let ground = ground(&mesh).await.unwrap_or_else(|error| panic!("{error:#}"));
        failures(ground, scripts).await
    });
    let list = failures.join("\n\n");
    assert!(failures.is_empty(), "{} of {count} transcripts:\n\n{list}\n", failures.len());
}

/// The nodes, `$key` that all of them accept, and `$key2` and so on, minted at the first.
async fn ground(mesh: &Mesh) -> Result<Ground> {
    let nodes: Vec<String> = mesh.nodes.iter().map(|node| node.tcp().to_owned()).collect();
    let mut bound = Bindings::from([("key".to_owned(), mesh.key().into())]);
    for i in 2..KEYS_MINTED + 2 {
        let answer = post(mesh.nodes[0].http(), "/api/keys", &json!({})).await?;
        ensure!(answer.0 == 201, "no key is minted: {answer:?}");
        let key = text(&answer.1, "api_key");
        for node in &nodes {
            let deadline = Instant::now() + KNOWN_WITHIN;
            let looker = loop {
                match Agent::attach(node, Some(&key), "to look").await {
                    Ok(agent) => break agent,
                    Err(error) if Instant::now() > deadline => {
                        bail!("a minted key is not known: {error}")
                    }
                    Err(_) => time::sleep(LOOK_EVERY).await,
                }
            };
            // Transcripts count the agents of a key.
            looker.leave().await?;
        }
        bound.insert(format!("key{i}"), key.into());
    }
    let pages = mesh.nodes.iter().map(|node| node.http().to_owned()).collect();
    Ok(Ground { nodes, pages, bound })
}

/// The differences, in the order of the transcripts.
async fn failures(ground: Ground, scripts: Vec<Script>) -> Vec<String> {
    let (ground, seats) = (Arc::new(ground), Arc::new(Semaphore::new(PLAYED_AT_ONCE)));
    let mut playing = JoinSet::new();
    for script in scripts {
        let (ground, seats) = (Arc::clone(&ground), Arc::clone(&seats));
        playing.spawn(async move {
            let _seat = seats.acquire().await;
            played(&ground, script).await.err().map(|error| format!("{error:#}"))
        });
    }
    let mut failures: Vec<String> = playing.join_all().await.into_iter().flatten().collect();
    failures.sort();
    failures
}

/// Plays one; again, if it may have been late, or if the machine stood still for so long that a node took
/// another one's place: the numbers of a room are then no transcript's business.
async fn played(ground: &Ground, mut script: Script) -> Result<()> {
    for _ in 1..HURRIED_TRIES {
        let before = eras_opened(ground).await?;
        match Play::new(ground, &script).run().await {
            Err(_) if script.hurry || eras_opened(ground).await? > before => {
                script = script.again()?;
            }
            done => return done,
        }
    }
    Play::new(ground, &script).run().await
}

/// How often a node has begun to number a room that another one numbered before.
async fn eras_opened(ground: &Ground) -> Result<u64> {
    let mut opened = 0;
    for address in &ground.pages {
        let (_, page) = get_text(address, "/metrics").await?;
        let count = page.lines().find_map(|line| line.strip_prefix("clawmesh_eras_opened_total "));
        opened += count.context("a node counts no eras")?.trim().parse::<u64>()?;
    }
    Ok(opened)
}

/// All transcripts, by name.
fn scripts() -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/transcripts");
    let files = fs::read_dir(&folder).expect("the transcripts are in the tree");
    let mut files: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let parse = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        Script::parse(&name, &text).unwrap_or_else(|error| panic!("{error:#}"))
    };
    files.iter().map(parse).collect()
}
