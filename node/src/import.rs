//! `clawmeshd import`: the content of a ClawChat server, into a node that has nothing yet.
//!
//! All that cannot be brought is found before anything is written ([`plan`]). Then it is written in
//! an order that is always the same, in batches, each with how far it got ([`journal`]) in one
//! commit: so an import that was killed goes on, and one that is done is not done again ([`run`]).

mod choices;
mod journal;
mod keys;
mod plan;
mod run;
mod target;
mod trace;

pub(crate) use choices::{Choices, OpenVotes, OwnKeys};
pub(crate) use journal::Journal;
pub(crate) use keys::{ServerKey, server_key};
pub(crate) use plan::{Plan, reading::plan_of};
pub(crate) use run::{Brought, Watch, bring};
pub(crate) use target::{Target, is_there, open};
pub(crate) use trace::Trace;

#[cfg(test)]
mod tests;
