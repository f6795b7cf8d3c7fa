//! Records of all nodes: writing them, taking in those of others, and comparing them with peers.
//!
//! Their contents are on the disk alone, and readers get them from there. Here are the heads: what a record replaces, and
//! which one falls out, has to be known before it is written, and the core reads no disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::known::{Known, NOT_WRITABLE};
use crate::{
    api::{
        batch::{Change, StoredRecord},
        boundary::Effect,
        command::{Caller, Outcome, Refused},
    },
    limits::{
        GOSSIP_BYTES_MAX, RECORD_AHEAD_MAX, RECORDS_COMPARE_EVERY, RECORDS_COMPARE_EVERY_MAX,
    },
    name::{
        id::{Hash, KeyPrint, NodeId},
        key::KeySecret,
    },
    records::{
        collection::Collection,
        comparison::{self, Difference, Part},
        digest::{self, Bucket, BucketDigest},
        pair,
        profile::{self, ProfileUpdate},
        set::{Fate, Offer, Set},
    },
    wire::{
        comparing::{Comparing, Step},
        message::{Beacon, Message},
        record::{
            CollectionNumber, Draft, Record, RecordHead, RecordId, RecordKey, Root, Space, Stamp,
        },
    },
};

/// Records in one gossip message: leaves room for its frame.
const RECORDS_BYTES_MAX: usize = GOSSIP_BYTES_MAX - 2 * 1024;
/// A record without its content takes less.
const RECORD_OVERHEAD_BYTES: usize = 256;

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

/// The beginning of a digest, as beacons have it.
type Brief = [u8; 16];

/// See the module.
#[derive(Debug)]
pub(super) struct Records {
    sets: BTreeMap<CollectionNumber, Set>,
    /// Over all sets; `None`: something has changed.
    digest: Option<Brief>,
    compared: BTreeMap<NodeId, Compared>,
    /// Buckets with which the next heads for a peer begin, where the last ones did not reach all that differed.
    rest: BTreeMap<(NodeId, CollectionNumber), Bucket>,
    /// Records of pairs that came in this turn.
    new_pairs: Vec<(KeyPrint, RecordId)>,
}

/// A profile that is to be changed.
#[derive(Debug)]
pub(super) struct Profiled {
    pub(super) signer: Option<Arc<KeySecret>>,
    pub(super) update: ProfileUpdate,
}

impl Records {
    pub(super) fn new() -> Records {
        let sets = Collection::all_in(Space::Mesh).map(|kind| (kind.number, Set::new(kind)));
        Records {
            sets: sets.collect(),
            digest: None,
            compared: BTreeMap::new(),
            rest: BTreeMap::new(),
            new_pairs: Vec::new(),
        }
    }

    /// What the store has. Records that are not kept any more go: the directory may have changed in the turn that was
    /// lost with the node.
    pub(super) fn restore(&mut self, known: &mut Known, stored: Vec<StoredRecord>) {
        for StoredRecord { space: Space::Mesh, collection, head, deleted } in stored {
            let Some(set) = self.sets.get_mut(&collection) else { continue };
            let key = set.key(head.id, head.owner);
            let answers = known.directory.answers_for(head.owner);
            let fate = answers.map(|answers| set.offer(Offer { head, deleted, answers }));
            let gone = match fate {
                Some(Fate::Kept(gone)) => gone,
                Some(Fate::Passed) | None => Some(key),
            };
            if let Some(key) = gone {
                change(known, collection, key, None);
            }
        }
    }

    // Writing.

    pub(super) fn set_profile(
        &mut self,
        known: &mut Known,
        caller: &Caller,
        profiled: Profiled,
    ) -> Result<Outcome, Refused> {
        known.caller(caller)?;
        let Profiled { signer, update } = profiled;
        update.check()?;
        if !known.directory.proofs().owns(caller.key, &caller.agent) {
            return Err(impossible(NOT_OWNED));
        }
        let cards = self.sets.get(&profile::CARDS.number);
        let first = profile::cards_of(&caller.agent);
        let cards: Vec<_> =
            cards.into_iter().flat_map(|set| set.live_of(caller.key, &first)).collect();
        let drafts = update.drafts(&caller.agent, &cards);
        self.write(known, caller.key, signer.as_deref(), drafts)?;
        Ok(Outcome::Done)
    }

