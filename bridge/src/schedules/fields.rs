//! The five fields of a cron line, and the local times that they name.

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, DateTime, Weekday},
    tz::{AmbiguousOffset, TimeZone},
};

/// Days that are looked at for the next time: the 29th of February is at most eight years away.
const DAYS_LOOKED_AT: usize = 9 * 366;
/// Clocks that are put back are put back by less.
const CLOCK_BACK_HOURS: i8 = 3;

/// Sets of minutes, hours, days, months and days of the week, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// The day of the month, and that of the week, are named, and do not just begin with `*`.
    by_day: bool,
    by_weekday: bool,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One field: its bounds, and names of its values.
struct Field {
    min: u32,
    max: u32,
    /// The first one is of `min`.
    names: &'static [&'static str],
}

impl Field {
    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| *name == text);
        let value = match named {
            Some(nth) => self.min + u32::try_from(nth).ok()?,
            None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.min..=self.max).contains(&value).then_some(value)
    }

    /// A list of values, ranges and steps.
    fn set(&self, text: &str) -> Option<u64> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (part, None),
            };
            let (from, to) = if range == "*" {
                (self.min, self.max)
            } else if let Some((from, to)) = range.split_once('-') {
                (self.value(from)?, self.value(to)?)
            } else {
                let value = self.value(range)?;
                (value, if step.is_some() { self.max } else { value })
            };
            let step: u32 = match step {
                Some(step) if step.bytes().all(|b| b.is_ascii_digit()) => step.parse().ok()?,
                Some(_) => return None,
                None => 1,
            };
            if from > to || step == 0 {
                return None;
            }
            let step = usize::try_from(step).ok()?;
            (from..=to).step_by(step).for_each(|value| set |= 1 << value);
        }
        Some(set)
    }
}

impl Fields {
    /// `None`: they are not five, or one is none.
    pub(super) fn parse(line: &str) -> Option<Fields> {
        let line = line.to_ascii_lowercase();
        let mut texts = line.split_ascii_whitespace();
        let mut next = || texts.next();
        let (minute, hour, day, month, weekday) = (next()?, next()?, next()?, next()?, next()?);
        if next().is_some() {
            return None;
        }
        let numbers = |min, max| Field { min, max, names: &[] };
        let mut weekdays = Field { min: 0, max: 7, names: &WEEKDAYS }.set(weekday)?;
        // The 7 is Sunday, too; `*` has it anyway.
        weekdays |= weekdays >> 7 & 1;
        Some(Fields {
            minutes: numbers(0, 59).set(minute)?,
            hours: numbers(0, 23).set(hour)?,
            days: numbers(1, 31).set(day)?,
            months: Field { min: 1, max: 12, names: &MONTHS }.set(month)?,
            weekdays,
            by_day: !day.starts_with('*'),
            by_weekday: !weekday.starts_with('*'),
        })
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |set: u64, value: i8| u32::try_from(value).is_ok_and(|at| set >> at & 1 == 1);
        let (day, weekday) = (has(self.days, date.day()), has(self.weekdays, sunday_first(date)));
        let is_day = match (self.by_day, self.by_weekday) {
            (true, true) => day || weekday,
            (_, _) => day && weekday,
        };
        has(self.months, date.month()) && is_day
    }

    /// The first time after this one. A local time that does not exist is the first one that does; one that exists twice is the
    /// first of the two.
    pub(super) fn after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(time);
        let mut date = local.date();
        // Of the day itself hours that are long over are left out.
        let mut from_hour = (local.hour() - CLOCK_BACK_HOURS).max(0);
        for _ in 0..DAYS_LOOKED_AT {
            if self.has_day(date)
                && let Some(found) = self.within(date, from_hour, time, zone)
            {
                return Some(found);
            }
            from_hour = 0;
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn within(
        &self,
        date: Date,
        from_hour: i8,
        after: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        let hours = (from_hour..24).filter(|hour| self.hours >> hour & 1 == 1);
        for hour in hours {
            for minute in (0..60).filter(|minute| self.minutes >> minute & 1 == 1) {
                let at = instant(date.at(hour, minute, 0, 0), zone)?;
                if at > after {
                    return Some(at);
                }
            }
        }
        None
    }
}

fn sunday_first(date: Date) -> i8 {
    let weekday = date.weekday();
    if weekday == Weekday::Sunday { 0 } else { weekday.to_monday_one_offset() }
}

/// The moment of a local time.
fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
            ambiguous.earlier().ok()
        }
        AmbiguousOffset::Gap { .. } => {
            // With the offset of after the gap it is before it: the clocks are put forward next.
            let before = ambiguous.earlier().ok()?;
            zone.following(before).next().map(|change| change.timestamp())
        }
    }
}
