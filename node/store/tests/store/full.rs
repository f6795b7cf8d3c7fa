//! A disk that is full: nothing of the batch is there, what was there can be read, and it goes on
//! when there is room.

use std::{
    io,
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use mesh::{
    api::{batch::Change, command::Opaque},
    name::number::Number,
};
use redb::StorageBackend;
use store::{
    CommitError, OpenError, Reader, Store,
    testing::{CrashingBackend, Unsynced},
};

use crate::rows::*;

fn batch(seq: u64) -> Vec<Change> {
    let mut batch = message(ROOM, seq);
    // Large enough that the file has to grow.
    batch.extend((1..60).flat_map(|it| {
        let room = mesh::name::id::RoomId(u128::from(seq * 1_000 + it).to_be_bytes());
        message(room, 1)
    }));
    batch
}

fn state(store: &Store) -> String {
    let rows = store.reader().page_since(ROOM, Number(0), 500).unwrap();
    // What these rows are, a check does not think sound; it reads all of them.
    let checked = store.reader().check().unwrap();
    format!("{:?} {rows:?} {checked:?}", store.summary(ME, Some(MESH)).unwrap())
}

/// More than the journal takes.
fn large(seq: u64) -> Vec<Change> {
    let name = seq.to_be_bytes().to_vec();
    let value = Some(Opaque(vec![7; 200_000]));
    [batch(seq), vec![Change::Keep { name, value }]].concat()
}

#[test]
fn a_commit_that_finds_the_disk_full_at_any_moment_changes_nothing_and_is_made_later() {
    assert!(is_made_later(batch) > 0);
    assert!(is_made_later(large) > 10);
}

/// How many times there was no room for the second commit, with more and more of it.
fn is_made_later(batch: fn(u64) -> Vec<Change>) -> u64 {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    store.commit(&batch(1)).unwrap();
    let before = state(&store);
    drop(store);
    let image = disk.image();
    for room in 0.. {
        let disk = CrashingBackend::of(image.clone(), room);
        let mut store = Store::on(disk.clone()).unwrap();
        let reader = store.reader();
        disk.fill_after(Some(room));
        match store.commit(&batch(2)) {
            Ok(()) => return room,
            Err(error) => assert!(matches!(error, CommitError::Full), "{room}: {error:?}"),
        }
        assert!(state(&store) == before, "{room}: something of it can be read");
        // Still, and with a little more room than before.
        for more in 0..2 {
            disk.fill_after(Some(more));
            assert!(matches!(store.commit(&batch(2)), Err(CommitError::Full)), "{room}, {more}");
            assert!(state(&store) == before, "{room}, {more}");
        }
        if room % 3 == 0 {
            // The power fails meanwhile.
            let disk = disk.crash(Unsynced::Torn);
            drop((store, reader));
            assert!(state(&Store::on(disk).unwrap()) == before, "{room}");
            continue;
        }
        disk.fill_after(None);
        store.commit(&batch(2)).unwrap();
        let after = state(&store);
        assert!(after != before);
        assert_eq!(reader.page_since(ROOM, Number(0), 500).unwrap().len(), 2);
        store.commit(&batch(3)).unwrap();
        let last = state(&store);
        let disk = disk.crash(Unsynced::Dropped);
        drop((store, reader));
        let store = Store::on(disk).unwrap();
        assert!(state(&store) == last, "{room}: lost what was said to be durable");
    }
    unreachable!("some time there is room")
}

/// A disk on which somebody else begins to read between the moment at which redb was told that
/// everything is written, and the next opening.
#[derive(Debug)]
struct Watched {
    disk: CrashingBackend,
    reader: Arc<Mutex<Option<Reader>>>,
    found: Sender<usize>,
}

impl StorageBackend for Watched {
    fn len(&self) -> io::Result<u64> {
        if let Some(reader) = self.reader.lock().unwrap().take() {
            let found = self.found.clone();
            let (done, is_done) = channel();
            thread::spawn(move || {
                let rows = reader.page_since(ROOM, Number(0), 500).unwrap();
                found.send(rows.len()).unwrap();
                // Nobody waits for it any more if it had to wait.
                let _ = done.send(());
            });
            // It has to wait; if it need not, it has the time that it needs.
            let _ = is_done.recv_timeout(Duration::from_millis(100));
        }
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

#[test]
fn a_store_that_cannot_be_made_because_the_disk_is_full_is_made_when_there_is_room() {
    let mut refused = 0;
    for room in 0.. {
        let disk = CrashingBackend::new(room);
        disk.fill_after(Some(room));
        let Err(error) = Store::on(disk.clone()) else { break };
        assert!(matches!(error, OpenError::Full { .. }), "{room}: {error:?}");
        assert!(error.to_string().contains("make room"), "{error}");
        refused += 1;
        disk.fill_after(None);
        Store::on(disk).unwrap();
    }
    assert!(refused > 2, "making it wrote {refused} times");
}

#[test]
fn a_store_that_is_opened_on_a_full_disk_can_be_read_and_written_when_there_is_room() {
    let disk = CrashingBackend::new(0);
    let mut store = Store::on(disk.clone()).unwrap();
    store.commit(&batch(1)).unwrap();
    let before = state(&store);
    // As a kill leaves it: opening writes, and that waits in memory.
    let killed = disk.image();
    for room in 0..10 {
        let disk = CrashingBackend::of(killed.clone(), room);
        disk.fill_after(Some(room));
        let mut store = Store::on(disk.clone()).unwrap();
        assert!(state(&store) == before, "{room}: something is lost");
        disk.fill_after(Some(0));
        assert!(matches!(store.commit(&batch(2)), Err(CommitError::Full)), "{room}");
        if room % 3 == 0 {
            // The power fails meanwhile.
            let disk = disk.crash(Unsynced::Torn);
            drop(store);
            assert!(state(&Store::on(disk).unwrap()) == before, "{room}");
            continue;
        }
        disk.fill_after(None);
        store.commit(&batch(2)).unwrap();
        let after = state(&store);
        let disk = disk.crash(Unsynced::Dropped);
        drop(store);
        assert!(state(&Store::on(disk).unwrap()) == after, "{room}: lost what was durable");
    }
}

#[test]
fn who_reads_while_the_disk_fills_up_reads_what_is_durable() {
    // A record has room or has none; the pages of a large commit go to their places one by one.
    for (room, next) in [(0, batch(2)), (0, large(2)), (1, large(2)), (2, large(2))] {
        let disk = CrashingBackend::new(room);
        let (found, rows) = channel();
        let reader = Arc::<Mutex<Option<Reader>>>::default();
        let watched = Watched { disk: disk.clone(), reader: reader.clone(), found };
        let mut store = Store::on(watched).unwrap();
        store.commit(&batch(1)).unwrap();
        disk.fill_after(Some(room));
        *reader.lock().unwrap() = Some(store.reader());
        assert!(matches!(store.commit(&next), Err(CommitError::Full)), "{room}");
        assert_eq!(rows.recv().unwrap(), 1, "{room}");
    }
}
