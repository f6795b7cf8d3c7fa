//! Nodes that are heard, or not, and what follows.

use super::*;
use crate::name::digest::Digest;

const ME: NodeId = NodeId([1; 32]);
const ROOM: RoomId = RoomId([2; 16]);
const NOBODY: BTreeSet<NodeId> = BTreeSet::new();
const EVERYBODY: EligibleNodes<'_> = EligibleNodes { room: ROOM, only: None, relays: &NOBODY };
const AFTER: Duration = Duration::from_millis(1_500);
/// When the node started.
const START: Duration = Duration::from_secs(100);

fn node(n: u8) -> NodeId {
    NodeId([n; 32])
}

fn live(unclean: bool) -> Liveness {
    Liveness::new(ME, AFTER, START, unclean)
}

fn hear(live: &mut Liveness, now: Duration, n: u8) {
    let tick = u64::try_from(now.as_millis()).expect("small");
    assert!(live.hear(
        now,
        Beacon {
            node: node(n),
            boot: 1,
            tick,
            roster: 0,
            digest: Digest::default(),
            records: [0; 16],
            wall_ms: 0
        }
    ));
}

#[test]
fn who_was_away_replaces_nobody_before_it_hears_others_unless_there_are_none() {
    let gone = Gone { node: node(9), since: START, anew: false };
    let verdict = |others: &[u8], up: &[u8], heard: bool| {
        let mut live = live(false);
        live.others = others.iter().map(|n| node(*n)).collect();
        live.up = up.iter().map(|n| node(*n)).collect();
        if heard {
            hear(&mut live, START, 7);
        }
        live.verdict(START + AFTER * 2, EVERYBODY, gone)
    };
    assert_eq!(verdict(&[9], &[], false), Verdict::Gone, "there is nobody else");
    assert_eq!(verdict(&[9], &[8], false), Verdict::Wait);
    assert_eq!(verdict(&[9, 8], &[], false), Verdict::Wait);
    assert_eq!(verdict(&[8], &[], false), Verdict::Wait);
    assert_eq!(verdict(&[9, 8], &[], true), Verdict::Gone, "it hears somebody");
    assert_eq!(verdict(&[9, 8], &[8], true), Verdict::AskPeers);
}

#[test]
fn beacons_are_gossiped_rarely_while_all_who_live_leave_every_other_one_out() {
    use crate::limits::BEACON_EVERY;
    let mut live = live(false);
    live.up = [7, 8].map(node).into();
    let mut tick = 0_u64;
    // How it goes after so many ticks, of which these two say one of so many.
    let mut after = |ticks: u64, every: [u64; 2]| {
        for _ in 0..ticks {
            tick += 1;
            let now = START + BEACON_EVERY * u32::try_from(tick).expect("small");
            for (n, every) in [7, 8].into_iter().zip(every) {
                if tick.is_multiple_of(every) {
                    for _ in 0..2 {
                        live.hear_directly(now, node(n), tick);
                    }
                    live.hear(
                        now,
                        Beacon {
                            node: node(n),
                            boot: 1,
                            tick,
                            roster: 0,
                            digest: Digest::default(),
                            records: [0; 16],
                            wall_ms: 0,
                        },
                    );
                }
            }
        }
        live.spread(START + BEACON_EVERY * u32::try_from(tick).expect("small"))
    };
    assert_eq!(after(9, [2, 2]), Spread::EachTime, "it does not know yet who lives");
    assert_eq!(after(1, [2, 2]), Spread::NowAndThen, "nor how");
    assert_eq!(after(2, [2, 2]), Spread::Rarely);
    assert_eq!(after(2, [2, 1]), Spread::NowAndThen, "one is not calm");
    assert_eq!(after(8, [2, 2]), Spread::NowAndThen);
    assert_eq!(after(2, [2, 2]), Spread::Rarely);
    assert_eq!(after(4, [2, 20]), Spread::EachTime, "one is not heard");
}

