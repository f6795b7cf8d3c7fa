//! Shared rooms: making one, giving it to keys and taking it from them, and opening what was given to a key whose mailbox is
//! held here (`docs/decisions/shared-rooms.md`).

use std::sync::Arc;

use super::{Following, NO_KEY, Opened, Pairs, SHORT, key_of, no_mailbox};
use crate::{
    api::command::{CallId, Caller, NewRoom, Outcome, Refused, Share, ShareAct},
    directory::shared::{SharedRoom, Sharing},
    engine::{creating, known::Known, reach::Reach, records::Records},
    limits::{
        DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, SHARED_DESCRIPTION_BYTES_MAX, SHARED_FOLLOWED_MAX,
        SHARED_KEYS_MAX, SHARED_PER_KEY_MAX,
    },
    name::{
        group::{Group, Shared},
        id::{KeyPrint, LogId, RoomId},
        key::{KeySecret, Mailbox, ShortKey},
    },
    records::shared::{Ends, Given, SharedFacts, Taken, draw_secret},
    wire::{
        record::{Draft, RecordKey},
        seal::NOBODY,
    },
};

/// A shared room that an agent makes.
#[derive(Debug)]
pub(in crate::engine) struct Making {
    pub(in crate::engine) call: CallId,
    pub(in crate::engine) caller: Caller,
    pub(in crate::engine) signer: Option<Arc<KeySecret>>,
    pub(in crate::engine) room: NewRoom,
}

impl Pairs {
    /// Makes a room that can be shared. The caller is answered at the end of the turn.
    pub(in crate::engine) fn make_shared(
        &mut self,
        known: &mut Known,
        records: &mut Records,
        following: Following<'_>,
        making: Making,
    ) {
        let call = making.call;
        match make(known, records, following, making) {
            Ok(room) => self.opened.push(Opened { call, room }),
            Err(refused) => known.cx.reply(call, Err(refused)),
        }
    }

    /// Opens the rooms that were given to keys which are held here: of those that are `new` here all, of others the newest.
    pub(super) fn follow_given(
        &mut self,
        known: &mut Known,
        records: &mut Records,
        following: &mut Following<'_>,
    ) {
        let (mut changed, mut given) = (known.directory.shared.take_gone(), Vec::new());
        for group in &changed {
            records.on_key_gone(known, *group);
        }
        for record in known.directory.shared.take_news() {
            let Some(told) = known.directory.shared.told(record) else { continue };
            let (group, key) = told.sharing.about();
            changed.insert(group);
            given.push((key, record));
        }
        for key in std::mem::take(&mut self.fresh) {
            let records = known.directory.shared.given_to(key);
            given.extend(records.into_iter().map(|record| (key, record)));
        }
        for (key, record) in given {
            if let Some(room) = self.opened_by(known, key, record) {
                follow(known, following, room, &Origin::Given);
            }
        }
        for group in changed {
            let room = known.directory.shared.room_of(group);
            let group = room.and_then(|room| known.directory.shared.room(room)).map(|it| it.group);
            if let (Some(room), Some(group)) = (room, group) {
                known.note_sealed(room, Group::Shared(group));
                known.unseat_others(room);
                known.tell_of_room(room, true);
            }
        }
    }

    /// The room that a record gives to a key, if it is new and the key's mailbox is held here.
    fn opened_by(&self, known: &Known, key: KeyPrint, record: RecordKey) -> Option<SharedRoom> {
        let (held, mesh) = (self.held.get(&key)?, known.cx.mesh);
        let told = known.directory.shared.told(record)?;
        let Sharing::Given(given) = &told.sharing else { return None };
        if known.directory.shared.room_of(given.group).is_some() {
            return None;
        }
        let ends = Ends { mesh, own: &held.secret, other: &told.mailbox };
        let facts = given.open(&ends)?;
        let keys = known.directory.keys();
        // A successor gives the rooms of the key that it has replaced.
        let makers = keys.line(keys.current(told.owner));
        let maker = makers.into_iter().find(|key| facts.group(mesh, *key).id == given.group)?;
        let group = facts.group(mesh, maker);
        let few = known.directory.shared.count_of(maker, &*keys) < SHARED_PER_KEY_MAX;
        let is_out = known.directory.shared.was_taken_from(group, keys.current(key), &*keys);
        (few && !is_out && fits(&facts)).then_some(SharedRoom { group, facts })
    }
}

