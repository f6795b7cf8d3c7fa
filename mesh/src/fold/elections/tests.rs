//! The fold by itself: whom it makes the leader, that it makes the same one in whatever order logs are
//! read, and that nobody gains by lying.

mod histories;

use super::*;
use crate::{
    limits::{ELECTION_DEAD_AFTER, ELECTION_GRACE, ELECTION_WINDOW},
    name::{
        id::{LocalRef, RoomId},
        identity::Identity,
        time::Now,
    },
    wire::entry::{Facts, Said},
};

const ROOM: RoomId = RoomId([1; 16]);
/// When everything is written.
const START: Duration = Duration::from_secs(100);
/// While the election runs, when it should have been closed.
const DUE: Duration = Duration::from_millis(102_100);
/// Long after.
const LATER: Duration = Duration::from_secs(1_000);

type Act = (EntryRef, Facts, ElectionAct);

/// What one node knows.
struct Replica {
    elections: Elections,
    identity: Identity,
    log: LogId,
    clock: u64,
    /// In the order in which it came: an act after all that it names.
    have: Vec<Act>,
}

impl Replica {
    fn new(node: u8) -> Replica {
        Replica::with_log(node, 0)
    }

    /// Another log of a node, in which it commits to another nonce.
    fn with_log(node: u8, incarnation: u64) -> Replica {
        let identity = Identity::from_seed(&[node; 32]);
        let log = LogId { author: identity.node_id(), incarnation };
        let elections = Elections::new(BTreeSet::new());
        Replica { elections, identity, log, clock: 0, have: Vec::new() }
    }

    fn node(&self) -> NodeId {
        self.log.author
    }

    fn take(&mut self, act: &Act) -> Result<Vec<NodeId>, Folded> {
        let (place, facts, act) = act.clone();
        self.clock = self.clock.max(facts.clock);
        self.have.push((place, facts, act.clone()));
        let now = Now { mono: START, wall_ms: 0, wall_us: 0 };
        let at = LocalRef { log: 0, seq: place.seq };
        let mut alarms = Vec::new();
        let written = Written { room: ROOM, place, at, facts, now };
        let folded = self.elections.apply(written, act, &mut alarms);
        let dropped = alarms.into_iter().filter_map(|alarm| {
            if let Alarm::DroppedThoughOpen { node, .. } = alarm { Some(node) } else { None }
        });
        if folded == Folded::Taken { Ok(dropped.collect()) } else { Err(folded) }
    }

    fn next(&self, act: ElectionAct) -> Act {
        let seq = 1 + self.have.iter().filter(|(place, ..)| place.log == self.log).count() as u64;
        let facts = Facts { clock: self.clock + 1, wall_ms: 0, kind: 49, visible: false };
        (EntryRef { log: self.log, seq }, facts, act)
    }

    fn write(&mut self, act: ElectionAct) -> EntryRef {
        let act = self.next(act);
        self.take(&act).expect("it counts");
        act.0
    }

    fn start(&mut self, candidates: &[Candidate]) -> EntryRef {
        let term = self.elections.next_term();
        let candidates = candidates.to_vec();
        self.write(ElectionAct::Started(ElectionStarted {
            term,
            candidates,
            started_by: "ann".into(),
        }))
    }

    fn nonce(&self, election: EntryRef) -> [u8; 32] {
        let mut nonce = nonce(&self.identity, ROOM, election);
        nonce[0] ^= u8::try_from(self.log.incarnation).expect("small");
        nonce
    }

    fn commitment(&self, election: EntryRef) -> ElectionAct {
        let nonce = self.nonce(election);
        let commitment = commitment(ROOM, election, self.node(), &nonce);
        ElectionAct::Committed { election, commitment }
    }

    fn commit(&mut self, election: EntryRef) -> EntryRef {
        self.write(self.commitment(election))
    }

    fn close(&mut self, election: EntryRef) -> EntryRef {
        let (commitments, declined) = self.elections.all[&election].close();
        self.write(ElectionAct::Closed { election, commitments, declined })
    }

