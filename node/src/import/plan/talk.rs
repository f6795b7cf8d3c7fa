//! What was said in rooms: messages, votes and tasks.

use std::collections::BTreeMap;

use anyhow::Result;
use import::{Message, ReadError, ServerFile, Task, Vote};
use mesh::{
    acts::{TaskAssigned, TaskStatus, VoteImported},
    import::ImportedTask,
    limits::{
        AGENT_ID_BYTES_MAX, CONTENT_BYTES_MAX, DESCRIPTION_BYTES_MAX, MENTIONS_MAX, NAME_BYTES_MAX,
        PLAIN_BODY_BYTES_MAX, TASK_NOTE_BYTES_MAX, TASK_TITLE_BYTES_MAX, TASKS_PER_LOG_MAX,
        VOTE_OPTION_BYTES_MAX, VOTE_OPTIONS_MAX, VOTE_TITLE_BYTES_MAX, VOTES_PER_LOG_MAX,
    },
    number::Era,
};
use protocol::value::Metadata;

use super::{Choices, EndedVote, Place, Plan, Refusals, too_high};

/// How often it is told how many messages were looked at.
const TOLD_EVERY: u64 = 10_000;
/// What a message's body has besides its texts, at most.
const FRAME_BYTES: usize = 1_024;

impl Plan {
    pub(super) fn look_at_messages(
        &mut self,
        file: &ServerFile,
        refusals: &mut Refusals,
        each: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let (mut seen, mut left) = (0, 0);
        // The last number of each room: rooms come one after the other.
        let mut last: Option<(String, u64)> = None;
        file.messages::<ReadError>(|row| {
            seen += 1;
            if seen % TOLD_EVERY == 0 {
                each(seen);
            }
            let message = match row {
                Ok(message) => message,
                Err(bad) => {
                    refusals.add(bad);
                    return Ok(());
                }
            };
            if self.ephemeral.contains(&message.room) {
                left += 1;
                return Ok(());
            }
            let before = last.take().filter(|(room, _)| *room == message.room).map(|(_, seq)| seq);
            if let Err(why) = check_message(&message, before) {
                refusals.row(("messages", &message.id), why);
            }
            match self.place(&message.room) {
                Some(place) => {
                    let next = self.next.entry(place).or_default();
                    *next = (*next).max(message.seq.saturating_add(1));
                    self.messages += 1;
                }
                None => refusals.row(("messages", &message.id), no_room(&message.room)),
            }
            last = Some((message.room, message.seq));
            Ok(())
        })?;
        if left > 0 {
            self.notes.push(format!("{left} messages of ephemeral rooms are not brought"));
        }
        Ok(())
    }

    pub(super) fn take_votes(
        &mut self,
        file: &ServerFile,
        choices: Choices,
        refusals: &mut Refusals,
    ) -> Result<()> {
        let mut by_place: BTreeMap<Place, Vec<EndedVote>> = BTreeMap::new();
        let mut open = 0;
        for row in file.votes()? {
            let vote = match row {
                Ok(vote) => vote,
                Err(bad) => {
                    refusals.add(bad);
                    continue;
                }
            };
            if self.ephemeral.contains(&vote.room) {
                continue;
            }
            if !vote.closed && choices.skip_open_votes {
                open += 1;
                continue;
            }
            let Some(place) = self.place(&vote.room) else {
                refusals.row(("votes", &vote.id), no_room(&vote.room));
                continue;
            };
            match ended(vote) {
                Ok(vote) => by_place.entry(place).or_default().push((place, vote.0, vote.1)),
                Err((id, why)) => refusals.row(("votes", &id), why),
            }
        }
        if open > 0 {
            self.notes.push(format!("{open} open votes are not brought"));
        }
        for (_, mut votes) in by_place {
            let more = votes.len().saturating_sub(VOTES_PER_LOG_MAX);
            if more > 0 {
                self.notes.push(format!(
                    "of {} votes of a room the newest {VOTES_PER_LOG_MAX} are brought",
                    votes.len()
                ));
            }
            self.votes.extend(votes.drain(more..));
        }
        Ok(())
    }

