//! Settings of a network, and why it may not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use zeroize::Zeroizing;

use crate::address::{Address, PeerAddress};
use crate::web::Web;

/// 32 secret bytes; wiped when dropped, never printed.
#[derive(Clone)]
pub struct Secret(pub(crate) Zeroizing<[u8; 32]>);

impl From<[u8; 32]> for Secret {
    fn from(bytes: [u8; 32]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whom to connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// Everyone that can be heard of, up to [`crate::limits::FULL_MESH_PEERS`].
    #[default]
    FullMesh,
    /// Only the configured peers (and those that connect); nothing is announced or believed.
    Configured,
}

/// Whether this node carries circuits between others that cannot reach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relaying {
    /// No. It may still be reached through others.
    Off,
    /// Between members that are connected to it.
    #[default]
    Members,
}

/// The input of [`crate::start`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of our ed25519 key.
    pub secret_key: Secret,
    /// Only nodes with the same key can connect.
    pub pre_shared_key: Secret,
    /// Keys before that one, the newest first: members that were away while it changed know no
    /// other. May be empty.
    pub former_keys: Vec<Secret>,
    /// Where to listen: port 0 takes a free one, an unspecified address means all interfaces. May
    /// be empty.
    pub listen: Vec<SocketAddr>,
    /// Where to take links over WebSocket.
    pub web: Web,
    /// Addresses to announce besides those we listen on: behind address translation, or by name.
    pub announce: Vec<Address>,
    /// Dialled at once, and again for ever.
    pub peers: Vec<PeerAddress>,
    /// Number of gossip topics, the same on all nodes; at most [`crate::limits::TOPICS_MAX`].
    pub topics: u16,
    /// Those of them that this node listens to; `None`: all.
    pub listens_to: Option<Vec<u16>>,
    /// Whom to connect to besides.
    pub discovery: Discovery,
    /// Whom to carry circuits for.
    pub relaying: Relaying,
    /// Bytes of all circuits together that are carried in a second; 0 is without a bound.
    /// [`crate::limits::RELAY_BYTES_PER_SECOND`].
    pub relay_rate: u64,
    /// What it does to the bytes that it carries.
    #[cfg(test)]
    pub(crate) lie: crate::pace::Lies,
}

/// Why the network did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is in use, or not one of this machine.
    #[error("listen on {address}: choose another address or stop what uses it")]
    Listen {
        /// As in the settings.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// More topics than a peer accepts.
    #[error("use {0} topics: at most {max} are possible", max = crate::limits::TOPICS_MAX)]
    Topics(u16),
    /// A bug or an incompatible libp2p.
    #[error("set up libp2p: {0}")]
    Setup(String),
}