    /// Signs records and takes them in, all of them or none. They are durable with the turn, and told to others then.
    pub(super) fn write(
        &mut self,
        known: &mut Known,
        key: KeyPrint,
        signer: Option<&KeySecret>,
        drafts: Vec<Draft>,
    ) -> Result<(), Refused> {
        let signer = signer.filter(|signer| signer.print() == key).ok_or(impossible(NO_KEY))?;
        let answers = known.directory.answers_for(key).ok_or(impossible(NOT_LISTED))?;
        if known.cx.out {
            return Err(Refused::Full(NOT_WRITABLE.to_owned()));
        }
        self.check_bounds(key, answers, &drafts)?;
        let mesh = known.cx.mesh;
        let mut written = Vec::new();
        for draft in drafts {
            let Some(set) = self.sets.get(&draft.collection) else { continue };
            let before = set.head(set.key(draft.id, key));
            let stamp = Stamp::after(known.cx.now.wall_us, before.map(|head| head.stamp));
            let record = draft.sign(signer, mesh, stamp);
            let record = record.map_err(|short| Refused::Impossible(short.to_string()))?;
            if !set.wants(&record.head(mesh), answers) {
                // A record that others have signed for a time to come, or this node before its clock was set back.
                let text = "the clock of this node is behind the records of this key";
                return Err(impossible(text));
            }
            written.push(record);
        }
        for record in &written {
            self.take(known, record.clone(), answers);
        }
        tell_all(known, written);
        Ok(())
    }

    /// A client's records are refused before a set drops others for them.
    fn check_bounds(
        &self,
        key: KeyPrint,
        answers: NodeId,
        drafts: &[Draft],
    ) -> Result<(), Refused> {
        for (number, set) in &self.sets {
            let is_new = |draft: &&Draft| {
                draft.collection == *number && set.head(set.key(draft.id, key)).is_none()
            };
            let new = drafts.iter().filter(is_new).count();
            let kind = set.collection();
            let of_key = (set.count_of(key), kind.owner_max, "the key");
            let of_node = (set.count_at(answers), kind.node_max, "the node that minted the key");
            for (count, max, whose) in [of_key, of_node] {
                if new > 0 && count + new > max {
                    let text = format!(
                        "{whose} has {count} records of {}, deleted ones included, and may have {max}",
                        kind.name
                    );
                    return Err(Refused::Full(text));
                }
            }
        }
        Ok(())
    }

    /// Keeps a record, if it is one of those that are kept. Whether it is.
    fn take(&mut self, known: &mut Known, record: Record, answers: NodeId) -> bool {
        let collection = record.collection;
        let Some(set) = self.sets.get_mut(&collection) else { return false };
        let head = record.head(known.cx.mesh);
        let deleted = record.body.is_none();
        let is_pair = collection == pair::COLLECTION.number;
        let is_new = is_pair && set.head(set.key(head.id, head.owner)).is_none();
        let Fate::Kept(gone) = set.offer(Offer { head, deleted, answers }) else { return false };
        self.new_pairs.extend(is_new.then_some((head.owner, head.id)));
        self.digest = None;
        let key = set.key(head.id, head.owner);
        change(known, collection, key, Some(Arc::new(record)));
        if let Some(key) = gone {
            change(known, collection, key, None);
        }
        true
    }

    // Pairs.

    /// Whether a key has said that it is half of a pair.
    pub(super) fn has_pair(&self, owner: KeyPrint, id: RecordId) -> bool {
        let set = self.sets.get(&pair::COLLECTION.number);
        set.is_some_and(|set| set.head(set.key(id, owner)).is_some())
    }

    /// Keys that have said so of any.
    pub(super) fn pair_owners(&self) -> impl Iterator<Item = KeyPrint> {
        self.sets.get(&pair::COLLECTION.number).into_iter().flat_map(Set::owners)
    }

    /// Records of pairs that have come since the last time.
    pub(super) fn take_new_pairs(&mut self) -> Vec<(KeyPrint, RecordId)> {
        std::mem::take(&mut self.new_pairs)
    }

    // Records of others.

    /// Records that a peer sends, or passes on.
    pub(super) fn on_records(&mut self, known: &mut Known, records: Vec<Record>) {
        for record in records {
            if let Some(answers) = answers_now(known, record.owner(), record.stamp) {
                self.take(known, record, answers);
            }
        }
    }

    /// The directory has news of a key.
    pub(super) fn on_key(&mut self, known: &mut Known, key: KeyPrint) {
        // Its records were not taken before, and nobody sends them again without being asked.
        self.compared.values_mut().for_each(Compared::begin_anew);
        let answers = known.directory.answers_for(key);
        self.answered_by(known, key, answers);
    }

