//! A disk in memory that crashes, for tests and for the simulated world. The same seed and the same
//! calls give the same bytes.

use std::{
    fmt,
    fs::OpenOptions,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redb::{Database, StorageBackend, backends::FileBackend};

use crate::{
    error::CommitError,
    journal::{Journal, Room},
    store::Store,
};

/// What a disk writes in one piece or not at all.
const SECTOR_BYTES: u64 = 512;

/// From now on (`later`) commits are durable when [`sync`] says so, or each by itself again, and
/// those before it are now. A simulated world syncs before anything happens to a disk, so that it
/// finds there what it would find if each had been: most of what a commit costs is the sync.
///
/// # Errors
///
/// See [`CommitError`].
pub fn put_off_syncs(store: &mut Store, later: bool) -> Result<(), CommitError> {
    store.syncs_later = later;
    store.sync()
}

/// What was committed is durable when this returns.
///
/// # Errors
///
/// See [`CommitError`].
pub fn sync(store: &mut Store) -> Result<(), CommitError> {
    store.sync()
}

/// The database in a store's file that is not open, to be looked at or damaged.
///
/// # Errors
///
/// Those of redb.
pub fn database(file: &Path) -> Result<Database, redb::Error> {
    let file = OpenOptions::new().read(true).write(true).open(file).map_err(redb::Error::Io)?;
    let journal = Journal::on(FileBackend::new(file)?, Room::FILE);
    Ok(Database::builder().create_with_backend(journal)?)
}

/// What becomes of writes that were not synced when the machine goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// They are lost.
    Dropped,
    /// Each sector of each of them is kept or lost by the toss of a coin.
    Torn,
}

/// A disk, and a handle to it: `Store::on(disk.clone())`. Clones are the same disk, until a crash:
/// after [`CrashingBackend::crash`] only the handle that it returns works, and its clones.
///
/// ```
/// use store::{Store, testing::{CrashingBackend, Unsynced}};
///
/// let disk = CrashingBackend::new(7);
/// let store = Store::on(disk.clone())?;
/// let disk = disk.crash(Unsynced::Torn); // `store` is of no use any more
/// let store = Store::on(disk.clone())?;
/// # Ok::<(), store::OpenError>(())
/// ```
#[derive(Clone)]
pub struct CrashingBackend {
    disk: Arc<Mutex<Disk>>,
    /// Which life of the machine the handle is of.
    life: u64,
}

struct Disk {
    /// As it reads now.
    image: Vec<u8>,
    /// What to do, last one first, to get back what was synced.
    undo: Vec<Undo>,
    life: u64,
    /// Of a splitmix64 generator.
    random: u64,
    /// Operations that succeed before all fail.
    left: Option<u64>,
    /// Operations so far in this life.
    operations: u64,
    /// The write that was under way when the power failed has been noted.
    down: bool,
    /// Writes and changes of length that there is still room for; syncs always succeed.
    room: Option<u64>,
}

enum Undo {
    /// Bytes as they were before a write.
    Write { offset: usize, old: Vec<u8> },
    /// The length before a change of it, and the bytes that were cut off.
    SetLen { len: usize, tail: Vec<u8> },
}

impl CrashingBackend {
    /// An empty disk. `seed` decides which un-synced sectors survive a [`Unsynced::Torn`] crash.
    #[must_use]
    pub fn new(seed: u64) -> CrashingBackend {
        let disk = Disk {
            image: Vec::new(),
            undo: Vec::new(),
            life: 0,
            random: seed,
            left: None,
            operations: 0,
            down: false,
            room: None,
        };
        CrashingBackend { disk: Arc::new(Mutex::new(disk)), life: 0 }
    }

    /// A disk that holds these bytes, all of them synced.
    #[must_use]
    pub fn of(image: Vec<u8>, seed: u64) -> CrashingBackend {
        let disk = Self::new(seed);
        disk.lock().image = image;
        disk
    }

    /// The next `operations` writes, syncs and changes of length succeed; from then on everything
    /// fails, until the next crash. The write that fails first may still reach the disk in part.
    pub fn fail_after(&self, operations: u64) {
        self.lock().left = Some(operations);
    }

    /// There is room for so many more writes and changes of length; from then on each of them
    /// fails, because the disk is full, and changes nothing. `None`: there is room again.
    pub fn fill_after(&self, operations: Option<u64>) {
        self.lock().room = operations;
    }

