//! The node's account of itself, for a page: the checks of `clawmesh doctor`, and what it knows of other nodes beside the mesh's own
//! words. The node makes it; here it is kept for a moment, so that many pages cost no more than one.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use mesh::name::id::{AgentId, NodeId};
use tokio::sync::Mutex;

use crate::waking::Woken;

/// It is made anew so often, at most.
pub const CHECKUP_EVERY: Duration = Duration::from_secs(3);

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It works.
    Well,
    /// It deserves a look.
    Note,
    /// It does not work.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The part of the node.
    pub subject: &'static str,
    /// How it is.
    pub finding: Finding,
    /// What was found.
    pub found: String,
    /// The way to mend it.
    pub advice: Option<String>,
}

/// What this node knows of another one by their link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerFacts {
    /// There has been a link for so long, be it through another node.
    pub up_ms: Option<u64>,
    /// A question and its answer take so long.
    pub rtt_ms: Option<f64>,
    /// Its clock is so far ahead of this one's.
    pub clock_ahead_ms: Option<i64>,
    /// Why there is no link, and the way to one.
    pub obstacle: Option<(String, &'static str)>,
    /// Rooms in which it gives the numbers.
    pub sequences: usize,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Checkup {
    /// The checks of `clawmesh doctor` that a node can make itself.
    pub checks: Vec<Check>,
    /// Other nodes, and this one.
    pub nodes: BTreeMap<NodeId, PeerFacts>,
    /// Agents whose hosts are woken by posts, and how far that is.
    pub woken: Vec<(AgentId, Woken)>,
}

/// A checkup that is being made. `None`: the node is stopping.
pub type Making = Pin<Box<dyn Future<Output = Option<Checkup>> + Send>>;

/// Makes checkups.
pub trait Examine: Send + Sync + 'static {
    /// Makes one.
    fn examine(&self) -> Making;
}

/// The last checkup, and when it was made.
type Last = Option<(Instant, Arc<Checkup>)>;

/// The way to a node's checkups. All copies are one.
#[derive(Clone, Default)]
pub struct Examiner {
    examine: Arc<OnceLock<Box<dyn Examine>>>,
    last: Arc<Mutex<Last>>,
}

impl fmt::Debug for Examiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Examiner")
    }
}

impl Examiner {
    /// From now on this one makes them. Only the first counts.
    pub fn set(&self, examine: impl Examine) {
        // An error: there is one already.
        let _ = self.examine.set(Box::new(examine));
    }

    /// The checkup of the last moments. `None`: nobody makes any, or not now.
    pub async fn checkup(&self) -> Option<Arc<Checkup>> {
        let examine = self.examine.get()?;
        // Those that come meanwhile wait, and have the same one.
        let mut last = self.last.lock().await;
        if let Some((at, checkup)) = &*last
            && at.elapsed() < CHECKUP_EVERY
        {
            return Some(checkup.clone());
        }
        let checkup = Arc::new(examine.examine().await?);
        *last = Some((Instant::now(), checkup.clone()));
        Some(checkup)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counts(Arc<AtomicUsize>);

    impl Examine for Counts {
        fn examine(&self) -> Making {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Some(Checkup::default()) })
        }
    }

    #[tokio::test]
    async fn many_who_look_at_once_cost_one_checkup() {
        let (examiner, made) = (Examiner::default(), Arc::new(AtomicUsize::new(0)));
        assert!(examiner.checkup().await.is_none(), "nobody makes any");
        examiner.set(Counts(made.clone()));
        for _ in 0..5 {
            assert!(examiner.checkup().await.is_some());
        }
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
