//! *direct*: in the end all nodes to which one of the two keys was presented list a direct room to its two agents, and to nobody else;
//! all other nodes have nothing of it. That all nodes that have it have the same messages in the same order, and that nothing of it is in the clear, are
//! promises about all rooms.

use mesh::{
    api::command::{Command, Outcome, Reader, Refused},
    name::group::{Group, Pair},
};

use super::answers::{self, follows};
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// *direct*.
pub(super) fn rooms_are_their_agents(world: &mut World) -> Result<(), Broken> {
    // A node that parted may have opened a room beyond what counts of it.
    if world.cluster.plan.parting.is_some() {
        return Ok(());
    }
    for (sides, room) in world.holders.direct.rooms() {
        let prints = [sides.0, sides.1].map(|side| world.holders.key_of(side).print);
        let group = Group::Pair(Pair::of(prints[0], prints[1]));
        for i in 0..world.holders.holders.len() {
            let holder = &world.holders.holders[i];
            let is_side = i == sides.0 || i == sides.1;
            // Twins have the same id, and another key.
            let by = Reader { key: world.holders.key_of(i).print, agent: Some(holder.id.clone()) };
            let asked = Command::RoomInfo { by: by.clone(), room };
            let infos = answers::of_all(world, &asked)?;
            let lists = answers::of_all(world, &Command::ListRooms { by, parent: None })?;
            for (node, (info, list)) in infos.into_iter().zip(lists).enumerate() {
                let id = world.cluster.nodes[node].id;
                let presented = prints.iter().any(|key| follows(world, node, *key));
                if world.cluster.rooms.follows(id, group) != presented {
                    let what = format!("node{node} was shown a key of {sides:?}: {presented}");
                    return broken("direct", what);
                }
                let Ok(Outcome::Rooms(list)) = list else {
                    return broken("direct", format!("node{node} lists nothing: {list:?}"));
                };
                let listed = list.iter().filter(|view| view.room == room).count();
                let sees = is_side && presented;
                let right = match &info {
                    Ok(Outcome::RoomInfo(_)) => sees,
                    Err(Refused::NoRoom | Refused::NotYours) => !sees,
                    Ok(_) | Err(_) => false,
                };
                if !right || listed != usize::from(sees) {
                    let what = format!(
                        "node{node} says of the room of {sides:?} to agent {i}: {info:?}, listed {listed} times"
                    );
                    return broken("direct", what);
                }
            }
        }
    }
    Ok(())
}
