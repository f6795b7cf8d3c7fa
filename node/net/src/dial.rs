//! Addresses in the form that libp2p dials, and its errors as a line that an operator understands.

use std::error::Error;
use std::io;

use libp2p::Multiaddr;
use libp2p::core::transport::TransportError;
use libp2p::swarm::DialError;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::address::{address_in, multiaddr_of};
use crate::book::{Due, Target};
use crate::circuit;
use crate::identity::short;
use crate::limits::{PEER_ADDRESSES_MAX, RESOLVE_TIMEOUT};
use crate::trouble::{self, Failed, NoLink, Step, Trouble};

/// A target with its names looked up.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) target: Target,
    pub(crate) addresses: Vec<Multiaddr>,
    /// Why there are none.
    pub(crate) error: Option<NoLink>,
}

/// Looks up the names among the addresses, anew for each dial: the machine behind a name may have
/// moved.
pub(crate) async fn resolve(due: Due) -> Resolved {
    let Due { target, addresses, relay } = due;
    let (mut found, mut error) = (Vec::new(), None);
    let unknown = |text: &str| NoLink::new(Trouble::NameNotFound, text);
    for address in addresses {
        if let Some(socket) = address.socket() {
            found.push(multiaddr_of(socket));
            continue;
        }
        match timeout(RESOLVE_TIMEOUT, lookup_host(address.parts())).await {
            Ok(Ok(sockets)) => found.extend(sockets.map(|socket| address.dialled_at(socket))),
            Ok(Err(why)) => error = Some(unknown(&format!("{address}: name not found: {why}"))),
            Err(_) => error = Some(unknown(&format!("{address}: name not found: no answer"))),
        }
    }
    found.truncate(PEER_ADDRESSES_MAX);
    if let (Some(relay), Target::Peer(node)) = (relay, &target) {
        found.extend(circuit::through(&relay, node));
    }
    if found.is_empty() && error.is_none() {
        error = Some(unknown("name not found: it has no address"));
    }
    Resolved { target, addresses: found, error }
}

/// One line: each address with the error there; and the kind of the one that came furthest.
pub(crate) fn describe(error: &DialError) -> NoLink {
    match error {
        DialError::Transport(attempts) => {
            let all: Vec<NoLink> = attempts.iter().map(describe_attempt).collect();
            let furthest = all.iter().map(|attempt| attempt.trouble).max();
            let lines: Vec<String> = all.into_iter().map(|attempt| attempt.text).collect();
            NoLink::new(furthest.unwrap_or(Trouble::Other), lines.join("; "))
        }
        DialError::WrongPeerId { address, .. } => {
            let text = format!("{}: another node answered", host_and_port(address));
            NoLink::new(Trouble::OtherNode, text)
        }
        DialError::LocalPeerId { .. } => NoLink::new(Trouble::OtherNode, "the address is our own"),
        DialError::Denied { cause } => {
            let text = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
            NoLink::new(Trouble::RefusedHere, text)
        }
        DialError::NoAddresses => NoLink::new(Trouble::Other, "no address is known"),
        DialError::DialPeerConditionFalse(_) => NoLink::new(Trouble::Other, "already connected"),
        DialError::Aborted => NoLink::new(Trouble::Other, "the dial was aborted"),
    }
}

fn describe_attempt((address, error): &(Multiaddr, TransportError<io::Error>)) -> NoLink {
    let address = host_and_port(address);
    let TransportError::Other(error) = error else {
        let text = format!("{address}: not an address that can be dialled");
        return NoLink::new(Trouble::Other, text);
    };
    let (trouble, why) = match trouble::failed(error) {
        Ok(Failed { step: Step::Reaching, error }) => unreached(error),
        Ok(Failed { step: Step::Carrying, error }) => (
            Trouble::NotCarried,
            format!("the relay does not carry us there: {}", innermost(error)),
        ),
        Ok(Failed { step: Step::Greeting, error }) => (
            Trouble::HungUp,
            format!("hung up at once ({error}): too many connections from here, or no clawmeshd"),
        ),
        Ok(Failed { step: Step::Door(refused), .. }) => (*refused, at_the_door(*refused)),
        // The pre-shared key has no check of its own: a wrong one shows as garbage, as waiting for
        // more of it, or as a connection that is closed.
        Err(root) => (
            Trouble::WrongSecret,
            format!("does not know our mesh's secret: another mesh, or no clawmeshd ({root})"),
        ),
    };
    NoLink::new(trouble, format!("{address}: {why}"))
}

/// The reason that TCP gives.
#[allow(clippy::wildcard_enum_match_arm, reason = "ErrorKind is non-exhaustive")]
pub(crate) fn unreached(error: &io::Error) -> (Trouble, String) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            (Trouble::ConnectionRefused, "connection refused: nobody listens there".to_owned())
        }
        io::ErrorKind::TimedOut => {
            (Trouble::TimedOut, "timed out: nothing answers there".to_owned())
        }
        _ => (Trouble::Unreachable, format!("cannot be reached: {error}")),
    }
}

fn at_the_door(refused: Trouble) -> String {
    match refused {
        Trouble::OldSecret => {
            "the mesh's secret has changed since this node was told it: join with a new ticket"
        }
        Trouble::OtherVersion
        | Trouble::NameNotFound
        | Trouble::NotCarried
        | Trouble::Unreachable
        | Trouble::TimedOut
        | Trouble::ConnectionRefused
        | Trouble::HungUp
        | Trouble::WrongSecret
        | Trouble::OtherNode
        | Trouble::RefusedHere
        | Trouble::Lost
        | Trouble::Other => "the node there is of another version, and does not let us in",
    }
    .to_owned()
}

/// The reason at the bottom: above it libp2p says only that it failed.
fn innermost(error: &io::Error) -> String {
    let mut said = error.to_string();
    let mut cause: Option<&dyn Error> = error.get_ref().map(|error| error as &dyn Error);
    while let Some(error) = cause {
        said = error.to_string();
        cause = error.source();
    }
    said
}

fn host_and_port(address: &Multiaddr) -> String {
    if let Some(relay) = circuit::relay_in(address).filter(|_| circuit::is_relayed(address)) {
        return format!("through {}", short(&relay));
    }
    address_in(address).map_or_else(|| address.to_string(), |address| address.to_string())
}
