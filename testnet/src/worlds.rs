//! Many simulated worlds, on several threads.

use std::{
    ops::Range,
    panic::{self, AssertUnwindSafe},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::sim::{self, Broken, Failure, Kind, Report};

/// The results of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Worlds played, broken ones included.
    pub worlds: u64,
    /// Over all worlds that kept every promise.
    pub total: Report,
    /// In order of seed.
    pub failures: Vec<Failure>,
}

/// Plays the worlds of `seeds` on `jobs` threads (at least one), and calls `each` on this thread after
/// every one of them, in the order in which they end.
///
/// A world that panics counts as one that broke a promise.
pub fn play(kind: Kind, seeds: Range<u64>, jobs: usize, mut each: impl FnMut(&Summary)) -> Summary {
    let next = AtomicU64::new(seeds.start);
    let (done, results) = mpsc::channel();
    let done = Mutex::new(done);
    let mut summary = Summary::default();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let Ok(done) = done.lock().map(|done| done.clone()) else { return };
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || done.send(one(kind, seed)).is_err() {
                        return;
                    }
                }
            });
        }
        for _ in seeds.clone() {
            let Ok(result) = results.recv() else { break };
            summary.add(result);
            each(&summary);
        }
    });
    summary.failures.sort_by_key(|failure| failure.seed);
    summary
}

impl Summary {
    fn add(&mut self, result: Result<Report, Failure>) {
        self.worlds += 1;
        match result {
            Ok(report) => self.total.add(&report),
            Err(failure) => self.failures.push(failure),
        }
    }
}

fn one(kind: Kind, seed: u64) -> Result<Report, Failure> {
    // A world shares nothing with the others, so what one of them leaves half done hurts nobody.
    let played = panic::catch_unwind(AssertUnwindSafe(|| sim::run(kind, seed, false)));
    played.unwrap_or_else(|payload| {
        let what = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "see the panic above".to_owned());
        // A panic leaves no clock behind.
        Err(Failure {
            kind,
            seed,
            at: Duration::ZERO,
            broken: Broken { promise: "no panic", what },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_played_once() {
        let mut seen = Vec::new();
        let summary = play(Kind::Honest, 3..7, 2, |so_far| seen.push(so_far.worlds));
        assert_eq!(seen, [1, 2, 3, 4]);
        assert_eq!(summary.worlds, 4);
        let ran = |seeds| play(Kind::Honest, seeds, 1, |_| {}).total.entries;
        if summary.failures.is_empty() {
            assert_eq!(summary.total.entries, ran(3..5) + ran(5..7));
        }
    }
}
