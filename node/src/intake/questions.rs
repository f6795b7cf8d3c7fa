//! The rate of a peer's questions: one costs the node that answers more than the peer that asks.

use std::{collections::BTreeMap, time::Instant};

use mesh::{limits::NODES_MAX, name::id::NodeId};

use crate::limits::{QUESTIONS_BURST_MAX, QUESTIONS_PER_SECOND_MAX, QUESTIONS_PER_STRIKE};

/// The fault of a peer that asks too many.
const TOO_MANY: &str = "it asks more than is answered";

/// Questions by peer, less the allowance earned since.
#[derive(Debug, Default)]
pub(crate) struct Questions(BTreeMap<NodeId, Tally>);

#[derive(Clone, Copy, Debug)]
struct Tally {
    count: u32,
    since: Instant,
}

impl Questions {
    /// Counts one. `Err`: it is too many, with a fault to be counted against the peer, now and
    /// then.
    pub(super) fn ask(&mut self, peer: NodeId, now: Instant) -> Result<(), Option<&'static str>> {
        if self.0.len() >= NODES_MAX && !self.0.contains_key(&peer) {
            // Only members are connected; a peer that has not asked for long has earned everything.
            self.0.retain(|_, asked| asked.earn(now).count > 0);
        }
        let asked = self.0.entry(peer).or_insert(Tally { count: 0, since: now });
        *asked = asked.earn(now);
        let over = asked.count.checked_sub(QUESTIONS_BURST_MAX);
        asked.count = asked.count.saturating_add(1);
        match over {
            None => Ok(()),
            Some(over) => Err(over.is_multiple_of(QUESTIONS_PER_STRIKE).then_some(TOO_MANY)),
        }
    }
}

impl Tally {
    fn earn(self, now: Instant) -> Tally {
        let seconds = now.saturating_duration_since(self.since).as_secs();
        if seconds == 0 {
            return self;
        }
        let earned = seconds.saturating_mul(u64::from(QUESTIONS_PER_SECOND_MAX));
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        Tally { count: self.count.saturating_sub(earned), since: now }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_asks_without_end_is_not_heard_and_blamed_and_others_are() {
        let (mut questions, now) = (Questions::default(), Instant::now());
        let (greedy, modest) = (NodeId([1; 32]), NodeId([2; 32]));
        for _ in 0..QUESTIONS_BURST_MAX {
            assert_eq!(questions.ask(greedy, now), Ok(()));
        }
        let blamed = (0..2 * QUESTIONS_PER_STRIKE)
            .filter(|_| questions.ask(greedy, now) == Err(Some(TOO_MANY)))
            .count();
        assert_eq!(blamed, 2);
        assert_eq!(questions.ask(modest, now), Ok(()));
        // A quiet peer earns it back.
        let over = 2 * QUESTIONS_PER_STRIKE / QUESTIONS_PER_SECOND_MAX + 1;
        let later = now + Duration::from_secs(u64::from(over + 1));
        assert_eq!(questions.ask(greedy, later), Ok(()));
    }
}
