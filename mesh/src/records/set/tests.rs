//! Sets against a model: a function of all records that were ever offered, that knows nothing of their order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::records::collection::Owners;
use crate::{
    name::id::sha256,
    records::{
        collection::Place,
        comparison::{Difference, compare, differing, pages},
    },
    wire::record::CollectionNumber,
};

const fn collection(writer: Writer, merge: Merge) -> Collection {
    Collection {
        number: CollectionNumber(9_999),
        name: "test",
        place: Place::Mesh,
        writer,
        merge,
        body_bytes_max: 100,
        apart_bytes_max: 0,
        in_memory: false,
        keeps_replaced: false,
        inherited: false,
        // Four are kept, and ten.
        owner_max: 3,
        node_max: 9,
        owners: Owners::Keys,
        names: |_, _| None,
    }
}

static LATEST: Collection = collection(Writer::Owner, Merge::Latest);
static END: Collection = collection(Writer::Owner, Merge::End);
static SHARED: Collection = collection(Writer::Participants, Merge::Latest);
static FINAL: Collection = collection(Writer::Owner, Merge::Final);
static ALL: [&Collection; 3] = [&LATEST, &END, &SHARED];

/// Two nodes answer for the owners, by turns.
fn node_of(owner: KeyPrint) -> NodeId {
    NodeId([owner.0[0] % 2; 32])
}

/// Few ids, owners and stamps, so that they meet.
fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let one = (0..6_u8, 0..9_u8, 0..24_u64, 0..3_u8).prop_map(|(id, owner, stamp, says)| {
        let (id, owner) = (RecordId([id; 16]), KeyPrint([owner; 16]));
        // Of everything that is said: two records of one hash are one.
        let hash = sha256(&[&id.0, &owner.0, &stamp.to_be_bytes(), &[says]]);
        let head = RecordHead { id, owner, stamp: Stamp(stamp), hash };
        Offer { head, deleted: says == 0, answers: node_of(owner) }
    });
    proptest::collection::vec(one, 0..60)
}

/// The records that count, by owner: each owner's from the newest on, as many as one may have.
fn counting(set: &Set, offers: &[Offer]) -> BTreeMap<KeyPrint, Vec<(RecordKey, RecordHead)>> {
    let mut of_key: BTreeMap<RecordKey, RecordHead> = BTreeMap::new();
    for Offer { head, .. } in offers {
        let known = of_key.entry(set.key(head.id, head.owner)).or_insert(*head);
        let order = |head: &RecordHead| (head.stamp, head.hash);
        let later = order(head) > order(known);
        if later == (set.collection.merge != Merge::End) && order(head) != order(known) {
            *known = *head;
        }
    }
    let mut of_owner: BTreeMap<KeyPrint, Vec<(RecordKey, RecordHead)>> = BTreeMap::new();
    for (key, head) in of_key {
        of_owner.entry(head.owner).or_default().push((key, head));
    }
    for heads in of_owner.values_mut() {
        heads.sort_by_key(|(key, head)| Reverse((set.rank(head.stamp), *key)));
        heads.truncate(set.owner_kept());
    }
    of_owner
}

/// What is to be kept of these, and nothing else.
fn model(collection: &'static Collection, offers: &[Offer]) -> BTreeSet<(RecordKey, Stamp, Hash)> {
    let set = Set::new(collection);
    let mut of_group: BTreeMap<Option<NodeId>, Vec<Vec<(RecordKey, RecordHead)>>> = BTreeMap::new();
    for (owner, heads) in counting(&set, offers) {
        of_group.entry(set.group(node_of(owner))).or_default().push(heads);
    }
    for owners in of_group.values_mut() {
        while owners.iter().flatten().count() > collection.node_kept() {
            let most = owners.iter_mut().max_by_key(|heads| {
                let oldest = heads.last().map(|(key, head)| (set.rank(head.stamp), *key));
                let many = if collection.writer == Writer::Owner { heads.len() } else { 0 };
                // One without any has nothing to lose.
                oldest.map(|oldest| (many, Reverse(oldest)))
            });
            most.expect("they have too many").pop();
        }
    }
    let kept = of_group.into_values().flatten().flatten();
    kept.map(|(key, head)| (key, head.stamp, head.hash)).collect()
}

