//! All collections that there are.

use super::{
    agent_files, closing, collection::Collection, details, files, finder, members, pair, profile,
    retired, schedules, shared, stopped, threads, writers,
};
use crate::wire::record::{CollectionNumber, Space};

/// All collections that this version knows. Records of others are neither kept nor passed on.
static ALL: [&Collection; 26] = [
    &profile::COLLECTION,
    &profile::CARDS,
    &details::COLLECTION,
    &details::SETTINGS,
    &pair::COLLECTION,
    &files::COLLECTION,
    &shared::GIVEN,
    &shared::TAKEN,
    &finder::PROFILES,
    &finder::JOBS,
    &finder::REVIEWS,
    &finder::SEEN,
    &finder::MAILS,
    &finder::MARKS,
    &finder::DELIVERED,
    &finder::PRESENTED,
    &finder::NOTICES,
    &writers::COLLECTION,
    &closing::COLLECTION,
    &members::COLLECTION,
    &retired::COLLECTION,
    &agent_files::COLLECTION,
    &schedules::JOBS,
    &schedules::RUNS,
    &threads::COLLECTION,
    &stopped::COLLECTION,
];

impl Collection {
    /// The collection of this number, if this version knows it.
    #[must_use]
    pub fn of(number: CollectionNumber) -> Option<&'static Collection> {
        ALL.iter().copied().find(|collection| collection.number == number)
    }

    /// Those that a space has.
    pub fn all_in(space: Space) -> impl Iterator<Item = &'static Collection> {
        ALL.iter().copied().filter(move |collection| collection.is_in(space))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        limits::{
            ACCOUNT_RECORD_BYTES_MAX, RECORD_BODY_BYTES_MAX, RECORD_COLLECTIONS_MAX, SEAL_BYTES,
        },
        name::{group::Group, id::MeshId, identity::Strict, key::KeySecret},
        records::collection::{Place, is_sound, may_be_sent},
        wire::record::{Draft, Record, RecordId, Stamp},
    };

    #[test]
    fn one_that_is_not_of_the_form_of_its_collection_is_nobodys_word() {
        let mesh = MeshId([1; 16]);
        let key = KeySecret::of(&"k".repeat(32));
        let sound = |collection, body| {
            let draft = Draft { space: Space::Mesh, collection, id: RecordId([4; 16]), body };
            let record = draft.sign(&key, mesh, Stamp::at(1)).expect("it is long enough");
            is_sound(&record, &Strict, mesh)
        };
        let known = profile::COLLECTION.number;
        let draft =
            Draft { space: Space::Mesh, collection: known, id: RecordId([4; 16]), body: None };
        let record = draft.sign(&key, mesh, Stamp::at(1)).expect("it is long enough");
        let forged = Record { stamp: Stamp::at(2), ..record };
        assert!(!is_sound(&forged, &Strict, mesh), "its owner has not signed that");
        assert!(!sound(known, Some(vec![0xff; 3])));
        assert!(sound(known, None), "a deletion does not say what it names");
        assert!(sound(CollectionNumber(u16::MAX), Some(vec![0xff; 3])), "a later version knows it");
    }

    #[test]
    fn nobody_sends_records_of_a_node_alone_or_profiles_to_followers() {
        let mesh = MeshId([1; 16]);
        let (key, other) = (KeySecret::of(&"k".repeat(32)), KeySecret::of(&"l".repeat(32)));
        let is_sent = |space, collection| {
            let draft = Draft { space, collection, id: RecordId([4; 16]), body: None };
            let record = draft.sign(&key, mesh, Stamp::at(1)).expect("it is long enough");
            (is_sound(&record, &Strict, mesh), may_be_sent(&record, &Strict, mesh))
        };
        let known = details::COLLECTION.number;
        assert_eq!(is_sent(Space::Mesh, known), (true, true));
        assert_eq!(is_sent(Space::Node, known), (true, false), "it is on one disk");
        assert_eq!(is_sent(Space::Followers(Group::Key(key.print())), known), (true, true));
        assert_eq!(
            is_sent(Space::Followers(Group::Key(other.print())), known),
            (true, true),
            "a successor"
        );
        let profiles = profile::COLLECTION.number;
        assert_eq!(is_sent(Space::Followers(Group::Key(key.print())), profiles), (false, false));
    }

    #[test]
    fn no_two_collections_have_one_number_and_all_keep_to_the_bounds_of_messages() {
        let numbers: BTreeSet<_> = ALL.iter().map(|collection| collection.number).collect();
        assert_eq!(numbers.len(), ALL.len());
        assert!(ALL.len() <= RECORD_COLLECTIONS_MAX);
        for collection in ALL {
            let sealed = if collection.place == Place::Rooms { SEAL_BYTES } else { 0 };
            let max = match collection.family() {
                Some(_) => ACCOUNT_RECORD_BYTES_MAX,
                // As those of accounts it travels whole: a message of a job has 32 KiB.
                None if collection.number == schedules::JOBS.number => ACCOUNT_RECORD_BYTES_MAX,
                None => RECORD_BODY_BYTES_MAX,
            };
            assert!(collection.body_bytes_max + sealed <= max, "{collection:?}");
            let founder =
                ALL.iter().filter(|other| other.founds() && other.place == collection.place);
            let first = founder.map(|founder| founder.number).min();
            let family = collection.family().is_some();
            assert!(
                !family
                    || collection.place == Place::Node
                    || first.is_some_and(|first| first <= collection.number),
                "a store has it first"
            );
            assert!(collection.owner_max <= collection.node_max, "{collection:?}");
            assert!(collection.owner_kept() >= collection.owner_max + collection.owner_max / 9);
        }
    }
}
