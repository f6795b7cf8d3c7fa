//! Exchanging the contents of rooms with peers: runs, bodies, frontiers.

use super::{forks::Forks, known::Known, retention};
use crate::{
    api::boundary::Effect,
    limits::EPHEMERAL_BYTES_MAX,
    name::id::{NodeId, RoomId},
    order::issuing::Question,
    room::Room,
    turn::context::Context,
    wire::{
        message::{ApartBody, Head, Message, Span},
        run::Verified,
    },
};

/// For messages about a room that this node shares with others. One that is not known yet is
/// remembered, one that is nobody else's business is not touched.
pub(super) fn room(
    known: &mut Known,
    from: NodeId,
    id: RoomId,
) -> Option<(&mut Room, &mut Context)> {
    match known.rooms.get(&id) {
        None => {
            known.note_unknown(id, from);
            return None;
        }
        Some(room) if room.replica.record.local => {
            known.cx.faults.stray += 1;
            return None;
        }
        Some(_) => {}
    }
    known.cx.to_advance.insert(id);
    Some((known.rooms.get_mut(&id)?, &mut known.cx))
}

/// For messages that ask for the contents of a room, or are to be believed about it: of a private room
/// only from peers that have shown that they follow it.
fn shared(known: &mut Known, from: NodeId, id: RoomId) -> Option<(&mut Room, &mut Context)> {
    let kept = |room: &Room| room.replica.is_kept_by(&known.cx, from);
    let shared = known.rooms.get(&id).is_none_or(kept);
    if shared {
        return room(known, from, id);
    }
    // The roster that shows it may have been lost: it is asked for, and the peer asks again.
    let (boot, version) = known.rosters.version(from);
    known.cx.send(from, Message::WantRoster { node: from, boot, version, nonce: None });
    None
}

pub(super) fn on_runs(known: &mut Known, from: NodeId, runs: Vec<Verified>) {
    for run in runs {
        on_run(known, from, run);
    }
}

fn on_run(known: &mut Known, from: NodeId, run: Verified) {
    let id = run.run().room;
    if room(known, from, id).is_none() {
        return;
    }
    if run.run().has_gone() {
        retention::note_retention(known, id);
    }
    let Some(room) = known.rooms.get_mut(&id) else { return };
    let bytes = known.cx.memory.ephemeral + run.run().size();
    if room.replica.record.ephemeral && bytes > EPHEMERAL_BYTES_MAX {
        known.cx.faults.overflow += 1;
    } else {
        room.receive(&mut known.cx, from, run);
    }
}

/// Runs of one room that were asked for.
#[derive(Debug)]
pub(super) struct Spans {
    pub(super) room: RoomId,
    pub(super) runs: Vec<Verified>,
    pub(super) bodies: Vec<ApartBody>,
    /// Nothing more of the answer follows.
    pub(super) last: bool,
}

/// Bodies come before their runs are tried, so that a complete answer is accepted at once.
pub(super) fn on_spans(known: &mut Known, from: NodeId, spans: Spans) {
    for run in spans.runs {
        if run.run().room == spans.room {
            on_run(known, from, run);
        } else {
            known.cx.faults.stray += 1;
        }
    }
    if let Some((room, cx)) = room(known, from, spans.room) {
        for body in spans.bodies {
            room.replica.receive_body(
                cx,
                from,
                Head { log: body.log, seq: body.seq },
                body.body.into(),
            );
        }
    }
    if let Some((room, cx)) = room(known, from, spans.room) {
        room.drain(cx);
        if spans.last {
            room.on_spans_end(cx, from);
        }
    }
}

/// A peer asks for numbers of entries.
pub(super) fn on_ask(known: &mut Known, from: NodeId, id: RoomId, question: Question<'_>) {
    if room(known, from, id).is_some()
        && let Some(room) = known.rooms.get_mut(&id)
    {
        room.on_ask(&mut known.cx, &known.live, question);
    }
}

pub(super) fn on_want(known: &mut Known, from: NodeId, id: RoomId, spans: Vec<Span>) {
    if let Some((room, cx)) = shared(known, from, id) {
        room.replica.on_want(cx, from, spans);
    }
}

pub(super) fn on_want_bodies(known: &mut Known, from: NodeId, id: RoomId, at: Vec<Head>) {
    if let Some((_, cx)) = shared(known, from, id) {
        cx.effects.push(Effect::SendBodies { to: from, room: id, at });
    }
}

/// A peer says how far it is in a room.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) room: RoomId,
    pub(super) heads: Vec<Head>,
    /// It asks for this node's frontier in return.
    pub(super) answer: bool,
}

pub(super) fn on_have(known: &mut Known, forks: &Forks, from: NodeId, theirs: &Frontier) {
    if shared(known, from, theirs.room).is_none() {
        return;
    }
    forks.prove(known, from, theirs.room, &theirs.heads);
    if let Some(room) = known.rooms.get_mut(&theirs.room) {
        room.on_have(&mut known.cx, from, &theirs.heads, theirs.answer);
    }
}
