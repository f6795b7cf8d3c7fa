//! Accounts: claimed in the directory, and their records at all nodes.

use std::sync::Arc;

use super::{world::World, *};
use crate::{
    api::account::{
        AccountClaim, AccountRefused, AccountView, RecordBound, RecordWrite, RecordWrites, Whose,
    },
    limits::{
        ACCOUNT_CLAIMS_MAX, ACCOUNT_LABELS_MAX, FINDER_JOBS_PER_ACCOUNT_MAX, RECORD_WRITES_MAX,
    },
    name::{account::Label, key::KeySecret},
    records::{
        collection::Collection,
        finder::{self, Job, Pricing, Profile, Review, Seen},
    },
    wire::{
        account::AccountClaimed,
        entry::Parting,
        record::{Draft, Record, RecordId, Space, Stamp},
    },
};

pub(super) fn account(n: u8) -> Arc<KeySecret> {
    Arc::new(KeySecret::of(&format!("ak_{n:0>40}")))
}

pub(super) fn claim(account: &Arc<KeySecret>, labels: &[Label]) -> Command {
    Command::ClaimAccount { account: Arc::clone(account), labels: labels.to_vec() }
}

pub(super) fn write(account: &Arc<KeySecret>, writes: Vec<RecordWrite>) -> Command {
    Command::WriteRecords(Box::new(RecordWrites {
        account: Arc::clone(account),
        writes,
        above: Stamp::default(),
    }))
}

fn of_kind(kind: &Collection, id: RecordId, body: Option<Vec<u8>>) -> RecordWrite {
    RecordWrite::new(kind.number, id, body)
}

pub(super) fn profile(of: &KeySecret) -> RecordWrite {
    let profile = Profile {
        username: "alice-bot".into(),
        name: "Alice".into(),
        certificate: vec![1; 600],
        former: Vec::new(),
        payment: Vec::new(),
        contact: Vec::new(),
        registered: Stamp::at(5),
        mailbox: of.halves().mailbox,
        proof: None,
        vault: None,
        host: None,
    };
    of_kind(&finder::PROFILES, Profile::id(of.print()), Some(profile.encode()))
}

pub(super) fn gone(write: &RecordWrite) -> RecordWrite {
    RecordWrite { body: None, ..write.clone() }
}

fn job(of: &KeySecret, nonce: u16, title: &str) -> RecordWrite {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&nonce.to_be_bytes());
    let job = Job {
        nonce: bytes,
        title: title.into(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Negotiable,
        active: true,
        metadata: "{}".into(),
        created: Stamp::at(6),
    };
    of_kind(&finder::JOBS, job.id(of.print()), Some(job.encode()))
}

fn review(of: &KeySecret, by: &KeySecret, about: RecordId) -> RecordWrite {
    let review = Review {
        job: about,
        offered_by: of.print(),
        title: "a job".into(),
        reviewee: of.print(),
        stars: 5,
        text: "good".into(),
        created: Stamp::at(7),
        receipt: None,
    };
    of_kind(&finder::REVIEWS, review.id(by.print()), Some(review.encode()))
}

fn seen(of: &KeySecret) -> RecordWrite {
    of_kind(&finder::SEEN, Seen::id(of.print()), Some(Seen { wall_ms: 9 }.encode()))
}

fn told(answer: Result<Outcome, Refused>) -> Result<(), Refused> {
    answer.map(drop)
}

fn refused<T>(why: AccountRefused) -> Result<T, Refused> {
    Err(Refused::Account(why))
}

impl Node {
    fn finds(&mut self, account: &KeySecret) -> Option<AccountView> {
        match self.ask(Command::FindAccount(account.print())) {
            Ok(Outcome::Account(found)) => found.map(|found| *found),
            other => panic!("{other:?}"),
        }
    }

