//! A world: nodes, a network, agents, faults, and one queue of what happens next.

mod faults;
mod lives;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    time::Duration,
};

use mesh::{
    Config, Effect, Input, MeshSecret,
    api::{
        batch::{Change, Fate},
        command::{CallId, Command, Drawn, Outcome, Refused},
        event::RoomEvent,
    },
    name::id::{EntryRef, LocalRef, NodeId, RoomId},
    order::pulse::{Beat, Rhythm},
    wire::{
        entry::{Body, Stored},
        kinds,
        message::{Message, Signed},
        run::Verified,
    },
};

use super::{
    agents::Agents,
    coverage::{Coverage, Happening},
    dice::Dice,
    elections::Elections,
    holders::Holders,
    kept::{self, some_retention},
    liar::Liar,
    network::Network,
    node::Node,
    plan::Plan,
    promises::{Broken, Entry, Promises, broken},
    roamer::{self, Roamer},
    script::Script,
    signing::{AnyJudge, Signing},
    tasks::Tasks,
    votes::Votes,
};

/// How long after the last fault everything must be complete (numbering.md).
pub(super) const COMPLETE_WITHIN: Duration = Duration::from_secs(10);

/// What happens next.
#[derive(Debug)]
enum Event {
    /// A node has something to do, or its deadline has come.
    Wake { node: usize },
    /// What a turn decided is done now: its commit took until here.
    Perform { node: usize, life: u64, effects: Vec<Effect> },
    /// A message arrives.
    Arrive { to: usize, from: usize, message: Box<Message<Verified>> },
    /// A node says that it lives.
    Beat { node: usize, life: u64 },
    /// A connection is noticed to be there, or not.
    Notice { a: usize, b: usize },
    /// A fault of the plan.
    Fault { index: usize },
    /// A node that was restarted comes up.
    Start { node: usize },
    /// A node's links are cut in the middle of its handover.
    Isolate { node: usize },
    /// An agent does something.
    Act,
    /// The liar says something.
    Lie,
    /// There is room on a node's disk again.
    Room { node: usize },
    /// A node closes its connection with one that has no part any more, for good.
    Shut { a: usize, b: usize },
}

/// What an operator wants.
#[derive(Clone, Copy, Debug)]
enum Operator {
    Stop,
    Rekey,
    Part,
}

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) dice: Dice,
    pub(super) now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64, usize)>>,
    events: BTreeMap<usize, Event>,
    next_event: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) network: Network,
    /// Connections as both ends have noticed them.
    connected: BTreeSet<(usize, usize)>,
    pub(super) secret: MeshSecret,
    pub(super) agents: Agents,
    pub(super) roamers: Vec<Roamer>,
    pub(super) roam_calls: BTreeSet<CallId>,
    pub(super) votes: Votes,
    pub(super) elections: Elections,
    pub(super) tasks: Tasks,
    pub(super) holders: Holders,
    pub(super) script: Script,
    pub(super) promises: Promises,
    /// Rooms that ended at somebody who is judged: made by whoever parted, beyond what counts of it.
    pub(super) void: BTreeSet<RoomId>,
    /// Calls of operators.
    operators: BTreeMap<CallId, Operator>,
    /// Of the nodes' keys.
    seeds: Vec<[u8; 32]>,
    pub(super) judge: AnyJudge,
    /// Nodes whose disks were full at some time.
    full: BTreeSet<usize>,
    pub(super) coverage: Coverage,
    restarting: BTreeSet<usize>,
    /// When each node next looks at its inbox by itself.
    wakes: Vec<Option<Duration>>,
    pub(super) quiet: bool,
    pub(super) next_call: u64,
    pub(super) messages: u64,
    /// What was said besides signs of life, by whom to whom.
    pub(super) sent: BTreeMap<(usize, usize), usize>,
    /// What is sent stands in the trace.
    pub(super) listening: bool,
    pub(super) trace: bool,
    /// What the last node says besides what its engine does.
    pub(super) liar: Option<Liar>,
    /// Nodes whose promises are not judged: their disks were tampered with, or they lie.
    pub(super) exempt: BTreeSet<NodeId>,
    /// A call of somebody who waits for nothing else, and its answer.
    pub(super) probe: Option<(CallId, Option<Result<Outcome, Refused>>)>,
}

