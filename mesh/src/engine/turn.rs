//! Ending a turn: what inputs set going is brought to rest, sealed, and handed to the driver.

use std::{sync::Arc, time::Duration};

use super::{Engine, known::Known};
use crate::{
    api::{
        batch::{Change, NumberRange},
        boundary::{Alarm, Effect, Turn},
        event::{Delivered, RoomEvent, TurnReason},
    },
    directory::{Learned, Source},
    engine::happened::{Fact, Happened, Proof, Step},
    limits::{BUCKETS, CROWD_TOLD_EVERY, GOSSIP_BYTES_MAX, PROOFS_MAX, TURNS_TOLD_UP_TO},
    name::{
        id::{LocalRef, LogId, RoomId, sha256},
        number::{Era, Number},
    },
    order::pulse::Pulse,
    replica::log::first_8,
    room::Room,
    wire::{
        entry::{Body, CHAT},
        message::{Message, Post, Signed},
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
            for step in [Step::Numbered, Step::Forked, Step::Delivered] {
                self.act_on_events(step);
            }
            self.answer_unsettled();
            self.settle_rosters();
            for step in [Step::ClaimedInMemory, Step::HandedToMe] {
                self.act_on_events(step);
            }
            self.confirm_handovers();
            self.go_on_presenting();
            let active = std::mem::take(&mut self.known.cx.active);
            // What waits for a barrier goes on when all that came with it has come to rest.
            if active.is_empty() && !self.go_on_with_barrier() {
                break;
            }
            for id in active {
                touched.insert(id);
                if let Some(room) = self.known.rooms.get_mut(&id) {
                    room.advance(&mut self.known.cx, &mut self.known.live);
                    room.pump(&mut self.known.cx);
                }
                self.voting.go_on_voting(&mut self.known, id);
                self.claims.settle_tasks(&mut self.known, id);
                self.leaders.settle_elections(&mut self.known, id);
            }
        }
        self.seal_and_flush(&touched);
        self.announce_roster();
        self.beat();
        self.end_turn()
    }

    // Directory.

    pub(super) fn fold_facts(&mut self) {
        while self.act_on_events(Step::Listed) {}
    }

    /// Acts on the events of a step. Whether there were any.
    fn act_on_events(&mut self, step: Step) -> bool {
        let events = self.known.cx.take_events(step);
        let some = !events.is_empty();
        for happened in events {
            self.on_happened(happened);
        }
        some
    }

    fn on_happened(&mut self, happened: Happened) {
        match happened {
            Happened::Listed(fact) => self.on_listed(fact),
            Happened::Numbered { room, at, number } => {
                let learned = self.known.directory.renumber((room, at), number);
                self.act_on(learned);
            }
            Happened::Forked(proof) => self.on_fork(proof),
            Happened::Delivered { room, entry, numbers } => self.on_delivered(room, entry, numbers),
            Happened::PassedOver { room, number, at } => self.on_passed_over(room, number, at),
            Happened::ClaimedInMemory { room, era } => self.note_ephemeral_claim(room, era),
            Happened::HandedToMe { room, era, from } => {
                let post = Post { room, era, log: from };
                self.taken.entry(from.author).or_default().push(post);
            }
        }
    }

    fn on_listed(&mut self, fact: Fact) {
        let numbers = self
            .known
            .rooms
            .get(&fact.room)
            .and_then(|room| room.numbering.undelivered.get(&fact.at)?.numbers);
        self.learn(fact, numbers.as_ref().map_or(&[], |it| std::slice::from_ref(&it.canonical)));
    }

    /// Numbers that do not count any more decide no names.
    pub(super) fn fold_lost(&mut self) {
        self.known.directory.lose(&std::mem::take(&mut self.known.cx.lost));
    }

    pub(super) fn learn(&mut self, fact: Fact, numbers: &[Number]) {
        let (directory, author) = (fact.room, fact.log.author);
        let reach = self.known.reach_of(directory);
        if !reach.may_list(&fact.body) {
            self.known.cx.blame(author, |it| &mut it.void);
            return;
        }
        if let Body::Parted(it) = &fact.body {
            return self.learn_parted(&fact, it);
        }
        // It came in the turn in which its log was cut before it.
        let log = self.known.rooms.get(&directory).map(|room| room.logs.get(fact.at.log));
        if log.is_some_and(|log| log.fork.is_some_and(|cut| fact.at.seq >= cut)) {
            return;
        }
        let too_many_rooms = matches!(fact.body, Body::RoomCreated(_))
            && self.known.directory.room_count() >= crate::limits::ROOMS_MAX;
        let keys = &self.known.directory.keys;
        let too_many_keys = matches!(&fact.body, Body::Key(act) if !keys.has_room_for(act));
        let too_many_ids =
            matches!(&fact.body, Body::AgentClaimed(it) if !self.known.directory.has_room_for(it));
        if too_many_rooms || too_many_keys || too_many_ids {
            self.known.cx.faults.overflow += 1;
            return;
        }
        // A lie of the founder, which would be known to this node alone.
        let taken = |id: &RoomId| self.known.rooms.get(id).is_some_and(|room| room.is_directory);
        if matches!(&fact.body, Body::RoomCreated(it) if taken(&it.room)) {
            self.known.cx.blame(author, |it| &mut it.void);
            return;
        }
        let learned = self.known.directory.learn(self.known.cx.mesh, fact, numbers);
        if let Learned::Rooms(rooms) = &learned {
            let home = LogId { author, incarnation: 0 };
            for id in rooms.clone() {
                let room = self.known.directory.room(id);
                if room.is_some_and(|it| (it.source.0, it.author) == (directory, author)) {
                    let known = self.known.rooms.contains_key(&id);
                    self.known.ensure_room(id, home, reach);
                    if !known && author != self.known.cx.me {
                        self.known.note_unread(id);
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
                let owner = self.known.directory.owner(&agent).filter(|(_, settled)| *settled);
                self.known.rosters.set_owner(&agent, owner.map(|(key, _)| key));
            }
            Learned::Rooms(rooms) => {
                for room in rooms {
                    self.calls.note_if_without_lead(&self.known, room);
                    self.known.tell_of_room(room, true);
                }
            }
            Learned::Lane(node) => {
                let lanes = self.known.directory.lanes.get(&node).into_iter().flatten();
                let known = self.known.cx.lanes.entry(node).or_default();
                known.extend(lanes.map(|(_, lane)| *lane));
                if node == self.known.cx.me {
                    let mine = self.known.directory.lanes.get(&node).and_then(|it| it.last());
                    self.known.cx.my_lane = mine.map(|(_, lane)| *lane);
                } else {
                    self.on_known(node);
                }
                // Claims that waited for this lane can be accepted now.
                let waiting = self.known.rooms.values().filter(|room| !room.pending.is_empty());
                self.known.cx.active.extend(waiting.map(|room| room.id));
            }
        }
    }

    // Forks.

    pub(super) fn on_fork(&mut self, proof: Proof) {
        let Proof { certificate, run } = &proof;
        let (room, log, seq) = (certificate.room, certificate.log, certificate.seq);
        let known = self.known.rooms.get(&room).and_then(|it| {
            let ix = it.logs.ix(log)?;
            it.logs.get(ix).fork
        });
        if known.is_some_and(|known| known <= seq) {
            return;
        }
        if !proof.holds() || !self.known.rooms.get(&room).is_some_and(|it| it.logs.can_have(log)) {
            self.known.cx.faults.stray += 1;
            return;
        }
        self.known.cx.faults.forks += 1;
        self.known.cx.alarm(Alarm::Forked { author: log.author, room, seq });
        let run = Box::new(run.run().clone());
        let evidence = Change::Evidence { certificate: *certificate, run: run.clone() };
        self.known.cx.change(evidence);
        let told = Message::Fork(*certificate, run);
        let key = self.known.sealed_for(room);
        if self.proofs.len() < PROOFS_MAX {
            self.proofs.push(told.clone());
        }
        // By gossip, to every peer, and later to each that comes up: it must not depend on one of them.
        let peers =
            self.known.rooms.get(&room).map(|it| it.peers(&self.known.cx)).unwrap_or_default();
        for peer in peers {
            self.known.cx.send(peer, told.clone());
        }
        self.known.cx.broadcast(Some(room), told);
        let memory = self.known.is_memory(room);
        if !memory {
            self.distrust(key, log.author);
        }
        if let Some(it) = self.known.rooms.get_mut(&room) {
            if memory {
                it.shut_out(&mut self.known.cx, log.author);
            }
            it.quarantine(&mut self.known.cx, log, seq);
            if it.is_directory {
                self.forget_claims(room, (log, seq));
            }
        }
        if log.author == self.known.cx.me {
            self.refuse_waiters(|known, other| {
                let same_key = key.is_none() || key == known.sealed_for(other);
                if memory { other == room } else { same_key }
            });
        }
    }

    // Deliveries.

    fn on_passed_over(&mut self, room: RoomId, number: Number, at: LocalRef) {
        let Some(it) = self.known.rooms.get(&room).filter(|it| !it.is_directory) else { return };
        let log = it.logs.id(at.log);
        self.known.cx.notify(room, RoomEvent::PassedOver { number, log, at });
    }

    fn on_delivered(&mut self, room: RoomId, it: Delivered, numbers: NumberRange) {
        let (at, number, facts) = (it.at, it.number, it.facts);
        let is_directory = self.known.rooms.get(&room).is_some_and(|it| it.is_directory);
        if is_directory {
            let learned = self.known.directory.renumber((room, at), numbers.canonical);
            self.act_on(learned);
        } else {
            if let Some(said) = &it.said {
                self.known.rosters.touch(&said.agent, facts.wall_ms);
            }
            self.known.cx.notify(room, RoomEvent::Message(it));
            if facts.kind == CHAT {
                self.tell_turn(room, TurnReason::MessageSent, true);
            }
        }
        self.answer_all((room, at), number);
    }

    fn answer_all(&mut self, place: Source, number: Number) {
        for registering in self.calls.answer_all(&mut self.known, place, number) {
            self.attach(registering.call, registering.attach);
        }
    }

    pub(super) fn answer_unsettled(&mut self) {
        if let Some(unsettled) = self.calls.number_again(&mut self.known) {
            self.act_on_events(Step::Numbered);
            self.calls.answer_settled(&mut self.known, unsettled);
        }
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse_waiters(&mut self, which: impl Fn(&Known, RoomId) -> bool) {
        self.calls.refuse(&mut self.known, &which);
        self.claims.refuse(&mut self.known, &which);
    }

    fn note_ephemeral_claim(&mut self, room: RoomId, era: Era) {
        let claims = &mut self.known.change_node().ephemeral_claims;
        claims.retain(|(known, _)| *known != room);
        claims.push((room, era));
        // Rooms that ended long ago are not claimed in again: the oldest may go.
        if claims.len() > crate::limits::EPHEMERAL_ROOMS_MAX {
            claims.remove(0);
        }
    }

    // Out.

    /// Seals what was written, stores what changed, and sends what others have to know.
    fn seal_and_flush(&mut self, touched: &std::collections::BTreeSet<RoomId>) {
        let mut out: Vec<(RoomId, Run)> = Vec::new();
        for id in touched {
            let Some(room) = self.known.rooms.get_mut(id) else { continue };
            let sealed = room.seal(&mut self.known.cx, &self.known.identity);
            room.flush(&mut self.known.cx);
            if !room.record.local {
                out.extend(sealed.into_iter().map(|run| (*id, run)));
            }
            if room.is_busy() {
                self.known.busy.insert(*id);
            } else {
                self.known.busy.remove(id);
            }
            if room.is_shared() {
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
        first.append(&mut self.known.cx.effects);
        self.known.cx.effects = first;
    }

    fn mix_digest(&mut self, id: RoomId) {
        let Some(room) = self.known.rooms.get(&id) else { return };
        if room.record.local {
            return;
        }
        if !self.is_listed(room) {
            let seal = room.record.seal.clone();
            return self.forget_digest(id, seal.as_ref());
        }
        if let Some(seal) = &room.record.seal {
            let (key, digest) = (seal.owner, room.logs.digest());
            return self.mix_private_digest(key, id, Some(digest));
        }
        let now = first_8(sha256(&[&id.0, &room.logs.digest().to_be_bytes()]));
        let before = self.digests.insert(id, room.logs.digest());
        let before = before.map_or(0, |it| first_8(sha256(&[&id.0, &it.to_be_bytes()])));
        self.change_bucket(id, now ^ before);
    }

    /// Who made a room may have lost its part since, and what says that there is the room with it: whoever
    /// had not heard of it by then never will, and would differ for ever from those who had.
    fn is_listed(&self, room: &Room) -> bool {
        room.record.ephemeral
            || room.is_directory
            || room.id == RoomId::lobby(self.known.cx.mesh)
            || self.known.directory.room(room.id).is_some()
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
        if let Some(what) = self.known.rosters.take_news() {
            let news = RosterNews { node: self.known.cx.me, boot: self.known.cx.boot, what };
            self.tell_roster(news);
        }
        // What was announced just now is another version.
        self.keep_roster();
    }

    /// Signs and sends; what is too large for gossip goes to each peer directly.
    pub(super) fn tell_roster(&mut self, news: RosterNews) {
        let signed = Signed::new(self.known.cx.mesh, &self.known.identity, news);
        let message = Message::Roster(Box::new(signed));
        let bytes = message.encode().len();
        if let Message::Roster(it) = &message {
            self.barriers.keep_news(&it.it.what, bytes, &message);
        }
        if bytes <= GOSSIP_BYTES_MAX {
            self.known.cx.broadcast(None, message);
        } else {
            for peer in self.known.live.up.clone() {
                self.known.cx.send(peer, message.clone());
            }
        }
    }

    /// Tells the beacon task if there is something new to say.
    fn beat(&mut self) {
        let digest = self.digest();
        let (boot, roster) = self.known.rosters.version(self.known.cx.me);
        let pulse = Pulse { boot, roster, digest, spread: self.spread };
        if pulse != self.pulse {
            self.pulse = pulse;
            self.known.cx.effects.push(Effect::Pulse(pulse));
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
            let members = self.known.rosters.members(room).iter();
            let order: Arc<[_]> = members.map(|it| it.agent.clone()).collect();
            self.known.cx.notify(room, RoomEvent::Turn { holder, order, reason });
        }
    }

    /// Whether all of a room's members are to be told now; else they will be, before long.
    fn may_tell_turn_of_crowd(&mut self, room: RoomId) -> bool {
        if self.known.rosters.members(room).len() <= TURNS_TOLD_UP_TO {
            return true;
        }
        let now = self.known.cx.now.mono;
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
        let now = self.known.cx.now.mono;
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
