//! Where a peer may be: a host and a port, perhaps with the id expected there.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use libp2p::multiaddr::{Multiaddr, Protocol};

use crate::identity::{NodeId, in_hex, node_of};
use crate::limits::HOST_BYTES_MAX;
use crate::web::web_multiaddr;

/// A host (IP address or name) and a TCP port, and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    host: Host,
    port: u16,
    spoken: Spoken,
}

/// What carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Spoken {
    Tcp,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Spoken {
    /// Of an address as text, and the port if it names none.
    const SCHEMES: [(Spoken, &'static str, u16); 2] =
        [(Spoken::Ws, "ws://", 80), (Spoken::Wss, "wss://", 443)];
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

/// An [`Address`], and the node that must answer there if it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress {
    /// `None`: any node that answers there (and knows the mesh secret) is welcome.
    pub node: Option<NodeId>,
    /// Where to dial.
    pub address: Address,
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither `host:port` nor a multiaddr.
    #[error("not an address: write host:port, [ipv6]:port, wss://host or /ip4/…/tcp/…")]
    Syntax,
    /// Port 0, a wildcard or an impossible name.
    #[error("not an address that can be dialled: name a host and a port above 0")]
    Undiallable,
    /// The part in front of the `@` or behind `/p2p/`.
    #[error("not a node id: write 64 hex digits")]
    Node,
}

impl Address {
    /// # Errors
    /// Port 0 and unspecified addresses cannot be dialled; names have letters, digits, `-`, `_` and `.`.
    pub fn new(host: &str, port: u16) -> Result<Address, AddressError> {
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => Host::Ip(ip.to_canonical()),
            Err(_) => Host::Name(host.to_ascii_lowercase()),
        };
        let valid = match &host {
            Host::Ip(ip) => !ip.is_unspecified() && !ip.is_multicast(),
            Host::Name(name) => is_host_name(name),
        };
        if valid && port > 0 {
            Ok(Address { host, port, spoken: Spoken::Tcp })
        } else {
            Err(AddressError::Undiallable)
        }
    }

    /// The socket address, if the host is not a name, and TCP alone is spoken.
    #[must_use]
    pub fn socket(&self) -> Option<SocketAddr> {
        match (&self.host, self.spoken) {
            (Host::Ip(ip), Spoken::Tcp) => Some(SocketAddr::new(*ip, self.port)),
            (Host::Ip(_) | Host::Name(_), _) => None,
        }
    }

    /// The form in which libp2p dials it, at an address of its host.
    pub(crate) fn dialled_at(&self, socket: SocketAddr) -> Multiaddr {
        let name = match &self.host {
            Host::Ip(_) => None,
            Host::Name(name) => Some(name.as_str()),
        };
        match self.spoken {
            Spoken::Tcp => multiaddr_of(socket),
            Spoken::Ws => web_multiaddr(socket, name, false),
            Spoken::Wss => web_multiaddr(socket, name, true),
        }
    }

    /// Host and port for a lookup.
    pub(crate) fn parts(&self) -> (String, u16) {
        let host = match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        };
        (host, self.port)
    }

    /// Only good on the same machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.is_loopback(),
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    /// Means something else on every link, so that it is no use to others.
    pub(crate) fn is_link_local(&self) -> bool {
        match &self.host {
            Host::Ip(IpAddr::V4(ip)) => ip.is_link_local(),
            Host::Ip(IpAddr::V6(ip)) => ip.is_unicast_link_local(),
            Host::Name(_) => false,
        }
    }
}

/// How far an address leads: names and public addresses before those of a private network, those of
/// one link, and those of one machine.
fn reach_of(address: &Address) -> u8 {
    let private = match &address.host {
        Host::Ip(IpAddr::V4(ip)) => ip.is_private() || matches!(ip.octets(), [100, 64..128, ..]),
        Host::Ip(IpAddr::V6(ip)) => ip.is_unique_local(),
        Host::Name(_) => false,
    };
    if address.is_loopback() {
        3
    } else if address.is_link_local() {
        2
    } else {
        u8::from(private)
    }
}

