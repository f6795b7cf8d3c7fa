//! Clients that come from another node: they may be told twice, they must not miss anything.

use std::collections::BTreeSet;

use mesh::{
    api::batch::{Change, EraRecord, Fate, RoomRecord},
    name::{
        id::LocalRef,
        number::{Era, Number},
    },
};
use store::{Cursor, Reader, Roam, Store, testing::CrashingBackend};

use crate::{model::*, rows::*};

fn reader(batch: &[Change]) -> Reader {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    store.commit(batch).unwrap();
    store.reader()
}

fn unproven(roam: &Roam) -> Vec<LocalRef> {
    roam.unproven.iter().map(|it| it.0).collect()
}

fn served(roam: &Roam) -> Vec<(Number, LocalRef)> {
    roam.rows.iter().map(|row| (row.number, row.at)).collect()
}

/// Home 1 to 4 delivered here. On the other side of a split somebody got only to 2, and opened an
/// era in which the third message was numbered again: known here, passed over.
fn healed() -> (Vec<Change>, Era) {
    let new = Era::new(1, 7).unwrap();
    let mut batch: Vec<Change> = (1..=4).flat_map(|seq| message(ROOM, seq)).collect();
    batch.extend([
        log(ROOM, 1, 1),
        entry(ROOM, at(1, 1), stored(9, "from over there")),
        era(ROOM, new, 2, 2, &[(Era::HOME, 2)]),
        number(ROOM, new.number(1), at(1, 1), Fate::Delivered),
        number(ROOM, new.number(2), at(0, 3), Fate::Assigned),
        tip(ROOM, new.number(1)),
    ]);
    (batch, new)
}

#[test]
fn in_calm_weather_roaming_is_paging() {
    let mut batch: Vec<Change> = (1..=9).flat_map(|seq| message(ROOM, seq)).collect();
    let record = RoomRecord { tip: Number(9), delivered: 9, ..room_record() };
    batch.push(Change::Room { room: ROOM, record });
    let reader = reader(&batch);
    for cursor in 0..12 {
        let cursor = Number(cursor);
        assert_eq!(reader.serves(ROOM, cursor).unwrap(), Cursor::Here, "{cursor}");
        assert_eq!(reader.serves_roamer(ROOM, cursor).unwrap(), Cursor::Here, "{cursor}");
        let roam = reader.roam(ROOM, cursor, 100).unwrap();
        assert_eq!(roam.rows, reader.page_since(ROOM, cursor, 100).unwrap());
        assert!(roam.unproven.is_empty() && !roam.needs_claim && !roam.more);
        assert_eq!(roam.later, None);
        let at_once = reader.page_at_once(ROOM, cursor, 4).unwrap();
        let page = reader.page_since(ROOM, cursor, 4).unwrap();
        assert_eq!(at_once, (cursor <= Number(9)).then_some(page), "of what is known");
    }
    assert_eq!(reader.page_at_once(ROOM, Number(1), 101).unwrap(), None, "it takes long");
    let page = reader.roam(ROOM, Number(2), 3).unwrap();
    assert_eq!((page.rows.last().unwrap().number, page.more), (Number(5), true));
}

