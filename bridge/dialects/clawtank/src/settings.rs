//! Decisions of the operator.

use crate::ids::Form;

/// Decisions of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether clients are served. Else they are refused, and told why.
    pub on: bool,
    /// How ids are written for clients that do not say.
    pub ids: Form,
    /// Whether rooms may be looked at without a seat in them.
    pub spectators: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { on: true, ids: Form::Prefixed, spectators: true }
    }
}
