//! The nodes that live, as far as this node can tell: beacons heard by any path, and reports of other
//! nodes.

mod hearsay;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    limits::{
        ALONE_AFTER, HEARD_DIRECTLY_WITHIN, LINKED_MAX, NODES_MAX, RESTLESS_FOR, ROSTER_LEASE,
        SAID_WHILE_CALM, TAKEOVER_AFTER, TAKEOVER_RANK_STEP, VETO_WAIT, VOTE_AWAY_FOR,
        VOTE_REUNITE,
    },
    name::id::{LogId, NodeId, RoomId, sha256},
    order::pulse::Spread,
    replica::log::first_8,
    wire::message::{Beacon, Signed},
};

use self::hearsay::Called;
pub(crate) use self::hearsay::{Heeded, Roll, call};

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
    /// It came from the node itself.
    direct: bool,
    /// A link had kept it.
    kept: bool,
    /// The tick that it has got to, by this or by hearsay, and when that was news.
    tick: u64,
    evidence: Duration,
    /// A tick of a beacon of this start, and when it came: of all beacons the one by which the node is furthest.
    anchor: (u64, Duration),
}

impl Heard {
    /// The last sign of life, by beacon or by hearsay.
    pub(crate) fn sign(&self) -> Duration {
        self.at.max(self.evidence)
    }

    /// The tick that it has got to.
    #[cfg(test)]
    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }
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
    /// So many living nodes are all linked.
    linked_max: usize,
    /// All nodes, as they were when it was asked for, and whether there are others since.
    roll: Roll,
    roll_is_old: bool,
    /// Members that live, this one included, when they were counted last.
    alive: usize,
    /// The same a while ago, if more did then: others still do as they did.
    lately: usize,
    /// The last beacon of each whose signature was checked; at most those of `heard`.
    signed: BTreeMap<NodeId, Signed<Beacon>>,
    /// Nodes that were called, and were not heard since; at most those of `heard`.
    called: BTreeMap<NodeId, Called>,
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
            linked_max: LINKED_MAX,
            roll: Roll::default(),
            roll_is_old: true,
            alive: 1,
            lately: 1,
            signed: BTreeMap::new(),
            called: BTreeMap::new(),
        }
    }

    /// The same, of a mesh in which so many living nodes are all linked.
    pub(crate) fn linked_up_to(self, linked_max: usize) -> Self {
        Liveness { linked_max, ..self }
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
        let was_silent = last.is_some_and(|heard| now >= heard.sign() + self.away_after(heard));
        let back = if was_silent { Some(now) } else { last.and_then(|heard| heard.back) };
        // Hearsay may have been ahead of one that a link has kept.
        let known =
            same.filter(|heard| heard.tick >= beacon.tick && now < heard.sign() + ROSTER_LEASE);
        let (tick, evidence) = known.map_or((beacon.tick, now), |it| (it.tick, it.evidence));
        // One that was late does not make the node slower than it was.
        let anchors = same.map(|heard| heard.anchor).into_iter().chain([(beacon.tick, now)]);
        let anchor = anchors.max_by_key(|anchor| hearsay::reckoned(*anchor, now));
        let heard = Heard {
            at: now,
            silent_since: now,
            begun,
            back,
            beacon,
            direct: false,
            kept: false,
            tick,
            evidence,
            anchor: anchor.unwrap_or((beacon.tick, now)),
        };
        self.heard.insert(beacon.node, heard);
        self.called.remove(&beacon.node);
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

    /// The last beacon came from the node itself.
    pub(crate) fn heard_directly(&mut self, peer: NodeId) {
        if let Some(heard) = self.heard.get_mut(&peer) {
            // Nothing is closer to the truth: hearsay may have been ahead of it.
            (heard.direct, heard.tick, heard.evidence) = (true, heard.beacon.tick, heard.at);
        }
    }

    /// The last beacon is one that a link had kept.
    pub(crate) fn heard_of(&mut self, node: NodeId) {
        if let Some(heard) = self.heard.get_mut(&node) {
            heard.kept = true;
        }
    }

    /// So long a node that was heard so is silent until it counts as away: hearsay comes less regularly.
    fn away_after(&self, heard: &Heard) -> Duration {
        let by_hearsay = heard.evidence > heard.at;
        if by_hearsay { self.takeover_after.max(ROSTER_LEASE) } else { self.takeover_after }
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
        let members = self.heard.keys().filter(|node| self.others.contains(node));
        let members = 1 + members.filter(|node| self.is_alive(now, **node)).count();
        if members > self.linked_max {
            // Links tell it on. Whoever has just been linked may come from the other side of a split.
            let met = self.since.values().any(|since| within(*since, ROSTER_LEASE));
            let settled = patient && !met && self.awake_for(now) >= ROSTER_LEASE;
            let every = hearsay::gossiped_every(members);
            return if settled { Spread::Seldom(every) } else { Spread::EachTime };
        }
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

    /// The directory names it. Whether that is news.
    pub(crate) fn admit(&mut self, node: NodeId) -> bool {
        let is_news = self.others.insert(node);
        self.roll_is_old |= is_news;
        is_news
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
        self.roll_is_old |= self.others.remove(&node);
        self.relays.remove(&node);
        self.probes.remove(&node);
        self.called.remove(&node);
        self.signed.remove(&node);
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
        let heard = self.heard.get(&node).map_or(Duration::ZERO, Heard::sign);
        now.saturating_sub(heard.max(self.awake_since))
    }

    /// Whether a node that lived not long ago may still bring what it wrote while it was cut off: it is silent now, or
    /// was until a moment ago.
    pub(crate) fn may_bring_more(&self, now: Duration, node: NodeId) -> bool {
        let Some(heard) = self.heard.get(&node) else { return false };
        let silent = self.silent_for(now, node);
        let back = heard.back.max(self.since.get(&node).copied());
        (self.away_after(heard)..VOTE_AWAY_FOR).contains(&silent)
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
        let mut since = last + self.takeover_after;
        if self.is_hearsay(now, node) {
            // Hearsay is no proof: it is called, and answers or is gone.
            since = since.max(self.unanswered(node)?);
        }
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
            let hears = **node != gone && now < heard.sign() + self.takeover_after;
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