    fn shown(&self, closed: EntryRef) -> ElectionAct {
        let election = self.elections.closed[&closed];
        ElectionAct::Shown { closed, nonce: self.nonce(election) }
    }

    fn show(&mut self, closed: EntryRef) {
        self.write(self.shown(closed));
    }

    fn drop(&mut self, closed: EntryRef, nodes: &[NodeId]) -> Vec<NodeId> {
        let act = self.next(ElectionAct::Dropped { closed, nodes: nodes.to_vec() });
        self.take(&act).expect("it counts")
    }

    fn hear(&mut self, other: &Replica) {
        let known: BTreeSet<EntryRef> = self.have.iter().map(|it| it.0).collect();
        for act in other.have.iter().filter(|it| !known.contains(&it.0)) {
            // What is wrong with it is wrong here, too.
            let _ = self.take(act);
        }
    }

    fn leader(&self, now: Duration) -> Option<String> {
        self.elections.leader(now).map(|it| it.candidate.agent.to_string())
    }
}

/// All hear of everything.
fn meet(nodes: &mut [Replica]) {
    for _ in 0..2 {
        for i in 0..nodes.len() {
            let next = (i + 1) % nodes.len();
            if i != next {
                let [a, b] = nodes.get_disjoint_mut([i, next]).expect("two of them");
                a.hear(b);
                b.hear(a);
            }
        }
    }
}

fn candidate(agent: &str, node: &Replica) -> Candidate {
    Candidate { agent: agent.into(), name: agent.to_owned(), node: node.node() }
}

/// Three nodes with a candidate each, who have all committed; the first started.
fn three() -> (Vec<Replica>, EntryRef) {
    let mut nodes: Vec<Replica> = (1..4).map(Replica::new).collect();
    let candidates: Vec<Candidate> =
        nodes.iter().zip(["a", "b", "c"]).map(|(node, agent)| candidate(agent, node)).collect();
    let election = nodes[0].start(&candidates);
    meet(&mut nodes);
    for node in &mut nodes {
        node.commit(election);
    }
    meet(&mut nodes);
    (nodes, election)
}

#[test]
fn the_leader_follows_when_all_have_opened_and_not_before() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    for i in 0..3 {
        assert_eq!(nodes[0].leader(DUE), None, "{i} have opened");
        nodes[i].show(closed);
        meet(&mut nodes);
    }
    let leader = nodes[0].leader(DUE).expect("all have opened");
    for node in &nodes {
        assert_eq!(node.leader(DUE).as_ref(), Some(&leader));
        let known = node.elections.get(election).expect("known");
        let elected = ["a", "b", "c"]
            .map(|agent| nodes.iter().any(|it| known.may_have_elected(agent, it.node())));
        assert_eq!(elected.iter().filter(|it| **it).count(), 1, "one, and at its own node");
    }
}

#[test]
fn everybody_is_elected_now_and_then() {
    let (mut nodes, mut election) = three();
    let mut won: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..60 {
        let closed = nodes[0].close(election);
        meet(&mut nodes);
        nodes.iter_mut().for_each(|it| it.show(closed));
        meet(&mut nodes);
        *won.entry(nodes[0].leader(DUE).expect("all have opened")).or_default() += 1;
        let candidates = nodes[0].elections.all[&election].candidates().to_vec();
        election = nodes[0].start(&candidates);
        meet(&mut nodes);
        for node in &mut nodes {
            node.commit(election);
        }
        meet(&mut nodes);
    }
    assert_eq!(won.len(), 3, "{won:?}");
    assert!(won.values().all(|it| *it >= 8), "{won:?}");
}

