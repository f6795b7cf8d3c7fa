//! Whose turn it is to look a name up: so many at once, and of each key fewer, so that nobody's slow names
//! stand in the way of others'.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use mesh::name::id::KeyPrint;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// See the module.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    each: usize,
    /// Of the keys that have, or wait for, a turn.
    keys: Mutex<HashMap<KeyPrint, Arc<Semaphore>>>,
}

/// Held as long as it lasts.
#[derive(Debug)]
pub(super) struct Turn {
    _of_key: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new(all: usize, each: usize) -> Turns {
        Turns { all: Arc::new(Semaphore::new(all)), each, keys: Mutex::default() }
    }

    /// Waits for as long as it takes.
    pub(super) async fn take(&self, key: KeyPrint) -> Turn {
        const OPEN: &str = "nobody closes it";
        // The key's first: a delivery that waits for others of its key takes nothing from all.
        let of_key = self.of(key).acquire_owned().await.expect(OPEN);
        let of_all = self.all.clone().acquire_owned().await.expect(OPEN);
        Turn { _of_key: of_key, _of_all: of_all }
    }

    fn of(&self, key: KeyPrint) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit, or a wait for one, holds another reference.
        keys.retain(|_, it| Arc::strong_count(it) > 1);
        keys.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const A: KeyPrint = KeyPrint([1; 16]);
    const B: KeyPrint = KeyPrint([2; 16]);
    const C: KeyPrint = KeyPrint([3; 16]);

    #[test]
    fn a_key_has_its_turns_and_leaves_those_of_others() {
        let turns = Turns::new(3, 2);
        let take = |key| turns.take(key).now_or_never();
        let (first, second) = (take(A).unwrap(), take(A).unwrap());
        assert!(take(A).is_none(), "as many as it may");
        let others = take(B).unwrap();
        assert!(take(C).is_none(), "as many as there are");
        drop(first);
        assert!(take(C).is_some());
        drop((second, others));
        assert!(take(A).is_some());
        assert_eq!(turns.keys.lock().unwrap().len(), 1, "others are forgotten");
    }
}
