//! Worlds that are made for one question each.

mod forks;
mod parted;
mod private;
mod probing;
