//! The numbers that agents with an id of their own were given by this node, durably: an agent that stays here gets no
//! message twice, however often others have it numbered again (`docs/numbering.md`, "Roaming").
//!
//! Only rooms that have left their first numbers are noted: below a cursor of those nobody was given less. Of each era
//! the first number that a reader is given says all there is to say of it, and is written as soon as it was given; the
//! rest about once a second, and at the end. Numbers that a crash in between takes away may be told again, never skipped.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use mesh::{
    api::command::{Command, Opaque},
    name::{
        id::{AgentId, KeyPrint, RoomId},
        number::{Era, Number},
    },
    order::served::Served,
};

use tokio::sync::Notify;

use crate::{backend::Kept, limits};

/// Under which names they are kept.
pub(crate) const PREFIX: &[u8] = b"served/";

/// An agent of a key in a room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) agent: AgentId,
    pub(crate) key: KeyPrint,
    pub(crate) room: RoomId,
}

impl Name {
    fn encode(&self) -> Vec<u8> {
        [PREFIX, &self.room.0, &self.key.0, self.agent.as_bytes()].concat()
    }

    fn decode(name: &[u8]) -> Option<Name> {
        let rest = name.strip_prefix(PREFIX)?;
        let (room, rest) = rest.split_first_chunk()?;
        let (key, agent) = rest.split_first_chunk()?;
        let agent = str::from_utf8(agent).ok()?.into();
        Some(Name { agent, key: KeyPrint(*key), room: RoomId(*room) })
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    inner: Mutex<Inner>,
    /// There is something to be written that does not bear to wait.
    urgent: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    by_name: HashMap<Name, Reader>,
    /// Readers by when they were noted, the longest ago first.
    order: BTreeMap<u64, Name>,
    clock: u64,
    /// Readers that the store is to forget.
    forgotten: Vec<Name>,
}

#[derive(Debug)]
struct Reader {
    served: Served,
    noted: u64,
    /// The store does not have it as it is.
    dirty: bool,
}

impl Readers {
    /// Readers that earlier starts knew. A row that cannot be read is as if it had never been noted.
    pub(crate) fn load(&self, kept: Vec<Kept>) {
        let mut inner = self.locked();
        for (name, value) in kept {
            if let (Some(name), Ok(served)) = (Name::decode(&name), Served::decode(&value)) {
                inner.put(name, served, false);
            }
        }
    }

    pub(crate) fn served(&self, name: &Name) -> Served {
        self.locked().by_name.get(name).map(|reader| reader.served.clone()).unwrap_or_default()
    }

    /// Something was given up to this number. `durable`: to be kept over a start.
    pub(crate) fn note(
        &self,
        name: &Name,
        upto: Number,
        durable: bool,
        note: impl FnOnce(&mut Served),
    ) {
        if upto.era() == Era::HOME {
            return;
        }
        let mut inner = self.locked();
        let known = inner.by_name.get(name);
        let mut served = known.map(|reader| reader.served.clone()).unwrap_or_default();
        let dirty = known.is_some_and(|reader| reader.dirty);
        let is_new = served.came_with(upto).is_none();
        note(&mut served);
        if known.is_none_or(|reader| reader.served != served) {
            inner.put(name.clone(), served, dirty || durable);
            // A reader that came into an era from here is known for ever by its first number.
            if is_new && durable {
                self.urgent.notify_one();
            }
        }
    }

    /// Something is to be written at once.
    pub(crate) async fn is_urgent(&self) {
        self.urgent.notified().await;
    }

    /// Somebody was given the first number of an era live.
    pub(crate) fn hurry(&self) {
        self.urgent.notify_one();
    }

