//! The plan of an import: the rows that are brought, and those that cannot be. All of them are
//! found before anything is written.

mod agents;
pub(crate) mod findings;
pub(crate) mod ids;
pub(crate) mod ledger;
mod owners;
pub(crate) mod reading;
mod rooms;
pub(crate) mod sieve;
mod talk;
mod texts;
mod webhooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bridge::BroughtWebhook;
use mesh::{
    api::{
        agenda::NewKey,
        import::{Import, ImportedRoom, ImportedTask},
    },
    name::{
        id::{AgentId, MeshId, MessageId, RoomId, RoomKey},
        key::KeySecret,
        number::Era,
    },
    wire::{
        acts::{KeyMinted, KeyTerms, Tier},
        signatures::{KeySignature, SignedLog},
    },
};

use ledger::{Counts, Ledger, Thing};

/// Where a room's content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Into the mesh's lobby.
    Lobby,
    /// Into the room of this id.
    Room(RoomId),
}

/// A vote that had ended: where, when it was opened, and its result.
pub(crate) type EndedVote = (Place, u64, mesh::wire::acts::VoteImported);

/// A key that becomes one of the mesh.
#[derive(Debug)]
pub(crate) struct PlannedKey {
    /// Its text is long enough for it to sign.
    pub(crate) secret: Arc<KeySecret>,
    pub(crate) tier: Tier,
    pub(crate) label: Option<String>,
    /// Opens its private rooms, if there are any.
    pub(crate) opener: Option<RoomKey>,
}

impl PlannedKey {
    /// As it becomes valid by this log.
    pub(crate) fn signed(&self, log: &SignedLog) -> Import {
        let terms = KeyTerms { label: self.label.clone(), ..KeyTerms::of(self.tier) };
        let minted = KeyMinted::sign(&self.secret, log, terms);
        let minted = minted.expect("a key that is too short is not in the plan");
        Import::Key(NewKey { minted: Box::new(minted), local: false }, self.opener.clone())
    }
}

/// A stable id, and the key whose it is.
#[derive(Debug)]
pub(crate) struct PlannedId {
    pub(crate) agent: AgentId,
    /// Its text is long enough for it to sign. `None`: the node checks no keys.
    pub(crate) secret: Option<Arc<KeySecret>>,
}

impl PlannedId {
    /// As it is claimed in this mesh.
    pub(crate) fn signed(&self, mesh: MeshId) -> Import {
        let sign = |secret: &Arc<KeySecret>| {
            KeySignature::of_claim(secret, mesh, &self.agent)
                .expect("an id of a key that is too short is not in the plan")
        };
        Import::Agent(self.agent.clone(), self.secret.as_ref().map(sign))
    }
}

/// See the module. Messages are read again when they are written.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) keys: Vec<PlannedKey>,
    /// Stable ids, and whose they are.
    pub(crate) agents: Vec<PlannedId>,
    /// Purpose and time of the lobby, as far as they are known.
    pub(crate) lobby: Option<(Option<String>, Option<u64>)>,
    /// Rooms, and their parents.
    pub(crate) rooms: Vec<(ImportedRoom, Option<Place>)>,
    /// Rooms by their ids in the file, but for those that are not brought.
    places: BTreeMap<String, Place>,
    /// Rooms of the file that are not brought.
    without: BTreeSet<String>,
    /// Other ids that messages get in place of those that cannot be theirs here.
    replaced: BTreeSet<MessageId>,
    /// Which number comes next where.
    pub(crate) next: BTreeMap<Place, u64>,
    pub(crate) votes: Vec<EndedVote>,
    pub(crate) tasks: Vec<(Place, ImportedTask)>,
    pub(crate) webhooks: Vec<(Place, BroughtWebhook)>,
    /// The list of rows that come, and that do not.
    pub(crate) ledger: Ledger,
}

impl Plan {
    fn counts(&self, messages: u64) -> Counts {
        let mut counts = Counts::default();
        // The lobby is a room of the file, too.
        counts.add(Thing::Room, (self.rooms.len() + usize::from(self.lobby.is_some())) as u64);
        counts.add(Thing::Message, messages);
        counts.add(Thing::Vote, self.votes.len() as u64);
        counts.add(Thing::Task, self.tasks.len() as u64);
        counts.add(Thing::Key, self.keys.len() as u64);
        counts.add(Thing::AgentId, self.agents.len() as u64);
        counts.add(Thing::Webhook, self.webhooks.len() as u64);
        counts
    }

    /// Where the content of a room of the file goes; `None`: it is not brought.
    pub(crate) fn place(&self, room: &str) -> Option<Place> {
        self.places.get(room).copied()
    }

    /// The id here of the message that another one answers.
    pub(crate) fn answered(&self, id: String) -> String {
        if ids::own(&id).is_some() {
            return id;
        }
        let other = ids::other(Thing::Message, &id);
        if self.replaced.contains(&other) { other.to_uuid() } else { id }
    }

    /// Why nothing of a room is brought.
    fn no_room(&self, room: &str) -> &'static str {
        if self.without.contains(room) {
            "their rooms are not brought"
        } else {
            "their rooms are not in the file, as ephemeral ones"
        }
    }

    /// How many things are written.
    pub(crate) fn things(&self) -> u64 {
        self.ledger.brought.all() + self.next.len() as u64
    }

    fn goes_on(&mut self, place: Place, next: u64) {
        let known = self.next.entry(place).or_default();
        *known = next.max(*known);
    }
}

fn too_high(number: u64) -> String {
    format!(
        "the number {number} is beyond {}, the last that a room can have",
        Era::HOME.capacity() - 1
    )
}