    fn claims_of(&mut self, label: Label) -> Vec<AccountClaim> {
        match self.ask(Command::ListClaims(label)) {
            Ok(Outcome::Claims(claims)) => claims,
            other => panic!("{other:?}"),
        }
    }

    fn writes(&mut self, account: &Arc<KeySecret>, writes: Vec<RecordWrite>) -> Vec<Stamp> {
        match self.ask(write(account, writes)) {
            Ok(Outcome::Stamps(stamps)) => stamps,
            other => panic!("{other:?}"),
        }
    }

    fn bodies(&self) -> Vec<Option<Vec<u8>>> {
        self.records().iter().map(|record| record.content().map(<[u8]>::to_vec)).collect()
    }

    /// As if another node had claimed these accounts.
    fn hears_claims(&mut self, author: u8, accounts: &[&KeySecret]) {
        let directory = RoomId::directory(self.secret.mesh_id());
        let log = SignedLog { mesh: self.secret.mesh_id(), node: identity(author).node_id() };
        let claim = |account: &&KeySecret| {
            let claim = AccountClaimed::sign(account, &log, vec![Label([author; 16])]);
            Body::AccountClaimed(claim.expect("it is long enough"))
        };
        let bodies: Vec<Body> = accounts.iter().map(claim).collect();
        let run = log_of(self, directory, author, &bodies);
        self.hear(&run);
    }

    fn signs(&self, by: &KeySecret, write: &RecordWrite, at: Stamp) -> Record {
        let RecordWrite { collection, id, body, .. } = write.clone();
        let draft = Draft { space: Space::Mesh, collection, id, body };
        draft.sign(by, self.secret.mesh_id(), at).expect("it is long enough")
    }
}

#[test]
fn an_account_and_its_records_are_known_at_all_nodes() {
    let mut world = World::new(2);
    world.link();
    let (ann, label) = (account(1), Label([7; 16]));
    // It asks the other one before it says so.
    let call = world.begin(0, Command::FindAccount(ann.print()));
    assert!(world.reply(0, call).is_none());
    world.carry();
    assert!(matches!(world.reply(0, call), Some(Ok(Outcome::Account(None)))));
    assert_eq!(told(world.ask(0, write(&ann, vec![seen(&ann)]))), refused(AccountRefused::Unknown));
    assert_eq!(told(world.ask(0, claim(&ann, &[label]))), Ok(()));
    // Once is enough: a client that asks again has its answer at once.
    let entries = world.nodes[0].rows.len();
    assert_eq!(told(world.ask(0, claim(&ann, &[label]))), Ok(()));
    assert_eq!(world.nodes[0].rows.len(), entries);
    let me = world.nodes[0].engine.known.cx.me;
    for node in &mut world.nodes {
        let found = node.finds(&ann).expect("it was told");
        assert_eq!((found.account, found.halves, found.ended), (ann.print(), ann.halves(), false));
        let [one] = found.claims.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.labels.as_slice(), one.node), ([label].as_slice(), me));
        assert!(one.number.is_some());
        assert_eq!(
            node.claims_of(label),
            [AccountClaim { account: ann.print(), claim: one.clone() }]
        );
        assert_eq!(node.claims_of(Label([8; 16])), []);
    }
    // Its key works at the other node as well as there.
    let all = vec![profile(&ann), job(&ann, 1, "one"), seen(&ann)];
    let stamps = world.nodes[1].writes(&ann, all.clone());
    assert_eq!(stamps.len(), 3);
    world.carry();
    let edited = world.nodes[0].writes(&ann, vec![job(&ann, 1, "two")]);
    assert!(edited[0] > stamps[1], "above all that is known");
    world.carry();
    for node in &world.nodes {
        let bodies = node.bodies();
        assert_eq!(bodies.len(), 3);
        assert!(bodies.contains(&job(&ann, 1, "two").body) && bodies.contains(&all[0].body));
    }
}

