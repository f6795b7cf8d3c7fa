//! Copies of messages: questions to peers, and answers to theirs. Nothing is said of a message that is not on the disk.

use mesh::{
    name::{
        id::{LocalRef, RoomId},
        number::Number,
    },
    wire::{
        copies::{Copied, CopyOf, mark},
        message::Message,
    },
};

use crate::{error::ReadError, reader::Reader, schema::Numbers, view::View};

/// A message that a peer asks about, as it is here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// It is on the disk, with its whole body and the number.
    pub held: bool,
    /// The number that it was delivered under here.
    pub delivered: Option<Number>,
}

/// The question for copies of these messages (`Effect::AskCopies`), ready to be sent, with those whose whole bodies are
/// here. `None`: none is.
///
/// # Errors
///
/// See [`ReadError`].
pub fn ask(reader: &Reader, room: RoomId, copies: &[CopyOf]) -> Result<Option<Message>, ReadError> {
    let Some(view) = reader.view(room)? else { return Ok(None) };
    let mut found = Vec::new();
    for copy in copies {
        let CopyOf { place, number } = *copy;
        let here = here(&view, copy)?.filter(|here| here.is_whole);
        found.extend(here.map(|here| Copied { place, mark: here.mark, number }));
    }
    Ok((!found.is_empty()).then_some(Message::AskCopies { room, copies: found }))
}

/// The answer to a peer that asks for copies (`Effect::SendCopies`), ready to be sent: the messages that are here as
/// they were asked for, with whole bodies and numbers. Of one that was asked for without a number with its lowest; acts have none.
/// `None`: none is.
///
/// # Errors
///
/// See [`ReadError`].
pub fn answer(
    reader: &Reader,
    room: RoomId,
    asked: &[Copied],
) -> Result<Option<Message>, ReadError> {
    let Some(view) = reader.view(room)? else { return Ok(None) };
    let mut copies = Vec::new();
    for copied in asked {
        let Some(here) = here(&view, &copied.name())? else { continue };
        let number = here.number_of(copied);
        if number.is_some() || here.is_act(copied) {
            copies.push(Copied { number, ..*copied });
        }
    }
    Ok((!copies.is_empty()).then_some(Message::Copies { room, copies }))
}

/// The question about one message (`Effect::AskReceipt`), ready to be sent. `None`: it is not here.
///
/// # Errors
///
/// See [`ReadError`].
pub fn ask_receipt(
    reader: &Reader,
    nonce: u64,
    room: RoomId,
    copy: CopyOf,
) -> Result<Option<Message>, ReadError> {
    let Some(view) = reader.view(room)? else { return Ok(None) };
    let CopyOf { place, number } = copy;
    Ok(here(&view, &copy)?.map(|here| {
        let copied = Copied { place, mark: here.mark, number };
        Message::AskReceipt { nonce, room, copied }
    }))
}

/// The copy here of a message that a peer asks about (`Effect::SendReceipt`). Rooms in memory hold nothing.
///
/// # Errors
///
/// See [`ReadError`].
pub fn holding(reader: &Reader, room: RoomId, copied: &Copied) -> Result<Holding, ReadError> {
    let Some(view) = reader.view(room)? else { return Ok(Holding::default()) };
    let here = here(&view, &copied.name())?.filter(|here| here.mark == copied.mark);
    let Some(here) = here else { return Ok(Holding::default()) };
    let held = here.number_of(copied).is_some() && !view.record()?.ephemeral;
    Ok(Holding { held, delivered: here.numbers.delivered() })
}

/// A message as it is here.
struct Here {
    mark: [u8; 16],
    /// Its body is kept.
    is_whole: bool,
    /// It takes no numbers.
    is_hidden: bool,
    numbers: Numbers,
}

impl Here {
    /// Whether it is an act, held as it was asked for.
    fn is_act(&self, copied: &Copied) -> bool {
        let is_it = self.mark == copied.mark && self.is_whole;
        is_it && self.is_hidden && copied.number.is_none()
    }

    /// Its number, if it is held as it was asked for.
    fn number_of(&self, copied: &Copied) -> Option<Number> {
        if self.mark != copied.mark || !self.is_whole {
            return None;
        }
        match copied.number {
            Some(asked) => self.numbers.all().find(|number| *number == asked),
            None => self.numbers.lowest(),
        }
    }
}

fn here(view: &View, copy: &CopyOf) -> Result<Option<Here>, ReadError> {
    let Some((log, _)) = view.log(copy.place.log)? else { return Ok(None) };
    let at = LocalRef { log, seq: copy.place.seq };
    let Some(entry) = view.stored(at)? else { return Ok(None) };
    let (mark, is_whole) = (mark(&entry), entry.gone.is_none());
    let is_hidden = !entry.facts.visible;
    Ok(Some(Here { mark, is_whole, is_hidden, numbers: view.numbers_of(at)? }))
}
