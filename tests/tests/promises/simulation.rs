//! The simulated world keeps its promises: the seeds of every test run. More of them by command:
//! `cargo run --bin clawmesh-testnet -- sim --seeds 2000`.

use testnet::{sim::Kind, worlds};

use crate::end_to_end::machine;

#[test]
fn sixty_four_worlds_keep_all_promises() {
    let _alone = machine();
    let summary = worlds::play(Kind::Honest, 0..64, 2, |_| {});
    let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{} worlds of 64:\n{}", broken.len(), broken.join("\n\n"));
    assert_eq!(summary.worlds, 64);
    // Worlds in which nothing happens would keep every promise.
    let total = summary.total;
    assert!(total.entries > 5_000 && total.eras > 200 && total.moves > 500, "{total:?}");
    assert!(total.elections > 200 && total.leaders > 500 && total.decisions > 150, "{total:?}");
    assert!(total.tasks > 400 && total.granted > 300 && total.contested > 10, "{total:?}");
    assert!(total.claims > total.granted * 2, "hardly a claim was too late: {total:?}");
    // A fault that never happens is tested by nothing. Holes are rare, and so are files that are there to be deleted, or that
    // another key than the room's may write: more worlds have them.
    let never = total.coverage.never(Kind::Honest);
    let rare = ["number left as a hole", "file deleted", "file of another key written"];
    let is_rare = |event: &&str| rare.contains(event);
    assert!(never.iter().all(is_rare), "in no world: {never:?}");
}

#[test]
fn one_node_that_lies_harms_no_other() {
    let _alone = machine();
    let summary = worlds::play(Kind::WithLiar, 0..12, 2, |_| {});
    let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{} worlds of 12:\n{}", broken.len(), broken.join("\n\n"));
    let total = summary.total;
    assert!(total.lies.0 > 5_000 && total.lies.1 > 1_000 && total.entries > 1_000, "{total:?}");
}

/// The first seeds, and those that once broke a promise.
#[test]
fn a_node_that_is_expelled_or_given_up_holds_nobody_up() {
    let _alone = machine();
    let mut parted = 0;
    for seeds in [0..20, 50..51, 485..486, 1811..1812] {
        let summary = worlds::play(Kind::WithParting, seeds, 2, |_| {});
        let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n\n"));
        let never = summary.total.coverage.never(Kind::WithParting);
        parted += u64::from(!never.contains(&"node expelled or given up"));
    }
    assert_eq!(parted, 4, "nobody was expelled");
}

/// One node goes on from an earlier copy of its disk: what was changed or deleted since does not come back.
#[test]
fn a_node_that_is_restored_brings_no_record_back_and_takes_the_newer_ones() {
    let _alone = machine();
    let summary = worlds::play(Kind::WithRestore, 0..16, 2, |_| {});
    let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{} worlds of 16:\n{}", broken.len(), broken.join("\n\n"));
    let never = summary.total.coverage.never(Kind::WithRestore);
    let needed = ["went on from an earlier copy", "earlier copy of a record replaced again"];
    assert!(needed.iter().all(|event| !never.contains(event)), "in no world: {never:?}");
}

/// The disk of one node is gone for ever: nothing that it had said several nodes hold.
#[test]
fn a_message_that_two_nodes_hold_outlives_the_disk_of_one() {
    let _alone = machine();
    let summary = worlds::play(Kind::WithLoss, 0..12, 2, |_| {});
    let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{} worlds of 12:\n{}", broken.len(), broken.join("\n\n"));
    let never = summary.total.coverage.never(Kind::WithLoss);
    let needed = ["disk lost for ever", "message held by several nodes"];
    assert!(needed.iter().all(|event| !never.contains(event)), "in no world: {never:?}");
}
