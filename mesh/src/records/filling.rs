//! A node that lacks many records goes on with the peer that gives them at the next tick, instead of waiting for a beacon.

use std::time::Duration;

use crate::{
    limits::{RECORDS_COMPARE_EVERY, RECORDS_GO_ON_FROM},
    name::id::NodeId,
    wire::record::Space,
};

/// A peer, and the space of which it gives records.
pub type Giver = (NodeId, Space);

/// See the module.
#[derive(Debug, Default)]
pub struct Filling {
    /// The peer that gives, and when it gave last.
    giving: Option<(Giver, Duration)>,
    /// It has given since this node went on with it.
    more: bool,
}

impl Filling {
    /// A peer has given so many records that are new. One peer at a time is gone on with, for several would give the
    /// same; one that gives nothing for a second leaves its place to another.
    pub fn note(&mut self, now: Duration, peer: Giver, new: usize) {
        let taken = self.giving.is_some_and(|(giving, at)| {
            giving != peer && now < at.saturating_add(RECORDS_COMPARE_EVERY)
        });
        if new >= RECORDS_GO_ON_FROM && !taken {
            self.giving = Some((peer, now));
            self.more = true;
        }
    }

    /// The peer that is compared with again now.
    pub fn go_on(&mut self) -> Option<Giver> {
        let more = std::mem::take(&mut self.more);
        self.giving.filter(|_| more).map(|(peer, _)| peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_gives_at_a_time_and_the_next_when_it_is_silent() {
        let [one, other] = [1, 2].map(|node| (NodeId([node; 32]), Space::Mesh));
        let ms = Duration::from_millis;
        let mut filling = Filling::default();
        filling.note(ms(0), one, RECORDS_GO_ON_FROM - 1);
        assert_eq!(filling.go_on(), None, "the news of a moment");
        filling.note(ms(0), one, RECORDS_GO_ON_FROM);
        filling.note(ms(10), one, 500);
        filling.note(ms(20), other, 500);
        assert_eq!((filling.go_on(), filling.go_on()), (Some(one), None), "one comparison");
        filling.note(ms(900), other, 500);
        assert_eq!(filling.go_on(), None);
        filling.note(ms(1_010), other, 500);
        filling.note(ms(1_020), one, 500);
        assert_eq!(filling.go_on(), Some(other));
    }
}
