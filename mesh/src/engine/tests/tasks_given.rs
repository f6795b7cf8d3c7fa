//! Tasks that one agent gives to another: their time, and the end of their rooms.

use super::{
    pairs::{Two, signer},
    world::STEP,
    *,
};
use crate::{
    api::{
        agenda::{GivenAct, NewTask, TaskUpdate, TaskView},
        command::{InboxAct, RoomView},
    },
    limits::{PRUNE_EVERY, PRUNE_FIRST_AFTER},
    name::group::TaskSeed,
    wire::{
        acts::TaskStatus,
        given::{Chosen, FirstAsked, TaskTerms},
    },
};

const SECOND: Duration = Duration::from_secs(1);

fn terms(run: Option<Duration>, keeps: bool) -> TaskTerms {
    let run_ms = run.map(|run| u64::try_from(run.as_millis()).expect("short"));
    TaskTerms { run_ms, keeps, depth: 1, chosen: None, name: None }
}

impl Two {
    /// Ann gives Bob a task in a room of its own. Both have inboxes.
    fn give(&mut self, seed: u8, terms: TaskTerms) -> (RoomId, TaskView) {
        let (ann, bob) = (self.ann.clone(), self.bob.clone());
        self.world.inbox(0, &ann, InboxAct::File(Vec::new()));
        self.world.inbox(1, &bob, InboxAct::File(Vec::new()));
        let command = Command::OpenDirect {
            caller: ann.clone(),
            signer: signer(ann.key),
            agent: "bob".into(),
            task: Some(TaskSeed([seed; 16])),
        };
        let call = self.world.begin(0, command);
        self.world.carry();
        self.world.pass(STEP * 15);
        let Some(Ok(Outcome::Room(RoomView { room, .. }))) = self.world.reply(0, call) else {
            panic!("a room");
        };
        let assignee = Some("bob".into());
        let task = NewTask { assignee, ..NewTask::of(room, "dig") };
        let made = self.world.ask(0, Command::AssignTask { caller: ann.clone(), task });
        let Ok(Outcome::Task(task)) = made else { panic!("{made:?}") };
        self.given(0, room, GivenAct::Terms(terms)).expect("it is hers");
        self.says(0, &ann, room, "dig");
        (room, *task)
    }

    fn given(&mut self, n: usize, room: RoomId, act: GivenAct) -> Result<(), Refused> {
        let caller = if n == 0 { self.ann.clone() } else { self.bob.clone() };
        let call = self.world.begin(n, Command::Given { caller, room, act });
        self.world.carry();
        self.world.pass(STEP * 5);
        self.world.reply(n, call).expect("it is answered").map(drop)
    }

    fn end(&mut self, task: &TaskView, status: TaskStatus) -> Result<(), Refused> {
        let update = TaskUpdate { status: Some(status), ..TaskUpdate::of(task.task) };
        let ended = self.world.ask(1, Command::UpdateTask { caller: self.bob.clone(), update });
        self.world.pass(STEP * 15);
        ended.map(drop)
    }

    fn closes_after(&mut self, time: Duration) {
        let engine = &mut self.world.nodes[0].engine;
        engine.known.config.archive_after = time;
        engine.given.note_all(&engine.known, &engine.inboxes);
    }

    fn task(&self, n: usize, room: RoomId) -> TaskView {
        self.world.nodes[n].engine.known.rooms[&room].folds.tasks.first().expect("it is here").1
    }

    /// How many items of Ann's inbox tell of a task without an answer.
    fn notices(&self) -> usize {
        let items = self.world.items(0, "ann");
        items.iter().filter(|(_, number)| *number == Some(Number::ZERO)).count()
    }

    fn lists(&mut self, n: usize, room: RoomId) -> Option<RoomView> {
        let by = if n == 0 { self.ann.reader() } else { self.bob.reader() };
        self.world.listed(n, &by).into_iter().find(|view| view.room == room)
    }

    fn refuses(&mut self, n: usize, room: RoomId) -> Refused {
        let caller = if n == 0 { self.ann.clone() } else { self.bob.clone() };
        self.world.says(n, &caller, room, "more").expect_err("it is closed")
    }
}

#[test]
fn a_task_whose_time_is_up_is_blocked_once_and_the_inbox_says_so_also_after_a_restart() {
    let (mut two, _) = Two::talking();
    let (room, _) = two.give(1, terms(Some(SECOND * 60), false));
    two.world.pass(SECOND * 30);
    assert_eq!((two.task(0, room).status, two.notices()), (TaskStatus::Pending, 0), "not yet");
    two.world.restart_reading(0);
    two.world.pass(SECOND * 40);
    for n in [0, 1] {
        let task = two.task(n, room);
        assert_eq!((task.status, task.marks.ran_out), (TaskStatus::Blocked, true), "node {n}");
    }
    assert_eq!(two.notices(), 1, "in the turn in which it was blocked");
    two.world.restart_reading(0);
    two.world.pass(SECOND * 120);
    assert_eq!(two.notices(), 1, "once");
    assert!(two.world.items(1, "bob").iter().all(|(_, number)| *number != Some(Number::ZERO)));
}

#[test]
fn a_task_that_ended_in_time_never_runs_out() {
    let (mut two, _) = Two::talking();
    let (room, task) = two.give(1, terms(Some(SECOND * 60), false));
    two.end(&task, TaskStatus::Completed).expect("it is his");
    two.world.pass(SECOND * 120);
    let task = two.task(0, room);
    assert_eq!((task.status, task.marks.ran_out), (TaskStatus::Completed, false));
    assert_eq!(two.notices(), 0);
}

