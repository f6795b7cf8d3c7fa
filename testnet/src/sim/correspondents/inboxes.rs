//! *inbox*: from the moment an agent's inbox is made at a node, every message of another agent in a direct room of that agent that
//! is delivered at that node, and every delivered message that mentions it in a room that it may read, written after the inbox
//! was made, has exactly one item in its inbox there, in the order of delivery there. Places rise and are never used twice, over
//! restarts, too; items that were there stay there; a mark never moves back; mail is told of once it is durable, and always.
//!
//! The checker follows what each node has written, and compares that with the rows of its store when the node starts, and
//! in the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use mesh::{
    api::{
        batch::{Change, Fate, InboxItem, InboxRecord, StoredInbox},
        delivery::Stage,
    },
    name::{
        id::{AgentId, EntryRef, RoomId},
        number::Number,
    },
    wire::kinds::THINKING,
};
use store::{Reader, Row};

use super::{At, Correspondents, conversations, inbox_rows};
use crate::sim::{
    cluster::Cluster,
    coverage::Happening,
    promises::{Broken, Entry, broken},
};

const INBOX: &str = "inbox";

/// An inbox at a node, as it was written.
#[derive(Debug)]
struct Kept {
    record: InboxRecord,
    /// When it was made, or a little later.
    made: Duration,
    /// The messages that the node had delivered by then, by room: up to this number.
    before: BTreeMap<RoomId, Number>,
    /// All items that were ever written.
    items: BTreeMap<u64, At>,
    /// Of these, those that were taken out.
    out: BTreeSet<u64>,
    /// The highest place that is used.
    used: u64,
    /// Items since the node started of which nobody was told yet.
    untold: u64,
    /// Something was delivered into it since the node started, and nothing was told since.
    is_unheard: bool,
}

/// A node's deliveries.
#[derive(Debug, Default)]
struct Deliveries {
    /// The place of each among all of the node. Of those that came to light at a start alone nobody knows it: they share one.
    order: BTreeMap<At, u64>,
    tips: BTreeMap<RoomId, Number>,
    count: u64,
    /// The life of the node in which each was delivered.
    lives: BTreeMap<At, u64>,
}

/// Whether a message belongs into an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Must,
    /// From before; or its room is one that nobody was told of; or its body is gone; or it is the agent's own, and its node did not have the body at hand.
    May,
    MustNot,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inboxes {
    kept: BTreeMap<(usize, AgentId), Kept>,
    nodes: BTreeMap<usize, Deliveries>,
    /// When each entry was first seen at any node.
    first_seen: BTreeMap<Entry, Duration>,
    /// Items that somebody wants to have taken out.
    asked_out: BTreeSet<(usize, AgentId, u64)>,
}

/// As nodes write.
impl Inboxes {
    /// A batch is durable at a node.
    pub(super) fn stored(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        batch: &[Change],
    ) -> Result<(), Broken> {
        let mut made = Vec::new();
        for change in batch {
            if let Change::Entry { room, at, .. } = change {
                // The room may have ended in the same batch.
                if let Ok(entry) = cluster.entry(node, *room, *at) {
                    self.first_seen.entry(entry).or_insert(cluster.now());
                }
            } else if let Change::Number { room, number, fate: Fate::Delivered, .. } = change {
                let life = cluster.nodes[node].life;
                self.nodes.entry(node).or_default().note((*room, *number), life);
            } else if let Change::Inbox(record) = change {
                if self.record_is(cluster, node, record)? {
                    made.push(record.agent.clone());
                }
            } else if let Change::NoInbox { agent } = change {
                self.kept.remove(&(node, agent.clone()));
            } else if let Change::InboxItem { agent, place, item: Some(item) } = change {
                self.item_is(cluster, (node, agent), (*place, *item))?;
            }
        }
        let tips = self.nodes.get(&node).map(|seen| seen.tips.clone()).unwrap_or_default();
        for agent in made {
            if let Some(kept) = self.kept.get_mut(&(node, agent)) {
                kept.before.clone_from(&tips);
            }
        }
        Ok(())
    }

    /// Whether it is a new one.
    fn record_is(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        record: &InboxRecord,
    ) -> Result<bool, Broken> {
        let at = (node, record.agent.clone());
        if let Some(kept) = self.kept.get_mut(&at) {
            return kept.goes_on_with(node, record).map(|()| false);
        }
        cluster.coverage.count(Happening::InboxMade);
        self.kept.insert(at, Kept::new(record, cluster.now()));
        Ok(true)
    }

