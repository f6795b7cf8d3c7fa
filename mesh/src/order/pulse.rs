//! Beacons, by which a node says that it lives: when they are sent, how, and their content.
//!
//! Beacons are sent by a thread that waits for neither store nor engine, so it has a copy of their content.
//! They are most of the cost of an idle node: each wakes all that hear it, and all pass gossip on. Fewer are sent while
//! nothing is lost by that, and few of them are gossiped.

use crate::{
    limits::{GOSSIPED_WHILE_CALM, GOSSIPED_WHILE_STILL, SAID_WHILE_CALM},
    name::{digest::Digest, id::NodeId},
    wire::message::Beacon,
};

/// The content of a beacon besides node and time, and how it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pulse {
    /// Which start of the node this is.
    pub boot: u64,
    /// Version of its roster.
    pub roster: u64,
    /// Digest of all its rooms.
    pub digest: Digest,
    /// Digest of its records.
    pub records: [u8; 16],
    /// How often they are gossiped.
    pub spread: Spread,
}

/// How often beacons are gossiped, which is dear: each node passes on those of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Spread {
    /// Somebody who lives may hear this node by gossip alone.
    #[default]
    EachTime,
    /// All living nodes are connected and were heard directly just now. Gossip goes on for nodes that this
    /// one does not know of, or that do not hear it directly.
    NowAndThen,
    /// And so it is for each of them, as far as their beacons show: a node that misses one sends its own
    /// each time.
    Rarely,
    /// More nodes live than are linked: that this one does, its links tell on. One of so many beacons, and one with each new
    /// roster.
    Seldom(u64),
}

/// Which beacons one start of a node sends: it is asked every [`crate::limits::BEACON_EVERY`].
#[derive(Clone, Debug, Default)]
pub struct Rhythm {
    tick: u64,
    /// The last one, by either path.
    said: Option<Pulse>,
    /// When it was gossiped last, and with which roster.
    gossiped: Option<u64>,
    roster: (u64, u64),
}

/// A beacon that is due. It goes to each connected peer directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The beacon.
    pub beacon: Beacon,
    /// And it is gossiped.
    pub gossiped: bool,
    /// It is even if not, while something waits for a peer: gossip takes another way.
    pub or_if_waiting: bool,
}

impl Rhythm {
    /// The beacon that is due now. `None`: none is, for all living nodes have heard the same a moment ago.
    ///
    /// `wall_ms`: the time by the node's clock, which its beacons say.
    pub fn beat(&mut self, node: NodeId, pulse: Pulse, wall_ms: u64) -> Option<Beat> {
        self.tick += 1;
        let gossiped_every = match pulse.spread {
            Spread::EachTime => 1,
            Spread::NowAndThen => GOSSIPED_WHILE_CALM,
            Spread::Rarely => GOSSIPED_WHILE_STILL,
            Spread::Seldom(every) => every,
        };
        let seldom = matches!(pulse.spread, Spread::Seldom(_));
        let calm = pulse.spread != Spread::EachTime;
        let said = Some(Pulse { spread: Spread::default(), ..pulse });
        if calm && self.said == said && !self.tick.is_multiple_of(SAID_WHILE_CALM) {
            return None;
        }
        self.said = said;
        let due = |every: u64| self.gossiped.is_none_or(|tick| self.tick >= tick + every);
        // Not all nodes at once, though all may have begun at once.
        let every = gossiped_every.max(1);
        let turn = |tick: u64| (tick + node.beginning() % every) / every;
        let is_turn = seldom && self.gossiped.is_none_or(|tick| turn(self.tick) != turn(tick));
        let news = seldom && self.roster != (pulse.boot, pulse.roster);
        let gossiped = due(gossiped_every) || is_turn || news && due(GOSSIPED_WHILE_CALM);
        if gossiped {
            self.gossiped = Some(self.tick);
            self.roster = (pulse.boot, pulse.roster);
        }
        let Pulse { boot, roster, digest, records, spread: _ } = pulse;
        let beacon = Beacon { node, boot, tick: self.tick, roster, digest, records, wall_ms };
        Some(Beat { beacon, gossiped, or_if_waiting: !seldom })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{BEACON_EVERY, HEARD_DIRECTLY_WITHIN, ROSTER_LEASE, TAKEOVER_AFTER, TICK};

    const NODE: NodeId = NodeId([1; 32]);

    fn pulse(spread: Spread, digest: u64) -> Pulse {
        let digest = Digest(u128::from(digest).to_be_bytes());
        Pulse { spread, digest, ..Pulse::default() }
    }

    /// Of 40 ticks: beacons, and those gossiped.
    fn of_40(pulse: impl Fn(u64) -> Pulse) -> (usize, usize) {
        let mut rhythm = Rhythm::default();
        let beats: Vec<Beat> = (0..40).filter_map(|n| rhythm.beat(NODE, pulse(n), n)).collect();
        assert!(beats.is_sorted_by_key(|beat| beat.beacon.tick));
        (beats.len(), beats.iter().filter(|beat| beat.gossiped).count())
    }

    #[test]
    fn while_all_is_calm_half_of_the_beacons_are_sent_and_a_quarter_is_gossiped() {
        assert_eq!(of_40(|_| pulse(Spread::EachTime, 1)), (40, 40));
        // The first one is news.
        assert_eq!(of_40(|_| pulse(Spread::NowAndThen, 1)), (21, 10));
        // What changes is said at once.
        assert_eq!(of_40(|n| pulse(Spread::NowAndThen, n)), (40, 10));
        assert_eq!(of_40(|n| pulse(Spread::NowAndThen, n / 8)), (20 + 5, 10));
        assert_eq!(of_40(|_| pulse(Spread::Rarely, 1)), (21, 3));
        // How often they are gossiped is no news: it would be for others, and so for ever.
        let calmer = |n| pulse(if n % 3 == 0 { Spread::Rarely } else { Spread::NowAndThen }, 1);
        assert_eq!(of_40(calmer).0, 21);
    }

    #[test]
    fn what_was_gossiped_rarely_is_gossiped_at_once_when_that_ends() {
        let mut rhythm = Rhythm::default();
        let mut beat = |spread| rhythm.beat(NODE, pulse(spread, 1), 0).map(|beat| beat.gossiped);
        let mut still: Vec<_> = (0..GOSSIPED_WHILE_STILL).map(|_| beat(Spread::Rarely)).collect();
        assert_eq!((still.remove(0), still.contains(&Some(true))), (Some(true), false));
        let calm: Vec<_> = (0..SAID_WHILE_CALM).map(|_| beat(Spread::NowAndThen)).collect();
        assert!(calm.contains(&Some(true)));
    }

    #[test]
    fn nobody_is_taken_for_dead_because_a_beacon_comes_late_or_is_lost() {
        let times = |n: u64| BEACON_EVERY * u32::try_from(n).expect("few");
        assert!(times(GOSSIPED_WHILE_CALM) < TAKEOVER_AFTER);
        // Calm ends when one is lost, and the next is gossiped before silence counts.
        assert!(times(SAID_WHILE_CALM) + TICK < HEARD_DIRECTLY_WITHIN);
        assert!(HEARD_DIRECTLY_WITHIN + TICK + BEACON_EVERY < TAKEOVER_AFTER);
        // Whoever does not hear this node directly any more shows it by two beacons in a row. Until it hears it by
        // gossip it asks others before it takes over from it, and keeps its agents.
        let shown = HEARD_DIRECTLY_WITHIN + TICK + times(2);
        assert!(shown + TICK + times(SAID_WHILE_CALM) < ROSTER_LEASE);
    }
}
