//! A state of one node: the real engine, and as much of a driver as a small world needs.
//!
//! Every input is a turn of its own. Commits that may wait do so, as in the daemon; a crash takes them.

use std::{collections::BTreeMap, rc::Rc};

use mesh::{
    DeferredCommit, Effect, Engine, Input,
    api::{
        command::{CallId, Caller, Command, Encryption, Outcome, Refused, Say, Speech},
        event::RoomEvent,
    },
    name::{id::NodeId, time::Now},
    order::pulse::{Beat, Pulse, Rhythm},
    wire::message::{Message, Signed},
};
use store::{
    ReadError, Reader, carried, copies,
    records::{self, Shelf},
    replaced,
};

use super::{
    digest::digest_of,
    disk::Disk,
    facts::Facts,
    lab::{Lab, MessageIx},
};
use crate::sim::{
    keys,
    promises::{Broken, broken},
};

/// What a node is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Given {
    /// Its process begins.
    Start,
    /// It is killed.
    Crash,
    /// It is stopped in good order.
    Stop,
    /// A peer is connected.
    Up(u8),
    /// A peer no longer is.
    Down(u8),
    /// A peer said something.
    Heard(u8, MessageIx),
    /// Its agent says something.
    Say,
    /// A beacon is due.
    Beat,
    /// A tick is over; these beacons came.
    Tick(Vec<(u8, MessageIx)>),
}

/// What a node did, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// To all.
    Gossip(MessageIx),
    /// To one.
    Direct(u8, MessageIx),
    /// A beacon, to all.
    Beacon(MessageIx),
    /// Its process ended in good order.
    Stopped,
}

/// The one agent of a node.
#[derive(Clone, Debug)]
enum Agent {
    Away,
    Joining(Caller),
    Here(Caller),
}

/// A call that was not answered yet.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Attach,
    Join,
    Say,
    Stop,
}

/// What lives with a process.
#[derive(Clone, Debug)]
struct Running {
    engine: Engine,
    unsaid: DeferredCommit,
    pulse: Option<Pulse>,
    rhythm: Rhythm,
    agent: Agent,
    open: BTreeMap<u64, Asked>,
    stopping: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Local {
    node: u8,
    running: Option<Running>,
    disk: Disk,
    facts: Rc<Facts>,
    /// Calls and texts, over all starts.
    calls: u64,
    texts: u64,
}

impl Local {
    /// A node that was never started.
    pub(super) fn new(node: u8) -> Local {
        Local {
            node,
            running: None,
            disk: Disk::default(),
            facts: Rc::default(),
            calls: 0,
            texts: 0,
        }
    }

    /// Of everything that decides what it does next.
    pub(super) fn digest(&self) -> u64 {
        let Local { node, running, disk, facts, calls, texts } = self;
        digest_of(&(node, running, disk.digest(), &facts.answered, calls, texts))
    }

    pub(super) fn facts_digest(&self) -> u64 {
        digest_of(&self.facts)
    }

    pub(super) fn facts(&self) -> Rc<Facts> {
        Rc::clone(&self.facts)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.stopping)
    }

    /// Whether its agent is in the lobby, and is heard.
    pub(super) fn can_speak(&self) -> bool {
        let here = |running: &Running| matches!(running.agent, Agent::Here(_)) && !running.stopping;
        self.running.as_ref().is_some_and(here)
    }

