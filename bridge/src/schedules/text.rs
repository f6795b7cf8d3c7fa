//! Schedules as people write them.

use jiff::Timestamp;

use super::plan::{BadPlan, Plan};
use crate::limits::SCHEDULE_TEXT_BYTES_MAX;

/// Milliseconds of each unit.
const UNITS: [(&[&str], u64); 4] = [
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// The schedule that a text says, in any case. `zone`: of its local times.
///
/// # Errors
/// It says none.
pub fn parse(text: &str, zone: &str, now_ms: u64) -> Result<Plan, BadPlan> {
    if text.len() > SCHEDULE_TEXT_BYTES_MAX {
        return Err(BadPlan::Form);
    }
    let lower = text.trim().to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    match words.as_slice() {
        ["every", day, "at", time] => {
            let days = days(day).ok_or(BadPlan::Form)?;
            let (hour, minute) = time_of(time).ok_or(BadPlan::Form)?;
            Plan::cron(&format!("{minute} {hour} * * {days}"), zone)
        }
        ["every", unit] if unit_of(unit).is_some() => {
            Plan::every(unit_of(unit).unwrap_or_default())
        }
        ["every", rest @ ..] => Plan::every(span(rest)?),
        ["in", rest @ ..] => {
            let ms = span(rest)?;
            // As an interval it has bounds, too.
            Plan::every(ms)?;
            Plan::at(now_ms.saturating_add(ms))
        }
        [_, _, _, _, _] => Plan::cron(&lower, zone),
        _ => {
            let time: Timestamp = text.trim().parse().map_err(|_| BadPlan::Form)?;
            Plan::at(u64::try_from(time.as_millisecond()).map_err(|_| BadPlan::Past)?)
        }
    }
}

fn unit_of(word: &str) -> Option<u64> {
    UNITS.iter().find(|(names, _)| names.contains(&word)).map(|(_, ms)| *ms)
}

/// A number and a unit, in one word or in two.
fn span(words: &[&str]) -> Result<u64, BadPlan> {
    let text = words.concat();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit_of(unit).filter(|_| words.len() <= 2).ok_or(BadPlan::Form)?;
    if digits == 0 {
        return Err(BadPlan::Form);
    }
    let number: u64 = number.parse().map_err(|_| BadPlan::Interval)?;
    number.checked_mul(unit).ok_or(BadPlan::Interval)
}

/// The days of a cron line.
fn days(word: &str) -> Option<&'static str> {
    match word {
        "day" => Some("*"),
        "weekday" => Some("mon-fri"),
        _ => WEEKDAYS.into_iter().find(|day| *day == word).map(|day| &day[..3]),
    }
}

