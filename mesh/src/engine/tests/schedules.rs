//! Schedules: jobs and runs of a key, in the room that it has with itself, and the lease of the node that fires them.

use super::{
    pairs::signer,
    world::{STEP, World},
    *,
};
use crate::{
    api::{
        command::{ScheduleAct, ScheduleChange},
        event::AgentEvent,
        once::{Once, OnceAnswered, OnceWant},
    },
    limits::{JOB_MESSAGE_BYTES_MAX, JOBS_PER_KEY_MAX, RUNS_PER_JOB_AND_NODE},
    name::id::{JobId, MessageId},
    records::schedules::{JobText, JobView, RunText, RunView, WantedJobs, WantedRuns},
};

const KEYS: KeyPrint = PRINTS[2];
const OTHERS: KeyPrint = PRINTS[3];
const CLOCK: &str = "clock";
/// Part of all that is private.
const SECRET: &str = "for few eyes";
const LEASE: Duration = Duration::from_secs(30);

fn job(n: u16) -> JobId {
    let mut id = [0; 16];
    id[..2].copy_from_slice(&n.to_be_bytes());
    JobId(id)
}

fn put(n: u16, text: &str) -> ScheduleAct {
    let message = format!("{text} {SECRET}");
    ScheduleAct::Put(job(n), JobText { facts: "{}".to_owned(), message })
}

fn ran(node: NodeId, place: u16, text: &str) -> ScheduleAct {
    ScheduleAct::Ran(RunText { job: job(1), node, place, facts: text.to_owned() })
}

fn change(key: KeyPrint, room: RoomId, act: ScheduleAct) -> Command {
    Command::ChangeSchedule(Box::new(ScheduleChange { room, key, signer: signer(key), act }))
}

impl Node {
    fn jobs(&self, room: RoomId) -> Vec<JobView> {
        let known = &self.engine.known;
        let Some(state) = known.rooms.get(&room) else { return Vec::new() };
        let at = state.replica.record.place_of_records(room).expect("it is permanent");
        let keys = known.directory.proofs().keys_of_room(room);
        WantedJobs::read(&at, &self.records(), &keys, known.cx.mesh)
    }

    fn runs(&self, room: RoomId) -> Vec<RunView> {
        let known = &self.engine.known;
        let state = &known.rooms[&room];
        let at = state.replica.record.place_of_records(room).expect("it is permanent");
        let keys = known.directory.proofs().keys_of_room(room);
        WantedRuns::read(&at, &self.records(), &keys, known.cx.mesh)
    }

    fn texts(&self, room: RoomId) -> Vec<String> {
        let mut texts: Vec<_> = self.jobs(room).into_iter().map(|view| view.text.message).collect();
        texts.sort();
        texts
    }
}

/// The key at the first two of three nodes, with its schedule.
struct Kept {
    world: World,
    room: RoomId,
    clock: Caller,
}

impl Kept {
    fn new() -> Kept {
        let mut world = World::new(3);
        world.link();
        let clock = world.come(0, CLOCK, KEYS);
        world.come(1, "other", KEYS);
        world.pass(STEP * 5);
        let room = world.open(0, &clock, CLOCK).expect("of the key with itself").room;
        world.pass(STEP * 20);
        Kept { world, room, clock }
    }

    fn asks(&mut self, n: usize, act: ScheduleAct) -> Result<Outcome, Refused> {
        self.world.ask(n, change(KEYS, self.room, act))
    }

    /// The key's scheduler acts at a node, as one that lingers does: in the place of the one at another node.
    fn comes(&mut self, n: usize) -> Caller {
        let attach = Attach { stable: true, reconnect: true, ..registers(CLOCK, (KEYS, false)) };
        let call = self.world.begin(n, Command::Attach(attach));
        self.world.carry();
        self.world.pass(STEP * 20);
        match self.world.reply(n, call) {
            Some(Ok(Outcome::Attached(it))) => {
                Caller { agent: CLOCK.into(), key: KEYS, registration: it.registration }
            }
            other => panic!("{other:?}"),
        }
    }

