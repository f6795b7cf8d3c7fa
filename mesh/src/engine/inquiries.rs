//! Inquiries: the fate of a message, as all nodes say that have its room. Each speaks for itself; one that does not answer in
//! time is unknown (`docs/decisions/receipts.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::known::Known;
use crate::{
    api::{
        boundary::Effect,
        command::{AgentReceipt, CallId, MessageReceipts, Outcome, Reader, StoredAt},
    },
    limits::{INQUIRIES_ANSWERED_PER_TICK, INQUIRIES_MAX, INQUIRY_FOR, TICK},
    name::{
        id::{LocalRef, NodeId, RoomId},
        number::Number,
    },
    wire::copies::{AgentState, Copied, CopyOf},
};

/// A message that a client asks about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) by: Reader,
    pub(super) room: RoomId,
    pub(super) at: LocalRef,
    pub(super) number: Number,
}

/// One that runs.
#[derive(Clone, Debug)]
struct Inquiry {
    call: CallId,
    /// Connected nodes that have not answered.
    asked: BTreeSet<NodeId>,
    until: Duration,
    so_far: MessageReceipts,
}

/// The answer of a peer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) nonce: u64,
    pub(super) held: bool,
    pub(super) agents: Vec<AgentState>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    /// By nonce; at most [`INQUIRIES_MAX`].
    running: BTreeMap<u64, Inquiry>,
    last: u64,
    /// Since when questions of a peer are counted, and how many were answered.
    answered: BTreeMap<NodeId, (Duration, u32)>,
}

impl Inquiries {
    /// Asks all nodes that have the room.
    pub(super) fn begin(&mut self, known: &mut Known, call: CallId, subject: Subject) {
        let Subject { by, room, at, number } = subject;
        if let Err(refused) = known.may_read(&by, room) {
            return known.cx.reply(call, Err(refused));
        }
        let nodes = known.nodes_with(room);
        let so_far = MessageReceipts {
            of: nodes.len(),
            here: StoredAt { node: known.cx.me, at_ms: known.cx.now.wall_ms },
            stored: Vec::new(),
            unknown: nodes.into_iter().filter(|node| *node != known.cx.me).collect(),
            agents: Vec::new(),
        };
        let asked = self.ask(known, &so_far.unknown, (room, at, number));
        let until = known.cx.now.mono + INQUIRY_FOR;
        self.running.insert(self.last, Inquiry { call, asked, until, so_far });
        self.go_on(known);
    }

    /// Whom it asked. Nobody, if as many inquiries run as may, or the message is of before this node joined the mesh.
    fn ask(
        &mut self,
        known: &mut Known,
        nodes: &[NodeId],
        (room, at, number): (RoomId, LocalRef, Number),
    ) -> BTreeSet<NodeId> {
        self.last += 1;
        let state = known.rooms.get(&room).filter(|_| self.running.len() < INQUIRIES_MAX);
        let Some(state) = state else { return BTreeSet::new() };
        let copy = CopyOf { place: state.replica.name_of(at), number: Some(number) };
        let up = &known.cx.up;
        let asked: BTreeSet<NodeId> =
            nodes.iter().copied().filter(|node| up.contains(node)).collect();
        for to in &asked {
            known.cx.effects.push(Effect::AskReceipt { to: *to, nonce: self.last, room, copy });
        }
        asked
    }

    /// A peer says what it knows.
    pub(super) fn on_answer(&mut self, known: &mut Known, from: NodeId, answer: Answer) {
        let at_ms = known.cx.now.wall_ms;
        let Some(inquiry) = self.running.get_mut(&answer.nonce) else { return };
        if !inquiry.asked.remove(&from) {
            return;
        }
        let so_far = &mut inquiry.so_far;
        so_far.unknown.retain(|node| *node != from);
        if answer.held {
            so_far.stored.push(StoredAt { node: from, at_ms });
        }
        so_far.agents.extend(answer.agents.into_iter().map(|state| AgentReceipt {
            agent: state.agent,
            confirmed: state.confirmed,
            node: from,
            at_ms: state.at_ms,
        }));
        self.go_on(known);
    }

    /// Inquiries end that all have answered, or that have run for long enough.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let (now, stopping) = (known.cx.now.mono, known.stopping);
        let is_over =
            |inquiry: &Inquiry| inquiry.asked.is_empty() || inquiry.until <= now || stopping;
        for (_, inquiry) in self.running.extract_if(.., |_, inquiry| is_over(inquiry)) {
            known.cx.reply(inquiry.call, Ok(Outcome::Receipts(Box::new(inquiry.so_far))));
        }
    }

    /// A peer asks what this node knows of a message: its store and its clients' connections answer.
    pub(super) fn on_question(
        &mut self,
        known: &mut Known,
        (from, nonce): (NodeId, u64),
        room: RoomId,
        copied: Copied,
    ) {
        let may_ask = known.rooms.get(&room).is_some_and(|state| {
            !state.replica.record.local && state.replica.eligible(&known.cx).has(from)
        });
        if may_ask && self.may_have_answer(known.cx.now.mono, from) {
            known.cx.effects.push(Effect::SendReceipt { to: from, nonce, room, copied });
        }
    }

    fn may_have_answer(&mut self, now: Duration, peer: NodeId) -> bool {
        let (since, count) = self.answered.entry(peer).or_default();
        if now >= *since + TICK {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= INQUIRIES_ANSWERED_PER_TICK
    }

    /// A peer is gone, and answers nothing more.
    pub(super) fn forget_peer(&mut self, known: &mut Known, peer: NodeId) {
        self.answered.remove(&peer);
        for inquiry in self.running.values_mut() {
            inquiry.asked.remove(&peer);
        }
        self.go_on(known);
    }
}
