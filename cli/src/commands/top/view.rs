//! The state of the screen: what the node has said, and the pane, row and order that a person has chosen. It reads no clock and asks
//! nobody.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use protocol::object::Message;
use protocol::operator::{Attendee, Peer, Room, Status, StoppedAgents};

use crate::commands::mesh::link;
use crate::format;
use crate::limits::{TOP_LINES_MAX, TOP_SAMPLES_MAX, TOP_TEXT_CHARS_MAX};
use crate::quoted::shown;

/// A part of the mesh, alone on the screen; or all but the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    All,
    Nodes,
    Rooms,
    Agents,
    Messages,
}

impl Pane {
    const ROUND: [Pane; 5] = [Pane::All, Pane::Nodes, Pane::Rooms, Pane::Agents, Pane::Messages];

    /// The pane whose rows the arrows go through.
    fn of_rows(self) -> Pane {
        if self == Pane::All { Pane::Rooms } else { self }
    }

    /// The orders of its rows, the first one first.
    pub(super) fn orders(self) -> &'static [Order] {
        match self.of_rows() {
            Pane::Nodes => &[Order::Name, Order::RoundTrip, Order::Agents, Order::Queued],
            Pane::Rooms => &[Order::Rate, Order::Name, Order::Tip, Order::Backlog],
            Pane::Agents => &[Order::Name, Order::Rate, Order::Doing],
            Pane::All | Pane::Messages => &[],
        }
    }

    fn at(self) -> usize {
        Pane::ROUND.iter().position(|pane| *pane == self.of_rows()).unwrap_or_default()
    }
}

/// An order of rows: names from A on, numbers from the highest down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Name,
    Rate,
    Tip,
    Backlog,
    RoundTrip,
    Agents,
    Queued,
    Doing,
}

impl Order {
    pub(super) fn word(self) -> &'static str {
        match self {
            Order::Name => "name",
            Order::Rate => "rate",
            Order::Tip => "tip",
            Order::Backlog => "backlog",
            Order::RoundTrip => "round trip",
            Order::Agents => "agents",
            Order::Queued => "queued",
            Order::Doing => "doing",
        }
    }
}

/// A key, as it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    End,
    Back,
    Help,
    To(Pane),
    Along(isize),
    Rows(isize),
    Pages(isize),
    Open,
    Sort,
    Reverse,
}

/// What follows from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    /// The messages of a room are wanted.
    Read,
    End,
}

/// The last values of something, one a look.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(pub(super) VecDeque<f64>);

impl Samples {
    fn push(&mut self, value: f64) {
        self.0.push_back(value);
        if self.0.len() > TOP_SAMPLES_MAX {
            self.0.pop_front();
        }
    }
}

/// A message, as it is shown: cleaned and cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) time: String,
    pub(super) who: String,
    pub(super) text: Vec<String>,
}

/// A room whose messages are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Opened {
    pub(super) room: String,
    pub(super) lines: Vec<Line>,
    pub(super) trouble: Option<String>,
    /// `None`: it was not read yet.
    pub(super) is_read: bool,
    /// So many lines on the screen above the newest one.
    pub(super) up: usize,
}

impl Opened {
    /// A message for the screen.
    pub(super) fn line(message: &Message) -> Line {
        let (kind, content) = format::said(message);
        let text: String = content.chars().take(TOP_TEXT_CHARS_MAX).collect();
        let mut rows = text.split('\n').map(|row| clean(row.strip_prefix("  ").unwrap_or(row)));
        let mut text: Vec<String> = rows.by_ref().take(TOP_LINES_MAX).collect();
        let more = rows.count();
        if more > 0 {
            text.push(format!("… {more} more lines"));
        } else if content.chars().nth(TOP_TEXT_CHARS_MAX).is_some() {
            text.push("…".to_owned());
        }
        let who = clean(&message.agent_name) + &kind;
        Line { time: clean(format::clock(&message.timestamp)), who, text }
    }
}

/// Text of others in a cell: nothing in it steers the terminal, turns the direction of writing or moves what is beside it.
pub(super) fn clean(text: &str) -> String {
    shown(text).replace('\t', " ")
}

/// The state on the screen.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) status: Option<Arc<Status>>,
    pub(super) agents: Vec<Attendee>,
    pub(super) stops: Vec<StoppedAgents>,
    /// Messages a second, by room: of those in which something was said lately.
    rates: BTreeMap<String, Samples>,
    /// Round trips in milliseconds, by node: of those that are there.
    round_trips: BTreeMap<String, Samples>,
    tips: BTreeMap<String, u64>,
    at: Option<Instant>,
    pub(super) trouble: Option<String>,
    pub(super) pane: Pane,
    /// Of each pane: the id of the row that is chosen, the order, whether it is turned.
    chosen: [Option<String>; 5],
    orders: [usize; 5],
    turned: [bool; 5],
    pub(super) helps: bool,
    pub(super) opened: Option<Opened>,
    /// Rows of the pane on the screen, as it was drawn.
    pub(super) height: usize,
}

