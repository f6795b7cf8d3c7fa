//! The one thread that owns engine and store: inputs in, one commit, effects out.
//!
//! Persist, then speak; and nothing spoken here ever waits for a peer, a client or a disk.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};

use bridge::Hub;
use bytes::Bytes;
use mesh::{
    Alarm, DeferredCommit, Effect, Engine, Input, Turn,
    api::{
        command::{CallId, Outcome, Refused},
        event::RoomEvent,
    },
    name::{
        id::{MeshId, NodeId, RoomId},
        time::Now,
    },
    wire::{
        entry::{Parted, Parting},
        message::Message,
    },
};
use net::Net;
use store::{CommitError, Store, records::Shelf};

use crate::{
    beacon::PulseCell,
    clock::Clock,
    ending::{End, Ending},
    limits::{
        EFFECTS_PER_WAKE, INPUTS_AT_ONCE, INPUTS_PER_TURN, REMOVAL_NEWS_MS, SETTLE_AFTER,
        TURN_WITHIN,
    },
    metrics::meters::Meters,
    outgoing::{Outgoing, Question},
    queue::{Asker, Item, Queue},
    secret::{self, Keeper},
    topics::topic_of,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) mesh: MeshId,
    pub(crate) engine: Engine,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) queue: Arc<Queue>,
    pub(crate) net: Net,
    pub(crate) secret: Arc<Keeper>,
    pub(crate) outgoing: Outgoing,
    pub(crate) hub: Arc<Hub>,
    pub(crate) pulse: Arc<PulseCell>,
    pub(crate) meters: Arc<Meters>,
    /// The engine's first turn, which tells of the stored state, is still to come.
    pub(crate) opening: bool,
}

impl Driver {
    /// Runs on a thread of its own until it is told to stop, or cannot go on.
    pub(crate) fn start(self, ending: Ending) -> std::io::Result<thread::JoinHandle<()>> {
        thread::Builder::new().name("engine".to_owned()).spawn(move || {
            let queue = self.queue.clone();
            let last = LastWords { queue: &queue, ending: &ending };
            let end = self.run();
            // Closed before it is said: nobody is to wait for an engine that is gone.
            drop(last);
            ending.say(end);
        })
    }

    fn run(mut self) -> End {
        let mut calls = OpenCalls::default();
        let mut deferred = DeferredCommit::default();
        let mut inputs = 0;
        let mut written = self.clock.now().mono;
        loop {
            // The first turn is of the engine's opening: it has no input.
            let turn = self.engine.take_turn();
            if let Some(turn) = deferred.add(turn, self.clock.now().mono) {
                if !turn.batch.is_empty() {
                    written = self.clock.now().mono;
                } else if let Err(error) = self.settle(written) {
                    return End::Failed(error);
                }
                match self.end_turn(turn, std::mem::take(&mut inputs), &mut calls) {
                    Ok(false) => {}
                    Ok(true) => return End::Stopped,
                    Err(error) => return End::Failed(error),
                }
            }
            let Some(items) = self.next(deferred.due()) else { return End::Stopped };
            inputs += self.handle(items, &mut calls);
        }
    }

    /// The items that wait; none when the engine is due, or, at the time given, its deferred
    /// commit.
    fn next(&mut self, due: Option<Duration>) -> Option<Vec<Item>> {
        let deadline = self.engine.deadline();
        let until = due.map_or(deadline, |due| due.min(deadline));
        let wait = until.saturating_sub(self.clock.now().mono);
        let items = self.queue.take(INPUTS_AT_ONCE, wait)?;
        let now = self.clock.now();
        if items.is_empty() && now.mono >= deadline {
            self.engine.handle(now, Input::Timeout);
        }
        Some(items)
    }

