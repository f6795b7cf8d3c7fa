//! What a node of a small world made durable: its batches, one after the other. A store is made of them only where one is
//! needed: for a start, and for a peer that asks for entries.

use std::{collections::BTreeMap, rc::Rc};

use mesh::{
    api::batch::{Change, Summary},
    name::id::{MeshId, NodeId},
};
use store::{Reader, Store, testing::CrashingBackend};

use super::digest::digest_of;

/// A batch, and those before it.
#[derive(Debug)]
struct Rows {
    before: Option<Rc<Rows>>,
    batch: Vec<Change>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    rows: Option<Rc<Rows>>,
    /// The newest row of each name.
    newest: Rc<BTreeMap<u64, u64>>,
    /// Of all of these: the same in whichever order rows of different names came.
    digest: u64,
}

impl Disk {
    pub(super) fn commit(&mut self, batch: Vec<Change>) {
        if batch.is_empty() {
            return;
        }
        let newest = Rc::make_mut(&mut self.newest);
        for change in &batch {
            let (name, value) = (name_of(change), digest_of(change));
            let name = name.unwrap_or_else(|| digest_of(&(value, self.digest)));
            let row = |value: u64| digest_of(&(name, value));
            if let Some(old) = newest.insert(name, value) {
                self.digest = self.digest.wrapping_sub(row(old));
            }
            self.digest = self.digest.wrapping_add(row(value));
        }
        self.rows = Some(Rc::new(Rows { before: self.rows.take(), batch }));
    }

    /// The last batch is gone, as if it had never been committed.
    pub(super) fn forget_last(&mut self) {
        let before = self.rows.take().and_then(|rows| rows.before.clone());
        let mut batches = Vec::new();
        let mut next = before;
        while let Some(rows) = next {
            batches.push(rows.batch.clone());
            next = rows.before.clone();
        }
        *self = Disk::default();
        batches.into_iter().rev().for_each(|batch| self.commit(batch));
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// A store with all that was committed.
    fn store(&self, wall_ms: u64) -> Store {
        let mut batches = Vec::new();
        let mut next = self.rows.as_ref();
        while let Some(rows) = next {
            batches.push(&rows.batch);
            next = rows.before.as_ref();
        }
        let all: Vec<Change> = batches.into_iter().rev().flatten().cloned().collect();
        let mut store = Store::on(CrashingBackend::new(0)).expect("an empty disk opens");
        store.set_wall_ms(wall_ms);
        store.commit(&all).expect("a disk in memory takes what an engine writes");
        store
    }

    pub(super) fn reader(&self, wall_ms: u64) -> Reader {
        self.store(wall_ms).reader()
    }

    /// What a start finds.
    pub(super) fn summary(&self, node: NodeId, mesh: MeshId, wall_ms: u64) -> Summary {
        self.store(wall_ms).summary(node, Some(mesh)).expect("a sound store reads")
    }
}

/// What a later row replaces this one by. `None`: nothing, or something that small worlds do not write; then the order
/// counts, and states that are the same may be taken for two.
fn name_of(change: &Change) -> Option<u64> {
    if let Change::Room { room, .. } = change {
        Some(digest_of(&("room", room)))
    } else if let Change::Log { room, log, .. } = change {
        Some(digest_of(&("log", room, log)))
    } else if let Change::Entry { room, at, .. } = change {
        Some(digest_of(&("entry", room, at)))
    } else if let Change::Era { room, era, .. } = change {
        Some(digest_of(&("era", room, era)))
    } else if let Change::Number { room, number, .. } = change {
        Some(digest_of(&("number", room, number)))
    } else if let Change::NumberRange { room, at, .. } = change {
        Some(digest_of(&("range", room, at)))
    } else if let Change::Node(_) = change {
        Some(digest_of(&"node"))
    } else {
        None
    }
}
