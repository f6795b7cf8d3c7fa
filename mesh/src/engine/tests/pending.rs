//! Runs that wait: how much of them is kept, and whom their bodies are asked of.

use super::{retention::bare, *};
use crate::{
    limits::{HOLE_AFTER, PENDING_BYTES_MAX, PENDING_FOR, PENDING_RUNS_PER_ROOM_MAX, WANT_TIMEOUT},
    name::id::sha256,
    replica::pending::{Needs, Pending},
    turn::context::Context,
    wire::message::Head,
};

/// Everything is needed.
const ALL: Needs = Needs { from_ms: 0, certain_ms: 0, ahead_ms: u64::MAX };
/// Who sent what waits.
const FROM: NodeId = NodeId([9; 32]);

/// `count` messages of a log of `seed`, the first of them at `first`.
pub(super) fn run(node: &Node, seed: u8, (first, count): (u64, usize)) -> Verified {
    let mut run = said_at(node, seed, first).run().clone();
    let entry = run.entries[0].clone();
    run.entries = (first..)
        .take(count)
        .map(|clock| {
            let facts = Facts { clock, ..entry.facts };
            RunEntry { facts, ..entry.clone() }
        })
        .collect();
    run.first = first;
    run.seal(node.secret.mesh_id(), &identity(seed))
}

/// One message whose body does not travel with it.
fn apart(node: &Node, seed: u8, body: &[u8]) -> Verified {
    let mut run = said_at(node, seed, 1).run().clone();
    run.entries[0].body = Carried::Apart { hash: sha256(&[body]), len: body.len() as u64 };
    run.seal(node.secret.mesh_id(), &identity(seed))
}

fn without_bodies(node: &Node, run: &Verified) -> Verified {
    bare(run.run()).verify(node.secret.mesh_id()).expect("it is sealed")
}

/// The first entry of a log.
fn first(log: LogId) -> Head {
    Head { log, seq: 1 }
}

#[test]
fn what_waits_takes_up_what_it_weighs_and_gives_it_back() {
    let mut node = Node::new(1);
    let body = vec![7; 9_000];
    let (one, other) = (apart(&node, 5, &body), run(&node, 6, (3, 1)));
    let (log, own) = (one.run().log, one.run().size());
    let size = own + other.run().size();
    let cx = &mut node.engine.known.cx;
    let waiting = |cx: &mut Context| {
        let mut pending = Pending::default();
        pending.keep(cx, one.clone(), FROM);
        pending.keep(cx, other.clone(), FROM);
        // Twice, and once what belongs elsewhere.
        for body in [&body, &body, &vec![8; 9_000]] {
            pending.add_body(cx, FROM, first(log), body.clone());
        }
        assert_eq!(cx.memory.pending, size + body.len());
        pending
    };
    let mut pending = waiting(cx);
    assert_eq!(pending.take(cx, (log, 1)).map(|it| it.bodies.len()), Some(1));
    assert_eq!(cx.memory.pending, size - own);
    pending.clear(cx);
    assert_eq!((cx.memory.pending, pending.is_empty()), (0, true));
    let mut pending = waiting(cx);
    pending.forget_author(cx, log.author);
    assert_eq!(pending.keys(), [(other.run().log, 3)]);
    assert_eq!(cx.memory.pending, size - own);
    cx.now.mono += PENDING_FOR - Duration::from_millis(1);
    pending.expire(cx);
    assert!(!pending.is_empty());
    cx.now.mono += Duration::from_millis(1);
    pending.expire(cx);
    assert_eq!((cx.memory.pending, pending.is_empty()), (0, true));
}

