//! Jobs of one key at two nodes that are apart for a while.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    goclaw::{Recorder, come, keyed, mint},
    harness::{temp, until},
    story::company::{link, meets},
};

/// Slots after a split of which each is fired once before it counts as settled.
const SETTLED: usize = 5;

/// A run, as one node lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    slot: u64,
    at: String,
    node: String,
    duplicate: bool,
}

/// The runs of a job that are over and were said, as a client's node lists them.
fn runs(client: &mut Recorder, job: &Value) -> BTreeSet<Run> {
    let listed = client.gets_in_time("cron.runs", &json!({"jobId": job, "limit": 200}));
    let run = |row: &Value| Run {
        slot: row["slot"].as_str().unwrap().parse().unwrap(),
        at: row["ts"].as_str().unwrap().to_owned(),
        node: row["node"].as_str().unwrap().to_owned(),
        duplicate: row["duplicate"] == true,
    };
    let rows = listed["entries"].as_array().unwrap().iter();
    rows.filter(|row| row["status"] == "ok").map(run).collect()
}

/// The slots that a node has fired, of those that a client's node knows of.
fn slots_of(client: &mut Recorder, job: &Value, node: &str) -> BTreeSet<u64> {
    runs(client, job).into_iter().filter(|run| run.node == node).map(|run| run.slot).collect()
}

fn by_slot(runs: &BTreeSet<Run>) -> BTreeMap<u64, Vec<&Run>> {
    let mut slots = BTreeMap::<u64, Vec<&Run>>::new();
    runs.iter().for_each(|run| slots.entry(run.slot).or_default().push(run));
    slots
}

#[test]
fn both_sides_of_a_split_fire_and_afterwards_each_slot_is_fired_once_again() {
    let (dirs, runtime) = ([temp(), temp()], Runtime::new().unwrap());
    let alone = ["--no-discovery", "--name", "near"];
    let near = keyed(dirs[0].path(), &alone);
    let (pipe, join) = link(&runtime, &near);
    let far = keyed(dirs[1].path(), &["--no-discovery", "--name", "far", "--join", &join]);
    until("they meet", || meets(&near, 1) && meets(&far, 1));
    let key = mint(&near, &[]);
    let (mut ada, mut her) = (come(&near, &key, "ada"), come(&far, &key, "ada"));
    let words = |name: &str| json!({"name": name, "message": "tick", "schedule": "every 2 s", "deliverTo": "lobby"});
    let job = ada.gets("cron.create", &words("of-the-key"))["id"].clone();
    let own = std::fs::read_to_string(dirs[0].path().join("auth.key")).unwrap();
    let mut operator = come(&near, own.trim(), "op");
    let private = operator.gets("cron.create", &words("of-the-node"))["id"].clone();
    until("both list the same runs", || {
        let listed = runs(&mut ada, &job);
        listed.len() >= 2 && runs(&mut her, &job) == listed
    });

    pipe.set(|state| state.cut = true);
    until("they are apart", || meets(&near, 0) && meets(&far, 0));
    let before: BTreeSet<u64> = runs(&mut ada, &job).iter().map(|run| run.slot).collect();
    until("both sides fire the same slots", || {
        let fired = slots_of(&mut ada, &job, "near");
        slots_of(&mut her, &job, "far").intersection(&fired).count() >= 3
    });
    pipe.set(|state| state.cut = false);
    until("they meet again", || meets(&near, 1) && meets(&far, 1));

    until("both list the runs of both, and which of them were too many", || {
        let listed = runs(&mut ada, &job);
        listed.iter().filter(|run| run.duplicate).count() >= 3 && runs(&mut her, &job) == listed
    });
    let listed = runs(&mut ada, &job);
    for (slot, runs) in by_slot(&listed) {
        let counts: Vec<&&Run> = runs.iter().filter(|run| !run.duplicate).collect();
        assert_eq!(counts.len(), 1, "of {slot} one counts: {runs:?}");
        assert!(runs.iter().all(|run| run.at >= counts[0].at), "the first: {runs:?}");
        let nodes: BTreeSet<&str> = runs.iter().map(|run| &*run.node).collect();
        assert_eq!(nodes.len(), runs.len(), "no node fires a slot twice: {runs:?}");
        assert!(runs.len() == 1 || !before.contains(&slot), "before the split: {runs:?}");
    }
    // Both may have thought that the lease was theirs; one of them was wrong.
    let newest = listed.last().map_or(0, |run| run.slot);
    until("each slot is fired once again", || {
        let listed = runs(&mut ada, &job);
        let later = by_slot(&listed).into_iter().filter(|(slot, _)| *slot > newest);
        let mut last: Vec<usize> = later.map(|(_, runs)| runs.len()).collect();
        let last = last.split_off(last.len().saturating_sub(SETTLED));
        last.len() == SETTLED
            && last.iter().all(|runs| *runs == 1)
            && runs(&mut her, &job) == listed
    });
    // Anew: of all that it was told meanwhile it has read nothing.
    let mut operator = come(&near, own.trim(), "op");
    let private = runs(&mut operator, &private);
    assert!(private.len() > 3 && private.iter().all(|run| run.node == "near" && !run.duplicate));
    let theirs = her.gets("cron.list", &json!({}));
    assert_eq!(theirs["jobs"].as_array().unwrap().len(), 1, "{theirs}");
}

#[test]
fn when_a_node_is_killed_the_other_fires_and_no_slot_is_fired_twice_when_it_is_back() {
    let dirs = [temp(), temp()];
    let named = |name: &'static str| ["--name", name];
    let near = keyed(dirs[0].path(), &named("near"));
    let join = ["--name", "far", "--join", near.text("ticket")];
    let far = keyed(dirs[1].path(), &join);
    far.until_connected();
    let key = mint(&near, &[]);
    let (mut ada, mut her) = (come(&near, &key, "ada"), come(&far, &key, "ada"));
    let job = json!({"name": "of-the-key", "message": "tick", "schedule": "every 2 s", "deliverTo": "lobby"});
    let job = ada.gets("cron.create", &job)["id"].clone();
    until("the job is at the other node", || {
        let listed = her.gets("cron.list", &json!({}));
        listed["jobs"].as_array().unwrap().len() == 1
    });
    let mut firing = String::new();
    until("somebody fires", || {
        let listed = runs(&mut her, &job);
        firing = listed.last().map(|run| run.node.clone()).unwrap_or_default();
        listed.len() >= 2
    });
    // The one that fires is killed, and the other one goes on.
    let (dies, stays, mut client, at) =
        if firing == "near" { (near, far, her, 0) } else { (far, near, ada, 1) };
    let (dead, alive) = if firing == "near" { ("near", "far") } else { ("far", "near") };
    dies.kill();
    until("the other one fires", || slots_of(&mut client, &job, alive).len() >= 2);
    let before = slots_of(&mut client, &job, alive);
    let back = keyed(dirs[at].path(), &named(dead));
    back.until_connected();
    let mut anew = come(&back, &key, "ada");
    let last = before.last().copied().unwrap();
    until("it goes on, and both list the same", || {
        let listed = runs(&mut client, &job);
        let later = by_slot(&listed).into_keys().filter(|slot| *slot > last).count();
        later >= SETTLED && runs(&mut anew, &job) == listed
    });
    for (slot, runs) in by_slot(&runs(&mut client, &job)) {
        assert_eq!(runs.len(), 1, "{slot}: {runs:?}");
    }
    drop(stays);
}
