//! Times as clients read them.

use jiff::Timestamp;
use mesh::wire::record::Stamp;
use serde_json::Value;

/// Of a stamp, in UTC, to the microsecond.
pub(crate) fn of_stamp(stamp: Stamp) -> Value {
    text(stamp.0 >> 8)
}

/// Of milliseconds since 1970.
pub(crate) fn of_ms(ms: u64) -> Value {
    text(ms.saturating_mul(1_000))
}

/// The same, to the millisecond, as messages of a negotiation have it.
pub(crate) fn to_ms(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn text(us: u64) -> Value {
    let time = i64::try_from(us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    // A stamp that is no time of this calendar is a lie of its writer, and shown as none.
    time.map_or(Value::Null, |time| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_to_the_microsecond() {
        assert_eq!(of_ms(1_763_689_532_339), "2025-11-21T01:45:32.339000Z");
        assert_eq!(of_stamp(Stamp::at(1_763_689_532_339_001)), "2025-11-21T01:45:32.339001Z");
        assert_eq!(of_ms(u64::MAX), Value::Null);
        assert_eq!(to_ms(1_763_689_532_339), "2025-11-21T01:45:32.339Z");
    }
}
