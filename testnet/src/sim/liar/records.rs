//! What it says of records: its own, of any time and size; those of others, changed; and anything about which there are.

use mesh::{
    limits::RECORD_BODY_BYTES_MAX,
    name::{
        group::Group,
        id::{AgentId, KeyPrint, MeshId, RoomId},
        key::KeySecret,
    },
    records::{
        comparison::Part,
        details::{self, DetailsUpdate},
        digest::{Bucket, BucketDigest},
        finder::{self, Job, Pricing, Profile, Review},
        place::RoomPlace,
        profile::{self, Field, ProfileUpdate},
    },
    wire::{
        comparing::{Comparing, Step},
        cover::Cover,
        message::Message,
        record::{
            CollectionNumber, Draft, Record, RecordHead, RecordId, RecordKey, Root, Space, Stamp,
        },
        signatures::KeySignature,
    },
};

use crate::sim::{
    dice::Dice,
    holders::accounts::names::{NAMES, username},
};

/// All that it makes them of.
pub(super) struct Lies<'l> {
    pub(super) dice: &'l mut Dice,
    pub(super) mesh: MeshId,
    /// Its own keys.
    pub(super) own: &'l [KeySecret],
    pub(super) agents: &'l [AgentId],
    /// Rooms, none of which its keys have made.
    pub(super) rooms: &'l [RoomId],
    /// Records of others that it has heard.
    pub(super) heard: &'l [Record],
}

