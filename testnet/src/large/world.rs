//! A mesh in virtual time: one queue of events, in slots.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    rc::Rc,
    time::Duration,
};

use mesh::{
    Alarm, Effect, Input, MeshSecret,
    api::{
        command::{CallId, Command, Outcome, Refused, Registration},
        event::RoomEvent,
    },
    limits::{BEACON_EVERY, BUCKETS, WANT_REPLY_BYTES},
    name::id::{LogId, MessageId, NodeId, RoomId},
    order::pulse::Beat,
    wire::{
        message::{Message, Signed, Span},
        run::{Run, Verified},
    },
};

use super::{
    node::{Node, Waiting},
    overlay::{self, Links},
    setting::Setting,
    slot::{Slot, slots},
    spoken::Spoken,
    tally::{Alarms, Tally},
};
use crate::sim::dice::Dice;

/// From a question or a message to an engine to its turn.
const QUEUED: Slot = 2;
/// The same of beacons, which change nothing at once: they are handled some together.
const BEACON_QUEUED: Slot = 100;
/// A commit: docs/performance.md has measured it.
const COMMIT: Slot = 5;
/// All nodes are started within this.
pub(super) const STARTED_WITHIN: Duration = Duration::from_secs(2);
/// From when both ends are there to when they are connected: at most.
const LINKED_WITHIN: Duration = Duration::from_millis(300);
/// `duplicate_cache_time` of gossipsub: the same message is not passed on again.
const SEEN_FOR: Duration = Duration::from_secs(60);
/// The topic of all nodes; the others are buckets of rooms.
const ALL_NODES: usize = BUCKETS;

/// Something that happens.
#[derive(Debug)]
enum Event {
    /// Gossip arrives at `to` by its link `via`.
    Gossip {
        to: usize,
        via: usize,
        hop: usize,
        spoken: Rc<Spoken>,
    },
    /// A frame arrives.
    Frame {
        to: usize,
        from: usize,
        spoken: Rc<Spoken>,
    },
    Wake(usize),
    Beat(usize),
    Start(usize),
    /// Both ends of a link are connected.
    Up {
        node: usize,
        nth: usize,
    },
}

/// The answer to a call, as far as anybody asks.
#[derive(Debug)]
pub(super) enum Answer {
    /// So many members that are heard, the node itself included.
    Members(usize),
    /// So many agents.
    Agents(usize),
    Attached(Registration),
    Said(MessageId),
    Other,
    Refused(Refused),
}

/// A node that says something, and the moment when it does.
#[derive(Clone, Copy, Debug)]
struct Sender {
    node: usize,
    at: Slot,
}

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Slot,
    queue: BTreeMap<Slot, Vec<Event>>,
    pub(super) nodes: Vec<Node>,
    ids: Vec<NodeId>,
    index: BTreeMap<NodeId, usize>,
    pub(super) links: Links,
    /// By topic that anything was published in.
    meshes: BTreeMap<usize, Vec<Vec<usize>>>,
    /// Messages that were published and are no beacons, by topic and content: since when.
    published: HashMap<(usize, Vec<u8>), (Slot, Rc<Spoken>)>,
    /// The runs of all logs, as stores would hold them.
    runs: BTreeMap<(RoomId, LogId), Vec<Verified>>,
    pub(super) dice: Dice,
    secret: MeshSecret,
    pub(super) lobby: RoomId,
    pub(super) tally: Tally,
    pub(super) alarms: Alarms,
    next_call: u64,
    pub(super) answers: BTreeMap<CallId, (Slot, Answer)>,
    /// When a node last saw a member leave the lobby.
    pub(super) last_left: Slot,
    /// Where and when messages of the lobby were delivered.
    pub(super) delivered: BTreeMap<MessageId, Vec<(usize, Slot)>>,
}

impl World {
    pub(super) fn new(setting: &Setting) -> World {
        let mut dice = Dice::new(setting.seed);
        let (secret, nodes) = Node::all(setting.nodes, &mut dice);
        let links = overlay::links(setting.nodes, &mut dice);
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        let index = ids.iter().copied().zip(0..).collect();
        let lobby = RoomId::lobby(secret.mesh_id());
        let mut world = World {
            now: 0,
            queue: BTreeMap::new(),
            nodes,
            ids,
            index,
            links,
            meshes: BTreeMap::new(),
            published: HashMap::new(),
            runs: BTreeMap::new(),
            dice,
            secret,
            lobby,
            tally: Tally::default(),
            alarms: Alarms::default(),
            next_call: 0,
            answers: BTreeMap::new(),
            last_left: 0,
            delivered: BTreeMap::new(),
        };
        world.plan_starts();
        world
    }

