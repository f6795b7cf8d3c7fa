//! Clients that only hold a cursor, as the bridge would serve them. Some wander between nodes: they must not miss a
//! message, and may see one twice. Some stay at their node, and come back as soon as it has started again: they get each
//! message once, even if others fail.

mod client;
pub(super) mod end;

use std::collections::BTreeSet;

use mesh::{
    Input,
    api::{
        command::{CallId, Command, Outcome, Roamed},
        event::RoomEvent,
    },
    name::id::RoomId,
};
use store::{Cursor, Reader, Row};

use self::client::{Kind, Message, Roamer, arrival};
use super::{
    cluster::Cluster,
    parts::{Part, Reply},
    promises::{Broken, broken},
};

/// Rows that a client takes at once.
const PAGE: usize = 20;
/// How often a page is read again that waits for something to come, as the bridge does it.
const LATER_TRIES_MAX: u8 = 50;

/// The clients of a world.
const KINDS: [Kind; 5] = [
    Kind { stays: false, live: false, stable: true },
    Kind { stays: false, live: true, stable: false },
    Kind { stays: false, live: true, stable: true },
    Kind { stays: true, live: false, stable: true },
    Kind { stays: true, live: true, stable: true },
];

/// Rows that are given to a client at once.
struct Page {
    rows: Vec<Row>,
    /// Live events may follow.
    settled: bool,
    /// There is more to be read.
    more: bool,
}

/// How often clients changed nodes, and how much they were given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) moves: u64,
    pub(super) taken: u64,
    pub(super) repeats: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Roamers {
    roamers: Vec<Roamer>,
    calls: BTreeSet<CallId>,
}

