//! Records of accounts, for readers that follow their changes.

use std::{collections::BTreeMap, sync::Arc};

use mesh::{
    api::{
        account::{Mark, RecordNews, RecordView},
        batch::Change,
    },
    name::{
        id::{KeyPrint, MeshId},
        key::KeySecret,
    },
    records::finder::{JOBS, Job, Pricing, SEEN, Seen},
    wire::record::{CollectionNumber, Draft, Record, RecordId, RecordKey, Space, Stamp},
};
use store::{
    Store,
    followed::{Sought, has_news, news, page, record},
    limits::RECORDS_GONE_KEPT,
    testing::CrashingBackend,
};

use crate::rows::*;

fn account(n: u8) -> KeySecret {
    KeySecret::of(&format!("account {n:_>40}"))
}

fn job(by: &KeySecret, nonce: u64, title: Option<&str>, at: u64) -> Record {
    let mut drawn = [0; 16];
    drawn[..8].copy_from_slice(&nonce.to_be_bytes());
    let job = Job {
        nonce: drawn,
        title: title.unwrap_or_default().into(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Free,
        active: true,
        metadata: "{}".into(),
        created: Stamp::at(1),
    };
    let (collection, id) = (JOBS.number, job.id(by.print()));
    let body = title.map(|_| job.encode());
    let stamp = if body.is_some() { Stamp::at(at) } else { Stamp::at(at).for_ever() };
    Draft { space: Space::Mesh, collection, id, body }.sign(by, MESH, stamp).unwrap()
}

fn seen(by: &KeySecret, wall_ms: u64) -> Record {
    let (collection, id) = (SEEN.number, Seen::id(by.print()));
    let body = Some(Seen { wall_ms }.encode());
    Draft { space: Space::Mesh, collection, id, body }.sign(by, MESH, Stamp::at(wall_ms)).unwrap()
}

fn change(record: &Record, there: bool) -> Change {
    let Record { space, collection, id, .. } = *record;
    let key = RecordKey { id, owner: Some(record.owner()) };
    let kept = there.then(|| Arc::new(record.clone()));
    Change::Record { mesh: MESH, space, collection, key, record: kept }
}

const BOTH: [CollectionNumber; 2] = [CollectionNumber(33), CollectionNumber(35)];

/// A reader that keeps what it is told.
#[derive(Default)]
struct Follower {
    mark: Mark,
    index: BTreeMap<(CollectionNumber, RecordId, KeyPrint), RecordView>,
    begun: usize,
}

impl Follower {
    fn read(&mut self, store: &Store, limit: usize) -> RecordNews {
        let told = news(&store.reader(), MESH, &BOTH, self.mark, limit).unwrap();
        if told.anew {
            self.index.clear();
            self.begun += 1;
        }
        for view in &told.records {
            let place = (view.collection, view.id, view.owner);
            if view.is_gone() {
                self.index.remove(&place);
            } else {
                self.index.insert(place, view.clone());
            }
        }
        self.mark = told.mark;
        told
    }

    fn catch_up(&mut self, store: &Store, limit: usize) {
        while self.read(store, limit).more {}
    }
}

/// All that there is, by reading it.
fn all(store: &Store) -> Vec<RecordView> {
    let mut found = Vec::new();
    for collection in BOTH {
        let mut after = None;
        loop {
            let sought = Sought { collection, owner: None, first: &[], after, limit: 3 };
            let told = page(&store.reader(), MESH, &sought).unwrap();
            after = told.records.last().map(|last| (last.id, last.owner));
            found.extend(told.records);
            if !told.more {
                break;
            }
        }
    }
    found
}

#[test]
fn a_follower_is_told_what_has_changed_and_what_is_gone() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let (ann, bob) = (account(1), account(2));
    let mut reader = Follower::default();
    assert!(!has_news(&store.reader(), reader.mark), "there is nothing");
    store
        .commit(&[change(&job(&ann, 1, Some("one"), 1), true), change(&seen(&bob, 2), true)])
        .unwrap();
    assert!(has_news(&store.reader(), reader.mark));
    assert_eq!(reader.read(&store, 10).records.len(), 2);
    assert!(!has_news(&store.reader(), reader.mark));
    assert_eq!(reader.read(&store, 10), RecordNews { mark: reader.mark, ..RecordNews::default() });
    // Each once, as it is now.
    store.commit(&[change(&job(&ann, 1, Some("two"), 3), true)]).unwrap();
    store.commit(&[change(&job(&ann, 1, None, 4), true)]).unwrap();
    let told = reader.read(&store, 10);
    let [deleted] = told.records.as_slice() else { panic!("{told:?}") };
    assert!(deleted.body.is_none() && !deleted.is_gone() && deleted.stamp.is_for_ever());
    assert_eq!(deleted.halves, Some(ann.halves()));
    store.commit(&[change(&job(&ann, 1, None, 4), false), change(&seen(&ann, 1), false)]).unwrap();
    let told = reader.read(&store, 10);
    assert!(matches!(told.records.as_slice(), [gone] if gone.is_gone() && gone.id == deleted.id));
    // One that begins is told nothing of it; and it comes back.
    let mut other = Follower::default();
    assert_eq!(other.read(&store, 10).records.len(), 1);
    store.commit(&[change(&job(&ann, 1, Some("again"), 9), true)]).unwrap();
    for follower in [&mut reader, &mut other] {
        assert_eq!(follower.read(&store, 10).records.len(), 1);
    }
    let place = (JOBS.number, deleted.id, ann.print());
    let found = record(&store.reader(), MESH, place).unwrap();
    assert_eq!(found.as_ref(), reader.index.get(&place));
    assert_eq!(record(&store.reader(), MeshId([9; 16]), place).unwrap(), None);
    assert!(store.reader().check().unwrap().is_sound());
}

