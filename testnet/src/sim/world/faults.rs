//! Faults of a world, and their end.

use std::time::Duration;

use mesh::api::boundary::Alarm;
use store::testing::Unsynced;

use super::World;
use crate::sim::{
    coverage::Happening,
    dice::Dice,
    network::Weather,
    plan::{Fault, LAPTOPS, some_weather},
    promises::Broken,
    timeline::Event,
};

impl World {
    pub(crate) fn fault(&mut self, fault: Fault) -> Result<(), Broken> {
        self.cluster.say(|| format!("{fault:?}"));
        match fault {
            Fault::Split(groups) => {
                if groups.windows(2).any(|pair| pair[0] != pair[1]) {
                    self.cluster.coverage.count(Happening::Split);
                }
                self.cluster.network.split(&groups);
                self.cluster.notice_all();
            }
            Fault::OneWay(from, to) => {
                self.cluster.coverage.count(Happening::HalfOpen);
                self.cluster.network.cut_one_way(from, to);
                // Nobody notices: the connection looks alive from one side.
            }
            Fault::Heal => {
                self.cluster.coverage.count(Happening::Heal);
                self.cluster.network.heal();
                self.cluster.notice_all();
            }
            Fault::Crash(node) => self.crash(node),
            Fault::Doom(node, operations) => self.cluster.nodes[node].doom(operations),
            Fault::Start(node) => return self.start(node),
            Fault::Stop(node) => self.operators.stop(&mut self.cluster, node),
            Fault::Calm(node) => return self.have_calm(node),
            Fault::Restart(node) => self.operators.restart(&mut self.cluster, node),
            Fault::RestartCut(node, ms) => {
                self.cluster.coverage.count(Happening::RestartCut);
                self.operators.restart(&mut self.cluster, node);
                self.cluster.after(Duration::from_millis(ms), Event::Isolate { node });
            }
            Fault::Pause(node, ms) => {
                self.cluster.coverage.count(Happening::Pause);
                self.cluster.nodes[node].paused_until =
                    self.cluster.now() + Duration::from_millis(ms);
            }
            Fault::Stall(node, ms) => {
                self.cluster.coverage.count(Happening::Stall);
                self.cluster.nodes[node].stalled_until =
                    self.cluster.now() + Duration::from_millis(ms);
            }
            // A node does not start on a full disk.
            Fault::Full(node, ms) if self.cluster.nodes[node].running.is_some() => {
                self.operators.fill(node);
                self.cluster.nodes[node].fill(true);
                self.cluster.after(Duration::from_millis(ms), Event::Room { node });
            }
            Fault::Full(..) => {}
            Fault::Rekey(node) => {
                self.cluster.coverage.count(Happening::Rekey);
                self.operators.draw_secret(&mut self.cluster, node);
            }
            Fault::Lose(node) => self.lose(node),
            Fault::BackUp(node) => self.cluster.nodes[node].back_up(),
            Fault::Restore(node) => self.restore(node),
            Fault::Part { by, out, why } => {
                self.operators.part(&mut self.cluster, by, out, why);
            }
            Fault::Clock(node, ms) => {
                self.cluster.coverage.count(Happening::Clock);
                self.cluster.nodes[node].wall_offset_ms = ms;
            }
            Fault::Weather(seed) => {
                self.cluster.coverage.count(Happening::Weather);
                self.cluster.network.weather = some_weather(&mut Dice::new(seed), false);
            }
        }
        Ok(())
    }

    fn crash(&mut self, node: usize) {
        if self.cluster.nodes[node].running.is_some() {
            let torn = self.cluster.dice.chance(50);
            let (what, unsynced) = match torn {
                true => (Happening::Torn, Unsynced::Torn),
                false => (Happening::PowerFailure, Unsynced::Dropped),
            };
            self.cluster.coverage.count(what);
            self.cluster.nodes[node].crash(unsynced);
            self.went_down(node);
        }
    }

    /// There is room again: the node writes the turn that it has held, and agents come back that it had refused.
    pub(super) fn make_room(&mut self, node: usize) {
        self.cluster.nodes[node].fill(false);
        if self.cluster.nodes[node].running.is_some() {
            self.cluster.wake(node, self.cluster.now());
            self.agents.attach_missing(&mut self.cluster, node);
        }
    }

    /// A node tells its operator something.
    pub(super) fn alarmed(&mut self, node: usize, alarm: &Alarm) {
        let happening = if let Alarm::EraOpened { before, .. } = alarm {
            let own = *before == self.cluster.nodes[node].id;
            if own { Happening::EraFull } else { Happening::EraOpened }
        } else if let Alarm::Hole { .. } = alarm {
            Happening::Hole
        } else if let Alarm::Forked { .. } = alarm {
            Happening::ForkFound
        } else {
            return;
        };
        self.cluster.coverage.count(happening);
    }

    /// The weather is calm for a while, and this node runs, and all that carry.
    fn have_calm(&mut self, node: usize) -> Result<(), Broken> {
        self.cluster.network.heal();
        self.cluster.network.weather = Weather::CALM;
        let nodes = 0..self.cluster.nodes.len();
        for node in nodes.filter(|it| *it == node || !LAPTOPS.contains(it)) {
            self.is_well(node)?;
        }
        self.cluster.notice_all();
        Ok(())
    }

    /// Nothing is wrong with a node any more, and it runs.
    fn is_well(&mut self, node: usize) -> Result<(), Broken> {
        self.cluster.nodes[node].paused_until = Duration::ZERO;
        self.cluster.nodes[node].stalled_until = Duration::ZERO;
        self.cluster.nodes[node].wall_offset_ms = 0;
        self.cluster.nodes[node].fill(false);
        if self.cluster.nodes[node].is_doomed() {
            self.cluster.nodes[node].crash(Unsynced::Torn);
            self.went_down(node);
        }
        self.start(node)?;
        self.cluster.wake(node, self.cluster.now());
        Ok(())
    }

    /// No more faults: all links are up, all nodes run, clocks are right.
    pub(crate) fn calm_down(&mut self) -> Result<(), Broken> {
        self.cluster.say(|| "the last fault is over".to_owned());
        self.cluster.network.heal();
        self.cluster.network.weather = Weather::CALM;
        for node in 0..self.cluster.nodes.len() {
            self.is_well(node)?;
        }
        self.cluster.notice_all();
        Ok(())
    }
}
