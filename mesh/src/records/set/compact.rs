//! Where the heads of a set lie: in one piece of memory, without gaps. 100,000 of them are to take little memory, so each
//! names its owner by an index, and indices to heads are sorted instead of copies of their keys.

use crate::{
    name::id::{Hash, KeyPrint},
    wire::record::{RecordHead, RecordId, Stamp},
};

/// Where a head lies.
pub(super) type RecordIx = u32;

/// Where an owner lies.
pub(super) type OwnerIx = u32;

/// All heads of a set.
pub(super) type Heads = Slab<Kept>;

/// A head that is kept: 60 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) id: RecordId,
    hash: Hash,
    /// Big-endian: a number of eight bytes would be aligned, and leave a gap.
    stamp: [u8; 8],
    /// The owner's index; the highest bit says that it is a deletion.
    owner: u32,
}

const DELETION: u32 = 1 << 31;

impl Kept {
    pub(super) fn of(head: &RecordHead, owner: OwnerIx, deleted: bool) -> Kept {
        Kept {
            id: head.id,
            hash: head.hash,
            stamp: head.stamp.0.to_be_bytes(),
            owner: owner | if deleted { DELETION } else { 0 },
        }
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp(u64::from_be_bytes(self.stamp))
    }

    pub(super) fn head(&self, owner: KeyPrint) -> RecordHead {
        RecordHead { id: self.id, owner, stamp: self.stamp(), hash: self.hash }
    }

    pub(super) fn owner(&self) -> OwnerIx {
        self.owner & !DELETION
    }

    pub(super) fn is_deletion(&self) -> bool {
        self.owner & DELETION != 0
    }
}

/// Things that keep their index while they are there. An index that is free is used again.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// An empty one that has room for so many, and no more.
    pub(super) fn with_room(count: usize) -> Slab<T> {
        Slab { places: Vec::with_capacity(count), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, new: T) -> u32 {
        if let Some(ix) = self.free.pop() {
            self.places[ix as usize] = new;
            return ix;
        }
        let ix = u32::try_from(self.places.len()).expect("a set has fewer than 2^31 records");
        make_room(&mut self.places);
        self.places.push(new);
        ix
    }

    /// The value stays in its place until the index is used again.
    pub(super) fn remove(&mut self, ix: u32) {
        self.free.push(ix);
    }

    pub(super) fn get(&self, ix: u32) -> &T {
        &self.places[ix as usize]
    }

    pub(super) fn get_mut(&mut self, ix: u32) -> &mut T {
        &mut self.places[ix as usize]
    }
}

/// Into a list that is to have little room to spare.
pub(super) fn insert_tightly(list: &mut Vec<u32>, at: usize, new: u32) {
    make_room(list);
    list.insert(at, new);
}

/// Grows a list by a sixteenth when it is full, instead of twice as much.
fn make_room<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 16 + 1);
    }
}
