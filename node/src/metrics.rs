//! `/metrics`: how the node is, in numbers, for Prometheus. Counts only: no name of a room, agent
//! or key is in it, and no label has more values than this page has lines. The meaning of each:
//! `docs/operating.md`.

pub(crate) mod meters;
pub(crate) mod process;
pub(crate) mod text;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    time::Instant,
};

use bridge::Transport;
use mesh::api::{
    command::{Command, Outcome},
    status::{RecordStatus, Status},
};
use net::Net;
use store::Reader;
use tokio::{sync::oneshot, time::timeout};

use crate::{
    clocks::Clocks,
    limits::{METRICS_STATUS_EVERY, METRICS_STATUS_WITHIN},
    queue::{Asker, Queue},
};
use meters::Meters;
use text::Page;

/// The sources of the page.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) meters: Arc<Meters>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) net: Net,
    pub(crate) reader: Reader,
    pub(crate) clocks: Arc<Clocks>,
    /// Not the bridge itself: that has this.
    pub(crate) counters: Arc<bridge::Counters>,
    pub(crate) counts: Counts,
    pub(crate) started: Instant,
    /// The engine's last answer, and when it came.
    pub(crate) status: Mutex<Option<(Instant, Arc<Status>)>>,
}

/// Counts of dialects.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Of ClawChat's clients.
    pub(crate) refusals: Arc<clawchat::Refusals>,
    /// Of tools. `None`: there are none.
    pub(crate) calls: Option<Arc<mcp::Calls>>,
    /// Of the index of agents. `None`: it has no pages here.
    pub(crate) finder: Option<Arc<clawfinder::Requests>>,
}

impl Sources {
    /// The page.
    pub(crate) async fn write(&self) -> String {
        let mut page = Page::default();
        self.node(&mut page);
        self.clients(&mut page);
        self.tools(&mut page);
        self.finder(&mut page);
        self.commits(&mut page);
        self.peers(&mut page);
        let status = self.status().await;
        page.gauge("clawmesh_engine_up", "1 if the engine answers in time.", status.is_some());
        if let Some(status) = status {
            of_mesh(&mut page, &status);
        }
        page.text()
    }

