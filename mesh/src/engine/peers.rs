//! Peers: what they say, and what they are told.

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, turn::bucket};
use crate::{
    api::{boundary::Effect, event::RoomEvent},
    engine::context::Proof,
    limits::{BEACON_EVERY, DIGEST_ROOMS_MAX, GOSSIP_BYTES_MAX, NODES_MAX, OFFERED_AGAIN_FOR},
    name::id::{NodeId, RoomId},
    order::issuing::Question,
    presence::rosters::Taken,
    replica::log::first_8,
    wire::{
        message::{ApartBody, Beacon, Head, Message, RoomDigest},
        roster::{RosterNews, What},
        run::Verified,
    },
};

/// How long a peer's digest may differ before it is looked into: news under way explain it first.
const COMPARE_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// Proofs of forks in answer to one message: what is asked with little is not answered with much.
const PROOFS_AT_ONCE_MAX: usize = 4;
/// Rooms whose frontiers are asked for at once; the next comparison brings the rest.
const HAVES_AT_ONCE_MAX: usize = 1_024;

impl Engine {
    pub(super) fn on_peer_up(&mut self, peer: NodeId) {
        if self.cx.parted.has(peer) {
            return self.give_notice(peer);
        }
        self.live.peer_up(self.cx.now.mono, peer);
        self.cx.up.insert(peer);
        self.cx.followers.peer_up(peer);
        if !self.node.had_peer {
            self.change_node().had_peer = true;
        }
        self.compare_with(peer);
        let news = RosterNews { node: self.cx.me, boot: self.cx.boot, what: self.rosters.whole() };
        let signed = crate::wire::message::Signed::new(self.cx.mesh, &self.identity, news);
        self.cx.send(peer, Message::Roster(Box::new(signed)));
        let (boot, version) = self.rosters.version(peer);
        self.cx.send(peer, Message::WantRoster { node: peer, boot, version, nonce: None });
        for proof in self.proofs_of(None) {
            self.cx.send(peer, proof);
        }
        self.tell_about(peer);
        self.measure(peer);
        // After the roster, which shows that this node follows them.
        let shared = self.cx.followers.shared_with(peer);
        self.greet(peer, &shared);
    }

    pub(super) fn on_peer_down(&mut self, peer: NodeId) {
        self.live.peer_down(peer);
        self.refresh_spread();
        self.cx.up.remove(&peer);
        self.cx.followers.peer_down(peer);
        self.barriers.peers.forget(peer);
        self.compared.remove(&peer);
        for room in self.rooms.values_mut() {
            room.replica.sync.peer_down(peer);
        }
        self.cx.active.extend(self.busy.iter().copied());
    }

    pub(super) fn on_message(&mut self, from: NodeId, message: Message<Verified>) {
        if self.cx.parted.has(from) {
            return;
        }
        match message {
            Message::Runs(runs) => runs.into_iter().for_each(|run| self.on_run(from, run)),
            Message::Spans { room, runs, bodies, last } => {
                self.on_spans(from, room, (runs, bodies));
                self.in_room(from, room, |engine, room| {
                    engine.with_room(room, |it, cx| {
                        it.drain(cx);
                        if last {
                            it.on_spans_end(cx, from);
                        }
                    });
                });
            }
            Message::WantBodies { room, at } => self.in_shared(from, room, |engine, room| {
                engine.cx.effects.push(Effect::SendBodies { to: from, room, at });
            }),
            Message::Want { room, spans } => self.in_shared(from, room, |engine, room| {
                engine.with_room(room, |it, cx| it.replica.on_want(cx, from, spans));
            }),
            Message::Have { room, heads, answer } => {
                if answer && !self.rooms.contains_key(&room) {
                    // Whoever asks is not to wait for what is not here.
                    let heads = Vec::new();
                    self.cx.send(from, Message::Have { room, heads, answer: false });
                }
                self.note_answer(from, room);
                self.in_shared(from, room, |engine, room| {
                    engine.prove_forks(from, room, &heads);
                    engine.with_room(room, |it, cx| it.on_have(cx, from, &heads, answer));
                });
            }
            Message::Follows(theirs) => self.on_follows(from, theirs),
            Message::Buckets(theirs) => self.on_buckets(from, &theirs),
            Message::Digests(theirs) => self.on_digests(from, theirs),
            Message::Beacon(it) => self.on_beacon(from, it.value),
            Message::Roster(it) => self.on_roster(it.value),
            Message::WantRoster { node, boot, version, nonce: _ } => {
                self.on_want_roster(from, node, (boot, version));
            }
            Message::Ask { room, era, tip, spans } => self.in_room(from, room, |engine, room| {
                if let Some(it) = engine.rooms.get_mut(&room) {
                    it.on_ask(&mut engine.cx, &engine.live, Question { era, tip, spans: &spans });
                }
            }),
            Message::Probe { node } => self.on_probe(from, node),
            Message::Sighting { node, age_ms } => {
                let age = age_ms.map(std::time::Duration::from_millis);
                self.live.sighted(self.cx.now.mono, from, (node, age));
                self.cx.active.extend(self.busy.iter().copied());
            }
            Message::Offer(posts) => self.on_offer(from, &posts),
            Message::Accept(posts) => self.on_accept(from, &posts),
            Message::Taken(posts) => self.on_taken(from, &posts),
            Message::Parted(it) => self.on_notice(from, it.value),
            Message::Secret(it) => self.on_secret(from, it.value),
            Message::About(it) => self.on_about(from, it.value),
            Message::AskFrontier { nonce, boot, version, rooms } => {
                self.on_ask_frontier(from, (nonce, (boot, version)), rooms);
            }
            Message::Frontier { nonce, boot, version, rooms } => {
                self.on_frontier(from, (nonce, (boot, version)), rooms);
            }
            Message::Fork(certificate, run) => {
                self.on_fork(Proof { certificate, run: *run });
            }
        }
    }