impl World {
    /// The world of a seed, at its beginning.
    ///
    /// # Errors
    ///
    /// A promise broken by the first start.
    pub(super) fn new(seed: u64, plan: Plan, trace: bool) -> Result<World, Broken> {
        let mut dice = Dice::new(seed);
        let seeds: Vec<[u8; 32]> = (0..plan.nodes).map(|_| key_seed(&mut dice)).collect();
        let founder = mesh::Identity::from_seed(&seeds[0]).node_id();
        let secret = MeshSecret::new([7; 32], founder);
        let (signing, judge) = (plan.signing, plan.signing.judge(&seeds));
        let nodes = seeds
            .iter()
            .enumerate()
            .map(|(i, key)| {
                let mut config = Config::new(secret.mesh_id(), founder);
                config.name = format!("node{i}");
                config.seed = dice.draw();
                config.era_capacity = plan.era_capacity;
                if plan.retention {
                    config.retention = some_retention(&mut dice);
                    config.retention_min = kept::MIN;
                }
                Node::new((signing.identity(key), signing == Signing::Real), config, dice.draw())
            })
            .collect::<Vec<Node>>();
        let network = Network::new(plan.nodes, plan.gossip);
        let agents = Agents::new(if plan.scripted.is_some() { 0 } else { plan.nodes });
        let holders = Holders::new(plan.nodes, &mut dice);
        let lobby = RoomId::lobby(secret.mesh_id());
        let kinds = if plan.scripted.is_some() { &roamer::KINDS[..1] } else { &roamer::KINDS };
        let roamers = kinds.iter().enumerate();
        let roamers = roamers.map(|(i, kind)| Roamer::new(i % plan.nodes, lobby, *kind)).collect();
        let mut world = World {
            wakes: vec![None; plan.nodes],
            plan,
            dice,
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            nodes,
            network,
            connected: BTreeSet::new(),
            secret,
            agents,
            roamers,
            roam_calls: BTreeSet::new(),
            votes: Votes::default(),
            elections: Elections::default(),
            tasks: Tasks::default(),
            holders,
            script: Script::default(),
            promises: Promises::default(),
            void: BTreeSet::new(),
            operators: BTreeMap::new(),
            seeds,
            judge,
            full: BTreeSet::new(),
            coverage: Coverage::default(),
            restarting: BTreeSet::new(),
            quiet: false,
            next_call: 0,
            messages: 0,
            sent: BTreeMap::new(),
            listening: false,
            trace,
            liar: None,
            exempt: BTreeSet::new(),
            probe: None,
        };
        world.network.weather = world.plan.weather;
        world.begin().map(|()| world)
    }

    fn begin(&mut self) -> Result<(), Broken> {
        for node in 0..self.plan.scripted.unwrap_or(self.nodes.len()) {
            self.start(node)?;
        }
        for index in 0..self.plan.faults.len() {
            let at = self.plan.faults[index].0;
            self.at(at, Event::Fault { index });
        }
        if self.plan.scripted.is_none() {
            self.at(Duration::from_millis(500), Event::Act);
        }
        self.exempt.extend(self.plan.parting.map(|out| self.nodes[out].id));
        if self.plan.liar {
            let dice = Dice::new(self.dice.draw());
            let liar = Liar::new(self.secret.mesh_id(), dice, self.plan.signing);
            self.seeds.extend(liar.seeds());
            self.judge = self.plan.signing.judge(&self.seeds);
            self.exempt.extend(liar.authors());
            self.exempt.extend(self.nodes.last().map(|it| it.id));
            self.liar = Some(liar);
            self.at(Duration::from_millis(700), Event::Lie);
        }
        Ok(())
    }

