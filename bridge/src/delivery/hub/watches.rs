//! Readers without a connection that wait for news of a room.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use mesh::name::id::RoomId;
use tokio::sync::watch;

use super::Hub;

/// The rooms that are watched. Nobody else pays: a room without watchers has nothing here.
#[derive(Debug, Default)]
pub(super) struct Watches {
    rooms: Mutex<HashMap<RoomId, watch::Sender<()>>>,
    /// As many, so that a room is not looked for where there are none.
    count: AtomicUsize,
}

/// Waits for news of a room: messages, and acts of its votes, elections and tasks. It does not say which: they are read.
#[derive(Debug)]
pub struct Watch {
    room: RoomId,
    news: Option<watch::Receiver<()>>,
    watches: Arc<Watches>,
}

impl Watch {
    /// Until there was news since this, or since the watch began. It may also have been none.
    pub async fn news(&mut self) {
        let Some(news) = &mut self.news else { return };
        // An error: the hub is gone, and whoever reads is told so.
        drop(news.changed().await);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut rooms = self.watches.lock();
        self.news = None;
        let unwatched = |news: &watch::Sender<()>| news.receiver_count() == 0;
        if rooms.get(&self.room).is_some_and(unwatched) {
            rooms.remove(&self.room);
            self.watches.count.store(rooms.len(), Ordering::Relaxed);
        }
    }
}

impl Watches {
    pub(super) fn ring(&self, room: RoomId) {
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(news) = self.lock().get(&room)
        {
            news.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RoomId, watch::Sender<()>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Watches a room from now on. Dialects bound how many requests wait at once: one watch for each.
    pub(crate) fn watch(&self, room: RoomId) -> Watch {
        let mut rooms = self.watches.lock();
        let news = rooms.entry(room).or_insert_with(|| watch::Sender::new(())).subscribe();
        self.watches.count.store(rooms.len(), Ordering::Relaxed);
        Watch { room, news: Some(news), watches: self.watches.clone() }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use mesh::api::event::RoomEvent;

    use super::*;
    use crate::testing::{Fake, lobby};

    #[tokio::test]
    async fn a_watch_ends_with_news_of_its_room_and_leaves_nothing_behind() {
        let (fake, hub) = Fake::new();
        let mut watch = hub.watch(lobby());
        let mut other =
            hub.watch(RoomId::from_uuid("7d444840-9dc0-11d1-b245-5ffdce74fad2").unwrap());
        assert_eq!(watch.news().now_or_never(), None);
        fake.say(lobby(), "a", "one");
        watch.news().now_or_never().expect("there is news");
        assert_eq!(watch.news().now_or_never(), None, "each once");
        assert_eq!(other.news().now_or_never(), None, "of its room");
        let left = RoomEvent::Left { agent: "a".into() };
        hub.notify(lobby(), left);
        assert_eq!(watch.news().now_or_never(), None, "who comes and goes is no news");
        assert_eq!(hub.watches.count.load(Ordering::Relaxed), 2);
        drop((watch, other));
        assert!(hub.watches.lock().is_empty());
        assert_eq!(hub.watches.count.load(Ordering::Relaxed), 0);
    }
}
