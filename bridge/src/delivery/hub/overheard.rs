//! News of rooms for dialects whose clients have no seat: they hear all, and judge who is told.

use std::sync::Arc;

use mesh::{Proof, api::event::Delivered, name::id::RoomId};
use tokio::sync::broadcast;

use super::Hub;
use crate::{
    limits::OVERHEARD_MAX,
    seam::{
        answer::RoomFacts,
        event::{Event, Message},
    },
};

/// News of a room: it is there, or is not any more, something was said, a task was made, changed or deleted, an approval was asked for or decided about, or others
/// are on its list. What is said in direct rooms is not among it.
#[derive(Clone, Debug)]
pub struct Overheard {
    /// The room.
    pub room: RoomId,
    /// Who may read it, and more.
    pub facts: RoomFacts,
    /// The news.
    pub event: Event,
}

#[derive(Debug)]
pub(super) struct Overhearing(broadcast::Sender<Arc<Overheard>>);

impl Default for Overhearing {
    fn default() -> Overhearing {
        Overhearing(broadcast::Sender::new(OVERHEARD_MAX))
    }
}

impl Hub {
    /// From now on. Who does not keep up loses the oldest, and is told how many.
    pub(crate) fn overhear(&self) -> broadcast::Receiver<Arc<Overheard>> {
        self.overhearing.0.subscribe()
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
        if self.overhearing.0.receiver_count() == 0 {
            return;
        }
        let facts = self.read().rooms.get(&room).map(|known| known.facts.clone());
        if let Some(facts) = facts
            && let Some(event) = event(&facts)
        {
            // Nobody listens any more: nobody is to be told.
            drop(self.overhearing.0.send(Arc::new(Overheard { room, facts, event })));
        }
    }
}