    /// Whether a call waits for its answer.
    pub(super) fn awaits_answers(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.open.is_empty())
    }

    /// It is given something.
    ///
    /// # Errors
    ///
    /// The promise that this breaks.
    pub(super) fn take(
        &mut self,
        lab: &mut Lab,
        now: Now,
        given: &Given,
    ) -> Result<Vec<Said>, Broken> {
        let mut work = Work { lab, node: self.node, now, said: Vec::new(), inputs: Vec::new() };
        match given {
            Given::Start => self.start(&mut work),
            Given::Crash => {
                self.running = None;
                if work.lab.setting.forgetful {
                    self.disk.forget_last();
                }
            }
            Given::Stop => {
                if let Some(running) = &mut self.running {
                    running.stopping = true;
                }
                self.ask(&mut work, Asked::Stop, Command::Stop);
            }
            Given::Up(peer) => work.input(Input::PeerUp(work.id(*peer))),
            Given::Down(peer) => work.input(Input::PeerDown(work.id(*peer))),
            Given::Heard(from, message) => work.hear(*from, *message),
            Given::Say => self.say(&mut work),
            Given::Beat => self.beat(&mut work),
            Given::Tick(beacons) => {
                for (from, beacon) in beacons {
                    work.hear(*from, *beacon);
                }
                work.input(Input::Timeout);
            }
        }
        self.turns(&mut work)?;
        Ok(work.said)
    }

    fn start(&mut self, work: &mut Work<'_>) {
        let fixed = &work.lab.nodes[usize::from(work.node)];
        let (id, mesh) = (fixed.id, work.lab.mesh.mesh_id());
        let summary = self.disk.summary(id, mesh, work.now.wall_ms);
        let (identity, config) = (fixed.identity.clone(), fixed.config.clone());
        let attach = keys::attach(&fixed.log, format!("agent{}", work.node).into(), "agent".into());
        self.running = Some(Running {
            engine: Engine::open(identity, config, summary, work.now),
            unsaid: DeferredCommit::default(),
            pulse: None,
            rhythm: Rhythm::default(),
            agent: Agent::Away,
            open: BTreeMap::new(),
            stopping: false,
        });
        self.ask(work, Asked::Attach, Command::Attach(attach));
    }

    fn ask(&mut self, work: &mut Work<'_>, asked: Asked, command: Command) {
        let Some(running) = &mut self.running else { return };
        self.calls += 1;
        // The answer to a stop is the end of the process.
        if !matches!(asked, Asked::Stop) {
            running.open.insert(self.calls, asked);
        }
        work.input(Input::Command { call: CallId(self.calls), command });
    }

    fn say(&mut self, work: &mut Work<'_>) {
        let Some(Running { agent: Agent::Here(caller), .. }) = &self.running else { return };
        let caller = caller.clone();
        self.texts += 1;
        let say = Say {
            room: work.lab.lobby,
            speech: Speech::Chat,
            content: format!("{} of node{}", self.texts, work.node),
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
            encryption: Encryption::None,
            durable: None,
            conversing: None,
        };
        self.ask(work, Asked::Say, Command::Say { caller, say });
    }

    fn beat(&mut self, work: &mut Work<'_>) {
        let Some(running) = &mut self.running else { return };
        let Some(pulse) = running.pulse else { return };
        let fixed = &work.lab.nodes[usize::from(work.node)];
        let Some(Beat { beacon, .. }) = running.rhythm.beat(fixed.id, pulse, 0) else { return };
        let signed = Signed::new(work.lab.mesh.mesh_id(), &fixed.identity, beacon);
        let message = work.lab.send(&Message::Beacon(signed));
        work.said.push(Said::Beacon(message));
    }

    /// Turns, until nothing is left to be done.
    fn turns(&mut self, work: &mut Work<'_>) -> Result<(), Broken> {
        loop {
            let Some(running) = &mut self.running else { return Ok(()) };
            for input in std::mem::take(&mut work.inputs) {
                running.engine.handle(work.now, input);
            }
            let turn = running.engine.take_turn();
            let Some(turn) = running.unsaid.add(turn, work.now.mono) else { return Ok(()) };
            if !turn.batch.is_empty() {
                Rc::make_mut(&mut self.facts).stored(&turn.batch)?;
                self.disk.commit(turn.batch);
            }
            for effect in turn.effects {
                self.perform(work, effect)?;
            }
            if work.inputs.is_empty() {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, work: &mut Work<'_>, effect: Effect) -> Result<(), Broken> {
        // Its process has ended, and its other effects are lost.
        let Some(running) = &mut self.running else { return Ok(()) };
        match effect {
            Effect::Broadcast { message, .. } => {
                if work.lab.setting.gossip {
                    let message = work.lab.send(&message);
                    work.said.push(Said::Gossip(message));
                }
            }
            Effect::Send { to, message } => work.send(to, &message),
            Effect::Reply { call, result } => self.replied(work, call, result)?,
            Effect::Notify { room, event: RoomEvent::Message(message) } => {
                self.facts.told(room, &message)?;
            }
            Effect::Pulse(pulse) => running.pulse = Some(pulse),
            Effect::Stopped => {
                self.running = None;
                work.said.push(Said::Stopped);
            }
            Effect::Notify { .. }
            | Effect::Tell(_)
            | Effect::ShutOut(_)
            | Effect::Known(_)
            | Effect::Secret(_)
            | Effect::DrawSecret
            | Effect::Noisy(_)
            | Effect::Alarm(_) => {}
            Effect::SendSpans { .. }
            | Effect::SendBodies { .. }
            | Effect::AskCopies { .. }
            | Effect::SendCopies { .. }
            | Effect::AskReceipt { .. }
            | Effect::SendReceipt { .. }
            | Effect::SendRecords { .. }
            | Effect::SendContents { .. }
            | Effect::SendReplaced { .. }
            | Effect::HandOver { .. }
            | Effect::HandOverRecords { .. }
            | Effect::GiveOn { .. } => self.answer(work, effect)?,
        }
        Ok(())
    }

    /// What begins with a look into the store.
    fn answer(&self, work: &mut Work<'_>, effect: Effect) -> Result<(), Broken> {
        let wall_ms = work.now.wall_ms;
        let reader = self.disk.reader(wall_ms);
        let mesh = work.lab.mesh.mesh_id();
        if let Some((to, message)) = read(&reader, (mesh, wall_ms), effect)? {
            work.send(to, &message);
        }
        Ok(())
    }

    fn replied(
        &mut self,
        work: &mut Work<'_>,
        CallId(call): CallId,
        result: Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let Some(asked) = running.open.remove(&call) else {
            return broken("replies", format!("{call} was answered twice, or never asked"));
        };
        match (asked, result) {
            (Asked::Attach, Ok(Outcome::Attached(attached))) => {
                let caller = Caller {
                    agent: format!("agent{}", work.node).into(),
                    key: *keys::KEY,
                    registration: attached.registration,
                };
                running.agent = Agent::Joining(caller.clone());
                let room = work.lab.lobby;
                self.ask(work, Asked::Join, Command::Join { caller, room });
            }
            (Asked::Join, Ok(_)) => {
                if let Agent::Joining(caller) = &running.agent {
                    running.agent = Agent::Here(caller.clone());
                }
            }
            (Asked::Say, Ok(Outcome::Said(said))) => {
                Rc::make_mut(&mut self.facts).answered(work.lab.lobby, &said)?;
            }
            (_, Err(Refused::Stopping)) => {}
            (asked, result) => {
                return broken("replies", format!("{asked:?} was answered {result:?}"));
            }
        }
        Ok(())
    }
}

/// What a peer is sent, read from the store.
fn read(
    reader: &Reader,
    (mesh, wall_ms): (mesh::name::id::MeshId, u64),
    effect: Effect,
) -> Result<Option<(NodeId, Message)>, ReadError> {
    let shelf = |space, collection| Shelf { mesh, space, collection };
    let (to, message) = match effect {
        Effect::SendSpans { to, room, spans } => (to, Some(reader.answer_spans(room, &spans)?)),
        Effect::SendBodies { to, room, at } => (to, Some(reader.answer_bodies(room, &at)?)),
        Effect::AskCopies { to, room, copies } => (to, copies::ask(reader, room, &copies)?),
        Effect::SendCopies { to, room, copies } => (to, copies::answer(reader, room, &copies)?),
        Effect::AskReceipt { to, nonce, room, copy } => {
            (to, copies::ask_receipt(reader, nonce, room, copy)?)
        }
        Effect::SendReceipt { to, nonce, room, copied } => {
            let held = copies::holding(reader, room, &copied)?.held;
            (to, Some(Message::Receipt { nonce, held, agents: Vec::new() }))
        }
        Effect::SendRecords { to, space, collection, keys } => {
            (to, Some(records::answer(reader, &shelf(space, collection), &keys)?))
        }
        Effect::SendContents { to, space, collection, keys, lacking } => {
            (to, Some(records::contents(reader, &shelf(space, collection), &keys, lacking)?))
        }
        Effect::SendReplaced { to, wanted } => {
            (to, Some(replaced::answer(reader, mesh, &wanted, wall_ms)?))
        }
        Effect::HandOver { to, room, spans } => (to, carried::hand_over(reader, room, &spans)?),
        Effect::HandOverRecords { to, room, space, collection, keys, whole } => {
            let keys = (&shelf(space, collection), keys.as_slice());
            let parcel = if whole {
                carried::hand_over_whole(reader, room, keys)?
            } else {
                carried::hand_over_records(reader, room, keys)?
            };
            (to, parcel)
        }
        Effect::GiveOn { to, at } => (to, carried::give_on(reader, &at)?),
        Effect::Broadcast { .. }
        | Effect::Send { .. }
        | Effect::Reply { .. }
        | Effect::Notify { .. }
        | Effect::Tell(_)
        | Effect::ShutOut(_)
        | Effect::Known(_)
        | Effect::Secret(_)
        | Effect::DrawSecret
        | Effect::Pulse(_)
        | Effect::Noisy(_)
        | Effect::Alarm(_)
        | Effect::Stopped => return Ok(None),
    };
    Ok(message.map(|message| (to, message)))
}

/// A node at work on one input.
struct Work<'l> {
    lab: &'l mut Lab,
    node: u8,
    now: Now,
    said: Vec<Said>,
    inputs: Vec<Input>,
}

impl Work<'_> {
    fn id(&self, node: u8) -> NodeId {
        self.lab.nodes[usize::from(node)].id
    }

    fn input(&mut self, input: Input) {
        self.inputs.push(input);
    }

    fn hear(&mut self, from: u8, message: MessageIx) {
        let message = self.lab.message(message).clone();
        self.inputs.push(Input::Message { from: self.id(from), message });
    }

    fn send(&mut self, to: NodeId, message: &Message) {
        if let Some(to) = self.lab.index(to) {
            let message = self.lab.send(message);
            self.said.push(Said::Direct(to, message));
        }
    }
}