impl Lies<'_> {
    pub(super) fn talk(mut self) -> Message {
        if self.dice.chance(60) {
            let many = if self.dice.chance(10) { 30 } else { 3 };
            let records = (0..self.dice.within(1, many)).map(|_| self.some_record());
            return Message::Records(records.collect());
        }
        let collection = self.some_collection();
        let step = match self.dice.within(0, 3) {
            0 => Step::Roots(vec![Root { collection, digest: [self.dice.byte(); 32] }]),
            1 => {
                let buckets = (0..self.dice.within(0, 60)).map(|_| {
                    let bucket = Bucket(u16::from(self.dice.byte()) * 5);
                    BucketDigest { bucket, digest: [self.dice.byte(); 32] }
                });
                Step::Buckets { collection, buckets: buckets.collect() }
            }
            2 => {
                let parts = (0..self.dice.within(0, 30)).map(|_| self.some_part());
                Step::Heads { collection, parts: parts.collect() }
            }
            _ => {
                let keys = (0..self.dice.within(0, 30)).map(|_| self.record_key());
                Step::Want { collection, keys: keys.collect() }
            }
        };
        Message::Comparing(Comparing { space: self.some_space(), step })
    }

    /// As if it had the room that it speaks of.
    fn some_space(&mut self) -> Space {
        match self.dice.within(0, 9) {
            0 => Space::Node,
            1 => Space::Followers(Group::Key(self.dice.pick(self.own).print())),
            2 | 3 if !self.heard.is_empty() => {
                Space::Followers(Group::Key(self.dice.pick(self.heard).owner()))
            }
            _ => Space::Mesh,
        }
    }

    fn some_collection(&mut self) -> CollectionNumber {
        let known = [
            &profile::COLLECTION,
            &profile::CARDS,
            &details::COLLECTION,
            &details::SETTINGS,
            &finder::PROFILES,
            &finder::JOBS,
        ]
        .map(|collection| collection.number);
        if self.dice.chance(90) { *self.dice.pick(&known) } else { CollectionNumber(u16::MAX) }
    }

    /// Heads that it claims to have, or none of all that are there.
    fn some_part(&mut self) -> Part {
        let bucket = Bucket(u16::from(self.dice.byte()) * 5);
        let heads = (0..self.dice.within(0, 5)).map(|_| {
            let RecordKey { id, owner } = self.record_key();
            let owner = owner.unwrap_or(KeyPrint([self.dice.byte(); 16]));
            let (stamp, hash) = (self.some_stamp(), [self.dice.byte(); 32]);
            RecordHead { id, owner, stamp, hash }
        });
        let heads = heads.collect();
        let after = self.dice.chance(20).then(|| self.record_key());
        let upto = self.dice.chance(20).then(|| self.record_key());
        Part { bucket, after, upto, heads }
    }

    fn record_key(&mut self) -> RecordKey {
        if !self.heard.is_empty() && self.dice.chance(70) {
            let record = self.dice.pick(self.heard);
            return RecordKey { id: record.id, owner: Some(record.owner()) };
        }
        RecordKey { id: RecordId([self.dice.byte(); 16]), owner: None }
    }

    fn text(&mut self) -> String {
        let long = usize::try_from(self.dice.within(0, 300)).unwrap_or_default();
        if self.dice.chance(50) { "lie".to_owned() } else { "x".repeat(long) }
    }

    /// Now, long ago, or far ahead.
    fn some_stamp(&mut self) -> Stamp {
        let now_us = 1_800_000_000_000_000 + self.dice.within(0, 100_000_000);
        match self.dice.within(0, 5) {
            0 => Stamp(self.dice.draw()),
            1 => Stamp(u64::MAX),
            2 => Stamp::at(now_us + 7 * 86_400_000_000),
            3 => Stamp::at(now_us + 3_600_000_000),
            _ => Stamp::at(now_us),
        }
    }

    fn some_record(&mut self) -> Record {
        let of_others = (!self.heard.is_empty()).then(|| self.dice.pick(self.heard).clone());
        match (self.dice.within(0, 6), of_others) {
            // As it was: no lie, though perhaps an old one.
            (0, Some(other)) => other,
            (1, Some(other)) => Record { stamp: self.some_stamp(), ..other },
            (2, Some(other)) => Record { body: None, ..other },
            // Owned by another key than the one that signed it.
            (3, Some(other)) => {
                let own = self.own_record();
                let by = KeySignature { halves: other.by.halves, ..own.by };
                Record { by, ..own }
            }
            _ => self.own_record(),
        }
    }

    /// About any agent or any room.
    fn some_draft(&mut self) -> Draft {
        if self.dice.chance(30) {
            return self.some_listing();
        }
        let text = self.text();
        if self.dice.chance(50) {
            let update = ProfileUpdate { fields: vec![(Field::Name, Some(text))], cards: None };
            let agent = AgentId::clone(self.dice.pick(self.agents));
            return update.drafts(&agent, &[]).remove(0);
        }
        let setting =
            self.dice.chance(30).then(|| (format!("s{}", text.len() % 4), Some(text.clone())));
        let title = setting.is_none().then_some(Some(text));
        let settings = setting.into_iter().collect();
        let update = DetailsUpdate { title, settings, ..DetailsUpdate::default() };
        let (room, space) = (*self.dice.pick(self.rooms), self.some_space());
        update.drafts(&RoomPlace { room, space, cover: Cover::Open }).remove(0)
    }

    /// A record of an account: of the form of its kind, for one of its keys or not.
    fn some_listing(&mut self) -> Draft {
        let owner = self.dice.pick(self.own).print();
        let job = Job {
            nonce: [self.dice.byte() % 3; 16],
            title: self.text(),
            description: String::new(),
            price: String::new(),
            pricing: Pricing::Free,
            active: true,
            metadata: "{}".to_owned(),
            created: self.some_stamp(),
        };
        let reviewee = match self.heard {
            [] => owner,
            heard => self.dice.pick(heard).owner(),
        };
        let (text, title) = (self.text(), String::new());
        let (created, receipt) = (self.some_stamp(), None);
        let about = job.id(reviewee);
        let review = Review {
            job: about,
            offered_by: reviewee,
            title,
            reviewee,
            stars: 9,
            text,
            created,
            receipt,
        };
        let space = Space::Mesh;
        match self.dice.within(0, 3) {
            0 => {
                let (collection, id) = (finder::JOBS.number, job.id(owner));
                Draft { space, collection, id, body: Some(job.encode()) }
            }
            1 => {
                let (collection, id) = (finder::REVIEWS.number, review.id(owner));
                Draft { space, collection, id, body: Some(review.encode()) }
            }
            2 => {
                let (collection, id) = (finder::PROFILES.number, Profile::id(owner));
                Draft { space, collection, id, body: None }
            }
            _ => self.wanted_name(),
        }
    }

    /// A profile under a username that accounts of the world want.
    fn wanted_name(&mut self) -> Draft {
        let username = username(self.dice.byte() % NAMES);
        let (name, registered) = (self.text(), self.some_stamp());
        let own = self.dice.pick(self.own);
        let profile = Profile {
            username,
            name,
            certificate: vec![7; 40],
            former: Vec::new(),
            payment: Vec::new(),
            contact: Vec::new(),
            registered,
            mailbox: own.halves().mailbox,
            proof: None,
            vault: None,
            host: None,
        };
        let (space, collection) = (Space::Mesh, finder::PROFILES.number);
        let id = Profile::id(own.print());
        Draft { space, collection, id, body: Some(profile.encode()) }
    }

    /// Of one of its keys.
    fn own_record(&mut self) -> Record {
        let mut draft = self.some_draft();
        match self.dice.within(0, 9) {
            0 => draft.id = RecordId([self.dice.byte(); 16]),
            1 => draft.body = Some(vec![self.dice.byte(); RECORD_BODY_BYTES_MAX + 1]),
            2 => draft.collection = CollectionNumber(u16::MAX),
            3 | 4 => draft.body = None,
            _ => {}
        }
        let mut mesh = self.mesh;
        if self.dice.chance(5) {
            mesh.0[0] ^= 1;
        }
        let stamp = self.some_stamp();
        let stamp = if self.dice.chance(20) { stamp.for_ever() } else { stamp };
        draft.sign(self.dice.pick(self.own), mesh, stamp).expect("its keys are long enough")
    }
}
