//! A world: nodes, a network, agents, faults. It hands every event, effect and answer to the part that it concerns.

mod copies_held;
mod faults;
mod lives;
mod written;

use std::time::Duration;

use mesh::{
    Effect, Input,
    api::{command::Refused, event::RoomEvent},
    name::id::{NodeId, RoomId},
    wire::message::Message,
};
use store::{
    ReadError, Reader, carried, copies,
    records::{self, Shelf},
    replaced,
};

use super::{
    agents::Agents,
    approvals::Approvals,
    bodies::Bodies,
    cluster::Cluster,
    correspondents::Correspondents,
    coverage::Happening,
    dice::Dice,
    elections::Elections,
    holders::Holders,
    laptops::Laptops,
    liar::Liar,
    network::Way,
    onces::Onces,
    operators::Operators,
    parts::{Part, Reply},
    plan::Plan,
    probes::Probes,
    promises::{Broken, Promises, broken},
    proven,
    roamers::Roamers,
    script::Script,
    tasks::Tasks,
    timeline::Event,
    votes::Votes,
};

/// The number of parts.
const PARTS: usize = 13;

/// See the module.
#[derive(Debug)]
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) agents: Agents,
    pub(super) roamers: Roamers,
    pub(super) votes: Votes,
    pub(super) elections: Elections,
    pub(super) tasks: Tasks,
    pub(super) onces: Onces,
    pub(super) approvals: Approvals,
    pub(super) holders: Holders,
    pub(super) correspondents: Correspondents,
    pub(super) laptops: Laptops,
    pub(super) operators: Operators,
    pub(super) script: Script,
    pub(super) probes: Probes,
    pub(super) promises: Promises,
    /// It speaks for the last node, besides that one's engine.
    pub(super) liar: Option<Liar>,
}

impl World {
    /// The world of a seed, at its beginning.
    ///
    /// # Errors
    ///
    /// A promise broken by the first start.
    pub(super) fn new(seed: u64, plan: Plan, trace: bool) -> Result<World, Broken> {
        let agents = Agents::new(if plan.scripted.is_some() { 0 } else { plan.nodes });
        let mut cluster = Cluster::new(seed, plan, trace);
        let mut world = World {
            agents,
            roamers: Roamers::new(&cluster),
            votes: Votes::default(),
            elections: Elections::default(),
            tasks: Tasks::default(),
            onces: Onces::default(),
            approvals: Approvals::default(),
            holders: Holders::new(&mut cluster),
            correspondents: Correspondents::new(&mut cluster),
            laptops: Laptops::new(&cluster),
            operators: Operators::default(),
            script: Script::default(),
            probes: Probes::default(),
            promises: Promises::default(),
            liar: None,
            cluster,
        };
        world.begin().map(|()| world)
    }

    fn begin(&mut self) -> Result<(), Broken> {
        for node in 0..self.cluster.plan.scripted.unwrap_or(self.cluster.nodes.len()) {
            let laptops = self.cluster.plan.laptops.as_ref();
            if laptops.is_none_or(|laptops| laptops.begin_with(node)) {
                self.start(node)?;
            }
        }
        for index in 0..self.cluster.plan.faults.len() {
            let at = self.cluster.plan.faults[index].0;
            self.cluster.at(at, Event::Fault { index });
        }
        if self.cluster.plan.scripted.is_none() {
            self.cluster.at(Duration::from_millis(500), Event::Act);
        }
        let correspond = self.cluster.plan.correspondence.is_some();
        if correspond || self.cluster.plan.laptops.is_some() {
            self.cluster.at(Duration::from_millis(100), Event::Correspond);
        }
        let parting = self.cluster.plan.parting.map(|out| self.cluster.nodes[out].id);
        self.cluster.exempt.extend(parting);
        if self.cluster.plan.liar {
            let dice = Dice::new(self.cluster.dice.draw());
            let (mesh, signing) = (self.cluster.secret.mesh_id(), self.cluster.plan.signing);
            let liar = Liar::new(mesh, dice, signing);
            self.cluster.believe(liar.seeds());
            self.cluster.exempt.extend(liar.authors());
            self.cluster.exempt.extend(self.cluster.nodes.last().map(|node| node.id));
            self.liar = Some(liar);
            self.cluster.at(Duration::from_millis(700), Event::Lie);
        }
        Ok(())
    }

