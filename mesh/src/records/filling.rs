//! A node that lacks many records goes on with the peer that gives them when the round is over, instead of waiting for a
//! beacon; and neither of the two begins another comparison meanwhile, which would have the same records sent again.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    limits::{RECORDS_COMPARE_EVERY, RECORDS_GO_ON_AFTER, RECORDS_GO_ON_FROM},
    name::id::NodeId,
    wire::record::Space,
};

/// A peer, and the space of which it gives records.
pub type Giver = (NodeId, Space);

/// The records under way between this node and a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Messages of records that the peer was asked for, and that are not here yet. Not each is answered.
    awaited: usize,
    /// The peer has given so many that it may have more.
    more: bool,
    /// When it last did, or was given many.
    at: Option<Duration>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    /// The peer that gives, and when it gave last.
    giving: Option<(Giver, Duration)>,
    rounds: BTreeMap<Giver, Round>,
}

impl Filling {
    /// A comparison begins: answers to the one before are not waited for.
    pub fn begin(&mut self, peer: Giver) {
        if let Some(round) = self.rounds.get_mut(&peer) {
            (round.awaited, round.more) = (0, false);
        }
    }

    /// A peer was asked for so many messages of records.
    pub fn ask(&mut self, peer: Giver, messages: usize) {
        self.rounds.entry(peer).or_default().awaited += messages;
    }

    /// A peer is given so many records.
    pub fn give(&mut self, now: Duration, peer: Giver, count: usize) {
        if count >= RECORDS_GO_ON_FROM {
            self.rounds.entry(peer).or_default().at = Some(now);
        }
    }

    /// A peer has given so many records that are new. Whether it is compared with again now: all that it was asked for is
    /// here. One peer at a time is gone on with, for several would give the same; one that gives nothing for a second leaves
    /// its place to another.
    pub fn note(&mut self, now: Duration, peer: Giver, new: usize) -> bool {
        let taken = self.giving.is_some_and(|(giving, at)| {
            giving != peer && now < at.saturating_add(RECORDS_COMPARE_EVERY)
        });
        let many = new >= RECORDS_GO_ON_FROM && !taken;
        if !many && !self.rounds.contains_key(&peer) {
            return false;
        }
        let round = self.rounds.entry(peer).or_default();
        if many {
            (round.more, round.at) = (true, Some(now));
            self.giving = Some((peer, now));
        }
        let last = round.awaited == 1;
        round.awaited = round.awaited.saturating_sub(1);
        last && std::mem::take(&mut round.more)
    }

    /// The peer that is compared with again at this tick: it was asked for nothing more, or does not answer.
    pub fn go_on(&mut self, now: Duration) -> Option<Giver> {
        let (peer, at) = self.giving?;
        let round = self.rounds.get_mut(&peer)?;
        let over = round.awaited == 0 || now >= at.saturating_add(RECORDS_GO_ON_AFTER);
        (over && std::mem::take(&mut round.more)).then_some(peer)
    }

    /// Whether one of the two has just given the other many: that they differ is no news.
    #[must_use]
    pub fn is_under_way(&self, now: Duration, peer: Giver) -> bool {
        let at = self.rounds.get(&peer).and_then(|round| round.at);
        at.is_some_and(|at| now < at.saturating_add(RECORDS_COMPARE_EVERY))
    }

    /// A peer is gone.
    pub fn forget(&mut self, peer: NodeId) {
        self.rounds.retain(|(of, _), _| *of != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = RECORDS_GO_ON_FROM;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn two() -> [Giver; 2] {
        [1, 2].map(|node| (NodeId([node; 32]), Space::Mesh))
    }

    #[test]
    fn one_peer_gives_at_a_time_and_the_next_when_it_is_silent() {
        let ([one, other], mut filling) = (two(), Filling::default());
        filling.note(ms(0), one, MANY - 1);
        assert_eq!(filling.go_on(ms(0)), None, "the news of a moment");
        assert!(!filling.note(ms(0), one, MANY), "nobody asked: at the next tick");
        filling.note(ms(10), one, 500);
        filling.note(ms(20), other, 500);
        assert_eq!(filling.go_on(ms(100)), Some(one));
        assert_eq!(filling.go_on(ms(200)), None, "one comparison");
        filling.note(ms(900), other, 500);
        assert_eq!(filling.go_on(ms(900)), None);
        filling.note(ms(1_010), other, 500);
        filling.note(ms(1_020), one, 500);
        assert_eq!(filling.go_on(ms(1_100)), Some(other));
    }

    #[test]
    fn a_round_is_over_when_all_is_here_or_when_the_rest_does_not_come() {
        let ([one, _], mut filling) = (two(), Filling::default());
        filling.ask(one, 3);
        assert!(!filling.note(ms(0), one, MANY));
        assert_eq!(filling.go_on(ms(100)), None, "two are under way");
        assert!(!filling.note(ms(110), one, MANY));
        assert!(filling.note(ms(120), one, 0), "that was the last, whatever it brought");
        assert_eq!(filling.go_on(ms(200)), None, "once");
        filling.begin(one);
        filling.ask(one, 2);
        filling.note(ms(300), one, MANY);
        assert_eq!(filling.go_on(ms(300) + RECORDS_GO_ON_AFTER - ms(1)), None);
        assert_eq!(filling.go_on(ms(300) + RECORDS_GO_ON_AFTER), Some(one));
        filling.begin(one);
        filling.ask(one, 1);
        assert!(!filling.note(ms(2_000), one, MANY - 1), "it has no more to give");
    }

    #[test]
    fn two_do_not_compare_while_one_gives_the_other_many() {
        let ([one, other], mut filling) = (two(), Filling::default());
        filling.give(ms(0), one, MANY - 1);
        assert!(!filling.is_under_way(ms(0), one));
        filling.give(ms(0), one, MANY);
        filling.note(ms(500), other, MANY);
        assert!(filling.is_under_way(RECORDS_COMPARE_EVERY - ms(1), one));
        assert!(!filling.is_under_way(RECORDS_COMPARE_EVERY, one));
        assert!(filling.is_under_way(RECORDS_COMPARE_EVERY, other));
        filling.forget(other.0);
        assert!(!filling.is_under_way(RECORDS_COMPARE_EVERY, other));
    }
}