/// Seed 1587: a run was heard, its body was not, and then its author dropped that: it said so each time it was asked, and
/// the run waited as one whose body there must be, with all that came after it.
#[test]
fn what_its_author_has_dropped_since_is_asked_for_as_it_is_now() {
    let mut node = Node::new(1);
    let one = apart(&node, 5, &[7; 9_000]);
    let (log, author) = (one.run().log, one.run().log.author);
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    pending.keep(cx, one.clone(), FROM);
    let old = Needs { certain_ms: u64::MAX, ..ALL };
    assert!(!pending.forget_if_dropped(cx, FROM, first(log), old));
    assert!(!pending.is_empty(), "whoever passed it on may wait for it, too");
    assert!(!pending.forget_if_dropped(cx, author, first(log), ALL));
    assert!(!pending.is_empty(), "nobody who is honest drops it so soon");
    assert!(pending.forget_if_dropped(cx, author, first(log), old));
    assert_eq!((cx.memory.pending, pending.is_empty()), (0, true));
    assert_eq!(pending.reaches(log, 0), 0, "so it is wanted again");
}

#[test]
fn so_much_waits_and_no_more_and_what_is_next_displaces_what_is_last() {
    let mut node = Node::new(1);
    let runs: Vec<Verified> = (2..300).map(|first| run(&node, 5, (first, 1))).collect();
    let size = runs[0].run().size();
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    for it in &runs {
        pending.keep(cx, it.clone(), FROM);
    }
    assert_eq!(pending.keys().len(), PENDING_RUNS_PER_ROOM_MAX, "by number");
    pending.clear(cx);
    // Other rooms have almost all of the bytes.
    cx.memory.pending = PENDING_BYTES_MAX - size * 2 + 1;
    let overflow = cx.faults.overflow;
    for it in &runs[..2] {
        pending.keep(cx, it.clone(), FROM);
    }
    assert_eq!((pending.keys().len(), cx.faults.overflow), (1, overflow + 1), "by bytes");
    pending.clear(cx);
    cx.memory.pending = PENDING_BYTES_MAX - size * 2;
    for it in &runs[1..3] {
        pending.keep(cx, it.clone(), FROM);
    }
    assert_eq!(cx.memory.pending, PENDING_BYTES_MAX, "to the last one");
    pending.keep_next(cx, runs[0].clone(), FROM);
    let firsts = |pending: &Pending| pending.keys().iter().map(|it| it.1).collect::<Vec<_>>();
    assert_eq!(firsts(&pending), [2, 3, 4], "that much is no more than may be");
    cx.faults.overflow = 0;
    pending.keep_next(cx, runs[0].clone(), FROM);
    assert_eq!((firsts(&pending), cx.faults.overflow), (vec![2, 3], 1));
}

#[test]
fn of_two_runs_that_begin_alike_the_shorter_waits_with_the_bodies_of_both() {
    let node = &mut Node::new(1);
    let (short, long) = (run(node, 5, (1, 1)), run(node, 5, (1, 2)));
    let (bare_short, bare_long) = (without_bodies(node, &short), without_bodies(node, &long));
    let key = (short.run().log, 1);
    for runs in
        [[&short, &bare_long], [&bare_long, &short], [&long, &bare_short], [&bare_short, &long]]
    {
        let cx = &mut node.engine.known.cx;
        let mut pending = Pending::default();
        runs.into_iter().for_each(|it| pending.keep(cx, it.clone(), FROM));
        let waiting = pending.get(key).expect("one of them");
        assert_eq!(waiting.run.run().last(), 1, "others may have made the longer one of two");
        assert_eq!(waiting.lacks(0, ALL).next(), None);
        pending.clear(cx);
        assert_eq!(cx.memory.pending, 0);
    }
}

#[test]
fn bodies_that_came_for_a_run_stay_when_a_shorter_one_takes_its_place() {
    let node = &mut Node::new(1);
    let (short, long) = (run(node, 5, (1, 1)), run(node, 5, (1, 2)));
    let Carried::Here(body) = &short.run().entries[0].body else { panic!("it is short") };
    let [bare_short, bare_long] = [&short, &long].map(|it| without_bodies(node, it));
    let key = (short.run().log, 1);
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    pending.keep(cx, bare_long, FROM);
    pending.add_body(cx, FROM, first(key.0), body.to_vec());
    pending.keep(cx, bare_short, FROM);
    let waiting = pending.get(key).expect("it waits");
    assert_eq!(waiting.lacks(0, ALL).next(), None);
}