/// Whether a room has the form that honest nodes make.
fn fits(facts: &SharedFacts) -> bool {
    let purpose = facts.description.as_ref().map_or(0, String::len);
    const { assert!(SHARED_DESCRIPTION_BYTES_MAX <= DESCRIPTION_BYTES_MAX) };
    (1..=NAME_BYTES_MAX).contains(&facts.name.len()) && purpose <= SHARED_DESCRIPTION_BYTES_MAX
}

/// A room that is followed from now on.
enum Origin {
    /// Made here: it has no history.
    Made,
    /// Another node may have some: clients see the room when that is here.
    Given,
}

/// Nothing where this node follows as many as it may.
fn follow(
    known: &mut Known,
    following: &mut Following<'_>,
    room: SharedRoom,
    origin: &Origin,
) -> Option<RoomId> {
    let SharedRoom { group, facts } = &room;
    let (id, opener) = (facts.room(known.cx.mesh, group.maker), facts.opener(group.maker));
    let group = Group::Shared(*group);
    following.private.follow(known, following.digests, group, &opener);
    known.cx.followers.token(group)?;
    known.directory.shared.open(id, room);
    // Nobody's home, as of a direct room.
    known.ensure_room(id, LogId { author: NOBODY, incarnation: 0 }, Reach::Followers(group));
    // The room may have been here before its records were read, or before the key came that opens them.
    known.note_sealed(id, group);
    known.unseat_others(id);
    if let Origin::Given = origin {
        known.note_unread(id);
    }
    known.tell_of_room(id, true);
    Some(id)
}

fn make(
    known: &mut Known,
    records: &mut Records,
    mut following: Following<'_>,
    making: Making,
) -> Result<RoomId, Refused> {
    let Making { call: _, caller, signer, room } = making;
    creating::may_create(known, &caller, &room)?;
    check(&room)?;
    let signer = signer_of(&caller, signer.as_deref())?;
    let own = signer.mailbox().map_err(|ShortKey| Refused::NoMailbox(SHORT.to_owned()))?;
    let secret = draw_secret(known.cx.mesh, own, &fresh(known));
    let facts = SharedFacts {
        secret: secret.ok_or_else(|| no_mailbox(&caller.agent))?,
        name: room.name,
        description: room.description,
        encrypted: room.encrypted,
        created_by: caller.agent.clone(),
        created_ms: known.cx.now.wall_ms,
    };
    let group = facts.group(known.cx.mesh, caller.key);
    let many = known.directory.shared.count_of(caller.key, &*known.directory.keys());
    if many >= SHARED_PER_KEY_MAX {
        let text = format!("the key has {many} shared rooms, which is the most");
        return Err(Refused::Full(text));
    }
    if !known.cx.followers.has_room_for(Group::Shared(group)) {
        let text =
            format!("this node follows {SHARED_FOLLOWED_MAX} shared rooms, which is the most");
        return Err(Refused::Full(text));
    }
    let given = give(known, own, &own.public(), (group, caller.key), &facts);
    let given = given.ok_or_else(|| no_mailbox(&caller.agent))?;
    records.write_open(known, (caller.key, Some(signer)), given)?;
    follow(known, &mut following, SharedRoom { group, facts }, &Origin::Made).ok_or(Refused::NoRoom)
}

/// A shared room is of one form.
fn check(room: &NewRoom) -> Result<(), Refused> {
    let purpose = room.description.as_ref().map_or(0, String::len);
    let wrong = if room.public {
        "a shared room is private: it cannot be public, too"
    } else if room.ephemeral {
        "an ephemeral room is in one node's memory: it cannot be shared"
    } else if room.parent.is_some() {
        "a shared room is under no other room: those it is shared with may not see that one"
    } else if purpose > SHARED_DESCRIPTION_BYTES_MAX {
        let max = SHARED_DESCRIPTION_BYTES_MAX;
        let text = format!("`description` of a shared room has at most {max} bytes");
        return Err(Refused::Impossible(text));
    } else {
        return Ok(());
    };
    Err(Refused::Impossible(wrong.to_owned()))
}

