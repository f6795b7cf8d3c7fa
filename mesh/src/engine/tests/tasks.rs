//! Tasks and claims, as clients see them.

mod steps;

use std::time::Duration;

use super::{
    KEY, Node,
    world::{STEP, World},
};
use crate::{
    api::{
        agenda::{NewTask, TaskUpdate, TaskView},
        batch::Change,
        boundary::{Effect, Input},
        command::{Caller, Command, NewRoom, Outcome, Refused},
        event::RoomEvent,
        rules::Field,
    },
    fold::act::{Act, Fold as _},
    limits::{ASK_AFTER, TASKS_PER_LOG_MAX},
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, LogId, MessageId, RoomId},
        number::Era,
    },
    wire::{
        acts::{Grant, TaskAct, TaskStatus, TaskUpdated},
        entry::{Body, Facts, HandedOver},
        message::Message,
    },
};

fn new(room: RoomId) -> NewTask {
    NewTask::of(room, "do it")
}

fn nothing(task: MessageId) -> TaskUpdate {
    TaskUpdate::of(task)
}

fn claim(task: MessageId, who: &Caller, of: Option<&Caller>) -> TaskUpdate {
    let if_assignee = Some(of.map(|it| it.agent.clone()));
    TaskUpdate { assignee: Some(Some(who.agent.clone())), if_assignee, ..nothing(task) }
}

fn assign(caller: &Caller, task: NewTask) -> Command {
    Command::AssignTask { caller: caller.clone(), task }
}

fn update(caller: &Caller, update: TaskUpdate) -> Command {
    Command::UpdateTask { caller: caller.clone(), update }
}

fn list(room: RoomId, status: Option<TaskStatus>) -> Command {
    Command::ListTasks { by: KEY.into(), room, status }
}

fn task(result: Result<Outcome, Refused>) -> TaskView {
    match result {
        Ok(Outcome::Task(view)) => *view,
        other => panic!("{other:?}"),
    }
}

fn tasks(result: Result<Outcome, Refused>) -> Vec<TaskView> {
    match result {
        Ok(Outcome::Tasks(views)) => views,
        other => panic!("{other:?}"),
    }
}

/// What was told of tasks, as (was it new, what it shows).
fn told(events: Vec<RoomEvent>) -> Vec<(bool, TaskView)> {
    let told = events.into_iter().filter_map(|it| match it {
        RoomEvent::TaskAssigned(view) => Some((true, TaskView::clone(&view))),
        RoomEvent::TaskUpdated(view, _) => Some((false, TaskView::clone(&view))),
        _ => None,
    });
    told.collect()
}

fn broken(result: Result<Outcome, Refused>) -> Field {
    match result {
        Err(Refused::Field(broken)) => broken.field,
        other => panic!("{other:?}"),
    }
}

/// One node with two agents, of which the first is in the lobby.
fn alone() -> (Node, Caller, Caller) {
    let mut node = Node::new(1);
    let member = node.attach("ann", false, KEY).expect("free");
    let other = node.attach("bob", false, KEY).expect("free");
    for agent in ["ann", "bob"] {
        node.engine.known.directory.assume_owner(agent, KEY);
    }
    let room = node.lobby();
    node.ask(Command::Join { caller: member.clone(), room }).expect("it is public");
    (node, member, other)
}

#[test]
fn tasks_are_made_updated_and_listed_at_all_nodes_alike() {
    let mut mesh = World::new(3);
    let (room, ann, bob) = (mesh.lobby(), mesh.callers[0].clone(), mesh.callers[1].clone());
    let first = task(mesh.ask(0, assign(&ann, new(room))));
    let second = task(mesh.ask(1, assign(&bob, new(room))));
    assert_eq!((first.status, &first.created_by), (TaskStatus::Pending, &ann.agent));
    let change = TaskUpdate {
        status: Some(TaskStatus::InProgress),
        note: Some("on it".to_owned()),
        ..nothing(first.task)
    };
    let changed = task(mesh.ask(1, update(&bob, change)));
    assert_eq!(changed.status, TaskStatus::InProgress);
    assert!(changed.updated_ms.is_some());
    for i in 0..3 {
        let all = tasks(mesh.ask(i, list(room, None)));
        assert_eq!(all, [changed.clone(), second.clone()], "node {i}");
        let open = tasks(mesh.ask(i, list(room, Some(TaskStatus::Pending))));
        assert_eq!(open, all[1..], "node {i}");
        let told = told(std::mem::take(&mut mesh.told[i]));
        let expected = [(true, first.clone()), (true, second.clone()), (false, changed.clone())];
        assert_eq!(told, expected, "node {i}");
    }
}

