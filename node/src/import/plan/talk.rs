//! What was said in rooms: messages, votes and tasks.

use std::collections::BTreeMap;

use anyhow::Result;
use import::{ReadError, ServerFile, Task, Vote};
use mesh::{
    acts::{TaskAssigned, TaskStatus, VoteImported},
    id::MessageId,
    import::ImportedTask,
    limits::{
        AGENT_ID_BYTES_MAX, DESCRIPTION_BYTES_MAX, TASK_NOTE_BYTES_MAX, TASK_TITLE_BYTES_MAX,
        TASKS_PER_LOG_MAX, VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX,
        VOTES_PER_LOG_MAX,
    },
};

use super::{Choices, EndedVote, Findings, OpenVotes, Place, Plan, Sieve, Sifted, Thing};

/// How often it is told how many messages were looked at.
const TOLD_EVERY: u64 = 10_000;

/// An id that clients go on using; `None`: one that nobody can find here, in place of which there is one of ours.
pub(crate) fn id_of(text: &str) -> Option<MessageId> {
    MessageId::from_uuid(text).filter(|it| it.is_foreign() && it.to_uuid() == text)
}

impl Plan {
    pub(super) fn look_at_messages(
        &mut self,
        file: &ServerFile,
        findings: &mut Findings,
        each: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let (mut seen, mut other_ids) = (0, 0);
        let mut sieve = Sieve::default();
        file.messages::<ReadError>(|row| {
            seen += 1;
            if seen % TOLD_EVERY == 0 {
                each(seen);
            }
            match sieve.sift(self, row) {
                Sifted::Brought(place, message) => {
                    self.goes_on(place, message.seq + 1);
                    findings.ledger.brought.add(Thing::Message, 1);
                    other_ids += u64::from(id_of(&message.id).is_none());
                }
                Sifted::Left(why) => findings.ledger.leave(Thing::Message, why, None),
                Sifted::Bad(bad) => findings.bad(Thing::Message, bad),
            }
            Ok(())
        })?;
        if other_ids > 0 {
            let note = format!(
                "{other_ids} messages get other ids: theirs are no UUIDs that ClawChat draws"
            );
            findings.ledger.note(note);
        }
        Ok(())
    }

    pub(super) fn take_votes(
        &mut self,
        file: &ServerFile,
        choices: Choices,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut by_place: BTreeMap<Place, Vec<EndedVote>> = BTreeMap::new();
        let mut closed = Vec::new();
        for vote in findings.readable(Thing::Vote, file.votes()?) {
            let Some(place) = self.place(&vote.room) else {
                findings.ledger.leave(Thing::Vote, self.no_room(&vote.room), Some(&vote.title));
                continue;
            };
            match choices.open_votes {
                _ if vote.closed => {}
                OpenVotes::Refuse => {
                    let why = format!(
                        "the vote {:?} is open: its ballots are secret, and its voters are gone; close it at the server, end it \
                         with what was voted so far with --close-open-votes, or leave it out with --skip-open-votes",
                        vote.title
                    );
                    findings.row((Thing::Vote, "votes", &vote.id), why);
                    continue;
                }
                OpenVotes::Skip => {
                    findings.ledger.leave(Thing::Vote, "they are open", Some(&vote.title));
                    continue;
                }
                OpenVotes::Close => closed.push(vote.title.clone()),
            }
            match ended(vote) {
                Ok(vote) => by_place.entry(place).or_default().push((place, vote.0, vote.1)),
                Err((id, why)) => findings.row((Thing::Vote, "votes", &id), why),
            }
        }
        findings.ledger.note_named("open votes end with what was voted so far", &closed);
        for (_, mut votes) in by_place {
            let more = votes.len().saturating_sub(VOTES_PER_LOG_MAX);
            for (_, _, vote) in votes.drain(..more) {
                let why = format!("of a room the newest {VOTES_PER_LOG_MAX} are");
                findings.ledger.leave(Thing::Vote, why, Some(&vote.title));
            }
            self.votes.append(&mut votes);
        }
        Ok(())
    }

