use std::collections::BTreeSet;

use crate::{Judge, Promise, Report, line::Line};

/// Two nodes, two agents; the second one is attached to the second node, and asks twice for its message.
const GOOD: &[&str] = &[
    r#"{"saw":"asked","request":"a1","text":"one"}"#,
    r#"{"saw":"told","node":1,"request":"a1","message":"m1","number":1,"text":"one"}"#,
    r#"{"saw":"asked","request":"b1","text":"two"}"#,
    r#"{"saw":"heard","node":2,"connection":7,"message":"m1","number":1,"text":"one"}"#,
    r#"{"saw":"asked","request":"a2","text":"refused"}"#,
    r#"{"saw":"refused","request":"a2"}"#,
    r#"{"saw":"asked","request":"b1","text":"two"}"#,
    r#"{"saw":"told","node":2,"request":"b1","message":"m2","number":2,"text":"two"}"#,
    r#"{"saw":"told","node":2,"request":"b1","message":"m2","number":2,"text":"two"}"#,
    r#"{"saw":"own","connection":7,"message":"m2"}"#,
    r#"{"saw":"calm"}"#,
    r#"{"saw":"asked","request":"a3","text":"three"}"#,
    r#"{"saw":"told","node":1,"request":"a3","message":"m3","number":3,"text":"three"}"#,
    r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":3,"text":"three"}"#,
    r#"{"saw":"reads","node":1}"#,
    r#"{"saw":"has","node":1,"message":"m1","number":1,"text":"one"}"#,
    r#"{"saw":"has","node":1,"message":"m2","number":2,"text":"two"}"#,
    r#"{"saw":"has","node":1,"message":"m3","number":3,"text":"three"}"#,
    r#"{"saw":"reads","node":2}"#,
    r#"{"saw":"has","node":2,"message":"m1","number":1,"text":"one"}"#,
    r#"{"saw":"has","node":2,"message":"m2","number":2,"text":"two"}"#,
    r#"{"saw":"has","node":2,"message":"m3","number":3,"text":"three"}"#,
    r#"{"saw":"resolved","node":2,"number":1,"message":"m1"}"#,
];

fn judged<'a>(lines: impl IntoIterator<Item = &'a str>) -> Report {
    let mut judge = Judge::default();
    for line in lines {
        let line: Line = serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        judge.note(line);
    }
    judge.end()
}

/// The good history without one line, and with others in its place.
fn broken_by(at: usize, instead: &[&str]) -> BTreeSet<&'static str> {
    let lines = GOOD[..at].iter().chain(instead).chain(&GOOD[at + 1..]).copied();
    judged(lines).all_broken().map(Promise::name).collect()
}

fn at(line: &str) -> usize {
    GOOD.iter().position(|other| *other == line).expect(line)
}

#[test]
fn a_good_history_keeps_every_promise_and_tries_each() {
    let report = judged(GOOD.iter().copied());
    assert_eq!(report.all_broken().count(), 0, "{report}");
    for promise in Promise::ALL {
        assert!(report.of(promise).tried > 0, "{}", promise.name());
    }
    assert!(!report.to_string().contains("not tried"));
}

#[test]
fn of_nothing_nothing_is_said() {
    let report = judged([]);
    assert_eq!(report.all_broken().count(), 0);
    assert_eq!(report.to_string().matches("not tried").count(), Promise::ALL.len());
}

