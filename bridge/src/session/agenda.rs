//! Votes, elections and tasks (spec §3).

use mesh::{
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        command::Command,
    },
    limits::{
        TASK_NOTE_BYTES_MAX, TASK_TITLE_BYTES_MAX, VOTE_FOR_MAX, VOTE_OPTION_BYTES_MAX,
        VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX,
    },
    name::id::{AgentId, MessageId},
};
use protocol::{
    code::Code,
    request::{
        AssignTask, CastVote, CreateVote, DeclineElection, ElectLeader, GetVoteStatus, ListTasks,
        ListVotes, UpdateTask,
    },
    value::IfAssignee,
};

use super::{
    Me, Pending, Session,
    commands::{Next, at_most},
};
use crate::{convert, limits, refusal::Refusal};

type Handled = Result<Next, Refusal>;

impl Session {
    pub(super) fn create_vote(&self, me: &Me, it: CreateVote) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        titled(&it.title, it.description.as_deref(), VOTE_TITLE_BYTES_MAX)?;
        let max = VOTE_OPTIONS_MAX;
        if !(2..=max).contains(&it.options.len()) {
            return Err(Refusal::invalid(format!("`options` must have 2 to {max} entries")));
        }
        let bytes_max = VOTE_OPTION_BYTES_MAX;
        if it.options.iter().any(|it| it.trim().is_empty() || it.len() > bytes_max) {
            return Err(Refusal::invalid(format!(
                "each of `options` must have 1 to {bytes_max} bytes and not be blank"
            )));
        }
        let max = VOTE_FOR_MAX.as_secs();
        if it.duration_secs.is_some_and(|secs| !(1..=max).contains(&secs)) {
            return Err(Refusal::invalid(format!("`duration_secs` must be within 1 to {max}")));
        }
        let options: usize = it.options.iter().map(String::len).sum();
        let bytes = options + it.title.len() + it.description.as_ref().map_or(0, String::len);
        let vote = NewVote {
            room,
            title: it.title,
            description: it.description,
            options: it.options,
            duration_secs: it.duration_secs,
        };
        let command = Command::CreateVote { caller: me.caller.clone(), vote };
        Ok(Next::ask(command, Pending::Vote { bytes, begins: true }))
    }

    pub(super) fn list_votes(&self, me: &Me, it: &ListVotes) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let limit = usize::try_from(it.limit).unwrap_or(usize::MAX).min(limits::VOTES_MAX);
        let command = Command::ListVotes { key: me.caller.key, room, limit };
        Ok(Next::ask(command, Pending::Votes(room)))
    }

    pub(super) fn elect_leader(&self, me: &Me, it: &ElectLeader) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let command = Command::ElectLeader { caller: me.caller.clone(), room };
        Ok(Next::ask(command, Pending::Election(room)))
    }

    pub(super) fn decline_election(&self, me: &Me, it: &DeclineElection) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let command = Command::Decline { caller: me.caller.clone(), room };
        Ok(Next::ask(command, Pending::Declined(room)))
    }

    pub(super) fn assign_task(&self, me: &Me, it: AssignTask) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        titled(&it.title, it.description.as_deref(), TASK_TITLE_BYTES_MAX)?;
        let assignee = it.assignee.map(|id| agent_id("assignee", &id)).transpose()?;
        let bytes = it.title.len() + it.description.as_ref().map_or(0, String::len);
        let task = NewTask { room, title: it.title, description: it.description, assignee };
        let command = Command::AssignTask { caller: me.caller.clone(), task };
        Ok(Next::ask(command, Pending::Task { bytes }))
    }

    pub(super) fn list_tasks(&self, me: &Me, it: &ListTasks) -> Handled {
        let (room, _) = self.readable(me, &it.room_id)?;
        let status = it.status.map(convert::core_task_status);
        let command = Command::ListTasks { key: me.caller.key, room, status };
        Ok(Next::ask(command, Pending::Tasks(room)))
    }
}

pub(super) fn cast_vote(me: &Me, it: &CastVote) -> Handled {
    let vote = vote_id(&it.vote_id)?;
    let command = Command::CastVote { caller: me.caller.clone(), vote, option: it.option_index };
    Ok(Next::ask(command, Pending::Cast(vote)))
}

pub(super) fn get_vote(me: &Me, it: &GetVoteStatus) -> Handled {
    let vote = vote_id(&it.vote_id)?;
    let (key, agent) = (me.caller.key, Some(me.caller.agent.clone()));
    let pending = Pending::Vote { bytes: 0, begins: false };
    Ok(Next::ask(Command::GetVote { key, agent, vote }, pending))
}

pub(super) fn update_task(me: &Me, it: UpdateTask) -> Handled {
    let task = MessageId::from_uuid(&it.task_id);
    let task = task.ok_or_else(|| Refusal::new(Code::TaskNotFound, "no such task"))?;
    at_most("note", it.note.as_deref().unwrap_or_default(), TASK_NOTE_BYTES_MAX)?;
    let if_assignee = match it.if_assignee {
        IfAssignee::Anybody => None,
        IfAssignee::Nobody => Some(None),
        IfAssignee::Agent(id) => Some(Some(agent_id("if_assignee", &id)?)),
    };
    let bytes = it.note.as_ref().map_or(0, String::len);
    let update = TaskUpdate {
        task,
        status: it.status.map(convert::core_task_status),
        assignee: it.assignee.map(|id| agent_id("assignee", &id)).transpose()?,
        note: it.note,
        if_assignee,
    };
    let command = Command::UpdateTask { caller: me.caller.clone(), update };
    Ok(Next::ask(command, Pending::Task { bytes }))
}

/// What is no id of a vote is the id of none.
fn vote_id(text: &str) -> Result<MessageId, Refusal> {
    MessageId::from_uuid(text).ok_or_else(|| Refusal::new(Code::VoteNotFound, "no such vote"))
}

fn titled(title: &str, description: Option<&str>, max: usize) -> Result<(), Refusal> {
    if title.trim().is_empty() {
        return Err(Refusal::invalid("`title` must not be empty"));
    }
    at_most("title", title, max)?;
    let description = description.unwrap_or_default();
    at_most("description", description, mesh::limits::DESCRIPTION_BYTES_MAX)
}

fn agent_id(field: &str, id: &str) -> Result<AgentId, Refusal> {
    let max = mesh::limits::AGENT_ID_BYTES_MAX;
    if !(1..=max).contains(&id.len()) {
        return Err(Refusal::invalid(format!("`{field}` must have 1 to {max} bytes")));
    }
    Ok(AgentId::from(id))
}
