//! Worlds in which agents have inboxes, and worlds in which agents answer everything: a few of each. More of them by command:
//! `sim --inboxes --seeds 1000`, `sim --answering --seeds 1000`.

use crate::{
    sim::{Coverage, Kind},
    worlds,
};

/// They keep all promises. Happenings in them.
fn play(kind: Kind, seeds: &[u64]) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let summary = worlds::play(kind, *seed..*seed + 1, 1, |_| {});
        let broken: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n\n"));
        coverage.add(&summary.total.coverage);
    }
    coverage
}

fn assert_happened(kind: Kind, coverage: &Coverage, needed: &[&str]) {
    let never = coverage.never(kind);
    let lacking: Vec<_> = needed.iter().filter(|event| never.contains(event)).collect();
    assert!(lacking.is_empty(), "in no world: {lacking:?}");
}

/// Calm, planned restarts, splits, crashes, and everything.
#[test]
fn an_inbox_has_all_that_is_for_its_agent_once_and_in_order() {
    let coverage = play(Kind::WithInboxes, &[4, 5, 7, 12]);
    let needed = [
        "inbox made",
        "inbox there after a restart",
        "message in an inbox",
        "mention in an inbox",
        "older messages filed",
        "item taken out",
        "items confirmed",
        "author told of a request",
        "request has arrived",
        "request handed over",
        "request given up",
        "time of a task up without a result",
        "power failure within a commit",
    ];
    assert_happened(Kind::WithInboxes, &coverage, &needed);
}

#[test]
fn agents_that_answer_everything_come_to_rest() {
    let coverage = play(Kind::Answering, &[3, 8, 17, 25, 26]);
    let needed = [
        "conversation without turns left",
        "chain without hops left",
        "two agents that rest",
        "question of a modest agent answered",
    ];
    assert_happened(Kind::Answering, &coverage, &needed);
}

#[test]
fn messages_over_a_nodes_budgets_are_kept_from_its_agents() {
    let coverage = play(Kind::Answering, &[31, 44]);
    let needed =
        ["message of a node that keeps no budget", "message over the budgets, kept from agents"];
    assert_happened(Kind::Answering, &coverage, &needed);
}
