use super::{stamps::COUNT_BITS, *};
use crate::{
    limits::{
        AGENT_ID_BYTES_MAX, AGENTS_PER_NODE_MAX, CAPABILITIES_MAX, DESCRIPTION_BYTES_MAX,
        EPHEMERAL_ROOMS_MAX, FRAME_BYTES_MAX, GROUPS_FOLLOWED_MAX, NAME_BYTES_MAX,
        ROOMS_PER_AGENT_MAX, ROSTER_BYTES_MAX, ROSTER_CHANGES_EARLY_MAX, SEALED_FACTS_BYTES_MAX,
        STAMP_AHEAD_MAX,
    },
    name::number::Number,
    presence::ephemeral::ephemeral_id,
    wire::{
        roster::{Presence, Seat},
        seal::Token,
    },
};

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
        lingers: false,
        hosted: false,
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

const ME: NodeId = NodeId([1; 32]);
const OTHER: NodeId = NodeId([6; 32]);
const KEY: KeyPrint = KeyPrint([1; 16]);

fn record(registered: u64, rooms: &[(u8, u64)]) -> AgentRecord {
    let seat = |(room, joined): &(u8, u64)| {
        (RoomId([*room; 16]), Seat { joined: *joined, seen: Number::ZERO, guest: false })
    };
    AgentRecord {
        name: "x".into(),
        key: KEY,
        capabilities: Vec::new(),
        registered,
        connected_ms: 0,
        last_active_ms: 0,
        presence: Presence::default(),
        rooms: rooms.iter().map(seat).collect(),
        reconnected: false,
        gone: None,
        lingers: false,
        hosted: false,
    }
}

/// The whole roster of a node, at a version.
fn whole(node: NodeId, (boot, version): (u64, u64), changes: Vec<RosterChange>) -> RosterNews {
    RosterNews { node, boot, what: What::Whole { version, changes } }
}

fn agent(name: &str, record: AgentRecord) -> RosterChange {
    RosterChange::Agent(name.into(), record)
}

/// An ephemeral room whose home is a log of this node, and its announcement.
fn room(node: NodeId, nth: u64) -> (RoomId, EphemeralRoom) {
    let home = LogId { author: node, incarnation: 1 << 20 | nth };
    let id = ephemeral_id(MeshId([0; 16]), home, false);
    let facts = RoomCreated {
        room: id,
        name: "x".to_owned(),
        description: None,
        parent: None,
        public: true,
        encrypted: false,
        owner: KEY,
        created_by: "x".into(),
        imported: None,
    };
    (id, EphemeralRoom { facts: RoomFacts::Open(facts), home, created_ms: 1 })
}

/// Nobody is known but this node.
fn alone() -> Rosters {
    Rosters::new(ME, MeshId([0; 16]), 1)
}

/// They say this, and live.
fn says(rosters: &mut Rosters, news: RosterNews) -> Taken {
    let node = news.node;
    let taken = rosters.apply(now(), news);
    rosters.set_alive(now().mono, node, true);
    taken
}

#[test]
fn stamps_rise_and_are_of_their_microsecond_and_above_those_that_were_seen() {
    let mut rosters = Rosters::new(NodeId([0xff; 32]), MeshId([0; 16]), 1);
    let first = rosters.stamp(now());
    assert_eq!(first >> COUNT_BITS, now().wall_us);
    let second = rosters.stamp(now());
    assert!(second > first);
    let later = second + 1_000;
    says(&mut rosters, whole(TELLER, (1, 1), vec![agent("a", record(5, &[(1, later)]))]));
    assert!(rosters.stamp(now()) > later, "also of seats");
}

