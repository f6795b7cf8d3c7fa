//! The fields of tasks.

use super::{Broken, Field, Rule, agent_id, at_most, holds, not_blank};
use crate::{
    api::agenda::{NewTask, TaskUpdate},
    limits::{
        TASK_BLOCKED_BY_MAX, TASK_CONTEXT_BYTES_MAX, TASK_DESCRIPTION_BYTES_MAX,
        TASK_LABEL_BYTES_MAX, TASK_LABELS_MAX, TASK_LINE_BYTES_MAX, TASK_LINES_MAX,
        TASK_NOTE_BYTES_MAX, TASK_ORIGIN_BYTES_MAX, TASK_PRIORITY_MAX, TASK_RESULT_BYTES_MAX,
        TASK_STEP_BYTES_MAX, TASK_TITLE_BYTES_MAX, TASK_WORD_BYTES_MAX,
    },
    wire::tasks::{TaskFacts, TaskFields, TaskOrigin},
};

impl NewTask {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        titled(&self.title, self.description.as_deref())?;
        agent_id(Field::Assignee, self.assignee.as_deref())?;
        self.facts.check()?;
        self.fields.check()
    }
}

impl TaskUpdate {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        at_most(Field::Note, self.note.as_deref(), TASK_NOTE_BYTES_MAX)?;
        agent_id(Field::Holder, self.if_assignee.as_ref().and_then(Option::as_deref))?;
        agent_id(Field::Assignee, self.assignee.as_ref().and_then(Option::as_deref))?;
        self.fields.check()
    }
}

impl TaskFields {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        if let Some(title) = &self.title {
            titled(title, None)?;
        }
        let description = self.description.as_deref();
        at_most(Field::Description, description, TASK_DESCRIPTION_BYTES_MAX)?;
        let max = TASK_PRIORITY_MAX;
        let good = self.priority.is_none_or(|priority| priority <= max);
        holds(good, Field::Priority, Rule::Between { min: 0, max: u64::from(max) })?;
        let labels = self.labels.as_deref().unwrap_or_default();
        lines(Field::Labels, labels, (TASK_LABELS_MAX, TASK_LABEL_BYTES_MAX))?;
        if let Some(progress) = &self.progress {
            let good = progress.percent <= 100;
            holds(good, Field::Progress, Rule::Between { min: 0, max: 100 })?;
            at_most(Field::Step, Some(&progress.step), TASK_STEP_BYTES_MAX)?;
        }
        at_most(Field::TaskResult, self.result.as_deref(), TASK_RESULT_BYTES_MAX)
    }
}

impl TaskFacts {
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Broken> {
        at_most(Field::TaskKind, self.kind.as_deref(), TASK_WORD_BYTES_MAX)?;
        let bounds = (TASK_LINES_MAX, TASK_LINE_BYTES_MAX);
        lines(Field::Requirements, &self.requirements, bounds)?;
        lines(Field::Acceptance, &self.acceptance, bounds)?;
        at_most(Field::Context, self.context.as_deref(), TASK_CONTEXT_BYTES_MAX)?;
        at_most(Field::Effort, self.effort.as_deref(), TASK_WORD_BYTES_MAX)?;
        if let Some(TaskOrigin { dialect, channel, chat, user }) = &self.origin {
            let more = [channel, chat, user].into_iter().flatten().map(String::len).sum::<usize>();
            let (bytes, max) = (dialect.len() + more, TASK_ORIGIN_BYTES_MAX);
            holds(bytes <= max, Field::Origin, Rule::AtMost(max))?;
        }
        let (min, max) = (0, TASK_BLOCKED_BY_MAX);
        holds(self.blocked_by.len() <= max, Field::BlockedBy, Rule::Count { min, max })
    }
}

/// Title and description of a task.
fn titled(title: &str, description: Option<&str>) -> Result<(), Broken> {
    not_blank(Field::Title, title)?;
    at_most(Field::Title, Some(title), TASK_TITLE_BYTES_MAX)?;
    at_most(Field::Description, description, TASK_DESCRIPTION_BYTES_MAX)
}

fn lines(field: Field, all: &[String], (count, bytes): (usize, usize)) -> Result<(), Broken> {
    let good = all.len() <= count && all.iter().all(|line| line.len() <= bytes);
    holds(good, field, Rule::Entries { count, bytes })
}