#[test]
fn a_task_that_is_refused_leaves_nothing_behind() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let first = task(node.ask(assign(&ann, new(room))));
    for _ in 1..TASKS_PER_LOG_MAX {
        task(node.ask(assign(&ann, new(room))));
    }
    let heads = node.engine.known.rooms[&room].replica.logs.heads();
    let refused = node.ask(assign(&ann, new(room))).expect_err("the first is not done");
    assert!(matches!(refused, Refused::Full(_)), "{refused}");
    assert_eq!(node.engine.known.rooms[&room].replica.logs.heads(), heads, "nothing was written");
    let done = TaskUpdate { status: Some(TaskStatus::Completed), ..nothing(first.task) };
    task(node.ask(update(&ann, done)));
    task(node.ask(assign(&ann, new(room))));
    let gone = node.ask(update(&ann, nothing(first.task))).expect_err("it went");
    assert_eq!(gone, Refused::NoTask);
}

#[test]
fn an_update_that_sets_nothing_gives_the_task_and_writes_nothing() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let made = task(node.ask(assign(&ann, new(room))));
    drop(node.runs_sent());
    assert_eq!(task(node.ask(update(&ann, nothing(made.task)))), made);
    assert!(node.runs_sent().is_empty());
}

#[test]
fn only_members_of_a_room_they_may_see_make_and_update_tasks() {
    let (mut node, ann, bob) = alone();
    let room = node.lobby();
    assert_eq!(node.ask(assign(&bob, new(room))).expect_err("outside"), Refused::NotMember);
    let nowhere = NewTask { room: RoomId([9; 16]), ..new(room) };
    assert_eq!(node.ask(assign(&ann, nowhere)).expect_err("no room"), Refused::NoRoom);
    let made = task(node.ask(assign(&ann, new(room))));
    let done = || TaskUpdate { status: Some(TaskStatus::Completed), ..nothing(made.task) };
    assert_eq!(node.ask(update(&bob, done())).expect_err("outside"), Refused::NotMember);
    let unknown = nothing(MessageId([7; 16]));
    assert_eq!(node.ask(update(&ann, unknown)).expect_err("no task"), Refused::NoTask);
    let mut gone = ann.clone();
    gone.registration.0 += 100;
    assert_eq!(node.ask(update(&gone, done())).expect_err("old"), Refused::Superseded);
    // Another key's private room: neither its tasks nor that it has some.
    let private = NewRoom {
        name: "mine".to_owned(),
        description: None,
        parent: None,
        ephemeral: false,
        public: false,
        encrypted: false,
    };
    let created = node.ask(Command::CreateRoom { caller: ann.clone(), room: private });
    let Ok(Outcome::Room(view)) = created else { panic!("{created:?}") };
    node.ask(Command::Join { caller: ann.clone(), room: view.room }).expect("its owner");
    let hidden = task(node.ask(assign(&ann, new(view.room))));
    let key = KeyPrint([2; 16]);
    let eve = node.attach("eve", false, key).expect("free");
    let refused = node.ask(assign(&eve, new(view.room))).expect_err("not hers");
    assert_eq!(refused, Refused::NotYours);
    let refused = node.ask(update(&eve, nothing(hidden.task))).expect_err("not hers");
    assert_eq!(refused, Refused::NotYours);
    let listed = Command::ListTasks { by: key.into(), room: view.room, status: None };
    assert_eq!(node.ask(listed).expect_err("not hers"), Refused::NotYours);
    // Whoever may read the room may list its tasks, a member or not.
    assert_eq!(tasks(node.ask(list(view.room, None))), [hidden]);
}

#[test]
fn what_is_not_acceptable_is_named() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let long = |n: usize| "x".repeat(n);
    let bad = [
        (Field::Title, NewTask { title: " \n".to_owned(), ..new(room) }),
        (Field::Title, NewTask { title: long(1_025), ..new(room) }),
        (Field::Description, NewTask { description: Some(long(10_001)), ..new(room) }),
        (Field::Assignee, NewTask { assignee: Some("".into()), ..new(room) }),
        (Field::Assignee, NewTask { assignee: Some(long(129).into()), ..new(room) }),
    ];
    for (field, task) in bad {
        assert_eq!(broken(node.ask(assign(&ann, task))), field);
    }
    let good = NewTask {
        title: long(1_024),
        description: Some(long(10_000)),
        assignee: Some(long(128).into()),
        ..new(room)
    };
    let made = task(node.ask(assign(&ann, good)));
    let bad = [
        (Field::Note, TaskUpdate { note: Some(long(4_097)), ..nothing(made.task) }),
        (Field::Assignee, TaskUpdate { assignee: Some(Some("".into())), ..nothing(made.task) }),
        (Field::Holder, TaskUpdate { if_assignee: Some(Some("".into())), ..nothing(made.task) }),
    ];
    for (field, change) in bad {
        assert_eq!(broken(node.ask(update(&ann, change))), field);
    }
    assert_eq!(tasks(node.ask(list(room, None))), [made], "nothing half done stays behind");
}

