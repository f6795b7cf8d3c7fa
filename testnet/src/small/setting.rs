//! How large small worlds are, and how far they are followed.

use std::time::Duration;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// So many nodes: 2 or 3.
    pub nodes: usize,
    /// So many messages are said at most, by any of them.
    pub messages: u8,
    /// So many faults happen at most.
    pub faults: u8,
    /// Time passes so often at most before the world comes to its end.
    pub waits: u8,
    /// Messages to all are carried by gossip, too. Without it they are compared for, as between nodes that hear none.
    pub gossip: bool,
    /// No state is looked at after so many.
    pub states: usize,
    /// Nor after so long. `None`: for as long as it takes, so that two runs see the same.
    pub time: Option<Duration>,
    /// So many ends are played at most: [`super::search`].
    pub ends: usize,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            nodes: 2,
            messages: 2,
            faults: 1,
            waits: 6,
            gossip: true,
            states: usize::MAX,
            time: None,
            ends: usize::MAX,
        }
    }
}
