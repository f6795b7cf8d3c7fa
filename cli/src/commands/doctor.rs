//! `clawmesh doctor`.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use client::client::Client;
use client::events::Events;
use protocol::operator::{PartedHow, Peer, Room, Status, Trouble};
use protocol::request::{ListAgents, Ping};
use serde::Serialize;

use crate::commands::mesh::link;
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

/// One check and its result.
#[derive(Debug, Serialize)]
struct Check {
    #[serde(rename = "what")]
    subject: &'static str,
    state: Finding,
    found: String,
    /// The way to mend it.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Finding {
    Ok,
    Note,
    Bad,
}

/// Agents that are named.
const AGENTS_SHOWN: usize = 5;
/// Below it a node takes nothing new soon.
const DISK_LOW_BYTES: u64 = 1 << 30;
/// Nodes order what is said at the same time by their clocks, and agents compare timestamps.
const CLOCK_OFF_MS: u64 = 2_000;
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
    if let Some(at) = status.as_ref().and_then(|status| status.read_by_all_at.as_ref()) {
        let found = format!("everybody who reaches {at} reads public rooms without a key");
        let advice = "if that is not meant, start the node without --http-read open and --no-auth";
        checks.push(Check::note("http", found, advice));
    }
    if let Some(trouble) = status.as_ref().and_then(|status| status.certificate.as_ref()) {
        let check = if trouble.refused { Check::bad } else { Check::note };
        checks.push(check("http", trouble.found.clone(), trouble.advice.clone()));
    }
    match &status {
        Some(status) => mesh(status, &mut checks),
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

impl Check {
    fn ok(subject: &'static str, found: impl Into<String>) -> Check {
        Check { subject, state: Finding::Ok, found: found.into(), advice: None }
    }

    fn note(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, state: Finding::Note, found: found.into(), advice: Some(advice.into()) }
    }

    fn bad(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, state: Finding::Bad, found: found.into(), advice: Some(advice.into()) }
    }
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
            if status.disk_full {
                let advice =
                    "make room: the node goes on by itself, and until then others can be used";
                let found = "it is full: the node takes nothing new";
                checks.push(Check::bad("disk", found, advice));
            }
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

fn mesh(status: &Status, checks: &mut Vec<Check>) {
    if let Some((found, advice)) = apart(status) {
        checks.push(Check::bad("mesh", found, advice));
        return;
    }
    let peers: Vec<&Peer> = status.peers.iter().collect();
    let up = peers.iter().filter(|peer| peer.connected).count();
    if peers.is_empty() {
        checks.push(Check::ok("peers", "none: this node is a mesh of its own"));
    } else if up == peers.len() {
        checks.push(Check::ok("peers", format!("all {up} are connected")));
    }
    for peer in peers.iter().filter(|peer| !peer.connected) {
        let name = peer.name.clone().unwrap_or_else(|| peer.addresses.join(" "));
        let why = peer.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let advice = advice(peer.trouble);
        let found = format!("{name} is {}{why}", link(peer));
        // Some nodes of a mesh are always away; without any, this one is alone.
        let check = if up > 0 { Check::note } else { Check::bad };
        checks.push(check("peers", found, advice.to_owned()));
    }
    if let Some(through) = &status.only_through {
        let found = format!("reached only through {through}: if that goes, you are alone");
        let advice = "let other nodes connect to this one: open its port, or start it with --listen and an address that \
                      they reach";
        checks.push(Check::note("peers", found, advice));
    }
    let stop = "stop one of the two: what both write is lost (docs/operating.md, \"When a node has forked\")";
    if status.runs_twice {
        let found = "another node runs with this one's identity, as a copy of its files does";
        checks.push(Check::bad("twin", found, stop));
    }
    for peer in peers.iter().filter(|peer| peer.runs_twice) {
        let name = peer.name.clone().unwrap_or_else(|| peer.addresses.join(" "));
        let found = format!("two nodes run with the identity of {name}");
        checks.push(Check::bad("twin", found, format!("its operator has to {stop}")));
    }
    clocks(&peers, checks);
    for author in &status.forked {
        checks.push(Check::bad(
            "peers",
            format!("node {author} has signed two histories"),
            "its operator has to stop it: it was probably restored from a backup",
        ));
    }
    rooms(status, up, checks);
}

