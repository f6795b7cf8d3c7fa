//! Stopping in good order: what this node sequences is handed to others first (rule 5).
//!
//! offer → accept → `HandedOver` durable here and sent → taken → stopped. A step that is not answered
//! in time is given up: then the others take over as if this node had died.

use std::{collections::BTreeMap, time::Duration};

use super::{Engine, Waiter};
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

/// See the module.
#[derive(Debug)]
pub(super) struct Stopping {
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
#[derive(Debug)]
pub(super) struct Leaving {
    /// Who wants it.
    pub(super) call: CallId,
    /// When its last entry was written.
    pub(super) written: Option<Duration>,
    /// A member has said that it has that.
    pub(super) heard: bool,
}

impl Engine {
    /// The operator wants the node to stop, or to leave.
    pub(super) fn begin_stopping(&mut self, leaving: Option<Leaving>) {
        if self.stopping.is_some() {
            return;
        }
        let now = self.cx.now.mono;
        self.detach_all();
        self.refuse_parked();
        let mut rooms = BTreeMap::new();
        for room in self.rooms.values() {
            let mine =
                room.order.numbering.sequencer() == room.replica.mine && !room.replica.record.local;
            let Some(to) =
                self.live.successor(now, room.replica.eligible(&self.cx)).filter(|_| mine)
            else {
                continue;
            };
            let era = room.order.numbering.current();
            rooms.insert(room.replica.id, (era, Step::Refused(to)));
        }
        let answers_by = now + ANSWERED_WHILE_STOPPING;
        let (refused, told) = (None, false);
        self.stopping = Some(Stopping { since: now, refused, answers_by, rooms, told, leaving });
        self.offer();
        self.go_on_stopping();
    }

    /// Offers what was not offered yet, or refused.
    pub(super) fn offer(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        let mut offers: BTreeMap<NodeId, Vec<Post>> = BTreeMap::new();
        for (room, (era, step)) in &mut stopping.rooms {
            let Step::Refused(to) = *step else { continue };
            let Some(log) = self.rooms.get(room).map(|it| it.replica.mine) else { continue };
            *step = Step::Offered(to);
            offers.entry(to).or_default().push(Post { room: *room, era: *era, log });
        }
        for (to, posts) in offers {
            for part in posts.chunks(DIGEST_ROOMS_MAX) {
                self.cx.send(to, Message::Offer(part.to_vec()));
            }
        }
    }

    /// A peer stops and would have this node sequence its rooms.
    pub(super) fn on_offer(&mut self, from: NodeId, posts: &[Post]) {
        if self.stopping.is_some() {
            return;
        }
        // A room that was made just now: there is no time to wait until it is heard of.
        if posts.iter().any(|post| !self.rooms.contains_key(&post.room)) {
            self.catch_up_with(from);
        }
        let accept: Vec<Post> = posts
            .iter()
            .filter_map(|post| {
                let room = self.rooms.get(&post.room)?;
                let theirs = room.order.numbering.sequencer() == post.log
                    && post.log.author == from
                    && room.order.numbering.current() == post.era
                    && !room.replica.record.local;
                (theirs && room.is_writable(&self.cx))
                    .then_some(Post { log: room.replica.mine, ..*post })
            })
            .collect();
        self.cx.send(from, Message::Accept(accept));
    }

    /// The successor accepts: from here on this node does not issue in that era any more.
    pub(super) fn on_accept(&mut self, from: NodeId, posts: &[Post]) {
        let Some(mut stopping) = self.stopping.take() else { return };
        let asked = stopping.rooms.values().any(|(_, step)| *step == Step::Offered(from));
        for post in posts {
            let Some((era, step)) = stopping.rooms.get_mut(&post.room) else { continue };
            let asked = *step == Step::Offered(from) || *step == Step::Refused(from);
            if !asked || *era != post.era || post.log.author != from {
                continue;
            }
            let handed = self
                .rooms
                .get_mut(&post.room)
                .and_then(|room| room.hand_over(&mut self.cx, post.era, post.log));
            if handed.is_some() {
                *step = Step::Handed(from);
            } else {
                stopping.rooms.remove(&post.room);
            }
        }
        for (_, step) in stopping.rooms.values_mut() {
            if *step == Step::Offered(from) {
                stopping.refused.get_or_insert(self.cx.now.mono);
                *step = Step::Refused(from);
            }
        }
        // Who was not asked, or answers again, gains no time.
        if asked {
            stopping.since = self.cx.now.mono;
        }
        self.stopping = Some(stopping);
        self.go_on_stopping();
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
        self.go_on_stopping();
    }

    /// Ends the stop when nothing is left to wait for.
    pub(super) fn go_on_stopping(&mut self) {
        let now = self.cx.now.mono;
        let Some(stopping) = &mut self.stopping else { return };
        if now >= stopping.since + HANDOVER_STEP {
            stopping.rooms.clear();
        }
        if stopping.refused.is_some_and(|at| now >= at + OFFERED_AGAIN_FOR) {
            // What the successor does not accept has no successor.
            stopping.rooms.retain(|_, (_, step)| !matches!(step, Step::Refused(_)));
        }
        if stopping.rooms.is_empty() && !stopping.told {
            let awaits = now < stopping.answers_by && !self.cx.up.is_empty();
            if (awaits && self.owes_answers()) || !self.has_left() {
                return;
            }
            let Some(stopping) = &mut self.stopping else { return };
            stopping.told = true;
            self.change_node().clean = true;
            self.cx.effects.push(Effect::Stopped);
        }
    }

    /// Whether a message that is written waits for its number: else its sender would not know what became of it.
    fn owes_answers(&self) -> bool {
        let mut waiters = self.waiters.values().flatten();
        waiters.any(|it| matches!(it, Waiter::Said { .. }))
    }

    /// How far this node is with leaving, if it leaves.
    pub(super) fn leaving(&mut self) -> Option<&mut Leaving> {
        self.stopping.as_mut()?.leaving.as_mut()
    }

    /// If this node leaves: writes its last entry, and waits until another member has it, but not for ever.
    fn has_left(&mut self) -> bool {
        let now = self.cx.now.mono;
        let Some(leaving) = self.leaving() else { return true };
        let Some(written) = leaving.written else {
            leaving.written = Some(now);
            self.write_own_parting();
            return self.cx.up.is_empty() && self.has_left();
        };
        let (call, heard) = (leaving.call, leaving.heard);
        if !heard && !self.cx.up.is_empty() && now < written + LEAVE_HEARD_WITHIN {
            return false;
        }
        self.reply(call, Ok(Outcome::LeftMesh { heard }));
        true
    }

    /// Runs with a `HandedOver` go to the successor directly as well: gossip may be slow or lose it.
    pub(super) fn send_to_successor(&mut self, out: &[(RoomId, Run)]) {
        let Some(stopping) = &self.stopping else { return };
        for (room, run) in out {
            if let Some((_, Step::Handed(to))) = stopping.rooms.get(room) {
                let to = *to;
                self.cx.send(to, Message::Runs(vec![run.clone()]));
            }
        }
    }

    /// Eras handed to this node in this turn, durable with it: their old sequencers may go.
    pub(super) fn confirm_handovers(&mut self) {
        let mut taken: BTreeMap<NodeId, Vec<Post>> = BTreeMap::new();
        for (room, era, from) in std::mem::take(&mut self.cx.handed_to_me) {
            let log: LogId = from;
            taken.entry(from.author).or_default().push(Post { room, era, log });
        }
        for (to, posts) in taken {
            self.cx.send(to, Message::Taken(posts));
        }
    }
}
