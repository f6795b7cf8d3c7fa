//! The place where a host is set up, and all that is written for it.

use std::path::PathBuf;

use super::change::Piece;
use super::program::Program;

/// How an agent uses the mesh: hosts read it when there is need.
pub(super) const SKILL: &str = include_str!("skill.md");

/// Where a host is set up, and with which program.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) home: PathBuf,
    /// For this project alone.
    pub(super) project: Option<PathBuf>,
    pub(super) program: Program,
}

impl Place {
    /// A folder of the user's that a variable can name, as hosts have them.
    pub(super) fn folder(&self, variable: &str, otherwise: &str) -> PathBuf {
        let named = std::env::var_os(variable).filter(|value| !value.is_empty());
        named.map_or_else(|| self.home.join(otherwise), PathBuf::from)
    }
}

/// All that is written for a host.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) pieces: Vec<Piece>,
    /// What its user sees, or does, then.
    pub(super) then: Vec<String>,
}