#[test]
fn a_stamp_of_the_far_future_wins_over_nobody_and_moves_no_clock() {
    let mut rosters = alone();
    let ahead = u64::try_from(STAMP_AHEAD_MAX.as_micros()).expect("days");
    let last = (now().wall_us + ahead) << COUNT_BITS;
    let far = last + (1 << COUNT_BITS);
    let changes = vec![agent("near", record(last, &[])), agent("far", record(far, &[]))];
    says(&mut rosters, whole(TELLER, (1, 1), changes));
    assert_eq!(agents(&rosters), ["near"]);
    let changes = vec![agent("seated", record(5, &[(1, far * 2)]))];
    says(&mut rosters, whole(TELLER, (1, 2), changes));
    assert!(rosters.stamp(now()) < far);
}

#[test]
fn of_two_registrations_of_one_id_the_later_one_has_it_and_its_seats() {
    let mut rosters = alone();
    let at = |rosters: &Rosters| rosters.node_of("a");
    rosters.put(now(), "a".into(), record(5, &[(1, 5)]));
    assert_eq!((at(&rosters), rosters.count_at(ME), rosters.count_at(TELLER)), (Some(ME), 1, 0));
    says(&mut rosters, whole(TELLER, (1, 1), vec![agent("a", record(4, &[(1, 4)]))]));
    assert_eq!(at(&rosters), Some(ME), "an earlier one is none");
    rosters.take_happened();
    let mut later = record(6, &[(1, 5)]);
    later.reconnected = true;
    says(&mut rosters, whole(OTHER, (1, 1), vec![agent("a", later)]));
    assert_eq!((at(&rosters), rosters.count_at(ME), rosters.count_at(OTHER)), (Some(OTHER), 0, 1));
    let member = Member { joined: 5, node: OTHER, agent: "a".into(), guest: false };
    assert_eq!(rosters.members(RoomId([1; 16])), [member], "its seat went with it");
    assert_eq!(rosters.own("a"), None, "this node gives it up");
    let superseded = RosterEvent::Superseded { agent: "a".into() };
    assert_eq!(rosters.take_happened(), [RosterEvent::Shows { node: OTHER }, superseded]);
    let Some(What::Changes { changes, .. }) = rosters.take_news() else { panic!("it says so") };
    assert_eq!(changes.last(), Some(&RosterChange::NoAgent("a".into())));
}

#[test]
fn who_comes_back_is_in_its_rooms_again_and_joins_others_anew() {
    let mut rosters = alone();
    let back = AgentRecord { reconnected: true, ..record(6, &[(1, 5), (2, 6), (3, 7)]) };
    rosters.put(now(), "a".into(), back);
    let happened = rosters.take_happened();
    let again = |nth: u8, reconnected| RosterEvent::Joined {
        room: RoomId([nth; 16]),
        agent: "a".into(),
        reconnected,
    };
    assert_eq!(happened, [again(1, true), again(2, false), again(3, false)]);
    rosters.put(now(), "b".into(), record(6, &[(1, 5)]));
    let joined =
        RosterEvent::Joined { room: RoomId([1; 16]), agent: "b".into(), reconnected: false };
    assert_eq!(rosters.take_happened(), [joined], "it took nothing up");
}

#[test]
fn members_are_told_of_what_an_agent_does_when_it_is_something_else() {
    let mut rosters = alone();
    let mut it = record(6, &[]);
    rosters.put(now(), "a".into(), it.clone());
    rosters.put(now(), "a".into(), it.clone());
    assert_eq!(rosters.take_happened(), []);
    it.presence.progress = Some(5);
    rosters.put(now(), "a".into(), it);
    assert_eq!(rosters.take_happened(), [RosterEvent::Presence { agent: "a".into() }]);
    rosters.touch("a", 77);
    rosters.touch("a", 7);
    assert_eq!(rosters.record("a").map(|(_, it)| it.last_active_ms), Some(77));
}

