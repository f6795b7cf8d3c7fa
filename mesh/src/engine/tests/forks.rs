//! What a proven fork leaves to those who were not there: proofs, and what others had built on it.

use super::{
    asking::ordered,
    world::{Liar, STEP, World},
    *,
};
use crate::{
    engine::known::Known,
    limits::{BLAMED_MAX, CLAIM_SEEN_MAX, NOISE_FROM},
    name::{id::EntryRef, number::Era},
    wire::{
        acts::{BallotCast, Candidate, ElectionAct, ElectionStarted, Grant, TaskAct, VoteAct},
        entry::{EraClaimed, HandedOver, Items, NodeAdmitted, Ordered, Reached},
        message::Head,
    },
};

/// Seeds 238 and 330 with the liar: a node restarted, and so had nothing of an ephemeral room any more, nor of who
/// forked a log there. What others had taken before they knew names entries that nobody gives it.
#[test]
fn who_lacks_what_is_memory_is_told_who_forked_there() {
    let mut node = Node::new(1);
    let caller = node.attach("me", false, KEY).expect("free");
    let room = room_for_now(&mut node, &caller);
    for content in ["one", "another"] {
        let run = said_in(&node, (room, 7), (5, 1, content)).run().clone();
        node.hear(&run);
    }
    let told = |node: &mut Node, heads: Vec<Head>| {
        node.effects.clear();
        let message = Message::Have { room, heads, answer: false };
        node.give(Input::Message { from: identity(9).node_id(), message });
        node.effects.iter().any(|it| matches!(it, Effect::Send { message: Message::Fork(..), .. }))
    };
    let same = node.engine.known.rooms[&room].replica.logs.heads();
    assert!(!told(&mut node, same), "it has all of it");
    let run = said_in(&node, (room, 7), (6, 1, "of another one")).run().clone();
    node.hear(&run);
    assert!(told(&mut node, Vec::new()));
}

/// Seed 70126 with the liar: of who had not heard of a fork all proofs were lost. It has nothing of that author, and so
/// showed nobody that it does not know; and waited for ever for what entries of others name there.
#[test]
fn who_lacks_anything_is_told_who_forked() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let told = |node: &mut Node, heads: Vec<Head>| {
        node.effects.clear();
        node.told(9, Message::Have { room: lobby, heads, answer: false });
        node.effects.iter().any(|it| matches!(it, Effect::Send { message: Message::Fork(..), .. }))
    };
    let run = said_in(&node, (lobby, 0), (6, 1, "of another one")).run().clone();
    node.hear(&run);
    assert!(!told(&mut node, Vec::new()), "nobody has forked");
    for content in ["one", "another"] {
        let run = said_in(&node, (lobby, 0), (FORKED, 1, content)).run().clone();
        node.hear(&run);
    }
    let same = node.engine.known.rooms[&lobby].replica.logs.heads();
    assert!(!told(&mut node, same), "it has all of it");
    assert!(told(&mut node, Vec::new()));
}

/// Seed 28 with the liar: all who had the proof restarted before the node came back that had been away, and
/// could not tell it; so it went on with the log that nobody else took, and they compared for ever.
#[test]
fn what_proves_a_fork_is_told_after_a_restart_too() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    for content in ["one", "another"] {
        let run = said_in(&node, (lobby, 0), (5, 1, content)).run().clone();
        node.hear(&run);
    }
    let again = Node::open(1, disk::stored(&node.rows), node.now);
    for mut node in [node, again] {
        node.effects.clear();
        node.give(Input::PeerUp(identity(8).node_id()));
        let said = |it: &Effect| matches!(it, Effect::Send { message: Message::Fork(..), .. });
        assert!(node.effects.iter().any(said));
    }
}

