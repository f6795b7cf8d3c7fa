//! Queues by peer that take turns: a peer that sends much waits for itself, and others do not wait
//! for it.

use std::collections::{BTreeMap, VecDeque};

use mesh::name::id::NodeId;

/// See the module. The owner bounds its content.
#[derive(Debug)]
pub(crate) struct Fair<T> {
    /// None of them is empty, but those whose turn it is.
    queues: BTreeMap<NodeId, VecDeque<T>>,
    /// Peers that have something, and are not being served.
    turns: VecDeque<NodeId>,
    len: usize,
}

impl<T> Default for Fair<T> {
    fn default() -> Fair<T> {
        Fair { queues: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T> Fair<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is something that can be taken now.
    pub(crate) fn has_next(&self) -> bool {
        !self.turns.is_empty()
    }

    /// How much of this peer waits.
    pub(crate) fn len_of(&self, peer: NodeId) -> usize {
        self.queues.get(&peer).map_or(0, VecDeque::len)
    }

    pub(crate) fn push(&mut self, peer: NodeId, item: T) {
        self.len += 1;
        if let Some(queue) = self.queues.get_mut(&peer) {
            // Waiting already, or being served: then its turn comes with `served`.
            queue.push_back(item);
        } else {
            self.queues.insert(peer, VecDeque::from([item]));
            self.turns.push_back(peer);
        }
    }

    /// The first thing of the next peer. Nothing more of that peer is given before it is
    /// [`Fair::served`].
    pub(crate) fn next(&mut self) -> Option<(NodeId, T)> {
        let peer = self.turns.pop_front()?;
        let item = self.queues.get_mut(&peer).and_then(VecDeque::pop_front)?;
        self.len -= 1;
        Some((peer, item))
    }

    /// The peer may have its next turn, after all others.
    pub(crate) fn served(&mut self, peer: NodeId) {
        match self.queues.get(&peer) {
            Some(queue) if queue.is_empty() => drop(self.queues.remove(&peer)),
            Some(_) => self.turns.push_back(peer),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_much_waits_for_itself() {
        let (a, b) = (NodeId([1; 32]), NodeId([2; 32]));
        let mut fair = Fair::default();
        for i in 0..100 {
            fair.push(a, i);
        }
        fair.push(b, 1_000);
        fair.push(b, 1_001);
        let mut order = Vec::new();
        while let Some((peer, it)) = fair.next() {
            fair.served(peer);
            order.push(it);
        }
        assert_eq!(order[..6], [0, 1_000, 1, 1_001, 2, 3]);
        assert_eq!((order.len(), fair.len(), fair.has_next()), (102, 0, false));
        assert_eq!(fair.len_of(a), 0);
    }

    #[test]
    fn nothing_of_a_peer_is_given_while_it_is_served() {
        let (a, b) = (NodeId([1; 32]), NodeId([2; 32]));
        let mut fair = Fair::default();
        fair.push(a, 1);
        fair.push(a, 2);
        assert_eq!(fair.next(), Some((a, 1)));
        fair.push(a, 3);
        assert_eq!(fair.next(), None);
        fair.push(b, 9);
        assert_eq!(fair.next(), Some((b, 9)));
        fair.served(a);
        fair.served(b);
        assert_eq!(fair.next(), Some((a, 2)));
        fair.served(a);
        assert_eq!(fair.next(), Some((a, 3)));
        fair.served(a);
        fair.push(a, 4);
        assert_eq!(fair.next(), Some((a, 4)));
    }
}
