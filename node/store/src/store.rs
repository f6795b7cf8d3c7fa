//! Opening, and writing.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use mesh::{
    api::batch::{Change, Summary, VoteNote},
    name::id::{MeshId, NodeId, RoomId},
};
use redb::{
    Builder, Database, DatabaseError, Durability, ReadableTable, StorageBackend,
    backends::{FileBackend, InMemoryBackend},
};

use crate::{
    apply::{apply, prune_dedups},
    databases::{Databases, Disk},
    error::{CommitError, OpenError, ReadError},
    followed,
    held::{HoldBack, is_full},
    journal::{Journal, Room},
    limits::{CACHE_BYTES, DEDUP_PRUNE_EVERY, MEMORY_CACHE_BYTES},
    panics::caught,
    plan::{Keep, Plan, Rows, Seat, Seats},
    prune::{self, Drops},
    reader::Reader,
    schema::{self, Found, LAYOUT, ROOMS},
    search::News,
    summary,
};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "clawmesh.redb";

/// The store of a node, and its only writer.
///
/// There are two databases of one form: a file for the node itself and its permanent rooms, and one
/// in memory for ephemeral rooms, made when the first of them is. The directory is free for others
/// when the store and all its readers are dropped.
#[derive(Debug)]
pub struct Store {
    databases: Arc<Databases>,
    seats: Seats,
    /// The time, as the driver last said it.
    wall_ms: Option<u64>,
    /// Dedup rows written since the table was last thinned out.
    dedups: usize,
    /// The file does not say which of its pages are free: see [`Store::settle`].
    unsettled: bool,
    repaired: bool,
    /// The file's backend and path, to open it again when the disk was full.
    backend: HoldBack,
    place: (PathBuf, PathBuf),
    /// Openings before this one, of which something may still be read: new pages may be written
    /// where they read.
    former: Vec<Weak<Database>>,
    /// Commits are made durable later: see [`crate::testing::put_off_syncs`].
    pub(crate) syncs_later: bool,
    /// Something is committed that is not durable yet.
    pub(crate) unsynced: bool,
}

impl Store {
    /// Opens the store in a directory that exists, or makes a new one there, readable by its owner
    /// alone. An empty file counts as new.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A file that is refused is not written to.
    pub fn open(dir: &Path) -> Result<Store, OpenError> {
        let file = dir.join(FILE_NAME);
        let backend = open_file(&file)
            .and_then(|file| FileBackend::new(file).map_err(io::Error::other))
            .map_err(|source| refused(&file, source))?;
        Self::with(Journal::on(backend, Room::FILE), dir, file)
    }

    /// Opens or makes a store on any backend.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. A backend that is refused is not written to.
    pub fn on(backend: impl StorageBackend) -> Result<Store, OpenError> {
        let journal = Journal::on(backend, Room::SMALL);
        Self::with(journal, Path::new("<backend>"), PathBuf::from("<backend>"))
    }

    fn with(journal: Journal, dir: &Path, file: PathBuf) -> Result<Store, OpenError> {
        let failed = |source| refused(&file, source);
        let backend = HoldBack::new(journal);
        // redb answers some damage with a panic. Nothing that it has in hand is used afterwards.
        let look = || inspect(backend.clone(), dir, &file);
        let Opened { disk, seats, changed, repaired } = caught(look).unwrap_or_else(|_| {
            let why = "its pages contradict each other".to_owned();
            Err(OpenError::Damaged { file: file.clone(), why })
        })?;
        match backend.release() {
            // Stored rows can be read. The next commit tries again, and says that the disk is full.
            Err(error) if is_full(&error) && !backend.is_new() => {}
            released => released.map_err(failed)?,
        }
        if backend.is_new() {
            sync_directory(dir).map_err(failed)?;
        }
        let disk = Disk::new(disk, backend.gate());
        let (changed, size) = (AtomicU64::new(changed), backend.size());
        let news = News::default();
        let databases = Databases { disk, memory: OnceLock::new(), changed, news, size };
        Ok(Store {
            databases: Arc::new(databases),
            seats,
            wall_ms: None,
            // The first commit thins the dedup table out.
            dedups: DEDUP_PRUNE_EVERY,
            unsettled: repaired,
            repaired,
            backend,
            place: (dir.to_owned(), file),
            former: Vec::new(),
            syncs_later: false,
            unsynced: false,
        })
    }

