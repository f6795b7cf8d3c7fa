//! Who gave which numbers in a directory: when a log is cut, those that it gave beyond the cut do not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    entry::Body,
    id::{LogId, RoomId},
    limits::{GIVEN_PER_LOG_MAX, ORDERED_ITEMS_MAX},
    number::{Era, Number},
};

/// Which entries of a directory gave which numbers, and which of these do not count.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// By log: places of the entries and the first number of each, in the order of the log. The last ones.
    by: BTreeMap<(RoomId, LogId), VecDeque<(u64, Number)>>,
    /// From which number on none counts.
    lost: BTreeMap<(RoomId, Era), Number>,
}

impl Given {
    /// An entry that counts gave numbers, from this one on.
    pub(super) fn note(&mut self, room: RoomId, log: LogId, (seq, first): (u64, Number)) {
        let given = self.by.entry((room, log)).or_default();
        if given.back().is_some_and(|(last, _)| *last >= seq) {
            return;
        }
        given.push_back((seq, first));
        if given.len() > GIVEN_PER_LOG_MAX {
            given.pop_front();
        }
    }

    /// Nothing counts of this log from there on. Returns from where on numbers do not that did until now.
    pub(super) fn cut(&mut self, room: RoomId, log: LogId, seq: u64) -> Vec<Number> {
        let Some(given) = self.by.get_mut(&(room, log)) else { return Vec::new() };
        let first = given.partition_point(|(at, _)| *at < seq);
        let lost = given.split_off(first);
        lost.into_iter()
            .filter(|(_, from)| lose(&mut self.lost, room, *from))
            .map(|(_, from)| from)
            .collect()
    }

    /// These numbers were given by an entry that does not count. `false`: that is known.
    pub(super) fn lose(&mut self, room: RoomId, from: Number) -> bool {
        lose(&mut self.lost, room, from)
    }

    pub(super) fn counts(&self, room: RoomId, number: Number) -> bool {
        self.lost.get(&(room, number.era())).is_none_or(|from| number < *from)
    }
}

fn lose(lost: &mut BTreeMap<(RoomId, Era), Number>, room: RoomId, from: Number) -> bool {
    match lost.get(&(room, from.era())) {
        Some(known) if *known <= from => false,
        Some(_) | None => {
            lost.insert((room, from.era()), from);
            true
        }
    }
}

/// What the logs of one directory say of its eras, as a store kept it: also what had no effect when it came.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    by: BTreeMap<(Era, LogId), VecDeque<(u64, Order)>>,
}

#[derive(Debug)]
enum Order {
    Gave { first: u64, count: u64 },
    HandedOver { next: u64, to: LogId },
}

impl Orders {
    /// Entries of each log in their order.
    pub(crate) fn note(&mut self, log: LogId, seq: u64, body: &Body) {
        let (era, order) = if let Body::Ordered(it) = body {
            if !it.fits() || it.count() > ORDERED_ITEMS_MAX as u64 {
                return;
            }
            (it.era, Order::Gave { first: it.first, count: it.count() })
        } else if let Body::HandedOver(it) = body {
            (it.era, Order::HandedOver { next: it.next, to: it.to })
        } else {
            return;
        };
        self.by.entry((era, log)).or_default().push_back((seq, order));
    }

    /// The entries that gave numbers, by who had each era first: in the order of each log, the first number of each.
    pub(crate) fn replay(
        mut self,
        opener: impl Fn(Era) -> Option<LogId>,
    ) -> BTreeMap<(LogId, u64), Number> {
        let eras: BTreeSet<Era> = self.by.keys().map(|(era, _)| *era).collect();
        let mut given = BTreeMap::new();
        for era in eras {
            let Some(mut log) = opener(era) else { continue };
            let mut next = 1;
            while let Some((seq, order)) =
                self.by.get_mut(&(era, log)).and_then(VecDeque::pop_front)
            {
                match order {
                    Order::Gave { first, count } if first == next => {
                        given.insert((log, seq), era.number(first));
                        next += count;
                    }
                    Order::HandedOver { next: its, to } if its == next => log = to,
                    Order::Gave { .. } | Order::HandedOver { .. } => {}
                }
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        entry::{HandedOver, Items, Ordered},
        id::NodeId,
    };

    const ROOM: RoomId = RoomId([7; 16]);

    fn log(author: u8) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation: 0 }
    }

    #[test]
    fn of_one_log_the_last_are_known() {
        let mut given = Given::default();
        let max = GIVEN_PER_LOG_MAX as u64;
        for seq in (1..max + 3).chain([5]) {
            given.note(ROOM, log(1), (seq, Number(seq + 100)));
        }
        assert_eq!(given.by[&(ROOM, log(1))].len(), GIVEN_PER_LOG_MAX);
        assert_eq!(given.cut(ROOM, log(2), 1), []);
        assert_eq!(given.cut(ROOM, log(1), max + 2), [Number(max + 102)]);
        assert_eq!(given.cut(ROOM, log(1), 1), [Number(103)], "the lowest of the era");
        assert!(given.counts(ROOM, Number(102)) && !given.counts(ROOM, Number(103)));
        assert!(given.counts(RoomId([8; 16]), Number(103)));
        assert_eq!(given.cut(ROOM, log(1), 1), []);
    }

    /// A store keeps also what had no effect when it came.
    #[test]
    fn who_gave_numbers_is_found_from_what_the_logs_say() {
        let era = Era::new(1, 5).expect("an era");
        let gives = |era, first, count| {
            let items = vec![Items { log: 0, from: 1, count }];
            Body::Ordered(Ordered { era, first, logs: vec![log(9)], items })
        };
        let hands = |era, next, to| Body::HandedOver(HandedOver { era, next, to: log(to) });
        let says = [
            (1, 1, gives(era, 1, 3)),
            (1, 2, gives(era, 3, 1)),       // one that is given
            (1, 3, gives(era, 5, 1)),       // not the next
            (1, 4, gives(Era::HOME, 1, 1)), // not its era
            (1, 5, hands(era, 9, 3)),       // nor is this the next
            (1, 6, hands(era, 4, 2)),
            (1, 7, gives(era, 6, 1)), // it is another's, and its own again
            (1, 8, gives(era, 7, u32::MAX)), // so many are never given at once
            (2, 4, gives(era, 4, 2)),
            (2, 5, hands(era, 6, 1)),
            (2, 6, gives(era, 7, 1)), // it is another's now
            (3, 1, gives(era, 4, 1)), // it never was its
            (4, 1, gives(Era::HOME, 1, 1)),
            (4, 2, gives(Era::new(2, 6).expect("an era"), 1, 1)), // nobody's
            (4, 3, Body::Unknown),
        ];
        let mut orders = Orders::default();
        says.iter().for_each(|(author, seq, body)| orders.note(log(*author), *seq, body));
        let opener = |it: Era| match it {
            Era::HOME => Some(log(4)),
            it => (it == era).then(|| log(1)),
        };
        let given = orders.replay(opener).into_iter();
        let given: Vec<_> = given.map(|((by, seq), first)| (by.author.0[0], seq, first)).collect();
        let number = |n| era.number(n);
        assert_eq!(
            given,
            [(1, 1, number(1)), (1, 7, number(6)), (2, 4, number(4)), (4, 1, Number(1))]
        );
    }
}
