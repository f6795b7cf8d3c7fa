//! Sends that may be repeated: a client that repeats one is told the fate of the first.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    limits::{DEDUP_FOR, DEDUP_IDS_MAX},
    name::{id::LocalRef, number::Number},
    wire::entry::DedupId,
};

/// Sends that may be repeated, and their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    by_id: BTreeMap<DedupId, LocalRef>,
    entries: BTreeMap<LocalRef, Send>,
    /// In the order in which they became known.
    order: VecDeque<LocalRef>,
}

/// One send.
#[derive(Clone, Debug)]
struct Send {
    id: DedupId,
    wall_ms: u64,
    number: Option<Number>,
}

impl Sent {
    pub(crate) fn insert(&mut self, id: DedupId, at: LocalRef, wall_ms: u64) {
        let known = self.by_id.get(&id).and_then(|at| self.entries.get(at));
        if known.is_some_and(|send| wall_ms < send.wall_ms.saturating_add(keep_ms())) {
            return;
        }
        self.by_id.insert(id, at);
        self.entries.insert(at, Send { id, wall_ms, number: None });
        self.order.push_back(at);
        if self.order.len() > DEDUP_IDS_MAX {
            self.forget_oldest();
        }
    }

    pub(crate) fn delivered(&mut self, at: LocalRef, number: Number) {
        if let Some(send) = self.entries.get_mut(&at) {
            send.number = Some(number);
        }
    }

    /// The entry of an earlier send within the time that repeats are recognised, and its number
    /// if it has been delivered.
    pub(crate) fn find(&self, wall_ms: u64, id: DedupId) -> Option<(LocalRef, Option<Number>)> {
        let at = *self.by_id.get(&id)?;
        let send = self.entries.get(&at)?;
        (wall_ms < send.wall_ms.saturating_add(keep_ms())).then_some((at, send.number))
    }

    fn forget_oldest(&mut self) {
        if let Some(at) = self.order.pop_front()
            && let Some(send) = self.entries.remove(&at)
            && self.by_id.get(&send.id) == Some(&at)
        {
            self.by_id.remove(&send.id);
        }
    }
}

/// How long a send is remembered, in milliseconds.
fn keep_ms() -> u64 {
    u64::try_from(DEDUP_FOR.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> DedupId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.to_be_bytes());
        DedupId(id)
    }

    fn at(seq: u64) -> LocalRef {
        LocalRef { log: 0, seq }
    }

    #[test]
    fn so_many_sends_are_remembered_and_the_newest_of_them() {
        let mut sent = Sent::default();
        let most = DEDUP_IDS_MAX as u64;
        for n in 1..=most {
            sent.insert(id(n), at(n), 0);
        }
        assert_eq!(sent.find(0, id(1)), Some((at(1), None)));
        sent.insert(id(most + 1), at(most + 1), 0);
        assert_eq!(sent.find(0, id(1)), None);
        assert_eq!(sent.find(0, id(2)), Some((at(2), None)));
        assert_eq!(sent.find(0, id(most + 1)), Some((at(most + 1), None)));
        assert!(sent.entries.len() <= DEDUP_IDS_MAX && sent.by_id.len() <= DEDUP_IDS_MAX);
    }

    #[test]
    fn a_send_is_what_it_was_first_for_so_long_and_then_what_it_is_next() {
        let mut sent = Sent::default();
        sent.insert(id(1), at(1), 1_000);
        sent.insert(id(1), at(2), 1_000 + keep_ms() - 1);
        sent.delivered(at(1), Number(7));
        assert_eq!(sent.find(1_000 + keep_ms() - 1, id(1)), Some((at(1), Some(Number(7)))));
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), None);
        sent.insert(id(1), at(3), 1_000 + keep_ms());
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), Some((at(3), None)));
        sent.forget_oldest();
        assert_eq!(sent.find(1_000 + keep_ms(), id(1)), Some((at(3), None)), "it was the first");
        sent.forget_oldest();
        assert_eq!(sent.find(1_000, id(1)), None);
    }
}
