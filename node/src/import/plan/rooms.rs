//! Rooms: the places of their content, their owners, and rooms that no room of a mesh can be like.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use import::{BadRow, LOBBY, Room, ServerFile, id_from};
use mesh::{
    api::import::{ImportedRoom, is_foreign_id},
    limits::{
        AGENT_ID_BYTES_MAX, DESCRIPTION_BYTES_MAX, KEYS_FOLLOWED_MAX, NAME_BYTES_MAX, ROOMS_MAX,
    },
    name::{
        id::{KeyPrint, RoomId},
        number::Era,
    },
};

use super::{
    Place, Plan,
    findings::Findings,
    ledger::{Named, Thing},
    owners::Owners,
    texts::{cut, shown},
    too_high,
};
use crate::import::choices::Choices;

const NO_OWNER: &str = "it is private to a key that is neither in api_keys nor the server's";

/// The number that comes next in each room of a file, or why there can be none.
type Ends = BTreeMap<String, Result<u64, BadRow>>;

/// A room, its id here, and how it was called if it is called otherwise now.
type Possible = (RoomId, Room, Option<String>);

pub(super) fn take(
    plan: &mut Plan,
    file: &ServerFile,
    owners: &Owners,
    findings: &mut Findings,
) -> Result<()> {
    let mut ends = ends(file)?;
    let (mut others, mut followed) = (Named::default(), BTreeSet::new());
    let mut kept = Vec::new();
    for (id, room, before) in possible(plan, file.rooms()?, &ends, owners.choices, findings) {
        let Some(owner) = owner_of(&room, owners, findings, &mut followed) else {
            plan.without.insert(room.id);
            continue;
        };
        if let Some(before) = before {
            others.change(&before, &called(&room.name, &id.to_uuid()));
        }
        plan.places.insert(room.id.clone(), Place::Room(id));
        if let Some(Ok(next)) = ends.remove(&room.id) {
            plan.goes_on(Place::Room(id), next);
        }
        kept.push((id, room, owner));
    }
    let what = "rooms are called, described or identified in another way";
    findings.ledger.note_named(what, &others);
    for (id, room, owner) in kept {
        let parent = room.parent.as_deref().and_then(|id| parent(plan, id));
        if room.parent.is_some() && parent.is_none() {
            let name = shown(&room.name);
            let note = format!("the room {name} comes without its parent, which does not");
            findings.ledger.note(note);
        }
        plan.rooms.push((imported(room, id, owner), parent));
    }
    // This node is to follow the keys that have private rooms.
    for key in &mut plan.keys {
        if !followed.contains(&key.secret.print()) {
            key.opener = None;
        }
    }
    Ok(())
}

/// Rooms that there can be here, under their ids, and how those were called that are called
/// otherwise.
fn possible(
    plan: &mut Plan,
    rows: Vec<Result<Room, BadRow>>,
    ends: &Ends,
    choices: Choices,
    findings: &mut Findings,
) -> Vec<Possible> {
    let readable = rows.iter().flatten().map(|room| room.name.clone());
    let mut names: BTreeSet<String> = readable.collect();
    let mut possible = Vec::new();
    for row in rows {
        let Some(room) = with_numbers(plan, row, ends, findings) else { continue };
        let why = odd(&room);
        let taken = match id_of(&room) {
            Some(id) if why.is_empty() => Ok((id, room.clone())),
            id => renamed(&room, id, choices, &mut names),
        };
        let which = (Thing::Room, "rooms", &*room.id);
        match taken {
            Ok((id, taken)) if possible.len() + 1 < ROOMS_MAX => {
                let before = (!why.is_empty()).then(|| called(&room.name, &room.id));
                possible.push((id, taken, before));
                continue;
            }
            Ok(_) => {
                let why = format!("a mesh has at most {ROOMS_MAX} rooms, the lobby included");
                findings.row(which, why);
            }
            Err(advice) => findings.row_or(which, left_why(&why, choices), &advice),
        }
        plan.without.insert(room.id);
    }
    possible
}

