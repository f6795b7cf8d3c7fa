//! Keys of the file: which become keys of the mesh, and whose a room, an agent id or a webhook is.

use std::collections::BTreeMap;

use import::{BadRow, Key};
use mesh::{
    acts::Tier,
    agenda::NewKey,
    id::{KeyPrint, RoomKey},
    limits::{KEY_LABEL_BYTES_MAX, KEYS_MAX},
};

use super::{Findings, Thing};

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    own: KeyPrint,
    /// By the key's text.
    known: BTreeMap<String, KeyPrint>,
    minted: Vec<(NewKey, Option<RoomKey>)>,
}

impl Owners {
    /// `of_this_node`: the texts of the node's own key, and of the server's, which is in no table and whose rooms, ids
    /// and webhooks become the node's own key's.
    pub(super) fn new<'k>(
        own: KeyPrint,
        of_this_node: impl IntoIterator<Item = &'k str>,
    ) -> Owners {
        let known = of_this_node.into_iter().map(|text| (text.to_owned(), own)).collect();
        Owners { own, known, minted: Vec::new() }
    }

    pub(super) fn add(&mut self, key: &Key, findings: &mut Findings) {
        if self.known.contains_key(&key.text) {
            return;
        }
        let print = KeyPrint::of(&key.text);
        if let Some(new) = minted(key, print, findings) {
            self.known.insert(key.text.clone(), print);
            self.minted.push((new, Some(RoomKey::of(&key.text))));
        }
        if self.minted.len() == KEYS_MAX + 1 {
            findings.refuse(format!("api_keys: a mesh has at most {KEYS_MAX} keys"));
        }
    }

    pub(super) fn own(&self) -> KeyPrint {
        self.own
    }

    /// Whose it is, if that can be known.
    pub(super) fn find(&self, owner: &str) -> Option<KeyPrint> {
        self.known.get(owner).copied()
    }

    pub(super) fn minted(&mut self) -> Vec<(NewKey, Option<RoomKey>)> {
        std::mem::take(&mut self.minted)
    }
}

fn minted(key: &Key, print: KeyPrint, findings: &mut Findings) -> Option<NewKey> {
    let shown = key.label.clone().unwrap_or_else(|| "without a label".to_owned());
    let mut refuse = |why: String| {
        findings.bad(Thing::Key, BadRow { table: "api_keys", id: shown.clone(), why });
    };
    let tier = match &*key.tier {
        "free" => Tier::Free,
        "pro" => Tier::Pro,
        other => {
            refuse(format!("its tier {other:?} is neither \"free\" nor \"pro\""));
            return None;
        }
    };
    if key.label.as_ref().is_some_and(|it| it.len() > KEY_LABEL_BYTES_MAX) {
        refuse(format!("its label may have {KEY_LABEL_BYTES_MAX} bytes"));
        return None;
    }
    Some(NewKey { key: print, tier, label: key.label.clone(), local: false })
}
