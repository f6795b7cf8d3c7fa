//! Requests of agents, and the fate of them: the node of the agent that is asked says that one is there and was handed
//! over, and the one of its author gives it up after a while (`docs/decisions/sessions.md`, "The fate of a request").

pub(crate) mod fates;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{inboxes::Inboxes, known::Known};
use crate::{
    api::{
        batch::Change,
        command::{Outcome, Refused},
        delivery::{Ended, Notice, RequestRecord, Stage},
        event::{Delivered, RoomEvent},
    },
    fold::act::{Fold as _, Spoken},
    limits::{
        ARRIVALS_MAX, ARRIVED_AFTER, ARRIVED_AWAY_AFTER, ARRIVED_STEP, GIVE_UP_AFTER_START,
        GIVE_UP_BEHIND_AFTER, REQUESTS_AT_ONCE_MAX, UNDELIVERED_BYTES_PER_AGENT_MAX,
        UNDELIVERED_MAX, UNDELIVERED_PER_AGENT_MAX,
    },
    name::id::{AgentId, EntryRef, KeyPrint, LocalRef, MessageId, NodeId, RoomId},
    wire::{
        delivery::{DeliveryAct, Reason, Word},
        entry::Body,
        kinds::CHAT,
    },
};
use fates::{Fates, Step};

/// The requests of one agent that wait.
#[derive(Clone, Debug, Default)]
struct OfAgent {
    count: usize,
    bytes: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Deliveries {
    pub(super) fates: Fates,
    /// Requests of this node's agents that nobody was given yet: at most [`UNDELIVERED_MAX`].
    open: BTreeMap<MessageId, RequestRecord>,
    /// By when they are given up. Unix milliseconds.
    ends: BTreeSet<(u64, MessageId)>,
    of_agent: BTreeMap<AgentId, OfAgent>,
    /// Requests that have come here, and when it is to be said that they have: at most [`ARRIVALS_MAX`].
    arrivals: BTreeMap<(RoomId, EntryRef), (Duration, AgentId)>,
    says_at: BTreeSet<(Duration, RoomId, EntryRef)>,
}

/// A request that an agent of this node has written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) by: &'a AgentId,
    pub(super) room: RoomId,
    pub(super) at: LocalRef,
    pub(super) bytes: usize,
}

impl Deliveries {
    pub(super) fn new(known: &Known) -> Deliveries {
        Deliveries {
            fates: Fates::new(known.directory.proofs().clone()),
            open: BTreeMap::new(),
            ends: BTreeSet::new(),
            of_agent: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            says_at: BTreeSet::new(),
        }
    }

    /// As it was when the node last stopped. Nobody is told.
    pub(super) fn restore(&mut self, known: &mut Known, stored: Vec<RequestRecord>) {
        for room in known.rooms.values() {
            let Some(direct) = known.directory.direct.get(room.replica.id) else { continue };
            for request in room.folds.deliveries.requests() {
                let words = room.folds.deliveries.of(request);
                self.fates.set((room.replica.id, &direct.sides), request, words);
            }
        }
        for record in stored {
            let Some(room) = known.rooms.get(&record.room) else { continue };
            let request = room.replica.name_of(record.at);
            // The node may go on under a new identity: those before are another's.
            let is_own = request.log.author == known.cx.me && room.replica.counts(record.at);
            let message = MessageId::new(record.room, request.log, request.seq);
            if is_own {
                self.put(known, message, record);
            } else {
                known.cx.change(Change::Request { message, record: None });
            }
        }
    }

    // Requests of this node's agents.

    /// Whether an agent may ask one more thing of one that may be away.
    pub(super) fn may_ask(&self, agent: &AgentId) -> Result<(), Refused> {
        let is_full = self.of_agent.get(agent).is_some_and(|of| {
            of.count >= UNDELIVERED_PER_AGENT_MAX || of.bytes >= UNDELIVERED_BYTES_PER_AGENT_MAX
        });
        if is_full || self.open.len() >= UNDELIVERED_MAX {
            return Err(Refused::Full("too many undelivered messages".to_owned()));
        }
        Ok(())
    }

    /// An agent of this node has asked another one for something.
    pub(super) fn note_asked(&mut self, known: &mut Known, asked: Asked<'_>) {
        let Asked { by, room, at, bytes } = asked;
        let Some(direct) = known.directory.direct.get(room) else { return };
        let to = direct.sides.peer_of(by).clone();
        let Some(message) = known.message_id(room, at).filter(|_| to != *by) else { return };
        let (wall_ms, bytes) = (known.cx.now.wall_ms, u64::try_from(bytes).unwrap_or(u64::MAX));
        let record = RequestRecord { room, at, by: by.clone(), to, wall_ms, bytes };
        known.cx.change(Change::Request { message, record: Some(record.clone()) });
        self.put(known, message, record);
    }