    /// The parts, in the order in which they are asked whether an answer is theirs.
    pub(super) fn parts(&self) -> [&dyn Part; PARTS] {
        [
            &self.probes,
            &self.operators,
            &self.script,
            &self.roamers,
            &self.votes,
            &self.elections,
            &self.tasks,
            &self.onces,
            &self.approvals,
            &self.holders,
            &self.correspondents,
            &self.laptops,
            &self.agents,
        ]
    }

    fn parts_mut(&mut self) -> (&mut Cluster, [&mut dyn Part; PARTS]) {
        let parts: [&mut dyn Part; PARTS] = [
            &mut self.probes,
            &mut self.operators,
            &mut self.script,
            &mut self.roamers,
            &mut self.votes,
            &mut self.elections,
            &mut self.tasks,
            &mut self.onces,
            &mut self.approvals,
            &mut self.holders,
            &mut self.correspondents,
            &mut self.laptops,
            &mut self.agents,
        ];
        (&mut self.cluster, parts)
    }

    pub(super) fn bodies(&self) -> Bodies<'_> {
        Bodies { cluster: &self.cluster, promises: &self.promises }
    }

    /// *complete*, of a room and all nodes.
    pub(super) fn is_complete(&self, room: RoomId) -> Result<(), Broken> {
        let nodes: Vec<NodeId> = self.cluster.nodes.iter().map(|node| node.id).collect();
        self.promises.complete(&nodes, room, |node, entry| self.bodies().is_gone(node, room, entry))
    }

    // Time.

    /// Lets the world go on until `until`.
    ///
    /// # Errors
    ///
    /// The promise that was broken.
    pub(super) fn run_until(&mut self, until: Duration) -> Result<(), Broken> {
        while let Some(event) = self.cluster.timeline.next(until) {
            self.happen(event)?;
            if let Some(leaked) = self.holders.take_leaked() {
                return Err(leaked);
            }
        }
        Ok(())
    }

    /// Lets so much time pass.
    pub(super) fn go_on(&mut self, time: Duration) -> Result<(), Broken> {
        self.run_until(self.cluster.now() + time)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Wake { node } => return self.turn(node),
            Event::Perform { node, life, effects } => {
                if self.cluster.nodes[node].life == life {
                    return self.perform(node, effects);
                }
            }
            Event::Arrive { to, from, message } => {
                if self.cluster.network.reaches(from, to) {
                    if to + 1 == self.cluster.nodes.len()
                        && let Some(liar) = &mut self.liar
                    {
                        liar.hear(&message);
                    }
                    self.votes.hears(to, from, self.cluster.now());
                    let from = self.cluster.nodes[from].id;
                    self.cluster.give(to, Input::Message { from, message: *message });
                }
            }
            Event::Beat { node, life } => self.beat(node, life),
            Event::Notice { a, b } => self.cluster.notice(a, b),
            Event::Fault { index } => {
                return self.fault(self.cluster.plan.faults[index].1.clone());
            }
            Event::Start { node } => return self.start(node),
            Event::Isolate { .. } if self.cluster.quiet => {}
            Event::Isolate { node } => self.cluster.isolate(node),
            Event::Lie => self.tell_a_lie(),
            Event::Correspond => self.correspond(),
            Event::Shut { a, b } => self.cluster.shut(a, b),
            Event::Room { node } => self.make_room(node),
            Event::Act if self.cluster.quiet => {}
            Event::Act => {
                if self.cluster.plan.silent_from.is_none_or(|from| self.cluster.now() < from) {
                    self.act()?;
                }
                let mean = u64::try_from(self.cluster.plan.act_every.as_millis()).expect("short");
                let wait = self.cluster.dice.within(1, 2 * mean);
                self.cluster.after(Duration::from_millis(wait), Event::Act);
            }
        }
        Ok(())
    }

    /// Some agent does something.
    fn act(&mut self) -> Result<(), Broken> {
        let World { cluster, agents, .. } = self;
        if cluster.dice.chance(8) {
            self.holders.act_for_account(cluster);
            return Ok(());
        }
        if cluster.plan.keys && cluster.dice.chance(12) {
            self.holders.act(cluster);
            return Ok(());
        }
        let i = cluster.dice.index(agents.count());
        let Some(by) = agents.seated(i) else { return self.roamers.act(cluster) };
        match cluster.dice.within(0, 99) {
            _ if cluster.plan.voting && cluster.dice.chance(50) => {
                self.votes.act(cluster, agents, i);
            }
            0..=3 => agents.create(cluster, by),
            4..=10 => agents.join_some(cluster, i),
            11..=14 => agents.leave_some(cluster, i),
            15..=35 => self.roamers.act(cluster)?,
            36..=42 => self.votes.act(cluster, agents, i),
            43..=48 => self.elections.act(cluster, agents, i),
            49..=58 => self.tasks.act(cluster, agents, i),
            59..=66 => self.onces.act(cluster, agents, i),
            67..=73 => self.approvals.act(cluster, agents, i),
            _ => agents.speak(cluster, i),
        }
        Ok(())
    }

    /// Correspondents do something.
    fn correspond(&mut self) {
        self.correspondents.go_on(&mut self.cluster);
        self.laptops.go_on(&mut self.cluster);
        let wait = self.cluster.dice.within(10, 150);
        self.cluster.after(Duration::from_millis(wait), Event::Correspond);
    }

    // Turns and their effects.

    fn turn(&mut self, node: usize) -> Result<(), Broken> {
        let cluster = &mut self.cluster;
        let now = cluster.now();
        cluster.has_woken(node);
        if cluster.nodes[node].running.is_none() {
            return Ok(());
        }
        let idle = cluster.nodes[node].is_idle_until();
        if idle > now {
            cluster.wake(node, idle);
            return Ok(());
        }
        let was_full = cluster.nodes[node].is_full();
        let turn = match cluster.nodes[node].turn(now) {
            Ok(turn) => turn,
            Err(None) => {
                cluster.say(|| format!("node{node}: the disk fails, the node is down"));
                cluster.coverage.count(Happening::WithinCommit);
                self.went_down(node);
                return Ok(());
            }
            Err(Some(error)) => return broken("store", format!("node{node}: {error}")),
        };
        if cluster.nodes[node].is_full() && !was_full {
            cluster.coverage.count(Happening::DiskFull);
        }
        self.judge(node, &turn.batch)?;
        let cluster = &mut self.cluster;
        self.elections.judge_turn(cluster, node, &turn)?;
        let life = cluster.nodes[node].life;
        let commit = if turn.batch.is_empty() { 0 } else { cluster.dice.within(60, 900) };
        let commit = Duration::from_micros(commit);
        cluster.nodes[node].busy_until = now + commit;
        cluster.after(commit, Event::Perform { node, life, effects: turn.effects });
        if let Some(next) = cluster.nodes[node].deadline(now) {
            cluster.wake(node, next);
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "a table: one row for each effect")]
    fn perform(&mut self, node: usize, effects: Vec<Effect>) -> Result<(), Broken> {
        for effect in effects {
            match effect {
                Effect::Broadcast { message, .. } => {
                    if self.cluster.network.gossip {
                        self.gossip(node, &message);
                    }
                }
                Effect::Send { to, message } => self.send_to(node, to, &message),
                Effect::SendSpans { to, room, spans } => {
                    self.answer(node, to, |reader| reader.answer_spans(room, &spans).map(Some));
                }
                Effect::SendBodies { to, room, at } => {
                    self.answer(node, to, |reader| reader.answer_bodies(room, &at).map(Some));
                }
                Effect::AskCopies { to, room, copies } => {
                    self.answer(node, to, |reader| copies::ask(reader, room, &copies));
                }
                Effect::SendCopies { to, room, copies } => {
                    self.answer(node, to, |reader| copies::answer(reader, room, &copies));
                }
                Effect::AskReceipt { to, nonce, room, copy } => {
                    self.answer(node, to, |reader| copies::ask_receipt(reader, nonce, room, copy));
                }
                Effect::SendReceipt { to, nonce, room, copied } => {
                    self.answer(node, to, |reader| {
                        let held = copies::holding(reader, room, &copied)?.held;
                        // Worlds have no connections over which anybody would be given anything.
                        Ok(Some(Message::Receipt { nonce, held, agents: Vec::new() }))
                    });
                }
                Effect::SendRecords { to, space, collection, keys } => {
                    let shelf = Shelf { mesh: self.cluster.secret.mesh_id(), space, collection };
                    self.answer(node, to, |reader| {
                        records::answer(reader, &shelf, &keys).map(Some)
                    });
                }
                Effect::SendContents { to, space, collection, keys, lacking } => {
                    let shelf = Shelf { mesh: self.cluster.secret.mesh_id(), space, collection };
                    self.answer(node, to, |reader| {
                        records::contents(reader, &shelf, &keys, lacking).map(Some)
                    });
                }
                Effect::SendReplaced { to, wanted } => {
                    let now = self.cluster.nodes[node].now(self.cluster.now()).wall_ms;
                    let mesh = self.cluster.secret.mesh_id();
                    self.answer(node, to, |reader| {
                        replaced::answer(reader, mesh, &wanted, now).map(Some)
                    });
                }
                Effect::HandOver { to, room, spans } => {
                    self.answer(node, to, |reader| carried::hand_over(reader, room, &spans));
                }
                Effect::HandOverRecords { to, room, space, collection, keys, whole } => {
                    let shelf = Shelf { mesh: self.cluster.secret.mesh_id(), space, collection };
                    self.answer(node, to, |reader| {
                        let keys = (&shelf, keys.as_slice());
                        if whole {
                            carried::hand_over_whole(reader, room, keys)
                        } else {
                            carried::hand_over_records(reader, room, keys)
                        }
                    });
                }
                Effect::GiveOn { to, at } => {
                    self.answer(node, to, |reader| carried::give_on(reader, &at));
                }
                Effect::Reply { call, result } => self.replied(Reply { node, call, result })?,
                Effect::Notify { room, event } => self.members_told(node, room, &event)?,
                Effect::Pulse(_) => self.begin_beating(node),
                Effect::ShutOut(out) => self.cluster.shut_out(node, out),
                Effect::Known(known) => self.cluster.nodes[node].know(known),
                Effect::Noisy(author) => {
                    let now = self.cluster.now();
                    self.cluster.nodes[node].note_noisy(author, now);
                }
                Effect::Secret(secret) => {
                    self.cluster.coverage.count(Happening::SecretGiven);
                    self.cluster.nodes[node].keep_secret(secret);
                }
                Effect::DrawSecret => self.operators.draw_secret(&mut self.cluster, node),
                Effect::Alarm(alarm) => {
                    self.cluster.say(|| format!("node{node}: {alarm:?}"));
                    self.alarmed(node, &alarm);
                }
                Effect::Stopped => {
                    // The process ends here, and its other effects are lost.
                    self.stopped(node);
                    return Ok(());
                }
                Effect::Tell(event) => {
                    self.holders.told(node, &event);
                    self.correspondents.told(&mut self.cluster, node, &event)?;
                }
            }
        }
        Ok(())
    }

    /// A node tells members of a room something.
    fn members_told(&mut self, node: usize, room: RoomId, event: &RoomEvent) -> Result<(), Broken> {
        let cluster = &mut self.cluster;
        if matches!(event, RoomEvent::Destroyed { .. }) && !cluster.is_exempt(node) {
            cluster.rooms.void.insert(room);
        }
        if let RoomEvent::Message(message) = event {
            proven::shows_live(&self.cluster, &self.holders, node, message)?;
            self.correspondents.heard(&mut self.cluster, node, room, message)?;
        }
        if let RoomEvent::Delivery { request, now, .. } = event {
            self.correspondents.ended(&mut self.cluster, node, (*request, now.stage))?;
        }
        let cluster = &mut self.cluster;
        if let RoomEvent::VoteEnded(result) = event {
            self.votes.has_ended(cluster, node, result)?;
        }
        self.roamers.told(cluster, node, room, event)?;
        self.tasks.told(node, event);
        self.onces.told(cluster, node, event);
        self.approvals.told(cluster, node, event);
        self.script.told(cluster, node, room, event);
        Ok(())
    }

    /// A node answers a call.
    fn replied(&mut self, mut reply: Reply) -> Result<(), Broken> {
        self.acknowledged(&reply)?;
        let was_full = self.operators.was_full(reply.node);
        let (cluster, parts) = self.parts_mut();
        for part in parts {
            let is_full = was_full && matches!(reply.result, Err(Refused::DiskFull));
            if is_full && !part.judges_full_disks() {
                reply.result = Err(Refused::Stopping);
            }
            if part.replied(cluster, &reply)? {
                return Ok(());
            }
        }
        let Reply { call, result, .. } = reply;
        broken("replies", format!("{call:?} was answered twice, or never asked: {result:?}"))
    }

    // Messages.

    fn gossip(&mut self, node: usize, message: &Message) {
        let peers = self.cluster.peers(node);
        self.send(node, &peers, Way::Gossip, message);
    }

    /// A node sends something that begins with a read of its store, if it runs.
    fn answer(
        &mut self,
        node: usize,
        to: NodeId,
        read: impl FnOnce(&Reader) -> Result<Option<Message>, ReadError>,
    ) {
        let running = self.cluster.nodes[node].running.as_ref();
        if let Some(Ok(Some(message))) = running.map(|node| read(&node.reader)) {
            self.send_to(node, to, &message);
        }
    }

    fn send_to(&mut self, node: usize, to: NodeId, message: &Message) {
        if let Some(to) = self.cluster.index(to)
            && self.cluster.are_connected(node, to)
        {
            self.send(node, &[to], Way::Direct, message);
        }
    }

    /// Messages are encoded, decoded and verified once, and then arrive as the network lets them.
    fn send(&mut self, from: usize, to: &[usize], way: Way, message: &Message) {
        if to.is_empty() {
            return;
        }
        let bytes = message.encode();
        self.holders.look_into(from, &bytes);
        let last = self.cluster.nodes.len() - 1;
        if let Some(liar) = self.liar.as_mut().filter(|_| to.contains(&last)) {
            liar.overhear(bytes.clone());
        }
        self.cluster.count_sent(from, to, message);
        self.cluster.transmit(from, to, way, &bytes);
    }

    /// To some of the nodes that the liar reaches: bytes that are no message at all stop at their doors, as in a node.
    fn tell_a_lie(&mut self) {
        let World { cluster, liar: Some(liar), .. } = self else { return };
        if cluster.quiet {
            return;
        }
        let node = cluster.nodes.len() - 1;
        let loud = cluster.plan.loud;
        let bytes = if loud { liar.noise() } else { liar.lie() };
        match cluster.read(&bytes) {
            Some(message) => {
                liar.taken += 1;
                // Of a log with gaps nothing is taken, and so nothing is without effect.
                let told = if loud { 100 } else { 70 };
                let peers = cluster.peers(node).into_iter();
                for to in peers.filter(|_| cluster.dice.chance(told)).collect::<Vec<_>>() {
                    let wait = Duration::from_micros(cluster.dice.within(200, 1_500));
                    let message = Box::new(message.clone());
                    cluster.after(wait, Event::Arrive { to, from: node, message });
                }
            }
            None => liar.refused += 1,
        }
        let wait = cluster.dice.within(1, if loud { 8 } else { 30 });
        cluster.after(Duration::from_millis(wait), Event::Lie);
    }
}
