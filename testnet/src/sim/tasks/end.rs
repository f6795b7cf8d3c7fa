//! The promises of tasks in the end.

use std::{collections::BTreeSet, time::Duration};

use mesh::{
    api::{
        agenda::{TaskUpdate, TaskView},
        command::Command,
    },
    name::id::{MessageId, RoomId},
    wire::{acts::TaskStatus, tasks::TaskFields},
};

use super::{Acknowledged, Asked, Made, Tasks, fold::fold};
use crate::sim::{
    cluster::Cluster,
    end::{Told, ask_all},
    keys::KEY,
    promises::{Broken, broken},
    world::World,
};

/// How long a claim and its answer take to be everywhere, where nothing disturbs.
const DONE_WITHIN: Duration = Duration::from_secs(3);

impl Told for Tasks {
    fn of(world: &mut World) -> (&mut Tasks, &mut Cluster) {
        (&mut world.tasks, &mut world.cluster)
    }
}

/// *same tasks* and *acknowledged updates survive*, of all rooms that are still there.
pub(crate) fn converge(world: &mut World) -> Result<(), Broken> {
    let rooms = world.tasks.acts.keys().copied();
    let rooms: Vec<RoomId> =
        rooms.filter(|room| !world.cluster.rooms.is_ephemeral(*room)).collect();
    for room in rooms {
        let tasks = tasks_of(world, room)?;
        are_once(&world.tasks, room, &tasks)?;
        were_told(&world.tasks, room, &tasks)?;
    }
    let lost = world.tasks.acknowledged.iter().find(|update| !is_written(world, update));
    match lost {
        None => Ok(()),
        Some(update) => broken("acknowledged survives", format!("no act says {update:?}")),
    }
}

/// The tasks of a room: every node lists those that their acts make.
fn tasks_of(world: &mut World, room: RoomId) -> Result<Vec<TaskView>, Broken> {
    let command = Command::ListTasks { by: (*KEY).into(), room, status: None };
    let views = ask_all::<Tasks>(world, &Asked::List, &command)?;
    if views.len() < world.cluster.nodes.len() {
        return broken("same tasks", format!("only {} nodes know {room}", views.len()));
    }
    let made = fold(room, world.tasks.acts.get(&room).into_iter().flatten());
    for (node, view) in &views {
        let differs = made.iter().zip(view).find(|(a, b)| a != b);
        if view.len() != made.len() || differs.is_some() {
            let (mine, all) = (view.len(), made.len());
            let text = format!("node{node} lists {mine} of {all} tasks, differs: {differs:?}");
            return broken("same tasks", text);
        }
    }
    Ok(made)
}

fn are_once(known: &Tasks, room: RoomId, tasks: &[TaskView]) -> Result<(), Broken> {
    let titles: BTreeSet<&str> = tasks.iter().map(|task| &*task.title).collect();
    if titles.len() < tasks.len() {
        return broken("same tasks", format!("a task of {room} is there twice"));
    }
    let is_back = |ended: &&(RoomId, MessageId)| tasks.iter().any(|task| task.task == ended.1);
    if let Some(back) = known.ended.iter().find(is_back) {
        return broken("ends stay", format!("{back:?} was deleted, and is there"));
    }
    let is_there =
        |made: &Made| tasks.iter().any(|task| task.task == made.task && *task.title == *made.title);
    match known.made.iter().find(|made| made.room == room && !is_there(made)) {
        None => Ok(()),
        Some(lost) => broken("acknowledged survives", format!("{lost:?} is nowhere")),
    }
}

fn were_told(known: &Tasks, room: RoomId, tasks: &[TaskView]) -> Result<(), Broken> {
    for ((node, _), told) in &known.told {
        let stays = tasks.iter().find(|task| task.task == told.task);
        let stayed_up = !known.desk.went_down.contains(node);
        if told.room == room && stays != Some(told) && stayed_up {
            let text = format!("node{node} told {told:?} last, and it is {stays:?}");
            return broken("same tasks", text);
        }
    }
    Ok(())
}

