//! Times as clients read them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Milliseconds since 1970, as RFC 3339 in UTC. A time that is none of this calendar is shown as the last one there is.
pub(crate) fn text(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Back. `None`: it is no time with an offset. Before 1970 is 0.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    Some(u64::try_from(time.as_millisecond()).unwrap_or_default())
}

/// A time such as `30 minutes`, or as ISO 8601 has it: `PT30M`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text.starts_with('P') {
        let span: jiff::Span = text.parse().ok()?;
        let whole = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
        return Duration::try_from(whole).ok();
    }
    let (number, unit) = text.split_once(' ')?;
    let each: u64 = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => 1,
        "minute" => 60,
        "hour" => 3_600,
        "day" => 24 * 3_600,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(each)?))
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_words_or_iso() {
        for (text, secs) in [
            ("30 minutes", Some(1_800)),
            ("1 day", Some(86_400)),
            ("PT2H", Some(7_200)),
            ("P1DT1S", Some(86_401)),
            ("2 hours ago", None),
            ("18446744073709551615 days", None),
            ("-PT1H", None),
            ("P1M", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(duration(text), secs.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn times_are_written_and_read_back() {
        assert_eq!(text(1_763_689_532_339), "2025-11-21T01:45:32.339Z");
        assert_eq!(parse("2025-11-21T02:45:32.339+01:00"), Some(1_763_689_532_339));
        assert_eq!(parse("1960-01-01T00:00:00Z"), Some(0));
        for no in ["", "yesterday", "2025-11-21T01:45:32.339"] {
            assert_eq!(parse(no), None, "{no}");
        }
        assert!(text(u64::MAX).starts_with("9999-"));
    }
}
