//! Copies: how many nodes hold a message durably. Each node speaks for itself alone, when it is asked, and out of its
//! store: so nothing is said that a power failure could take back (`docs/decisions/receipts.md`).
//!
//! A send that wants copies asks when it is written: the question travels with the message, and a peer answers it once
//! it holds the message and its number. Such a question waits at the peer. Sends that want none cost nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    known::Known,
    waiters::{DurableStep, Securing},
};
use crate::{
    api::{
        boundary::Effect,
        command::{CallId, Outcome, SaidOk},
        once::OnceAnswered,
    },
    directory::Source,
    limits::{
        COPIES_ASKED_EVERY, COPIES_AWAITED_FOR, COPIES_AWAITED_PER_PEER_MAX, COPIES_NAMED_MAX,
        COPIES_WANTED_MAX, COPIES_WITHIN_MAX, ONCE_DURABLE_WITHIN,
    },
    name::{
        id::{EntryRef, LocalRef, NodeId, RoomId},
        number::Number,
    },
    room::Room,
    wire::copies::{Copied, CopyOf},
};

/// A message of this node's clients, or an act, that others are asked for.
#[derive(Clone, Debug)]
struct Wanted {
    name: Name,
    /// Nodes that have said that they hold it, and the number that they gave.
    said: BTreeMap<NodeId, Option<Number>>,
    calls: Vec<Waiting>,
    asked_at: Duration,
    since: Duration,
}

/// What others are to know an entry by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// Its number, which it does not have yet.
    Unnumbered,
    /// Its number here.
    Number(Number),
    /// Acts have none.
    Act,
}

impl Name {
    fn number(self) -> Option<Number> {
        if let Name::Number(number) = self { Some(number) } else { None }
    }

    /// Whether a node that gave this number holds it as it is here.
    fn is(self, said: Option<Number>) -> bool {
        match self {
            Name::Unnumbered => false,
            Name::Number(number) => said == Some(number),
            Name::Act => said.is_none(),
        }
    }
}

/// A call that waits for copies of its entry.
#[derive(Clone, Debug)]
struct Waiting {
    call: CallId,
    secured: Secured,
    /// So many, this node's included.
    copies: usize,
    until: Duration,
}

/// The answer to a call, but for the count of copies.
#[derive(Clone, Debug)]
enum Secured {
    Said(SaidOk),
    Once(RoomId, OnceAnswered),
}

/// A question of a peer for a message that is not here yet, or has no number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    copied: Copied,
    until: Duration,
}

/// An entry of a room.
pub(super) type Place = (RoomId, EntryRef);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Receipts {
    /// At most [`COPIES_WANTED_MAX`].
    wanted: BTreeMap<Source, Wanted>,
    /// At most [`COPIES_AWAITED_PER_PEER_MAX`] of each peer.
    pub(super) awaited: BTreeMap<Place, BTreeMap<NodeId, Question>>,
    pub(super) of_peer: BTreeMap<NodeId, usize>,
    /// Questions of this turn.
    asking: BTreeMap<(NodeId, RoomId), Vec<CopyOf>>,
    /// Answers of this turn: to be looked for in the store.
    answering: BTreeMap<(NodeId, RoomId), Vec<Copied>>,
}

impl Receipts {
    // This node's messages.

    /// Goes on with sends that want copies of their messages.
    pub(super) fn follow(&mut self, known: &mut Known, steps: Vec<DurableStep>) {
        for step in steps {
            match step {
                DurableStep::Written(place) => self.want(known, place),
                DurableStep::Numbered(place, securing) => self.secure(known, place, securing),
            }
        }
    }

    /// Asks for copies of a message, unless that was done.
    fn want(&mut self, known: &Known, place: Source) {
        if self.wanted.contains_key(&place) || self.wanted.len() >= COPIES_WANTED_MAX {
            return;
        }
        let now = known.cx.now.mono;
        let (said, calls) = Default::default();
        let wanted = Wanted { name: Name::Unnumbered, said, calls, asked_at: now, since: now };
        self.wanted.insert(place, wanted);
        self.ask(known, place);
    }

