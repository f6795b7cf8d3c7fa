//! The mail that this node knows of: whose it is, and how far it has come. Subjects and texts are sealed, and not here.

use std::collections::{BTreeSet, HashMap, VecDeque};

use mesh::{
    api::account::RecordView,
    name::id::KeyPrint,
    records::finder::{DELIVERED, Delivered, MAILS, MARKS, Mail, Mark},
    wire::record::{RecordId, Stamp},
};

use crate::limits::ORPHANS_MAX;

/// A mail, as all nodes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) id: RecordId,
    pub(crate) from: KeyPrint,
    pub(crate) to: KeyPrint,
    pub(crate) created: Stamp,
    /// Of its text, sealed.
    pub(crate) bytes: u32,
}

/// Mail in the order in which it was written.
type Shelf = BTreeSet<(Stamp, RecordId)>;

/// See the module. A mail takes some 250 bytes.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    all: HashMap<RecordId, Letter>,
    received: HashMap<KeyPrint, Shelf>,
    sent: HashMap<KeyPrint, Shelf>,
    /// By mail and by the account that says so: its recipient's word counts.
    read: HashMap<(RecordId, KeyPrint), bool>,
    delivered: HashMap<(RecordId, KeyPrint), u64>,
    /// The records in which accounts say so, which are named again when they are gone.
    words: HashMap<RecordId, RecordId>,
    /// Mail that went before it was read: the newest.
    orphans: VecDeque<Letter>,
}

impl Letters {
    /// A record is there, or has another state, or is gone. Whether it is one of mail.
    pub(crate) fn take(&mut self, record: &RecordView) -> bool {
        let number = record.collection;
        if number == MAILS.number {
            self.take_mail(record);
        } else if number == MARKS.number {
            let mark = record.body.as_deref().and_then(Mark::decode);
            let mail = self.word(record, mark.map(|mark| mark.mail));
            match (mark, mail) {
                (Some(mark), _) => drop(self.read.insert((mark.mail, record.owner), mark.is_read)),
                // Those that go with their mail are asked for once more: whether it was read.
                (None, Some(mail)) if !self.all.contains_key(&mail) => {
                    self.read.remove(&(mail, record.owner));
                }
                (None, Some(_) | None) => {}
            }
        } else if number == DELIVERED.number {
            let word = record.body.as_deref().and_then(Delivered::decode);
            let mail = self.word(record, word.map(|word| word.mail));
            match (word, mail) {
                (Some(word), _) => {
                    self.delivered.insert((word.mail, record.owner), word.wall_ms);
                }
                (None, Some(mail)) if !self.all.contains_key(&mail) => {
                    self.delivered.remove(&(mail, record.owner));
                }
                (None, Some(_) | None) => {}
            }
        } else {
            return false;
        }
        true
    }

    /// The mail that a record named until now, if it is another one, or none, from now on.
    fn word(&mut self, record: &RecordView, mail: Option<RecordId>) -> Option<RecordId> {
        match mail {
            Some(mail) => self.words.insert(record.id, mail),
            None => self.words.remove(&record.id),
        }
    }

    fn take_mail(&mut self, record: &RecordView) {
        self.forget(record.id, record.is_gone());
        let Some(mail) = record.body.as_deref().and_then(Mail::decode) else { return };
        let letter = Letter {
            id: record.id,
            from: record.owner,
            to: mail.to,
            created: record.stamp,
            bytes: record.apart_bytes,
        };
        self.received.entry(letter.to).or_default().insert((letter.created, letter.id));
        self.sent.entry(letter.from).or_default().insert((letter.created, letter.id));
        self.all.insert(letter.id, letter);
    }

    fn forget(&mut self, id: RecordId, is_gone: bool) {
        let Some(letter) = self.all.remove(&id) else { return };
        for (shelves, owner) in [(&mut self.received, letter.to), (&mut self.sent, letter.from)] {
            if let Some(shelf) = shelves.get_mut(&owner) {
                shelf.remove(&(letter.created, id));
                if shelf.is_empty() {
                    shelves.remove(&owner);
                }
            }
        }
        if !is_gone {
            return;
        }
        if !self.is_read(&letter) {
            self.orphans.push_back(letter);
            if self.orphans.len() > ORPHANS_MAX {
                self.orphans.pop_front();
            }
        }
        self.read.remove(&(id, letter.to));
        self.delivered.remove(&(id, letter.to));
    }

    pub(crate) fn get(&self, id: RecordId) -> Option<Letter> {
        self.all.get(&id).copied()
    }

    /// Mail for an account, the oldest first.
    pub(crate) fn received(&self, by: KeyPrint) -> impl DoubleEndedIterator<Item = Letter> {
        self.on(self.received.get(&by))
    }

    /// Mail of an account, the oldest first.
    pub(crate) fn sent(&self, by: KeyPrint) -> impl DoubleEndedIterator<Item = Letter> {
        self.on(self.sent.get(&by))
    }

    fn on<'a>(
        &'a self,
        shelf: Option<&'a Shelf>,
    ) -> impl DoubleEndedIterator<Item = Letter> + use<'a> {
        let all = shelf.into_iter().flatten();
        all.filter_map(|(_, id)| self.get(*id))
    }

    /// Whether its recipient says that it is read.
    pub(crate) fn is_read(&self, letter: &Letter) -> bool {
        self.read.get(&(letter.id, letter.to)).copied().unwrap_or_default()
    }

    /// When its recipient says that it was shown, in milliseconds since 1970.
    pub(crate) fn delivered(&self, letter: &Letter) -> Option<u64> {
        self.delivered.get(&(letter.id, letter.to)).copied()
    }

    /// Mail that an account has sent, and that went before it was read. Told once.
    pub(crate) fn take_orphans(
        &mut self,
        of: KeyPrint,
        tell: impl Fn(KeyPrint) -> bool,
    ) -> Vec<Letter> {
        let is_told = |letter: &Letter| letter.from == of && tell(letter.to);
        let told = self.orphans.iter().filter(|letter| is_told(letter)).copied().collect();
        self.orphans.retain(|letter| !is_told(letter));
        told
    }

    /// Whether an account may have some that went before it was read.
    pub(crate) fn has_orphans(&self, of: KeyPrint) -> bool {
        self.orphans.iter().any(|letter| letter.from == of)
    }
}
