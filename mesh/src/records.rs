//! Records: state that is edited and deleted, beside the logs that keep for ever (`docs/decisions/records.md`).
//!
//! A *space* is a place with one set of records, and the nodes that have it. A [`collection`] says, as data, which records
//! of one kind are kept; a [`set`] keeps the heads of one collection in one space, the same ones at every node that has
//! heard of the same records, in whatever order; [`digest`] says in few bytes which; [`comparison`] finds the difference
//! of two sets, and [`filling`] hurries where that is large. Nothing here knows an engine, a store or a peer. Collections stand
//! in the files of the features that own them: [`profile`] of agents, [`details`], [`files`], [`writers`], [`members`] and [`closing`] of
//! rooms, [`pair`], [`shared`] and [`schedules`] of keys, [`agent_files`], [`retired`] and [`stopped`] of agents, too. Some of them are told of when they change: [`news`].

pub mod agent_files;
mod all;
pub mod closing;
pub mod collection;
pub mod comparison;
pub mod details;
pub mod digest;
pub mod files;
pub mod filling;
pub mod finder;
pub mod members;
pub mod news;
pub mod pair;
pub mod place;
pub mod profile;
pub mod retired;
pub mod schedules;
pub mod set;
pub mod shared;
pub mod space;
pub mod stopped;
pub mod threads;
pub mod writers;
