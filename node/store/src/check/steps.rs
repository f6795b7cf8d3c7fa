//! The progress of a check, and its judge of signatures.

use mesh::name::identity::Judge;

use crate::{copy::Progress, limits::PROGRESS_ROWS};

/// See the module.
pub(super) struct Steps<'a> {
    pub(super) judge: &'a dyn Judge,
    pub(super) progress: &'a mut dyn FnMut(Progress),
    pub(super) at: Progress,
}

impl Steps<'_> {
    pub(super) fn row(&mut self) {
        self.at.rows += 1;
        if self.at.rows.is_multiple_of(PROGRESS_ROWS) {
            self.tell();
        }
    }

    pub(super) fn tell(&mut self) {
        (self.progress)(self.at);
    }
}
