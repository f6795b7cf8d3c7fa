//! A scenario in the simulated world: its steps, in virtual time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    handing::Hand,
    network::Weather,
    parts::Seated,
    plan::{Fault, Plan},
    promises::{Broken, broken},
    script::{look_up, read_on, row},
    world::World,
};
use crate::scenario::{
    file::{Scenario, Step, duration},
    handing::{self, Given, ROUND},
    history::{Act, History, Row, Seen},
};

/// Between two looks at something that is waited for, in virtual time.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Agents whose nodes run get an answer within this time, or it is a failure. Virtual.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// A client with a cursor waits so long for more. Virtual.
const ROAMS_FOR: Duration = Duration::from_secs(3);
/// How long after the last fault everything is everywhere, and as much again for so many messages: the load of a
/// link is bounded. Virtual.
const COMPLETE_WITHIN: Duration = Duration::from_secs(10);
const MESSAGES_MORE: usize = 10_000;

/// Plays a scenario and returns what was seen.
///
/// # Errors
///
/// A promise that the simulated world itself found broken, and when.
pub(crate) fn play(
    scenario: &Scenario,
    seed: u64,
    trace: bool,
) -> Result<(History, Duration), (Duration, Broken)> {
    let plan = Plan { scripted: Some(scenario.first()), ..Plan::quiet(scenario.nodes) };
    let world = World::new(seed, plan, trace).map_err(|broken| (Duration::ZERO, broken))?;
    let (copies, retired) = (BTreeMap::new(), BTreeSet::new());
    let mut stage = Stage { world, chats: 0, copies, retired, handed: 0 };
    let played = stage.play(scenario);
    let Stage { world, .. } = stage;
    match played {
        Ok(()) => Ok((world.script.history, world.cluster.now())),
        Err(broken) => Err((world.cluster.now(), broken)),
    }
}

struct Stage {
    world: World,
    /// Messages answered when the chats in the background began.
    chats: u64,
    /// Disks as they were: by node, counted from 1.
    copies: BTreeMap<usize, Vec<u8>>,
    /// Nodes that are gone for good, counted from 0.
    retired: BTreeSet<usize>,
    /// Rounds in which agents handed things over.
    handed: u64,
}

impl Stage {
    fn play(&mut self, scenario: &Scenario) -> Result<(), Broken> {
        for node in 0..scenario.first() {
            self.listen(node);
        }
        self.sit()?;
        // Until nodes know each other, as real ones do before anything happens.
        self.go_on(Duration::from_secs(1))?;
        for step in &scenario.steps {
            self.world.cluster.say(|| format!("{step:?}"));
            self.step(step)?;
        }
        self.settle()
    }

    fn listen(&mut self, node: usize) {
        self.world.script.take_seat(&format!("listener{}", node + 1), node);
    }

