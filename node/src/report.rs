//! A node's account of itself: when it is ready, and when an operator asks.

use std::{
    fmt::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
};

use mesh::{
    api::status::{NodeStatus, RecordStatus, RoomStatus},
    name::id::AgentId,
};
use net::PeerStatus;
use protocol::operator::{
    Blamed, CertificateTrouble, Faults, Index, Parted, PartedHow, Peer, Room, Status, Trouble,
    Woken, WokenState,
};
use serde::Serialize;

use crate::{
    certificate, clocks,
    limits::{STATUS_BLAMED_FROM, STATUS_BLAMED_SHOWN, STATUS_ROOMS_SHOWN},
    members, reach,
};

/// A node that is ready: where it is, and how others join it.
#[derive(Clone, Serialize)]
pub struct Ready {
    /// Always.
    pub ready: bool,
    /// 64 hex digits.
    pub node_id: String,
    /// People's name for it.
    pub name: String,
    /// 32 hex digits.
    pub mesh_id: String,
    /// It is a relay: it has no rooms and no agents. Absent: it is none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub relay: bool,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The clients' Unix socket.
    pub socket: Option<PathBuf>,
    /// The clients' TCP address, really bound.
    pub tcp: Option<String>,
    /// The address of HTTP and WebSocket, really bound.
    pub http: Option<String>,
    /// Whether that is over TLS.
    pub https: bool,
    /// Where other nodes connect, as a ticket names it.
    pub listen: Vec<String>,
    /// The invitation: a secret.
    pub ticket: String,
    /// Why nothing that the node writes counts any more, in words. Absent: it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// The disk was full at the start: nothing new is taken until there is room.
    pub disk_full: bool,
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("node_id", &self.node_id)
            .field("tcp", &self.tcp)
            .field("http", &self.http)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

impl Ready {
    /// For people, with the next step. `key_file`: the file with the clients' key; `None`: they
    /// need none.
    #[must_use]
    pub fn summary(&self, key_file: Option<&std::path::Path>) -> String {
        let off = || "off".to_owned();
        let shown = |address: &Option<String>| address.clone().unwrap_or_else(off);
        let socket = self.socket.as_ref().map_or_else(off, |path| path.display().to_string());
        let s = if self.https { "s" } else { "" };
        let http = self.http.as_ref();
        let http = http.map_or_else(off, |at| format!("http{s}://{at}  ws{s}://{at}/ws"));
        let key = key_file.map_or("none is needed".to_owned(), |file| file.display().to_string());
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {name:<10} {value}");
        };
        line("mesh", &self.mesh_id);
        line("data", &self.data_dir.display().to_string());
        if !self.relay {
            line("socket", &socket);
            line("tcp", &shown(&self.tcp));
            line("http", &http);
        }
        line("nodes", &self.listen.join("  "));
        if !self.relay {
            line("key", &key);
        }
        let at = self.tcp.as_ref().map(|at| format!("tcp://{at}"));
        let at =
            at.or_else(|| self.socket.as_ref().map(|path| format!("unix://{}", path.display())));
        let attach = at.map_or_else(String::new, |at| {
            format!(
                "Attach an agent: any ClawChat client, at {at}; or try `clawmesh rooms list`.\n"
            )
        });
        let (name, id) = (&self.name, &self.node_id[..8]);
        let full = if self.disk_full { format!("{DISK_FULL}\n") } else { String::new() };
        if let Some(apart) = &self.apart {
            return format!("Node {name} ({id}) can be read.\n{full}{text}{attach}OUT: {apart}\n");
        }
        let kind = if self.relay { "Relay" } else { "Node" };
        format!(
            "{kind} {name} ({id}) is ready.\n{full}{text}{attach}Add a node: `clawmeshd invite` prints a ticket, \
             for `clawmeshd up --join TICKET` over there.\n",
        )
    }
}

/// Facts that only the daemon knows.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) name: String,
    pub(crate) store_bytes: u64,
    pub(crate) disk_full: bool,
    pub(crate) refused: u64,
    pub(crate) dropped: u64,
    pub(crate) noise: u64,
    pub(crate) peers: Vec<PeerStatus>,
    pub(crate) listening: Vec<SocketAddr>,
    pub(crate) runs_twice: bool,
    pub(crate) hosted: usize,
    pub(crate) waits: u64,
    pub(crate) read_by_all_at: Option<SocketAddr>,
    pub(crate) http: Option<String>,
    pub(crate) certificate: Option<CertificateTrouble>,
    pub(crate) woken: Vec<(AgentId, bridge::Woken)>,
}

