//! *roaming*: in the end every client has seen everything.

use std::time::Duration;

use crate::sim::{
    promises::{Broken, Entry, broken},
    world::World,
};

/// Every client reads until there is nothing more. Claims for clients of one room are 10 s apart, and there are two
/// of them.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    for _ in 0..200 {
        for i in 0..world.roamers.count() {
            world.roamers.read(&mut world.cluster, i)?;
        }
        world.go_on(Duration::from_millis(200))?;
    }
    (0..world.roamers.count()).try_for_each(|i| saw_everything(world, i))
}

fn saw_everything(world: &World, i: usize) -> Result<(), Broken> {
    let World { roamers, cluster, promises, .. } = world;
    let (roamer, bodies) = (&roamers.roamers[i], world.bodies());
    let (node, room) = (roamer.node, roamer.room);
    let all = promises.seen(cluster.nodes[node].id, room);
    // It may have read where the body was dropped already, and this node keeps it for longer.
    let dropped = |entry| (0..cluster.nodes.len()).any(|at| bodies.is_dropped(at, room, entry));
    // Somewhere it may have gone past a hole, of which nobody else knows that it was one.
    let left_out = |entry| {
        let mut visited = roamer.visited.iter();
        visited.any(|at| promises.left_out(cluster.nodes[*at].id, room, entry))
    };
    let missed = all.difference(&roamer.seen);
    let missed = missed.filter(|entry| !dropped(**entry) && !left_out(**entry));
    let missed: Vec<&Entry> = missed.collect();
    if let Some(first) = missed.first() {
        let (missed, all, cursor) = (missed.len(), all.len(), roamer.cursor);
        let text = format!(
            "roamer {i} at node{node} missed {missed} of {all} with cursor {cursor:?}, the first \
             {first:?}"
        );
        return broken("roaming", text);
    }
    let repeats = roamer.repeats;
    if cluster.plan.calm && repeats > 0 {
        return broken("roaming", format!("roamer {i} saw {repeats} twice in calm weather"));
    }
    Ok(())
}
