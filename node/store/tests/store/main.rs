//! The promises of the store, on files, on disks that crash, and for clients that roam.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod check;
mod copies;
mod copy;
mod crash;
mod followed;
mod full;
mod keep;
mod lone;
mod model;
mod open;
mod past;
mod prune;
mod records;
mod replaced;
mod restart;
mod roam;
mod rows;
mod sealed;
mod search;
mod spans;
