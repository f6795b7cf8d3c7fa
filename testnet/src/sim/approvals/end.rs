//! The promises of approvals in the end.

use std::{collections::BTreeMap, time::Duration};

use mesh::name::id::{MessageId, RoomId};

use super::{fold, fold::Stands};
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// How long nodes take to answer what they know.
const ANSWERED_WITHIN: Duration = Duration::from_millis(20);

/// The decision about an approval, as a node says it.
type Said = (usize, (RoomId, MessageId), Option<Stands>);

/// *same decisions*, *decision, told* and *decisions end*, of all permanent rooms.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    let all = decisions(world)?;
    let approvals = &world.approvals;
    let mut folded: BTreeMap<RoomId, BTreeMap<MessageId, Option<Stands>>> = BTreeMap::new();
    for (node, (room, id), said) in all {
        let of_room = folded.entry(room).or_insert_with(|| fold::fold(&approvals.acts, room));
        let is = of_room.get(&id).cloned().flatten();
        if said != is {
            let text = format!("node{node} says of {id} in {room}: {said:?}, not {is:?}");
            return broken("same decisions", text);
        }
        let told = approvals.told.get(&(node, id));
        let went_down = approvals.desk.went_down.contains(&node);
        if told.is_some_and(|told| Some(told) != is.as_ref())
            || !went_down && is.is_some() && told.is_none()
        {
            let text = format!("node{node} has told {told:?} of {id} in {room}, and {is:?} stands");
            return broken("decision, told", text);
        }
    }
    Ok(())
}

/// *decisions end*: later than the time of each, and of one attempt more to say so.
pub(crate) fn everything_is_decided(world: &mut World) -> Result<(), Broken> {
    for (node, (room, id), said) in decisions(world)? {
        if said.is_none() {
            return broken("decisions end", format!("node{node}: {id} in {room} is open"));
        }
    }
    converge(world)
}

/// The nodes that are judged name the same decisions.
pub(crate) fn others_name_the_same(world: &mut World) -> Result<(), Broken> {
    let all = decisions(world)?;
    let judged = |said: &&Said| !world.cluster.is_exempt(said.0);
    for one in all.iter().filter(judged) {
        let same = |other: &&Said| other.1 == one.1 && other.2 != one.2;
        if let Some(other) = all.iter().filter(judged).find(same) {
            return broken("same decisions", format!("{one:?} and {other:?}"));
        }
    }
    Ok(())
}

/// Every node is asked about every approval that any has named.
fn decisions(world: &mut World) -> Result<Vec<Said>, Broken> {
    world.approvals.desk.views.clear();
    let known: Vec<_> = world.approvals.known.iter().map(|known| (known.room, known.id)).collect();
    let permanent = known.into_iter().filter(|(room, _)| !world.cluster.rooms.is_ephemeral(*room));
    for approval in permanent.collect::<Vec<_>>() {
        for node in 0..world.cluster.nodes.len() {
            if world.cluster.nodes[node].running.is_some() {
                world.approvals.look(&mut world.cluster, node, approval);
            }
        }
    }
    world.go_on(ANSWERED_WITHIN)?;
    let views = std::mem::take(&mut world.approvals.desk.views).into_iter();
    let views = views.flat_map(|(node, view)| view.into_iter().map(move |it| (node, it)));
    Ok(views.map(|(node, (approval, stands))| (node, approval, stands)).collect())
}