#[test]
fn who_declines_or_does_not_commit_cannot_be_elected() {
    let (mut nodes, _) = three();
    let candidates =
        [candidate("a", &nodes[0]), candidate("b", &nodes[1]), candidate("c", &nodes[2])];
    for _ in 0..10 {
        let election = nodes[0].start(&candidates);
        meet(&mut nodes);
        nodes[0].commit(election);
        nodes[1].commit(election);
        nodes[1].write(ElectionAct::Declined { election, agent: "b".into() });
        meet(&mut nodes);
        let closed = nodes[0].close(election);
        meet(&mut nodes);
        nodes[0].show(closed);
        meet(&mut nodes);
        let outcome = nodes[2].elections.all[&election].outcome(DUE);
        assert_eq!(outcome, Outcome::Open, "whoever has committed has to open");
        nodes[1].show(closed);
        meet(&mut nodes);
        assert_eq!(nodes[2].leader(DUE).as_deref(), Some("a"));
    }
    let election = nodes[0].start(&candidates[..1]);
    nodes[0].commit(election);
    nodes[0].write(ElectionAct::Declined { election, agent: "a".into() });
    nodes[0].close(election);
    assert_eq!(nodes[0].leader(DUE), None);
    let (concluded, leader) = nodes[0].elections.concluded(DUE).expect("nobody stands");
    assert_eq!((concluded.place(), leader), (election, None));
}

#[test]
fn a_node_that_does_not_open_drops_out_and_cannot_come_back() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    nodes[0].show(closed);
    nodes[1].show(closed);
    let third = nodes[2].node();
    nodes[0].drop(closed, &[third]);
    meet(&mut nodes);
    let leader = nodes[0].leader(DUE).expect("the others go on");
    assert_ne!(leader, "c");
    // It has seen what would come of its opening. That it shows it now changes nothing.
    nodes[2].show(closed);
    meet(&mut nodes);
    for node in &nodes {
        assert_eq!(node.leader(DUE), Some(leader.clone()));
        assert_eq!(node.leader(LATER), Some(leader.clone()));
    }
}

#[test]
fn nobody_but_the_closer_drops_a_node_that_has_opened() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    nodes.iter_mut().for_each(|it| it.show(closed));
    meet(&mut nodes);
    let leader = nodes[0].leader(DUE).expect("all have opened");
    let all: Vec<NodeId> = nodes.iter().map(Replica::node).collect();
    for victim in all.into_iter().take(2) {
        let seen = nodes[2].drop(closed, &[victim]);
        assert_eq!(seen, [victim], "it is seen that it had opened");
    }
    meet(&mut nodes);
    for node in &nodes {
        assert_eq!(node.leader(LATER), Some(leader.clone()));
    }
}

#[test]
fn when_the_closer_is_gone_another_says_who_is_out() {
    let (mut nodes, election) = three();
    let closed = nodes[1].close(election);
    meet(&mut nodes);
    nodes[1].show(closed);
    nodes[2].show(closed);
    let first = nodes[0].node();
    let has_drops = |node: &Replica| {
        let known = node.elections.get(election).expect("known");
        known.has_drops(known.closings().next().expect("closed"))
    };
    assert!(!has_drops(&nodes[2]));
    nodes[2].drop(closed, &[first]);
    meet(&mut nodes);
    assert!(nodes.iter().all(has_drops), "nobody has to say it again");
    let leader = nodes[2].leader(LATER).expect("two are left");
    assert!(["b", "c"].contains(&leader.as_str()));
    let third = nodes[2].node();
    nodes[1].elections.expel(third);
    assert!(!has_drops(&nodes[1]), "whoever is out has said nothing");
}

#[test]
fn a_nonce_that_was_not_committed_to_opens_nothing() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    let good = nodes[1].shown(closed);
    let ElectionAct::Shown { nonce, .. } = good else { panic!("{good:?}") };
    let wrong = nodes[1].next(ElectionAct::Shown { closed, nonce: [7; 32] });
    assert_eq!(nodes[1].take(&wrong), Err(Folded::Void));
    // Nor does another node's, though it be copied with its commitment.
    let copied = nodes[2].next(ElectionAct::Shown { closed, nonce });
    assert_eq!(nodes[2].take(&copied), Err(Folded::Void));
    assert_eq!(nodes[0].leader(LATER), None);
}