    /// The engine's own view, asked for at most every few seconds, however many ask: with very many
    /// rooms it is work. `None`: it does not answer in time.
    async fn status(&self) -> Option<Arc<Status>> {
        let kept = self.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, status)) = kept.filter(|(at, _)| at.elapsed() < METRICS_STATUS_EVERY) {
            return Some(status);
        }
        let (asker, answer) = oneshot::channel();
        self.queue.push_command(Command::Status, Asker::Operator(asker));
        let answer = timeout(METRICS_STATUS_WITHIN, answer).await;
        let Ok(Ok(Ok(Outcome::Status(status)))) = answer else { return None };
        let status = Arc::new(status);
        let kept = Some((Instant::now(), status.clone()));
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Some(status)
    }

    fn node(&self, page: &mut Page) {
        let version = env!("CARGO_PKG_VERSION");
        page.family("clawmesh_build_info", "gauge", "1; which version runs.");
        page.labelled(&[("version", version)], 1_u64);
        let uptime = self.started.elapsed().as_secs_f64();
        page.gauge("clawmesh_uptime_seconds", "Since the start.", uptime);
        page.gauge("clawmesh_store_bytes", "Size of the store's file.", self.reader.size_bytes());
        let full = self.meters.disk_full.load(Relaxed);
        page.gauge("clawmesh_disk_full", "1 while the disk is full: nothing new is taken.", full);
        process::write(page);
    }

    fn clients(&self, page: &mut Page) {
        let counters = &self.counters;
        page.family("clawmesh_connections", "gauge", "Connections of agents that are open.");
        for transport in Transport::ALL {
            let open = counters.connections(transport).0;
            page.labelled(&[("transport", transport.as_str())], open);
        }
        page.family("clawmesh_connections_opened_total", "counter", "Connections ever opened.");
        for transport in Transport::ALL {
            let opened = counters.connections(transport).1;
            page.labelled(&[("transport", transport.as_str())], opened);
        }
        let away = "Connections turned away because there were as many as there may be.";
        page.counter("clawmesh_connections_refused_total", away, counters.turned_away());
        page.family(
            "clawmesh_client_refusals_total",
            "counter",
            "Requests of agents that were refused, by ClawChat's code.",
        );
        for (code, count) in self.counts.refusals.by_code() {
            page.labelled(&[("code", code.as_str())], count);
        }
        let [delivered, retried, failed] = counters.webhooks();
        let name = "clawmesh_webhook_deliveries_total";
        page.counter(name, "Messages that webhooks took.", delivered);
        let name = "clawmesh_webhook_retries_total";
        page.counter(name, "Tries that failed and are made again.", retried);
        let name = "clawmesh_webhook_failures_total";
        page.counter(name, "Webhooks given up until somebody enables them.", failed);
        let meters = &self.meters;
        let accepted = "Messages of agents of this node that were answered ok.";
        page.counter("clawmesh_messages_accepted_total", accepted, meters.accepted.load(Relaxed));
        let delivered = "Messages of any node that were delivered here.";
        page.counter(
            "clawmesh_messages_delivered_total",
            delivered,
            meters.delivered.load(Relaxed),
        );
    }

    /// Tools of agent hosts.
    fn tools(&self, page: &mut Page) {
        let Some(calls) = &self.counts.calls else { return };
        let help = "Calls of tools by agent hosts, by tool and end.";
        page.family("clawmesh_tool_calls_total", "counter", help);
        for ((tool, end), count) in calls.counts() {
            page.labelled(&[("tool", tool), ("end", end)], count);
        }
        page.gauge("clawmesh_tool_waits", "Calls of tools that wait for something.", calls.waits());
    }

    /// The pages of the index of agents.
    fn finder(&self, page: &mut Page) {
        let Some(requests) = &self.counts.finder else { return };
        let help = "Requests to the index of agents, by status.";
        page.family("clawmesh_finder_requests_total", "counter", help);
        for (status, count) in requests.by_status() {
            page.labelled(&[("status", &status.to_string())], count);
        }
        let help = "Steps of negotiations that were refused.";
        page.counter("clawmesh_finder_refused_steps_total", help, requests.refused_steps());
    }

    fn commits(&self, page: &mut Page) {
        let help = "How long a commit took, its sync included.";
        page.histogram("clawmesh_commit_duration_seconds", help, &self.meters.commit_seconds);
        let help = "How long messages of agents of this node waited for ok.";
        page.histogram("clawmesh_ok_duration_seconds", help, &self.meters.ok_seconds);
        let help = "Inputs answered by one commit.";
        page.histogram("clawmesh_commit_inputs", help, &self.meters.commit_inputs);
        let rows = self.meters.rows.load(Relaxed);
        page.counter("clawmesh_commit_rows_total", "Rows written by commits.", rows);
        let (commands, peers) = self.queue.lengths();
        page.family("clawmesh_queue_length", "gauge", "What waits for the engine.");
        page.labelled(&[("from", "clients")], commands.0);
        page.labelled(&[("from", "peers")], peers.0);
        page.family("clawmesh_queue_bytes", "gauge", "Bytes of what waits for the engine.");
        page.labelled(&[("from", "clients")], commands.1);
        page.labelled(&[("from", "peers")], peers.1);
    }

    fn peers(&self, page: &mut Page) {
        let peers = self.net.peers();
        let connected = peers.iter().filter(|peer| peer.connected).count();
        page.gauge("clawmesh_peers_connected", "Nodes that this one has a link to.", connected);
        let differ = self.clocks.differing(Instant::now()).len();
        let help = "Nodes whose clocks differ from this one's by more than 2 s.";
        page.gauge("clawmesh_clocks_differ", help, differ);
        let refused = peers.iter().filter(|peer| peer.refused_for.is_some()).count();
        let help = "Nodes refused for a while because of what they did.";
        page.gauge("clawmesh_peers_refused", help, refused);
        let strikes: u64 = peers.iter().map(|peer| peer.strikes_ever).sum();
        let help =
            "Things that nodes did that no correct node does; eight in a minute get one refused.";
        page.gauge("clawmesh_peer_strikes", help, strikes);
        let queued: usize = peers.iter().map(|peer| peer.outbound.bytes).sum();
        page.gauge("clawmesh_peer_queued_bytes", "What waits to be sent to nodes.", queued);
        let slowest = peers.iter().filter_map(|peer| peer.rtt).max().unwrap_or_default();
        let help = "The longest round trip among the last pings; 0 without peers.";
        page.gauge("clawmesh_peer_round_trip_seconds_max", help, slowest.as_secs_f64());
        for (name, help, traffic) in [
            (
                "clawmesh_peer_received_bytes_total",
                "Bytes of messages from nodes, each gossip message once.",
                &self.meters.received,
            ),
            (
                "clawmesh_peer_sent_bytes_total",
                "Bytes of messages to nodes; of gossip, what this node says itself.",
                &self.meters.sent,
            ),
        ] {
            page.family(name, "counter", help);
            page.labelled(&[("by", "frame")], traffic.frames.load(Relaxed));
            page.labelled(&[("by", "gossip")], traffic.gossip.load(Relaxed));
        }
        let help = "Gossip dropped because too much waited for the engine; it is asked for.";
        let dropped = self.meters.kept_back.dropped.load(Relaxed);
        page.counter("clawmesh_peer_messages_dropped_total", help, dropped);
        let help = "Questions of nodes that ask more than is answered.";
        let unheard = self.meters.kept_back.unheard.load(Relaxed);
        page.counter("clawmesh_peer_questions_unheard_total", help, unheard);
        let help = "Messages with entries of nodes that write much without effect, passed over; they are asked for.";
        let noise = self.meters.kept_back.noise.load(Relaxed);
        page.counter("clawmesh_peer_messages_noise_total", help, noise);
        let help = "Messages of nodes that could not be read, or whose seals are wrong.";
        let refused = self.meters.kept_back.refused.load(Relaxed);
        page.counter("clawmesh_peer_messages_refused_total", help, refused);
        let help = "Messages of nodes of a later version that say what this one does not know.";
        let newer = self.meters.kept_back.newer.load(Relaxed);
        page.counter("clawmesh_peer_messages_newer_total", help, newer);
        let help = "Eras that this node opened: it took a room over, or one was full.";
        let opened = self.meters.eras_opened.load(Relaxed);
        page.counter("clawmesh_eras_opened_total", help, opened);
        let help = "Numbers left empty because nobody had the message.";
        page.counter("clawmesh_holes_total", help, self.meters.holes.load(Relaxed));
    }
}

