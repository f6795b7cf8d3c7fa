//! Agents that were chosen for a task and do not begin: another one is asked, in a room of its own.
//!
//! All that is under way stands in the rooms themselves: the terms of a task say that its agent was chosen, by which
//! capability, and after whom. So after a restart of the node it goes on with the first act of the agent that gave the task.

use std::time::{Duration, SystemTime};

use bridge::seam::call::{From, History, OnGiven, OpenDirect};
use mesh::{
    api::agenda::GivenAct,
    name::id::{AgentId, RoomId},
    wire::{
        acts::TaskStatus,
        given::{Chosen, FirstAsked, TaskTerms},
    },
};
use tokio::time::sleep;

use super::{super::send::Target, Giving, digest, give, given, offering};
use crate::{
    asking::Asking,
    children::{Child, first_of, given_by, has_ended},
    limits::{ASKED_AGAIN_MAX, PAGE_MIN, REPLACE_RETRIES, REPLACE_RETRY, WORKERS_ASKED_MAX},
    outcome::No,
};

/// Sees to it that somebody begins the task of this room, or that the agent which gave it is told that nobody does.
pub(super) fn look_after(asking: &Asking, first: RoomId) {
    let Some(held) = asking.looks_after(first) else { return };
    let asking = asking.clone();
    tokio::spawn(async move {
        let (mut failures, mut waited) = (0, None);
        while failures < REPLACE_RETRIES {
            let pause = match Box::pin(go_on(&asking, first, waited)).await {
                Ok(None) => break,
                Ok(Some(Pause { room, time })) => {
                    waited = Some(room);
                    time
                }
                Err(_) => {
                    failures += 1;
                    REPLACE_RETRY
                }
            };
            sleep(pause).await;
        }
        drop(held);
    });
}

/// Goes on with all tasks of an agent that has come back: nothing is remembered over a restart.
pub(crate) async fn resume(asking: Asking) {
    let Ok(children) = given_by(&asking).await else { return };
    let is_first = |child: &&Child| {
        let chosen = child.chosen();
        chosen.is_some_and(|chosen| chosen.first.is_none()) && !child.task.marks.untaken
    };
    for child in children.iter().filter(is_first).take(ASKED_AGAIN_MAX) {
        if !has_ended(&child.task) || child.task.marks.dismissed {
            look_after(&asking, child.room.room);
        }
    }
}

/// The time that the agent of a room has to begin.
struct Pause {
    room: RoomId,
    time: Duration,
}

/// One step. `waited`: the agent of this room had its time. `None`: there is nothing more to do.
async fn go_on(
    asking: &Asking,
    first: RoomId,
    waited: Option<RoomId>,
) -> Result<Option<Pause>, No> {
    let own = given_by(asking).await?;
    // The newest first.
    let asked: Vec<&Child> = own.iter().filter(|child| first_of(child) == first).collect();
    let Some(newest) = asked.first() else { return Ok(None) };
    let marks = &newest.task.marks;
    if marks.untaken || (!marks.dismissed && has_begun(asking, newest).await?) {
        return Ok(None);
    }
    if !marks.dismissed {
        let (room, time) = (newest.room.room, time_left(asking, newest));
        if time > Duration::ZERO && waited != Some(room) {
            return Ok(Some(Pause { room, time }));
        }
        let act = GivenAct::Dismiss;
        asking.act(OnGiven { room: newest.room.room, act }).await?;
    }
    let next = match asked.last() {
        Some(oldest) if asked.len() < WORKERS_ASKED_MAX => {
            next_worker(asking, &own, &asked).await?.map(|worker| (worker, *oldest))
        }
        Some(_) | None => None,
    };
    let Some((worker, oldest)) = next else {
        asking.act(OnGiven { room: first, act: GivenAct::GiveUp }).await?;
        return Ok(None);
    };
    let room = give_to(asking, worker, oldest, asked.len()).await?;
    Ok(Some(Pause { room, time: asking.shared.settings.spawning.begin_within }))
}

/// So long the agent may still take to begin.
fn time_left(asking: &Asking, child: &Child) -> Duration {
    let within = asking.shared.settings.spawning.begin_within;
    let given = SystemTime::UNIX_EPOCH + Duration::from_millis(child.task.created_ms);
    // One from the future was given just now: clocks differ.
    let passed = SystemTime::now().duration_since(given).unwrap_or_default();
    within.saturating_sub(passed)
}

async fn has_begun(asking: &Asking, child: &Child) -> Result<bool, No> {
    if child.task.status != TaskStatus::Pending {
        return Ok(true);
    }
    let call =
        History { room: child.room.room, from: From::Newest, limit: PAGE_MIN, before_ms: None };
    let newest = asking.read(call).await?.messages;
    Ok(newest.iter().any(|message| message.said.agent != asking.agent))
}

/// The best of those that were not asked yet.
async fn next_worker(
    asking: &Asking,
    own: &[Child],
    asked: &[&Child],
) -> Result<Option<AgentId>, No> {
    let Some(chosen) = asked.first().and_then(|child| child.chosen()) else { return Ok(None) };
    let before = asked.iter().filter_map(|child| child.task.assignee.clone()).collect();
    let own: Vec<&Child> = own.iter().collect();
    let seed = digest(&asked.first().map_or([0; 16], |child| child.room.room.0));
    offering(asking, &chosen.capability, super::Others { own: &own, without: before }, seed).await
}

/// Gives the task of the first room to one more agent.
async fn give_to(
    asking: &Asking,
    worker: AgentId,
    first: &Child,
    nth: usize,
) -> Result<RoomId, No> {
    let from = Target::of_task(asking, first.room.clone(), worker.clone());
    let Some(((run, _), text)) = given(asking, &from).await? else {
        return Err(No::error("the message that gave the task is not here"));
    };
    let nth = u64::try_from(nth).unwrap_or(u64::MAX);
    let seed = [b"clawmesh next".as_slice(), &first.room.room.0, &nth.to_be_bytes()].concat();
    let task = Some(digest(&seed));
    let room = asking.act(OpenDirect { agent: worker.clone(), task }).await?;
    let id = room.room;
    let target = Target::of_task(asking, room, worker);
    let Some(terms) = first.task.marks.terms.as_deref() else { return Ok(id) };
    // Before a restart.
    if given(asking, &target).await?.is_some() {
        return Ok(id);
    }
    let chosen = terms.chosen.as_ref().map(|chosen| Chosen {
        capability: chosen.capability.clone(),
        first: Some(FirstAsked { room: first.room.room, run }),
    });
    let terms = TaskTerms { chosen, name: None, ..terms.clone() };
    let title = first.task.title.to_string();
    give(asking, &target, Giving { text: &text, title, terms }).await?;
    Ok(id)
}
