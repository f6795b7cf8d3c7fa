//! The promises of things that one agent does in the end.

use std::time::Duration;

use mesh::{
    api::once::{OnceHolder, OnceWant},
    name::id::{AgentId, MessageId, RoomId},
};

use super::{Got, Onces, SUBJECTS};
use crate::sim::{
    parts::Seated,
    promises::{Broken, broken},
    world::World,
};

/// How long nodes take to answer what they know.
const ANSWERED_WITHIN: Duration = Duration::from_millis(20);
/// How long an ask and its answer take to be everywhere, where nothing disturbs.
const DONE_WITHIN: Duration = Duration::from_secs(3);

/// A subject, and its holder, as an agent was told at a node.
type Said = (usize, RoomId, String, Option<(MessageId, AgentId)>);

/// *same holders* and *once, told*, of all permanent rooms.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    for (node, room, subject, said) in holders(world)? {
        let is = world.onces.holders(room).get(&subject).cloned();
        if said != is {
            let text = format!("node{node} says of {subject} in {room}: {said:?}, not {is:?}");
            return broken("same holders", text);
        }
    }
    let seated = world.agents.all_seated();
    let untold = world.onces.got.iter().find(|got| is_untold(&world.onces, &seated, got));
    match untold {
        None => Ok(()),
        Some(got) => broken("once, told", format!("nobody told that it is lost: {got:?}")),
    }
}

/// The nodes that are judged name the same holders.
pub(crate) fn others_name_the_same(world: &mut World) -> Result<(), Broken> {
    let all = holders(world)?;
    let judged = |said: &&Said| !world.cluster.is_exempt(said.0);
    for one in all.iter().filter(judged) {
        let same = |other: &&Said| (other.1, &other.2) == (one.1, &one.2) && other.3 != one.3;
        if let Some(other) = all.iter().filter(judged).find(same) {
            return broken("same holders", format!("{one:?} and {other:?}"));
        }
    }
    Ok(())
}

/// Every agent that is in a permanent room asks its node who has what there.
fn holders(world: &mut World) -> Result<Vec<Said>, Broken> {
    world.onces.desk.views.clear();
    for i in 0..world.agents.count() {
        let Some(by) = world.agents.seated(i) else { continue };
        for room in world.agents.rooms_of(i) {
            if world.cluster.rooms.is_ephemeral(room) {
                continue;
            }
            for subject in SUBJECTS {
                world.onces.look(&mut world.cluster, by.clone(), room, subject);
            }
        }
    }
    world.go_on(ANSWERED_WITHIN)?;
    let short = |holder: OnceHolder| (holder.grant, holder.agent);
    let views = std::mem::take(&mut world.onces.desk.views).into_iter();
    let views = views.flat_map(|(node, view)| view.into_iter().map(move |it| (node, it)));
    Ok(views.map(|(node, ((room, subject), it))| (node, room, subject, it.map(short))).collect())
}

/// Whether an agent that is where it was thinks that it has what another one has.
fn is_untold(onces: &Onces, seated: &[Seated], got: &Got) -> bool {
    let stays = seated.iter().any(|by| (by.node, &by.caller) == (got.node, &got.by));
    let holder = onces.holders(got.room).remove(&got.subject);
    let has = holder.is_some_and(|(grant, _)| grant == got.grant);
    // A node that starts anew has told what it was about to tell, or lost it with its clients.
    let stayed_up = !onces.desk.went_down.contains(&got.node);
    stays && stayed_up && !got.is_over && !has && !onces.told.contains(&(got.node, got.grant))
}

/// *once ends*: everybody asks for one thing.
pub(crate) fn everybody_asks(world: &mut World) -> Result<(), Broken> {
    let room = world.cluster.lobby();
    let all = world.agents.all_seated();
    let granted = world.onces.granted;
    for by in all {
        let want = OnceWant::Take(None);
        world.onces.want(&mut world.cluster, by, (room, "the end"), want);
    }
    world.go_on(DONE_WITHIN)?;
    let won = world.onces.granted - granted;
    if won != 1 {
        return broken("once ends", format!("{won} have it"));
    }
    converge(world)
}
