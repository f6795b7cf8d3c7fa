//! Access: may a caller read, write, act in a room; and writing acts for agents.

use std::collections::BTreeSet;

use super::Known;
use crate::{
    api::{
        agenda::Standing,
        command::{Apart, Caller, Reader, Refused},
    },
    directory::direct::Stage,
    fold::act::Spoken,
    limits::{ACTS_BYTES_MAX, EPHEMERAL_BYTES_MAX, PLAIN_BODY_BYTES_MAX},
    name::{
        agent::is_person,
        id::{AgentId, KeyPrint, LocalRef, RoomId},
    },
    wire::{
        acts::{ElectionAct, KeyTerms, TaskAct, VoteAct},
        approval::ApprovalAct,
        entry::{Body, Parting},
        roster::AgentRecord,
    },
};

impl Known {
    /// The caller's own record, if its registration is the one that counts.
    pub(crate) fn caller(&self, caller: &Caller) -> Result<AgentRecord, Refused> {
        if self.registrations.get(&caller.agent) != Some(&caller.registration) {
            return Err(Refused::Superseded);
        }
        self.rosters.own(&caller.agent).cloned().ok_or(Refused::Superseded)
    }

    /// Whether this one may know of the room and read it.
    pub(crate) fn may_read(&self, by: &Reader, room: RoomId) -> Result<(), Refused> {
        let view = self.told.get(&room).ok_or(Refused::NoRoom)?;
        let includes = view.access().includes(by.key, by.agent.as_deref());
        if includes { Ok(()) } else { Err(Refused::NotYours) }
    }

    /// Whether anybody may write in the room.
    pub(crate) fn may_write(&self, room: RoomId) -> Result<(), Refused> {
        let direct = self.directory.direct.get(room);
        if direct.is_some_and(|direct| direct.stage() != Stage::Open) {
            return Err(Refused::SessionClosed);
        }
        if self.rooms.contains_key(&room) { Ok(()) } else { Err(Refused::Closed) }
    }

    /// The standing of a key here: it is the node's own (`own`), or a minted one.
    pub(crate) fn standing(&self, key: KeyPrint, own: bool) -> Result<Standing, Refused> {
        if own {
            return Ok(Standing::Own);
        }
        let standing = |terms: &KeyTerms| Standing::Minted {
            tier: terms.tier,
            writes: terms.may_write(),
            approves: terms.may_approve(),
        };
        self.terms(key).as_ref().map(standing).ok_or(Refused::NoKey)
    }

    /// The terms of a minted key that is valid.
    pub(crate) fn terms(&self, key: KeyPrint) -> Option<KeyTerms> {
        let keys = self.directory.keys();
        keys.terms(key).filter(|terms| !terms.is_over(self.cx.now.wall_ms)).cloned()
    }

    /// Whether this one is an operator of this node.
    pub(crate) fn is_operator(&self, key: KeyPrint) -> bool {
        self.config.operators.iter().any(|operator| self.directory.current(*operator) == key)
    }

    /// Whether nobody has stopped an agent: it may do what others hear of. An operator's word about all agents is not about people
    /// of the operator's own key: somebody has to be able to say why. The word of a key that was replaced is its successor's,
    /// until that says something else.
    pub(crate) fn lets(&self, own: KeyPrint, agent: &AgentId) -> Result<(), Refused> {
        if self.stopped.is_empty() {
            return Ok(());
        }
        for key in self.stoppers(own) {
            let line = self.directory.keys().line(key);
            if let Some(stop) = self.stopped.said(&line, Some(agent)) {
                return Err(Refused::Stopped { by: stop.by.clone(), all: false });
            }
            let is_own_person = key == own && is_person(agent);
            if let Some(stop) = self.stopped.said(&line, None).filter(|_| !is_own_person) {
                return Err(Refused::Stopped { by: stop.by.clone(), all: true });
            }
        }
        Ok(())
    }

    /// The keys that may stop agents of this one here.
    pub(crate) fn stoppers(&self, own: KeyPrint) -> BTreeSet<KeyPrint> {
        let keys = self.directory.keys();
        let operators = self.config.operators.iter().map(|key| keys.current(*key));
        operators.chain([own]).filter(|key| !keys.is_revoked(*key)).collect()
    }

    /// The caller's record, if it may do something in a room that is for its members alone.
    pub(crate) fn may_act(&self, caller: &Caller, room: RoomId) -> Result<AgentRecord, Refused> {
        let record = self.caller(caller)?;
        self.may_read(&caller.reader(), room)?;
        self.may_write(room)?;
        if record.rooms.contains_key(&room) { Ok(record) } else { Err(Refused::NotMember) }
    }

    /// The same for messages and tasks, which agents that stand outside write, too.
    pub(crate) fn may_contribute(
        &self,
        caller: &Caller,
        room: RoomId,
    ) -> Result<AgentRecord, Refused> {
        match self.may_act(caller, room) {
            Err(Refused::NotMember) if self.stands_outside(caller) => self.caller(caller),
            answer => answer,
        }
    }

    fn stands_outside(&self, caller: &Caller) -> bool {
        self.outside.get(&caller.agent) == Some(&caller.registration)
    }