/// A run that begins a log: one entry.
fn begins(node: &Node, seed: u8, (room, clock, body): (RoomId, u64, &Body)) -> Run {
    let author = identity(seed);
    let facts = Facts { clock, wall_ms: 0, kind: body.kind(), visible: false };
    let entries = vec![RunEntry { facts, body: Carried::Here(body.encode().into()) }];
    let log = LogId { author: author.node_id(), incarnation: 0 };
    let run = Run { room, log, first: 1, backlink: [0; 32], entries, seal: [0; 64] };
    run.seal(node.secret.mesh_id(), &author).run().clone()
}

/// A claim that does not follow, and one that follows it, in the same run or in another: the second is no better than the
/// first.
#[test]
fn nobody_skips_eras_by_a_claim_of_its_own_that_is_void() {
    let (claimant, lane) = (6, 2_000);
    let lobby = Node::new(1).lobby();
    let era = |c| Era::new(c, lane).expect("an era");
    let claim = |(era, after)| {
        Body::EraClaimed(EraClaimed { era, after, cut: Vec::new(), seen: Vec::new() })
    };
    let claims = [(era(9), Era::HOME), (era(10), era(9))].map(claim);
    for is_one_run in [true, false] {
        let mut node = beside(&[(claimant, lane)], false);
        let mut author = Liar::new(claimant);
        let runs = if is_one_run {
            let mut run = begins(&node, claimant, (lobby, 2, &claims[0]));
            let mut second = begins(&node, claimant, (lobby, 3, &claims[1]));
            run.entries.append(&mut second.entries);
            vec![run.seal(node.secret.mesh_id(), &identity(claimant)).run().clone()]
        } else {
            claims.iter().map(|it| author.write(&node, it).1).collect()
        };
        runs.iter().for_each(|run| node.hear(run));
        assert_eq!(head(&node, claimant), 2, "both are there");
        let eras = &node.engine.known.rooms[&lobby].order.numbering.eras;
        assert!([9, 10].iter().all(|c| !eras.contains_key(&era(*c))));
    }
}

fn log_of(seed: u8) -> LogId {
    LogId { author: identity(seed).node_id(), incarnation: 0 }
}

/// The forker of these tests.
const FORKED: u8 = 5;

/// A node that has heard who entered which lane, and perhaps of a fork.
fn beside(lanes: &[(u8, u32)], is_forked: bool) -> Node {
    let mut node = Node::new(1);
    let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
    for (seed, lane) in lanes {
        let admitted =
            Body::NodeAdmitted(NodeAdmitted { lane: *lane, name: String::new(), relay: None });
        let run = begins(&node, *seed, (directory, 1, &admitted));
        node.hear(&run);
    }
    for content in ["one", "another"].into_iter().filter(|_| is_forked) {
        let run = said_in(&node, (lobby, 0), (FORKED, 1, content)).run().clone();
        node.hear(&run);
    }
    node
}

/// How much it has of this author's log in the lobby.
fn head(node: &Node, seed: u8) -> u64 {
    node.engine.known.rooms[&node.lobby()].replica.logs.head_of(log_of(seed))
}

/// All that only an era's sequencer writes, by this handover; the era is given to this node.
fn writes(era: Era, to: u8, by: Option<EntryRef>) -> [Body; 3] {
    let items = vec![Items { log: 0, from: 1, count: 1 }];
    let claim = EntryRef { log: log_of(FORKED), seq: 1 };
    [
        Body::Ordered(Ordered { era, first: 1, logs: vec![log_of(8)], items, by }),
        Body::HandedOver(HandedOver { era, next: 1, to: log_of(to), by }),
        Body::Task(TaskAct::Granted(Grant {
            era,
            claim,
            update: None,
            holder: None,
            by,
            status: None,
        })),
    ]
}

