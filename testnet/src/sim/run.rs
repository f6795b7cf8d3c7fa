//! A world of a seed, from its plan to its judgement.

use std::{collections::BTreeSet, time::Duration};

use mesh::name::id::{NodeId, RoomId};

use super::{
    coverage::{Coverage, Happening},
    kind::Kind,
    node,
    outcome::{Failure, Report},
    plan::{self, Plan},
    promises::{self, Broken},
    world::{self, World},
};

/// Plays the world of a seed to its end.
///
/// # Errors
///
/// The promise it broke, with the command that replays it.
pub fn run(kind: Kind, seed: u64, trace: bool) -> Result<Report, Failure> {
    let plan = match kind {
        Kind::Honest => Plan::of(seed),
        Kind::WithLiar => Plan::with_liar(seed),
        Kind::WithParting => Plan::with_parting(seed),
    };
    let broken_at = |at| move |broken| Failure { kind, seed, at, broken };
    let mut world = World::new(seed, plan, trace).map_err(broken_at(Duration::ZERO))?;
    let result = match kind {
        Kind::Honest => judge(&mut world),
        Kind::WithLiar => judge_among_honest(&mut world),
        Kind::WithParting => judge_among_those_who_stay(&mut world),
    };
    result.map_err(broken_at(world.now))
}

fn judge(world: &mut World) -> Result<Report, Broken> {
    let end = world.plan.faults_end;
    world.run_until(end)?;
    world.quiet = true;
    world.calm_down()?;
    let mut complete_at = end + world::COMPLETE_WITHIN;
    if world.plan.retention {
        // What was dropped is only taken for gone when nobody has it for so long.
        complete_at += mesh::limits::HOLE_AFTER + Duration::from_secs(2);
    }
    world.run_until(complete_at)?;
    let nodes: Vec<NodeId> = world.nodes.iter().map(|node| node.id).collect();
    let rooms: Vec<RoomId> = world
        .promises
        .rooms()
        .into_iter()
        .filter(|room| !world.promises.ephemeral.contains(room))
        .collect();
    for room in &rooms {
        let nodes = world.nodes_with(*room);
        let is_gone = |node, entry| world.is_gone(node, *room, entry);
        world.promises.complete(&nodes, *room, is_gone)?;
        // The home era of a sealed directory is nobody's: two nodes that write there first, at the same
        // time, each open an era, and go on as after a heal.
        if world.plan.calm && !world.holders.directories.contains(room) {
            world.promises.agree(&nodes, *room, |_| true)?;
            world.promises.calm(&nodes, *room)?;
        }
    }
    world.numbers_resolve_everywhere(&rooms)?;
    world.nobody_waits()?;
    world.views_converge()?;
    numbers_agree_again(world, &nodes)?;
    world.bodies_are_kept(&rooms)?;
    roam_to_the_end(world)?;
    world.votes_converge()?;
    world.leaders_converge()?;
    world.tasks_converge()?;
    let electing = world.everybody_elects()?;
    world.everybody_votes()?;
    world.everybody_claims()?;
    world.nobody_waits()?;
    world.elected_leads(&electing)?;
    world.keyed_converge()?;
    world.secrets_converge()?;
    world.old_bodies_are_dropped(&rooms)?;
    world.it_is_still()?;
    world.nobody_waits()?;
    world.stores_are_sound()?;
    Ok(world.report())
}

/// What is promised to those who do not lie, whatever one of them says: nobody stands still, what they
/// write is delivered at all of them, and numbers are right.
fn judge_among_honest(world: &mut World) -> Result<Report, Broken> {
    let end = world.plan.faults_end;
    world.run_until(end)?;
    world.quiet = true;
    world.calm_down()?;
    // What it began may hold others up as long as what a node that is silent began; and its votes are closed by others.
    let held_up = mesh::limits::HOLE_AFTER_SILENCE + mesh::limits::PENDING_FOR;
    let held_up = if world.plan.parting.is_some() { held_up.max(plan::LASTING) } else { held_up };
    let complete_at = end + held_up + world::COMPLETE_WITHIN;
    world.run_until(complete_at)?;
    let honest: Vec<NodeId> = (0..world.nodes.len())
        .filter(|it| !world.is_exempt(*it))
        .map(|it| world.nodes[it].id)
        .collect();
    for room in world.promises.rooms() {
        let void = world.void.contains(&room) || !world.is_with_all_who_stay(room);
        if world.promises.ephemeral.contains(&room) || void {
            continue;
        }
        let with = world.nodes_with(room);
        let nodes: Vec<NodeId> = with.into_iter().filter(|it| honest.contains(it)).collect();
        let may_lack = |node, entry: promises::Entry| {
            world.is_a_lie(entry) || world.is_gone(node, room, entry)
        };
        world.promises.complete(&nodes, room, may_lack)?;
    }
    world.nobody_waits()?;
    world.secrets_converge()?;
    if world.plan.parting.is_some() {
        // Some may have heard of eras that whoever parted had opened beyond what counts: the next ones replace these.
        everybody_speaks_once(world)?;
    }
    numbers_agree_again(world, &honest)?;
    world.it_is_still()?;
    Ok(world.report())
}

/// The same where somebody has parted, and that all others come to the same in the end.
fn judge_among_those_who_stay(world: &mut World) -> Result<Report, Broken> {
    judge_among_honest(world)?;
    world.others_say_the_same_of_votes(None)?;
    world.others_name_the_same_leaders()?;
    Ok(world.report())
}