#[test]
fn each_promise_can_be_broken() {
    let last = GOOD.len() - 1;
    let third_of_two = at(r#"{"saw":"has","node":2,"message":"m3","number":3,"text":"three"}"#);
    let first_of_two = at(r#"{"saw":"has","node":2,"message":"m1","number":1,"text":"one"}"#);
    let three =
        at(r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":3,"text":"three"}"#);
    let again = at(r#"{"saw":"own","connection":7,"message":"m2"}"#) - 1;
    let cases: [(usize, &[&str], &[&str]); 13] = [
        // Another message of a number, and another text of a message.
        (
            last,
            &[r#"{"saw":"told","node":1,"message":"m9","number":1}"#],
            &["acknowledged", "names"],
        ),
        (last, &[r#"{"saw":"told","node":1,"message":"m1","number":1,"text":"ONE"}"#], &["names"]),
        // One that is gone at one node, and at both.
        (third_of_two, &[], &["acknowledged", "complete"]),
        (last, &[r#"{"saw":"told","node":1,"message":"m9","number":9}"#], &["acknowledged"]),
        // Backwards, and twice.
        (first_of_two, &[], &["acknowledged", "complete"]),
        (
            three,
            &[
                r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":3}"#,
                r#"{"saw":"heard","node":2,"connection":7,"message":"m1","number":1}"#,
            ],
            &["once", "rising"],
        ),
        (
            third_of_two,
            &[
                r#"{"saw":"has","node":2,"message":"m3","number":3}"#,
                r#"{"saw":"has","node":2,"message":"m1","number":11}"#,
            ],
            &["once"],
        ),
        // Passed over on a connection.
        (again + 1, &[], &["pushed"]),
        // Another number after the calm.
        (third_of_two, &[r#"{"saw":"has","node":2,"message":"m3","number":33}"#], &["agreement"]),
        // Two messages of one request.
        (
            again,
            &[r#"{"saw":"told","node":2,"request":"b1","message":"m8","number":8}"#],
            &["acknowledged", "one of a request"],
        ),
        (
            third_of_two,
            &[
                GOOD[third_of_two],
                r#"{"saw":"has","node":2,"message":"m6","number":6,"text":"two"}"#,
            ],
            &["complete", "one of a request"],
        ),
        // There, though it was refused; there, though nobody said it.
        (
            third_of_two,
            &[
                GOOD[third_of_two],
                r#"{"saw":"has","node":2,"message":"m4","number":4,"text":"refused"}"#,
                r#"{"saw":"has","node":2,"message":"m5","number":5,"text":"thin air"}"#,
            ],
            &["complete", "refused", "said"],
        ),
        (last, &[r#"{"saw":"resolved","node":2,"number":1}"#], &["resolves"]),
    ];
    for (at, instead, broken) in cases {
        assert_eq!(
            broken_by(at, instead),
            BTreeSet::from_iter(broken.iter().copied()),
            "{instead:?}"
        );
    }
    let tried: BTreeSet<&str> = cases.iter().flat_map(|(_, _, broken)| *broken).copied().collect();
    assert_eq!(tried, Promise::ALL.iter().map(|promise| promise.name()).collect());
}

#[test]
fn what_was_refused_may_be_asked_again() {
    let again = [
        r#"{"saw":"asked","request":"a2","text":"refused"}"#,
        r#"{"saw":"told","node":1,"request":"a2","message":"m4","number":4,"text":"refused"}"#,
    ];
    let has = |node: u32| {
        format!(r#"{{"saw":"has","node":{node},"message":"m4","number":4,"text":"refused"}}"#)
    };
    let (one, two) = (has(1), has(2));
    let second = at(r#"{"saw":"reads","node":2}"#);
    let lines = GOOD[..14].iter().copied().chain(again).chain(GOOD[14..second].iter().copied());
    let lines = lines.chain([one.as_str()]).chain(GOOD[second..].iter().copied());
    let report = judged(lines.chain([two.as_str()]));
    assert_eq!(report.all_broken().count(), 0, "{report}");
}

#[test]
fn after_the_calm_all_have_one_number_who_were_told_and_who_heard_it() {
    let three =
        at(r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":3,"text":"three"}"#);
    let other = r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":30}"#;
    assert!(broken_by(three, &[other]).contains("agreement"));
    let told = r#"{"saw":"told","node":2,"message":"m3","number":31}"#;
    assert!(broken_by(three, &[GOOD[three], told]).contains("agreement"));
}

#[test]
fn what_was_pushed_is_there_in_the_end() {
    let three =
        at(r#"{"saw":"heard","node":2,"connection":7,"message":"m3","number":3,"text":"three"}"#);
    let lost = r#"{"saw":"heard","node":2,"connection":7,"message":"m9","number":9,"text":"two"}"#;
    assert!(broken_by(three, &[GOOD[three], lost]).contains("complete"));
}

#[test]
fn of_several_readings_the_last_counts() {
    let early =
        [r#"{"saw":"reads","node":2}"#, r#"{"saw":"has","node":2,"message":"m1","number":1}"#];
    let report = judged(GOOD[..2].iter().chain(&early).chain(&GOOD[2..]).copied());
    assert_eq!(report.all_broken().count(), 0, "{report}");
}

#[test]
fn other_lines_are_none_of_a_history() {
    for bad in [r#"{"saw":"nothing"}"#, r#"{"saw":"calm","more":1}"#, "{}", "[]"] {
        assert!(serde_json::from_str::<Line>(bad).is_err(), "{bad}");
    }
}
