//! Records of accounts, as the store of a node has them for readers that follow.

use std::collections::BTreeMap;

use mesh::{
    api::account::{Mark, RecordNews, RecordPage, RecordView},
    wire::record::{CollectionNumber, Record, RecordId, RecordKey, Stamp},
};

use super::Records;
use crate::records::{FollowRecords, GetRecord, ListRecords};

/// The number of the last change of each record.
#[derive(Debug, Default)]
pub(super) struct Followed {
    last: u64,
    numbers: BTreeMap<(CollectionNumber, RecordKey), u64>,
}

impl Followed {
    pub(super) fn note(&mut self, place: (CollectionNumber, RecordKey)) {
        self.last += 1;
        self.numbers.insert(place, self.last);
    }

    pub(super) fn has_news(&self, after: Mark) -> bool {
        self.last != after.at
    }

    pub(super) fn news(&self, records: &Records, follow: &FollowRecords) -> RecordNews {
        let FollowRecords { collections, after, limit } = follow;
        let began = if *after == Mark::START { self.last } else { after.began };
        let mut changes: Vec<_> =
            self.numbers.iter().map(|(place, number)| (*number, *place)).collect();
        changes.retain(|(number, place)| *number > after.at && collections.contains(&place.0));
        changes.sort_unstable();
        let more = changes.len() > *limit;
        changes.truncate(*limit);
        let at =
            if more { changes.last().map_or(self.last, |(number, _)| *number) } else { self.last };
        let is_news = |number: u64, view: &RecordView| !view.is_gone() || number > began;
        let views = changes.iter().map(|(number, place)| (*number, at_place(records, *place)));
        let news = views.filter(|(number, view)| is_news(*number, view));
        RecordNews {
            records: news.map(|(_, view)| view).collect(),
            mark: Mark { at, began },
            more,
            anew: false,
        }
    }
}

fn at_place(records: &Records, place: (CollectionNumber, RecordKey)) -> RecordView {
    let (collection, RecordKey { id, owner }) = place;
    let gone = || RecordView {
        collection,
        id,
        owner: owner.unwrap(),
        halves: None,
        stamp: Stamp::default(),
        body: None,
        apart_bytes: 0,
    };
    records.get(&place).map_or_else(gone, |record| view(record))
}

fn view(record: &Record) -> RecordView {
    RecordView {
        collection: record.collection,
        id: record.id,
        owner: record.owner(),
        halves: Some(record.by.halves),
        stamp: record.stamp,
        body: record.content().map(<[u8]>::to_vec),
        apart_bytes: record.apart.map_or(0, |apart| apart.length),
    }
}

pub(super) fn record(records: &Records, get: &GetRecord) -> Option<RecordView> {
    let key = RecordKey { id: get.id, owner: Some(get.owner) };
    records.get(&(get.collection, key)).map(|record| view(record))
}

pub(super) fn page(records: &Records, list: &ListRecords) -> RecordPage {
    let after = list.after.map(|(id, owner)| RecordKey { id, owner: Some(owner) });
    let is_sought = |(collection, key): &(CollectionNumber, RecordKey)| {
        let RecordKey { id: RecordId(id), owner } = key;
        *collection == list.collection
            && id.starts_with(&list.first)
            && list.owner.is_none_or(|wanted| *owner == Some(wanted))
            && after.is_none_or(|after| *key > after)
    };
    let mut found = records.iter().filter(|(place, _)| is_sought(place)).map(|(_, it)| view(it));
    let records = found.by_ref().take(list.limit).collect();
    RecordPage { records, more: found.next().is_some() }
}
