//! API keys that the directories name: keys of the mesh, and keys of this node alone. A fold that does not depend on
//! the order in which entries came: a key that was revoked anywhere stays so, whatever was minted before or after.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::agenda::KeyView,
    limits::{INHERITANCE_BYTES_MAX, KEY_LINE_MAX, KEYS_MAX},
    name::id::{EntryRef, KeyPrint, LogId, NodeId},
    wire::{
        acts::{KeyAct, KeyTerms, Tier},
        entry::Facts,
    },
};

/// The directories that say something of a key. Of one key the mesh's count before the node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Directories {
    /// All nodes have these.
    Mesh,
    /// Of this node alone.
    Node,
}

/// A log of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Author {
    of: Directories,
    log: LogId,
}

/// The entry that an act of a key is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyEntry {
    pub(crate) of: Directories,
    pub(crate) log: LogId,
    pub(crate) seq: u64,
    pub(crate) facts: Facts,
}

#[derive(Clone, Debug)]
struct Minted {
    clock: u64,
    seq: u64,
    wall_ms: u64,
    terms: KeyTerms,
}

#[derive(Clone, Debug)]
struct Replaced {
    clock: u64,
    seq: u64,
    successor: KeyPrint,
    /// For the successor: see [`KeyReplaced::sealed`](crate::wire::acts::KeyReplaced).
    sealed: Option<Vec<u8>>,
}

/// The acts of one key. Of each log the first act of a kind is enough: if the log is found forked before it, all
/// later ones are void, too.
#[derive(Clone, Debug, Default)]
struct Known {
    minted: BTreeMap<Author, Minted>,
    revoked: BTreeMap<Author, u64>,
    /// In the mesh's directory alone, by nodes that minted the key or were shown it.
    replaced: BTreeMap<LogId, Replaced>,
}

impl Known {
    /// Of several the first by position counts.
    fn first(&self) -> Option<(&Author, &Minted)> {
        self.minted.iter().min_by_key(|(author, minted)| (author.of, minted.clock, author.log))
    }

    fn is_minted(&self, of: Directories) -> bool {
        self.minted.keys().any(|author| author.of == of)
    }

    /// The word by which another key has replaced this one: that of the node that minted it for the mesh; of a key that
    /// nobody minted there the first by position.
    fn replacement(&self) -> Option<&Replaced> {
        let minted = self.first().filter(|(author, _)| author.of == Directories::Mesh);
        match minted {
            Some((author, _)) => self.replaced.get(&author.log),
            None => {
                let first = self.replaced.iter().min_by_key(|(log, said)| (said.clock, **log));
                first.map(|(_, said)| said)
            }
        }
    }

    fn successor(&self) -> Option<KeyPrint> {
        self.replacement().map(|said| said.successor)
    }

    /// A key of which anybody that may has said that it was replaced is not valid, though another's word may count by now.
    fn is_valid(&self) -> bool {
        self.revoked.is_empty() && self.replaced.is_empty()
    }

    fn is_nothing(&self) -> bool {
        self.minted.is_empty() && self.revoked.is_empty() && self.replaced.is_empty()
    }
}

/// The change that an act has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Nothing that counts.
    Nothing,
    /// A key is known, or another node answers for it.
    Known(KeyPrint),
    /// A key is not valid any more.
    Invalid(KeyPrint),
    /// All that was a key's own belongs to another one.
    Successor(KeyPrint),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    known: BTreeMap<KeyPrint, Known>,
    /// Keys of which some log says that this one replaced them.
    predecessors: BTreeMap<KeyPrint, BTreeSet<KeyPrint>>,
    /// Keys that expire, by that time; not those of which it was said that they did.
    expiring: BTreeSet<(u64, KeyPrint)>,
}

impl Keys {
    /// Takes in an act. A node that says that a key is replaced has minted it or was shown it: the caller has checked that.
    pub(crate) fn learn(&mut self, entry: KeyEntry, act: KeyAct) -> Changed {
        let key = match &act {
            KeyAct::Minted(minted) => minted.key(),
            KeyAct::Revoked(key) => *key,
            KeyAct::Replaced(replaced) => replaced.key(),
            // Vouchers are folded elsewhere: they make no key valid.
            KeyAct::Shown(_) => return Changed::Nothing,
        };
        let was_revoked = self.known.get(&key).is_some_and(|known| !known.revoked.is_empty());
        let successor = self.successor(key);
        let minted = matches!(act, KeyAct::Minted(_));
        self.note(entry, key, act);
        let Some(known) = self.known.get(&key) else { return Changed::Nothing };
        if self.successor(key) != successor {
            Changed::Successor(key)
        } else if !was_revoked && !known.revoked.is_empty() {
            Changed::Invalid(key)
        } else if minted {
            Changed::Known(key)
        } else {
            Changed::Nothing
        }
    }

