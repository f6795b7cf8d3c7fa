//! Inboxes: messages that are for one agent, in the order in which they came to this node, kept until the agent says that
//! it has them. A message is in the store before it is in an inbox, and both are written in one turn: so nothing that was
//! delivered here is missing after a crash.
//!
//! An inbox is for an agent that comes and asks, and not for one that keeps a connection: those are told in their rooms.

use std::collections::{BTreeMap, BTreeSet};

use super::{agents, known::Known};
use crate::{
    api::{
        agenda::TaskView,
        batch::{Change, InboxItem, InboxRecord, StoredInbox},
        boundary::Effect,
        command::{Caller, Inbox, InboxAct, Outcome, Reader, Refused},
        delivery::Notice,
        event::{AgentEvent, Delivered},
    },
    limits::{INBOX_FILED_MAX, INBOX_ITEMS_MAX, INBOXES_MAX, INBOXES_PER_KEY_MAX},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        number::Number,
    },
    wire::kinds::THINKING,
};

/// One inbox.
#[derive(Clone, Debug)]
struct Kept {
    record: InboxRecord,
    /// The newest item.
    newest: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Inboxes {
    /// At most [`INBOXES_MAX`].
    all: BTreeMap<AgentId, Kept>,
    /// Agents that something came for in this turn.
    news: BTreeSet<AgentId>,
}

impl Inboxes {
    /// Those that the store has.
    pub(super) fn restore(&mut self, known: &mut Known, stored: Vec<StoredInbox>) {
        for StoredInbox { record, newest } in stored {
            let agent = record.agent.clone();
            known.cx.addressees.insert(agent.clone());
            let newest = newest.max(record.mark);
            self.all.insert(agent, Kept { record, newest });
        }
    }

    /// Does what an agent asks of its inbox.
    pub(super) fn act(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        act: InboxAct,
    ) -> Result<Outcome, Refused> {
        known.caller(caller)?;
        self.open(known, caller)?;
        let Some(kept) = self.all.get_mut(&caller.agent) else { return Err(Refused::Superseded) };
        if known.cx.now.wall_ms >= kept.record.used_ms.saturating_add(USED_EVERY_MS) {
            kept.record.used_ms = known.cx.now.wall_ms;
            known.cx.change(Change::Inbox(kept.record.clone()));
        }
        match act {
            InboxAct::Open => {}
            InboxAct::Confirm(upto) => {
                let upto = upto.min(kept.newest);
                if upto > kept.record.mark {
                    kept.record.mark = upto;
                    known.cx.change(Change::Inbox(kept.record.clone()));
                }
            }
            InboxAct::TakeOut(place) => {
                // The place stays used: a cursor that was given out must not pass over another item.
                if (1..=kept.newest).contains(&place) {
                    known.cx.change(kept.item(place, Some(InboxItem::TAKEN_OUT)));
                }
            }
            InboxAct::File(items) => {
                if kept.record.unfiled.take().is_some() {
                    known.cx.change(Change::Inbox(kept.record.clone()));
                    for (room, number) in items.into_iter().take(INBOX_FILED_MAX) {
                        kept.put(known, room, number);
                    }
                }
            }
        }
        let InboxRecord { since_ms, mark, unfiled, .. } = kept.record.clone();
        let newest = kept.newest;
        Ok(Outcome::Inbox(Box::new(Inbox { since_ms, mark, newest, unfiled })))
    }

    /// Makes an inbox for an agent that has none here. An id that has come to another key has a new one.
    fn open(&mut self, known: &mut Known, caller: &Caller) -> Result<(), Refused> {
        if let Some(kept) = self.all.get(&caller.agent) {
            if known.directory.current(kept.record.key) == known.directory.current(caller.key) {
                return Ok(());
            }
            self.forget(known, &caller.agent);
        }
        self.make_place(known, caller.key)?;
        let record = InboxRecord {
            agent: caller.agent.clone(),
            key: caller.key,
            since_ms: known.cx.now.wall_ms,
            mark: 0,
            // Said once: all that comes from now on has an item of its own, filed or not.
            unfiled: Some(agents::written_to(known, &caller.reader())),
            used_ms: known.cx.now.wall_ms,
        };
        known.cx.change(Change::Inbox(record.clone()));
        known.cx.addressees.insert(caller.agent.clone());
        self.all.insert(caller.agent.clone(), Kept { record, newest: 0 });
        Ok(())
    }

    /// For one more inbox of an agent of this key. Of many, one that was used longest ago goes: if the key has as many as it may,
    /// one of its own; else one in which nothing waits, whosever it is.
    fn make_place(&mut self, known: &mut Known, key: KeyPrint) -> Result<(), Refused> {
        let is_own = |kept: &&Kept| kept.record.key == key;
        let waits = |kept: &Kept| kept.record.mark < kept.newest;
        let order = |kept: &&Kept| (waits(kept), kept.record.used_ms);
        let own = self.all.values().filter(is_own);
        let first = if own.clone().count() >= INBOXES_PER_KEY_MAX {
            own.min_by_key(order)
        } else if self.all.len() >= INBOXES_MAX {
            let idle = self.all.values().min_by_key(order).filter(|kept| !waits(kept));
            idle.or_else(|| own.min_by_key(order))
        } else {
            return Ok(());
        };
        let Some(first) = first.map(|kept| kept.record.agent.clone()) else {
            let text = format!(
                "this node keeps inboxes for {INBOXES_MAX} agents, and something waits in each of them"
            );
            return Err(Refused::Full(text));
        };
        self.forget(known, &first);
        Ok(())
    }

