//! Beacons: this node says how far it is, time and again; the driver sends them.

use super::known::Known;
use crate::{
    api::boundary::Effect,
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
}

impl Beacons {
    pub(super) fn new(boot: u64) -> Beacons {
        Beacons { pulse: Pulse { boot, ..Pulse::default() }, spread: Spread::default() }
    }

    /// Beacons are gossiped while that tells anybody anything.
    pub(super) fn refresh_spread(&mut self, known: &Known) {
        self.spread = known.live.spread(known.cx.now.mono);
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