#[test]
fn closing_early_gains_nothing() {
    let (mut nodes, election) = three();
    // The third closes at once, for itself alone, and opens.
    let own = nodes[2].have.iter().rev().find_map(|(place, _, act)| {
        matches!(act, ElectionAct::Committed { .. } if place.log == nodes[2].log).then_some(*place)
    });
    let early = nodes[2].write(ElectionAct::Closed {
        election,
        commitments: own.into_iter().collect(),
        declined: Vec::new(),
    });
    nodes[2].show(early);
    meet(&mut nodes);
    let known = nodes[1].elections.get(election).expect("known");
    assert!(known.to_open(START).is_none(), "nobody opens for it");
    assert!(known.to_open(DUE).is_none(), "the starter is left some time");
    let grace_over = START + ELECTION_WINDOW + ELECTION_GRACE;
    assert!(known.to_open(grace_over - Duration::from_millis(1)).is_none());
    assert!(known.to_open(grace_over).is_some(), "it may be gone");
    assert_eq!(nodes[1].leader(START), None, "nor is anybody elected");
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    let known = nodes[1].elections.get(election).expect("known");
    assert_eq!(known.to_open(START).map(Closing::place), Some(closed));
    assert_eq!(nodes[1].leader(DUE + ELECTION_GRACE), None, "the starter's counts first");
    nodes[0].show(closed);
    nodes[1].show(closed);
    let third = nodes[2].node();
    nodes[0].drop(closed, &[third]);
    meet(&mut nodes);
    for node in &nodes {
        for now in [DUE, LATER] {
            let leader = node.leader(now).expect("two have opened");
            assert!(["a", "b"].contains(&leader.as_str()), "{leader}");
        }
    }
}

#[test]
fn of_two_closes_the_one_that_more_nodes_saw_through_counts() {
    let (mut nodes, election) = three();
    // The starter is cut off. The others close without it.
    let theirs = nodes[1].close(election);
    let [first, second, third] = &mut nodes[..] else { panic!("three") };
    third.hear(second);
    second.show(theirs);
    third.show(theirs);
    let out = [first.node()];
    second.drop(theirs, &out);
    second.hear(third);
    let leader = second.leader(START + ELECTION_WINDOW + ELECTION_GRACE).expect("they go on");
    let own = first.close(election);
    first.show(own);
    let out = [second.node(), third.node()];
    first.drop(own, &out);
    assert_eq!(first.leader(DUE).as_deref(), Some("a"), "and so does it");
    meet(&mut nodes);
    for node in &mut nodes {
        // The starter has its own for as long as it runs. Somebody has to look when that is over.
        node.elections.rest(DUE);
        assert!(node.elections.is_waiting() && node.elections.running(DUE).is_none());
        node.elections.rest(LATER);
        assert!(!node.elections.is_waiting());
    }
    for node in &nodes {
        assert_eq!(node.leader(LATER), Some(leader.clone()));
        // Whatever either decided meanwhile was a leader's decision.
        let known = node.elections.get(election).expect("known");
        assert!(known.may_have_elected("a", nodes[0].node()));
        assert!(nodes.iter().any(|it| known.may_have_elected(&leader, it.node())));
    }
}

#[test]
fn the_higher_term_stays_and_of_one_term_the_lower_position() {
    let (mut nodes, _) = three();
    let alone = |node: &mut Replica, agent: &str| {
        let candidates = [candidate(agent, node)];
        let election = node.start(&candidates);
        node.commit(election);
        let closed = node.close(election);
        node.show(closed);
        election
    };
    // Two of one term on two sides.
    let (b, c) = (alone(&mut nodes[1], "b"), alone(&mut nodes[2], "c"));
    assert_eq!(nodes[1].leader(LATER).as_deref(), Some("b"));
    assert_eq!(nodes[2].leader(LATER).as_deref(), Some("c"));
    meet(&mut nodes);
    let (rank_b, rank_c) = [b, c].map(|it| nodes[0].elections.all[&it].rank()).into();
    assert_eq!(rank_b.0, rank_c.0);
    let winner = if rank_b > rank_c { "b" } else { "c" };
    for node in &nodes {
        assert_eq!(node.leader(LATER).as_deref(), Some(winner));
    }
    // One side goes on to another term.
    let mut cut_off = Replica::new(9);
    cut_off.hear(&nodes[0]);
    alone(&mut cut_off, "z");
    nodes[0].hear(&cut_off);
    assert_eq!(nodes[0].leader(LATER).as_deref(), Some("z"));
    // Cleared it leaves nobody, not the one before it.
    let election = nodes[0].elections.concluded(LATER).expect("concluded").0.place();
    nodes[0].write(ElectionAct::Cleared { election });
    assert_eq!(nodes[0].leader(LATER), None);
}

