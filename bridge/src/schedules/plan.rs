//! When a job is due.

use std::ops::RangeInclusive;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::fields::Fields;
use crate::limits::{SCHEDULE_TEXT_BYTES_MAX, SLOT_LATE_MAX, SLOT_ONCE_LATE_MAX};

/// Intervals, in milliseconds: a second to ten years.
const INTERVAL_MS: RangeInclusive<u64> = 1_000..=10 * 365 * 86_400_000;
/// A quarter of an hour, half a day, five weeks, a year and a half, nine years.
const LOOKED_BACK_MS: [u64; 5] =
    [900_000, 43_200_000, 35 * 86_400_000, 550 * 86_400_000, 9 * 366 * 86_400_000];
/// The end of the year 9998, which every library of times knows.
const LATEST_MS: u64 = 253_370_764_800_000;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Once. Unix milliseconds.
    At(u64),
    /// Again and again after so many milliseconds, counted from when the job was last edited.
    Every(u64),
    /// At the local times of a cron line.
    Cron(Box<Line>),
}

/// A cron line, and the zone of its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    expr: String,
    zone_name: String,
    fields: Fields,
    zone: TimeZone,
}

/// A schedule that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// It has no form that is known.
    #[error(
        "schedule must be one of: every N s|m|h|d; every day at HH:MM; every weekday at HH:MM; every monday at HH:MM; \
         in N s|m|h|d; an RFC 3339 time; five cron fields such as 0 9 * * mon-fri; \
         {{kind: \"at\", atMs}}, {{kind: \"every\", everyMs}} or {{kind: \"cron\", expr, tz?}}"
    )]
    Form,
    /// No zone has this name.
    #[error("timezone must be a name of the IANA database, such as Europe/Berlin")]
    Zone,
    /// It is over before it has begun.
    #[error("schedule must name a time to come")]
    Past,
    /// It is too short, or too long.
    #[error("schedule must have an interval of 1 s to 10 years")]
    Interval,
    /// There is no such day.
    #[error("schedule must name a time that comes: there is none within nine years")]
    Never,
}

/// Slots of a job that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueSlots {
    /// The newest one, if it is not too late for it.
    pub fires: Option<u64>,
    /// The newest one of those that nobody has fired, and is too late.
    pub missed: Option<u64>,
}

impl Plan {
    /// A cron line.
    ///
    /// # Errors
    /// Why it is none.
    pub fn cron(expr: &str, zone_name: &str) -> Result<Plan, BadPlan> {
        if expr.len() > SCHEDULE_TEXT_BYTES_MAX || zone_name.len() > SCHEDULE_TEXT_BYTES_MAX {
            return Err(BadPlan::Form);
        }
        let fields = Fields::parse(expr).ok_or(BadPlan::Form)?;
        let zone = TimeZone::get(zone_name).map_err(|_| BadPlan::Zone)?;
        let line = Line { expr: expr.to_owned(), zone_name: zone_name.to_owned(), fields, zone };
        Ok(Plan::Cron(Box::new(line)))
    }

    /// An interval.
    ///
    /// # Errors
    /// It is too short, or too long.
    pub fn every(ms: u64) -> Result<Plan, BadPlan> {
        if INTERVAL_MS.contains(&ms) { Ok(Plan::Every(ms)) } else { Err(BadPlan::Interval) }
    }

    /// A time.
    ///
    /// # Errors
    /// It is beyond all calendars.
    pub fn at(ms: u64) -> Result<Plan, BadPlan> {
        if ms <= LATEST_MS { Ok(Plan::At(ms)) } else { Err(BadPlan::Interval) }
    }

    /// Whether there is a slot after this time.
    ///
    /// # Errors
    /// There is none.
    pub fn check(&self, now_ms: u64) -> Result<(), BadPlan> {
        match (self.next(now_ms, now_ms), self) {
            (Some(_), _) => Ok(()),
            (None, Plan::At(_)) => Err(BadPlan::Past),
            (None, Plan::Every(_) | Plan::Cron(_)) => Err(BadPlan::Never),
        }
    }

    /// The first slot after a time, of a job that was last edited at `from`.
    #[must_use]
    pub fn next(&self, from_ms: u64, after_ms: u64) -> Option<u64> {
        match self {
            Plan::At(ms) => (*ms > after_ms).then_some(*ms),
            Plan::Every(ms) => {
                let passed = after_ms.saturating_sub(from_ms) / ms;
                from_ms.checked_add(ms.checked_mul(passed.checked_add(1)?)?)
            }
            Plan::Cron(line) => {
                let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
                let next = line.fields.after(after, &line.zone)?;
                u64::try_from(next.as_millisecond()).ok()
            }
        }
    }

    /// The slots after `seen` that are due now. Of those that nobody saw to only the newest counts.
    #[must_use]
    pub fn due(&self, from_ms: u64, seen_ms: u64, now_ms: u64) -> DueSlots {
        let Some(first) = self.next(from_ms, seen_ms.max(from_ms)).filter(|first| *first <= now_ms)
        else {
            return DueSlots::default();
        };
        let late_max = match self {
            Plan::At(_) => SLOT_ONCE_LATE_MAX,
            Plan::Every(_) | Plan::Cron(_) => SLOT_LATE_MAX,
        };
        let late_max = u64::try_from(late_max.as_millis()).unwrap_or(u64::MAX);
        let newest = match self {
            Plan::Every(ms) => from_ms + (now_ms - from_ms) / ms * ms,
            Plan::At(_) => first,
            Plan::Cron(_) => self.newest(from_ms, now_ms).unwrap_or(first).max(first),
        };
        if now_ms - newest > late_max {
            return DueSlots { fires: None, missed: Some(newest) };
        }
        DueSlots { fires: Some(newest), missed: (newest > first).then_some(first) }
    }

    /// The last slot that is not after this time, of a line that has one within nine years.
    fn newest(&self, from_ms: u64, now_ms: u64) -> Option<u64> {
        let until_now = |after| self.next(from_ms, after).filter(|next| *next <= now_ms);
        // A line that has none within one of these has few within the next.
        let mut newest = LOOKED_BACK_MS.into_iter().find_map(|back| {
            let since = now_ms.saturating_sub(back);
            until_now(since)
        })?;
        while let Some(next) = until_now(newest) {
            newest = next;
        }
        Some(newest)
    }

    /// As it is kept, and as clients see it.
    #[must_use]
    pub fn shown(&self) -> Value {
        match self {
            Plan::At(ms) => json!({"kind": "at", "atMs": ms}),
            Plan::Every(ms) => json!({"kind": "every", "everyMs": ms}),
            Plan::Cron(line) => {
                json!({"kind": "cron", "expr": line.expr, "tz": line.zone_name})
            }
        }
    }

    /// And back. `zone`: of a line that names none.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of(shown: &Value, zone: &str) -> Result<Plan, BadPlan> {
        let ms = |name: &str| shown[name].as_u64().ok_or(BadPlan::Form);
        match shown["kind"].as_str() {
            Some("at") => Plan::at(ms("atMs")?),
            Some("every") => Plan::every(ms("everyMs")?),
            Some("cron") => {
                let expr = shown["expr"].as_str().ok_or(BadPlan::Form)?;
                Plan::cron(expr, shown["tz"].as_str().unwrap_or(zone))
            }
            Some(_) | None => Err(BadPlan::Form),
        }
    }
}