/// Numbers that a ClawChat server had no message of: there is nothing of them to be seen.
#[test]
fn a_cursor_that_names_nothing_is_served_as_the_one_before_it() {
    let mut record = room_record();
    (record.tip, record.delivered) = (Number(12), 3);
    let mut batch = vec![Change::Room { room: ROOM, record }];
    let numbers = [3, 4, 9];
    for (seq, given) in (1..).zip(numbers) {
        batch.extend([
            log(ROOM, 0, seq),
            entry(ROOM, at(0, seq), stored(seq, "brought")),
            number(ROOM, Number(given), at(0, seq), Fate::Delivered),
        ]);
    }
    let record =
        EraRecord { known: 12, done: 12, empty: 9, ..EraRecord::new(log_id(1), Vec::new()) };
    batch.push(Change::Era { room: ROOM, era: Era::HOME, record });
    let reader = reader(&batch);
    for cursor in 0..15 {
        let cursor = Number(cursor);
        assert_eq!(reader.serves(ROOM, cursor).unwrap(), Cursor::Here, "{cursor}");
        assert_eq!(reader.serves_roamer(ROOM, cursor).unwrap(), Cursor::Here, "{cursor}");
        let above: Vec<u64> = numbers.into_iter().filter(|it| *it > cursor.0).collect();
        let page = reader.page_since(ROOM, cursor, 100).unwrap();
        assert_eq!(page.iter().map(|row| row.number.0).collect::<Vec<_>>(), above);
        assert_eq!(reader.roam(ROOM, cursor, 100).unwrap().rows, page);
        let named = reader.by_number(ROOM, cursor).unwrap().is_some();
        assert_eq!(named, numbers.contains(&cursor.0), "{cursor}");
    }
    let newest = reader.page_newest(ROOM, 2, None).unwrap();
    assert_eq!(newest.iter().map(|row| row.number.0).collect::<Vec<_>>(), [4, 9]);
}

#[test]
fn a_client_from_the_other_side_gets_what_that_side_had_not() {
    let (batch, new) = healed();
    let reader = reader(&batch);
    // It has seen home 1 and 2, then the first of the new era.
    let roam = reader.roam(ROOM, new.number(1), 100).unwrap();
    assert_eq!(served(&roam), [(new.number(2), at(0, 3))]);
    let delivered = vec![(at(0, 4), Some(Number(4)))];
    assert_eq!((&roam.unproven, roam.needs_claim), (&delivered, true));
    // Once it has a number there, nothing is in the way.
    let newer = Era::new(2, 1).unwrap();
    let mut batch = batch;
    batch.extend([
        era(ROOM, newer, 1, 1, &[(new, 2), (Era::HOME, 4)]),
        number(ROOM, newer.number(1), at(0, 4), Fate::Assigned),
    ]);
    let reader = self::reader(&batch);
    let roam = reader.roam(ROOM, new.number(1), 100).unwrap();
    assert_eq!(served(&roam), [(new.number(2), at(0, 3)), (newer.number(1), at(0, 4))]);
    assert!(!roam.needs_claim);
    // One whose cursor the newer era's cut covers has seen it all.
    let roam = reader.roam(ROOM, newer.number(1), 100).unwrap();
    assert!(roam.rows.is_empty() && !roam.needs_claim, "{roam:?}");
}

#[test]
fn a_cursor_of_an_unknown_era_proves_nothing() {
    let (batch, new) = healed();
    let reader = reader(&batch);
    let far = Era::new(3, 9).unwrap().number(5);
    assert_eq!(reader.serves(ROOM, far).unwrap(), Cursor::Foreign);
    let roam = reader.roam(ROOM, far, 100).unwrap();
    let unproven: BTreeSet<LocalRef> = unproven(&roam).into_iter().collect();
    let all = [at(0, 1), at(0, 2), at(0, 3), at(0, 4), at(1, 1)];
    assert_eq!(unproven, BTreeSet::from(all));
    assert!(roam.needs_claim && roam.rows.is_empty());
    assert_eq!(reader.serves(ROOM, new.number(1)).unwrap(), Cursor::Here, "delivered here");
    let roamer = reader.serves_roamer(ROOM, new.number(1)).unwrap();
    assert_eq!(roamer, Cursor::Foreign, "home 3 and 4 were not, over there");
    assert_eq!(reader.serves(ROOM, new.number(2)).unwrap(), Cursor::Here, "ahead of the tip");
    assert_eq!(reader.serves(ROOM, Number(9)).unwrap(), Cursor::Foreign, "behind it, unknown");
}