    /// The founder is first; links come up when both ends are there.
    fn plan_starts(&mut self) {
        let last = slots(STARTED_WITHIN);
        let starts: Vec<Slot> = (0..self.nodes.len())
            .map(|node| if node == 0 { 0 } else { self.dice.within(1, last) })
            .collect();
        for (node, start) in starts.iter().enumerate() {
            self.at(*start, Event::Start(node));
        }
        for node in 0..self.nodes.len() {
            for nth in 0..self.links[node].len() {
                let to = self.links[node][nth].to;
                if to > node {
                    let wait = self.dice.within(1, slots(LINKED_WITHIN));
                    self.at(starts[node].max(starts[to]) + wait, Event::Up { node, nth });
                }
            }
        }
    }

    fn at(&mut self, when: Slot, event: Event) {
        self.queue.entry(when.max(self.now)).or_default().push(event);
    }

    /// Lets things happen for so long.
    pub(super) fn go_on(&mut self, time: Duration) {
        self.run_until(self.now + slots(time));
    }

    pub(super) fn run_until(&mut self, until: Slot) {
        while let Some(entry) = self.queue.first_entry().filter(|slot| *slot.key() < until) {
            let (when, events) = entry.remove_entry();
            self.now = when;
            for event in events {
                self.happen(event);
            }
        }
        self.now = until;
        let old = until.saturating_sub(slots(SEEN_FOR));
        self.published.retain(|_, (since, _)| *since >= old);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Gossip { to, via, hop, spoken } => self.gossip(to, via, hop, spoken),
            Event::Frame { to, from, spoken } => {
                self.tally.frame(&spoken);
                self.give(to, Waiting::Said { from, spoken });
            }
            Event::Wake(node) => {
                if self.nodes[node].wakes == self.now {
                    self.turn(node);
                }
            }
            Event::Beat(node) => self.beat(node),
            Event::Start(node) => {
                self.nodes[node].start(self.now);
                self.wake(node, self.now);
                self.at(self.now, Event::Beat(node));
            }
            Event::Up { node, nth } => {
                let (to, back) = (self.links[node][nth].to, self.links[node][nth].back);
                self.links[node][nth].up = true;
                self.links[to][back].up = true;
                self.give(node, Waiting::Input(Box::new(Input::PeerUp(self.ids[to]))));
                self.give(to, Waiting::Input(Box::new(Input::PeerUp(self.ids[node]))));
            }
        }
    }

    // Nodes.

    fn give(&mut self, node: usize, waiting: Waiting) {
        let wait = match &waiting {
            Waiting::Said { spoken, .. } | Waiting::Heard { spoken, .. } if spoken.is_beacon() => {
                BEACON_QUEUED
            }
            Waiting::Said { .. } | Waiting::Heard { .. } | Waiting::Input(_) => QUEUED,
        };
        if !self.nodes[node].is_there() {
            return;
        }
        self.nodes[node].inbox.push_back(waiting);
        self.wake(node, self.now + wait);
    }

    fn wake(&mut self, node: usize, when: Slot) {
        let when = when.max(self.nodes[node].busy_until);
        if when < self.nodes[node].wakes {
            self.nodes[node].wakes = when;
            self.at(when, Event::Wake(node));
        }
    }

    fn turn(&mut self, node: usize) {
        let (turn, nanoseconds) = self.nodes[node].turn(self.now, &self.ids);
        self.tally.nanoseconds += nanoseconds;
        self.tally.turns += 1;
        let done = self.now + if turn.batch.is_empty() { 0 } else { COMMIT };
        let engine = &mut self.nodes[node];
        (engine.wakes, engine.busy_until) = (Slot::MAX, done);
        if let Some(deadline) = engine.deadline() {
            self.wake(node, slots(deadline).max(self.now + 1));
        }
        for effect in turn.effects {
            self.perform(Sender { node, at: done }, effect);
        }
    }

    /// A client asks something.
    pub(super) fn ask(&mut self, node: usize, command: Command) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.give(node, Waiting::Input(Box::new(Input::Command { call, command })));
        call
    }

    fn perform(&mut self, by: Sender, effect: Effect) {
        let Sender { node, at } = by;
        match effect {
            Effect::Broadcast { room, message } => {
                let topic = room.map_or(ALL_NODES, mesh::bucket);
                self.publish(by, topic, &message);
            }
            Effect::Send { to, message } => {
                let spoken = Spoken::new(&message, self.secret.mesh_id(), ALL_NODES);
                self.send(by, to, spoken);
            }
            Effect::SendSpans { to, room, spans } => {
                let answer = Rc::new(self.spans(room, &spans));
                self.send(by, to, answer);
            }
            Effect::SendBodies { .. } => unreachable!("nobody says anything so long"),
            Effect::AskCopies { .. }
            | Effect::SendCopies { .. }
            | Effect::AskReceipt { .. }
            | Effect::SendReceipt { .. } => unreachable!("nobody asks what became of a message"),
            Effect::SendRecords { .. }
            | Effect::SendContents { .. }
            | Effect::SendReplaced { .. } => {
                unreachable!("nobody has any")
            }
            Effect::HandOver { .. } | Effect::HandOverRecords { .. } | Effect::GiveOn { .. } => {
                unreachable!("no room is sealed")
            }
            Effect::Reply { call, result } => {
                self.answers.insert(call, (at, answer(result)));
            }
            Effect::Notify { room, event } => {
                if room != self.lobby {
                    return;
                }
                if let RoomEvent::Message(message) = event {
                    self.delivered.entry(message.message).or_default().push((node, at));
                } else if let RoomEvent::Left { .. } = event {
                    self.tally.left += 1;
                    self.last_left = at;
                }
            }
            Effect::Pulse(pulse) => self.nodes[node].pulse = Some(pulse),
            Effect::Alarm(Alarm::EraOpened { .. }) => self.alarms.eras += 1,
            Effect::Alarm(Alarm::Hole { .. }) => self.alarms.holes += 1,
            Effect::Alarm(_) => self.alarms.others += 1,
            // Nobody is shut out, no secret changes, and clients hear nothing.
            Effect::ShutOut(_) | Effect::Known(_) | Effect::Noisy(_) | Effect::Secret(_) => {}
            Effect::DrawSecret | Effect::Tell(_) | Effect::Stopped => {}
        }
    }

    fn beat(&mut self, node: usize) {
        self.at(self.now + slots(BEACON_EVERY), Event::Beat(node));
        let id = self.nodes[node].id;
        let alive = &mut self.nodes[node];
        let Some(pulse) = alive.pulse else { return };
        let Some(Beat { beacon, gossiped, .. }) = alive.rhythm.beat(id, pulse, 0) else { return };
        let mesh = self.secret.mesh_id();
        let message = Message::Beacon(Signed::new(mesh, &alive.identity, beacon));
        let spoken = Spoken::new(&message, mesh, ALL_NODES);
        let by = Sender { node, at: self.now };
        // By gossip and to each peer directly, as the daemon does.
        if gossiped {
            self.flood(by, &spoken);
        }
        for nth in 0..self.links[node].len() {
            self.frame(by, nth, spoken.clone());
        }
    }

    // The network.

    fn publish(&mut self, by: Sender, topic: usize, message: &Message) {
        let mesh = self.secret.mesh_id();
        let key = (topic, message.encode());
        let since = self.now.saturating_sub(slots(SEEN_FOR));
        let known = self.published.get(&key).filter(|(at, _)| *at >= since);
        let spoken = match known {
            Some((_, spoken)) => spoken.clone(),
            None => {
                let spoken = Spoken::new(message, mesh, topic);
                self.keep(&spoken.message);
                self.published.insert(key, (self.now, spoken.clone()));
                spoken
            }
        };
        if spoken.was_seen_by(by.node) {
            self.tally.unpublished += 1;
            return;
        }
        self.flood(by, &spoken);
    }

    /// To all peers, as `flood_publish` says.
    fn flood(&mut self, by: Sender, spoken: &Rc<Spoken>) {
        spoken.is_new_to(by.node);
        for nth in 0..self.links[by.node].len() {
            self.pass_on(by, nth, 1, spoken.clone());
        }
    }

    fn pass_on(&mut self, by: Sender, nth: usize, hop: usize, spoken: Rc<Spoken>) {
        let link = &self.links[by.node][nth];
        if link.up {
            let (to, via, when) = (link.to, link.back, by.at + link.slots);
            self.at(when, Event::Gossip { to, via, hop, spoken });
        }
    }

    /// New gossip is passed on along the gossip mesh of its topic, but not to where it came from.
    fn gossip(&mut self, node: usize, via: usize, hop: usize, spoken: Rc<Spoken>) {
        if !self.nodes[node].is_there() {
            return;
        }
        let is_new = spoken.is_new_to(node);
        self.tally.gossip(&spoken, hop, is_new);
        if !is_new {
            return;
        }
        self.links[node][via].fresh += 1;
        let (links, dice) = (&self.links, &mut self.dice);
        let mesh = self.meshes.entry(spoken.topic);
        let mesh = mesh.or_insert_with(|| overlay::gossip_mesh(links, dice));
        let next = mem::take(&mut mesh[node]);
        for nth in next.iter().filter(|nth| **nth != via) {
            self.pass_on(Sender { node, at: self.now }, *nth, hop + 1, spoken.clone());
        }
        if let Some(mesh) = self.meshes.get_mut(&spoken.topic) {
            mesh[node] = next;
        }
        let from = self.links[node][via].to;
        self.give(node, Waiting::Heard { from, spoken });
    }

    /// A frame to a node, if it is linked.
    fn send(&mut self, by: Sender, to: NodeId, spoken: Rc<Spoken>) {
        let Some(to) = self.index.get(&to) else { return };
        if let Ok(nth) = self.links[by.node].binary_search_by_key(to, |link| link.to) {
            self.frame(by, nth, spoken);
        }
    }

    fn frame(&mut self, by: Sender, nth: usize, spoken: Rc<Spoken>) {
        let link = &self.links[by.node][nth];
        if link.up {
            let (to, when) = (link.to, by.at + link.slots);
            self.at(when, Event::Frame { to, from: by.node, spoken });
        }
    }

    // Stores.

    fn keep(&mut self, message: &Message<Verified>) {
        let Message::Runs(runs) = message else { return };
        for verified in runs {
            let run = verified.run();
            let kept = self.runs.entry((run.room, run.log)).or_default();
            if kept.last().is_none_or(|last| last.run().last() < run.first) {
                kept.push(verified.clone());
            }
        }
    }

    /// As `store::Reader::answer_spans` has it. Nobody asks for more than the asked one said that it has.
    fn spans(&self, room: RoomId, spans: &[Span]) -> Spoken {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for span in spans {
            let Some(kept) = self.runs.get(&(room, span.log)) else { continue };
            let first = kept.partition_point(|kept| kept.run().last() <= span.after);
            let asked = kept[first..].iter().take_while(|kept| kept.run().first <= span.upto);
            for verified in asked {
                bytes += verified.run().size();
                if bytes > WANT_REPLY_BYTES && !runs.is_empty() {
                    break;
                }
                runs.push(verified.clone());
            }
        }
        let plain: Vec<Run> =
            runs.iter().map(|verified: &Verified| verified.run().clone()).collect();
        let bodies = Vec::new();
        let encoded = Message::Spans { room, runs: plain, bodies, last: true }.encode().len();
        let message = Message::Spans { room, runs, bodies: Vec::new(), last: true };
        Spoken::verified(message, encoded, self.secret.mesh_id())
    }
}

fn answer(result: Result<Outcome, Refused>) -> Answer {
    match result {
        Ok(Outcome::Members(all)) => {
            Answer::Members(all.iter().filter(|node| node.me || node.alive).count())
        }
        Ok(Outcome::Agents(all)) => Answer::Agents(all.len()),
        Ok(Outcome::Attached(attached)) => Answer::Attached(attached.registration),
        Ok(Outcome::Said(said)) => Answer::Said(said.message),
        Ok(_) => Answer::Other,
        Err(refused) => Answer::Refused(refused),
    }
}
