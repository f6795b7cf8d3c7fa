//! Ending a turn: what inputs set going is brought to rest, sealed, and handed to the driver.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Engine, Waiter};
use crate::{
    api::{
        batch::{Change, NumberRange},
        boundary::{Alarm, Effect, Turn},
        command::{Outcome, Refused, SaidOk},
        event::{Delivered, RoomEvent, TurnReason},
    },
    directory::{Learned, Source, naming::Named},
    engine::context::{Arrived, Fact, Proof},
    limits::{BUCKETS, CROWD_TOLD_EVERY, GOSSIP_BYTES_MAX, PROOFS_MAX, TURNS_TOLD_UP_TO},
    name::{
        id::{LocalRef, LogId, MessageId, RoomId, sha256},
        number::Number,
    },
    order::pulse::Pulse,
    replica::log::first_8,
    room::Room,
    wire::{
        entry::Body,
        kinds::CHAT,
        message::{Message, Signed},
        roster::RosterNews,
        run::Run,
        seal::Seal,
    },
};

/// Runs in one gossip message: leaves room for its frame.
const RUNS_BYTES_MAX: usize = GOSSIP_BYTES_MAX - 2 * 1024;

impl Engine {
    /// What everything handled since the last turn comes to: commit the batch, then perform the
    /// effects in order.
    pub fn take_turn(&mut self) -> Turn {
        let mut touched = std::collections::BTreeSet::new();
        // Each round can only deliver, number or learn what was not before, so it comes to rest.
        loop {
            self.fold_facts();
            self.fold_renumbered();
            self.settle_proofs();
            self.settle_arrived();
            self.answer_unsettled();
            self.settle_rosters();
            self.note_ephemeral_claims();
            self.confirm_handovers();
            self.go_on_presenting();
            let active = std::mem::take(&mut self.cx.active);
            // What waits for a barrier goes on when all that came with it has come to rest.
            if active.is_empty() && !self.go_on_with_barrier() {
                break;
            }
            for id in active {
                touched.insert(id);
                if let Some(room) = self.rooms.get_mut(&id) {
                    room.advance(&mut self.cx, &mut self.live);
                    room.pump(&mut self.cx);
                }
                self.go_on_voting(id);
                self.settle_tasks(id);
                self.settle_elections(id);
            }
        }
        self.seal_and_flush(&touched);
        self.announce_roster();
        self.beat();
        self.end_turn()
    }

    // Directory.

    pub(super) fn fold_facts(&mut self) {
        while !self.cx.facts.is_empty() {
            for fact in std::mem::take(&mut self.cx.facts) {
                let numbers = self.rooms.get(&fact.room).and_then(|room| {
                    room.order.numbering.undelivered.get(&fact.at).and_then(|it| it.numbers)
                });
                self.learn(
                    fact,
                    numbers.as_ref().map_or(&[], |it| std::slice::from_ref(&it.canonical)),
                );
            }
        }
    }

    /// Numbers that do not count any more decide no names.
    pub(super) fn fold_lost(&mut self) {
        self.directory.lose(&std::mem::take(&mut self.cx.lost));
    }

    fn fold_renumbered(&mut self) {
        for it in std::mem::take(&mut self.cx.renumbered) {
            let learned = self.directory.renumber((it.room, it.at), it.number);
            self.act_on(learned);
        }
    }

