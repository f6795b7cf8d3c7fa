//! Beacons: this node says how far it is, time and again; the driver sends them.

use std::time::Duration;

use super::known::Known;
use crate::{
    api::boundary::Effect,
    limits::CALL_ANSWERED_FOR,
    name::digest::Digest,
    order::pulse::{Pulse, Spread},
};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Beacons {
    /// The pulse that the driver was last told.
    pub(super) pulse: Pulse,
    /// How beacons go from now on.
    spread: Spread,
    /// Somebody has called this node: until when it answers.
    called: Duration,
}

impl Beacons {
    pub(super) fn new(boot: u64) -> Beacons {
        Beacons {
            pulse: Pulse { boot, ..Pulse::default() },
            spread: Spread::default(),
            called: Duration::ZERO,
        }
    }

    /// Beacons are gossiped while that tells anybody anything.
    pub(super) fn refresh_spread(&mut self, known: &Known) {
        let now = known.cx.now.mono;
        let called = now < self.called;
        self.spread = if called { Spread::EachTime } else { known.live.spread(now) };
    }

    /// Somebody asks whether this node lives: for a while each beacon is gossiped.
    pub(super) fn on_called(&mut self, known: &Known) {
        self.called = known.cx.now.mono + CALL_ANSWERED_FOR;
        self.refresh_spread(known);
    }

    /// Tells the driver if there is something new to say.
    pub(super) fn beat(&mut self, known: &mut Known, digest: Digest, records: [u8; 16]) {
        let (boot, roster) = known.rosters.version(known.cx.me);
        let pulse = Pulse { boot, roster, digest, records, spread: self.spread };
        if pulse != self.pulse {
            self.pulse = pulse;
            known.cx.effects.push(Effect::Pulse(pulse));
        }
    }
}