    fn put(&mut self, known: &Known, message: MessageId, record: RequestRecord) {
        let of = self.of_agent.entry(record.by.clone()).or_default();
        of.count += 1;
        of.bytes = of.bytes.saturating_add(record.bytes);
        self.ends.insert((end_of(known, &record), message));
        self.open.insert(message, record);
    }

    /// As if so many waited.
    #[cfg(test)]
    pub(super) fn pretend_kept(&mut self, agent: &str, count: usize) {
        self.of_agent.entry(agent.into()).or_default().count = count;
    }

    /// It does not wait any more.
    fn close(&mut self, known: &mut Known, message: MessageId) {
        let Some(record) = self.open.remove(&message) else { return };
        self.ends.remove(&(end_of(known, &record), message));
        if let Some(of) = self.of_agent.get_mut(&record.by) {
            of.count = of.count.saturating_sub(1);
            of.bytes = of.bytes.saturating_sub(record.bytes);
            if of.count == 0 {
                self.of_agent.remove(&record.by);
            }
        }
        known.cx.change(Change::Request { message, record: None });
    }

    /// Requests whose time is over are given up; and it is said which have come here.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        self.say_arrived(known);
        if known.cx.now.mono < known.started + GIVE_UP_AFTER_START {
            return;
        }
        let now_ms = known.cx.now.wall_ms;
        let over = self.ends.iter().take_while(|(end, _)| *end <= now_ms);
        let over: Vec<MessageId> =
            over.take(REQUESTS_AT_ONCE_MAX).map(|(_, message)| *message).collect();
        for message in over {
            self.give_up(known, message, Reason::Expired);
        }
    }

    /// Says that a request is not handed over any more, unless it was.
    fn give_up(&mut self, known: &mut Known, message: MessageId, reason: Reason) {
        let Some(record) = self.open.get(&message).cloned() else { return };
        let Some(room) = known.rooms.get(&record.room) else {
            return self.close(known, message);
        };
        // Others may have handed it over, and say so in entries that are on their way.
        let behind = room.replica.sync.is_behind() || !room.replica.pending.is_empty();
        let patience = u64::try_from(GIVE_UP_BEHIND_AFTER.as_millis()).unwrap_or(u64::MAX);
        let waits = known.cx.now.wall_ms < end_of(known, &record).saturating_add(patience);
        if reason == Reason::Expired && behind && waits {
            return;
        }
        let request = room.replica.name_of(record.at);
        let ended = self.fates.of(record.room, request, &record.by);
        if ended.is_some_and(|ended| ended.stage >= Stage::Failed) {
            return self.close(known, message);
        }
        let word = Word::Failed(reason);
        let act = DeliveryAct { request, to: record.to, key: None, word };
        // Nothing that this node writes counts any more: it is forgotten, for nobody would hear of it.
        if !write(known, record.room, act) {
            self.close(known, message);
        }
    }

    /// A key counts no more: its agents are not handed anything.
    pub(super) fn on_revoked(&mut self, known: &mut Known, key: KeyPrint) {
        let is_its = |known: &Known, record: &RequestRecord| key_of(known, record) == Some(key);
        self.give_up_those(known, is_its, &Reason::KeyRevoked);
    }

    /// A node was removed: agents of its own key are at no other one.
    pub(super) fn on_parted(&mut self, known: &mut Known, node: NodeId) {
        let is_its = |known: &Known, record: &RequestRecord| {
            let Some(key) = key_of(known, record).and_then(KeyPrint::checked) else { return false };
            let nodes = known.directory.keys().shown_at(key);
            let is_gone = |node: &NodeId| known.cx.parted.has(*node);
            !known.spans(key) && nodes.contains(&node) && nodes.iter().all(is_gone)
        };
        self.give_up_those(known, is_its, &Reason::NodeGone);
    }

    fn give_up_those(
        &mut self,
        known: &mut Known,
        which: impl Fn(&Known, &RequestRecord) -> bool,
        reason: &Reason,
    ) {
        let those = self.open.iter().filter(|(_, record)| which(known, record));
        let those: Vec<MessageId> = those.map(|(message, _)| *message).collect();
        for message in those {
            self.give_up(known, message, reason.clone());
        }
    }

    // Requests of others, to agents of this node.

    /// A message was delivered here: soon it is said that it has arrived, if nobody says more until then.
    pub(super) fn on_delivered(&mut self, known: &Known, room: RoomId, entry: &Delivered) {
        let Some((request, to)) = request_of(known, room, entry) else { return };
        if self.arrivals.len() >= ARRIVALS_MAX || speaks_for(known, room, &to).is_none() {
            return;
        }
        let after = if known.rosters.own(&to).is_some() || known.cx.addressees.contains(&to) {
            ARRIVED_AFTER
        } else {
            let nodes = known.nodes_with(room);
            let rank = nodes.iter().position(|node| *node == known.cx.me).unwrap_or(nodes.len());
            ARRIVED_AWAY_AFTER + ARRIVED_STEP * u32::try_from(rank).unwrap_or(u32::MAX)
        };
        let at = known.cx.now.mono + after;
        if self.arrivals.insert((room, request), (at, to)).is_none() {
            self.says_at.insert((at, room, request));
        }
    }

    fn say_arrived(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        while let Some((at, room, request)) = self.says_at.first().copied() {
            if at > now {
                return;
            }
            self.says_at.pop_first();
            let Some((_, to)) = self.arrivals.remove(&(room, request)) else { continue };
            if self.stage(known, room, request, &to).is_none() {
                self.say(known, (room, request), to, Word::Arrived);
            }
        }
    }

    /// Requests were handed to an agent of this node.
    pub(super) fn handed(
        &mut self,
        known: &mut Known,
        agent: &AgentId,
        room: RoomId,
        requests: &[EntryRef],
    ) -> Outcome {
        for request in requests.iter().take(REQUESTS_AT_ONCE_MAX) {
            let stage = self.stage(known, room, *request, agent);
            if stage != Some(Stage::Delivered) {
                self.say(known, (room, *request), agent.clone(), Word::Delivered);
            }
        }
        Outcome::Done
    }

    /// An agent of this node has answered a message: it was handed over.
    pub(super) fn answered(
        &mut self,
        known: &mut Known,
        agent: &AgentId,
        (room, message): (RoomId, MessageId),
    ) {
        let Some(state) = known.rooms.get(&room) else { return };
        let of_log = |log| message.seq_in(room, log).map(|seq| EntryRef { log, seq });
        let request = state.replica.logs.iter().find_map(|(_, log)| of_log(log.id));
        if let Some(request) = request {
            self.handed(known, agent, room, &[request]);
        }
    }

    /// A rule of this node keeps a request from an agent, which is this node's: it is attached here, or has an inbox here. Of
    /// others their nodes say that.
    pub(super) fn refused(
        &mut self,
        known: &mut Known,
        inboxes: &Inboxes,
        (room, entry): (RoomId, &Delivered),
        rule: &str,
    ) {
        let Some((request, to)) = request_of(known, room, entry) else { return };
        let is_here = known.rosters.record(&to).is_some_and(|(node, _)| node == known.cx.me);
        if !is_here && !inboxes.has(known, &to) {
            return;
        }
        if self.stage(known, room, request, &to) < Some(Stage::Failed) {
            let reason = Reason::Refused(rule.to_owned());
            self.say(known, (room, request), to, Word::Failed(reason));
        }
    }

    /// Whether a message was given up before it was handed over.
    pub(super) fn is_withdrawn(&self, known: &Known, room: RoomId, entry: &Delivered) -> bool {
        let Some(direct) = known.directory.direct.get(room) else { return false };
        let request = EntryRef { log: entry.log, seq: entry.at.seq };
        direct.sides.iter().any(|(by, _)| {
            let fate = self.fates.of(room, request, by);
            fate.is_some_and(|fate| fate.is_withdrawn())
        })
    }

    /// How far a request has come, of which this agent is asked.
    fn stage(&self, known: &Known, room: RoomId, request: EntryRef, to: &AgentId) -> Option<Stage> {
        let sides = &known.directory.direct.get(room)?.sides;
        self.fates.of(room, request, sides.peer_of(to)).map(|fate| fate.stage)
    }

    /// This node says something for an agent, once.
    fn say(
        &mut self,
        known: &mut Known,
        (room, request): (RoomId, EntryRef),
        to: AgentId,
        word: Word,
    ) {
        let stage = match &word {
            Word::Arrived => Stage::Arrived,
            Word::Delivered => Stage::Delivered,
            Word::Failed(_) => Stage::Failed,
        };
        let Some(key) = speaks_for(known, room, &to) else { return };
        let Some(state) = known.rooms.get(&room) else { return };
        let said = &state.folds.deliveries;
        let has_said = said.of(request).is_some_and(|words| words.has(known.cx.me, stage));
        let is_here = state.replica.logs.head_of(request.log) >= request.seq;
        if has_said || said.is_forgotten(request) || !is_here {
            return;
        }
        let act = DeliveryAct { request, to, key: key.checked(), word };
        // One that cannot be written is not said: it stays as far as it is known.
        write(known, room, act);
    }

    // Words of all nodes.

    /// Takes in what has become known in a room. Returns the requests of which nobody waits for an answer any more.
    pub(super) fn settle(
        &mut self,
        known: &mut Known,
        inboxes: &mut Inboxes,
        id: RoomId,
    ) -> Vec<EntryRef> {
        let mut failed = Vec::new();
        let Some(room) = known.rooms.get_mut(&id) else { return failed };
        // One that is not listed yet: its words stay news until it is.
        let Some(direct) = known.directory.direct.get(id) else { return failed };
        let sides = direct.sides.clone();
        for request in room.folds.deliveries.take_news(known.cx.now.mono) {
            let Some(room) = known.rooms.get(&id) else { return failed };
            let words = room.folds.deliveries.of(request);
            let at =
                room.replica.logs.ix(request.log).map(|log| LocalRef { log, seq: request.seq });
            let steps = self.fates.set((id, &sides), request, words);
            for step in steps {
                let by = sides.peer_of(&step.to).clone();
                self.note(known, (id, request), &step);
                if step.now.stage == Stage::Failed {
                    failed.push(request);
                }
                if let (Some(at), Some(ended)) = (at, ended(&step)) {
                    inboxes.notice(known, &by, (id, Notice { at, ended }));
                }
            }
        }
        failed
    }

    /// A request has come further.
    fn note(&mut self, known: &mut Known, (room, request): (RoomId, EntryRef), step: &Step) {
        let message = MessageId::new(room, request.log, request.seq);
        if step.now.stage >= Stage::Failed {
            let is_its = self.open.get(&message).is_some_and(|record| record.to == step.to);
            if is_its {
                self.close(known, message);
            }
        }
        if step.now.stage == Stage::Delivered
            && let Some((at, _)) = self.arrivals.remove(&(room, request))
        {
            self.says_at.remove(&(at, room, request));
        }
        let event =
            RoomEvent::Delivery { request: message, to: step.to.clone(), now: step.now.clone() };
        known.cx.notify(room, event);
    }
}