#[test]
fn of_two_claims_at_once_on_two_nodes_exactly_one_is_granted() {
    let mut mesh = World::new(3);
    let (room, agents) = (mesh.lobby(), mesh.callers.clone());
    let made = task(mesh.ask(0, assign(&agents[0], new(room))));
    let calls: Vec<_> = (1..3)
        .map(|i| (i, mesh.begin(i, update(&agents[i], claim(made.task, &agents[i], None)))))
        .collect();
    assert!(calls.iter().all(|(i, call)| mesh.reply(*i, *call).is_none()), "it takes a round trip");
    mesh.carry();
    let replies: Vec<_> =
        calls.iter().map(|(i, call)| mesh.reply(*i, *call).expect("answered")).collect();
    let won: Vec<TaskView> = replies
        .iter()
        .filter_map(|it| if let Ok(Outcome::Task(view)) = it { Some(*view.clone()) } else { None })
        .collect();
    let [won] = &won[..] else { panic!("{replies:?}") };
    let lost = Refused::Held { holder: won.assignee.clone() };
    assert!(replies.iter().any(|it| it.as_ref().err() == Some(&lost)), "{replies:?}");
    for i in 0..3 {
        assert_eq!(tasks(mesh.ask(i, list(room, None)))[0], *won, "node {i}");
        let told = told(std::mem::take(&mut mesh.told[i]));
        assert_eq!(told, [(true, made.clone()), (false, won.clone())], "node {i}");
        assert_eq!(mesh.nodes[i].engine.known.rooms[&room].order.numbering.current(), Era::HOME);
    }
}

#[test]
fn at_the_sequencers_own_node_a_claim_is_answered_at_once() {
    let (mut node, ann, bob) = alone();
    let room = node.lobby();
    let made = task(node.ask(assign(&ann, new(room))));
    let mine = task(node.ask(update(&ann, claim(made.task, &ann, None))));
    assert_eq!(mine.assignee, Some(ann.agent.clone()));
    node.ask(Command::Join { caller: bob.clone(), room }).expect("it is public");
    let refused = node.ask(update(&bob, claim(made.task, &bob, None))).expect_err("it is held");
    assert_eq!(refused, Refused::Held { holder: Some(ann.agent.clone()) });
    let taken = task(node.ask(update(&bob, claim(made.task, &bob, Some(&ann)))));
    assert_eq!(taken.assignee, Some(bob.agent.clone()));
    // Without a condition an update reassigns, as ever.
    let back = TaskUpdate { assignee: Some(Some(ann.agent.clone())), ..nothing(made.task) };
    assert_eq!(task(node.ask(update(&ann, back))).assignee, Some(ann.agent));
}

/// After a start an answer counts from whoever was the sequencer when it was written, and from nobody
/// else, though the era has another one by now.
#[test]
fn an_answer_of_a_former_sequencer_counts_after_a_start_and_a_strangers_does_not() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let made = task(node.ask(assign(&ann, new(room))));
    let engine = &mut node.engine;
    let state = engine.known.rooms.get_mut(&room).expect("the lobby");
    let log = |seed| LogId { author: super::identity(seed).node_id(), incarnation: 0 };
    let over =
        state.hand_over(&mut engine.known.cx, Era::HOME, log(2)).expect("it was this node's");
    let former = EntryRef { log: state.replica.mine, seq: over };
    assert_eq!(state.order.numbering.eras[&Era::HOME].record.former, [former]);
    let task = engine.known.index.tasks[&made.task].1;
    let logs = [3, 2].map(|seed| state.replica.logs.ensure(log(seed)).expect("a few"));
    let [stranger, successor] = logs;
    let mine = state.replica.logs.ix(state.replica.mine).expect("it has written");
    let mut clock = 100;
    let mut holder_after = |log, seq, by| {
        clock += 1;
        let holder: AgentId = format!("agent{clock}").into();
        let update = TaskUpdated {
            assignee: Some(Some(holder.clone())),
            ..TaskUpdated::of(task, "ann".into())
        };
        let claim = EntryRef { seq: 900, ..task };
        let grant =
            Grant { era: Era::HOME, claim, update: Some(update), holder: None, by, status: None };
        let facts = Facts { clock, wall_ms: 0, kind: 50, visible: false };
        let at = LocalRef { log, seq };
        state.refold_act(&engine.known.cx, at, facts, Act::Task(TaskAct::Granted(grant)));
        state.folds.tasks.view(task).expect("it is there").assignee == Some(holder)
    };
    let by = Some(former);
    assert!(!holder_after(stranger, 1, None) && !holder_after(stranger, 1, by));
    assert!(holder_after(successor, 1, by));
    assert!(!holder_after(successor, 1, None), "before it was given the era");
    assert!(holder_after(mine, over - 1, None), "before it gave the era away");
    assert!(!holder_after(mine, over + 1, None), "after that");
}

