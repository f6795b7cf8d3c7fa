//! The address that a request comes from, behind proxies of the operator's.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, header::HeaderName};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The nearest address that is not a proxy of the operator's. Anybody could have written the hops before
/// it in `X-Forwarded-For`.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    let is_trusted = |hop: IpAddr| trusted.iter().any(|proxy| proxy.to_canonical() == hop);
    let mut client = peer.to_canonical();
    let values: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
    for hop in values.iter().rev().flat_map(|value| value.rsplit(',')) {
        if !is_trusted(client) {
            break;
        }
        let Some(hop) = address(hop.trim()) else { break };
        client = hop;
    }
    client
}

/// Whether a request says that it came by way of a proxy that is none of the operator's.
pub(super) fn is_forwarded(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> bool {
    let is_trusted = trusted.iter().any(|proxy| proxy.to_canonical() == peer.to_canonical());
    let marks = [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED, REAL_IP];
    !is_trusted && marks.iter().any(|mark| headers.contains_key(mark))
}

/// Whether the client speaks TLS with a proxy of the operator's, as that says.
pub(super) fn is_forwarded_tls(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> bool {
    let is_trusted = trusted.iter().any(|proxy| proxy.to_canonical() == peer.to_canonical());
    let mut said = headers.get_all(FORWARDED_PROTO).iter().filter_map(|value| value.to_str().ok());
    let nearest = said.next_back().and_then(|value| value.rsplit(',').next());
    is_trusted && nearest.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// One client can have many addresses: an IPv6 address stands for its network of 64 bits.
pub(super) fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_before_a_proxy_counts_from_a_trusted_one_alone() {
        let trusted = ["10.0.0.1".parse().unwrap()];
        for (peer, proto, expect) in [
            ("10.0.0.1", Some("https"), true),
            ("::ffff:10.0.0.1", Some("http, HTTPS"), true),
            ("10.0.0.1", Some("https, http"), false),
            ("10.0.0.1", None, false),
            ("1.1.1.1", Some("https"), false),
        ] {
            let headers = proto.map(|proto| (FORWARDED_PROTO, proto.parse().unwrap()));
            let headers = headers.into_iter().collect();
            let found = is_forwarded_tls(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(found, expect, "{peer} {proto:?}");
        }
    }

    #[test]
    fn a_proxy_that_nobody_trusts_is_noticed() {
        let trusted = ["10.0.0.1".parse().unwrap()];
        let says = |mark: HeaderName| [(mark, "1.2.3.4".parse().unwrap())].into_iter().collect();
        for mark in [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED, REAL_IP] {
            let headers: HeaderMap = says(mark);
            assert!(is_forwarded("127.0.0.1".parse().unwrap(), &headers, &trusted));
            assert!(!is_forwarded("10.0.0.1".parse().unwrap(), &headers, &trusted));
        }
        assert!(!is_forwarded("127.0.0.1".parse().unwrap(), &HeaderMap::new(), &trusted));
    }

    #[test]
    fn a_forwarded_address_counts_from_a_trusted_proxy_alone() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let trusted = [ip("10.0.0.1"), ip("10.0.0.2")];
        for (peer, forwarded, expect) in [
            ("1.1.1.1", &["2.2.2.2"][..], "1.1.1.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["2.2.2.2"], "2.2.2.2"),
            ("::ffff:10.0.0.1", &["2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3, 2.2.2.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3", "2.2.2.2,10.0.0.2"], "2.2.2.2"),
            ("10.0.0.1", &["3.3.3.3, junk, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["[2001:db8::1]:4000"], "2001:db8::1"),
            ("10.0.0.1", &["2.2.2.2:4000"], "2.2.2.2"),
        ] {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append(FORWARDED_FOR, value.parse().unwrap());
            }
            assert_eq!(client(ip(peer), &headers, &trusted), ip(expect), "{peer} {forwarded:?}");
        }
        assert_eq!(neighbourhood(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_eq!(neighbourhood(ip("1.2.3.4")), ip("1.2.3.4"));
    }
}
