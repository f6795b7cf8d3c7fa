//! Some small worlds, all of them, in each test run.

use super::*;

fn search_all(setting: Setting) -> Report {
    let report = search(setting, &mut |_| {});
    println!("{report}");
    report
}

#[test]
fn tmp() {
    for (nodes, messages, faults, states) in [(2, 2, 0, 10000), (3, 1, 0,10000), (2,1,1,3000),(2,1,2,2000),(3,1,1,5000)] {
        search_all(Setting { nodes, messages, faults, states, ..Setting::default() });
    }
}

#[test]
fn a_disk_that_forgets_is_found_out() {
    let setting = Setting { nodes: 2, messages: 2, faults: 1, states: 10_000, forgetful: true, ..Setting::default() };
    let report = search_all(setting);
    assert!(report.failure.is_some());
}
