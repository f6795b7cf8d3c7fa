//! Copies of messages: questions to peers, and answers to theirs. What is not on the disk is not spoken of.

use mesh::{
    name::id::{LocalRef, RoomId},
    wire::{
        copies::{Copied, CopyOf, mark},
        message::Message,
    },
};

use crate::{error::ReadError, reader::Reader, schema::Numbers, view::View};

impl Reader {
    /// The question for copies of these messages (`Effect::AskCopies`), ready to be sent, with those whose whole bodies are
    /// here. `None`: none is.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn ask_copies(
        &self,
        room: RoomId,
        copies: &[CopyOf],
    ) -> Result<Option<Message>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(None) };
        let mut found = Vec::new();
        for copy in copies {
            let CopyOf { place, number } = *copy;
            let held = held(&view, copy)?;
            found.extend(held.map(|held| Copied { place, mark: held.mark, number }));
        }
        Ok((!found.is_empty()).then_some(Message::AskCopies { room, copies: found }))
    }

    /// The answer to a peer that asks for copies (`Effect::SendCopies`), ready to be sent: the messages that are here as
    /// they were asked for, with whole bodies and numbers. Of one that was asked for without a number with its lowest.
    /// `None`: none is.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn answer_copies(
        &self,
        room: RoomId,
        asked: &[Copied],
    ) -> Result<Option<Message>, ReadError> {
        let Some(view) = self.view(room)? else { return Ok(None) };
        let mut copies = Vec::new();
        for copied in asked {
            let held = held(&view, &copied.name())?.filter(|held| held.mark == copied.mark);
            let number = held.and_then(|held| match copied.number {
                Some(asked) => held.numbers.all().find(|number| *number == asked),
                None => held.numbers.lowest(),
            });
            if number.is_some() {
                copies.push(Copied { number, ..*copied });
            }
        }
        Ok((!copies.is_empty()).then_some(Message::Copies { room, copies }))
    }
}

/// A message as it is here.
struct Held {
    mark: [u8; 16],
    numbers: Numbers,
}

/// `None`: it is not here, or without its body.
fn held(view: &View, copy: &CopyOf) -> Result<Option<Held>, ReadError> {
    let Some((log, _)) = view.log(copy.place.log)? else { return Ok(None) };
    let at = LocalRef { log, seq: copy.place.seq };
    let Some(mark) = view.stored(at)?.as_ref().and_then(mark) else { return Ok(None) };
    Ok(Some(Held { mark, numbers: view.numbers_of(at)? }))
}
