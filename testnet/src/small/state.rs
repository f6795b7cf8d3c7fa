//! A state of a small world, and the steps from it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{
    lab::{Lab, LocalIx, MessageIx},
    local::{Given, Local, Said},
    step::{Step, Stream},
};
use crate::sim::promises::Broken;

/// Something under way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// The news that a peer is connected.
    Up,
    /// Or is no longer.
    Down,
    /// A message.
    Message(MessageIx),
}

/// The two streams from one node to another, and what holds for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Way {
    gossip: Vec<MessageIx>,
    direct: Vec<Item>,
    /// Nothing gets through, and nobody notices.
    lossy: bool,
    /// Things may take as long as they like.
    slow: bool,
}

/// What holds for two nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Link {
    connected: bool,
    cut: bool,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Ticks since the beginning.
    at: u32,
    nodes: Vec<LocalIx>,
    /// By the node that sends, and the one that receives.
    ways: Vec<Way>,
    /// By the lower node, and the higher one.
    links: Vec<Link>,
    pub(super) said: u8,
    pub(super) faults: u8,
    pub(super) waits: u8,
    /// All faults so far were stops in good order.
    pub(super) calm: bool,
}

/// Beacons are due every so many ticks.
const BEACON_TICKS: u32 = 3;
/// At most so many ticks are one step.
const WAIT_TICKS: u32 = 10;

impl State {
    /// Nothing has begun.
    pub(super) fn new(lab: &mut Lab) -> State {
        let nodes = lab.setting.nodes;
        let never = (0u8..).take(nodes).map(|node| lab.keep(Local::new(node))).collect();
        State {
            at: 0,
            nodes: never,
            ways: vec![Way::default(); nodes * nodes],
            links: vec![Link::default(); nodes * nodes],
            said: 0,
            faults: 0,
            waits: 0,
            calm: true,
        }
    }

    pub(super) fn locals(&self) -> &[LocalIx] {
        &self.nodes
    }

    fn all(&self) -> impl Iterator<Item = u8> + use<> {
        (0u8..).take(self.nodes.len())
    }

    fn pairs(&self) -> impl Iterator<Item = (u8, u8)> + use<> {
        let nodes = self.nodes.len();
        (0u8..).take(nodes).flat_map(move |a| (0u8..).take(nodes).map(move |b| (a, b)))
    }

