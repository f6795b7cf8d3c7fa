//! States by steps, reviews, and tasks that are deleted.

use super::*;
use crate::{
    api::{
        agenda::{TaskField, TaskRecord},
        command::CallId,
    },
    wire::tasks::{CommentKind, TaskFields},
};

fn becomes(task: MessageId, to: TaskStatus) -> TaskUpdate {
    TaskUpdate { status: Some(to), by_steps: true, ..TaskUpdate::of(task) }
}

fn delete(caller: &Caller, task: MessageId) -> Command {
    Command::DeleteTask { caller: caller.clone(), task }
}

fn record(result: Result<Outcome, Refused>) -> TaskRecord {
    match result {
        Ok(Outcome::TaskRecord(record)) => *record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_keeps_to_the_steps_is_refused_others_and_who_does_not_is_not() {
    let (mut node, ann, _) = alone();
    let made = task(node.ask(assign(&ann, new(node.lobby())))).task;
    let stands = |is, to| Err(Refused::Stands { is, to: Some(to) });
    let review = update(&ann, becomes(made, TaskStatus::InReview));
    assert_eq!(node.ask(review).map(drop), stands(TaskStatus::Pending, TaskStatus::InReview));
    // Who takes it may begin, or end, in one go.
    let takes = TaskUpdate {
        assignee: Some(Some(ann.agent.clone())),
        ..becomes(made, TaskStatus::InReview)
    };
    assert_eq!(task(node.ask(update(&ann, takes))).status, TaskStatus::InReview);
    let back = update(&ann, becomes(made, TaskStatus::Blocked));
    assert_eq!(node.ask(back).map(drop), stands(TaskStatus::InReview, TaskStatus::Blocked));
    let cancelled = task(node.ask(update(&ann, becomes(made, TaskStatus::Cancelled))));
    assert_eq!(cancelled.status, TaskStatus::Cancelled);
    let at_will = TaskUpdate { status: Some(TaskStatus::Blocked), ..TaskUpdate::of(made) };
    assert_eq!(task(node.ask(update(&ann, at_will))).status, TaskStatus::Blocked);
}

#[test]
fn tasks_are_listed_by_the_states_that_all_clients_know() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let made = task(node.ask(assign(&ann, new(room)))).task;
    let failed = TaskUpdate { status: Some(TaskStatus::Failed), ..TaskUpdate::of(made) };
    task(node.ask(update(&ann, failed)));
    assert_eq!(tasks(node.ask(list(room, Some(TaskStatus::Blocked)))).len(), 1);
    assert_eq!(tasks(node.ask(list(room, Some(TaskStatus::Completed)))).len(), 0);
}

#[test]
fn of_two_that_decide_at_once_one_is_told_that_it_is_decided() {
    let mut mesh = World::new(2);
    let (room, ann, bob) = (mesh.lobby(), mesh.callers[0].clone(), mesh.callers[1].clone());
    let made = task(mesh.ask(0, assign(&ann, new(room)))).task;
    let review = TaskUpdate {
        status: Some(TaskStatus::InReview),
        assignee: Some(Some(bob.agent.clone())),
        ..TaskUpdate::of(made)
    };
    task(mesh.ask(1, update(&bob, review)));
    mesh.pass(STEP * 10);
    let decides = |to| TaskUpdate {
        if_assignee: Some(Some(bob.agent.clone())),
        if_status: Some(TaskStatus::InReview),
        ..becomes(made, to)
    };
    let first = mesh.begin(0, update(&ann, decides(TaskStatus::Completed)));
    let second = mesh.begin(1, update(&bob, decides(TaskStatus::Cancelled)));
    mesh.pass(STEP * 40);
    let answers = [mesh.reply(0, first), mesh.reply(1, second)].map(|it| it.expect("answered"));
    let granted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(granted, 1, "{answers:?}");
    let is = task(mesh.ask(0, update(&ann, TaskUpdate::of(made)))).status;
    let refused = answers.into_iter().find_map(Result::err).expect("the other one");
    assert_eq!(refused, Refused::Stands { is, to: None });
}

#[test]
fn numbers_comments_and_changes_are_there_to_be_read_at_all_nodes() {
    let mut mesh = World::new(2);
    let (room, ann, bob) = (mesh.lobby(), mesh.callers[0].clone(), mesh.callers[1].clone());
    let first = task(mesh.ask(0, assign(&ann, new(room))));
    mesh.pass(STEP * 10);
    let second = task(mesh.ask(1, assign(&bob, new(room))));
    assert_eq!((first.facts.n, second.facts.n), (1, 2));
    let says = TaskUpdate {
        note: Some("it waits".to_owned()),
        kind: CommentKind::Blocker,
        fields: Box::new(TaskFields { priority: Some(3), ..TaskFields::default() }),
        ..TaskUpdate::of(first.task)
    };
    task(mesh.ask(1, update(&bob, says)));
    mesh.pass(STEP * 10);
    let read = |by: &Caller, task| Command::ReadTask { by: by.reader(), room, task };
    let records = [0, 1].map(|i| record(mesh.ask(i, read([&ann, &bob][i], first.task))));
    assert_eq!(records[0], records[1]);
    let [comment] = &*records[0].comments else { panic!("{records:?}") };
    assert_eq!((&*comment.by, &*comment.text), (&*bob.agent, "it waits"));
    let last = records[0].writes.last().expect("two");
    assert_eq!(
        (&*last.by, &*last.fields),
        (&*bob.agent, &[TaskField::Note, TaskField::Priority][..])
    );
    let elsewhere = Command::ReadTask { by: ann.reader(), room: RoomId([9; 16]), task: first.task };
    assert_eq!(mesh.ask(0, elsewhere).map(drop), Err(Refused::NoRoom));
}

#[test]
fn a_task_is_deleted_at_its_end_by_its_maker_or_the_key_of_its_room() {
    let mut mesh = World::new(2);
    let (room, ann, bob) = (mesh.lobby(), mesh.callers[0].clone(), mesh.callers[1].clone());
    let made = task(mesh.ask(0, assign(&ann, new(room)))).task;
    mesh.pass(STEP * 10);
    let open = Refused::Stands { is: TaskStatus::Pending, to: None };
    assert_eq!(mesh.ask(0, delete(&ann, made)).map(drop), Err(open));
    assert_eq!(mesh.ask(1, delete(&bob, made)).map(drop), Err(Refused::NotYours));
    let done = TaskUpdate { status: Some(TaskStatus::Completed), ..TaskUpdate::of(made) };
    task(mesh.ask(1, update(&bob, done)));
    mesh.pass(STEP * 10);
    assert!(matches!(mesh.ask(0, delete(&ann, made)), Ok(Outcome::Done)));
    mesh.pass(STEP * 10);
    for (i, by) in [&ann, &bob].into_iter().enumerate() {
        assert_eq!(tasks(mesh.ask(i, list(room, None))), []);
        let gone = mesh.ask(i, update(by, TaskUpdate::of(made))).map(drop);
        assert_eq!(gone, Err(Refused::NoTask));
    }
    mesh.restart(1);
    let gone = mesh.ask(1, Command::ReadTask { by: KEY.into(), room, task: made }).map(drop);
    assert_eq!(gone, Err(Refused::NoTask), "nor after a start");
}

/// Commands that came together are handled in one turn: the refusals, and how many entries were written.
fn at_once<const N: usize>(
    node: &mut Node,
    commands: [Command; N],
) -> ([Option<Refused>; N], usize) {
    let rows = node.rows.len();
    let calls = commands.map(|command| {
        node.calls += 1;
        let call = CallId(node.calls);
        node.engine.handle(node.now, Input::Command { call, command });
        call
    });
    node.turn();
    let is_entry = |row: &&Change| matches!(row, Change::Entry { .. });
    let written = node.rows[rows..].iter().filter(is_entry).count();
    let refused = |call| node.reply(call).expect("every call is answered").err();
    (calls.map(refused), written)
}

#[test]
fn a_claim_that_comes_with_the_end_of_its_task_is_answered_and_writes_nothing() {
    let (mut node, ann, _) = alone();
    let made = task(node.ask(assign(&ann, new(node.lobby())))).task;
    let done = TaskUpdate { status: Some(TaskStatus::Completed), ..nothing(made) };
    task(node.ask(update(&ann, done)));
    let takes = update(&ann, claim(made, &ann, None));
    let notes = update(&ann, TaskUpdate { note: Some("too late".to_owned()), ..nothing(made) });
    let (answers, written) = at_once(&mut node, [delete(&ann, made), takes, notes]);
    assert_eq!(answers, [None, Some(Refused::NoTask), Some(Refused::NoTask)]);
    assert_eq!(written, 1, "the deletion alone");
}

#[test]
fn a_claim_that_comes_with_the_task_for_which_its_own_is_forgotten_is_answered() {
    let (mut node, ann, _) = alone();
    let room = node.lobby();
    let first = task(node.ask(assign(&ann, new(room)))).task;
    for _ in 1..TASKS_PER_LOG_MAX {
        task(node.ask(assign(&ann, new(room))));
    }
    let done = TaskUpdate { status: Some(TaskStatus::Completed), ..nothing(first) };
    task(node.ask(update(&ann, done)));
    let takes = update(&ann, claim(first, &ann, None));
    let (answers, written) = at_once(&mut node, [assign(&ann, new(room)), takes]);
    assert_eq!(answers, [None, Some(Refused::NoTask)]);
    assert_eq!(written, 1, "the new task alone");
}