    pub(super) fn learn(&mut self, fact: Fact, numbers: &[Number]) {
        let (directory, author) = (fact.room, fact.log.author);
        let reach = self.reach_of(directory);
        if !reach.may_list(&fact.body) {
            self.cx.blame(author, |it| &mut it.void);
            return;
        }
        if let Body::Parted(it) = &fact.body {
            return self.learn_parted(&fact, it);
        }
        // It came in the turn in which its log was cut before it.
        let log = self.rooms.get(&directory).map(|room| room.replica.logs.get(fact.at.log));
        if log.is_some_and(|log| log.fork.is_some_and(|cut| fact.at.seq >= cut)) {
            return;
        }
        let too_many_rooms = matches!(fact.body, Body::RoomCreated(_))
            && self.directory.room_count() >= crate::limits::ROOMS_MAX;
        let keys = &self.directory.keys;
        let too_many_keys = matches!(&fact.body, Body::Key(act) if !keys.has_room_for(act));
        let too_many_ids =
            matches!(&fact.body, Body::AgentClaimed(it) if !self.directory.has_room_for(it));
        if too_many_rooms || too_many_keys || too_many_ids {
            self.cx.faults.overflow += 1;
            return;
        }
        // A lie of the founder, which would be known to this node alone.
        let taken = |id: &RoomId| self.rooms.get(id).is_some_and(|room| room.replica.is_directory);
        if matches!(&fact.body, Body::RoomCreated(it) if taken(&it.room)) {
            self.cx.blame(author, |it| &mut it.void);
            return;
        }
        let learned = self.directory.learn(self.cx.mesh, fact, numbers);
        if let Learned::Rooms(rooms) = &learned {
            let home = LogId { author, incarnation: 0 };
            for id in rooms.clone() {
                let room = self.directory.room(id);
                if room.is_some_and(|it| (it.source.0, it.author) == (directory, author)) {
                    let known = self.rooms.contains_key(&id);
                    self.ensure_room(id, home, reach);
                    if !known && author != self.cx.me {
                        self.note_unread(id);
                    }
                }
            }
        }
        self.act_on(learned);
    }

    pub(super) fn act_on(&mut self, learned: Learned) {
        match learned {
            Learned::Nothing => {}
            Learned::Revoked(key) => self.on_revoked(key),
            Learned::Agent(agent) => {
                let owner = self.directory.owner(&agent).filter(|(_, settled)| *settled);
                self.rosters.set_owner(&agent, owner.map(|(key, _)| key));
            }
            Learned::Rooms(rooms) => {
                for room in rooms {
                    self.note_if_without_lead(room);
                    self.tell_of_room(room, true);
                }
            }
            Learned::Lane(node) => {
                let lanes = self.directory.nodes.lanes.get(&node).into_iter().flatten();
                let known = self.cx.lanes.entry(node).or_default();
                known.extend(lanes.map(|(_, lane)| *lane));
                if node == self.cx.me {
                    let mine = self.directory.nodes.lanes.get(&node).and_then(|it| it.last());
                    self.cx.my_lane = mine.map(|(_, lane)| *lane);
                } else {
                    self.on_known(node);
                }
                // Claims that waited for this lane can be accepted now.
                let waiting = self.rooms.values().filter(|room| !room.replica.pending.is_empty());
                self.cx.active.extend(waiting.map(|room| room.replica.id));
            }
        }
    }

    // Forks.

    fn settle_proofs(&mut self) {
        for proof in std::mem::take(&mut self.cx.proofs) {
            self.on_fork(proof);
        }
    }