    /// Handles these items and those that wait besides, as far as a turn goes: how many.
    fn handle(&mut self, mut items: Vec<Item>, calls: &mut OpenCalls) -> usize {
        let enough = self.clock.now().mono + TURN_WITHIN;
        let mut inputs = 0;
        while !items.is_empty() {
            inputs += items.len();
            for item in items {
                let input = match item {
                    Item::Peer(input) => input,
                    Item::Command(command, asker) => {
                        Input::Command { call: calls.open(asker), command }
                    }
                };
                self.engine.handle(self.clock.now(), input);
            }
            if inputs >= INPUTS_PER_TURN || self.clock.now().mono >= enough {
                break;
            }
            // Closed: the inputs so far end as any turn, if anybody hears of it.
            let Some(more) = self.queue.take(INPUTS_AT_ONCE, Duration::ZERO) else { break };
            items = more;
        }
        inputs
    }

    /// Whether it was the last one.
    fn end_turn(
        &mut self,
        mut turn: Turn,
        inputs: usize,
        calls: &mut OpenCalls,
    ) -> anyhow::Result<bool> {
        let rows = turn.batch.len();
        if rows > 0 || turn.effects.iter().any(is_secret) {
            let begun = self.clock.now();
            if !self.write(&mut turn)? {
                // Nothing is to become due.
                let still = self.engine.deadline().saturating_sub(Duration::from_nanos(1));
                let at = Now { mono: begun.mono.min(still), ..begun };
                match self.wait_for_room(turn, at, calls)? {
                    Some(written) => turn = written,
                    None => return Ok(true),
                }
            }
            let took = self.clock.now().mono.saturating_sub(begun.mono);
            if rows > 0 {
                self.meters.committed(took, inputs, rows);
            }
        }
        self.opening = false;
        let mut stopped = false;
        let mut effects = turn.effects.into_iter();
        while effects.len() > 0 {
            let _hold = self.hub.hold();
            for effect in effects.by_ref().take(EFFECTS_PER_WAKE) {
                stopped |= self.perform(effect, calls)?;
            }
        }
        Ok(stopped)
    }

    /// Whether there was room for all of it. Parts that are written are not in it any more.
    pub(crate) fn write(&mut self, turn: &mut Turn) -> anyhow::Result<bool> {
        if !turn.batch.is_empty() {
            self.store.set_wall_ms(self.clock.now().wall_ms);
            match self.store.commit(&turn.batch) {
                Ok(()) => turn.batch.clear(),
                Err(CommitError::Full) => return Ok(false),
                Err(error) => return Err(anyhow::Error::new(error).context("write the store")),
            }
        }
        while let Some(at) = turn.effects.iter().position(is_secret) {
            if let Effect::Secret(link) = &turn.effects[at]
                && !self.secret.renew(link.clone(), &self.net)?
            {
                return Ok(false);
            }
            turn.effects.remove(at);
        }
        Ok(true)
    }

    /// When nothing was written for a while the store is made ready for a quick start.
    fn settle(&mut self, written: Duration) -> anyhow::Result<()> {
        if !self.store.is_unsettled() || self.clock.now().mono < written + SETTLE_AFTER {
            return Ok(());
        }
        match self.store.settle() {
            // The next turn that writes says that the disk is full, and waits for room.
            Ok(()) | Err(CommitError::Full) => Ok(()),
            Err(error) => Err(anyhow::Error::new(error).context("write the store")),
        }
    }

