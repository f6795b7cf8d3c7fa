//! Stopping in good order: eras that this node sequences are handed to others first (rule 5).
//!
//! offer → accept → `HandedOver` durable here and sent → taken → stopped. A step that is not answered in
//! time is given up: then the others take over as if this node had died.

use std::{collections::BTreeMap, time::Duration};

use super::known::Known;
use crate::{
    api::{
        boundary::Effect,
        command::{CallId, Outcome},
    },
    limits::{
        ANSWERED_WHILE_STOPPING, DIGEST_ROOMS_MAX, HANDOVER_STEP, LEAVE_HEARD_WITHIN,
        OFFERED_AGAIN_FOR,
    },
    name::{
        id::{LogId, NodeId, RoomId},
        number::Era,
    },
    wire::{
        message::{Message, Post},
        run::Run,
    },
};

/// How far the handover of a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Offered to this node.
    Offered(NodeId),
    /// This node did not accept it: it may not have heard yet that there is such a room, or era.
    Refused(NodeId),
    /// `HandedOver` names this node; it has not said that it has it.
    Handed(NodeId),
}

/// A stop under way.
#[derive(Clone, Debug)]
struct Stopping {
    since: Duration,
    /// When the first room was refused: from then on rooms are offered again for a while.
    refused: Option<Duration>,
    /// Senders whose messages have no number yet are answered until then.
    answers_by: Duration,
    rooms: BTreeMap<RoomId, (Era, Step)>,
    told: bool,
    leaving: Option<Leaving>,
}

/// The node stops because it leaves the mesh.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// The call that wants it.
    pub(super) call: CallId,
    /// When its last entry was written.
    pub(super) written: Option<Duration>,
    /// A member has said that it has that.
    pub(super) heard: bool,
}

/// Whether senders wait for the numbers of their messages: else they would not know the fate of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owes {
    Numbers,
    Nothing,
}

/// The next step of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// To wait, or nothing at all.
    Wait,
    /// To write the entry with which this node leaves.
    WriteParting,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Handovers {
    stopping: Option<Stopping>,
    /// Eras that were handed to this node, by the node that had them before.
    taken: BTreeMap<NodeId, Vec<Post>>,
}

impl Handovers {
    /// An era was handed to this node.
    pub(super) fn take(&mut self, room: RoomId, era: Era, from: LogId) {
        self.taken.entry(from.author).or_default().push(Post { room, era, log: from });
    }

    /// The node begins to stop: its rooms are offered to others.
    pub(super) fn begin(&mut self, known: &mut Known, leaving: Option<Leaving>) {
        let now = known.cx.now.mono;
        let mut rooms = BTreeMap::new();
        for room in known.rooms.values() {
            let mine =
                room.order.numbering.sequencer() == room.replica.mine && !room.replica.record.local;
            let Some(to) =
                known.live.successor(now, room.replica.eligible(&known.cx)).filter(|_| mine)
            else {
                continue;
            };
            let era = room.order.numbering.current();
            rooms.insert(room.replica.id, (era, Step::Refused(to)));
        }
        let answers_by = now + ANSWERED_WHILE_STOPPING;
        let (refused, told) = (None, false);
        self.stopping = Some(Stopping { since: now, refused, answers_by, rooms, told, leaving });
        self.offer(known);
    }

    /// Offers what was not offered yet, or refused.
    pub(super) fn offer(&mut self, known: &mut Known) {
        let Some(stopping) = &mut self.stopping else { return };
        let mut offers: BTreeMap<NodeId, Vec<Post>> = BTreeMap::new();
        for (room, (era, step)) in &mut stopping.rooms {
            let Step::Refused(to) = *step else { continue };
            let Some(log) = known.rooms.get(room).map(|room| room.replica.mine) else { continue };
            *step = Step::Offered(to);
            offers.entry(to).or_default().push(Post { room: *room, era: *era, log });
        }
        for (to, posts) in offers {
            for part in posts.chunks(DIGEST_ROOMS_MAX) {
                known.cx.send(to, Message::Offer(part.to_vec()));
            }
        }
    }

