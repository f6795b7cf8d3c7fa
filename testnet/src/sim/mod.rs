//! The simulated world: the real engine on the real store, virtual time, faults; one seed, one world.
//!
//! [`run()`] plays the world of a seed and judges it. In reading order: [`plan`] (what will happen),
//! [`world`] (how it happens), `node`, [`network`], `agents`, `roamer`, `votes`, `elections`,
//! `tasks`, `holders`, `keyed`, `kept`, `sound`, [`promises`] (what must hold), [`coverage`] (what happened). `script` and `scripted` are the
//! agents and the steps of a [scenario](crate::scenario), which replace chance.

mod agents;
mod bodies;
mod cluster;
mod coverage;
pub(crate) mod dice;
mod elections;
mod end;
#[cfg(test)]
mod forks;
mod handing;
mod holders;
mod kind;
pub(crate) mod liar;
mod network;
mod node;
mod operators;
mod outcome;
#[cfg(test)]
mod parted;
mod parts;
mod plan;
#[cfg(test)]
mod private;
mod probes;
#[cfg(test)]
mod probing;
mod promises;
mod retention;
mod roamers;
mod rooms;
mod run;
mod script;
pub(crate) mod scripted;
pub(crate) mod signing;
mod sound;
mod still;
mod tasks;
mod timeline;
mod votes;
mod world;

pub use self::{
    coverage::Coverage,
    kind::Kind,
    outcome::{Failure, Report},
    promises::Broken,
    run::run,
};
