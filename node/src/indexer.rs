//! The thread that keeps the index of words up to the store: at leisure, and less of it while the node has other things to do.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use store::search::{Follower, Index, IndexError};

use crate::limits::{INDEX_AGAIN, INDEX_BEHIND, INDEX_BUSY_SHARE, INDEX_GATHER, INDEX_SWEEP_EVERY};

/// The thread, as its node has it. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Indexer {
    stop: Arc<AtomicBool>,
    index: Index,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Begins.
    pub(crate) fn start(index: Index) -> std::io::Result<Indexer> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work { index: index.clone(), stop: stop.clone() };
        let thread = thread::Builder::new().name("indexer".to_owned()).spawn(move || work.run())?;
        Ok(Indexer { stop, index, thread: Some(thread) })
    }
}

impl Drop for Indexer {
    /// Waits for the step that is under way: the file is closed then.
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.index.stir();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been said on stderr, and searches are all that is lost.
            drop(thread.join());
        }
    }
}

struct Work {
    index: Index,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(&self) {
        while !self.is_over() {
            if let Err(error) = self.follow() {
                self.index.set_behind(true);
                tracing::warn!(
                    event = "search_index_failed",
                    error = error_chain(&error),
                    "the index of words is made anew in a minute: searches find nothing until then"
                );
                self.rest(INDEX_AGAIN);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Until the end, or an error.
    fn follow(&self) -> Result<(), IndexError> {
        let mut follower = self.index.follow()?;
        let (mut since, mut swept) = (Instant::now(), None);
        while !self.is_over() {
            let began = Instant::now();
            let step = follower.step()?;
            let took = began.elapsed();
            if !step.more {
                since = Instant::now();
                self.index.set_behind(false);
                self.sweep(&mut follower, &mut swept)?;
                self.index.wait(INDEX_SWEEP_EVERY);
                self.rest(INDEX_GATHER);
                continue;
            }
            if since.elapsed() > INDEX_BEHIND {
                self.index.set_behind(true);
            }
            // The processor and the disk are for messages first.
            self.rest(if step.busy { took * INDEX_BUSY_SHARE } else { took });
        }
        Ok(())
    }

    fn sweep(
        &self,
        follower: &mut Follower,
        swept: &mut Option<Instant>,
    ) -> Result<(), IndexError> {
        let is_due = swept.is_none_or(|at| at.elapsed() >= INDEX_SWEEP_EVERY);
        if !is_due {
            return Ok(());
        }
        while follower.sweep()? && !self.is_over() {
            self.rest(INDEX_GATHER);
        }
        *swept = Some(Instant::now());
        Ok(())
    }

    fn rest(&self, lasts: Duration) {
        let until = Instant::now() + lasts;
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

fn error_chain(error: &IndexError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
