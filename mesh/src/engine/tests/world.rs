//! A few engines that hear each other, or not, and restart.

use std::collections::{BTreeMap, BTreeSet};

use super::{disk::stored, *};
use crate::{
    api::{
        command::Drawn,
        event::{AgentEvent, RoomEvent},
    },
    name::id::EntryRef,
    wire::{
        carry::{CarriedAt, Load, Parcel, Whole},
        contents::{Content, SentContents},
        copies::{Copied, CopyOf},
        message::{Beacon, Signed},
        record::{CollectionNumber, Record, RecordKey, Space},
    },
};

impl Node {
    /// The number that it has stored for an entry.
    fn number_of(&self, room: RoomId, place: EntryRef) -> Option<Number> {
        let log = self.engine.known.rooms.get(&room)?.replica.logs.ix(place.log)?;
        self.rows.iter().find_map(|row| match row {
            Change::Number { room: of, number, at, .. }
                if *of == room && (at.log, at.seq) == (log, place.seq) =>
            {
                Some(*number)
            }
            _ => None,
        })
    }
}

/// Without anything in it.
pub(super) fn parcel<R>(of: Option<NodeId>, room: RoomId) -> Parcel<R> {
    let (runs, bodies, records, contents) = Default::default();
    Parcel { of, room, runs, bodies, records, contents }
}

impl Node {
    /// What it carries for others.
    pub(super) fn loads(&self) -> BTreeMap<CarriedAt, Load> {
        let mut loads = BTreeMap::new();
        for row in &self.rows {
            if let Change::Load { at, load, .. } = row {
                match load {
                    Some(load) => loads.insert(*at, Load::clone(load)),
                    None => loads.remove(at),
                };
            }
        }
        loads
    }
}

impl Node {
    /// Whether it has stored an act.
    fn has_act(&self, room: RoomId, place: EntryRef) -> bool {
        let log = self.engine.known.rooms.get(&room).and_then(|it| it.replica.logs.ix(place.log));
        self.rows.iter().any(|row| match row {
            Change::Entry { room: of, at, entry } => {
                (*of, Some(at.log), at.seq, entry.facts.visible) == (room, log, place.seq, false)
            }
            _ => false,
        })
    }
}

/// How time passes.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Nodes, and what they have told their members.
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) callers: Vec<Caller>,
    pub(super) down: BTreeSet<usize>,
    /// Nodes hear each other within a group only; what is said to others is heard when they join.
    pub(super) groups: Vec<usize>,
    /// Two nodes that do not hear each other, though they are of one group.
    pub(super) cut: BTreeSet<(usize, usize)>,
    pub(super) held: Vec<(usize, usize, Message<Verified>)>,
    /// What each node told members.
    pub(super) told: Vec<Vec<RoomEvent>>,
    /// What each node told clients of its own.
    pub(super) tells: Vec<Vec<AgentEvent>>,
    /// Nodes that have stopped in good order.
    pub(super) stopped: BTreeSet<usize>,
    /// Secrets that each node's driver was told to use.
    pub(super) secrets: Vec<Vec<crate::name::identity::LinkSecret>>,
    /// Nodes whose drivers were asked for one.
    draws: Vec<usize>,
    /// Nodes say things to each other directly, too.
    pub(super) linked: bool,
    /// Whatever left a node by gossip.
    pub(super) said: Vec<Message>,
    /// Whatever was sent to one node, as bytes.
    pub(super) told_to: Vec<(usize, Vec<u8>)>,
    replies: BTreeMap<(usize, CallId), Result<Outcome, Refused>>,
    tick: u64,
    drawn: u8,
}

impl World {
    /// Each node has one agent, who is in the lobby.
    pub(super) fn new(nodes: u8) -> World {
        World::of((1..=nodes).map(Node::new).collect(), nodes.into())
    }

    /// Of these nodes, of which the first ones have an agent.
    pub(super) fn of(nodes: Vec<Node>, agents: usize) -> World {
        let count = nodes.len();
        let mut world = World {
            nodes,
            callers: Vec::new(),
            down: BTreeSet::new(),
            groups: vec![0; count],
            cut: BTreeSet::new(),
            held: Vec::new(),
            told: (0..count).map(|_| Vec::new()).collect(),
            tells: (0..count).map(|_| Vec::new()).collect(),
            stopped: BTreeSet::new(),
            secrets: (0..count).map(|_| Vec::new()).collect(),
            draws: Vec::new(),
            linked: false,
            said: Vec::new(),
            told_to: Vec::new(),
            replies: BTreeMap::new(),
            tick: 0,
            drawn: 100,
        };
        world.pass(STEP);
        for n in 0..agents {
            let caller = world.attach(n);
            world.callers.push(caller);
        }
        // Rosters that are missing are asked for after a while.
        world.pass(STEP * 8);
        world
    }

