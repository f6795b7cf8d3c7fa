//! The fold by itself: what it shows, and that it shows the same in whatever order logs are read.

mod fields;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{
    limits::{
        CLAIM_SETTLE, TASK_COMMENTS_BYTES_MAX, TASK_LABELS_MAX, TASK_NOTE_BYTES_MAX,
        TASK_RESULT_BYTES_MAX,
    },
    name::{
        id::{NodeId, RoomId},
        time::Now,
    },
    wire::{
        entry::{Body, Facts},
        tasks::{TaskFields, TaskProgress},
    },
};

const ROOM: RoomId = RoomId([1; 16]);
const NOW: Now = Now { mono: Duration::ZERO, wall_ms: 0, wall_us: 0 };

/// An act as it is written.
type Act = (EntryRef, Facts, TaskAct);

/// What one node knows.
struct Replica {
    tasks: Tasks,
    log: LogId,
    clock: u64,
    /// In the order in which it came: an act after all that it names.
    have: Vec<Act>,
}

impl Replica {
    fn new(node: u8) -> Replica {
        Replica::with_log(node, 0)
    }

    /// Another log of a node, as there are in rooms that are memory only.
    fn with_log(node: u8, incarnation: u64) -> Replica {
        let log = LogId { author: NodeId([node; 32]), incarnation };
        Replica { tasks: Tasks::default(), log, clock: 0, have: Vec::new() }
    }

    fn take(&mut self, act: &Act) -> Folded {
        let (place, facts, act) = act.clone();
        self.clock = self.clock.max(facts.clock);
        self.have.push((place, facts, act.clone()));
        let at = LocalRef { log: u32::from(place.log.author.0[0]), seq: place.seq };
        let written = Written { room: ROOM, place, at, facts, now: NOW };
        let folded = self.tasks.apply(written, act, &mut Vec::new());
        self.tasks.judge(|_| true);
        folded
    }

    fn write(&mut self, act: TaskAct) -> EntryRef {
        let seq = 1 + self.have.iter().filter(|(place, ..)| place.log == self.log).count() as u64;
        let place = EntryRef { log: self.log, seq };
        let clock = self.clock + 1;
        let facts = Facts { clock, wall_ms: clock * 10, kind: 50, visible: false };
        assert_eq!(self.take(&(place, facts, act)), Folded::Taken);
        place
    }

    fn assign(&mut self, title: &str) -> EntryRef {
        self.write(TaskAct::Assigned(assigned(title)))
    }

    fn update(&mut self, update: TaskUpdated) -> EntryRef {
        let update = self.tasks.over_what_is_known(update);
        self.write(TaskAct::Updated(update))
    }

    fn claim(&mut self, task: EntryRef, who: &str, if_assignee: Option<&str>) -> EntryRef {
        let update = held_by(task, who);
        let if_assignee = if_assignee.map(AgentId::from);
        self.write(TaskAct::Claimed(TaskClaimed {
            update,
            if_assignee,
            era: Era::HOME,
            key: None,
            if_status: None,
        }))
    }

    /// As the sequencer of an era.
    fn answer(&mut self, era: Era) {
        for claim in self.tasks.due(CLAIM_SETTLE, era) {
            let grant = self.tasks.answer(claim, era, None).expect("it is open");
            self.write(TaskAct::Granted(grant));
        }
    }

    fn hear(&mut self, other: &Replica) {
        let known: BTreeSet<EntryRef> = self.have.iter().map(|it| it.0).collect();
        for act in other.have.iter().filter(|it| !known.contains(&it.0)) {
            self.take(act);
        }
    }

    fn shows(&self, task: EntryRef) -> TaskView {
        self.tasks.view(task).expect("it is known")
    }

    fn holder(&self, task: EntryRef) -> Option<String> {
        self.shows(task).assignee.map(|it| it.to_string())
    }

    fn answers(&mut self) -> Vec<Answer> {
        let news = self.tasks.take_news(Duration::ZERO).into_iter();
        news.filter_map(
            |it| if let News::Answered { answer, .. } = it { Some(answer) } else { None },
        )
        .collect()
    }
}

fn assigned(title: &str) -> TaskAssigned {
    TaskAssigned::of(title.to_owned(), "ann".into())
}

fn nothing(task: EntryRef) -> TaskUpdated {
    TaskUpdated::of(task, "ann".into())
}

