//! Messages of peers: the way of each to the part that takes it.

use std::time::Duration;

use super::{
    Engine,
    barrier::{self, Question},
    digests, exchange,
    exchange::{Frontier, Spans},
    handover, hearsay,
    hearsay::Told,
    inquiries::Answer,
    membership, private, secret,
};
use crate::{
    name::id::NodeId,
    order::issuing,
    turn::happened::Proof,
    wire::{
        message::{Beacon, Followed, Message, Notice, Post, Signed},
        run::Verified,
    },
};

impl Engine {
    pub(super) fn on_peer_up(&mut self, peer: NodeId) {
        if self.known.cx.parted.has(peer) {
            return membership::give_notice(&mut self.known, peer);
        }
        self.known.live.peer_up(self.known.cx.now.mono, peer);
        self.known.cx.up.insert(peer);
        self.known.cx.followers.peer_up(peer);
        if !self.known.node.had_peer {
            self.known.change_node().had_peer = true;
        }
        self.digests.compare_with(&mut self.known, peer);
        self.records.on_peer_up(&mut self.known, peer);
        self.roster_sync.on_peer_up(&mut self.known, peer);
        for proof in self.forks.of(&self.known, None) {
            self.known.cx.send(peer, proof);
        }
        secret::tell_about(&mut self.known, peer);
        self.carrying.on_peer_up(&self.known, peer);
        self.barriers.measure(&mut self.known, peer);
        // After the roster, which shows that this node follows them.
        self.greet(peer);
    }

    /// A connected peer is told how far this node is with the private rooms that both have.
    fn greet(&mut self, peer: NodeId) {
        let shared = self.known.cx.followers.shared_with(peer);
        private::greet(&mut self.known, &mut self.digests, &self.forks, peer, &shared);
    }

    pub(super) fn on_peer_down(&mut self, peer: NodeId) {
        self.known.live.peer_down(peer);
        self.beacons.refresh_spread(&self.known);
        self.known.cx.up.remove(&peer);
        self.known.cx.followers.peer_down(peer);
        self.barriers.peers.forget(peer);
        self.digests.forget_peer(peer);
        self.receipts.forget_peer(peer);
        self.inquiries.forget_peer(&mut self.known, peer);
        self.streams.forget_peer(peer);
        self.records.forget_peer(&mut self.known, peer);
        self.carrying.on_peer_down(&mut self.known, peer);
        for room in self.known.rooms.values_mut() {
            room.replica.sync.peer_down(peer);
        }
        self.known.stir_busy();
    }

    #[expect(clippy::too_many_lines, reason = "a table: one row for each message")]
    pub(super) fn on_message(&mut self, from: NodeId, message: Message<Verified>) {
        if self.known.cx.parted.has(from) {
            return;
        }
        let known = &mut self.known;
        match message {
            Message::Runs(runs) => exchange::on_runs(known, from, runs),
            Message::Spans { room, runs, bodies, last } => {
                exchange::on_spans(known, from, Spans { room, runs, bodies, last });
            }
            Message::WantBodies { room, at } => exchange::on_want_bodies(known, from, room, at),
            Message::Want { room, spans } => exchange::on_want(known, from, room, spans),
            Message::Have { room, heads, answer } => {
                self.on_have(from, &Frontier { room, heads, answer });
            }
            Message::Follows(theirs) => on_follows(self, from, &theirs),
            Message::Buckets(theirs) => self.digests.on_buckets(known, from, &theirs),
            Message::Digests(theirs) => digests::on_digests(known, from, theirs),
            Message::Beacon(signed) => self.on_beacon(from, signed, false),
            // By gossip alone: one that came over a link may not have reached the node that is called.
            Message::Call { .. } => known.cx.faults.stray += 1,
            Message::Lives { roll, counts, named, links } => {
                self.hearsay.on_told(known, from, &Told { roll, counts, named, links });
            }
            Message::WantLives(nodes) => hearsay::on_asked(known, from, &nodes),
            Message::Roster(signed) => self.roster_sync.on_roster(known, signed.value),
            Message::WantRoster { node, boot, version, nonce: _ } => {
                self.roster_sync.on_want_roster(known, from, node, (boot, version));
            }
            Message::Ask { room, era, tip, spans } => {
                let question = issuing::Question { era, tip, spans: &spans };
                exchange::on_ask(known, from, room, question);
            }
            Message::Probe { node } => membership::on_probe(known, from, node),
            Message::Sighting { node, age_ms } => {
                let age = age_ms.map(Duration::from_millis);
                known.live.sighted(known.cx.now.mono, from, (node, age));
                known.stir_busy();
            }
            Message::Offer(posts) => self.on_offer(from, &posts),
            Message::Accept(posts) => {
                self.handovers.on_accept(known, from, &posts);
                self.go_on_stopping();
            }
            Message::Taken(posts) => {
                self.handovers.on_taken(from, &posts);
                self.go_on_stopping();
            }
            Message::Parted(signed) => self.on_notice(from, signed.value),
            Message::Secret(signed) => self.renewal.on_secret(known, from, signed.value),
            Message::About(signed) => self.renewal.on_about(known, from, signed.value),
            Message::AskFrontier { nonce, boot, version, rooms } => {
                let question = Question { nonce, roster: (boot, version), rooms };
                self.barriers.on_question(known, &self.roster_sync, from, question);
            }
            Message::Frontier { nonce, boot, version, rooms } => {
                let answer = barrier::Answer { nonce, roster: (boot, version), rooms };
                self.barriers.on_answer(known, from, answer);
            }
            Message::AskCopies { room, copies } => {
                self.receipts.on_asked(known, from, room, copies)
            }
            Message::Copies { room, copies } => self.receipts.on_copies(known, from, room, copies),
            Message::AskReceipt { nonce, room, copied } => {
                self.inquiries.on_question(known, (from, nonce), room, copied);
            }
            Message::Receipt { nonce, held, agents } => {
                self.inquiries.on_answer(known, from, Answer { nonce, held, agents });
            }
            Message::Awaits(rooms) => self.streams.on_awaits(known, from, rooms),
            Message::Piece(piece) => self.streams.on_piece(known, from, &piece),
            Message::Records(records) => self.records.on_records(known, from, records),
            Message::Comparing(comparing) => self.records.on_comparing(known, from, comparing),
            Message::WantContents(wanted) => self.records.on_want_contents(known, from, wanted),
            Message::HaveContents(have) => self.records.on_have_contents(known, have),
            Message::Contents(sent) => self.records.on_contents(known, from, sent),
            Message::WantReplaced(wanted) => self.records.on_want_replaced(known, from, wanted),
            Message::Replaced(sent) => self.records.on_replaced(known, from, sent),
            Message::Carrying(word) => self.carrying.on_word(known, &self.records, (from, word)),
            Message::Parcel(parcel) => {
                self.carrying.on_parcel(known, &mut self.records, (from, parcel));
            }
            Message::Fork(certificate, run) => self.on_fork(&Proof { certificate, run: *run }),
        }
    }