    /// The successor accepts: from here on this node does not issue in that era any more.
    pub(super) fn on_accept(&mut self, known: &mut Known, from: NodeId, posts: &[Post]) {
        let Some(mut stopping) = self.stopping.take() else { return };
        let asked = stopping.rooms.values().any(|(_, step)| *step == Step::Offered(from));
        for post in posts {
            let Some((era, step)) = stopping.rooms.get_mut(&post.room) else { continue };
            let asked = *step == Step::Offered(from) || *step == Step::Refused(from);
            if !asked || *era != post.era || post.log.author != from {
                continue;
            }
            let handed = known
                .rooms
                .get_mut(&post.room)
                .and_then(|room| room.hand_over(&mut known.cx, post.era, post.log));
            if handed.is_some() {
                *step = Step::Handed(from);
            } else {
                stopping.rooms.remove(&post.room);
            }
        }
        for (_, step) in stopping.rooms.values_mut() {
            if *step == Step::Offered(from) {
                stopping.refused.get_or_insert(known.cx.now.mono);
                *step = Step::Refused(from);
            }
        }
        // A peer that was not asked, or answers again, gains no time.
        if asked {
            stopping.since = known.cx.now.mono;
        }
        self.stopping = Some(stopping);
    }

    /// The successor has it durably.
    pub(super) fn on_taken(&mut self, from: NodeId, posts: &[Post]) {
        if let Some(stopping) = &mut self.stopping {
            for post in posts {
                let step = stopping.rooms.get(&post.room).map(|(_, step)| *step);
                if step == Some(Step::Handed(from)) {
                    stopping.rooms.remove(&post.room);
                }
            }
        }
    }

    /// Ends the stop when nothing is left to wait for; `owes`: senders wait for their numbers.
    pub(super) fn go_on(&mut self, known: &mut Known, owes: Owes) -> Next {
        let now = known.cx.now.mono;
        let Some(stopping) = &mut self.stopping else { return Next::Wait };
        if now >= stopping.since + HANDOVER_STEP {
            stopping.rooms.clear();
        }
        if stopping.refused.is_some_and(|at| now >= at + OFFERED_AGAIN_FOR) {
            // Rooms that the successor does not accept have none.
            stopping.rooms.retain(|_, (_, step)| !matches!(step, Step::Refused(_)));
        }
        if !stopping.rooms.is_empty() || stopping.told {
            return Next::Wait;
        }
        let awaits = now < stopping.answers_by && !known.cx.up.is_empty();
        if awaits && owes == Owes::Numbers {
            return Next::Wait;
        }
        if let Some(leaving) = &mut stopping.leaving {
            let Some(written) = leaving.written else {
                leaving.written = Some(now);
                return Next::WriteParting;
            };
            let (call, heard) = (leaving.call, leaving.heard);
            // Another member is to have it, but it is not waited for for ever.
            if !heard && !known.cx.up.is_empty() && now < written + LEAVE_HEARD_WITHIN {
                return Next::Wait;
            }
            known.cx.reply(call, Ok(Outcome::LeftMesh { heard }));
        }
        stopping.told = true;
        known.change_node().clean = true;
        known.cx.effects.push(Effect::Stopped);
        Next::Wait
    }

    /// How far this node is with leaving, if it leaves.
    pub(super) fn leaving(&mut self) -> Option<&mut Leaving> {
        self.stopping.as_mut()?.leaving.as_mut()
    }

    /// Runs with a `HandedOver` go to the successor directly as well: gossip may be slow or lose it.
    pub(super) fn send_to_successor(&mut self, known: &mut Known, out: &[(RoomId, Run)]) {
        let Some(stopping) = &self.stopping else { return };
        for (room, run) in out {
            if let Some((_, Step::Handed(to))) = stopping.rooms.get(room) {
                let to = *to;
                known.cx.send(to, Message::Runs(vec![run.clone()]));
            }
        }
    }

    /// Eras handed to this node in this turn, durable with it: their old sequencers may go.
    pub(super) fn confirm_handovers(&mut self, known: &mut Known) {
        for (to, posts) in std::mem::take(&mut self.taken) {
            known.cx.send(to, Message::Taken(posts));
        }
    }
}

/// A peer stops and would have this node sequence its rooms.
pub(super) fn on_offer(known: &mut Known, from: NodeId, posts: &[Post]) {
    let accept: Vec<Post> = posts
        .iter()
        .filter_map(|post| {
            let room = known.rooms.get(&post.room)?;
            let theirs = room.order.numbering.sequencer() == post.log
                && post.log.author == from
                && room.order.numbering.current() == post.era
                && !room.replica.record.local;
            (theirs && room.is_writable(&known.cx) && !known.cx.is_relay())
                .then_some(Post { log: room.replica.mine, ..*post })
        })
        .collect();
    known.cx.send(from, Message::Accept(accept));
}
