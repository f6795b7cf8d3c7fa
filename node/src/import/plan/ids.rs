//! Ids of messages, votes and tasks: those that clients go on using, and what stands for others.

use import::id_from;
use mesh::name::id::MessageId;

use super::{Plan, Thing, ledger::Named};

/// The id of something: its own, or, if nobody could find it here under that, another one that follows from it.
pub(crate) fn id_of(thing: Thing, text: &str) -> MessageId {
    own(text).unwrap_or_else(|| other(thing, text))
}

/// An id that clients go on using.
fn own(text: &str) -> Option<MessageId> {
    MessageId::from_uuid(text).filter(|it| it.is_foreign() && it.to_uuid() == text)
}

fn other(thing: Thing, text: &str) -> MessageId {
    let id = id_from(&format!("{} {text}", thing.name()));
    MessageId::from_uuid(&id).unwrap_or_else(|| unreachable!("{id} is made as a UUID"))
}

/// The other id of something that has one, which is noted.
pub(super) fn replaced(thing: Thing, text: &str, changed: &mut Named) -> Option<MessageId> {
    let id = other(thing, text);
    if own(text).is_some() {
        return None;
    }
    changed.change(&super::ledger::shown(text), &id.to_uuid());
    Some(id)
}

impl Plan {
    /// What a message answers, under the id that it has here.
    pub(crate) fn answered(&self, id: String) -> String {
        if own(&id).is_some() {
            return id;
        }
        let other = other(Thing::Message, &id);
        if self.replaced.contains(&other) { other.to_uuid() } else { id }
    }
}
