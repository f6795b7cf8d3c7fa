//! Known nodes: where they are, in which state, and when each is to be dialled. A function of its
//! inputs: no I/O, and the clock is passed in.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use libp2p::swarm::ConnectionId;

use crate::address::{Address, PeerAddress};
use crate::announcement::Record;
use crate::backoff::Backoff;
use crate::identity::NodeId;
use crate::limits::{
    ANNOUNCED_PEERS_MAX, DEAD_AFTER, DIALS_MAX, DIRECT_MIN, DOUBTED_FOR, GOSSIP_BURST_MAX,
    GOSSIP_PER_SECOND_MAX, HANDSHAKE_TIMEOUT, HEARSAY_PER_PEER_MAX, OUT_TOLD_WITHIN,
    PEER_ADDRESSES_MAX, PEER_GOSSIP_BYTES, PEERS_MAX, REFUSAL_MAX, REFUSAL_MIN, SEEDS_MAX,
    SILENT_FOR, SLOW_GAP, STREAMS_PER_WINDOW_MAX, STRIKES_MAX, STRIKES_WINDOW, TOPICS_CHANGED_MAX,
    TOPICS_PER_STRIKE, WATCHDOG,
};
use crate::settings::Discovery;
use crate::trouble::{NoLink, Trouble};

mod moved;
mod peer;
mod redial;
mod relays;

use peer::{OpenConnection, Slow};
pub(crate) use peer::{Origin, Peer, Place, Way};
pub(crate) use redial::Redial;

const REFUSAL: Backoff = Backoff { min: REFUSAL_MIN, max: REFUSAL_MAX };

/// A configured address whose node is not known (yet).
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) address: Address,
    pub(crate) node: Option<NodeId>,
    pub(crate) redial: Redial,
    pub(crate) last_error: Option<NoLink>,
}

/// A node or an address to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Seed(Address),
    Peer(NodeId),
    /// A peer that is reached through a relay, and is to be directly.
    Direct(NodeId),
}

/// A target to dial now: at these addresses, and through this relay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) target: Target,
    pub(crate) addresses: Vec<Address>,
    pub(crate) relay: Option<NodeId>,
}

/// The news in an announcement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    /// Addresses of the announcing node itself.
    pub(crate) addresses: Vec<PeerAddress>,
    /// It can be reached through others than before.
    pub(crate) other_relays: bool,
}

/// The result of [`Book::connected`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// The book is full of peers that cannot be forgotten.
    NoRoom,
}

/// The connections that [`Book::disconnected`] leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// No connection.
    None,
    /// Older ones than the one that has ended: nothing is said over them.
    Older,
    /// The one that everything is said over; or nothing was known of the one that has ended.
    Newest,
}

#[derive(Debug)]
pub(crate) struct Book {
    me: NodeId,
    discovery: Discovery,
    peers: HashMap<NodeId, Peer>,
    seeds: Vec<Seed>,
    /// Nodes that are not to be dealt with. As many as the owner names.
    shut_out: HashSet<NodeId>,
    /// The shut-out nodes that are still to be disconnected.
    leaving: HashMap<NodeId, Leave>,
}

/// When a node that is shut out is disconnected.
#[derive(Clone, Copy, Debug)]
struct Leave {
    /// At the latest.
    by: Instant,
    /// All that it is to be told is on its way: it need not wait longer than that takes.
    told: bool,
}

impl Book {
    pub(crate) fn new(me: NodeId, discovery: Discovery) -> Book {
        let (shut_out, leaving) = Default::default();
        Book { me, discovery, peers: HashMap::new(), seeds: Vec::new(), shut_out, leaving }
    }

    pub(crate) fn peer(&self, node: &NodeId) -> Option<&Peer> {
        self.peers.get(node)
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = (&NodeId, &Peer)> {
        self.peers.iter().filter(|(node, _)| !self.shut_out.contains(*node))
    }

    /// Not to be dealt with any more; disconnected by then.
    pub(crate) fn shut_out(&mut self, node: NodeId, by: Instant) {
        self.shut_out.insert(node);
        self.leaving.insert(node, Leave { by, told: true });
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.addresses.clear();
        }
    }

