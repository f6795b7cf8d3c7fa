//! Removed nodes, and how far their logs count: a fold over [`NodeParted`] entries of the mesh's directory. The
//! order in which they came does not matter (`docs/decisions/membership.md`).
//!
//! Every removal counts, for ever, by whichever node: of several of one node the lowest cut of each log. So
//! nothing that was shut out has to be let in again when an entry comes late.

use std::collections::BTreeMap;

use crate::{
    fold::act::Folded,
    limits::{LOG_SEQ_MAX, NODES_MAX, PARTED_LOGS_KEPT, PARTED_LOGS_MAX},
    name::id::{LogId, NodeId, RoomId},
    wire::entry::{Facts, Kept, NodeParted, Parted, Parting},
};

/// How far the log of a removed node counts in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Up to this log seq.
    At(u64),
    /// Nobody has said: each node keeps what it has.
    AsHeld,
}

/// One entry about a node, without its cuts.
#[derive(Clone, Debug)]
struct Word {
    clock: u64,
    wall_ms: u64,
    why: Parting,
}

/// The entries about one node, together.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Of each log the first.
    words: BTreeMap<LogId, Word>,
    /// By room: the lowest cut, and how many of the words name the room.
    cuts: BTreeMap<RoomId, (u64, usize)>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals {
    nodes: BTreeMap<NodeId, Known>,
}

/// As many of these cuts as a removal may name, in its order; of too many, `first` in any case.
pub(crate) fn named(cut: impl Iterator<Item = Kept>, first: RoomId) -> Vec<Kept> {
    let mut cut: Vec<Kept> = cut.collect();
    cut.sort_by_key(|kept| (kept.room != first, kept.room));
    cut.truncate(PARTED_LOGS_MAX);
    cut.sort_by_key(|kept| kept.room);
    cut
}

impl Removals {
    /// Takes in the word of a log. `None`: it says nothing new.
    pub(crate) fn learn(
        &mut self,
        log: LogId,
        facts: Facts,
        removal: &NodeParted,
    ) -> Option<Folded> {
        if !is_sane(log, removal) {
            return Some(Folded::Void);
        }
        let node = removal.node;
        if self.nodes.get(&node).is_some_and(|known| known.words.contains_key(&log)) {
            return None;
        }
        let kept: usize = self.nodes.values().map(|known| known.cuts.len()).sum();
        let full = self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&node);
        if full || kept + removal.cut.len() > PARTED_LOGS_KEPT {
            return Some(Folded::Overflow);
        }
        let known = self.nodes.entry(node).or_default();
        let word = Word { clock: facts.clock, wall_ms: facts.wall_ms, why: removal.why };
        known.words.insert(log, word);
        for kept in &removal.cut {
            let (lowest, times) = known.cuts.entry(kept.room).or_insert((kept.seq, 0));
            *lowest = kept.seq.min(*lowest);
            *times += 1;
        }
        Some(Folded::Taken)
    }

    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.keys().copied()
    }

    /// Nodes that others shut out, or that this one did.
    pub(crate) fn expelled(&self, by: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        let fits = move |log: &LogId| by.is_none_or(|by| log.author == by);
        let is_expelled = move |known: &Known| {
            known.words.iter().any(|(log, word)| fits(log) && word.why == Parting::Expelled)
        };
        self.nodes.iter().filter(move |(_, known)| is_expelled(known)).map(|(node, _)| *node)
    }

    /// How far the node's log counts in a room; `None`: it was not removed. `open`: every node has the room, so an
    /// author that does not name it knew of nothing there.
    pub(crate) fn cut(&self, node: NodeId, room: RoomId, open: bool) -> Option<Cut> {
        let known = self.nodes.get(&node)?;
        Some(match known.cuts.get(&room) {
            Some((_, times)) if open && *times < known.words.len() => Cut::At(0),
            Some((lowest, _)) => Cut::At(*lowest),
            None if open => Cut::At(0),
            None => Cut::AsHeld,
        })
    }

    /// As operators are told: of several words the gravest, then the first by position.
    pub(crate) fn view(&self, node: NodeId) -> Option<Parted> {
        let words = self.nodes.get(&node)?.words.iter();
        let (log, word) = words.min_by_key(|(log, word)| (word.why, word.clock, **log))?;
        Some(Parted { why: word.why, by: log.author, wall_ms: word.wall_ms })
    }
}