#[test]
fn of_two_claims_of_a_label_the_lower_number_counts_wherever_they_are_heard() {
    let mut world = World::new(2);
    world.link();
    let (ann, bob, label) = (account(1), account(2), Label([7; 16]));
    let call = world.begin(1, claim(&bob, &[label]));
    assert!(world.reply(1, call).is_none(), "its number comes from the other one");
    world.carry();
    assert!(matches!(world.reply(1, call), Some(Ok(Outcome::Done))));
    world.ask(0, claim(&ann, &[label, Label([9; 16])])).expect("two may claim it");
    world.ask(0, claim(&bob, &[Label([9; 16])])).expect("and it something else");
    let claims = |node: &mut Node, label| -> Vec<KeyPrint> {
        node.claims_of(label).iter().map(|claim| claim.account).collect()
    };
    for node in &mut world.nodes {
        assert_eq!(claims(node, label), [bob.print(), ann.print()]);
        assert_eq!(claims(node, Label([9; 16])), [ann.print(), bob.print()]);
        assert_eq!(node.finds(&bob).expect("it is known").claims.len(), 2);
    }
}

#[test]
fn what_is_not_of_its_form_or_too_much_is_refused_and_nothing_of_it_is_written() {
    let mut node = Node::new(1);
    let (ann, bob) = (account(1), account(2));
    let labels: Vec<Label> =
        (0..=ACCOUNT_LABELS_MAX).map(|n| Label([u8::try_from(n).unwrap(); 16])).collect();
    assert_eq!(told(node.ask(claim(&ann, &labels))), refused(AccountRefused::Form));
    let short = Arc::new(KeySecret::of("short"));
    assert!(matches!(node.ask(claim(&short, &[])), Err(Refused::Impossible(_))));
    for n in 0..ACCOUNT_CLAIMS_MAX {
        let label = Label([u8::try_from(n).unwrap(); 16]);
        assert_eq!(told(node.ask(claim(&ann, &[label]))), Ok(()));
    }
    assert_eq!(told(node.ask(claim(&ann, &[Label([99; 16])]))), refused(AccountRefused::TooMuch));
    let form = || refused(AccountRefused::Form);
    let good = job(&ann, 1, "one");
    let anothers = job(&bob, 1, "one");
    assert_eq!(told(node.ask(write(&ann, vec![good.clone(), anothers]))), form());
    assert_eq!(told(node.ask(write(&ann, vec![good.clone(), good.clone()]))), form(), "twice");
    let agents =
        RecordWrite { collection: crate::records::profile::COLLECTION.number, ..gone(&good) };
    assert_eq!(told(node.ask(write(&ann, vec![good.clone(), agents]))), form(), "of keys");
    let end = gone(&profile(&ann));
    assert_eq!(
        told(node.ask(write(&ann, vec![good.clone(), end]))),
        form(),
        "an end is for itself"
    );
    let many = (0..=RECORD_WRITES_MAX).map(|n| job(&ann, u16::try_from(n).unwrap(), "x")).collect();
    assert_eq!(told(node.ask(write(&ann, many))), refused(AccountRefused::TooMuch));
    assert_eq!(node.records(), []);
    // Deleted ones count.
    let mut nonces = 0..u16::try_from(FINDER_JOBS_PER_ACCOUNT_MAX).unwrap();
    while !nonces.is_empty() {
        let some: Vec<RecordWrite> =
            nonces.by_ref().take(RECORD_WRITES_MAX).map(|n| job(&ann, n, "x")).collect();
        node.writes(&ann, some);
    }
    node.writes(&ann, vec![gone(&job(&ann, 0, "x"))]);
    let (collection, whose) = (Some(finder::JOBS.number), Whose::Account);
    let bound = RecordBound { collection, whose, max: FINDER_JOBS_PER_ACCOUNT_MAX };
    let one_more = write(&ann, vec![job(&ann, 9_999, "more")]);
    assert_eq!(told(node.ask(one_more)), refused(AccountRefused::Full(bound)));
    node.writes(&ann, vec![job(&ann, 5, "edited")]);
}

