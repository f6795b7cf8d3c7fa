//! The nodes that live, as far as this node can tell: beacons heard by any path, and reports of other
//! nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    limits::{
        ALONE_AFTER, HEARD_DIRECTLY_WITHIN, NODES_MAX, RESTLESS_FOR, ROSTER_LEASE, SAID_WHILE_CALM,
        TAKEOVER_AFTER, TAKEOVER_RANK_STEP, VETO_WAIT, VOTE_AWAY_FOR, VOTE_REUNITE,
    },
    name::id::{LogId, NodeId, RoomId, sha256},
    order::pulse::Spread,
    replica::log::first_8,
    wire::message::Beacon,
};

/// The last beacon of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Duration,
    /// Since when it is silent, without the time in which this node was paused itself and heard nobody.
    silent_since: Duration,
    /// When the first one of this start came.
    begun: Duration,
    /// When it was heard again after a silence, if it ever was.
    back: Option<Duration>,
    pub(crate) beacon: Beacon,
}

/// The last beacon of a peer that came from itself.
#[derive(Clone, Copy, Debug)]
struct Direct {
    at: Duration,
    tick: u64,
    /// When one came that left none out before it: a calm node leaves every other one out.
    restless: Duration,
}

/// A question to all peers whether they hear a node.
#[derive(Clone, Debug)]
struct Probe {
    sent: Duration,
    awaited: BTreeSet<NodeId>,
    /// The nodes that hear it: for them it does not count as gone before this.
    vetoes: BTreeMap<NodeId, Duration>,
}

/// The nodes that could give a room's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EligibleNodes<'a> {
    pub(crate) room: RoomId,
    /// Only these have the room. `None`: everybody does.
    pub(crate) only: Option<&'a BTreeSet<NodeId>>,
    /// But for these, which have none.
    pub(crate) relays: &'a BTreeSet<NodeId>,
}

impl EligibleNodes<'_> {
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.only.is_none_or(|only| only.contains(&node)) && !self.relays.contains(&node)
    }
}

/// A sequencer that is there no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) node: NodeId,
    pub(crate) since: Duration,
    /// It has started anew, and has forgotten what it issued: that others hear it says nothing.
    pub(crate) anew: bool,
}

/// Whether a silent node may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Ask the peers first.
    AskPeers,
    /// Not yet, or somebody hears it.
    Wait,
    /// Nobody hears it.
    Gone,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    me: NodeId,
    takeover_after: Duration,
    /// When this node started, or last noticed that it had been paused.
    awake_since: Duration,
    /// Whether a peer was heard since then.
    heard_since: bool,
    /// The last stop was not in good order, and no peer was heard since the start.
    unclean: bool,
    heard: BTreeMap<NodeId, Heard>,
    /// The last beacons that connected peers sent themselves.
    direct: BTreeMap<NodeId, Direct>,
    pub(crate) up: BTreeSet<NodeId>,
    /// Since when they are connected.
    since: BTreeMap<NodeId, Duration>,
    /// Nodes that were admitted to the mesh, this one left out.
    pub(crate) others: BTreeSet<NodeId>,
    /// Those of them that are relays: they know of rooms no more than this node, so nothing is concluded from hearing them.
    relays: BTreeSet<NodeId>,
    probes: BTreeMap<NodeId, Probe>,
}

impl Liveness {
    pub(crate) fn new(me: NodeId, takeover_after: Duration, now: Duration, unclean: bool) -> Self {
        Liveness {
            me,
            takeover_after,
            awake_since: now,
            heard_since: false,
            unclean,
            heard: BTreeMap::new(),
            direct: BTreeMap::new(),
            up: BTreeSet::new(),
            since: BTreeMap::new(),
            others: BTreeSet::new(),
            relays: BTreeSet::new(),
            probes: BTreeMap::new(),
        }
    }

    /// This node was not called for too long: its knowledge of others is old. Their beacons of the meantime
    /// may be waiting to be heard, so those that lived when it was `last_called` still do.
    pub(crate) fn woke(&mut self, now: Duration, last_called: Duration) {
        self.awake_since = now;
        self.heard_since = false;
        self.probes.clear();
        for heard in self.heard.values_mut() {
            heard.silent_since += now.saturating_sub(last_called);
        }
    }