    /// Says what time it is (Unix milliseconds): the store reads no clock. Dedup rows older than
    /// [`mesh::limits::DEDUP_FOR`] are forgotten by some later commit.
    pub fn set_wall_ms(&mut self, wall_ms: u64) {
        self.wall_ms = Some(wall_ms);
    }

    /// Writes a batch, all of it or nothing, durably when this returns (what belongs to ephemeral
    /// rooms: in memory). An empty batch does nothing.
    ///
    /// A number under which an entry was delivered stays so, also if a later row contradicts that.
    /// Of the bodies to prune the first [`crate::limits::PRUNE_ROWS`] of each room go; when there
    /// is nothing else to write and none that may go, nothing is written.
    ///
    /// # Errors
    ///
    /// See [`CommitError`]. After [`CommitError::Full`] everything is as it was before, for
    /// readers, too, and the batch may be given again; after any other failure of the storage the
    /// store is not to be used any more.
    pub fn commit(&mut self, batch: &[Change]) -> Result<(), CommitError> {
        if batch.is_empty() {
            return Ok(());
        }
        let Plan { disk, memory, moves } = Plan::new(&self.seats, batch)?;
        // Both are prepared before either is committed: refusals happen here.
        let in_memory = if memory.is_empty() {
            None
        } else {
            let mut write = self.databases.memory()?.begin_write()?;
            write.set_durability(Durability::None).map_err(|error| storage(error.into()))?;
            apply(&write, &memory)?;
            Some(write)
        };
        let database = self.databases.disk.database();
        let drops = prune::find(&database, &disk.prunes, self.wall_ms)?;
        let dedups = self.dedups + disk.dedups.len();
        let thin_out = dedups >= DEDUP_PRUNE_EVERY;
        if !disk.is_empty() || !drops.is_empty() {
            self.have_room()?;
            let durability = self.durability();
            let thin_out_at = thin_out.then_some(self.wall_ms);
            let written = write(&database, durability, &disk, &drops, thin_out_at);
            if self.backend.is_full() {
                drop(database);
                self.open_again()?;
                return Err(CommitError::Full);
            }
            written?;
            if !disk.records.is_empty() {
                self.databases.changed.store(followed::last(&database)?, Ordering::Release);
            }
            self.dedups = if thin_out { 0 } else { dedups };
            self.unsettled = true;
        }
        if let Some(write) = in_memory {
            write.commit()?;
        }
        self.seats.update(moves);
        self.databases.news.committed(batch);
        Ok(())
    }

    /// Whether all of the file was read when it was opened, because it had not been closed or
    /// settled.
    #[must_use]
    pub fn was_repaired(&self) -> bool {
        self.repaired
    }

    /// Whether anything was committed since the file was last settled.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Writes down which pages of the file are free, so that opening it after a crash takes no
    /// longer than after an orderly end. Without it that is found out by reading the whole file,
    /// some two seconds for each gigabyte. It takes a second sync, and longer the larger the file
    /// is: a burst of commits is settled once, when it is over. To be done at leisure; it is of no
    /// use twice.
    ///
    /// # Errors
    ///
    /// See [`Store::commit`]. When the disk is full it may be tried again.
    pub fn settle(&mut self) -> Result<(), CommitError> {
        if !self.unsettled {
            return Ok(());
        }
        self.have_room()?;
        let database = self.databases.disk.database();
        let settled = settle(&database);
        if self.backend.is_full() {
            drop(database);
            self.open_again()?;
            return Err(CommitError::Full);
        }
        settled?;
        self.backend.checkpoint().map_err(|error| storage(redb::Error::Io(error)))?;
        self.unsettled = false;
        Ok(())
    }

    fn durability(&mut self) -> Durability {
        self.unsynced = self.syncs_later;
        if self.syncs_later { Durability::None } else { Durability::Immediate }
    }

    /// Makes all commits so far durable.
    pub(crate) fn sync(&mut self) -> Result<(), CommitError> {
        if std::mem::take(&mut self.unsynced) {
            let nothing = Rows::default();
            let database = self.databases.disk.database();
            write(&database, Durability::Immediate, &nothing, &Drops::default(), None)?;
        }
        Ok(())
    }

    /// Does the writes now that redb did when the file was opened again, if there is room by now.
    fn have_room(&mut self) -> Result<(), CommitError> {
        self.former.retain(|former| former.strong_count() > 0);
        if !self.former.is_empty() {
            return Err(CommitError::Full);
        }
        self.backend.release().map_err(|error| {
            if is_full(&error) { CommitError::Full } else { storage(redb::Error::Io(error)) }
        })
    }

