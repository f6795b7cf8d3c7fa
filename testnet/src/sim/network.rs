//! The simulated network: which node reaches which, and how a message fares on its way.

use std::{collections::BTreeSet, time::Duration};

use super::{
    coverage::{Coverage, Happening},
    dice::Dice,
};

/// How messages fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weather {
    /// Percent of gossip lost.
    pub(super) lost: u64,
    /// Percent lost of messages to one node: as when its queue is full.
    pub(super) lost_direct: u64,
    /// Percent that arrive twice.
    pub(super) doubled: u64,
    /// Percent that take up to `late_ms_max`, and so overtake and are overtaken.
    pub(super) late: u64,
    /// How late the late ones are at most.
    pub(super) late_ms_max: u64,
    /// How long every message takes at least, and up to a quarter more: so that it overtakes and is overtaken.
    pub(super) delay_ms: u64,
}

impl Weather {
    /// Everything arrives, in order but for a millisecond or two.
    pub(super) const CALM: Weather =
        Weather { lost: 0, lost_direct: 0, doubled: 0, late: 0, late_ms_max: 0, delay_ms: 0 };
}

/// The way that a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To all, as gossip.
    Gossip,
    /// To one node.
    Direct,
}

/// Which node's messages reach which.
#[derive(Debug)]
pub(super) struct Network {
    /// `cut[from][to]`: nothing gets through this way.
    cut: Vec<Vec<bool>>,
    /// Links, by their lower end first, that one side does not want any more.
    shut: BTreeSet<(usize, usize)>,
    /// How messages fare that do.
    pub(super) weather: Weather,
    /// Whether gossip carries anything but beacons.
    pub(super) gossip: bool,
}

impl Network {
    /// `nodes` nodes, all connected.
    #[must_use]
    pub(super) fn new(nodes: usize, gossip: bool) -> Network {
        let cut = vec![vec![false; nodes]; nodes];
        Network { cut, shut: BTreeSet::new(), weather: Weather::CALM, gossip }
    }

    /// Whether messages get through this way.
    #[must_use]
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        !self.cut[from][to] && !self.shut.contains(&(from.min(to), from.max(to)))
    }

    /// Whether a connection can be kept: it needs both ways.
    #[must_use]
    pub(super) fn connects(&self, a: usize, b: usize) -> bool {
        self.reaches(a, b) && self.reaches(b, a)
    }

    /// Only nodes of one group reach each other.
    pub(super) fn split(&mut self, groups: &[usize]) {
        for from in 0..groups.len() {
            for to in 0..groups.len() {
                self.cut[from][to] = groups[from] != groups[to];
            }
        }
    }

    /// Cuts one way of one link.
    pub(super) fn cut_one_way(&mut self, from: usize, to: usize) {
        self.cut[from][to] = true;
    }

    /// Cuts both ways of one link, or mends them.
    pub(super) fn link(&mut self, a: usize, b: usize, cut: bool) {
        self.cut[a][b] = cut;
        self.cut[b][a] = cut;
    }

    /// One of two nodes takes nothing from the other any more, even after a heal.
    pub(super) fn shut(&mut self, a: usize, b: usize) {
        self.shut.insert((a.min(b), a.max(b)));
    }

    /// All links as they should be.
    pub(super) fn heal(&mut self) {
        self.cut.iter_mut().flatten().for_each(|cut| *cut = false);
    }

    /// When copies of a message that is sent now arrive, from now; none if it is lost.
    pub(super) fn fate(&self, dice: &mut Dice, coverage: &mut Coverage, way: Way) -> Vec<Duration> {
        let weather = self.weather;
        let (lost, happening) = match way {
            Way::Gossip => (weather.lost, Happening::GossipLost),
            Way::Direct => (weather.lost_direct, Happening::DirectLost),
        };
        if dice.chance(lost) {
            coverage.count(happening);
            return Vec::new();
        }
        let copies = if dice.chance(weather.doubled) { 2 } else { 1 };
        if copies > 1 {
            coverage.count(Happening::Doubled);
        }
        (0..copies)
            .map(|_| {
                let late = if dice.chance(weather.late) {
                    coverage.count(Happening::Late);
                    dice.within(0, weather.late_ms_max.max(1)) * 1_000
                } else {
                    0
                };
                let jitter = dice.within(0, weather.delay_ms * 250);
                let way = weather.delay_ms * 1_000 + jitter;
                Duration::from_micros(dice.within(200, 1_500) + way + late)
            })
            .collect()
    }
}
