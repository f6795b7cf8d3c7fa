//! A node that is started again on what it has stored, and rooms without agents.

use std::sync::Arc;

use mesh::{
    api::{
        batch::Change,
        command::{Command, NewRoom, Outcome, RoomView},
        event::RoomEvent,
    },
    name::id::RoomId,
    records::collection::Collection,
};

use super::{Fake, own_key};
use crate::{Hub, Mesh as _, Reads as _, Reply, delivery::readers::PREFIX};

impl Fake {
    /// Makes a room of the key `key`.
    pub fn found(&self, room: NewRoom) -> RoomId {
        let caller = self.attach(&mut self.core(), "founder");
        match self.does(Command::CreateRoom { caller, room }) {
            Ok(Outcome::Room(view)) => view.room,
            other => panic!("{other:?}"),
        }
    }

    /// A batch is written. Of messages only those that are delivered, when they are.
    pub(super) fn commit(&self, batch: &[Change]) {
        let mut kept = self.kept.lock().unwrap();
        // In the order in which readers lock them.
        let mut places = self.places.lock().unwrap();
        let mut records = self.records.lock().unwrap();
        let mut acts = self.acts.lock().unwrap();
        batch.iter().for_each(|change| acts.note(change));
        batch.iter().for_each(|change| acts.note_entry(change));
        drop(acts);
        for change in batch {
            if let Change::Record { collection, key, record, .. } = change {
                let is_followed = Collection::of(*collection).is_some_and(|kind| {
                    kind.family().is_some() && kind.home() == mesh::wire::record::Space::Mesh
                });
                if is_followed {
                    self.followed.lock().unwrap().note((*collection, *key));
                }
                match record {
                    Some(record) => drop(records.insert((*collection, *key), record.clone())),
                    None => drop(records.remove(&(*collection, *key))),
                }
            }
            if let Change::Content { key, bytes, .. } = change {
                let mut contents = self.contents.lock().unwrap();
                match bytes {
                    Some(bytes) => drop(contents.insert(*key, bytes.to_vec())),
                    None => drop(contents.remove(key)),
                }
            }
            if let Change::Room { room, record } = change {
                let place = record.place_of_records(*room);
                places.extend(place.map(|place| (*room, place)));
            }
            if let Change::Inbox(record) = change {
                self.marks.lock().unwrap().insert(record.agent.clone(), record.mark);
            }
            if let Change::InboxItem { agent, place, item } = change {
                let mut inboxes = self.inboxes.lock().unwrap();
                match item {
                    Some(item) => drop(inboxes.insert((agent.clone(), *place), *item)),
                    None => drop(inboxes.remove(&(agent.clone(), *place))),
                }
            }
            if let Change::Keep { name, value } = change {
                match value {
                    Some(value) => drop(kept.insert(name.clone(), value.0.clone())),
                    None => drop(kept.remove(name)),
                }
            }
        }
    }

    /// Another process, on the same delivery logs and the node's own: it can be read, but nothing more
    /// can be said. Of `later` it is not told yet.
    pub fn restarted(&self, later: Option<RoomId>) -> (Arc<Fake>, Arc<Hub>) {
        let (fake, hub) = Fake::new();
        fake.rows.write().unwrap().clone_from(&self.rows.read().unwrap());
        fake.kept.lock().unwrap().clone_from(&self.kept.lock().unwrap());
        for view in self.views().into_iter().filter(|it| Some(it.room) != later) {
            hub.notify(view.room, RoomEvent::Opened { view, announce: false });
        }
        (fake, hub)
    }

    /// All rooms of the key `key`, and public ones.
    pub fn views(&self) -> Vec<RoomView> {
        match self.does(Command::ListRooms { by: own_key().into(), parent: None }) {
            Ok(Outcome::Rooms(views)) => views,
            other => panic!("{other:?}"),
        }
    }

    /// The progress of readers is written, as the server does it again and again.
    pub fn keep_readers(&self) {
        let hub = self.hub();
        hub.note_all_live();
        for (_, command) in hub.readers().take_unkept(10) {
            let (reply, _kept) = Reply::once();
            self.call(command, reply);
        }
    }

    /// Readers are known from the store alone, as after a start. How many rows there are of them.
    pub fn reload_readers(&self) -> usize {
        let kept = self.kept(PREFIX).unwrap();
        let count = kept.len();
        self.hub().readers().forget_all();
        self.hub().readers().load(kept);
        count
    }
}
