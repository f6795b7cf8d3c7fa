//! Names of things: ids, numbers, time, keys.

pub mod account;
pub mod agent;
pub mod digest;
pub mod group;
pub mod id;
pub mod identity;
pub mod key;
pub mod number;
pub mod time;