    fn item_is(
        &mut self,
        cluster: &mut Cluster,
        (node, agent): (usize, &AgentId),
        (place, item): (u64, InboxItem),
    ) -> Result<(), Broken> {
        let Some(kept) = self.kept.get_mut(&(node, agent.clone())) else {
            return broken(INBOX, format!("node{node} writes to {agent}, who has no inbox"));
        };
        if item.is_taken_out() {
            kept.out.insert(place);
            return Ok(());
        }
        if place <= kept.used {
            let what =
                format!("node{node} uses place {place} of {agent}, and {} is used", kept.used);
            return broken(INBOX, what);
        }
        kept.used = place;
        kept.untold += 1;
        if item.notice.is_some() {
            cluster.coverage.count(Happening::Noticed);
            return Ok(());
        }
        kept.items.insert(place, (item.room, item.number));
        kept.is_unheard |= kept.is_after((item.room, item.number));
        let mention = item.room == cluster.lobby();
        cluster.coverage.count(if mention { Happening::Mentioned } else { Happening::Mailed });
        Ok(())
    }

    /// An agent wants to have an item taken out. Whether that happens, a crash may decide.
    pub(super) fn takes_out(&mut self, node: usize, agent: &AgentId, place: u64) {
        self.asked_out.insert((node, agent.clone(), place));
    }

    /// A node tells an agent of mail: it is durable by then.
    pub(super) fn mail(&mut self, node: usize, agent: &AgentId) -> Result<(), Broken> {
        match self.kept.get_mut(&(node, agent.clone())) {
            Some(kept) if kept.untold > 0 => {
                kept.untold -= 1;
                kept.is_unheard = false;
                Ok(())
            }
            Some(_) | None => {
                broken(INBOX, format!("node{node} tells {agent} of mail that is not written"))
            }
        }
    }

    /// How many items of this an agent's inbox at a node has. `None`: it has no inbox there.
    pub(super) fn count(&self, node: usize, agent: &AgentId, item: At) -> Option<usize> {
        let kept = self.kept.get(&(node, agent.clone()))?;
        Some(kept.items.values().filter(|at| **at == item).count())
    }

    pub(super) fn node_down(&mut self, node: usize) {
        let here = self.kept.iter_mut().filter(|((at, _), _)| *at == node);
        here.for_each(|(_, kept)| (kept.untold, kept.is_unheard) = (0, false));
    }

    /// The life of a node in which it delivered a message, if that was seen.
    pub(super) fn delivered_in(&self, node: usize, at: At) -> Option<u64> {
        self.nodes.get(&node)?.lives.get(&at).copied()
    }
}

impl Deliveries {
    fn note(&mut self, (room, number): At, life: u64) {
        self.count += 1;
        self.order.insert((room, number), self.count);
        self.tips.insert(room, number);
        self.lives.insert((room, number), life);
    }
}

impl Kept {
    fn new(record: &InboxRecord, made: Duration) -> Kept {
        Kept {
            record: record.clone(),
            made,
            before: BTreeMap::new(),
            items: BTreeMap::new(),
            out: BTreeSet::new(),
            used: 0,
            untold: 0,
            is_unheard: false,
        }
    }

    /// The same inbox, and its mark is not lower.
    fn goes_on_with(&mut self, node: usize, record: &InboxRecord) -> Result<(), Broken> {
        let old = &self.record;
        let same = (old.since_ms, old.key) == (record.since_ms, record.key);
        if !same || record.mark < old.mark || (record.unfiled.is_some() && old.unfiled.is_none()) {
            return broken(INBOX, format!("node{node}: {old:?} has become {record:?}"));
        }
        self.record = record.clone();
        Ok(())
    }

    /// Whether a message was delivered when the inbox was there.
    fn is_after(&self, (room, number): At) -> bool {
        self.before.get(&room).is_none_or(|before| number > *before)
    }
}