    pub(super) fn on_fork(&mut self, proof: Proof) {
        let Proof { certificate, run } = &proof;
        let (room, log, seq) = (certificate.room, certificate.log, certificate.seq);
        let known = self.rooms.get(&room).and_then(|it| {
            let ix = it.replica.logs.ix(log)?;
            it.replica.logs.get(ix).fork
        });
        if known.is_some_and(|known| known <= seq) {
            return;
        }
        if !proof.holds() || !self.rooms.get(&room).is_some_and(|it| it.replica.logs.can_have(log))
        {
            self.cx.faults.stray += 1;
            return;
        }
        self.cx.faults.forks += 1;
        self.cx.alarm(Alarm::Forked { author: log.author, room, seq });
        let run = Box::new(run.run().clone());
        let evidence = Change::Evidence { certificate: *certificate, run: run.clone() };
        self.cx.change(evidence);
        let told = Message::Fork(*certificate, run);
        let key = self.sealed_for(room);
        if self.proofs.len() < PROOFS_MAX {
            self.proofs.push(told.clone());
        }
        // By gossip, to every peer, and later to each that comes up: it must not depend on one of them.
        let peers = self.rooms.get(&room).map(|it| it.replica.peers(&self.cx)).unwrap_or_default();
        for peer in peers {
            self.cx.send(peer, told.clone());
        }
        self.cx.broadcast(Some(room), told);
        let memory = self.is_memory(room);
        if !memory {
            self.distrust(key, log.author);
        }
        if let Some(it) = self.rooms.get_mut(&room) {
            if memory {
                it.shut_out(&mut self.cx, log.author);
            }
            it.quarantine(&mut self.cx, log, seq);
            if it.replica.is_directory {
                self.forget_claims(room, (log, seq));
            }
        }
        if log.author == self.cx.me {
            self.refuse_waiters(|engine, other| {
                let same_key = key.is_none() || key == engine.sealed_for(other);
                if memory { other == room } else { same_key }
            });
        }
    }

