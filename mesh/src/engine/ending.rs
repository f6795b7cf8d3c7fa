//! Ending a turn: the effects of inputs are brought to rest, sealed, and handed to the driver.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use super::{
    Engine, agents, approvals,
    barrier::{AskedPeers, Parked},
    digests, directories, elections, ephemeral, given, keys,
    known::Known,
    membership::{self, Departure},
    once,
    pairs::Following,
    private, tasks,
};
use crate::{
    api::{
        batch::{Change, NumberRange},
        boundary::{Alarm, Effect, Turn},
        event::{AgentEvent, Delivered, RoomEvent, TurnReason},
    },
    directory::{Learned, Source},
    limits::{EPHEMERAL_ROOMS_MAX, GOSSIP_BYTES_MAX},
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, RoomId},
        number::{Era, Number},
    },
    presence::rosters,
    turn::happened::{Fact, Happened, Proof, Step},
    wire::{
        entry::{Body, NodeParted, Parted, Parting},
        kinds::CHAT,
        message::Message,
        roster::AgentRecord,
        run::Run,
    },
};

/// Runs in one gossip message: leaves room for its frame.
const RUNS_BYTES_MAX: usize = GOSSIP_BYTES_MAX - 2 * 1024;

impl Engine {
    /// The effects of all inputs since the last turn: commit the batch, then perform the effects in
    /// order.
    pub fn take_turn(&mut self) -> Turn {
        let mut touched = BTreeSet::new();
        // Each round can only deliver, number or learn what was not before, so it comes to rest.
        loop {
            self.fold_facts();
            for step in [Step::Numbered, Step::Forked, Step::Delivered] {
                self.act_on_events(step);
            }
            self.answer_unsettled();
            let following = Following { private: &mut self.private, digests: &mut self.digests };
            self.pairs.follow_told(&mut self.known, &mut self.records, following);
            self.pairs.answer(&mut self.known);
            self.settle_rosters();
            for step in [Step::ClaimedInMemory, Step::HandedToMe] {
                self.act_on_events(step);
            }
            self.handovers.confirm_handovers(&mut self.known);
            self.go_on_presenting();
            self.settle_members();
            let rooms = std::mem::take(&mut self.known.cx.to_advance);
            // Commands that wait for a barrier go on when all that came with it has come to rest.
            if rooms.is_empty() && !self.go_on_with_barrier() {
                break;
            }
            for id in rooms {
                touched.insert(id);
                tasks::judge_claims(&mut self.known, id);
                once::judge(&mut self.known, id);
                approvals::judge(&mut self.known, id);
                if let Some(room) = self.known.rooms.get_mut(&id) {
                    room.advance(&mut self.known.cx, &mut self.known.live);
                    room.pump(&mut self.known.cx);
                }
                self.voting.go_on_voting(&mut self.known, id);
                self.claims.settle_tasks(&mut self.known, &mut self.inboxes, id);
                self.onces.settle(&mut self.known, &mut self.receipts, id);
                self.approvals.settle(&mut self.known, id);
                self.given.note(&self.known, &self.inboxes, id);
                self.speaking.settle(&mut self.known, &mut self.inboxes, id);
                self.leaders.settle_elections(&mut self.known, id);
            }
        }
        self.seal_and_flush(&touched);
        self.inboxes.tell(&mut self.known);
        self.receipts.follow(&mut self.known, self.waiters.take_durable());
        self.receipts.answer_ready(&self.known, &touched);
        self.receipts.flush(&mut self.known);
        self.records.ask_contents(&mut self.known, false);
        self.records.tell_followers(&mut self.known);
        self.known.tell_of_records();
        self.announce_roster();
        self.carrying.end_turn(&mut self.known);
        let digest = self.digests.said(&mut self.known);
        self.beacons.beat(&mut self.known, digest, self.records.digest());
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
        self.known.settle_successors();
        some
    }

    fn on_happened(&mut self, happened: Happened) {
        match happened {
            Happened::Listed(fact) => self.on_listed(fact),
            Happened::Numbered { room, at, number } => {
                let learned = self.known.directory.renumber((room, at), number);
                self.act_on(learned);
            }
            Happened::Forked(proof) => self.on_fork(&proof),
            Happened::Delivered { room, entry, numbers, mentioned } => {
                self.on_delivered(room, entry, numbers, &mentioned);
            }
            Happened::PassedOver { room, number, at } => {
                on_passed_over(&mut self.known, room, number, at)
            }
            Happened::ClaimedInMemory { room, era } => {
                note_ephemeral_claim(&mut self.known, room, era)
            }
            Happened::HandedToMe { room, era, from } => {
                self.handovers.take(room, era, from);
            }
        }
    }