#[test]
fn of_a_full_table_those_who_are_known_are_heard_on() {
    let mut live = live(false);
    let beacon = |nth: usize, tick| {
        let mut node = [0; 32];
        node[..8].copy_from_slice(&(nth as u64).to_be_bytes());
        Beacon {
            node: NodeId(node),
            boot: 1,
            tick,
            roster: 0,
            digest: Digest::default(),
            records: [0; 16],
            wall_ms: 0,
        }
    };
    assert!((0..NODES_MAX).all(|nth| live.hear(START, beacon(nth, 1))));
    assert!(!live.hear(START, beacon(NODES_MAX, 1)));
    assert!(live.hear(START, beacon(0, 2)));
    assert_eq!(live.heard().count(), NODES_MAX);
}

#[test]
fn better_ones_come_first_if_they_live_and_have_the_room() {
    let mut live = live(false);
    let better: Vec<u8> =
        (2..=255).filter(|n| weight(ROOM, node(*n)) < weight(ROOM, ME)).take(4).collect();
    let worse = (2..=255).find(|n| weight(ROOM, node(*n)) > weight(ROOM, ME)).expect("many");
    let [gone, silent, without, first] = better[..] else { panic!("too few are better") };
    hear(&mut live, START, silent);
    let now = START + AFTER;
    for n in [gone, without, first, worse] {
        hear(&mut live, now, n);
    }
    let only = [gone, silent, first, worse].map(node).into();
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    assert_eq!(live.rank(now, eligible, node(gone)), 1);
    assert_eq!(live.rank(now, eligible, node(99)), 2);
    assert_eq!(live.rank(now, EVERYBODY, node(gone)), 2);
    let since = now;
    let later =
        |time| live.verdict(now + time, eligible, Gone { node: node(gone), since, anew: false });
    assert_eq!(later(TAKEOVER_RANK_STEP / 2), Verdict::Wait, "it is the second");
    assert_eq!(later(TAKEOVER_RANK_STEP), Verdict::Gone);
}

#[test]
fn a_room_is_handed_to_the_best_of_those_who_are_connected_and_heard_and_have_it() {
    let mut live = live(false);
    let mut nodes: Vec<u8> = (2..8).collect();
    nodes.sort_by_key(|n| weight(ROOM, node(*n)));
    let [apart, silent, without, best, next, _] = nodes[..] else { panic!("six") };
    hear(&mut live, START, silent);
    let now = START + AFTER;
    for n in [apart, without, best, next] {
        hear(&mut live, now, n);
    }
    live.up = [silent, without, best, next].map(node).into();
    let only = [apart, silent, best, next].map(node).into();
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    assert_eq!(live.successor(now, eligible), Some(node(best)));
    live.up.remove(&node(best));
    assert_eq!(live.successor(now, eligible), Some(node(next)));
    live.up.remove(&node(next));
    assert_eq!(live.successor(now, eligible), None);
}

#[test]
fn who_did_not_stop_in_order_gives_numbers_when_it_hears_others_or_gave_up() {
    let after = |unclean, others: &[u8]| {
        let mut live = live(unclean);
        live.others = others.iter().map(|n| node(*n)).collect();
        live
    };
    assert!(after(false, &[8]).may_issue() && after(true, &[]).may_issue());
    let mut waits = after(true, &[8]);
    assert!(!waits.may_issue());
    assert!(!waits.gave_up_hearing(START + ALONE_AFTER / 2) && !waits.may_issue());
    assert!(waits.gave_up_hearing(START + ALONE_AFTER) && waits.may_issue());
    assert!(!waits.gave_up_hearing(START + ALONE_AFTER * 2), "once");
    let mut hears = after(true, &[8]);
    hear(&mut hears, START, 8);
    assert!(hears.may_issue() && !hears.gave_up_hearing(START + ALONE_AFTER));
    for (unclean, others) in [(false, &[8][..]), (true, &[])] {
        assert!(!after(unclean, others).gave_up_hearing(START + ALONE_AFTER));
    }
}

#[test]
fn logs_of_memory_are_of_one_start_each_and_no_two_are_one() {
    assert_eq!(incarnation(1, 1), 1 << 20 | 1);
    assert_eq!(incarnation(5, 0xa_bcde), 0x5a_bcde);
    for (boot, nth) in [(1, 1), (7, 3), (7, 1 << 20 | 3)] {
        assert_eq!(boot_of(incarnation(boot, nth)), boot);
    }
}

