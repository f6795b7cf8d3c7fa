//! Virtual time, in slots of a tenth of a millisecond.

use std::time::Duration;

/// A moment, or a time, in steps of [`SLOT`].
pub(super) type Slot = u64;
/// The grain of all times.
const SLOT: Duration = Duration::from_micros(100);

/// A time in slots.
pub(super) fn slots(time: Duration) -> Slot {
    Slot::try_from(time.as_micros() / SLOT.as_micros()).unwrap_or(Slot::MAX)
}

/// The moment of a slot.
pub(super) fn time_of(slot: Slot) -> Duration {
    Duration::from_micros(slot * u64::try_from(SLOT.as_micros()).expect("it is short"))
}
