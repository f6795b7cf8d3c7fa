//! Many nodes on one machine, with faults.
//!
//! [`sim`] is a world in virtual time: the real engine and store, everything else made up, one seed one
//! world.

pub mod sim;
