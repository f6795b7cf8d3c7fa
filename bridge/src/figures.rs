//! Figures of the last hour and day, in memory: the node samples itself, and pages draw.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Between two samples of the last hour.
pub const HOUR_EVERY: Duration = Duration::from_secs(10);
/// Between two samples of the last day.
pub const DAY_EVERY: Duration = Duration::from_secs(120);
/// Samples of an hour: some 20 KiB.
pub const HOUR_SAMPLES: usize = 360;
/// Samples of a day: some 40 KiB.
pub const DAY_SAMPLES: usize = 720;

/// How the node was, since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When it was taken. Unix milliseconds.
    pub at_ms: u64,
    /// Messages a second that were delivered here.
    pub delivered: f64,
    /// Messages a second of agents of this node that were answered `ok`.
    pub accepted: f64,
    /// How long half of these waited for `ok`, in milliseconds. `None`: there were none.
    pub ok_p50_ms: Option<f64>,
    /// How long ninety-nine of a hundred did.
    pub ok_p99_ms: Option<f64>,
    /// Bytes of the store's file.
    pub disk_bytes: u64,
    /// Memory in use, in bytes. `None`: the system does not say.
    pub memory_bytes: Option<u64>,
    /// Nodes that there is a link to.
    pub links: u64,
}

/// A span of time that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The last hour.
    Hour,
    /// The last day.
    Day,
}

impl Span {
    /// How long it is.
    #[must_use]
    pub fn lasts(self) -> Duration {
        match self {
            Span::Hour => HOUR_EVERY * 360,
            Span::Day => DAY_EVERY * 720,
        }
    }

    /// Between two of its samples.
    #[must_use]
    pub fn every(self) -> Duration {
        match self {
            Span::Hour => HOUR_EVERY,
            Span::Day => DAY_EVERY,
        }
    }

    fn most(self) -> usize {
        match self {
            Span::Hour => HOUR_SAMPLES,
            Span::Day => DAY_SAMPLES,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Figures(Mutex<Rings>);

#[derive(Debug, Default)]
struct Rings {
    hour: VecDeque<Sample>,
    day: VecDeque<Sample>,
}

impl Rings {
    fn of(&mut self, span: Span) -> &mut VecDeque<Sample> {
        match span {
            Span::Hour => &mut self.hour,
            Span::Day => &mut self.day,
        }
    }
}

impl Figures {
    fn locked(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample; the oldest one goes.
    pub fn add(&self, span: Span, sample: Sample) {
        let mut rings = self.locked();
        let ring = rings.of(span);
        if ring.len() >= span.most() {
            ring.pop_front();
        }
        ring.push_back(sample);
    }

    /// All samples, the oldest first.
    #[must_use]
    pub fn all(&self, span: Span) -> Vec<Sample> {
        self.locked().of(span).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_newest_of_its_span() {
        let figures = Figures::default();
        for at_ms in 0..=HOUR_SAMPLES as u64 {
            figures.add(Span::Hour, Sample { at_ms, ..Sample::default() });
        }
        let hour = figures.all(Span::Hour);
        assert_eq!((hour.len(), hour[0].at_ms), (HOUR_SAMPLES, 1));
        assert_eq!(figures.all(Span::Day), []);
        assert_eq!(Span::Hour.lasts(), HOUR_EVERY * u32::try_from(HOUR_SAMPLES).unwrap());
        assert_eq!(Span::Day.lasts(), DAY_EVERY * u32::try_from(DAY_SAMPLES).unwrap());
    }
}