    fn step(&mut self, step: &Step) -> Result<(), Broken> {
        match step {
            Step::Chat { at, messages, background } => {
                return self.chat(at, *messages, *background);
            }
            Step::Await { messages } => {
                let goal = self.chats + messages;
                return self.until("messages are answered", |world| world.script.told >= goal);
            }
            Step::Finish => return self.finish(|_| true),
            Step::Wait { seconds } => return self.go_on(duration(*seconds)),
            Step::Split { groups } => self.world.fault(Fault::Split(self.groups(groups)))?,
            Step::HalfOpen { from, to } => self.world.fault(Fault::OneWay(from - 1, to - 1))?,
            Step::Flap { between, times, seconds } => {
                return self.flap(*between, *times, duration(*seconds));
            }
            Step::Slow { delay_ms } => {
                self.world.cluster.network.weather =
                    Weather { late: 100, late_ms_max: *delay_ms, ..Weather::CALM };
            }
            Step::Heal => {
                self.world.fault(Fault::Heal)?;
                self.world.cluster.network.weather = Weather::CALM;
            }
            Step::Kill { nodes } => return self.crash(nodes),
            Step::Start { nodes } => {
                for node in nodes {
                    self.world.fault(Fault::Start(node - 1))?;
                    self.listen(node - 1);
                }
                return self.sit();
            }
            // There is one binary here.
            Step::Restart { nodes, binary: _ } => return self.restart(nodes),
            Step::Roam { to } => return self.roam(to - 1),
            Step::Vote { at, options } => return self.vote(*at, *options),
            Step::Ballots { at, option } => return self.ballots(at, *option),
            Step::Backup { node } => {
                self.copies.insert(*node, self.world.cluster.nodes[node - 1].image());
            }
            Step::Restore { node } => return self.restore(*node),
            Step::Retire { nodes } => {
                self.crash(nodes)?;
                self.retired.extend(nodes.iter().map(|node| node - 1));
            }
            Step::Fill { nodes } => self.fill(nodes, true),
            Step::MakeRoom { nodes } => self.fill(nodes, false),
            Step::Clock { node, seconds } => return self.set_clock(node - 1, *seconds),
            Step::Elect { at } => return self.listener(*at, &Act::Elect),
            Step::Task { at } => return self.listener(*at, &Act::Assign),
            Step::Claim { at } => return self.claim(at),
            Step::Quote { at } => return self.quote(at),
            Step::Pause { nodes, seconds } => return self.pause(nodes, duration(*seconds)),
            Step::HandOver { at, times } => return self.hand_over(at, *times),
        }
        Ok(())
    }

    /// Agents at three nodes tell each other at once what they were answered.
    fn hand_over(&mut self, at: &[usize], times: u64) -> Result<(), Broken> {
        let name = |node: &usize| format!("hander{node}");
        let seats: Vec<usize> =
            at.iter().map(|node| self.world.script.take_seat(&name(node), node - 1)).collect();
        self.sit()?;
        for round in 0..times {
            let mut given = Given::default();
            self.handed += 1;
            for (who, ask) in ROUND {
                let agent = handing::agent(round, who);
                let Some(caller) = self.world.script.caller(seats[agent]) else {
                    return broken("scenario", format!("{} has gone", name(&at[agent])));
                };
                let by = Seated { node: at[agent] - 1, caller };
                let hand = Hand { by, ask, round: self.handed, given: &given };
                let answer = hand.play(&mut self.world)?;
                let wrong = given.note(ask, answer);
                let (at, what) = (at[agent], format!("{ask:?}"));
                self.world.script.note(Seen::Handed { at, what, wrong });
            }
            self.world.script.tick(&mut self.world.cluster);
        }
        Ok(())
    }

    fn crash(&mut self, nodes: &[usize]) -> Result<(), Broken> {
        nodes.iter().try_for_each(|node| self.world.fault(Fault::Crash(node - 1)))
    }

    fn pause(&mut self, nodes: &[usize], length: Duration) -> Result<(), Broken> {
        let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        nodes.iter().try_for_each(|node| self.world.fault(Fault::Pause(node - 1, ms)))?;
        self.go_on(length)
    }

    fn fill(&mut self, nodes: &[usize], full: bool) {
        nodes.iter().for_each(|node| self.world.cluster.nodes[node - 1].fill(full));
    }

    fn set_clock(&mut self, node: usize, seconds: f64) -> Result<(), Broken> {
        #[expect(clippy::cast_possible_truncation, reason = "an hour at most")]
        self.world.fault(Fault::Clock(node, (seconds * 1_000.0) as i64))
    }

    fn claim(&mut self, at: &[usize]) -> Result<(), Broken> {
        at.iter().for_each(|node| {
            self.world.script.have_done(&mut self.world.cluster, node - 1, None, &Act::Claim)
        });
        self.finish(|node| at.contains(&(node + 1)))
    }

    fn quote(&mut self, at: &[usize]) -> Result<(), Broken> {
        at.iter().for_each(|node| self.world.script.have_quoted(&mut self.world.cluster, node - 1));
        self.finish(|node| at.contains(&(node + 1)))
    }