    fn note(&mut self, entry: KeyEntry, key: KeyPrint, act: KeyAct) {
        let KeyEntry { of, log, seq, facts } = entry;
        let author = Author { of, log };
        match act {
            KeyAct::Minted(minted) => {
                let terms = minted.terms;
                if terms.check().is_err() {
                    return;
                }
                let minted = &mut self.known.entry(key).or_default().minted;
                if minted.get(&author).is_none_or(|known| seq < known.seq) {
                    // Of those that count alone: else a log that says it again and again would fill memory.
                    self.expiring.extend(terms.expires_ms.map(|at| (at, key)));
                    let (clock, wall_ms) = (facts.clock, facts.wall_ms);
                    minted.insert(author, Minted { clock, seq, wall_ms, terms });
                }
            }
            KeyAct::Revoked(key) => {
                let revoked = &mut self.known.entry(key).or_default().revoked;
                let at = revoked.entry(author).or_insert(seq);
                *at = seq.min(*at);
            }
            KeyAct::Replaced(said) => {
                let successor = said.successor.key();
                let sealed = said.sealed.map(Vec::from);
                let is_long =
                    sealed.as_ref().is_some_and(|sealed| sealed.len() > INHERITANCE_BYTES_MAX);
                if successor == key || of != Directories::Mesh || is_long {
                    return;
                }
                let replaced = &mut self.known.entry(key).or_default().replaced;
                if replaced.get(&log).is_none_or(|known| seq < known.seq) {
                    replaced.insert(log, Replaced { clock: facts.clock, seq, successor, sealed });
                    self.predecessors.entry(successor).or_default().insert(key);
                }
            }
            KeyAct::Shown(_) => {}
        }
    }

    /// The key that has replaced this one.
    pub(crate) fn successor(&self, key: KeyPrint) -> Option<KeyPrint> {
        self.known.get(&key)?.successor()
    }

    /// The secrets of a key that was replaced, sealed to its successor.
    pub(crate) fn sealed(&self, key: KeyPrint) -> Option<&[u8]> {
        self.known.get(&key)?.replacement()?.sealed.as_deref()
    }

    /// The key to which all belongs by now that was once this one's: the last of its successors, or itself.
    pub(crate) fn current(&self, key: KeyPrint) -> KeyPrint {
        let mut current = key;
        // Keys that replace each other in a circle are all invalid: any of them will do.
        for _ in 0..KEY_LINE_MAX {
            let Some(next) = self.successor(current) else { break };
            current = next;
        }
        current
    }

    /// The key, and the ones whose belongings have come to it; the nearest first, at most [`KEY_LINE_MAX`].
    pub(crate) fn line(&self, key: KeyPrint) -> Vec<KeyPrint> {
        let mut line = vec![key];
        let mut next = 0;
        while let Some(at) = line.get(next).copied().filter(|_| line.len() < KEY_LINE_MAX) {
            for before in self.predecessors(at) {
                if line.len() < KEY_LINE_MAX && !line.contains(&before) {
                    line.push(before);
                }
            }
            next += 1;
        }
        line
    }

    /// The keys that this one has replaced itself.
    pub(crate) fn predecessors(&self, key: KeyPrint) -> Vec<KeyPrint> {
        let said = self.predecessors.get(&key).into_iter().flatten().copied();
        said.filter(|before| self.successor(*before) == Some(key)).take(KEY_LINE_MAX).collect()
    }

    /// Whether a log has minted a key for the mesh.
    pub(crate) fn is_minted_by(&self, log: LogId, key: KeyPrint) -> bool {
        let author = Author { of: Directories::Mesh, log };
        self.known.get(&key).is_some_and(|known| known.minted.contains_key(&author))
    }

    /// The terms of a key that was neither revoked nor replaced.
    pub(crate) fn terms(&self, key: KeyPrint) -> Option<&KeyTerms> {
        let known = self.known.get(&key).filter(|known| known.is_valid())?;
        known.first().map(|(_, minted)| &minted.terms)
    }