    fn on_probe(&mut self, from: NodeId, node: NodeId) {
        let heard = self.live.last(node).map(|it| self.cx.now.mono.saturating_sub(it.at));
        let age_ms = heard.and_then(|age| u64::try_from(age.as_millis()).ok());
        self.cx.send(from, Message::Sighting { node, age_ms });
    }

    /// What a peer passes on. Nothing here is believed of that peer, and nothing is answered to it alone:
    /// whoever asked is another one.
    pub(super) fn on_gossip(&mut self, from: NodeId, message: Message<Verified>) {
        if self.cx.parted.has(from) {
            return;
        }
        if !message.may_be_gossiped() {
            self.cx.faults.stray += 1;
        } else if let Message::WantRoster { node, boot, version, nonce: _ } = message {
            self.on_roster_asked_for(node, (boot, version));
        } else {
            self.on_message(from, message);
        }
    }

    /// Somebody who is not connected wants a roster: by gossip, and one answer is for all who ask.
    fn on_roster_asked_for(&mut self, node: NodeId, known: (u64, u64)) {
        let now = self.cx.now.mono;
        let answered = self.roster_asked.is_some_and(|at| now < at + BEACON_EVERY);
        if node != self.cx.me || known >= self.rosters.version(node) || answered {
            return;
        }
        self.roster_asked = Some(now);
        let news = RosterNews { node, boot: self.cx.boot, what: self.rosters.whole_anew() };
        let signed = crate::wire::message::Signed::new(self.cx.mesh, &self.identity, news);
        let message = Message::Roster(Box::new(signed));
        // A larger one comes with a connection.
        if message.encode().len() <= GOSSIP_BYTES_MAX {
            self.cx.broadcast(None, message);
        }
    }

    /// For messages about a room that this node shares with others. One that is not known yet is
    /// remembered, one that is nobody else's business is not touched.
    fn in_room(&mut self, from: NodeId, room: RoomId, then: impl FnOnce(&mut Engine, RoomId)) {
        match self.rooms.get(&room) {
            None => self.note_unknown(room, from),
            Some(it) if it.replica.record.local => self.cx.faults.stray += 1,
            Some(_) => {
                self.cx.active.insert(room);
                then(self, room);
            }
        }
    }

    /// For messages that ask for what is in a room, or are to be believed what they say of it: of a
    /// private room only from peers that have shown that they follow it.
    fn in_shared(&mut self, from: NodeId, room: RoomId, then: impl FnOnce(&mut Engine, RoomId)) {
        let shared = self.rooms.get(&room).is_none_or(|it| it.replica.eligible(&self.cx).has(from));
        if shared {
            return self.in_room(from, room, then);
        }
        // What shows it may have been lost: it is asked for, and the peer asks again.
        let (boot, version) = self.rosters.version(from);
        self.cx.send(from, Message::WantRoster { node: from, boot, version, nonce: None });
    }