#[test]
fn an_id_is_its_owners_and_another_key_that_has_it_loses_it() {
    let mut rosters = alone();
    let other = KeyPrint([2; 16]);
    rosters.put(now(), "mine".into(), record(5, &[]));
    says(&mut rosters, whole(TELLER, (1, 1), vec![agent("theirs", record(5, &[]))]));
    for name in ["mine", "theirs"] {
        rosters.set_owner(&name.into(), Some(KEY));
    }
    assert_eq!(agents(&rosters), ["mine", "theirs"]);
    rosters.take_happened();
    for name in ["mine", "theirs"] {
        rosters.set_owner(&name.into(), Some(other));
    }
    assert_eq!(agents(&rosters), [] as [&str; 0]);
    assert_eq!(rosters.take_happened(), [RosterEvent::Superseded { agent: "mine".into() }]);
    rosters.set_owner(&"theirs".into(), None);
    assert_eq!(agents(&rosters), ["theirs"], "its claim did not count");
}

#[test]
fn a_node_says_of_its_agents_and_rooms_what_is_everybodys_business() {
    let mut rosters = alone();
    let (open, own) = (room(ME, 1), room(ME, 2));
    rosters.local_rooms.insert(own.0);
    assert!(!rosters.lists_itself(open.0));
    for (id, it) in [&open, &own] {
        rosters.list(*id, Some(it.clone()));
        assert!(rosters.lists_itself(*id));
    }
    let mut it = record(5, &[(1, 5)]);
    it.rooms.insert(own.0, Seat { joined: 6, seen: Number::ZERO, guest: false });
    rosters.put(now(), "a".into(), it);
    let token = Token([7; 16]);
    rosters.follow(token);
    let said = [
        RosterChange::Room(open.0, open.1.clone()),
        agent("a", record(5, &[(1, 5)])),
        RosterChange::Follows(token),
    ];
    let news = rosters.take_news();
    assert_eq!(news, Some(What::Changes { version: 1, changes: said.to_vec() }));
    assert_eq!(rosters.take_news(), None, "once");
    let [open, agent, follows] = said;
    let changes = vec![follows, agent, open];
    assert_eq!(rosters.whole(), What::Whole { version: 1, changes: changes.clone() });
    assert_eq!(rosters.whole_anew(), What::Whole { version: 2, changes });
}

#[test]
fn a_roster_is_told_as_far_as_it_fits_a_frame() {
    let mut rosters = alone();
    for nth in 0..GROUPS_FOLLOWED_MAX {
        let mut token = [0; 16];
        token[..8].copy_from_slice(&(nth as u64).to_be_bytes());
        rosters.follow(Token(token));
    }
    let mut large = record(5, &[]);
    large.presence.detail = Some("x".repeat(DESCRIPTION_BYTES_MAX));
    for nth in 0..300 {
        rosters.put(now(), format!("agent {nth}").as_str().into(), large.clone());
    }
    let whole = crate::wire::cbor::encode(&rosters.whole()).len();
    assert!(whole <= ROSTER_BYTES_MAX, "{whole}");
    assert!(whole > ROSTER_BYTES_MAX - 2 * DESCRIPTION_BYTES_MAX, "{whole}: almost all that fits");
}

#[test]
fn a_node_that_started_anew_lost_its_agents_and_they_may_come_back() {
    for (boot, kept) in [(1, false), (2, true)] {
        let mut rosters = rosters();
        assert_eq!(says(&mut rosters, whole(TELLER, (boot, 9), Vec::new())), Taken::Now);
        assert_eq!(agents(&rosters), [] as [&str; 0]);
        assert_eq!(rosters.latest("first").is_some(), kept, "boot {boot}");
    }
}

#[test]
fn what_came_early_of_an_earlier_start_is_dropped() {
    let mut rosters = rosters();
    assert_eq!(rosters.apply(now(), news(3, false, "third")), Taken::Missing);
    assert_eq!(says(&mut rosters, whole(TELLER, (2, 2), Vec::new())), Taken::Now);
    assert_eq!(rosters.version(TELLER), (2, 2));
    assert_eq!(agents(&rosters), [] as [&str; 0]);
    // And of this start it is not.
    let mut rosters = self::rosters();
    assert_eq!(rosters.apply(now(), news(3, false, "third")), Taken::Missing);
    assert_eq!(says(&mut rosters, whole(TELLER, (1, 2), Vec::new())), Taken::Now);
    assert_eq!((agents(&rosters), rosters.version(TELLER)), (vec!["third"], (1, 3)));
}

