//! What happens when: one queue of events in slots of a tenth of a millisecond.

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
    Setting,
    node::{Node, Waiting},
    overlay::{self, Links},
    spoken::Spoken,
    tally::Tally,
};
use crate::sim::dice::Dice;

/// Virtual time, in steps of [`SLOT`].
pub(super) type Slot = u64;
/// The grain of all times.
const SLOT: Duration = Duration::from_micros(100);
/// From what is asked of an engine, or said to it, to its turn.
const QUEUED: Slot = 2;
/// The same of beacons, which change nothing at once: they are handled some together.
const BEACON_QUEUED: Slot = 100;
/// A commit: docs/performance.md says what it takes.
const COMMIT: Slot = 5;
/// All nodes are started within this.
pub(super) const STARTED_WITHIN: Duration = Duration::from_secs(2);
/// From when both ends are there to when they are connected: at most.
const LINKED_WITHIN: Duration = Duration::from_millis(300);
/// `duplicate_cache_time` of gossipsub: what is the same is not passed on again.
const SEEN_FOR: Duration = Duration::from_secs(60);
/// The topic of all nodes; the others are buckets of rooms.
const ALL_NODES: usize = BUCKETS;

/// How many slots a time is.
pub(super) fn slots(time: Duration) -> Slot {
    Slot::try_from(time.as_micros() / SLOT.as_micros()).unwrap_or(Slot::MAX)
}

/// When a slot is.
pub(super) fn time_of(slot: Slot) -> Duration {
    Duration::from_micros(slot * u64::try_from(SLOT.as_micros()).expect("it is short"))
}

/// What happens.
#[derive(Debug)]
enum Event {
    /// Gossip arrives at `to` by its link `via`.
    Gossip {
        to: usize,
        via: usize,
        hop: usize,
        it: Rc<Spoken>,
    },
    /// A frame arrives.
    Frame {
        to: usize,
        from: usize,
        it: Rc<Spoken>,
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

/// What a call was answered, as far as anybody asks.
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

/// What operators would be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alarms {
    pub(super) eras: u64,
    pub(super) holes: u64,
    pub(super) others: u64,
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
    /// What was published and is no beacon, by topic and content: since when.
    published: HashMap<(usize, Vec<u8>), (Slot, Rc<Spoken>)>,
    /// The runs of all logs: what stores would hold.
    runs: BTreeMap<(RoomId, LogId), Vec<Verified>>,
    pub(super) dice: Dice,
    secret: MeshSecret,
    pub(super) lobby: RoomId,
    pub(super) tally: Tally,
    pub(super) alarms: Alarms,
    next_call: u64,
    pub(super) answers: BTreeMap<CallId, (Slot, Answer)>,
    /// Where and when messages of the lobby were delivered.
    pub(super) delivered: BTreeMap<MessageId, Vec<(usize, Slot)>>,
}

impl World {
    pub(super) fn new(setting: &Setting) -> World {
        let mut dice = Dice::new(setting.seed);
        let (secret, nodes) = Node::all(setting.nodes, &mut dice);
        let links = overlay::links(setting.nodes, &mut dice);
        let ids: Vec<NodeId> = nodes.iter().map(|it| it.id).collect();
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
        while let Some(entry) = self.queue.first_entry().filter(|it| *it.key() < until) {
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
            Event::Gossip { to, via, hop, it } => self.gossip(to, via, (hop, it)),
            Event::Frame { to, from, it } => {
                self.tally.frame(&it);
                self.give(to, Waiting::Said { from, it });
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
            Waiting::Said { it, .. } | Waiting::Heard { it, .. } if it.is_beacon() => BEACON_QUEUED,
            Waiting::Said { .. } | Waiting::Heard { .. } | Waiting::Input(_) => QUEUED,
        };
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
        let it = &mut self.nodes[node];
        (it.wakes, it.busy_until) = (Slot::MAX, done);
        if let Some(deadline) = it.deadline() {
            self.wake(node, slots(deadline).max(self.now + 1));
        }
        for effect in turn.effects {
            self.perform((node, done), effect);
        }
    }

    /// A client asks something.
    pub(super) fn ask(&mut self, node: usize, command: Command) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.give(node, Waiting::Input(Box::new(Input::Command { call, command })));
        call
    }

