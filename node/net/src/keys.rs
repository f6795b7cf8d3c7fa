//! The pre-shared keys of connections, and the rights that each of them gives.
//!
//! With the newest key a node may come in. With one of the last few before it only a node may that
//! the owner knows: a member that was away while the key changed. With the key of an invitation
//! nobody comes in: it gets the [`Doorkeeper`]'s answer.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libp2p::Multiaddr;
use libp2p::core::ConnectedPoint;
use libp2p::multiaddr::Protocol;

use crate::identity::{NodeId, node_of};
use crate::limits::{INVITATIONS_MAX, PEER_ADDRESSES_MAX, PEERS_MAX};
use crate::private::{FIRST, GUEST, reads_as};
use crate::settings::Secret;

/// Names an invitation; nothing secret.
pub type InvitationId = [u8; 8];

/// Answers those who come with an invitation.
pub trait Doorkeeper: Send + Sync + 'static {
    /// The answer for `node`, which has proven that this is its id. May wait for a disk: it is
    /// called on a thread for that. At most [`crate::limits::ADMISSION_BYTES_MAX`] bytes.
    fn answer(&self, invitation: InvitationId, node: NodeId) -> Vec<u8>;
}

/// See the module. Shared by transport, gate and owner.
pub(crate) struct Keys(Mutex<KeyRing>);

struct KeyRing {
    newest: Secret,
    former: Vec<Secret>,
    /// Rises when the key changes.
    generation: u64,
    /// Nodes that are not known are to be disconnected.
    renewed: bool,
    known: HashSet<NodeId>,
    invitations: Vec<(InvitationId, Secret)>,
    doorkeeper: Option<Arc<dyn Doorkeeper>>,
    /// How often an address was dialled since somebody was met there.
    dials: HashMap<Multiaddr, usize>,
    /// With the newest key of which generation a connection was made; for as long as it is there.
    made: HashMap<Addresses, u64>,
}

/// Tells connections apart: where it ends here (`None`: dialled), and there.
type Addresses = (Option<Multiaddr>, Multiaddr);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(…)")
    }
}

/// The key of a connection.
pub(crate) enum Recognised {
    /// The newest key, or one of those before.
    Mesh(Secret, Noted),
    /// That of an invitation.
    Guest(Secret, InvitationId),
}

/// Keeps [`KeyRing::made`] for a connection, as long as it lives.
#[derive(Debug)]
pub(crate) struct Noted(Arc<Keys>, Addresses);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.locked().made.remove(&self.1);
    }
}

impl Keys {
    pub(crate) fn new(newest: Secret, former: Vec<Secret>) -> Keys {
        Keys(Mutex::new(KeyRing {
            newest,
            former,
            generation: 0,
            renewed: false,
            known: HashSet::new(),
            invitations: Vec::new(),
            doorkeeper: None,
            dials: HashMap::new(),
            made: HashMap::new(),
        }))
    }

    /// From now on these are the keys.
    pub(crate) fn renew(&self, newest: Secret, former: Vec<Secret>) {
        let mut state = self.locked();
        (state.newest, state.former) = (newest, former);
        state.generation += 1;
        state.renewed = true;
        state.dials.clear();
    }

    /// Whether the key changed since this was last asked.
    pub(crate) fn take_renewed(&self) -> bool {
        std::mem::take(&mut self.locked().renewed)
    }

    /// As many as the owner names.
    pub(crate) fn know(&self, node: NodeId) {
        self.locked().known.insert(node);
    }

    pub(crate) fn knows(&self, node: &NodeId) -> bool {
        self.locked().known.contains(node)
    }

    /// The first [`INVITATIONS_MAX`] of them count.
    pub(crate) fn invite(&self, mut invitations: Vec<(InvitationId, Secret)>) {
        invitations.truncate(INVITATIONS_MAX);
        self.locked().invitations = invitations;
    }

    pub(crate) fn keep_door(&self, doorkeeper: Arc<dyn Doorkeeper>) {
        self.locked().doorkeeper = Some(doorkeeper);
    }

    pub(crate) fn doorkeeper(&self) -> Option<Arc<dyn Doorkeeper>> {
        self.locked().doorkeeper.clone()
    }

    /// The key to dial with. To nodes that are known the newest and one of those before take turns:
    /// such a node may have been away, or the key may have changed on both sides of a split.
    pub(crate) fn to_dial(self: &Arc<Keys>, endpoint: &ConnectedPoint) -> (Secret, Noted) {
        let mut state = self.locked();
        let address = endpoint.get_remote_address().clone();
        // The last one: a circuit's address names its relay first.
        let named = address.iter().filter_map(|part| {
            let Protocol::P2p(peer) = part else { return None };
            node_of(&peer)
        });
        let expected = named.last();
        let mut key = state.newest.clone();
        let mut generation = Some(state.generation);
        if expected.is_some_and(|node| state.known.contains(&node)) && !state.former.is_empty() {
            if state.dials.len() >= PEERS_MAX * PEER_ADDRESSES_MAX {
                state.dials.clear();
            }
            let dials = state.dials.entry(address.clone()).or_default();
            let turn = *dials;
            *dials += 1;
            if !turn.is_multiple_of(2) {
                key = state.former[(turn / 2) % state.former.len()].clone();
                generation = None;
            }
        }
        let noted = self.note(state, (None, address), generation);
        (key, noted)
    }