    fn on_listed(&mut self, fact: Fact) {
        let numbers = self
            .known
            .rooms
            .get(&fact.room)
            .and_then(|room| room.order.numbering.undelivered.get(&fact.at)?.numbers);
        self.learn(
            fact,
            numbers.as_ref().map_or(&[], |range| std::slice::from_ref(&range.canonical)),
        );
    }

    /// Folds an entry of a directory.
    pub(super) fn learn(&mut self, fact: Fact, numbers: &[Number]) {
        if !directories::may_list(&mut self.known, &fact) {
            return;
        }
        if let Body::Parted(parted) = &fact.body {
            return self.learn_parted(&fact, parted);
        }
        let learned = directories::learn(&mut self.known, fact, numbers);
        self.act_on(learned);
    }

    fn learn_parted(&mut self, fact: &Fact, parted: &NodeParted) {
        let Some(departure) = membership::learn(&mut self.known, fact, parted) else { return };
        if parted.why == Parting::Expelled {
            let mine = fact.log.author == self.known.cx.me;
            self.renewal.on_expelled(&mut self.known, departure.node, mine);
        }
        self.part_with(departure);
    }

    /// From here on a node has no part.
    fn part_with(&mut self, departure: Departure) {
        let node = departure.node;
        let now = self.known.cx.now.mono;
        let connected = self.known.cx.up.remove(&node);
        self.known.live.forget(node);
        self.digests.forget_peer(node);
        self.records.forget_peer(&mut self.known, node);
        self.barriers.peers.forget(node);
        self.receipts.forget_peer(node);
        self.inquiries.forget_peer(&mut self.known, node);
        self.streams.forget_peer(node);
        self.renewal.about.remove(&node);
        self.roster_sync.forget(node);
        self.known.rosters.set_alive(now, node, false);
        for group in self.known.cx.followers.forget(node) {
            private::on_followers_changed(&mut self.known, &mut self.digests, group);
        }
        for (room, from) in membership::cut_off(&mut self.known, node) {
            self.forget_claims(room, from);
        }
        let Some(parted) = self.known.cx.parted.view(node) else { return };
        if node == self.known.cx.me {
            return self.note_farewell(parted);
        }
        self.speaking.deliveries.on_parted(&mut self.known, node);
        if departure.news {
            self.known.cx.alarm(Alarm::Parted { node, removal: parted });
        }
        self.renewal.ask_for_secret_without_the_expelled(&mut self.known);
        if connected {
            membership::give_notice(&mut self.known, node);
        } else {
            self.known.cx.effects.push(Effect::ShutOut(node));
        }
    }

    /// Nothing counts that this log says in a directory from there on, numbers included: clients are told of rooms that
    /// are none any more or are called otherwise, and ids belong to their owners without it.
    fn forget_claims(&mut self, directory: RoomId, from: EntryRef) {
        let disowned = self.known.directory.forget(self.known.cx.mesh, directory, from);
        directories::fold_lost(&mut self.known);
        self.records.on_cut(&mut self.known);
        // Before clients are told: they need not hear of a room that it is gone, and there again.
        self.waiters.note_rooms_without_lead(&self.known);
        self.answer_unsettled();
        self.known.replaced.extend(self.known.rosters.replaced());
        self.known.settle_successors();
        for agent in disowned {
            self.act_on(Learned::Agent(agent));
        }
        self.known.doubt_members();
        let told = self.known.told.keys().copied().filter(|id| self.known.rooms.contains_key(id));
        for id in told.collect::<Vec<_>>() {
            self.known.tell_of_room(id, false);
        }
    }

    /// This node has no part any more, and nobody waits for its entries.
    pub(super) fn note_farewell(&mut self, parted: Parted) {
        if membership::note_farewell(&mut self.known, parted) {
            self.refuse_waiters(|_, _| true);
            self.known.stir_busy();
        }
    }

    /// A key is no longer valid: its agents go. The rooms of one that was revoked are shown no more.
    fn on_invalid(&mut self, key: KeyPrint, revoked: bool) {
        let Some(agents) = keys::on_invalid(&mut self.known, key) else { return };
        for (agent, record) in agents {
            self.send_off(&agent, record);
        }
        if revoked {
            self.known.doubt_members();
            self.speaking.deliveries.on_revoked(&mut self.known, key);
            private::withdraw_rooms_of(&mut self.known, key);
        }
    }