fn held_by(task: EntryRef, who: &str) -> TaskUpdated {
    TaskUpdated { assignee: Some(Some(who.into())), ..nothing(task) }
}

fn noted(task: EntryRef, note: &str) -> TaskUpdated {
    TaskUpdated { note: Some(note.to_owned()), ..nothing(task) }
}

fn with(task: EntryRef, set: impl FnOnce(&mut TaskFields)) -> TaskUpdated {
    let mut update = nothing(task);
    set(&mut update.fields);
    update
}

fn in_status(task: EntryRef, status: TaskStatus) -> TaskUpdated {
    TaskUpdated { status: Some(status), ..nothing(task) }
}

fn meet(a: &mut Replica, b: &mut Replica) {
    a.hear(b);
    b.hear(a);
}

#[test]
fn a_task_shows_what_was_written_last_of_each_field() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    let new = a.shows(task);
    assert_eq!((new.status, new.updated_ms), (TaskStatus::Pending, None));
    assert_eq!((new.assignee, new.note), (None, None));
    a.update(in_status(task, TaskStatus::Blocked));
    a.update(held_by(task, "bob"));
    a.update(noted(task, "stuck"));
    a.update(in_status(task, TaskStatus::Completed));
    let now = a.shows(task);
    assert_eq!((now.status, now.updated_ms), (TaskStatus::Completed, Some(50)));
    assert_eq!((now.assignee.as_deref(), now.note.as_deref()), (Some("bob"), Some("stuck")));
    assert!(now.contested.is_empty(), "{now:?}");
}

#[test]
fn what_is_written_on_both_sides_is_contested_until_somebody_writes_who_knows_both() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    a.update(held_by(task, "ann"));
    b.update(held_by(task, "bob"));
    b.update(noted(task, "mine"));
    meet(&mut a, &mut b);
    for side in [&a, &b] {
        let now = side.shows(task);
        assert_eq!(now.contested, ["assignee"], "both set it, and only one the note");
        assert_eq!(now.note.as_deref(), Some("mine"));
        assert_eq!(now.assignee.as_deref(), Some("bob"), "of equal clocks the higher log's");
    }
    b.update(held_by(task, "cleo"));
    a.hear(&b);
    assert_eq!((a.holder(task).as_deref(), a.shows(task).contested.len()), (Some("cleo"), 0));
}

#[test]
fn the_same_value_from_both_sides_is_not_contested() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    a.update(in_status(task, TaskStatus::Completed));
    b.update(in_status(task, TaskStatus::Completed));
    meet(&mut a, &mut b);
    assert!(a.shows(task).contested.is_empty());
}

#[test]
fn of_claims_in_one_era_one_is_granted_and_the_others_are_told_who_holds_it() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    b.claim(task, "bob", None);
    a.claim(task, "ann", None);
    a.hear(&b);
    a.answer(Era::HOME);
    let holder = a.holder(task).expect("one has it");
    b.hear(&a);
    let told: Vec<Answer> = a.answers();
    assert_eq!(told.len(), 2);
    let held = told.iter().filter(|it| matches!(it, Answer::Held(Some(by)) if **by == *holder));
    assert_eq!(held.count(), 1, "{told:?}");
    assert_eq!(b.holder(task), Some(holder));
    assert!(!a.tasks.is_waiting() && !b.tasks.is_waiting());
    // Whoever knows the holder may take it over.
    let holder = a.holder(task);
    b.claim(task, "cleo", holder.as_deref());
    a.hear(&b);
    a.answer(Era::HOME);
    assert_eq!(a.holder(task).as_deref(), Some("cleo"));
}

#[test]
fn claims_won_on_both_sides_of_a_split_are_contested() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    let era = Era::new(1, 7).expect("an era");
    a.claim(task, "ann", None);
    a.answer(Era::HOME);
    b.claim(task, "bob", None);
    b.answer(era);
    meet(&mut a, &mut b);
    assert_eq!(a.shows(task), b.shows(task));
    assert_eq!(a.shows(task).contested, ["assignee"]);
}

