//! Ids of messages, votes and tasks: those that clients go on using, and their substitutes.

use import::id_from;
use mesh::name::id::MessageId;

use super::{
    ledger::{Named, Thing},
    texts::shown,
};

/// The id of something: its own, or, if nobody could find it here under that, another one that
/// follows from it.
pub(crate) fn id_of(thing: Thing, text: &str) -> MessageId {
    own(text).unwrap_or_else(|| other(thing, text))
}

/// An id that clients go on using; `None`: nobody could find it here.
pub(super) fn own(text: &str) -> Option<MessageId> {
    MessageId::from_uuid(text).filter(|id| id.is_foreign() && id.to_uuid() == text)
}

/// The id that stands for one that is not kept.
pub(super) fn other(thing: Thing, text: &str) -> MessageId {
    let id = id_from(&format!("{} {text}", thing.name()));
    MessageId::from_uuid(&id).unwrap_or_else(|| unreachable!("{id} is made as a UUID"))
}

/// The other id of something that has one, which is noted.
pub(super) fn replaced(thing: Thing, text: &str, changed: &mut Named) -> Option<MessageId> {
    let id = other(thing, text);
    if own(text).is_some() {
        return None;
    }
    changed.change(&shown(text), &id.to_uuid());
    Some(id)
}