/// Seeds 295, 358 and 403 with the liar: who hears of a fork before it has heard of the lane of whoever forked, as
/// every node does that joins later, never learns whose the eras in it were. Honest nodes built on these.
#[test]
fn eras_of_whoever_forked_hold_nobody_up_for_ever_who_never_heard_of_its_lane() {
    let (claimant, lane) = (6, 2_000);
    let after = Era::new(1, 1_000).expect("an era");
    let era = Era::new(2, lane).expect("an era");
    let shows = |seed| vec![EntryRef { log: log_of(seed), seq: 3 }];
    let cases = [
        (false, shows(FORKED), 0),
        (true, shows(FORKED), 1),
        // Who else may have opened it has not forked: then it may come yet.
        (true, shows(8), 0),
    ];
    for (is_forked, seen, taken) in cases {
        let mut node = beside(&[(claimant, lane)], is_forked);
        let lobby = node.lobby();
        let claim = EraClaimed { era, after, cut: Vec::new(), seen: seen.clone() };
        let run = begins(&node, claimant, (lobby, 2, &Body::EraClaimed(claim)));
        node.hear(&run);
        assert_eq!(head(&node, claimant), taken, "{is_forked} {seen:?}");
        let opened = node.engine.known.rooms[&lobby].order.numbering.eras.contains_key(&era);
        assert_eq!(opened, taken == 1);
    }
}

/// Seed 5516 with the liar: some took what gives numbers in an era while they knew nothing of it, others knew by then
/// whose it is and never took it, nor what names the rest of that log. What it says is void, whoever knows what.
#[test]
fn what_gives_numbers_in_anothers_era_is_taken_and_void_whether_the_era_is_known_or_not() {
    let (owner, liar, lane) = (6, 7, 1_000);
    let era = Era::new(1, lane).expect("an era");
    for by in [None, Some(EntryRef { log: log_of(FORKED), seq: 1 })] {
        let lies = writes(era, liar, by);
        for (lie, knows) in lies.iter().flat_map(|it| [false, true].map(|knows| (it, knows))) {
            let mut node = beside(&[(owner, lane)], true);
            let lobby = node.lobby();
            let after = Era::HOME;
            let claim = EraClaimed { era, after, cut: Vec::new(), seen: Vec::new() };
            let claim = begins(&node, owner, (lobby, 2, &Body::EraClaimed(claim)));
            if knows {
                node.hear(&claim);
            }
            let run = begins(&node, liar, (lobby, 3, lie));
            node.hear(&run);
            assert_eq!(head(&node, liar), 1, "{lie:?}");
            node.hear(&claim);
            let record = &node.engine.known.rooms[&lobby].order.numbering.eras[&era].record;
            assert_eq!((record.sequencer, record.known), (log_of(owner), 0));
            assert_eq!(node.engine.known.cx.blamed[&log_of(liar).author].void, 1, "{lie:?}");
        }
    }
}

/// By which handover something is written is waited for, unless it can never come.
#[test]
fn a_handover_that_is_named_is_waited_for_but_not_of_whoever_forked() {
    let (author, era) = (7, Era::HOME);
    for seed in [FORKED, 8] {
        let by = Some(EntryRef { log: log_of(seed), seq: 9 });
        let written = writes(era, author, by);
        for body in &written {
            let mut node = beside(&[], true);
            let lobby = node.lobby();
            let run = begins(&node, author, (lobby, 3, body));
            node.hear(&run);
            assert_eq!(head(&node, author), u64::from(seed == FORKED), "{body:?}");
        }
    }
}

#[test]
fn a_claim_that_names_more_than_anybody_has_to_opens_nothing() {
    for (count, opens) in [(CLAIM_SEEN_MAX, true), (CLAIM_SEEN_MAX + 1, false)] {
        let mut node = beside(&[], true);
        let (lobby, engine) = (node.lobby(), &mut node.engine);
        let lane = engine.known.cx.lane().expect("it has drawn one");
        let era = Era::new(1, lane).expect("an era");
        let seen = vec![EntryRef { log: log_of(FORKED), seq: 9 }; count];
        let claim = EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen };
        let room = engine.known.rooms.get_mut(&lobby).expect("it is there");
        room.append(&mut engine.known.cx, &Body::EraClaimed(claim)).expect("it fits");
        assert_eq!(node.current() == era, opens);
    }
}

