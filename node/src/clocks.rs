//! How far the clocks of peers are from this one's. Beacons say the time; they are heard by a thread
//! that waits for nothing, so a busy engine or a full disk does not look like a wrong clock.
//!
//! A beacon that was on its way for long shows a clock that is behind. So of the last few of a peer the
//! one that shows it least behind counts: it was on its way for the shortest time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use mesh::name::id::NodeId;
use protocol::operator::Peer;

use crate::{
    limits::{CLOCK_DIFFERS_MS, CLOCK_SAMPLES, CLOCK_SAMPLES_MIN, CLOCK_STALE_AFTER, CLOCKS_MAX},
    members,
};

/// See the module. As many peers as there are connections, at most [`CLOCKS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Clocks(Mutex<BTreeMap<NodeId, Samples>>);

/// Milliseconds by which a peer's clock was ahead (or, below 0, behind), and when that was heard.
#[derive(Debug, Default)]
struct Samples {
    ahead: VecDeque<i64>,
    heard: Option<Instant>,
}

impl Clocks {
    /// A beacon of a peer came over its own connection.
    pub(crate) fn hear(&self, peer: NodeId, theirs_ms: u64, ours_ms: u64, now: Instant) {
        let mut all = self.locked();
        if all.len() >= CLOCKS_MAX && !all.contains_key(&peer) {
            all.retain(|_, samples| samples.is_fresh(now));
            if all.len() >= CLOCKS_MAX {
                return;
            }
        }
        let ahead = i64::try_from(i128::from(theirs_ms) - i128::from(ours_ms));
        let samples = all.entry(peer).or_default();
        if !samples.is_fresh(now) {
            samples.ahead.clear();
        }
        samples.heard = Some(now);
        samples.ahead.push_back(ahead.unwrap_or(if theirs_ms > ours_ms {
            i64::MAX
        } else {
            i64::MIN
        }));
        if samples.ahead.len() > CLOCK_SAMPLES {
            samples.ahead.pop_front();
        }
    }

    /// Milliseconds by which this peer's clock is ahead. `None`: it was not heard often enough lately.
    pub(crate) fn ahead_ms(&self, peer: NodeId, now: Instant) -> Option<i64> {
        let all = self.locked();
        let samples = all.get(&peer).filter(|samples| samples.is_fresh(now))?;
        samples.ahead.iter().max().copied().filter(|_| samples.ahead.len() >= CLOCK_SAMPLES_MIN)
    }

    /// The peers whose clocks differ from ours by more than [`CLOCK_DIFFERS_MS`].
    pub(crate) fn differing(&self, now: Instant) -> Vec<NodeId> {
        let peers: Vec<NodeId> = self.locked().keys().copied().collect();
        let differs = |peer: &NodeId| self.ahead_ms(*peer, now).is_some_and(differs);
        peers.into_iter().filter(differs).collect()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<NodeId, Samples>> {
        // Nothing that is done under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether clocks that far apart are worth a word.
pub(crate) fn differs(ahead_ms: i64) -> bool {
    ahead_ms.unsigned_abs() > CLOCK_DIFFERS_MS
}

/// A clock that differs from another one, for people: `3600.0 s ahead of` or `3600.0 s behind`.
pub(crate) fn words(ahead_ms: i64) -> String {
    let seconds = ahead_ms.unsigned_abs() as f64 / 1_000.0;
    let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
    format!("{seconds:.1} s {way}")
}

/// The peers whose clocks were told to differ.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeSet<String>);

impl Told {
    /// The findings that are new of these peers. Of each of them one, until its clock is right again.
    pub(crate) fn news(&mut self, peers: &[Peer]) -> Vec<News> {
        let mut news = Vec::new();
        for peer in peers {
            let (Some(id), Some(ahead_ms)) = (&peer.node_id, peer.clock_ahead_ms) else { continue };
            let name =
                peer.name.as_deref().map_or_else(|| members::short(id).to_owned(), members::shown);
            if differs(ahead_ms) {
                if self.0.len() < CLOCKS_MAX && self.0.insert(id.clone()) {
                    news.push(News::Differs { name, ahead_ms });
                }
            } else if self.0.remove(id) {
                news.push(News::Agrees { name });
            }
        }
        news
    }
}

/// A clock begins to differ, or agrees again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Differs { name: String, ahead_ms: i64 },
    Agrees { name: String },
}

impl Samples {
    fn is_fresh(&self, now: Instant) -> bool {
        self.heard.is_some_and(|heard| now.saturating_duration_since(heard) < CLOCK_STALE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PEER: NodeId = NodeId([7; 32]);

    #[test]
    fn a_beacon_that_was_late_is_no_clock_that_is_behind() {
        let (clocks, now) = (Clocks::default(), Instant::now());
        for (nth, late) in [9_000, 12_000, 20, 7_000].into_iter().enumerate() {
            let sent = 1_000_000 + nth as u64 * 300;
            clocks.hear(PEER, sent, sent + late, now);
            let known = clocks.ahead_ms(PEER, now);
            assert_eq!(known.is_some(), nth + 1 >= CLOCK_SAMPLES_MIN, "{nth}");
        }
        assert_eq!(clocks.ahead_ms(PEER, now), Some(-20));
        assert!(clocks.differing(now).is_empty());
    }

    #[test]
    fn a_clock_that_differs_is_named_until_it_is_set_right_or_not_heard() {
        let (clocks, now) = (Clocks::default(), Instant::now());
        for ahead in [3_000_i64, -3_000] {
            for _ in 0..CLOCK_SAMPLES {
                clocks.hear(PEER, 1_000_000_u64.saturating_add_signed(ahead), 1_000_000, now);
            }
            assert_eq!(clocks.ahead_ms(PEER, now), Some(ahead));
            assert_eq!(clocks.differing(now), [PEER]);
        }
        assert_eq!(clocks.ahead_ms(PEER, now + CLOCK_STALE_AFTER), None);
        for _ in 0..CLOCK_SAMPLES {
            clocks.hear(PEER, 1_000_100, 1_000_000, now + Duration::from_secs(1));
        }
        assert!(clocks.differing(now + Duration::from_secs(1)).is_empty());
    }

    #[test]
    fn each_clock_that_differs_is_told_once() {
        let mut told = Told::default();
        let mut news = |ahead_ms| {
            let (node_id, name) = (Some("ab".repeat(32)), Some("first".to_owned()));
            told.news(&[Peer { node_id, name, clock_ahead_ms: ahead_ms, ..Peer::default() }])
        };
        let name = || "first".to_owned();
        assert!(news(Some(1_900)).is_empty());
        assert_eq!(news(Some(-2_100)), [News::Differs { name: name(), ahead_ms: -2_100 }]);
        assert!(news(Some(-2_200)).is_empty() && news(None).is_empty(), "it was told");
        assert_eq!(news(Some(3)), [News::Agrees { name: name() }]);
        assert_eq!(news(Some(9_000)).len(), 1, "again");
        assert_eq!((words(-2_100), words(9_000)), ("2.1 s behind".into(), "9.0 s ahead of".into()));
    }

    #[test]
    fn memory_is_bounded_whoever_speaks() {
        let (clocks, now) = (Clocks::default(), Instant::now());
        for n in 0..=u32::try_from(CLOCKS_MAX).unwrap() {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&n.to_be_bytes());
            clocks.hear(NodeId(id), u64::MAX, 0, now);
        }
        assert_eq!(clocks.locked().len(), CLOCKS_MAX);
        clocks.hear(PEER, 0, 0, now + CLOCK_STALE_AFTER);
        assert_eq!(clocks.locked().len(), 1, "others make room that are not heard");
    }
}
