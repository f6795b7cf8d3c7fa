//! Shared rooms: the keys that have each, as records say ([`crate::records::shared`]), and the rooms that this node has
//! opened with one of them. A record counts if its owner made the room, or is the successor of the key that did.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::Keys;
use crate::{
    name::{
        group::Shared,
        id::{KeyPrint, RoomId},
    },
    records::shared::{Given, SharedFacts, Taken},
    wire::record::RecordKey,
};

/// The content of a record about the keys of a shared room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Given(Given),
    Taken(Taken),
}

impl Sharing {
    /// The group, and the key that it says something of.
    pub(crate) fn about(&self) -> (RoomId, KeyPrint) {
        match self {
            Sharing::Given(given) => (given.group, given.key),
            Sharing::Taken(taken) => (taken.group, taken.key),
        }
    }
}

/// A record, and the key that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) owner: KeyPrint,
    /// The public half of the owner's mailbox.
    pub(crate) mailbox: [u8; 32],
    pub(crate) sharing: Sharing,
}

/// A room that this node has opened.
#[derive(Clone, Debug)]
pub(crate) struct SharedRoom {
    pub(crate) group: Shared,
    pub(crate) facts: SharedFacts,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedRooms {
    told: BTreeMap<RecordKey, Told>,
    /// By group and owner: others may write as much about a group as they like.
    by_group: BTreeMap<(RoomId, KeyPrint), BTreeSet<RecordKey>>,
    by_key: BTreeMap<KeyPrint, BTreeSet<RecordKey>>,
    rooms: BTreeMap<RoomId, SharedRoom>,
    /// The rooms, by their groups.
    opened: BTreeMap<RoomId, RoomId>,
    /// Records that have come since the last time.
    news: Vec<RecordKey>,
    /// Groups of which a record went.
    gone: BTreeSet<RoomId>,
}

/// The successions and revocations of keys.
pub(crate) trait Successions {
    /// The key to which all that was this one's has come.
    fn current(&self, key: KeyPrint) -> KeyPrint;
    /// The key, and the ones whose belongings have come to it.
    fn line(&self, key: KeyPrint) -> Vec<KeyPrint>;
    /// Whether a key counts no more.
    fn is_revoked(&self, key: KeyPrint) -> bool;
}

impl Successions for Keys {
    fn current(&self, key: KeyPrint) -> KeyPrint {
        self.current(key)
    }

    fn line(&self, key: KeyPrint) -> Vec<KeyPrint> {
        self.line(key)
    }

    fn is_revoked(&self, key: KeyPrint) -> bool {
        self.is_revoked(key)
    }
}

impl SharedRooms {
    /// A record is kept.
    pub(crate) fn learn(&mut self, key: RecordKey, told: Told) {
        let (group, of) = told.sharing.about();
        self.by_group.entry((group, told.owner)).or_default().insert(key);
        self.by_key.entry(of).or_default().insert(key);
        self.told.insert(key, told);
        self.news.push(key);
    }

    /// And not any more.
    pub(crate) fn forget(&mut self, key: RecordKey) {
        let Some(told) = self.told.remove(&key) else { return };
        let (group, of) = told.sharing.about();
        remove(&mut self.by_group, (group, told.owner), key);
        remove(&mut self.by_key, of, key);
        self.gone.insert(group);
    }

    /// Records that have come since the last time.
    pub(crate) fn take_news(&mut self) -> Vec<RecordKey> {
        std::mem::take(&mut self.news)
    }

    /// Groups of which a record went since the last time.
    pub(crate) fn take_gone(&mut self) -> BTreeSet<RoomId> {
        std::mem::take(&mut self.gone)
    }

    /// A record, if it is kept.
    pub(crate) fn told(&self, key: RecordKey) -> Option<&Told> {
        self.told.get(&key)
    }

    /// The records by which rooms are given to a key.
    pub(crate) fn given_to(&self, key: KeyPrint) -> Vec<RecordKey> {
        self.by_key.get(&key).into_iter().flatten().copied().collect()
    }

    /// The groups of rooms that this node has opened and that this key has made or was given.
    pub(crate) fn groups_of(&self, key: KeyPrint) -> impl Iterator<Item = Shared> {
        let given = self.given_to(key).into_iter();
        let given = given.filter_map(|record| self.room_of(self.told(record)?.sharing.about().0));
        given.filter_map(|room| Some(self.room(room)?.group))
    }