    fn at(&mut self, when: Duration, event: Event) {
        self.next_event += 1;
        let order = self.next_event;
        self.events.insert(order, event);
        self.queue.push(Reverse((when.max(self.now), order as u64, order)));
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.at(self.now + wait, event);
    }

    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            #[expect(clippy::print_stderr, reason = "a trace is asked for on the command line")]
            {
                eprintln!("{:>9.3} {}", self.now.as_secs_f64(), what());
            }
        }
    }

    /// Lets the world go on until `until`.
    ///
    /// # Errors
    ///
    /// The promise that was broken.
    pub(super) fn run_until(&mut self, until: Duration) -> Result<(), Broken> {
        while let Some(Reverse((when, _, order))) = self.queue.peek().copied() {
            if when > until {
                break;
            }
            self.queue.pop();
            self.now = self.now.max(when);
            if let Some(event) = self.events.remove(&order) {
                self.happen(event)?;
                if let Some(leaked) = self.holders.leaked.take() {
                    return Err(leaked);
                }
            }
        }
        self.now = until;
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Wake { node } => return self.turn(node),
            Event::Perform { node, life, effects } => {
                if self.nodes[node].life == life {
                    return self.perform(node, effects);
                }
            }
            Event::Arrive { to, from, message } => {
                if self.network.reaches(from, to) {
                    if to + 1 == self.nodes.len()
                        && let Some(liar) = &mut self.liar
                    {
                        liar.hear(&message);
                    }
                    self.votes.hears((to, from), self.now);
                    let from = self.nodes[from].id;
                    self.give(to, Input::Message { from, message: *message });
                }
            }
            Event::Beat { node, life } => self.beat(node, life),
            Event::Notice { a, b } => self.notice(a, b),
            Event::Fault { index } => return self.fault(self.plan.faults[index].1.clone()),
            Event::Start { node } => return self.start(node),
            Event::Isolate { .. } if self.quiet => {}
            Event::Isolate { node } => {
                let groups: Vec<usize> =
                    (0..self.nodes.len()).map(|i| usize::from(i == node)).collect();
                self.network.split(&groups);
                self.notice_all();
            }
            Event::Lie => self.tell_a_lie(),
            Event::Shut { a, b } => self.shut(a, b),
            Event::Room { node } => self.make_room(node),
            Event::Act => {
                if !self.quiet {
                    if self.plan.silent_from.is_none_or(|from| self.now < from) {
                        self.act()?;
                    }
                    let mean = u64::try_from(self.plan.act_every.as_millis()).expect("short");
                    let wait = self.dice.within(1, 2 * mean);
                    self.after(Duration::from_millis(wait), Event::Act);
                }
            }
        }
        Ok(())
    }

    // Nodes.

    /// Puts an input into a node's inbox; it is handled a little later, with what else has come.
    pub(super) fn give(&mut self, node: usize, input: Input) {
        if !self.nodes[node].hears(&input, self.now) {
            return self.coverage.count(Happening::Noise);
        }
        self.nodes[node].push(input);
        let wait = self.dice.within(20, 400);
        self.wake(node, self.now + Duration::from_micros(wait));
    }

    fn wake(&mut self, node: usize, when: Duration) {
        let when = when.max(self.nodes[node].is_idle_until());
        if self.wakes[node].is_none_or(|at| at > when || at < self.now) {
            self.wakes[node] = Some(when);
            self.at(when, Event::Wake { node });
        }
    }

    fn turn(&mut self, node: usize) -> Result<(), Broken> {
        if self.wakes[node].is_some_and(|at| at <= self.now) {
            self.wakes[node] = None;
        }
        if self.nodes[node].running.is_none() {
            return Ok(());
        }
        let idle = self.nodes[node].is_idle_until();
        if idle > self.now {
            self.wake(node, idle);
            return Ok(());
        }
        let was_full = self.nodes[node].is_full();
        let turn = match self.nodes[node].turn(self.now) {
            Ok(turn) => turn,
            Err(None) => {
                self.say(|| format!("node{node}: the disk fails, the node is down"));
                self.coverage.count(Happening::WithinCommit);
                self.went_down(node);
                return Ok(());
            }
            Err(Some(error)) => return broken("store", format!("node{node}: {error}")),
        };
        if self.nodes[node].is_full() && !was_full {
            self.coverage.count(Happening::DiskFull);
        }
        self.judge(node, &turn.batch)?;
        self.judge_decisions(node, (&turn.batch, &turn.effects))?;
        let life = self.nodes[node].life;
        let commit = Duration::from_micros(if turn.batch.is_empty() {
            0
        } else {
            self.dice.within(60, 900)
        });
        self.nodes[node].busy_until = self.now + commit;
        self.after(commit, Event::Perform { node, life, effects: turn.effects });
        if let Some(next) = self.nodes[node].deadline(self.now) {
            self.wake(node, next);
        }
        Ok(())
    }

    /// What is durable now is judged.
    fn judge(&mut self, node: usize, batch: &[Change]) -> Result<(), Broken> {
        let id = self.nodes[node].id;
        let dropped = |(nth, it): (usize, &Change)| {
            if let Change::Drop { room } = it { Some((*room, nth)) } else { None }
        };
        let dropped: BTreeMap<RoomId, usize> =
            batch.iter().enumerate().filter_map(dropped).collect();
        for (nth, change) in batch.iter().enumerate() {
            self.holder_stored(node, change)?;
            match change {
                // What was written of a room that ended then in the same batch never was.
                Change::Entry { room, .. } | Change::Number { room, .. }
                    if dropped.get(room).is_some_and(|drop| nth < *drop) => {}
                Change::Entry { room, at, entry } if kinds::is_act(entry.facts.kind) => {
                    self.act_stored((node, *room, *at), entry)?;
                }
                Change::Entry { room, at, entry } if entry.facts.visible => {
                    let entry = self.entry(node, *room, *at)?;
                    self.promises.stored(id, *room, entry);
                }
                Change::Number { room, number, at, fate } => {
                    let entry = self.entry(node, *room, *at)?;
                    let lies = self.liar.as_ref().is_some_and(|it| it.is_its_own(number.era()));
                    if lies || self.exempt.contains(&entry.0.author) || self.exempt.contains(&id) {
                        continue;
                    }
                    self.promises.named(*room, *number, entry)?;
                    match fate {
                        Fate::Assigned => {}
                        Fate::Delivered => self.promises.delivered(id, *room, (*number, entry))?,
                        Fate::Hole => {
                            self.say(|| format!("node{node}: {number:?} is left as a hole"));
                            self.promises.hole(id, *room, *number);
                        }
                    }
                }
                Change::Drop { room } => {
                    self.promises.forgot(id, *room);
                    self.elections.forgot(node, *room);
                    self.votes.forgot(node, *room);
                }
                Change::Room { room, record } if record.ephemeral => {
                    self.promises.ephemeral.insert(*room);
                }
                Change::Prune { .. } => self.coverage.count(Happening::Pruned),
                Change::Room { .. }
                | Change::Note { .. }
                | Change::Keep { .. }
                | Change::Entry { .. }
                | Change::Log { .. }
                | Change::Era { .. }
                | Change::NumberRange { .. }
                | Change::Dedup { .. }
                | Change::Called { .. }
                | Change::Evidence { .. }
                | Change::Node(_) => {}
            }
        }
        Ok(())
    }

    fn act_stored(
        &mut self,
        (node, room, at): (usize, RoomId, LocalRef),
        entry: &Stored,
    ) -> Result<(), Broken> {
        let (log, seq) = self.entry(node, room, at)?;
        if self.liar.is_some() && self.is_a_lie((log, seq)) {
            if let Body::Vote(act) = Body::decode(entry.facts.kind, &entry.body) {
                self.liar_voted(room, act);
            }
            return Ok(());
        }
        let place = EntryRef { log, seq };
        let body = Body::decode(entry.facts.kind, &entry.body);
        if let Body::Vote(act) = body {
            return self.vote_stored(node, (room, place), act);
        } else if let Body::Election(act) = body {
            self.election_stored((room, place), &act);
        } else if let Body::Task(act) = body {
            let when = (entry.facts.clock, entry.facts.wall_ms);
            return self.task_stored((room, place), when, act);
        }
        Ok(())
    }

    pub(super) fn entry(&self, node: usize, room: RoomId, at: LocalRef) -> Result<Entry, Broken> {
        match self.nodes[node].log(room, at.log) {
            Some(log) => Ok((log, at.seq)),
            None => {
                broken("store", format!("node{node} writes of a log it has no record of: {at:?}"))
            }
        }
    }

    fn perform(&mut self, node: usize, effects: Vec<Effect>) -> Result<(), Broken> {
        for effect in effects {
            match effect {
                Effect::Broadcast { message, .. } => {
                    if self.network.gossip {
                        let peers = self.peers(node);
                        self.send(node, (&peers, false), &message);
                    }
                }
                Effect::Send { to, message } => self.send_to(node, to, &message),
                Effect::SendSpans { to, room, spans } => {
                    let running = self.nodes[node].running.as_ref();
                    let answer = running.map(|it| it.reader.answer_spans(room, &spans));
                    self.send_answer(node, to, answer);
                }
                Effect::SendBodies { to, room, at } => {
                    let running = self.nodes[node].running.as_ref();
                    let answer = running.map(|it| it.reader.answer_bodies(room, &at));
                    self.send_answer(node, to, answer);
                }
                Effect::Reply { call, result } => self.replied(node, call, result)?,
                Effect::Notify { room, event } => self.members_told(node, room, &event)?,
                Effect::Pulse(_) => self.begin_beating(node),
                Effect::ShutOut(out) => self.shut_out(node, out),
                Effect::Known(known) => self.nodes[node].know(known),
                Effect::Noisy(author) => self.nodes[node].note_noisy(author, self.now),
                Effect::Secret(it) => {
                    self.coverage.count(Happening::SecretGiven);
                    self.nodes[node].keep_secret(it);
                }
                Effect::DrawSecret => self.draw_secret(node),
                Effect::Alarm(alarm) => {
                    self.say(|| format!("node{node}: {alarm:?}"));
                    self.alarmed(node, &alarm);
                }
                Effect::Stopped => {
                    // The process ends here, whatever else was to be done.
                    self.stopped(node);
                    return Ok(());
                }
                Effect::Tell(event) => self.holder_told(node, &event),
            }
        }
        Ok(())
    }

    /// What a node tells members of a room.
    fn members_told(&mut self, node: usize, room: RoomId, event: &RoomEvent) -> Result<(), Broken> {
        if matches!(event, RoomEvent::Destroyed { .. }) && !self.is_exempt(node) {
            self.void.insert(room);
        }
        if let RoomEvent::VoteEnded(it) = event {
            self.vote_ended(node, it)?;
        }
        self.roamers_told(node, room, event)?;
        self.task_told(node, event);
        self.script_told(node, room, event);
        Ok(())
    }

    fn send_answer(
        &mut self,
        node: usize,
        to: NodeId,
        answer: Option<Result<Message, store::ReadError>>,
    ) {
        if let Some(message) = answer.and_then(Result::ok) {
            self.send_to(node, to, &message);
        }
    }

    fn send_to(&mut self, node: usize, to: NodeId, message: &Message) {
        if let Some(to) = self.index(to)
            && self.connected.contains(&pair(node, to))
        {
            self.send(node, (&[to], true), message);
        }
    }

    /// Messages are encoded, decoded and verified once, and then arrive as the network lets them.
    fn send(&mut self, from: usize, (to, direct): (&[usize], bool), message: &Message) {
        if to.is_empty() {
            return;
        }
        let bytes = message.encode();
        self.look_into(from, &bytes);
        if let Some(liar) = self.liar.as_mut().filter(|_| to.contains(&(self.nodes.len() - 1))) {
            liar.overhear(bytes.clone());
        }
        self.count_sent(from, to, message);
        let decoded = Message::decode(&bytes).expect("what nodes send can be read");
        let verified = decoded.verify_by(&*self.judge, self.secret.mesh_id());
        let verified = verified.expect("what nodes send is sealed");
        for to in to {
            for wait in self.network.fate(&mut self.dice, &mut self.coverage, direct) {
                let message = Box::new(verified.clone());
                self.after(wait, Event::Arrive { to: *to, from, message });
            }
        }
    }

    /// To some of those whom the liar reaches: what is no message at all stops at their doors, as in a node.
    fn tell_a_lie(&mut self) {
        if self.quiet {
            return;
        }
        let node = self.nodes.len() - 1;
        let peers = self.peers(node);
        let Some(liar) = &mut self.liar else { return };
        let loud = self.plan.loud;
        let bytes = if loud { liar.noise() } else { liar.lie() };
        let verified = Message::decode(&bytes)
            .and_then(|it| it.verify_by(&*self.judge, self.secret.mesh_id()));
        match verified {
            Ok(verified) => {
                liar.taken += 1;
                // Of a log with gaps nothing is taken, and so nothing is without effect.
                let told = if loud { 100 } else { 70 };
                for to in peers.into_iter().filter(|_| self.dice.chance(told)).collect::<Vec<_>>() {
                    let wait = Duration::from_micros(self.dice.within(200, 1_500));
                    let message = Box::new(verified.clone());
                    self.after(wait, Event::Arrive { to, from: node, message });
                }
            }
            Err(_) => liar.refused += 1,
        }
        let wait = self.dice.within(1, if loud { 8 } else { 30 });
        self.after(Duration::from_millis(wait), Event::Lie);
    }

    fn peers(&self, node: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|it| self.connected.contains(&pair(node, *it))).collect()
    }

    pub(super) fn index(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    fn begin_beating(&mut self, node: usize) {
        let life = self.nodes[node].life;
        if let Some(running) = &mut self.nodes[node].running
            && running.rhythm.is_none()
        {
            running.rhythm = Some(Rhythm::default());
            self.after(Duration::ZERO, Event::Beat { node, life });
        }
    }

    fn beat(&mut self, node: usize, life: u64) {
        if self.nodes[node].life != life {
            return;
        }
        self.after(mesh::limits::BEACON_EVERY, Event::Beat { node, life });
        if self.nodes[node].paused_until > self.now {
            return;
        }
        let id = self.nodes[node].id;
        let Some(running) = &mut self.nodes[node].running else { return };
        let Some(pulse) = running.pulse else { return };
        let rhythm = running.rhythm.get_or_insert_default();
        let Some(Beat { beacon, gossiped }) = rhythm.beat(id, pulse) else { return };
        let mesh = self.secret.mesh_id();
        let signed = Signed::new(mesh, self.nodes[node].identity(), beacon);
        let peers = self.peers(node);
        // By gossip and to each peer directly, as the daemon does.
        if gossiped {
            self.send(node, (&peers, false), &Message::Beacon(signed.clone()));
        }
        self.send(node, (&peers, true), &Message::Beacon(signed));
    }

    /// Another secret of the mesh's connections, drawn at a node.
    pub(super) fn draw_secret(&mut self, node: usize) {
        let drawn = Drawn::new(key_seed(&mut self.dice));
        let call = self.call();
        self.operators.insert(call, Operator::Rekey);
        let command = Command::RotateSecret { drawn, force: true };
        self.give(node, Input::Command { call, command });
    }

    pub(super) fn call(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    /// Whether all disks are as their nodes left them: no log is forked.
    pub(super) fn is_honest(&self) -> bool {
        self.exempt.is_empty()
    }

    /// Whether whoever is not judged wrote an entry.
    pub(super) fn is_a_lie(&self, entry: Entry) -> bool {
        self.exempt.contains(&entry.0.author)
    }

    /// Whether those who could have a room do, unless somebody lies. Of a private one that whoever parted had made each
    /// keeps what it has, and some may have heard of it alone.
    pub(super) fn is_with_all_who_stay(&self, room: RoomId) -> bool {
        let with = self.nodes_with(room);
        let lacks = |it: &Node| {
            let rooms = it.running.as_ref().and_then(|it| it.reader.rooms().ok());
            rooms.is_some_and(|rooms| rooms.iter().all(|it| it.0 != room))
        };
        let mut judged = self.nodes.iter().filter(|it| !self.exempt.contains(&it.id));
        self.plan.parting.is_none()
            || !self.holders.sealed.contains_key(&room)
            || !judged.any(|it| with.contains(&it.id) && lacks(it))
    }

    pub(super) fn is_exempt(&self, node: usize) -> bool {
        self.exempt.contains(&self.nodes[node].id)
    }

    #[cfg(test)]
    pub(super) fn isolate(&mut self, node: usize) {
        let groups: Vec<usize> = (0..self.nodes.len()).map(|i| usize::from(i == node)).collect();
        self.network.split(&groups);
        self.notice_all();
    }

    /// Where a call says something, if it does.
    fn said_in(&self, call: CallId) -> Option<RoomId> {
        let said = self.agents.said_in(call).or_else(|| self.elections.said_in(call));
        let lobby = RoomId::lobby(self.secret.mesh_id());
        let said = said.or_else(|| self.holders.said_in(call));
        said.or_else(|| self.script.says(call).then_some(lobby))
    }

    fn replied(
        &mut self,
        node: usize,
        call: CallId,
        result: Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        if self.is_probe(call, &result) {
            return Ok(());
        }
        if let Some(wanted) = self.operators.remove(&call) {
            return self.operator_replied(node, wanted, &result);
        }
        if let Ok(Outcome::Said(said)) = &result
            && let Some(room) = self.said_in(call)
        {
            let running = self.nodes[node].running.as_ref();
            let row =
                running.and_then(|it| it.reader.by_message(room, said.message).ok().flatten());
            let ephemeral = self.promises.ephemeral.contains(&room);
            let Some(row) = row else {
                if ephemeral {
                    // It ended in the same turn.
                    return self.agent_replied(node, call, result);
                }
                let what = format!("{:?} was answered and is not in the store", said.message);
                return broken("acknowledged survives", what);
            };
            let id = self.nodes[node].id;
            let entry = (row.log, row.at.seq);
            if !self.exempt.contains(&id) {
                self.promises.acknowledged(id, room, entry, said.number);
            }
        }
        if self.script_replied(call, &result)? {
            return Ok(());
        }
        let result = match result {
            // To an agent it is the same: later, or elsewhere.
            Err(Refused::DiskFull) if self.full.contains(&node) => Err(Refused::Stopping),
            result => result,
        };
        self.agent_replied(node, call, result)
    }
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

fn key_seed(dice: &mut Dice) -> [u8; 32] {
    let mut seed = [0; 32];
    for part in seed.chunks_mut(8) {
        part.copy_from_slice(&dice.draw().to_be_bytes());
    }
    seed
}