    pub(super) fn attach(&mut self, n: usize) -> Caller {
        let caller = self.nodes[n].attach(&format!("agent{n}"), false, KEY).expect("free");
        let room = self.lobby();
        self.ask(n, Command::Join { caller: caller.clone(), room }).expect("public");
        caller
    }

    pub(super) fn lobby(&self) -> RoomId {
        self.nodes[0].lobby()
    }

    pub(super) fn ask(&mut self, n: usize, command: Command) -> Result<Outcome, Refused> {
        let result = self.nodes[n].ask(command);
        self.carry();
        result
    }

    /// Asks for what may take a while, see [`World::reply`].
    pub(super) fn begin(&mut self, n: usize, command: Command) -> CallId {
        self.nodes[n].begin(command)
    }

    pub(super) fn reply(&self, n: usize, call: CallId) -> Option<Result<Outcome, Refused>> {
        self.replies.get(&(n, call)).cloned().or_else(|| self.nodes[n].reply(call))
    }

    /// Lets nodes hear what others have said, until nothing more is said.
    pub(super) fn carry(&mut self) {
        while self.carry_once() {}
    }

    #[expect(clippy::too_many_lines, reason = "a table: one row for each effect")]
    fn carry_once(&mut self) -> bool {
        for from in 0..self.nodes.len() {
            for effect in std::mem::take(&mut self.nodes[from].effects) {
                match effect {
                    Effect::Broadcast { message, .. } => self.say(from, message),
                    Effect::Send { to, message } if self.linked => self.tell(from, to, message),
                    Effect::SendSpans { to, room, spans } if self.linked => {
                        let runs = self.runs_of(room, &spans);
                        let (bodies, last) = (Vec::new(), true);
                        self.tell(from, to, Message::Spans { room, runs, bodies, last });
                    }
                    Effect::AskCopies { to, room, copies } if self.linked => {
                        let asked = |it: CopyOf| Copied {
                            place: it.place,
                            mark: [0; 16],
                            number: it.number,
                        };
                        let copies = copies.into_iter().map(asked).collect();
                        self.tell(from, to, Message::AskCopies { room, copies });
                    }
                    Effect::SendCopies { to, room, copies } if self.linked => {
                        let held = |it: Copied| {
                            let number = self.nodes[from].number_of(room, it.place);
                            let held = number.is_some() || self.nodes[from].has_act(room, it.place);
                            held.then_some(Copied { number, ..it })
                        };
                        let copies = copies.into_iter().filter_map(held).collect();
                        self.tell(from, to, Message::Copies { room, copies });
                    }
                    Effect::SendRecords { to, space, collection, keys } if self.linked => {
                        self.send_records(from, to, (space, collection), &keys);
                    }
                    Effect::SendContents { to, space, collection, keys, lacking }
                        if self.linked =>
                    {
                        let contents = Vec::new();
                        let sent = SentContents { space, collection, contents, lacking };
                        self.send_contents(from, to, sent, keys);
                    }
                    Effect::SendReplaced { to, wanted } if self.linked => {
                        let sent = self.nodes[from].tells_replaced(&wanted);
                        self.tell(from, to, Message::Replaced(sent));
                    }
                    Effect::HandOver { .. }
                    | Effect::HandOverRecords { .. }
                    | Effect::GiveOn { .. }
                        if self.linked =>
                    {
                        self.hand(from, effect);
                    }
                    Effect::Notify { event, .. } => self.told[from].push(event),
                    Effect::Tell(it) => self.tells[from].push(it),
                    Effect::Stopped => drop(self.stopped.insert(from)),
                    Effect::Secret(it) => self.secrets[from].push(it),
                    Effect::DrawSecret => self.draws.push(from),
                    Effect::Reply { call, result } => {
                        self.replies.insert((from, call), result);
                    }
                    _ => {}
                }
            }
        }
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(from, to, _)| self.hears(*to, *from));
        self.held = later;
        let draws = std::mem::take(&mut self.draws);
        let any = !now.is_empty() || !draws.is_empty();
        for n in draws {
            // Not the same twice.
            self.drawn += 1;
            let drawn = Drawn::new([self.drawn; 32]);
            self.nodes[n].begin(Command::RotateSecret { drawn, force: true });
        }
        for (from, to, message) in now {
            if !self.down.contains(&to) {
                let from = self.nodes[from].engine.known.cx.me;
                self.nodes[to].give(Input::Message { from, message });
            }
        }
        any
    }

    fn send_records(
        &mut self,
        from: usize,
        to: NodeId,
        place: (Space, CollectionNumber),
        keys: &[RecordKey],
    ) {
        let records = self.records_of(from, place, keys);
        self.tell(from, to, Message::Records(records));
    }

    fn records_of(
        &self,
        n: usize,
        place: (Space, CollectionNumber),
        keys: &[RecordKey],
    ) -> Vec<Record> {
        let wanted = |record: &Record| {
            let key = RecordKey { id: record.id, owner: Some(record.owner()) };
            (record.space, record.collection) == place && keys.contains(&key)
        };
        self.nodes[n].records().into_iter().filter(wanted).collect()
    }

    /// Something for a carrier, or from it.
    fn hand(&mut self, from: usize, effect: Effect) {
        match effect {
            Effect::HandOver { to, room, spans } => {
                let runs = self.runs_of(room, &spans);
                self.tell(from, to, Message::Parcel(Parcel { runs, ..parcel(None, room) }));
            }
            Effect::HandOverRecords { to, room, space, collection, keys, whole } => {
                let records = self.records_of(from, (space, collection), &keys);
                let empty = parcel(None, room);
                let parcel = if whole {
                    Parcel { contents: self.wholes_of(from, records), ..empty }
                } else {
                    Parcel { records, ..empty }
                };
                self.tell(from, to, Message::Parcel(parcel));
            }
            Effect::GiveOn { to, at } => self.give_on(from, to, &at),
            _ => {}
        }
    }

    /// As a store does: of one room of one node.
    fn give_on(&mut self, from: usize, to: NodeId, at: &[CarriedAt]) {
        let Some(first) = at.first().copied() else { return };
        let mut given = parcel(Some(first.of), first.room);
        for load in at.iter().filter_map(|at| self.nodes[from].loads().remove(at)) {
            match load {
                Load::Run(run, _) => given.runs.push(run),
                Load::Record(record) => given.records.push(record),
                Load::Whole(whole) => given.contents.push(whole),
            }
        }
        self.tell(from, to, Message::Parcel(given));
    }

    /// Records with their bytes, as many as a store gives at once.
    fn wholes_of(&self, n: usize, records: Vec<Record>) -> Vec<Whole> {
        let held = self.nodes[n].contents();
        let whole = |record: Record| {
            let key = RecordKey { id: record.id, owner: Some(record.owner()) };
            let bytes = held.get(&(record.space, key))?.clone().into();
            Some(Whole { record, bytes })
        };
        records.into_iter().filter_map(whole).take(2).collect()
    }

    fn send_contents(
        &mut self,
        from: usize,
        to: NodeId,
        mut sent: SentContents,
        keys: Vec<RecordKey>,
    ) {
        let held = self.nodes[from].contents();
        // As a store does: a message has about 512 KiB.
        for key in keys.into_iter().take(2) {
            match held.get(&(sent.space, key)) {
                Some(bytes) => sent.contents.push(Content::of(key, bytes)),
                None => sent.lacking.push(key),
            }
        }
        self.tell(from, to, Message::Contents(sent));
    }

    fn hears(&self, to: usize, from: usize) -> bool {
        self.groups[from] == self.groups[to] && !self.cut.contains(&(from.min(to), from.max(to)))
    }

    /// The link between two nodes is cut.
    pub(super) fn part(&mut self, one: usize, other: usize) {
        self.cut.insert((one.min(other), one.max(other)));
        for (n, peer) in [(one, other), (other, one)] {
            let peer = self.nodes[peer].engine.known.cx.me;
            self.nodes[n].give(Input::PeerDown(peer));
        }
        self.carry();
    }

    /// All nodes are connected to each other.
    pub(super) fn link(&mut self) {
        self.linked = true;
        let ids: Vec<NodeId> = self.nodes.iter().map(|it| it.engine.known.cx.me).collect();
        for (n, me) in ids.iter().enumerate() {
            for peer in ids.iter().filter(|it| *it != me) {
                self.nodes[n].give(Input::PeerUp(*peer));
            }
        }
        self.carry();
    }

    /// From now on only nodes of one group are connected to each other.
    pub(super) fn meet(&mut self, groups: &[usize]) {
        let before = std::mem::replace(&mut self.groups, groups.to_vec());
        let ids: Vec<NodeId> = self.nodes.iter().map(|it| it.engine.known.cx.me).collect();
        for n in 0..ids.len() {
            for (peer, id) in ids.iter().enumerate().filter(|(peer, _)| *peer != n) {
                let (was, is) = (before[n] == before[peer], groups[n] == groups[peer]);
                match (was, is) {
                    (true, false) => self.nodes[n].give(Input::PeerDown(*id)),
                    (false, true) => self.nodes[n].give(Input::PeerUp(*id)),
                    (true, true) | (false, false) => {}
                }
            }
        }
        self.carry();
    }

    /// As they were said when they were new.
    fn runs_of(&self, room: RoomId, spans: &[crate::wire::message::Span]) -> Vec<Run> {
        let said = self.said.iter().filter_map(|it| match it {
            Message::Runs(runs) => Some(runs),
            _ => None,
        });
        let wanted = |run: &&Run| {
            let of = |it: &&crate::wire::message::Span| it.log == run.log && run.last() > it.after;
            run.room == room && spans.iter().any(|it| of(&it))
        };
        said.flatten().filter(wanted).cloned().collect()
    }

    fn tell(&mut self, from: usize, to: NodeId, message: Message) {
        let bytes = message.encode();
        let verified = message.verify(self.nodes[from].secret.mesh_id()).expect("it is sealed");
        // A liar has no engine.
        let Some(to) = self.nodes.iter().position(|it| it.engine.known.cx.me == to) else { return };
        self.told_to.push((to, bytes));
        self.held.push((from, to, verified));
    }

    fn say(&mut self, from: usize, message: Message) {
        self.said.push(message.clone());
        let mesh = self.nodes[from].secret.mesh_id();
        let verified = message.verify(mesh).expect("it is sealed");
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            self.held.push((from, to, verified.clone()));
        }
    }

    /// Time passes for all nodes alike, and those that live say so.
    pub(super) fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis().div_ceil(STEP.as_millis()) {
            self.tick += 1;
            for n in 0..self.nodes.len() {
                if !self.down.contains(&n) {
                    self.beat(n);
                }
            }
            for n in 0..self.nodes.len() {
                let now = &mut self.nodes[n].now;
                now.mono += STEP;
                now.wall_ms += 100;
                now.wall_us += 100_000;
                if !self.down.contains(&n) {
                    self.nodes[n].give(Input::Timeout);
                }
            }
            self.carry();
        }
    }

    fn beat(&mut self, n: usize) {
        let engine = &mut self.nodes[n].engine;
        let (boot, roster) = engine.known.rosters.version(engine.known.cx.me);
        let digest = engine.digests.all(&mut engine.known);
        let value = Beacon {
            node: engine.known.cx.me,
            boot,
            tick: self.tick,
            roster,
            digest,
            records: engine.records.digest(),
            wall_ms: 0,
        };
        let message = Message::Beacon(Signed { value, signature: [0; 64] });
        let from = engine.known.cx.me;
        let hear: Vec<usize> =
            (0..self.nodes.len()).filter(|to| *to != n && self.hears(*to, n)).collect();
        for to in hear {
            if !self.down.contains(&to) {
                self.nodes[to].give(Input::Message { from, message: message.clone() });
            }
        }
    }

    /// The node's process ends, and another begins with what it made durable.
    pub(super) fn restart(&mut self, n: usize) {
        self.restart_reading(n);
        self.callers[n] = self.attach(n);
    }

    /// The same, without an agent.
    pub(super) fn restart_reading(&mut self, n: usize) {
        let now = self.nodes[n].now;
        let rows = std::mem::take(&mut self.nodes[n].rows);
        let seed = u8::try_from(n + 1).expect("few");
        self.nodes[n] = Node::open(seed, stored(&rows), now);
        self.nodes[n].rows.splice(0..0, rows);
        self.down.remove(&n);
        self.carry();
        self.pass(STEP * 5);
    }
}