    /// Writes, syncs and changes of length since the last crash.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The machine goes down and comes up again. Returns the handle of its new life; all others
    /// fail from now on, so that what still holds one cannot write.
    #[must_use = "no other handle works any more"]
    pub fn crash(&self, unsynced: Unsynced) -> CrashingBackend {
        let mut disk = self.lock();
        match unsynced {
            Unsynced::Dropped => disk.roll_back(),
            Unsynced::Torn => disk.tear(),
        }
        disk.life += 1;
        disk.left = None;
        disk.operations = 0;
        disk.down = false;
        disk.room = None;
        CrashingBackend { disk: Arc::clone(&self.disk), life: disk.life }
    }

    /// The bytes as they read now, un-synced ones included.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        self.lock().image.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an operation that reads.
    fn alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.lock();
        if disk.life != self.life || disk.left == Some(0) {
            return Err(io::Error::other("the simulated machine is down"));
        }
        Ok(disk)
    }

    /// For one that changes something: counts it.
    fn changing(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.alive()?;
        if let Some(left) = &mut disk.left {
            *left -= 1;
        }
        disk.operations += 1;
        Ok(disk)
    }
}

impl Disk {
    fn take_room(&mut self) -> io::Result<()> {
        match &mut self.room {
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(room) => {
                *room -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn set_len(&mut self, len: usize) {
        let tail = self.image.get(len..).unwrap_or_default().to_vec();
        self.undo.push(Undo::SetLen { len: self.image.len(), tail });
        self.image.resize(len, 0);
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        let place = offset.checked_add(data.len()).and_then(|end| self.image.get_mut(offset..end));
        let place = place.ok_or_else(|| io::Error::other("write past the end"))?;
        self.undo.push(Undo::Write { offset, old: place.to_vec() });
        place.copy_from_slice(data);
        Ok(())
    }

    /// Back to what was synced.
    fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            self.revert(undo);
        }
    }

    /// Reverts one step and says how to do it again.
    fn revert(&mut self, undo: Undo) -> Undo {
        match undo {
            Undo::Write { offset, mut old } => {
                self.image[offset..offset + old.len()].swap_with_slice(&mut old);
                Undo::Write { offset, old }
            }
            Undo::SetLen { len, tail } => {
                let now = self.image.len();
                let cut = self.image.get(len..).unwrap_or_default().to_vec();
                self.image.resize(len, 0);
                self.image[len - tail.len()..].copy_from_slice(&tail);
                Undo::SetLen { len: now, tail: cut }
            }
        }
    }

    /// Back to what was synced, and then some of what came after it: changes of length as they
    /// were (a file system keeps these in order), writes sector by sector.
    fn tear(&mut self) {
        let mut redo = Vec::new();
        while let Some(undo) = self.undo.pop() {
            redo.push(self.revert(undo));
        }
        for step in redo.into_iter().rev() {
            match step {
                Undo::SetLen { len, .. } => self.image.resize(len, 0),
                Undo::Write { offset, old } => self.tear_write(offset, &old),
            }
        }
    }

    fn tear_write(&mut self, offset: usize, data: &[u8]) {
        let sector = usize::try_from(SECTOR_BYTES).expect("a sector's size fits a usize");
        let mut from = 0;
        while from < data.len() {
            let to = data.len().min(from + sector - (offset + from) % sector);
            if self.coin() {
                self.image[offset + from..offset + to].copy_from_slice(&data[from..to]);
            }
            from = to;
        }
    }

    /// One bit of splitmix64.
    fn coin(&mut self) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) & 1 == 1
    }
}

impl fmt::Debug for CrashingBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = self.lock();
        f.debug_struct("CrashingBackend")
            .field("bytes", &disk.image.len())
            .field("unsynced", &disk.undo.len())
            .field("life", &self.life)
            .finish()
    }
}

/// Offsets of a disk in memory fit.
fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl StorageBackend for CrashingBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.alive()?.image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.alive()?;
        let offset = index(offset)?;
        let place = offset.checked_add(out.len()).and_then(|end| disk.image.get(offset..end));
        out.copy_from_slice(place.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.changing()?;
        disk.take_room()?;
        disk.set_len(index(len)?);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.changing()?.undo.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.lock();
        if disk.life == self.life && disk.left == Some(0) && !disk.down {
            // The power fails while this is being written.
            disk.down = true;
            disk.write(index(offset)?, data)?;
        }
        drop(disk);
        let mut disk = self.changing()?;
        disk.take_room()?;
        disk.write(index(offset)?, data)
    }
}
