//! Members of rooms on record: putting agents on the list of a room, and taking them off, for the key that made it.

use std::sync::Arc;

use super::{
    known::Known,
    pairs::{self, shared},
    records::{Records, Sayer},
};
use crate::{
    api::command::{
        Caller, LeaveOnRecord, MemberAct, MemberSet, Outcome, Refused, Share, ShareAct,
    },
    limits::MEMBERS_ON_RECORD_MAX,
    name::{
        id::{AgentId, KeyPrint, RoomId},
        key::KeySecret,
    },
    records::members::{Member, Role, Word},
};

pub(super) fn set(
    known: &mut Known,
    records: &mut Records,
    set: MemberSet,
) -> Result<Outcome, Refused> {
    known.caller(&set.caller)?;
    known.may_read(&set.caller.reader(), set.room)?;
    known.may_write(set.room)?;
    if known.maker_of(set.room) != Some(set.caller.key) {
        return Err(Refused::NotYours);
    }
    match set.act {
        MemberAct::Put(role) => put(known, records, &set, role)?,
        MemberAct::Remove => remove(known, records, &set)?,
    }
    Ok(Outcome::Done)
}

fn put(
    known: &mut Known,
    records: &mut Records,
    set: &MemberSet,
    role: Role,
) -> Result<(), Refused> {
    let MemberSet { caller, room, agent, .. } = set;
    let key = pairs::key_of(known, caller, agent);
    let key = key.ok_or_else(|| Refused::NoAgent(agent.clone()))?;
    if known.directory.proofs().is_retired(agent) {
        return Err(Refused::AgentRetired(agent.clone()));
    }
    let list = known.on_record.shown.of(*room);
    let is_there = list.iter().any(|member| member.agent == *agent);
    if !is_there && list.len() >= MEMBERS_ON_RECORD_MAX {
        let text =
            format!("the room has {MEMBERS_ON_RECORD_MAX} members on record, which is the most");
        return Err(Refused::Full(text));
    }
    let may_read =
        known.told.get(room).is_some_and(|view| view.access().includes(key, Some(agent)));
    if !may_read {
        let is_shared = known.directory.shared.room(*room).is_some();
        if !is_shared {
            return Err(Refused::Impossible(ANOTHER_KEY.to_owned()));
        }
        shared::share(known, records, share(set, agent, ShareAct::Give))?;
    }
    let mut words = vec![Word { agent: agent.clone(), key, role, left: false }];
    if role == Role::Lead {
        let leads = |member: &&Member| member.role == Role::Lead && member.agent != *agent;
        words.extend(list.iter().filter(leads).map(|member| Word {
            agent: member.agent.clone(),
            key: member.key,
            role: Role::Member,
            left: member.left,
        }));
    }
    records.say_of_members(known, sayer(caller, set.signer.as_ref(), *room), &words)
}

fn remove(known: &mut Known, records: &mut Records, set: &MemberSet) -> Result<(), Refused> {
    let MemberSet { caller, room, agent, .. } = set;
    let list = known.on_record.shown.of(*room);
    let member = list.iter().find(|member| member.agent == *agent);
    let member = member.ok_or_else(|| Refused::NoAgent(agent.clone()))?;
    records.remove_member(known, sayer(caller, set.signer.as_ref(), *room), agent)?;
    let key = known.directory.current(member.key);
    let is_of_key =
        |other: &Member| other.agent != *agent && known.directory.current(other.key) == key;
    let is_needed = key == caller.key || list.iter().any(is_of_key);
    if known.directory.shared.room(*room).is_some() && !is_needed {
        shared::share(known, records, share(set, agent, ShareAct::Take))?;
    }
    Ok(())
}

fn share(set: &MemberSet, agent: &AgentId, act: ShareAct) -> Share {
    let MemberSet { caller, signer, room, .. } = set.clone();
    Share { caller, signer, room, agent: agent.clone(), act }
}

fn sayer<'s>(caller: &Caller, signer: Option<&'s Arc<KeySecret>>, room: RoomId) -> Sayer<'s> {
    let (key, signer) = (caller.key, signer.map(|signer| &**signer));
    Sayer { room, key, signer, maker: key }
}

/// An agent has left a room. If it is a member on record it says so, for other nodes give it a seat there else when it attaches.
/// Where it cannot say so it has left all the same.
pub(super) fn note_left(known: &mut Known, records: &mut Records, leave: &LeaveOnRecord) {
    let LeaveOnRecord { caller, signer, room } = leave;
    let Some(maker) = known.maker_of(*room) else { return };
    let list = known.on_record.shown.of(*room);
    let is_own = |member: &&Member| {
        let key = known.directory.current(member.key);
        member.agent == caller.agent && key == caller.key && !member.left
    };
    let Some(member) = list.iter().find(is_own) else { return };
    let word = Word { agent: member.agent.clone(), key: caller.key, role: member.role, left: true };
    let by = Sayer { maker, ..sayer(caller, signer.as_ref(), *room) };
    drop(records.say_of_members(known, by, &[word]));
}

/// The rooms in which an agent that attaches has a seat though it has not asked for one.
pub(super) fn rooms_for(known: &Known, agent: &AgentId, key: KeyPrint) -> Vec<RoomId> {
    let is_wanted = |room: &RoomId| {
        known.on_record.shown.of(*room).iter().any(|member| {
            let of = known.directory.current(member.key);
            member.agent == *agent && of == key && !member.left
        })
    };
    known.on_record.shown.rooms_of(agent).filter(is_wanted).collect()
}

const ANOTHER_KEY: &str =
    "private room of another key: the agent's key may not read it; make a shared room for both";
