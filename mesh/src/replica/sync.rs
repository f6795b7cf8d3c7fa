//! Anti-entropy of one room: the heads of peers, and fetching missing entries. Converges without gossip.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Replica, pruning::needs};
use crate::{
    api::boundary::Effect,
    limits::{SPANS_MAX, TICK, WANT_TIMEOUT},
    name::id::{LogId, NodeId, RoomId},
    turn::context::Context,
    wire::message::{Head, Message, Span},
};

/// The entries that a peer said it has and this node has not; at most [`SPANS_MAX`] logs.
#[derive(Clone, Debug)]
struct View {
    at: Duration,
    heads: BTreeMap<LogId, u64>,
}

/// A question that is out.
#[derive(Clone, Debug)]
struct Want {
    peer: NodeId,
    at: Duration,
    spans: Vec<Span>,
}

/// See the module. One view for each connected peer, one want at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    views: BTreeMap<NodeId, View>,
    want: Option<Want>,
    /// The peer after which to look for one to ask: so that a silent one is passed over.
    last_asked: Option<NodeId>,
    behind: bool,
    /// How far into this node's own log another node is known to have got.
    elsewhere: u64,
    gap_noted: Option<Duration>,
    all_asked: Option<Duration>,
}

impl Sync {
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Some connected peer has said what it has.
    pub(crate) fn has_heard(&self) -> bool {
        !self.views.is_empty()
    }

    /// This peer has.
    pub(crate) fn has_heard_from(&self, peer: NodeId) -> bool {
        self.views.contains_key(&peer)
    }

    /// A run came whose predecessors are missing: ask its sender for its heads.
    pub(crate) fn note_gap(
        &mut self,
        cx: &mut Context,
        room: RoomId,
        from: NodeId,
        heads: Vec<Head>,
    ) {
        let now = cx.now.mono;
        if self.gap_noted.is_none_or(|at| now >= at + TICK) {
            self.gap_noted = Some(now);
            cx.send(from, Message::Have { room, heads, answer: true });
        }
    }

    pub(crate) fn peer_down(&mut self, peer: NodeId) {
        self.views.remove(&peer);
        if self.want.as_ref().is_some_and(|want| want.peer == peer) {
            self.want = None;
        }
    }

    /// All of these have said since then that they lack this entry.
    pub(crate) fn nobody_has(
        &self,
        peers: &BTreeSet<NodeId>,
        since: Duration,
        entry: Head,
    ) -> bool {
        peers.iter().all(|peer| {
            self.views.get(peer).is_some_and(|view| {
                view.at > since && view.heads.get(&entry.log).is_none_or(|head| *head < entry.seq)
            })
        })
    }

    /// Peers that have said what they have, the one asked last at the end.
    fn next_to_ask(&self) -> Vec<NodeId> {
        let after = self.last_asked;
        let (later, earlier): (Vec<NodeId>, Vec<NodeId>) =
            self.views.keys().partition(|peer| after.is_none_or(|last| **peer > last));
        later.into_iter().chain(earlier).collect()
    }

    /// Whether a peer has said that it has this entry.
    fn has(&self, peer: NodeId, entry: Head) -> bool {
        let view = self.views.get(&peer);
        view.and_then(|view| view.heads.get(&entry.log)).is_some_and(|head| *head >= entry.seq)
    }

    /// The furthest that any connected peer is known to have got in this log.
    pub(crate) fn best_known(&self, log: LogId) -> u64 {
        self.views.values().filter_map(|view| view.heads.get(&log)).max().copied().unwrap_or(0)
    }
}

impl Replica {
    /// How many entries connected peers have that are not here.
    pub(crate) fn entries_behind(&self, cx: &Context) -> u64 {
        let logs: BTreeSet<LogId> =
            self.sync.views.values().flat_map(|view| view.heads.keys().copied()).collect();
        logs.into_iter()
            .filter(|log| self.takes_more(cx, *log))
            .map(|log| (log, self.worth_having(cx, log, self.sync.best_known(log))))
            .map(|(log, best)| best.saturating_sub(self.logs.head_of(log)))
            .fold(0, u64::saturating_add)
    }
    /// Whether a connected peer is known to have more of this log.
    pub(crate) fn is_behind_in(&self, log: LogId) -> bool {
        self.sync.best_known(log) > self.logs.head_of(log)
    }

    /// Another node is known to have all that this one wrote here: or had it, if it is gone now.
    pub(crate) fn is_shared(&self) -> bool {
        self.sync.elsewhere >= self.logs.head_of(self.mine)
    }

    /// Some peer has everything that is here.
    pub(crate) fn note_in_step(&mut self) {
        self.sync.elsewhere = self.logs.head_of(self.mine);
    }

