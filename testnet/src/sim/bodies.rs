//! Nodes that keep bodies for different times.
//!
//! *kept*: a body that no node is due to drop is at all of them, and without faults a node that keeps for ever
//! has everything; bodies that two nodes keep are the same. *dropped*: a body that is due goes.

use std::{collections::BTreeMap, time::Duration};

use mesh::{
    api::batch::Fate,
    name::{
        id::{MessageId, NodeId, RoomId},
        number::Number,
    },
};
use store::Row;

use super::{
    cluster::Cluster,
    promises::{Broken, Entry, Promises, broken},
};

/// How much later than due a body may go: clocks were off by 10 s, and rooms take turns.
const SLACK: Duration = Duration::from_secs(16);

/// The bodies of messages, as nodes have them.
#[derive(Debug)]
pub(super) struct Bodies<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) promises: &'a Promises,
}

impl Bodies<'_> {
    fn keeps(&self, node: usize) -> Option<Duration> {
        self.cluster.nodes[node].keeps().own
    }

    /// The delivered messages of a room at a node.
    fn rows(&self, node: usize, room: RoomId) -> BTreeMap<Entry, Row> {
        let node = &self.cluster.nodes[node];
        let Some(running) = &node.running else { return BTreeMap::new() };
        let numbers = self.promises.numbers_at(node.id, room);
        let rows =
            numbers.filter_map(|number| running.reader.by_number(room, number).ok().flatten());
        rows.map(|row| ((row.log, row.at.seq), row)).collect()
    }

    fn nodes_with(&self, room: RoomId) -> impl Iterator<Item = usize> {
        let nodes = self.cluster.nodes.iter().enumerate();
        nodes.filter(move |(_, node)| self.cluster.rooms.is_for(room, node.id)).map(|(i, _)| i)
    }

    /// *kept*, of all rooms that nodes may drop bodies of.
    pub(super) fn are_kept(&self, rooms: &[RoomId]) -> Result<(), Broken> {
        let times = (0..self.cluster.nodes.len()).filter_map(|node| self.keeps(node));
        let shortest = times.min().unwrap_or(self.cluster.now());
        for room in rooms.iter().filter(|room| self.is_prunable(**room)) {
            let mut first = None;
            for node in self.nodes_with(*room) {
                let rows = self.rows(node, *room);
                self.are_kept_at(node, *room, &rows, shortest)?;
                are_the_same(node, first.get_or_insert_with(|| rows.clone()), &rows)?;
            }
        }
        Ok(())
    }

    fn are_kept_at(
        &self,
        node: usize,
        room: RoomId,
        rows: &BTreeMap<Entry, Row>,
        shortest: Duration,
    ) -> Result<(), Broken> {
        let calm_for = self.cluster.now().saturating_sub(self.cluster.plan.faults_end);
        let young_ms = self.cluster.wall_ms(shortest.min(calm_for));
        let all = self.cluster.plan.calm && self.keeps(node).is_none();
        let since = self.cluster.rooms.followed_since(self.cluster.nodes[node].id, room);
        for row in rows.values() {
            let is_young = row.facts.wall_ms > young_ms;
            let shortest_ms = u64::try_from(shortest.as_millis()).unwrap_or(u64::MAX);
            let was_young = row.facts.wall_ms + shortest_ms > since;
            if row.said.is_none() && (is_young || (all && was_young)) {
                let what = format!("node{node} has dropped {row:?}, young: {is_young}");
                return broken("kept", what);
            }
        }
        Ok(())
    }

    /// *dropped*.
    pub(super) fn old_are_dropped(&self, rooms: &[RoomId]) -> Result<(), Broken> {
        for room in rooms.iter().filter(|room| self.is_prunable(**room)) {
            for node in self.nodes_with(*room) {
                let Some(keep) = self.keeps(node) else { continue };
                let due_ms = self.cluster.wall_ms(keep + SLACK);
                let rows = self.rows(node, *room);
                let is_old = |row: &&Row| row.facts.wall_ms < due_ms && row.said.is_some();
                if let Some(row) = rows.values().find(is_old) {
                    return broken("dropped", format!("node{node} keeps {row:?} for too long"));
                }
            }
        }
        Ok(())
    }

    /// Whether a node has no more of an entry than that there was one: nobody asks for a number for it
    /// that is above the node's tip.
    pub(super) fn is_gone(&self, node: NodeId, room: RoomId, entry: Entry) -> bool {
        let i = self.cluster.index(node);
        let running = i.and_then(|i| self.cluster.nodes[i].running.as_ref());
        let Some(running) = running.filter(|_| self.cluster.plan.retention) else { return false };
        // Whether any of its numbers counts here or not.
        let message = MessageId::new(room, entry.0, entry.1);
        let row = running.reader.by_message(room, message).ok().flatten();
        let said_here = match row {
            Some(row) => row.said.is_some(),
            // Without a number that counts here, if it came without its body: the node that dropped it had one.
            None => {
                let author = self.cluster.index(entry.0.author);
                !author.is_some_and(|author| self.is_dropped(author, room, entry))
            }
        };
        !said_here && self.is_prunable(room)
    }

    /// Messages that a node that starts had delivered before it dropped their bodies: they are on no page.
    pub(super) fn dropped_at(&self, node: usize, room: RoomId) -> Vec<(Number, Entry)> {
        let node = &self.cluster.nodes[node];
        let Some(running) = node.running.as_ref().filter(|_| self.cluster.plan.retention) else {
            return Vec::new();
        };
        let mut dropped = Vec::new();
        for number in self.promises.numbers_at(node.id, room) {
            let row = running.reader.by_number(room, number).ok().flatten();
            let Some(row) = row.filter(|row| row.said.is_none()) else { continue };
            let numbers = running.reader.numbers_of(room, row.at).unwrap_or_default();
            if numbers.contains(&(number, Fate::Delivered)) {
                dropped.push((number, (row.log, row.at.seq)));
            }
        }
        dropped
    }

    /// Whether a message's body was dropped at a node.
    pub(super) fn is_dropped(&self, node: usize, room: RoomId, entry: Entry) -> bool {
        let node = &self.cluster.nodes[node];
        let number = self.promises.number_at(node.id, room, entry);
        let Some((number, running)) = number.zip(node.running.as_ref()) else { return false };
        let row = running.reader.by_number(room, number).ok().flatten();
        row.is_some_and(|row| row.said.is_none())
    }

    /// Directories are never pruned.
    fn is_prunable(&self, room: RoomId) -> bool {
        room != self.cluster.directory() && !self.cluster.rooms.is_sealed_directory(room)
    }
}

/// Bodies that both nodes keep are the same.
fn are_the_same(
    node: usize,
    first: &BTreeMap<Entry, Row>,
    rows: &BTreeMap<Entry, Row>,
) -> Result<(), Broken> {
    let both = first.iter().filter_map(|(entry, a)| Some((a, rows.get(entry)?)));
    let mut both = both.filter(|(a, b)| a.said.is_some() && b.said.is_some());
    match both.find(|(a, b)| a.said != b.said) {
        None => Ok(()),
        Some((a, b)) => broken("kept", format!("the first node has {a:?}, node{node} {b:?}")),
    }
}