#[test]
fn agents_go_with_a_node_that_is_silent_and_are_forgotten_with_time() {
    let mut rosters = rosters();
    rosters.put(now(), "mine".into(), record(5, &[]));
    rosters.set_alive(now().mono, ME, false);
    assert_eq!(agents(&rosters), ["first", "mine"], "this node hears itself");
    rosters.set_alive(now().mono, TELLER, false);
    rosters.put(now(), "mine".into(), AgentRecord { gone: Some(6), ..record(5, &[]) });
    assert_eq!(agents(&rosters), [] as [&str; 0]);
    let known = |rosters: &Rosters| ["first", "mine"].map(|it| rosters.latest(it).is_some());
    rosters.expire(now().mono + RECONNECT_WITHIN - Duration::from_millis(1));
    assert_eq!(known(&rosters), [true, true]);
    rosters.take_news();
    rosters.expire(now().mono + RECONNECT_WITHIN);
    assert_eq!(known(&rosters), [false, false]);
    let Some(What::Changes { changes, .. }) = rosters.take_news() else { panic!("it says so") };
    assert_eq!(changes, [RosterChange::NoAgent("mine".into())]);
    // Its roster is news when it is heard again, though it is the one that it had.
    assert_eq!(says(&mut rosters, news(1, true, "first")), Taken::Now);
    assert_eq!(agents(&rosters), ["first"]);
    rosters.expire(now().mono + RECONNECT_WITHIN * 9);
    assert_eq!(agents(&rosters), ["first"], "whoever is heard is not forgotten");
}

#[test]
fn a_room_of_memory_lives_while_a_living_node_lists_it() {
    let mut rosters = alone();
    let (id, it) = room(TELLER, 1);
    let listed = || vec![RosterChange::Room(id, it.clone())];
    let rooms = |rosters: &mut Rosters| {
        let happened = rosters.take_happened().into_iter();
        happened.filter(|it| !matches!(it, RosterEvent::Shows { .. })).collect::<Vec<_>>()
    };
    for node in [TELLER, OTHER] {
        says(&mut rosters, whole(node, (1, 1), listed()));
    }
    assert_eq!(rooms(&mut rosters), [RosterEvent::RoomLives { room: id }], "once");
    rosters.set_alive(now().mono, TELLER, false);
    assert_eq!(rooms(&mut rosters), []);
    says(&mut rosters, whole(OTHER, (1, 2), Vec::new()));
    assert_eq!(rooms(&mut rosters), [RosterEvent::RoomDied { room: id }]);
    assert_eq!(rosters.ephemeral_rooms().count(), 0);
}

/// The announcement that nobody could open so far may be no good: another one is looked at.
#[test]
fn another_sealed_announcement_of_a_room_is_news_until_one_was_opened() {
    let mut rosters = alone();
    let home = LogId { author: TELLER, incarnation: 1 << 20 | 1 };
    let id = ephemeral_id(MeshId([0; 16]), home, true);
    let listed = |byte| {
        let facts = RoomFacts::Sealed { owner: KEY, sealed: vec![byte; 40].into() };
        vec![RosterChange::Room(id, EphemeralRoom { facts, home, created_ms: 1 })]
    };
    let lives = |rosters: &mut Rosters| {
        let happened = rosters.take_happened().into_iter();
        happened.filter(|it| *it == RosterEvent::RoomLives { room: id }).count()
    };
    for node in [TELLER, OTHER] {
        says(&mut rosters, whole(node, (1, 1), listed(1)));
        assert_eq!(lives(&mut rosters), 1);
    }
    says(&mut rosters, whole(OTHER, (1, 2), listed(1)));
    assert_eq!(lives(&mut rosters), 0, "the same of the same node");
    assert_eq!(
        (rosters.unopened_of(KEY), rosters.unopened_of(KeyPrint([2; 16]))),
        (vec![id], vec![])
    );
    let RoomFacts::Open(facts) = room(TELLER, 1).1.facts else { panic!("it is") };
    rosters.open_room(id, RoomCreated { room: id, ..facts });
    assert_eq!(rosters.unopened_of(KEY), []);
    says(&mut rosters, whole(NodeId([8; 32]), (1, 1), listed(2)));
    assert_eq!(lives(&mut rosters), 0, "it is known what it is");
}