/// Records of accounts, and the texts that travel apart from them.
fn of_records(page: &mut Page, records: &RecordStatus) {
    let help = "Records of accounts that this node has, deleted ones included.";
    page.family("clawmesh_finder_records", "gauge", help);
    for (name, count) in &records.of_accounts {
        let kind = name.strip_prefix("finder.").unwrap_or(name);
        page.labelled(&[("kind", kind)], *count);
    }
    let help = "Bytes of mail that are here.";
    page.family("clawmesh_finder_mail_bytes", "gauge", help);
    page.labelled(&[("whose", "own")], records.own_bytes);
    page.labelled(&[("whose", "carried")], records.carried_bytes);
    let help = "Mails whose text is to be here, and is not yet.";
    page.gauge("clawmesh_finder_mail_missing", help, records.missing);
    let help = "Mails whose text is here, and of which no other node has said that it has it.";
    page.gauge("clawmesh_finder_mail_alone", help, records.alone);
    let help = "Bytes of sealed rooms that are kept for nodes that are away.";
    page.gauge("clawmesh_carried_bytes", help, records.rooms_carried_bytes);
    let help = "Sealed rooms of which other nodes are not known to have all.";
    page.gauge("clawmesh_owed_rooms", help, records.rooms_owed);
    let help = "Files of such rooms that no member had room to carry.";
    page.gauge("clawmesh_owed_files_left_out", help, records.files_left_out);
}

fn of_mesh(page: &mut Page, status: &Status) {
    page.family("clawmesh_agents", "gauge", "Agents that are attached.");
    page.labelled(&[("at", "node")], status.agents);
    page.labelled(&[("at", "mesh")], status.agents_mesh);
    let alive = status.nodes.iter().filter(|node| node.alive).count();
    let help = "Nodes of the mesh besides this one.";
    page.family("clawmesh_nodes", "gauge", help);
    page.labelled(&[("state", "alive")], alive);
    page.labelled(&[("state", "gone")], status.nodes.len() - alive);
    let rooms = &status.rooms;
    let sum =
        |of: &dyn Fn(&mesh::api::status::RoomStatus) -> u64| rooms.iter().map(of).sum::<u64>();
    page.gauge("clawmesh_rooms", "Rooms that this node has.", rooms.len());
    let numbered = rooms.iter().filter(|room| room.sequencer == status.node).count();
    page.gauge("clawmesh_rooms_numbered", "Rooms that this node gives the numbers of.", numbered);
    let help = "Entries of this node that no other is known to have.";
    page.gauge("clawmesh_unsent_entries", help, sum(&|room| room.unsent));
    let help = "Entries that connected nodes have and this one has not.";
    page.gauge("clawmesh_behind_entries", help, sum(&|room| room.behind));
    let help = "Entries that are here and were not delivered.";
    page.gauge("clawmesh_undelivered_entries", help, sum(&|room| room.undelivered as u64));
    let help = "Nodes that have signed two histories.";
    page.gauge("clawmesh_forked_nodes", help, status.forked.len());
    of_records(page, &status.records);
    let faults = status.faults;
    let help = "What nodes sent that was well signed and made no sense.";
    page.family("clawmesh_peer_faults_total", "counter", help);
    for (kind, count) in [
        ("chain", faults.chain),
        ("void", faults.void),
        ("forks", faults.forks),
        ("overflow", faults.overflow),
        ("stray", faults.stray),
    ] {
        page.labelled(&[("kind", kind)], count);
    }
}
