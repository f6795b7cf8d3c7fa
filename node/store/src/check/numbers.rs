//! The numbers of a room: the runs that give them, the entries that they name, and the indexes that
//! follow.

use std::collections::BTreeMap;

use mesh::{
    api::batch::{Fate, NumberRange},
    limits::ORDERED_ITEMS_MAX,
    name::{
        id::{LocalRef, LogIx},
        number::{Era, Number},
    },
};

use super::{
    logs::Given,
    report::{Derived, Place, Problem, Report},
    rooms::Room,
    steps::Steps,
};
use crate::{
    error::ReadError,
    schema::{NUMBER_RANGES, NUMBERS, Numbers, PLACES, fate_of, table},
};

pub(super) fn check(
    room: &Room<'_>,
    given: &[Given],
    steps: &mut Steps<'_>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let row = room.row();
    let here = |number| Place::Number { room: room.view.id, number };
    let places = table(room.read, PLACES)?;
    let numbers = table(room.read, NUMBERS)?;
    for numbered in numbers.range((row, 0)..=(row, u64::MAX))? {
        let (key, numbered) = numbered?;
        let (number, (log, seq, fate)) = (Number(key.value().1), numbered.value());
        let at = LocalRef { log, seq };
        steps.row();
        report.numbers += 1;
        let Ok(fate) = fate_of(fate) else {
            report.add(here(number), Problem::Record("fate"));
            continue;
        };
        if !room.logs.contains_key(&log) {
            report.add(here(number), Problem::NoLog("a number"));
            continue;
        }
        let era = room.eras.get(&number.era());
        if era.is_none_or(|era| number.n() == 0 || number.n() > era.known) {
            report.add(here(number), Problem::NoEra);
        } else if !is_given(given, number, at) {
            report.add(here(number), Problem::NotGiven);
        }
        let entry = places.get((row, log, seq))?.and_then(|row| Numbers::decode(row.value()).ok());
        let indexed =
            entry.as_ref().and_then(|numbers| numbers.0.iter().find(|row| row.0 == number));
        if indexed.is_none_or(|row| row.1 != fate) {
            report.add(here(number), Derived::NumberIndex);
        }
        if fate == Fate::Delivered {
            delivered(room, number, at, entry.as_ref(), report)?;
        }
    }
    missing(room, given, report)?;
    index(room, steps, report)?;
    number_ranges(room, report)?;
    tip(room, report);
    Ok(())
}

/// Whether some sequencer gave this number to this entry.
fn is_given(given: &[Given], number: Number, at: LocalRef) -> bool {
    let end = given.partition_point(|range| range.first <= number);
    let mut near = given[..end].iter().rev();
    let near =
        near.by_ref().take_while(|range| range.first.0 + ORDERED_ITEMS_MAX as u64 > number.0);
    near.into_iter().any(|range| {
        let nth = number.0 - range.first.0;
        nth < range.count
            && range.log == Some(at.log)
            && range.from.checked_add(nth) == Some(at.seq)
    })
}

fn delivered(
    room: &Room<'_>,
    number: Number,
    at: LocalRef,
    numbers: Option<&Numbers>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let here = Place::Number { room: room.view.id, number };
    let held = room.view.gist(at);
    if !matches!(held, Ok(Some(entry)) if entry.facts.visible) {
        report.add(here, Problem::DeliveredNothing);
    }
    let times = |numbers: &Numbers| numbers.0.iter().filter(|row| row.1 == Fate::Delivered).count();
    if numbers.is_some_and(|numbers| times(numbers) > 1) {
        report.add(here, Problem::DeliveredTwice);
    }
    Ok(())
}

/// Numbers that an era knows and a sequencer gave, to a log that the room has, and that have no
/// row.
fn missing(room: &Room<'_>, given: &[Given], report: &mut Report) -> Result<(), ReadError> {
    let row = room.row();
    let numbers = table(room.read, NUMBERS)?;
    for (era, record) in &room.eras {
        let (first, last) = (era.number(1), era.number(record.known));
        let mut next = first;
        let mut gap = |from: Number, upto: Number| {
            if let Some(number) = lost(given, from, upto) {
                let place = Place::Number { room: room.view.id, number };
                report.add(place, Problem::NumberMissing);
            }
        };
        for numbered in numbers.range((row, first.0)..=(row, last.0.max(first.0)))? {
            let number = Number(numbered?.0.value().1);
            gap(next, number);
            next = Number(number.0 + 1);
        }
        gap(next, Number(last.0 + 1));
    }
    Ok(())
}