#[test]
fn what_no_node_would_say_is_refused() {
    let taken = |change: RosterChange| {
        let taken = says(&mut alone(), whole(TELLER, (1, 1), vec![change]));
        assert!(matches!(taken, Taken::Now | Taken::Refused));
        taken == Taken::Now
    };
    let with = |change: &dyn Fn(&mut AgentRecord)| {
        let mut it = record(5, &[]);
        change(&mut it);
        taken(agent("a", it))
    };
    let text = |len: usize| "x".repeat(len);
    assert!(taken(agent(&text(AGENT_ID_BYTES_MAX), record(5, &[]))));
    assert!(!taken(agent(&text(AGENT_ID_BYTES_MAX + 1), record(5, &[]))));
    assert!(!taken(agent("", record(5, &[]))));
    for (len, fits) in [(NAME_BYTES_MAX, true), (NAME_BYTES_MAX + 1, false)] {
        assert_eq!(with(&|it| it.name = text(len).as_str().into()), fits);
        assert_eq!(with(&|it| it.capabilities = vec![text(len)]), fits);
    }
    for (more, fits) in [(0, true), (1, false)] {
        assert_eq!(with(&|it| it.capabilities = vec![text(1); CAPABILITIES_MAX + more]), fits);
        let seats = (0..ROOMS_PER_AGENT_MAX + more).map(|n| {
            (
                RoomId((n as u128).to_be_bytes()),
                Seat { joined: 1, seen: Number::ZERO, guest: false },
            )
        });
        let seats: BTreeMap<RoomId, Seat> = seats.collect();
        assert_eq!(with(&|it| it.rooms = seats.clone()), fits);
        let progress = 100 + u8::try_from(more).expect("one");
        assert_eq!(with(&|it| it.presence.progress = Some(progress)), fits);
        let detail = text(DESCRIPTION_BYTES_MAX + more);
        assert_eq!(with(&|it| it.presence.detail = Some(detail.clone())), fits);
    }
}

#[test]
fn a_room_is_announced_as_it_may_be_called_and_under_the_id_of_its_home() {
    let taken = |change: &dyn Fn(&mut (RoomId, EphemeralRoom), &mut RoomCreated)| {
        let mut it = room(TELLER, 1);
        let RoomFacts::Open(mut facts) = it.1.facts.clone() else { panic!("it is") };
        change(&mut it, &mut facts);
        it.1.facts = RoomFacts::Open(facts);
        let change = RosterChange::Room(it.0, it.1);
        says(&mut alone(), whole(TELLER, (1, 1), vec![change])) == Taken::Now
    };
    assert!(taken(&|_, facts| facts.name = "x".repeat(NAME_BYTES_MAX)));
    assert!(!taken(&|_, facts| facts.name = "x".repeat(NAME_BYTES_MAX + 1)));
    assert!(taken(&|_, facts| facts.description = Some("x".repeat(DESCRIPTION_BYTES_MAX))));
    assert!(!taken(&|_, facts| facts.description = Some("x".repeat(DESCRIPTION_BYTES_MAX + 1))));
    assert!(!taken(&|_, facts| facts.room = RoomId([1; 16])), "it says that it is another");
    assert!(!taken(&|it, _| it.1.home.author = OTHER), "of another home");
    assert!(
        !taken(&|it, facts| {
            it.1.home.incarnation = 0;
            it.0 = ephemeral_id(MeshId([0; 16]), it.1.home, false);
            facts.room = it.0;
        }),
        "no log of memory"
    );
    let sealed = |len: usize| {
        let home = LogId { author: TELLER, incarnation: 1 << 20 | 1 };
        let facts = RoomFacts::Sealed { owner: KEY, sealed: vec![1; len].into() };
        let id = ephemeral_id(MeshId([0; 16]), home, true);
        let change = RosterChange::Room(id, EphemeralRoom { facts, home, created_ms: 1 });
        says(&mut alone(), whole(TELLER, (1, 1), vec![change])) == Taken::Now
    };
    assert!(sealed(SEALED_FACTS_BYTES_MAX) && !sealed(SEALED_FACTS_BYTES_MAX + 1));
}