    /// Entries of the directory do not count any more.
    pub(super) fn on_cut(&mut self, known: &mut Known) {
        let owners: BTreeSet<KeyPrint> = self.sets.values().flat_map(Set::owners).collect();
        for owner in owners {
            let answers = known.directory.answers_for(owner);
            self.answered_by(known, owner, answers);
        }
    }

    fn answered_by(&mut self, known: &mut Known, owner: KeyPrint, answers: Option<NodeId>) {
        for (collection, set) in &mut self.sets {
            let gone = set.answered_by(owner, answers);
            if !gone.is_empty() {
                self.digest = None;
            }
            for key in gone {
                let collection = *collection;
                change(known, collection, key, None);
            }
        }
    }

    // Comparing.

    /// The beginning of the digest over all sets.
    pub(super) fn digest(&mut self) -> Brief {
        if let Some(digest) = self.digest {
            return digest;
        }
        let roots: Vec<(u16, Hash)> =
            self.sets.iter_mut().map(|(number, set)| (number.0, set.root())).collect();
        let mut brief = Brief::default();
        let all = digest::of_roots(&roots);
        brief.copy_from_slice(&all[..16]);
        self.digest = Some(brief);
        brief
    }

    /// A peer is there. One of the two begins.
    pub(super) fn on_peer_up(&mut self, known: &mut Known, peer: NodeId) {
        if known.cx.me < peer {
            self.tell_roots(known, peer);
        }
    }

    pub(super) fn forget_peer(&mut self, peer: NodeId) {
        self.compared.remove(&peer);
        self.rest.retain(|(of, _), _| *of != peer);
    }

    /// A beacon says whether a peer has the same records.
    pub(super) fn on_beacon(&mut self, known: &mut Known, from: NodeId, beacon: &Beacon) {
        // Only a peer that is connected can be compared with; of others the digest is hearsay.
        if beacon.node != from || !known.cx.up.contains(&from) {
            return;
        }
        let digests = (beacon.records, self.digest());
        if digests.0 == digests.1 {
            self.compared.remove(&from);
            return;
        }
        let now = known.cx.now.mono;
        // The other one begins as a rule, so that the two do not do the same work at the same time.
        let first = if known.cx.me < from { 1 } else { 2 };
        let every = RECORDS_COMPARE_EVERY * first;
        let new = Compared { at: now, every, digests };
        let compared = self.compared.entry(from).or_insert(new);
        if now < compared.at + compared.every {
            return;
        }
        compared.every = if compared.digests == digests {
            (compared.every * 2).min(RECORDS_COMPARE_EVERY_MAX)
        } else {
            every
        };
        (compared.at, compared.digests) = (now, digests);
        self.tell_roots(known, from);
    }

    fn tell_roots(&mut self, known: &mut Known, peer: NodeId) {
        let root = |(number, set): (&CollectionNumber, &mut Set)| Root {
            collection: *number,
            digest: set.root(),
        };
        let roots = self.sets.iter_mut().map(root).collect();
        say(known, peer, Step::Roots(roots));
    }

    /// A peer's step of a comparison.
    pub(super) fn on_comparing(&mut self, known: &mut Known, from: NodeId, comparing: Comparing) {
        match (comparing.space, comparing.step) {
            (Space::Mesh, Step::Roots(roots)) => self.on_roots(known, from, roots),
            (Space::Mesh, Step::Buckets { collection, buckets }) => {
                self.on_buckets(known, from, collection, &buckets);
            }
            (Space::Mesh, Step::Heads { collection, parts }) => {
                self.on_heads(known, from, collection, &parts);
            }
            (Space::Mesh, Step::Want { collection, keys }) => {
                self.on_want(known, from, collection, keys);
            }
        }
    }

    /// A peer's digests: it is told those of the buckets of each set that differs.
    fn on_roots(&mut self, known: &mut Known, from: NodeId, roots: Vec<Root>) {
        // Each set once: an answer is much larger than a question.
        let roots: BTreeMap<CollectionNumber, Hash> =
            roots.into_iter().map(|root| (root.collection, root.digest)).collect();
        for (collection, theirs) in roots {
            let Some(set) = self.sets.get_mut(&collection) else { continue };
            if set.root() != theirs {
                let buckets = set.buckets();
                say(known, from, Step::Buckets { collection, buckets });
            }
        }
    }