fn all_of(set: &Set) -> BTreeSet<(RecordKey, Stamp, Hash)> {
    heads_of(set).map(|head| (set.key(head.id, head.owner), head.stamp, head.hash)).collect()
}

fn heads_of(set: &Set) -> impl Iterator<Item = RecordHead> {
    (0..crate::limits::RECORD_BUCKETS).flat_map(|bucket| set.heads(Bucket(bucket)))
}

fn of_offers(collection: &'static Collection, offers: &[Offer]) -> Set {
    let mut set = Set::new(collection);
    for offer in offers {
        set.offer(*offer);
    }
    set
}

/// One compares with the other, as nodes do, and takes what it lacks; the other is given what it lacks.
fn meet(mine: &mut Set, theirs: &mut Set, known: &BTreeMap<(RecordKey, Hash), Offer>) {
    for _ in 0..20 {
        let buckets = differing(&mine.buckets(), &theirs.buckets());
        if buckets.is_empty() {
            return;
        }
        let told = pages(theirs, &buckets, Bucket(0));
        assert_eq!(told.rest, None, "they are few");
        let mut found = Difference::default();
        for part in told.pages.iter().flatten() {
            compare(mine, part, |head| Some(node_of(head.owner)), &mut found);
        }
        let of = |set: &Set, key: RecordKey| {
            let head = set.head(key).expect("it was named");
            known[&(key, head.hash)]
        };
        let wanted: Vec<Offer> = found.wanted.iter().map(|key| of(theirs, *key)).collect();
        let given: Vec<Offer> = found.given.iter().map(|key| of(mine, *key)).collect();
        // The other one may have fallen out meanwhile, or falls out here.
        for offer in wanted {
            mine.offer(offer);
        }
        for offer in given {
            theirs.offer(offer);
        }
    }
    panic!("they never come to be alike");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_kept_is_a_function_of_all_that_was_offered(offers in offers(), twice: bool) {
        for collection in ALL {
            let set = of_offers(collection, &offers);
            let expected = model(collection, &offers);
            prop_assert_eq!(all_of(&set), expected.clone(), "{:?}", collection);
            let mut backwards: Vec<Offer> = offers.iter().rev().copied().collect();
            if twice {
                backwards.extend(offers.iter());
            }
            prop_assert_eq!(all_of(&of_offers(collection, &backwards)), expected);
        }
    }

    #[test]
    fn a_deletion_for_ever_wins_in_whichever_order_it_comes(offers in offers(), more in offers()) {
        let stamped = |offer: Offer| {
            let Offer { head, deleted, answers } = offer;
            let stamp = if deleted { head.stamp.for_ever() } else { head.stamp };
            Offer { head: RecordHead { stamp, ..head }, deleted, answers }
        };
        let all: Vec<Offer> = offers.iter().chain(&more).copied().map(stamped).collect();
        let backwards: Vec<Offer> = all.iter().rev().copied().collect();
        let (set, other) = (of_offers(&FINAL, &all), of_offers(&FINAL, &backwards));
        prop_assert_eq!(all_of(&set), model(&FINAL, &all));
        prop_assert_eq!(all_of(&set), all_of(&other));
        for offer in all.iter().filter(|offer| offer.deleted) {
            prop_assert!(!set.is_live(set.key(offer.head.id, offer.head.owner)));
        }
        // Two that have heard some of it each, and meet.
        let (mut mine, mut theirs) = (of_offers(&FINAL, &all[..offers.len()]), of_offers(&FINAL, &all[offers.len()..]));
        let known = all.iter().map(|offer| ((set.key(offer.head.id, offer.head.owner), offer.head.hash), *offer));
        // Of one hash and two stamps there is one here that is deleted: records have the stamp in their hash.
        meet(&mut mine, &mut theirs, &known.collect());
        prop_assert_eq!(all_of(&mine), all_of(&set));
        prop_assert_eq!(all_of(&theirs), all_of(&set));
    }

    #[test]
    fn a_set_that_is_filled_is_as_one_to_which_each_was_offered(some in offers(), more in offers(), of_store: bool) {
        for collection in ALL {
            let mut some = some.clone();
            let key = |offer: &Offer| (offer.head.id, Some(offer.head.owner).filter(|_| collection.writer == Writer::Owner));
            if of_store {
                some.sort_by_key(key);
                some.dedup_by_key(|offer| key(offer));
            }
            let (mut offered, mut filled) = (of_offers(collection, &some), Set::new(collection));
            let gone: BTreeSet<RecordKey> = filled.fill(&some).into_iter().collect();
            prop_assert_eq!(all_of(&filled), all_of(&offered));
            let keys = some.iter().map(|offer| filled.key(offer.head.id, offer.head.owner));
            prop_assert_eq!(gone, keys.filter(|key| filled.head(*key).is_none()).collect());
            prop_assert_eq!(filled.root(), offered.root());
            for offer in more.iter().chain(&some) {
                prop_assert_eq!(filled.offer(*offer), offered.offer(*offer));
            }
            prop_assert_eq!(filled.root(), offered.root());
        }
    }

    #[test]
    fn an_owner_with_no_more_than_its_fair_share_loses_nothing_to_others(offers in offers()) {
        for collection in [&LATEST, &END] {
            let set = of_offers(collection, &offers);
            let all = counting(&set, &offers);
            for (owner, heads) in &all {
                let of_node = || all.keys().filter(|other| node_of(**other) == node_of(*owner));
                let (kept, share) = (set.count_of(*owner), collection.node_kept() / of_node().count());
                prop_assert!(kept >= heads.len().min(share));
                let most = of_node().map(|other| set.count_of(*other)).max().unwrap_or_default();
                prop_assert!(kept == heads.len() || kept + 1 >= most, "others have more");
            }
        }
    }

    #[test]
    fn clients_that_are_told_that_there_is_room_lose_nothing(offers in offers(), owner in 0..9_u8, more in 1..4_usize) {
        let (owner, mut set) = (KeyPrint([owner; 16]), of_offers(&LATEST, &offers));
        let then = set.count_of(owner) + more;
        let full = set.count_at(node_of(owner)) + more > LATEST.node_max;
        let room = set.has_room_at(node_of(owner), owner, more);
        prop_assert!(room || full);
        if room && then <= LATEST.owner_max {
            for id in 0..more {
                let id = RecordId([u8::try_from(100 + id).expect("few"); 16]);
                let head = RecordHead { id, owner, stamp: Stamp(100), hash: [1; 32] };
                let fate = set.offer(Offer { head, deleted: false, answers: node_of(owner) });
                // Another owner loses one, if anybody does, and it is one that has more.
                let Fate::Kept(gone) = fate else { panic!("{fate:?}") };
                let loser = gone.and_then(|gone| gone.owner);
                prop_assert!(loser.is_none_or(|loser| loser != owner && set.count_of(loser) >= set.count_of(owner)));
            }
            prop_assert_eq!(set.count_of(owner), then);
        }
    }

    #[test]
    fn a_record_that_falls_out_of_some_falls_out_of_more_and_is_not_missed(some in offers(), more in offers()) {
        for collection in ALL {
            let kept = of_offers(collection, &some);
            let all: Vec<Offer> = some.iter().chain(&more).copied().collect();
            let (few, many) = (all_of(&kept), all_of(&of_offers(collection, &all)));
            let known = |offer: &&Offer| few.contains(&(kept.key(offer.head.id, offer.head.owner), offer.head.stamp, offer.head.hash));
            let said = |offer: &Offer| (kept.key(offer.head.id, offer.head.owner), offer.head.stamp, offer.head.hash);
            let again: BTreeSet<_> = more.iter().map(said).collect();
            let dropped = some.iter().map(said).filter(|record| !few.contains(record) && !again.contains(record));
            prop_assert!(dropped.into_iter().all(|record| !many.contains(&record)));
            let with_kept: Vec<Offer> = some.iter().filter(known).chain(&more).copied().collect();
            prop_assert_eq!(all_of(&of_offers(collection, &with_kept)), many);
        }
    }

    #[test]
    fn a_set_says_the_same_of_a_record_before_and_when_it_is_offered(offers in offers()) {
        for collection in ALL {
            let mut set = Set::new(collection);
            for offer in &offers {
                let wants = set.wants(&offer.head, offer.answers);
                let (before, fate) = (all_of(&set), set.offer(*offer));
                let after = all_of(&set);
                prop_assert_eq!(wants, fate != Fate::Passed);
                prop_assert_eq!(before == after, fate == Fate::Passed);
                let key = set.key(offer.head.id, offer.head.owner);
                if let Fate::Kept(gone) = fate {
                    prop_assert_eq!(set.head(key).map(|head| head.hash), Some(offer.head.hash));
                    prop_assert!(gone.is_none_or(|gone| gone != key && set.head(gone).is_none()));
                }
                prop_assert_eq!(set.len(), after.len());
                prop_assert!(set.count_of(offer.head.owner) <= set.owner_kept());
                prop_assert!(set.count_at(offer.answers) <= collection.node_kept());
            }
        }
    }

    #[test]
    fn two_sets_that_meet_keep_what_one_that_heard_all_would(one in offers(), other in offers()) {
        for collection in ALL {
            let (mut mine, mut theirs) = (of_offers(collection, &one), of_offers(collection, &other));
            let all: Vec<Offer> = one.iter().chain(&other).copied().collect();
            let named = |offer: &Offer| {
                ((mine.key(offer.head.id, offer.head.owner), offer.head.hash), *offer)
            };
            let known = all.iter().map(named).collect();
            meet(&mut mine, &mut theirs, &known);
            prop_assert_eq!(all_of(&mine), model(collection, &all));
            prop_assert_eq!(all_of(&theirs), all_of(&mine));
            prop_assert_eq!(mine.root(), theirs.root());
        }
    }

    #[test]
    fn sets_have_one_digest_if_and_only_if_they_are_alike(one in offers(), other in offers()) {
        for collection in ALL {
            let (mut mine, mut theirs) = (of_offers(collection, &one), of_offers(collection, &other));
            let alike = all_of(&mine) == all_of(&theirs);
            prop_assert_eq!(mine.root() == theirs.root(), alike);
            prop_assert_eq!(differing(&mine.buckets(), &theirs.buckets()).is_empty(), alike);
            // The digest that was kept is the one of a set that was never asked before.
            theirs.offer(Offer {
                head: RecordHead { id: RecordId([77; 16]), owner: KeyPrint([1; 16]), stamp: Stamp(99), hash: [1; 32] },
                deleted: false,
                answers: node_of(KeyPrint([1; 16])),
            });
            let offers: Vec<Offer> = heads_of(&theirs)
                .map(|head| Offer { head, deleted: false, answers: node_of(head.owner) })
                .collect();
            prop_assert_eq!(theirs.root(), of_offers(collection, &offers).root());
        }
    }

    #[test]
    fn an_owner_that_goes_takes_its_records_along_and_one_that_moves_is_bounded_there(offers in offers()) {
        let owner = KeyPrint([1; 16]);
        let mut set = of_offers(&LATEST, &offers);
        let before = all_of(&set);
        let gone = set.answered_by(owner, None);
        prop_assert_eq!(set.count_of(owner), 0);
        let rest: BTreeSet<_> = before.iter().filter(|(key, ..)| key.owner != Some(owner)).copied().collect();
        prop_assert_eq!(all_of(&set), rest);
        prop_assert_eq!(gone.len(), before.len() - set.len());

        let mut set = of_offers(&LATEST, &offers);
        let there = NodeId([0; 32]);
        let gone = set.answered_by(owner, Some(there));
        prop_assert!(set.count_at(there) <= LATEST.node_kept());
        prop_assert_eq!(set.len() + gone.len(), before.len());
        prop_assert!(gone.iter().all(|key| set.head(*key).is_none()));
        // All is as if it had always been there, but for the records that had fallen out.
        let offers: Vec<Offer> = before
            .iter()
            .map(|(key, stamp, hash)| {
                let by = key.owner.expect("each has its own");
                let head = RecordHead { id: key.id, owner: by, stamp: *stamp, hash: *hash };
                Offer { head, deleted: false, answers: if by == owner { there } else { node_of(by) } }
            })
            .collect();
        prop_assert_eq!(all_of(&set), all_of(&of_offers(&LATEST, &offers)));
        let mut again = set.answered_by(owner, Some(there));
        prop_assert_eq!(again.pop(), None);
    }
}

