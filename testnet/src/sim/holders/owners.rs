//! *ids*: an id belongs to one key, that of the claim with the lowest number. Every node refuses the others and
//! takes its owner, which finds its seats wherever it comes back, and sits once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::command::{Attached, Caller, Command, Outcome, Refused},
    name::{
        agent::{Belongs, belongs},
        id::{AgentId, KeyPrint, RoomId},
        number::Number,
    },
};

use super::answers::{self, follows, is_valid, once_each};
use crate::sim::{
    parts::Seated,
    plan::Fault,
    promises::{Broken, broken},
    world::World,
};

/// An agent on its way through all nodes.
#[derive(Debug)]
struct Mover {
    holder: usize,
    place: Option<Seated>,
    seats: BTreeSet<RoomId>,
}

pub(super) fn ids_are_owned(world: &mut World) -> Result<(), Broken> {
    let owners = owners_of_ids(world);
    others_are_refused(world, &owners)?;
    owners_move(world, &owners)
}

/// The owner of each id: the claim with the lowest of all numbers that anybody knows counts.
fn owners_of_ids(world: &World) -> BTreeMap<AgentId, KeyPrint> {
    let directory = world.cluster.directory();
    let mut first: BTreeMap<AgentId, (Number, KeyPrint)> = BTreeMap::new();
    for (number, entry) in world.promises.all_names(directory) {
        let Some((agent, key)) = world.holders.claims.get(&entry) else { continue };
        let best = first.entry(agent.clone()).or_insert((number, *key));
        *best = (*best).min((number, *key));
    }
    let claimed = first.into_iter().map(|(agent, (_, key))| (agent, key));
    // Needs no claim.
    let drawn = world.holders.holders.iter().filter_map(|holder| {
        let key = world.holders.keys[holder.key].print;
        (belongs(&holder.id, key) == Belongs::Drawn).then(|| (holder.id.clone(), key))
    });
    claimed.chain(drawn).collect()
}

/// Holders of keys that are valid, of ids that somebody has claimed; and whether the id is theirs.
fn claimants(world: &World, owners: &BTreeMap<AgentId, KeyPrint>) -> Vec<(usize, bool)> {
    let holders = world.holders.holders.iter().enumerate();
    let valid = holders.filter(|(_, holder)| is_valid(world, holder.key));
    let whose = valid.filter_map(|(i, holder)| {
        let owner = owners.get(&holder.id)?;
        Some((i, *owner == world.holders.keys[holder.key].print))
    });
    whose.collect()
}

fn others_are_refused(
    world: &mut World,
    owners: &BTreeMap<AgentId, KeyPrint>,
) -> Result<(), Broken> {
    for (i, _) in claimants(world, owners).into_iter().filter(|(_, owns)| !owns) {
        let answers = answers::of_all_to_its_registration(world, i)?;
        for (node, answer) in answers.into_iter().enumerate() {
            if !matches!(answer, Err(Refused::AgentTaken(_))) {
                let id = &world.holders.holders[i].id;
                let what = format!("node{node} gives {id} to another key: {answer:?}");
                return broken("ids", what);
            }
        }
    }
    Ok(())
}

/// Every owner registers at one node after the other: the node that it left by turns still has its
/// connection, was told that it goes, or went down.
fn owners_move(world: &mut World, owners: &BTreeMap<AgentId, KeyPrint>) -> Result<(), Broken> {
    let own = claimants(world, owners).into_iter().filter(|(_, owns)| *owns);
    let mut movers: Vec<Mover> =
        own.map(|(holder, _)| Mover { holder, place: None, seats: BTreeSet::new() }).collect();
    let mut down = None;
    for node in 0..world.cluster.nodes.len() {
        if node > 0 {
            down = leave_behind(world, &movers, node)?;
        }
        movers_register(world, &mut movers, node)?;
        if let Some(down) = down.take() {
            world.start(down)?;
        }
        movers_join(world, &mut movers, node)?;
        // Without gossip rosters are asked for.
        world.go_on(Duration::from_secs(2))?;
    }
    world.go_on(Duration::from_secs(3))?;
    movers_sit_once(world, &movers)
}

