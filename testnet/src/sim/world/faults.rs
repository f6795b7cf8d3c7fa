//! What goes wrong in a world, and how it ends.

use std::time::Duration;

use mesh::Input;
use store::testing::Unsynced;

use super::{Event, World};
use crate::sim::{
    dice::Dice,
    network::Weather,
    plan::{Fault, some_weather},
    promises::Broken,
};

impl World {
    pub(in crate::sim) fn fault(&mut self, fault: Fault) -> Result<(), Broken> {
        self.say(|| format!("{fault:?}"));
        match fault {
            Fault::Split(groups) => {
                self.network.split(&groups);
                self.notice_all();
            }
            Fault::OneWay(from, to) => {
                self.network.cut_one_way(from, to);
                // Nobody notices: the connection looks alive from one side.
            }
            Fault::Heal => {
                self.network.heal();
                self.notice_all();
            }
            Fault::Crash(node) => {
                if self.nodes[node].running.is_some() {
                    let torn = self.dice.chance(50);
                    self.nodes[node].crash(if torn { Unsynced::Torn } else { Unsynced::Dropped });
                    self.went_down(node);
                }
            }
            Fault::Doom(node, operations) => self.nodes[node].doom(operations),
            Fault::Start(node) => return self.start(node),
            Fault::Restart(node) => self.restart(node),
            Fault::RestartCut(node, ms) => {
                self.restart(node);
                self.after(Duration::from_millis(ms), Event::Isolate { node });
            }
            Fault::Pause(node, ms) => {
                self.nodes[node].paused_until = self.now + Duration::from_millis(ms);
            }
            Fault::Stall(node, ms) => {
                self.nodes[node].stalled_until = self.now + Duration::from_millis(ms);
            }
            Fault::Clock(node, ms) => self.nodes[node].wall_offset_ms = ms,
            Fault::Weather(seed) => {
                self.network.weather = some_weather(&mut Dice::new(seed), false);
            }
        }
        Ok(())
    }

    fn restart(&mut self, node: usize) {
        if self.nodes[node].running.is_some() && self.restarting.insert(node) {
            let call = self.call();
            self.give(node, Input::Command { call, command: mesh::command::Command::Stop });
        }
    }

    /// No more faults: all links are up, all nodes run, clocks are right.
    pub(in crate::sim) fn calm_down(&mut self) -> Result<(), Broken> {
        self.say(|| "the last fault is over".to_owned());
        self.network.heal();
        self.network.weather = Weather::CALM;
        for node in 0..self.nodes.len() {
            self.nodes[node].paused_until = Duration::ZERO;
            self.nodes[node].stalled_until = Duration::ZERO;
            self.nodes[node].wall_offset_ms = 0;
            self.nodes[node].fill(false);
            if self.nodes[node].is_doomed() {
                self.nodes[node].crash(Unsynced::Torn);
                self.went_down(node);
            }
            self.start(node)?;
            self.wake(node, self.now);
        }
        self.notice_all();
        Ok(())
    }
}
