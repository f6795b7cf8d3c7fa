//! The promises of elections in the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        agenda::LeaderView,
        command::{Command, RoomInfo},
    },
    name::id::{AgentId, RoomId},
};

use super::{Asked, DONE_WITHIN, Elections};
use crate::sim::{
    cluster::Cluster,
    end::{Told, ask_all, dissent},
    keys::KEY,
    parts::Seated,
    plan::Fault,
    promises::{Broken, broken},
    world::World,
};

/// How long it takes until all know that a leader's node is gone: the lease, a rank or two, digests.
const GONE_WITHIN: Duration = Duration::from_secs(6);

impl Told for Elections {
    fn of(world: &mut World) -> (&mut Elections, &mut Cluster) {
        (&mut world.elections, &mut world.cluster)
    }
}

/// *one leader* of every room that is still there.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    for room in permanent(world) {
        leader_of(world, room)?;
    }
    Ok(())
}

/// Rooms with elections that do not end.
fn permanent(world: &World) -> BTreeSet<RoomId> {
    let rooms = world.elections.rooms().into_iter();
    rooms.filter(|room| !world.cluster.rooms.is_ephemeral(*room)).collect()
}

fn views(world: &mut World, room: RoomId) -> Result<BTreeMap<usize, RoomInfo>, Broken> {
    ask_all::<Elections>(
        world,
        &Asked::Leader(room),
        &Command::RoomInfo { by: (*KEY).into(), room },
    )
}

fn same_leader<'a>(
    room: RoomId,
    views: impl Iterator<Item = (usize, &'a RoomInfo)>,
) -> Result<(), Broken> {
    match dissent(views, |view| view.leader.clone()) {
        None => Ok(()),
        Some((node, view, first)) => {
            let (says, not) = (&view.leader, &first.leader);
            broken("one leader", format!("of {room} node{node} says {says:?}, not {not:?}"))
        }
    }
}

/// *one leader* where a node has parted: all others name the same.
pub(crate) fn others_name_the_same(world: &mut World) -> Result<(), Broken> {
    for room in permanent(world) {
        let views = views(world, room)?;
        let others = views.iter().filter(|(node, _)| !world.cluster.is_exempt(**node));
        same_leader(room, others.map(|(node, view)| (*node, view)))?;
    }
    Ok(())
}

/// The leader that all nodes name that run.
fn leader_of(world: &mut World, room: RoomId) -> Result<Option<LeaderView>, Broken> {
    let up = world.cluster.nodes.iter().filter(|node| node.running.is_some()).count();
    let views = views(world, room)?;
    if views.len() < up {
        return broken("one leader", format!("only {} nodes know {room}", views.len()));
    }
    same_leader(room, views.iter().map(|(node, view)| (*node, view)))?;
    let leader = views.values().next().and_then(|view| view.leader.clone());
    for (node, view) in &views {
        let told = world.elections.leader_told(*node, room);
        if told != leader.as_ref().map(|leader| leader.agent.clone()) {
            let text = format!("node{node} told {told:?} in {room}, and the leader is {leader:?}");
            return broken("one leader", text);
        }
        let seated = |leader: &LeaderView| {
            let mut agents = view.agents.iter();
            agents.any(|agent| agent.agent == leader.agent && agent.node == leader.node)
        };
        if leader.as_ref().is_some_and(|leader| !seated(leader)) {
            return broken("one leader", format!("{leader:?} of {room} is not there"));
        }
    }
    world.elections.highest_term_stays(room, leader.as_ref())?;
    Ok(leader)
}

/// An election of everybody, under way.
#[derive(Debug)]
pub(crate) struct Electing {
    room: RoomId,
    all: Vec<Seated>,
    /// When it should be over.
    done: Duration,
}

/// *elections end*: an election that everybody can take part in.
pub(crate) fn everybody_elects(world: &mut World) -> Result<Electing, Broken> {
    let room = world.cluster.lobby();
    let all = world.agents.all_seated();
    let starter = world.cluster.dice.index(all.len());
    let World { elections, cluster, .. } = world;
    elections.declined.clear();
    elections.candidates = 0;
    elections.start(cluster, all[starter].clone(), room);
    world.go_on(Duration::from_millis(500))?;
    let World { elections, cluster, .. } = world;
    if elections.candidates < all.len() {
        let text = format!("only {} of all stand", elections.candidates);
        return broken("elections end", text);
    }
    for (i, by) in all.iter().enumerate() {
        if i != starter && cluster.dice.chance(40) {
            elections.decline(cluster, by.clone(), room);
        }
    }
    let done = cluster.now() + DONE_WITHIN;
    Ok(Electing { room, all, done })
}

/// The election is over: its leader decides and others cannot; and then the leader goes.
pub(crate) fn elected_leads(world: &mut World, election: &Electing) -> Result<(), Broken> {
    let until = world.cluster.now().max(election.done);
    world.run_until(until)?;
    let leader = leader_of(world, election.room)?;
    let declined = world.elections.declined.clone();
    let Some(leader) = leader else { return nobody_leads(world, &declined) };
    if declined.contains(&leader.agent) {
        return broken("elections end", format!("{} declined and leads", leader.agent));
    }
    let before = world.elections.decided;
    for by in &election.all {
        world.elections.decide(&mut world.cluster, by.clone(), election.room);
    }
    world.go_on(Duration::from_secs(2))?;
    let decided = world.elections.decided - before;
    if decided != 1 {
        return broken("leaders decide", format!("{decided} decided, not one"));
    }
    world.is_complete(election.room)?;
    leader_goes(world, election, &leader)
}

/// Without gossip a refusal may come too late: the agent is elected, and then cleared.
fn nobody_leads(world: &World, declined: &BTreeSet<AgentId>) -> Result<(), Broken> {
    if !world.cluster.plan.gossip && !declined.is_empty() {
        return Ok(());
    }
    let text = format!("nobody was elected, and of all only {declined:?} declined");
    broken("elections end", text)
}

fn leader_goes(world: &mut World, election: &Electing, leader: &LeaderView) -> Result<(), Broken> {
    let Some(i) = election.all.iter().position(|by| by.caller.agent == leader.agent) else {
        return broken("elections end", format!("{leader:?} is nobody"));
    };
    let home = election.all[i].node;
    let dies = world.cluster.dice.chance(50);
    if dies {
        world.fault(Fault::Crash(home))?;
    } else {
        world.agents.leave(&mut world.cluster, i, election.room);
    }
    world.go_on(if dies { GONE_WITHIN } else { Duration::from_secs(3) })?;
    if let Some(leader) = leader_of(world, election.room)? {
        return broken("elections end", format!("{leader:?} is gone and leads"));
    }
    if dies {
        world.fault(Fault::Start(home))?;
        world.go_on(Duration::from_secs(2))?;
        if let Some(leader) = leader_of(world, election.room)? {
            return broken("elections end", format!("{leader:?} was cleared and leads"));
        }
    }
    Ok(())
}
