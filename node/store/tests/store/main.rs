//! The promises of the store, on files, on disks that crash, and for clients that roam.

mod crash;
mod keep;
mod model;
mod open;
mod roam;
mod rows;
mod spans;
