//! A swarm in the making: its node id, and the addresses that it is bound to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use libp2p::Swarm;
use libp2p::core::transport::{ListenerId, TransportError};
use libp2p::swarm::SwarmEvent;

use crate::address::{address_in, multiaddr_of};
use crate::behaviour::{self, Behaviour, BehaviourEvent, VERSION};
use crate::identity::{NodeId, node_of};
use crate::keys::Keys;
use crate::limits::HANDSHAKE_TIMEOUT;
use crate::machine::Here;
use crate::settings::{Settings, StartError};
use crate::twins::Twins;
use crate::web::web_multiaddr;

/// What is listened at, and where this machine is.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listeners: HashMap<ListenerId, SocketAddr>,
    pub(crate) here: Here,
}

/// The swarm and our node id.
pub(crate) fn swarm(
    settings: &Settings,
    keys: Arc<Keys>,
    twins: Arc<Twins>,
    here: &Here,
) -> Result<(Swarm<Behaviour>, NodeId), StartError> {
    let swarm = behaviour::swarm(settings, keys, twins, here, VERSION)?;
    let me = node_of(swarm.local_peer_id())
        .ok_or_else(|| StartError::Setup("our key is not an ed25519 key".to_owned()))?;
    Ok((swarm, me))
}

/// Binds all addresses; returns the listeners of TCP alone, and what they became. Nobody is told of those of `web`: a proxy, or a
/// name, is before them.
pub(crate) async fn listen(
    swarm: &mut Swarm<Behaviour>,
    addresses: &[SocketAddr],
    web: &[SocketAddr],
) -> Result<(HashMap<ListenerId, SocketAddr>, Vec<SocketAddr>), StartError> {
    let mut waiting: HashMap<ListenerId, SocketAddr> = HashMap::new();
    let (mut all, mut bound) = (HashMap::new(), Vec::new());
    let tcp = addresses.iter().map(|address| (*address, multiaddr_of(*address), true));
    let web = web.iter().map(|address| (*address, web_multiaddr(*address, None, false), false));
    for (address, form, is_tcp) in tcp.chain(web) {
        let listener = swarm.listen_on(form).map_err(|error| {
            let source = match error {
                TransportError::Other(source) => source,
                TransportError::MultiaddrNotSupported(_) => std::io::ErrorKind::Unsupported.into(),
            };
            StartError::Listen { address, source }
        })?;
        waiting.insert(listener, address);
        if is_tcp {
            all.insert(listener, address);
        }
    }
    while !waiting.is_empty() {
        let Some(event) = next_within(swarm, HANDSHAKE_TIMEOUT).await else {
            let Some(address) = waiting.values().next().copied() else { break };
            let source = std::io::ErrorKind::TimedOut.into();
            return Err(StartError::Listen { address, source });
        };
        if let SwarmEvent::NewListenAddr { listener_id, address } = event {
            waiting.remove(&listener_id);
            bound.extend(address_in(&address).and_then(|address| address.socket()));
        } else if let SwarmEvent::ListenerError { listener_id, error } = event
            && let Some(address) = waiting.remove(&listener_id)
        {
            return Err(StartError::Listen { address, source: error });
        }
    }
    Ok((all, bound))
}

async fn next_within(
    swarm: &mut Swarm<Behaviour>,
    limit: Duration,
) -> Option<SwarmEvent<BehaviourEvent>> {
    tokio::time::timeout(limit, swarm.select_next_some()).await.ok()
}
