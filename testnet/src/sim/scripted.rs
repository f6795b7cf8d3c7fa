//! A scenario in the simulated world: its steps, in virtual time.

use std::time::Duration;

use super::{
    Plan, World,
    network::Weather,
    plan::Fault,
    promises::{Broken, broken},
};
use crate::scenario::{
    file::{Scenario, Step, duration},
    history::{History, Row, Seen},
};

/// Between two looks at something that is waited for, in virtual time.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Agents whose nodes run get an answer within this time, or it is a failure. Virtual.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// How long after the last fault everything is everywhere, and as much again for so many messages: what a
/// link carries is bounded. Virtual.
const COMPLETE_WITHIN: Duration = Duration::from_secs(10);
const MESSAGES_MORE: usize = 10_000;

/// Plays a scenario and returns what was seen.
///
/// # Errors
///
/// What the simulated world itself found broken, and when.
pub(crate) fn play(
    scenario: &Scenario,
    seed: u64,
    trace: bool,
) -> Result<(History, Duration), (Duration, Broken)> {
    let plan = Plan {
        nodes: scenario.nodes,
        gossip: true,
        era_capacity: None,
        faults: Vec::new(),
        faults_end: Duration::ZERO,
        calm: false,
        weather: Weather::CALM,
        act_every: Duration::ZERO,
        voting: false,
        retention: false,
        keys: false,
        liar: false,
        scripted: Some(scenario.first()),
    };
    let world = World::new(seed, plan, trace).map_err(|broken| (Duration::ZERO, broken))?;
    let mut stage = Stage { world, chats: 0 };
    let played = stage.play(scenario);
    let Stage { world, .. } = stage;
    match played {
        Ok(()) => Ok((world.script.history, world.now)),
        Err(broken) => Err((world.now, broken)),
    }
}

struct Stage {
    world: World,
    /// Messages answered when the chats in the background began.
    chats: u64,
}

impl Stage {
    fn play(&mut self, scenario: &Scenario) -> Result<(), Broken> {
        for node in 0..scenario.first() {
            self.listen(node);
        }
        self.sit()?;
        for step in &scenario.steps {
            self.world.say(|| format!("{step:?}"));
            self.step(step)?;
        }
        self.settle()
    }

    fn listen(&mut self, node: usize) {
        self.world.take_seat(&format!("listener{}", node + 1), node);
    }

    fn step(&mut self, step: &Step) -> Result<(), Broken> {
        match step {
            Step::Chat { at, messages, background } => {
                if self.world.script.is_done(|_| true) {
                    self.chats = self.world.script.told;
                }
                for node in at {
                    let seat = self.world.take_seat(&format!("talker{node}"), node - 1);
                    self.world.have_said(seat, *messages);
                }
                if !background {
                    let here: Vec<usize> = at.iter().map(|node| node - 1).collect();
                    return self.finish(|node| here.contains(&node));
                }
            }
            Step::Await { messages } => {
                let goal = self.chats + messages;
                return self.until("messages are answered", |world| world.script.told >= goal);
            }
            Step::Finish => return self.finish(|_| true),
            Step::Wait { seconds } => return self.go_on(duration(*seconds)),
            Step::Split { groups } => self.world.fault(Fault::Split(self.groups(groups)))?,
            Step::HalfOpen { from, to } => self.world.fault(Fault::OneWay(from - 1, to - 1))?,
            Step::Flap { between: [a, b], times, seconds } => {
                for _ in 0..*times {
                    self.world.link((a - 1, b - 1), true);
                    self.go_on(duration(*seconds))?;
                    self.world.link((a - 1, b - 1), false);
                    self.go_on(duration(*seconds))?;
                }
            }
            Step::Slow { delay_ms } => {
                self.world.network.weather =
                    Weather { late: 100, late_ms_max: *delay_ms, ..Weather::CALM };
            }
            Step::Heal => {
                self.world.fault(Fault::Heal)?;
                self.world.network.weather = Weather::CALM;
            }
            Step::Kill { nodes } => {
                for node in nodes {
                    self.world.fault(Fault::Crash(node - 1))?;
                }
            }
            Step::Start { nodes } => {
                for node in nodes {
                    self.world.fault(Fault::Start(node - 1))?;
                    self.listen(node - 1);
                }
                return self.sit();
            }
            // There is one binary here.
            Step::Restart { nodes, binary: _ } => return self.restart(nodes),
            Step::Pause { nodes, seconds } => {
                let length = duration(*seconds);
                let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
                for node in nodes {
                    self.world.fault(Fault::Pause(node - 1, ms))?;
                }
                return self.go_on(length);
            }
        }
        Ok(())
    }