    /// A message that a peer passes on. Nothing here is believed of that peer, and nothing is answered to it alone:
    /// another one asked.
    pub(super) fn on_gossip(&mut self, from: NodeId, message: Message<Verified>) {
        if self.known.cx.parted.has(from) {
            return;
        }
        if !message.may_be_gossiped() {
            self.known.cx.faults.stray += 1;
        } else if let Message::WantRoster { node, boot, version, nonce: _ } = message {
            self.roster_sync.on_asked(&mut self.known, node, (boot, version));
        } else if let Message::Beacon(signed) = message {
            self.on_beacon(from, signed, true);
        } else if let Message::Call { node, nonce: _ } = message {
            self.on_call(node);
        } else {
            self.on_message(from, message);
        }
    }

    fn on_have(&mut self, from: NodeId, theirs: &Frontier) {
        let room = theirs.room;
        if theirs.answer && !self.known.rooms.contains_key(&room) {
            // The peer is not to wait for a room that is not here.
            let heads = Vec::new();
            self.known.cx.send(from, Message::Have { room, heads, answer: false });
        }
        self.private.note_answer(&self.known, from, room);
        exchange::on_have(&mut self.known, &self.forks, from, theirs);
    }

    /// Somebody asks whether a node lives.
    fn on_call(&mut self, node: NodeId) {
        if node == self.known.cx.me {
            self.beacons.on_called(&self.known);
        } else {
            self.known.live.note_called(self.known.cx.now.mono, node);
        }
    }

    /// `gossiped`: it is on its way from its node, whoever passes it on.
    fn on_beacon(&mut self, from: NodeId, signed: Signed<Beacon>, gossiped: bool) {
        let (now, beacon) = (self.known.cx.now.mono, signed.value);
        if beacon.node == self.known.cx.me || self.known.cx.parted.has(beacon.node) {
            return;
        }
        if beacon.node == from {
            self.known.live.hear_directly(now, from, beacon.tick);
        }
        let is_news = self.known.live.hear(now, beacon);
        if gossiped || beacon.node != from {
            // A peer's own came over its connection, and nobody has looked at the signature.
            self.known.live.keep_signed(signed);
        }
        if !is_news {
            return;
        }
        if beacon.node == from {
            self.known.live.heard_directly(from);
        } else if !gossiped {
            self.known.live.heard_of(beacon.node);
        }
        self.known.rosters.set_alive(now, beacon.node, true);
        let version = self.known.rosters.version(beacon.node);
        if (beacon.boot, beacon.roster) > version && !self.known.cx.is_relay() {
            self.roster_sync.note_promise(now, beacon.node);
        }
        self.digests.on_beacon(&mut self.known, from, &beacon);
        self.records.on_beacon(&mut self.known, from, &beacon);
        // Entries that waited for their sequencer to be heard, or for anybody, may go on.
        self.known.stir_busy();
    }

    /// A peer stops and would have this node sequence its rooms.
    fn on_offer(&mut self, from: NodeId, posts: &[Post]) {
        if self.known.stopping {
            return;
        }
        // A room that was made just now: there is no time to wait until it is heard of.
        if posts.iter().any(|post| !self.known.rooms.contains_key(&post.room))
            && self.digests.catch_up_with(&mut self.known, from)
        {
            self.greet(from);
        }
        handover::on_offer(&mut self.known, from, posts);
    }

    /// A member says that this node has parted. That it says so is certain; the node that decided it is not.
    fn on_notice(&mut self, from: NodeId, notice: Notice) {
        let Some(parted) = membership::check_notice(&mut self.known, from, notice) else { return };
        if let Some(leaving) = self.handovers.leaving() {
            leaving.heard = true;
            return self.go_on_stopping();
        }
        self.note_farewell(parted);
    }
}

/// A peer follows these keys, and says how far it is with their rooms and records.
fn on_follows(engine: &mut Engine, from: NodeId, theirs: &[Followed]) {
    let Engine { known, digests, forks, records, carrying, .. } = engine;
    let in_step = private::on_follows(known, digests, forks, from, theirs);
    carrying.note_in_step(known, from, &in_step);
    records.on_follows(known, from, theirs);
}
