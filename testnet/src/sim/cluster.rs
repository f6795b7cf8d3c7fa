//! The nodes of a world, their network and their time: everything that its parts share. It knows no agents.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    Config, Input, MeshSecret,
    api::command::{CallId, Command},
    name::id::{KeyPrint, LocalRef, NodeId, RoomId},
    wire::{message::Message, run::Verified, signatures::SignedLog},
};

use super::{
    coverage::{Coverage, Happening},
    dice::Dice,
    network::{Network, Way},
    node::Node,
    plan::{Correspondence, Plan, REQUESTS_KEPT},
    promises::{Broken, Entry, broken},
    retention::{self, some_retention},
    rooms::Rooms,
    signing::AnyJudge,
    timeline::{Event, Timeline},
};

/// How long a lost connection takes to be noticed, at most.
const NOTICE_MS_MAX: u64 = 1_500;
/// How many ways a connection takes to be made: TCP, the pre-shared key, Noise, multiplexing, streams, and the frames
/// that name the nodes.
const SETUP_WAYS: u64 = 12;
/// Messages under way to a node that is shut out still get there: it is told that it is out.
const SHUT_OUT_AFTER: Duration = Duration::from_millis(500);
/// How much of each message stands in the trace. Characters.
const SHOWN: usize = 2_000;

/// Messages that are not signs of life.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// How many one node sent another one.
    pub(super) sent: BTreeMap<(usize, usize), usize>,
    /// They stand in the trace.
    pub(super) traced: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) plan: Plan,
    pub(super) dice: Dice,
    pub(super) timeline: Timeline,
    pub(super) nodes: Vec<Node>,
    /// When each node next looks at its inbox by itself.
    wakes: Vec<Option<Duration>>,
    pub(super) network: Network,
    /// Connections as both ends have noticed them.
    connected: BTreeSet<(usize, usize)>,
    pub(super) traffic: Traffic,
    pub(super) secret: MeshSecret,
    /// Of all keys that anybody signs with.
    seeds: Vec<[u8; 32]>,
    pub(super) judge: AnyJudge,
    pub(super) rooms: Rooms,
    pub(super) coverage: Coverage,
    /// Nodes whose promises are not judged: their disks were tampered with, or they lie.
    pub(super) exempt: BTreeSet<NodeId>,
    /// Keys that agents have shown, and the nodes at which they did.
    pub(super) shown: BTreeSet<(NodeId, KeyPrint)>,
    /// Agents do nothing by themselves, and no fault happens any more.
    pub(super) quiet: bool,
    trace: bool,
    calls: u64,
    texts: u64,
}

impl Cluster {
    /// Nodes that were not started yet.
    pub(super) fn new(seed: u64, plan: Plan, trace: bool) -> Cluster {
        let mut dice = Dice::new(seed);
        let seeds: Vec<[u8; 32]> = (0..plan.nodes).map(|_| dice.seed()).collect();
        let founder = mesh::Identity::from_seed(&seeds[0]).node_id();
        let secret = MeshSecret::new([7; 32], founder);
        let node = |(i, seed): (usize, &[u8; 32])| some_node(i, seed, &plan, &secret, &mut dice);
        let nodes = seeds.iter().enumerate().map(node).collect();
        let mut network = Network::new(plan.nodes, plan.gossip);
        network.weather = plan.weather;
        Cluster {
            wakes: vec![None; plan.nodes],
            judge: plan.signing.judge(&seeds),
            plan,
            dice,
            timeline: Timeline::default(),
            nodes,
            network,
            connected: BTreeSet::new(),
            traffic: Traffic::default(),
            secret,
            seeds,
            rooms: Rooms::default(),
            coverage: Coverage::default(),
            exempt: BTreeSet::new(),
            shown: BTreeSet::new(),
            quiet: false,
            trace,
            calls: 0,
            texts: 0,
        }
    }

    /// Signatures of these keys are good, too.
    pub(super) fn believe(&mut self, seeds: impl Iterator<Item = [u8; 32]>) {
        self.seeds.extend(seeds);
        self.judge = self.plan.signing.judge(&self.seeds);
    }

