//! The promises of the store, on files, on disks that crash, and for clients that roam.

mod crash;
mod keep;
mod open;
mod rows;
mod spans;
