//! Writing words about members of rooms.

use std::collections::BTreeSet;

use super::{
    Records,
    writing::{Shelf, Writing, place_in},
};
use crate::{
    api::command::Refused,
    engine::known::Known,
    name::{
        id::{KeyPrint, RoomId},
        key::KeySecret,
    },
    records::{
        members::{Word, draft, removal},
        place::RoomPlace,
    },
    wire::record::Draft,
};

/// The key that says something of a room's members.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Sayer<'s> {
    pub(in crate::engine) room: RoomId,
    pub(in crate::engine) key: KeyPrint,
    pub(in crate::engine) signer: Option<&'s KeySecret>,
    /// The key that made the room: what is said is later than all that it has said.
    pub(in crate::engine) maker: KeyPrint,
}

impl Records {
    /// All of these words, or none.
    pub(in crate::engine) fn say_of_members(
        &mut self,
        known: &mut Known,
        by: Sayer<'_>,
        words: &[Word],
    ) -> Result<(), Refused> {
        self.write_members(known, by, |at| words.iter().map(|word| draft(at, word)).collect())
    }

    /// An agent is on no list any more.
    pub(in crate::engine) fn remove_member(
        &mut self,
        known: &mut Known,
        by: Sayer<'_>,
        agent: &str,
    ) -> Result<(), Refused> {
        self.write_members(known, by, |at| vec![removal(at, agent)])
    }

    fn write_members(
        &mut self,
        known: &mut Known,
        by: Sayer<'_>,
        drafts: impl FnOnce(&RoomPlace) -> Vec<Draft>,
    ) -> Result<(), Refused> {
        let Sayer { room, key, signer, maker } = by;
        let shelf = Shelf { at: place_in(known, room)?, keys: BTreeSet::from([maker]) };
        let unsigned = drafts(&shelf.at).into_iter().map(Into::into).collect();
        self.write(known, &Writing::of_room(key, signer, &shelf), unsigned)?;
        Ok(())
    }
}
