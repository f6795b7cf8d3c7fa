//! What accounts write.

use mesh::{
    api::account::RecordWrite,
    name::key::KeySecret,
    records::finder::{
        Envelope, Form, Job, MAILS, PROFILES, Pricing, Profile, REVIEWS, Review, SEEN, Seen,
    },
    wire::record::{RecordId, Stamp},
};

use super::{letters::Letter, names};
use crate::sim::cluster::Cluster;

pub(super) fn profile(own: &KeySecret, name: u8, text: &str) -> RecordWrite {
    let profile = Profile {
        username: names::username(name),
        name: text.to_owned(),
        certificate: vec![7; 40],
        former: Vec::new(),
        payment: Vec::new(),
        contact: Vec::new(),
        registered: Stamp::at(1),
        mailbox: own.halves().mailbox,
        proof: None,
        vault: None,
        host: None,
    };
    let (collection, id) = (PROFILES.number, Profile::id(own.print()));
    RecordWrite::new(collection, id, Some(profile.encode()))
}

pub(super) fn end(own: &KeySecret) -> RecordWrite {
    RecordWrite::new(PROFILES.number, Profile::id(own.print()), None)
}

pub(super) fn job(own: &KeySecret, nonce: u64, text: &str) -> (RecordId, Vec<u8>) {
    let mut drawn = [0; 16];
    drawn[..8].copy_from_slice(&nonce.to_be_bytes());
    let job = Job {
        nonce: drawn,
        title: text.to_owned(),
        description: String::new(),
        price: String::new(),
        pricing: Pricing::Negotiable,
        active: true,
        metadata: "{}".to_owned(),
        created: Stamp::at(1),
    };
    (job.id(own.print()), job.encode())
}

pub(super) fn mail(
    cluster: &mut Cluster,
    (own, other): (&KeySecret, &KeySecret),
    letter: &Letter,
) -> RecordWrite {
    let both = letter.between(cluster, own, other);
    let (ends, mut nonce) = ((own.print(), other.print()), [0; 16]);
    nonce[..8].copy_from_slice(&cluster.dice.draw().to_be_bytes());
    let envelope = Envelope::new(letter.subject.clone(), Form::Pgp, ([1; 20], [2; 20]));
    let mail = both.seal(ends, nonce, &envelope);
    let id = mail.id(own.print());
    let apart = Some(both.seal_text(ends, id, &letter.text));
    RecordWrite { apart, ..RecordWrite::new(MAILS.number, id, Some(mail.encode())) }
}

pub(super) fn review(
    own: &KeySecret,
    other: &KeySecret,
    (nonce, text): (u64, String),
) -> RecordWrite {
    let (about, _) = job(other, nonce, "");
    let review = Review {
        job: about,
        offered_by: other.print(),
        title: String::new(),
        reviewee: other.print(),
        stars: 3,
        text,
        created: Stamp::at(1),
        receipt: None,
    };
    let id = review.id(own.print());
    RecordWrite::new(REVIEWS.number, id, Some(review.encode()))
}

pub(super) fn seen(own: &KeySecret, cluster: &mut Cluster) -> RecordWrite {
    let seen = Seen { wall_ms: cluster.dice.within(0, 1_000_000) };
    let (collection, id) = (SEEN.number, Seen::id(own.print()));
    RecordWrite::new(collection, id, Some(seen.encode()))
}