    /// A beacon. `false` if it is not newer than the last one.
    pub(crate) fn hear(&mut self, now: Duration, beacon: Beacon) -> bool {
        if let Some(last) = self.heard.get(&beacon.node)
            && (beacon.boot, beacon.tick) <= (last.beacon.boot, last.beacon.tick)
        {
            return false;
        }
        if self.heard.len() >= NODES_MAX && !self.heard.contains_key(&beacon.node) {
            return false;
        }
        let same = self.heard.get(&beacon.node).filter(|heard| heard.beacon.boot == beacon.boot);
        let begun = same.map_or(now, |heard| heard.begun);
        let last = self.heard.get(&beacon.node);
        let was_silent = last.is_some_and(|heard| now >= heard.at + self.takeover_after);
        let back = if was_silent { Some(now) } else { last.and_then(|heard| heard.back) };
        self.heard.insert(beacon.node, Heard { at: now, silent_since: now, begun, back, beacon });
        if !self.relays.contains(&beacon.node) {
            self.heard_since = true;
            self.unclean = false;
        }
        self.probes.remove(&beacon.node);
        true
    }

    /// The same, also if it came by another way before.
    pub(crate) fn hear_directly(&mut self, now: Duration, peer: NodeId, tick: u64) {
        if !self.up.contains(&peer) {
            return;
        }
        let first = Direct { at: now, tick, restless: now };
        self.direct
            .entry(peer)
            .and_modify(|direct| {
                // The same one may come by gossip, too.
                let in_a_row =
                    tick != direct.tick && tick < direct.tick.saturating_add(SAID_WHILE_CALM);
                let restless = if in_a_row { now } else { direct.restless };
                *direct = Direct { at: now, tick, restless };
            })
            .or_insert(first);
    }

    /// It lives: its first beacon may come later.
    pub(crate) fn peer_up(&mut self, now: Duration, peer: NodeId) {
        self.up.insert(peer);
        self.since.insert(peer, now);
    }

    pub(crate) fn peer_down(&mut self, peer: NodeId) {
        self.up.remove(&peer);
        self.since.remove(&peer);
        self.direct.remove(&peer);
    }

    /// How often this node's beacons are to be gossiped: rarely while all who live are connected and hear each
    /// other directly, as far as this node can tell. It hears them, and they are calm. A node that has just started, or
    /// woken, does not know yet who lives; one that takes others for dead sooner than is usual is taken to be among such.
    pub(crate) fn spread(&self, now: Duration) -> Spread {
        let alive = self.heard.keys().filter(|node| self.is_alive(now, **node));
        let alive: Vec<Option<&Direct>> = alive.map(|node| self.direct.get(node)).collect();
        let within = |at: Duration, time: Duration| now < at + time;
        let all = |so: &dyn Fn(&Direct) -> bool| alive.iter().all(|direct| direct.is_some_and(so));
        let patient = self.takeover_after >= TAKEOVER_AFTER;
        if !patient
            || self.awake_for(now) < ROSTER_LEASE
            || !all(&|direct| within(direct.at, HEARD_DIRECTLY_WITHIN))
        {
            Spread::EachTime
        } else if all(&|direct| !within(direct.restless, RESTLESS_FOR)) {
            Spread::Rarely
        } else {
            Spread::NowAndThen
        }
    }

    /// The directory says that it is a relay.
    pub(crate) fn note_relay(&mut self, node: NodeId) {
        self.relays.insert(node);
    }

    /// Other nodes that keep rooms, whether they are heard or not.
    pub(crate) fn keepers(&self) -> impl Iterator<Item = NodeId> {
        self.others.difference(&self.relays).copied()
    }