    /// Its tier.
    pub(crate) fn tier(&self, key: KeyPrint) -> Option<Tier> {
        self.terms(key).map(|terms| terms.tier)
    }

    /// Whether some key expires by then that was not taken before.
    pub(crate) fn some_expire(&self, wall_ms: u64) -> bool {
        self.expiring.first().is_some_and(|(at, _)| *at <= wall_ms)
    }

    /// Takes keys that are not valid from now on, each once.
    pub(crate) fn take_expired(&mut self, wall_ms: u64) -> Vec<KeyPrint> {
        let later = self.expiring.split_off(&(wall_ms.saturating_add(1), KeyPrint::OPEN));
        let over = std::mem::replace(&mut self.expiring, later);
        let is_over = |key: &KeyPrint| self.terms(*key).is_some_and(|terms| terms.is_over(wall_ms));
        over.into_iter().map(|(_, key)| key).filter(is_over).collect()
    }

    /// The same of a key that may have been revoked meanwhile: its rooms are still there.
    pub(crate) fn tier_once(&self, key: KeyPrint) -> Option<Tier> {
        self.known.get(&key)?.first().map(|(_, minted)| minted.terms.tier)
    }

    /// Whether it was revoked or replaced, anywhere.
    pub(crate) fn is_revoked(&self, key: KeyPrint) -> bool {
        self.known.get(&key).is_some_and(|known| !known.is_valid())
    }

    /// Minted or revoked, anywhere.
    pub(crate) fn knows(&self, key: KeyPrint) -> bool {
        self.known.contains_key(&key)
    }

    /// Whether it was minted in these directories.
    pub(crate) fn is_minted(&self, key: KeyPrint, of: Directories) -> bool {
        self.known.get(&key).is_some_and(|known| known.is_minted(of))
    }

    /// The node that minted it for the mesh, first by position; also of a key that was revoked.
    pub(crate) fn answers(&self, key: KeyPrint) -> Option<NodeId> {
        let (author, _) = self.known.get(&key)?.first()?;
        // Of one key those of the mesh are first.
        (author.of == Directories::Mesh).then_some(author.log.author)
    }

    /// How many more are taken in, by this node or from others.
    pub(crate) fn places(&self) -> usize {
        KEYS_MAX.saturating_sub(self.known.len())
    }

    /// Whether there is room for an act: another one of a known key takes none.
    pub(crate) fn has_room_for(&self, act: &KeyAct) -> bool {
        let key = match act {
            KeyAct::Minted(minted) => minted.key(),
            KeyAct::Revoked(key) => *key,
            KeyAct::Replaced(replaced) => replaced.key(),
            // It takes none.
            KeyAct::Shown(_) => return true,
        };
        self.places() > 0 || self.knows(key)
    }

    /// Minted keys, the oldest first.
    pub(crate) fn views(&self) -> Vec<KeyView> {
        let view = |(key, known): (&KeyPrint, &Known)| {
            let (author, minted) = known.first()?;
            Some(KeyView {
                key: *key,
                terms: minted.terms.clone(),
                node: author.log.author,
                minted_ms: minted.wall_ms,
                revoked: !known.revoked.is_empty(),
                successor: known.successor(),
                local: author.of == Directories::Node,
            })
        };
        let mut views: Vec<KeyView> = self.known.iter().filter_map(view).collect();
        views.sort_by_key(|view| (view.minted_ms, view.key));
        views
    }

    /// Nothing counts that a log says in these directories, `from` an entry on. Whether successors may be others now.
    pub(crate) fn forget(&mut self, of: Directories, from: EntryRef) -> bool {
        let author = Author { of, log: from.log };
        let mut successors = false;
        for known in self.known.values_mut() {
            let before = known.successor();
            known.minted.retain(|by, minted| *by != author || minted.seq < from.seq);
            known.revoked.retain(|by, at| *by != author || *at < from.seq);
            if of == Directories::Mesh {
                known.replaced.retain(|by, said| *by != from.log || said.seq < from.seq);
            }
            successors |= known.successor() != before;
        }
        self.known.retain(|_, known| !known.is_nothing());
        let known = &self.known;
        self.predecessors.retain(|key, before| {
            let says = |said: &Replaced| said.successor == *key;
            before.retain(|old| known.get(old).is_some_and(|old| old.replaced.values().any(says)));
            !before.is_empty()
        });
        successors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::KEY_LABEL_BYTES_MAX,
        name::key::KeyHalves,
        wire::acts::{KeyMinted, KeyReplaced},
        wire::signatures::{
            KeySignature,
            testing::{PRINTS, secret},
        },
    };

