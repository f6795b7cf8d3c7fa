//! Who may know of a room.

use std::{collections::BTreeSet, sync::Arc};

use crate::name::{group::Sides, id::KeyPrint};

/// Those who may know of a room and read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Every key.
    pub public: bool,
    /// The key that made it.
    pub owner: Option<KeyPrint>,
    /// See [`super::RoomView::sealed`].
    pub sealed: bool,
    /// Of a direct room: its two agents, and nobody else.
    pub sides: Option<Sides>,
    /// Of a shared room: the keys that have it, and nobody else.
    pub shared: Option<Arc<BTreeSet<KeyPrint>>>,
}

impl Access {
    /// Whether this agent may; without one, all agents of the key. A node that checks no keys has no others' keys
    /// either: a room that is sealed for a key is closed to [`KeyPrint::OPEN`].
    #[must_use]
    pub fn includes(&self, key: KeyPrint, agent: Option<&str>) -> bool {
        if let Some(sides) = &self.sides {
            return agent.is_some_and(|agent| sides.has(key, agent));
        }
        if let Some(keys) = &self.shared {
            return keys.contains(&key);
        }
        self.public || self.owner == Some(key) || (key == KeyPrint::OPEN && !self.sealed)
    }
}
