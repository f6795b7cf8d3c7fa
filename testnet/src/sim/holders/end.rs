//! The promises of the end about keys, and about rooms by name.
//!
//! *keys*: every node knows the same keys, and refuses those that anybody has revoked. *ids*: see
//! `owners`. *rooms*: all nodes list
//! the same rooms by the same names, no name is there twice, and no room is missing of which somebody was
//! told that it was made. *sealed*: nodes without its key neither list a private room nor answer for it, and
//! nothing of it is in the clear on any disk.

mod direct;
mod shared;

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::command::{Command, Outcome, Refused, RoomView},
    name::id::{AgentId, KeyPrint},
};

use super::{
    Made,
    answers::{self, follows, is_valid, once_each},
    has_mark, owners,
};
use crate::sim::{
    keys,
    promises::{Broken, broken},
    world::World,
};

pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    if !world.cluster.plan.keys {
        return Ok(());
    }
    keys_are_the_same(world)?;
    // Agents that were let in there sit again: without gossip others ask for rosters first.
    world.go_on(Duration::from_secs(2))?;
    rooms_are_listed(world)?;
    private_rooms_are_answered_for(world)?;
    direct::rooms_are_their_agents(world)?;
    shared::rooms_are_their_keys(world)?;
    owners::ids_are_owned(world)?;
    match world.cluster.nodes.iter_mut().position(|node| has_mark(&node.image())) {
        None => Ok(()),
        Some(node) => broken("sealed", format!("node{node} has written in the clear")),
    }
}

/// *keys*.
fn keys_are_the_same(world: &mut World) -> Result<(), Broken> {
    let lists = answers::of_all(world, &Command::ListKeys)?;
    let lists: Vec<_> = lists
        .into_iter()
        .map(|answer| if let Ok(Outcome::Keys(keys)) = answer { keys } else { Vec::new() })
        .collect();
    if let Some(node) = lists.iter().position(|list| *list != lists[0]) {
        let what = format!("node0 lists {:?}, node{node} {:?}", lists[0], lists[node]);
        return broken("keys", what);
    }
    for i in 0..world.holders.keys.len() {
        let key = &world.holders.keys[i];
        let print = key.print;
        let view = lists[0].iter().find(|view| view.key == print);
        if !key.minted.is_empty() && view.is_none() {
            return broken("keys", format!("key {i} was minted and is nowhere"));
        }
        let revoked = view.is_some_and(|view| view.revoked);
        if (revoked && !key.revoking) || (!revoked && !key.revoked.is_empty()) {
            return broken("keys", format!("key {i} is {view:?}"));
        }
        let valid = view.is_some() && !revoked;
        if valid {
            world.holders.valid.insert(print);
        }
        key_is_taken(world, print, valid)?;
    }
    Ok(())
}

fn key_is_taken(world: &mut World, key: KeyPrint, valid: bool) -> Result<(), Broken> {
    let check = answers::of_all(world, &Command::CheckKey { key, own: false })?;
    let holders = &world.holders;
    let mut agents = holders.holders.iter();
    let own = agents.position(|agent| holders.keys[agent.key].print == key && !agent.contested);
    let own = own.expect("every key has an agent of its own");
    let attached = answers::of_all_to_its_registration(world, own)?;
    for (node, (check, attached)) in check.into_iter().zip(attached).enumerate() {
        if check.is_ok() != valid || (!valid && !matches!(attached, Err(Refused::NoKey))) {
            let what = format!("node{node}: a key, valid: {valid}, gets {check:?}, {attached:?}");
            return broken("keys", what);
        }
    }
    if valid {
        return Ok(());
    }
    world.go_on(Duration::from_millis(500))?;
    let agents = answers::of_all(world, &Command::ListAgents { by: key.into(), room: None })?;
    for (node, agents) in agents.into_iter().enumerate() {
        if !matches!(&agents, Ok(Outcome::Agents(agents)) if agents.is_empty()) {
            return broken("keys", format!("node{node} still has {agents:?}"));
        }
    }
    Ok(())
}

