//! Acts that count by more than the acts themselves.

use super::*;
use crate::{
    name::id::MeshId,
    wire::{
        acts::{Grant, TaskAssigned, TaskClaimed, TaskUpdated},
        once::{OnceAnswer, OnceAsked, OnceWish},
    },
};

fn log(author: NodeId) -> LogId {
    LogId { author, incarnation: 0 }
}

fn room(cx: &mut Context, home: LogId) -> Room {
    let record = RoomRecord::new(MeshId([1; 16]), home);
    Room::new(cx, RoomId([3; 16]), record, home)
}

#[test]
fn an_answer_to_a_claim_of_somebody_who_is_not_the_sequencer_has_no_effect() {
    let me = NodeId([1; 32]);
    let mut cx = Context::alone(me);
    let mut room = room(&mut cx, log(me));
    let assigned = TaskAct::Assigned(TaskAssigned::of("do it", "ann".into()));
    let made = room.append(&mut cx, &Body::Task(assigned)).expect("there is room");
    let task = room.replica.name_of(made);
    let (status, note) = (None, None);
    let assignee = Some(Some("eve".into()));
    let update = TaskUpdated { status, assignee, note, ..TaskUpdated::of(task, "eve".into()) };
    let claimed = TaskAct::Claimed(TaskClaimed {
        update,
        if_assignee: None,
        era: Era::HOME,
        key: None,
        if_status: None,
    });
    let claim = room.append(&mut cx, &Body::Task(claimed)).expect("there is room");
    let claim = room.replica.name_of(claim);
    let grant = room.folds.tasks.answer(claim, Era::HOME, None).expect("it is open");
    let stranger = room.replica.logs.ensure(log(NodeId([2; 32]))).expect("there is room");
    let mut answer = |log, grant: Grant| {
        let facts = Facts { clock: 9, wall_ms: 0, kind: 50, visible: false };
        let act = Act::Task(TaskAct::Granted(grant));
        room.fold_act(&mut cx, LocalRef { log, seq: 9 }, facts, act);
        (cx.faults.void, room.folds.has_asks())
    };
    assert_eq!(answer(stranger, grant.clone()), (1, true), "the claim waits on");
    let mine = made.log;
    assert_eq!(answer(mine, grant), (1, false));
}

#[test]
fn an_answer_of_somebody_who_is_not_the_sequencer_grants_nothing() {
    let me = NodeId([1; 32]);
    let mut cx = Context::alone(me);
    let mut room = room(&mut cx, log(me));
    let asked = OnceAct::Asked(OnceAsked {
        subject: "deploy".to_owned(),
        by: "eve".into(),
        wish: OnceWish::Take(None),
        era: Era::HOME,
        key: None,
    });
    let asked = room.append(&mut cx, &Body::Once(asked)).expect("there is room");
    let place = room.replica.name_of(asked);
    room.folds.onces.judge(|_| true);
    let answer = room.folds.onces.answer(place, Era::HOME, None, cx.now).expect("it is open");
    let stranger = room.replica.logs.ensure(log(NodeId([2; 32]))).expect("there is room");
    let mut answered = |log, answer: OnceAnswer| {
        let facts = Facts { clock: 9, wall_ms: 0, kind: 52, visible: false };
        let act = Act::Once(OnceAct::Answered(answer));
        room.fold_act(&mut cx, LocalRef { log, seq: 9 }, facts, act);
        (cx.faults.void, room.folds.onces.holder("deploy").is_some())
    };
    assert_eq!(answered(stranger, answer.clone()), (1, false), "the ask waits on");
    assert_eq!(answered(asked.log, answer), (1, true));
}