    fn perform(&mut self, (node, at): (usize, Slot), effect: Effect) {
        match effect {
            Effect::Broadcast { room, message } => {
                let topic = room.map_or(ALL_NODES, mesh::bucket);
                self.publish((node, at), topic, &message);
            }
            Effect::Send { to, message } => {
                let (spoken, _) = Spoken::new(&message, self.secret.mesh_id(), ALL_NODES);
                self.send((node, at), to, spoken);
            }
            Effect::SendSpans { to, room, spans } => {
                let answer = Rc::new(self.spans(room, &spans));
                self.send((node, at), to, answer);
            }
            Effect::SendBodies { .. } => unreachable!("nobody says anything so long"),
            Effect::Reply { call, result } => {
                self.answers.insert(call, (at, answer(result)));
            }
            Effect::Notify { room, event } => {
                if let RoomEvent::Message(it) = event
                    && room == self.lobby
                {
                    self.delivered.entry(it.message).or_default().push((node, at));
                }
            }
            Effect::Pulse(pulse) => self.nodes[node].pulse = Some(pulse),
            Effect::Alarm(Alarm::EraOpened { .. }) => self.alarms.eras += 1,
            Effect::Alarm(Alarm::Hole { .. }) => self.alarms.holes += 1,
            Effect::Alarm(_) => self.alarms.others += 1,
            // Nobody is shut out, no secret changes, and nobody's client hears what it is told.
            Effect::ShutOut(_)
            | Effect::Known(_)
            | Effect::Noisy(_)
            | Effect::Secret(_)
            | Effect::DrawSecret
            | Effect::Tell(_)
            | Effect::Stopped => {}
        }
    }

    fn beat(&mut self, node: usize) {
        self.at(self.now + slots(BEACON_EVERY), Event::Beat(node));
        let id = self.nodes[node].id;
        let it = &mut self.nodes[node];
        let Some(pulse) = it.pulse else { return };
        let Some(Beat { beacon, gossiped }) = it.rhythm.beat(id, pulse) else { return };
        let mesh = self.secret.mesh_id();
        let message = Message::Beacon(Signed::new(mesh, &it.identity, beacon));
        let (spoken, _) = Spoken::new(&message, mesh, ALL_NODES);
        // By gossip and to each peer directly, as the daemon does.
        if gossiped {
            self.flood((node, self.now), &spoken);
        }
        for nth in 0..self.links[node].len() {
            self.frame((node, self.now), nth, spoken.clone());
        }
    }

    // The network.

    fn publish(&mut self, (node, at): (usize, Slot), topic: usize, message: &Message) {
        let mesh = self.secret.mesh_id();
        let key = (topic, message.encode());
        let since = self.now.saturating_sub(slots(SEEN_FOR));
        let known = self.published.get(&key).filter(|(at, _)| *at >= since);
        let spoken = match known {
            Some((_, spoken)) => spoken.clone(),
            None => {
                let (spoken, _) = Spoken::new(message, mesh, topic);
                self.keep(&spoken.message);
                self.published.insert(key, (self.now, spoken.clone()));
                spoken
            }
        };
        if spoken.was_seen_by(node) {
            self.tally.unpublished += 1;
            return;
        }
        self.flood((node, at), &spoken);
    }

    /// To all peers, as `flood_publish` says.
    fn flood(&mut self, (node, at): (usize, Slot), it: &Rc<Spoken>) {
        it.is_new_to(node);
        for nth in 0..self.links[node].len() {
            self.pass_on((node, at), nth, (1, it.clone()));
        }
    }

