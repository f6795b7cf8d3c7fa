//! Ballots: a choice is kept until it is open, and no longer; for how long a vote waits for ballots of other nodes.

use super::{
    disk::stored,
    world::{STEP, World},
    *,
};
use crate::{
    api::batch::VoteNote,
    limits::{
        RECONNECT_WITHIN, VOTE_AWAY_FOR, VOTE_CLOSE_GRACE, VOTE_COLLECT, VOTE_COLLECT_APART,
        VOTE_SHOW_WITHIN,
    },
};

/// Choices that a node keeps.
fn kept(world: &World, n: usize) -> usize {
    stored(&world.nodes[n].rows).notes.iter().map(|(_, _, note)| note.choices.len()).sum()
}

/// Long enough for a vote of a node that is gone to be closed by any other.
const CLOSED_BY: Duration =
    RECONNECT_WITHIN.saturating_add(VOTE_CLOSE_GRACE).saturating_add(Duration::from_secs(5));

#[test]
fn a_ballot_that_is_opened_after_the_result_was_told_is_kept_no_longer() {
    let mut world = World::new(3);
    let vote = world.create(0, None);
    world.groups = vec![0, 1, 2];
    world.cast(1, vote, 0).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    world.down.insert(1);
    world.pass(CLOSED_BY);
    world.down.remove(&1);
    world.groups = vec![0, 1, 1];
    world.pass(Duration::from_secs(3));
    assert_eq!(world.view(1, vote).tally, Some(vec![0, 1]), "without the ballot of this node");
    assert_eq!((world.ended(1).len(), kept(&world, 1)), (1, 1));
    // The opener names all there are.
    world.groups = vec![0; 3];
    world.pass(VOTE_SHOW_WITHIN);
    assert_eq!(world.view(0, vote).tally, Some(vec![1, 1]));
    assert_eq!(kept(&world, 1), 0);
}

#[test]
fn a_close_that_counts_instead_of_another_opens_what_that_left_out() {
    let mut world = World::new(4);
    let vote = world.create(0, None);
    world.groups = vec![0, 1, 2, 1];
    // What is written later stands higher.
    for _ in 0..5 {
        world.create(2, None);
    }
    world.cast(1, vote, 0).expect("eligible");
    world.cast(2, vote, 1).expect("eligible");
    world.groups = vec![0, 1, 2, 3];
    world.down.insert(1);
    world.pass(CLOSED_BY);
    world.down.remove(&1);
    world.groups = vec![0, 2, 2, 3];
    world.pass(Duration::from_secs(3));
    assert_eq!(world.view(1, vote).tally, Some(vec![0, 1]), "without the ballot of this node");
    assert_eq!((world.ended(1).len(), kept(&world, 1)), (1, 1));
    world.groups = vec![0, 2, 2, 2];
    world.pass(VOTE_SHOW_WITHIN);
    assert_eq!(world.view(3, vote).tally, Some(vec![1, 0]), "by the lower close");
    assert_eq!(kept(&world, 1), 0);
}

/// A link that heals before the deadline is made anew some seconds later.
#[test]
fn ballots_of_another_side_count_where_the_split_is_over_by_the_deadline() {
    let mut world = World::new(3);
    let vote = world.create(0, Some(10));
    world.groups = vec![0, 1, 1];
    world.pass(Duration::from_secs(4));
    world.cast(1, vote, 1).expect("eligible");
    world.pass(Duration::from_secs(6) + VOTE_COLLECT * 2);
    let view = world.view(0, vote);
    assert_eq!((world.closes(), view.closed, view.notes.closing), (0, false, true));
    world.groups = vec![0; 3];
    world.pass(VOTE_COLLECT_APART);
    assert_eq!(world.tallies(vote), vec![Some(vec![0, 1]); 3]);
}

#[test]
fn nobody_waits_long_for_ballots_of_who_has_been_away_for_long() {
    let mut world = World::new(3);
    world.down.insert(2);
    for (away, collect) in [(Duration::ZERO, VOTE_COLLECT_APART), (VOTE_AWAY_FOR, VOTE_COLLECT)] {
        world.pass(away);
        let before = world.closes();
        let vote = world.create(0, Some(5));
        world.cast(1, vote, 1).expect("eligible");
        world.pass(Duration::from_secs(5) + collect - STEP);
        assert_eq!(world.closes(), before, "{away:?}");
        world.pass(STEP * 3);
        assert_eq!(world.closes(), before + 1, "{away:?}");
    }
}

#[test]
fn nothing_of_a_ballot_is_kept_once_it_is_open_or_will_never_count() {
    let mut world = World::new(2);
    let vote = world.create(0, Some(2));
    world.cast(0, vote, 1).expect("eligible");
    let notes = |world: &World, n: usize| -> Vec<VoteNote> {
        stored(&world.nodes[n].rows).notes.into_iter().map(|(_, _, note)| note).collect()
    };
    assert_eq!(notes(&world, 0)[0].choices.len(), 1);
    assert!(notes(&world, 1).is_empty());
    world.groups[1] = 1;
    world.cast(1, vote, 1).expect("eligible");
    world.pass(Duration::from_secs(2) + VOTE_COLLECT_APART + STEP);
    assert!(notes(&world, 0)[0].choices.is_empty());
    assert_eq!(notes(&world, 1)[0].choices.len(), 1, "it does not know of the close");
    world.groups[1] = 0;
    world.pass(STEP);
    assert!(notes(&world, 1)[0].choices.is_empty(), "it came too late");
    assert_eq!(world.view(1, vote).notes.late, 1);
    assert_eq!(world.shown(), 1, "and stays sealed for ever");
}