/// Two peers that could take over, and a third that does not have the room; a fourth node is silent.
fn asking() -> (Liveness, BTreeSet<NodeId>) {
    let mut live = live(false);
    live.others = [7, 8, 6, 9].map(node).into();
    live.up = [7, 8, 6].map(node).into();
    for n in [7, 8, 6, 9] {
        hear(&mut live, START, n);
    }
    (live, [7, 8].map(node).into())
}

/// Long enough after that for whatever rank this node has.
const LATER: Duration = Duration::from_secs(110);
const SILENT: NodeId = NodeId([9; 32]);

fn silent(since: Duration) -> Gone {
    Gone { node: SILENT, since, anew: false }
}

#[test]
fn a_node_that_a_peer_hears_is_not_replaced() {
    let (mut live, only) = asking();
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    let verdict = |live: &Liveness, now| live.verdict(now, eligible, silent(START));
    let age = Some(AFTER / 3);
    assert_eq!(verdict(&live, LATER), Verdict::AskPeers);
    assert_eq!(live.probe(LATER, SILENT), [6, 7, 8].map(node));
    assert_eq!(verdict(&live, LATER), Verdict::Wait, "they may answer");
    assert_eq!(live.probe(LATER, SILENT), [], "once");
    live.sighted(LATER, node(6), (SILENT, age));
    live.sighted(LATER, node(7), (SILENT, age));
    let until = LATER + AFTER - AFTER / 3;
    assert_eq!(verdict(&live, until - Duration::from_millis(1)), Verdict::Wait);
    assert_eq!(live.probe(until - Duration::from_millis(1), SILENT), []);
    assert_eq!(verdict(&live, until), Verdict::AskPeers, "they are asked again");
    assert_eq!(live.probe(until, SILENT).len(), 3);
    assert_eq!(verdict(&live, until), Verdict::Wait, "what was said then is old");
    hear(&mut live, until, 9);
    assert_eq!(verdict(&live, until), Verdict::AskPeers, "it was heard: that is answered");
}

#[test]
fn a_node_that_no_peer_hears_is_gone_when_all_have_said_so_or_time_is_up() {
    let (mut live, only) = asking();
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    let verdict = |live: &Liveness, now| live.verdict(now, eligible, silent(START));
    live.probe(LATER, SILENT);
    live.sighted(LATER, node(7), (SILENT, None));
    assert_eq!(verdict(&live, LATER), Verdict::Wait);
    // Heard too long ago is not heard; and whoever answers twice has been counted.
    live.sighted(LATER, node(8), (SILENT, Some(AFTER)));
    live.sighted(LATER, node(8), (SILENT, Some(Duration::ZERO)));
    live.sighted(LATER, node(5), (SILENT, Some(Duration::ZERO)));
    assert_eq!(verdict(&live, LATER), Verdict::Gone, "the third does not have the room");
    let (mut live, _) = asking();
    live.probe(LATER, SILENT);
    let just_before = LATER + VETO_WAIT - Duration::from_millis(1);
    assert_eq!(verdict(&live, just_before), Verdict::Wait);
    assert_eq!(verdict(&live, LATER + VETO_WAIT), Verdict::Gone);
    // Somebody it does not matter to hears it.
    let (mut live, _) = asking();
    live.probe(LATER, SILENT);
    live.sighted(LATER, node(6), (SILENT, Some(Duration::ZERO)));
    assert_eq!(verdict(&live, LATER), Verdict::Wait, "the others may, too");
    assert_eq!(verdict(&live, LATER + VETO_WAIT), Verdict::Gone);
}

#[test]
fn who_alone_is_connected_and_has_the_room_asks_nobody() {
    let (mut live, _) = asking();
    let only = BTreeSet::from([SILENT]);
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    assert_eq!(live.verdict(LATER, eligible, silent(START)), Verdict::Gone);
    live.up = BTreeSet::from([SILENT]);
    assert_eq!(live.verdict(LATER, EVERYBODY, silent(START)), Verdict::Gone);
    assert_eq!(live.probe(LATER, SILENT), [], "of itself it is not asked");
}