/// The first number from `from` up to `upto`, left out, that should have a row. However far these
/// are apart, only what was given is looked at.
fn lost(given: &[Given], from: Number, upto: Number) -> Option<Number> {
    if from >= upto {
        return None;
    }
    let start = given.partition_point(|range| range.first.0 + ORDERED_ITEMS_MAX as u64 <= from.0);
    let near = given[start..].iter().take_while(|range| range.first < upto);
    let numbers = near
        .filter(|range| range.log.is_some())
        .flat_map(|range| range.first.0.max(from.0)..(range.first.0 + range.count).min(upto.0));
    numbers.map(Number).find(|number| can_have_row(given, *number))
}

/// Whether it was given to a log that the room has, and by nobody to one that it cannot have: such
/// a number is taken and has no row.
fn can_have_row(given: &[Given], number: Number) -> bool {
    let end = given.partition_point(|range| range.first <= number);
    let near = given[..end]
        .iter()
        .rev()
        .take_while(|range| range.first.0 + ORDERED_ITEMS_MAX as u64 > number.0)
        .filter(|range| number.0 - range.first.0 < range.count);
    let mut some = false;
    for range in near {
        if range.log.is_none() {
            return false;
        }
        some = true;
    }
    some
}

/// The other way round: every place's numbers name it.
fn index(room: &Room<'_>, steps: &mut Steps<'_>, report: &mut Report) -> Result<(), ReadError> {
    let row = room.row();
    let numbers = table(room.read, NUMBERS)?;
    for place in table(room.read, PLACES)?.range((row, 0, 0)..=(row, u32::MAX, u64::MAX))? {
        let (key, place) = place?;
        steps.row();
        let (_, log, seq) = key.value();
        let names = |(number, _): &(Number, Fate)| -> Result<bool, ReadError> {
            let named = numbers.get((row, number.0))?;
            Ok(named.is_some_and(|row| (row.value().0, row.value().1) == (log, seq)))
        };
        let right = match Numbers::decode(place.value()) {
            Ok(all) if !all.0.is_empty() => {
                let mut right = all.0.is_sorted_by(|a, b| a.0 < b.0);
                for number in &all.0 {
                    right &= names(number)?;
                }
                right
            }
            Ok(_) | Err(_) => false,
        };
        if !right {
            report.add(room.entry(log, seq), Derived::NumberIndex);
        }
    }
    Ok(())
}

/// The range of numbers for each entry that is numbered and not held, as far as it follows from
/// other rows: entries behind a fork have none.
pub(super) fn expected(room: &Room<'_>) -> Result<BTreeMap<(LogIx, u64), NumberRange>, ReadError> {
    let row = room.row();
    let places = table(room.read, PLACES)?;
    let mut expected = BTreeMap::new();
    for (ix, log) in &room.logs {
        let upto = log.fork.map_or(u64::MAX, |fork| fork.saturating_sub(1));
        if log.head >= upto {
            continue;
        }
        for place in places.range((row, *ix, log.head + 1)..=(row, *ix, upto))? {
            let (key, place) = place?;
            if let Ok(numbers) = Numbers::decode(place.value())
                && let Some(bounds) = crate::view::bounds(&numbers)
            {
                expected.insert((*ix, key.value().2), bounds);
            }
        }
    }
    Ok(expected)
}

fn number_ranges(room: &Room<'_>, report: &mut Report) -> Result<(), ReadError> {
    let row = room.row();
    let mut expected = expected(room)?;
    for range in table(room.read, NUMBER_RANGES)?.range((row, 0, 0)..=(row, u32::MAX, u64::MAX))? {
        let (key, range) = range?;
        let ((_, log, seq), (best, canonical)) = (key.value(), range.value());
        let right = match expected.remove(&(log, seq)) {
            Some(range) => (range.best.0, range.canonical.0) == (best, canonical),
            // Held meanwhile, and nothing that is delivered; or behind a fork.
            None => room.logs.contains_key(&log),
        };
        if !right {
            report.add(room.entry(log, seq), Derived::NumberRangeIndex);
        }
    }
    for (log, seq) in expected.into_keys() {
        report.add(room.entry(log, seq), Derived::NumberRangeIndex);
    }
    Ok(())
}

/// The tip that the eras say.
pub(super) fn tip_of(room: &Room<'_>) -> Number {
    let done = |(era, record): (&Era, &mesh::api::batch::EraRecord)| era.number(record.done);
    let begun = room.eras.iter().filter(|(_, era)| era.done > 0);
    begun.map(done).max().unwrap_or(Number::ZERO)
}

fn tip(room: &Room<'_>, report: &mut Report) {
    if room.record.tip != tip_of(room) {
        report.add(Place::Room { room: room.view.id }, Derived::Tip);
    }
}
