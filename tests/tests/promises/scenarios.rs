//! Scenarios, scaled down: all in the simulated world, those with three nodes with real daemons too. Their
//! full size by command: `cargo run --release --bin clawmesh-testnet -- run split --world process`.

use std::collections::BTreeSet;

use judge::Promise;
use testnet::{
    binary,
    scenario::{
        self, Report, catalogue,
        daemons::Setting,
        disks::Disk,
        file::{Scenario, World},
    },
};
use tokio::runtime::Runtime;

use crate::end_to_end::machine;

/// Of the messages that scenarios say, in the simulated world.
const SIMULATED: f64 = 0.05;
/// And with real daemons.
const REAL: f64 = 0.01;
/// Those that real daemons play in every test run: one of each kind of fault, and one without.
const PLAYED: [&str; 5] = ["sequencer-killed", "blackout", "roaming", "disk-full", "hand-over"];

fn scenario(name: &str, scale: f64) -> Scenario {
    let scenario = catalogue::named(name).unwrap_or_else(|| panic!("there is no {name}"));
    scenario.unwrap_or_else(|error| panic!("{name}: {error}")).scaled(scale)
}

fn kept(name: &str, report: &Report) {
    assert!(report.broken.is_empty(), "{name}: {:#?}", report.broken);
    assert!(report.told > 0 && report.heard > 0 && report.messages > 0, "{name}: {report:?}");
    let verdict = judged(report);
    assert_eq!(verdict.all_broken().count(), 0, "{name}: {verdict}");
    let always = [Promise::Names, Promise::Rising, Promise::Once, Promise::Acknowledged];
    assert!(always.iter().all(|promise| verdict.of(*promise).tried > 0), "{name}: {verdict}");
}

/// By a judge that shares no code with the checkers of scenarios.
fn judged(report: &Report) -> judge::Report {
    let mut history = Vec::new();
    report.history.write(&mut history).unwrap_or_else(|error| panic!("{error}"));
    let mut judge = judge::Judge::default();
    for line in String::from_utf8_lossy(&history).lines() {
        judge.note(serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")));
    }
    judge.end()
}

#[test]
fn every_scenario_keeps_its_promises_in_the_simulated_world() {
    let _alone = machine();
    for name in catalogue::names() {
        let scenario = scenario(name, SIMULATED);
        if !scenario.worlds.contains(&World::Sim) {
            continue;
        }
        // Of many nodes one world is as much work as many others.
        let seeds = if scenario.nodes > 20 { 1 } else { 2 };
        for seed in 0..seeds {
            let report = scenario::simulate(&scenario, seed, false);
            let report = report.unwrap_or_else(|broken| {
                panic!("{name}: {broken}\nrun {name} --seed {seed} --scale {SIMULATED}")
            });
            kept(&format!("run {name} --seed {seed} --scale {SIMULATED}"), &report);
        }
    }
}

#[test]
fn scenarios_keep_their_promises_with_real_daemons() {
    let _alone = machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let names: BTreeSet<&str> = catalogue::names().collect();
    for name in PLAYED {
        assert!(names.contains(name), "{name}");
        let scenario = scenario(name, REAL);
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let setting = Setting {
            binary: binary.clone(),
            other: None,
            dir: dir.path().to_owned(),
            libfaketime: None,
            disk: Disk::Limit,
        };
        let runtime = Runtime::new().unwrap_or_else(|error| panic!("{error}"));
        let report = runtime.block_on(scenario::run(&scenario, setting));
        let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
        kept(&format!("run {name} --world process --scale {REAL}"), &report);
    }
}
