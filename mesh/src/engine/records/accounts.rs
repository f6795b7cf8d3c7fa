//! Records of accounts: writing them, and the end of an account.

use std::collections::BTreeSet;

use super::{
    Name, Records,
    writing::{Unsigned, Writing},
};
use crate::{
    api::{
        account::{AccountRefused, RecordBound, RecordWrite, RecordWrites, Whose},
        command::{Outcome, Refused},
    },
    engine::{accounts::refuse, known::Known},
    limits::{FINDER_LETTERS_BYTES_MAX, RECORD_WRITES_BYTES_MAX, RECORD_WRITES_MAX},
    name::id::{KeyPrint, NodeId},
    records::{
        collection::{Collection, Merge},
        set::Set,
    },
    wire::{
        cover::Cover,
        record::{CollectionNumber, Draft, Space},
    },
};

impl Records {
    /// An account writes records, all of them or none.
    pub(crate) fn write_for(
        &mut self,
        known: &mut Known,
        writes: RecordWrites,
    ) -> Result<Outcome, Refused> {
        let RecordWrites { account, writes, above } = writes;
        let owner = account.print();
        let bytes: usize = writes.iter().flat_map(|write| &write.body).map(Vec::len).sum();
        if writes.len() > RECORD_WRITES_MAX || bytes > RECORD_WRITES_BYTES_MAX {
            return Err(refuse(AccountRefused::TooMuch));
        }
        let accounts = &known.directory.accounts;
        if accounts.has_ended(owner) {
            return Err(refuse(AccountRefused::Ended));
        }
        let answers = accounts.answers(owner).ok_or(refuse(AccountRefused::Unknown))?;
        self.check_writes(owner, &writes)?;
        Records::check_about(known, &writes)?;
        self.check_places(owner, answers, &writes)?;
        self.check_bytes(owner, &writes)?;
        if writes.iter().any(|write| write.apart.is_some()) {
            // The node that takes a text keeps it.
            self.present(known, &account)?;
        }
        let space = writes.first().map_or(Space::Mesh, |write| home(write.collection));
        let draft = |RecordWrite { collection, id, body, apart }: RecordWrite| Unsigned {
            draft: Draft { space, collection, id, body },
            apart,
        };
        let by = Writing::of_account(&account, &Cover::Open).within(space, above);
        let stamps = self.write(known, &by, writes.into_iter().map(draft).collect())?;
        Ok(Outcome::Stamps(stamps))
    }

    /// The texts of an account are bounded together.
    fn check_bytes(&self, owner: KeyPrint, writes: &[RecordWrite]) -> Result<(), Refused> {
        let new: usize = writes.iter().flat_map(|write| &write.apart).map(Vec::len).sum();
        let there = self.contents.bytes_of(Space::Mesh, owner);
        if new > 0 && there + new as u64 > FINDER_LETTERS_BYTES_MAX {
            return Err(refuse(AccountRefused::TooManyBytes(FINDER_LETTERS_BYTES_MAX)));
        }
        Ok(())
    }

    /// Each is of the form of its kind, and none is there twice or was deleted for ever.
    fn check_writes(&self, owner: KeyPrint, writes: &[RecordWrite]) -> Result<(), Refused> {
        let mut keys = BTreeSet::new();
        for RecordWrite { collection, id, body, apart } in writes {
            let kind = Collection::of(*collection).filter(|kind| kind.family().is_some());
            let apart_max = |kind: &Collection| body.as_ref().map_or(0, |_| kind.apart_bytes_max);
            let fits = |kind: &&Collection| {
                kind.fits(kind.home(), (*id, owner), body.as_deref())
                    && apart.as_ref().is_none_or(|apart| apart.len() <= apart_max(kind))
            };
            let kind = kind.filter(fits).ok_or(refuse(AccountRefused::Form))?;
            let ends = kind.founds() && body.is_none();
            let is_elsewhere = writes.first().is_some_and(|it| home(it.collection) != kind.home());
            if is_elsewhere || !keys.insert((*collection, *id)) || (ends && writes.len() > 1) {
                return Err(refuse(AccountRefused::Form));
            }
            let set = self.set(kind.home(), *collection);
            let head = set.and_then(|set| set.head(set.key(*id, owner)));
            if kind.merge == Merge::Final && head.is_some_and(|head| head.stamp.is_for_ever()) {
                return Err(refuse(AccountRefused::Deleted));
            }
        }
        Ok(())
    }

    /// None is about an account that has ended.
    fn check_about(known: &Known, writes: &[RecordWrite]) -> Result<(), Refused> {
        let mut about = writes
            .iter()
            .filter_map(|write| Collection::of(write.collection)?.about(write.body.as_deref()));
        if about.any(|account| known.directory.accounts.has_ended(account)) {
            return Err(refuse(AccountRefused::Ended));
        }
        Ok(())
    }

    fn check_places(
        &self,
        owner: KeyPrint,
        answers: NodeId,
        writes: &[RecordWrite],
    ) -> Result<(), Refused> {
        let kinds: BTreeSet<CollectionNumber> = writes.iter().map(|it| it.collection).collect();
        for number in kinds {
            let Some(set) = self.set(home(number), number) else { continue };
            let is_new = |write: &&RecordWrite| {
                write.collection == number && set.head(set.key(write.id, owner)).is_none()
            };
            let new = writes.iter().filter(is_new).count();
            if let Some((whose, max)) = bound(set, (owner, answers), new) {
                let bound = RecordBound { collection: Some(number), whose, max };
                return Err(refuse(AccountRefused::Full(bound)));
            }
        }
        Ok(())
    }

    /// An account has ended, as its own record says: no other record of it is kept, nor one that is about it.
    pub(super) fn end(&mut self, known: &mut Known, account: KeyPrint) {
        known.directory.accounts.set_ended(account, true);
        self.answered_by(known, account);
        for (collection, key) in self.about.records(account) {
            self.remove(known, Name { space: Space::Mesh, collection, key });
        }
    }

    pub(super) fn remove(&mut self, known: &mut Known, name: Name) {
        if let Some(set) = self.sets(name.space).get_mut(name.collection) {
            set.take_out(name.key);
        }
        self.forget(known, name);
        self.note_change(name.space);
    }
}

fn home(collection: CollectionNumber) -> Space {
    Collection::of(collection).map_or(Space::Mesh, Collection::home)
}

/// The bound that so many more records of an account would be over.
fn bound(set: &Set, (owner, answers): (KeyPrint, NodeId), new: usize) -> Option<(Whose, usize)> {
    let kind = set.collection();
    let all_max = kind.family()?.all_max;
    if new == 0 {
        None
    } else if set.count_of(owner) + new > kind.owner_max {
        Some((Whose::Account, kind.owner_max))
    } else if set.len() + new > all_max {
        Some((Whose::Mesh, all_max))
    } else if !set.has_room_at(answers, owner, new) {
        Some((Whose::Node, kind.node_max))
    } else {
        None
    }
}
