//! Agents that hand each other ids outside the mesh, in a simulated world.

use std::time::Duration;

use mesh::{
    api::{
        agenda::{NewTask, NewVote, TaskUpdate},
        command::{Command, NewRoom, Outcome, Refused, Speech},
    },
    name::id::{MessageId, RoomId},
    wire::acts::TaskStatus,
};

use super::{
    agents::say,
    cluster::Cluster,
    parts::Seated,
    promises::{Broken, broken},
    world::World,
};
use crate::scenario::handing::{Answer, Ask, Given};

/// Between two looks at whether it is answered: the next agent is told at once.
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// An agent is answered within this time, or it is a failure. Virtual.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// An agent that takes part in a round.
#[derive(Debug)]
pub(super) struct Hand<'a> {
    pub(super) by: Seated,
    pub(super) ask: Ask,
    pub(super) round: u64,
    /// Ids that the agents have told each other in this round.
    pub(super) given: &'a Given,
}

impl Hand<'_> {
    /// The agent asks its node, and is answered.
    pub(super) fn play(self, world: &mut World) -> Result<Result<Answer, String>, Broken> {
        let result = answer_of(world, self.by.node, self.command())?;
        if let Ok(Outcome::Room(view)) = &result
            && view.ephemeral
        {
            world.cluster.rooms.ephemeral.insert(view.room);
        }
        Ok(match result {
            Ok(outcome) => self.answer(&world.cluster, outcome),
            Err(refused) => Err(format!("{refused:?}")),
        })
    }

    fn answer(&self, cluster: &Cluster, outcome: Outcome) -> Result<Answer, String> {
        let id = |id: String| Answer { id, among: None };
        let among = |among: usize| Some(among as u64);
        Ok(match (self.ask, outcome) {
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
                let (room, message) = (room(self.given), message(&self.given.message));
                let running = cluster.nodes[self.by.node].running.as_ref();
                let row =
                    running.and_then(|node| node.reader.by_message(room, message).ok().flatten());
                return row.map(|_| Answer::default()).ok_or_else(|| "no such message".to_owned());
            }
            (Ask::View, Outcome::Vote(_))
            | (Ask::Take, Outcome::Task(_))
            | (Ask::Join, Outcome::Joined(_))
            | (Ask::Decline | Ask::Leave, Outcome::Done) => Answer::default(),
            (ask, outcome) => return Err(format!("{ask:?} was answered with {outcome:?}")),
        })
    }

    fn command(&self) -> Command {
        let Hand { ask, round, given, .. } = self;
        let (caller, room) = (self.by.caller.clone(), room(given));
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
            Ask::View => Command::GetVote { by: caller.reader(), vote: message(&given.vote) },
            Ask::Assign => {
                let title = "somebody has to".to_owned();
                let task = NewTask::of(room, title);
                Command::AssignTask { caller, task }
            }
            Ask::Take => {
                let update = TaskUpdate {
                    status: Some(TaskStatus::InProgress),
                    assignee: Some(Some(caller.agent.clone())),
                    ..TaskUpdate::of(message(&given.task))
                };
                Command::UpdateTask { caller, update }
            }
            Ask::Say => {
                let say = say(room, Speech::Chat, "read this".to_owned());
                Command::Say { caller, say }
            }
            Ask::Since => Command::Seek { caller, room, message: Some(message(&given.message)) },
            Ask::Elect => Command::ElectLeader { caller, room },
            Ask::Decline => Command::Decline { caller, room },
            Ask::Leave => Command::Leave { caller, room },
        }
    }
}

/// A node's answer, as soon as it comes.
fn answer_of(
    world: &mut World,
    node: usize,
    command: Command,
) -> Result<Result<Outcome, Refused>, Broken> {
    let call = world.probes.ask(&mut world.cluster, node, command);
    let late = world.cluster.now() + ANSWERED_WITHIN;
    loop {
        if let Some(result) = world.probes.take(call) {
            return Ok(result);
        }
        if world.cluster.now() > late {
            return broken("replies", format!("node{node} did not answer"));
        }
        world.go_on(LOOK_EVERY)?;
    }
}

fn room(given: &Given) -> RoomId {
    RoomId::from_uuid(&given.room).unwrap_or(RoomId([0; 16]))
}

fn message(text: &str) -> MessageId {
    MessageId::from_uuid(text).unwrap_or(MessageId([0; 16]))
}