/// What a claim says of another's era is no reason to refuse it, to whoever knows of that era and to whoever does not: all
/// open the same one. What the claim names is waited for.
#[test]
fn a_claim_opens_its_era_whatever_is_known_of_the_one_before() {
    let (owner, claimant) = (6, 7);
    let (theirs, era) = (Era::new(1, 1_000).expect("an era"), Era::new(2, 2_000).expect("an era"));
    let names = |seed, seq| vec![EntryRef { log: log_of(seed), seq }];
    let cases = [(names(owner, 1), true), (names(owner, 2), false), (Vec::new(), true)];
    for ((seen, opens), knows) in cases.iter().flat_map(|it| [false, true].map(|knows| (it, knows)))
    {
        let mut node = beside(&[(owner, 1_000), (claimant, 2_000)], false);
        let lobby = node.lobby();
        let claim = |era, after, cut, seen| Body::EraClaimed(EraClaimed { era, after, cut, seen });
        let first = claim(theirs, Era::HOME, Vec::new(), Vec::new());
        let first = begins(&node, owner, (lobby, 2, &first));
        // What it says of how far that era got is not so.
        let cut = vec![Reached { era: theirs, n: 1_000 }];
        let run = begins(&node, claimant, (lobby, 3, &claim(era, theirs, cut, seen.clone())));
        if knows {
            node.hear(&first);
        }
        node.hear(&run);
        let waits = !opens || (!knows && !seen.is_empty());
        assert_eq!(head(&node, claimant), u64::from(!waits), "{seen:?}");
        node.hear(&first);
        assert_eq!(head(&node, claimant), u64::from(*opens), "{seen:?}");
        let eras = &node.engine.known.rooms[&lobby].order.numbering.eras;
        assert_eq!(eras.contains_key(&era), *opens);
        let lowered = eras.get(&era).map(|it| it.record.cut.clone());
        assert!(lowered.is_none_or(|cut| cut == [Reached { era: theirs, n: 0 }]));
    }
}

/// Others that entered its lane may be known to have opened the same era: its logs are taken all the same.
#[test]
fn who_claims_an_era_that_another_one_has_opened_by_the_same_name_goes_on() {
    let (owner, other, lane) = (6, 7, 1_000);
    let [first, second] = [1, 2].map(|c| Era::new(c, lane).expect("an era"));
    let mut node = beside(&[(owner, lane), (other, lane)], false);
    let claim =
        |era, after| Body::EraClaimed(EraClaimed { era, after, cut: Vec::new(), seen: Vec::new() });
    let mut both = [Liar::new(other), Liar::new(owner)];
    for liar in &mut both {
        let (_, run) = liar.write(&node, &claim(first, Era::HOME));
        node.hear(&run);
    }
    let (_, run) = both[1].write(&node, &claim(second, first));
    node.hear(&run);
    assert_eq!((head(&node, owner), node.current()), (2, second));
    assert_eq!(node.engine.known.rooms[&node.lobby()].order.numbering.sequencer(), log_of(owner));
}

/// Its numbers would be void at all who join from now on.
#[test]
fn who_was_handed_an_era_by_who_forked_since_opens_another() {
    let mut node = Node::new(2);
    node.give(Input::PeerUp(super::asking::founder()));
    let caller = node.joins("me");
    let lobby = node.lobby();
    let mut sides = [Liar::new(super::asking::FOUNDER), Liar::new(super::asking::FOUNDER)];
    let over = HandedOver { era: Era::HOME, next: 1, to: log_of(2), by: None };
    for side in &mut sides {
        let (_, run) = side.write(&node, &Body::HandedOver(over));
        node.hear(&run);
    }
    node.wait(Duration::from_secs(5));
    node.say(&caller, lobby).expect("a number");
    assert_eq!(node.current(), Era::HOME);
    let shown = |node: &Node| {
        let own = node.engine.known.rooms[&lobby].replica.logs.ix(log_of(2));
        let claims = node.rows.iter().filter_map(|it| match it {
            Change::Entry { room, at, entry } if *room == lobby && Some(at.log) == own => {
                match Body::decode(entry.facts.kind, &entry.body) {
                    Body::EraClaimed(it) => Some(it.seen),
                    _ => None,
                }
            }
            _ => None,
        });
        claims.collect::<Vec<_>>()
    };
    for (side, content) in sides.iter_mut().zip(["one", "another"]) {
        let (_, run) = side.write(&node, &Body::Thinking(super::said(content)));
        node.hear(&run);
    }
    node.wait(Duration::from_secs(2));
    node.say(&caller, lobby).expect("a number");
    assert_eq!(node.current().c(), 1);
    assert_eq!(node.engine.known.rooms[&lobby].order.numbering.sequencer(), log_of(2));
    let handover = EntryRef { log: log_of(super::asking::FOUNDER), seq: 1 };
    assert_eq!(shown(&node), [[handover]]);
}

