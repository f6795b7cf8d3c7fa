//! Made-up histories: whatever is written, by whomever, is the same in every order.

use proptest::prelude::*;

use super::*;
use crate::wire::entry::Body;

/// One thing that happens in a made-up history. Numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Start { by: usize, with: usize },
    Commit { by: usize, election: usize },
    Decline { by: usize, election: usize },
    Close { by: usize, election: usize },
    Show { by: usize, closed: usize },
    Drop { by: usize, closed: usize, node: usize },
    Clear { by: usize, election: usize },
    Meet(usize, usize),
}

const NODES: usize = 3;
/// The last node writes in two.
const LOGS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let node = 0..LOGS;
    let some = || 0..8_usize;
    prop_oneof![
        2 => (node.clone(), 1..8_usize).prop_map(|(by, with)| Step::Start { by, with }),
        6 => (node.clone(), some()).prop_map(|(by, election)| Step::Commit { by, election }),
        1 => (node.clone(), some()).prop_map(|(by, election)| Step::Decline { by, election }),
        4 => (node.clone(), some()).prop_map(|(by, election)| Step::Close { by, election }),
        8 => (node.clone(), some()).prop_map(|(by, closed)| Step::Show { by, closed }),
        2 => (node.clone(), some(), 0..NODES)
            .prop_map(|(by, closed, node)| Step::Drop { by, closed, node }),
        1 => (node.clone(), some()).prop_map(|(by, election)| Step::Clear { by, election }),
        6 => (node.clone(), node).prop_map(|(a, b)| Step::Meet(a, b)),
    ]
}

fn nth(places: impl Iterator<Item = EntryRef>, n: usize) -> Option<EntryRef> {
    let all: Vec<EntryRef> = places.collect();
    all.get(n % all.len().max(1)).copied()
}

fn play(steps: &[Step]) -> Vec<Replica> {
    let mut nodes: Vec<Replica> = (1..=3).map(Replica::new).collect();
    nodes.push(Replica::with_log(3, 7));
    let candidates: Vec<Candidate> =
        nodes.iter().zip(["a", "b", "c"]).map(|(node, agent)| candidate(agent, node)).collect();
    for step in steps {
        let act = match *step {
            Step::Start { by, with } => {
                let chosen: Vec<Candidate> = (0..NODES)
                    .filter(|i| with & (1 << i) != 0)
                    .map(|i| candidates[i].clone())
                    .collect();
                nodes[by].start(&chosen);
                continue;
            }
            Step::Commit { by, election } => nth(nodes[by].elections.all.keys().copied(), election)
                .map(|it| (by, nodes[by].commitment(it))),
            Step::Decline { by, election } => {
                nth(nodes[by].elections.all.keys().copied(), election).map(|election| {
                    let agent = candidates[by.min(NODES - 1)].agent.clone();
                    (by, ElectionAct::Declined { election, agent })
                })
            }
            Step::Close { by, election } => nth(nodes[by].elections.all.keys().copied(), election)
                .map(|election| {
                    let (commitments, declined) = nodes[by].elections.all[&election].close();
                    (by, ElectionAct::Closed { election, commitments, declined })
                }),
            Step::Show { by, closed } => nth(nodes[by].elections.closed.keys().copied(), closed)
                .map(|closed| (by, nodes[by].shown(closed))),
            Step::Drop { by, closed, node } => {
                nth(nodes[by].elections.closed.keys().copied(), closed).map(|closed| {
                    (by, ElectionAct::Dropped { closed, nodes: vec![candidates[node].node] })
                })
            }
            Step::Clear { by, election } => nth(nodes[by].elections.all.keys().copied(), election)
                .map(|election| (by, ElectionAct::Cleared { election })),
            Step::Meet(a, b) => {
                if a != b {
                    let [a, b] = nodes.get_disjoint_mut([a, b]).expect("two of them");
                    a.hear(b);
                    b.hear(a);
                }
                None
            }
        };
        if let Some((by, act)) = act {
            let act = nodes[by].next(act);
            // Some of these are void: so be it everywhere.
            let _ = nodes[by].take(&act);
        }
    }
    nodes
}

