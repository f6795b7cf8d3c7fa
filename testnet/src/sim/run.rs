//! A world of a seed, from its plan to its judgement.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::name::{
    id::{NodeId, RoomId},
    number::Number,
};

use super::{
    approvals, correspondents,
    coverage::{Coverage, Happening},
    elections, holders,
    kind::Kind,
    node::Node,
    onces,
    outcome::{Failure, Report},
    parts::Answers,
    plan::{self, Plan},
    promises::{Broken, Entry, broken},
    proven, roamers,
    sound::stores_are_sound,
    still::is_still,
    tasks, votes,
    world::World,
};

/// How long after the last fault everything must be complete (numbering.md).
const COMPLETE_WITHIN: Duration = Duration::from_secs(10);

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
        Kind::WithLoss => Plan::with_loss(seed),
        Kind::WithRestore => Plan::with_restore(seed),
        Kind::WithInboxes => Plan::with_inboxes(seed),
        Kind::Answering => Plan::answering(seed),
        Kind::Carried => Plan::carried(seed),
    };
    let broken_at = |at| move |broken| Failure { kind, seed, at, broken };
    let mut world = World::new(seed, plan, trace).map_err(broken_at(Duration::ZERO))?;
    let result = match kind {
        Kind::Honest => judge(&mut world),
        Kind::WithLiar => judge_among_honest(&mut world),
        Kind::WithParting => judge_among_remaining(&mut world),
        Kind::WithLoss => judge_among_honest(&mut world),
        Kind::WithRestore => judge_records(&mut world),
        Kind::WithInboxes => judge_inboxes(&mut world),
        Kind::Answering => judge_answering(&mut world),
        Kind::Carried => judge_carried(&mut world),
    };
    result.map_err(broken_at(world.cluster.now()))
}

fn judge(world: &mut World) -> Result<Report, Broken> {
    let end = calm_down(world)?;
    world.run_until(end + complete_within(world))?;
    let nodes: Vec<NodeId> = world.cluster.nodes.iter().map(|node| node.id).collect();
    let rooms = permanent_rooms(world);
    rooms.iter().try_for_each(|room| room_is_complete(world, *room))?;
    numbers_resolve_everywhere(world, &rooms)?;
    nobody_waits(world)?;
    views_converge(world)?;
    numbers_agree_again(world, &nodes)?;
    world.bodies().are_kept(&rooms)?;
    roamers::end::converge(world)?;
    votes::end::converge(world)?;
    elections::end::converge(world)?;
    tasks::end::converge(world)?;
    onces::end::converge(world)?;
    approvals::end::converge(world)?;
    proven::all_that_can_be_is_proven(world)?;
    let election = elections::end::everybody_elects(world)?;
    votes::end::everybody_votes(world)?;
    tasks::end::everybody_claims(world)?;
    onces::end::everybody_asks(world)?;
    approvals::end::everything_is_decided(world)?;
    nobody_waits(world)?;
    elections::end::elected_leads(world, &election)?;
    holders::alike::converge(world)?;
    holders::end::converge(world)?;
    secrets_converge(world)?;
    world.bodies().old_are_dropped(&rooms)?;
    is_still(world)?;
    nobody_waits(world)?;
    stores_are_sound(&world.cluster)?;
    Ok(report(world))
}

