//! `clawmesh doctor`.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use client::client::Client;
use client::events::Events;
use protocol::operator::{
    Status,
    checkup::{self, CLOCK_OFF_MS, Check, Finding},
};
use protocol::request::{ListAgents, Ping};

use crate::context::Context;
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};

/// Find out what is wrong: node, socket, key, clock, ports, peers, disk; and say what to do
///
/// Exits 1 if something does not work. What only deserves a look (`note`) is no failure.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    #[command(flatten)]
    operator: Operator,
}

/// Agents that are named.
const AGENTS_SHOWN: usize = 5;
/// Where nodes listen unless they are told otherwise.
const PORTS: [(&str, u16); 3] = [("--tcp", 9229), ("--http", 9230), ("--listen", 9231)];

pub(crate) async fn run(cx: &Context, args: Doctor) -> Result<Outcome, Failure> {
    // It judges a connection of its own.
    if cx.is_held() {
        return Err(Failure::NotInShell);
    }
    // The node of --data-dir, and no other one that runs here.
    let cx = &Context::new(args.operator.clients_way(&cx.node)?);
    let mut checks = Vec::new();
    let status = node(&args.operator, &mut checks).await;
    key(cx, &mut checks);
    if let Some((client, _events)) = attach(cx, &mut checks).await {
        clock(&client, &mut checks).await;
    }
    match &status {
        Some(status) => checks.extend(checkup::of_status(status)),
        None => ports(&mut checks),
    }
    if status.is_some() {
        agents(&args.operator, &mut checks).await;
    }
    disk(&args.operator, &mut checks);
    let bad = checks.iter().filter(|check| check.state == Finding::Bad).count();
    cx.output.show(&checks, || checks.iter().flat_map(lines).collect())?;
    if bad > 0 { Err(Failure::Unwell { count: bad }) } else { Ok(Outcome::Done) }
}

fn lines(check: &Check) -> Vec<String> {
    let state = match check.state {
        Finding::Ok => "ok  ",
        Finding::Note => "note",
        Finding::Bad => "BAD ",
    };
    let mut lines =
        vec![format!("{state} {:<7} {}", check.subject, format::printable(&check.found, " "))];
    lines.extend(check.advice.as_ref().map(|advice| format!("             -> {advice}")));
    lines
}

async fn node(operator: &Operator, checks: &mut Vec<Check>) -> Option<Box<Status>> {
    match operator.status().await {
        Ok(status) => {
            let Status { name, node_id, agents, .. } = &*status;
            let found = format!(
                "{name} ({}) runs, with {}",
                node_id.chars().take(8).collect::<String>(),
                format::counted(*agents as u64, "agent")
            );
            checks.push(Check::ok("node", found));
            Some(status)
        }
        Err(failure @ Failure::NotRunning { .. }) => {
            let advice = "a node elsewhere is reached with --tcp or --url; then only what clients see can be looked at";
            checks.push(Check::note("node", failure.to_string(), advice));
            None
        }
        Err(failure) => {
            let advice = "run this as the user who runs the node, or restart the node";
            checks.push(Check::bad("node", failure.to_string(), advice));
            None
        }
    }
}

/// The agents of the node, of every key.
async fn agents(operator: &Operator, checks: &mut Vec<Check>) {
    // A node of before has no list of them.
    let Ok(all) = operator.agents().await else { return };
    let keys: BTreeSet<Option<&str>> = all
        .iter()
        .map(|one| one.agent.mesh.as_ref().and_then(|note| note.key.as_deref()))
        .collect();
    let shown = all.iter().take(AGENTS_SHOWN).map(|one| {
        format!("{} ({}; {})", one.agent.name, format::doing(&one.agent), one.rooms.join(", "))
    });
    let rest = all.len().saturating_sub(AGENTS_SHOWN);
    let rest = (rest > 0).then(|| format!("{rest} more: clawmesh agents --all"));
    let (agents, keys) = (all.len() as u64, keys.len() as u64);
    let counts =
        format!("{} of {}", format::counted(agents, "agent"), format::counted(keys, "key"));
    let shown: Vec<String> = shown.chain(rest).collect();
    let found = if shown.is_empty() { counts } else { format!("{counts}: {}", shown.join(", ")) };
    checks.push(Check::ok("agents", found));
}

