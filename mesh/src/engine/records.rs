//! Records: writing them, taking in those of others, and comparing them with peers.
//!
//! Their contents are on the disk alone, and readers get them from there. Here are the heads: what a record replaces, and
//! which one falls out, has to be known before it is written, and the core reads no disk.

mod about;
mod accounts;
mod comparing;
mod contents;
mod files;
mod inherited;
mod owned;
mod presented;
mod replaced;
mod schedules;
mod shelves;
mod words;
mod writing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use self::{
    about::About,
    contents::{Contents, Here, Name, Told as ContentTold},
    replaced::Gathering,
};
pub(super) use self::{owned::list_stops, words::Sayer, writing::Profiled};
use super::known::Known;
use crate::{
    api::{
        batch::{Change, StoredRecord},
        boundary::Effect,
        event::AgentEvent,
    },
    directory::shared::{Sharing, Told},
    limits::{CARRIED_HEADS_MAX, RECORD_AHEAD_MAX, RECORD_BUCKETS},
    name::{
        group::Group,
        id::{KeyPrint, LogId, NodeId, RoomId},
    },
    records::{
        closing,
        collection::{Collection, Merge},
        digest::Bucket,
        filling::Filling,
        finder::PRESENTED,
        members, pair, retired,
        schedules::ScheduleNews,
        set::{Fate, Offer, Set},
        shared,
        space::{Brief, Sets},
        stopped, writers,
    },
    wire::{
        carry::{Whole, bytes_log, record_log},
        contents::{SentContents, WantedContents},
        record::{CollectionNumber, Record, RecordId, RecordKey, Space, Stamp},
    },
};

/// A state of a record of a group.
pub(super) type RecordAt = (CollectionNumber, RecordKey, Stamp);

/// The last comparison with a peer.
#[derive(Clone, Copy, Debug)]
struct Compared {
    /// When it was, or when the two were first seen to differ.
    at: Duration,
    /// The next one is due so much later.
    every: Duration,
    /// The peer's digest and this node's, then.
    digests: (Brief, Brief),
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Records {
    /// Those of followers and of the node are there from their first record on: at most one for each group that is followed.
    spaces: BTreeMap<Space, Sets>,
    /// Groups whose followers' records may have changed: others are told a new digest.
    changed: BTreeSet<Group>,
    contents: Contents,
    gathering: Gathering,
    /// The accounts that records are about.
    about: About,
    compared: BTreeMap<(NodeId, Space), Compared>,
    /// Buckets with which the next heads for a peer begin, where the last ones did not reach all that differed.
    rest: BTreeMap<(NodeId, Space, CollectionNumber), Bucket>,
    filling: Filling,
    /// Records whose time is over are looked for then.
    next_expiry: Duration,
    /// Records of pairs that came in this turn.
    new_pairs: Vec<(KeyPrint, RecordId)>,
}

impl Records {
    /// None yet. `carry`: bytes of contents that are kept for accounts that were not presented here.
    pub(super) fn new(carry: u64) -> Records {
        Records {
            spaces: [(Space::Mesh, Sets::new(Space::Mesh))].into(),
            changed: BTreeSet::new(),
            contents: Contents::new(carry),
            gathering: Gathering::default(),
            about: About::default(),
            compared: BTreeMap::new(),
            rest: BTreeMap::new(),
            filling: Filling::default(),
            next_expiry: Duration::ZERO,
            new_pairs: Vec::new(),
        }
    }

    /// Takes in the records of the store. Records that are not kept any more go: the directory may have changed in the turn that was
    /// lost with the node.
    pub(super) fn restore(&mut self, known: &mut Known, mut stored: Vec<StoredRecord>) {
        // The first are those that say whose contents are kept here; then those of the mesh: they say which keys may own records
        // in the space of followers.
        let is_presented = |one: &StoredRecord| one.collection == PRESENTED.number;
        stored.sort_by_key(|record| (!is_presented(record), record.space, record.collection));
        let of_one_set = |one: &StoredRecord, other: &StoredRecord| {
            (one.space, one.collection) == (other.space, other.collection)
        };
        for of_set in stored.chunk_by_mut(of_one_set) {
            self.restore_set(known, of_set);
        }
        self.tell_followers(known);
    }