    /// A message has its number: its send is answered when enough nodes hold it.
    fn secure(&mut self, known: &mut Known, place: Source, securing: Securing) {
        let Securing { call, said, durable } = securing;
        let name = Name::Number(said.number);
        let until = known.cx.now.mono + durable.within.min(COPIES_WITHIN_MAX);
        let secured = Secured::Said(said);
        let waiting = Waiting { call, secured, copies: durable.copies, until };
        self.wait(known, (place, name), waiting);
    }

    /// An act grants something: its client is answered when another node holds it. The node that wrote it does.
    pub(super) fn secure_act(
        &mut self,
        known: &mut Known,
        call: CallId,
        place: Source,
        done: OnceAnswered,
    ) {
        let Some(room) = known.rooms.get(&place.0) else { return };
        let is_mine = room.replica.name_of(place.1).log == room.replica.mine;
        let others =
            if room.replica.record.local { 0 } else { room.replica.peers(&known.cx).len() };
        let until = known.cx.now.mono + ONCE_DURABLE_WITHIN;
        let secured = Secured::Once(place.0, done);
        let waiting = Waiting { call, secured, copies: 2, until };
        if !is_mine {
            answer(known, waiting, 2);
        } else if others == 0 {
            answer(known, waiting, 1);
        } else {
            self.wait(known, (place, Name::Act), waiting);
        }
    }

    fn wait(&mut self, known: &mut Known, (place, name): (Source, Name), waiting: Waiting) {
        let stopping = known.stopping;
        if waiting.copies > 1 && !stopping {
            self.want(known, place);
        }
        match self.wanted.get_mut(&place).filter(|_| !stopping) {
            Some(wanted) => {
                wanted.name = name;
                wanted.calls.push(waiting);
                self.settle(known, place);
            }
            None => answer(known, waiting, 1),
        }
    }

    /// Answers the sends of a message that enough nodes hold.
    fn settle(&mut self, known: &mut Known, place: Source) {
        let Some(wanted) = self.wanted.get_mut(&place) else { return };
        let copies = wanted.copies(known, place.0);
        let enough = |waiting: &mut Waiting| waiting.copies <= copies;
        for waiting in wanted.calls.extract_if(.., enough).collect::<Vec<_>>() {
            answer(known, waiting, copies);
        }
        if wanted.name != Name::Unnumbered && wanted.calls.is_empty() {
            self.wanted.remove(&place);
        }
    }

    /// Asks peers that have not said that they hold a message under the number that it has here.
    fn ask(&mut self, known: &Known, place: Source) {
        let Some(wanted) = self.wanted.get(&place) else { return };
        let Some(room) = known.rooms.get(&place.0) else { return };
        let copy = CopyOf { place: room.replica.name_of(place.1), number: wanted.name.number() };
        for peer in room.replica.peers(&known.cx) {
            if !wanted.said.get(&peer).is_some_and(|said| wanted.name.is(*said)) {
                self.asking.entry((peer, place.0)).or_default().push(copy);
            }
        }
    }

    /// A peer holds messages.
    pub(super) fn on_copies(
        &mut self,
        known: &mut Known,
        from: NodeId,
        room: RoomId,
        copies: Vec<Copied>,
    ) {
        for Copied { place, number, .. } in copies {
            let log = known.rooms.get(&room).and_then(|room| room.replica.logs.ix(place.log));
            let Some(log) = log else { continue };
            let place = (room, LocalRef { log, seq: place.seq });
            if let Some(wanted) = self.wanted.get_mut(&place) {
                wanted.said.insert(from, number);
                self.settle(known, place);
            }
        }
    }

