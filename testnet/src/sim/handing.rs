//! Agents that hand each other ids outside the mesh, in a simulated world.

use std::time::Duration;

use mesh::{
    Input,
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        command::{CallId, Caller, Command, Encryption, NewRoom, Outcome, Refused, Say, Speech},
    },
    name::id::{MessageId, RoomId},
    wire::acts::TaskStatus,
};

use super::{
    agents::KEY,
    promises::{Broken, broken},
    world::World,
};
use crate::scenario::handing::{Answer, Ask, Given};

/// Between two looks at whether it is answered: what is made is told to the next one at once.
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// An agent is answered within this time, or it is a failure. Virtual.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

impl World {
    /// What a node answers, as soon as it does.
    fn answer_of(
        &mut self,
        node: usize,
        command: Command,
    ) -> Result<Result<Outcome, Refused>, Broken> {
        let call = self.call();
        self.probe = Some((call, None));
        self.give(node, Input::Command { call, command });
        let late = self.now + ANSWERED_WITHIN;
        loop {
            if let Some((_, Some(result))) = self.probe.take_if(|(_, it)| it.is_some()) {
                return Ok(result);
            }
            if self.now > late {
                return broken("replies", format!("node{node} did not answer"));
            }
            let until = self.now + LOOK_EVERY;
            self.run_until(until)?;
        }
    }

    /// Whether the answer was to such a call.
    pub(super) fn is_probe(&mut self, call: CallId, result: &Result<Outcome, Refused>) -> bool {
        match &mut self.probe {
            Some((probe, answer)) if *probe == call => {
                *answer = Some(result.clone());
                true
            }
            Some(_) | None => false,
        }
    }

    /// What an agent at a node is answered in a round.
    pub(super) fn hand(
        &mut self,
        (node, caller): (usize, Caller),
        ask: Ask,
        (round, given): (u64, &Given),
    ) -> Result<Result<Answer, String>, Broken> {
        let command = command(caller, ask, (round, given));
        let result = self.answer_of(node, command)?;
        if let Ok(Outcome::Room(view)) = &result
            && view.ephemeral
        {
            self.promises.ephemeral.insert(view.room);
        }
        Ok(match result {
            Ok(outcome) => self.handed((node, ask), outcome, given),
            Err(refused) => Err(format!("{refused:?}")),
        })
    }

    fn handed(
        &self,
        (node, ask): (usize, Ask),
        outcome: Outcome,
        given: &Given,
    ) -> Result<Answer, String> {
        let id = |id: String| Answer { id, among: None };
        let among = |among: usize| Some(among as u64);
        Ok(match (ask, outcome) {
            (Ask::Create, Outcome::Room(view)) => id(view.room.to_string()),
            (Ask::Open, Outcome::Vote(view)) => {
                Answer { id: view.vote.to_string(), among: among(view.eligible) }
            }
            (Ask::Cast, Outcome::Cast { eligible, .. }) => {
                Answer { id: String::new(), among: among(eligible) }
            }
            (Ask::Assign, Outcome::Task(view)) => id(view.task.to_string()),
            (Ask::Say, Outcome::Said(said)) => id(said.message.to_string()),
            (Ask::Elect, Outcome::Candidates(all)) => {
                Answer { id: String::new(), among: among(all.len()) }
            }
            (Ask::Since, Outcome::Done) => {
                let (room, message) = (room(given), message(&given.message));
                let reader = self.nodes[node].running.as_ref().map(|it| &it.reader);
                let row = reader.and_then(|it| it.by_message(room, message).ok().flatten());
                return row.map(|_| Answer::default()).ok_or_else(|| "no such message".to_owned());
            }
            (Ask::View, Outcome::Vote(_))
            | (Ask::Take, Outcome::Task(_))
            | (Ask::Join, Outcome::Joined(_))
            | (Ask::Decline | Ask::Leave, Outcome::Done) => Answer::default(),
            (ask, outcome) => return Err(format!("{ask:?} was answered with {outcome:?}")),
        })
    }
}

fn command(caller: Caller, ask: Ask, (round, given): (u64, &Given)) -> Command {
    let room = room(given);
    match ask {
        Ask::Create => {
            let room = NewRoom {
                name: format!("handed {round}"),
                description: None,
                parent: None,
                ephemeral: round % 5 == 4,
                public: true,
                encrypted: false,
            };
            Command::CreateRoom { caller, room }
        }
        Ask::Join => Command::Join { caller, room },
        Ask::Open => {
            let vote = NewVote {
                room,
                title: "which one?".to_owned(),
                description: None,
                options: vec!["this".to_owned(), "that".to_owned()],
                duration_secs: Some(3_600),
            };
            Command::CreateVote { caller, vote }
        }
        Ask::Cast => Command::CastVote { caller, vote: message(&given.vote), option: 0 },
        Ask::View => {
            let agent = Some(caller.agent);
            Command::GetVote { key: KEY, agent, vote: message(&given.vote) }
        }
        Ask::Assign => {
            let title = "somebody has to".to_owned();
            let task = NewTask { room, title, description: None, assignee: None };
            Command::AssignTask { caller, task }
        }
        Ask::Take => {
            let update = TaskUpdate {
                task: message(&given.task),
                status: Some(TaskStatus::InProgress),
                assignee: Some(caller.agent.clone()),
                note: None,
                if_assignee: None,
            };
            Command::UpdateTask { caller, update }
        }
        Ask::Say => {
            let say = Say {
                room,
                speech: Speech::Chat,
                content: "read this".to_owned(),
                encryption: Encryption::None,
                reply_to: None,
                mentions: Vec::new(),
                metadata: None,
                dedup: None,
            };
            Command::Say { caller, say }
        }
        Ask::Since => Command::Seek { caller, room, message: Some(message(&given.message)) },
        Ask::Elect => Command::ElectLeader { caller, room },
        Ask::Decline => Command::Decline { caller, room },
        Ask::Leave => Command::Leave { caller, room },
    }
}

fn room(given: &Given) -> RoomId {
    RoomId::from_uuid(&given.room).unwrap_or(RoomId([0; 16]))
}

fn message(text: &str) -> MessageId {
    MessageId::from_uuid(text).unwrap_or(MessageId([0; 16]))
}
