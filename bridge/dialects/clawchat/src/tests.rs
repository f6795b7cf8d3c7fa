//! The bridge as ClawChat's clients see it: over a mesh in memory, with sockets and without.

mod agenda;
mod approvals;
mod away;
mod direct;
mod echo;
mod keys;
mod lingering;
mod members;
mod once;
mod policies;
mod readers;
mod search;
mod session;
mod shared;
mod sockets;
mod sought;
mod stranger;
mod streams;