    const KEY: KeyPrint = PRINTS[1];
    const OTHER: KeyPrint = PRINTS[2];

    fn log(author: u8) -> LogId {
        LogId { author: NodeId([author; 32]), incarnation: 0 }
    }

    fn minted(key: KeyPrint, tier: Tier) -> KeyAct {
        labelled(key, tier, None)
    }

    /// Signed by nobody: that was looked at before.
    fn labelled(key: KeyPrint, tier: Tier, label: Option<String>) -> KeyAct {
        let halves = secret(key).expect("it is known").halves();
        of_halves(halves, tier, label)
    }

    fn of_halves(halves: KeyHalves, tier: Tier, label: Option<String>) -> KeyAct {
        let terms = KeyTerms { label, ..KeyTerms::of(tier) };
        KeyAct::Minted(KeyMinted { by: KeySignature { halves, signature: [0; 64] }, terms })
    }

    /// Author, place in its log, clock, what.
    type Said = (u8, u64, u64, KeyAct);

    fn learn(keys: &mut Keys, (author, seq, clock, act): Said) -> Option<KeyPrint> {
        let facts = Facts { clock, wall_ms: clock, kind: 35, visible: false };
        let entry = KeyEntry { of: Directories::Mesh, log: log(author), seq, facts };
        match keys.learn(entry, act) {
            Changed::Invalid(key) | Changed::Successor(key) => Some(key),
            Changed::Known(_) | Changed::Nothing => None,
        }
    }

    fn replaced(key: KeyPrint, successor: KeyPrint) -> KeyAct {
        let said = |key| {
            let halves = secret(key).expect("it is known").halves();
            KeySignature { halves, signature: [0; 64] }
        };
        KeyAct::Replaced(KeyReplaced { by: said(key), successor: said(successor), sealed: None })
    }

    /// All orders of so many things.
    fn orders(count: usize) -> Vec<Vec<usize>> {
        let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
        let mut all = Vec::new();
        for order in orders(last) {
            for place in 0..=last {
                let mut order = order.clone();
                order.insert(place, last);
                all.push(order);
            }
        }
        all
    }

    #[test]
    fn what_a_key_is_does_not_depend_on_the_order_in_which_it_is_learned() {
        let acts: [Said; 5] = [
            (1, 4, 7, minted(KEY, Tier::Low)),
            (2, 1, 3, minted(KEY, Tier::High)),
            (2, 2, 4, minted(KEY, Tier::Low)),
            (3, 1, 2, KeyAct::Revoked(OTHER)),
            (1, 5, 9, minted(OTHER, Tier::High)),
        ];
        for order in orders(acts.len()) {
            let mut keys = Keys::default();
            let told: Vec<KeyPrint> =
                order.iter().filter_map(|i| learn(&mut keys, acts[*i].clone())).collect();
            assert_eq!(told, [OTHER], "once");
            assert_eq!(keys.tier(KEY), Some(Tier::High), "the first by clock: {order:?}");
            assert_eq!(keys.tier(OTHER), None, "revoked, though minted later: {order:?}");
            assert_eq!(keys.tier_once(OTHER), Some(Tier::High));
            let views = keys.views();
            assert_eq!((views[0].node, views[0].revoked), (log(2).author, false));
            assert_eq!((views[1].node, views[1].revoked), (log(1).author, true));
        }
    }

    #[test]
    fn a_second_revocation_is_no_news() {
        let mut keys = Keys::default();
        learn(&mut keys, (1, 1, 1, minted(KEY, Tier::Low)));
        assert_eq!(learn(&mut keys, (1, 2, 2, KeyAct::Revoked(KEY))), Some(KEY));
        assert_eq!(learn(&mut keys, (2, 1, 3, KeyAct::Revoked(KEY))), None);
        assert_eq!(learn(&mut keys, (2, 2, 4, minted(KEY, Tier::Low))), None);
        assert_eq!(keys.tier(KEY), None, "minting again does not bring it back");
    }

