//! What of a file is brought, and what cannot be: all of that is found before anything is written.

mod owners;
mod talk;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;
use import::{BadRow, Counts, Room, ServerFile};
use mesh::{
    agenda::NewKey,
    id::{KeyPrint, RoomId, RoomKey},
    import::{ImportedRoom, ImportedTask, is_foreign_id},
    limits::{
        AGENT_ID_BYTES_MAX, DESCRIPTION_BYTES_MAX, KEYS_FOLLOWED_MAX, NAME_BYTES_MAX, ROOMS_MAX,
    },
    number::Era,
};

use owners::Owners;

/// Refusals that are told; more are counted.
const REFUSALS_SHOWN: usize = 50;

/// What an operator chose for what cannot be brought as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    /// Votes that are open are left out.
    pub(crate) skip_open_votes: bool,
    /// Private rooms of keys that are not known become private to the node's own key.
    pub(crate) private_to_own_key: bool,
    /// The node's own key.
    pub(crate) own: KeyPrint,
}

impl Choices {
    /// What is written depends on them.
    pub(crate) fn to_text(self) -> String {
        let Choices { skip_open_votes, private_to_own_key, own } = self;
        format!("{skip_open_votes} {private_to_own_key} {own}")
    }
}

/// Where a room's content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Into the mesh's lobby.
    Lobby,
    /// Into the room of this id.
    Room(RoomId),
}

/// What cannot be brought, and why.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    told: Vec<String>,
    all: u64,
}

impl Refusals {
    fn add(&mut self, what: impl fmt::Display) {
        self.all += 1;
        if self.told.len() < REFUSALS_SHOWN {
            self.told.push(what.to_string());
        }
    }

