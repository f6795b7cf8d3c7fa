//! What a node of a small world has made durable and said, as far as promises are about it: they are judged by the
//! checkers of [simulated worlds](crate::sim), and know nothing of how it came about.

use std::collections::{BTreeMap, BTreeSet};

use mesh::{
    api::{
        batch::{Change, Fate},
        command::SaidOk,
        event::Delivered,
    },
    name::{
        id::{LocalRef, LogId, LogIx, MessageId, RoomId},
        number::{Era, Number},
    },
};

use crate::sim::promises::{Broken, Entry, broken};

/// A number, as a node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) entry: Entry,
    pub(super) fate: Fate,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    logs: BTreeMap<(RoomId, LogIx), LogId>,
    /// Visible entries that it has.
    pub(super) held: BTreeSet<(RoomId, Entry)>,
    pub(super) names: BTreeMap<(RoomId, Number), Named>,
    /// Numbers under which it has delivered, in the order in which it did.
    tips: BTreeMap<RoomId, Number>,
    /// Entries that were delivered.
    pub(super) delivered: BTreeMap<(RoomId, Entry), Number>,
    /// An era above the home era is known here; a handover is.
    pub(super) took_over: bool,
    pub(super) handed_over: bool,
    /// Messages that were answered `ok`.
    pub(super) answered: BTreeSet<(RoomId, Entry, Number)>,
}

impl Facts {
    /// A batch is durable. *rising*, and one entry for each number, as far as one node can tell.
    pub(super) fn stored(&mut self, batch: &[Change]) -> Result<(), Broken> {
        for change in batch {
            if let Change::Log { room, log, record } = change {
                self.logs.insert((*room, *log), record.id);
            }
        }
        for change in batch {
            if let Change::Entry { room, at, entry } = change {
                if entry.facts.visible {
                    let entry = self.entry(*room, *at)?;
                    self.held.insert((*room, entry));
                }
            } else if let Change::Era { era, record, .. } = change {
                self.took_over |= *era != Era::HOME;
                self.handed_over |= record.by().is_some();
            } else if let Change::Number { room, number, at, fate } = change {
                let entry = self.entry(*room, *at)?;
                self.numbered(*room, *number, Named { entry, fate: *fate })?;
            }
        }
        Ok(())
    }

    fn numbered(&mut self, room: RoomId, number: Number, named: Named) -> Result<(), Broken> {
        let Named { entry, fate } = named;
        if let Some(before) = self.names.insert((room, number), named)
            && before.entry != entry
        {
            let what = format!("{number:?} of room {room} means {:?} and {entry:?}", before.entry);
            return broken("names", what);
        }
        match fate {
            Fate::Assigned | Fate::Hole => Ok(()),
            Fate::Delivered => {
                let tip = self.tips.entry(room).or_default();
                if number <= *tip {
                    return broken("rising", format!("{number:?} after {tip:?}"));
                }
                *tip = number;
                match self.delivered.insert((room, entry), number) {
                    None => Ok(()),
                    Some(before) => {
                        let what = format!("{entry:?} delivered as {before:?} and as {number:?}");
                        broken("rising", what)
                    }
                }
            }
        }
    }

    /// *acknowledged survives*: what is answered is durable and delivered, at this node.
    pub(super) fn answered(&mut self, room: RoomId, said: &SaidOk) -> Result<(), Broken> {
        let entry = self.names.get(&(room, said.number)).map(|named| named.entry);
        let entry = entry.filter(|(log, seq)| {
            self.held.contains(&(room, (*log, *seq)))
                && MessageId::new(room, *log, *seq) == said.message
        });
        let Some(entry) = entry else {
            let what = format!("{said:?} was answered and is not in the store");
            return broken("acknowledged survives", what);
        };
        self.answered.insert((room, entry, said.number));
        Ok(())
    }

    /// Members are told what is in the delivery log, and nothing else.
    pub(super) fn told(&self, room: RoomId, message: &Delivered) -> Result<(), Broken> {
        let entry = (message.log, message.at.seq);
        if self.delivered.get(&(room, entry)) == Some(&message.number) {
            return Ok(());
        }
        broken("rising", format!("{entry:?} is told as {:?} and not durable", message.number))
    }

    /// The entry of a reference that only its node understands.
    fn entry(&self, room: RoomId, at: LocalRef) -> Result<Entry, Broken> {
        match self.logs.get(&(room, at.log)) {
            Some(log) => Ok((*log, at.seq)),
            None => broken("store", format!("a row of a log of which there is no record: {at:?}")),
        }
    }
}
