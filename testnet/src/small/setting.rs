//! How large small worlds are, and how far they are followed.

use std::{collections::BTreeSet, time::Duration};

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
    /// What a node made durable last is gone when it is killed. No disk does that: so it is seen that it would be found.
    pub(crate) forgetful: bool,
}

impl Setting {
    /// Worlds up to this size, the smaller ones first: of one message, of two, and of as many as there may be.
    #[must_use]
    pub fn and_smaller(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        for nodes in 2..=self.nodes {
            for faults in 0..=self.faults {
                let messages = BTreeSet::from([1, self.messages.min(2), self.messages]);
                let of = |messages| Setting { nodes, messages, faults, ..*self };
                all.extend(messages.into_iter().map(of));
            }
        }
        all.sort_by_key(|it| (it.nodes + usize::from(it.messages + 2 * it.faults), it.nodes));
        all
    }
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
            forgetful: false,
        }
    }
}
