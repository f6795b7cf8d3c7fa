//! API keys that the directories name: keys of the mesh, and keys of this node alone. A fold that does not depend on
//! the order in which entries came: a key that was revoked anywhere stays so, whatever was minted before or after.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    api::agenda::KeyView,
    limits::KEYS_MAX,
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

#[derive(Debug)]
struct Minted {
    clock: u64,
    seq: u64,
    wall_ms: u64,
    terms: KeyTerms,
}

/// The acts of one key. Of each log the first act of a kind is enough: if the log is found forked before it, all
/// later ones are void, too.
#[derive(Debug, Default)]
struct Known {
    minted: BTreeMap<Author, Minted>,
    revoked: BTreeMap<Author, u64>,
}

impl Known {
    /// Of several the first by position counts.
    fn first(&self) -> Option<(&Author, &Minted)> {
        self.minted.iter().min_by_key(|(author, minted)| (author.of, minted.clock, author.log))
    }

    fn is_minted(&self, of: Directories) -> bool {
        self.minted.keys().any(|author| author.of == of)
    }

    fn is_valid(&self) -> bool {
        self.revoked.is_empty()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: BTreeMap<KeyPrint, Known>,
    /// Keys that expire, by that time; not those of which it was said that they did.
    expiring: BTreeSet<(u64, KeyPrint)>,
}

impl Keys {
    /// Takes in an act. Returns the key that it makes invalid, if it was valid or not known before.
    pub(crate) fn learn(&mut self, entry: KeyEntry, act: KeyAct) -> Option<KeyPrint> {
        let KeyEntry { of, log, seq, facts } = entry;
        let author = Author { of, log };
        match act {
            KeyAct::Minted(minted) => {
                let key = minted.key();
                let terms = minted.terms;
                if terms.check().is_err() {
                    return None;
                }
                let minted = &mut self.known.entry(key).or_default().minted;
                if minted.get(&author).is_none_or(|known| seq < known.seq) {
                    // Of those that count alone: else a log that says it again and again would fill memory.
                    self.expiring.extend(terms.expires_ms.map(|at| (at, key)));
                    let (clock, wall_ms) = (facts.clock, facts.wall_ms);
                    minted.insert(author, Minted { clock, seq, wall_ms, terms });
                }
                None
            }
            KeyAct::Revoked(key) => {
                let revoked = &mut self.known.entry(key).or_default().revoked;
                let first = revoked.is_empty();
                let at = revoked.entry(author).or_insert(seq);
                *at = seq.min(*at);
                first.then_some(key)
            }
            // Vouchers are folded elsewhere: they make no key valid.
            KeyAct::Shown(_) => None,
        }
    }

    /// The terms of a key that was not revoked.
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

    /// Whether it was revoked, anywhere.
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
                revoked: !known.is_valid(),
                local: author.of == Directories::Node,
            })
        };
        let mut views: Vec<KeyView> = self.known.iter().filter_map(view).collect();
        views.sort_by_key(|view| (view.minted_ms, view.key));
        views
    }

    /// Nothing counts that a log says in these directories, `from` an entry on.
    pub(crate) fn forget(&mut self, of: Directories, from: EntryRef) {
        let author = Author { of, log: from.log };
        for known in self.known.values_mut() {
            known.minted.retain(|by, minted| *by != author || minted.seq < from.seq);
            known.revoked.retain(|by, at| *by != author || *at < from.seq);
        }
        self.known.retain(|_, known| !(known.minted.is_empty() && known.revoked.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::KEY_LABEL_BYTES_MAX,
        name::key::KeyHalves,
        wire::acts::KeyMinted,
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
        keys.learn(KeyEntry { of: Directories::Mesh, log: log(author), seq, facts }, act)
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
            other @ (KeyAct::Revoked(_) | KeyAct::Shown(_)) => other,
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