    /// The key of a dialler at the door, from the first bytes that came after its nonce.
    pub(crate) fn recognise(
        self: &Arc<Keys>,
        endpoint: &ConnectedPoint,
        nonce: &[u8; 24],
        first: &[u8; FIRST.len()],
    ) -> Option<Recognised> {
        let state = self.locked();
        let mesh: Vec<&Secret> = [&state.newest].into_iter().chain(&state.former).collect();
        let found = mesh.iter().position(|key| reads_as(key, nonce, first, FIRST));
        let found = found.map(|at| ((at == 0).then_some(state.generation), mesh[at].clone()));
        if let Some((generation, key)) = found {
            let ends = (local(endpoint), endpoint.get_remote_address().clone());
            return Some(Recognised::Mesh(key, self.note(state, ends, generation)));
        }
        let mut guests = state.invitations.iter();
        let (id, key) = guests.find(|(_, key)| reads_as(key, nonce, first, GUEST))?;
        Some(Recognised::Guest(key.clone(), *id))
    }

    fn note(
        self: &Arc<Keys>,
        mut state: MutexGuard<'_, KeyRing>,
        ends: Addresses,
        generation: Option<u64>,
    ) -> Noted {
        if let Some(generation) = generation {
            state.made.insert(ends.clone(), generation);
        }
        Noted(self.clone(), ends)
    }

    /// Whether a connection may be: it was made with the key that is the newest now, or its node is
    /// known.
    pub(crate) fn admits(
        &self,
        node: &NodeId,
        local: Option<&Multiaddr>,
        remote: &Multiaddr,
    ) -> bool {
        let mut state = self.locked();
        state.dials.remove(remote);
        let ends = (local.cloned(), remote.clone());
        state.made.get(&ends) == Some(&state.generation) || state.known.contains(node)
    }

    fn locked(&self) -> MutexGuard<'_, KeyRing> {
        // Nothing that is done under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a connection that came from outside ends here.
fn local(endpoint: &ConnectedPoint) -> Option<Multiaddr> {
    match endpoint {
        ConnectedPoint::Listener { local_addr, .. } => Some(local_addr.clone()),
        ConnectedPoint::Dialer { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use libp2p::PeerId;
    use libp2p::core::Endpoint;
    use libp2p::core::transport::PortUse;
    use libp2p::identity::Keypair;

    use super::*;

    fn dial(address: &str) -> ConnectedPoint {
        ConnectedPoint::Dialer {
            address: address.parse().unwrap(),
            role_override: Endpoint::Dialer,
            port_use: PortUse::New,
        }
    }

    fn keys() -> Arc<Keys> {
        Arc::new(Keys::new([1; 32].into(), vec![[2; 32].into(), [3; 32].into()]))
    }

    fn tried(keys: &Arc<Keys>, endpoint: &ConnectedPoint) -> u8 {
        keys.to_dial(endpoint).0.0[0]
    }

    #[test]
    fn dials_to_a_member_take_turns_and_all_others_begin_and_end_with_the_newest() {
        let keys = keys();
        let peer = Keypair::generate_ed25519().public().to_peer_id();
        let node = node_of(&peer).unwrap();
        let member = dial(&format!("/ip4/10.0.0.1/tcp/7/p2p/{peer}"));
        assert_eq!([tried(&keys, &member), tried(&keys, &member)], [1, 1], "it is not known yet");
        keys.know(node);
        let all: Vec<u8> = (0..6).map(|_| tried(&keys, &member)).collect();
        assert_eq!(all, [1, 2, 1, 3, 1, 2]);
        let stranger = dial(&format!("/ip4/10.0.0.1/tcp/7/p2p/{}", PeerId::random()));
        for other in [&stranger, &dial("/ip4/10.0.0.1/tcp/7")] {
            assert_eq!([tried(&keys, other), tried(&keys, other)], [1, 1]);
        }
        // Somebody was met there.
        tried(&keys, &member);
        keys.admits(&node, None, member.get_remote_address());
        assert_eq!(tried(&keys, &member), 1);
        keys.renew([9; 32].into(), vec![[1; 32].into()]);
        assert_eq!([tried(&keys, &member), tried(&keys, &member)], [9, 1]);
    }

    #[test]
    fn a_connection_counts_by_the_key_that_is_the_newest_when_it_is_made() {
        let keys = keys();
        let (known, stranger) = ([7; 32], [8; 32]);
        keys.know(known);
        let at = dial("/ip4/10.0.0.1/tcp/7");
        let remote = at.get_remote_address();
        let (_, noted) = keys.to_dial(&at);
        assert!(keys.admits(&stranger, None, remote));
        // It changes while the connection is being made.
        keys.renew([9; 32].into(), vec![[1; 32].into()]);
        assert!(keys.take_renewed() && !keys.take_renewed());
        assert!(!keys.admits(&stranger, None, remote));
        assert!(keys.admits(&known, None, remote));
        drop(noted);
        assert!(keys.locked().made.is_empty());
    }
}