#[test]
fn a_claim_that_two_eras_answer_keeps_what_either_granted() {
    let (mut a, mut b, mut c) = (Replica::new(1), Replica::new(2), Replica::new(3));
    let task = a.assign("do it");
    meet(&mut a, &mut c);
    b.hear(&a);
    b.update(held_by(task, "bob"));
    c.claim(task, "cleo", None);
    a.hear(&c);
    a.answer(Era::HOME);
    // The sequencer of the next era has the claim before that answer.
    b.hear(&c);
    b.answer(Era::new(1, 7).expect("an era"));
    assert_eq!(b.holder(task).as_deref(), Some("bob"), "refused there");
    meet(&mut a, &mut b);
    assert_eq!(a.shows(task), b.shows(task));
    assert_eq!(a.shows(task).contested, ["assignee"], "granted once: not lost");
}

#[test]
fn a_claim_of_an_earlier_era_is_answered_a_moment_later() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    let claim = a.claim(task, "ann", None);
    let next = Era::new(1, 7).expect("an era");
    assert_eq!(a.tasks.due(Duration::ZERO, Era::HOME), [claim]);
    assert_eq!(a.tasks.due(Duration::ZERO, next), []);
    assert_eq!(a.tasks.due(CLAIM_SETTLE, next), [claim]);
}

#[test]
fn what_no_honest_node_writes_has_no_effect() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    let before = a.shows(task);
    let long = |n: usize| "x".repeat(n);
    let many = (1..=65).map(|seq| EntryRef { log: a.log, seq }).collect();
    let bad = [
        TaskAct::Assigned(assigned(" ")),
        TaskAct::Assigned(assigned(&long(1_025))),
        TaskAct::Assigned(TaskAssigned { description: Some(long(10_001)), ..assigned("x") }),
        TaskAct::Assigned(TaskAssigned { assignee: Some("".into()), ..assigned("x") }),
        TaskAct::Updated(noted(task, &long(4_097))),
        TaskAct::Updated(with(task, |fields| fields.priority = Some(4))),
        TaskAct::Updated(with(task, |fields| fields.title = Some(String::new()))),
        TaskAct::Updated(with(task, |fields| {
            fields.labels = Some(vec![String::new(); TASK_LABELS_MAX + 1]);
        })),
        TaskAct::Updated(with(task, |fields| {
            fields.progress = Some(TaskProgress { percent: 101, step: String::new() });
        })),
        TaskAct::Updated(with(task, |fields| {
            fields.result = Some(long(TASK_RESULT_BYTES_MAX + 1));
        })),
        TaskAct::Updated(held_by(task, &long(129))),
        TaskAct::Updated(TaskUpdated { over: many, ..held_by(task, "eve") }),
        TaskAct::Claimed(TaskClaimed {
            update: held_by(task, ""),
            if_assignee: None,
            era: Era::HOME,
            key: None,
            if_status: None,
        }),
        TaskAct::Claimed(TaskClaimed {
            update: nothing(task),
            if_assignee: Some("".into()),
            era: Era::HOME,
            key: None,
            if_status: None,
        }),
    ];
    for (seq, act) in (2..).zip(bad) {
        let facts = Facts { clock: seq, wall_ms: 0, kind: 50, visible: false };
        let act = (EntryRef { log: a.log, seq }, facts, act);
        assert_eq!(a.take(&act), Folded::Void, "{act:?}");
    }
    assert_eq!((a.shows(task), a.tasks.newest(None).len()), (before, 1));
    assert!(!a.tasks.is_waiting());
}

#[test]
fn a_forked_logs_writes_are_taken_back_and_what_they_had_replaced_shows_again() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    a.update(held_by(task, "ann"));
    b.hear(&a);
    let forked = b.update(held_by(task, "bob"));
    let theirs = b.assign("theirs");
    b.claim(task, "eve", Some("bob"));
    a.hear(&b);
    a.tasks.forget_log(b.log, forked.seq);
    assert_eq!(a.holder(task).as_deref(), Some("ann"));
    assert_eq!(a.tasks.view(theirs), None);
    assert!(!a.tasks.is_waiting());
    assert_eq!(a.tasks.bytes, a.tasks.all.values().map(Task::bytes).sum::<usize>());
}

