//! Keys of the file: which become keys of the mesh, and whose a room is.

use std::collections::BTreeMap;

use import::{BadRow, Key, hash_of};
use mesh::{
    acts::Tier,
    agenda::NewKey,
    id::{KeyPrint, RoomKey},
    limits::{KEY_LABEL_BYTES_MAX, KEYS_MAX},
};

use super::Refusals;

/// See the module.
#[derive(Debug)]
pub(super) struct Owners {
    own: KeyPrint,
    /// By whatever a room may name a key.
    known: BTreeMap<String, KeyPrint>,
    minted: Vec<(NewKey, Option<RoomKey>)>,
    hashed: usize,
    revoked: usize,
    /// Texts that could be hashes.
    doubtful: usize,
}

/// As SHA-256 is written, and as keys are that have 256 random bits.
fn is_64_hex_digits(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

impl Owners {
    /// `own_key`: the text of the node's own key. A server's key is in no table, and is the node's own if
    /// both have the same file.
    pub(super) fn new(own: KeyPrint, own_key: Option<&str>) -> Owners {
        let names = own_key.into_iter().flat_map(|text| [text.to_owned(), hash_of(text)]);
        let known = names.map(|name| (name, own)).collect();
        Owners { own, known, minted: Vec::new(), hashed: 0, revoked: 0, doubtful: 0 }
    }

    pub(super) fn add(&mut self, key: Key, refusals: &mut Refusals) {
        if key.revoked {
            self.revoked += 1;
            return;
        }
        let own = key.hash.as_ref().and_then(|hash| self.known.get(hash)).copied();
        let Some(text) = &key.text else {
            match own {
                Some(own) => self.known.extend(key.id.map(|id| (id, own))),
                None => self.hashed += 1,
            }
            return;
        };
        let print = KeyPrint::of(text);
        let names = [Some(text.clone()), Some(hash_of(text)), key.hash.clone(), key.id.clone()];
        self.known.extend(names.into_iter().flatten().map(|name| (name, print)));
        if print == self.own || self.minted.iter().any(|(it, _)| it.key == print) {
            return;
        }
        self.doubtful += usize::from(is_64_hex_digits(text));
        if let Some(new) = minted(&key, print, refusals) {
            self.minted.push((new, Some(RoomKey::of(text))));
        }
        if self.minted.len() == KEYS_MAX + 1 {
            refusals.add(format!("api_keys: a mesh has at most {KEYS_MAX} keys"));
        }
    }

    /// Whose it is, if that can be known.
    pub(super) fn find(&self, owner: &str) -> Option<KeyPrint> {
        self.known.get(owner).copied()
    }

    pub(super) fn minted(&mut self) -> Vec<(NewKey, Option<RoomKey>)> {
        std::mem::take(&mut self.minted)
    }

    /// What is not brought.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.hashed > 0 {
            notes.push(format!(
                "{} API keys are not brought: the file has only their hashes. Give their owners new ones: \
                 `clawmeshd keys mint`",
                self.hashed
            ));
        }
        if self.doubtful > 0 {
            notes.push(format!(
                "{} API keys have the form of hashes. If that is what the file keeps as keys, whoever has the file could                  use them: revoke them once the node runs (`clawmeshd keys list`, `clawmeshd keys revoke`)",
                self.doubtful
            ));
        }
        if self.revoked > 0 {
            notes.push(format!("{} API keys that were revoked are not brought", self.revoked));
        }
        notes
    }
}

fn minted(key: &Key, print: KeyPrint, refusals: &mut Refusals) -> Option<NewKey> {
    let shown = key.label.clone().unwrap_or_else(|| "without a label".to_owned());
    let mut refuse =
        |why: String| refusals.add(BadRow { table: "api_keys", id: shown.clone(), why });
    let tier = match key.tier.as_deref() {
        None | Some("free") => Tier::Free,
        Some("pro") => Tier::Pro,
        Some(other) => {
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