    /// The digests of a peer's buckets: it is told the heads in those that differ.
    fn on_buckets(
        &mut self,
        known: &mut Known,
        from: NodeId,
        collection: CollectionNumber,
        theirs: &[BucketDigest],
    ) {
        let Some(set) = self.sets.get_mut(&collection) else { return };
        let buckets = comparison::differing(&set.buckets(), theirs);
        let place = (from, collection);
        let begin = self.rest.get(&place).copied().unwrap_or(Bucket(0));
        let told = comparison::pages(set, &buckets, begin);
        match told.rest {
            Some(rest) => self.rest.insert(place, rest),
            None => self.rest.remove(&place),
        };
        for parts in told.pages.into_iter().filter(|parts| !parts.is_empty()) {
            say(known, from, Step::Heads { collection, parts });
        }
    }

    /// A peer's heads: each of the two is sent what it lacks.
    fn on_heads(
        &self,
        known: &mut Known,
        from: NodeId,
        collection: CollectionNumber,
        parts: &[Part],
    ) {
        let Some(set) = self.sets.get(&collection) else { return };
        let mut found = Difference::default();
        let answers = |head: &RecordHead| answers_now(known, head.owner, head.stamp);
        for part in parts {
            comparison::compare(set, part, answers, &mut found);
        }
        let Difference { wanted: keys, given } = found;
        if !keys.is_empty() {
            say(known, from, Step::Want { collection, keys });
        }
        give(known, from, collection, given);
    }

    /// A peer wants records.
    fn on_want(
        &self,
        known: &mut Known,
        from: NodeId,
        collection: CollectionNumber,
        keys: Vec<RecordKey>,
    ) {
        let Some(set) = self.sets.get(&collection) else { return };
        let keys: BTreeSet<RecordKey> = keys.into_iter().collect();
        let held = keys.into_iter().filter(|key| set.head(*key).is_some()).collect();
        give(known, from, collection, held);
    }
}

impl Compared {
    /// Something has changed that may be why the two differed.
    fn begin_anew(&mut self) {
        self.every = RECORDS_COMPARE_EVERY;
    }
}

fn say(known: &mut Known, to: NodeId, step: Step) {
    let space = Space::Mesh;
    known.cx.send(to, Message::Comparing(Comparing { space, step }));
}

/// `None`: the record is forgotten.
fn change(
    known: &mut Known,
    collection: CollectionNumber,
    key: RecordKey,
    record: Option<Arc<Record>>,
) {
    let (mesh, space) = (known.cx.mesh, Space::Mesh);
    known.cx.change(Change::Record { mesh, space, collection, key, record });
}

fn give(known: &mut Known, to: NodeId, collection: CollectionNumber, keys: Vec<RecordKey>) {
    if !keys.is_empty() {
        let space = Space::Mesh;
        known.cx.effects.push(Effect::SendRecords { to, space, collection, keys });
    }
}

/// The node that answers for a record's owner. `None`: the record is not taken now. Nobody is to blame: the owner may be news,
/// and the clock may be this node's.
fn answers_now(known: &Known, owner: KeyPrint, stamp: Stamp) -> Option<NodeId> {
    let ahead = u64::try_from(RECORD_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX);
    let latest = Stamp::at(known.cx.now.wall_us.saturating_add(ahead));
    known.directory.answers_for(owner).filter(|_| stamp <= latest)
}

/// Tells all nodes of records, in messages of the size of gossip.
fn tell_all(known: &mut Known, records: Vec<Record>) {
    let mut parts: Vec<Vec<Record>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.size() + RECORD_OVERHEAD_BYTES;
        match parts.last_mut() {
            Some(part) if bytes + size <= RECORDS_BYTES_MAX => {
                bytes += size;
                part.push(record);
            }
            Some(_) | None => {
                bytes = size;
                parts.push(vec![record]);
            }
        }
    }
    for part in parts {
        known.cx.broadcast(None, Message::Records(part));
    }
}

fn impossible(text: &str) -> Refused {
    Refused::Impossible(text.to_owned())
}

const NO_KEY: &str = "this node checks no keys: nothing can be signed for you here";
const NOT_LISTED: &str = "your key is not in the mesh's directory, so other nodes could not check what it signs: the directory is full, or this node has no part in the mesh";
const NOT_OWNED: &str = "your key does not own your agent id, so nobody could check that the profile is yours: register with an id of your own";
