//! The rate at which this node passes gossip of others on. Each receiver counts it against this
//! node, not against its author: so it has to stay well below the allowance of a peer, however many
//! send how much. A function of its inputs.

use std::collections::HashMap;
use std::time::Instant;

use crate::identity::NodeId;
use crate::limits::{PEERS_MAX, RELAY_BURST_MAX, RELAY_PER_SECOND_MAX, RELAY_UNIT_BYTES};

/// Gossip passed on, less the allowance earned since: together, and of each peer.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    of: HashMap<NodeId, u32>,
    since: Option<Instant>,
}

impl Relay {
    /// Whether a payload of so many bytes that came from `node` is passed on. When much was, those
    /// who send most are left out first.
    pub(crate) fn takes(&mut self, node: NodeId, bytes: usize, now: Instant) -> bool {
        self.earn(now);
        let units = u32::try_from(bytes.div_ceil(RELAY_UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let total = self.total();
        let mine = self.of.get(&node).copied().unwrap_or(0);
        // As if there were one more peer, silent so far.
        let shares = u32::try_from(self.of.len()).unwrap_or(u32::MAX).saturating_add(1);
        let greedy = total > RELAY_BURST_MAX / 2 && mine > total / shares;
        let full = total.saturating_add(units) > RELAY_BURST_MAX;
        if greedy || full || (self.of.len() >= PEERS_MAX && !self.of.contains_key(&node)) {
            return false;
        }
        *self.of.entry(node).or_default() += units;
        true
    }

    fn total(&self) -> u32 {
        self.of.values().fold(0, |sum, passed| sum.saturating_add(*passed))
    }

    /// The allowance that is earned goes to all in proportion.
    fn earn(&mut self, now: Instant) {
        let since = self.since.get_or_insert(now);
        let seconds = now.saturating_duration_since(*since).as_secs();
        if seconds == 0 {
            return;
        }
        *since = now;
        let earned = seconds.saturating_mul(u64::from(RELAY_PER_SECOND_MAX));
        let total = u64::from(self.total());
        let left = total.saturating_sub(earned);
        self.of.retain(|_, passed| {
            let rest = u64::from(*passed) * left / total.max(1);
            *passed = u32::try_from(rest).unwrap_or(u32::MAX);
            *passed > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::{GOSSIP_BURST_MAX, GOSSIP_BYTES_MAX, GOSSIP_PER_SECOND_MAX};

    fn taken(relay: &mut Relay, node: u8, (tries, bytes): (u32, usize), now: Instant) -> u32 {
        let took = (0..tries).filter(|_| relay.takes([node; 32], bytes, now)).count();
        u32::try_from(took).unwrap()
    }

    #[test]
    fn who_passes_on_what_many_send_stays_below_what_a_peer_may() {
        let (mut relay, start) = (Relay::default(), Instant::now());
        let mut passed = 0;
        for second in 0..20 {
            let now = start + Duration::from_secs(second);
            for node in 1..=2 {
                passed += taken(&mut relay, node, (GOSSIP_PER_SECOND_MAX, 10), now);
            }
        }
        assert!(passed > 10 * RELAY_PER_SECOND_MAX, "it passes on what it may: {passed}");
        assert!(2 * passed <= GOSSIP_BURST_MAX + 20 * GOSSIP_PER_SECOND_MAX, "{passed}");
    }

    #[test]
    fn who_sends_most_is_left_out_first() {
        let (mut relay, now) = (Relay::default(), Instant::now());
        for node in 1..=2 {
            taken(&mut relay, node, (GOSSIP_BURST_MAX, 10), now);
        }
        assert_eq!(taken(&mut relay, 3, (500, 10), now), 500, "there is room for others");
        assert_eq!(taken(&mut relay, 1, (500, 10), now), 0);
    }

    #[test]
    fn large_payloads_count_as_many() {
        let (mut relay, now) = (Relay::default(), Instant::now());
        let took = taken(&mut relay, 1, (GOSSIP_BURST_MAX, GOSSIP_BYTES_MAX), now);
        let bytes = took as usize * GOSSIP_BYTES_MAX;
        assert!(bytes <= RELAY_BURST_MAX as usize * RELAY_UNIT_BYTES, "{bytes}");
    }
}
