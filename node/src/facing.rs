//! The address of this machine that another one sees: where a node listens that was given a ticket
//! from elsewhere.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use net::{Address, Net, PeerAddress};
use tokio::{net::lookup_host, time::timeout};

use crate::{
    limits::{FACING_LOOKED_AT_EVERY, FACING_LOOKS, FACING_LOOKUP_WITHIN},
    settings::Listen,
    ticket,
};

/// The addresses to bind. `inviters`: where the nodes are by whose tickets this one joined.
pub(crate) async fn addresses(listen: &[Listen], inviters: &[PeerAddress]) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for listen in listen {
        match listen {
            Listen::At(at) => {
                all.push(*at);
                all.extend(beside(*at));
            }
            Listen::Auto(port) => {
                let loopback = IpAddr::from([127, 0, 0, 1]);
                let seen = facing(inviters).await.into_iter().map(|(ip, _)| ip);
                all.extend([loopback].into_iter().chain(seen).map(|ip| SocketAddr::new(ip, *port)));
            }
        }
    }
    let mut unique = Vec::new();
    all.retain(|at| {
        let new = at.port() == 0 || !unique.contains(at);
        unique.push(*at);
        new
    });
    all
}

/// All IPv6 addresses of this machine, if `at` is all IPv4 ones, and it has any.
fn beside(at: SocketAddr) -> Option<SocketAddr> {
    let all = SocketAddr::new(IpAddr::from([0; 16]), at.port());
    let here = || UdpSocket::bind(SocketAddr::new(IpAddr::from([0; 16]), 0)).is_ok();
    (at.ip() == IpAddr::from([0; 4]) && here()).then_some(all)
}

/// Has the network listen at the address that faces the inviters now, whenever this machine is in
/// another network. Ends when nothing depends on that.
pub(crate) async fn follow(net: Net, listen: Vec<Listen>, inviters: Vec<PeerAddress>) {
    // An archive listens nowhere.
    let faces = listen.iter().any(|listen| matches!(listen, Listen::Auto(_)));
    if !faces || net.listening().is_empty() {
        return;
    }
    let mut moves = net.moves();
    while moves.changed().await.is_ok() {
        // Addresses come before routes and names do.
        for _ in 0..FACING_LOOKS {
            // Nothing to face them with: then there is nobody who could knock, or no name is found.
            if !facing(&inviters).await.is_empty() {
                let _ = net.listen(addresses(&listen, &inviters).await);
            }
            if timeout(FACING_LOOKED_AT_EVERY, moves.changed()).await.is_ok_and(|it| it.is_err()) {
                return;
            }
        }
    }
}

/// This machine's addresses towards the inviters that are not on it, each with one that it faces.
pub(crate) async fn facing(inviters: &[PeerAddress]) -> Vec<(IpAddr, Address)> {
    let mut found: Vec<(IpAddr, Address)> = Vec::new();
    for PeerAddress { address, .. } in
        inviters.iter().filter(|it| !ticket::is_loopback(&it.address))
    {
        let Ok(Ok(sockets)) = timeout(FACING_LOOKUP_WITHIN, lookup_host(address.to_string())).await
        else {
            continue;
        };
        for here in sockets.filter_map(towards) {
            if !here.is_loopback() && found.iter().all(|(ip, _)| *ip != here) {
                found.push((here, address.clone()));
            }
        }
    }
    found
}

/// The address that this machine would send from. Nothing is sent: a UDP socket that is connected
/// asks the table of routes.
fn towards(there: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if there.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(there).ok()?;
    let here = socket.local_addr().ok()?.ip();
    // An address of one link alone means nothing to nodes on another.
    let link_local = match here {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    (!here.is_unspecified() && !link_local).then_some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(texts: &[&str]) -> Vec<PeerAddress> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn tickets_of_this_machine_ask_for_loopback_alone() {
        let auto = [Listen::Auto(9231)];
        let loopback: Vec<SocketAddr> = vec!["127.0.0.1:9231".parse().unwrap()];
        assert_eq!(addresses(&auto, &[]).await, loopback);
        assert_eq!(addresses(&auto, &peers(&["127.0.0.1:9", "[::1]:9"])).await, loopback);
        assert_eq!(addresses(&auto, &peers(&["no-such-host.invalid:9"])).await, loopback);
    }

    #[tokio::test]
    async fn an_address_that_is_given_is_the_only_one() {
        let given: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let elsewhere = peers(&["192.0.2.77:9"]);
        assert_eq!(addresses(&[Listen::At(given)], &elsewhere).await, [given]);
    }

    #[tokio::test]
    async fn who_listens_at_all_addresses_listens_at_those_of_ipv6_too() {
        let all: SocketAddr = "0.0.0.0:7".parse().unwrap();
        let has = UdpSocket::bind("[::]:0").is_ok();
        let found = addresses(&[Listen::At(all)], &[]).await;
        assert_eq!(found.len(), 1 + usize::from(has), "{found:?}");
        assert!(found.iter().all(|at| at.ip().is_unspecified() && at.port() == 7), "{found:?}");
        let one: SocketAddr = "[::]:7".parse().unwrap();
        assert_eq!(addresses(&[Listen::At(one)], &[]).await, [one]);
    }

    /// A machine without a network has nothing to face it with.
    #[tokio::test]
    async fn a_ticket_from_elsewhere_asks_for_the_address_that_faces_it() {
        let there: SocketAddr = "198.51.100.77:9".parse().unwrap();
        let all = addresses(&[Listen::Auto(9231)], &peers(&[&there.to_string()])).await;
        let faces = towards(there).filter(|ip| !ip.is_loopback());
        assert_eq!(all.len(), 1 + usize::from(faces.is_some()), "{all:?}");
        assert_eq!(all.get(1).map(SocketAddr::ip), faces);
        assert!(all.iter().all(|at| at.port() == 9231), "{all:?}");
    }
}
