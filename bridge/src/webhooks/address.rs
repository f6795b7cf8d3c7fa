//! Which addresses are on the public internet: a client must not make its node call addresses that only the
//! node can reach.
//!
//! From the IANA special-purpose registries. An address that is not known to be public is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not public, by their first address and length.
const NOT_PUBLIC: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // behind a carrier's NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, where clouds keep their metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// IPv6 blocks within global unicast (2000::/3) that are not public.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo among them
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4: carries any IPv4 address
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Global unicast.
const GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// NAT64: an IPv4 address in its last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether everybody can reach it.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            None => {
                within_v6(address, GLOBAL)
                    && !NOT_PUBLIC_V6.iter().any(|block| within_v6(address, *block))
            }
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(first, bits): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ first.to_bits()) >> (u32::BITS - bits) == 0
    };
    !NOT_PUBLIC.iter().any(within)
}

/// The IPv4 address that is reached through it.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    address.to_ipv4_mapped().or_else(|| {
        let [.., a, b, c, d] = address.octets();
        within_v6(address, NAT64).then(|| Ipv4Addr::new(a, b, c, d))
    })
}

fn within_v6(address: Ipv6Addr, (first, bits): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (u128::BITS - bits) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(public: bool, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
        }
    }

    #[test]
    fn what_everybody_can_reach() {
        check(true, &["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1"]);
        check(true, &["172.32.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"]);
        check(true, &["2606:4700::1111", "2001:4860:4860::8888", "2003::1", "3ffe::1"]);
        check(true, &["::ffff:8.8.8.8", "64:ff9b::808:808"]);
    }

    #[test]
    fn what_only_some_can_reach() {
        check(false, &["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255"]);
        check(false, &["127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1"]);
        check(false, &["172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1"]);
        check(false, &["198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"]);
        check(false, &["224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"]);
        check(false, &["::", "::1", "::8.8.8.8", "fe80::1", "fec0::1", "fc00::1", "fd12::1"]);
        check(false, &["ff02::1", "2001::1", "2001:2::1", "2001:10::1", "2001:db8::1", "2002::1"]);
        check(false, &["3fff::1", "100::1", "5f00::1", "64:ff9b:1::808:808", "4000::1"]);
        check(false, &["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"]);
        check(false, &["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "::ffff:0:8.8.8.8"]);
    }
}
