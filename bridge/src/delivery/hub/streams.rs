//! Pieces of answers that are being written: readers of them, and the rooms in which there are some.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mesh::{
    api::command::Command,
    limits::AWAITED_ROOMS_MAX,
    name::id::{AgentId, RoomId},
    wire::piece::{Piece, PieceKind},
};
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::Hub;
use crate::{
    limits::PIECES_WAITING_MAX,
    seam::{
        answer::RoomFacts,
        event::{Event, Told},
    },
};

/// Readers that wait without a seat, by room.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<RoomId, broadcast::Sender<Arc<Piece>>>>);

/// Hears the pieces of answers in one room as they come. A reader that is slow misses the oldest ones.
#[derive(Debug)]
pub struct Pieces {
    room: RoomId,
    heard: Option<broadcast::Receiver<Arc<Piece>>>,
    streams: Arc<Streams>,
}

impl Pieces {
    /// The next one. Pending for ever once the node has ended.
    pub async fn next(&mut self) -> Arc<Piece> {
        loop {
            match self.heard.as_mut() {
                Some(heard) => match heard.recv().await {
                    Ok(piece) => return piece,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => self.heard = None,
                },
                None => std::future::pending().await,
            }
        }
    }

    /// One that has come already.
    pub fn take(&mut self) -> Option<Arc<Piece>> {
        loop {
            match self.heard.as_mut()?.try_recv() {
                Ok(piece) => return Some(piece),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let mut by_room = self.streams.lock();
        self.heard = None;
        if by_room.get(&self.room).is_some_and(|readers| readers.receiver_count() == 0) {
            by_room.remove(&self.room);
        }
    }
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, HashMap<RoomId, broadcast::Sender<Arc<Piece>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Hears pieces of a room from now on. Dialects bound how many requests wait at once: some readers for each.
    pub(crate) fn hear_pieces(&self, room: RoomId) -> Pieces {
        let mut by_room = self.streams.lock();
        let new = || broadcast::Sender::new(PIECES_WAITING_MAX);
        let heard = by_room.entry(room).or_insert_with(new).subscribe();
        Pieces { room, heard: Some(heard), streams: self.streams.clone() }
    }

    /// An agent of the room writes an answer. Whose words are not taken, of that one no piece is shown.
    pub(super) fn piece(&self, room: RoomId, name: Arc<str>, piece: Arc<Piece>) {
        let state = self.read();
        let Some(known) = state.rooms.get(&room) else { return };
        if known.facts.withheld(&piece.agent).is_some() {
            return;
        }
        let listens = |link: &&Arc<super::Link>| link.hears_pieces() && !link.is(&piece.agent);
        let mut listeners = known.seats.values().filter(listens).peekable();
        if listeners.peek().is_some() {
            let told = Arc::new(Told::new(Event::Piece { room, name, piece: piece.clone() }));
            listeners.for_each(|link| link.tell(&told));
        }
        drop(state);
        if let Some(readers) = self.streams.lock().get(&room) {
            // An error: the last reader has just gone.
            drop(readers.send(piece));
        }
    }

    /// An agent of the room shows that it is at something: readers without a seat hear it beside its pieces.
    pub(super) fn activity(&self, room: RoomId, agent: &AgentId, word: &str) {
        let is_withheld = |facts: RoomFacts| facts.withheld(agent).is_some();
        if !self.streams.lock().contains_key(&room) || self.facts(room).is_none_or(is_withheld) {
            return;
        }
        let activity = Piece {
            agent: agent.clone(),
            stream: String::new(),
            reply_to: None,
            kind: PieceKind::Activity,
            content: Some(word.to_owned()),
            tool: None,
            input: None,
            result: None,
        };
        if let Some(readers) = self.streams.lock().get(&room) {
            // An error: the last reader has just gone.
            drop(readers.send(Arc::new(activity)));
        }
    }

    /// The command that tells the mesh where readers wait for pieces, if there are any. To be asked again and again.
    pub(crate) fn await_pieces(&self) -> Option<Command> {
        let waiting = self.streams.lock().keys().copied().collect::<BTreeSet<RoomId>>();
        let state = self.read();
        let links = state.links.values().filter(|link| link.hears_pieces());
        let rooms: BTreeSet<RoomId> =
            waiting.into_iter().chain(links.flat_map(|link| link.rooms())).collect();
        let rooms: Vec<RoomId> = rooms.into_iter().take(AWAITED_ROOMS_MAX).collect();
        (!rooms.is_empty()).then_some(Command::AwaitPieces { rooms })
    }
}

/// The name of a kind, the same in all dialects that have one.
#[must_use]
pub fn kind_of(piece: &Piece) -> &'static str {
    match piece.kind {
        PieceKind::Chunk => "chunk",
        PieceKind::ToolCall => "tool_call",
        PieceKind::ToolResult => "tool_result",
        PieceKind::Activity => "activity",
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use mesh::api::event::RoomEvent;

    use super::*;
    use crate::testing::{Fake, lobby};

    fn piece(text: &str) -> RoomEvent {
        let piece = Arc::new(Piece {
            agent: "a".into(),
            stream: "s".to_owned(),
            reply_to: None,
            kind: PieceKind::Chunk,
            content: Some(text.to_owned()),
            tool: None,
            input: None,
            result: None,
        });
        RoomEvent::Piece { name: "a".into(), piece }
    }

    #[tokio::test]
    async fn a_reader_hears_the_pieces_of_its_room_and_a_slow_one_misses_the_oldest() {
        let (_fake, hub) = Fake::new();
        assert!(hub.await_pieces().is_none(), "nobody waits");
        let mut pieces = hub.hear_pieces(lobby());
        assert!(pieces.next().now_or_never().is_none());
        hub.notify(lobby(), piece("one"));
        let heard = pieces.next().now_or_never().expect("it came");
        assert_eq!(heard.content.as_deref(), Some("one"));
        for nth in 0..=PIECES_WAITING_MAX {
            hub.notify(lobby(), piece(&nth.to_string()));
        }
        assert_eq!(pieces.take().and_then(|piece| piece.content.clone()).as_deref(), Some("1"));
        let Some(Command::AwaitPieces { rooms }) = hub.await_pieces() else { panic!("it waits") };
        assert_eq!(rooms, [lobby()]);
        drop(pieces);
        assert!(hub.await_pieces().is_none() && hub.streams.lock().is_empty());
    }
}
