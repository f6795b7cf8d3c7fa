//! Tickets: all that a new node needs to join a mesh, as one word of text.
//!
//! `clawmesh1` and base32 (RFC 4648, lower case, no padding) of: version (1; 2 once the secret has
//! changed), a flag (1: the inviter is the founder), in version 2 the mesh's id (16) and the number
//! of its secret (8), the mesh's secret (32), its founder (32), the inviter (32, unless it is the
//! founder), the number of addresses (1), each with its length (1) before its text; and the CRC-32
//! of all that (4, big endian). A changed character changes at most 5 adjacent bits, which CRC-32
//! always notices.

use std::{fmt, str::FromStr};

use mesh::{
    LinkSecret, MeshSecret,
    name::id::{MeshId, NodeId},
};
use net::{Address, Net, PeerAddress};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::limits::{ADDRESS_BYTES_MAX, TICKET_ADDRESSES_MAX, TICKET_TEXT_MAX};

const PREFIX: &str = "clawmesh1";
/// Of a mesh whose secret never changed.
const VERSION: u8 = 1;
/// Of one whose secret has.
const RENEWED: u8 = 2;
/// Of an [invitation](crate::invitation), which carries no secret of the mesh.
pub(crate) const INVITATION: u8 = 3;
const INVITED_BY_FOUNDER: u8 = 1;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A mesh's secret, and where one of its nodes is. A node that has it is in.
#[derive(Clone)]
pub struct Ticket {
    mesh: MeshSecret,
    inviter: NodeId,
    addresses: Vec<Address>,
}

/// Why a text is not a ticket. It never quotes the text: that may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// Something else.
    #[error("not a ticket: it begins with {PREFIX:?}; `clawmeshd invite` prints one")]
    Prefix,
    /// A later one.
    #[error("a ticket of version {0}, made by a later clawmeshd: run that one here too")]
    Version(u8),
    /// Cut off, or changed.
    #[error("the ticket is damaged: copy it again, whole and unchanged")]
    Damaged,
}

impl Ticket {
    /// An invitation into `mesh` by its node `inviter`, which is met at `addresses`. The first few
    /// of them are kept.
    #[must_use]
    pub fn new(mesh: MeshSecret, inviter: NodeId, addresses: Vec<Address>) -> Ticket {
        Ticket { mesh, inviter, addresses: usable(addresses) }
    }

    /// The mesh it leads to.
    #[must_use]
    pub fn mesh(&self) -> &MeshSecret {
        &self.mesh
    }

    /// The same invitation, and the inviter is met there. The first few addresses are kept.
    #[must_use]
    pub fn at(self, addresses: Vec<Address>) -> Ticket {
        Ticket::new(self.mesh, self.inviter, addresses)
    }

    /// The node that made it.
    #[must_use]
    pub fn inviter(&self) -> NodeId {
        self.inviter
    }

    /// Where the inviter is met.
    pub fn peers(&self) -> impl Iterator<Item = PeerAddress> {
        let node = Some(self.inviter.0);
        self.addresses.iter().cloned().map(move |address| PeerAddress { node, address })
    }

    /// The word itself. It is a secret: not for logs, hence no `Display`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let by_founder = self.inviter == self.mesh.founder();
        let link = self.mesh.link();
        let renewed = link.epoch().number > 0;
        let version = if renewed { RENEWED } else { VERSION };
        let mut bytes = Zeroizing::new(vec![version, u8::from(by_founder) * INVITED_BY_FOUNDER]);
        if renewed {
            bytes.extend(self.mesh.mesh_id().0);
            bytes.extend(link.epoch().number.to_be_bytes());
        }
        bytes.extend(link.bytes());
        bytes.extend(self.mesh.founder().0);
        if !by_founder {
            bytes.extend(self.inviter.0);
        }
        put_addresses(&mut bytes, &self.addresses);
        seal(bytes)
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let bytes = unseal(text)?;
        let mut rest = &bytes[..];
        let renewed = match take::<1>(&mut rest) {
            Some([VERSION]) => false,
            Some([RENEWED]) => true,
            Some([other]) => return Err(TicketError::Version(other)),
            None => return Err(TicketError::Damaged),
        };
        read(rest, renewed).ok_or(TicketError::Damaged)
    }
}

