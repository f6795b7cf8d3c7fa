//! The bench measures real daemons: its figures are for readers; here, that every row comes to figures
//! and that its load notices losses.

use serde_json::Value;
use testnet::{
    bench::{self, Row, Setting, Target},
    binary,
    process::{Auth, Mesh, Plan, Terminal},
};
use tokio::runtime::Runtime;

use crate::end_to_end::part_of_the_machine;

/// Rows that take little: the others need a thousand connections, or many messages.
const ROWS: [Row; 18] = [
    Row::Ok,
    Row::Rooms,
    Row::Room,
    Row::FanOut,
    Row::History,
    Row::Hop,
    Row::Acts,
    Row::Copies,
    Row::Profile,
    Row::Tools,
    Row::Writers,
    Row::Heal,
    Row::Wire,
    Row::Finder,
    Row::FinderMail,
    Row::FinderJoin,
    Row::Clawtank,
    Row::Spectators,
];
const SCALE: f64 = 0.01;

fn measure(runtime: &Runtime, rows: &[Row], target: Target) -> Value {
    let (rows, beside) = (rows.to_vec(), None);
    let setting = Setting { rows, target, beside, nats: None, scale: SCALE, tell: |_| {} };
    let report = runtime.block_on(bench::measure(setting));
    let report = report.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(bench::draw(&report).starts_with("<svg "));
    assert!(report.table().contains("fsync of one page"));
    serde_json::from_str(&report.json().expect("JSON")).expect("JSON")
}

fn names(report: &Value) -> Vec<&str> {
    let figures = report["figures"].as_array().expect("figures").iter();
    figures
        .map(|figure| {
            assert!(figure["value"].as_f64().expect("a value") > 0.0, "{figure}");
            figure["name"].as_str().expect("a name")
        })
        .collect()
}

#[test]
fn each_row_comes_to_figures() {
    let _part = part_of_the_machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let runtime = Runtime::new().expect("a runtime");
    let report = measure(&runtime, &ROWS, Target::Daemons { binary, nodes: 1 });
    let expected = [
        "ok_p50",
        "ok_p99",
        "rooms",
        "room",
        "fan_out_50_p50",
        "fan_out_50_p99",
        "history",
        "history_p99",
        "hop_p50",
        "hop_p99",
        "hop_ok_p50",
        "join_p50",
        "page_p50",
        "vote_p50",
        "election_p50",
        "copies_p50",
        "copies_other_p50",
        "profile_set_p50",
        "profile_seen_p50",
        "profile_read_p50",
        "profile_page_p50",
        "tools_list_p50",
        "tools_send_p50",
        "tools_wait_p50",
        "tools_ask_p50",
        "writers",
        "heal",
        "wire",
        "finder_search_p50",
        "finder_send_p50",
        "finder_inbox_p50",
        "finder_join",
        "clawtank_claim_p50",
        "clawtank_told_p50",
        "spectators_p50",
        "spectators_p99",
    ];
    assert_eq!(names(&report), expected);
}

/// Twice: a server may have been measured before.
#[test]
fn a_server_that_runs_can_be_measured_with_its_key() {
    let _part = part_of_the_machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan {
        binary,
        nodes: 1,
        auth: Auth::Key,
        keep: None,
        flags: Vec::new(),
        terminal: Terminal::Shared,
    };
    let runtime = Runtime::new().expect("a runtime");
    let mesh = runtime.block_on(Mesh::up(plan)).unwrap_or_else(|error| panic!("{error}"));
    for _ in 0..2 {
        let address = mesh.nodes[0].tcp().to_owned();
        let key = mesh.key().map(str::to_owned);
        let report = measure(&runtime, &[Row::Ok, Row::Room], Target::Server { address, key });
        assert_eq!(names(&report), ["ok_p50", "ok_p99", "room"]);
    }
}

#[test]
fn growth_has_a_column_for_each_size() {
    let _part = part_of_the_machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let runtime = Runtime::new().expect("a runtime");
    let target = Target::Daemons { binary, nodes: 1 };
    let (rows, beside) = (Vec::new(), None);
    let setting = Setting { rows, target, beside, nats: None, scale: SCALE, tell: |_| {} };
    let growth = runtime.block_on(bench::grow(setting, &[1, 2], &[3]));
    let growth = growth.unwrap_or_else(|error| panic!("{error:#}"));
    let table = growth.table();
    assert!(table.contains("NODES") && table.contains("ROOMS"), "{table}");
    let json: Value = serde_json::from_str(&growth.json().expect("JSON")).expect("JSON");
    assert_eq!(json["nodes"][1]["size"], 2, "{json}");
    assert_eq!(json["rooms"][0]["values"].as_array().map(Vec::len), Some(6), "{json}");
}

#[test]
fn what_is_measured_beside_is_compared() {
    let _part = part_of_the_machine();
    let binary = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let runtime = Runtime::new().expect("a runtime");
    let target = Target::Daemons { binary: binary.clone(), nodes: 1 };
    let (rows, beside) = (vec![Row::Ok], Some(binary));
    let setting = Setting { rows, target, beside, nats: None, scale: SCALE, tell: |_| {} };
    let report = runtime.block_on(bench::measure(setting));
    let report = report.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(report.table().contains("RATIO"), "{}", report.table());
    let json: Value = serde_json::from_str(&report.json().expect("JSON")).expect("JSON");
    assert!(json["figures"][0]["beside"].as_f64().is_some_and(|beside| beside > 0.0), "{json}");
}