/// The promises to nodes that do not lie, in spite of one that does: nobody stands still, their entries
/// are delivered at all of them, and numbers are right.
fn judge_among_honest(world: &mut World) -> Result<Report, Broken> {
    let end = calm_down(world)?;
    // Things that it began may hold others up as long as those of a node that is silent; and its votes are closed by others.
    let held_up = mesh::limits::HOLE_AFTER_SILENCE + mesh::limits::PENDING_FOR;
    let parting = world.cluster.plan.parting.is_some();
    let held_up = if parting { held_up.max(plan::LASTING) } else { held_up };
    world.run_until(end + held_up + COMPLETE_WITHIN)?;
    let judged = world.cluster.nodes.iter().map(|node| node.id);
    let judged: Vec<NodeId> = judged.filter(|node| !world.cluster.exempt.contains(node)).collect();
    for room in permanent_rooms(world) {
        if world.cluster.rooms.void.contains(&room) || !is_with_all_who_stay(world, room) {
            continue;
        }
        let with = world.cluster.nodes_with(room).into_iter();
        let nodes: Vec<NodeId> = with.filter(|node| judged.contains(node)).collect();
        world.promises.complete(&nodes, room, may_lack(world, room))?;
    }
    world.copies_outlive_disks(&judged)?;
    nobody_waits(world)?;
    holders::alike::converge(world)?;
    secrets_converge(world)?;
    if parting {
        // Some may have heard of eras that the parted node had opened beyond what counts: the next ones replace these.
        everybody_speaks_once(world)?;
    }
    numbers_agree_again(world, &judged)?;
    proven::nothing_forged_shows(world)?;
    is_still(world)?;
    Ok(report(world))
}

/// The same where a node has parted, and that all others come to the same in the end.
fn judge_among_remaining(world: &mut World) -> Result<Report, Broken> {
    judge_among_honest(world)?;
    votes::end::others_say_the_same(world, None)?;
    elections::end::others_name_the_same(world)?;
    onces::end::others_name_the_same(world)?;
    approvals::end::others_name_the_same(world)?;
    Ok(report(world))
}

/// The promises about records alone: a node that goes on from an earlier copy of its disk forks its logs, so that nobody
/// follows these, but it keeps records as others do.
fn judge_records(world: &mut World) -> Result<Report, Broken> {
    let end = calm_down(world)?;
    let held_up = mesh::limits::HOLE_AFTER_SILENCE + mesh::limits::PENDING_FOR;
    world.run_until(end + held_up + COMPLETE_WITHIN)?;
    holders::alike::converge(world)?;
    Ok(report(world))
}

/// The promises about messages, and about inboxes.
fn judge_inboxes(world: &mut World) -> Result<Report, Broken> {
    let end = calm_down(world)?;
    world.run_until(end + complete_within(world))?;
    messages_are_everywhere(world)?;
    correspondents::end::inboxes_are_right(world)?;
    correspondents::end::requests_have_ended(world)?;
    is_still(world)?;
    stores_are_sound(&world.cluster)?;
    Ok(report(world))
}

/// The same, and that agents that answer everything come to rest.
fn judge_answering(world: &mut World) -> Result<Report, Broken> {
    let end = calm_down(world)?;
    world.run_until(end + complete_within(world))?;
    correspondents::end::all_is_said(world)?;
    messages_are_everywhere(world)?;
    correspondents::end::inboxes_are_right(world)?;
    Ok(report(world))
}

/// *carried*, each time that one of the two nodes goes; and then all other promises, once they have met.
fn judge_carried(world: &mut World) -> Result<Report, Broken> {
    let Some(laptops) = world.cluster.plan.laptops.clone() else { return judge(world) };
    let mut gone: BTreeMap<usize, Duration> = BTreeMap::new();
    for phase in laptops.phases {
        world.run_until(phase.end)?;
        let away = gone.iter().find(|(node, _)| **node != phase.node).map(|(_, end)| *end);
        // Nothing is owed to a node before it has shown a key: the first time it comes for nothing, if it was never there.
        let is_known = laptops.together.is_some() || gone.contains_key(&phase.node);
        if let Some(away) = away.filter(|_| is_known) {
            let World { cluster, promises, .. } = &*world;
            world.laptops.has_all(cluster, promises, (&phase, away))?;
        }
        gone.insert(phase.node, phase.end);
    }
    judge(world)
}

fn messages_are_everywhere(world: &World) -> Result<(), Broken> {
    let rooms = permanent_rooms(world);
    rooms.iter().try_for_each(|room| room_is_complete(world, *room))?;
    nobody_waits(world)
}

/// Everything is everywhere so long after the last fault.
fn complete_within(world: &World) -> Duration {
    // A dropped body is only taken for gone when nobody has it for so long.
    let retention = world.cluster.plan.retention;
    let gone =
        if retention { mesh::limits::HOLE_AFTER + Duration::from_secs(2) } else { Duration::ZERO };
    COMPLETE_WITHIN + gone
}