    /// Whether others will find that this node can speak for the caller: else its ballots and claims would not count.
    pub(crate) fn may_speak(&self, caller: &Caller) -> Result<(), Refused> {
        let (key, agent) = (caller.key.checked(), &caller.agent);
        if let Some(apart) = self.apart() {
            return Err(Refused::Apart(apart));
        }
        let counts = self.directory.keys().speaks_for(&Spoken { node: self.cx.me, key, agent });
        if counts { Ok(()) } else { Err(Refused::Full(NOT_VOUCHED.to_owned())) }
    }

    /// Writes an agent's act into this node's log of a room: none that this node itself would not fold.
    pub(crate) fn write_act(&mut self, id: RoomId, body: &Body) -> Result<LocalRef, Refused> {
        let len = body.encode().len();
        if len > PLAIN_BODY_BYTES_MAX {
            return Err(Refused::Full("the room has too many members for this".to_owned()));
        }
        if !has_memory_for(body, self.acts_bytes(), len) {
            let full = "this node has all the votes, elections and tasks that it can hold";
            return Err(Refused::Full(full.to_owned()));
        }
        let room = self.rooms.get_mut(&id).ok_or(Refused::NoRoom)?;
        room.fits(&self.cx, body)?;
        if room.replica.record.ephemeral && self.cx.memory.ephemeral + len > EPHEMERAL_BYTES_MAX {
            return Err(Refused::Full(NO_MEMORY.to_owned()));
        }
        if !room.is_writable(&self.cx) {
            return Err(self.not_writable(id));
        }
        room.append(&mut self.cx, body).ok_or(Refused::Closed)
    }

    /// Why nothing that this node writes counts, in any room that all nodes have.
    pub(crate) fn apart(&self) -> Option<Apart> {
        let me = self.cx.me;
        let removal = self.cx.parted.view(me).or(self.node.parted);
        match removal.map(|removal| removal.why) {
            Some(Parting::Expelled) => Some(Apart::Expelled),
            Some(Parting::Retired) => Some(Apart::Retired),
            Some(Parting::Left) => Some(Apart::Left),
            None => self.cx.forked.contains(&me).then_some(Apart::Forked),
        }
    }

    /// Why a room takes nothing from this node.
    pub(crate) fn not_writable(&self, id: RoomId) -> Refused {
        let me = self.cx.me;
        let forked = || {
            let room = self.rooms.get(&id)?;
            room.replica.is_forked(&self.cx, me).then_some(Apart::Forked)
        };
        let apart = self.apart().or_else(forked);
        apart.map_or_else(|| Refused::Full(USED_UP.to_owned()), Refused::Apart)
    }

    /// Memory that the acts of all rooms take.
    pub(crate) fn acts_bytes(&self) -> usize {
        self.rooms.values().map(|room| room.folds.bytes()).sum()
    }
}

/// Why a room takes nothing from this node, of all nodes that are in the mesh.
const USED_UP: &str = "the room's numbers are used up: it takes nothing more; use another room";

/// Why a ballot or a claim is not taken.
pub(crate) const NOT_VOUCHED: &str = "this node cannot prove that it was shown the key that owns this agent id, so nobody would count it: the key is too \
     short, or the node has no room or no part in the mesh for a voucher; use another node or key";

/// Why an ephemeral room takes nothing.
pub(crate) const NO_MEMORY: &str =
    "this node's memory for ephemeral rooms is full: use a permanent room";

/// Whether an act of so many bytes may be written where acts take so many already.
fn has_memory_for(body: &Body, taken: usize, len: usize) -> bool {
    !begins_something(body) || taken + len <= ACTS_BYTES_MAX
}

/// Whether it takes memory for good. Acts that belong to something that has begun are always taken.
fn begins_something(body: &Body) -> bool {
    matches!(
        body,
        Body::Vote(VoteAct::Opened(_))
            | Body::Election(ElectionAct::Started(_))
            | Body::Task(TaskAct::Assigned(_))
            | Body::Approval(ApprovalAct::Requested(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::id::{EntryRef, LogId, NodeId},
        wire::acts::{BallotCast, ElectionStarted, TaskAssigned, TaskUpdated, VoteOpened},
    };

    #[test]
    fn what_was_begun_goes_on_when_there_is_no_memory_to_begin_more() {
        let place = EntryRef { log: LogId { author: NodeId([1; 32]), incarnation: 0 }, seq: 1 };
        let opened = VoteOpened {
            title: "what".to_owned(),
            description: None,
            options: Vec::new(),
            eligible: Vec::new(),
            created_by: "x".into(),
            closes_ms: None,
        };
        let started = ElectionStarted { term: 1, candidates: Vec::new(), started_by: "x".into() };
        let assigned = TaskAssigned::of("do it", "x".into());
        let begun = [
            Body::Vote(VoteAct::Opened(opened)),
            Body::Election(ElectionAct::Started(started)),
            Body::Task(TaskAct::Assigned(assigned)),
        ];
        for body in begun {
            assert!(has_memory_for(&body, ACTS_BYTES_MAX - 10, 10));
            assert!(!has_memory_for(&body, ACTS_BYTES_MAX - 10, 11));
            assert!(!has_memory_for(&body, ACTS_BYTES_MAX + 1, 0));
        }
        let updated = TaskUpdated::of(place, "x".into());
        let cast = BallotCast { vote: place, agent: "x".into(), commitment: [0; 32], key: None };
        for body in [Body::Vote(VoteAct::Cast(cast)), Body::Task(TaskAct::Updated(updated))] {
            assert!(has_memory_for(&body, ACTS_BYTES_MAX, 1_000));
        }
    }
}