/// The parent of a room; the lobby is always there.
fn parent(plan: &Plan, room: &str) -> Option<Place> {
    if room == LOBBY { Some(Place::Lobby) } else { plan.place(room) }
}

/// A room of which it can be said which number comes next. The lobby is taken, and is `None`.
fn with_numbers(
    plan: &mut Plan,
    row: Result<Room, BadRow>,
    ends: &Ends,
    findings: &mut Findings,
) -> Option<Room> {
    let id = match &row {
        Ok(room) => Some(room.id.clone()),
        Err(bad) => bad.id.clone(),
    };
    let end = id.as_ref().and_then(|id| ends.get(id));
    match (row, end) {
        (Ok(_), Some(Err(bad))) => findings.bad(Thing::Room, bad.clone()),
        (Err(_), Some(Err(bad))) if id.as_deref() == Some(LOBBY) => {
            findings.bad(Thing::Room, bad.clone());
        }
        (row, end) if id.as_deref() == Some(LOBBY) => {
            if let Some(Ok(next)) = end {
                plan.goes_on(Place::Lobby, *next);
            }
            take_lobby(plan, row, findings);
            return None;
        }
        (Ok(room), _) => return Some(room),
        (Err(bad), _) => findings.bad(Thing::Room, bad),
    }
    plan.without.extend(id);
    None
}

/// The lobby is there, also if its row is bad.
fn take_lobby(plan: &mut Plan, row: Result<Room, BadRow>, findings: &mut Findings) {
    plan.places.insert(LOBBY.to_owned(), Place::Lobby);
    let mut note = |note: String| findings.ledger.note(note);
    let room = match row {
        Ok(room) => room,
        Err(bad) => {
            note(format!("the lobby comes without its description and time: {}", bad.why));
            plan.lobby = Some((None, None));
            return;
        }
    };
    let fits = room.description.as_ref().is_none_or(|text| text.len() <= DESCRIPTION_BYTES_MAX);
    if !fits {
        note(format!(
            "the lobby comes without its description, which has more than {DESCRIPTION_BYTES_MAX} bytes"
        ));
    }
    if room.created_ms.is_none() {
        note("the lobby comes without its time, which cannot be read".to_owned());
    }
    if room.name != LOBBY {
        note(format!("the lobby, which was called {}, is {LOBBY:?}", shown(&room.name)));
    }
    if !room.public {
        note("the lobby was private, and is open to every key".to_owned());
    }
    if room.encrypted {
        note("the lobby takes content that is not encrypted, too".to_owned());
    }
    plan.lobby = Some((room.description.filter(|_| fits), room.created_ms));
}

/// Of a room that is not in the file it means nothing.
fn ends(file: &ServerFile) -> Result<Ends> {
    let mut ends = Ends::new();
    for row in file.sequences()? {
        let (id, end) = match row {
            Ok(sequence) if sequence.high_water >= Era::HOME.capacity() => {
                let (table, why) = ("room_sequences", too_high(sequence.high_water));
                let id = Some(sequence.room);
                (id.clone(), Err(BadRow { table, id, why }))
            }
            Ok(sequence) => (Some(sequence.room), Ok(sequence.high_water + 1)),
            Err(bad) => (bad.id.clone(), Err(bad)),
        };
        ends.extend(id.map(|id| (id, end)));
    }
    Ok(ends)
}

fn called(name: &str, id: &str) -> String {
    format!("{} ({})", shown(name), id.escape_debug())
}

/// Why an odd room does not come, with another thing to do about it.
fn left_why(why: &[String], choices: Choices) -> String {
    let also = if choices.skip_refused && !choices.rename_rooms {
        ": --rename-rooms gives it another one"
    } else {
        ""
    };
    format!("{}{also}", why.join("; "))
}