    fn chat(&mut self, at: &[usize], messages: u64, background: bool) -> Result<(), Broken> {
        if self.world.script.is_done(|_| true) {
            self.chats = self.world.script.told;
        }
        for node in at {
            let seat = self.world.script.take_seat(&format!("talker{node}"), node - 1);
            self.world.script.have_said(&mut self.world.cluster, seat, messages);
        }
        if background { Ok(()) } else { self.finish(|node| at.contains(&(node + 1))) }
    }

    fn flap(&mut self, [a, b]: [usize; 2], times: u64, length: Duration) -> Result<(), Broken> {
        for broken in (0..times).flat_map(|_| [true, false]) {
            self.world.cluster.link(a - 1, b - 1, broken);
            self.go_on(length)?;
        }
        Ok(())
    }

    fn vote(&mut self, at: usize, options: u64) -> Result<(), Broken> {
        self.listener(at, &Act::Open(options))
    }

    fn listener(&mut self, at: usize, act: &Act) -> Result<(), Broken> {
        self.world.script.have_done(
            &mut self.world.cluster,
            at - 1,
            Some(&format!("listener{at}")),
            act,
        );
        self.finish(|node| node + 1 == at)
    }

    fn ballots(&mut self, at: &[usize], option: u64) -> Result<(), Broken> {
        for node in at {
            self.world.script.have_done(
                &mut self.world.cluster,
                node - 1,
                None,
                &Act::Cast(option),
            );
        }
        self.finish(|node| at.contains(&(node + 1)))?;
        self.world.script.look_around(&mut self.world.cluster);
        self.go_on(LOOK_EVERY)
    }

    /// A node goes on from its copy. The network stays as it was.
    fn restore(&mut self, node: usize) -> Result<(), Broken> {
        let Some(image) = self.copies.get(&node).cloned() else {
            return broken("scenario", format!("there is no backup of node {node}"));
        };
        self.world.replace_disk(node - 1, image);
        self.world.script.note(Seen::Spoilt { at: node });
        self.sit()
    }

    /// A client with a cursor reads at a node until nothing more comes.
    fn roam(&mut self, node: usize) -> Result<(), Broken> {
        self.world.roamers.send(node);
        let mut last = self.world.cluster.now();
        while self.world.cluster.now() < last + ROAMS_FOR || self.world.roamers.waits() {
            let rows = self.world.roamers.read(&mut self.world.cluster, 0)?;
            let came = !rows.is_empty();
            for stored in rows {
                self.world.script.note(Seen::Roamed { at: node + 1, rows: vec![row(&stored)] });
            }
            self.go_on(LOOK_EVERY)?;
            if came {
                last = self.world.cluster.now();
            }
        }
        Ok(())
    }

    /// All nodes that are not gone for good.
    fn living(&self) -> Vec<usize> {
        (0..self.world.cluster.nodes.len()).filter(|node| !self.retired.contains(node)).collect()
    }

    fn restart(&mut self, nodes: &[usize]) -> Result<(), Broken> {
        for node in nodes {
            self.world.fault(Fault::Restart(node - 1))?;
            let life = self.world.cluster.nodes[node - 1].life;
            self.until("the node is back", |world| {
                let node = &world.cluster.nodes[node - 1];
                node.life > life && node.running.is_some()
            })?;
        }
        self.sit()
    }

    fn groups(&self, groups: &[Vec<usize>]) -> Vec<usize> {
        let group = |node: usize| groups.iter().position(|group| group.contains(&(node + 1)));
        (0..self.world.cluster.nodes.len())
            .map(|node| group(node).unwrap_or(groups.len()))
            .collect()
    }

    fn go_on(&mut self, length: Duration) -> Result<(), Broken> {
        let until = self.world.cluster.now() + length;
        while self.world.cluster.now() < until {
            self.world.script.tick(&mut self.world.cluster);
            self.world.run_until(until.min(self.world.cluster.now() + LOOK_EVERY))?;
        }
        Ok(())
    }