/// In the order in which they are worth most to others, where only the first few fit: the farther
/// reaching first, and of those names, and IPv6 and IPv4 in turns.
pub(crate) fn best_first(addresses: Vec<Address>) -> Vec<Address> {
    let (mut turn, mut ranked) = ([0; 4].map(|_: u8| [0; 3]), Vec::new());
    for address in addresses {
        let reach = reach_of(&address);
        let kind = match &address.host {
            Host::Name(_) => 0,
            Host::Ip(IpAddr::V6(_)) => 1,
            Host::Ip(IpAddr::V4(_)) => 2,
        };
        let nth = &mut turn[usize::from(reach)][kind];
        ranked.push(((reach, if kind == 0 { 0 } else { 1 + *nth }, kind), address));
        *nth += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, address)| address).collect()
}

fn is_host_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= HOST_BYTES_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        // A number at the end is a mistyped IP address, and some resolvers accept strange ones.
        && !name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
}

impl TryFrom<SocketAddr> for Address {
    type Error = AddressError;

    fn try_from(socket: SocketAddr) -> Result<Address, AddressError> {
        Address::new(&socket.ip().to_string(), socket.port())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = Spoken::SCHEMES.iter().find(|(spoken, ..)| *spoken == self.spoken);
        scheme.map_or(Ok(()), |(_, scheme, _)| f.write_str(scheme))?;
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        for (spoken, scheme, port) in Spoken::SCHEMES {
            let Some(place) = text.strip_prefix(scheme) else { continue };
            let place = place.strip_suffix('/').unwrap_or(place);
            let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let place = if has_port { place.to_owned() } else { format!("{place}:{port}") };
            // One scheme, and nothing else but host and port.
            let address = place.parse::<Address>()?;
            let is_plain = address.spoken == Spoken::Tcp;
            return is_plain.then_some(Address { spoken, ..address }).ok_or(AddressError::Syntax);
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Address::try_from(socket);
        }
        let (host, port) = text.rsplit_once(':').ok_or(AddressError::Syntax)?;
        Address::new(host, port.parse().map_err(|_| AddressError::Syntax)?)
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "{}@", in_hex(node))?;
        }
        self.address.fmt(f)
    }
}

/// `host:port`, `node@host:port` with the node id in hex, or a multiaddr such as
/// `/ip4/10.0.0.7/tcp/7000/p2p/12D3…`.
impl FromStr for PeerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<PeerAddress, AddressError> {
        if text.starts_with('/') {
            return from_multiaddr(&text.parse().map_err(|_| AddressError::Syntax)?);
        }
        match text.split_once('@') {
            Some((node, address)) => {
                Ok(PeerAddress { node: Some(parse_node(node)?), address: address.parse()? })
            }
            None => Ok(PeerAddress { node: None, address: text.parse()? }),
        }
    }
}

pub(crate) fn parse_node(text: &str) -> Result<NodeId, AddressError> {
    if text.len() != 64 || !text.is_ascii() {
        return Err(AddressError::Node);
    }
    let mut node = NodeId::default();
    for (byte, pair) in node.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| AddressError::Node)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| AddressError::Node)?;
    }
    Ok(node)
}

fn from_multiaddr(multiaddr: &Multiaddr) -> Result<PeerAddress, AddressError> {
    let mut parts = multiaddr.iter();
    let host = host_of(parts.next()).ok_or(AddressError::Syntax)?;
    let Some(Protocol::Tcp(port)) = parts.next() else { return Err(AddressError::Syntax) };
    let (mut host, mut spoken, mut next) = (host, Spoken::Tcp, parts.next());
    let is_tls = next == Some(Protocol::Tls);
    if is_tls {
        next = parts.next();
    }
    if let Some(Protocol::Sni(name)) = &next {
        host = name.to_string();
        next = parts.next();
    }
    if let Some(Protocol::Ws(_)) = next {
        spoken = if is_tls { Spoken::Wss } else { Spoken::Ws };
        next = parts.next();
    } else if is_tls {
        return Err(AddressError::Syntax);
    }
    let node = match next {
        None => None,
        Some(Protocol::P2p(peer)) => Some(node_of(&peer).ok_or(AddressError::Node)?),
        Some(_) => return Err(AddressError::Syntax),
    };
    if parts.next().is_some() {
        // Where a relay is, is not where the node behind it is.
        return Err(AddressError::Syntax);
    }
    Ok(PeerAddress { node, address: Address { spoken, ..Address::new(&host, port)? } })
}

fn host_of(part: Option<Protocol<'_>>) -> Option<String> {
    if let Some(Protocol::Ip4(ip)) = part {
        Some(ip.to_string())
    } else if let Some(Protocol::Ip6(ip)) = part {
        Some(ip.to_string())
    } else if let Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name)) = part {
        Some(name.into_owned())
    } else {
        None
    }
}