    /// A message as its receivers take it: decoded, and verified.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Message<Verified>> {
        let message = Message::decode(bytes).ok()?;
        message.verify_by(&*self.judge, self.secret.mesh_id()).ok()
    }

    // Time.

    pub(super) fn now(&self) -> Duration {
        self.timeline.now()
    }

    pub(super) fn at(&mut self, when: Duration, event: Event) {
        self.timeline.at(when, event);
    }

    pub(super) fn after(&mut self, wait: Duration, event: Event) {
        self.timeline.after(wait, event);
    }

    /// So long ago, by clocks that are right. Unix milliseconds.
    pub(super) fn wall_ms(&self, ago: Duration) -> u64 {
        let ago_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        self.nodes[0].now(self.now()).wall_ms.saturating_sub(ago_ms)
    }

    // The trace, and names.

    pub(super) fn is_traced(&self) -> bool {
        self.trace
    }

    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            #[expect(clippy::print_stderr, reason = "a trace is asked for on the command line")]
            {
                eprintln!("{:>9.3} {}", self.now().as_secs_f64(), what());
            }
        }
    }

    pub(super) fn call(&mut self) -> CallId {
        self.calls += 1;
        CallId(self.calls)
    }

    /// A number for a text that nobody has written before.
    pub(super) fn text(&mut self) -> u64 {
        self.texts += 1;
        self.texts
    }

    pub(super) fn lobby(&self) -> RoomId {
        RoomId::lobby(self.secret.mesh_id())
    }

    /// The logs of a node, as keys sign for them.
    pub(super) fn log_of(&self, node: usize) -> SignedLog {
        SignedLog { mesh: self.secret.mesh_id(), node: self.nodes[node].id }
    }

    pub(super) fn directory(&self) -> RoomId {
        RoomId::directory(self.secret.mesh_id())
    }

    // Nodes.

    pub(super) fn index(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    /// Puts an input into a node's inbox; it is handled a little later, with others that have come.
    pub(super) fn give(&mut self, node: usize, input: Input) {
        let now = self.now();
        if !self.nodes[node].hears(&input, now) {
            return self.coverage.count(Happening::Noise);
        }
        if let Input::Command { command: Command::Attach(attach), .. } = &input {
            self.shown.insert((self.nodes[node].id, attach.key));
        }
        self.nodes[node].push(input);
        let wait = self.dice.within(20, 400);
        self.wake(node, now + Duration::from_micros(wait));
    }

    pub(super) fn wake(&mut self, node: usize, when: Duration) {
        let when = when.max(self.nodes[node].is_idle_until());
        if self.wakes[node].is_none_or(|at| at > when || at < self.now()) {
            self.wakes[node] = Some(when);
            self.at(when, Event::Wake { node });
        }
    }

    /// A node looks at its inbox now, if it is time.
    pub(super) fn has_woken(&mut self, node: usize) {
        self.wakes[node].take_if(|at| *at <= self.timeline.now());
    }

    /// A node starts on what its disk has, and looks at it at once.
    pub(super) fn begin_life(&mut self, node: usize) {
        self.wakes[node] = None;
        self.wake(node, self.now());
    }

    /// The entry of a reference that only its node understands.
    pub(super) fn entry(&self, node: usize, room: RoomId, at: LocalRef) -> Result<Entry, Broken> {
        match self.nodes[node].log(room, at.log) {
            Some(log) => Ok((log, at.seq)),
            None => {
                broken("store", format!("node{node} writes of a log it has no record of: {at:?}"))
            }
        }
    }

    /// Whether all disks are as their nodes left them: no log is forked.
    pub(super) fn is_honest(&self) -> bool {
        self.exempt.is_empty()
    }

    pub(super) fn is_exempt(&self, node: usize) -> bool {
        self.exempt.contains(&self.nodes[node].id)
    }

    /// Whether a node that is not judged wrote an entry.
    pub(super) fn is_a_lie(&self, entry: Entry) -> bool {
        self.exempt.contains(&entry.0.author)
    }

    /// Nodes that may have a room.
    pub(super) fn nodes_with(&self, room: RoomId) -> Vec<NodeId> {
        let all = self.nodes.iter().map(|node| node.id);
        all.filter(|node| self.rooms.is_for(room, *node)).collect()
    }

    // Connections.

    pub(super) fn peers(&self, node: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|peer| self.are_connected(node, *peer)).collect()
    }

    pub(super) fn are_connected(&self, a: usize, b: usize) -> bool {
        self.connected.contains(&pair(a, b))
    }

    /// One link breaks, or is there again.
    pub(super) fn link(&mut self, a: usize, b: usize, broken: bool) {
        self.network.link(a, b, broken);
        self.notice_all();
    }

    pub(super) fn isolate(&mut self, node: usize) {
        let groups: Vec<usize> = (0..self.nodes.len()).map(|i| usize::from(i == node)).collect();
        self.network.split(&groups);
        self.notice_all();
    }

    pub(super) fn notice_all(&mut self) {
        for a in 0..self.nodes.len() {
            for b in a + 1..self.nodes.len() {
                let wait = self.dice.within(1, NOTICE_MS_MAX);
                self.after(Duration::from_millis(wait), Event::Notice { a, b });
            }
        }
    }

    /// A node that has started connects with all others.
    pub(super) fn connect(&mut self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let (a, b) = pair(node, other);
            // A connection is some round trips.
            let far = SETUP_WAYS * self.network.weather.delay_ms;
            let wait = self.dice.within(1, 300) + far;
            self.after(Duration::from_millis(wait), Event::Notice { a, b });
        }
    }

    /// The connections of a node that is gone break at once.
    pub(super) fn disconnect(&mut self, node: usize) {
        for other in 0..self.nodes.len() {
            if other != node && self.connected.remove(&pair(node, other)) {
                let gone = self.nodes[node].id;
                self.give(other, Input::PeerDown(gone));
            }
        }
    }

    /// Engines take nothing from nodes that they shut out; the network closes the connection where a
    /// parting was planned. Otherwise all can connect here, whichever secret they have.
    pub(super) fn shut_out(&mut self, node: usize, out: NodeId) {
        if self.plan.parting.is_some()
            && let Some(out) = self.index(out)
        {
            self.after(SHUT_OUT_AFTER, Event::Shut { a: node, b: out });
        }
    }

    pub(super) fn shut(&mut self, a: usize, b: usize) {
        self.network.shut(a, b);
        let (a, b) = pair(a, b);
        self.notice(a, b);
    }

    pub(super) fn notice(&mut self, a: usize, b: usize) {
        let up = self.nodes[a].running.is_some() && self.nodes[b].running.is_some();
        let connects = up && self.network.connects(a, b);
        if connects == self.connected.contains(&(a, b)) {
            return;
        }
        let (id_a, id_b) = (self.nodes[a].id, self.nodes[b].id);
        if connects {
            self.connected.insert((a, b));
            self.give(a, Input::PeerUp(id_b));
            self.give(b, Input::PeerUp(id_a));
        } else {
            self.connected.remove(&(a, b));
            self.give(a, Input::PeerDown(id_b));
            self.give(b, Input::PeerDown(id_a));
        }
    }

    // Messages.

    /// Bytes of a message go to nodes, and arrive as the network lets them.
    pub(super) fn transmit(&mut self, from: usize, to: &[usize], way: Way, bytes: &[u8]) {
        let message = self.read(bytes).expect("messages of nodes are sealed and can be read");
        for to in to {
            for wait in self.network.fate(&mut self.dice, &mut self.coverage, way) {
                let message = Box::new(message.clone());
                self.after(wait, Event::Arrive { to: *to, from, message });
            }
        }
    }

    /// Counts a message that is no sign of life.
    pub(super) fn count_sent(&mut self, from: usize, to: &[usize], message: &Message) {
        if matches!(message, Message::Beacon(_)) {
            return;
        }
        if self.traffic.traced {
            let text = format!("{message:?}");
            self.say(|| format!("node{from} sends {to:?} {text:.SHOWN$}"));
        }
        for to in to {
            *self.traffic.sent.entry((from, *to)).or_default() += 1;
        }
    }
}

fn some_node(i: usize, seed: &[u8; 32], plan: &Plan, secret: &MeshSecret, dice: &mut Dice) -> Node {
    let mut config = Config::new(secret.mesh_id(), secret.founder());
    config.name = format!("node{i}");
    config.seed = dice.draw();
    config.era_capacity = plan.era_capacity;
    if let Some(budgets) = plan.budgets.get(i) {
        config.budgets = *budgets;
    }
    if plan.correspondence == Some(Correspondence::Inboxes) {
        config.request_ttl = REQUESTS_KEPT;
    }
    if plan.retention {
        config.retention = some_retention(dice);
        config.retention_min = retention::MIN;
    }
    Node::new(plan.signing, seed, config, dice.draw())
}

pub(super) fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}
