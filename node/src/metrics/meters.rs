//! Counters of this node, since its start.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use mesh::{Alarm, api::command::SaidOk};

use super::text::Histogram;

/// Upper bounds of how long a commit takes, and an answer that waits for one, in seconds. A fast disk syncs within a millisecond, one
/// that turns within some ten; from a tenth of a second on agents notice.
const COMMIT_SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// Upper bounds of how many inputs one commit answers.
const COMMIT_INPUTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// Counters of the engine's thread and of the threads for peers.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) accepted: AtomicU64,
    pub(crate) delivered: AtomicU64,
    /// A turn waits for room on the disk.
    pub(crate) disk_full: AtomicBool,
    /// How long agents of this node waited for `ok`.
    pub(crate) ok_seconds: Histogram,
    pub(super) commit_seconds: Histogram,
    pub(super) commit_inputs: Histogram,
    pub(crate) rows: AtomicU64,
    pub(crate) eras_opened: AtomicU64,
    pub(crate) holes: AtomicU64,
    /// Messages of peers that the engine did not get.
    pub(crate) kept_back: KeptBack,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
}

/// Messages of peers that the engine did not get, by the reason.
#[derive(Debug, Default)]
pub(crate) struct KeptBack {
    /// Not of this protocol, or with a bad signature.
    pub(crate) refused: AtomicU64,
    /// Of a kind that only a later version knows: passed over.
    pub(crate) newer: AtomicU64,
    /// Gossip that came faster than the engine took it. It is asked for.
    pub(crate) dropped: AtomicU64,
    /// Questions of peers that ask too much.
    pub(crate) unheard: AtomicU64,
    /// Entries of nodes that write much without effect. They are asked for.
    pub(crate) noise: AtomicU64,
}

/// Bytes of payload, to or from peers.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) frames: AtomicU64,
    pub(crate) gossip: AtomicU64,
}

impl Default for Meters {
    fn default() -> Meters {
        Meters {
            accepted: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            disk_full: AtomicBool::new(false),
            ok_seconds: Histogram::new(COMMIT_SECONDS),
            commit_seconds: Histogram::new(COMMIT_SECONDS),
            commit_inputs: Histogram::new(COMMIT_INPUTS),
            rows: AtomicU64::new(0),
            eras_opened: AtomicU64::new(0),
            holes: AtomicU64::new(0),
            kept_back: KeptBack::default(),
            received: Traffic::default(),
            sent: Traffic::default(),
        }
    }
}

impl Meters {
    /// A commit of so many rows, for so many inputs.
    pub(crate) fn committed(&self, took: Duration, inputs: usize, rows: usize) {
        self.commit_seconds.observe(took.as_secs_f64());
        #[expect(
            clippy::cast_precision_loss,
            reason = "a turn takes some thousand inputs at most"
        )]
        self.commit_inputs.observe(inputs as f64);
        self.rows.fetch_add(rows as u64, Relaxed);
    }

    /// A message of an agent of this node has its answer.
    pub(crate) fn said(&self, said: &SaidOk, waited: Option<Duration>) {
        if said.fresh.is_some() {
            self.accepted.fetch_add(1, Relaxed);
            if let Some(waited) = waited {
                self.ok_seconds.observe(waited.as_secs_f64());
            }
        }
    }

    pub(crate) fn alarm(&self, alarm: &Alarm) {
        if matches!(alarm, Alarm::EraOpened { .. }) {
            self.eras_opened.fetch_add(1, Relaxed);
        }
        if matches!(alarm, Alarm::Hole { .. }) {
            self.holes.fetch_add(1, Relaxed);
        }
    }
}
