//! Readers without a connection that wait for news of a room, or of an inbox.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use mesh::name::id::{AgentId, RoomId};
use tokio::sync::watch;

use super::Hub;

/// A thing that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    /// Messages, and acts of votes, elections and tasks.
    Room(RoomId),
    /// Something has come into it.
    Inbox(AgentId),
}

/// The things that are watched. Nobody else pays: a room without watchers has nothing here.
#[derive(Debug, Default)]
pub(super) struct Watches {
    watched: Mutex<HashMap<Watched, watch::Sender<()>>>,
    /// As many, so that a room is not looked for where there are none.
    count: AtomicUsize,
}

/// Waits for news of a room or of an inbox. It does not say which: they are read.
#[derive(Debug)]
pub struct Watch {
    of: Watched,
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
        let mut watched = self.watches.lock();
        self.news = None;
        let unwatched = |news: &watch::Sender<()>| news.receiver_count() == 0;
        if watched.get(&self.of).is_some_and(unwatched) {
            watched.remove(&self.of);
            self.watches.count.store(watched.len(), Ordering::Relaxed);
        }
    }
}

impl Watches {
    pub(super) fn ring(&self, of: &Watched) {
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(news) = self.lock().get(of)
        {
            news.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Watched, watch::Sender<()>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Watches something from now on. Dialects bound how many requests wait at once: some watches for each.
    pub(crate) fn watch(&self, of: Watched) -> Watch {
        let mut watched = self.watches.lock();
        let news = watched.entry(of.clone()).or_insert_with(|| watch::Sender::new(())).subscribe();
        self.watches.count.store(watched.len(), Ordering::Relaxed);
        Watch { of, news: Some(news), watches: self.watches.clone() }
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
        let mut watch = hub.watch(Watched::Room(lobby()));
        let mut other = hub.watch(Watched::Room(
            RoomId::from_uuid("7d444840-9dc0-11d1-b245-5ffdce74fad2").unwrap(),
        ));
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
