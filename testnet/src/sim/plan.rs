//! The plan of a world of a seed: how many nodes, which weather, which faults when.

mod laptops;

use std::time::Duration;

use mesh::{
    api::budget::{Budgets, Pace},
    wire::entry::Parting,
};

pub(super) use self::laptops::{LAPTOPS, Laptops, Phase};
use super::{dice::Dice, network::Weather, signing::Signing};

/// Something that goes wrong, or is done to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nodes reach each other only within their group.
    Split(Vec<usize>),
    /// One way of one link is cut.
    OneWay(usize, usize),
    /// All links are as they should be.
    Heal,
    /// The power fails at once.
    Crash(usize),
    /// The power fails after so many operations of the disk: within a commit, if one is under way.
    Doom(usize, u64),
    /// A node that is down starts.
    Start(usize),
    /// A node stops in good order, and stays down.
    Stop(usize),
    /// All links are as they should be, nothing is slow or lost, and this node runs, and all those that carry.
    Calm(usize),
    /// A planned restart: the node hands over, exits, and starts again.
    Restart(usize),
    /// The same, and its links are cut so many milliseconds into the handover.
    RestartCut(usize, u64),
    /// The process stands still for so many milliseconds.
    Pause(usize, u64),
    /// The disk stands still for so many milliseconds; beacons go on.
    Stall(usize, u64),
    /// The disk is full for so many milliseconds.
    Full(usize, u64),
    /// An operator draws another secret of the mesh's connections.
    Rekey(usize),
    /// The wall clock jumps to so many milliseconds off.
    Clock(usize, i64),
    /// Messages fare like this from now on.
    Weather(u64),
    /// The node is gone for ever, and its disk.
    Lose(usize),
    /// The disk is copied.
    BackUp(usize),
    /// The disk is replaced by the copy, and the node goes on from there.
    Restore(usize),
    /// An operator says at one node that another one has no part in the mesh any more.
    Part {
        /// Where.
        by: usize,
        /// The node that has no part any more.
        out: usize,
        /// Why.
        why: Parting,
    },
}

/// Agents that write to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Correspondence {
    /// They have inboxes, and write as often as they like.
    Inboxes,
    /// They answer everything that they are told at once.
    Answering {
        /// Whom each of them asks of its own accord.
        circle: Circle,
        /// When two agents have to rest, they give the answers that they owe after that.
        patient: bool,
        /// They think for some seconds before they answer.
        slow: bool,
        /// The last node keeps no budget, and writes any place in any conversation.
        boundless: bool,
    },
}

/// Who asks whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Circle {
    /// Two and two ask each other.
    Pairs,
    /// Each asks the next one.
    Ring,
    /// Each asks any other one.
    Crowd,
}

/// As long as this node's silence makes others close its votes for good.
pub(super) const LASTING: Duration = Duration::from_secs(145);

/// In worlds of these seeds (modulo 16) nodes sign as real ones do.
/// For how long nodes of worlds with inboxes keep requests.
pub(super) const REQUESTS_KEPT: Duration = Duration::from_secs(60);
const REAL: u64 = 6;
/// Of the remainders of eight, the worlds whose liar is loud.
const LOUD: u64 = 5;

/// A world before it begins.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// How many nodes.
    pub(super) nodes: usize,
    /// Whether gossip carries anything but beacons.
    pub(super) gossip: bool,
    /// Numbers an era has here. `None`: all of them.
    pub(super) era_capacity: Option<u64>,
    /// Faults and their moments, ascending.
    pub(super) faults: Vec<(Duration, Fault)>,
    /// When the last fault is over, and writing with it.
    pub(super) faults_end: Duration,
    /// No crash, no split, no pause: *calm* and *agreement* must hold throughout.
    pub(super) calm: bool,
    /// How messages fare.
    pub(super) weather: Weather,
    /// Mean time between two things that agents do.
    pub(super) act_every: Duration,
    /// Half of their acts are votes.
    pub(super) voting: bool,
    /// Nodes drop bodies, each after a time of its own.
    pub(super) retention: bool,
    /// Some agents have minted keys.
    pub(super) keys: bool,
    /// Agents do what a scenario says, and at first only so many nodes are there. `None`: chance says.
    pub(super) scripted: Option<usize>,
    /// This node is to have no part any more.
    pub(super) parting: Option<usize>,
    /// The disk of this node is lost.
    pub(super) lost: Option<usize>,
    /// The last node lies.
    pub(super) liar: bool,
    /// And writes much without effect.
    pub(super) loud: bool,
    /// How nodes sign.
    pub(super) signing: Signing,
    /// From then on agents do nothing until the last fault is over.
    pub(super) silent_from: Option<Duration>,
    /// Some agents write to each other.
    pub(super) correspondence: Option<Correspondence>,
    /// The budgets of each node's agents, if they are not the usual ones.
    pub(super) budgets: Vec<Budgets>,
    /// Two nodes are never up together.
    pub(super) laptops: Option<Laptops>,
}