    /// The disk was full: redb takes writes for done that are not. Readers have not seen them, and
    /// from now on read the file as it was before.
    fn open_again(&mut self) -> Result<(), CommitError> {
        let again = self.backend.again().map_err(|error| storage(redb::Error::Io(error)))?;
        let (dir, file) = &self.place;
        let look = || inspect(again.clone(), dir, file);
        let opened = caught(look).unwrap_or_else(|_| {
            let why = "its pages contradict each other".to_owned();
            Err(OpenError::Damaged { file: file.clone(), why })
        });
        let opened = opened.map_err(|error| CommitError::NotAgain(Box::new(error)))?;
        self.former.push(self.databases.disk.replace(opened.disk));
        self.backend = again;
        Ok(())
    }

    /// Everything the engine of `node` starts from: the node's state, and the permanent rooms of
    /// `mesh` (`None`: of the mesh the node was last in). Rooms of other meshes are left out, but
    /// stay readable through [`Reader`].
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn summary(&self, node: NodeId, mesh: Option<MeshId>) -> Result<Summary, ReadError> {
        summary::read(&self.databases.disk.database(), node, mesh)
    }

    /// Makes what `before` kept the beginning of another node, which has restored it from a backup:
    /// see [`mesh::api::batch::NodeRecord::under_new_identity`]. Which ballots `before` had sealed
    /// and not shown is forgotten: another node cannot show them.
    ///
    /// # Errors
    ///
    /// See [`CommitError`].
    pub fn adopt(&mut self, before: NodeId) -> Result<(), CommitError> {
        let Summary { node, notes, .. } = self.summary(before, None)?;
        let mut batch: Vec<Change> = notes
            .into_iter()
            .map(|(room, vote, note)| {
                let note = VoteNote { choices: Vec::new(), told: note.told };
                Change::Note { room, vote, note: Some(note) }
            })
            .collect();
        batch.extend(node.map(|record| Change::Node(record.under_new_identity(before))));
        self.commit(&batch)
    }

    /// A way to read, for any thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.databases))
    }
}

/// The database of the store in `dir`, if there is one: everything that is done to it stays in
/// memory.
pub(crate) fn look(dir: &Path) -> Result<Database, OpenError> {
    Ok(held(dir)?.0)
}

/// The same, to be written.
pub(crate) fn open_existing(dir: &Path) -> Result<Database, OpenError> {
    let (disk, backend) = held(dir)?;
    let failed = |source| refused(&dir.join(FILE_NAME), source);
    backend.release().map_err(failed)?;
    Ok(disk)
}

fn held(dir: &Path) -> Result<(Database, HoldBack), OpenError> {
    let file = dir.join(FILE_NAME);
    let failed = |source| refused(&file, source);
    let open = OpenOptions::new().read(true).write(true).open(&file).map_err(failed)?;
    let backend = FileBackend::new(open).map_err(|error| failed(io::Error::other(error)))?;
    let backend = HoldBack::new(Journal::on(backend, Room::FILE));
    let look = || inspect(backend.clone(), dir, &file);
    let opened = caught(look).unwrap_or_else(|_| {
        let why = "its pages contradict each other".to_owned();
        Err(OpenError::Damaged { file: file.clone(), why })
    })?;
    Ok((opened.disk, backend))
}

impl Databases {
    /// The database of ephemeral rooms, made on first use.
    fn memory(&self) -> Result<&Database, CommitError> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let memory = builder(MEMORY_CACHE_BYTES)
            .create_with_backend(InMemoryBackend::new())
            .map_err(|error| storage(error.into()))?;
        schema::make(&memory).map_err(storage)?;
        Ok(self.memory.get_or_init(|| memory))
    }
}

/// One transaction, durable when it returns, or when a later one is. `thin_out`: the time now, if
/// old dedup rows are to go.
fn write(
    database: &Database,
    durability: Durability,
    rows: &Rows<'_>,
    drops: &Drops,
    thin_out: Option<Option<u64>>,
) -> Result<(), CommitError> {
    let mut write = database.begin_write()?;
    write.set_durability(durability).map_err(|error| storage(error.into()))?;
    apply(&write, rows)?;
    if !drops.is_empty() {
        prune::apply(&write, drops)?;
    }
    if let Some(wall_ms) = thin_out {
        prune_dedups(&write, wall_ms)?;
    }
    write.commit()?;
    Ok(())
}

