//! Records of schedules that have changed, until somebody reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use mesh::{name::id::KeyPrint, records::schedules::ScheduleNews, wire::record::RecordId};
use tokio::sync::Notify;

use crate::limits::SCHEDULE_NEWS_MAX;

/// Of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// These records: of jobs, and of runs.
    Some {
        /// Of jobs.
        jobs: BTreeSet<RecordId>,
        /// Of runs.
        runs: BTreeSet<RecordId>,
    },
    /// More than were counted.
    All,
}

/// See the module. News of keys to whose jobs this node does not see are dropped.
#[derive(Debug, Default)]
pub(crate) struct News {
    state: Mutex<State>,
    pub(crate) came: Notify,
    /// The operator has switched jobs off.
    off: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    wanted: BTreeSet<KeyPrint>,
    changed: BTreeMap<KeyPrint, Changed>,
    count: usize,
}

impl News {
    /// From now on news of this key are kept, or are dropped.
    pub(crate) fn want(&self, key: KeyPrint, wants: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if wants {
            state.wanted.insert(key);
        } else {
            state.wanted.remove(&key);
        }
    }

    pub(crate) fn tell(&self, news: ScheduleNews) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.wanted.contains(&news.key) {
            return;
        }
        let is_full = state.count >= SCHEDULE_NEWS_MAX;
        state.count += 1;
        let none = Changed::Some { jobs: BTreeSet::new(), runs: BTreeSet::new() };
        let changed = state.changed.entry(news.key).or_insert(none);
        if is_full {
            *changed = Changed::All;
        }
        if let Changed::Some { jobs, runs } = changed {
            let of_kind = if news.is_of_job() { jobs } else { runs };
            of_kind.insert(news.id);
        }
        drop(state);
        self.came.notify_one();
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Jobs are fired here from now on, or are not.
    pub(crate) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Relaxed);
        self.came.notify_one();
    }

    /// All that has come since the last time.
    pub(crate) fn take(&self) -> BTreeMap<KeyPrint, Changed> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count = 0;
        std::mem::take(&mut state.changed)
    }
}

#[cfg(test)]
mod tests {
    use mesh::{records::schedules::JOBS, wire::record::CollectionNumber};

    use super::*;

    #[test]
    fn news_of_keys_that_nobody_wants_are_dropped_and_of_many_all_is_read_again() {
        let news = News::default();
        let (mine, other) = (KeyPrint([1; 16]), KeyPrint([2; 16]));
        let tell = |key, collection, n: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&n.to_be_bytes());
            news.tell(ScheduleNews { key, collection, id: RecordId(id) });
        };
        let run = CollectionNumber(JOBS.number.0 + 1);
        news.want(mine, true);
        tell(other, JOBS.number, 1);
        tell(mine, JOBS.number, 1);
        tell(mine, run, 2);
        let Some(Changed::Some { jobs, runs }) = news.take().remove(&mine) else { panic!("some") };
        assert_eq!((jobs.len(), runs.len()), (1, 1));
        assert!(news.take().is_empty());
        (0..=SCHEDULE_NEWS_MAX).for_each(|n| tell(mine, run, n));
        assert_eq!(news.take().remove(&mine), Some(Changed::All));
        news.want(mine, false);
        tell(mine, run, 2);
        assert!(news.take().is_empty());
    }
}
