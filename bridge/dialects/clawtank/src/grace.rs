//! Tasks of agents that are gone: after a while they are nobody's again.
//!
//! The node at which an agent claimed a task sees to it, as long as it runs. It does so as that agent, which it attaches for
//! a moment: nobody can who is connected anywhere, so a task is taken from nobody who is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bridge::{
    read::Desk,
    seam::{
        call::{Attach, ChangeTask, Identity, ReadTask, StandOutside},
        refusal::Refusal,
    },
    secret::Secret,
};
use mesh::{
    api::agenda::TaskUpdate,
    name::id::{AgentId, MessageId, RoomId},
    wire::tasks::TaskStatus,
};
use tokio::time::sleep;

use crate::limits::{WATCHED_AGENTS_MAX, WATCHED_TASKS_MAX};

/// All agents that have claimed something here, by id.
pub(crate) struct Grace {
    time: Duration,
    claims: Mutex<BTreeMap<AgentId, Claims>>,
}

/// What an agent has claimed here.
struct Claims {
    key: Secret,
    name: String,
    /// The oldest first.
    tasks: Vec<(RoomId, MessageId)>,
    /// Since when it has no connection of this dialect here.
    gone: Option<Instant>,
    /// Somebody waits for the end of its time.
    watched: bool,
}

/// What is to be done about an agent that went.
enum Next {
    Wait(Duration),
    /// It is back.
    Nothing,
    Release {
        key: Secret,
        name: String,
        tasks: Vec<(RoomId, MessageId)>,
    },
}

impl Grace {
    pub(crate) fn new(time: Duration) -> Grace {
        Grace { time, claims: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, Claims>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent with this key has claimed a task.
    pub(crate) fn claimed(
        &self,
        (agent, name): (&AgentId, &str),
        key: &Secret,
        task: (RoomId, MessageId),
    ) {
        let mut claims = self.lock();
        if claims.len() >= WATCHED_AGENTS_MAX && !claims.contains_key(agent) {
            // Of so many the tasks stay as they are when their agents go: others release them.
            return;
        }
        let (key, name) = (key.clone(), name.to_owned());
        let new = || Claims { key, name, tasks: Vec::new(), gone: None, watched: false };
        let own = claims.entry(agent.clone()).or_insert_with(new);
        own.tasks.retain(|known| *known != task);
        if own.tasks.len() >= WATCHED_TASKS_MAX {
            own.tasks.remove(0);
        }
        own.tasks.push(task);
    }

    /// An agent has a connection here.
    pub(crate) fn comes(&self, agent: &AgentId) {
        if let Some(own) = self.lock().get_mut(agent) {
            own.gone = None;
        }
    }

    /// A connection of an agent has ended.
    pub(crate) fn goes(self: &Arc<Self>, agent: &AgentId, desk: &Desk) {
        {
            let mut claims = self.lock();
            let Some(own) = claims.get_mut(agent) else { return };
            own.gone = Some(Instant::now());
            if own.watched {
                return;
            }
            own.watched = true;
        }
        let (grace, agent, desk) = (self.clone(), agent.clone(), desk.clone());
        drop(tokio::spawn(async move {
            loop {
                match grace.next(&agent) {
                    Next::Wait(time) => sleep(time).await,
                    Next::Nothing => return,
                    Next::Release { key, name, tasks } => {
                        let who = (&agent, &*name);
                        if release(&desk, who, &key, &tasks).await.is_err() {
                            // It is connected, here or elsewhere, or its key is valid no more.
                            tasks.into_iter().for_each(|task| grace.claimed(who, &key, task));
                        }
                        return;
                    }
                }
            }
        }));
    }

    fn next(&self, agent: &AgentId) -> Next {
        let mut claims = self.lock();
        let Some(own) = claims.get_mut(agent) else { return Next::Nothing };
        let Some(gone) = own.gone else {
            own.watched = false;
            return Next::Nothing;
        };
        let left = self.time.saturating_sub(gone.elapsed());
        if !left.is_zero() {
            return Next::Wait(left);
        }
        own.watched = false;
        let Claims { key, name, tasks, .. } = own;
        let next = Next::Release { key: key.clone(), name: name.clone(), tasks: tasks.clone() };
        claims.remove(agent);
        next
    }
}

/// # Errors
/// The agent cannot be attached: nothing was done.
async fn release(
    desk: &Desk,
    (agent, name): (&AgentId, &str),
    key: &Secret,
    tasks: &[(RoomId, MessageId)],
) -> Result<(), Refusal> {
    let attach = Attach {
        key: key.clone(),
        name: name.to_owned(),
        identity: Identity::Named(agent.to_string()),
        capabilities: Vec::new(),
        reconnect: false,
        linger: Duration::ZERO,
    };
    let me = desk.attach(attach).await?;
    desk.ask(&me, StandOutside).await?;
    for (room, task) in tasks.iter().copied() {
        let Ok(record) = desk.ask(&me, ReadTask { room, task }).await else { continue };
        let is_open = match record.view.status {
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked => true,
            TaskStatus::InReview
            | TaskStatus::Completed
            | TaskStatus::Cancelled
            | TaskStatus::Failed => false,
        };
        if !is_open || record.view.assignee.as_ref() != Some(agent) {
            continue;
        }
        let update = TaskUpdate {
            status: Some(TaskStatus::Pending),
            by_steps: true,
            assignee: Some(None),
            if_assignee: Some(Some(agent.clone())),
            ..TaskUpdate::of(task)
        };
        if let Err(refusal) = desk.ask(&me, ChangeTask(update)).await {
            tracing::debug!(%agent, ?refusal, "a task of an agent that went stays its own");
        }
    }
    Ok(())
}
