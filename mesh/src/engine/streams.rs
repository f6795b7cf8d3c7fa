//! Streams: pieces of answers that agents of this node write, on their way to nodes that wait for them, and those of other
//! nodes on their way to readers here. Nothing of it is stored, and a lost piece is lost (`docs/decisions/streams.md`).
//!
//! A node that waits says so to the peers that have the room, again and again; they forget it after a while. A piece is
//! sent only to such a peer, and only while it may have the room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::known::Known;
use crate::{
    api::{
        command::{Caller, NewPiece, Outcome, Refused},
        event::RoomEvent,
    },
    limits::{
        AWAITED_FOR, AWAITED_FRESH_FOR, AWAITED_ROOMS_MAX, AWAITED_TOLD_EVERY,
        PIECE_BYTES_PER_SECOND, PIECES_HEARD_FACTOR, PIECES_PER_SECOND,
        STREAMING_AGENTS_PER_NODE_MAX,
    },
    name::id::{AgentId, NodeId, RoomId},
    presence::rosters::Seating,
    wire::{
        message::Message,
        piece::{Piece, PieceSpot, SentPiece},
    },
};

const SECOND: Duration = Duration::from_secs(1);

/// A room in which somebody here waits for pieces.
#[derive(Clone, Debug)]
struct Awaited {
    since: Duration,
    until: Duration,
    /// When each peer was told so last.
    told: BTreeMap<NodeId, Duration>,
}

/// The pieces of one agent within a second.
#[derive(Clone, Debug, Default)]
struct Pace {
    since: Duration,
    pieces: u32,
    bytes: usize,
}

impl Pace {
    fn is_over(&self, now: Duration) -> bool {
        now >= self.since + SECOND
    }

    /// Whether one more piece of so many bytes is within the bounds, so many times over.
    fn takes(&mut self, now: Duration, bytes: usize, factor: u32) -> bool {
        if self.is_over(now) {
            *self = Pace { since: now, ..Pace::default() };
        }
        let all = self.bytes + bytes;
        let takes = self.pieces < PIECES_PER_SECOND * factor
            && all <= PIECE_BYTES_PER_SECOND * factor as usize;
        if takes {
            (self.pieces, self.bytes) = (self.pieces + 1, all);
        }
        takes
    }
}

/// All that is known of the pieces of one peer.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// The start of it, and its last piece.
    last: (u64, u64),
    /// By agent; at most [`STREAMING_AGENTS_PER_NODE_MAX`].
    paces: BTreeMap<AgentId, Pace>,
}

/// The streams of this node's agents that have run lately.
#[derive(Clone, Debug, Default)]
struct Own {
    paces: BTreeMap<AgentId, Pace>,
    /// By agent, its newest stream: another one, or the same in another room, is a new run.
    runs: BTreeMap<AgentId, (RoomId, String, u64)>,
    run: u64,
    piece: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    /// At most [`AWAITED_ROOMS_MAX`].
    awaited: BTreeMap<RoomId, Awaited>,
    /// Rooms that peers wait for, at most [`AWAITED_ROOMS_MAX`] of each, and until when.
    waiting: BTreeMap<NodeId, BTreeMap<RoomId, Duration>>,
    own: Own,
    heard: BTreeMap<NodeId, Heard>,
}

impl Streams {
    /// Somebody here waits for pieces in these rooms. Of too many the further ones are left out.
    pub(super) fn await_pieces(&mut self, known: &mut Known, rooms: Vec<RoomId>) -> Outcome {
        let now = known.cx.now.mono;
        for room in rooms {
            let full = self.awaited.len() >= AWAITED_ROOMS_MAX;
            if full && !self.awaited.contains_key(&room) {
                continue;
            }
            let new = Awaited { since: now, until: now, told: BTreeMap::new() };
            let awaited = self.awaited.entry(room).or_insert(new);
            awaited.until = now + AWAITED_FOR;
        }
        self.go_on(known);
        Outcome::Done
    }