    /// Whether the node may stop now.
    pub(crate) fn perform(&self, effect: Effect, calls: &mut OpenCalls) -> anyhow::Result<bool> {
        match effect {
            Effect::Broadcast { room, message } => self.broadcast(room, &message),
            Effect::Send { to, message } => self.outgoing.send(to, message.encode()),
            Effect::SendSpans { to, room, spans } => {
                self.outgoing.answer(to, Question::Spans(room, spans));
            }
            Effect::SendBodies { to, room, at } => {
                self.outgoing.answer(to, Question::Bodies(room, at));
            }
            Effect::SendRecords { to, space, collection, keys } => {
                let shelf = Shelf { mesh: self.mesh, space, collection };
                self.outgoing.answer(to, Question::Records(shelf, keys));
            }
            Effect::SendContents { to, space, collection, keys, lacking } => {
                let shelf = Shelf { mesh: self.mesh, space, collection };
                self.outgoing.answer(to, Question::Contents(shelf, keys, lacking));
            }
            Effect::SendReplaced { to, wanted } => {
                self.outgoing.answer(to, Question::Replaced(self.mesh, wanted));
            }
            Effect::HandOver { to, room, spans } => {
                self.outgoing.answer(to, Question::HandOver(room, spans));
            }
            Effect::HandOverRecords { to, room, space, collection, keys, whole } => {
                let shelf = Shelf { mesh: self.mesh, space, collection };
                self.outgoing.answer(to, Question::HandOverRecords(room, (shelf, keys), whole));
            }
            Effect::GiveOn { to, at } => self.outgoing.answer(to, Question::Carried(at)),
            Effect::AskCopies { to, room, copies } => self.outgoing.ask_copies(to, room, copies),
            Effect::SendCopies { to, room, copies } => {
                self.outgoing.answer(to, Question::Copies(room, copies));
            }
            Effect::AskReceipt { to, nonce, room, copy } => {
                self.outgoing.ask_receipt(to, room, (nonce, copy));
            }
            Effect::SendReceipt { to, nonce, room, copied } => {
                self.outgoing.answer(to, Question::Receipt(room, nonce, copied));
            }
            Effect::Reply { call, result } => {
                if let Ok(Outcome::Said(said)) = &result {
                    self.meters.said(said, calls.waited(call));
                }
                calls.close(call, result);
            }
            Effect::Notify { room, event } => {
                if matches!(event, RoomEvent::Message(_)) {
                    self.meters.delivered.fetch_add(1, Relaxed);
                }
                self.hub.notify(room, event);
            }
            Effect::Tell(event) => self.hub.tell(event),
            Effect::Known(node) => {
                self.net.know(node.0);
                self.queue.noise.know(node);
            }
            // Durable, and in use, before anything of its turn is said.
            Effect::Secret(_) => {}
            Effect::DrawSecret => secret::draw_for(&self.queue)?,
            Effect::ShutOut(node) => self.net.shut_out(node.0),
            Effect::Pulse(pulse) => self.pulse.set(pulse),
            Effect::Noisy(author) => self.queue.noise.note(author),
            Effect::Alarm(Alarm::Parted { node, removal }) if node.0 == self.net.node() => {
                farewell(removal)
            }
            Effect::Alarm(alarm) => {
                self.meters.alarm(&alarm);
                warn(&alarm);
            }
            Effect::Stopped => return Ok(true),
        }
        Ok(false)
    }

    fn broadcast(&self, room: Option<RoomId>, message: &Message) {
        let topic = topic_of(room);
        let payload = Bytes::from(message.encode());
        self.meters.sent.gossip.fetch_add(payload.len() as u64, Relaxed);
        if let Err(error) = self.net.publish(topic, payload) {
            tracing::debug!(%error, "gossip is left out; peers will ask");
        }
    }
}

fn is_secret(effect: &Effect) -> bool {
    matches!(effect, Effect::Secret(_))
}

/// When the thread ends, however: a panic is an end, too.
struct LastWords<'a> {
    queue: &'a Queue,
    ending: &'a Ending,
}

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        self.queue.close();
        if thread::panicking() {
            self.ending.say(End::Failed(anyhow::anyhow!("the engine panicked; this is a bug")));
        }
    }
}

/// Commands without an answer so far.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    last: u64,
    open: HashMap<CallId, Asker>,
}

impl OpenCalls {
    pub(crate) fn open(&mut self, mut asker: Asker) -> CallId {
        self.last += 1;
        let call = CallId(self.last);
        if let Asker::Client(reply) = &mut asker {
            reply.take();
        }
        if !matches!(asker, Asker::Nobody) {
            self.open.insert(call, asker);
        }
        call
    }

    /// How long a client has waited for the answer.
    fn waited(&self, call: CallId) -> Option<Duration> {
        match self.open.get(&call)? {
            Asker::Client(reply) => Some(reply.waited()),
            Asker::Operator(_) | Asker::Nobody => None,
        }
    }

    fn close(&mut self, call: CallId, result: Result<Outcome, Refused>) {
        match self.open.remove(&call) {
            Some(Asker::Client(reply)) => reply.send(result),
            // It may have stopped waiting.
            Some(Asker::Operator(asker)) => drop(asker.send(result)),
            Some(Asker::Nobody) | None => {}
        }
    }
}