/// After a start: nobody is told of what was known before.
pub(super) fn drop_news(known: &mut Known) {
    for room in known.rooms.values_mut() {
        drop(room.folds.deliveries.take_news(known.cx.now.mono));
    }
}

/// What an author is told of: that a request has failed, and that one was handed over after that.
fn ended(step: &Step) -> Option<Ended> {
    match (step.before, step.now.stage) {
        (None | Some(Stage::Arrived), Stage::Failed) => Some(Ended::Failed),
        (Some(Stage::Failed), Stage::Delivered) => Some(Ended::Delivered),
        (_, Stage::Arrived | Stage::Failed | Stage::Delivered) => None,
    }
}

/// Writes an act into this node's log. Not of the kinds that take memory for good, so it is not asked how much there is.
fn write(known: &mut Known, room: RoomId, act: DeliveryAct) -> bool {
    let Some(state) = known.rooms.get_mut(&room) else { return false };
    state.is_writable(&known.cx) && state.append(&mut known.cx, &Body::Delivery(act)).is_some()
}

fn end_of(known: &Known, record: &RequestRecord) -> u64 {
    let ttl = u64::try_from(known.config.request_ttl.as_millis()).unwrap_or(u64::MAX);
    record.wall_ms.saturating_add(ttl)
}

/// The key of the agent that is asked, as it is now.
fn key_of(known: &Known, record: &RequestRecord) -> Option<KeyPrint> {
    let sides = &known.directory.direct.get(record.room)?.sides;
    let side = sides.iter().find(|(agent, _)| **agent == record.to);
    side.map(|(_, key)| known.directory.current(key))
}

/// A request that was delivered in a direct room, and the agent that is asked.
fn request_of(known: &Known, room: RoomId, entry: &Delivered) -> Option<(EntryRef, AgentId)> {
    let said = entry.said.as_ref().filter(|_| entry.facts.kind == CHAT)?;
    said.conversation.filter(|place| place.expects_reply)?;
    let to = known.directory.direct.get(room)?.sides.peer_of(&said.agent);
    let request = EntryRef { log: entry.log, seq: entry.at.seq };
    (*to != said.agent).then(|| (request, to.clone()))
}

/// The key by which this node can speak for one of the two agents of a direct room. `None`: others would not believe it.
fn speaks_for(known: &Known, room: RoomId, agent: &AgentId) -> Option<KeyPrint> {
    let sides = &known.directory.direct.get(room)?.sides;
    let (_, key) = sides.iter().find(|(side, _)| *side == agent)?;
    let keys = known.directory.keys();
    let can =
        |key: &KeyPrint| keys.speaks_for(&Spoken { node: known.cx.me, key: key.checked(), agent });
    [known.directory.current(key), key].into_iter().find(can)
}
