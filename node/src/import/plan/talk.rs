//! The content of rooms: messages, votes and tasks.

use std::collections::BTreeMap;

use anyhow::Result;
use import::{ReadError, ServerFile, Task, Vote};
use mesh::{
    api::import::ImportedTask,
    limits::{
        AGENT_ID_BYTES_MAX, DESCRIPTION_BYTES_MAX, TASK_NOTE_BYTES_MAX, TASK_TITLE_BYTES_MAX,
        TASKS_PER_LOG_MAX, VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX,
        VOTES_PER_LOG_MAX,
    },
    wire::acts::{TaskAssigned, TaskStatus, VoteImported},
};

use super::{
    EndedVote, Place, Plan,
    findings::{Findings, all_well},
    ids::{id_of, replaced},
    ledger::{Named, Thing},
    sieve::{Sieve, Sifted},
};
use crate::import::choices::{Choices, OpenVotes};

/// How often it is told how many messages were looked at.
const TOLD_EVERY: u64 = 10_000;

/// Advice about a vote that is open.
const OPEN: &str = "its ballots are secret, and its voters are gone; close it at the server, end it with what was voted \
                    so far with --close-open-votes, or leave it out with --skip-open-votes";
/// The note on things whose ids are replaced.
const OTHER_IDS: &str = "get other ids: theirs are no UUIDs that ClawChat draws";

pub(super) fn look_at_messages(
    plan: &mut Plan,
    file: &ServerFile,
    findings: &mut Findings,
    each: &mut dyn FnMut(u64),
) -> Result<()> {
    let (mut seen, mut other_ids) = (0, Named::default());
    let mut sieve = Sieve::default();
    file.messages::<ReadError>(|row| {
        seen += 1;
        if seen % TOLD_EVERY == 0 {
            each(seen);
        }
        match sieve.sift(plan, row) {
            Sifted::Brought(place, message) => {
                plan.goes_on(place, message.seq + 1);
                findings.ledger.brought.add(Thing::Message, 1);
                let other = replaced(Thing::Message, &message.id, &mut other_ids);
                plan.replaced.extend(other);
            }
            Sifted::Left(why) => findings.ledger.leave(Thing::Message, why, None),
            Sifted::Bad(bad) => findings.bad(Thing::Message, bad),
        }
        Ok(())
    })?;
    each(seen);
    findings.ledger.note_named(&format!("messages {OTHER_IDS}"), &other_ids);
    Ok(())
}

pub(super) fn take_votes(
    plan: &mut Plan,
    file: &ServerFile,
    choices: Choices,
    findings: &mut Findings,
) -> Result<()> {
    let mut by_place: BTreeMap<Place, Vec<(String, EndedVote)>> = BTreeMap::new();
    let (mut closed, mut other_ids) = (Named::default(), Named::default());
    for vote in findings.readable(Thing::Vote, file.votes()?) {
        let Some(place) = plan.place(&vote.room) else {
            findings.ledger.leave(Thing::Vote, plan.no_room(&vote.room), Some(&vote.title));
            continue;
        };
        match choices.open_votes {
            _ if vote.closed => {}
            OpenVotes::Refuse if !choices.skip_refused => {
                let why = format!("the vote {:?} is open", vote.title);
                findings.row_or((Thing::Vote, "votes", &vote.id), why, OPEN);
                continue;
            }
            OpenVotes::Refuse | OpenVotes::Skip => {
                findings.ledger.leave(Thing::Vote, "they are open", Some(&vote.title));
                continue;
            }
            OpenVotes::Close => closed.add(&vote.title),
        }
        let id = vote.id.clone();
        match ended(vote) {
            Ok(vote) => by_place.entry(place).or_default().push((id, (place, vote.0, vote.1))),
            Err(why) => findings.row((Thing::Vote, "votes", &id), why),
        }
    }
    findings.ledger.note_named("open votes end with what was voted so far", &closed);
    for (_, mut votes) in by_place {
        let more = votes.len().saturating_sub(VOTES_PER_LOG_MAX);
        for (_, (_, _, vote)) in votes.drain(..more) {
            let why = format!("of a room the newest {VOTES_PER_LOG_MAX} are");
            findings.ledger.leave(Thing::Vote, why, Some(&vote.title));
        }
        for (id, vote) in votes {
            replaced(Thing::Vote, &id, &mut other_ids);
            plan.votes.push(vote);
        }
    }
    findings.ledger.note_named(&format!("votes {OTHER_IDS}"), &other_ids);
    Ok(())
}