#[test]
fn claims_of_a_forked_log_are_taken_back_from_the_fork_on_and_no_others() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    let below = b.claim(task, "bob", None);
    b.update(noted(task, "mine"));
    let forked = b.claim(task, "bob", None);
    let beyond = b.claim(task, "bob", None);
    for _ in 0..5 {
        a.update(noted(task, "wait"));
    }
    let own = a.claim(task, "ann", None);
    a.hear(&b);
    assert!(own.seq > forked.seq && a.tasks.claims.get(beyond).is_some());
    a.tasks.forget_log(b.log, forked.seq);
    let left = [own, below, forked, beyond].map(|claim| a.tasks.claims.get(claim).is_some());
    assert_eq!(left, [true, true, false, false]);
}

#[test]
fn a_claim_for_which_there_is_no_room_is_refused() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    let claim = || {
        TaskAct::Claimed(TaskClaimed {
            update: held_by(task, "ann"),
            if_assignee: None,
            era: Era::HOME,
            key: None,
            if_status: None,
        })
    };
    for _ in 0..CLAIMS_OPEN_MAX {
        assert!(a.tasks.admits(a.log, &claim(), Duration::ZERO).is_ok());
        a.claim(task, "ann", None);
    }
    assert!(
        a.tasks.admits(a.log, &claim(), Duration::ZERO).is_err(),
        "its client would wait for ever"
    );
    assert!(a.tasks.admits(a.log, &TaskAct::Updated(noted(task, "x")), Duration::ZERO).is_ok());
    let place = EntryRef { log: a.log, seq: 1_000_000 };
    let facts = Facts { clock: 1_000_000, wall_ms: 0, kind: 50, visible: false };
    assert_eq!(a.take(&(place, facts, claim())), Folded::Overflow);
}

#[test]
fn an_update_replaces_as_many_acts_as_it_may_name() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    let over = |count: usize| {
        let place = EntryRef { log: a.log, seq: 900 };
        TaskUpdated { over: vec![place; count], ..noted(task, "x") }
    };
    let (most, more) = (over(TASK_OVER_MAX), over(TASK_OVER_MAX + 1));
    a.write(TaskAct::Updated(most));
    let place = EntryRef { log: a.log, seq: 1_000 };
    let facts = Facts { clock: 1_000, wall_ms: 0, kind: 50, visible: false };
    assert_eq!(a.take(&(place, facts, TaskAct::Updated(more))), Folded::Void);
}

#[test]
fn what_a_task_will_take_is_known_before_it_is_written() {
    let mut a = Replica::new(1);
    let new = TaskAssigned { description: Some("in this way".to_owned()), ..assigned("do it") };
    let task = a.write(TaskAct::Assigned(new.clone()));
    assert_eq!(Task::new_bytes(&new), a.tasks.bytes);
    assert!(a.tasks.bytes > new.title.len() + 11 + size_of::<Task>());
    let place = EntryRef { log: a.log, seq: 900 };
    let update = TaskUpdated { over: vec![place; 3], ..noted(task, "so far") };
    let before = a.tasks.bytes;
    a.write(TaskAct::Updated(update.clone()));
    assert_eq!(a.tasks.bytes - before, task::update_bytes(&update));
    assert!(task::update_bytes(&update) > 3 * size_of::<EntryRef>() + "so far".len());
}

#[test]
fn a_log_keeps_its_newest_tasks_and_only_its_own() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let first = a.assign("first");
    b.hear(&a);
    let other = b.assign("other");
    a.hear(&b);
    b.claim(first, "bob", None);
    a.hear(&b);
    for _ in 0..TASKS_PER_LOG_MAX {
        a.assign("more");
    }
    assert_eq!(a.tasks.view(first), None);
    assert!(a.tasks.view(other).is_some());
    assert_eq!(a.tasks.all.len(), TASKS_PER_LOG_MAX + 1);
    let news = a.tasks.take_news(Duration::ZERO);
    assert!(news.contains(&News::Forgotten(MessageId::new(ROOM, a.log, first.seq), first)));
    assert_eq!(a.tasks.claims.len(), 0, "nobody waits for it any more");
    assert_eq!(a.tasks.bytes, a.tasks.all.values().map(Task::bytes).sum::<usize>());
}