#[test]
fn terms_do_not_leap() {
    let (nodes, _) = three();
    let known = &nodes[0].elections;
    assert!(known.follows(1) && known.follows(2));
    assert!(!known.follows(3) && !known.follows(u64::MAX));
}

#[test]
fn of_a_log_that_closes_again_and_again_the_first_is_known() {
    let (mut nodes, election) = three();
    let first = nodes[2].close(election);
    let second = nodes[2].close(election);
    assert_eq!(nodes[2].elections.closed, BTreeMap::from([(first, election)]));
    let nonce = nodes[2].nonce(election);
    let shown = nodes[2].next(ElectionAct::Shown { closed: second, nonce });
    assert_eq!(nodes[2].take(&shown), Ok(Vec::new()), "of nothing that is known");
    let closing = nodes[2].elections.all[&election].closings().next().expect("closed");
    assert_eq!(closing.missing().len(), 3, "nothing is opened by a close that does not count");
}

#[test]
fn an_election_that_nobody_ends_ends_by_itself() {
    let (mut nodes, election) = three();
    assert!(nodes[0].elections.running(START).is_some_and(|it| it.is_open(START)));
    assert!(nodes[0].elections.running(DUE).is_some_and(|it| !it.is_open(DUE)));
    let over = START + ELECTION_DEAD_AFTER;
    assert!(nodes[0].elections.running(over).is_none());
    nodes[0].elections.rest(over);
    assert!(!nodes[0].elections.is_waiting());
    // History that comes later is no election to be carried on.
    let mut newcomer = Replica::new(9);
    for (place, facts, act) in &nodes[0].have {
        let facts = Facts { wall_ms: 120_000, ..*facts };
        let _ = newcomer.take(&(*place, facts, act.clone()));
    }
    assert!(newcomer.elections.get(election).is_some());
    assert!(newcomer.elections.running(START).is_none());
}

#[test]
fn what_no_honest_node_writes_has_no_effect() {
    let (mut nodes, election) = three();
    let stranger = Replica::new(9);
    let with = |candidates: Vec<Candidate>| {
        ElectionAct::Started(ElectionStarted { term: 2, candidates, started_by: "a".into() })
    };
    let named = |agent: &str, name: &str| Candidate {
        agent: agent.into(),
        name: name.to_owned(),
        node: nodes[0].node(),
    };
    let twice = vec![named("a", "a"), named("a", "b")];
    let many = (0..1_001).map(|n| named(&format!("a{n}"), "")).collect();
    let bad = [
        with(Vec::new()),
        with(twice),
        with(many),
        with(vec![named("", "")]),
        with(vec![named("a", &"x".repeat(257))]),
        ElectionAct::Started(ElectionStarted {
            term: 0,
            candidates: vec![named("a", "a")],
            started_by: "a".into(),
        }),
        ElectionAct::Declined { election, agent: "b".into() },
    ];
    for act in bad {
        let act = nodes[0].next(act);
        assert_eq!(nodes[0].take(&act), Err(Folded::Void), "{act:?}");
    }
    let (place, facts, _) = nodes[0].next(ElectionAct::Cleared { election });
    let place = EntryRef { log: stranger.log, ..place };
    let act = (place, facts, stranger.commitment(election));
    assert_eq!(nodes[0].take(&act), Err(Folded::Void), "it has no candidate");
}

/// So many candidates that a log cannot start many such elections.
fn many(node: &Replica, first: usize) -> Vec<Candidate> {
    let name = "x".repeat(256);
    let candidate = |n| Candidate { name: name.clone(), ..candidate(&format!("a{n}"), node) };
    (first..first + 1_000).map(candidate).collect()
}

fn may_start(node: &Replica, candidates: Vec<Candidate>, by: &str, now: Duration) -> bool {
    let term = node.elections.next_term();
    let started = ElectionStarted { term, candidates, started_by: by.into() };
    node.elections.admits(node.log, &ElectionAct::Started(started), now).is_ok()
}

