//! A mesh in which not all nodes are linked: who lives is known by hearsay.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    limits::{
        BEACON_EVERY, CALL_AGAIN, CALL_ANSWERED_FOR, GOSSIPED_WHILE_STILL, HEARSAY_SLACK,
        LIVES_ASKED_MAX, NODES_MAX,
    },
    order::pulse::{Beat, Pulse, Rhythm, Spread},
    wire::message::Life,
};

/// How time passes.
const STEP: Duration = Duration::from_millis(100);
/// So many living nodes would all be linked.
const LINKED: usize = 4;
/// A ring of so many nodes, each linked with two on either side: they are up to three links from each other.
const RING: usize = 12;
/// By which a node that is gone is missed, and its rooms go on.
const PROMISED: Duration = Duration::from_secs(5);
/// From the start of all nodes until beacons are seldom gossiped.
const SETTLED: Duration = Duration::from_secs(5);

struct Crowd {
    nodes: Vec<Node>,
    rhythms: Vec<Rhythm>,
    pulses: Vec<Option<Pulse>>,
    links: BTreeSet<(usize, usize)>,
    /// Nodes without power.
    dead: BTreeSet<usize>,
    now: Duration,
    /// On their way: to whom, and what.
    way: BTreeMap<Duration, Vec<(usize, Input)>>,
    /// Frames about life: one of so many is lost, and others come so many steps late.
    loses: Option<u64>,
    late: u64,
    chance: u64,
    /// Nobody hears what this node writes.
    muted: Option<usize>,
    /// Beacons that were gossiped, by node; calls; frames about life.
    gossiped: Vec<u64>,
    calls: u64,
    asked: u64,
}

fn id(n: usize) -> NodeId {
    identity(u8::try_from(n + 1).expect("few")).node_id()
}

impl Crowd {
    fn new(nodes: usize) -> Crowd {
        let node = |n: usize| {
            let seed = u8::try_from(n + 1).expect("few");
            Node::with(seed, |config| config.linked_max = LINKED)
        };
        let mut crowd = Crowd {
            nodes: (0..nodes).map(node).collect(),
            rhythms: vec![Rhythm::default(); nodes],
            pulses: vec![None; nodes],
            links: BTreeSet::new(),
            dead: BTreeSet::new(),
            now: Duration::from_secs(1),
            way: BTreeMap::new(),
            loses: None,
            late: 1,
            chance: 1,
            muted: None,
            gossiped: vec![0; nodes],
            calls: 0,
            asked: 0,
        };
        crowd.introduce();
        crowd
    }

    /// All have heard of each other before.
    fn introduce(&mut self) {
        let mut left = true;
        while std::mem::take(&mut left) {
            for from in 0..self.nodes.len() {
                for effect in std::mem::take(&mut self.nodes[from].effects) {
                    match effect {
                        Effect::Broadcast { message, .. } => {
                            let mesh = self.nodes[from].secret.mesh_id();
                            let message = message.verify(mesh).expect("it is sealed");
                            for to in (0..self.nodes.len()).filter(|to| *to != from) {
                                let message = message.clone();
                                self.nodes[to].give(Input::Gossip { from: id(from), message });
                            }
                            left = true;
                        }
                        Effect::Pulse(pulse) => self.pulses[from] = Some(pulse),
                        _ => {}
                    }
                }
            }
        }
        let known = |node: &Node| node.engine.known.live.others.len() + 1;
        assert!(self.nodes.iter().all(|node| known(node) == self.nodes.len()));
    }

    /// Linked as a ring, and at rest.
    fn ring() -> Crowd {
        let mut crowd = Crowd::new(RING);
        crowd.link_ring(&(0..RING).collect::<Vec<_>>());
        crowd.pass(SETTLED);
        crowd
    }

    fn link_ring(&mut self, nodes: &[usize]) {
        for (nth, node) in nodes.iter().enumerate() {
            for by in [1, 2] {
                self.link(*node, nodes[(nth + by) % nodes.len()]);
            }
        }
    }

    fn link(&mut self, one: usize, other: usize) {
        if self.links.insert((one.min(other), one.max(other))) {
            self.give(one, Input::PeerUp(id(other)));
            self.give(other, Input::PeerUp(id(one)));
        }
    }