    /// A peer still follows authors whose logs forked: it has not seen why not to. Or it lacks something: that may wait for
    /// what others' entries name there, which nobody gives any more. The proofs may have been lost, and those of a room
    /// that is memory only went with the memory of whoever restarted.
    fn prove_forks(&mut self, peer: NodeId, room: RoomId, heads: &[Head]) {
        let Some(it) = self.rooms.get(&room) else { return };
        let forked = |node: NodeId| it.replica.is_forked(&self.cx, node);
        let theirs: BTreeSet<NodeId> =
            heads.iter().map(|head| head.log.author).filter(|node| forked(*node)).collect();
        let any = self.is_memory(room)
            || self.cx.forked_in(it.replica.record.seal.as_ref()).next().is_some();
        let waits = any && it.replica.logs.are_ahead_of(heads);
        if theirs.is_empty() && !waits {
            return;
        }
        let sealed = self.sealed_for(room);
        let counts_here = |other: RoomId| {
            let key = self.sealed_for(other);
            other == room || !self.is_memory(other) && (key.is_none() || key == sealed)
        };
        let mut needed = self.proofs_in(counts_here);
        needed.retain(|proof| {
            let Message::Fork(it, _) = proof else { return false };
            waits || theirs.contains(&it.log.author)
        });
        if needed.is_empty() {
            return;
        }
        // Which of them are news to the peer is not known: others the next time.
        let from = usize::try_from(self.cx.now.mono.as_secs()).unwrap_or(0) % needed.len();
        needed.rotate_left(from);
        for proof in needed.into_iter().take(PROOFS_AT_ONCE_MAX) {
            self.cx.send(peer, proof);
        }
    }

    fn with_room(
        &mut self,
        room: RoomId,
        then: impl FnOnce(&mut crate::room::Room, &mut crate::engine::context::Context),
    ) {
        if let Some(it) = self.rooms.get_mut(&room) {
            then(it, &mut self.cx);
        }
    }

    fn on_run(&mut self, from: NodeId, run: Verified) {
        let room = run.run().room;
        self.in_room(from, room, |engine, room| {
            if run.run().has_gone() {
                engine.note_retention(room);
            }
            engine.with_room(room, |it, cx| {
                let full = it.replica.record.ephemeral
                    && cx.ephemeral_bytes + run.run().size() > crate::limits::EPHEMERAL_BYTES_MAX;
                if full {
                    cx.faults.overflow += 1;
                } else {
                    it.receive(cx, from, run);
                }
            });
        });
    }

    /// Bodies come before their runs are tried, so that a complete answer is accepted at once.
    fn on_spans(
        &mut self,
        from: NodeId,
        room: RoomId,
        (runs, bodies): (Vec<Verified>, Vec<ApartBody>),
    ) {
        for run in runs {
            if run.run().room == room {
                self.on_run(from, run);
            } else {
                self.cx.faults.stray += 1;
            }
        }
        self.in_room(from, room, |engine, room| {
            engine.with_room(room, |it, cx| {
                for body in bodies {
                    it.replica.receive_body(
                        cx,
                        from,
                        Head { log: body.log, seq: body.seq },
                        body.body.into(),
                    );
                }
            });
        });
    }

    // Digests.

    /// Tells a peer the folded digests of all rooms; it answers where they differ.
    fn compare_with(&mut self, peer: NodeId) {
        self.compared.insert(peer, self.cx.now.mono);
        self.cx.send(peer, Message::Buckets(self.buckets.to_vec()));
    }

    /// A peer has what this node has not heard of, and will not be there for long.
    pub(super) fn catch_up_with(&mut self, peer: NodeId) {
        let now = self.cx.now.mono;
        if self.compared.get(&peer).is_some_and(|at| now < *at + OFFERED_AGAIN_FOR / 2) {
            return;
        }
        self.compare_with(peer);
        let shared = self.cx.followers.shared_with(peer);
        self.greet(peer, &shared);
    }

    fn on_buckets(&mut self, from: NodeId, theirs: &[u64]) {
        let differs = |room: &RoomId| theirs.get(bucket(*room)) != self.buckets.get(bucket(*room));
        let rooms: Vec<RoomDigest> = self
            .digests
            .iter()
            .filter(|(room, _)| differs(room))
            .map(|(room, digest)| RoomDigest { room: *room, digest: *digest })
            .collect();
        for part in rooms.chunks(DIGEST_ROOMS_MAX) {
            self.cx.send(from, Message::Digests(part.to_vec()));
        }
    }

    fn on_digests(&mut self, from: NodeId, theirs: Vec<RoomDigest>) {
        // Each room once: an answer is much larger than a question.
        let theirs: BTreeMap<RoomId, u64> =
            theirs.into_iter().map(|it| (it.room, it.digest)).collect();
        let mut asked = 0;
        for (id, digest) in theirs {
            let Some(room) = self.rooms.get(&id) else {
                self.note_unknown(id, from);
                continue;
            };
            let other = room.replica.record.local || !room.replica.eligible(&self.cx).has(from);
            if other || room.replica.logs.digest() == digest || asked >= HAVES_AT_ONCE_MAX {
                continue;
            }
            asked += 1;
            let heads = room.replica.logs.heads();
            self.cx.send(from, Message::Have { room: id, heads, answer: true });
        }
    }