/// Over restarts.
impl Inboxes {
    /// A node has started: of the batch that was cut off its store has all or nothing, and everything that was before.
    pub(super) fn restarted(&mut self, cluster: &mut Cluster, node: usize) -> Result<(), Broken> {
        let deliveries = cluster.nodes[node].deliveries();
        let seen = self.nodes.entry(node).or_default();
        seen.count += 1;
        for (room, rows) in deliveries {
            for (number, _) in rows {
                seen.order.entry((room, number)).or_insert(seen.count);
                let tip = seen.tips.entry(room).or_default();
                *tip = number.max(*tip);
            }
        }
        let tips = seen.tips.clone();
        let stored = cluster.nodes[node].inboxes();
        let known = self.kept.keys().filter(|(at, _)| *at == node);
        let lost = known
            .map(|(_, agent)| agent)
            .find(|agent| stored.iter().all(|inbox| inbox.record.agent != **agent));
        if let Some(agent) = lost {
            return broken(INBOX, format!("node{node} has no inbox of {agent} any more"));
        }
        for StoredInbox { record, newest } in stored {
            if self.record_is(cluster, node, &record)?
                && let Some(kept) = self.kept.get_mut(&(node, record.agent.clone()))
            {
                kept.before.clone_from(&tips);
            }
            cluster.coverage.count(Happening::InboxKept);
            let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
            self.items_are(&running.reader, (node, &record.agent), newest)?;
        }
        Ok(())
    }

    /// The items in the store are those that were written, and perhaps some of the batch that was cut off.
    pub(super) fn items_are(
        &mut self,
        reader: &Reader,
        (node, agent): (usize, &AgentId),
        newest: u64,
    ) -> Result<(), Broken> {
        let at = (node, agent.clone());
        let Some(kept) = self.kept.get_mut(&at) else { return Ok(()) };
        let page = reader.inbox(agent, 0, usize::MAX)?;
        let messages = page.items.iter().filter(|(_, item)| item.notice.is_none());
        let rows: BTreeMap<u64, At> =
            messages.map(|(place, item)| (*place, (item.room, item.number))).collect();
        for (place, item) in &kept.items {
            let row = rows.get(place);
            if row.is_none() && self.asked_out.contains(&(node, agent.clone(), *place)) {
                kept.out.insert(*place);
            } else if row != Some(item) || kept.out.contains(place) {
                let what =
                    format!("place {place} of {agent} at node{node} was {item:?}, is {row:?}");
                return broken(INBOX, what);
            }
        }
        for (place, item) in rows {
            let known = kept.items.insert(place, item).is_some();
            if !known && place <= kept.used {
                let what = format!("place {place} of {agent} at node{node} is {item:?} again");
                return broken(INBOX, what);
            }
        }
        if newest < kept.used {
            let what = format!("{agent} has {newest} items at node{node}, and had {}", kept.used);
            return broken(INBOX, what);
        }
        kept.used = newest;
        Ok(())
    }
}

/// Whether everything is there.
impl Correspondents {
    /// *inbox*, of all inboxes at a node that runs.
    pub(super) fn are_right(&self, cluster: &Cluster, node: usize) -> Result<(), Broken> {
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        for (i, agent) in self.agents.iter().enumerate() {
            let Some(kept) = self.inboxes.kept.get(&(node, agent.id.clone())) else { continue };
            let inbox = Judged { all: self, cluster, node, i, kept };
            inbox.has_everything(&running.reader)?;
            inbox.is_in_order()?;
        }
        Ok(())
    }

    /// *inbox*: agents were told of their mail. When nothing is under way.
    pub(super) fn mail_was_told(&self) -> Result<(), Broken> {
        match self.inboxes.kept.iter().find(|(_, kept)| kept.is_unheard) {
            Some(((node, agent), _)) => {
                broken(INBOX, format!("node{node} never told {agent} of its mail"))
            }
            None => Ok(()),
        }
    }
}

/// One inbox, looked at.
#[derive(Clone, Copy, Debug)]
struct Judged<'a> {
    all: &'a Correspondents,
    cluster: &'a Cluster,
    node: usize,
    i: usize,
    kept: &'a Kept,
}