    fn pass_on(&mut self, (node, at): (usize, Slot), nth: usize, (hop, it): (usize, Rc<Spoken>)) {
        let link = &self.links[node][nth];
        if link.up {
            let (to, via, when) = (link.to, link.back, at + link.slots);
            self.at(when, Event::Gossip { to, via, hop, it });
        }
    }

    /// What is new is passed on along the gossip mesh of its topic, but not to where it came from.
    fn gossip(&mut self, node: usize, via: usize, (hop, it): (usize, Rc<Spoken>)) {
        let is_new = it.is_new_to(node);
        self.tally.gossip(&it, hop, is_new);
        if !is_new {
            return;
        }
        self.links[node][via].fresh += 1;
        let (links, dice) = (&self.links, &mut self.dice);
        let mesh = self.meshes.entry(it.topic).or_insert_with(|| overlay::gossip_mesh(links, dice));
        let next = mem::take(&mut mesh[node]);
        for nth in next.iter().filter(|nth| **nth != via) {
            self.pass_on((node, self.now), *nth, (hop + 1, it.clone()));
        }
        if let Some(mesh) = self.meshes.get_mut(&it.topic) {
            mesh[node] = next;
        }
        let from = self.links[node][via].to;
        self.give(node, Waiting::Heard { from, it });
    }

    /// A frame to a node, if it is linked.
    fn send(&mut self, (node, at): (usize, Slot), to: NodeId, it: Rc<Spoken>) {
        let Some(to) = self.index.get(&to) else { return };
        if let Ok(nth) = self.links[node].binary_search_by_key(to, |it| it.to) {
            self.frame((node, at), nth, it);
        }
    }

    fn frame(&mut self, (node, at): (usize, Slot), nth: usize, it: Rc<Spoken>) {
        let link = &self.links[node][nth];
        if link.up {
            let (to, when) = (link.to, at + link.slots);
            self.at(when, Event::Frame { to, from: node, it });
        }
    }

    // What stores would do.

    fn keep(&mut self, message: &Message<Verified>) {
        let Message::Runs(runs) = message else { return };
        for it in runs {
            let kept = self.runs.entry((it.run().room, it.run().log)).or_default();
            if kept.last().is_none_or(|last| last.run().last() < it.run().first) {
                kept.push(it.clone());
            }
        }
    }

    /// As `store::Reader::answer_spans` has it. Nobody asks for more than the asked one said that it has.
    fn spans(&self, room: RoomId, spans: &[Span]) -> Spoken {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for span in spans {
            let Some(kept) = self.runs.get(&(room, span.log)) else { continue };
            let first = kept.partition_point(|it| it.run().last() <= span.after);
            for it in kept[first..].iter().take_while(|it| it.run().first <= span.upto) {
                bytes += it.run().size();
                if bytes > WANT_REPLY_BYTES && !runs.is_empty() {
                    break;
                }
                runs.push(it.clone());
            }
        }
        let plain: Vec<Run> = runs.iter().map(|it: &Verified| it.run().clone()).collect();
        let bodies = Vec::new();
        let encoded = Message::Spans { room, runs: plain, bodies, last: true }.encode().len();
        let message = Message::Spans { room, runs, bodies: Vec::new(), last: true };
        Spoken::verified(message, encoded, self.secret.mesh_id())
    }
}

fn answer(result: Result<Outcome, Refused>) -> Answer {
    match result {
        Ok(Outcome::Members(all)) => {
            Answer::Members(all.iter().filter(|it| it.me || it.alive).count())
        }
        Ok(Outcome::Agents(all)) => Answer::Agents(all.len()),
        Ok(Outcome::Attached(it)) => Answer::Attached(it.registration),
        Ok(Outcome::Said(it)) => Answer::Said(it.message),
        Ok(_) => Answer::Other,
        Err(refused) => Answer::Refused(refused),
    }
}