/// The answer to `clawmeshd status`.
pub(crate) fn status(status: mesh::api::status::Status, own: Own) -> Status {
    let faults = status.faults;
    let mut blamed: Vec<Blamed> = status
        .blamed
        .into_iter()
        .map(|(node, faults)| Blamed {
            node_id: node.to_string(),
            chain: faults.chain,
            void: faults.void,
        })
        .collect();
    blamed.sort_by_key(|blamed| std::cmp::Reverse(blamed.chain + blamed.void));
    let peers = peers(status.nodes, own.peers);
    let only_through = reach::only_through(&peers, &own.listening);
    Status {
        node_id: status.node.to_string(),
        name: own.name,
        mesh_id: status.mesh.to_string(),
        relay: status.relay,
        agents: status.agents,
        agents_mesh: status.agents_mesh,
        hosted: own.hosted,
        waits: own.waits,
        store_bytes: own.store_bytes,
        disk_full: own.disk_full,
        peers,
        only_through,
        runs_twice: own.runs_twice,
        read_by_all_at: own.read_by_all_at.map(|at| at.to_string()),
        http: own.http,
        certificate: own.certificate,
        woken: own.woken.into_iter().map(woken).collect(),
        rooms: status.rooms.into_iter().map(room).collect(),
        faults: Faults {
            refused: own.refused,
            dropped: own.dropped,
            noise: own.noise,
            chain: faults.chain,
            void: faults.void,
            forks: faults.forks,
            overflow: faults.overflow,
            stray: faults.stray,
        },
        blamed,
        parted: status.parted.map(members::removal),
        forked: status.forked.iter().map(ToString::to_string).collect(),
        index: index(&status.records),
    }
}

pub(crate) fn index(records: &RecordStatus) -> Index {
    let kind = |name: &str| name.strip_prefix("finder.").unwrap_or(name).to_owned();
    let counts = records.of_accounts.iter().filter(|(_, count)| *count > 0);
    Index {
        records: counts.map(|(name, count)| (kind(name), *count)).collect(),
        mail_bytes: records.own_bytes,
        carried_bytes: records.carried_bytes,
        mails_missing: records.missing,
        mails_alone: records.alone,
    }
}

/// The same for people, if there is any of it.
pub(crate) fn index_text(index: &Index) -> Option<String> {
    let count = |kind: &str| index.records.get(kind).copied().unwrap_or_default();
    let [agents, jobs, reviews, mails] = ["profile", "job", "review", "mail"].map(count);
    if agents == 0 {
        return None;
    }
    let mut text = format!(
        "Index of agents: {agents} agents, {jobs} jobs, {reviews} reviews, deleted ones included; {mails} mails, {} of them here, {} carried for others",
        size(index.mail_bytes),
        size(index.carried_bytes)
    );
    if index.mails_alone > 0 {
        let _ = write!(text, "; {} known to be at no other node", index.mails_alone);
    }
    if index.mails_missing > 0 {
        let _ = write!(text, "; {} on their way here", index.mails_missing);
    }
    Some(text)
}