impl Roamers {
    /// One client of each kind; only one that wanders where a scenario says what happens.
    pub(super) fn new(cluster: &Cluster) -> Roamers {
        let (nodes, lobby) = (cluster.plan.nodes, cluster.lobby());
        let kinds = if cluster.plan.scripted.is_some() { &KINDS[..1] } else { &KINDS };
        let roamers = kinds.iter().enumerate();
        let roamers = roamers.map(|(i, kind)| Roamer::new(i % nodes, lobby, *kind)).collect();
        Roamers { roamers, calls: BTreeSet::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.roamers.len()
    }

    pub(super) fn counts(&self) -> Counts {
        self.roamers.iter().fold(Counts::default(), |sum, roamer| Counts {
            moves: sum.moves + roamer.moves,
            taken: sum.taken + roamer.taken,
            repeats: sum.repeats + roamer.repeats,
        })
    }

    /// A node writes what it knows of its clients, before it stops.
    pub(super) fn keep(&mut self, node: usize) {
        self.roamers.iter_mut().for_each(|roamer| roamer.keep(node));
    }

    /// The client of a scenario goes to a node, or connects there again.
    pub(super) fn send(&mut self, node: usize) {
        self.roamers[0].go(node);
    }

    /// The node of the client of a scenario, if it was told to go anywhere.
    pub(super) fn sent_to(&self) -> Option<usize> {
        (self.roamers[0].moves > 0).then_some(self.roamers[0].node)
    }

    /// Whether the client of a scenario waits for numbers that it asked for.
    pub(super) fn waits(&self) -> bool {
        self.roamers[0].waits_for.is_some()
    }

    /// Some clients read on, or go to another node.
    pub(super) fn act(&mut self, cluster: &mut Cluster) -> Result<(), Broken> {
        for _ in 0..2 {
            let i = cluster.dice.index(self.roamers.len());
            let goes = cluster.dice.chance(25);
            let node = cluster.dice.index(cluster.nodes.len());
            if goes {
                self.roamers[i].wander(node);
            }
            self.read(cluster, i)?;
        }
        Ok(())
    }

    pub(super) fn disk_replaced(&mut self, node: usize) {
        self.roamers.iter_mut().for_each(|roamer| roamer.disk_replaced(node));
    }

    /// A node has started: clients that stay there come back at once, and another one may come as soon.
    pub(super) fn node_up(&mut self, cluster: &mut Cluster, node: usize) -> Result<(), Broken> {
        if cluster.plan.scripted.is_some() {
            return Ok(());
        }
        let comes = cluster.dice.index(2 * self.roamers.len());
        if comes < self.roamers.len() {
            self.roamers[comes].wander(node);
        }
        for i in 0..self.roamers.len() {
            if self.roamers[i].node == node {
                self.read(cluster, i)?;
            }
        }
        Ok(())
    }

    /// One page, as `get_history` would serve it. A disk that was to fail may do so here first.
    pub(super) fn read(&mut self, cluster: &mut Cluster, i: usize) -> Result<Vec<Row>, Broken> {
        let node = self.roamers[i].node;
        self.page(cluster, i).or_else(|broken| {
            let failed = broken.is_of_store() && cluster.nodes[node].is_doomed();
            if failed { Ok(Vec::new()) } else { Err(broken) }
        })
    }

    fn page(&mut self, cluster: &mut Cluster, i: usize) -> Result<Vec<Row>, Broken> {
        let Roamer { node, room, cursor, waits_for, .. } = self.roamers[i];
        let Some(running) = &cluster.nodes[node].running else { return Ok(Vec::new()) };
        if waits_for.is_some() {
            return Ok(Vec::new());
        }
        let reader = running.reader.clone();
        let at_once = reader.page_at_once(room, cursor, PAGE)?;
        let serves = reader.serves_roamer(room, cursor)?;
        if at_once.is_some() && serves != Cursor::Here {
            return broken("roaming", format!("{cursor:?} is served at once, and is not of here"));
        }
        let Some(page) = self.page_for(cluster, i, serves, &reader)? else {
            return Ok(Vec::new());
        };
        cluster.say(|| {
            let rows = page.rows.iter().map(|row| (row.number, row.log, row.at.seq));
            let rows: Vec<_> = rows.collect();
            format!("roamer {i} at node{node} with {cursor:?} {serves:?} reads {rows:?}")
        });
        self.roamers[i].take_page(&page.rows, page.settled, cluster.now())?;
        let full = page.rows.len() >= PAGE || page.more;
        self.roamers[i].caught_up = !full && page.settled;
        Ok(page.rows)
    }

    /// The rows for a client's cursor. `None`: it asked its node for numbers, or reads again later.
    fn page_for(
        &mut self,
        cluster: &mut Cluster,
        i: usize,
        serves: Cursor,
        reader: &Reader,
    ) -> Result<Option<Page>, Broken> {
        let Roamer { room, cursor, .. } = self.roamers[i];
        let rows = match (self.roamers[i].served().came_with(cursor), serves) {
            (Some(came), _) => {
                self.roamers[i].came = came;
                reader.page_of_arrival(room, cursor, came, PAGE)
            }
            (None, Cursor::Here) => reader.page_since(room, cursor, PAGE),
            (None, Cursor::Foreign) => return self.page_for_foreign(cluster, i, reader),
        };
        Ok(Some(Page { rows: rows?, settled: true, more: false }))
    }

    fn page_for_foreign(
        &mut self,
        cluster: &mut Cluster,
        i: usize,
        reader: &Reader,
    ) -> Result<Option<Page>, Broken> {
        let Roamer { node, room, cursor, claimed, .. } = self.roamers[i];
        let tip = reader.tip(room)?;
        let roam = reader.roam(room, cursor, PAGE)?;
        let roamer = &mut self.roamers[i];
        let mut delivered = roam.unproven.iter().filter_map(|(_, number)| *number);
        let again = claimed && delivered.any(|number| number > roamer.asked);
        if roam.needs_claim && (!claimed || again) {
            let call = cluster.call();
            roamer.asks(call, tip);
            self.calls.insert(call);
            cluster.say(|| {
                format!("roamer {i} at node{node} asks with {cursor:?} for {:?}", roam.unproven)
            });
            let command = Command::Roam { room, cursor, entries: roam.unproven };
            cluster.give(node, Input::Command { call, command });
            return Ok(None);
        }
        roamer.claimed = false;
        // Entries that are still to come under a number of their own must not be overtaken by live
        // events: they are read again later.
        if roam.later.is_some() && !roam.more && roamer.waited < LATER_TRIES_MAX {
            roamer.waited += 1;
            return Ok(None);
        }
        roamer.waited = 0;
        let settled = !roam.needs_claim && (roam.more || roam.later.is_none());
        Ok(Some(Page { rows: roam.rows, settled, more: roam.more }))
    }

    /// A live event of the node that a client is at.
    fn hear(&mut self, cluster: &Cluster, i: usize, message: Message) -> Result<(), Broken> {
        let Message { node, number, entry, .. } = message;
        if self.roamers[i].hears(message) {
            self.roamers[i].take_live(number, entry, cluster.now())?;
            cluster.say(|| format!("roamer {i} at node{node} hears {number:?} {entry:?}"));
        }
        Ok(())
    }

    /// A node tells members something; clients that are there hear it.
    pub(super) fn told(
        &mut self,
        cluster: &Cluster,
        node: usize,
        room: RoomId,
        event: &RoomEvent,
    ) -> Result<(), Broken> {
        if let RoomEvent::Message(delivered) = event {
            let (number, entry) = (delivered.number, (delivered.log, delivered.at.seq));
            cluster.say(|| format!("node{node} delivers {number:?} {entry:?} in {room}"));
            let message = Message { node, room, number, entry };
            for i in 0..self.roamers.len() {
                if delivered.canonical.is_some() && self.roamers[i].has_arrived() {
                    self.judge(cluster, i, message)?;
                } else {
                    self.hear(cluster, i, message)?;
                }
            }
        }
        if let RoomEvent::PassedOver { number, log, at } = event {
            let entry = (*log, at.seq);
            cluster.say(|| format!("node{node} passes over {number:?} {entry:?} in {room}"));
            let message = Message { node, room, number: *number, entry };
            for i in 0..self.roamers.len() {
                if self.roamers[i].has_arrived() {
                    self.judge(cluster, i, message)?;
                }
            }
        }
        Ok(())
    }

    /// A message is delivered late, or passed over, at a client's node. The cursor that it brought says whether it is
    /// given that: it reads on up to there, as the bridge has it do.
    fn judge(&mut self, cluster: &Cluster, i: usize, message: Message) -> Result<(), Broken> {
        let Message { node, room, number, .. } = message;
        let roamer = &self.roamers[i];
        if (roamer.node, roamer.room) != (node, room) {
            return Ok(());
        }
        let Some(running) = &cluster.nodes[node].running else { return Ok(()) };
        let (after, came) = (roamer.cursor, arrival(roamer.came));
        // A disk that fails here is found out by the next read.
        let rows = running.reader.page_of_arrival(room, after, came, usize::MAX);
        for row in rows.unwrap_or_default().iter().take_while(|row| row.number <= number) {
            let entry = (row.log, row.at.seq);
            self.hear(cluster, i, Message { node, room, number: row.number, entry })?;
        }
        Ok(())
    }
}

impl Part for Roamers {
    fn replied(&mut self, cluster: &mut Cluster, reply: &Reply) -> Result<bool, Broken> {
        let Reply { call, result, .. } = reply;
        if !self.calls.remove(call) {
            return Ok(false);
        }
        cluster.say(|| format!("roamer's call {call:?} is answered {result:?}"));
        let ready = matches!(result, Ok(Outcome::Roamed(Roamed::Ready | Roamed::Never)));
        // One that has gone elsewhere does not wait for its answer.
        for roamer in self.roamers.iter_mut().filter(|roamer| roamer.waits_for == Some(*call)) {
            roamer.waits_for = None;
            roamer.claimed = ready;
        }
        Ok(true)
    }

    fn node_down(&mut self, cluster: &Cluster, node: usize) {
        let now = cluster.now();
        self.roamers.iter_mut().for_each(|roamer| roamer.node_down(node, now));
    }
}