    /// It has no part any more.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.heard.remove(&node);
        self.direct.remove(&node);
        self.up.remove(&node);
        self.since.remove(&node);
        self.others.remove(&node);
        self.relays.remove(&node);
        self.probes.remove(&node);
        for probe in self.probes.values_mut() {
            probe.awaited.remove(&node);
            probe.vetoes.remove(&node);
        }
    }

    pub(crate) fn last(&self, node: NodeId) -> Option<&Heard> {
        self.heard.get(&node)
    }

    pub(crate) fn heard(&self) -> impl Iterator<Item = (NodeId, &Heard)> {
        self.heard.iter().map(|(node, heard)| (*node, heard))
    }

    /// Heard within [`ROSTER_LEASE`], as far as this node could hear it.
    pub(crate) fn is_alive(&self, now: Duration, node: NodeId) -> bool {
        let lives = |heard: &Heard| now < heard.silent_since + ROSTER_LEASE;
        node == self.me || self.heard.get(&node).is_some_and(lives)
    }

    /// How long it is since `node` was heard, as far as this node could hear it.
    pub(crate) fn silent_for(&self, now: Duration, node: NodeId) -> Duration {
        let heard = self.heard.get(&node).map_or(Duration::ZERO, |heard| heard.at);
        now.saturating_sub(heard.max(self.awake_since))
    }

    /// Whether a node that lived not long ago may still bring what it wrote while it was cut off: it is silent now, or
    /// was until a moment ago.
    pub(crate) fn may_bring_more(&self, now: Duration, node: NodeId) -> bool {
        let Some(heard) = self.heard.get(&node) else { return false };
        let silent = self.silent_for(now, node);
        let back = heard.back.max(self.since.get(&node).copied());
        (self.takeover_after..VOTE_AWAY_FOR).contains(&silent)
            || back.is_some_and(|at| now < at + VOTE_REUNITE)
    }

    /// How long this node has been able to hear others without a break.
    pub(crate) fn awake_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.awake_since)
    }

    /// Whether a sequencer counts as gone: silent for too long, or started anew since it wrote this log. `None`: it
    /// lives.
    pub(crate) fn gone(&self, now: Duration, log: LogId) -> Option<Gone> {
        let (node, heard) = (log.author, self.heard.get(&log.author));
        if let Some(heard) = heard
            && log.incarnation != 0
            && heard.beacon.boot > boot_of(log.incarnation)
        {
            return Some(Gone { node, since: heard.begun, anew: true });
        }
        let signs = [heard.map(|heard| heard.at), self.since.get(&node).copied()];
        let last = signs.into_iter().flatten().fold(self.awake_since, Duration::max);
        let since = last + self.takeover_after;
        (now >= since).then_some(Gone { node, since, anew: false })
    }

    /// Whether this node may replace another in a room now. Nodes without the room have no say: their
    /// hearing of the node does not bring the room's entries there.
    pub(crate) fn verdict(
        &self,
        now: Duration,
        eligible: EligibleNodes<'_>,
        Gone { node, since, anew }: Gone,
    ) -> Verdict {
        let lonely = self.keepers().all(|other| other == node)
            && self.up.iter().all(|peer| self.relays.contains(peer));
        if !self.heard_since && !lonely {
            // It was away itself, and has not heard a peer since: the others may know better.
            return Verdict::Wait;
        }
        if now < since + TAKEOVER_RANK_STEP * self.rank(now, eligible, node) {
            return Verdict::Wait;
        }
        if anew || self.up.iter().all(|peer| *peer == node || !eligible.has(*peer)) {
            return Verdict::Gone;
        }
        let Some(probe) = self.probes.get(&node) else { return Verdict::AskPeers };
        let vetoes = probe.vetoes.iter().filter(|(peer, _)| eligible.has(**peer));
        match vetoes.map(|(_, until)| *until).max() {
            Some(until) if now < until => Verdict::Wait,
            Some(_) => Verdict::AskPeers,
            None if now >= probe.sent + VETO_WAIT => Verdict::Gone,
            None if probe.awaited.iter().any(|peer| eligible.has(*peer)) => Verdict::Wait,
            None => Verdict::Gone,
        }
    }

    /// This node's place among those that could replace `gone`, from 0.
    pub(crate) fn rank(&self, now: Duration, eligible: EligibleNodes<'_>, gone: NodeId) -> u32 {
        let mine = weight(eligible.room, self.me);
        let better = self.heard.iter().filter(|(node, heard)| {
            let hears = **node != gone && now < heard.at + self.takeover_after;
            hears && eligible.has(**node) && weight(eligible.room, **node) < mine
        });
        u32::try_from(better.count()).unwrap_or(u32::MAX)
    }

    /// The one to hand a room over to: the best-ranked node that is connected and heard.
    pub(crate) fn successor(&self, now: Duration, eligible: EligibleNodes<'_>) -> Option<NodeId> {
        let alive = |node: &&NodeId| {
            let heard = self.heard.get(node);
            eligible.has(**node) && heard.is_some_and(|heard| now < heard.at + self.takeover_after)
        };
        self.up.iter().filter(alive).min_by_key(|node| weight(eligible.room, **node)).copied()
    }

    /// A question about `node` goes out to all peers. Returns whom to ask; nobody if it is out.
    pub(crate) fn probe(&mut self, now: Duration, node: NodeId) -> Vec<NodeId> {
        if let Some(probe) = self.probes.get(&node)
            && (probe.vetoes.is_empty() || probe.vetoes.values().any(|until| now < *until))
        {
            return Vec::new();
        }
        let awaited: BTreeSet<NodeId> =
            self.up.iter().copied().filter(|peer| *peer != node).collect();
        let ask = awaited.iter().copied().collect();
        self.probes.insert(node, Probe { sent: now, awaited, vetoes: BTreeMap::new() });
        ask
    }

    /// A peer's answer.
    pub(crate) fn sighted(
        &mut self,
        now: Duration,
        peer: NodeId,
        (node, age): (NodeId, Option<Duration>),
    ) {
        let Some(probe) = self.probes.get_mut(&node) else { return };
        if !probe.awaited.remove(&peer) {
            return;
        }
        if let Some(age) = age
            && age < self.takeover_after
        {
            probe.vetoes.insert(peer, now + self.takeover_after - age);
        }
    }

    /// An unclean start is over: nobody was heard for long enough to go on alone. Once.
    pub(crate) fn gave_up_hearing(&mut self, now: Duration) -> bool {
        let alone = self.unclean
            && self.keepers().next().is_some()
            && now >= self.awake_since + ALONE_AFTER;
        if alone {
            self.unclean = false;
        }
        alone
    }

    /// Whether this node may go on issuing in an era that it issued before it stopped (rule 5).
    pub(crate) fn may_issue(&self) -> bool {
        !self.unclean || self.keepers().next().is_none()
    }
}

