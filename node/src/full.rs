//! The engine's thread while the disk is full. The turn that has no room is kept, and its effects
//! are neither said nor done until it is written; the engine stands still at its moment. Commands
//! that would write are refused. Those that only ask are answered, by an engine that knows of that
//! turn already: a list may show entries that are not on the disk yet. Messages of peers are
//! dropped, as by a node that is not there; they say them again.

use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed, time::Instant};

use mesh::{
    Effect, Input, Turn,
    api::{
        batch::Change,
        command::{Command, Refused, traits::Promise},
        event::RoomEvent,
    },
    name::{id::NodeId, time::Now},
};

use crate::{
    driver::{Driver, OpenCalls},
    limits::{DISK_FULL_RETRY, DISK_FULL_WAITING_MAX, INPUTS_PER_TURN},
    queue::{Asker, Item},
};

/// Events of the meantime, for the engine when it goes on.
#[derive(Debug, Default)]
struct Meanwhile {
    /// Peers that came or went, with the last two things that each of them did.
    peers: BTreeMap<NodeId, Vec<Input>>,
    /// The node is to stop.
    stop: bool,
}

/// A turn that waits for room, and the moment at which the engine stands still.
struct Unwritten {
    turn: Turn,
    at: Now,
}

impl Driver {
    /// Waits until a turn is written, with the effects that have to follow then. `None`: the node
    /// was stopped before.
    pub(crate) fn wait_for_room(
        &mut self,
        turn: Turn,
        at: Now,
        calls: &mut OpenCalls,
    ) -> anyhow::Result<Option<Turn>> {
        tracing::warn!(
            event = "disk_full",
            "the disk is full: nothing new is taken, and what is there can be read; make room, and this node \
             goes on by itself"
        );
        self.meters.disk_full.store(true, Relaxed);
        self.hub.set_full(true);
        let pulse = self.pulse.stop();
        // Clients that only asked, in the same turn, need not wait; nor, at the start, those that read
        // the rooms that were stored before.
        let opening = self.opening;
        let (answers, rest): (Vec<_>, Vec<_>) = turn.effects.into_iter().partition(|effect| {
            acknowledges_nothing(effect) || (opening && tells_what_is_stored(effect))
        });
        let mut unwritten = Unwritten { turn: Turn { effects: rest, ..turn }, at };
        for answer in answers {
            self.perform(answer, calls)?;
        }
        let mut meanwhile = Meanwhile::default();
        let mut tried = Instant::now();
        loop {
            let wait = DISK_FULL_RETRY.saturating_sub(tried.elapsed());
            let Some(items) = self.queue.take(INPUTS_PER_TURN, wait) else { return Ok(None) };
            for item in items {
                match item {
                    Item::Peer(input) => meanwhile.note(input),
                    Item::Command(Command::Stop, _) => meanwhile.stop = true,
                    Item::Command(command, asker) => {
                        self.answer(command, asker, &mut unwritten, calls)?;
                    }
                }
            }
            if !meanwhile.stop && tried.elapsed() < DISK_FULL_RETRY {
                continue;
            }
            if self.write(&mut unwritten.turn)? {
                break;
            }
            if meanwhile.stop {
                tracing::warn!(
                    event = "stopped_full",
                    "this node stops without handing over, because its disk is full: what was not answered \
                     is not kept"
                );
                return Ok(None);
            }
            tried = Instant::now();
        }
        tracing::info!("there is room on the disk again: this node goes on");
        self.meters.disk_full.store(false, Relaxed);
        self.hub.set_full(false);
        if let Some(pulse) = pulse {
            self.pulse.set(pulse);
        }
        self.go_on(meanwhile);
        Ok(Some(unwritten.turn))
    }

    fn answer(
        &mut self,
        command: Command,
        asker: Asker,
        unwritten: &mut Unwritten,
        calls: &mut OpenCalls,
    ) -> anyhow::Result<()> {
        let Unwritten { turn, at } = unwritten;
        let waiting = turn.effects.len() + turn.batch.len();
        let comes = matches!(command, Command::Attach(_));
        if !self.engine.answers_unwritten(&command) || (comes && waiting > DISK_FULL_WAITING_MAX) {
            asker.refuse(Refused::DiskFull);
            return Ok(());
        }
        let call = calls.open(asker);
        self.engine.handle(*at, Input::Command { call, command });
        let Turn { batch, effects } = self.engine.take_turn();
        // Of the node's own state the last one says all.
        if batch.iter().any(|change| matches!(change, Change::Node(_))) {
            turn.batch.retain(|change| !matches!(change, Change::Node(_)));
        }
        turn.batch.extend(batch);
        for effect in effects {
            if matches!(&effect, Effect::Reply { call: to, .. } if *to == call) {
                self.perform(effect, calls)?;
            } else {
                turn.effects.push(effect);
            }
        }
        Ok(())
    }

    /// Gives the engine the events of the meantime, which it handles with the next inputs.
    fn go_on(&mut self, meanwhile: Meanwhile) {
        let now = self.clock.now();
        for input in meanwhile.peers.into_values().flatten() {
            self.engine.handle(now, input);
        }
        if meanwhile.stop {
            self.queue.push_command(Command::Stop, Asker::Nobody);
        }
    }
}

/// Whether an effect is an answer that promises nothing of a turn that is not written.
fn acknowledges_nothing(effect: &Effect) -> bool {
    let Effect::Reply { result, .. } = effect else { return false };
    result.as_ref().map_or(true, |outcome| outcome.promise() == Promise::None)
}

/// Of the first turn of an engine: everything that it tells this node's clients, network and operator
/// follows from the store. Messages to other nodes do not, for they are of this start.
fn tells_what_is_stored(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Notify { event: RoomEvent::Opened { announce: false, .. }, .. }
            | Effect::Tell(_)
            | Effect::Known(_)
            | Effect::ShutOut(_)
            | Effect::Alarm(_)
    )
}

impl Meanwhile {
    fn note(&mut self, input: Input) {
        let (Input::PeerUp(peer) | Input::PeerDown(peer)) = &input else { return };
        let all = self.peers.entry(*peer).or_default();
        // It was gone in between, and that is all there is to know of it.
        if all.len() == 2 {
            all.remove(0);
        }
        all.push(input);
    }
}
