//! Some small worlds, all of them, in each test run.

use super::*;

/// Worlds of this size, as far as so many states.
fn of(nodes: usize, messages: u8, faults: u8, states: usize) -> Setting {
    Setting { nodes, messages, faults, states, ..Setting::default() }
}

fn keeps_all(setting: Setting) -> Report {
    let report = search(setting, None, &mut |_| {}).expect("no steps are given");
    println!("{report}");
    assert!(report.failure.is_none(), "{report}");
    report
}

#[test]
fn every_order_without_faults() {
    for (nodes, messages) in [(2, 3), (3, 1)] {
        let report = keeps_all(of(nodes, messages, 0, 10_000));
        assert!(report.all && report.ends > 0, "{report}");
        assert_eq!((report.took_over, report.handed_over), (0, 0), "{report}");
    }
}

#[test]
fn every_order_of_two_nodes_and_a_fault() {
    let report = keeps_all(of(2, 1, 1, 1_000));
    assert!(report.ends > 0 && report.took_over > 0 && report.handed_over > 0, "{report}");
}

#[test]
fn every_order_of_three_nodes_and_a_fault() {
    let report = keeps_all(of(3, 1, 1, 1_800));
    assert!(report.ends > 0 && report.handed_over > 0, "{report}");
}

/// The sequencer was killed, and has been silent for almost as long as it may be.
#[test]
fn every_order_of_a_takeover() {
    let after = "crash 0, frame 0>1, frame 0>2, say 1, gossip 1>2, wait";
    let report = search(of(3, 1, 1, 2_500), Some(after), &mut |_| {}).expect("they are steps");
    println!("{report}");
    assert!(report.failure.is_none() && report.took_over > 0, "{report}");
}

#[test]
fn every_order_of_two_nodes_and_two_faults() {
    let report = keeps_all(of(2, 2, 2, 1_000));
    assert!(report.ends > 0 && report.handed_over > 0, "{report}");
}

/// Without gossip all is found by comparing.
#[test]
fn every_order_where_nodes_compare() {
    let report = keeps_all(Setting { gossip: false, ..of(2, 2, 0, 1_000) });
    assert!(report.ends > 0, "{report}");
}

/// A node that does not make durable what it says is found out, in few steps, and these steps find it again.
#[test]
fn a_disk_that_forgets_is_found() {
    let setting = Setting { forgetful: true, ..of(2, 2, 1, 3_000) };
    let report = search(setting, None, &mut |_| {}).expect("no steps are given");
    let failure = report.failure.clone().expect("it is found");
    assert!(failure.steps.split(',').count() <= 4, "{report}");
    let again = replay(setting, &failure.steps, &mut |_| {}).expect("they are steps");
    assert_eq!(again, Err(failure.broken));
    let without = Setting { forgetful: false, ..setting };
    assert_eq!(replay(without, &failure.steps, &mut |_| {}).expect("they are steps"), Ok(()));
}

/// The first node gives the lobby's numbers. It is killed, and another one goes on; both have said something while they
/// could not hear each other.
#[test]
fn steps_can_be_played() {
    let takeover = "crash 0, say 1, frame 0>1, wait, wait, say 1, start 0";
    let split = "cut 0>1, say 0, say 1, frame 0>1, frame 1>0, wait, wait, say 0, heal 0>1";
    for steps in [takeover, split] {
        let mut told = Vec::new();
        let played = replay(of(2, 1, 1, 1), steps, &mut |text| told.push(text.to_owned()));
        assert_eq!(played.expect("they are steps"), Ok(()), "{steps}");
        assert!(told.len() > steps.split(',').count());
    }
    for wrong in ["", "say", "say 1 2", "jump 1", "frame 1", "frame 0>1", "say 7", "wait"] {
        assert!(replay(of(2, 1, 1, 1), wrong, &mut |_| {}).is_err(), "{wrong:?} is none");
    }
}

#[test]
fn smaller_worlds_come_first() {
    let all = of(3, 6, 2, 1).and_smaller();
    let sizes = all.iter().map(|it| (it.nodes, it.messages, it.faults)).collect::<Vec<_>>();
    assert_eq!((sizes.first(), sizes.last()), (Some(&(2, 1, 0)), Some(&(3, 6, 2))));
    assert_eq!(sizes.len(), 18);
}
