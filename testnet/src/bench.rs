//! The figures that the project promises, measured on real daemons.
//!
//! Load and daemons share the machine. Each [`Row`] starts the nodes that it needs, measures, and shows
//! its figures beside their targets (`figure`) and beside floors, below which no server can be
//! (`floors`), measured in the same run. `single` has the rows that any ClawChat server can be
//! measured by.

mod clawtank;
mod connection;
mod figure;
mod finder;
mod floors;
mod goclaw;
mod growth;
mod keeping;
mod load;
mod measure;
mod nats;
mod nodes;
mod page;
mod profiles;
mod report;
mod run;
mod search;
mod setting;
mod single;
mod svg;
mod tools;

pub use self::{
    growth::{Growth, grow},
    measure::measure,
    report::Report,
    setting::{Row, Setting, Target},
    svg::draw,
};