/// The bytes after the version.
fn read(mut rest: &[u8], renewed: bool) -> Option<Ticket> {
    let [flags] = take::<1>(&mut rest)?;
    let known = if renewed {
        let mesh = MeshId(take(&mut rest)?);
        Some((mesh, u64::from_be_bytes(take(&mut rest)?)))
    } else {
        None
    };
    let secret = Zeroizing::new(take::<32>(&mut rest)?);
    let founder = NodeId(take(&mut rest)?);
    let inviter = if flags & INVITED_BY_FOUNDER != 0 { founder } else { NodeId(take(&mut rest)?) };
    let addresses = take_addresses(&mut rest)?;
    let mesh = match known {
        // Number 0 is the founding secret, which is in a ticket of version 1.
        Some((_, 0)) => return None,
        Some((mesh, number)) => {
            MeshSecret::renewed(mesh, founder, LinkSecret::new(number, *secret))
        }
        None => MeshSecret::new(*secret, founder),
    };
    rest.is_empty().then(|| Ticket::new(mesh, inviter, addresses))
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("mesh", &self.mesh)
            .field("inviter", &self.inviter)
            .field("addresses", &self.addresses)
            .finish()
    }
}

/// The first few addresses that fit.
pub(crate) fn usable(addresses: Vec<Address>) -> Vec<Address> {
    let fits = |address: &Address| address.to_string().len() <= ADDRESS_BYTES_MAX;
    addresses.into_iter().filter(fits).take(TICKET_ADDRESSES_MAX).collect()
}

/// Addresses of this node for a ticket.
pub(crate) fn addresses_of(net: &Net) -> Vec<Address> {
    reachable(net.addresses())
}

/// Addresses for a ticket: those of this machine alone only if there are no others.
pub(crate) fn reachable(addresses: Vec<Address>) -> Vec<Address> {
    let (here, mut others): (Vec<_>, Vec<_>) = addresses.into_iter().partition(is_loopback);
    if others.is_empty() {
        others = here;
    }
    others
}

/// Whether others cannot reach it.
pub(crate) fn is_loopback(address: &Address) -> bool {
    address.socket().is_some_and(|at| at.ip().is_loopback())
}

pub(crate) fn put_addresses(bytes: &mut Vec<u8>, addresses: &[Address]) {
    bytes.push(u8::try_from(addresses.len()).unwrap_or(u8::MAX));
    for address in addresses.iter().map(Address::to_string) {
        bytes.push(u8::try_from(address.len()).unwrap_or(u8::MAX));
        bytes.extend(address.as_bytes());
    }
}

pub(crate) fn take_addresses(rest: &mut &[u8]) -> Option<Vec<Address>> {
    let [count] = take::<1>(rest)?;
    let mut addresses = Vec::new();
    for _ in 0..count {
        let [len] = take::<1>(rest)?;
        let (text, after) = rest.split_at_checked(usize::from(len))?;
        addresses.push(std::str::from_utf8(text).ok()?.parse().ok()?);
        *rest = after;
    }
    Some(addresses)
}

/// The word that these bytes are.
pub(crate) fn seal(mut bytes: Zeroizing<Vec<u8>>) -> String {
    let sum = crc32(&bytes);
    bytes.extend(sum.to_be_bytes());
    format!("{PREFIX}{}", to_base32(&bytes))
}

/// The bytes that a word is, whole and unchanged.
pub(crate) fn unseal(text: &str) -> Result<Zeroizing<Vec<u8>>, TicketError> {
    let digits = text.trim().strip_prefix(PREFIX).ok_or(TicketError::Prefix)?;
    if digits.len() > TICKET_TEXT_MAX {
        return Err(TicketError::Damaged);
    }
    let mut bytes = Zeroizing::new(from_base32(digits).ok_or(TicketError::Damaged)?);
    let (rest, sum) = bytes.split_last_chunk::<4>().ok_or(TicketError::Damaged)?;
    if u32::from_be_bytes(*sum) != crc32(rest) {
        return Err(TicketError::Damaged);
    }
    let length = rest.len();
    bytes.truncate(length);
    Ok(bytes)
}

pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*head)
}

fn to_base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(digit(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(digit(held << (5 - bits)));
    }
    text
}

fn digit(value: u32) -> char {
    char::from(ALPHABET[(value & 31) as usize])
}

/// Strict: a text that does not come from [`to_base32`] is refused.
fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut held, mut bits) = (0_u32, 0);
    for digit in text.bytes() {
        let value = ALPHABET.iter().position(|letter| *letter == digit)?;
        held = held << 5 | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    (bits < 5 && held == 0).then_some(bytes)
}

/// CRC-32 as in IEEE 802.3 (reflected, polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets() -> Vec<Ticket> {
        let (founder, inviter) = (NodeId([3; 32]), NodeId([4; 32]));
        let mesh = MeshSecret::new([0xa5; 32], founder);
        let mut renewed = mesh.clone();
        renewed.renew(LinkSecret::new(3, [0xa5; 32]));
        let at = |text: &str| text.parse::<Address>().unwrap();
        vec![
            Ticket::new(renewed, inviter, vec![at("127.0.0.1:9231")]),
            Ticket::new(mesh.clone(), founder, vec![at("127.0.0.1:9231")]),
            Ticket::new(mesh.clone(), inviter, vec![at("[::1]:1"), at("host.example:65535")]),
            Ticket::new(mesh, inviter, Vec::new()),
        ]
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn tickets_survive_being_text() {
        for ticket in tickets() {
            let read: Ticket = format!(" {}\n", ticket.to_text()).parse().unwrap();
            assert_eq!(read.mesh.link(), ticket.mesh.link());
            assert_eq!(read.mesh.founder(), ticket.mesh.founder());
            assert_eq!(read.mesh.mesh_id(), ticket.mesh.mesh_id());
            assert_eq!(read.inviter, ticket.inviter);
            assert_eq!(read.addresses, ticket.addresses);
        }
    }

    #[test]
    fn a_ticket_with_any_one_character_changed_is_refused() {
        for ticket in tickets() {
            let text = ticket.to_text();
            for (at, old) in text.char_indices() {
                for new in "abcxyz27A0-é".chars().filter(|new| *new != old) {
                    let mut changed = text.clone();
                    changed.replace_range(at..at + 1, &new.to_string());
                    let error = changed.parse::<Ticket>().err();
                    let expect =
                        if at < PREFIX.len() { TicketError::Prefix } else { TicketError::Damaged };
                    assert_eq!(error, Some(expect), "{at} {new}");
                }
                assert!(text[..at].parse::<Ticket>().is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn a_ticket_of_a_changed_secret_has_not_the_number_of_the_first() {
        let mut bytes = Zeroizing::new(vec![RENEWED, INVITED_BY_FOUNDER]);
        bytes.extend([7; 16]);
        bytes.extend([0; 8]);
        bytes.extend([[5; 32], [3; 32]].concat());
        bytes.push(0);
        let number = bytes.len() - 1 - 64 - 1;
        assert_eq!(seal(bytes.clone()).parse::<Ticket>().err(), Some(TicketError::Damaged));
        bytes[number] = 1;
        assert!(seal(bytes).parse::<Ticket>().is_ok());
    }

    #[test]
    fn a_later_ticket_says_so() {
        let mut bytes = vec![4, 0, 7];
        bytes.extend(crc32(&bytes).to_be_bytes());
        let text = format!("{PREFIX}{}", to_base32(&bytes));
        assert_eq!(text.parse::<Ticket>().err(), Some(TicketError::Version(4)));
    }

    #[test]
    fn what_is_logged_of_a_ticket_is_no_secret() {
        let ticket = &tickets()[0];
        let shown = format!("{ticket:?}");
        assert!(!shown.contains("a5a5") && !shown.contains("165, 165"), "{shown}");
    }
}
