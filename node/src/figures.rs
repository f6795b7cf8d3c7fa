//! The node's own samples for the page: counters are read now and then, whether anybody looks or not. It costs some
//! microseconds.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bridge::figures::{DAY_EVERY, Figures, HOUR_EVERY, Sample, Span};
use net::Net;
use store::Reader;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    clock::Clock,
    control::Control,
    metrics::{meters::Meters, process, text::Counted},
};

/// Everything that samples are made of.
pub(crate) struct Sampler {
    figures: Arc<Figures>,
    meters: Arc<Meters>,
    net: Net,
    reader: Reader,
}

/// Counters at one moment.
struct Moment {
    at: Instant,
    delivered: u64,
    accepted: u64,
    oks: Counted,
}

impl Sampler {
    /// Of the node that this is the control of.
    pub(crate) fn of(control: &Control) -> Sampler {
        Sampler {
            figures: control.bridge.config().figures.clone(),
            meters: control.meters.clone(),
            net: control.net.clone(),
            reader: control.reader.clone(),
        }
    }

    /// Until the node ends.
    pub(crate) async fn run(self) {
        let mut ticks = interval(HOUR_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one comes at once.
        ticks.tick().await;
        let clock = Clock::start();
        let (mut hour, mut day) = (self.moment(), self.moment());
        loop {
            ticks.tick().await;
            let now = self.moment();
            let wall_ms = clock.now().wall_ms;
            if is_over(&day, &now, DAY_EVERY) {
                self.figures.add(Span::Day, self.sample(&day, &now, wall_ms));
                day = self.moment();
            }
            self.figures.add(Span::Hour, self.sample(&hour, &now, wall_ms));
            hour = now;
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            at: Instant::now(),
            delivered: self.meters.delivered.load(Relaxed),
            accepted: self.meters.accepted.load(Relaxed),
            oks: self.meters.ok_seconds.counted(),
        }
    }

    fn sample(&self, before: &Moment, now: &Moment, at_ms: u64) -> Sample {
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(f64::EPSILON);
        #[expect(clippy::cast_precision_loss, reason = "messages of some minutes")]
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let ok_ms = |share| now.oks.since(&before.oks).within(share).map(|ok| ok * 1_000.0);
        let links = self.net.peers().iter().filter(|peer| peer.connected).count();
        Sample {
            at_ms,
            delivered: rate(before.delivered, now.delivered),
            accepted: rate(before.accepted, now.accepted),
            ok_p50_ms: ok_ms(0.5),
            ok_p99_ms: ok_ms(0.99),
            disk_bytes: self.reader.size_bytes(),
            memory_bytes: process::resident(),
            links: links as u64,
        }
    }
}

/// Ticks come a little early or late.
fn is_over(since: &Moment, now: &Moment, every: Duration) -> bool {
    now.at.duration_since(since.at) + HOUR_EVERY / 2 >= every
}