    /// All that was a key's own belongs to another one: its agents go, and come back with that one.
    fn on_replaced(&mut self, key: KeyPrint) {
        self.known.own_keys.remove(&key);
        if self.known.directory.keys().is_revoked(key) {
            self.on_invalid(key, true);
        }
        self.known.replaced.insert(key);
        self.pairs.note_successor(&self.known, key);
        let line = self.known.directory.keys().line(self.known.directory.current(key));
        for owner in line.into_iter().chain([key]) {
            self.records.on_key(&mut self.known, owner);
        }
    }

    /// An agent of this node is gone, and may come back. Ephemeral rooms that it made wait for somebody to join
    /// them, for a while: it may have been a command that makes a room for others.
    pub(super) fn send_off(&mut self, agent: &AgentId, record: AgentRecord) {
        agents::let_go(&mut self.known, agent, record);
        self.settle_rosters();
    }

    pub(super) fn act_on(&mut self, learned: Learned) {
        match learned {
            Learned::Nothing => {}
            Learned::Key(key) | Learned::Account(key) => self.records.on_key(&mut self.known, key),
            Learned::Revoked(key) => self.on_invalid(key, true),
            Learned::Replaced(key) => self.on_replaced(key),
            Learned::Expired(key) => self.on_invalid(key, false),
            Learned::Agent(agent) => self.known.note_owner(&agent),
            Learned::Rooms(rooms) => {
                for room in rooms {
                    self.waiters.note_if_without_lead(&self.known, room);
                    self.known.tell_of_room(room, true);
                }
            }
            Learned::Direct(room) => {
                self.known.tell_of_room(room, true);
                self.speaking.settle(&mut self.known, &mut self.inboxes, room);
            }
            Learned::Closed(room) => given::on_closed(&mut self.known, room),
            Learned::Lane(node) => directories::on_lane(&mut self.known, node),
        }
    }

    // Agents on record.

    /// Members that came have seats, those that were taken off have none, and retired agents are not attached.
    fn settle_members(&mut self) {
        for (room, changed) in self.known.take_member_news() {
            for (agent, key) in changed.came {
                self.agents.enlist(&mut self.known, (&agent, key), room, false);
            }
            for agent in changed.gone {
                self.agents.unseat_removed(&mut self.known, &agent, room);
            }
        }
        for agent in std::mem::take(&mut self.known.doubted) {
            if self.known.directory.proofs().is_retired(&agent) {
                self.agents.end_retired(&mut self.known, &agent);
            }
        }
        self.settle_rosters();
    }

    // Rosters.

    /// Tells members and clients the changes of rosters.
    pub(super) fn settle_rosters(&mut self) {
        let mut left = VecDeque::from(self.known.rosters.take_happened());
        while let Some(happened) = left.pop_front() {
            self.on_roster_change(happened);
            // One thing leads to another.
            left.extend(self.known.rosters.take_happened());
        }
    }

    fn on_roster_change(&mut self, happened: rosters::RosterEvent) {
        use rosters::RosterEvent;
        match happened {
            RosterEvent::Joined { room, agent, reconnected } => {
                let Some((_, record)) = self.known.rosters.record(&agent) else { return };
                let name = Arc::clone(&record.name);
                self.known.cx.notify(room, RoomEvent::Joined { agent, name, reconnected });
                self.turns.tell(&mut self.known, room, TurnReason::Joined, false);
            }
            RosterEvent::Left { room, agent, disconnected } => {
                self.known.cx.notify(room, RoomEvent::Left { agent });
                let reason = if disconnected { TurnReason::Disconnected } else { TurnReason::Left };
                self.turns.tell(&mut self.known, room, reason, false);
                elections::clear_leader_if_gone(&mut self.known, room);
                self.unlist_if_empty(room);
            }
            RosterEvent::Reseated { room } => {
                self.turns.tell(&mut self.known, room, TurnReason::Joined, false);
            }
            RosterEvent::Presence { agent } => agents::tell_presence(&mut self.known, &agent),
            RosterEvent::Superseded { agent } => {
                if let Some(registration) = self.known.registrations.remove(&agent) {
                    let event = AgentEvent::Displaced { agent, registration };
                    self.known.cx.effects.push(Effect::Tell(event));
                }
            }
            RosterEvent::RoomLives { room } => ephemeral::lives(&mut self.known, room),
            RosterEvent::RoomDied { room } => self.on_room_died(room),
            RosterEvent::Shows { node } => {
                private::on_shown(&mut self.known, &mut self.digests, &self.forks, node);
            }
        }
    }

