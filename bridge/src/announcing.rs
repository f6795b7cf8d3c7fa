//! Announcing: an agent is asked what is to be said of a conversation that is over, and its answer is posted in a room, in its
//! name. The author of the request has to want it, and the operator of the node has to have named a room for the agent.
//!
//! The node that asks is the one at which the agent answered last. It asks as an agent of its own key, the teller, in a direct
//! room like any other: so an agent of any dialect is told, and can answer. An announcement that is due is a row of the node's own, written
//! before the answer that makes it due; so a node that was away goes on where it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use mesh::name::{
    agent::{DRAWN_BYTES, drawn},
    id::{AgentId, KeyPrint, MessageId, RoomId},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    backend::Kept,
    limits::{ANNOUNCED_KEPT_MAX, ANNOUNCEMENTS_MAX, ANNOUNCEMENTS_PER_AGENT_MAX},
    secret::Secret,
};

/// Rooms of agents, and the agent that asks them.
#[derive(Debug)]
pub struct Announcing {
    pub(crate) key: Secret,
    pub(crate) teller: AgentId,
    pub(crate) rooms: BTreeMap<AgentId, String>,
}

/// The teller's id is made from these, and the node's own key: so nobody else can have it.
const TELLER: [u8; DRAWN_BYTES] = *b"teller";

impl Announcing {
    /// `own`: the text of the node's own key, and `print` the one that it has here. `rooms`: for each agent the key of a room.
    #[must_use]
    pub fn new(own: Secret, print: KeyPrint, rooms: BTreeMap<AgentId, String>) -> Announcing {
        Announcing { teller: drawn(TELLER, print), key: own, rooms }
    }

    /// The agent that asks.
    #[must_use]
    pub fn teller(&self) -> &AgentId {
        &self.teller
    }

    pub(crate) fn has_room(&self, agent: &str) -> bool {
        self.rooms.contains_key(agent)
    }
}

/// A conversation whose outcome an agent is to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The message that began it.
    pub(crate) conversation: MessageId,
    /// Where.
    pub(crate) room: RoomId,
    /// The agent that was asked there, and that is asked what is to be said.
    pub(crate) agent: AgentId,
    pub(crate) key: KeyPrint,
}

/// Whether a conversation is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// From now on it is to be.
    New,
    /// It is known to be.
    Known,
    /// It was, or there are too many.
    No,
}

#[derive(Debug)]
struct State {
    due: Due,
    since_ms: u64,
    is_done: bool,
}

/// All conversations that are to be announced, and those that were.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    all: Mutex<BTreeMap<MessageId, State>>,
    /// Those that nobody sees to yet.
    new: Mutex<BTreeSet<MessageId>>,
    pub(crate) news: Notify,
}

/// Names of kept rows begin so; the conversation's id follows.
pub(crate) const PREFIX: &[u8] = b"announce/";

/// The name of a conversation's row.
pub(crate) fn name_of(conversation: MessageId) -> Vec<u8> {
    [PREFIX, conversation.to_uuid().as_bytes()].concat()
}

impl Due {
    pub(crate) fn row(&self, since_ms: u64, is_done: bool) -> Vec<u8> {
        let Due { room, agent, key, .. } = self;
        let row = json!({"room": room.to_uuid(), "agent": **agent, "key": key.0, "since": since_ms, "done": is_done});
        row.to_string().into_bytes()
    }
}

impl State {
    fn of_row((name, value): &Kept) -> Option<State> {
        let id = std::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?;
        let row: Value = serde_json::from_slice(value).ok()?;
        let due = Due {
            conversation: MessageId::from_uuid(id)?,
            room: RoomId::from_uuid(row["room"].as_str()?)?,
            agent: row["agent"].as_str()?.into(),
            key: KeyPrint(serde_json::from_value(row["key"].clone()).ok()?),
        };
        Some(State { due, since_ms: row["since"].as_u64()?, is_done: row["done"].as_bool()? })
    }
}

impl Announcements {
    /// Those of earlier starts.
    pub(crate) fn load(&self, rows: &[Kept]) {
        let states: Vec<State> = rows.iter().filter_map(State::of_row).collect();
        let open = states.iter().filter(|state| !state.is_done);
        lock(&self.new).extend(open.map(|state| state.due.conversation));
        let named = states.into_iter().map(|state| (state.due.conversation, state));
        lock(&self.all).extend(named);
    }

