//! Small worlds, all of them: two or three nodes, a few messages, a few faults, and every order in which they can happen.
//!
//! [Simulated worlds](crate::sim) find what is likely. Here nothing is left to chance: from a mesh that has just come together
//! every step is taken that there is, and every step from there, breadth first; states that are the same are taken once.
//! The promises of `docs/numbering.md` are judged in every state, by the same checkers. In reading order:
//!
//! - [`Setting`]: how large the worlds are; `step`: a step, and how it is written;
//! - `disk`, `facts`, `local`: one node. It is the real engine; a store is made where one is needed;
//! - `lab`: messages and states of nodes, each once, and the steps of single nodes, each worked out once; `digest`;
//! - `state`: a state of the world, and the steps from it;
//! - `judge`: the promises, in every state and at the end; `search`: all states.

mod digest;
mod disk;
mod facts;
mod judge;
mod lab;
mod local;
mod search;
mod setting;
mod state;
mod step;
#[cfg(test)]
mod tests;

use anyhow::Result;

pub use self::{
    search::{Failure, Report},
    setting::Setting,
};
use crate::sim::Broken;

/// Looks at every state of a small world; if steps are given, at those that come after them.
///
/// # Errors
///
/// They cannot be read, or not be taken. A broken promise is in the report.
pub fn search(setting: Setting, after: Option<&str>, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let after = after.map(step::read).transpose()?.unwrap_or_default();
    search::search(setting, after, tell)
}

/// Plays these steps in a small world, then its end.
///
/// # Errors
///
/// They cannot be read. A broken promise is the outcome.
pub fn replay(
    setting: Setting,
    steps: &str,
    tell: &mut dyn FnMut(&str),
) -> Result<Result<(), Broken>> {
    let steps = step::read(steps)?;
    let (messages, faults, waits) = (u8::MAX, u8::MAX, u8::MAX);
    let mut lab = lab::Lab::new(Setting { messages, faults, waits, ..setting });
    let root = match search::root(&mut lab) {
        Ok(root) => root,
        Err(broken) => return Ok(Err(broken)),
    };
    let state = match judge::take(&mut lab, root, &steps, tell)? {
        Ok(state) => state,
        Err(broken) => return Ok(Err(broken)),
    };
    tell("all faults are over");
    Ok(judge::Judge::default().end(&mut lab, &state))
}
