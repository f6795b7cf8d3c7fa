//! Tasks that agents have given to each other, each in a room of its own.

use std::{cmp::Reverse, collections::BTreeSet};

use bridge::seam::call::ListTasks;
use mesh::{
    api::{agenda::TaskView, command::RoomView},
    name::id::{AgentId, MessageId, RoomId},
    wire::{acts::TaskStatus, given::Chosen},
};

use crate::{asking::Asking, limits::CHILDREN_LOOKED_AT_MAX, outcome::No};

/// A task that one agent has given to another, in a room of its own.
pub(crate) struct Child {
    pub(crate) room: RoomView,
    pub(crate) task: TaskView,
}

impl Child {
    pub(crate) fn goes_on(&self) -> bool {
        !has_ended(&self.task)
    }

    /// Whether another agent was asked to do it before.
    pub(crate) fn is_next(&self) -> bool {
        self.chosen().is_some_and(|chosen| chosen.first.is_some())
    }

    pub(crate) fn chosen(&self) -> Option<&Chosen> {
        self.task.marks.terms.as_ref()?.chosen.as_ref()
    }

    /// How many tasks lead to it.
    pub(crate) fn depth(&self) -> u32 {
        self.task.marks.terms.as_ref().map_or(1, |terms| terms.depth)
    }
}

/// Whether a task is over.
pub(crate) fn has_ended(task: &TaskView) -> bool {
    matches!(task.status.basic(), TaskStatus::Completed | TaskStatus::Blocked)
}

/// Tasks in rooms of their own, the newest first: those that the agent has given, and those that it was given.
pub(crate) async fn children(asking: &Asking) -> Result<Vec<Child>, No> {
    let mut rooms = asking.rooms().await?;
    rooms.retain(|room| room.task);
    rooms.sort_by_key(|room| Reverse((room.created_ms, room.room)));
    let mut children = Vec::new();
    for room in rooms.into_iter().take(CHILDREN_LOOKED_AT_MAX) {
        let tasks = asking.read(ListTasks { room: room.room, status: None }).await?;
        children.extend(tasks.into_iter().next().map(|task| Child { room, task }));
    }
    Ok(children)
}

/// The agents to which the agent has given tasks.
pub(crate) async fn workers(asking: &Asking) -> Result<BTreeSet<AgentId>, No> {
    Ok(given_by(asking).await?.into_iter().filter_map(|child| child.task.assignee).collect())
}

/// Tasks that it was given, has begun, and has not ended.
pub(crate) async fn in_hand(asking: &Asking) -> Result<Vec<MessageId>, No> {
    let children = children(asking).await?;
    Ok(begun(asking, &children).map(|child| child.task.task).collect())
}

/// Those that the agent has given.
pub(crate) async fn given_by(asking: &Asking) -> Result<Vec<Child>, No> {
    let mut children = children(asking).await?;
    children.retain(|child| child.task.created_by == asking.agent);
    Ok(children)
}

/// Tasks of others that the agent works on. One that was only offered does not count, else anybody could keep it from
/// giving tasks.
pub(crate) fn begun<'c>(
    asking: &'c Asking,
    children: &'c [Child],
) -> impl Iterator<Item = &'c Child> {
    children.iter().filter(|child| {
        child.task.assignee.as_ref() == Some(&asking.agent)
            && child.task.created_by != asking.agent
            && child.task.status.basic() == TaskStatus::InProgress
    })
}

/// The newest room of a task whose first room this is, or one in between.
pub(crate) async fn newest_of(asking: &Asking, room: &RoomView) -> Result<Option<RoomView>, No> {
    let children = given_by(asking).await?;
    let Some(own) = children.iter().find(|child| child.room.room == room.room) else {
        return Ok(None);
    };
    let first = first_of(own);
    // The newest is the first of them.
    Ok(children.iter().find(|child| first_of(child) == first).map(|child| child.room.clone()))
}

pub(crate) fn first_of(child: &Child) -> RoomId {
    let first = child.chosen().and_then(|chosen| chosen.first);
    first.map_or(child.room.room, |first| first.room)
}
