//! The newest lines of the node's log, and those to come: for dialects that show them to its operator.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::limits::{LOG_LINES_KEPT, LOG_LINES_WAITING_MAX};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For those who look for a mistake, in every detail.
    Trace,
    /// For those who look for a mistake.
    Debug,
    /// For operators.
    Info,
    /// Something that an operator may have to do something about.
    Warn,
    /// Something that went wrong.
    Error,
}

impl LogLevel {
    /// All of them.
    pub const ALL: [LogLevel; 5] =
        [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];

    /// As operators write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Trace => "trace",
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }

    /// And back.
    #[must_use]
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// How much it matters.
    pub level: LogLevel,
    /// The part of the program that says it.
    pub source: String,
    /// The text.
    pub message: String,
    /// What it says beside, by name.
    pub fields: Map<String, Value>,
}

/// See the module. Lines are those that the node's log has: of what it leaves out nothing is here.
pub struct LogTail {
    newest: Mutex<VecDeque<Arc<LogLine>>>,
    to_come: broadcast::Sender<Arc<LogLine>>,
}

impl Default for LogTail {
    fn default() -> LogTail {
        LogTail { newest: Mutex::default(), to_come: broadcast::Sender::new(LOG_LINES_WAITING_MAX) }
    }
}

impl fmt::Debug for LogTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogTail(…)")
    }
}

impl LogTail {
    /// One more.
    pub fn push(&self, line: LogLine) {
        let line = Arc::new(line);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.len() >= LOG_LINES_KEPT {
            newest.pop_front();
        }
        newest.push_back(line.clone());
        // Within the lock: whoever watches from now on has each line once. An error: nobody does.
        drop(self.to_come.send(line));
    }

    /// The newest ones, the oldest of them first, and those to come.
    #[must_use]
    pub fn watch(&self) -> (Vec<Arc<LogLine>>, broadcast::Receiver<Arc<LogLine>>) {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        (newest.iter().cloned().collect(), self.to_come.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_who_watches_has_each_line_once() {
        let tail = LogTail::default();
        let line = |n: usize| LogLine {
            at_ms: 1,
            level: LogLevel::Info,
            source: "node".to_owned(),
            message: n.to_string(),
            fields: Map::new(),
        };
        (0..LOG_LINES_KEPT + 7).for_each(|n| tail.push(line(n)));
        let (newest, mut to_come) = tail.watch();
        assert_eq!((newest.len(), &*newest[0].message), (LOG_LINES_KEPT, "7"));
        tail.push(line(9_999));
        assert_eq!(to_come.try_recv().map(|line| line.message.clone()), Ok("9999".to_owned()));
        assert!(to_come.try_recv().is_err());
    }
}
