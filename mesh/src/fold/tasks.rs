//! The tasks of a room: a fold over [`TaskAct`]s that does not depend on the order in which logs are
//! read; and the claims that wait for the room's sequencer (`docs/decisions/tasks.md`).
//!
//! The state is a function of the logs:
//!
//! - Each field of a task has the value that was written last, where every write names the ones that it
//!   replaces. Of writes that did not know of each other all stay, and the latest by position shows.
//! - A claim does nothing by itself. Its sequencer's answer does, if it grants it: that is the write.

mod task;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use task::{Task, is_agent_id, is_sound, is_sound_mark, is_sound_update, mark_bytes};

use super::{
    act::{Fold, Folded, Spoken, Void, Written},
    asked::{Asking, Asks},
};
use crate::{
    api::{
        agenda::{TaskChange, TaskField, TaskMarks, TaskRecord, TaskView},
        boundary::Alarm,
        command::Refused,
    },
    limits::{
        CLAIMS_OPEN_MAX, TASK_OVER_MAX, TASKS_BYTES_PER_ROOM_MAX, TASKS_LISTED_BYTES_MAX,
        TASKS_LISTED_MAX, TASKS_PER_LOG_MAX,
    },
    name::{
        id::{AgentId, EntryRef, KeyPrint, LocalRef, LogId, LogIx, MessageId},
        number::Era,
    },
    wire::{
        acts::{Grant, TaskAct, TaskAssigned, TaskClaimed, TaskUpdated},
        given::TaskMarked,
        tasks::{TaskDeleted, TaskStatus},
    },
};

/// A claim, as it waits for its answer.
#[derive(Clone, Debug)]
struct Claim {
    update: TaskUpdated,
    if_assignee: Option<AgentId>,
    if_status: Option<TaskStatus>,
    era: Era,
    key: Option<KeyPrint>,
}

impl Asking for Claim {
    fn spoken(&self, by: EntryRef) -> Spoken<'_> {
        Spoken { node: by.log.author, key: self.key, agent: &self.update.by }
    }

    fn era(&self) -> Era {
        self.era
    }
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is applied. The task is now this.
    Granted(Arc<TaskView>),
    /// It was held by somebody else.
    Held(Option<AgentId>),
    /// It was so far, and the claim names another state.
    Stands(TaskStatus),
    /// The sequencer did not know that the claim's node can speak for the agent.
    Unproven,
    /// The task is not known any more.
    Forgotten,
}

/// Effects of acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Assigned {
        place: EntryRef,
        view: Arc<TaskView>,
    },
    Updated(Arc<TaskView>, Arc<TaskChange>),
    /// It is there no more.
    Deleted {
        place: EntryRef,
        view: Arc<TaskView>,
        by: AgentId,
    },
    /// A log has forked that had deleted it: it is there again.
    Restored(EntryRef, MessageId),
    /// It has ended without an answer of its assignee: its time was up, or nobody took it.
    Ended(Arc<TaskView>),
    Forgotten(MessageId, EntryRef),
    Answered {
        claim: LocalRef,
        answer: Answer,
    },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    all: BTreeMap<EntryRef, Task>,
    /// Memory that they take.
    bytes: usize,
    claims: Asks<Claim>,
    news: Vec<News>,
}

impl Fold for Tasks {
    type Act = TaskAct;
    type News = News;

    /// One more task may be made unless one that is not completed would be forgotten for it.
    fn admits(&self, by: LogId, act: &TaskAct, _: Duration) -> Result<(), Refused> {
        let full = |why: &str| Err(Refused::Full(why.to_owned()));
        let more = match act {
            TaskAct::Assigned(new) => {
                let full_log = self.of(by).count() >= TASKS_PER_LOG_MAX;
                let oldest = self.of(by).next().filter(|_| full_log);
                let oldest = oldest.and_then(|place| self.all.get(&place));
                let is_open = |task: &Task| !task.status().is_terminal() && !task.is_deleted();
                if oldest.is_some_and(is_open) {
                    return full("too many tasks of this node in this room: complete the oldest");
                }
                Task::new_bytes(new).saturating_sub(oldest.map_or(0, Task::bytes))
            }
            TaskAct::Claimed(_) if self.claims.len() >= CLAIMS_OPEN_MAX => {
                return full("too many claims wait in this room: try again when they are answered");
            }
            TaskAct::Updated(update) | TaskAct::Claimed(TaskClaimed { update, .. }) => {
                task::update_bytes(update)
            }
            TaskAct::Granted(_) | TaskAct::Deleted(_) => 0,
            TaskAct::Marked(marked) => mark_bytes(&marked.mark),
        };
        if more > 0 && self.bytes + more > TASKS_BYTES_PER_ROOM_MAX {
            return full("the tasks of this room take all the memory there is for them");
        }
        Ok(())
    }