#[test]
fn a_log_starts_only_so_many_elections_and_more_if_they_are_the_same() {
    let mut node = Replica::new(1);
    let fit = ELECTIONS_BYTES_PER_LOG_MAX / node.elections.cost(node.log, &many(&node, 0));
    for n in 0..fit {
        assert!(may_start(&node, many(&node, n), "eve", LATER * 10));
        node.start(&many(&node, n));
    }
    assert!(!may_start(&node, many(&node, fit), "eve", LATER * 10));
    assert!(may_start(&node, many(&node, fit - 1), "eve", LATER * 10), "the same again");
    let [.., one, two] = &node.elections.all.values().collect::<Vec<_>>()[..] else { panic!() };
    assert!(!Arc::ptr_eq(&one.candidates, &two.candidates));
    node.start(&many(&node, fit - 1));
    let [.., one, two] = &node.elections.all.values().collect::<Vec<_>>()[..] else { panic!() };
    assert!(Arc::ptr_eq(&one.candidates, &two.candidates), "and it takes nothing more");
    let (term, candidates) = (node.elections.next_term(), many(&node, fit));
    let more = ElectionStarted { term, candidates, started_by: "a".into() };
    let more = node.next(ElectionAct::Started(more));
    assert_eq!(node.take(&more), Err(Folded::Void));
    assert_eq!(node.elections.all.len(), fit + 1);
}

#[test]
fn an_agent_starts_only_so_many_elections_an_hour() {
    let mut node = Replica::new(1);
    let one = [candidate("a", &node)];
    for _ in 0..ELECTIONS_PER_AGENT_MAX {
        assert!(may_start(&node, one.to_vec(), "ann", START));
        node.start(&one);
    }
    assert!(!may_start(&node, one.to_vec(), "ann", START));
    assert!(may_start(&node, one.to_vec(), "bob", START), "others do");
    assert!(may_start(&node, one.to_vec(), "ann", START + ELECTIONS_COUNTED_FOR));
}

#[test]
fn a_node_that_forked_is_out_with_its_candidates() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    nodes[0].show(closed);
    nodes[1].show(closed);
    meet(&mut nodes);
    assert_eq!(nodes[0].leader(DUE), None);
    let third = nodes[2].node();
    for node in &mut nodes[..2] {
        node.elections.expel(third);
    }
    let leader = nodes[0].leader(DUE).expect("the others have opened");
    assert_ne!(leader, "c");
    assert_eq!(nodes[1].leader(DUE), Some(leader.clone()));
    // An election that it took part in counts as if it had not.
    let forked = if leader == "a" { nodes[0].node() } else { nodes[1].node() };
    nodes[1].elections.expel(forked);
    let left = nodes[1].leader(DUE).expect("one is left");
    assert!(left != leader && left != "c", "{left}");
}

#[test]
fn from_a_fork_on_nothing_of_a_log_counts() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    nodes.iter_mut().for_each(|it| it.show(closed));
    meet(&mut nodes);
    let cleared = nodes[2].write(ElectionAct::Cleared { election });
    meet(&mut nodes);
    assert_eq!(nodes[0].leader(DUE), None);
    let log = nodes[2].log;
    nodes[0].elections.forget_log(log, cleared.seq);
    assert!(nodes[0].leader(DUE).is_some(), "the clearing did not count");
    nodes[0].elections.forget_log(log, 1);
    let known = nodes[0].elections.get(election).expect("known");
    assert!(known.to_open(DUE).is_some_and(|it| it.missing() == [log.author]));
    let log = nodes[0].log;
    nodes[0].elections.forget_log(log, 1);
    assert!(nodes[0].elections.get(election).is_none());
    assert!(nodes[0].elections.running(DUE).is_none());
}

