//! Accounts that were presented to this node: it keeps the texts of their mail. And the end of records whose time is over.

use super::{
    Records,
    contents::Name,
    shelves::{Shelf, Shelved},
    writing::Writing,
};
use crate::{
    api::{
        command::{Outcome, Refused},
        status::RecordStatus,
    },
    engine::known::Known,
    limits::{EXPIRED_AT_ONCE, EXPIRY_EVERY, PRESENTED_EVERY},
    name::{id::KeyPrint, key::KeySecret},
    records::{
        collection::Collection,
        finder::{MAILS, PRESENTED, presented_id},
        space::Sets,
    },
    wire::{
        cover::Cover,
        record::{Draft, RecordHead, RecordKey, Space, Stamp},
    },
};

impl Records {
    /// An account's key was shown to this node. Noted once a day.
    pub(crate) fn present(
        &mut self,
        known: &mut Known,
        account: &KeySecret,
    ) -> Result<Outcome, Refused> {
        let owner = account.print();
        let before = self.presented(owner).map_or(0, |head| head.stamp.wall_ms());
        let since = known.cx.now.wall_ms.saturating_sub(before);
        if u128::from(since) >= PRESENTED_EVERY.as_millis() {
            let by =
                Writing::of_account(account, &Cover::Open).within(Space::Node, Stamp::default());
            let (space, collection) = (Space::Node, PRESENTED.number);
            let (id, body) = (presented_id(owner), Some(Vec::new()));
            self.write(known, &by, vec![Draft { space, collection, id, body }.into()])?;
        }
        Ok(Outcome::Done)
    }

    fn presented(&self, owner: KeyPrint) -> Option<RecordHead> {
        let key = RecordKey { id: presented_id(owner), owner: Some(owner) };
        self.set(Space::Node, PRESENTED.number)?.head(key)
    }

    /// The place of a record's content. `None`: it is of a kind of which all are kept.
    pub(super) fn shelved(
        &self,
        kind: &Collection,
        head: &RecordHead,
        about: Option<KeyPrint>,
    ) -> Option<Shelved> {
        if kind.number != MAILS.number {
            return None;
        }
        let is_presented = |account: &KeyPrint| self.presented(*account).is_some();
        let shelf = if is_presented(&head.owner) {
            Shelf::Sent(head.owner)
        } else {
            about.filter(is_presented).map_or(Shelf::Carried, Shelf::Received)
        };
        Some(Shelved { shelf, stamp: head.stamp })
    }

    /// An account is one that was presented here, from now on or no more.
    pub(super) fn shelve_again(&mut self, known: &mut Known, account: KeyPrint) {
        let Some(set) = self.set(Space::Mesh, MAILS.number) else { return };
        let sent = set.live_of(account, &[]).map(|id| set.key(id, account));
        let received = self.about.records(account).into_iter();
        let received = received.filter(|(kind, _)| *kind == MAILS.number).map(|(_, key)| key);
        let heads = sent.chain(received).filter_map(|key| set.head(key));
        let moved: Vec<_> = heads
            .filter_map(|head| {
                let (collection, key) = (MAILS.number, set.key(head.id, head.owner));
                let at = self.shelved(&MAILS, &head, self.about.of(collection, key))?;
                Some((Name { space: Space::Mesh, collection, key }, at))
            })
            .collect();
        for (name, at) in moved {
            self.contents.move_to(known, name, at);
        }
    }

    /// For operators.
    pub(crate) fn status(&self) -> RecordStatus {
        let of_accounts = self.spaces.values().flat_map(Sets::iter).filter_map(|set| {
            let kind = set.collection();
            kind.family().map(|_| (kind.name, set.len()))
        });
        self.contents.status(of_accounts.collect())
    }

    /// At every tick: records whose time is over go, unless the clock has jumped.
    pub(crate) fn expire(&mut self, known: &mut Known, clock_is_sound: bool) {
        let now = known.cx.now;
        if now.mono < self.next_expiry || !clock_is_sound {
            return;
        }
        self.next_expiry = now.mono + EXPIRY_EVERY;
        let now = Stamp::at(now.wall_us);
        let ended: Vec<Name> = self
            .spaces
            .iter()
            .flat_map(|(space, sets)| sets.iter().map(move |set| (*space, set)))
            .filter(|(_, set)| set.collection().family().is_some_and(|it| it.kept.is_some()))
            .flat_map(|(space, set)| {
                let collection = set.collection().number;
                set.ended(now).map(move |key| Name { space, collection, key })
            })
            .take(EXPIRED_AT_ONCE)
            .collect();
        for name in ended {
            self.remove(known, name);
        }
    }
}