    /// Until it is so; somebody is answered now and then.
    fn until(&mut self, what: &str, so: impl Fn(&World) -> bool) -> Result<(), Broken> {
        let mut told = (self.world.script.told, self.world.cluster.now());
        while !so(&self.world) {
            self.go_on(LOOK_EVERY)?;
            if self.world.script.told > told.0 {
                told = (self.world.script.told, self.world.cluster.now());
            }
            if self.world.cluster.now() > told.1 + ANSWERED_WITHIN {
                return broken("replies", format!("{what}: not within {ANSWERED_WITHIN:?}"));
            }
        }
        Ok(())
    }

    /// Everybody sits whose node runs.
    fn sit(&mut self) -> Result<(), Broken> {
        self.until("agents are registered and in the lobby", |world| {
            world.script.all_sit(&world.cluster)
        })
    }

    /// Everything is answered that agents at nodes of which `counts` says so and that run have to say.
    fn finish(&mut self, counts: impl Fn(usize) -> bool) -> Result<(), Broken> {
        self.until("everything is answered", |world| {
            world.script.is_done(|node| counts(node) && world.cluster.nodes[node].running.is_some())
        })
    }

    /// The last fault is over: everything comes everywhere, and new messages agree.
    fn settle(&mut self) -> Result<(), Broken> {
        let began = self.world.cluster.now();
        self.world.calm_down()?;
        for node in self.retired.clone() {
            self.world.fault(Fault::Crash(node))?;
        }
        let living = self.living();
        for node in &living {
            self.listen(*node);
        }
        self.sit()?;
        self.finish(|_| true)?;
        self.come_together()?;
        self.world.script.history.healed = self.world.cluster.now() - began;
        // New messages agree from then on, and not earlier: docs/numbering.md.
        self.go_on((began + COMPLETE_WITHIN).saturating_sub(self.world.cluster.now()))?;
        self.come_together()?;
        self.world.script.note(Seen::Calm);
        for node in &living {
            let seat = self.world.script.take_seat(&format!("prober{}", node + 1), *node);
            self.world.script.have_said(&mut self.world.cluster, seat, 1);
        }
        self.sit()?;
        self.finish(|_| true)?;
        let all = self.come_together()?;
        if let Some(node) = self.world.roamers.sent_to() {
            self.roam(node)?;
        }
        self.world.script.look_around(&mut self.world.cluster);
        self.go_on(LOOK_EVERY)?;
        let history = &mut self.world.script.history;
        for (node, rows) in all {
            history.seen.push(Seen::Read { at: node + 1, rows });
        }
        for (at, of) in std::mem::take(&mut self.world.script.blames) {
            self.world.script.note(Seen::Blames { at, of });
        }
        for (at, number) in self.world.script.history.to_look_up(&living) {
            let message = look_up(&self.world.cluster, at - 1, number)?;
            self.world.script.note(Seen::Resolved { at, number, message });
        }
        Ok(())
    }

    /// Waits until all nodes have as many messages, or it takes too long: then the checkers say what
    /// is missing. Returns what they have.
    fn come_together(&mut self) -> Result<Vec<(usize, Vec<Row>)>, Broken> {
        let mut all: Vec<(usize, Vec<Row>)> =
            self.living().into_iter().map(|node| (node, Vec::new())).collect();
        let began = self.world.cluster.now();
        loop {
            for (node, rows) in &mut all {
                read_on(&self.world.cluster, *node, rows)?;
            }
            let most = all.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
            let more = u32::try_from(most / MESSAGES_MORE).unwrap_or(u32::MAX);
            let late = self.world.cluster.now() - began > COMPLETE_WITHIN * (1 + more);
            if late || all.iter().all(|(_, rows)| rows.len() == most) {
                return Ok(all);
            }
            self.go_on(LOOK_EVERY)?;
        }
    }
}
