//! The bridge's way to the engine, and to the store.

use std::{path::Path, sync::Arc};

use bridge::{
    Reply,
    backend::{
        self, FoundAgentFile, FoundFile, FoundProfile, FoundReplaced, Happened, InboxItems,
        InboxPlace, Kept, Past, ReadError, Roam, Row, Serves,
    },
    seam::call::{FollowRecords, GetContent, GetRecord, ListRecords, LocateContents},
    searching::{FoundRows, Searcher},
};
use mesh::{
    Engine, Fates, Proof, Proofs,
    api::{
        account::{ContentState, Mark, RecordNews, RecordPage, RecordView},
        batch::Fate,
        command::Command,
        search::Wanted,
    },
    chronicle::Position,
    name::{
        id::{EntryRef, KeyPrint, LocalRef, MeshId, MessageId, NodeId, RoomId},
        number::{Era, Number},
    },
    records::{
        agent_files::AgentFile,
        details::Details,
        files::{FileView, ReplacedFile},
        profile,
        schedules::{JobView, RunView, WantedJobs, WantedRuns},
        threads::ThreadFact,
    },
    wire::{entry::Said, record::Space},
};
use store::{
    Cursor, Reader,
    followed::{self, Sought},
    owned,
    records::{self, Shelf},
    replaced,
    search::Index,
};

use crate::{
    clock::wall_ms,
    queue::{Asker, Queue},
};

/// The way to the engine.
#[derive(Debug)]
pub(crate) struct ToEngine(pub(crate) Arc<Queue>);

impl backend::Mesh for ToEngine {
    fn call(&self, command: Command, reply: Reply) {
        self.0.push_command(command, Asker::Client(reply));
    }
}

/// The store, as the bridge reads it.
#[derive(Debug)]
pub(crate) struct FromStore {
    reader: Reader,
    mesh: MeshId,
    proofs: Proofs,
    fates: Fates,
    index: Index,
}

impl FromStore {
    /// The part of a store that is of one mesh, with all that its engine knows of its authors and their requests; and the index
    /// of words beside it, which somebody is to keep.
    pub(crate) fn new(
        reader: &Reader,
        dir: &Path,
        mesh: MeshId,
        engine: &Engine,
    ) -> (FromStore, Index) {
        let index = Index::beside(dir, reader.clone());
        let (reader, proofs, fates) = (reader.clone(), engine.proofs(), engine.fates());
        (FromStore { reader, mesh, proofs, fates, index: index.clone() }, index)
    }

    fn convert(&self, room: RoomId, row: store::Row) -> Row {
        let store::Row { number, canonical, numbers, at, log, message, facts, said } = row;
        let proof = said.as_ref().map(|said| self.proofs.of(log.author, said)).unwrap_or_default();
        let asks = |said: &&Said| said.conversation.is_some_and(|place| place.expects_reply);
        let request = EntryRef { log, seq: at.seq };
        let asked = said.as_ref().filter(asks);
        let fate = asked.and_then(|said| self.fates.of(room, request, &said.agent));
        Row { number, canonical, numbers, at, log, message, facts, said, proof, fate }
    }

    fn converted(&self, room: RoomId, rows: Vec<store::Row>) -> Vec<Row> {
        rows.into_iter().map(|row| self.convert(room, row)).collect()
    }

    /// The row of an entry, if it was delivered here, under the number that it was delivered with.
    fn delivered(&self, room: RoomId, row: Option<store::Row>) -> Result<Option<Row>, ReadError> {
        let Some(row) = row else { return Ok(None) };
        let numbers = self.reader.numbers_of(room, row.at).map_err(ReadError::new)?;
        let delivered = numbers.into_iter().find(|(_, fate)| *fate == Fate::Delivered);
        Ok(delivered.map(|(number, _)| Row { number, ..self.convert(room, row) }))
    }
}

impl backend::Reads for FromStore {
    fn page_of_arrival(
        &self,
        room: RoomId,
        after: Number,
        origin_cursor: Number,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let rows = self
            .reader
            .page_of_arrival(room, after, origin_cursor, limit)
            .map_err(ReadError::new)?;
        Ok(self.converted(room, rows))
    }

    fn page_at_once(
        &self,
        room: RoomId,
        after: Number,
        limit: usize,
    ) -> Result<Option<Vec<Row>>, ReadError> {
        let rows = self.reader.page_at_once(room, after, limit).map_err(ReadError::new)?;
        Ok(rows.map(|rows| self.converted(room, rows)))
    }

    fn page_newest(
        &self,
        room: RoomId,
        limit: usize,
        before_ms: Option<u64>,
    ) -> Result<Vec<Row>, ReadError> {
        let rows = self.reader.page_newest(room, limit, before_ms).map_err(ReadError::new)?;
        Ok(self.converted(room, rows))
    }