/// Which kinds of faults a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Calm,
    PlannedRestarts,
    Splits,
    Crashes,
    Everything,
    /// All nodes but one go down at once, and stay down for longer than content is waited for.
    Lonely,
    /// A split or a crash that lasts for longer than others wait for a node that is away.
    Lasting,
}

impl Plan {
    /// Nothing happens by chance: for a world that is led step by step.
    #[must_use]
    pub(super) fn quiet(nodes: usize) -> Plan {
        Plan {
            nodes,
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
            scripted: None,
            parting: None,
            lost: None,
            liar: false,
            loud: false,
            signing: Signing::Simulated,
            silent_from: None,
            correspondence: None,
            budgets: Vec::new(),
            laptops: None,
        }
    }

    /// The plan of a seed.
    #[must_use]
    pub(super) fn of(seed: u64) -> Plan {
        Plan::draw(seed, 2)
    }

    /// A plan of a seed in which the last node lies, and at least two others do not.
    #[must_use]
    pub(super) fn with_liar(seed: u64) -> Plan {
        Plan { liar: true, loud: seed % 8 == LOUD, ..Plan::draw(seed, 3) }
    }

    /// A plan of a seed in which a node is expelled at some time, or fails and is given up, besides all other faults; at
    /// least two others stay.
    #[must_use]
    pub(super) fn with_parting(seed: u64) -> Plan {
        let mut plan = Plan::draw(seed, 3);
        let mut dice = Dice::new(seed ^ 0x7061_7274);
        let out = dice.index(plan.nodes);
        let by = (out + 1 + dice.index(plan.nodes - 1)) % plan.nodes;
        let end = plan.faults_end.min(Duration::from_secs(30));
        let end_ms = u64::try_from(end.as_millis()).expect("seconds");
        let at = Duration::from_millis(dice.within(4_000, end_ms));
        let retired = dice.chance(30);
        if retired {
            plan.faults
                .push((at - Duration::from_millis(dice.within(0, 4_000)), Fault::Crash(out)));
        }
        let why = if retired { Parting::Retired } else { Parting::Expelled };
        plan.faults.push((at, Fault::Part { by, out, why }));
        plan.faults.sort_by_key(|(at, _)| *at);
        Plan { parting: Some(out), calm: false, ..plan }
    }

    /// A plan of a seed in which the disk of a node is lost at some time, besides all other faults; at least two others
    /// stay.
    #[must_use]
    pub(super) fn with_loss(seed: u64) -> Plan {
        let mut plan = Plan::draw(seed, 3);
        let mut dice = Dice::new(seed ^ 0x6c6f_7373);
        let lost = dice.index(plan.nodes);
        let end = plan.faults_end.min(Duration::from_secs(30));
        let end_ms = u64::try_from(end.as_millis()).expect("seconds");
        let at = Duration::from_millis(dice.within(4_000, end_ms));
        plan.faults.push((at, Fault::Lose(lost)));
        plan.faults.sort_by_key(|(at, _)| *at);
        Plan { lost: Some(lost), calm: false, ..plan }
    }

    /// A plan of a seed in which a node goes on from an earlier copy of its disk, besides all other faults; at least two
    /// others do not. Agents have minted keys, and so profiles.
    #[must_use]
    pub(super) fn with_restore(seed: u64) -> Plan {
        let mut plan = Plan { keys: true, calm: false, ..Plan::draw(seed, 3) };
        let mut dice = Dice::new(seed ^ 0x7265_7374);
        let node = dice.index(plan.nodes);
        let end = plan.faults_end.min(Duration::from_secs(30));
        let end_ms = u64::try_from(end.as_millis()).expect("seconds");
        let copied = dice.within(4_000, end_ms / 2);
        let restored = dice.within(copied + 2_000, end_ms);
        plan.faults.push((Duration::from_millis(copied), Fault::BackUp(node)));
        plan.faults.push((Duration::from_millis(restored), Fault::Restore(node)));
        plan.faults.sort_by_key(|(at, _)| *at);
        plan
    }

    /// A plan of a seed in which agents have inboxes, besides all faults.
    #[must_use]
    pub(super) fn with_inboxes(seed: u64) -> Plan {
        Plan { correspondence: Some(Correspondence::Inboxes), ..Plan::draw(seed, 2) }
    }

