//! A node that is expelled while the others do not have the same of it, and goes on.

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::{
        command::{Command, Outcome},
        status::MemberStatus,
    },
    name::id::NodeId,
    wire::entry::Parting,
};

use super::probing::{ask, others_go_on, run};
use crate::sim::{plan::Plan, votes, world::World};

/// The node that is expelled, and the one that expels it.
const OUT: usize = 1;
const BY: usize = 2;

fn plan() -> Plan {
    let (faults_end, act_every) = (Duration::from_secs(30), Duration::from_millis(20));
    Plan { faults_end, act_every, ..Plan::quiet(4) }
}

fn member(world: &mut World, at: usize, of: NodeId) -> MemberStatus {
    let Outcome::Members(members) = ask(world, at, Command::Members) else { panic!("it lists") };
    members.into_iter().find(|member| member.node == of).expect("it was admitted")
}

/// One group hears the node that is to go, the other expels it; or nobody is apart.
fn world_with_a_parting(seed: u64) -> World {
    let mut world = World::new(seed, plan(), false).expect("it starts");
    let out = world.cluster.nodes[OUT].id;
    world.cluster.exempt.insert(out);
    run(&mut world, 4).expect("calm");
    if seed % 4 != 3 {
        // With the founder, the sequencer, on this side, or on that.
        let with_founder = usize::from(seed.is_multiple_of(2));
        world.cluster.network.split(&[with_founder, 1, 0, if seed % 4 == 2 { 1 } else { 0 }]);
        world.cluster.notice_all();
        run(&mut world, 3).expect("each side goes on");
    }
    let command = Command::Part { node: out, why: Parting::Expelled, force: false };
    assert!(matches!(ask(&mut world, BY, command), Outcome::Done));
    run(&mut world, 4).expect("names and rising are about other nodes");
    world.calm_down().expect("all run");
    run(&mut world, 10).expect("others keep every promise");
    world
}

#[test]
fn an_expelled_node_counts_alike_at_all_others_and_stops_nobody() {
    for seed in (0..4).chain([40]) {
        let mut world = world_with_a_parting(seed);
        let out = world.cluster.nodes[OUT].id;
        for node in (0..4).filter(|node| *node != OUT) {
            let parted = member(&mut world, node, out).parted;
            let why = parted.map(|parted| (parted.why, parted.by));
            assert_eq!(
                why,
                Some((Parting::Expelled, world.cluster.nodes[BY].id)),
                "{seed} node{node}"
            );
        }
        let told = member(&mut world, OUT, out).parted;
        assert!(told.is_some(), "seed {seed}: nobody has told it");
        let others = others_go_on(&mut world, out, 3);
        // Entries of others are everywhere, and so are those that count of the node that is out: an entry that only
        // some have was delivered before it was known how far that node counts.
        for other in &others.nodes {
            let seen: BTreeSet<_> = world.promises.seen(*other, others.lobby).into_iter().collect();
            let lacks =
                others.seen.iter().find(|entry| entry.0.author != out && !seen.contains(entry));
            assert_eq!(lacks, None, "seed {seed}: {}", other.short());
        }
        let digests = world.cluster.nodes.iter().enumerate().filter(|(node, _)| *node != OUT);
        let digests: BTreeSet<Option<mesh::name::digest::Digest>> = digests
            .map(|(_, node)| node.running.as_ref()?.pulse.map(|pulse| pulse.digest))
            .collect();
        assert_eq!(digests.len(), 1, "seed {seed}: they hold the same of what counts");
        votes::end::others_say_the_same(&mut world, None)
            .unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
    }
}
