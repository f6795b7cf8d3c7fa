//! Nodes that keep bodies for different times, and what nodes still say when nothing is left to say.
//!
//! *kept*: what no node is due to drop is at all of them, and without faults a node that keeps for ever
//! has everything; what two nodes keep is the same. *dropped*: what is due goes. *still*: once
//! everybody has everything, nodes say little more than that they live.

use std::{collections::BTreeMap, time::Duration};

use mesh::{
    api::{agenda::Retention, batch::Fate},
    limits::HOLE_AFTER,
    name::{
        id::{MessageId, NodeId, RoomId},
        number::Number,
    },
    wire::message::Message,
};
use store::Row;

use super::{
    dice::Dice,
    promises::{Broken, Entry, broken},
    world::World,
};

/// Younger bodies stay everywhere.
pub(super) const MIN: Duration = Duration::from_secs(2);
/// For how long nodes keep bodies.
const TIMES: [Option<Duration>; 4] = [
    None,
    Some(Duration::from_secs(6)),
    Some(Duration::from_secs(12)),
    Some(Duration::from_secs(20)),
];
/// How much later than due a body may go: clocks were off by 10 s, and rooms take turns.
const SLACK: Duration = Duration::from_secs(16);
/// Messages that one node sends another within [`STILL_FOR`] though there is nothing to say.
const STILL_MESSAGES_MAX: usize = 8;
const STILL_FOR: Duration = Duration::from_secs(4);
/// What a trace tells of each of them. Characters.
const TOLD: usize = 2_000;

/// What a node keeps.
pub(super) fn some_retention(dice: &mut Dice) -> Retention {
    let keep = *dice.pick(&TIMES);
    Retention { own: keep, low: keep, high: keep }
}

impl World {
    /// Counts what is no sign of life.
    pub(super) fn count_sent(&mut self, from: usize, to: &[usize], message: &Message) {
        if !matches!(message, Message::Beacon(_)) {
            if self.listening {
                let text = format!("{message:?}");
                self.say(|| format!("node{from} sends {to:?} {text:.TOLD$}"));
            }
            for to in to {
                *self.sent.entry((from, *to)).or_default() += 1;
            }
        }
    }

    /// *still*. A node that has just started asks for a while who has what is missing of a room that is memory.
    pub(super) fn it_is_still(&mut self) -> Result<(), Broken> {
        if self.says_more_than_it_lives()?.is_none() {
            return Ok(());
        }
        let until = self.now + HOLE_AFTER;
        self.run_until(until)?;
        self.says_more_than_it_lives()?.map_or(Ok(()), |what| broken("still", what))
    }

    /// A node that sends another more than that, if there is one.
    fn says_more_than_it_lives(&mut self) -> Result<Option<String>, Broken> {
        self.sent.clear();
        self.listening = self.trace;
        let until = self.now + STILL_FOR;
        self.run_until(until)?;
        self.listening = false;
        let most = self.sent.iter().max_by_key(|(_, count)| **count);
        let most = most.filter(|(_, count)| **count > STILL_MESSAGES_MAX);
        Ok(most.map(|((from, to), count)| {
            format!("node{from} still sends {count} messages to node{to}")
        }))
    }

    fn keeps(&self, node: usize) -> Option<Duration> {
        self.nodes[node].keeps().own
    }

    /// When that was, by clocks that are right.
    pub(super) fn wall_ms(&self, ago: Duration) -> u64 {
        self.nodes[0].now(self.now).wall_ms.saturating_sub(in_ms(ago))
    }

    /// What a node has delivered of a room.
    fn rows(&self, node: NodeId, room: RoomId) -> BTreeMap<Entry, Row> {
        let i = self.index(node).expect("it is one of them");
        let Some(running) = &self.nodes[i].running else { return BTreeMap::new() };
        let mut rows = BTreeMap::new();
        for number in self.promises.numbers_at(node, room) {
            let row = running.reader.by_number(room, number).ok().flatten();
            rows.extend(row.map(|row| ((row.log, row.at.seq), row)));
        }
        rows
    }