    /// A plan of a seed in which agents answer everything, besides all faults. Each node has budgets of its own.
    #[must_use]
    pub(super) fn answering(seed: u64) -> Plan {
        let mut plan = Plan::draw(seed, 2);
        let mut dice = Dice::new(seed ^ 0x616e_7377);
        let circle = *dice.pick(&[Circle::Pairs, Circle::Ring, Circle::Crowd]);
        let boundless = plan.nodes > 2 && dice.chance(30);
        let (patient, slow) = (dice.chance(30), dice.chance(30));
        plan.budgets = (0..plan.nodes).map(|_| some_budgets(&mut dice)).collect();
        if patient || slow {
            // A chain of many conversations, each as slow as two agents may be, takes hours.
            plan.budgets.iter_mut().for_each(|budgets| budgets.hops = budgets.hops.min(5));
        }
        if boundless {
            plan.budgets.pop();
            plan.budgets.push(boundless_budgets());
        }
        let answering = Correspondence::Answering { circle, patient, slow, boundless };
        let (correspondence, act_every) = (Some(answering), plan.act_every * 8);
        // Of a conversation whose bodies are dropped nobody could tell how long it was.
        Plan { correspondence, act_every, retention: false, ..plan }
    }

    /// Whether nothing at all goes wrong.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.calm && self.faults.is_empty()
    }

    fn draw(seed: u64, least: usize) -> Plan {
        let mut dice = Dice::new(seed ^ 0x706c_616e);
        let kind = match seed % 8 {
            _ if seed % 16 == 15 => Kind::Lonely,
            _ if seed % 16 == 11 => Kind::Lasting,
            0 => Kind::Calm,
            1 => Kind::PlannedRestarts,
            2 | 3 => Kind::Splits,
            4 => Kind::Crashes,
            _ => Kind::Everything,
        };
        let nodes = usize::try_from(dice.within(2, 5)).expect("small").max(least);
        let nodes = if kind == Kind::Lonely { nodes.max(3) } else { nodes };
        let faults_end = Duration::from_secs(dice.within(18, 30));
        let lasting = kind == Kind::Lasting;
        let faults_end = if lasting && dice.chance(50) { LASTING } else { faults_end };
        let calm = matches!(kind, Kind::Calm | Kind::PlannedRestarts);
        let faults = faults(&mut dice, kind, nodes, faults_end);
        let silent_from = faults.last().map(|(at, _)| *at);
        let weather =
            if calm && dice.chance(50) { Weather::CALM } else { some_weather(&mut dice, calm) };
        Plan {
            nodes,
            gossip: matches!(kind, Kind::PlannedRestarts | Kind::Lonely) || !dice.chance(25),
            era_capacity: (!calm && dice.chance(30)).then(|| dice.within(80, 300)),
            faults,
            faults_end,
            calm,
            weather,
            act_every: Duration::from_millis(dice.within(10, 60) * if lasting { 4 } else { 1 }),
            voting: lasting,
            retention: dice.chance(25),
            keys: dice.chance(60),
            scripted: None,
            parting: None,
            lost: None,
            liar: false,
            loud: false,
            signing: if seed % 16 == REAL { Signing::Real } else { Signing::Simulated },
            silent_from: (kind == Kind::Lonely).then_some(silent_from).flatten(),
            correspondence: None,
            budgets: Vec::new(),
            laptops: None,
        }
    }
}

fn some_budgets(dice: &mut Dice) -> Budgets {
    let few = |dice: &mut Dice, low, high| u32::try_from(dice.within(low, high)).expect("small");
    let usual = Budgets::default();
    let seconds = Duration::from_secs;
    let fast = Pace { messages: 10, within: seconds(20), rest: seconds(20) };
    Budgets {
        // With none at all nobody can tell an answer that asks in return from one that does not.
        turns: few(dice, 1, 6),
        hops: if dice.chance(30) { usual.hops } else { few(dice, 1, 5) },
        pair: if dice.chance(50) { usual.pair } else { fast },
        outstanding: *dice.pick(&[2, 4, usual.outstanding]),
    }
}

fn boundless_budgets() -> Budgets {
    let pair = Pace { messages: u32::MAX, ..Budgets::default().pair };
    Budgets { turns: u32::MAX, hops: u32::MAX, pair, outstanding: usize::MAX }
}

