//! Plans of worlds in which two nodes are never up at the same time, and others carry for them.

use std::time::Duration;

use super::{Fault, Plan};
use crate::sim::{dice::Dice, network::Weather};

/// The two nodes. All others are there whenever they are.
pub(crate) const LAPTOPS: [usize; 2] = [1, 2];

/// How often one of them is up alone.
const PHASES: u64 = 5;
/// Of each such time the last part is calm: everything is handed over, and taken, by then.
const CALM: Duration = Duration::from_secs(25);

/// A time in which one of the two is up, and the other one is not.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Which.
    pub(crate) node: usize,
    /// It goes then.
    pub(crate) end: Duration,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Laptops {
    /// Up to then both are up. `None`: they have never met.
    pub(crate) together: Option<Duration>,
    /// One after the other.
    pub(crate) phases: Vec<Phase>,
}

impl Laptops {
    /// Whether a node is up at the beginning.
    pub(crate) fn begin_with(&self, node: usize) -> bool {
        let first = self.phases.first().map(|phase| phase.node);
        !LAPTOPS.contains(&node) || self.together.is_some() || first == Some(node)
    }
}

impl Plan {
    /// A plan of a seed in which two nodes are never up together, but perhaps at first, and one or two others carry for them.
    #[must_use]
    pub(crate) fn carried(seed: u64) -> Plan {
        let mut dice = Dice::new(seed ^ 0x6361_7272);
        let nodes = if dice.chance(50) { 3 } else { 4 };
        let carriers: Vec<usize> = (0..nodes).filter(|node| !LAPTOPS.contains(node)).collect();
        let mut drawn = Drawn { faults: Vec::new(), carriers };
        let together = dice.chance(60).then(|| millis(&mut dice, 8_000, 12_000));
        let mut at = together.unwrap_or(Duration::ZERO);
        let first = dice.index(LAPTOPS.len());
        if together.is_some() {
            drawn.goes(&mut dice, at, LAPTOPS[1 - first]);
        }
        let mut phases = Vec::new();
        for nth in 0..usize::try_from(PHASES).expect("few") {
            let node = LAPTOPS[(first + nth) % LAPTOPS.len()];
            let (turbulent, first) = (nth > 0 || together.is_some(), phases.is_empty());
            if !first {
                at = drawn.nobody_is_there(&mut dice, at);
                drawn.faults.push((at, Fault::Start(node)));
            }
            let calm = at + millis(&mut dice, 2_000, 10_000);
            if turbulent {
                drawn.trouble(&mut dice, (at, calm), node);
            }
            drawn.faults.push((calm, Fault::Calm(node)));
            at = calm + CALM;
            phases.push(Phase { node, end: at });
            drawn.goes(&mut dice, at, node);
        }
        drawn.faults.sort_by_key(|(at, _)| *at);
        Plan {
            gossip: !dice.chance(25),
            faults: drawn.faults,
            faults_end: at + Duration::from_secs(3),
            weather: Weather::CALM,
            act_every: millis(&mut dice, 150, 400),
            laptops: Some(Laptops { together, phases }),
            ..Plan::quiet(nodes)
        }
    }
}

/// Faults so far.
struct Drawn {
    faults: Vec<(Duration, Fault)>,
    carriers: Vec<usize>,
}

impl Drawn {
    /// A node goes, a moment later: it was judged before.
    fn goes(&mut self, dice: &mut Dice, at: Duration, node: usize) {
        let at = at + Duration::from_millis(1);
        let fault = if dice.chance(50) { Fault::Crash(node) } else { Fault::Stop(node) };
        self.faults.push((at, fault));
    }

    /// Both are away, and those that carry fail. Returns when the other one comes.
    fn nobody_is_there(&mut self, dice: &mut Dice, from: Duration) -> Duration {
        // One that stops says so to others.
        let at = from + millis(dice, 3_000, 5_000);
        let mut end = at;
        for carrier in self.carriers.clone() {
            if dice.chance(70) {
                let crash = at + millis(dice, 0, 1_000);
                let fault =
                    if dice.chance(60) { Fault::Crash(carrier) } else { Fault::Restart(carrier) };
                self.faults.push((crash, fault));
                let start = crash + millis(dice, 100, 3_000);
                self.faults.push((start, Fault::Start(carrier)));
                end = end.max(start);
            }
        }
        // It may come before they are back.
        end.saturating_sub(millis(dice, 0, 1_000)).max(at)
    }

    /// Faults while one of the two is there.
    fn trouble(&mut self, dice: &mut Dice, (mut at, calm): (Duration, Duration), node: usize) {
        self.faults.push((at, Fault::Weather(dice.draw())));
        loop {
            at += millis(dice, 300, 3_000);
            if at >= calm {
                return;
            }
            let carrier = *dice.pick(&self.carriers);
            let some = if dice.chance(50) { carrier } else { node };
            let fault = match dice.within(0, 9) {
                0..=2 => Fault::Crash(some),
                3 => Fault::Doom(some, dice.within(0, 30)),
                4 => Fault::Restart(some),
                5 => Fault::OneWay(node, carrier),
                6 => Fault::OneWay(carrier, node),
                7 => Fault::Pause(some, dice.within(200, 4_000)),
                8 => Fault::Stall(some, dice.within(200, 4_000)),
                _ => Fault::Heal,
            };
            let falls = matches!(fault, Fault::Crash(_) | Fault::Doom(..));
            self.faults.push((at, fault));
            if falls {
                let start = at + millis(dice, 100, 3_000);
                self.faults.push((start.min(calm), Fault::Start(some)));
            }
        }
    }
}

fn millis(dice: &mut Dice, low: u64, high: u64) -> Duration {
    Duration::from_millis(dice.within(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_are_never_up_together_but_at_first() {
        for seed in 0..200 {
            let plan = Plan::carried(seed);
            let laptops = plan.laptops.expect("they are planned");
            let mut up: Vec<bool> = LAPTOPS.iter().map(|node| laptops.begin_with(*node)).collect();
            for (at, fault) in plan.faults {
                for (up, node) in up.iter_mut().zip(LAPTOPS) {
                    if let Fault::Start(of) | Fault::Calm(of) | Fault::Restart(of) = fault {
                        *up |= of == node;
                    } else if let Fault::Crash(of) | Fault::Stop(of) = fault {
                        *up &= of != node;
                    }
                }
                let both = up.iter().all(|up| *up);
                assert!(
                    !both || laptops.together.is_some_and(|end| at <= end),
                    "seed {seed}, {at:?}"
                );
            }
        }
    }
}