#[test]
fn whenever_a_follower_reads_it_comes_to_have_all_that_there_is() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let accounts = [account(1), account(2), account(3)];
    let mut followers: Vec<Follower> = (0..3).map(|_| Follower::default()).collect();
    let mut state = 5_u64;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for step in 0..300 {
        let by = &accounts[usize::try_from(draw(3)).unwrap()];
        let changes = (0..=draw(3)).map(|_| match draw(10) {
            0..=4 => change(&job(by, draw(6), Some("text"), step), true),
            5 => change(&job(by, draw(6), None, step), true),
            6 => change(&seen(by, step), true),
            7 => change(&seen(by, step), false),
            _ => change(&job(by, draw(6), None, step), false),
        });
        store.commit(&changes.collect::<Vec<_>>()).unwrap();
        for follower in &mut followers {
            if draw(4) == 0 {
                follower.read(&store, usize::try_from(draw(4)).unwrap());
            }
        }
    }
    let all = all(&store);
    assert!(!all.is_empty());
    for mut follower in followers {
        follower.catch_up(&store, 2);
        assert_eq!(follower.index.into_values().collect::<Vec<_>>(), all);
        assert!(!has_news(&store.reader(), follower.mark));
        assert_eq!(follower.begun, 0);
    }
    assert!(store.reader().check().unwrap().is_sound());
}

/// Records that nobody signed: the store does not look.
#[test]
fn a_follower_that_comes_after_too_many_are_gone_begins_anew() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    let one = job(&account(1), 1, Some("one"), 1);
    let nth = |n: u64| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_be_bytes());
        Record { id: RecordId(id), ..one.clone() }
    };
    let many = RECORDS_GONE_KEPT + 5;
    let all = |there| -> Vec<Change> { (0..many).map(|n| change(&nth(n), there)).collect() };
    store.commit(&all(true)).unwrap();
    let stays = seen(&account(2), 7);
    store.commit(&[change(&stays, true)]).unwrap();
    let (mut early, mut late) = (Follower::default(), Follower::default());
    early.catch_up(&store, 1_000);
    assert_eq!(early.index.len() as u64, many + 1);
    store.commit(&all(false)).unwrap();
    // Numbers go on where they were, also after a start.
    drop(store);
    let store = Store::on(disk).unwrap();
    early.catch_up(&store, 1_000);
    late.catch_up(&store, 1_000);
    assert_eq!((early.begun, late.begun), (1, 0));
    for follower in [&early, &late] {
        assert_eq!(follower.index.keys().map(|place| place.1).collect::<Vec<_>>(), [stays.id]);
        assert!(!has_news(&store.reader(), follower.mark));
    }
    // One that was told in time is told what is gone.
    assert_eq!(early.mark.at, 2 * many + 1);
}

#[test]
fn a_page_is_of_one_owner_or_one_beginning_and_goes_on_where_the_last_one_ended() {
    let mut store = Store::on(CrashingBackend::new(0)).unwrap();
    let (ann, bob) = (account(1), account(2));
    let mut ids = Vec::new();
    for nonce in 0..5 {
        for by in [&ann, &bob] {
            let record = job(by, nonce, Some("text"), 1);
            ids.push((record.id, record.owner()));
            store.commit(&[change(&record, true)]).unwrap();
        }
    }
    ids.sort_unstable();
    let reader = store.reader();
    let find = |owner, first: &[u8], after, limit| {
        let sought = Sought { collection: JOBS.number, owner, first, after, limit };
        let told = page(&reader, MESH, &sought).unwrap();
        let found: Vec<_> = told.records.iter().map(|view| (view.id, view.owner)).collect();
        (found, told.more)
    };
    assert_eq!(find(None, &[], None, 100), (ids.clone(), false));
    assert_eq!(find(None, &[], None, 10), (ids.clone(), false));
    assert_eq!(find(None, &[], None, 9), (ids[..9].to_vec(), true));
    assert_eq!(find(None, &[], Some(ids[8]), 9), (ids[9..].to_vec(), false));
    let own: Vec<_> = ids.iter().copied().filter(|(_, owner)| *owner == ann.print()).collect();
    assert_eq!(find(Some(ann.print()), &[], None, 100), (own, false));
    let first = ids[4].0.0;
    assert_eq!(find(None, &first, None, 100), (vec![ids[4]], false));
    assert_eq!(find(None, &first, Some(ids[4]), 100), (Vec::new(), false));
    assert_eq!(find(None, &first, Some(ids[9]), 100), (Vec::new(), false));
}
