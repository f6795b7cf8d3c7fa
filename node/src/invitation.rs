//! Invitations: tickets that admit so many nodes, for so long. They carry no secret of the mesh,
//! but the key of one answer by the node that made them: it counts who comes, and gives a ticket of
//! the mesh or says why not.
//!
//! As a [ticket](crate::ticket) of version 3: flags (0), mesh (16), the invitation's number (8),
//! its key (32), the inviter (32), when it expires (8, milliseconds since 1970, big endian), and
//! addresses as there.

use std::{fmt, str::FromStr};

use mesh::name::id::{MeshId, NodeId};
use net::{Address, InvitationId, PeerAddress};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::ticket::{
    INVITATION, Ticket, TicketError, put_addresses, seal, take, take_addresses, unseal, usable,
};

/// The text that a node joins by.
#[derive(Clone, Debug)]
pub enum Join {
    /// It carries the mesh's secret.
    Ticket(Ticket),
    /// It has to be answered first.
    Invitation(Invitation),
}

impl FromStr for Join {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Join, TicketError> {
        let bytes = unseal(text)?;
        match bytes.first() {
            Some(&INVITATION) => {
                read(&bytes[1..]).map(Join::Invitation).ok_or(TicketError::Damaged)
            }
            Some(_) | None => text.parse().map(Join::Ticket),
        }
    }
}

/// See the module.
#[derive(Clone)]
pub struct Invitation {
    /// The mesh it leads to.
    pub mesh: MeshId,
    /// Names it at the inviter; nothing secret.
    pub id: InvitationId,
    /// A guest that has it is answered.
    pub key: Zeroizing<[u8; 32]>,
    /// The node that made it, and answers.
    pub inviter: NodeId,
    /// Unix milliseconds, by the inviter's clock.
    pub expires_ms: u64,
    /// Where the inviter is met.
    pub addresses: Vec<Address>,
}

impl Invitation {
    /// The same invitation, and the inviter is met there.
    #[must_use]
    pub fn at(self, addresses: Vec<Address>) -> Invitation {
        Invitation { addresses, ..self }
    }

    /// Where the inviter is met.
    pub fn peers(&self) -> impl Iterator<Item = PeerAddress> {
        let node = Some(self.inviter.0);
        self.addresses.iter().cloned().map(move |address| PeerAddress { node, address })
    }

    /// The word itself: not for logs, hence no `Display`. The first few addresses are in it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut bytes = Zeroizing::new(vec![INVITATION, 0]);
        bytes.extend(self.mesh.0);
        bytes.extend(self.id);
        bytes.extend(*self.key);
        bytes.extend(self.inviter.0);
        bytes.extend(self.expires_ms.to_be_bytes());
        put_addresses(&mut bytes, &usable(self.addresses.clone()));
        seal(bytes)
    }
}

/// The bytes after the version.
fn read(mut rest: &[u8]) -> Option<Invitation> {
    let [_flags] = take::<1>(&mut rest)?;
    let mesh = MeshId(take(&mut rest)?);
    let id = take(&mut rest)?;
    let key = Zeroizing::new(take(&mut rest)?);
    let inviter = NodeId(take(&mut rest)?);
    let expires_ms = u64::from_be_bytes(take(&mut rest)?);
    let addresses = take_addresses(&mut rest)?;
    rest.is_empty().then_some(Invitation { mesh, id, key, inviter, expires_ms, addresses })
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invitation")
            .field("mesh", &self.mesh)
            .field("inviter", &self.inviter)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The inviter's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Come in: a ticket of the mesh.
    Ticket(String),
    /// By its clock.
    Expired,
    /// As many nodes have come as it admits.
    UsedUp,
    /// By its operator.
    Revoked,
    /// The mesh's secret has changed since: that ends all tickets.
    SecretChanged,
    /// It cannot write down who comes.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation() -> Invitation {
        Invitation {
            mesh: MeshId([1; 16]),
            id: [2; 8],
            key: Zeroizing::new([0xa5; 32]),
            inviter: NodeId([4; 32]),
            expires_ms: 1_800_000_000_000,
            addresses: vec!["127.0.0.1:9231".parse().unwrap(), "[::1]:1".parse().unwrap()],
        }
    }

    #[test]
    fn invitations_survive_being_text_and_no_changed_one_is_read() {
        let text = invitation().to_text();
        let read: Join = format!(" {text}\n").parse().unwrap();
        let Join::Invitation(read) = read else { panic!("{read:?}") };
        assert_eq!(read.to_text(), text);
        assert_eq!((read.mesh, read.id, read.inviter), (MeshId([1; 16]), [2; 8], NodeId([4; 32])));
        assert_eq!((*read.key, read.expires_ms), ([0xa5; 32], 1_800_000_000_000));
        assert_eq!(read.addresses, invitation().addresses);
        for (at, old) in text.char_indices() {
            for new in "abz27A-é".chars().filter(|new| *new != old) {
                let mut changed = text.clone();
                changed.replace_range(at..at + 1, &new.to_string());
                assert!(changed.parse::<Join>().is_err(), "{at} {new}");
            }
            assert!(text[..at].parse::<Join>().is_err(), "cut at {at}");
        }
        assert!(text.parse::<Ticket>().is_err(), "it is no ticket of the mesh");
    }

    #[test]
    fn what_is_logged_of_an_invitation_is_no_secret() {
        let shown = format!("{:?}", Join::Invitation(invitation()));
        assert!(!shown.contains("a5a5") && !shown.contains("165, 165"), "{shown}");
    }
}
