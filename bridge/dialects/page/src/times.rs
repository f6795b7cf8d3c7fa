//! Times, as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, tz::TimeZone};
use maud::{Markup, html};

/// The time now. Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A moment: its time, the day of it if that is another one, and the whole for programs and for a pointer that rests on it.
pub(crate) fn moment(ms: u64) -> Markup {
    let Some(at) = timestamp(ms) else { return html! { span.time { "?" } } };
    let whole = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let today = timestamp(now_ms()).map(|now| now.to_zoned(TimeZone::UTC).date());
    let is_today = today == Some(at.to_zoned(TimeZone::UTC).date());
    let short = if is_today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    html! { time.time datetime=(whole) title=(whole) { (at.strftime(short).to_string()) } }
}

fn timestamp(ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}

/// A span of time in one unit: of seconds, minutes, hours or days.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_day_if_that_is_another_one_and_a_lie_is_none() {
        assert!(moment(0).0.contains("1970-01-01 00:00"));
        assert!(!moment(now_ms()).0.contains(" 20"), "today");
        assert!(moment(u64::MAX).0.contains('?'));
        assert_eq!([59, 60, 7_200, 200_000].map(span), ["59 s", "1 min", "2 h", "2 d"]);
    }
}