impl View {
    pub(super) fn update(&mut self, status: Box<Status>, now: Instant) {
        let since = self.at.replace(now).map(|at| now.duration_since(at).as_secs_f64());
        let tips: BTreeMap<String, u64> =
            status.rooms.iter().map(|room| (room.room_id.clone(), room.tip)).collect();
        if let Some(since) = since.filter(|since| *since > 0.0) {
            for (room, tip) in &tips {
                let before = self.tips.get(room).copied().unwrap_or(*tip);
                // Numbers of another era say nothing about how many there were.
                let count = tip.saturating_sub(before);
                let count = if count >> 16 == 0 { count as f64 } else { 1.0 };
                if count > 0.0 || self.rates.contains_key(room) {
                    self.rates.entry(room.clone()).or_default().push(count / since);
                }
            }
            self.rates.retain(|room, rates| {
                tips.contains_key(room) && rates.0.iter().any(|rate| *rate > 0.0)
            });
        }
        let mut before = std::mem::take(&mut self.round_trips);
        for peer in status.peers.iter().filter(|peer| peer.connected) {
            let (Some(node), Some(ms)) = (&peer.node_id, peer.rtt_ms) else { continue };
            let mut samples = before.remove(node).unwrap_or_default();
            samples.push(ms);
            self.round_trips.insert(node.clone(), samples);
        }
        (self.tips, self.trouble, self.status) = (tips, None, Some(status.into()));
    }

    // What it shows.

    pub(super) fn rate(&self, room: &Room) -> f64 {
        self.rates(room).and_then(|rates| rates.0.back()).copied().unwrap_or_default()
    }

    pub(super) fn rates(&self, room: &Room) -> Option<&Samples> {
        self.rates.get(&room.room_id)
    }

    pub(super) fn rate_of_all(&self) -> f64 {
        self.rates.values().filter_map(|rates| rates.0.back()).sum()
    }

    pub(super) fn round_trips(&self, peer: &Peer) -> Option<&Samples> {
        self.round_trips.get(peer.node_id.as_ref()?)
    }

    /// The person that has stopped an agent.
    pub(super) fn stopper(&self, agent: &str) -> Option<&str> {
        let said = |stop: &&StoppedAgents| stop.agent_id.as_deref().is_none_or(|of| of == agent);
        self.stops.iter().find(said).map(|stop| stop.by.as_str())
    }

    pub(super) fn order(&self, pane: Pane) -> Option<(Order, bool)> {
        let order = pane.orders().get(self.orders[pane.at()])?;
        Some((*order, self.turned[pane.at()]))
    }

    pub(super) fn nodes(&self) -> Vec<&Peer> {
        let order = |one: &&Peer, other: &&Peer, by: Order| match by {
            Order::RoundTrip => {
                other.rtt_ms.unwrap_or_default().total_cmp(&one.rtt_ms.unwrap_or_default())
            }
            Order::Agents => other.agents.cmp(&one.agents),
            Order::Queued => other.queued_bytes.cmp(&one.queued_bytes),
            Order::Name | Order::Rate | Order::Tip | Order::Backlog | Order::Doing => {
                Ordering::Equal
            }
        };
        let peers = self.status.iter().flat_map(|status| &status.peers).collect();
        self.sorted(Pane::Nodes, peers, order, |peer| (node_title(peer), link(peer)))
    }

    pub(super) fn rooms(&self) -> Vec<&Room> {
        let order = |one: &&Room, other: &&Room, by: Order| match by {
            Order::Rate => self.rate(other).total_cmp(&self.rate(one)),
            Order::Tip => other.tip.cmp(&one.tip),
            Order::Backlog => backlog(other).cmp(&backlog(one)),
            Order::Name | Order::RoundTrip | Order::Agents | Order::Queued | Order::Doing => {
                Ordering::Equal
            }
        };
        let rooms = self.status.iter().flat_map(|status| &status.rooms).collect();
        self.sorted(Pane::Rooms, rooms, order, |room| (room.name.clone(), room.room_id.clone()))
    }

    pub(super) fn attendees(&self) -> Vec<&Attendee> {
        let order = |one: &&Attendee, other: &&Attendee, by: Order| match by {
            Order::Rate => other.per_minute.cmp(&one.per_minute),
            Order::Doing => format::doing(&one.agent).cmp(&format::doing(&other.agent)),
            Order::Name
            | Order::Tip
            | Order::Backlog
            | Order::RoundTrip
            | Order::Agents
            | Order::Queued => Ordering::Equal,
        };
        let name = |one: &Attendee| (one.agent.name.clone(), one.agent.agent_id.clone());
        self.sorted(Pane::Agents, self.agents.iter().collect(), order, name)
    }