/// All faults happen, and then no more. When the last one is over.
fn calm_down(world: &mut World) -> Result<Duration, Broken> {
    let end = world.cluster.plan.faults_end;
    world.run_until(end)?;
    world.cluster.quiet = true;
    world.calm_down()?;
    Ok(end)
}

fn permanent_rooms(world: &World) -> Vec<RoomId> {
    let rooms = world.promises.rooms().into_iter();
    rooms.filter(|room| !world.cluster.rooms.is_ephemeral(*room)).collect()
}

/// Lies, and entries whose bodies are gone, a node may lack.
fn may_lack(world: &World, room: RoomId) -> impl Fn(NodeId, Entry) -> bool {
    let bodies = world.bodies();
    move |node, entry| world.cluster.is_a_lie(entry) || bodies.is_gone(node, room, entry)
}

/// *complete*, and in calm weather *agreement* and *calm*.
fn room_is_complete(world: &World, room: RoomId) -> Result<(), Broken> {
    let nodes = world.cluster.nodes_with(room);
    let bodies = world.bodies();
    let is_gone = |node, entry| bodies.is_gone(node, room, entry);
    world.promises.complete(&nodes, room, is_gone)?;
    // The home era of a sealed directory, and of a direct room, is nobody's: two nodes that write there first, at the same
    // time, each open an era, and go on as after a heal.
    if world.cluster.plan.calm && !world.cluster.rooms.is_nobodys(room) {
        world.promises.agree(&nodes, room, |_| true)?;
        world.promises.calm(&nodes, room)?;
    }
    Ok(())
}

/// Whether the nodes that may have a room do, unless one lies. Of a private one that a parted node had made each
/// keeps what it has, and some may have heard of it alone.
fn is_with_all_who_stay(world: &World, room: RoomId) -> bool {
    let cluster = &world.cluster;
    let lacks = |node: &Node| {
        let rooms = node.running.as_ref().and_then(|running| running.reader.rooms().ok());
        rooms.is_some_and(|rooms| rooms.iter().all(|(known, _)| *known != room))
    };
    let mut judged = cluster.nodes.iter().filter(|node| !cluster.exempt.contains(&node.id));
    cluster.plan.parting.is_none()
        || !cluster.rooms.is_sealed(room)
        || !judged.any(|node| cluster.rooms.is_for(room, node.id) && lacks(node))
}

/// After the heal new messages have one number everywhere again.
fn numbers_agree_again(world: &mut World, nodes: &[NodeId]) -> Result<(), Broken> {
    let lobby = world.cluster.lobby();
    if nodes.len() < world.cluster.nodes.len() {
        // The sequencer may be gone for ever. Who speaks then finds that out, and two nodes may each open an era.
        everybody_speaks_once(world)?;
    }
    let before = world.promises.seen(nodes[0], lobby);
    // Where its body is gone an old message need not be delivered.
    let old: BTreeSet<Entry> =
        nodes.iter().flat_map(|node| world.promises.seen(*node, lobby)).collect();
    everybody_speaks_once(world)?;
    world.promises.complete(nodes, lobby, may_lack(world, lobby))?;
    if world.promises.seen(nodes[0], lobby).len() < before.len() + nodes.len() {
        return broken("complete", "nobody could speak after the heal".to_owned());
    }
    let is_new = |entry: &Entry| !old.contains(entry) && !world.cluster.is_a_lie(*entry);
    world.promises.agree(nodes, lobby, is_new)
}

fn everybody_speaks_once(world: &mut World) -> Result<(), Broken> {
    world.agents.everybody_joins(&mut world.cluster);
    world.go_on(Duration::from_millis(500))?;
    world.agents.everybody_speaks(&mut world.cluster);
    world.go_on(Duration::from_secs(3))
}

fn views_converge(world: &mut World) -> Result<(), Broken> {
    world.agents.ask_for_views(&mut world.cluster);
    world.go_on(Duration::from_millis(300))?;
    world.agents.views_are_the_same(world.cluster.nodes.len())
}

