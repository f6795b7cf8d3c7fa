//! *shared*: in the end agents of a key that a room was given to, and not taken from, see it at all nodes of their key; those of a
//! key that it was never given to, or was taken from, see it nowhere; and nodes with none of its keys have nothing of it.

use mesh::{
    api::command::{Command, Outcome, Reader, Refused},
    name::id::RoomId,
};

use super::{
    super::shared::{Come, SharedRoom},
    answers::{self, Answer, follows},
};
use crate::sim::{
    promises::{Broken, broken},
    world::World,
};

/// *shared*.
pub(super) fn rooms_are_their_keys(world: &mut World) -> Result<(), Broken> {
    // A node that parted may have said so beyond what counts of it; of one that lost its disk others may not know.
    if world.cluster.plan.parting.is_some() || !world.cluster.exempt.is_empty() {
        return Ok(());
    }
    for shared in world.holders.shared.all() {
        let SharedRoom { room, maker, other, given, taken } = shared;
        let may = given != Come::Nowhere && taken != Come::Done;
        let must = given == Come::Done && taken == Come::Nowhere;
        is_seen(world, room, maker, Some(true))?;
        is_seen(world, room, other, (may == must).then_some(must))?;
        let prints = [maker, other].map(|key| world.holders.keys[key].print);
        let keys = if given == Come::Nowhere { &prints[..1] } else { &prints };
        for node in 0..world.cluster.nodes.len() {
            let id = world.cluster.nodes[node].id;
            let presented = keys.iter().any(|key| follows(world, node, *key));
            if !presented && world.cluster.rooms.has_follower(room, id) {
                return broken("shared", format!("node{node} was shown no key of {shared:?}"));
            }
        }
    }
    Ok(())
}

/// Whether agents of a key see a room at the nodes to which the key was presented. `None`: either is right.
fn is_seen(
    world: &mut World,
    room: RoomId,
    key: usize,
    expected: Option<bool>,
) -> Result<(), Broken> {
    let Some(expected) = expected else { return Ok(()) };
    let print = world.holders.keys[key].print;
    let by = Reader { key: print, agent: None };
    let infos = answers::of_all(world, &Command::RoomInfo { by, room })?;
    for (node, info) in infos.into_iter().enumerate() {
        if follows(world, node, print) && sees(&info) != Some(expected) {
            let what = format!("node{node} says of {room} to key {key}: {info:?}");
            return broken("shared", what);
        }
    }
    Ok(())
}

fn sees(info: &Answer) -> Option<bool> {
    match info {
        Ok(Outcome::RoomInfo(_)) => Some(true),
        Err(Refused::NoRoom | Refused::NotYours) => Some(false),
        Ok(_) | Err(_) => None,
    }
}