/// Numbers, answers and handovers of who was handed an era name the handover.
#[test]
fn what_a_successor_writes_names_the_handover() {
    let (founder, heir) = (super::asking::log(super::asking::FOUNDER), super::asking::log(7));
    let mut node = Node::new(2);
    node.give(Input::PeerUp(founder.author));
    let over = HandedOver { era: Era::HOME, next: 1, to: super::asking::log(2), by: None };
    let (_, run) =
        super::world::Liar::new(super::asking::FOUNDER).write(&node, &Body::HandedOver(over));
    node.hear(&run);
    node.wait(Duration::from_secs(5));
    let (room, ann) = (node.lobby(), node.joins("me"));
    node.say(&ann, room).expect("a number");
    let made = task(node.ask(assign(&ann, new(room))));
    task(node.ask(update(&ann, claim(made.task, &ann, None))));
    let engine = &mut node.engine;
    let state = engine.known.rooms.get_mut(&room).expect("the lobby");
    state.hand_over(&mut engine.known.cx, Era::HOME, heir).expect("it is this node's");
    node.turn();
    let own = node.engine.known.rooms[&room].replica.logs.ix(super::asking::log(2));
    let said: Vec<Body> = node
        .rows
        .iter()
        .filter_map(|it| match it {
            Change::Entry { room: of, at, entry } if *of == room && Some(at.log) == own => {
                Some(Body::decode(entry.facts.kind, &entry.body))
            }
            _ => None,
        })
        .collect();
    let by = Some(EntryRef { log: founder, seq: 1 });
    let count = |what: &dyn Fn(&Body) -> bool| said.iter().filter(|it| what(it)).count();
    assert_eq!(count(&|it| matches!(it, Body::Ordered(it) if it.by == by)), 1);
    assert_eq!(count(&|it| matches!(it, Body::Task(TaskAct::Granted(it)) if it.by == by)), 1);
    assert_eq!(count(&|it| matches!(it, Body::HandedOver(it) if it.by == by)), 1);
}

#[test]
fn a_claim_whose_sequencer_died_is_answered_by_who_takes_over() {
    let mut mesh = World::new(3);
    let (room, agents) = (mesh.lobby(), mesh.callers.clone());
    let made = task(mesh.ask(1, assign(&agents[1], new(room))));
    mesh.down.insert(0);
    let call = mesh.begin(1, update(&agents[1], claim(made.task, &agents[1], None)));
    mesh.pass(STEP * 10);
    assert!(mesh.reply(1, call).is_none(), "nobody may take over yet");
    mesh.pass(STEP * 40);
    let won = task(mesh.reply(1, call).expect("answered by now"));
    assert_eq!(won.assignee, Some(agents[1].agent.clone()));
    for i in 1..3 {
        let room = &mesh.nodes[i].engine.known.rooms[&room];
        assert!(room.order.numbering.current() > Era::HOME && !room.is_busy(), "node {i}");
    }
}

/// So that nobody opens an era because a claim, or its answer, got lost on the way.
#[test]
fn who_waits_for_the_answer_to_a_claim_compares_what_it_has_with_the_sequencer() {
    let mut mesh = World::new(2);
    let (room, agents) = (mesh.lobby(), mesh.callers.clone());
    let made = task(mesh.ask(1, assign(&agents[1], new(room))));
    let sequencer = mesh.nodes[0].engine.known.cx.me;
    let node = &mut mesh.nodes[1];
    node.give(Input::PeerUp(sequencer));
    node.begin(update(&agents[1], claim(made.task, &agents[1], None)));
    node.effects.clear();
    let compares = |it: Effect| {
        let Effect::Send { to, message: Message::Have { room: of, answer, .. } } = it else {
            return false;
        };
        (to, of, answer) == (sequencer, room, true)
    };
    let mut compared = Vec::new();
    for step in 1..=10 {
        node.now.mono += STEP;
        node.give(Input::Timeout);
        if std::mem::take(&mut node.effects).into_iter().any(compares) {
            compared.push(STEP * step);
        }
    }
    assert_eq!(compared, [ASK_AFTER]);
}