impl Judged<'_> {
    /// Exactly one item for each message that is due, and none for others.
    fn has_everything(&self, reader: &Reader) -> Result<(), Broken> {
        let mut counts: BTreeMap<At, usize> = BTreeMap::new();
        for at in self.kept.items.values() {
            *counts.entry(*at).or_default() += 1;
        }
        for (room, _) in reader.rooms()? {
            let before = self.kept.before.get(&room).copied().unwrap_or_default();
            for row in inbox_rows::rows_after(reader, room, before) {
                let count = counts.remove(&(room, row.number)).unwrap_or_default();
                self.is_due((room, &row), count)?;
            }
        }
        // Those from before.
        for (at, count) in counts {
            if at.1 == Number::ZERO && self.all.may_be_told(self.i, at.0) && count == 1 {
                continue;
            }
            match reader.by_number(at.0, at.1)? {
                Some(row) if self.is_due_before((at.0, &row)) && count == 1 => {}
                row => return self.is_wrong(&format!("{count} items for {at:?}: {row:?}")),
            }
        }
        Ok(())
    }

    fn is_due(&self, (room, row): (RoomId, &Row), count: usize) -> Result<(), Broken> {
        let right = match self.due(room, row) {
            Due::Must => count == 1,
            Due::May => count <= 1,
            Due::MustNot => count == 0,
        };
        if right {
            return Ok(());
        }
        let (number, due) = (row.number, self.due(room, row));
        self.is_wrong(&format!("{count} items for {number:?} of {room}, {due:?}: {:?}", row.said))
    }

    /// Filed, or delivered with the same batch that made the inbox.
    fn is_due_before(&self, (room, row): (RoomId, &Row)) -> bool {
        let agent = &self.all.agents[self.i];
        let sides = self.all.sides(room);
        let is_side = sides.is_some_and(|(one, other)| self.i == one || self.i == other);
        let others = row.said.as_ref().is_none_or(|said| said.agent != agent.id);
        // Nobody looks into older messages for their places in conversations.
        (is_side && others && row.facts.kind != THINKING) || self.due(room, row) != Due::MustNot
    }

    fn due(&self, room: RoomId, row: &Row) -> Due {
        let Some(said) = &row.said else { return Due::May };
        let agent = &self.all.agents[self.i];
        if row.facts.kind == THINKING {
            return Due::MustNot;
        }
        let own = said.agent == agent.id;
        if let Some((one, other)) = self.all.sides(room) {
            return match self.i == one || self.i == other {
                true if own => Due::May,
                true if conversations::is_over(self.cluster, self.node, (row.log.author, said)) => {
                    Due::MustNot
                }
                // One that was given up before it came has no item.
                true if self.has_failed((room, row), &said.agent) => Due::May,
                true => Due::Must,
                false => Due::MustNot,
            };
        }
        if !self.all.is_known(self.cluster, room) {
            return Due::May;
        }
        let mentioned = said.mentions.contains(&agent.id) && !own;
        if !mentioned || !self.all.may_read(self.cluster, self.i, room) {
            return Due::MustNot;
        }
        let seen = self.all.inboxes.first_seen.get(&(row.log, row.at.seq));
        let after = seen.is_some_and(|seen| *seen > self.kept.made);
        let by_clock = row.facts.wall_ms >= self.kept.record.since_ms;
        if after && by_clock { Due::Must } else { Due::May }
    }

    fn has_failed(&self, (room, row): (RoomId, &Row), by: &AgentId) -> bool {
        let Some(running) = &self.cluster.nodes[self.node].running else { return false };
        let request = EntryRef { log: row.log, seq: row.at.seq };
        let fate = running.engine.fates().of(room, request, by);
        fate.is_some_and(|fate| fate.stage >= Stage::Failed)
    }

    /// Items are in the order of delivery; those that were filed come from before.
    fn is_in_order(&self) -> Result<(), Broken> {
        let Some(seen) = self.all.inboxes.nodes.get(&self.node) else { return Ok(()) };
        // An item of a task without a result is of no message.
        let of_message = |at: &At| at.1 > Number::ZERO && self.kept.is_after(*at);
        let items = self.kept.items.iter().filter(|(_, at)| of_message(at));
        let mut last = 0;
        for (place, at) in items {
            let order = seen.order.get(at).copied().unwrap_or_default();
            if order < last {
                return self.is_wrong(&format!("place {place}, {at:?}, was delivered before"));
            }
            last = order;
        }
        Ok(())
    }

    fn is_wrong(&self, what: &str) -> Result<(), Broken> {
        let agent = &self.all.agents[self.i].id;
        broken(INBOX, format!("{agent} at node{}: {what}", self.node))
    }
}