/// Four of one node's owners have as many records as one may have, and newer ones than a fifth.
#[test]
fn four_owners_leave_a_fifth_its_share_however_new_their_records_are() {
    let offer = |owner: u8, id: u8, stamp: u64| {
        let (id, owner) = (RecordId([id; 16]), KeyPrint([owner; 16]));
        let hash = sha256(&[&id.0, &owner.0, &stamp.to_be_bytes()]);
        let head = RecordHead { id, owner, stamp: Stamp(stamp), hash };
        Offer { head, deleted: false, answers: node_of(owner) }
    };
    let (fifth, one) = (KeyPrint([8; 16]), KeyPrint([0; 16]));
    let own = [offer(8, 1, 1), offer(8, 2, 2)];
    let flood = (0..40).map(|n| offer(2 * (n % 4), n, 1_000 + u64::from(n)));
    let flood: Vec<Offer> = flood.collect();
    for order in [[&own[..], &flood].concat(), [&flood[..], &own].concat()] {
        let set = of_offers(&LATEST, &order);
        assert_eq!((set.count_of(fifth), set.count_at(node_of(fifth))), (2, 10));
        assert_eq!(set.head(set.key(RecordId([1; 16]), fifth)), Some(own[0].head));
    }
    // Its clients write, too, up to what nine places are for five; others, and it then, do not.
    let set = of_offers(&LATEST, &flood);
    assert_eq!((set.count_of(one), set.count_at(node_of(one))), (2, 10), "{set:?}");
    let room = |owner, more| set.has_room_at(node_of(owner), owner, more);
    assert!(room(fifth, 1) && !room(fifth, 2) && !room(one, 1));
    assert!(of_offers(&LATEST, &own).has_room_at(node_of(fifth), fifth, 7), "nobody else is there");
    let new = Set::new(&LATEST);
    assert!(
        new.has_room_at(node_of(fifth), fifth, 9) && !new.has_room_at(node_of(fifth), fifth, 10)
    );
    let shared = of_offers(&SHARED, &flood);
    assert!(
        !shared.has_room_at(node_of(fifth), fifth, 1),
        "nobody has a share where all write the same"
    );
}

