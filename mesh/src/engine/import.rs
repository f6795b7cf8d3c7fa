//! Writing the rooms, messages, votes and tasks that the founder imports ([`crate::api::import`]).

use super::known::Known;
use crate::{
    api::{
        command::{Refused, Speech},
        import::{ImportedMessage, ImportedMessages, ImportedRoom, ImportedTask},
    },
    limits::{AGENT_ID_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::{
        id::{EntryRef, KeyPrint, LocalRef, RoomId},
        identity::Strict,
    },
    room::Room,
    turn::context::Context,
    wire::{
        acts::{TaskAct, TaskAssigned, TaskUpdated, VoteAct, VoteImported},
        entry::{AgentClaimed, Body, Decision, Imported, RoomCreated, Said},
        tasks::TaskFacts,
    },
};

/// Whether anything may be brought here.
///
/// # Errors
///
/// This node did not found the mesh.
pub(super) fn check(known: &Known) -> Result<(), Refused> {
    if known.config.founder != known.cx.me {
        return invalid("only the node that founded the mesh brings something into it");
    }
    Ok(())
}

/// In the ordinary form: as if an agent with that key had come with the id.
pub(super) fn agent(known: &mut Known, claim: AgentClaimed) -> Result<(), Refused> {
    let fits = (1..=AGENT_ID_BYTES_MAX).contains(&claim.agent.len());
    let signed = claim.is_signed_by_its_key(&Strict, known.cx.mesh);
    if !fits
        || !signed
        || !claim.may_count()
        || !known.directory.has_room_for(&claim)
        || known.directory.owner(&claim.agent).is_some()
    {
        return invalid("it cannot be a stable agent id here, or is one already");
    }
    let directory = RoomId::directory(known.cx.mesh);
    let wall_ms = known.cx.now.wall_ms;
    write_imported(known, directory, wall_ms, &Body::AgentClaimed(claim))?;
    Ok(())
}

pub(super) fn lobby(
    known: &mut Known,
    description: Option<String>,
    created_ms: u64,
) -> Result<(), Refused> {
    let lobby = RoomCreated {
        room: RoomId::lobby(known.cx.mesh),
        name: "lobby".to_owned(),
        description,
        parent: None,
        public: true,
        encrypted: false,
        owner: KeyPrint::OPEN,
        created_by: "".into(),
        imported: Some(Imported { created_ms }),
    };
    let directory = RoomId::directory(known.cx.mesh);
    if known.directory.lobby().is_some() || !crate::directory::is_described(&lobby) {
        return invalid("its description cannot be that of the lobby here, or it has one");
    }
    let wall_ms = known.cx.now.wall_ms;
    write_imported(known, directory, wall_ms, &Body::RoomCreated(lobby))?;
    Ok(())
}

pub(super) fn room(known: &mut Known, brought: ImportedRoom) -> Result<(), Refused> {
    let directory = known.directory_for(brought.owner, brought.public)?;
    let created = RoomCreated {
        room: brought.room,
        name: brought.name,
        description: brought.description,
        parent: brought.parent,
        public: brought.public,
        encrypted: brought.encrypted,
        owner: brought.owner,
        created_by: brought.created_by,
        imported: Some(Imported { created_ms: brought.created_ms }),
    };
    if !crate::directory::fits(&created) || known.rooms.contains_key(&brought.room) {
        return invalid("its id, name or description cannot be those of a room here");
    }
    let wall_ms = known.cx.now.wall_ms;
    write_imported(known, directory, wall_ms, &Body::RoomCreated(created))?;
    Ok(())
}

pub(super) fn messages(known: &mut Known, brought: ImportedMessages) -> Result<(), Refused> {
    let id = brought.room;
    let room = known.rooms.get(&id).ok_or(Refused::NoRoom)?;
    let first = room.order.next_home_number();
    let numbers = brought.messages.iter().map(|message| message.number);
    let rises = numbers.clone().zip(numbers.skip(1)).all(|(one, next)| one < next);
    let lowest = brought.messages.first().map(|first_one| first_one.number).unwrap_or(brought.next);
    let highest = brought.messages.last().map_or(0, |last| last.number);
    let capacity = crate::name::number::Era::HOME.capacity();
    if !room.order.can_import(&room.replica)
        || !rises
        || lowest < first
        || brought.next <= highest
        || brought.next > capacity
    {
        return invalid("its numbers cannot be given any more");
    }
    let mut entries: Vec<(LocalRef, u64)> = Vec::new();
    for message in brought.messages {
        let (number, wall_ms) = (message.number, message.wall_ms);
        let body = imported_body(known, id, message);
        let at = write_imported(known, id, wall_ms, &body)?;
        entries.push((at, number));
    }
    let (room, cx) = room_and_context(known, id)?;
    if !room.issue_imported(cx, &entries, brought.next) {
        return Err(Refused::Closed);
    }
    Ok(())
}

fn imported_body(known: &Known, room: RoomId, message: ImportedMessage) -> Body {
    let said = Said {
        agent: message.agent,
        name: message.name,
        content: message.content,
        reply_to: message.reply_to,
        mentions: message.mentions,
        metadata: message.metadata,
        dedup: None,
        turn: None,
        id: message.id,
        // Nothing here says who wrote it there.
        key: None,
        conversation: None,
    };
    match message.speech {
        Speech::Chat => Body::Chat(said),
        Speech::Thinking => Body::Thinking(said),
        Speech::Decision => {
            let log = known.rooms.get(&room).map(|room| room.replica.mine);
            let log = log.expect("looked up before it is written in");
            Body::Decision(Decision { said, election: EntryRef { log, seq: 0 } })
        }
    }
}

pub(super) fn vote(
    known: &mut Known,
    id: RoomId,
    wall_ms: u64,
    vote: VoteImported,
) -> Result<(), Refused> {
    crate::fold::votes::check_imported(&vote).map_err(Refused::Impossible)?;
    let room = known.rooms.get(&id).ok_or(Refused::NoRoom)?;
    if !room.order.can_import(&room.replica) {
        return invalid("the room is not of those that votes can be brought to");
    }
    write_imported(known, id, wall_ms, &Body::Vote(VoteAct::Imported(vote)))?;
    Ok(())
}

/// In the ordinary forms: made then, and updated once since.
pub(super) fn task(known: &mut Known, brought: ImportedTask) -> Result<(), Refused> {
    let by = brought.task.created_by.clone();
    let n = known.rooms.get(&brought.room).map_or(1, |room| room.folds.tasks.next_n());
    let facts = Box::new(TaskFacts { n, ..*brought.task.facts });
    let made = TaskAct::Assigned(TaskAssigned { facts, ..brought.task });
    let at = write_imported(known, brought.room, brought.created_ms, &Body::Task(made))?;
    let pending = brought.status == crate::wire::acts::TaskStatus::Pending;
    if pending && brought.note.is_none() && brought.updated_ms.is_none() {
        return Ok(());
    }
    let log = known.rooms.get(&brought.room).ok_or(Refused::NoRoom)?.replica.mine;
    let task = EntryRef { log, seq: at.seq };
    let over = vec![task];
    let (status, note) = (Some(brought.status), brought.note);
    let update = TaskUpdated { over, status, note, ..TaskUpdated::of(task, by) };
    let wall_ms = brought.updated_ms.unwrap_or(brought.created_ms);
    write_imported(known, brought.room, wall_ms, &Body::Task(TaskAct::Updated(update)))?;
    Ok(())
}

fn write_imported(
    known: &mut Known,
    id: RoomId,
    wall_ms: u64,
    body: &Body,
) -> Result<LocalRef, Refused> {
    let len = body.encode().len();
    if len > PLAIN_BODY_BYTES_MAX {
        return Err(Refused::TooLarge { len, max: PLAIN_BODY_BYTES_MAX });
    }
    let (room, cx) = room_and_context(known, id)?;
    room.fits(cx, body)?;
    room.append_dated(cx, body, wall_ms).ok_or(Refused::Closed)
}

fn room_and_context(known: &mut Known, id: RoomId) -> Result<(&mut Room, &mut Context), Refused> {
    Ok((known.rooms.get_mut(&id).ok_or(Refused::NoRoom)?, &mut known.cx))
}

fn invalid<T>(why: &str) -> Result<T, Refused> {
    Err(Refused::Impossible(why.to_owned()))
}

/// Whether a room that was brought is here.
pub(super) fn check_taken(known: &Known, room: RoomId) -> Result<(), Refused> {
    if known.rooms.contains_key(&room) { Ok(()) } else { invalid("it is not taken") }
}