    fn forget(&mut self, known: &mut Known, agent: &AgentId) {
        self.all.remove(agent);
        known.cx.addressees.remove(agent);
        known.cx.change(Change::NoInbox { agent: agent.clone() });
    }

    /// A message was delivered here, with these mentions of agents that have an inbox.
    pub(super) fn on_delivered(
        &mut self,
        known: &mut Known,
        room: RoomId,
        entry: &Delivered,
        mentioned: &[AgentId],
    ) {
        if self.all.is_empty() || entry.facts.kind == THINKING {
            return;
        }
        let author = entry.said.as_ref().map(|said| &said.agent);
        let mut to: BTreeSet<AgentId> = BTreeSet::new();
        for agent in mentioned {
            let Some(kept) = self.all.get(agent) else { continue };
            let key = known.directory.current(kept.record.key);
            let reader = Reader { key, agent: Some(agent.clone()) };
            // One that came later was not meant. Clocks of nodes differ.
            let is_old =
                entry.facts.wall_ms.saturating_add(CLOCKS_DIFFER_MS) < kept.record.since_ms;
            if !is_old && known.may_read(&reader, room).is_ok() {
                to.insert(agent.clone());
            }
        }
        if let Some(direct) = known.directory.direct.get(room) {
            // If it is not in memory any more, its author finds it as well; readers pass over their own.
            let current = |key| known.directory.current(key);
            let is_side = |(agent, key): &(&AgentId, KeyPrint)| {
                let kept = self.all.get(*agent);
                let own = kept.is_some_and(|kept| current(kept.record.key) == current(*key));
                own && known.is_given(direct, agent)
            };
            to.extend(direct.sides.iter().filter(is_side).map(|(agent, _)| agent.clone()));
        }
        for agent in to.into_iter().filter(|agent| Some(agent) != author) {
            let Some(kept) = self.all.get_mut(&agent) else { continue };
            let own = is_own(known, known.directory.current(kept.record.key), &agent);
            if own && !kept.is_to_file(room, entry.number) {
                kept.put(known, room, entry.number);
                self.news.insert(agent);
            }
        }
    }

    /// An agent is told of a request of its own.
    pub(super) fn notice(
        &mut self,
        known: &mut Known,
        agent: &AgentId,
        (room, notice): (RoomId, Notice),
    ) {
        let Some(kept) = self.all.get_mut(agent) else { return };
        let key = known.directory.current(kept.record.key);
        let reader = Reader { key, agent: Some(agent.clone()) };
        if known.may_read(&reader, room).is_ok() {
            kept.add(known, InboxItem { room, number: Number::ZERO, notice: Some(notice) });
            self.news.insert(agent.clone());
        }
    }

    /// Whether an agent has an inbox here, with the key that its id belongs to.
    pub(super) fn has(&self, known: &Known, agent: &AgentId) -> bool {
        let kept = self.all.get(agent);
        kept.is_some_and(|kept| is_own(known, known.directory.current(kept.record.key), agent))
    }

    /// A task has ended without an answer. The agent that gave it has an item of it, without a number: it is about the task.
    pub(super) fn on_task_ended(&mut self, known: &mut Known, task: &TaskView) {
        let agent = &task.created_by;
        if !self.has(known, agent) || known.directory.direct.get(task.room).is_none() {
            return;
        }
        let Some(kept) = self.all.get_mut(agent) else { return };
        kept.add(known, InboxItem { room: task.room, number: Number::ZERO, notice: None });
        self.news.insert(agent.clone());
    }

    /// As if so many items had come.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, agent: &str, place: u64) {
        self.all.get_mut(agent).expect("it has one").newest = place;
    }

    /// Tells clients' connections of items of this turn.
    pub(super) fn tell(&mut self, known: &mut Known) {
        for agent in std::mem::take(&mut self.news) {
            known.cx.effects.push(Effect::Tell(AgentEvent::Mail { agent }));
        }
    }
}

impl Kept {
    /// A message that was delivered in the turn in which the inbox was made may be among the older ones.
    fn is_to_file(&self, room: RoomId, number: Number) -> bool {
        let mut unfiled = self.record.unfiled.iter().flatten();
        unfiled.any(|older| older.room == room && number <= older.upto)
    }

    fn put(&mut self, known: &mut Known, room: RoomId, number: Number) {
        self.add(known, InboxItem { room, number, notice: None });
    }

    fn add(&mut self, known: &mut Known, item: InboxItem) {
        self.newest += 1;
        known.cx.change(self.item(self.newest, Some(item)));
        if let Some(oldest) = self.newest.checked_sub(INBOX_ITEMS_MAX).filter(|place| *place > 0) {
            known.cx.change(self.item(oldest, None));
        }
    }

    fn item(&self, place: u64, item: Option<InboxItem>) -> Change {
        Change::InboxItem { agent: self.record.agent.clone(), place, item }
    }
}

/// How often it is written down that an inbox is used.
const USED_EVERY_MS: u64 = 3_600_000;
/// So far behind an honest node's clock may be.
const CLOCKS_DIFFER_MS: u64 = 600_000;

/// Whether the id is still this key's, or nobody's.
fn is_own(known: &Known, key: KeyPrint, agent: &AgentId) -> bool {
    known.directory.owner(agent).is_none_or(|(owner, _)| owner == key)
}
