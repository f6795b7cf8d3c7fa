//! What an account reads of its mail: subjects, which are kept in memory for a while, and texts, which are not.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use bridge::seam::call::GetContent;
use mesh::{
    name::id::KeyPrint,
    records::finder::{Correspondence, Envelope, MAILS, Mail},
    wire::record::RecordId,
};
use tokio::time::sleep;

use crate::{
    caller::Caller,
    index::Letter,
    limits::{LOOK_EVERY, READERS_FOR, READERS_MAX, TEXT_WITHIN},
    problem::{Answer, Problem},
    registry::Registry,
};

/// A mail with its envelope. `None`: it does not open, as its sender has sealed something else.
pub(crate) type Opened = (Letter, Option<Arc<Envelope>>);

/// The envelopes that an account has opened.
struct Reader {
    last: Instant,
    envelopes: HashMap<RecordId, Option<Arc<Envelope>>>,
}

/// Of all accounts that have asked of late.
#[derive(Default)]
pub(crate) struct Readers(Mutex<HashMap<KeyPrint, Reader>>);

impl Readers {
    fn with<T>(&self, account: KeyPrint, act: impl FnOnce(&mut Reader) -> T) -> T {
        let now = Instant::now();
        let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.contains_key(&account) {
            readers.retain(|_, reader| now.duration_since(reader.last) < READERS_FOR);
            if readers.len() >= READERS_MAX {
                let oldest = readers.iter().min_by_key(|(_, reader)| reader.last);
                let oldest = oldest.map(|(print, _)| *print);
                oldest.and_then(|print| readers.remove(&print));
            }
        }
        let new = || Reader { last: now, envelopes: HashMap::new() };
        let reader = readers.entry(account).or_insert_with(new);
        reader.last = now;
        act(reader)
    }
}

/// As it may be shown: what another node has sealed was not judged by this one.
fn shown(mut envelope: Envelope) -> Arc<Envelope> {
    if envelope.subject.chars().any(char::is_control) {
        envelope.subject = envelope.subject.replace(char::is_control, "?");
    }
    Arc::new(envelope)
}

/// The other account of a mail.
pub(crate) fn other(own: KeyPrint, letter: &Letter) -> KeyPrint {
    if letter.from == own { letter.to } else { letter.from }
}

impl Registry {
    /// All that an account seals for another one, and opens. `None`: nobody here knows the other's mailbox.
    pub(crate) fn between(&self, own: &Caller, other: KeyPrint) -> Option<Correspondence> {
        let theirs = self.index().account(other)?.halves.mailbox;
        Correspondence::of(self.settings.mesh, own.secret.mailbox().ok()?, &theirs)
    }

    /// Opens the envelopes of mails of an account.
    pub(crate) async fn open(&self, own: &Caller, letters: Vec<Letter>) -> Answer<Vec<Opened>> {
        let missing: Vec<Letter> = self.readers.with(own.print, |reader| {
            let is_new = |letter: &&Letter| !reader.envelopes.contains_key(&letter.id);
            letters.iter().filter(is_new).copied().collect()
        });
        let keys = missing.iter().map(|letter| (letter.id, letter.from)).collect();
        let records = self.records(MAILS.number, keys).await?;
        let mut others: HashMap<KeyPrint, Option<Correspondence>> = HashMap::new();
        let mut found = Vec::with_capacity(records.len());
        for record in records {
            let Some(mail) = record.body.as_deref().and_then(Mail::decode) else { continue };
            let with = if record.owner == own.print { mail.to } else { record.owner };
            let both = others.entry(with).or_insert_with(|| self.between(own, with));
            let Some(both) = both else { continue };
            found.push((record.id, both.open(record.owner, &mail).map(shown)));
        }
        Ok(self.readers.with(own.print, |reader| {
            reader.envelopes.extend(found);
            let opened = letters.into_iter().map(|letter| {
                (letter, reader.envelopes.get(&letter.id).cloned().unwrap_or_default())
            });
            opened.collect()
        }))
    }

    /// The text of a mail. One that is not here is waited for.
    ///
    /// # Errors
    /// No connected node has it. Or it does not open: then its sender has sealed something else.
    pub(crate) async fn text(&self, own: &Caller, letter: &Letter) -> Answer<String> {
        let damaged = || Problem::missing("this message is damaged: its sender sealed no text");
        if letter.bytes == 0 {
            // No other node has one, either.
            return Err(damaged());
        }
        let began = Instant::now();
        let get = GetContent { collection: MAILS.number, id: letter.id, owner: letter.from };
        let sealed = loop {
            let found = self.desk.ask(self.visitor(), get).await?;
            if let Some(sealed) = found {
                break sealed;
            }
            if began.elapsed() >= TEXT_WITHIN {
                return Err(Problem::unavailable(
                    "the node that has this message is not connected; try again later",
                ));
            }
            sleep(LOOK_EVERY).await;
        };
        let both = self.between(own, other(own.print, letter));
        let ends = (letter.from, letter.to);
        let text = both.and_then(|both| both.open_text(ends, letter.id, &sealed));
        text.ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_so_many_accounts_are_kept_those_that_asked_last() {
        let readers = Readers::default();
        let account = |n: usize| {
            let mut print = [0; 16];
            print[..8].copy_from_slice(&n.to_be_bytes());
            KeyPrint(print)
        };
        let kept = |n| readers.with(account(n), |reader| reader.envelopes.len());
        for n in 0..READERS_MAX + 7 {
            readers.with(account(n), |reader| reader.envelopes.insert(RecordId([1; 16]), None));
        }
        assert_eq!(readers.0.lock().map(|all| all.len()).ok(), Some(READERS_MAX));
        assert_eq!((kept(READERS_MAX + 6), kept(0)), (1, 0));
    }
}
