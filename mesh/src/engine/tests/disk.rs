//! What a store would keep of an engine's turns, as far as these tests need it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    api::batch::{
        Change, EraRecord, Fate, InboxItem, InboxRecord, LogRecord, NodeRecord, NumberRange,
        RoomRecord, StoredInbox, StoredRecord, StoredRoom, Summary, Unsettled, VoteNote,
    },
    api::delivery::RequestRecord,
    name::{
        id::{AgentId, LocalRef, LogIx, MessageId, RoomId},
        number::{Era, Number},
    },
    records::collection::Collection,
    wire::{
        entry::{DedupId, Stored},
        kinds::is_act,
        record::{CollectionNumber, Record, RecordKey, Space},
        run::{Certificate, Run},
    },
};

/// One room's rows.
#[derive(Debug, Default)]
struct Rows {
    record: Option<RoomRecord>,
    logs: BTreeMap<LogIx, LogRecord>,
    eras: BTreeMap<Era, EraRecord>,
    entries: BTreeMap<LocalRef, Stored>,
    numbers: BTreeMap<Number, (LocalRef, Fate)>,
    foretold: BTreeMap<LocalRef, NumberRange>,
    dedups: BTreeMap<DedupId, (LocalRef, u64)>,
}

#[derive(Debug, Default)]
struct Disk {
    node: Option<NodeRecord>,
    rooms: BTreeMap<RoomId, Rows>,
    notes: BTreeMap<(RoomId, LocalRef), VoteNote>,
    proofs: Vec<(Certificate, Run)>,
    records: BTreeMap<(Space, CollectionNumber, RecordKey), Arc<Record>>,
    contents: BTreeSet<(Space, CollectionNumber, RecordKey)>,
    copied: BTreeSet<(Space, CollectionNumber, RecordKey)>,
    inboxes: BTreeMap<AgentId, InboxRecord>,
    items: BTreeMap<(AgentId, u64), InboxItem>,
    requests: BTreeMap<MessageId, RequestRecord>,
}

/// What a store would give back that has committed this.
pub(super) fn stored(changes: &[Change]) -> Summary {
    let mut disk = Disk::default();
    changes.iter().for_each(|it| disk.commit(it.clone()));
    disk.summary()
}

impl Disk {
    #[expect(clippy::too_many_lines, reason = "a table: one row for each change")]
    fn commit(&mut self, change: Change) {
        match change {
            Change::Room { room, record } => self.room(room).record = Some(record),
            Change::Drop { room } => drop(self.rooms.remove(&room)),
            Change::Log { room, log, record } => {
                self.room(room).logs.insert(log, record);
            }
            Change::Entry { room, at, entry } => {
                self.room(room).entries.insert(at, Stored::clone(&entry));
            }
            Change::Era { room, era, record } => {
                self.room(room).eras.insert(era, record);
            }
            Change::Number { room, number, at, fate } => {
                self.room(room).numbers.insert(number, (at, fate));
            }
            Change::NumberRange { room, at, numbers: Some(numbers) } => {
                self.room(room).foretold.insert(at, numbers);
            }
            Change::NumberRange { room, at, numbers: None } => {
                self.room(room).foretold.remove(&at);
            }
            Change::Note { room, vote, note: Some(note) } => {
                self.notes.insert((room, vote), note);
            }
            Change::Note { room, vote, note: None } => {
                self.notes.remove(&(room, vote));
            }
            Change::Dedup { room, id, at, wall_ms } => {
                self.room(room).dedups.insert(id, (at, wall_ms));
            }
            Change::Node(node) => self.node = Some(node),
            Change::Evidence { certificate, run } => self.proofs.push((certificate, *run)),
            Change::Record { space, collection, key, record, .. } => {
                match record {
                    Some(record) => self.records.insert((space, collection, key), record),
                    None => self.records.remove(&(space, collection, key)),
                };
            }
            Change::Content { space, collection, key, bytes, .. } => {
                self.copied.remove(&(space, collection, key));
                match bytes {
                    Some(_) => self.contents.insert((space, collection, key)),
                    None => self.contents.remove(&(space, collection, key)),
                };
            }
            Change::Copied { space, collection, key, .. } => {
                self.copied.insert((space, collection, key));
            }
            Change::Inbox(record) => {
                self.inboxes.insert(record.agent.clone(), record);
            }
            Change::NoInbox { agent } => {
                self.inboxes.remove(&agent);
                self.items.retain(|(of, _), _| *of != agent);
            }
            Change::InboxItem { agent, place, item } => {
                match item {
                    Some(item) => self.items.insert((agent, place), item),
                    None => self.items.remove(&(agent, place)),
                };
            }
            Change::Request { message, record } => {
                match record {
                    Some(record) => self.requests.insert(message, record),
                    None => self.requests.remove(&message),
                };
            }
            // Nothing of these is looked at in these tests after a start.
            Change::Called { .. }
            | Change::Keep { .. }
            | Change::Prune { .. }
            | Change::Replaced { .. }
            | Change::ReplacedEnd { .. } => {}
        }
    }

