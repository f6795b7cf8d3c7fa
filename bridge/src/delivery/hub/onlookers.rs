//! News of one room for those who look on and have no seat. A room that nobody looks at pays one look at a number for each
//! event; one at which somebody does hands each event over once for each that listens: a dialect listens once for all its
//! clients. Nobody is waited for: who does not keep up loses the oldest.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use mesh::{
    Proof,
    api::event::{Delivered, RoomEvent},
    name::id::RoomId,
};
use tokio::sync::broadcast;

use super::Hub;
use crate::{
    limits::LOOKED_ON_MAX,
    seam::event::{Audience, Event, Message, Told},
};

/// The rooms that are looked at.
#[derive(Debug, Default)]
pub(super) struct Onlookers {
    rooms: Mutex<Rooms>,
    /// As many, so that a room is not looked for where there are none.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Rooms {
    all: HashMap<RoomId, broadcast::Sender<Event>>,
    /// The node stops: nobody is told anything more.
    closed: bool,
}

/// Hears what goes on in a room: messages, tasks, approvals, presence, and who comes and goes.
#[derive(Debug)]
pub struct Onlooker {
    of: RoomId,
    news: Option<broadcast::Receiver<Event>>,
    onlookers: Arc<Onlookers>,
}

impl Onlooker {
    /// The next event. Of more than are kept the oldest are left out. `None`: the node stops.
    pub async fn next(&mut self) -> Option<Event> {
        use broadcast::error::RecvError;
        let news = self.news.as_mut()?;
        loop {
            match news.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        let mut rooms = self.onlookers.lock();
        self.news = None;
        if rooms.all.get(&self.of).is_some_and(|news| news.receiver_count() == 0) {
            rooms.all.remove(&self.of);
            self.onlookers.count.store(rooms.all.len(), Ordering::Relaxed);
        }
    }
}

impl Onlookers {
    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, room: RoomId, event: impl FnOnce() -> Option<Event>) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let news = self.lock().all.get(&room).cloned();
        if let Some(news) = news
            && let Some(event) = event()
        {
            // Nobody listens any more: nobody is to be told.
            drop(news.send(event));
        }
    }

    /// All have heard the last.
    pub(super) fn close(&self) {
        let mut rooms = self.lock();
        rooms.closed = true;
        rooms.all.clear();
        self.count.store(0, Ordering::Relaxed);
    }
}

impl Hub {
    /// Looks at a room from now on. Dialects bound how many do.
    pub(crate) fn look_on(&self, room: RoomId) -> Onlooker {
        let mut rooms = self.onlookers.lock();
        let news = (!rooms.closed).then(|| {
            let news = rooms.all.entry(room);
            news.or_insert_with(|| broadcast::Sender::new(LOOKED_ON_MAX)).subscribe()
        });
        self.onlookers.count.store(rooms.all.len(), Ordering::Relaxed);
        Onlooker { of: room, news, onlookers: self.onlookers.clone() }
    }

    /// An event goes on, before members are told of it.
    pub(super) fn show(&self, room: RoomId, event: &RoomEvent) {
        self.onlookers.tell(room, || shown(room, event));
    }

    /// Members here, of the dialects that have a word for it, are told of those who look on.
    pub(crate) fn of_audience(&self, room: RoomId, news: Audience) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        let told = Arc::new(Told::new(Event::Audience { room, news: Arc::new(news) }));
        known.seats.values().for_each(|link| link.tell(&told));
    }
}

/// What those who look on hear of an event.
fn shown(room: RoomId, event: &RoomEvent) -> Option<Event> {
    match event {
        RoomEvent::Message(delivered) => said(room, delivered).map(Event::Said),
        RoomEvent::Joined { agent, name, reconnected } => {
            let (agent, name) = (agent.clone(), name.clone());
            Some(Event::Joined { room, agent, name, reconnected: *reconnected })
        }
        RoomEvent::Left { agent } => Some(Event::Left { room, agent: agent.clone() }),
        RoomEvent::Presence(view) => Some(Event::Presence(view.clone())),
        RoomEvent::TaskAssigned(task) => Some(Event::TaskMade(task.clone())),
        RoomEvent::TaskUpdated(task, change) => {
            Some(Event::TaskChanged(task.clone(), change.clone()))
        }
        RoomEvent::Destroyed { .. } => Some(Event::RoomClosed { room }),
        RoomEvent::PassedOver { .. }
        | RoomEvent::Turn { .. }
        | RoomEvent::Typing { .. }
        | RoomEvent::Piece { .. }
        | RoomEvent::Delivery { .. }
        | RoomEvent::OnceLost(_)
        | RoomEvent::ApprovalAsked(_)
        | RoomEvent::ApprovalDecided(_)
        | RoomEvent::Opened { .. }
        | RoomEvent::VoteOpened(_)
        | RoomEvent::VoteEnded(_)
        | RoomEvent::ElectionStarted { .. }
        | RoomEvent::LeaderElected { .. }
        | RoomEvent::LeaderCleared { .. }
        | RoomEvent::TaskDeleted { .. }
        | RoomEvent::Recorded(_) => None,
    }
}

/// A message whose content is in memory: nothing is read for those who look on. Nobody tells them of proofs.
fn said(room: RoomId, delivered: &Delivered) -> Option<Message> {
    let said = delivered.said.clone()?;
    Message::delivered(room, delivered, said, Proof::default())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::task::unconstrained;

    use super::*;
    use crate::testing::{Fake, lobby};

    fn heard(onlooker: &mut Onlooker) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(Some(Event::Said(message))) = unconstrained(onlooker.next()).now_or_never() {
            all.push(message.said.content.clone());
        }
        all
    }

    #[tokio::test]
    async fn who_looks_on_hears_the_room_and_leaves_nothing_behind() {
        let (fake, hub) = Fake::new();
        fake.say(lobby(), "a", "before");
        let mut onlooker = hub.look_on(lobby());
        let mut other = hub.look_on(RoomId([9; 16]));
        fake.say(lobby(), "a", "one");
        fake.say(lobby(), "a", "two");
        assert_eq!(heard(&mut onlooker), ["one", "two"]);
        assert_eq!(other.next().now_or_never().map(|_| ()), None, "of its room alone");
        drop((onlooker, other));
        assert_eq!(hub.onlookers.count.load(Ordering::Relaxed), 0);
        assert!(hub.onlookers.lock().all.is_empty());
    }

    #[tokio::test]
    async fn who_does_not_keep_up_loses_the_oldest() {
        let (fake, hub) = Fake::new();
        let mut onlooker = hub.look_on(lobby());
        for number in 0..LOOKED_ON_MAX + 3 {
            fake.say(lobby(), "a", &number.to_string());
        }
        let heard = heard(&mut onlooker);
        assert_eq!((heard.len(), &*heard[0]), (LOOKED_ON_MAX, "3"));
    }

    #[tokio::test]
    async fn nobody_looks_on_at_a_node_that_stops() {
        let (fake, hub) = Fake::new();
        let mut onlooker = hub.look_on(lobby());
        hub.drain();
        fake.say(lobby(), "a", "late");
        assert!(matches!(onlooker.next().now_or_never(), Some(None)));
        assert!(matches!(hub.look_on(lobby()).next().now_or_never(), Some(None)));
    }
}