/// They hear it, and what it has forgotten it does not say to them either.
#[test]
fn nobody_is_asked_about_a_sequencer_that_started_anew() {
    let (mut live, only) = asking();
    for n in [7, 8] {
        hear(&mut live, LATER, n);
    }
    let rank =
        |room| live.rank(LATER, EligibleNodes { room, only: Some(&only), relays: &NOBODY }, SILENT);
    let room = (0..=255).map(|n| RoomId([n; 16])).find(|room| rank(*room) == 2);
    let eligible =
        EligibleNodes { room: room.expect("in one of three"), only: Some(&only), relays: &NOBODY };
    let gone = Gone { anew: true, ..silent(LATER) };
    let verdict = |after, gone| live.verdict(LATER + after, eligible, gone);
    assert_eq!(verdict(TAKEOVER_RANK_STEP, gone), Verdict::Wait, "others come first");
    assert_eq!(verdict(TAKEOVER_RANK_STEP * 2, gone), Verdict::Gone);
    assert_eq!(verdict(TAKEOVER_RANK_STEP * 2, silent(LATER)), Verdict::AskPeers);
}

#[test]
fn a_sequencer_is_gone_when_it_is_silent_or_started_anew() {
    let mut live = live(false);
    let log = |incarnation| LogId { author: SILENT, incarnation };
    let permanent = log(0);
    assert_eq!(live.gone(START + AFTER / 2, permanent), None, "it may be heard yet");
    assert_eq!(live.gone(START + AFTER, permanent), Some(silent(START + AFTER)));
    let heard = START + AFTER;
    let beacon = Beacon {
        node: SILENT,
        boot: 5,
        tick: 1,
        roster: 0,
        digest: Digest::default(),
        records: [0; 16],
        wall_ms: 0,
    };
    assert!(live.hear(heard, beacon));
    assert_eq!(live.gone(heard + AFTER / 2, permanent), None);
    assert_eq!(live.gone(heard + AFTER, permanent), Some(silent(heard + AFTER)));
    // What it began before this start it has forgotten, and that begins when it is heard first.
    let again = heard + AFTER / 2;
    assert!(live.hear(again, Beacon { tick: 2, ..beacon }));
    let anew = Gone { anew: true, ..silent(heard) };
    for (boot, gone) in [(4, Some(anew)), (5, None), (6, None)] {
        assert_eq!(live.gone(again, log(incarnation(boot, 3))), gone, "{boot}");
    }
    live.woke(heard + AFTER * 9, heard);
    assert_eq!(live.gone(heard + AFTER * 9, permanent), None, "it was away itself");
}

/// Seed 34225 of the simulation: a node that had just come back was taken over from, before it was heard.
#[test]
fn who_has_just_been_connected_is_not_gone() {
    let mut live = live(false);
    let log = LogId { author: SILENT, incarnation: 0 };
    assert_eq!(live.gone(START + AFTER, log), Some(silent(START + AFTER)));
    let met = START + AFTER * 2;
    live.peer_up(met, SILENT);
    assert_eq!(live.gone(met + AFTER / 2, log), None, "its beacon may be under way");
    assert_eq!(live.gone(met + AFTER, log), Some(silent(met + AFTER)));
    live.peer_down(SILENT);
    assert_eq!(live.gone(met, log), Some(silent(START + AFTER)), "that it was is no sign");
}

#[test]
fn who_is_heard_again_and_what_is_older_is_told_apart() {
    let mut live = live(false);
    let mut hears = |boot, tick| {
        live.hear(
            START,
            Beacon {
                node: node(7),
                boot,
                tick,
                roster: 0,
                digest: Digest::default(),
                records: [0; 16],
                wall_ms: 0,
            },
        )
    };
    assert!(hears(2, 5));
    for (boot, tick, newer) in
        [(2, 5, false), (2, 4, false), (1, 9, false), (2, 6, true), (3, 1, true)]
    {
        assert_eq!(hears(boot, tick), newer, "{boot} {tick}");
    }
}

#[test]
fn whoever_has_no_part_any_more_is_not_waited_for() {
    let (mut live, only) = asking();
    let eligible = EligibleNodes { room: ROOM, only: Some(&only), relays: &NOBODY };
    live.probe(LATER, SILENT);
    live.sighted(LATER, node(7), (SILENT, Some(Duration::ZERO)));
    for n in [7, 8] {
        live.forget(node(n));
        live.up.insert(node(6));
    }
    assert_eq!(live.verdict(LATER, eligible, silent(START)), Verdict::Gone);
    assert!(live.last(node(7)).is_none() && !live.others.contains(&node(7)));
}