#[test]
fn a_fork_takes_what_its_log_wrote_and_nothing_of_others() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    let other = nodes[1].close(election);
    meet(&mut nodes);
    let (second, third) = (nodes[1].log, nodes[2].log);
    let closes = |node: &Replica| node.elections.closed.keys().copied().collect::<Vec<_>>();
    nodes[0].elections.forget_log(third, 1);
    nodes[0].elections.forget_log(second, other.seq + 1);
    assert_eq!(closes(&nodes[0]).len(), 2, "both are still there");
    nodes[0].elections.forget_log(second, other.seq);
    assert_eq!(closes(&nodes[0]), [closed]);
    nodes[0].elections.expel(third.author);
    for i in [0, 1] {
        let shown = nodes[i].next(nodes[i].shown(closed));
        assert_eq!(nodes[0].take(&shown), Ok(Vec::new()), "it opens what it did");
    }
    assert!(nodes[0].leader(DUE).is_some());
}

#[test]
fn of_two_closes_that_as_many_saw_through_the_starters_counts() {
    let (mut nodes, mut election) = three();
    let mut others: BTreeSet<(Option<String>, Option<String>)> = BTreeSet::new();
    for _ in 0..10 {
        let commitments: Vec<EntryRef> = nodes[0].elections.all[&election].close().0;
        let of = |node: &Replica| commitments.iter().find(|it| it.log == node.log).copied();
        let close = |a: usize, b: usize| ElectionAct::Closed {
            election,
            commitments: [&nodes[a], &nodes[b]].into_iter().filter_map(of).collect(),
            declined: Vec::new(),
        };
        let (own, theirs) = (close(0, 1), close(1, 2));
        // The starter's is the higher by position.
        let theirs = nodes[2].write(theirs);
        let heard = Replica { have: nodes[2].have.clone(), ..Replica::new(9) };
        nodes[0].hear(&heard);
        let own = nodes[0].write(own);
        meet(&mut nodes);
        for (closed, i) in [(own, 0), (own, 1), (theirs, 1), (theirs, 2)] {
            nodes[i].show(closed);
        }
        meet(&mut nodes);
        let without = |closed: EntryRef| {
            let mut replica = Replica::new(9);
            for act in &nodes[0].have {
                let is_of_it = act.0 == closed
                    || matches!(act.2, ElectionAct::Shown { closed: of, .. } if of == closed);
                if !is_of_it {
                    let _ = replica.take(act);
                }
            }
            replica.leader(LATER)
        };
        let (by_starter, by_other) = (without(theirs), without(own));
        for node in &nodes {
            assert_eq!(node.leader(LATER), by_starter);
        }
        others.insert((by_starter, by_other));
        let candidates = nodes[0].elections.all[&election].candidates().to_vec();
        election = nodes[0].start(&candidates);
        meet(&mut nodes);
        for node in &mut nodes {
            node.commit(election);
        }
        meet(&mut nodes);
    }
    assert!(others.iter().any(|(one, other)| one != other), "it makes a difference");
}

#[test]
fn of_what_two_logs_of_a_node_commit_to_the_lower_counts() {
    let (mut starter, mut first, mut second) =
        (Replica::new(1), Replica::with_log(2, 7), Replica::new(2));
    let election = starter.start(&[candidate("a", &starter), candidate("b", &second)]);
    first.hear(&starter);
    let early = first.commit(election);
    second.hear(&first);
    let late = second.commit(election);
    starter.hear(&second);
    starter.commit(election);
    let (named, _) = starter.elections.all[&election].close();
    assert!(named.contains(&early) && !named.contains(&late), "{named:?}");
    let closed = starter.close(election);
    for (node, opens) in [(&mut second, false), (&mut first, true)] {
        node.hear(&starter);
        let shown = node.next(node.shown(closed));
        assert_eq!(starter.take(&shown).is_ok(), opens);
    }
}