    /// This node has opened a room.
    pub(crate) fn open(&mut self, id: RoomId, room: SharedRoom) {
        self.opened.insert(room.group.id, id);
        self.rooms.insert(id, room);
    }

    /// A room that this node has opened.
    pub(crate) fn room(&self, id: RoomId) -> Option<&SharedRoom> {
        self.rooms.get(&id)
    }

    /// The room of a group, if this node has opened it.
    pub(crate) fn room_of(&self, group: RoomId) -> Option<RoomId> {
        self.opened.get(&group).copied()
    }

    /// How many rooms of this key were opened here.
    pub(crate) fn count_of(&self, maker: KeyPrint, keys: &impl Successions) -> usize {
        let own = |room: &&SharedRoom| keys.current(room.group.maker) == keys.current(maker);
        self.rooms.values().filter(own).count()
    }

    /// Whether a room that this key has made is called so. Others may give it rooms of any name.
    pub(crate) fn is_named(&self, name: &str, key: KeyPrint, keys: &impl Successions) -> bool {
        let mut named = self.rooms.values().filter(|room| room.facts.name == name);
        named.any(|room| keys.current(room.group.maker) == keys.current(key))
    }

    /// The keys that have the room of a group now: those that it was given to, and that were not taken out. None once its
    /// maker is revoked.
    pub(crate) fn keys_of(&self, group: Shared, keys: &impl Successions) -> BTreeSet<KeyPrint> {
        let maker = keys.current(group.maker);
        let (mut given, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for told in self.by_makers(group, keys) {
            match &told.sharing {
                Sharing::Given(it) => given.insert(keys.current(it.key)),
                Sharing::Taken(it) => taken.insert(keys.current(it.key)),
            };
        }
        given.retain(|key| !taken.contains(key) && !keys.is_revoked(*key));
        if keys.is_revoked(maker) { BTreeSet::new() } else { given }
    }

    /// Whether a key was taken out.
    pub(crate) fn was_taken_from(
        &self,
        group: Shared,
        key: KeyPrint,
        keys: &impl Successions,
    ) -> bool {
        let mut told = self.by_makers(group, keys);
        told.any(|told| matches!(&told.sharing, Sharing::Taken(it) if keys.current(it.key) == key))
    }

    /// Whether a key had it at any time.
    pub(crate) fn was_given(&self, group: Shared, key: KeyPrint, keys: &impl Successions) -> bool {
        let mut told = self.by_makers(group, keys);
        told.any(|told| matches!(&told.sharing, Sharing::Given(it) if keys.current(it.key) == key))
    }

    /// How many keys had it at any time.
    pub(crate) fn count_given(&self, group: Shared, keys: &impl Successions) -> usize {
        let told = self.by_makers(group, keys);
        told.filter(|told| matches!(told.sharing, Sharing::Given(_))).count()
    }

    fn by_makers<'s>(
        &'s self,
        group: Shared,
        keys: &'s impl Successions,
    ) -> impl Iterator<Item = &'s Told> + 's {
        let owners = keys.line(keys.current(group.maker)).into_iter();
        let of_owner = move |owner| self.by_group.get(&(group.id, owner)).into_iter().flatten();
        owners.flat_map(of_owner).filter_map(|key| self.told.get(key))
    }
}

fn remove<K: Ord>(index: &mut BTreeMap<K, BTreeSet<RecordKey>>, at: K, key: RecordKey) {
    if let Some(keys) = index.get_mut(&at) {
        keys.remove(&key);
        if keys.is_empty() {
            index.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        name::{id::MeshId, key::KeySecret},
        records::shared::{Ends, draw_secret},
    };

    const MESH: MeshId = MeshId([1; 16]);

    /// A key was replaced by the next one, and another one revoked.
    #[derive(Default)]
    struct Changed {
        replaced: Option<(KeyPrint, KeyPrint)>,
        revoked: Option<KeyPrint>,
    }

    impl Successions for Changed {
        fn current(&self, key: KeyPrint) -> KeyPrint {
            self.replaced.filter(|(old, _)| *old == key).map_or(key, |(_, new)| new)
        }

        fn line(&self, key: KeyPrint) -> Vec<KeyPrint> {
            let before = self.replaced.filter(|(_, new)| *new == key).map(|(old, _)| old);
            [key].into_iter().chain(before).collect()
        }

        fn is_revoked(&self, key: KeyPrint) -> bool {
            self.revoked == Some(key)
        }
    }

    fn key(n: u8) -> KeySecret {
        KeySecret::of(&format!("{n:0>32}"))
    }

    struct Shop {
        rooms: SharedRooms,
        group: Shared,
        facts: SharedFacts,
    }

    impl Shop {
        /// The first key has made a room.
        fn new() -> Shop {
            let own = key(1).mailbox().expect("it is long enough").clone();
            let facts = SharedFacts {
                secret: draw_secret(MESH, &own, b"one").expect("it has one"),
                name: "plans".to_owned(),
                description: None,
                encrypted: false,
                created_by: "ann".into(),
                created_ms: 1,
            };
            let group = facts.group(MESH, key(1).print());
            let mut shop = Shop { rooms: SharedRooms::default(), group, facts };
            shop.give(1, 1);
            shop
        }

        fn give(&mut self, by: u8, to: u8) -> RecordKey {
            let (by, to) = (key(by), key(to));
            let own = by.mailbox().expect("it is long enough").clone();
            let ends = Ends { mesh: MESH, own: &own, other: &to.halves().mailbox };
            let given = Given::seal(&ends, self.group, to.print(), &self.facts).expect("sealed");
            self.learn(&by, given.draft().id, Sharing::Given(given))
        }

        fn take(&mut self, by: u8, from: u8) {
            let taken = Taken { group: self.group.id, key: key(from).print() };
            self.learn(&key(by), taken.draft().id, Sharing::Taken(taken));
        }

        fn learn(
            &mut self,
            by: &KeySecret,
            id: crate::wire::record::RecordId,
            sharing: Sharing,
        ) -> RecordKey {
            let record = RecordKey { id, owner: Some(by.print()) };
            let (owner, mailbox) = (by.print(), by.halves().mailbox);
            self.rooms.learn(record, Told { owner, mailbox, sharing });
            record
        }

        fn keys(&self, changed: &Changed) -> Vec<u8> {
            let keys = self.rooms.keys_of(self.group, changed);
            (1..=9).filter(|n| keys.contains(&key(*n).print())).collect()
        }
    }

    #[test]
    fn the_maker_alone_gives_and_takes_and_a_key_that_was_taken_out_stays_out() {
        let (mut shop, now) = (Shop::new(), Changed::default());
        shop.give(1, 2);
        shop.give(2, 3);
        shop.take(2, 1);
        assert_eq!(shop.keys(&now), [1, 2], "another key gives and takes nothing");
        shop.take(1, 2);
        shop.give(1, 2);
        assert_eq!(shop.keys(&now), [1]);
        assert_eq!(shop.rooms.count_given(shop.group, &now), 2);
    }

    #[test]
    fn keys_follow_their_successors_and_a_revoked_maker_has_shared_with_nobody() {
        let mut shop = Shop::new();
        shop.give(1, 2);
        let revoked = |n: u8| Changed { revoked: Some(key(n).print()), replaced: None };
        let replaced = |old: u8, new: u8| Changed {
            replaced: Some((key(old).print(), key(new).print())),
            revoked: None,
        };
        assert_eq!(shop.keys(&revoked(2)), [1]);
        assert_eq!(shop.keys(&revoked(1)), []);
        assert_eq!(shop.keys(&replaced(2, 4)), [1, 4]);
        assert_eq!(shop.keys(&replaced(1, 4)), [2, 4], "what it has shared stays so");
        shop.give(4, 5);
        assert_eq!(shop.keys(&Changed::default()), [1, 2]);
        assert_eq!(shop.keys(&replaced(1, 4)), [2, 4, 5], "its successor goes on");
    }

    #[test]
    fn records_that_are_not_kept_any_more_leave_nothing() {
        let mut shop = Shop::new();
        let given = shop.give(1, 2);
        assert_eq!(shop.rooms.take_news().len(), 2);
        assert_eq!(shop.rooms.given_to(key(2).print()), [given]);
        shop.rooms.forget(given);
        assert_eq!(shop.rooms.take_gone(), [shop.group.id].into());
        assert!(shop.rooms.given_to(key(2).print()).is_empty());
        assert_eq!(shop.keys(&Changed::default()), [1]);
    }
}
