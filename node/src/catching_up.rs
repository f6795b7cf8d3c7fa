//! Says in the log how far a node is that has much to fetch: after it joined, or was away for long.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::control::Control;

/// Entries to fetch from which on it is worth a word: fewer are there before it is read.
const MANY: u64 = 1_000;
/// Between two looks at a node that has nothing to catch up with, and at one that has.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Whether it was said that there is much to fetch.
#[derive(Debug, Default)]
struct Told {
    catching_up: bool,
}

impl Told {
    /// The line to log when so many entries are known to be elsewhere and not here.
    fn next(&mut self, behind: u64) -> Option<String> {
        let said = if behind >= MANY || (self.catching_up && behind > 0) {
            Some(format!("catching up: {behind} entries to fetch"))
        } else {
            self.catching_up.then(|| "caught up with the other nodes".to_owned())
        };
        self.catching_up = behind > 0 && said.is_some();
        said
    }
}

/// Looks and tells, for as long as the node runs.
pub(crate) async fn tell(control: Arc<Control>) {
    let mut told = Told::default();
    loop {
        sleep(if told.catching_up { TELL_EVERY } else { LOOK_EVERY }).await;
        let Ok(behind) = control.behind().await else { continue };
        if let Some(text) = told.next(behind) {
            tracing::info!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_way_is_told_to_its_end_and_a_short_one_not_at_all() {
        let mut told = Told::default();
        let said: Vec<Option<String>> =
            [0, 999, 5_000, 700, 0, 0, 30].map(|behind| told.next(behind)).into();
        let said: Vec<Option<&str>> = said.iter().map(Option::as_deref).collect();
        assert_eq!(
            said,
            [
                None,
                None,
                Some("catching up: 5000 entries to fetch"),
                Some("catching up: 700 entries to fetch"),
                Some("caught up with the other nodes"),
                None,
                None,
            ]
        );
    }
}