#[test]
fn a_hole_is_never_taken_for_seen() {
    // Turned up when both of its numbers had been left as holes here.
    let (mut batch, new) = healed();
    batch.extend([
        log(ROOM, 1, 2),
        entry(ROOM, at(1, 2), stored(9, "turned up late")),
        era(ROOM, Era::HOME, 5, 5, &[]),
        number(ROOM, Number(5), at(1, 2), Fate::Hole),
        era(ROOM, new, 3, 3, &[(Era::HOME, 2)]),
        number(ROOM, new.number(3), at(1, 2), Fate::Hole),
        tip(ROOM, new.number(3)),
    ]);
    let roam = reader(&batch).roam(ROOM, new.number(3), 9).unwrap();
    assert_eq!(roam.unproven, [(at(0, 4), Some(Number(4))), (at(1, 2), None)]);
    batch.push(number(ROOM, new.number(3), at(1, 2), Fate::Assigned));
    let roam = reader(&batch).roam(ROOM, new.number(3), 9).unwrap();
    assert_eq!(unproven(&roam), [at(0, 4)]);
}

#[test]
fn a_cut_of_the_other_side_proves_nothing() {
    // 1.5 was opened by one who had home 1 to 4, 1.7 by one who had home 1 to 2.
    let (mut batch, new) = healed();
    let other = Era::new(1, 5).unwrap();
    batch.push(era(ROOM, other, 0, 0, &[(Era::HOME, 4)]));
    let roam = reader(&batch).roam(ROOM, new.number(1), 9).unwrap();
    assert_eq!(unproven(&roam), [at(0, 4)]);
}

#[test]
fn what_is_passed_over_later_is_told() {
    let (mut batch, new) = healed();
    batch.extend([
        era(ROOM, new, 3, 1, &[(Era::HOME, 2)]),
        // Content that is still on its way, then one that was delivered here as home 4.
        number(ROOM, new.number(2), at(1, 2), Fate::Assigned),
        number(ROOM, new.number(3), at(0, 4), Fate::Assigned),
        number(ROOM, Number(3), at(0, 3), Fate::Delivered),
    ]);
    let roam = reader(&batch).roam(ROOM, new.number(1), 9).unwrap();
    assert_eq!(roam.rows, [], "not past what is still to be delivered");
    assert_eq!(roam.later, Some(new.number(3)));
}

/// Seed 20725 of the simulation: what was numbered for a client where it had been before was heard
/// of here when it had come already, and passed over.
#[test]
fn what_gets_another_number_is_served_to_whoever_came_after_its_delivery() {
    let (mut batch, new) = healed();
    let served = |batch: &[Change], after: Number, came: Number| -> Vec<(Number, LocalRef)> {
        let rows = reader(batch).page_of_arrival(ROOM, after, came, 9).unwrap();
        rows.iter().map(|row| (row.number, row.at)).collect()
    };
    let third = [(new.number(2), at(0, 3))];
    let came = new.number(1);
    assert_eq!(served(&batch, came, came), [], "it is not passed over yet");
    batch.push(tip(ROOM, new.number(2)));
    assert_eq!(served(&batch, came, came), third, "its cut is below what was delivered here");
    assert_eq!(served(&batch, new.number(2), came), [], "it has got it");
    for came in 0..5 {
        let expected = [];
        assert_eq!(served(&batch, new.number(1), Number(came)), expected, "proven: {came}");
    }
    let all = [(Number(4), at(0, 4)), (new.number(1), at(1, 1))];
    assert_eq!(served(&batch, Number(3), Number::ZERO), all, "who was always here");
    let newer = Era::new(2, 1).unwrap().number(1);
    batch.extend([
        era(ROOM, newer.era(), 1, 1, &[(new, 2)]),
        number(ROOM, newer, at(0, 3), Fate::Assigned),
        tip(ROOM, newer),
    ]);
    assert_eq!(served(&batch, came, came), third, "once");
}

