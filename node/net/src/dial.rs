//! Addresses in the form that libp2p dials, and its errors as a line that an operator understands.

use std::error::Error;
use std::io;

use libp2p::Multiaddr;
use libp2p::core::transport::TransportError;
use libp2p::swarm::DialError;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::address::{Address, address_in, multiaddr_of};
use crate::book::Target;
use crate::limits::{PEER_ADDRESSES_MAX, RESOLVE_TIMEOUT};

/// A target with its names looked up.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) addresses: Vec<Multiaddr>,
    /// Why there are none.
    pub(crate) error: Option<String>,
}

/// Looks up the names among the addresses, anew for each dial: the machine behind a name may have
/// moved.
pub(crate) async fn resolve(target: Target, addresses: Vec<Address>) -> Resolved {
    let (mut found, mut error) = (Vec::new(), None);
    for address in addresses {
        if let Some(socket) = address.socket() {
            found.push(multiaddr_of(socket));
            continue;
        }
        match timeout(RESOLVE_TIMEOUT, lookup_host(address.parts())).await {
            Ok(Ok(sockets)) => found.extend(sockets.map(multiaddr_of)),
            Ok(Err(why)) => error = Some(format!("look up {address}: {why}")),
            Err(_) => error = Some(format!("look up {address}: no answer")),
        }
    }
    found.truncate(PEER_ADDRESSES_MAX);
    if found.is_empty() && error.is_none() {
        error = Some("the name has no address".to_owned());
    }
    Resolved { target, addresses: found, error }
}

/// One line: each address with the error there.
pub(crate) fn describe(error: &DialError) -> String {
    match error {
        DialError::Transport(attempts) => {
            let lines: Vec<String> = attempts.iter().map(describe_attempt).collect();
            lines.join("; ")
        }
        DialError::WrongPeerId { address, .. } => {
            format!("{}: another node answered", host_and_port(address))
        }
        DialError::Denied { cause } => match cause.source() {
            Some(why) => why.to_string(),
            None => cause.to_string(),
        },
        DialError::LocalPeerId { .. } => "the address is our own".to_owned(),
        DialError::NoAddresses => "no address is known".to_owned(),
        DialError::DialPeerConditionFalse(_) => "already connected".to_owned(),
        DialError::Aborted => "the dial was aborted".to_owned(),
    }
}

fn describe_attempt((address, error): &(Multiaddr, TransportError<io::Error>)) -> String {
    let address = host_and_port(address);
    let TransportError::Other(error) = error else {
        return format!("{address}: not an address that can be dialled");
    };
    let mut root: &(dyn Error + 'static) = error;
    let mut from_system = error.raw_os_error().is_some();
    while let Some(source) = inner(root) {
        root = source;
        from_system |= root.downcast_ref().is_some_and(|e: &io::Error| e.raw_os_error().is_some());
    }
    match from_system {
        true => format!("{address}: {root}"),
        // pnet has no check of its own: a wrong key shows as garbage, or as waiting for more of it.
        false => format!("{address}: no common language ({root}): does it have our mesh secret?"),
    }
}

/// `io::Error` hides the error it wraps from `source`, and shows that one's source instead.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    }
}

fn host_and_port(address: &Multiaddr) -> String {
    address_in(address).map_or_else(|| address.to_string(), |address| address.to_string())
}