/// Of an era that was opened and never got further: what others gave later waits for nothing.
#[test]
fn an_era_of_whoever_forked_holds_up_none_that_follow_it() {
    let mut node = Node::new(2);
    let directory = RoomId::directory(node.secret.mesh_id());
    let mut sides = [Liar::new(6), Liar::new(6)];
    let mut other = Liar::new(7);
    for (seed, lane) in [(6, 1_000), (7, 2_000)] {
        let admitted = Body::NodeAdmitted(NodeAdmitted { lane, name: String::new(), relay: None });
        node.hear(&begins(&node, seed, (directory, 1, &admitted)));
    }
    let said = super::pending::run(&node, 5, (1, 1)).run().clone();
    node.hear(&said);
    let eras = [(1, 1_000), (2, 2_000)].map(|(c, lane)| Era::new(c, lane).expect("an era"));
    let claim = |era, after, cut, seen| Body::EraClaimed(EraClaimed { era, after, cut, seen });
    let opened = claim(eras[0], Era::HOME, Vec::new(), Vec::new());
    let runs = sides.each_mut().map(|side| side.write(&node, &opened).1);
    node.hear(&runs[0]);
    // It says that two numbers were given in the first; nobody here has heard of those.
    let cut = vec![Reached { era: eras[0], n: 2 }];
    let seen = vec![EntryRef { log: log_of(6), seq: 3 }];
    for body in [claim(eras[1], eras[0], cut, seen), ordered(eras[1], 1, &[(said.log, 1, 1)])] {
        let (_, run) = other.write(&node, &body);
        node.hear(&run);
    }
    let room = |node: &Node| (node.current(), node.engine.known.rooms[&node.lobby()].tip());
    assert_eq!(room(&node), (eras[0], Number(0)));
    for (side, content) in sides.iter_mut().zip(["one", "another"]) {
        let (_, run) = side.write(&node, &Body::Thinking(super::said(content)));
        node.hear(&run);
    }
    node.wait(Duration::from_secs(1));
    assert_eq!(room(&node), (eras[1], eras[1].number(1)));
}

/// An election is one wherever it counts, and none anywhere else: not where its beginning came before the fork was known,
/// either.
#[test]
fn elections_that_were_begun_beyond_a_fork_are_none() {
    let mut node = Node::new(1);
    let mut sides = [Liar::new(6), Liar::new(6)];
    let begun = |term| {
        let node = identity(6).node_id();
        let candidates = vec![Candidate { agent: "eve".into(), name: "eve".to_owned(), node }];
        let it = ElectionStarted { term, candidates, started_by: "eve".into() };
        Body::Election(ElectionAct::Started(it))
    };
    let (first, run) = sides[0].write(&node, &begun(1));
    node.hear(&run);
    sides[1].write(&node, &begun(1));
    let (second, run) = sides[0].write(&node, &begun(2));
    node.hear(&run);
    let known = |node: &Node| {
        let elections = &node.engine.known.rooms[&node.lobby()].folds.elections;
        [first, second].map(|it| elections.get(it).is_some())
    };
    assert_eq!(known(&node), [true, true]);
    let (_, run) = sides[1].write(&node, &Body::Thinking(super::said("another")));
    node.hear(&run);
    assert_eq!(known(&node), [true, false]);
}

