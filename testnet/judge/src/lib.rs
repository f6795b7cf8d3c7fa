//! Judges histories of real nodes.
//!
//! A history is what clients of one room saw, in lines of JSON ([`line::Line`]; `docs/testing.md` has them for writers). Any program
//! may write one. The [`Judge`] reads it once, in time and memory that grow with its length alone, and says of each promise ([`Promise`])
//! whether it was kept, broken, or not tried. It uses nothing of the mesh, its simulator or their checkers: the rules are stated a second
//! time, so that an error in one statement is not in the other.

mod intern;
mod judge;
pub mod line;
mod report;

pub use self::{
    judge::Judge,
    report::{Finding, Promise, Report},
};

#[cfg(test)]
mod tests;
