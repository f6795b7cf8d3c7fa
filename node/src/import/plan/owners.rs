//! Keys of the file: which become keys of the mesh, and whose a room, an agent id or a webhook is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use import::Key;
use mesh::{
    limits::{KEY_LABEL_BYTES_MAX, KEYS_MAX},
    name::{
        id::{KeyPrint, RoomKey},
        key::{KeySecret, ShortKey},
    },
    wire::acts::Tier,
};

use super::{
    PlannedKey,
    findings::Findings,
    ledger::{Named, Thing},
    texts::cut,
};
use crate::import::choices::{Choices, OwnKeys};

/// A key that something is of.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) print: KeyPrint,
    /// Signs for it; `None`: of a node that checks no keys.
    pub(super) secret: Option<Arc<KeySecret>>,
}

impl Owner {
    fn of(text: &str) -> Owner {
        let secret = Arc::new(KeySecret::of(text));
        Owner { print: secret.print(), secret: Some(secret) }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    pub(super) choices: Choices,
    /// By the key's text.
    known: BTreeMap<String, Owner>,
    /// The node's own key; `None`: it checks none.
    own: Option<Arc<KeySecret>>,
    /// Those that become keys of the mesh.
    minted: BTreeSet<KeyPrint>,
}

impl Owners {
    /// `of_this_node`: the texts of the node's own key, and of the server's, which is in no table
    /// and whose rooms, ids and webhooks become the node's own key's.
    pub(super) fn new(choices: Choices, of_this_node: OwnKeys<'_>) -> Owners {
        let own = of_this_node.node.map(|text| Arc::new(KeySecret::of(text)));
        let owner = Owner { print: choices.own, secret: own.clone() };
        let texts = [of_this_node.node, of_this_node.server].into_iter().flatten();
        let known = texts.map(|text| (text.to_owned(), owner.clone())).collect();
        Owners { choices, known, own, minted: BTreeSet::new() }
    }

    /// Takes the keys of the file. One that is this node's own, too, comes as any other: it is to
    /// be let in at all nodes.
    pub(super) fn mint(&mut self, keys: Vec<Key>, findings: &mut Findings) -> Vec<PlannedKey> {
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
            let owner = Owner::of(&key.text);
            let Some(secret) = owner.secret.clone().filter(|secret| secret.check().is_ok()) else {
                let advice = "give its agents another one at the server first, or leave it out with --skip-refused";
                findings.row_or((Thing::Key, "api_keys", shown), ShortKey, advice);
                continue;
            };
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
            let print = owner.print;
            if print == self.choices.own {
                own.add(shown);
            }
            self.known.insert(key.text.clone(), owner);
            self.minted.insert(print);
            let opener = Some(RoomKey::of(&key.text));
            minted.push(PlannedKey { secret, tier, label, opener });
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
        self.known.get(owner).map(|owner| owner.print)
    }

    /// The same, with the secret that signs.
    pub(super) fn signer(&self, owner: &str) -> Option<Owner> {
        self.known.get(owner).cloned()
    }

    /// The key of an id that is nobody's who is known: the node's own, or the one that it says.
    pub(super) fn stranger(&self, owner: &str) -> Owner {
        if self.choices.private_to_own_key {
            Owner { print: self.choices.own, secret: self.own.clone() }
        } else {
            Owner::of(owner)
        }
    }

    /// Whether it becomes a key of the mesh, whose private rooms span it.
    pub(super) fn is_minted(&self, key: KeyPrint) -> bool {
        self.minted.contains(&key)
    }
}
