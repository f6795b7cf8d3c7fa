//! The messages that agents were given at this node, and how far they have confirmed them: what this node can say when it is
//! asked the fate of a message (`docs/decisions/receipts.md`). In memory, and bounded: after a start nothing is known.
//!
//! *Given* is a message that was written to a connection which stayed open for a while: a client that reads nothing any
//! more leaves what was written to it in buffers, and its connection breaks.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use mesh::{
    limits::RECEIPT_AGENTS_MAX,
    name::{
        id::{AgentId, RoomId},
        number::Number,
    },
    wire::copies::AgentState,
};

use super::link::LinkId;
use crate::limits::{GIVEN_AFTER, GIVEN_AGENTS_MAX, GIVEN_DUE_MAX, GIVEN_NUMBERS_MAX};

/// The moment in which something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    wall_ms: u64,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        Moment { at: Instant::now(), wall_ms }
    }

    #[cfg(test)]
    fn later(self, time: std::time::Duration) -> Moment {
        Moment { at: self.at + time, wall_ms: self.wall_ms }
    }
}

/// An agent in a room.
type Name = (RoomId, AgentId);

/// A message that was written to a connection.
#[derive(Clone, Copy, Debug)]
struct Note {
    number: Number,
    link: LinkId,
    when: Moment,
}

/// All that is known of one agent in one room.
#[derive(Debug, Default)]
struct Notes {
    noted: u64,
    /// The newest [`GIVEN_NUMBERS_MAX`].
    given: VecDeque<Note>,
    confirmed: Option<(Number, u64)>,
}

#[derive(Debug, Default)]
struct Inner {
    /// At most [`GIVEN_AGENTS_MAX`].
    agents: BTreeMap<Name, Notes>,
    /// Rooms of which something was written to a connection that is open.
    by_link: BTreeMap<LinkId, BTreeSet<RoomId>>,
    /// By when something was noted of them last.
    order: BTreeMap<u64, Name>,
    clock: u64,
    /// Messages of direct rooms that were written to connections, and are not certain to have come yet: the newest
    /// [`GIVEN_DUE_MAX`], by when they were written.
    due: VecDeque<(Handed, Note)>,
}

/// A message of a direct room that an agent was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    pub(crate) agent: AgentId,
    pub(crate) room: RoomId,
    pub(crate) number: Number,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Given(Mutex<Inner>);

impl Given {
    /// Messages of a room were written to a connection of an agent.
    pub(crate) fn wrote(
        &self,
        agent: &AgentId,
        link: LinkId,
        messages: impl Iterator<Item = (RoomId, Number)>,
        when: Moment,
    ) {
        let mut inner = self.locked();
        for (room, number) in messages {
            inner.by_link.entry(link).or_default().insert(room);
            let given = &mut inner.notes((room, agent.clone())).given;
            given.push_back(Note { number, link, when });
            if given.len() > GIVEN_NUMBERS_MAX {
                given.pop_front();
            }
        }
    }

    /// The same, of a message in a direct room: its author is to hear that it came.
    pub(crate) fn wrote_to(&self, handed: Handed, link: LinkId, when: Moment) {
        let mut inner = self.locked();
        let number = handed.number;
        inner.due.push_back((handed, Note { number, link, when }));
        if inner.due.len() > GIVEN_DUE_MAX {
            inner.due.pop_front();
        }
    }

    /// Messages of direct rooms that are certain to have come by now, each once.
    pub(crate) fn take_come(&self, now: Moment) -> Vec<Handed> {
        let mut inner = self.locked();
        let mut come = Vec::new();
        while let Some((handed, note)) = inner.due.pop_front() {
            if !note.is_over(now) {
                inner.due.push_front((handed, note));
                break;
            }
            come.push(handed);
        }
        come
    }

    /// A connection of an agent has ended: messages that were written to it just now may never have come.
    pub(crate) fn ended(&self, agent: &AgentId, link: LinkId, now: Moment) {
        let mut inner = self.locked();
        inner.due.retain(|(_, note)| note.link != link || note.is_over(now));
        for room in inner.by_link.remove(&link).unwrap_or_default() {
            if let Some(notes) = inner.agents.get_mut(&(room, agent.clone())) {
                notes.given.retain(|note| note.link != link || note.is_over(now));
            }
        }
    }

    /// An agent has all messages of a room up to this number.
    pub(crate) fn confirmed(&self, agent: &AgentId, room: RoomId, upto: Number, now: Moment) {
        let mut inner = self.locked();
        let notes = inner.notes((room, agent.clone()));
        if notes.confirmed.is_none_or(|(before, _)| before < upto) {
            notes.confirmed = Some((upto, now.wall_ms));
        }
    }

    /// The agents that have got a message, as far as is known: at most [`RECEIPT_AGENTS_MAX`].
    pub(crate) fn of(&self, room: RoomId, number: Number, now: Moment) -> Vec<AgentState> {
        let inner = self.locked();
        let in_room = inner.agents.range((room, AgentId::from(""))..);
        let in_room = in_room.take_while(|((of, _), _)| *of == room);
        let states = in_room.filter_map(|((_, agent), notes)| {
            let confirmed = notes.confirmed.filter(|(upto, _)| number <= *upto);
            let at_ms = match confirmed {
                Some((_, at_ms)) => at_ms,
                None => notes.given_at(number, now)?,
            };
            Some(AgentState { agent: agent.clone(), confirmed: confirmed.is_some(), at_ms })
        });
        states.take(RECEIPT_AGENTS_MAX).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn notes(&mut self, name: Name) -> &mut Notes {
        self.clock += 1;
        let before = self.agents.get(&name).map(|notes| notes.noted);
        if let Some(before) = before {
            self.order.remove(&before);
        } else if self.agents.len() >= GIVEN_AGENTS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.agents.remove(&oldest);
        }
        self.order.insert(self.clock, name.clone());
        let notes = self.agents.entry(name).or_default();
        notes.noted = self.clock;
        notes
    }
}