    pub(super) fn take_tasks(&mut self, file: &ServerFile, refusals: &mut Refusals) -> Result<()> {
        let mut by_place: BTreeMap<Place, Vec<(Place, ImportedTask)>> = BTreeMap::new();
        // Where the lobby is, is known when it is written.
        let nowhere = mesh::id::RoomId([0; 16]);
        for row in file.tasks()? {
            let task = match row {
                Ok(task) => task,
                Err(bad) => {
                    refusals.add(bad);
                    continue;
                }
            };
            if self.ephemeral.contains(&task.room) {
                continue;
            }
            let Some(place) = self.place(&task.room) else {
                refusals.row(("room_tasks", &task.id), no_room(&task.room));
                continue;
            };
            let room = if let Place::Room(room) = place { room } else { nowhere };
            match imported(task, room) {
                Ok(task) => by_place.entry(place).or_default().push((place, task)),
                Err((id, why)) => refusals.row(("room_tasks", &id), why),
            }
        }
        for (_, mut tasks) in by_place {
            let mut more = tasks.len().saturating_sub(TASKS_PER_LOG_MAX);
            if more > 0 {
                self.notes.push(format!(
                    "of {} tasks of a room {TASKS_PER_LOG_MAX} are brought: the oldest that are completed are not",
                    tasks.len()
                ));
            }
            tasks.retain(|(_, task)| {
                let left_out = more > 0 && task.status == TaskStatus::Completed;
                more -= usize::from(left_out);
                !left_out
            });
            if more > 0 {
                refusals.add(format!(
                    "room_tasks: {} tasks of one room are not completed; a node keeps {TASKS_PER_LOG_MAX} of a room",
                    tasks.len()
                ));
            }
            self.tasks.append(&mut tasks);
        }
        Ok(())
    }
}

fn no_room(room: &str) -> String {
    format!("its room {room:?} is not brought, or not there")
}

/// Joins what is wrong with a row.
fn all_well(checks: &[(bool, String)]) -> Result<(), String> {
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

/// `before`: the number before it in its room.
fn check_message(it: &Message, before: Option<u64>) -> Result<(), String> {
    let mentions: usize = it.mentions.iter().map(|it| it.len() + 8).sum();
    let texts = it.content.len() + it.name.len() + it.agent.len();
    let more =
        it.metadata.as_ref().map_or(0, String::len) + it.reply_to.as_ref().map_or(0, String::len);
    let sound = it.metadata.as_deref().is_none_or(|json| Metadata::parse(json).is_ok());
    all_well(&[
        (it.seq >= 1, "its number is 0".to_owned()),
        (it.seq < Era::HOME.capacity(), too_high(it.seq)),
        (before != Some(it.seq), format!("the number {} is another message's, too", it.seq)),
        (is_agent(&it.agent), agent_bytes("its agent's id")),
        (
            it.name.len() <= NAME_BYTES_MAX,
            format!("its agent's name may have {NAME_BYTES_MAX} bytes"),
        ),
        (
            it.content.len() <= CONTENT_BYTES_MAX,
            format!("its content has {} bytes; it may have {CONTENT_BYTES_MAX}", it.content.len()),
        ),
        (it.mentions.len() <= MENTIONS_MAX, format!("it may mention {MENTIONS_MAX} agents")),
        (sound, "its metadata is nested too deep, or too large".to_owned()),
        (
            texts + more + mentions + FRAME_BYTES <= PLAIN_BODY_BYTES_MAX,
            format!("all its texts have more than {PLAIN_BODY_BYTES_MAX} bytes"),
        ),
    ])
}

type Refused = (String, String);

fn ended(it: Vote) -> Result<(u64, VoteImported), Refused> {
    let open = format!(
        "the vote {:?} is open: its ballots are secret, and its voters are gone; close it at the server, or leave \
         open votes out with --skip-open-votes",
        it.title
    );
    let options = (2..=VOTE_OPTIONS_MAX).contains(&it.options.len())
        && it.options.iter().all(|it| (1..=VOTE_OPTION_BYTES_MAX).contains(&it.len()));
    let title = !it.title.trim().is_empty() && it.title.len() <= VOTE_TITLE_BYTES_MAX;
    let description = it.description.as_ref().is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX);
    let checks = [
        (it.closed, open),
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
        },
        created_ms: it.created_ms,
        status,
        note: it.note,
        updated_ms: it.updated_ms,
    })
}
