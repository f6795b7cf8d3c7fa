//! Of many things the newest: everything that is remembered of clients, and has a bound.

use std::{
    borrow::Borrow,
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Newest<K, V> {
    all: HashMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Hash + Eq + Clone, V> Newest<K, V> {
    pub(crate) fn new(max: usize) -> Newest<K, V> {
        Newest { all: HashMap::new(), order: VecDeque::new(), max }
    }

    pub(crate) fn put(&mut self, key: &K, value: V) {
        if self.all.insert(key.clone(), value).is_none() {
            self.order.push_back(key.clone());
        }
        if self.all.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    pub(crate) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.all.get_mut(key)
    }

    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.all.remove(key);
        self.order.retain(|known| known.borrow() != key);
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.all.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.all.iter()
    }

    /// The one of this name, made if there is none.
    pub(crate) fn at(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        if !self.all.contains_key(key) {
            self.put(key, new());
        }
        self.all.get_mut(key).expect("it was put there, and the bound is more than nothing")
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go() {
        let mut newest = Newest::new(2);
        for key in [1, 2, 1, 3] {
            newest.put(&key, key);
        }
        assert_eq!((newest.all.len(), newest.order.len()), (2, 2));
        assert!(!newest.all.contains_key(&1) && newest.all.contains_key(&3));
    }
}