pub(super) fn take_tasks(
    plan: &mut Plan,
    file: &ServerFile,
    findings: &mut Findings,
) -> Result<()> {
    let mut by_place: BTreeMap<Place, Vec<(String, ImportedTask)>> = BTreeMap::new();
    // Where the lobby is, is known when it is written.
    let nowhere = mesh::name::id::RoomId([0; 16]);
    for task in findings.readable(Thing::Task, file.tasks()?) {
        let Some(place) = plan.place(&task.room) else {
            findings.ledger.leave(Thing::Task, plan.no_room(&task.room), Some(&task.title));
            continue;
        };
        let room = if let Place::Room(room) = place { room } else { nowhere };
        let id = task.id.clone();
        match imported(task, room) {
            Ok(task) => by_place.entry(place).or_default().push((id, task)),
            Err(why) => findings.row((Thing::Task, "room_tasks", &id), why),
        }
    }
    let mut other_ids = Named::default();
    for (place, mut tasks) in by_place {
        let mut more = tasks.len().saturating_sub(TASKS_PER_LOG_MAX);
        tasks.retain(|(_, task)| {
            let left_out = more > 0 && task.status == TaskStatus::Completed;
            if left_out {
                more -= 1;
                let why =
                    format!("of a room {TASKS_PER_LOG_MAX} are, without the oldest completed");
                findings.ledger.leave(Thing::Task, why, Some(&task.task.title));
            }
            !left_out
        });
        for (id, _) in tasks.drain(..more) {
            let why = format!(
                "its room has more than {TASKS_PER_LOG_MAX} that are not completed, and this is of the oldest"
            );
            findings.row((Thing::Task, "room_tasks", &id), why);
        }
        for (id, task) in tasks {
            replaced(Thing::Task, &id, &mut other_ids);
            plan.tasks.push((place, task));
        }
    }
    findings.ledger.note_named(&format!("tasks {OTHER_IDS}"), &other_ids);
    Ok(())
}

fn is_agent(id: &str) -> bool {
    (1..=AGENT_ID_BYTES_MAX).contains(&id.len())
}

fn agent_bytes(whose: &str) -> String {
    format!("{whose} must have 1 to {AGENT_ID_BYTES_MAX} bytes")
}

/// `Err`: its faults.
fn ended(row: Vote) -> Result<(u64, VoteImported), String> {
    let options = (2..=VOTE_OPTIONS_MAX).contains(&row.options.len())
        && row.options.iter().all(|option| (1..=VOTE_OPTION_BYTES_MAX).contains(&option.len()));
    let title = !row.title.trim().is_empty() && row.title.len() <= VOTE_TITLE_BYTES_MAX;
    let description =
        row.description.as_ref().is_none_or(|text| text.len() <= DESCRIPTION_BYTES_MAX);
    let checks = [
        (title, format!("its title must have 1 to {VOTE_TITLE_BYTES_MAX} bytes and not be blank")),
        (description, format!("its description may have {DESCRIPTION_BYTES_MAX} bytes")),
        (
            options,
            format!(
                "it must have 2 to {VOTE_OPTIONS_MAX} options of 1 to {VOTE_OPTION_BYTES_MAX} bytes"
            ),
        ),
        (is_agent(&row.created_by), agent_bytes("its creator's id")),
    ];
    all_well(&checks)?;
    let vote = VoteImported {
        title: row.title,
        description: row.description,
        options: row.options,
        created_by: row.created_by.into(),
        closes_ms: row.closes_ms,
        eligible: row.eligible,
        tally: row.tally,
        id: Some(id_of(Thing::Vote, &row.id)),
    };
    Ok((row.created_ms, vote))
}

/// `Err`: its faults.
fn imported(row: Task, room: mesh::name::id::RoomId) -> Result<ImportedTask, String> {
    let status = match row.status.as_str() {
        "pending" => TaskStatus::Pending,
        "in_progress" => TaskStatus::InProgress,
        "completed" => TaskStatus::Completed,
        "blocked" => TaskStatus::Blocked,
        other => return Err(format!("its status {other:?} is none of a task")),
    };
    let title = !row.title.trim().is_empty() && row.title.len() <= TASK_TITLE_BYTES_MAX;
    let description =
        row.description.as_ref().is_none_or(|text| text.len() <= DESCRIPTION_BYTES_MAX);
    let note = row.note.as_ref().is_none_or(|text| text.len() <= TASK_NOTE_BYTES_MAX);
    let checks = [
        (title, format!("its title must have 1 to {TASK_TITLE_BYTES_MAX} bytes and not be blank")),
        (description, format!("its description may have {DESCRIPTION_BYTES_MAX} bytes")),
        (note, format!("its note may have {TASK_NOTE_BYTES_MAX} bytes")),
        (row.assignee.as_deref().is_none_or(is_agent), agent_bytes("its assignee's id")),
        (is_agent(&row.created_by), agent_bytes("its creator's id")),
    ];
    all_well(&checks)?;
    Ok(ImportedTask {
        room,
        task: TaskAssigned {
            description: row.description,
            assignee: row.assignee.map(Into::into),
            id: Some(id_of(Thing::Task, &row.id)),
            ..TaskAssigned::of(row.title, row.created_by.into())
        },
        created_ms: row.created_ms,
        status,
        note: row.note,
        updated_ms: row.updated_ms,
    })
}
