//! *still*: once everybody has everything, nodes say little more than that they live.

use std::time::Duration;

use mesh::limits::HOLE_AFTER;

use super::{
    promises::{Broken, broken},
    world::World,
};

/// Messages that one node sends another within [`STILL_FOR`] though there is nothing to say.
const MESSAGES_MAX: usize = 8;
const STILL_FOR: Duration = Duration::from_secs(4);

/// *still*. A node that has just started asks for a while for missing entries of a room that is in memory only.
pub(super) fn is_still(world: &mut World) -> Result<(), Broken> {
    if says_more_than_it_lives(world)?.is_none() {
        return Ok(());
    }
    world.go_on(HOLE_AFTER)?;
    says_more_than_it_lives(world)?.map_or(Ok(()), |what| broken("still", what))
}

/// A node that sends another more than that, if there is one.
fn says_more_than_it_lives(world: &mut World) -> Result<Option<String>, Broken> {
    world.cluster.traffic.sent.clear();
    world.cluster.traffic.traced = world.cluster.is_traced();
    world.go_on(STILL_FOR)?;
    world.cluster.traffic.traced = false;
    let most = world.cluster.traffic.sent.iter().max_by_key(|(_, count)| **count);
    let most = most.filter(|(_, count)| **count > MESSAGES_MAX);
    Ok(most
        .map(|((from, to), count)| format!("node{from} still sends {count} messages to node{to}")))
}