    /// *kept*, of all rooms that nodes may drop bodies of.
    pub(super) fn bodies_are_kept(&self, rooms: &[RoomId]) -> Result<(), Broken> {
        let times = (0..self.nodes.len()).filter_map(|node| self.keeps(node));
        let shortest = times.min().unwrap_or(self.now);
        let young_ms = self.wall_ms(shortest.min(self.calm_for()));
        for room in rooms.iter().filter(|it| self.is_prunable(**it)) {
            let nodes = self.nodes_with(*room);
            let Some(first) = nodes.first().map(|it| self.rows(*it, *room)) else { continue };
            for node in &nodes {
                let i = self.index(*node).expect("it is one of them");
                let rows = self.rows(*node, *room);
                let all = self.plan.calm && self.keeps(i).is_none();
                let since = self.follows_since(*node, *room);
                for row in rows.values() {
                    let is_young = row.facts.wall_ms > young_ms;
                    let was_young = row.facts.wall_ms + in_ms(shortest) > since;
                    if row.said.is_none() && (is_young || (all && was_young)) {
                        let what = format!("node{i} has dropped {row:?}, young: {is_young}");
                        return broken("kept", what);
                    }
                }
                let both = first.iter().filter_map(|(entry, a)| Some((a, rows.get(entry)?)));
                let mut both = both.filter(|(a, b)| a.said.is_some() && b.said.is_some());
                if let Some((a, b)) = both.find(|(a, b)| a.said != b.said) {
                    return broken("kept", format!("node0 has {a:?}, node{i} {b:?}"));
                }
            }
        }
        Ok(())
    }

    /// Since when a node has the room: whoever is given a key late is given what others still have.
    fn follows_since(&self, node: NodeId, room: RoomId) -> u64 {
        let owner = self.holders.sealed.get(&room);
        owner.and_then(|it| self.holders.follows.get(&(node, *it))).copied().unwrap_or_default()
    }

    /// Since the last fault.
    fn calm_for(&self) -> Duration {
        self.now.saturating_sub(self.plan.faults_end)
    }

    /// *dropped*.
    pub(super) fn old_bodies_are_dropped(&self, rooms: &[RoomId]) -> Result<(), Broken> {
        for room in rooms.iter().filter(|it| self.is_prunable(**it)) {
            for node in self.nodes_with(*room) {
                let i = self.index(node).expect("it is one of them");
                let Some(keep) = self.keeps(i) else { continue };
                let due_ms = self.wall_ms(keep + SLACK);
                let rows = self.rows(node, *room);
                let old = rows.values().find(|it| it.facts.wall_ms < due_ms && it.said.is_some());
                if let Some(row) = old {
                    return broken("dropped", format!("node{i} keeps {row:?} for too long"));
                }
            }
        }
        Ok(())
    }

    /// Whether a node has no more of an entry than that there was one: nobody asks for a number for it
    /// that is above the node's tip.
    pub(super) fn is_gone(&self, node: NodeId, room: RoomId, entry: Entry) -> bool {
        let running = self.index(node).and_then(|i| self.nodes[i].running.as_ref());
        let Some(running) = running.filter(|_| self.plan.retention) else { return false };
        // Whether any of its numbers counts here or not.
        let message = MessageId::new(room, entry.0, entry.1);
        let row = running.reader.by_message(room, message).ok().flatten();
        let said_here = match row {
            Some(row) => row.said.is_some(),
            // Without a number that counts here, if it came without its body: whoever dropped it had one.
            None => {
                let author = self.index(entry.0.author);
                !author.is_some_and(|author| self.is_dropped(author, room, entry))
            }
        };
        !said_here && self.is_prunable(room)
    }

    /// What a node that starts has delivered before it dropped the bodies: that is on no page.
    pub(super) fn deliveries_dropped(&self, node: usize, room: RoomId) -> Vec<(Number, Entry)> {
        let Some(running) = self.nodes[node].running.as_ref().filter(|_| self.plan.retention)
        else {
            return Vec::new();
        };
        let mut dropped = Vec::new();
        for number in self.promises.numbers_at(self.nodes[node].id, room) {
            let row = running.reader.by_number(room, number).ok().flatten();
            let Some(row) = row.filter(|it| it.said.is_none()) else { continue };
            let numbers = running.reader.numbers_of(room, row.at).unwrap_or_default();
            if numbers.contains(&(number, Fate::Delivered)) {
                dropped.push((number, (row.log, row.at.seq)));
            }
        }
        dropped
    }

    /// Whether a message's body was dropped at a node.
    pub(super) fn is_dropped(&self, node: usize, room: RoomId, entry: Entry) -> bool {
        let number = self.promises.number_at(self.nodes[node].id, room, entry);
        let Some((number, running)) = number.zip(self.nodes[node].running.as_ref()) else {
            return false;
        };
        let row = running.reader.by_number(room, number).ok().flatten();
        row.is_some_and(|row| row.said.is_none())
    }

    /// Directories are never pruned.
    fn is_prunable(&self, room: RoomId) -> bool {
        room != RoomId::directory(self.secret.mesh_id())
            && !self.holders.directories.contains(&room)
    }
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