#[test]
fn for_what_is_gone_its_author_is_asked_first_and_then_everybody() {
    let node = &mut Node::new(1);
    let whole = run(node, 5, (1, 1));
    let waits = without_bodies(node, &whole);
    let author = whole.run().log.author;
    // Whoever its id is.
    let peers = [NodeId([0; 32]), author, NodeId([0xff; 32]), FROM].into();
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    pending.keep(cx, waits, FROM);
    let mut asked = Vec::new();
    for second in 0..3 {
        let now = cx.now.mono + WANT_TIMEOUT * second;
        asked.extend(pending.bodies_to_ask(now, &peers, ALL, |_| None).into_keys());
    }
    assert_eq!(asked, [author, NodeId([0; 32]), NodeId([0xff; 32])], "not who sent it without");
}

#[test]
fn who_was_asked_in_vain_is_asked_again_when_all_were() {
    let node = &mut Node::new(1);
    let waits = without_bodies(node, &run(node, 5, (1, 2)));
    let log = waits.run().log;
    let [one, other] = [NodeId([0; 32]), NodeId([0xff; 32])];
    let peers = [one, other].into();
    let cx = &mut node.engine.known.cx;
    let start = cx.now.mono;
    let mut pending = Pending::default();
    pending.keep(cx, waits, FROM);
    let ask = |pending: &mut Pending, later: Duration| {
        let asked = pending.bodies_to_ask(start + later, &peers, ALL, |_| None);
        asked.into_keys().collect::<Vec<_>>()
    };
    let nothing = |pending: &mut Pending, cx: &mut Context, from: NodeId, seq: u64| {
        assert!(!pending.forget_if_dropped(cx, from, Head { log, seq }, ALL));
        pending.add_body(cx, from, Head { log, seq }, Vec::new());
    };
    for round in 0..2 {
        assert_eq!(ask(&mut pending, WANT_TIMEOUT * (2 * round)), [one]);
        assert_eq!(ask(&mut pending, WANT_TIMEOUT * (2 * round + 1)), [other]);
    }
    // Neither an answer of another one ends what this one was asked, nor half of its own.
    nothing(&mut pending, cx, one, 1);
    nothing(&mut pending, cx, one, 2);
    nothing(&mut pending, cx, other, 1);
    let at_once = WANT_TIMEOUT * 3 + Duration::from_millis(1);
    assert_eq!(ask(&mut pending, at_once), []);
    nothing(&mut pending, cx, other, 2);
    assert_eq!(ask(&mut pending, at_once), [one], "its own answer came too late to be one");
}

/// The bodies of a run that travels without them.
#[test]
fn bodies_that_come_apart_are_asked_of_their_author_then_of_who_has_them() {
    let node = &mut Node::new(1);
    let waits = apart(node, 5, &[7; 9_000]);
    let (author, has) = (waits.run().log.author, NodeId([3; 32]));
    let start = node.now.mono;
    let cases = [
        // Whether the author is connected, who has the entry; who is asked first, and then.
        (true, None, [author, author]),
        (true, Some(has), [author, has]),
        (false, None, [FROM, FROM]),
        (false, Some(has), [FROM, has]),
    ];
    for (connected, another, expected) in cases {
        let cx = &mut node.engine.known.cx;
        let mut pending = Pending::default();
        pending.keep(cx, waits.clone(), FROM);
        let peers = [FROM, has].into_iter().chain(connected.then_some(author)).collect();
        let asked = [0, 1].map(|second| {
            let now = start + WANT_TIMEOUT * second;
            let asked = pending.bodies_to_ask(now, &peers, ALL, |_| another);
            asked.into_keys().next()
        });
        assert_eq!(asked, expected.map(Some), "{connected} {another:?}");
        let between = start + WANT_TIMEOUT + WANT_TIMEOUT / 2;
        assert!(pending.bodies_to_ask(between, &peers, ALL, |_| another).is_empty());
    }
}