/// The address in a multiaddr of the TCP transport; port 0 and wildcards are none.
pub(crate) fn address_in(multiaddr: &Multiaddr) -> Option<Address> {
    from_multiaddr(multiaddr).ok().map(|peer| peer.address)
}

/// A socket address as the TCP transport of libp2p has it.
pub(crate) fn multiaddr_of(socket: SocketAddr) -> Multiaddr {
    Multiaddr::from(socket.ip()).with(Protocol::Tcp(socket.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, AddressError>) {
        let got = text.parse::<PeerAddress>().map(|address| address.to_string());
        assert_eq!(
            got.as_deref(),
            expect.as_deref().map_err(|e| *e).as_ref().map(|e| &**e),
            "{text}"
        );
    }

    #[test]
    fn of_many_addresses_the_first_few_lead_far_and_are_of_both_kinds() {
        let all = [
            "127.0.0.1:7",
            "10.0.0.1:7",
            "[fe80::1]:7",
            "192.0.2.1:7",
            "[2001:db8::1]:7",
            "[2001:db8::2]:7",
            "[2001:db8::3]:7",
            "[fd00::1]:7",
            "192.0.2.2:7",
            "a.example:7",
            "100.64.0.1:7",
        ];
        let sorted = best_first(all.iter().map(|text| text.parse().unwrap()).collect());
        let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
        let expected = [
            "a.example:7",
            "[2001:db8::1]:7",
            "192.0.2.1:7",
            "[2001:db8::2]:7",
            "192.0.2.2:7",
            "[2001:db8::3]:7",
            "[fd00::1]:7",
            "10.0.0.1:7",
            "100.64.0.1:7",
            "[fe80::1]:7",
            "127.0.0.1:7",
        ];
        assert_eq!(texts, expected);
    }

    /// The peer id of some node.
    fn hex_peer() -> Vec<u8> {
        libp2p::identity::Keypair::ed25519_from_bytes([1; 32])
            .unwrap()
            .public()
            .to_peer_id()
            .to_bytes()
    }

    #[test]
    fn addresses_parse() {
        let id = "ab".repeat(32);
        check("127.0.0.1:7000", Ok("127.0.0.1:7000"));
        check("[::1]:7000", Ok("[::1]:7000"));
        check("Host-1.example:7000", Ok("host-1.example:7000"));
        check(&format!("{id}@h:1"), Ok(&format!("{id}@h:1")));
        check("wss://Relay.example", Ok("wss://relay.example:443"));
        check("ws://relay.example/", Ok("ws://relay.example:80"));
        check("wss://10.0.0.1:8443", Ok("wss://10.0.0.1:8443"));
        check("wss://[2001:db8::1]", Ok("wss://[2001:db8::1]:443"));
        check("ws://[2001:db8::1]:81", Ok("ws://[2001:db8::1]:81"));
        check(&format!("{id}@wss://h:1"), Ok(&format!("{id}@wss://h:1")));
        check("wss://ws://h:1", Err(AddressError::Syntax));
        check("https://h", Err(AddressError::Syntax));
        check("wss://h/path", Err(AddressError::Undiallable));
        check("/ip4/10.0.0.1/tcp/443/tls/sni/a.example/ws", Ok("wss://a.example:443"));
        check("/ip4/10.0.0.1/tcp/80/ws", Ok("ws://10.0.0.1:80"));
        check("/ip4/10.0.0.1/tcp/443/tls", Err(AddressError::Syntax));
        check("/ip4/10.0.0.1/tcp/7", Ok("10.0.0.1:7"));
        check("/dns4/a.example/tcp/7", Ok("a.example:7"));
        check("10.0.0.1:0", Err(AddressError::Undiallable));
        check("0.0.0.0:7", Err(AddressError::Undiallable));
        check("10.0.0.256:7", Err(AddressError::Undiallable));
        check("a b:7", Err(AddressError::Undiallable));
        check("host", Err(AddressError::Syntax));
        check("host:70000", Err(AddressError::Syntax));
        check("/ip4/10.0.0.1/udp/7", Err(AddressError::Syntax));
        check("abc@host:7", Err(AddressError::Node));
        let relay = libp2p::PeerId::from_bytes(&hex_peer()).unwrap();
        check(&format!("/ip4/10.0.0.1/tcp/7/p2p/{relay}/p2p-circuit"), Err(AddressError::Syntax));
    }
}