/// Ranks nodes for a room: the lowest is first.
fn weight(room: RoomId, node: NodeId) -> u64 {
    first_8(sha256(&[b"clawmesh rank", &room.0, &node.0]))
}

/// Bits of an incarnation that count a node's ephemeral logs within one start.
const COUNTER_BITS: u32 = 20;

/// The incarnation of the `nth` ephemeral log of a start.
pub(crate) fn incarnation(boot: u64, nth: u64) -> u64 {
    boot << COUNTER_BITS | nth & ((1 << COUNTER_BITS) - 1)
}

/// The start that an incarnation is of.
pub(crate) fn boot_of(incarnation: u64) -> u64 {
    incarnation >> COUNTER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::digest::Digest;

    const ME: NodeId = NodeId([1; 32]);
    const ROOM: RoomId = RoomId([2; 16]);
    const NOBODY: BTreeSet<NodeId> = BTreeSet::new();
    const EVERYBODY: EligibleNodes<'_> = EligibleNodes { room: ROOM, only: None, relays: &NOBODY };
    const AFTER: Duration = Duration::from_millis(1_500);
    /// When the node started.
    const START: Duration = Duration::from_secs(100);

    fn node(n: u8) -> NodeId {
        NodeId([n; 32])
    }

    fn live(unclean: bool) -> Liveness {
        Liveness::new(ME, AFTER, START, unclean)
    }

    fn hear(live: &mut Liveness, now: Duration, n: u8) {
        let tick = u64::try_from(now.as_millis()).expect("small");
        assert!(live.hear(
            now,
            Beacon {
                node: node(n),
                boot: 1,
                tick,
                roster: 0,
                digest: Digest::default(),
                records: [0; 16],
                wall_ms: 0
            }
        ));
    }

    #[test]
    fn who_was_away_replaces_nobody_before_it_hears_others_unless_there_are_none() {
        let gone = Gone { node: node(9), since: START, anew: false };
        let verdict = |others: &[u8], up: &[u8], heard: bool| {
            let mut live = live(false);
            live.others = others.iter().map(|n| node(*n)).collect();
            live.up = up.iter().map(|n| node(*n)).collect();
            if heard {
                hear(&mut live, START, 7);
            }
            live.verdict(START + AFTER * 2, EVERYBODY, gone)
        };
        assert_eq!(verdict(&[9], &[], false), Verdict::Gone, "there is nobody else");
        assert_eq!(verdict(&[9], &[8], false), Verdict::Wait);
        assert_eq!(verdict(&[9, 8], &[], false), Verdict::Wait);
        assert_eq!(verdict(&[8], &[], false), Verdict::Wait);
        assert_eq!(verdict(&[9, 8], &[], true), Verdict::Gone, "it hears somebody");
        assert_eq!(verdict(&[9, 8], &[8], true), Verdict::AskPeers);
    }

    #[test]
    fn beacons_are_gossiped_rarely_while_all_who_live_leave_every_other_one_out() {
        use crate::limits::BEACON_EVERY;
        let mut live = live(false);
        live.up = [7, 8].map(node).into();
        let mut tick = 0_u64;
        // How it goes after so many ticks, of which these two say one of so many.
        let mut after = |ticks: u64, every: [u64; 2]| {
            for _ in 0..ticks {
                tick += 1;
                let now = START + BEACON_EVERY * u32::try_from(tick).expect("small");
                for (n, every) in [7, 8].into_iter().zip(every) {
                    if tick.is_multiple_of(every) {
                        for _ in 0..2 {
                            live.hear_directly(now, node(n), tick);
                        }
                        live.hear(
                            now,
                            Beacon {
                                node: node(n),
                                boot: 1,
                                tick,
                                roster: 0,
                                digest: Digest::default(),
                                records: [0; 16],
                                wall_ms: 0,
                            },
                        );
                    }
                }
            }
            live.spread(START + BEACON_EVERY * u32::try_from(tick).expect("small"))
        };
        assert_eq!(after(9, [2, 2]), Spread::EachTime, "it does not know yet who lives");
        assert_eq!(after(1, [2, 2]), Spread::NowAndThen, "nor how");
        assert_eq!(after(2, [2, 2]), Spread::Rarely);
        assert_eq!(after(2, [2, 1]), Spread::NowAndThen, "one is not calm");
        assert_eq!(after(8, [2, 2]), Spread::NowAndThen);
        assert_eq!(after(2, [2, 2]), Spread::Rarely);
        assert_eq!(after(4, [2, 20]), Spread::EachTime, "one is not heard");
    }

    #[test]
    fn of_a_full_table_those_who_are_known_are_heard_on() {
        let mut live = live(false);
        let beacon = |nth: usize, tick| {
            let mut node = [0; 32];
            node[..8].copy_from_slice(&(nth as u64).to_be_bytes());
            Beacon {
                node: NodeId(node),
                boot: 1,
                tick,
                roster: 0,
                digest: Digest::default(),
                records: [0; 16],
                wall_ms: 0,
            }
        };
        assert!((0..NODES_MAX).all(|nth| live.hear(START, beacon(nth, 1))));
        assert!(!live.hear(START, beacon(NODES_MAX, 1)));
        assert!(live.hear(START, beacon(0, 2)));
        assert_eq!(live.heard().count(), NODES_MAX);
    }

    #[test]
    fn better_ones_come_first_if_they_live_and_have_the_room() {
        let mut live = live(false);
        let better: Vec<u8> =
            (2..=255).filter(|n| weight(ROOM, node(*n)) < weight(ROOM, ME)).take(4).collect();
        let worse = (2..=255).find(|n| weight(ROOM, node(*n)) > weight(ROOM, ME)).expect("many");
        let [gone, silent, without, first] = better[..] else { panic!("too few are better") };
        hear(&mut live, START, silent);
        let now = START + AFTER;
        for n in [gone, without, first, worse] {
            hear(&mut live, now, n);
        }
        let only = [gone, silent, first, worse].map(node).into();
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        assert_eq!(live.rank(now, eligible, node(gone)), 1);
        assert_eq!(live.rank(now, eligible, node(99)), 2);
        assert_eq!(live.rank(now, EVERYBODY, node(gone)), 2);
        let since = now;
        let later = |time| {
            live.verdict(now + time, eligible, Gone { node: node(gone), since, anew: false })
        };
        assert_eq!(later(TAKEOVER_RANK_STEP / 2), Verdict::Wait, "it is the second");
        assert_eq!(later(TAKEOVER_RANK_STEP), Verdict::Gone);
    }

    #[test]
    fn a_room_is_handed_to_the_best_of_those_who_are_connected_and_heard_and_have_it() {
        let mut live = live(false);
        let mut nodes: Vec<u8> = (2..8).collect();
        nodes.sort_by_key(|n| weight(ROOM, node(*n)));
        let [apart, silent, without, best, next, _] = nodes[..] else { panic!("six") };
        hear(&mut live, START, silent);
        let now = START + AFTER;
        for n in [apart, without, best, next] {
            hear(&mut live, now, n);
        }
        live.up = [silent, without, best, next].map(node).into();
        let only = [apart, silent, best, next].map(node).into();
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        assert_eq!(live.successor(now, eligible), Some(node(best)));
        live.up.remove(&node(best));
        assert_eq!(live.successor(now, eligible), Some(node(next)));
        live.up.remove(&node(next));
        assert_eq!(live.successor(now, eligible), None);
    }

    #[test]
    fn who_did_not_stop_in_order_gives_numbers_when_it_hears_others_or_gave_up() {
        let after = |unclean, others: &[u8]| {
            let mut live = live(unclean);
            live.others = others.iter().map(|n| node(*n)).collect();
            live
        };
        assert!(after(false, &[8]).may_issue() && after(true, &[]).may_issue());
        let mut waits = after(true, &[8]);
        assert!(!waits.may_issue());
        assert!(!waits.gave_up_hearing(START + ALONE_AFTER / 2) && !waits.may_issue());
        assert!(waits.gave_up_hearing(START + ALONE_AFTER) && waits.may_issue());
        assert!(!waits.gave_up_hearing(START + ALONE_AFTER * 2), "once");
        let mut hears = after(true, &[8]);
        hear(&mut hears, START, 8);
        assert!(hears.may_issue() && !hears.gave_up_hearing(START + ALONE_AFTER));
        for (unclean, others) in [(false, &[8][..]), (true, &[])] {
            assert!(!after(unclean, others).gave_up_hearing(START + ALONE_AFTER));
        }
    }

    #[test]
    fn logs_of_memory_are_of_one_start_each_and_no_two_are_one() {
        assert_eq!(incarnation(1, 1), 1 << 20 | 1);
        assert_eq!(incarnation(5, 0xa_bcde), 0x5a_bcde);
        for (boot, nth) in [(1, 1), (7, 3), (7, 1 << 20 | 3)] {
            assert_eq!(boot_of(incarnation(boot, nth)), boot);
        }
    }

    /// Two peers that could take over, and a third that does not have the room; a fourth node is silent.
    fn asking() -> (Liveness, BTreeSet<NodeId>) {
        let mut live = live(false);
        live.others = [7, 8, 6, 9].map(node).into();
        live.up = [7, 8, 6].map(node).into();
        for n in [7, 8, 6, 9] {
            hear(&mut live, START, n);
        }
        (live, [7, 8].map(node).into())
    }

    /// Long enough after that for whatever rank this node has.
    const LATER: Duration = Duration::from_secs(110);
    const SILENT: NodeId = NodeId([9; 32]);

    fn silent(since: Duration) -> Gone {
        Gone { node: SILENT, since, anew: false }
    }

    #[test]
    fn a_node_that_a_peer_hears_is_not_replaced() {
        let (mut live, only) = asking();
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        let verdict = |live: &Liveness, now| live.verdict(now, eligible, silent(START));
        let age = Some(AFTER / 3);
        assert_eq!(verdict(&live, LATER), Verdict::AskPeers);
        assert_eq!(live.probe(LATER, SILENT), [6, 7, 8].map(node));
        assert_eq!(verdict(&live, LATER), Verdict::Wait, "they may answer");
        assert_eq!(live.probe(LATER, SILENT), [], "once");
        live.sighted(LATER, node(6), (SILENT, age));
        live.sighted(LATER, node(7), (SILENT, age));
        let until = LATER + AFTER - AFTER / 3;
        assert_eq!(verdict(&live, until - Duration::from_millis(1)), Verdict::Wait);
        assert_eq!(live.probe(until - Duration::from_millis(1), SILENT), []);
        assert_eq!(verdict(&live, until), Verdict::AskPeers, "they are asked again");
        assert_eq!(live.probe(until, SILENT).len(), 3);
        assert_eq!(verdict(&live, until), Verdict::Wait, "what was said then is old");
        hear(&mut live, until, 9);
        assert_eq!(verdict(&live, until), Verdict::AskPeers, "it was heard: that is answered");
    }

    #[test]
    fn a_node_that_no_peer_hears_is_gone_when_all_have_said_so_or_time_is_up() {
        let (mut live, only) = asking();
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        let verdict = |live: &Liveness, now| live.verdict(now, eligible, silent(START));
        live.probe(LATER, SILENT);
        live.sighted(LATER, node(7), (SILENT, None));
        assert_eq!(verdict(&live, LATER), Verdict::Wait);
        // Heard too long ago is not heard; and whoever answers twice has been counted.
        live.sighted(LATER, node(8), (SILENT, Some(AFTER)));
        live.sighted(LATER, node(8), (SILENT, Some(Duration::ZERO)));
        live.sighted(LATER, node(5), (SILENT, Some(Duration::ZERO)));
        assert_eq!(verdict(&live, LATER), Verdict::Gone, "the third does not have the room");
        let (mut live, _) = asking();
        live.probe(LATER, SILENT);
        let just_before = LATER + VETO_WAIT - Duration::from_millis(1);
        assert_eq!(verdict(&live, just_before), Verdict::Wait);
        assert_eq!(verdict(&live, LATER + VETO_WAIT), Verdict::Gone);
        // Somebody it does not matter to hears it.
        let (mut live, _) = asking();
        live.probe(LATER, SILENT);
        live.sighted(LATER, node(6), (SILENT, Some(Duration::ZERO)));
        assert_eq!(verdict(&live, LATER), Verdict::Wait, "the others may, too");
        assert_eq!(verdict(&live, LATER + VETO_WAIT), Verdict::Gone);
    }

    #[test]
    fn who_alone_is_connected_and_has_the_room_asks_nobody() {
        let (mut live, _) = asking();
        let only = BTreeSet::from([SILENT]);
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        assert_eq!(live.verdict(LATER, eligible, silent(START)), Verdict::Gone);
        live.up = BTreeSet::from([SILENT]);
        assert_eq!(live.verdict(LATER, EVERYBODY, silent(START)), Verdict::Gone);
        assert_eq!(live.probe(LATER, SILENT), [], "of itself it is not asked");
    }

    /// They hear it, and what it has forgotten it does not say to them either.
    #[test]
    fn nobody_is_asked_about_a_sequencer_that_started_anew() {
        let (mut live, only) = asking();
        for n in [7, 8] {
            hear(&mut live, LATER, n);
        }
        let rank = |room| {
            live.rank(LATER, EligibleNodes { room, only: Some(&only), relays: &NOBODY }, SILENT)
        };
        let room = (0..=255).map(|n| RoomId([n; 16])).find(|room| rank(*room) == 2);
        let eligible = EligibleNodes {
            room: room.expect("in one of three"),
            only: Some(&only),
            relays: &NOBODY,
        };
        let gone = Gone { anew: true, ..silent(LATER) };
        let verdict = |after, gone| live.verdict(LATER + after, eligible, gone);
        assert_eq!(verdict(TAKEOVER_RANK_STEP, gone), Verdict::Wait, "others come first");
        assert_eq!(verdict(TAKEOVER_RANK_STEP * 2, gone), Verdict::Gone);
        assert_eq!(verdict(TAKEOVER_RANK_STEP * 2, silent(LATER)), Verdict::AskPeers);
    }

    #[test]
    fn a_sequencer_is_gone_when_it_is_silent_or_started_anew() {
        let mut live = live(false);
        let log = |incarnation| LogId { author: SILENT, incarnation };
        let permanent = log(0);
        assert_eq!(live.gone(START + AFTER / 2, permanent), None, "it may be heard yet");
        assert_eq!(live.gone(START + AFTER, permanent), Some(silent(START + AFTER)));
        let heard = START + AFTER;
        let beacon = Beacon {
            node: SILENT,
            boot: 5,
            tick: 1,
            roster: 0,
            digest: Digest::default(),
            records: [0; 16],
            wall_ms: 0,
        };
        assert!(live.hear(heard, beacon));
        assert_eq!(live.gone(heard + AFTER / 2, permanent), None);
        assert_eq!(live.gone(heard + AFTER, permanent), Some(silent(heard + AFTER)));
        // What it began before this start it has forgotten, and that begins when it is heard first.
        let again = heard + AFTER / 2;
        assert!(live.hear(again, Beacon { tick: 2, ..beacon }));
        let anew = Gone { anew: true, ..silent(heard) };
        for (boot, gone) in [(4, Some(anew)), (5, None), (6, None)] {
            assert_eq!(live.gone(again, log(incarnation(boot, 3))), gone, "{boot}");
        }
        live.woke(heard + AFTER * 9, heard);
        assert_eq!(live.gone(heard + AFTER * 9, permanent), None, "it was away itself");
    }

    /// Seed 34225 of the simulation: a node that had just come back was taken over from, before it was heard.
    #[test]
    fn who_has_just_been_connected_is_not_gone() {
        let mut live = live(false);
        let log = LogId { author: SILENT, incarnation: 0 };
        assert_eq!(live.gone(START + AFTER, log), Some(silent(START + AFTER)));
        let met = START + AFTER * 2;
        live.peer_up(met, SILENT);
        assert_eq!(live.gone(met + AFTER / 2, log), None, "its beacon may be under way");
        assert_eq!(live.gone(met + AFTER, log), Some(silent(met + AFTER)));
        live.peer_down(SILENT);
        assert_eq!(live.gone(met, log), Some(silent(START + AFTER)), "that it was is no sign");
    }

    #[test]
    fn who_is_heard_again_and_what_is_older_is_told_apart() {
        let mut live = live(false);
        let mut hears = |boot, tick| {
            live.hear(
                START,
                Beacon {
                    node: node(7),
                    boot,
                    tick,
                    roster: 0,
                    digest: Digest::default(),
                    records: [0; 16],
                    wall_ms: 0,
                },
            )
        };
        assert!(hears(2, 5));
        for (boot, tick, newer) in
            [(2, 5, false), (2, 4, false), (1, 9, false), (2, 6, true), (3, 1, true)]
        {
            assert_eq!(hears(boot, tick), newer, "{boot} {tick}");
        }
    }

    #[test]
    fn whoever_has_no_part_any_more_is_not_waited_for() {
        let (mut live, only) = asking();
        let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
        live.probe(LATER, SILENT);
        live.sighted(LATER, node(7), (SILENT, Some(Duration::ZERO)));
        for n in [7, 8] {
            live.forget(node(n));
            live.up.insert(node(6));
        }
        assert_eq!(live.verdict(LATER, eligible, silent(START)), Verdict::Gone);
        assert!(live.last(node(7)).is_none() && !live.others.contains(&node(7)));
    }
}