    /// The last member here may have left: for this node the room need not live on then.
    pub(super) fn unlist_if_empty(&mut self, room: RoomId) {
        if ephemeral::unlist_if_empty(&mut self.known, room) {
            self.settle_rosters();
        }
    }

    /// No node lists the room any more.
    fn on_room_died(&mut self, id: RoomId) {
        let Some(room) = ephemeral::end(&mut self.known, id) else { return };
        self.waiters.refuse_ended(&mut self.known, id);
        self.voting.forget_votes(&mut self.known, &room);
        self.claims.forget_tasks(&mut self.known, &room);
        self.onces.forget(&mut self.known, &room);
        self.approvals.forget(&mut self.known, &room);
        self.leaders.forget(id);
        self.digests.forget_room(&room);
        self.turns.forget(id);
        self.forks.forget(id);
        self.known.cx.change(Change::Drop { room: id });
        if let Some(view) = self.known.told.remove(&id) {
            let access = view.access();
            self.known.cx.notify(id, RoomEvent::Destroyed { access });
        }
    }

    // Forks.

    pub(super) fn on_fork(&mut self, proof: &Proof) {
        let Some(fork) = self.forks.take(&mut self.known, proof) else { return };
        if self.known.rooms.get(&fork.room).is_some_and(|room| room.replica.is_directory) {
            self.forget_claims(fork.room, EntryRef { log: fork.log, seq: fork.seq });
        }
        if fork.log.author == self.known.cx.me {
            self.refuse_waiters(|known, room| fork.counts_in(known, room));
        }
    }

    // Deliveries.

    fn on_delivered(
        &mut self,
        room: RoomId,
        entry: Delivered,
        numbers: NumberRange,
        mentioned: &[AgentId],
    ) {
        let (at, number, facts) = (entry.at, entry.number, entry.facts);
        let is_directory =
            self.known.rooms.get(&room).is_some_and(|room| room.replica.is_directory);
        if is_directory {
            let learned = self.known.directory.renumber((room, at), numbers.canonical);
            self.act_on(learned);
        } else {
            if let Some(said) = &entry.said {
                self.known.rosters.touch(&said.agent, facts.wall_ms);
                self.known.note_begun(room, &entry);
                self.agents.note_said(&mut self.known, room, said, number);
            }
            self.digests.note_said(&self.known, room);
            self.speaking.requests.on_delivered(&self.known, room, &entry);
            let kept_back = self.speaking.conversations.on_delivered(&self.known, room, &entry);
            // Words on a request may have come with it.
            self.speaking.settle(&mut self.known, &mut self.inboxes, room);
            if let Some(why) = kept_back {
                let (deliveries, inboxes) = (&mut self.speaking.deliveries, &self.inboxes);
                deliveries.refused(&mut self.known, inboxes, (room, &entry), why.rule());
            } else if !self.speaking.deliveries.is_withdrawn(&self.known, room, &entry) {
                self.speaking.deliveries.on_delivered(&self.known, room, &entry);
                self.inboxes.on_delivered(&mut self.known, room, &entry, mentioned);
                self.known.cx.notify(room, RoomEvent::Message(entry));
            }
            if facts.kind == CHAT {
                self.turns.tell(&mut self.known, room, TurnReason::MessageSent, true);
            }
        }
        self.answer_all((room, at), number);
    }

    // Waiters.

    fn answer_all(&mut self, place: Source, number: Number) {
        for registering in self.waiters.answer_all(&mut self.known, place, number) {
            self.attach(registering.call, registering.attach);
        }
    }

    pub(super) fn answer_unsettled(&mut self) {
        if let Some(unsettled) = self.waiters.number_again(&mut self.known) {
            self.act_on_events(Step::Numbered);
            self.waiters.answer_settled(&mut self.known, unsettled);
        }
    }

    /// Nobody takes what this node wrote in these rooms, so nobody is to wait for it.
    pub(super) fn refuse_waiters(&mut self, which: impl Fn(&Known, RoomId) -> bool) {
        self.waiters.refuse(&mut self.known, &which);
        self.receipts.refuse(&mut self.known, &which);
        self.claims.refuse(&mut self.known, &which);
        self.onces.refuse(&mut self.known, &which);
        self.approvals.refuse(&mut self.known, &which);
    }