    fn lease(&mut self, n: usize, clock: &Caller, want: OnceWant) -> Option<OnceAnswered> {
        let (caller, room, subject) = (clock.clone(), self.room, "cron".to_owned());
        let once = Once { caller, room, subject, want };
        let call = self.world.begin(n, Command::Once(Box::new(once)));
        self.world.carry();
        self.world.pass(STEP * 60);
        match self.world.reply(n, call) {
            Some(Ok(Outcome::Once(answered))) => Some(*answered),
            Some(Err(_)) | None => None,
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, n: usize, clock: &Caller) -> Option<MessageId> {
        let answered = self.lease(n, clock, OnceWant::Take(Some(LEASE)))?;
        answered.holder.filter(|_| answered.granted).map(|holder| holder.grant)
    }
}

#[test]
fn jobs_and_runs_are_with_the_nodes_of_the_key_and_readable_nowhere_else() {
    let mut kept = Kept::new();
    let room = kept.room;
    kept.asks(0, put(1, "one")).expect("its key");
    assert_eq!(kept.world.nodes[0].texts(room), [format!("one {SECRET}")], "it is durable");
    kept.world.pass(STEP * 5);
    let news = |world: &World, n: usize| {
        let is_news = |event: &&AgentEvent| matches!(event, AgentEvent::Scheduled(_));
        world.tells[n].iter().filter(is_news).count()
    };
    assert_eq!([0, 1, 2].map(|n| news(&kept.world, n)), [1, 1, 0]);
    kept.asks(1, put(1, "two")).expect("the same key at another node");
    let node = kept.world.nodes[0].engine.known.cx.me;
    kept.asks(0, ran(node, 7, "first")).expect("its key");
    kept.asks(0, ran(node, 7, "second")).expect("in the place of the first");
    kept.asks(0, ran(node, 8, "third")).expect("its key");
    kept.world.pass(STEP * 5);
    for n in [0, 1] {
        assert_eq!(kept.world.nodes[n].texts(room), [format!("two {SECRET}")]);
        let mut runs: Vec<_> =
            kept.world.nodes[n].runs(room).into_iter().map(|view| view.run.facts).collect();
        runs.sort();
        assert_eq!(runs, ["second", "third"]);
    }
    assert!(kept.world.nodes[2].texts(room).is_empty());
    let is_told = kept
        .world
        .told_to
        .iter()
        .any(|(_, bytes)| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    assert!(!is_told, "sealed on its way");
    kept.world.restart(1);
    assert_eq!(kept.world.nodes[1].texts(room), [format!("two {SECRET}")]);
}

#[test]
fn a_job_that_was_deleted_stays_deleted_whatever_the_other_side_of_a_split_has_written() {
    let mut kept = Kept::new();
    let room = kept.room;
    kept.asks(0, put(1, "one")).expect("its key");
    kept.world.pass(STEP * 5);
    kept.world.groups = vec![0, 1, 0];
    kept.asks(0, ScheduleAct::Remove(job(1))).expect("it is there");
    kept.world.pass(STEP * 20);
    kept.asks(1, put(1, "later")).expect("nobody knows here");
    assert_eq!(kept.world.nodes[1].texts(room).len(), 1);
    kept.world.groups = vec![0; 3];
    kept.world.pass(STEP * 400);
    for n in [0, 1] {
        assert!(kept.world.nodes[n].texts(room).is_empty(), "node {n}");
        let again = kept.asks(n, put(1, "again"));
        assert!(matches!(again, Err(Refused::Impossible(_))), "{again:?}");
        let again = kept.asks(n, ScheduleAct::Remove(job(1)));
        assert!(matches!(again, Err(Refused::Impossible(_))), "{again:?}");
    }
}

#[test]
fn nobody_writes_jobs_of_another_key_or_more_than_a_key_may_have() {
    let mut kept = Kept::new();
    let room = kept.room;
    let eve = kept.world.come(0, "eve", OTHERS);
    kept.world.pass(STEP * 5);
    let refused = kept.world.ask(0, change(OTHERS, room, put(1, "one")));
    assert_eq!(refused.err(), Some(Refused::NotYours));
    // In a room of two keys nobody could tell whose jobs they are.
    let shared = kept.world.open(0, &eve, CLOCK).expect("both are known").room;
    for key in [KEYS, OTHERS] {
        let refused = kept.world.ask(0, change(key, shared, put(1, "one")));
        assert_eq!(refused.err(), Some(Refused::NotYours));
    }
    let long = "m".repeat(JOB_MESSAGE_BYTES_MAX + 1);
    let long = ScheduleAct::Put(job(1), JobText { facts: String::new(), message: long });
    assert!(matches!(kept.asks(0, long), Err(Refused::Impossible(_))));
    let node = kept.world.nodes[0].engine.known.cx.me;
    let beyond = kept.asks(0, ran(node, RUNS_PER_JOB_AND_NODE, "x"));
    assert!(matches!(beyond, Err(Refused::Impossible(_))));
    let most = u16::try_from(JOBS_PER_KEY_MAX).expect("it is small");
    for n in 0..most {
        kept.world.nodes[0].ask(change(KEYS, room, put(n, "one"))).expect("within the bound");
    }
    let full = kept.asks(0, put(most, "one"));
    assert!(matches!(full, Err(Refused::Full(_))), "{full:?}");
    kept.asks(0, put(0, "two")).expect("it is there");
    kept.asks(0, ScheduleAct::Remove(job(0))).expect("it is there");
    kept.asks(0, put(most, "one")).expect("there is a place again");
}

#[test]
fn one_node_of_the_key_holds_the_lease_and_another_takes_it_over_when_that_one_has_died() {
    let mut kept = Kept::new();
    let first = kept.clock.clone();
    let grant = kept.take(0, &first).expect("nobody has it");
    let second = kept.comes(1);
    assert_eq!(kept.take(1, &second), None, "it is held");
    let again = kept.comes(0);
    kept.world.pass(LEASE / 2);
    let renewed = kept.lease(0, &again, OnceWant::Renew(grant)).expect("it is answered");
    assert!(renewed.granted);
    kept.world.down.insert(0);
    let second = kept.comes(1);
    kept.world.pass(LEASE / 2);
    assert_eq!(kept.take(1, &second), None, "it has not run out");
    let mut taken = None;
    for _ in 0..8 {
        kept.world.pass(Duration::from_secs(5));
        let second = kept.comes(1);
        taken = kept.take(1, &second);
        if taken.is_some() {
            break;
        }
    }
    let taken = taken.expect("within a lease and a little");
    kept.world.down.remove(&0);
    kept.world.restart(0);
    kept.world.link();
    kept.world.pass(STEP * 100);
    let first = kept.comes(0);
    let late = kept.lease(0, &first, OnceWant::Renew(grant)).expect("it is answered");
    assert!(!late.granted);
    assert_eq!(late.holder.map(|holder| holder.grant), Some(taken));
}