/// Tells the operator of an alarm.
fn warn(alarm: &Alarm) {
    match alarm {
        Alarm::Forked { author, room, seq } => tracing::warn!(event = "forked",
            %room, seq,
            "node {author} has signed two histories of one log: nothing more is taken from it; \
             its operator should stop it, it was probably restored from a backup"
        ),
        Alarm::Parted { node, removal } => warn_of_removal(*node, *removal),
        Alarm::EraOpened { room, era, before } => tracing::warn!(event = "era_opened",
            %room, ?era,
            "this node numbers a room from now on, in a new era: node {} did before",
            before.short()
        ),
        Alarm::Hole { room, number } => tracing::warn!(event = "hole",
            %room, %number,
            "a message's content is with no node that can be reached: its number stays empty here"
        ),
        Alarm::LaneClash { node, lane } => tracing::warn!(
            event = "lane_clash",
            lane,
            "two nodes drew the same lane of numbers: node {} draws again",
            node.short()
        ),
        Alarm::DroppedThoughOpen { room, by, node } => tracing::warn!(event = "left_out",
            %room,
            "node {} left node {}'s agents out of an election, though that had opened its nonce: \
             the network is slow, or it would not have them",
            by.short(), node.short()
        ),
        Alarm::ClockJumped { ahead, by } => tracing::warn!(
            event = "clock_jumped",
            hours = by.as_secs() / 3_600,
            "the clock has jumped {} since this node started: nothing old is dropped any more; \
             set the clock right, or restart the node if it is right now",
            if *ahead { "ahead" } else { "back" }
        ),
        Alarm::SecretWithout { node, by } => tracing::warn!(
            event = "secret_without",
            "a new secret of the mesh's connections leaves out node {}, which nobody has expelled; it is given \
             it all the same. The secret came from node {}: its operator knows from whom it had it",
            node.short(),
            by.short()
        ),
        Alarm::Exhausted { room } => {
            tracing::warn!(event = "numbers_used_up", %room, "a room's numbers are used up: it takes no more messages");
        }
    }
}

fn warn_of_removal(node: NodeId, removal: Parted) {
    let by = removal.by.short();
    let how = match removal.why {
        Parting::Expelled => "was expelled from the mesh",
        Parting::Left => "left the mesh",
        Parting::Retired => "was retired",
    };
    if is_long_ago(removal.wall_ms, Clock::start().now().wall_ms) {
        tracing::info!("node {node} {how}, said node {by}, long ago");
        return;
    }
    match removal.why {
        Parting::Expelled => tracing::warn!(
            event = "expelled",
            "node {node} was expelled from the mesh by node {by}"
        ),
        Parting::Left => tracing::info!("node {node} has left the mesh"),
        Parting::Retired => {
            tracing::warn!(event = "retired", "node {node} was retired by node {by}")
        }
    }
}

/// Whether that was no news to anybody who has been here: a node that joins, or comes back, hears of all that ever was. By the
/// clocks of two nodes, in Unix milliseconds.
fn is_long_ago(then_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(then_ms) > REMOVAL_NEWS_MS
}

/// This node was removed from the mesh.
fn farewell(removal: Parted) {
    let by = removal.by.short();
    let how = match removal.why {
        Parting::Expelled => format!("was expelled from the mesh, says node {by}"),
        Parting::Left => "has left the mesh".to_owned(),
        Parting::Retired => format!("was retired from the mesh, says node {by}"),
    };
    tracing::warn!(
        event = "out",
        "this node {how}: it can be read, and writes nothing more; to be in the mesh again, start another \
         with a ticket and another --data-dir"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_news_for_an_hour() {
        let then = 1_800_000_000_000;
        assert!(!is_long_ago(then, then) && !is_long_ago(then, then + REMOVAL_NEWS_MS));
        assert!(is_long_ago(then, then + REMOVAL_NEWS_MS + 1));
        assert!(!is_long_ago(then, then - 1), "a clock that is behind");
    }
}