#[test]
fn a_node_makes_no_task_for_which_one_that_is_not_done_would_be_forgotten() {
    let mut a = Replica::new(1);
    let new = TaskAct::Assigned(assigned("one more"));
    let first = a.assign("first");
    for _ in 1..TASKS_PER_LOG_MAX {
        assert!(a.tasks.admits(a.log, &new, Duration::ZERO).is_ok());
        a.assign("more");
    }
    assert!(a.tasks.admits(a.log, &new, Duration::ZERO).is_err(), "the first would go");
    assert!(
        a.tasks.admits(Replica::new(2).log, &new, Duration::ZERO).is_ok(),
        "another node's would not"
    );
    a.update(in_status(first, TaskStatus::Completed));
    assert!(a.tasks.admits(a.log, &new, Duration::ZERO).is_ok());
}

#[test]
fn what_is_written_is_only_what_there_is_memory_for() {
    let mut a = Replica::new(1);
    let task = a.assign("first");
    let large = TaskAssigned { description: Some("x".repeat(4_096)), ..assigned("large") };
    let small = TaskAct::Updated(in_status(task, TaskStatus::Completed));
    let mut log = 2;
    while a.tasks.admits(a.log, &TaskAct::Assigned(large.clone()), Duration::ZERO).is_ok() {
        // Those of many nodes: each has its own few.
        let mut of = Replica::new(log);
        std::mem::swap(&mut a.tasks, &mut of.tasks);
        for seq in 1..=4_000 {
            let place = EntryRef { log: of.log, seq };
            let facts = Facts { clock: seq, wall_ms: 0, kind: 50, visible: false };
            let act = (place, facts, TaskAct::Assigned(large.clone()));
            if of.take(&act) == Folded::Overflow {
                break;
            }
        }
        std::mem::swap(&mut a.tasks, &mut of.tasks);
        log += 1;
    }
    assert!(a.tasks.bytes <= TASKS_BYTES_PER_ROOM_MAX);
    let noted = TaskAct::Updated(noted(task, &"x".repeat(4_096)));
    assert!(a.tasks.admits(a.log, &noted, Duration::ZERO).is_err());
    assert!(a.tasks.admits(a.log, &small, Duration::ZERO).is_ok(), "what is large is too large");
}

#[test]
fn what_long_notes_replace_is_not_kept_for_long() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    for n in 0..100 {
        a.update(noted(task, &format!("{n:04096}")));
    }
    let kept = a.tasks.bytes - TASK_NOTE_BYTES_MAX;
    let most = crate::limits::TASK_REPLACED_BYTES_MAX + TASK_COMMENTS_BYTES_MAX;
    assert!(kept <= most + 4_096, "{kept}");
    assert_eq!(a.shows(task).comments, TASK_COMMENTS_BYTES_MAX / 4_096);
}

#[test]
fn the_newest_tasks_are_listed_as_far_as_they_fit() {
    let mut a = Replica::new(1);
    let places: Vec<EntryRef> = (0..TASKS_LISTED_MAX + 5).map(|_| a.assign("do it")).collect();
    let listed = |a: &Replica, status| -> Vec<MessageId> {
        a.tasks.newest(status).iter().map(|it| it.task).collect()
    };
    let id = |place: &EntryRef| MessageId::new(ROOM, place.log, place.seq);
    assert_eq!(listed(&a, None), places[5..].iter().map(id).collect::<Vec<_>>());
    a.update(in_status(places[0], TaskStatus::Blocked));
    assert_eq!(listed(&a, Some(TaskStatus::Blocked)), [id(&places[0])], "of those asked for");
    for place in &places {
        a.update(noted(*place, &"x".repeat(TASK_NOTE_BYTES_MAX)));
    }
    let some = listed(&a, None);
    assert!(some.len() < TASKS_LISTED_BYTES_MAX / TASK_NOTE_BYTES_MAX && some.len() > 200);
    assert_eq!(some.last(), places.last().map(id).as_ref());
}

#[test]
fn a_list_of_tasks_is_as_long_as_fits_an_answer() {
    let mut a = Replica::new(1);
    let long: String = "x".repeat(128);
    let new = |description: Option<usize>| TaskAssigned {
        description: description.map(|len| "x".repeat(len)),
        assignee: Some(long.as_str().into()),
        created_by: long.as_str().into(),
        id: None,
        ..assigned("do it")
    };
    for _ in 0..TASKS_LISTED_MAX {
        a.write(TaskAct::Assigned(new(None)));
    }
    assert_eq!(a.tasks.newest(None).len(), TASKS_LISTED_MAX, "these are short");
    for _ in 0..TASKS_LISTED_MAX {
        a.write(TaskAct::Assigned(new(Some(1_000))));
    }
    let each = 400 + "do it".len() + 1_000 + 2 * 128;
    assert_eq!(a.tasks.newest(None).len(), TASKS_LISTED_BYTES_MAX / each);
}

