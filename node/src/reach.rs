//! Whether other nodes reach this one, or only through a third: a node of which that is true is alone
//! when that one goes, and its operator is to know.

use std::net::SocketAddr;

use protocol::operator::Peer;

use crate::{members, ticket};

/// The node without which this one would be alone: the only one that it is connected to, although
/// others are heard through it, or would be if they could connect to this one. `listening`: where
/// this one does.
pub(crate) fn only_through(peers: &[Peer], listening: &[SocketAddr]) -> Option<String> {
    let directly = |peer: &&Peer| peer.connected && peer.through.is_none();
    let mut up = peers.iter().filter(directly);
    let (Some(only), None) = (up.next(), up.next()) else { return None };
    let heard = peers.iter().any(|peer| !directly(&peer) && peer.alive);
    let elsewhere = only.addresses.iter().any(|at| is_elsewhere(at));
    let deaf = elsewhere && listening.iter().all(|at| at.ip().is_loopback());
    if !heard && !deaf {
        return None;
    }
    let id = only.node_id.as_deref().map_or("?", members::short);
    Some(only.name.as_deref().map_or_else(|| id.to_owned(), members::shown))
}

fn is_elsewhere(address: &str) -> bool {
    address.parse().is_ok_and(|address| !ticket::is_loopback(&address))
}

/// For people.
pub(crate) fn sentence(through: &str) -> String {
    format!("reached only through {through}: if that goes, you are alone")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str, at: &str, connected: bool) -> Peer {
        let (name, addresses) = (Some(name.to_owned()), vec![at.to_owned()]);
        Peer { name, addresses, connected, alive: true, ..Peer::default() }
    }

    #[test]
    fn a_node_is_reached_through_one_alone_if_it_hears_others_or_would() {
        let here: Vec<SocketAddr> = vec!["127.0.0.1:1".parse().unwrap()];
        let open: Vec<SocketAddr> = vec!["10.0.0.1:1".parse().unwrap()];
        let (a, b) = (peer("a", "10.0.0.2:1", true), peer("b", "10.0.0.3:1", true));
        let heard = Peer { connected: false, ..b.clone() };
        let gone = Peer { alive: false, ..heard.clone() };
        let local = peer("local", "127.0.0.1:5", true);
        let a_alone = Some("a".to_owned());
        assert_eq!(only_through(&[a.clone(), heard], &open), a_alone);
        assert_eq!(only_through(&[a.clone(), gone], &open), None);
        assert_eq!(only_through(std::slice::from_ref(&a), &open), None);
        assert_eq!(
            only_through(std::slice::from_ref(&a), &here),
            a_alone,
            "nobody else can connect to it"
        );
        let carried = Peer { through: Some("a".to_owned()), ..b.clone() };
        assert_eq!(only_through(&[a.clone(), carried], &open), a_alone, "it is carried by the one");
        assert_eq!(only_through(&[a, b], &here), None);
        assert_eq!(only_through(&[local], &here), None, "all are on this machine");
        assert_eq!(only_through(&[], &here), None);
    }
}