    #[test]
    fn the_node_that_minted_a_key_says_what_replaces_it_in_whatever_order_that_is_learned() {
        const NEXT: KeyPrint = PRINTS[3];
        let acts: [Said; 5] = [
            (1, 1, 5, minted(KEY, Tier::Low)),
            (1, 2, 6, replaced(KEY, NEXT)),
            (2, 1, 7, minted(KEY, Tier::High)),
            (2, 2, 1, replaced(KEY, OTHER)),
            (1, 3, 8, minted(NEXT, Tier::High)),
        ];
        for order in orders(acts.len()) {
            let mut keys = Keys::default();
            for i in &order {
                learn(&mut keys, acts[*i].clone());
            }
            assert_eq!(keys.successor(KEY), Some(NEXT), "{order:?}");
            assert_eq!((keys.tier(KEY), keys.tier(NEXT)), (None, Some(Tier::High)));
            assert!(keys.is_revoked(KEY) && !keys.is_revoked(NEXT));
            assert_eq!((keys.current(KEY), keys.current(OTHER)), (NEXT, OTHER));
            assert_eq!((keys.line(NEXT), keys.line(OTHER)), (vec![NEXT, KEY], vec![OTHER]));
        }
    }

    #[test]
    fn a_key_that_nobody_minted_has_the_successor_that_was_named_first() {
        let acts: [Said; 3] = [
            (2, 2, 3, replaced(KEY, OTHER)),
            (1, 4, 2, replaced(KEY, PRINTS[3])),
            (1, 5, 1, replaced(KEY, PRINTS[4])),
        ];
        for order in orders(acts.len()) {
            let mut keys = Keys::default();
            order.iter().for_each(|i| {
                learn(&mut keys, acts[*i].clone());
            });
            assert_eq!(keys.current(KEY), PRINTS[3], "of one log the first counts: {order:?}");
            assert!(keys.forget(Directories::Mesh, EntryRef { log: log(1), seq: 4 }));
            assert_eq!(keys.current(KEY), OTHER, "that log was cut");
            assert!(keys.forget(Directories::Mesh, EntryRef { log: log(2), seq: 1 }));
            assert_eq!((keys.current(KEY), keys.is_revoked(KEY)), (KEY, false));
            assert_eq!((keys.knows(KEY), keys.predecessors.len()), (false, 0));
        }
    }

    #[test]
    fn lines_of_keys_end_whatever_members_write() {
        let mut keys = Keys::default();
        learn(&mut keys, (1, 1, 1, replaced(KEY, OTHER)));
        learn(&mut keys, (1, 2, 2, replaced(OTHER, KEY)));
        learn(&mut keys, (1, 3, 3, replaced(PRINTS[3], PRINTS[3])));
        assert!(keys.is_revoked(KEY) && keys.is_revoked(OTHER), "in a circle nobody has anything");
        assert!([KEY, OTHER].contains(&keys.current(KEY)));
        assert_eq!(keys.line(KEY), [KEY, OTHER]);
        assert!(!keys.is_revoked(PRINTS[3]), "no key replaces itself");
        let print = |nth: usize| KeyHalves { signer: [0; 32], mailbox: [nth as u8; 32] };
        for nth in 0..=2 * KEY_LINE_MAX {
            let said = |nth| KeySignature { halves: print(nth), signature: [0; 64] };
            let replaced = KeyReplaced { by: said(nth), successor: said(nth + 1), sealed: None };
            learn(&mut keys, (1, 10 + nth as u64, 10, KeyAct::Replaced(replaced)));
        }
        assert_eq!(keys.current(print(0).print()), print(KEY_LINE_MAX).print());
        assert_eq!(keys.line(print(2 * KEY_LINE_MAX).print()).len(), KEY_LINE_MAX);
    }

    #[test]
    fn what_a_forked_log_says_after_the_fork_does_not_count() {
        let mut keys = Keys::default();
        learn(&mut keys, (1, 3, 1, minted(KEY, Tier::Low)));
        learn(&mut keys, (2, 5, 2, minted(KEY, Tier::High)));
        learn(&mut keys, (1, 4, 3, KeyAct::Revoked(KEY)));
        learn(&mut keys, (1, 5, 4, minted(OTHER, Tier::High)));
        keys.forget(Directories::Mesh, EntryRef { log: log(1), seq: 4 });
        assert_eq!((keys.tier(KEY), keys.knows(OTHER)), (Some(Tier::Low), false));
        keys.forget(Directories::Mesh, EntryRef { log: log(1), seq: 3 });
        assert_eq!(keys.tier(KEY), Some(Tier::High));
        keys.forget(Directories::Node, EntryRef { log: log(2), seq: 1 });
        assert_eq!(keys.tier(KEY), Some(Tier::High), "of another directory");
    }

