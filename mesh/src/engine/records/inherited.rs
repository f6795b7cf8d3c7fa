//! Records of a key that was replaced, signed anew by its successor: in the moment of the succession, so that a thief of the old
//! key does not decide later what the successor says.

use super::{
    Records,
    writing::{Unsigned, Writing},
};
use crate::{
    api::command::{Inherited, Outcome, Refused, SignAnew},
    engine::known::Known,
    name::id::KeyPrint,
    records::collection::Collection,
    wire::{
        cover::{ApartName, Cover},
        record::{Draft, RecordId},
    },
};

impl Records {
    /// Writes them for the successor, those that it has not written itself: its own word is later.
    pub(crate) fn sign_anew(
        &mut self,
        known: &mut Known,
        anew: SignAnew,
    ) -> Result<Outcome, Refused> {
        let SignAnew { replaced, signer, records } = anew;
        let key = signer.print();
        if replaced == key || known.directory.current(replaced) != key {
            return Err(Refused::NotYours);
        }
        let (mut signed, mut left) = (0, 0);
        for inherited in records {
            let id = named(&inherited, key);
            let Inherited { space, collection, cover, body, bytes, above, .. } = inherited;
            let own = self.set(space, collection).and_then(|set| set.head(set.key(id, key)));
            if own.is_some() {
                continue;
            }
            let name = ApartName { collection, owner: key, id };
            let apart = bytes.map(|bytes| cover.write_apart(&name, bytes));
            let draft = Draft { space, collection, id, body };
            let by = Writing::of_successor(&signer, space, &cover, above);
            match self.write(known, &by, vec![Unsigned { draft, apart }]) {
                Ok(_) => signed += 1,
                Err(_) => left += 1,
            }
        }
        Ok(Outcome::SignedAnew { signed, left })
    }
}

/// The id of the same thing, of another owner.
fn named(inherited: &Inherited, key: KeyPrint) -> RecordId {
    let Inherited { collection, id, body, cover, .. } = inherited;
    let open = matches!(cover, Cover::Open);
    let kind = Collection::of(*collection).filter(|_| open);
    let content = body.as_deref();
    content.and_then(|content| kind?.id_of(content, key)).unwrap_or(*id)
}
