//! Keys of the file: which become keys of the mesh, and whose a room, an agent id or a webhook is.

use std::collections::{BTreeMap, BTreeSet};

use import::Key;
use mesh::{
    api::agenda::NewKey,
    limits::{KEY_LABEL_BYTES_MAX, KEYS_MAX},
    name::id::{KeyPrint, RoomKey},
    wire::acts::Tier,
};

use super::{
    findings::Findings,
    ledger::{Named, Thing},
    texts::cut,
};
use crate::import::choices::{Choices, OwnKeys};

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    pub(super) choices: Choices,
    /// By the key's text.
    known: BTreeMap<String, KeyPrint>,
    /// Those that become keys of the mesh.
    minted: BTreeSet<KeyPrint>,
}

impl Owners {
    /// `of_this_node`: the texts of the node's own key, and of the server's, which is in no table
    /// and whose rooms, ids and webhooks become the node's own key's.
    pub(super) fn new(choices: Choices, of_this_node: OwnKeys<'_>) -> Owners {
        let texts = [of_this_node.node, of_this_node.server].into_iter().flatten();
        let known = texts.map(|text| (text.to_owned(), choices.own)).collect();
        Owners { choices, known, minted: BTreeSet::new() }
    }

    /// Takes the keys of the file. One that is this node's own, too, comes as any other: it is to
    /// be let in at all nodes.
    pub(super) fn mint(
        &mut self,
        keys: Vec<Key>,
        findings: &mut Findings,
    ) -> Vec<(NewKey, Option<RoomKey>)> {
        let mut minted = Vec::new();
        let [mut cut_short, mut other_tier, mut own] = [(); 3].map(|()| Named::default());
        for key in keys {
            let shown = key.label.as_deref().unwrap_or("without a label");
            if key.text.is_empty() {
                findings.ledger.leave(Thing::Key, "nobody can name an empty one", Some(shown));
                continue;
            }
            if minted.len() >= KEYS_MAX {
                let why = format!("a mesh has at most {KEYS_MAX} keys");
                findings.row((Thing::Key, "api_keys", shown), why);
                continue;
            }
            let tier = match &*key.tier {
                "free" => Tier::Low,
                "pro" => Tier::High,
                other => {
                    other_tier.change(&format!("{shown:?} ({other:?})"), "free");
                    Tier::Low
                }
            };
            let label = key.label.as_deref().map(|label| cut(label, KEY_LABEL_BYTES_MAX));
            if label != key.label {
                cut_short.add(shown);
            }
            let print = KeyPrint::of(&key.text);
            if print == self.choices.own {
                own.add(shown);
            }
            self.known.insert(key.text.clone(), print);
            self.minted.insert(print);
            let new = NewKey { key: print, tier, label, local: false };
            minted.push((new, Some(RoomKey::of(&key.text))));
        }
        let ledger = &mut findings.ledger;
        ledger.note_named("keys have a tier that is none, and get another", &other_tier);
        let what =
            format!("keys have a label of more than {KEY_LABEL_BYTES_MAX} bytes, which is cut");
        ledger.note_named(&what, &cut_short);
        ledger.note_named("keys are this node's own and become keys of the mesh, too", &own);
        minted
    }

    /// Whose it is, if that can be known.
    pub(super) fn find(&self, owner: &str) -> Option<KeyPrint> {
        self.known.get(owner).copied()
    }

    /// Whether it becomes a key of the mesh, whose private rooms span it.
    pub(super) fn is_minted(&self, key: KeyPrint) -> bool {
        self.minted.contains(&key)
    }
}
