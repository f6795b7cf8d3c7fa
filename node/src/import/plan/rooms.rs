//! Rooms: where what is in them goes, whose they are, and those that no room of a mesh can be like.

use std::collections::BTreeSet;

use anyhow::Result;
use import::{Room, ServerFile, id_from};
use mesh::{
    id::{KeyPrint, RoomId},
    import::{ImportedRoom, is_foreign_id},
    limits::{
        AGENT_ID_BYTES_MAX, DESCRIPTION_BYTES_MAX, KEYS_FOLLOWED_MAX, NAME_BYTES_MAX, ROOMS_MAX,
    },
};

use super::{Choices, Findings, Owners, Place, Plan, Thing};

/// The id of the lobby, and its name.
const LOBBY: &str = "lobby";

impl Plan {
    pub(super) fn take_rooms(
        &mut self,
        file: &ServerFile,
        (choices, owners): (Choices, &Owners),
        findings: &mut Findings,
    ) -> Result<()> {
        let rows = file.rooms()?;
        let bad = rows.iter().filter_map(|row| row.as_ref().err());
        self.without.extend(bad.map(|it| it.id.trim_matches('"').to_owned()));
        let rooms = findings.readable(Thing::Room, rows);
        let mut names: BTreeSet<String> = rooms.iter().map(|it| it.name.clone()).collect();
        let mut others = Vec::new();
        let mut known = Vec::new();
        for room in rooms {
            if room.id == LOBBY {
                self.take_lobby(room, findings);
                continue;
            }
            let why = odd(&room);
            let taken = match id_of(&room) {
                Some(id) if why.is_empty() => Ok((id, room.clone())),
                id => renamed((&room, id), (&why, choices), &mut names),
            };
            match taken {
                Ok((id, taken)) => {
                    known.push((id, taken));
                    if !why.is_empty() {
                        others.push(room.name);
                    }
                }
                Err(why) => {
                    findings.row((Thing::Room, "rooms", &room.id), why);
                    self.without.insert(room.id);
                }
            }
        }
        findings
            .ledger
            .note_named("rooms are called, described or identified in another way", &others);
        if known.len() + self.places.len() > ROOMS_MAX {
            findings.refuse(format!("a mesh has at most {ROOMS_MAX} rooms"));
        }
        let mut kept = Vec::new();
        for (id, room) in known {
            match owner_of(&room, (choices, owners), findings) {
                Some(owner) => {
                    self.places.insert(room.id.clone(), Place::Room(id));
                    kept.push((id, room, owner));
                }
                None => drop(self.without.insert(room.id)),
            }
        }
        for (id, room, owner) in kept {
            let parent = room.parent.as_deref().and_then(|it| self.place(it));
            if room.parent.is_some() && parent.is_none() {
                let note =
                    format!("the room {:?} comes without its parent, which does not", room.name);
                findings.ledger.note(note);
            }
            self.rooms.push((imported(room, id, owner), parent));
        }
        self.follow(choices, findings);
        Ok(())
    }

    fn take_lobby(&mut self, room: Room, findings: &mut Findings) {
        self.places.insert(room.id, Place::Lobby);
        let fits = room.description.as_ref().is_none_or(|it| it.len() <= DESCRIPTION_BYTES_MAX);
        if !fits {
            let note = format!(
                "the lobby comes without its description, which has more than {DESCRIPTION_BYTES_MAX} bytes"
            );
            findings.ledger.note(note);
        }
        if room.encrypted {
            findings.ledger.note("the lobby takes content that is not encrypted, too".to_owned());
        }
        self.lobby = Some((room.description.filter(|_| fits), room.created_ms));
    }

    /// Keys that have private rooms: this node is to follow them.
    fn follow(&mut self, choices: Choices, findings: &mut Findings) {
        let private = self.rooms.iter().filter(|(it, _)| !it.public && it.owner != choices.own);
        let followed: BTreeSet<KeyPrint> = private.map(|(it, _)| it.owner).collect();
        if followed.len() > KEYS_FOLLOWED_MAX {
            findings.refuse(format!(
                "private rooms are of {} keys; a node has those of {KEYS_FOLLOWED_MAX}",
                followed.len()
            ));
        }
        for (key, opener) in &mut self.keys {
            if !followed.contains(&key.key) {
                *opener = None;
            }
        }
    }
}