/// Two records of one key and stamp whose hashes begin alike: a digest over less than all of them would take one for the
/// other, for ever.
#[test]
fn records_whose_hashes_begin_alike_are_told_apart() {
    let owner = KeyPrint([1; 16]);
    let head = |last: u8| {
        let mut hash = [7; 32];
        hash[31] = last;
        RecordHead { id: RecordId([1; 16]), owner, stamp: Stamp(5), hash }
    };
    let offer = |last| Offer { head: head(last), deleted: false, answers: node_of(owner) };
    let (one, other) = (offer(1), offer(2));
    let mut mine = of_offers(&LATEST, &[one]);
    let mut theirs = of_offers(&LATEST, &[other]);
    let known =
        [one, other].map(|offer| ((mine.key(offer.head.id, owner), offer.head.hash), offer));
    meet(&mut mine, &mut theirs, &known.into());
    assert_eq!(all_of(&mine), all_of(&theirs));
    assert_eq!(mine.head(mine.key(RecordId([1; 16]), owner)), Some(head(2)), "the higher hash");
}

/// Two sets whose digests are one if buckets are folded by XOR: each has two pairs of heads that a fold takes back.
#[test]
fn sets_that_a_fold_would_take_for_alike_are_told_apart() {
    let fold = |set: &Set| {
        heads_of(set).fold([0_u8; 32], |folded, head| {
            let mut next = folded;
            next.iter_mut().zip(head.hash).for_each(|(byte, with)| *byte ^= with);
            next
        })
    };
    let of = |records: [(u8, u8); 3]| {
        let offers = records.map(|(id, says)| {
            let owner = KeyPrint([1; 16]);
            let head =
                RecordHead { id: RecordId([id; 16]), owner, stamp: Stamp(5), hash: [says; 32] };
            Offer { head, deleted: false, answers: node_of(owner) }
        });
        of_offers(&LATEST, &offers)
    };
    let (mut mine, mut theirs) = (of([(1, 1), (2, 2), (3, 4)]), of([(1, 6), (2, 5), (3, 4)]));
    assert_eq!(fold(&mine), fold(&theirs));
    assert_ne!(mine.root(), theirs.root());
    assert_eq!(differing(&mine.buckets(), &theirs.buckets()).len(), 2);
}