/// Bytes that this key has for no other room: of this node, this start of it, and this moment.
fn fresh(known: &mut Known) -> Vec<u8> {
    let log = known.next_ephemeral_log();
    let moment = known.cx.now.wall_us.to_be_bytes();
    [&log.author.0[..], &log.incarnation.to_be_bytes(), &moment].concat()
}

fn signer_of<'s>(caller: &Caller, signer: Option<&'s KeySecret>) -> Result<&'s KeySecret, Refused> {
    let signer = signer.filter(|signer| signer.print() == caller.key);
    signer.ok_or_else(|| Refused::NoMailbox(NO_KEY.to_owned()))
}

fn give(
    known: &Known,
    own: &Mailbox,
    other: &[u8; 32],
    (group, key): (Shared, KeyPrint),
    facts: &SharedFacts,
) -> Option<Draft> {
    let ends = Ends { mesh: known.cx.mesh, own, other };
    Some(Given::seal(&ends, group, key, facts)?.draft())
}

/// Gives a room to the key of an agent, or takes it from that key.
pub(in crate::engine) fn share(
    known: &mut Known,
    records: &mut Records,
    share: Share,
) -> Result<Outcome, Refused> {
    let Share { caller, signer, room, agent, act } = share;
    known.caller(&caller)?;
    known.may_read(&caller.reader(), room)?;
    let shared = known.directory.shared.room(room).cloned();
    let SharedRoom { group, facts } =
        shared.ok_or_else(|| Refused::Impossible(NOT_SHARED.to_owned()))?;
    if known.directory.current(group.maker) != caller.key {
        return Err(Refused::NotYours);
    }
    let signer = signer_of(&caller, signer.as_deref())?;
    let key = key_of(known, &caller, &agent).ok_or_else(|| Refused::NoAgent(agent.clone()))?;
    let has = known.shared_keys(group).contains(&key);
    let draft = match act {
        ShareAct::Give if has => return Ok(Outcome::Done),
        ShareAct::Give => {
            let own = signer.mailbox().map_err(|ShortKey| Refused::NoMailbox(SHORT.to_owned()))?;
            may_give(known, group, key)?;
            let halves = known.directory.halves(key).ok_or_else(|| no_mailbox(&agent))?;
            let draft = give(known, own, &halves.mailbox, (group, key), &facts);
            draft.ok_or_else(|| no_mailbox(&agent))?
        }
        ShareAct::Take if key == caller.key => {
            return Err(Refused::Impossible(OWN_KEY.to_owned()));
        }
        // Of a key that does not have it, too: that it was given the room at another node may not
        // be known here yet.
        ShareAct::Take if is_out(known, group, key) => return Ok(Outcome::Done),
        ShareAct::Take => Taken { group: group.id, key }.draft(),
    };
    records.write_open(known, (caller.key, Some(signer)), draft)?;
    Ok(Outcome::Done)
}

/// Whether a key was taken out, for ever.
fn is_out(known: &Known, group: Shared, key: KeyPrint) -> bool {
    known.directory.shared.was_taken_from(group, key, &*known.directory.keys())
}

fn may_give(known: &Known, group: Shared, key: KeyPrint) -> Result<(), Refused> {
    if is_out(known, group, key) {
        return Err(Refused::Impossible(TAKEN_OUT.to_owned()));
    }
    let keys = known.directory.keys();
    if known.directory.shared.count_given(group, &*keys) >= SHARED_KEYS_MAX {
        let text = format!(
            "{SHARED_KEYS_MAX} keys have or had this room, which is the most: make a new one"
        );
        return Err(Refused::Full(text));
    }
    Ok(())
}

const NOT_SHARED: &str = "only shared rooms can be shared; make one with --shared";
const OWN_KEY: &str = "the key that made a shared room cannot be taken out of it";
const TAKEN_OUT: &str =
    "the agent's key was taken out of this room, and stays out: make a new room for both";