/// Seed 10048 with the liar: an election was written in advance for a term that an honest node's would make the next one.
/// It was accepted between that and what the node did in it, all in one turn; under one seal nobody else could take either.
#[test]
fn what_was_written_in_advance_ties_no_knot_into_a_log() {
    let mut world = World::new(3);
    world.down.insert(2);
    let mine = LogId { author: identity(1).node_id(), incarnation: 0 };
    let lobby = world.lobby();
    let bob = Candidate { agent: "bob".into(), name: String::new(), node: mine.author };
    let it = ElectionStarted { term: 2, candidates: vec![bob], started_by: "eve".into() };
    let mut liar = Liar::new(6);
    let begun = Body::Election(ElectionAct::Started(it));
    let (place, mut run) = liar.write(&world.nodes[0], &begun);
    run.entries[0].facts.wall_ms = world.nodes[0].now.wall_ms;
    let run = run.seal(world.nodes[0].secret.mesh_id(), &identity(6)).run().clone();
    let head = |node: &Node, log| node.engine.known.rooms[&lobby].replica.logs.head_of(log);
    for node in &mut world.nodes {
        node.hear(&run);
        assert_eq!(head(node, place.log), 0, "it does not follow");
    }
    let caller = world.callers[0].clone();
    let elect = Command::ElectLeader { caller, room: lobby };
    world.nodes[0].ask(elect).expect("there is none");
    assert_eq!(head(&world.nodes[0], mine), 3, "bob is not there, and declines at once");
    world.pass(STEP * 10);
    assert_eq!(head(&world.nodes[1], place.log), 1);
    assert_eq!(head(&world.nodes[1], mine), head(&world.nodes[0], mine));
    // Who passes them on can join them under the last seal: that waits for ever, and they do not.
    let said = world.said.iter().filter_map(|it| match it {
        Message::Runs(runs) => Some(runs),
        _ => None,
    });
    let said = said.flatten().filter(|it| it.room == lobby && it.log == mine && it.last() <= 3);
    let [one, rest] = said.cloned().collect::<Vec<_>>().try_into().expect("two of them");
    let mut joined = one.clone();
    joined.entries.extend(rest.entries.iter().cloned());
    joined.seal = rest.seal;
    let node = &mut world.nodes[2];
    for run in [&run, &joined, &one, &rest] {
        node.hear(run);
    }
    assert_eq!((head(node, place.log), head(node, mine)), (1, 3));
}

/// What a run is judged by came before it: of two elections under one seal the second would follow nothing at others.
#[test]
fn an_election_begins_a_run() {
    let mut node = Node::new(1);
    let lobby = node.lobby();
    let begun = |term| {
        let started_by = "me".into();
        Body::Election(ElectionAct::Started(ElectionStarted {
            term,
            candidates: vec![],
            started_by,
        }))
    };
    let Known { rooms, cx, identity, .. } = &mut node.engine.known;
    let room = rooms.get_mut(&lobby).expect("there is always one");
    let thought = Body::Thinking(super::said("hm"));
    for body in [&thought, &begun(1), &thought, &begun(2)] {
        room.append(cx, body).expect("it fits");
    }
    let runs = room.seal(cx, identity);
    assert_eq!(runs.iter().map(|it| it.entries.len()).collect::<Vec<_>>(), [1, 2, 1]);
}