/// Whether an honest node may write this.
fn is_sane(log: LogId, removal: &NodeParted) -> bool {
    let rises = removal.cut.is_sorted_by(|a, b| a.room < b.room);
    rises
        && removal.cut.len() <= PARTED_LOGS_MAX
        && removal.cut.iter().all(|kept| kept.seq <= LOG_SEQ_MAX)
        && (removal.why == Parting::Left) == (removal.node == log.author)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: NodeId = NodeId([9; 32]);

    fn log(author: u8) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation: 0 }
    }

    fn room(n: u8) -> RoomId {
        RoomId([n; 16])
    }

    /// Author, clock, why, rooms and cuts.
    type Said = (u8, u64, Parting, &'static [(u8, u64)]);

    fn learn(removals: &mut Removals, (author, clock, why, cut): Said) -> Option<Folded> {
        let facts = Facts { clock, wall_ms: clock, kind: 36, visible: false };
        let kept = |(n, seq): &(u8, u64)| Kept { room: room(*n), seq: *seq };
        let it = NodeParted { node: GONE, why, cut: cut.iter().map(kept).collect() };
        removals.learn(log(author), facts, &it)
    }

    #[test]
    fn of_so_many_nodes_it_is_known_that_they_are_out_and_more_is_heard_of_them() {
        let mut removals = Removals::default();
        let mut learn = |author: u8, nth: usize| {
            let mut node = [0; 32];
            node[..8].copy_from_slice(&(nth as u64).to_be_bytes());
            let facts = Facts { clock: 1, wall_ms: 1, kind: 36, visible: false };
            let it = NodeParted { node: NodeId(node), why: Parting::Retired, cut: Vec::new() };
            removals.learn(log(author), facts, &it)
        };
        assert!((0..NODES_MAX).all(|nth| learn(1, nth) == Some(Folded::Taken)));
        assert_eq!(learn(1, NODES_MAX), Some(Folded::Overflow));
        assert_eq!(learn(2, 0), Some(Folded::Taken));
    }

    #[test]
    fn of_several_words_the_lowest_cut_counts_in_whatever_order_they_come() {
        let said: [Said; 3] = [
            (1, 7, Parting::Retired, &[(1, 5), (2, 8), (3, 1)]),
            (2, 9, Parting::Expelled, &[(1, 6), (2, 7)]),
            (9, 3, Parting::Left, &[(1, 9), (2, 9), (4, 4)]),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut removals = Removals::default();
            for i in order {
                assert_eq!(learn(&mut removals, said[i]), Some(Folded::Taken));
                assert_eq!(learn(&mut removals, said[i]), None, "it is no news");
            }
            let cut = |n, open| removals.cut(GONE, room(n), open).expect("it was removed");
            assert_eq!([cut(1, true), cut(2, true)], [Cut::At(5), Cut::At(7)], "{order:?}");
            assert_eq!(cut(3, true), Cut::At(0), "two of three knew of nothing there");
            assert_eq!(cut(5, true), Cut::At(0), "nobody did");
            // Not everybody can see these: whoever names them knows.
            assert_eq!([cut(3, false), cut(4, false)], [Cut::At(1), Cut::At(4)]);
            assert_eq!(cut(5, false), Cut::AsHeld);
            let view = removals.view(GONE).expect("it was removed");
            assert_eq!((view.why, view.by), (Parting::Expelled, log(2).author), "{order:?}");
            let expelled = |by: Option<u8>| {
                let by = by.map(|author| log(author).author);
                removals.expelled(by).collect::<Vec<_>>()
            };
            assert_eq!([expelled(None), expelled(Some(2))], [[GONE], [GONE]]);
            assert_eq!(expelled(Some(1)), [], "by another one");
        }
    }

    #[test]
    fn what_no_honest_node_writes_means_nothing() {
        let mut removals = Removals::default();
        let bad: [Said; 5] = [
            (9, 1, Parting::Expelled, &[]),
            (9, 1, Parting::Retired, &[]),
            (1, 1, Parting::Left, &[]),
            (1, 1, Parting::Expelled, &[(2, 1), (1, 1)]),
            (1, 1, Parting::Expelled, &[(1, 1), (1, 2)]),
        ];
        for it in bad {
            assert_eq!(learn(&mut removals, it), Some(Folded::Void), "{it:?}");
        }
        assert!(!removals.has(GONE));
        assert_eq!(removals.cut(GONE, room(1), true), None);
    }

    #[test]
    fn of_more_rooms_than_can_be_named_the_directory_is() {
        let kept = |n: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&(n as u64).to_be_bytes());
            Kept { room: RoomId(id), seq: 1 }
        };
        let last = kept(PARTED_LOGS_MAX).room;
        let cut = named((0..=PARTED_LOGS_MAX).map(kept), last);
        assert_eq!(cut.len(), PARTED_LOGS_MAX);
        assert!(cut.is_sorted_by(|a, b| a.room < b.room));
        assert_eq!(cut.last().map(|it| it.room), Some(last));
    }

    #[test]
    fn memory_is_bounded_and_a_log_says_one_thing_of_a_node() {
        let mut removals = Removals::default();
        let facts = Facts { clock: 1, wall_ms: 1, kind: 36, visible: false };
        let cut: Vec<Kept> = (0..PARTED_LOGS_MAX)
            .map(|n| {
                let mut id = [0; 16];
                id[..8].copy_from_slice(&(n as u64).to_be_bytes());
                Kept { room: RoomId(id), seq: 1 }
            })
            .collect();
        let mut taken = 0;
        for n in 0..=u8::try_from(PARTED_LOGS_KEPT / PARTED_LOGS_MAX).expect("few") {
            let it = NodeParted {
                node: NodeId([100 + n; 32]),
                why: Parting::Expelled,
                cut: cut.clone(),
            };
            taken += usize::from(removals.learn(log(1), facts, &it) == Some(Folded::Taken));
        }
        assert_eq!(taken, PARTED_LOGS_KEPT / PARTED_LOGS_MAX);
    }
}