    /// Nodes to disconnect now: those that have been told everything (`is_drained`), or were given
    /// enough time.
    pub(crate) fn take_leaving(
        &mut self,
        now: Instant,
        is_drained: impl Fn(&NodeId) -> bool,
    ) -> Vec<NodeId> {
        let due = self
            .leaving
            .extract_if(|node, leaving| now >= leaving.by || (leaving.told && is_drained(node)));
        due.map(|(node, _)| node).collect()
    }

    /// Seeds that no node has answered for yet.
    pub(crate) fn nameless_seeds(&self) -> impl Iterator<Item = &Seed> {
        self.seeds.iter().filter(|seed| seed.node.is_none())
    }

    /// Adds what the operator configured, to be dialled at once and for ever.
    pub(crate) fn configure(&mut self, configured: PeerAddress, now: Instant) {
        let PeerAddress { node, address } = configured;
        match node {
            Some(node) if self.shut_out.contains(&node) => {}
            Some(node) => {
                if let Some(peer) = self.admit(node, now)
                    && peer.note(&address, Origin::Configured)
                {
                    peer.redial.next = None;
                }
            }
            None => {
                let known = self.seeds.iter().any(|seed| seed.address == address);
                if !known && self.seeds.len() < SEEDS_MAX {
                    let redial = Redial::default();
                    self.seeds.push(Seed { address, node: None, redial, last_error: None });
                }
            }
        }
    }

    /// The entry of a node, new if there is room; the longest failing forgettable peer makes room,
    /// first of those that are hearsay. Never for ourselves.
    fn admit(&mut self, node: NodeId, now: Instant) -> Option<&mut Peer> {
        if node == self.me {
            return None;
        }
        if !self.peers.contains_key(&node) && self.peers.len() >= PEERS_MAX {
            let forgettable = self.peers.iter().filter(|(_, peer)| peer.may_be_forgotten(now));
            let worth = |(_, peer): &(&NodeId, &Peer)| (peer.is_hearsay(), peer.redial.failures);
            let victim = forgettable.max_by_key(worth).map(|(node, _)| *node);
            self.peers.remove(&victim?);
        }
        Some(self.peers.entry(node).or_default())
    }

