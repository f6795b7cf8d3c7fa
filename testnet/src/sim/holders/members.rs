//! Members of rooms on record: agents that their keys put on the lists of rooms that they have made, and take off.
//!
//! *forged*: in the end nobody is on a list whom no agent of the room's key has put there, and all nodes show the same list.

use std::sync::Arc;

use mesh::{
    api::command::{Command, LeaveOnRecord, MemberAct, MemberSet, Outcome},
    name::id::RoomId,
    records::members::{Member, Role},
};

use super::{Holder, Holders, alike::details::is_the_same_everywhere, answers, asked::Asked};
use crate::sim::{
    cluster::Cluster,
    parts::Seated,
    promises::{Broken, broken},
    world::World,
};

impl Holders {
    /// An agent puts another one on the list of a room that its key has made, or takes it off.
    pub(super) fn set_member(&mut self, cluster: &mut Cluster, i: usize, by: Seated) {
        let Some((room, _)) = self.own_room(cluster, i) else { return };
        let agent = cluster.dice.pick(&self.holders).id.clone();
        let act = if cluster.dice.chance(70) {
            self.named.entry(room).or_default().insert(agent.clone());
            MemberAct::Put(*cluster.dice.pick(&Role::ALL))
        } else {
            MemberAct::Remove
        };
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let set = MemberSet { caller: by.caller, signer, room, agent, act };
        let command = Command::SetMember(Box::new(set));
        self.calls.ask(cluster, by.node, Asked::Member, command);
    }

    /// An agent leaves a room, and says so on record, if it is on one.
    pub(super) fn leave(&mut self, cluster: &mut Cluster, i: usize, by: Seated, room: RoomId) {
        let signer = Some(Arc::clone(&self.key_of(i).secret));
        let leave = LeaveOnRecord { caller: by.caller, signer, room };
        let command = Command::LeaveOnRecord(Box::new(leave));
        self.calls.ask(cluster, by.node, Asked::Leave(i, room), command);
    }
}

impl Holders {
    /// A node says that an agent there has no seat any more.
    pub(super) fn is_unseated(&mut self, node: usize, agent: &str, room: RoomId) {
        let is_it = |holder: &&mut Holder| {
            let is_there = holder.place.as_ref().is_some_and(|at| at.node == node);
            *holder.id == *agent && is_there
        };
        if let Some(holder) = self.holders.iter_mut().find(is_it) {
            holder.rooms.remove(&room);
        }
    }
}

/// See the module.
pub(super) fn converge(world: &mut World) -> Result<(), Broken> {
    let made = world.holders.made.clone();
    for made in made.iter().filter(|made| !made.ephemeral) {
        let key = world.holders.keys[made.key].print;
        // A node whose disk was lost answers nothing any more.
        let nodes = world.cluster.nodes.iter().enumerate();
        let alive: Vec<usize> =
            nodes.filter(|(_, node)| !node.is_lost()).map(|(node, _)| node).collect();
        let ask = |node: &usize| (*node, Command::RoomInfo { by: key.into(), room: made.room });
        let answers = answers::of_each(world, alive.iter().map(ask).collect())?;
        let mut first: Option<(usize, Arc<[Member]>)> = None;
        for (node, answer) in alive.into_iter().zip(answers) {
            let Ok(Outcome::RoomInfo(info)) = answer else { continue };
            if world.cluster.is_exempt(node) {
                continue;
            }
            let list = info.room.on_record;
            let named = world.holders.named.get(&made.room);
            let is_named = |member: &Member| named.is_some_and(|all| all.contains(&member.agent));
            if let Some(member) = list.iter().find(|member| !is_named(member)) {
                let what =
                    format!("node{node} has {member:?} in {:?}, whom nobody has named", made.room);
                return broken("forged", what);
            }
            if list.iter().filter(|member| member.role == Role::Lead).count() > 1 {
                return broken(
                    "forged",
                    format!("two lead {:?} at node{node}: {list:?}", made.room),
                );
            }
            match &first {
                Some((other, before))
                    if *before != list && is_the_same_everywhere(world, made.key) =>
                {
                    let what = format!(
                        "in {:?} node{other} has {before:?}, node{node} {list:?}",
                        made.room
                    );
                    return broken("forged", what);
                }
                Some(_) => {}
                None => first = Some((node, list)),
            }
        }
    }
    Ok(())
}