#[test]
fn replaced_writes_are_forgotten_in_the_end() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    for n in 0..100 {
        a.update(noted(task, &format!("step {n}")));
    }
    a.update(in_status(task, TaskStatus::Blocked));
    a.update(held_by(task, "bob"));
    for n in 100..300 {
        a.update(noted(task, &format!("step {n}")));
    }
    let bytes = a.tasks.bytes;
    for n in 300..400 {
        a.update(noted(task, &format!("step {n}")));
        assert_eq!(a.shows(task).note, Some(format!("step {n}").into()));
    }
    let shows = a.shows(task);
    assert_eq!((shows.status, shows.assignee), (TaskStatus::Blocked, Some("bob".into())));
    assert_eq!(a.shows(task).note.as_deref(), Some("step 399"));
    assert!(a.tasks.bytes < bytes + 800, "{} then {}", bytes, a.tasks.bytes);
}

/// One thing that happens in a made-up history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Assign(usize),
    Update { by: usize, task: usize, field: u8, value: u8 },
    Claim { by: usize, task: usize, value: u8, of: u8 },
    Answer(usize),
    Delete { by: usize, task: usize },
    Meet(usize, usize),
}

/// The last is another log of the one before it.
const NODES: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    prop_oneof![
        1 => node.clone().prop_map(Step::Assign),
        4 => (node.clone(), 0..4_usize, 0..32_u8, 0..3_u8)
            .prop_map(|(by, task, field, value)| Step::Update { by, task, field, value }),
        3 => (node.clone(), 0..4_usize, 0..3_u8, 0..4_u8)
            .prop_map(|(by, task, value, of)| Step::Claim { by, task, value, of }),
        2 => node.clone().prop_map(Step::Answer),
        1 => (node.clone(), 0..4_usize).prop_map(|(by, task)| Step::Delete { by, task }),
        3 => (node.clone(), node).prop_map(|(a, b)| Step::Meet(a, b)),
    ]
}

fn agent(n: u8) -> String {
    format!("agent{n}")
}

fn play(steps: &[Step]) -> Vec<Replica> {
    let mut nodes: Vec<Replica> = (1..=3).map(Replica::new).collect();
    nodes.push(Replica::with_log(3, 7));
    let nth = |node: &Replica, n: usize| {
        let known: Vec<EntryRef> = node.tasks.ids().map(|(_, place)| place).collect();
        known.get(n % known.len().max(1)).copied()
    };
    for step in steps {
        match *step {
            Step::Assign(by) => drop(nodes[by].assign("task")),
            Step::Update { by, task, field, value } => {
                let Some(task) = nth(&nodes[by], task) else { continue };
                let statuses = [TaskStatus::Pending, TaskStatus::Blocked, TaskStatus::Completed];
                let update = TaskUpdated {
                    status: (field & 1 != 0).then_some(statuses[usize::from(value)]),
                    assignee: (field & 2 != 0).then(|| (value > 0).then(|| agent(value).into())),
                    note: (field & 4 != 0).then(|| agent(value)),
                    ..with(task, |fields| {
                        fields.priority = (field & 8 != 0).then_some(value);
                        fields.labels = (field & 16 != 0).then(|| vec![agent(value)]);
                    })
                };
                nodes[by].update(update);
            }
            Step::Claim { by, task, value, of } => {
                let Some(task) = nth(&nodes[by], task) else { continue };
                let of = (of > 0).then(|| agent(of - 1));
                nodes[by].claim(task, &agent(value), of.as_deref());
            }
            Step::Delete { by, task } => {
                let Some(task) = nth(&nodes[by], task) else { continue };
                let by_whom = AgentId::from("ann");
                nodes[by].write(TaskAct::Deleted(TaskDeleted { task, by: by_whom }));
            }
            Step::Answer(by) => {
                let lane = u32::try_from(by).expect("few");
                nodes[by].answer(Era::new(1, lane).expect("an era"));
            }
            Step::Meet(a, b) if a != b => {
                let [a, b] = nodes.get_disjoint_mut([a, b]).expect("two of them");
                meet(a, b);
            }
            Step::Meet(..) => {}
        }
    }
    nodes
}