    fn page_below(&self, room: RoomId, limit: usize, below: Number) -> Result<Vec<Row>, ReadError> {
        let rows = self.reader.page_below(room, limit, below).map_err(ReadError::new)?;
        Ok(self.converted(room, rows))
    }

    fn by_message(&self, room: RoomId, message: MessageId) -> Result<Option<Row>, ReadError> {
        self.delivered(room, self.reader.by_message(room, message).map_err(ReadError::new)?)
    }

    fn by_number(&self, room: RoomId, number: Number) -> Result<Option<Row>, ReadError> {
        self.delivered(room, self.reader.by_number(room, number).map_err(ReadError::new)?)
    }

    fn past(
        &self,
        room: RoomId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Past>, ReadError> {
        let past = self.reader.past(room, after, limit).map_err(ReadError::new)?;
        let told = |past: store::Past| Past {
            at: past.at,
            what: match past.what {
                store::Happened::Said(row) => Happened::Said(self.convert(room, row)),
                store::Happened::Task(facts, act) => Happened::Task(facts, act),
            },
        };
        Ok(past.into_iter().map(told).collect())
    }

    fn row_at(&self, room: RoomId, at: LocalRef) -> Result<Option<Row>, ReadError> {
        self.delivered(room, self.reader.row_at(room, at).map_err(ReadError::new)?)
    }

    fn search(&self, wanted: &Wanted, by: Searcher<'_>) -> Result<FoundRows, ReadError> {
        let mut show = |room, row| {
            let row = self.convert(room, row);
            (by.shows)(room, &row).then_some((room, row))
        };
        let found = self.index.find(wanted, by.may, &mut show).map_err(ReadError::new)?;
        Ok(FoundRows { rows: found.rows, next: found.next, behind: found.behind })
    }

    fn tip(&self, room: RoomId) -> Result<Number, ReadError> {
        self.reader.tip(room).map_err(ReadError::new)
    }

    fn roam(&self, room: RoomId, cursor: Number, limit: usize) -> Result<Roam, ReadError> {
        let roam = self.reader.roam(room, cursor, limit).map_err(ReadError::new)?;
        Ok(Roam {
            rows: self.converted(room, roam.rows),
            more: roam.more,
            later: roam.later.is_some(),
            unproven: roam.unproven,
            needs_claim: roam.needs_claim,
        })
    }

    fn inbox(&self, agent: &str, after: u64, limit: usize) -> Result<InboxItems, ReadError> {
        let page = self.reader.inbox(agent, after, limit).map_err(ReadError::new)?;
        let items = page.items.into_iter().map(|(place, item)| InboxPlace {
            place,
            room: item.room,
            number: item.number,
            notice: item.notice,
        });
        Ok(InboxItems { items: items.collect(), left: page.left })
    }

    fn inbox_mark(&self, agent: &str) -> Result<Option<u64>, ReadError> {
        self.reader.inbox_mark(agent).map_err(ReadError::new)
    }

    fn kept(&self, prefix: &[u8]) -> Result<Vec<Kept>, ReadError> {
        self.reader.kept(prefix).map_err(ReadError::new)
    }

    fn profile(&self, agent: &str) -> Result<FoundProfile, ReadError> {
        let owns = |key| self.proofs.owns(key, agent);
        let mut said = Vec::new();
        for (collection, first) in profile::places(agent) {
            let shelf = Shelf { mesh: self.mesh, space: Space::Mesh, collection };
            let found = records::find(&self.reader, &shelf, &first, |record| owns(record.owner()));
            said.extend(found.map_err(ReadError::new)?);
        }
        let profile = profile::read(agent, &said, owns);
        let (claimed, retired) = (self.proofs.is_claimed(agent), self.proofs.is_retired(agent));
        Ok(FoundProfile { profile, claimed, retired })
    }

    fn details(&self, rooms: &[RoomId], settings: bool) -> Result<Vec<Details>, ReadError> {
        let keys = |room| self.proofs.keys_of_room(room);
        let found = records::details(&self.reader, self.mesh, rooms, keys, settings);
        let mut found = found.map_err(ReadError::new)?;
        if settings {
            for (details, room) in found.iter_mut().zip(rooms) {
                details.show_writers(&self.proofs.writers_of_room(*room));
            }
        }
        Ok(found)
    }

    fn threads(&self, room: RoomId, key: KeyPrint) -> Result<Vec<ThreadFact>, ReadError> {
        records::threads(&self.reader, self.mesh, room, key).map_err(ReadError::new)
    }

    fn files(&self, room: RoomId) -> Result<Vec<FileView>, ReadError> {
        records::files(&self.reader, self.mesh, room, &self.proofs).map_err(ReadError::new)
    }

    fn file(&self, room: RoomId, path: &str) -> Result<Option<FoundFile>, ReadError> {
        let found = records::file(&self.reader, self.mesh, (room, path), &self.proofs);
        let found = found.map_err(ReadError::new)?;
        Ok(found.map(|(view, bytes)| FoundFile { view, bytes }))
    }

    fn replaced_files(&self, room: RoomId) -> Result<Vec<ReplacedFile>, ReadError> {
        let judged = (&self.proofs, wall_ms());
        replaced::files(&self.reader, self.mesh, room, judged).map_err(ReadError::new)
    }

    fn replaced_file(
        &self,
        room: RoomId,
        path: &str,
        nth: usize,
    ) -> Result<Option<FoundReplaced>, ReadError> {
        let judged = (&self.proofs, wall_ms());
        let found = replaced::file(&self.reader, self.mesh, (room, path, nth), judged);
        let found = found.map_err(ReadError::new)?;
        Ok(found.map(|(file, bytes)| FoundReplaced { file, bytes }))
    }

    fn agent_files(
        &self,
        place: RoomId,
        key: KeyPrint,
        agent: &str,
    ) -> Result<Vec<AgentFile>, ReadError> {
        let of = owned::Of { mesh: self.mesh, place, key, agent };
        owned::files(&self.reader, &of).map_err(ReadError::new)
    }

    fn agent_file(
        &self,
        place: RoomId,
        key: KeyPrint,
        (agent, name): (&str, &str),
    ) -> Result<Option<FoundAgentFile>, ReadError> {
        let of = owned::Of { mesh: self.mesh, place, key, agent };
        let found = owned::file(&self.reader, &of, name).map_err(ReadError::new)?;
        Ok(found.map(|(view, bytes)| FoundAgentFile { view, bytes }))
    }

    fn jobs(&self, room: RoomId, wanted: WantedJobs) -> Result<Vec<JobView>, ReadError> {
        let keys = self.proofs.keys_of_room(room);
        records::jobs(&self.reader, self.mesh, (room, wanted), &keys).map_err(ReadError::new)
    }

    fn runs(&self, room: RoomId, wanted: WantedRuns) -> Result<Vec<RunView>, ReadError> {
        let keys = self.proofs.keys_of_room(room);
        records::runs(&self.reader, self.mesh, (room, wanted), &keys).map_err(ReadError::new)
    }

    fn has_record_news(&self, after: Mark) -> bool {
        followed::has_news(&self.reader, after)
    }

    fn record_news(&self, follow: &FollowRecords) -> Result<RecordNews, ReadError> {
        let FollowRecords { collections, after, limit } = follow;
        let news = followed::news(&self.reader, self.mesh, collections, *after, *limit);
        news.map_err(ReadError::new)
    }

    fn record(&self, get: &GetRecord) -> Result<Option<RecordView>, ReadError> {
        let GetRecord { collection, id, owner } = *get;
        let found = followed::record(&self.reader, self.mesh, (collection, id, owner));
        found.map_err(ReadError::new)
    }

    fn speaks_for(&self, key: KeyPrint, agent: &str) -> bool {
        self.proofs.owns(key, agent) && !self.proofs.is_retired(agent)
    }

    fn records(&self, list: &ListRecords) -> Result<RecordPage, ReadError> {
        let ListRecords { collection, owner, first, after, limit } = list;
        let (collection, owner, after, limit) = (*collection, *owner, *after, *limit);
        let sought = Sought { collection, owner, first, after, limit };
        followed::page(&self.reader, self.mesh, &sought).map_err(ReadError::new)
    }

    fn content(&self, get: &GetContent) -> Result<Option<Vec<u8>>, ReadError> {
        let GetContent { collection, id, owner } = *get;
        let found = followed::content(&self.reader, self.mesh, (collection, id, owner));
        found.map_err(ReadError::new)
    }

    fn content_states(&self, locate: &LocateContents) -> Result<Vec<ContentState>, ReadError> {
        let LocateContents { collection, keys } = locate;
        let states = followed::content_states(&self.reader, self.mesh, *collection, keys);
        states.map_err(ReadError::new)
    }

    fn proof(&self, node: NodeId, said: &Said) -> Proof {
        self.proofs.of(node, said)
    }

    fn serves(&self, room: RoomId, cursor: Number) -> Result<Serves, ReadError> {
        // In the home era all nodes deliver the same, in one order: below a cursor that is in it
        // nobody was given less. Asking for more than that looks at all that is above the cursor.
        let calm = cursor.era() == Era::HOME
            && self.reader.tip(room).map_err(ReadError::new)?.era() == Era::HOME;
        let serves = if calm {
            self.reader.serves(room, cursor)
        } else {
            // A cursor does not say which node it is from.
            self.reader.serves_roamer(room, cursor)
        };
        Ok(match serves.map_err(ReadError::new)? {
            Cursor::Here => Serves::Here,
            Cursor::Foreign => Serves::Foreign,
        })
    }
}