#[test]
fn what_was_deleted_for_ever_is_not_written_again_and_wins_over_later_states() {
    let mut node = Node::new(1);
    let (ann, bob) = (account(1), account(2));
    node.ask(claim(&ann, &[])).expect("it is new");
    node.ask(claim(&bob, &[])).expect("it is new");
    let one = job(&ann, 1, "one");
    node.writes(&ann, vec![one.clone()]);
    let deleted = node.writes(&ann, vec![gone(&one)]);
    assert!(deleted[0].is_for_ever());
    assert_eq!(told(node.ask(write(&ann, vec![one.clone()]))), refused(AccountRefused::Deleted));
    assert_eq!(told(node.ask(write(&ann, vec![gone(&one)]))), refused(AccountRefused::Deleted));
    let later = Stamp(node.now_stamp().0 + 1_000_000);
    let again = node.signs(&ann, &job(&ann, 1, "again"), later);
    node.hear_record(again);
    assert_eq!(node.bodies(), [None]);
    // A review may come again.
    let of_bob = review(&ann, &bob, one.id);
    node.writes(&bob, vec![of_bob.clone()]);
    node.writes(&bob, vec![gone(&of_bob)]);
    node.writes(&bob, vec![of_bob.clone()]);
    assert!(node.bodies().contains(&of_bob.body));
}

#[test]
fn with_an_account_goes_all_that_is_its_own_or_about_it_and_nothing_more_is_taken() {
    let mut world = World::new(2);
    world.link();
    let (ann, bob) = (account(1), account(2));
    for account in [&ann, &bob] {
        world.ask(0, claim(account, &[])).expect("it is new");
    }
    let (of_ann, of_bob) = (job(&ann, 1, "hers"), job(&bob, 1, "his"));
    let kept = vec![profile(&bob), of_bob.clone()];
    let about = [review(&ann, &bob, of_ann.id), review(&bob, &ann, of_bob.id)];
    world.nodes[0].writes(&ann, vec![profile(&ann), of_ann.clone(), about[1].clone(), seen(&ann)]);
    world.nodes[0].writes(&bob, [kept.clone(), vec![about[0].clone()]].concat());
    world.carry();
    assert_eq!(world.nodes[1].records().len(), 7);
    world.nodes[1].writes(&ann, vec![gone(&profile(&ann))]);
    world.carry();
    for node in &mut world.nodes {
        let mut bodies = node.bodies();
        bodies.sort();
        let mut expected: Vec<_> =
            kept.iter().map(|write| write.body.clone()).chain([None]).collect();
        expected.sort();
        assert_eq!(bodies, expected);
        assert!(node.finds(&ann).expect("its claim stays").ended);
    }
    let ended = || refused(AccountRefused::Ended);
    assert_eq!(told(world.ask(0, write(&ann, vec![job(&ann, 2, "new")]))), ended());
    assert_eq!(told(world.ask(0, write(&bob, vec![about[0].clone()]))), ended());
    assert_eq!(told(world.ask(0, claim(&ann, &[Label([1; 16])]))), ended());
    // It stays so over a restart.
    let stored = super::disk::stored(&world.nodes[0].rows);
    let now = world.nodes[0].now;
    let mut again = Node::open(1, stored, now);
    assert!(again.finds(&ann).expect("it is known").ended);
    assert_eq!(told(again.ask(write(&ann, vec![seen(&ann)]))), ended());
    assert_eq!(told(again.ask(write(&bob, vec![about[0].clone()]))), ended());
    again.writes(&bob, vec![job(&bob, 1, "still his")]);
}

