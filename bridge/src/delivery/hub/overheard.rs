//! News of rooms for dialects whose clients have no seat: they hear all, and judge who is told.

use std::sync::Arc;

use mesh::{
    Proof,
    api::event::Delivered,
    name::id::{AgentId, RoomId},
    records::news::AgentNote,
};
use tokio::sync::broadcast;

use super::Hub;
use crate::{
    limits::{DESCRIBED_MAX, OVERHEARD_MAX},
    seam::{
        answer::RoomFacts,
        event::{Event, Message},
    },
};

/// News of a room: it is there, or is not any more, something was said, a task was made, changed or deleted, an approval was asked for or decided about, others
/// are on its list, or its records say something else. What is said in direct rooms is not among it.
#[derive(Clone, Debug)]
pub struct Overheard {
    /// The room.
    pub room: RoomId,
    /// Who may read it, and more.
    pub facts: RoomFacts,
    /// The news.
    pub event: Event,
}

/// Records say something else of an agent, attached or not.
#[derive(Clone, Debug)]
pub struct Described {
    /// The agent.
    pub agent: AgentId,
    /// What they say.
    pub notes: Arc<[AgentNote]>,
}

#[derive(Debug)]
pub(super) struct Overhearing {
    rooms: broadcast::Sender<Arc<Overheard>>,
    agents: broadcast::Sender<Described>,
}

impl Default for Overhearing {
    fn default() -> Overhearing {
        Overhearing {
            rooms: broadcast::Sender::new(OVERHEARD_MAX),
            agents: broadcast::Sender::new(DESCRIBED_MAX),
        }
    }
}

impl Hub {
    /// From now on. Who does not keep up loses the oldest, and is told how many.
    pub(crate) fn overhear(&self) -> broadcast::Receiver<Arc<Overheard>> {
        self.overhearing.rooms.subscribe()
    }

    /// News of agents, in the same way.
    pub(crate) fn hear_of_agents(&self) -> broadcast::Receiver<Described> {
        self.overhearing.agents.subscribe()
    }

    pub(super) fn described(&self, agent: AgentId, notes: Arc<[AgentNote]>) {
        // Nobody listens.
        drop(self.overhearing.agents.send(Described { agent, notes }));
    }

    /// In the order in which the room's logs are read here.
    pub(super) fn overheard(&self, room: RoomId, event: &Event) {
        self.overhears(room, |_| Some(event.clone()));
    }

    /// Something is said. Nothing is read for those who overhear: without its content in memory they do not hear of it.
    pub(super) fn overheard_words(&self, room: RoomId, delivered: &Delivered) {
        self.overhears(room, |facts| {
            let said = delivered.said.clone().filter(|_| facts.access.sides.is_none())?;
            Message::delivered(room, delivered, said, Proof::default()).map(Event::Said)
        });
    }

    fn overhears(&self, room: RoomId, event: impl FnOnce(&RoomFacts) -> Option<Event>) {
        if self.overhearing.rooms.receiver_count() == 0 {
            return;
        }
        let facts = self.read().rooms.get(&room).map(|known| known.facts.clone());
        if let Some(facts) = facts
            && let Some(event) = event(&facts)
        {
            // Nobody listens any more: nobody is to be told.
            drop(self.overhearing.rooms.send(Arc::new(Overheard { room, facts, event })));
        }
    }
}