/// A bucket that takes several messages: ids were chosen so that all are in it.
#[test]
fn a_crowded_bucket_is_told_in_parts_and_a_comparison_goes_on_where_the_last_one_ended() {
    static CROWD: Collection = Collection {
        owner_max: 90_000,
        node_max: 90_000,
        ..collection(Writer::Owner, Merge::Latest)
    };
    let owner = KeyPrint([1; 16]);
    let head = |n: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_be_bytes());
        RecordHead { id: RecordId(id), owner, stamp: Stamp(5), hash: [1; 32] }
    };
    let in_one =
        |head: &RecordHead| Bucket::of(RecordKey { id: head.id, owner: Some(owner) }) == Bucket(7);
    let crowd: Vec<RecordHead> = (0..).map(head).filter(in_one).take(1_500).collect();
    let offer = |head: &RecordHead| Offer { head: *head, deleted: false, answers: node_of(owner) };
    let theirs = of_offers(&CROWD, &crowd.iter().map(offer).collect::<Vec<_>>());
    let mine = of_offers(&CROWD, &crowd.iter().skip(1_400).map(offer).collect::<Vec<_>>());
    let told = pages(&theirs, &[Bucket(7)].into(), Bucket(0));
    assert_eq!((told.pages.len(), told.rest), (2, None));
    let mut found = Difference::default();
    for part in told.pages.iter().flatten() {
        compare(&mine, part, |head| Some(node_of(head.owner)), &mut found);
    }
    assert_eq!(found.wanted.len(), crate::limits::RECORDS_GIVEN_MAX, "the rest next time");
    assert_eq!(found.given, []);
    // The other way round nothing of one part is taken for missing in the other.
    let told = pages(&mine, &[Bucket(7)].into(), Bucket(0));
    let mut found = Difference::default();
    for part in told.pages.iter().flatten() {
        compare(&theirs, part, |head| Some(node_of(head.owner)), &mut found);
    }
    let lacked = 1_400_usize.min(crate::limits::RECORDS_GIVEN_MAX);
    assert_eq!((found.wanted.len(), found.given.len()), (0, lacked));

    let many: Vec<Offer> = (0..6_000).map(head).map(|head| offer(&head)).collect();
    let set = of_offers(&CROWD, &many);
    let buckets: BTreeSet<Bucket> = (0..crate::limits::RECORD_BUCKETS).map(Bucket).collect();
    let mut told = BTreeSet::new();
    let mut from = Bucket(0);
    for _ in 0..2 {
        let pages = pages(&set, &buckets, from);
        told.extend(pages.pages.iter().flatten().flat_map(|part| &part.heads).map(|head| head.id));
        from = pages.rest.unwrap_or(Bucket(0));
    }
    assert_eq!(told.len(), 6_000, "two comparisons tell of all");
}