    pub(super) fn take_tasks(&mut self, file: &ServerFile, findings: &mut Findings) -> Result<()> {
        let mut by_place: BTreeMap<Place, Vec<(Place, ImportedTask)>> = BTreeMap::new();
        // Where the lobby is, is known when it is written.
        let nowhere = mesh::id::RoomId([0; 16]);
        for task in findings.readable(Thing::Task, file.tasks()?) {
            let Some(place) = self.place(&task.room) else {
                findings.ledger.leave(Thing::Task, self.no_room(&task.room), Some(&task.title));
                continue;
            };
            let room = if let Place::Room(room) = place { room } else { nowhere };
            match imported(task, room) {
                Ok(task) => by_place.entry(place).or_default().push((place, task)),
                Err((id, why)) => findings.row((Thing::Task, "room_tasks", &id), why),
            }
        }
        for (_, mut tasks) in by_place {
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
            if more > 0 {
                findings.refuse(format!(
                    "room_tasks: {} tasks of one room are not completed; a node keeps {TASKS_PER_LOG_MAX} of a room",
                    tasks.len()
                ));
            }
            self.tasks.append(&mut tasks);
        }
        Ok(())
    }
}

/// Joins what is wrong with a row.
pub(super) fn all_well(checks: &[(bool, String)]) -> Result<(), String> {
    let wrong: Vec<&str> =
        checks.iter().filter(|(well, _)| !well).map(|(_, why)| why.as_str()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn is_agent(id: &str) -> bool {
    (1..=AGENT_ID_BYTES_MAX).contains(&id.len())
}

fn agent_bytes(whose: &str) -> String {
    format!("{whose} must have 1 to {AGENT_ID_BYTES_MAX} bytes")
}

type Refused = (String, String);

fn ended(it: Vote) -> Result<(u64, VoteImported), Refused> {
    let options = (2..=VOTE_OPTIONS_MAX).contains(&it.options.len())
        && it.options.iter().all(|it| (1..=VOTE_OPTION_BYTES_MAX).contains(&it.len()));
    let title = !it.title.trim().is_empty() && it.title.len() <= VOTE_TITLE_BYTES_MAX;
    let description = it.description.as_ref().is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX);
    let checks = [
        (title, format!("its title must have 1 to {VOTE_TITLE_BYTES_MAX} bytes and not be blank")),
        (description, format!("its description may have {DESCRIPTION_BYTES_MAX} bytes")),
        (
            options,
            format!(
                "it must have 2 to {VOTE_OPTIONS_MAX} options of 1 to {VOTE_OPTION_BYTES_MAX} bytes"
            ),
        ),
        (is_agent(&it.created_by), agent_bytes("its creator's id")),
    ];
    if let Err(why) = all_well(&checks) {
        return Err((it.id, why));
    }
    let vote = VoteImported {
        title: it.title,
        description: it.description,
        options: it.options,
        created_by: it.created_by.into(),
        closes_ms: it.closes_ms,
        eligible: it.eligible,
        tally: it.tally,
        id: id_of(&it.id),
    };
    Ok((it.created_ms, vote))
}

fn imported(it: Task, room: mesh::id::RoomId) -> Result<ImportedTask, Refused> {
    let status = match it.status.as_str() {
        "pending" => TaskStatus::Pending,
        "in_progress" => TaskStatus::InProgress,
        "completed" => TaskStatus::Completed,
        "blocked" => TaskStatus::Blocked,
        other => return Err((it.id, format!("its status {other:?} is none of a task"))),
    };
    let title = !it.title.trim().is_empty() && it.title.len() <= TASK_TITLE_BYTES_MAX;
    let description = it.description.as_ref().is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX);
    let note = it.note.as_ref().is_none_or(|it| it.len() <= TASK_NOTE_BYTES_MAX);
    let checks = [
        (title, format!("its title must have 1 to {TASK_TITLE_BYTES_MAX} bytes and not be blank")),
        (description, format!("its description may have {DESCRIPTION_BYTES_MAX} bytes")),
        (note, format!("its note may have {TASK_NOTE_BYTES_MAX} bytes")),
        (it.assignee.as_deref().is_none_or(is_agent), agent_bytes("its assignee's id")),
        (is_agent(&it.created_by), agent_bytes("its creator's id")),
    ];
    if let Err(why) = all_well(&checks) {
        return Err((it.id, why));
    }
    Ok(ImportedTask {
        room,
        task: TaskAssigned {
            title: it.title,
            description: it.description,
            assignee: it.assignee.map(Into::into),
            created_by: it.created_by.into(),
            id: id_of(&it.id),
        },
        created_ms: it.created_ms,
        status,
        note: it.note,
        updated_ms: it.updated_ms,
    })
}
