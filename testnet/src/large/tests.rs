//! Small large meshes: the counts add up.

use std::time::Duration;

use super::{play::measure, report::Size, setting::Setting};

fn small(nodes: usize, seed: u64) -> Size {
    let lasts = Duration::from_secs(2);
    let setting = Setting { nodes, lasts, settles: Duration::from_secs(10), seed };
    measure(&setting, &mut |_| {}).expect("it can be played")
}

#[test]
fn counts_add_up() {
    let size = small(12, 1);
    assert!(size.known.after.is_some() && size.seated.after.is_some(), "{size:?}");
    assert_eq!((size.talk.said, size.talk.everywhere_once), (40, 40), "once at each node");
    assert_eq!(size.talk.delivered.len(), 40 * 11);
    assert_eq!(size.talk.acknowledged.len(), 40);
    let tally = &size.talk.tally;
    assert_eq!(tally.hops.first(), Some(&0), "nothing comes over no link");
    assert_eq!(tally.hops.iter().sum::<u64>(), 40 * 11, "it came first once to each other node");
    assert!(size.copies() >= 11.0, "{} copies", size.copies());
    assert!(tally.numbers.times >= 40 * 11);
    // All are linked with all, so flooding is one hop, but where two or three short links are faster than
    // a long one; nearly all copies that are passed on are for nothing, and no more than the gossip mesh.
    assert_eq!(size.hops(50), 1);
    assert!(size.hops(100) <= 3, "{} hops", size.hops(100));
    assert!(size.copies() <= 11.0 + 11.0 * 3.0, "{} copies", size.copies());
    // Beacons: all are linked and nothing happens, so each to all others each 600 ms, and each 4.8 s by gossip.
    let beacons = size.idle.frames[super::report::BEACON].times;
    assert!((12 * 11 * 3..12 * 11 * 5).contains(&beacons), "{beacons}");
    let gossiped = size.idle.fresh[super::report::BEACON].times;
    assert!((1..12 * 11).contains(&gossiped), "{gossiped}");
    assert_eq!(size.idle.frames.get("lives"), None, "nobody needs hearsay");
    assert_eq!((size.alarms.eras, size.alarms.holes, size.alarms.others), (0, 0, 0));
}

/// More nodes than one is linked with: rosters come by gossip from those that are not.
#[test]
fn agents_are_seen_at_nodes_that_are_not_linked_with_theirs() {
    let size = small(64, 1);
    assert!(size.seated.after.is_some(), "{:?}", size.seated);
    assert_eq!(size.talk.everywhere_once, size.talk.said);
    // Beacons are seldom gossiped: each 4.8 s. All are known to live all the same.
    let gossiped = size.idle.fresh.get(super::report::BEACON).map_or(0, |count| count.times);
    assert!((1..64 * 63).contains(&gossiped), "{gossiped}");
    assert_eq!(size.idle.left + size.talk.tally.left, 0, "nobody is taken for gone");
    // Nodes that lose power are missed, and replaced.
    assert_eq!(size.lost.seen, (63, 63), "{:?}", size.lost);
    assert!(size.lost.gone <= Duration::from_secs(5), "{:?}", size.lost);
    assert!(size.lost.numbered.is_some_and(|it| it <= Duration::from_secs(5)), "{:?}", size.lost);
}

#[test]
fn the_same_seed_is_the_same_mesh() {
    assert_eq!(small(6, 7).counts(), small(6, 7).counts());
    assert_ne!(small(6, 7).counts(), small(6, 8).counts());
}