    /// The same, of one set.
    fn restore_set(&mut self, known: &mut Known, stored: &mut [StoredRecord]) {
        let Some(StoredRecord { space, collection, .. }) = stored.first() else { return };
        let (space, collection) = (*space, *collection);
        let sets = self.spaces.entry(space).or_insert_with(|| Sets::new(space));
        let Some(set) = sets.get_mut(collection) else { return };
        let kind = set.collection();
        let (mut offers, mut gone) = (Vec::with_capacity(stored.len()), Vec::new());
        let mut answering: BTreeMap<KeyPrint, Option<NodeId>> = BTreeMap::new();
        for StoredRecord { head, deleted, about, .. } in stored.iter() {
            let (head, deleted) = (*head, *deleted);
            let answers = answering.entry(head.owner);
            let answers = *answers.or_insert_with(|| answers_for(known, (space, kind), head.owner));
            let is_about_nobody = about.is_some_and(|it| known.directory.accounts.has_ended(it));
            match answers.filter(|_| !is_about_nobody) {
                Some(answers) => offers.push(Offer { head, deleted, answers }),
                None => gone.push(set.key(head.id, head.owner)),
            }
        }
        gone.extend(set.fill(&offers));
        for StoredRecord { head, about, deleted, apart, held, copied, whole, .. } in stored {
            let key = kind.key(head.id, head.owner);
            self.about.set((collection, key), *about);
            let is_kept = self.set(space, collection).is_some_and(|set| set.head(key).is_some());
            if kind.founds() && *deleted && is_kept {
                known.directory.accounts.set_ended(head.owner, true);
            }
            if let Some(apart) = *apart {
                let at = self.shelved(kind, head, *about);
                let (name, told) = (Name { space, collection, key }, ContentTold { apart, at });
                self.contents.restore(known, name, told, Here { held: *held, copied: *copied });
            }
            if let Some(record) = whole.take() {
                learn(known, key, &record);
            }
        }
        for key in gone {
            self.forget(known, Name { space, collection, key });
        }
        self.note_change(space);
    }

    /// The sets of a space, made if they are not there.
    fn sets(&mut self, space: Space) -> &mut Sets {
        self.spaces.entry(space).or_insert_with(|| Sets::new(space))
    }

    fn set(&self, space: Space, collection: CollectionNumber) -> Option<&Set> {
        self.spaces.get(&space)?.get(collection)
    }

    /// Keeps a record, if it is one of those that are kept. Whether it is.
    fn take(&mut self, known: &mut Known, record: Record, answers: NodeId) -> bool {
        let (space, collection) = (record.space, record.collection);
        let head = record.head(known.cx.mesh);
        let deleted = record.body.is_none();
        let about = Collection::of(collection).and_then(|kind| kind.about(record.content()));
        if about.is_some_and(|account| known.directory.accounts.has_ended(account)) {
            return false;
        }
        let offer = Offer { head, deleted, answers };
        let Some(set) = self.sets(space).get_mut(collection) else { return false };
        let is_pair = collection == pair::COLLECTION.number;
        let is_new = is_pair && set.head(set.key(head.id, head.owner)).is_none();
        let ends = set.collection().founds() && deleted;
        let (key, keeps) = (set.key(head.id, head.owner), set.collection().keeps_replaced);
        let was_live = set.is_live(key);
        let Fate::Kept(gone) = set.offer(offer) else { return false };
        self.about.set((collection, key), about);
        self.new_pairs.extend(is_new.then_some((head.owner, head.id)));
        let (name, apart) = (Name { space, collection, key }, record.apart);
        let at = Collection::of(collection).and_then(|kind| self.shelved(kind, &head, about));
        learn(known, key, &record);
        known.note_record(&record);
        if collection == closing::COLLECTION.number {
            known.tell_of_closed(space, head.id);
        }
        if Collection::of(collection).is_some_and(Collection::is_scheduled) {
            let news = ScheduleNews { key: head.owner, collection, id: head.id };
            known.cx.effects.push(Effect::Tell(AgentEvent::Scheduled(news)));
        }
        match (keeps, deleted) {
            (true, true) => replaced::drop_all(known, name),
            (true, false) => replaced::keep(known, &mut self.gathering, name, was_live),
            (false, _) => {}
        }
        change(known, name, Some(Arc::new(record)));
        self.contents.change(known, name, apart.map(|apart| ContentTold { apart, at }));
        if collection == PRESENTED.number {
            self.shelve_again(known, head.owner);
        }
        if let Some(key) = gone {
            self.forget(known, Name { space, collection, key });
        }
        self.note_change(space);
        if ends {
            self.end(known, head.owner);
        }
        true
    }

    // Pairs.

    /// Whether a key has said that it is half of a pair.
    pub(super) fn has_pair(&self, owner: KeyPrint, id: RecordId) -> bool {
        let set = self.set(Space::Mesh, pair::COLLECTION.number);
        set.is_some_and(|set| set.head(set.key(id, owner)).is_some())
    }

