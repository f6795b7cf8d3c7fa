//! A message on its way, encoded, decoded and verified once, and the nodes that have it.

use std::{cell::RefCell, rc::Rc};

use mesh::{
    name::id::{MeshId, RoomId},
    wire::{kinds::CHAT, message::Message, run::Verified},
};

/// The subject for which gossip is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A chat message.
    Chat,
    /// Something else in the lobby, while there is talk: a number.
    Number,
    Other,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) message: Message<Verified>,
    pub(super) bytes: u64,
    /// Its name in the table of messages.
    pub(super) kind: &'static str,
    pub(super) about: About,
    pub(super) topic: usize,
    seen: RefCell<Seen>,
}

#[derive(Debug, Default)]
struct Seen(Vec<u64>);

impl Spoken {
    /// A node's message, as others get it.
    pub(super) fn new(message: &Message, mesh: MeshId, topic: usize) -> Rc<Spoken> {
        let bytes = message.encode();
        let decoded = Message::decode(&bytes).expect("what nodes send can be read");
        let verified = decoded.verify(mesh).expect("what nodes send is sealed");
        let spoken = Spoken::verified(verified, bytes.len(), mesh);
        Rc::new(Spoken { topic, ..spoken })
    }

    /// The same of a message that was verified before.
    pub(super) fn verified(message: Message<Verified>, bytes: usize, mesh: MeshId) -> Spoken {
        let kind = message.traits().name;
        let about = about(&message, RoomId::lobby(mesh));
        let seen = RefCell::default();
        Spoken { message, bytes: bytes as u64, kind, about, topic: 0, seen }
    }

    pub(super) fn is_beacon(&self) -> bool {
        matches!(self.message, Message::Beacon(_))
    }

    pub(super) fn was_seen_by(&self, node: usize) -> bool {
        self.seen.borrow().0.get(node / 64).is_some_and(|bits| bits >> (node % 64) & 1 == 1)
    }

    /// `node` has it. Whether that is new.
    pub(super) fn is_new_to(&self, node: usize) -> bool {
        let Seen(seen) = &mut *self.seen.borrow_mut();
        if seen.len() <= node / 64 {
            seen.resize(node / 64 + 1, 0);
        }
        let before = seen[node / 64];
        seen[node / 64] |= 1 << (node % 64);
        seen[node / 64] != before
    }
}

fn about(message: &Message<Verified>, lobby: RoomId) -> About {
    let Message::Runs(runs) = message else { return About::Other };
    let mut here = runs.iter().map(Verified::run).filter(|run| run.room == lobby).peekable();
    if here.peek().is_none() {
        return About::Other;
    }
    let chat = here.any(|run| run.entries.iter().any(|entry| entry.facts.kind == CHAT));
    if chat { About::Chat } else { About::Number }
}
