//! The network of a node: gossip to everyone, frames to one peer, and presence. It moves bytes and
//! does not know their meaning; it depends on neither the core nor the store.
//!
//! One task owns the libp2p swarm. The owner holds a [`Net`], whose calls never wait, and an
//! [`Inbox`], which it must empty: a full inbox stops the reading of frames (flow control up to the
//! sender), drops gossip, and delays `Up` and `Down` but never loses them. **The contract is
//! [`Incoming`]**: between a node's `Up` and its `Down`, frames arrive in order and without gaps;
//! gossip may be lost at any time.
//!
//! In reading order: [`limits`] (every bound), `identity`, `address`, `settings`, `inbox`, `handle`
//! (the API), `orders` (from it to the task), `listening` (the first step); `frames` and
//! `announcement` (bytes on the wire), `outbox`, `link` (one peer's streams), `book`, `dial` and
//! `backoff` (known nodes, and when to dial them), `relay` (how much gossip is passed on), `circuit`
//! (connections through a third node), `pace` (how fast), `gate` (which nodes may connect), `keys` (with which pre-shared key), `private` (a connection under
//! one), `door` (the word that lets it in), `trouble` (why there is no link), `twins` (nodes that run twice), `admission` (guests with an
//! invitation), `stall` (dead sockets), `echo` (round trips), `machine` (addresses that change, and sleep), `newest` (one connection
//! to a peer), `topics` (peers' subscriptions), `behaviour` (the libp2p stack), `task` (the loop);
//! [`testing`] (a peer without manners, to test others with).

mod address;
mod admission;
mod announcement;
mod backoff;
mod behaviour;
mod book;
mod circuit;
mod dial;
mod door;
mod echo;
mod frames;
mod gate;
mod handle;
mod identity;
mod inbox;
mod keys;
pub mod limits;
mod link;
mod listening;
mod machine;
mod newest;
mod orders;
mod outbox;
mod pace;
mod private;
mod relay;
mod settings;
mod stall;
mod task;
pub mod testing;
#[cfg(test)]
mod tests;
mod topics;
mod trouble;
mod twins;
mod web;

pub use address::{Address, AddressError, PeerAddress};
pub use admission::{AdmissionError, ask_admission};
pub use echo::NoEcho;
pub use handle::{Net, PeerStatus, PublishError, start};
pub use identity::NodeId;
pub use inbox::{Inbox, Incoming, Share, Ticket};
pub use keys::{Doorkeeper, InvitationId};
pub use orders::{Reason, Verdict};
pub use outbox::{QueueLength, SendError};
pub use settings::{Discovery, Relaying, Secret, Settings, StartError};
pub use trouble::{NoLink, Trouble};
pub use web::{PATH as WEB_PATH, Web};