    /// Registrations go on whose keys' rooms are here, or have not come in time.
    fn go_on_presenting(&mut self) {
        for room in private::show_read(&mut self.known) {
            self.agents.note_shown(&mut self.known, room);
        }
        for registering in self.private.take_ready(&mut self.known) {
            self.attach(registering.call, registering.attach);
        }
    }

    /// Whether a command went on, and others may wait for its effects.
    fn go_on_with_barrier(&mut self) -> bool {
        let mut some = false;
        if let Some(waited) = self.barriers.end(&self.known) {
            some |= !waited.commands.is_empty();
            self.go_on_after(waited.commands, &waited.running.asked);
            self.barriers.resume(waited.running);
        }
        let came = self.barriers.take_came();
        some |= !came.is_empty();
        self.go_on_after(came, &AskedPeers::new());
        let without = self.barriers.begin(&mut self.known);
        some |= !without.is_empty();
        for parked in without {
            self.carry_out(parked.call, parked.command);
        }
        some
    }

    fn go_on_after(&mut self, commands: Vec<Parked>, asked: &AskedPeers) {
        for parked in commands {
            if let Some(parked) = self.barriers.go_on(&self.known, parked, asked) {
                self.carry_out(parked.call, parked.command);
            }
        }
    }

    // Out.

    /// Seals what was written, stores what changed, and sends what others have to know.
    fn seal_and_flush(&mut self, touched: &BTreeSet<RoomId>) {
        let mut out: Vec<(RoomId, Run)> = Vec::new();
        for id in touched {
            let Some(room) = self.known.rooms.get_mut(id) else { continue };
            let sealed = room.seal(&mut self.known.cx, &self.known.identity);
            room.flush(&mut self.known.cx);
            if !room.replica.record.local {
                out.extend(sealed.into_iter().map(|run| (*id, run)));
            }
            if room.is_busy() {
                self.known.busy.insert(*id);
            } else {
                self.known.busy.remove(id);
            }
            self.digests.note(&self.known, *id);
        }
        self.handovers.send_to_successor(&mut self.known, &out);
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

    fn announce_roster(&mut self) {
        if let Some(what) = self.known.rosters.take_news() {
            self.roster_sync.tell(&mut self.known, what);
        }
        // The announcement of just now is another version.
        self.agents.keep_roster(&mut self.known);
    }
}

fn on_passed_over(known: &mut Known, room: RoomId, number: Number, at: LocalRef) {
    let Some(state) = known.rooms.get(&room).filter(|room| !room.replica.is_directory) else {
        return;
    };
    let log = state.replica.logs.id(at.log);
    known.cx.notify(room, RoomEvent::PassedOver { number, log, at });
}

fn note_ephemeral_claim(known: &mut Known, room: RoomId, era: Era) {
    let claims = &mut known.change_node().ephemeral_claims;
    claims.retain(|(claimed, _)| *claimed != room);
    claims.push((room, era));
    // Rooms that ended long ago are not claimed in again: the oldest may go.
    if claims.len() > EPHEMERAL_ROOMS_MAX {
        claims.remove(0);
    }
}

/// Runs in gossip-sized parts, those of one bucket together.
fn in_parts(runs: Vec<(RoomId, Run)>) -> Vec<Vec<(RoomId, Run)>> {
    let mut parts: Vec<Vec<(RoomId, Run)>> = Vec::new();
    let mut sorted = runs;
    sorted.sort_by_key(|(room, run)| (digests::bucket(*room), *room, run.first));
    let mut bytes = 0;
    for (room, run) in sorted {
        let size = run.size();
        match parts.last_mut() {
            Some(part)
                if bytes + size <= RUNS_BYTES_MAX
                    && part.last().is_some_and(|(last, _)| {
                        digests::bucket(*last) == digests::bucket(room)
                    }) =>
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
        name::id::{LogId, NodeId},
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
            assert!(
                part.iter().all(|(room, _)| digests::bucket(*room) == digests::bucket(part[0].0))
            );
        }
        let rooms: Vec<RoomId> = parts.iter().flatten().map(|(room, _)| *room).collect();
        assert!(rooms.contains(&one) && rooms.contains(&same) && rooms.contains(&other));
        // Two buckets, and what does not fill a part because the next run is a large one.
        assert!(parts.len() <= whole / (RUNS_BYTES_MAX - 8_300) + 2, "{} parts", parts.len());
        assert!(parts.iter().any(|part| bytes(part) > RUNS_BYTES_MAX - 300), "one is full");
    }
}