    /// Asks again, and answers sends that have waited for long enough with the copies that there are.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        for place in self.wanted.keys().copied().collect::<Vec<_>>() {
            self.go_on_with(known, place);
        }
        for questions in self.awaited.values_mut() {
            let over = questions.extract_if(.., |_, question| question.until <= now);
            over.for_each(|(peer, _)| forget_one(&mut self.of_peer, peer));
        }
        self.awaited.retain(|_, questions| !questions.is_empty());
    }

    fn go_on_with(&mut self, known: &mut Known, place: Source) {
        let now = known.cx.now.mono;
        let Some(wanted) = self.wanted.get_mut(&place) else { return };
        let copies = wanted.copies(known, place.0);
        for waiting in wanted.calls.extract_if(.., |call| call.until <= now).collect::<Vec<_>>() {
            answer(known, waiting, copies);
        }
        // One that never gets its number was refused.
        let is_named = wanted.name != Name::Unnumbered;
        let forlorn = now >= wanted.since + COPIES_WITHIN_MAX;
        if wanted.calls.is_empty() && (is_named || forlorn) {
            self.wanted.remove(&place);
        } else if now >= wanted.asked_at + COPIES_ASKED_EVERY {
            wanted.asked_at = now;
            self.ask(known, place);
        }
    }

    /// The node stops: sends are answered with the copies that there are.
    pub(super) fn stop(&mut self, known: &mut Known) {
        for (place, wanted) in std::mem::take(&mut self.wanted) {
            let copies = wanted.copies(known, place.0);
            wanted.calls.into_iter().for_each(|waiting| answer(known, waiting, copies));
        }
    }

    /// Nothing counts any more that this node wrote in these rooms.
    pub(super) fn refuse(&mut self, known: &mut Known, which: impl Fn(&Known, RoomId) -> bool) {
        let refused = self.wanted.extract_if(.., |(room, _), _| which(known, *room));
        let refused: Vec<(RoomId, Wanted)> =
            refused.map(|((room, _), wanted)| (room, wanted)).collect();
        for (room, wanted) in refused {
            let why = known.not_writable(room);
            for waiting in wanted.calls {
                known.cx.reply(waiting.call, Err(why.clone()));
            }
        }
    }

    // Messages that peers ask for.

    /// A peer asks for copies. It is answered at the end of the turn in which they are here.
    pub(super) fn on_asked(
        &mut self,
        known: &mut Known,
        from: NodeId,
        room: RoomId,
        copies: Vec<Copied>,
    ) {
        let until = known.cx.now.mono + COPIES_AWAITED_FOR;
        if !known.rooms.get(&room).is_some_and(|state| may_ask(known, state, from)) {
            return;
        }
        for copied in copies {
            let questions = self.awaited.entry((room, copied.place)).or_default();
            if questions.insert(from, Question { copied, until }).is_none() {
                *self.of_peer.entry(from).or_default() += 1;
            }
            if self.of_peer.get(&from).is_some_and(|many| *many > COPIES_AWAITED_PER_PEER_MAX) {
                // It asks again.
                self.take_question(known, (room, copied.place), from);
            }
        }
        known.cx.to_advance.insert(room);
    }

    /// Forgets a question, or answers it if the message is here.
    fn take_question(&mut self, known: &Known, place: Place, from: NodeId) {
        let Some(questions) = self.awaited.get_mut(&place) else { return };
        if let Some(question) = questions.remove(&from) {
            forget_one(&mut self.of_peer, from);
            let room = known.rooms.get(&place.0);
            if room.is_some_and(|room| is_here(room, &question.copied)) {
                self.answering.entry((from, place.0)).or_default().push(question.copied);
            }
        }
        if questions.is_empty() {
            self.awaited.remove(&place);
        }
    }

    /// Questions for messages of these rooms are answered that can be.
    pub(super) fn answer_ready(&mut self, known: &Known, touched: &BTreeSet<RoomId>) {
        if self.awaited.is_empty() {
            return;
        }
        let mut ready = Vec::new();
        for id in touched {
            let Some(room) = known.rooms.get(id) else { continue };
            let all = (*id, EntryRef::LOWEST)..=(*id, EntryRef::HIGHEST);
            for (place, questions) in self.awaited.range(all) {
                let is_here =
                    |(_, question): &(&NodeId, &Question)| is_here(room, &question.copied);
                let peers = questions.iter().filter(is_here).map(|(peer, _)| *peer);
                ready.extend(peers.map(|peer| (*place, peer)));
            }
        }
        for (place, peer) in ready {
            self.take_question(known, place, peer);
        }
    }

    /// Questions and answers of this turn leave.
    pub(super) fn flush(&mut self, known: &mut Known) {
        for ((to, room), copies) in std::mem::take(&mut self.asking) {
            for part in copies.chunks(COPIES_NAMED_MAX) {
                let copies = part.to_vec();
                known.cx.effects.push(Effect::AskCopies { to, room, copies });
            }
        }
        for ((to, room), copies) in std::mem::take(&mut self.answering) {
            for part in copies.chunks(COPIES_NAMED_MAX) {
                let copies = part.to_vec();
                known.cx.effects.push(Effect::SendCopies { to, room, copies });
            }
        }
    }

    /// A peer is gone: it waits for nothing.
    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        if self.of_peer.remove(&peer).is_some() {
            for questions in self.awaited.values_mut() {
                questions.remove(&peer);
            }
            self.awaited.retain(|_, questions| !questions.is_empty());
        }
    }
}