    /// Whether it has said so of any.
    pub(super) fn owns_pairs(&self, owner: KeyPrint) -> bool {
        let set = self.set(Space::Mesh, pair::COLLECTION.number);
        set.is_some_and(|set| set.count_of(owner) > 0)
    }

    /// Keys that have said so of any.
    pub(super) fn pair_owners(&self) -> impl Iterator<Item = KeyPrint> {
        self.set(Space::Mesh, pair::COLLECTION.number).into_iter().flat_map(Set::owners)
    }

    /// Records of pairs that have come since the last time.
    pub(super) fn take_new_pairs(&mut self) -> Vec<(KeyPrint, RecordId)> {
        std::mem::take(&mut self.new_pairs)
    }

    /// A record is not kept any more, and its content with it.
    fn forget(&mut self, known: &mut Known, name: Name) {
        let shares = [shared::GIVEN.number, shared::TAKEN.number].contains(&name.collection);
        if shares && name.space == Space::Mesh {
            known.directory.shared.forget(name.key);
        }
        if name.collection == writers::COLLECTION.number {
            known.directory.proofs().learn_writers(name.key, None);
        }
        if name.collection == members::COLLECTION.number {
            known.on_record.forget(name.space, name.key);
        }
        if name.collection == retired::COLLECTION.number {
            known.directory.proofs().learn_retired(name.key, None);
        }
        if name.collection == stopped::COLLECTION.number {
            known.stopped.forget(name.key);
        }
        if let (true, Some(owner)) = (name.collection == closing::COLLECTION.number, name.key.owner)
        {
            known.closings.remove(&(name.space, name.key.id, owner));
            known.tell_of_closed(name.space, name.key.id);
        }
        self.about.set((name.collection, name.key), None);
        let founds = Collection::of(name.collection).is_some_and(Collection::founds);
        if let (true, Some(owner)) = (founds, name.key.owner) {
            known.directory.accounts.set_ended(owner, false);
        }
        if Collection::of(name.collection).is_some_and(|kind| kind.keeps_replaced) {
            replaced::drop_all(known, name);
        }
        change(known, name, None);
        self.contents.change(known, name, None);
        if let (true, Some(owner)) = (name.collection == PRESENTED.number, name.key.owner) {
            self.shelve_again(known, owner);
        }
    }

    // Records of others.

    /// Records that a peer sends, or passes on.
    pub(super) fn on_records(&mut self, known: &mut Known, from: NodeId, records: Vec<Record>) {
        let (mut new, first) = (0, records.first().map(|record| record.space));
        for record in records {
            if !shares(known, from, record.space) {
                continue;
            }
            let Some(kind) = Collection::of(record.collection) else { continue };
            let at = (record.space, kind);
            if let Some(answers) = answers_now(known, at, record.owner(), record.stamp) {
                new += usize::from(self.take(known, record, answers));
            }
        }
        // All of a peer's answer are of one space.
        if let Some(space) = first {
            let over = self.filling.note(known.cx.now.mono, (from, space), new);
            if over && known.cx.up.contains(&from) {
                self.tell_roots(known, from, space);
            }
        }
    }

    /// Records of groups that a member has carried: those count that a key of the group has signed, whoever has carried them.
    /// Returns those that need not be given again, as they are carried: the owner of another one may be news only later.
    pub(super) fn take_carried(
        &mut self,
        known: &mut Known,
        records: Vec<Record>,
        contents: Vec<Whole>,
    ) -> Vec<(LogId, u64)> {
        let mut settled = Vec::new();
        for record in records {
            settled.extend(self.take_carried_record(known, record));
        }
        for Whole { record, bytes } in contents {
            let (space, collection, apart) = (record.space, record.collection, record.apart);
            let key = RecordKey { id: record.id, owner: Some(record.owner()) };
            let Some((log, stamp)) = self.take_carried_record(known, record) else { continue };
            if let Some(apart) = apart {
                // Of a record that another one has replaced meanwhile nobody needs the bytes.
                self.contents.hold(known, Name { space, collection, key }, (apart.hash, bytes));
            }
            settled.extend([(log, stamp), (bytes_log(log), stamp)]);
        }
        settled
    }

    /// Its place, as it is carried. `None`: it may be taken later.
    fn take_carried_record(&mut self, known: &mut Known, record: Record) -> Option<(LogId, u64)> {
        let Space::Followers(group) = record.space else { return None };
        known.cx.followers.opener(group)?;
        let kind = Collection::of(record.collection)?;
        let at = (record.space, kind);
        let key = RecordKey { id: record.id, owner: Some(record.owner()) };
        let place = (record_log(record.collection.0, key), record.stamp.0);
        if let Some(answers) = answers_now(known, at, record.owner(), record.stamp) {
            self.take(known, record, answers);
            return Some(place);
        }
        has_ended(known, kind, record.stamp).then_some(place)
    }

