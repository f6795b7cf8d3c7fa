//! Checks of a node, out of its status: `clawmesh doctor` prints them, and the node's page shows them.

use serde::Serialize;

use super::{PartedHow, Peer, Room, Status, Trouble};

/// Below it a node takes nothing new soon.
const DISK_LOW_BYTES: u64 = 1 << 30;
/// Nodes order what is said at the same time by their clocks, and agents compare timestamps.
pub const CLOCK_OFF_MS: u64 = 2_000;

/// One check and its result.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The part of the node.
    #[serde(rename = "what")]
    pub subject: &'static str,
    /// How it is.
    pub state: Finding,
    /// What was found.
    pub found: String,
    /// The way to mend it.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It works.
    Ok,
    /// It deserves a look.
    Note,
    /// It does not work.
    Bad,
}

impl Check {
    /// It works.
    #[must_use]
    pub fn ok(subject: &'static str, found: impl Into<String>) -> Check {
        Check { subject, state: Finding::Ok, found: found.into(), advice: None }
    }

    /// It deserves a look.
    #[must_use]
    pub fn note(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check { subject, state: Finding::Note, found: found.into(), advice: Some(advice.into()) }
    }

    /// It does not work.
    #[must_use]
    pub fn bad(
        subject: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check { subject, state: Finding::Bad, found: found.into(), advice: Some(advice.into()) }
    }
}

/// All checks of a node and its mesh that follow from its status.
#[must_use]
pub fn of_status(status: &Status) -> Vec<Check> {
    let mut checks = Vec::new();
    if status.disk_full {
        let advice = "make room: the node goes on by itself, and until then others can be used";
        let found = "it is full: the node takes nothing new";
        checks.push(Check::bad("disk", found, advice));
    }
    if let Some(at) = &status.read_by_all_at {
        let found = format!("everybody who reaches {at} reads public rooms without a key");
        let advice = "if that is not meant, start the node without --http-read open and --no-auth";
        checks.push(Check::note("http", found, advice));
    }
    if let Some(trouble) = &status.certificate {
        let check = if trouble.refused { Check::bad } else { Check::note };
        checks.push(check("http", trouble.found.clone(), trouble.advice.clone()));
    }
    mesh(status, &mut checks);
    checks
}

/// The room on the disk of the node's files.
#[must_use]
pub fn of_disk(free_bytes: u64, dir: &str) -> Check {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let found = format!("{:.1} GiB free for {dir}", free_bytes as f64 / (1u64 << 30) as f64);
    if free_bytes < DISK_LOW_BYTES {
        Check::bad("disk", found, "make room: a node whose disk is full takes nothing new")
    } else {
        Check::ok("disk", found)
    }
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
    relays(status, checks);
    for peer in &peers {
        if let Some(relay) = peer.carried_by(&status.peers) {
            let since = peer.up_for().map_or_else(String::new, |time| format!(" for {time}"));
            let rtt = peer.rtt_ms.map_or_else(String::new, |ms| format!(", {ms:.1} ms"));
            let why = peer.last_error.as_ref();
            let why = why.map_or_else(String::new, |why| format!("; not directly: {why}"));
            let found = format!("{} is connected through {relay}{since}{rtt}{why}", peer.shown());
            checks.push(Check::ok("peers", found));
        }
    }
    for peer in peers.iter().filter(|peer| !peer.connected) {
        let name = peer.shown();
        let why = peer.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let advice = advice(peer.trouble);
        let found = format!("{name} is {}{why}", peer.link());
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
        let name = peer.shown();
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
    if !status.relay {
        let keepers = peers.iter().filter(|peer| peer.connected && !peer.relay).count();
        rooms(status, keepers, checks);
    }
}

fn rooms(status: &Status, keepers: usize, checks: &mut Vec<Check>) {
    let sum = |of: fn(&Room) -> u64| status.rooms.iter().map(of).sum::<u64>();
    let (behind, unsent) = (sum(|room| room.behind), sum(|room| room.unsent));
    let unnumbered = sum(|room| room.undelivered as u64);
    if behind + unsent + unnumbered == 0 {
        checks.push(Check::ok("rooms", format!("{}, nothing is behind", status.rooms.len())));
    } else {
        let found = format!(
            "{unnumbered} entries without number, {behind} to fetch, {unsent} at no other node"
        );
        let advice = if keepers == 0 {
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

/// A relay, and a node that is connected to such alone.
fn relays(status: &Status, checks: &mut Vec<Check>) {
    let mut up = status.peers.iter().filter(|peer| peer.connected).peekable();
    if status.relay {
        let found = "this node is a relay: it carries links, and has no rooms and no agents";
        checks.push(Check::ok("relay", found));
    } else if up.peek().is_some() && up.all(|peer| peer.relay) {
        let found =
            "only relays are connected, which keep no rooms: what is said here is here alone";
        let advice =
            "wait for another node, or see with `clawmeshd members` which one should be there";
        checks.push(Check::note("peers", found, advice));
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
        let name = peer.shown();
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
#[must_use]
pub fn advice(trouble: Option<Trouble>) -> &'static str {
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