/// Whoever signs what forks no log would otherwise shut out an honest node, or stop those who count back from it.
#[test]
fn what_proves_no_fork_cuts_no_log() {
    let mut node = Node::new(1);
    let (lobby, mesh) = (node.lobby(), node.secret.mesh_id());
    let one = said_in(&node, (lobby, 0), (5, 1, "one"));
    node.hear(one.run());
    let seal = |change: &dyn Fn(&mut Run)| {
        let mut run = said_in(&node, (lobby, 0), (5, 1, "another")).run().clone();
        change(&mut run);
        run.seal(mesh, &identity(5)).certificate()
    };
    let sound = [
        one.certificate(),
        seal(&|run| run.room = RoomId([3; 16])),
        seal(&|run| run.log.incarnation = 1),
        seal(&|run| run.first = 2),
        // No log has such a place; its seal holds all the same.
        seal(&|run| (run.first, run.backlink) = (0, [3; 32])),
    ];
    let (author, forked) = (identity(5).node_id(), seal(&|_| {}));
    let stray = node.engine.known.cx.faults.stray;
    for (certificate, count) in sound.into_iter().zip(stray + 1..) {
        assert!(certificate.verify(), "its author signed it");
        let message = Message::Fork(certificate, Box::new(one.clone()));
        node.give(Input::Message { from: identity(9).node_id(), message });
        assert!(!node.engine.known.cx.forked.contains(&author), "{certificate:?}");
        assert_eq!(node.engine.known.cx.faults.stray, count, "it is seen");
    }
    let message = Message::Fork(forked, Box::new(one));
    for _ in 0..2 {
        node.give(Input::Message { from: identity(9).node_id(), message: message.clone() });
        assert!(node.engine.known.cx.forked.contains(&author), "two histories");
        assert_eq!(node.engine.known.cx.faults.forks, 1, "one fork");
    }
}

/// Authors can be made up: so many names are kept, and of those who did most.
#[test]
fn those_who_did_most_are_shown_however_many_did_a_little() {
    let mut node = Node::new(1);
    let cx = &mut node.engine.known.cx;
    let name = |nth: usize| {
        let mut name = [0; 32];
        name[..8].copy_from_slice(&(nth as u64).to_be_bytes());
        NodeId(name)
    };
    let worst = NodeId([0; 32]);
    for _ in 0..3 {
        cx.blame(worst, |it| &mut it.void);
    }
    for nth in 1..BLAMED_MAX * 2 {
        cx.blame(name(nth), |it| &mut it.void);
        cx.blame(worst, |it| &mut it.void);
    }
    assert_eq!(cx.blamed.len(), BLAMED_MAX);
    assert_eq!(cx.blamed[&worst].void, BLAMED_MAX as u64 * 2 + 2);
    assert_eq!(cx.faults.void, BLAMED_MAX as u64 * 4 + 1, "all of it is counted");
}

#[test]
fn who_writes_much_without_effect_is_called_noisy_and_this_node_never() {
    let mut node = Node::new(1);
    let cx = &mut node.engine.known.cx;
    let (me, other) = (cx.me, NodeId([9; 32]));
    cx.lanes.insert(other, [7].into());
    for nth in 0..NOISE_FROM {
        cx.blame(me, |it| &mut it.void);
        cx.blame(other, |it| &mut it.void);
        // Made up, each for one entry.
        cx.blame(NodeId([100 + u8::try_from(nth).unwrap(); 32]), |it| &mut it.void);
    }
    let called = |it: &Effect| if let Effect::Noisy(it) = it { Some(*it) } else { None };
    assert_eq!(cx.effects.iter().filter_map(called).collect::<Vec<_>>(), [Some(other), None]);
}

#[test]
fn a_claim_that_came_before_its_lane_is_taken_with_it() {
    let mut node = Node::new(1);
    let (lobby, directory) = (node.lobby(), RoomId::directory(node.secret.mesh_id()));
    let era = Era::new(1, 2_000).expect("an era");
    let claim =
        Body::EraClaimed(EraClaimed { era, after: Era::HOME, cut: Vec::new(), seen: Vec::new() });
    let run = begins(&node, 6, (lobby, 2, &claim));
    node.hear(&run);
    assert_eq!(
        node.engine.known.rooms[&lobby].replica.logs.head_of(run.log),
        0,
        "whose lane is it?"
    );
    let admitted =
        Body::NodeAdmitted(NodeAdmitted { lane: 2_000, name: String::new(), relay: None });
    let admitted = begins(&node, 6, (directory, 1, &admitted));
    node.hear(&admitted);
    assert_eq!(node.engine.known.rooms[&lobby].replica.logs.head_of(run.log), 1);
}