    /// Rows that are to be written, at most so many.
    pub(crate) fn take_unkept(&self, most: usize) -> Vec<(Name, Command)> {
        let mut inner = self.locked();
        let mut commands = Vec::new();
        while commands.len() < most
            && let Some(name) = inner.forgotten.pop()
        {
            let command = Command::Keep { name: name.encode(), value: None };
            commands.push((name, command));
        }
        let Inner { by_name, order, .. } = &mut *inner;
        for name in order.values() {
            if commands.len() >= most {
                break;
            }
            if let Some(reader) = by_name.get_mut(name).filter(|reader| reader.dirty) {
                reader.dirty = false;
                let value = Some(Opaque(reader.served.encode()));
                commands.push((name.clone(), Command::Keep { name: name.encode(), value }));
            }
        }
        commands
    }

    /// It was not written.
    pub(crate) fn not_kept(&self, name: Name) {
        let mut inner = self.locked();
        match inner.by_name.get_mut(&name) {
            Some(reader) => reader.dirty = true,
            None => inner.forgotten.push(name),
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn forget_all(&self) {
        *self.locked() = Inner::default();
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock can leave it half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn put(&mut self, name: Name, served: Served, dirty: bool) {
        self.clock += 1;
        let noted = self.clock;
        let reader = Reader { served, noted, dirty };
        if let Some(before) = self.by_name.insert(name.clone(), reader) {
            self.order.remove(&before.noted);
        }
        self.order.insert(noted, name);
        while self.by_name.len() > limits::READERS_MAX {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.by_name.remove(&oldest);
            if self.forgotten.len() < limits::READERS_MAX {
                self.forgotten.push(oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(agent: &str) -> Name {
        Name { agent: agent.into(), key: KeyPrint([3; 16]), room: RoomId([5; 16]) }
    }

    fn above_home(n: u64) -> Number {
        Era::new(1, 7).unwrap().number(n)
    }

    fn kept(commands: &[(Name, Command)]) -> Vec<Kept> {
        let row = |(_, command): &(Name, Command)| {
            let Command::Keep { name, value: Some(value) } = command else { return None };
            Some((name.clone(), value.0.clone()))
        };
        commands.iter().filter_map(row).collect()
    }

    #[test]
    fn what_was_given_outlives_the_process() {
        let readers = Readers::default();
        readers
            .note(&name("a"), Number(9), true, |it| it.page(Number::ZERO, (Number(1), Number(9))));
        assert_eq!(readers.take_unkept(10).len(), 0, "nothing is noted of first numbers");
        let upto = above_home(4);
        readers.note(&name("a"), upto, true, |it| it.page(Number::ZERO, (Number(1), upto)));
        readers.note(&name("b"), upto, false, |it| it.page(Number::ZERO, (Number(1), upto)));
        let commands = readers.take_unkept(10);
        assert_eq!(commands.len(), 1, "nothing of an ephemeral room is written");
        assert!(readers.take_unkept(10).is_empty());
        readers.note(&name("a"), upto, true, |it| it.told(upto));
        assert!(readers.take_unkept(10).is_empty(), "nothing has changed");
        let again = Readers::default();
        let mut rows = kept(&commands);
        rows.push((b"served/short".to_vec(), Vec::new()));
        rows.push((name("c").encode(), b"damaged".to_vec()));
        again.load(rows);
        assert_eq!(again.served(&name("a")), readers.served(&name("a")));
        assert_eq!(again.served(&name("a")).came_with(upto), Some(Number::ZERO));
        assert_eq!(again.served(&name("c")).came_with(upto), None);
        readers.not_kept(name("a"));
        assert_eq!(readers.take_unkept(10).len(), 1, "it is tried again");
    }

    #[test]
    fn so_many_readers_are_known_and_the_last_ones() {
        let readers = Readers::default();
        for nth in 0..=limits::READERS_MAX {
            let upto = above_home(1);
            readers.note(&name(&nth.to_string()), upto, true, |it| it.told(upto));
        }
        assert_eq!(readers.locked().by_name.len(), limits::READERS_MAX);
        let mut commands = readers.take_unkept(2);
        assert_eq!(commands.len(), 2, "no more than asked for");
        assert!(
            matches!(commands.remove(0), (it, Command::Keep { value: None, .. }) if it == name("0"))
        );
    }
}
