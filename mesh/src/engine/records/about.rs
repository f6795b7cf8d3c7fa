//! The accounts that records are about: a record goes with the one that it is about, as it goes with its owner.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    name::id::KeyPrint,
    wire::record::{CollectionNumber, RecordId, RecordKey},
};

/// A record of the mesh.
type Place = (CollectionNumber, RecordKey);

/// See the module. Of all records that are kept and are about somebody: some 200 bytes for each.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    of: BTreeMap<Place, KeyPrint>,
    records: BTreeSet<(KeyPrint, Place)>,
}

impl About {
    /// A record is about this account from now on, or about none.
    pub(super) fn set(&mut self, place: Place, account: Option<KeyPrint>) {
        let before = match account {
            Some(account) => self.of.insert(place, account),
            None => self.of.remove(&place),
        };
        if before == account {
            return;
        }
        if let Some(before) = before {
            self.records.remove(&(before, place));
        }
        self.records.extend(account.map(|account| (account, place)));
    }

    /// The account that a record is about.
    pub(super) fn of(&self, collection: CollectionNumber, key: RecordKey) -> Option<KeyPrint> {
        self.of.get(&(collection, key)).copied()
    }

    /// The records that are about an account.
    pub(super) fn records(&self, account: KeyPrint) -> Vec<Place> {
        let first = (CollectionNumber(0), RecordKey { id: RecordId([0; 16]), owner: None });
        let of_account = self.records.range((account, first)..);
        of_account.take_while(|(about, _)| *about == account).map(|(_, place)| *place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_about_the_account_that_its_last_state_names() {
        let place = |id: u8| {
            let key = RecordKey { id: RecordId([id; 16]), owner: Some(KeyPrint([1; 16])) };
            (CollectionNumber(34), key)
        };
        let [one, other] = [7, 8].map(|n| KeyPrint([n; 16]));
        let mut about = About::default();
        about.set(place(1), Some(one));
        about.set(place(2), Some(one));
        about.set(place(3), Some(other));
        assert_eq!(about.records(one), [place(1), place(2)]);
        about.set(place(1), Some(other));
        about.set(place(2), None);
        assert_eq!(about.records(one), []);
        assert_eq!(about.records(other), [place(1), place(3)]);
        about.set(place(9), None);
        assert_eq!((about.of.len(), about.records.len()), (2, 2));
    }
}
