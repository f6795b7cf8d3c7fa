//! Times as clients read them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::Value;

/// Milliseconds since 1970, as RFC 3339 in UTC.
pub(crate) fn text(ms: u64) -> Value {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    // A time that is none of this calendar is a lie of its writer, and shown as none.
    time.map_or(Value::Null, |time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string().into())
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A count of rows.
pub(crate) fn count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

/// `2h30m`, as people read it.
pub(crate) fn span(time: Duration) -> String {
    let (hours, minutes) = (time.as_secs() / 3_600, time.as_secs() / 60 % 60);
    match hours {
        0 if minutes == 0 => format!("{}s", time.as_secs()),
        0 => format!("{minutes}m"),
        _ => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_and_spans_short() {
        assert_eq!(text(1_763_689_532_339), "2025-11-21T01:45:32.339Z");
        assert_eq!(text(u64::MAX), Value::Null);
        let spans = [5, 65, 9_000].map(|secs| span(Duration::from_secs(secs)));
        assert_eq!(spans, ["5s", "1m", "2h30m"]);
    }
}