    /// Those of these records of a group whose bytes apart are here.
    pub(super) fn with_bytes(&self, group: Group, of: &[RecordAt]) -> Vec<RecordAt> {
        let space = Space::Followers(group);
        let is_held = |(collection, key, _): &&RecordAt| {
            let (collection, key) = (*collection, *key);
            self.contents.is_held(&Name { space, collection, key })
        };
        of.iter().filter(is_held).copied().collect()
    }

    /// The records of a group that are not older: of too many the newest.
    pub(super) fn since(&self, group: Group, since: Stamp) -> Vec<RecordAt> {
        let sets = self.spaces.get(&Space::Followers(group)).into_iter().flat_map(Sets::iter);
        let mut found = Vec::new();
        for set in sets.filter(|set| !set.is_empty()) {
            let heads = (0..RECORD_BUCKETS).flat_map(|bucket| set.heads(Bucket(bucket)));
            let new = heads.filter(|head| head.stamp.moment() >= since);
            let kind = set.collection().number;
            found.extend(new.map(|head| (kind, set.key(head.id, head.owner), head.stamp)));
        }
        found.sort_by_key(|(_, _, stamp)| std::cmp::Reverse(*stamp));
        found.truncate(CARRIED_HEADS_MAX);
        found
    }

    /// At every tick: a peer that has given many records may have more.
    pub(super) fn go_on(&mut self, known: &mut Known) {
        let giver =
            self.filling.go_on(known.cx.now.mono).filter(|(peer, _)| known.cx.up.contains(peer));
        if let Some((peer, space)) = giver {
            self.tell_roots(known, peer, space);
        }
    }

    /// The directory has news of a key.
    pub(super) fn on_key(&mut self, known: &mut Known, key: KeyPrint) {
        // Its records were not taken before, and nobody sends them again without being asked.
        self.compared.values_mut().for_each(Compared::begin_anew);
        self.answered_by(known, key);
    }

    /// Entries of the directory do not count any more.
    pub(super) fn on_cut(&mut self, known: &mut Known) {
        let sets = self.spaces.values().flat_map(Sets::iter);
        let owners: BTreeSet<KeyPrint> = sets.flat_map(Set::owners).collect();
        for owner in owners {
            self.answered_by(known, owner);
        }
    }

    /// A record goes by which a key had a shared room: that key owns nothing there any more.
    pub(super) fn on_key_gone(&mut self, known: &mut Known, group: RoomId) {
        let of_group = |space: &Space| matches!(space, Space::Followers(Group::Shared(shared)) if shared.id == group);
        let sets = self.spaces.iter().filter(|(space, _)| of_group(space));
        let owners: BTreeSet<KeyPrint> =
            sets.flat_map(|(_, sets)| sets.iter()).flat_map(Set::owners).collect();
        for owner in owners {
            self.answered_by(known, owner);
        }
    }

    fn answered_by(&mut self, known: &mut Known, owner: KeyPrint) {
        let mut gone = Vec::new();
        for (space, sets) in &mut self.spaces {
            let answers = |kind| answers_for(known, (*space, kind), owner);
            let names = sets.answered_by(owner, answers).into_iter();
            gone.extend(names.map(|(collection, key)| Name { space: *space, collection, key }));
        }
        for name in gone {
            self.forget(known, name);
            self.note_change(name.space);
        }
    }

    // Contents apart.

    /// At the end of a turn, and at every tick: asks for contents that are not here.
    pub(super) fn ask_contents(&mut self, known: &mut Known, tick: bool) {
        if tick { self.contents.ask(known) } else { self.contents.hurry(known) }
    }

    /// So many bytes of texts are kept for accounts that were not presented here.
    pub(super) fn set_carry(&mut self, known: &mut Known, carry: u64) {
        self.contents.set_carry(known, carry);
    }

    /// A peer wants contents.
    pub(super) fn on_want_contents(&self, known: &mut Known, from: NodeId, wanted: WantedContents) {
        if shares(known, from, wanted.space) {
            self.contents.on_want(known, from, wanted);
        }
    }

    /// A peer has contents that this node gave it.
    pub(super) fn on_have_contents(&mut self, known: &mut Known, have: WantedContents) {
        let WantedContents { space, collection, keys } = have;
        let names = keys.into_iter().map(|key| Name { space, collection, key });
        self.contents.on_have(known, names);
    }