/// The same for people.
pub(crate) fn text(status: &Status) -> String {
    let (name, id, mesh) = (&status.name, &status.node_id[..8], &status.mesh_id);
    let store = size(status.store_bytes);
    let mut text = if status.relay {
        format!("Relay {name} ({id}), mesh {mesh}: no rooms and no agents, store {store}\n")
    } else {
        let (here, all) = (status.agents, status.agents_mesh);
        format!(
            "Node {name} ({id}), mesh {mesh}: {here} agents here, {all} in the mesh, store {store}\n"
        )
    };
    if status.hosted > 0 || status.waits > 0 {
        let _ =
            writeln!(text, "Agents of hosts: {}, calls that wait: {}", status.hosted, status.waits);
    }
    if let Some(index) = index_text(&status.index) {
        let _ = writeln!(text, "{index}");
    }
    if status.disk_full {
        text.push_str(DISK_FULL);
        text.push('\n');
    }
    if let Some(apart) = apart(status) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "OUT: {apart}");
    }
    if status.runs_twice {
        text.push_str(
            "TWIN: another node runs with this one's identity: stop one of the two, or what both write is lost\n",
        );
    }
    if let Some(through) = &status.only_through {
        let _ = writeln!(text, "ALONE SOON: {}", reach::sentence(through));
    }
    text.push_str(&web(status));
    text.push_str(&hosts(&status.woken));
    text.push_str("\nPeers\n");
    let mut line = |line: fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {line}");
    };
    if status.parted.is_none() && status.peers.is_empty() {
        line(format_args!("none: `clawmeshd invite` prints a ticket"));
    }
    for peer in &status.peers {
        line(format_args!("{}", peer_line(peer, &status.peers)));
    }
    if !status.relay {
        text.push_str("\nRooms\n");
    }
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = writeln!(text, "  {line}");
    };
    for room in status.rooms.iter().take(STATUS_ROOMS_SHOWN) {
        line(format_args!("{}", room_line(room, &status.node_id)));
    }
    if let Some(more) = status.rooms.len().checked_sub(STATUS_ROOMS_SHOWN + 1) {
        line(format_args!("and {} more: see --json", more + 1));
    }
    for author in status.forked.iter().filter(|author| **author != status.node_id) {
        line(format_args!("FORKED: node {author} signed two histories; nothing more is taken"));
    }
    let worst =
        status.blamed.iter().filter(|blamed| blamed.chain + blamed.void >= STATUS_BLAMED_FROM);
    for Blamed { node_id, chain, void } in worst.take(STATUS_BLAMED_SHOWN) {
        line(format_args!(
            "BLAMED: node {node_id} signed {void} entries that nobody may sign or understands, and {chain} runs that do not \
             continue its log"
        ));
    }
    text
}

/// The host of an agent, and how far it is with what it was told.
fn woken((agent, woken): (AgentId, bridge::Woken)) -> Woken {
    let (state, told) = match woken {
        bridge::Woken::Nothing => (WokenState::Nothing, None),
        bridge::Woken::Told(times) => (WokenState::Told, Some(times)),
        bridge::Woken::Unreached => (WokenState::Unreached, None),
        bridge::Woken::Unread => (WokenState::Unread, None),
    };
    Woken { agent: agent.to_string(), state, told }
}