#[test]
fn so_many_rooms_and_keys_of_a_node_are_known_and_no_more() {
    let mut rosters = alone();
    let rooms = (1..=EPHEMERAL_ROOMS_MAX as u64 + 5).map(|nth| {
        let (id, it) = room(TELLER, nth);
        RosterChange::Room(id, it)
    });
    let tokens = (0..GROUPS_FOLLOWED_MAX as u128 + 5)
        .map(|nth| RosterChange::Follows(Token(nth.to_be_bytes())));
    says(&mut rosters, whole(TELLER, (1, 1), rooms.chain(tokens).collect()));
    assert_eq!(rosters.ephemeral_rooms().count(), EPHEMERAL_ROOMS_MAX);
    assert_eq!(rosters.follows(TELLER).len(), GROUPS_FOLLOWED_MAX);
}

#[test]
fn a_whole_roster_fits_a_frame_whatever_is_said_of_its_rooms() {
    let mut rosters = alone();
    rosters.put(now(), "me".into(), record(5, &[]));
    for nth in 0..256 {
        let (id, mut it) = room(ME, nth);
        let RoomFacts::Open(created) = &mut it.facts else { panic!("it is open") };
        created.description = Some("x".repeat(4_096));
        rosters.list(id, Some(it));
    }
    let what = rosters.whole();
    assert!(crate::wire::cbor::encode(&what).len() <= FRAME_BYTES_MAX);
    let What::Whole { changes, .. } = what else { panic!("it is whole") };
    assert!(changes.len() > 200, "as many as fit");
    assert!(changes.iter().any(|it| matches!(it, RosterChange::Agent(..))));
}

#[test]
fn rosters_of_so_many_nodes_are_known_and_so_many_agents_of_each() {
    let mut rosters = alone();
    let node = |nth: usize| {
        let mut id = [9; 32];
        id[..8].copy_from_slice(&(nth as u64).to_be_bytes());
        NodeId(id)
    };
    let taken = |rosters: &mut Rosters, nth, version| {
        rosters.apply(now(), whole(node(nth), (1, version), Vec::new()))
    };
    // This node's own is one of them.
    for nth in 1..NODES_MAX {
        assert_eq!(taken(&mut rosters, nth, 1), Taken::Now);
    }
    assert_eq!(taken(&mut rosters, NODES_MAX, 1), Taken::Refused);
    assert_eq!(taken(&mut rosters, 1, 2), Taken::Now, "this one is known");
    let mut rosters = alone();
    let agents = (0..AGENTS_PER_NODE_MAX + 5).map(|nth| agent(&format!("a{nth}"), record(5, &[])));
    says(&mut rosters, whole(TELLER, (1, 1), agents.collect()));
    assert_eq!(rosters.agents().count(), AGENTS_PER_NODE_MAX);
    let mut known = record(5, &[]);
    known.capabilities = vec!["new".to_owned()];
    let changes = vec![agent("a1", known)];
    let what = What::Changes { version: 2, changes };
    says(&mut rosters, RosterNews { node: TELLER, boot: 1, what });
    let view = rosters.view(&"a1".into()).expect("it is there");
    assert_eq!(view.capabilities, ["new"], "what is known may change");
}
