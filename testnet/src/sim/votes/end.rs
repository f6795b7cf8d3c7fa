//! The promises of votes in the end.

use std::{collections::BTreeMap, time::Duration};

use mesh::{
    api::{
        agenda::{VoteNotes, VoteView},
        command::Command,
    },
    limits::VOTES_OPEN_PER_AGENT_MAX,
    name::id::MessageId,
};

use super::{Asked, Made, Votes};
use crate::sim::{
    cluster::Cluster,
    end::{Told, ask_all, dissent},
    keys::KEY,
    parts::Seated,
    promises::{Broken, broken},
    world::World,
};

impl Told for Votes {
    fn of(world: &mut World) -> (&mut Votes, &mut Cluster) {
        (&mut world.votes, &mut world.cluster)
    }
}

/// *same result* and *votes end*, of all votes of rooms that are still there.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    for Made { vote, room, .. } in permanent(world) {
        let views = all_views(world, vote)?;
        if let Some((node, view, first)) = dissent(views.iter().map(|(n, v)| (*n, v)), of_all) {
            let text = format!("node0 says {first:?}, node{node} says {view:?}");
            return broken("same result", text);
        }
        for (node, view) in &views {
            is_whole(world, view)?;
            if room == world.cluster.lobby() {
                was_told(world, *node, view)?;
            }
        }
    }
    Ok(())
}

/// Votes of rooms that do not end.
fn permanent(world: &World) -> Vec<Made> {
    let made = world.votes.made.iter();
    made.filter(|vote| !world.cluster.rooms.is_ephemeral(vote.room)).cloned().collect()
}

fn views(world: &mut World, vote: MessageId) -> Result<BTreeMap<usize, Option<VoteView>>, Broken> {
    ask_all::<Votes>(world, &Asked::View, &Command::GetVote { by: (*KEY).into(), vote })
}

/// The nodes' views of a vote, which all of them know.
fn all_views(world: &mut World, vote: MessageId) -> Result<BTreeMap<usize, VoteView>, Broken> {
    let views = views(world, vote)?.into_iter();
    let views: BTreeMap<_, _> = views.filter_map(|(node, view)| Some((node, view?))).collect();
    if views.len() < world.cluster.nodes.len() {
        return broken("same result", format!("only {} nodes know {vote}", views.len()));
    }
    Ok(views)
}

/// *same result* where a node has forked or parted: all others say the same, if only that there is no such vote.
pub(crate) fn others_say_the_same(world: &mut World, forked: Option<usize>) -> Result<(), Broken> {
    for made in permanent(world) {
        let views = views(world, made.vote)?;
        // Entries that a node wrote elsewhere before others heard that it forked some of them have, and some do not.
        let by_all = forked != Some(made.node);
        let others = views.iter().filter(|(node, _)| !world.cluster.is_exempt(**node));
        let others = others.filter(|(_, view)| by_all || view.is_some());
        let others = others.map(|(node, view)| (*node, view));
        if let Some((node, view, first)) = dissent(others, |view| view.as_ref().map(of_all)) {
            return broken("same result", format!("node{node} says {view:?}, not {first:?}"));
        }
    }
    Ok(())
}

fn is_whole(world: &World, view: &VoteView) -> Result<(), Broken> {
    let VoteNotes { closing: _, unopened, late, corrected } = view.notes;
    let due = view.closes_ms.is_some() || view.cast + late == view.eligible;
    if due && view.tally.is_none() {
        return broken("votes end", format!("this should be over: {view:?}"));
    }
    let acknowledged = world.votes.acknowledged(view.vote);
    if unopened > 0 || view.cast + late < acknowledged {
        let text = format!("{acknowledged} ballots were acknowledged: {view:?}");
        return broken("same result", text);
    }
    let undisturbed = world.cluster.plan.is_undisturbed();
    if undisturbed && (corrected > 0 || (late > 0 && view.closes_ms.is_none())) {
        return broken("same result", format!("in calm weather: {view:?}"));
    }
    Ok(())
}

fn was_told(world: &World, node: usize, view: &VoteView) -> Result<(), Broken> {
    let told = world.votes.told.get(&(node, view.vote)).copied().unwrap_or(0);
    let stayed = !world.votes.desk.went_down.contains(&node);
    if stayed && told != usize::from(view.tally.is_some()) {
        return broken("votes end", format!("node{node} told {told} results: {view:?}"));
    }
    Ok(())
}

/// Once everybody is there again, a vote of everybody ends as soon as the last one has cast.
pub(crate) fn everybody_votes(world: &mut World) -> Result<(), Broken> {
    let lobby = world.cluster.lobby();
    let all = world.agents.all_seated();
    // An agent that has as many open as one may is refused another.
    let may_open = |by: &&Seated| {
        world.votes.open_of(by.node, &by.caller.agent, lobby) < VOTES_OPEN_PER_AGENT_MAX
    };
    let openers: Vec<Seated> = all.iter().filter(may_open).cloned().collect();
    let opener = world.cluster.dice.pick(&openers).clone();
    let before = world.votes.made.len();
    world.votes.open_vote(&mut world.cluster, opener, lobby, None);
    world.go_on(Duration::from_secs(2))?;
    let Some(vote) = world.votes.made.get(before).map(|made| made.vote) else {
        return broken("votes end", "no vote can be opened after the heal".to_owned());
    };
    for by in all.clone() {
        let option = world.cluster.dice.within(0, 1);
        world.votes.cast_in(&mut world.cluster, by, vote, option);
    }
    // Casting, closing and opening take an exchange of digests each where there is no gossip.
    world.go_on(Duration::from_secs(5))?;
    for view in all_views(world, vote)?.values() {
        let sum = view.tally.as_ref().map(|tally| tally.iter().sum());
        if sum != Some(all.len() as u64) || view.notes != VoteNotes::default() {
            return broken("votes end", format!("everybody has cast: {view:?}"));
        }
    }
    converge(world)
}

/// The part of a view that is the same at every node: a correction of an earlier result is each node's own business.
fn of_all(view: &VoteView) -> VoteView {
    VoteView { notes: VoteNotes { corrected: 0, ..view.notes }, ..view.clone() }
}