    pub(super) fn is_memory(&self, room: RoomId) -> bool {
        self.rooms.get(&room).is_some_and(|it| it.replica.record.ephemeral)
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse_waiters(&mut self, which: impl Fn(&Engine, RoomId) -> bool) {
        let waiters = std::mem::take(&mut self.waiters);
        let claiming = std::mem::take(&mut self.claiming);
        let here = |(room, _): &(RoomId, LocalRef)| which(self, *room);
        let (refused, wait): (BTreeMap<_, _>, BTreeMap<_, _>) =
            waiters.into_iter().partition(|(place, _)| here(place));
        let (held, claims): (BTreeMap<_, _>, BTreeMap<_, _>) =
            claiming.into_iter().partition(|(place, _)| here(place));
        (self.waiters, self.claiming) = (wait, claims);
        let waited = refused.into_values().flatten().map(|waiter| {
            let (Waiter::Said { call, .. }
            | Waiter::Created { call, .. }
            | Waiter::Claimed { call, .. }) = waiter;
            call
        });
        for call in waited.chain(held.into_values()) {
            self.reply(call, Err(Refused::Full(super::rooms::NOT_WRITABLE.to_owned())));
        }
    }

    // Deliveries.

    fn settle_arrived(&mut self) {
        for arrived in std::mem::take(&mut self.cx.arrived) {
            match arrived {
                Arrived::Entry { room, it, numbers } => self.on_delivered(room, it, numbers),
                Arrived::Again { room, number, at } => self.on_passed_over(room, number, at),
            }
        }
    }

    fn on_passed_over(&mut self, room: RoomId, number: Number, at: LocalRef) {
        let Some(it) = self.rooms.get(&room).filter(|it| !it.replica.is_directory) else { return };
        let log = it.replica.logs.id(at.log);
        self.cx.notify(room, RoomEvent::PassedOver { number, log, at });
    }

    fn on_delivered(&mut self, room: RoomId, it: Delivered, numbers: NumberRange) {
        let (at, number, facts) = (it.at, it.number, it.facts);
        let is_directory = self.rooms.get(&room).is_some_and(|it| it.replica.is_directory);
        if is_directory {
            let learned = self.directory.renumber((room, at), numbers.canonical);
            self.act_on(learned);
        } else {
            if let Some(said) = &it.said {
                self.rosters.touch(&said.agent, facts.wall_ms);
            }
            self.cx.notify(room, RoomEvent::Message(it));
            if facts.kind == CHAT {
                self.tell_turn(room, TurnReason::MessageSent, true);
            }
        }
        self.answer_all(room, at, number);
    }

    fn answer_all(&mut self, room: RoomId, at: LocalRef, number: Number) {
        let waiters = self.waiters.remove(&(room, at)).unwrap_or_default();
        let creates = waiters.iter().any(|it| matches!(it, Waiter::Created { .. }));
        if creates && !self.is_settled(room, (at, number)) {
            self.waiters.insert((room, at), waiters);
            self.unsettled.insert((room, at), number);
            return;
        }
        for waiter in waiters {
            self.answer(room, at, (waiter, number));
        }
    }

    /// Whether it is sure what becomes of a room's name. It is not where a number was left as a hole: what that turns
    /// out to be may be a room of this name, and was numbered first. Nor is it where a node that is out gave the number,
    /// and others know nothing of that.
    fn is_settled(&self, directory: RoomId, (at, number): (LocalRef, Number)) -> bool {
        let id = self.directory.created_at((directory, at));
        let named = id.is_some_and(|id| matches!(self.directory.name(id), Named::Name(_)));
        let room = self.rooms.get(&directory).filter(|it| it.is_writable(&self.cx));
        let in_doubt = |room: &Room| named && room.is_behind_holes(&self.cx, number);
        room.is_none_or(|it| !in_doubt(it) && !self.is_without_lead((directory, at)))
    }

    fn is_without_lead(&self, source: Source) -> bool {
        let room = self.directory.created_at(source).and_then(|id| self.directory.room(id));
        room.is_some_and(|it| self.directory.has_lost_its_lead(it))
    }

    /// Rooms of this node that a number made which does not count any more get another one.
    pub(super) fn note_rooms_without_lead(&mut self) {
        for room in self.directory.lost_a_number(self.cx.me) {
            self.note_if_without_lead(room);
        }
    }

    fn note_if_without_lead(&mut self, room: RoomId) {
        let Some(it) = self.directory.room(room).filter(|it| it.author == self.cx.me) else {
            return;
        };
        if self.directory.has_lost_its_lead(it) {
            self.unsettled.entry(it.source).or_insert(Number::ZERO);
        }
    }

    /// Numbers rooms of which that is not sure once more, in a new era in which they are the first of their names: so
    /// they count as made on one side of a split. Then it answers.
    pub(super) fn answer_unsettled(&mut self) {
        if self.unsettled.is_empty() || self.stopping.is_some() {
            return;
        }
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut first: BTreeMap<RoomId, Vec<LocalRef>> = BTreeMap::new();
        for ((room, at), number) in &unsettled {
            if !self.is_settled(*room, (*at, *number)) {
                first.entry(*room).or_default().push(*at);
            }
        }
        for (room, first) in &mut first {
            let Some(room) = self.rooms.get_mut(room) else { continue };
            if room.claim_for(&mut self.cx, first.clone()) {
                first.clear();
            }
        }
        self.fold_renumbered();
        for ((room, at), number) in unsettled {
            let waits = first.get(&room).is_some_and(|it| it.contains(&at));
            // Of two rooms of one name the second one is not the first of that era.
            if waits || self.is_without_lead((room, at)) {
                self.unsettled.insert((room, at), number);
                continue;
            }
            for waiter in self.waiters.remove(&(room, at)).unwrap_or_default() {
                self.answer(room, at, (waiter, number));
            }
        }
    }

    fn answer(
        &mut self,
        room: RoomId,
        at: crate::name::id::LocalRef,
        (waiter, number): (Waiter, Number),
    ) {
        match waiter {
            Waiter::Said { call, name, wall_ms, repeated } => {
                let Some(message) = self.message_id(room, at) else { return };
                let said = SaidOk { message, number, wall_ms, name, repeated };
                self.reply(call, Ok(Outcome::Said(said)));
            }
            Waiter::Created { call, key } => {
                let id = self.directory.created_at((room, at));
                let result = id.map(|id| (id, self.directory.name(id)));
                let reply = match result {
                    Some((id, Named::Name(_))) => match self.view(id) {
                        Some(view) => Ok(Outcome::Room(self.for_key(view, key))),
                        None => Err(Refused::NoRoom),
                    },
                    Some((id, Named::Void)) => {
                        let room = self.directory.room(id);
                        let name = room.map(|it| it.created.name.clone()).unwrap_or_default();
                        Err(Refused::NameTaken(name))
                    }
                    Some((_, Named::NotYet)) | None => Err(Refused::NoRoom),
                };
                self.reply(call, reply);
            }
            Waiter::Claimed { call, .. } if self.stopping.is_some() => {
                self.reply(call, Err(Refused::Stopping));
            }
            Waiter::Claimed { call, attach } => self.attach(call, *attach),
        }
    }

    pub(super) fn message_id(
        &self,
        room: RoomId,
        at: crate::name::id::LocalRef,
    ) -> Option<MessageId> {
        let log = self.rooms.get(&room)?.replica.logs.id(at.log);
        Some(MessageId::new(room, log, at.seq))
    }

    fn note_ephemeral_claims(&mut self) {
        for (room, era) in std::mem::take(&mut self.cx.ephemeral_claims) {
            let claims = &mut self.change_node().ephemeral_claims;
            claims.retain(|(known, _)| *known != room);
            claims.push((room, era));
            // Rooms that ended long ago are not claimed in again: the oldest may go.
            if claims.len() > crate::limits::EPHEMERAL_ROOMS_MAX {
                claims.remove(0);
            }
        }
    }

    // Out.

    /// Seals what was written, stores what changed, and sends what others have to know.
    fn seal_and_flush(&mut self, touched: &std::collections::BTreeSet<RoomId>) {
        let mut out: Vec<(RoomId, Run)> = Vec::new();
        for id in touched {
            let Some(room) = self.rooms.get_mut(id) else { continue };
            let sealed = room.seal(&mut self.cx, &self.identity);
            room.flush(&mut self.cx);
            if !room.replica.record.local {
                out.extend(sealed.into_iter().map(|run| (*id, run)));
            }
            if room.is_busy() {
                self.busy.insert(*id);
            } else {
                self.busy.remove(id);
            }
            if room.replica.is_shared() {
                self.unshared.remove(id);
            } else {
                self.unshared.insert(*id);
            }
            self.mix_digest(*id);
        }
        self.send_to_successor(&out);
        let mut first = Vec::new();
        for part in in_parts(out) {
            let room = part.first().map(|(room, _)| *room);
            let runs = part.into_iter().map(|(_, run)| run).collect();
            first.push(Effect::Broadcast { room, message: Message::Runs(runs) });
        }
        // Others hear of it before local clients do: a round trip is the longer way.
        first.append(&mut self.cx.effects);
        self.cx.effects = first;
    }

    fn mix_digest(&mut self, id: RoomId) {
        let Some(room) = self.rooms.get(&id) else { return };
        if room.replica.record.local {
            return;
        }
        if !self.is_listed(room) {
            let seal = room.replica.record.seal.clone();
            return self.forget_digest(id, seal.as_ref());
        }
        if let Some(seal) = &room.replica.record.seal {
            let (key, digest) = (seal.owner, room.replica.logs.digest());
            return self.mix_private_digest(key, id, Some(digest));
        }
        let now = first_8(sha256(&[&id.0, &room.replica.logs.digest().to_be_bytes()]));
        let before = self.digests.insert(id, room.replica.logs.digest());
        let before = before.map_or(0, |it| first_8(sha256(&[&id.0, &it.to_be_bytes()])));
        self.change_bucket(id, now ^ before);
    }

    /// Who made a room may have lost its part since, and what says that there is the room with it: whoever
    /// had not heard of it by then never will, and would differ for ever from those who had.
    fn is_listed(&self, room: &Room) -> bool {
        room.replica.record.ephemeral
            || room.replica.is_directory
            || room.replica.id == RoomId::lobby(self.cx.mesh)
            || self.directory.room(room.replica.id).is_some()
    }

    fn change_bucket(&mut self, id: RoomId, by: u64) {
        if by != 0 {
            self.buckets[bucket(id)] ^= by;
            self.digest = fold(&self.buckets);
        }
    }

    pub(super) fn forget_digest(&mut self, id: RoomId, seal: Option<&Seal>) {
        if let Some(seal) = seal {
            return self.mix_private_digest(seal.owner, id, None);
        }
        if let Some(before) = self.digests.remove(&id) {
            self.change_bucket(id, first_8(sha256(&[&id.0, &before.to_be_bytes()])));
        }
    }

    fn announce_roster(&mut self) {
        if let Some(what) = self.rosters.take_news() {
            let news = RosterNews { node: self.cx.me, boot: self.cx.boot, what };
            self.tell_roster(news);
        }
        // What was announced just now is another version.
        self.keep_roster();
    }

    /// Signs and sends; what is too large for gossip goes to each peer directly.
    pub(super) fn tell_roster(&mut self, news: RosterNews) {
        let signed = Signed::new(self.cx.mesh, &self.identity, news);
        let message = Message::Roster(Box::new(signed));
        let bytes = message.encode().len();
        if let Message::Roster(it) = &message {
            self.barriers.keep_news(&it.value.what, bytes, &message);
        }
        if bytes <= GOSSIP_BYTES_MAX {
            self.cx.broadcast(None, message);
        } else {
            for peer in self.live.up.clone() {
                self.cx.send(peer, message.clone());
            }
        }
    }

    /// Tells the beacon task if there is something new to say.
    fn beat(&mut self) {
        let digest = self.digest();
        let (boot, roster) = self.rosters.version(self.cx.me);
        let pulse = Pulse { boot, roster, digest, spread: self.spread };
        if pulse != self.pulse {
            self.pulse = pulse;
            self.cx.effects.push(Effect::Pulse(pulse));
        }
    }

    /// Over all shared rooms.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Tells members whose turn it is, if that changed or (`always`) in any case.
    pub(super) fn tell_turn(&mut self, room: RoomId, reason: TurnReason, always: bool) {
        let holder = self.turn_holder(room);
        let before = match &holder {
            Some(_) => self.turns.insert(room, holder.clone()),
            None => self.turns.remove(&room),
        };
        if always && !self.may_tell_turn_of_crowd(room) {
            return;
        }
        if always || before.flatten() != holder {
            let members = self.rosters.members(room).iter();
            let order: Arc<[_]> = members.map(|it| it.agent.clone()).collect();
            self.cx.notify(room, RoomEvent::Turn { holder, order, reason });
        }
    }

    /// Whether all of a room's members are to be told now; else they will be, before long.
    fn may_tell_turn_of_crowd(&mut self, room: RoomId) -> bool {
        if self.rosters.members(room).len() <= TURNS_TOLD_UP_TO {
            return true;
        }
        let now = self.cx.now.mono;
        match self.crowds.get_mut(&room) {
            Some(crowd) if now < crowd.told + CROWD_TOLD_EVERY => {
                crowd.owed = true;
                false
            }
            Some(_) | None => {
                self.crowds.insert(room, Crowd { told: now, owed: false });
                true
            }
        }
    }

    /// Tells crowds what they were not told at once.
    pub(super) fn tell_crowds(&mut self) {
        let now = self.cx.now.mono;
        let due = self.crowds.extract_if(.., |_, it| now >= it.told + CROWD_TOLD_EVERY);
        for (room, crowd) in due.collect::<Vec<_>>() {
            if crowd.owed {
                self.tell_turn(room, TurnReason::MessageSent, true);
            }
        }
    }
}

/// A room whose members are told now and then whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    /// When they were.
    told: Duration,
    /// There was a message since.
    owed: bool,
}

