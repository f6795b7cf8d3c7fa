//! How long nodes of a world keep bodies.

use std::time::Duration;

use mesh::api::agenda::Retention;

use super::dice::Dice;

/// Younger bodies stay everywhere.
pub(super) const MIN: Duration = Duration::from_secs(2);
/// For how long nodes keep bodies.
const TIMES: [Option<Duration>; 4] = [
    None,
    Some(Duration::from_secs(6)),
    Some(Duration::from_secs(12)),
    Some(Duration::from_secs(20)),
];
/// How long a node keeps bodies.
pub(super) fn some_retention(dice: &mut Dice) -> Retention {
    let keep = *dice.pick(&TIMES);
    Retention { own: keep, low: keep, high: keep }
}
