//! What goes wrong in a world, and how it ends.

use std::time::Duration;

use mesh::{
    Input,
    api::{
        boundary::Alarm,
        command::{Command, Outcome, Refused},
    },
    wire::entry::Parting,
};
use store::testing::Unsynced;

use super::{Event, Operator, World};
use crate::sim::{
    coverage::Happening,
    dice::Dice,
    network::Weather,
    plan::{Fault, some_weather},
    promises::{Broken, broken},
};

impl World {
    pub(in crate::sim) fn fault(&mut self, fault: Fault) -> Result<(), Broken> {
        self.say(|| format!("{fault:?}"));
        match fault {
            Fault::Split(groups) => {
                if groups.windows(2).any(|pair| pair[0] != pair[1]) {
                    self.coverage.count(Happening::Split);
                }
                self.network.split(&groups);
                self.notice_all();
            }
            Fault::OneWay(from, to) => {
                self.coverage.count(Happening::HalfOpen);
                self.network.cut_one_way(from, to);
                // Nobody notices: the connection looks alive from one side.
            }
            Fault::Heal => {
                self.coverage.count(Happening::Heal);
                self.network.heal();
                self.notice_all();
            }
            Fault::Crash(node) => {
                if self.nodes[node].running.is_some() {
                    let torn = self.dice.chance(50);
                    let what = if torn { Happening::Torn } else { Happening::PowerFailure };
                    self.coverage.count(what);
                    self.nodes[node].crash(if torn { Unsynced::Torn } else { Unsynced::Dropped });
                    self.went_down(node);
                }
            }
            Fault::Doom(node, operations) => self.nodes[node].doom(operations),
            Fault::Start(node) => return self.start(node),
            Fault::Restart(node) => self.restart(node),
            Fault::RestartCut(node, ms) => {
                self.coverage.count(Happening::RestartCut);
                self.restart(node);
                self.after(Duration::from_millis(ms), Event::Isolate { node });
            }
            Fault::Pause(node, ms) => {
                self.coverage.count(Happening::Pause);
                self.nodes[node].paused_until = self.now + Duration::from_millis(ms);
            }
            Fault::Stall(node, ms) => {
                self.coverage.count(Happening::Stall);
                self.nodes[node].stalled_until = self.now + Duration::from_millis(ms);
            }
            // A node does not start on a full disk.
            Fault::Full(node, ms) if self.nodes[node].running.is_some() => {
                self.full.insert(node);
                self.nodes[node].fill(true);
                self.after(Duration::from_millis(ms), Event::Room { node });
            }
            Fault::Full(..) => {}
            Fault::Rekey(node) => {
                self.coverage.count(Happening::Rekey);
                self.draw_secret(node);
            }
            Fault::Part { by, out, why } => self.part(by, out, why),
            Fault::Clock(node, ms) => {
                self.coverage.count(Happening::Clock);
                self.nodes[node].wall_offset_ms = ms;
            }
            Fault::Weather(seed) => {
                self.coverage.count(Happening::Weather);
                self.network.weather = some_weather(&mut Dice::new(seed), false);
            }
        }
        Ok(())
    }

    /// If the one that is to say so runs.
    fn part(&mut self, by: usize, out: usize, why: Parting) {
        if self.nodes[by].running.is_some() {
            self.coverage.count(Happening::Parting);
            let call = self.call();
            self.operators.insert(call, Operator::Part);
            let node = self.nodes[out].id;
            let command = Command::Part { node, why, force: true };
            self.give(by, Input::Command { call, command });
        }
    }

    fn restart(&mut self, node: usize) {
        if self.nodes[node].running.is_some() && self.restarting.insert(node) {
            self.coverage.count(Happening::Restart);
            let call = self.call();
            self.operators.insert(call, Operator::Stop);
            self.give(node, Input::Command { call, command: Command::Stop });
        }
    }

    /// There is room again: it writes what it has held, and its agents come back whom it had refused.
    pub(super) fn make_room(&mut self, node: usize) {
        self.nodes[node].fill(false);
        if self.nodes[node].running.is_some() {
            self.wake(node, self.now);
            self.attach_missing_agents(node);
        }
    }

    /// An operator's command was answered.
    pub(super) fn operator_replied(
        &mut self,
        node: usize,
        wanted: Operator,
        result: &Result<Outcome, Refused>,
    ) -> Result<(), Broken> {
        match (wanted, result) {
            (_, Ok(_)) | (Operator::Rekey, Err(Refused::Stopping)) => Ok(()),
            // It has not heard of that node yet, or hears that it lives.
            (Operator::Part, Err(_)) => Ok(()),
            (Operator::Stop, Err(Refused::DiskFull)) if self.full.contains(&node) => {
                self.restarting.remove(&node);
                Ok(())
            }
            (Operator::Rekey, Err(Refused::DiskFull)) if self.full.contains(&node) => Ok(()),
            (_, Err(_)) if self.is_exempt(node) => Ok(()),
            (_, Err(refused)) => {
                broken("replies", format!("node{node}: {wanted:?} refused: {refused}"))
            }
        }
    }

    /// What a node tells its operator.
    pub(super) fn alarmed(&mut self, node: usize, alarm: &Alarm) {
        match alarm {
            Alarm::EraOpened { before, .. } => {
                let own = *before == self.nodes[node].id;
                let what = if own { Happening::EraFull } else { Happening::EraOpened };
                self.coverage.count(what);
            }
            Alarm::Hole { .. } => self.coverage.count(Happening::Hole),
            Alarm::Forked { .. } => self.coverage.count(Happening::ForkFound),
            Alarm::Parted { .. }
            | Alarm::LaneClash { .. }
            | Alarm::SecretWithout { .. }
            | Alarm::DroppedThoughOpen { .. }
            | Alarm::ClockJumped { .. }
            | Alarm::Exhausted { .. } => {}
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