/// *rooms*, and *sealed* as far as answers go.
fn rooms_are_listed(world: &mut World) -> Result<(), Broken> {
    let keys: Vec<KeyPrint> = (0..world.holders.keys.len())
        .filter(|key| is_valid(world, *key))
        .map(|key| world.holders.keys[key].print)
        .chain([*keys::KEY])
        .collect();
    let mut shared: Option<Vec<String>> = None;
    for key in keys {
        let lists = answers::of_all(world, &Command::ListRooms { by: key.into(), parent: None })?;
        let mut own: Option<Vec<String>> = None;
        for (node, list) in lists.into_iter().enumerate() {
            let Ok(Outcome::Rooms(list)) = list else {
                return broken("rooms", format!("node{node} lists nothing: {list:?}"));
            };
            rooms_are_right(world, node, key, &list)?;
            // They may be at a node that was shown another one of their keys, and shown to that one alone: see `shared`.
            let list: Vec<RoomView> =
                list.into_iter().filter(|view| view.shared.is_none()).collect();
            let named = |public: bool| {
                let rooms = list.iter().filter(|room| room.public == public);
                rooms.map(|room| format!("{} {}", room.room, room.name)).collect::<Vec<_>>()
            };
            let all = shared.get_or_insert_with(|| named(true));
            if *all != named(true) {
                let what = format!("node{node} lists {:?}, others {all:?}", named(true));
                return broken("rooms", what);
            }
            let private = named(false);
            if !follows(world, node, key) {
                if !private.is_empty() {
                    return broken("sealed", format!("node{node} lists {private:?}"));
                }
            } else if *own.get_or_insert_with(|| private.clone()) != private {
                let what = format!("node{node} lists {private:?}, others {own:?}");
                return broken("rooms", what);
            }
        }
    }
    Ok(())
}

/// No name twice, and nothing missing that was made.
fn rooms_are_right(
    world: &World,
    node: usize,
    key: KeyPrint,
    list: &[RoomView],
) -> Result<(), Broken> {
    let mut names = BTreeSet::new();
    if let Some(twice) = list.iter().find(|room| !names.insert(&room.name)) {
        let rooms: Vec<&RoomView> = list.iter().filter(|room| room.name == twice.name).collect();
        return broken("rooms", format!("node{node} has two of one name: {rooms:?}"));
    }
    let followed = follows(world, node, key);
    let made = world.holders.made.iter().filter(|made| !made.ephemeral);
    let made =
        made.filter(|made| made.public || (followed && world.holders.keys[made.key].print == key));
    let made = made.map(|made| (made.room, made.name.as_str()));
    let others = world.agents.made().iter().map(|room| (*room, "room"));
    let others = others.filter(|(room, _)| !world.cluster.rooms.is_ephemeral(*room));
    for (room, name) in made.chain(others) {
        let there = list.iter().find(|listed| listed.room == room);
        if there.is_none_or(|listed| !listed.name.starts_with(name)) {
            let what = format!("{name} was made, and node{node} has it as {there:?}");
            return broken("rooms", what);
        }
    }
    Ok(())
}

/// Each private room is answered for where its key is followed, to those who have it.
fn private_rooms_are_answered_for(world: &mut World) -> Result<(), Broken> {
    let prints: Vec<KeyPrint> = world.holders.keys.iter().map(|key| key.print).collect();
    let made = world.holders.made.clone();
    for room in made.iter().filter(|made| !made.ephemeral) {
        for key in 0..prints.len() {
            room_is_answered_for(world, room, key)?;
        }
    }
    Ok(())
}

/// All nodes that may answer a key for a room say the same of its members.
fn room_is_answered_for(world: &mut World, room: &Made, i: usize) -> Result<(), Broken> {
    let key = world.holders.keys[i].print;
    let answers = answers::of_all(world, &Command::RoomInfo { by: key.into(), room: room.room })?;
    let mut members: Option<Vec<(AgentId, u64)>> = None;
    for (node, answer) in answers.into_iter().enumerate() {
        let owns = i == room.key && is_valid(world, i) && follows(world, node, key);
        let sees = room.public || owns;
        match answer {
            Ok(Outcome::RoomInfo(info)) if sees => {
                let seen = once_each(node, &info.agents)?;
                if *members.get_or_insert_with(|| seen.clone()) != seen {
                    let what = format!("node{node}: {seen:?}, others {members:?}");
                    return broken("ids", what);
                }
            }
            Err(Refused::NoRoom | Refused::NotYours) if !sees => {}
            answer => {
                let what = format!("node{node} says of {room:?} to key {i}: {answer:?}");
                return broken(if sees { "rooms" } else { "sealed" }, what);
            }
        }
    }
    Ok(())
}