    #[test]
    fn the_meshs_word_counts_before_the_nodes_own() {
        let mut keys = Keys::default();
        let facts = Facts { clock: 1, wall_ms: 1, kind: 35, visible: false };
        let entry = KeyEntry { of: Directories::Node, log: log(1), seq: 1, facts };
        keys.learn(entry, minted(KEY, Tier::Low));
        assert!(
            keys.views()[0].local
                && keys.is_minted(KEY, Directories::Node)
                && !keys.is_minted(KEY, Directories::Mesh)
        );
        learn(&mut keys, (2, 1, 9, minted(KEY, Tier::High)));
        assert_eq!((keys.tier(KEY), keys.views()[0].local), (Some(Tier::High), false));
    }

    #[test]
    fn a_key_expires_by_the_terms_that_count_and_is_taken_once() {
        let mut keys = Keys::default();
        let expires = |at| match minted(KEY, Tier::Low) {
            KeyAct::Minted(KeyMinted { by, terms }) => {
                let terms = KeyTerms { expires_ms: Some(at), ..terms };
                KeyAct::Minted(KeyMinted { by, terms })
            }
            other @ (KeyAct::Revoked(_) | KeyAct::Shown(_) | KeyAct::Replaced(_)) => other,
        };
        for seq in 1..=9 {
            learn(&mut keys, (1, seq, seq, expires(100 + seq)));
        }
        assert_eq!(keys.expiring.len(), 1, "what its log says later does not count");
        learn(&mut keys, (2, 1, 0, expires(50)));
        assert!(!keys.some_expire(49) && keys.some_expire(50));
        assert_eq!(keys.take_expired(50), [KEY], "the first by clock counts");
        assert_eq!(keys.take_expired(1_000), [KEY], "and is over still");
        assert_eq!((keys.take_expired(1_000).len(), keys.expiring.len()), (0, 0));
    }

    #[test]
    fn a_label_that_no_node_would_write_makes_no_key() {
        let mut keys = Keys::default();
        let label = Some("x".repeat(KEY_LABEL_BYTES_MAX + 1));
        let act = labelled(KEY, Tier::Low, label);
        learn(&mut keys, (1, 1, 1, act));
        assert!(!keys.knows(KEY));
        let label = Some("x".repeat(KEY_LABEL_BYTES_MAX));
        let act = labelled(KEY, Tier::Low, label);
        learn(&mut keys, (1, 1, 1, act));
        assert!(keys.knows(KEY), "as long as any may be");
    }

    #[test]
    fn what_a_forked_log_said_before_the_fork_and_what_others_say_revokes() {
        let mut keys = Keys::default();
        learn(&mut keys, (1, 1, 1, minted(KEY, Tier::Low)));
        learn(&mut keys, (2, 5, 2, KeyAct::Revoked(KEY)));
        for (author, seq) in [(2, 6), (3, 1)] {
            keys.forget(Directories::Mesh, EntryRef { log: log(author), seq });
            assert_eq!(keys.tier(KEY), None, "it is revoked");
        }
        keys.forget(Directories::Mesh, EntryRef { log: log(2), seq: 5 });
        assert_eq!(keys.tier(KEY), Some(Tier::Low), "by nobody that counts");
    }

    #[test]
    fn so_many_keys_are_known_and_of_these_anything_more_is_learned() {
        let halves = |nth: usize| {
            let mut signer = [0; 32];
            signer[..8].copy_from_slice(&(nth as u64).to_be_bytes());
            KeyHalves { signer, mailbox: [0; 32] }
        };
        let print = |nth| halves(nth).print();
        let minted = |nth| of_halves(halves(nth), Tier::Low, None);
        let mut keys = Keys::default();
        for nth in 0..KEYS_MAX {
            let act = minted(nth);
            assert!(keys.has_room_for(&act), "{nth}");
            learn(&mut keys, (1, 1, 1, act));
        }
        assert_eq!(keys.places(), 0);
        assert!(!keys.has_room_for(&minted(KEYS_MAX)));
        assert!(!keys.has_room_for(&KeyAct::Revoked(print(KEYS_MAX))));
        assert!(keys.has_room_for(&KeyAct::Revoked(print(7))), "it can be revoked");
    }
}
