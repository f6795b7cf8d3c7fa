//! Vouchers: which key was shown at which node. A fold that does not depend on the order in which entries of several
//! logs came; of one log the first ones count.

use std::collections::BTreeMap;

use crate::{
    limits::{VOUCHERS_MAX, VOUCHERS_PER_NODE_MAX},
    name::id::{EntryRef, KeyPrint, LogId, NodeId},
};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Vouchers {
    /// The place of the first one of a key in the log of the directory of a node that was shown it.
    first: BTreeMap<(KeyPrint, NodeId), u64>,
    /// How many there are of each node.
    counts: BTreeMap<NodeId, usize>,
}

impl Vouchers {
    /// Takes one in, if there is room for it. Whether the key was not known to be shown there.
    pub(super) fn learn(&mut self, log: LogId, seq: u64, key: KeyPrint) -> bool {
        let node = log.author;
        let has_room = self.has_room_for(node);
        if let Some(first) = self.first.get_mut(&(key, node)) {
            *first = seq.min(*first);
            return false;
        }
        if has_room {
            self.first.insert((key, node), seq);
            *self.counts.entry(node).or_default() += 1;
        }
        has_room
    }

    pub(super) fn has(&self, node: NodeId, key: KeyPrint) -> bool {
        self.first.contains_key(&(key, node))
    }

    /// The lowest node that was shown a key.
    pub(super) fn lowest(&self, key: KeyPrint) -> Option<NodeId> {
        self.nodes(key).next()
    }

    /// The nodes that were shown a key, ascending.
    pub(super) fn nodes(&self, key: KeyPrint) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.first.range((key, NodeId([0; 32]))..=(key, NodeId([u8::MAX; 32])));
        nodes.map(|((_, node), _)| *node)
    }

    /// Whether one more of this node would count.
    pub(super) fn has_room_for(&self, node: NodeId) -> bool {
        let of_node = self.counts.get(&node).copied().unwrap_or(0);
        self.first.len() < VOUCHERS_MAX && of_node < VOUCHERS_PER_NODE_MAX
    }

    /// Nothing counts that a log says, `from` an entry on.
    pub(super) fn forget(&mut self, from: EntryRef) {
        let node = from.log.author;
        let before = self.first.len();
        self.first.retain(|(_, of), seq| *of != node || *seq < from.seq);
        let gone = before - self.first.len();
        self.counts.entry(node).and_modify(|count| *count -= gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(author: u8) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation: 0 }
    }

    fn print(nth: usize) -> KeyPrint {
        KeyPrint((nth as u128).to_be_bytes())
    }

    #[test]
    fn a_voucher_is_of_one_key_at_one_node_until_its_log_does_not_count() {
        let mut vouchers = Vouchers::default();
        vouchers.learn(log(1), 5, print(1));
        vouchers.learn(log(1), 9, print(1));
        let has = |vouchers: &Vouchers, node: u8, key| vouchers.has(NodeId([node; 32]), print(key));
        assert!(has(&vouchers, 1, 1) && !has(&vouchers, 1, 2) && !has(&vouchers, 2, 1));
        vouchers.learn(log(3), 1, print(1));
        assert_eq!(vouchers.lowest(print(1)), Some(NodeId([1; 32])));
        assert_eq!(vouchers.lowest(print(2)), None);
        vouchers.forget(EntryRef { log: log(3), seq: 1 });
        vouchers.forget(EntryRef { log: log(2), seq: 1 });
        vouchers.forget(EntryRef { log: log(1), seq: 6 });
        assert!(has(&vouchers, 1, 1), "the first one is before that");
        vouchers.forget(EntryRef { log: log(1), seq: 5 });
        assert!(!has(&vouchers, 1, 1));
        assert_eq!(vouchers.first.len(), 0);
    }

    #[test]
    fn so_many_count_of_a_node_and_of_all() {
        let mut vouchers = Vouchers::default();
        let nodes = u8::try_from(VOUCHERS_MAX / VOUCHERS_PER_NODE_MAX).expect("it is small");
        for node in 1..=nodes {
            for nth in 0..=VOUCHERS_PER_NODE_MAX {
                vouchers.learn(log(node), 1, print(nth));
            }
            assert!(!vouchers.has(NodeId([node; 32]), print(VOUCHERS_PER_NODE_MAX)));
        }
        assert_eq!(vouchers.first.len(), VOUCHERS_MAX);
        let late = NodeId([nodes + 1; 32]);
        assert!(!vouchers.has_room_for(late));
        vouchers.learn(log(nodes + 1), 1, print(1));
        assert!(!vouchers.has(late, print(1)));
        vouchers.forget(EntryRef { log: log(1), seq: 1 });
        assert!(vouchers.has_room_for(late));
    }
}
