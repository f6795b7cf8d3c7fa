use super::*;
use crate::{
    name::identity::Strict,
    wire::record::{Draft, Record, Space},
};

fn account(n: u8) -> KeySecret {
    KeySecret::of(&format!("{n:0>32}"))
}

fn profile() -> Profile {
    Profile {
        username: "alice-bot".into(),
        name: "Alice".into(),
        certificate: vec![1; 600],
        former: vec![FormerCertificate { certificate: vec![2; 600], until_ms: 77 }],
        payment: vec!["invoice".into()],
        contact: vec![Contact { method: "email".into(), handle: Some("a@b.c".into()) }],
        registered: Stamp::at(5),
        mailbox: [7; 32],
        proof: Some(vec![3; 90]),
        vault: None,
        host: Some(NodeId([4; 32])),
    }
}

fn job() -> Job {
    Job {
        nonce: [5; 16],
        title: "a job".into(),
        description: "described".into(),
        price: "5".into(),
        pricing: Pricing::Fixed,
        active: true,
        metadata: "{}".into(),
        created: Stamp::at(6),
    }
}

fn review(reviewee: KeyPrint) -> Review {
    Review {
        job: RecordId([6; 16]),
        offered_by: reviewee,
        title: "a job".into(),
        reviewee,
        stars: 4,
        text: "good".into(),
        created: Stamp::at(7),
        receipt: None,
    }
}

#[test]
fn contents_are_read_as_they_were_written_and_name_their_ids() {
    let owner = account(1).print();
    let bodies = [
        (&PROFILES, profile().encode(), Profile::id(owner)),
        (&JOBS, job().encode(), job().id(owner)),
        (&REVIEWS, review(owner).encode(), review(owner).id(owner)),
        (&SEEN, Seen { wall_ms: 9 }.encode(), Seen::id(owner)),
    ];
    for (kind, body, id) in bodies {
        assert!(kind.fits(Space::Mesh, (id, owner), Some(&body)), "{kind:?}");
        assert!(!kind.fits(Space::Mesh, (id, account(2).print()), Some(&body)), "another's");
        assert!(!kind.fits(Space::Mesh, (id, owner), Some(&body[1..])), "{kind:?}");
        assert!(kind.fits(Space::Mesh, (id, owner), None), "{kind:?}");
        // A UUID of version 8.
        assert_eq!((id.0[6] >> 4, id.0[8] >> 6), (8, 2));
        let other = RecordId([9; 16]);
        let only = kind.family().is_some_and(|family| family.only.is_some());
        assert_eq!(kind.fits(Space::Mesh, (other, owner), None), !only, "{kind:?}");
        let about = (kind.number == REVIEWS.number).then_some(owner);
        assert_eq!(kind.about(Some(&body)), about);
        assert_eq!(kind.about(None), None);
    }
    assert_eq!(Profile::decode(&profile().encode()), Some(profile()));
    assert_eq!(Job::decode(&job().encode()), Some(job()));
    let receipt = Receipt::sign(&account(1), account(2).print(), ReceiptStep::Result, "session");
    let receipt = Some(receipt.expect("it is long enough"));
    let review = Review { receipt, ..review(owner) };
    assert_eq!(Review::decode(&review.encode()), Some(review));
}

#[test]
fn texts_that_are_too_long_are_of_no_form() {
    let is_read = |profile: &Profile| Profile::decode(&profile.encode()).is_some();
    assert!(is_read(&profile()));
    let large = |former: usize, bytes: usize| {
        let one = FormerCertificate { certificate: vec![1; bytes], until_ms: 1 };
        Profile { former: vec![one; former], ..profile() }
    };
    assert!(
        is_read(&large(FINDER_FORMER_MAX, 4_096)) && !is_read(&large(FINDER_FORMER_MAX, 4_097))
    );
    assert!(!is_read(&large(FINDER_FORMER_MAX + 1, 1)));
    assert!(!is_read(&Profile { name: "x".repeat(FINDER_NAME_BYTES_MAX + 1), ..profile() }));
    assert!(!is_read(&Profile { payment: vec!["x".into(); FINDER_METHODS_MAX + 1], ..profile() }));
    assert!(!is_read(&Profile {
        certificate: vec![1; FINDER_CERTIFICATE_BYTES_MAX + 1],
        ..profile()
    }));
    let title = "x".repeat(FINDER_NAME_BYTES_MAX + 1);
    assert!(Job::decode(&Job { title, ..job() }.encode()).is_none());
    // As large as all parts may be at once.
    let largest = Job {
        title: "x".repeat(FINDER_NAME_BYTES_MAX),
        description: "x".repeat(FINDER_DESCRIPTION_BYTES_MAX),
        price: "x".repeat(FINDER_PRICE_BYTES_MAX),
        metadata: "x".repeat(FINDER_METADATA_BYTES_MAX),
        ..job()
    };
    assert!(largest.encode().len() <= JOBS.body_bytes_max);
    let text = "x".repeat(FINDER_REVIEW_BYTES_MAX);
    let title = "x".repeat(FINDER_NAME_BYTES_MAX);
    let largest = Review { title, text, ..review(account(1).print()) };
    assert!(largest.encode().len() + 128 <= REVIEWS.body_bytes_max);
}

#[test]
fn a_receipt_is_one_accounts_word_for_one_other() {
    let [by, to, other] = [1, 2, 3].map(account);
    let receipt = Receipt::sign(&by, to.print(), ReceiptStep::Execute, "session");
    let receipt = receipt.expect("it is long enough");
    assert!(receipt.is_signed(&Strict, &by.halves(), to.print()));
    assert!(!receipt.is_signed(&Strict, &by.halves(), other.print()));
    assert!(!receipt.is_signed(&Strict, &other.halves(), to.print()));
    let later = Receipt { step: ReceiptStep::Result, ..receipt.clone() };
    assert!(!later.is_signed(&Strict, &by.halves(), to.print()));
    let elsewhere = Receipt { session: [1; 32], ..receipt };
    assert!(!elsewhere.is_signed(&Strict, &by.halves(), to.print()));
}

#[test]
fn a_deletion_that_is_final_says_so_in_its_stamp_or_is_nobodys_word() {
    use crate::{name::id::MeshId, records::collection::is_sound};
    let (mesh, key) = (MeshId([1; 16]), account(1));
    let sound = |kind: &Collection, body: Option<Vec<u8>>, stamp| {
        let id = if kind.number == JOBS.number {
            job().id(key.print())
        } else {
            Profile::id(key.print())
        };
        let draft = Draft { space: Space::Mesh, collection: kind.number, id, body };
        let record: Record = draft.sign(&key, mesh, stamp).expect("it is long enough");
        is_sound(&record, &Strict, mesh)
    };
    let now = Stamp::at(1_000);
    assert!(sound(&JOBS, Some(job().encode()), now) && sound(&JOBS, None, now.for_ever()));
    assert!(!sound(&JOBS, Some(job().encode()), now.for_ever()) && !sound(&JOBS, None, now));
    assert!(sound(&PROFILES, None, now.for_ever()) && !sound(&PROFILES, None, now));
    assert_eq!(now.for_ever().wall_ms(), now.wall_ms());
    assert_eq!(now.for_ever().moment(), now);
}