    fn apply(&mut self, written: Written, act: TaskAct, _: &mut Vec<Alarm>) -> Folded {
        match act {
            TaskAct::Assigned(new) => self.fold_assigned(&written, new),
            TaskAct::Updated(update) => self.fold_update(&written, update),
            TaskAct::Claimed(claimed) => self.fold_claim(&written, claimed),
            // Its author was the sequencer: this was asked before.
            TaskAct::Granted(grant) => self.fold_grant(&written, grant),
            TaskAct::Marked(marked) => self.fold_mark(&written, marked),
            TaskAct::Deleted(deleted) => self.fold_deleted(&written, deleted),
        }
    }

    fn retract(&mut self, void: Void) {
        match void {
            Void::From(EntryRef { log, seq }) => self.forget_log(log, seq),
            // Each write names what it replaces, so a node's writes up to a cut count everywhere.
            Void::Author(_) | Void::Member(_) => {}
        }
    }

    fn take_news(&mut self, _: Duration) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Something waits for the sequencer.
    fn is_waiting(&self) -> bool {
        !self.claims.is_empty()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Tasks {
    fn fold_assigned(&mut self, written: &Written, new: TaskAssigned) -> Folded {
        if !is_sound(&new) {
            return Folded::Void;
        }
        // The oldest of the same log goes, so that it is the same one everywhere.
        let full = self.of(written.place.log).count() >= TASKS_PER_LOG_MAX;
        let oldest = self.of(written.place.log).next().filter(|_| full);
        if let Some(oldest) = oldest {
            self.forget(oldest);
        }
        let task = Task::new(written, new);
        let bytes = task.bytes();
        if self.bytes + bytes > TASKS_BYTES_PER_ROOM_MAX {
            return Folded::Overflow;
        }
        self.bytes += bytes;
        self.news.push(News::Assigned { place: written.place, view: Arc::new(task.view()) });
        self.all.insert(written.place, task);
        Folded::Taken
    }

    fn fold_update(&mut self, written: &Written, update: TaskUpdated) -> Folded {
        if !is_sound_update(&update) || update.over.len() > TASK_OVER_MAX {
            return Folded::Void;
        }
        let Some(task) = self.all.get_mut(&update.task) else { return Folded::Taken };
        if self.bytes + task::update_bytes(&update) > TASKS_BYTES_PER_ROOM_MAX {
            return Folded::Overflow;
        }
        let (before, bytes) = (task.view(), task.bytes());
        let comment = update.note.clone().filter(|note| !note.is_empty()).map(Arc::from);
        let by = Some(Arc::clone(&update.by));
        task.update(written, update);
        self.bytes = self.bytes + task.bytes() - bytes;
        let view = task.view();
        if view != before && !task.is_deleted() {
            let change = TaskChange { by, comment, ..changed(&before, &view) };
            self.news.push(News::Updated(Arc::new(view), Arc::new(change)));
        }
        Folded::Taken
    }

    /// What waits for it waits in vain.
    fn fold_deleted(&mut self, written: &Written, deleted: TaskDeleted) -> Folded {
        let TaskDeleted { task: place, by } = deleted;
        let Some(task) = self.all.get_mut(&place) else { return Folded::Taken };
        let (was_deleted, bytes) = (task.is_deleted(), task.bytes());
        task.delete(written);
        self.bytes = self.bytes + task.bytes() - bytes;
        if !was_deleted {
            let view = Arc::new(task.view());
            self.news.push(News::Deleted { place, view, by });
            self.forget_claims(place);
        }
        Folded::Taken
    }

    fn fold_mark(&mut self, written: &Written, marked: TaskMarked) -> Folded {
        if !is_sound_mark(&marked.mark) {
            return Folded::Void;
        }
        let Some(task) = self.all.get_mut(&marked.task) else { return Folded::Taken };
        if self.bytes + mark_bytes(&marked.mark) > TASKS_BYTES_PER_ROOM_MAX {
            return Folded::Overflow;
        }
        let has_ended = |marks: &TaskMarks| marks.ran_out || marks.untaken;
        let (before, bytes) = (task.view(), task.bytes());
        task.mark(written, marked.mark);
        self.bytes = self.bytes + task.bytes() - bytes;
        let view = task.view();
        if has_ended(&view.marks) && !has_ended(&before.marks) {
            self.news.push(News::Ended(Arc::new(view)));
        }
        Folded::Taken
    }

    fn fold_claim(&mut self, written: &Written, claimed: TaskClaimed) -> Folded {
        let TaskClaimed { update, if_assignee, era, key, if_status } = claimed;
        if !is_sound_update(&update) || !is_agent_id(if_assignee.as_deref()) {
            return Folded::Void;
        }
        if self.claims.len() >= CLAIMS_OPEN_MAX {
            return Folded::Overflow;
        }
        if self.all.get(&update.task).is_some_and(|task| !task.is_deleted()) {
            self.claims.add(written, Claim { update, if_assignee, if_status, era, key });
        }
        Folded::Taken
    }

    /// Each answer that grants is a write, also a second one: the sequencers of two eras may both
    /// have answered. So what a client was told is never taken back behind its back.
    fn fold_grant(&mut self, written: &Written, grant: Grant) -> Folded {
        let claim = self.claims.remove(grant.claim);
        let granted = grant.update.as_ref().map(|update| update.task);
        let folded = grant.update.map_or(Folded::Taken, |update| self.fold_update(written, update));
        if let Some(claim) = claim {
            let task = granted.and_then(|task| self.all.get(&task));
            let answer = match (granted, task) {
                (None, _) if grant.status.is_some() => {
                    Answer::Stands(grant.status.unwrap_or(TaskStatus::Pending))
                }
                (None, _) if grant.holder == claim.what.if_assignee => Answer::Unproven,
                (None, _) => Answer::Held(grant.holder),
                (Some(_), Some(task)) => Answer::Granted(Arc::new(task.view())),
                (Some(_), None) => Answer::Forgotten,
            };
            self.news.push(News::Answered { claim: claim.at, answer });
        }
        folded
    }

    /// The tasks of one log, the oldest first.
    fn of(&self, log: LogId) -> impl Iterator<Item = EntryRef> + '_ {
        let all = EntryRef { log, seq: 0 }..=EntryRef { log, seq: u64::MAX };
        self.all.range(all).map(|(place, _)| *place)
    }

    fn forget(&mut self, place: EntryRef) {
        let Some(task) = self.all.remove(&place) else { return };
        self.bytes -= task.bytes();
        self.news.push(News::Forgotten(task.id(), place));
        self.forget_claims(place);
    }

    /// The claims of a task that is not there any more.
    fn forget_claims(&mut self, place: EntryRef) {
        for claim in self.claims.take(|claim| claim.update.task == place) {
            self.news.push(News::Answered { claim: claim.at, answer: Answer::Forgotten });
        }
    }

    /// Nothing of this log counts from `seq` on.
    fn forget_log(&mut self, log: LogId, seq: u64) {
        let gone: Vec<EntryRef> = self.of(log).filter(|place| place.seq >= seq).collect();
        gone.into_iter().for_each(|place| self.forget(place));
        self.claims.forget_log(log, seq);
        for (place, task) in &mut self.all {
            let (was_deleted, bytes, before) = (task.is_deleted(), task.bytes(), task.view());
            if task.forget_log(log, seq) && !task.is_deleted() {
                if was_deleted {
                    self.news.push(News::Restored(*place, task.id()));
                }
                let view = task.view();
                let change = changed(&before, &view);
                self.news.push(News::Updated(Arc::new(view), Arc::new(change)));
            }
            self.bytes = self.bytes + task.bytes() - bytes;
        }
    }

    /// The oldest task: of a room that is for one task, that one.
    pub(crate) fn first(&self) -> Option<(EntryRef, TaskView)> {
        let there = self.all.iter().filter(|(_, task)| !task.is_deleted());
        let first = there.min_by_key(|(_, task)| task.position());
        first.map(|(place, task)| (*place, task.view()))
    }

    pub(crate) fn view(&self, task: EntryRef) -> Option<TaskView> {
        self.there(task).map(Task::view)
    }

    /// All that is remembered of a task.
    pub(crate) fn record(&self, task: EntryRef) -> Option<TaskRecord> {
        self.there(task).map(Task::record)
    }

    fn there(&self, task: EntryRef) -> Option<&Task> {
        self.all.get(&task).filter(|task| !task.is_deleted())
    }

    /// The number of the next task that this node makes here.
    pub(crate) fn next_n(&self) -> u64 {
        self.all.values().map(Task::n).max().unwrap_or_default().saturating_add(1)
    }

    /// The newest tasks of this status, as far as every client knows it ([`TaskStatus::basic`]), or of any, the oldest of them first: as many as one answer holds.
    pub(crate) fn newest(&self, status: Option<TaskStatus>) -> Vec<TaskView> {
        let basic = status.map(TaskStatus::basic);
        let asked = |task: &&Task| {
            !task.is_deleted() && basic.is_none_or(|basic| task.status().basic() == basic)
        };
        let mut tasks: Vec<&Task> = self.all.values().filter(asked).collect();
        tasks.sort_by_key(|task| Reverse(task.position()));
        let mut bytes = 0;
        let fits = tasks.into_iter().take(TASKS_LISTED_MAX).map(Task::view).take_while(|view| {
            bytes += view_bytes(view);
            bytes <= TASKS_LISTED_BYTES_MAX
        });
        let mut newest: Vec<TaskView> = fits.collect();
        newest.reverse();
        newest
    }

    /// Tasks that an agent holds, and that are to be done.
    pub(crate) fn held(&self) -> impl Iterator<Item = TaskView> {
        let there = self.all.values().filter(|task| !task.is_deleted());
        let to_do = there.filter(|task| !task.status().is_terminal());
        to_do.filter(|task| task.assignee().is_some()).map(Task::view)
    }

    /// All tasks by id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (MessageId, EntryRef)> + '_ {
        let there = self.all.iter().filter(|(_, task)| !task.is_deleted());
        there.map(|(place, task)| (task.id(), *place))
    }