    fn restart(&mut self, nodes: &[usize]) -> Result<(), Broken> {
        for node in nodes {
            self.world.fault(Fault::Restart(node - 1))?;
            let life = self.world.nodes[node - 1].life;
            self.until("the node is back", |world| {
                let it = &world.nodes[node - 1];
                it.life > life && it.running.is_some()
            })?;
        }
        self.sit()
    }

    fn groups(&self, groups: &[Vec<usize>]) -> Vec<usize> {
        let group = |node: usize| groups.iter().position(|group| group.contains(&(node + 1)));
        (0..self.world.nodes.len()).map(|node| group(node).unwrap_or(groups.len())).collect()
    }

    fn go_on(&mut self, length: Duration) -> Result<(), Broken> {
        let until = self.world.now + length;
        while self.world.now < until {
            self.world.tick_script();
            self.world.run_until(until.min(self.world.now + LOOK_EVERY))?;
        }
        Ok(())
    }

    /// Until it is so; somebody is answered now and then.
    fn until(&mut self, what: &str, so: impl Fn(&World) -> bool) -> Result<(), Broken> {
        let mut told = (self.world.script.told, self.world.now);
        while !so(&self.world) {
            self.go_on(LOOK_EVERY)?;
            if self.world.script.told > told.0 {
                told = (self.world.script.told, self.world.now);
            }
            if self.world.now > told.1 + ANSWERED_WITHIN {
                return broken("replies", format!("{what}: not within {ANSWERED_WITHIN:?}"));
            }
        }
        Ok(())
    }

    /// Everybody sits whose node runs.
    fn sit(&mut self) -> Result<(), Broken> {
        self.until("agents are registered and in the lobby", World::all_sit)
    }

    /// Everything is answered that agents at nodes of which `counts` says so and that run have to say.
    fn finish(&mut self, counts: impl Fn(usize) -> bool) -> Result<(), Broken> {
        self.until("everything is answered", |world| {
            world.script.is_done(|node| counts(node) && world.nodes[node].running.is_some())
        })
    }

    /// The last fault is over: everything comes everywhere, and what is said then agrees.
    fn settle(&mut self) -> Result<(), Broken> {
        self.world.calm_down()?;
        for node in 0..self.world.nodes.len() {
            self.listen(node);
        }
        self.sit()?;
        self.finish(|_| true)?;
        // New messages agree from then on, and not earlier: docs/numbering.md.
        self.go_on(COMPLETE_WITHIN)?;
        self.come_together()?;
        self.world.script.history.seen.push(Seen::Calm);
        for node in 0..self.world.nodes.len() {
            let seat = self.world.take_seat(&format!("prober{}", node + 1), node);
            self.world.have_said(seat, 1);
        }
        self.sit()?;
        self.finish(|_| true)?;
        for (node, rows) in self.come_together()?.into_iter().enumerate() {
            self.world.script.history.seen.push(Seen::Read { at: node + 1, rows });
        }
        for (at, number) in self.world.script.history.to_look_up(self.world.nodes.len()) {
            let message = self.world.look_up(at - 1, number)?;
            self.world.script.history.seen.push(Seen::Resolved { at, number, message });
        }
        Ok(())
    }

    /// Waits until all nodes have as many messages, or it takes too long: then the checkers say what
    /// is missing. Returns what they have.
    fn come_together(&mut self) -> Result<Vec<Vec<Row>>, Broken> {
        let mut all: Vec<Vec<Row>> = self.world.nodes.iter().map(|_| Vec::new()).collect();
        let began = self.world.now;
        loop {
            for (node, rows) in all.iter_mut().enumerate() {
                self.world.read_on(node, rows)?;
            }
            let most = all.iter().map(Vec::len).max().unwrap_or(0);
            let more = u32::try_from(most / MESSAGES_MORE).unwrap_or(u32::MAX);
            let late = self.world.now - began > COMPLETE_WITHIN * (1 + more);
            if late || all.iter().all(|rows| rows.len() == most) {
                return Ok(all);
            }
            self.go_on(LOOK_EVERY)?;
        }
    }
}