    // Beacons and rosters.

    fn on_beacon(&mut self, from: NodeId, beacon: Beacon) {
        let now = self.cx.now.mono;
        if beacon.node == self.cx.me || self.cx.parted.has(beacon.node) {
            return;
        }
        if beacon.node == from {
            self.live.hear_directly(now, from, beacon.tick);
        }
        if !self.live.hear(now, beacon) {
            return;
        }
        self.rosters.set_alive(now, beacon.node, true);
        if (beacon.boot, beacon.roster) > self.rosters.version(beacon.node) {
            self.rosters_behind.entry(beacon.node).or_insert(now);
        }
        // Only a peer that is connected can be compared with; of others the digest is hearsay.
        let due = self.compared.get(&from).is_none_or(|at| now >= *at + COMPARE_EVERY);
        if beacon.node == from && due && beacon.digest != self.digest() {
            self.compare_with(from);
        }
        if beacon.digest == self.digest() && beacon.digest != self.in_step {
            self.in_step = beacon.digest;
            // The digest is of what everybody has.
            self.note_in_step_with(None);
        }
        // What waited for its sequencer to be heard, or for anybody, may go on.
        self.cx.active.extend(self.busy.iter().copied());
    }

    fn on_roster(&mut self, news: RosterNews) {
        let now = self.cx.now;
        let node = news.node;
        if node == self.cx.me || self.cx.parted.has(node) {
            return;
        }
        if let What::Typing { agent, room, typing, .. } = news.what {
            let known = self
                .rosters
                .record(&agent)
                .filter(|(at, it)| *at == node && it.rooms.contains_key(&room))
                .filter(|(at, it)| self.rosters.may_sit(room, *at, it.key));
            if let Some((_, record)) = known {
                let name = record.name.clone();
                self.cx.notify(room, RoomEvent::Typing { agent, name, typing });
            }
            return;
        }
        match self.rosters.apply(now, news) {
            Taken::Now => {
                self.rosters_behind.remove(&node);
                let alive = self.live.is_alive(now.mono, node);
                self.rosters.set_alive(now.mono, node, alive);
            }
            Taken::Missing => {
                self.rosters_behind.entry(node).or_insert(now.mono);
            }
            Taken::Old => {}
            Taken::Refused => self.cx.faults.stray += 1,
        }
    }

    fn on_want_roster(&mut self, from: NodeId, node: NodeId, known: (u64, u64)) {
        if node != self.cx.me || known >= self.rosters.version(node) {
            return;
        }
        let news = RosterNews { node, boot: self.cx.boot, what: self.rosters.whole() };
        if self.live.up.contains(&from) {
            let signed = crate::wire::message::Signed::new(self.cx.mesh, &self.identity, news);
            self.cx.send(from, Message::Roster(Box::new(signed)));
        } else {
            self.tell_roster(news);
        }
    }

    /// Whole rosters are asked for when news did not bring what a beacon promised.
    pub(super) fn ask_for_rosters(&mut self) {
        let now = self.cx.now.mono;
        let due: Vec<NodeId> = self
            .rosters_behind
            .iter()
            .filter(|(_, since)| now >= **since + BEACON_EVERY)
            .map(|(node, _)| *node)
            .collect();
        for node in due {
            self.rosters_behind.remove(&node);
            let (boot, version) = self.rosters.version(node);
            let promised = self.live.last(node).map(|it| (it.beacon.boot, it.beacon.roster));
            if promised.is_none_or(|it| it <= (boot, version)) {
                continue;
            }
            let direct = self.live.up.contains(&node);
            let me = first_8(self.cx.me.0);
            let nonce = (!direct).then_some(me ^ self.cx.now.wall_us);
            let want = Message::WantRoster { node, boot, version, nonce };
            if direct {
                self.cx.send(node, want);
            } else {
                self.cx.broadcast(None, want);
            }
        }
    }

    /// Beacons are gossiped while that tells anybody anything.
    pub(super) fn refresh_spread(&mut self) {
        self.spread = self.live.spread(self.cx.now.mono);
    }

    /// Nodes that are not heard any more take their agents with them.
    pub(super) fn refresh_liveness(&mut self) {
        let now = self.cx.now.mono;
        let heard: BTreeMap<NodeId, bool> = self
            .live
            .heard()
            .take(NODES_MAX)
            .map(|(node, _)| (node, self.live.is_alive(now, node)))
            .collect();
        for (node, alive) in heard {
            self.rosters.set_alive(now, node, alive);
        }
    }
}