#[test]
fn what_travels_apart_is_not_taken_for_gone() {
    let node = &mut Node::new(1);
    let (one, gone) = (apart(node, 5, &[7; 9_000]), without_bodies(node, &run(node, 6, (1, 1))));
    let (log, author) = (one.run().log, one.run().log.author);
    let old = Needs { certain_ms: u64::MAX, ..ALL };
    let peers = [NodeId([0; 32]), FROM].into();
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    pending.keep(cx, one.clone(), FROM);
    let ask = |pending: &mut Pending, cx: &mut Context| {
        pending.bodies_to_ask(cx.now.mono, &peers, old, |_| None)
    };
    // That it is slow to come is no time in which something was gone.
    ask(&mut pending, cx);
    cx.now.mono += HOLE_AFTER / 2;
    let waiting = pending.get((log, 1)).expect("it waits");
    assert!(!waiting.is_complete(0, old, || true), "somebody has it");
    pending.keep(cx, gone.clone(), FROM);
    ask(&mut pending, cx);
    cx.now.mono += HOLE_AFTER / 2;
    ask(&mut pending, cx);
    let waiting = pending.get((gone.run().log, 1)).expect("it waits");
    let said = [FROM].into();
    assert!(!pending.nobody_has(cx.now.mono, &said, true, waiting));
    // However old it is, its author may give it.
    pending.add_body(cx, author, first(log), vec![7; 9_000]);
    assert_eq!(pending.take(cx, (log, 1)).map(|it| it.bodies.len()), Some(1));
}

#[test]
fn a_run_of_which_some_is_gone_and_some_apart_is_asked_of_who_sent_it_too() {
    let node = &mut Node::new(1);
    let mut mixed = bare(run(node, 5, (1, 2)).run());
    let body = [7; 9_000];
    mixed.entries[0].body = Carried::Apart { hash: sha256(&[&body[..]]), len: body.len() as u64 };
    let mixed = mixed.seal(node.secret.mesh_id(), &identity(5));
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    pending.keep(cx, mixed, FROM);
    let peers = [NodeId([0; 32]), FROM].into();
    let asked = pending.bodies_to_ask(cx.now.mono, &peers, ALL, |_| None);
    assert_eq!(asked.into_keys().collect::<Vec<_>>(), [FROM]);
}

/// What is lacking next has been lacking as long: one wait is enough for all of it.
#[test]
fn what_all_say_to_be_gone_is_given_up_after_one_wait_and_a_later_one_after_another() {
    let node = &mut Node::new(1);
    let (first, second) = (run(node, 5, (1, 1)), run(node, 6, (1, 1)));
    let bare = [first, second].map(|it| without_bodies(node, &it));
    let peers = [FROM].into();
    let cx = &mut node.engine.known.cx;
    let start = cx.now.mono;
    // How long nothing is lacking in between, and whether the second one is given up at once.
    for (pause, at_once) in [(HOLE_AFTER / 2, true), (HOLE_AFTER * 2, false)] {
        cx.now.mono = start;
        let mut pending = Pending::default();
        let look = |pending: &mut Pending, cx: &mut Context, later: Duration| {
            cx.now.mono += later;
            pending.bodies_to_ask(cx.now.mono, &peers, ALL, |_| None);
        };
        let key = |it: &Verified| (it.run().log, 1);
        let given_up = |pending: &Pending, cx: &Context, it: &Verified| {
            let waiting = pending.get(key(it)).expect("it waits");
            pending.nobody_has(cx.now.mono, &peers, true, waiting)
        };
        pending.keep(cx, bare[0].clone(), FROM);
        look(&mut pending, cx, Duration::ZERO);
        look(&mut pending, cx, HOLE_AFTER / 2);
        assert!(!given_up(&pending, cx, &bare[0]));
        look(&mut pending, cx, HOLE_AFTER / 2);
        assert!(given_up(&pending, cx, &bare[0]));
        pending.take(cx, key(&bare[0]));
        look(&mut pending, cx, Duration::from_secs(1));
        look(&mut pending, cx, pause);
        pending.keep(cx, bare[1].clone(), FROM);
        look(&mut pending, cx, Duration::ZERO);
        assert_eq!(given_up(&pending, cx, &bare[1]), at_once, "{pause:?}");
    }
}

