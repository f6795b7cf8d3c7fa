//! Vouchers: which key was shown at which node. A fold that does not depend on the order in which entries of several
//! logs came; of one log the first ones count.

use std::collections::BTreeMap;

use crate::{
    limits::{VOUCHERS_MAX, VOUCHERS_PER_NODE_MAX},
    name::id::{EntryRef, KeyPrint, LogId, NodeId},
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Vouchers {
    /// By the node that wrote it, and the key: the place of the first one in the node's log of the directory.
    by_node: BTreeMap<NodeId, BTreeMap<KeyPrint, u64>>,
    /// Of all nodes.
    count: usize,
}

impl Vouchers {
    /// Takes one in, if there is room for it.
    pub(super) fn learn(&mut self, log: LogId, seq: u64, key: KeyPrint) {
        let of_node = self.by_node.entry(log.author).or_default();
        let full = self.count >= VOUCHERS_MAX || of_node.len() >= VOUCHERS_PER_NODE_MAX;
        if let Some(first) = of_node.get_mut(&key) {
            *first = seq.min(*first);
        } else if !full {
            of_node.insert(key, seq);
            self.count += 1;
        }
    }

    pub(super) fn has(&self, node: NodeId, key: KeyPrint) -> bool {
        self.by_node.get(&node).is_some_and(|keys| keys.contains_key(&key))
    }

    /// Whether one more of this node would count.
    pub(super) fn has_room_for(&self, node: NodeId) -> bool {
        let of_node = self.by_node.get(&node).map_or(0, BTreeMap::len);
        self.count < VOUCHERS_MAX && of_node < VOUCHERS_PER_NODE_MAX
    }

    /// Nothing counts that a log says, `from` an entry on.
    pub(super) fn forget(&mut self, from: EntryRef) {
        let Some(keys) = self.by_node.get_mut(&from.log.author) else { return };
        let before = keys.len();
        keys.retain(|_, seq| *seq < from.seq);
        self.count -= before - keys.len();
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
        vouchers.forget(EntryRef { log: log(2), seq: 1 });
        vouchers.forget(EntryRef { log: log(1), seq: 6 });
        assert!(has(&vouchers, 1, 1), "the first one is before that");
        vouchers.forget(EntryRef { log: log(1), seq: 5 });
        assert!(!has(&vouchers, 1, 1));
        assert_eq!(vouchers.count, 0);
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
        assert_eq!(vouchers.count, VOUCHERS_MAX);
        let late = NodeId([nodes + 1; 32]);
        assert!(!vouchers.has_room_for(late));
        vouchers.learn(log(nodes + 1), 1, print(1));
        assert!(!vouchers.has(late, print(1)));
        vouchers.forget(EntryRef { log: log(1), seq: 1 });
        assert!(vouchers.has_room_for(late));
    }
}