/// *names*: every number that anybody knows resolves to its message at every node.
fn numbers_resolve_everywhere(world: &mut World, rooms: &[RoomId]) -> Result<(), Broken> {
    let names = |room: &RoomId| (*room, world.promises.all_names(*room).collect());
    let names: BTreeMap<RoomId, Vec<(Number, Entry)>> = rooms.iter().map(names).collect();
    // Numbers that were given just now are on their way; without gossip until the next comparison.
    world.go_on(Duration::from_secs(3))?;
    for (room, names) in names {
        for (number, entry) in names {
            number_resolves(world, room, number, entry)?;
        }
    }
    Ok(())
}

fn number_resolves(
    world: &World,
    room: RoomId,
    number: Number,
    entry: Entry,
) -> Result<(), Broken> {
    for (i, node) in world.cluster.nodes.iter().enumerate() {
        let Some(running) = &node.running else { continue };
        if !world.cluster.rooms.is_for(room, node.id) {
            continue;
        }
        let row = running.reader.by_number(room, number).ok().flatten();
        if row.as_ref().map(|row| (row.log, row.at.seq)) != Some(entry) {
            let what = format!("{number:?} of {room}, {entry:?}, is {row:?} at node{i}");
            return broken("names", what);
        }
    }
    Ok(())
}

/// *secret*: all nodes have the same one for their connections. Later, where some were given too many at once.
fn secrets_converge(world: &mut World) -> Result<(), Broken> {
    if !have_one_secret(world) {
        world.go_on(mesh::limits::SECRETS_TAKEN_WITHIN + mesh::limits::ABOUT_EVERY)?;
    }
    if !have_one_secret(world) {
        let secrets: Vec<_> = world.cluster.nodes.iter().map(Node::secret).collect();
        return broken("secret", format!("nodes have {secrets:?}"));
    }
    Ok(())
}

/// A node that is expelled does not get another one.
fn have_one_secret(world: &World) -> bool {
    let nodes = world.cluster.nodes.iter().enumerate();
    let Plan { parting, lost, .. } = world.cluster.plan;
    let stay = nodes.filter(|(i, _)| parting != Some(*i) && lost != Some(*i));
    stay.map(|(_, node)| node.secret()).collect::<BTreeSet<_>>().len() <= 1
}

fn nobody_waits(world: &World) -> Result<(), Broken> {
    let now = world.cluster.now();
    let open: Vec<String> = world.parts().into_iter().flat_map(|part| part.open(now)).collect();
    if open.is_empty() {
        return Ok(());
    }
    broken("replies", format!("{} calls were never answered: {}", open.len(), open.join("; ")))
}

fn covered(world: &World) -> Coverage {
    let mut coverage = world.cluster.coverage;
    if !world.cluster.plan.gossip {
        coverage.count(Happening::WithoutGossip);
    }
    if let Some(liar) = &world.liar {
        coverage.add(&liar.coverage);
    }
    coverage
}

fn report(world: &World) -> Report {
    let (entries, eras, holes) = world.promises.counts();
    let sum = |sum: Answers, more: Answers| Answers {
        all: sum.all + more.all,
        refused: sum.refused + more.refused,
    };
    let answers = world.parts().into_iter().map(|part| part.answers());
    let answers = answers.fold(Answers::default(), sum);
    let roamed = world.roamers.counts();
    Report {
        entries,
        eras,
        holes,
        answered: answers.all,
        refused: answers.refused,
        moves: roamed.moves,
        taken: roamed.taken,
        repeats: roamed.repeats,
        votes: world.votes.made(),
        ballots: world.votes.cast,
        elections: world.elections.made(),
        leaders: world.elections.elected,
        decisions: world.elections.decided,
        tasks: world.tasks.made(),
        claims: world.tasks.claimed,
        granted: world.tasks.granted,
        contested: world.tasks.contested,
        lies: world.liar.as_ref().map_or((0, 0), |liar| (liar.taken, liar.refused)),
        coverage: covered(world),
    }
}
