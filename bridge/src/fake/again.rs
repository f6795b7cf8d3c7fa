//! A node that is started again on what it has stored, and rooms without agents.

use std::sync::Arc;

use mesh::{
    api::{
        batch::Change,
        command::{Command, NewRoom, Outcome, RoomView},
        event::RoomEvent,
    },
    name::id::{KeyPrint, RoomId},
};

use super::Fake;
use crate::Hub;

impl Fake {
    /// Makes a room of the key `key`.
    pub(crate) fn found(&self, room: NewRoom) -> RoomId {
        let caller = self.attach(&mut self.core(), "founder");
        match self.does(Command::CreateRoom { caller, room }) {
            Ok(Outcome::Room(view)) => view.room,
            other => panic!("{other:?}"),
        }
    }

    /// What is written. Of messages only those that are delivered, when they are.
    pub(super) fn commit(&self, batch: &[Change]) {
        let mut kept = self.kept.lock().unwrap();
        for change in batch {
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
    pub(crate) fn restarted(&self, later: Option<RoomId>) -> (Arc<Fake>, Arc<Hub>) {
        let (fake, hub) = Fake::new();
        fake.rows.write().unwrap().clone_from(&self.rows.read().unwrap());
        fake.kept.lock().unwrap().clone_from(&self.kept.lock().unwrap());
        for view in self.views().into_iter().filter(|it| Some(it.room) != later) {
            hub.notify(view.room, RoomEvent::Opened { view, announce: false });
        }
        (fake, hub)
    }

    /// All rooms of the key `key`, and public ones.
    pub(crate) fn views(&self) -> Vec<RoomView> {
        match self.does(Command::ListRooms { key: KeyPrint::of("key"), parent: None }) {
            Ok(Outcome::Rooms(views)) => views,
            other => panic!("{other:?}"),
        }
    }
}