/// Seed 9011 of the simulation: a page for a client that had come here ended between the number that others had given a
/// message and the later one that it has here. Others took that message for seen.
#[test]
fn no_page_ends_between_the_two_numbers_of_what_is_still_to_be_given() {
    let (mut batch, new) = healed();
    let newer = Era::new(2, 1).unwrap();
    batch.extend([
        log(ROOM, 1, 2),
        entry(ROOM, at(1, 2), stored(10, "given by others as the third of that era")),
        era(ROOM, new, 4, 4, &[(Era::HOME, 2)]),
        number(ROOM, new.number(3), at(1, 2), Fate::Assigned),
        number(ROOM, new.number(4), at(0, 4), Fate::Assigned),
        era(ROOM, newer, 1, 1, &[(new, 2), (Era::HOME, 4)]),
        number(ROOM, newer.number(1), at(1, 2), Fate::Delivered),
        tip(ROOM, newer.number(1)),
    ]);
    let reader = reader(&batch);
    let came = new.number(1);
    let page = |limit: usize| -> Vec<(Number, LocalRef)> {
        let rows = reader.page_of_arrival(ROOM, came, came, limit).unwrap();
        rows.iter().map(|row| (row.number, row.at)).collect()
    };
    let all = [(new.number(2), at(0, 3)), (new.number(4), at(0, 4)), (newer.number(1), at(1, 2))];
    assert_eq!(page(0), []);
    assert_eq!(page(1), all[..1]);
    assert_eq!(page(2), all);
    assert_eq!(page(9), all);
}

/// 77 of the runs with real daemons: whatever had some number above the cursor was served again.
#[test]
fn what_is_proven_seen_is_not_served_however_often_it_is_numbered_again() {
    let (mut batch, new) = healed();
    let newer = Era::new(2, 1).unwrap();
    // Somebody had all of it numbered once more.
    batch.push(era(ROOM, newer, 5, 5, &[(new, 2), (Era::HOME, 4)]));
    let again = [at(0, 1), at(0, 2), at(0, 3), at(0, 4), at(1, 1)];
    for (n, place) in (1..).zip(again) {
        batch.push(number(ROOM, newer.number(n), place, Fate::Assigned));
    }
    batch.push(tip(ROOM, newer.number(5)));
    let reader = reader(&batch);
    // Home 4 is at the end of all of home, 1.7.1 is in an era whose cut is home 2.
    assert_eq!(reader.serves_roamer(ROOM, Number(4)).unwrap(), Cursor::Here);
    let rows = reader.roam(ROOM, Number(4), 9).unwrap();
    assert_eq!(served(&rows), [(new.number(1), at(1, 1))]);
    assert_eq!(reader.serves_roamer(ROOM, new.number(1)).unwrap(), Cursor::Foreign);
    let rows = reader.roam(ROOM, new.number(1), 9).unwrap();
    assert_eq!(served(&rows), [(new.number(2), at(0, 3)), (newer.number(4), at(0, 4))]);
    let rows = reader.page_of_arrival(ROOM, new.number(1), new.number(1), 9).unwrap();
    assert_eq!(rows.iter().map(|it| it.at).collect::<Vec<_>>(), [at(0, 3), at(0, 4)]);
}

#[test]
fn nobody_waits_for_what_is_too_old_or_numbers_it_again() {
    let (mut batch, new) = healed();
    batch.extend([
        era(ROOM, new, 3, 1, &[(Era::HOME, 2)]),
        number(ROOM, new.number(2), at(1, 2), Fate::Assigned),
        number(ROOM, new.number(3), at(0, 4), Fate::Assigned),
        number(ROOM, Number(3), at(0, 3), Fate::Delivered),
    ]);
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    store.commit(&batch).unwrap();
    let reader = store.reader();
    let mut check = |pruned: bool, (later, serves): (Option<Number>, Cursor)| {
        if pruned {
            store.commit(&[Change::Prune { room: ROOM, before_ms: 5_000 }]).unwrap();
        }
        assert_eq!(reader.roam(ROOM, new.number(1), 9).unwrap().later, later);
        assert_eq!(reader.serves_roamer(ROOM, new.number(1)).unwrap(), serves);
        let far = Era::new(3, 9).unwrap().number(5);
        let unproven = unproven(&reader.roam(ROOM, far, 9).unwrap());
        assert_eq!(unproven.contains(&at(0, 1)), !pruned, "{unproven:?}");
    };
    check(false, (Some(new.number(3)), Cursor::Foreign));
    check(true, (None, Cursor::Here));
}

