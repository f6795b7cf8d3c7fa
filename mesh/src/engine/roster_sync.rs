//! Telling this node's roster, and asking for those of others.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::known::Known;
use crate::{
    api::event::RoomEvent,
    limits::{BEACON_EVERY, GOSSIP_BYTES_MAX, ROSTER_NEWS_KEPT, ROSTER_NEWS_KEPT_BYTES},
    name::id::NodeId,
    presence::rosters::{Seating, Taken},
    replica::log::first_8,
    wire::{
        message::{Message, Signed},
        roster::{RosterNews, What},
    },
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct RosterSync {
    /// When this node last told its whole roster to all that asked by gossip.
    answered: Option<Duration>,
    /// Rosters known to be newer elsewhere: since when, so that news under way can come first.
    behind: BTreeMap<NodeId, Duration>,
    /// This node's last news.
    recent: Recent,
}

/// A node's last roster news, signed, each with its version: for peers that lack some of them.
#[derive(Clone, Debug, Default)]
struct Recent {
    news: VecDeque<(u64, usize, Message)>,
    bytes: usize,
}

impl Recent {
    /// These were the changes from the version before to this one.
    fn push(&mut self, version: u64, bytes: usize, news: Message) {
        if self.news.back().is_some_and(|(last, ..)| last + 1 != version) {
            // A whole roster came in between: nothing leads past it.
            (self.news, self.bytes) = Default::default();
        }
        self.news.push_back((version, bytes, news));
        self.bytes += bytes;
        while self.news.len() > ROSTER_NEWS_KEPT || self.bytes > ROSTER_NEWS_KEPT_BYTES {
            let Some((_, bytes, _)) = self.news.pop_front() else { break };
            self.bytes -= bytes;
        }
    }

    /// Those that lead from `known` to `version`. `None`: not all of them are here.
    fn between(&self, known: u64, version: u64) -> Option<Vec<Message>> {
        let reaches =
            self.news.front().is_some_and(|(first, ..)| *first <= known.saturating_add(1))
                && self.news.back().is_some_and(|(last, ..)| *last == version);
        let later = self.news.iter().filter(|(version, ..)| *version > known);
        reaches.then(|| later.map(|(.., news)| news.clone()).collect())
    }
}

/// This node's roster, or a change of it, signed.
pub(super) fn signed(known: &Known, what: What) -> Message {
    let news = RosterNews { node: known.cx.me, boot: known.cx.boot, what };
    Message::Roster(Box::new(Signed::new(known.cx.mesh, &known.identity, news)))
}

impl RosterSync {
    /// A peer is there: the two tell each other their rosters. A relay has none, and no use for any.
    pub(super) fn on_peer_up(&self, known: &mut Known, peer: NodeId) {
        if !known.cx.relays.contains(&peer) {
            let whole = known.rosters.whole();
            let roster = signed(known, whole);
            known.cx.send(peer, roster);
        }
        if !known.cx.is_relay() {
            let (boot, version) = known.rosters.version(peer);
            known.cx.send(peer, Message::WantRoster { node: peer, boot, version, nonce: None });
        }
    }

    /// A node's beacon promises a newer roster than the one that is here.
    pub(super) fn note_promise(&mut self, now: Duration, node: NodeId) {
        self.behind.entry(node).or_insert(now);
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.behind.remove(&node);
    }

    /// Somebody who is not connected wants a roster: by gossip, and one answer is for all who ask.
    pub(super) fn on_asked(&mut self, known: &mut Known, node: NodeId, has: (u64, u64)) {
        let now = known.cx.now.mono;
        let answered = self.answered.is_some_and(|at| now < at + BEACON_EVERY);
        if node != known.cx.me || has >= known.rosters.version(node) || answered {
            return;
        }
        self.answered = Some(now);
        let whole = known.rosters.whole_anew();
        let message = signed(known, whole);
        // A larger one comes with a connection.
        if message.encode().len() <= GOSSIP_BYTES_MAX {
            known.cx.broadcast(None, message);
        }
    }

    pub(super) fn on_roster(&mut self, known: &mut Known, news: RosterNews) {
        let now = known.cx.now;
        let node = news.node;
        if node == known.cx.me || known.cx.parted.has(node) || known.cx.is_relay() {
            return;
        }
        if let What::Typing { agent, room, typing, .. } = news.what {
            let seated = known
                .rosters
                .record(&agent)
                .filter(|(at, record)| *at == node && record.rooms.contains_key(&room))
                .filter(|(at, record)| {
                    let (agent, node, key) = (&*agent, *at, record.key);
                    known.rosters.may_sit(room, &Seating { agent, node, key })
                });
            if let Some((_, record)) = seated {
                let name = record.name.clone();
                known.cx.notify(room, RoomEvent::Typing { agent, name, typing });
            }
            return;
        }
        match known.rosters.apply(now, news) {
            Taken::Now => {
                self.behind.remove(&node);
                let alive = known.live.is_alive(now.mono, node);
                known.rosters.set_alive(now.mono, node, alive);
            }
            Taken::Missing => {
                self.behind.entry(node).or_insert(now.mono);
            }
            Taken::Old => {}
            Taken::Refused => known.cx.faults.stray += 1,
        }
    }

    pub(super) fn on_want_roster(
        &mut self,
        known: &mut Known,
        from: NodeId,
        node: NodeId,
        has: (u64, u64),
    ) {
        if node != known.cx.me || has >= known.rosters.version(node) {
            return;
        }
        let whole = known.rosters.whole();
        if known.live.up.contains(&from) {
            let message = signed(known, whole);
            known.cx.send(from, message);
        } else {
            self.tell(known, whole);
        }
    }

    /// Whole rosters are asked for when news did not bring what a beacon promised.
    pub(super) fn ask(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        let due: Vec<NodeId> = self
            .behind
            .iter()
            .filter(|(_, since)| now >= **since + BEACON_EVERY)
            .map(|(node, _)| *node)
            .collect();
        for node in due {
            self.behind.remove(&node);
            let (boot, version) = known.rosters.version(node);
            let promised =
                known.live.last(node).map(|heard| (heard.beacon.boot, heard.beacon.roster));
            if promised.is_none_or(|promise| promise <= (boot, version)) {
                continue;
            }
            let direct = known.live.up.contains(&node);
            let me = first_8(known.cx.me.0);
            let nonce = (!direct).then_some(me ^ known.cx.now.wall_us);
            let want = Message::WantRoster { node, boot, version, nonce };
            if direct {
                known.cx.send(node, want);
            } else {
                known.cx.broadcast(None, want);
            }
        }
    }

    /// Signs and sends; a message too large for gossip goes to each peer directly.
    pub(super) fn tell(&mut self, known: &mut Known, what: What) {
        let version = match &what {
            What::Changes { version, .. } => Some(*version),
            What::Whole { .. } | What::Typing { .. } => None,
        };
        let message = signed(known, what);
        let bytes = message.encode().len();
        if let Some(version) = version {
            self.recent.push(version, bytes, message.clone());
        }
        if bytes <= GOSSIP_BYTES_MAX {
            known.cx.broadcast(None, message);
        } else {
            for peer in known.live.up.difference(&known.cx.relays).copied().collect::<Vec<_>>() {
                known.cx.send(peer, message.clone());
            }
        }
    }

    /// Tells a peer the changes that it lacks, if these are kept. Whether it lacks more than that.
    pub(super) fn tell_changes(&self, known: &mut Known, peer: NodeId, has: (u64, u64)) -> bool {
        let (boot, version) = known.rosters.version(known.cx.me);
        if has >= (boot, version) {
            return false;
        }
        let since = if has.0 == boot { has.1 } else { 0 };
        let Some(news) = self.recent.between(since, version) else { return true };
        for message in news {
            known.cx.send(peer, message);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId([1; 32]);

    #[test]
    fn the_last_roster_news_are_said_again_to_who_lacks_these_and_no_more() {
        let news = || Message::Probe { node: PEER };
        let mut recent = Recent::default();
        assert!(recent.between(0, 0).is_none());
        for version in 5..=9 {
            recent.push(version, 10, news());
        }
        assert_eq!(recent.between(4, 9).map(|it| it.len()), Some(5));
        assert_eq!(recent.between(8, 9).map(|it| it.len()), Some(1));
        assert!(recent.between(3, 9).is_none(), "one is missing");
        assert!(recent.between(8, 10).is_none(), "the last is missing");
        recent.push(11, 10, news());
        assert!(recent.between(8, 11).is_none(), "nothing leads from 9 to 11");
        assert_eq!(recent.between(10, 11).map(|it| it.len()), Some(1));
        for version in 12..=11 + ROSTER_NEWS_KEPT as u64 {
            recent.push(version, 10, news());
        }
        assert_eq!(recent.news.len(), ROSTER_NEWS_KEPT);
        recent.push(12 + ROSTER_NEWS_KEPT as u64, ROSTER_NEWS_KEPT_BYTES, news());
        assert_eq!((recent.news.len(), recent.bytes), (1, ROSTER_NEWS_KEPT_BYTES));
    }
}