    /// Entries of this node that no other is known to have.
    pub(crate) fn unsent(&self) -> u64 {
        let own = self.logs.head_of(self.mine);
        own.saturating_sub(self.sync.elsewhere.max(self.sync.best_known(self.mine)))
    }

    /// A peer says what it has; answers if asked to. `false`: the peer is not connected any more.
    pub(crate) fn on_have(
        &mut self,
        cx: &mut Context,
        from: NodeId,
        heads: &[Head],
        answer: bool,
    ) -> bool {
        // It was under way when the connection went: nobody is there to be asked.
        if !cx.up.contains(&from) {
            return false;
        }
        // Kept are the entries that they have beyond this node, and those of this node's own.
        let beyond = heads
            .iter()
            .filter(|head| head.seq > self.logs.head_of(head.log) || head.log == self.mine)
            .take(SPANS_MAX);
        let heads: BTreeMap<LogId, u64> = beyond.map(|head| (head.log, head.seq)).collect();
        let own = heads.get(&self.mine).copied().unwrap_or(0);
        self.sync.elsewhere = self.sync.elsewhere.max(own.min(self.logs.head_of(self.mine)));
        self.sync.views.insert(from, View { at: cx.now.mono, heads });
        if answer {
            let heads = self.logs.heads();
            cx.send(from, Message::Have { room: self.id, heads, answer: false });
        }
        true
    }

    /// The answer to a want has ended. A peer that gave none of the entries that it said it had is not
    /// asked for them again before it says so again: else one lie would keep two nodes busy for ever.
    pub(crate) fn on_spans_end(&mut self, from: NodeId) {
        if let Some(want) = self.sync.want.take_if(|want| want.peer == from) {
            let came = want.spans.iter().any(|span| self.reaches(span.log) > span.after);
            if !came && let Some(view) = self.sync.views.get_mut(&from) {
                for span in want.spans {
                    view.heads.remove(&span.log);
                }
            }
        }
    }

    /// The log seq up to which this log is here or waits to be accepted.
    fn reaches(&self, log: LogId) -> u64 {
        self.pending.reaches(log, self.logs.head_of(log))
    }

    /// Asks every connected peer that has the room what it has of it; at most once per
    /// [`WANT_TIMEOUT`].
    pub(crate) fn ask_all(&mut self, cx: &mut Context) {
        self.ask_all_every(cx, WANT_TIMEOUT);
    }

    /// The same, at most once in that time.
    pub(crate) fn ask_all_every(&mut self, cx: &mut Context, every: Duration) {
        let now = cx.now.mono;
        if self.sync.all_asked.is_some_and(|at| now < at + every) {
            return;
        }
        self.sync.all_asked = Some(now);
        for peer in self.peers(cx) {
            let heads = self.logs.heads();
            cx.send(peer, Message::Have { room: self.id, heads, answer: true });
        }
    }

    /// Asks for bodies and entries that are known to exist elsewhere.
    pub(crate) fn pump(&mut self, cx: &mut Context) {
        let now = cx.now.mono;
        let asked = self.sync.next_to_ask();
        let has = |head: Head| asked.iter().copied().find(|peer| self.sync.has(*peer, head));
        let needs = needs(self, cx);
        let peers = self.peers(cx);
        for (peer, at) in self.pending.bodies_to_ask(now, &peers, needs, has) {
            self.sync.last_asked = Some(peer);
            for at in at.chunks(SPANS_MAX) {
                cx.send(peer, Message::WantBodies { room: self.id, at: at.to_vec() });
            }
        }
        if self.sync.want.as_ref().is_some_and(|want| now < want.at + WANT_TIMEOUT) {
            return;
        }
        self.sync.want = None;
        let lacking = asked.into_iter().find_map(|peer| {
            let spans = self.lacking(cx, peer);
            (!spans.is_empty()).then_some((peer, spans))
        });
        self.sync.behind = lacking.is_some();
        if let Some((peer, spans)) = lacking {
            self.sync.last_asked = Some(peer);
            cx.send(peer, Message::Want { room: self.id, spans: spans.clone() });
            self.sync.want = Some(Want { peer, at: now, spans });
        }
    }

    /// The entries that `peer` has and this node neither has nor holds pending.
    fn lacking(&self, cx: &Context, peer: NodeId) -> Vec<Span> {
        let Some(view) = self.sync.views.get(&peer) else { return Vec::new() };
        let spans = view.heads.iter().filter_map(|(log, seq)| {
            let after = self.reaches(*log);
            let upto = self.worth_having(cx, *log, *seq);
            (upto > after && self.takes_more(cx, *log)).then_some(Span { log: *log, after, upto })
        });
        spans.take(SPANS_MAX).collect()
    }

    /// A peer wants entries.
    pub(crate) fn on_want(&self, cx: &mut Context, from: NodeId, spans: Vec<Span>) {
        cx.effects.push(Effect::SendSpans { to: from, room: self.id, spans });
    }
}