/// What a client misses that has seen `seen` up to `cursor` elsewhere and now reads here, to the
/// end.
fn missed(
    here: &Node,
    reader: &Reader,
    seen: &BTreeSet<LocalRef>,
    cursor: Number,
) -> Vec<LocalRef> {
    let roam = reader.roam(ROOM, cursor, 1_000).unwrap();
    let numbers: Vec<Number> = roam.rows.iter().map(|row| row.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "rising");
    let rows: BTreeSet<LocalRef> = roam.rows.iter().map(|row| row.at).collect();
    assert_eq!(rows.len(), numbers.len(), "once");
    let told = |place: &LocalRef| {
        rows.contains(place)
            // Too old to be told.
            || reader.row_at(ROOM, *place).unwrap().is_some_and(|row| row.said.is_none())
            || roam.unproven.iter().any(|it| it.0 == *place)
            || seen.contains(place)
            // Comes live, or must be asked for again.
            || here.brings(*place)
            || roam.later.is_some_and(|later| {
                let numbers = reader.numbers_of(ROOM, *place).unwrap();
                numbers.iter().any(|(number, _)| *number > cursor && *number <= later)
            })
    };
    here.log.iter().map(|(_, place)| *place).filter(|place| !told(place)).collect()
}

/// Any number of worlds by `ROAM_SEEDS=3000 cargo test -p store roam`.
#[test]
fn nobody_who_roams_misses_anything() {
    let seeds = std::env::var("ROAM_SEEDS").map_or(150, |it| it.parse().unwrap());
    let (mut checked, mut here_at_once, mut unheard, mut dropped) = (0, 0, 0, 0);
    let mut read_at_once = 0;
    // In that one a cursor is in the delivery log, and what was delivered before it has a number
    // still to come.
    for seed in (0..seeds).chain([1886]) {
        let mut random = Random(seed);
        let nodes = world(&mut random, seed % 2 == 0);
        for here in &nodes {
            let mut batch = here.rows();
            let pruned = random.below(3) == 0;
            let reader = if pruned {
                // Nothing of it is there before: what goes is what an earlier commit wrote.
                let mut store = Store::on(CrashingBackend::new(0)).unwrap();
                store.commit(&batch).unwrap();
                batch = vec![Change::Prune { room: ROOM, before_ms: random.below(20) * 1_000 }];
                store.commit(&batch).unwrap();
                store.reader()
            } else {
                reader(&batch)
            };
            let gone = |place: LocalRef| {
                reader.row_at(ROOM, place).unwrap().is_some_and(|row| row.said.is_none())
            };
            dropped += here.log.iter().filter(|it| gone(it.1)).count();
            for there in &nodes {
                let length = usize::try_from(random.below(there.log.len() as u64 + 1)).unwrap();
                let seen: BTreeSet<LocalRef> = there.log[..length].iter().map(|it| it.1).collect();
                let cursor = there.log[..length].last().map_or(Number::ZERO, |it| it.0);
                // A node that was in an era that nobody here has heard of may have passed over
                // anything: see `docs/store.md`, "What roaming cannot know".
                if !here.knows_eras_of(there, cursor.era()) {
                    unheard += 1;
                    continue;
                }
                let limit = usize::try_from(random.below(12)).unwrap();
                let at_once = reader.page_at_once(ROOM, cursor, limit).unwrap();
                let missed = missed(here, &reader, &seen, cursor);
                assert!(missed.is_empty(), "seed {seed}, cursor {cursor:?}: {missed:?}");
                let serves = reader.serves_roamer(ROOM, cursor).unwrap();
                if let Some(rows) = at_once {
                    assert_eq!(serves, Cursor::Here, "seed {seed}, {cursor:?}");
                    assert_eq!(rows, reader.page_since(ROOM, cursor, limit).unwrap());
                    read_at_once += 1;
                }
                if serves == Cursor::Here {
                    let mut below = here.log.iter().filter(|(number, _)| *number <= cursor);
                    assert!(
                        below.all(|it| seen.contains(&it.1) || gone(it.1)),
                        "seed {seed}, {cursor:?}"
                    );
                    here_at_once += 1;
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 1_000 && here_at_once > checked / 2, "{here_at_once} of {checked}");
    assert!(read_at_once > checked / 20, "{read_at_once} of {checked}");
    assert!(dropped > checked, "{dropped} bodies dropped in {checked} checks");
    assert!(checked - here_at_once > 50 && unheard < checked / 50, "{unheard} of {checked}");
}

/// Home 1 to 4, delivered here; then a message in an era whose cut names them, and all four once
/// more in a higher one: somebody came from an era that is not known here.
fn numbered_for_a_stranger() -> (Vec<Change>, [Era; 3]) {
    let [unknown, newer, newest] =
        [(1, 9), (2, 1), (3, 1)].map(|(c, lane)| Era::new(c, lane).unwrap());
    let mut batch: Vec<Change> = (1..=4).flat_map(|seq| message(ROOM, seq)).collect();
    batch.extend([
        log(ROOM, 1, 1),
        entry(ROOM, at(1, 1), stored(9, "new")),
        era(ROOM, newer, 1, 1, &[(Era::HOME, 4)]),
        number(ROOM, newer.number(1), at(1, 1), Fate::Delivered),
        era(ROOM, newest, 4, 4, &[(newer, 1)]),
        tip(ROOM, newest.number(4)),
    ]);
    batch.extend((1..=4).map(|n| number(ROOM, newest.number(n), at(0, n), Fate::Assigned)));
    (batch, [unknown, newer, newest])
}

/// Found by worlds: who left after a page that ended in an era whose cut named the rest of it never
/// got that rest.
#[test]
fn a_page_ends_where_its_cursor_proves_nothing_that_is_still_to_be_served() {
    let (batch, [unknown, ..]) = numbered_for_a_stranger();
    let reader = reader(&batch);
    let came = unknown.number(3);
    let all: BTreeSet<LocalRef> = (1..=4).map(|seq| at(0, seq)).chain([at(1, 1)]).collect();
    for limit in 1..=6 {
        let (mut cursor, mut got) = (came, BTreeSet::new());
        loop {
            let roam = reader.roam(ROOM, cursor, limit).unwrap();
            got.extend(roam.rows.iter().map(|it| it.at));
            cursor = roam.rows.last().map_or(cursor, |it| it.number);
            if !roam.more {
                break;
            }
        }
        assert_eq!(got, all, "in pages of {limit}");
    }
    let roam = reader.roam(ROOM, came, 1).unwrap();
    // Its first number is of an era whose cut names the rest, which another node may take for seen
    // then.
    assert_eq!((served(&roam).len(), roam.more), (5, false));
}

/// Other nodes have given under this number what is still to come here, under another one.
#[test]
fn a_page_waits_for_an_entry_that_others_have() {
    let (mut batch, [unknown, _, newest]) = numbered_for_a_stranger();
    batch.extend([
        era(ROOM, newest, 6, 6, &[]),
        number(ROOM, newest.number(5), at(2, 1), Fate::Hole),
        log(ROOM, 1, 2),
        entry(ROOM, at(1, 2), stored(10, "newer")),
        number(ROOM, newest.number(6), at(1, 2), Fate::Delivered),
        tip(ROOM, newest.number(6)),
    ]);
    let reader = self::reader(&batch);
    let roam = reader.roam(ROOM, unknown.number(3), 9).unwrap();
    assert_eq!((roam.rows.last().unwrap().number, roam.more), (newest.number(4), true));
    let roam = reader.roam(ROOM, newest.number(4), 9).unwrap();
    assert_eq!((served(&roam).len(), roam.more), (1, false));
    assert_eq!(roam.later, Some(newest.number(5)), "it is given as it is when that was waited for");
}

/// Home 1 and 2 delivered here, home 3 passed over in an era of this side of a split, before its
/// entry came. The other side had it, and opened a higher era.
fn cut_names_what_is_not_here() -> (Vec<Change>, [Era; 2]) {
    let [here, there] = [(1, 9), (2, 1)].map(|(c, lane)| Era::new(c, lane).unwrap());
    let mut batch: Vec<Change> = (1..=2).flat_map(|seq| message(ROOM, seq)).collect();
    batch.extend([
        era(ROOM, Era::HOME, 3, 3, &[]),
        number(ROOM, Number(3), at(0, 3), Fate::Assigned),
        log(ROOM, 1, 3),
        entry(ROOM, at(1, 1), stored(9, "on this side")),
        entry(ROOM, at(1, 2), stored(10, "on this side")),
        entry(ROOM, at(1, 3), stored(11, "on the other")),
        era(ROOM, here, 2, 2, &[(Era::HOME, 2)]),
        number(ROOM, here.number(1), at(1, 1), Fate::Delivered),
        number(ROOM, here.number(2), at(1, 2), Fate::Delivered),
        era(ROOM, there, 1, 1, &[(Era::HOME, 3)]),
        number(ROOM, there.number(1), at(1, 3), Fate::Delivered),
        tip(ROOM, there.number(1)),
    ]);
    (batch, [here, there])
}

/// Seed 21379 of the simulation at d6b3f50: a client read on into the other side's era, whose cut
/// named messages that its node had not got yet. Other nodes took them for seen.
#[test]
fn a_page_does_not_go_on_into_an_era_whose_cut_names_what_is_missing_here() {
    let (mut batch, [here, there]) = cut_names_what_is_not_here();
    let roam = reader(&batch).roam(ROOM, here.number(1), 9).unwrap();
    assert_eq!((served(&roam), roam.more), (vec![(here.number(2), at(1, 2))], true));
    // It is waited for, and what is here is given when that was long enough.
    let roam = reader(&batch).roam(ROOM, here.number(2), 9).unwrap();
    assert_eq!((served(&roam).len(), roam.more, roam.later), (1, false, Some(Number(3))));
    // Before live messages of that era, too.
    let before = batch.clone();
    batch.extend([
        era(ROOM, there, 0, 0, &[(Era::HOME, 3)]),
        number(ROOM, there.number(1), at(1, 3), Fate::Assigned),
        tip(ROOM, here.number(2)),
    ]);
    let roam = reader(&batch).roam(ROOM, here.number(2), 9).unwrap();
    assert_eq!((served(&roam).len(), roam.later), (0, Some(Number(3))));
    // It has come, and has a number that its client is given: nothing is waited for.
    let mut batch = before;
    batch.extend([
        log(ROOM, 0, 3),
        entry(ROOM, at(0, 3), stored(3, "late")),
        era(ROOM, there, 2, 2, &[(Era::HOME, 3)]),
        number(ROOM, there.number(2), at(0, 3), Fate::Delivered),
        tip(ROOM, there.number(2)),
    ]);
    let roam = reader(&batch).roam(ROOM, here.number(1), 2).unwrap();
    assert_eq!((served(&roam).len(), roam.more, roam.later), (1, true, None));
    let roam = reader(&batch).roam(ROOM, here.number(2), 1).unwrap();
    assert_eq!((served(&roam).len(), roam.more, roam.later), (2, false, None));
    // One whose cursor proves it waits for nothing.
    let (batch, _) = cut_names_what_is_not_here();
    let roam = reader(&batch).roam(ROOM, there.number(1), 9).unwrap();
    assert_eq!((served(&roam).len(), roam.later), (0, None));
}