fn time_of(text: &str) -> Option<(u8, u8)> {
    let (hour, minute) = text.split_once(':')?;
    let is_number = |part: &str, short: usize| {
        (short..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let (hour, minute): (u8, u8) = (is_number(hour, 1) && is_number(minute, 2))
        .then(|| Some((hour.parse().ok()?, minute.parse().ok()?)))??;
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(time: &str) -> u64 {
        let time: Timestamp = time.parse().unwrap();
        u64::try_from(time.as_millisecond()).unwrap()
    }

    fn next(text: &str, zone: &str, now: &str) -> String {
        let now = ms(now);
        let plan = parse(text, zone, now).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        let next = plan.next(now, now).unwrap_or_else(|| panic!("{text}: never"));
        // What is kept is the same schedule.
        assert_eq!(Plan::of(&plan.shown(), "UTC").unwrap().next(now, now), Some(next), "{text}");
        Timestamp::from_millisecond(i64::try_from(next).unwrap()).unwrap().to_string()
    }

    #[test]
    fn each_form_names_its_next_time() {
        // A Friday.
        let now = "2026-11-27T10:30:15Z";
        for (text, expected) in [
            ("every 5 s", "2026-11-27T10:30:20Z"),
            ("EVERY 5s", "2026-11-27T10:30:20Z"),
            ("every 2 minutes", "2026-11-27T10:32:15Z"),
            ("every minute", "2026-11-27T10:31:15Z"),
            ("Every Hour", "2026-11-27T11:30:15Z"),
            ("every 1d", "2026-11-28T10:30:15Z"),
            ("every day at 10:30", "2026-11-28T10:30:00Z"),
            ("every day at 10:31", "2026-11-27T10:31:00Z"),
            ("every weekday at 9:05", "2026-11-30T09:05:00Z"),
            ("every monday at 00:00", "2026-11-30T00:00:00Z"),
            ("every Friday at 23:59", "2026-11-27T23:59:00Z"),
            ("in 90 s", "2026-11-27T10:31:45Z"),
            ("in 2h", "2026-11-27T12:30:15Z"),
            ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
            ("*/15 * * * *", "2026-11-27T10:45:00Z"),
            ("0 9 * * MON-FRI", "2026-11-30T09:00:00Z"),
            ("0 9 * * 7", "2026-11-29T09:00:00Z"),
            ("0 9 * * 0", "2026-11-29T09:00:00Z"),
            ("0 0 1 jan,jul *", "2027-01-01T00:00:00Z"),
            ("5-10/5,40 10 * * *", "2026-11-27T10:40:00Z"),
            ("50/3 10 * * *", "2026-11-27T10:50:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
            // Both days are named: either will do.
            ("0 0 13 * mon", "2026-11-30T00:00:00Z"),
            ("0 0 28 * mon", "2026-11-28T00:00:00Z"),
            // One of them begins with a star: both have to fit.
            ("0 0 */2 * mon", "2026-12-07T00:00:00Z"),
        ] {
            assert_eq!(next(text, "UTC", now), expected, "{text}");
        }
    }

    #[test]
    fn local_times_are_those_of_their_zone_also_when_clocks_change() {
        let berlin = "Europe/Berlin";
        for (text, now, expected) in [
            ("every day at 09:00", "2026-11-27T10:00:00Z", "2026-11-28T08:00:00Z"),
            ("every day at 09:00", "2026-07-01T10:00:00Z", "2026-07-02T07:00:00Z"),
            // On 2026-03-29 there is no time between 02:00 and 03:00.
            ("30 2 * * *", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"),
            ("30 2 * * *", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
            ("*/20 * * * *", "2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z"),
            ("*/20 * * * *", "2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z"),
            // On 2026-10-25 the hour from 02:00 to 03:00 comes twice.
            ("30 2 * * *", "2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z"),
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
            ("0 4 * * *", "2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z"),
        ] {
            assert_eq!(next(text, berlin, now), expected, "{text} after {now}");
        }
        // Clocks that change at midnight, and by half an hour.
        let cases = [
            ("0 0 * * *", "America/Havana", "2026-03-08T04:00:00Z", "2026-03-08T05:00:00Z"),
            ("0 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", "2026-10-03T15:30:00Z"),
        ];
        for (text, zone, now, expected) in cases {
            assert_eq!(next(text, zone, now), expected, "{text} in {zone}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let now = ms("2026-11-27T10:30:15Z");
        let long = "*".repeat(SCHEDULE_TEXT_BYTES_MAX + 1);
        for text in [
            "",
            "soon",
            "every",
            "every 5",
            "every s 5",
            "every 5 weeks",
            "every 1 2 s",
            "every day at 25:00",
            "every day at 9",
            "every day at 9:5",
            "every someday at 09:00",
            "in",
            "in s",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "+5 * * * *",
            "2026-11-27",
            "every -5 s",
            &long,
        ] {
            assert_eq!(parse(text, "UTC", now), Err(BadPlan::Form), "{text}");
        }
        assert_eq!(parse("every 0 s", "UTC", now), Err(BadPlan::Interval));
        assert_eq!(parse("every 9999999999999999999 d", "UTC", now), Err(BadPlan::Interval));
        assert_eq!(parse("every 99999999999999999999999 d", "UTC", now), Err(BadPlan::Interval));
        assert_eq!(parse("0 9 * * *", "Mars/Olympus", now), Err(BadPlan::Zone));
        let never = parse("0 0 30 2 *", "UTC", now).unwrap();
        assert_eq!(never.check(now), Err(BadPlan::Never));
        let past = parse("2020-01-01T00:00:00Z", "UTC", now).unwrap();
        assert_eq!(past.check(now), Err(BadPlan::Past));
    }

    #[test]
    fn of_slots_that_nobody_saw_to_the_newest_fires_and_the_others_are_missed() {
        use crate::schedules::plan::DueSlots;
        let (minute, hour) = (60_000, 3_600_000);
        let every = Plan::every(minute).unwrap();
        let due = |plan: &Plan, seen, now| plan.due(0, seen, now);
        let none = DueSlots::default();
        assert_eq!(due(&every, 0, minute - 1), none);
        assert_eq!(due(&every, 0, minute), DueSlots { fires: Some(minute), missed: None });
        assert_eq!(due(&every, minute, minute + 5), none, "it was fired");
        assert_eq!(due(&every, 5 * minute, minute), none, "the clock was put back");
        let three = DueSlots { fires: Some(3 * minute), missed: Some(minute) };
        assert_eq!(due(&every, 0, 3 * minute + 7), three);
        let hourly = Plan::every(hour).unwrap();
        let late = DueSlots { fires: None, missed: Some(5 * hour) };
        assert_eq!(due(&hourly, 0, 5 * hour + 11 * minute), late, "over ten minutes ago");
        let cron = Plan::cron("*/5 * * * *", "UTC").unwrap();
        let two = DueSlots { fires: Some(hour), missed: Some(5 * minute) };
        assert_eq!(due(&cron, 0, hour + minute), two);
        let nightly = Plan::cron("0 3 * * *", "UTC").unwrap();
        let late = DueSlots { fires: None, missed: Some(3 * hour) };
        assert_eq!(due(&nightly, 0, 4 * hour), late);
        let once = Plan::at(hour).unwrap();
        assert_eq!(due(&once, 0, 24 * hour), DueSlots { fires: Some(hour), missed: None });
        assert_eq!(due(&once, 0, 26 * hour), DueSlots { fires: None, missed: Some(hour) });
        assert_eq!(due(&once, hour, 2 * hour), none);
    }
}