    fn local<'l>(&self, lab: &'l Lab, node: u8) -> &'l Local {
        lab.local(self.nodes[usize::from(node)])
    }

    fn index(&self, from: u8, to: u8) -> usize {
        usize::from(from) * self.nodes.len() + usize::from(to)
    }

    fn way(&self, from: u8, to: u8) -> &Way {
        &self.ways[self.index(from, to)]
    }

    fn way_mut(&mut self, from: u8, to: u8) -> &mut Way {
        let index = self.index(from, to);
        &mut self.ways[index]
    }

    fn link(&self, a: u8, b: u8) -> Link {
        self.links[self.index(a.min(b), a.max(b))]
    }

    fn link_mut(&mut self, a: u8, b: u8) -> &mut Link {
        let index = self.index(a.min(b), a.max(b));
        &mut self.links[index]
    }

    // The steps that there are.

    /// All steps from here.
    pub(super) fn steps(&self, lab: &Lab) -> Vec<Step> {
        let mut steps = Vec::new();
        let running = |node| self.local(lab, node).is_running();
        for node in self.all() {
            if self.said < lab.setting.messages && self.local(lab, node).can_speak() {
                steps.push(Step::Say(node));
            }
            if !running(node) {
                steps.push(Step::Start(node));
            }
        }
        for (from, to) in self.pairs() {
            let way = self.way(from, to);
            if !way.gossip.is_empty() {
                steps.push(Step::Arrive(from, to, Stream::Gossip));
            }
            if !way.direct.is_empty() {
                steps.push(Step::Arrive(from, to, Stream::Direct));
            }
            if way.lossy {
                steps.push(Step::Mend(from, to));
            }
            if from < to && self.link(from, to).cut {
                steps.push(Step::Heal(from, to));
            }
        }
        if self.faults < lab.setting.faults {
            self.add_faults(lab, &mut steps);
        }
        if self.waits < lab.setting.waits && self.is_quiet() && !self.is_at_rest(lab) {
            steps.push(Step::Wait);
        }
        steps
    }

    fn add_faults(&self, lab: &Lab, steps: &mut Vec<Step>) {
        for node in self.all() {
            if self.local(lab, node).is_running() {
                steps.push(Step::Crash(node));
                if !self.local(lab, node).is_stopping() {
                    steps.push(Step::Stop(node));
                }
            }
        }
        for (from, to) in self.pairs() {
            if from < to && !self.link(from, to).cut {
                steps.push(Step::Cut(from, to));
            }
            if self.link(from, to).connected {
                let way = self.way(from, to);
                if !way.lossy {
                    steps.push(Step::Lose(from, to));
                }
                if !way.slow {
                    steps.push(Step::Slow(from, to));
                }
            }
        }
    }

    /// Nothing is under way that does not take its time.
    pub(super) fn is_quiet(&self) -> bool {
        self.ways.iter().all(|way| way.slow || way.gossip.is_empty() && way.direct.is_empty())
    }

    /// Nothing is under way at all.
    fn is_empty(&self) -> bool {
        self.ways.iter().all(|way| way.gossip.is_empty() && way.direct.is_empty())
    }

    /// All is whole, and all nodes run.
    fn is_whole(&self, lab: &Lab) -> bool {
        self.links.iter().all(|link| !link.cut)
            && self.ways.iter().all(|way| !way.lossy)
            && self.all().all(|node| self.local(lab, node).is_running())
            && self.pairs().all(|(a, b)| a == b || self.link(a, b).connected)
    }

    /// Time would change nothing: all is whole, everybody has everything, and no call waits.
    pub(super) fn is_at_rest(&self, lab: &Lab) -> bool {
        self.is_empty() && self.is_whole(lab) && self.has_settled(lab)
    }

    /// Everybody has delivered everything, and no call waits.
    pub(super) fn has_settled(&self, lab: &Lab) -> bool {
        let local = |node| self.local(lab, node);
        let settled = |node: &LocalIx| {
            let facts = lab.facts(lab.facts_ix(*node));
            let others = self.nodes.iter().map(|other| lab.facts(lab.facts_ix(*other)));
            let mut held = others.flat_map(|other| &other.held);
            held.all(|entry| lab.is_private(entry.0) || facts.delivered.contains_key(entry))
        };
        self.all().all(|node| !local(node).awaits_answers() && !local(node).is_stopping())
            && self.nodes.iter().all(settled)
    }

    // Taking a step.

    /// The world after a step.
    ///
    /// # Errors
    ///
    /// The promise that it breaks.
    pub(super) fn after(&self, lab: &mut Lab, step: Step) -> Result<State, Broken> {
        let mut next = self.clone();
        if step.is_fault() {
            next.faults += 1;
            next.calm &= matches!(step, Step::Stop(_));
        }
        match step {
            Step::Say(node) => {
                next.said += 1;
                next.give(lab, node, Given::Say)?;
            }
            Step::Arrive(from, to, Stream::Gossip) => {
                let message = next.way_mut(from, to).gossip.remove(0);
                next.give(lab, to, Given::Heard(from, message))?;
            }
            Step::Arrive(from, to, Stream::Direct) => {
                let given = match next.way_mut(from, to).direct.remove(0) {
                    Item::Up => Given::Up(from),
                    Item::Down => Given::Down(from),
                    Item::Message(message) => Given::Heard(from, message),
                };
                next.give(lab, to, given)?;
            }
            Step::Wait => {
                next.waits += 1;
                next.wait(lab)?;
            }
            Step::Crash(node) => {
                next.give(lab, node, Given::Crash)?;
                next.went_down(lab, node);
            }
            Step::Start(node) => next.start(lab, node)?,
            Step::Cut(a, b) => {
                next.link_mut(a, b).cut = true;
                next.disconnect(lab, a, b);
            }
            Step::Heal(a, b) => {
                next.link_mut(a, b).cut = false;
                next.connect(lab, a, b);
            }
            Step::Lose(from, to) => {
                // What was under way is lost, too.
                let way = next.way_mut(from, to);
                way.lossy = true;
                way.gossip.clear();
                way.direct.retain(|item| !matches!(item, Item::Message(_)));
            }
            Step::Mend(from, to) => {
                next.way_mut(from, to).lossy = false;
                next.connect(lab, from, to);
            }
            Step::Slow(from, to) => next.way_mut(from, to).slow = true,
            Step::Stop(node) => next.give(lab, node, Given::Stop)?,
        }
        Ok(next)
    }

    fn start(&mut self, lab: &mut Lab, node: u8) -> Result<(), Broken> {
        self.give(lab, node, Given::Start)?;
        for other in self.all().filter(|other| *other != node) {
            self.connect(lab, node, other);
        }
        Ok(())
    }

    fn give(&mut self, lab: &mut Lab, node: u8, given: Given) -> Result<(), Broken> {
        let beacons = self.give_and_hear(lab, node, given)?;
        debug_assert!(beacons.is_none(), "beacons are asked for");
        Ok(())
    }

    /// A node is given something; what it says is under way from then on. Its beacon, if that was asked for.
    fn give_and_hear(
        &mut self,
        lab: &mut Lab,
        node: u8,
        given: Given,
    ) -> Result<Option<MessageIx>, Broken> {
        let became = lab.give(self.nodes[usize::from(node)], self.at, given)?;
        self.nodes[usize::from(node)] = became.local;
        let mut beacon = None;
        for said in became.said.iter() {
            match *said {
                Said::Gossip(message) => {
                    for to in self.all() {
                        if self.gets_through(node, to) {
                            self.way_mut(node, to).gossip.push(message);
                        }
                    }
                }
                Said::Direct(to, message) if self.gets_through(node, to) => {
                    self.way_mut(node, to).direct.push(Item::Message(message));
                }
                Said::Direct(..) => {}
                Said::Beacon(message) => beacon = Some(message),
                Said::Stopped => self.went_down(lab, node),
            }
        }
        Ok(beacon)
    }

    fn gets_through(&self, from: u8, to: u8) -> bool {
        from != to && self.link(from, to).connected && !self.way(from, to).lossy
    }

    /// Ticks, until somebody says something.
    fn wait(&mut self, lab: &mut Lab) -> Result<(), Broken> {
        for _ in 0..WAIT_TICKS {
            let running = self.all().filter(|node| self.local(lab, *node).is_running()).count();
            self.tick(lab)?;
            let left = self.all().filter(|node| self.local(lab, *node).is_running()).count();
            if !self.is_quiet() || left < running {
                break;
            }
        }
        Ok(())
    }

    fn tick(&mut self, lab: &mut Lab) -> Result<(), Broken> {
        self.at += 1;
        let mut beacons = vec![None; self.nodes.len()];
        if self.at.is_multiple_of(BEACON_TICKS) {
            for node in self.all() {
                if self.local(lab, node).is_running() {
                    beacons[usize::from(node)] = self.give_and_hear(lab, node, Given::Beat)?;
                }
            }
        }
        for node in self.all() {
            if !self.local(lab, node).is_running() {
                continue;
            }
            let heard = self.all().filter(|from| self.gets_through(*from, node));
            let heard = heard.filter_map(|from| Some((from, beacons[usize::from(from)]?)));
            let heard = heard.collect();
            self.give(lab, node, Given::Tick(heard))?;
        }
        Ok(())
    }

    // Connections.

    fn connect(&mut self, lab: &Lab, a: u8, b: u8) {
        let whole = !self.way(a, b).lossy && !self.way(b, a).lossy && !self.link(a, b).cut;
        let run = self.local(lab, a).is_running() && self.local(lab, b).is_running();
        if whole && run && !self.link(a, b).connected {
            self.link_mut(a, b).connected = true;
            self.way_mut(a, b).direct.push(Item::Up);
            self.way_mut(b, a).direct.push(Item::Up);
        }
    }

    fn disconnect(&mut self, lab: &Lab, a: u8, b: u8) {
        if !std::mem::take(&mut self.link_mut(a, b).connected) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            let runs = self.local(lab, to).is_running();
            let way = self.way_mut(from, to);
            way.gossip.clear();
            way.direct.retain(|item| !matches!(item, Item::Message(_)));
            // A connection of which it has not heard yet never was.
            if way.direct.last() == Some(&Item::Up) {
                way.direct.pop();
            } else if runs {
                way.direct.push(Item::Down);
            }
            if !runs {
                way.direct.clear();
            }
        }
    }

    fn went_down(&mut self, lab: &Lab, node: u8) {
        for other in self.all().filter(|other| *other != node) {
            self.disconnect(lab, node, other);
            // News of before its end it never hears.
            self.way_mut(other, node).direct.clear();
        }
    }

    // Where everything goes well from here on.

    /// The first thing under way that is first in a fixed order, if any is.
    pub(super) fn next_in_order(&self) -> Option<Step> {
        self.pairs().find_map(|(from, to)| {
            let way = self.way(from, to);
            let direct = (!way.direct.is_empty()).then_some(Stream::Direct);
            let gossip = (!way.gossip.is_empty()).then_some(Stream::Gossip);
            direct.or(gossip).map(|stream| Step::Arrive(from, to, stream))
        })
    }

    /// All faults are over.
    ///
    /// # Errors
    ///
    /// The promise that this breaks.
    pub(super) fn made_whole(&self, lab: &mut Lab) -> Result<State, Broken> {
        let mut next = self.clone();
        for (a, b) in next.pairs() {
            next.way_mut(a, b).lossy = false;
            next.way_mut(a, b).slow = false;
            next.link_mut(a, b).cut = false;
        }
        for node in next.all() {
            if !next.local(lab, node).is_running() {
                next.start(lab, node)?;
            }
        }
        for (a, b) in next.pairs().filter(|(a, b)| a < b) {
            next.connect(lab, a, b);
        }
        Ok(next)
    }

    /// One tick, whatever is under way.
    ///
    /// # Errors
    ///
    /// The promise that this breaks.
    pub(super) fn after_tick(&self, lab: &mut Lab) -> Result<State, Broken> {
        let mut next = self.clone();
        next.tick(lab)?;
        Ok(next)
    }

    /// The agents of all nodes that can say something.
    ///
    /// # Errors
    ///
    /// The promise that this breaks.
    pub(super) fn everybody_speaks(&self, lab: &mut Lab) -> Result<State, Broken> {
        let mut next = self.clone();
        for node in next.all() {
            if next.local(lab, node).can_speak() {
                next.give(lab, node, Given::Say)?;
            }
        }
        Ok(next)
    }

    pub(super) fn all_can_speak(&self, lab: &Lab) -> bool {
        self.all().all(|node| self.local(lab, node).can_speak())
    }

    pub(super) fn all_running(&self, lab: &Lab) -> bool {
        self.all().all(|node| self.local(lab, node).is_running())
    }

    /// States with one digest are taken for one.
    pub(super) fn digest(&self) -> u128 {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, self).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }

    /// As it is at the beginning of what is counted.
    pub(super) fn as_root(&self) -> State {
        State { said: 0, faults: 0, waits: 0, calm: true, ..self.clone() }
    }

    /// What a step would bring, in words.
    pub(super) fn tells(&self, lab: &Lab, step: Step) -> String {
        let Step::Arrive(from, to, stream) = step else { return step.to_string() };
        let way = self.way(from, to);
        let item = match stream {
            Stream::Gossip => way.gossip.first().map(|message| Item::Message(*message)),
            Stream::Direct => way.direct.first().copied(),
        };
        match item {
            Some(Item::Message(message)) => format!("{step}: {:?}", lab.message(message)),
            Some(item) => format!("{step}: {item:?}"),
            None => format!("{step}: nothing"),
        }
    }
}