/// Everything that is decided of elections.
fn decided(of: &Elections, nodes: &[NodeId]) -> Vec<String> {
    let mut out = vec![format!("{:?}", of.to_tell(LATER))];
    for (place, election) in &of.all {
        let outcome = format!("{place:?} {:?}", election.outcome(LATER));
        out.push(outcome);
        for it in election.candidates() {
            let by = nodes.iter().filter(|node| election.may_have_elected(&it.agent, **node));
            out.push(format!("{} {:?}", it.agent, by.collect::<Vec<_>>()));
        }
    }
    out
}

/// The acts in another order in which they might have been read.
fn read_in_another_order(acts: &[Act], mut draw: u64) -> Replica {
    let mut reader = Replica::new(9);
    let mut left: Vec<Act> = acts.to_vec();
    while !left.is_empty() {
        let waits = |act: &Act| {
            let names = Body::Election(act.2.clone()).names();
            left.iter().any(|other| {
                names.contains(&other.0) || (other.0.log == act.0.log && other.0.seq < act.0.seq)
            })
        };
        let ready: Vec<usize> = (0..left.len()).filter(|i| !waits(&left[*i])).collect();
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let act = left.remove(ready[usize::try_from(draw >> 33).expect("fits") % ready.len()]);
        let _ = reader.take(&act);
    }
    reader
}

/// What is decided of elections that all know of, by those who take nothing more of one node.
fn decided_without(of: &Elections) -> (String, Vec<String>) {
    let open = of.all.values().filter(|it| !it.is_void());
    let outcomes = open.map(|it| format!("{:?} {:?}", it.place(), it.outcome(LATER)));
    (format!("{:?}", of.to_tell(LATER)), outcomes.collect())
}

proptest! {
    #[test]
    fn a_node_that_forked_is_out_alike_however_much_of_its_logs_was_here(
        steps in prop::collection::vec(step(), 1..80),
        forked in 0..NODES,
        fork in 1u64..10,
        held in prop::array::uniform2(0u64..10),
    ) {
        let mut nodes = play(&steps);
        meet(&mut nodes);
        let out = nodes[forked].node();
        let mut all = read_in_another_order(&nodes[0].have, 1);
        all.elections.forget_log(nodes[forked].log, fork);
        all.elections.expel(out);
        // Another node heard of the fork when it had less of its logs, and took nothing more of them.
        let here = |it: &&Act| {
            let log = it.0.log;
            log.author != out || it.0.seq < held[usize::from(log.incarnation > 0)]
        };
        let here: Vec<Act> = nodes[0].have.iter().filter(here).cloned().collect();
        let mut less = read_in_another_order(&here, 2);
        less.elections.expel(out);
        prop_assert_eq!(decided_without(&all.elections), decided_without(&less.elections));
        // Nor does it matter whether that was known before.
        let mut later = Replica::new(9);
        later.elections.expel(out);
        for act in &here {
            let _ = later.take(act);
        }
        prop_assert_eq!(decided_without(&later.elections), decided_without(&less.elections));
    }

    #[test]
    fn all_that_read_the_same_acts_know_the_same_leader(
        steps in prop::collection::vec(step(), 1..80),
        draws in prop::collection::vec(any::<u64>(), 3),
    ) {
        let mut nodes = play(&steps);
        meet(&mut nodes);
        let ids: Vec<NodeId> = nodes.iter().map(Replica::node).collect();
        let first = decided(&nodes[0].elections, &ids);
        for node in &nodes {
            prop_assert_eq!(&decided(&node.elections, &ids), &first);
        }
        for draw in draws {
            let reader = read_in_another_order(&nodes[0].have, draw);
            prop_assert_eq!(&decided(&reader.elections, &ids), &first);
        }
    }

    /// What some node has judged a leader's decision, all do in the end.
    #[test]
    fn who_may_have_been_elected_stays_so(steps in prop::collection::vec(step(), 1..80)) {
        let mut nodes = play(&steps);
        let ids: Vec<NodeId> = nodes.iter().map(Replica::node).collect();
        let mut elected = Vec::new();
        for node in &nodes {
            for (place, election) in &node.elections.all {
                for it in election.candidates() {
                    if ids.iter().any(|id| election.may_have_elected(&it.agent, *id)) {
                        elected.push((*place, it.clone()));
                    }
                }
            }
        }
        meet(&mut nodes);
        for (place, it) in elected {
            let known = nodes[0].elections.get(place).expect("they met");
            prop_assert!(known.may_have_elected(&it.agent, it.node));
        }
    }
}