/// A node that lies: it writes what it likes into a log of its own.
pub(super) struct Liar {
    seed: u8,
    run: Option<Run>,
}

impl Liar {
    pub(super) fn new(seed: u8) -> Liar {
        Liar { seed, run: None }
    }

    pub(super) fn log(&self) -> LogId {
        LogId { author: identity(self.seed).node_id(), incarnation: 0 }
    }

    /// Its next entry in the lobby, and where it is.
    pub(super) fn write(&mut self, node: &Node, body: &Body) -> (EntryRef, Run) {
        self.write_in(node, node.lobby(), body)
    }

    /// The same in another room, if that is where all its entries are.
    pub(super) fn write_in(&mut self, node: &Node, room: RoomId, body: &Body) -> (EntryRef, Run) {
        let first = self.run.as_ref().map_or(1, |run| run.last() + 1);
        let facts = Facts {
            clock: 1_000 + first,
            wall_ms: 1_800_000_000_000,
            kind: body.kind(),
            visible: body.visible(),
        };
        let backlink = self.run.as_ref().map_or([0; 32], |run| {
            let verified = run.clone().verify(node.secret.mesh_id()).expect("it is sealed");
            verified.hash_at(run.last()).expect("its last")
        });
        let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
        let log = self.log();
        let run = Run { room, log, first, backlink, entries, seal: [0; 64] };
        let run = run.seal(node.secret.mesh_id(), &identity(self.seed)).run().clone();
        self.run = Some(run.clone());
        (EntryRef { log, seq: first }, run)
    }
}
