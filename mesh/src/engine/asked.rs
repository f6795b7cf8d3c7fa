//! The memory of barriers: the peers that were asked and how far they have answered, how long that
//! takes, and how much each has asked itself (`docs/decisions/barrier.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    limits::{
        BARRIER_ANSWERS_PER_TICK, BARRIER_LEFT_OUT_FOR, BARRIER_MEASURED_EVERY,
        BARRIER_ROUND_TRIPS, BARRIER_WITHIN, BARRIER_WITHIN_MAX, BEACON_EVERY, TICK,
    },
    name::id::{NodeId, RoomId},
    wire::message::Heads,
};

/// A connected peer, as barriers know it.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// The question that it has not answered, and when it was asked.
    asked: Option<(u64, Duration)>,
    /// When it was asked last.
    asked_at: Option<Duration>,
    /// From a question to its answer, smoothed.
    round_trip: Option<Duration>,
    /// It was silent for a whole barrier.
    left_out_until: Duration,
    /// Since when its questions are counted, and how many were answered.
    answered: (Duration, u32),
    /// When it got this node's whole roster with an answer.
    whole: Option<Duration>,
}

/// All connected peers that have asked, or were asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers(BTreeMap<NodeId, Peer>);

impl Peers {
    pub(crate) fn forget(&mut self, peer: NodeId) {
        self.0.remove(&peer);
    }

    /// Whether it is to be asked: it was not silent lately.
    pub(crate) fn answers(&self, now: Duration, peer: NodeId) -> bool {
        self.0.get(&peer).is_none_or(|peer| now >= peer.left_out_until)
    }

    pub(crate) fn ask(&mut self, now: Duration, peer: NodeId, nonce: u64) {
        let peer = self.0.entry(peer).or_default();
        (peer.asked, peer.asked_at) = (Some((nonce, now)), Some(now));
    }

    /// Whether how long it takes to ask it was not measured lately.
    pub(crate) fn is_to_be_measured(&self, now: Duration, peer: NodeId) -> bool {
        let asked = self.0.get(&peer).and_then(|peer| peer.asked_at);
        asked.is_none_or(|at| now >= at + BARRIER_MEASURED_EVERY)
    }

    /// It answers the last question that it was asked, however late. `false`: it was not asked.
    pub(crate) fn answer(&mut self, now: Duration, peer: NodeId, nonce: u64) -> bool {
        let Some(peer) = self.0.get_mut(&peer) else { return false };
        let Some((_, at)) = peer.asked.take_if(|(asked, _)| *asked == nonce) else { return false };
        let took = now.saturating_sub(at);
        // Up at once, and slowly down: with too short a time something is missed.
        peer.round_trip =
            Some(peer.round_trip.map_or(took, |before| took.max((before * 3 + took) / 4)));
        peer.left_out_until = Duration::ZERO;
        true
    }

    pub(crate) fn leave_out(&mut self, now: Duration, peer: NodeId) {
        self.0.entry(peer).or_default().left_out_until = now + BARRIER_LEFT_OUT_FOR;
    }

    /// How long a barrier with these may take.
    pub(crate) fn bound<'a>(&self, peers: impl Iterator<Item = &'a NodeId>) -> Duration {
        let trips = peers.filter_map(|peer| self.0.get(peer)?.round_trip);
        let slowest = trips.max().unwrap_or_default();
        (slowest * BARRIER_ROUND_TRIPS).clamp(BARRIER_WITHIN, BARRIER_WITHIN_MAX)
    }

    /// Counts a question of a peer. `false`: it has asked too often to be answered.
    pub(crate) fn may_ask(&mut self, now: Duration, peer: NodeId) -> bool {
        let (since, count) = &mut self.0.entry(peer).or_default().answered;
        if now >= *since + TICK {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= BARRIER_ANSWERS_PER_TICK
    }

    /// Whether a peer may be given the whole roster with an answer; it may be large.
    pub(crate) fn may_have_whole(&mut self, now: Duration, peer: NodeId) -> bool {
        let whole = &mut self.0.entry(peer).or_default().whole;
        let may = whole.is_none_or(|at| now >= at + BEACON_EVERY);
        if may {
            *whole = Some(now);
        }
        may
    }
}

/// The question to one peer in a barrier that runs.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The rooms that the question named.
    pub(crate) named: BTreeSet<RoomId>,
    /// Its answer, as far as it is not heard and fetched yet: the version of its roster, and rooms of
    /// which something lacks.
    pub(crate) said: Option<((u64, u64), Vec<Heads>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId([1; 32]);
    const MS: Duration = Duration::from_millis(1);

    fn measured(trips: &[u32]) -> Duration {
        let mut peers = Peers::default();
        for (nonce, trip) in trips.iter().enumerate() {
            peers.ask(Duration::ZERO, PEER, nonce as u64);
            assert!(peers.answer(MS * *trip, PEER, nonce as u64));
        }
        peers.bound([PEER].iter())
    }

    #[test]
    fn a_barrier_takes_four_round_trips_but_no_less_than_250_ms_and_no_more_than_a_second() {
        assert_eq!(measured(&[]), MS * 250);
        assert_eq!(measured(&[1]), MS * 250);
        assert_eq!(measured(&[100]), MS * 400);
        assert_eq!(measured(&[300]), MS * 1_000);
        assert_eq!(measured(&[1, 200]), MS * 800, "it has become slow");
        assert_eq!(measured(&[200, 100]), MS * 700, "and may be again");
    }

    #[test]
    fn who_was_silent_is_left_out_until_it_answers_or_ten_seconds_have_passed() {
        let mut peers = Peers::default();
        peers.ask(Duration::ZERO, PEER, 1);
        peers.leave_out(MS * 250, PEER);
        assert!(!peers.answers(MS * 250 + BARRIER_LEFT_OUT_FOR - MS, PEER));
        assert!(peers.answers(MS * 250 + BARRIER_LEFT_OUT_FOR, PEER));
        assert!(!peers.answer(MS * 300, PEER, 2), "it was not asked that");
        assert!(peers.answer(MS * 300, PEER, 1), "late, and it lives");
        assert!(peers.answers(MS * 300, PEER));
        assert!(!peers.answer(MS * 300, PEER, 1), "once");
        assert_eq!(peers.bound([PEER].iter()), MS * 1_000, "four times 300 ms would be longer");
    }

    #[test]
    fn who_asks_without_end_is_answered_so_often_and_others_are() {
        let mut peers = Peers::default();
        let answered = (0..1_000).filter(|_| peers.may_ask(MS * 7, PEER)).count();
        assert_eq!(answered, BARRIER_ANSWERS_PER_TICK as usize);
        assert!(peers.may_ask(MS * 7, NodeId([2; 32])));
        assert!(peers.may_ask(MS * 7 + TICK, PEER));
        assert!(peers.may_have_whole(MS * 7, PEER) && !peers.may_have_whole(MS * 8, PEER));
        assert!(peers.may_have_whole(MS * 7 + BEACON_EVERY, PEER));
    }
}