    /// Tells peers that have the rooms, as far as they were not told lately.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let now = known.cx.now.mono;
        self.awaited.retain(|_, awaited| awaited.until > now);
        let mut tell: BTreeMap<NodeId, Vec<RoomId>> = BTreeMap::new();
        for (room, awaited) in &mut self.awaited {
            let is_fresh = now < awaited.since + AWAITED_FRESH_FOR;
            let is_due = |at: &Duration| now >= *at + AWAITED_TOLD_EVERY;
            if !is_fresh && !awaited.told.is_empty() && !awaited.told.values().any(is_due) {
                continue;
            }
            for peer in peers(known, *room) {
                if awaited.told.get(&peer).is_none_or(is_due) {
                    awaited.told.insert(peer, now);
                    tell.entry(peer).or_default().push(*room);
                }
            }
            awaited.told.retain(|_, at| now < *at + AWAITED_TOLD_EVERY);
        }
        for (peer, rooms) in tell {
            known.cx.send(peer, Message::Awaits(rooms));
        }
    }

    /// A peer waits for pieces in these rooms. Whether it may have them is looked at with each piece.
    pub(super) fn on_awaits(&mut self, known: &Known, from: NodeId, rooms: Vec<RoomId>) {
        let now = known.cx.now.mono;
        let waiting = self.waiting.entry(from).or_default();
        waiting.retain(|_, until| *until > now);
        for room in rooms {
            if waiting.len() < AWAITED_ROOMS_MAX || waiting.contains_key(&room) {
                waiting.insert(room, now + AWAITED_FOR);
            }
        }
    }

    /// An agent of this node writes a piece.
    pub(super) fn write(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        new: NewPiece,
    ) -> Result<Outcome, Refused> {
        new.check()?;
        let room = new.room;
        let name = known.may_act(caller, room)?.name;
        if known.told.get(&room).is_some_and(|view| view.encrypted) {
            return Err(Refused::Plaintext);
        }
        let now = known.cx.now.mono;
        self.own.paces.retain(|agent, pace| *agent == caller.agent || !pace.is_over(now));
        let pace = self.own.paces.entry(caller.agent.clone()).or_default();
        if !pace.takes(now, new.bytes(), 1) {
            return Err(Refused::Full(format!(
                "an agent streams at most {PIECES_PER_SECOND} pieces and {PIECE_BYTES_PER_SECOND} \
                 bytes a second; wait a little"
            )));
        }
        let piece = new.of(caller.agent.clone());
        self.send(known, room, &piece);
        known.cx.notify(room, RoomEvent::Piece { name, piece: Arc::new(piece) });
        Ok(Outcome::Done)
    }

    /// Sends a piece to the peers that wait for it and may have it.
    fn send(&mut self, known: &mut Known, room: RoomId, piece: &Piece) {
        let now = known.cx.now.mono;
        let waits = |peer: &NodeId| {
            let until = self.waiting.get(peer).and_then(|rooms| rooms.get(&room));
            until.is_some_and(|until| *until > now)
        };
        let peers: Vec<NodeId> = peers(known, room).into_iter().filter(waits).collect();
        let Some(state) = known.rooms.get(&room).filter(|_| !peers.is_empty()) else { return };
        let run = self.own.run_of(room, piece, &known.registrations);
        self.own.piece += 1;
        let (node, boot) = (known.cx.me, known.cx.boot);
        let spot = PieceSpot { room, node, boot, run, piece: self.own.piece };
        let sent = SentPiece::new(spot, state.replica.record.seal.as_ref(), piece);
        for peer in peers {
            known.cx.send(peer, Message::Piece(sent.clone()));
        }
    }

    /// A piece of another node's agent. One that nobody waits for, or that the node may not send, is not shown.
    pub(super) fn on_piece(&mut self, known: &mut Known, from: NodeId, sent: &SentPiece) {
        let (now, room) = (known.cx.now.mono, sent.room);
        let is_awaited = self.awaited.get(&room).is_some_and(|awaited| awaited.until > now);
        if !is_awaited || !peers(known, room).contains(&from) {
            return;
        }
        let heard = self.heard.entry(from).or_default();
        // In order, and none twice.
        if (sent.boot, sent.piece) <= heard.last {
            return;
        }
        heard.last = (sent.boot, sent.piece);
        let Some(state) = known.rooms.get(&room) else { return };
        let Some(piece) = sent.open(from, state.replica.record.seal.as_ref()) else {
            known.cx.faults.stray += 1;
            return;
        };
        let Some(name) = seated(known, from, room, &piece.agent) else {
            known.cx.faults.stray += 1;
            return;
        };
        if heard.takes(now, &piece) {
            known.cx.notify(room, RoomEvent::Piece { name, piece: Arc::new(piece) });
        }
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.waiting.remove(&peer);
        self.heard.remove(&peer);
        for awaited in self.awaited.values_mut() {
            awaited.told.remove(&peer);
        }
    }
}

impl Own {
    /// The run of a piece: of an agent's streams the newest is remembered, and agents that are gone have none.
    fn run_of<R>(&mut self, room: RoomId, piece: &Piece, attached: &BTreeMap<AgentId, R>) -> u64 {
        let last = self.runs.get(&piece.agent);
        let same = last.filter(|(at, stream, _)| *at == room && *stream == piece.stream);
        if let Some((_, _, run)) = same {
            return *run;
        }
        self.run += 1;
        // Now and then: it looks at all.
        if self.run.is_multiple_of(64) {
            self.runs.retain(|agent, _| attached.contains_key(agent));
        }
        self.runs.insert(piece.agent.clone(), (room, piece.stream.clone(), self.run));
        self.run
    }
}

impl Heard {
    fn takes(&mut self, now: Duration, piece: &Piece) -> bool {
        if !self.paces.contains_key(&piece.agent) {
            self.paces.retain(|_, pace| !pace.is_over(now));
            if self.paces.len() >= STREAMING_AGENTS_PER_NODE_MAX {
                return false;
            }
        }
        let pace = self.paces.entry(piece.agent.clone()).or_default();
        pace.takes(now, piece.bytes(), PIECES_HEARD_FACTOR)
    }
}

/// Connected peers that may have the room.
fn peers(known: &Known, room: RoomId) -> BTreeSet<NodeId> {
    let state = known.rooms.get(&room).filter(|state| !state.replica.record.local);
    state.map(|state| state.replica.peers(&known.cx)).unwrap_or_default()
}

/// The name of an agent, if the roster of this node says that it is there, and in the room, as it may be.
fn seated(known: &Known, node: NodeId, room: RoomId, agent: &AgentId) -> Option<Arc<str>> {
    let (at, record) = known.rosters.record(agent)?;
    let seat = Seating { agent, node, key: record.key };
    let is_seated =
        at == node && record.rooms.contains_key(&room) && known.rosters.may_sit(room, &seat);
    is_seated.then(|| record.name.clone())
}
