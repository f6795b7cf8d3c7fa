//! Names of things: ids, numbers, time, keys.

pub mod id;
pub mod identity;
pub mod number;
pub mod time;
