//! News of records, for those who want to know when something is otherwise than it was: the thing that is said, and not its value,
//! which is read. Told once for all records of one turn of the engine, wherever they were written.

use super::{details, profile, threads};
use crate::{
    name::id::KeyPrint,
    wire::record::{CollectionNumber, Record},
};

use super::place::RoomPlace;

/// Collections of rooms that are told of.
pub(crate) const OF_ROOMS: [CollectionNumber; 3] =
    [details::COLLECTION.number, details::SETTINGS.number, threads::COLLECTION.number];

/// Something that is said of a room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomNote {
    /// Its title.
    Title,
    /// Its description.
    Description,
    /// Its state.
    State,
    /// A setting. `None`: it was deleted, and a deletion does not say its name.
    Setting(Option<String>),
    /// Facts of a thread, as this key says.
    Thread {
        /// The key.
        key: KeyPrint,
        /// The thread. `None`: one of its facts was deleted.
        thread: Option<String>,
    },
}

impl RoomNote {
    /// Of a record of the room at this place. `None`: it says nothing that shows.
    pub(crate) fn of(at: &RoomPlace, record: &Record) -> Option<RoomNote> {
        if record.collection == threads::COLLECTION.number {
            let thread = match record.content() {
                None => None,
                Some(_) => Some(threads::thread_of(at, record)?),
            };
            return Some(RoomNote::Thread { key: record.owner(), thread });
        }
        details::note_of(at, record)
    }
}

/// Something that is said of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentNote {
    /// A field of its profile.
    Field(profile::Field),
    /// Its cards.
    Cards,
}

/// Whether records of this kind are parts of profiles.
pub(crate) fn is_of_profile(collection: CollectionNumber) -> bool {
    [profile::COLLECTION.number, profile::CARDS.number].contains(&collection)
}