/// Whether an act says what was acknowledged: of that node's log, or the answer to a claim of it.
fn is_written(world: &World, acknowledged: &Acknowledged) -> bool {
    let Acknowledged { node, by, room, update } = acknowledged;
    let TaskUpdate { status, assignee, note, fields, .. } = update;
    let sets_nothing = !update.sets();
    if world.cluster.rooms.is_ephemeral(*room) || sets_nothing {
        return true;
    }
    let Some(acts) = world.tasks.acts.get(room) else { return false };
    let author = world.cluster.nodes[*node].id;
    acts.iter().any(|(place, act)| {
        let written_by = act.grants().map_or(place.log.author, |grant| grant.claim.log.author);
        let claims = act.grants().is_some();
        act.updates().is_some_and(|written| {
            MessageId::new(*room, written.task.log, written.task.seq) == update.task
                && (written.status, &written.assignee, &written.note) == (*status, assignee, note)
                && written.fields == *fields
                && written.by == *by
                && written_by == author
                && claims == update.if_assignee.is_some()
        })
    })
}

/// *claims end*: an agent makes a task that everybody claims, and contested fields are settled.
pub(crate) fn everybody_claims(world: &mut World) -> Result<(), Broken> {
    let room = world.cluster.lobby();
    let all = world.agents.all_seated();
    let tasks = tasks_of(world, room)?.into_iter();
    let contested: Vec<TaskView> = tasks.filter(|task| !task.contested.is_empty()).collect();
    let fields = contested.iter().map(|task| task.contested.len() as u64);
    world.tasks.contested += fields.sum::<u64>();
    let before = world.tasks.made.len();
    let by = world.cluster.dice.pick(&all).clone();
    world.tasks.assign(&mut world.cluster, by, room, None);
    world.go_on(Duration::from_secs(2))?;
    let Some(task) = world.tasks.made.get(before).cloned() else {
        return broken("claims end", "no task can be made after the heal".to_owned());
    };
    for contested in &contested {
        let by = world.cluster.dice.pick(&all).clone();
        let agent = &by.caller.agent;
        let update = TaskUpdate {
            status: Some(TaskStatus::Completed),
            assignee: Some(Some(agent.clone())),
            note: Some(format!("settled by {agent}")),
            fields: Box::new(settled(contested)),
            ..TaskUpdate::of(contested.task)
        };
        world.tasks.update(&mut world.cluster, by, room, update);
    }
    let granted = world.tasks.granted;
    for by in all {
        world.tasks.claim(&mut world.cluster, by, &task, None);
    }
    world.go_on(DONE_WITHIN)?;
    let tasks = tasks_of(world, room)?;
    let won = world.tasks.granted - granted;
    is_held_once(&tasks, task.task, won)?;
    are_settled(&tasks, &contested)?;
    converge(world)
}

/// Each field that is contested, as it shows: that settles it.
fn settled(task: &TaskView) -> TaskFields {
    let is_contested = |name: &'static str| task.contested.contains(&name);
    TaskFields {
        title: is_contested("title").then(|| task.title.to_string()),
        description: is_contested("description")
            .then(|| task.description.as_deref().unwrap_or_default().to_owned()),
        priority: is_contested("priority").then_some(task.priority),
        labels: is_contested("labels").then(|| task.labels.to_vec()),
        due_ms: is_contested("due").then(|| task.due_ms.unwrap_or_default()),
        progress: task.progress.as_deref().cloned().filter(|_| is_contested("progress")),
        result: is_contested("result")
            .then(|| task.result.as_deref().unwrap_or_default().to_owned()),
    }
}

fn is_held_once(tasks: &[TaskView], task: MessageId, won: u64) -> Result<(), Broken> {
    let claimed = tasks.iter().find(|view| view.task == task);
    let held = claimed.is_some_and(|view| view.assignee.is_some() && view.contested.is_empty());
    if won == 1 && held {
        return Ok(());
    }
    broken("claims end", format!("{won} claims won: {claimed:?}"))
}

fn are_settled(tasks: &[TaskView], contested: &[TaskView]) -> Result<(), Broken> {
    let open = |task: &&TaskView| {
        let settled = contested.iter().any(|was| was.task == task.task);
        settled && (!task.contested.is_empty() || task.status != TaskStatus::Completed)
    };
    match tasks.iter().find(open) {
        None => Ok(()),
        Some(task) => broken("claims end", format!("this was settled: {task:?}")),
    }
}