/// What is asked for lacks until the answer: as long as it is under way, it is lacking still.
#[test]
fn what_is_asked_for_is_lacking_until_the_answer_comes() {
    let node = &mut Node::new(1);
    let (first, second) = (run(node, 5, (1, 1)), run(node, 6, (1, 1)));
    let bare = [first, second].map(|it| without_bodies(node, &it));
    let (peers, said) = ([NodeId([0; 32]), FROM].into(), [FROM].into());
    let cx = &mut node.engine.known.cx;
    let start = cx.now.mono;
    let mut pending = Pending::default();
    pending.keep(cx, bare[0].clone(), FROM);
    let look = |pending: &mut Pending, later: Duration| {
        pending.bodies_to_ask(start + later, &peers, ALL, |_| None);
    };
    look(&mut pending, Duration::ZERO);
    look(&mut pending, WANT_TIMEOUT / 2);
    pending.take(cx, (bare[0].run().log, 1));
    let later = HOLE_AFTER + WANT_TIMEOUT / 4;
    look(&mut pending, later);
    cx.now.mono = start + later;
    pending.keep(cx, bare[1].clone(), FROM);
    look(&mut pending, later);
    let waiting = pending.get((bare[1].run().log, 1)).expect("it waits");
    assert!(pending.nobody_has(start + later, &said, true, waiting), "one wait for both");
}

/// Whoever sent it may be gone: a question to it would be lost, and nobody else be asked for a while.
#[test]
fn nobody_is_asked_for_a_body_who_is_not_connected() {
    let node = &mut Node::new(1);
    let waits = apart(node, 5, &[7; 9_000]);
    let has = NodeId([3; 32]);
    let cx = &mut node.engine.known.cx;
    let (now, peers) = (cx.now.mono, [has].into());
    let mut pending = Pending::default();
    pending.keep(cx, waits, FROM);
    assert!(pending.bodies_to_ask(now, &peers, ALL, |_| None).is_empty());
    let asked = pending.bodies_to_ask(now, &peers, ALL, |_| Some(has));
    assert_eq!(asked.into_keys().collect::<Vec<_>>(), [has]);
}

#[test]
fn what_is_next_displaces_what_is_last_also_when_there_are_too_many() {
    let mut node = Node::new(1);
    let runs: Vec<Verified> =
        (2..).take(PENDING_RUNS_PER_ROOM_MAX).map(|first| run(&node, 5, (first, 1))).collect();
    let next = run(&node, 6, (1, 1));
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    runs.iter().for_each(|it| pending.keep(cx, it.clone(), FROM));
    let (overflow, bytes) = (cx.faults.overflow, cx.memory.pending);
    pending.keep_next(cx, next.clone(), FROM);
    assert_eq!(pending.keys().len(), PENDING_RUNS_PER_ROOM_MAX);
    assert!(pending.get((next.run().log, 1)).is_some());
    let last = runs.last().expect("many").run();
    assert!(pending.get((last.log, last.first)).is_none(), "the last end of what waits");
    assert_eq!((cx.faults.overflow, cx.memory.pending), (overflow + 1, bytes));
    pending.keep(cx, runs[0].clone(), FROM);
    assert_eq!(cx.faults.overflow, overflow + 2);
}

#[test]
fn what_waits_without_a_gap_reaches_as_far_as_it_goes() {
    let mut node = Node::new(1);
    let runs = [(3, 2), (4, 3), (9, 1)].map(|part| run(&node, 5, part));
    let log = runs[0].run().log;
    let cx = &mut node.engine.known.cx;
    let mut pending = Pending::default();
    runs.into_iter().for_each(|it| pending.keep(cx, it, FROM));
    let reaches = [0, 1, 2, 3, 6, 7, 8, 12].map(|head| pending.reaches(log, head));
    assert_eq!(reaches, [0, 1, 6, 6, 6, 7, 9, 12]);
    let other = LogId { incarnation: 1, ..log };
    assert_eq!(pending.reaches(other, 2), 2);
}