    /// In the order of a pane; rows that are equal in it by their names, from A on.
    fn sorted<'r, T>(
        &self,
        pane: Pane,
        mut rows: Vec<&'r T>,
        order: impl Fn(&&T, &&T, Order) -> Ordering,
        name: impl Fn(&T) -> (String, String),
    ) -> Vec<&'r T> {
        rows.sort_by_cached_key(|row| name(row));
        if let Some((by, turned)) = self.order(pane) {
            rows.sort_by(|one, other| order(one, other, by));
            if turned {
                rows.reverse();
            }
        }
        rows
    }

    fn ids(&self, pane: Pane) -> Vec<String> {
        match pane.of_rows() {
            Pane::Nodes => self.nodes().into_iter().map(node_id).collect(),
            Pane::Rooms => self.rooms().into_iter().map(|room| room.room_id.clone()).collect(),
            Pane::Agents => {
                self.attendees().into_iter().map(|one| one.agent.agent_id.clone()).collect()
            }
            Pane::All | Pane::Messages => Vec::new(),
        }
    }

    /// The place of the row that is chosen, among ids in the order of the pane.
    pub(super) fn row<'i>(
        &self,
        pane: Pane,
        mut ids: impl Iterator<Item = &'i str>,
    ) -> Option<usize> {
        let chosen = self.chosen[pane.at()].as_deref()?;
        ids.position(|id| id == chosen)
    }

    /// The room whose messages are to be read.
    pub(super) fn reads(&self) -> Option<&str> {
        let opened = self.opened.as_ref().filter(|_| self.pane == Pane::Messages)?;
        Some(&opened.room)
    }

    /// Messages have come, or have not.
    pub(super) fn told(&mut self, room: &str, read: Result<Vec<Line>, String>) {
        let Some(opened) = self.opened.as_mut().filter(|opened| opened.room == room) else {
            return;
        };
        opened.is_read = true;
        match read {
            Ok(lines) => (opened.lines, opened.trouble) = (lines, None),
            Err(trouble) => opened.trouble = Some(trouble),
        }
    }

    // What a person does.

    pub(super) fn press(&mut self, key: Key) -> Next {
        let helped = std::mem::take(&mut self.helps);
        match key {
            Key::End => return Next::End,
            Key::Help => self.helps = !helped,
            Key::Back if helped => {}
            Key::Back => match self.pane {
                Pane::All => return Next::End,
                Pane::Messages => self.pane = Pane::Rooms,
                Pane::Nodes | Pane::Rooms | Pane::Agents => self.pane = Pane::All,
            },
            Key::To(pane) => return self.to(pane),
            Key::Along(by) => {
                let round = Pane::ROUND;
                let at = round.iter().position(|pane| *pane == self.pane).unwrap_or_default();
                let at = at.checked_add_signed(by).unwrap_or(round.len() - 1) % round.len();
                return self.to(round[at]);
            }
            Key::Rows(by) => self.go(by),
            Key::Pages(by) => {
                let rows = isize::try_from(self.height.max(1)).unwrap_or(isize::MAX);
                self.go(by.saturating_mul(rows));
            }
            Key::Open => {
                if self.pane.of_rows() == Pane::Rooms {
                    return self.to(Pane::Messages);
                }
            }
            Key::Sort => {
                let (count, at) = (self.pane.orders().len(), self.pane.at());
                self.orders[at] = (self.orders[at] + 1) % count.max(1);
                self.turned[at] = false;
            }
            Key::Reverse => {
                let at = self.pane.at();
                self.turned[at] = !self.turned[at];
            }
        }
        Next::Stay
    }

    fn to(&mut self, pane: Pane) -> Next {
        self.pane = pane;
        if pane != Pane::Messages {
            return Next::Stay;
        }
        let ids = self.ids(Pane::Rooms);
        let at = self.row(Pane::Rooms, ids.iter().map(String::as_str)).unwrap_or_default();
        let Some(room) = ids.into_iter().nth(at) else { return Next::Stay };
        if self.opened.as_ref().is_none_or(|opened| opened.room != room) {
            self.opened = Some(Opened { room, ..Opened::default() });
        }
        Next::Read
    }

    fn go(&mut self, by: isize) {
        if self.pane == Pane::Messages {
            if let Some(opened) = &mut self.opened {
                // Up is back in time. The drawing knows how far it goes.
                opened.up = opened.up.saturating_add_signed(by.saturating_neg());
            }
            return;
        }
        let ids = self.ids(self.pane);
        let row = self.row(self.pane, ids.iter().map(String::as_str));
        let to = match row {
            Some(row) => row.saturating_add_signed(by).min(ids.len().saturating_sub(1)),
            None if by > 1 => ids.len().saturating_sub(1),
            None => 0,
        };
        self.chosen[self.pane.at()] = ids.into_iter().nth(to);
    }
}

/// A node by its name, or where it is.
pub(super) fn node_title(peer: &Peer) -> String {
    peer.name.clone().unwrap_or_else(|| peer.addresses.join(" "))
}

/// Of one that nobody has heard of yet: where it is.
pub(super) fn node_id(peer: &Peer) -> String {
    peer.node_id.clone().unwrap_or_else(|| node_title(peer))
}

pub(super) fn backlog(room: &Room) -> u64 {
    room.behind.saturating_add(room.unsent).saturating_add(room.undelivered as u64)
}