#[test]
fn claims_won_on_both_sides_of_a_split_are_contested_when_it_heals() {
    let mut mesh = World::new(2);
    let (room, agents) = (mesh.lobby(), mesh.callers.clone());
    let made = task(mesh.ask(0, assign(&agents[0], new(room))));
    mesh.groups = vec![0, 1];
    let calls: Vec<_> = (0..2)
        .map(|i| mesh.begin(i, update(&agents[i], claim(made.task, &agents[i], None))))
        .collect();
    mesh.pass(STEP * 50);
    for (i, call) in calls.into_iter().enumerate() {
        let won = task(mesh.reply(i, call).expect("each side goes on by itself"));
        assert_eq!(won.assignee, Some(agents[i].agent.clone()));
    }
    mesh.groups = vec![0, 0];
    mesh.pass(STEP * 20);
    let views: Vec<TaskView> =
        (0..2).map(|i| tasks(mesh.ask(i, list(room, None))).remove(0)).collect();
    assert_eq!(views[0], views[1]);
    assert_eq!(views[0].contested, ["assignee"]);
    // Whoever sees both decides.
    let holder = views[0].assignee.clone();
    let decide = TaskUpdate { assignee: Some(holder.clone()), ..nothing(made.task) };
    let decided = task(mesh.ask(0, update(&agents[0], decide)));
    assert_eq!((decided.assignee, decided.contested.len()), (holder, 0));
}

#[test]
fn a_room_that_ends_takes_its_tasks_with_it() {
    let (mut node, ann, _) = alone();
    let fleeting = NewRoom {
        name: "fleeting".to_owned(),
        description: None,
        parent: None,
        ephemeral: true,
        public: true,
        encrypted: false,
    };
    let created = node.ask(Command::CreateRoom { caller: ann.clone(), room: fleeting });
    let Ok(Outcome::Room(view)) = created else { panic!("{created:?}") };
    node.ask(Command::Join { caller: ann.clone(), room: view.room }).expect("it is public");
    let made = task(node.ask(assign(&ann, new(view.room))));
    assert_eq!(tasks(node.ask(list(view.room, None))).len(), 1);
    node.ask(Command::Leave { caller: ann.clone(), room: view.room }).expect("a member");
    assert_eq!(node.ask(update(&ann, nothing(made.task))).expect_err("gone"), Refused::NoTask);
    assert!(node.engine.known.index.tasks.is_empty());
}

#[test]
fn tasks_and_open_claims_are_there_after_a_restart_and_nobody_is_told_again() {
    let mut mesh = World::new(2);
    let (room, agents) = (mesh.lobby(), mesh.callers.clone());
    let made = task(mesh.ask(1, assign(&agents[1], new(room))));
    let noted = TaskUpdate { note: Some("so far".to_owned()), ..nothing(made.task) };
    let noted = task(mesh.ask(0, update(&agents[0], noted)));
    mesh.groups = vec![0, 1];
    mesh.begin(1, update(&agents[1], claim(made.task, &agents[1], None)));
    mesh.carry();
    mesh.told[1].clear();
    mesh.restart(1);
    assert_eq!(tasks(mesh.ask(1, list(room, None))), [noted]);
    assert_eq!(told(std::mem::take(&mut mesh.told[1])), []);
    assert!(
        mesh.nodes[1].engine.known.rooms[&room].folds.tasks.is_waiting(),
        "the claim still waits"
    );
    mesh.groups = vec![0, 0];
    mesh.pass(STEP * 10);
    assert_eq!(tasks(mesh.ask(1, list(room, None)))[0].assignee, Some(agents[1].agent.clone()));
    assert!(!mesh.nodes[1].engine.known.rooms[&room].folds.tasks.is_waiting());
    // A second start reads its own answer back.
    for i in 0..2 {
        mesh.restart(i);
        let view = tasks(mesh.ask(i, list(room, None))).remove(0);
        assert_eq!(view.assignee, Some(agents[1].agent.clone()), "node {i}");
    }
}