/// A transaction of nothing but which pages are free.
fn settle(database: &Database) -> Result<(), CommitError> {
    let mut write = database.begin_write()?;
    write.set_durability(Durability::Immediate).map_err(|error| storage(error.into()))?;
    write.set_quick_repair(true);
    write.commit()?;
    Ok(())
}

fn storage(error: redb::Error) -> CommitError {
    CommitError::Storage(Box::new(error))
}

fn builder(cache_bytes: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    builder
}

fn open_file(file: &Path) -> io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// A new file is there after a power failure only if its directory says so.
fn sync_directory(dir: &Path) -> io::Result<()> {
    if cfg!(unix) && dir.is_dir() {
        std::fs::File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// A database that is ours.
struct Opened {
    disk: Database,
    seats: Seats,
    /// The number of the last change of a followed record.
    changed: u64,
    repaired: bool,
}

/// Opens, decides whether it is ours, makes it if it is new, and reads which rooms there are. All of
/// it on a backend that is still held back.
fn inspect(backend: HoldBack, dir: &Path, file: &Path) -> Result<Opened, OpenError> {
    let unread = |error: ReadError| match error {
        ReadError::Storage(source) => unusable(file, *source),
        ReadError::Damaged(what) => {
            OpenError::Damaged { file: file.to_owned(), why: format!("{what} cannot be read") }
        }
    };
    let repaired = Arc::new(AtomicBool::new(false));
    let mut builder = builder(CACHE_BYTES);
    let told = repaired.clone();
    builder.set_repair_callback(move |_| told.store(true, Ordering::Relaxed));
    let disk = match builder.create_with_backend(backend) {
        Ok(disk) => disk,
        Err(DatabaseError::DatabaseAlreadyOpen) => {
            return Err(OpenError::InUse { dir: dir.to_owned() });
        }
        Err(error) => return Err(unusable(file, error.into())),
    };
    let (file_name, known) = (file.to_owned(), LAYOUT);
    match schema::find(&disk).map_err(unread)? {
        Found::Empty => schema::make(&disk).map_err(|error| unusable(file, error))?,
        Found::Layout(LAYOUT) => {}
        Found::Layout(found) if found > LAYOUT => {
            return Err(OpenError::Newer { file: file_name, found, known });
        }
        Found::Layout(found) => return Err(OpenError::Older { file: file_name, found, known }),
        Found::Foreign => return Err(OpenError::Foreign { file: file_name }),
    }
    let seats = seats(&disk).map_err(unread)?;
    let changed = followed::last(&disk).map_err(unread)?;
    Ok(Opened { disk, seats, changed, repaired: repaired.load(Ordering::Relaxed) })
}

/// redb's error about a file that it cannot use.
fn unusable(file: &Path, error: redb::Error) -> OpenError {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    let file = file.to_owned();
    let damaged = |why| OpenError::Damaged { file: file.clone(), why };
    if let redb::Error::Corrupted(why) = error {
        damaged(why)
    } else if let redb::Error::RepairAborted = error {
        damaged("it cannot be repaired".to_owned())
    } else if let redb::Error::Io(source) = error {
        if matches!(source.kind(), InvalidData | UnexpectedEof) {
            return damaged(source.to_string());
        }
        refused(&file, source)
    } else {
        OpenError::Storage { file, source: Box::new(error) }
    }
}

/// The file system's error about it.
fn refused(file: &Path, source: io::Error) -> OpenError {
    let file = file.to_owned();
    if is_full(&source) { OpenError::Full { file, source } } else { OpenError::Io { file, source } }
}

/// Which rooms there are. The file's only: nothing else lasts.
fn seats(disk: &Database) -> Result<Seats, ReadError> {
    use redb::ReadableDatabase as _;
    let mut seats = Seats::default();
    let read = disk.begin_read()?;
    for row in schema::table(&read, ROOMS)?.iter()? {
        let (room, row) = row?;
        let room = room.value();
        let id = row.value().first_chunk().ok_or(ReadError::Damaged("room"))?;
        seats.rooms.insert(RoomId(*id), Seat { keep: Keep::Disk, room });
        seats.next_disk = room + 1;
    }
    Ok(seats)
}

#[cfg(test)]
mod tests {
    use mesh::{
        api::batch::{EraRecord, Fate, LogRecord, NumberRange, RoomRecord, VoteNote},
        name::{
            id::{LocalRef, LogId, MessageId},
            number::{Era, Number},
        },
        wire::{
            entry::{DedupId, Facts, Stored},
            run::{Certificate, Run},
        },
    };
    use redb::{ReadableDatabase, ReadableTableMetadata};

    use super::*;

    const ROOM: RoomId = RoomId([2; 16]);
    const LOG: LogId = LogId { author: NodeId([3; 32]), incarnation: 9 };
    const AT: LocalRef = LocalRef { log: 0, seq: 1 };

    fn something_in_every_table() -> Vec<Change> {
        let room = ROOM;
        let record = RoomRecord {
            mesh: MeshId([1; 16]),
            home: LOG,
            tip: Number(1),
            delivered: 1,
            last_activity_ms: None,
            spoke: None,
            floor: None,
            ephemeral: true,
            local: false,
            seal: None,
            imported: false,
            said: [Number::ZERO; 2],
            began: [false; 2],
        };
        let head = LogRecord {
            id: LOG,
            head: 1,
            hash: [0; 32],
            clock: 1,
            settled: 0,
            fork: None,
            seal: [0; 64],
        };
        let entry = Stored {
            facts: Facts { clock: 1, wall_ms: 1, kind: 48, visible: false },
            body: Vec::new().into(),
            backlink: None,
            seal: None,
            gone: None,
        };
        let era = EraRecord { known: 1, done: 1, ..EraRecord::new(LOG, Vec::new()) };
        let numbers = Some(NumberRange { best: Number(1), canonical: Number(1) });
        let certificate = Certificate { room, log: LOG, seq: 1, hash: [0; 32], seal: [0; 64] };
        let run =
            Run { room, log: LOG, first: 1, backlink: [0; 32], entries: Vec::new(), seal: [0; 64] };
        vec![
            Change::Room { room, record },
            Change::Log { room, log: 0, record: head },
            Change::Entry { room, at: AT, entry: Arc::new(entry) },
            Change::Era { room, era: Era::HOME, record: era },
            Change::Number { room, number: Number(1), at: AT, fate: Fate::Delivered },
            Change::NumberRange { room, at: AT, numbers },
            Change::Dedup { room, id: DedupId([1; 16]), at: AT, wall_ms: 1 },
            Change::Called { room, id: MessageId([1; 16]), at: AT },
            Change::Evidence { certificate, run: Box::new(run) },
            Change::Note { room, vote: AT, note: Some(VoteNote::default()) },
        ]
    }

    /// Rows of ephemeral rooms, by table; `node`, `kept`, `records` and the three of their changes, `contents`, `copied`, `meta`, `requests`, the two of inboxes and the four of things that are carried are not
    /// about rooms, and ephemeral ones are never pruned.
    fn rows(store: &Store) -> Vec<u64> {
        let read = store.databases.memory().unwrap().begin_read().unwrap();
        let tables = read.list_tables().unwrap();
        tables
            .filter(|it| {
                !matches!(
                    redb::TableHandle::name(it),
                    "meta"
                        | "node/1"
                        | "kept/1"
                        | "pruned/1"
                        | "records/1"
                        | "record_changes/1"
                        | "record_numbers/1"
                        | "records_gone/1"
                        | "contents/1"
                        | "copied/1"
                        | "replaced/1"
                        | "replaced_contents/1"
                        | "replaced_order/1"
                        | "replaced_bytes/1"
                        | "inboxes/1"
                        | "inbox_items/2"
                        | "requests/1"
                        | "carriages/1"
                        | "carried/1"
                        | "loads/2"
                        | "owed/1"
                )
            })
            .map(|it| read.open_untyped_table(it).unwrap().len().unwrap())
            .collect()
    }

    #[test]
    fn a_dropped_room_leaves_nothing_in_memory() {
        let mut store = Store::on(InMemoryBackend::new()).unwrap();
        store.commit(&something_in_every_table()).unwrap();
        assert_eq!(rows(&store), [1; 13]);
        store.commit(&[Change::Drop { room: ROOM }]).unwrap();
        assert_eq!(rows(&store), [0; 13]);
        // And within one batch.
        store
            .commit(&[something_in_every_table(), vec![Change::Drop { room: ROOM }]].concat())
            .unwrap();
        assert_eq!(rows(&store), [0; 13]);
    }
}