/// Weather; in calm worlds nothing takes so long that a sequencer would be taken for gone.
pub(super) fn some_weather(dice: &mut Dice, calm: bool) -> Weather {
    Weather {
        lost: dice.within(0, 25),
        lost_direct: if calm { 0 } else { dice.within(0, 15) },
        doubled: dice.within(0, 10),
        late: dice.within(0, 20),
        late_ms_max: dice.within(1, if calm { 100 } else { 800 }),
        // From one room to the other side of the world. There the first connection takes longer than the time after
        // which a sequencer counts as gone, so rooms are taken over: that is not calm.
        delay_ms: *dice.pick(if calm { &[0, 0, 5, 50] } else { &[0, 0, 5, 50, 150] }),
    }
}

fn faults(dice: &mut Dice, kind: Kind, nodes: usize, end: Duration) -> Vec<(Duration, Fault)> {
    let mut out = Vec::new();
    let mut at = Duration::from_secs(2);
    match kind {
        Kind::Calm => return out,
        Kind::Lonely => return lonely(dice, nodes),
        Kind::Lasting => return lasting(dice, nodes, end),
        Kind::PlannedRestarts | Kind::Splits | Kind::Crashes | Kind::Everything => {}
    }
    while at < end {
        let node = dice.index(nodes);
        let fault = match kind {
            Kind::Calm | Kind::Lonely | Kind::Lasting => break,
            Kind::PlannedRestarts => Fault::Restart(node),
            Kind::Splits => split(dice, nodes),
            Kind::Crashes => crash(dice, node),
            Kind::Everything => match dice.within(0, 13) {
                0..=3 => split(dice, nodes),
                4..=6 => crash(dice, node),
                7 => Fault::Pause(node, dice.within(200, 6_000)),
                8 => Fault::Stall(node, dice.within(200, 6_000)),
                9 => Fault::Clock(
                    node,
                    i64::try_from(dice.within(0, 20_000)).expect("small") - 10_000,
                ),
                10 => Fault::Weather(dice.draw()),
                11 => Fault::Full(node, dice.within(200, 8_000)),
                12 => Fault::Rekey(node),
                _ => Fault::RestartCut(node, dice.within(0, 60)),
            },
        };
        out.push((at, fault));
        let gap = if kind == Kind::PlannedRestarts { 5_000 } else { dice.within(300, 4_000) };
        at += Duration::from_millis(gap);
    }
    out
}

/// A node is left with numbers whose content no node has that could be asked: it hears the home
/// sequencer, but neither the authors nor the answer to its own questions, and then all others go down. Messages
/// of its agents would open another era, and the numbers before would be late instead: they are silent.
fn lonely(dice: &mut Dice, nodes: usize) -> Vec<(Duration, Fault)> {
    let left = 1 + dice.index(nodes - 1);
    let at = Duration::from_millis(dice.within(2_000, 4_000));
    let authors = (1..nodes).filter(|node| *node != left);
    let mut out: Vec<_> = authors.map(|author| (at, Fault::OneWay(author, left))).collect();
    out.push((at, Fault::OneWay(left, 0)));
    let all = (0..nodes).filter(|node| *node != left);
    let crash = at + Duration::from_millis(800);
    out.extend(all.map(|node| (crash, Fault::Crash(node))));
    out
}

/// Two sides that do not hear each other to the end, and perhaps somebody who is away for a while; or
/// one node that is away to the end.
fn lasting(dice: &mut Dice, nodes: usize, end: Duration) -> Vec<(Duration, Fault)> {
    let at = Duration::from_millis(dice.within(4_000, 8_000));
    let node = dice.index(nodes);
    if dice.chance(40) {
        return vec![(at, Fault::Crash(node))];
    }
    let groups = (0..nodes).map(|other| usize::from(other == node || dice.chance(30))).collect();
    let mut out = vec![(at, Fault::Split(groups))];
    if dice.chance(50) {
        let node = dice.index(nodes);
        let crash = at + Duration::from_millis(dice.within(0, 4_000));
        out.push((crash, Fault::Crash(node)));
        out.push((end.min(crash + Duration::from_secs(10)), Fault::Start(node)));
    }
    out
}

fn split(dice: &mut Dice, nodes: usize) -> Fault {
    match dice.within(0, 9) {
        0..=2 => Fault::Heal,
        3 | 4 if nodes > 1 => {
            let from = dice.index(nodes);
            Fault::OneWay(from, (from + 1 + dice.index(nodes - 1)) % nodes)
        }
        _ => {
            let groups = dice.within(2, 3);
            let group = |dice: &mut Dice| usize::try_from(dice.within(1, groups)).expect("small");
            Fault::Split((0..nodes).map(|_| group(dice)).collect())
        }
    }
}

fn crash(dice: &mut Dice, node: usize) -> Fault {
    match dice.within(0, 4) {
        0 | 1 => Fault::Crash(node),
        2 => Fault::Doom(node, dice.within(0, 30)),
        _ => Fault::Start(node),
    }
}