/// Whoever had not heard of it never will, and this node finds none of it when it starts again.
#[test]
fn rooms_and_ids_that_a_fork_took_are_none_at_once() {
    let mut node = Node::new(1);
    let directory = RoomId::directory(node.secret.mesh_id());
    let mut liar = Liar::new(5);
    let room = |node: &Node, seq| {
        crate::directory::room_id(node.secret.mesh_id(), directory, Liar::new(5).log(), seq)
    };
    let claim = claimed(node.secret.mesh_id(), "bob", PRINTS[2]);
    let bodies = [
        Body::RoomCreated(public_room(room(&node, 1), "before")),
        Body::RoomCreated(public_room(room(&node, 2), "beyond")),
        Body::AgentClaimed(claim),
    ];
    let runs = bodies.map(|body| liar.write_in(&node, directory, &body).1);
    for run in &runs {
        node.hear(run);
    }
    let listed = |node: &mut Node| {
        let rooms = node.ask(Command::ListRooms { by: KEY.into(), parent: None });
        let Ok(Outcome::Rooms(rooms)) = rooms else { panic!("anybody may") };
        rooms.into_iter().map(|it| it.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&mut node), ["before", "beyond", "lobby"]);
    assert!(node.attach("bob", true, KEY).is_err(), "it is another key's");
    let mut other = runs[1].clone();
    other.entries[0].facts.clock += 1;
    let proof = other.seal(node.secret.mesh_id(), &identity(5)).certificate();
    let run = runs[1].clone().verify(node.secret.mesh_id()).expect("it is sealed");
    node.effects.clear();
    node.told(9, Message::Fork(proof, Box::new(run)));
    let gone = node.effects.iter().filter_map(|it| match it {
        Effect::Notify { room, event: RoomEvent::Destroyed { .. } } => Some(*room),
        _ => None,
    });
    assert_eq!(gone.collect::<Vec<_>>(), [room(&node, 2)]);
    let again = Node::open(1, disk::stored(&node.rows), node.now);
    for mut node in [node, again] {
        assert_eq!(listed(&mut node), ["before", "lobby"]);
        node.joins("bob");
        let list = Command::ListAgents { by: KEY.into(), room: Some(node.lobby()) };
        let Ok(Outcome::Agents(agents)) = node.ask(list) else { panic!("anybody may") };
        assert_eq!(agents.len(), 1, "anybody may be called so now");
    }
}

/// Others may hold more of its log than this node, or less.
#[test]
fn ballots_of_whoever_forked_count_no_more_though_they_were_written_before() {
    let mut world = World::new(1);
    let vote = world.create(0, None);
    let (id, place) = world.nodes[0].engine.known.index.votes[&vote];
    let (agent, commitment, key) = ("agent0".into(), [7; 32], Some(KEY));
    let cast = Body::Vote(VoteAct::Cast(BallotCast { vote: place, agent, commitment, key }));
    let node = &mut world.nodes[0];
    node.engine.known.directory.assume_shown(identity(9).node_id(), KEY);
    assert_eq!(id, node.lobby());
    let mut sides = [Liar::new(9), Liar::new(9)].map(|mut side| (side.write(node, &cast).1, side));
    node.hear(&sides[0].0);
    let [one, another] = ["one", "another"].map(|content| Body::Thinking(said(content)));
    let (_, run) = sides[0].1.write(node, &one);
    node.hear(&run);
    assert_eq!(world.view(0, vote).cast, 1);
    let node = &mut world.nodes[0];
    let (_, run) = sides[1].1.write(node, &another);
    node.hear(&run);
    assert_eq!(
        node.engine.known.rooms[&id].replica.logs.get(1).fork,
        Some(2),
        "the ballot is below that"
    );
    assert_eq!(world.view(0, vote).cast, 0);
}