fn rooms(status: &Status, up: usize, checks: &mut Vec<Check>) {
    let sum = |of: fn(&Room) -> u64| status.rooms.iter().map(of).sum::<u64>();
    let (behind, unsent) = (sum(|room| room.behind), sum(|room| room.unsent));
    let unnumbered = sum(|room| room.undelivered as u64);
    if behind + unsent + unnumbered == 0 {
        checks.push(Check::ok("rooms", format!("{}, nothing is behind", status.rooms.len())));
    } else {
        let found = format!(
            "{unnumbered} entries without number, {behind} to fetch, {unsent} at no other node"
        );
        let advice = if up == 0 {
            "they go on when another node is connected"
        } else {
            "look again: it should shrink"
        };
        checks.push(Check::note("rooms", found, advice));
    }
    let holes = sum(|room| room.holes);
    if holes > 0 {
        let advice = "a node that is gone had them alone; if it comes back, so do they";
        checks.push(Check::note("rooms", format!("{holes} numbers without content"), advice));
    }
}

/// Peers whose clocks differ from the node's. If most do, it is the node's that is wrong.
fn clocks(peers: &[&Peer], checks: &mut Vec<Check>) {
    let known: Vec<(&Peer, i64)> =
        peers.iter().filter_map(|peer| Some((*peer, peer.clock_ahead_ms?))).collect();
    let off = |ahead: i64| ahead.unsigned_abs() > CLOCK_OFF_MS;
    let differ = known.iter().filter(|(_, ahead)| off(*ahead)).count();
    let advice = if differ > 1 && 2 * differ > known.len() {
        "most clocks differ from this node's: set this machine's right, with NTP"
    } else {
        "set the wrong one right, with NTP: timestamps and elections go by it"
    };
    for (peer, ahead) in known.iter().filter(|(_, ahead)| off(*ahead)) {
        let name = peer.name.clone().unwrap_or_else(|| peer.addresses.join(" "));
        let way = if *ahead > 0 { "ahead of" } else { "behind" };
        let seconds = ahead.unsigned_abs() as f64 / 1000.0;
        let found = format!("the clock of {name} is {seconds:.1} s {way} this node's");
        checks.push(Check::bad("clock", found, advice));
    }
}

/// Why nothing that the node writes counts, and the remedy.
fn apart(status: &Status) -> Option<(String, &'static str)> {
    let how = status.parted.as_ref().map(|removal| (removal.how, removal.at.as_str()));
    if let Some((how, at)) = how {
        let done = match how {
            PartedHow::Expelled => "was expelled from",
            PartedHow::Left => "has left",
            PartedHow::Retired => "was retired from",
        };
        let advice = "its rooms can be read; agents need another node. To be in the mesh again, start a node with a \
                      ticket and another --data-dir";
        return Some((format!("this node {done} the mesh {at}"), advice));
    }
    let advice =
        "stop it: agents need another node (docs/operating.md, \"When a node has forked\")";
    let found = "this node has signed two histories, as one does that was started from a copy of its files: nobody takes \
                 what it writes";
    status.forked.contains(&status.node_id).then(|| (found.to_owned(), advice))
}

/// The way to a link, by the obstacle.
fn advice(trouble: Option<Trouble>) -> &'static str {
    match trouble {
        None | Some(Trouble::Lost | Trouble::Other) => {
            "is it running, and can its --listen address be reached from here (firewall, NAT)?"
        }
        Some(Trouble::NameNotFound) => {
            "is the name right, and does this machine's DNS know it? or join by a ticket with an IP address"
        }
        Some(Trouble::NotCarried) => {
            "does the member between the two run with --relay members, and is the other one up?"
        }
        Some(Trouble::Unreachable) => "is there a network between the two machines?",
        Some(Trouble::TimedOut) => {
            "is that machine on, and does its firewall let the port through?"
        }
        Some(Trouble::ConnectionRefused) => {
            "is clawmeshd running there, with a --listen address that is not loopback?"
        }
        Some(Trouble::HungUp) => "does another program listen there? else wait, and look again",
        Some(Trouble::WrongSecret) => {
            "a node of another mesh is there, or another program: join with a ticket of that mesh's own node"
        }
        Some(Trouble::OldSecret) => {
            "get a new ticket (`clawmeshd invite` at a member), and start this node with --join TICKET"
        }
        Some(Trouble::OtherNode) => "another node has that address now: get a new ticket",
        Some(Trouble::Clock) => "set the clock that is wrong right, with NTP",
        Some(Trouble::OtherVersion) => "run the same version of clawmeshd on both",
        Some(Trouble::RefusedHere) => {
            "compare the versions of both; `clawmeshd status` shows its last fault"
        }
    }
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
    let found = format!("{:.1} GiB free for {}", free as f64 / (1u64 << 30) as f64, dir.display());
    checks.push(if free < DISK_LOW_BYTES {
        Check::bad("disk", found, "make room: a node whose disk is full takes nothing new")
    } else {
        Check::ok("disk", found)
    });
}