/// The acts in another order in which they might have been read.
fn read_in_another_order(acts: &[Act], mut draw: u64) -> Replica {
    let mut reader = Replica::new(9);
    let mut left: Vec<Act> = acts.to_vec();
    while !left.is_empty() {
        let waits = |act: &Act| {
            let names = Body::Task(act.2.clone()).names();
            left.iter().any(|other| {
                names.contains(&other.0) || (other.0.log == act.0.log && other.0.seq < act.0.seq)
            })
        };
        let ready: Vec<usize> = (0..left.len()).filter(|i| !waits(&left[*i])).collect();
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = ready[usize::try_from(draw >> 33).expect("fits") % ready.len()];
        let act = left.remove(pick);
        reader.take(&act);
    }
    reader
}

proptest! {
    #[test]
    fn all_that_read_the_same_acts_show_the_same(
        steps in prop::collection::vec(step(), 1..60),
        draws in prop::collection::vec(any::<u64>(), 3),
    ) {
        let mut nodes = play(&steps);
        for _ in 0..2 {
            for i in 0..NODES {
                let [a, b] = nodes.get_disjoint_mut([i, (i + 1) % NODES]).expect("two");
                meet(a, b);
            }
        }
        let views = nodes[0].tasks.newest(None);
        for node in &nodes {
            prop_assert_eq!(&node.tasks.newest(None), &views);
        }
        for draw in draws {
            let reader = read_in_another_order(&nodes[0].have, draw);
            prop_assert_eq!(&reader.tasks.newest(None), &views);
            prop_assert_eq!(reader.tasks.is_waiting(), nodes[0].tasks.is_waiting());
        }
    }

    /// Of a log that forked all nodes have what is below the fork, or get it; and take back the rest.
    #[test]
    fn what_a_fork_took_with_it_does_not_depend_on_how_much_of_it_was_here(
        steps in prop::collection::vec(step(), 1..60),
        forked in 0..NODES,
        fork in 1u64..10,
        more in 0u64..10,
    ) {
        let mut nodes = play(&steps);
        for _ in 0..2 {
            for i in 0..NODES {
                let [a, b] = nodes.get_disjoint_mut([i, (i + 1) % NODES]).expect("two");
                meet(a, b);
            }
        }
        let log = nodes[forked].log;
        let mut all = read_in_another_order(&nodes[0].have, 1);
        all.tasks.forget_log(log, fork);
        let here = |it: &&Act| it.0.log != log || it.0.seq < fork + more;
        let here: Vec<Act> = nodes[0].have.iter().filter(here).cloned().collect();
        let mut less = read_in_another_order(&here, 2);
        less.tasks.forget_log(log, fork);
        prop_assert_eq!(all.tasks.newest(None), less.tasks.newest(None));
        prop_assert_eq!(all.tasks.bytes, all.tasks.all.values().map(Task::bytes).sum::<usize>());
    }

    /// What was granted is shown or contested, unless somebody wrote who knew of it.
    #[test]
    fn a_granted_claim_is_not_lost(steps in prop::collection::vec(step(), 1..60)) {
        let mut nodes = play(&steps);
        for _ in 0..2 {
            for i in 0..NODES {
                let [a, b] = nodes.get_disjoint_mut([i, (i + 1) % NODES]).expect("two");
                meet(a, b);
            }
        }
        let node = &nodes[0];
        for (place, _, act) in &node.have {
            let TaskAct::Granted(Grant { update: Some(update), .. }) = act else { continue };
            let replaced = node.have.iter().any(|(by, _, act)| {
                let (TaskAct::Updated(it) | TaskAct::Granted(Grant { update: Some(it), .. })) = act
                else {
                    return false;
                };
                let later = by.log == place.log && by.seq > place.seq;
                it.task == update.task
                    && it.assignee.is_some()
                    && (later || it.over.contains(place))
            });
            let Some(view) = node.tasks.view(update.task) else { continue };
            let shown = Some(&view.assignee) == update.assignee.as_ref() || view.contested.contains(&"assignee");
            prop_assert!(replaced || shown, "{:?} in {:?}", update, view);
        }
    }
}