/// After the heal new messages have one number everywhere again.
fn numbers_agree_again(world: &mut World, nodes: &[NodeId]) -> Result<(), Broken> {
    let lobby = RoomId::lobby(world.secret.mesh_id());
    let before = world.promises.seen(nodes[0], lobby);
    // Where its body is gone an old message need not be delivered.
    let old: BTreeSet<promises::Entry> =
        nodes.iter().flat_map(|node| world.promises.seen(*node, lobby)).collect();
    everybody_speaks_once(world)?;
    let is_gone = |node, entry| world.is_gone(node, lobby, entry);
    let may_lack = |node, entry| is_gone(node, entry) || world.is_a_lie(entry);
    world.promises.complete(nodes, lobby, may_lack)?;
    if world.promises.seen(nodes[0], lobby).len() < before.len() + nodes.len() {
        return promises::broken("complete", "nobody could speak after the heal".to_owned());
    }
    world.promises.agree(nodes, lobby, |entry| !old.contains(entry) && !world.is_a_lie(*entry))
}

fn everybody_speaks_once(world: &mut World) -> Result<(), Broken> {
    world.everybody_joins();
    let until = world.now + Duration::from_millis(500);
    world.run_until(until)?;
    world.everybody_speaks();
    let until = world.now + Duration::from_secs(3);
    world.run_until(until)
}

fn roam_to_the_end(world: &mut World) -> Result<(), Broken> {
    // Claims for roaming clients of one room are 10 s apart, and there are two of them.
    for _ in 0..200 {
        for i in 0..world.roamers.len() {
            world.roam_read(i)?;
        }
        let until = world.now + Duration::from_millis(200);
        world.run_until(until)?;
    }
    world.roamers_saw_everything()
}

impl World {
    /// *names*: every number that anybody knows resolves to its message at every node.
    fn numbers_resolve_everywhere(&mut self, rooms: &[RoomId]) -> Result<(), Broken> {
        let names: Vec<_> =
            rooms.iter().map(|room| (room, self.promises.all_names(*room).collect())).collect();
        // What was given just now is on its way; without gossip until the next comparison.
        let until = self.now + Duration::from_secs(3);
        self.run_until(until)?;
        for (room, names) in names {
            let names: Vec<(mesh::name::number::Number, promises::Entry)> = names;
            let with = self.nodes_with(*room);
            for (number, entry) in names {
                for (i, node) in self.nodes.iter().enumerate() {
                    if !with.contains(&node.id) {
                        continue;
                    }
                    let Some(running) = &node.running else { continue };
                    let row = running.reader.by_number(*room, number).ok().flatten();
                    if row.as_ref().map(|it| (it.log, it.at.seq)) != Some(entry) {
                        let what =
                            format!("{number:?} of {room}, {entry:?}, is {row:?} at node{i}");
                        return promises::broken("names", what);
                    }
                }
            }
        }
        Ok(())
    }

    /// *secret*: all nodes have the same one for their connections. Later, where some were given too many at once.
    fn secrets_converge(&mut self) -> Result<(), Broken> {
        if !self.have_one_secret() {
            self.run_until(
                self.now + mesh::limits::SECRETS_TAKEN_WITHIN + mesh::limits::ABOUT_EVERY,
            )?;
        }
        if !self.have_one_secret() {
            let has: Vec<_> = self.nodes.iter().map(|it| it.secret()).collect();
            return promises::broken("secret", format!("nodes have {has:?}"));
        }
        Ok(())
    }

    fn have_one_secret(&self) -> bool {
        // Who is expelled does not get another one.
        let stays =
            |it: &&node::Node| self.plan.parting.is_none_or(|out| it.id != self.nodes[out].id);
        let has: BTreeSet<_> = self.nodes.iter().filter(stays).map(|it| it.secret()).collect();
        has.len() <= 1
    }

    fn nobody_waits(&self) -> Result<(), Broken> {
        let open = self.agents.open() + self.votes.open() + self.holders.open();
        match open + self.elections.open(self.now) + self.tasks.open() {
            0 => Ok(()),
            open => promises::broken("replies", format!("{open} calls were never answered")),
        }
    }

    fn covered(&self) -> Coverage {
        let mut coverage = self.coverage;
        if !self.plan.gossip {
            coverage.count(Happening::WithoutGossip);
        }
        if let Some(liar) = &self.liar {
            coverage.add(&liar.coverage);
        }
        coverage
    }

    fn report(&self) -> Report {
        let (entries, eras, holes) = self.promises.counts();
        Report {
            entries,
            eras,
            holes,
            answered: self.agents.answered,
            refused: self.agents.refused,
            moves: self.roamers.iter().map(|it| it.moves).sum(),
            taken: self.roamers.iter().map(|it| it.taken).sum(),
            repeats: self.roamers.iter().map(|it| it.repeats).sum(),
            votes: self.votes.made(),
            ballots: self.votes.cast,
            elections: self.elections.made(),
            leaders: self.elections.elected,
            decisions: self.elections.decided,
            tasks: self.tasks.made(),
            claims: self.tasks.claimed,
            granted: self.tasks.granted,
            contested: self.tasks.contested,
            lies: self.liar.as_ref().map_or((0, 0), |it| (it.taken, it.refused)),
            coverage: self.covered(),
        }
    }
}
