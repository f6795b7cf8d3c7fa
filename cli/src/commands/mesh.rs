//! `clawmesh mesh`.

use protocol::operator::{Peer, Room, Status};

use crate::context::Context;
use crate::format;
use crate::operator::Operator;
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::table;

/// The mesh, as the node of this machine sees it.
#[derive(Debug, clap::Args)]
pub struct Mesh {
    #[command(flatten)]
    operator: Operator,
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Question {
    /// The node, and whether anything needs looking after
    Status,
    /// The other nodes: who is connected, how far, why not
    Peers,
    /// Rooms: who gives their numbers, what is behind
    Rooms,
}

pub(crate) async fn run(cx: &Context, args: Mesh) -> Result<Outcome, Failure> {
    let status = args.operator.status().await?;
    let out = &cx.output;
    match args.question {
        Question::Status => out.show(&status, || about(out, &status))?,
        Question::Peers => out.show(&status.peers, || peers(out, &status.peers))?,
        Question::Rooms => out.show(&status.rooms, || rooms(out, &status))?,
    }
    Ok(Outcome::Done)
}

fn about(out: &Output, status: &Status) -> Vec<String> {
    let Status { node_id, name, mesh_id, agents, agents_mesh, store_bytes, .. } = status;
    let connected = status.peers.iter().filter(|peer| peer.connected).count();
    let nodes = status.peers.iter().filter(|peer| peer.node_id.is_some()).count();
    let sum = |of: fn(&Room) -> u64| status.rooms.iter().map(of).sum::<u64>();
    let mut lines = vec![
        format!("node    {} ({})", out.strong(&format::name(name)), short(node_id)),
        format!("mesh    {mesh_id}: {nodes} other nodes, {connected} connected"),
        format!("agents  {agents} here, {agents_mesh} in the mesh"),
        format!("rooms   {}", status.rooms.len()),
        format!("store   {:.1} MiB", *store_bytes as f64 / 1_048_576.0),
        format!(
            "backlog {} without number, {} to fetch, {} at no other node",
            sum(|room| room.undelivered as u64),
            sum(|room| room.behind),
            sum(|room| room.unsent),
        ),
    ];
    if status.disk_full {
        lines.push("disk    full: the node takes nothing new until there is room".to_owned());
    }
    let holes = sum(|room| room.holes);
    if holes > 0 {
        lines.push(format!("holes   {holes}: numbers whose content is with no node"));
    }
    let forked = status.forked.iter();
    lines.extend(forked.map(|node| {
        format!(
            "FORKED  node {} has signed two histories: its operator should stop it",
            short(node)
        )
    }));
    lines
}

fn peers(out: &Output, peers: &[Peer]) -> Vec<String> {
    if peers.is_empty() {
        return vec!["no other nodes: `clawmeshd invite` prints a ticket".to_owned()];
    }
    let row = |peer: &Peer| {
        vec![
            peer.name.clone().unwrap_or_default(),
            peer.node_id.as_deref().map(short).unwrap_or_default(),
            link(peer),
            peer.rtt_ms
                .filter(|_| peer.connected)
                .map(|ms| format!("{ms:.1} ms"))
                .unwrap_or_default(),
            peer.agents.to_string(),
            format!("{} KiB", peer.queued_bytes / 1024),
            peer.addresses.join(" "),
            peer.last_error.clone().unwrap_or_default(),
        ]
    };
    let heads = ["name", "node", "link", "round trip", "agents", "queued", "at", "why not"];
    table::lines(out, &heads, peers.iter().map(row).collect())
}

/// How a node is reached.
pub(crate) fn link(peer: &Peer) -> String {
    peer.link()
}

fn rooms(out: &Output, status: &Status) -> Vec<String> {
    let row = |room: &Room| {
        vec![
            room.name.clone(),
            room.room_id.clone(),
            format::seq(out, room.tip),
            if room.era == 0 { "home".to_owned() } else { room.era.to_string() },
            node_name(status, &room.sequencer),
            room.undelivered.to_string(),
            room.behind.to_string(),
            room.unsent.to_string(),
            room.holes.to_string(),
        ]
    };
    let heads =
        ["name", "id", "tip", "era", "sequencer", "unnumbered", "behind", "unsent", "holes"];
    table::lines(out, &heads, status.rooms.iter().map(row).collect())
}

/// A node's name for people.
pub(crate) fn node_name(status: &Status, node: &str) -> String {
    if status.node_id == node {
        return "this node".to_owned();
    }
    let known = status.peers.iter().find(|peer| peer.node_id.as_deref() == Some(node));
    known.and_then(|peer| peer.name.clone()).unwrap_or_else(|| short(node))
}

/// The beginning of an id.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}