impl Wanted {
    /// Nodes that hold it under its number, this one included.
    fn copies(&self, known: &Known, room: RoomId) -> usize {
        let said = self.said.iter().filter(|(_, number)| self.name.is(**number));
        1 + said.filter(|(node, _)| counts(known, room, **node)).count()
    }
}

/// Whether the word of a node counts: it is one of those that have the room, and its logs are not forked. A node with
/// a forked log may have been restored from a backup, and be so again.
fn counts(known: &Known, room: RoomId, node: NodeId) -> bool {
    let Some(room) = known.rooms.get(&room) else { return false };
    let seal = room.replica.record.seal.as_ref();
    room.replica.eligible(&known.cx).has(node)
        && !known.cx.parted.has(node)
        && known.cx.forked_in(seal).all(|forked| forked != node)
}

/// Whether a peer may ask for messages of a room.
fn may_ask(known: &Known, room: &Room, from: NodeId) -> bool {
    let record = &room.replica.record;
    !record.local && !record.ephemeral && room.replica.eligible(&known.cx).has(from)
}

/// Whether a message is here with its number, as far as the engine knows: the store is asked then.
fn is_here(room: &Room, copied: &Copied) -> bool {
    let numbering = &room.order.numbering;
    let Some(log) = room.replica.logs.ix(copied.place.log) else { return false };
    let at = LocalRef { log, seq: copied.place.seq };
    let is_numbered = match copied.number {
        Some(number) => numbering.known(number.era()) >= number.n(),
        None => !numbering.undelivered.get(&at).is_some_and(|entry| entry.is_unnumbered()),
    };
    room.replica.counts(at) && is_numbered
}

fn forget_one(of_peer: &mut BTreeMap<NodeId, usize>, peer: NodeId) {
    if let Some(many) = of_peer.get_mut(&peer) {
        *many -= 1;
        if *many == 0 {
            of_peer.remove(&peer);
        }
    }
}

fn answer(known: &mut Known, waiting: Waiting, copies: usize) {
    let outcome = match waiting.secured {
        Secured::Said(said) => Outcome::Said(SaidOk { copies: Some(copies), ..said }),
        Secured::Once(room, done) => {
            let done = still(known, room, done);
            let durable = done.granted.then_some(copies);
            Outcome::Once(Box::new(OnceAnswered { durable, ..done }))
        }
    };
    known.cx.reply(waiting.call, Ok(outcome));
}

/// A grant may be lost while copies of it are waited for: its agent was told so, and is not told now that it has it.
fn still(known: &Known, room: RoomId, done: OnceAnswered) -> OnceAnswered {
    let granted = done.holder.as_ref().map(|holder| holder.grant);
    let holder = known.rooms.get(&room).and_then(|room| room.folds.onces.holder(&done.subject));
    if granted.is_some() && granted != holder.as_ref().map(|holder| holder.grant) {
        return OnceAnswered { granted: false, holder, ..done };
    }
    done
}