    /// A peer sends contents that it was asked for.
    pub(super) fn on_contents(&mut self, known: &mut Known, from: NodeId, sent: SentContents) {
        self.contents.on_sent(known, from, sent);
    }

    // Digests.

    /// The beginning of the digest over all sets that every node has.
    pub(super) fn digest(&mut self) -> Brief {
        self.sets(Space::Mesh).digest()
    }

    fn note_change(&mut self, space: Space) {
        match space {
            Space::Followers(group) => drop(self.changed.insert(group)),
            // Beacons ask for the one digest, and nobody for the other.
            Space::Mesh | Space::Node => {}
        }
    }

    /// At the end of a turn: followers are told new digests from now on.
    pub(super) fn tell_followers(&mut self, known: &mut Known) {
        for group in std::mem::take(&mut self.changed) {
            let digest = self.sets(Space::Followers(group)).digest();
            known.cx.followers.set_records(group, digest);
        }
    }
}

/// Whether a peer has a space that this node has, too: it is told of its records, and believed to send some. Relays have none.
fn shares(known: &Known, peer: NodeId, space: Space) -> bool {
    match space {
        Space::Mesh => !known.cx.is_relay() && !known.cx.relays.contains(&peer),
        Space::Followers(group) => known.cx.followers.of(group).contains(&peer),
        Space::Node => false,
    }
}

/// The node that answers for the owner of a record. `None`: it owns none there. Among the followers of a group its keys and their
/// successors own some: nobody keeps those of others. Keys that were taken out of a shared room own theirs, which do not show: else
/// nodes that have heard of it later would keep others.
///
/// Of an account that has ended there is nothing but the record that says so.
fn answers_for(
    known: &Known,
    (space, kind): (Space, &Collection),
    owner: KeyPrint,
) -> Option<NodeId> {
    let directory = &known.directory;
    if kind.family().is_some() {
        let has_ended = directory.accounts.has_ended(owner) && !kind.founds();
        return directory.accounts.answers(owner).filter(|_| !has_ended);
    }
    match space {
        Space::Followers(group) if !known.was_in(group, owner) => None,
        Space::Mesh | Space::Followers(_) => directory.answers_for(owner),
        Space::Node => Some(known.cx.me),
    }
}

/// The same. `None` also where the record is not taken now. Nobody is to blame: the owner may be news, and the clock may be this
/// node's.
fn answers_now(
    known: &Known,
    at: (Space, &Collection),
    owner: KeyPrint,
    stamp: Stamp,
) -> Option<NodeId> {
    let ahead = u64::try_from(RECORD_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX);
    let latest = Stamp::at(known.cx.now.wall_us.saturating_add(ahead));
    // Above all time is a deletion that is final, and nothing else.
    let (_, kind) = at;
    let moment = if kind.merge == Merge::Final { stamp.moment() } else { stamp };
    answers_for(known, at, owner).filter(|_| moment <= latest && !has_ended(known, kind, stamp))
}

/// Whether the time of a record is over.
fn has_ended(known: &Known, kind: &Collection, stamp: Stamp) -> bool {
    kind.ends(stamp).is_some_and(|end| end <= Stamp::at(known.cx.now.wall_us))
}

/// Takes in what a record says that the engine goes by.
fn learn(known: &mut Known, key: RecordKey, record: &Record) {
    if record.collection == writers::COLLECTION.number {
        known.directory.proofs().learn_writers(key, Some(record));
    }
    if record.collection == members::COLLECTION.number {
        known.on_record.learn(record, record.head(known.cx.mesh).hash);
    }
    if record.collection == retired::COLLECTION.number {
        known.directory.proofs().learn_retired(key, Some(record));
        known.doubted.extend(retired::agent_of(record));
    }
    if record.collection == stopped::COLLECTION.number {
        known.stopped.learn(key, record);
    }
    if record.collection == closing::COLLECTION.number {
        known.closings.insert((record.space, record.id, record.owner()));
    }
    let Some(body) = record.content() else { return };
    let sharing = if record.collection == shared::GIVEN.number {
        minicbor::decode(body).map(Sharing::Given)
    } else if record.collection == shared::TAKEN.number {
        minicbor::decode(body).map(Sharing::Taken)
    } else {
        return;
    };
    if let Ok(sharing) = sharing {
        let told = Told { owner: record.owner(), mailbox: record.by.halves.mailbox, sharing };
        known.directory.shared.learn(key, told);
    }
}

/// `None`: the record is forgotten.
fn change(known: &mut Known, name: Name, record: Option<Arc<Record>>) {
    let (mesh, Name { space, collection, key }) = (known.cx.mesh, name);
    known.cx.change(Change::Record { mesh, space, collection, key, record });
}