    /// An update with the writes that it replaces, as far as they are known here.
    pub(crate) fn over_what_is_known(&self, update: TaskUpdated) -> TaskUpdated {
        let over = self.all.get(&update.task).map_or(Vec::new(), |task| task.known(&update));
        TaskUpdated { over, ..update }
    }

    // Claims.

    /// Sees which claims are their agents'. `proves`: whether an act counts as its agent's.
    pub(crate) fn judge(&mut self, proves: impl Fn(&Spoken<'_>) -> bool) {
        self.claims.judge(proves);
    }

    /// See [`Asks::due`].
    pub(crate) fn due(&self, now: Duration, era: Era) -> Vec<EntryRef> {
        self.claims.due(now, era)
    }

    /// The answer of the sequencer of `era` to a claim.
    pub(crate) fn answer(&self, claim: EntryRef, era: Era, by: Option<EntryRef>) -> Option<Grant> {
        let claimed = self.claims.get(claim)?;
        let task = self.all.get(&claimed.what.update.task)?;
        let (holder, stands) = (task.assignee(), task.status());
        let is_held = holder == claimed.what.if_assignee;
        let elsewhere = claimed.what.if_status.is_some_and(|wanted| wanted != stands);
        let status = (is_held && elsewhere).then_some(stands);
        let granted = claimed.is_proven && is_held && !elsewhere;
        let update = granted.then(|| self.over_what_is_known(claimed.what.update.clone()));
        Some(Grant { era, claim, update, holder, by, status })
    }

    /// See [`Asks::ask`].
    pub(crate) fn ask(&mut self, now: Duration, mine: Option<LogIx>) -> bool {
        self.claims.ask(now, mine)
    }

    /// See [`Asks::kept_waiting`].
    pub(crate) fn kept_waiting(&self, now: Duration, mine: Option<LogIx>) -> bool {
        self.claims.kept_waiting(now, mine)
    }
}

/// Bytes that a task takes in an answer, near enough.
fn view_bytes(view: &TaskView) -> usize {
    /// Ids, times, names of fields.
    const FRAME: usize = 400;
    let len = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    let agents = view.created_by.len() + len(&view.assignee);
    let labels = view.labels.iter().map(String::len).sum::<usize>();
    let step = view.progress.as_ref().map_or(0, |at| at.step.len());
    let texts = len(&view.description) + len(&view.note) + len(&view.result);
    FRAME + view.title.len() + texts + agents + labels + step + view.facts.bytes()
}

/// The fields that show something else now, changed by nobody.
fn changed(before: &TaskView, now: &TaskView) -> TaskChange {
    let differs = |field: &TaskField| match field {
        TaskField::Status => before.status != now.status,
        TaskField::Assignee => before.assignee != now.assignee,
        TaskField::Note => before.note != now.note,
        TaskField::Title => before.title != now.title,
        TaskField::Description => before.description != now.description,
        TaskField::Priority => before.priority != now.priority,
        TaskField::Labels => before.labels != now.labels,
        TaskField::Due => before.due_ms != now.due_ms,
        TaskField::Progress => before.progress != now.progress,
        TaskField::Result => before.result != now.result,
    };
    TaskChange {
        by: None,
        fields: TaskField::ALL.into_iter().filter(differs).collect(),
        was: (before.status != now.status).then_some(before.status),
        comment: None,
    }
}

#[cfg(test)]
mod tests;
