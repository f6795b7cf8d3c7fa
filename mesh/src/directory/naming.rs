//! Names of rooms. Several rooms may ask for one name, on two sides of a split: numbers decide which of them has it.

use std::sync::Arc;

use super::{CreatedRoom, Directory, standing::Firsts};
use crate::{
    name::id::{KeyPrint, NodeId, RoomId},
    wire::entry::RoomCreated,
};

/// The fate of the name that a room asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The room has no number yet.
    NotYet,
    /// The room is called this.
    Name(Arc<str>),
    /// Another room of that name was created first, and no split was in between: it is none.
    Void,
}

impl CreatedRoom {
    /// Whether each era that numbered this room had numbered one of these before. If one had not, the creator was
    /// told there that the room is made.
    fn is_later_everywhere(&self, rivals: &[&CreatedRoom]) -> bool {
        let rivals: Vec<&Firsts> = rivals.iter().map(|rival| &rival.firsts).collect();
        self.firsts.are_later_everywhere(&rivals)
    }

    fn is_public(&self) -> bool {
        self.created.public
    }
}

impl Directory {
    /// The name of a room. Of several that asked for one name the lowest number has it. A room that every era
    /// numbered later is void: its creator was told so. Any other one was created across a split, and is called
    /// `name (node)`, or `name (node 2)`. Rooms of different keys that cannot see each other do not collide.
    pub(crate) fn name(&self, id: RoomId) -> Named {
        let Some(room) = self.rooms.get(&id) else { return Named::NotYet };
        if !room.standing.is_numbered() {
            return Named::NotYet;
        }
        let rivals = self.rivals(room);
        // Numbers of the two directories say nothing about each other: of a private and a shared
        // room the private one gives way, since only this node knows of it.
        if !room.is_public() && rivals.iter().any(|rival| rival.is_public()) {
            return self.told_apart(room, &rivals);
        }
        let alike = alike(room, rivals);
        if room.is_later_everywhere(&alike) {
            Named::Void
        } else if alike.iter().all(|rival| room.standing < rival.standing) {
            Named::Name(room.created.name.as_str().into())
        } else {
            self.told_apart(room, &alike)
        }
    }

    /// Numbered rooms of its name, as far as the same agents see both.
    fn rivals(&self, room: &CreatedRoom) -> Vec<&CreatedRoom> {
        let (id, name) = (room.created.room, &room.created.name);
        let ids = self.by_name.get(name).into_iter().flatten().filter(|rival| **rival != id);
        let rivals = ids.filter_map(|rival| self.rooms.get(rival));
        let rivals = rivals.filter(|rival| rival.standing.is_numbered());
        rivals.filter(|rival| self.collide(&rival.created, &room.created)).collect()
    }

    /// Whether a number made the room that does not count any more, and by those that do others would take it for
    /// void, or for not made yet.
    pub(crate) fn has_lost_its_lead(&self, room: &CreatedRoom) -> bool {
        if !room.firsts.has_lost_any() {
            return false;
        }
        let alike = alike(room, self.rivals(room));
        let firsts: Vec<&Firsts> = alike.into_iter().map(|rival| &rival.firsts).collect();
        room.firsts.lost_their_lead(&firsts)
    }

    /// Rooms that this node made and that have a number which does not count any more.
    pub(crate) fn lost_a_number(&self, node: NodeId) -> Vec<RoomId> {
        let made = self.by_maker.range((node, KeyPrint([0; 16]))..);
        let made = made.take_while(|((maker, _), _)| *maker == node).flat_map(|(_, ids)| ids);
        let lost = |id: &&RoomId| self.rooms.get(id).is_some_and(|room| room.firsts.has_lost_any());
        made.filter(lost).copied().collect()
    }

    /// The name of a room that gives way to one of its `rivals`: with the name of its node, and with a count if that
    /// node has made others that give way.
    fn told_apart(&self, room: &CreatedRoom, rivals: &[&CreatedRoom]) -> Named {
        let rank = |room: &CreatedRoom| (!room.is_public(), room.standing);
        let keeper = rivals.iter().map(|rival| rank(rival)).min();
        let (own, node) = (rank(room), self.node_name(room.author));
        let before = rivals.iter().filter(|rival| {
            let its = rank(rival);
            its < own && Some(&its) != keeper.as_ref() && self.node_name(rival.author) == node
        });
        Named::Name(named_apart(&room.created.name, &node, before.count()))
    }

    /// Whether a room in memory gives way to one that lasts.
    pub(crate) fn gives_way(&self, created: &RoomCreated) -> bool {
        self.beside(created).any(|room| self.name(room.created.room) != Named::Void)
    }

    /// How many lasting rooms of its name may have given way, made by nodes of this name.
    pub(crate) fn count_apart(&self, created: &RoomCreated, node: &str) -> usize {
        let rank = |room: &CreatedRoom| (!room.is_public(), room.standing);
        let keeper = self.beside(created).map(rank).min();
        let apart = self.beside(created).filter(|room| Some(rank(room)) != keeper);
        apart.filter(|room| self.node_name(room.author) == node).count()
    }

    /// Rooms of its name that are seen by everybody who sees it: its name is the same at all nodes.
    fn beside(&self, created: &RoomCreated) -> impl Iterator<Item = &CreatedRoom> {
        let (public, owner) = (created.public, self.current(created.owner));
        let ids = self.by_name.get(&created.name).into_iter().flatten();
        ids.filter_map(|id| self.rooms.get(id)).filter(move |room| {
            room.is_public() || !public && self.current(room.created.owner) == owner
        })
    }

    /// Whether a room that this key may see, or a public one, is called `name` or asks to be.
    pub(crate) fn is_taken(&self, name: &str, key: KeyPrint) -> bool {
        let ids = self.by_name.get(name).into_iter().flatten();
        ids.filter(|id| self.name(**id) != Named::Void)
            .filter_map(|id| self.rooms.get(id))
            .any(|room| room.is_public() || self.current(room.created.owner) == key)
    }

    /// Whether a room that all see is called so, or the lobby.
    pub(crate) fn is_public_name(&self, name: &str) -> bool {
        let ids = self.by_name.get(name).into_iter().flatten();
        let shown = ids.filter(|id| self.name(**id) != Named::Void);
        name == "lobby" || shown.filter_map(|id| self.rooms.get(id)).any(CreatedRoom::is_public)
    }

    /// Whether two rooms of one name are in each other's way.
    fn collide(&self, a: &RoomCreated, b: &RoomCreated) -> bool {
        (a.public && b.public) || self.current(a.owner) == self.current(b.owner)
    }
}

/// The name of a room that gives way to another one: with the name of its node, and with a count after `before`
/// others of that node.
pub(crate) fn named_apart(name: &str, node: &str, before: usize) -> Arc<str> {
    match before {
        0 => format!("{name} ({node})").into(),
        _ => format!("{name} ({node} {})", before + 1).into(),
    }
}

/// Those of them whose numbers are of the same directory as this room's.
fn alike<'a>(room: &CreatedRoom, rivals: Vec<&'a CreatedRoom>) -> Vec<&'a CreatedRoom> {
    rivals.into_iter().filter(|rival| rival.source.0 == room.source.0).collect()
}
