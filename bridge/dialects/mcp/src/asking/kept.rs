//! What is remembered of agents between two requests, beside calls and rooms: answers that are waited for, and sends by name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mesh::name::id::{MessageId, RoomId};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::Name;
use crate::{
    limits::{NAMED_SENDS_FOR, NAMED_SENDS_MAX},
    outcome::No,
};

/// Answers that calls of agents wait for.
#[derive(Default)]
pub(crate) struct Awaited(BTreeMap<Name, Vec<MessageId>>);

impl Awaited {
    pub(super) fn begin(&mut self, id: &Name, request: MessageId) {
        self.0.entry(id.clone()).or_default().push(request);
    }

    pub(super) fn end(&mut self, id: &Name, request: MessageId) {
        let Some(awaited) = self.0.get_mut(id) else { return };
        if let Some(nth) = awaited.iter().position(|of| *of == request) {
            awaited.swap_remove(nth);
        }
        if awaited.is_empty() {
            self.0.remove(id);
        }
    }

    pub(super) fn of(&self, id: &Name) -> BTreeSet<MessageId> {
        self.0.get(id).into_iter().flatten().copied().collect()
    }
}

/// What agents have sent under names of their own: a name means one message to one session.
#[derive(Default)]
pub(crate) struct NamedSends {
    sends: BTreeMap<(Name, String), (RoomId, [u8; 32])>,
    /// The oldest first.
    order: VecDeque<(Instant, (Name, String))>,
}

impl NamedSends {
    /// Notes a send. Refused is a name that means another one.
    pub(super) fn note(&mut self, by: Name, name: &str, to: RoomId, text: &str) -> Result<(), No> {
        while self.order.len() >= NAMED_SENDS_MAX
            || self.order.front().is_some_and(|(at, _)| at.elapsed() >= NAMED_SENDS_FOR)
        {
            let Some((_, oldest)) = self.order.pop_front() else { break };
            self.sends.remove(&oldest);
        }
        let send = (to, Sha256::digest(text.as_bytes()).into());
        let key = (by, name.to_owned());
        match self.sends.get(&key) {
            Some(first) if *first == send => Ok(()),
            Some(_) => Err(No::error("idempotencyKey was used for another message")),
            None => {
                self.order.push_back((Instant::now(), key.clone()));
                self.sends.insert(key, send);
                Ok(())
            }
        }
    }
}