    fn row(&mut self, (table, id): (&'static str, &str), why: impl fmt::Display) {
        self.add(BadRow { table, id: format!("{id:?}"), why: why.to_string() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told.iter().try_for_each(|it| writeln!(f, "  {it}"))?;
        match self.all.saturating_sub(self.told.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
    }
}

/// A vote that had ended: where, when it was opened, and what it was.
pub(crate) type EndedVote = (Place, u64, mesh::acts::VoteImported);

/// See the module. Messages are read again when they are written.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) keys: Vec<(NewKey, Option<RoomKey>)>,
    pub(crate) rooms: Vec<ImportedRoom>,
    /// Rooms by their ids in the file, but for those that are not brought.
    places: BTreeMap<String, Place>,
    /// Rooms that lived in the server's memory.
    ephemeral: BTreeSet<String>,
    /// Which number comes next where.
    pub(crate) next: BTreeMap<Place, u64>,
    pub(crate) votes: Vec<EndedVote>,
    pub(crate) tasks: Vec<(Place, ImportedTask)>,
    pub(crate) messages: u64,
    /// What the operator should know.
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Reads all of a file. `each`: how many messages were looked at, every so often.
    ///
    /// # Errors
    /// The file cannot be read. What can be read and not be brought is a refusal.
    pub(crate) fn of(
        file: &ServerFile,
        choices: Choices,
        own_key: Option<&str>,
        each: &mut dyn FnMut(u64, Counts),
    ) -> Result<(Plan, Refusals)> {
        let counts = file.counts()?;
        let (mut plan, mut refusals) = (Plan::default(), Refusals::default());
        each(0, counts);
        let owners = plan.take_keys(file, (choices, own_key), &mut refusals)?;
        plan.take_rooms(file, (choices, &owners), &mut refusals)?;
        plan.take_sequences(file, &mut refusals)?;
        plan.take_votes(file, choices, &mut refusals)?;
        plan.take_tasks(file, &mut refusals)?;
        plan.look_at_messages(file, &mut refusals, &mut |seen| each(seen, counts))?;
        Ok((plan, refusals))
    }

    /// Where the content of a room of the file goes; `None`: it is not brought.
    pub(crate) fn place(&self, room: &str) -> Option<Place> {
        self.places.get(room).copied()
    }

    /// How many things are written.
    pub(crate) fn things(&self) -> u64 {
        let lists = self.keys.len() + self.rooms.len() + self.next.len();
        (lists + self.votes.len() + self.tasks.len()) as u64 + self.messages
    }

    fn take_keys(
        &mut self,
        file: &ServerFile,
        (choices, own_key): (Choices, Option<&str>),
        refusals: &mut Refusals,
    ) -> Result<Owners> {
        let mut owners = Owners::new(choices.own, own_key);
        for row in file.keys()? {
            match row {
                Ok(key) => owners.add(key, refusals),
                Err(bad) => refusals.add(bad),
            }
        }
        self.notes.extend(owners.notes());
        self.keys = owners.minted();
        Ok(owners)
    }

    fn take_rooms(
        &mut self,
        file: &ServerFile,
        (choices, owners): (Choices, &Owners),
        refusals: &mut Refusals,
    ) -> Result<()> {
        let mut rooms = Vec::new();
        for row in file.rooms()? {
            match row {
                Ok(room) => rooms.push(room),
                Err(bad) => refusals.add(bad),
            }
        }
        let lobby = lobby_of(&rooms);
        self.places.insert(lobby.clone(), Place::Lobby);
        for room in rooms.iter().filter(|it| it.id != lobby) {
            if room.ephemeral {
                self.ephemeral.insert(room.id.clone());
            } else if let Some(id) = check_room(room, refusals) {
                self.places.insert(room.id.clone(), Place::Room(id));
            }
        }
        if !self.ephemeral.is_empty() {
            let count = self.ephemeral.len();
            self.notes.push(format!("{count} ephemeral rooms are not brought: they were memory"));
        }
        if self.places.len() > ROOMS_MAX {
            refusals.add(format!("a mesh has at most {ROOMS_MAX} rooms"));
        }
        let mut followed = BTreeSet::new();
        for room in &rooms {
            let Some(Place::Room(id)) = self.place(&room.id) else { continue };
            let Some(owner) = self.owner_of(room, (choices, owners), refusals) else { continue };
            if !room.public && owner != choices.own {
                followed.insert(owner);
            }
            let imported = self.imported(room, id, owner);
            self.rooms.push(imported);
        }
        if followed.len() > KEYS_FOLLOWED_MAX {
            refusals.add(format!(
                "private rooms are of {} keys; a node has those of {KEYS_FOLLOWED_MAX}",
                followed.len()
            ));
        }
        for (key, opener) in &mut self.keys {
            if !followed.contains(&key.key) {
                *opener = None;
            }
        }
        self.look_for_namesakes(refusals);
        Ok(())
    }

    fn owner_of(
        &mut self,
        room: &Room,
        (choices, owners): (Choices, &Owners),
        refusals: &mut Refusals,
    ) -> Option<KeyPrint> {
        if let Some(known) = room.owner.as_deref().and_then(|owner| owners.find(owner)) {
            return Some(known);
        }
        if !room.public && !choices.private_to_own_key {
            refusals.row(
                ("rooms", &room.id),
                format!(
                    "{:?} is private to a key of which the file has no text that is valid here: with \
                     --private-to-own-key it becomes private to this node's own key",
                    room.name
                ),
            );
            return None;
        }
        if !room.public {
            let name = &room.name;
            self.notes.push(format!("room {name:?} becomes private to this node's own key"));
        }
        Some(choices.own)
    }

    fn imported(&mut self, room: &Room, id: RoomId, owner: KeyPrint) -> ImportedRoom {
        let parent = room.parent.as_deref().and_then(|it| match self.place(it) {
            Some(Place::Room(parent)) => Some(parent),
            Some(Place::Lobby) | None => None,
        });
        if room.parent.is_some() && parent.is_none() {
            let name = &room.name;
            self.notes.push(format!("room {name:?} is brought without its parent, which is not"));
        }
        ImportedRoom {
            room: id,
            name: room.name.clone(),
            description: room.description.clone(),
            parent,
            public: room.public,
            encrypted: room.encrypted,
            owner,
            created_by: room.created_by.as_deref().unwrap_or("unknown").into(),
            created_ms: room.created_ms,
        }
    }

    /// Rooms that would be in each other's way: the mesh has one of a name, of those that a key can see.
    fn look_for_namesakes(&self, refusals: &mut Refusals) {
        let mut by_name: BTreeMap<&str, Vec<&ImportedRoom>> = BTreeMap::new();
        for room in &self.rooms {
            let known = by_name.entry(&room.name).or_default();
            let rival =
                known.iter().find(|it| (it.public && room.public) || it.owner == room.owner);
            if let Some(rival) = rival {
                let why = format!("is called {:?}, as the room {} is", room.name, rival.room);
                refusals.row(("rooms", &room.room.to_uuid()), why);
            }
            known.push(room);
        }
    }

    fn take_sequences(&mut self, file: &ServerFile, refusals: &mut Refusals) -> Result<()> {
        for row in file.sequences()? {
            let sequence = match row {
                Ok(sequence) => sequence,
                Err(bad) => {
                    refusals.add(bad);
                    continue;
                }
            };
            // Of a room that is not there it means nothing.
            let Some(place) = self.place(&sequence.room) else { continue };
            if sequence.next > Era::HOME.capacity() {
                refusals.row(("room_sequences", &sequence.room), too_high(sequence.next));
                continue;
            }
            let next = self.next.entry(place).or_default();
            *next = sequence.next.max(*next);
        }
        Ok(())
    }
}

fn too_high(number: u64) -> String {
    format!("the number {number} is beyond {}, the last that a room can have", Era::HOME.capacity())
}

/// The id of the file's lobby.
fn lobby_of(rooms: &[Room]) -> String {
    let known = |it: &&Room| it.id == "lobby";
    let called = |it: &&Room| it.name == "lobby" && it.public && !it.ephemeral;
    let lobby = rooms.iter().find(known).or_else(|| rooms.iter().find(called));
    lobby.map_or_else(|| "lobby".to_owned(), |it| it.id.clone())
}

/// Whether a room can be one of a mesh: `None` if not.
fn check_room(room: &Room, refusals: &mut Refusals) -> Option<RoomId> {
    let mut why = Vec::new();
    let id = RoomId::from_uuid(&room.id).filter(|it| it.to_uuid() == room.id);
    match id {
        None => why.push("its id is not a UUID in lower case".to_owned()),
        Some(id) if !is_foreign_id(id) => {
            why.push("its id is of a form that rooms of a mesh have themselves".to_owned());
        }
        Some(_) => {}
    }
    if room.name.trim().is_empty() || room.name.len() > NAME_BYTES_MAX {
        why.push(format!("its name must have 1 to {NAME_BYTES_MAX} bytes and not be blank"));
    }
    if room.name == "lobby" {
        why.push("\"lobby\" is the name of the lobby".to_owned());
    }
    if room.description.as_ref().is_some_and(|it| it.len() > DESCRIPTION_BYTES_MAX) {
        why.push(format!("its description may have {DESCRIPTION_BYTES_MAX} bytes"));
    }
    if room.created_by.as_ref().is_some_and(|it| it.len() > AGENT_ID_BYTES_MAX) {
        why.push(format!("its creator's id may have {AGENT_ID_BYTES_MAX} bytes"));
    }
    if why.is_empty() {
        return id;
    }
    refusals.row(("rooms", &room.id), why.join("; "));
    None
}