fn key(cx: &Context, checks: &mut Vec<Check>) {
    if cx.node.key.is_some() {
        checks.push(Check::ok("key", "given by --key or a variable"));
        return;
    }
    let path = match cx.key_file() {
        Ok(path) => path,
        Err(failure) => {
            checks.push(Check::bad("key", failure.to_string(), "give --key or --key-file"));
            return;
        }
    };
    let shown = path.display();
    checks.push(match std::fs::metadata(&path) {
        Ok(file) if file.permissions().mode() & 0o077 != 0 => Check::bad(
            "key",
            format!("others can read {shown}"),
            format!("chmod 600 {shown}; and if others use this machine: clawmeshd key rotate"),
        ),
        Ok(_) => Check::ok("key", format!("{shown}, for this user only")),
        Err(error) => Check::bad(
            "key",
            format!("{shown}: {error}"),
            "start a node with `clawmeshd up`, which makes one, or give --key-file or --key",
        ),
    });
}

async fn attach(cx: &Context, checks: &mut Vec<Check>) -> Option<(Client, Events)> {
    let at: Vec<String> = match cx.addresses() {
        Ok(addresses) => addresses.iter().map(ToString::to_string).collect(),
        Err(_) => Vec::new(),
    };
    let at = at.join(", ");
    let (client, events) = match cx.connect().await {
        Ok(connected) => connected,
        Err(failure) => {
            let advice = if matches!(failure, Failure::NoNode { .. }) {
                "start a node: `clawmeshd up`; is it another --socket, --tcp or --url?"
            } else if matches!(failure, Failure::KeyRefused { .. }) {
                "take the key that `clawmeshd key show` prints there"
            } else {
                "mend the above first"
            };
            checks.push(Check::bad("attach", failure.to_string(), advice));
            return None;
        }
    };
    let asked = Instant::now();
    checks.push(match client.call(Ping {}).await {
        Ok(_) => {
            let ms = asked.elapsed().as_secs_f64() * 1000.0;
            Check::ok("attach", format!("{at}: the key is good, answers in {ms:.1} ms"))
        }
        Err(error) => Check::bad("attach", format!("{at}: {error}"), "restart the node"),
    });
    Some((client, events))
}

/// Compares this clock with the node's, as it stands beside this very connection.
async fn clock(client: &Client, checks: &mut Vec<Check>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    let Ok(list) = client.call(ListAgents { room_id: None }).await else { return };
    let me = list.agents.iter().find(|agent| agent.agent_id == client.agent_id());
    let Some(there) = me.and_then(|agent| unix_ms(&agent.connected_at)) else { return };
    let off = u64::try_from(now).unwrap_or(u64::MAX).abs_diff(there);
    checks.push(if off > CLOCK_OFF_MS {
        Check::bad(
            "clock",
            format!("the node's clock and this one differ by {:.1} s", off as f64 / 1000.0),
            "set the wrong one right, with NTP: timestamps and elections go by it",
        )
    } else {
        Check::ok("clock", "the node's agrees with this one")
    });
}

fn unix_ms(timestamp: &str) -> Option<u64> {
    let time: jiff::Timestamp = timestamp.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// No node runs: could one?
fn ports(checks: &mut Vec<Check>) {
    for (flag, port) in PORTS {
        if let Err(error) = TcpListener::bind(("127.0.0.1", port))
            && error.kind() == io::ErrorKind::AddrInUse
        {
            let found = format!("port {port} is taken by another program");
            let advice = format!("stop that, or start the node with {flag} 127.0.0.1:0");
            checks.push(Check::note("ports", found, advice));
        }
    }
}

fn disk(operator: &Operator, checks: &mut Vec<Check>) {
    let Ok(dir) = operator.data_dir() else { return };
    // Before the first start there is no directory, and its parent is on the disk that it will be on.
    let there = dir.ancestors().find(|path| path.exists()).unwrap_or(&dir);
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    checks.push(checkup::of_disk(free, &dir.display().to_string()));
}
