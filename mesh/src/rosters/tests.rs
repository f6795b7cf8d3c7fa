use super::*;
use crate::{command::Presence, entry::RoomCreated, limits::FRAME_BYTES_MAX, roster::RoomFacts};

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

#[test]
fn a_whole_roster_fits_a_frame_whatever_is_said_of_its_rooms() {
    let mut rosters = Rosters::new(NodeId([1; 32]), MeshId([0; 16]), 1);
    let RosterNews { what: What::Whole { changes, .. }, .. } = news(1, true, "me") else {
        panic!("it is whole")
    };
    let [RosterChange::Agent(agent, record)] = &changes[..] else { panic!("one agent") };
    rosters.put(now(), agent.clone(), record.clone());
    for n in 0..256_u16 {
        let mut id = [0; 16];
        id[..2].copy_from_slice(&n.to_be_bytes());
        let created = RoomCreated {
            room: RoomId(id),
            name: format!("room{n}"),
            description: Some("x".repeat(4_096)),
            parent: None,
            public: true,
            encrypted: false,
            owner: KeyPrint([1; 16]),
            created_by: "me".into(),
            imported: None,
        };
        let home = LogId { author: NodeId([1; 32]), incarnation: 1 };
        let room = EphemeralRoom { facts: RoomFacts::Open(created), home, created_ms: 1 };
        rosters.list(RoomId(id), Some(room));
    }
    let what = rosters.whole();
    assert!(crate::entry::encode(&what).len() <= FRAME_BYTES_MAX);
    let What::Whole { changes, .. } = what else { panic!("it is whole") };
    assert!(changes.len() > 200, "as many as fit");
    assert!(changes.iter().any(|it| matches!(it, RosterChange::Agent(..))));
}