impl Notes {
    /// When a message was written to a connection that stayed open.
    fn given_at(&self, number: Number, now: Moment) -> Option<u64> {
        let given = self.given.iter().find(|note| note.number == number && note.is_over(now));
        given.map(|note| note.when.wall_ms)
    }
}

impl Note {
    /// Whether its connection has stayed open for long enough.
    fn is_over(&self, now: Moment) -> bool {
        now.at.saturating_duration_since(self.when.at) >= GIVEN_AFTER
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ROOM: RoomId = RoomId([7; 16]);

    fn agent(name: &str) -> AgentId {
        name.into()
    }

    fn wrote(given: &Given, name: &str, link: u64, (number, when): (u64, Moment)) {
        given.wrote(&agent(name), LinkId(link), [(ROOM, Number(number))].into_iter(), when);
    }

    fn names(given: &Given, number: u64, now: Moment) -> Vec<(String, bool)> {
        let states = given.of(ROOM, Number(number), now).into_iter();
        states.map(|state| (state.agent.to_string(), state.confirmed)).collect()
    }

    #[test]
    fn a_message_is_given_when_its_connection_has_stayed_open() {
        let (given, now) = (Given::default(), Moment::now());
        wrote(&given, "a", 1, (3, now));
        wrote(&given, "b", 2, (3, now));
        let soon = now.later(GIVEN_AFTER - Duration::from_millis(1));
        assert_eq!(names(&given, 3, soon), []);
        given.ended(&agent("b"), LinkId(2), soon);
        let later = now.later(GIVEN_AFTER);
        assert_eq!(names(&given, 3, later), [("a".to_owned(), false)]);
        assert_eq!(names(&given, 2, later), []);
        // A connection that ends after that has given it, and another one of the agent takes nothing away.
        given.ended(&agent("a"), LinkId(2), soon);
        given.ended(&agent("a"), LinkId(1), later);
        assert_eq!(names(&given, 3, later), [("a".to_owned(), false)]);
        assert_eq!(given.of(RoomId([8; 16]), Number(3), later), []);
    }

    #[test]
    fn a_message_of_a_direct_room_has_come_when_its_connection_has_stayed_open() {
        let (given, now) = (Given::default(), Moment::now());
        let handed =
            |name: &str, number| Handed { agent: agent(name), room: ROOM, number: Number(number) };
        given.wrote_to(handed("a", 3), LinkId(1), now);
        given.wrote_to(handed("b", 3), LinkId(2), now);
        given.wrote_to(handed("a", 4), LinkId(1), now.later(Duration::from_secs(1)));
        let soon = now.later(GIVEN_AFTER - Duration::from_millis(1));
        assert_eq!(given.take_come(soon), []);
        given.ended(&agent("b"), LinkId(2), soon);
        let later = now.later(GIVEN_AFTER);
        assert_eq!(given.take_come(later), [handed("a", 3)]);
        assert_eq!(given.take_come(later), [], "once");
        given.ended(&agent("a"), LinkId(1), later);
        assert_eq!(given.take_come(later.later(GIVEN_AFTER)), [], "it may never have come");
        (0..=GIVEN_DUE_MAX).for_each(|_| given.wrote_to(handed("a", 5), LinkId(3), now));
        assert_eq!(given.take_come(later).len(), GIVEN_DUE_MAX);
    }

    #[test]
    fn an_agent_confirms_all_up_to_a_number_and_nothing_back() {
        let (given, now) = (Given::default(), Moment::now());
        given.confirmed(&agent("a"), ROOM, Number(5), now);
        given.confirmed(&agent("a"), ROOM, Number(4), now);
        for (number, expected) in [(4, true), (5, true), (6, false)] {
            let confirmed = names(&given, number, now);
            assert_eq!(confirmed == [("a".to_owned(), true)], expected, "{number}");
        }
    }

    #[test]
    fn so_much_is_known_and_the_newest_of_it() {
        let (given, now) = (Given::default(), Moment::now());
        let later = now.later(GIVEN_AFTER);
        let most = GIVEN_NUMBERS_MAX as u64;
        (1..=most + 1).for_each(|number| wrote(&given, "a", 1, (number, now)));
        assert_eq!(names(&given, 1, later), []);
        assert_eq!(names(&given, 2, later).len(), 1);
        (0..GIVEN_AGENTS_MAX).for_each(|n| wrote(&given, &format!("x{n}"), 1, (1, now)));
        assert_eq!(names(&given, 2, later), [], "of others more is known");
        let inner = given.locked();
        assert_eq!((inner.agents.len(), inner.order.len()), (GIVEN_AGENTS_MAX, GIVEN_AGENTS_MAX));
        drop(inner);
        assert_eq!(names(&given, 1, later).len(), RECEIPT_AGENTS_MAX);
    }
}
