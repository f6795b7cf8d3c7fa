use super::*;
use crate::command::Presence;

const TELLER: NodeId = NodeId([5; 32]);

fn now() -> Now {
    Now { mono: Duration::from_secs(1), wall_ms: 1_000, wall_us: 1_000_000 }
}

fn rosters() -> Rosters {
    let mut rosters = Rosters::new(NodeId([1; 32]), MeshId([0; 16]), 1);
    assert_eq!(rosters.apply(now(), news(1, true, "first")), Taken::Now);
    rosters.set_alive(now().mono, TELLER, true);
    rosters
}

fn news(version: u64, whole: bool, agent: &str) -> RosterNews {
    let record = AgentRecord {
        name: agent.into(),
        key: KeyPrint([1; 16]),
        capabilities: Vec::new(),
        registered: 1,
        connected_ms: 0,
        last_active_ms: 0,
        presence: Presence::default(),
        rooms: BTreeMap::new(),
        reconnected: false,
        gone: None,
    };
    let changes = vec![RosterChange::Agent(agent.into(), record)];
    let what =
        if whole { What::Whole { version, changes } } else { What::Changes { version, changes } };
    RosterNews { node: TELLER, boot: 1, what }
}

fn agents(rosters: &Rosters) -> Vec<&str> {
    rosters.agents().map(AsRef::as_ref).collect()
}

#[test]
fn changes_that_overtake_others_wait_for_them() {
    let mut rosters = rosters();
    assert_eq!(rosters.apply(now(), news(4, false, "fourth")), Taken::Missing);
    assert_eq!(rosters.apply(now(), news(3, false, "third")), Taken::Missing);
    assert_eq!(agents(&rosters), ["first"]);
    assert_eq!(rosters.apply(now(), news(2, false, "second")), Taken::Now);
    assert_eq!(agents(&rosters), ["first", "fourth", "second", "third"]);
    assert_eq!(rosters.version(TELLER), (1, 4));
}

#[test]
fn a_whole_roster_goes_before_changes_that_it_had_already() {
    let mut rosters = rosters();
    for (version, agent) in [(3, "third"), (6, "sixth")] {
        assert_eq!(rosters.apply(now(), news(version, false, agent)), Taken::Missing);
    }
    assert_eq!(rosters.apply(now(), news(5, true, "fifth")), Taken::Now);
    assert_eq!(agents(&rosters), ["fifth", "sixth"], "third is gone again by then");
    assert_eq!(rosters.version(TELLER), (1, 6));
}

#[test]
fn a_node_that_never_says_what_came_first_costs_little() {
    let mut rosters = rosters();
    for version in (3..200).rev() {
        assert_eq!(rosters.apply(now(), news(version, false, "x")), Taken::Missing);
    }
    assert_eq!(rosters.nodes[&TELLER].early.len(), ROSTER_CHANGES_EARLY_MAX);
    assert_eq!(rosters.apply(now(), news(2, false, "x")), Taken::Now);
    assert_eq!(rosters.version(TELLER), (1, 2 + ROSTER_CHANGES_EARLY_MAX as u64));
}