    /// A conversation is to be announced.
    pub(crate) fn begin(&self, due: &Due, now_ms: u64) -> Begun {
        let mut all = lock(&self.all);
        if let Some(known) = all.get(&due.conversation) {
            return if known.is_done { Begun::No } else { Begun::Known };
        }
        let open = || all.values().filter(|state| !state.is_done);
        let own = open().filter(|state| state.due.agent == due.agent).count();
        if own >= ANNOUNCEMENTS_PER_AGENT_MAX || open().count() >= ANNOUNCEMENTS_MAX {
            return Begun::No;
        }
        let state = State { due: due.clone(), since_ms: now_ms, is_done: false };
        all.insert(due.conversation, state);
        Begun::New
    }

    /// It is kept: somebody has to see to it.
    pub(crate) fn is_kept(&self, conversation: MessageId) {
        lock(&self.new).insert(conversation);
        self.news.notify_one();
    }

    /// It could not be kept.
    pub(crate) fn forget(&self, conversation: MessageId) {
        lock(&self.all).remove(&conversation);
    }

    /// Those that nobody sees to yet.
    pub(crate) fn take_new(&self) -> Vec<(Due, u64)> {
        let new = std::mem::take(&mut *lock(&self.new));
        let all = lock(&self.all);
        let known = new.iter().filter_map(|conversation| all.get(conversation));
        known.map(|state| (state.due.clone(), state.since_ms)).collect()
    }

    /// It was announced, or is not to be. Returns those that are forgotten for its sake.
    pub(crate) fn is_done(&self, conversation: MessageId) -> Vec<MessageId> {
        let mut all = lock(&self.all);
        if let Some(state) = all.get_mut(&conversation) {
            state.is_done = true;
        }
        let mut done: Vec<(u64, MessageId)> = all
            .iter()
            .filter(|(_, state)| state.is_done)
            .map(|(conversation, state)| (state.since_ms, *conversation))
            .collect();
        done.sort_unstable();
        let surplus = done.len().saturating_sub(ANNOUNCED_KEPT_MAX);
        let old: Vec<MessageId> = done.drain(..surplus).map(|(_, id)| id).collect();
        for id in &old {
            all.remove(id);
        }
        old
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(n: u16) -> Due {
        let mut id = [0; 16];
        id[..2].copy_from_slice(&n.to_be_bytes());
        let (conversation, room) = (MessageId(id), RoomId([2; 16]));
        let agent = format!("agent {}", n % 20).as_str().into();
        Due { conversation, room, agent, key: KeyPrint([3; 16]) }
    }

    #[test]
    fn each_conversation_is_announced_once_also_after_a_restart() {
        let all = Announcements::default();
        assert_eq!(all.begin(&due(1), 5), Begun::New);
        assert_eq!(all.begin(&due(1), 6), Begun::Known);
        all.is_kept(due(1).conversation);
        assert_eq!(all.take_new(), [(due(1), 5)]);
        assert!(all.take_new().is_empty(), "one sees to it");
        let again = |is_done| {
            let again = Announcements::default();
            again.load(&[(name_of(due(1).conversation), due(1).row(5, is_done))]);
            again
        };
        assert_eq!(again(false).take_new(), [(due(1), 5)]);
        assert_eq!(again(false).begin(&due(1), 9), Begun::Known);
        assert!(again(true).take_new().is_empty());
        assert_eq!(again(true).begin(&due(1), 9), Begun::No);
    }

    #[test]
    fn so_many_wait_of_one_agent_and_of_all_and_the_oldest_of_those_that_were_are_forgotten() {
        let all = Announcements::default();
        let of_one = |n| Due { agent: "bob".into(), ..due(n) };
        for n in 0..100 {
            assert_eq!(all.begin(&of_one(n), 0), Begun::New);
        }
        assert_eq!(all.begin(&of_one(100), 0), Begun::No);
        for n in 100..1_000 {
            assert_eq!(all.begin(&due(n), u64::from(n)), Begun::New);
        }
        assert_eq!(all.begin(&due(1_000), 0), Begun::No);
        assert_eq!(all.is_done(due(7).conversation), []);
        assert_eq!(all.begin(&due(1_000), 0), Begun::New, "one less waits");
        let mut forgotten = Vec::new();
        for n in 2_000..12_000_u16 {
            lock(&all.all).insert(
                due(n).conversation,
                State { due: due(n), since_ms: u64::from(n), is_done: true },
            );
        }
        forgotten.extend(all.is_done(due(2_000).conversation));
        assert_eq!(forgotten, [due(7).conversation], "which began first");
    }
}