/// Hosts for whose agents something waits.
fn hosts(all: &[Woken]) -> String {
    let mut text = String::new();
    for Woken { agent, state, told } in all {
        let agent = members::shown(agent);
        let times = match told.unwrap_or_default() {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let said = match state {
            WokenState::Nothing => continue,
            WokenState::Told => {
                format!(
                    "TOLD: agent {agent} has not fetched its messages yet; its host was told {times}"
                )
            }
            WokenState::Unreached => {
                format!(
                    "UNREACHED: the host of agent {agent} was not told that messages wait; it is tried again"
                )
            }
            WokenState::Unread => format!(
                "UNREAD: agent {agent} fetches no messages, however often its host was told; it is told no more until it does"
            ),
        };
        text += &said;
        text.push('\n');
    }
    text
}

/// Where HTTP and WebSocket are, and whether clients take the certificate.
fn web(status: &Status) -> String {
    let at = status.http.as_ref().map_or_else(String::new, |at| format!("HTTP at {at}\n"));
    let trouble = status.certificate.as_ref().map(certificate::sentence);
    at + &trouble.map_or_else(String::new, |trouble| format!("CERTIFICATE: {trouble}\n"))
}

const DISK_FULL: &str =
    "DISK FULL: nothing new is taken; make room, and this node goes on by itself";

/// Why nothing that this node writes counts any more. `None`: it counts.
pub(crate) fn apart(status: &Status) -> Option<String> {
    let forked = || {
        status.forked.contains(&status.node_id).then(|| {
            "this node has signed two histories, as a node does that was started from a copy of its files: nobody takes \
             what it writes; stop it, and see docs/operating.md, \"When a node has forked\""
                .to_owned()
        })
    };
    status.parted.as_ref().map(removal_line).or_else(forked)
}

/// The removal of this node.
fn removal_line(removal: &Parted) -> String {
    let Parted { how, by, at } = removal;
    let by = members::short(by);
    match how {
        PartedHow::Expelled => {
            format!("this node was expelled from the mesh {at}, says node {by}: {ARCHIVE}")
        }
        PartedHow::Left => format!("this node has left the mesh {at}: {ARCHIVE}"),
        PartedHow::Retired => {
            format!("this node was retired from the mesh {at}, says node {by}: {ARCHIVE}")
        }
    }
}

const ARCHIVE: &str = "it is an archive, to be read only; to be in the mesh again, join with a ticket and another --data-dir";

fn peer_line(peer: &Peer, all: &[Peer]) -> String {
    let who = match (&peer.node_id, &peer.name) {
        (Some(id), Some(name)) => format!("{} ({})", &id[..8], members::shown(name)),
        (Some(id), None) => id[..8].to_owned(),
        (None, _) => "?".to_owned(),
    };
    let how = match (peer.connected, peer.alive, &peer.last_error) {
        (true, ..) => connected(peer, all),
        (false, true, _) => "heard through others".to_owned(),
        (false, false, Some(error)) => format!("gone: {error}"),
        (false, false, None) => "gone".to_owned(),
    };
    let blame = blame(peer);
    let rtt = peer.rtt_ms.map_or_else(String::new, |ms| format!(", {ms:.1} ms"));
    let place = peer.addresses.join(" ");
    let agents = if peer.relay { "a relay".to_owned() } else { format!("{} agents", peer.agents) };
    let (clock, twin) = (clock(peer), twin(peer));
    format!("{who:<24} {how}{rtt}, {agents}, {place}{clock}{twin}{blame}")
}

/// Directly, or through which member and why not directly.
fn connected(peer: &Peer, all: &[Peer]) -> String {
    let since = peer.up_for().map_or_else(String::new, |time| format!(" for {time}"));
    let Some(relay) = peer.carried_by(all) else { return format!("connected{since}") };
    let name = members::shown(&relay);
    let why =
        peer.last_error.as_ref().map_or_else(String::new, |why| format!(" (directly: {why})"));
    format!("connected through {name}{since}{why}")
}

/// A clock that differs, on a line of its own.
fn clock(peer: &Peer) -> String {
    let ahead = peer.clock_ahead_ms.filter(|ms| clocks::differs(*ms));
    ahead.map_or_else(String::new, |ms| {
        format!("\n{:<27}CLOCK: it is {} this node's", "", clocks::words(ms))
    })
}

/// An identity that is used twice, on a line of its own.
fn twin(peer: &Peer) -> String {
    if !peer.runs_twice {
        return String::new();
    }
    format!("\n{:<27}TWIN: two nodes run with its identity; its operator has to stop one", "")
}

/// The faults of a peer, on a line of their own.
fn blame(peer: &Peer) -> String {
    let Some(fault) = peer.fault.as_ref().filter(|_| peer.strikes_ever > 0) else {
        return String::new();
    };
    let refused = peer
        .refused_ms
        .map_or_else(String::new, |ms| format!(", REFUSED for {} s more", ms.div_ceil(1_000)));
    format!("\n{:<27}{} strikes{refused}; the last: {fault}", "", peer.strikes_ever)
}

fn room_line(room: &Room, me: &str) -> String {
    let sequencer = match room.sequencer.as_str() {
        sequencer if sequencer == me => "this node",
        // The home era of a room whose first author begins another one.
        sequencer if sequencer.bytes().all(|digit| digit == b'0') => "nobody yet",
        sequencer => &sequencer[..8],
    };
    let era = if room.era == 0 { String::new() } else { format!(", era {}", room.era) };
    format!(
        "{:<24} tip {}{era}, sequencer {sequencer}, behind {}, undelivered {}, unsent {}, holes {}",
        members::shown(&room.name),
        room.tip,
        room.behind,
        room.undelivered,
        room.unsent,
        room.holes
    )
}

fn room(status: RoomStatus) -> Room {
    Room {
        room_id: status.room.to_uuid(),
        name: status.name,
        public: status.public,
        era: status.era.c(),
        lane: status.era.lane(),
        sequencer: status.sequencer.to_string(),
        tip: status.tip.0,
        undelivered: status.undelivered,
        behind: status.behind,
        unsent: status.unsent,
        holes: status.holes,
    }
}

/// The engine's view of nodes, joined with the network's.
fn peers(nodes: Vec<NodeStatus>, network: Vec<PeerStatus>) -> Vec<Peer> {
    let mut peers: Vec<Peer> = network
        .into_iter()
        .map(|peer| {
            let is_direct = peer.connected && peer.through.is_none();
            Peer {
                node_id: peer.node.map(|id| mesh::name::id::NodeId(id).to_string()),
                connected: peer.connected,
                through: peer.through.map(|id| mesh::name::id::NodeId(id).to_string()),
                up_ms: peer.up_for.map(|up| up.as_millis().try_into().unwrap_or(u64::MAX)),
                addresses: peer.addresses.iter().map(ToString::to_string).collect(),
                rtt_ms: peer.rtt.map(|rtt| rtt.as_secs_f64() * 1_000.0),
                queued_bytes: peer.outbound.bytes,
                strikes: peer.strikes,
                strikes_ever: peer.strikes_ever,
                fault: peer.fault,
                runs_twice: peer.runs_twice,
                refused_ms: peer
                    .refused_for
                    .map(|left| left.as_millis().try_into().unwrap_or(u64::MAX)),
                trouble: peer
                    .last_error
                    .as_ref()
                    .filter(|_| !is_direct)
                    .map(|error| trouble(error.trouble)),
                last_error: peer.last_error.filter(|_| !is_direct).map(|error| error.text),
                ..Peer::default()
            }
        })
        .collect();
    for node in nodes {
        let id = Some(node.node.to_string());
        let place = peers.iter().position(|peer| peer.node_id == id).unwrap_or_else(|| {
            peers.push(Peer { node_id: id, connected: node.connected, ..Peer::default() });
            peers.len() - 1
        });
        let peer = &mut peers[place];
        peer.name = node.name;
        peer.relay = node.relay;
        peer.alive = node.alive;
        peer.heard_ms_ago = node.heard_ms_ago;
        peer.agents = node.agents;
    }
    peers
}

fn trouble(trouble: net::Trouble) -> Trouble {
    match trouble {
        net::Trouble::NameNotFound => Trouble::NameNotFound,
        net::Trouble::Unreachable => Trouble::Unreachable,
        net::Trouble::NotCarried => Trouble::NotCarried,
        net::Trouble::TimedOut => Trouble::TimedOut,
        net::Trouble::ConnectionRefused => Trouble::ConnectionRefused,
        net::Trouble::HungUp => Trouble::HungUp,
        net::Trouble::WrongSecret => Trouble::WrongSecret,
        net::Trouble::OldSecret => Trouble::OldSecret,
        net::Trouble::OtherNode => Trouble::OtherNode,
        net::Trouble::OtherVersion => Trouble::OtherVersion,
        net::Trouble::RefusedHere => Trouble::RefusedHere,
        net::Trouble::Lost => Trouble::Lost,
        net::Trouble::Other => Trouble::Other,
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_for_whose_agents_something_waits_are_named() {
        let all = [
            ("ada", bridge::Woken::Nothing),
            ("bob", bridge::Woken::Told(1)),
            ("cy\x1b", bridge::Woken::Unreached),
            ("dan", bridge::Woken::Unread),
        ];
        let text = hosts(&all.map(|(agent, state)| woken((agent.into(), state))));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[0].starts_with("TOLD: agent bob ") && lines[0].ends_with("told once"),
            "{text}"
        );
        assert!(lines[1].starts_with("UNREACHED: the host of agent cy\\u{1b} "), "{text}");
        assert!(lines[2].starts_with("UNREAD: agent dan "), "{text}");
    }

    #[test]
    fn what_others_are_called_does_not_reach_the_terminal_as_it_is() {
        let name = "evil\x1b[2J\nroom".to_owned();
        let peer =
            Peer { node_id: Some("ab".repeat(32)), name: Some(name.clone()), ..Peer::default() };
        let status = RoomStatus {
            room: mesh::name::id::RoomId([1; 16]),
            name,
            public: true,
            era: mesh::name::number::Era::HOME,
            sequencer: mesh::name::id::NodeId([2; 32]),
            tip: mesh::name::number::Number(0),
            undelivered: 0,
            behind: 0,
            sent: 0,
            unsent: 0,
            holes: 0,
        };
        for line in [peer_line(&peer, &[]), room_line(&room(status), "")] {
            assert!(line.contains("evil\\u{1b}[2J\\nroom"), "{line}");
            assert!(!line.contains(char::is_control), "{line}");
        }
    }
}