/// It decides which elections count, so it is the same at all nodes, whatever their machines are.
#[test]
fn what_an_election_counts_for_is_what_it_says() {
    let node = Replica::new(1);
    let other = Replica::new(2);
    let long = Candidate { name: "x".to_owned(), ..candidate(&"a".repeat(128), &node) };
    let cost = |node: &Replica, candidates: &[Candidate]| node.elections.cost(node.log, candidates);
    let one = [long.clone()];
    assert_eq!(cost(&node, &one), 256 + 128 + (64 + 128 + 1));
    let two = [long.clone(), Candidate { agent: "b".into(), ..long.clone() }];
    assert_eq!(cost(&node, &two), 256 + 128 + (64 + 128 + 1) + (64 + 1 + 1));
    let apart = [long, candidate("b", &other)];
    assert_eq!(cost(&node, &apart), 256 + 2 * 128 + (64 + 128 + 1) + (64 + 1 + 1));
    let mut node = node;
    node.start(&one);
    assert_eq!(cost(&node, &one), 256 + 128, "the same again");
    assert_eq!(node.elections.bytes(), 256 + 128 + 64 + 129);
}

fn decision(election: EntryRef, agent: &str) -> Decision {
    let said = Said {
        agent: agent.into(),
        name: agent.to_owned(),
        content: "so be it".to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        metadata: None,
        dedup: None,
        turn: None,
        id: None,
        key: None,
        conversation: None,
    };
    Decision { said, election }
}

#[test]
fn a_decision_counts_from_the_leaders_node_in_the_leaders_name_and_until_it_clears() {
    let (mut nodes, election) = three();
    let closed = nodes[0].close(election);
    meet(&mut nodes);
    nodes.iter_mut().for_each(|it| it.show(closed));
    let by_first = |nodes: &[Replica], agent: &str, i: usize| {
        let log = nodes[i].log;
        let it = decision(election, agent);
        let judged = nodes[0].elections.can_judge(log.author, &it);
        (judged, nodes[0].elections.allows(EntryRef { log, seq: 90 }, &it))
    };
    assert_eq!(by_first(&nodes, "a", 0), (false, false), "it waits for the openings");
    meet(&mut nodes);
    let leader = nodes[0].leader(DUE).expect("all have opened");
    let host = ["a", "b", "c"].iter().position(|it| *it == leader).expect("one of them");
    for (agent, i) in [("a", 0), ("a", 1), ("b", 1), ("c", 2), ("z", 2)] {
        let good = agent == leader && i == host;
        assert_eq!(by_first(&nodes, agent, i), (good, good), "{agent} at {i}");
    }
    let cleared = nodes[host].write(ElectionAct::Cleared { election });
    meet(&mut nodes);
    let at = |seq| EntryRef { log: nodes[host].log, seq };
    let it = decision(election, &leader);
    assert!(nodes[0].elections.allows(at(cleared.seq - 1), &it), "before that");
    assert!(!nodes[0].elections.allows(at(cleared.seq + 1), &it), "after that");
    // What names no election, or one of a node that forked, keeps no log waiting.
    let nowhere = decision(cleared, &leader);
    assert!(nodes[0].elections.can_judge(nodes[host].node(), &nowhere));
    assert!(!nodes[0].elections.allows(at(90), &nowhere));
    let forked = nodes[host].node();
    nodes[0].elections.expel(forked);
    let other = decision(election, "b");
    assert!(nodes[0].elections.can_judge(nodes[1].node(), &other));
    let by_second = EntryRef { log: nodes[1].log, seq: 90 };
    assert!(nodes[0].elections.allows(by_second, &other), "it stood there");
    let by_first = EntryRef { log: nodes[0].log, seq: 90 };
    assert!(!nodes[0].elections.allows(by_first, &other), "it did not stand there");
}

#[test]
fn a_close_of_who_is_out_may_be_known_elsewhere_alone_and_keeps_no_log_waiting() {
    let (mut nodes, election) = three();
    meet(&mut nodes);
    let it = decision(election, "b");
    let judged = |nodes: &[Replica], by: usize| {
        let (at, elections) = (EntryRef { log: nodes[by].log, seq: 90 }, &nodes[0].elections);
        (elections.can_judge(at.log.author, &it), elections.allows(at, &it))
    };
    assert_eq!([judged(&nodes, 0), judged(&nodes, 1)], [(false, false); 2]);
    // It had no candidates: another side may have had it close what its starter did not.
    nodes[0].elections.expel(NodeId([99; 32]));
    assert_eq!([judged(&nodes, 0), judged(&nodes, 1)], [(true, false), (true, true)]);
}
