//! Accounts that want the same.

#![allow(clippy::unwrap_used, reason = "what is not there is a failed test")]

use mesh::{name::key::KeySecret, wire::record::CollectionNumber};
use openpgp::SecretCertificate;

use super::*;

const MESH: MeshId = MeshId([7; 16]);
const DOCUMENT: proof::Document = proof::Document { mesh: MESH };

struct One {
    key: KeySecret,
    pgp: Certificate,
}

impl One {
    fn new(n: u8) -> One {
        let mut chance = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        let pgp = SecretCertificate::generate("A <a@x.y>", 1_750_000_000, &mut chance).unwrap();
        One { key: KeySecret::of(&format!("ak_{n:0>43}")), pgp: pgp.certificate().clone() }
    }

    fn print(&self) -> KeyPrint {
        self.key.print()
    }

    fn record(&self, collection: CollectionNumber, body: Option<Vec<u8>>) -> RecordView {
        let (id, owner) = (Profile::id(self.print()), self.print());
        let halves = Some(self.key.halves());
        RecordView { collection, id, owner, halves, stamp: Stamp::at(1), body, apart_bytes: 0 }
    }

    fn profile(&self, username: &str) -> RecordView {
        let profile = Profile {
            username: username.to_owned(),
            name: username.to_owned(),
            certificate: self.pgp.to_bytes(),
            former: Vec::new(),
            payment: Vec::new(),
            contact: Vec::new(),
            registered: Stamp::at(1),
            mailbox: self.key.halves().mailbox,
            proof: None,
            vault: None,
            host: None,
        };
        self.record(PROFILES.number, Some(profile.encode()))
    }
}

fn index(records: &[RecordView]) -> Index {
    let mut index = Index::new(MESH, 1 << 20, Arc::default());
    index.take_all(records, DOCUMENT);
    index
}

#[test]
fn of_two_that_have_one_username_the_one_whose_claim_counts_first_keeps_it() {
    let (one, other) = (One::new(1), One::new(2));
    // On two sides of a split, in both orders of claims.
    for (first, second) in [(&one, &other), (&other, &one)] {
        let mut index = index(&[one.profile("Twin-Bot"), other.profile("twin-bot")]);
        let label = index.claims.label_of_name("twin-bot");
        assert!(index.contested().contains(&label));
        index.claims.set([(label, vec![first.print(), second.print()])].into());
        assert_eq!(index.named("TWIN-bot"), Some(first.print()));
        let loser = index.live(second.print()).unwrap();
        let shown = index.shown_name(loser);
        let digits = second.pgp.fingerprint().to_string().to_lowercase();
        assert_eq!(shown, format!("{}-{}", loser.username, &digits[..8]));
        assert_eq!(index.find(&shown).unwrap().print, second.print());
        assert!(!index.is_free(&shown) && !index.is_free("twin-bot"));
        // The name comes back to it when the other one is deleted.
        index.take(&first.record(PROFILES.number, None), DOCUMENT);
        let winner = index.live(second.print()).unwrap();
        assert_eq!(index.shown_name(winner), winner.username);
        assert_eq!(index.named("twin-bot"), Some(second.print()));
    }
}

#[test]
fn of_two_that_have_one_pgp_key_one_shows() {
    let (one, mut other) = (One::new(1), One::new(2));
    other.pgp = one.pgp.clone();
    let id = one.pgp.fingerprint();
    for (first, second) in [(&one, &other), (&other, &one)] {
        let mut index = index(&[one.profile("one-bot"), other.profile("other-bot")]);
        let label = index.claims.label_of_id(id);
        index.claims.set([(label, vec![first.print(), second.print()])].into());
        assert_eq!(index.holder(id), Some(first.print()));
        assert!(index.live(first.print()).is_some() && index.live(second.print()).is_none());
        assert!(index.account(second.print()).is_some(), "it is displaced, and known");
        let name = &index.account(second.print()).unwrap().username;
        assert_eq!(index.named(name), None);
    }
}

/// Records of nodes that let their clients say anything.
#[test]
fn a_member_that_lies_gets_no_name_no_place_and_no_review_that_is_not_its_due() {
    let (one, other) = (One::new(1), One::new(2));
    for username in ["me", "a b", "x", "line\nbreak", &"A".repeat(40)] {
        assert!(index(&[one.profile(username)]).live(one.print()).is_none(), "{username}");
    }
    let mut index = index(&[one.profile("one-bot"), other.profile("other-bot")]);
    let job = |of: &One, nonce: u8, created: u64| {
        let (title, created) = ("A job".to_owned(), Stamp(created));
        let (price, metadata, description) = (String::new(), String::new(), String::new());
        let pricing = mesh::records::finder::Pricing::Free;
        let nonce = [nonce; 16];
        let job =
            Job { nonce, title, description, price, pricing, active: true, metadata, created };
        RecordView { id: job.id(of.print()), ..of.record(JOBS.number, Some(job.encode())) }
    };
    let (own, foreign) = (job(&one, 1, u64::MAX), job(&other, 2, 0));
    index.take_all(&[own.clone(), foreign.clone()], DOCUMENT);
    assert_eq!(index.job(own.id).unwrap().created, own.stamp, "not first for ever");
    let carol = One::new(3);
    index.take(&carol.profile("carol-bot"), DOCUMENT);
    // She reviews the job of one as if it were the other one's.
    for (job, is_shown) in [(own.id, false), (foreign.id, true)] {
        let (title, text, created) = (String::new(), String::new(), Stamp::at(1));
        let (offered_by, reviewee) = (other.print(), other.print());
        let review =
            Review { job, offered_by, title, reviewee, stars: 1, text, created, receipt: None };
        let id = review.id(carol.print());
        index.take(
            &RecordView { id, ..carol.record(REVIEWS.number, Some(review.encode())) },
            DOCUMENT,
        );
        assert_eq!(index.review(id).is_some(), is_shown);
    }
}
