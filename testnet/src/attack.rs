//! Attacks on real daemons that serve honest agents meanwhile, measured and judged.
//!
//! An attacker is an insider: a real daemon joins the mesh with its ticket, is admitted, and stops; with its keys a
//! peer goes on that keeps no rule. In reading order: `setting`, [`kind`] (all attacks, one row each), `insider` (how to
//! become one), `scene` (the attacked nodes), `lies` (well formed messages: the repertoire of the simulated liar), `abuse`
//! (floods and broken bytes), `clients` (enemies at the agents' doors: `people`, `envelopes` and `onlookers` are of other dialects), `load` (honest agents that measure),
//! `play` (one attack), `judge` (its limits).

mod abuse;
mod clients;
mod envelopes;
mod insider;
mod judge;
pub mod kind;
mod lies;
mod load;
mod onlookers;
mod people;
mod play;
mod scene;
mod setting;

pub use self::{
    judge::{Broken, Limits},
    load::Percentiles,
    play::{Outcome, play},
    setting::{Setting, Until},
};
