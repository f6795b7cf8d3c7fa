//! One binary for all promises that cross packages. See the library.

mod bench;
mod clients;
mod conformance;
mod demo;
mod end_to_end;
mod examples;
mod installer;
mod pasted;
mod scenarios;
mod simulation;
mod tree;
mod warnings;
mod wire_page;