#[test]
fn a_room_whose_result_was_read_is_gone_and_its_bodies_with_it() {
    let (mut two, _) = Two::talking();
    let (room, task) = two.give(1, terms(None, false));
    assert_eq!(two.given(0, room, GivenAct::HasResult), Ok(()), "there is none yet");
    assert!(two.lists(0, room).is_some());
    assert_eq!(two.given(1, room, GivenAct::HasResult), Err(Refused::NotYours), "not his to close");
    two.end(&task, TaskStatus::Completed).expect("it is his");
    two.given(0, room, GivenAct::HasResult).expect("it has ended");
    two.world.pass(SECOND * 2);
    for n in [0, 1] {
        assert!(two.lists(n, room).is_none(), "node {n}");
        assert_eq!(two.refuses(n, room), Refused::NoRoom, "node {n}");
    }
    two.world.restart_reading(0);
    assert_eq!(two.world.nodes[0].engine.known.view(room), None, "after a restart, too");
    two.world.pass(PRUNE_FIRST_AFTER + PRUNE_EVERY * 40);
    for n in [0, 1] {
        let prunes = two.world.nodes[n].rows.iter().filter_map(|change| match change {
            Change::Prune { room: of, before_ms } if *of == room => Some(*before_ms),
            _ => None,
        });
        let latest = prunes.max().expect("its bodies are dropped");
        assert!(latest > task.created_ms + 60_000, "node {n}: also young ones");
    }
}

#[test]
fn a_room_that_is_kept_is_closed_some_time_after_its_end_and_can_be_read() {
    let (mut two, _) = Two::talking();
    let (room, task) = two.give(1, terms(None, true));
    two.closes_after(SECOND * 60);
    two.end(&task, TaskStatus::Completed).expect("it is his");
    two.given(0, room, GivenAct::HasResult).expect("it has ended");
    two.world.pass(SECOND * 30);
    let view = two.lists(0, room).expect("it is kept");
    assert!(!view.closed, "not yet");
    two.world.restart_reading(0);
    two.closes_after(SECOND * 60);
    two.ann = two.world.come(0, "ann", two.ann.key);
    two.world.pass(SECOND * 60);
    for n in [0, 1] {
        assert!(two.lists(n, room).is_some_and(|view| view.closed), "node {n}");
        assert_eq!(two.refuses(n, room), Refused::SessionClosed, "node {n}");
    }
    assert_eq!(two.end(&task, TaskStatus::Blocked), Err(Refused::SessionClosed));
}

#[test]
fn a_late_answer_can_come_until_the_room_is_closed() {
    let (mut two, _) = Two::talking();
    two.closes_after(SECOND * 60);
    let (room, task) = two.give(1, terms(Some(SECOND * 10), false));
    two.world.pass(SECOND * 12);
    two.given(0, room, GivenAct::HasNotice).expect("it ran out");
    let bob = two.bob.clone();
    two.says(1, &bob, room, "late");
    two.end(&task, TaskStatus::Completed).expect("the room is open");
    assert!(two.task(0, room).marks.ran_out, "it is still true");
    two.world.pass(SECOND * 60);
    assert!(two.lists(0, room).is_none(), "its notice was read, and nothing is kept");
}

#[test]
fn agents_that_were_asked_before_leave_their_rooms_open_to_readers_until_the_result_is_read() {
    let (mut two, _) = Two::talking();
    let chosen = |first| TaskTerms {
        chosen: Some(Chosen { capability: "dig".into(), first }),
        ..terms(None, false)
    };
    let (first, task) = two.give(1, chosen(None));
    two.given(0, first, GivenAct::Dismiss).expect("it is hers");
    assert_eq!(two.refuses(1, first), Refused::SessionClosed);
    assert!(two.lists(0, first).is_some_and(|view| view.closed));
    assert_eq!(two.notices(), 0, "another one is asked");
    let asked = FirstAsked { room: first, run: task.task };
    let (second, task) = two.give(2, chosen(Some(asked)));
    two.end(&task, TaskStatus::Completed).expect("it is his");
    two.given(0, second, GivenAct::HasResult).expect("it has ended");
    assert!(two.lists(0, first).is_none() && two.lists(0, second).is_none());
    let (third, _) = two.give(3, chosen(None));
    two.given(0, third, GivenAct::GiveUp).expect("it is hers");
    two.given(0, third, GivenAct::GiveUp).expect("again");
    assert_eq!((two.notices(), two.task(0, third).status), (1, TaskStatus::Blocked));
}

#[test]
fn an_inbox_at_another_node_is_told_of_tasks_whose_time_was_up_before() {
    let (mut two, _) = Two::talking();
    two.give(1, terms(Some(SECOND * 10), false));
    two.world.pass(SECOND * 12);
    let gone = Command::Detach { caller: two.ann.clone(), seen: Vec::new() };
    two.world.ask(0, gone).expect("it was here");
    two.world.pass(SECOND * 2);
    let ann = two.world.come(2, "ann", two.ann.key);
    two.world.pass(SECOND * 2);
    two.world.inbox(2, &ann, InboxAct::Open);
    let items = two.world.items(2, "ann");
    assert!(items.iter().any(|(_, number)| *number == Some(Number::ZERO)), "{items:?}");
}