    fn cut(&mut self, which: impl Fn(usize, usize) -> bool) {
        let cut: Vec<_> = self.links.iter().copied().filter(|(a, b)| which(*a, *b)).collect();
        for (one, other) in cut {
            self.links.remove(&(one, other));
            self.give(one, Input::PeerDown(id(other)));
            self.give(other, Input::PeerDown(id(one)));
        }
    }

    fn linked(&self, node: usize) -> Vec<usize> {
        let ends = |(a, b): &(usize, usize)| match node {
            it if it == *a => Some(*b),
            it if it == *b => Some(*a),
            _ => None,
        };
        self.links.iter().filter_map(ends).collect()
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.chance >> 33) % below
    }

    fn give(&mut self, node: usize, input: Input) {
        if self.dead.contains(&node) {
            return;
        }
        let it = &mut self.nodes[node];
        let ms = u64::try_from(self.now.as_millis()).expect("short");
        let wall_ms = 1_800_000_000_000 + ms;
        // It adds one itself.
        it.now = Now { mono: self.now, wall_ms, wall_us: wall_ms * 1_000 };
        it.give(input);
        self.perform(node);
    }

    fn perform(&mut self, node: usize) {
        let effects = std::mem::take(&mut self.nodes[node].effects);
        let mesh = self.nodes[node].secret.mesh_id();
        for effect in effects {
            match effect {
                Effect::Broadcast { message, .. } => {
                    self.calls += u64::from(matches!(message, Message::Call { .. }));
                    let is_muted = matches!(message, Message::Runs(_)) && self.muted == Some(node);
                    if !is_muted {
                        let verified = message.verify(mesh).expect("it is sealed");
                        self.gossip(node, &verified);
                    }
                }
                Effect::Send { to, message } => {
                    self.asked += u64::from(matches!(message, Message::WantLives(_)));
                    let verified = message.verify(mesh).expect("it is sealed");
                    self.send(node, to, verified);
                }
                Effect::Pulse(pulse) => self.pulses[node] = Some(pulse),
                other => self.nodes[node].effects.push(other),
            }
        }
    }

    /// To all that can be reached over living nodes, which are peers of a peer.
    fn gossip(&mut self, from: usize, message: &Message<Verified>) {
        let (mut reached, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(node) = next.pop() {
            for to in self.linked(node) {
                if !self.dead.contains(&to) && reached.insert(to) {
                    next.push(to);
                    let from = id(node);
                    let input = Input::Gossip { from, message: message.clone() };
                    self.way.entry(self.now + STEP).or_default().push((to, input));
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: NodeId, message: Message<Verified>) {
        let Some(to) = self.linked(from).into_iter().find(|it| id(*it) == to) else { return };
        let mut when = self.now + Duration::from_millis(1);
        if matches!(message, Message::Beacon(_) | Message::Lives { .. } | Message::WantLives(_)) {
            let draw = self.loses.map(|of| self.draw(of));
            if draw == Some(0) {
                return;
            }
            when += STEP * u32::try_from(self.draw(self.late)).expect("few");
        }
        let input = Input::Message { from: id(from), message };
        self.way.entry(when).or_default().push((to, input));
    }

    fn beat(&mut self, node: usize) {
        let (Some(pulse), false) = (self.pulses[node], self.dead.contains(&node)) else { return };
        let Some(Beat { beacon, gossiped, .. }) = self.rhythms[node].beat(id(node), pulse, 0)
        else {
            return;
        };
        let mesh = self.nodes[node].secret.mesh_id();
        let seed = u8::try_from(node + 1).expect("few");
        let signed = Signed::new(mesh, &identity(seed), beacon);
        for to in self.linked(node) {
            self.send(node, id(to), Message::Beacon(signed.clone()));
        }
        if gossiped {
            self.gossiped[node] += 1;
            self.gossip(node, &Message::Beacon(signed));
        }
    }

    /// Time passes, and `each` step is looked at.
    fn pass_looking(&mut self, time: Duration, mut each: impl FnMut(&mut Crowd)) {
        let until = self.now + time;
        while self.now < until {
            let tick = self.now.as_millis() / STEP.as_millis();
            for node in 0..self.nodes.len() {
                let elapsed = (tick + node as u128) * STEP.as_millis();
                if elapsed.is_multiple_of(BEACON_EVERY.as_millis()) {
                    self.beat(node);
                }
                self.give(node, Input::Timeout);
            }
            while let Some(entry) = self.way.first_entry().filter(|it| *it.key() < self.now + STEP)
            {
                let inputs = entry.remove();
                for (to, input) in inputs {
                    self.give(to, input);
                }
            }
            self.now += STEP;
            each(self);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.pass_looking(time, |_| {});
    }

    /// The time until something is so.
    fn until(&mut self, what: impl Fn(&Crowd) -> bool) -> Duration {
        let began = self.now;
        while !what(self) {
            assert!(self.now < began + Duration::from_secs(300), "it never is");
            self.pass(STEP);
        }
        self.now - began
    }

    fn lives(&self, at: usize, node: usize) -> bool {
        self.nodes[at].engine.known.live.is_alive(self.now, id(node))
    }

    /// Nodes that live, and do not know it of each other.
    fn unknown(&self) -> Vec<(usize, usize)> {
        let living = || (0..self.nodes.len()).filter(|node| !self.dead.contains(node));
        let pairs = living().flat_map(|at| living().map(move |node| (at, node)));
        pairs.filter(|(at, node)| at != node && !self.lives(*at, *node)).collect()
    }

    /// Whether some node that lives takes this one to live.
    fn is_known(&self, node: usize) -> bool {
        let mut others = (0..self.nodes.len()).filter(|at| *at != node && !self.dead.contains(at));
        others.any(|at| self.lives(at, node))
    }

    fn attach(&mut self, node: usize) -> Caller {
        let caller = self.nodes[node].attach(AGENTS[node % 4], false, KEY).expect("free");
        let room = self.nodes[node].lobby();
        self.nodes[node].ask(Command::Join { caller: caller.clone(), room }).expect("public");
        self.perform(node);
        caller
    }

    fn says(&mut self, node: usize, caller: &Caller) -> CallId {
        let say = Say {
            room: self.nodes[node].lobby(),
            speech: Speech::Chat,
            content: "hello".to_owned(),
            encryption: Encryption::None,
            durable: None,
            conversing: None,
            reply_to: None,
            mentions: Vec::new(),
            metadata: None,
            dedup: None,
        };
        let call = self.nodes[node].begin(Command::Say { caller: caller.clone(), say });
        self.perform(node);
        call
    }

    /// The sequencer of the lobby, as a node has it.
    fn sequencer(&self, at: usize) -> NodeId {
        let lobby = self.nodes[at].lobby();
        self.nodes[at].engine.known.rooms[&lobby].order.numbering.sequencer().author
    }
}

#[test]
fn all_know_who_lives_though_beacons_are_seldom_gossiped() {
    let mut crowd = Crowd::ring();
    let (began, asked) = (crowd.gossiped.clone(), crowd.asked);
    let lasts = BEACON_EVERY * u32::try_from(GOSSIPED_WHILE_STILL * 6).unwrap();
    crowd.pass_looking(lasts, |crowd| assert_eq!(crowd.unknown(), [], "at {:?}", crowd.now));
    for (node, (now, began)) in crowd.gossiped.iter().zip(began).enumerate() {
        assert!((5..=8).contains(&(now - began)), "node {node}: {}", now - began);
        let spread = crowd.pulses[node].expect("it beats").spread;
        assert_eq!(spread, Spread::Seldom(GOSSIPED_WHILE_STILL));
    }
    assert_eq!((crowd.calls, crowd.asked), (0, asked), "nobody is missed");
}

#[test]
fn nobody_is_taken_for_dead_while_frames_are_lost_and_late() {
    let mut crowd = Crowd::ring();
    (crowd.loses, crowd.late) = (Some(5), 4);
    let mut away = 0;
    crowd.pass_looking(Duration::from_secs(60), |crowd| away += crowd.unknown().len());
    assert_eq!(away, 0);
}

#[test]
fn who_loses_power_is_missed_by_all_in_time_however_late_frames_are() {
    for (late, victim) in [(1, 7), (4, 3), (6, 0)] {
        let mut crowd = Crowd::ring();
        crowd.late = late;
        crowd.pass(Duration::from_secs(3));
        crowd.dead.insert(victim);
        let after = crowd.until(|crowd| !crowd.is_known(victim));
        assert!(after <= PROMISED, "{after:?}");
        assert!(after + Duration::from_secs(1) >= ROSTER_LEASE, "{after:?}");
        // And it is not made alive again by what was on its way.
        let mut again = 0;
        crowd.pass_looking(Duration::from_secs(20), |crowd| {
            again += usize::from(crowd.is_known(victim))
        });
        assert_eq!(again, 0);
        assert_eq!(crowd.unknown(), []);
    }
}

#[test]
fn a_new_roster_is_told_at_once() {
    let mut crowd = Crowd::ring();
    let before = crowd.gossiped[6];
    crowd.attach(6);
    crowd.pass(Duration::from_secs(2));
    assert!(crowd.gossiped[6] > before, "with its version, for those that the news did not reach");
}

#[test]
fn a_sequencer_that_is_not_linked_and_dies_is_taken_over_from_in_time() {
    let mut crowd = Crowd::ring();
    let caller = crowd.attach(6);
    crowd.pass(Duration::from_secs(2));
    assert!(!crowd.linked(6).contains(&0) && crowd.lives(6, 0));
    crowd.dead.insert(0);
    let call = crowd.says(6, &caller);
    let after = crowd.until(|crowd| crowd.nodes[6].reply(call).is_some());
    assert!(matches!(crowd.nodes[6].reply(call), Some(Ok(Outcome::Said(_)))));
    assert!(after <= PROMISED, "{after:?}");
    crowd.pass(Duration::from_secs(1));
    let sequencers: BTreeSet<NodeId> = (1..RING).map(|node| crowd.sequencer(node)).collect();
    assert_eq!(sequencers.len(), 1, "all agree");
}

/// It gives no numbers for a while, but it lives, and says so when it is called.
#[test]
fn a_sequencer_that_answers_a_call_is_not_taken_over_from() {
    let mut crowd = Crowd::ring();
    crowd.attach(6);
    let other = crowd.attach(5);
    crowd.pass(Duration::from_secs(2));
    let home = crowd.sequencer(6);
    let before = crowd.gossiped[0];
    crowd.muted = Some(0);
    crowd.says(5, &other);
    // Its author claims after three seconds, whoever lives.
    crowd.pass_looking(Duration::from_millis(2_800), |crowd| assert_eq!(crowd.sequencer(6), home));
    assert!(crowd.calls > 0 && crowd.gossiped[0] >= before + 4, "{} calls", crowd.calls);
    crowd.muted = None;
    // And it does not go on like that.
    crowd.pass(CALL_ANSWERED_FOR * 2);
    assert_eq!(crowd.pulses[0].expect("it beats").spread, Spread::Seldom(GOSSIPED_WHILE_STILL));
}

/// The other half is gone at once, and comes back.
#[test]
fn halves_that_are_cut_off_miss_each_other_in_time_and_find_each_other_again() {
    for apart in [10, 60] {
        let mut crowd = Crowd::ring();
        let half = |node: usize| node < RING / 2;
        crowd.cut(|a, b| half(a) != half(b));
        let sees = |crowd: &Crowd| {
            let all = (0..RING).flat_map(|a| (0..RING).map(move |b| (a, b)));
            let mut over = all.filter(|(a, b)| half(*a) != half(*b));
            over.any(|(a, b)| crowd.lives(a, b))
        };
        let after = crowd.until(|crowd| !sees(crowd));
        assert!(after <= PROMISED, "{after:?}");
        crowd.pass(Duration::from_secs(apart));
        let within = |crowd: &Crowd| {
            crowd.unknown().into_iter().filter(|(a, b)| half(*a) == half(*b)).count()
        };
        assert_eq!(within(&crowd), 0);
        // By one link.
        crowd.link(2, 9);
        let after = crowd.until(|crowd| crowd.unknown().is_empty());
        assert!(after <= PROMISED, "{after:?} after {apart} s");
    }
}

#[test]
fn a_newcomer_is_told_by_a_link_who_lives_and_with_which_rosters() {
    let mut crowd = Crowd::new(RING);
    crowd.dead.insert(6);
    let linked: Vec<usize> = (0..RING).filter(|node| *node != 6).collect();
    crowd.link_ring(&linked);
    crowd.pass(Duration::from_secs(1));
    crowd.attach(1);
    crowd.pass(SETTLED * 2);
    crowd.dead.clear();
    for peer in [5, 7] {
        crowd.link(6, peer);
    }
    let after = crowd.until(|crowd| crowd.unknown().is_empty());
    assert!(after <= Duration::from_secs(3), "{after:?}");
    let agent: crate::name::id::AgentId = AGENTS[1].into();
    let after = crowd.until(|crowd| crowd.nodes[6].engine.known.rosters.record(&agent).is_some());
    assert!(after <= PROMISED, "{after:?}");
}

// Liars.

/// Tells its link, three times a second, that a node's count goes on.
fn forge(crowd: &mut Crowd, (liar, to, node): (usize, usize, usize), count: &mut u8) {
    *count = *count % 15 + 1;
    let roll = crowd.nodes[to].engine.known.live.roll().clone();
    let mut counts = vec![0; roll.nodes.len().div_ceil(2)];
    let at = roll.nodes.binary_search(&id(node)).expect("it is known");
    counts[at / 2] |= if at.is_multiple_of(2) { *count << 4 } else { *count };
    let message = Message::Lives { roll: roll.digest, counts, named: Vec::new(), links: 50 };
    crowd.give(to, Input::Message { from: id(liar), message });
}

/// Its life is told on by all, for all believe it: until somebody who heard it directly calls it.
#[test]
fn a_life_that_a_liar_forges_ends_with_a_call_and_no_room_waits_for_it() {
    let mut crowd = Crowd::ring();
    let caller = crowd.attach(6);
    crowd.pass(Duration::from_secs(2));
    crowd.dead.insert(0);
    let call = crowd.says(6, &caller);
    let (mut count, mut step, mut numbered, mut missed) = (0, 0, None, None);
    let began = crowd.now;
    crowd.pass_looking(Duration::from_secs(30), |crowd| {
        step += 1;
        if step % 3 == 0 {
            for to in [3, 6, 7] {
                forge(crowd, (5, to, 0), &mut count.clone());
            }
            count = count % 15 + 1;
        }
        if numbered.is_none() && crowd.nodes[6].reply(call).is_some() {
            numbered = Some(crowd.now - began);
        }
        if crowd.is_known(0) {
            missed = None;
        } else if missed.is_none() {
            missed = Some(crowd.now - began);
        }
    });
    assert!(numbered.is_some_and(|after| after <= PROMISED), "{numbered:?}");
    assert!(missed.is_some_and(|after| after <= PROMISED * 2), "{missed:?}");
    // It is called time and again while somebody says that it lives, and seldom.
    let most = 30_000 / CALL_AGAIN.as_millis() as u64 * 4;
    assert!((1..=most).contains(&crowd.calls), "{} calls", crowd.calls);
}

/// No honest node has heard it directly, and so none calls it: what has no signature counts for so long.
#[test]
fn a_life_that_nobody_signs_is_not_believed_for_long() {
    let mut node = Node::with(1, |config| config.linked_max = 1);
    let link = id(1);
    node.give(Input::PeerUp(link));
    node.now.mono += Duration::from_secs(2);
    node.give(Input::Timeout);
    let far = id(2);
    let heard = node.now.mono;
    let message = Message::Beacon(Signed { value: beacon(far, 1, 100, 0), signature: [0; 64] });
    node.give(Input::Gossip { from: link, message });
    let mut until = heard;
    for nth in 1..=400 {
        node.now.mono = heard + BEACON_EVERY * nth;
        let named = vec![Life { name: far.beginning(), boot: 1, tick: 100 + u64::from(nth) }];
        node.engine.known.live.admit(far);
        let message = Message::Lives { roll: 0, counts: Vec::new(), named, links: 50 };
        node.give(Input::Message { from: link, message });
        if node.engine.known.live.is_alive(node.now.mono, far) {
            until = node.now.mono;
        }
    }
    let period = BEACON_EVERY * u32::try_from(GOSSIPED_WHILE_STILL).unwrap();
    assert!(until > heard + period * 2, "one that is gossiped may be lost");
    assert!(until <= heard + period * 2 + HEARSAY_SLACK + ROSTER_LEASE, "{:?}", until - heard);
}

/// A liar runs ahead of a node's beacons, so that what honest nodes tell of it looks old.
#[test]
fn nobody_is_said_to_be_further_than_time_allows() {
    let mut node = Node::with(1, |config| config.linked_max = 1);
    let (link, far) = (id(1), id(2));
    node.give(Input::PeerUp(link));
    node.now.mono += Duration::from_secs(2);
    node.give(Input::Timeout);
    node.engine.known.live.admit(far);
    let message = Message::Beacon(Signed { value: beacon(far, 1, 100, 0), signature: [0; 64] });
    node.give(Input::Gossip { from: link, message });
    let heard = node.now.mono;
    let tell = |node: &mut Node, tick| {
        let named = vec![Life { name: far.beginning(), boot: 1, tick }];
        let message = Message::Lives { roll: 0, counts: Vec::new(), named, links: 50 };
        node.give(Input::Message { from: link, message });
        node.engine.known.live.last(far).expect("it was heard").sign() > heard
    };
    assert!(!tell(&mut node, 1_000), "in no time");
    assert!(!tell(&mut node, 100), "that is known");
    for _ in 0..4 {
        node.now.mono += BEACON_EVERY;
        node.give(Input::Timeout);
    }
    assert!(!tell(&mut node, 1_000));
    assert!(tell(&mut node, 104));
}

/// Nobody needs it there.
#[test]
fn in_a_small_mesh_hearsay_is_not_heeded() {
    let mut crowd = Crowd::new(LINKED);
    crowd.link_ring(&(0..LINKED).collect::<Vec<_>>());
    crowd.pass(SETTLED * 2);
    assert_eq!(crowd.pulses[1].expect("it beats").spread, Spread::Rarely);
    crowd.dead.insert(0);
    let (mut count, mut step) = (0, 0);
    crowd.pass_looking(PROMISED, |crowd| {
        step += 1;
        if step % 3 == 0 {
            forge(crowd, (3, 1, 0), &mut count);
        }
    });
    assert!(!crowd.lives(1, 0));
}

#[test]
fn who_calls_all_the_time_makes_a_node_say_what_it_says_in_a_small_mesh_and_no_more() {
    let mut crowd = Crowd::ring();
    let before = crowd.gossiped[4];
    let mut nonce = 0;
    crowd.pass_looking(Duration::from_secs(6), |crowd| {
        for _ in 0..5 {
            nonce += 1;
            let message = Message::Call { node: id(4), nonce };
            crowd.give(4, Input::Gossip { from: id(5), message });
        }
    });
    let said = crowd.gossiped[4] - before;
    assert!((18..=20).contains(&said), "{said}");
}

/// The node that it names has not heard of it, and cannot answer.
#[test]
fn a_call_over_a_link_alone_makes_nobody_dead() {
    let mut crowd = Crowd::ring();
    let mut nonce = 0;
    let mut away = 0;
    crowd.pass_looking(Duration::from_secs(12), |crowd| {
        nonce += 1;
        let linked = crowd.linked(6);
        for node in (0..RING).filter(|node| !linked.contains(node) && *node != 6) {
            let message = Message::Call { node: id(node), nonce };
            crowd.give(6, Input::Message { from: id(5), message });
        }
        away += crowd.unknown().len();
    });
    assert_eq!(away, 0);
}

/// It is older than hearsay, and newer than the last beacon that was gossiped.
#[test]
fn a_beacon_that_comes_late_makes_its_node_no_slower() {
    let mut node = Node::with(1, |config| config.linked_max = 1);
    let (link, far) = (id(1), id(2));
    node.give(Input::PeerUp(link));
    node.now.mono += Duration::from_secs(2);
    node.give(Input::Timeout);
    node.engine.known.live.admit(far);
    let gossip = |node: &mut Node, tick| {
        let message =
            Message::Beacon(Signed { value: beacon(far, 1, tick, 0), signature: [0; 64] });
        node.give(Input::Gossip { from: link, message });
    };
    gossip(&mut node, 100);
    for nth in 1..=60 {
        node.now.mono += BEACON_EVERY;
        node.give(Input::Timeout);
        if nth == 20 {
            gossip(&mut node, 104);
        }
        let named = vec![Life { name: far.beginning(), boot: 1, tick: 100 + nth }];
        let message = Message::Lives { roll: 0, counts: Vec::new(), named, links: 50 };
        node.give(Input::Message { from: link, message });
        let live = &node.engine.known.live;
        assert!(live.is_alive(node.now.mono, far));
        // It was away itself, for a moment.
        assert!(nth < 5 || live.last(far).expect("it was heard").tick() == 100 + nth, "{nth}");
    }
}

#[test]
fn ticks_at_the_end_of_their_range_are_no_trouble() {
    let mut crowd = Crowd::ring();
    let value = beacon(id(5), u64::MAX, u64::MAX, 0);
    for to in crowd.linked(5) {
        let message = Message::Beacon(Signed { value, signature: [0; 64] });
        crowd.give(to, Input::Message { from: id(5), message });
    }
    for mut count in 1..=15 {
        forge(&mut crowd, (6, 7, 5), &mut count);
    }
    crowd.pass(Duration::from_secs(3));
}

/// Each spoke has one link, which has all: it is told by that one alone.
#[test]
fn spokes_of_a_hub_know_who_lives() {
    // In turns alone each would be told every 4 s.
    let spokes = 40;
    let mut crowd = Crowd::new(1 + spokes);
    for spoke in 1..=spokes {
        crowd.link(0, spoke);
    }
    crowd.pass(SETTLED);
    let mut away = 0;
    crowd.pass_looking(Duration::from_secs(6), |crowd| away += crowd.unknown().len());
    assert_eq!(away, 0);
}

/// Keys cost nothing.
#[test]
fn beacons_of_strangers_make_no_small_mesh_large() {
    let mut crowd = Crowd::new(LINKED);
    crowd.link_ring(&(0..LINKED).collect::<Vec<_>>());
    crowd.pass(SETTLED * 2);
    for tick in 1..=20 {
        for stranger in 20..60 {
            let value = beacon(id(stranger), 1, tick, 0);
            let message = Message::Beacon(Signed { value, signature: [0; 64] });
            crowd.give(1, Input::Gossip { from: id(2), message });
        }
        crowd.pass(Duration::from_millis(500));
        let spread = crowd.pulses[1].expect("it beats").spread;
        assert!(!matches!(spread, Spread::Seldom(_)), "{spread:?}");
    }
}

#[test]
fn nodes_that_know_other_nodes_tell_each_other_by_name() {
    let mut crowd = Crowd::ring();
    // One has heard of somebody else, who is not there.
    crowd.nodes[3].engine.known.live.admit(id(40));
    let asked = crowd.asked;
    let mut away = 0;
    crowd.pass_looking(Duration::from_secs(20), |crowd| away += crowd.unknown().len());
    assert_eq!(away, 0);
    assert!(crowd.asked > asked);
}

#[test]
fn a_message_about_lives_has_its_bounds() {
    let mesh = Node::new(1).secret.mesh_id();
    let taken = |message: Message| {
        let decoded = Message::decode(&message.encode());
        decoded.is_ok_and(|it| it.verify(mesh).is_ok())
    };
    let lives = |counts: usize, named: usize| {
        let named = vec![Life { name: 1, boot: 1, tick: 1 }; named];
        Message::Lives { roll: 1, counts: vec![0x11; counts], named, links: 50 }
    };
    assert!(taken(lives(NODES_MAX / 2, 0)) && taken(lives(0, NODES_MAX)));
    assert!(!taken(lives(NODES_MAX / 2 + 1, 0)) && !taken(lives(0, NODES_MAX + 1)));
    assert!(taken(Message::WantLives(vec![1; LIVES_ASKED_MAX])));
    assert!(!taken(Message::WantLives(vec![1; LIVES_ASKED_MAX + 1])));
}