/// A room that could not be made here, as one that can. `why`: what is in the way.
fn renamed(
    (room, id): (&Room, Option<RoomId>),
    (why, choices): (&[String], Choices),
    names: &mut BTreeSet<String>,
) -> Result<(RoomId, Room), String> {
    let why = why.join("; ");
    if id.is_none() && room.encrypted {
        return Err(format!(
            "{why}; and its content is encrypted for that id, so that it cannot get another: --skip-refused leaves it out"
        ));
    }
    let id = id.or_else(|| RoomId::from_uuid(&id_from(&room.id)));
    let (Some(id), true) = (id, choices.rename_rooms) else {
        return Err(format!(
            "{why}: --rename-rooms gives it another one, --skip-refused leaves the room out"
        ));
    };
    let mut name = room.name.clone();
    if !is_name(&name) {
        // Room for what tells it from others.
        let base = match cut(&name, NAME_BYTES_MAX - 16) {
            base if base.trim().is_empty() => "room".to_owned(),
            base => base,
        };
        let mut tries = (2..).map(|n: u32| format!("{base} ({n})"));
        name = tries.find(|it| !names.contains(it)).unwrap_or(base.clone());
        names.insert(name.clone());
    }
    let description = room.description.as_deref().map(|it| cut(it, DESCRIPTION_BYTES_MAX));
    let created_by = room.created_by.clone().filter(|it| it.len() <= AGENT_ID_BYTES_MAX);
    Ok((id, Room { name, description, created_by, ..room.clone() }))
}

/// As many of its characters as have so many bytes.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let fits = text.chars().take_while(|it| {
        bytes += it.len_utf8();
        bytes <= bytes_max
    });
    fits.collect()
}

fn id_of(room: &Room) -> Option<RoomId> {
    let id = RoomId::from_uuid(&room.id).filter(|it| it.to_uuid() == room.id);
    id.filter(|it| is_foreign_id(*it))
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX && name != LOBBY
}

/// What no room of a mesh can be like.
fn odd(room: &Room) -> Vec<String> {
    let mut why = Vec::new();
    if id_of(room).is_none() {
        why.push(
            "its id is no UUID in lower case, or of the form that ids of a mesh have".to_owned(),
        );
    }
    if !is_name(&room.name) {
        why.push(format!(
            "its name must have 1 to {NAME_BYTES_MAX} bytes, not be blank and not be {LOBBY:?}"
        ));
    }
    if room.description.as_ref().is_some_and(|it| it.len() > DESCRIPTION_BYTES_MAX) {
        why.push(format!("its description may have {DESCRIPTION_BYTES_MAX} bytes"));
    }
    if room.created_by.as_ref().is_some_and(|it| it.len() > AGENT_ID_BYTES_MAX) {
        why.push(format!("its creator's id may have {AGENT_ID_BYTES_MAX} bytes"));
    }
    why
}

fn owner_of(
    room: &Room,
    (choices, owners): (Choices, &Owners),
    findings: &mut Findings,
) -> Option<KeyPrint> {
    if let Some(known) = room.owner.as_deref().and_then(|owner| owners.find(owner)) {
        return Some(known);
    }
    if !room.public && !choices.private_to_own_key {
        findings.row(
            (Thing::Room, "rooms", &room.id),
            format!(
                "{:?} is private to a key that is neither in api_keys nor the server's: name the server's key file with \
                 --server-key-file if it is that, or make it private to this node's own key with --private-to-own-key",
                room.name
            ),
        );
        return None;
    }
    if !room.public {
        let name = &room.name;
        findings.ledger.note(format!("the room {name:?} becomes private to this node's own key"));
    }
    Some(owners.own())
}

fn imported(room: Room, id: RoomId, owner: KeyPrint) -> ImportedRoom {
    ImportedRoom {
        room: id,
        name: room.name,
        description: room.description,
        // Where the lobby is, is known when it is written.
        parent: None,
        public: room.public,
        encrypted: room.encrypted,
        owner,
        created_by: room.created_by.as_deref().unwrap_or("unknown").into(),
        created_ms: room.created_ms,
    }
}
