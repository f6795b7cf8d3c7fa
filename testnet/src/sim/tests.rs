//! Worlds that are made for one question each.

mod correspondents;
mod flooding;
mod forks;
mod laptops;
mod leases;
mod parted;
mod private;
mod probing;
