//! How far long work is, on stderr, where somebody looks at it.

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

/// Counts messages that are read; gone when it is dropped.
pub(crate) fn messages(output: &Output) -> ProgressBar {
    if !output.shows_progress() {
        return none();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} messages, {per_sec}, {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// Shows nothing.
pub(crate) fn none() -> ProgressBar {
    ProgressBar::hidden()
}