/// Each record on its own, in many orders, and over a restart in between.
#[test]
fn the_kept_records_of_accounts_do_not_depend_on_the_order_in_which_they_come() {
    let (ann, bob) = (account(1), account(2));
    let (of_ann, of_bob) = (job(&ann, 1, "hers"), job(&bob, 1, "his"));
    let signer = Node::new(1);
    let at = |n: u64| Stamp(signer.now_stamp().0 - 1_000_000 + n);
    let signed = [
        signer.signs(&ann, &profile(&ann), at(30)),
        signer.signs(&ann, &gone(&profile(&ann)), at(10).for_ever()),
        signer.signs(&ann, &of_ann, at(20)),
        signer.signs(&ann, &seen(&ann), at(40)),
        signer.signs(&bob, &profile(&bob), at(5)),
        signer.signs(&bob, &of_bob, at(50)),
        signer.signs(&bob, &gone(&of_bob), at(7).for_ever()),
        signer.signs(&bob, &review(&ann, &bob, of_ann.id), at(60)),
        signer.signs(&bob, &seen(&bob), at(3)),
        signer.signs(&bob, &gone(&seen(&bob)), at(2)),
    ];
    let expected = [&signed[1], &signed[4], &signed[6], &signed[8]];
    let mut state = 7_u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..60 {
        let mut order: Vec<usize> = (0..signed.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, draw(at + 1));
        }
        let mut node = Node::new(1);
        node.hears_claims(5, &[&ann, &bob]);
        let restart = draw(signed.len());
        for (nth, which) in order.iter().enumerate() {
            node.hear_record(signed[*which].clone());
            if nth == restart {
                let rows = node.rows;
                node = Node::open(1, super::disk::stored(&rows), node.now);
                node.rows = [rows, node.rows].concat();
            }
        }
        let mut kept = node.records();
        kept.sort_by_key(|record| (record.collection, record.id));
        let mut expected: Vec<Record> = expected.iter().map(|record| (*record).clone()).collect();
        expected.sort_by_key(|record| (record.collection, record.id));
        assert_eq!(kept, expected, "{order:?}, {restart}");
    }
}

#[test]
fn records_of_nobodys_account_are_not_taken_and_go_with_the_claim() {
    let mut node = Node::new(1);
    let ann = account(1);
    let record = node.signs(&ann, &profile(&ann), node.now_stamp());
    node.hear_record(record.clone());
    assert_eq!(node.records(), [], "nobody has claimed it yet");
    node.hears_claims(5, &[&ann]);
    node.hear_record(record);
    assert_eq!(node.records().len(), 1);
    let view = node.finds(&ann).expect("it is known");
    assert_eq!(view.claims[0].node, identity(5).node_id());
    // The log forks before the claim.
    let directory = RoomId::directory(node.secret.mesh_id());
    let another = log_of(&node, directory, 5, &[Body::Unknown]);
    node.hear(&another);
    assert_eq!((node.records(), node.finds(&ann)), (Vec::new(), None));
    assert_eq!(node.claims_of(Label([5; 16])), []);
}

/// Seed 902 of the worlds with a parting: a client that had lost its answer waited for ever at a node that had been expelled.
#[test]
fn a_claim_without_a_number_is_refused_when_its_node_has_been_expelled() {
    let mut world = World::new(3);
    let account = account(1);
    // The sequencer is apart: the claim is known at the other node, and has no number.
    world.groups = vec![0, 1, 1];
    let asked = world.begin(1, claim(&account, &[]));
    world.carry();
    assert!(world.reply(1, asked).is_none());
    let node = world.nodes[1].engine.known.cx.me;
    let expel = Command::Part { node, why: Parting::Expelled, force: true };
    world.ask(2, expel).expect("any member may");
    let refused = |world: &World, call| world.reply(1, call).is_some_and(|reply| reply.is_err());
    assert!(refused(&world, asked), "those that wait are told");
    let again = world.begin(1, claim(&account, &[]));
    assert!(refused(&world, again), "it gets no number: {:?}", world.reply(1, again));
}
