//! Worlds in which two nodes are never up together, and others carry for them. More of them by command:
//! `sim --carried --seeds 1000`.

use crate::{
    sim::{Coverage, Kind},
    worlds,
};

#[test]
fn what_one_wrote_is_at_the_other_that_was_never_up_at_the_same_time() {
    let mut coverage = Coverage::default();
    for seed in [0, 2, 7] {
        let summary = worlds::play(Kind::Carried, seed..seed + 1, 1, |_| {});
        let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n\n"));
        coverage.add(&summary.total.coverage);
    }
    let needed = ["thing carried", "carried thing dropped", "power failure", "half-open link"];
    let never = coverage.never(Kind::Carried);
    let lacking: Vec<_> = needed.iter().filter(|event| never.contains(event)).collect();
    assert!(lacking.is_empty(), "in no world: {lacking:?}");
}
