//! Fields that only some dialects have, comments, and tasks that are deleted.

use super::*;
use crate::{limits::TASK_COMMENTS_MAX, wire::tasks::CommentKind};

#[test]
fn each_field_is_contested_by_itself_and_settled_by_who_saw_both() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    assert_eq!(a.shows(task).priority, 1, "medium");
    b.hear(&a);
    a.update(with(task, |fields| {
        fields.priority = Some(3);
        fields.labels = Some(vec!["red".to_owned()]);
    }));
    b.update(with(task, |fields| {
        fields.priority = Some(2);
        fields.due_ms = Some(77);
        fields.description = Some("thus".to_owned());
    }));
    meet(&mut a, &mut b);
    let view = a.shows(task);
    assert_eq!(view, b.shows(task));
    assert_eq!(
        (&*view.contested, &*view.labels, view.due_ms),
        (&["priority"][..], &["red".to_owned()][..], Some(77))
    );
    a.update(with(task, |fields| {
        fields.priority = Some(0);
        fields.due_ms = Some(0);
        fields.description = Some(String::new());
    }));
    b.hear(&a);
    let view = b.shows(task);
    assert_eq!((view.priority, view.due_ms, view.description), (0, None, None));
    assert!(view.contested.is_empty());
}

#[test]
fn a_task_is_held_by_nobody_again() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    a.update(held_by(task, "bob"));
    a.update(TaskUpdated { assignee: Some(None), ..nothing(task) });
    assert_eq!(a.holder(task), None);
    a.claim(task, "eve", None);
    a.answer(Era::HOME);
    assert_eq!(a.holder(task).as_deref(), Some("eve"));
}

#[test]
fn a_claim_that_names_a_state_is_granted_in_that_state_alone() {
    let mut a = Replica::new(1);
    let task = a.assign("do it");
    a.update(TaskUpdated { status: Some(TaskStatus::InReview), ..held_by(task, "bob") });
    let decides = |status| {
        TaskAct::Claimed(TaskClaimed {
            update: in_status(task, status),
            if_assignee: Some("bob".into()),
            era: Era::HOME,
            key: None,
            if_status: Some(TaskStatus::InReview),
        })
    };
    a.write(decides(TaskStatus::Completed));
    a.write(decides(TaskStatus::Cancelled));
    a.answer(Era::HOME);
    assert_eq!(a.shows(task).status, TaskStatus::Completed, "the first that came");
    let answers = a.answers();
    assert!(matches!(answers[0], Answer::Granted(_)), "{answers:?}");
    assert_eq!(answers[1..], [Answer::Stands(TaskStatus::Completed)]);
}

#[test]
fn the_newest_comments_are_remembered_whoever_read_them_in_whatever_order() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    for n in 0..TASK_COMMENTS_MAX {
        a.update(noted(task, &format!("a{n}")));
        let comment = TaskUpdated { kind: CommentKind::Blocker, ..noted(task, &format!("b{n}")) };
        b.update(comment);
    }
    b.update(noted(task, &"x".repeat(4_096)));
    meet(&mut a, &mut b);
    let comments = |of: &Replica| of.tasks.record(task).expect("it is there").comments;
    assert_eq!(comments(&a), comments(&b));
    assert_eq!(comments(&a).len(), TASK_COMMENTS_MAX);
    let last = &comments(&a)[TASK_COMMENTS_MAX - 2..];
    assert_eq!((&*last[0].text, last[0].kind), ("b199", CommentKind::Blocker));
    assert_eq!(last[1].text.len(), 4_096);
    assert_eq!(a.tasks.bytes, a.tasks.all.values().map(Task::bytes).sum::<usize>());
}

/// A short one would fit in the place of a long one that was forgotten for it, where it comes late.
#[test]
fn a_comment_that_comes_late_is_not_remembered_in_the_place_of_a_later_one() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    b.hear(&a);
    b.update(noted(task, "short"));
    a.update(in_status(task, TaskStatus::Blocked));
    for _ in 0..16 {
        a.update(noted(task, &"x".repeat(4_096)));
    }
    a.update(noted(task, &"y".repeat(4_000)));
    meet(&mut a, &mut b);
    let count = |of: &Replica| of.shows(task).comments;
    assert_eq!((count(&a), count(&b)), (16, 16));
    assert_eq!(a.tasks.record(task), b.tasks.record(task));
}

#[test]
fn a_deleted_task_stays_away_whatever_else_was_written() {
    let (mut a, mut b) = (Replica::new(1), Replica::new(2));
    let task = a.assign("do it");
    a.update(in_status(task, TaskStatus::Completed));
    b.hear(&a);
    a.write(TaskAct::Deleted(TaskDeleted { task, by: "ann".into() }));
    b.update(in_status(task, TaskStatus::Pending));
    b.claim(task, "bob", None);
    meet(&mut a, &mut b);
    for node in [&mut a, &mut b] {
        assert_eq!((node.tasks.view(task), node.tasks.newest(None)), (None, Vec::new()));
        assert_eq!(node.tasks.first(), None);
        assert!(!node.tasks.is_waiting());
    }
    assert_eq!(b.answers(), [Answer::Forgotten]);
    assert_eq!(a.tasks.next_n(), 1, "the made ones here have no numbers");
}