/// A room that could not be made here, as one that can. `Err`: advice.
fn renamed(
    room: &Room,
    id: Option<RoomId>,
    choices: Choices,
    names: &mut BTreeSet<String>,
) -> Result<(RoomId, Room), String> {
    if is_bound(room) {
        return Err("--skip-refused leaves it out".to_owned());
    }
    let id = id.or_else(|| RoomId::from_uuid(&id_from(&room.id)));
    let (Some(id), true) = (id, choices.rename_rooms) else {
        return Err(
            "--rename-rooms gives it another one, --skip-refused leaves the room out".to_owned()
        );
    };
    let mut name = room.name.clone();
    if !is_name(&name) {
        // Room for the suffix that tells it from others.
        let base = match cut(&name, NAME_BYTES_MAX - 16) {
            base if base.trim().is_empty() => "room".to_owned(),
            base => base,
        };
        let mut tries = (2..).map(|n: u32| format!("{base} ({n})"));
        name = tries.find(|name| !names.contains(name)).unwrap_or(base.clone());
        names.insert(name.clone());
    }
    let description = room.description.as_deref().map(|text| cut(text, DESCRIPTION_BYTES_MAX));
    let created_by = room.created_by.clone().filter(|id| id.len() <= AGENT_ID_BYTES_MAX);
    Ok((id, Room { name, description, created_by, ..room.clone() }))
}

fn id_of(room: &Room) -> Option<RoomId> {
    let id = RoomId::from_uuid(&room.id).filter(|id| id.to_uuid() == room.id);
    id.filter(|id| is_foreign_id(*id))
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX && name != LOBBY
}

/// Whether its id cannot be another one: its content opens under that alone.
fn is_bound(room: &Room) -> bool {
    room.encrypted && id_of(room).is_none()
}

/// Reasons why no room of a mesh can be like this one.
fn odd(room: &Room) -> Vec<String> {
    let mut why = Vec::new();
    if id_of(room).is_none() {
        why.push(
            "its id is no UUID in lower case, or of the form that ids of a mesh have".to_owned(),
        );
    }
    if is_bound(room) {
        why.push("its content is encrypted for that id, so that it cannot get another".to_owned());
    }
    if !is_name(&room.name) {
        why.push(format!(
            "its name must have 1 to {NAME_BYTES_MAX} bytes, not be blank and not be {LOBBY:?}"
        ));
    }
    if room.description.as_ref().is_some_and(|text| text.len() > DESCRIPTION_BYTES_MAX) {
        why.push(format!("its description may have {DESCRIPTION_BYTES_MAX} bytes"));
    }
    if room.created_by.as_ref().is_some_and(|id| id.len() > AGENT_ID_BYTES_MAX) {
        why.push(format!("its creator's id may have {AGENT_ID_BYTES_MAX} bytes"));
    }
    why
}

/// Whose it is; `None`: that is not to be known, or its key has no place here.
fn owner_of(
    room: &Room,
    owners: &Owners,
    findings: &mut Findings,
    followed: &mut BTreeSet<KeyPrint>,
) -> Option<KeyPrint> {
    let which = (Thing::Room, "rooms", &*room.id);
    let known = room.owner.as_deref().and_then(|owner| owners.find(owner));
    if known.is_none() && !room.public && !owners.choices.private_to_own_key {
        let own = format!(
            "make {} private to this node's own key with --private-to-own-key",
            shown(&room.name)
        );
        let advice = match owners.choices.server {
            Some(_) => own,
            None => format!(
                "name the server's key file with --server-key-file if it is of that, or {own}"
            ),
        };
        findings.row_or(which, NO_OWNER, &advice);
        return None;
    }
    if known.is_none() && !room.public {
        let name = shown(&room.name);
        findings.ledger.note(format!("the room {name} becomes private to this node's own key"));
    }
    let owner = known.unwrap_or(owners.choices.own);
    if !room.public && owners.is_minted(owner) {
        if followed.len() >= KEYS_FOLLOWED_MAX && !followed.contains(&owner) {
            findings.row(which, format!("a node has private rooms of {KEYS_FOLLOWED_MAX} keys"));
            return None;
        }
        followed.insert(owner);
    }
    Some(owner)
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
        created_ms: room.created_ms.unwrap_or_default(),
    }
}
