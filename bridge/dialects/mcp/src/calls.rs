//! How many calls of tools there were, by tool and end, and how many wait: for operators.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::outcome::Ended;

/// Words of results that say how a call ended; all other results are `ok`.
const ENDS: [&str; 6] = ["accepted", "timeout", "no_reply", "forbidden", "error", "ok"];

/// See the module. Since the start of the node.
#[derive(Debug)]
pub struct Calls {
    counts: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    waits: AtomicU64,
}

impl Calls {
    /// Of these tools none was called yet: a count is seen from its beginning.
    pub(crate) fn of(tools: impl Iterator<Item = &'static str>) -> Calls {
        let counts = tools.map(|tool| ((tool, "ok"), 0)).collect();
        Calls { counts: Mutex::new(counts), waits: AtomicU64::new(0) }
    }

    /// The number of calls of each tool, by their ends.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls that wait for something now.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    pub(crate) fn wait_begins(&self) {
        self.waits.fetch_add(1, Relaxed);
    }

    pub(crate) fn wait_ends(&self) {
        self.waits.fetch_sub(1, Relaxed);
    }

    pub(crate) fn ended(&self, tool: &'static str, ended: &Ended) {
        let end = match ended {
            Ok((_, true)) => "wrong_arguments",
            Ok((fields, false)) => {
                let status = fields.get("status").and_then(|status| status.as_str());
                ENDS.into_iter().find(|end| status == Some(end)).unwrap_or("ok")
            }
            Err(_) => "no_agent",
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((tool, end)).or_default() += 1;
    }
}
