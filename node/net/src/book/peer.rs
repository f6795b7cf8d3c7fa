//! One peer: where it is, over which connections, and how it behaves.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use libp2p::swarm::ConnectionId;

use super::Redial;
use crate::address::{Address, best_first};
use crate::identity::NodeId;
use crate::limits::{FULL_MESH_PEERS, PEER_ADDRESSES_MAX, TRIED_MAX};
use crate::settings::Discovery;
use crate::trouble::NoLink;

/// How much an address is worth: the later ones push out the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Some peer says so.
    Hearsay,
    /// The node itself says so.
    Announced,
    /// We have met the node there.
    Dialled,
    /// The operator named the address, and this node answered there.
    Seeded,
    /// The operator says that this node is there.
    Configured,
}

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) address: Address,
    pub(super) origin: Origin,
}

/// From where a connection comes: decides which addresses may be told to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    SameMachine,
    Elsewhere,
}

/// The way of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct(Place),
    /// Through this node.
    Relayed(NodeId),
}

/// Our place at a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Seat {
    #[default]
    None,
    Asked,
    Held,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenConnection {
    pub(super) way: Way,
    pub(super) since: Instant,
    /// When it last showed a sign of life.
    pub(super) alive: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(super) addresses: Vec<Known>,
    pub(super) connections: HashMap<ConnectionId, OpenConnection>,
    /// The one that gossip is said over ([`crate::newest`]).
    pub(super) newest: Option<ConnectionId>,
    pub(crate) up_since: Option<Instant>,
    pub(crate) redial: Redial,
    pub(crate) rtt: Option<Duration>,
    pub(crate) last_error: Option<NoLink>,
    pub(super) strikes: u32,
    pub(super) strikes_since: Option<Instant>,
    pub(super) strikes_ever: u64,
    /// The reason for the last strike.
    pub(crate) fault: Option<String>,
    pub(super) refusals: u32,
    pub(super) refused_until: Option<Instant>,
    pub(super) subscribed: HashSet<u16>,
    /// Topics, of the mesh or not, that it began or ceased to listen to since it is connected, and
    /// since the last strike for it.
    pub(super) topics_changed: u32,
    /// The node that spoke of it first, while no better source is known.
    pub(super) told_by: Option<NodeId>,
    pub(super) slow: Option<Slow>,
    pub(super) gossip: GossipPace,
    pub(super) opened: u32,
    pub(super) opened_since: Option<Instant>,
    /// Members through which it can be reached, it says itself.
    pub(super) relays: Vec<NodeId>,
    /// Members that say of themselves that it is reached through them.
    pub(super) carriers: BTreeSet<NodeId>,
    /// Relays through which it was dialled, each once, the last one last: they take turns.
    pub(super) tried: Vec<NodeId>,
    /// Dialling it directly while it is reached through a relay.
    pub(super) direct: Redial,
    /// Nodes that it says it is connected to, directly.
    pub(super) links: BTreeSet<NodeId>,
    /// It carries circuits of others.
    pub(super) carries: bool,
    /// Our place at it, and not before when it is asked for again.
    pub(super) seat: Seat,
    pub(super) seat_again: Option<Instant>,
}

/// How much gossip came from a peer, less what it has earned since.
#[derive(Debug, Default)]
pub(super) struct GossipPace {
    pub(super) taken: u32,
    /// Gossip beyond the allowance, since the last strike for it.
    pub(super) over: u32,
    pub(super) since: Option<Instant>,
}

/// Since when, and when last, gossip could not be sent to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) since: Instant,
    pub(super) last: Instant,
}

impl Peer {
    pub(crate) fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }

    /// The connection that gossip is said over.
    pub(super) fn newest(&self) -> Option<&OpenConnection> {
        self.connections.get(&self.newest?)
    }

    pub(crate) fn strikes(&self) -> u32 {
        self.strikes
    }

    pub(crate) fn strikes_ever(&self) -> u64 {
        self.strikes_ever
    }

    pub(crate) fn refused_until(&self) -> Option<Instant> {
        self.refused_until
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter().map(|known| &known.address)
    }

    /// Where it is dialled. All at once: the first that answers is taken, mostly that of IPv6 if both
    /// lead there.
    pub(super) fn places(&self) -> Vec<Address> {
        best_first(self.addresses().cloned().collect())
    }

    /// On this machine only if all connections are: a peer elsewhere may also have a tunnel.
    pub(super) fn place(&self) -> Place {
        let here = |connection: &OpenConnection| connection.way == Way::Direct(Place::SameMachine);
        match self.connections.values().all(here) {
            true => Place::SameMachine,
            false => Place::Elsewhere,
        }
    }

    pub(super) fn is_configured(&self) -> bool {
        self.addresses.iter().any(|known| known.origin >= Origin::Seeded)
    }

    /// Whether it is to be dialled if there is a way, with so many connected or being dialled.
    pub(super) fn is_wanted(&self, discovery: Discovery, linked: usize) -> bool {
        let missing = discovery == Discovery::FullMesh && linked < FULL_MESH_PEERS;
        !self.is_connected() && (missing || self.is_configured())
    }

    /// Whether a connection to it goes through no relay.
    pub(crate) fn is_direct(&self) -> bool {
        self.connections.values().any(|connection| matches!(connection.way, Way::Direct(_)))
    }

    /// The relay that everything goes through, if it does.
    pub(crate) fn relay(&self) -> Option<NodeId> {
        match self.newest()?.way {
            Way::Relayed(relay) => Some(relay),
            Way::Direct(_) => None,
        }
    }

    pub(super) fn wants_direct(&self) -> bool {
        self.is_connected() && !self.is_direct() && !self.addresses.is_empty()
    }

    /// It is dialled through this relay.
    pub(super) fn tries(&mut self, relay: NodeId) {
        self.tried.retain(|tried| *tried != relay);
        self.tried.push(relay);
        if self.tried.len() > TRIED_MAX {
            self.tried.remove(0);
        }
    }

    /// Nobody but others says that it is there.
    pub(super) fn is_hearsay(&self) -> bool {
        self.addresses.iter().all(|known| known.origin == Origin::Hearsay)
    }

    pub(super) fn may_be_forgotten(&self, now: Instant) -> bool {
        !self.is_connected()
            && self.up_since.is_none()
            && !self.redial.under_way
            && !self.is_configured()
            && self.refused_until.is_none_or(|until| until <= now)
    }

    /// Adds or promotes an address; `true` if it was not known this well before.
    pub(super) fn note(&mut self, address: &Address, origin: Origin) -> bool {
        if let Some(known) = self.addresses.iter_mut().find(|known| known.address == *address) {
            let better = origin > known.origin;
            known.origin = known.origin.max(origin);
            return better;
        }
        if self.addresses.len() >= PEER_ADDRESSES_MAX {
            let worst = self.addresses.iter().enumerate().min_by_key(|(_, known)| known.origin);
            match worst.map(|(index, known)| (index, known.origin)) {
                // A node that moves has been met at many places, and says where it is now.
                Some((index, worst))
                    if worst < origin
                        || (worst == Origin::Dialled && origin == Origin::Announced) =>
                {
                    self.addresses.remove(index)
                }
                Some(_) | None => return false,
            };
        }
        self.addresses.push(Known { address: address.clone(), origin });
        true
    }
}