fn leave_behind(world: &mut World, movers: &[Mover], node: usize) -> Result<Option<usize>, Broken> {
    match (node + world.cluster.nodes.len()) % 3 {
        0 => {}
        1 => {
            let places = movers.iter().filter_map(|mover| mover.place.clone());
            let detach = places.map(|Seated { node, caller }| {
                (node, Command::Detach { caller, seen: Vec::new() })
            });
            answers::of_each(world, detach.collect())?;
            world.go_on(Duration::from_secs(2))?;
        }
        _ => {
            world.fault(Fault::Crash(node - 1))?;
            return Ok(Some(node - 1));
        }
    }
    Ok(None)
}

fn movers_register(world: &mut World, movers: &mut [Mover], node: usize) -> Result<(), Broken> {
    let holders = movers.iter().map(|mover| mover.holder);
    let attach = holders.map(|holder| (node, answers::registration(world, holder, node)));
    let attach = attach.collect();
    for (mover, answer) in movers.iter_mut().zip(answers::of_each(world, attach)?) {
        let holder = &world.holders.holders[mover.holder];
        let (id, key) = (holder.id.clone(), world.holders.keys[holder.key].print);
        let Ok(Outcome::Attached(Attached { registration, restored, .. })) = answer else {
            return broken("ids", format!("node{node} refuses {id} to its owner: {answer:?}"));
        };
        let restored: BTreeSet<RoomId> =
            restored.into_iter().flatten().map(|(room, _)| room).collect();
        let here = world.cluster.nodes[node].id;
        mover.seats.retain(|room| world.cluster.nodes_with(*room).contains(&here));
        if !restored.is_superset(&mover.seats) {
            let what = format!("{id} gets {restored:?} back at node{node} of {:?}", mover.seats);
            return broken("ids", what);
        }
        let caller = Caller { agent: id, key, registration };
        mover.place = Some(Seated { node, caller });
    }
    Ok(())
}

/// Each joins all permanent rooms that it may see here.
fn movers_join(world: &mut World, movers: &mut [Mover], node: usize) -> Result<(), Broken> {
    let mut joins = Vec::new();
    for mover in movers {
        let Some(Seated { caller, .. }) = &mover.place else { continue };
        let follows = follows(world, node, caller.key);
        let made = world.holders.made.iter().filter(|made| !made.ephemeral);
        let seen = made.filter(|made| {
            made.public || (follows && world.holders.keys[made.key].print == caller.key)
        });
        for room in seen.map(|made| made.room) {
            mover.seats.insert(room);
            joins.push((node, Command::Join { caller: caller.clone(), room }));
        }
    }
    match answers::of_each(world, joins)?.into_iter().find(Result::is_err) {
        None => Ok(()),
        Some(refused) => broken("rooms", format!("node{node} lets nobody in: {refused:?}")),
    }
}

fn movers_sit_once(world: &mut World, movers: &[Mover]) -> Result<(), Broken> {
    for mover in movers {
        let Some(Seated { node, caller }) = &mover.place else { continue };
        let home = world.cluster.nodes[*node].id;
        for room in &mover.seats {
            let ask = Command::ListAgents { by: caller.key.into(), room: Some(*room) };
            let with = world.cluster.nodes_with(*room);
            let answers = answers::of_all(world, &ask)?.into_iter().enumerate();
            for (node, answer) in
                answers.filter(|(i, _)| with.contains(&world.cluster.nodes[*i].id))
            {
                let Ok(Outcome::Agents(agents)) = answer else {
                    return broken("rooms", format!("node{node} does not know {room}"));
                };
                once_each(node, &agents)?;
                if !agents.iter().any(|agent| agent.agent == caller.agent && agent.node == home) {
                    let what = format!("node{node} has {} not at its node", caller.agent);
                    return broken("ids", what);
                }
            }
        }
    }
    Ok(())
}
