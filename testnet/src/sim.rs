//! The simulated world: the real engine on the real store, virtual time, faults; one seed, one world.
//!
//! [`run()`] plays the world of a seed and judges it. In reading order:
//!
//! - `plan` (faults, weather, and when), `dice` (the only chance), `signing`, `keys`, `retention`, [`Kind`];
//! - `timeline`, `network`, `node`, `rooms` and, over them, `cluster`: nodes, their network and their time. They know
//!   no agents;
//! - `parts` (the trait of all that agents do: its calls, and the answers to them), and the parts: `agents`, `votes`,
//!   `elections`, `tasks`, `holders` (agents with minted keys), `roamers` (clients that wander, and clients that stay),
//!   `correspondents`
//!   (agents with inboxes, and agents that answer everything), `laptops` (agents at two nodes that are never up together), `operators`, `script` (a scenario instead of chance), `probes` (questions from outside);
//! - `promises`, `bodies` and `copies`: checkers of every moment; `liar`: a member that lies; [`Coverage`];
//! - `world`: hands events, effects and answers to the parts;
//! - `run` and `end`: a world from its plan to its end, and the checks there. `votes::end` and its like, `still`, `proven`
//!   and `sound` look at a world; nothing of a world knows them;
//! - `scripted` and `handing`: the steps of a [scenario](crate::scenario) in a world.

mod agents;
mod approvals;
mod bodies;
mod cluster;
mod copies;
mod correspondents;
mod coverage;
pub(crate) mod dice;
mod elections;
mod end;
mod handing;
mod holders;
pub(crate) mod keys;
mod kind;
mod laptops;
pub(crate) mod liar;
mod network;
mod node;
mod onces;
mod operators;
mod outcome;
mod parts;
mod plan;
mod probes;
pub(crate) mod promises;
mod proven;
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
#[cfg(test)]
mod tests;
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
