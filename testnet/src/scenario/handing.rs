//! Ids that agents at different nodes hand each other outside the mesh, as soon as they are answered: in either world.

use serde_json::json;

use crate::wire::{Agent, WireError, text};

/// So many agents hand things to each other, each at a node of its own.
pub(crate) const AGENTS: usize = 3;

/// A request of one of them to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A room of its own.
    Create,
    /// To be in it.
    Join,
    /// A vote of all who are in it.
    Open,
    /// To vote.
    Cast,
    /// How the vote is.
    View,
    /// A task.
    Assign,
    /// To have the task.
    Take,
    /// To say something.
    Say,
    /// The messages after that.
    Since,
    /// An election among all who are in the room.
    Elect,
    /// Not to stand.
    Decline,
    /// To be there no more.
    Leave,
}

/// The agents' requests, one after the other: each time the agent before has its answer, and tells the next.
pub(crate) const ROUND: [(usize, Ask); 16] = [
    (0, Ask::Create),
    (0, Ask::Join),
    (1, Ask::Join),
    (2, Ask::Join),
    (0, Ask::Open),
    (1, Ask::Cast),
    (2, Ask::View),
    (2, Ask::Assign),
    (1, Ask::Take),
    (2, Ask::Say),
    (0, Ask::Since),
    (1, Ask::Elect),
    (0, Ask::Decline),
    (0, Ask::Leave),
    (1, Ask::Leave),
    (2, Ask::Leave),
];

/// Ids that they have told each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) room: String,
    pub(crate) vote: String,
    pub(crate) task: String,
    pub(crate) message: String,
}

/// A node's answer: the id of the new thing, and among how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) among: Option<u64>,
}

impl Given {
    /// Notes an answer. Returns its fault, if it has one: a refusal, or an agent is missing.
    pub(crate) fn note(&mut self, ask: Ask, answer: Result<Answer, String>) -> Option<String> {
        let Answer { id, among } = match answer {
            Ok(answer) => answer,
            Err(code) => return Some(code),
        };
        let made = [
            (Ask::Create, &mut self.room),
            (Ask::Open, &mut self.vote),
            (Ask::Assign, &mut self.task),
            (Ask::Say, &mut self.message),
        ];
        if let Some((_, given)) = made.into_iter().find(|(made, _)| *made == ask) {
            *given = id;
        }
        let missing = among.filter(|among| *among != AGENTS as u64);
        missing.map(|among| format!("{among} of {AGENTS} were there"))
    }
}

/// The agent of a round: they take turns at being first.
pub(crate) fn agent(round: u64, who: usize) -> usize {
    usize::try_from((round + who as u64) % AGENTS as u64).unwrap_or(0)
}

/// The answer of a real daemon to an agent in a round.
pub(super) async fn hand(
    agent: &mut Agent,
    ask: Ask,
    round: u64,
    given: &Given,
) -> Result<Result<Answer, String>, WireError> {
    let room = &given.room;
    let (kind, payload) = match ask {
        Ask::Create => {
            let name = format!("handed {round}");
            ("create_room", json!({ "name": name, "public": true, "ephemeral": round % 5 == 4 }))
        }
        Ask::Join => ("join_room", json!({ "room_id": room })),
        Ask::Open => (
            "create_vote",
            json!({ "room_id": room, "title": "which one?", "options": ["this", "that"], "duration_secs": 3_600 }),
        ),
        Ask::Cast => ("cast_vote", json!({ "vote_id": given.vote, "option_index": 0 })),
        Ask::View => ("get_vote_status", json!({ "vote_id": given.vote })),
        Ask::Assign => ("assign_task", json!({ "room_id": room, "title": "somebody has to" })),
        Ask::Take => {
            let update =
                json!({ "task_id": given.task, "status": "in_progress", "assignee": agent.id });
            ("update_task", update)
        }
        Ask::Say => ("send_message", json!({ "room_id": room, "content": "read this" })),
        Ask::Since => ("get_history", json!({ "room_id": room, "since": given.message })),
        Ask::Elect => ("elect_leader", json!({ "room_id": room })),
        Ask::Decline => ("decline_election", json!({ "room_id": room })),
        Ask::Leave => ("leave_room", json!({ "room_id": room })),
    };
    let answer = match agent.call(kind, payload).await {
        Ok(answer) => answer,
        Err(error) => match error.code() {
            Some(code) => return Ok(Err(code.to_owned())),
            None => return Err(error),
        },
    };
    let count = |field: &str| answer[field].as_u64();
    Ok(Ok(match ask {
        Ask::Create => Answer { id: text(&answer, "room_id"), among: None },
        Ask::Open => Answer { id: text(&answer, "vote_id"), among: count("eligible_voters") },
        Ask::Cast => Answer { id: String::new(), among: count("eligible_voters") },
        Ask::Assign => Answer { id: text(&answer, "task_id"), among: None },
        Ask::Say => Answer { id: text(&answer, "message_id"), among: None },
        Ask::Elect => {
            let among = answer["candidates"].as_array().map(|all| all.len() as u64);
            Answer { id: String::new(), among }
        }
        Ask::Join | Ask::View | Ask::Take | Ask::Since | Ask::Decline | Ask::Leave => {
            Answer::default()
        }
    }))
}