/// One digest of all.
pub(super) fn fold(buckets: &[u64; BUCKETS]) -> u64 {
    let parts: Vec<u8> = buckets.iter().flat_map(|it| it.to_be_bytes()).collect();
    first_8(sha256(&[&parts]))
}

/// The bucket of a room: for digests, and for gossip topics.
#[must_use]
pub fn bucket(room: RoomId) -> usize {
    usize::from(room.0[15]) % BUCKETS
}

/// Runs in gossip-sized parts, those of one bucket together.
fn in_parts(runs: Vec<(RoomId, Run)>) -> Vec<Vec<(RoomId, Run)>> {
    let mut parts: Vec<Vec<(RoomId, Run)>> = Vec::new();
    let mut sorted = runs;
    sorted.sort_by_key(|(room, run)| (bucket(*room), *room, run.first));
    let mut bytes = 0;
    for (room, run) in sorted {
        let size = run.size();
        match parts.last_mut() {
            Some(part)
                if bytes + size <= RUNS_BYTES_MAX
                    && part.last().is_some_and(|(last, _)| bucket(*last) == bucket(room)) =>
            {
                bytes += size;
                part.push((room, run));
            }
            Some(_) | None => {
                bytes = size;
                parts.push(vec![(room, run)]);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::SPANS_MAX,
        name::id::NodeId,
        wire::{
            entry::Facts,
            run::{Carried, RunEntry},
        },
    };

    fn run(room: RoomId, first: u64, len: usize) -> (RoomId, Run) {
        let facts = Facts { clock: first, wall_ms: 0, kind: CHAT, visible: true };
        let entries = vec![RunEntry { facts, body: Carried::Here(vec![0; len].into()) }];
        let log = LogId { author: NodeId([5; 32]), incarnation: 0 };
        (room, Run { room, log, first, backlink: [0; 32], entries, seal: [0; 64] })
    }

    #[test]
    fn rooms_are_in_all_buckets_alike() {
        let buckets: Vec<usize> = (0..=255).map(|byte| bucket(RoomId([byte; 16]))).collect();
        for nth in 0..BUCKETS {
            assert_eq!(buckets.iter().filter(|it| **it == nth).count(), 256 / BUCKETS, "{nth}");
        }
        let (mut one, mut other) = ([0; BUCKETS], [0; BUCKETS]);
        (one[3], other[4]) = (7, 7);
        assert_ne!(fold(&one), fold(&other));
    }

    #[test]
    fn what_is_said_at_once_goes_out_in_few_messages_that_are_small_and_of_one_bucket() {
        let (one, same, other) = (RoomId([1; 16]), RoomId([65; 16]), RoomId([2; 16]));
        let mut runs = Vec::new();
        for first in 1..=600 {
            runs.push(run(one, first, 10));
        }
        for first in 1..=10 {
            runs.extend([run(other, first, 8_000), run(same, first, 8_000)]);
        }
        let all = runs.len();
        let bytes = |part: &[(RoomId, Run)]| part.iter().map(|(_, run)| run.size()).sum::<usize>();
        let whole = bytes(&runs);
        let parts = in_parts(runs);
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), all);
        for part in &parts {
            // Room for the frame, and for what sizes are short of.
            assert!(bytes(part) + 2_048 <= GOSSIP_BYTES_MAX && part.len() <= SPANS_MAX);
            assert!(part.iter().all(|(room, _)| bucket(*room) == bucket(part[0].0)));
        }
        let rooms: Vec<RoomId> = parts.iter().flatten().map(|(room, _)| *room).collect();
        assert!(rooms.contains(&one) && rooms.contains(&same) && rooms.contains(&other));
        // Two buckets, and what does not fill a part because the next run is a large one.
        assert!(parts.len() <= whole / (RUNS_BYTES_MAX - 8_300) + 2, "{} parts", parts.len());
        assert!(parts.iter().any(|part| bytes(part) > RUNS_BYTES_MAX - 300), "one is full");
    }
}