    fn room(&mut self, room: RoomId) -> &mut Rows {
        self.rooms.entry(room).or_default()
    }

    fn summary(&self) -> Summary {
        let notes = self.notes.iter().map(|((room, at), note)| (*room, *at, note.clone()));
        let (node, notes) = (self.node.clone(), notes.collect());
        let proofs = self.proofs.clone();
        // None of these tests forks a log in a private room.
        let forked = proofs.iter().map(|(it, _)| it.log.author).collect();
        let mesh = node.as_ref().map(|node| node.mesh);
        let head = |(place, record): (&(Space, CollectionNumber, RecordKey), &Arc<Record>)| {
            let head = record.head(mesh?);
            let (deleted, apart) = (record.body.is_none(), record.apart);
            let (held, (space, collection, _)) = (self.contents.contains(place), *place);
            let whole = Collection::of(collection).is_some_and(|kind| kind.in_memory);
            let whole = whole.then(|| Box::new(Record::clone(record)));
            let about = Collection::of(collection).and_then(|kind| kind.about(record.content()));
            let copied = self.copied.contains(place);
            Some(StoredRecord {
                space,
                collection,
                head,
                deleted,
                about,
                apart,
                held,
                copied,
                whole,
            })
        };
        let records = self.records.iter().filter_map(head).collect();
        let newest = |agent: &AgentId| {
            let places = self.items.keys().filter(|(of, _)| of == agent);
            places.map(|(_, place)| *place).max().unwrap_or(0)
        };
        let stored = |record: &InboxRecord| StoredInbox {
            record: record.clone(),
            newest: newest(&record.agent),
        };
        let inboxes = self.inboxes.values().map(stored).collect();
        let requests = self.requests.values().cloned().collect();
        let mut summary = Summary {
            node,
            notes,
            proofs,
            forked,
            records,
            inboxes,
            requests,
            ..Summary::default()
        };
        for (room, rows) in &self.rooms {
            let Some(stored) = rows.stored(*room) else { continue };
            summary.rooms.push(stored);
            for (at, entry) in &rows.entries {
                let kind = entry.facts.kind;
                if is_act(kind) {
                    summary.acts.push((*room, *at, entry.clone()));
                } else if (32..48).contains(&kind) {
                    let of = |(number, (it, _)): (&Number, &(LocalRef, Fate))| {
                        (it == at).then_some(*number)
                    };
                    let numbers = rows.numbers.iter().filter_map(of).collect();
                    summary.directory.push((*room, *at, entry.clone(), numbers));
                }
            }
        }
        summary
    }
}

impl Rows {
    fn numbers_of(&self, at: LocalRef) -> Option<NumberRange> {
        let mut of = self.numbers.iter().filter(|(_, (it, _))| *it == at).map(|(it, _)| *it);
        let canonical = of.next()?;
        Some(NumberRange { canonical, best: of.next_back().unwrap_or(canonical) })
    }

    fn delivered_as(&self, at: LocalRef) -> Option<Number> {
        let mut numbers = self.numbers.iter();
        numbers.find(|(_, it)| **it == (at, Fate::Delivered)).map(|(number, _)| *number)
    }

    fn stored(&self, room: RoomId) -> Option<StoredRoom> {
        let record = self.record.clone().filter(|it| !it.ephemeral)?;
        let delivered: BTreeSet<LocalRef> = self
            .numbers
            .values()
            .filter(|(_, fate)| *fate == Fate::Delivered)
            .map(|(at, _)| *at)
            .collect();
        let unsettled = self.entries.iter().filter(|(at, entry)| {
            let settled = self.logs.get(&at.log).map_or(0, |it| it.settled);
            entry.facts.visible && at.seq > settled && !delivered.contains(at)
        });
        let waits =
            |number: &Number| self.eras.get(&number.era()).is_some_and(|era| number.n() > era.done);
        Some(StoredRoom {
            room,
            record,
            logs: self.logs.values().cloned().collect(),
            eras: self.eras.iter().map(|(era, it)| (*era, it.clone())).collect(),
            waiting: self
                .numbers
                .iter()
                .filter(|(number, _)| waits(number))
                .map(|(number, (at, _))| (*number, *at))
                .collect(),
            unsettled: unsettled
                .map(|(at, entry)| Unsettled {
                    at: *at,
                    entry: entry.clone(),
                    numbers: self.numbers_of(*at),
                })
                .collect(),
            foretold: self.foretold.iter().map(|(at, it)| (*at, *it)).collect(),
            dedups: self
                .dedups
                .iter()
                .map(|(id, (at, wall_ms))| (*id, *at, *wall_ms, self.delivered_as(*at)))
                .collect(),
        })
    }
}
