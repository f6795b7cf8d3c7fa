//! Many nodes on one machine, with faults.
//!
//! [`sim`] is a world in virtual time: the real engine and store, everything else made up, one seed one
//! world; [`worlds`] plays many of them. [`process`] is the other one: real daemons, real sockets,
//! signals; [`binary`] finds the daemon to run and [`wire`] (ClawTank's: `tank`, GoClaw's: `goclaw`, the index's: `finder`) is a client that repairs nothing, so that
//! errors of nodes show, and [`pipe`] a link with faults. [`scenario`] has events and promises as data, for either world;
//! [`kills`] loses their disks, [`attack`] does harm to real daemons; [`mod@bench`] measures them, [`demo`] shows them to people, [`large`] counts what large meshes cost, [`many`] measures many daemons that are idle, and [`small`] plays all worlds of a few nodes. [`cli`] is the program `clawmesh-testnet` over all.

pub mod attack;
pub mod bench;
pub mod binary;
pub mod cli;
pub mod demo;
mod distribution;
mod finder;
mod goclaw;
mod http;
pub mod kills;
pub mod large;
pub mod many;
pub mod pipe;
mod proc;
pub mod process;
pub mod scenario;
pub mod sim;
pub mod small;
mod table;
mod tank;
pub mod wire;
pub mod worlds;