    /// Targets to dial now, marked as under way. Learned peers only up to a full mesh.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Due> {
        let (mut under_way, connected) = (self.under_way(), self.connected_count());
        let mut due = Vec::new();
        for seed in self.seeds.iter_mut().filter(|seed| seed.node.is_none()) {
            if under_way < DIALS_MAX && seed.redial.is_due(now) {
                seed.redial.under_way = true;
                under_way += 1;
                let (target, addresses) =
                    (Target::Seed(seed.address.clone()), vec![seed.address.clone()]);
                due.push(Due { target, addresses, relay: None });
            }
        }
        let ready = self.peers.iter().filter(|(_, peer)| {
            let refused = peer.refused_until.is_some_and(|until| until > now);
            !refused && peer.redial.is_due(now)
        });
        let mut ready: Vec<(bool, NodeId)> =
            ready.map(|(node, peer)| (peer.is_hearsay(), *node)).collect();
        // Nodes that were met, or said themselves where they are, before those that others speak
        // of.
        ready.sort_by_key(|(hearsay, _)| *hearsay);
        for (_, node) in ready {
            if under_way >= DIALS_MAX {
                break;
            }
            let Some(peer) = self.peers.get(&node) else { continue };
            let wanted = peer.is_wanted(self.discovery, connected + under_way);
            let Some(relay) = wanted.then(|| self.way_to(peer)).flatten() else { continue };
            let addresses = peer.places();
            due.push(Due { target: Target::Peer(node), addresses, relay });
            under_way += 1;
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.redial.under_way = true;
                relay.into_iter().for_each(|relay| peer.tries(relay));
            }
        }
        due.extend(self.due_directly(DIALS_MAX.saturating_sub(under_way), now));
        due
    }

    /// How to dial a peer: at its addresses, and if that has failed, or there are none, through a
    /// relay, too. `None`: there is no way.
    fn way_to(&self, peer: &Peer) -> Option<Option<NodeId>> {
        let addressed = !peer.addresses.is_empty();
        let relay = self.relay_to(peer).filter(|_| !addressed || peer.redial.failures > 0);
        (addressed || relay.is_some()).then_some(relay)
    }

    /// When [`Self::due`] will name somebody, if nothing happens before. `None`: not before
    /// something does.
    pub(crate) fn next_dial(&self, now: Instant) -> Option<Instant> {
        let (under_way, connected) = (self.under_way(), self.connected_count());
        if under_way >= DIALS_MAX {
            return None;
        }
        let nameless = self.seeds.iter().filter(|seed| seed.node.is_none());
        let seeds = nameless.filter_map(|seed| seed.redial.at(now));
        let wanted = |peer: &&Peer| {
            peer.is_wanted(self.discovery, connected + under_way) && self.way_to(peer).is_some()
        };
        let peers = self.peers.values().filter(wanted).filter_map(|peer| {
            let at = peer.redial.at(now)?;
            Some(peer.refused_until.map_or(at, |until| until.max(at)))
        });
        let relayed = self.peers.values().filter(|peer| peer.wants_direct());
        let directly = relayed.filter_map(|peer| peer.direct.at(now));
        seeds.chain(peers).chain(directly).min()
    }

    fn under_way(&self) -> usize {
        self.peers.values().filter(|peer| peer.redial.under_way).count()
            + self.seeds.iter().filter(|seed| seed.redial.under_way).count()
    }

    fn connected_count(&self) -> usize {
        self.peers.values().filter(|peer| peer.is_connected()).count()
    }

    /// Whether nodes are shut out and still connected.
    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Is the target connected (in the meantime), and how often has dialling it failed in a row?
    pub(crate) fn dial_state(&self, target: &Target) -> (bool, u32) {
        match target {
            Target::Seed(address) => {
                let seed = self.seeds.iter().find(|seed| seed.address == *address);
                (false, seed.map_or(0, |seed| seed.redial.failures))
            }
            Target::Peer(node) => self
                .peers
                .get(node)
                .map_or((false, 0), |peer| (peer.is_connected(), peer.redial.failures)),
            Target::Direct(node) => self
                .peers
                .get(node)
                .map_or((false, 0), |peer| (peer.is_direct(), peer.direct.failures)),
        }
    }

    /// A dial ended without a connection. `true`: for another kind of reason than the one before.
    pub(crate) fn dial_failed(
        &mut self,
        target: &Target,
        error: Option<NoLink>,
        now: Instant,
    ) -> bool {
        let offline = error.as_ref().is_some_and(|why| self.is_offline(why));
        match target {
            Target::Seed(address) => {
                if let Some(seed) = self.seeds.iter_mut().find(|seed| seed.address == *address) {
                    seed.redial.fail_here(offline, now);
                    return replace(&mut seed.last_error, error);
                }
            }
            Target::Peer(node) => {
                if let Some(peer) = self.peers.get_mut(node) {
                    peer.redial.fail_here(offline, now);
                    return replace(&mut peer.last_error, error);
                }
            }
            Target::Direct(node) => {
                if let Some(peer) = self.peers.get_mut(node) {
                    peer.direct.fail_calmly(now);
                    // Nothing to tell in the log: there is a link. In the status it says why not
                    // directly.
                    replace(&mut peer.last_error, error);
                }
            }
        }
        false
    }

    /// Another node (or we) answered where this one was expected. Only what the operator said of
    /// this very node is kept; a seed that led here is nameless again.
    pub(crate) fn not_there(&mut self, node: &NodeId, address: &Address) {
        let Some(peer) = self.peers.get_mut(node) else { return };
        // The address of a name is not among the known ones: then it is the names that have moved.
        let known = peer.addresses().any(|known| known == address);
        let moved = |known_at: &Address| {
            if known { known_at == address } else { known_at.socket().is_none() }
        };
        peer.addresses.retain(|place| place.origin == Origin::Configured || !moved(&place.address));
        for seed in &mut self.seeds {
            if seed.node == Some(*node) && moved(&seed.address) {
                seed.node = None;
                seed.redial = Redial::default();
            }
        }
    }

    /// We ourselves answered at a seed.
    pub(crate) fn is_me(&mut self, address: &Address) {
        self.seeds.retain(|seed| seed.address != *address);
    }

    pub(crate) fn connected(
        &mut self,
        node: NodeId,
        connection: ConnectionId,
        way: Way,
        now: Instant,
    ) -> Admission {
        if self.shut_out.contains(&node) {
            let until = Leave { by: now + OUT_TOLD_WITHIN, told: false };
            self.leaving.entry(node).or_insert(until);
        }
        let Some(peer) = self.admit(node, now) else { return Admission::NoRoom };
        peer.connections.insert(connection, OpenConnection { way, since: now, alive: now });
        peer.newest = Some(connection);
        peer.redial.under_way = false;
        peer.direct = match way {
            Way::Direct(_) => Redial::default(),
            Way::Relayed(_) => Redial { next: Some(now + DIRECT_MIN), ..Redial::default() },
        };
        // It is told again over this one.
        peer.subscribed.clear();
        peer.slow = None;
        Admission::Admitted
    }

    /// A node that has connections has dialled us. No node does that while it has one, unless both
    /// dial at once: of those that have been there for longer than a dial takes the other end has
    /// gone, and they are to be closed. The others have to show a sign of life soon.
    pub(crate) fn dialled_again(&mut self, node: &NodeId, now: Instant) -> Vec<ConnectionId> {
        let Some(peer) = self.peers.get_mut(node) else { return Vec::new() };
        let newest = peer.newest;
        // That it dials directly a peer that it reaches through a relay is as it should be.
        let direct = peer.newest().is_some_and(|it| matches!(it.way, Way::Direct(_)));
        let older = peer.connections.iter_mut().filter(|(id, _)| Some(**id) != newest);
        let mut gone = Vec::new();
        for (id, connection) in older {
            let better = direct && matches!(connection.way, Way::Relayed(_));
            if now - connection.since > HANDSHAKE_TIMEOUT && !better {
                gone.push(*id);
            } else if let Some(doubted) = now.checked_sub(DEAD_AFTER - DOUBTED_FOR) {
                connection.alive = connection.alive.min(doubted);
            }
        }
        gone
    }

    /// We dialled `target` and met `node`; `address` worked. `true` if that is news.
    pub(crate) fn met(&mut self, target: &Target, node: NodeId, address: &Address) -> bool {
        let Some(peer) = self.peers.get_mut(&node) else { return false };
        match target {
            Target::Seed(seeded) => {
                if let Some(seed) = self.seeds.iter_mut().find(|seed| seed.address == *seeded) {
                    seed.node = Some(node);
                    seed.redial = Redial::default();
                    seed.last_error = None;
                }
                peer.note(seeded, Origin::Seeded);
                false
            }
            // A name was looked up if the address is not among the known ones; the name is worth
            // more.
            Target::Peer(_) | Target::Direct(_)
                if peer.addresses().any(|known| known == address) =>
            {
                peer.note(address, Origin::Dialled)
            }
            Target::Peer(_) | Target::Direct(_) => false,
        }
    }

    pub(crate) fn disconnected(
        &mut self,
        node: &NodeId,
        connection: ConnectionId,
        error: Option<NoLink>,
        now: Instant,
    ) -> Left {
        let Some(peer) = self.peers.get_mut(node) else { return Left::Newest };
        let known = peer.connections.remove(&connection).is_some();
        if known && peer.is_connected() && peer.newest == Some(connection) {
            return Left::Older;
        }
        if !known || peer.is_connected() {
            return Left::Newest;
        }
        peer.newest = None;
        peer.links.clear();
        peer.carries = false;
        peer.last_error = error.or(peer.last_error.take());
        peer.subscribed.clear();
        peer.topics_changed = 0;
        peer.slow = None;
        peer.rtt = None;
        // A connection that never came up counts as a failed dial, or we would connect and fail at
        // full speed.
        peer.redial.fail(now);
        self.carries_to(node, &BTreeSet::new());
        Left::None
    }

    pub(crate) fn up(&mut self, node: &NodeId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.up_since = Some(now);
            peer.redial.failures = 0;
            peer.last_error = None;
        }
    }

    pub(crate) fn down(&mut self, node: &NodeId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.up_since = None;
            peer.redial.lost = Some(now);
        }
    }

    /// A ping was answered.
    pub(crate) fn alive(
        &mut self,
        node: &NodeId,
        connection: ConnectionId,
        rtt: Duration,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get_mut(node) else { return };
        peer.rtt = Some(rtt);
        let Some(link) = peer.connections.get_mut(&connection) else { return };
        let silent = now.saturating_duration_since(link.alive);
        link.alive = now;
        if silent > SILENT_FOR && peer.newest == Some(connection) {
            // Nothing could be sent meanwhile, gossip or not.
            peer.slow = None;
        }
    }

    /// Connections without a sign of life; each is named once per [`DEAD_AFTER`].
    pub(crate) fn dead(&mut self, now: Instant) -> Vec<ConnectionId> {
        let mut dead = Vec::new();
        for peer in self.peers.values_mut() {
            for (id, connection) in &mut peer.connections {
                if now - connection.alive >= DEAD_AFTER {
                    connection.alive = now;
                    peer.last_error = Some(NoLink::new(Trouble::Lost, "the peer does not answer"));
                    dead.push(*id);
                }
            }
        }
        dead
    }

    /// We ourselves were not running: the silence of others counts for nothing.
    pub(crate) fn forgive_silence(&mut self, now: Instant) {
        for peer in self.peers.values_mut() {
            peer.connections.values_mut().for_each(|connection| connection.alive = now);
        }
    }

    /// Why there is no link.
    pub(crate) fn failed(&mut self, node: &NodeId, error: NoLink) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.last_error = Some(error);
        }
    }

    /// Takes what `from` announced; returns the addresses of its own that are news. Addresses on
    /// this machine are believed only from this machine.
    pub(crate) fn learn(&mut self, from: &NodeId, records: Vec<Record>, now: Instant) -> Learned {
        let Some(place) = self.peers.get(from).map(Peer::place) else { return Learned::default() };
        let links = records.iter().map(|record| record.node).filter(|node| node != from);
        let links = links.take(ANNOUNCED_PEERS_MAX).collect();
        if let Some(peer) = self.peers.get_mut(from) {
            peer.links = links;
        }
        let carried = records.iter().filter(|it| it.node != *from && it.relays.contains(from));
        let carried = carried.map(|record| record.node).take(ANNOUNCED_PEERS_MAX).collect();
        let mut news = Learned::default();
        for Record { node, addresses, relays } in records {
            let usable = |address: &&Address| may_be_told(address, place);
            let addresses: Vec<&Address> = addresses.iter().filter(usable).collect();
            let origin = if node == *from { Origin::Announced } else { Origin::Hearsay };
            if origin == Origin::Announced {
                news.other_relays |= self.announced_relays(&node, &relays);
            }
            if addresses.is_empty() && relays.is_empty() {
                continue;
            }
            if self.shut_out.contains(&node) {
                continue;
            }
            if origin == Origin::Hearsay && !self.has_room_for_hearsay(*from, node, now) {
                continue;
            }
            let Some(peer) = self.admit(node, now) else { continue };
            if origin == Origin::Hearsay && peer.addresses.is_empty() {
                peer.told_by = Some(*from);
            }
            if origin == Origin::Announced {
                // It knows best where it is not any more.
                peer.addresses.retain(|known| {
                    known.origin > Origin::Announced || addresses.contains(&&known.address)
                });
            }
            for address in addresses {
                if peer.note(address, origin) && origin == Origin::Announced {
                    let address = address.clone();
                    news.addresses.push(PeerAddress { node: Some(node), address });
                }
            }
        }
        self.carries_to(from, &carried);
        news
    }

    /// A peer says itself through which members it is reached. `true`: others than before.
    fn announced_relays(&mut self, node: &NodeId, relays: &[NodeId]) -> bool {
        let Some(peer) = self.peers.get_mut(node) else { return false };
        let other = peer.relays != relays;
        peer.relays = relays.to_vec();
        other
    }

    /// Whether a node that `from` speaks of may be noted: no node that was met is forgotten for it,
    /// and only so many nodes are known at once from the word of one peer.
    fn has_room_for_hearsay(&mut self, from: NodeId, node: NodeId, now: Instant) -> bool {
        if self.peers.contains_key(&node) {
            return true;
        }
        let told = |peer: &Peer| peer.told_by == Some(from) && peer.is_hearsay();
        let of_it: Vec<NodeId> =
            self.peers.iter().filter(|(_, peer)| told(peer)).map(|(node, _)| *node).collect();
        if of_it.len() >= HEARSAY_PER_PEER_MAX {
            let failures =
                |node: &NodeId| self.peers.get(node).map_or(0, |peer| peer.redial.failures);
            let free = |node: &&NodeId| {
                self.peers.get(*node).is_some_and(|peer| peer.may_be_forgotten(now))
            };
            let victim = of_it.iter().filter(free).max_by_key(|node| failures(node)).copied();
            return victim.is_some_and(|node| self.peers.remove(&node).is_some());
        }
        self.peers.len() < PEERS_MAX
            || self.peers.values().any(|peer| peer.is_hearsay() && peer.may_be_forgotten(now))
    }

    /// The announcement to `to`: `own` addresses, and the addresses of the peers that are up now.
    pub(crate) fn announcement(&self, to: &NodeId, own: &[Address]) -> Vec<Record> {
        let Some(place) = self.peers.get(to).map(Peer::place) else { return Vec::new() };
        let own = own.iter().filter(|address| may_be_told(address, place));
        let mut records = vec![Record {
            node: self.me,
            addresses: own.take(PEER_ADDRESSES_MAX).cloned().collect(),
            relays: self.places(),
        }];
        let mut others: Vec<Record> = self
            .peers
            .iter()
            // Of those that are reached through a relay its relay tells; this node cannot carry
            // circuits to them.
            .filter(|(node, peer)| *node != to && peer.up_since.is_some() && peer.is_direct())
            .filter(|(node, _)| !self.shut_out.contains(*node))
            .map(|(node, peer)| Record {
                node: *node,
                addresses: tellable(peer, place),
                relays: peer.relays.clone(),
            })
            .collect();
        // In an order of its own, so that an unchanged announcement has the same bytes.
        others.sort_by_key(|record| record.node);
        others.truncate(ANNOUNCED_PEERS_MAX - 1);
        records.extend(others);
        records
    }

    pub(crate) fn subscribed(&mut self, node: &NodeId, topic: u16) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.subscribed.insert(topic);
        }
    }

    pub(crate) fn unsubscribed(&mut self, node: &NodeId, topic: u16) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.subscribed.remove(&topic);
        }
    }

    /// A peer begins or ceases to listen to so many topics. `true`: that is too much, and is to be
    /// counted against it.
    pub(crate) fn topics_changed(&mut self, node: &NodeId, changes: u32) -> bool {
        let Some(peer) = self.peers.get_mut(node) else { return false };
        peer.topics_changed = peer.topics_changed.saturating_add(changes);
        let over = peer.topics_changed > TOPICS_CHANGED_MAX;
        if over {
            peer.topics_changed = TOPICS_CHANGED_MAX - TOPICS_PER_STRIKE;
        }
        over
    }

    /// A peer passes gossip on. `Err`: that is too much, and is not taken; with a fault to be
    /// counted against it, now and then.
    pub(crate) fn gossiped(
        &mut self,
        node: &NodeId,
        bytes: usize,
        now: Instant,
    ) -> Result<(), Option<&'static str>> {
        if self.shut_out.contains(node) {
            return Err(None);
        }
        let Some(peer) = self.peers.get_mut(node) else { return Err(None) };
        let gossip = &mut peer.gossip;
        let since = gossip.since.get_or_insert(now);
        let earned = now.saturating_duration_since(*since).as_secs();
        if earned > 0 {
            *since = now;
            let earned = earned.saturating_mul(u64::from(GOSSIP_PER_SECOND_MAX));
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            gossip.taken = gossip.taken.saturating_sub(earned);
        }
        let units = bytes.div_ceil(PEER_GOSSIP_BYTES).max(1);
        let before = gossip.taken;
        gossip.taken = before.saturating_add(u32::try_from(units).unwrap_or(u32::MAX));
        if before < GOSSIP_BURST_MAX {
            gossip.over = 0;
            return Ok(());
        }
        // A strike for each second's worth of it, the first at once.
        let strike = gossip.over == 0 || gossip.over >= GOSSIP_PER_SECOND_MAX;
        let so_far = if strike { 0 } else { gossip.over };
        gossip.over = so_far.saturating_add(gossip.taken - before);
        Err(strike.then_some("it passes on more gossip than nodes say"))
    }

    /// A peer opens its frame stream (anew). `true`: that is too often, and is to be counted
    /// against it.
    pub(crate) fn opened(&mut self, node: &NodeId, now: Instant) -> bool {
        let Some(peer) = self.peers.get_mut(node) else { return false };
        if peer.opened_since.is_none_or(|since| now - since > STRIKES_WINDOW) {
            peer.opened_since = Some(now);
            peer.opened = 0;
        }
        peer.opened = peer.opened.saturating_add(1);
        peer.opened > STREAMS_PER_WINDOW_MAX
    }

    /// Gossip to this peer was dropped.
    pub(crate) fn slow(&mut self, node: &NodeId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(node) {
            let going_on = peer.slow.filter(|slow| now - slow.last <= SLOW_GAP);
            let since = going_on.map_or(now, |slow| slow.since);
            peer.slow = Some(Slow { since, last: now });
        }
    }

    /// Peers whose gossip is dead though they are up and answer: to be connected anew. A peer says
    /// its topics first, so they are known before it answers. Nothing can be said of a peer that
    /// does not answer: [`Self::dead`].
    ///
    /// With the fault it is blamed for: a peer without topics may have named more topics than there
    /// may be.
    pub(crate) fn deaf(&mut self, now: Instant) -> Vec<(NodeId, Option<&'static str>)> {
        let mut deaf = Vec::new();
        for (node, peer) in &mut self.peers {
            let (Some(up), Some(newest)) = (peer.up_since, peer.newest()) else { continue };
            let since = up.max(newest.since);
            let silent = peer.subscribed.is_empty() && newest.alive >= since + WATCHDOG;
            let stuck = peer.slow.is_some_and(|slow| {
                slow.last - slow.since >= WATCHDOG && newest.alive >= slow.since + WATCHDOG
            });
            if silent || stuck {
                peer.last_error =
                    Some(NoLink::new(Trouble::Lost, "gossip with the peer had stopped"));
                peer.slow = None;
                // Asked once; the next question is ten seconds from now.
                peer.up_since = Some(now);
                deaf.push((*node, silent.then_some("it listens to no topic of the mesh")));
            }
        }
        deaf
    }

    /// Counts against a peer; `Some` when that was too much: refuse it until then.
    pub(crate) fn strike(
        &mut self,
        node: &NodeId,
        weight: u32,
        reason: &str,
        now: Instant,
    ) -> Option<Instant> {
        let peer = self.peers.get_mut(node)?;
        if peer.strikes_since.is_none_or(|since| now - since > STRIKES_WINDOW) {
            peer.strikes_since = Some(now);
            peer.strikes = 0;
        }
        peer.strikes = peer.strikes.saturating_add(weight);
        peer.strikes_ever = peer.strikes_ever.saturating_add(u64::from(weight));
        peer.fault = Some(reason.to_owned());
        if peer.strikes < STRIKES_MAX {
            return None;
        }
        peer.refusals = peer.refusals.saturating_add(1);
        peer.strikes = 0;
        let text = format!("refused for a while: {reason}");
        peer.last_error = Some(NoLink::new(Trouble::RefusedHere, text));
        let until = now + REFUSAL.full(peer.refusals);
        peer.refused_until = Some(until);
        Some(until)
    }
}

/// Keeps the newer reason, if there is one. `true`: it is of another kind.
fn replace(kept: &mut Option<NoLink>, newer: Option<NoLink>) -> bool {
    let Some(newer) = newer else { return false };
    let before = kept.as_ref().map(|kept| kept.trouble);
    let another = before != Some(newer.trouble);
    *kept = Some(newer);
    another
}

fn tellable(peer: &Peer, place: Place) -> Vec<Address> {
    let known = peer.addresses.iter().filter(|known| known.origin > Origin::Hearsay);
    known.map(|known| &known.address).filter(|a| may_be_told(a, place)).cloned().collect()
}

fn may_be_told(address: &Address, place: Place) -> bool {
    match place {
        Place::SameMachine => true,
        Place::Elsewhere => !address.is_loopback() && !address.is_link_local(),
    }
}

#[cfg(test)]
mod tests;
